"""What `dpnotes.private_auc` refuses."""

import math

import numpy as np
import pandas as pd

from dpnotes import private_auc, private_confusion
from refusals._tables import SECRET, SECRET_WORD

RECORDS = {"labels": [0, 1, 1, 0], "scores": [0.1, 0.9, 0.4, 0.3]}
RELEASED = private_auc.release_auc(**RECORDS, epsilon=30.0, rng=0)
MATRIX = private_confusion.release_confusion_matrix([0, 1], [0, 1], 1.0, rng=0)
PLANNED = {"epsilon": 1.0, "delta": 0.0, "noise": "auto", "calibration": "exact", "guess": 1}
CHOSEN = {**PLANNED, "ties": "pessimistic"}
NOT_A_NUMBER = {TypeError: ["1", None, True, np.True_, [1.0], 1j]}
NOT_POSITIVE = {ValueError: [0, -1.0, math.nan, math.inf, -math.inf, 10**400], **NOT_A_NUMBER}
NOT_A_SIZE = {ValueError: [-1, -(10**30), 10**30, 10**400], TypeError: [2.0, "2", None, True, [2]]}
NOT_A_COUNT = {ValueError: [0, -1, -(10**30), 10**400], TypeError: [2.0, "2", True, [2]]}
NOT_A_SHARE = {ValueError: [-1e-300, 1.1, math.nan, math.inf], **NOT_A_NUMBER}
NOT_A_PROBABILITY = {ValueError: [0, 1, -0.1, math.nan, math.inf], **NOT_A_NUMBER}
NOT_A_WORD = {ValueError: ["", "Half", "average"], TypeError: [1, ["half"], b"half"]}
NO_WORD = {TypeError: [None]}
EPSILON = [NOT_POSITIVE, {ValueError: [1e-10]}]
DELTA = [{ValueError: [-1e-300, 1, 1.1, math.nan, math.inf], **NOT_A_NUMBER}]
CLASSES = [
    {
        ValueError: [
            *([], 1, [[0, 1, 1, 0]], [[1], [1, 0]], [0, 1, 1, 2], [0, 1, 1, SECRET]),
            *([0, 1, 1, -1], np.array([[0, 1, 2, 1]], dtype=np.uint8).view(bool)[0]),
        ],
        TypeError: [
            *([0.0, 1.0, 1.0, 0.0], ["0", "1", "1", "0"], [SECRET_WORD, "b", "b", "b"], "1"),
            *(None, [None, 1, 1, 0], [1j], object(), pd.Series([0, 1, 1, None])),
            np.ma.array([0, 1, 1, 0], mask=[0, 0, 0, 1]),
        ],
    }
]
SCORES = [
    {
        ValueError: [
            *([], 0.5, [0.1, 0.2, 0.3], [[0.1, 0.9, 0.4, 0.3]], [[0.1], [0.2, 0.3]]),
            *([0.1, 0.2, math.nan, SECRET], [math.inf, 1, 2, SECRET], [-math.inf, 1, 2, 3]),
            *([0.1, 0.2, 0.3, 0.4, 0.5], np.zeros((4, 1)), np.float16([0, 1, 2, np.nan])),
        ],
        TypeError: [
            *(["a", "b", "c", SECRET_WORD], [None, 1, 2, 3], [1j, 2, 3, 4], object()),
            *([10**400, 1, 2, 3], np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1])),
        ],
    }
]
TWO_SCORES = [
    {ValueError: [[], [0.5], [[0.1, 0.2]], [math.nan, SECRET]], TypeError: SCORES[0][TypeError]}
]
TWO_CLASSES = [
    {ValueError: [[], [1], [[0, 1]], [0, SECRET]], TypeError: CLASSES[0][TypeError][:-2]}
]
PLAN = {
    "epsilon": EPSILON,
    "delta": DELTA,
    # Without a delta there is no Laplace noise.
    "noise": [NOT_A_WORD, NO_WORD, {ValueError: ["laplace"]}],
    "calibration": [NOT_A_WORD, NO_WORD],
}
BETWEEN_RELEASES = {
    **PLAN,
    "labels": CLASSES,
    "scores": SCORES,
    "guess": [NOT_A_COUNT, {ValueError: [5, 10**30]}],
}

