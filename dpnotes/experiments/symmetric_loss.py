"""Real images through private labels: losses x objectives x epsilons x seeds, on clean tests.

The whole grid is one command, and a cut of it that two processor cores can do is another:

    python -m dpnotes.experiments.symmetric_loss --device cuda --out symmetric_loss.jsonl
    python -m dpnotes.experiments.symmetric_loss --small --out symmetric_loss.jsonl

Labels are drawn by the exponential mechanism at epsilon, which is randomized response at
epsilon / 2: that is what they really cost. Test images keep their true labels.

A *unit* is one data set, one network and one seed; its *runs*, of every loss, objective and
epsilon, are one ensemble, or on a processor several small ones. A run in an ensemble is the run
that one gets alone, so an added loss is measured alone. `_run` has what is common to all files of
results. Here a line has

     "unit": {"data": "cifar10", "network": "patches", "seed": 0},
     "setup": {"epochs", "batch_size", "learning_rate", "weight_decay", "precision",
               "evaluate_after": [1, ..., epochs], "losses", "objectives", "epsilons"},
     "runs": [{"loss": "barrier hinge", "objective": "auc", "epsilon": 0.5 or null (no privacy),
               "flipped": the share of labels that lie,
               "accuracy": [after each epoch of evaluate_after], "median_accuracy": [...],
               "ber": [...], "auc": [...]}, ...]

`summarize` averages a metric over the seeds, with its interval.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import torch

from dpnotes import datasets, randomized_response, training
from dpnotes import symmetric_loss as losses
from dpnotes.experiments import _run
from dpnotes.experiments._run import RunError, Unit

LOSSES = {
    "barrier hinge": losses.barrier_hinge_loss,
    "sigmoid": losses.sigmoid_loss,
    "unhinged": losses.unhinged_loss,
    "ramp": losses.ramp_loss,
    "hinge": losses.hinge_loss,
    "logistic": losses.logistic_loss,
    "square": losses.square_loss,
    "savage": losses.savage_loss,
}
CORRECTED = "corrected logistic"
OBJECTIVES = {"ber": losses.ber_risk, "auc": losses.auc_risk}
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, None)

DATA = {
    "cifar10": "CIFAR-10, airplane (+1) against horse (-1): 10,000 training and 2,000 test images",
    "mnist": "MNIST, even (+1) against odd (-1): the first 30,000 training and 10,000 test images",
}

_NETWORKS = ("cnn", "convnet", "patches")
_OFTEN = (1, 2, 5, 10, 20, 50)
_REFERENCE = training.Schedule(evaluate_after=_OFTEN)
_QUICK = replace(_REFERENCE, learning_rate=1e-3)


def list_runs(
    names: Sequence[str] = (*LOSSES, CORRECTED),
    objectives: Sequence[str] = tuple(OBJECTIVES),
    epsilons: Sequence[float | None] = EPSILONS,
) -> list[dict[str, Any]]:
    """List the runs of an ensemble, those with one risk beside each other.

    A run is one model: what it minimises, and how private its labels are.

    Parameters
    ----------
    names : sequence of str
        Losses, among those of `LOSSES` and "corrected logistic", whose objective is the plain mean.
    objectives : sequence of str
        Among those of `OBJECTIVES`.
    epsilons : sequence of float or None
        Of the exponential mechanism; None for true labels.

    Returns
    -------
    list of dict
        Every combination.

    Examples
    --------
    >>> list_runs(["hinge"], ["auc"], [0.5, None])[0]
    {'loss': 'hinge', 'objective': 'auc', 'epsilon': 0.5}
    """
    risks = [(name, o) for o in objectives for name in names if name != CORRECTED]
    risks += [(CORRECTED, "mean")] * (CORRECTED in names)
    return [
        {"loss": loss, "objective": objective, "epsilon": epsilon}
        for (loss, objective), epsilon in product(risks, epsilons)
    ]


# Data set; network: the reference network, a small modern one, or a linear model of fixed patch
# features; how to train; what is run; and how often, with different noise, weights and orders.
Plan = tuple[str, str, training.Schedule, list[dict[str, Any]], int]

# The reference set-up decays weights on CIFAR-10 alone.
WHOLE: list[Plan] = [
    (data, network, replace(schedule, weight_decay=decay), list_runs(), 10)
    for data, decay in (("cifar10", 1e-4), ("mnist", 0.0))
    for network, schedule in (("cnn", _REFERENCE), ("convnet", _QUICK), ("patches", _QUICK))
]

_FEW = list_runs(("barrier hinge", "hinge", "logistic", CORRECTED), ("auc",), (0.5, 1.0, None))
_BRIEF = replace(_QUICK, weight_decay=0.0, epochs=20, evaluate_after=_OFTEN[:5])

SMALL: list[Plan] = [
    ("cifar10", "patches", _QUICK, list_runs(), 10),
    ("mnist", "patches", _BRIEF, list_runs(), 5),
    ("cifar10", "convnet", replace(_QUICK, precision="bfloat16"), _FEW, 5),
    ("cifar10", "cnn", replace(_REFERENCE, precision="bfloat16"), _FEW, 5),
]
CUT = (
    "What two processor cores do in 90 minutes: the patches on CIFAR-10 in full, and on MNIST with "
    "5 seeds of 10 for 20 epochs of 50. Left out: both networks on MNIST; and for both networks on "
    "CIFAR-10 the BER objective, the losses sigmoid, unhinged, ramp, square and savage, the "
    "epsilons 0.1, 0.25, 2 and 4, and 5 seeds of 10."
)


def load_images(data: str, path: str | None = None) -> datasets.ImageData:
    """Load one of the two tasks.

    Parameters
    ----------
    data : {"cifar10", "mnist"}
        Airplanes (+1) and horses (-1) of CIFAR-10, or even (+1) and odd (-1) digits of MNIST, of
        which the first 30,000 are trained on, as many as in the reference set-up.
    path : str, optional
        A file that ``python -m dpnotes.datasets cifar10 --classes 0 7 --out FILE`` or
        ``python -m dpnotes.datasets mnist --out FILE`` wrote. By default the images come from where
        `dpnotes.datasets` finds them.

    Returns
    -------
    ImageData
        Bytes (n, height, width, channels), and labels +1 or -1.

    Raises
    ------
    ValueError
        If the file holds other labels.
    DatasetUnavailable
        If the images are not on this machine.

    Examples
    --------
    >>> load_images("cifar10").x_train.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    found = _run.load_images(data, path, (0, 7) if data == "cifar10" else range(10))
    y_train, y_test = (np.where(y % 2 == 0, 1, -1) for y in (found.y_train, found.y_test))
    if data == "cifar10":
        return found._replace(y_train=y_train, y_test=y_test)
    x_train, x_test = (x[..., None] for x in (found.x_train, found.x_test))
    return datasets.ImageData(x_train[:30_000], y_train[:30_000], x_test, y_test)


