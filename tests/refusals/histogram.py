"""What `dpnotes.histogram` refuses."""

import math

import numpy as np

from refusals._tables import (
    NOT_A_NUMBER,
    NOT_A_PROBABILITY,
    NOT_AN_INTEGER,
    OUT_OF_RANGE,
    SECRET,
    SECRET_WORD,
)
from refusals.private_auc import DELTA, NOT_POSITIVE, WORDS
from refusals.unary_encoding import NOT_A_DOMAIN, NOT_ANSWERS

EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [9e-10]}]
NOT_COUNTS = {
    ValueError: [[1], [1, 2, 3], [], 5, [[[1, 2]]]],
    TypeError: [None, "12", [1.0, 2.0], ["1", "2"], [True, False], [None, 1], [2**70, 1]],
}
NOT_A_COUNT = {
    ValueError: [[[1, 2]], [[1], [2, 3]]],
    TypeError: [None, "12", 1.0, [1.0, 2.0], ["1"], True, [True], [None, 1], [2**70, 1]],
}
NOT_YES_OR_NO = {
    ValueError: [
        *([], (), np.array([]), [2], [-1], [True, SECRET], [0, 10**400], [1.0], [math.nan]),
        *([True, None], [SECRET_WORD], [1, "1"], [b"1"], [1j], [[True]], np.array([[0, 1]])),
    ],
    TypeError: ["yes", 5, True, None, {True}, {True: 1}],
}
RECORDS = {"values": ["tea"], "domain": ["tea", "coffee"], "epsilon": 1.0}

WORKING_CALLS = {
    "release_histogram": {**RECORDS, "rng": 0},
    "log_pmf": {"output": [1, 0], **RECORDS},
    "release_count": {"values": [True, 0], "epsilon": 1.0, "rng": 0},
    "count_log_pmf": {"output": [1, 0], "values": [True, 0], "epsilon": 1.0},
    "margin": {"epsilon": 1.0, "categories": 3, "confidence": 0.95, "sensitivity": 1},
    "HistogramRelease": {
        "value": (1, -2),
        "domain": ("tea", "coffee"),
        "epsilon": 1.0,
        "delta": 0.0,
        "mechanism": "Laplace noise",
        "neighbours": "one record replaced",
    },
}
REFUSED = {
    "release_histogram": {
        "values": [NOT_ANSWERS],
        "domain": [NOT_A_DOMAIN],
        "epsilon": EPSILON,
    },
    "log_pmf": {
        "output": [NOT_COUNTS],
        "values": [NOT_ANSWERS],
        "domain": [NOT_A_DOMAIN],
        "epsilon": EPSILON,
    },
    "release_count": {"values": [NOT_YES_OR_NO], "epsilon": EPSILON},
    "count_log_pmf": {
        "output": [NOT_A_COUNT],
        "values": [NOT_YES_OR_NO],
        "epsilon": EPSILON,
    },
    "margin": {
        "epsilon": EPSILON,
        "sensitivity": [{ValueError: [0, 3, -1]}, NOT_AN_INTEGER],
        "categories": [{ValueError: [0, -1, 2**31 + 1]}, NOT_AN_INTEGER],
        "confidence": [NOT_A_PROBABILITY],
    },
    "HistogramRelease": {
        "value": [NOT_COUNTS, {ValueError: [[[1, 2]]]}],
        "domain": [NOT_A_DOMAIN],
        "epsilon": [NOT_POSITIVE],
        "delta": DELTA,
        "mechanism": WORDS,
        "neighbours": WORDS,
    },
}
