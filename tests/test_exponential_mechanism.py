import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import counts_fit, is_distributed_as, realised_distribution, softmax
from scipy import integrate, optimize, stats

from dpnotes import exponential_mechanism
from dpnotes.accounting import compose_bounded_range
from dpnotes.audit import exact_delta, exact_epsilon
from dpnotes.exponential_mechanism import (
    above_threshold,
    above_threshold_distribution,
    median_distribution,
    output_distribution,
    permute_and_flip,
    permute_and_flip_distribution,
    quantile_distribution,
    release_median,
    release_quantile,
    sample,
)
from dpnotes.release import ADDED_OR_REMOVED, REPLACED

# The mechanism: what is promised.


def decimal_distribution(utilities, epsilon, sensitivity=1.0):
    """Return the distribution in 60 digits."""
    with localcontext(Context(prec=60)):
        rate = Decimal(epsilon) / (2 * Decimal(sensitivity))
        weights = [(Decimal(u) * rate).exp() for u in utilities]
        return [float(weight / sum(weights)) for weight in weights]


utility_lists = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9)


@pytest.mark.claim("em-definition", kind="enumeration")
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


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_hundreds_apart_are_weighed_as_the_doubles_they_are(dtype):
    rng = np.random.default_rng(9)
    table = rng.uniform(-700, 700, size=(50, 6)).astype(dtype)
    distribution = output_distribution(table, 1.0)
    np.testing.assert_array_equal(distribution, output_distribution(table.astype(float), 1.0))


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
    found = output_distribution([best, best - 1e300, best], 1e308, sensitivity=1e-300)
    np.testing.assert_allclose(found, [0.5, math.exp(-700) / 2, 0.5], rtol=1e-9)
    assert set(sample([best, best], 1e308, sensitivity=1e-300, size=50, rng=9)) == {0, 1}


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e3, 1.7e308])
def test_the_largest_utilities_neither_overflow_nor_drown(epsilon):
    distribution = output_distribution([1e308, -1e308, 1e308], epsilon)
    np.testing.assert_allclose(distribution, [0.5, 0, 0.5], atol=1e-300)
    assert distribution.min() > 0


@pytest.mark.claim("em-privacy", kind="enumeration")
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
    # Two candidates cost half.
    assert exact_epsilon(output_distribution(worst_table(2), 3.0)) == pytest.approx(1.5)


def test_a_candidate_that_underflow_would_lose_still_costs_no_more_than_epsilon():
    table = np.array([[0.0, -1490.0], [0.0, -1491.0]])
    assert exact_epsilon(softmax(table, 1.0)) == math.inf
    assert exact_epsilon(output_distribution(table, 1.0)) <= 1.0


# The mechanism: what is drawn.