WORKING_CALLS = {
    "auc": {**RECORDS, "ties": "half"},
    "average_precision": {**RECORDS, "ties": "grouped"},
    "auc_local_sensitivity": {"positives": 5, "negatives": 0},
    "auc_smooth_sensitivity": {"positives": 5, "negatives": 9, "beta": 0.1},
    "ap_local_sensitivity": {"positives": 5, "negatives": 9},
    "ap_smooth_sensitivity": {"positives": 5, "beta": 0.1},
    "cauchy_scale": {"epsilon": 1.0, "beta": 0.1, "calibration": "nissim"},
    "cauchy_epsilon": {"value": 0, "scale": 1, "other_value": 1.0, "other_scale": 2.0},
    "student_t_scale": {"epsilon": 1.0, "beta": 0.1, "degrees": 3},
    "student_t_epsilon": {
        "value": 0,
        "scale": 1,
        "other_value": 1.0,
        "other_scale": 2.0,
        "degrees": 3,
    },
    "laplace_scale": {"epsilon": 1.0, "delta": 1e-6, "beta": 0.01},
    "smooth_sensitivity": {"size": 5, "beta": 0.1, "metric": "auc"},
    "choose_noise": {"n": 4, **PLANNED, "metric": "auc"},
    "best_beta": {"epsilon": 1.0, "guess": 9, "metric": "auc"},
    "release_auc": {**RECORDS, **CHOSEN, "rng": 0},
    "release_average_precision": {**RECORDS, **CHOSEN, "rng": 0},
    "log_density": {"output": [0.0, 2.0], **RECORDS, **CHOSEN, "metric": "auc"},
    "metric_interval": {"release": RELEASED, "confidence": 0.9, "at_least": 2},
    "binormal_roc": {"auc": 0.8, "false_positive_rate": [0.0, 0.5]},
    "reidentify_label": {
        "known_labels": [0, 1],
        "known_scores": [0.1, 0.9],
        "published_auc": 0.5,
        "decimals": 2,
    },
}
REFUSED = {
    "auc": {
        "labels": [*CLASSES, {ValueError: [[0, 0, 0, 0], [1, 1, 1, 1]]}],
        "scores": SCORES,
        "ties": [NOT_A_WORD, NO_WORD, {ValueError: ["grouped"]}],
    },
    "average_precision": {
        "labels": [*CLASSES, {ValueError: [[0, 0, 0, 0]]}],
        "scores": SCORES,
        "ties": [NOT_A_WORD, NO_WORD, {ValueError: ["half"]}],
    },
    "auc_local_sensitivity": {"positives": [NOT_A_SIZE], "negatives": [NOT_A_SIZE]},
    "auc_smooth_sensitivity": {
        "positives": [NOT_A_SIZE],
        "negatives": [NOT_A_SIZE],
        "beta": [NOT_POSITIVE],
    },
    "ap_local_sensitivity": {
        "positives": [NOT_A_SIZE],
        "negatives": [{ValueError: [-1, 10**400], TypeError: [2.0, "2", True, [2]]}],
    },
    "ap_smooth_sensitivity": {"positives": [NOT_A_SIZE], "beta": [NOT_POSITIVE]},
    "cauchy_scale": {
        "epsilon": [*EPSILON, {ValueError: [0.5]}],
        "beta": [NOT_POSITIVE, {ValueError: [0.2, 1.0, 2.0]}],
        "calibration": [NOT_A_WORD, NO_WORD],
    },
    "cauchy_epsilon": {
        "value": [{ValueError: [math.nan, math.inf]}, NOT_A_NUMBER],
        "scale": [NOT_POSITIVE],
        "other_value": [{ValueError: [math.nan, math.inf]}, NOT_A_NUMBER],
        "other_scale": [NOT_POSITIVE],
    },
    "student_t_scale": {
        "epsilon": [*EPSILON, {ValueError: [0.3]}],
        "beta": [NOT_POSITIVE, {ValueError: [1 / 3, 1.0]}],
        "degrees": [NOT_A_COUNT, NO_WORD],
    },
    "student_t_epsilon": {
        "value": [{ValueError: [math.nan, math.inf]}, NOT_A_NUMBER],
        "scale": [NOT_POSITIVE],
        "other_value": [{ValueError: [math.nan, math.inf]}, NOT_A_NUMBER],
        "other_scale": [NOT_POSITIVE],
        "degrees": [NOT_A_COUNT, NO_WORD],
    },
    "laplace_scale": {
        "epsilon": EPSILON,
        "delta": [NOT_A_PROBABILITY],
        "beta": [NOT_POSITIVE, {ValueError: [0.1, 100.0]}],
    },
    "smooth_sensitivity": {
        "size": [NOT_A_SIZE],
        "beta": [NOT_POSITIVE],
        "metric": [NOT_A_WORD, NO_WORD],
    },
    "choose_noise": {
        **PLAN,
        "n": [{ValueError: [0, -1, 10**30], TypeError: [2.0, "2", None, True, [2]]}],
        "guess": [NOT_A_COUNT, {ValueError: [3, 10**30]}],
        "metric": [NOT_A_WORD, NO_WORD],
    },
    "best_beta": {
        "epsilon": EPSILON,
        "guess": [NOT_A_COUNT, NO_WORD],
        "metric": [NOT_A_WORD, NO_WORD],
    },
    "release_auc": {
        **BETWEEN_RELEASES,
        "guess": [*BETWEEN_RELEASES["guess"], {ValueError: [3]}],
        "ties": [NOT_A_WORD, NO_WORD, {ValueError: ["grouped"]}],
    },
    "release_average_precision": {
        **BETWEEN_RELEASES,
        "ties": [NOT_A_WORD, NO_WORD, {ValueError: ["half"]}],
    },
    "log_density": {
        **BETWEEN_RELEASES,
        "output": [
            {ValueError: [[math.nan], [math.inf], [[1.0], [1.0, 2.0]]]},
            {TypeError: [None, "1", [None], [1j], object()]},
        ],
        "ties": [NOT_A_WORD, {ValueError: ["grouped"]}],
        "metric": [NOT_A_WORD, NO_WORD],
    },
    "metric_interval": {
        "release": [{TypeError: [0.5, None, MATRIX, "release"]}],
        "confidence": [NOT_A_PROBABILITY],
        "at_least": [NOT_A_COUNT, NO_WORD, {ValueError: [3, 5]}],
    },
    "binormal_roc": {
        "auc": [NOT_A_SHARE],
        "false_positive_rate": [
            {ValueError: [[-0.1], [1.1, 0.5], math.nan, [[0.1], [0.1, 0.2]]]},
            {TypeError: [None, "1", [None], [1j], object()]},
        ],
    },
    "reidentify_label": {
        "known_labels": TWO_CLASSES,
        "known_scores": TWO_SCORES,
        "published_auc": [NOT_A_SHARE],
        "decimals": [{ValueError: [-1], TypeError: [2.0, "2", True, [2]]}],
    },
}

