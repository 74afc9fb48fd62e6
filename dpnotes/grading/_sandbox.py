"""Run code that is not trusted in a process of its own, and read what it returns.

Each answer is a line of JSON, and none of it is trusted: `build_output` makes numbers, texts,
arrays and collections of them, and whatever is something else, or too large, is no output.
"""

import functools
import itertools
import json
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np

from dpnotes._checks import check_flag, check_real, check_rng
from dpnotes.audit._outputs import MechanismFailed
from dpnotes.grading import _sandbox_worker
from dpnotes.grading._task import Runs, Task, list_inputs, sort_outputs
from dpnotes.grading._values import build_output

_NAMESPACES = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)
# Network namespaces do not cut off the sockets of services, which lie there.
_SERVICES = "/run"
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SystemRoot", "TMPDIR", "TEMP", "TMP")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SCRATCH = 2**26  # bytes of files, together and each
_LARGEST = 2**26  # bytes of one answer
_MOST = 2**28  # bytes of all answers to what was sent together
_PATIENCE = 60.0  # seconds for the interpreter to start, beside what the submission may take
_UNREADABLE = "its process ended, or said what cannot be read"
# What leaves a process.
_CARRIED = "None, numbers, texts, or lists, tuples, dicts, arrays or dataclasses of them"


class MechanismRaised(Exception):  # noqa: N818
    """A mechanism in a process of its own raised an exception.

    Its `args` are the type of that exception, its message and its arguments, as texts.
    """


class Sandbox:
    """The near end of a process: it is sent calls, and says an answer to each.

    `seconds` are left to wait for answers, and `wrapper` is a command that runs the process.
    """

    def __init__(
        self, setup: dict, seconds: float, wrapper: Iterable[str] = (), **options: object
    ) -> None:
        path = [os.path.abspath(folder) for folder in sys.path]
        # Handed over as text, since the file is hidden wherever the package is.
        script = Path(_sandbox_worker.__file__).read_text(encoding="utf-8")
        script = f"import sys\nsys.path[:] = {path!r}\n{script}"
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-I", "-B", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )
        # A process that neither reads nor writes keeps these threads waiting, and nobody else.
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for work in (self._talk, self._listen):
            threading.Thread(target=work, daemon=True).start()
        self.seconds = _PATIENCE
        self.send(setup)
        # It is ready before anything that is not trusted is loaded.
        if self.receive() != ("ready", []):
            self.close()
            raise RuntimeError("the process for what is not trusted does not start")
        self.seconds = seconds

    def send(self, *messages: object) -> None:
        """Send the setup, or calls: (arguments, those by name, seed of a new generator or None)."""
        self._said = 0  # bytes since it was last asked
        self._messages.put(b"".join(map(pickle.dumps, messages)))

    def receive(self) -> tuple[str, object]:
        """Return the next answer as (kind, what it says), which is "late" when no time is left."""
        started = time.monotonic()
        try:
            line = self._answers.get(timeout=max(0.0, self.seconds))
        except queue.Empty:
            line = b'["late"]'
        self.seconds -= time.monotonic() - started
        return read_answer(line)

    def close(self) -> None:
        """End the process, and those of its group or its namespaces."""
        # Windows has no groups.
        with suppress(AttributeError, ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._messages.put(b"")

    def _talk(self) -> None:
        """Write all messages, up to an empty one."""
        with suppress(OSError), self._process.stdin as stream:
            while content := self._messages.get():
                stream.write(content)
                stream.flush()

    def _listen(self) -> None:
        """Queue all lines, up to the end or too much of them, and an empty one."""
        with self._process.stdout as stream:
            while line := stream.readline(_LARGEST):
                self._said += len(line)
                if self._said > _MOST:
                    break
                self._answers.put(line)
        self._answers.put(b"")


def read_answer(line: bytes) -> tuple[str, object]:
    """Return the kind of an answer, and the output or the texts that it says.

    What cannot be read is an end.
    """
    try:
        kind, *said = json.loads(line)
        if kind == "returned":
            return kind, build_output(*said)
        if all(type(word) is str for word in (kind, *said)):
            return kind, said
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError):
        pass
    return "ended", []


# Submissions


def choose_isolation(isolation: str) -> str:
    """Return "namespaces" where bubblewrap makes them and they are wanted, else "process"."""
    if isolation != "process" and _has_namespaces():
        return "namespaces"
    if isolation == "namespaces":
        raise NotImplementedError("isolation in namespaces needs a Linux on which bubblewrap works")
    return "process"


