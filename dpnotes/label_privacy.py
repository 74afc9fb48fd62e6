"""Label privacy: hand out a column of labels, each of which may be false.

The features of the records are public and the label of each is private: neighbours differ in one
label. `privatize` is randomized response on two classes, and `epsilon` is what it costs. A model
that is trained on private labels costs no more; `symmetric_loss` makes the most of them.

The exponential mechanism of McSherry and Talwar (2007) on the whole column, with the number of
kept labels as utility, is the same mechanism at half of the epsilon that it states. Bi and
Suppakitpaisarn (2022) use it so. `exponential` draws from it, and the functions below that take or
return a `stated_epsilon` speak of it: the cost is half of that number.
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpnotes import exponential_mechanism, randomized_response
from dpnotes._checks import (
    as_array,
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

METHODS = ("independent", "two-step")
BOUNDS = ("exact", "chernoff", "hoeffding", "normal")
_SMALLEST = 5e-324
# More terms of a sum than this are integrated. e^-45 of the largest term is below rounding.
_MOST_TERMS, _NEGLIGIBLE = 1 << 11, 45.0
_STEPS = np.floor(2.0 ** (np.arange(101) / 2))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# The series of artanh(x) / x in squares of x, without its first term.
_ARTANH = [1 / (2 * j + 1) for j in range(8, 0, -1)] + [0.0]


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

    Raises
    ------
    ValueError, TypeError
        If epsilon is out of range or of the wrong kind.

    Notes
    -----
    A label is kept with probability e^epsilon / (1 + e^epsilon) (Warner, 1965). No mechanism at
    this cost keeps more, averaged over all columns: proved in the chapter on label privacy.

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
        What a label may be, known in public: two different numbers, booleans or strings, such as
        (0, 1), (False, True) or ("well", "ill").
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (n,)
        Private labels. Of the type of `labels` where that is an array of numbers, otherwise of the
        type of `classes`.

    Raises
    ------
    ValueError
        If there are no labels, one is not in `classes`, or a parameter is out of range.
    TypeError
        If an array of labels has another kind than the classes, or a parameter is of the wrong
        kind.

    Notes
    -----
    Each label is kept with probability e^epsilon / (1 + e^epsilon), by an exact coin of its own
    (Warner, 1965). Which labels are valid, and the type of what is returned, never depend on the
    labels together: a list is read one record at a time.

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
    return _name(randomized_response.privatize(is_second, epsilon, rng=rng), values)


def estimate(reports: ArrayLike, epsilon: float, *, classes: Sequence = (-1, 1)) -> np.ndarray:
    """Estimate how many true labels each class has, without bias.

    Parameters
    ----------
    reports : array_like of shape (n,)
        Private labels, as `privatize` draws them.
    epsilon : float
        The privacy cost of each, at which they were drawn.
    classes : sequence of two labels
        What a label may be, as in `privatize`.

    Returns
    -------
    ndarray of shape (2,)
        Estimated counts, in labels, in the order of `classes`. They sum to n; one may be negative.

    Raises
    ------
    ValueError, TypeError
        As `privatize` does.

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

    Raises
    ------
    ValueError, TypeError
        If there are not two counts, one is negative or not finite, all are zero, or epsilon is
        invalid.

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
    """Draw private labels by the exponential mechanism, which costs half of what it states.

    Parameters
    ----------
    labels : array_like of shape (n,)
        The true labels, each equal to one of the classes and of their kind.
    stated_epsilon : float
        The mechanism's own parameter, positive and finite. The privacy cost is half of it.
    method : {"independent", "two-step"}
        "independent" flips an exact coin for each label. "two-step" is the way of Bi and
        Suppakitpaisarn (2022): draw how many labels are kept, then which ones. Both have the same
        distribution.
    classes : sequence of two labels
        What a label may be, as in `privatize`.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (n,)
        Private labels, of the type that `privatize` gives.

    Raises
    ------
    ValueError, TypeError
        As `privatize` does.

    Notes
    -----
    The utility of an output is the number of labels that it keeps, with sensitivity 1. Its
    exponential is a product over the labels, so each is kept independently with probability
    e^(stated_epsilon / 2) / (1 + e^(stated_epsilon / 2)): it is `privatize` at half.

    The coins have this distribution to the last bit. The score of the two-step way is drawn from
    doubles: right to ten digits, and one that should be rarer than e^-700 is drawn that often.

    Examples
    --------
    >>> exponential([1, -1, 1, 1], stated_epsilon=2.0, rng=0).shape
    (4,)
    """
    cost = _half_of(stated_epsilon)
    check_choice("method", method, METHODS)
    if method == "independent":
        return privatize(labels, cost, classes=classes, rng=rng)
    is_second, values = _check_labels("labels", labels, _check_classes(classes))
    rng = check_rng(rng)
    log_weights = np.maximum(log_score_pmf(is_second.size, stated_epsilon), -1e300)
    score = exponential_mechanism.sample(log_weights, 2.0, rng=rng)
    flipped = rng.permutation(is_second.size) >= score
    return _name(is_second ^ flipped, values)


