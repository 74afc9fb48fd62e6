"""Votes of teachers: who votes on what, how often, and who wins when noise is added."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes import exponential_mechanism
from dpnotes._checks import check_categories, check_choice, check_integer, check_rng
from dpnotes.pate._checks import check_scale, check_votes
from dpnotes.pate._distribution import log_distribution

NOISES = ("laplace", "gaussian", "gumbel")

_FEW = 32  # classes up to which comparing with each is faster than sorting into bins


def partition(
    n: int, teachers: int, *, rng: np.random.Generator | int | None = None
) -> list[np.ndarray]:
    """Deal records out to teachers at random; each record goes to one teacher alone.

    This keeps the promise for neighbours of one size: a record that is *replaced* changes one
    teacher. Where a record is taken away, n changes, the deal is another one, and nearly every
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
    Where people may come and go, the teacher must depend on the person alone: on a keyed hash of an
    identifier, with a key that nobody learns. Sizes then differ by chance.

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
    have the relative precision of large ones, about 1e-12. A class so far behind that it wins
    less often than about once in 1e290 is taken to be a little nearer: no probability is 0.

    Examples
    --------
    >>> output_distribution([30, 20], scale=20.0).round(6)
    array([0.620918, 0.379082])
    """
    table, single = check_votes(votes, at_least=1)
    scale = check_scale("scale", scale)
    check_choice("noise", noise, NOISES)
    if noise == "gumbel":
        # An epsilon of 2 and this sensitivity give the weights exp(votes / scale).
        chances = exponential_mechanism.output_distribution(table, 2.0, sensitivity=scale)
    else:
        logs = log_distribution(table, scale, noise)
        chances = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
    return chances[0] if single else chances
