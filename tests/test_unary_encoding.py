import itertools
import math
import warnings
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import counts_fit
from scipy import stats

from dpnotes import _coins, randomized_response, unary_encoding
from dpnotes.audit import exact_epsilon
from dpnotes.unary_encoding import (
    PROTOCOLS,
    aggregate,
    aggregate_ones,
    count_ones,
    encode,
    epsilon,
    output_distribution,
    perturb,
    probabilities,
    project_to_simplex,
    simulate_ones,
    support_probabilities,
    variance,
)

PAIRS = [(0.75, 0.25), (0.5, 0.25), (0.5, 1 / 3), (0.9, 0.8), (0.999, 0.001), (1e-6, 1e-9)]
# p and q with 0 < q < p < 1, and not so close that their difference has no digits left.
pairs = st.tuples(st.floats(0.01, 0.98), st.floats(0.01, 0.9)).map(
    lambda pair: (pair[0] + (0.99 - pair[0]) * pair[1], pair[0])
)


def distribution_with_nobody(categories, p, q):
    """Return the distribution of a report for every category, and in the last row for all zeros.

    Leaving out the bit of one category more makes of its members people without any 1.
    """
    distribution = output_distribution(categories + 1, p, q)
    return distribution.reshape(categories + 1, 2, 2**categories).sum(axis=1)


def as_number(bits):
    return bits.astype(int) @ 2 ** np.arange(bits.shape[-1])


# The parameters and the distribution.


