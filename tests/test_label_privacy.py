import functools
import itertools
import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import counts_fit, is_distributed_as, realised_distribution, softmax
from scipy import optimize, special, stats

from dpnotes import _coins, exponential_mechanism, label_privacy, randomized_response
from dpnotes._coins import lie_probability
from dpnotes.audit import exact_epsilon
from dpnotes.label_privacy import (
    exponential,
    log_score_pmf,
    minimum_epsilon,
    privatize,
    success_probability,
    truncated_binomial,
)

METHODS = ["independent", "two-step"]
EPSILONS = [1e-9, 0.1, 1.0, 2 * math.log(3), 8.0]


# The score.


@pytest.mark.parametrize("n", [1, 7, 2000])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 20.0, 1e3])
def test_the_log_of_the_score_distribution_has_ten_digits(n, epsilon):
    with mpmath.workdps(300):
        half = mpmath.mpf(epsilon) / 2
        norm = n * mpmath.log1p(mpmath.exp(half))
        exact = [float(mpmath.log(math.comb(n, i)) + i * half - norm) for i in range(n + 1)]
    np.testing.assert_allclose(log_score_pmf(n, epsilon), exact, rtol=1e-10, atol=0)


def test_an_epsilon_past_the_reach_of_doubles_keeps_every_label():
    found = log_score_pmf(10, 1e308)
    assert found[-1] == 0
    assert np.all(found[:-1] < -1e307)


def recursion(n, epsilon, *, first=2.0, step=2.0):
    """Return the source's recursion in log space; a mistaken copy divides by 1 and not by 2."""
    steps = [math.log((n - i + 1) / i) + epsilon / step for i in range(1, n + 1)]
    logs = -n * math.log1p(math.exp(epsilon / first)) + np.cumsum([0, *steps])
    return logs - special.logsumexp(logs)


@pytest.mark.parametrize(
    ("options", "times"), [({}, 1), ({"step": 1.0}, 2), ({"first": 1.0, "step": 1.0}, 2)]
)
def test_without_the_half_the_recursion_is_randomized_response_at_all_of_epsilon(options, times):
    np.testing.assert_allclose(
        recursion(40, 1.0, **options), log_score_pmf(40, times * 1.0), rtol=1e-11
    )


# Labels are randomized response.


@functools.cache
def scores(n):
    """Return the number of labels that agree, for all pairs of 2^n data sets."""
    numbers = np.arange(2**n)
    return n - np.bitwise_count(numbers[:, None] ^ numbers).astype(int)


def one_label_changed(n):
    return [(i, i ^ 1 << j) for i in range(2**n) for j in range(n) if i < i ^ 1 << j]


def product_distribution(n, epsilon):
    """Return the distribution of n reports of randomized response."""
    return functools.reduce(np.kron, [randomized_response.output_distribution(epsilon)] * n)


def two_step_distribution(log_pmf):
    """Return the distribution of a uniform subset whose size is drawn first."""
    n = log_pmf.size - 1
    subsets = special.comb(n, np.arange(n + 1))
    return (np.exp(log_pmf) / subsets)[scores(n)]


