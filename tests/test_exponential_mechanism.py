import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import is_distributed_as, realised_distribution, softmax

from dpnotes import exponential_mechanism
from dpnotes.audit import exact_epsilon
from dpnotes.exponential_mechanism import output_distribution, sample

# The mechanism: what is promised.


def decimal_distribution(utilities, epsilon, sensitivity=1.0):
    """Return the distribution in 60 digits."""
    with localcontext(Context(prec=60)):
        rate = Decimal(epsilon) / (2 * Decimal(sensitivity))
        weights = [(Decimal(u) * rate).exp() for u in utilities]
        return [float(weight / sum(weights)) for weight in weights]


utility_lists = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9)


@given(utilities=utility_lists, epsilon=st.floats(1e-9, 1e3), sensitivity=st.floats(0.5, 1e6))
@example(utilities=[3.0], epsilon=1.0, sensitivity=1.0)
@example(utilities=[2.0, 2.0, 2.0], epsilon=1e3, sensitivity=1.0)
def test_the_distribution_is_the_exponential_of_the_utility(utilities, epsilon, sensitivity):
    distribution = output_distribution(utilities, epsilon, sensitivity=sensitivity)
    assert distribution.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(
        distribution, decimal_distribution(utilities, epsilon, sensitivity), rtol=1e-9, atol=1e-303
    )


def test_every_row_of_a_table_has_its_own_distribution():
    table = np.random.default_rng(1).normal(size=(4, 6))
    distributions = output_distribution(table, 1.5)
    assert distributions.shape == (4, 6)
    for utilities, distribution in zip(table, distributions, strict=True):
        np.testing.assert_array_equal(distribution, output_distribution(utilities, 1.5))


@given(
    utilities=st.lists(st.integers(-1000, 1000), min_size=1, max_size=9),
    shift=st.integers(-(2**40), 2**40),
)
def test_a_shift_of_all_utilities_changes_nothing(utilities, shift):
    shifted = [u + shift for u in utilities]
    assert np.array_equal(output_distribution(shifted, 1.0), output_distribution(utilities, 1.0))


WIDE = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long doubles are doubles here"
)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, pytest.param(np.longdouble, marks=WIDE)])
@pytest.mark.parametrize("base", [0, 2**60, 2**63 - 200])
def test_large_numbers_one_apart_stay_one_apart(dtype, base):
    table = np.array([[128, 0, 127], [129, 1, 126], [129, 0, 127]], dtype) + dtype(base)
    small = np.array([[128.0, 0.0, 127.0], [129.0, 1.0, 126.0], [129.0, 0.0, 127.0]])
    assert exact_epsilon(output_distribution(table, 1.0)[[0, 2]]) <= 1.0
    np.testing.assert_array_equal(output_distribution(table, 1.0), output_distribution(small, 1.0))
    assert (
        sample(table[0], 1.0, size=9, rng=0).tolist()
        == sample(small[0], 1.0, size=9, rng=0).tolist()
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_hundreds_apart_are_weighed_as_the_doubles_they_are(dtype):
    rng = np.random.default_rng(9)
    table = rng.uniform(-700, 700, size=(50, 6)).astype(dtype)
    distribution = output_distribution(table, 1.0)
    np.testing.assert_array_equal(distribution, output_distribution(table.astype(float), 1.0))
    pair = np.array([[500.0, 0.0], [501.0, 0.0]], dtype=dtype)
    assert exact_epsilon(output_distribution(pair, 1.0)) <= 0.5 + 1e-12
    draws = [sample(u, 0.01, size=500, rng=10).tolist() for u in (table[0], table[0].astype(float))]
    assert draws[0] == draws[1]


def test_whole_numbers_beside_a_fraction_are_not_rounded():
    rows = [[2**60 + 129, 2**60, 0.5], [2**60 + 128, 2**60, 0.5]]
    gaps = [[0, -129, -1e4], [0, -128, -1e4]]
    for table in (
        rows,
        [tuple(row) for row in rows],
        [[np.int64(row[0]), *row[1:]] for row in rows],
        [[np.array(row[0]), *row[1:]] for row in rows],
    ):
        distribution = output_distribution(table, 1.0)
        np.testing.assert_array_equal(distribution, output_distribution(gaps, 1.0))
        assert exact_epsilon(distribution) == pytest.approx(0.5)
    # What rounding would make of it.
    assert exact_epsilon(output_distribution(np.array(rows), 1.0)) > 100
    alone = sample(rows[0], 0.02, size=2000, rng=8)
    assert np.array_equal(alone, sample(gaps[0], 0.02, size=2000, rng=8))
    far = output_distribution([2**60, 1e308, -1e308], 1.0, sensitivity=1e308)
    expected = output_distribution([0.0, 1.0, -1.0], 1.0)
    np.testing.assert_allclose(far, expected, rtol=1e-14)


@pytest.mark.parametrize("best", range(2**53 - 2, 2**53 + 4))
def test_whole_numbers_where_those_of_doubles_end_are_one_apart_beside_a_fraction(best):
    # The first of them that a double cannot hold is rounded to the last one that it can.
    found = output_distribution([best, best - 1, 0.5], 1.0)
    np.testing.assert_array_equal(found, output_distribution([0.0, -1.0, -1e300], 1.0))


def test_the_whole_range_of_integers_is_no_wrap_around():
    distribution = output_distribution(np.array([-(2**63), 2**63 - 1]), 1.0)
    np.testing.assert_array_equal(distribution, output_distribution([0.0, 2.0**64], 1.0))


@pytest.mark.parametrize("best", [0.0, 1.0, 1e308])
def test_the_best_are_equally_likely_however_loud_epsilon_and_small_the_sensitivity(best):
    found = output_distribution([best, best - 1e300, best], 1e308, sensitivity=1e-308)
    np.testing.assert_allclose(found, [0.5, math.exp(-700) / 2, 0.5], rtol=1e-9)
    assert set(sample([best, best], 1e308, sensitivity=1e-308, size=50, rng=9)) == {0, 1}


@given(utilities=utility_lists, power=st.integers(-20, 20))
def test_only_the_ratio_of_utility_to_sensitivity_counts(utilities, power):
    scale = 2.0**power
    scaled = output_distribution(np.multiply(utilities, scale), 1.0, sensitivity=scale)
    np.testing.assert_allclose(scaled, output_distribution(utilities, 1.0), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e3, 1.7e308])
