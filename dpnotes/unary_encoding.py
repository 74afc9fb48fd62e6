"""Unary encoding: one bit for each category, each bit kept or flipped independently.

A person in category j sends k bits. Bit j is reported as 1 with probability p, every other bit
with probability q < p, independently. Two people differ in two true bits, so the cost is

    epsilon = ln [ p (1 - q) / ((1 - p) q) ].

Adding up the reports gives a histogram. This is the core of RAPPOR (Erlingsson et al. 2014); the
choice of p and q is from Wang et al. (2017), "Locally differentially private protocols for
frequency estimation".
"""

from collections.abc import Hashable, Sequence
from math import exp, inf, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import (
    as_array,
    as_numbers,
    check_categories,
    check_choice,
    check_counts,
    check_epsilon,
    check_flag,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    check_whole_counts,
    find_categories,
    index_categories,
    kind_of,
)
from dpnotes._coins import complement, flip_either, lie_probability

# The least difference p - q allowed, so that estimates and variances are finite.
_APART = 1e-100
SCHEMES = ("optimized", "symmetric")
PROTOCOLS = (
    "direct encoding",
    "symmetric unary",
    "optimized unary",
    "local hashing",
    "binary hashing",
    "hadamard",
    "subset selection",
)


def probabilities(epsilon: float, scheme: str = "optimized") -> tuple[float, float]:
    """Return the bit probabilities (p, q) of a report that costs epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy cost of one report, positive and finite.
    scheme : {"optimized", "symmetric"}
        "optimized" keeps a 1 half of the time and a 0 nearly always, so that no other p and q of
        this cost estimate a rare category better; "symmetric" flips both with the same
        probability.

    Returns
    -------
    tuple of float
        p, the probability that a true 1 is reported as 1, and q, that a true 0 is. Both are
        rounded towards more privacy.

    Examples
    --------
    >>> p, q = probabilities(np.log(3))
    >>> round(p, 12), round(q, 12)
    (0.5, 0.25)
    """
    epsilon = check_epsilon(epsilon)
    if check_choice("scheme", scheme, SCHEMES) == "optimized":
        return 0.5, lie_probability(epsilon)
    q = lie_probability(epsilon / 2)
    return complement(q), q


def epsilon(p: float, q: float) -> float:
    """Return the privacy cost of one report with bit probabilities p and q.

    Parameters
    ----------
    p, q : float
        Probabilities of reporting a 1 for a true 1 and a true 0, with 0 < q < p < 1.

    Returns
    -------
    float
        ln [p (1 - q) / ((1 - p) q)].

    Examples
    --------
    >>> round(float(np.exp(epsilon(0.75, 0.25))), 9)
    9.0
    """
    p, q = _check_pair(p, q)
    excess = (p - q) / q / (1 - p)
    # Close p and q cancel in a difference of logarithms, and distant ones overflow in a ratio.
    return log1p(excess) if excess < inf else log(p) - log1p(-p) + log1p(-q) - log(q)


def output_distribution(categories: int, p: float, q: float) -> np.ndarray:
    """Return the exact distribution of one report for every category, by enumerating all of them.

    Parameters
    ----------
    categories : int
        The number of categories k, from 1 to 12.
    p, q : float
        Bit probabilities with 0 < q < p < 1.

    Returns
    -------
    ndarray of shape (k, 2**k)
        Row: the category. Column: the report, read as a binary number whose bit j (of value 2**j)
        is the reported bit j. Each row sums to 1.

    Examples
    --------
    >>> output_distribution(2, 0.75, 0.25)[0]
    array([0.1875, 0.5625, 0.0625, 0.1875])
    """
    categories = check_integer("categories", categories, low=1, high=12)
    p, q = _check_pair(p, q)
    reports = np.arange(2**categories)[:, None] >> np.arange(categories) & 1
    of_zeros = np.where(reports, q, 1 - q)
    of_ones = np.where(reports, p, 1 - p)
    own = np.eye(categories, dtype=bool)[:, None, :]
    return np.where(own, of_ones, of_zeros).prod(axis=2)


def encode(
    values: Sequence[Hashable], domain: Sequence[Hashable], *, missing: str = "raise"
) -> np.ndarray:
    """Turn categories into rows of bits with a single 1.

    Parameters
    ----------
    values : sequence of hashable, length n
        The true category of each person.
    domain : sequence of hashable, length k
        The categories, all different and public; a value of `domain[j]` sets bit j.
    missing : {"raise", "zero"}
        What to do with None, NaN and pandas' NA: refuse them, or encode them as k zeros, which
        is as private as any category and adds to no count.

    Returns
    -------
    ndarray of uint8, shape (n, k)
        The bits.

    Raises
    ------
    ValueError
        If there are no values, the domain is empty or repeats a category, or a value is missing
        (unless `missing="zero"`) or not in the domain.
    TypeError
        If the values or the domain are not a sequence of hashable objects; a set has no order.

    Examples
    --------
    >>> encode(["tea", "coffee", "tea"], ["coffee", "tea"])
    array([[0, 1],
           [1, 0],
           [0, 1]], dtype=uint8)
    """
    check_choice("missing", missing, ("raise", "zero"))
    column = index_categories(domain)
    columns = find_categories(values, column, missing=missing)
    bits = np.zeros((columns.size, len(column)), dtype=np.uint8)
    known = np.flatnonzero(columns >= 0)
    bits[known, columns[known]] = 1
    return bits


