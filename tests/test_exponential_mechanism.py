import functools
import itertools
import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from dpnotes import _coins, exponential_mechanism, randomized_response
from dpnotes._coins import lie_probability
from dpnotes.audit import exact_epsilon
from dpnotes.exponential_mechanism import (
    log_score_pmf,
    minimum_epsilon,
    output_distribution,
    privatize_labels,
    sample,
    success_probability,
    truncated_binomial,
)

METHODS = ["independent", "two-step"]
EPSILONS = [1e-9, 0.1, 1.0, 2 * math.log(3), 8.0]


# The mechanism: what is promised.


def softmax(utilities, epsilon, sensitivity=1.0):
    """Return the law as its definition has it, with no regard to overflow."""
    weights = np.exp(epsilon * np.asarray(utilities) / (2 * sensitivity))
    return weights / weights.sum(axis=-1, keepdims=True)


def decimal_law(utilities, epsilon, sensitivity=1.0):
    """Return the law in 60 digits."""
    with localcontext(Context(prec=60)):
        rate = Decimal(epsilon) / (2 * Decimal(sensitivity))
        weights = [(Decimal(u) * rate).exp() for u in utilities]
        return [float(weight / sum(weights)) for weight in weights]


utility_lists = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9)


@given(utilities=utility_lists, epsilon=st.floats(1e-9, 1e3), sensitivity=st.floats(0.5, 1e6))
@example(utilities=[3.0], epsilon=1.0, sensitivity=1.0)
@example(utilities=[2.0, 2.0, 2.0], epsilon=1e3, sensitivity=1.0)
def test_the_law_is_the_exponential_of_the_utility(utilities, epsilon, sensitivity):
    law = output_distribution(utilities, epsilon, sensitivity=sensitivity)
    assert law.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(
        law, decimal_law(utilities, epsilon, sensitivity), rtol=1e-9, atol=1e-303
    )


def test_every_row_of_a_table_has_its_own_law():
    table = np.random.default_rng(1).normal(size=(4, 6))
    laws = output_distribution(table, 1.5)
    assert laws.shape == (4, 6)
    for utilities, law in zip(table, laws, strict=True):
        np.testing.assert_array_equal(law, output_distribution(utilities, 1.5))


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


def test_the_whole_range_of_integers_is_no_wrap_around():
    law = output_distribution(np.array([-(2**63), 2**63 - 1]), 1.0)
    np.testing.assert_array_equal(law, output_distribution([0.0, 2.0**64], 1.0))


@given(utilities=utility_lists, power=st.integers(-20, 20))
def test_only_the_ratio_of_utility_to_sensitivity_counts(utilities, power):
    scale = 2.0**power
    scaled = output_distribution(np.multiply(utilities, scale), 1.0, sensitivity=scale)
    np.testing.assert_allclose(scaled, output_distribution(utilities, 1.0), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e3, 1.7e308])
def test_the_largest_utilities_neither_overflow_nor_drown(epsilon):
    law = output_distribution([1e308, -1e308, 1e308], epsilon)
    np.testing.assert_allclose(law, [0.5, 0, 0.5], atol=1e-300)
    assert law.min() > 0
    # A gap of 2e308 is no double; two sensitivities are an ordinary distance.
    law = output_distribution([1e308, -1e308], 1.0, sensitivity=1e308)
    np.testing.assert_allclose(law, [1 / (1 + math.exp(-1)), 1 / (1 + math.e)], rtol=1e-14)


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
    law = output_distribution(table, epsilon)
    chain = [(i, i + 1) for i in range(len(steps))]
    assert exact_epsilon(law, neighbours=chain) <= epsilon + 1e-12


def test_rounding_costs_no_more_than_1e_12():
    for gap in range(10, 1400, 7):
        start = np.append(-float(gap), np.zeros(64))
        law = output_distribution(np.vstack([start, np.append(1.0 - gap, -np.ones(64))]), 0.7346)
        assert exact_epsilon(law) <= 0.7346 + 1e-12


