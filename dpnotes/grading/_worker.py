"""The far end of `in_a_process`: it loads a mechanism and answers one call after another."""

import importlib
import importlib.util
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dpnotes.audit._lower_bound import takes_rng
from dpnotes.audit._outputs import read_exception
from dpnotes.grading._plain import written


def main() -> None:
    """Answer calls from standard input on standard output, which the mechanism does not get."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    place, fresh = _received(calls)
    answer = _in_a_fork(place) if fresh else _answers_of(place)
    while (call := _received(calls)) is not None:
        content = answer(*call)
        answers.write(len(content).to_bytes(8) + content)
        answers.flush()


def _received(stream: BinaryIO) -> object:
    size = int.from_bytes(stream.read(8))
    return pickle.loads(stream.read(size)) if size else None


def _in_a_fork(place: str | bytes) -> Callable[..., bytes]:
    """Load the mechanism and answer in a process that ends with the answer."""

    def answer(data: object, seed: list[int], draw: int) -> bytes:
        near, far = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.closerange(3, near + 1)
                with os.fdopen(far, "wb") as stream:
                    stream.write(_answers_of(place)(data, [*seed, draw], 1))
            finally:
                os._exit(0)
        os.close(far)
        with os.fdopen(near, "rb") as stream:
            content = stream.read()
        os.waitpid(child, 0)
        return content

    return answer


def _answers_of(place: str | bytes) -> Callable[..., bytes]:
    """Load the mechanism once for all calls that follow."""
    try:
        mechanism = _loaded(place)
        with_rng = takes_rng(mechanism)
    except BaseException as error:
        failure = f"mechanism cannot be loaded, {_named(error)}"
        return lambda *call: written(("failed", failure))
    given: dict[str, np.random.Generator] = {}

    def answer(data: object, seed: list[int], draw: int) -> bytes:
        if with_rng and draw == 1:
            given["rng"] = np.random.default_rng(seed)
        try:
            output = mechanism(data, **given)
        except BaseException as error:
            return written(("raised", _seen(error)))
        try:
            return written(("returned", output))
        except (RecursionError, TypeError) as error:
            return written(("failed", str(error)))

    return answer


def _loaded(place: str | bytes) -> Callable:
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


def _seen(error: BaseException) -> tuple:
    """Return what `read_exception` sees, of plain types."""
    _, name, message, given = read_exception(error)
    return name, message, repr(given)


def _named(error: BaseException) -> str:
    _, name, message, _ = read_exception(error)
    return f"{name}: {message}"


if __name__ == "__main__":
    main()
