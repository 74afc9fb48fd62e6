"""Noisy winners, drawn with exact coins on a public grid."""

import math
from collections.abc import Callable

import numpy as np

from dpnotes._coins import discrete_gaussian

_CELLS = 1 << 16  # noisy counts that fit a second-level cache


def grid(scale: float) -> int:
    """Return how many halvings of a vote give steps of at most a millionth of the scale."""
    return min(30, max(0, math.ceil(20 - math.log2(scale))))


def noisy_winners(
    table: np.ndarray, scale: float, noise: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Add noise to every count, and return the place of the largest one in each row."""
    halvings = grid(scale)
    winners = np.empty(len(table), dtype=np.int64)
    rows = max(1, _CELLS // table.shape[1])
    for start in range(0, len(table), rows):
        # A row a class: the largest of each column is found several columns at a time.
        noisy = np.left_shift(table[start : start + rows].T, halvings, order="C")
        noisy += noise(noisy.size, scale * 2.0**halvings, rng).reshape(noisy.shape)
        winners[start : start + rows] = _places_of_largest(noisy, rng)
    return winners


def _places_of_largest(noisy: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the row of the largest entry in each column, of several the one that a lot decides."""
    best = noisy == noisy.max(axis=0)
    # The smallest type that holds all places takes the least time.
    places = np.zeros(noisy.shape[1], dtype=np.min_scalar_type(len(noisy) - 1))
    for place in range(1, len(noisy)):
        np.maximum(places, best[place] * places.dtype.type(place), out=places)
    if np.count_nonzero(best) > places.size:
        tied = np.flatnonzero(np.count_nonzero(best, axis=0) > 1)
        lots = rng.integers(np.count_nonzero(best[:, tied], axis=0))
        places[tied] = (np.cumsum(best[:, tied], axis=0) > lots).argmax(axis=0)
    return places


def reaches(
    table: np.ndarray, threshold: float, sigma: float, rng: np.random.Generator
) -> np.ndarray:
    """Say where the largest count, plus noise, reaches the threshold."""
    steps = 2.0 ** grid(sigma)
    noisy = table.max(axis=1) << grid(sigma)
    noisy += discrete_gaussian(len(table), sigma * steps, rng)
    return noisy >= math.ceil(threshold * steps)