@pytest.mark.claim("ue-thm-epsilon", kind="enumeration")
@given(pair=pairs, categories=st.integers(2, 7))
@example(pair=(0.75, 0.25), categories=12)
@example(pair=(1e-6, 1e-9), categories=3)
@example(pair=(1 - 1e-12, 1e-12), categories=3)
@settings(max_examples=50)
def test_the_distribution_of_a_report_costs_exactly_epsilon(pair, categories):
    distribution = output_distribution(categories, *pair)
    assert distribution.shape == (categories, 2**categories)
    np.testing.assert_allclose(distribution.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert exact_epsilon(distribution) == pytest.approx(epsilon(*pair), rel=1e-12, abs=1e-13)


@given(pair=pairs, categories=st.integers(1, 6))
@settings(max_examples=30)
def test_an_answer_of_all_zeros_is_as_private_as_any(pair, categories):
    distribution = distribution_with_nobody(categories, *pair)
    np.testing.assert_allclose(
        distribution[:-1], output_distribution(categories, *pair), atol=1e-15
    )
    p, q = pair
    costs = epsilon(p, q) if categories > 1 else math.log(max(p / q, (1 - q) / (1 - p)))
    assert exact_epsilon(distribution) == pytest.approx(costs, rel=1e-9)


@pytest.mark.claim("ue-thm-epsilon", kind="enumeration")
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_the_distribution_is_that_of_independent_bits(p, q):
    distribution = output_distribution(3, p, q)
    for category, report in itertools.product(range(3), range(8)):
        bits = [report >> j & 1 for j in range(3)]
        ones = [p if j == category else q for j in range(3)]
        expected = math.prod(one if bit else 1 - one for bit, one in zip(bits, ones, strict=True))
        assert distribution[category, report] == pytest.approx(expected, rel=1e-14, abs=0)


def exact_odds(p, q):
    p, q = Fraction(p), Fraction(q)
    return p * (1 - q) / ((1 - p) * q)


@pytest.mark.claim("unary_encoding.epsilon", kind="chosen cases")
@given(pair=pairs)
def test_epsilon_is_the_log_of_the_exact_odds(pair):
    assert epsilon(*pair) == pytest.approx(math.log(exact_odds(*pair)), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("q", [5e-324, 1e-300, 1e-9, 0.1, 0.3, 0.5, 0.9, 1 - 2.0**-52])
@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_not_even_neighbouring_probabilities_cost_less_than_the_exact_odds(q, steps):
    p = min(q + steps * float(np.spacing(q)), 1 - 2.0**-53)
    odds = exact_odds(p, q)
    with localcontext(Context(prec=60)):
        exact = (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()
    assert epsilon(p, q) == pytest.approx(float(exact), rel=1e-14, abs=0)


def test_the_epsilon_of_the_source_is_log_9():
    assert epsilon(0.75, 0.25) == pytest.approx(math.log(9), rel=1e-15)


@pytest.mark.claim("unary_encoding.probabilities", kind="chosen cases")
@given(cost=st.floats(1e-6, 60), scheme=st.sampled_from(["optimized", "symmetric"]))
@example(cost=math.log(3), scheme="optimized")
@example(cost=1e-9, scheme="symmetric")
def test_the_bit_probabilities_spend_all_of_epsilon_and_no_more(cost, scheme):
    p, q = probabilities(cost, scheme)
    assert 0 < q < p < 1
    spent = exact_odds(p, q)
    # Compared as odds, so that no rounding of a logarithm can hide an excess.
    assert spent <= exp_in_60_digits(cost)
    rounding = 2.0**-50 * max(1, 1 / (1 - p))
    assert math.log(spent) >= cost - rounding


def exp_in_60_digits(power):
    return Fraction(Context(prec=60).exp(Decimal(power)))


@given(cost=st.floats(1e-6, 100))
def test_the_schemes_are_the_published_ones(cost):
    half, rare = probabilities(cost)
    assert half == 0.5
    assert rare == pytest.approx(1 / (math.exp(cost) + 1), rel=1e-14, abs=0)
    p, q = probabilities(cost, "symmetric")
    assert q == pytest.approx(1 / (math.exp(cost / 2) + 1), rel=1e-14, abs=0)
    assert p == pytest.approx(1 - q, rel=1e-15)


@pytest.mark.parametrize("scheme", ["optimized", "symmetric"])
@pytest.mark.parametrize("cost", [100, 1000, 1e300])
def test_a_very_large_epsilon_is_still_finite(cost, scheme):
    p, q = probabilities(cost, scheme)
    assert 0 < q < p < 1
    assert 30 < epsilon(p, q) <= cost


# Encoding.


DRINKS = ["coffee", "tea", "water"]
EXPECTED = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=np.uint8)
ANSWERS = ["tea", "water", "coffee", "tea"]


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        iter,
        np.array,
        lambda v: np.array(v, dtype=object),
        pd.Series,
        lambda v: pd.Series(v, dtype="string"),
        lambda v: pd.Series(v, dtype=object),
        lambda v: pd.Series(v, dtype="category"),
        lambda v: pd.Series(v, index=[9, 9, 4, 2]),
        pd.Categorical,
        pd.Index,
    ],
)
def test_answers_in_any_container_are_encoded_alike(container):
    bits = encode(container(ANSWERS), DRINKS)
    assert bits.dtype == np.uint8
    assert np.array_equal(bits, EXPECTED)
    assert np.array_equal(encode(ANSWERS, container([*DRINKS, "milk"]))[:, :3], EXPECTED)


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([30, 10, 20], [10, 20, 30]),
        (np.array([30, 10, 20], dtype=np.int8), range(10, 31, 10)),
        (np.array([3.0, 1.0, 2.0]), [1, 2, 3]),
        ([(3, "c"), (1, "a"), (2, "b")], [(1, "a"), (2, "b"), (3, "c")]),
        (pd.Series([3, 1, 2], dtype="Int64"), [1, 2, 3]),
        (pd.to_datetime(["2003", "2001", "2002"]), pd.to_datetime(["2001", "2002", "2003"])),
    ],
)
def test_categories_may_be_anything_hashable(values, domain):
    assert np.array_equal(encode(values, domain), [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


@given(domain=st.lists(st.text(max_size=3), min_size=1, max_size=6, unique=True), data=st.data())
@settings(max_examples=30)
def test_every_answer_sets_the_bit_of_its_category_alone(domain, data):
    values = data.draw(st.lists(st.sampled_from(domain), min_size=1, max_size=20))
    bits = encode(values, domain)
    assert np.all(bits.sum(axis=1) == 1)
    assert [domain[j] for j in bits.argmax(axis=1)] == values


NAMES, DAYS = ["coffee", "tea"], pd.to_datetime(["2001", "2002"])
MISSING = {
    "None": (["tea", None], NAMES),
    "NaN": (["tea", math.nan], NAMES),
    "NA": (["tea", pd.NA], NAMES),
    "NaT": (["tea", pd.NaT], NAMES),
    "NumPy's NaN": (np.array(["tea", np.nan], dtype=object), NAMES),
    "an object series": (pd.Series(["tea", None], dtype=object), NAMES),
    "a string series": (pd.Series(["tea", None], dtype="string"), NAMES),
    "a plain string series": (pd.Series(["tea", None]), NAMES),
    "a categorical": (pd.Series(["tea", None], dtype="category"), NAMES),
    "an array of numbers": (np.array([2.0, np.nan]), [1, 2]),
    "a series of numbers": (pd.Series([2, None], dtype="Int64"), [1, 2]),
    "a series of dates": (pd.Series([DAYS[1], None]), DAYS),
}


@pytest.mark.parametrize(("values", "domain"), MISSING.values(), ids=MISSING)
def test_a_missing_answer_is_refused_unless_zeros_are_asked_for(values, domain):
    with pytest.raises(ValueError, match="values must not be missing"):
        encode(values, domain)
    assert np.array_equal(encode(values, domain, missing="zero"), [[0, 1], [0, 0]])


@pytest.mark.parametrize("no", [False, np.False_])
def test_no_is_an_answer_and_not_a_missing_one(no):
    assert np.array_equal(encode([no, True], [False, True]), [[1, 0], [0, 1]])
    assert np.array_equal(encode([True, no], [True, no], missing="zero"), [[1, 0], [0, 1]])


def test_an_unknown_answer_is_refused_even_where_missing_ones_are_zeros():
    for missing in ("raise", "zero"):
        with pytest.raises(ValueError, match="values must be in the domain") as refusal:
            encode(["tea", "absinthe"], DRINKS, missing=missing)
        assert "absinthe" not in str(refusal.value)
        assert "absinthe" not in repr(refusal.value.__cause__)


@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys, lambda v: dict.fromkeys(v).keys()])
def test_what_has_no_order_is_refused_since_columns_have_one(kind):
    with pytest.raises(TypeError, match="domain must be a sequence, which has an order"):
        encode(ANSWERS, kind(DRINKS))
    with pytest.raises(TypeError, match="values must be a sequence, which has an order"):
        encode(kind(ANSWERS), DRINKS)