def worst_table(candidates):
    """Return two rows one sensitivity apart that come close to costing all of epsilon."""
    low = np.ones(candidates)
    low[0] = 0
    return np.vstack([low, 1 - low])


def test_the_worst_table_costs_nearly_epsilon_and_twice_as_much_without_the_half():
    law = output_distribution(worst_table(10**6), 1.0)
    assert 0.99999 < exact_epsilon(law) <= 1.0
    dropped = softmax(worst_table(10**6), 2.0)
    assert 1.9999 < exact_epsilon(dropped) <= 2.0


def test_two_candidates_cost_half_of_epsilon():
    assert exact_epsilon(output_distribution([[0, 1], [1, 0]], 3.0)) == pytest.approx(1.5)


def test_a_candidate_that_underflow_would_lose_still_costs_no_more_than_epsilon():
    table = np.array([[0.0, -1490.0], [0.0, -1491.0]])
    assert exact_epsilon(softmax(table, 1.0)) == math.inf
    assert exact_epsilon(output_distribution(table, 1.0)) <= 1.0


# The mechanism: what is drawn.


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


@pytest.mark.parametrize("candidates", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 100.0, 1e3])
def test_over_all_coins_a_draw_has_exactly_its_law(monkeypatch, candidates, epsilon):
    utilities = np.random.default_rng(candidates).normal(size=candidates)
    law = realised_law(monkeypatch, lambda: sample(utilities, epsilon))
    assert sum(law.values()) == 1
    expected = output_distribution(utilities, epsilon)
    found = [float(law[i]) for i in range(candidates)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("utilities", "sensitivity"),
    [([5, 5, 5, 5, 5], 1.0), ([1e308, -1e308, 0], 1e308), ([0, 1000, 0, 1000, 0, 0], 250.0)],
)
def test_ties_and_extremes_have_exactly_their_law(monkeypatch, utilities, sensitivity):
    law = realised_law(monkeypatch, lambda: sample(utilities, 2.0, sensitivity=sensitivity))
    found = [float(law[i]) for i in range(len(utilities))]
    expected = output_distribution(utilities, 2.0, sensitivity=sensitivity)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_exact_check_catches_a_tree_with_its_sides_exchanged(monkeypatch):
    real = exponential_mechanism._draw
    monkeypatch.setattr(
        exponential_mechanism, "_draw", lambda weights, *rest: real(weights[::-1], *rest)
    )
    law = realised_law(monkeypatch, lambda: sample([0, 1, 2], 1.0))
    assert float(law[0]) != pytest.approx(output_distribution([0, 1, 2], 1.0)[0], rel=1e-3)


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


@pytest.mark.parametrize("candidates", [2, 3, 7, 100])
@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 4.0])
def test_real_draws_follow_the_law(candidates, epsilon):
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
    law = output_distribution([0, 1, 1, 0], 1.0)
    np.testing.assert_array_equal(output_distribution(utilities, 1.0), law)
    np.testing.assert_array_equal(output_distribution(pd.Series(utilities), 1.0), law)


# The score.


@pytest.fixture(scope="module")
def log_factorials():
    """Return ln(k!) for k up to 2,000, in 300 digits."""
    with localcontext(Context(prec=300)):
        logs = {1: Decimal(0)}
        for k in range(2, 2001):
            divisor = next((d for d in range(2, math.isqrt(k) + 1) if k % d == 0), None)
            logs[k] = logs[divisor] + logs[k // divisor] if divisor else Decimal(k).ln()
        return list(itertools.accumulate(logs.values(), initial=Decimal(0)))


def closed_form(n, epsilon, log_factorials):
    """Return ln of binomial(n, i) e^(i epsilon / 2) / (1 + e^(epsilon / 2))^n, in 300 digits."""
    with localcontext(Context(prec=300)):
        half = Decimal(epsilon) / 2
        norm = n * (1 + half.exp()).ln()
        logs = [
            log_factorials[n] - log_factorials[i] - log_factorials[n - i] + i * half - norm
            for i in range(n + 1)
        ]
        return np.array([float(log) for log in logs])


@pytest.mark.parametrize("n", [1, 2, 7, 100, 999, 2000])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 2 * math.log(3), 20.0, 1e3])
def test_the_log_of_the_score_law_has_ten_digits(log_factorials, n, epsilon):
    found = log_score_pmf(n, epsilon)
    assert found.shape == (n + 1,)
    np.testing.assert_allclose(found, closed_form(n, epsilon, log_factorials), rtol=1e-10, atol=0)


