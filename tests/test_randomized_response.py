import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import counts_fit
from scipy import stats

from dpnotes import _coins, randomized_response
from dpnotes.audit import exact_delta, exact_epsilon
from dpnotes.randomized_response import (
    count_reports,
    estimate,
    estimate_counts,
    keep_probability,
    output_distribution,
    privatize,
    shuffled_delta,
    two_coin,
    variance,
)

LN3 = math.log(3)
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">i4", ">u8"]
epsilons = st.floats(1e-9, 700)


class EveryDraw:
    """A generator that gives every byte, and for each of them every step, equally often."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)

    def bytes(self, size):
        script = self.scripts.pop(0)
        assert script.size == size
        return script.astype(np.uint8).tobytes()

    def integers(self, low, high, *, size):
        steps = np.arange(low, high)
        assert size % steps.size == 0
        return np.tile(steps, size // steps.size)


@pytest.fixture
def scripted(monkeypatch):
    """Let a mechanism take a stand-in for its generator."""
    monkeypatch.setattr(randomized_response, "check_rng", lambda rng: rng)
    monkeypatch.setattr(
        _coins, "draw_bytes", lambda size, rng: np.frombuffer(rng.bytes(size), dtype=np.uint8)
    )


# The distribution: what is promised.


@pytest.mark.claim("rr-privacy", kind="enumeration")
@given(epsilon=epsilons, categories=st.integers(2, 40))
@example(epsilon=LN3, categories=2)
@example(epsilon=1e-9, categories=40)
def test_the_distribution_of_a_report_costs_exactly_epsilon(epsilon, categories):
    distribution = output_distribution(epsilon, categories)
    assert distribution.shape == (categories, categories)
    np.testing.assert_allclose(distribution.sum(axis=1), 1, rtol=0, atol=1e-14)
    # The two probabilities are rounded to doubles, and the ratio bears the error of both.
    assert exact_epsilon(distribution) == pytest.approx(epsilon, rel=1e-14, abs=1e-14)


@given(epsilon=epsilons, categories=st.integers(2, 1000))
def test_every_category_is_kept_with_the_same_probability_and_told_alike(epsilon, categories):
    keep = keep_probability(epsilon, categories)
    distribution = output_distribution(epsilon, categories)
    alike = np.where(np.eye(categories), keep, distribution[0, 1])
    np.testing.assert_array_equal(distribution, alike)
    assert 1 / categories < keep < 1
    expected = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    assert keep == pytest.approx(expected, rel=1e-14, abs=2**-52)


@pytest.mark.parametrize("categories", [2, 3, 1000])
@pytest.mark.parametrize("epsilon", [100, 700, 1000, 1e300])
def test_a_very_large_epsilon_is_still_finite(epsilon, categories):
    distribution = output_distribution(epsilon, categories)
    assert distribution.min() > 0
    assert exact_epsilon(distribution) == pytest.approx(min(epsilon, 700), rel=1e-14, abs=0)
    truth = np.arange(20_000) % categories
    assert np.array_equal(privatize(truth, epsilon, categories=categories, rng=1), truth)


def test_warners_two_coins_are_the_mechanism_at_log_3():
    np.testing.assert_allclose(output_distribution(LN3), [[0.75, 0.25], [0.25, 0.75]], rtol=1e-15)


# The draw: what is done.


@pytest.mark.claim("randomized_response.privatize", kind="all cases in exact numbers")
@pytest.mark.parametrize(("categories", "lies"), [(2, 64), (3, 1), (4, 64), (4, 255), (14, 100)])
def test_over_all_draws_a_report_has_exactly_its_distribution(
    monkeypatch, scripted, categories, lies
):
    monkeypatch.setattr(randomized_response, "lie_probability", lambda *_: lies / 256)
    others = categories - 1
    for truth in range(categories):
        everybody = np.full(256 * others, truth)
        rng = EveryDraw(np.repeat(np.arange(256), others))
        reports = privatize(everybody, 1.0, categories=categories, rng=rng)
        expected = np.full(categories, lies)
        expected[truth] = (256 - lies) * others
        np.testing.assert_array_equal(np.bincount(reports, minlength=categories), expected)


@pytest.mark.parametrize(
    ("epsilon", "categories", "people"),
    [(LN3, 2, 200_000), (1.0, 3, 100_000), (2.0, 14, 30_000), (3.0, 300, 2_000)],
)
def test_real_reports_follow_the_distribution(epsilon, categories, people):
    truth = np.tile(np.arange(categories), people)
    reports = privatize(truth, epsilon, categories=categories, rng=10)
    seen = np.bincount(truth * categories + reports, minlength=categories**2)
    assert counts_fit(seen, output_distribution(epsilon, categories).ravel() / categories)


def test_ten_million_people_report_at_once():
    truth = np.arange(10**7) % 4 == 0
    reports = privatize(truth, LN3, rng=11)
    assert reports.dtype == bool
    lies = np.count_nonzero(reports ^ truth)
    assert abs(lies - 2.5e6) <= 5 * math.sqrt(10**7 * 3 / 16)
    found = estimate(reports, LN3)[1]
    assert abs(found - 2.5e6) <= 5 * math.sqrt(0.75 * 10**7)


@pytest.mark.parametrize(
    ("dtype", "categories"), [*itertools.product(INTEGERS, [2, 14]), (bool, 2)]
)
def test_truths_of_any_type_get_the_same_reports(dtype, categories):
    truth = np.arange(1000) % categories
    expected = privatize(truth, 1.0, categories=categories, rng=13)
    reports = privatize(truth.astype(dtype), 1.0, categories=categories, rng=13)
    assert np.array_equal(reports, expected)
    assert reports.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(
        estimate(reports, 1.0, categories=categories),
        estimate(expected, 1.0, categories=categories),
    )


@pytest.mark.parametrize(
    "container", [list, tuple, pd.Series, lambda v: pd.Series(v, dtype="Int64"), pd.Index]
)
def test_lists_and_series_get_the_same_reports_as_arrays(container):
    truth = [0, 1, 2, 1, 0] * 50
    expected = privatize(np.array(truth), 1.0, categories=3, rng=14)
    assert np.array_equal(privatize(container(truth), 1.0, categories=3, rng=14), expected)
    np.testing.assert_array_equal(
        estimate(container(expected.tolist()), 1.0, categories=3),
        estimate(expected, 1.0, categories=3),
    )


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("power", [7, 8, 15, 16, 31, 32, 33, 61])
def test_reports_are_integers_that_can_hold_every_category(dtype, power):
    for categories in (2**power, 2**power + 1):
        call = {"epsilon": 0.01 + 2 * power / 3, "categories": categories, "rng": 15}
        reports = privatize(np.zeros(50, dtype=dtype), **call)
        assert np.iinfo(reports.dtype).max >= categories - 1
        assert np.array_equal(reports, privatize(np.zeros(50, dtype=int), **call))


def test_a_type_that_just_holds_every_category_is_kept():
    for dtype, categories in (("i1", 128), ("u1", 256)):
        assert privatize(np.zeros(9, dtype), 9.0, categories=categories).dtype == dtype


def test_beyond_the_integers_of_a_float_no_digit_of_a_report_is_lost():
    truth = np.full(2000, 2**61 + 1)
    expected = privatize(truth, 42.0, categories=2**62, rng=0)
    reports = privatize(truth.astype(np.uint64), 42.0, categories=2**62, rng=0)
    assert np.array_equal(reports, expected)
    assert np.any(expected % 2 != truth % 2)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
def test_the_number_of_categories_may_be_of_any_type_of_integer(kind):
    truth = np.arange(120, dtype=np.int8)
    expected = privatize(truth, 1.0, categories=200, rng=0)
    reports = privatize(truth, 1.0, categories=kind(200), rng=0)
    assert reports.dtype == expected.dtype
    assert np.array_equal(reports, expected)


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (np.array([-1], dtype=np.int8), 300),
        (np.array([-5], dtype=np.int16), 65_535),
        (np.array([1 << 24], dtype=">i4"), 2),
        (np.array([-1], dtype=">i2"), 2**62),
        (np.array([2**63], dtype=np.uint64), 2**62),
    ],
)
def test_a_record_outside_the_domain_is_refused_whatever_its_bytes(values, categories):
    with pytest.raises(ValueError, match=r"values must be integers in .*; a record is not"):
        privatize(values, 50.0, categories=categories)


def test_the_largest_domain_does_not_overflow():
    categories = 2**62
    truth = np.full(2000, categories - 1)
    reports = privatize(truth, 42.0, categories=categories, rng=16)
    assert reports.min() >= 0
    assert reports.max() < categories
    lies = np.count_nonzero(reports != truth)
    share = 1 - keep_probability(42.0, categories)
    assert abs(lies - 2000 * share) <= 5 * math.sqrt(2000 * share * (1 - share))


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (3, 1, 2)])
@pytest.mark.parametrize("mechanism", ["two", "many", "coins"])
def test_reports_have_the_shape_of_the_truth(shape, mechanism):
    truth = np.ones(shape, dtype=np.int16)
    draw = {
        "two": lambda: privatize(truth, 1.0, rng=0),
        "many": lambda: privatize(truth, 1.0, categories=5, rng=0),
        "coins": lambda: two_coin(truth, rng=0),
    }[mechanism]
    assert isinstance(draw(), np.ndarray)
    assert draw().shape == shape
    assert draw().dtype == np.int16


def test_a_strided_array_is_read_in_its_own_order():
    wide = np.arange(3000).reshape(1000, 3) % 5
    reports = privatize(wide[:, 1], 1.0, categories=5, rng=17)
    assert np.array_equal(reports, privatize(wide[:, 1].copy(), 1.0, categories=5, rng=17))


def test_the_truth_is_left_untouched():
    for categories in (2, 5):
        truth = np.ones(100, dtype=np.uint8)
        privatize(truth, 0.1, categories=categories, rng=18)
        two_coin(truth, rng=18)
        assert np.all(truth == 1)


# Warner's coins.


@pytest.mark.claim("randomized_response.two_coin", kind="all cases in exact numbers")
def test_over_all_draws_two_coins_keep_the_truth_three_times_in_four(scripted):
    first, second = np.divmod(np.arange(65_536), 256)
    for truth in (False, True):
        reports = two_coin(np.full(65_536, truth), rng=EveryDraw(first, second))
        assert np.count_nonzero(reports == truth) == 3 * 65_536 // 4


def test_two_coins_are_drawn_for_each_person_alone():
    truth = np.arange(10**6) % 2 == 0
    reports = two_coin(truth, rng=20)
    kept = (reports == truth).reshape(-1, 2)
    patterns = np.bincount(kept @ [1, 2], minlength=4)
    assert counts_fit(patterns, np.array([1, 3, 3, 9]) / 16)


@pytest.mark.parametrize("dtype", [*INTEGERS, bool])
def test_two_coins_keep_the_type_of_the_truth(dtype):
    truth = np.arange(1000) % 3 == 0
    reports = two_coin(truth.astype(dtype), rng=21)
    assert reports.dtype == np.dtype(dtype)
    assert np.array_equal(reports, two_coin(truth, rng=21))


# The estimate.


def moments_of_the_estimate(truth, epsilon, categories):
    """Return mean and variance of `estimate` over every possible list of reports."""
    distribution = output_distribution(epsilon, categories)
    mean = second = 0.0
    for reports in itertools.product(range(categories), repeat=len(truth)):
        probability = math.prod(distribution[t, r] for t, r in zip(truth, reports, strict=True))
        found = estimate(reports, epsilon, categories=categories)
        mean, second = mean + probability * found, second + probability * found**2
    return mean, second - mean**2


@given(
    epsilon=st.floats(0.05, 8),
    truth=st.integers(2, 4).flatmap(
        lambda d: st.tuples(st.just(d), st.lists(st.integers(0, d - 1), min_size=1, max_size=4))
    ),
)
@settings(max_examples=30)
def test_the_estimate_is_unbiased_and_its_variance_exact(epsilon, truth):
    categories, truth = truth
    counts = np.bincount(truth, minlength=categories)
    mean, spread = moments_of_the_estimate(truth, epsilon, categories)
    exact = variance(counts, epsilon)
    np.testing.assert_allclose(mean, counts, atol=1e-11 * (1 + exact.max()))
    np.testing.assert_allclose(spread, exact, rtol=1e-9)


@given(epsilon=st.floats(0.01, 100), reports=st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_estimates_add_up_to_the_number_of_people(epsilon, reports):
    found = estimate(reports, epsilon, categories=5)
    assert found.shape == (5,)
    assert found.sum() == pytest.approx(len(reports), abs=1e-9 * abs(found).max())


def test_reports_of_any_shape_are_counted():
    reports = np.arange(24).reshape(2, 3, 4) % 5
    flat = estimate(reports.ravel(), 1.0, categories=5)
    np.testing.assert_array_equal(estimate(reports, 1.0, categories=5), flat)
    bits = reports % 2
    np.testing.assert_array_equal(estimate(bits, 1.0), estimate(bits.ravel(), 1.0))


@given(reports=st.lists(st.integers(0, 4), min_size=2, max_size=40), data=st.data())
def test_the_counts_of_batches_add_up_and_give_the_estimate_of_all(reports, data):
    cut = data.draw(st.integers(1, len(reports) - 1))
    parts = [count_reports(part, categories=5) for part in (reports[:cut], reports[cut:])]
    assert sum(parts).tolist() == [reports.count(category) for category in range(5)]
    found = estimate_counts(sum(parts), 1.0)
    np.testing.assert_array_equal(found, estimate(reports, 1.0, categories=5))


def test_no_report_is_lost_where_one_part_ends_and_the_next_begins(monkeypatch):
    monkeypatch.setattr(randomized_response, "_PART", 9)  # and the last one alone
    for kind in INTEGERS:
        reports = (np.arange(100) % 3).astype(kind)
        assert count_reports(reports, categories=3).tolist() == [34, 33, 33]
    # With more categories than a part has reports, parts are as long as the counts.
    assert count_reports(np.arange(50), categories=30 + 20).tolist() == [1] * 50


def test_counting_takes_the_memory_of_a_part_and_not_of_the_reports():
    reports = np.zeros(20_000_000, dtype=np.uint8)
    tracemalloc.start()
    count_reports(reports, categories=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < reports.nbytes


@pytest.mark.parametrize(
    ("epsilon", "categories", "per_person"),
    [
        (0.5, 2, 3.9177),
        (0.5, 16, 37.185),
        (0.5, 32, 75.204),
        (0.5, 128, 303.32),
        (0.5, 1024, 2432.4),
        (1, 2, 0.9207),
        (1, 16, 5.6624),
        (1, 32, 11.082),
        (1, 128, 43.596),
        (1, 1024, 347.07),
        (2, 2, 0.1810),
        (2, 16, 0.5240),
        (2, 32, 0.9159),
        (2, 128, 3.2677),
        (2, 1024, 25.218),
    ],
)
def test_the_variance_of_an_empty_category_is_the_published_one(epsilon, categories, per_person):
    counts = np.zeros(categories)
    counts[-1] = 1000
    found = variance(counts, epsilon)[0] / 1000
    assert float(f"{found:.5g}") == pytest.approx(per_person, abs=0.5 * last_digit(per_person))


def last_digit(number):
    return 10.0 ** -len(str(number).partition(".")[2])


@given(epsilon=st.floats(0.01, 20), counts=st.lists(st.integers(0, 10**6), min_size=2, max_size=9))
def test_the_variance_is_that_of_an_empty_category_and_a_term_for_its_members(epsilon, counts):
    counts = np.array([*counts, 1])
    n, d, odds = counts.sum(), counts.size, math.exp(epsilon)
    closed = n * (odds + d - 2) / (odds - 1) ** 2 + counts * (d - 2) / (odds - 1)
    np.testing.assert_allclose(variance(counts, epsilon), closed, rtol=1e-9)


def test_sales_among_the_adults_is_known_to_four_percent():
    people, sales = 32_561, 3_650
    spread = math.sqrt(variance([people - sales, sales], LN3)[1])
    assert round(spread, 1) == 156.3
    assert round(100 * spread / sales, 2) == 4.28
    ones = np.convolve(
        stats.binom(sales, 0.75).pmf(np.arange(sales + 1)),
        stats.binom(people - sales, 0.25).pmf(np.arange(people - sales + 1)),
    )
    error = 2 * (np.arange(people + 1) - people / 4) - sales
    # An error of exactly 5 % can occur; the normal curve, at 0.757, lies between the two counts.
    error, limit = np.abs(error), 0.05 * sales
    within, up_to = ones[error < limit].sum(), ones[error <= limit].sum()
    normal = 1 - 2 * stats.norm.sf(0.05 * sales / spread)
    assert round(normal, 3) == 0.757
    assert round(within, 3) == 0.756 < normal < up_to


def test_a_variance_that_no_double_holds_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beyond = np.array([1, 10], dtype=np.longdouble) ** 400
        for counts in ([1e308, 1e308], [0.0, 1.1e100], beyond):
            with pytest.raises(ValueError, match="counts must be"):
                variance(counts, 1.0)
        assert np.all(np.isfinite(variance([1e100] * 1000, 1e-12)))


def test_large_epsilons_keep_their_digits():
    expected = 2 * math.exp(-100)
    assert variance([1, 1], 100.0)[0] == pytest.approx(expected, rel=1e-12, abs=0)
    assert Fraction(keep_probability(700.0)) < 1


def test_half_of_the_surveys_about_sales_are_off_by_at_least_3_percent_at_epsilon_1():
    """One simulated median was 3.4 %; the exact one needs no draw."""
    people, sales = 32_561, 3650
    p = keep_probability(1.0)
    from_sales = stats.binom.pmf(np.arange(sales + 1), sales, p)
    from_others = stats.binom.pmf(np.arange(people - sales + 1), people - sales, 1 - p)
    yes = np.convolve(from_sales, from_others)
    errors = np.abs((np.arange(people + 1) - people * (1 - p)) / (2 * p - 1) - sales)
    within = [yes[errors <= percent / 100 * sales].sum() for percent in (3.18, 3.20, 3.4)]
    assert within[0] < 0.5 < within[1] < 0.525 < within[2]


# The shuffled reports: one count.


def shuffled_by_hand(truths, local_epsilon):
    """Return the distribution of the sorted reports, from all reports of everybody."""
    table = output_distribution(local_epsilon)
    chances = np.zeros(len(truths) + 1)
    for reports in itertools.product((0, 1), repeat=len(truths)):
        chances[sum(reports)] += math.prod(
            table[pair] for pair in zip(truths, reports, strict=True)
        )
    return chances


def delta_by_hand(epsilon, others, local_epsilon):
    pair = [shuffled_by_hand((own, *others), local_epsilon) for own in (0, 1)]
    return exact_delta(pair, epsilon)


@pytest.mark.claim("rr-shuffle", "randomized_response.shuffled_delta", kind="enumeration")
@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("local_epsilon", [0.2, LN3, 4.0])
def test_shuffled_delta_is_that_of_all_reports_of_all_people(n, local_epsilon):
    for epsilon in (0.0, 0.1, 0.5 * local_epsilon, 0.99 * local_epsilon):
        found = [shuffled_delta(epsilon, n, local_epsilon, others=others) for others in range(n)]
        expected = [
            delta_by_hand(epsilon, [1] * others + [0] * (n - 1 - others), local_epsilon)
            for others in range(n)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)
        worst = shuffled_delta(epsilon, n, local_epsilon)
        assert worst == pytest.approx(max(expected), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("n", [50, 3256])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.2])
def test_among_people_of_one_mind_delta_is_a_difference_of_binomial_tails(n, epsilon):
    # The worst set of outputs is an upper tail, so delta is the largest such difference.
    tail = stats.binom.sf(np.arange(-2, n), n - 1, 0.75)
    own, factor = 0.75 * tail[:-1] + 0.25 * tail[1:], math.exp(epsilon)
    without = 0.25 * tail[:-1] + 0.75 * tail[1:]
    expected = np.max(own - factor * without)
    found = shuffled_delta(epsilon, n, LN3, others=n - 1)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-30)


def test_shuffling_brings_two_coins_of_a_town_to_a_tenth():
    assert shuffled_delta(0.1, 3256, LN3) == pytest.approx(3.67996560e-9, rel=1e-8)
    ends = [shuffled_delta(0.1, 3256, LN3, others=others) for others in (0, 3255)]
    assert ends == pytest.approx([3.67649079e-9] * 2, rel=1e-8)
    assert shuffled_delta(0.1, 3256, LN3, others=1628) < 2.1e-9


def test_with_what_is_known_of_the_others_shuffled_delta_falls_with_people_and_epsilon():
    people = [shuffled_delta(0.1, n, 1.0, others=0) for n in (1, 10, 100, 1000)]
    assert people == sorted(people, reverse=True)
    claims = [shuffled_delta(epsilon, 100, 1.0) for epsilon in (0, 0.1, 0.5, 0.9)]
    assert claims == sorted(claims, reverse=True)


@settings(max_examples=50)
@given(local_epsilon=st.floats(1e-6, 1000), n=st.integers(1, 30), share=st.floats(0, 2))
def test_shuffling_never_costs_more_than_a_report(local_epsilon, n, share):
    delta = shuffled_delta(share * local_epsilon, n, local_epsilon)
    assert 0 <= delta <= 1
    if share >= 1:
        assert delta == 0
    else:
        alone = exact_delta(output_distribution(local_epsilon), share * local_epsilon)
        assert delta <= alone + 1e-15


def test_a_million_people_are_counted_for_given_truths():
    # As good as Gaussian noise on the number of yes.
    mu = 0.5 / math.sqrt(10**6 * 3 / 16)
    for share in (1, 3):
        epsilon = share * mu
        gaussian = stats.norm.cdf(mu / 2 - share) - math.exp(epsilon) * stats.norm.cdf(
            -mu / 2 - share
        )
        found = shuffled_delta(epsilon, 10**6, LN3, others=500_000)
        assert found == pytest.approx(gaussian, rel=2e-2)
