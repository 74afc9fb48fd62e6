"""Airplanes against horses through private labels: losses x objectives x epsilons x seeds.

The whole grid is one command:

    python -m dpnotes.experiments.symmetric_loss --device cuda --out symmetric_loss.json

All 10,000 training images of the two classes of CIFAR-10 are used, with labels drawn by the
exponential mechanism at epsilon, which is randomized response at epsilon / 2. The 2,000 test
images keep their true labels.

A *unit* is one network and one seed, with every loss, objective and epsilon as one ensemble. The
file grows unit by unit, and a unit that it holds is not measured again. ``--part 2/5`` measures
every fifth unit, from the second, and ``--merge FILES`` joins the files of parts.
"""

import argparse
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import dpnotes
from dpnotes import randomized_response, training
from dpnotes import symmetric_loss as losses

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

_PATCHES = {"filters": 128, "size": 6, "stride": 3}
_OFTEN = (1, 2, 3, 5, 8, 12, 20, 30, 40, 50)
SCHEDULES = {
    "cnn": training.Schedule(evaluate_after=_OFTEN),
    "convnet": training.Schedule(evaluate_after=_OFTEN, learning_rate=1e-3),
    "patches": training.Schedule(evaluate_after=_OFTEN, learning_rate=1e-3),
}


class Run(NamedTuple):
    """One model of an ensemble: what it minimises, and how private its labels are."""

    loss: str
    objective: str
    epsilon: float | None

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{self.loss}, {self.objective}, epsilon {self.epsilon}"


class Images(NamedTuple):
    """The pair of classes: bytes (n, 32, 32, 3), and labels +1 (airplane) or -1 (horse)."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def load_images(path: str | None = None) -> Images:
    """Load the airplanes and horses of CIFAR-10.

    Parameters
    ----------
    path : str, optional
        A file from ``python -m dpnotes.datasets cifar10 --classes 0 7 --out pair.npz``. By default
        the images come from where `dpnotes.datasets.load_cifar10` finds them.

    Returns
    -------
    Images
        The two classes.

    Raises
    ------
    ValueError
        If the file holds other classes.

    Examples
    --------
    >>> load_images("pair.npz").x_train.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    if path is None:
        from dpnotes.datasets import load_cifar10

        parts = load_cifar10(classes=(0, 7))._asdict()
    else:
        with np.load(path, allow_pickle=False) as archive:
            parts = {name: archive[name] for name in Images._fields}
    for name in ("y_train", "y_test"):
        if set(np.unique(parts[name])) != {0, 7}:
            raise ValueError(f"path must hold CIFAR-10's classes 0 and 7, got {path}")
        parts[name] = np.where(parts[name] == 0, 1, -1)
    return Images(**parts)


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
    network: str,
    seed: int,
    runs: Sequence[Run],
    images: Images,
    schedule: training.Schedule,
    *,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> list[dict[str, Any]]:
    """Train one ensemble, and measure every run on the test images.

    Parameters
    ----------
    network : {"cnn", "convnet", "patches"}
        The reference network, a small modern one, or a linear model of fixed patch features.
    seed : int
        Of the labels' noise, the initial weights, the order and the dropout.
    runs : sequence of Run
        What to train.
    images : Images
        The data.
    schedule : training.Schedule
        How to train.
    device : str
        Where, as torch has it.
    checkpoint : Path, optional
        As in `training.fit`.

    Returns
    -------
    list of dict
        For each run its description, the share of labels that were flipped, and accuracy at
        threshold 0, accuracy at the median score, balanced error and AUC at each evaluated epoch.

    Raises
    ------
    FloatingPointError
        If a run diverges.

    Examples
    --------
    >>> measure("cnn", 0, runs, load_images(), SCHEDULES["cnn"])  # doctest: +SKIP
    """
    flips = {epsilon: _keep(images.y_train, epsilon, seed) for _, _, epsilon in runs}
    labels = np.stack([np.where(flips[run.epsilon], 1, -1) * images.y_train for run in runs])
    build, inputs, tests = _inputs(network, images, seed)
    fitted = training.fit(
        build,
        inputs.to(device),
        torch.tensor(labels, dtype=torch.float32, device=device),
        _risks(runs),
        tests.to(device),
        schedule,
        seed=seed,
        names=[run.name for run in runs],
        checkpoint=checkpoint,
        report=partial(print, f"{network}, seed {seed}:", file=sys.stderr, flush=True),
    )
    rows = []
    for number, run in enumerate(runs):
        metrics = [_metrics(scores[number], images.y_test) for scores in fitted.scores.values()]
        columns = {name: [row[name] for row in metrics] for name in metrics[0]}
        flipped = round(1 - float(flips[run.epsilon].mean()), 4)
        rows.append({**run._asdict(), "flipped": flipped, **columns})
    return rows


