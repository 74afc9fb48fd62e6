"""The far end of a sandbox: a script that runs what is not trusted and says what it returns.

Where submissions run it imports nothing of the package, which is the solution of many tasks. What
it writes may come from whatever it runs, so the near end trusts none of it.
"""

import ast
import codeop
import ctypes
import dataclasses
import json
import os
import pickle
import pkgutil
import re
import runpy
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import numpy as np

DEEPEST = 30  # lists within lists
PLAIN = (int, float, str, list, tuple, dict)
MENDS = {"coroutine": "await it", "function": "call it", "set": "sort it"}
WAYS = {"tolist": ".tolist()", "to_numpy": ".to_numpy()", "__iter__": "list(...)"}
WAYS |= {"__float__": "float(...)"}
MAGIC = re.compile(r"^([ \t]*)(?:[!?]|%%?\w|\w+ *= *[!%]|[\w.]+\?).*", re.M)
# The system calls that are in no library of Linux, by its processors.
KEYCTL = {"x86_64": 250, "aarch64": 219}


def main() -> None:
    """Answer calls from standard input on standard output, which what runs here does not get."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    setup = pickle.load(calls)
    if "limits" in setup:
        shut_in(setup["limits"])
    for answer in answer_setup(setup, iter(lambda: pickle.load(calls), None)):
        answers.write(answer + b"\n")
        answers.flush()


def answer_setup(setup: dict, calls: Iterable[tuple]) -> Iterator[bytes]:
    """Yield all answers as JSON: that it is ready, and what comes of the calls."""
    yield json.dumps(["ready"]).encode()
    sys.meta_path.insert(0, Blocked(setup.get("blocked", ())))
    if setup.get("fresh"):
        pkgutil.resolve_name("dpnotes.audit._lower_bound")  # once, not in every fork
        yield from (answer_in_a_fork(setup, call) for call in calls)
    else:
        yield from (json.dumps(answer).encode() for answer in answer_calls(setup, calls))


def answer_in_a_fork(setup: dict, call: tuple) -> bytes:
    """Load and answer in a process that ends with its answer, and return what it says."""
    near, far = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.closerange(3, near + 1)  # the calls and answers of others
            *_, answer = answer_calls(setup, [call])
            with os.fdopen(far, "wb") as stream:
                stream.write(json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(far)
    with os.fdopen(near, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return content.replace(b"\n", b" ")  # a second line would answer the next call


def answer_calls(setup: dict, calls: Iterable[tuple]) -> Iterator[list]:
    """Load the function once, and yield what came of that and of each call: [kind, ...]."""
    if "place" in setup:
        function, fault = load_mechanism(setup["place"])
    else:
        function, fault = load_submission(setup["cells"], setup["function"])
    if function is None:
        yield ["missing", *fault]
        return
    yield ["loaded"]
    rng = None
    for args, options, seed in calls:
        if seed is not None:
            rng = np.random.default_rng(seed)
        if rng is not None:
            options["rng"] = rng
        yield answer_call(function, args, options)


def answer_call(function: Callable, args: tuple, options: dict) -> list:
    """Return what came of a call."""
    try:
        return ["returned", write_output(function(*args, **options))]
    except Refused as error:
        return ["refused", str(error)]
    except BaseException as error:  # of the function, or of a dataclass when its fields are read
        return ["raised", *describe_error(error)]


def describe_error(error: BaseException) -> list[str]:
    """Return the type of an exception, its message and its arguments."""
    try:
        return [type(error).__name__, str(error), repr(error.args)]
    except BaseException:  # a message of the submission's own making
        return [type(error).__name__, "", ""]


def load_submission(cells: list[str], name: str) -> tuple[Callable | None, list[str]]:
    """Run all cells, and return the function of that name, or else a fault.

    It is the first in a cell that defines the function, or the first of all.
    """
    submission = types.ModuleType("submission")
    sys.modules["submission"] = submission
    compiled, faults = codeop.Compile(), []  # it remembers imports from `__future__`
    compiled.flags = 0  # and expects no further lines
    for number, cell in enumerate(cells, start=1):
        for part in split_cell(cell):
            try:
                code = compiled(part, f"<submission, part {number}>", "exec")
                exec(code, submission.__dict__)
            except BaseException as error:  # one that fails does not stop the next
                faults.append((f"def {name}(" in cell, describe_error(error)))
    function = getattr(submission, name, None)
    if callable(function):
        return function, []
    return None, max(faults, key=lambda fault: fault[0], default=(False, []))[1]


def split_cell(cell: str) -> list[ast.Module | str]:
    """Return the statements of a cell, or all of it as one where it cannot be read.

    Lines that begin with % or ! are for IPython, as are a name with ? and what it assigns from
    them. One at which Python can read no further becomes a line that does nothing: within an
    expression or a text, such a line is part of it.
    """
    try:
        return [ast.Module([statement], []) for statement in ast.parse(cell).body]
    except (MemoryError, RecursionError, SyntaxError, ValueError) as error:
        number, lines = getattr(error, "lineno", None) or 0, cell.split("\n")
    lines[number - 1 : number] = [MAGIC.sub(r"\1pass", line) for line in lines[number - 1 : number]]
    mended = "\n".join(lines)
    return [cell] if mended == cell else split_cell(mended)


def load_mechanism(place: str | bytes) -> tuple[Callable | None, list[str]]:
    """Return a mechanism as a function of data and `rng`, or else why there is none."""
    from dpnotes.audit._lower_bound import takes_rng

    try:
        if isinstance(place, bytes):
            mechanism = pickle.loads(place)
        elif ".py:" in place:
            name, _, function = place.rpartition(":")
            sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
            mechanism = runpy.run_path(name)[function]
        else:
            mechanism = pkgutil.resolve_name(place)
        with_rng = takes_rng(mechanism)
    except BaseException as error:
        return None, describe_error(error)
    return (mechanism if with_rng else lambda data, rng: mechanism(data)), []


def write_output(output: object, depth: int = 0) -> object:
    """Return an output as JSON holds it: constants as they are, and [name, part, ...] for others.

    Numbers of numpy become Python's own, and an array of numbers is its shape and the list of them.
    What has no name there, such as a subclass, is refused in words that say what it is.
    """
    kind = type(output)
    if dataclasses.is_dataclass(kind):
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        return write_output({kind.__name__: fields | getattr(output, "__dict__", {})}, depth)
    if type(kind) is not type:  # a metaclass may say that it equals another type
        raise Refused(describe_kind(kind))
    if kind is int and output.bit_length() > 14_284:  # Python writes and reads no more
        raise Refused("number of 4,300 digits or more")
    if output is None or kind in (bool, int, float, str):
        return output
    if depth == DEEPEST:
        raise Refused(f"nest of more than {DEEPEST} lists, or of one within itself")
    if kind in (list, tuple):
        return [kind.__name__, *[write_output(item, depth + 1) for item in output]]
    if kind is dict:
        parts = [*output], [*output.values()]
        return ["dict", *[write_output(part, depth + 1) for part in parts]]
    if kind is np.ndarray or (isinstance(output, np.generic) and kind is output.dtype.type):
        if output.dtype.kind == "f":
            output = output.astype(float)  # a long double, too, is read as one
        if output.dtype.kind in "biuf" and kind is np.ndarray:
            return ["array", output.shape, output.ravel().tolist()]
        if output.dtype.kind in "biufUO":
            return write_output(output.tolist(), depth + (output.dtype.kind == "O"))
        raise Refused(f"{kind.__name__} of {output.dtype}")
    raise Refused(describe_kind(kind))


def describe_kind(kind: type) -> str:
    """Return the name of a type that is no output, and what to do with it if that is known."""
    ways = [f"take {plain.__name__}(...)" for plain in PLAIN if issubclass(kind, plain)]
    ways += [MENDS[name] for name in [kind.__name__] if name in MENDS]
    ways += [f"take {way}" for name, way in WAYS.items() if hasattr(kind, name)]
    return f"{kind.__name__} ({ways[0]})" if ways else kind.__name__


class Refused(TypeError):  # noqa: N818
    """What a function returned is no output."""


class Blocked:
    """A finder of modules that refuses some by name, with all that is in them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if any(f"{name}.".startswith(f"{blocked}.") for blocked in self.names):
            raise ModuleNotFoundError(f"{name} is blocked in this task", name=name)


def shut_in(limits: dict[str, int]) -> None:
    """Set the limits that the system enforces, end with the judge and share no keys with it.

    Windows can do none of this, and only Linux all.
    """
    with suppress(ModuleNotFoundError):
        import resource

        for name, limit in limits.items():
            with suppress(AttributeError, OSError, ValueError):
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    with suppress(AttributeError, KeyError, OSError, TypeError):
        system = ctypes.CDLL(None)
        system.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        system.syscall(KEYCTL[os.uname().machine], 1, None)  # KEYCTL_JOIN_SESSION_KEYRING


if __name__ == "__main__":
    main()
