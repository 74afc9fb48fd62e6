"""PATE: teachers vote on data that the student may see, and noise hides any single vote.

Every teacher is trained on a part of the private data that no other teacher sees (Papernot et al.,
2017, 2018). A query is an input that all of them label. Somebody who changes one record changes
one teacher, so in each query at most one vote moves: one count falls by 1 and another rises by 1.
The answer is the label with the largest noisy count:

    LNMax  n_j + Laplace(1 / gamma)       costs at most 2 gamma a query,
    GNMax  n_j + Normal(0, sigma^2)       has Rényi divergence order / sigma^2 a query.

Where teachers agree, the answer hardly depends on one of them, and costs less than that: such an
analysis is *data-dependent*. Its epsilon is computed from the votes and so is a secret itself, to
be released with noise or not at all (`release_epsilon`).

Votes are whole numbers: one query, of shape (classes,), or several, of shape (queries, classes).
A data-dependent bound at votes D bounds the divergence of D from its neighbours, in this direction.
Conversions to epsilon use Google's dp-accounting, which comes with ``pip install dpnotes[train]``.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpnotes import exponential_mechanism
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
from dpnotes._coins import discrete_gaussian, discrete_laplace
from dpnotes.release import Release

NOISES = ("laplace", "gaussian", "gumbel")
ERRORS = ("bound", "exact")
CONVERSIONS = ("improved", "classic")
COMPOSITIONS = ("paper", "moments", "rdp", "exact")
GNSS_COSTS = ("exact", "published")
# The orders that the analysis of the 2018 paper searched.
DEFAULT_ORDERS = (*np.arange(2, 101, 0.5).tolist(), *np.geomspace(100, 500, 100).tolist())

_MOST_VOTES = 2**31 - 1
_LARGEST_ORDER = 1e100  # its square is a double
_QUERIES = 1 << 14  # in memory at a time
_CELLS = 1 << 15  # queries times orders that fit a second-level cache
_FEW = 32  # classes up to which comparing with each is faster than sorting into bins


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """What answering has cost; ``float(cost)`` is epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy loss, in nats.
    delta : float
        The probability with which the loss may be larger.
    order : float or None
        The order at which epsilon is smallest, out of those given; None where there is none.
    answered : float
        How many queries are answered; an expectation where noise decides which.

    Examples
    --------
    >>> float(PrivacyCost(1.5, 1e-5, 20.0, 100.0))
    1.5
    """

    epsilon: float
    delta: float
    order: float | None
    answered: float

    def __float__(self) -> float:
        """Return epsilon."""
        return self.epsilon


# Votes, and who wins them.


def partition(
    n: int, teachers: int, *, rng: np.random.Generator | int | None = None
) -> list[np.ndarray]:
    """Deal records out to teachers at random; each record goes to one teacher alone.

    Parameters
    ----------
    n : int
        The number of records, at least one a teacher.
    teachers : int
        The number of teachers, at least 1.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    list of ndarray of int64
        For each teacher the sorted indices of its records. Sizes differ by at most 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> [part.size for part in partition(10, 3, rng=0)]
    [4, 3, 3]
    """
    teachers = check_integer("teachers", teachers, low=1, high=2**40)
    n = check_integer("n", n, low=teachers, high=2**40)
    order = np.random.default_rng(rng).permutation(n)
    return [np.sort(part) for part in np.array_split(order, teachers)]


def count_votes(predictions: ArrayLike, classes: int) -> np.ndarray:
    """Count for each query how many teachers vote for each class.

    Parameters
    ----------
    predictions : array_like of int in [0, classes), shape (teachers,) or (teachers, queries)
        The label that each teacher gives to each query.
    classes : int
        The number of classes, at least 2.

    Returns
    -------
    ndarray of int64, shape (classes,) or (queries, classes)
        The votes; every row sums to the number of teachers.

    Raises
    ------
    ValueError, TypeError
        If there is no prediction, one is not a class, or a parameter is of the wrong kind.

    Examples
    --------
    >>> count_votes([[0, 2], [0, 1], [1, 2]], 3)
    array([[2, 1, 0],
           [0, 1, 2]])
    """
    classes = check_integer("classes", classes, low=2, high=2**31)
    predictions = check_categories("predictions", predictions, classes)
    if predictions.ndim not in (1, 2):
        raise ValueError(
            f"predictions must have one or two dimensions, got shape {predictions.shape}"
        )
    table = predictions.reshape(predictions.shape[0], -1)
    small = np.uint8 if classes <= 256 else np.int64
    votes = np.zeros((table.shape[1], classes), dtype=np.int64)
    columns = max(1, 2**19 // min(255, table.shape[0]))
    for start in range(0, table.shape[1], columns):
        block = slice(start, start + columns)
        # 255 teachers at a time, so that a byte holds their count.
        for first in range(0, table.shape[0], 255):
            votes[block] += _count(table[first : first + 255, block].astype(small), classes)
    return votes[0] if predictions.ndim == 1 else votes


def _count(labels: np.ndarray, classes: int) -> np.ndarray:
    """Count the labels in each column of at most 255 rows."""
    queries = labels.shape[1]
    if classes > _FEW:
        flat = labels.astype(np.intp) + classes * np.arange(queries)
        return np.bincount(flat.ravel(), minlength=classes * queries).reshape(queries, classes)
    counts = [np.add.reduce((labels == j).view(np.uint8), dtype=np.uint8) for j in range(classes)]
    return np.stack(counts, axis=1)


def output_distribution(votes: ArrayLike, scale: float, *, noise: str = "laplace") -> np.ndarray:
    """Return the exact law of the label with the largest noisy count.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; with two dimensions, a row for each query or possible data set.
    scale : float
        The scale of the noise, from 1e-9 to 1e9 votes: 1 / gamma for Laplace noise, sigma for
        Gaussian noise.
    noise : {"laplace", "gaussian", "gumbel"}
        The noise added to each count. With Gumbel noise this is the exponential mechanism.

    Returns
    -------
    ndarray of the shape of `votes`
        Probabilities; each row sums to 1.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Class j wins with probability ∫ f(x - n_j) Π_{k≠j} F(x - n_k) dx, for noise of density f and
    distribution F. All terms are positive and summed as logarithms, so that small probabilities
    have the relative precision of large ones, about 1e-12. A class so far behind that it wins
    less often than about once in 1e290 is taken to be a little nearer: no probability is 0.

    Examples
    --------
    >>> output_distribution([30, 20], scale=20.0).round(6)
    array([0.620918, 0.379082])
    """
    table, single = _check_votes(votes, at_least=1)
    scale = _check_scale("scale", scale)
    check_choice("noise", noise, NOISES)
    if noise == "gumbel":
        # An epsilon of 2 and this sensitivity give the weights exp(votes / scale).
        law = exponential_mechanism.output_distribution(table, 2.0, sensitivity=scale)
    else:
        log_law = _log_law(table, scale, noise)
        law = np.exp(log_law - special.logsumexp(log_law, axis=1, keepdims=True))
    return law[0] if single else law


def _log_law(table: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the logarithm of the law of every row."""
    rows, back = np.unique(table, axis=0, return_inverse=True)
    laws = np.empty(rows.shape)
    for i, row in enumerate(rows):
        standing = np.maximum((row - row.max()) / scale, -_furthest(noise, row.size))
        rule = _laplace_rule if noise == "laplace" else _gaussian_rule
        laws[i] = _log_integrals(standing, *rule(standing), _LOG_LAWS[noise])
    return laws[back.reshape(-1)]


