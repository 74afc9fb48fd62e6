"""Outputs of a mechanism as numbers and structure, which is the rest.

An output is read as soon as it is returned, because the mechanism may change it later, and by its
exact type, because a subclass could show one value to the audit and another to everybody else.
"""

import dataclasses
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

ALLOWED = (
    "numbers, strings, None, arrays, tuples, lists, sets, dicts or dataclasses, no subclass of them"
)
EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
SCALARS = frozenset(np.sctypeDict.values())
_FLOATS = {float, np.float64, np.float32, np.float16}
_INTEGERS = {bool, int, *(kind for kind in SCALARS if np.dtype(kind).kind in "biu")}


class MechanismFailed(RuntimeError):  # noqa: N818
    """A mechanism gives no output to judge: there is no bound, not even 0."""


def read_output(output: object, numbers: list) -> Hashable:
    """Append the numbers that an output holds to `numbers`, and return its structure.

    Two outputs of one structure differ where the bits of their numbers do. A structure is made of
    types and of plain constants.
    """
    kind = type(output)
    if kind in _FLOATS:
        numbers.append(float(output))
        return kind
    if kind in _INTEGERS:
        return _read_integer(output, numbers)
    if kind in (str, bytes, type(None)):
        return kind, output
    if kind is np.ndarray:
        return _read_array(output, numbers)
    if kind is complex or kind in SCALARS:
        return kind, _read_array(np.asarray(output), numbers)
    if kind in (list, tuple):
        return kind, *[read_output(item, numbers) for item in output]
    if kind in (set, frozenset):
        return kind, frozenset(map(_read_whole, output))
    if kind is dict:
        items = output.items()
        return kind, *[(_read_whole(key), read_output(value, numbers)) for key, value in items]
    if dataclasses.is_dataclass(kind):
        fields = read_fields(output).items()
        return kind, *[(name, read_output(value, numbers)) for name, value in fields]
    raise TypeError(f"mechanism must return {ALLOWED}, got {kind.__name__}")


def read_fields(output: object) -> dict[str, object]:
    """Return the fields of a dataclass, and what else it stores."""
    fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    return fields | getattr(output, "__dict__", {})


def read_exception(error: BaseException) -> Hashable:
    """Return what an observer sees of an exception: its type, its message and what it was given."""
    try:
        given = _read_whole(error.args)
    except (TypeError, RecursionError):  # not an output that could be read
        given = None
    return "raised", type(error).__name__, str(error), given


def _read_whole(item: object) -> Hashable:
    """Return all of an output, its numbers by their bits."""
    numbers: list = []
    structure = read_output(item, numbers)
    return structure, b"".join(np.asarray(number).tobytes() for number in numbers)


def _read_integer(output: int | np.integer, numbers: list) -> Hashable:
    kind, number = type(output), int(output)
    if -EXACT_INTEGER <= number <= EXACT_INTEGER:
        numbers.append(float(number))
        return kind
    if -(2**63) <= number < 2**63:
        return kind, _read_array(np.array(number), numbers)
    return kind, number


def _read_array(output: NDArray, numbers: list) -> Hashable:
    structure = np.ndarray, output.dtype.str, output.shape
    if output.dtype.kind == "O":
        return *structure, read_output(output.tolist(), numbers)
    if output.dtype.kind in "SU":
        return *structure, output.tobytes()
    if output.dtype.kind not in "biufc":
        raise TypeError(f"mechanism must return {ALLOWED}, got an array of {output.dtype}")
    columns = _split_array(output.ravel())
    numbers.extend(columns)
    return *structure, len(columns)


def _split_array(array: NDArray) -> list[NDArray]:
    """Return flat arrays of which floats hold every number."""
    if array.dtype.kind == "c":
        return [*_split_array(array.real), *_split_array(array.imag)]
    if array.dtype.itemsize > 8:  # a long double, of which the last bits are left out
        with np.errstate(over="ignore"):
            return [array.astype(float)]
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return [array]
    if max(int(array.max()), -int(array.min())) <= EXACT_INTEGER:
        return [array]
    low = array & 2047
    return [(array - low).astype(float), low.astype(float)]