def log_score_pmf(n: int, stated_epsilon: float) -> np.ndarray:
    """Return the log-probability that i of n labels are kept, for every i.

    Parameters
    ----------
    n : int
        The number of labels, at least 1.
    stated_epsilon : float
        The parameter of the exponential mechanism; the privacy cost is half of it.

    Returns
    -------
    ndarray of shape (n + 1,)
        Natural logarithms; the probabilities sum to 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The recursion of Bi and Suppakitpaisarn (2022), log P(i) = log P(i - 1) + log(n - i + 1)
    - log(i) + stated_epsilon / 2, is summed from the likeliest score outwards, and normalised at
    the end. So the terms that are added have one sign, and nothing cancels where it matters.

    Examples
    --------
    >>> np.exp(log_score_pmf(2, 2 * np.log(3))).round(12)
    array([0.0625, 0.375 , 0.5625])
    """
    n = check_integer("n", n, low=1)
    half = check_epsilon(stated_epsilon, "stated_epsilon") / 2
    scores = np.arange(1, n + 1, dtype=float)
    steps = np.log((n - scores + 1) / scores) + half
    mode = int(np.count_nonzero(steps > 0))
    log_pmf = np.zeros(n + 1)
    np.cumsum(steps[mode:], out=log_pmf[mode + 1 :])
    # Past the reach of doubles, at an epsilon of 1e300, minus infinity is the logarithm to give.
    with np.errstate(over="ignore"):
        log_pmf[:mode] = -np.cumsum(steps[:mode][::-1])[::-1]
    others = np.exp(log_pmf[:mode]).sum() + np.exp(log_pmf[mode + 1 :]).sum()
    return log_pmf - math.log1p(others)


def truncated_binomial(n: int, low: int, high: int, p: float) -> float:
    """Return the probability that a binomial count lies between two scores, both included.

    Parameters
    ----------
    n : int
        The number of trials, from 1 to 10**15.
    low, high : int
        The smallest and the largest count, with 0 <= low <= high <= n.
    p : float
        The probability of success, strictly between 0 and 1.

    Returns
    -------
    float
        S(n, low, high), the sum in Definition 5 of Bi and Suppakitpaisarn (2022), for exactly the
        p that the double holds. The relative error is below 1e-12 where the sum is above 1e-300.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The probabilities of single counts are added, in the form of Loader (2000), whose logarithm has
    no large terms that cancel. Where very many matter, their sum is an integral from low - 1/2 to
    high + 1/2 (the Euler-Maclaurin formula with two corrections), by Gauss's rule. Nothing is
    subtracted from a larger number, so single counts and narrow ranges are as good as wide ones.

    Examples
    --------
    >>> round(truncated_binomial(10, 5, 10, 0.5), 12)
    0.623046875
    """
    n = check_integer("n", n, low=1, high=10**15)
    high = check_integer("high", high, low=0, high=n)
    low = check_integer("low", low, low=0, high=high)
    p = check_probability("p", p)
    if p > 0.5:
        # Count the failures, whose probability is an exact double as well.
        return _range_probability(n, n - high, n - low, 1 - p)
    return _range_probability(n, low, high, p)