class Tensor:
    """One category in an array that, like a tensor, has a hash and answers with arrays."""

    def __init__(self, *entries):
        self.entries = np.array(entries)

    def __array__(self, dtype=None, copy=None):
        return self.entries

    def __eq__(self, other):
        return self.entries == other

    __hash__ = object.__hash__


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("array", [Tensor("tea"), Tensor("tea", "milk"), np.array("tea")])
def test_an_array_among_categories_is_refused_wherever_it_stands(place, array):
    among = [*DRINKS[:place], array, *DRINKS[place:2]]
    for missing in ("raise", "zero"):
        with pytest.raises(TypeError, match="values must hold single categories; one is an array"):
            encode(among, DRINKS, missing=missing)
    with pytest.raises(TypeError, match="domain must hold single categories; one is an array"):
        encode(ANSWERS, among)


# Perturbing.


class EveryPairOfBytes:
    """A generator that gives two coins every pair of bytes once."""

    def bytes(self, size):
        assert size == 2 * 65_536
        first, second = np.divmod(np.arange(65_536), 256)
        return np.stack([first, second], axis=1).astype(np.uint8).tobytes()


def reports_over_all_draws(monkeypatch, row, p, q):
    monkeypatch.setattr(unary_encoding, "check_rng", lambda rng: rng)
    monkeypatch.setattr(
        _coins, "draw_bytes", lambda size, rng: np.frombuffer(rng.bytes(size), dtype=np.uint8)
    )
    monkeypatch.setattr(_coins, "_PART", 2 * 65_536)
    reports = perturb(np.tile(row, (65_536, 1)), p, q, rng=EveryPairOfBytes())
    return np.bincount(as_number(reports), minlength=4)


@pytest.mark.claim("unary_encoding.perturb", kind="all cases in exact numbers")
@pytest.mark.parametrize(("p", "q"), [(0.75, 0.25), (0.5, 1 / 256), (255 / 256, 31 / 256)])
def test_over_all_draws_a_report_has_exactly_its_distribution(monkeypatch, p, q):
    for row, distribution in zip(
        [[1, 0], [0, 1], [0, 0]], distribution_with_nobody(2, p, q), strict=True
    ):
        assert np.array_equal(reports_over_all_draws(monkeypatch, row, p, q), 65_536 * distribution)


@pytest.mark.parametrize(("p", "q"), [(0.75, 0.25), (0.5, 1 / 3), (0.95, 0.6), (0.5, 0.0119)])
def test_real_reports_follow_the_distribution(p, q):
    people = 200_000
    for row, distribution in zip(
        np.eye(4, 3, dtype=np.uint8), distribution_with_nobody(3, p, q), strict=True
    ):
        reports = perturb(np.tile(row, (people, 1)), p, q, rng=30)
        assert counts_fit(np.bincount(as_number(reports), minlength=8), distribution)


@pytest.mark.parametrize("width", [2, 3, 255, 256, 257, 512, 513, 600, 1024])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64])
def test_a_row_with_two_ones_is_refused_even_where_bytes_wrap(width, dtype):
    for ones in {2, width - 1, width, min(width, 256), min(width, 257), min(width, 512)} - {1}:
        bits = np.zeros((40, width), dtype=dtype)
        bits[:, 0] = 1
        bits[17, :ones] = 1
        with pytest.raises(ValueError, match="bits must have at most a single 1 in each row"):
            perturb(bits, 0.5, 0.25)


def test_a_wrapped_row_is_not_hidden_by_another():
    bits = np.zeros((3, 600), dtype=np.uint8)
    bits[0, :256] = 1
    bits[1, :257] = 1
    with pytest.raises(ValueError, match="bits must have at most a single 1"):
        perturb(bits, 0.5, 0.25)


