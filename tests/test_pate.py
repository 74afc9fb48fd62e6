import dataclasses
import functools
import importlib.util
import itertools
import math
import os
import subprocess
import sys
import time
import tracemalloc
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from laws import is_distributed_as, realised_bytes, realised_distribution
from scipy import integrate, optimize, special, stats

from dpnotes import _coins, accounting, datasets, pate
from dpnotes.audit import exact_delta, exact_epsilon
from dpnotes.pate import costs, mechanisms, release

LAWS = {"laplace": stats.laplace, "gaussian": stats.norm, "gumbel": stats.gumbel_r}
METHODS = ("bound", "exact")

needs_accounting = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None, reason="dp-accounting is not installed"
)

# A query of the authors' MNIST votes, and the reference values that go with it.
ROW = [4, 7, 6, 8, 4, 2, 0, 214, 4, 1]

small_votes = st.lists(st.integers(0, 40), min_size=2, max_size=5)
scales = st.sampled_from([0.7, 3.0, 20.0, 90.0])


def neighbours(votes):
    """Return what votes may become when one teacher votes otherwise."""
    one = np.eye(len(votes), dtype=int)
    moves = itertools.permutations(range(len(votes)), 2)
    return [votes - one[loser] + one[winner] for loser, winner in moves if votes[loser]]


def tables(teachers, classes):
    """Return all votes of so many teachers."""
    found = itertools.product(range(teachers + 1), repeat=classes)
    return np.array([votes for votes in found if sum(votes) == teachers])


def log_moment(chances, other, moment):
    """Return the exact log-moment of the privacy loss."""
    return special.logsumexp((moment + 1) * np.log(chances) - moment * np.log(other))


def two_laplace(gamma, moments):
    """Return the log-moments of two numbers with Laplace noise, each moved by a vote.

    They are integrals of p^(l + 1) / p'^l, for one such noise p and the same noise p' moved.
    """
    moments = np.asarray(moments, float)
    left, right = np.exp(gamma * moments) / 2, np.exp(-gamma * (moments + 1)) / 2
    rate = gamma * (2 * moments + 1)
    return 2 * np.log(left + right + gamma * left * -np.expm1(-rate) / rate)


# Parts and counts.


