"""A private histogram: how many records there are of each category, with noise on every count.

One record replaced takes 1 from a count and adds 1 to another. So noise for whole numbers of scale
2 / epsilon on every count hides it, however many categories there are (Dwork, McSherry, Nissim and
Smith, 2006). The categories are public: one that was read off the records tells that somebody is in
it.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_array, check_integer, check_probability, check_real, check_rng
from dpnotes._coins import discrete_laplace
from dpnotes.release import _set_promise
from dpnotes.unary_encoding import encode

_NEIGHBOURS = "one record replaced; the number of records and the categories are public"
# A coin's odds are rounded to doubles; this much of half of epsilon is more than that costs.
_SPARE = 1e-12
# Scales of noise below 1 / 700 are no different: the counts come out as they are.
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

    Raises
    ------
    ValueError, TypeError
        If the counts are no whole numbers, one for each category, or a field is not as in
        `Release`.

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
        domain = _check_domain(self.domain)
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
    which is more than the rounding costs. Noise never comes from 700 to 1,400 scales on, where
    exact noise would be with a probability below 1e-303: so the claim of epsilon alone holds up to
    a delta of that size, times the number of categories.

    `project_to_simplex` of `dpnotes.unary_encoding` moves the counts to the nearest that are not
    negative and sum to n, at no further cost.

    Examples
    --------
    >>> answers = ["tea"] * 700 + ["coffee"] * 300
    >>> released = release_histogram(answers, ["coffee", "tea", "water"], epsilon=1.0, rng=0)
    >>> [abs(noisy - true) <= margin(1.0, 3) for noisy, true in zip(released.value, [300, 700, 0])]
    [True, True, True]
    """
    epsilon, domain = _check_cost(epsilon), _check_domain(domain)
    counts = encode(values, domain).sum(axis=0, dtype=np.int64)
    noise = discrete_laplace(counts.size, 1 / _rate(epsilon), check_rng(rng))
    return HistogramRelease(
        value=tuple((counts + noise).tolist()),
        domain=domain,
        epsilon=epsilon,
        mechanism="discrete Laplace noise of scale 2 / epsilon on every count",
        neighbours=_NEIGHBOURS,
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

    Raises
    ------
    ValueError, TypeError
        As `release_histogram` does, and if the outputs are not k whole numbers each.

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
    # As doubles: the difference of two whole numbers of 64 bits may have 65.
    distances = np.abs(output.astype(float) - counts).sum(axis=-1)
    return counts.size * math.log(math.tanh(rate / 2)) - rate * distances


def margin(epsilon: float, categories: int = 1, *, confidence: float = 0.95) -> int:
    """Return how far from the true counts all noisy counts are at most, with a given confidence.

    Parameters
    ----------
    epsilon : float
        The privacy cost of the histogram, at least 1e-9 and finite.
    categories : int
        For how many counts this is to hold at the same time, from 1 to 2**31.
    confidence : float
        How often it is to hold, strictly between 0 and 1.

    Returns
    -------
    int
        The smallest such number of records.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    It depends on public numbers only, so it can be known before any release. With q =
    exp(-epsilon / 2) the noise of a count is further than m with probability 2 q^(m + 1) / (1 + q).

    Examples
    --------
    >>> margin(1.0), margin(0.1), margin(0.1, 14)
    (6, 60, 112)
    """
    rate = _rate(_check_cost(epsilon))
    categories = check_integer("categories", categories, low=1, high=2**31)
    confidence = check_probability("confidence", confidence)
    each = -math.expm1(math.log(confidence) / categories)
    beyond = math.log(2 / each) - math.log1p(math.exp(-rate))
    return max(0, math.ceil(beyond / rate) - 1)


def _check_cost(epsilon: float) -> float:
    allowed = "a finite number of at least 1e-9"
    return check_real("epsilon", epsilon, low=1e-9, allowed=allowed)


def _rate(epsilon: float) -> float:
    return min(epsilon / 2 - _SPARE, _MOST_RATE)


def _check_domain(domain: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the categories as Python objects, by the rules of `encode`."""
    if isinstance(domain, Iterator):
        domain = list(domain)
    encode([None], domain, missing="zero")
    return tuple(domain.tolist() if hasattr(domain, "tolist") else domain)


def _check_outputs(name: str, counts: ArrayLike, categories: int) -> NDArray:
    array = as_array(name, counts)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, got dtype {array.dtype.type.__name__}")
    if array.ndim not in (1, 2) or array.shape[-1] != categories:
        raise ValueError(f"{name} must have a count for each of the {categories} categories")
    return array
