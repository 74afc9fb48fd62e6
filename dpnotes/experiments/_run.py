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
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import dpnotes
from dpnotes import datasets

Line = dict[str, Any]


class RunError(ValueError):
    """A run cannot go on as it was asked to; the message says what is in its way, and where."""


class Unit(NamedTuple):
    """What is to be measured: the rows have the entries that tell them apart."""

    key: Line
    setup: Line
    rows: Sequence[Line]

    @property
    def name(self) -> str:
        """What messages call it."""
        return ", ".join(f"{name} {value}" for name, value in self.key.items())


class Experiment(NamedTuple):
    """What the common command line needs to know.

    Attributes
    ----------
    name, description : str
        Of the experiment.
    add_options : callable
        Adds options of its own to the command line.
    head : callable
        Given the command line, what the first line of the file says.
    list_units : callable
        Given the command line and what the file says of all units, the units to measure.
    measure : callable
        Given a unit, the command line and what all units rest on, the unit's rows.
    prepare : callable
        Given the command line and what the file says of all units, what it shall say besides, and
        what all units rest on, which is sent along with each of them.
    rows : str
        What a line calls its rows.
    lists : tuple of (str, str)
        The entries of a set-up that only list what rows are made of, each with the entry of a row
        that it lists: they decide no number.
    """

    name: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    head: Callable[[argparse.Namespace], Line]
    list_units: Callable[[argparse.Namespace, Line], list[Unit]]
    measure: Callable[[Unit, argparse.Namespace, Any], list[Line]]
    prepare: Callable[..., tuple[Line, Any]] = lambda chosen, shared: ({}, None)
    rows: str = "runs"
    lists: Sequence[tuple[str, str]] = ()


# Files.


def read(path: Path, name: str) -> tuple[list[Line], int]:
    """Return the lines of a file and the bytes that they take; one that was cut off is left out."""
    lines, size = [], 0
    for number, text in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        try:
            line = json.loads(text)
        except ValueError as error:
            if text.endswith(b"\n"):
                raise RunError(f"{path}, line {number}: must be a JSON object: {error}") from error
            report(f"{path}: the last line was cut off; its unit is measured again")
            break
        if not isinstance(line, dict) or line.get("experiment") != name:
            raise RunError(f"{path}, line {number}: 'experiment' must be {name!r}")
        lines.append(line)
        size += len(text)
    return lines, size


def mend(path: Path, size: int) -> None:
    """Cut off what follows the whole lines of a file, and end the last one where it lacks that."""
    with path.open("r+b") as file:
        file.truncate(size)
        file.seek(max(0, size - 1))
        if file.read() not in (b"", b"\n"):
            file.write(b"\n")


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


def read_images(path: str) -> datasets.ImageData:
    """Read images from a file that ``python -m dpnotes.datasets NAME --out FILE`` wrote."""
    return datasets.ImageData(*read_arrays(path, datasets.ImageData._fields))


def report(*words: str) -> None:
    """Show a line of progress."""
    print(": ".join(words), file=sys.stderr, flush=True)


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
    on_gpu = torch.device(device).type == "cuda"
    return {
        "commit": find_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if on_gpu else f"CPU, {_find_processor()}",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "dpnotes": dpnotes.__version__,
        "seconds": round(seconds, 1),
    }


def _find_processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def compute(function: Callable, items: Sequence, chosen: argparse.Namespace) -> Iterator[tuple]:
    """Yield each item with what a function gives for it, or its error, as they come.

    The function is called here, in processes, or on a cluster, as the command line says. An error
    that is in the way of every item is raised.
    """
    call = partial(_try, function)
    if chosen.scheduler:
        yield from _compute_on_cluster(call, items, chosen.scheduler)
    elif chosen.jobs == 1:
        yield from map(call, items)
    else:
        from joblib import Parallel, delayed

        parallel = Parallel(chosen.jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(call)(item) for item in items)


def _try(function: Callable, item: Any) -> tuple:  # noqa: ANN401
    try:
        return item, function(item)
    except (RunError, datasets.DatasetUnavailable):
        raise
    except Exception as error:
        return item, error


def _compute_on_cluster(call: Callable, items: Sequence, address: str) -> Iterator[tuple]:
    # Not by joblib's backend of Dask: with a single worker, that one leaves all to the caller, and
    # it waits for ever for an item over which workers have died (joblib 1.6).
    try:
        from distributed import Client, KilledWorker, as_completed
    except ModuleNotFoundError as error:
        raise RunError("--scheduler needs Dask: pip install dpnotes[cluster]") from error
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"--scheduler: no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        sent = {client.submit(call, item, pure=False): item for item in items}
        for future in as_completed(list(sent), loop=client.loop):
            try:
                yield future.result()
            except KilledWorker as error:
                yield sent[future], error
            except CancelledError as error:
                raise RunError(
                    f"--scheduler {address} went away. The file has the units that were finished, "
                    "and the same command measures the others"
                ) from error


# The run.


def start(name: str) -> int:
    """Run an experiment, of which other processes know the functions by this name."""
    return import_module(f"dpnotes.experiments.{name}").main()


