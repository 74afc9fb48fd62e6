"""A billion private reports, written, read and counted, a block at a time.

The whole run is one command, and a cut of it that takes a few seconds is another:

    python -m dpnotes.experiments.billions --out billions.jsonl
    python -m dpnotes.experiments.billions --out billions.jsonl --small

*People.* Each is in one of 16 categories, category j in proportion to 1/(j + 1), and reports it at
epsilon 1: by randomized response, a byte, or by unary encoding, a bit a category, packed. Chance
comes from branches of one seed, one a block, so that a block is the same whoever writes it.

*Blocks.* A unit is a block of people. Its reports are written to a file of their own below
``--folder``, which then is read again and counted. A process that is killed loses its block only,
and the next start, or another process beside it, writes that one again. What is in memory is a
block, whatever the number of people, and the number of people may be raised later.

On a cluster of Dask, ``--scheduler ADDRESS`` spreads the blocks over its workers, which have to see
the same folder.

*Collecting.* With ``--collect`` all files of a folder are counted again in one pass, by so many
processes (``--workers``), and nothing is written to them.

The file is JSON Lines (see `_units`), and `datasets.load_results` makes one document of it:

    {"experiment": "billions", "cut": null, "data": in words}
    {"experiment": "billions",
     "unit": {"mechanism", "categories", "block": its number},
     "setup": {"epsilon", "seed", "people": in the block},
     "provenance": {...},
     "runs": [
        {"step": "write", "bytes", "truth": [people in each category], "seconds", "cpu_seconds"},
        {"step": "count", "bytes", "counts": [reports for each], "seconds", "cpu_seconds",
         "taken_mb", "most_mb": memory of the process, at the end and at most, with all that the
         experiment imports; null where the system does not say}]}
    {"experiment": "billions",
     "unit": {"mechanism", "categories", "block": "all", "workers"},
     "setup": {"epsilon", "seed", "people": in each block, "blocks"},
     "runs": [{"step": "collect", ..., "cpu_seconds" and "most_mb" of all workers together and
                  of the largest one}]}
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpnotes.experiments import _reports, _runs
from dpnotes.experiments._reports import EPSILON, MECHANISMS, SEED, Block
from dpnotes.experiments._units import Layout, RunError, Unit

PEOPLE, BLOCK, CATEGORIES = 10**9, 10**7, 16
SMALL_PEOPLE = 2 * 10**7
CUT = "What takes a few seconds: the first twenty million people."
DATA = "simulated people, category j of k in proportion to 1/(j + 1)"
LAYOUT = Layout("billions", "runs", names=("step",))


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
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for unit in document["units"]:
        if unit["block"] != "all":
            key = unit["mechanism"], unit["categories"], unit["setup"]["people"]
            groups.setdefault(key, []).append(unit)
    return [_add_up(*key, units) for key, units in sorted(groups.items())]


def _add_up(
    mechanism: str, categories: int, block: int, units: list[dict[str, Any]]
) -> dict[str, Any]:
    people = block * len(units)
    steps = {
        name: [row for unit in units for row in unit["runs"] if row["step"] == name]
        for name in ("write", "count")
    }
    truth = np.sum([row["truth"] for row in steps["write"]], axis=0)
    counts = np.sum([row["counts"] for row in steps["count"]], axis=0)
    found = _reports.estimate(counts, people, mechanism)
    deviations = (found - truth) / np.sqrt(_reports.variance(truth, mechanism))
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
        **{
            name: max(row[name] or 0 for row in steps["count"]) or None
            for name in ("taken_mb", "most_mb")
        },
        **{
            name: {key: sum(row[key] for row in rows) for key in ("seconds", "cpu_seconds")}
            for name, rows in steps.items()
        },
    }


def list_units(chosen: argparse.Namespace, shared: dict[str, Any]) -> list[Unit]:
    """List the blocks to write and to count, or the passes over all of them.

    Raises
    ------
    RunError
        If people do not come in whole blocks, or a byte does not hold the categories.
    """
    people = SMALL_PEOPLE if chosen.small and chosen.people is None else chosen.people or PEOPLE
    if people % chosen.block:
        raise RunError(f"--people must be a multiple of --block, {chosen.block}, got {people}")
    if not 2 <= chosen.categories <= 256:
        raise RunError(f"--categories must be from 2 to 256, got {chosen.categories}")
    setup = {"epsilon": EPSILON, "seed": SEED, "people": chosen.block}
    keys: list[dict[str, Any]] = [{"block": number} for number in range(people // chosen.block)]
    steps = ("write", "count")
    if chosen.collect:
        setup["blocks"] = len(keys)
        keys, steps = [{"block": "all", "workers": chosen.workers}], ("collect",)
    return [
        Unit(
            {"mechanism": mechanism, "categories": chosen.categories, **key},
            setup,
            tuple({"step": step} for step in steps),
        )
        for mechanism in ([chosen.mechanism] if chosen.mechanism else MECHANISMS)
        for key in keys
    ]


def measure(unit: Unit, chosen: argparse.Namespace, _: None) -> dict[str, Any]:
    """Do the missing steps of a unit and return their rows."""
    doing = {"write": _write, "count": _count, "collect": _collect}
    return {"runs": [{**row, **doing[row["step"]](unit, chosen)} for row in unit.rows]}


def _block(unit: Unit, number: int) -> Block:
    key = unit.key
    return Block(key["mechanism"], key["categories"], number, unit.setup["people"])


def _write(unit: Unit, chosen: argparse.Namespace) -> dict[str, Any]:
    block = _block(unit, unit.key["block"])
    path = _reports.path_of(chosen.folder, block)
    clock = _reports.Clock()
    truth = _reports.write(path, block)
    return {"bytes": path.stat().st_size, "truth": truth.tolist(), **clock.read()}


def _count(unit: Unit, chosen: argparse.Namespace) -> dict[str, Any]:
    block = _block(unit, unit.key["block"])
    return _reports.counted(_reports.path_of(chosen.folder, block), block)


def _collect(unit: Unit, chosen: argparse.Namespace) -> dict[str, Any]:
    from joblib import Parallel, delayed

    blocks = [_block(unit, number) for number in range(unit.setup["blocks"])]
    paths = [_reports.path_of(chosen.folder, block) for block in blocks]
    lacking = sum(not path.exists() for path in paths)
    if lacking:
        raise RunError(f"{chosen.folder} lacks {lacking} of {len(paths)} blocks: write them first")
    clock = _reports.Clock()
    counting = Parallel(n_jobs=unit.key["workers"], return_as="generator_unordered")
    parts = counting(delayed(_reports.counted)(*pair) for pair in zip(paths, blocks, strict=True))
    total: dict[str, Any] = {"bytes": 0, "counts": 0, "cpu_seconds": 0.0, "most_mb": 0}
    for part in parts:
        total["counts"] = np.add(total["counts"], part["counts"])
        total["bytes"] += part["bytes"]
        total["cpu_seconds"] += part["cpu_seconds"]
        total["most_mb"] = max(total["most_mb"], part["most_mb"] or 0)
    return {
        "bytes": total["bytes"],
        "counts": total["counts"].tolist(),
        "seconds": clock.read()["seconds"],
        "cpu_seconds": round(total["cpu_seconds"], 4),
        "most_mb": total["most_mb"] or None,
    }


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--people", type=_runs.count, help=f"how many report (default: {PEOPLE:,})")
    add("--block", type=_runs.count, default=BLOCK, help=f"so many at a time (default: {BLOCK:,})")
    add("--mechanism", choices=MECHANISMS, help="only this one")
    add("--categories", type=int, default=CATEGORIES, help=f"(default: {CATEGORIES})")
    add("--folder", type=Path, default=Path("reports"), help="of the reports (default: reports)")
    add("--collect", action="store_true", help="count all reports again in one pass")
    add("--workers", type=_runs.count, default=1, help="so many processes collect (default: 1)")


EXPERIMENT = _runs.Experiment(
    layout=LAYOUT,
    description="Write, read and count private reports, a block at a time.",
    actions={},
    add_options=_add_options,
    head=lambda chosen: {"cut": CUT if chosen.small else None, "data": DATA},
    prepare=lambda chosen, call: {},
    list_units=list_units,
    measure=measure,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 1 after a message of what is wrong."""
    return _runs.main(EXPERIMENT, arguments)


if __name__ == "__main__":
    sys.exit(_runs.start("billions"))