def test_wide_rows_with_a_single_one_or_none_are_accepted():
    reports = perturb(np.eye(700, 600, dtype=np.uint8), 0.75, 0.25, rng=31)
    ones = np.count_nonzero(reports.diagonal())
    assert abs(ones - 450) <= 5 * math.sqrt(600 * 3 / 16)


@pytest.mark.parametrize("dtype", [bool, "i1", "u1", "i2", "u4", "i8", "u8", ">i4"])
def test_bits_of_any_type_get_the_same_reports(dtype):
    bits = np.eye(200, 14, dtype=np.uint8)
    expected = perturb(bits, 0.5, 0.25, rng=32)
    reports = perturb(bits.astype(dtype), 0.5, 0.25, rng=32)
    assert reports.dtype == np.dtype(dtype)
    assert np.array_equal(reports, expected)
    np.testing.assert_array_equal(count_ones(reports), count_ones(expected))


def test_bits_may_come_as_lists_frames_and_views():
    bits = np.eye(60, 5, dtype=int)
    expected = perturb(bits, 0.5, 0.25, rng=33)
    wide = np.repeat(bits, 2, axis=1)[:, ::2]
    for given_bits in (bits.tolist(), pd.DataFrame(bits), np.asfortranarray(bits), wide):
        assert np.array_equal(perturb(given_bits, 0.5, 0.25, rng=33), expected)
        assert np.array_equal(count_ones(given_bits), bits.sum(axis=0))


def test_the_true_bits_are_left_untouched():
    bits = np.eye(50, 4, dtype=np.uint8)
    perturb(bits, 0.5, 0.25, rng=34)
    assert np.array_equal(bits, np.eye(50, 4))


# Aggregating.


HEIGHTS = [1, 2, 254, 255, 256, 509, 510, 511, 765, 1020, 5000]


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("width", [1, 2, 14, 257])
def test_ones_are_counted_at_any_height(height, width):
    rng = np.random.default_rng(height)
    full = np.ones((height, width), dtype=np.uint8)
    half = rng.random((height, width)) < 0.5
    for reports in (full, half, full.astype(bool), half.astype(np.int64), half[::-1, ::-1]):
        ones = count_ones(reports)
        assert ones.dtype == np.int64
        assert np.array_equal(ones, np.sum(reports, axis=0, dtype=np.int64))


def test_many_reports_are_counted_without_overflow():
    reports = np.ones((200_000, 3), dtype=bool)
    reports[:, 1] = False
    assert count_ones(reports).tolist() == [200_000, 0, 200_000]


def test_ten_shards_give_the_same_counts_as_one():
    reports = perturb(np.eye(5, dtype=np.uint8).repeat(400, axis=0), 0.5, 0.25, rng=35)
    shards = np.array_split(reports, 10)
    ones = sum(count_ones(shard) for shard in shards)
    assert np.array_equal(ones, count_ones(reports))
    whole = aggregate(reports, 0.5, 0.25)
    np.testing.assert_array_equal(aggregate_ones(ones, 2000, 0.5, 0.25), whole)
    np.testing.assert_allclose(sum(aggregate(shard, 0.5, 0.25) for shard in shards), whole)


def moments_of_the_estimate(people, categories, p, q):
    """Return mean and variance of `aggregate` over every possible list of reports."""
    distribution = distribution_with_nobody(categories, p, q)
    reports = np.arange(2**categories)[:, None] >> np.arange(categories) & 1
    mean = second = 0.0
    for drawn in itertools.product(range(2**categories), repeat=len(people)):
        probability = math.prod(
            distribution[person, r] for person, r in zip(people, drawn, strict=True)
        )
        found = aggregate(reports[list(drawn)], p, q)
        mean, second = mean + probability * found, second + probability * found**2
    return mean, second - mean**2


@pytest.mark.parametrize(("p", "q"), [(0.75, 0.25), (0.5, 0.1), (0.9, 0.7)])
@pytest.mark.parametrize("people", [[0], [2], [0, 1], [1, 1], [0, 0, 1], [0, 1, 2], [2, 2, 1]])
def test_the_estimate_is_unbiased_and_its_variance_exact(people, p, q):
    # Category 2 of two stands for a person who answered nothing.
    counts = np.bincount(people, minlength=3)[:2]
    mean, spread = moments_of_the_estimate(people, 2, p, q)
    np.testing.assert_allclose(mean, counts, atol=1e-12)
    if counts.sum():
        exact = variance(counts, p, q, n=len(people))
        np.testing.assert_allclose(spread, exact, rtol=1e-10)
    if counts.sum() == len(people):
        np.testing.assert_array_equal(variance(counts, p, q), exact)


# Simulating.