SIZE = [NOT_A_SIZE]
NOT_NUMBERS = {
    ValueError: [[math.nan], [[1.0], [1.0, 2.0]]],
    TypeError: [None, "1", [None], [1j], object(), {1.0}],
}
WORDS = [{ValueError: ["", " "], TypeError: [None, 1, ["noise"]]}]
WORKING_CALLS |= {
    "MetricNoise": {
        "metric": "auc",
        "family": "student-t",
        "degrees": 3,
        "epsilon": 1.0,
        "delta": 0.0,
        "calibration": "exact",
    },
    "MetricNoise.allowed_change": {"rate": 0.1},
    "MetricNoise.scale": {"size": 5},
    "MetricNoise.error": {"size": 5, "confidence": 0.9},
    "MetricNoise.log_density": {"apart": [0.0, 0.5], "size": 5},
    "MetricNoise.tail": {"apart": [0.0, 0.5], "size": 5},
    "MetricNoise.draw": {"size": 5, "rng": 0},
    "MetricRelease": {
        "value": 0.75,
        "epsilon": 1.0,
        "delta": 0.0,
        "mechanism": "Student t noise",
        "neighbours": "one record replaced",
        "n": 9,
        "noise": RELEASED.noise,
        "guess": 3,
    },
}
REFUSED |= {
    "MetricNoise": {
        "metric": [NOT_A_WORD, NO_WORD],
        "family": [NOT_A_WORD, NO_WORD],
        "degrees": [{ValueError: [0, 1, 1001, 10**30], TypeError: [2.0, "2", None, True]}],
        "epsilon": EPSILON,
        "delta": [*DELTA, {ValueError: [0.5]}],
        "calibration": [NOT_A_WORD, NO_WORD, {ValueError: ["nissim"]}],
    },
    "MetricNoise.allowed_change": {
        "rate": [{ValueError: [-1.0, math.nan, math.inf]}, NOT_A_NUMBER]
    },
    "MetricNoise.scale": {"size": SIZE},
    "MetricNoise.error": {"size": SIZE, "confidence": [NOT_A_PROBABILITY]},
    "MetricNoise.log_density": {"apart": [NOT_NUMBERS], "size": SIZE},
    "MetricNoise.tail": {"apart": [NOT_NUMBERS], "size": SIZE},
    "MetricNoise.draw": {"size": SIZE},
    "MetricRelease": {
        "value": [NOT_A_NUMBER],
        "epsilon": [NOT_POSITIVE],
        "delta": DELTA,
        "mechanism": WORDS,
        "neighbours": WORDS,
        "n": [{ValueError: [0, -1, 10**30], TypeError: [2.0, "2", None, True]}],
        "noise": [{TypeError: [None, "cauchy", 1.0]}],
        "guess": [{ValueError: [0, -1, 10**30], TypeError: [2.0, "2", True]}],
    },
}
