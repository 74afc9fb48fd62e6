"""Train an ensemble of image models as one batched model.

The runs of an ensemble share a seed: initial weights, the order of images and dropout masks are the
same, and only labels and risks differ. So runs are compared under the same randomness, each image
is read once for all runs, the first layer is a single large product, and a run in an ensemble
equals the run trained alone. Random numbers are drawn on the CPU, so that they are the same on a
GPU.
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
