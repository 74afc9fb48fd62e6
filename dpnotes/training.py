"""Fit image models, a whole ensemble of runs at once, as one batched model.

The runs of an ensemble share a seed: initial weights, the order of images and dropout masks are the
same, and only labels and risks differ. So two runs are compared on the same accidents, images are
read once for all, the first layer is a single large product, and a run in an ensemble is the
run that one gets alone. All random numbers are drawn on the CPU, so that a GPU sees the same ones.
"""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpnotes._checks import check_choice, check_integer, check_real

Risk = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Builder = Callable[[int, torch.Generator], nn.Module]

_PRECISIONS = ("float32", "bfloat16")
# Patches from which whitening is learnt.
_PATCHES = 20_000


@dataclass(frozen=True)
class Schedule:
    """How long, and with which steps, Adam (its AMSGrad variant) trains.

    Parameters
    ----------
    epochs : int
        Passes over the training data, at least 1.
    batch_size : int
        Images a step. What is left over in an epoch waits for the next one, newly shuffled.
    learning_rate, weight_decay : float
        Of Adam; the rate is positive, the decay (added to the gradient) not negative.
    evaluate_after : tuple of int
        The epochs after which test scores are kept; always after the last one.
    precision : {"float32", "bfloat16"}
        The type in which layers multiply while training; weights, risks and test scores are in
        single precision.

    Raises
    ------
    ValueError, TypeError
        If a field is out of range or of the wrong kind.
    """

    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    evaluate_after: tuple[int, ...] = ()
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Check every field."""
        for name in ("epochs", "batch_size"):
            check_integer(name, getattr(self, name), low=1)
        rate, decay = self.learning_rate, self.weight_decay
        check_real("learning_rate", rate, low=0.0, low_open=True, allowed="a positive number")
        check_real("weight_decay", decay, low=0.0, allowed="a non-negative number")
        for epoch in self.evaluate_after:
            check_integer("evaluate_after", epoch, low=1, high=self.epochs)
        check_choice("precision", self.precision, _PRECISIONS)


class Fit(NamedTuple):
    """A trained ensemble.

    Attributes
    ----------
    network : nn.Module
        The network of all runs, in evaluation mode; it gives scores of shape (runs, n, 1).
    scores : dict of int to ndarray of float32, shape (runs, tests)
        Test scores after each evaluated epoch.
    """

    network: nn.Module
    scores: dict[int, np.ndarray]


def fit(
    build: Builder,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    risks: Sequence[Risk],
    test_inputs: torch.Tensor,
    schedule: Schedule,
    *,
    seed: int,
    names: Sequence[str] | None = None,
    checkpoint: str | os.PathLike | None = None,
    report: Callable[[str], None] | None = None,
) -> Fit:
    """Train an ensemble, one run for each row of labels, on the device that holds the inputs.

    Parameters
    ----------
    build : callable
        Makes the network from the number of runs and a generator, as `reference_cnn` does.
    inputs : Tensor
        Examples along the first dimension: images (n, height, width, channels) or features (n, d).
    labels : Tensor of floats in {-1, +1}, shape (runs, n)
        The labels that each run sees.
    risks : sequence of callables
        What each run minimises: a function of scores and labels, both (some runs, batch), that
        gives a risk for each. Neighbouring runs with equal risks are computed together.
    test_inputs : Tensor
        Examples to score, of the kind of `inputs`.
    schedule : Schedule
        How to train.
    seed : int
        Of initial weights, order and dropout: the same for every run.
    names : sequence of str, optional
        What errors call the runs; by default their numbers.
    checkpoint : path, optional
        Where to keep the state after each evaluation. If the file is there, training goes on from
        it; delete it to start anew.
    report : callable, optional
        Gets a line of progress after each epoch.

    Returns
    -------
    Fit
        The trained network and the test scores.

    Raises
    ------
    ValueError
        If the shapes of inputs, labels, risks and names do not fit together, a label is neither
        -1 nor +1, there are fewer inputs than a batch holds, the seed is out of range, or the
        checkpoint is of another training.
    TypeError
        If a parameter is of the wrong kind.
    FloatingPointError
        If a run's risk is no longer finite: a diverged run, or a batch without one of the classes.

    Examples
    --------
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    >>> logistic = lambda scores, labels: functional.softplus(-labels * scores).mean(-1)
    >>> schedule = Schedule(epochs=20, batch_size=4, learning_rate=0.1)
    >>> fit(linear(1), x, x.T.sign(), [logistic], x, schedule, seed=0).scores[20].round() > 0
    array([[False, False,  True,  True]])
    """
    _check_kinds(build, inputs, test_inputs, labels, risks, schedule, names, checkpoint, report)
    names = range(len(risks)) if names is None else names
    _check_runs(inputs, labels, risks, names, schedule)
    check_integer("seed", seed, low=0, high=2**63 - 1)
    generator = torch.Generator().manual_seed(seed)
    network = build(len(risks), generator).to(inputs.device, memory_format=torch.channels_last)
    groups = [(risk, len(list(runs))) for risk, runs in groupby(risks)]
    identity: dict[str, Any] = {}
    if checkpoint:
        tensors = {"labels": labels, "inputs": inputs, "test_inputs": test_inputs}
        identity = _identity(seed, schedule, names, tensors, network, groups)
    trainer = _Trainer(network, generator, schedule, identity)
    first = trainer.restore(checkpoint) if checkpoint and Path(checkpoint).exists() else 1
    kept = {*schedule.evaluate_after, schedule.epochs}
    for epoch in range(first, schedule.epochs + 1):
        began = time.perf_counter()
        _check_finite(names, trainer.run_epoch(inputs, labels, groups), epoch)
        if epoch in kept:
            trainer.scores[epoch] = predict(network, test_inputs)
            if checkpoint:
                trainer.save(checkpoint, epoch)
        if report:
            seconds = time.perf_counter() - began
            report(f"epoch {epoch}/{schedule.epochs}, {len(risks)} runs, {seconds:.1f} s")
    return Fit(network.eval(), trainer.scores)


def predict(network: nn.Module, inputs: torch.Tensor, *, batch_size: int = 500) -> np.ndarray:
    """Return the scores that every run gives to every example, in single precision.

    Parameters
    ----------
    network : nn.Module
        As `fit` trains it.
    inputs : Tensor
        Examples along the first dimension, on the device of the network.
    batch_size : int
        Examples at a time, at least 1.

    Returns
    -------
    ndarray of float32, shape (runs, n)
        Scores; positive ones say +1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> network = linear(1)(2, torch.Generator().manual_seed(0))
    >>> predict(network, torch.ones(3, 1)).shape
    (2, 3)
    """
    _check_kind("network", network, nn.Module, "a torch module")
    _check_kind("inputs", inputs, torch.Tensor, "a tensor")
    check_integer("batch_size", batch_size, low=1)
    network.eval()
    with torch.no_grad():
        scores = [network(batch).squeeze(-1) for batch in inputs.split(batch_size)]
    return torch.cat(scores, dim=1).cpu().numpy()


class _Trainer:
    """What changes while an ensemble is trained, and can be put aside and taken up again."""

    def __init__(
        self,
        network: nn.Module,
        generator: torch.Generator,
        schedule: Schedule,
        identity: dict[str, Any],
    ) -> None:
        self.network, self.generator, self.schedule = network, generator, schedule
        self.identity, self.scores = identity, dict[int, np.ndarray]()
        self.optimizer = torch.optim.Adam(
            network.parameters(),
            lr=schedule.learning_rate,
            weight_decay=schedule.weight_decay,
            amsgrad=True,
            fused=True,
        )

    def run_epoch(
        self, inputs: torch.Tensor, labels: torch.Tensor, groups: list[tuple[Risk, int]]
    ) -> np.ndarray:
        """Pass over the data once, and return each run's mean risk over the batches."""
        self.network.train()
        size = self.schedule.batch_size
        order = torch.randperm(len(inputs), generator=self.generator).to(inputs.device)
        batches = order[: len(order) // size * size].split(size)
        total = torch.zeros(len(labels), device=inputs.device)
        for batch in batches:
            with _autocast(inputs.device, self.schedule.precision):
                scores = self.network(inputs[batch]).squeeze(-1)
            risks = _risks_of(scores.float(), labels[:, batch], groups)
            self.optimizer.zero_grad()
            # A run's weights enter its own risk only: the gradient of the sum is that of each.
            risks.sum().backward()
            self.optimizer.step()
            total += risks.detach()
        return (total / len(batches)).cpu().numpy()

    def save(self, path: str | os.PathLike, epoch: int) -> None:
        """Write the state under its name only when it has been written to the end."""
        draft = Path(f"{path}.tmp")
        state = {
            "identity": self.identity,
            "epoch": epoch,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "scores": {epoch: torch.from_numpy(kept) for epoch, kept in self.scores.items()},
        }
        torch.save(state, draft)
        draft.replace(path)

    def restore(self, path: str | os.PathLike) -> int:
        """Take up a saved state, and return the epoch that comes next."""
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["identity"] != self.identity:
            raise ValueError(
                "checkpoint must be of the same runs, labels, seed, schedule, inputs, network and "
                f"risks, got {path}"
            )
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.scores = {epoch: kept.numpy() for epoch, kept in state["scores"].items()}
        return state["epoch"] + 1


def _risks_of(
    scores: torch.Tensor, labels: torch.Tensor, groups: list[tuple[Risk, int]]
) -> torch.Tensor:
    sizes = [size for _, size in groups]
    parts = zip(groups, scores.split(sizes), labels.split(sizes), strict=True)
    return torch.cat([risk(*part) for (risk, _), *part in parts])


def _autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def _identity(
    seed: int,
    schedule: Schedule,
    names: Sequence[str],
    tensors: dict[str, torch.Tensor],
    network: nn.Module,
    groups: list[tuple[Risk, int]],
) -> dict[str, Any]:
    """Return what a checkpoint must agree in; of the tensors, which may be private, digests.

    Functions cannot be compared, so risks are told apart by what they say of a few scores.
    """
    labels, runs = tensors["labels"], len(names)
    scores = torch.linspace(-60, 60, 8, device=labels.device).repeat(runs, 1)
    signs = torch.tensor([1, 1, -1, -1, 1, -1, 1, -1]).to(labels).repeat(runs, 1)
    shapes = [[name, *weights.shape] for name, weights in network.state_dict().items()]
    return {
        "seed": seed,
        **asdict(schedule),
        "names": list(names),
        **{name: _digest(tensor) for name, tensor in tensors.items()},
        "network": [str(network), shapes],
        "risks": [f"{risk:.5g}" for risk in _risks_of(scores, signs, groups).tolist()],
    }


def _digest(tensor: torch.Tensor) -> str:
    found = hashlib.sha256(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
    found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()


def _check_finite(names: Sequence[str], means: np.ndarray, epoch: int) -> None:
    for name, mean in zip(names, means, strict=True):
        if not np.isfinite(mean):
            raise FloatingPointError(
                f"the risk of run {name} is {mean} in epoch {epoch}: it diverged, or a batch "
                "lacks one of its classes"
            )


def _check_kinds(
    build: Builder,
    inputs: torch.Tensor,
    test_inputs: torch.Tensor,
    labels: torch.Tensor,
    risks: Sequence[Risk],
    schedule: Schedule,
    names: Sequence[str] | None,
    checkpoint: str | os.PathLike | None,
    report: Callable[[str], None] | None,
) -> None:
    if not callable(build):
        raise TypeError(f"build must be callable, got {type(build).__name__}")
    tensors = {"inputs": inputs, "test_inputs": test_inputs, "labels": labels}
    for name, value in tensors.items():
        _check_kind(name, value, torch.Tensor, "a tensor")
    _check_kind("risks", risks, Sequence, "a sequence of functions")
    _check_kind("schedule", schedule, Schedule, "a Schedule")
    _check_kind("names", names, Sequence | None, "a sequence of strings or None")
    _check_kind("checkpoint", checkpoint, str | os.PathLike | None, "a path or None")
    if report is not None and not callable(report):
        raise TypeError(f"report must be callable or None, got {type(report).__name__}")


def _check_runs(
    inputs: torch.Tensor,
    labels: torch.Tensor,
    risks: Sequence[Risk],
    names: Sequence[str],
    schedule: Schedule,
) -> None:
    if not risks or not all(map(callable, risks)):
        raise ValueError("risks must hold one function or more, and nothing else")
    if len(names) != len(risks):
        raise ValueError(f"names must be as many as risks, {len(risks)}, got {len(names)}")
    expected = (len(risks), len(inputs))
    if tuple(labels.shape) != expected:
        raise ValueError(
            f"labels must have a row for each of the risks and a column for each of the inputs, "
            f"{expected}, got {tuple(labels.shape)}"
        )
    if not bool(((labels == 1) | (labels == -1)).all()):
        raise ValueError("labels must be -1 or +1; a record is not")
    if len(inputs) < schedule.batch_size:
        raise ValueError(f"inputs must fill a batch of {schedule.batch_size}, got {len(inputs)}")


def _check_kind(name: str, value: object, kind: Any, words: str) -> None:  # noqa: ANN401
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got {type(value).__name__}")


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

    Raises
    ------
    ValueError, TypeError
        If the length is out of range or of the wrong kind.

    Examples
    --------
    >>> linear(3)(5, torch.Generator().manual_seed(0))(torch.ones(2, 3)).shape
    torch.Size([5, 2, 1])
    """
    check_integer("features", features, low=1)

    def build(runs: int, generator: torch.Generator) -> nn.Module:
        _check_builder(runs, generator)
        return _Linear(runs, features, 1, generator)

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

    Raises
    ------
    ValueError, TypeError
        If the number of runs is out of range, or a parameter is of the wrong kind.

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
    _check_builder(runs, generator)
    return nn.Sequential(
        _Images(),
        _Convolution(runs, 3, 18, 5, generator, shared=True),
        nn.MaxPool2d(2),
        _Convolution(runs, 18, 48, 5, generator),
        nn.MaxPool2d(2),
        _PerRun(runs),
        *(_Linear(runs, 1200, 800, generator), nn.ReLU(), _Dropout(generator)),
        *(_Linear(runs, 800, 400, generator), nn.ReLU(), _Dropout(generator)),
        _Linear(runs, 400, 1, generator),
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

    Raises
    ------
    ValueError, TypeError
        If the number of runs is out of range, or a parameter is of the wrong kind.

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
    _check_builder(runs, generator)
    layers: list[nn.Module] = [_Images()]
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        # Normalisation takes a bias away again, and Adam would let its gradient, which is nothing
        # but rounding, walk at random.
        options = {"padding": 1, "biased": False, "shared": inputs == 3}
        layers += [
            _Convolution(runs, inputs, outputs, 3, generator, **options),
            *(nn.BatchNorm2d(runs * outputs), nn.ReLU(), nn.MaxPool2d(2)),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), _PerRun(runs), _Linear(runs, 64, 1, generator)
    )


def _check_builder(runs: int, generator: torch.Generator) -> None:
    check_integer("runs", runs, low=1)
    _check_kind("generator", generator, torch.Generator, "a torch generator")


def patch_features(
    train: np.ndarray,
    test: np.ndarray,
    *,
    filters: int = 128,
    size: int = 6,
    stride: int = 3,
    rng: np.random.Generator | int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Describe images by how much they resemble random whitened patches, with nothing trained.

    Parameters
    ----------
    train : ndarray of uint8, shape (n, height, width, channels)
        Images from which the patches come, and on which features are standardised. No label is
        looked at.
    test : ndarray of uint8, shape (m, height, width, channels)
        More images to describe.
    filters, size, stride : int
        How many patches, up to 20,000; their side and the step between their positions, in pixels.
    rng : Generator, int or None
        Draws the patches, as in `numpy.random.default_rng`.

    Returns
    -------
    (ndarray, ndarray) of float32, shapes (n, 8 * filters) and (m, 8 * filters)
        For each patch, likeness and unlikeness averaged over each quarter of the image.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    After Coates, Ng and Lee (2011), An Analysis of Single-Layer Networks in Unsupervised Feature
    Learning.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(256, size=(50, 32, 32, 3), dtype=np.uint8)
    >>> [part.shape for part in patch_features(images, images[:7], filters=4, rng=0)]
    [(50, 32), (7, 32)]
    """
    _check_images("train", train)
    _check_images("test", test)
    if test.shape[1:] != train.shape[1:]:
        raise ValueError(f"test must have images of {train.shape[1:]}, got {test.shape[1:]}")
    check_integer("filters", filters, low=1, high=_PATCHES)
    check_integer("size", size, low=1, high=min(train.shape[1:3]))
    check_integer("stride", stride, low=1)
    weights, offset = _whitened_patches(train, filters, size, np.random.default_rng(rng))
    known, unknown = (_responses(part, weights, offset, stride) for part in (train, test))
    mean, deviation = known.mean(0), known.std(0) + 1e-6
    return ((known - mean) / deviation).numpy(), ((unknown - mean) / deviation).numpy()


def _check_images(name: str, images: np.ndarray) -> None:
    allowed = "a non-empty array of bytes (n, height, width, channels)"
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise TypeError(f"{name} must be {allowed}")
    if images.ndim != 4 or images.size == 0:
        raise ValueError(f"{name} must be {allowed}, got shape {images.shape}")


def _whitened_patches(
    images: np.ndarray, filters: int, size: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return filters (filters, channels, size, size), and what to add to their responses."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    where = [rng.integers(extent, size=_PATCHES) for extent in windows.shape[:3]]
    patches = windows[tuple(where)].reshape(_PATCHES, -1) / 255.0
    mean = patches.mean(0)
    variances, directions = np.linalg.eigh(np.cov(patches.T))
    whiten = directions / np.sqrt(variances + 0.1 * variances.mean()) @ directions.T
    chosen = (patches[:filters] - mean) @ whiten
    weights = chosen / np.linalg.norm(chosen, axis=1, keepdims=True) @ whiten
    shape = (filters, images.shape[-1], size, size)
    return (
        torch.tensor(weights, dtype=torch.float32).view(shape),
        torch.tensor(-weights @ mean, dtype=torch.float32),
    )


def _responses(
    images: np.ndarray, weights: torch.Tensor, offset: torch.Tensor, stride: int
) -> torch.Tensor:
    pooled = []
    for batch in torch.from_numpy(images).split(500):
        likeness = functional.conv2d(
            batch.permute(0, 3, 1, 2).float() / 255, weights, offset, stride
        )
        both = torch.cat([likeness, -likeness], dim=1).relu()
        pooled.append(functional.adaptive_avg_pool2d(both, 2).flatten(1))
    return torch.cat(pooled)


class _Images(nn.Module):
    """Bytes (n, height, width, channels) to numbers in [-1, 1], channels first but last in memory.

    Convolutions are quickest in this layout, on processors and on GPUs alike.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2).float() / 127.5 - 1


class _Convolution(nn.Module):
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


class _PerRun(nn.Module):
    """Pull the runs out of the channels: (n, runs * c, h, w) to (runs, n, c * h * w)."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.runs = runs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(x), self.runs, -1).transpose(0, 1)


class _Linear(nn.Module):
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


class _Dropout(nn.Module):
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
