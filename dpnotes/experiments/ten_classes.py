"""All ten classes of CIFAR-10 through private labels: losses x epsilons x learning rates x seeds.

    python -m dpnotes.experiments.ten_classes --out ten_classes.jsonl
    python -m dpnotes.experiments.ten_classes --small --out ten_classes.jsonl

Each training label is reported by randomized response over ten answers, at a cost of epsilon. A
linear model on the features of `training.patch_features` learns from the reports of 40,000 images.
The reports of the other 10,000 choose its learning rate and when to stop: what is computed from
reports costs nothing more. Test images keep their true labels, and choose nothing.

A *unit* is one seed; its *runs*, of every loss, epsilon and learning rate, are trained as
ensembles, one a rate. `_run` has what is common to all files of results. Here a line has

     "unit": {"seed": 0},
     "setup": {"epochs", "batch_size", "weight_decay", "precision", "evaluate_after": [..., epochs],
               "held_out", "losses", "epsilons", "learning_rates"},
     "runs": [{"loss": "cross entropy", "epsilon": 1.0 or null (true labels), "learning_rate": 0.01,
               "reported": [share of held-out reports that it names, after each epoch of
                            evaluate_after],
               "accuracy": [share of test images that it names],
               "named": [classes that it gives to at least one test image in a hundred]}, ...]

`choose` takes the learning rate and the epoch of each loss by the held-out reports.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
import torch

from dpnotes import datasets, randomized_response, training
from dpnotes import symmetric_loss as losses
from dpnotes._checks import check_choice
from dpnotes.experiments import _run
from dpnotes.experiments._run import RunError, Unit
from dpnotes.training.ensemble import make_optimizer, run_epoch
from dpnotes.training.networks import Linear

CLASSES = 10
LOSSES = {
    "absolute error": losses.mean_absolute_error,
    "normalized cross entropy": losses.normalized_cross_entropy,
    "unhinged": losses.multiclass_unhinged_loss,
    "generalized cross entropy": losses.generalized_cross_entropy,
    "cross entropy": losses.cross_entropy,
}
CORRECTED = "corrected cross entropy"
EPSILONS = (0.5, 1.0, 2.0, 4.0, None)
DATA = (
    "CIFAR-10, all ten classes: 40,000 images to train on, 10,000 whose reports choose the "
    "learning rate and the epoch, and 10,000 to test"
)
_MEASURED = ("reported", "accuracy", "named")


class Run(NamedTuple):
    """One model: what it minimises, how private its labels are, and how large its steps are."""

    loss: str
    epsilon: float | None
    learning_rate: float

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{self.loss}, epsilon {self.epsilon}, learning rate {self.learning_rate}"


class Plan(NamedTuple):
    """What is measured.

    Attributes
    ----------
    schedule : training.Schedule
        How to train, with a learning rate that gives way to those of the plan.
    losses, epsilons, learning_rates : tuple
        Whose combinations are run.
    held_out : int
        The training images whose reports choose the learning rate.
    seeds : int
        How often, with different noise, features, weights and orders.
    """

    schedule: training.Schedule
    losses: tuple[str, ...] = (*LOSSES, CORRECTED)
    epsilons: tuple[float | None, ...] = EPSILONS
    learning_rates: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    held_out: int = 10_000
    seeds: int = 5


WHOLE = Plan(training.Schedule(epochs=20, batch_size=500, evaluate_after=(1, 2, 5, 10, 20)))
SMALL = WHOLE._replace(
    schedule=replace(WHOLE.schedule, epochs=10, evaluate_after=(1, 2, 5, 10)), seeds=3
)
CUT = (
    "What a part of one processor core does in half an hour. Left out: the epochs after the "
    "tenth of 20, and all seeds but the first 3 of 5."
)


def list_runs(plan: Plan) -> list[Run]:
    """List the runs of a plan, those with one loss beside each other.

    Parameters
    ----------
    plan : Plan
        What is measured.

    Returns
    -------
    list of Run
        Every combination.

    Examples
    --------
    >>> len(list_runs(WHOLE))
    90
    """
    return [
        Run(loss, epsilon, rate)
        for rate in plan.learning_rates
        for loss in plan.losses
        for epsilon in plan.epsilons
    ]


def measure(
    plan: Plan,
    seed: int,
    images: datasets.ImageData,
    *,
    runs: Sequence[Run] | None = None,
    device: str = "cpu",
) -> list[dict[str, Any]]:
    """Train the runs of one seed, and measure each on held-out reports and on the test images.

    Parameters
    ----------
    plan : Plan
        What to train, and how.
    seed : int
        Of the labels' noise, what is held out, the features, the initial weights and the order.
    images : ImageData
        Bytes (n, height, width, channels), and labels in [0, 10).
    runs : sequence of Run, optional
        Which runs; all of the plan by default.
    device : str
        Where, as torch has it.

    Returns
    -------
    list of dict
        For each run its description, and at each evaluated epoch the share of held-out reports and
        of true test labels that it names, and the number of classes that it uses.

    Raises
    ------
    FloatingPointError
        If a run diverges.

    Examples
    --------
    >>> measure(WHOLE, 0, datasets.load_cifar10())  # doctest: +SKIP
    """
    runs = list_runs(plan) if runs is None else runs
    features = training.patch_features(images.x_train, images.x_test, rng=seed)
    known, tests = (torch.from_numpy(part).to(device) for part in features)
    truth = torch.from_numpy(images.y_test.astype(np.int64)).to(device)
    reports = {e: _report(images.y_train, e, seed) for e in {run.epsilon for run in runs}}
    order = np.random.default_rng(seed).permutation(len(known))
    held_out, taught = order[: plan.held_out], order[plan.held_out :]
    rows = []
    for rate in dict.fromkeys(run.learning_rate for run in runs):
        some = [run for run in runs if run.learning_rate == rate]
        labels = torch.from_numpy(np.stack([reports[run.epsilon] for run in some])).to(device)
        data = Data(known[taught], labels[:, taught], known[held_out], labels[:, held_out])
        schedule = replace(plan.schedule, learning_rate=rate)
        rows += _train(some, schedule, seed, data, (tests, truth))
    return rows


class Data(NamedTuple):
    """Features (n, d) and the labels (runs, n) of each run, to learn from and to choose by."""

    x_taught: torch.Tensor
    y_taught: torch.Tensor
    x_held_out: torch.Tensor
    y_held_out: torch.Tensor


# Features (n, d) and true labels (n,).
Tests = tuple[torch.Tensor, torch.Tensor]


def choose(document: dict[str, Any], *, by: str = "reported") -> list[dict[str, Any]]:
    """Take, for each loss, epsilon and seed, the learning rate and the epoch that do best.

    Parameters
    ----------
    document : dict
        What `datasets.load_results` returns.
    by : {"reported", "accuracy"}
        Best on the held-out reports, as one can choose without the truth; or on the test images,
        in hindsight. Of equally good ones the first is taken.

    Returns
    -------
    list of dict
        For each loss, epsilon and seed the "learning_rate" and the "epoch" that were taken, and
        what was measured there.

    Examples
    --------
    >>> choose({"units": []})
    []
    """
    check_choice("by", by, ("reported", "accuracy"))
    best: dict[tuple, dict[str, Any]] = {}
    for unit in document["units"]:
        epochs = enumerate(unit["setup"]["evaluate_after"])
        for run, (column, epoch) in product(unit["runs"], epochs):
            key = (run["loss"], run["epsilon"], unit["seed"])
            if key not in best or run[by][column] > best[key][by]:
                there = {name: run[name][column] for name in _MEASURED}
                best[key] = {**run, "seed": unit["seed"], "epoch": epoch, **there}
    return list(best.values())


def _report(labels: np.ndarray, epsilon: float | None, seed: int) -> np.ndarray:
    """Return the labels as they are reported: the same for every loss and learning rate."""
    labels = labels.astype(np.int64)
    if epsilon is None:
        return labels
    rng = np.random.default_rng([seed, round(1000 * epsilon)])
    return randomized_response.privatize(labels, epsilon, categories=CLASSES, rng=rng)


def _train(
    runs: Sequence[Run], schedule: training.Schedule, seed: int, data: Data, tests: Tests
) -> list[dict[str, Any]]:
    """Train runs with one learning rate as one ensemble, and measure them."""
    generator = torch.Generator().manual_seed(seed)
    network = Linear(len(runs), tests[0].shape[1], CLASSES, generator).to(tests[0].device)
    optimizer = make_optimizer(network, schedule)
    groups = _risks(runs)
    rows = [run._asdict() | {name: [] for name in _MEASURED} for run in runs]
    for epoch in range(1, schedule.epochs + 1):
        risks = run_epoch(
            network, optimizer, schedule, data.x_taught, data.y_taught, groups, generator
        )
        for run, risk in zip(runs, risks, strict=True):
            if not np.isfinite(risk):
                raise FloatingPointError(f"the risk of run {run.name} is {risk} in epoch {epoch}")
        if epoch in {*schedule.evaluate_after, schedule.epochs}:
            _evaluate(network, data, tests, rows)
    rate = schedule.learning_rate
    _run.report(f"seed {seed}: learning rate {rate:g}, {len(runs)} runs, {epoch} epochs")
    return rows


def _evaluate(network: Linear, data: Data, tests: Tests, rows: list[dict[str, Any]]) -> None:
    """Add what each run is worth now to its row."""
    said, answers = _predict(network, data.x_held_out), _predict(network, tests[0])
    reported = (said == data.y_held_out).double().mean(1).tolist()
    accuracy = (answers == tests[1]).double().mean(1).tolist()
    for number, row in enumerate(rows):
        counts = torch.bincount(answers[number], minlength=CLASSES)
        row["reported"].append(round(reported[number], 4))
        row["accuracy"].append(round(accuracy[number], 4))
        row["named"].append(int((100 * counts >= len(tests[1])).sum()))


def _predict(network: Linear, inputs: torch.Tensor) -> torch.Tensor:
    """Return the class that each run gives to each input, (runs, n)."""
    with torch.no_grad():
        return torch.cat([network(batch).argmax(-1) for batch in inputs.split(500)], dim=1)


def _risks(runs: Sequence[Run]) -> list[tuple[training.Risk, int]]:
    """Return what is minimised, and by how many neighbouring runs: they are computed together."""
    made: dict[tuple, training.Risk] = {}
    risks = []
    for run in runs:
        kind = (run.loss, run.epsilon if run.loss == CORRECTED else None)
        made.setdefault(kind, partial(_mean_risk, loss=_loss(run)))
        risks.append(made[kind])
    return [(risk, len(list(same))) for risk, same in groupby(risks)]


def _loss(run: Run) -> losses.ClassLoss:
    if run.loss != CORRECTED:
        return LOSSES[run.loss]
    if run.epsilon is None:
        return losses.cross_entropy
    keep = randomized_response.keep_probability(run.epsilon, CLASSES)
    return partial(losses.corrected_cross_entropy, keep_probability=keep)


def _mean_risk(scores: torch.Tensor, labels: torch.Tensor, loss: losses.ClassLoss) -> torch.Tensor:
    return loss(scores, labels).mean(-1)


# The units.


LISTS = (("losses", "loss"), ("epsilons", "epsilon"), ("learning_rates", "learning_rate"))


def _describe_setup(plan: Plan) -> dict[str, Any]:
    setup = asdict(plan.schedule)
    del setup["learning_rate"]
    setup["evaluate_after"] = sorted({*plan.schedule.evaluate_after, plan.schedule.epochs})
    return setup | {name: getattr(plan, name) for name in ("held_out", *dict(LISTS))}


def _list_units(chosen: argparse.Namespace, _: dict[str, Any]) -> list[Unit]:
    plan = SMALL if chosen.small else WHOLE
    rows = [run._asdict() for run in list_runs(plan)]
    seeds = range(min(plan.seeds, chosen.seeds or plan.seeds))
    return [Unit({"seed": seed}, _describe_setup(plan), rows) for seed in seeds]


def _measure_unit(unit: Unit, chosen: argparse.Namespace, _: None) -> list[dict[str, Any]]:
    """Measure those runs of a unit that the file lacks."""
    plan, runs = SMALL if chosen.small else WHOLE, [Run(**row) for row in unit.rows]
    images = _images(chosen.images)
    return measure(plan, unit.key["seed"], images, runs=runs, device=chosen.device)


@cache
def _images(path: str | None) -> datasets.ImageData:
    found = datasets.load_cifar10() if path is None else _run.read_images(path)
    for name in ("y_train", "y_test"):
        if set(np.unique(getattr(found, name))) != set(range(CLASSES)):
            raise RunError(f"path must hold the ten classes of cifar10, got {path}")
    return found


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", help="the images as one .npz (default: from dpnotes.datasets)")


EXPERIMENT = _run.Experiment(
    "ten_classes",
    "Train on all ten classes through private labels, and measure.",
    add_options=_add_options,
    head=lambda chosen: {"cut": CUT if chosen.small else None, "data": DATA},
    list_units=_list_units,
    measure=_measure_unit,
    lists=LISTS,
)
main = partial(_run.main, EXPERIMENT)

if __name__ == "__main__":
    sys.exit(_run.start("ten_classes"))
