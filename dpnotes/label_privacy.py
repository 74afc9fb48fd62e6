"""Label privacy: release a column of labels, each of which may be false.

The features are public and the labels are private: neighbours differ in one label. `privatize` is
randomized response on two classes, and `epsilon` is its cost. Training a model on private labels
costs nothing more, because it is post-processing; `symmetric_loss` has the losses for it.

The exponential mechanism of McSherry and Talwar (2007) on the whole column, with the number of
kept labels as utility, is the same mechanism at half of its stated epsilon. Bi and Suppakitpaisarn
(2022) use it in this way. `exponential` draws from it. Wherever a function takes or returns a
`stated_epsilon`, the cost is half of that number.
"""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from dpnotes import exponential_mechanism, randomized_response
from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_counts,
    check_epsilon,
    check_integer,
    check_probability,
    check_rng,
    kind_of,
    shown,
)
from dpnotes._coins import lie_probability

# Doubles represent every integer up to this one.
_MOST_LABELS = 2**53
# Add the probabilities of up to this many counts directly, because the difference of two nearly
# equal tails would lose its digits.
_NARROW = 1 << 16


def output_distribution(epsilon: float) -> np.ndarray:
    """Return the exact distribution of one private label for each true one.

    Parameters
    ----------
    epsilon : float
        The privacy cost of each label, positive and finite.

    Returns
    -------
    ndarray of shape (2, 2)
        Row: the true class. Column: the reported one. Each row sums to 1.

    Notes
    -----
    A label is kept with probability e^epsilon / (1 + e^epsilon) (Warner, 1965). No mechanism of
    this cost keeps more labels, averaged over all columns; the chapter on label privacy proves it.

    Examples
    --------
    >>> output_distribution(np.log(3)).round(12)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return randomized_response.output_distribution(epsilon)


def privatize(
    labels: ArrayLike,
    epsilon: float,
    *,
    classes: Sequence = (-1, 1),
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Draw private labels at a cost of epsilon each.

    Parameters
    ----------
    labels : array_like of shape (n,)
        The true labels, each equal to one of the classes and of their kind.
    epsilon : float
        The privacy cost of each label, positive and finite.
    classes : sequence of two labels
        The two values of a label, which are public: two different numbers, booleans or strings,
        such as (0, 1), (False, True) or ("well", "ill").
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (n,)
        Private labels. Of the type of `labels` where that is an array of numbers, otherwise of the
        type of `classes`.

    Notes
    -----
    Each label is kept with probability e^epsilon / (1 + e^epsilon), decided by its own exact coin
    (Warner, 1965). A list is read one record at a time, so whether a label is valid and the type
    of the result never depend on several labels together.

    Examples
    --------
    >>> privatize([1, -1, 1, 1], epsilon=1.0, rng=0).shape
    (4,)
    >>> set(privatize(["ill", "well"] * 50, 1.0, classes=("well", "ill"), rng=0).tolist()) == {
    ...     "well", "ill"}
    True
    """
    classes = _check_classes(classes)
    is_second, values = _check_labels("labels", labels, classes)
    return values[randomized_response.privatize(is_second, epsilon, rng=rng).view(np.int8)]


def estimate(reports: ArrayLike, epsilon: float, *, classes: Sequence = (-1, 1)) -> np.ndarray:
    """Estimate how many true labels each class has, without bias.

    Parameters
    ----------
    reports : array_like of shape (n,)
        Private labels, as `privatize` draws them.
    epsilon : float
        The privacy cost of each label when the reports were drawn.
    classes : sequence of two labels
        The two values of a label, as in `privatize`.

    Returns
    -------
    ndarray of shape (2,)
        Estimated counts, in labels, in the order of `classes`. They sum to n; one may be negative.

    Notes
    -----
    The estimate of `randomized_response.estimate` for two categories. For labels drawn by
    `exponential`, epsilon is half of the stated one.

    Examples
    --------
    >>> estimate([1, 1, 1, -1], np.log(3)).round(9)
    array([0., 4.])
    """
    is_second, _ = _check_labels("reports", reports, _check_classes(classes))
    return randomized_response.estimate(is_second, epsilon)