def _log_integrals(
    standing: np.ndarray, points: np.ndarray, log_weights: np.ndarray, log_laws: Callable
) -> np.ndarray:
    """Return the logarithm of the probability that each class wins, in constant memory."""
    total = np.full(standing.size, -np.inf)
    rows = max(1, 2**18 // standing.size)
    for start in range(0, points.size, rows):
        block = slice(start, start + rows)
        log_density, log_below = log_laws(points[block, None] - standing)
        log_terms = log_density - log_below + log_below.sum(axis=1, keepdims=True)
        here = special.logsumexp(log_terms + log_weights[block, None], axis=0)
        total = np.logaddexp(total, here)
    return total


def _laplace_rule(standing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights of Gauss rules between kinks; all counts are at most 0."""
    corners = np.unique(np.append(standing, (standing.min() - 40, 40.0)))
    # The integrand is a sum of exponentials of rates up to the number of classes.
    longest = min(2.0, 20 / standing.size)
    panels = np.maximum(1, np.ceil(np.diff(corners) / longest)).astype(int)
    width = np.repeat(np.diff(corners) / panels, panels)
    left = np.concatenate(
        [
            np.linspace(a, b, k, endpoint=False)
            for a, b, k in zip(corners[:-1], corners[1:], panels, strict=True)
        ]
    )
    nodes, weights = np.polynomial.legendre.leggauss(20)
    points = left[:, None] + width[:, None] * (nodes + 1) / 2
    return points.ravel(), np.log(width[:, None] * weights / 2).ravel()


def _gaussian_rule(standing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights of the trapezoidal rule, which is best for smooth bells."""
    step = 1 / 8
    points = np.arange(standing.min() - 10, 10 + step, step)
    return points, np.full(points.size, math.log(step))


def _log_laplace(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = np.exp(-np.abs(x)) / 2
    return -np.abs(x) - math.log(2), np.where(x < 0, x - math.log(2), np.log1p(-half))


def _log_gaussian(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -x * x / 2 - math.log(2 * math.pi) / 2, special.log_ndtr(x)


_LOG_LAWS = {"laplace": _log_laplace, "gaussian": _log_gaussian}


def _furthest(noise: str, classes: int) -> float:
    """Return how many scales behind all others a class still has a probability that is a double."""
    if noise == "laplace":
        return 660.0
    # It rises, and the others fall, by what is likeliest together.
    return math.sqrt(2 * 660 * classes / (classes - 1))


# The mechanisms. Votes and noise are whole numbers of steps of a public grid.


def lnmax(
    votes: ArrayLike, gamma: float, *, rng: np.random.Generator | int | None = None
) -> int | np.ndarray:
    """Draw the label with the largest count after Laplace noise of scale 1 / gamma.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9; a query costs at most 2 gamma.
        A *smaller* gamma is more private.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    int, or ndarray of int64 of shape (queries,)
        The winning labels.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    The noise is discrete Laplace noise, drawn with exact coins on a grid of at most a millionth of
    its scale (or 2^-30 votes, if that is more); a tie is decided by lot. Sums of whole numbers
    leave no trace in their last digits, as sums of floats do (Mironov, 2012), and each query costs
    at most 2 gamma, up to 1e-13 nats for the rounded odds of the coins. From a scale of 0.001 votes
    on, the law is that of `output_distribution` up to about 1e-12. Noise beyond 1,400 scales
    never comes: exact noise would be there with a probability below 1e-304.

    The draws are as good as numpy's generator, which is made for simulation: this is a teaching
    implementation and not one for secrets under attack.

    Examples
    --------
    >>> lnmax([3, 240, 7], gamma=0.05, rng=0)
    1
    """
    table, single = _check_votes(votes, at_least=1)
    scale = 1 / _check_scale("gamma", gamma)
    winners = _noisy_winners(table, scale, discrete_laplace, np.random.default_rng(rng))
    return int(winners[0]) if single else winners


def gnmax(
    votes: ArrayLike, sigma: float, *, rng: np.random.Generator | int | None = None
) -> int | np.ndarray:
    """Draw the label with the largest count after Gaussian noise of deviation sigma.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, in votes, from 1e-9 to 1e9.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    int, or ndarray of int64 of shape (queries,)
        The winning labels.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    As in `lnmax`, with discrete Gaussian noise, whose Rényi divergence under shifts by whole steps
    is at most that of Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Examples
    --------
    >>> gnmax([[3, 240, 7], [245, 1, 4]], sigma=20, rng=0)
    array([1, 0])
    """
    table, single = _check_votes(votes, at_least=1)
    sigma = _check_scale("sigma", sigma)
    winners = _noisy_winners(table, sigma, discrete_gaussian, np.random.default_rng(rng))
    return int(winners[0]) if single else winners


def confident_gnmax(
    votes: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    *,
    rng: np.random.Generator | int | None = None,
) -> int | np.ndarray:
    """Answer with GNMax where the largest count plus noise reaches a threshold.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma_threshold, sigma_answer : float
        Standard deviations, from 1e-9 to 1e9, of the noise on the largest count and on all counts.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    int, or ndarray of int64 of shape (queries,)
        The winning labels; -1 where the query is not answered.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Algorithm 1 of Papernot et al. (2018); noise as in `gnmax`. To stop after so many answers, as
    `gnmax_data_independent_epsilon` supposes, ask one query at a time, or drop all later answers.

    Examples
    --------
    >>> confident_gnmax([[3, 240, 7], [90, 80, 80]], 200, 15, 4, rng=0)
    array([ 1, -1])
    """
    table, single = _check_votes(votes, at_least=1)
    threshold, sigma_threshold, sigma_answer = _check_confident(
        threshold, sigma_threshold, sigma_answer
    )
    rng = np.random.default_rng(rng)
    answers = np.full(len(table), -1)
    sure = _reaches(table, np.zeros(table.shape), threshold, sigma_threshold, rng)
    answers[sure] = _noisy_winners(table[sure], sigma_answer, discrete_gaussian, rng)
    return int(answers[0]) if single else answers


def interactive_gnmax(
    votes: ArrayLike,
    student: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    confidence: float,
    *,
    rng: np.random.Generator | int | None = None,
) -> int | np.ndarray:
    """Answer with GNMax where the teachers disagree enough with what the student thinks.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    student : array_like of the shape of `votes`
        The student's probabilities of the classes; they depend on earlier answers alone.
    threshold : float
        How many votes more than the student expects, after noise, are worth an answer; from -1e9
        to 1e9.
    sigma_threshold, sigma_answer : float
        Standard deviations, from 1e-9 to 1e9, of the noise on the largest excess and on all counts.
    confidence : float
        Where the teachers do not answer, the student keeps its own likeliest label if its
        probability is above this, strictly between 0 and 1.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    int, or ndarray of int64 of shape (queries,)
        Labels, of the teachers or of the student itself; -1 where there is none.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Algorithm 2 of Papernot et al. (2018): the threshold is compared with the largest of
    n_j - M p_j, for M teachers and the student's probabilities p; noise as in `gnmax`. The
    expectation M p_j is rounded to the grid of the noise.

    Examples
    --------
    >>> interactive_gnmax([3, 240, 7], [0.0, 0.99, 0.01], 150, 15, 4, 0.9, rng=0)
    1
    """
    table, single = _check_votes(votes, at_least=1)
    student = _check_student(student, table, single)
    threshold, sigma_threshold, sigma_answer = _check_confident(
        threshold, sigma_threshold, sigma_answer
    )
    confidence = check_probability("confidence", confidence)
    rng = np.random.default_rng(rng)
    own = np.where(student.max(axis=1) > confidence, student.argmax(axis=1), -1)
    expected = student * table.sum(axis=1, keepdims=True)
    news = _reaches(table, expected, threshold, sigma_threshold, rng)
    own[news] = _noisy_winners(table[news], sigma_answer, discrete_gaussian, rng)
    return int(own[0]) if single else own


def _grid(scale: float) -> int:
    """Return how many halvings of a vote give steps of at most a millionth of the scale."""
    return min(30, max(0, math.ceil(20 - math.log2(scale))))


def _noisy_winners(
    table: np.ndarray, scale: float, noise: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Add noise to every count, and return the place of the largest one in each row."""
    halvings = _grid(scale)
    winners = np.empty(len(table), dtype=np.int64)
    rows = max(1, 2**17 // table.shape[1])
    for start in range(0, len(table), rows):
        block = table[start : start + rows] << halvings
        block += noise(block.size, scale * 2.0**halvings, rng).reshape(block.shape)
        best = block == block.max(axis=1, keepdims=True)
        winners[start : start + rows] = best.argmax(axis=1)
        for tie in np.flatnonzero(np.count_nonzero(best, axis=1) > 1):
            winners[start + tie] = rng.choice(np.flatnonzero(best[tie]))
    return winners


def _reaches(
    table: np.ndarray,
    expected: np.ndarray,
    threshold: float,
    sigma: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Say where the largest excess over the expected counts, plus noise, reaches the threshold."""
    steps = 2.0 ** _grid(sigma)
    # 2^62 steps are twice the largest count: where more are expected, the excess is no maximum.
    expected = np.rint(np.minimum(expected * steps, 2.0**62))
    excess = (table << _grid(sigma)) - expected.astype(np.int64)
    noisy = excess.max(axis=1) + discrete_gaussian(len(table), sigma * steps, rng)
    return noisy >= math.ceil(threshold * steps)


# What an answer costs: the chance of another label than the plurality's.


def lnmax_error_probability(
    votes: ArrayLike, gamma: float, *, method: str = "bound"
) -> float | np.ndarray:
    """Return the probability that LNMax answers another label than the one with most votes.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    method : {"bound", "exact"}
        "bound" adds up over the other classes the probability of beating the plurality, which is
        exact for two classes; "exact" integrates.

    Returns
    -------
    float, or ndarray of shape (queries,)
        The probability q; a bound is at most 1 - 1 / classes.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Lemma 4 of Papernot et al. (2017): a class that is D votes behind beats the plurality with
    probability (2 + gamma D) / (4 exp(gamma D)). With several classes in front, the first of
    them counts as the plurality.

    Examples
    --------
    >>> round(lnmax_error_probability([30, 20], 0.05), 9)
    0.379081662
    """
    table, single = _check_votes(votes)
    gamma = _check_scale("gamma", gamma)
    q = np.exp(_log_error(table, 1 / gamma, "laplace", check_choice("method", method, ERRORS)))
    return float(q[0]) if single else q


def gnmax_log_error_probability(
    votes: ArrayLike, sigma: float, *, method: str = "bound"
) -> float | np.ndarray:
    """Return the log-probability that GNMax answers another label than the one with most votes.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    method : {"bound", "exact"}
        "bound" adds up over the other classes the probability of beating the plurality, which is
        exact for two classes; "exact" integrates.

    Returns
    -------
    float, or ndarray of shape (queries,)
        The natural logarithm of q; a bound on q is at most 1 - 1 / classes.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Proposition 7 of Papernot et al. (2018): a class that is D votes behind beats the plurality
    with probability erfc(D / (2 sigma)) / 2.

    Examples
    --------
    >>> round(gnmax_log_error_probability([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 40), 8)
    -6.97187687
    """
    table, single = _check_votes(votes)
    sigma = _check_scale("sigma", sigma)
    log_q = _log_error(table, sigma, "gaussian", check_choice("method", method, ERRORS))
    return float(log_q[0]) if single else log_q


def _log_error(table: np.ndarray, scale: float, noise: str, method: str) -> np.ndarray:
    """Return log q of every row of votes."""
    winner = table.argmax(axis=1)[:, None]
    behind = table.max(axis=1, keepdims=True) - table
    np.put_along_axis(behind, winner, _MOST_VOTES + 1, axis=1)
    closest = behind.min(axis=1, initial=_MOST_VOTES + 1)
    log_beats = _log_beats(closest, scale, noise)
    # Relative to the runner-up's, as all of them may be too small for a double.
    others = np.exp(_log_beats(behind, scale, noise) - log_beats[:, None])
    np.put_along_axis(others, winner, 0.0, axis=1)
    bound = np.minimum(log_beats + np.log(others.sum(axis=1)), math.log1p(-1 / table.shape[1]))
    if method == "bound":
        return bound
    log_law = _log_law(table, scale, noise)
    np.put_along_axis(log_law, winner, -np.inf, axis=1)
    return np.minimum(special.logsumexp(log_law, axis=1), bound)


def _log_beats(behind: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the log-probability of beating one that is so many votes ahead; from a table."""
    largest = int(behind.max(initial=0, where=behind <= _MOST_VOTES))
    if largest < behind.size:
        lookup = _log_beats_each(np.arange(largest + 1) / scale, noise)
        return lookup[np.minimum(behind, largest)]
    return _log_beats_each(behind / scale, noise)


def _log_beats_each(gap: np.ndarray, noise: str) -> np.ndarray:
    if noise == "laplace":
        return np.log((2 + gap) / 4) - gap
    return np.maximum(special.log_ndtr(-gap / math.sqrt(2)), -1e300)


# Moments: what the chance of another label says about all neighbours.


def lnmax_log_moments(
    votes: ArrayLike, gamma: float, orders: ArrayLike, *, method: str = "bound"
) -> np.ndarray | float:
    """Bound the log-moments of the privacy loss of LNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        The moments l, positive: the Rényi orders less 1.
    method : {"bound", "exact"}
        How the error probability is had; see `lnmax_error_probability`.

    Returns
    -------
    ndarray of shape (orders,), or float
        alpha(l), in nats. Those of further queries, or of another worker's, are added.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Theorem 3 of Papernot et al. (2017): for q of at most 1 / (exp(2 gamma) + 1),

        alpha(l) <= log((1 - q) ((1 - q) / (1 - exp(2 gamma) q))^l + q exp(2 gamma l)),

    and always alpha(l) <= min(2 gamma^2 l (l + 1), 2 gamma l). The smallest is taken. Memory does
    not grow with the number of queries.

    Examples
    --------
    >>> lnmax_log_moments([30, 20, 5], 0.05, [1, 2, 3]).round(12)
    array([0.01, 0.03, 0.06])
    """
    table, _ = _check_votes(votes)
    loss = 2 * _check_scale("gamma", gamma)
    moments = _check_orders(orders, above=0)
    check_choice("method", method, ERRORS)
    caps = np.minimum(loss**2 / 2 * moments * (moments + 1), loss * moments)
    total = np.zeros(moments.size)
    for block in _blocks(table):
        log_q = _log_error(block, 2 / loss, "laplace", method)
        total += _sum_moments(log_q, None, caps, moments, lambda log_q: _pure_rates(log_q, loss))
    return _as_given(total, orders)


def _pure_rates(log_q: np.ndarray, loss: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates of Theorem 3, and the last moment for which it holds: all or none."""
    holds = log_q <= -np.logaddexp(loss, 0)
    log_q = np.where(holds, log_q, -np.inf)
    near = _near_rate(log_q, loss)
    return near, np.full(near.shape, loss), np.where(holds, np.inf, 0)


def gnmax_rdp(
    votes: ArrayLike, sigma: float, orders: ArrayLike, *, method: str = "bound"
) -> np.ndarray | float:
    """Bound the Rényi divergence of GNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1.
    method : {"bound", "exact"}
        How the error probability is had; see `gnmax_log_error_probability`.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Theorem 6 of Papernot et al. (2018) with the orders of its Proposition 10, mu2 = sigma
    sqrt(log(1 / q)) and mu1 = mu2 + 1; order / sigma^2 where that is smaller or the theorem does
    not apply. Memory does not grow with the number of queries.

    Examples
    --------
    >>> gnmax_rdp([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 40, [2, 8]).round(8)
    array([0.00026472, 0.00033647])
    """
    table, _ = _check_votes(votes)
    sigma = _check_scale("sigma", sigma)
    orders_ = _check_orders(orders, above=1)
    check_choice("method", method, ERRORS)
    total = np.zeros(orders_.size)
    for block in _blocks(table):
        log_q = _log_error(block, sigma, "gaussian", method)
        total += _gaussian_rdp(log_q, sigma, orders_)
    return _as_given(total, orders)


def _gaussian_rdp(
    log_q: np.ndarray, sigma: float, orders: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the divergences of GNMax at every order, summed over error probabilities."""
    moments = orders - 1
    caps = moments * (orders / sigma) / sigma
    log_moments = _sum_moments(
        log_q, weights, caps, moments, lambda log_q: _gaussian_rates(log_q, sigma)
    )
    return log_moments / moments


def _gaussian_rates(log_q: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates of Theorem 6, and the last moment for which it holds."""
    high = sigma * np.sqrt(-log_q)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        loss, next_loss = high / sigma / sigma, (high + 1) / sigma / sigma
        limit = (high - 1) * loss - high * (np.log1p(1 / high) - np.log1p(-1 / high))
        holds = (high > 1) & (log_q <= limit) & (log_q + loss < 0)
        near = _near_rate(log_q, loss - (log_q + loss) / high)
        far = next_loss - log_q / high
    return np.where(holds, near, 0), np.where(holds, far, 0), np.where(holds, high, 0)


def _near_rate(log_q: np.ndarray, gain: np.ndarray | float) -> np.ndarray:
    """Return log((1 - q) / (1 - q exp(gain))), without a difference of two numbers near 1."""
    odds = log_q - np.log1p(-np.exp(log_q)) + gain + np.log(-np.expm1(-gain))
    return -np.log1p(-np.minimum(np.exp(odds), 1 - 2.0**-53))


def _sum_moments(
    log_q: np.ndarray,
    weights: np.ndarray | None,
    caps: np.ndarray,
    moments: np.ndarray,
    rates: Callable,
) -> np.ndarray:
    """Sum min(cap, log((1 - q) exp(near l) + q exp(far l))) over queries, for each moment l.

    Queries of one and the same q are taken together, and so are those to which no theorem applies:
    there the cap counts.
    """
    log_q, weights = _together(log_q, weights)
    near, far, reach = rates(log_q)
    total = np.zeros(moments.size)
    rows = max(1, _CELLS // moments.size)
    for start in range(0, log_q.size, rows):
        block = slice(start, start + rows)
        some = moments <= reach[block].max()
        total[~some] += caps[~some] * weights[block].sum()
        l = moments[some]
        if l.size:
            main = _log_mixture(log_q[block, None], near[block, None] * l, far[block, None] * l)
            np.putmask(main, l > reach[block, None], np.inf)
            total[some] += weights[block] @ np.minimum(main, caps[some], out=main)
    return total


def _log_mixture(log_q: np.ndarray, near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Return log((1 - q) exp(near) + q exp(far)), with all its digits even where it is tiny."""
    gain = far - near
    with np.errstate(over="ignore", invalid="ignore"):
        mixture = np.expm1(gain)
        mixture *= np.exp(log_q)
        mixture = np.log1p(mixture, out=mixture)
    mixture += near
    if gain.max(initial=0) > 700 or log_q.min(initial=0) < -700:
        # Too large or too small for a double, though the product need not be.
        log_q = np.broadcast_to(log_q, gain.shape)
        extreme = (gain > 700) | (log_q < -700)
        grown = np.logaddexp(0, log_q[extreme] + gain[extreme])
        mixture[extreme] = np.broadcast_to(near, gain.shape)[extreme] + grown
    return mixture


def _together(log_q: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the different entries, ascending, and the weight of each: a count by default."""
    if weights is None:
        distinct, counts = np.unique(log_q, return_counts=True)
        return distinct, counts.astype(float)
    distinct, place = np.unique(log_q, return_inverse=True)
    return distinct, np.bincount(place, weights, distinct.size)


def _as_given(totals: np.ndarray, orders: ArrayLike) -> np.ndarray | float:
    return totals if np.ndim(orders) else float(totals[0])


def _blocks(table: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(table), _QUERIES):
        yield table[start : start + _QUERIES]


def confident_gnmax_rdp(
    votes: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    orders: ArrayLike,
    *,
    student: ArrayLike | None = None,
    answered: ArrayLike | None = None,
) -> np.ndarray | float:
    """Bound the Rényi divergence of confident or interactive GNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma_threshold, sigma_answer : float
        Standard deviations, from 1e-9 to 1e9, of the noise on the largest count and on all counts.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1.
    student : array_like of the shape of `votes`, optional
        The student's probabilities, for interactive GNMax.
    answered : array_like of bool, shape (queries,), optional
        Which queries were answered. By default each answer counts with its probability, as in the
        table of the 2018 paper: that is the cost expected before anything is drawn.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    The largest count changes by at most 1, so deciding costs what GNMax costs with sqrt(2) times
    the noise, where q is the smaller probability of the two decisions. Neither cost is a bound
    fixed in advance, as noise decides how many answers there are; cap that number for one, and see
    `gnmax_data_independent_epsilon`.

    Examples
    --------
    >>> confident_gnmax_rdp([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 200, 150, 40, [2, 14]).round(6)
    array([0.000187, 0.00056 ])
    """
    table, single = _check_votes(votes)
    orders_ = _check_orders(orders, above=1)
    rdp, _ = _confident(
        table,
        *_check_confident(threshold, sigma_threshold, sigma_answer),
        orders_,
        None if student is None else _check_student(student, table, single),
        None if answered is None else _check_answered(answered, table, single),
    )
    return _as_given(rdp, orders)


def _confident(
    table: np.ndarray,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    orders: np.ndarray,
    student: np.ndarray | None,
    answered: np.ndarray | None,
) -> tuple[np.ndarray, float]:
    """Return the divergences at every order, and the number of answers, perhaps expected."""
    rdp, count = np.zeros(orders.size), 0.0
    for start in range(0, len(table), _QUERIES):
        block = slice(start, start + _QUERIES)
        votes = table[block]
        share = 0.0 if student is None else student[block] * votes.sum(axis=1, keepdims=True)
        margin = ((votes - share).max(axis=1) - threshold) / sigma_threshold
        # Of the two decisions, the less likely one.
        log_q = special.log_ndtr(-np.abs(margin))
        rdp += _gaussian_rdp(log_q, math.sqrt(2) * sigma_threshold, orders)
        weights = special.ndtr(margin) if answered is None else answered[block].astype(float)
        log_q = _log_error(votes, sigma_answer, "gaussian", "bound")
        rdp += _gaussian_rdp(log_q, sigma_answer, orders, weights)
        count += float(weights.sum())
    return rdp, count


# From moments to epsilon.


def epsilon_from_rdp(
    rdp: ArrayLike,
    orders: ArrayLike,
    delta: float,
    *,
    conversion: str = "improved",
    answered: float = math.nan,
) -> PrivacyCost:
    """Convert Rényi divergences to the epsilon that they promise at a delta.

    Parameters
    ----------
    rdp : array_like of float, shape (orders,)
        Divergences, in nats, not negative.
    orders : array_like of float, shape (orders,)
        Their orders, above 1.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    conversion : {"improved", "classic"}
        "improved" is that of Google's dp-accounting; "classic" adds log(1 / delta) / (order - 1),
        as the papers did.
    answered : float
        How many queries were answered, for the record.

    Returns
    -------
    PrivacyCost
        The smallest epsilon over the orders; 0 where all divergences are 0.

    Raises
    ------
    ValueError, TypeError
        If the lengths differ, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Mironov (2017), Proposition 3; Canonne, Kamath and Steinke (2020), Proposition 12:
    rdp + log(1 - 1 / order) - log(order delta) / (order - 1).

    Examples
    --------
    >>> cost = epsilon_from_rdp([0.1, 0.8], [2, 16], 1e-5, conversion="classic")
    >>> round(cost.epsilon, 6), cost.order
    (1.567528, 16.0)
    """
    orders = np.atleast_1d(_check_orders(orders, above=1))
    divergences = _check_divergences(rdp, orders)
    delta = check_probability("delta", delta)
    check_choice("conversion", conversion, CONVERSIONS)
    answered = _check_number_answered(answered)
    if not divergences.any():
        return PrivacyCost(0.0, delta, float(orders[0]), answered)
    if conversion == "classic":
        epsilons = divergences - math.log(delta) / (orders - 1)
        best = int(epsilons.argmin())
        return PrivacyCost(float(epsilons[best]), delta, float(orders[best]), answered)
    from dp_accounting.rdp import compute_epsilon

    epsilon, order = compute_epsilon(orders.tolist(), divergences.tolist(), delta)
    return PrivacyCost(float(epsilon), delta, float(order), answered)


def lnmax_epsilon(
    votes: ArrayLike,
    gamma: float,
    delta: float,
    *,
    orders: ArrayLike = range(1, 9),
    conversion: str = "improved",
    method: str = "bound",
) -> PrivacyCost:
    """Return the data-dependent cost of answering queries with LNMax.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; no query costs nothing.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    orders : array_like of float, shape (orders,)
        The moments l to search: the Rényi orders less 1.
    conversion : {"improved", "classic"}
        See `epsilon_from_rdp`.
    method : {"bound", "exact"}
        How the error probability is had; see `lnmax_error_probability`.

    Returns
    -------
    PrivacyCost
        Its order is the best moment out of `orders`. It depends on the votes: do not publish it.
        Where teachers disagree, `lnmax_data_independent_epsilon` may be smaller, and holds too.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> cost = lnmax_epsilon([[250, 0, 0]] * 100, 0.05, 1e-5, conversion="classic")
    >>> round(cost.epsilon, 6), cost.order
    (1.439814, 8.0)
    """
    table, _ = _check_votes(votes)
    moments = np.atleast_1d(_check_orders(orders, above=0))
    log_moments = lnmax_log_moments(table, gamma, moments, method=method)
    cost = epsilon_from_rdp(
        log_moments / moments, moments + 1, delta, conversion=conversion, answered=len(table)
    )
    best = moments[np.abs(moments + 1 - cost.order).argmin()]
    return PrivacyCost(cost.epsilon, cost.delta, float(best), cost.answered)


def confident_gnmax_epsilon(
    votes: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    delta: float,
    *,
    orders: ArrayLike = DEFAULT_ORDERS,
    conversion: str = "improved",
    student: ArrayLike | None = None,
    answered: ArrayLike | None = None,
) -> PrivacyCost:
    """Return the data-dependent cost of confident or interactive GNMax.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; no query costs nothing.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma_threshold, sigma_answer : float
        Standard deviations, from 1e-9 to 1e9, of the noise on the largest count and on all counts.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    orders : array_like of float, shape (orders,)
        The Rényi orders to search.
    conversion : {"improved", "classic"}
        See `epsilon_from_rdp`.
    student : array_like of the shape of `votes`, optional
        The student's probabilities, for interactive GNMax.
    answered : array_like of bool, shape (queries,), optional
        Which queries were answered; see `confident_gnmax_rdp`. By default the divergence is an
        expectation over that, which is what the 2018 paper reports and no bound of its own.

    Returns
    -------
    PrivacyCost
        It depends on the votes: do not publish it.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> cost = confident_gnmax_epsilon([[240, 10]] * 100, 200, 150, 40, 1e-5, orders=[10, 20, 30])
    >>> round(cost.epsilon, 4), cost.order, round(cost.answered, 2)
    (0.3184, 30.0, 60.51)
    """
    table, single = _check_votes(votes)
    orders = np.atleast_1d(_check_orders(orders, above=1))
    delta = check_probability("delta", delta)
    check_choice("conversion", conversion, CONVERSIONS)
    rdp, count = _confident(
        table,
        *_check_confident(threshold, sigma_threshold, sigma_answer),
        orders,
        None if student is None else _check_student(student, table, single),
        None if answered is None else _check_answered(answered, table, single),
    )
    return epsilon_from_rdp(rdp, orders, delta, conversion=conversion, answered=count)


def lnmax_data_independent_epsilon(
    queries: int, gamma: float, delta: float, *, method: str = "paper"
) -> PrivacyCost:
    """Return what LNMax costs whatever the votes.

    Parameters
    ----------
    queries : int
        The number of queries T, from 0 to 10**6; none cost nothing.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    method : {"paper", "moments", "rdp", "exact"}
        "paper" is 4 T gamma^2 + 2 gamma sqrt(2 T log(1 / delta)); "moments" has 2 T gamma^2, which
        is what the moments give; "rdp" converts them by dp-accounting; "exact" is the smallest
        epsilon that holds for every mechanism of T queries at 2 gamma each.

    Returns
    -------
    PrivacyCost
        All four hold; the first is the loosest.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    "moments" minimises (2 T gamma^2 l (l + 1) + log(1 / delta)) / l over l. "exact" solves, for
    i true answers out of T under randomized response at loss 2 gamma,

        delta = sum_i Bin(i) max(0, 1 - exp(epsilon - (2 i - T) 2 gamma)),

    after Kairouz, Oh and Viswanath (2015).

    Examples
    --------
    >>> for method in ("paper", "moments", "rdp", "exact"):
    ...     cost = lnmax_data_independent_epsilon(100, 0.05, 1e-5, method=method)
    ...     print(f"{float(cost):.4f}")
    5.7985
    5.2985
    4.7284
    4.3068
    """
    queries = check_integer("queries", queries, low=0, high=10**6)
    gamma = _check_scale("gamma", gamma)
    delta = check_probability("delta", delta)
    check_choice("method", method, COMPOSITIONS)
    if queries == 0:
        return PrivacyCost(0.0, delta, None, 0.0)
    tail = -math.log(delta)
    drift = 2 * queries * gamma**2
    if method in ("paper", "moments"):
        base = drift * 2 if method == "paper" else drift
        order = None if method == "paper" else 1 + math.sqrt(tail / drift)
        epsilon = base + 2 * gamma * math.sqrt(2 * queries * tail)
        return PrivacyCost(epsilon, delta, order, float(queries))
    if method == "exact":
        epsilon = _composed_epsilon(queries, 2 * gamma, delta)
        return PrivacyCost(epsilon, delta, None, float(queries))
    orders = 1 + np.geomspace(1e-2, 1e12, 4000)
    rdp = queries * np.minimum(2 * gamma**2 * orders, 2 * gamma)
    return epsilon_from_rdp(rdp, orders, delta, answered=queries)


def _composed_epsilon(queries: int, loss: float, delta: float) -> float:
    """Return the epsilon at `delta` of so many runs of randomized response, each at `loss`."""
    truths = np.arange(queries + 1)
    log_pmf = special.gammaln(queries + 1) - special.gammaln(truths + 1)
    log_pmf -= special.gammaln(queries - truths + 1)
    log_pmf -= truths * np.logaddexp(0, -loss) + (queries - truths) * np.logaddexp(0, loss)
    pmf = np.exp(log_pmf)
    losses = (2 * truths - queries) * loss

    def excess(epsilon: float) -> float:
        above = losses > epsilon
        return float(pmf[above] @ -np.expm1(epsilon - losses[above])) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(excess, 0.0, queries * loss, xtol=1e-300, rtol=1e-12))


def gnmax_data_independent_epsilon(
    answered: int,
    sigma_answer: float,
    delta: float,
    *,
    queries: int = 0,
    sigma_threshold: float | None = None,
) -> PrivacyCost:
    """Return what GNMax costs whatever the votes, if it answers no more queries than this.

    Parameters
    ----------
    answered : int
        How many queries may be answered, fixed in advance.
    sigma_answer : float
        The standard deviation of the noise on all counts, from 1e-9 to 1e9.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    queries : int
        How many queries are compared with a threshold; 0 for plain GNMax.
    sigma_threshold : float, optional
        The standard deviation of the noise on the threshold; needed if there are such queries.

    Returns
    -------
    PrivacyCost
        The exact epsilon of the noisy counts themselves, by dp-accounting.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    Gaussian mechanisms compose to one Gaussian mechanism, of a mean over deviation mu with
    mu^2 = queries / sigma_threshold^2 + 2 answered / sigma_answer^2 (Dong, Roth and Su, 2022).

    Examples
    --------
    >>> round(float(gnmax_data_independent_epsilon(
    ...     286, 40, 1e-5, queries=640, sigma_threshold=150)), 4)
    2.5426
    """
    answered = check_integer("answered", answered, low=0, high=10**9)
    queries = check_integer("queries", queries, low=0, high=10**9)
    sigma_answer = _check_scale("sigma_answer", sigma_answer)
    delta = check_probability("delta", delta)
    if sigma_threshold is None and queries:
        raise ValueError("sigma_threshold must be given with queries, got None")
    deciding = 0.0
    if sigma_threshold is not None:
        deciding = math.sqrt(queries) / _check_scale("sigma_threshold", sigma_threshold)
    mean = math.hypot(deciding, math.sqrt(2 * answered) / sigma_answer)
    if mean == 0:
        return PrivacyCost(0.0, delta, None, 0.0)
    from dp_accounting import get_epsilon_gaussian

    return PrivacyCost(float(get_epsilon_gaussian(1 / mean, delta)), delta, None, float(answered))


# The cost is a secret: how much one teacher changes it, and how to release it.


def gnmax_local_sensitivity(
    votes: ArrayLike, sigma: float, order: float, *, distances: int | None = None
) -> np.ndarray:
    """Bound how much one more teacher changes `gnmax_rdp`, after d teachers have changed already.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    distances : int, optional
        How many distances d = 0, 1, ... are wanted; by default as many as there are teachers.

    Returns
    -------
    ndarray of shape (distances,)
        Bounds in nats, summed over the queries: one teacher votes in all of them.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    Algorithms 3 to 5 of Papernot et al. (2018). One vote takes an error probability q at most to
    (m - 1) / 2 erfc(erfc^-1(2 q / (m - 1)) -+ 1 / sigma), for m classes. They hold where
    `gnmax_sensitivity_conditions` does. For sigma below 2 the released research code ends the
    data-dependent part earlier than Theorem 6 does, and has larger sensitivities.

    Examples
    --------
    >>> gnmax_local_sensitivity([10, 0, 0], 0.5, 1.5, distances=4).round(6)
    array([0.      , 0.      , 0.005907, 3.395894])
    """
    table, _ = _check_votes(votes)
    sigma = _check_scale("sigma", sigma)
    order = _check_order(order)
    distances = _check_distances(distances, table)
    total = np.zeros(distances)
    if distances == 0 or len(table) == 0:
        return total
    curve = _curve(sigma, order, table.shape[1])
    for block in _blocks(table):
        total += curve.local_sensitivities(block, distances)
    return total


class _Curve:
    """The divergence of GNMax at one order, as a function of log q, and what a vote does to it."""

    def __init__(self, sigma: float, order: float, classes: int) -> None:
        self.sigma, self.order, self.classes = sigma, order, classes
        self.cap = order / sigma / sigma
        self.start = self._where_data_stops_helping()
        self.plateau_start = float(self.moved(np.array([self.start]), -1)[0])

    def rdp(self, log_q: np.ndarray) -> np.ndarray:
        """Return the divergence for every log q."""
        moment = self.order - 1
        near, far, reach = _gaussian_rates(log_q, self.sigma)
        log_moment = _log_mixture(log_q, near * moment, far * moment)
        return np.where(moment <= reach, np.minimum(log_moment / moment, self.cap), self.cap)

    def moved(self, log_q: np.ndarray, way: int) -> np.ndarray:
        """Return log q after one vote has moved, at most: up if `way` is 1, down if it is -1."""
        others = math.log(self.classes - 1)
        z = special.ndtri_exp(np.minimum(log_q - others, -1e-300)) + way * math.sqrt(2) / self.sigma
        return np.minimum(others + special.log_ndtr(z), -1e-12)

    def sensitivity(self, log_q: np.ndarray) -> np.ndarray:
        """Return how much one vote changes the divergence, at most."""
        flat = (log_q >= self.plateau_start) & (log_q <= self.start)
        log_q = np.where(flat, self.plateau_start, log_q)
        here = self.rdp(log_q)
        # Just past its start, a vote leads from the plateau to where data stops helping.
        above = np.where(flat, self.cap, self.rdp(self.moved(log_q, 1)))
        return np.maximum(above - here, here - self.rdp(self.moved(log_q, -1)))

    def local_sensitivities(self, votes: np.ndarray, distances: int) -> np.ndarray:
        """Return the bounds at every distance, summed over the rows of votes."""
        votes = -np.sort(-votes, axis=1)
        log_q = _log_error(votes, self.sigma, "gaussian", "bound")
        plateau = float(self.sensitivity(np.array([self.plateau_start]))[0])
        total = np.empty(distances)
        total[0], arrived = self.sensitivity(log_q).sum(), 0
        # Towards the plateau: to more agreement from a tie, to less from agreement.
        tied = log_q > self.start
        for distance in range(1, distances):
            far = np.where(
                tied, (log_q > self.start) & (votes[:, 1] > 0), log_q < self.plateau_start
            )
            arrived += log_q.size - np.count_nonzero(far)
            votes, log_q, tied = votes[far], log_q[far], tied[far]
            if log_q.size:
                votes[:, :2] += np.where(tied, 1, -1)[:, None] * np.array([1, -1])
                votes = -np.sort(-votes, axis=1)
                log_q = _log_error(votes, self.sigma, "gaussian", "bound")
            total[distance] = self.sensitivity(log_q).sum() + arrived * plateau
        return total

    def _where_data_stops_helping(self) -> float:
        """Return the largest log q whose divergence is below the data-independent one."""
        # As far as the largest number of votes leads under the least noise.
        grid = -np.geomspace(1e-9, 1e40, 12_000)
        helps = np.flatnonzero(self.rdp(grid) < self.cap)
        if helps.size == 0:
            return -math.inf
        above, below = (grid[helps[0] - 1] if helps[0] else -1e-12), grid[helps[0]]
        for _ in range(100):
            middle = (above + below) / 2
            if self.rdp(np.array([middle]))[0] < self.cap:
                below = middle
            else:
                above = middle
        return float(below)


_curve = lru_cache(maxsize=64)(_Curve)


def gnmax_sensitivity_conditions(sigma: float, order: float, classes: int) -> tuple[bool, bool]:
    """Say whether the local sensitivities of GNMax are bounded as `gnmax_local_sensitivity` says.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    classes : int
        The number of classes, at least 2.

    Returns
    -------
    tuple of two bools
        Conditions C5 and C6 of Papernot et al. (2018), checked on 20,000 points: the divergence
        grows with q, and so does what a vote adds to it, as far as the data helps.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> gnmax_sensitivity_conditions(20, 25, 10), gnmax_sensitivity_conditions(30, 25, 10)
    ((True, False), (True, True))
    """
    sigma = _check_scale("sigma", sigma)
    order = _check_order(order)
    classes = check_integer("classes", classes, low=2, high=2**31)
    return _conditions(sigma, order, classes)


@lru_cache(maxsize=64)
def _conditions(sigma: float, order: float, classes: int) -> tuple[bool, bool]:
    curve = _curve(sigma, order, classes)
    if curve.start == -math.inf:
        return True, True
    q, moved_q = (
        last * np.geomspace(1e3, 1, 20_000) for last in (curve.start, curve.plateau_start)
    )
    added = curve.rdp(curve.moved(moved_q, 1)) - curve.rdp(moved_q)
    slack = -1e-12 * curve.cap
    return bool(np.all(np.diff(curve.rdp(q)) >= slack)), bool(np.all(np.diff(added) >= slack))


def threshold_local_sensitivity(
    votes: ArrayLike,
    threshold: float,
    sigma: float,
    order: float,
    *,
    distances: int | None = None,
) -> np.ndarray:
    """Bound how much one more teacher changes the cost of deciding, after d teachers have changed.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; each row sums to the number of teachers.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma : float
        The standard deviation of the noise on the largest count, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    distances : int, optional
        How many distances d = 0, 1, ... are wanted; by default as many as there are teachers.

    Returns
    -------
    ndarray of shape (distances,)
        Bounds in nats, summed over the queries. They never fall with the distance.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    The largest count moves by at most one a step. The bound at distance d is the largest at *up to*
    d steps. The released research code takes *exactly* d steps, which is too little once queries
    with peaks at different distances are added up.

    Examples
    --------
    >>> threshold_local_sensitivity([20, 10, 0], 2, 2, 10, distances=3).round(6)
    array([0.160212, 0.207021, 0.207021])
    """
    table, _ = _check_votes(votes)
    threshold = _check_threshold(threshold)
    sigma = _check_scale("sigma", sigma)
    order = _check_order(order)
    distances = _check_distances(distances, table)
    total = np.zeros(distances)
    if distances == 0 or len(table) == 0:
        return total
    teachers = table.sum(axis=1)
    for most in np.unique(teachers):
        tops, counts = np.unique(table[teachers == most].max(axis=1), return_counts=True)
        steps = _threshold_steps(int(most), threshold, sigma, order)
        for top, count in zip(tops, counts, strict=True):
            total += count * _spread(steps, int(top), distances)
    return total


def _threshold_steps(teachers: int, threshold: float, sigma: float, order: float) -> np.ndarray:
    """Return how much one step changes the cost, for every largest count from 0 to `teachers`."""
    margin = (np.arange(teachers + 1) - threshold) / sigma
    rdp = _curve(math.sqrt(2) * sigma, order, 2).rdp(special.log_ndtr(-np.abs(margin)))
    change = np.abs(np.diff(rdp))
    return np.maximum(np.append(change, 0), np.insert(change, 0, 0))


def _spread(steps: np.ndarray, top: int, distances: int) -> np.ndarray:
    """Return the largest entry within every distance of a place."""
    up, down = np.zeros(distances), np.zeros(distances)
    above, below = steps[top:][:distances], steps[top::-1][:distances]
    up[: above.size], down[: below.size] = above, below
    return np.maximum.accumulate(np.maximum(up, down))


def smooth_sensitivity(local_sensitivities: ArrayLike, beta: float) -> float:
    """Return the largest local sensitivity, discounted by exp(-beta) for every teacher.

    Parameters
    ----------
    local_sensitivities : array_like of float, shape (distances,)
        Bounds at distance 0, 1, ..., at least 0; those of several mechanisms are added before.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.

    Returns
    -------
    float
        max_d exp(-beta d) LS_d, in nats.

    Raises
    ------
    ValueError, TypeError
        If a sensitivity is negative or not finite, or a parameter is of the wrong kind.

    Examples
    --------
    >>> smooth_sensitivity([0.0, 1.0, 2.0], beta=math.log(4))
    0.25
    """
    array = as_array("local_sensitivities", local_sensitivities)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"local_sensitivities must be numbers, got {kind_of(array)}")
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array) & (array >= 0)):
        raise ValueError(
            "local_sensitivities must be a list of finite numbers of at least 0, "
            f"got shape {array.shape}"
        )
    beta = check_epsilon(beta, "beta")
    return float((array * np.exp(-beta * np.arange(array.size))).max())


def gnss_rdp(order: float, beta: float, scale: float, *, method: str = "exact") -> float:
    """Return the Rényi divergence of Gaussian noise that is scaled to the smooth sensitivity.

    Parameters
    ----------
    order : float
        The Rényi order, above 1.
    beta : float
        How fast the smooth sensitivity may change from neighbour to neighbour; positive.
    scale : float
        The deviation of the noise, in smooth sensitivities; positive.
    method : {"exact", "published"}
        "published" is Theorem 23 of the 2018 paper as its code has it: *not* a valid bound.

    Returns
    -------
    float
        The divergence, in nats. "exact" is infinite from order 1 / (1 - exp(-2 beta)) on,
        "published" from order 1 / (2 beta) on.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The worst case has a sensitivity of 1 here, of exp(-beta) at the neighbour, and values that far
    apart. With v = 1 - order (1 - exp(-2 beta)) its divergence is

        order exp(-2 beta) / (2 scale^2 v) - (log(v) / 2 + order beta) / (order - 1).

    Examples
    --------
    >>> for method in ("exact", "published"):
    ...     print(f"{gnss_rdp(14, 0.0329, 6.23, method=method):.3f}")
    1.607
    0.518
    """
    order = _check_order(order)
    beta = check_epsilon(beta, "beta")
    scale = check_epsilon(scale, "scale")
    check_choice("method", method, GNSS_COSTS)
    if method == "published":
        if 2 * order * beta >= 1:
            return math.inf
        spread = beta * order - math.log1p(-2 * order * beta) / 2
        return order * math.exp(2 * beta) / scale / scale + spread / (order - 1)
    left = 1 + order * math.expm1(-2 * beta)
    if left <= 0:
        return math.inf
    shift = order * math.exp(-2 * beta) / 2 / scale / scale / left
    return shift - (math.log(left) / 2 + order * beta) / (order - 1)


def release_epsilon(
    votes: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma_answer: float,
    delta: float,
    *,
    answered: ArrayLike,
    order: float,
    beta: float,
    scale: float,
    rng: np.random.Generator | int | None = None,
) -> Release:
    """Release what confident GNMax has cost, with noise that hides any one teacher.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; each row sums to the number of teachers.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma_threshold, sigma_answer : float
        Standard deviations, from 1e-9 to 1e9, of the noise on the largest count and on all counts.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    answered : array_like of bool, shape (queries,)
        Which queries were answered, as everybody saw.
    order : float
        The Rényi order at which the cost is counted, above 1. Like `beta` and `scale` it must be
        chosen without a look at the votes.
    beta : float
        How fast the smooth sensitivity may change; below -log(1 - 1 / order) / 2.
    scale : float
        The deviation of the noise, in smooth sensitivities, from 1e-9 to 1e9.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    Release
        Its value estimates, without bias, the epsilon at `delta` of all answers and this release
        together, and is the number to report. Its epsilon is what this release costs alone. The
        value may come out too low: the deviation of the noise depends on the votes, and is a secret
        too.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, a parameter is out of range or of the wrong kind, or
        the sensitivity is not known to be bounded for `sigma_answer` and `order`.

    Notes
    -----
    The Gaussian noise is made of floats, and the sum rounded to six digits after the point, which
    leaves nothing of its last bits.

    Examples
    --------
    >>> released = release_epsilon([[240, 10]] * 100, 200, 150, 40, 1e-5, answered=[True] * 100,
    ...     order=20, beta=0.01, scale=20.0, rng=0)
    >>> released.delta
    1e-05
    """
    table, single = _check_votes(votes, at_least=1)
    deciding = _check_confident(threshold, sigma_threshold, sigma_answer)
    threshold, sigma_threshold, sigma_answer = deciding
    delta = check_probability("delta", delta)
    answered = _check_answered(answered, table, single)
    order = _check_order(order)
    beta = check_epsilon(beta, "beta")
    scale = _check_scale("scale", scale)
    own = gnss_rdp(order, beta, scale)
    if own == math.inf:
        raise ValueError(f"beta must be below -log(1 - 1 / order) / 2, got {beta}")
    if not all(gnmax_sensitivity_conditions(sigma_answer, order, table.shape[1])):
        raise ValueError(
            f"order must meet conditions C5 and C6 with sigma {sigma_answer}, got {order}"
        )
    rdp, _ = _confident(table, *deciding, np.array([order]), None, answered)
    # One more than there are teachers: from there on the bounds no longer change.
    reach = int(table.sum(axis=1).max()) + 1
    local = threshold_local_sensitivity(table, threshold, sigma_threshold, order, distances=reach)
    local += gnmax_local_sensitivity(table[answered], sigma_answer, order, distances=reach)
    noise = np.random.default_rng(rng).normal() * scale * smooth_sensitivity(local, beta)
    return Release(
        round(float(_improved(rdp[0] + own, order, delta)) + noise, 6),
        _gnss_epsilon(beta, scale, delta),
        delta=delta,
        mechanism=f"Gaussian noise of {scale} smooth sensitivities, beta {beta}, order {order}",
        neighbours="one teacher changed, and with it one vote in every query",
    )


def _gnss_epsilon(beta: float, scale: float, delta: float) -> float:
    """Return what the release of a number costs by itself."""
    room = min(-1 / math.expm1(-2 * beta) - 1, 1e12)
    orders = 1 + np.geomspace(min(1e-4, room / 1e4), 0.999 * room, 2000)
    rdp = [gnss_rdp(order, beta, scale) for order in orders]
    return max(float(_improved(np.array(rdp), orders, delta).min()), 5e-324)


def _improved(rdp: float | np.ndarray, order: float | np.ndarray, delta: float) -> np.ndarray:
    """Return Proposition 12 of Canonne, Kamath and Steinke (2020)."""
    return rdp + np.log1p(-1 / order) - np.log(order * delta) / (order - 1)


# What is refused.


def _check_votes(votes: ArrayLike, *, at_least: int = 0) -> tuple[np.ndarray, bool]:
    """Return votes as a table of int64 with a row a query, and whether a single query was given."""
    array = as_array("votes", votes)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"votes must be whole numbers, got {kind_of(array)}")
    if array.ndim not in (1, 2) or array.shape[-1] < 2 or len(array) < at_least:
        raise ValueError(
            "votes must have one or two dimensions, at least two classes and "
            f"{at_least} queries, got shape {array.shape}"
        )
    if array.dtype.kind == "f":
        # The largest number of votes, and its like, do not fit the smaller floats.
        array = array.astype(np.promote_types(array.dtype, float))
    if not np.all((array >= 0) & (array <= _MOST_VOTES) & (array == np.rint(array))):
        raise ValueError(f"votes must be whole numbers from 0 to {_MOST_VOTES}; a record is not")
    return np.atleast_2d(array.astype(np.int64)), array.ndim == 1


def _check_student(student: ArrayLike, table: np.ndarray, single: bool) -> np.ndarray:
    """Return the student's probabilities as a table of the shape of the votes."""
    array = as_array("student", student)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"student must be probabilities, got {kind_of(array)}")
    if array.shape != (table.shape[1:] if single else table.shape):
        raise ValueError(f"student must have the shape of the votes, got {array.shape}")
    array = np.atleast_2d(array.astype(float))
    if not (np.all(array >= 0) and np.all(np.abs(array.sum(axis=1) - 1) < 1e-3)):
        raise ValueError("student must be probabilities that sum to 1 in each row")
    return array


def _check_scale(name: str, value: float) -> float:
    return check_real(name, value, low=1e-9, high=1e9, allowed="a number from 1e-9 to 1e9")


def _check_threshold(threshold: float) -> float:
    return check_real(
        "threshold", threshold, low=-1e9, high=1e9, allowed="a number from -1e9 to 1e9"
    )


def _check_confident(
    threshold: float, sigma_threshold: float, sigma_answer: float
) -> tuple[float, float, float]:
    return (
        _check_threshold(threshold),
        _check_scale("sigma_threshold", sigma_threshold),
        _check_scale("sigma_answer", sigma_answer),
    )


def _check_orders(orders: ArrayLike, *, above: float) -> np.ndarray:
    """Return orders as a 1-D float array, all above a bound."""
    array = as_array("orders", orders)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"orders must be numbers, got {kind_of(array)}")
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"orders must be one number or a list of them, got shape {array.shape}")
    array = np.atleast_1d(array.astype(float))
    if not np.all((array > above) & (array <= _LARGEST_ORDER)):
        raise ValueError(f"orders must be above {above} and at most {_LARGEST_ORDER}, got {orders}")
    return array


def _check_divergences(rdp: ArrayLike, orders: np.ndarray) -> np.ndarray:
    array = as_array("rdp", rdp)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"rdp must be numbers, got {kind_of(array)}")
    array = np.atleast_1d(array.astype(float))
    if array.shape != orders.shape or not np.all(array >= 0):
        raise ValueError(
            f"rdp must be {orders.size} numbers of at least 0, one an order, got {array.shape}"
        )
    return array


def _check_answered(answered: ArrayLike, table: np.ndarray, single: bool) -> np.ndarray:
    array = as_array("answered", answered)
    if array.size and array.dtype.kind != "b":
        raise TypeError(f"answered must be booleans, got {kind_of(array)}")
    if array.shape != (() if single else (len(table),)):
        raise ValueError(f"answered must say of each query if it was, got shape {array.shape}")
    return np.atleast_1d(array).astype(bool)


def _check_number_answered(answered: float) -> float:
    """Return a number of queries, or NaN where it is not known."""
    if isinstance(answered, float) and math.isnan(answered):
        return answered
    return check_real("answered", answered, low=0.0, allowed="a number of at least 0, or NaN")


def _check_order(order: float) -> float:
    allowed = f"a number above 1 and at most {_LARGEST_ORDER}"
    return check_real("order", order, low=1.0, low_open=True, high=_LARGEST_ORDER, allowed=allowed)


def _check_distances(distances: int | None, table: np.ndarray) -> int:
    if distances is None:
        return int(table.sum(axis=1).max(initial=0))
    return check_integer("distances", distances, low=0, high=2**40)
