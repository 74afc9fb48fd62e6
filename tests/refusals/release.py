"""What `dpnotes.release` refuses."""

import math

from refusals._tables import ANY_EPSILON, NOT_A_NUMBER

NOT_WORDS = [{ValueError: ["", " "], TypeError: [None, 1, b"noise", ["noise"]]}]
NOT_A_DELTA = [{ValueError: [-1e-300, 1, 1.1, math.nan, math.inf]}, NOT_A_NUMBER]

WORKING_CALLS = {
    "Release": {
        "value": 0.5,
        "epsilon": 1.0,
        "delta": 1e-6,
        "mechanism": "Cauchy noise",
        "neighbours": "one record replaced",
    }
}
REFUSED = {
    "Release": {
        "value": [NOT_A_NUMBER],
        "epsilon": ANY_EPSILON,
        "delta": NOT_A_DELTA,
        "mechanism": NOT_WORDS,
        "neighbours": NOT_WORDS,
    }
}
