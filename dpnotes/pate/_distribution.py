"""The exact distribution of the place of the largest noisy count, by quadrature."""

import math
from collections.abc import Callable

import numpy as np
from scipy import special


def log_distribution(table: np.ndarray, scale: float, noise: str) -> np.ndarray:
    """Return the logarithm of the distribution of every row."""
    rows, back = np.unique(table, axis=0, return_inverse=True)
    logs = np.empty(rows.shape)
    for i, row in enumerate(rows):
        standing = np.maximum((row - row.max()) / scale, -_furthest(noise, row.size))
        rule = _laplace_rule if noise == "laplace" else _gaussian_rule
        logs[i] = _log_integrals(standing, *rule(standing), _LOG_NOISE[noise])
    return logs[back.reshape(-1)]


def _log_integrals(
    standing: np.ndarray, points: np.ndarray, log_weights: np.ndarray, log_noise: Callable
) -> np.ndarray:
    """Return the logarithm of the probability that each class wins, in constant memory."""
    total = np.full(standing.size, -np.inf)
    rows = max(1, 2**18 // standing.size)
    for start in range(0, points.size, rows):
        block = slice(start, start + rows)
        log_density, log_below = log_noise(points[block, None] - standing)
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


_LOG_NOISE = {"laplace": _log_laplace, "gaussian": _log_gaussian}


def _furthest(noise: str, classes: int) -> float:
    """Return how many scales behind all others a class still has a probability that is a double."""
    if noise == "laplace":
        return 660.0
    # It rises, and the others fall, by what is likeliest together.
    return math.sqrt(2 * 660 * classes / (classes - 1))