@pytest.mark.claim("pate.partition", kind="chosen cases")
@given(n=st.integers(1, 300), teachers=st.integers(1, 40), seed=st.integers(0, 9))
def test_every_record_goes_to_one_teacher(n, teachers, seed):
    n = max(n, teachers)
    parts = pate.partition(n, teachers, rng=seed)
    assert len(parts) == teachers
    assert sorted(np.concatenate(parts)) == list(range(n))
    assert {part.size for part in parts} <= {n // teachers, -(-n // teachers)}


def test_who_gets_which_record_is_left_to_chance():
    [first, *_] = pate.partition(1000, 2, rng=1)
    assert 0 < abs(np.count_nonzero(first < 500) - 250) < 60
    assert np.array_equal(first, pate.partition(1000, 2, rng=1)[0])


@pytest.mark.parametrize("teachers", [1, 7, 255, 256, 600])
@pytest.mark.parametrize("classes", [2, 10, 33, 257])
@pytest.mark.parametrize("queries", [1, 50, 3000])
def test_votes_are_counted_as_bincount_counts_them(teachers, classes, queries):
    predictions = np.random.default_rng(0).integers(0, classes, size=(teachers, queries))
    predictions[:, 0] = classes - 1
    votes = pate.count_votes(predictions, classes)
    for query in {0, queries // 2, queries - 1}:
        expected = np.bincount(predictions[:, query], minlength=classes)
        np.testing.assert_array_equal(votes[query], expected)
        np.testing.assert_array_equal(pate.count_votes(predictions[:, query], classes), expected)


# The distribution.


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize(
    ("votes", "scale"), [([30, 22, 25], 9.0), ([*np.arange(100) // 2 * 3, 0], 5.0)]
)
def test_the_distribution_is_the_integral_by_which_it_is_defined(noise, votes, scale):
    # Of a hundred classes, so many stand in front that the rule leaves out the lowest ones.
    law, votes = LAWS[noise](scale=scale), np.array(votes)
    log_chances = np.log(pate.output_distribution(votes, scale, noise=noise))
    highest = votes.max()
    edges = [-200, *np.unique(votes)[-20:], highest + 5 * scale, highest + 20 * scale, 400]
    for j in range(0, len(votes), 1 + len(votes) // 4):

        def integrand(x, j=j):
            log_below = law.logcdf(x - votes)
            log_others = log_below.sum() - log_below[j]
            return math.exp(law.logpdf(x - votes[j]) + log_others - log_chances[j])

        parts = [
            integrate.quad(integrand, *ends, epsabs=1e-13) for ends in itertools.pairwise(edges)
        ]
        assert sum(part for part, _ in parts) == pytest.approx(1, abs=1e-9)


@given(gap=st.integers(0, 250), scale=scales)
def test_of_two_classes_the_distribution_is_known_and_exact_far_into_the_tail(gap, scale):
    x = gap / scale
    [_, loses] = pate.output_distribution([gap + 3, 3], scale)
    assert x > 650 or math.log(loses) == pytest.approx(math.log((2 + x) / 4) - x, abs=1e-11)
    [_, loses] = pate.output_distribution([gap + 3, 3], scale, noise="gaussian")
    expected = special.log_ndtr(-x / math.sqrt(2))
    assert x > 51 or math.log(loses) == pytest.approx(expected, abs=1e-9)


@given(votes=small_votes, scale=scales, noise=st.sampled_from([*LAWS]), shift=st.integers(0, 99))
@example(votes=[0, 0, 0, 0], scale=20.0, noise="laplace", shift=0)
def test_chances_sum_to_1_and_a_shift_of_all_votes_changes_nothing(votes, scale, noise, shift):
    chances = pate.output_distribution(votes, scale, noise=noise)
    assert chances.sum() == pytest.approx(1, abs=1e-14)
    assert chances.min() > 0
    table = [votes, votes[::-1], np.add(votes, shift)]
    found = pate.output_distribution(table, scale, noise=noise)
    np.testing.assert_allclose(found, [chances, chances[::-1], chances], rtol=1e-10)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_quadrature_is_right_to_twelve_digits_even_for_thousands_of_classes(noise):
    rng, many, before = np.random.default_rng(5), 2000, time.process_time()
    for votes in (
        *(ROW, [25] * 10, [250] + [0] * 9, [83, 83, 84] + [0] * 7, [5, 0] * 5),
        *(rng.multinomial(250, [1 / many] * many), rng.integers(0, 10**6, many)),
        *([0] * many, [300] + [0] * (many - 1), [0] * (many - 90) + [3] * 90),
    ):
        for scale in (0.5, 1.0, 3.0, 20.0, 40.0):
            logs = pate.votes.log_distribution(np.array([votes]), scale, noise)
            assert np.exp(logs).sum() == pytest.approx(1, abs=2e-13)
    # The product over all classes took a minute where each class had one of its own.
    assert time.process_time() - before < 20


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("cells", [1, 50, 700])
def test_points_in_blocks_give_the_same_distribution(noise, cells, monkeypatch):
    table = np.array([[30, 22, 25, 25, 0], [9, 9, 9, 9, 9], [300, 0, 1, 2, 3]])
    whole = pate.votes.log_distribution(table, 9.0, noise)
    monkeypatch.setattr(pate.votes, "_CELLS", cells)
    found = pate.votes.log_distribution(table, 9.0, noise)
    np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-12)


# What is drawn.


@pytest.mark.claim("pate.LNMax.answer", "pate.GNMax.answer", kind="simulation with its error")
@pytest.mark.claim("pate.GumbelMax.answer", kind="simulation with its error")
@pytest.mark.parametrize("votes", [[12, 10, 3], [5, 5], [0, 0, 0, 0], [7, 0]])
@pytest.mark.parametrize("scale", [0.4, 4.0, 40.0])
def test_labels_are_drawn_from_their_distribution(votes, scale):
    for ask in (pate.LNMax(1 / scale), pate.GNMax(scale), pate.GumbelMax(scale)):
        drawn = ask.answer(np.tile(votes, (40_000, 1)), rng=5)
        assert is_distributed_as(drawn, ask.output_distribution(votes))


def test_a_wrong_scale_of_noise_would_be_noticed():
    drawn = pate.GNMax(4.5).answer(np.tile([12, 10, 3], (40_000, 1)), rng=5)
    assert not is_distributed_as(drawn, pate.GNMax(4.0).output_distribution([12, 10, 3]))


@pytest.mark.parametrize("gamma", [0.001, 0.05, 1.0])
def test_a_vote_changes_the_realised_odds_of_the_noise_by_gamma(gamma):
    vote = 2 ** mechanisms.grid(1 / gamma)
    chances = [realised_bytes(table) for table in _coins._byte_tables(gamma / vote)]
    logs = [[math.log(chance) if chance else -math.inf for chance in row] for row in chances]

    def log_odds(noise):
        return math.fsum(row[noise >> 8 * place & 255] for place, row in enumerate(logs))

    for noise in np.random.default_rng(0).integers(0, int(40 * vote / gamma), 500).tolist():
        step = log_odds(noise) - log_odds(noise + vote)
        assert step == pytest.approx(gamma, abs=5e-14)


@pytest.mark.parametrize(
    "ask", [pate.LNMax(0.05), pate.GumbelMax(20), pate.GNMax(40), pate.ConfidentGNMax(0, 40, 30)]
)
@pytest.mark.parametrize("cells", [1, 35])
def test_noise_is_drawn_anew_for_every_block_of_queries(ask, cells, monkeypatch):
    # One or four queries of eight classes a block.
    monkeypatch.setattr(mechanisms, "_CELLS", cells)
    drawn = ask.answer(np.full((3002, 8), 5), rng=3)
    blocks = drawn[:3000].reshape(-1, 4)
    assert len({tuple(block) for block in blocks.tolist()}) > 400
    agreeing = [np.mean(a == b) for a, b in itertools.combinations(blocks.T, 2)]
    agreeing.append(np.mean(blocks[1:] == blocks[:-1]))
    np.testing.assert_allclose(agreeing, np.square(np.bincount(drawn + 1) / 3002).sum(), atol=0.06)
    assert is_distributed_as(drawn[drawn >= 0], np.full(8, 1 / 8))


@pytest.mark.parametrize("classes", [2, 10, 256, 257, 300])
def test_the_place_of_the_largest_is_found_among_any_number_of_classes(classes):
    rng = np.random.default_rng(1)
    noisy = rng.permuted(np.tile(np.arange(classes), (500, 1)), axis=1).T.copy()
    noisy[:, 0] = np.arange(classes)
    assert np.array_equal(mechanisms._places_of_largest(noisy, rng), noisy.argmax(axis=0))


def test_only_the_largest_that_are_equal_share_a_lot():
    noisy = np.tile([[3], [9], [0], [9], [9], [1]], (1, 6000))
    noisy[0, ::2] = 10
    places = mechanisms._places_of_largest(noisy, np.random.default_rng(2))
    assert not places[::2].any()
    assert is_distributed_as(places[1::2], np.array([0, 1, 0, 1, 1, 0]) / 3)


def test_the_only_tie_of_a_block_is_decided_by_lot_too():
    noisy, rng = np.array([[7, 3], [7, 5], [2, 5], [1, 9]]), np.random.default_rng(3)
    places = np.array([mechanisms._places_of_largest(noisy, rng) for _ in range(400)])
    assert is_distributed_as(places[:, 0], [0.5, 0.5])
    assert (places[:, 1] == 3).all()


@pytest.mark.claim("pt-one-query", "pate.GumbelMax.answer", kind="chosen cases")
@pytest.mark.parametrize(
    "votes", [[0, 90], [90, 0], [7, 7], [0, 50, 3], [60, 0, 0, 1, 59], [5] * 7]
)
def test_however_rare_a_label_is_its_coins_have_its_probability(votes, monkeypatch):
    ask = pate.GumbelMax(1.0)
    expected = ask.output_distribution(votes)
    realised = realised_distribution(monkeypatch, lambda: ask.answer(votes, rng=0))
    found = [float(realised[label]) for label in range(len(votes))]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert sum(realised.values()) == 1


@given(scale=st.floats(1e-9, 1e9))
def test_the_grid_is_a_millionth_of_the_noise_or_the_finest_there_is(scale):
    steps = 2.0 ** mechanisms.grid(scale)
    assert scale * steps >= 1e6 or steps == 2**30
    assert scale * steps <= 2**21 or steps == 1


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e9])
def test_noise_of_any_scale_fits_its_integers(scale):
    votes = np.tile([2**30 - 1, 0, 2**30 - 1], (400, 1))
    for ask in (pate.LNMax(1 / scale), pate.GNMax(scale)):
        drawn = set(ask.answer(votes, rng=1).tolist())
        assert drawn == ({0, 1, 2} if scale == 1e9 else {0, 2})


def test_a_query_by_itself_is_one_number():
    assert type(pate.LNMax(1.0).answer(ROW, rng=0)) is int
    assert type(pate.ConfidentGNMax(0, 1.0, 1.0).answer(ROW, rng=0)) is int
    assert pate.ConfidentGNMax(1000, 1.0, 1.0).answer(ROW, rng=0) == -1


@pytest.mark.claim("pate.ConfidentGNMax.answer", kind="simulation with its error")
def test_confident_answers_come_as_often_as_the_threshold_lets_them():
    votes, ask = [120, 70, 60], pate.ConfidentGNMax(150.5, 40.0, 30.0)
    p = float(special.ndtr((120 - 150.5) / 40))
    chances = p * pate.output_distribution(votes, 30.0, noise="gaussian")
    drawn = ask.answer(np.tile(votes, (40_000, 1)), rng=6)
    assert is_distributed_as(drawn + 1, [1 - p, *chances])
    np.testing.assert_allclose(ask.output_distribution(votes), [*chances, 1 - p], rtol=1e-12)


def test_a_threshold_that_is_just_reached_is_reached(monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_gaussian", lambda size, *_: np.zeros(size, int))
    table = [[9, 1], [10, 0], [11, 2]]
    assert pate.ConfidentGNMax(10, 1.0, 1.0).answer(table).tolist() == [-1, 0, 0]
    # However little a threshold is above a count, that count is below it.
    above = pate.ConfidentGNMax(np.nextafter(10, 11), 1.0, 1.0)
    assert above.answer(table).tolist() == [-1, -1, 0]


# The chance of another label.


def test_reference_values_of_error_probabilities():
    for votes, gamma, bound, exact in [
        (ROW, 0.05, 0.000779713936, 0.000622592247),
        (ROW, 0.1, 4.0404834e-8, 3.60200e-8),
        ([100, 90, 60], 0.05, 0.514416946, 0.418497675),
    ]:
        assert pate.lnmax_error_probability(votes, gamma) == pytest.approx(bound, rel=5e-8)
        found = pate.lnmax_error_probability(votes, gamma, method="exact")
        assert found == pytest.approx(exact, rel=1e-6)
    assert pate.gnmax_log_error_probability(ROW, 40) == pytest.approx(-6.97187687, abs=5e-9)


@pytest.mark.claim("pt-union", kind="chosen cases")
@given(votes=small_votes, scale=scales)
@example(votes=[9, 9, 9], scale=20.0)
@example(votes=[1, 0], scale=0.7)
def test_the_bound_is_never_below_the_exact_chance_and_equal_for_two_classes(votes, scale):
    exact = pate.lnmax_error_probability(votes, 1 / scale, method="exact")
    bound = pate.lnmax_error_probability(votes, 1 / scale)
    assert exact <= bound * (1 + 1e-10)
    assert bound <= 1 - 1 / len(votes)
    log_exact = pate.gnmax_log_error_probability(votes, scale, method="exact")
    log_bound = pate.gnmax_log_error_probability(votes, scale)
    assert log_exact <= log_bound + 1e-9
    if len(votes) == 2:
        assert exact == pytest.approx(bound, rel=1e-10, abs=0)
        assert log_exact == pytest.approx(log_bound, abs=1e-9)


def test_the_chance_is_one_minus_that_of_the_first_among_the_largest():
    for votes in (ROW, [31, 31, 30]):
        chances = pate.output_distribution(votes, 20.0)
        found = pate.lnmax_error_probability(votes, 0.05, method="exact")
        assert found == pytest.approx(1 - chances[np.argmax(votes)], rel=1e-11)


def test_a_chance_too_small_for_a_double_has_a_logarithm():
    found = pate.gnmax_log_error_probability([10_000, 0], 10)
    assert found == pytest.approx(special.log_ndtr(-1000 / math.sqrt(2)), rel=1e-12)
    # Where quadrature gives up, the bound is nearer.
    assert found == pate.gnmax_log_error_probability([10_000, 0], 10, method="exact")
    assert pate.gnmax_log_error_probability([2**31 - 1, 0], 1e-9) < -1e30
    assert pate.lnmax_error_probability([10_000, 0], 1.0) == 0


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "<u2", "i4", ">u8", "f2", "f4", "f8", "g"])
def test_votes_may_be_numbers_of_any_width(dtype):
    table = np.array([[100, 3, 0], [0, 1, 101]])
    found = pate.gnmax_rdp(table.astype(dtype), 40, [2, 14])
    np.testing.assert_array_equal(found, pate.gnmax_rdp(table, 40, [2, 14]))
    assert pate.LNMax(5.0).answer(table.astype(dtype), rng=0).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(np.inf, "f2"), (2.0**31, "f4"), (2**64 - 1, "u8"), (1 + np.longdouble(2.0**-60), "g")],
)
def test_what_is_no_number_of_votes_is_refused_in_every_width(number, dtype):
    if number == 1:
        pytest.skip("long doubles are doubles on this machine")
    with pytest.raises(ValueError, match="votes must be whole numbers of which a"):
        pate.GNMax(1.0).answer(np.array([number, 1], dtype), rng=0)


# Moments.


def test_reference_values_of_moments():
    moments = np.array([1, 2, 8])
    found = moments * pate.lnmax_rdp(ROW, 0.05, moments + 1)
    np.testing.assert_allclose(found, [1.63999743e-4, 3.36600812e-4, 1.6105419e-3], rtol=3e-8)
    # Where teachers disagree, the first paper has twice what two Laplace losses cost, and more.
    found = [1, 2, 3] * pate.lnmax_rdp([30, 20, 5], 0.05, [2, 3, 4], method="2017")
    np.testing.assert_allclose(found, [0.01, 0.03, 0.06], rtol=1e-12)
    expected = [2.6471732e-4, 3.36471618e-4, 4.62955959e-4, 1.89277658e-3]
    np.testing.assert_allclose(pate.gnmax_rdp(ROW, 40, [2, 8, 14, 32]), expected, rtol=2e-8)


