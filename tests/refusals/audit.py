"""What `dpnotes.audit` refuses."""

import math
from fractions import Fraction

from refusals._tables import NOT_A_NUMBER, NOT_A_PROBABILITY, NOT_AN_INTEGER

NOT_A_DISTRIBUTION = {
    ValueError: [
        *(
            [],
            [[]],
            0.5,
            None,
            "1",
            [0.5, 0.5],
            [[None, 1.0]],
            [[0.5, 0.4], [0.5, 0.5]],
            [[0.5, 0.5], [1.0]],
        ),
        *([[1.5, -0.5], [0.5, 0.5]], [[math.nan, 1.0], [0.5, 0.5]]),
    ],
    TypeError: [[["1", "0"]], [[1j, 0.0]], [[object(), 1.0]], {1: 0.5}],
}
NOT_PAIRS = {
    ValueError: [[], [(0, 2)], [(0, -1)], [(0,)], [0, 1], [(0, 1, 0)], [[0, 1], [0]]],
    TypeError: [[(0.0, 1.0)], [("0", "1")], 5],
}
DELTA = [{ValueError: [-1e-300, 1, 1.1, math.nan, math.inf]}, NOT_A_NUMBER]
TRIALS = [{ValueError: [3, 0, -1]}, NOT_AN_INTEGER]
TABLE = [[0.75, 0.25], [0.25, 0.75]]


def coin(answer, rng):
    """Tell the truth three times out of four."""
    return answer if rng.random() < 0.75 else not answer


WORKING_CALLS = {
    "exact_epsilon": {"output_distribution": TABLE, "neighbours": [(0, 1)]},
    "exact_delta": {"output_distribution": TABLE, "epsilon": 0.5, "neighbours": [(0, 1)]},
    "epsilon_lower_bound": {
        "mechanism": coin,
        "dataset": True,
        "neighbour": False,
        "trials": 40,
        "confidence": 0.95,
        "delta": Fraction(0),
        "rng": 0,
    },
    "largest_certifiable_epsilon": {"trials": 40, "confidence": 0.95, "delta": 0.0},
}
REFUSED = {
    "exact_epsilon": {"output_distribution": [NOT_A_DISTRIBUTION], "neighbours": [NOT_PAIRS]},
    "exact_delta": {
        "output_distribution": [NOT_A_DISTRIBUTION],
        "epsilon": [{ValueError: [-1, math.nan, math.inf]}, NOT_A_NUMBER],
        "neighbours": [NOT_PAIRS],
    },
    "epsilon_lower_bound": {
        "mechanism": [{TypeError: [None, "coin", 1]}],
        "dataset": [{TypeError: [(i for i in [1])]}],
        "neighbour": [{TypeError: [(i for i in [1])]}],
        "trials": TRIALS,
        "confidence": [NOT_A_PROBABILITY],
        "delta": DELTA,
    },
    "largest_certifiable_epsilon": {
        "trials": TRIALS,
        "confidence": [NOT_A_PROBABILITY],
        "delta": DELTA,
    },
}
NOT_CALLED = {"in_a_process": "it starts a process: `test_audit` has its refusals"}
