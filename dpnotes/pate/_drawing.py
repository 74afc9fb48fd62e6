"""Noisy winners, drawn with exact coins on a public grid."""

import math
from collections.abc import Callable

import numpy as np

from dpnotes._coins import discrete_gaussian, flip_each


def grid(scale: float) -> int:
    """Return how many halvings of a vote give steps of at most a millionth of the scale."""
    return min(30, max(0, math.ceil(20 - math.log2(scale))))


def noisy_winners(
    table: np.ndarray, scale: float, noise: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Add noise to every count, and return the place of the largest one in each row."""
    halvings = grid(scale)
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


def reaches(
    table: np.ndarray, threshold: float, sigma: float, rng: np.random.Generator
) -> np.ndarray:
    """Say where the largest count, plus noise, reaches the threshold."""
    steps = 2.0 ** grid(sigma)
    noisy = table.max(axis=1) << grid(sigma)
    noisy += discrete_gaussian(len(table), sigma * steps, rng)
    return noisy >= math.ceil(threshold * steps)


def down_a_tree(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a column in each row with its probability, by one exact coin at each fork of a tree."""
    levels = [chances]
    while levels[-1].shape[1] > 1:
        level = levels[-1]
        if level.shape[1] % 2:
            levels[-1] = level = np.column_stack([level, np.zeros(len(level))])
        levels.append(level[:, 0::2] + level[:, 1::2])
    drawn = np.zeros((len(chances), 1), dtype=np.int64)
    for level in reversed(levels[:-1]):
        left, right = (np.take_along_axis(level, 2 * drawn + side, axis=1) for side in (0, 1))
        # The coin decides for the smaller side, whose probability a double holds best.
        smaller = np.minimum(left, right) / (left + right)
        unlikely = flip_each(smaller[:, 0], rng)[:, None]
        drawn = 2 * drawn + np.where(unlikely, right <= left, right > left)
    return drawn[:, 0]
