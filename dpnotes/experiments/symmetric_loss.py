"""Real images through private labels: losses x objectives x epsilons x seeds, on clean tests.

The whole grid is one command, and a cut of it that two processor cores can do is another:

    python -m dpnotes.experiments.symmetric_loss --device cuda --out symmetric_loss.json
    python -m dpnotes.experiments.symmetric_loss --small --out symmetric_loss.json

Labels are drawn by the exponential mechanism at epsilon, which is randomized response at
epsilon / 2: that is what they really cost. Test images keep their true labels.

A *unit* is one data set, one network and one seed, with every loss, objective and epsilon as one
ensemble. The file grows unit by unit, and a unit that it holds is not measured again.
``--part 2/5`` measures every fifth unit, from the second, and ``--merge FILES`` joins the files of
parts. The file is JSON:

    {"experiment": "symmetric_loss",
     "cut": null, or in words what was left out of the whole grid,
     "data": {"cifar10": in words, "mnist": in words},
     "units": [{
        "data": "cifar10", "network": "patches", "seed": 0,
        "setup": {"epochs", "batch_size", "learning_rate", "weight_decay", "precision",
                  "evaluate_after": [1, ..., epochs], "losses", "objectives", "epsilons"},
        "provenance": {"commit", "date", "device", "threads", ..., "seconds"},
        "runs": [{"loss": "barrier hinge", "objective": "auc", "epsilon": 0.5 or null (no privacy),
                  "flipped": the share of labels that lie,
                  "accuracy": [after each epoch of evaluate_after], "median_accuracy": [...],
                  "ber": [...], "auc": [...]}, ...]}, ...]}

`summarize` averages a metric over the seeds, with its interval.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dpnotes import datasets, randomized_response, training
from dpnotes import symmetric_loss as losses
from dpnotes._checks import check_choice
from dpnotes.experiments import _runs

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
# The objects that stand on a line of their own in the file.
_ROWS = ('{"data":"', '{"loss":')
_REFERENCE = training.Schedule(evaluate_after=_OFTEN)
_QUICK = replace(_REFERENCE, learning_rate=1e-3)


class Run(NamedTuple):
    """One model of an ensemble: what it minimises, and how private its labels are."""

    loss: str
    objective: str
    epsilon: float | None

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{self.loss}, {self.objective}, epsilon {self.epsilon}"


class Plan(NamedTuple):
    """What is measured on one data set with one network.

    Attributes
    ----------
    data : {"cifar10", "mnist"}
        The images.
    network : {"cnn", "convnet", "patches"}
        The reference network, a small modern one, or a linear model of fixed patch features.
    schedule : training.Schedule
        How to train.
    losses, objectives, epsilons : tuple
        Whose combinations are run, as `list_runs` has them.
    seeds : int
        How often, with different noise, weights and orders.
    """

    data: str
    network: str
    schedule: training.Schedule
    losses: tuple[str, ...] = (*LOSSES, CORRECTED)
    objectives: tuple[str, ...] = tuple(OBJECTIVES)
    epsilons: tuple[float | None, ...] = EPSILONS
    seeds: int = 10


# The reference set-up decays weights on CIFAR-10 alone.
WHOLE = (
    Plan("cifar10", "cnn", _REFERENCE),
    Plan("cifar10", "convnet", _QUICK),
    Plan("cifar10", "patches", _QUICK),
    Plan("mnist", "cnn", replace(_REFERENCE, weight_decay=0.0)),
    Plan("mnist", "convnet", replace(_QUICK, weight_decay=0.0)),
    Plan("mnist", "patches", replace(_QUICK, weight_decay=0.0)),
)

_FEW = {
    "losses": ("barrier hinge", "hinge", "logistic", CORRECTED),
    "objectives": ("auc",),
    "epsilons": (0.5, None),
}


def _cut(schedule: training.Schedule, epochs: int, precision: str) -> training.Schedule:
    often = tuple(epoch for epoch in _OFTEN if epoch <= epochs)
    return replace(schedule, epochs=epochs, evaluate_after=often, precision=precision)


SMALL = (
    Plan("cifar10", "patches", _QUICK),
    Plan("mnist", "patches", _cut(replace(_QUICK, weight_decay=0.0), 20, "float32"), seeds=5),
    Plan("cifar10", "convnet", _cut(_QUICK, 10, "bfloat16"), **_FEW, seeds=2),
    Plan("cifar10", "cnn", _cut(_REFERENCE, 10, "bfloat16"), **_FEW, seeds=1),
)
CUT = (
    "What two processor cores do in 25 minutes: the patches on CIFAR-10 in full, and on MNIST with "
    "5 seeds of 10 for 20 epochs of 50. Left out: both networks on MNIST; and for both networks on "
    "CIFAR-10 the epochs after the tenth of 50, the BER objective, the losses sigmoid, unhinged, "
    "ramp, square and savage, the epsilons 0.1, 0.25, 1, 2 and 4, and all seeds but the first 2 of "
    "10 (convnet) or the first (cnn)."
)


class Images(NamedTuple):
    """Bytes (n, height, width, channels), and labels +1 or -1."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def load_images(data: str, path: str | None = None) -> Images:
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
    Images
        The two classes.

    Raises
    ------
    ValueError
        If there is no such task, or the file holds other labels.
    DatasetUnavailable
        If the images are not on this machine.

    Examples
    --------
    >>> load_images("cifar10").x_train.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    check_choice("data", data, tuple(DATA))
    if path is not None:
        found = _runs.read_images(path)._asdict()
    elif data == "mnist":
        found = datasets.load_mnist()._asdict()
    else:
        found = datasets.load_cifar10(classes=(0, 7))._asdict()
    classes = {0, 7} if data == "cifar10" else set(range(10))
    for name in ("y_train", "y_test"):
        if set(np.unique(found[name])) != classes:
            raise ValueError(f"path must hold the classes {sorted(classes)} of {data}, got {path}")
        found[name] = np.where(found[name] % 2 == 0, 1, -1)
    if data == "mnist":
        found |= {name: found[name][..., None] for name in ("x_train", "x_test")}
        found |= {name: found[name][:30_000] for name in ("x_train", "y_train")}
    return Images(**found)