@functools.cache
def _has_namespaces() -> bool:
    """Whether bubblewrap is installed, and the system lets it do its work."""
    command = [*_NAMESPACES, *_cover(_SERVICES), sys.executable, "-I", "-c", ""]
    return (
        bool(shutil.which("bwrap")) and not subprocess.run(command, capture_output=True).returncode
    )


def _cover(folder: str) -> list[str]:
    """Return what puts an empty folder, of limited size, before another one."""
    return ["--size", str(_SCRATCH), "--tmpfs", folder]


def _wrap(task: Task, hidden: Iterable[str], scratch: str) -> list[str]:
    """Return the command that shows a process nothing of what is hidden, and one empty folder."""
    blocked = [place for name in task.blocked for place in _find_places(name)]
    places = set(map(os.path.realpath, [*hidden, _SERVICES, *blocked]))
    outer = [p for p in places if not any(p.startswith(f"{other}/") for other in places)]
    folders = list(filter(os.path.isdir, outer))
    files = [place for place in outer if os.path.isfile(place)]
    return [
        *_NAMESPACES,
        *itertools.chain(*map(_cover, folders), *(["--ro-bind", "/dev/null", f] for f in files)),
        *_cover(scratch),
        *itertools.chain(*(["--remount-ro", folder] for folder in folders)),
        *("--chdir", scratch, "--"),
    ]


def _find_places(name: str) -> list[str]:
    """Return where a module may lie, after every folder of the path and every finder."""
    package, *rest = name.split(".")
    places = [os.path.join(folder, package) for folder in sys.path]
    for finder in sys.meta_path:
        with suppress(AttributeError, ImportError):
            spec = finder.find_spec(package, None)
            places += list(spec.submodule_search_locations or [os.path.splitext(spec.origin)[0]])
    return [os.path.join(place, *rest) + end for place in places for end in ("", ".py")]


def collect_outputs(
    task: Task, cells: list[str], plan: list[tuple], hidden: Iterable[str], isolation: str
) -> Runs:
    """Load a submission, and call its function as planned: (which inputs, seed or None)."""
    processor = int(task.seconds) + 1
    limits = {"RLIMIT_AS": task.memory, "RLIMIT_CPU": processor, "RLIMIT_FSIZE": _SCRATCH}
    setup = {"place": "", "cells": cells, "function": task.function, "fresh": False}
    setup |= {"blocked": task.blocked, "limits": limits}
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
    inputs = list_inputs(task)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        wrapper = _wrap(task, hidden, scratch) if isolation == "namespaces" else []
        options = {"cwd": scratch, "env": kept | {"HOME": scratch}}
        with closing(Sandbox(setup, task.seconds, wrapper, **options)) as sandbox:
            sandbox.send(*((*inputs[place], seed) for place, seed in plan))
            answers = []
            for wanted in ["loaded", *["returned"] * len(plan)]:
                kind, said = sandbox.receive()
                if kind != wanted:
                    is_endless = (wanted, kind) == ("loaded", "late")
                    kind = "endless" if is_endless else kind
                    return Runs([], [], _describe_fault(task, len(plan), kind, said), is_endless)
                answers.append(said)
    return sort_outputs(task, plan, answers[1:])


def _describe_fault(task: Task, calls: int, kind: str, said: list[str]) -> str:
    if kind == "returned":  # before it was called
        return _UNREADABLE.capitalize()
    name, words = task.function, " ".join(": ".join(said[:2]).split())
    faults = {
        "endless": f"Its cells had not ended after {task.seconds:g} seconds",
        "late": f"{name} was still at work after {task.seconds:g} seconds, in which it had to be "
        f"run {calls:,} times",
        "missing": f"There is no function {name}" + (f", because {words}" if words else ""),
        "raised": f"{name} raised {words}",
        "refused": f"{name} returned a {words}; return numbers, texts, lists or arrays of them",
    }
    return faults.get(kind, _UNREADABLE.capitalize())


# One mechanism


