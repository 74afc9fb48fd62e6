import itertools
import math

import laws
import numpy as np
import pytest

from dpnotes import audit, histogram
from dpnotes.histogram import (
    HistogramRelease,
    count_log_pmf,
    log_pmf,
    margin,
    release_count,
    release_histogram,
)

DRINKS = ["coffee", "tea", "water"]
PROMISE = {"mechanism": "discrete Laplace noise", "neighbours": "one record replaced"}


def neighbouring(n):
    """Return every two data sets of n drinks that differ in one record."""
    for rest in itertools.product(DRINKS, repeat=n - 1):
        for one, other in itertools.permutations(DRINKS, 2):
            yield [one, *rest], [other, *rest]


def boxes(n, radius):
    return np.array(list(itertools.product(range(-radius, n + radius + 1), repeat=len(DRINKS))))


@pytest.mark.claim("histogram.release_histogram", kind="enumeration")
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0])
def test_no_output_is_more_than_epsilon_more_likely_and_the_worst_is_nearly_that(epsilon):
    outputs = boxes(2, 3)
    worst = max(
        np.abs(
            log_pmf(outputs, one, DRINKS, epsilon) - log_pmf(outputs, other, DRINKS, epsilon)
        ).max()
        for one, other in neighbouring(2)
    )
    # Twice the part of half of epsilon that pays for the rounding of coins.
    assert epsilon - 3e-12 <= worst <= epsilon


@pytest.mark.claim("histogram.release_count", kind="enumeration")
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0])
def test_no_count_is_more_than_epsilon_more_likely_and_the_worst_is_nearly_that(epsilon, n):
    outputs = np.arange(-9, n + 10)
    worst = max(
        np.abs(
            count_log_pmf(outputs, [one, *rest], epsilon)
            - count_log_pmf(outputs, [not one, *rest], epsilon)
        ).max()
        for one, *rest in itertools.product([False, True], repeat=n)
    )
    assert epsilon - 2e-12 <= worst <= epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize(
    ("release", "arguments", "sensitivity"),
    [(release_histogram, (["tea"], DRINKS), 2), (release_count, ([True],), 1)],
)
def test_the_rounding_of_coins_is_paid_for(monkeypatch, release, arguments, sensitivity, epsilon):
    scales = []

    def none(size, scale, rng):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(histogram, "discrete_laplace", none)
    release(*arguments, epsilon)
    # The worst rounding of an exponential of at most 700, for each step by which a record moves
    # the counts, and of the odds of two numbers.
    assert sensitivity * (1 / scales[0] + 700 * 2.0**-53) + 1e-13 <= epsilon
    assert scales[0] == pytest.approx(sensitivity / epsilon, rel=0.003)


def test_probabilities_sum_to_one():
    outputs = boxes(0, 25)
    assert np.exp(log_pmf(outputs, ["tea"], DRINKS, 1.5)).sum() == pytest.approx(1, abs=1e-7)
    counts = np.exp(count_log_pmf(np.arange(-40, 42), [True, False], 1.0))
    assert counts.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.claim("histogram.release_histogram", kind="simulation with its error")
def test_what_is_released_has_the_stated_distribution():
    rng, outputs = np.random.default_rng(1), boxes(1, 2)
    released = np.array(
        [release_histogram(["tea"], DRINKS, 2.0, rng=rng).value for _ in range(6000)]
    )
    seen = [np.count_nonzero((released == output).all(axis=1)) for output in outputs]
    chances = np.exp(log_pmf(outputs, ["tea"], DRINKS, 2.0))
    assert laws.counts_fit([*seen, 6000 - sum(seen)], [*chances, 1 - chances.sum()])


@pytest.mark.claim("histogram.release_count", kind="simulation with its error")
def test_a_count_that_is_released_has_the_stated_distribution():
    rng, outputs = np.random.default_rng(5), np.arange(-4, 8)
    values = [True, False, 1, 0, np.True_]
    released = np.array([float(release_count(values, 1.0, rng=rng)) for _ in range(6000)])
    seen = [np.count_nonzero(released == output) for output in outputs]
    chances = np.exp(count_log_pmf(outputs, values, 1.0))
    assert laws.counts_fit([*seen, 6000 - sum(seen)], [*chances, 1 - chances.sum()])


