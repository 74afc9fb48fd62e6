"""From 250 teachers to a private student on MNIST: votes, noise, cost and accuracy.

The whole grid is one command, and a cut of it that two processor cores can do is another:

    python -m dpnotes.experiments.pate --device cuda --out pate.jsonl
    python -m dpnotes.experiments.pate --small --out pate.jsonl

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

A *unit* is one seed. The teachers are trained once, before; their votes are kept beside the results
(``--votes``), with their hash. A ``--part`` trains no teachers: machines without a cluster
begin with ``--seeds 1`` on one of them, and copy its votes.

The costs of Laplace noise need dp-accounting.

`_run` has what is common to all files of results. Here the second line is of the teachers, and a
unit has records:

    {"experiment": "pate",
     "teachers": {"setup": {...}, "number", "images_each", "votes_sha256",
                  "accuracy": {"mean", "lowest", "highest"} of one teacher on all test images,
                  "plurality_accuracy": {"pool", "test"},
                  "agreement": [20 counts of pool images, by the winner's share of the votes],
                  "provenance": {...}}}
    {"experiment": "pate",
     "unit": {"seed": 0},
     "setup": {"student": {...}, "pool": 9000, "delta": 1e-5},
     "provenance": {...},
     "records": [{
        "setting": "lnmax, scale 20", "mechanism", "queries", "scale": of the noise on the counts,
        "threshold", "sigma_threshold", "most_answers": where answering stops, "seed",
        "asked": queries before it stopped, "answered",
        "label_accuracy": share of answers that are true, "student_accuracy",
        "epsilon": whatever the votes, fixed in advance; null without privacy,
        "epsilon_data_dependent": of these votes and answers, itself a secret; null likewise,
        "order": the Rényi order at which the latter was found}, ...]}
"""

import argparse
import hashlib
import json
import math
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpnotes import datasets, pate
from dpnotes._checks import check_choice
from dpnotes._files import written_whole
from dpnotes.experiments import _run
from dpnotes.experiments._run import RunError, Unit
from dpnotes.experiments._students import CLASSES, STUDENT, TEACHERS, train_students, train_teachers

DATA = (
    "MNIST: 60,000 private training images; of the test images the first 9,000 are the public "
    "pool, and the last 1,000 test the student"
)
DELTA = 1e-5
MECHANISMS = ("private data", "plurality", "lnmax", "confident gnmax")

_TESTS = 1_000
ROWS = "records"


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


class Answers(NamedTuple):
    """What one setting answered: rows of the pool that were asked, and labels, -1 for none."""

    rows: np.ndarray
    labels: np.ndarray


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
    2.7535
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
    2.7535
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


def measure_unit(unit: Unit, chosen: argparse.Namespace, votes: np.ndarray) -> list[dict[str, Any]]:
    """Ask with those settings of a seed that the file lacks, train students, and measure them.

    Parameters
    ----------
    unit : Unit
        The seed of the queries, the noise and the students; and the settings.
    chosen : Namespace
        The command line.
    votes : ndarray of int64, shape (tests, classes)
        What the teachers vote. The last 1,000 tests are for the students.

    Returns
    -------
    list of dict
        Records as the file has them.
    """
    images, seed = _run.load_images("mnist", chosen.images), unit.key["seed"]
    pool, truth = images.x_test[:-_TESTS], images.y_test[:-_TESTS]
    records, lessons = [], []
    for row in unit.rows:
        setting = Setting(*row.values())
        answers = rows, labels = ask(setting, votes[:-_TESTS], seed)
        told = labels >= 0
        lesson = pool[rows[told]], labels[told]
        accuracy = _run.average(lesson[1] == truth[rows[told]]) if told.any() else None
        private = setting.mechanism == "private data"
        lessons.append((images.x_train, images.y_train) if private else lesson)
        record = {"seed": seed, "asked": len(rows), "answered": int(told.sum())}
        record |= {"label_accuracy": accuracy, "student_accuracy": None}
        records.append({**row, **record, **costs(setting, votes[:-_TESTS], answers)})
    tests, labels = images.x_test[-_TESTS:], images.y_test[-_TESTS:]
    said = train_students(lessons, pool, tests, STUDENT, seed=seed, device=chosen.device)
    for record, answers in zip(records, said, strict=True):
        record["student_accuracy"] = _run.average(answers == labels)
    return records


