"""Outputs: how they are made from what a process says, and when two of them are one.

Outputs that differ in their types alone are one output, since a student's 1 may be numpy's.
"""

import math
from collections import Counter
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from dpnotes.audit._outputs import EXACT_INTEGER

_DEEPEST = 30  # lists within lists
_WIDEST = 100  # rows of nothing: an empty array costs no bytes, and as lists it has them all
_MOST_ALIKE = 100  # keys with one hash: a table of many such takes the square of their number


def build_output(parts: object, depth: int = 0) -> object:
    """Return the output that `_sandbox_worker.write_output` wrote, or fail on anything else."""
    if parts is None or type(parts) in (bool, int, float, str):
        return parts
    if depth == _DEEPEST:
        raise RecursionError("too deep to judge")
    name, *items = parts
    if name == "array":
        return _build_array(*items)
    items = [build_output(item, depth + 1) for item in items]
    return _build_dict(*items) if name == "dict" else {"list": list, "tuple": tuple}[name](items)


def _build_array(shape: list[int], numbers: list) -> NDArray:
    if not all(type(number) in (bool, int, float) for number in numbers):
        raise TypeError("not numbers")
    if not numbers and math.prod(max(1, length) for length in shape) > _WIDEST:
        raise ValueError("too many rows of nothing")
    return np.array(numbers).reshape(shape)


def _build_dict(keys: list, values: list) -> dict:
    if any(count > _MOST_ALIKE for count in Counter(map(hash, keys)).values()):
        raise ValueError("too many keys with one hash")
    return dict(zip(keys, values, strict=True))


def by_value(output: object) -> Hashable:
    """Return what all outputs of the same values have in common: floats, texts and tuples of them.

    Numbers are floats up to where these are exact. A dict is the tuple of its items by their keys.
    """
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, dict):
        items = [(by_value(name), by_value(value)) for name, value in output.items()]
        return tuple(sorted(items, key=lambda item: repr(item[0])))
    if isinstance(output, list | tuple):
        return tuple(map(by_value, output))
    if not isinstance(output, int | float) or abs(output) > EXACT_INTEGER:
        return output
    # NaN is the same object, so that it equals itself within tuples and as a key.
    return float(output) if output == output else math.nan
