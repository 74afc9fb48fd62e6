"""How far apart the losses of LNMax lie: the theorem `pt-any-range`, part by part."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpnotes import pate
from dpnotes.pate.mechanisms import _ANY_RANGE, _RANGES

LAPLACE = stats.laplace
GRID = np.linspace(-45, 45, 45_001)


def slopes_at(places):
    """Return how fast each log-chance moves as a vote slides from the first to the second label."""
    gaps = GRID[:, None] - np.array(places)
    density, below = LAPLACE.pdf(gaps), LAPLACE.cdf(gaps)
    weight = below.prod(axis=1, keepdims=True)
    ratio = density / below
    chances = (ratio * weight).sum(axis=0)
    rises = (ratio[:, :1] * ratio * weight).sum(axis=0)
    falls = (ratio[:, 1:2] * ratio * weight).sum(axis=0)
    rises[0], falls[1] = 0, 0
    slopes = (rises - falls) / chances
    # The chances add up to 1, and the two that exchange the vote also meet each other.
    slopes[0] = -(rises[1:].sum() + rises[1]) / chances[0]
    slopes[1] = (falls[2:].sum() + 2 * falls[0]) / chances[1]
    return slopes


def all_votes(labels, teachers):
    """Return all votes with one for the first label, which can move to the second."""
    bars = itertools.combinations_with_replacement(range(labels), teachers)
    table = np.array([np.bincount(votes, minlength=labels) for votes in bars])
    return table[table[:, 0] > 0]


def vote(labels):
    return np.array([-1, 1] + [0] * (labels - 2))


@pytest.mark.claim("pt-any-range", kind="chosen cases")
@pytest.mark.parametrize("labels", [2, 3, 4, 7])
def test_the_two_labels_of_the_vote_are_the_extremes(labels):
    rng = np.random.default_rng(labels)
    for spread in (0.5, 2, 8) * 6:
        places = spread * rng.normal(size=labels)
        slopes = slopes_at(places)
        assert slopes.argmin() == 0
        assert slopes.argmax() == 1
        assert np.ptp(slopes) <= min(_RANGES.get(labels, 8 / 3), 8 / 3) + 1e-5


@pytest.mark.claim("pt-any-range", kind="chosen cases")
def test_no_growing_log_concave_product_makes_the_range_longer():
    # The other labels enter by a growing, log-concave function only: here e^min(0, slope (x - p)).
    reached = 0
    for gap, place, steep in itertools.product(
        (0, 0.1, 0.5, 1, 4, 20),
        (-9, 0, 0.01, 0.3, 1, 4, 12, 20),
        (0, 0.3, 0.6, 1, 9, 1e4),
    ):
        first, second = LAPLACE.pdf(GRID), LAPLACE.pdf(GRID - gap)
        ahead, behind = LAPLACE.cdf(GRID), LAPLACE.cdf(GRID - gap)
        others = np.exp(np.minimum(0, steep * (GRID - place)).clip(-600))
        gains = (np.sign(GRID - gap) * ahead + first) * second * others
        loses = (np.sign(GRID) * behind + second) * first * others
        length = gains.sum() / (second * ahead * others).sum()
        length += loses.sum() / (first * behind * others).sum()
        reached = max(reached, length)
    assert 2.6 < reached <= 8 / 3 + 1e-3


@pytest.mark.claim("pt-any-range", kind="enumeration")
@pytest.mark.parametrize(("labels", "teachers"), [(2, 60), (3, 60), (4, 18), (5, 10)])
@pytest.mark.parametrize("gamma", [0.02, 0.1, 0.5])
def test_the_losses_of_all_small_votes_lie_within_the_range(labels, teachers, gamma):
    table = all_votes(labels, teachers)
    moved = table + vote(labels)
    logs = np.log(pate.output_distribution(np.vstack([table, moved]), 1 / gamma))
    longest = np.ptp(logs[: len(table)] - logs[len(table) :], axis=1).max() / gamma
    assert longest <= _RANGES.get(labels, _ANY_RANGE)
    if gamma < 0.5 and labels < 4:
        assert longest > {2: 1.98, 3: 2.262}[labels]


@pytest.mark.parametrize("labels", [2, 3])
def test_noise_on_a_grid_needs_no_longer_range_than_is_added(labels):
    # The winner's odds with noise on steps of a fraction of the scale: the excess shrinks with it.
    excess = []
    for steps in (8, 32):
        places = np.arange(-40 * steps, 40 * steps + 1)
        mass = np.exp(-abs(places) / steps) * np.tanh(0.5 / steps)
        # Ties are broken at random, as noise that is uniform within a step would.
        nodes, weights = np.polynomial.legendre.leggauss(6)
        nodes, weights = (nodes + 1) / 2, weights / 2
        below = np.cumsum(mass) - mass
        cdf = below[:, None] + mass[:, None] * nodes

        def chance(shifts, who, cdf=cdf, mass=mass, weights=weights):
            total = np.ones_like(cdf)
            for other, shift in enumerate(shifts):
                if other != who:
                    moved = np.roll(cdf, shift - shifts[who], axis=0)
                    total *= moved
            return mass @ (total @ weights)

        longest = 0
        for gap, place in itertools.product(range(0, 3 * steps, steps // 2), repeat=2):
            here, there = (0, gap, place)[:labels], (-1, gap + 1, place)[:labels]
            losses = [np.log(chance(here, j) / chance(there, j)) for j in range(labels)]
            longest = max(longest, np.ptp(losses) * steps)
        excess.append(longest / {2: 2, 3: 2.26423}[labels] - 1)
    assert excess[0] < 6 / 8
    assert excess[1] < max(excess[0] / 2, 1e-9)


@pytest.mark.claim("pate.LNMax.cost", "pt-any-range", kind="enumeration")
@pytest.mark.parametrize(("labels", "teachers", "share"), [(2, 12, 0.6), (3, 8, 0.3), (4, 5, 0.1)])
def test_two_answers_cost_no_more_than_is_said_for_so_many_labels(labels, teachers, share):
    ask, delta = pate.LNMax(0.4), 0.05
    table = all_votes(labels, teachers)
    logs = np.log(ask.output_distribution(np.vstack([table, table + vote(labels)])))
    here, there = logs[: len(table)], logs[len(table) :]
    epsilon = float(ask.cost(2, delta, labels=labels))
    worst = 0
    for told, other in ((here, there), (there, here)):
        both = np.add.outer(told, told).swapaxes(1, 2)
        away = np.add.outer(other, other).swapaxes(1, 2)
        excess = np.maximum(np.exp(both) - np.exp(epsilon + away), 0).sum(axis=(2, 3))
        worst = max(worst, excess.max())
    assert share * delta < worst <= delta