def test_ten_digits_are_more_than_the_first_term_outwards_can_give(log_factorials):
    n, half = 2000, 500.0
    start = -n * math.log1p(math.exp(half))
    i = np.arange(1, n + 1)
    naive = start + np.append(0, np.cumsum(np.log((n - i + 1) / i) + half))
    exact = closed_form(n, 2 * half, log_factorials)
    assert not np.allclose(naive, exact, rtol=1e-10, atol=0)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**7])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_score_law_is_scipys_binomial(n, epsilon):
    p = special.expit(epsilon / 2)
    middle, spread = n * p, math.sqrt(n * p * (1 - p))
    scores = np.unique(np.clip(middle + spread * np.linspace(-35, 35, 501), 0, n).astype(int))
    # scipy's own logpmf is only good to some 5e-9 here; the log of its pmf is better.
    pmf = stats.binom.pmf(scores, n, p)
    held = pmf > 1e-300
    found = log_score_pmf(n, epsilon)[scores]
    np.testing.assert_allclose(found[held], np.log(pmf[held]), rtol=1e-10)
    assert np.all(found[~held] < math.log(1.1e-300))


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1e3])
def test_the_scores_have_probability_one_together(n, epsilon):
    assert special.logsumexp(log_score_pmf(n, epsilon)) == pytest.approx(0, abs=1e-11)


def test_an_epsilon_past_the_reach_of_doubles_keeps_every_label():
    found = log_score_pmf(10, 1e308)
    assert found[-1] == 0
    assert np.all(found[:-1] < -1e307)


def recursion(n, epsilon, *, first=2.0, step=2.0):
    """Return the source's recursion in log space; a mistaken copy divides by 1 and not by 2."""
    logs = [-n * math.log1p(math.exp(epsilon / first))]
    for i in range(1, n + 1):
        logs.append(logs[-1] + math.log(n - i + 1) - math.log(i) + epsilon / step)
    return np.array(logs)


def test_the_corrected_recursion_gives_the_score_law():
    np.testing.assert_allclose(recursion(100, 0.5), log_score_pmf(100, 0.5), rtol=1e-11)


@pytest.mark.parametrize(("n", "epsilon", "mass"), [(10, 1.0, 29.7208), (100, 0.5, 2.7135e6)])
def test_dropping_the_half_from_the_step_loses_normalisation(n, epsilon, mass):
    total = np.exp(special.logsumexp(recursion(n, epsilon, step=1.0)))
    assert float(f"{total:.6g}") == pytest.approx(mass, rel=2e-5)
    assert total == pytest.approx(((1 + math.exp(epsilon)) / (1 + math.exp(epsilon / 2))) ** n)
    start = np.exp(special.logsumexp(recursion(n, epsilon, first=1.0)))
    assert start == pytest.approx(1 / total)


@pytest.mark.parametrize("dropped", [{"step": 1.0}, {"first": 1.0, "step": 1.0}])
def test_dropping_the_half_gives_randomized_response_at_all_of_epsilon(dropped):
    n, epsilon = 40, 1.0
    logs = recursion(n, epsilon, **dropped)
    logs -= special.logsumexp(logs)
    assert not np.allclose(logs, log_score_pmf(n, epsilon), rtol=1e-3)
    np.testing.assert_allclose(logs, log_score_pmf(n, 2 * epsilon), rtol=1e-11)