def list_runs(
    names: Sequence[str], objectives: Sequence[str], epsilons: Sequence[float | None]
) -> list[Run]:
    """List the runs of an ensemble, those with one risk beside each other.

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
    list of Run
        Every combination.

    Examples
    --------
    >>> list_runs(["hinge"], ["auc"], [0.5, None])[0]
    Run(loss='hinge', objective='auc', epsilon=0.5)
    """
    risks = [(name, o) for o in objectives for name in names if name != CORRECTED]
    risks += [(CORRECTED, "mean")] * (CORRECTED in names)
    return [Run(*risk, epsilon) for risk in risks for epsilon in epsilons]


def measure(
    plan: Plan,
    seed: int,
    images: Images,
    *,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> list[dict[str, Any]]:
    """Train one ensemble, and measure every run on the test images.

    Parameters
    ----------
    plan : Plan
        What to train, and how.
    seed : int
        Of the labels' noise, the initial weights, the order and the dropout.
    images : Images
        The data.
    device : str
        Where, as torch has it.
    checkpoint : Path, optional
        As in `training.fit`.

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

    Examples
    --------
    >>> measure(SMALL[0], 0, load_images("cifar10"))  # doctest: +SKIP
    """
    runs = list_runs(plan.losses, plan.objectives, plan.epsilons)
    kept = {epsilon: _keep(images.y_train, epsilon, seed) for epsilon in plan.epsilons}
    labels = np.stack([np.where(kept[run.epsilon], 1, -1) * images.y_train for run in runs])
    build, inputs, tests = _inputs(plan.network, images, seed)
    fitted = training.fit(
        build,
        inputs.to(device),
        torch.tensor(labels, dtype=torch.float32, device=device),
        _risks(runs),
        tests.to(device),
        plan.schedule,
        seed=seed,
        names=[run.name for run in runs],
        checkpoint=checkpoint,
        report=partial(_runs.report, f"{plan.data}, {plan.network}, seed {seed}"),
    )
    rows = []
    for number, run in enumerate(runs):
        metrics = [_metrics(scores[number], images.y_test) for scores in fitted.scores.values()]
        columns = {name: [row[name] for row in metrics] for name in metrics[0]}
        flipped = round(1 - float(kept[run.epsilon].mean()), 4)
        rows.append({**run._asdict(), "flipped": flipped, **columns})
    return rows


def merge(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of parts.

    Parameters
    ----------
    documents : sequence of dict
        Contents of result files, one or more.

    Returns
    -------
    dict
        One document with all units, each once, in order.

    Raises
    ------
    ValueError
        If there is nothing to join, if a part is of the whole grid and another of a cut, or if two
        were measured with different set-ups of one network.

    Examples
    --------
    >>> merge([empty_document(None)])["units"]
    []
    """
    if len({document["cut"] for document in documents}) != 1:
        raise ValueError("documents must be of one grid: the whole one, or one cut")
    units: dict[tuple[str, str, int], dict[str, Any]] = {}
    for unit in (unit for document in documents for unit in document["units"]):
        _check_setup(units.values(), unit)
        units.setdefault(_key(unit), unit)
    return {**empty_document(documents[0]["cut"]), "units": [units[key] for key in sorted(units)]}


def empty_document(cut: str | None) -> dict[str, Any]:
    """Return a document without any unit.

    Parameters
    ----------
    cut : str or None
        What will be left out of the whole grid, in words.

    Returns
    -------
    dict
        What a file of results holds at first.

    Examples
    --------
    >>> empty_document(None)["experiment"]
    'symmetric_loss'
    """
    return {"experiment": "symmetric_loss", "cut": cut, "data": DATA, "units": []}


def summarize(
    document: dict[str, Any], metric: str, *, epoch: int | None = None
) -> list[dict[str, Any]]:
    """Average a metric over seeds.

    Parameters
    ----------
    document : dict
        The content of a result file.
    metric : {"accuracy", "median_accuracy", "ber", "auc"}
        What to average.
    epoch : int, optional
        When; by default at the end of training.

    Returns
    -------
    list of dict
        For each data set, network, loss, objective and epsilon: "mean", "half_width" of the 95 %
        interval (Student's t; NaN with a single seed) and "seeds".

    Raises
    ------
    KeyError, ValueError
        If the metric or the epoch was not measured.

    Examples
    --------
    >>> summarize(empty_document(None), "auc")
    []
    """
    from scipy.stats import t

    values: dict[tuple, list[float]] = {}
    for unit in document["units"]:
        epochs = unit["setup"]["evaluate_after"]
        column = -1 if epoch is None else epochs.index(epoch)
        for run in unit["runs"]:
            key = (unit["data"], unit["network"], run["loss"], run["objective"], run["epsilon"])
            values.setdefault(key, []).append(run[metric][column])
    rows = []
    for key, found in values.items():
        n = len(found)
        width = t.ppf(0.975, n - 1) * np.std(found, ddof=1) / math.sqrt(n) if n > 1 else math.nan
        names = zip(("data", "network", "loss", "objective", "epsilon"), key, strict=True)
        mean = {"mean": float(np.mean(found)), "half_width": float(width), "seeds": n}
        rows.append(dict(names) | mean)
    return rows


def _key(unit: dict[str, Any]) -> tuple[str, str, int]:
    return unit["data"], unit["network"], unit["seed"]


def _check_setup(units: Iterable[dict[str, Any]], new: dict[str, Any]) -> None:
    for unit in units:
        if _key(unit)[:2] == _key(new)[:2] and unit["setup"] != new["setup"]:
            raise ValueError(f"results of {_key(new)[:2]} must come from one set-up")


def _keep(labels: np.ndarray, epsilon: float | None, seed: int) -> np.ndarray:
    """Return which labels are reported as they are: the same for every loss and network."""
    if epsilon is None:
        return np.ones(len(labels), dtype=bool)
    rng = np.random.default_rng([seed, round(1000 * epsilon)])
    # Labels under the exponential mechanism are randomized response at half of its epsilon.
    return randomized_response.privatize(np.ones(len(labels), dtype=bool), epsilon / 2, rng=rng)


def _inputs(
    network: str, images: Images, seed: int
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


def _risks(runs: Sequence[Run]) -> list[training.Risk]:
    """Return what each run minimises: one object for runs that differ in their labels alone."""
    made: dict[tuple, training.Risk] = {}
    for run in runs:
        if run.loss == CORRECTED:
            made[run] = partial(_mean_risk, loss=_corrected(run.epsilon))
        else:
            # Looking into each batch's labels would stop a GPU; a missing class ends as NaN.
            risk = partial(OBJECTIVES[run.objective], loss=LOSSES[run.loss], check=False)
            made[run] = made.setdefault((run.loss, run.objective), risk)
    return [made[run] for run in runs]


def _corrected(epsilon: float | None) -> losses.Loss:
    if epsilon is None:
        return losses.logistic_loss
    keep = randomized_response.keep_probability(epsilon / 2)
    return partial(losses.corrected_logistic_loss, keep_probability=keep)


def _mean_risk(scores: torch.Tensor, labels: torch.Tensor, loss: losses.Loss) -> torch.Tensor:
    return loss(labels * scores).mean(-1)


def _metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Measure scores; one at the threshold counts half, and so does a tied pair."""
    positive, negative = scores[labels > 0], np.sort(scores[labels < 0])
    right = (np.sign(scores) * labels + 1) / 2
    above_median = (np.sign(scores - np.median(scores)) * labels + 1) / 2
    below = sum(np.searchsorted(negative, positive, side) for side in ("left", "right"))
    metrics = {
        "accuracy": right.mean(),
        "median_accuracy": above_median.mean(),
        "ber": 1 - (right[labels > 0].mean() + right[labels < 0].mean()) / 2,
        "auc": below.mean() / (2 * len(negative)),
    }
    return {name: round(float(value), 4) for name, value in metrics.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dpnotes.experiments.symmetric_loss",
        description="Train through private labels with every loss, and measure.",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the results; units that are there are kept")
    add("--small", action="store_true", help="a cut of the grid that two processor cores can do")
    add("--merge", nargs="+", type=Path, metavar="FILE", help="join these files, measure nothing")
    add("--data", nargs="+", choices=DATA, default=[*DATA], help="by default both")
    add("--networks", nargs="+", choices=_NETWORKS, default=_NETWORKS, help="by default all")
    add("--seeds", type=int, help="at most so many")
    add("--images", help="the images of --data as one .npz (default: from dpnotes.datasets)")
    add("--device", default="cpu", help="as torch has it (default: cpu); CUDA uses bfloat16")
    add("--part", type=_runs.part, default=(1, 1), metavar="i/N", help="measure one part of N")
    add("--checkpoints", type=Path, metavar="FOLDER", help="keep the state of an unfinished unit")
    return parser


def _units(chosen: argparse.Namespace) -> list[tuple[Plan, int]]:
    """List what is to be measured, one plan after the other."""
    plans = [
        plan
        for plan in (SMALL if chosen.small else WHOLE)
        if plan.data in chosen.data and plan.network in chosen.networks
    ]
    if torch.device(chosen.device).type == "cuda":
        plans = [
            plan._replace(schedule=replace(plan.schedule, precision="bfloat16")) for plan in plans
        ]
    seeds = math.inf if chosen.seeds is None else chosen.seeds
    units = [(plan, seed) for plan in plans for seed in range(plan.seeds) if seed < seeds]
    number, total = chosen.part
    return units[number - 1 :: total]


def _setup(plan: Plan) -> dict[str, Any]:
    setup = asdict(plan.schedule)
    setup["evaluate_after"] = sorted({*plan.schedule.evaluate_after, plan.schedule.epochs})
    setup |= {name: getattr(plan, name) for name in ("losses", "objectives", "epsilons")}
    # Through JSON and back, so that it compares equal with what is read from a file.
    return json.loads(json.dumps(setup))


def _measure_unit(
    plan: Plan, seed: int, images: Images, commit: str, chosen: argparse.Namespace
) -> None:
    """Add a unit to the results, unless they hold it."""
    document = empty_document(CUT if chosen.small else None)
    if chosen.out.exists():
        document = merge([document, _runs.read(chosen.out)])
    unit = {
        "data": plan.data,
        "network": plan.network,
        "seed": seed,
        "setup": _setup(plan),
    }
    _check_setup(document["units"], unit)
    if any(_key(known) == _key(unit) for known in document["units"]):
        return
    checkpoint = None
    if chosen.checkpoints:
        chosen.checkpoints.mkdir(parents=True, exist_ok=True)
        checkpoint = chosen.checkpoints / f"{plan.data}-{plan.network}-{seed}.pt"
    began = time.perf_counter()
    rows = measure(plan, seed, images, device=chosen.device, checkpoint=checkpoint)
    unit["provenance"] = _runs.provenance(commit, chosen.device, time.perf_counter() - began)
    unit["runs"] = rows
    _runs.write(chosen.out, merge([document, {**document, "units": [unit]}]), _ROWS)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)


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
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.merge:
        _runs.write(chosen.out, merge([_runs.read(path) for path in chosen.merge]), _ROWS)
        return 0
    if chosen.images and len(chosen.data) > 1:
        parser.error("--images is for one data set: name it with --data")
    load = cache(partial(load_images, path=chosen.images))
    # Asked once: the checkout may move on while the code that was loaded runs.
    commit = _runs.commit()
    for plan, seed in _units(chosen):
        _measure_unit(plan, seed, load(plan.data), commit, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
