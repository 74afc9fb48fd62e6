"""The exponential mechanism: pick an answer at random, good ones more often.

Among candidates with utilities u, the mechanism of McSherry and Talwar (2007) picks one with
probability proportional to exp(epsilon u / (2 sensitivity)), where the sensitivity is the most that
one person can change any utility. This costs at most epsilon.

Applied to a column of labels, with the number of kept labels as utility, it turns out to be
randomized response for every number of labels, at a cost of epsilon / 2. The functions that
speak of labels take the mechanism's own epsilon, as the source of the chapter does.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpnotes import randomized_response
from dpnotes._checks import (
    as_array,
    check_choice,
    check_epsilon,
    check_integer,
    check_probability,
    kind_of,
)
from dpnotes._coins import flip_each

METHODS = ("independent", "two-step")
BOUNDS = ("exact", "chernoff", "hoeffding", "normal")
_SMALLEST = 5e-324


def sample(
    utilities: ArrayLike,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    size: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> int | np.ndarray:
    """Draw the index of a candidate, with probability growing exponentially in its utility.

    Parameters
    ----------
    utilities : array_like of shape (k,)
        The utility of each candidate on the data at hand; finite.
    epsilon : float
        The privacy cost of one draw, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, positive and finite.
    size : int, optional
        How many independent draws; each costs epsilon. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    int, or ndarray of int64 of shape (size,)
        Indices of candidates.

    Raises
    ------
    ValueError, TypeError
        If the utilities are not finite numbers in one dimension, or a parameter is out of range
        or of the wrong kind.

    Notes
    -----
    The candidates are the leaves of a binary tree, and an exact coin decides at each fork. So the
    probabilities have the *relative* precision of doubles, far into the tails: no candidate is
    lost in the rounding of a cumulative sum. Rounding the weights may cost up to 1e-12 more than
    epsilon. A draw costs O(log k) after O(k) once.

    Examples
    --------
    >>> best_day = sample([10, 14, 9], epsilon=1.0, rng=0)
    >>> best_day in (0, 1, 2)
    True
    """
    utilities = _check_utilities(utilities)
    if utilities.ndim != 1:
        raise ValueError(f"utilities must be one-dimensional, got shape {utilities.shape}")
    weights = _weights(utilities, epsilon, sensitivity)
    count = 1 if size is None else check_integer("size", size, low=0)
    drawn = _draw(weights, count, np.random.default_rng(rng))
    return int(drawn[0]) if size is None else drawn


def output_distribution(
    utilities: ArrayLike, epsilon: float, *, sensitivity: float = 1.0
) -> np.ndarray:
    """Return the exact law of the mechanism.

    Parameters
    ----------
    utilities : array_like of shape (k,) or (inputs, k)
        The utility of each candidate; with two dimensions, a row for each possible data set.
    epsilon : float
        The privacy cost, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, positive and finite.

    Returns
    -------
    ndarray of the shape of `utilities`
        Probabilities; each row sums to 1.

    Raises
    ------
    ValueError, TypeError
        As `sample` does.

    Notes
    -----
    No probability is 0: a candidate is at most e^700 times less likely than the best one, as if
    its utility were a little higher. That costs no privacy, while a 0 would cost all of it.

    Examples
    --------
    >>> output_distribution([0.0, 2.0], np.log(3)).round(12)
    array([0.25, 0.75])
    """
    weights = _weights(_check_utilities(utilities), epsilon, sensitivity)
    return weights / weights.sum(axis=-1, keepdims=True)


def log_score_pmf(n: int, epsilon: float) -> np.ndarray:
    """Return the log-probability that i of n labels are kept, for every i.

    Parameters
    ----------
    n : int
        The number of labels, at least 1.
    epsilon : float
        The parameter of the mechanism; the label-privacy cost is epsilon / 2.

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
    - log(i) + epsilon / 2, is summed from the likeliest score outwards, and normalised at the end.
    So the terms that are added have one sign, and nothing cancels where it matters.

    Examples
    --------
    >>> np.exp(log_score_pmf(2, 2 * np.log(3))).round(12)
    array([0.0625, 0.375 , 0.5625])
    """
    n = check_integer("n", n, low=1)
    half = check_epsilon(epsilon) / 2
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
        S(n, low, high), the sum in Definition 5 of Bi and Suppakitpaisarn (2022).

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> round(truncated_binomial(10, 5, 10, 0.5), 12)
    0.623046875
    """
    n = check_integer("n", n, low=1, high=10**15)
    high = check_integer("high", high, low=0, high=n)
    low = check_integer("low", low, low=0, high=high)
    p = check_probability("p", p)
    if low > n * p:
        # Above the mean, upper tails are the small ones; subtract those.
        return _at_least(n, low, p, 1 - p) - _at_least(n, high + 1, p, 1 - p)
    return _at_least(n, n - high, 1 - p, p) - _at_least(n, n - low + 1, 1 - p, p)