def distribution_of_ones(members, people, p, q):
    """Return the exact distribution of the ones of a category: two binomials, added up."""
    own = stats.binom(members, p).pmf(np.arange(members + 1))
    return np.convolve(own, stats.binom(people - members, q).pmf(np.arange(people - members + 1)))


@pytest.mark.claim("unary_encoding.simulate_ones", kind="simulation with its error")
@pytest.mark.parametrize("counts", [[3, 2, 1], [0, 6, 0], [1, 1, 0]])
def test_the_simulation_has_the_distribution_of_perturbing_and_counting(counts):
    p, q, n, trials = 0.6, 0.2, 6, 6_000
    rng = np.random.default_rng(36)
    bits = np.zeros((n, 3), dtype=np.uint8)
    bits[np.arange(sum(counts)), np.repeat([0, 1, 2], counts)] = 1
    slow = perturb(np.tile(bits, (trials, 1)), p, q, rng=rng).reshape(trials, n, 3).sum(axis=1)
    quick = np.array([simulate_ones(counts, p, q, n=n, rng=rng) for _ in range(trials)])
    for ones in (slow, quick):
        for category, members in enumerate(counts):
            seen = np.bincount(ones[:, category], minlength=n + 1)
            expected = distribution_of_ones(members, n, p, q)
            assert counts_fit(seen, expected)
        # Bits are independent, so the counts of different categories are too.
        correlation = np.corrcoef(ones.T) - np.eye(3)
        assert np.abs(correlation).max() < 5 / math.sqrt(trials)


def test_a_billion_people_are_simulated_from_their_counts_alone():
    counts = np.array([600_000_000, 399_999_999, 1, 0])
    p, q = probabilities(1.0)
    ones = simulate_ones(counts, p, q, rng=38)
    assert ones.shape == (4,)
    assert ones.dtype == np.int64
    found = aggregate_ones(ones, 10**9, p, q)
    assert np.all(np.abs(found - counts) <= 5 * np.sqrt(variance(counts, p, q)))


def test_nobody_in_any_category_is_a_survey_like_any_other():
    ones = simulate_ones([0, 0], 0.5, 0.25, n=10**6, rng=37)
    assert np.all(np.abs(ones - 250_000) < 5 * math.sqrt(10**6 * 3 / 16))
    assert variance([0, 0], 0.5, 0.25, n=100).tolist() == [300.0, 300.0]
    for function in (simulate_ones, variance):
        with pytest.raises(ValueError, match="counts must not be all zero"):
            function([0, 0], 0.5, 0.25)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8", ">i4"])
def test_the_type_of_the_counts_does_not_matter_to_the_simulation(dtype):
    counts = np.array([100, 27, 0])
    expected = simulate_ones(counts, 0.5, 0.25, rng=39)
    assert np.array_equal(simulate_ones(counts.astype(dtype), 0.5, 0.25, rng=39), expected)


def test_variances_and_estimates_that_no_double_holds_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for counts in ([1e308, 1e308], [0.0, 1.1e100]):
            with pytest.raises(ValueError, match="counts must be at most 1e\\+100 each"):
                variance(counts, 0.5, 0.25)
        assert np.all(np.isfinite(variance([1e100, 0.0], 2e-100, 1e-100)))
        too_close = (1e-323, 5e-324)
        for function in (
            lambda: variance([1, 2], *too_close),
            lambda: aggregate([[1, 0]], *too_close),
            lambda: aggregate_ones([1], 2, *too_close),
        ):
            with pytest.raises(ValueError, match="p must be greater than q by 1e-100 or more"):
                function()
        assert epsilon(*too_close) == pytest.approx(math.log(2))


# The protocols.

TABLE = {
    # epsilon: direct encoding of 2, 16, 32, 128 and 1024 categories, symmetric and optimized
    # unary, binary hashing, subset selection among 16: the variance a person adds to an empty one.
    0.5: [3.9177, 37.185, 75.204, 303.32, 2432.4, 15.917, 15.671, 16.671, 13.650],
    1: [0.9207, 5.6624, 11.082, 43.596, 347.07, 3.9177, 3.6827, 4.6827, 3.1107],
    2: [0.1810, 0.5240, 0.9159, 3.2677, 25.218, 0.9207, 0.7241, 1.7241, 0.5198],
}
COLUMNS = [
    *(("direct encoding", d) for d in (2, 16, 32, 128, 1024)),
    ("symmetric unary", 16),
    ("optimized unary", 16),
    ("binary hashing", 16),
    ("subset selection", 16),
]


def variance_per_person(protocol, cost, categories, share=0.0):
    p, q = support_probabilities(protocol, cost, categories)
    people = 10**6
    counts = np.array([share * people, (1 - share) * people])
    return variance(counts, p, q)[0] / people