def test_a_count_is_as_a_histogram_of_one_category_at_twice_the_cost():
    outputs = np.arange(-9, 10)
    for epsilon in (1e-9, 0.1, 3.0):
        count = count_log_pmf(outputs, [True], epsilon)
        assert (count == log_pmf(outputs[:, None], ["a"], ["a"], 2 * epsilon)).all()
        assert margin(epsilon, sensitivity=1) == margin(2 * epsilon)


def test_the_answers_decide_nothing_but_the_count():
    seen = set()
    for values in itertools.product([False, True], repeat=3):
        rng = np.random.default_rng(3)
        released = release_count(values, 0.3, rng=rng)
        noise = released.value - sum(values)
        promise = (released.epsilon, released.delta, released.mechanism, released.neighbours)
        seen.add((noise, promise, str(rng.bit_generator.state)))
    [(noise, (epsilon, delta, _, neighbours), _)] = seen
    assert (noise.is_integer(), epsilon, delta) == (True, 0.3, 0.0)
    assert "replaced" in neighbours


def test_an_audit_that_knows_no_formula_finds_most_of_the_cost_and_never_more():
    def mechanism(data, *, rng):
        return release_histogram(data, DRINKS, 1.0, rng=rng).value[:2]

    found = audit.epsilon_lower_bound(mechanism, ["tea"], ["coffee"], trials=4000, rng=2)
    assert 0.6 < found <= 1.0


def test_the_records_decide_nothing_but_the_counts():
    noise, states = set(), set()
    for values in itertools.product(DRINKS, repeat=3):
        rng = np.random.default_rng(3)
        released = release_histogram(values, DRINKS, 0.3, rng=rng)
        noise.add(tuple(np.subtract(released.value, [values.count(drink) for drink in DRINKS])))
        states.add(str(rng.bit_generator.state))
        assert (released.domain, released.epsilon, released.delta) == (tuple(DRINKS), 0.3, 0.0)
    assert len(noise) == len(states) == 1


def test_every_count_has_noise_of_its_own():
    [noise] = [release_histogram(["a"], ["a", *range(40)], 0.01, rng=4).value]
    assert len(set(noise)) > 30


@pytest.mark.claim("histogram.margin", kind="enumeration")
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("categories", [1, 5])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.0])
def test_the_margin_is_the_smallest_that_holds_as_often_as_it_says(epsilon, categories, confidence):
    found = margin(epsilon, categories, confidence=confidence)
    outputs = np.arange(1 - found, found + 2)[:, None]
    chances = np.exp(log_pmf(outputs, ["a"], ["a"], epsilon))
    assert chances.sum() ** categories >= confidence - 1e-12
    assert found == 0 or chances[1:-1].sum() ** categories < confidence


def test_no_epsilon_is_too_large():
    released = release_histogram(["tea"] * 3, DRINKS, 1.7e308, rng=0)
    assert released.value == (0, 3, 0)
    assert margin(1.7e308) == margin(1.7e308, sensitivity=1) == 0
    assert release_count([True, False, True], 1.7e308, rng=0).value == 2.0


def test_values_and_categories_may_be_arrays_and_categories_whatever_can_be_gone_through():
    released = release_histogram(np.array([2, 2, 1]), np.array([1, 2]), 60.0, rng=0)
    assert (released.value, released.domain) == ((1, 2), (1, 2))
    assert {type(entry) for entry in released.value + released.domain} == {int}
    assert release_histogram([2, 2, 1], iter([1, 2]), 60.0, rng=0) == released


def test_arrays_become_plain_numbers_and_counts_may_be_negative():
    release = HistogramRelease(value=np.array([-1, 4]), domain=["a", "b"], epsilon=1, **PROMISE)
    assert release.value == (-1, 4)
    assert release.domain == ("a", "b")
    assert {type(count) for count in release.value} == {int}
    assert (type(release.epsilon), release.delta) == (float, 0.0)


def test_far_away_outputs_have_a_finite_logarithm():
    assert math.isfinite(log_pmf([2**62, -(2**62)], ["a"], ["a", "b"], 1.0))