def test_dropping_the_half_in_both_places_is_normalised_all_the_same():
    assert special.logsumexp(recursion(40, 1.0, first=1.0, step=1.0)) == pytest.approx(0, abs=1e-11)


# Labels are randomized response.


@functools.cache
def scores(n):
    """Return the number of labels that agree, for all pairs of 2^n data sets."""
    numbers = np.arange(2**n)
    return n - np.bitwise_count(numbers[:, None] ^ numbers).astype(int)


def one_label_changed(n):
    return [(i, i ^ 1 << j) for i in range(2**n) for j in range(n) if i < i ^ 1 << j]


def product_law(n, epsilon):
    """Return the law of n reports of randomized response."""
    return functools.reduce(np.kron, [randomized_response.output_distribution(epsilon)] * n)


def two_step_law(log_pmf):
    """Return the law of a uniform subset whose size is drawn first."""
    n = log_pmf.size - 1
    subsets = special.comb(n, np.arange(n + 1))
    return (np.exp(log_pmf) / subsets)[scores(n)]


@pytest.mark.parametrize("n", range(1, 11))
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_labels_under_the_exponential_mechanism_are_randomized_response(n, epsilon):
    by_definition = softmax(scores(n), epsilon)
    np.testing.assert_allclose(by_definition, product_law(n, epsilon / 2), rtol=1e-12)
    np.testing.assert_allclose(
        output_distribution(scores(n), epsilon), product_law(n, epsilon / 2), rtol=1e-12
    )
    np.testing.assert_allclose(
        two_step_law(log_score_pmf(n, epsilon)), product_law(n, epsilon / 2), rtol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1.0, 3.0, 20.0])
def test_labels_cost_half_of_epsilon_and_no_more(n, epsilon):
    neighbours = one_label_changed(n)
    for law in (softmax(scores(n), epsilon), two_step_law(log_score_pmf(n, epsilon))):
        assert exact_epsilon(law, neighbours=neighbours) == pytest.approx(epsilon / 2, rel=1e-10)


def score_one_too_many(n, epsilon):
    """Return the law of a broken copy that keeps one label more than it drew, if it can."""
    pmf = np.exp(log_score_pmf(n, epsilon))
    return two_step_law(np.log([1e-300, *pmf[:-2], pmf[-2:].sum()]))


def first_labels_kept(n, epsilon):
    """Return the law of a broken copy that keeps the first labels, and not any."""
    law = np.zeros((2**n, 2**n))
    pmf = np.exp(log_score_pmf(n, epsilon))
    for truth, kept in itertools.product(range(2**n), range(n + 1)):
        law[truth, truth ^ (2**n - 2**kept)] = pmf[kept]
    return law


def half_forgotten(n, epsilon):
    return softmax(scores(n), 2 * epsilon)


@pytest.mark.parametrize("broken", [half_forgotten, score_one_too_many, first_labels_kept])
def test_the_audit_catches_a_broken_mechanism_on_labels(broken):
    law = broken(5, 1.0)
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
    assert exact_epsilon(law, neighbours=one_label_changed(5)) > 0.5 + 0.1


# Both ways of drawing labels.


class EveryOrder:
    """A generator that has one order for every permutation asked of it."""

    def __init__(self, order):
        self.order = np.array(order)

    def permutation(self, size):
        assert size == self.order.size
        return self.order


