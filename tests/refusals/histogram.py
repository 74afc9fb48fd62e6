"""What `dpnotes.histogram` refuses."""

from refusals._tables import NOT_A_NUMBER, NOT_A_PROBABILITY, NOT_AN_INTEGER, OUT_OF_RANGE
from refusals.private_auc import DELTA, NOT_POSITIVE, WORDS
from refusals.unary_encoding import NOT_A_DOMAIN, NOT_ANSWERS

EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [9e-10]}]
NOT_COUNTS = {
    ValueError: [[1], [1, 2, 3], [], 5, [[[1, 2]]]],
    TypeError: [None, "12", [1.0, 2.0], ["1", "2"], [True, False], [None, 1], [2**70, 1]],
}
RECORDS = {"values": ["tea"], "domain": ["tea", "coffee"], "epsilon": 1.0}

WORKING_CALLS = {
    "release_histogram": {**RECORDS, "rng": 0},
    "log_pmf": {"output": [1, 0], **RECORDS},
    "margin": {"epsilon": 1.0, "categories": 3, "confidence": 0.95},
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
    "margin": {
        "epsilon": EPSILON,
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
