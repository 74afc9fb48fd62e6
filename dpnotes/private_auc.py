"""Private AUC and average precision: say how good a classifier is without showing its test set.

The area under the ROC curve (AUC) is the chance that a positive record scores higher than a
negative one; average precision (AP) is the mean precision at the positives. Both change little when
one record is replaced and both classes are large, and a lot when one class is small. How large the
classes are is a secret too: only the number of records N is public. So the noise follows a *smooth
sensitivity* S (Nissim, Raskhodnikova and Smith, 2007), which changes by a factor of at most
e^beta between neighbours (Boyd, Lantz and Page, 2015, for both metrics).

With n positives, m negatives and k = min(n, m) for AUC, k = n for AP, it is in both cases

    S = max(L(k), exp(-beta (k - 1))),    L(k) a bound on the local sensitivity, L(k) = 1 for k < 2.

Noise of c S times a standard Cauchy variable is epsilon-differentially private for the c of
`cauchy_scale`. What depends on the records together, such as a class that is missing, raises no
error and changes no type in a release: it takes a documented value instead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    kind_of,
)
from dpnotes._coins import discrete_laplace, flip_each
from dpnotes.release import Release
from dpnotes.unary_encoding import project_to_simplex

AUC_TIES = ("half", "pessimistic")
AP_TIES = ("grouped", "pessimistic")
CALIBRATIONS = ("exact", "nissim")
METRICS = ("auc", "average precision")

_NEIGHBOURS = "one record replaced; the number of records is public"
# Noise of e^-32 smooth sensitivities is small enough, and no double underflows.
_LARGEST_EPSILON = 64.0
_RADIUS = 2**256
# Beyond this epsilon the noise is far below the grid of the results, and no double overflows.
_NOISELESS_EPSILON = 2.0**60
# More records than anybody has; doubles count up to here.
_MOST_RECORDS = 2**53
# Wider by a millionth: that covers the rounding of every double on the way to the noise.
_MARGIN = 1 + Fraction(1, 2**20)
_PROPOSALS = 16
# Points of the normal law and their weights, to average over it: into tails of 1e-18.
_NODES = np.linspace(-9, 9, 4001)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


class Estimate(NamedTuple):
    """A number between 0 and 1, and the interval that goes with it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRelease(Release):
    """A private AUC or AP: a `Release` with the public numbers from which its noise was made.

    Parameters
    ----------
    value, epsilon, delta, mechanism, neighbours
        As in `Release`.
    metric : {"auc", "average precision"}
        What was released.
    n : int
        The public number of records.
    guess : int
        The public guess of the size of the smaller class (AP: of the positives).
    beta : float
        The rate of the smooth sensitivity.
    multiplier : float
        The scale of the noise, in smooth sensitivities.
    """

    metric: str
    n: int
    guess: int
    beta: float
    multiplier: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionRelease:
    """A private confusion matrix, and the promise under which it was made.

    Parameters
    ----------
    value : tuple of two pairs of int
        Noisy counts ((true negatives, false positives), (false negatives, true positives)), as
        scikit-learn lays them out. They sum to the number of records, and some may be negative.
    epsilon, delta, mechanism, neighbours
        As in `Release`.
    """

    value: tuple[tuple[int, int], tuple[int, int]]
    epsilon: float
    delta: float = 0.0
    mechanism: str
    neighbours: str


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
    This is the Mann-Whitney statistic over n m. The pairs are counted in whole numbers by one sort
    of each class and one search, so the result is the double nearest to the true quotient.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> auc([0, 1], [0.5, 0.5]), auc([0, 1], [0.5, 0.5], ties="pessimistic")
    (0.5, 0.0)
    """
    check_choice("ties", ties, AUC_TIES)
    positives, negatives = _split(labels, scores)
    if not (positives.size and negatives.size):
        raise ValueError("labels must hold both classes for an AUC")
    return float(_auc(positives, negatives, ties))


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
    positives, negatives = _split(labels, scores)
    if not positives.size:
        raise ValueError("labels must hold a positive for an average precision")
    return float(_average_precision(positives, negatives, ties))


def _auc(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the exact AUC; without one of the classes, 1/2."""
    pairs = positives.size * negatives.size
    if pairs == 0:
        return Fraction(1, 2)
    below = np.searchsorted(negatives, positives)
    halves = 2 * int(below.sum())
    if ties == "half":
        tied = negatives[np.minimum(below, negatives.size - 1)] == positives
        upto = np.searchsorted(negatives, positives[tied], side="right")
        halves += int(upto.sum()) - int(below[tied].sum())
    return Fraction(halves, 2 * pairs)


