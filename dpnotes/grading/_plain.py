"""Outputs as plain text, to be read by a process that does not trust the one that wrote them.

A pickle can run code where it is read. This format cannot: it knows the types that an audit reads,
and builds nothing else.
"""

import json
import math
import re
from collections import Counter
from dataclasses import is_dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnotes.audit._outputs import ALLOWED, SCALARS, read_fields

_LONGEST = 10_000  # digits of a number: to build a longer one could take for ever
_WIDEST = 100  # rows of nothing: an empty array costs no bytes, and as lists it has them all
_MOST_ALIKE = 100  # keys with one hash: a table of many such takes the square of their number
_DTYPE = re.compile(r"[<>|][biufcSUmM]\d+(\[\w+\])?")

_FAULTS = ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError


def written(output: object) -> bytes:
    """Return an output as text, or raise a TypeError that names its type."""
    return json.dumps(_parts(output)).encode()


def built(text: bytes) -> object:
    """Return the output that was written; a ValueError stands for whatever is wrong with it."""
    try:
        return _whole(json.loads(text))
    except _FAULTS as error:
        raise ValueError("text must be an output as `written` writes it") from error


def built_of(parts: object) -> object:
    """Return the output that parts stand for, as they are when JSON has read them."""
    try:
        return _whole(parts)
    except _FAULTS as error:
        raise ValueError("parts must be those of an output") from error


def _parts(output: object) -> object:
    """Return JSON's own constants as they are, and [name, part, ...] for all else."""
    kind = type(output)
    known = type(kind) is type or kind is Fraction
    if output is None or kind is bool or kind is str:
        return output
    if kind is np.ndarray and output.dtype.kind == "O":
        return ["objects", output.shape, *map(_parts, output.ravel().tolist())]
    if known and kind in _WRITERS:
        return [kind.__name__, *_WRITERS[kind](output)]
    if known and kind in SCALARS:
        return ["scalar", *_parts_of_array(np.asarray(output))]
    if is_dataclass(kind):
        return _parts({kind.__name__: read_fields(output)})
    raise TypeError(f"mechanism must return {ALLOWED}, got {kind.__name__}")


def _parts_of_array(array: NDArray) -> tuple:
    if not _DTYPE.fullmatch(array.dtype.str):
        raise TypeError(f"an array of dtype {array.dtype} cannot leave its process")
    return array.dtype.str, array.shape, array.tobytes().hex()


def _parts_of_float(number: float | complex) -> tuple:
    return (np.asarray(number).tobytes().hex(),)


def _items(output: tuple | list | set | frozenset) -> list:
    return [_parts(item) for item in output]


_WRITERS = {
    int: lambda number: (hex(number),),
    float: _parts_of_float,
    complex: _parts_of_float,
    bytes: lambda text: (text.hex(),),
    Fraction: lambda number: (hex(number.numerator), hex(number.denominator)),
    Decimal: lambda number: (str(number),),
    **dict.fromkeys((tuple, list, set, frozenset), _items),
    dict: lambda output: [[_parts(key), _parts(value)] for key, value in output.items()],
    np.ndarray: _parts_of_array,
}


def _whole(text: object) -> object:
    """Undo `_parts`, whoever wrote them."""
    if text is None or type(text) in (bool, str):
        return text
    if type(text) is not list:
        raise TypeError
    return _BUILDERS[text[0]](*text[1:])


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST:
        raise ValueError("too long a number")
    return int(digits, 16)


def _decimal(digits: str) -> Decimal:
    if len(digits) > _LONGEST:
        raise ValueError("too long a number")
    return Decimal(digits)


def _array(dtype: str, shape: list[int], content: str) -> NDArray:
    if not _DTYPE.fullmatch(dtype):
        raise ValueError("not a dtype of numbers or text")
    array = np.frombuffer(bytes.fromhex(content), dtype).copy()
    if array.dtype.kind == "U" and (array.view("u4") > 0x10FFFF).any():
        raise ValueError("not a text")
    if array.dtype.kind == "b" and (array.view("u1") > 1).any():
        raise ValueError("not a truth value")
    return _shaped(array, shape)


def _objects(shape: list[int], *items: object) -> NDArray:
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = _whole(item)
    return _shaped(array, shape)


def _shaped(array: NDArray, shape: list[int]) -> NDArray:
    if len(array) != math.prod(shape):
        raise ValueError("not the shape of so many numbers")
    if not len(array) and math.prod(max(1, length) for length in shape) > _WIDEST:
        raise ValueError("too many rows of nothing")
    return array.reshape(shape)


def _hashed(items: list) -> list:
    """Return items for a set or a dict, unless they were made to have one hash."""
    if any(count > _MOST_ALIKE for count in Counter(map(hash, items)).values()):
        raise ValueError("too many keys with one hash")
    return items


def _dict(*items: tuple) -> dict:
    keys = _hashed([_whole(key) for key, _ in items])
    return dict(zip(keys, (_whole(value) for _, value in items), strict=True))


_BUILDERS = {
    "int": _integer,
    "float": lambda content: _array("<f8", [1], content).item(),
    "complex": lambda content: _array("<c16", [1], content).item(),
    "bytes": bytes.fromhex,
    "Fraction": lambda *parts: Fraction(*map(_integer, parts)),
    "Decimal": _decimal,
    "tuple": lambda *items: tuple(map(_whole, items)),
    "list": lambda *items: list(map(_whole, items)),
    "set": lambda *items: set(_hashed(list(map(_whole, items)))),
    "frozenset": lambda *items: frozenset(_hashed(list(map(_whole, items)))),
    "dict": _dict,
    "ndarray": _array,
    "scalar": lambda *parts: _array(*parts)[()],
    "objects": _objects,
}
