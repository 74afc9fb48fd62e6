import itertools
import math
from fractions import Fraction

import laws
import numpy as np
import pytest
from scipy import stats

from dpnotes import _coins, audit, counts_and_means
from dpnotes.counts_and_means import (
    TableRelease,
    log_probability,
    margin,
    release_count,
    release_histogram,
    release_mean,
    release_sum,
)
from dpnotes.histogram import count_log_pmf, log_pmf
from dpnotes.release import ADDED_OR_REMOVED, REPLACED

DRINKS = ["coffee", "tea", "water"]
PROMISE = {"mechanism": "discrete Laplace noise", "neighbours": "one record replaced"}


NEIGHBOURS = [REPLACED, ADDED_OR_REMOVED]
# Values from two steps below 0 to three above, or wholly on one side of it.
RANGES = [(-1.0, 1.5, 0.5), (0, 2, 1), (3, 5, 1), (-5, -3, 1)]


def list_records(release, low, high, step):
    """Return all that a record may hold: values on the grid, between its points and beyond."""
    if release is release_count:
        return [True, False]
    return [*np.arange(low, high + step / 2, step), low - 7, high + 0.3 * step, low + 0.7 * step]


def worst_loss(release, epsilon, neighbours, grouped, sizes, limits=(0, 2, 1)):
    """Return the largest log-ratio of the tallies' probabilities, over all neighbours and outputs.

    An output beyond the tallies of both, on either side, has the largest ratio.
    """
    low, high, step = limits
    options = {"neighbours": neighbours}
    if release in (release_sum, release_mean):
        options |= {"low": low, "high": high, "step": step}
    one = [(v, g) for v in list_records(release, *limits) for g in ("ab" if grouped else "a")]

    def plan(records):
        values, by = [v for v, _ in records], [g for _, g in records]
        more = {"by": by, "groups": ["a", "b", "c"]} if grouped else {}
        return lambda outputs: log_probability(
            outputs, release, values, epsilon, **options, **more
        ), counts_and_means._PLANS[release](values, epsilon, **options, **more).tallies

    worst = 0.0
    for n in sizes:
        rest = list(itertools.combinations_with_replacement(one[:: max(1, len(one) // 6)], n))
        for base in rest:
            if neighbours == REPLACED:
                pairs = itertools.combinations(one, 2)
                pairs = [([*base, x], [*base, y]) for x, y in pairs]
            else:
                pairs = [([*base], [*base, x]) for x in one]
            for left, right in pairs:
                (first, here), (second, there) = plan(left), plan(right)
                ends = zip(np.minimum(here, there) - 1, np.maximum(here, there) + 1, strict=True)
                outputs = np.array(list(itertools.product(*ends)))
                worst = max(worst, np.abs(first(outputs) - second(outputs)).max())
    return worst


@pytest.mark.claim("counts_and_means.release_count", kind="enumeration")
@pytest.mark.claim("counts_and_means.release_sum", kind="enumeration")
@pytest.mark.claim("counts_and_means.release_mean", kind="enumeration")
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("neighbours", NEIGHBOURS, ids=["replaced", "added"])
@pytest.mark.parametrize("release", [release_count, release_sum, release_mean])
def test_no_release_costs_more_than_epsilon_and_the_worst_costs_nearly_that(
    release, neighbours, grouped
):
    for limits in RANGES if release is not release_count else RANGES[:1]:
        worst = worst_loss(release, 1.0, neighbours, grouped, [0, 1], limits)
        assert 1 - 3e-12 <= worst <= 1.0, (limits, worst)


def neighbouring(n):
    """Return every two data sets of n drinks that differ in one record."""
    for rest in itertools.product(DRINKS, repeat=n - 1):
        for one, other in itertools.permutations(DRINKS, 2):
            yield [one, *rest], [other, *rest]


def boxes(n, radius):
    return np.array(list(itertools.product(range(-radius, n + radius + 1), repeat=len(DRINKS))))


@pytest.mark.claim("counts_and_means.release_histogram", kind="enumeration")
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


@pytest.mark.claim("counts_and_means.release_count", kind="enumeration")
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

    monkeypatch.setattr(counts_and_means, "discrete_laplace", none)
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


@pytest.mark.claim("counts_and_means.release_histogram", kind="simulation with its error")
def test_what_is_released_has_the_stated_distribution():
    rng, outputs = np.random.default_rng(1), boxes(1, 2)
    released = np.array(
        [release_histogram(["tea"], DRINKS, 2.0, rng=rng).value for _ in range(6000)]
    )
    seen = [np.count_nonzero((released == output).all(axis=1)) for output in outputs]
    chances = np.exp(log_pmf(outputs, ["tea"], DRINKS, 2.0))
    assert laws.counts_fit([*seen, 6000 - sum(seen)], [*chances, 1 - chances.sum()])


@pytest.mark.claim("counts_and_means.release_count", kind="simulation with its error")
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


@pytest.mark.claim("counts_and_means.margin", kind="enumeration")
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


@pytest.mark.claim("counts_and_means.release_mean", kind="simulation with its error")
@pytest.mark.parametrize("neighbours", NEIGHBOURS, ids=["replaced", "added"])
@pytest.mark.parametrize("release", [release_sum, release_mean])
def test_tallies_have_the_stated_distribution_and_give_the_value(release, neighbours):
    rng, table = np.random.default_rng(1), {"by": ["a", "b"], "groups": ["a", "b"]}
    options = {"low": 0, "high": 2, "step": 1, "neighbours": neighbours}
    drawn = [release([2, 1], 2.0, **options, **table, rng=rng) for _ in range(4000)]
    noisy = np.array([released.basis.noisy for released in drawn])
    outputs = np.array(list(itertools.product(range(-1, 4), repeat=noisy.shape[1])))
    seen = [np.count_nonzero((noisy == output).all(axis=1)) for output in outputs]
    chances = np.exp(log_probability(outputs, release, [2, 1], 2.0, **options, **table))
    assert laws.counts_fit([*seen, 4000 - sum(seen)], [*chances, 1 - chances.sum()])
    for released, tallies in zip(drawn[:100], noisy.tolist(), strict=False):
        if release is release_sum:
            assert released.value == tuple(tallies)
        else:
            pairs = zip(tallies[::2], tallies[1::2], strict=True)
            pairs = [(max(up, 0), max(down, 0)) for up, down in pairs]
            means = [2 * up / (up + down) if up + down else 1 for up, down in pairs]
            assert released.value == pytest.approx(means)


@pytest.mark.claim("counts_and_means.release_sum", kind="chosen cases")
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 20.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 1000, 10**6, 2**31])
def test_rounding_the_coins_costs_less_than_is_kept_back(epsilon, sensitivity):
    if sensitivity > epsilon * counts_and_means._WIDEST_NOISE:
        pytest.skip("refused")
    rate = counts_and_means._Plan(np.zeros(1), sensitivity, epsilon, REPLACED).rate
    error = 0.0
    for place, table in enumerate(_coins._byte_tables(rate)):
        # The distribution of the byte as its table stands, in fractions.
        parts = zip(table.thresholds, table.rests.tolist(), strict=True)
        kept = [(Fraction(top) + Fraction(rest)) / 256 for top, rest in parts]
        chances = [Fraction(0)] * 256
        for column, move in enumerate(table.moves):
            part = kept[column] if move else Fraction(1)
            chances[column] += part
            chances[column ^ move] += 1 - part
        logs = np.array([math.log(chance) for chance in chances if chance])
        error += np.abs(logs - logs[0] + rate * 256.0**place * np.arange(logs.size)).max()
    # Two neighbours have errors of their own, and so has the coin for the sign.
    assert rate * sensitivity + 2 * error + 2.0**-50 <= epsilon


def test_the_tail_of_two_laplace_variables_is_that_of_their_density():
    grid = np.linspace(-60, 60, 600_001)
    density = np.exp(-np.abs(grid)) / 2 * (grid[1] - grid[0])
    for ratio, off in itertools.product([0.0, 0.3, 0.999, 1.0], [0.0, 0.5, 3.0, 20.0]):
        found = counts_and_means._tail_of_two(np.array([off]), np.array([ratio]))[0]
        beyond = stats.laplace.sf(off + ratio * grid) + stats.laplace.cdf(-off + ratio * grid)
        assert found == pytest.approx((density * beyond).sum(), rel=1e-6)


@pytest.mark.claim("counts_and_means.release_mean", kind="simulation with its error")
@pytest.mark.parametrize("values", [[0] * 30, [50] * 200, [10, 90] * 4, [100] * 3, []])
def test_intervals_of_a_mean_hold_as_often_as_they_say(values):
    truth, rng, held = np.mean(values or [50]), np.random.default_rng(2), 0
    options = {"low": 0, "high": 100, "step": 1, "neighbours": ADDED_OR_REMOVED, "rng": rng}
    for _ in range(1000):
        released = release_mean(values, 1.0, **options)
        low, high = released.interval(0.9)
        assert low <= released.value <= high
        held += low <= truth <= high
    assert held >= stats.binom.ppf(1e-4, 1000, 0.9)
    assert held <= stats.binom.ppf(0.9999, 1000, 0.9) or len(values) < 200


@pytest.mark.claim("release.NumberRelease.interval", kind="enumeration")
def test_intervals_of_a_sum_are_the_smallest_that_hold_as_often_as_they_say():
    options = {"low": 0, "high": 10, "step": 0.5}
    released = release_sum([3, 4], 0.7, **options, rng=1)
    for confidence in (0.5, 0.95, 0.999):
        low, high = released.interval(confidence)
        off = round((high - released.value) / 0.5)
        assert (low, high) == (released.value - off / 2, released.value + off / 2)
        outputs = np.arange(-off, off + 1)[:, None] + 14
        chances = np.exp(log_probability(outputs, release_sum, [3, 4], 0.7, **options))
        assert chances.sum() >= confidence > chances[1:-1].sum()


@pytest.mark.claim("release.TableRelease.interval", kind="chosen cases")
@pytest.mark.claim("release.TableRelease.to_frame", kind="chosen cases")
def test_all_intervals_of_a_table_hold_together_where_that_is_asked():
    table = release_histogram(["tea"], [*"abcdefgh", "tea"], 0.1, rng=0)
    for together, count in ((False, 1), (True, 9)):
        [low, high] = table.interval(0.95, together=together)[0]
        assert high - low == 2 * margin(0.1, count)
    frame = table.to_frame(0.8)
    assert [*zip(frame.low, frame.high, strict=True)] == table.interval(0.8)
    assert (*frame.index, *frame.value) == (*table.domain, *table.value)


@pytest.mark.parametrize("neighbours", NEIGHBOURS, ids=["replaced", "added"])
def test_empty_groups_are_answered_and_look_like_others(neighbours):
    options = {"by": ["x", "x"], "groups": ["x", "y"], "neighbours": neighbours, "rng": 3}
    limits = {"low": -5, "high": 5, "step": 1}
    for released in (
        release_count([True, False], 0.1, **options),
        release_sum([1, 2], 0.1, **limits, **options),
        release_mean([1, 2], 0.1, **limits, **options),
    ):
        assert released.domain == ("x", "y")
        assert len(released.value) == len(released.interval()) == 2
        assert list(released.to_frame().columns) == ["value", "low", "high"]


def test_only_a_public_number_of_records_must_not_be_0():
    limits = {"low": 0, "high": 1, "step": 1}
    for release in (release_count, release_sum, release_mean):
        options = {} if release is release_count else limits
        released = release([], 1.0, neighbours=ADDED_OR_REMOVED, rng=0, **options)
        assert math.isfinite(float(released))
        with pytest.raises(ValueError, match="at least one"):
            release([], 1.0, rng=0, **options)


def test_sums_are_exact_up_to_the_largest():
    values, far = np.full(100_000, 2.0**31), 2.0**31
    for by, groups in [(None, None), (np.arange(100_000) % 2, [0, 1])]:
        released = release_sum(values, 1e9, low=-far, high=far, step=1, by=by, groups=groups)
        found = np.atleast_1d(released.value)
        assert np.abs(found - 100_000 // found.size * far).max() < 400


def test_values_are_clipped_and_rounded_as_they_are_written():
    released = release_sum([0.3, 0.24, -4, 9], 1e6, low=0, high=0.7, step=0.1, rng=0)
    assert repr(released.value) == "1.2"


def test_a_number_rounds_and_prints_and_can_be_divided():
    released = release_count([True] * 3 + [False], 1e3, rng=0)
    share = released / 4
    assert (float(share), share.interval(), share.epsilon) == (0.75, (0.75, 0.75), 1e3)
    assert (f"{share:.1%}", round(share, 1), f"{released:.0f}") == ("75.0%", 0.8, "3")
    assert f"{released}" == str(released)


def test_a_mean_has_half_of_the_variance_of_a_sum_over_a_count():
    values, rng = [20, 80] * 100, np.random.default_rng(0)
    options = {"step": 1, "neighbours": ADDED_OR_REMOVED, "rng": rng}
    means, sums, counts = [], [], []
    for _ in range(2000):
        means.append(float(release_mean(values, 1.0, low=0, high=100, **options)))
        centred = [value - 50 for value in values]
        sums.append(float(release_sum(centred, 0.5, low=-50, high=50, **options)))
        count = release_count([True] * 200, 0.5, neighbours=ADDED_OR_REMOVED, rng=rng)
        counts.append(float(count))
    assert 0.4 < np.var(means) / np.var(np.array(sums) / np.array(counts)) < 0.6


def test_an_audit_finds_most_of_the_cost_of_moving_to_another_group():
    def mechanism(data, *, rng):
        values, by = zip(*data, strict=True)
        options = {"low": 0, "high": 10, "step": 1, "by": by, "groups": ["a", "b"]}
        return release_mean(values, 1.0, **options, rng=rng).basis.noisy

    one, other = [(10, "a"), (5, "b")], [(10, "b"), (5, "b")]
    found = audit.epsilon_lower_bound(mechanism, one, other, trials=6000, rng=2)
    assert 0.5 < found <= 1.0


def test_arrays_become_plain_numbers_and_counts_may_be_negative():
    release = TableRelease(value=np.array([-1, 4]), domain=["a", "b"], epsilon=1, **PROMISE)
    assert release.value == (-1, 4)
    assert release.domain == ("a", "b")
    assert {type(count) for count in release.value} == {int}
    assert (type(release.epsilon), release.delta) == (float, 0.0)


def test_far_away_outputs_have_a_finite_logarithm():
    assert math.isfinite(log_pmf([2**62, -(2**62)], ["a"], ["a", "b"], 1.0))
