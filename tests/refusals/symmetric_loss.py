"""What `dpnotes.symmetric_loss` refuses."""

import math

import numpy as np
import torch

from refusals._tables import SECRET

SCORES, LABELS = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1])


def hinge(margin):
    return (1 - margin).relu()


RISK = {"scores": SCORES, "labels": LABELS, "loss": hinge, "check": True}
MARGINS = [
    *("sigmoid_loss", "ramp_loss", "unhinged_loss", "hinge_loss"),
    *("logistic_loss", "square_loss", "savage_loss"),
]
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
NOT_A_FUNCTION = {TypeError: [None, 1.0, "hinge", [hinge]]}
NOT_A_FLAG = {TypeError: [None, 1, "yes", np.True_]}
NOT_A_PROBABILITY = {
    ValueError: [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf],
    TypeError: ["1", None, True, torch.tensor(0.5)],
}
NOT_A_NUMBER = {TypeError: ["1", None, True, [2.0], torch.tensor(2.0)]}
MARGIN = [NOT_A_TENSOR, NOT_FLOATS]
LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]])
CLASSES = {"logits": LOGITS, "labels": torch.tensor([2, 0])}
OF_CLASSES = [
    *("mean_absolute_error", "normalized_cross_entropy"),
    *("multiclass_unhinged_loss", "cross_entropy"),
]
REFUSED_CLASSES = {
    "logits": [
        NOT_A_TENSOR,
        NOT_FLOATS,
        {ValueError: [torch.tensor(1.0), torch.ones(2, 1), torch.ones(2, 0)]},
    ],
    "labels": [
        NOT_A_TENSOR,
        {
            ValueError: [
                *(torch.tensor([2, 3]), torch.tensor([-1, 0]), torch.tensor([0, SECRET])),
                *(torch.tensor([2]), torch.tensor([[2, 0]]), torch.tensor(2)),
            ],
            TypeError: [
                *(torch.tensor([2.0, 0.0]), torch.tensor([True, False]), torch.tensor([1j, 0])),
            ],
        },
    ],
}
REFUSED_RISK = {
    "scores": [NOT_A_TENSOR, NOT_FLOATS, NOT_SCORES],
    "labels": [NOT_A_TENSOR, NOT_LABELS],
    "loss": [NOT_A_FUNCTION],
    "check": [NOT_A_FLAG],
}

WORKING_CALLS = {
    **{name: {"margin": SCORES} for name in MARGINS},
    "barrier_hinge_loss": {"margin": SCORES, "b": 3.0, "r": 1.0},
    "corrected_logistic_loss": {"margin": SCORES, "keep_probability": 0.75},
    **dict.fromkeys(OF_CLASSES, CLASSES),
    "generalized_cross_entropy": {**CLASSES, "power": 0.5},
    "corrected_cross_entropy": {**CLASSES, "keep_probability": 0.6},
    "ber_risk": RISK,
    "auc_risk": RISK,
    "corruption_rates": {"positive_fraction": 0.5, "keep_probability": 0.75},
}
REFUSED = {
    **{name: {"margin": MARGIN} for name in MARGINS},
    "barrier_hinge_loss": {
        "margin": MARGIN,
        "b": [NOT_A_NUMBER, {ValueError: [1, 0.5, -3.0, math.nan, math.inf]}],
        "r": [NOT_A_NUMBER, {ValueError: [0, -1.0, math.nan, math.inf]}],
    },
    "corrected_logistic_loss": {"margin": MARGIN, "keep_probability": [NOT_A_PROBABILITY]},
    **dict.fromkeys(OF_CLASSES, REFUSED_CLASSES),
    "generalized_cross_entropy": {
        **REFUSED_CLASSES,
        "power": [NOT_A_NUMBER, {ValueError: [0, 0.0, -0.5, 1.01, math.nan, math.inf]}],
    },
    "corrected_cross_entropy": {**REFUSED_CLASSES, "keep_probability": [NOT_A_PROBABILITY]},
    "ber_risk": REFUSED_RISK,
    "auc_risk": REFUSED_RISK,
    "corruption_rates": {
        "positive_fraction": [NOT_A_PROBABILITY],
        "keep_probability": [NOT_A_PROBABILITY],
    },
}
