"""The cost of an answer at given votes: as secret as the votes.

Where teachers agree, the answer hardly depends on any one of them. Every function here bounds the
Rényi divergence of the answers at the given votes from those at any neighbouring votes, in this
direction.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes._checks import check_choice
from dpnotes.accounting import laplace_rdp
from dpnotes.accounting.renyi import check_orders
from dpnotes.pate.votes import MOST_VOTES, check_scale, check_votes, log_distribution

_ERRORS = ("bound", "exact")
_LNMAX_METHODS = (*_ERRORS, "2017")
# The orders that the code of the 2018 paper searched.
ORDERS_2018 = tuple(
    np.unique(np.append(np.arange(2, 101, 0.5), np.geomspace(100, 500, 100))).tolist()
)
_QUERIES = 1 << 14  # queries in memory at a time
_CELLS = 1 << 15  # queries times orders that fit a second-level cache


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
    table, single = check_votes(votes)
    gamma = check_scale("gamma", gamma)
    q = np.exp(log_error(table, 1 / gamma, "laplace", check_choice("method", method, _ERRORS)))
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

    Notes
    -----
    Proposition 7 of Papernot et al. (2018): a class that is D votes behind beats the plurality
    with probability erfc(D / (2 sigma)) / 2.

    Examples
    --------
    >>> round(gnmax_log_error_probability([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 40), 8)
    -6.97187687
    """
    table, single = check_votes(votes)
    sigma = check_scale("sigma", sigma)
    log_q = log_error(table, sigma, "gaussian", check_choice("method", method, _ERRORS))
    return float(log_q[0]) if single else log_q


def lnmax_rdp(
    votes: ArrayLike, gamma: float, orders: ArrayLike, *, method: str = "bound"
) -> np.ndarray | float:
    """Bound the Rényi divergence of LNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1: the moments of the 2017 paper plus 1.
    method : {"bound", "exact", "2017"}
        How the error probability is computed; see `lnmax_error_probability`. "2017" is "bound" with
        the cap of the 2017 paper, as in its published figures.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

    Notes
    -----
    With l = order - 1, l times the divergence is at most

        log((1 - q) ((1 - q) / (1 - exp(2 gamma) q))^l + q exp(2 gamma l))

    for q of at most 1 / (exp(2 gamma) + 1) (Papernot et al., 2017, Theorem 3). And whatever q is,
    one vote shifts two counts, each with Laplace noise of its own, so l times the divergence is at
    most twice that of such a noise (Mironov, 2017, Table II),

        2 log((l + 1) / (2 l + 1) exp(l gamma) + l / (2 l + 1) exp(-(l + 1) gamma)),

    which is at most gamma^2 l (l + 1). The smaller is taken. The paper has the smaller of
    2 gamma^2 l (l + 1) and 2 gamma l there, which holds for every mechanism of cost 2 gamma. Memory
    does not grow with the number of queries.

    Examples
    --------
    >>> lnmax_rdp([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 0.05, [2, 9]).round(8)
    array([0.000164  , 0.00020132])
    """
    table, _ = check_votes(votes)
    gamma = check_scale("gamma", gamma)
    orders_ = check_orders(orders)
    check_choice("method", method, _LNMAX_METHODS)
    moments, loss = orders_ - 1, 2 * gamma
    if method == "2017":
        caps, method = np.minimum(loss**2 / 2 * moments * orders_, loss * moments), "bound"
    else:
        caps = np.minimum(2 * moments * laplace_rdp(gamma, orders_), loss * moments)
    total = np.zeros(moments.size)
    for block in blocks(table):
        log_q = log_error(block, 1 / gamma, "laplace", method)
        total += sum_moments(log_q, None, caps, moments, partial(pure_rates, loss=loss))
    return as_given(total / moments, orders)