@pytest.mark.claim("lp-labels", kind="enumeration")
@pytest.mark.parametrize("n", [1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_labels_under_the_exponential_mechanism_are_randomized_response(n, epsilon):
    expected = product_distribution(n, epsilon / 2)
    for distribution in (
        softmax(scores(n), epsilon),
        exponential_mechanism.output_distribution(scores(n), epsilon),
        two_step_distribution(log_score_pmf(n, epsilon)),
    ):
        np.testing.assert_allclose(distribution, expected, rtol=1e-12)


@pytest.mark.claim("lp-labels", kind="enumeration")
@pytest.mark.parametrize("n", [1, 2, 8])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_labels_cost_half_of_epsilon_and_no_more(n, epsilon):
    neighbours = one_label_changed(n)
    for distribution in (
        softmax(scores(n), epsilon),
        two_step_distribution(log_score_pmf(n, epsilon)),
    ):
        assert exact_epsilon(distribution, neighbours=neighbours) == pytest.approx(
            epsilon / 2, rel=1e-10
        )


# Labels at their cost, of any two classes.


CLASSES = [(-1, 1), (1, 0), (-1.5, 0.25), (False, True), ("well", "ill")]


def drawn_columns(monkeypatch, labels, epsilon, classes):
    """Return the exact probability of every column that `privatize` draws: all ways coins fall."""
    chances = Counter()
    for flips in itertools.product([False, True], repeat=len(labels)):
        asked = []

        def flip(size, p, rng, flips=flips, asked=asked):
            asked.append(Fraction(p))
            assert size == len(flips)
            return np.array(flips)

        monkeypatch.setattr(randomized_response, "flip", flip)
        column = tuple(privatize(labels, epsilon, classes=classes).tolist())
        [p] = asked
        chances[column] += math.prod(p if lie else 1 - p for lie in flips)
    return chances


@pytest.mark.claim("label_privacy.privatize", kind="enumeration")
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_over_all_coins_a_private_column_costs_epsilon_a_label(monkeypatch, epsilon, classes):
    columns = list(itertools.product(classes, repeat=3))
    drawn = [drawn_columns(monkeypatch, list(labels), epsilon, classes) for labels in columns]
    assert all(chances.keys() == set(columns) for chances in drawn)
    table = np.array([[float(chances[column]) for column in columns] for chances in drawn])
    np.testing.assert_allclose(table, product_distribution(3, epsilon), rtol=1e-12)
    found = exact_epsilon(table, neighbours=one_label_changed(3))
    assert found == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("classes", CLASSES)
def test_a_column_of_any_two_classes_is_drawn_as_one_of_minus_and_plus_one(classes):
    signs = np.where(np.arange(500) % 3 == 0, 1, -1)
    labels = [classes[int(sign > 0)] for sign in signs]
    expected = privatize(signs, 1.0, rng=14) > 0
    reports = privatize(labels, 1.0, classes=classes, rng=14)
    assert reports.tolist() == [classes[int(second)] for second in expected]
    assert reports.dtype == np.asarray(classes).dtype
    again = exponential(labels, 2.0, classes=classes, rng=14)
    assert again.tolist() == reports.tolist()
    in_two_steps = exponential(labels, 2.0, method="two-step", classes=classes, rng=14)
    assert set(in_two_steps.tolist()) == set(classes)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([0, 1, 1], dtype=np.int8), (0.0, 1.0)),
        (np.array([-1, 1, 1], dtype=">f4"), (-1, 1)),
        (np.array([0, 2**60, 0], dtype=np.uint64), (0, 2**60)),
        (np.array([True, False]), (False, True)),
        (pd.Series([0, 1, 1], dtype=np.int16), (0, 1)),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-3, 500.0])
def test_an_array_of_numbers_keeps_its_type_and_its_labels(labels, classes, epsilon):
    reports = privatize(labels, epsilon, classes=classes, rng=15)
    assert reports.dtype == np.asarray(labels).dtype.newbyteorder("=")
    assert set(reports.tolist()) <= set(classes)
    if epsilon == 500:
        assert np.array_equal(reports, labels)


def test_words_and_mixed_lists_get_the_type_of_the_classes_whatever_the_records():
    for labels in ([1, -1], [1.0, -1], [1, np.int8(-1)], np.array([1, -1.0], dtype=object)):
        assert privatize(labels, 1.0, rng=0).dtype == np.int64
    for labels in (["a", "a"], ["a", "bcd"], np.array(["a", "a"]), pd.Series(["a", "bcd"])):
        assert privatize(labels, 1.0, classes=("a", "bcd"), rng=0).dtype == np.dtype("<U3")


INVALID = [[0, 1], ["1", "-1"], [None, 1], [math.nan, 1], [[1], 1], [1 + 1j, 1], [1, -1, True]]


@pytest.mark.parametrize("function", [privatize, exponential])
def test_all_invalid_labels_of_a_list_get_one_and_the_same_hint(function):
    said = set()
    for labels in INVALID:
        with pytest.raises(ValueError, match="labels must each be -1 or 1") as refusal:
            function(labels, 1.0)
        said.add(str(refusal.value))
    assert len(said) == 1
    assert "classes=(0, 1)" in min(said)