def realised_two_step(monkeypatch, labels, epsilon):
    """Return the exact law over all coins of the tree and all orders of the labels."""
    monkeypatch.setattr(np.random, "default_rng", lambda rng: rng)
    orders = list(itertools.permutations(range(len(labels))))
    total = Counter()
    for order in orders:

        def draw(order=order):
            return tuple(
                privatize_labels(labels, epsilon, method="two-step", rng=EveryOrder(order)).tolist()
            )

        total.update(realised_law(monkeypatch, draw))
    monkeypatch.undo()
    return {reports: float(weight / len(orders)) for reports, weight in total.items()}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_over_all_draws_the_two_steps_are_randomized_response(monkeypatch, n, epsilon):
    labels = [(-1) ** (i // 2) for i in range(n)]
    law = realised_two_step(monkeypatch, labels, epsilon)
    keep = randomized_response.keep_probability(epsilon / 2)
    lie = lie_probability(epsilon / 2)
    assert len(law) == 2**n
    for reports, probability in law.items():
        kept = sum(a == b for a, b in zip(reports, labels, strict=True))
        assert probability == pytest.approx(keep**kept * lie ** (n - kept), rel=1e-13)


def test_over_all_draws_the_two_steps_cost_half_of_epsilon(monkeypatch):
    inputs = list(itertools.product([-1, 1], repeat=3))
    laws = [realised_two_step(monkeypatch, labels, 1.0) for labels in inputs]
    table = [[law[reports] for reports in inputs] for law in laws]
    found = exact_epsilon(table, neighbours=one_label_changed(3))
    assert found == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("lies", [1, 96, 127])
def test_over_all_pairs_of_bytes_two_labels_are_flipped_independently(monkeypatch, lies):
    monkeypatch.setattr(np.random, "default_rng", lambda rng: rng)
    monkeypatch.setattr(_coins, "draw_bytes", lambda size, rng: rng)
    monkeypatch.setattr(randomized_response, "lie_probability", lambda *_: lies / 256)
    bytes_of_pairs = np.indices((256, 256), dtype=np.uint8).reshape(2, -1).T.ravel()
    labels = np.tile([1, -1], 65_536)
    flipped = privatize_labels(labels, 1.0, rng=bytes_of_pairs) != labels
    patterns = np.bincount(flipped.reshape(-1, 2) @ [2, 1], minlength=4)
    truths = 256 - lies
    assert patterns.tolist() == [truths**2, truths * lies, lies * truths, lies**2]


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e3])
def test_the_coin_of_a_label_is_that_of_randomized_response_at_half_of_epsilon(
    monkeypatch, epsilon
):
    asked = []
    monkeypatch.setattr(
        randomized_response,
        "flip",
        lambda size, p, rng: asked.append(p) or np.zeros(size, dtype=bool),
    )
    assert privatize_labels([1, -1], epsilon).tolist() == [1, -1]
    assert asked == [lie_probability(epsilon / 2)]