def worst_divergence(ask, votes, order):
    """Return the exact divergence of these votes from the worst neighbouring ones."""
    here, *others = ask.output_distribution([votes, *neighbours(votes)])
    return max((log_moment(here, other, order - 1) for other in others), default=0) / (order - 1)


def stated_divergence(ask, votes, order):
    """Return the divergence that a secret cost at one order has been made of."""
    cost = ask.secret_cost(votes, 1e-5, orders=[order], conversion="classic", method="exact")
    if not cost.epsilon:
        return 0.0
    assert (cost.delta, cost.order) == (1e-5, order)
    return cost.epsilon - math.log(1e5) / (order - 1)


@pytest.mark.claim("pate.lnmax_rdp", kind="enumeration")
@pytest.mark.claim("pt-agree", kind="enumeration")
@pytest.mark.claim("pate.LNMax.secret_cost", kind="enumeration")
@given(
    votes=small_votes,
    gamma=st.sampled_from([0.02, 0.1, 0.3, 1.0, 3.0]),
    order=st.sampled_from([1.5, 2, 3, 8, 21]),
)
@settings(max_examples=60)
@example(votes=[10, 3], gamma=1.0, order=2)
@example(votes=[40, 0, 0], gamma=0.1, order=8)
def test_no_neighbour_has_larger_moments_than_the_bound(votes, gamma, order):
    bound, exact = (pate.lnmax_rdp(votes, gamma, order, method=method) for method in METHODS)
    assert exact <= bound * (1 + 1e-9)
    found = worst_divergence(pate.LNMax(gamma), votes, order)
    assert (order - 1) * found <= (order - 1) * exact + 1e-11
    assert found <= stated_divergence(pate.LNMax(gamma), votes, order) + 1e-9


@pytest.mark.claim("pate.gnmax_rdp", kind="enumeration")
@pytest.mark.claim("pt-gnmax", kind="enumeration")
@pytest.mark.claim("pate.GNMax.secret_cost", kind="enumeration")
@given(
    votes=small_votes,
    sigma=st.sampled_from([0.7, 3.0, 8.0, 25.0]),
    order=st.sampled_from([1.5, 2, 5, 20, 60]),
)
@settings(max_examples=60)
@example(votes=[40, 0], sigma=5.0, order=20)
def test_no_neighbour_diverges_more_than_the_bound(votes, sigma, order):
    bound, exact = (pate.gnmax_rdp(votes, sigma, order, method=method) for method in METHODS)
    assert exact <= bound * (1 + 1e-9) + 1e-15
    assert bound <= order / sigma**2 * (1 + 1e-12)
    stated = stated_divergence(pate.GNMax(sigma), votes, order)
    assert worst_divergence(pate.GNMax(sigma), votes, order) <= min(exact, stated) + 1e-9


def theorem_3(gap, gamma, moment):
    """Return Theorem 3 for two classes, to many digits."""
    gap, gamma, moment = map(mpmath.mpf, (gap, gamma, moment))
    q = (2 + gamma * gap) / 4 * mpmath.exp(-gamma * gap)
    share = (moment + 1) / (2 * moment + 1)
    two = share * mpmath.exp(moment * gamma) + (1 - share) * mpmath.exp(-(moment + 1) * gamma)
    cap = min(2 * mpmath.log(two), 2 * gamma * moment)
    if q > 1 / (mpmath.exp(2 * gamma) + 1):
        return cap
    near = ((1 - q) / (1 - mpmath.exp(2 * gamma) * q)) ** moment
    return min(mpmath.log((1 - q) * near + q * mpmath.exp(2 * gamma * moment)), cap)


def theorem_6(gap, sigma, order):
    """Return Theorem 6 for two classes, to many digits."""
    gap, sigma, order = map(mpmath.mpf, (gap, sigma, order))
    q, cap = mpmath.erfc(gap / 2 / sigma) / 2, order / sigma**2
    low = sigma * mpmath.sqrt(-mpmath.log(q))
    high, loss = low + 1, low / sigma**2
    if low <= 1 or order > high:
        return cap
    if mpmath.log(q) > (low - 1) * loss - low * mpmath.log(high / low * low / (low - 1)):
        return cap
    a = (1 - q) / (1 - (q * mpmath.exp(loss)) ** (1 - 1 / low))
    b = mpmath.exp(high / sigma**2) * q ** (-1 / low)
    sums = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
    return min(mpmath.log(sums) / (order - 1), cap)


@pytest.mark.parametrize("moment", [2.0**-50, 1e-9, 1e-3, 0.5, 1.0, 7.0, 40.0, 1e5])
@pytest.mark.parametrize("scale", [0.01, 1.0, 40.0, 1e4, 1e8])
def test_moments_keep_their_digits_where_they_are_tiny_or_huge(scale, moment):
    with mpmath.workdps(200):
        for gap in {int(scale * part) + 1 for part in (0, 0.3, 3, 6, 20)}:
            order = 1 + moment
            expected = float(theorem_3(gap, 1 / scale, order - 1)) / (order - 1)
            found = pate.lnmax_rdp([gap, 0], 1 / scale, order)
            assert found == pytest.approx(expected, rel=1e-10, abs=1e-300)
            expected = float(theorem_6(gap, scale, order))
            found = pate.gnmax_rdp([gap, 0], scale, order)
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-300)


@given(gap=st.integers(0, 300), gamma=st.sampled_from([0.01, 0.05, 0.3, 2.0]))
def test_agreement_never_costs_more_and_a_tie_costs_the_data_independent_bound(gap, gamma):
    orders = np.array([1.5, 2, 8, 30, 100])
    two = np.minimum(two_laplace(gamma, orders - 1) / (orders - 1), 2 * gamma)
    for rdp, noise, at_most in (
        (pate.gnmax_rdp, 1 / gamma, orders * gamma**2),
        (pate.lnmax_rdp, gamma, two),
    ):
        tie, less, more = (rdp([lead, 0], noise, orders) for lead in (0, gap, gap + 2))
        np.testing.assert_allclose(tie, at_most, rtol=1e-10)
        assert np.all(more <= less * (1 + 1e-9))


@pytest.mark.parametrize(
    "ask", [pate.LNMax(0.05), pate.GumbelMax(20), pate.GNMax(40), pate.ConfidentGNMax(200, 150, 40)]
)
def test_costs_of_queries_add_up_and_so_do_those_of_workers(ask):
    table = np.random.default_rng(1).multinomial(250, [0.8] + [0.05] * 4, size=300)
    orders = np.array([2.0, 7.5, 14.0, 60.0, 300.0])
    whole = ask.rdp(table, orders)
    workers = ask.rdp(table[:77, ::-1], orders) + ask.rdp(table[77:], orders)
    np.testing.assert_allclose(workers, whole, rtol=1e-12)
    np.testing.assert_allclose(sum(ask.rdp(row, orders) for row in table), whole, rtol=1e-12)
    np.testing.assert_allclose(ask.rdp([*table, *table], orders), 2 * whole, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("answered", [None, np.arange(60) % 3 == 0])
def test_small_blocks_give_the_same_sums(monkeypatch, size, answered):
    table = np.random.default_rng(1).multinomial(100, [0.7, 0.2, 0.1], size=60)
    orders, ask = [20.0, 2.0, 300.0], pate.ConfidentGNMax(70, 30, 20)
    whole = ask.rdp(table, orders, answered=answered)
    monkeypatch.setattr(costs, "_QUERIES", size)
    monkeypatch.setattr(costs, "_CELLS", size)
    np.testing.assert_allclose(ask.rdp(table, orders, answered=answered), whole, rtol=1e-12)


def test_orders_may_be_whole_numbers_in_any_order_or_one_number():
    expected = pate.gnmax_rdp(ROW, 40, [2.0, 32.0])
    found = pate.gnmax_rdp(ROW, 40, np.array([32, 2], np.uint8))
    np.testing.assert_array_equal(found[::-1], expected)
    single = pate.gnmax_rdp(ROW, 40, 32)
    assert (single, type(single)) == (expected[1], float)


def test_memory_does_not_grow_with_the_queries():
    def peak(queries):
        table = np.random.default_rng(2).integers(0, 250, size=(queries, 2))
        tracemalloc.start()
        pate.gnmax_rdp(table, 40, np.linspace(2, 100, 300))
        [_, most] = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # Checking the votes copies them; the table of orders and queries would be 300 times as large.
    assert peak(80_000) < peak(20_000) + 60_000 * 60


# The threshold.


def test_reference_values_of_the_threshold():
    votes, ask, p = [214, 36], pate.ConfidentGNMax(200, 150, 40), math.exp(-0.621420883)
    assert ask.secret_cost(votes, 1e-5).answered == pytest.approx(p, rel=1e-9)
    found = ask.rdp(votes, 14) - p * pate.gnmax_rdp(votes, 40, 14)
    assert found == pytest.approx(3.1111e-4, rel=1e-4)


@pytest.mark.claim("pate.ConfidentGNMax.rdp", kind="chosen cases")
@pytest.mark.claim("pate.ConfidentGNMax.secret_cost", kind="chosen cases")
@pytest.mark.parametrize(
    ("top", "threshold", "sigma", "order"),
    [(30, 20, 3.0, 2), (30, 29, 8.0, 5), (30, 50, 4.0, 8), (9, 0, 1.0, 3)],
)
def test_deciding_costs_no_neighbour_more_than_the_bound(top, threshold, sigma, order):
    bound = pate.ConfidentGNMax(threshold, sigma, 1.0).rdp([top, 0], order, answered=np.False_)
    for other in (top - 1, top + 1):
        chances = special.ndtr((np.array([top, other])[:, None] - threshold) / sigma * [1, -1])
        assert log_moment(*chances, order - 1) / (order - 1) <= bound + 1e-13


def test_a_sure_refusal_costs_as_little_as_a_sure_answer():
    ask = pate.ConfidentGNMax(200, 20, 1.0)
    refused, answered = (ask.rdp([top, 0], 3, answered=np.False_) for top in (50, 350))
    assert refused == pytest.approx(answered, rel=1e-12, abs=0)
    assert refused < 1e-6 * 3 / (2 * 20**2)


@pytest.mark.claim("pate.ConfidentGNMax.rdp", kind="chosen cases")
def test_what_was_answered_replaces_what_is_expected():
    table = np.random.default_rng(1).multinomial(250, [0.8, 0.1, 0.1], size=30)
    orders, ask = [2.0, 14.0], pate.ConfidentGNMax(200, 150, 40)
    nothing, everything = (ask.rdp(table, orders, answered=[yes] * 30) for yes in (False, True))
    np.testing.assert_allclose(everything - nothing, pate.gnmax_rdp(table, 40, orders), rtol=1e-9)
    expected = ask.rdp(table, orders)
    assert np.all((nothing < expected) & (expected < everything))
    assert ask.secret_cost(table, 1e-5, answered=np.arange(30) < 7).answered == 7


# One vote is two numbers with noise of their own.


@pytest.mark.claim("pt-two-laplace", kind="chosen cases")
@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0])
def test_a_moved_vote_costs_lnmax_no_more_than_two_laplace_losses(gamma):
    rng, moments = np.random.default_rng(0), np.array([0.5, 1, 2, 4, 8, 16, 32])
    two, largest = two_laplace(gamma, moments), 0
    for _ in range(100):
        votes = rng.integers(0, rng.choice([3, 20, 60]), rng.integers(2, 7))
        votes[0] += 1
        here, *others = pate.output_distribution([votes, *neighbours(votes)[:3]], 1 / gamma)
        for one, another in itertools.chain(*(((here, o), (o, here)) for o in others)):
            found = [log_moment(one, another, moment) for moment in moments]
            largest = max(largest, np.max(found / two))
    # One loss alone would not do, and gamma^2 l (l + 1) is more than the two.
    assert 0.54 < largest <= 1 + 1e-9
    assert np.all(two <= gamma**2 * moments * (moments + 1) * (1 + 1e-12))


