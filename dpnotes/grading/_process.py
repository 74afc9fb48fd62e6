"""A mechanism in a process of its own: it reaches nothing of the process that judges it."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from dpnotes._checks import check_real, check_rng
from dpnotes.audit._outputs import MechanismFailed
from dpnotes.grading._plain import built

_LARGEST = 2**26  # bytes of one answer
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class MechanismRaised(Exception):  # noqa: N818
    """A mechanism in a process of its own raised an exception: its type, message and arguments."""


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
    if not isinstance(fresh, bool):
        raise TypeError(f"fresh must be True or False, got {type(fresh).__name__}")
    if fresh and not hasattr(os, "fork"):
        raise NotImplementedError("fresh processes need a system that can fork")
    process = _Process(_sent(mechanism), seconds, fresh)
    try:
        yield process
    finally:
        process.end()


def _sent(mechanism: Callable | str) -> str | bytes:
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


class _Process:
    """The near end of a mechanism that runs elsewhere."""

    def __init__(self, mechanism: str | bytes, seconds: float, fresh: bool) -> None:
        self._left, self._ended = seconds, ""
        self._generator: np.random.Generator | None = None
        self._seed: list[int] = []
        self._draws = 0  # calls with this generator
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dpnotes.grading._worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path} | dict.fromkeys(_ONE_THREAD, "1"),
            start_new_session=True,
        )
        # Whoever neither reads nor writes keeps a thread waiting, and not the one that judges.
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for work in (self._talk, self._listen):
            threading.Thread(target=work, daemon=True).start()
        self._send((mechanism, fresh))

    def __call__(self, data: object, rng: np.random.Generator | int | None = None) -> object:
        """Return what the mechanism returns, or raise `MechanismRaised` where it raises."""
        if not self._ended:
            self._seed_for(check_rng(rng))
            self._send((data, self._seed, self._draws))
            kind, output = self._answer()
            if kind == "returned":
                return output
            if kind == "raised":
                raise MechanismRaised(output)
            self.end(f"mechanism gives no output: {output}")
        raise MechanismFailed(self._ended)

    def end(self, why: str = "the process of the mechanism has ended") -> None:
        """End the process, and those that it started."""
        if self._ended:
            return
        self._ended = why
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._messages.put(b"")

    def _seed_for(self, rng: np.random.Generator) -> None:
        """Draw a seed for each new generator, which tells nothing of it."""
        if rng is not self._generator:
            self._generator, self._seed = rng, rng.integers(2**63, size=4).tolist()
            self._draws = 0
        self._draws += 1

    def _answer(self) -> tuple[str, object]:
        """Wait for an answer as long as there is time."""
        started = time.monotonic()
        try:
            kind, output = built(self._answers.get(timeout=max(0.0, self._left)))
        except queue.Empty:
            return "failed", "it took more than its seconds"
        except (TypeError, ValueError):  # not an output, or not two
            return "failed", "its process ended, or said what cannot be read"
        self._left -= time.monotonic() - started
        return kind, output

    def _send(self, message: object) -> None:
        self._messages.put(pickle.dumps(message, protocol=5))

    def _talk(self) -> None:
        """Write all messages, up to an empty one."""
        with suppress(OSError), self._process.stdin as stream:
            while content := self._messages.get():
                stream.write(len(content).to_bytes(8) + content)
                stream.flush()

    def _listen(self) -> None:
        """Put all answers into the queue, the last one empty."""
        with self._process.stdout as stream:
            while len(head := stream.read(8)) == 8 and int.from_bytes(head) <= _LARGEST:
                self._answers.put(stream.read(int.from_bytes(head)))
        self._answers.put(b"")
