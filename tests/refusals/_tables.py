"""For every kind of parameter that several modules know: what is refused, and how."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

# A record that no message may repeat.
SECRET, SECRET_WORD = 31_337, "absinthe"

OUT_OF_RANGE = {ValueError: [0, 0.0, -1, -1e-300, math.nan, math.inf, -math.inf, 10**400]}
NOT_A_NUMBER = {TypeError: ["1", None, True, np.True_, [1.0], np.array(1.0), 1j, Decimal(1)]}
NOT_AN_INTEGER = {TypeError: [2.0, "2", None, True, np.float64(3), [2]]}
NOT_A_PROBABILITY = {
    ValueError: [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, Fraction(10**30 - 1, 10**30)],
    **NOT_A_NUMBER,
}
NOT_AN_ARRAY_OF_INTEGERS = {
    ValueError: [[], np.zeros((0, 3), dtype=int), [[1], [1, 0]], [[[1]], [1, 0]]],
    TypeError: [None, "1", ["1"], [1.0], [0.5], [None], [1j], [2**70], object(), {"a": 1}],
}
NOT_BOOLEANS = np.array([[0, 1, 2]], dtype=np.uint8).view(bool)
NOT_COUNTS = {
    ValueError: [[], [-1, 2], [[1, 2], [3, 4]], 5, [[1], [1, 0]]],
    TypeError: [None, "12", [True, False], ["1", "2"], [1j, 2], [None, 1]],
}
NOT_REAL_COUNTS = {ValueError: [[1.0, math.nan], [1.0, math.inf]], TypeError: []}
NOT_A_WORD = {ValueError: ["", "Optimized", "nonsense"], TypeError: [None, 1, ["optimized"], b"a"]}

EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [5e-324, 1e-17]}]
ANY_EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER]
CATEGORIES = [{ValueError: [1, 0, -3]}, NOT_AN_INTEGER]
DOMAIN_SIZE = [*CATEGORIES, {ValueError: [2**62 + 1, 10**30]}]


def unless_left_out(tables):
    """Return what is refused where None stands for a default."""
    return [
        {error: [v for v in values if v is not None] for error, values in table.items()}
        for table in tables
    ]
