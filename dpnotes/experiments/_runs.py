"""What every long measurement shares: where it ran, and its command line.

An experiment is a list of units (`_units`) and a function that measures one of them, given the
unit, the words of the command line and what all units rest on: so any process, on any machine, can
be handed any unit (`_cluster`).
"""

import argparse
import platform
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import dpnotes
from dpnotes import datasets
from dpnotes._files import check_target
from dpnotes.experiments import _cluster, _units
from dpnotes.experiments._cluster import Engine
from dpnotes.experiments._units import Layout, RunError, Unit

# What numpy may raise on the wrong bytes.
_UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


class Experiment(NamedTuple):
    """What the common command line needs to know.

    Attributes
    ----------
    layout : Layout
        How units are written.
    description : str
        What the command does.
    actions : dict of str to callable
        What is done in place of measuring, by the name of its option, given the command line and
        `Engine.call`, which lets a function run where units are measured.
    add_options : callable
        Adds words of its own to the command line.
    head : callable
        Given the command line, what the first line of the file says.
    prepare : callable
        Given these two, makes what all units rest on, and returns what the file says of it.
    list_units : callable
        Given the command line and what the file says of all units, the units to measure.
    measure : callable
        Given a unit, the command line and the basis, what its line has besides its name and
        provenance.
    basis : callable
        Given the command line, what all units rest on, as it is sent along with each of them; by
        default nothing is.
    """

    layout: Layout
    description: str
    actions: dict[str, Callable[[argparse.Namespace, Callable], None]]
    add_options: Callable[[argparse.ArgumentParser], None]
    head: Callable[[argparse.Namespace], dict[str, Any]]
    prepare: Callable[[argparse.Namespace, Callable], dict[str, Any]]
    list_units: Callable[[argparse.Namespace, dict[str, Any]], list[Unit]]
    measure: Callable[[Unit, argparse.Namespace, Any], dict[str, Any]]
    basis: Callable[[argparse.Namespace], Any] = lambda chosen: None


@cache
def loaded_commit() -> str:
    """Return the commit that this process runs, asked once: the checkout may move on meanwhile."""
    return commit()


def commit() -> str:
    """Return the commit of the checkout as it is now."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def provenance(commit: str, device: str, seconds: float) -> dict[str, Any]:
    """Return what a measurement was made with, where, when and in how many seconds."""
    on_gpu = torch.device(device).type == "cuda"
    return {
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if on_gpu else f"CPU, {_processor()}",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "dpnotes": dpnotes.__version__,
        "seconds": round(seconds, 1),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read_images(path: str) -> datasets.ImageData:
    """Read images from a file that ``python -m dpnotes.datasets NAME --out FILE`` wrote."""
    return datasets.ImageData(*read_arrays(path, datasets.ImageData._fields))


def read_arrays(path: str | Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read some arrays of an archive, or refuse what is none.

    Raises
    ------
    RunError
        If the file cannot be read, is damaged, or lacks an array.
    """
    try:
        # What numpy opens by itself it leaves open where the file is damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return [archive[name] for name in names]
    except _UNREADABLE as error:
        raise RunError(f"{path} must be an archive with {', '.join(names)}: {error}") from error


