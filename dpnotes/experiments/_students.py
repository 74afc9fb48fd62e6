"""Teachers and students of the experiment with PATE: networks that see images in their own way.

All teachers are one ensemble, and so are all students of a seed: see `dpnotes.training`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

from dpnotes import datasets, pate
from dpnotes.training import networks

CLASSES = 10
_MARGIN = 2  # pixels by which an image may move


@dataclass(frozen=True)
class TeacherPlan:
    """How teachers train: Adam, with a learning rate that rises and falls once."""

    teachers: int = 250
    widths: tuple[int, ...] = (8, 16, 32)
    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 0.01
    seed: int = 0


@dataclass(frozen=True)
class StudentPlan:
    """How students train: as teachers do, on `labelled` and `unlabelled` images a step."""

    widths: tuple[int, ...] = (16, 32, 64)
    steps: int = 1_000
    labelled: int = 32
    unlabelled: int = 64
    learning_rate: float = 0.01
    confidence: float = 0.95


TEACHERS = TeacherPlan()
STUDENT = StudentPlan()


def train_teachers(
    images: datasets.ImageData, plan: TeacherPlan, device: str = "cpu"
) -> np.ndarray:
    """Train all teachers as one ensemble, each on its own part, and let them label the tests.

    Parameters
    ----------
    images : ImageData
        Bytes (n, 28, 28) and labels in [0, 10).
    plan : TeacherPlan
        How many, and how they train.
    device : str
        Where, as torch has it.

    Returns
    -------
    ndarray of int64, shape (teachers, tests)
        The label that each teacher gives to each test image.

    Examples
    --------
    >>> train_teachers(datasets.load_mnist(), TEACHERS).shape  # doctest: +SKIP
    (250, 10000)
    """
    parts = pate.partition(len(images.x_train), plan.teachers, rng=plan.seed)
    each = min(map(len, parts))
    rows = np.stack([part[:each] for part in parts])
    x = _pixels(images.x_train[rows], device).transpose(0, 1)
    y = torch.from_numpy(images.y_train[rows].astype(np.int64)).to(device)
    generator = torch.Generator().manual_seed(plan.seed)
    network = _convnet(plan.teachers, plan.widths, generator, device)
    steps = each // plan.batch_size
    rate = _make_optimizer(network, plan.learning_rate, steps * plan.epochs)
    for _ in range(plan.epochs):
        order = torch.randperm(each, generator=generator).to(device)
        for batch in order[: steps * plan.batch_size].split(plan.batch_size):
            scores = network(_shift(x[batch], generator))
            _descend(_risks(scores, y[:, batch]).mean(1).sum(), rate)
    return _predict(network, images.x_test, plan.teachers, device)


def train_students(
    lessons: Sequence[tuple[np.ndarray, np.ndarray]],
    pool: np.ndarray,
    tests: np.ndarray,
    plan: StudentPlan,
    seed: int,
    device: str = "cpu",
) -> np.ndarray:
    """Train students as one ensemble, and let them label the tests.

    Parameters
    ----------
    lessons : sequence of (ndarray of uint8, ndarray of int)
        What is labelled for each student: images (n, 28, 28) and labels in [0, 10). A student
        without any learns nothing.
    pool : ndarray of uint8, shape (n, 28, 28)
        Public images without labels, for all.
    tests : ndarray of uint8, shape (m, 28, 28)
        Images to label.
    plan : StudentPlan
        How they train.
    seed : int
        Of initial weights, order and distortions: the same for every student.
    device : str
        Where, as torch has it.

    Returns
    -------
    ndarray of int64, shape (students, m)
        The label that each student gives to each test image.

    Examples
    --------
    >>> mnist = datasets.load_mnist()  # doctest: +SKIP
    >>> lesson = mnist.x_train[:100], mnist.y_train[:100]  # doctest: +SKIP
    >>> train_students([lesson], mnist.x_train, mnist.x_test, STUDENT, 0).shape  # doctest: +SKIP
    (1, 10000)
    """
    runs, generator = len(lessons), torch.Generator().manual_seed(seed)
    network = _convnet(runs, plan.widths, generator, device)
    rate = _make_optimizer(network, plan.learning_rate, plan.steps)
    known = [_as_lesson(*lesson, device) for lesson in lessons]
    unknown = _pixels(pool, device)
    for _ in range(plan.steps):
        x, y = _labelled_batch(known, plan.labelled, generator)
        rows = torch.randint(len(pool), (plan.unlabelled,), generator=generator)
        some = unknown[rows.to(device)]
        with torch.no_grad():
            weak = _shift(_for_all(some, runs), generator)
            belief, guess = network(weak).softmax(-1).max(-1)
        strong = _for_all(_distort(some, generator), runs)
        scores = network(_channels_last(torch.cat([_shift(x, generator), strong])))
        told, guessed = scores.split([plan.labelled, plan.unlabelled], dim=1)
        confident = _risks(guessed, guess) * (belief > plan.confidence)
        risk = _risks(told, y).mean(1) + confident.mean(1)
        _descend(risk.sum(), rate)
    return _predict(network, tests, runs, device)


# Networks, and what they see.


Lesson = tuple[torch.Tensor, torch.Tensor]


def _convnet(runs: int, widths: Sequence, generator: torch.Generator, device: str) -> nn.Module:
    """Build a network a run; it takes (n, runs, 28, 28) and gives scores (runs, n, 10)."""
    stages: list[nn.Module] = []
    for inputs, outputs in pairwise((1, *widths)):
        convolution = networks.Convolution(
            runs, inputs, outputs, 3, generator, padding=1, biased=False
        )
        # Maxima come first: what follows then has a quarter of the numbers to read.
        stages += [convolution, nn.MaxPool2d(2), nn.BatchNorm2d(runs * outputs), nn.ReLU()]
    side = 28 >> len(widths)
    scores = networks.Linear(runs, widths[-1] * side**2, CLASSES, generator)
    network = nn.Sequential(*stages, networks.PerRun(runs), scores)
    return network.to(device, memory_format=torch.channels_last)


def _make_optimizer(network: nn.Module, learning_rate: float, steps: int) -> OneCycleLR:
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
    return OneCycleLR(optimizer, learning_rate, total_steps=steps)


def _risks(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy (runs, n); that of label -1 is nothing."""
    flat = functional.cross_entropy(
        scores.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
    )
    return flat.view(labels.shape)


