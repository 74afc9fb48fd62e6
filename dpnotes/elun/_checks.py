"""Validation that the files on ELUN share."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_array, as_floats, check_real, kind_of


def check_size(name: str, value: float) -> float:
    """Return a positive number whose square is one too."""
    return check_real(name, value, low=1e-50, high=1e50, allowed="a number in [1e-50, 1e50]")


def check_scale(scale: float) -> float:
    """Return the scale of noise that is finite, and stays so when it is added to weights."""
    allowed = "a positive number up to 1e200"
    return check_real("scale", scale, low=0.0, low_open=True, high=1e200, allowed=allowed)


def check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite numbers as an array of floats."""
    array = as_array(name, values, with_booleans=True)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, got {kind_of(array)}")
    numbers = as_floats(array)
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} must be finite")
    return numbers