@pytest.mark.parametrize("cost", TABLE)
def test_the_variances_of_an_empty_category_are_the_published_ones(cost):
    for (protocol, categories), published in zip(COLUMNS, TABLE[cost], strict=True):
        found = variance_per_person(protocol, cost, categories)
        half_a_digit = 0.5 * 10.0 ** -(4 - math.floor(math.log10(published)))
        half_a_digit = max(half_a_digit, 0.5e-4)
        assert abs(found - published) <= half_a_digit, (protocol, categories)


F_TERMS = {
    "direct encoding": lambda odds, d: (d - 2) / (odds - 1),
    "symmetric unary": lambda odds, d: 0.0,
    "optimized unary": lambda odds, d: 1.0,
    "binary hashing": lambda odds, d: -1.0,
    "hadamard": lambda odds, d: -1.0,
    "local hashing": lambda odds, d: (round(odds) ** 2 - odds) / ((odds - 1) * round(odds)),
}
EMPTY_TERMS = {
    "direct encoding": lambda odds, d: (odds + d - 2) / (odds - 1) ** 2,
    "symmetric unary": lambda odds, d: math.sqrt(odds) / (math.sqrt(odds) - 1) ** 2,
    "optimized unary": lambda odds, d: 4 * odds / (odds - 1) ** 2,
    "binary hashing": lambda odds, d: (odds + 1) ** 2 / (odds - 1) ** 2,
    "hadamard": lambda odds, d: (odds + 1) ** 2 / (odds - 1) ** 2,
    "local hashing": lambda odds, d: (odds + round(odds)) ** 2 / ((odds - 1) ** 2 * round(odds)),
}


@given(
    protocol=st.sampled_from(sorted(F_TERMS)),
    cost=st.floats(0.1, 5),
    categories=st.integers(2, 2000),
    share=st.floats(0, 1),
)
def test_the_variance_grows_with_the_share_as_the_closed_form_says(
    protocol, cost, categories, share
):
    odds = math.exp(cost)
    closed = EMPTY_TERMS[protocol](odds, categories) + share * F_TERMS[protocol](odds, categories)
    found = variance_per_person(protocol, cost, categories, share)
    assert found == pytest.approx(closed, rel=1e-9, abs=1e-12)


def distribution_of_direct(categories, cost):
    distribution = np.where(np.eye(categories), math.exp(cost), 1.0)
    return distribution / distribution.sum(axis=1, keepdims=True), [{v} for v in range(categories)]


def distribution_of_subsets(categories, cost):
    """Return the distribution over all sets of the best size, and the categories in each."""

    def of_size(size):
        sets = [set(chosen) for chosen in itertools.combinations(range(categories), size)]
        weights = np.array([[math.exp(cost * (v in s)) for s in sets] for v in range(categories)])
        return weights / weights.sum(axis=1, keepdims=True), sets

    def of_an_empty_category(found):
        distribution, sets = found
        p, q = (distribution[v] @ [0 in s for s in sets] for v in (0, 1))
        return q * (1 - q) / (p - q) ** 2

    return min((of_size(size) for size in range(1, categories)), key=of_an_empty_category)


def distribution_of_hashes(categories, cost, cells):
    """Return the distribution over hash functions and reported cells, with their categories."""
    functions = list(itertools.product(range(cells), repeat=categories))
    odds = math.exp(cost)
    rows = [
        [
            (odds if hashed[v] == cell else 1) / (odds + cells - 1) / len(functions)
            for hashed in functions
            for cell in range(cells)
        ]
        for v in range(categories)
    ]
    sets = [
        {v for v in range(categories) if hashed[v] == cell}
        for hashed in functions
        for cell in range(cells)
    ]
    return np.array(rows), sets


def distribution_of_hadamard(categories, cost):
    """Return the distribution over rows of a Hadamard matrix and signs, with their categories."""
    matrix = np.array([[1]])
    while len(matrix) <= categories:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    # The first column is the same in every row: it tells nothing, and belongs to no category.
    signs = matrix[:, 1 : categories + 1]
    keep = math.exp(cost) / (math.exp(cost) + 1)
    distribution = np.concatenate([np.where(signs == s, keep, 1 - keep) for s in (1, -1)]) / len(
        matrix
    )
    return distribution.T, [set(np.flatnonzero(row == s)) for s in (1, -1) for row in signs]


ENUMERATED = {
    "direct encoding": distribution_of_direct,
    "subset selection": distribution_of_subsets,
    "local hashing": lambda k, cost: distribution_of_hashes(k, cost, round(math.exp(cost)) + 1),
    "binary hashing": lambda k, cost: distribution_of_hashes(k, cost, 2),
    "hadamard": distribution_of_hadamard,
}