def _average_precision(positives: NDArray, negatives: NDArray, ties: str) -> Fraction:
    """Return the average precision, as a double makes it; without a positive, 0."""
    if positives.size == 0:
        return Fraction(0)
    found = np.arange(positives.size, 0, -1)
    if ties == "grouped":
        found = positives.size - np.searchsorted(positives, positives)
    false = negatives.size - np.searchsorted(negatives, positives)
    return Fraction(float(np.mean(found / (found + false))))


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

    Raises
    ------
    ValueError, TypeError
        If a size is negative or not a whole number.

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
    return _auc_bound(min(_check_size("positives", positives), _check_size("negatives", negatives)))


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

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

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
    smaller = min(_check_size("positives", positives), _check_size("negatives", negatives))
    return _smooth("auc", smaller, beta)


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

    Raises
    ------
    ValueError, TypeError
        If a size is negative or not a whole number.

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
    n = _check_size("positives", positives)
    if negatives is None or n < 2:
        _check_size("negatives", 0 if negatives is None else negatives)
        return _ap_bound(n)
    m = _check_size("negatives", negatives)
    meet = min(n - 1, m)
    fall = m / (n + m) + _odd_sum(meet) / 2 + m * (1 / (meet + 1 + m) - 1 / (n + m))
    return max((_harmonic(n) - 1) / (n - 1), fall / n)


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

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

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
    return _smooth("average precision", _check_size("positives", positives), beta)


def _auc_bound(smaller: int) -> float:
    return 1 / max(smaller, 1)


def _ap_bound(n: int) -> float:
    """Return L(n)."""
    if n < 2:
        return 1.0
    return max((_harmonic(n) - 1) / (n - 1), (1 + _odd_sum(n - 1) / 2) / n)


_BOUNDS: dict[str, Callable[[int], float]] = dict(
    zip(METRICS, (_auc_bound, _ap_bound), strict=True)
)


def _smooth(metric: str, size: int, beta: float) -> float:
    """Return the smooth sensitivity for a class of so many records."""
    return max(_BOUNDS[metric](size), math.exp(-beta * max(size - 1, 0)))


def _harmonic(n: int) -> float:
    """Return 1 + 1/2 + ... + 1/n."""
    return float(special.digamma(n + 1)) + np.euler_gamma


def _odd_sum(n: int) -> float:
    """Return 1/3 + 1/5 + ... + 1/(2n + 1)."""
    return float(special.digamma(n + 1.5) - special.digamma(1.5)) / 2


def cauchy_scale(epsilon: float, beta: float, *, calibration: str = "exact") -> float:
    """Return the factor c by which Cauchy noise must exceed the smooth sensitivity.

    Parameters
    ----------
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    beta : float
        The rate of the smooth sensitivity; positive, below epsilon ("exact") or at most epsilon / 6
        ("nissim").
    calibration : {"exact", "nissim"}
        "exact" is the smallest factor that is epsilon-private for every beta-smooth sensitivity.
        "nissim" is 6 / epsilon, the one of the source.

    Returns
    -------
    float
        The scale of the noise, in smooth sensitivities.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The log-ratio of two Cauchy densities with centres a, b and scales s, t is at most
    arccosh(1 + ((a - b)^2 + (s - t)^2) / (2 s t)), a distance in the hyperbolic plane, and reaches
    it. With centres at most the smaller sensitivity apart, and scales within a factor e^beta, the
    worst factor is 1 or e^beta, and this is epsilon for

        c = max(1 / (2 sinh(epsilon / 2)), sqrt(e^-beta / (2 (cosh(epsilon) - cosh(beta))))).

    An epsilon above 64 gets what 64 gets. "nissim" is theorem 2 of the source, after Nissim,
    Raskhodnikova and Smith (2007); at epsilon 1 it has a real epsilon of 0.22614.

    Examples
    --------
    >>> round(cauchy_scale(1.0, 0.1), 4), cauchy_scale(1.0, 0.1, calibration="nissim")
    (0.9595, 6.0)
    """
    epsilon, beta = _check_epsilon(epsilon), check_epsilon(beta, "beta")
    check_choice("calibration", calibration, CALIBRATIONS)
    if calibration == "nissim":
        if beta > epsilon / 6:
            raise ValueError(f"beta must be at most epsilon / 6 = {epsilon / 6}, got {beta}")
        return 6 / min(epsilon, _NOISELESS_EPSILON)
    if beta >= epsilon:
        raise ValueError(f"beta must be below epsilon = {epsilon}, got {beta}")
    if epsilon > _LARGEST_EPSILON:
        epsilon, beta = _LARGEST_EPSILON, beta / epsilon * _LARGEST_EPSILON
    # Products of sinh for differences of cosh: nothing cancels and nothing overflows.
    shifted = math.exp(-epsilon / 2) / -math.expm1(-epsilon)
    spread = math.expm1(-epsilon - beta) * math.expm1(beta - epsilon)
    return max(shifted, math.exp(-(epsilon + beta) / 2) / math.sqrt(spread))