def test_the_largest_utilities_neither_overflow_nor_drown(epsilon):
    distribution = output_distribution([1e308, -1e308, 1e308], epsilon)
    np.testing.assert_allclose(distribution, [0.5, 0, 0.5], atol=1e-300)
    assert distribution.min() > 0
    # A gap of 2e308 is no double; two sensitivities are an ordinary distance.
    distribution = output_distribution([1e308, -1e308], 1.0, sensitivity=1e308)
    np.testing.assert_allclose(distribution, [1 / (1 + math.exp(-1)), 1 / (1 + math.e)], rtol=1e-14)


@given(
    utilities=st.lists(st.integers(-64, 64), min_size=2, max_size=8),
    steps=st.lists(st.lists(st.integers(-64, 64), min_size=8, max_size=8), min_size=1, max_size=5),
    stretch=st.sampled_from([1, 100, 10_000]),
    epsilon=st.floats(1e-9, 1e3),
)
@settings(max_examples=200)
def test_no_table_of_utilities_costs_more_than_epsilon(utilities, steps, stretch, epsilon):
    start = stretch * np.array(utilities)
    moves = np.array([step[: start.size] for step in steps])
    table = np.vstack([start, start + moves.cumsum(axis=0)]) / 64
    distribution = output_distribution(table, epsilon)
    chain = [(i, i + 1) for i in range(len(steps))]
    assert exact_epsilon(distribution, neighbours=chain) <= epsilon + 1e-12


def test_rounding_costs_no_more_than_1e_12():
    for gap in range(10, 1400, 7):
        start = np.append(-float(gap), np.zeros(64))
        distribution = output_distribution(
            np.vstack([start, np.append(1.0 - gap, -np.ones(64))]), 0.7346
        )
        assert exact_epsilon(distribution) <= 0.7346 + 1e-12


def worst_table(candidates):
    """Return two rows one sensitivity apart that come close to costing all of epsilon."""
    low = np.ones(candidates)
    low[0] = 0
    return np.vstack([low, 1 - low])


def test_the_worst_table_costs_nearly_epsilon_and_twice_as_much_without_the_half():
    distribution = output_distribution(worst_table(10**6), 1.0)
    assert 0.99999 < exact_epsilon(distribution) <= 1.0
    dropped = softmax(worst_table(10**6), 2.0)
    assert 1.9999 < exact_epsilon(dropped) <= 2.0


def test_two_candidates_cost_half_of_epsilon():
    assert exact_epsilon(output_distribution([[0, 1], [1, 0]], 3.0)) == pytest.approx(1.5)


def test_a_candidate_that_underflow_would_lose_still_costs_no_more_than_epsilon():
    table = np.array([[0.0, -1490.0], [0.0, -1491.0]])
    assert exact_epsilon(softmax(table, 1.0)) == math.inf
    assert exact_epsilon(output_distribution(table, 1.0)) <= 1.0


