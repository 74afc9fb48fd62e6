"""Run what is not trusted in a process of its own, and read what it returns.

Nothing that arrives is trusted. It is JSON, from which `build_output` makes numbers, texts, arrays
and collections of them; what is none of these, or too much, is no output.
"""

import functools
import itertools
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpnotes._checks import check_flag, check_real, check_rng
from dpnotes.audit._outputs import ALLOWED, MechanismFailed
from dpnotes.grading import _sandbox_worker
from dpnotes.grading._task import Task, list_inputs
from dpnotes.grading._values import build_output, is_plain

_NAMESPACES = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)
# Network namespaces do not cut off the sockets of services, which lie there.
_SERVICES = ("/run", "/var/run")
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SystemRoot", "TMPDIR", "TEMP", "TMP")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SCRATCH = 2**26  # bytes of files, together and each
_LARGEST = 2**26  # bytes of one message
_MOST = 2**28  # bytes of all answers to a list of calls
_PATIENCE = 60.0  # seconds for the interpreter to start, beside what the submission may take
_ENDED = [("ended", "")]
_UNREADABLE = "its process ended, or said what cannot be read"


class MechanismRaised(Exception):  # noqa: N818
    """A mechanism in a process of its own raised an exception: its type, message and arguments."""


class Sandbox:
    """The near end of a process: it is sent lists of calls, and says lists of answers.

    `wrapper` is a command that runs the process.
    """

    def __init__(self, setup: dict, wrapper: Iterable[str] = (), **options: object) -> None:
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
        self.send(setup)

    def send(self, message: object) -> None:
        """Send the setup, or a list of (pickled arguments, seed or None, whether it is new)."""
        self._said = 0  # bytes since it was last asked
        self._messages.put(pickle.dumps(message, protocol=5))

    def receive(self, seconds: float) -> list[tuple[str, object]] | None:
        """Return the answers of the next message as (kind, what it says), or None if it is late."""
        try:
            content = self._answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None
        return read_message(content)

    def end(self) -> None:
        """End the process, and those of its group or its namespaces."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._messages.put(b"")

    def _talk(self) -> None:
        """Write all messages, up to an empty one."""
        with suppress(OSError), self._process.stdin as stream:
            while content := self._messages.get():
                stream.write(len(content).to_bytes(8, "big") + content)
                stream.flush()

    def _listen(self) -> None:
        """Queue all messages, up to too large a one, and an empty one."""
        with self._process.stdout as stream:
            while len(head := stream.read(8)) == 8:
                size = int.from_bytes(head, "big")
                self._said += size
                if size > _LARGEST or self._said > _MOST:
                    break
                self._answers.put(stream.read(size))
        self._answers.put(b"")


def read_message(content: bytes) -> list[tuple[str, object]]:
    """Return what a message says; one that cannot be read is an end."""
    try:
        return [_read_answer(*answer) for answer in json.loads(content)] or _ENDED
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError):
        return _ENDED


def _read_answer(kind: str, said: object) -> tuple[str, object]:
    if kind == "returned":
        return kind, build_output(said)
    words = said if type(said) is list else [said]
    if not all(type(word) is str for word in [kind, *words]):
        raise TypeError("an answer that is no output must be texts")
    return kind, said


# Submissions


class Stored(NamedTuple):
    """What came of a submission: an output for each call, or a `fault` that says why not.

    `is_endless` says that its cells did not end, so that no function was called.
    """

    outputs: list
    fault: str = ""
    is_endless: bool = False


def choose_isolation(isolation: str) -> str:
    """Return "namespaces" where bubblewrap makes them and they are wanted, else "process"."""
    if isolation == "process":
        return "process"
    if _has_namespaces():
        return "namespaces"
    if isolation == "namespaces":
        raise NotImplementedError("isolation in namespaces needs a Linux on which bubblewrap works")
    return "process"


@functools.cache
def _has_namespaces() -> bool:
    """Whether bubblewrap is installed, and the system lets it do its work."""
    with tempfile.TemporaryDirectory() as scratch, suppress(OSError):
        command = [*_NAMESPACES, *_cover(scratch), sys.executable, "-I", "-c", ""]
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


def _cover(folder: str) -> list[str]:
    """Return what puts an empty folder, of limited size, before another one."""
    return ["--size", str(_SCRATCH), "--tmpfs", folder]


def _wrap(task: Task, hidden: Iterable[str], scratch: str) -> list[str]:
    """Return the command that shows a process nothing of what is hidden, and one empty folder."""
    used = [os.path.realpath(place) for place in [*sys.path, sys.prefix, sys.base_prefix]]
    services = [f for f in _SERVICES if not any(f"{u}/".startswith(f"{f}/") for u in used)]
    blocked = [place for name in task.blocked for place in _find_places(name)]
    places = set(map(os.path.realpath, [*hidden, *services, *blocked]))
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
    task: Task,
    cells: list[str],
    plan: list[tuple[int, int | None]],
    hidden: Iterable[str] = (),
    isolation: str = "process",
) -> Stored:
    """Load a submission, and call its function as planned: (which inputs, seed or None)."""
    limits = {
        "RLIMIT_AS": task.memory,
        "RLIMIT_CPU": int(task.seconds) + 1,
        "RLIMIT_FSIZE": _SCRATCH,
        "RLIMIT_CORE": 0,
    }
    setup = {"place": "", "cells": cells, "function": task.function, "fresh": False}
    setup |= {"blocked": task.blocked, "limits": limits}
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    inputs = [pickle.dumps(given, protocol=5) for given in list_inputs(task)]
    calls = [(inputs[place], seed, True) for place, seed in plan]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        wrapper = _wrap(task, hidden, scratch) if isolation == "namespaces" else []
        environment = kept | _ONE_THREAD | {"HOME": scratch}
        sandbox = Sandbox(setup, wrapper, cwd=scratch, env=environment)
        try:
            return _hear(sandbox, task, calls)
        finally:
            sandbox.end()


def _hear(sandbox: Sandbox, task: Task, calls: list[tuple]) -> Stored:
    # It is ready before anything of the submission is loaded.
    if sandbox.receive(_PATIENCE) != [("ready", "")]:
        raise RuntimeError("the process that runs submissions does not start")
    sandbox.send(calls)
    deadline = time.monotonic() + task.seconds
    outputs: list = []
    wanted = "loaded"
    while len(outputs) < len(calls):
        answers = sandbox.receive(deadline - time.monotonic())
        if answers is None and wanted == "loaded":
            fault = f"its cells had not ended after {task.seconds:g} seconds"
            return Stored([], fault, is_endless=True)
        if answers is None:
            return Stored(
                [],
                f"{task.function} was still at work after {task.seconds:g} seconds, in which it "
                f"had to be run {len(calls):,} times",
            )
        for kind, said in answers:
            if kind == "returned" and not is_plain(said):
                kind, said = "refused", type(said).__name__
            if kind != wanted:
                return Stored([], _describe_fault(task.function, kind, said))
            if kind == "returned":
                outputs.append(said)
            wanted = "returned"
    return Stored(outputs[: len(calls)])


def _describe_fault(name: str, kind: str, said: str | list[str]) -> str:
    words = " ".join((said if type(said) is str else ": ".join(said[:2])).split())
    if kind == "missing":
        return f"there is no function {name}" + (f", because {words}" if words else "")
    if kind == "raised":
        return f"{name} raised {words}"
    if kind == "refused":
        return f"{name} returned a {words}; return numbers, texts, lists or arrays of them"
    return _UNREADABLE


# One mechanism


@contextmanager
def in_a_process(
    mechanism: Callable | str, *, seconds: float = 60.0, fresh: bool = False
) -> Iterator[Callable]:
    """Run a mechanism that is not trusted in a process of its own.

    Parameters
    ----------
    mechanism : callable or str
        A function, or where it is found: ``"folder/submission.py:function"`` or
        ``"package.module:function"``. By name it is loaded in its process only. A function that
        was written in a notebook or a script needs the package cloudpickle.
    seconds : float, default 60.0
        The time that loading and all calls together may take.
    fresh : bool, default False
        Whether every call loads the mechanism anew in a process that has seen no other call, so
        that it remembers nothing. It takes some milliseconds a call, and no Windows.

    Returns
    -------
    context manager of a callable
        Called as ``mechanism(data, rng=None)``, it returns the output, of plain types. A dataclass
        arrives as ``{name of its class: {name of a field: value}}``; a subclass of another type is
        refused. The process ends with the ``with`` block.

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
        In a call, if there is no output: it cannot be loaded, the time is over, the process has
        ended, or the output is of a type that no audit reads. Then no bound is given, not even 0.
    MechanismRaised
        In a call, if the mechanism raised. An audit counts that as an output.

    Notes
    -----
    The process is another Python (Linux, macOS and Windows). It is sent the data of one run at a
    time, and never which data set they are or what the run is for. It answers in a plain format
    that runs no code and builds no objects but numbers, texts, arrays and collections of them.

    The process makes a generator of its own, of a seed drawn from `rng`, and uses it as long as it
    is given the same `rng`: a mechanism that copies it repeats itself.

    It is no sandbox: the mechanism can still read and write files, use the network and all memory,
    and behave in an audit as it does nowhere else.

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
    near_end = _Mechanism(_pickle_mechanism(mechanism), seconds, fresh)
    try:
        yield near_end
    finally:
        near_end.end()


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
        self._left, self._fresh, self._ended = seconds, fresh, ""
        self._generator: np.random.Generator | None = None
        self._seed: list[int] = []
        self._draws = 0  # calls with this generator
        setup = {"place": place, "fresh": fresh, "blocked": (), "limits": {}}
        self._sandbox = Sandbox(setup, env=os.environ | _ONE_THREAD)

    def __call__(self, data: object, rng: np.random.Generator | int | None = None) -> object:
        """Return what the mechanism returns, or raise `MechanismRaised` where it raises."""
        if self._ended:
            raise MechanismFailed(self._ended)
        seed, is_new = self._draw_seed(check_rng(rng))
        self._sandbox.send([(pickle.dumps(((data,), {}), protocol=5), seed, is_new)])
        kind, said = self._hear()
        if kind == "returned":
            return said
        if kind == "raised":
            raise MechanismRaised(tuple(said))
        words = {
            "missing": f"mechanism cannot be loaded, {said}",
            "refused": f"mechanism must return {ALLOWED}, got {said}",
            "late": "it took more than its seconds",
        }
        self.end(f"mechanism gives no output: {words.get(kind, _UNREADABLE)}")
        raise MechanismFailed(self._ended)

    def end(self, why: str = "the process of the mechanism has ended") -> None:
        """End the process, and those that it started."""
        if not self._ended:
            self._ended = why
            self._sandbox.end()

    def _draw_seed(self, rng: np.random.Generator) -> tuple[list[int], bool]:
        """Return the seed of a generator, drawn when it is new, and whether it is made anew."""
        if rng is not self._generator:
            self._generator, self._seed = rng, rng.integers(2**63, size=4).tolist()
            self._draws = 0
        self._draws += 1
        # A process that has seen no other call has no generator that goes on.
        return ([*self._seed, self._draws], True) if self._fresh else (self._seed, self._draws == 1)

    def _hear(self) -> tuple[str, object]:
        """Wait for an answer as long as there is time."""
        kind, said = "ready", ""
        while kind in ("ready", "loaded"):
            started = time.monotonic()
            [(kind, said), *more] = self._sandbox.receive(self._left) or [("late", "")]
            self._left -= time.monotonic() - started
        return ("ended", "") if more else (kind, said)
