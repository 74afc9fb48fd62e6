"""The two metrics, how far one record can move them, and what can be made of a published AUC."""

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

# More records than anybody has; doubles count up to here.
MOST_RECORDS = 2**53
# So many positives are merged with the negatives among them at a time.
_BLOCK = 1 << 14
# With so many negatives for each of them they are searched for instead.
_SPARSE = 8
_SIDES = ("left", "right")


def auc(labels: ArrayLike, scores: ArrayLike, *, ties: str = "half") -> float:
    """Return the area under the ROC curve. This number is exact, and not private.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive. An array keeps its type, and so whole numbers of any
        size; the numbers of a list become doubles.
    ties : {"half", "pessimistic"}
        What a positive and a negative record of equal score count for: half a pair, as in
        scikit-learn, or nothing, as if all negatives came first.

    Returns
    -------
    float
        The share of pairs of a positive and a negative record that are in the right order.

    Raises
    ------
    ValueError
        If the two are not of one length, a record is not valid, or a class is missing.
    TypeError
        If labels are neither integers nor booleans, or scores are not real numbers.

    Notes
    -----
    This is the Mann-Whitney statistic over n m. Each class is sorted, and the pairs are counted in
    whole numbers as the two are merged, so the result is the double nearest to the true quotient.

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
    """Return the average precision. This number is not private.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive.
    ties : {"grouped", "pessimistic"}
        Records of equal score pass the threshold together, as in scikit-learn, or one by one with
        all negatives first.

    Returns
    -------
    float
        The mean, over the positives, of the precision among the records down to each of them.

    Raises
    ------
    ValueError
        If the two are not of one length, a record is not valid, or there is no positive.
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
    changes its class moves the AUC by at most max(1 / n, 1 / (m + 1)). Any value of a pair in
    [0, 1] will do, so ties may count as half. Each bound is reached, by a single record that goes
    from one end of a perfect ranking to the other. Where a class is missing the AUC is whatever
    constant in [0, 1] one likes, and 1 is a bound (Boyd, Lantz and Page, 2015, theorem 3, bound
    the change for given sizes; for a given ranking it may be smaller).

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
    The logarithm of exp(beta j) / j is convex in j, so its largest value over j = 1, ..., k is at
    an end: S = max(1 / k, exp(-beta (k - 1))), and 1 for k < 2.

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
        The number of negatives m, at least 0. Without it, the result is a bound for every m.

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

    A negative that rises to the top, or becomes a positive there, does (H_{n + 1} - 1) / n, which
    is less than the first. L(n) has 1 + (1/3 + 1/5 + ... + 1 / (2n - 1)) / 2 in brackets. Both are
    1 for n < 2, which covers any constant for an average precision without a positive. L(n) also
    bounds what a record can do to scikit-learn's grouped ties: there the j-th positive has
    p_j >= j positives and a_j negatives at its score or above, and every term above, with p_j for
    j, falls as p_j grows.

    Examples
    --------
    >>> [round(ap_local_sensitivity(n), 6) for n in (1, 2, 3, 4, 5)]
    [1.0, 0.583333, 0.422222, 0.361111, 0.320833]
    >>> round(ap_local_sensitivity(2, 1), 6)
    0.5
    """
    n = check_size("positives", positives)
    if negatives is None or n < 2:
        check_size("negatives", 0 if negatives is None else negatives)
        return ap_bound(n)
    m = check_size("negatives", negatives)
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
    which is an integral of exponentials in n; so log L is convex there, and the first four values
    fit on. As for the AUC the largest value is at an end: max(L(n), exp(-beta (n - 1))).

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
    """Return the smooth sensitivity of either metric for a class of so many records.

    Parameters
    ----------
    size : int
        The size of the class that decides: the smaller one for the AUC, the positives for average
        precision; at least 0.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.
    metric : {"auc", "average precision"}
        Whose sensitivity.

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
        The area under the curve, in [0, 1]. With a private AUC, or an end of its interval, the
        curve is private at no further cost.
    false_positive_rate : array_like of numbers in [0, 1]
        Where to take the curve.

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
    auc = check_real("auc", auc, low=0.0, high=1.0, allowed="a number in [0, 1]")
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
    """Guess the label of the one record that is not known, from the AUC of all.

    Parameters
    ----------
    known_labels : array_like of int in {0, 1} or of bool, shape (n - 1,)
        The classes of all other records.
    known_scores : array_like of finite numbers, shape (n - 1,)
        Their scores. The score of the record in question is not known.
    published_auc : float
        The AUC of all n records, in [0, 1].
    decimals : int, optional
        To how many decimals it was published: the candidates are rounded alike. By default they
        are not.

    Returns
    -------
    int
        0 or 1.

    Notes
    -----
    The attack of Boyd, Lantz and Page (2015), section 3.1: put the record at every rank, with
    either label, and look which AUC comes nearest. Of several that are equally near (within 1e-12)
    the label that occurs more often wins, and 0 in a draw. Ranks are the gaps between different
    known scores.

    Examples
    --------
    >>> labels, scores = [0, 0, 1, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.6]
    >>> reidentify_label(labels[:-1], scores[:-1], auc(labels, scores))
    0
    """
    positives, negatives = split_scores(known_labels, known_scores, "known_labels", "known_scores")
    published = check_real(
        "published_auc", published_auc, low=0.0, high=1.0, allowed="a number in [0, 1]"
    )
    candidates = _candidates(positives, negatives)
    if decimals is not None:
        decimals = check_integer("decimals", decimals, low=0)
        # More decimals than a double has change nothing, and numpy cannot count them.
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
