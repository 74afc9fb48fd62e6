"""What `dpnotes.randomized_response` refuses."""

import math

import numpy as np
import pandas as pd

from refusals._tables import (
    DOMAIN_SIZE,
    EPSILON,
    NOT_A_NUMBER,
    NOT_AN_ARRAY_OF_INTEGERS,
    NOT_AN_INTEGER,
    NOT_BOOLEANS,
    NOT_COUNTS,
    NOT_REAL_COUNTS,
    OUT_OF_RANGE,
    SECRET,
    SECRET_WORD,
)

OUTSIDE_THE_DOMAIN = {
    ValueError: [
        [SECRET],
        [0, -SECRET],
        SECRET,
        np.array([-1], dtype=np.int8),
        np.array([SECRET, 1], dtype=np.uint64),
        np.array([1 << 24], dtype=">i4"),
        pd.Series([0, SECRET]),
    ],
    TypeError: [[0, 1.5], [0, math.nan], [SECRET_WORD], pd.Series([1, None]), [0, None]],
}

WORKING_CALLS = {
    "keep_probability": {"epsilon": 1.0, "categories": 3},
    "output_distribution": {"epsilon": 1.0, "categories": 3},
    "privatize": {"values": [0, 1, 2], "epsilon": 1.0, "categories": 3, "rng": 0},
    "estimate": {"reports": [0, 1, 2], "epsilon": 1.0, "categories": 3},
    "count_reports": {"reports": [0, 1, 2], "categories": 3},
    "estimate_counts": {"counts": [5, 3, 0], "epsilon": 1.0},
    "variance": {"counts": [5, 3, 0], "epsilon": 1.0},
    "two_coin": {"values": [True, False], "rng": 0},
    "shuffled_delta": {"epsilon": 0.1, "n": 9, "local_epsilon": 1.0, "others": 4},
}
REFUSED = {
    "keep_probability": {"epsilon": EPSILON, "categories": DOMAIN_SIZE},
    "output_distribution": {"epsilon": EPSILON, "categories": DOMAIN_SIZE},
    "privatize": {
        "values": [NOT_AN_ARRAY_OF_INTEGERS, OUTSIDE_THE_DOMAIN, {TypeError: [[True]]}],
        "epsilon": EPSILON,
        "categories": DOMAIN_SIZE,
    },
    "estimate": {
        "reports": [NOT_AN_ARRAY_OF_INTEGERS, OUTSIDE_THE_DOMAIN, {TypeError: [[True]]}],
        "epsilon": EPSILON,
        "categories": DOMAIN_SIZE,
    },
    "count_reports": {
        "reports": [NOT_AN_ARRAY_OF_INTEGERS, OUTSIDE_THE_DOMAIN, {TypeError: [[True]]}],
        "categories": DOMAIN_SIZE,
    },
    "estimate_counts": {
        "counts": [
            NOT_COUNTS,
            NOT_REAL_COUNTS,
            {ValueError: [[5], [0, 0], [2**62, 2**62]], TypeError: [[1.0, 2.0]]},
        ],
        "epsilon": EPSILON,
    },
    "variance": {
        "counts": [NOT_COUNTS, NOT_REAL_COUNTS, {ValueError: [[5], [0, 0]]}],
        "epsilon": EPSILON,
    },
    "two_coin": {
        "values": [
            NOT_AN_ARRAY_OF_INTEGERS,
            OUTSIDE_THE_DOMAIN,
            {ValueError: [[2], NOT_BOOLEANS]},
        ]
    },
    "shuffled_delta": {
        "epsilon": [{ValueError: [-1, -1e-300, math.nan, math.inf, -math.inf]}, NOT_A_NUMBER],
        "n": [{ValueError: [0, -3, 1_000_001]}, NOT_AN_INTEGER],
        "local_epsilon": [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [5e-324, 1e-10]}],
        "others": [{ValueError: [-1, 9, 10**9], TypeError: [2.0, "2", True, [2]]}],
    },
}