def cauchy_epsilon(value: float, scale: float, other_value: float, other_scale: float) -> float:
    """Return the exact epsilon between two values with Cauchy noise.

    Parameters
    ----------
    value, scale : float
        What a data set has without noise, and the scale of its noise, positive and finite.
    other_value, other_scale : float
        The same of its neighbour.

    Returns
    -------
    float
        The largest log-ratio of the two densities, in nats.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range or of the wrong kind.

    Notes
    -----
    Of centres a, b and scales s, t it is arccosh(1 + ((a - b)^2 + (s - t)^2) / (2 s t)), computed
    as 2 arsinh of half the distance over sqrt(s t).

    Examples
    --------
    >>> round(cauchy_epsilon(0.0, 1.0, 1.0, 1.0), 6) == round(math.acosh(1.5), 6)
    True
    """
    finite = "a finite number"
    value = check_real("value", value, allowed=finite)
    other_value = check_real("other_value", other_value, allowed=finite)
    scale = check_epsilon(scale, "scale")
    other_scale = check_epsilon(other_scale, "other_scale")
    apart = math.hypot(value - other_value, scale - other_scale)
    return 2 * math.asinh(apart / 2 / math.sqrt(scale) / math.sqrt(other_scale))


def best_beta(epsilon: float, guess: int, *, metric: str = "auc") -> float:
    """Return the beta at which exact Cauchy noise is smallest, for a public guess.

    Parameters
    ----------
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    guess : int
        How many records the smaller class may have (for average precision: how many positives), at
        least 1. It must be public: a guess that looks at the data gives them away.
    metric : {"auc", "average precision"}
        Whose smooth sensitivity is meant.

    Returns
    -------
    float
        The minimiser of ``cauchy_scale(epsilon, beta)`` times the smooth sensitivity; of several,
        the largest up to ln 2.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The factor c is constant up to beta = ln(2 cosh(epsilon) - 1), and convex in beta from there on.
    With r = 2 guess - 1 the noise exp(-beta (guess - 1)) c is smallest where
    sinh(beta) = r (cosh(epsilon) - cosh(beta)), a quadratic equation for e^beta; and it pays to
    raise beta only until the smooth sensitivity has come down to the bound L(guess). From ln 2 on
    that is so for every size, so a larger beta is never needed.

    Examples
    --------
    >>> round(best_beta(0.1, 100), 6)
    0.046517
    """
    epsilon = _check_epsilon(epsilon)
    guess = check_integer("guess", guess, low=1, high=_MOST_RECORDS)
    check_choice("metric", metric, METRICS)
    # From 1 on the flat part alone reaches ln 2.
    rise = 2 * math.sinh(min(epsilon, 1.0) / 2) ** 2
    flat = math.log1p(2 * rise)
    tilt = rise * (2 * guess - 1)
    root = math.sqrt(1 + tilt * (tilt + 2 * (2 * guess - 1)))
    growth = (tilt - 1 + root) / (2 * guess) if tilt > 1 else 2 * tilt / (1 - tilt + root)
    enough = -math.log(_BOUNDS[metric](guess)) / max(guess - 1, 1)
    return min(max(flat, min(math.log1p(growth), enough)), math.log(2))


