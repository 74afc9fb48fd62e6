"""From 250 teachers to a private student on MNIST: votes, noise, cost and accuracy.

The whole grid is one command, and a cut of it that two processor cores can do is another:

    python -m dpnotes.experiments.pate --device cuda --out pate.json
    python -m dpnotes.experiments.pate --small --out pate.json

*Teachers.* The 60,000 training images are the private data. Each of 250 teachers learns from 240 of
them that no other teacher sees; all are one ensemble, a small convolutional network each. They vote
on the 10,000 test images. The first 9,000 are the public pool, whose labels nobody knows; the last
1,000 are the test of the student, as in the papers (Papernot et al., 2017, 2018).

*Answers.* A seed shuffles the pool, and queries are the first images of it. Each setting answers
them in its own way, and every answer is drawn by the mechanisms of `dpnotes.pate`.

*Students.* A student sees the pool and the answers, and nothing else that is private. It learns
after FixMatch (Sohn et al., 2020): what it believes of a shifted image, when it is confident, is
what it has to say of the same image turned, sheared, scaled and with a square cut out. All settings
of one seed are one ensemble, with the same initial weights, order and distortions. Two kinds of
students show what privacy takes: "plurality" learns from votes without noise, "private data" from
the 60,000 images themselves.

What was chosen after looking: how teachers and students train was settled by accuracy on the pool,
with its true labels, in a few trials, and by the time that two cores have; the cost of that choice
is in no epsilon. The student's test images decided nothing.

A *unit* is one seed. The file grows unit by unit, and a unit that it holds is not measured again.
Votes are kept beside it (``--votes``), so that teachers are trained once. ``--part 2/5`` measures
every fifth seed, from the second, and wants the votes of the first part; ``--merge FILES`` joins
the files of parts. The costs of Laplace noise need dp-accounting: where it is missing, records
lack their costs until the same command runs, on the same files, where it is not. ``--costs``
computes the costs of all records in a file anew, after the accounting has improved, and trains
nothing: those that are fixed in advance from the settings, and with ``--votes`` those of the votes
too, which must be the file's. The file is JSON:

    {"experiment": "pate",
     "cut": null, or in words what was left out of the whole grid,
     "data": in words,
     "setup": {"teachers": {...}, "student": {...}, "pool": 9000, "delta": 1e-5},
     "teachers": {"number", "images_each", "votes_sha256",
                  "accuracy": {"mean", "lowest", "highest"} of one teacher on all test images,
                  "plurality_accuracy": {"pool", "test"},
                  "agreement": [20 counts of pool images, by the winner's share of the votes],
                  "provenance": {"commit", "date", "device", "threads", ..., "seconds"}},
     "units": [{"seed": 0, "provenance": {...}}, ...],
     "records": [{
        "setting": "lnmax, scale 20", "mechanism", "queries", "scale": of the noise on the counts,
        "threshold", "sigma_threshold", "most_answers": where answering stops, "seed",
        "asked": queries before it stopped, "answered",
        "label_accuracy": share of answers that are true, "student_accuracy",
        "epsilon": whatever the votes, fixed in advance; null without privacy,
        "epsilon_data_dependent": of these votes and answers, itself a secret, by the accounting of
        when votes were last at hand; null likewise,
        "order": the Rényi order at which the latter was found}, ...]}
"""

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpnotes import datasets, pate
from dpnotes._checks import check_choice
from dpnotes.experiments import _runs
from dpnotes.training import layers

DATA = (
    "MNIST: 60,000 private training images; of the test images the first 9,000 are the public "
    "pool, and the last 1,000 test the student"
)
DELTA = 1e-5
MECHANISMS = ("private data", "plurality", "lnmax", "confident gnmax")

_CLASSES = 10
_TESTS = 1_000
_MARGIN = 2  # pixels by which an image may move
_BINS = 20
_ROWS = ('{"seed":', '{"setting":')


class Setting(NamedTuple):
    """One way to answer queries.

    Attributes
    ----------
    name : str
        What tables call it.
    mechanism : {"private data", "plurality", "lnmax", "confident gnmax"}
        How answers are had.
    queries : int
        How many images of the pool are asked about; 0 for private data, where none is.
    scale : float, optional
        Of the noise on the counts: 1 / gamma, or the standard deviation of GNMax.
    threshold, sigma_threshold : float, optional
        Of confident GNMax.
    most_answers : int, optional
        Answering stops with so many answers.
    """

    name: str
    mechanism: str
    queries: int
    scale: float | None = None
    threshold: float | None = None
    sigma_threshold: float | None = None
    most_answers: int | None = None


