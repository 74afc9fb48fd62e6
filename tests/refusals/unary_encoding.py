"""What `dpnotes.unary_encoding` refuses."""

import math

import numpy as np

from refusals._tables import (
    DOMAIN_SIZE,
    EPSILON,
    NOT_A_NUMBER,
    NOT_A_PROBABILITY,
    NOT_A_WORD,
    NOT_AN_ARRAY_OF_INTEGERS,
    NOT_AN_INTEGER,
    NOT_BOOLEANS,
    NOT_COUNTS,
    NOT_REAL_COUNTS,
    OUT_OF_RANGE,
    SECRET,
    SECRET_WORD,
)

NOT_BITS = {
    ValueError: [
        NOT_BOOLEANS,
        [0, 1],
        1,
        [[[0, 1]]],
        [[0, 2]],
        [[0, -1]],
        [[0, SECRET]],
        [[0, 1], [1]],
    ],
    TypeError: [[[0.0, 1.0]], [["0", "1"]], [[0, None]], [[SECRET_WORD, 1]]],
}
NOT_WHOLE_COUNTS = {ValueError: [[2.0**63, 1.0]], TypeError: [[1.0, 2.0], [0.5, 0.5]]}
TOO_MANY = {ValueError: [[2**62, 2**12], np.array([2**63, 2**63])]}
NOT_ANSWERS = {
    ValueError: [[], (), np.array([]), ["tea", None], [math.nan], [SECRET_WORD], ["tea", SECRET]],
    TypeError: ["tea", 5, None, [["tea"]], [SECRET_WORD, ["tea"]], np.array([["tea"], ["tea"]])],
}
NOT_A_DOMAIN = {
    ValueError: [[], ["tea", "tea"], ["tea", None], ["tea", math.nan], [1, 1.0], np.array("tea")],
    TypeError: ["tea", 5, None, [["tea"]], [("tea", ["tea"])]],
}
NOT_ONES = {
    ValueError: [[], [3, 0], [-1, 0], [[1, 1]], 1, None, [[1], [1, 0]]],
    TypeError: [[1.0, 0.0], ["1"], [None], [True, False]],
}
NOT_ESTIMATES = {
    ValueError: [[], 3.0, [[1.0]], [math.nan, 1.0], [math.inf], [[1.0], [1.0, 2.0]]],
    TypeError: [None, ["1"], [None, 1.0], "12", [True]],
}
PAIR = {
    "p": [NOT_A_PROBABILITY, {ValueError: [0.25, 0.2]}],
    "q": [NOT_A_PROBABILITY, {ValueError: [0.5, 0.6]}],
}
TOTAL = [{ValueError: [0, -1, 7, 2**62 + 1]}, {TypeError: [9.0, "9", True, [9]]}]

WORKING_CALLS = {
    "probabilities": {"epsilon": 1.0, "scheme": "optimized"},
    "epsilon": {"p": 0.5, "q": 0.25},
    "output_distribution": {"categories": 3, "p": 0.5, "q": 0.25},
    "encode": {"values": ["tea"], "domain": ["tea", "coffee"], "missing": "raise"},
    "perturb": {"bits": [[0, 1], [1, 0]], "p": 0.5, "q": 0.25, "rng": 0},
    "count_ones": {"reports": [[0, 1], [1, 1]]},
    "aggregate": {"reports": [[0, 1], [1, 1]], "p": 0.5, "q": 0.25},
    "aggregate_ones": {"ones": [1, 2], "n": 2, "p": 0.5, "q": 0.25},
    "simulate_ones": {"counts": [5, 3], "p": 0.5, "q": 0.25, "n": 9, "rng": 0},
    "variance": {"counts": [5, 3], "p": 0.5, "q": 0.25, "n": 9},
    "support_probabilities": {"protocol": "hadamard", "epsilon": 1.0, "categories": 3},
    "project_to_simplex": {"estimates": [5.0, -1.0], "total": 4.0},
}
REFUSED = {
    "probabilities": {"epsilon": EPSILON, "scheme": [NOT_A_WORD]},
    "epsilon": PAIR,
    "output_distribution": {"categories": [{ValueError: [0, -1, 13]}, NOT_AN_INTEGER], **PAIR},
    "encode": {
        "values": [NOT_ANSWERS],
        "domain": [NOT_A_DOMAIN],
        "missing": [NOT_A_WORD],
    },
    "perturb": {
        "bits": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS, {ValueError: [[[1, 1]]]}],
        **PAIR,
    },
    "count_ones": {"reports": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS]},
    "aggregate": {"reports": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS], **PAIR},
    "aggregate_ones": {
        "ones": [NOT_ONES],
        "n": [{ValueError: [0, -1, 2**62 + 1, 10**400]}, NOT_AN_INTEGER],
        **PAIR,
    },
    "simulate_ones": {
        "counts": [NOT_COUNTS, NOT_WHOLE_COUNTS, TOO_MANY],
        "n": TOTAL,
        **PAIR,
    },
    "variance": {"counts": [NOT_COUNTS, NOT_REAL_COUNTS], "n": TOTAL, **PAIR},
    "support_probabilities": {
        "protocol": [NOT_A_WORD],
        "epsilon": [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [1e-10, 30.5]}],
        "categories": DOMAIN_SIZE,
    },
    "project_to_simplex": {
        "estimates": [NOT_ESTIMATES],
        "total": [OUT_OF_RANGE, NOT_A_NUMBER],
    },
}
