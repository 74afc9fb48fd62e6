"""What `dpnotes.private_confusion` refuses."""

from refusals.private_auc import (
    DELTA,
    EPSILON,
    MATRIX,
    NOT_A_PROBABILITY,
    NOT_POSITIVE,
    RELEASED,
    TWO_CLASSES,
    WORDS,
)

WORKING_CALLS = {
    "release_confusion_matrix": {
        "labels": [0, 1],
        "predictions": [True, False],
        "epsilon": 1.0,
        "rng": 0,
    },
    "confusion_metrics": {"release": MATRIX, "confidence": 0.9},
}
REFUSED = {
    "release_confusion_matrix": {
        "labels": TWO_CLASSES,
        "predictions": TWO_CLASSES,
        "epsilon": EPSILON,
    },
    "confusion_metrics": {
        "release": [{TypeError: [0.5, None, RELEASED, [[1, 2], [3, 4]]]}],
        "confidence": [NOT_A_PROBABILITY],
    },
}

WORKING_CALLS["ConfusionRelease"] = {
    "value": ((1, 2), (3, 4)),
    "epsilon": 1.0,
    "delta": 0.0,
    "mechanism": "Laplace noise",
    "neighbours": "one record replaced",
}
REFUSED["ConfusionRelease"] = {
    "value": [
        {
            ValueError: [((0, 0), (0, 0)), ((1, -1), (0, 0))],
            TypeError: [None, 1, (1, 2), ((1.0, 2.0), (3.0, 4.0)), ((True, False), (True, True))],
        }
    ],
    "epsilon": [NOT_POSITIVE],
    "delta": DELTA,
    "mechanism": WORDS,
    "neighbours": WORDS,
}
