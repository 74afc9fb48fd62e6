"""Exact and statistical checks of distributions, for several modules' tests."""

from collections import Counter
from fractions import Fraction

import numpy as np
from scipy import stats

from dpnotes import _coins


def softmax(utilities, epsilon, sensitivity=1.0):
    """Return the distribution as its definition has it, with no regard to overflow."""
    weights = np.exp(epsilon * np.asarray(utilities) / (2 * sensitivity))
    return weights / weights.sum(axis=-1, keepdims=True)


class UndecidedError(Exception):
    pass


class ImpossibleError(Exception):
    pass


class Forks:
    """Coins that land as they were told to, and keep account of how likely that is."""

    def __init__(self, path):
        self.path = list(path)
        self.probability = Fraction(1)

    def __call__(self, p, rng):
        if not self.path:
            raise UndecidedError
        [p], heads = [Fraction(float(single)) for single in p], self.path.pop(0)
        self.probability *= p if heads else 1 - p
        if not self.probability:
            raise ImpossibleError
        return np.array([heads])


def realised_distribution(monkeypatch, draw):
    """Return the exact probability of every outcome: try both ways at each fork of the tree."""
    chances, undecided = Counter(), [()]
    while undecided:
        path = undecided.pop()
        forks = Forks(path)
        monkeypatch.setattr(_coins, "flip_each", forks)
        try:
            outcome = draw()
        except UndecidedError:
            undecided += [(*path, True), (*path, False)]
        except ImpossibleError:
            pass
        else:
            chances[outcome] += forks.probability
    return chances


def is_distributed_as(drawn, chances):
    """Say whether whole numbers from 0 follow a distribution."""
    return counts_fit(np.bincount(drawn, minlength=len(chances)), chances)


def counts_fit(counts, chances):
    """Chi-square; wrong once in a million. Outcomes too rare for it are put together."""
    counts, expected = np.asarray(counts, float), np.sum(counts) * np.asarray(chances, float)
    rare = expected < 5
    together, hoped = counts[rare].sum(), expected[rare].sum()
    counts, expected = counts[~rare], expected[~rare]
    if hoped >= 5:
        counts, expected = np.append(counts, together), np.append(expected, hoped)
    elif stats.poisson.sf(together - 1, hoped) < 1e-6:
        return False
    if counts.size == 1:
        return True
    return stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue > 1e-6


def realised_bytes(table):
    """Return the exact probability of every byte that a table of `dpnotes._coins` draws."""
    chances = [Fraction(0)] * 256
    for column in range(256):
        stay = (table.thresholds[column] + Fraction(float(table.rests[column]))) / 256
        chances[column] += stay / 256
        chances[column ^ table.moves[column]] += (1 - stay) / 256
    return chances