def _descend(risk: torch.Tensor, rate: OneCycleLR) -> None:
    # A run's weights enter its own risk only: the gradient of the sum is that of each.
    rate.optimizer.zero_grad()
    risk.backward()
    rate.optimizer.step()
    rate.step()


def _predict(network: nn.Module, images: np.ndarray, runs: int, device: str) -> np.ndarray:
    network.eval()
    # More at a time would fall out of a processor's cache, and be several times slower.
    size = max(1, 1250 // runs)
    with torch.no_grad():
        said = [
            network(_channels_last(_for_all(batch, runs))).argmax(-1)
            for batch in _pixels(images, device).split(size)
        ]
    return torch.cat(said, dim=1).cpu().numpy()


def _pixels(images: np.ndarray, device: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(images)).to(device).float() / 255


def _for_all(images: torch.Tensor, runs: int) -> torch.Tensor:
    """Show one image to all: (n, 28, 28) to (n, runs, 28, 28), without a copy."""
    return images[:, None].expand(-1, runs, -1, -1)


def _channels_last(images: torch.Tensor) -> torch.Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def _as_lesson(images: np.ndarray, labels: np.ndarray, device: str) -> Lesson:
    if len(labels) == 0:
        images, labels = np.zeros((1, 28, 28), np.uint8), np.array([-1])
    return _pixels(images, device), torch.from_numpy(labels.astype(np.int64)).to(device)


def _labelled_batch(lessons: Sequence[Lesson], size: int, generator: torch.Generator) -> Lesson:
    """Draw images (size, runs, 28, 28) and labels (runs, size), for each run from its lesson."""
    lots = torch.rand(size, generator=generator)
    picks = [(lots * len(y)).long().to(y.device) for _, y in lessons]
    x = [images[pick] for (images, _), pick in zip(lessons, picks, strict=True)]
    y = [labels[pick] for (_, labels), pick in zip(lessons, picks, strict=True)]
    return torch.stack(x, dim=1), torch.stack(y)


def _shift(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Move each image by up to two pixels either way, the same for all runs."""
    n, side = len(images), images.shape[-1]
    corners = torch.randint(2 * _MARGIN + 1, (n, 2, 1), generator=generator).to(images.device)
    rows, columns = (corners + torch.arange(side, device=images.device)).unbind(1)
    padded = functional.pad(images, (_MARGIN,) * 4)
    which = torch.arange(n, device=images.device)[:, None, None]
    # The runs come out last in memory, where convolutions want them.
    moved = padded[which, :, rows[:, :, None], columns[:, None, :]]
    return _channels_last(moved.permute(0, 3, 1, 2))


def _distort(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Turn, scale, shear and move images (n, 28, 28) at random, and blank a square of 8 x 8."""
    n, device = len(images), images.device

    def draw(most: float) -> torch.Tensor:
        return (2 * torch.rand(n, generator=generator) - 1) * most

    angle, scale, shear = draw(math.pi / 9), 1 + draw(0.15), draw(0.2)
    across, down = draw(0.14), draw(0.14)
    cosine, sine = scale * angle.cos(), scale * angle.sin()
    maps = torch.stack([cosine, shear - sine, across, sine, cosine, down], dim=1).view(n, 2, 3)
    shape = (n, 1, *images.shape[1:])
    grid = functional.affine_grid(maps.to(device), shape, align_corners=False)
    moved = functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]
    corners = torch.randint(-4, images.shape[-1] - 4, (n, 2, 1), generator=generator).to(device)
    beyond = torch.arange(images.shape[-1], device=device) - corners
    blank = (beyond >= 0) & (beyond < 8)
    return moved * ~(blank[:, 0, :, None] & blank[:, 1, None, :])
