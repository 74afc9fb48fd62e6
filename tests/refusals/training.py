"""What `dpnotes.training` refuses."""

import math

import numpy as np
import torch
from torch.nn import functional

from dpnotes import training
from refusals._tables import SECRET

GENERATOR = torch.Generator()
IMAGES = np.arange(2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.uint8)


def mean_logistic(scores, labels):
    return functional.softplus(-labels * scores).mean(-1)


def hinge(margin):
    return (1 - margin).relu()


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
NOT_A_TENSOR = {TypeError: [None, 1.0, [1.0, 2.0, 3.0], np.ones(3), "1"]}
NOT_RUNS_OF_LABELS = {
    ValueError: [
        *(torch.ones(2, 2), torch.ones(1, 3), torch.ones(2), torch.ones(1, 2, 1)),
        *(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, SECRET]]), torch.tensor([[math.nan, 1]])),
        torch.tensor([[True, False]]),
    ]
}
NOT_A_FUNCTION = {TypeError: [None, 1.0, "hinge", [hinge]]}
NOT_A_COUNT = {ValueError: [0, -1], TypeError: [2.0, "2", None, True, torch.tensor(2)]}
NOT_A_GENERATOR = {TypeError: [None, 0, np.random.default_rng(0)]}
NOT_IMAGES = {
    ValueError: [IMAGES[0], IMAGES[:0], IMAGES[:, :, :0]],
    TypeError: [None, IMAGES.tolist(), IMAGES.astype(float), torch.from_numpy(IMAGES)],
}

WORKING_CALLS = {
    "fit": FIT,
    "predict": {"network": torch.nn.Flatten(1), "inputs": torch.ones(2, 3, 1), "batch_size": 2},
    "linear": {"features": 3},
    "reference_cnn": {"runs": 2, "generator": GENERATOR},
    "small_convnet": {"runs": 2, "generator": GENERATOR},
    "patch_features": PATCHES,
}
REFUSED = {
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
}

WORKING_CALLS["Schedule"] = {
    "epochs": 3,
    "batch_size": 2,
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "evaluate_after": (1, 2),
    "precision": "float32",
}
REFUSED["Schedule"] = {
    "epochs": [NOT_A_COUNT],
    "batch_size": [NOT_A_COUNT],
    "learning_rate": [{ValueError: [0, -1.0, math.nan, math.inf], TypeError: ["1", None, True]}],
    "weight_decay": [{ValueError: [-1.0, math.nan, math.inf], TypeError: ["1", None, True]}],
    "evaluate_after": [{ValueError: [(0,), (4,)], TypeError: [1, None, (1.0,), {1, 2}]}],
    "precision": [{ValueError: ["", "float16"], TypeError: [None, 32]}],
}
