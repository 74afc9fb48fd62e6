"""Long measurements: a list of independent units, each of which ends as a line of a file.

A unit has a *key*, which one it is, a *setup*, what decides its numbers, and *rows*, its numbers.
The file is JSON Lines, of which `datasets.load_results` makes one document:

    {"experiment", "cut": null, or in words what was left out of the whole grid, "data", ...}
    {"experiment", "unit": key, "setup", "provenance": {"commit", "date", ...}, "runs": rows}

Units are measured in this process, in several (``--jobs``), or by the workers of a Dask cluster
(``--scheduler ADDRESS``), with the same numbers; this process alone writes, a line as soon as its
unit is finished. A killed run has lost the units in work, no others: the same command, given again,
measures what the file lacks. So a loss that is added to a grid is measured alone. Units with one
key and different set-ups stand side by side and are never mixed.

An *experiment* is a module of this package, started by `main` under its name. It has

    DATA, CUT      on what it is measured, and what ``--small`` leaves out, in words
    list_units     given the command line, the units to measure
    measure_unit   given a unit, the command line and what all units rest on, the unit's rows

and, where the defaults do not do,

    add_options    adds options of its own to a parser
    prepare        given the command line and what the file says of all units, what it shall say of
                   them besides, and what they all rest on, which is sent along with each of them
    ROWS           what a line calls its rows
    LISTS          entries that the set-up of a line has besides, to list what its rows are made of,
                   each with the entry of a row that it lists

A unit that raises an error is reported, and the others go on. A worker of Dask that dies costs its
unit, which another worker measures. A process of ``--jobs`` that dies ends the run: start it again.

A file has one writer. Machines without a cluster take a part each and write a file each, which
`datasets.load_results` joins where they lie beside each other. On Slurm:

    #SBATCH --array=1-20
    #SBATCH --gres=gpu:1
    I=$SLURM_ARRAY_TASK_ID
    python -m dpnotes.experiments.NAME --device cuda --part $I/20 --out data/results/NAME-$I.jsonl
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from dpnotes import datasets
from dpnotes.datasets import DatasetUnavailable, ImageData

Line = dict[str, Any]


class RunError(ValueError):
    """A run cannot go on as it was asked to; the message says what is in its way, and where."""


class Unit(NamedTuple):
    """What is to be measured: the rows have the entries that tell them apart."""

    key: Line
    setup: Line
    rows: Sequence[Line]


# Files.


def open_results(path: Path) -> list[Line]:
    """Return the lines of a file, which is ready for the next one: what was cut off is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    *lines, rest = path.read_bytes().split(b"\n")
    os.truncate(path, path.stat().st_size - len(rest))
    try:
        return json.loads(b"[" + b",\n".join(lines) + b"]")
    except ValueError as error:
        raise RunError(f"{path} must hold a JSON object a line: {error}") from error


