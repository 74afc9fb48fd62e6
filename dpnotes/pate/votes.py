"""Votes of teachers: dealing out records, counting votes, and who wins after noise."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes import exponential_mechanism
from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_integer,
    check_real,
    check_rng,
    kind_of,
)

_NOISES = ("laplace", "gaussian", "gumbel")
MOST_VOTES = 2**31 - 1
_CELLS = 1 << 18  # points times counts in memory at a time
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_FEW = 32  # classes up to which comparing with each is faster than sorting into bins


def partition(
    n: int, teachers: int, *, rng: np.random.Generator | int | None = None
) -> list[np.ndarray]:
    """Deal records out to teachers at random; each record goes to exactly one teacher.

    This is private for neighbours of the same size: a record that is *replaced* changes one
    teacher. If a record is removed, n changes, so the deal is a different one and nearly every
    teacher is trained on other records.

    Parameters
    ----------
    n : int
        The number of records, at least one a teacher.
    teachers : int
        The number of teachers, at least 1.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    list of ndarray of int64
        For each teacher the sorted indices of its records. Sizes differ by at most 1.

    Notes
    -----
    Where people may come and go, the teacher must depend on the person alone, for example on a hash
    of an identifier under a secret key. Sizes then differ by chance.

    Examples
    --------
    >>> [part.size for part in partition(10, 3, rng=0)]
    [4, 3, 3]
    """
    teachers = check_integer("teachers", teachers, low=1, high=2**40)
    n = check_integer("n", n, low=teachers, high=2**40)
    order = check_rng(rng).permutation(n)
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
    """Return the exact distribution of the label with the largest noisy count.

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

    Notes
    -----
    Class j wins with probability ∫ f(x - n_j) Π_{k≠j} F(x - n_k) dx, for noise of density f and
    distribution F. All terms are positive and summed as logarithms, so that small probabilities
    have the relative precision of large ones, about 1e-12. A class that would win less often than
    about once in 1e290 is moved a little closer, so that no probability is 0.

    Examples
    --------
    >>> output_distribution([30, 20], scale=20.0).round(6)
    array([0.620918, 0.379082])
    """
    table, single = check_votes(votes, at_least=1)
    scale = check_scale("scale", scale)
    check_choice("noise", noise, _NOISES)
    if noise == "gumbel":
        # An epsilon of 2 and this sensitivity give the weights exp(votes / scale).
        chances = exponential_mechanism.output_distribution(table, 2.0, sensitivity=scale)
    else:
        logs = log_distribution(table, scale, noise)
        chances = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
    return chances[0] if single else chances


def check_votes(votes: ArrayLike, *, at_least: int = 0) -> tuple[np.ndarray, bool]:
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
        # Smaller floats cannot represent numbers near MOST_VOTES.
        array = array.astype(np.promote_types(array.dtype, float))
    whole = bool(np.all((array >= 0) & (array <= MOST_VOTES) & (array == np.rint(array))))
    # Only the sum, the number of teachers, may raise: it is public, and single counts are not.
    if not whole or int(array.sum(axis=-1, dtype=float).max(initial=0)) > MOST_VOTES:
        raise ValueError(
            f"votes must be whole numbers of which a query has {MOST_VOTES} at most, and are not"
        )
    return np.atleast_2d(array.astype(np.int64)), array.ndim == 1


def check_scale(name: str, value: float) -> float:
    return check_real(name, value, low=1e-9, high=1e9, allowed="a number from 1e-9 to 1e9")


def log_distribution(table: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the logarithm of the distribution of every row."""
    # Permuting the classes only permutes the result, so equal sorted rows are computed once.
    order = np.argsort(table, axis=1)
    rows, back = np.unique(np.take_along_axis(table, order, axis=1), axis=0, return_inverse=True)
    logs = np.empty(rows.shape)
    rule = _laplace_rule if noise == "laplace" else _gaussian_rule
    # A class this many scales behind all others still has a probability that is a double. Its
    # likeliest way to win: its own Gaussian noise rises while that of all the others falls.
    k = table.shape[1]
    furthest = 660.0 if noise == "laplace" else math.sqrt(2 * 660 * k / (k - 1))
    for i, row in enumerate(rows):
        standing = np.maximum((row - row[-1]) / scale, -furthest)
        # Classes with equal counts win equally often: one of each is enough.
        standing, place, classes = np.unique(standing, return_inverse=True, return_counts=True)
        points, log_weights = rule(standing, classes)
        logs[i] = _log_integrals(standing, classes, points, log_weights, _LOG_NOISE[noise])[place]
    result = np.empty(table.shape)
    np.put_along_axis(result, order, logs[back.reshape(-1)], axis=1)
    return result


def _log_integrals(
    standing: np.ndarray,
    classes: np.ndarray,
    points: np.ndarray,
    log_weights: np.ndarray,
    log_noise: Callable,
) -> np.ndarray:
    """Return the log-probability that a class of each standing wins, in constant memory.

    At each point the product over the other classes is that over all, divided by its own factor.
    """
    total = np.full(standing.size, -np.inf)
    rows = max(1, _CELLS // standing.size)
    for start in range(0, points.size, rows):
        block = slice(start, start + rows)
        log_density, log_below = log_noise(points[block, None] - standing)
        log_terms = log_density - log_below
        log_terms += (log_below @ classes + log_weights[block])[:, None]
        total = np.logaddexp(total, special.logsumexp(log_terms, axis=0))
    return total


def _laplace_rule(standing: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights of Gauss rules between kinks; all counts are at most 0.

    Where the noise of 80 classes has to be below their own counts, the integrand is at most 2^-80
    of its largest value: that far down, neither kinks nor points are needed.
    """
    in_front = np.minimum(classes[::-1].cumsum()[::-1], 80)
    lowest = standing[np.flatnonzero(in_front == in_front[0])[-1]]
    highest = 40 + math.log(classes.sum())
    corners = np.concatenate([[lowest - 50 / in_front[0]], standing[standing >= lowest], [highest]])
    # The integrand is a sum of exponentials, with rates up to the number of classes in front.
    rates = in_front[np.searchsorted(standing, corners[:-1] - 5).clip(max=standing.size - 1)]
    panels = np.ceil(np.diff(corners) / np.minimum(2.0, 20 / rates)).astype(int)
    width = np.repeat(np.diff(corners) / panels, panels)
    # The index of each panel within its gap.
    number = np.arange(width.size) - np.repeat(panels.cumsum() - panels, panels)
    left = np.repeat(corners[:-1], panels) + number * width
    points = left[:, None] + width[:, None] * (_NODES + 1) / 2
    return points.ravel(), np.log(width[:, None] * _WEIGHTS / 2).ravel()


def _gaussian_rule(standing: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights of the trapezoidal rule, accurate for smooth decaying terms."""
    # The largest of many normal variables has a narrower density.
    step = 1 / (4 * max(2.0, math.sqrt(2 * math.log(classes.sum()))))
    points = np.arange(standing[0] - 10, 10 + step, step)
    return points, np.full(points.size, math.log(step))


def _log_laplace(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = np.exp(-np.abs(x)) / 2
    return -np.abs(x) - math.log(2), np.where(x < 0, x - math.log(2), np.log1p(-half))


def _log_gaussian(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -x * x / 2 - math.log(2 * math.pi) / 2, special.log_ndtr(x)


_LOG_NOISE = {"laplace": _log_laplace, "gaussian": _log_gaussian}