def success_probability(n: int, stated_epsilon: float) -> float:
    """Return the probability that at least half of n labels are kept.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 10**15.
    stated_epsilon : float
        The parameter of the exponential mechanism; the privacy cost is half of it.

    Returns
    -------
    float
        Pr[s >= n / 2]. For even n a tie counts as success, so this is not monotone in n.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The number of flipped labels is binomial. Its probability is rounded to a double, which for
    10**15 labels moves the result by up to 1e-8.

    Examples
    --------
    >>> round(success_probability(1000, 0.1), 4)
    0.7946
    """
    n = check_integer("n", n, low=1, high=10**15)
    stated_epsilon = check_epsilon(stated_epsilon, "stated_epsilon")
    return _range_probability(n, 0, n // 2, float(special.expit(-stated_epsilon / 2)))


def minimum_epsilon(n: int, failure: float, *, bound: str = "exact") -> float:
    """Return the stated epsilon at which at least half of n labels are kept; it costs half.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 10**15.
    failure : float
        The probability of failure that is accepted, strictly between 0 and 1.
    bound : {"exact", "chernoff", "hoeffding", "normal"}
        "exact" is the smallest such epsilon. Chernoff's and Hoeffding's are sufficient, and keep
        *more* than half; the normal one is an approximation.

    Returns
    -------
    float
        The parameter of the exponential mechanism, to be given to `exponential` or to
        `success_probability`. The privacy cost, to be given to `privatize`, is half of it. It is 0
        where a fair coin for every label is already enough.

    Raises
    ------
    ValueError
        If a parameter is out of range, or Hoeffding's bound needs more labels.
    TypeError
        If a parameter is of the wrong kind.

    Notes
    -----
    With z the quantile of the normal distribution and b the failure: 4 arccosh(b^(-1/n))
    (Chernoff), 4 artanh(sqrt(2 ln(1/b) / n)) (Hoeffding) and 4 z / sqrt(n) (normal). The exact one
    lies between 0 and Chernoff's, where the exact probability is inverted.

    Examples
    --------
    >>> round(minimum_epsilon(1000, 0.01), 6)
    0.290316
    """
    n = check_integer("n", n, low=1, high=10**15)
    failure = check_probability("failure", failure)
    check_choice("bound", bound, BOUNDS)
    excess = -math.log(failure) / n
    if bound == "chernoff":
        return _chernoff(excess)
    if bound == "hoeffding":
        if excess >= 0.5:
            raise ValueError(f"n must be above 2 ln(1 / failure) for Hoeffding's bound, got {n}")
        return 4 * math.atanh(math.sqrt(2 * excess))
    if bound == "normal":
        return max(0.0, -4 * float(special.ndtri(failure)) / math.sqrt(n))

    def shortfall(stated_epsilon: float) -> float:
        fails = _range_probability(n, n // 2 + 1, n, float(special.expit(-stated_epsilon / 2)))
        return math.log(max(fails, _SMALLEST)) - math.log(failure)

    # Where a fair coin is exactly enough, rounding must not ask for more.
    if shortfall(0.0) <= 1e-12:
        return 0.0
    found = optimize.brentq(
        shortfall, 0.0, _chernoff(excess), xtol=_SMALLEST, rtol=1e-12, maxiter=5_000
    )
    return float(found)


def _half_of(stated_epsilon: float) -> float:
    """Return what the exponential mechanism on labels costs."""
    half = check_epsilon(stated_epsilon, "stated_epsilon") / 2
    try:
        lie_probability(half)
    except ValueError:
        raise ValueError(
            "stated_epsilon must be large enough for a double to tell a kept label from a flipped "
            f"one, got {stated_epsilon}"
        ) from None
    return half


def _chernoff(excess: float) -> float:
    """Return 4 arccosh(exp(excess)), where the exponential would overflow or round to 1."""
    return 4 * (excess + math.log1p(math.sqrt(-math.expm1(-2 * excess))))


def _kinds(label: object) -> str:
    """Return which types of an array hold labels like this one, none for what is no label."""
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
    if "" in map(_kinds, pair) or len(set(map(_kinds, pair))) > 1:
        raise TypeError("classes must be two numbers, two booleans or two strings")
    array = as_array("classes", pair)
    # An array may round a large integer beside a float, and make one label of two.
    if array.shape != (2,) or array.dtype.kind not in "biufU" or array.tolist() != pair:
        raise ValueError(
            f"classes must be two labels that one type of array holds, got {shown(classes)}"
        )
    if array[0] == array[1]:
        raise ValueError(f"classes must be two different labels, got {shown(classes)}")
    return array


def _check_labels(
    name: str, labels: ArrayLike, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each label is of the second class, and the classes in the type of the reports.

    An array of numbers keeps its type. Anything else is read one record at a time, so that neither
    a refusal nor the type depends on how the types of the records mix.
    """
    first, second = classes.tolist()
    allowed = (
        f"{name} must each be {first!r} or {second!r}, as `classes` says; name others by it, such "
        "as classes=(0, 1) or classes=(False, True)"
    )
    array = as_array(name, labels if hasattr(labels, "dtype") else _one_by_one(name, labels))
    kinds = _kinds(first)
    if array.dtype.kind not in kinds + "O":
        raise TypeError(f"{allowed}; got {kind_of(array)}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    if array.dtype.kind in "biuf":
        with np.errstate(invalid="ignore", over="ignore"):
            values = classes.astype(array.dtype.newbyteorder("="))
        if not np.array_equal(values, classes):
            raise TypeError(f"{allowed}; got {kind_of(array)}, which cannot hold both")
        # A boolean read from foreign memory may hold any byte.
        array, among = _as_bytes(array), _as_bytes(values)
        is_second = array == among[1]
        known = np.all(is_second | (array == among[0]))
    else:
        values = classes
        of_kind = [label if _kinds(label) == kinds else None for label in array]
        is_second = np.array([label == second for label in of_kind])
        known = all(label in (first, second) for label in of_kind)
    if not known:
        raise ValueError(f"{allowed}; a record is neither")
    return is_second, values


def _one_by_one(name: str, labels: ArrayLike) -> np.ndarray:
    """Return an array of whatever the records are; nested ones may not fit into one."""
    try:
        return np.array(labels, dtype=object)
    except (ValueError, TypeError, RuntimeError):
        raise ValueError(f"{name} must be one-dimensional; a record is an array") from None


def _as_bytes(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8) if array.dtype.kind == "b" else array


def _name(is_second: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of each report."""
    kind = classes.dtype
    if kind.kind not in "biuf" or kind.itemsize > 8:
        return classes.take(is_second.view(np.int8))
    # Quicker than looking it up: one class and a step to the other, as whole numbers of the same
    # bits, which wrap around to the right one. Small ones are made in a byte and widened once.
    wide = classes.view(f"i{kind.itemsize}")
    narrow = wide.astype(np.int8)
    pair = narrow if np.all(narrow == wide) else wide
    reports = is_second.astype(pair.dtype)
    reports *= pair[1:] - pair[:1]
    reports += pair[:1]
    return reports.astype(wide.dtype, copy=False).view(kind)


def _range_probability(n: int, low: int, high: int, p: float) -> float:
    """Return Pr[low <= Bin(n, p) <= high] for 0 <= p <= 1/2."""
    if (low == 0 and high == n) or p == 0:
        return float(low == 0)
    mean = n * Fraction(p)
    # Counts are given by their distance from the mean, which a double of 1e15 would round.
    middle = round(mean)
    log_pmf = functools.partial(_log_pmf, n, float(mean), middle, float(middle - mean))
    peak = min(max(math.floor(mean + Fraction(p)), low), high) - middle
    likeliest = float(log_pmf(np.array(peak)))
    if likeliest < math.log(_SMALLEST):
        return 0.0

    def reach(sign: int, farthest: int) -> int:
        """Return how far from the likeliest count others matter: the logarithm is concave."""
        steps = np.minimum(_STEPS, farthest)
        negligible = log_pmf(peak + sign * steps) < likeliest - _NEGLIGIBLE
        return int(steps[negligible.argmax()]) if negligible.any() else farthest

    first = peak - reach(-1, peak + middle - low)
    last = peak + reach(1, high - middle - peak)
    if last - first < _MOST_TERMS:
        return min(1.0, float(np.exp(log_pmf(np.arange(first, last + 1))).sum()))
    # So many terms matter only far from 0 and n, where one hardly differs from the next.
    edges = np.linspace(first - 0.5, last + 0.5, 65)
    halves = np.diff(edges)[:, np.newaxis] / 2
    heights = np.exp(log_pmf(edges[:-1, np.newaxis] + halves * (1 + _NODES)))
    correction = sum(
        sign * _correction(np.exp(log_pmf(end + np.arange(-1, 3))))
        for sign, end in ((1, last), (-1, first - 1))
    )
    return min(1.0, float((halves * _WEIGHTS * heights).sum() + correction))


def _correction(heights: np.ndarray) -> float:
    """Return Euler and Maclaurin's correction at an end between the second and third of four."""
    slope, bend = heights[2] - heights[1], np.diff(heights, 3)[0]
    return float(17 * bend / 5760 - slope / 24)


def _log_pmf(n: int, mean: float, middle: int, shift: float, steps: np.ndarray) -> np.ndarray:
    """Return the logarithm of Pr[Bin(n, mean / n) = middle + steps], after Loader (2000).

    `shift` is the middle less the mean.
    """
    kept = middle + steps
    flipped = n - kept
    ahead = steps + shift
    deviance = _deviance(kept, ahead, mean) + _deviance(flipped, -ahead, n - mean)
    return _log_factorial(np.array(n)) - _log_factorial(kept) - _log_factorial(flipped) - deviance


def _log_factorial(x: np.ndarray) -> np.ndarray:
    """Return log(x!) - x log(x) + x, from Stirling's series where that is exact to rounding."""
    large = np.maximum(x, 16.0)
    series = np.polyval([1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12], large**-2.0) / large
    few = np.minimum(x, 16.0)
    exact = special.gammaln(few + 1) - special.xlogy(few, few) + few
    return np.where(x < 16, exact, np.log(2 * math.pi * large) / 2 + series)


def _deviance(x: np.ndarray, ahead: np.ndarray, mean: float) -> np.ndarray:
    """Return x log(x / mean) - ahead, where x is the mean and what it is ahead of it."""
    ratio = ahead / (x + mean)
    # 2 artanh(ratio) is the logarithm; its first terms cancel on paper, and not in the machine.
    series = 2 * x * ratio * np.polyval(_ARTANH, ratio**2) + ahead * ratio
    with np.errstate(over="ignore"):
        return np.where(np.abs(ratio) < 0.1, series, special.xlogy(x, x / mean) - ahead)