def perturb(
    bits: ArrayLike, p: float, q: float, *, rng: np.random.Generator | int | None = None
) -> np.ndarray:
    """Draw a private report for every row of bits.

    Parameters
    ----------
    bits : array_like of {0, 1} or bool, shape (n, k)
        True bits, at most a single 1 in each row, as `encode` makes them.
    p, q : float
        Probabilities of reporting a 1 for a true 1 and a true 0, with 0 < q < p < 1.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (n, k)
        The reports, of the type of `bits`.

    Raises
    ------
    ValueError
        If there are no bits, one is neither 0 nor 1, a row has more than a single 1 (its report
        would cost more than `epsilon(p, q)`), or a probability is out of range.
    TypeError
        If the bits are neither integers nor booleans, or a probability is not a number.

    Examples
    --------
    >>> perturb([[1, 0, 0], [0, 0, 1]], 0.5, 0.25, rng=0).shape
    (2, 3)
    """
    p, q = _check_pair(p, q)
    kind = as_array("bits", bits, with_booleans=True).dtype
    bits = _check_bits("bits", bits)
    sums = np.einsum("ij->i", bits)
    # Sums of bytes may wrap around at 256, so their total is compared with the number of ones.
    if sums.max() > 1 or int(sums.sum(dtype=np.int64)) != np.count_nonzero(bits):
        raise ValueError("bits must have at most a single 1 in each row; a record has more")
    rng = check_rng(rng)
    reports = flip_either(bits.ravel(), p, q, rng).reshape(bits.shape)
    return reports.view(kind) if kind.itemsize == 1 else reports.astype(kind)


def count_ones(reports: ArrayLike) -> np.ndarray:
    """Count the ones in each column: all that a collector has to keep.

    The counts of several batches add up to those of all of them together.

    Parameters
    ----------
    reports : array_like of {0, 1} or bool, shape (n, k)
        Private reports.

    Returns
    -------
    ndarray of int64, shape (k,)
        How many reports have a 1 in each column.

    Examples
    --------
    >>> count_ones([[1, 0], [1, 1]])
    array([2, 1])
    """
    reports = _check_bits("reports", reports)
    # Add 255 rows at a time as bytes, because a byte holds a sum of at most 255 bits.
    height, width = reports.shape
    layer = height // 255
    folded = reports[: 255 * layer].reshape(255, layer * width)
    totals = folded.sum(axis=0, dtype=np.uint8).reshape(layer, width).sum(axis=0, dtype=np.int64)
    return totals + reports[255 * layer :].sum(axis=0, dtype=np.int64)


def aggregate(reports: ArrayLike, p: float, q: float, *, known_total: bool = False) -> np.ndarray:
    """Estimate the true count of every category from private reports, without bias.

    Parameters
    ----------
    reports : array_like of {0, 1} or bool, shape (n, k)
        Private reports, as `perturb` draws them.
    p, q : float
        The bit probabilities with which they were drawn.
    known_total : bool
        Whether every report encodes exactly one category, so that the counts add up to n. Then
        all estimates are shifted by the same amount, which is unbiased and reduces the squared
        error of the histogram by the share 1/k. Not for ``encode(..., missing="zero")``.

    Returns
    -------
    ndarray of float, shape (k,)
        Estimated counts, (ones - n q) / (p - q); single ones may be negative. Estimates of
        disjoint batches add up to the estimate of all of them.

    Examples
    --------
    >>> aggregate([[1, 0], [1, 0], [0, 1], [1, 0]], 0.75, 0.25)
    array([4., 0.])
    >>> aggregate([[1, 0], [1, 1], [0, 1], [1, 0]], 0.75, 0.25, known_total=True)
    array([3., 1.])
    """
    _check_apart(p, q)
    reports = as_array("reports", reports)
    return aggregate_ones(count_ones(reports), len(reports), p, q, known_total=known_total)


