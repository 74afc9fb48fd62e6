"""What `dpnotes.private_confusion` refuses."""

from refusals.private_auc import EPSILON, MATRIX, NOT_A_PROBABILITY, RELEASED, TWO_CLASSES

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