def gumbel_rdp(votes: ArrayLike, scale: float, orders: ArrayLike) -> np.ndarray | float:
    """Return the Rényi divergence of the largest count with Gumbel noise, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    scale : float
        The scale of the noise, in votes, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences from the worst neighbour of each query, in nats. Those of further queries, or of
        another worker's, are added.

    Notes
    -----
    No bound is needed, since the answer is the exponential mechanism's: label j comes with
    probability p_j proportional to exp(n_j / scale). A vote that moves from a to b multiplies p_a
    by exp(-1 / scale), p_b by exp(1 / scale), and divides all by the new sum r. With
    x = (order - 1) / scale the divergence is

        log(r) + log(1 + p_a (exp(x) - 1) + p_b (exp(-x) - 1)) / (order - 1),

    and the largest over all pairs of labels, of which a has a vote, is taken.

    Examples
    --------
    >>> gumbel_rdp([150, 60, 40], 20, [2, 8]).round(8)
    array([0.0001179 , 0.00057574])
    """
    table, _ = check_votes(votes)
    scale = check_scale("scale", scale)
    orders_ = check_orders(orders)
    rows, counts = np.unique(-np.sort(-table, axis=1), axis=0, return_counts=True)
    total = np.zeros(orders_.size)
    for row, count in zip(rows, counts, strict=True):
        total += count * worst_vote(row, scale, orders_)
    return as_given(total, orders)


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
        How the error probability is computed; see `gnmax_log_error_probability`.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

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
    table, _ = check_votes(votes)
    sigma = check_scale("sigma", sigma)
    orders_ = check_orders(orders)
    check_choice("method", method, _ERRORS)
    total = np.zeros(orders_.size)
    for block in blocks(table):
        log_q = log_error(block, sigma, "gaussian", method)
        total += gaussian_rdp(log_q, sigma, orders_)
    return as_given(total, orders)


def log_error(table: np.ndarray, scale: float, noise: str, method: str) -> np.ndarray:
    """Return log q of every row of votes."""
    winner = table.argmax(axis=1)[:, None]
    behind = table.max(axis=1, keepdims=True) - table
    np.put_along_axis(behind, winner, MOST_VOTES + 1, axis=1)
    closest = behind.min(axis=1, initial=MOST_VOTES + 1)
    log_beats = _log_beats(closest, scale, noise)
    # Relative to the runner-up's, because all of them may underflow.
    others = np.exp(_log_beats(behind, scale, noise) - log_beats[:, None])
    np.put_along_axis(others, winner, 0.0, axis=1)
    bound = np.minimum(log_beats + np.log(others.sum(axis=1)), math.log1p(-1 / table.shape[1]))
    if method == "bound":
        return bound
    logs = log_distribution(table, scale, noise)
    np.put_along_axis(logs, winner, -np.inf, axis=1)
    return np.minimum(special.logsumexp(logs, axis=1), bound)