@pytest.mark.parametrize(
    "labels",
    [np.array([True, False]), np.uint8([1, 1]), np.array(["1", "-1"])],
)
def test_an_array_that_could_not_hold_the_classes_is_refused_by_its_type(labels):
    with pytest.raises(TypeError, match=r"labels must each be -1 or 1.* got dtype"):
        privatize(labels, 1.0)


@pytest.mark.parametrize("classes", [(2**53 + 1, 0.5), ("well", "well\0"), (2**64 - 1, -1)])
def test_classes_that_one_array_would_round_or_cut_are_refused(classes):
    with pytest.raises(ValueError, match=r"classes must be two .*labels"):
        privatize([classes[0]], 1.0, classes=classes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_estimates_are_unbiased_with_exactly_the_stated_variance(epsilon):
    truth = ["ill", "well", "well"]
    keep = label_privacy.output_distribution(epsilon)
    mean, square = np.zeros(2), np.zeros(2)
    for reports in itertools.product(["well", "ill"], repeat=3):
        same = sum(map(str.__eq__, truth, reports))
        chance = keep[0, 0] ** same * keep[0, 1] ** (3 - same)
        found = label_privacy.estimate(reports, epsilon, classes=("well", "ill"))
        mean += chance * found
        square += chance * found**2
    np.testing.assert_allclose(mean, [2, 1], rtol=1e-10)
    np.testing.assert_allclose(square - mean**2, label_privacy.variance([2, 1], epsilon), rtol=1e-9)


def test_a_stated_epsilon_that_keeps_no_label_is_refused_by_its_name():
    with pytest.raises(ValueError, match="stated_epsilon must be large enough"):
        exponential([1, -1], 1e-17, method="two-step")


# Both ways of drawing labels.


class EveryOrder:
    """A generator that has one order for every permutation asked of it."""

    def __init__(self, order):
        self.order = np.array(order)

    def permutation(self, size):
        assert size == self.order.size
        return self.order


def realised_two_step(monkeypatch, labels, epsilon):
    """Return the exact distribution over all coins of the tree and all orders of the labels."""
    for module in (label_privacy, exponential_mechanism):
        monkeypatch.setattr(module, "check_rng", lambda rng: rng)
    orders = list(itertools.permutations(range(len(labels))))
    total = Counter()
    for order in orders:

        def draw(order=order):
            return tuple(
                exponential(labels, epsilon, method="two-step", rng=EveryOrder(order)).tolist()
            )

        total.update(realised_distribution(monkeypatch, draw))
    monkeypatch.undo()
    return {reports: float(weight / len(orders)) for reports, weight in total.items()}


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 8.0])
def test_over_all_draws_the_two_steps_are_randomized_response(monkeypatch, n, epsilon):
    labels = [(-1) ** (i // 2) for i in range(n)]
    distribution = realised_two_step(monkeypatch, labels, epsilon)
    keep = randomized_response.keep_probability(epsilon / 2)
    lie = lie_probability(epsilon / 2)
    assert len(distribution) == 2**n
    for reports, probability in distribution.items():
        kept = sum(a == b for a, b in zip(reports, labels, strict=True))
        assert probability == pytest.approx(keep**kept * lie ** (n - kept), rel=1e-13)


@pytest.mark.claim("label_privacy.exponential", kind="enumeration")
def test_over_all_draws_the_two_steps_cost_half_of_epsilon(monkeypatch):
    inputs = list(itertools.product([-1, 1], repeat=3))
    distributions = [realised_two_step(monkeypatch, labels, 1.0) for labels in inputs]
    table = [[distribution[reports] for reports in inputs] for distribution in distributions]
    found = exact_epsilon(table, neighbours=one_label_changed(3))
    assert found == pytest.approx(0.5, rel=1e-12)


@pytest.mark.claim(
    "label_privacy.exponential", "label_privacy.privatize", kind="all cases in exact numbers"
)
@pytest.mark.parametrize("draw", [exponential, privatize])
@pytest.mark.parametrize("lies", [1, 96, 127])
def test_over_all_pairs_of_bytes_two_labels_are_flipped_independently(monkeypatch, lies, draw):
    monkeypatch.setattr(randomized_response, "check_rng", lambda rng: rng)
    monkeypatch.setattr(_coins, "draw_bytes", lambda size, rng: rng)
    monkeypatch.setattr(_coins, "_PART", 2 * 65_536)
    monkeypatch.setattr(randomized_response, "lie_probability", lambda *_: lies / 256)
    bytes_of_pairs = np.indices((256, 256), dtype=np.uint8).reshape(2, -1).T.ravel()
    labels = np.tile([1, -1], 65_536)
    flipped = draw(labels, 1.0, rng=bytes_of_pairs) != labels
    patterns = np.bincount(flipped.reshape(-1, 2) @ [2, 1], minlength=4)
    truths = 256 - lies
    assert patterns.tolist() == [truths**2, truths * lies, lies * truths, lies**2]


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e3])
def test_the_coin_of_a_label_is_that_of_randomized_response_at_half_of_epsilon(
    monkeypatch, epsilon
):
    asked = []
    monkeypatch.setattr(
        randomized_response,
        "flip",
        lambda size, p, rng: asked.append(p) or np.zeros(size, dtype=bool),
    )
    assert exponential([1, -1], epsilon).tolist() == [1, -1]
    assert asked == [lie_probability(epsilon / 2)]