def release_auc(
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    delta: float = 0.0,
    calibration: str = "exact",
    ties: str = "half",
    guess: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> MetricRelease:
    """Release the area under the ROC curve with noise that hides any one record.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive. They may depend on each record and on public things, such
        as a model that was trained elsewhere, and not on the records together. The type of an array
        is public.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    delta : float
        With 0 the noise is Cauchy's; above 0 it is Laplace's, and the loss may be larger with this
        probability.
    calibration : {"exact", "nissim"}
        How Cauchy noise is scaled: see `cauchy_scale`.
    ties : {"half", "pessimistic"}
        As in `auc`.
    guess : int, optional
        A *public* guess of the size of the smaller class, by default a quarter of n. A wrong one
        costs accuracy and never privacy. It decides beta in the exact calibration. Below an epsilon
        of about 1 a rare class needs it: with 109 positives among 3,000 at epsilon 0.1, the noise
        is 33 times smaller with a guess of 90 than with the default.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    MetricRelease
        Its value is the noisy AUC, clipped to [0, 1]. Everything else in it is public.

    Raises
    ------
    ValueError
        If the two are not of one length, a record is not valid by itself, or a parameter is out of
        range. Never for what the records are together: without one of the classes the AUC before
        noise is 1/2.
    TypeError
        If labels are neither integers nor booleans, scores are not real numbers, or a parameter is
        of the wrong kind.

    Notes
    -----
    Floating-point noise gives its secret away in the last digits (Mironov, 2012). Here the AUC is
    a fraction, and the Cauchy variable is the slope of a random point of a half disc of whole
    numbers, of 256 bits each. Their sum is rounded to a public grid of at most a millionth of the
    smallest noise (never finer than 2^-52, nor coarser than 2^-20) and only then made a float. So
    each released number has its stated probability to more than 15 digits. The logarithm in Laplace
    noise has 60 digits. What remains is what a pseudorandom generator leaves, and time: a call may
    take longer on some data than on others.

    Laplace noise has the scale 2 S / epsilon, and beta = log(1 + epsilon / (2 max(1, l))) with
    l = log(2 / delta), which is private for every epsilon. The beta of the source's theorem 2,
    epsilon / (2 l), is not: at epsilon 15 and delta 1e-9 its real delta is 1.09e-9.

    Examples
    --------
    >>> scores = np.arange(1000)
    >>> released = release_auc(scores % 10 > 4, scores, epsilon=1.0, rng=0)
    >>> abs(float(released) - auc(scores % 10 > 4, scores)) < 0.05
    True
    """
    check_choice("ties", ties, AUC_TIES)
    return _release("auc", labels, scores, ties, epsilon, delta, calibration, guess, rng)


def release_average_precision(
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    delta: float = 0.0,
    calibration: str = "exact",
    ties: str = "grouped",
    guess: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> MetricRelease:
    """Release the average precision with noise that hides any one record.

    Parameters
    ----------
    labels, scores, epsilon, delta, calibration
        As in `release_auc`.
    ties : {"grouped", "pessimistic"}
        As in `average_precision`.
    guess : int, optional
        A *public* guess of the number of positives, by default a quarter of n.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    MetricRelease
        Its value is the noisy average precision, clipped to [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `release_auc` does. Without a positive the average precision before noise is 0.

    Notes
    -----
    As in `release_auc`, with the sensitivity of `ap_smooth_sensitivity`, which holds for either way
    of ties. The average precision is a double; the noise is wider by a millionth, which is more
    than its rounding could undo for up to 10^8 records.

    Examples
    --------
    >>> scores = np.arange(1000)
    >>> released = release_average_precision(scores % 10 > 4, scores, epsilon=1.0, rng=0)
    >>> released.metric, released.epsilon
    ('average precision', 1.0)
    """
    check_choice("ties", ties, AP_TIES)
    return _release(
        "average precision", labels, scores, ties, epsilon, delta, calibration, guess, rng
    )


def log_density(
    output: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    metric: str = "auc",
    delta: float = 0.0,
    calibration: str = "exact",
    ties: str | None = None,
    guess: int | None = None,
) -> NDArray[np.float64]:
    """Return the log-density of a release before it is rounded and clipped.

    Parameters
    ----------
    output : array_like of finite numbers
        Numbers that might be released, also outside [0, 1].
    labels, scores, epsilon
        As in `release_auc`.
    metric : {"auc", "average precision"}
        Which of the two releases.
    delta, calibration
        As in `release_auc`.
    ties : str, optional
        By default as in the release function of the metric.
    guess : int, optional
        As in the release function of the metric.

    Returns
    -------
    ndarray of the shape of `output`
        Natural logarithms of densities.

    Raises
    ------
    ValueError, TypeError
        As `release_auc` does.

    Notes
    -----
    Rounding and clipping do not look at the data, so two densities within e^epsilon are enough.

    Examples
    --------
    >>> outputs, scores = np.linspace(-1, 2, 7), [1, 2, 3, 4]
    >>> one = log_density(outputs, [0, 0, 1, 1], scores, epsilon=0.5)
    >>> other = log_density(outputs, [0, 0, 1, 0], scores, epsilon=0.5)
    >>> bool(np.abs(one - other).max() <= 0.5)
    True
    """
    output = _check_numbers("output", output).astype(float)
    check_choice("metric", metric, METRICS)
    allowed = AUC_TIES if metric == "auc" else AP_TIES
    ties = allowed[0] if ties is None else check_choice("ties", ties, allowed)
    positives, negatives = _split(labels, scores)
    plan = _plan(metric, positives.size + negatives.size, epsilon, delta, calibration, guess)
    value, scale = (float(part) for part in _centre_and_scale(plan, positives, negatives, ties))
    apart = np.abs(output - value) / scale
    if delta:
        return -apart - math.log(2 * scale)
    return -np.log1p(apart**2) - math.log(math.pi * scale)


@dataclass(frozen=True, slots=True)
class _Plan:
    """All that is decided before the records are looked at: it depends on public numbers only."""

    metric: str
    n: int
    guess: int
    beta: float
    multiplier: float
    mechanism: str

    @property
    def halvings(self) -> int:
        """How many halvings of 1 make the grid of the results."""
        least_scale = self.multiplier * _BOUNDS[self.metric](_largest_class(self.metric, self.n))
        return min(max(math.ceil(20 - math.log2(least_scale)), 20), 52)


def _largest_class(metric: str, n: int) -> int:
    """Return the largest size of the class that decides the noise, but 1 if that is 0."""
    return max(n // 2 if metric == "auc" else n, 1)


def _plan(
    metric: str, n: int, epsilon: float, delta: float, calibration: str, guess: int | None
) -> _Plan:
    """Choose beta and the scale of the noise from public numbers."""
    epsilon = _check_epsilon(epsilon)
    delta = check_real(
        "delta", delta, low=0.0, high=1.0, high_open=True, allowed="a number in [0, 1)"
    )
    check_choice("calibration", calibration, CALIBRATIONS)
    most = _largest_class(metric, n)
    guess = max(n // 4, 1) if guess is None else check_integer("guess", guess, low=1, high=most)
    if delta:
        beta = math.log1p(epsilon / 2 / max(1.0, math.log(2) - math.log(delta)))
        noise, multiplier = "Laplace", 2 / min(epsilon, _NOISELESS_EPSILON)
    else:
        beta = epsilon / 6 if calibration == "nissim" else best_beta(epsilon, guess, metric=metric)
        noise, multiplier = "Cauchy", cauchy_scale(epsilon, beta, calibration=calibration)
    mechanism = f"{noise} noise of {multiplier:.6g} smooth sensitivities, beta {beta:.6g}"
    return _Plan(metric, n, guess, beta, multiplier, mechanism)


def _centre_and_scale(
    plan: _Plan, positives: NDArray, negatives: NDArray, ties: str
) -> tuple[Fraction, Fraction]:
    """Return the metric without noise and the scale of its noise: the secrets of a release."""
    if plan.metric == "auc":
        value, size = _auc(positives, negatives, ties), min(positives.size, negatives.size)
    else:
        value, size = _average_precision(positives, negatives, ties), positives.size
    scale = Fraction(plan.multiplier) * Fraction(_smooth(plan.metric, size, plan.beta)) * _MARGIN
    return value, scale


def _release(
    metric: str,
    labels: ArrayLike,
    scores: ArrayLike,
    ties: str,
    epsilon: float,
    delta: float,
    calibration: str,
    guess: int | None,
    rng: np.random.Generator | int | None,
) -> MetricRelease:
    """Add noise to a metric, round the sum to the public grid and clip it."""
    positives, negatives = _split(labels, scores)
    plan = _plan(metric, positives.size + negatives.size, epsilon, delta, calibration, guess)
    value, scale = _centre_and_scale(plan, positives, negatives, ties)
    rng = np.random.default_rng(rng)
    noise = _laplace(rng) if delta else _cauchy(rng)
    steps = 2**plan.halvings
    return MetricRelease(
        min(max(round((value + scale * noise) * steps), 0), steps) / steps,
        epsilon,
        delta=delta,
        mechanism=plan.mechanism,
        neighbours=_NEIGHBOURS,
        metric=metric,
        n=plan.n,
        guess=plan.guess,
        beta=plan.beta,
        multiplier=plan.multiplier,
    )


def _cauchy(rng: np.random.Generator) -> Fraction:
    """Draw a standard Cauchy variable: the slope of a random point of a half disc."""
    while True:
        # Odd numbers, so that the points are the middles of cells and none lies on an axis.
        x, y = (2 * _whole_number(rng) + 1 for _ in range(2))
        if x * x + y * y < (2 * _RADIUS) ** 2:
            return _either_sign(Fraction(x, y), rng)


def _laplace(rng: np.random.Generator) -> Fraction:
    """Draw a standard Laplace variable, from a logarithm with 60 digits."""
    # A number below 2^128 has few digits left: a fresh one, 2^128 times smaller, takes its place.
    # So the noise has no largest value, and keeps to its law however small delta is.
    below, drawn = 2 * _RADIUS, _whole_number(rng)
    while drawn < 2**128:
        below, drawn = below * 2**128, _whole_number(rng)
    with localcontext(Context(prec=60)):
        size = -(Decimal(2 * drawn + 1) / below).ln()
    return _either_sign(Fraction(size), rng)


def _whole_number(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(32), "little")


def _either_sign(size: Fraction, rng: np.random.Generator) -> Fraction:
    return -size if rng.bytes(1)[0] % 2 else size


def metric_interval(release: MetricRelease, *, at_least: int, confidence: float = 0.95) -> Estimate:
    """Return an interval for the metric of the population that the test records come from.

    Parameters
    ----------
    release : MetricRelease
        From `release_auc` or `release_average_precision`.
    at_least : int
        The fewest records that the smaller class (for average precision: the positives) can have.
        It must be public: a plan of the study or a noisy count will do. If there are fewer, the
        interval is too narrow. The guess of the release is no such bound.
    confidence : float
        How often such intervals hold the truth, strictly between 0 and 1.

    Returns
    -------
    Estimate
        The released value, and the ends of the interval within [0, 1].

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The true class sizes are secret, so the width depends on `at_least` alone. An end t of the
    interval is where the released value becomes a surprise: noise of the release at `at_least`
    records, on top of a normal variable of mean t and variance t (1 - t) / `at_least`, is that far
    off with probability (1 - confidence) / 2. No law of scores gives an AUC a larger variance (van
    Dantzig, 1951; Birnbaum and Klose, 1957), so the interval is wide for most. For average
    precision it is the approximation of Boyd, Eng and Page (2013). With little noise and fewer than
    some three records out of order, `at_least` (1 - t) < 3, the normal law is too kind: 90 % may
    then be 82 %.

    Examples
    --------
    >>> scores = np.arange(1000)
    >>> released = release_auc(scores % 10 > 4, scores, epsilon=1.0, rng=0)
    >>> estimate = metric_interval(released, at_least=400)
    >>> estimate.low < estimate.value < estimate.high
    True
    """
    if not isinstance(release, MetricRelease):
        raise TypeError(f"release must be a MetricRelease, got {type(release).__name__}")
    tail = (1 - check_probability("confidence", confidence)) / 2
    most = _largest_class(release.metric, release.n)
    size = check_integer("at_least", at_least, low=1, high=most)
    released = check_real(
        "release.value", release.value, low=0.0, high=1.0, allowed="a number in [0, 1]"
    )
    scale = release.multiplier * _smooth(release.metric, size, release.beta)
    tail_of_noise = _laplace_tail if release.delta else _cauchy_tail

    def lower_end(value: float) -> float:
        def surprise(truth: float) -> float:
            sampled = truth + math.sqrt(truth * (1 - truth) / size) * _NODES
            return float(tail_of_noise((value - sampled) / scale) @ _WEIGHTS) - tail

        return 0.0 if surprise(0.0) >= 0 else float(optimize.brentq(surprise, 0.0, value))

    return Estimate(released, lower_end(released), 1 - lower_end(1 - released))


def _cauchy_tail(x: NDArray) -> NDArray:
    """Return the probability that a standard Cauchy variable is above x."""
    return np.arctan2(1.0, x) / np.pi


def _laplace_tail(x: NDArray) -> NDArray:
    """Return the probability that a standard Laplace variable is above x."""
    half = np.exp(-np.abs(x)) / 2
    return np.where(x > 0, half, 1 - half)


def release_confusion_matrix(
    labels: ArrayLike,
    predictions: ArrayLike,
    epsilon: float,
    *,
    rng: np.random.Generator | int | None = None,
) -> ConfusionRelease:
    """Release the confusion matrix with noise that hides any one record.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    predictions : array_like of int in {0, 1} or of bool, shape (n,)
        The predicted classes. A threshold that makes them of scores must be public.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    ConfusionRelease
        Noisy counts in scikit-learn's layout, which sum to n.

    Raises
    ------
    ValueError
        If the two are not of one length, a record is neither 0 nor 1, or epsilon is out of range.
    TypeError
        If they are neither integers nor booleans, or epsilon is not a number.

    Notes
    -----
    One record replaced moves one unit from a cell to another, so whole counts M that sum to n come
    with probability proportional to ``exp(-epsilon |M - C|_1 / 2)``: exactly epsilon-private,
    since the sum of these weights is the same for all C. Three cells get discrete Laplace noise of
    scale 2 / epsilon and the fourth what is missing, kept with the probability that its size
    deserves. The coins are exact for odds that are rounded to doubles: half of epsilon is lowered
    by 1e-12, which is more than the rounding costs.

    Examples
    --------
    >>> (tn, fp), (fn, tp) = release_confusion_matrix([0, 1, 1], [0, 1, 0], 1.0, rng=0).value
    >>> tn + fp + fn + tp
    3
    """
    epsilon = _check_epsilon(epsilon)
    labels = _check_classes("labels", labels)
    predictions = _check_classes("predictions", predictions)
    _check_lengths("predictions", predictions, "labels", labels)
    counts = np.bincount(2 * labels.astype(np.int8) + predictions.astype(np.int8), minlength=4)
    tn, fp, fn, tp = (
        counts + _balanced_noise(epsilon / 2 - 1e-12, np.random.default_rng(rng))
    ).tolist()
    return ConfusionRelease(
        value=((tn, fp), (fn, tp)),
        epsilon=epsilon,
        mechanism="discrete Laplace noise on four counts whose sum is kept",
        neighbours=_NEIGHBOURS,
    )


def _balanced_noise(rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw four whole numbers z of sum 0 with probability proportional to exp(-rate |z|_1)."""
    while True:
        three = discrete_laplace(3 * _PROPOSALS, 1 / rate, rng).reshape(-1, 3)
        last = -three.sum(axis=1)
        chances = np.exp(-np.minimum(rate * np.abs(last), 700.0))
        kept = flip_each(np.minimum(chances, 1 - 2.0**-53), rng)
        if kept.any():
            first = int(kept.argmax())
            return np.append(three[first], last[first])


def confusion_metrics(
    release: ConfusionRelease, *, confidence: float = 0.95
) -> dict[str, Estimate]:
    """Return the usual metrics of a noisy confusion matrix, each with an interval.

    Parameters
    ----------
    release : ConfusionRelease
        From `release_confusion_matrix`. No more privacy is spent.
    confidence : float
        How often such intervals hold the truth, strictly between 0 and 1.

    Returns
    -------
    dict of str to Estimate
        "accuracy", "recall", "specificity", "precision" and "f1": estimates, and intervals for the
        population that the records come from.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The counts are first moved to the nearest ones that are not negative. A metric with nothing in
    its denominator is 0, as in scikit-learn. Each is a share k / (k + l) of two sums of cells; F1
    is 2 J / (1 + J) for the share J = tp / (tp + fp + fn). The interval holds the shares t for
    which k - t (k + l) is no surprise (Fieller, 1954), given the binomial variance of the sample
    and the variance of the noise; noise has heavier tails than a normal variable, for which the
    quantile is corrected (Cornish and Fisher, 1938).

    Examples
    --------
    >>> release = release_confusion_matrix([0, 1] * 500, [0, 1, 1, 1] * 250, 1.0, rng=0)
    >>> round(confusion_metrics(release)["accuracy"].value, 1)
    0.8
    """
    if not isinstance(release, ConfusionRelease):
        raise TypeError(f"release must be a ConfusionRelease, got {type(release).__name__}")
    tail = (1 - check_probability("confidence", confidence)) / 2
    cells = np.ravel(release.value)
    counts = project_to_simplex(cells, cells.sum())
    found = {
        name: _share(counts, np.array(hits), np.array(misses), release.epsilon, tail)
        for name, (hits, misses) in _SHARES.items()
    }
    found["f1"] = Estimate(*(2 * share / (1 + share) for share in found["f1"]))
    return found


# Which of tn, fp, fn, tp are hits, and which misses.
_SHARES = {
    "accuracy": ([1, 0, 0, 1], [0, 1, 1, 0]),
    "recall": ([0, 0, 0, 1], [0, 0, 1, 0]),
    "specificity": ([1, 0, 0, 0], [0, 1, 0, 0]),
    "precision": ([0, 0, 0, 1], [0, 1, 0, 0]),
    "f1": ([0, 0, 0, 1], [0, 1, 1, 0]),
}


def _share(
    counts: NDArray, hits: NDArray, misses: NDArray, epsilon: float, tail: float
) -> Estimate:
    """Return hits / (hits + misses) with the interval of all shares that fit."""
    k, total = float(counts @ hits), float(counts @ (hits + misses))
    share = k / total if total else 0.0
    # hits - share (hits + misses) sees this much noise: a quadratic in the share.
    noise = _noise_form(hits, hits, epsilon)
    slope = _noise_form(hits, hits + misses, epsilon)
    curve = _noise_form(hits + misses, hits + misses, epsilon)
    noisy = noise - 2 * share * slope + share**2 * curve
    heavy = 1.9 * (noisy / (noisy + total * share * (1 - share) or 1.0)) ** 2
    z = -float(special.ndtri(tail))
    z = max(z, z + heavy * (z**3 - 3 * z) / 24) ** 2
    a, b = total**2 + z * (total - curve), -2 * k * total - z * (total - 2 * slope)
    c = k**2 - z * noise
    if a <= 0:
        return Estimate(share, 0.0, 1.0)
    reach = math.sqrt(max(b * b - 4 * a * c, 0.0))
    low, high = (-b - reach) / (2 * a), (-b + reach) / (2 * a)
    return Estimate(share, max(0.0, min(low, share)), min(1.0, max(high, share)))


def _noise_form(one: NDArray, other: NDArray, epsilon: float) -> float:
    """Return the covariance of the noise in two sums of cells, 4.2 / epsilon^2 for a single one."""
    return 5.6 / min(epsilon, 1e100) ** 2 * float(one @ other - one.sum() * other.sum() / 4)


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

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or of the wrong kind.

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
    rate = _check_numbers("false_positive_rate", false_positive_rate).astype(float)
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

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or of the wrong kind.

    Notes
    -----
    The attack of the source, section 3.1: put the record at every rank, with either label, and
    look which AUC comes nearest. Of several that are equally near (within 1e-12) the label that
    occurs more often wins, and 0 in a draw. Ranks are the gaps between different known scores.

    Examples
    --------
    >>> labels, scores = [0, 0, 1, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.6]
    >>> reidentify_label(labels[:-1], scores[:-1], auc(labels, scores))
    0
    """
    positives, negatives = _split(known_labels, known_scores, "known_labels", "known_scores")
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
    pairs = float(_auc(positives, negatives, "half") * n * m)
    gaps = np.unique(np.concatenate([positives, negatives]))
    above = n - np.searchsorted(positives, gaps, side="right")
    below = np.searchsorted(negatives, gaps, side="right")
    negative = (pairs + np.append(n, above)) / (n * (m + 1)) if n else np.empty(0)
    positive = (pairs + np.append(0, below)) / ((n + 1) * m) if m else np.empty(0)
    return [negative, positive]


def _check_epsilon(epsilon: float) -> float:
    return check_real("epsilon", epsilon, low=1e-9, allowed="a finite number of at least 1e-9")


def _check_size(name: str, value: int) -> int:
    return check_integer(name, value, low=0, high=_MOST_RECORDS)


def _check_classes(name: str, values: ArrayLike) -> NDArray:
    """Return classes as a 1-D array of booleans, or of the numbers 0 and 1."""
    array = check_categories(name, values, 2)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array


def _check_numbers(name: str, values: ArrayLike) -> NDArray:
    """Return finite real numbers, in the type that they came in."""
    array = as_array(name, values)
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


def _check_lengths(name: str, values: NDArray, labels_name: str, labels: NDArray) -> None:
    if values.shape != labels.shape:
        raise ValueError(
            f"{name} must have the shape of {labels_name}, {labels.shape}, got {values.shape}"
        )


def _split(
    labels: ArrayLike, scores: ArrayLike, labels_name: str = "labels", scores_name: str = "scores"
) -> tuple[NDArray, NDArray]:
    """Return the sorted scores of the positive records, and those of the negative ones."""
    labels = _check_classes(labels_name, labels)
    scores = _check_numbers(scores_name, scores)
    _check_lengths(scores_name, scores, labels_name, labels)
    positive = labels.astype(bool)
    parts = scores[positive], scores[~positive]
    for part in parts:
        part.sort()
    return parts
