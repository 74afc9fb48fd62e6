"""What `dpnotes.noisy_gradient_descent` refuses."""

import math

import numpy as np

from refusals._tables import (
    NOT_A_NUMBER,
    NOT_A_PROBABILITY,
    NOT_A_WORD,
    NOT_AN_INTEGER,
    OUT_OF_RANGE,
    SECRET,
    SECRET_WORD,
)

ROWS, LABELS = [[1.0, 0.0], [0.5, -1.0]], [1, 0]
NOT_A_NOISE = [{ValueError: [0, 0.0099, 1.1e6, -1.0, math.nan, math.inf, 10**400]}, NOT_A_NUMBER]
NOT_A_RATE = [{ValueError: [0, 9e-10, -0.1, 1.0001, 2, math.nan, math.inf]}, NOT_A_NUMBER]
NOT_A_SCALE = [{ValueError: [0, 9e-21, -1.0, 1.1e20, math.nan, math.inf, 10**400]}, NOT_A_NUMBER]
NOT_STEPS = [{ValueError: [0, -1, 10**6 + 1]}, NOT_AN_INTEGER]
NOT_A_TABLE = {
    TypeError: [None, "1", [[SECRET_WORD]], [[None, 1.0]], [[1j]], object(), {"a": 1}],
    ValueError: [
        *(1.0, [1.0, 2.0], [], [[]], np.zeros((0, 2)), [[[1.0, 2.0]]], [[1.0, 2.0], [1.0]]),
        *([[math.nan, SECRET], [0.0, 0.0]], [[math.inf, 0.0], [SECRET, 0.0]]),
        *([[1.1e100, 0.0], [0.0, SECRET]], [[-1.1e100, 0.0], [0.0, SECRET]]),
        np.array([[1.0, 0.0], [0.0, SECRET]], dtype=np.longdouble) * np.longdouble("1e400"),
    ],
}
NOT_LABELS = {
    ValueError: [[], 1, [1], [1, 0, 1], [[1, 0]], [[1], [0]], [1, 2], [-1, 1], [SECRET, 1]],
    TypeError: [None, "10", [1.0, 0.0], [SECRET_WORD, "b"], [None, 1], [1j, 0]],
}
NOT_WORDS = [{ValueError: ["", " "], TypeError: [None, 1, ["noise"]]}]
NEIGHBOURS = [NOT_A_WORD, {ValueError: ["replace", "add"]}]

DRAWN = {"noise": 1.0, "rate": 0.5, "clipping": 1.0, "step_size": 0.5}
SPENT = {"rate": 0.5, "steps": 3, "delta": 1e-5, "neighbours": "replaced"}
RECORDS = {"features": [NOT_A_TABLE], "labels": [NOT_LABELS]}
DRAWING = {
    "noise": NOT_A_NOISE,
    "rate": NOT_A_RATE,
    "clipping": NOT_A_SCALE,
    "step_size": NOT_A_SCALE,
}
SPENDING = {
    "rate": NOT_A_RATE,
    "steps": NOT_STEPS,
    "delta": [NOT_A_PROBABILITY],
    "neighbours": NEIGHBOURS,
}

WORKING_CALLS = {
    "fit": {"features": ROWS, "labels": LABELS, **DRAWN, "steps": 3, "delta": 1e-5, "rng": 0},
    "cost": {"noise": 1.0, **SPENT},
    "noise_for": {"epsilon": 1.0, **SPENT},
    "log_density": {"path": [[0.0, 0.0], [0.5, 0.5]], "features": ROWS, "labels": LABELS, **DRAWN},
    "shuffled_cost_at_least": {"noise": 1.0, "batches": 10, "delta": 1e-5},
    "DescentRelease": {
        "path": [[0.0, 0.0], [0.5, 0.5]],
        "epsilon": 1.0,
        "delta": 1e-5,
        "mechanism": "Gaussian noise",
        "neighbours": "one record replaced",
    },
}
REFUSED = {
    "fit": {**RECORDS, **DRAWING, "steps": NOT_STEPS, "delta": [NOT_A_PROBABILITY]},
    "cost": {"noise": NOT_A_NOISE, **SPENDING},
    "noise_for": {"epsilon": [OUT_OF_RANGE, NOT_A_NUMBER], **SPENDING},
    "log_density": {
        "path": [NOT_A_TABLE, {ValueError: [[[0.0, 0.0]], [[0.0], [1.0]], [[0.0] * 3] * 2]}],
        **RECORDS,
        **DRAWING,
    },
    "shuffled_cost_at_least": {
        "noise": NOT_A_NOISE,
        "batches": NOT_STEPS,
        "delta": [NOT_A_PROBABILITY],
    },
    "DescentRelease": {
        "path": [
            {
                TypeError: [None, "1", [["a"]], [[1j]], [[True]], object()],
                ValueError: [[], [[]], [1.0], 1.0, [[1.0], [1.0, 2.0]], [[[1.0]]]],
            }
        ],
        "epsilon": [OUT_OF_RANGE, NOT_A_NUMBER],
        "delta": [{ValueError: [-1e-300, 1.0, math.nan]}, NOT_A_NUMBER],
        "mechanism": NOT_WORDS,
        "neighbours": NOT_WORDS,
    },
}
