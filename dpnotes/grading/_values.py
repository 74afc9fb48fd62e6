"""Outputs by their values: two that differ in their types alone are one output.

They are what a submission may return: None, booleans, numbers, texts, and lists, tuples, dicts and
arrays of them. Nothing here fails on any of them, however large or deep.
"""

import math
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from dpnotes.audit._outputs import EXACT_INTEGER

_AXES = 32  # of an array, in the oldest numpy


def are_alike(outputs: Iterable) -> bool:
    """Whether all outputs are of the same types, all through."""
    kinds = map(_kind, outputs)
    first = next(kinds)
    return all(kind == first for kind in kinds)


def _kind(output: object) -> Hashable:
    kind = type(output)
    if kind in (list, tuple):
        return kind, *map(_kind, output)
    if kind is dict:
        return object()  # the order of its keys is no value, so it is like no other
    return (kind, output.dtype.str) if kind is np.ndarray else kind


def by_value(output: object) -> object:
    """Return an output as another one of the same values is returned: a student's 1 may be numpy's.

    Numbers are floats where these are exact, sequences of them arrays, and keys are in order.
    """
    if isinstance(output, int | float | np.longdouble):
        return _number(output)
    if isinstance(output, np.ndarray | np.generic):
        return _of_array(np.asarray(output))
    if isinstance(output, list | tuple):
        return _sequence(list(map(by_value, output)))
    return _dict(output) if isinstance(output, dict) else output


def _number(number: float | np.longdouble) -> object:
    """Return a number as a float, if there is one of its value; all that are none are one."""
    try:
        with np.errstate(over="ignore"):
            small = float(number)
    except OverflowError:
        return number
    if number != number:
        return math.nan
    return small if small == number else number


def _of_array(array: NDArray) -> object:
    if not array.size:
        return np.zeros(array.shape)
    if array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            wide = array.astype(np.float64)
        wide[np.isnan(wide)] = math.nan  # whatever its bits
        compared = array.dtype.kind not in "iu" or not (np.abs(wide) > EXACT_INTEGER).any()
        if compared and np.array_equal(wide, array, equal_nan=True):
            return wide if wide.ndim else float(wide)
    return by_value(array.tolist())


def _sequence(items: list) -> object:
    """Return an array, if items are numbers or arrays of one shape."""
    shapes = {np.shape(i) if isinstance(i, float | np.ndarray) else None for i in items}
    fits = len(shapes) <= 1 and all(shape is not None and len(shape) < _AXES for shape in shapes)
    return np.array(items, dtype=float) if fits else tuple(items)


def _dict(output: dict) -> object:
    items = [(_name(name), by_value(value)) for name, value in output.items()]
    items.sort(key=lambda item: _order(item[0]))
    found = dict(items)
    # Two keys that are not a number are two keys, and no dict can hold them by their value.
    return found if len(found) == len(items) else tuple(items)


def _name(name: Hashable) -> Hashable:
    """Return the key of a dict by its value."""
    return tuple(map(_name, name)) if isinstance(name, tuple) else by_value(name)


def _order(name: Hashable) -> str:
    """Return a text by which keys are sorted, the same for keys that are equal."""
    if isinstance(name, tuple):
        return f"({', '.join(map(_order, name))})"
    value = by_value(name)
    return hex(value) if isinstance(value, int) else repr(value)  # some are too long for repr


class _NotANumber:
    """What every number that is none is known by: it equals itself, and no text."""

    def __repr__(self) -> str:
        return "nan"


_NAN = _NotANumber()


def key(output: object) -> Hashable:
    """Return an output as a mapping of a distribution names it: numbers, texts, tuples of them.

    A dict is the tuple of its items, sorted by their keys.
    """
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, dict):
        items = [(key(name), key(value)) for name, value in output.items()]
        return tuple(sorted(items, key=lambda item: _order(item[0])))
    if isinstance(output, list | tuple):
        return tuple(map(key, output))
    return _NAN if output != output else output
