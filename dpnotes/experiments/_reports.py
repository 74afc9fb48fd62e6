"""Blocks of private reports: written to a file, read and counted, each by itself.

A block holds the reports of some people, in the smallest form of their mechanism: a byte a person
for randomized response, a bit a category for unary encoding. Which reports these are is decided by
its settings alone, so whoever writes a block, and however often, writes the same bytes.
"""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpnotes import randomized_response, unary_encoding
from dpnotes._files import written_whole

MECHANISMS = ("randomized response", "unary encoding")
EPSILON = 1.0
SEED = 0
# The truths are drawn from a table of so many entries.
_TABLE = 1 << 16
_STATUS = Path("/proc/self/status")


class Block(NamedTuple):
    """Some people, and how they report.

    Attributes
    ----------
    mechanism : {"randomized response", "unary encoding"}
        How they report.
    categories : int
        Among how many, at most 256.
    number : int
        Which block it is, from 0 on; its chance is a branch of one seed.
    people : int
        How many report.
    """

    mechanism: str
    categories: int
    number: int
    people: int


def shares(categories: int) -> np.ndarray:
    """Return the entries of the table of truths: category j comes up in proportion to 1/(j + 1)."""
    weights = 1 / np.arange(1, categories + 1)
    places = (np.arange(_TABLE) + 0.5) / _TABLE
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], places).astype(np.uint8)


def draw(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Draw the truths of a block, and the reports as they are stored.

    Returns
    -------
    tuple of ndarray of uint8
        Truths of shape (people,); reports of shape (people,), or (people, bytes) with packed bits.
    """
    # What `SeedSequence(SEED).spawn` gives as its child of this number.
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(block.number,)))
    truths = shares(block.categories)[rng.integers(0, _TABLE, block.people, dtype=np.uint16)]
    if block.mechanism == "randomized response":
        reports = randomized_response.privatize(
            truths, EPSILON, categories=block.categories, rng=rng
        )
        return truths, reports
    bits = np.eye(block.categories, dtype=np.uint8)[truths]
    reports = unary_encoding.perturb(bits, *unary_encoding.probabilities(EPSILON), rng=rng)
    return truths, np.packbits(reports, axis=1)


def path_of(folder: Path, block: Block) -> Path:
    """Return where the reports of a block lie."""
    name = f"{block.mechanism.replace(' ', '_')}-{block.categories}-{block.people}"
    return folder / name / f"{block.number:06d}.npy"


def write(path: Path, block: Block) -> np.ndarray:
    """Write the reports of a block, all or none, and return how many people are in each category.

    The reports are on the disk then, and no longer in the system's memory where it can be told so.
    """
    truths, reports = draw(block)
    with written_whole("folder", path) as out:
        np.save(out, reports, allow_pickle=False)
    _forget(path)
    return np.bincount(truths, minlength=block.categories)


def count(path: Path, block: Block) -> np.ndarray:
    """Read the reports of a block and count those that support each category."""
    return tally(np.load(path, allow_pickle=False), block.mechanism, block.categories)


def counted(path: Path, block: Block) -> dict[str, Any]:
    """Return what `count` finds, in how many seconds, and the memory of this process."""
    clock = Clock()
    counts = count(path, block)
    about = {"bytes": path.stat().st_size, "counts": counts.tolist()}
    return {**about, **clock.read(), **memory()}


def tally(reports: np.ndarray, mechanism: str, categories: int) -> np.ndarray:
    """Count the reports that support each category: bytes, or rows of packed bits."""
    if mechanism == "randomized response":
        return randomized_response.count_reports(reports, categories=categories)
    return unary_encoding.count_ones(np.unpackbits(reports, axis=1, count=categories))


def estimate(counts: np.ndarray, people: int, mechanism: str) -> np.ndarray:
    """Estimate how many people are in each category from the counts of all blocks."""
    if mechanism == "randomized response":
        return randomized_response.estimate_counts(counts, EPSILON)
    return unary_encoding.aggregate_ones(counts, people, *unary_encoding.probabilities(EPSILON))


def variance(truth: np.ndarray, mechanism: str) -> np.ndarray:
    """Return the exact variance of `estimate`."""
    if mechanism == "randomized response":
        return randomized_response.variance(truth, EPSILON)
    return unary_encoding.variance(truth, *unary_encoding.probabilities(EPSILON))


class Clock:
    """Seconds on the wall and of this processor since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Return both."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"seconds": round(wall, 4), "cpu_seconds": round(cpu, 4)}


def memory() -> dict[str, int | None]:
    """Return what this process takes of memory in MB, and took at most; None where nobody says."""
    found = {}
    if _STATUS.exists():
        words = (line.split() for line in _STATUS.read_text(encoding="utf-8").splitlines())
        found = {word[0]: int(word[1]) for word in words if word[0] in ("VmRSS:", "VmHWM:")}
    taken, most = (found.get(name) for name in ("VmRSS:", "VmHWM:"))
    return {
        "taken_mb": None if taken is None else taken * 1024 // 10**6,
        "most_mb": None if most is None else most * 1024 // 10**6,
    }


def _forget(path: Path) -> None:
    """Ask the system to read the file from the disk when it is wanted next."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