def keeps_the_right_number_and_any(mechanism, epsilon, *, labels=50, runs=4000):
    """Whether the number of kept labels, their places and their pairs follow the product law."""
    truth = np.where(np.arange(labels) % 3 == 0, 1, -1)
    rng = np.random.default_rng(8)
    kept = np.array([mechanism(truth, epsilon, rng) == truth for _ in range(runs)])
    p = special.expit(epsilon / 2)
    number = is_distributed_as(kept.sum(axis=1), np.exp(log_score_pmf(labels, epsilon)))
    places = (kept.sum(axis=0) - runs * p) ** 2 / (runs * p * (1 - p))
    pairs = np.bincount((kept.reshape(-1, 2) @ [2, 1]), minlength=4)
    expected = kept.size / 2 * np.array([(1 - p) ** 2, p * (1 - p), p * (1 - p), p**2])
    return number and stats.chi2(labels).sf(places.sum()) > 1e-6 and is_close(pairs, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_either_method_keeps_the_right_number_and_any_labels(method, epsilon):
    def mechanism(labels, epsilon, rng):
        return privatize_labels(labels, epsilon, method=method, rng=rng)

    assert keeps_the_right_number_and_any(mechanism, epsilon)


def keep_the_first(labels, epsilon, rng):
    score = sample(np.zeros(1), 1.0) + rng.binomial(labels.size, special.expit(epsilon / 2))
    return np.where(np.arange(labels.size) < score, labels, -labels)


def keep_all_of_epsilon(labels, epsilon, rng):
    return privatize_labels(labels, 2 * epsilon, rng=rng)


def keep_one_too_many(labels, epsilon, rng):
    score = 1 + rng.binomial(labels.size, special.expit(epsilon / 2))
    return np.where(rng.permutation(labels.size) < score, labels, -labels)


def keep_a_random_block(labels, epsilon, rng):
    score = rng.binomial(labels.size, special.expit(epsilon / 2))
    return np.where(np.roll(np.arange(labels.size), rng.integers(50)) < score, labels, -labels)


@pytest.mark.parametrize(
    "broken", [keep_the_first, keep_all_of_epsilon, keep_one_too_many, keep_a_random_block]
)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_a_broken_method_does_not(broken, epsilon):
    assert not keeps_the_right_number_and_any(broken, epsilon)


@pytest.mark.parametrize("method", METHODS)
def test_many_labels_are_kept_everywhere_alike(method):
    n, epsilon = 10**6, 0.5
    labels = np.where(np.arange(n) % 7 == 0, 1, -1)
    kept = privatize_labels(labels, epsilon, method=method, rng=9) == labels
    p = special.expit(epsilon / 2)
    blocks = kept.reshape(100, -1).sum(axis=1)
    # Blocks of a fixed number of kept labels would be a little less spread: not visibly so here.
    z = (blocks - 10_000 * p) / math.sqrt(10_000 * p * (1 - p))
    assert 1e-6 < stats.chi2(100).sf((z**2).sum()) < 1 - 1e-6
    assert abs(kept.sum() - n * p) < 5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", ">i2"])
def test_labels_of_any_type_get_the_same_reports(method, dtype):
    labels = np.where(np.arange(1000) % 3 == 0, 1, -1)
    expected = privatize_labels(labels, 1.0, method=method, rng=10)
    reports = privatize_labels(labels.astype(dtype), 1.0, method=method, rng=10)
    assert np.array_equal(reports, expected)
    assert reports.dtype == np.dtype(dtype).newbyteorder("=")
    assert set(reports.tolist()) == {-1, 1}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("container", [list, tuple, pd.Series])
def test_lists_and_series_of_labels_get_the_same_reports_as_arrays(method, container):
    labels = np.array([1, -1, -1] * 20)
    expected = privatize_labels(labels, 1.0, method=method, rng=11)
    given_as = container(labels.tolist())
    assert np.array_equal(privatize_labels(given_as, 1.0, method=method, rng=11), expected)


@pytest.mark.parametrize("method", METHODS)
def test_labels_are_left_untouched_and_the_seed_decides(method):
    labels = np.ones(300, dtype=int)
    first = privatize_labels(labels, 0.1, method=method, rng=12)
    assert np.all(labels == 1)
    rng = np.random.default_rng(12)
    assert np.array_equal(privatize_labels(labels, 0.1, method=method, rng=rng), first)
    assert not np.array_equal(privatize_labels(labels, 0.1, method=method, rng=rng), first)


@pytest.mark.parametrize("method", METHODS)
def test_a_very_large_epsilon_keeps_every_label(method):
    labels = np.where(np.arange(10_000) % 2 == 0, 1, -1)
    assert np.array_equal(privatize_labels(labels, 1e3, method=method, rng=13), labels)


# Budget guidance.


def exact_tail(n, low, high, p):
    p = Fraction(p)
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(low, high + 1))


@given(
    bounds=st.integers(1, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    ),
    p=st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-20, 1e-9, 0.5, 1 - 2.0**-53])),
)
@example(bounds=(60, 58, 60), p=0.1)
@example(bounds=(60, 0, 2), p=0.9)
@example(bounds=(60, 0, 60), p=0.5)
@example(bounds=(1, 0, 0), p=1e-20)
@settings(max_examples=200)
def test_the_truncated_binomial_is_its_sum_far_into_the_tails(bounds, p):
    n, low, high = bounds[0], *sorted(bounds[1:])
    exact = float(exact_tail(n, low, high, p))
    # Between the tails two of them are subtracted, each of at most 1.
    inside = low <= n * p <= high
    found = truncated_binomial(n, low, high, p)
    assert found == pytest.approx(exact, rel=1e-11, abs=1e-15 if inside else 1e-300)


