"""Run code that is not trusted in a process of its own, and read what it returns.

Each answer is a line of JSON, and none of it is trusted: `build_output` makes numbers, texts,
arrays and collections of them, and whatever is something else, or too large, is no output.
"""

import functools
import glob
import json
import math
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpnotes._checks import check_flag, check_real, check_rng
from dpnotes.audit._outputs import MechanismFailed
from dpnotes.grading import _sandbox_worker
from dpnotes.grading._task import Runs, Task, sort_outputs

_SCRATCH = 2**26  # bytes of files, together and each
_NAMESPACES = (
    *("bwrap", "--unshare-all", "--unshare-user", "--new-session", "--cap-drop", "ALL"),
    *("--die-with-parent", "--ro-bind", "/", "/", "--setenv", "HOME", "/dev/shm"),
    # Where root grades, /proc/sys sets up the kernel, and a folder without a size takes its memory.
    *("--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc", "--remount-ro", "/proc"),
    *("--size", str(_SCRATCH), "--tmpfs", "/dev/shm", "--chdir", "/dev/shm"),
)
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SystemRoot", "TMPDIR", "TEMP", "TMP")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_LARGEST = 2**26  # bytes of one answer
_MOST = 2**28  # bytes that all answers to what was sent together may take here
# What a sign takes beside its own byte: a number, a list, or one of the two ends of a text.
_WEIGHTS = ((b",", 40), (b"[", 40), (b"{", 40), (b'"', 400))
_WIDEST = 100  # rows of nothing: an empty array costs no bytes, and as lists it has them all
_MOST_ALIKE = 100  # keys with one hash: a table of many such takes the square of their number
_PATIENCE = 60.0  # seconds for the interpreter to start, beside what the submission may take
_UNREADABLE = "its process ended, or said what cannot be read"


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
        command = [*wrapper, sys.executable, "-I", "-B", "-c", script]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True, **options
        )
        # A process that neither reads nor writes keeps these threads waiting, and nobody else.
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        for work in (self._talk, self._listen):
            threading.Thread(target=work, daemon=True).start()
        self._setup, self.seconds = setup, _PATIENCE
        self.send(setup)
        # It is ready before anything that is not trusted is loaded.
        if self.receive() != ("ready", []):
            self.close()
            raise RuntimeError("the process for what is not trusted does not start")
        self.seconds = seconds

    def send(self, *messages: object) -> None:
        """Send the setup, or calls: (arguments, those by name, seed of a new generator or None)."""
        self._left = _MOST
        self._messages.put(b"".join(map(pickle.dumps, messages)))

    def receive(self) -> tuple[str, list]:
        """Return the next answer as (kind, what it says), which is "late" when no time is left."""
        started = time.monotonic()
        self._wanted.put(True)
        line = b'["late"]'
        with suppress(queue.Empty):
            line = self._answers.get(timeout=max(0.0, self.seconds))
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
        self._wanted.put(False)

    def _talk(self) -> None:
        """Write all messages, up to an empty one."""
        with suppress(OSError), self._process.stdin as stream:
            while content := self._messages.get():
                stream.write(content)
                stream.flush()

    def _listen(self) -> None:
        """Queue a line whenever one is wanted, up to an empty one, unless it takes too much."""
        with self._process.stdout as stream:
            while line := self._wanted.get() and stream.readline(_LARGEST):
                # All characters of a text take as many bytes as its widest.
                size = len(line) * (1 if line.isascii() and b"\\u" not in line else 4)
                self._left -= size + sum(line.count(sign) * more for sign, more in _WEIGHTS)
                self._answers.put(line if self._left > 0 else b'["large"]')
        self._answers.put(b"")


def read_answer(line: bytes) -> tuple[str, list]:
    """Return the kind of an answer, and the output or the texts that it says.

    What cannot be read is an end.
    """
    with suppress(ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError):
        kind, *said = json.loads(line)
        if kind == "returned":
            return kind, [build_output(*said)]
        if all(type(word) is str for word in (kind, *said)):
            return kind, said
    return "ended", []


def build_output(parts: object, depth: int = 0) -> object:
    """Return the output that `_sandbox_worker.write_output` wrote, or fail on anything else."""
    if parts is None or type(parts) in (bool, int, float, str):
        return parts
    if depth == _sandbox_worker.DEEPEST:
        raise RecursionError("too deep to judge")
    name, *items = parts
    if name == "array":
        return _build_array(*items)
    items = [build_output(item, depth + 1) for item in items]
    return _build_dict(*items) if name == "dict" else {"list": list, "tuple": tuple}[name](items)


def _build_array(shape: list[int], numbers: list) -> NDArray:
    if type(numbers) is not list or not {bool, int, float}.issuperset(map(type, numbers)):
        raise TypeError("not numbers")
    if not numbers and math.prod(max(1, length) for length in shape) > _WIDEST:
        raise ValueError("too many rows of nothing")
    return np.array(numbers).reshape(shape)


def _build_dict(keys: list, values: list) -> dict:
    if any(count > _MOST_ALIKE for count in Counter(map(hash, keys)).values()):
        raise ValueError("too many keys with one hash")
    return dict(zip(keys, values, strict=True))


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
    command = [*_NAMESPACES, sys.executable, "-I", "-c", ""]
    found = shutil.which("bwrap")
    return found is not None and not subprocess.run(command, capture_output=True).returncode


