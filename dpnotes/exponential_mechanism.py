"""The exponential mechanism: pick an answer at random, good ones more often.

Among candidates with utilities u, the mechanism of McSherry and Talwar (2007) picks one with
probability proportional to exp(epsilon u / (2 sensitivity)), where the sensitivity is the most that
one person can change any utility. This costs at most epsilon, and nearly all of it on the worst
utilities. Where the sum of the weights does not depend on the data it costs half: on a column of
labels it is randomized response, as `dpnotes.label_privacy` has it.
"""

from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import (
    as_array,
    as_objects,
    check_epsilon,
    check_integer,
    check_rng,
    is_finite,
    kind_of,
)
from dpnotes._coins import flip_each


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
        Where the randomness comes from; None asks the system for a fresh start.

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
    gaps = _half_gaps(utilities)
    if gaps.ndim != 1:
        raise ValueError(f"utilities must be one-dimensional, got shape {gaps.shape}")
    weights = _weights(gaps, epsilon, sensitivity)
    count = 1 if size is None else check_integer("size", size, low=0, high=2**40)
    drawn = _draw(weights, count, check_rng(rng))
    return int(drawn[0]) if size is None else drawn


def output_distribution(
    utilities: ArrayLike, epsilon: float, *, sensitivity: float = 1.0
) -> np.ndarray:
    """Return the exact distribution of the mechanism's output.

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
    weights = _weights(_half_gaps(utilities), epsilon, sensitivity)
    return weights / weights.sum(axis=-1, keepdims=True)


def _weights(half_gaps: np.ndarray, epsilon: float, sensitivity: float) -> np.ndarray:
    """Return exp(epsilon u / (2 sensitivity)) relative to the best candidate of each row.

    A weight below exp(-700) is raised to it. That is to raise the utility to a fixed distance from
    the best one, which leaves the sensitivity as it is. Without it a weight could become 0 on one
    data set and not on its neighbour, at an infinite cost.
    """
    epsilon = check_epsilon(epsilon)
    sensitivity = check_epsilon(sensitivity, "sensitivity")
    with np.errstate(over="ignore"):
        gaps = half_gaps.astype(float, copy=False) / sensitivity
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


def _half_gaps(utilities: ArrayLike) -> np.ndarray:
    """Return half of how far each utility lies behind the best of its row, after checking them.

    Halves, so that no gap overflows before the sensitivity divides it.
    """
    array = as_array("utilities", utilities, with_booleans=True)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"utilities must be numbers, got {kind_of(array)}")
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"utilities must have one or two dimensions and a candidate, got {array.shape}"
        )
    if not is_finite(array):
        raise ValueError("utilities must be finite")
    # Rounded to floats, large integers one apart could come to lie hundreds apart. Their
    # distances do not; and those are right even where unsigned numbers wrap around.
    if array.dtype.kind in "iu":
        best = array.max(axis=-1, keepdims=True).astype(np.uint64)
        return -(best - array.astype(np.uint64)).astype(float) / 2
    if isinstance(utilities, list | tuple) and float(np.abs(array).max()) >= 2.0**53:
        return _exact_half_gaps(as_objects(utilities))
    wide = array.astype(np.promote_types(array.dtype, float))
    return wide / 2 - wide.max(axis=-1, keepdims=True) / 2


def _exact_half_gaps(utilities: np.ndarray) -> np.ndarray:
    """Return half gaps of a list that may have large integers beside floats."""
    ratios = [
        (int(u), 1) if isinstance(u, Integral) else u.as_integer_ratio() for u in utilities.flat
    ]
    exact = np.array([Fraction(*ratio) for ratio in ratios]).reshape(utilities.shape)
    return ((exact - exact.max(axis=-1, keepdims=True)) / 2).astype(float)