def variance(counts: ArrayLike, epsilon: float) -> np.ndarray:
    """Return the exact variance of `estimate`, class by class.

    Parameters
    ----------
    counts : array_like of shape (2,)
        The true number of labels of each class.
    epsilon : float
        The privacy cost of each label.

    Returns
    -------
    ndarray of shape (2,)
        Variances, in labels squared; the same for both classes.

    Notes
    -----
    With p the probability of keeping a label, n p (1 - p) / (2 p - 1)^2.

    Examples
    --------
    >>> variance([60, 40], np.log(3)).round(9)
    array([75., 75.])
    """
    counts = check_counts("counts", counts)
    if counts.size != 2:
        raise ValueError(f"counts must be two, one a class, got {counts.size}")
    return randomized_response.variance(counts, epsilon)


def exponential(
    labels: ArrayLike,
    stated_epsilon: float,
    *,
    method: str = "independent",
    classes: Sequence = (-1, 1),
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Draw private labels by the exponential mechanism; the cost is half of its stated epsilon.

    Parameters
    ----------
    labels : array_like of shape (n,)
        The true labels, each equal to one of the classes and of their kind.
    stated_epsilon : float
        The mechanism's own parameter, positive and finite. The privacy cost is half of it.
    method : {"independent", "two-step"}
        "independent" flips an exact coin for each label. "two-step" is the algorithm of Bi and
        Suppakitpaisarn (2022): draw how many labels are kept, then which ones. Both have the same
        distribution.
    classes : sequence of two labels
        The two values of a label, as in `privatize`.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (n,)
        Private labels, of the same type as those of `privatize`.

    Notes
    -----
    The utility of an output is the number of labels that it keeps, and has sensitivity 1. Its
    exponential is a product over the labels, so each is kept independently with probability
    e^(stated_epsilon / 2) / (1 + e^(stated_epsilon / 2)): this is `privatize` at half of the
    stated epsilon.

    The coins have exactly this distribution. The two-step algorithm draws the number of kept labels
    from probabilities that are doubles: they are right to ten digits, and one that should be below
    e^-700 is e^-700.

    Examples
    --------
    >>> exponential([1, -1, 1, 1], stated_epsilon=2.0, rng=0).shape
    (4,)
    """
    cost = check_epsilon(stated_epsilon, "stated_epsilon") / 2
    try:
        lie_probability(cost)
    except ValueError:
        raise ValueError(
            "stated_epsilon must be large enough for a double to tell a kept label from a flipped "
            f"one, got {stated_epsilon}"
        ) from None
    check_choice("method", method, ("independent", "two-step"))
    if method == "independent":
        return privatize(labels, cost, classes=classes, rng=rng)
    is_second, values = _check_labels("labels", labels, _check_classes(classes))
    rng = check_rng(rng)
    log_weights = np.maximum(log_score_pmf(is_second.size, stated_epsilon), -1e300)
    score = exponential_mechanism.sample(log_weights, 2.0, rng=rng)
    flipped = rng.permutation(is_second.size) >= score
    return values[(is_second ^ flipped).view(np.int8)]


def log_score_pmf(n: int, stated_epsilon: float) -> np.ndarray:
    """Return the log-probability that i of n labels are kept, for every i.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 2**27.
    stated_epsilon : float
        The parameter of the exponential mechanism; the privacy cost is half of it.

    Returns
    -------
    ndarray of shape (n + 1,)
        Natural logarithms; the probabilities sum to 1.

    Notes
    -----
    The recursion of Bi and Suppakitpaisarn (2022), log P(i) = log P(i - 1) + log(n - i + 1)
    - log(i) + stated_epsilon / 2, is summed from the most likely score outwards, and normalised at
    the end. All terms of each sum then have the same sign, so nothing cancels.

    Examples
    --------
    >>> np.exp(log_score_pmf(2, 2 * np.log(3))).round(12)
    array([0.0625, 0.375 , 0.5625])
    """
    n = check_integer("n", n, low=1, high=2**27)
    half = check_epsilon(stated_epsilon, "stated_epsilon") / 2
    scores = np.arange(1, n + 1, dtype=float)
    steps = np.log((n - scores + 1) / scores) + half
    mode = int(np.count_nonzero(steps > 0))
    log_pmf = np.zeros(n + 1)
    np.cumsum(steps[mode:], out=log_pmf[mode + 1 :])
    # At an epsilon such as 1e300 the sum overflows, and minus infinity is the right logarithm.
    with np.errstate(over="ignore"):
        log_pmf[:mode] = -np.cumsum(steps[:mode][::-1])[::-1]
    others = np.exp(log_pmf[:mode]).sum() + np.exp(log_pmf[mode + 1 :]).sum()
    return log_pmf - math.log1p(others)


def truncated_binomial(n: int, low: int, high: int, p: float) -> float:
    """Return the probability that a binomial count lies between two scores, both included.

    Parameters
    ----------
    n : int
        The number of trials, from 1 to 2**53.
    low, high : int
        The smallest and the largest count, with 0 <= low <= high <= n.
    p : float
        The probability of success, strictly between 0 and 1.

    Returns
    -------
    float
        S(n, low, high), the sum in Definition 5 of Bi and Suppakitpaisarn (2022). Where it is above
        1e-280, its relative error is below 1e-11 for up to a million trials, 1e-9 for up to 10**9
        and 1e-6 for up to 2**53.

    Notes
    -----
    The probability is the difference of two tails of `scipy.stats.binom`, those on the side of the
    mean where the range lies. For up to 65,536 counts it is a direct sum.

    Examples
    --------
    >>> round(truncated_binomial(10, 5, 10, 0.5), 12)
    0.623046875
    """
    n = check_integer("n", n, low=1, high=_MOST_LABELS)
    high = check_integer("high", high, low=0, high=n)
    low = check_integer("low", low, low=0, high=high)
    p = check_probability("p", p)
    if high - low < _NARROW:
        return min(1.0, float(stats.binom.pmf(np.arange(low, high + 1), n, p).sum()))
    below, at_least_low = _binomial_tails(n, low - 1, p)
    at_most_high, above = _binomial_tails(n, high, p)
    return at_least_low - above if low > n * p else at_most_high - below


def success_probability(n: int, stated_epsilon: float) -> float:
    """Return the probability that at least half of n labels are kept.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 2**53.
    stated_epsilon : float
        The parameter of the exponential mechanism; the privacy cost is half of it.

    Returns
    -------
    float
        Pr[s >= n / 2]. For even n a tie counts as success, so this is not monotone in n.

    Notes
    -----
    The number of flipped labels is binomial. Rounding the probability of a flip to a double moves
    the result by up to 1e-8 for 10**15 labels.

    Examples
    --------
    >>> round(success_probability(1000, 0.1), 4)
    0.7946
    """
    n = check_integer("n", n, low=1, high=_MOST_LABELS)
    stated_epsilon = check_epsilon(stated_epsilon, "stated_epsilon")
    return _binomial_tails(n, n // 2, float(special.expit(-stated_epsilon / 2)))[0]


def minimum_epsilon(n: int, failure: float, *, bound: str = "exact") -> float:
    """Return the stated epsilon at which at least half of n labels are kept; the cost is half.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 2**53.
    failure : float
        The acceptable probability of keeping fewer, strictly between 0 and 1.
    bound : {"exact", "chernoff", "hoeffding", "normal"}
        "exact" is the smallest such epsilon. Chernoff's and Hoeffding's are sufficient, and keep
        *more* than half; the normal one is an approximation.

    Returns
    -------
    float
        The parameter of the exponential mechanism, to be given to `exponential` or to
        `success_probability`. The privacy cost, to be given to `privatize`, is half of it. It is 0
        if a fair coin for every label is enough.

    Raises
    ------
    ValueError
        If a parameter is out of range, or Hoeffding's bound needs more labels.

    Notes
    -----
    With z the quantile of the normal distribution and b the failure: 4 arccosh(b^(-1/n))
    (Chernoff), 4 artanh(sqrt(2 ln(1/b) / n)) (Hoeffding) and 4 z / sqrt(n) (normal). The exact
    value is a root of the exact probability, searched for between 0 and Chernoff's.

    Examples
    --------
    >>> round(minimum_epsilon(1000, 0.01), 6)
    0.290316
    """
    n = check_integer("n", n, low=1, high=_MOST_LABELS)
    failure = check_probability("failure", failure)
    check_choice("bound", bound, ("exact", "chernoff", "hoeffding", "normal"))
    excess = -math.log(failure) / n
    if bound == "chernoff":
        return _chernoff(excess)
    if bound == "hoeffding":
        if excess >= 0.5:
            raise ValueError(f"n must be above 2 ln(1 / failure) for Hoeffding's bound, got {n}")
        return 4 * math.atanh(math.sqrt(2 * excess))
    if bound == "normal":
        return max(0.0, -4 * float(special.ndtri(failure)) / math.sqrt(n))

    smallest = math.ulp(0.0)

    def shortfall(stated_epsilon: float) -> float:
        _, fails = _binomial_tails(n, n // 2, float(special.expit(-stated_epsilon / 2)))
        return math.log(max(fails, smallest)) - math.log(failure)

    # If a fair coin is exactly enough, rounding must not make the result positive.
    if shortfall(0.0) <= 1e-12:
        return 0.0
    return optimize.brentq(
        shortfall, 0.0, _chernoff(excess), xtol=smallest, rtol=1e-12, maxiter=5_000
    )


def _binomial_tails(n: int, count: int, p: float) -> tuple[float, float]:
    """Return Pr[Bin(n, p) <= count] and Pr[Bin(n, p) > count]."""
    if 2 * count + 1 == n:
        # Condition on the last trial, because scipy's incomplete beta function (from Boost) is
        # wrong in the fourth digit if its parameters are equal and large: from 10**12 trials on.
        tie = stats.binom.pmf(count, n - 1, p)
        at_most = stats.binom.cdf(count - 1, n - 1, p) + (1 - p) * tie
        above = stats.binom.sf(count, n - 1, p) + p * tie
    else:
        at_most, above = stats.binom.cdf(count, n, p), stats.binom.sf(count, n, p)
    return min(1.0, float(at_most)), min(1.0, float(above))


def _chernoff(excess: float) -> float:
    """Return 4 arccosh(exp(excess)), without overflow and without rounding exp(excess) to 1."""
    return 4 * (excess + math.log1p(math.sqrt(-math.expm1(-2 * excess))))


def _kinds(label: object) -> str:
    """Return the kinds of arrays that can hold a label like this; empty if it is not a label."""
    if isinstance(label, bool | np.bool_):
        return "b"
    if isinstance(label, str):
        return "UT"
    return "iuf" if isinstance(label, Real) else ""


def _check_classes(classes: Sequence) -> np.ndarray:
    """Return two different labels of one kind as an array of that kind."""
    if isinstance(classes, np.ndarray):
        classes = classes.tolist()
    if isinstance(classes, str | bytes) or not isinstance(classes, Sequence):
        raise TypeError(f"classes must be a pair such as (0, 1), got {type(classes).__name__}")
    pair = list(classes)
    kinds = {_kinds(label) for label in pair}
    if "" in kinds or len(kinds) > 1:
        raise TypeError("classes must be two numbers, two booleans or two strings")
    array = as_array("classes", pair)
    # numpy may round a large integer beside a float, which would make two labels equal.
    held = array.dtype.kind in "biufU" and array.tolist() == pair
    if not held or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(
            "classes must be two different labels that one type of array holds, got "
            f"{shown(classes)}"
        )
    return array


def _check_labels(
    name: str, labels: ArrayLike, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each label is of the second class, and the classes in the type of the reports.

    An array of numbers keeps its type. Anything else is read one record at a time, so neither a
    refusal nor the type depends on the mix of types among the records.
    """
    first, second = classes.tolist()
    allowed = (
        f"{name} must each be {first!r} or {second!r}, as `classes` says; name others by it, such "
        "as classes=(0, 1) or classes=(False, True)"
    )
    array = as_array(name, labels if hasattr(labels, "dtype") else _as_records(name, labels))
    kinds = _kinds(first)
    if array.dtype.kind not in kinds + "O":
        raise TypeError(f"{allowed}; got {kind_of(array)}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    if array.dtype.kind == "b":
        check_categories(name, array, 2)
    if array.dtype.kind in "biuf":
        with np.errstate(invalid="ignore", over="ignore"):
            values = classes.astype(array.dtype.newbyteorder("="))
        if not np.array_equal(values, classes):
            raise TypeError(f"{allowed}; got {kind_of(array)}, which cannot hold both")
        first, second = values
    else:
        values = classes
        of_kind = [label if _kinds(label) == kinds else None for label in array]
        array = np.array(of_kind, dtype=object)
    is_second = array == second
    if not np.all(is_second | (array == first)):
        raise ValueError(f"{allowed}; a record is neither")
    return is_second, values


def _as_records(name: str, labels: ArrayLike) -> np.ndarray:
    """Return the records as an array of objects, or refuse records that are arrays themselves."""
    try:
        return np.array(labels, dtype=object)
    except (ValueError, TypeError, RuntimeError):
        raise ValueError(f"{name} must be one-dimensional; a record is an array") from None
