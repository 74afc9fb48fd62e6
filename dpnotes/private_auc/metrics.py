"""The two metrics, their sensitivities, and two uses of a published AUC: a curve and an attack."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes._checks import (
    as_array,
    as_floats,
    check_categories,
    check_choice,
    check_epsilon,
    check_integer,
    check_real,
    kind_of,
)

AUC_TIES = ("half", "pessimistic")
AP_TIES = ("grouped", "pessimistic")
METRICS = ("auc", "average precision")

# Doubles represent every integer up to this one.
MOST_RECORDS = 2**53
# Merge this many positives at a time with the negatives between them.
_BLOCK = 1 << 14
# With more negatives than this for each positive, binary search is faster than a merge.
_SPARSE = 8
_SIDES = ("left", "right")


def auc(labels: ArrayLike, scores: ArrayLike, *, ties: str = "half") -> float:
    """Return the exact area under the ROC curve, which is not private.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive. An array keeps its type, so large integers stay exact;
        the numbers of a list become doubles.
    ties : {"half", "pessimistic"}
        A positive and a negative record of equal score count as half a pair, as in scikit-learn, or
        as a wrong pair, as if all negatives ranked higher.

    Returns
    -------
    float
        The share of pairs of a positive and a negative record that are in the right order.

    Raises
    ------
    ValueError
        If labels and scores differ in length, a record is not valid, or a class is missing.
    TypeError
        If labels are neither integers nor booleans, or scores are not real numbers.

    Notes
    -----
    This is the Mann-Whitney statistic over n m. Each class is sorted, and the pairs are counted as
    integers when the two are merged, so the result is the double nearest to the true quotient.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> auc([0, 1], [0.5, 0.5]), auc([0, 1], [0.5, 0.5], ties="pessimistic")
    (0.5, 0.0)
    """
    check_choice("ties", ties, AUC_TIES)
    positives, negatives = split_scores(labels, scores)
    if not (positives.size and negatives.size):
        raise ValueError("labels must hold both classes for an AUC")
    return float(exact_auc(positives, negatives, ties))


def average_precision(labels: ArrayLike, scores: ArrayLike, *, ties: str = "grouped") -> float:
    """Return the average precision, which is not private.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive.
    ties : {"grouped", "pessimistic"}
        Records of equal score pass the threshold together, as in scikit-learn, or one by one, the
        negatives first.

    Returns
    -------
    float
        The mean, over the positives, of the precision among the records ranked down to each.

    Raises
    ------
    ValueError
        If labels and scores differ in length, a record is not valid, or there is no positive.
    TypeError
        If labels are neither integers nor booleans, or scores are not real numbers.

    Notes
    -----
    With a_j negatives above the j-th best of n positives this is the mean of j / (j + a_j).

    Examples
    --------
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 6)
    0.833333
    """
    check_choice("ties", ties, AP_TIES)
    positives, negatives = split_scores(labels, scores)
    if not positives.size:
        raise ValueError("labels must hold a positive for an average precision")
    return float(exact_average_precision(positives, negatives, ties))


def auc_local_sensitivity(positives: int, negatives: int) -> float:
    """Return how far one record can move the AUC, at worst over all rankings.

    Parameters
    ----------
    positives, negatives : int
        The sizes n and m of the classes, at least 0.

    Returns
    -------
    float
        1 / min(n, m); 1 where a class is missing.

    Notes
    -----
    A positive record takes part in 1 / n of all pairs, a negative one in 1 / m, and a record that
    changes its class moves the AUC by at most max(1 / n, 1 / (m + 1)). This holds for any value of
    a pair in [0, 1], so ties may count as half. A record that moves from one end of a perfect
    ranking to the other attains the bound. If a class is missing, the AUC is defined as some
    constant in [0, 1], and 1 is a bound. Boyd, Lantz and Page (2015, theorem 3) bound the change
    for given sizes; for a given ranking it may be smaller.

    Examples
    --------
    >>> auc_local_sensitivity(15, 85) == 1 / 15
    True
    """
    return auc_bound(min(check_size("positives", positives), check_size("negatives", negatives)))


def auc_smooth_sensitivity(positives: int, negatives: int, beta: float) -> float:
    """Return the beta-smooth sensitivity of the AUC.

    Parameters
    ----------
    positives, negatives : int
        The sizes of the classes, at least 0.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.

    Returns
    -------
    float
        The largest exp(-beta d) / max(k - d, 1) over d = 0, 1, ..., with k the smaller size.

    Notes
    -----
    The logarithm of exp(beta j) / j is convex in j, so its maximum over j = 1, ..., k is at an end
    of that range: S = max(1 / k, exp(-beta (k - 1))), and 1 for k < 2.

    Examples
    --------
    >>> round(auc_smooth_sensitivity(20, 80, 0.1), 6) == round(math.exp(-1.9), 6)
    True
    """
    beta = check_epsilon(beta, "beta")
    smaller = min(check_size("positives", positives), check_size("negatives", negatives))
    return discounted(smaller, beta, "auc")


def ap_local_sensitivity(positives: int, negatives: int | None = None) -> float:
    """Return how far one record can move the average precision, at worst over all rankings.

    Parameters
    ----------
    positives : int
        The number of positives n, at least 0.
    negatives : int, optional
        The number of negatives m, at least 0. If it is omitted, the result is a bound for every m.

    Returns
    -------
    float
        The exact worst case for (n, m), or the bound L(n).

    Notes
    -----
    With H_n = 1 + 1/2 + ... + 1/n and N = n + m, the worst cases are a positive at the top that
    becomes a negative at the top, and a positive that falls from the top to the bottom:

        (H_n - 1) / (n - 1),
        (1 - n / N + sum_{j < n} a_j / ((j + a_j) (j + 1 + a_j))) / n  with a_j = min(j, m).

    A negative that rises to the top, or becomes a positive there, changes the average precision by
    (H_{n + 1} - 1) / n, which is less than the first. The bound L(n) is the maximum of the same two
    terms with 1 + (1/3 + 1/5 + ... + 1 / (2n - 1)) / 2 in the brackets of the second. Both are 1
    for n < 2, which covers any constant for an average precision without a positive. L(n) is also a
    bound with scikit-learn's grouped ties: there the j-th positive has p_j >= j positives and a_j
    negatives at its score or above, and every term above, with p_j for j, decreases in p_j.

    Examples
    --------
    >>> [round(ap_local_sensitivity(n), 6) for n in (1, 2, 3, 4, 5)]
    [1.0, 0.583333, 0.422222, 0.361111, 0.320833]
    >>> round(ap_local_sensitivity(2, 1), 6)
    0.5
    """
    n = check_size("positives", positives)
    m = None if negatives is None else check_size("negatives", negatives)
    if m is None or n < 2:
        return ap_bound(n)
    meet = min(n - 1, m)
    fall = m / (n + m) + odd_sum(meet) / 2 + m * (1 / (meet + 1 + m) - 1 / (n + m))
    return max((harmonic(n) - 1) / (n - 1), fall / n)


def ap_smooth_sensitivity(positives: int, beta: float) -> float:
    """Return a beta-smooth bound on the sensitivity of the average precision.

    Parameters
    ----------
    positives : int
        The number of positives n, at least 0.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.

    Returns
    -------
    float
        The largest exp(-beta d) L(n - d) over d = 0, ..., n, with L of `ap_local_sensitivity`.

    Notes
    -----
    From n = 4 on, L(n) is the integral over x in [0, 1] of the mean of x, x^2, ..., x^(n - 1),
    which is an integral of exponentials in n; so log L is convex there, and it stays convex with
    the first values included. As for the AUC, the maximum is at an end: max(L(n),
    exp(-beta (n - 1))).

    Examples
    --------
    >>> round(ap_smooth_sensitivity(20, 0.1), 6) == round(math.exp(-1.9), 6)
    True
    >>> ap_smooth_sensitivity(20, 1.0) == ap_local_sensitivity(20)
    True
    """
    beta = check_epsilon(beta, "beta")
    return discounted(check_size("positives", positives), beta, "average precision")


def smooth_sensitivity(size: int, beta: float, *, metric: str = "auc") -> float:
    """Return the smooth sensitivity of either metric for a class of `size` records.

    Parameters
    ----------
    size : int
        The size of the class that determines the sensitivity: the smaller one for the AUC, the
        positives for average precision; at least 0.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.
    metric : {"auc", "average precision"}
        The metric.

    Returns
    -------
    float
        What `auc_smooth_sensitivity` or `ap_smooth_sensitivity` returns.

    Notes
    -----
    max(L(size), exp(-beta (size - 1))) with L the bound on the local sensitivity.

    Examples
    --------
    >>> smooth_sensitivity(20, 1.0) == 1 / 20
    True
    """
    beta = check_epsilon(beta, "beta")
    return discounted(check_size("size", size), beta, check_choice("metric", metric, METRICS))


def binormal_roc(auc: float, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
    """Return the symmetric binormal ROC curve that has a given area.

    Parameters
    ----------
    auc : float
        The area under the curve, in [0, 1]. The curve of a private AUC, or of an end of its
        interval, is private at no further cost.
    false_positive_rate : array_like of numbers in [0, 1]
        Where to evaluate the curve.

    Returns
    -------
    ndarray of the shape of `false_positive_rate`
        True positive rates; 0 at 0 and 1 at 1.

    Notes
    -----
    Positive scores are normal with mean d and negative ones with mean 0, both of variance 1: so
    TPR = Phi(d + Phi^-1(FPR)), AUC = Phi(d / sqrt(2)), and d = sqrt(2) Phi^-1(AUC).

    Examples
    --------
    >>> binormal_roc(0.8, [0.0, 0.1, 0.5, 1.0]).round(4)
    array([0.    , 0.4636, 0.883 , 1.    ])
    """
    auc = check_share("auc", auc)
    rate = check_doubles("false_positive_rate", false_positive_rate)
    if np.any((rate < 0) | (rate > 1)):
        raise ValueError("false_positive_rate must be in [0, 1]")
    inside = (rate > 0) & (rate < 1)
    shift = math.sqrt(2) * float(special.ndtri(auc))
    return np.where(inside, special.ndtr(shift + special.ndtri(np.where(inside, rate, 0.5))), rate)


def reidentify_label(
    known_labels: ArrayLike,
    known_scores: ArrayLike,
    published_auc: float,
    *,
    decimals: int | None = None,
) -> int:
    """Guess the label of the one unknown record from the AUC of all records.

    Parameters
    ----------
    known_labels : array_like of int in {0, 1} or of bool, shape (n - 1,)
        The classes of all other records.
    known_scores : array_like of finite numbers, shape (n - 1,)
        Their scores. The score of the unknown record is not needed.
    published_auc : float
        The AUC of all n records, in [0, 1].
    decimals : int, optional
        The number of decimals to which it was published: the candidates are rounded in the same
        way. By default they are not rounded.

    Returns
    -------
    int
        0 or 1.

    Notes
    -----
    The attack of Boyd, Lantz and Page (2015), section 3.1: try every rank of the record with either
    label, and keep those whose AUC is nearest to the published one (ties within 1e-12). The label
    that occurs more often among them wins, and 0 in a draw. Ranks are the gaps between distinct
    known scores.

    Examples
    --------
    >>> labels, scores = [0, 0, 1, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.6]
    >>> reidentify_label(labels[:-1], scores[:-1], auc(labels, scores))
    0
    """
    positives, negatives = split_scores(known_labels, known_scores, "known_labels", "known_scores")
    published = check_share("published_auc", published_auc)
    candidates = _candidates(positives, negatives)
    if decimals is not None:
        decimals = check_integer("decimals", decimals, low=0)
        # Doubles have at most 17 digits, and np.round refuses a huge number of decimals.
        candidates = [np.round(found, min(decimals, 17)) for found in candidates]
    distances = [np.abs(found - published) for found in candidates]
    best = min(found.min(initial=np.inf) for found in distances) + 1e-12
    negative, positive = (np.count_nonzero(found <= best) for found in distances)
    return int(positive > negative)


def _candidates(positives: NDArray, negatives: NDArray) -> list[NDArray]:
    """Return the AUC with one more negative record, and one more positive, at every rank."""
    n, m = positives.size, negatives.size
    pairs = float(exact_auc(positives, negatives, "half") * n * m)
    gaps = np.unique(np.concatenate([positives, negatives]))
    above = n - np.searchsorted(positives, gaps, side="right")
    below = np.searchsorted(negatives, gaps, side="right")
    negative = (pairs + np.append(n, above)) / (n * (m + 1)) if n else np.empty(0)
    positive = (pairs + np.append(0, below)) / ((n + 1) * m) if m else np.empty(0)
    return [negative, positive]


def check_size(name: str, value: int) -> int:
    return check_integer(name, value, low=0, high=MOST_RECORDS)


def check_share(name: str, value: float) -> float:
    return check_real(name, value, low=0.0, high=1.0, allowed="a number in [0, 1]")


def check_classes(name: str, values: ArrayLike) -> NDArray:
    """Return classes as a 1-D array of booleans, or of the numbers 0 and 1."""
    array = check_categories(name, values, 2)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array


def check_numbers(name: str, values: ArrayLike) -> NDArray:
    """Return finite real numbers; an array keeps its type."""
    array = as_array(name, values, with_booleans=True)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {kind_of(array)}")
    if not hasattr(values, "dtype"):
        # A single fraction turns a list of integers into doubles, which may create ties among the
        # others. If every list becomes doubles, no record changes how another one is read.
        with np.errstate(over="ignore"):
            array = array.astype(float)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array


def check_doubles(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite real numbers as doubles."""
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
    # compress is several times faster than indexing with a boolean array.
    parts = scores.compress(positive), scores.compress(~positive)
    for part in parts:
        part.sort()
    return parts