def aggregate_ones(
    ones: ArrayLike, n: int, p: float, q: float, *, known_total: bool = False
) -> np.ndarray:
    """Estimate the true count of every category from the number of ones in each column.

    Parameters
    ----------
    ones : array_like of int, shape (k,)
        How many reports have a 1 in each column; sums over batches.
    n : int
        How many reports there were.
    p, q : float
        The bit probabilities with which they were drawn.
    known_total : bool
        Whether every report encodes exactly one category; see `aggregate`.

    Returns
    -------
    ndarray of float, shape (k,)
        Estimated counts, as `aggregate` gives them.

    Examples
    --------
    >>> aggregate_ones([3, 1], 4, 0.75, 0.25)
    array([4., 0.])
    """
    p, q = _check_apart(p, q)
    known_total = check_flag("known_total", known_total)
    n = check_integer("n", n, low=1, high=2**62)
    ones = as_array("ones", ones)
    if ones.ndim != 1 or ones.size == 0:
        raise ValueError(f"ones must be one-dimensional and not empty, got shape {ones.shape}")
    if ones.dtype.kind not in "iu":
        raise TypeError(f"ones must be integers, got {kind_of(ones)}")
    if ones.min() < 0 or ones.max() > n:
        raise ValueError(f"ones must be in [0, {n}], the number of reports")
    estimates = (ones - n * q) / (p - q)
    return estimates + (n - estimates.sum()) / ones.size if known_total else estimates