def report(unit: str, progress: str) -> None:
    """Show a line of progress."""
    print(f"{unit}: {progress}", file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Say what a reader of the results should know."""
    print(message, file=sys.stderr, flush=True)


# The command line.


def part(words: str) -> tuple[int, int]:
    """Read ``i/N`` from the command line."""
    number, total = (int(word) for word in words.split("/"))
    if not 1 <= number <= total:
        raise argparse.ArgumentTypeError("a part is i/N with 1 <= i <= N")
    return number, total


def count(word: str) -> int:
    """Read a number of at least 1 from the command line."""
    if int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {word}")
    return int(word)


def file(word: str) -> Path:
    """Read where a file is or shall be from the command line; a link stays one."""
    try:
        return check_target("what is written", word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def device(word: str) -> str:
    """Read the name of a device from the command line; it need not be on this machine."""
    try:
        torch.device(word)
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"no such device here: {word}") from error
    return word


def _is_here(device: str) -> bool:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        return False
    return True


def parser(experiment: Experiment) -> argparse.ArgumentParser:
    """Return what reads the command line of an experiment."""
    made = argparse.ArgumentParser(
        prog=f"python -m dpnotes.experiments.{experiment.layout.experiment}",
        description=experiment.description,
    )
    add = made.add_argument
    add("--out", type=file, required=True, help="the results; what they hold is not measured again")
    add("--small", action="store_true", help="a cut of the grid that two processor cores can do")
    add("--seeds", type=count, help="at most so many")
    add("--part", type=part, default=(1, 1), metavar="i/N", help="only every N-th unit, from i")
    add("--device", type=device, default="cpu", help="as torch has it (default: cpu)")
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="measure on the Dask cluster of this scheduler, such as tcp://host:8786",
    )
    add("--merge", nargs="+", type=Path, metavar="FILE", help="add these files to OUT, then stop")
    add("--check", action="store_true", help="say what is in OUT and what it lacks, then stop")
    experiment.add_options(made)
    return made


def main(experiment: Experiment, arguments: Sequence[str] | None) -> int:
    """Do what the command line says; return 0, or 1 after a message of what is wrong."""
    words = parser(experiment)
    chosen = words.parse_args(arguments)
    try:
        if chosen.merge:
            return _merge(experiment.layout, chosen)
        if chosen.check:
            return _check(experiment, chosen)
        if chosen.scheduler is None and not _is_here(chosen.device):
            words.error(f"argument --device: no such device here: {chosen.device}")
        loaded_commit()
        with _cluster.engine(chosen.scheduler, warn) as engine:
            _act(experiment, chosen, engine)
        return 0
    except (RunError, datasets.DatasetUnavailable) as error:
        print(f"{words.prog}: {error}", file=sys.stderr)
        return 1


def _merge(layout: Layout, chosen: argparse.Namespace) -> int:
    with _units.locked(chosen.out):
        files = [chosen.out] * chosen.out.exists() + chosen.merge
        lines = [line for path in files for line in _units.read(path, layout, warn)]
        _units.rewrite(chosen.out, _units.join(lines, layout))
    return 0


def _check(experiment: Experiment, chosen: argparse.Namespace) -> int:
    # Without the lock, as the results may lie where nobody may write.
    contents = _units.join(_units.read(chosen.out, experiment.layout, warn), experiment.layout)
    units = _list(experiment, chosen, contents)
    lacking = [unit.key for unit in units if _units.missing(unit, contents, experiment.layout)]
    print(f"{chosen.out}: {len(units) - len(lacking)} of {len(units)} units")
    for key in lacking:
        print(f"  lacks {_units.describe(key)}")
    return 1 if lacking else 0


def _list(
    experiment: Experiment, chosen: argparse.Namespace, contents: Sequence[dict[str, Any]]
) -> list[Unit]:
    number, total = chosen.part
    return experiment.list_units(chosen, _units.shared(contents))[number - 1 :: total]


def _act(experiment: Experiment, chosen: argparse.Namespace, engine: Engine) -> None:
    for name, act in experiment.actions.items():
        if getattr(chosen, name):
            act(chosen, engine.call)
            return
    _measure(experiment, chosen, engine)


def _measure(experiment: Experiment, chosen: argparse.Namespace, engine: Engine) -> None:
    layout = experiment.layout
    _units.begin(chosen.out, layout, experiment.head(chosen), warn)
    contents = _units.load(chosen.out, layout, warn)
    if not any(_units.missing(u, contents, layout) for u in _list(experiment, chosen, contents)):
        return
    _units.begin(chosen.out, layout, experiment.prepare(chosen, engine.call), warn)
    units = _list(experiment, chosen, _units.load(chosen.out, layout, warn))
    measure = partial(
        _measured, measure=experiment.measure, chosen=chosen, basis=experiment.basis(chosen)
    )
    engine.measure_all(chosen.out, layout, units, measure, warn)


def _measured(
    unit: Unit,
    *,
    measure: Callable[[Unit, argparse.Namespace, Any], dict[str, Any]],
    chosen: argparse.Namespace,
    basis: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Measure a unit, in whatever process this is, and say where that was."""
    at, began = loaded_commit(), time.perf_counter()
    measured = measure(unit, chosen, basis)
    about = provenance(at, chosen.device, time.perf_counter() - began)
    return {"provenance": about, **measured}


def start(experiment: str) -> int:
    """Run an experiment from the command line, by the name under which workers know it, too."""
    return import_module(f"dpnotes.experiments.{experiment}").main()