def test_the_whole_binomial_is_certain_and_its_parts_add_up():
    assert truncated_binomial(10**15, 0, 10**15, 0.3) == 1
    parts = [truncated_binomial(1000, low, low + 99, 0.4) for low in range(0, 1000, 100)]
    assert sum(parts) + truncated_binomial(1000, 1000, 1000, 0.4) == pytest.approx(1, abs=1e-13)


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


@given(n=st.integers(1, 120), epsilon=st.floats(1e-3, 30))
@example(n=1, epsilon=1.0)
@example(n=2, epsilon=1e-3)
@settings(max_examples=40)
def test_success_is_the_sum_over_the_upper_half(n, epsilon):
    with localcontext(Context(prec=50)):
        p = Fraction(1 / (1 + (-Decimal(epsilon) / 2).exp()))
    exact = float(exact_tail(n, (n + 1) // 2, n, p))
    assert success_probability(n, epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("n", [10**5, 10**6, 10**6 + 1])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 5e-3])
def test_success_is_the_upper_half_of_the_score_law(n, epsilon):
    upper = np.exp(log_score_pmf(n, epsilon)[(n + 1) // 2 :]).sum()
    assert success_probability(n, epsilon) == pytest.approx(upper, rel=1e-10)


def normal_success(n, epsilon):
    """Return the normal law with a continuity correction and the first term of Edgeworth."""
    p = special.expit(epsilon / 2)
    spread = math.sqrt(n * p * (1 - p))
    # n p - (n + 1) // 2 + 1/2, with no large number in it.
    ahead = n * math.tanh(epsilon / 4) / 2 + (0 if n % 2 else 0.5)
    z = -ahead / spread
    return stats.norm.sf(z) + (1 - 2 * p) / (6 * spread) * (z * z - 1) * stats.norm.pdf(z)


@pytest.mark.parametrize("n", [10**9, 10**9 + 1, 10**12, 10**12 + 1, 10**15 - 1, 10**15])
@pytest.mark.parametrize("z", [0.1, 1.0, 2.5])
def test_success_among_very_many_labels_is_normal(n, z):
    epsilon = 4 * z / math.sqrt(n)
    # At 1e15 the last bit of a probability is 4e-9 standard deviations.
    expected = pytest.approx(normal_success(n, epsilon), abs=1e-8)
    assert success_probability(n, epsilon) == expected


def test_success_is_not_monotone_in_n_because_a_tie_counts():
    found = [success_probability(n, 0.1) for n in range(1, 100)]
    # From odd n to even n the tie is gained, from even to odd it is lost.
    assert np.all(np.diff(found)[::2] > 0)
    assert np.all(np.diff(found)[1::2] < 0)
    assert np.all(np.diff(found[::2]) > 0)


def test_among_even_numbers_success_falls_before_it_rises():
    found = [success_probability(n, 0.1) for n in (2, 10, 100, 1000)]
    assert found[0] > found[1] > found[2] < found[3]


@given(n=st.integers(1, 10**6), epsilon=st.floats(0, 5))
def test_more_epsilon_is_never_less_success(n, epsilon):
    epsilon += 1e-6
    assert success_probability(n, 1.1 * epsilon) >= success_probability(n, epsilon) - 1e-12


@pytest.mark.parametrize("epsilon", [5e-324, 1e-17, 1e308])
@pytest.mark.parametrize("n", [1, 2, 10**15])
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
@example(n=1, failure=1e-12)
@example(n=2, failure=0.2)
def test_the_smallest_epsilon_has_exactly_the_failure_asked_for(n, failure):
    epsilon = minimum_epsilon(n, failure)
    fails = 1 - success_probability(n, epsilon) if epsilon else None
    if fails is None:
        assert stats.binom.cdf((n + 1) // 2 - 1, n, 0.5) <= failure * (1 + 1e-9)
    else:
        assert fails == pytest.approx(failure, rel=1e-6, abs=1e-14)


@given(n=st.integers(1, 2000), failure=st.floats(1e-300, 1e-3))
@settings(max_examples=50)
def test_rare_failures_are_inverted_as_well(n, failure):
    epsilon = minimum_epsilon(n, failure)
    fails = truncated_binomial(n, (n + 1) // 2, n, special.expit(-epsilon / 2))
    if n % 2 == 0:
        fails = truncated_binomial(n, n // 2 + 1, n, special.expit(-epsilon / 2))
    assert fails == pytest.approx(failure, rel=1e-6)


@given(n=st.integers(1, 10**15), failure=st.floats(1e-300, 0.999))
@settings(max_examples=50)
def test_sufficient_bounds_suffice(n, failure):
    exact = minimum_epsilon(n, failure)
    chernoff = minimum_epsilon(n, failure, bound="chernoff")
    assert exact <= chernoff * (1 + 1e-12)
    if n > 2.001 * math.log(1 / failure):
        assert chernoff <= minimum_epsilon(n, failure, bound="hoeffding") * (1 + 1e-12)


@pytest.mark.parametrize("n", [10**9, 10**12, 10**12 + 1, 10**15 - 1, 10**15])
@pytest.mark.parametrize("failure", [1e-9, 0.01, 0.3])
def test_the_smallest_epsilon_for_very_many_labels_is_the_normal_one(n, failure):
    z = -special.ndtri(failure)
    # z standard deviations, less the half of a tie that an even number is given.
    ahead = z * math.sqrt(n) / 2 - (0 if n % 2 else 0.5)
    expected = 4 * math.atanh(2 * ahead / n)
    tolerance = 1e-7 if n > 10**14 else 2e-8
    assert minimum_epsilon(n, failure) == pytest.approx(expected, rel=tolerance)


def test_a_fair_coin_may_be_enough():
    assert minimum_epsilon(10, 0.5) == 0
    assert minimum_epsilon(11, 0.51) == 0
    assert minimum_epsilon(10**15, 0.6) == 0
    assert minimum_epsilon(10, 0.7, bound="normal") == 0
    assert minimum_epsilon(10, stats.binom.cdf(4, 10, 0.5) - 1e-6) > 0


@pytest.mark.parametrize("bound", ["exact", "chernoff"])
def test_a_single_label_and_the_rarest_failure_have_a_finite_answer(bound):
    log_odds = 200 * math.log(10)
    expected = {"exact": 2 * log_odds, "chernoff": 4 * (log_odds + math.log(2))}[bound]
    assert minimum_epsilon(1, 1e-200, bound=bound) == pytest.approx(expected, rel=1e-12)
    assert minimum_epsilon(1, 5e-324, bound=bound) < 3000


@given(n=st.integers(1, 10**15), failure=st.floats(1e-300, 0.99))
def test_the_bounds_are_their_formulas(n, failure):
    with localcontext(Context(prec=60)):
        excess = -Decimal(failure).ln() / n
        x = excess.exp()
        chernoff = float(4 * (x + (x * x - 1).sqrt()).ln())
    assert minimum_epsilon(n, failure, bound="chernoff") == pytest.approx(chernoff, rel=1e-12)
    normal = max(0.0, 4 * stats.norm.isf(failure) / math.sqrt(n))
    assert minimum_epsilon(n, failure, bound="normal") == pytest.approx(normal, rel=1e-12)
    if excess < 0.4:
        hoeffding = math.exp(
            -n / 2 * math.tanh(minimum_epsilon(n, failure, bound="hoeffding") / 4) ** 2
        )
        assert math.log(hoeffding) == pytest.approx(math.log(failure), rel=1e-9)


def test_hoeffdings_bound_says_how_many_labels_it_needs():
    with pytest.raises(ValueError, match=r"n must be above 2 ln\(1 / failure\) .* got 9"):
        minimum_epsilon(9, 0.01, bound="hoeffding")
    assert minimum_epsilon(10, 0.01, bound="hoeffding") > 0