@contextmanager
def in_a_process(
    mechanism: Callable | str, *, seconds: float = 60.0, fresh: bool = False
) -> Iterator[Callable]:
    """Run a mechanism that you do not trust in a process of its own.

    Parameters
    ----------
    mechanism : callable or str
        A function, or where to find it: ``"folder/submission.py:function"`` or
        ``"package.module:function"``. A name is loaded in that process alone. A function that was
        written in a notebook or a script needs the package cloudpickle.
    seconds : float, default 60.0
        The time that loading and all calls may take together.
    fresh : bool, default False
        Whether every call loads the mechanism anew, in a process that has seen no other call, so
        that it remembers nothing. That adds some milliseconds to a call, and needs a system that
        can fork (not Windows).

    Returns
    -------
    context manager of a callable
        Called as ``mechanism(data, rng=None)``, it returns the output. The process ends with the
        ``with`` block.

    Raises
    ------
    ValueError
        If `seconds` is not positive and finite, or a name has no colon.
    TypeError
        If the mechanism is neither callable nor a string or cannot be sent to a process, or `fresh`
        is not a boolean.
    NotImplementedError
        If `fresh` is asked of a system that cannot fork.
    MechanismFailed
        In a call, if there is no output: the mechanism cannot be loaded, the time is over, the
        process has ended, or the output is of a type that cannot leave it. Then there is no bound,
        not even 0.
    MechanismRaised
        In a call, if the mechanism raised. An audit counts that as an output.

    Notes
    -----
    The process is another Python (on Linux, macOS or Windows). It gets the data of one run at a
    time, and is never told which of the data sets they are or what the run is for. Its answers come
    as JSON, which runs no code: None, booleans, numbers, texts, and lists, tuples, dicts and arrays
    of them. Numbers of numpy arrive as Python's own, an array of numbers as one of booleans, int64
    or float64, an array of texts as a list, and a dataclass as ``{name of its class: {name of a
    field: value}}``. Sets and subclasses of other types are refused: return a sorted list.

    The process makes a generator of its own, from a seed drawn from `rng`, and keeps it while it is
    given the same `rng`. So a mechanism that copies its generator repeats itself, and is found out.

    This is not a sandbox: the mechanism can still read and write files, use the network and all
    memory, and behave in an audit as it does nowhere else.

    Examples
    --------
    >>> from dpnotes.audit import epsilon_lower_bound
    >>> with in_a_process("dpnotes.randomized_response:two_coin") as mechanism:
    ...     reports = mechanism([True, False], rng=1)
    ...     bound = epsilon_lower_bound(mechanism, [True], [False], trials=1000, rng=1)
    >>> reports.shape, 0.5 < bound < 1.1
    ((2,), True)
    """
    seconds = check_real("seconds", seconds, low=0.0, low_open=True, allowed="a positive number")
    check_flag("fresh", fresh)
    if fresh and not hasattr(os, "fork"):
        raise NotImplementedError("fresh processes need a system that can fork")
    with closing(_Mechanism(_pickle_mechanism(mechanism), seconds, fresh)) as near_end:
        yield near_end


def _pickle_mechanism(mechanism: Callable | str) -> str | bytes:
    """Return what the process loads the mechanism from."""
    if isinstance(mechanism, str):
        if not all(mechanism.rpartition(":")):
            raise ValueError(f"mechanism must be named as place:function, got {mechanism!r}")
        return mechanism
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable or named, got {type(mechanism).__name__}")
    try:
        import cloudpickle as pickler
    except ModuleNotFoundError:
        pickler = pickle
    try:
        return pickler.dumps(mechanism)
    except Exception as error:
        raise TypeError(
            "mechanism must be importable by name, or cloudpickle installed, to run in a process"
        ) from error


class _Mechanism:
    """The near end of a mechanism that runs elsewhere."""

    def __init__(self, place: str | bytes, seconds: float, fresh: bool) -> None:
        self._fresh, self._ended = fresh, ""
        self._generator: np.random.Generator | None = None
        setup = {"place": place, "fresh": fresh, "blocked": (), "limits": {}}
        self._sandbox = Sandbox(setup, seconds, env=os.environ | _ONE_THREAD)

    def __call__(self, data: object, rng: np.random.Generator | int | None = None) -> object:
        """Return what the mechanism returns, or raise `MechanismRaised` where it raises."""
        if self._ended:
            raise MechanismFailed(self._ended)
        rng, seed = check_rng(rng), None
        # A process that has seen no other call has no generator that goes on.
        if self._fresh or rng is not self._generator:
            self._generator, seed = rng, rng.integers(2**63, size=4).tolist()
        self._sandbox.send(((data,), {}, seed))
        kind, said = self._sandbox.receive()
        if kind == "loaded":
            kind, said = self._sandbox.receive()
        if kind == "returned":
            return said
        if kind == "raised":
            raise MechanismRaised(*said)
        words = {
            "missing": "mechanism cannot be loaded, ",
            "refused": f"mechanism must return {_CARRIED}, got ",
            "late": "it took more than its seconds",
        }
        self.close(
            f"mechanism gives no output: {words.get(kind, _UNREADABLE)}{': '.join(said[:2])}"
        )
        raise MechanismFailed(self._ended)

    def close(self, why: str = "the process of the mechanism has ended") -> None:
        """End the process, and those that it started."""
        if not self._ended:
            self._ended = why
            self._sandbox.close()
