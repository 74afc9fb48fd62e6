import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, signal, stats

from dpnotes import noisy_gradient_descent
from dpnotes._coins import flip
from dpnotes.accounting import compose_gaussian
from dpnotes.audit import epsilon_lower_bound
from dpnotes.noisy_gradient_descent import (
    DescentRelease,
    cost,
    fit,
    log_density,
    noise_for,
    shuffled_cost_at_least,
)

pytest.importorskip("dp_accounting")

# Rows so long that their gradients are clipped whatever a short path does: +1 or -1 by the label.
LONG = 1e3
TINY = {"clipping": 1.0, "step_size": 1e-9}


# The density of a path, and that fit draws from it.


def gradient_by_hand(w, row, label, clipping):
    """Return one clipped gradient of the logistic loss as its definition has it."""
    probability = (1 + math.tanh(float(np.dot(row, w)) / 2)) / 2
    gradient = (probability - label) * np.asarray(row, dtype=float)
    length = math.sqrt(sum(part**2 for part in gradient))
    return gradient * min(1.0, clipping / length) if length > 0 else gradient


def step_distribution(w, rows, labels, noise, rate, clipping, step_size):
    """Return weights, means and the deviation of the mixture that one step draws from."""
    weights, means = [], []
    for batch in itertools.product([False, True], repeat=len(rows)):
        chosen = [
            gradient_by_hand(w, rows[i], labels[i], clipping) for i, b in enumerate(batch) if b
        ]
        total = sum(chosen, np.zeros(len(w)))
        weights.append(rate ** sum(batch) * (1 - rate) ** (len(batch) - sum(batch)))
        means.append(w - step_size * total / (rate * len(rows)))
    return np.array(weights), np.array(means), step_size * noise * clipping / (rate * len(rows))


SETTINGS = {"noise": 0.7, "rate": 0.4, "clipping": 1.5, "step_size": 0.6}
ROWS, LABELS = [[4.0], [-0.5], [7.0]], [0, 1, 1]


def test_the_density_is_the_mixture_over_all_batches():
    w = np.array([0.3])
    weights, means, spread = step_distribution(w, ROWS, LABELS, **SETTINGS)
    for after in (-1.5, 0.0, 0.4, 3.0):
        expected = weights @ stats.norm.pdf(after, means[:, 0], spread)
        found = log_density([[0.3], [after]], ROWS, LABELS, **SETTINGS)
        assert found == pytest.approx(math.log(expected), rel=1e-12)


def test_the_density_of_a_path_is_the_product_over_its_steps():
    rows, labels = [[1.0, 2.0], [-3.0, 0.5]], [1, 0]
    path = np.array([[0.0, 0.0], [0.5, -0.2], [0.1, 0.9]])
    expected = 0.0
    for before, after in itertools.pairwise(path):
        weights, means, spread = step_distribution(before, rows, labels, **SETTINGS)
        expected += math.log(weights @ np.prod(stats.norm.pdf(after, means, spread), axis=1))
    found = log_density(path, rows, labels, **SETTINGS)
    assert found == pytest.approx(expected, rel=1e-12)


def test_densities_integrate_to_one_and_are_finite_at_the_ends():
    def density(after):
        return math.exp(log_density([[0.0], [after]], ROWS, LABELS, **SETTINGS))

    assert integrate.quad(density, -8, 8, limit=200)[0] == pytest.approx(1, abs=1e-7)
    least = {"noise": 0.01, "rate": 1.0, "clipping": 1e-20, "step_size": 1e-20}
    for settings in (SETTINGS, least):
        found = log_density([[0.0], [1e100]], ROWS, LABELS, **settings)
        assert -math.inf < found < -1e100


