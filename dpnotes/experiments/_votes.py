"""The votes of the teachers, in a file beside the results: trained once, and verified when read."""

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpnotes import datasets, pate
from dpnotes._files import written_whole
from dpnotes.experiments import _runs
from dpnotes.experiments._students import CLASSES, TeacherPlan, train_teachers
from dpnotes.experiments._units import RunError

_BINS = 20


class Teaching(NamedTuple):
    """What teachers did: votes (10,000, 10), and what the results say of them."""

    votes: np.ndarray
    summary: dict[str, Any]


def read(path: Path, plan: TeacherPlan) -> Teaching:
    """Read votes, and compare them with their hash and with how teachers train here.

    Raises
    ------
    RunError
        If they are damaged, or of teachers that were trained in another way.
    """
    votes, words = _runs.read_arrays(path, ("votes", "summary"))
    try:
        summary = json.loads(str(words))
        whole = sha256(votes) == summary["votes_sha256"]
    except (ValueError, LookupError, TypeError) as error:
        raise RunError(f"{path} holds no votes that were kept here: {error}") from error
    if not whole:
        raise RunError(f"the votes in {path} are damaged: they have another SHA-256")
    if summary.get("setup") != plain(asdict(plan)):
        raise RunError(f"votes must be of teachers trained as here, got {path}")
    return Teaching(votes, summary)


def train(images: datasets.ImageData, plan: TeacherPlan, *, tests: int, device: str) -> Teaching:
    """Train teachers, and let them vote; the last `tests` images that they see are no pool."""
    at, began = _runs.loaded_commit(), time.perf_counter()
    said = train_teachers(images, plan, device=device)
    votes = pate.count_votes(said, CLASSES)
    about = _runs.provenance(at, device, time.perf_counter() - began)
    return Teaching(votes, {**_summary(said, votes, images, plan, tests), "provenance": about})


def keep(path: Path, teaching: Teaching) -> None:
    """Write votes and their summary into a file, whole or not at all."""
    with written_whole("votes", path) as out:
        np.savez_compressed(out, votes=teaching.votes, summary=json.dumps(teaching.summary))


def _summary(
    said: np.ndarray, votes: np.ndarray, images: datasets.ImageData, plan: TeacherPlan, tests: int
) -> dict[str, Any]:
    alone = (said == images.y_test).mean(axis=1)
    right = votes.argmax(axis=1) == images.y_test
    shares = votes[:-tests].max(axis=1) / plan.teachers
    accuracy = {"mean": alone.mean(), "lowest": alone.min(), "highest": alone.max()}
    plurality = {"pool": right[:-tests].mean(), "test": right[-tests:].mean()}
    return {
        "setup": plain(asdict(plan)),
        "number": plan.teachers,
        "images_each": len(images.x_train) // plan.teachers,
        "votes_sha256": sha256(votes),
        "accuracy": {name: round(float(value), 4) for name, value in accuracy.items()},
        "plurality_accuracy": {name: round(float(value), 4) for name, value in plurality.items()},
        "agreement": np.histogram(shares, bins=_BINS, range=(0, 1))[0].tolist(),
    }


def sha256(votes: np.ndarray) -> str:
    """Return the hash of votes, whatever their type."""
    return hashlib.sha256(votes.astype(np.int64).tobytes()).hexdigest()


def plain(setup: dict[str, Any]) -> dict[str, Any]:
    """Send a set-up through JSON, so that it compares equal with what is read from a file."""
    return json.loads(json.dumps(setup))
