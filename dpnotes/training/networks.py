"""The networks of the book, batched over runs, and their layers.

A layer holds one set of weights for each run, so that many runs are one batched model; all runs
start from the same weights. A network begins with layers that give each run its own channels
(`Convolution`), moves the runs to their own dimension (`PerRun`) and ends in `Linear`.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from dpnotes._checks import check_integer, require_kind

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
    """Build the network of Charoenphakdee et al. (2019) for 32 x 32 colour images, for every run.

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
    Two 5 x 5 convolutions (18 and 48 filters), each followed by 2 x 2 max pooling; then 800, 400
    and 1 units with ReLU and dropout in between: 1.3 million weights per run.

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
    """Build a small modern network for 32 x 32 colour images, for every run.

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
    Three 3 x 3 convolutions (16, 32 and 64 filters), each followed by batch normalisation, ReLU and
    2 x 2 max pooling; then the mean over the image and a linear score: 24,000 weights per run.

    Examples
    --------
    >>> network = small_convnet(2, torch.Generator().manual_seed(0))
    >>> network(torch.zeros(3, 32, 32, 3, dtype=torch.uint8)).shape
    torch.Size([2, 3, 1])
    """
    runs = _check_builder(runs, generator)
    layers: list[nn.Module] = [Images()]
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        # No bias, because batch normalisation removes it: its gradient would be rounding error
        # only, and Adam would turn that into a random walk.
        options = {"padding": 1, "biased": False, "shared": inputs == 3}
        layers += [
            Convolution(runs, inputs, outputs, 3, generator, **options),
            *(nn.BatchNorm2d(runs * outputs), nn.ReLU(), nn.MaxPool2d(2)),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), PerRun(runs), Linear(runs, 64, 1, generator)
    )


def _check_builder(runs: int, generator: torch.Generator) -> int:
    require_kind("generator", generator, torch.Generator, "a torch generator")
    # Return a Python int, because products with an 8-bit numpy integer would overflow.
    return check_integer("runs", runs, low=1)


class Images(nn.Module):
    """Bytes (n, height, width, channels) to numbers in [-1, 1], channels first but last in memory.

    Convolutions are fastest in this layout, on CPUs and on GPUs.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2).float() / 127.5 - 1


class Convolution(nn.Module):
    """One convolution per run, as a grouped convolution; `shared` if all runs have one input."""

    def __init__(
        self,
        runs: int,
        inputs: int,
        outputs: int,
        size: int,
        generator: torch.Generator,
        *,
        padding: int = 0,
        biased: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        seen = inputs * size * size
        self.weight = _draw_weights(runs, (outputs, inputs, size, size), seen, generator)
        self.bias = _draw_weights(runs, (outputs,), seen, generator) if biased else None
        self.padding, self.groups = padding, 1 if shared else runs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(
            x, self.weight, self.bias, padding=self.padding, groups=self.groups
        )


class PerRun(nn.Module):
    """Move the runs from the channels to the front: (n, runs * c, h, w) to (runs, n, c * h * w)."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.runs = runs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(x), self.runs, -1).transpose(0, 1)


class Linear(nn.Module):
    """One linear layer per run; its input is (runs, n, inputs), or (n, inputs) shared by all."""

    def __init__(self, runs: int, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = _draw_weights(runs, (1, inputs, outputs), inputs, generator)
        self.bias = _draw_weights(runs, (1, 1, outputs), inputs, generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 3:
            return torch.baddbmm(self.bias, x, self.weight)
        runs, _, outputs = self.weight.shape
        product = x @ self.weight.transpose(0, 1).flatten(1)
        return product.view(len(x), runs, outputs).transpose(0, 1) + self.bias


class Dropout(nn.Module):
    """Set half of the units to zero while training, the same ones in every run."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        kept = torch.randint(2, x.shape[1:], generator=self.generator, dtype=torch.uint8)
        return x * (2 * kept).to(x.device, x.dtype)


def _draw_weights(
    runs: int, shape: tuple[int, ...], inputs: int, generator: torch.Generator
) -> nn.Parameter:
    """Return uniform weights within 1 / sqrt(inputs), the same for every run."""
    weights = (2 * torch.rand(shape, generator=generator) - 1) * inputs**-0.5
    return nn.Parameter(torch.cat(runs * [weights]))