# What answering costs, whatever the votes.


@needs_accounting
@pytest.mark.parametrize(
    ("queries", "scale", "expected"),
    [(100, 20, 2.753), (1000, 20, 10.71), (100, 10, 6.12), (100, 40, 1.27), (100, 80, 0.6)],
)
def test_reference_values_of_lnmax(queries, scale, expected):
    assert float(pate.LNMax(1 / scale).cost(queries, 1e-5)) == pytest.approx(expected, abs=6e-3)


def composed_epsilon(chances, others, queries, delta):
    """Return the epsilon of so many answers of two labels each, all on the same two tables."""
    first = np.arange(queries + 1)
    log_pmf = stats.binom.logpmf(first, queries, chances[0])
    losses = log_pmf - stats.binom.logpmf(first, queries, others[0])

    def excess(epsilon):
        above = losses > epsilon
        return np.exp(log_pmf[above]) @ -np.expm1(epsilon - losses[above]) - delta

    return optimize.brentq(excess, 0, losses.max()) if excess(0) > 0 else 0.0


def lower_limit(mechanism, queries, delta):
    """Return the largest epsilon of so many answers of two labels, over all leads."""
    leads = [[200 + lead, 200] for lead in range(-2, 41)]
    rows = mechanism.output_distribution(leads)[:, :2]
    # A vote that moves changes a lead by 2.
    return max(
        composed_epsilon(one, other, queries, delta)
        for a, b in itertools.pairwise(range(0, 43, 2))
        for one, other in ((rows[a], rows[b]), (rows[b], rows[a]))
    )


@needs_accounting
def test_costs_lie_above_what_two_labels_really_cost():
    asks = (pate.LNMax(0.05), pate.GumbelMax(20), pate.GNMax(40))
    limits = [lower_limit(ask, 100, 1e-5) for ask in asks]
    found = [float(ask.cost(100, 1e-5)) for ask in asks]
    assert [round(limit, 3) for limit in limits[:2]] == [1.974, 1.988]
    assert np.all(np.less(limits, found))
    # The exponential mechanism of bounded range costs hardly more than two labels show.
    assert found[1] < 1.003 * limits[1]


@pytest.mark.claim("pt-one-query", kind="enumeration")
@pytest.mark.claim("pate.LNMax.cost", "pate.GNMax.cost", "pate.GumbelMax.cost", kind="enumeration")
@pytest.mark.claim("pate.ConfidentGNMax.cost", kind="enumeration")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "mechanism",
    [
        *(kind(scale) for kind in (pate.GumbelMax, pate.GNMax) for scale in (0.8, 3.0)),
        *(pytest.param(pate.LNMax(gamma), marks=needs_accounting) for gamma in (0.3, 1.2)),
        *(pate.ConfidentGNMax(5, sigma_threshold, 1.5) for sigma_threshold in (1.0, 3.0)),
    ],
)
def test_one_answer_costs_no_more_than_it_says_on_any_votes(mechanism, classes):
    ballots = tables(9, classes)
    chances = mechanism.output_distribution(ballots)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    pairs = np.argwhere(np.abs(ballots[:, None] - ballots).sum(axis=2) == 2)
    spent = 0
    for delta in (1e-4, 1e-2, 0.1):
        found = exact_delta(chances, float(mechanism.cost(1, delta)), neighbours=pairs)
        assert found <= delta * (1 + 1e-9)
        spent = max(spent, found / delta)
    # A promise of which nothing is spent would be no test.
    assert spent > 0.01
    if isinstance(mechanism, pate.LNMax | pate.GumbelMax):
        pure = 2 / mechanism._noise()
        assert 0.75 * pure < exact_epsilon(chances, neighbours=pairs) <= pure * (1 + 1e-9)


def capped(ask, votes, answers):
    """Return the probability of every sequence of three answers of which only so many are given."""
    chances, sequences = ask.output_distribution(votes), Counter()
    refused = len(chances) - 1
    for told in itertools.product(range(len(chances)), repeat=3):
        given = np.cumsum(np.array(told) < refused)
        sequences[*np.where(given > answers, refused, told)] += math.prod(chances[[*told]])
    return np.array([*sequences.values()])


@pytest.mark.claim("pate.ConfidentGNMax.cost", kind="enumeration")
@pytest.mark.parametrize("answers", [0, 1, 2, 3])
def test_a_number_of_answers_that_is_kept_bounds_the_cost_of_all(answers):
    ask, delta, worst = pate.ConfidentGNMax(6, 1.2, 1.5), 0.02, 0
    growth = math.exp(float(ask.cost(3, delta, answers=answers)))
    for votes in tables(9, 3):
        here = capped(ask, votes, answers)
        for other in neighbours(votes):
            there = capped(ask, other, answers)
            worst = max(worst, np.maximum(here - growth * there, 0).sum())
    assert worst <= delta
    # Of no answers nothing is told, not even which were wanted.
    assert worst > 0.002 * delta or answers == 0


@pytest.mark.claim("pt-two-laplace", kind="enumeration")
@pytest.mark.claim("pate.LNMax.cost", "pate.GNMax.cost", "pate.GumbelMax.cost", kind="enumeration")
@pytest.mark.parametrize("queries", [2, 3])
@pytest.mark.parametrize(
    "mechanism",
    [pytest.param(pate.LNMax(0.6), marks=needs_accounting), pate.GumbelMax(1.5), pate.GNMax(2.0)],
)
def test_several_answers_cost_no_more_than_they_say_on_any_votes(mechanism, queries):
    delta, worst = 0.1, 0
    growth = math.exp(float(mechanism.cost(queries, delta)))
    rows = mechanism.output_distribution(tables(10, 2))
    pairs = [*itertools.pairwise(range(11)), *itertools.pairwise(range(10, -1, -1))]
    for chosen in itertools.combinations_with_replacement(pairs, queries):
        told = functools.reduce(np.kron, [rows[here] for here, _ in chosen])
        other = functools.reduce(np.kron, [rows[there] for _, there in chosen])
        worst = max(worst, np.maximum(told - growth * other, 0).sum())
    assert 0.03 * delta < worst <= delta * (1 + 1e-9)


def test_by_default_all_queries_may_be_answered():
    ask = pate.ConfidentGNMax(200, 150, 40)
    assert ask.cost(640, 1e-5) == ask.cost(640, 1e-5, answers=640)
    assert pate.GNMax(40).cost(9, 1e-5, answers=9) == pate.GNMax(40).cost(9, 1e-5)
    with pytest.raises(ValueError, match="answers must be an integer in"):
        pate.GNMax(40).cost(9, 1e-5, answers=8)


