"""Randomized response: everybody lies now and then, and the total still tells the truth.

Each person reports the true category with a probability that epsilon sets, and otherwise one of
the others, all equally likely (Warner 1965 for two categories; "direct encoding" or k-ary
randomized response for more). The collector never sees a true answer.

With k >= 2 categories the probabilities of a report are

    p = e^epsilon / (e^epsilon + k - 1)    for the true category,
    q = 1 / (e^epsilon + k - 1)            for each other one,

so that two people's reports differ by a factor of at most p / q = e^epsilon.

If somebody shuffles the reports, the collector sees only how many there are of each category, and
the cost is far smaller: `shuffled_delta` computes it exactly for two categories, in the shuffle
model of Cheu et al. (2019).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import (
    check_categories,
    check_counts,
    check_epsilon,
    check_integer,
    check_real,
    check_rng,
    check_whole_counts,
)
from dpnotes._coins import complement, flip, lie_probability

# The most categories in a table of probabilities, and in a list of counts: two gigabytes of each.
_MOST_ROWS, _MOST_COUNTED = 2**14, 2**28
# The most people in a shuffle: for given true answers, and for the worst case over all.
_MOST_SHUFFLED, _MOST_ENUMERATED = 1_000_000, 20_000
# Reports counted at a time.
_PART = 1 << 20


def keep_probability(epsilon: float, categories: int = 2) -> float:
    """Return the probability that a report is the true category.

    Parameters
    ----------
    epsilon : float
        The privacy cost of one report, positive and finite.
    categories : int
        The number of possible answers, at least 2.

    Returns
    -------
    float
        e^epsilon / (e^epsilon + categories - 1), rounded towards more privacy.

    Examples
    --------
    >>> round(keep_probability(np.log(3)), 12)
    0.75
    """
    return complement(_lie(epsilon, categories))


def output_distribution(epsilon: float, categories: int = 2) -> np.ndarray:
    """Return the exact distribution of one report for every true answer.

    Parameters
    ----------
    epsilon : float
        The privacy cost of one report, positive and finite.
    categories : int
        The number of possible answers k, from 2 to 2**14.

    Returns
    -------
    ndarray of shape (k, k)
        Row: the true answer. Column: the report. Each row sums to 1.

    Examples
    --------
    >>> output_distribution(np.log(3)).round(12)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    p, q = _probabilities(epsilon, categories)
    categories = check_integer("categories", categories, low=2, high=_MOST_ROWS)
    distribution = np.full((categories, categories), q)
    np.fill_diagonal(distribution, p)
    return distribution


