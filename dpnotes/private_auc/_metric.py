"""What the files of this package share: records that are valid, and all there is about a metric."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes._checks import as_array, as_floats, check_categories, check_integer, kind_of

AUC_TIES = ("half", "pessimistic")
AP_TIES = ("grouped", "pessimistic")
METRICS = ("auc", "average precision")

# More records than anybody has; doubles count up to here.
MOST_RECORDS = 2**53
# So many positives are merged with the negatives among them at a time.
_BLOCK = 1 << 14
# With so many negatives for each of them they are searched for instead.
_SPARSE = 8
_SIDES = ("left", "right")


def check_size(name: str, value: int) -> int:
    return check_integer(name, value, low=0, high=MOST_RECORDS)


def check_classes(name: str, values: ArrayLike) -> NDArray:
    """Return classes as a 1-D array of booleans, or of the numbers 0 and 1."""
    array = check_categories(name, values, 2)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array


def check_numbers(name: str, values: ArrayLike) -> NDArray:
    """Return finite real numbers, in the type that they came in."""
    array = as_array(name, values, with_booleans=True)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {kind_of(array)}")
    if not hasattr(values, "dtype"):
        # One record with a fraction makes a list of whole numbers an array of doubles, and may so
        # make ties of all others. As doubles each record is what it is by itself.
        with np.errstate(over="ignore"):
            array = array.astype(float)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array


def check_doubles(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return real numbers as doubles, all of them finite."""
    numbers = as_floats(check_numbers(name, values))
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite numbers")
    return numbers


def check_lengths(name: str, values: NDArray, labels_name: str, labels: NDArray) -> None:
    if values.shape != labels.shape:
        raise ValueError(
            f"{name} must have the shape of {labels_name}, {labels.shape}, got {values.shape}"
        )


def split_scores(
    labels: ArrayLike, scores: ArrayLike, labels_name: str = "labels", scores_name: str = "scores"
) -> tuple[NDArray, NDArray]:
    """Return the sorted scores of the positive records, and those of the negative ones."""
    labels = check_classes(labels_name, labels)
    scores = check_numbers(scores_name, scores)
    check_lengths(scores_name, scores, labels_name, labels)
    positive = labels.astype(bool)
    # Several times faster than an array of booleans as an index.
    parts = scores.compress(positive), scores.compress(~positive)
    for part in parts:
        part.sort()
    return parts


def exact_auc(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the exact AUC; without one of the classes, 1/2."""
    pairs = positives.size * negatives.size
    if pairs == 0:
        return Fraction(1, 2)
    blocks = (positives[start : start + _BLOCK] for start in range(0, positives.size, _BLOCK))
    return Fraction(sum(_halves_won(block, negatives, ties) for block in blocks), 2 * pairs)


def _halves_won(positives: NDArray, negatives: NDArray, ties: str) -> int:
    """Return twice how many pairs are in order, for positives and negatives that ascend."""
    first = int(np.searchsorted(negatives, positives[0]))
    negatives = negatives[first : np.searchsorted(negatives, positives[-1], side="right")]
    if negatives.size > _SPARSE * positives.size:
        strict, upto = (int(np.searchsorted(negatives, positives, s).sum()) for s in _SIDES)
    else:
        # A stable sort takes two runs for what they are and merges them: faster than a search.
        merged = np.concatenate([positives, negatives])
        order = np.argsort(merged, kind="stable")
        strict = upto = _wins(order < positives.size)
        merged = merged[order]
        if ties == "half" and (merged[1:] == merged[:-1]).any():
            order = np.argsort(np.concatenate([negatives, positives]), kind="stable")
            upto = _wins(order >= negatives.size)
    return 2 * first * positives.size + strict + (upto if ties == "half" else strict)


def _wins(positive: NDArray) -> int:
    """Return how many negatives come before each positive, over all."""
    places = np.flatnonzero(positive)
    return int(places.sum()) - places.size * (places.size - 1) // 2


def exact_average_precision(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the average precision, as a double makes it; without a positive, 0."""
    if positives.size == 0:
        return Fraction(0)
    found = np.arange(positives.size, 0, -1)
    if ties == "grouped":
        found = positives.size - np.searchsorted(positives, positives)
    false = negatives.size - np.searchsorted(negatives, positives)
    return Fraction(float(np.mean(found / (found + false))))


def auc_bound(smaller: int) -> float:
    return 1 / max(smaller, 1)


def ap_bound(n: int) -> float:
    """Return L(n)."""
    if n < 2:
        return 1.0
    return max((harmonic(n) - 1) / (n - 1), (1 + odd_sum(n - 1) / 2) / n)


def harmonic(n: int) -> float:
    """Return 1 + 1/2 + ... + 1/n."""
    return float(special.digamma(n + 1)) + np.euler_gamma


def odd_sum(n: int) -> float:
    """Return 1/3 + 1/5 + ... + 1/(2n + 1)."""
    return float(special.digamma(n + 1.5) - special.digamma(1.5)) / 2


class Metric(NamedTuple):
    """All that a release has to know of a metric."""

    ties: tuple[str, ...]
    value: Callable[[NDArray, NDArray, str], Fraction]
    bound: Callable[[int], float]
    # The size of the class that decides, and the largest that it can be among n records.
    size: Callable[[int, int], int]
    largest: Callable[[int], int]


METRIC = {
    "auc": Metric(AUC_TIES, exact_auc, auc_bound, min, lambda n: max(n // 2, 1)),
    "average precision": Metric(
        AP_TIES, exact_average_precision, ap_bound, lambda positives, _: positives, lambda n: n
    ),
}


def discounted(size: int, beta: float, metric: str) -> float:
    """Return the smooth sensitivity of numbers that are known to be valid."""
    return max(METRIC[metric].bound(size), math.exp(-beta * max(size - 1, 0)))