# The mechanism: what is drawn.


@pytest.mark.parametrize("candidates", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 100.0, 1e3])
def test_over_all_coins_a_draw_has_exactly_its_distribution(monkeypatch, candidates, epsilon):
    utilities = np.random.default_rng(candidates).normal(size=candidates)
    distribution = realised_distribution(monkeypatch, lambda: sample(utilities, epsilon))
    assert sum(distribution.values()) == 1
    expected = output_distribution(utilities, epsilon)
    found = [float(distribution[i]) for i in range(candidates)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("utilities", "sensitivity"),
    [([5, 5, 5, 5, 5], 1.0), ([1e308, -1e308, 0], 1e308), ([0, 1000, 0, 1000, 0, 0], 250.0)],
)
def test_ties_and_extremes_have_exactly_their_distribution(monkeypatch, utilities, sensitivity):
    distribution = realised_distribution(
        monkeypatch, lambda: sample(utilities, 2.0, sensitivity=sensitivity)
    )
    found = [float(distribution[i]) for i in range(len(utilities))]
    expected = output_distribution(utilities, 2.0, sensitivity=sensitivity)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_exact_check_catches_a_tree_with_its_sides_exchanged(monkeypatch):
    real = exponential_mechanism._draw
    monkeypatch.setattr(
        exponential_mechanism, "_draw", lambda weights, *rest: real(weights[::-1], *rest)
    )
    distribution = realised_distribution(monkeypatch, lambda: sample([0, 1, 2], 1.0))
    assert float(distribution[0]) != pytest.approx(output_distribution([0, 1, 2], 1.0)[0], rel=1e-3)


@pytest.mark.parametrize("candidates", [2, 3, 7, 100])
@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 4.0])
def test_real_draws_follow_the_distribution(candidates, epsilon):
    utilities = np.random.default_rng(candidates).normal(size=candidates)
    drawn = sample(utilities, epsilon, size=200_000, rng=2)
    assert is_distributed_as(drawn, output_distribution(utilities, epsilon))


@pytest.mark.parametrize(
    "broken",
    [
        lambda u, size: sample(u, 2.0, size=size, rng=3),
        lambda u, size: sample(u, 1.0, sensitivity=2.0, size=size, rng=3),
        lambda u, size: np.argmax(u + np.random.default_rng(3).gumbel(size=(size, u.size)), axis=1),
        lambda u, size: sample(u[::-1], 1.0, size=size, rng=3),
    ],
    ids=["epsilon doubled", "sensitivity doubled", "half forgotten", "reversed"],
)
def test_draws_of_a_broken_mechanism_do_not(broken):
    utilities = np.arange(5.0)
    assert not is_distributed_as(broken(utilities, 100_000), output_distribution(utilities, 1.0))


def test_a_million_candidates_are_all_reached():
    utilities = np.arange(10**6) % 4
    drawn = sample(utilities, 1.0, size=200_000, rng=4)
    assert is_distributed_as(drawn // 50_000, np.full(20, 0.05))
    assert is_distributed_as(drawn % 4, softmax(np.arange(4), 1.0))


def test_one_good_candidate_is_found_among_a_million():
    utilities = np.zeros(10**6)
    utilities[765_432] = math.log(10**6 - 1)
    drawn = sample(utilities, 2.0, size=10_000, rng=5)
    assert abs(np.count_nonzero(drawn == 765_432) - 5000) < 5 * 50


def test_a_sure_winner_wins_and_a_single_candidate_is_drawn():
    assert sample([0, 5, 0], 1e3, rng=6) == 1
    assert np.all(sample([1e308, -1e308], 1e-3, size=1000, rng=6) == 0)
    assert np.all(sample([-7.5], 1e-9, size=10, rng=6) == 0)


def test_a_size_gives_an_array_and_none_gives_a_number():
    assert type(sample([1, 2, 3], 1.0, rng=7)) is int
    for size in (0, 1, 5):
        drawn = sample([1, 2, 3], 1.0, size=size, rng=7)
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
    assert sample([1, 2, 3], 1.0, rng=7) == sample([1, 2, 3], 1.0, size=1, rng=7)[0]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, ">i4"])
def test_utilities_may_be_of_any_type_of_number(dtype):
    utilities = np.array([0, 1, 1, 0], dtype=dtype)
    distribution = output_distribution([0, 1, 1, 0], 1.0)
    np.testing.assert_array_equal(output_distribution(utilities, 1.0), distribution)
    np.testing.assert_array_equal(output_distribution(pd.Series(utilities), 1.0), distribution)
