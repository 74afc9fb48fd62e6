"""Junk: what a caller may hand over by mistake, or on purpose, in place of any parameter."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from refusals._tables import SECRET, SECRET_WORD


class Int(int):
    """An honest subclass, as are those that follow."""


class Float(float):
    pass


class Str(str):
    pass


class List(list):
    pass


# No whole number between: some would be valid sizes, and fill the memory.
WHOLE = [*range(-3, 8), 2**63, 2**64 + 1, -(2**63), 10**30, 10**400, -(10**5000), Int(3)]
REAL = [
    *(-0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, -1.0, 1e-5, 5e-324, 1e-300, 1e-17, 1e17, 1e308),
    *(math.nan, math.inf, -math.inf, 1 - 2.0**-53, Float(0.5)),
]
NUMPY = [
    *(np.int8(-1), np.int8(3), np.uint8(3), np.uint64(2**64 - 1), np.float16(0.5), np.float32(1.5)),
    *(np.longdouble("0.5"), np.longdouble("1e400"), np.longdouble("nan"), np.complex128(1j)),
    *(np.bool_(True), np.str_("exact"), np.datetime64("2020-01-01")),
]
OTHER_NUMBERS = [
    *(Fraction(1, 3), Fraction(0), Fraction(1, 10**400), Fraction(10**5000, 3), Fraction(3)),
    *(Decimal("0.5"), Decimal("NaN"), Decimal("1e999999"), True, False, 1j),
]
WORDS = [
    "",
    " ",
    "exact",
    "1",
    "nan",
    Str("exact"),
    b"exact",
    bytearray(b"1"),
    "é",
    "\0",
    "a" * 200,
]
SCALARS = [*WHOLE, *REAL, *NUMPY, *OTHER_NUMBERS, *WORDS, None, ...]
RECORDS = [SECRET, -SECRET, SECRET + 0.5, SECRET_WORD, SECRET_WORD.encode(), np.uint64(SECRET)]


def endless():
    values = [0, 1]
    values.append(values)
    return values


# Made anew each time, since some can be read only once.
CONTAINERS = [
    list,
    tuple,
    set,
    dict,
    object,
    endless,
    lambda: [[]],
    lambda: [[1, 0], [1]],
    lambda: [0, [1, 0]],
    lambda: [SECRET, SECRET_WORD],
    lambda: [True, SECRET],
    lambda: [0.5, 10**400],
    lambda: [np.uint64(1), -1],
    lambda: [Decimal("0.5"), Fraction(1, 2)],
    lambda: {SECRET, 1},
    lambda: {0: SECRET, 1: 0},
    lambda: {0: 1, 1: SECRET}.values(),
    lambda: frozenset([0, 1]),
    lambda: iter([0, 1]),
    lambda: (value for value in (0, 1)),
    lambda: map(int, [0, 1]),
    lambda: range(2),
    lambda: List([0, 1]),
    lambda: memoryview(b"\0\1"),
    lambda: [[[0, 1]], [[1, 0]]],
    lambda: np.array(0.5),
    lambda: np.array([]),
    lambda: np.zeros((0, 2)),
    lambda: np.zeros((2, 0), dtype=int),
    lambda: np.array([(0, 1.0)], dtype=[("a", int), ("b", float)]),
    lambda: np.array([SECRET, None, 1], dtype=object),
    lambda: np.array([0, 1, 2, 255], dtype=np.uint8).view(bool),
    lambda: np.array(["a", SECRET_WORD]),
    lambda: np.array([1, SECRET], dtype=">i2"),
    lambda: np.array([1.0, SECRET], dtype=np.longdouble) * np.longdouble("1e400"),
    lambda: np.array([math.nan, SECRET]),
    lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    lambda: np.arange(4)[::-2],
    lambda: np.broadcast_to(np.array([0, 1]), (2, 2)),
    lambda: np.ma.array([0, SECRET], mask=[0, 1]),
    lambda: [0, np.ma.masked],
    lambda: np.random.default_rng(0),
    lambda: np.random.RandomState(0),
    lambda: pd.Series([0, SECRET]),
    lambda: pd.Series([0, None], dtype="Int64"),
    lambda: pd.Series(["a", SECRET_WORD], dtype="category"),
    lambda: pd.DataFrame({"a": [0, 1], "b": [SECRET_WORD, "b"]}),
    lambda: pd.Index([0, SECRET]),
]
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    CONTAINERS += [
        lambda: torch.tensor([1.0, SECRET], requires_grad=True),
        lambda: [torch.tensor(1.0, requires_grad=True)],
        lambda: torch.tensor([[0, SECRET]]),
        lambda: torch.ones(2, dtype=torch.bfloat16),
        lambda: torch.tensor(0.5),
        torch.Generator,
    ]

junk = st.one_of(
    st.sampled_from(SCALARS),
    st.sampled_from(CONTAINERS).map(lambda make: make()),
    st.lists(st.sampled_from(SCALARS + RECORDS), max_size=3),
    st.sampled_from(CONTAINERS).map(lambda make: [make()]),
)


def disguises(value):
    """Return a strategy for values that stand for the same as a valid one, or nearly."""
    if isinstance(value, bool | str | None):
        words = str(value)
        return st.sampled_from([[value], {value}, np.array(value), Str(words), words.upper()])
    if isinstance(value, int | float):
        kinds = [Fraction, Decimal, np.float32, np.longdouble, np.array, str, complex, Float, Int]
        others = [[value], np.array([value]), -value, value * (1 << 400), value / 1e300]
        return st.sampled_from([kind(value) for kind in kinds] + others)
    if isinstance(value, list | tuple | np.ndarray) and np.asarray(value).dtype.kind in "biufU":
        return st.one_of(
            st.sampled_from(ARRAYS).map(lambda make: make(np.asarray(value))),
            st.sampled_from(LISTS).map(lambda make: make(value)),
            st.sampled_from(SCALARS + RECORDS).map(lambda entry: replaced(list(value), entry)),
        )
    return junk


def replaced(values, entry):
    """Return a list with another last entry, in its last row if it has rows."""
    if values and isinstance(values[-1], list | tuple):
        return [*values[:-1], replaced(list(values[-1]), entry)]
    return [*values[:-1], entry]


def locked(array):
    array = array.copy()
    array.flags.writeable = False
    return array


ARRAYS = [
    lambda x: x.astype(object),
    lambda x: x[::-1][::-1],
    lambda x: np.asfortranarray(x),
    lambda x: np.repeat(x, 2, axis=0)[::2],
    locked,
    lambda x: x.astype(x.dtype.newbyteorder()),
    lambda x: x.astype(str),
    lambda x: x.astype(bool),
    lambda x: x if x.dtype.kind == "U" else x.astype(np.int8),
    lambda x: x if x.dtype.kind == "U" else x.astype(np.float16),
    lambda x: x if x.dtype.kind == "U" else x.astype(np.longdouble),
    lambda x: x if x.dtype.kind == "U" else x.astype(complex),
    lambda x: x if x.dtype.kind == "U" else np.abs(x).astype(np.uint64),
    lambda x: x if x.dtype.kind == "U" else x * 1e300,
    lambda x: np.ma.array(x),
    lambda x: x.reshape(len(x), -1).view(np.matrix) if x.size else x,
    lambda x: x[:0],
    lambda x: x[None],
    lambda x: x[0],
    lambda x: pd.Series(list(x)),
    lambda x: pd.DataFrame(x) if x.ndim < 3 else x,
]
LISTS = [
    tuple,
    List,
    iter,
    lambda x: (entry for entry in x),
    lambda x: list(np.ma.array(x)),
    lambda x: [*x, x[0]],
    lambda x: list(x)[:-1],
    lambda x: [list(x)],
    lambda x: list(map(str, x)),
    lambda x: dict(enumerate(x)),
    lambda x: dict(enumerate(x)).values(),
]
