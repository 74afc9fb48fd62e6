"""Layers that hold one set of weights a run, so that many runs are one batched model.

All runs start from the same weights. Whoever builds a network of them gives a run its own channels
(`Convolution`), pulls the runs apart (`PerRun`) and ends in `Linear`.
"""

import torch
from torch import nn
from torch.nn import functional


class Images(nn.Module):
    """Bytes (n, height, width, channels) to numbers in [-1, 1], channels first but last in memory.

    Convolutions are quickest in this layout, on processors and on GPUs alike.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2).float() / 127.5 - 1


class Convolution(nn.Module):
    """One convolution a run, as groups of a single one; `shared` if all runs see one image."""

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
        bound = (inputs * size * size) ** -0.5
        weight = _uniform((outputs, inputs, size, size), bound, generator)
        self.weight = nn.Parameter(weight.repeat(runs, 1, 1, 1))
        self.bias = (
            nn.Parameter(_uniform((outputs,), bound, generator).repeat(runs)) if biased else None
        )
        self.padding, self.groups = padding, 1 if shared else runs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(
            x, self.weight, self.bias, padding=self.padding, groups=self.groups
        )


class PerRun(nn.Module):
    """Pull the runs out of the channels: (n, runs * c, h, w) to (runs, n, c * h * w)."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.runs = runs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(x), self.runs, -1).transpose(0, 1)


class Linear(nn.Module):
    """One linear layer a run; its input is (runs, n, inputs), or (n, inputs) shared by all."""

    def __init__(self, runs: int, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        weight = _uniform((inputs, outputs), inputs**-0.5, generator)
        self.weight = nn.Parameter(weight.repeat(runs, 1, 1))
        self.bias = nn.Parameter(
            _uniform((outputs,), inputs**-0.5, generator).repeat(runs, 1).unsqueeze(1)
        )

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


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> torch.Tensor:
    return (2 * torch.rand(shape, generator=generator) - 1) * bound
