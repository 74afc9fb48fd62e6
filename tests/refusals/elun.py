"""What `dpnotes.elun` refuses."""

import math

import numpy as np

from dpnotes import elun
from refusals._tables import SECRET, SECRET_WORD

ROWS, LABELS = [[1.0, 0.0], [0.5, -1.0]], [1, -1]
NOISE = {"dimension": 3, "scale": 0.5, "size": 2, "rng": 0}
NOT_A_NUMBER = {TypeError: ["1", None, True, np.True_, [1.0], 1j]}
NOT_POSITIVE = {ValueError: [0, -1.0, math.nan, math.inf, -math.inf, 10**400], **NOT_A_NUMBER}
OUT_OF_SIZE = {**NOT_POSITIVE, ValueError: [*NOT_POSITIVE[ValueError], 1e-51, 1e51]}
NOT_AN_INTEGER = {TypeError: [2.0, "2", None, True, [2]]}
NOT_A_COUNT = {ValueError: [0, -1], **NOT_AN_INTEGER}
NOT_A_SIZE = {ValueError: [-1, -(10**30)], TypeError: [2.0, "2", True, [2]]}
NOT_A_WORD = {ValueError: ["", "L2", "gauss"], TypeError: [None, 1, ["l2"], b"l2"]}
NOT_A_FLAG = {TypeError: [1, 0.0, None, "yes"]}
NOT_NUMBERS = {
    TypeError: [None, "1", [SECRET_WORD], [None, 1.0], [1j], object(), {"a": 1}],
    ValueError: [[math.nan, SECRET], [math.inf], [[1.0], [1.0, 2.0]]],
}
NOT_WEIGHTS = {ValueError: [[1.0], [0.6, 0.6], [1.5, -0.5], [[0.5, 0.5]], []]}
DRAWN = {"dimension": [NOT_A_COUNT], "scale": [NOT_POSITIVE], "size": [NOT_A_SIZE]}

WORKING_CALLS = {
    "sensitivity": {
        "lipschitz": 2.0,
        "regularization": 0.05,
        "n": 10,
        "gradient_tolerance": 1e-3,
    },
    "logistic_sensitivity": {
        "lipschitz": 2.0,
        "regularization": 0.05,
        "n": 10,
        "noise_scale": 0.5,
        "dimension": 3,
        "nodes": 5,
        "gradient_tolerance": 1e-3,
    },
    "l2_laplace_noise": NOISE,
    "coordinate_laplace_noise": NOISE,
    "log_density": {"output": [0.0, 1.0], "centre": [0.5, 0.5], "scale": 1.0, "noise": "l2"},
    "expected_logistic_loss": {"margin": [0.0, 1.0], "noise_scale": 0.5},
    "averaged_logistic_loss": {
        "margin": [0.0, 1.0],
        "shifts": [[1.0, -1.0], [2.0, -2.0]],
        "weights": [0.5, 0.5],
    },
    "projected_noise": {"dimension": 3, "nodes": 5},
    "uniform_mixture": {"dimension": 3, "nodes": 5},
    "clip_rows": {"features": ROWS, "lipschitz": 1.0, "bias": True},
    "minimize_loss": {
        "rows": ROWS,
        "labels": LABELS,
        "regularization": 0.1,
        "shifts": [[1.0, -1.0], [2.0, -2.0]],
        "half_widths": None,
        "weights": [0.5, 0.5],
        "gradient_tolerance": 1e-6,
    },
    "fit_many": {
        "models": [elun.PrivateLogisticRegression(1.0, random_state=0)],
        "X": ROWS,
        "y": [0, 1],
    },
}
REFUSED = {
    "sensitivity": {
        "lipschitz": [NOT_POSITIVE],
        "regularization": [NOT_POSITIVE],
        "n": [NOT_A_COUNT],
        "gradient_tolerance": [{ValueError: [-1e-300, math.nan, math.inf]}, NOT_A_NUMBER],
    },
    "logistic_sensitivity": {
        "lipschitz": [OUT_OF_SIZE],
        "regularization": [OUT_OF_SIZE],
        "n": [NOT_A_COUNT],
        "noise_scale": [{ValueError: [-1e-300, math.nan, math.inf]}, NOT_A_NUMBER],
        "dimension": [NOT_A_COUNT],
        "nodes": [NOT_A_COUNT, {ValueError: [101]}],
        "gradient_tolerance": [{ValueError: [-1e-300, math.nan, math.inf]}, NOT_A_NUMBER],
    },
    "l2_laplace_noise": DRAWN,
    "coordinate_laplace_noise": DRAWN,
    "log_density": {
        "output": [NOT_NUMBERS, {ValueError: [0.0, [1.0], [[1.0, 2.0, 3.0]], []]}],
        "centre": [NOT_NUMBERS, {ValueError: [0.0, [[1.0, 2.0]], []]}],
        "scale": [NOT_POSITIVE],
        "noise": [NOT_A_WORD],
    },
    "expected_logistic_loss": {
        "margin": [NOT_NUMBERS],
        "noise_scale": [NOT_NUMBERS, {ValueError: [-1.0, [0.5, -SECRET], [1.0, 1.0, 1.0]]}],
    },
    "averaged_logistic_loss": {
        "margin": [NOT_NUMBERS],
        "shifts": [NOT_NUMBERS, {ValueError: [1.0, [], [[], []], np.ones((3, 2))]}],
        "weights": [{TypeError: NOT_NUMBERS[TypeError][1:]}, NOT_WEIGHTS],
    },
    "projected_noise": {
        "dimension": [NOT_A_COUNT],
        "nodes": [NOT_A_COUNT, {ValueError: [101]}],
    },
    "uniform_mixture": {
        "dimension": [NOT_A_COUNT],
        "nodes": [NOT_A_COUNT, {ValueError: [101]}],
    },
    "clip_rows": {
        "features": [NOT_NUMBERS, {ValueError: [1.0, [1.0], [[[1.0]]]]}],
        "lipschitz": [OUT_OF_SIZE],
        "bias": [NOT_A_FLAG],
    },
    "minimize_loss": {
        "rows": [NOT_NUMBERS, {ValueError: [1.0, [1.0], [[]], np.zeros((0, 2))]}],
        "labels": [
            {
                ValueError: [[1], 1, [[1, -1]], [1, 0], [1, SECRET], [[1], [1, 2]]],
                TypeError: [[1.0, -1.0], [True, False], [SECRET_WORD, "b"], [None, 1]],
            }
        ],
        "regularization": [OUT_OF_SIZE],
        "shifts": [
            {TypeError: NOT_NUMBERS[TypeError][1:]},
            {ValueError: [1.0, [1.0], [[1.0, 2.0]], [[], []], [[math.nan], [1.0]]]},
        ],
        "half_widths": [{ValueError: [[[1.0, 1.0], [1.0, 1.0]]]}],
        "weights": [{TypeError: NOT_NUMBERS[TypeError][1:]}, NOT_WEIGHTS],
        "gradient_tolerance": [
            {ValueError: [0, -1.0, math.nan, math.inf, 1e-300], TypeError: ["1", True, [1.0]]}
        ],
    },
    "fit_many": {
        "models": [
            {TypeError: [[1], ["model"], [elun.PrivateLogisticRegression]]},
            {ValueError: [[elun.PrivateLogisticRegression(e, random_state=7) for e in (1, 2)]]},
        ],
        "X": [
            {
                TypeError: [[[SECRET_WORD], ["b"]], [[object()], [1.0]], [[10**400], [1]]],
                ValueError: [[[1.0], [1.0, 2.0]]],
            }
        ],
        "y": [{ValueError: [[0, 2], [SECRET, 1], [SECRET_WORD, "1"], [0.5, 1]]}],
    },
}