@needs_accounting
def test_an_independent_accountant_agrees():
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld import privacy_loss_distribution

    for queries, sigma in ((1, 3.0), (286, 40.0), (5000, 200.0)):
        expected = get_epsilon_gaussian(sigma / math.sqrt(2 * queries), 1e-5)
        assert float(pate.GNMax(sigma).cost(queries, 1e-5)) == pytest.approx(expected, rel=1e-6)
    mu = math.sqrt(640 / 150**2 + 2 * 286 / 40**2)
    found = pate.ConfidentGNMax(200, 150, 40).cost(640, 1e-5, answers=286)
    assert float(found) == pytest.approx(get_epsilon_gaussian(1 / mu, 1e-5), rel=1e-6)
    for queries, scale in ((3, 2.0), (100, 0.5)):
        single = privacy_loss_distribution.from_laplace_mechanism(
            scale, value_discretization_interval=1e-3 / scale
        )
        expected = single.self_compose(2 * queries).get_epsilon_for_delta(1e-5)
        assert float(pate.LNMax(1 / scale).cost(queries, 1e-5)) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    "make",
    [pytest.param(pate.LNMax, marks=needs_accounting), lambda g: pate.GumbelMax(1 / g),
     lambda g: pate.GNMax(1 / g), lambda g: pate.ConfidentGNMax(20, 1 / g, 1 / g)],
)  # fmt: skip
def test_more_queries_and_less_noise_cost_more(make):
    for found in (
        [float(make(0.05).cost(queries, 1e-5)) for queries in (0, 1, 10, 50)],
        [float(make(gamma).cost(20, 1e-5)) for gamma in (1e-9, 0.05, 0.1, 0.5, 1e9)],
        [float(make(0.05).cost(20, delta)) for delta in (1e-2, 1e-5, 1e-9)],
    ):
        assert np.all(np.diff(found) > 0)
        assert np.isfinite(found).all()


# The least noise for a cost.


@pytest.mark.claim("pate.LNMax.for_cost", "pate.GumbelMax.for_cost", kind="chosen cases")
@pytest.mark.claim("pate.GNMax.for_cost", kind="chosen cases")
@pytest.mark.parametrize(
    "kind", [pytest.param(pate.LNMax, marks=needs_accounting), pate.GumbelMax, pate.GNMax]
)
@pytest.mark.parametrize(("queries", "delta"), [(1, 1e-5), (12, 1e-9), (8, 0.2)])
def test_the_least_noise_costs_what_was_asked_and_never_more(kind, queries, delta):
    for epsilon in (0.01, 0.7, 1.0, 6.0, 40.0):
        ask = kind.for_cost(epsilon, delta, queries)
        assert epsilon * (1 - 2e-5) < float(ask.cost(queries, delta)) <= epsilon


@pytest.mark.claim("pate.ConfidentGNMax.for_cost", kind="chosen cases")
@given(
    epsilon=st.floats(1e-3, 50),
    delta=st.floats(1e-12, 0.3),
    queries=st.integers(1, 10**4),
    share=st.floats(0, 1),
    ratio=st.floats(1e-2, 1e2),
)
@settings(max_examples=30, deadline=None)
@example(epsilon=0.001, delta=1e-12, queries=10**4, share=1.0, ratio=100.0)
@example(epsilon=50.0, delta=0.3, queries=1, share=0.0, ratio=0.01)
def test_the_least_noise_of_the_confident_one_keeps_the_ratio(
    epsilon, delta, queries, share, ratio
):
    asked = {"delta": delta, "queries": queries, "answers": int(share * queries)}
    ask = pate.ConfidentGNMax.for_cost(epsilon, **asked, threshold=200, ratio=ratio)
    assert ask.sigma_threshold / ask.sigma == pytest.approx(ratio, rel=1e-12)
    assert ask.threshold == 200
    assert epsilon * (1 - 2e-5) < float(ask.cost(**asked)) <= epsilon


def test_a_cost_that_no_noise_keeps_to_is_refused_and_a_large_one_gets_the_least_noise():
    confident = functools.partial(pate.ConfidentGNMax.for_cost, threshold=200, ratio=1000.0)
    with pytest.raises(ValueError, match="epsilon must be large enough for noise"):
        pate.GNMax.for_cost(1e-9, 1e-12, 10)
    with pytest.raises(ValueError, match="epsilon must be large enough for noise"):
        confident(0.001, 1e-12, 10**6, answers=10**6)
    ask = pate.GumbelMax.for_cost(1e12, 1e-5, 3)
    assert float(ask.cost(3, 1e-5)) <= 1e12
    least = [ask.scale, confident(1e30, 1e-5, 3, answers=2).sigma]
    np.testing.assert_allclose(least, 1e-9, rtol=1e-6)


# What it costs at these votes.


@pytest.mark.claim("pt-moments", "pate.GumbelMax.secret_cost", kind="enumeration")
@given(
    votes=small_votes,
    scale=st.sampled_from([0.3, 1.0, 5.0, 40.0]),
    order=st.sampled_from([1.001, 1.5, 2, 8, 30, 400]),
)
@settings(max_examples=60)
@example(votes=[40, 1], scale=0.3, order=400)
@example(votes=[40, 1, 1], scale=1.0, order=1e5)
@example(votes=[5, 5, 5, 5, 5], scale=5.0, order=2)
def test_with_gumbel_noise_the_divergence_is_that_of_the_worst_neighbour(votes, scale, order):
    worst = worst_divergence(pate.GumbelMax(scale), votes, order)
    # Numbers near 1 lose digits, and one of them is divided by order - 1.
    tolerance = 1e-14 + 1e-14 / (order - 1)
    found = costs.gumbel_rdp(votes, scale, order)
    assert found == pytest.approx(worst, rel=1e-9, abs=tolerance)
    stated = stated_divergence(pate.GumbelMax(scale), votes, order)
    assert stated == pytest.approx(worst, rel=1e-9, abs=tolerance + 1e-10)
    assert found <= min(2 / scale, order * (2 / scale) ** 2 / 8) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("gap", "scale", "order"), [(300, 20, 2), (600, 20, 30), (90, 20, 1.5), (3, 1e6, 5)]
)
def test_what_agreement_saves_with_gumbel_noise_keeps_its_digits(gap, scale, order):
    def moment(step):
        here, there = (
            1 / (1 + mpmath.exp(-mpmath.mpf(lead) / scale)) for lead in (gap, gap + step)
        )
        return here**order * there ** (1 - order) + (1 - here) ** order * (1 - there) ** (1 - order)

    with mpmath.workdps(60):
        expected = float(max(mpmath.log(moment(2)), mpmath.log(moment(-2))) / (order - 1))
    found = costs.gumbel_rdp([gap + 1, 1], scale, order)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.25, 1e9])
@pytest.mark.parametrize("order", [1 + 1e-9, 1.5, 2, 1e3, 1e99])
def test_the_divergence_with_gumbel_noise_is_a_number_at_all_scales(scale, order):
    rows = itertools.combinations_with_replacement(range(0, 251, 50), 3)
    for votes in (*rows, [2**31 - 2, 0, 1], [5, 5], [0, 0], [9, 0], range(40)):
        assert 0 <= costs.gumbel_rdp(list(votes), scale, order) <= 2 / scale


def test_the_bound_holds_from_the_votes_to_their_neighbours_and_not_back():
    chances, other = pate.output_distribution([[10, 3], [9, 4]], 1.0)
    bound = pate.lnmax_rdp([10, 3], 1.0, 2)
    assert log_moment(chances, other, 1) <= bound
    assert bound == pytest.approx(0.02605, abs=5e-6)
    assert log_moment(other, chances, 1) == pytest.approx(0.04529, abs=5e-6)


MECHANISMS = [pate.LNMax(0.05), pate.GumbelMax(20), pate.GNMax(40), pate.ConfidentGNMax(9, 8, 7)]


@pytest.mark.claim("pate.ConfidentGNMax.secret_cost", kind="chosen cases")
@pytest.mark.parametrize("ask", MECHANISMS)
def test_a_secret_cost_is_that_of_the_divergences_at_the_best_order(ask):
    table, orders = np.random.default_rng(1).multinomial(30, [0.7, 0.2, 0.1], size=20), [2, 8, 32]
    rdp = ask.rdp(table, orders)
    for conversion in ("improved", "classic"):
        cost = ask.secret_cost(table, 1e-5, orders=orders, conversion=conversion)
        expected = accounting.best_epsilon(rdp, orders, 1e-5, conversion=conversion)
        assert (cost.epsilon, cost.order, type(cost)) == (*expected, accounting.SecretCost)
    assert ask.secret_cost(table, 1e-5).epsilon <= cost.epsilon
    assert type(ask.rdp(table, 8)) is float


def test_no_query_costs_nothing():
    none = np.zeros((0, 3), dtype=int)
    for ask, conversion in itertools.product(MECHANISMS, ("improved", "classic")):
        cost = ask.secret_cost(none, 1e-5, conversion=conversion)
        assert (cost.epsilon, cost.answered, float(ask.cost(0, 1e-5))) == (0, 0, 0)
    assert pate.lnmax_error_probability(none, 0.05).shape == (0,)
    assert pate.gnmax_log_error_probability(none, 40, method="exact").shape == (0,)
    for votes, distances in ((none, 5), (none, None), ([9, 1], 0)):
        nothing = [0] * (distances or 0)
        found = pate.gnmax_local_sensitivity(votes, 40, 2, distances=distances)
        assert found.tolist() == nothing
        found = pate.threshold_local_sensitivity(votes, 2, 40, 2, distances=distances)
        assert found.tolist() == nothing


# The mechanisms as values.


