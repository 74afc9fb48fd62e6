"""Outputs: how they are made from what a process says, and when two of them are one.

Outputs that differ in their types alone are one output, since a student's 1 may be numpy's.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

_DTYPE = re.compile(r"[<>|][biufcSUmM]\d+(\[\w+\])?")
_DEEPEST = 30  # lists within lists
_WIDEST = 100  # rows of nothing: an empty array costs no bytes, and as lists it has them all
_MOST_ALIKE = 100  # keys with one hash: a table of many such takes the square of their number


def build_output(parts: object) -> object:
    """Return the output that `_sandbox_worker.write_output` wrote, or fail on anything else."""
    if parts is None or type(parts) in (bool, int, float, str):
        return parts
    if type(parts) is not list:
        raise TypeError("parts must be those of an output")
    return _BUILDERS[parts[0]](*parts[1:])


def _build_array(dtype: str, shape: list[int], content: str) -> NDArray:
    if not _DTYPE.fullmatch(dtype):
        raise ValueError("not a dtype of numbers or text")
    array = np.frombuffer(bytes.fromhex(content), dtype).copy()
    if array.dtype.kind == "U" and (array.view("u4") > 0x10FFFF).any():
        raise ValueError("not a text")
    if array.dtype.kind == "b" and (array.view("u1") > 1).any():
        raise ValueError("not a truth value")
    return _shape_array(array, shape)


def _build_objects(shape: list[int], *items: object) -> NDArray:
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = build_output(item)
    return _shape_array(array, shape)


def _shape_array(array: NDArray, shape: list[int]) -> NDArray:
    if len(array) != math.prod(shape):
        raise ValueError("not the shape of so many numbers")
    if not len(array) and math.prod(max(1, length) for length in shape) > _WIDEST:
        raise ValueError("too many rows of nothing")
    return array.reshape(shape)


def _build_dict(*items: tuple) -> dict:
    keys = _build_keys(*(key for key, _ in items))
    return dict(zip(keys, (build_output(value) for _, value in items), strict=True))


def _build_keys(*items: object) -> list:
    keys = list(map(build_output, items))
    if any(count > _MOST_ALIKE for count in Counter(map(hash, keys)).values()):
        raise ValueError("too many keys with one hash")
    return keys


_BUILDERS = {
    "float": lambda content: _build_array("<f8", [1], content).item(),
    "complex": lambda content: _build_array("<c16", [1], content).item(),
    "bytes": bytes.fromhex,
    "tuple": lambda *items: tuple(map(build_output, items)),
    "list": lambda *items: list(map(build_output, items)),
    "set": lambda *items: set(_build_keys(*items)),
    "frozenset": lambda *items: frozenset(_build_keys(*items)),
    "dict": _build_dict,
    "array": _build_array,
    "scalar": lambda *parts: _build_array(*parts)[()],
    "objects": _build_objects,
}


def is_plain(output: object, depth: int = 0) -> bool:
    """Whether an output is of the types that are judged, all through, and not too deep to judge."""
    kind = type(output)
    if kind in (list, tuple, dict):
        parts = [*output, *output.values()] if kind is dict else output
        return depth < _DEEPEST and all(is_plain(part, depth + 1) for part in parts)
    if kind is np.ndarray or isinstance(output, np.generic):
        return output.dtype.kind in "biufU"
    return output is None or kind in (bool, int, float, str)


def are_alike(outputs: Iterable) -> bool:
    """Whether all outputs are of the same types, all through."""
    kinds = map(_find_kind, outputs)
    first = next(kinds)
    return all(kind == first for kind in kinds)


def _find_kind(output: object) -> Hashable:
    kind = type(output)
    if kind in (list, tuple):
        return kind, *map(_find_kind, output)
    if kind is dict:
        return object()  # the order of its keys is no value, so it is like no other
    return (kind, output.dtype.str) if kind is np.ndarray else kind


def by_value(output: object) -> Hashable:
    """Return what all outputs of the same values have in common: floats, texts and tuples of them.

    Numbers are floats where these are exact, and a dict is the tuple of its items by their keys.
    """
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, dict):
        items = [(by_value(name), by_value(value)) for name, value in output.items()]
        return tuple(sorted(items, key=lambda item: repr(item[0])))
    if isinstance(output, list | tuple):
        return tuple(map(by_value, output))
    return _as_float(output) if isinstance(output, int | float | np.longdouble) else output


def _as_float(number: float | np.longdouble) -> float | np.longdouble:
    """Return a number as a float, if there is one of its value; all that are none are one."""
    try:
        with np.errstate(over="ignore"):
            near = float(number)
    except OverflowError:
        return number
    if number != number:
        return math.nan  # the same object, so that it equals itself within tuples and as a key
    return near if near == number else number
