"""Validation that the files on ELUN share."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_array, check_real, kind_of


def check_size(name: str, value: float) -> float:
    """Return a positive number whose square is one too."""
    return check_real(name, value, low=1e-50, high=1e50, allowed="a number in [1e-50, 1e50]")


def check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite numbers as an array of floats."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, got {kind_of(array)}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite")
    return array.astype(float)


def check_flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a boolean, got {type(value).__name__}")
    return bool(value)
