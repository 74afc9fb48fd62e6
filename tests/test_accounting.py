"""What asking again costs: held to exact sums, to brute force and to an independent accountant."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpnotes import accounting
from dpnotes.accounting import (
    PrivacyCost,
    SecretCost,
    best_epsilon,
    bounded_range,
    calibrate,
    compose,
    compose_bounded_range,
    compose_gaussian,
    compose_laplace,
    compose_subsampled_gaussian,
    composition,
    epsilon_from_rdp,
    epsilon_from_zcdp,
    gaussian_cost,
    laplace_rdp,
)

DELTAS = (1e-2, 1e-5, 1e-9)


def delta_of(losses, chances, epsilon):
    """Return delta at epsilon, from the losses of a finite mechanism and their probabilities."""
    above = losses > epsilon
    return float(chances[above] @ -np.expm1(epsilon - losses[above]))


def randomized_responses(epsilons):
    """Return the losses of randomized response at each epsilon, added up, one outcome at a time."""
    losses, chances = [], []
    for truths in itertools.product((True, False), repeat=len(epsilons)):
        signs = np.where(truths, 1, -1)
        losses.append(signs @ epsilons)
        chances.append(np.prod(1 / (1 + np.exp(-signs * epsilons))))
    return np.array(losses), np.array(chances)


def smallest_epsilon(losses, chances, delta):
    if delta_of(losses, chances, 0.0) <= delta:
        return 0.0
    return optimize.brentq(
        lambda epsilon: delta_of(losses, chances, epsilon) - delta, 0, losses.max(), rtol=1e-13
    )


# The least noise for a cost.


@pytest.mark.claim("accounting.calibrate", kind="chosen cases")
@pytest.mark.parametrize("start", [None, 1e-4, 2.0, 1e6])
@pytest.mark.parametrize(
    "cost",
    [
        lambda noise: 1 / noise,
        lambda noise: math.exp(-noise),
        lambda noise: gaussian_cost(1 / noise, 1e-5),
        lambda noise: epsilon_from_zcdp(1 / noise**2, 1e-9),
    ],
)
def test_the_noise_for_a_cost_is_enough_and_hardly_more(cost, start):
    for epsilon in (1e-4, 0.03, 0.7, 25.0):
        for tolerance in (1e-2, 1e-9, 1e-13):
            noise = calibrate(cost, epsilon, 1e-5, 1e7, start=start, tolerance=tolerance)
            assert float(cost(noise)) <= epsilon
            if noise > 1e-5:
                # Either the cost is close enough, or the noise is.
                less = cost(noise * (1 - max(tolerance, 1e-10)))
                assert float(cost(noise)) >= epsilon * (1 - tolerance) or float(less) > epsilon


@pytest.mark.parametrize("above", [np.nextafter(1.0, 2.0), 2.0])
def test_behind_a_jump_of_the_cost_the_louder_noise_is_taken(above):
    for jump in np.geomspace(0.01, 900.0, 40):
        noise = calibrate(lambda noise, jump=jump: above if noise < jump else 0.5, 1.0, 1e-3, 1e3)
        assert jump <= noise < jump * (1 + 1e-9)


def test_the_least_noise_and_the_most_are_found_to_the_last_digit():
    assert calibrate(lambda noise: 1 / noise, 10.0, 0.1, 50.0) == 0.1
    assert calibrate(lambda noise: 1 / noise, 0.1, 0.03, 10.0) == 10.0
    assert calibrate(lambda noise: math.inf if noise < 7 else 0.0, 1.0, 7.0, 7.0) == 7.0


def test_a_cost_that_no_noise_keeps_to_is_refused():
    with pytest.raises(ValueError, match="epsilon must be large enough for noise of at most 10"):
        calibrate(lambda noise: 1 / noise, 0.0999, 0.1, 10.0)


# Mechanisms of given epsilons.


@pytest.mark.claim("accounting.compose", kind="enumeration")
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    "epsilons", [[0.3], [0.5, 0.5, 0.5], [0.1, 0.7, 1.3, 0.7], [2.0, 0.01, 0.3, 0.3, 5.0]]
)
def test_pure_costs_compose_as_the_enumeration_of_randomized_responses_says(epsilons, delta):
    exact = smallest_epsilon(*randomized_responses(np.array(epsilons)), delta)
    assert float(compose(epsilons, delta)) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_the_values_of_the_book_come_out():
    assert float(compose([0.1] * 100, 1e-5)) == pytest.approx(4.3067913725, abs=1e-9)
    assert float(compose([0.1] * 1000, 1e-5)) == pytest.approx(17.7871284497, abs=1e-9)
    assert float(compose([0.05] * 200, 1e-5)) == pytest.approx(2.919, abs=1e-3)


def test_at_delta_zero_the_costs_add_up_and_no_query_costs_nothing():
    assert float(compose([0.1, 0.2, 3.0], 0.0)) == pytest.approx(3.3)
    assert float(compose([], 1e-5)) == float(compose([0.0, 0.0], 1e-5)) == 0.0
    # Nor does any where delta is above the chance of a loss.
    assert float(compose([0.5], 0.7)) == float(compose([0.5, 0.3], 0.9)) == 0.0


@pytest.mark.parametrize("delta", DELTAS)
def test_many_different_epsilons_are_bounded_from_above_and_closely(delta, monkeypatch):
    epsilons = np.random.default_rng(0).uniform(0.01, 0.3, 16)
    exact = float(compose(epsilons, delta))
    monkeypatch.setattr(composition, "_FEW", 0)
    bound = float(compose(epsilons, delta))
    assert exact * (1 - 1e-12) <= bound <= 1.005 * exact


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("queries", "epsilon"), [(1000, 0.1), (1500, 0.5), (1000, 0.002)])
def test_the_bound_stays_close_for_thousands_of_queries(queries, epsilon, delta, monkeypatch):
    exact = float(compose([epsilon] * queries, delta))
    monkeypatch.setattr(composition, "_FEW", 0)
    bound = float(compose([epsilon] * queries, delta))
    assert exact * (1 - 1e-12) <= bound <= 1.005 * exact


@pytest.mark.parametrize("part", [1e-3, 0.3, 1.0])
def test_what_lies_beyond_the_grid_counts_as_an_infinite_loss(part, monkeypatch):
    exact = float(compose([0.1] * 1000, 1e-5))
    monkeypatch.setattr(composition, "_FEW", 0)
    monkeypatch.setattr(composition, "_BEYOND", part)
    _, chances, infinite = composition._on_a_grid(np.full(1000, 0.1), 1e-5)
    assert 0 < infinite < 1e-5
    assert chances.sum() + infinite == pytest.approx(1, abs=1e-12)
    assert float(compose([0.1] * 1000, 1e-5)) >= exact


@pytest.mark.parametrize("epsilons", [[1e-300] * 3, [1e-9] * 1000, [800.0] * 3, [1e300]])
def test_extreme_epsilons_give_a_number_that_is_at_most_their_sum(epsilons):
    assert 0 <= float(compose(epsilons, 1e-5)) <= sum(epsilons)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-17])
@pytest.mark.parametrize(
    ("epsilons", "least"),
    [([0.1] * 30, 2.999), ([10.0], 9.999), ([1000.0, 1e-5] * 20, 20_000), ([5.0] * 40, 199.99)],
)
def test_a_delta_below_the_rounding_of_sums_does_not_make_answers_free(epsilons, least, delta):
    assert least <= float(compose(epsilons, delta)) <= sum(epsilons) * (1 + 1e-12)


def test_a_delta_below_the_rounding_of_sums_costs_the_sum_on_a_grid_and_with_laplace_noise():
    epsilons = np.linspace(0.1, 0.2, 30)
    for delta in (5e-324, 1e-300, 1e-17):
        assert float(compose(epsilons, delta)) == pytest.approx(4.5, rel=1e-6)
        assert float(compose_laplace(1.0, 5, delta)) == pytest.approx(5.0, rel=1e-6)


def test_tiny_losses_have_their_digits_where_rounding_is_larger_than_delta():
    # Worked out with sixty digits.
    assert float(compose([1e-12] * 100, 1e-20)) == pytest.approx(5.5472040392194484e-11, rel=1e-12)
    assert float(compose([1e-16] * 100, 1e-20)) == pytest.approx(3.8775064121661623e-15, rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-30, 1e5, 1e200])
@pytest.mark.parametrize("delta", [5e-324, 1e-5, 0.9])
def test_many_different_extreme_epsilons_cost_something_up_to_their_sum(size, delta):
    epsilons = np.linspace(size, 2 * size, 30)
    cost = float(compose(epsilons, delta))
    assert 0 <= cost <= epsilons.sum()
    if size > delta:
        assert cost > 0 or delta == 0.9


def test_hardly_any_noise_costs_a_bound_and_is_no_error():
    assert float(gaussian_cost(1e150, 1e-5)) == pytest.approx(5e299)
    assert float(gaussian_cost(1e200, 1e-5)) == float(compose_gaussian(5e-324, 3, 1e-5)) == math.inf
    assert float(compose_gaussian(1e-10, 10**9, 1e-5)) == pytest.approx(5e28)
    assert float(epsilon_from_zcdp(1e300, 1e-5)) == pytest.approx(1e300)
    assert 0 < float(epsilon_from_zcdp(1e-320, 5e-324)) < 1e-150
    assert float(compose_laplace(1e-300, 5, 1e-5)) == pytest.approx(5e300)


@pytest.mark.parametrize(("mu", "delta"), [(1e-9, 0.5), (0.01, 0.1)])
def test_noise_whose_delta_is_enough_by_itself_costs_exactly_nothing(mu, delta):
    assert float(gaussian_cost(mu, delta)) == 0


def test_the_costs_of_hardly_any_noise_meet_those_of_a_little_more():
    for below in (gaussian_cost(0.999999e8, 1e-5), epsilon_from_zcdp(0.999999e16, 1e-5)):
        assert math.isfinite(float(below))
    assert float(gaussian_cost(1e8, 1e-5)) <= float(gaussian_cost(1.000001e8, 1e-5))
    assert float(epsilon_from_zcdp(1e16, 1e-5)) <= float(epsilon_from_zcdp(1.000001e16, 1e-5))


# Noise on numbers.


@pytest.mark.claim("ac-thm-gauss", "accounting.gaussian_cost", kind="chosen cases")
@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.5, 1.0, 1.01, 3.0, 40.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_noise_costs_what_an_independent_accountant_says(mu, delta):
    dp_accounting = pytest.importorskip("dp_accounting")
    theirs = dp_accounting.get_epsilon_gaussian(1 / mu, delta)
    assert float(gaussian_cost(mu, delta)) == pytest.approx(theirs, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 1.0, 2.0])
def test_the_delta_of_gaussian_noise_has_its_digits_where_its_two_terms_cancel(mu):
    mpmath = pytest.importorskip("mpmath")
    for epsilon in (1e-3 * mu, mu, 6 * mu):
        with mpmath.workdps(50):
            e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            expected = float(mpmath.log(exact))
        assert composition._log_gaussian_delta(epsilon, mu) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("mu", [2e4, 1e6, 5e7])
def test_the_second_term_of_gaussian_noise_vanishes_where_there_is_hardly_any(mu):
    # exp(epsilon) Phi(-epsilon / mu - mu / 2) is below phi / mu here.
    normal = mu * mu / 2 - mu * stats.norm.ppf(1e-5)
    assert float(gaussian_cost(mu, 1e-5)) == pytest.approx(normal, rel=1e-8)


@pytest.mark.parametrize("mu", [0.9e8, 1.1e8, 1e9, 1e10])
def test_hardly_any_noise_pays_for_its_tail_too(mu):
    # The second term of delta is below 1e-8 here, so this much is needed.
    needed = -mu * stats.norm.ppf(1e-5)
    for cost in (gaussian_cost(mu, 1e-5), epsilon_from_zcdp(mu * mu / 2, 1e-5)):
        assert needed * (1 - 1e-6) <= float(cost) - mu * mu / 2 <= 1.2 * needed


@pytest.mark.claim("accounting.compose", kind="chosen cases")
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-12, 1e-16), (1e-6, 1e-9), (1e-6, 1e-12), (1e-3, 1e-5), (0.5, 1e-3)]
)
def test_a_cost_near_zero_keeps_its_digits(epsilon, delta):
    # One randomized response has delta = p (1 - exp(cost - epsilon)), where p is that of the truth.
    expected = epsilon + math.log1p(-delta * (1 + math.exp(-epsilon)))
    assert float(compose([epsilon], delta)) == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.claim("accounting.compose_gaussian", kind="chosen cases")
def test_gaussian_answers_compose_to_one_with_less_noise():
    assert compose_gaussian(20.0, 400, 1e-6) == gaussian_cost(1.0, 1e-6)
    assert float(compose_gaussian(5e-324, 0, 1e-6)) == 0.0


def laplace_losses(loss, queries, cells):
    """Return the losses of so many answers, each rounded down: a lower limit on the cost."""
    grid = loss * (2 * np.arange(cells + 1) / cells - 1)
    below = 0.5 * np.exp(-loss * (1 - grid / loss) / 2)
    below[-1] = 1.0
    chances = np.append(np.diff(below), 0.0)
    chances[0] += below[0]
    # The atom at the largest loss has half of all chances.
    chances[-1], chances[-2] = 0.5, chances[-2] - 0.5
    size = cells * queries + 1
    together = np.fft.irfft(np.fft.rfft(chances, 2 * size) ** queries, 2 * size)[:size]
    losses = loss * queries * (2 * np.arange(size) / (size - 1) - 1)
    return losses, np.maximum(together, 0.0)


@pytest.mark.claim("accounting.compose_laplace", kind="quadrature with a bound")
@pytest.mark.parametrize(
    ("loss", "queries"), [(0.05, 200), (0.5, 10), (2.0, 3), (0.01, 50), (6.0, 4), (2.5, 40)]
)
def test_laplace_noise_costs_more_than_a_limit_from_below_and_hardly_more(loss, queries):
    pytest.importorskip("dp_accounting")
    limit = smallest_epsilon(*laplace_losses(loss, queries, 4000), 1e-5)
    cost = float(compose_laplace(1 / loss, queries, 1e-5))
    assert limit <= cost <= limit * 1.001 + 1e-9


def test_laplace_noise_costs_what_the_referee_computed():
    pytest.importorskip("dp_accounting")
    for scale, queries, epsilon in [
        (20, 200, 2.893),
        (20, 2000, 11.35),
        (10, 200, 6.38),
        (40, 200, 1.34),
        (80, 200, 0.63),
    ]:
        assert float(compose_laplace(scale, queries, 1e-5)) == pytest.approx(epsilon, abs=0.006)


@pytest.mark.claim("accounting.laplace_rdp", kind="chosen cases")
@pytest.mark.parametrize("loss", [1e-9, 1e-4, 0.05, 1.0, 30.0, 1e9])
@pytest.mark.parametrize("moment", [2.0**-50, 1e-6, 0.5, 1.0, 40.0, 1e6, 1e99])
def test_the_divergence_of_laplace_noise_keeps_its_digits(loss, moment):
    mpmath = pytest.importorskip("mpmath")
    order = 1 + moment
    with mpmath.workdps(60):
        g, l = mpmath.mpf(loss), mpmath.mpf(order) - 1
        share = (l + 1) / (2 * l + 1)
        expected = mpmath.log(share * mpmath.exp(l * g) + (1 - share) * mpmath.exp(-(l + 1) * g))
        [found] = laplace_rdp(loss, [order])
        assert found == pytest.approx(float(expected / l), rel=1e-12, abs=1e-300)


def test_laplace_noise_costs_no_more_where_it_is_composed_in_a_simpler_way():
    pytest.importorskip("dp_accounting")
    for loss, queries in [(1.0, 20_000), (0.05, 20_000), (20.0, 100)]:
        close = float(compose_laplace(1.0, queries, 1e-5, sensitivity=loss))
        beyond = {"queries": queries + 1} if queries == 20_000 else {"sensitivity": loss * 1.001}
        simple = {"scale": 1.0, "queries": queries, "delta": 1e-5, "sensitivity": loss, **beyond}
        assert close < float(compose_laplace(**simple)) < 1.02 * close


def test_laplace_noise_never_costs_more_than_any_mechanism_of_its_epsilon():
    pytest.importorskip("dp_accounting")
    for loss, queries in [(0.05, 200), (5.0, 4), (25.0, 4), (1e-6, 30_000)]:
        laplace = float(compose_laplace(1.0, queries, 1e-5, sensitivity=loss))
        assert laplace <= float(compose([loss] * queries, 1e-5))
    assert float(compose_laplace(1.0, 0, 1e-5)) == 0.0


def test_batches_cost_as_much_as_full_data_at_most_and_replacing_more_than_adding():
    pytest.importorskip("dp_accounting")
    replaced, added = (
        float(compose_subsampled_gaussian(1.0, 0.01, 1000, 1e-5, neighbours=which))
        for which in ("replaced", "added")
    )
    assert replaced == pytest.approx(2.84, abs=0.005)
    assert added == pytest.approx(1.83, abs=0.005)
    # Where a person is replaced, the two terms may point in opposite directions: twice the move.
    everybody = float(compose_subsampled_gaussian(5.0, 1 - 1e-12, 10, 1e-5))
    assert everybody == pytest.approx(float(compose_gaussian(2.5, 10, 1e-5)), rel=1e-3)
    assert float(compose_subsampled_gaussian(1.0, 0.01, 0, 1e-5)) == 0.0


def test_the_rounding_of_many_losses_is_paid_for():
    dp_accounting = pytest.importorskip("dp_accounting")
    single = dp_accounting.pld.privacy_loss_distribution.from_gaussian_mechanism(
        1.0,
        sampling_prob=0.01,
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
        value_discretization_interval=1e-4,
    )
    unpaid = single.self_compose(1000).get_epsilon_for_delta(1e-10)
    assert float(compose_subsampled_gaussian(1.0, 0.01, 1000, 1e-10)) > unpaid


@pytest.mark.claim("accounting.compose_subsampled_gaussian", kind="quadrature with a bound")
@pytest.mark.parametrize(("sigma", "probability"), [(3.0, 0.1)])
def test_one_batch_costs_no_less_than_the_integral_and_hardly_more(sigma, probability):
    pytest.importorskip("dp_accounting")
    x = np.linspace(-10 * sigma - 1, 10 * sigma + 1, 20_001)

    def density(term):
        chances = (1 - probability) * stats.norm.pdf(x, 0, sigma)
        return chances + probability * stats.norm.pdf(x, term, sigma)

    for neighbours, pairs in {"replaced": [(1, -1)], "added": [(1, 0), (0, 1)]}.items():
        needed = max(
            smallest_epsilon(np.log(here / there), here * (x[1] - x[0]), 1e-3)
            for here, there in [(density(one), density(other)) for one, other in pairs]
        )
        cost = float(
            compose_subsampled_gaussian(sigma, probability, 1, 1e-3, neighbours=neighbours)
        )
        assert needed * (1 - 1e-6) <= cost <= needed + 2e-4 / min(1, sigma) ** 2


@pytest.mark.parametrize(("sigma", "steps"), [(0.01, 1), (0.3, 20_000), (50.0, 20_000)])
def test_batches_of_any_size_cost_a_finite_number_at_once(sigma, steps):
    pytest.importorskip("dp_accounting")
    assert 0 <= float(compose_subsampled_gaussian(sigma, 0.3, steps, 1e-5)) < math.inf


# Bounded range.


def two_outputs(epsilon, t):
    """Return the losses t and t - epsilon of a mechanism of two outputs, and their chances."""
    first = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
    assert first * math.exp(-t) + (1 - first) * math.exp(epsilon - t) == pytest.approx(1)
    return np.array([t, t - epsilon]), np.array([first, 1 - first])


def together(mechanisms):
    losses, chances = np.zeros(1), np.ones(1)
    for own_losses, own_chances in mechanisms:
        losses = np.add.outer(losses, own_losses).ravel()
        chances = np.multiply.outer(chances, own_chances).ravel()
    return losses, chances


@pytest.mark.claim("accounting.compose_bounded_range", kind="quadrature with a bound")
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (0.3, 1e-3), (2.5, 1e-6)])
def test_fixed_questions_of_bounded_range_cost_the_worst_of_all_pairs_of_outputs(epsilon, delta):
    def cost_of(*choice):
        return smallest_epsilon(*together([two_outputs(epsilon, t) for t in choice]), delta)

    cost = float(compose_bounded_range(epsilon, 3, delta, adaptive=False))
    ts = np.linspace(0, epsilon, 16)
    mixed = max(cost_of(*choice) for choice in itertools.combinations_with_replacement(ts, 3))
    equal = max(cost_of(t, t, t) for t in np.linspace(0, epsilon, 501))
    assert mixed <= cost * (1 + 1e-9)
    assert equal == pytest.approx(cost, rel=1e-3)


def test_the_best_known_values_for_bounded_range_come_out():
    costs = [
        float(compose_bounded_range(0.1, queries, 1e-5, adaptive=adaptive))
        for queries in (100, 1000)
        for adaptive in (False, True)
    ]
    assert costs[0] == pytest.approx(1.9886, abs=5e-5)
    assert costs[2] == pytest.approx(7.5074, abs=5e-5)
    # An adaptive adversary reaches 1.990 at least with two-label votes.
    assert 1.990 < costs[1] < 1.995
    assert costs[2] < costs[3] < 7.56


def reached_by_adapting(epsilon, queries, total, cells):
    """Return the delta that an adversary reaches who keeps to a grid of losses: a lower limit."""
    step = epsilon / cells
    places = np.arange(-queries * cells, queries * cells + 1) + round(total / step)
    value = np.maximum(-np.expm1(step * places), 0.0)
    for left in range(queries - 1, -1, -1):
        inner = slice(cells, value.size - cells)
        best = np.zeros(value.size - 2 * cells)
        for i in range(cells + 1):
            _, (first, second) = two_outputs(epsilon, i * step)
            after_first = value[inner.start - i : inner.stop - i]
            after_second = value[inner.start - i + cells : inner.stop - i + cells]
            np.maximum(best, first * after_first + second * after_second, out=best)
        value = best
        assert value.size == 2 * left * cells + 1
    return float(value[0])


@pytest.mark.claim("accounting.compose_bounded_range", kind="quadrature with a bound")
@pytest.mark.parametrize(("epsilon", "queries"), [(1.0, 4), (0.4, 12), (0.1, 40)])
def test_the_adaptive_bound_lies_just_above_what_an_adversary_reaches(epsilon, queries):
    bound = float(compose_bounded_range(epsilon, queries, 1e-4))
    step = epsilon / 40
    below, above = math.floor(bound / step) * step, math.ceil(bound * 1.0001 / step) * step
    assert reached_by_adapting(epsilon, queries, above, 40) <= 1e-4
    assert reached_by_adapting(epsilon, queries, 0.99 * below, 40) > 1e-4
    assert float(compose_bounded_range(epsilon, queries, 1e-4, adaptive=False)) <= bound


@pytest.mark.parametrize(("epsilon", "queries"), [(1.0, 6), (3.0, 4), (0.1, 40)])
def test_a_coarser_grid_of_choices_only_gives_a_larger_bound(epsilon, queries):
    simple = float(epsilon_from_zcdp(queries * epsilon**2 / 8, 1e-4))
    bounds = [
        bounded_range._backward_induction(epsilon, queries, 1e-4, fineness, simple)
        for fineness in (64, 16, 8, 4, 2, 1)
    ]
    assert bounds == sorted(bounds)
    assert bounds[-1] > 1.01 * bounds[0]


def searched_induction(epsilon, queries, delta, fineness, reach):
    """Do what the backward induction does, with a dense search for the best loss t."""
    step = epsilon / fineness
    left = step * np.arange(-math.ceil(reach / step), math.ceil(2 * reach / step) + 1)
    wide = np.concatenate(
        [
            left[0] + step * np.arange(-fineness - 1, 0),
            left,
            left[-1] + step * np.arange(1, fineness + 2),
        ]
    )
    t = np.linspace(0, epsilon, 4001)[:, None]
    first = np.expm1(epsilon - t) / (math.expm1(epsilon) * np.exp(-t))
    value = -np.expm1(np.minimum(left, 0))
    for _ in range(queries):
        padded = np.concatenate([np.ones(fineness + 1), value, np.full(fineness + 1, value[-1])])
        near, far = (np.interp(np.exp(left - x), np.exp(wide), padded) for x in (t, t - epsilon))
        value = np.minimum((first * near + (1 - first) * far).max(axis=0), 1)
    after = int(np.flatnonzero(value <= delta)[0])
    odds = np.interp(-delta, -value[after - 1 : after + 1], np.exp(left[after - 1 : after + 1]))
    return math.log(odds)


@pytest.mark.parametrize(("epsilon", "queries", "delta"), [(3.0, 3, 0.01), (2.0, 2, 0.05)])
def test_the_best_choice_in_each_cell_is_the_one_that_a_search_finds(epsilon, queries, delta):
    settings = (epsilon, queries, delta, 8, 4 * epsilon)
    found = bounded_range._backward_induction(*settings)
    assert found == pytest.approx(searched_induction(*settings), rel=1e-5)


@pytest.mark.parametrize("part", [0.52, 0.6, 0.8, 1.0])
def test_what_leaves_the_window_of_an_adversary_only_raises_the_bound(part):
    wide = bounded_range._backward_induction(0.1, 40, 1e-4, 16, 3.0)
    assert bounded_range._backward_induction(0.1, 40, 1e-4, 16, part * wide) > wide * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("queries", [1, 7, 100, 10**6])
def test_bounded_range_costs_between_nothing_and_zcdp_for_any_parameters(epsilon, queries):
    for delta in (1e-2, 1e-9):
        simple = float(epsilon_from_zcdp(queries * epsilon**2 / 8, delta))
        adaptive = float(compose_bounded_range(epsilon, queries, delta))
        assert 0 <= adaptive <= min(simple, queries * epsilon)


def test_fixed_questions_never_cost_more_than_adaptive_ones():
    for epsilon, queries, delta in itertools.product((0.1, 1.0), (2, 10), (0.5, 0.1, 1e-3)):
        fixed = float(compose_bounded_range(epsilon, queries, delta, adaptive=False))
        assert fixed <= float(compose_bounded_range(epsilon, queries, delta)) <= 1.2 * fixed + 0.02


@pytest.mark.parametrize("epsilon", [0.009, 0.0101, 0.3, 2.0, 9.0])
def test_no_mechanism_of_two_outputs_has_more_divergence_than_its_zcdp(epsilon):
    rho = bounded_range._range_zcdp(epsilon)
    t = np.linspace(0, epsilon, 2001)[1:-1]
    first = -np.expm1(t - epsilon) / -np.expm1(-epsilon)
    reached = 0.0
    for order in 1 + np.geomspace(1e-4, 1e3, 60):
        logs = np.logaddexp(
            np.log(first) + (order - 1) * t, np.log1p(-first) + (order - 1) * (t - epsilon)
        )
        reached = max(reached, float(logs.max()) / (order - 1) / order)
    assert reached <= rho * (1 + 1e-7)
    assert reached == pytest.approx(rho, rel=2e-3)


# Rényi divergences.


@pytest.mark.claim("accounting.best_epsilon", kind="chosen cases")
@pytest.mark.claim("accounting.epsilon_from_rdp", kind="chosen cases")
def test_the_conversion_agrees_with_an_independent_accountant():
    rdp_module = pytest.importorskip("dp_accounting.rdp")
    rng = np.random.default_rng(3)
    for _ in range(300):
        orders = np.sort(1.02 + rng.exponential(20, 6))
        rdp = np.sort(rng.exponential(10.0 ** rng.uniform(-8, 2), 6))
        delta = 10.0 ** rng.uniform(-12, -0.5)
        theirs, order = rdp_module.compute_epsilon(orders.tolist(), rdp.tolist(), delta)
        epsilon, own_order = best_epsilon(rdp, orders, delta)
        assert epsilon == pytest.approx(theirs, rel=1e-12, abs=1e-14)
        assert own_order == order or epsilon == 0


@pytest.mark.claim("pt-tail", "accounting.epsilon_from_rdp", kind="enumeration")
def test_a_rényi_bound_is_never_below_the_truth():
    losses, chances = randomized_responses(np.full(10, 0.4))
    for delta in DELTAS:
        orders = np.array(accounting.DEFAULT_ORDERS)
        moments = losses[:, None] * (orders - 1)
        logs = np.logaddexp.reduce(moments + np.log(chances)[:, None])
        bound = float(epsilon_from_rdp(np.maximum(logs, 0) / (orders - 1), orders, delta))
        assert bound >= smallest_epsilon(losses, chances, delta)


def test_the_default_orders_are_sorted_unique_and_dense_enough_for_zcdp():
    orders = np.array(accounting.DEFAULT_ORDERS)
    assert np.all(np.diff(orders) > 0)
    assert orders[0] > 1
    for rho in 10.0 ** np.arange(-8, 4):
        found = float(epsilon_from_rdp(rho * orders, orders, 1e-6))
        assert found == pytest.approx(float(epsilon_from_zcdp(rho, 1e-6)), rel=1e-3)


@pytest.mark.claim("accounting.epsilon_from_zcdp", kind="chosen cases")
def test_the_zcdp_conversion_is_the_best_of_all_orders():
    orders = 1 + np.geomspace(1e-4, 1e8, 200_001)
    for rho in (0.0, 1e-9, 1e-3, 0.125, 3.0, 500.0):
        dense = float(epsilon_from_rdp(rho * orders, orders, 1e-5))
        assert float(epsilon_from_zcdp(rho, 1e-5)) == pytest.approx(dense, rel=1e-6, abs=1e-12)


def test_an_infinite_divergence_promises_nothing_and_none_costs_nothing():
    assert float(epsilon_from_rdp([math.inf], [2], 1e-5)) == math.inf
    assert float(epsilon_from_rdp([math.inf, 1.0], [2, 3], 1e-5)) < math.inf
    for conversion in ("improved", "classic"):
        assert float(epsilon_from_rdp([0.0], [2], 1e-5, conversion=conversion)) == 0.0


def test_the_improved_conversion_is_never_above_the_classic_one():
    rng = np.random.default_rng(1)
    for _ in range(300):
        rdp, order = rng.exponential(), 1 + rng.exponential(10)
        improved = float(epsilon_from_rdp([rdp], [order], 1e-5))
        assert improved <= float(epsilon_from_rdp([rdp], [order], 1e-5, conversion="classic"))


# Two kinds of costs.


def test_a_secret_cost_does_not_become_a_public_one_by_accident():
    secret = SecretCost(1.2, 1e-5, 20.0, 100.0)
    assert "do not publish" in repr(secret)
    assert "do not publish" in f"{secret}"
    for convert in (
        float,
        lambda cost: PrivacyCost(cost, 1e-5),
        lambda cost: cost + 0.0,
        lambda cost: f"{cost:.2f}",
    ):
        with pytest.raises(TypeError):
            convert(secret)
    assert secret != PrivacyCost(1.2, 1e-5)
    assert not isinstance(secret, PrivacyCost)
    assert not issubclass(PrivacyCost, SecretCost)


def test_a_public_cost_is_its_epsilon():
    assert f"{PrivacyCost(0.5, 1e-5):.2f}" == "0.50"
    assert PrivacyCost(math.inf, 0.0).epsilon == math.inf
    assert type(PrivacyCost(np.float32(1), 0).epsilon) is float


def test_a_secret_cost_says_what_is_not_known():
    for order in (0, 0.0, math.nan):
        with pytest.raises(ValueError, match="order must be a positive number or None"):
            SecretCost(1.0, 1e-5, order, 3.0)
    cost = SecretCost(np.float32(1), 0, None, math.nan)
    assert cost.order is None
    assert math.isnan(cost.answered)
    assert type(cost.epsilon) is type(cost.delta) is float
    assert type(SecretCost(1, 0, 2, 3).order) is type(SecretCost(1, 0, 2, 3).answered) is float


def test_too_many_different_epsilons_are_refused_rather_than_waited_for():
    for times, values in ((1, 10_001), (101, 100)):
        with pytest.raises(ValueError, match="few different values"):
            compose(np.repeat(np.linspace(0.1, 0.2, values), times), 1e-5)


def test_a_search_leaves_a_plain_of_costs_just_above_the_budget_in_few_steps():
    asked = []

    def cost(noise):
        asked.append(noise)
        return 1 + 1e-12 if noise < 1e20 else 0.5

    assert accounting.calibrate(cost, 1.0, 1e-26, 1e26) == pytest.approx(1e20)
    assert len(asked) < 200
