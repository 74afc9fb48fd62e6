"""What the modules that work on tensors refuse; `test_checks` goes through it."""

import math

import numpy as np
import torch
from torch.nn import functional

from dpnotes import symmetric_loss, training

SECRET = 31_337
GENERATOR = torch.Generator()
IMAGES = np.arange(2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.uint8)
SCORES, LABELS = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1])


def mean_logistic(scores, labels):
    return functional.softplus(-labels * scores).mean(-1)


def hinge(margin):
    return (1 - margin).relu()


RISK = {"scores": SCORES, "labels": LABELS, "loss": hinge, "check": True}
FIT = {
    "build": training.linear(1),
    "inputs": torch.tensor([[-1.0], [1.0]]),
    "labels": torch.tensor([[-1.0, 1.0]]),
    "risks": [mean_logistic],
    "test_inputs": torch.tensor([[0.5]]),
    "schedule": training.Schedule(epochs=1, batch_size=2),
    "seed": 0,
    "names": ["logistic"],
    "checkpoint": None,
    "report": None,
}
PATCHES = {"train": IMAGES, "test": IMAGES, "filters": 2, "size": 3, "stride": 3, "rng": 0}
MARGINS = [
    *("sigmoid_loss", "ramp_loss", "unhinged_loss", "hinge_loss"),
    *("logistic_loss", "square_loss", "savage_loss"),
]

WORKING_CALLS = {
    symmetric_loss: {
        **{name: {"margin": SCORES} for name in MARGINS},
        "barrier_hinge_loss": {"margin": SCORES, "b": 3.0, "r": 1.0},
        "corrected_logistic_loss": {"margin": SCORES, "keep_probability": 0.75},
        "ber_risk": RISK,
        "auc_risk": RISK,
        "corruption_rates": {"positive_fraction": 0.5, "keep_probability": 0.75},
    },
    training: {
        "fit": FIT,
        "predict": {"network": torch.nn.Flatten(1), "inputs": torch.ones(2, 3, 1), "batch_size": 2},
        "linear": {"features": 3},
        "reference_cnn": {"runs": 2, "generator": GENERATOR},
        "small_convnet": {"runs": 2, "generator": GENERATOR},
        "patch_features": PATCHES,
    },
}

NOT_A_TENSOR = {TypeError: [None, 1.0, [1.0, 2.0, 3.0], np.ones(3), "1"]}
NOT_FLOATS = {TypeError: [torch.tensor([1, 2, 3]), torch.tensor([True]), torch.tensor([1j])]}
NOT_SCORES = {
    ValueError: [torch.tensor(1.0), torch.ones(1, 1, 3)],
    TypeError: [SCORES.half(), SCORES.bfloat16()],
}
NOT_LABELS = {
    ValueError: [
        *(torch.tensor([1, -1]), torch.tensor([[1, 1, -1]]), torch.tensor([1, -1, 0])),
        *(torch.tensor([1, -1, SECRET]), torch.tensor([1.0, -1.0, math.nan])),
        *(torch.tensor([1, 1, 1]), torch.tensor([-1, -1, -1])),
        torch.tensor([1, 255, 1], dtype=torch.uint8),
    ],
    TypeError: [torch.tensor([True, False, True]), torch.tensor([1j, 1, -1])],
}
NOT_RUNS_OF_LABELS = {
    ValueError: [
        *(torch.ones(2, 2), torch.ones(1, 3), torch.ones(2), torch.ones(1, 2, 1)),
        *(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, SECRET]]), torch.tensor([[math.nan, 1]])),
        torch.tensor([[True, False]]),
    ]
}
NOT_A_FUNCTION = {TypeError: [None, 1.0, "hinge", [hinge]]}
NOT_A_FLAG = {TypeError: [None, 1, "yes", np.True_]}
NOT_A_PROBABILITY = {
    ValueError: [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf],
    TypeError: ["1", None, True, torch.tensor(0.5)],
}
NOT_A_NUMBER = {TypeError: ["1", None, True, [2.0], torch.tensor(2.0)]}
NOT_A_COUNT = {ValueError: [0, -1], TypeError: [2.0, "2", None, True, torch.tensor(2)]}
NOT_A_GENERATOR = {TypeError: [None, 0, np.random.default_rng(0)]}
NOT_IMAGES = {
    ValueError: [IMAGES[0], IMAGES[:0], IMAGES[:, :, :0]],
    TypeError: [None, IMAGES.tolist(), IMAGES.astype(float), torch.from_numpy(IMAGES)],
}

MARGIN = [NOT_A_TENSOR, NOT_FLOATS]
REFUSED_RISK = {
    "scores": [NOT_A_TENSOR, NOT_FLOATS, NOT_SCORES],
    "labels": [NOT_A_TENSOR, NOT_LABELS],
    "loss": [NOT_A_FUNCTION],
    "check": [NOT_A_FLAG],
}
REFUSED = {
    symmetric_loss: {
        **{name: {"margin": MARGIN} for name in MARGINS},
        "barrier_hinge_loss": {
            "margin": MARGIN,
            "b": [NOT_A_NUMBER, {ValueError: [1, 0.5, -3.0, math.nan, math.inf]}],
            "r": [NOT_A_NUMBER, {ValueError: [0, -1.0, math.nan, math.inf]}],
        },
        "corrected_logistic_loss": {"margin": MARGIN, "keep_probability": [NOT_A_PROBABILITY]},
        "ber_risk": REFUSED_RISK,
        "auc_risk": REFUSED_RISK,
        "corruption_rates": {
            "positive_fraction": [NOT_A_PROBABILITY],
            "keep_probability": [NOT_A_PROBABILITY],
        },
    },
    training: {
        "fit": {
            "build": [NOT_A_FUNCTION],
            "inputs": [NOT_A_TENSOR],
            "labels": [NOT_A_TENSOR, NOT_RUNS_OF_LABELS],
            "risks": [{TypeError: [None, 1, mean_logistic], ValueError: [[], [None], ["hinge"]]}],
            "test_inputs": [NOT_A_TENSOR],
            "schedule": [{TypeError: [None, 5, {"epochs": 1}]}],
            "seed": [{ValueError: [-1, 2**63]}, {TypeError: [2.0, "2", None, True]}],
            "names": [{TypeError: [1, object()], ValueError: [[], ["a", "b"]]}],
            "checkpoint": [{TypeError: [1, ["a"], object()]}],
            "report": [{TypeError: [1, "print"]}],
        },
        "predict": {
            "network": [{TypeError: [None, hinge]}],
            "inputs": [NOT_A_TENSOR],
            "batch_size": [NOT_A_COUNT],
        },
        "linear": {"features": [NOT_A_COUNT]},
        "reference_cnn": {"runs": [NOT_A_COUNT], "generator": [NOT_A_GENERATOR]},
        "small_convnet": {"runs": [NOT_A_COUNT], "generator": [NOT_A_GENERATOR]},
        "patch_features": {
            "train": [NOT_IMAGES],
            "test": [NOT_IMAGES, {ValueError: [IMAGES[:, :5], IMAGES[..., :1]]}],
            "filters": [NOT_A_COUNT, {ValueError: [20_001]}],
            "size": [NOT_A_COUNT, {ValueError: [7]}],
            "stride": [NOT_A_COUNT],
        },
    },
}