def _log_beats(behind: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the log-probability of winning from this many votes behind, by a lookup table."""
    largest = int(behind.max(initial=0, where=behind <= MOST_VOTES))
    if largest < behind.size:
        lookup = _log_beats_each(np.arange(largest + 1) / scale, noise)
        return lookup[np.minimum(behind, largest)]
    return _log_beats_each(behind / scale, noise)


def _log_beats_each(gap: np.ndarray, noise: str) -> np.ndarray:
    if noise == "laplace":
        return np.log((2 + gap) / 4) - gap
    return np.maximum(special.log_ndtr(-gap / math.sqrt(2)), -1e300)


def worst_vote(row: np.ndarray, scale: float, orders: np.ndarray) -> np.ndarray:
    """Return the largest divergence of one query, its votes descending, from any neighbour."""
    logs = row / scale - special.logsumexp(row / scale)
    # Labels with equal counts give equal divergences: two of each are enough.
    kept = np.flatnonzero(np.append([True, True], row[2:] < row[:-2]))
    moments = orders - 1
    worst = np.zeros(orders.size)
    for loser in kept[row[kept] > 0]:
        winners = kept[kept != loser]
        rest = np.tile(logs, (winners.size, 1))
        rest[:, loser] = rest[np.arange(winners.size), winners] = -np.inf
        log_rest = special.logsumexp(rest, axis=1)[:, None]
        log_a, log_b = logs[loser], logs[winners, None]
        new_sum = _log_mean(log_b, log_a, log_rest, np.array([1 / scale]))
        mean = _log_mean(log_a, log_b, log_rest, moments / scale)
        np.maximum(worst, (new_sum + mean / moments).max(axis=0), out=worst)
    return np.minimum(worst, np.minimum(2 / scale, orders / 2 / scale / scale))


def _log_mean(
    log_up: np.ndarray, log_down: np.ndarray, log_rest: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return log(up exp(x) + down exp(-x) + rest), where the three sum to 1."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        change = np.exp(log_up) * np.expm1(x) + np.exp(log_down) * np.expm1(-x)
        # log1p is accurate where the sum is near 1, and logaddexp elsewhere.
        near = np.log1p(change)
    total = np.logaddexp(np.logaddexp(log_up + x, log_down - x), log_rest)
    return np.where(np.abs(change) < 0.5, near, total)


def gaussian_rdp(
    log_q: np.ndarray, sigma: float, orders: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the divergences of GNMax at every order, summed over error probabilities."""
    moments = orders - 1
    caps = moments * (orders / sigma) / sigma
    rates = partial(gaussian_rates, sigma=sigma)
    return sum_moments(log_q, weights, caps, moments, rates) / moments


def gaussian_rates(log_q: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates of Theorem 6, and the last moment for which it holds."""
    high = sigma * np.sqrt(-log_q)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        loss, next_loss = high / sigma / sigma, (high + 1) / sigma / sigma
        limit = (high - 1) * loss - high * (np.log1p(1 / high) - np.log1p(-1 / high))
        holds = (high > 1) & (log_q <= limit) & (log_q + loss < 0)
        agreed = _agreed_rate(log_q, loss - (log_q + loss) / high)
        other = next_loss - log_q / high
    return np.where(holds, agreed, 0), np.where(holds, other, 0), np.where(holds, high, 0)


def pure_rates(log_q: np.ndarray, loss: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates of Theorem 3, and the last moment for which it holds: all or none."""
    holds = log_q <= -np.logaddexp(loss, 0)
    log_q = np.where(holds, log_q, -np.inf)
    agreed = _agreed_rate(log_q, loss)
    return agreed, np.full(agreed.shape, loss), np.where(holds, np.inf, 0)


def _agreed_rate(log_q: np.ndarray, gain: np.ndarray | float) -> np.ndarray:
    """Return log((1 - q) / (1 - q exp(gain))), without cancellation."""
    odds = log_q - np.log1p(-np.exp(log_q)) + gain + np.log(-np.expm1(-gain))
    return -np.log1p(-np.minimum(np.exp(odds), 1 - 2.0**-53))


def sum_moments(
    log_q: np.ndarray,
    weights: np.ndarray | None,
    caps: np.ndarray,
    moments: np.ndarray,
    rates: Callable,
) -> np.ndarray:
    """Sum min(cap, log((1 - q) exp(agreed l) + q exp(other l))) over queries, for each moment l.

    Queries with equal q are merged, and their weights added: 1 each by default. Where no theorem
    applies, the cap is used.
    """
    log_q, place = np.unique(log_q, return_inverse=True)
    weights = np.bincount(place, weights, log_q.size).astype(float)
    agreed, other, reach = rates(log_q)
    total = np.zeros(moments.size)
    rows = max(1, _CELLS // moments.size)
    for start in range(0, log_q.size, rows):
        block = slice(start, start + rows)
        some = moments <= reach[block].max()
        total[~some] += caps[~some] * weights[block].sum()
        l = moments[some]
        if l.size:
            main = log_mixture(log_q[block, None], agreed[block, None] * l, other[block, None] * l)
            np.putmask(main, l > reach[block, None], np.inf)
            total[some] += weights[block] @ np.minimum(main, caps[some], out=main)
    return total


def log_mixture(log_q: np.ndarray, agreed: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return log((1 - q) exp(agreed) + q exp(other)), accurately even where it is tiny."""
    gain = other - agreed
    with np.errstate(over="ignore", invalid="ignore"):
        mixture = np.expm1(gain)
        mixture *= np.exp(log_q)
        mixture = np.log1p(mixture, out=mixture)
    mixture += agreed
    if gain.max(initial=0) > 700 or log_q.min(initial=0) < -700:
        # exp(gain) or q over- or underflows, though their product need not.
        log_q = np.broadcast_to(log_q, gain.shape)
        extreme = (gain > 700) | (log_q < -700)
        grown = np.logaddexp(0, log_q[extreme] + gain[extreme])
        mixture[extreme] = np.broadcast_to(agreed, gain.shape)[extreme] + grown
    return mixture


def as_given(totals: np.ndarray, orders: ArrayLike) -> np.ndarray | float:
    """Return a number where one order was given."""
    return totals if np.ndim(orders) else float(totals[0])


def blocks(table: np.ndarray) -> Iterator[np.ndarray]:
    """Cut queries into blocks that fit in memory with all that is computed of them."""
    for start in range(0, len(table), _QUERIES):
        yield table[start : start + _QUERIES]