def privatize(
    values: ArrayLike,
    epsilon: float,
    *,
    categories: int = 2,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Draw a private report for every true answer.

    Parameters
    ----------
    values : array_like of int in [0, categories), or of bool
        The true answers, one a person. Booleans stand for two categories.
    epsilon : float
        The privacy cost of each report, positive and finite.
    categories : int
        The number of possible answers, at least 2.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray
        The reports, of the shape and type of `values` (a wider integer type where that one cannot
        hold every category).

    Notes
    -----
    A false report is uniform over the other categories, without floating-point arithmetic: coins
    are exact and integers are drawn without bias, so the reports have the distribution that
    `output_distribution` gives, to the last bit.

    Examples
    --------
    >>> privatize([True, False, True, True], epsilon=1.0, rng=0).dtype
    dtype('bool')
    """
    lie = _lie(epsilon, categories)
    # With numpy's unsigned integers the reports would become floats, and be rounded.
    categories = int(categories)
    values = check_categories("values", values, categories)
    rng = check_rng(rng)
    lies = flip(values.size, lie, rng).reshape(values.shape)
    if categories == 2:
        return np.asarray(values ^ lies, dtype=values.dtype)
    reports = values.astype(_type_holding(categories - 1, values.dtype))
    # Adding 1 to k - 1 around the circle of k categories reaches every other one equally often.
    steps = rng.integers(1, categories, size=np.count_nonzero(lies))
    reports[lies] = (values[lies].astype(np.int64) + steps) % categories
    return reports


def estimate(reports: ArrayLike, epsilon: float, *, categories: int = 2) -> np.ndarray:
    """Estimate how many people belong to each category, without bias.

    Parameters
    ----------
    reports : array_like of int in [0, categories), or of bool
        Private reports, as `privatize` draws them.
    epsilon : float
        The privacy cost at which they were drawn.
    categories : int
        The number of possible answers k, from 2 to 2**28.

    Returns
    -------
    ndarray of shape (k,)
        Estimated counts. They sum to the number of reports; single ones may be negative.

    Notes
    -----
    Of n reports, category j is expected n_j p + (n - n_j) q times. Solving for n_j gives
    (reports of j - n q) / (p - q).

    Examples
    --------
    >>> estimate([True, True, True, False], np.log(3)).round(9)
    array([0., 4.])
    """
    # Check epsilon before the reports.
    _lie(epsilon, categories)
    return estimate_counts(count_reports(reports, categories=categories), epsilon)


def count_reports(reports: ArrayLike, *, categories: int = 2) -> np.ndarray:
    """Count the reports of each category: all that a collector has to keep.

    The counts of several batches add up to those of all of them together.

    Parameters
    ----------
    reports : array_like of int in [0, categories), or of bool
        Private reports, as `privatize` draws them.
    categories : int
        The number of possible answers k, from 2 to 2**28.

    Returns
    -------
    ndarray of int64, shape (k,)
        How many reports there are of each category.

    Notes
    -----
    Memory beyond the reports is constant: that of the counts and of a million reports.

    Examples
    --------
    >>> count_reports([0, 2, 2], categories=4)
    array([1, 0, 2, 0])
    """
    categories = check_integer("categories", categories, low=2, high=_MOST_COUNTED)
    reports = check_categories("reports", reports, categories).ravel()
    if categories == 2:
        ones = np.count_nonzero(reports)
        return np.array([reports.size - ones, ones])
    counts = np.zeros(categories, dtype=np.int64)
    step = max(_PART, categories)
    for start in range(0, reports.size, step):
        # `bincount` converts to intp anyway: converting by parts keeps memory constant.
        part = reports[start : start + step].astype(np.intp, copy=False)
        counts += np.bincount(part, minlength=categories)
    return counts


def estimate_counts(counts: ArrayLike, epsilon: float) -> np.ndarray:
    """Estimate how many people belong to each category from the number of reports of each.

    Parameters
    ----------
    counts : array_like of int, shape (k,)
        How many reports there are of each of k categories, at least 2; sums over batches.
    epsilon : float
        The privacy cost at which the reports were drawn.

    Returns
    -------
    ndarray of float, shape (k,)
        Estimated counts, as `estimate` gives them.

    Examples
    --------
    >>> estimate_counts([1, 3], np.log(3)).round(9)
    array([0., 4.])
    """
    counts = check_whole_counts("counts", counts, at_least=2)
    p, q = _probabilities(epsilon, counts.size)
    return (counts - int(counts.sum()) * q) / (p - q)


def variance(counts: ArrayLike, epsilon: float) -> np.ndarray:
    """Return the exact variance of `estimate`, category by category.

    Parameters
    ----------
    counts : array_like of shape (k,)
        The true number of people in each category.
    epsilon : float
        The privacy cost of one report.

    Returns
    -------
    ndarray of shape (k,)
        Variances, in people squared. The only randomness is that of the reports.

    Notes
    -----
    A report of category j is a coin: p for its n_j members, q for the n - n_j others. So the
    variance is (n_j p (1 - p) + (n - n_j) q (1 - q)) / (p - q)^2.

    Examples
    --------
    >>> variance([60, 40], np.log(3)).round(9)
    array([75., 75.])
    """
    counts = check_counts("counts", counts, at_least=2, with_variance=True)
    lie = _lie(epsilon, counts.size)
    p, q = _probabilities(epsilon, counts.size)
    return (counts * p * lie + (counts.sum() - counts) * q * (1 - q)) / (p - q) ** 2


def two_coin(values: ArrayLike, *, rng: np.random.Generator | int | None = None) -> np.ndarray:
    """Draw private reports with two fair coins, at epsilon = ln 3.

    The first coin decides whether to answer truthfully; if not, the second is the answer.

    Parameters
    ----------
    values : array_like of bool, or of int in {0, 1}
        The true answers.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray
        The reports, of the shape and type of `values`.

    Notes
    -----
    A true answer is reported with probability 1/2 + 1/4 = 3/4 and a false one with 1/4; the ratio
    is 3. The coins are those of Dwork and Roth (2014), after Warner (1965).

    Examples
    --------
    >>> two_coin([True, False, True, True], rng=0).shape
    (4,)
    """
    values = check_categories("values", values, 2)
    rng = check_rng(rng)
    truthful = flip(values.size, 0.5, rng).reshape(values.shape)
    answer = flip(values.size, 0.5, rng).reshape(values.shape)
    return np.where(truthful, values, answer).astype(values.dtype, copy=False)


def shuffled_delta(
    epsilon: float, n: int, local_epsilon: float, *, others: int | None = None
) -> float:
    """Return the exact delta, at a given epsilon, of the shuffled reports of n people.

    Everybody answers a yes-or-no question by randomized response, and a shuffler mixes the reports
    before anybody sees them. All that remains visible is the number of reported yes.

    Parameters
    ----------
    epsilon : float
        The epsilon that is claimed for the shuffled reports, in nats, finite and at least 0.
    n : int
        The number of people, at least 1: up to 20,000, and up to 1,000,000 if `others` is given.
    local_epsilon : float
        The privacy cost of each report, finite and at least 1e-9.
    others : int, optional
        For how many of the n - 1 others yes is the true answer. By default the worst case, which is
        the delta to claim, because the other answers are unknown.

    Returns
    -------
    float
        The smallest delta that holds for one person's answer: 0 if epsilon >= `local_epsilon`.
        Probabilities below 1e-40 are left out, so a delta below 1e-30 is not reliable.

    Notes
    -----
    Let a be `others`, p the probability of a true report, and Z the number of yes among the others,
    the sum of Binomial(a, p) and Binomial(n - 1 - a, 1 - p). One person's yes makes it Z + 1 with
    probability p and Z otherwise, a no the other way round. So delta is the sum over y of the
    positive part of

        p (1 - e^(epsilon - local_epsilon)) P(Z = y - 1) - (e^epsilon p - 1 + p) P(Z = y),

    or the same with y - 1 and y exchanged. Neighbours are surveys of the same n people in which one
    truth is replaced. Delta depends on a, and its maximum is found by trying every a.

    Examples
    --------
    >>> f"{shuffled_delta(0.1, 3256, np.log(3), others=3255):.1e}"
    '3.7e-09'
    >>> shuffled_delta(0.0, 1, np.log(3))  # nobody to hide among: p - (1 - p)
    0.5
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a finite number of at least 0")
    most = _MOST_ENUMERATED if others is None else _MOST_SHUFFLED
    n = check_integer("n", n, low=1, high=most)
    local_epsilon = check_real(
        "local_epsilon", local_epsilon, low=1e-9, allowed="a finite number of at least 1e-9"
    )
    if others is not None:
        others = check_integer("others", others, low=0, high=n - 1)
    if epsilon >= local_epsilon:
        return 0.0
    lie = lie_probability(local_epsilon)
    # By symmetry, exchanging yes and no of all others gives the same delta.
    tried = range((n + 1) // 2) if others is None else [others]
    return max(_excess(a, n - 1 - a, epsilon, lie) for a in tried)


def _type_holding(largest: int, kind: np.dtype) -> np.dtype:
    """Return an integer type, or a wider one if it cannot hold the largest category."""
    if largest <= np.iinfo(kind).max:
        return kind
    # A signed type: the common type of signed and unsigned 64-bit integers would be a float.
    return np.promote_types(kind, np.min_scalar_type(-largest - 1))


def _lie(epsilon: float, categories: int) -> float:
    """Return the probability of a false report, after checking both parameters."""
    epsilon = check_epsilon(epsilon)
    # At most 2^62, so that the sum of two categories in `privatize` fits a 64-bit integer.
    return lie_probability(epsilon, check_integer("categories", categories, low=2, high=2**62) - 1)


def _probabilities(epsilon: float, categories: int) -> tuple[float, float]:
    """Return the probabilities p of the true category and q of each other one."""
    lie = _lie(epsilon, categories)
    return complement(lie), lie / (categories - 1)


def _likely(trials: int, p: float, q: float) -> np.ndarray:
    """Return a binomial distribution without its tails beyond 1e-40, by Bernstein's inequality."""
    tail = 40 * math.log(10)
    reach = tail / 3 + math.sqrt((tail / 3) ** 2 + 2 * tail * trials * p * q)
    low = max(0, math.floor(trials * p - reach))
    high = min(trials, math.ceil(trials * p + reach))
    mode = min(trials, math.floor((trials + 1) * p))
    # Ratios of neighbouring terms, multiplied outwards from the mode, do not overflow.
    up, down = np.arange(mode, high), np.arange(mode, low, -1)
    above = np.cumprod((trials - up) / (up + 1) * (p / q))
    below = np.cumprod(down / (trials - down + 1) * (q / p))
    weights = np.concatenate([below[::-1], [1.0], above])
    return weights / weights.sum()


def _excess(yes: int, no: int, epsilon: float, lie: float) -> float:
    """Return the larger delta of both directions, given the true answers of the others."""
    keep, factor = complement(lie), math.exp(min(epsilon, 700.0))
    others = np.convolve(_likely(yes, keep, lie), _likely(no, lie, keep))
    gain, loss = keep - factor * lie, factor * keep - lie
    own, missing = np.append(0.0, others), np.append(others, 0.0)
    both = (gain * own - loss * missing, gain * missing - loss * own)
    return max(float(np.maximum(part, 0.0).sum()) for part in both)
