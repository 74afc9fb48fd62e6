"""What `dpnotes.exponential_mechanism` refuses."""

import math

import numpy as np

from refusals._tables import ANY_EPSILON, SECRET_WORD

NOT_UTILITIES = {
    ValueError: [
        *([], [[]], 3.0, [[[1.0]]], np.zeros((0, 3)), [[1.0], [1.0, 2.0]]),
        *([math.nan, 1.0], [math.inf], [-math.inf, 0.0]),
    ],
    TypeError: [None, "1", ["1"], [None, 1.0], [1j], [2**70], object(), [SECRET_WORD]],
}

WORKING_CALLS = {
    "sample": {
        "utilities": [1.0, 2.0],
        "epsilon": 1.0,
        "sensitivity": 1.0,
        "size": None,
        "rng": 0,
    },
    "output_distribution": {"utilities": [1.0, 2.0], "epsilon": 1.0, "sensitivity": 1.0},
}
REFUSED = {
    "sample": {
        "utilities": [NOT_UTILITIES, {ValueError: [[[1.0, 2.0]]]}],
        "epsilon": ANY_EPSILON,
        "sensitivity": ANY_EPSILON,
        "size": [{ValueError: [-1, -(10**30)]}, {TypeError: [2.0, "2", True, [2]]}],
    },
    "output_distribution": {
        "utilities": [NOT_UTILITIES],
        "epsilon": ANY_EPSILON,
        "sensitivity": ANY_EPSILON,
    },
}