def exact_auc(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the exact AUC, or 1/2 if a class is missing."""
    pairs = positives.size * negatives.size
    if pairs == 0:
        return Fraction(1, 2)
    blocks = (positives[start : start + _BLOCK] for start in range(0, positives.size, _BLOCK))
    return Fraction(sum(_halves_won(block, negatives, ties) for block in blocks), 2 * pairs)


def _halves_won(positives: NDArray, negatives: NDArray, ties: str) -> int:
    """Return twice the number of pairs in the right order, for sorted positives and negatives."""
    first = int(np.searchsorted(negatives, positives[0]))
    negatives = negatives[first : np.searchsorted(negatives, positives[-1], side="right")]
    if negatives.size > _SPARSE * positives.size:
        strict, upto = (int(np.searchsorted(negatives, positives, s).sum()) for s in _SIDES)
    else:
        # A stable sort detects the two sorted runs and merges them, which is faster than a search.
        merged = np.concatenate([positives, negatives])
        order = np.argsort(merged, kind="stable")
        strict = upto = _wins(order < positives.size)
        merged = merged[order]
        if ties == "half" and (merged[1:] == merged[:-1]).any():
            order = np.argsort(np.concatenate([negatives, positives]), kind="stable")
            upto = _wins(order >= negatives.size)
    return 2 * first * positives.size + strict + (upto if ties == "half" else strict)


def _wins(positive: NDArray) -> int:
    """Return the number of negatives before each positive, summed over the positives."""
    places = np.flatnonzero(positive)
    return int(places.sum()) - places.size * (places.size - 1) // 2


def exact_average_precision(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the average precision, computed in doubles, or 0 if there is no positive."""
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
    """Return the bound L(n) of `ap_local_sensitivity`."""
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
    """What a release needs to know about a metric."""

    ties: tuple[str, ...]
    value: Callable[[NDArray, NDArray, str], Fraction]
    bound: Callable[[int], float]
    # The size of the class that determines the sensitivity, and its maximum among n records.
    size: Callable[[int, int], int]
    largest: Callable[[int], int]


METRIC = {
    "auc": Metric(AUC_TIES, exact_auc, auc_bound, min, lambda n: max(n // 2, 1)),
    "average precision": Metric(
        AP_TIES, exact_average_precision, ap_bound, lambda positives, _: positives, lambda n: n
    ),
}


def discounted(size: int, beta: float, metric: str) -> float:
    """Return the smooth sensitivity without checking the arguments."""
    return max(METRIC[metric].bound(size), math.exp(-beta * max(size - 1, 0)))