# Scale 20 with 100 queries is the first paper's, (200, 150, 40) with 640 the second's, and 286 the
# number of answers that the second reports.
SETTINGS = (
    Setting("private data", "private data", 0),
    Setting("plurality, 100 queries", "plurality", 100),
    Setting("plurality, 640 queries", "plurality", 640),
    *(Setting(f"lnmax, scale {s}", "lnmax", 100, float(s)) for s in (10, 20, 40, 80)),
    Setting("confident gnmax", "confident gnmax", 640, 40.0, 200.0, 150.0),
    Setting("confident gnmax, 286 answers", "confident gnmax", 640, 40.0, 200.0, 150.0, 286),
    Setting("confident gnmax, twice the noise", "confident gnmax", 640, 80.0, 200.0, 300.0, 286),
)
SEEDS = 10
SMALL_SEEDS = 4
CUT = f"What two processor cores do: all settings with the first {SMALL_SEEDS} seeds of {SEEDS}."


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


class Answers(NamedTuple):
    """What one setting answered: rows of the pool that were asked, and labels, -1 for none."""

    rows: np.ndarray
    labels: np.ndarray


class Teaching(NamedTuple):
    """What teachers did: votes (10,000, 10), and what the file says of them."""

    votes: np.ndarray
    summary: dict[str, Any]


def ask(setting: Setting, votes: np.ndarray, seed: int) -> Answers:
    """Put the queries of a setting to the teachers.

    Parameters
    ----------
    setting : Setting
        How to answer; of private data nothing is asked.
    votes : ndarray of int64, shape (pool, classes)
        What the teachers would vote on each image of the pool.
    seed : int
        Of the queries, which are the same for every setting, and of the noise.

    Returns
    -------
    Answers
        The queries that were put, and their answers.

    Raises
    ------
    ValueError
        If there is no such mechanism.

    Examples
    --------
    >>> votes = np.array([[250, 0], [0, 250], [130, 120]])
    >>> ask(Setting("all", "plurality", 3), votes, seed=0)
    Answers(rows=array([2, 0, 1]), labels=array([0, 0, 1]))
    """
    check_choice("setting.mechanism", setting.mechanism, MECHANISMS)
    rng = np.random.default_rng([seed, 1])
    rows = np.random.default_rng([seed, 0]).permutation(len(votes))[: setting.queries]
    if setting.scale is None:
        return Answers(rows, votes[rows].argmax(axis=1))
    labels = mechanism_of(setting).answer(votes[rows], rng=rng)
    most = math.inf if setting.most_answers is None else setting.most_answers
    # A query is put only while fewer answers than that were given.
    asked = int(np.sum(np.cumsum(labels >= 0) - (labels >= 0) < most))
    return Answers(rows[:asked], labels[:asked])


def mechanism_of(setting: Setting) -> pate.LNMax | pate.ConfidentGNMax:
    """Return what answers the queries of a setting with noise.

    Parameters
    ----------
    setting : Setting
        One with a scale.

    Returns
    -------
    LNMax or ConfidentGNMax
        The mechanism.

    Raises
    ------
    ValueError, TypeError
        If there is no noise, or its parameters are out of range.

    Examples
    --------
    >>> mechanism_of(Setting("paper", "lnmax", 100, 20.0))
    LNMax(gamma=0.05)
    """
    if setting.mechanism == "lnmax":
        return pate.LNMax(1 / setting.scale)
    return pate.ConfidentGNMax(setting.threshold, setting.sigma_threshold, setting.scale)


def fixed_cost(setting: Setting) -> float | None:
    """Return what a setting costs whatever the votes, at a delta of 1e-5.

    Parameters
    ----------
    setting : Setting
        How queries are answered.

    Returns
    -------
    float or None
        Epsilon, to four digits after the point; None without privacy.

    Raises
    ------
    ModuleNotFoundError
        If dp-accounting is not installed, which Laplace noise needs.

    Notes
    -----
    For LNMax an upper bound; for confident GNMax the cost of the noisy counts, with as many answers
    as the setting allows: all queries, where it does not say.

    Examples
    --------
    >>> fixed_cost(Setting("paper", "lnmax", 100, 20.0))
    2.8934
    """
    if setting.scale is None:
        return None
    ask = mechanism_of(setting)
    return round(float(ask.cost(setting.queries, DELTA, answers=setting.most_answers)), 4)


