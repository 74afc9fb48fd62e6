"""Randomized response: everybody lies now and then, and the total still tells the truth.

Each person reports the true category with a probability that epsilon sets, and otherwise one of
the others, all equally likely (Warner 1965 for two categories; "direct encoding" or k-ary
randomized response for more). The collector never sees a true answer.

With k >= 2 categories the probabilities of a report are

    p = e^epsilon / (e^epsilon + k - 1)    for the true category,
    q = 1 / (e^epsilon + k - 1)            for each other one,

so that two people's reports differ by a factor of at most p / q = e^epsilon.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import check_categories, check_counts, check_epsilon, check_integer, check_rng
from dpnotes._coins import complement, flip, lie_probability

# No count is larger, so that a variance is finite.
_MOST = 1e100


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

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

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
        The number of possible answers k, at least 2.

    Returns
    -------
    ndarray of shape (k, k)
        Row: the true answer. Column: the report. Each row sums to 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> output_distribution(np.log(3)).round(12)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    p, q = _probabilities(epsilon, categories)
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

    Raises
    ------
    ValueError
        If there is no value, if one is outside the domain, or if a parameter is out of range.
    TypeError
        If the values are neither integers nor booleans, or a parameter is of the wrong kind.

    Notes
    -----
    A false report is uniform over the other categories, which no floating-point number touches:
    coins are exact and integers are drawn without bias, so the reports have the distribution that
    `output_distribution` gives, to the last bit.

    Examples
    --------
    >>> privatize([True, False, True, True], epsilon=1.0, rng=0).dtype
    dtype('bool')
    """
    lie = _lie(epsilon, categories)
    # An unsigned number of numpy's would make floats of the reports, and round them.
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
        The number of possible answers k.

    Returns
    -------
    ndarray of shape (k,)
        Estimated counts. They sum to the number of reports; single ones may be negative.

    Raises
    ------
    ValueError, TypeError
        As `privatize` does.

    Notes
    -----
    Of n reports, category j is expected n_j p + (n - n_j) q times. Solving for n_j gives
    (reports of j - n q) / (p - q).

    Examples
    --------
    >>> estimate([True, True, True, False], np.log(3)).round(9)
    array([0., 4.])
    """
    p, q = _probabilities(epsilon, categories)
    reports = check_categories("reports", reports, categories)
    if categories == 2:
        ones = np.count_nonzero(reports)
        observed = np.array([reports.size - ones, ones])
    else:
        observed = np.bincount(reports.ravel().astype(np.intp, copy=False), minlength=categories)
    return (observed - reports.size * q) / (p - q)


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

    Raises
    ------
    ValueError, TypeError
        If the counts are fewer than two, negative, all zero, not finite or above 1e100, or epsilon
        is invalid.

    Notes
    -----
    A report of category j is a coin: p for its n_j members, q for the n - n_j others. So the
    variance is (n_j p (1 - p) + (n - n_j) q (1 - q)) / (p - q)^2.

    Examples
    --------
    >>> variance([60, 40], np.log(3)).round(9)
    array([75., 75.])
    """
    counts = check_counts("counts", counts, at_least=2)
    if counts.max() > _MOST:
        raise ValueError(
            f"counts must be at most {_MOST:g} each, so that doubles hold the variance"
        )
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

    Raises
    ------
    ValueError, TypeError
        If there is no value, or one is neither true nor false.

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


def _type_holding(largest: int, kind: np.dtype) -> np.dtype:
    """Return an integer type, or a wider one if it cannot hold the largest category."""
    if largest <= np.iinfo(kind).max:
        return kind
    # A signed type: the common type of signed and unsigned 64-bit integers would be a float.
    return np.promote_types(kind, np.min_scalar_type(-largest - 1))


def _lie(epsilon: float, categories: int) -> float:
    """Return the probability of a false report, after checking both parameters."""
    epsilon = check_epsilon(epsilon)
    # Up to here the sum of two categories, in `privatize`, fits a 64-bit integer.
    return lie_probability(epsilon, check_integer("categories", categories, low=2, high=2**62) - 1)


def _probabilities(epsilon: float, categories: int) -> tuple[float, float]:
    """Return p, of reporting the true category, and q, of each other one."""
    lie = _lie(epsilon, categories)
    return complement(lie), lie / (categories - 1)
