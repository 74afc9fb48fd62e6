"""Check the records of a fit and of a prediction, and say nothing about them in a refusal."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dpnotes._checks import as_array, as_floats, as_objects, is_finite

_COMPLEX = (complex, np.complexfloating)
_NO_NUMBERS = (str, bytes, bytearray, np.datetime64, np.timedelta64)


def validate_records(model: BaseEstimator, X: ArrayLike, *y: ArrayLike, reset: bool = True) -> Any:  # noqa: ANN401
    """Let scikit-learn check features and labels, but not quote a record."""
    array = _read_values("X", X)
    if array.dtype.kind not in "biufc":
        _check_convertible(array)
    if array.ndim < 2:
        raise ValueError(
            f"X must be two-dimensional, got shape {array.shape}. Reshape your data, a record a row"
        )
    y = tuple(_keep_types(labels) for labels in y)
    if array.dtype.kind == "f" and isinstance(array, np.ndarray) and not is_finite(array):
        raise ValueError(
            "X must hold finite numbers, no NaN and no inf, and a record does not. A mean of the "
            "others would not be private: put a public number in its place"
        )
    # A number out of the range of doubles becomes infinite, and scikit-learn refuses it.
    with np.errstate(over="ignore"):
        return validate_data(model, X, *y, dtype=np.float64, reset=reset)


def _read_values(name: str, values: ArrayLike) -> Any:  # noqa: ANN401
    """Return values with a dtype; refuse complex ones, which scikit-learn's error would quote."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    foreign = kind in "biufc" and not isinstance(values, np.ndarray)
    array = values if foreign else as_array(name, values, with_booleans=True)
    if array.dtype.kind == "c" or (array.dtype.kind == "O" and _holds_any(array, _COMPLEX)):
        raise ValueError(f"{name} must hold real numbers. Complex data not supported")
    return array


def _keep_types(labels: ArrayLike) -> Any:  # noqa: ANN401
    """Check labels, and keep the types of a list in which numpy would turn numbers into text.

    Otherwise whether a number is a valid label would depend on the other records.
    """
    if _read_values("y", labels).dtype.kind not in "US" or not isinstance(labels, list | tuple):
        return labels
    entries = as_objects(labels)
    return labels if len(set(map(type, entries.flat))) == 1 else entries


def _check_convertible(array: NDArray) -> None:
    """Refuse text, dates and other objects that are not numbers, judging each record by itself."""
    message = "X must hold numbers, and a record does not"
    if array.dtype.kind != "O" or _holds_any(array, _NO_NUMBERS):
        raise TypeError(message)
    try:
        as_floats(array)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(message) from None


def _holds_any(array: NDArray, types: tuple[type, ...]) -> bool:
    return any(isinstance(value, types) for value in array.flat)
