"""The far end of a sandbox: a script that runs what is not trusted and says what it returns.

Where submissions run it imports nothing of the package, which is the solution of many tasks. What
it writes may come from whatever it runs, so the near end trusts none of it.
"""

import ast
import codeop
import dataclasses
import importlib
import importlib.util
import json
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

_TOGETHER = 100  # answers in one message
_WRITABLE = "biufcSUmM"  # kinds of dtypes


def main() -> None:
    """Answer calls from standard input on standard output, which what runs here does not get."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    messages = read_messages(calls)
    setup = next(messages)
    limit_resources(setup["limits"])
    write_message(answers, [["ready", ""]])
    sys.meta_path.insert(0, Blocked(setup["blocked"]))
    if setup["fresh"]:
        importlib.import_module("dpnotes.audit._lower_bound")  # once, not in every fork
        for message in messages:
            write_content(answers, answer_in_a_fork(setup, message))
    else:
        for said in answer_messages(setup, messages):
            write_message(answers, said)


def read_messages(calls: Iterable) -> Iterator:
    """Yield what the near end sends, until it closes the pipe."""
    while size := int.from_bytes(calls.read(8), "big"):
        yield pickle.loads(calls.read(size))


def write_message(answers: int, said: list) -> None:
    """Write a list of [kind of answer, what it says]."""
    write_content(answers, json.dumps(said).encode())


def write_content(answers: int, content: bytes) -> None:
    """Write the length of a message and the message, however much a pipe takes at a time."""
    content = len(content).to_bytes(8, "big") + content
    while content:
        content = content[os.write(answers, content) :]


def answer_in_a_fork(setup: dict, message: list) -> bytes:
    """Load and answer in a process that ends with its answer, and return what it says."""
    near, far = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.closerange(3, near + 1)  # the calls and answers of others
            *_, said = answer_messages(setup, [message])
            with os.fdopen(far, "wb") as stream:
                stream.write(json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(far)
    with os.fdopen(near, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return content


def answer_messages(setup: dict, messages: Iterable[list]) -> Iterator[list]:
    """Load the function once, and yield the answers to its calls, many together."""
    if setup["place"]:
        function, fault = load_mechanism(setup["place"])
    else:
        function, fault = load_submission(setup["cells"], setup["function"])
    if function is None:
        yield [["missing", fault]]
        return
    yield [["loaded", ""]]
    rng = None
    for message in messages:
        said: list[list] = []
        for given, seed, is_new in message:
            args, options = pickle.loads(given)
            if seed is not None:
                rng = np.random.default_rng(seed) if is_new else rng
                options["rng"] = rng
            said.append(answer_call(function, args, options))
            if len(said) == _TOGETHER or said[-1][0] != "returned":
                yield said
                said = []
        if said:
            yield said


def answer_call(function: Callable, args: tuple, options: dict) -> list:
    """Return what came of a call."""
    try:
        output = function(*args, **options)
    except BaseException as error:
        return ["raised", describe_error(error)]
    try:
        return ["returned", write_output(output)]
    except (RecursionError, TypeError) as error:
        return ["refused", str(error)]


def describe_error(error: BaseException) -> list[str]:
    """Return the type of an exception, its message, and its arguments if these can be written."""
    try:
        message = str(error)
    except BaseException:  # a message of the submission's own making
        message = ""
    try:
        given = json.dumps(write_output(error.args))
    except (RecursionError, TypeError, ValueError):
        given = ""
    return [type(error).__name__, message, given]


def load_submission(cells: list[str], name: str) -> tuple[Callable | None, str]:
    """Run all cells, and return the function of that name, or else the first fault."""
    submission = types.ModuleType("submission")
    sys.modules["submission"] = submission
    compiled, faults = codeop.Compile(), []  # it remembers imports from `__future__`
    for number, cell in enumerate(cells, start=1):
        faults += run_cell(cell, f"<submission, part {number}>", submission.__dict__, compiled)
    function = getattr(submission, name, None)
    return (function, "") if callable(function) else (None, "".join(faults[:1]))


def run_cell(cell: str, name: str, space: dict, compiled: Callable) -> list[str]:
    """Run one statement after another, and return their faults: none of them stops the next."""
    faults = []
    try:
        statements = ast.parse(cell, name).body
    except (RecursionError, SyntaxError, ValueError) as error:
        return [": ".join(describe_error(error)[:2])]
    for statement in statements:
        try:
            exec(compiled(ast.Module([statement], []), name, "exec"), space)
        except BaseException as error:
            faults.append(": ".join(describe_error(error)[:2]))
    return faults


def load_mechanism(place: str | bytes) -> tuple[Callable | None, str]:
    """Return a mechanism as a function of data and `rng`, or else why there is none."""
    from dpnotes.audit._lower_bound import takes_rng

    try:
        mechanism = find_mechanism(place)
        with_rng = takes_rng(mechanism)
    except BaseException as error:
        return None, ": ".join(describe_error(error)[:2])
    return (mechanism if with_rng else lambda data, rng: mechanism(data)), ""


def find_mechanism(place: str | bytes) -> Callable:
    """Return what was pickled, or is found in a file or a module by its name."""
    if isinstance(place, bytes):
        return pickle.loads(place)
    name, _, function = place.rpartition(":")
    if not name.endswith(".py"):
        return getattr(importlib.import_module(name), function)
    sys.path.insert(0, str(Path(name).parent))
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, function)


def write_output(output: object) -> object:
    """Return an output as JSON holds it: constants as they are, and [name, part, ...] for others.

    A type that has no name there, such as a subclass, raises a TypeError with its own.
    """
    kind = type(output)
    if dataclasses.is_dataclass(kind):
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        return write_output({kind.__name__: fields | getattr(output, "__dict__", {})})
    if type(kind) is not type:  # a metaclass may say that it equals another type
        raise TypeError(kind.__name__)
    if output is None or kind in (bool, int, str) or (kind is float and output == output):
        return output
    if kind in (float, complex):  # of a number that is none, the bits count
        return [kind.__name__, np.asarray(output).tobytes().hex()]
    if kind is bytes:
        return ["bytes", output.hex()]
    if kind in (list, tuple, set, frozenset):
        return [kind.__name__, *map(write_output, output)]
    if kind is dict:
        return ["dict", *([write_output(k), write_output(v)] for k, v in output.items())]
    if kind is np.ndarray and output.dtype.kind == "O":
        return ["objects", output.shape, *map(write_output, output.ravel().tolist())]
    is_scalar = isinstance(output, np.generic) and kind is output.dtype.type
    if (is_scalar or kind is np.ndarray) and output.dtype.kind in _WRITABLE:
        name = "scalar" if is_scalar else "array"
        return [name, output.dtype.str, output.shape, output.tobytes().hex()]
    raise TypeError(kind.__name__)


class Blocked:
    """A finder of modules that refuses some by name, with all that is in them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if any(f"{name}.".startswith(f"{blocked}.") for blocked in self.names):
            raise ModuleNotFoundError(f"{name} is blocked in this task", name=name)


def limit_resources(limits: dict[str, int]) -> None:
    """Set the limits that the system enforces; Windows has none."""
    with suppress(ModuleNotFoundError):
        import resource

        for name, limit in limits.items():
            with suppress(AttributeError, OSError, ValueError):
                resource.setrlimit(getattr(resource, name), (limit, limit))


if __name__ == "__main__":
    main()
