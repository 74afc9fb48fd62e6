"""A private histogram: how many records there are of each category, with noise on every count.

Replacing one record subtracts 1 from one count and adds 1 to another. So discrete Laplace noise of
scale 2 / epsilon on every count hides it, however many categories there are (Dwork, McSherry,
Nissim and Smith, 2006). The categories must be public: one that was read off the records reveals
that somebody is in it.

A single count, such as that of yes among answers of yes or no, moves by 1 at most. So half of that
noise, of scale 1 / epsilon, is enough (`release_count`).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import (
    CONFIDENCE,
    as_array,
    check_integer,
    check_probability,
    check_real,
    check_rng,
)
from dpnotes._coins import discrete_laplace
from dpnotes.release import Release, _set_promise
from dpnotes.unary_encoding import _as_list, _columns, encode

# Lower the rate of the noise by this: headroom for rounding the odds of the coins to doubles.
_SPARE = 1e-12
# At scales below 1 / 700 noise is practically always 0, so larger rates are cut off here.
_MOST_RATE = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramRelease:
    """A private histogram, and the promise under which it was made.

    Parameters
    ----------
    value : sequence of int, length k
        The noisy counts, in the order of `domain`. Some may be negative, and their sum is not the
        number of records.
    domain : sequence of hashable, length k
        The public categories.
    epsilon, delta, mechanism, neighbours
        As in `Release`.

    Examples
    --------
    >>> released = release_histogram(["tea", "tea"], ["coffee", "tea"], epsilon=50.0, rng=0)
    >>> dict(zip(released.domain, released.value, strict=True))
    {'coffee': 0, 'tea': 2}
    """

    value: tuple[int, ...]
    domain: tuple[Hashable, ...]
    epsilon: float
    delta: float = 0.0
    mechanism: str
    neighbours: str

    def __post_init__(self) -> None:
        """Check every field and keep plain numbers."""
        domain = tuple(_columns(self.domain))
        counts = _check_outputs("value", self.value, len(domain))
        if counts.ndim != 1:
            raise ValueError(f"value must have one dimension, got {counts.ndim}")
        _set_promise(self, value=tuple(counts.tolist()), domain=domain)


def release_histogram(
    values: Sequence[Hashable],
    domain: Sequence[Hashable],
    epsilon: float,
    *,
    rng: np.random.Generator | int | None = None,
) -> HistogramRelease:
    """Release how many records there are of each category, with noise that hides any one record.

    Parameters
    ----------
    values : sequence of hashable, length n
        The category of each record.
    domain : sequence of hashable, length k
        All categories, different and public. Give missing and unexpected answers a category of
        their own.
    epsilon : float
        The privacy cost of all counts together, at least 1e-9 and finite.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    HistogramRelease
        The noisy counts, in the order of `domain`.

    Raises
    ------
    ValueError
        If there are no values, one is missing or not in the domain, the domain is empty or repeats
        a category, or epsilon is out of range.
    TypeError
        If the values or the domain are not a sequence of hashable objects, or epsilon is not a
        number.

    Notes
    -----
    Every count gets independent noise of whole numbers with probability proportional to
    ``exp(-epsilon |x| / 2)``. Neighbours differ by 1 in two counts, so the probabilities of an
    output differ by ``exp(epsilon)`` at most. Where a record is added or taken away instead, one
    count differs by 1, and the same noise costs half of epsilon.

    The coins are exact for odds that are rounded to doubles: half of epsilon is lowered by 1e-12,
    which is more than the rounding costs. The noise ends between 700 and 1,400 scales from 0,
    beyond which exact noise would lie with a probability below 1e-303. So the claim of epsilon
    alone holds up to a delta of exp(epsilon / 2 - 700) times the number of categories: next to
    nothing, unless epsilon itself is in the hundreds.

    `project_to_simplex` of `dpnotes.unary_encoding` projects the counts to the nearest non-negative
    ones that sum to n, at no further cost.

    Examples
    --------
    >>> answers = ["tea"] * 700 + ["coffee"] * 300
    >>> released = release_histogram(answers, ["coffee", "tea", "water"], epsilon=1.0, rng=0)
    >>> [abs(noisy - true) <= margin(1.0, 3) for noisy, true in zip(released.value, [300, 700, 0])]
    [True, True, True]
    """
    epsilon, domain = _check_cost(epsilon), tuple(_columns(domain))
    counts = encode(values, domain).sum(axis=0, dtype=np.int64)
    noise = discrete_laplace(counts.size, 1 / _rate(epsilon), check_rng(rng))
    return HistogramRelease(
        value=tuple((counts + noise).tolist()),
        domain=domain,
        epsilon=epsilon,
        mechanism="discrete Laplace noise of scale 2 / epsilon on every count",
        neighbours="one record replaced; the number of records and the categories are public",
    )


def log_pmf(
    output: ArrayLike, values: Sequence[Hashable], domain: Sequence[Hashable], epsilon: float
) -> NDArray[np.float64]:
    """Return the logarithm of the probability that a histogram comes out.

    Parameters
    ----------
    output : array_like of int, shape (k,) or (outputs, k)
        Histograms that might be released.
    values, domain, epsilon
        As in `release_histogram`.

    Returns
    -------
    ndarray of float, shape () or (outputs,)
        Natural logarithms of probabilities.

    Notes
    -----
    With r = epsilon / 2 (less 1e-12, as in `release_histogram`) the noise x of a count has
    probability ``tanh(r / 2) exp(-r |x|)``, and the counts are independent.

    Examples
    --------
    >>> one = log_pmf([3, 0], ["a", "a"], ["a", "b"], epsilon=1.0)
    >>> other = log_pmf([3, 0], ["a", "b"], ["a", "b"], epsilon=1.0)
    >>> round(float(one - other), 6)
    1.0
    """
    rate = _rate(_check_cost(epsilon))
    counts = encode(values, domain).sum(axis=0, dtype=np.int64)
    output = _check_outputs("output", output, counts.size)
    return _log_chances(output, counts, rate).sum(axis=-1)


def release_count(
    values: Sequence[bool], epsilon: float, *, rng: np.random.Generator | int | None = None
) -> Release:
    """Release how many values are True, with noise that hides any one record.

    Parameters
    ----------
    values : sequence of bool, length n
        The answer of each record: True or False, or 1 or 0.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    Release
        The noisy count, a whole number. It may be negative or above n.

    Notes
    -----
    A record that is replaced moves one count by 1 at most, and not two as in a histogram, so noise
    on whole numbers with probability proportional to ``exp(-epsilon |x|)`` is enough: half of that
    of `release_histogram`. Adding or removing a record also moves the count by 1 and costs the
    same. The coins and the end of the noise are those of `release_histogram`.

    The number n of records is public, so the share of True is ``float(released) / n``, and as a
    percentage 100 times that. It is within ``margin(epsilon, sensitivity=1) / n`` of the share
    among these n records; sampling error comes on top.

    Examples
    --------
    >>> released = release_count([True] * 700 + [False] * 300, epsilon=1.0, rng=0)
    >>> abs(float(released) - 700) <= margin(1.0, sensitivity=1)
    True
    """
    epsilon, count = _check_cost(epsilon), _count_true(values)
    [noise] = discrete_laplace(1, 1 / _rate(epsilon, 1), check_rng(rng)).tolist()
    return Release(
        count + noise,
        epsilon,
        mechanism="discrete Laplace noise of scale 1 / epsilon",
        neighbours="one record replaced; the number of records is public",
    )


def count_log_pmf(output: ArrayLike, values: Sequence[bool], epsilon: float) -> NDArray[np.float64]:
    """Return the logarithm of the probability that a count comes out.

    Parameters
    ----------
    output : array_like of int, shape () or (outputs,)
        Counts that might be released.
    values, epsilon
        As in `release_count`.

    Returns
    -------
    ndarray of float, shape () or (outputs,)
        Natural logarithms of probabilities.

    Notes
    -----
    With r = epsilon (less 1e-12) the noise x has probability ``tanh(r / 2) exp(-r |x|)``.

    Examples
    --------
    >>> one = count_log_pmf(3, [True, True], epsilon=1.0)
    >>> other = count_log_pmf(3, [True, False], epsilon=1.0)
    >>> round(float(one - other), 6)
    1.0
    """
    rate, count = _rate(_check_cost(epsilon), 1), _count_true(values)
    output = _check_whole("output", output)
    if output.ndim > 1:
        raise ValueError(f"output must have at most one dimension, got {output.ndim}")
    return _log_chances(output, count, rate)


def margin(
    epsilon: float, categories: int = 1, *, confidence: float = CONFIDENCE, sensitivity: int = 2
) -> int:
    """Return how far noisy counts are from the true ones at most, with a given confidence.

    Parameters
    ----------
    epsilon : float
        The privacy cost of the release, at least 1e-9 and finite.
    categories : int
        For how many counts it must hold simultaneously, from 1 to 2**31.
    confidence : float
        The probability with which it must hold, strictly between 0 and 1.
    sensitivity : {2, 1}
        By how much one record moves all counts together: 2 for `release_histogram`, and 1 for
        `release_count`.

    Returns
    -------
    int
        The smallest such margin, in records.

    Notes
    -----
    It depends on public numbers only, so it can be known before any release. With q =
    exp(-epsilon / sensitivity) the noise of a count is further than m with probability
    2 q^(m + 1) / (1 + q).

    Examples
    --------
    >>> margin(1.0), margin(0.1), margin(0.1, 14)
    (6, 60, 112)
    >>> margin(0.1, sensitivity=1)
    30
    """
    sensitivity = check_integer("sensitivity", sensitivity, low=1, high=2)
    rate = _rate(_check_cost(epsilon), sensitivity)
    categories = check_integer("categories", categories, low=1, high=2**31)
    confidence = check_probability("confidence", confidence)
    each = -math.expm1(math.log(confidence) / categories)
    beyond = math.log(2 / each) - math.log1p(math.exp(-rate))
    return max(0, math.ceil(beyond / rate) - 1)


def _check_cost(epsilon: float) -> float:
    return check_real("epsilon", epsilon, low=1e-9, allowed="a finite number of at least 1e-9")


def _rate(epsilon: float, sensitivity: int = 2) -> float:
    return min(epsilon / sensitivity - _SPARE, _MOST_RATE)


def _log_chances(output: NDArray, counts: ArrayLike, rate: float) -> NDArray[np.float64]:
    """Return the logarithm of the probability of each count by itself."""
    # As doubles, because the difference of two 64-bit integers may overflow.
    return math.log(math.tanh(rate / 2)) - rate * np.abs(output.astype(float) - counts)


def _count_true(values: Sequence[bool]) -> int:
    """Return how many values are True or 1; each is checked by itself, never in view of others."""
    values = _as_list("values", values)
    for value in values:
        known = isinstance(value, np.bool_ | Integral) and not isinstance(value, np.timedelta64)
        if not known or value not in (0, 1):
            raise ValueError("values must be True or False, or 1 or 0; a record is not")
    return sum(map(int, values))


def _check_whole(name: str, counts: ArrayLike) -> NDArray:
    array = as_array(name, counts)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, got dtype {array.dtype.type.__name__}")
    return array


def _check_outputs(name: str, counts: ArrayLike, categories: int) -> NDArray:
    array = _check_whole(name, counts)
    if array.ndim not in (1, 2) or array.shape[-1] != categories:
        raise ValueError(f"{name} must have a count for each of the {categories} categories")
    return array