def measure_unit(unit: Unit, chosen: argparse.Namespace, _: None) -> list[dict[str, Any]]:
    """Train the runs of one ensemble that the file lacks, and measure them on the test images.

    Parameters
    ----------
    unit : Unit
        The data set, the network, and the seed of the labels' noise, the initial weights, the order
        and the dropout; how to train; and the runs, those with one risk beside each other.
    chosen : Namespace
        The command line.

    Returns
    -------
    list of dict
        For each run its description, the share of labels that were flipped, and accuracy at
        threshold 0, accuracy at the median of the test scores (a risk of pairs sets no threshold),
        balanced error and AUC at each evaluated epoch.

    Raises
    ------
    FloatingPointError
        If a run diverges.
    """
    data, network, seed = unit.key.values()
    images, runs = load_images(data, chosen.images), unit.rows
    kept = {e: _keep(images.y_train, e, seed) for e in {run["epsilon"] for run in runs}}
    build, *pixels = _inputs(network, images, seed)
    inputs, tests = (part.to(chosen.device) for part in pixels)
    # What more runs keep between layers leaves a processor's cache: up to 1.7 times slower.
    size = len(runs) if network == "patches" or _run.is_gpu(chosen.device) else 3
    rows = []
    for part in (runs[start : start + size] for start in range(0, len(runs), size)):
        labels = np.stack([np.where(kept[run["epsilon"]], 1, -1) * images.y_train for run in part])
        # Only the corrected loss knows how often labels lie.
        known = [run if run["loss"] == CORRECTED else {**run, "epsilon": None} for run in part]
        fitted = training.fit(
            build,
            inputs,
            torch.tensor(labels, dtype=torch.float32, device=chosen.device),
            [_make_risk(**run) for run in known],
            tests,
            training.Schedule(**unit.setup),
            seed=seed,
            names=["{loss}, {objective}, epsilon {epsilon}".format(**run) for run in part],
            report=_run.report,
        )
        for number, run in enumerate(part):
            metrics = [_metrics(scores[number], images.y_test) for scores in fitted.scores.values()]
            row = {**run, "flipped": round(1 - float(kept[run["epsilon"]].mean()), 4)}
            rows.append(row | {name: [each[name] for each in metrics] for name in metrics[0]})
    return rows