@pytest.mark.claim("noisy_gradient_descent.fit", kind="simulation with its error")
@pytest.mark.parametrize(("rows", "labels"), [(ROWS, LABELS), ([[2.0]], [1])])
def test_every_step_is_drawn_from_the_density(rows, labels):
    rng, steps = np.random.default_rng(4), 3
    uniform = np.empty((2000, steps))
    for values in uniform:
        path = fit(rows, labels, steps=steps, delta=1e-5, rng=rng, **SETTINGS).path
        for step, (before, after) in enumerate(itertools.pairwise(path)):
            weights, means, spread = step_distribution(before, rows, labels, **SETTINGS)
            values[step] = weights @ stats.norm.cdf(after, means[:, 0], spread)
    for step in range(steps):
        assert stats.kstest(uniform[:, step], "uniform").pvalue > 0.01
    # What one step draws tells nothing of another.
    correlations = np.corrcoef(uniform, rowvar=False)[np.triu_indices(steps, 1)]
    assert np.abs(correlations).max() < 4 / math.sqrt(len(uniform))


def test_the_noise_of_coordinates_is_independent_and_of_one_size():
    rows = np.zeros((5, 3))
    model = fit(rows, [0] * 5, steps=20_000, delta=1e-5, rng=1, **SETTINGS | {"rate": 1.0})
    noise = np.diff(model.path, axis=0) * 5 / 0.6 / (0.7 * 1.5)
    np.testing.assert_allclose(np.cov(noise, rowvar=False), np.eye(3), atol=0.05)


def test_a_path_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 3)) * 2, rng.integers(0, 2, 50)
    path = fit(rows, labels, steps=20, delta=1e-5, rng=7, **SETTINGS).path
    rng, w = np.random.default_rng(7), np.zeros(3)
    for after in path[1:]:
        batch = np.flatnonzero(flip(50, 0.4, rng))
        total = sum((gradient_by_hand(w, rows[i], labels[i], 1.5) for i in batch), np.zeros(3))
        w = w - 0.6 * (total + 0.7 * 1.5 * rng.standard_normal(3)) / (0.4 * 50)
        np.testing.assert_allclose(after, w, rtol=1e-10)
    assert np.array_equal(path[0], np.zeros(3))


