"""A billion private reports, written, read and counted, a block at a time.

The whole run is one command, and a cut of it that takes a few seconds is another:

    python -m dpnotes.experiments.billions --out billions.jsonl
    python -m dpnotes.experiments.billions --out billions.jsonl --small

*People.* Each is in one of 16 categories, category j in proportion to 1/(j + 1), and reports it at
epsilon 1: by randomized response, a byte, or by unary encoding, a bit a category, packed. Chance
comes from branches of one seed, one a block, so that a block is the same whoever writes it.

*Blocks.* A unit is a block of people. Its reports are written to a file of their own below
``--folder``, which then is read again and counted. A process that is killed loses its block only,
and the next start writes that one again. What is in memory is a block, whatever the number of
people, and the number of people may be raised later.

On a cluster of Dask, ``--scheduler ADDRESS`` spreads the blocks over its workers, which have to see
the same folder.

*Collecting.* With ``--collect`` all files of a folder are counted again in one pass, by so many
processes (``--workers``), and nothing is written to them.

`_run` has what is common to all files of results. Here a line has

     "unit": {"mechanism", "categories", "block": its number},
     "setup": {"epsilon", "seed", "people": in the block},
     "runs": [
        {"step": "write", "bytes", "truth": [people in each category], "seconds", "cpu_seconds"},
        {"step": "count", "bytes", "counts": [reports for each], "seconds", "cpu_seconds",
         "taken_mb", "most_mb": memory of the process, at the end and at most, with all that the
         experiment imports; 0 where the system does not say}]

or, of a pass,

     "unit": {"mechanism", "categories", "block": "all", "workers"},
     "setup": {"epsilon", "seed", "people": in each block, "blocks"},
     "runs": [{"step": "collect", ..., "cpu_seconds" and "most_mb" of all workers together and
                  of the largest one}]
"""

import argparse
import os
import re
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpnotes import randomized_response, unary_encoding
from dpnotes._files import written_whole
from dpnotes.experiments import _run
from dpnotes.experiments._run import RunError, Unit

MECHANISMS = ("randomized response", "unary encoding")
EPSILON, SEED = 1.0, 0
PEOPLE, BLOCK, CATEGORIES = 10**9, 10**7, 16
SMALL_PEOPLE = 2 * 10**7
CUT = "What takes a few seconds: the first twenty million people."
DATA = "simulated people, category j of k in proportion to 1/(j + 1)"
# The truths are drawn from a table of so many entries.
_TABLE = 1 << 16
_STATUS = Path("/proc/self/status")


# A block: a byte a person for randomized response, a bit a category for unary encoding.


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


def write(path: Path, block: Block) -> dict[str, Any]:
    """Write the reports of a block, all or none, and return the row of this step.

    The reports are on the disk then, and no longer in the system's memory where it can be told so.
    """
    read_clock = start_clock()
    truths, reports = draw(block)
    with written_whole("folder", path) as out:
        np.save(out, reports, allow_pickle=False)
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    truth = np.bincount(truths, minlength=block.categories).tolist()
    return {"bytes": path.stat().st_size, "truth": truth, **read_clock()}


def count(path: Path, block: Block) -> dict[str, Any]:
    """Read the reports of a block, count those for each category, and return the row of this."""
    read_clock = start_clock()
    counts = tally(np.load(path, allow_pickle=False), block.mechanism, block.categories)
    about = {"bytes": path.stat().st_size, "counts": counts.tolist()}
    return {**about, **read_clock(), **measure_memory()}


def tally(reports: np.ndarray, mechanism: str, categories: int) -> np.ndarray:
    """Count the reports that support each category: bytes, or rows of packed bits."""
    if mechanism == "randomized response":
        return randomized_response.count_reports(reports, categories=categories)
    return unary_encoding.count_ones(np.unpackbits(reports, axis=1, count=categories))