def main(experiment: Experiment, arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 1 after a message of what is wrong."""
    parser = make_parser(experiment)
    chosen = parser.parse_args(arguments)
    if not chosen.scheduler and not _has_device(chosen.device):
        parser.error(f"argument --device: no such device here: {chosen.device}")
    find_commit()
    try:
        return _check(experiment, chosen) if chosen.check else _measure(experiment, chosen)
    except (RunError, datasets.DatasetUnavailable, BrokenExecutor, OSError) as error:
        report(f"{parser.prog}: {error}")
        return 1


def make_parser(experiment: Experiment) -> argparse.ArgumentParser:
    """Return what reads the command line of an experiment."""
    parser = argparse.ArgumentParser(
        prog=f"python -m dpnotes.experiments.{experiment.name}", description=experiment.description
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the results; what they hold is not measured again")
    add("--small", action="store_true", help="a cut of the grid that two processor cores can do")
    add("--seeds", type=read_count, help="at most so many")
    add("--part", type=_read_part, default=(1, 1), metavar="i/N", help="every N-th unit, from i")
    add("--device", default="cpu", help="as torch has it (default: cpu)")
    add("--jobs", type=read_count, default=1, help="so many processes (default: 1)")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786")
    add("--check", action="store_true", help="say what OUT lacks, then stop")
    experiment.add_options(parser)
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


def _has_device(device: str) -> bool:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        return False
    return True


def _check(experiment: Experiment, chosen: argparse.Namespace) -> int:
    lacking = list_lacking(experiment, chosen, read(chosen.out, experiment.name)[0])
    print("\n".join([f"{chosen.out} lacks {len(lacking)} units", *(unit.name for unit in lacking)]))
    return 1 if lacking else 0


def find_shared(lines: Iterable[Line]) -> Line:
    """Return what a file says of all units."""
    heads = [line for line in lines if "unit" not in line]
    return {name: value for head in heads for name, value in head.items()}


def list_lacking(
    experiment: Experiment, chosen: argparse.Namespace, lines: Sequence[Line]
) -> list[Unit]:
    """List the units that were asked for, each with those rows that a file lacks."""
    lists = dict(experiment.lists)

    def identify(key: Line, setup: Line) -> str:
        kept = {name: setup[name] for name in setup if name not in lists}
        return json.dumps([key, kept], sort_keys=True)

    held: dict[str, list[Line]] = {}
    for line in lines:
        if "unit" in line:
            rows = held.setdefault(identify(line["unit"], line["setup"]), [])
            rows += line[experiment.rows]
    number, total = chosen.part
    lacking = []
    for unit in experiment.list_units(chosen, find_shared(lines))[number - 1 :: total]:
        known = held.get(identify(unit.key, unit.setup), [])
        rows = [row for row in unit.rows if not any(row.items() <= old.items() for old in known)]
        lacking += [unit._replace(rows=rows)] * bool(rows)
    return lacking


def _measure(experiment: Experiment, chosen: argparse.Namespace) -> int:
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.touch()
    lines, size = read(chosen.out, experiment.name)
    mend(chosen.out, size)
    _share(lines, {"experiment": experiment.name, **experiment.head(chosen)}, chosen.out)
    if not list_lacking(experiment, chosen, lines):
        return 0
    entries, basis = experiment.prepare(chosen, find_shared(lines))
    _share(lines, {"experiment": experiment.name, **entries}, chosen.out)
    units, failed = list_lacking(experiment, chosen, lines), 0
    function = partial(_measure_unit, measure=experiment.measure, chosen=chosen, basis=basis)
    for unit, outcome in compute(function, units, chosen):
        if isinstance(outcome, Exception):
            failed += 1
            report(f"{unit.name}: failed, {type(outcome).__name__}: {outcome}")
        else:
            append(chosen.out, _make_line(experiment, unit, *outcome))
            report(f"{unit.name}: finished")
    if failed:
        raise RunError(f"{failed} of {len(units)} units failed; the file has the others")
    return 0


def _share(lines: list[Line], head: Line, out: Path) -> None:
    """Let a file say what all units share, or refuse what contradicts it."""
    shared = find_shared(lines)
    for name, value in head.items():
        if name in shared and shared[name] != value:
            raise RunError(f"{out} must have the {name!r} that is asked for, and has another one")
    if not head.keys() <= shared.keys():
        lines.append(head)
        append(out, head)


def _measure_unit(
    unit: Unit, *, measure: Callable, chosen: argparse.Namespace, basis: object
) -> tuple[Line, list[Line]]:
    """Measure a unit, in whatever process this is, and say where that was."""
    find_commit()
    began = time.perf_counter()
    rows = measure(unit, chosen, basis)
    return describe_run(chosen.device, time.perf_counter() - began), rows


def _make_line(experiment: Experiment, unit: Unit, provenance: Line, rows: list[Line]) -> Line:
    setup = dict(unit.setup)
    for entries, entry in experiment.lists:
        measured = [row[entry] for row in unit.rows]
        setup[entries] = [value for value in setup[entries] if value in measured]
    about = {"experiment": experiment.name, "unit": unit.key, "setup": setup}
    return {**about, "provenance": provenance, experiment.rows: rows}
