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
from dpnotes.experiments._run import Unit
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


# Features (n, d), and labels (n,), or (runs, n) where each run has its own.
Examples = tuple[torch.Tensor, torch.Tensor]


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
    choices = product(plan.learning_rates, plan.losses, plan.epsilons)
    return [Run(loss, epsilon, rate) for rate, loss, epsilon in choices]


def measure(
    plan: Plan, seed: int, images: datasets.ImageData, runs: Sequence[Run], device: str = "cpu"
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
    runs : sequence of Run
        Which runs of the plan.
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
    >>> measure(WHOLE, 0, datasets.load_cifar10(), list_runs(WHOLE))  # doctest: +SKIP
    """
    features = training.patch_features(images.x_train, images.x_test, rng=seed)
    known, tests = (torch.from_numpy(part).to(device) for part in features)
    truth = torch.from_numpy(images.y_test.astype(np.int64))
    reports = {e: _report(images.y_train, e, seed) for e in {run.epsilon for run in runs}}
    order = np.random.default_rng(seed).permutation(len(known))
    held_out, taught = order[: plan.held_out], order[plan.held_out :]
    rows = []
    for rate in dict.fromkeys(run.learning_rate for run in runs):
        some = [run for run in runs if run.learning_rate == rate]
        labels = torch.from_numpy(np.stack([reports[run.epsilon] for run in some])).to(device)
        lessons, exams = ((known[part], labels[:, part]) for part in (taught, held_out))
        schedule = replace(plan.schedule, learning_rate=rate)
        rows += _train(some, schedule, seed, lessons, exams, (tests, truth))
    return rows


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
    runs: Sequence[Run], schedule: training.Schedule, seed: int, *data: Examples
) -> list[dict[str, Any]]:
    """Train runs with one learning rate as one ensemble, and measure them on exams and tests."""
    lessons, exams, tests = data
    generator = torch.Generator().manual_seed(seed)
    network = Linear(len(runs), tests[0].shape[1], CLASSES, generator).to(tests[0].device)
    optimizer, rate = make_optimizer(network, schedule), schedule.learning_rate
    made = [_make_risk(r.loss, r.epsilon if r.loss == CORRECTED else None) for r in runs]
    groups = [(risk, len(list(same))) for risk, same in groupby(made)]
    rows = [run._asdict() | {name: [] for name in _MEASURED} for run in runs]
    for epoch in range(1, schedule.epochs + 1):
        risks = run_epoch(network, optimizer, schedule, *lessons, groups, generator)
        for run, risk in zip(runs, risks, strict=True):
            if not np.isfinite(risk):
                name = f"{run.loss}, epsilon {run.epsilon}, learning rate {rate}"
                raise FloatingPointError(f"the risk of run {name} is {risk} in epoch {epoch}")
        if epoch in schedule.evaluate_after:
            _evaluate(network, exams, tests, rows)
    _run.report(f"seed {seed}: learning rate {rate:g}, {len(runs)} runs, {epoch} epochs")
    return rows


def _evaluate(network: Linear, exams: Examples, tests: Examples, rows: list[dict]) -> None:
    """Add what each run is worth now to its row."""
    said, answers = (training.predict(network, x).argmax(-1) for x, _ in (exams, tests))
    reported = (said == exams[1].cpu().numpy()).mean(1)
    accuracy = (answers == tests[1].cpu().numpy()).mean(1)
    for row, right, true, named in zip(rows, reported, accuracy, answers, strict=True):
        row["reported"].append(round(float(right), 4))
        row["accuracy"].append(round(float(true), 4))
        row["named"].append(int((100 * np.bincount(named) >= len(named)).sum()))


@cache
def _make_risk(name: str, epsilon: float | None) -> training.Risk:
    """Return what a run minimises: neighbouring runs with one object are computed together."""
    if name != CORRECTED:
        return partial(_mean_risk, loss=LOSSES[name])
    if epsilon is None:
        return partial(_mean_risk, loss=losses.cross_entropy)
    keep = randomized_response.keep_probability(epsilon, CLASSES)
    loss = partial(losses.corrected_cross_entropy, keep_probability=keep)
    return partial(_mean_risk, loss=loss)


def _mean_risk(scores: torch.Tensor, labels: torch.Tensor, loss: losses.ClassLoss) -> torch.Tensor:
    return loss(scores, labels).mean(-1)


# The units.


LISTS = (("losses", "loss"), ("epsilons", "epsilon"), ("learning_rates", "learning_rate"))


def list_units(chosen: argparse.Namespace, _: dict[str, Any]) -> list[Unit]:
    plan = SMALL if chosen.small else WHOLE
    setup = asdict(plan.schedule)
    del setup["learning_rate"]
    setup |= {name: getattr(plan, name) for name in ("held_out", *dict(LISTS))}
    rows = [run._asdict() for run in list_runs(plan)]
    return [Unit({"seed": seed}, setup, rows) for seed in range(min(plan.seeds, chosen.seeds))]


def measure_unit(unit: Unit, chosen: argparse.Namespace, _: None) -> list[dict[str, Any]]:
    """Measure those runs of a unit that the file lacks."""
    plan, runs = SMALL if chosen.small else WHOLE, [Run(**row) for row in unit.rows]
    images = _run.load_images("cifar10", chosen.images)
    return measure(plan, unit.key["seed"], images, runs, chosen.device)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", help="the images as one .npz (default: from dpnotes.datasets)")


main = partial(_run.main, "ten_classes")

if __name__ == "__main__":
    sys.exit(main())