@pytest.mark.parametrize("method", METHODS)
def test_either_method_keeps_the_right_number_and_any_labels(method):
    runs, rng, p = 2000, np.random.default_rng(8), special.expit(0.25)
    truth = np.where(np.arange(50) % 3 == 0, 1, -1)
    kept = np.array([exponential(truth, 0.5, method=method, rng=rng) == truth for _ in range(runs)])
    assert is_distributed_as(kept.sum(axis=1), np.exp(log_score_pmf(50, 0.5)))
    places = (kept.sum(axis=0) - runs * p) ** 2 / (runs * p * (1 - p))
    assert stats.chi2(50).sf(places.sum()) > 1e-6
    pairs = np.bincount(kept.reshape(-1, 2) @ [2, 1], minlength=4)
    assert counts_fit(pairs, [(1 - p) ** 2, p * (1 - p), p * (1 - p), p**2])


@pytest.mark.parametrize("method", METHODS)
def test_a_very_large_epsilon_keeps_every_label(method):
    labels = np.where(np.arange(10_000) % 2 == 0, 1, -1)
    assert np.array_equal(exponential(labels, 1e3, method=method, rng=13), labels)


# Budget guidance.


def exact_sum(n, low, high, p):
    p = Fraction(p)
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(low, high + 1))


@given(
    bounds=st.integers(1, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    ),
    p=st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-20, 1e-9, 0.5, 1 - 2.0**-53])),
)
@example(bounds=(60, 58, 60), p=0.1)
@example(bounds=(1, 0, 0), p=1e-20)
@settings(max_examples=100)
def test_the_truncated_binomial_is_its_sum_far_into_the_tails(bounds, p):
    n, low, high = bounds[0], *sorted(bounds[1:])
    exact = float(exact_sum(n, low, high, p))
    assert truncated_binomial(n, low, high, p) == pytest.approx(exact, rel=1e-11, abs=1e-300)


def chance_of(n, count, p):
    """Return the probability of a single count, with 50 digits in the logarithms."""
    with mpmath.workdps(50):
        p = mpmath.mpf(p)
        log_ways = mpmath.loggamma(n + 1)
        log_ways -= mpmath.loggamma(count + 1) + mpmath.loggamma(n - count + 1)
        return mpmath.exp(log_ways + count * mpmath.log(p) + (n - count) * mpmath.log1p(-p))


def standard_deviations_out(n, p, z):
    return round(n * p + z * math.sqrt(n * p * (1 - p)))


def stated_error(n):
    return 1e-11 if n <= 10**6 else 1e-9 if n <= 10**9 else 1e-6


def sum_of_ratios(n, low, high, p):
    """Return the sum of the probabilities from low to high, each from the one before it."""
    with mpmath.workdps(40):
        odds = mpmath.mpf(p) / (1 - mpmath.mpf(p))
        term = total = chance_of(n, low, p)
        for count in range(low, high):
            term *= odds * (n - count) / (count + 1)
            total += term
        return float(total)