def append(path: Path, line: Line) -> None:
    """Add a line to a file, which is on the disk when this returns."""
    text = json.dumps(line, separators=(",", ":"), allow_nan=False)
    with path.open("ab") as file:
        file.write(f"{text}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def read_arrays(path: str | Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read some arrays of an archive, or refuse what is none."""
    try:
        # What numpy opens by itself it leaves open where the file is damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return [archive[name] for name in names]
    except Exception as error:
        raise RunError(f"{path} must be an archive with {', '.join(names)}: {error}") from error


@cache
def load_images(data: str, path: str | None, classes: Sequence[int] = range(10)) -> ImageData:
    """Read images from a file of ``python -m dpnotes.datasets DATA --out FILE``, or load them."""
    load = datasets.load_mnist if data == "mnist" else partial(datasets.load_cifar10, classes)
    found = load() if path is None else ImageData(*read_arrays(path, ImageData._fields))
    for labels in (found.y_train, found.y_test):
        if set(np.unique(labels)) != set(classes):
            raise RunError(f"path must hold the classes {[*classes]} of {data}, got {path}")
    return found


def report(words: str) -> None:
    """Show a line of progress."""
    print(words, file=sys.stderr, flush=True)


def average(values: np.ndarray) -> float:
    """Return a mean as the files have it."""
    return round(float(np.mean(values)), 4)


# Where units are measured.


@cache
def find_commit() -> str:
    """Return the commit that this process runs, asked once: the checkout may move on meanwhile."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe_run(device: str, seconds: float) -> Line:
    """Return the provenance of a measurement: with what it was made, where, when, and how long."""
    return {
        "commit": find_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if is_gpu(device) else f"CPU, {_find_processor()}",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{name: import_module(name).__version__ for name in ("numpy", "torch", "dpnotes")},
        "seconds": round(seconds, 1),
    }


def is_gpu(device: str) -> bool:
    """Say whether a device of torch is a GPU."""
    return torch.device(device).type == "cuda"


def _find_processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    return next(iter(re.findall(r"^model name\s*: (.*)$", text, re.M)), platform.machine())


def compute(function: Callable, items: Sequence, chosen: argparse.Namespace) -> Iterator[tuple]:
    """Yield each item with what a function gives for it, or its error, as they come.

    The function is called here, in processes, or on a cluster, as the command line says. An error
    that is in the way of every item is raised.
    """
    call = partial(_try, function)
    if chosen.scheduler:
        yield from _compute_on_cluster(call, items, chosen.scheduler)
    elif chosen.jobs == 1:  # without joblib, which a bare machine with a GPU may lack
        yield from map(call, items)
    else:
        from joblib import Parallel, delayed

        parallel = Parallel(chosen.jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(call)(item) for item in items)


def _try(function: Callable, item: Any) -> tuple:  # noqa: ANN401
    try:
        return item, function(item)
    except (RunError, DatasetUnavailable):
        raise
    except Exception as error:
        return item, error


def _compute_on_cluster(call: Callable, items: Sequence, address: str) -> Iterator[tuple]:
    # Not by joblib's backend of Dask: with a single worker, that one leaves all to the caller, and
    # it waits for ever for an item over which workers have died (joblib 1.6).
    try:
        from distributed import Client, KilledWorker, as_completed

        client = Client(address, timeout=10, set_as_default=False)
    except ModuleNotFoundError as error:
        raise RunError("--scheduler needs Dask: pip install dpnotes[cluster]") from error
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"--scheduler: no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        sent = {client.submit(call, item, pure=False): item for item in items}
        for future in as_completed(list(sent), loop=client.loop):
            try:
                yield future.result()
            except KilledWorker as error:
                yield sent[future], error


# The run.


def main(name: str, arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 1 after a message of what is wrong.

    The experiment is imported by its name, under which other processes know its functions: a script
    that is started has others.
    """
    experiment = import_module(f"dpnotes.experiments.{name}")
    parser = make_parser(experiment)
    chosen = parser.parse_args(arguments)
    try:
        torch.empty(0, device="cpu" if chosen.scheduler else chosen.device)
    except (RuntimeError, AssertionError):
        parser.error(f"argument --device: no such device here: {chosen.device}")
    find_commit()
    try:
        _measure(experiment, chosen)
    except (RunError, DatasetUnavailable, BrokenExecutor, CancelledError, OSError) as error:
        report(f"{parser.prog}: {error}")
        return 1
    return 0


def make_parser(experiment: ModuleType) -> argparse.ArgumentParser:
    """Return what reads the command line of an experiment."""
    prog, description = f"python -m {experiment.__name__}", experiment.__doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the results; what they hold is not measured again")
    add("--small", action="store_true", help="a cut of the grid that two processor cores can do")
    add("--seeds", type=read_count, default=sys.maxsize, help="at most so many")
    add("--part", type=_read_part, default=(1, 1), metavar="i/N", help="every N-th unit, from i")
    add("--device", default="cpu", help="as torch has it (default: cpu)")
    add("--jobs", type=read_count, default=1, help="so many processes (default: 1)")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786")
    add("--images", help="the images as one .npz (default: from dpnotes.datasets)")
    getattr(experiment, "add_options", lambda parser: None)(parser)
    return parser


def read_count(word: str) -> int:
    """Read a number of at least 1 from the command line."""
    if int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {word}")
    return int(word)


def _read_part(words: str) -> tuple[int, int]:
    number, total = (int(word) for word in words.split("/"))
    if not 1 <= number <= total:
        raise argparse.ArgumentTypeError("a part is i/N with 1 <= i <= N")
    return number, total


def list_lacking(
    experiment: ModuleType, chosen: argparse.Namespace, lines: Sequence[Line]
) -> list[Unit]:
    """List the units that were asked for, each with those rows that a file lacks."""
    number, total = chosen.part
    lacking = []
    for unit in experiment.list_units(chosen)[number - 1 :: total]:
        setup = json.loads(json.dumps(unit.setup)).items()
        known = [
            row
            for line in lines
            if line.get("unit") == unit.key and setup <= line["setup"].items()
            for row in line[_name_rows(experiment)]
        ]
        rows = [row for row in unit.rows if not any(row.items() <= old.items() for old in known)]
        lacking += [unit._replace(rows=rows)] * bool(rows)
    return lacking


def _name_rows(experiment: ModuleType) -> str:
    return getattr(experiment, "ROWS", "runs")


def _measure(experiment: ModuleType, chosen: argparse.Namespace) -> None:
    head = {"experiment": experiment.__name__.rpartition(".")[2]}
    lines, failed = open_results(chosen.out), 0
    shared = {name: line[name] for line in lines if "unit" not in line for name in line}
    cut = experiment.CUT if chosen.small else None
    shared = _share(shared, {**head, "cut": cut, "data": experiment.DATA}, chosen.out)
    units = list_lacking(experiment, chosen, lines)
    if not units:
        return
    prepare = getattr(experiment, "prepare", lambda *_: ({}, None))
    entries, basis = prepare(chosen, shared)
    _share(shared, {**head, **entries}, chosen.out)
    lists = getattr(experiment, "LISTS", {}).items()
    function = partial(_measure_unit, measure=experiment.measure_unit, chosen=chosen, basis=basis)
    for unit, outcome in compute(function, units, chosen):
        name = ", ".join(f"{entry} {value}" for entry, value in unit.key.items())
        if isinstance(outcome, Exception):
            failed += 1
            report(f"{name}: failed, {type(outcome).__name__}: {outcome}")
        else:
            listed = {some: [*dict.fromkeys(row[one] for row in unit.rows)] for some, one in lists}
            line = {**head, "unit": unit.key, "setup": {**unit.setup, **listed}}
            rows = {"provenance": outcome[0], _name_rows(experiment): outcome[1]}
            append(chosen.out, {**line, **rows})
            report(f"{name}: finished")
    if failed:
        raise RunError(f"{failed} of {len(units)} units failed; the file has the others")


def _share(shared: Line, head: Line, out: Path) -> Line:
    """Let a file say what all units share, or refuse what contradicts it."""
    for name, value in head.items():
        if shared.get(name, value) != value:
            raise RunError(f"{out} must have the {name!r} that is asked for, and has another one")
    if not head.keys() <= shared.keys():
        append(out, head)
    return shared | head


def _measure_unit(
    unit: Unit, *, measure: Callable, chosen: argparse.Namespace, basis: object
) -> tuple[Line, list[Line]]:
    """Measure a unit, in whatever process this is, and say where that was."""
    find_commit()
    began = time.perf_counter()
    rows = measure(unit, chosen, basis)
    return describe_run(chosen.device, time.perf_counter() - began), rows