def estimate(
    counts: np.ndarray, truth: np.ndarray, people: int, mechanism: str
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate how many people are in each category from the counts of all blocks.

    Returns
    -------
    tuple of ndarray
        The estimates; their errors in standard deviations, of which the variance is exact.
    """
    if mechanism == "randomized response":
        found = randomized_response.estimate_counts(counts, EPSILON)
        variance = randomized_response.variance(truth, EPSILON)
    else:
        probabilities = unary_encoding.probabilities(EPSILON)
        found = unary_encoding.aggregate_ones(counts, people, *probabilities)
        variance = unary_encoding.variance(truth, *probabilities)
    return found, (found - truth) / np.sqrt(variance)


def start_clock() -> Callable[[], dict[str, float]]:
    """Return what tells the seconds from now on, on the wall and of this processor."""
    began = time.perf_counter(), time.process_time()

    def read() -> dict[str, float]:
        wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        return {"seconds": round(wall, 4), "cpu_seconds": round(cpu, 4)}

    return read


def measure_memory() -> dict[str, int]:
    """Return what this process takes of memory in MB, and took at most; 0 where nobody says."""
    text = _STATUS.read_text(encoding="utf-8") if _STATUS.exists() else ""
    sizes = re.findall(r"^Vm(RSS|HWM):\s+(\d+)", text, re.M)
    found = {key: int(size) * 1024 // 10**6 for key, size in sizes}
    return {"taken_mb": found.get("RSS", 0), "most_mb": found.get("HWM", 0)}


# The run.


def summarize(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Add up the blocks of each mechanism, number of categories and size of a block.

    Parameters
    ----------
    document : dict
        What `datasets.load_results` returns.

    Returns
    -------
    list of dict
        For each its "mechanism", "categories", "block" (people in one), "blocks", "people",
        "bytes", "truth", "counts", "estimate", "deviations" (errors in standard deviations of the
        estimate), "taken_mb" and "most_mb" (memory between blocks, and at most), and the "seconds"
        and "cpu_seconds" of "write" and "count", each in a dict.

    Examples
    --------
    >>> summarize({"units": []})
    []
    """

    def kind_of(unit: dict[str, Any]) -> tuple[str, int, int]:
        return unit["mechanism"], unit["categories"], unit["setup"]["people"]

    blocks = sorted((unit for unit in document["units"] if unit["block"] != "all"), key=kind_of)
    return [_add_up(*kind, [*units]) for kind, units in groupby(blocks, kind_of)]


def _add_up(mechanism: str, categories: int, block: int, units: list[dict]) -> dict[str, Any]:
    people = block * len(units)
    rows = [row for unit in units for row in unit["runs"]]
    steps = {step: [row for row in rows if row["step"] == step] for step in ("write", "count")}
    truth = np.sum([row["truth"] for row in steps["write"]], axis=0)
    counts = np.sum([row["counts"] for row in steps["count"]], axis=0)
    found, deviations = estimate(counts, truth, people, mechanism)
    return {
        "mechanism": mechanism,
        "categories": categories,
        "block": block,
        "blocks": len(units),
        "people": people,
        "bytes": sum(row["bytes"] for row in steps["count"]),
        "truth": truth.tolist(),
        "counts": counts.tolist(),
        "estimate": found.tolist(),
        "deviations": deviations.tolist(),
        **{name: max(row[name] for row in steps["count"]) for name in ("taken_mb", "most_mb")},
        **{
            step: {name: sum(row[name] for row in rows) for name in ("seconds", "cpu_seconds")}
            for step, rows in steps.items()
        },
    }


def list_units(chosen: argparse.Namespace) -> list[Unit]:
    """List the blocks to write and to count, or the passes over all of them.

    Raises
    ------
    RunError
        If people do not come in whole blocks, or a byte does not hold the categories.
    """
    people = chosen.people or (SMALL_PEOPLE if chosen.small else PEOPLE)
    if people % chosen.block:
        raise RunError(f"--people must be a multiple of --block, {chosen.block}, got {people}")
    if not 2 <= chosen.categories <= 256:
        raise RunError(f"--categories must be from 2 to 256, got {chosen.categories}")
    setup = {"epsilon": EPSILON, "seed": SEED, "people": chosen.block}
    keys: list[dict[str, Any]] = [{"block": number} for number in range(people // chosen.block)]
    rows = [{"step": "write"}, {"step": "count"}]
    if chosen.collect:
        setup["blocks"] = len(keys)
        keys, rows = [{"block": "all", "workers": chosen.workers}], [{"step": "collect"}]
    whose = [{"mechanism": name, "categories": chosen.categories} for name in MECHANISMS]
    return [Unit({**who, **key}, setup, rows) for who in whose for key in keys]


def measure_unit(unit: Unit, chosen: argparse.Namespace, _: None) -> list[dict[str, Any]]:
    """Write and count a block, or count all of them."""
    if unit.key["block"] == "all":
        return [{"step": "collect", **_collect(unit, chosen)}]
    found = _find_block(unit, chosen.folder, unit.key["block"])
    return [{"step": "write", **write(*found)}, {"step": "count", **count(*found)}]


def _find_block(unit: Unit, folder: Path, number: int) -> tuple[Path, Block]:
    block = Block(unit.key["mechanism"], unit.key["categories"], number, unit.setup["people"])
    return path_of(folder, block), block


def _collect(unit: Unit, chosen: argparse.Namespace) -> dict[str, Any]:
    from joblib import Parallel, delayed

    blocks = [_find_block(unit, chosen.folder, n) for n in range(unit.setup["blocks"])]
    if lacking := sum(not path.exists() for path, _ in blocks):
        raise RunError(f"{chosen.folder} lacks {lacking} of {len(blocks)} blocks: write them first")
    read_clock = start_clock()
    counting = Parallel(n_jobs=unit.key["workers"], return_as="generator_unordered")
    parts = list(counting(delayed(count)(*block) for block in blocks))
    return {
        "bytes": sum(part["bytes"] for part in parts),
        "counts": np.sum([part["counts"] for part in parts], axis=0).tolist(),
        "seconds": read_clock()["seconds"],
        "cpu_seconds": round(sum(part["cpu_seconds"] for part in parts), 4),
        "most_mb": max(part["most_mb"] for part in parts),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--people", type=_run.read_count, help=f"how many report (default: {PEOPLE:,})")
    add("--block", type=_run.read_count, default=BLOCK, help=f"at a time (default: {BLOCK:,})")
    add("--categories", type=int, default=CATEGORIES, help=f"(default: {CATEGORIES})")
    add("--folder", type=Path, default=Path("reports"), help="of the reports (default: reports)")
    add("--collect", action="store_true", help="count all reports again in one pass")
    add("--workers", type=_run.read_count, default=1, help="so many collect (default: 1)")


if __name__ == "__main__":
    raise SystemExit(_run.main("billions"))