@pytest.mark.parametrize("n", [10**4, 10**9, 2**53])
@pytest.mark.parametrize("p", [0.01, 0.5])
def test_narrow_ranges_have_the_stated_digits(n, p):
    for z, before, after in ((-9, 0, 500), (0, 1, 0), (20, 0, 500)):
        count = standard_deviations_out(n, p, z)
        exact = sum_of_ratios(n, count - before, count + after, p)
        found = truncated_binomial(n, count - before, count + after, p)
        assert found == pytest.approx(exact, rel=stated_error(n), abs=0)


def beta_tail(n, count, p):
    """Return Pr[Bin(n, p) >= count] above the mean as an integral, which knows of no sum."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    with mpmath.workdps(50):
        a, b, p = mpmath.mpf(count), mpmath.mpf(n - count + 1), mpmath.mpf(p)
        log_norm = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)

        def log_density(x):
            return (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log1p(-x)

        rate = (a - 1) / p - (b - 1) / (1 - p)
        half = min(90 / rate, 14 * mpmath.sqrt(a * b / (a + b) ** 3)) / 200
        total = mpmath.fsum(
            float(weight)
            * mpmath.exp(log_density(p - (2 * j + 1 + float(x)) * half) - log_density(p))
            for j in range(100)
            for x, weight in zip(nodes, weights, strict=True)
        )
        return float(total * half * mpmath.exp(log_norm + log_density(p)))


@pytest.mark.parametrize("n", [10**6, 10**12, 2**53])
@pytest.mark.parametrize(("p", "z"), [(0.001, 5), (0.5, 0.5), (0.5, 30)])
def test_tails_and_wide_ranges_have_the_stated_digits(n, p, z):
    low, beyond = (standard_deviations_out(n, p, z + more) for more in (0, 0.2))
    tail = beta_tail(n, low, p)
    inside = tail - beta_tail(n, beyond + 1, p)
    stated = {"rel": stated_error(n), "abs": 0}
    assert truncated_binomial(n, low, n, p) == pytest.approx(tail, **stated)
    assert truncated_binomial(n, 0, low - 1, p) == pytest.approx(1 - tail, **stated)
    assert truncated_binomial(n, low, beyond, p) == pytest.approx(inside, **stated)
    mirrored = truncated_binomial(n, n - beyond, n - low, 1 - p)
    assert mirrored == pytest.approx(inside, **stated)


@pytest.mark.parametrize("n", [10**12 + 1, 2**53 - 1])
def test_the_halves_of_an_odd_number_of_labels_have_the_stated_digits(n):
    # Boost's incomplete beta function, which scipy calls, is off by up to one half of them here.
    for z in (0.3, 1, 2.5):
        p = special.expit(-2 * z / math.sqrt(n))
        upper = beta_tail(n, n // 2 + 1, p)
        stated = {"rel": stated_error(n), "abs": 0}
        assert truncated_binomial(n, n // 2 + 1, n, p) == pytest.approx(upper, **stated)
        assert truncated_binomial(n, 0, n // 2, p) == pytest.approx(1 - upper, **stated)


@pytest.mark.parametrize("p", [5e-324, 0.3, 1 - 2.0**-53])
@pytest.mark.parametrize("n", [1, 2**53])
def test_every_range_has_a_probability(n, p):
    assert truncated_binomial(n, 0, n, p) == 1
    for low, high in ((0, 0), (n // 2, n), (1, 1), (n, n), (0, n - 1)):
        assert 0 <= truncated_binomial(n, low, high, p) <= 1


GRID = [0.01, 0.05, 0.1, 0.2, 0.5, 1, 2]
SUCCESS = {
    10: [".6261", ".6383", ".6534", ".6828", ".7637", ".8688", ".9718"],
    100: [".5497", ".5891", ".6370", ".7261", ".9117", ".9953", "1.0000"],
    1000: [".5441", ".6653", ".7946", ".9466", ".99997", "1.0000", "1.0000"],
    10_000: [".6026", ".8962", ".9940", "1.0000", "1.0000", "1.0000", "1.0000"],
}


@pytest.mark.parametrize("n", SUCCESS)
def test_the_table_of_success_is_right_in_every_digit(n):
    for epsilon, digits in zip(GRID, SUCCESS[n], strict=True):
        places = len(digits.partition(".")[2])
        found = f"{success_probability(n, epsilon):.{places}f}"
        assert float(found) == float(digits)


@pytest.mark.parametrize("n", [10**5, 10**6 + 1])
@pytest.mark.parametrize("epsilon", [1e-6, 5e-3])
def test_success_is_the_upper_half_of_the_score_distribution(n, epsilon):
    upper = np.exp(log_score_pmf(n, epsilon)[(n + 1) // 2 :]).sum()
    assert success_probability(n, epsilon) == pytest.approx(upper, rel=1e-10)


def test_success_is_not_monotone_in_n_because_a_tie_counts():
    found = [success_probability(n, 0.1) for n in range(1, 100)]
    # From odd n to even n the tie is gained, from even to odd it is lost.
    assert np.all(np.diff(found)[::2] > 0)
    assert np.all(np.diff(found)[1::2] < 0)
    assert np.all(np.diff(found[::2]) > 0)


@pytest.mark.parametrize("epsilon", [5e-324, 1e308])
@pytest.mark.parametrize("n", [1, 2, 2**53])
def test_success_has_a_value_at_every_epsilon(n, epsilon):
    expected = 1.0 if epsilon > 1 else 0.5 + (n == 2) / 4
    assert success_probability(n, epsilon) == pytest.approx(expected, abs=1e-7)


GUIDANCE = {
    100: {"exact": 0.891838, "chernoff": 1.223280, "hoeffding": 1.253417, "normal": 0.930539},
    1000: {"exact": 0.290316, "chernoff": 0.384177, "hoeffding": 0.385067, "normal": 0.294262},
    10_000: {"exact": 0.092656, "chernoff": 0.121403, "hoeffding": 0.121431, "normal": 0.093054},
}
MORE_THAN_HALF = {100: 0.973008, 1000: 0.298327, 10_000: 0.093456}


@pytest.mark.parametrize("n", GUIDANCE)
@pytest.mark.parametrize("bound", ["exact", "chernoff", "hoeffding", "normal"])
def test_the_table_of_the_smallest_epsilon_is_right_in_every_digit(n, bound):
    assert round(minimum_epsilon(n, 0.01, bound=bound), 6) == GUIDANCE[n][bound]


@pytest.mark.parametrize("n", MORE_THAN_HALF)
def test_chernoff_and_hoeffding_bound_the_stricter_event(n):
    def short_of_it(epsilon):
        return truncated_binomial(n, n // 2 + 1, n, special.expit(epsilon / 2)) - 0.99

    strict = optimize.brentq(short_of_it, 1e-3, 5)
    assert round(strict, 6) == MORE_THAN_HALF[n]
    values = [minimum_epsilon(n, 0.01), strict, *map(GUIDANCE[n].get, ["chernoff", "hoeffding"])]
    assert values == sorted(values)


@given(n=st.integers(1, 10**7), failure=st.floats(1e-12, 0.45))
@example(n=2, failure=0.2)
@settings(max_examples=50)
def test_the_smallest_epsilon_has_exactly_the_failure_asked_for(n, failure):
    epsilon = minimum_epsilon(n, failure)
    if epsilon:
        fails = 1 - success_probability(n, epsilon)
        assert fails == pytest.approx(failure, rel=1e-6, abs=1e-14)
    else:
        assert stats.binom.cdf((n + 1) // 2 - 1, n, 0.5) <= failure * (1 + 1e-9)


@given(n=st.integers(1, 2000), failure=st.floats(1e-280, 1e-3))
@settings(max_examples=50)
def test_rare_failures_are_inverted_as_well(n, failure):
    epsilon = minimum_epsilon(n, failure)
    fails = truncated_binomial(n, n // 2 + 1, n, special.expit(-epsilon / 2))
    assert fails == pytest.approx(failure, rel=1e-6, abs=0)


@pytest.mark.claim("dlp-bounds", kind="chosen cases")
@given(n=st.integers(1, 10**15), failure=st.floats(1e-300, 0.999))
@example(n=4037, failure=0.5)
@example(n=4037, failure=0.5 - 1e-9)
@settings(max_examples=50)
def test_sufficient_bounds_suffice(n, failure):
    exact = minimum_epsilon(n, failure)
    chernoff = minimum_epsilon(n, failure, bound="chernoff")
    assert exact <= chernoff * (1 + 1e-12)
    if n > 2.001 * math.log(1 / failure):
        assert chernoff <= minimum_epsilon(n, failure, bound="hoeffding") * (1 + 1e-12)


@pytest.mark.parametrize("n", [10**12, 10**12 + 1, 10**15 - 1])
@pytest.mark.parametrize("failure", [1e-9, 0.3])
def test_the_smallest_epsilon_for_very_many_labels_is_the_normal_one(n, failure):
    # z standard deviations, less the half of a tie that an even number is given.
    ahead = -special.ndtri(failure) * math.sqrt(n) / 2 - (0 if n % 2 else 0.5)
    expected = 4 * math.atanh(2 * ahead / n)
    tolerance = 1e-7 if n > 10**14 else 2e-8
    assert minimum_epsilon(n, failure) == pytest.approx(expected, rel=tolerance, abs=0)


def test_a_fair_coin_may_be_enough():
    assert minimum_epsilon(10, 0.5) == 0
    assert minimum_epsilon(11, 0.51) == 0
    assert minimum_epsilon(10**15, 0.6) == 0
    assert minimum_epsilon(10, 0.7, bound="normal") == 0
    assert minimum_epsilon(10, stats.binom.cdf(4, 10, 0.5) - 1e-6) > 0
    # Exactly half, however its sum is rounded.
    assert not any(minimum_epsilon(n, 0.5) for n in [*range(1, 200, 2), 10**6 + 1, 10**15 - 1])


@pytest.mark.parametrize("bound", ["exact", "chernoff"])
def test_a_single_label_and_the_rarest_failure_have_a_finite_answer(bound):
    log_odds = 200 * math.log(10)
    expected = {"exact": 2 * log_odds, "chernoff": 4 * (log_odds + math.log(2))}[bound]
    assert minimum_epsilon(1, 1e-200, bound=bound) == pytest.approx(expected, rel=1e-12)
    assert minimum_epsilon(1, 5e-324, bound=bound) < 3000


@pytest.mark.claim("dlp-bounds", kind="chosen cases")
@given(n=st.integers(1, 10**15), failure=st.floats(1e-300, 0.99))
def test_the_bounds_are_their_formulas(n, failure):
    with localcontext(Context(prec=60)):
        excess = -Decimal(failure).ln() / n
        x = excess.exp()
        chernoff = float(4 * (x + (x * x - 1).sqrt()).ln())
    assert minimum_epsilon(n, failure, bound="chernoff") == pytest.approx(
        chernoff, rel=1e-12, abs=0
    )
    normal = max(0.0, 4 * stats.norm.isf(failure) / math.sqrt(n))
    assert minimum_epsilon(n, failure, bound="normal") == pytest.approx(normal, rel=1e-12, abs=0)
    if excess < 0.4:
        hoeffding = math.exp(
            -n / 2 * math.tanh(minimum_epsilon(n, failure, bound="hoeffding") / 4) ** 2
        )
        assert math.log(hoeffding) == pytest.approx(math.log(failure), rel=1e-9)


def test_hoeffdings_bound_says_how_many_labels_it_needs():
    with pytest.raises(ValueError, match=r"n must be above 2 ln\(1 / failure\) .* got 9"):
        minimum_epsilon(9, 0.01, bound="hoeffding")
    assert minimum_epsilon(10, 0.01, bound="hoeffding") > 0


def test_records_that_are_arrays_of_different_shapes_are_refused_by_name():
    with pytest.raises(ValueError, match="labels must be one-dimensional"):
        label_privacy.privatize([np.zeros((2, 3)), np.zeros((2, 2))], 1.0)
