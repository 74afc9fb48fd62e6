"""Exact and statistical checks of distributions, for several modules' tests."""

from collections import Counter
from fractions import Fraction

import numpy as np
from scipy import stats

from dpnotes import exponential_mechanism


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


def realised_law(monkeypatch, draw):
    """Return the exact probability of every outcome: try both ways at each fork of the tree."""
    law, undecided = Counter(), [()]
    while undecided:
        path = undecided.pop()
        forks = Forks(path)
        monkeypatch.setattr(exponential_mechanism, "flip_each", forks)
        try:
            outcome = draw()
        except UndecidedError:
            undecided += [(*path, True), (*path, False)]
        except ImpossibleError:
            pass
        else:
            law[outcome] += forks.probability
    return law


def is_distributed_as(drawn, law):
    """Chi-square; wrong once in a million. Outcomes too rare for it are put together."""
    counts = np.bincount(drawn, minlength=law.size).astype(float)
    expected = drawn.size * law
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 5:
            return counts[-1] < 40 and is_close(counts[:-1], expected[:-1])
    return is_close(counts, expected)


def is_close(counts, expected):
    statistic = ((counts - expected) ** 2 / expected).sum()
    return stats.chi2(counts.size).sf(statistic) > 1e-6


def counts_fit(drawn, chances):
    """Chi-square; wrong once in a million. Outcomes too rare for it are put together."""
    counts, expected = np.asarray(drawn, float), np.sum(drawn) * np.asarray(chances)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    expected *= counts.sum() / expected.sum()
    return stats.chisquare(counts, expected).pvalue > 1e-6


def realised_bytes(table):
    """Return the exact probability of every byte that a table of `dpnotes._coins` draws."""
    chances = [Fraction(0)] * 256
    for column in range(256):
        stay = (table.thresholds[column] + Fraction(float(table.rests[column]))) / 256
        chances[column] += stay / 256
        chances[column ^ table.moves[column]] += (1 - stay) / 256
    return chances
