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
               "held_out"},
     "runs": [{"loss": "cross entropy", "epsilon": 1.0 or null (true labels), "learning_rate": 0.01,
               "reported": [share of held-out reports that it names, after each epoch of
                            evaluate_after],
               "accuracy": [share of test images that it names],
               "named": [classes that it gives to at least one test image in a hundred]}, ...]

`choose` takes the learning rate and the epoch of each loss by the held-out reports.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby, product
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from dpnotes import randomized_response, training
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
LEARNING_RATES = (1e-4, 1e-3, 1e-2)
# The training images whose reports choose the learning rate and the epoch.
HELD_OUT = 10_000
_MEASURED = ("reported", "accuracy", "named")


# Features (n, d), and labels (n,), or (runs, n) where each run has its own.
Examples = tuple[torch.Tensor, torch.Tensor]


SCHEDULE = training.Schedule(epochs=20, batch_size=500, evaluate_after=(1, 2, 5, 10, 20))
SMALL_SCHEDULE = replace(SCHEDULE, epochs=10, evaluate_after=(1, 2, 5, 10))
SEEDS, SMALL_SEEDS = 5, 3
CUT = (
    "What a part of one processor core does in half an hour. Left out: the epochs after the "
    "tenth of 20, and all seeds but the first 3 of 5."
)


def measure_unit(unit: Unit, chosen: argparse.Namespace, _: None) -> list[dict[str, Any]]:
    """Train the runs of one seed, and measure each on held-out reports and on the test images.

    Parameters
    ----------
    unit : Unit
        The seed of the labels' noise, what is held out, the features, the initial weights and the
        order; how to train; and the runs, those with one loss beside each other.
    chosen : Namespace
        The command line.

    Returns
    -------
    list of dict
        For each run its description, and at each evaluated epoch the share of held-out reports and
        of true test labels that it names, and the number of classes that it uses.

    Raises
    ------
    FloatingPointError
        If a run diverges.
    """
    images, seed = _run.load_images("cifar10", chosen.images), unit.key["seed"]
    features = training.patch_features(images.x_train, images.x_test, rng=seed)
    known, tests = (torch.from_numpy(part).to(chosen.device) for part in features)
    truth = torch.from_numpy(images.y_test.astype(np.int64))
    reports = {e: _report(images.y_train, e, seed) for e in {run["epsilon"] for run in unit.rows}}
    order = np.random.default_rng(seed).permutation(len(known))
    setup = dict(unit.setup)
    held_out, taught = np.split(order, [setup.pop("held_out")])
    rows = []
    for rate, some in groupby(unit.rows, itemgetter("learning_rate")):
        runs = [*some]
        labels = np.stack([reports[run["epsilon"]] for run in runs])
        labels = torch.from_numpy(labels).to(chosen.device)
        lessons, exams = ((known[part], labels[:, part]) for part in (taught, held_out))
        schedule = training.Schedule(**setup, learning_rate=rate)
        rows += _train(runs, schedule, seed, lessons, exams, (tests, truth))
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
    runs: Sequence[dict], schedule: training.Schedule, seed: int, *data: Examples
) -> list[dict[str, Any]]:
    """Train runs with one learning rate as one ensemble, and measure them on exams and tests."""
    lessons, exams, tests = data
    generator = torch.Generator().manual_seed(seed)
    network = Linear(len(runs), tests[0].shape[1], CLASSES, generator).to(tests[0].device)
    optimizer = make_optimizer(network, schedule)
    groups = [(_make_risk(*what), len(list(same))) for what, same in groupby(runs, _name_risk)]
    rows = [run | {name: [] for name in _MEASURED} for run in runs]
    for epoch in range(1, schedule.epochs + 1):
        risks = run_epoch(network, optimizer, schedule, *lessons, groups, generator)
        for run, risk in zip(runs, risks, strict=True):
            if not np.isfinite(risk):
                name = "{loss}, epsilon {epsilon}, learning rate {learning_rate}".format(**run)
                raise FloatingPointError(f"the risk of run {name} is {risk} in epoch {epoch}")
        if epoch in schedule.evaluate_after:
            _evaluate(network, exams, tests, rows)
    return rows


def _evaluate(network: Linear, exams: Examples, tests: Examples, rows: list[dict]) -> None:
    """Add what each run is worth now to its row."""
    said, answers = (training.predict(network, x).argmax(-1) for x, _ in (exams, tests))
    reported, accuracy = said == exams[1].cpu().numpy(), answers == tests[1].cpu().numpy()
    for row, right, true, named in zip(rows, reported, accuracy, answers, strict=True):
        row["reported"].append(_run.average(right))
        row["accuracy"].append(_run.average(true))
        row["named"].append(int((100 * np.bincount(named) >= len(named)).sum()))


def _name_risk(run: dict[str, Any]) -> tuple[str, float | None]:
    """Return what tells risks apart: neighbouring runs with one risk are computed together."""
    return run["loss"], run["epsilon"] if run["loss"] == CORRECTED else None


def _make_risk(name: str, epsilon: float | None) -> training.Risk:
    loss = losses.cross_entropy if name == CORRECTED else LOSSES[name]
    if epsilon is not None:
        keep = randomized_response.keep_probability(epsilon, CLASSES)
        loss = partial(losses.corrected_cross_entropy, keep_probability=keep)
    return lambda scores, labels: loss(scores, labels).mean(-1)


# The units.


def list_units(chosen: argparse.Namespace) -> list[Unit]:
    schedule, seeds = (SMALL_SCHEDULE, SMALL_SEEDS) if chosen.small else (SCHEDULE, SEEDS)
    setup = asdict(schedule) | {"held_out": HELD_OUT}
    del setup["learning_rate"]
    rows = [
        {"loss": loss, "epsilon": epsilon, "learning_rate": rate}
        for rate, loss, epsilon in product(LEARNING_RATES, (*LOSSES, CORRECTED), EPSILONS)
    ]
    return [Unit({"seed": seed}, setup, rows) for seed in range(min(seeds, chosen.seeds))]


if __name__ == "__main__":
    raise SystemExit(_run.main("ten_classes"))
