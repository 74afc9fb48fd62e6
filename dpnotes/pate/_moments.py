"""From votes to the chance of another label, and from there to Rényi divergences."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes.pate._checks import MOST_VOTES
from dpnotes.pate._distribution import log_distribution

_QUERIES = 1 << 14  # in memory at a time
_CELLS = 1 << 15  # queries times orders that fit a second-level cache


def log_error(table: np.ndarray, scale: float, noise: str, method: str) -> np.ndarray:
    """Return log q of every row of votes."""
    winner = table.argmax(axis=1)[:, None]
    behind = table.max(axis=1, keepdims=True) - table
    np.put_along_axis(behind, winner, MOST_VOTES + 1, axis=1)
    closest = behind.min(axis=1, initial=MOST_VOTES + 1)
    log_beats = _log_beats(closest, scale, noise)
    # Relative to the runner-up's, as all of them may be too small for a double.
    others = np.exp(_log_beats(behind, scale, noise) - log_beats[:, None])
    np.put_along_axis(others, winner, 0.0, axis=1)
    bound = np.minimum(log_beats + np.log(others.sum(axis=1)), math.log1p(-1 / table.shape[1]))
    if method == "bound":
        return bound
    logs = log_distribution(table, scale, noise)
    np.put_along_axis(logs, winner, -np.inf, axis=1)
    return np.minimum(special.logsumexp(logs, axis=1), bound)


def _log_beats(behind: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the log-probability of beating one that is so many votes ahead; from a table."""
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
    # Labels of equal counts make equal pairs: two of each are enough.
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
        # Close to 1 the sum loses digits, far from it the difference does.
        near = np.log1p(change)
    total = np.logaddexp(np.logaddexp(log_up + x, log_down - x), log_rest)
    return np.where(np.abs(change) < 0.5, near, total)


def confident_rdp(
    table: np.ndarray,
    threshold: float,
    sigma_threshold: float,
    sigma: float,
    orders: np.ndarray,
    answered: np.ndarray | None,
    method: str,
) -> tuple[np.ndarray, float]:
    """Return the divergences of confident GNMax, and the number of answers, perhaps expected."""
    rdp, count = np.zeros(orders.size), 0.0
    for start, votes in zip(range(0, len(table), _QUERIES), blocks(table), strict=True):
        margin = (votes.max(axis=1) - threshold) / sigma_threshold
        # Of the two decisions, the less likely one.
        log_q = special.log_ndtr(-np.abs(margin))
        rdp += gaussian_rdp(log_q, math.sqrt(2) * sigma_threshold, orders)
        weights = special.ndtr(margin)
        if answered is not None:
            weights = answered[start : start + _QUERIES].astype(float)
        log_q = log_error(votes, sigma, "gaussian", method)
        rdp += gaussian_rdp(log_q, sigma, orders, weights)
        count += float(weights.sum())
    return rdp, count


def gaussian_rdp(
    log_q: np.ndarray, sigma: float, orders: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the divergences of GNMax at every order, summed over error probabilities."""
    moments = orders - 1
    caps = moments * (orders / sigma) / sigma
    log_moments = sum_moments(
        log_q, weights, caps, moments, lambda log_q: gaussian_rates(log_q, sigma)
    )
    return log_moments / moments


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
    """Return log((1 - q) / (1 - q exp(gain))), without a difference of two numbers near 1."""
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

    Queries of one and the same q are taken together, and so are those to which no theorem applies:
    there the cap counts.
    """
    log_q, weights = _merge_equal(log_q, weights)
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
    """Return log((1 - q) exp(agreed) + q exp(other)), with all its digits even where it is tiny."""
    gain = other - agreed
    with np.errstate(over="ignore", invalid="ignore"):
        mixture = np.expm1(gain)
        mixture *= np.exp(log_q)
        mixture = np.log1p(mixture, out=mixture)
    mixture += agreed
    if gain.max(initial=0) > 700 or log_q.min(initial=0) < -700:
        # Too large or too small for a double, though the product need not be.
        log_q = np.broadcast_to(log_q, gain.shape)
        extreme = (gain > 700) | (log_q < -700)
        grown = np.logaddexp(0, log_q[extreme] + gain[extreme])
        mixture[extreme] = np.broadcast_to(agreed, gain.shape)[extreme] + grown
    return mixture


def _merge_equal(log_q: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the different entries, ascending, and the weight of each: a count by default."""
    if weights is None:
        distinct, counts = np.unique(log_q, return_counts=True)
        return distinct, counts.astype(float)
    distinct, place = np.unique(log_q, return_inverse=True)
    return distinct, np.bincount(place, weights, distinct.size)


def as_given(totals: np.ndarray, orders: ArrayLike) -> np.ndarray | float:
    """Return a number where one order was given."""
    return totals if np.ndim(orders) else float(totals[0])


def blocks(table: np.ndarray) -> Iterator[np.ndarray]:
    """Cut queries into blocks that fit in memory with all that is computed of them."""
    for start in range(0, len(table), _QUERIES):
        yield table[start : start + _QUERIES]