def privatize_labels(
    labels: ArrayLike,
    epsilon: float,
    *,
    method: str = "independent",
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Draw private labels; the label-privacy cost is epsilon / 2, half of the parameter.

    Parameters
    ----------
    labels : array_like of int in {-1, +1}, shape (n,)
        The true labels.
    epsilon : float
        The mechanism's own parameter, positive and finite, as in the source.
    method : {"independent", "two-step"}
        "independent" flips an exact coin for each label. "two-step" is the source's way: draw how
        many labels are kept, then which ones. Both have the same law.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    ndarray of shape (n,)
        Private labels, of the type of `labels`.

    Raises
    ------
    ValueError
        If there are no labels, one is neither -1 nor +1, or a parameter is out of range.
    TypeError
        If the labels are not signed integers, or a parameter is of the wrong kind.

    Notes
    -----
    The utility of an output is the number of labels that it keeps, with sensitivity 1. Its
    exponential is a product over the labels, so each is kept independently with probability
    e^(epsilon / 2) / (1 + e^(epsilon / 2)): randomized response at epsilon / 2.

    The coins have this law to the last bit. The score of the two-step way is drawn from doubles:
    right to ten digits, and one rarer than 1e-308 never comes.

    Examples
    --------
    >>> privatize_labels([1, -1, 1, 1], epsilon=2.0, rng=0).shape
    (4,)
    """
    epsilon = check_epsilon(epsilon)
    check_choice("method", method, METHODS)
    labels = _check_labels(labels)
    rng = np.random.default_rng(rng)
    if method == "independent":
        kept = randomized_response.privatize(np.ones(labels.size, bool), epsilon / 2, rng=rng)
    else:
        [score] = _draw(np.exp(log_score_pmf(labels.size, epsilon)), 1, rng)
        kept = rng.permutation(labels.size) < score
    # Numbers, not a choice between two arrays: chance is what a processor can't foresee.
    return labels * (2 * kept.view(np.int8) - 1)


def success_probability(n: int, epsilon: float) -> float:
    """Return the probability that at least half of n labels are kept.

    Parameters
    ----------
    n : int
        The number of labels, from 1 to 10**15.
    epsilon : float
        The parameter of the mechanism; the label-privacy cost is epsilon / 2.

    Returns
    -------
    float
        Pr[q >= n / 2]. For even n a tie counts as success, so this is not monotone in n.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> round(success_probability(1000, 0.1), 4)
    0.7946
    """
    n = check_integer("n", n, low=1, high=10**15)
    flip = float(special.expit(-check_epsilon(epsilon) / 2))
    return _at_least(n, (n + 1) // 2, 1 - flip, flip)


def minimum_epsilon(n: int, failure: float, *, bound: str = "exact") -> float:
    """Return the epsilon at which at least half of n labels are kept, but for a small failure.

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
        The parameter of the mechanism; the label-privacy cost is half of it. It is 0 where a fair
        coin for every label is already enough.

    Raises
    ------
    ValueError
        If a parameter is out of range, or Hoeffding's bound needs more labels.
    TypeError
        If a parameter is of the wrong kind.

    Notes
    -----
    With z the quantile of the normal law and b the failure: 4 arccosh(b^(-1/n)) (Chernoff),
    4 artanh(sqrt(2 ln(1/b) / n)) (Hoeffding) and 4 z / sqrt(n) (normal). The exact one lies
    between 0 and Chernoff's, where the incomplete beta function is bisected.

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
    half = (n + 1) // 2

    def shortfall(epsilon: float) -> float:
        fails = _at_least(n, n - half + 1, special.expit(-epsilon / 2), special.expit(epsilon / 2))
        return math.log(max(fails, _SMALLEST)) - math.log(failure)

    if shortfall(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(shortfall, 0.0, _chernoff(excess), xtol=_SMALLEST, rtol=1e-12))


def _chernoff(excess: float) -> float:
    """Return 4 arccosh(exp(excess)), where the exponential would overflow or round to 1."""
    return 4 * (excess + math.log1p(math.sqrt(-math.expm1(-2 * excess))))


def _weights(utilities: np.ndarray, epsilon: float, sensitivity: float) -> np.ndarray:
    """Return exp(epsilon u / (2 sensitivity)) relative to the best candidate of each row.

    A weight below exp(-700) is raised to it. That is to raise the utility to a fixed distance from
    the best one, which leaves the sensitivity as it is. Without it a weight could become 0 on one
    data set and not on its neighbour, at an infinite cost.
    """
    epsilon = check_epsilon(epsilon)
    sensitivity = check_epsilon(sensitivity, "sensitivity")
    # Halves, so that no gap overflows before the sensitivity divides it.
    halves = utilities / 2 - utilities.max(axis=-1, keepdims=True) / 2
    with np.errstate(over="ignore"):
        gaps = halves.astype(float, copy=False) / sensitivity
        return np.exp(np.maximum(gaps * epsilon, -700.0))


def _draw(weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `count` indices with probability proportional to `weights`, down a tree of coins."""
    levels = [weights]
    while levels[-1].size > 1:
        level = levels[-1]
        levels[-1] = level = np.append(level, 0.0) if level.size % 2 else level
        levels.append(level[0::2] + level[1::2])
    drawn = np.zeros(count, dtype=np.int64)
    for level in reversed(levels[:-1]):
        left, right = level[2 * drawn], level[2 * drawn + 1]
        smaller = np.minimum(left, right)
        # The coin decides for the smaller side, whose probability a double holds best.
        unlikely = flip_each(smaller / (left + right), rng)
        drawn = 2 * drawn + np.where(unlikely, right <= left, right > left)
    return drawn


def _at_least(n: int, k: int, p: float, q: float) -> float:
    """Return Pr[Bin(n, p) >= k], where q = 1 - p; the smaller tail is computed directly."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    # With equal parameters scipy takes the way over 4 p q, whose digits are lost near p = 1/2.
    if k > n * p and (2 * k != n + 1 or p < 0.25):
        return float(special.betainc(k, n - k + 1, p))
    return float(special.betaincc(n - k + 1, k, q))


def _check_utilities(utilities: ArrayLike) -> np.ndarray:
    """Return utilities as floats, up to a shift of each row: finite, at least one in each."""
    utilities = as_array("utilities", utilities)
    if utilities.dtype.kind not in "biuf":
        raise TypeError(f"utilities must be numbers, got {kind_of(utilities)}")
    if utilities.ndim not in (1, 2) or utilities.size == 0:
        raise ValueError(
            f"utilities must have one or two dimensions and a candidate, got {utilities.shape}"
        )
    if not np.all(np.isfinite(utilities)):
        raise ValueError("utilities must be finite")
    if utilities.dtype.kind in "iu":
        # Rounded to floats, large integers one apart could come to lie hundreds apart. Their
        # distances do not; and those are right even where unsigned numbers wrap around.
        whole = utilities.astype(np.uint64)
        best = utilities.max(axis=-1, keepdims=True).astype(np.uint64)
        return -(best - whole).astype(float)
    return utilities.astype(np.promote_types(utilities.dtype, float))


def _check_labels(labels: ArrayLike) -> np.ndarray:
    """Return labels as a 1-D array of -1 and +1."""
    labels = as_array("labels", labels)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"labels must be one-dimensional and not empty, got shape {labels.shape}")
    if labels.dtype.kind != "i":
        raise TypeError(f"labels must be signed integers, got {kind_of(labels)}")
    if not np.all(np.abs(labels) == 1):
        raise ValueError("labels must be -1 or +1; a record is not")
    return labels
