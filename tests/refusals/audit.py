"""What `dpnotes.audit` refuses."""

import math
from fractions import Fraction

import numpy as np
from scipy import stats

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
NOT_RECORDS = {
    ValueError: [[], (), np.array([]), np.array(3)],
    TypeError: [None, 5, "ab", {1, 2}, {1: 2}],
}
NOT_A_DENSITY = {TypeError: [None, 0.5, "norm", stats.norm.cdf]}
NOT_DENSITIES = {
    "distribution": [NOT_A_DENSITY],
    "neighbour": [NOT_A_DENSITY],
    "turning_points": [
        {ValueError: [[], [math.nan], [0.0, math.inf]], TypeError: ["0", [True], [1j], {0.5}]}
    ],
    "limits": [
        {
            ValueError: [[0.0], [math.nan, 0.0], 1.0, [1.0, 2.0, 3.0]],
            TypeError: ["ab", [None, 1.0], [True, False]],
        }
    ],
}
NOT_A_FLAG = {TypeError: [0, 1, None, "no", [True]]}
DELTA = [{ValueError: [-1e-300, 1, 1.1, math.nan, math.inf]}, NOT_A_NUMBER]
TRIALS = [{ValueError: [3, 0, -1]}, NOT_AN_INTEGER]
TABLE = [[0.75, 0.25], [0.25, 0.75]]


def coin(answer, rng):
    """Tell the truth three times out of four."""
    return answer if rng.random() < 0.75 else not answer


WORKING_CALLS = {
    "exact_epsilon": {"output_distribution": TABLE, "neighbours": [(0, 1)]},
    "exact_delta": {"output_distribution": TABLE, "epsilon": 0.5, "neighbours": [(0, 1)]},
    "trade_off": {
        "output_distribution": TABLE,
        "type_one_error": [0.0, 0.5],
        "neighbours": [(0, 1)],
    },
    "density_delta": {
        "distribution": stats.laplace(0.0),
        "neighbour": stats.laplace(1.0),
        "epsilon": 0.5,
        "turning_points": [0.0, 1.0],
        "limits": [1.0, -1.0],
    },
    "density_epsilon": {
        "distribution": stats.laplace(0.0),
        "neighbour": stats.laplace(1.0),
        "delta": 0.1,
        "turning_points": [0.0, 1.0],
        "limits": [1.0, -1.0],
    },
    "pairs_in_domain": {"domain": [0, 1]},
    "pairs_by_replacement": {"records": [0, 1], "values": [0, 1]},
    "pairs_by_removal": {"records": [0, 1], "additions": [2]},
    "report": {
        "mechanism": coin,
        "epsilon": 1.5,
        "pairs": [(True, False)],
        "trials": 200,
        "delta": 0.0,
        "confidence": 0.95,
        "factory": False,
        "jobs": 1,
        "rng": 0,
    },
    "epsilon_lower_bound": {
        "mechanism": coin,
        "dataset": True,
        "neighbour": False,
        "trials": 40,
        "confidence": 0.95,
        "delta": Fraction(0),
        "factory": False,
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
    "trade_off": {
        "output_distribution": [NOT_A_DISTRIBUTION],
        "type_one_error": [
            {
                ValueError: [-1e-300, 1.1, math.nan, [0.5, math.inf], [[0.5], [0.1, 0.2]]],
                TypeError: ["0.5", None, [True], 1j, {0.5}],
            }
        ],
        "neighbours": [NOT_PAIRS],
    },
    "density_delta": {
        "epsilon": [{ValueError: [-1, math.nan, math.inf]}, NOT_A_NUMBER],
        **NOT_DENSITIES,
    },
    "density_epsilon": {"delta": [NOT_A_PROBABILITY], **NOT_DENSITIES},
    "pairs_in_domain": {"domain": [{ValueError: [[], [1]], TypeError: [None, 5, "ab", b"ab"]}]},
    "pairs_by_replacement": {
        "records": [NOT_RECORDS],
        "values": [{ValueError: [[]], TypeError: [None, 5, "ab"]}],
    },
    "pairs_by_removal": {
        "records": [NOT_RECORDS],
        "additions": [{TypeError: [None, 5, "ab"]}],
    },
    "report": {
        "mechanism": [{TypeError: [None, "coin", 1]}],
        "epsilon": [{ValueError: [-1, math.nan, math.inf]}, NOT_A_NUMBER],
        "pairs": [
            {
                ValueError: [[], [()], [(True,)], [(True, False, "words", 1)]],
                TypeError: [None, 5, "ab", ["ab"], [5], [(True, (i for i in [1]))], [(0, 1, 2)]],
            }
        ],
        "trials": TRIALS,
        "delta": DELTA,
        "confidence": [NOT_A_PROBABILITY],
        "factory": [NOT_A_FLAG],
        "jobs": [{ValueError: [0, -1]}, NOT_AN_INTEGER],
    },
    "epsilon_lower_bound": {
        "mechanism": [{TypeError: [None, "coin", 1]}],
        "dataset": [{TypeError: [(i for i in [1])]}],
        "neighbour": [{TypeError: [(i for i in [1])]}],
        "trials": TRIALS,
        "confidence": [NOT_A_PROBABILITY],
        "delta": DELTA,
        "factory": [NOT_A_FLAG],
    },
    "largest_certifiable_epsilon": {
        "trials": TRIALS,
        "confidence": [NOT_A_PROBABILITY],
        "delta": DELTA,
    },
}