@pytest.mark.parametrize("ask", MECHANISMS)
def test_a_mechanism_is_a_value_that_cannot_be_changed(ask):
    assert len({ask, dataclasses.replace(ask), type(ask)(*dataclasses.astuple(ask))}) == 1
    assert eval(repr(ask), vars(pate)) == ask
    [name, *_] = (field.name for field in dataclasses.fields(ask))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(ask, name, 1.0)
    assert all(type(value) is float for value in dataclasses.astuple(ask))


def test_seeds_draw_the_labels_that_they_always_drew():
    """Who notes down a seed rests on the order in which noise is drawn."""
    table = np.random.default_rng(7).multinomial(50, [0.4, 0.3, 0.2, 0.1], size=12)
    for ask, expected in [
        (pate.LNMax(0.05), [3, 1, 1, 2, 2, 2, 1, 0, 1, 0, 0, 1]),
        (pate.GNMax(20), [0, 1, 1, 3, 1, 2, 0, 0, 3, 0, 0, 2]),
        (pate.ConfidentGNMax(22, 5, 9), [0, -1, -1, -1, -1, 1, -1, -1, 1, -1, -1, -1]),
    ]:
        assert ask.answer(table, rng=11).tolist() == expected


def test_answering_stops_with_the_last_answer_that_is_allowed():
    table = np.random.default_rng(7).multinomial(50, [0.4, 0.3, 0.2, 0.1], size=40)
    ask = pate.ConfidentGNMax(22, 5, 9)
    every = ask.answer(table, rng=11)
    for most in (0, 1, 5, 40):
        told = ask.answer(table, answers=most, rng=11)
        assert np.array_equal(told, np.where(np.cumsum(every >= 0) <= most, every, -1))