def merge(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of parts.

    Parameters
    ----------
    documents : sequence of dict
        Contents of result files.

    Returns
    -------
    dict
        One document with all units, each once, in order.

    Raises
    ------
    ValueError
        If two parts were measured with different set-ups of one network.

    Examples
    --------
    >>> merge([])["units"]
    []
    """
    units: dict[tuple[str, int], dict[str, Any]] = {}
    for unit in (unit for document in documents for unit in document["units"]):
        _check_setup(units.values(), unit["network"], unit["setup"])
        units.setdefault((unit["network"], unit["seed"]), unit)
    return {
        "experiment": "symmetric_loss",
        "data": "CIFAR-10, airplane (+1) against horse (-1): 10,000 training images with labels "
        "from the exponential mechanism at epsilon (label privacy epsilon / 2), 2,000 test images",
        "units": [units[key] for key in sorted(units)],
    }


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
        For each network, loss, objective and epsilon: "mean", "half_width" of the 95 % interval
        (Student's t; NaN with a single seed) and "seeds".

    Raises
    ------
    KeyError, ValueError
        If the metric or the epoch was not measured.

    Examples
    --------
    >>> summarize(merge([]), "auc")
    []
    """
    from scipy.stats import t

    values: dict[tuple, list[float]] = {}
    for unit in document["units"]:
        epochs = unit["setup"]["evaluate_after"]
        column = -1 if epoch is None else epochs.index(epoch)
        for run in unit["runs"]:
            key = (unit["network"], run["loss"], run["objective"], run["epsilon"])
            values.setdefault(key, []).append(run[metric][column])
    rows = []
    for key, found in values.items():
        n = len(found)
        width = t.ppf(0.975, n - 1) * np.std(found, ddof=1) / math.sqrt(n) if n > 1 else math.nan
        names = dict(zip(("network", "loss", "objective", "epsilon"), key, strict=True))
        rows.append({**names, "mean": float(np.mean(found)), "half_width": width, "seeds": n})
    return rows


def _check_setup(units: Iterable[dict[str, Any]], network: str, setup: dict[str, Any]) -> None:
    if any(unit["network"] == network and unit["setup"] != setup for unit in units):
        raise ValueError(f"results of {network} must come from one set-up")


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
        features = training.patch_features(images.x_train, images.x_test, **_PATCHES, rng=seed)
        return training.linear(features[0].shape[1]), *map(torch.from_numpy, features)
    build = {"cnn": training.reference_cnn, "convnet": training.small_convnet}[network]
    return build, torch.from_numpy(images.x_train), torch.from_numpy(images.x_test)


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
    return {name: round(float(value), 5) for name, value in metrics.items()}


def _provenance(device: str, seconds: float) -> dict[str, Any]:
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    on_gpu = torch.device(device).type == "cuda"
    return {
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if on_gpu else f"CPU {platform.machine()}",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "dpnotes": dpnotes.__version__,
        "seconds": round(seconds, 1),
    }


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"units": []}