def simulate_ones(
    counts: ArrayLike,
    p: float,
    q: float,
    *,
    n: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Draw what a collector would count, in time that does not depend on the number of people.

    The reported ones of a category are those of its members and those of all others: two binomial
    draws, with the same distribution as perturbing every person's bits and adding them up.

    Parameters
    ----------
    counts : array_like of int, shape (k,)
        True number of people in each category.
    p, q : float
        Bit probabilities with 0 < q < p < 1.
    n : int, optional
        The number of reports, if some people are in no category. By default the sum of `counts`.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of int64, shape (k,)
        Reported ones in each column.

    Examples
    --------
    >>> simulate_ones([600_000_000, 400_000_000], 0.5, 0.25, rng=0).shape
    (2,)
    """
    p, q = _check_pair(p, q)
    # Given n, counts may all be 0, because raising would reveal that nobody is in a category.
    counts = check_whole_counts("counts", counts, may_be_zero=n is not None).astype(np.int64)
    n = _check_total(counts, n)
    rng = check_rng(rng)
    return rng.binomial(counts, p) + rng.binomial(n - counts, q)


def variance(
    counts: ArrayLike, p: float, q: float, *, n: int | None = None, known_total: bool = False
) -> np.ndarray:
    """Return the exact variance of the estimated counts.

    Parameters
    ----------
    counts : array_like of shape (k,)
        True number of people in each category.
    p, q : float
        Probabilities that a report supports the own category and another one, 0 < q < p < 1: the
        bit probabilities, or the `support_probabilities` of any other protocol.
    n : int, optional
        The number of reports, if some people are in no category. By default the sum of `counts`.
    known_total : bool
        Whether the estimates are shifted to add up to the number of reports, as `aggregate`
        does where everybody is in one category. This is for reports whose columns are
        uncorrelated: unary encoding, hashing and Hadamard. The estimates from direct encoding and
        from subset selection add up to it by themselves.

    Returns
    -------
    ndarray of float, shape (k,)
        Variances, in people squared.

    Notes
    -----
    Category j is supported by n_j coins of probability p and n - n_j of probability q, so the
    variance is v_j = (n_j p (1 - p) + (n - n_j) q (1 - q)) / (p - q)^2. With the total known it is
    v_j - (2 v_j - m) / k, where m is the mean of v_1, ..., v_k. Their sum falls by the share 1/k.

    Examples
    --------
    >>> variance([60, 40], 0.75, 0.25)
    array([75., 75.])
    """
    p, q = _check_apart(p, q)
    counts = check_counts("counts", counts, may_be_zero=n is not None, with_variance=True)
    if check_flag("known_total", known_total) and n is not None:
        raise ValueError("n must be left out where known_total is True: everybody is counted")
    n = _check_total(counts, n)
    alone = (counts * p * (1 - p) + (n - counts) * q * (1 - q)) / (p - q) ** 2
    return alone - (2 * alone - alone.mean()) / alone.size if known_total else alone


def support_probabilities(protocol: str, epsilon: float, categories: int) -> tuple[float, float]:
    """Return the probability that a report supports its own category, and any other one.

    Every protocol here uses the same estimator, (support - n q) / (p - q), so that `variance`
    compares them all (Wang et al. 2017, and Ye and Barg 2018 for subset selection).

    Parameters
    ----------
    protocol : str
        One of `PROTOCOLS`. "direct encoding" is k-ary randomized response; "local hashing" reports
        a hashed category among round(e^epsilon) + 1, "binary hashing" among 2; "hadamard" reports
        one coefficient; "subset selection" reports a set of k / (e^epsilon + 1) categories, rounded
        up or down, whichever gives a rare category the smaller variance.
    epsilon : float
        The privacy cost of one report, from 1e-9 to 30.
    categories : int
        The number of categories k, from 2 to 2**62.

    Returns
    -------
    tuple of float
        p and q, with 0 < q < p < 1.

    Examples
    --------
    >>> p, q = support_probabilities("direct encoding", np.log(3), 4)
    >>> round(p, 12), round(q, 12)
    (0.5, 0.166666666667)
    """
    check_choice("protocol", protocol, PROTOCOLS)
    epsilon = check_real(
        "epsilon", epsilon, low=1e-9, high=30.0, allowed="a number from 1e-9 to 30"
    )
    k = check_integer("categories", categories, low=2, high=2**62)
    odds = exp(epsilon)
    if protocol.endswith(" unary"):
        return probabilities(epsilon, protocol.removesuffix(" unary"))
    if protocol == "direct encoding":
        return odds / (odds + k - 1), 1 / (odds + k - 1)
    if protocol == "local hashing":
        cells = round(odds) + 1
        return odds / (odds + cells - 1), 1 / cells
    if protocol == "subset selection":
        fewer = int(k / (odds + 1))
        pairs = [_subset_pair(odds, k, size) for size in {max(1, fewer), fewer + 1}]
        return min(pairs, key=lambda pair: pair[1] * (1 - pair[1]) / (pair[0] - pair[1]) ** 2)
    return odds / (odds + 1), 0.5


def _subset_pair(odds: float, k: int, size: int) -> tuple[float, float]:
    inside, outside = odds * size, k - size
    p = inside / (inside + outside)
    return p, (inside * (size - 1) + outside * size) / ((k - 1) * (inside + outside))


def project_to_simplex(estimates: ArrayLike, total: float) -> np.ndarray:
    """Return the nearest histogram that is non-negative and has the given total.

    Parameters
    ----------
    estimates : array_like of float, shape (k,)
        Estimated counts, some of them perhaps negative.
    total : float
        What the counts must add up to, positive and at most 1e100.

    Returns
    -------
    ndarray of float, shape (k,)
        The Euclidean projection: all entries are shifted by the same amount and clipped at zero.

    Notes
    -----
    Post-processing: it costs no privacy. It is no longer unbiased, as small counts are pulled up.
    The threshold is found by one sort (Duchi et al. 2008).

    Examples
    --------
    >>> project_to_simplex([7.0, 5.0, -2.0], 10)
    array([6., 4., 0.])
    """
    total = check_real(
        "total", total, low=0.0, low_open=True, high=1e100, allowed="a positive number up to 1e100"
    )
    estimates = as_numbers("estimates", estimates)
    if estimates.ndim != 1 or estimates.size == 0 or not np.all(np.isfinite(estimates)):
        raise ValueError("estimates must be one-dimensional, not empty and finite")
    # Measure from the largest, so that a total far smaller than it is not lost to rounding. Entries
    # more than the total behind become 0, so clipping them at twice that changes nothing.
    with np.errstate(over="ignore"):
        estimates = np.maximum(estimates - estimates.max(), -2 * total)
    ranked = np.sort(estimates)[::-1]
    shifts = (np.cumsum(ranked) - total) / np.arange(1, ranked.size + 1)
    shift = shifts[np.flatnonzero(ranked > shifts)[-1]]
    return np.maximum(estimates - shift, 0.0)


def _check_pair(p: float, q: float) -> tuple[float, float]:
    p, q = check_probability("p", p), check_probability("q", q)
    if p <= q:
        raise ValueError(f"p must be greater than q, got p={p} and q={q}")
    return p, q


def _check_apart(p: float, q: float) -> tuple[float, float]:
    """Return both, if their difference is large enough to divide by."""
    p, q = _check_pair(p, q)
    if p - q < _APART:
        raise ValueError(f"p must be greater than q by {_APART:g} or more, got p={p} and q={q}")
    return p, q


def _check_bits(name: str, bits: ArrayLike) -> np.ndarray:
    """Return bits as a contiguous 2-D array of bytes, or refuse them."""
    bits = check_categories(name, bits, 2)
    if bits.ndim != 2:
        raise ValueError(
            f"{name} must have a row per person and a column per category, got shape {bits.shape}"
        )
    bits = np.ascontiguousarray(bits)
    return bits.view(np.uint8) if bits.dtype.itemsize == 1 else bits.astype(np.uint8)


def _check_total(counts: np.ndarray, n: int | None) -> int | float:
    """Return the number of reports, into which all the counts must fit."""
    if n is None:
        return counts.sum()
    n = check_integer("n", n, low=1, high=2**62)
    if counts.sum() > n:
        raise ValueError(f"n must be at least the sum of the counts, got {n}")
    return n