COUNT = [NOT_A_COUNT]
RECORDS = {
    "X": [
        {TypeError: [[[SECRET_WORD], ["b"]], [[object()], [1.0]], [[10**400], [1]]]},
        {ValueError: [[[1.0], [1.0, 2.0]], [1.0, 2.0], 1.0]},
    ],
    "y": [{ValueError: [[0, 2], [SECRET, 1], [SECRET_WORD, "1"], [0.5, 1]]}],
}


def estimator(**parameters):
    """Make a model and fit it: scikit-learn has parameters checked there, and not before."""
    return elun.PrivateLogisticRegression(**parameters).fit(ROWS, [0, 1])


MADE_BY = {"PrivateLogisticRegression": estimator}
WORKING_CALLS |= {
    "PrivateLogisticRegression": {
        "epsilon": 1.0,
        "objective": "elun",
        "regularization": 0.05,
        "lipschitz": 2.0,
        "draws": 5,
        "expectation": "auto",
        "classes": (0, 1),
        "multi_class": "softmax",
        "gradient_tolerance": None,
        "fit_intercept": True,
        "random_state": 0,
        "calibration": "sharp",
    },
    "PrivateLogisticRegression.fit": {"X": ROWS, "y": [0, 1]},
    "PrivateLogisticRegression.predict": {"X": ROWS},
    "PrivateLogisticRegression.predict_proba": {"X": ROWS},
    "PrivateLogisticRegression.decision_function": {"X": ROWS},
    "PrivateLogisticRegression.guarantee": {"n": 10, "features": 2},
}
REFUSED |= {
    "PrivateLogisticRegression": {
        "epsilon": [NOT_POSITIVE],
        "objective": [NOT_A_WORD],
        "regularization": [OUT_OF_SIZE | {TypeError: ["1", True, np.True_, [1.0], 1j]}],
        "lipschitz": [OUT_OF_SIZE],
        "draws": COUNT,
        "expectation": [NOT_A_WORD],
        "classes": [
            {
                ValueError: [(), (1,), (1, 1), [[0, 1]], (math.nan, 1.0), 1],
                TypeError: ["01", {0, 1}, {0: 1}, (True, 1), (0, None)],
            }
        ],
        "multi_class": [NOT_A_WORD],
        "gradient_tolerance": [
            {ValueError: [0, -1.0, math.nan, math.inf, 1e-300], TypeError: ["1", True, [1.0]]}
        ],
        "fit_intercept": [NOT_A_FLAG],
        "random_state": [{ValueError: [-1], TypeError: [2.0, "2", True, [2], np.array(2)]}],
        "calibration": [NOT_A_WORD],
    },
    "PrivateLogisticRegression.fit": RECORDS,
    "PrivateLogisticRegression.predict": {"X": RECORDS["X"]},
    "PrivateLogisticRegression.predict_proba": {"X": RECORDS["X"]},
    "PrivateLogisticRegression.decision_function": {"X": RECORDS["X"]},
    "PrivateLogisticRegression.guarantee": {"n": COUNT, "features": COUNT},
}
NOT_CALLED = {"Guarantee": "a model makes it, out of what was checked"}