def _write(path: Path, document: dict[str, Any]) -> None:
    """Write a document under its name only when it is whole, with one run a line."""
    text = json.dumps(document, separators=(",", ":"))
    text = text.replace('{"network"', '\n{"network"').replace('{"loss"', '\n{"loss"')
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)


def _part(words: str) -> tuple[int, int]:
    number, total = (int(word) for word in words.split("/"))
    if not 1 <= number <= total:
        raise ValueError("a part is i/N with 1 <= i <= N")
    return number, total


def _epsilon(word: str) -> float | None:
    return None if word == "none" else float(word)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dpnotes.experiments.symmetric_loss",
        description="Train through private labels with every loss, and measure.",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the results; units that are there are kept")
    add("--merge", nargs="+", type=Path, metavar="FILE", help="join these files, measure nothing")
    add("--images", help="airplanes and horses as one .npz (default: from dpnotes.datasets)")
    add("--device", default="cpu", help="as torch has it (default: cpu)")
    add("--part", type=_part, default=(1, 1), metavar="i/N", help="measure this part of the units")
    add("--networks", nargs="+", choices=SCHEDULES, default=[*SCHEDULES])
    add("--losses", nargs="+", choices=[*LOSSES, CORRECTED], default=[*LOSSES, CORRECTED])
    add("--objectives", nargs="+", choices=OBJECTIVES, default=[*OBJECTIVES])
    add("--epsilons", nargs="+", type=_epsilon, default=EPSILONS, help="numbers, or none")
    add("--seeds", type=int, default=10, help="how many (default: 10)")
    add("--epochs", type=int, help="by default 50")
    add("--precision", choices=("float32", "bfloat16"), help="default: bfloat16 on CUDA")
    add("--checkpoints", type=Path, metavar="FOLDER", help="keep the state of an unfinished unit")
    return parser


def _schedule(network: str, chosen: argparse.Namespace) -> training.Schedule:
    schedule = SCHEDULES[network]
    epochs = chosen.epochs or schedule.epochs
    on_gpu = torch.device(chosen.device).type == "cuda"
    return replace(
        schedule,
        epochs=epochs,
        evaluate_after=(*(epoch for epoch in _OFTEN if epoch < epochs), epochs),
        precision=chosen.precision or ("bfloat16" if on_gpu else "float32"),
    )


def _measure_unit(network: str, seed: int, images: Images, chosen: argparse.Namespace) -> None:
    """Add a unit to the results, unless they hold it."""
    document = _read(chosen.out)
    schedule = _schedule(network, chosen)
    grid = {name: getattr(chosen, name) for name in ("losses", "objectives", "epsilons")}
    # Through JSON and back, so that it compares equal with what is read from a file.
    setup = json.loads(json.dumps({**asdict(schedule), **grid}))
    _check_setup(document["units"], network, setup)
    if any((unit["network"], unit["seed"]) == (network, seed) for unit in document["units"]):
        return
    began = time.perf_counter()
    checkpoint = chosen.checkpoints and chosen.checkpoints / f"{network}-{seed}.pt"
    runs = list_runs(chosen.losses, chosen.objectives, chosen.epsilons)
    rows = measure(
        network, seed, runs, images, schedule, device=chosen.device, checkpoint=checkpoint
    )
    unit = {
        "network": network,
        "seed": seed,
        "setup": setup,
        "provenance": _provenance(chosen.device, time.perf_counter() - began),
        "runs": rows,
    }
    _write(chosen.out, merge([document, {"units": [unit]}]))
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
    chosen = _parser().parse_args(arguments)
    if chosen.merge:
        _write(chosen.out, merge([_read(path) for path in chosen.merge]))
        return 0
    images = load_images(chosen.images)
    number, total = chosen.part
    units = [(network, seed) for network in chosen.networks for seed in range(chosen.seeds)]
    for network, seed in units[number - 1 :: total]:
        _measure_unit(network, seed, images, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
