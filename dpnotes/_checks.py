"""Validation shared by every module.

Two rules. A wrong *parameter* is quoted back to the caller. A wrong *record* is not: the message
says what was expected of it and nothing of what it held, because a log is read by strangers.
"""

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike


def check_epsilon(epsilon: float, name: str = "epsilon") -> float:
    """Return `epsilon` as a float, or refuse it: it must be a positive finite number."""
    return check_real(name, epsilon, low=0.0, low_open=True, allowed="a positive finite number")


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float, or refuse it: it must lie strictly between 0 and 1."""
    allowed = "a probability strictly between 0 and 1"
    return check_real(
        name, value, low=0.0, high=1.0, low_open=True, high_open=True, allowed=allowed
    )


def check_real(
    name: str,
    value: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
    allowed: str,
) -> float:
    """Return a finite real within bounds as a float; `allowed` puts the bounds into words."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}, got {type(value).__name__}")
    # Rounding to a float may reach a bound that the value itself keeps clear of.
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    inside = (number > low if low_open else number >= low) and (
        number < high if high_open else number <= high
    )
    if not (inside and math.isfinite(number)):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return number


def check_integer(name: str, value: int, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int, or refuse it: it must be a whole number in [low, high]."""
    allowed = f"an integer of at least {low}" if high is None else f"an integer in [{low}, {high}]"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {allowed}, got {type(value).__name__}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return int(value)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or refuse it."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def as_array(name: str, values: ArrayLike) -> np.ndarray:
    """Return `values` as an array, or refuse rows of different lengths and masked entries."""
    # Without its mask, what was set aside as missing would count as an answer.
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must be an array without a mask, got a masked array")
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length") from None


def check_categories(name: str, values: ArrayLike, categories: int) -> np.ndarray:
    """Return records as a non-empty array of integers in [0, categories), or of booleans.

    Raises
    ------
    TypeError
        If the records are neither integers nor booleans.
    ValueError
        If there are none, or if any lies outside the domain or is no valid boolean.
    """
    array = as_array(name, values)
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one record, got none")
    if array.dtype.kind not in "biu":
        raise TypeError(f"{name} must be integers or booleans, got {kind_of(array)}")
    if array.dtype.kind == "b" and categories != 2:
        raise TypeError(f"{name} must be integers in [0, {categories}), got dtype bool")
    # A boolean read from foreign memory may hold any byte, which a report would carry along.
    if not _within(array.view(np.uint8) if array.dtype.kind == "b" else array, categories):
        raise ValueError(f"{name} must be integers in [0, {categories}); a record is not")
    return array


def _within(array: np.ndarray, categories: int) -> bool:
    """Whether every integer lies in [0, categories): one pass, as a negative one wraps to huge."""
    kind = array.dtype
    unsigned = array.view(f"{kind.byteorder}u{kind.itemsize}")
    # Read as unsigned, -1 in a byte is 255: a small type may not reach the last category.
    return int(unsigned.max()) < min(categories, int(np.iinfo(kind).max) + 1)


def kind_of(array: np.ndarray) -> str:
    """Name the type of an array without its width, which tells how long the longest word is."""
    return f"dtype {array.dtype.type.__name__}"


def check_counts(
    name: str, values: ArrayLike, *, at_least: int = 1, may_be_zero: bool = False
) -> np.ndarray:
    """Return counts as a 1-D float array of finite non-negative numbers.

    Counts that are all zero are refused as no data, unless `may_be_zero`.
    """
    array = as_array(name, values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be numbers, got {kind_of(array)}")
    if array.ndim != 1 or array.size < at_least:
        raise ValueError(
            f"{name} must be one-dimensional with at least {at_least} entries, "
            f"got shape {array.shape}"
        )
    if not np.all(np.isfinite(array)) or array.min() < 0:
        raise ValueError(f"{name} must be finite and non-negative")
    if array.max() == 0 and not may_be_zero:
        raise ValueError(f"{name} must not be all zero")
    return array.astype(float)
