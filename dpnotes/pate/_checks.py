"""Validation that the files on votes share."""

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import as_array, check_integer, check_real, kind_of

MOST_VOTES = 2**31 - 1
_LARGEST_ORDER = 1e100  # its square is a double


def check_votes(votes: ArrayLike, *, at_least: int = 0) -> tuple[np.ndarray, bool]:
    """Return votes as a table of int64 with a row a query, and whether a single query was given."""
    array = as_array("votes", votes)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"votes must be whole numbers, got {kind_of(array)}")
    if array.ndim not in (1, 2) or array.shape[-1] < 2 or len(array) < at_least:
        raise ValueError(
            "votes must have one or two dimensions, at least two classes and "
            f"{at_least} queries, got shape {array.shape}"
        )
    if array.dtype.kind == "f":
        # The largest number of votes, and its like, do not fit the smaller floats.
        array = array.astype(np.promote_types(array.dtype, float))
    whole = bool(np.all((array >= 0) & (array <= MOST_VOTES) & (array == np.rint(array))))
    # The sum is that of the teachers, and public; of a class alone the limit would tell the votes.
    if not whole or int(array.sum(axis=-1, dtype=float).max(initial=0)) > MOST_VOTES:
        raise ValueError(
            f"votes must be whole numbers of which a query has {MOST_VOTES} at most, and are not"
        )
    return np.atleast_2d(array.astype(np.int64)), array.ndim == 1


def check_scale(name: str, value: float) -> float:
    return check_real(name, value, low=1e-9, high=1e9, allowed="a number from 1e-9 to 1e9")


def check_threshold(threshold: float) -> float:
    return check_real(
        "threshold", threshold, low=-1e9, high=1e9, allowed="a number from -1e9 to 1e9"
    )


def check_answered(answered: ArrayLike, table: np.ndarray, single: bool) -> np.ndarray:
    array = as_array("answered", answered)
    if array.size and array.dtype.kind != "b":
        raise TypeError(f"answered must be booleans, got {kind_of(array)}")
    if array.shape != (() if single else (len(table),)):
        raise ValueError(f"answered must say of each query if it was, got shape {array.shape}")
    return np.atleast_1d(array).astype(bool)


def check_order(order: float) -> float:
    allowed = f"a number above 1 and at most {_LARGEST_ORDER}"
    return check_real("order", order, low=1.0, low_open=True, high=_LARGEST_ORDER, allowed=allowed)


def check_distances(distances: int | None, table: np.ndarray) -> int:
    if distances is None:
        return int(table.sum(axis=1).max(initial=0))
    return check_integer("distances", distances, low=0, high=2**40)