def _wrap(task: Task, hidden: Iterable[str]) -> list[str]:
    """Return the command that shows a process something empty in place of what is hidden."""
    blocked = [place for name in task.blocked for place in _find_places(name)]
    # Network namespaces do not cut off the sockets of services, which lie there.
    places = [*hidden, "/run", *blocked]
    places += [file for place in places for file in _find_compiled(place)]
    command = list(_NAMESPACES)
    # A folder after what lies in it.
    for place in sorted(set(map(os.path.realpath, places)), reverse=True):
        if os.path.isdir(place):
            command += ["--tmpfs", place, "--remount-ro", place]
        elif os.path.exists(place):
            command += ["--ro-bind", os.devnull, place]
    if len(command) > 8900:  # bubblewrap takes 9,000 words, with those of the worker
        raise ValueError("hidden must hold fewer paths: hide the folders in which they lie")
    return command


def _find_compiled(place: str) -> list[str]:
    """Return the files that Python made of a module when it was imported."""
    folder, name = os.path.split(os.path.splitext(glob.escape(place))[0])
    return glob.glob(os.path.join(folder, "__pycache__", f"{name}.*.pyc"))


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
    limits = {"AS": task.memory, "CPU": int(task.seconds) + 1, "FSIZE": _SCRATCH}
    setup = {"cells": cells, "function": task.function, "blocked": task.blocked, "limits": limits}
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
    inputs = task.inputs
    calls = [(inputs[i], task.arguments, seed if task.uses_rng else None) for i, seed in plan]
    if isolation == "namespaces":
        wrapper, folder = _wrap(task, hidden), nullcontext("/")  # what it writes is in memory
    else:
        wrapper, folder = [], tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folder as scratch:
        options = {"cwd": scratch, "env": kept | {"HOME": scratch}}
        with closing(Sandbox(setup, task.seconds, wrapper, **options)) as sandbox:
            sandbox.send(*calls)
            answers = []
            for wanted in ["loaded", *["returned"] * len(plan)]:
                kind, said = sandbox.receive()
                if kind != wanted:
                    kind = "endless" if (wanted, kind) == ("loaded", "late") else kind
                    fault = _describe_fault(task, len(plan), kind, said)
                    return Runs([], [], fault, kind == "endless")
                answers += said if kind == "returned" else []
    return sort_outputs(task, plan, answers)


def _describe_fault(task: Task, calls: int, kind: str, said: list[str]) -> str:
    name, words = task.function, " ".join(": ".join(f"{word!s:.1000}" for word in said[:2]).split())
    faults = {
        "endless": f"Its cells had not ended after {task.seconds:g} seconds",
        "late": f"{name} was still at work after {task.seconds:g} seconds, in which it had to be "
        f"run {calls:,} times, in {task.seconds / calls:.3g} seconds each",
        "missing": f"There is no function {name}" + (f", because {words}" if words else ""),
        "raised": f"{name} raised {words}",
        "refused": f"{name} returned a {words}; return numbers, texts, lists or arrays of them",
        "large": f"{name} returned more in {calls:,} runs than can be judged",
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
    or float64, an array of others as a list, and a dataclass as ``{name of its class: {name of a
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
    setup = {"place": _pickle_mechanism(mechanism), "fresh": fresh}
    with closing(_Mechanism(setup, seconds, env=os.environ | _ONE_THREAD)) as near_end:
        yield near_end


def _pickle_mechanism(mechanism: Callable | str) -> str | bytes:
    """Return what the process loads the mechanism from."""
    if isinstance(mechanism, str):
        if not all(mechanism.rpartition(":")):
            raise ValueError(f"mechanism must be named as place:function, got {mechanism!r}")
        return mechanism
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable or named, got {type(mechanism).__name__}")
    pickler = pickle
    with suppress(ModuleNotFoundError):
        import cloudpickle as pickler
    try:
        return pickler.dumps(mechanism)
    except Exception as error:
        raise TypeError(
            "mechanism must be importable by name, or cloudpickle installed, to run in a process"
        ) from error


class _Mechanism(Sandbox):
    """The near end of a mechanism that runs elsewhere."""

    _ended = ""
    _generator: np.random.Generator | None = None

    def __call__(self, data: object, rng: np.random.Generator | int | None = None) -> object:
        """Return what the mechanism returns, or raise `MechanismRaised` where it raises."""
        if self._process.returncode is not None or self._ended:
            raise MechanismFailed(self._ended or "the process of the mechanism has ended")
        rng, seed = check_rng(rng), None
        # A process that has seen no other call has no generator that goes on.
        if self._setup["fresh"] or rng is not self._generator:
            self._generator, seed = rng, rng.integers(2**63, size=4).tolist()
        self.send(((data,), {}, seed))
        kind, said = self.receive()
        if kind == "loaded":
            kind, said = self.receive()
        if kind == "returned":
            return said[0]
        if kind == "raised":
            raise MechanismRaised(*said)
        words = {
            "missing": "mechanism cannot be loaded, ",
            "refused": "mechanism must return None, numbers, texts, or lists, tuples, dicts, "
            "arrays or dataclasses of them, got ",
            "large": "it returned more than can be judged",
            "late": "it took more than its seconds",
        }
        why = f"{words.get(kind, _UNREADABLE)}{': '.join(said[:2])}"
        self._ended = f"mechanism gives no output: {why}"
        raise MechanismFailed(self._ended)
