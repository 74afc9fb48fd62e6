"""The near end of a sandbox: run a function of a submission many times and store what it returns.

Nothing that arrives is trusted. It is read by `_plain.built_of`, which makes numbers, texts, arrays
and collections of them and runs no code; what is none of these, or too much, is no output.
"""

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
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from dpnotes.grading import _sandbox_worker
from dpnotes.grading._plain import built_of

_LARGEST = 2**26  # bytes of one message
_MOST = 2**28  # bytes of all messages
_WAITING = 16  # messages that are read before somebody wants them
_PATIENCE = 10.0  # seconds for the interpreter to start, beside what the submission may take
_GRACE = 5.0  # seconds to end in
# Sockets of services lie there, which a network namespace does not cut off.
_SERVICES = ("/run", "/var/run")
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SystemRoot", "TMPDIR", "TEMP", "TMP")
_PLAIN = (type(None), bool, int, float, str)


class Job(NamedTuple):
    """What a submission is to do: which calls of which function, and what it may use.

    `inputs` are (arguments, arguments by name); `plan` says which of them are called in which
    order, with which seed or with none.
    """

    cells: list[str]
    function: str
    inputs: list[tuple[tuple, dict]]
    plan: list[tuple[int, int | None]]
    blocked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    seconds: float = 60.0
    memory: int = 2**31
    isolation: str = "best"


class Stored(NamedTuple):
    """What came of a job: an output for each call of the plan, or the reason why there is none.

    `fault` is empty or a sentence. `isolation` says how far the process was shut in.
    """

    outputs: list
    fault: str
    isolation: str
    seconds: float

    @property
    def is_endless(self) -> bool:
        """Whether the cells of the submission did not end, so that no function was run."""
        return self.fault.startswith(_ENDLESS.partition("{")[0])


def collected(job: Job) -> Stored:
    """Run a job in a process of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        process = _started(job, scratch)
        answers = _Answers(process)
        try:
            outputs, fault, isolation = _heard(job, answers)
        finally:
            answers.stop()
            _end(process)
    if job.isolation == "namespaces" and isolation != "namespaces":
        raise NotImplementedError("isolation in namespaces needs a Linux that allows them")
    return Stored(outputs, fault, isolation, time.monotonic() - began)


def _started(job: Job, scratch: str) -> subprocess.Popen:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    kept |= {"HOME": scratch, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", _sandbox_worker.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept | {"MKL_NUM_THREADS": "1"},
        start_new_session=True,
    )
    path = [os.path.abspath(folder) for folder in sys.path]
    message = job._asdict() | {
        "inputs": [pickle.dumps(given, protocol=5) for given in job.inputs],
        "namespaces": job.isolation != "process",
        "hidden": [*map(os.path.abspath, job.hidden), *_unused(_SERVICES, path)],
        "path": path,
        "scratch": scratch,
    }
    with suppress(OSError), process.stdin as stream:
        stream.write(pickle.dumps(message, protocol=5))
    return process


def _unused(folders: tuple[str, ...], path: list[str]) -> list[str]:
    """Return those of the folders that hold nothing that Python is loaded from."""
    used = [*path, sys.prefix, sys.base_prefix]
    real = dict.fromkeys(os.path.realpath(folder) for folder in folders)
    return [f for f in real if not any(f"{place}/".startswith(f"{f}/") for place in used)]


class _Answers:
    """What a process says, message by message, read by a thread that waits where nobody listens."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._stream, self._stopped = process.stdout, threading.Event()
        self._queue: queue.Queue[bytes] = queue.Queue(_WAITING)
        threading.Thread(target=self._listen, daemon=True).start()

    def next(self, deadline: float) -> bytes | None:
        """Return the next message, an empty one at the end, or None where it is late."""
        try:
            return self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def _listen(self) -> None:
        total = 0
        with suppress(OSError, ValueError), self._stream as stream:
            while len(head := stream.read(8)) == 8:
                size = int.from_bytes(head, "big")
                total += size
                if not 0 < size <= _LARGEST or total > _MOST:
                    break
                content = stream.read(size)
                if len(content) < size or not self._put(content):
                    break
        self._put(b"")

    def _put(self, content: bytes) -> bool:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(content, timeout=0.2)
                return True
        return False


def _heard(job: Job, answers: _Answers) -> tuple[list, str, str]:
    """Return the outputs, the reason why some are missing, and the isolation."""
    # The first message is written before anything of the submission is loaded.
    [(kind, isolation), *_] = _read(answers.next(time.monotonic() + _PATIENCE))
    if kind != "ready":
        raise RuntimeError("the process that runs submissions does not start")
    outputs: list = []
    deadline = time.monotonic() + job.seconds
    wanted = "loaded"
    while len(outputs) < len(job.plan):
        content = answers.next(deadline)
        if content is None:
            fault = _ENDLESS if wanted == "loaded" else _SLOW
            said = fault.format(name=job.function, seconds=job.seconds, runs=len(job.plan))
            return outputs, said, isolation
        for kind, said in _read(content):
            if kind != wanted:
                fault = _FAULTS.get(kind, _UNREADABLE)
                return outputs, fault.format(name=job.function, said=said), isolation
            if kind == "returned":
                outputs.append(said)
            wanted = "returned"
    return outputs[: len(job.plan)], "", isolation


_END = [("ended", "")]
_ENDLESS = "its cells had not ended after {seconds:g} seconds"
_SLOW = (
    "{name} was still at work after {seconds:g} seconds, in which it had to be run {runs:,} times"
)
_UNREADABLE = "its process ended, or said what cannot be read"
_FAULTS = {
    "missing": "there is no function {name}{said}",
    "raised": "{name} raised {said}",
    "refused": "{name} returned a {said}; return numbers, texts, lists or arrays of them",
}


_DEEPEST = 30  # lists within lists


def _read(content: bytes | None) -> list[tuple[str, object]]:
    """Return what a message says: answers of a kind each; all that is none is an end."""
    try:
        said = [_answer(*answer) for answer in json.loads(content or b"")]
    except (RecursionError, TypeError, ValueError):
        return _END
    return said or _END


def _answer(kind: str, said: object) -> tuple[str, object]:
    if kind == "returned":
        output = built_of(said)
        return (kind, output) if _is_plain(output) else ("refused", type(output).__name__)
    if type(kind) is not str or type(said) is not str:
        raise TypeError
    said = " ".join(said.split())
    return kind, f", because {said}" if kind == "missing" and said else said


def _is_plain(output: object, depth: int = 0) -> bool:
    """Whether an output is of the types that are judged, all through, and not too deep to judge."""
    kind = type(output)
    if kind in (list, tuple, dict):
        parts = [*output, *output.values()] if kind is dict else output
        return depth < _DEEPEST and all(_is_plain(part, depth + 1) for part in parts)
    if kind is np.ndarray or isinstance(output, np.generic):
        return output.dtype.kind in "biufU"
    return kind in _PLAIN


def _end(process: subprocess.Popen) -> None:
    """End the process and all that it started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
