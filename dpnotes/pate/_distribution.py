"""The exact distribution of the place of the largest noisy count, by quadrature."""

import math
from collections.abc import Callable

import numpy as np
from scipy import special

_CELLS = 1 << 18  # points times counts in memory at a time
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def log_distribution(table: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the logarithm of the distribution of every row."""
    # Which class has which count makes no difference to what the counts win.
    order = np.argsort(table, axis=1)
    rows, back = np.unique(np.take_along_axis(table, order, axis=1), axis=0, return_inverse=True)
    logs = np.empty(rows.shape)
    rule = _laplace_rule if noise == "laplace" else _gaussian_rule
    for i, row in enumerate(rows):
        standing = np.maximum((row - row[-1]) / scale, -_furthest(noise, row.size))
        # Classes that stand alike win equally often: one of each is enough.
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
    """Return the log-probability that a class wins, for every standing, in constant memory.

    At each point the product over all others is that over all classes, divided by one's own factor.
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
    # The integrand is a sum of exponentials, of rates up to the number of classes not far below.
    rates = in_front[np.searchsorted(standing, corners[:-1] - 5).clip(max=standing.size - 1)]
    panels = np.ceil(np.diff(corners) / np.minimum(2.0, 20 / rates)).astype(int)
    width = np.repeat(np.diff(corners) / panels, panels)
    # The number of a panel in its gap is its own, less that of the first one.
    number = np.arange(width.size) - np.repeat(panels.cumsum() - panels, panels)
    left = np.repeat(corners[:-1], panels) + number * width
    points = left[:, None] + width[:, None] * (_NODES + 1) / 2
    return points.ravel(), np.log(width[:, None] * _WEIGHTS / 2).ravel()


def _gaussian_rule(standing: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights of the trapezoidal rule, which is best for smooth bells."""
    # The largest of many has a narrower bell.
    step = 1 / (4 * max(2.0, math.sqrt(2 * math.log(classes.sum()))))
    points = np.arange(standing[0] - 10, 10 + step, step)
    return points, np.full(points.size, math.log(step))


def _log_laplace(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = np.exp(-np.abs(x)) / 2
    return -np.abs(x) - math.log(2), np.where(x < 0, x - math.log(2), np.log1p(-half))


def _log_gaussian(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -x * x / 2 - math.log(2 * math.pi) / 2, special.log_ndtr(x)


_LOG_NOISE = {"laplace": _log_laplace, "gaussian": _log_gaussian}


def _furthest(noise: str, classes: int) -> float:
    """Return how many scales behind all others a class still has a probability that is a double."""
    if noise == "laplace":
        return 660.0
    # It rises, and the others fall, by what is likeliest together.
    return math.sqrt(2 * 660 * classes / (classes - 1))