def summarize(document: dict, metric: str) -> list[dict[str, Any]]:
    """Average over seeds what a metric is at the end of training.

    Parameters
    ----------
    document : dict
        What `datasets.load_results` returns, or some of its units.
    metric : {"accuracy", "median_accuracy", "ber", "auc"}
        What to average.

    Returns
    -------
    list of dict
        For each data set, network, loss, objective and epsilon: "mean" and "seeds".

    Raises
    ------
    KeyError, ValueError
        If the metric was not measured, if the runs of one network were trained in different ways,
        or if one is there twice.

    Examples
    --------
    >>> summarize({"units": []}, "auc")
    []
    """
    values: dict[tuple, dict[int, float]] = {}
    setups: dict[tuple, dict[str, Any]] = {}
    for unit in document["units"]:
        where = (unit["data"], unit["network"])
        setup = {name: unit["setup"][name] for name in unit["setup"] if name not in LISTS}
        if setups.setdefault(where, setup) != setup:
            raise ValueError(f"the units of {where} must come from one set-up; choose among them")
        for run in unit["runs"]:
            key = (*where, run["loss"], run["objective"], run["epsilon"])
            seeds = values.setdefault(key, {})
            if unit["seed"] in seeds:
                raise ValueError(f"{key} must be there once for seed {unit['seed']}")
            seeds[unit["seed"]] = run[metric][-1]
    names = ("data", "network", "loss", "objective", "epsilon", "mean", "seeds")
    return [
        dict(zip(names, (*key, float(np.mean([*seeds.values()])), len(seeds)), strict=True))
        for key, seeds in values.items()
    ]


def _keep(labels: np.ndarray, epsilon: float | None, seed: int) -> np.ndarray:
    """Return which labels are reported as they are: the same for every loss and network."""
    if epsilon is None:
        return np.ones(len(labels), dtype=bool)
    rng = np.random.default_rng([seed, round(1000 * epsilon)])
    # Labels under the exponential mechanism are randomized response at half of its epsilon.
    return randomized_response.privatize(np.ones(len(labels), dtype=bool), epsilon / 2, rng=rng)


def _inputs(
    network: str, images: datasets.ImageData, seed: int
) -> tuple[training.Builder, torch.Tensor, torch.Tensor]:
    if network == "patches":
        features = training.patch_features(images.x_train, images.x_test, rng=seed)
        return training.linear(features[0].shape[1]), *map(torch.from_numpy, features)
    build = {"cnn": training.reference_cnn, "convnet": training.small_convnet}[network]
    return build, _in_colour(images.x_train), _in_colour(images.x_test)


def _in_colour(images: np.ndarray) -> torch.Tensor:
    """Give digits a margin and two more equal channels, so that one network fits both tasks."""
    if images.shape[-1] == 1:
        images = np.pad(images, [(0, 0), (2, 2), (2, 2), (0, 0)]).repeat(3, axis=-1)
    return torch.from_numpy(images)


@cache
def _make_risk(loss: str, objective: str, epsilon: float | None) -> training.Risk:
    """Return what a run minimises: one object for runs that differ in their labels alone."""
    if loss != CORRECTED:
        # Looking into each batch's labels would stop a GPU; a missing class ends as NaN.
        return partial(OBJECTIVES[objective], loss=LOSSES[loss], check=False)
    of_margin = losses.logistic_loss
    if epsilon is not None:
        keep = randomized_response.keep_probability(epsilon / 2)
        of_margin = partial(losses.corrected_logistic_loss, keep_probability=keep)
    return lambda scores, labels: of_margin(labels * scores).mean(-1)


def _metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Measure scores; one at the threshold counts half, and so does a tied pair."""
    positive, negative = scores[labels > 0], np.sort(scores[labels < 0])
    right = (np.sign(scores) * labels + 1) / 2
    above_median = (np.sign(scores - np.median(scores)) * labels + 1) / 2
    below = sum(np.searchsorted(negative, positive, side) for side in ("left", "right"))
    return {
        "accuracy": _run.average(right),
        "median_accuracy": _run.average(above_median),
        "ber": _run.average(1 - (right[labels > 0].mean() + right[labels < 0].mean()) / 2),
        "auc": _run.average(below.mean() / (2 * len(negative))),
    }


# The units.


LISTS = {"losses": "loss", "objectives": "objective", "epsilons": "epsilon"}


def list_units(chosen: argparse.Namespace) -> list[Unit]:
    """List what is to be measured, one plan after the other."""
    if chosen.images and len(chosen.data) > 1:
        raise RunError("--images is for one data set: name it with --data")
    # Twice as quick on a GPU, and test scores are in single precision all the same.
    gpu = {"precision": "bfloat16"} if _run.is_gpu(chosen.device) else {}
    return [
        Unit({"data": data, "network": network, "seed": seed}, asdict(schedule) | gpu, runs)
        for data, network, schedule, runs, seeds in (SMALL if chosen.small else WHOLE)
        if data in chosen.data and network in chosen.networks
        for seed in range(min(seeds, chosen.seeds))
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", nargs="+", choices=DATA, default=[*DATA], help="by default both")
    add("--networks", nargs="+", choices=_NETWORKS, default=_NETWORKS, help="by default all")


if __name__ == "__main__":
    raise SystemExit(_run.main("symmetric_loss"))
