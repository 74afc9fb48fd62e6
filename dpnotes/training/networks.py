"""The networks of the book, each as many times as there are runs."""

from collections.abc import Callable

import torch
from torch import nn

from dpnotes._checks import check_integer
from dpnotes._layers import Convolution, Dropout, Images, Linear, PerRun
from dpnotes.training.schedule import check_kind

Builder = Callable[[int, torch.Generator], nn.Module]


def linear(features: int) -> Builder:
    """Return the builder of a linear model for every run.

    Parameters
    ----------
    features : int
        The length of an example, at least 1.

    Returns
    -------
    callable
        To be given to `fit`.

    Examples
    --------
    >>> linear(3)(5, torch.Generator().manual_seed(0))(torch.ones(2, 3)).shape
    torch.Size([5, 2, 1])
    """
    features = check_integer("features", features, low=1)

    def build(runs: int, generator: torch.Generator) -> nn.Module:
        runs = _check_builder(runs, generator)
        return Linear(runs, features, 1, generator)

    return build


def reference_cnn(runs: int, generator: torch.Generator) -> nn.Module:
    """Build the network of Charoenphakdee et al. (2019) for 32 x 32 colour images, once a run.

    Parameters
    ----------
    runs : int
        How many networks, at least 1.
    generator : torch.Generator
        Draws the initial weights, which all runs share, and later the dropout masks.

    Returns
    -------
    nn.Module
        Takes images (n, 32, 32, 3) of bytes, gives scores (runs, n, 1).

    Notes
    -----
    Two convolutions of 5 x 5 (18 and 48 filters), each with maxima of 2 x 2; then 800, 400 and 1
    units with rectifiers and dropout in between: 1.3 million weights a run.

    Examples
    --------
    >>> network = reference_cnn(2, torch.Generator().manual_seed(0))
    >>> network(torch.zeros(3, 32, 32, 3, dtype=torch.uint8)).shape
    torch.Size([2, 3, 1])
    """
    runs = _check_builder(runs, generator)
    return nn.Sequential(
        Images(),
        Convolution(runs, 3, 18, 5, generator, shared=True),
        nn.MaxPool2d(2),
        Convolution(runs, 18, 48, 5, generator),
        nn.MaxPool2d(2),
        PerRun(runs),
        *(Linear(runs, 1200, 800, generator), nn.ReLU(), Dropout(generator)),
        *(Linear(runs, 800, 400, generator), nn.ReLU(), Dropout(generator)),
        Linear(runs, 400, 1, generator),
    )


def small_convnet(runs: int, generator: torch.Generator) -> nn.Module:
    """Build a small modern network for 32 x 32 colour images, once a run.

    Parameters
    ----------
    runs : int
        How many networks, at least 1.
    generator : torch.Generator
        Draws the initial weights, which all runs share.

    Returns
    -------
    nn.Module
        Takes images (n, 32, 32, 3) of bytes, gives scores (runs, n, 1).

    Notes
    -----
    Three convolutions of 3 x 3 (16, 32 and 64 filters), each batch-normalised, rectified and halved
    by maxima of 2 x 2; then the mean over the image and a linear score: 24,000 weights a run.

    Examples
    --------
    >>> network = small_convnet(2, torch.Generator().manual_seed(0))
    >>> network(torch.zeros(3, 32, 32, 3, dtype=torch.uint8)).shape
    torch.Size([2, 3, 1])
    """
    runs = _check_builder(runs, generator)
    layers: list[nn.Module] = [Images()]
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        # Normalisation takes a bias away again, and Adam would let its gradient, which is nothing
        # but rounding, walk at random.
        options = {"padding": 1, "biased": False, "shared": inputs == 3}
        layers += [
            Convolution(runs, inputs, outputs, 3, generator, **options),
            *(nn.BatchNorm2d(runs * outputs), nn.ReLU(), nn.MaxPool2d(2)),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), PerRun(runs), Linear(runs, 64, 1, generator)
    )


def _check_builder(runs: int, generator: torch.Generator) -> int:
    check_kind("generator", generator, torch.Generator, "a torch generator")
    # A numpy integer of eight bits would overflow where it is multiplied.
    return check_integer("runs", runs, low=1)