def costs(setting: Setting, votes: np.ndarray, answers: Answers) -> dict[str, float | None]:
    """Return what answering cost, as the records have it.

    Parameters
    ----------
    setting : Setting
        How queries were answered.
    votes : ndarray of int64, shape (pool, classes)
        The votes.
    answers : Answers
        What `ask` returned.

    Returns
    -------
    dict
        "epsilon", "epsilon_data_dependent" and "order", at a delta of 1e-5; None without privacy.

    Notes
    -----
    The first is `fixed_cost`. The second has the default orders and conversion.

    Examples
    --------
    >>> votes = np.array([[250, 0]] * 100)
    >>> setting = Setting("paper", "lnmax", 100, 20.0)
    >>> costs(setting, votes, ask(setting, votes, seed=0))["epsilon"]
    2.8934
    """
    if setting.scale is None:
        return {"epsilon": None, "epsilon_data_dependent": None, "order": None}
    answered = answers.labels >= 0 if setting.mechanism == "confident gnmax" else None
    found = mechanism_of(setting).secret_cost(votes[answers.rows], DELTA, answered=answered)
    return {
        "epsilon": fixed_cost(setting),
        "epsilon_data_dependent": round(found.epsilon, 4),
        "order": found.order,
    }


def train_teachers(
    images: datasets.ImageData, plan: TeacherPlan = TEACHERS, *, device: str = "cpu"
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
    >>> train_teachers(datasets.load_mnist()).shape  # doctest: +SKIP
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
    optimizer, rate = _optimizer(network, plan.learning_rate, steps * plan.epochs)
    for epoch in range(1, plan.epochs + 1):
        began = time.perf_counter()
        order = torch.randperm(each, generator=generator).to(device)
        for batch in order[: steps * plan.batch_size].split(plan.batch_size):
            scores = network(_shift(x[batch], generator))
            _descend(_risks(scores, y[:, batch]).mean(1).sum(), optimizer, rate)
        seconds = time.perf_counter() - began
        _runs.report("teachers", f"epoch {epoch}/{plan.epochs}, {seconds:.1f} s")
    return _predict(network, images.x_test, plan.teachers, device)


def train_students(
    lessons: Sequence[tuple[np.ndarray, np.ndarray]],
    pool: np.ndarray,
    tests: np.ndarray,
    plan: StudentPlan = STUDENT,
    *,
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
    >>> train_students([lesson], mnist.x_train, mnist.x_test, seed=0).shape  # doctest: +SKIP
    (1, 10000)
    """
    runs, generator = len(lessons), torch.Generator().manual_seed(seed)
    network = _convnet(runs, plan.widths, generator, device)
    optimizer, rate = _optimizer(network, plan.learning_rate, plan.steps)
    known = [_as_lesson(*lesson, device) for lesson in lessons]
    unknown = _pixels(pool, device)
    began = time.perf_counter()
    for step in range(1, plan.steps + 1):
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
        _descend(risk.sum(), optimizer, rate)
        if step % 100 == 0 or step == plan.steps:
            seconds = time.perf_counter() - began
            _runs.report(f"seed {seed}", f"step {step}/{plan.steps}, {seconds:.1f} s")
    return _predict(network, tests, runs, device)


def measure(
    images: datasets.ImageData,
    votes: np.ndarray,
    settings: Sequence[Setting],
    seed: int,
    *,
    plan: StudentPlan = STUDENT,
    device: str = "cpu",
) -> list[dict[str, Any]]:
    """Ask with every setting, train its student, and measure it.

    Parameters
    ----------
    images : ImageData
        Bytes (n, 28, 28) and labels in [0, 10). The last 1,000 tests are for the students.
    votes : ndarray of int64, shape (tests, classes)
        What the teachers vote.
    settings : sequence of Setting
        How to answer.
    seed : int
        Of the queries, the noise and the students.
    plan : StudentPlan
        How students train.
    device : str
        Where, as torch has it.

    Returns
    -------
    list of dict
        Records as the file has them, still without their costs.

    Examples
    --------
    >>> measure(datasets.load_mnist(), votes, SETTINGS, seed=0)  # doctest: +SKIP
    """
    pool, truth = images.x_test[:-_TESTS], images.y_test[:-_TESTS]
    records, lessons = [], []
    for setting in settings:
        rows, labels = ask(setting, votes[:-_TESTS], seed)
        told = labels >= 0
        lesson = pool[rows[told]], labels[told]
        accuracy = round(float((lesson[1] == truth[rows[told]]).mean()), 4) if told.any() else None
        private = setting.mechanism == "private data"
        lessons.append((images.x_train, images.y_train) if private else lesson)
        record = setting._asdict()
        records.append(
            {
                "setting": record.pop("name"),
                **record,
                "seed": seed,
                "asked": len(rows),
                "answered": int(told.sum()),
                "label_accuracy": accuracy,
            }
        )
    tests, labels = images.x_test[-_TESTS:], images.y_test[-_TESTS:]
    said = train_students(lessons, pool, tests, plan, seed=seed, device=device)
    for record, row in zip(records, said, strict=True):
        record["student_accuracy"] = round(float((row == labels).mean()), 4)
    return records


def merge(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of parts.

    Parameters
    ----------
    documents : sequence of dict
        Contents of result files, one or more.

    Returns
    -------
    dict
        One document with the records of all seeds, each once, in order.

    Raises
    ------
    ValueError
        If there is nothing to join, or two differ in their cut, set-up or votes.

    Examples
    --------
    >>> summary = {"votes_sha256": "0"}
    >>> merge([empty_document(None, summary)])["records"]
    []
    """
    heads = [
        (document["cut"], document["setup"], document["teachers"]["votes_sha256"])
        for document in documents
    ]
    if not heads or any(head != heads[0] for head in heads):
        raise ValueError("documents must be one or more, of one cut, one set-up and the same votes")
    units, records = {}, {}
    for document in documents:
        for unit in document["units"]:
            if unit["seed"] not in units:
                units[unit["seed"]] = unit
                records[unit["seed"]] = _of_seed(document, unit["seed"])
    joined = [record for seed in sorted(units) for record in records[seed]]
    return {**documents[0], "units": [units[seed] for seed in sorted(units)], "records": joined}


def empty_document(cut: str | None, summary: dict[str, Any]) -> dict[str, Any]:
    """Return a document without any record.

    Parameters
    ----------
    cut : str or None
        What will be left out of the whole grid, in words.
    summary : dict
        What the file says of the teachers.

    Returns
    -------
    dict
        What a file of results holds at first.

    Examples
    --------
    >>> empty_document(None, {})["experiment"]
    'pate'
    """
    plans = {"teachers": asdict(TEACHERS), "student": asdict(STUDENT)}
    # Through JSON and back, so that it compares equal with what is read from a file.
    setup = json.loads(json.dumps({**plans, "pool": 10_000 - _TESTS, "delta": DELTA}))
    return {
        "experiment": "pate",
        "cut": cut,
        "data": DATA,
        "setup": setup,
        "teachers": summary,
        "units": [],
        "records": [],
    }


def summarize(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Average the records of each setting over seeds.

    Parameters
    ----------
    document : dict
        The content of a result file.

    Returns
    -------
    list of dict
        For each setting its "setting", "epsilon", "seeds", the means of "answered",
        "label_accuracy", "student_accuracy" and "epsilon_data_dependent" (None where a record has
        none), and "lowest" and "highest", the extremes of the students' accuracy.

    Examples
    --------
    >>> summarize(empty_document(None, {}))
    []
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for record in document["records"]:
        found.setdefault(record["setting"], []).append(record)
    averaged = ("answered", "label_accuracy", "student_accuracy", "epsilon_data_dependent")
    rows = []
    for name, records in found.items():
        accuracies = [record["student_accuracy"] for record in records]
        row = {"setting": name, "epsilon": records[0].get("epsilon"), "seeds": len(records)}
        row |= {key: _mean([record.get(key) for record in records]) for key in averaged}
        rows.append({**row, "lowest": min(accuracies), "highest": max(accuracies)})
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    return None if None in values else float(np.mean(values))


# Networks, and what they see.


def _convnet(
    runs: int, widths: Sequence[int], generator: torch.Generator, device: str
) -> nn.Sequential:
    """Build a network a run; it takes (n, runs, 28, 28) and gives scores (runs, n, 10)."""
    stages: list[nn.Module] = []
    for inputs, outputs in pairwise((1, *widths)):
        convolution = layers.Convolution(
            runs, inputs, outputs, 3, generator, padding=1, biased=False
        )
        # Maxima come first: what follows then has a quarter of the numbers to read.
        stages += [convolution, nn.MaxPool2d(2), nn.BatchNorm2d(runs * outputs), nn.ReLU()]
    side = 28 >> len(widths)
    scores = layers.Linear(runs, widths[-1] * side**2, _CLASSES, generator)
    network = nn.Sequential(*stages, layers.PerRun(runs), scores)
    return network.to(device, memory_format=torch.channels_last)


def _optimizer(
    network: nn.Module, learning_rate: float, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps)
    return optimizer, rate


def _risks(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy (runs, n); that of label -1 is nothing."""
    flat = functional.cross_entropy(
        scores.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
    )
    return flat.view(labels.shape)


def _descend(
    risk: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    rate: torch.optim.lr_scheduler.LRScheduler,
) -> None:
    # A run's weights enter its own risk only: the gradient of the sum is that of each.
    optimizer.zero_grad()
    risk.backward()
    optimizer.step()
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


def _as_lesson(
    images: np.ndarray, labels: np.ndarray, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    if len(labels) == 0:
        images, labels = np.zeros((1, 28, 28), np.uint8), np.array([-1])
    return _pixels(images, device), torch.from_numpy(labels.astype(np.int64)).to(device)


def _labelled_batch(
    lessons: Sequence[tuple[torch.Tensor, torch.Tensor]], size: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
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


# The file.


def _teach(chosen: argparse.Namespace, images: datasets.ImageData, commit: str) -> Teaching:
    """Train teachers, or take up the votes that were kept."""
    path = chosen.votes or chosen.out.with_suffix(".votes.npz")
    setup = json.dumps(asdict(TEACHERS))
    if path.exists():
        with np.load(path, allow_pickle=False) as kept:
            if str(kept["setup"]) != setup:
                raise ValueError(f"votes must be of teachers trained as here, got {path}")
            return Teaching(kept["votes"], json.loads(str(kept["summary"])))
    began = time.perf_counter()
    said = train_teachers(images, TEACHERS, device=chosen.device)
    votes = pate.count_votes(said, _CLASSES)
    about = _runs.provenance(commit, chosen.device, time.perf_counter() - began)
    summary = {**_summary(said, votes, images), "provenance": about}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"draft-{path.name}")
    np.savez_compressed(draft, votes=votes, setup=setup, summary=json.dumps(summary))
    draft.replace(path)
    return Teaching(votes, summary)


def _summary(said: np.ndarray, votes: np.ndarray, images: datasets.ImageData) -> dict[str, Any]:
    alone = (said == images.y_test).mean(axis=1)
    right = votes.argmax(axis=1) == images.y_test
    shares = votes[:-_TESTS].max(axis=1) / TEACHERS.teachers
    accuracy = {"mean": alone.mean(), "lowest": alone.min(), "highest": alone.max()}
    plurality = {"pool": right[:-_TESTS].mean(), "test": right[-_TESTS:].mean()}
    return {
        "number": TEACHERS.teachers,
        "images_each": len(images.x_train) // TEACHERS.teachers,
        "votes_sha256": _sha256(votes),
        "accuracy": {name: round(float(value), 4) for name, value in accuracy.items()},
        "plurality_accuracy": {name: round(float(value), 4) for name, value in plurality.items()},
        "agreement": np.histogram(shares, bins=_BINS, range=(0, 1))[0].tolist(),
    }


def _of_seed(document: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    return [record for record in document["records"] if record["seed"] == seed]


def _account(document: dict[str, Any], votes: np.ndarray) -> dict[str, Any]:
    """Add their costs to the records that lack them, where dp-accounting is."""
    if find_spec("dp_accounting") is None:
        return document
    records = [
        record if "epsilon" in record else {**record, **_costs_of(record, votes)}
        for record in document["records"]
    ]
    return {**document, "records": records}


def _costs_of(record: dict[str, Any], votes: np.ndarray) -> dict[str, float | None]:
    setting = _setting_of(record)
    answers = ask(setting, votes[:-_TESTS], record["seed"])
    return costs(setting, votes[:-_TESTS], answers)


def _setting_of(record: dict[str, Any]) -> Setting:
    [setting] = (setting for setting in SETTINGS if setting.name == record["setting"])
    return setting


def account_anew(document: dict[str, Any], votes: np.ndarray | None = None) -> dict[str, Any]:
    """Compute the costs of all records anew.

    Parameters
    ----------
    document : dict
        The content of a result file.
    votes : ndarray of int64, shape (10,000, classes), optional
        The votes of its teachers. Without them the costs that depend on votes stay as they are.

    Returns
    -------
    dict
        The document with new costs.

    Raises
    ------
    ValueError
        If the votes are not those of the document.
    ModuleNotFoundError
        If dp-accounting is not installed.

    Examples
    --------
    >>> account_anew(empty_document(None, {}))["records"]
    []
    """
    if votes is None:
        renewed = [
            {**record, "epsilon": fixed_cost(_setting_of(record))} for record in document["records"]
        ]
    else:
        if _sha256(votes) != document["teachers"]["votes_sha256"]:
            raise ValueError("votes must be those from which the records were measured")
        renewed = [{**record, **_costs_of(record, votes)} for record in document["records"]]
    return {**document, "records": renewed}


def _sha256(votes: np.ndarray) -> str:
    return hashlib.sha256(votes.astype(np.int64).tobytes()).hexdigest()


def _measure_unit(
    seed: int,
    images: datasets.ImageData,
    teaching: Teaching,
    commit: str,
    chosen: argparse.Namespace,
) -> None:
    """Add a seed to the results, unless they hold it, and the costs that they lack."""
    document = empty_document(CUT if chosen.small else None, teaching.summary)
    if chosen.out.exists():
        document = merge([document, _runs.read(chosen.out)])
    if not _of_seed(document, seed):
        began = time.perf_counter()
        records = measure(
            images, teaching.votes, SETTINGS, seed, plan=STUDENT, device=chosen.device
        )
        about = _runs.provenance(commit, chosen.device, time.perf_counter() - began)
        unit = {"seed": seed, "provenance": about}
        document = merge([document, {**document, "units": [unit], "records": records}])
    _runs.write(chosen.out, _account(document, teaching.votes), _ROWS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dpnotes.experiments.pate",
        description="Train 250 teachers and their private students on MNIST, and measure.",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the results; seeds that are there are kept")
    add("--small", action="store_true", help="a cut of the grid that two processor cores can do")
    add("--merge", nargs="+", type=Path, metavar="FILE", help="join these files, measure nothing")
    add("--costs", action="store_true", help="compute the costs in OUT anew, measure nothing")
    add("--seeds", type=int, help="at most so many")
    add("--votes", type=Path, help="where votes are kept (default: OUT with .votes.npz)")
    add("--images", help="MNIST as one .npz (default: from dpnotes.datasets)")
    add("--device", default="cpu", help="as torch has it (default: cpu)")
    add("--part", type=_runs.part, default=(1, 1), metavar="i/N", help="measure one part of N")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Measure, or join what was measured; see ``--help``.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; the process's own by default.

    Returns
    -------
    int
        0.
    """
    chosen = _parser().parse_args(arguments)
    if chosen.merge:
        _runs.write(chosen.out, merge([_runs.read(path) for path in chosen.merge]), _ROWS)
        return 0
    if chosen.costs:
        votes = None
        if chosen.votes:
            with np.load(chosen.votes, allow_pickle=False) as kept:
                votes = kept["votes"]
        _runs.write(chosen.out, account_anew(_runs.read(chosen.out), votes), _ROWS)
        return 0
    commit = _runs.commit()
    images = _runs.read_images(chosen.images) if chosen.images else datasets.load_mnist()
    teaching = _teach(chosen, images, commit)
    number, total = chosen.part
    most = SMALL_SEEDS if chosen.small else SEEDS
    seeds = range(most if chosen.seeds is None else min(most, chosen.seeds))
    for seed in seeds[number - 1 :: total]:
        _measure_unit(seed, images, teaching, commit, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