def test_only_the_cost_of_laplace_noise_needs_dp_accounting():
    program = """
import sys
sys.modules["dp_accounting"] = None
from dpnotes import pate
votes, ask = [[20, 5, 5]] * 6, pate.ConfidentGNMax(20, 15, 10)
for other in (ask, pate.GumbelMax.for_cost(1.0, 1e-5, 3), pate.GNMax.for_cost(1.0, 1e-5, 3)):
    other.cost(6, 1e-5)
for other in (ask, pate.LNMax(.05), pate.GumbelMax(20), pate.GNMax(40)):
    other.answer(votes, rng=0), other.output_distribution(votes), other.secret_cost(votes, 1e-5)
pate.release_cost(ask, votes, 1e-5, answered=[True] * 6, order=6, beta=.02, scale=8, rng=0)
print("only this:")
pate.LNMax(.05).cost(6, 1e-5)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "only this:\n"
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError")


# The sensitivity of the cost.


class Published(release._Curve):
    """The divergence as the released code has it: the data stop helping before they must."""

    def __init__(self, sigma, order, classes):
        self.end = -max((1 + 1 / sigma) ** 2, ((order - 1) / sigma) ** 2)
        super().__init__(sigma, order, classes)

    def rdp(self, log_q):
        return np.where(log_q >= self.end, self.cap, super().rdp(log_q))


def test_reference_values_of_local_sensitivities():
    expected = [3.13503646e-17, 1.60178280e-8, 5.90681786e-3, *[5.99981308] * 7]
    found = Published(0.5, 1.5, 3).local_sensitivities(np.array([[10, 0, 0]]), 10)
    np.testing.assert_allclose(found, expected, rtol=2e-9)
    ours = pate.gnmax_local_sensitivity([10, 0, 0], 0.5, 1.5)
    np.testing.assert_allclose(ours[:3], expected[:3], rtol=2e-9)
    assert np.all(ours[3:] < expected[3:])
    found = pate.gnmax_local_sensitivity([1000, 500, 300, 200, 0], 250, 10)
    expected = [0.0] * 298 + [2.77693450548e-7, 2.10853979548e-6] + [2.73113623988e-6] * 1700
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def moved_vote_by_vote(curve, votes, distances, weights=1):
    """Return the local sensitivities, moving a vote of each query at a time as the paper does."""
    votes, there, total = -np.sort(-np.array(votes), axis=1), np.zeros(len(votes), bool), []
    flat = curve.sensitivity(np.array([curve.plateau_start]))
    for _ in range(distances):
        log_q = pate.gnmax_log_error_probability(votes, curve.sigma)
        if not total:
            tied = log_q > curve.start
        total.append(np.sum(weights * np.where(there, flat, curve.sensitivity(log_q))))
        near = (log_q <= curve.start) | (votes[:, 1] == 0)
        there |= np.where(tied, near, log_q >= curve.plateau_start)
        votes[:, :2] += np.where(there, 0, np.where(tied, 1, -1))[:, None] * np.array([1, -1])
        votes = -np.sort(-votes, axis=1)
    return np.array(total)


@pytest.mark.parametrize("cells", [1, 50])
@given(
    table=arrays(int, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.integers(0, 25)),
    sigma=st.sampled_from([1e-5, 0.3, 1.0, 3.0, 20.0]),
    order=st.sampled_from([1.01, 2.0, 14.0]),
)
@example(table=[[9, 9, 9, 4, 0], [25, 24, 0, 0, 0], [0, 0, 0, 0, 0]], sigma=3.0, order=2.0)
@example(table=[[25, 0, 0]], sigma=0.3, order=2.0)
@example(table=[[3, 2, 0]], sigma=20.0, order=14.0)
@settings(max_examples=10, deadline=None)
def test_votes_moved_all_at_once_are_those_moved_one_by_one(table, sigma, order, cells):
    expected = moved_vote_by_vote(release._Curve(sigma, order, len(table[0])), table, 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "_CELLS", cells)
        found = pate.gnmax_local_sensitivity(table, sigma, order, distances=40)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_as_many_distances_as_there_are_votes_take_no_time_a_vote():
    before = time.process_time()
    local = pate.gnmax_local_sensitivity([20_000, 0], 40, 10)
    # Vote by vote it took eight seconds.
    assert time.process_time() - before < 1
    # With few votes left in front, only what stands between the two counts.
    near = moved_vote_by_vote(release._Curve(40.0, 10.0, 2), [[400, 0]], 300)
    np.testing.assert_allclose(local[9_800:10_100], near, rtol=1e-12)


CASES = [(12, 3, 0.5, 1.5), (12, 3, 1.0, 2), (40, 2, 8.0, 4), (14, 3, 3.0, 2), (7, 3, 0.1, 1.3)]


@pytest.mark.claim("pate.gnmax_local_sensitivity", kind="enumeration")
@pytest.mark.parametrize(("teachers", "classes", "sigma", "order"), CASES)
def test_no_teacher_changes_a_cost_more_than_the_local_sensitivity(teachers, classes, sigma, order):
    assert release.gnmax_sensitivity_conditions(sigma, order, classes) == (True, True)

    # Which class has which count makes no difference.
    @functools.cache
    def at(votes):
        local = pate.gnmax_local_sensitivity(votes, sigma, order, distances=teachers + 1)
        return pate.gnmax_rdp(votes, sigma, order), local

    worst = 0
    for votes in {tuple(sorted(row)) for row in tables(teachers, classes).tolist()}:
        here, local = at(votes)
        for other in neighbours(votes):
            there, further = at(tuple(sorted(other.tolist())))
            assert abs(there - here) <= local[0] * (1 + 1e-9)
            assert np.all(further[:-1] <= local[1:] * (1 + 1e-9))
            worst = max(worst, abs(there - here) / local[0]) if local[0] else worst
    assert worst > 0.8


@pytest.mark.parametrize(
    ("votes", "sigma", "order"), [([9, 0], 1e-8, 1.01), ([9, 1, 0], 1e-5, 1.1)]
)
def test_for_tiny_noise_a_teacher_can_change_the_cost_too(votes, sigma, order):
    assert all(release.gnmax_sensitivity_conditions(sigma, order, len(votes)))
    path = np.repeat([votes], 7, axis=0)
    path[:, :2] += np.outer(range(7), [-1, 1])
    changes = np.abs(np.diff([pate.gnmax_rdp(row, sigma, order) for row in path]))
    local = pate.gnmax_local_sensitivity(votes, sigma, order, distances=6)
    assert np.all(np.maximum.accumulate(changes) <= local * (1 + 1e-9))
    assert changes.any()


@pytest.mark.parametrize(
    ("teachers", "sigma", "order"), [(300_000, 1.0, 1e5), (10, 1e-9, 2), (10, 1e-5, 4)]
)
def test_conditions_are_checked_however_far_out_the_data_begin_to_help(teachers, sigma, order):
    assert pate.gnmax_rdp([teachers, 0], sigma, order) < order / sigma**2
    assert release.gnmax_sensitivity_conditions(sigma, order, 2) == (True, False)


def test_the_conditions_hold_where_the_data_never_help():
    assert release.gnmax_sensitivity_conditions(1e-9, 1e12, 2) == (True, True)


def test_where_the_conditions_fail_a_teacher_can_change_more():
    assert release.gnmax_sensitivity_conditions(2.0, 3, 2) == (True, False)
    costs = [pate.gnmax_rdp(votes, 2.0, 3) for votes in tables(14, 2)]
    local = [pate.gnmax_local_sensitivity(row, 2.0, 3, distances=1) for row in tables(14, 2)]
    assert np.any(np.abs(np.diff(costs)) > 1.01 * np.ravel(local)[1:])


def published_threshold_sensitivity(top, teachers, threshold, sigma, order):
    """Return what the released code takes: the largest at exactly d steps, not at up to d."""
    steps = np.pad(release._threshold_steps(teachers, threshold, sigma, order), teachers)
    up, down = steps[teachers + top :], steps[teachers + top :: -1]
    return np.maximum(up[:teachers], down[:teachers])


def test_reference_values_of_the_threshold_s_local_sensitivities():
    expected = [0] * 3 + [
        *(1.48454129e-04, 1.47826870e-02, 3.94153241e-02, 6.45775697e-02, 9.01543247e-02),
        *(1.16054002e-01, 1.42180452e-01, 1.42180452e-01, 1.48454129e-04, 1.47826870e-02),
        *(3.94153241e-02, 6.45775697e-02, 9.01543266e-02, 1.16054000e-01, 1.42180452e-01),
        *(1.68302106e-01, 1.93127860e-01),
    ]
    published = published_threshold_sensitivity(20, 30, 16, 2, 10)[:20]
    # The reference itself wanders from the tenth digit on; its own test is known to fail at 2e-8.
    np.testing.assert_allclose(published, expected, rtol=1e-6)
    ours = pate.threshold_local_sensitivity([20, 10, 0], 16, 2, 10)
    assert ours.size == 30
    np.testing.assert_array_equal(ours[:20], np.maximum.accumulate(published))


def test_two_queries_with_peaks_apart_need_the_largest_of_all_distances():
    ours = pate.threshold_local_sensitivity([[20, 10, 0], [26, 4, 0]], 16, 2, 10)
    published = sum(published_threshold_sensitivity(top, 30, 16, 2, 10) for top in (20, 26))
    # Teachers can move both queries at once, each to any place within reach.
    steps = release._threshold_steps(30, 16, 2, 10)
    reach = [sum(steps[max(0, t - d) : t + d + 1].max() for t in (20, 26)) for d in range(30)]
    np.testing.assert_allclose(ours, reach, rtol=1e-12)
    assert pate.smooth_sensitivity(published, 0.01) < 0.95 * pate.smooth_sensitivity(ours, 0.01)


@pytest.mark.claim("pate.threshold_local_sensitivity", kind="enumeration")
@pytest.mark.parametrize(("threshold", "sigma", "order"), [(6, 1.0, 3), (0, 2.0, 2), (9, 0.5, 1.5)])
def test_no_teacher_changes_the_cost_of_deciding_more_than_its_local_sensitivity(
    threshold, sigma, order
):
    def cost(votes):
        return pate.ConfidentGNMax(threshold, sigma, 1.0).rdp(votes, order, answered=np.False_)

    for votes in tables(8, 3):
        local = pate.threshold_local_sensitivity(votes, threshold, sigma, order, distances=9)
        for other in neighbours(votes):
            assert abs(cost(other) - cost(votes)) <= local[0] * (1 + 1e-9) + 1e-15
            further = pate.threshold_local_sensitivity(other, threshold, sigma, order, distances=9)
            assert np.all(further[:-1] <= local[1:] * (1 + 1e-12))


@pytest.mark.claim("pate.smooth_sensitivity", kind="chosen cases")
@given(local=st.lists(st.floats(0, 10), min_size=1, max_size=30), beta=st.floats(1e-3, 2))
def test_the_smooth_sensitivity_is_above_the_local_one_and_smooth(local, beta):
    local = np.maximum.accumulate(local)
    smooth = pate.smooth_sensitivity(local, beta)
    assert smooth >= local[0]
    # A neighbour's bounds are those of one step more, at most.
    neighbour = pate.smooth_sensitivity(np.append(local[1:], local[-1]), beta)
    assert neighbour <= smooth * math.exp(beta) * (1 + 1e-12)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider float")
def test_a_sensitivity_that_no_double_holds_is_refused():
    with pytest.raises(ValueError, match="local_sensitivities must be a list of finite numbers"):
        pate.smooth_sensitivity(np.array([np.longdouble("1e4000")]), 1.0)


# The release of the cost.


def gaussian_divergence(order, shift, own, other):
    """Return the Rényi divergence of Normal(0, own^2) from Normal(shift, other^2)."""
    mixed = order * other**2 + (1 - order) * own**2
    if mixed <= 0:
        return math.inf
    spread = math.log(math.sqrt(mixed) / (own ** (1 - order) * other**order))
    return order * shift**2 / (2 * mixed) + spread / (1 - order)


def test_the_formula_of_gaussian_divergences_is_the_integral():
    def integrand(x):
        return math.exp(3 * stats.norm.logpdf(x, 0, 1.3) - 2 * stats.norm.logpdf(x, 0.7, 1.2))

    expected = math.log(integrate.quad(integrand, -40, 40)[0]) / 2
    assert gaussian_divergence(3, 0.7, 1.3, 1.2) == pytest.approx(expected, rel=1e-9)


@pytest.mark.claim("pate.gnss_rdp", kind="quadrature with a bound")
@pytest.mark.claim("pate.release_cost", kind="quadrature with a bound")
@pytest.mark.parametrize(
    ("order", "beta", "scale"), [(14, 0.0329, 6.23), (2, 0.2, 3), (5, 0.01, 20), (30, 0.001, 1)]
)
def test_the_exact_cost_of_a_release_is_the_worst_over_all_neighbours(order, beta, scale):
    worst = max(
        gaussian_divergence(order, min(1, math.exp(u)) * part, scale, scale * math.exp(u))
        for u in np.linspace(-beta, beta, 401)
        for part in (0, 0.5, 1)
    )
    assert pate.gnss_rdp(order, beta, scale) == pytest.approx(worst, rel=1e-9)


def published_gnss_rdp(order, beta, scale):
    """Return Theorem 23 of the 2018 paper as its code has it."""
    if 2 * order * beta >= 1:
        return math.inf
    spread = beta * order - math.log1p(-2 * order * beta) / 2
    return order * math.exp(2 * beta) / scale / scale + spread / (order - 1)


def test_the_published_cost_of_a_release_is_no_bound():
    exact, published = (cost(14, 0.0329, 6.23) for cost in (pate.gnss_rdp, published_gnss_rdp))
    assert (round(exact, 3), round(published, 3)) == (1.607, 0.518)
    shift = math.exp(-0.0329)
    assert gaussian_divergence(14, shift, 6.23, 6.23 * shift) > 3 * published
    assert pate.gnss_rdp(20, 0.0329, 6.23) == math.inf


ASK = pate.ConfidentGNMax(threshold=20.0, sigma_threshold=15.0, sigma=10.0)
PARAMETERS = {"order": 6.0, "beta": 0.02, "scale": 8.0}
RELEASE = {"mechanism": ASK, "delta": 1e-5, **PARAMETERS}


@pytest.mark.claim("pate.release_cost", kind="chosen cases")
def test_a_released_cost_is_the_true_one_with_noise_of_its_smooth_sensitivity():
    table = np.random.default_rng(4).multinomial(60, [0.8, 0.15, 0.05], size=40)
    answered = np.arange(40) % 4 == 0
    rdp = ASK.rdp(table, 6.0, answered=answered) + pate.gnss_rdp(**PARAMETERS)
    total = accounting.epsilon_from_rdp([rdp], [6.0], 1e-5)
    local = pate.threshold_local_sensitivity(table, 20, 15, 6.0, distances=61)
    local = local + pate.gnmax_local_sensitivity(table[answered], 10, 6.0, distances=61)
    for seed in range(5):
        released = pate.release_cost(votes=table, **RELEASE, answered=answered, rng=seed)
        noise = np.random.default_rng(seed).normal() * 8.0 * pate.smooth_sensitivity(local, 0.02)
        assert float(released) == pytest.approx(total.epsilon + noise, abs=1e-6)
        assert float(released) == round(float(released), 6)


@pytest.mark.parametrize(("queries", "answers", "classes"), [(1, 1, 2), (5, 2, 3), (50, 10, 10)])
def test_the_usual_order_of_few_queries_is_the_first_at_which_the_sensitivity_is_known(
    queries, answers, classes
):
    ask = pate.ConfidentGNMax(threshold=50, sigma_threshold=30, sigma=10)
    order, _, _ = release._usual_parameters(ask, queries, answers, classes, 1e-6, None)
    assert all(release.gnmax_sensitivity_conditions(10, order, classes))
    assert not all(release.gnmax_sensitivity_conditions(10, 1 + (order - 1) / 0.8, classes))
    largest = 1 + math.sqrt(-2 * math.log(1e-6)) / ask._mu(queries, answers)
    steps = math.log((order - 1) / (largest - 1)) / math.log(0.8)
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert round(steps) >= 1


def test_the_usual_release_shifts_by_a_twentieth_of_the_fixed_cost():
    ask = pate.ConfidentGNMax(200, 150, 40)
    order, beta, scale = release._usual_parameters(ask, 640, 286, 10, 1e-5, None)
    mu = math.sqrt(640 / 150**2 + 2 * 286 / 40**2)
    assert order == pytest.approx(1 + math.sqrt(2 * math.log(1e5)) / mu)
    assert beta * order == pytest.approx(0.3)
    left = 1 - order * (1 - math.exp(-2 * beta))
    shift = order * math.exp(-2 * beta) / (2 * scale**2 * left)
    assert shift == pytest.approx(0.05 * float(ask.cost(640, 1e-5, answers=286)))
    assert pate.gnss_rdp(order, beta, scale) < 1.2 * shift
    assert all(release.gnmax_sensitivity_conditions(40, order, 10))


@pytest.mark.parametrize(
    ("order", "beta", "scale"),
    [
        *((6, beta, 1) for beta in (1e-6, 5e-324)),
        *((6, 0.02, scale) for scale in (1e9, 8, 1e-9)),
        *((1.001, 3, 8), (1 + 1e-7, 8, 8)),
    ],
)
def test_a_release_of_any_smoothness_has_a_finite_cost_at_its_best_order(order, beta, scale):
    parameters = RELEASE | {"order": order, "beta": beta, "scale": scale}
    released = pate.release_cost(votes=[[50, 10]] * 9, **parameters, answered=[True] * 9, rng=0)
    last = min(-1 / math.expm1(-2 * beta), 1e9)
    orders = 1 + (last - 1) * np.geomspace(1e-9, 0.999, 3000)
    rdp = np.array([pate.gnss_rdp(order, beta, scale) for order in orders])
    epsilons = rdp + np.log1p(-1 / orders) - np.log(orders * 1e-5) / (orders - 1)
    assert released.epsilon == pytest.approx(max(epsilons.min(), 5e-324), rel=2e-3)
    assert math.isfinite(float(released))


@pytest.mark.parametrize("parameters", [{}, PARAMETERS])
def test_only_the_value_of_a_release_depends_on_the_votes(parameters):
    ask, rng = pate.ConfidentGNMax(20, 15, 40), np.random.default_rng(4)
    first, second = (
        pate.release_cost(
            ask,
            rng.multinomial(60, spread, size=40),
            1e-5,
            answered=np.arange(40) % 4 == 0,
            rng=0,
            **parameters,
        )
        for spread in ([0.9, 0.1, 0], [0.4, 0.3, 0.3])
    )
    assert first.value != second.value
    assert dataclasses.replace(first, value=0.0) == dataclasses.replace(second, value=0.0)


def test_no_votes_make_a_release_raise():
    votes = [[20, 20, 20], [60, 0, 0], [0, 0, 0], [31, 29, 0]]
    mixed = np.random.default_rng(0).multinomial(60, [1 / 3] * 3, size=5)
    for table in (mixed, *([row] * 5 for row in votes)):
        for answered in ([False] * 5, [True] * 5):
            released = pate.release_cost(votes=table, **RELEASE, answered=answered, rng=1)
            assert math.isfinite(float(released))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"beta": 0.2}, "beta must be below"),
        ({"order": 1e101}, "order must be a number above 1 and at most 1e"),
        ({"mechanism": pate.ConfidentGNMax(20, 15, 2.0), "order": 3.0}, "order must meet"),
    ],
)
def test_parameters_for_which_nothing_is_proved_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        pate.release_cost(votes=[[50, 10]] * 9, **RELEASE | change, answered=[True] * 9, rng=0)


@pytest.mark.parametrize("order", [6.0, 5.0, 20.0])
def test_whether_an_order_is_refused_depends_on_no_votes(order):
    # Of two classes order 6 meets the conditions, or not, other than of more.
    conditions = {all(release.gnmax_sensitivity_conditions(6, order, k)) for k in (2, 3, 4)}
    ask, outcomes = pate.ConfidentGNMax(20, 15, 6), set()
    for votes in ([60, 0, 0, 0], [40, 20, 0, 0], [20, 20, 20, 0], [15, 15, 15, 15]):
        try:
            pate.release_cost(ask, [votes] * 9, 1e-5, answered=[True] * 9, order=order, rng=0)
            outcomes.add("released")
        except ValueError as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1
    assert len(conditions) == (2 if order == 6 else 1)


def test_the_divergence_of_noise_that_hardly_changes_is_not_negative_by_rounding():
    for order in (1 + 1e-12, 1.001, 2.0, 1e9):
        for beta in (1e-20, 1e-12, 1e-10 / order):
            assert pate.gnss_rdp(order, beta, 1e9) >= 0


@pytest.mark.parametrize(
    ("noise", "votes"),
    [
        ((200, 150, 40), [[200, 50]] * 5),
        ((200, 150, 40), [[250, 0, 0]]),
        ((200, 150, 5), [[9, 1]] * 3),
        ((1e9, 1e9, 1e9), [[250, 0]] * 5),
    ],
)
def test_the_cost_of_few_queries_can_be_released_without_a_choice_of_order(noise, votes):
    ask, answered = pate.ConfidentGNMax(*noise), [True] * len(votes)
    released = pate.release_cost(ask, votes, 1e-5, answered=answered, rng=0)
    assert math.isfinite(float(released))
    assert released.epsilon > 0


# The published analyses, on the votes that the authors released.


@pytest.fixture(scope="module")
def released():
    """Return a loader of released votes; skip where they are absent, which in CI is a failure."""
    if datasets.locate("pate_votes") is None:
        reason = "pate_votes is absent; fetch it with: python -m dpnotes.datasets pate_votes"
        required = os.environ.get("CI") == "true" and "DPNOTES_DATA" in os.environ
        pytest.fail(reason) if required else pytest.skip(reason)
    return datasets.load_pate_votes


FIRST = {"orders": range(2, 10), "conversion": "classic", "method": "2017"}
SECOND = {"orders": pate.ORDERS_2018, "conversion": "classic"}


def test_the_analysis_of_2017(released):
    digits, houses = released("mnist_250_teachers"), released("svhn_250_teachers")
    # The paper has 5.04 and 8.19 for house numbers and speaks of scale 20, which costs less.
    for votes, delta, expected in [
        (digits[released("mnist_student_query_indices")], 1e-5, [1.958683, 2.048561]),
        (digits[:100], 1e-5, [2.042991, 2.074405]),
        (houses[:500], 1e-6, [4.372224, 5.041318]),
        (houses[:1000], 1e-6, [6.432913, 8.191690]),
    ]:
        found = [pate.LNMax(g).secret_cost(votes, delta, **FIRST) for g in (0.05, 0.1)]
        np.testing.assert_allclose([cost.epsilon for cost in found], expected, atol=5e-7, rtol=0)
        assert {cost.answered for cost in found} == {len(votes)}


@pytest.mark.parametrize(
    ("name", "queries", "delta", "then", "now"),
    [("adult", 500, 1e-5, 2.08, 1.64), ("mnist", 100, 1e-5, 1.34, 1.06),
     ("svhn", 500, 1e-6, 3.97, 2.91)],
)  # fmt: skip
def test_two_laplace_losses_save_where_teachers_disagree(released, name, queries, delta, then, now):
    votes, ask = released(f"{name}_250_teachers")[:queries], pate.LNMax(0.05)
    found = ask.secret_cost(votes, delta, orders=range(2, 200), method="2017")
    assert round(found.epsilon, 2) == then
    assert round(ask.secret_cost(votes, delta).epsilon, 2) == now


def test_noisy_labels_of_2017_are_those_of_scale_20(released):
    votes, labels = released("mnist_250_teachers"), released("mnist_250_student_labels_lap_20")
    kept = [
        1 - pate.lnmax_error_probability(votes[::20], gamma, method="exact").mean()
        for gamma in (0.05, 0.1)
    ]
    drawn = pate.LNMax(0.05).answer(votes, rng=0)
    agreement = [np.mean(found == votes.argmax(axis=1)) for found in (labels, drawn)]
    np.testing.assert_allclose([*agreement, *kept], [0.969, 0.969, 0.970, 0.988], atol=4e-3)


@pytest.mark.parametrize(
    ("name", "queries", "noise", "delta", "epsilon", "order", "answered"),
    [("mnist", 640, (200, 150, 40), 1e-5, 1.9988, 14, 282.72),
     ("svhn", 8500, (300, 200, 40), 1e-6, 4.9152, 7.5, 2969.09),
     # The paper is quoted with 524 answers at 1.90, which no setting that we tried explains.
     ("adult", 1500, (300, 200, 40), 1e-5, 1.6782, 15.5, 538.26)],
)  # fmt: skip
def test_the_analysis_of_2018(released, name, queries, noise, delta, epsilon, order, answered):
    votes = released(f"{name}_250_teachers")[:queries]
    cost = pate.ConfidentGNMax(*noise).secret_cost(votes, delta, **SECOND)
    assert cost.epsilon == pytest.approx(epsilon, abs=5e-5)
    assert cost.order == order
    assert cost.answered == pytest.approx(answered, abs=5e-3)


def test_the_smooth_sensitivity_of_2018_on_mnist(released):
    votes, curve = released("mnist_250_teachers")[:640], release._Curve(40.0, 14.0, 10)
    ours = pate.gnmax_local_sensitivity(votes, 40, 14, distances=120)
    np.testing.assert_allclose(moved_vote_by_vote(curve, votes, 120), ours, rtol=1e-9)
    assert not pate.threshold_local_sensitivity(votes, 200, 150, 14).any()
    # The released code counts each query with the chance that it is answered.
    weights = special.ndtr((votes.max(axis=1) - 200) / 150)
    local = moved_vote_by_vote(curve, votes, 120, weights)
    costs = []
    for beta in np.arange(0.3, 0.495, 0.01) / 14:
        smooth = pate.smooth_sensitivity(local, beta)
        scale = (14 * math.exp(2 * beta) / smooth) ** (1 / 3)
        own = [cost(14, beta, scale) for cost in (pate.gnss_rdp, published_gnss_rdp)]
        costs.append((own[1] + 2 * smooth * scale, beta, scale, smooth * scale, own))
    [_, beta, scale, deviation, own] = min(costs)
    assert (round(beta, 4), round(scale, 2), round(deviation, 3)) == (0.0329, 6.23, 0.385)
    before = pate.ConfidentGNMax(200, 150, 40).secret_cost(votes, 1e-5, **SECOND).epsilon
    assert [round(before + cost, 3) for cost in own] == [3.588, 2.516]