@pytest.mark.parametrize("protocol", ENUMERATED)
@pytest.mark.parametrize(("categories", "cost"), [(2, 1.0), (4, 0.3), (4, 1.2), (5, 0.5)])
def test_the_support_probabilities_are_those_of_the_enumerated_protocol(protocol, categories, cost):
    distribution, sets = ENUMERATED[protocol](categories, cost)
    assert exact_epsilon(distribution) == pytest.approx(cost)
    member = np.array([[v in supported for supported in sets] for v in range(categories)])
    support = distribution @ member.T
    p, q = support_probabilities(protocol, cost, categories)
    np.testing.assert_allclose(support, np.where(np.eye(categories), p, q), rtol=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("categories", [2, 3, 14, 1024, 10**6])
def test_every_protocol_supports_the_truth_most_often(protocol, categories):
    for cost in [1e-9, 1e-6, *np.geomspace(0.01, 30, 40).tolist(), 30]:
        p, q = support_probabilities(protocol, cost, categories)
        assert 0 < q < p < 1


def test_direct_encoding_beats_optimized_unary_below_three_times_the_odds_plus_two():
    for cost in [0.1, 0.5, 1.0, math.log(3), 2.0, 3.0]:
        limit = 3 * math.exp(cost) + 2
        for categories in range(2, 100):
            if abs(categories - limit) < 1e-6:
                continue
            direct = variance_per_person("direct encoding", cost, categories)
            unary = variance_per_person("optimized unary", cost, categories)
            assert (direct < unary) == (categories < limit)


def test_optimized_unary_is_never_worse_than_symmetric_for_an_empty_category():
    for cost in np.geomspace(0.01, 10, 50).tolist():
        optimized = variance_per_person("optimized unary", cost, 2)
        assert optimized < variance_per_person("symmetric unary", cost, 2)


def test_at_log_9_the_demonstration_of_the_source_is_beaten_twice():
    cost = math.log(9)
    assert variance([0, 1], 0.75, 0.25)[0] == pytest.approx(0.75)
    assert variance_per_person("optimized unary", cost, 14) == pytest.approx(0.5625)
    assert round(variance_per_person("direct encoding", cost, 14), 3) == 0.328


# Projecting.


def nearest_by_trying_every_support(estimates, total):
    """Return the projection found by trying every set of categories that stay positive."""
    best, nearest = math.inf, None
    for size in range(1, len(estimates) + 1):
        for kept in itertools.combinations(range(len(estimates)), size):
            kept = list(kept)
            candidate = np.zeros(len(estimates))
            candidate[kept] = estimates[kept] - (estimates[kept].sum() - total) / size
            distance = ((candidate - estimates) ** 2).sum()
            if candidate.min() >= 0 and distance < best:
                best, nearest = distance, candidate
    return nearest


estimates_lists = st.lists(st.floats(-1000, 1000), min_size=1, max_size=6)


@given(estimates=estimates_lists, total=st.floats(0.01, 2000))
def test_the_projection_is_the_nearest_histogram(estimates, total):
    estimates = np.array(estimates)
    found = project_to_simplex(estimates, total)
    nearest = nearest_by_trying_every_support(estimates, total)
    np.testing.assert_allclose(found, nearest, atol=1e-9 * (1 + np.abs(estimates).max() + total))


@given(
    estimates=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60), total=st.floats(1e-3, 1e9)
)
def test_the_projection_lowers_every_positive_entry_alike(estimates, total):
    found = project_to_simplex(estimates, total)
    scale = 1e-9 * (total + max(map(abs, estimates)))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=scale)
    shifts = np.array(estimates) - found
    kept = found > scale
    if kept.any():
        assert np.ptp(shifts[kept]) <= 2 * scale
        # An entry cut off at zero is no higher than what all the others were lowered by.
        assert np.all(shifts <= shifts[kept].max() + 2 * scale)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.int64])
def test_estimates_of_any_type_are_projected_alike(dtype):
    estimates = np.array([100, 27, 3], dtype=dtype)
    np.testing.assert_allclose(project_to_simplex(estimates, 60), [60, 0, 0], atol=1e-12)
    np.testing.assert_allclose(project_to_simplex(estimates, 100), [86.5, 13.5, 0])


def test_a_total_that_drowns_beside_the_estimates_is_kept():
    np.testing.assert_allclose(project_to_simplex([1e17, -1e17], 1), [1, 0])
    np.testing.assert_allclose(project_to_simplex([1e17, 1e17], 3), [1.5, 1.5])


def test_the_widest_estimates_are_projected_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert project_to_simplex([1e308, -1e308], 1).tolist() == [1, 0]
        assert project_to_simplex([1.7e308, 1.7e308, -1.7e308], 1e100).tolist() == [5e99, 5e99, 0]
        with pytest.raises(ValueError, match="total must be a positive number up to 1e100"):
            project_to_simplex([1.0], 1.1e100)
        beyond = np.array([1, 10], dtype=np.longdouble) ** 400
        with pytest.raises(ValueError, match=r"estimates must be .* finite"):
            project_to_simplex(beyond if np.isfinite(beyond[1]) else [1, math.inf], 1.0)