@pytest.mark.claim("exponential_mechanism.sample", kind="enumeration")
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 2.0, 100.0, 1e3])
@pytest.mark.parametrize(
    ("utilities", "sensitivity"),
    [
        *((np.random.default_rng(size).normal(size=size), 1.0) for size in [1, 2, 3, 5, 8, 13]),
        ([5, 5, 5, 5, 5], 1.0),
        ([1e308, -1e308, 0], 1e308),
        ([0, 1000, 0, 1000, 0, 0], 250.0),
    ],
)
def test_over_all_coins_a_draw_has_exactly_its_distribution(
    monkeypatch, utilities, sensitivity, epsilon
):
    chances = realised_distribution(
        monkeypatch, lambda: sample(utilities, epsilon, sensitivity=sensitivity)
    )
    assert sum(chances.values()) == 1
    found = [float(chances[i]) for i in range(len(utilities))]
    expected = output_distribution(utilities, epsilon, sensitivity=sensitivity)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_million_candidates_are_all_reached():
    utilities = np.arange(10**6) % 4
    drawn = sample(utilities, 1.0, size=200_000, rng=4)
    assert is_distributed_as(drawn // 50_000, np.full(20, 0.05))
    assert is_distributed_as(drawn % 4, softmax(np.arange(4), 1.0))


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
    np.testing.assert_array_equal(output_distribution([False, True, 1, 0.0], 1.0), distribution)


# Permute-and-flip.


def over_all_orders(chances):
    """Return the distribution by its definition: every order of the candidates, in fractions."""
    chances = [Fraction(float(chance)) for chance in chances]
    drawn = [Fraction(0)] * len(chances)
    orders = list(itertools.permutations(range(len(chances))))
    for order in orders:
        nobody = Fraction(1, len(orders))
        for place in order:
            drawn[place] += nobody * chances[place]
            nobody *= 1 - chances[place]
    return [float(chance) for chance in drawn]


@given(utilities=st.lists(st.floats(-50, 50), min_size=1, max_size=6), epsilon=st.floats(1e-9, 1e3))
@settings(max_examples=60)
@example(utilities=[0.0, 0.0, 0.0, 0.0], epsilon=1.0)
@example(utilities=[0.0, -1e3, 0.0], epsilon=1.0)
def test_permute_and_flip_goes_through_the_candidates_in_every_order(utilities, epsilon):
    found = permute_and_flip_distribution(utilities, epsilon)
    chances = np.exp(np.maximum(epsilon * (np.array(utilities) - max(utilities)) / 2, -700))
    np.testing.assert_allclose(found, over_all_orders(chances), rtol=1e-9, atol=1e-300)


def test_permute_and_flip_is_the_largest_under_exponential_noise():
    utilities = np.array([3.0, 2.5, 0.0, -4.0])
    shifts = utilities / 2

    def largest(x, j):
        """Return the density of candidate j at x, and all others below."""
        others = np.delete(shifts, j)
        return np.exp(shifts[j] - x) * np.prod(-np.expm1(np.minimum(others - x, 0)))

    found = permute_and_flip_distribution(utilities, 1.0)
    for j in range(4):
        area, _ = integrate.quad(largest, shifts.max(), 60, args=(j,), epsabs=1e-13)
        assert found[j] == pytest.approx(area, abs=1e-11)


@pytest.mark.parametrize("candidates", [1, 2, 33, 1000, 10**4])
def test_permute_and_flip_over_many_candidates_has_probability_one(candidates):
    rng = np.random.default_rng(candidates)
    for utilities in (np.zeros(candidates), rng.normal(size=candidates), np.arange(candidates)):
        found = permute_and_flip_distribution(utilities, 1.0)
        assert found.sum() == pytest.approx(1, abs=1e-12)
        assert found.min() > 0
    np.testing.assert_allclose(
        permute_and_flip_distribution(np.ones(candidates), 1.0), 1 / candidates
    )


@pytest.mark.claim("exponential_mechanism.permute_and_flip", kind="enumeration")
@given(
    utilities=st.lists(st.integers(-64, 64), min_size=2, max_size=6),
    step=st.lists(st.integers(-64, 64), min_size=6, max_size=6),
    epsilon=st.floats(1e-6, 1e3),
)
@example(utilities=[0, -64], step=[-64, 64, 0, 0, 0, 0], epsilon=2.0)
def test_permute_and_flip_costs_no_more_than_epsilon(utilities, step, epsilon):
    table = np.vstack([utilities, np.add(utilities, step[: len(utilities)])]) / 64
    assert exact_epsilon(permute_and_flip_distribution(table, epsilon)) <= epsilon + 1e-11


def test_permute_and_flip_may_cost_all_of_epsilon_and_twice_as_much_without_the_half():
    table = [[0.0, -9.0], [-1.0, -8.0]]
    assert exact_epsilon(permute_and_flip_distribution(table, 1.0)) == pytest.approx(1, rel=1e-10)
    broken = [over_all_orders(np.exp(1.0 * (np.array(row) - max(row)))) for row in table]
    assert exact_epsilon(broken) == pytest.approx(2, rel=1e-9)


@given(utilities=utility_lists, epsilon=st.floats(1e-3, 10))
def test_permute_and_flip_chooses_at_least_as_well_as_the_exponential_mechanism(utilities, epsilon):
    flips = permute_and_flip_distribution(utilities, epsilon) @ utilities
    weights = output_distribution(utilities, epsilon) @ utilities
    assert flips >= weights - 1e-9


class EveryOrder(np.random.Generator):
    """A generator that has one order for every permutation asked of it."""

    def __init__(self, order):
        super().__init__(np.random.PCG64(0))
        self.order = np.array(order)

    def permutation(self, size):
        assert size == self.order.size
        return self.order


@pytest.mark.claim("exponential_mechanism.permute_and_flip", kind="enumeration")
@pytest.mark.parametrize("utilities", [[3.0], [0, 0, 0], [0, 1, -2], [5, 5, 4, -1]])
def test_over_all_orders_and_coins_permute_and_flip_has_its_distribution(monkeypatch, utilities):
    total = [Fraction(0)] * len(utilities)
    orders = list(itertools.permutations(range(len(utilities))))
    for order, heads in itertools.product(orders, itertools.product([0, 1], repeat=len(utilities))):
        asked = []

        def flip(p, rng, heads=heads, asked=asked):
            asked.append(p)
            return np.array(heads, dtype=bool)

        monkeypatch.setattr(exponential_mechanism, "flip_each", flip)
        drawn = permute_and_flip(utilities, 1.5, rng=EveryOrder(order))
        coins = zip(map(Fraction, map(float, asked[0])), heads, strict=True)
        total[drawn] += math.prod(p if head else 1 - p for p, head in coins) / len(orders)
    assert sum(total) == 1
    expected = permute_and_flip_distribution(utilities, 1.5)
    np.testing.assert_allclose([float(chance) for chance in total], expected, rtol=1e-13)


def test_real_draws_of_permute_and_flip_follow_its_distribution_and_no_other():
    utilities = [0, 2, 1, -3]
    drawn = permute_and_flip(utilities, 1.0, size=20_000, rng=11)
    assert is_distributed_as(drawn, permute_and_flip_distribution(utilities, 1.0))
    assert not is_distributed_as(drawn, output_distribution(utilities, 1.0))
    assert type(permute_and_flip(utilities, 1.0, rng=11)) is int
    assert permute_and_flip(utilities, 1.0, size=0).shape == (0,)


# A private median.


def median_by_definition(values, epsilon, low, high, steps):
    """Return the distribution of the median, every answer weighed by itself."""
    grid = low + (high - low) * np.arange(steps + 1) / steps
    near = grid[[np.abs(grid - min(max(value, low), high)).argmin() for value in values]]
    below, above = (near[:, None] < grid).sum(axis=0), (near[:, None] > grid).sum(axis=0)
    return softmax(-np.maximum(below, above), epsilon)


@given(
    values=st.lists(st.integers(-3, 13), min_size=1, max_size=12),
    epsilon=st.floats(1e-6, 20),
    steps=st.sampled_from([1, 2, 5, 10, 20]),
)
@example(values=[5] * 12, epsilon=1.0, steps=10)
@example(values=[10, 10], epsilon=1.0, steps=10)
@example(values=[0], epsilon=1.0, steps=1)
def test_the_median_is_the_exponential_mechanism_over_all_answers(values, epsilon, steps):
    found = median_distribution(values, epsilon, low=0, high=10, steps=steps)
    assert found.shape == (steps + 1,)
    # Halfway between two answers a value may go to either.
    if steps not in (1, 2, 5) or not any(0 < value < 10 for value in values):
        expected = median_by_definition(values, epsilon, 0, 10, steps)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


SMALL = {"low": 0, "high": 3, "steps": 3}


@pytest.mark.claim("exponential_mechanism.release_median", kind="enumeration")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_median_costs_no_more_than_epsilon_over_all_data_sets(epsilon, n):
    groups = np.array(list(itertools.product(range(4), repeat=n)))
    table = [median_distribution(group, epsilon, **SMALL) for group in groups]
    pairs = np.argwhere((groups[:, None] != groups).sum(axis=2) == 1)
    assert exact_epsilon(table, neighbours=pairs) <= epsilon + 1e-12
    broken = [median_distribution(group, 3 * epsilon, **SMALL) for group in groups]
    assert exact_epsilon(broken, neighbours=pairs) > epsilon


def test_the_median_may_cost_nearly_all_of_epsilon():
    # Nearly all answers, those above 2, gain a rank; the answer 1 loses one.
    worst = {"low": 0, "high": 10**6, "steps": 10**6}
    table = [median_distribution(values, 1.0, **worst) for values in ([0, 2, 2], [10**6, 2, 2])]
    assert 0.9 < exact_epsilon(table) <= 1.0


@pytest.mark.parametrize(("low", "high", "steps"), [(0, 110, 110), (-7, 1003, 1010), (1, 3, 10)])
def test_the_median_is_a_point_of_the_grid_rounded_once(low, high, steps):
    grid = [Fraction(low) + Fraction((high - low) * i, steps) for i in range(steps + 1)]
    for point in grid[:: max(1, steps // 50)]:
        options = {"low": low, "high": high, "steps": steps, "rng": 1}
        assert release_median([float(point)] * 50, 100.0, **options).value == float(point)


def test_many_choices_by_permute_and_flip_cost_more_than_by_the_exponential_mechanism():
    """Two candidates that are one apart, and change places: a hundred draws on each data set."""

    def cost(chances_of):
        table = [stats.binom.pmf(range(101), 100, c) for _, c in chances_of([[0, 1], [1, 0]], 0.1)]
        return optimize.brentq(lambda e: exact_delta(table, e) - 1e-5, 0.0, 10.0)

    assert cost(permute_and_flip_distribution) == pytest.approx(4.1878, abs=1e-4)
    assert cost(output_distribution) == pytest.approx(1.9681, abs=1e-4)
    assert cost(output_distribution) <= float(compose_bounded_range(0.1, 100, 1e-5)) < 2


@pytest.mark.claim("exponential_mechanism.release_median", kind="enumeration")
def test_a_stretch_is_drawn_by_its_exact_share_and_its_points_alike(monkeypatch):
    values, bounds = [2, 2, 5], {"low": 0, "high": 8, "steps": 8}
    asked = []

    class Fixed(np.random.Generator):
        def integers(self, low, high):
            asked.append((int(low), int(high)))
            return low

    rng = Fixed(np.random.PCG64(0))
    chances = realised_distribution(
        monkeypatch, lambda: release_median(values, 1.0, rng=rng, **bounds).value
    )
    distribution = median_distribution(values, 1.0, **bounds)
    for low, high in set(asked):
        share = distribution[low:high].sum()
        assert float(chances[float(low)]) == pytest.approx(share, rel=1e-13)
        np.testing.assert_allclose(distribution[low:high], distribution[low])
    assert sorted(set(asked)) == [(0, 2), (2, 3), (3, 5), (5, 6), (6, 9)]


def test_the_median_of_many_values_is_near_and_always_within_its_bounds():
    values = np.random.default_rng(13).normal(50, 10, size=100_001)
    found = release_median(values, 1.0, low=0, high=100, rng=14)
    assert abs(float(found) - np.median(values)) < 0.1
    assert (found.epsilon, found.delta) == (1.0, 0.0)
    assert "replaced" in found.neighbours
    for values in ([-1e308, 1e308], [7.0], np.array([3, 3, 3], dtype=np.uint8)):
        for seed in range(50):
            drawn = release_median(values, 0.01, low=-0.3, high=0.1, steps=2**40, rng=seed).value
            assert -0.3 <= drawn <= 0.1


def test_values_that_are_all_alike_are_found_on_a_grid_that_doubles_only_nearly_hold():
    for value in range(101):
        found = median_distribution([value / 100] * 100, 2.0, low=0, high=1, steps=100)
        assert found.argmax() == value
        assert found.max() > 0.99


# The sparse vector technique.


def noise_chances(scale, reach):
    """Return discrete Laplace noise as a dictionary, by its definition."""
    weights = {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}
    return {x: weight / sum(weights.values()) for x, weight in weights.items()}


def first_above_by_definition(answers, threshold, of_threshold, of_answers, reach=120):
    chances = noise_chances(of_answers, reach)
    found = np.zeros(len(answers) + 1)
    for shift, nobody in noise_chances(of_threshold, reach).items():
        for place, answer in enumerate(answers):
            above = sum(p for x, p in chances.items() if answer + x >= threshold + shift)
            found[place] += nobody * above
            nobody *= 1 - above
        found[-1] += nobody
    return found


@pytest.mark.claim("em-sparse-vector", kind="enumeration")
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("answers", [[0], [2, 1, 4], [-3, 3, 0, 3]])
def test_the_first_above_is_a_sum_over_all_noise(answers, monotone):
    epsilon = 2.5
    share = 2 if monotone else 1 + 4 ** (1 / 3)
    of_threshold = share / epsilon
    of_answers = of_threshold if monotone else 2 / (epsilon - 1 / of_threshold)
    found = above_threshold_distribution(answers, 2, epsilon, monotone=monotone)
    expected = first_above_by_definition(answers, 2, of_threshold, of_answers)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    # The two parts of the budget add up.
    assert 1 / of_threshold + (1 if monotone else 2) / of_answers == pytest.approx(epsilon)


def test_no_other_division_of_the_budget_has_a_smaller_variance():
    for factor, monotone in ((2, False), (1, True)):
        scales = exponential_mechanism._scales(1.0, 1, monotone)
        spread = sum(scale**2 for scale in scales)
        for share in np.linspace(0.05, 0.95, 91):
            assert (1 / share) ** 2 + (factor / (1 - share)) ** 2 >= spread - 1e-9


def worst_answers(answers, monotone):
    """Return all that one person can do to these answers, as rows that begin with themselves."""
    steps = itertools.product([-1, 0, 1], repeat=len(answers))
    kept = [s for s in steps if not (monotone and {-1, 1} <= set(s))]
    return np.array([answers, *(np.add(answers, step) for step in kept)])


@pytest.mark.claim("em-sparse-vector", kind="enumeration")
@pytest.mark.claim("exponential_mechanism.above_threshold", kind="enumeration")
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("answers", [[0, 0, 0], [-9, 9, -9], [9, 9, 9], [-4, -4, -4, 4]])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_sparse_vector_technique_costs_no_more_than_epsilon(answers, epsilon, monotone):
    table = above_threshold_distribution(
        worst_answers(answers, monotone), 0, epsilon, monotone=monotone
    )
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-11)
    pairs = [(0, row) for row in range(1, len(table))]
    assert exact_epsilon(table, neighbours=pairs) <= epsilon + 1e-9


def test_many_answers_use_up_nearly_all_of_epsilon_and_never_more():
    costs = []
    for count in (1, 10, 100, 1000):
        # The many stay below a raised threshold only, which the last must reach all the same.
        table = [[9] * count + [-9], [10] * count + [-10]]
        costs.append(exact_epsilon(above_threshold_distribution(table, 0, 1.0)))
    assert 0.6 < costs[0] < 0.7
    assert costs[1:] == pytest.approx([1.0] * 3, abs=1e-9)


def test_half_of_the_noise_is_too_little_where_answers_move_both_ways():
    table = [[9] * 300 + [-9], [10] * 300 + [-10]]
    too_little = above_threshold_distribution(table, 0, 1.0, monotone=True)
    assert exact_epsilon(too_little) == pytest.approx(1.5)


def test_the_sampler_compares_noisy_answers_with_one_noisy_threshold(monkeypatch):
    drawn = []

    def planted(size, scale, rng):
        drawn.append((size, scale))
        return np.array([3]) if size == 1 else np.array([0, 2, 7])

    monkeypatch.setattr(exponential_mechanism, "discrete_laplace", planted)
    assert above_threshold([9, 10, 6], 10, 1.0, sensitivity=5) == 2
    assert above_threshold([13, 10, 6], 10, 1.0, sensitivity=5) == 0
    assert above_threshold([12, 10, 5], 10, 1.0, sensitivity=5) == -1
    (one, of_threshold), (three, of_answers) = drawn[:2]
    assert (one, three) == (1, 3)
    assert 5 / of_threshold + 10 / of_answers == pytest.approx(1.0)


@pytest.mark.claim("exponential_mechanism.above_threshold", kind="simulation with its error")
@pytest.mark.parametrize("monotone", [False, True])
def test_real_draws_of_the_sparse_vector_technique_follow_its_distribution(monotone):
    rng = np.random.default_rng(15)
    call = {"answers": [2, 5, 0, 9], "threshold": 6, "epsilon": 1.2, "monotone": monotone}
    drawn = np.array([above_threshold(**call, rng=rng) for _ in range(6_000)])
    counts = np.bincount(np.where(drawn < 0, 4, drawn), minlength=5)
    assert counts_fit(counts, above_threshold_distribution(**call))
    call["monotone"] = not monotone
    assert not counts_fit(counts, above_threshold_distribution(**call))


def test_the_largest_counts_neither_wrap_around_nor_raise():
    for dtype, extremes in ((np.int64, (-(2**63), 2**63 - 1)), (np.uint64, (0, 2**64 - 1))):
        answers = np.array(extremes, dtype=dtype)
        assert above_threshold(answers, 2**40, 1e-6, rng=16) == 1
    assert above_threshold([2**53], -(2**53), 3e-12, rng=17) == 0
    found = above_threshold_distribution(np.array([[2**60, 2**61]]), 2**53, 1.0)
    np.testing.assert_allclose(found, above_threshold_distribution([[0, 0]], 0, 1.0))


def test_the_largest_epsilon_compares_without_noise():
    assert above_threshold_distribution([0, 100], 50, 1e308).tolist() == [0, 1, 0]


def test_a_far_answer_has_a_chance_that_is_small_and_not_0():
    near, far = above_threshold_distribution([[-300], [-301]], 0, 1.0)
    assert 0 < far[0] < near[0] < 1e-20
    assert math.log(near[0] / far[0]) < 1.0


def test_a_sensitivity_near_the_smallest_doubles_is_refused_since_halves_of_it_are_rounded():
    least = 5e-324
    with pytest.raises(ValueError, match="sensitivity must be a number of at least 1e-300"):
        exponential_mechanism.output_distribution([7 * least, least], 5.0, sensitivity=least)
    rows = np.array([[7e-300, 1e-300], [6e-300, 2e-300]])
    one, other = exponential_mechanism.output_distribution(rows, 5.0, sensitivity=1e-300)
    assert np.abs(np.log(one / other)).max() <= 5 * (1 + 1e-12)


@pytest.mark.parametrize("power", [63, 64, 400])
@pytest.mark.parametrize("sign", [1, -1])
def test_whether_a_sum_fits_64_bits_decides_nothing(power, sign):
    for seed in range(20):
        huge, cut_off = (
            exponential_mechanism.above_threshold([sign * 2**place, 3], 2, 1.0, rng=seed)
            for place in (power, 53)
        )
        assert huge == cut_off


# Quantiles.


def quantile_chances(data, share, strength, aside=0, steps=3):
    """Return the exact distribution of an answer on the grid of 0 to `steps`."""
    ends, weights = exponential_mechanism._stretches(
        np.array(data, dtype=np.int64), share, strength, steps, aside
    )
    chances = np.repeat(weights, np.diff(ends))
    return chances / chances.sum()


@pytest.mark.claim("exponential_mechanism.release_quantile", kind="enumeration")
@pytest.mark.parametrize("aside", [0, 2, -2])
@pytest.mark.parametrize("share", [0.5, 0.25, 0.9])
@pytest.mark.parametrize("neighbours", [REPLACED, ADDED_OR_REMOVED], ids=["replaced", "added"])
def test_a_quantile_costs_at_most_epsilon_and_the_worst_nearly_that(neighbours, share, aside):
    worst, strength = 0.0, exponential_mechanism._strength(1.0, share, neighbours, grouped=False)
    for n in range(1, 8):
        for rest in itertools.combinations_with_replacement(range(4), n - 1):
            tables = [quantile_chances([*rest, x], share, strength, aside) for x in range(4)]
            if neighbours == ADDED_OR_REMOVED:
                tables = [quantile_chances(rest, share, strength, aside), *tables]
            logs = np.log(tables)
            pairs = [(0, i) for i in range(1, 5)]
            if neighbours == REPLACED:
                pairs = itertools.combinations(range(4), 2)
            worst = max(worst, *(np.abs(logs[i] - logs[j]).max() for i, j in pairs))
    # Sums of few weights cannot come quite as far as the range of the exponents.
    assert 0.4 < worst <= 1 + 1e-12


@pytest.mark.claim("exponential_mechanism.release_quantile", kind="enumeration")
@pytest.mark.parametrize("share", [0.5, 0.25, 0.9])
def test_all_quantiles_of_a_partition_together_cost_at_most_epsilon(share):
    worst, strength = 0.0, exponential_mechanism._strength(1.0, share, REPLACED, grouped=True)
    sets = [data for n in range(5) for data in itertools.combinations_with_replacement(range(4), n)]
    furthest = 0.0
    for data in sets:
        for x in range(4):
            more = np.log(quantile_chances([*data, x], share, strength))
            gap = more - np.log(quantile_chances(data, share, strength))
            furthest = max(furthest, gap.max(), -gap.min())
            inside = [np.log(quantile_chances([*data, y], share, strength)) for y in range(4)]
            worst = max(worst, *(np.abs(more - other).max() for other in inside))
    # A record leaves one group and comes into another, whose answers are independent.
    assert max(worst, 2 * furthest) <= 1 + 1e-12
    assert 2 * furthest > 0.5


@pytest.mark.claim("exponential_mechanism.release_quantile", kind="enumeration")
@pytest.mark.parametrize("share", [0.5, 0.05, 0.99])
@pytest.mark.parametrize("n", [0, 1, 5, 40, 400])
def test_the_interval_of_a_quantile_misses_it_no_more_often_than_it_says(n, share):
    """By the exact distribution of both ends, on data of one value, two, and all values."""
    steps, error, epsilon = 30, 0.1, 1.0
    strength = exponential_mechanism._strength(epsilon, share, ADDED_OR_REMOVED, grouped=False) / 4
    aside = math.ceil(math.log(2 * (steps + 1) / error) / (strength / 2))
    for data in ([17] * n, [3, 29] * (n // 2), np.arange(n) % (steps + 1)):
        data = np.sort(data).astype(int)
        answers = np.arange(steps + 1)
        below = np.searchsorted(data, answers, side="left")
        above = data.size - np.searchsorted(data, answers, side="right")
        too_high = below > share * data.size
        too_low = above > (1 - share) * data.size
        left = quantile_chances(data, share, strength, -aside, steps)
        right = quantile_chances(data, share, strength, aside, steps)
        assert left[too_high].sum() + right[too_low].sum() <= error


@pytest.mark.parametrize("by", [None, ["x", "y"] * 100])
def test_a_quantile_is_drawn_by_its_distribution_with_and_without_an_interval(by):
    values, rng = list(range(0, 200)), np.random.default_rng(3)
    groups = None if by is None else ["x", "y", "z"]
    options = {"low": 0, "high": 200, "steps": 200, "by": by, "groups": groups, "rng": rng}
    released = release_quantile(values, 0.9, 50.0, interval=0.95, **options)
    for value, (low, high) in zip(
        np.atleast_1d(released.value), np.reshape(released.interval(), (-1, 2)), strict=True
    ):
        assert low <= value <= high
    assert np.abs(np.atleast_1d(released.value)[:2] - 180).max() < 5
    with pytest.raises(ValueError, match=r"confidence must be 0\.95"):
        released.interval(0.9)
    with pytest.raises(ValueError, match="interval must be asked for"):
        release_quantile(values, 0.9, 50.0, **options).interval()


def test_a_quantile_has_the_distribution_that_is_stated():
    rng, options = np.random.default_rng(1), {"low": 0, "high": 4, "steps": 4}
    options |= {"neighbours": ADDED_OR_REMOVED}
    drawn = [release_quantile([1, 2, 4], 0.7, 2.0, **options, rng=rng).value for _ in range(4000)]
    seen = np.bincount(np.array(drawn, dtype=int), minlength=5)
    assert counts_fit(seen, quantile_distribution([1, 2, 4], 0.7, 2.0, **options))