def summarize(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Average the records of each setting over seeds.

    Parameters
    ----------
    document : dict
        What `datasets.load_results` returns.

    Returns
    -------
    list of dict
        For each setting its "setting", "epsilon", "seeds", the means of "answered",
        "label_accuracy", "student_accuracy" and "epsilon_data_dependent" (NaN where no record has
        one), and "lowest" and "highest", the extremes of the students' accuracy.

    Examples
    --------
    >>> summarize({"units": [], "records": []})
    []
    """
    units = document.get("units", [])
    if any(unit["setup"] != units[0]["setup"] for unit in units):
        raise ValueError("document must hold units of one set-up, to average over seeds")
    averaged = ["answered", "label_accuracy", "student_accuracy", "epsilon_data_dependent"]
    columns = ["setting", "seed", "epsilon", *averaged]
    records = pd.DataFrame(document["records"], columns=columns)
    if records.duplicated(["setting", "seed"]).any():
        raise ValueError("document must hold each setting once a seed")
    groups = records.groupby("setting", sort=False)
    rows = groups.agg(
        epsilon=("epsilon", "first"),
        seeds=("seed", "size"),
        **{name: (name, lambda values: values.mean()) for name in averaged},
        lowest=("student_accuracy", "min"),
        highest=("student_accuracy", "max"),
    )
    return rows.reset_index().to_dict("records")


# The teachers, and their votes.


# Votes (10,000, 10), and what the results say of those who cast them.
Teaching = tuple[np.ndarray, dict[str, Any]]


def prepare(chosen: argparse.Namespace, shared: dict[str, Any]) -> tuple[dict, np.ndarray]:
    """Take up the votes that were kept, or have teachers trained and keep theirs."""
    if find_spec("dp_accounting") is None:
        raise RunError("costs of Laplace noise need dp-accounting: pip install dpnotes[accounting]")
    path = chosen.votes or chosen.out.with_suffix(".votes.npz")
    if not path.exists():
        if "teachers" in shared:
            raise RunError(f"the votes behind {chosen.out} are not at {path}: name them by --votes")
        if chosen.part[1] > 1:
            raise RunError(
                f"no votes at {path}, and a part trains no teachers: train them once with "
                "--seeds 1, or say with --votes where they are"
            )
        [(_, teaching)] = _run.compute(_train, [chosen], chosen)
        if isinstance(teaching, Exception):
            raise teaching
        with written_whole("votes", path) as out:
            np.savez_compressed(out, votes=teaching[0], summary=json.dumps(teaching[1]))
    votes, summary = read_votes(path)
    return {"teachers": summary}, votes


def read_votes(path: Path) -> Teaching:
    """Read votes, and compare them with their hash and with how teachers train here.

    Parameters
    ----------
    path : Path
        Where they are kept.

    Returns
    -------
    Teaching
        The votes and their summary.
    """
    votes, words = _run.read_arrays(path, ("votes", "summary"))
    summary = json.loads(str(words))
    if _hash(votes) != summary.get("votes_sha256"):
        raise RunError(f"the votes in {path} are damaged: they have another SHA-256")
    if summary["setup"] != json.loads(json.dumps(asdict(TEACHERS))):
        raise RunError(f"votes must be of teachers trained as here, got {path}")
    return votes, summary


def _train(chosen: argparse.Namespace) -> Teaching:
    """Train teachers, and let them vote."""
    images, began = _run.load_images("mnist", chosen.images), time.perf_counter()
    said = train_teachers(images, TEACHERS, device=chosen.device)
    votes = pate.count_votes(said, CLASSES)
    about = _run.describe_run(chosen.device, time.perf_counter() - began)
    return votes, {**_summarize_votes(said, votes, images), "provenance": about}


def _summarize_votes(said: np.ndarray, votes: np.ndarray, images: datasets.ImageData) -> dict:
    alone = (said == images.y_test).mean(axis=1)
    right = votes.argmax(axis=1) == images.y_test
    shares = votes[:-_TESTS].max(axis=1) / TEACHERS.teachers
    accuracy = {"mean": alone, "lowest": alone.min(), "highest": alone.max()}
    plurality = {"pool": right[:-_TESTS], "test": right[-_TESTS:]}
    return {
        "setup": asdict(TEACHERS),
        "number": TEACHERS.teachers,
        "images_each": len(images.x_train) // TEACHERS.teachers,
        "votes_sha256": _hash(votes),
        "accuracy": {name: _run.average(values) for name, values in accuracy.items()},
        "plurality_accuracy": {name: _run.average(values) for name, values in plurality.items()},
        "agreement": np.histogram(shares, bins=20, range=(0, 1))[0].tolist(),
    }


def _hash(votes: np.ndarray) -> str:
    return hashlib.sha256(votes.astype(np.int64).tobytes()).hexdigest()


# The units.


def list_units(chosen: argparse.Namespace) -> list[Unit]:
    seeds = range(min(SMALL_SEEDS if chosen.small else SEEDS, chosen.seeds))
    setup = {"student": asdict(STUDENT), "pool": 10_000 - _TESTS, "delta": DELTA}
    names = ("setting", *Setting._fields[1:])
    rows = [dict(zip(names, setting, strict=True)) for setting in SETTINGS]
    return [Unit({"seed": seed}, setup, rows) for seed in seeds]


def add_options(parser: argparse.ArgumentParser) -> None:
    where = "where votes are kept (default: OUT with .votes.npz)"
    parser.add_argument("--votes", type=Path, help=where)


if __name__ == "__main__":
    raise SystemExit(_run.main("pate"))
