"""Fit image models, a whole ensemble of runs at once, as one batched model.

The runs of an ensemble share a seed: initial weights, the order of images and dropout masks are the
same, and only labels and risks differ. So two runs are compared on the same accidents, images are
read once for all, the first layer is a single large product, and a run in an ensemble is the
run that one gets alone. All random numbers are drawn on the CPU, so that a GPU sees the same ones.
"""

from dpnotes.training.ensemble import Fit, Risk, fit, predict
from dpnotes.training.features import patch_features
from dpnotes.training.networks import Builder, linear, reference_cnn, small_convnet
from dpnotes.training.schedule import Schedule

__all__ = [
    "Builder",
    "Fit",
    "Risk",
    "Schedule",
    "fit",
    "linear",
    "patch_features",
    "predict",
    "reference_cnn",
    "small_convnet",
]