# What the page compares.


def error_of_a_difference(distribution, own, supports, share):
    """Squared error of the difference of two estimates, per person, from a table of reports."""
    p, q = own
    step = supports[:, 0] - supports[:, 1].astype(float)
    means, squares = distribution @ step, distribution @ step**2
    variances = squares - means**2
    return (share / 2 * (variances[0] + variances[1]) + (1 - share) * variances[2]) / (p - q) ** 2


@pytest.mark.parametrize("cost", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_difference_of_two_frequent_counts_varies_as_the_page_says(cost, share):
    k = 4
    p, q = support_probabilities("direct encoding", cost, k)
    direct = randomized_response.output_distribution(cost, k)
    closed = (share * (p + q - (p - q) ** 2) + (1 - share) * 2 * q) / (p - q) ** 2
    found = error_of_a_difference(direct, (p, q), np.eye(k), share)
    assert found == pytest.approx(closed, rel=1e-9)
    p, q = probabilities(cost)
    bits = np.arange(2**k)[:, None] >> np.arange(k) & 1
    found = error_of_a_difference(output_distribution(k, p, q), (p, q), bits, share)
    closed = share * (p * (1 - p) + q * (1 - q)) + (1 - share) * 2 * q * (1 - q)
    assert found == pytest.approx(closed / (p - q) ** 2, rel=1e-9)


@pytest.mark.parametrize(("known_total", "level"), [(False, math.log(4)), (True, 1.48145)])
def test_for_fourteen_categories_a_rare_one_is_level_where_the_page_says(known_total, level):
    for cost, ahead in ((level - 1e-3, False), (level + 1e-3, True)):
        direct, unary = (
            variance(np.eye(14)[0], *support_probabilities(name, cost, 14), known_total=total)[1]
            for name, total in (("direct encoding", False), ("optimized unary", known_total))
        )
        assert (direct < unary) == ahead


@pytest.mark.parametrize("domain", [[10**5000] * 2, [Fraction(10**5000, 3)] * 2, [[10**5000]]])
def test_a_domain_too_long_to_print_is_refused_in_words(domain):
    with pytest.raises((TypeError, ValueError), match=r"domain must .* too long to print"):
        encode([1], domain)


# The total, where everybody is in one category.


@pytest.mark.claim("unary_encoding.variance", kind="enumeration")
@pytest.mark.parametrize("truth", [(0,), (0, 2), (1, 1), (0, 1, 2)])
def test_with_the_total_known_every_report_of_a_few_people_gives_the_stated_variance(truth):
    p, q, k = 0.6, 0.2, 3
    counts = np.bincount(truth, minlength=k)
    rows = output_distribution(k, p, q)
    patterns = np.arange(2**k)[:, None] >> np.arange(k) & 1
    chances, estimates = [], []
    for drawn in itertools.product(range(2**k), repeat=len(truth)):
        chances.append(math.prod(rows[v, report] for v, report in zip(truth, drawn, strict=True)))
        estimates.append(aggregate(patterns[list(drawn)], p, q, known_total=True))
    chances, estimates = np.array(chances), np.array(estimates)
    np.testing.assert_allclose(estimates.sum(axis=1), len(truth), atol=1e-12)
    np.testing.assert_allclose(chances @ estimates, counts, atol=1e-12)
    spread = chances @ (estimates - counts) ** 2
    np.testing.assert_allclose(variance(counts, p, q, known_total=True), spread, rtol=1e-12)
    assert spread.sum() == pytest.approx((1 - 1 / k) * variance(counts, p, q).sum())


@pytest.mark.parametrize("protocol", ENUMERATED)
def test_the_total_helps_hashing_and_hadamard_as_the_formula_says_and_a_single_category_not(
    protocol,
):
    k, cost = 4, 1.2
    distribution, sets = ENUMERATED[protocol](k, cost)
    member = np.array([[v in supported for supported in sets] for v in range(k)])
    p, q = support_probabilities(protocol, cost, k)
    estimates = (member - q) / (p - q)
    moved = estimates + (1 - estimates.sum(axis=0)) / k
    one = np.eye(k, dtype=int)[0]
    spread = (moved - one[:, None]) ** 2 @ distribution[0]
    by_itself = protocol in ("direct encoding", "subset selection")
    found = variance(one, p, q, known_total=not by_itself)
    np.testing.assert_allclose(spread, found, rtol=1e-9)


def test_the_total_is_known_only_where_everybody_is_counted():
    with pytest.raises(ValueError, match="n must be left out where known_total is True"):
        variance([1, 2], 0.5, 0.25, n=4, known_total=True)