def test_no_gradient_is_longer_than_the_clipping_and_short_ones_stay():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(500, 4)) * 10.0 ** rng.uniform(-3, 3, size=(500, 1))
    w, labels = rng.normal(size=4), rng.integers(0, 2, 500).astype(float)
    found = noisy_gradient_descent._clipped_gradients(w, rows, labels, 0.5)
    lengths = np.linalg.norm(found, axis=1)
    assert lengths.max() <= 0.5 * (1 + 1e-14)
    expected = [gradient_by_hand(w, row, y, 0.5) for row, y in zip(rows, labels, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert 0.1 < np.mean(lengths < 0.49) < 0.9


# What it costs: an accountant of our own.


def smallest_epsilon(losses, chances, delta):
    """Return the smallest epsilon of at least 0 that a distribution of losses promises."""

    def excess(epsilon):
        larger = losses > epsilon
        return float(chances[larger] @ -np.expm1(epsilon - losses[larger])) - delta

    return optimize.brentq(excess, 0.0, float(losses.max()))


def epsilon_of_pair(first, second, noise, steps, delta, cells=400_001, width=1e-3):
    """Return what steps of a pair of mixtures cost, each a list of (weight, mean).

    Losses are spread over a grid so that their mean stays, and composed by one transform.
    """
    x = np.linspace(-12 * noise - 3, 12 * noise + 3, cells)

    def log_mixture(parts):
        return np.logaddexp.reduce(
            [math.log(weight) + stats.norm.logpdf(x, mean, noise) for weight, mean in parts]
        )

    here = log_mixture(first)
    losses = here - log_mixture(second)
    chances = np.exp(here) * (x[1] - x[0])
    places = losses / width
    low = np.floor(places).astype(int)
    least, most = low.min(), low.max() + 1
    grid = np.bincount(low - least, chances * (low + 1 - places), most - least + 1)
    grid += np.bincount(low + 1 - least, chances * (places - low), most - least + 1)
    total, power = np.ones(1), steps
    offset, square, start = 0, grid, least
    while power:
        if power % 2:
            total, offset = signal.fftconvolve(total, square), offset + start
        power //= 2
        if power:
            square, start = signal.fftconvolve(square, square), 2 * start
            # What is far beyond all that counts would only cost time.
            kept = np.flatnonzero(square > 1e-13)
            square, start = square[kept[0] : kept[-1] + 1], start + kept[0]
    return smallest_epsilon((offset + np.arange(total.size)) * width, np.maximum(total, 0), delta)


def pairs(rate, neighbours):
    """Return the pairs of mixtures that a cost is to cover: one record with gradient +1 or -1."""
    inside = [(1 - rate, 0.0), (rate, 1.0)]
    other = {"replaced": [(1 - rate, 0.0), (rate, -1.0)], "added": [(1.0, 0.0)]}[neighbours]
    return [(inside, other), (other, inside)]


@pytest.mark.claim("noisy_gradient_descent.cost", kind="chosen cases")
@pytest.mark.parametrize(
    ("neighbours", "noise", "rate", "steps", "expected"),
    [
        ("replaced", 1.0, 0.01, 1000, 2.84),
        ("added", 1.0, 0.01, 1000, 1.83),
        ("replaced", 2.0, 0.2, 30, None),
        ("added", 2.0, 0.2, 30, None),
    ],
)
def test_the_cost_is_that_of_the_pair_by_an_accountant_of_our_own(
    neighbours, noise, rate, steps, expected
):
    found = float(cost(noise, rate, steps, 1e-5, neighbours=neighbours))
    own = [epsilon_of_pair(*pair, noise, steps, 1e-5) for pair in pairs(rate, neighbours)]
    assert found == pytest.approx(max(own), rel=5e-3)
    if expected:
        assert found == pytest.approx(expected, abs=5e-3)


def test_a_published_size_of_batches_makes_a_replaced_record_an_added_one_of_twice_the_length():
    # All gradients are -1, one may be +1: the sum is known but for this one, which moves it by 2.
    moved = [(0.99, 0.0), (0.01, 2.0)]
    own = epsilon_of_pair(moved, [(1.0, 0.0)], 1.0, 1000, 1e-5)
    assert own == pytest.approx(float(cost(0.5, 0.01, 1000, 1e-5, neighbours="added")), rel=5e-3)
    assert own > 4 * float(cost(1.0, 0.01, 1000, 1e-5))


def test_a_rate_of_one_is_the_gaussian_mechanism_with_twice_the_clipping():
    assert cost(4.0, 1.0, 10, 1e-5) == compose_gaussian(2.0, 10, 1e-5)
    assert cost(4.0, 1, 10, 1e-5, neighbours="added") == compose_gaussian(4.0, 10, 1e-5)
    nearly = float(cost(4.0, 1 - 1e-12, 10, 1e-5))
    assert nearly == pytest.approx(float(cost(4.0, 1.0, 10, 1e-5)), rel=1e-3)


@pytest.mark.claim("noisy_gradient_descent.noise_for", kind="chosen cases")
@pytest.mark.parametrize(
    ("epsilon", "rate", "steps", "neighbours"),
    [
        (1.0, 0.05, 20, "replaced"),
        (0.1, 0.05, 10, "added"),
        (30.0, 1.0, 2, "added"),
        (3.0, 1.0, 10, "replaced"),
    ],
)
def test_the_noise_for_a_budget_is_enough_and_hardly_more(epsilon, rate, steps, neighbours):
    noise = noise_for(epsilon, 1e-6, rate=rate, steps=steps, neighbours=neighbours)
    assert float(cost(noise, rate, steps, 1e-6, neighbours=neighbours)) <= epsilon
    assert float(cost(noise / 1.002, rate, steps, 1e-6, neighbours=neighbours)) > epsilon


def test_a_budget_for_hardly_any_noise_gets_the_least_and_one_for_too_much_is_refused():
    assert noise_for(1e5, 1e-5, rate=1.0, steps=1) == 0.01
    with pytest.raises(ValueError, match="epsilon must be large enough for noise of at most 1e"):
        noise_for(1e-9, 1e-9, rate=1.0, steps=10**6)


# The worst pair is the worst: the theorem of the page.


def divergence(first, second, noise, alpha):
    """Return the integral over the plane of the positive part of p - alpha q."""
    x = np.linspace(-7, 7, 401)
    plane = np.stack(np.meshgrid(x, x, indexing="ij"))

    def density(parts):
        return sum(
            weight
            * np.exp(-((plane - np.reshape(mean, (2, 1, 1))) ** 2).sum(axis=0) / 2 / noise**2)
            for weight, mean in parts
        )

    apart = density(first) - alpha * density(second)
    return np.maximum(apart, 0).sum() * (x[1] - x[0]) ** 2 / (2 * math.pi * noise**2)


@pytest.mark.claim("ngd-thm-worst", kind="chosen cases")
def test_no_two_gradients_are_easier_to_tell_apart_than_opposite_ones():
    rng, rate, noise = np.random.default_rng(2), 0.3, 0.8

    def neighbours(one, other):
        return ([(1 - rate, (0, 0)), (rate, one)], [(1 - rate, (0, 0)), (rate, other)])

    worst = neighbours((1, 0), (-1, 0))
    for alpha in (0.5, 1.0, 1.5, 2.5):
        most = divergence(*worst, noise, alpha)
        for _ in range(15):
            angles, lengths = rng.uniform(0, 2 * math.pi, 2), rng.uniform(0, 1, 2) ** 0.2
            one, other = (
                (r * math.cos(a), r * math.sin(a)) for a, r in zip(angles, lengths, strict=True)
            )
            assert divergence(*neighbours(one, other), noise, alpha) <= most + 1e-9


def delta_of_one_step(first, second, epsilon, rate, noise):
    """Return the exact delta of one step on two lists of records, by quadrature."""
    settings = {"noise": noise, "rate": rate, "clipping": 1.0, "step_size": 1.0}
    n = len(first)
    # From the sum back to the coefficient after the step.
    sums = np.linspace(-n - 7 * noise, n + 7 * noise, 301)

    def density(records):
        data = [[x] for x, _ in records], [label for _, label in records]
        paths = ([[0.0], [-s / (rate * n)]] for s in sums)
        return np.exp([log_density(path, *data, **settings) for path in paths]) / (rate * n)

    here, there = density(first), density(second)
    assert here.sum() * (sums[1] - sums[0]) == pytest.approx(1, abs=1e-6)
    return np.maximum(here - math.exp(epsilon) * there, 0).sum() * (sums[1] - sums[0])


@pytest.mark.claim("ngd-thm-worst", kind="quadrature with a bound")
@pytest.mark.claim("noisy_gradient_descent.cost", kind="quadrature with a bound")
@pytest.mark.parametrize("others", [[], [(LONG, 0)], [(LONG, 1), (1.0, 1)]])
def test_one_step_costs_what_is_stated_and_no_more_whatever_the_others_are(others):
    rate, noise, delta = 0.3, 1.2, 1e-2
    epsilon = float(cost(noise, rate, 1, delta))
    found = {}
    for one, other in itertools.permutations([(LONG, 0), (LONG, 1), (1.0, 0)], 2):
        sets = [one, *others], [other, *others]
        found[one, other] = delta_of_one_step(*sets, epsilon, rate, noise)
    assert max(found.values()) <= delta * (1 + 2e-3)
    if not others:
        # Two opposite gradients and nobody else: the worst there is.
        assert found[(LONG, 0), (LONG, 1)] == pytest.approx(delta, rel=5e-3)


# Audits.


def opposite(n):
    """Return neighbours of which all gradients are -1 but one, which is +1 in the first."""
    rows = np.full((n, 1), LONG)
    return (rows, np.array([0] + [1] * (n - 1))), (rows, np.ones(n, dtype=int))


@pytest.mark.claim("noisy_gradient_descent.fit", kind="audit")
@pytest.mark.parametrize(
    ("n", "steps", "rate", "noise", "seen"),
    [(1, 1, 0.5, 1.0, 0.6), (1, 3, 0.3, 1.0, 0.5), (2, 2, 0.5, 0.8, 0.3)],
)
def test_an_audit_finds_nearly_the_cost_and_no_more(n, steps, rate, noise, seen):
    stated = float(cost(noise, rate, steps, 1e-2))

    def increments(data, *, rng):
        model = fit(*data, noise=noise, rate=rate, steps=steps, delta=1e-2, rng=rng, **TINY)
        assert model.epsilon == stated
        return np.diff(model.path[:, 0]) / 1e-9

    found = epsilon_lower_bound(increments, *opposite(n), trials=3000, delta=1e-2, rng=0)
    assert seen * stated < found <= stated


def test_a_record_is_in_each_batch_by_itself():
    # Only the first record moves the path, and only in the first coordinate.
    rows = np.zeros((4, 1))
    rows[0] = LONG
    counts = []
    for seed in range(600):
        model = fit(rows, [1] * 4, noise=0.05, rate=0.25, steps=4, delta=1e-2, rng=seed, **TINY)
        counts.append(round(model.coefficients[0] / 1e-9))
    seen = np.bincount(counts, minlength=5)
    expected = 600 * stats.binom.pmf(np.arange(5), 4, 0.25)
    seen, expected = ([*counted[:3], counted[3:].sum()] for counted in (seen, expected))
    assert stats.chisquare(seen, expected).pvalue > 0.01


def test_records_join_batches_independently_of_each_other():
    rows = np.diag([LONG, LONG, LONG])
    model = fit(rows, [1] * 3, noise=0.05, rate=0.3, steps=3000, delta=1e-2, rng=3, **TINY)
    inside = np.round(np.diff(model.path, axis=0) / 1e-9 * 0.3 * 3)
    np.testing.assert_allclose(inside.mean(axis=0), 0.3, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(inside, rowvar=False), np.eye(3), atol=0.06)
    empty = np.mean(inside.sum(axis=1) == 0)
    assert empty == pytest.approx(0.7**3, abs=0.03)


def test_shuffled_batches_tell_more_than_the_accountant_says():
    def shuffled(data, *, rng):
        rows, labels = data
        gradients = np.where(labels == 1, -1.0, 1.0)[rng.permutation(len(rows))]
        return gradients + 0.7 * rng.standard_normal(len(rows))

    steps = 8
    stated = float(cost(0.7, 1 / steps, steps, 1e-2))
    found = epsilon_lower_bound(shuffled, *opposite(steps), trials=6000, delta=1e-2, rng=0)
    least = shuffled_cost_at_least(0.7, steps, 1e-2)
    assert stated < 0.7 * least
    assert stated < found


@pytest.mark.claim("noisy_gradient_descent.shuffled_cost_at_least", kind="chosen cases")
@pytest.mark.parametrize("batches", [1, 2, 50])
def test_the_bound_on_shuffling_is_that_of_an_event_and_exact_for_one_batch(batches):
    # With one batch it is the Gaussian mechanism, where a tail is the best event there is.
    bound = shuffled_cost_at_least(0.9, batches, 1e-3)
    if batches == 1:
        x = np.linspace(-5, 15, 20_001)
        above, moved = stats.norm.sf(x, 0, 0.9), stats.norm.sf(x, 2, 0.9)
        seen = moved > 1e-3
        expected = np.log((moved[seen] - 1e-3) / above[seen]).max()
        assert bound == pytest.approx(expected, rel=1e-3)
        assert bound <= float(compose_gaussian(0.45, 1, 1e-3))
    rng = np.random.default_rng(0)
    noise = 0.9 * rng.standard_normal((400_000, batches))
    level = np.quantile(noise.max(axis=1), 0.999)
    rare = np.mean(noise.max(axis=1) > level)
    noise[:, 0] += 2
    often = np.mean(noise.max(axis=1) > level)
    assert math.log((often - 1e-3) / rare) <= bound + 0.1


def test_a_bound_on_shuffling_is_never_negative_and_vanishes_under_noise():
    assert shuffled_cost_at_least(1e6, 10, 1e-5) == 0.0
    assert shuffled_cost_at_least(0.01, 10**6, 1e-5) > 300
    assert shuffled_cost_at_least(1.0, 100, 1e-5) == pytest.approx(5.40, abs=0.005)


# Public facts and extreme records.


def test_all_but_the_path_is_the_same_for_all_records():
    public, states = [], []
    for labels in itertools.product([0, 1], repeat=3):
        for rows in ([[0.0], [1.0], [LONG]], [[1e100], [-1e100], [1e-300]], [[0.0]] * 3):
            rng = np.random.default_rng(5)
            model = fit(rows, labels, steps=6, delta=1e-5, rng=rng, **SETTINGS)
            assert np.all(np.isfinite(model.path))
            public.append((model.epsilon, model.delta, model.mechanism, model.neighbours))
            states.append(rng.bit_generator.state)
    assert all(part == public[0] for part in public)
    assert all(state == states[0] for state in states)


@pytest.mark.parametrize("size", [1e100, 1e-200, 5e-324, 1.0])
@pytest.mark.parametrize("extreme", [1e-20, 1e20])
def test_no_valid_record_makes_a_path_that_is_not_finite(size, extreme):
    rows = size * np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(12, 3))
    for noise, rate in ((1e6, 1e-9), (0.01, 1.0)):
        settings = {"noise": noise, "rate": rate, "clipping": extreme, "step_size": extreme}
        model = fit(rows, [0, 1] * 6, steps=50, delta=1e-5, rng=1, **settings)
        assert np.all(np.isfinite(model.path))
        assert not math.isnan(log_density(model.path[:3], rows, [0, 1] * 6, **settings))


def test_a_feature_may_be_a_boolean_among_numbers():
    mixed, numbers = (
        log_density([[0.0], [0.3]], [[first], [0.5]], [0, 1], **SETTINGS) for first in (True, 1.0)
    )
    assert mixed == numbers


def test_a_cost_of_nothing_is_stated_as_more_than_nothing():
    model = fit([[1.0]], [1], noise=1e6, rate=1e-9, steps=1, delta=0.5, rng=0)
    assert 0 < model.epsilon < 1e-3


def test_the_certificate_says_the_cost_delta_and_neighbours():
    model = fit(ROWS, np.array(LABELS, dtype=bool), steps=5, delta=1e-4, rng=0, **SETTINGS)
    assert model.epsilon == float(cost(0.7, 0.4, 5, 1e-4))
    assert model.delta == 1e-4
    assert model.neighbours == "one record replaced; the number of records is public"
    assert (
        model.mechanism == "5 sums of clipped gradients over Poisson batches, with Gaussian noise"
    )
    assert np.array_equal(model.coefficients, model.path[5])
    assert model.path.shape == (6, 1)


def test_a_release_cannot_be_changed():
    given = np.array([[0, 0], [1, 2]])
    promise = {"epsilon": 1.0, "delta": 1e-5, "mechanism": "noise", "neighbours": "one replaced"}
    model = DescentRelease(path=given, **promise)
    given[1] = 7
    assert model.coefficients.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        model.path[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.epsilon = 0.1


def test_too_many_records_for_a_density_are_refused():
    with pytest.raises(ValueError, match="features must hold at most 12 records, got 13"):
        log_density([[0.0], [1.0]], [[1.0]] * 13, [1] * 13, noise=1.0, rate=0.5)
