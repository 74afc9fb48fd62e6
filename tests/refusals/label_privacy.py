"""What `dpnotes.label_privacy` refuses."""

import math

import numpy as np
import pandas as pd

from refusals._tables import (
    ANY_EPSILON,
    EPSILON,
    NOT_A_PROBABILITY,
    NOT_A_WORD,
    NOT_AN_INTEGER,
    NOT_COUNTS,
    NOT_REAL_COUNTS,
    SECRET,
    SECRET_WORD,
)

NOT_LABELS = {
    ValueError: [
        *([], 1, None, "1", [[1, -1]], [[1], [1, -1]], [0, 1], [1, 2], [1, -SECRET], [1.5]),
        *([True, False], ["1"], [None, 1], [SECRET_WORD, 1], [math.nan], {1: -1}, object()),
        *(np.array([-128], dtype=np.int8), np.array([1.0, SECRET]), pd.Series([1, None])),
    ],
    TypeError: [
        *(np.array([True, False]), np.uint8([1, 1]), np.array(["1", SECRET_WORD])),
        *(np.array([1j]), np.ma.array([1, -1])),
    ],
}
NOT_CLASSES = {
    ValueError: [
        *((), (1,), (-1, 0, 1), (1, 1), (1, 1.0), ("a", "a")),
        *((math.nan, 1), (0, 2**70), (1, 2**63), (0.5, 2**63 + 1)),
    ],
    TypeError: [
        *(None, 1, "ab", b"ab", np.array(1), {0, 1}, {0: 1}, (1, "1"), (True, 1)),
        *((None, 1), (b"a", b"b"), (1j, 2), ((0,), (1,))),
    ],
}
NUMBER_OF_LABELS = [{ValueError: [0, -1, 10**15 + 1, 10**400]}, NOT_AN_INTEGER]

WORKING_CALLS = {
    "output_distribution": {"epsilon": 1.0},
    "privatize": {"labels": [1, -1], "epsilon": 1.0, "classes": (-1, 1), "rng": 0},
    "estimate": {"reports": [1, -1], "epsilon": 1.0, "classes": (-1, 1)},
    "variance": {"counts": [5, 3], "epsilon": 1.0},
    "exponential": {
        "labels": [1, -1],
        "stated_epsilon": 1.0,
        "method": "independent",
        "classes": (-1, 1),
        "rng": 0,
    },
    "log_score_pmf": {"n": 3, "stated_epsilon": 1.0},
    "truncated_binomial": {"n": 10, "low": 5, "high": 10, "p": 0.5},
    "success_probability": {"n": 10, "stated_epsilon": 1.0},
    "minimum_epsilon": {"n": 10, "failure": 0.1, "bound": "exact"},
}
REFUSED = {
    "output_distribution": {"epsilon": EPSILON},
    "privatize": {"labels": [NOT_LABELS], "epsilon": EPSILON, "classes": [NOT_CLASSES]},
    "estimate": {"reports": [NOT_LABELS], "epsilon": EPSILON, "classes": [NOT_CLASSES]},
    "variance": {
        "counts": [NOT_COUNTS, NOT_REAL_COUNTS, {ValueError: [[5], [0, 0], [1, 2, 3]]}],
        "epsilon": EPSILON,
    },
    "exponential": {
        "labels": [NOT_LABELS],
        "stated_epsilon": EPSILON,
        "method": [NOT_A_WORD, {ValueError: ["two_step", "Independent"]}],
        "classes": [NOT_CLASSES],
    },
    "log_score_pmf": {
        "n": [{ValueError: [0, -1]}, NOT_AN_INTEGER],
        "stated_epsilon": ANY_EPSILON,
    },
    "truncated_binomial": {
        "n": NUMBER_OF_LABELS,
        "low": [{ValueError: [-1, 11, 10**400]}, NOT_AN_INTEGER],
        "high": [{ValueError: [-1, 11, 10**400]}, NOT_AN_INTEGER],
        "p": [NOT_A_PROBABILITY],
    },
    "success_probability": {"n": NUMBER_OF_LABELS, "stated_epsilon": ANY_EPSILON},
    "minimum_epsilon": {
        "n": NUMBER_OF_LABELS,
        "failure": [NOT_A_PROBABILITY],
        "bound": [NOT_A_WORD, {ValueError: ["Exact", "bernstein"]}],
    },
}
