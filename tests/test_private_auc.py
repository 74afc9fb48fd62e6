import dataclasses
import itertools
import math
import os
import warnings
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from dpnotes import audit, private_auc
from dpnotes.private_auc import (
    METRICS,
    MetricNoise,
    MetricRelease,
    ap_local_sensitivity,
    ap_smooth_sensitivity,
    auc,
    auc_local_sensitivity,
    auc_smooth_sensitivity,
    average_precision,
    best_beta,
    binormal_roc,
    cauchy_epsilon,
    cauchy_scale,
    choose_noise,
    interval,
    log_density,
    metric_interval,
    reidentify_label,
    release_auc,
    release_average_precision,
    smooth_sensitivity,
    student_t_scale,
)
from dpnotes.private_auc.metrics import METRIC
from dpnotes.private_auc.noise import _laplace_change, _pareto_change, student_t_epsilon

METRIC_OF = {release_auc: auc, release_average_precision: average_precision}
RELEASES = list(METRIC_OF)
BETAS = [0.01, 0.05, 0.1, 1 / 6, 0.5, 2.0]
BOUNDS = {"auc": lambda k: 1 / max(k, 1), "average precision": ap_local_sensitivity}


def make_noise(degrees, epsilon, metric="auc", delta=0.0, family=None):
    """Return Student t noise, or with no degrees of freedom Laplace noise."""
    family = family or {0: "laplace", 1: "cauchy"}.get(degrees, "student-t")
    return MetricNoise(metric=metric, family=family, degrees=degrees, epsilon=epsilon, delta=delta)


# A data set is its levels of score from the highest down, each with its number of positives and of
# negatives: all that either metric looks at.

level = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)
data_sets = st.lists(level, min_size=1, max_size=8).map(tuple)


def as_records(levels):
    labels = np.repeat(np.tile([1, 0], len(levels)), np.ravel(levels))
    return labels, np.repeat(-np.arange(len(levels), dtype=float), np.sum(levels, axis=1))


def counts(levels):
    return tuple(sum(level[i] for level in levels) for i in (0, 1))


@cache
def exact_auc(levels, ties, missing=Fraction(1, 2)):
    n, m = counts(levels)
    if n * m == 0:
        return missing
    won = sum(p * q for (p, _), (_, q) in itertools.combinations(levels, 2))
    tied = sum(p * q for p, q in levels) if ties == "half" else 0
    return Fraction(2 * won + tied, 2 * n * m)


@cache
def exact_average_precision(levels, ties, missing=Fraction(0)):
    n, _ = counts(levels)
    if n == 0:
        return missing
    if ties == "pessimistic":
        levels = [one for p, q in levels for one in [(0, q)] + [(1, 0)] * p]
    found = passed = total = Fraction(0)
    for p, q in levels:
        found, passed = found + p, passed + p + q
        total += p and p * found / passed
    return total / n


EXACT = {"auc": exact_auc, "average precision": exact_average_precision}


@pytest.mark.parametrize(("block", "sparse"), [(1 << 14, 8), (1, 99), (2, 1), (3, 0)])
@given(levels=data_sets)
def test_the_auc_is_exact_however_its_pairs_are_counted(block, sparse, levels):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_auc.metrics, "_BLOCK", block)
        patch.setattr(private_auc.metrics, "_SPARSE", sparse)
        for ties in METRIC["auc"].ties if all(counts(levels)) else ():
            assert auc(*as_records(levels), ties=ties) == float(exact_auc(levels, ties))


@given(levels=data_sets, factor=st.sampled_from([1.0, 1e-300, 1e300]))
def test_by_default_both_metrics_are_scikit_learns(levels, factor):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores = as_records(levels)[0], factor * as_records(levels)[1]
    if labels.any():
        expected = metrics.average_precision_score(labels, scores)
        assert average_precision(labels, scores) == pytest.approx(expected, abs=1e-14)
    if labels.any() and not labels.all():
        assert auc(labels, scores) == pytest.approx(
            metrics.roc_auc_score(labels, scores), abs=1e-14
        )


def test_ten_thousand_million_pairs_are_counted_exactly():
    n = 100_000
    labels = np.repeat(np.array([0, 1], dtype=np.int8), n)
    scores = np.tile(np.arange(n) // 2, 2)
    # Each positive of level k is above 2k negatives and ties with 2.
    assert auc(labels, scores) == float(Fraction(sum(2 * k + 1 for k in range(n // 2)), n * n) * 2)


@pytest.mark.parametrize("kinds", [("?", "f2"), ("u1", ">f8"), (">i4", "longdouble"), ("i8", "u8")])
def test_the_type_of_labels_and_scores_does_not_matter(kinds):
    lists = [0, 1, 1, 0, 1], [0, 1, 0, 1, 1]
    arrays = [np.array(column, dtype=kind) for column, kind in zip(lists, kinds, strict=True)]
    series = pd.Series(lists[0], index=[9, 8, 7, 6, 5]), pd.Series(lists[1])
    for metric in (auc, average_precision):
        assert metric(*lists) == metric(*arrays) == metric(*series)


def test_large_whole_scores_are_not_rounded_into_ties():
    assert auc([0, 1], np.array([2**60, 2**60 + 1])) == 1.0
    assert auc([0, 1], np.array([2**64 - 2, 2**64 - 1], dtype=np.uint64)) == 1.0
    assert auc([0, 1], [-0.0, 0.0]) == 0.5


def test_a_record_with_a_fraction_does_not_make_ties_of_all_others():
    labels, scores = [0, 0, 0, 1, 1, 1], [2**60 + i for i in range(6)]
    for neighbour in (0.5, 2.0**61, np.longdouble(0.5)):
        changed = [*scores[:5], neighbour]
        assert abs(auc(labels, scores) - auc(labels, changed)) <= auc_local_sensitivity(3, 3)
        apart = average_precision(labels, scores) - average_precision(labels, changed)
        assert abs(apart) <= ap_local_sensitivity(3)


# Sensitivities, over all data sets.


def weak_orders(n):
    """Return all data sets of n records, with all ties."""
    if n == 0:
        return [()]
    return [
        ((positives, size - positives), *rest)
        for size in range(1, n + 1)
        for positives in range(size + 1)
        for rest in weak_orders(n - size)
    ]


def without_one(levels):
    for i, (positives, negatives) in enumerate(levels):
        for p, q in ((positives - 1, negatives), (positives, negatives - 1)):
            if min(p, q) >= 0:
                yield levels[:i] + (((p, q),) if p + q else ()) + levels[i + 1 :]


def with_one(levels, ties):
    for new in ((1, 0), (0, 1)):
        for i in range(len(levels) + 1):
            yield (*levels[:i], new, *levels[i:])
            if ties and i < len(levels):
                merged = (levels[i][0] + new[0], levels[i][1] + new[1])
                yield (*levels[:i], merged, *levels[i + 1 :])


def neighbours(levels, ties=True):
    return {other for core in set(without_one(levels)) for other in with_one(core, ties)}


def worst_changes(metric, n, with_ties, **options):
    """Return the largest change for every number of positives, exactly."""
    worst = dict.fromkeys(range(n + 1), Fraction(0))
    strict = itertools.product([(1, 0), (0, 1)], repeat=n)
    for levels in weak_orders(n) if with_ties else strict:
        here = EXACT[metric](levels, **options)
        others = [EXACT[metric](other, **options) for other in neighbours(levels, with_ties)]
        positives = counts(levels)[0]
        worst[positives] = max(worst[positives], *(abs(other - here) for other in others))
    return worst


@pytest.mark.claim("auc-thm-auc", kind="all cases in exact numbers")
@pytest.mark.claim("private_auc.auc_local_sensitivity", kind="all cases in exact numbers")
@pytest.mark.parametrize("n", range(2, 9))
def test_the_local_sensitivity_of_the_auc_is_one_over_the_smaller_class(n):
    for positives, worst in worst_changes("auc", n, with_ties=False, ties="half").items():
        smaller = min(positives, n - positives)
        if smaller:
            assert worst == Fraction(1, smaller)
            assert auc_local_sensitivity(positives, n - positives) == float(worst)
        assert worst <= 1 == auc_local_sensitivity(0, n) == auc_local_sensitivity(n, 0)


@pytest.mark.claim("auc-thm-auc", "auc-thm-ap", kind="all cases in exact numbers")
@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("metric", METRICS)
def test_no_way_of_ties_has_a_larger_sensitivity(n, metric):
    # A change is convex in what a missing class counts for, so the largest is at 0 or 1.
    for ties, missing in itertools.product(METRIC[metric].ties, (Fraction(0), Fraction(1))):
        changes = worst_changes(metric, n, with_ties=True, ties=ties, missing=missing)
        for positives, worst in changes.items():
            decides = METRIC[metric].size(positives, n - positives)
            assert worst <= BOUNDS[metric](decides) + 1e-15


@pytest.mark.claim("auc-thm-ap", kind="all cases in exact numbers")
@pytest.mark.claim("private_auc.ap_local_sensitivity", kind="all cases in exact numbers")
@pytest.mark.parametrize("n", range(1, 9))
def test_the_local_sensitivity_of_average_precision_is_the_formula(n):
    worst = worst_changes("average precision", n, with_ties=False, ties="pessimistic")
    for positives, change in worst.items():
        found = ap_local_sensitivity(positives, n - positives)
        assert found == pytest.approx(float(change), abs=1e-14)
        assert found <= ap_local_sensitivity(positives) + 1e-15


def test_the_sensitivities_of_average_precision_are_their_sums():
    for n in range(2, 60):
        relabelled = sum(Fraction(1, i) for i in range(2, n + 1)) / (n - 1)
        odd = sum(Fraction(1, 2 * j + 1) for j in range(1, n))
        bound = max(relabelled, (1 + odd / 2) / n)
        assert ap_local_sensitivity(n) == pytest.approx(float(bound), rel=1e-14)
        for m in (0, 1, n - 1, n, n + 1, 200):
            meets = enumerate([min(j, m) for j in range(1, n)], 1)
            fall = sum(Fraction(a, (j + a) * (j + 1 + a)) for j, a in meets)
            exact = max(relabelled, (Fraction(m, n + m) + fall) / n)
            assert ap_local_sensitivity(n, m) == pytest.approx(float(exact), rel=1e-13)


# Smoothness.


@pytest.mark.claim("private_auc.auc_smooth_sensitivity", kind="enumeration")
@pytest.mark.claim("private_auc.ap_smooth_sensitivity", kind="enumeration")
@pytest.mark.parametrize("beta", BETAS)
def test_the_smooth_sensitivities_are_the_largest_discounted_ones(beta):
    for size in range(60):
        steps = range(size + 1)
        expected = max(math.exp(-beta * d) / max(size - d, 1) for d in steps)
        assert auc_smooth_sensitivity(size, 500, beta) == pytest.approx(expected, rel=1e-12)
        assert auc_smooth_sensitivity(500, size, beta) == pytest.approx(expected, rel=1e-12)
        expected = max(math.exp(-beta * d) * ap_local_sensitivity(size - d) for d in steps)
        assert ap_smooth_sensitivity(size, beta) == pytest.approx(expected, rel=1e-12)


def test_the_bound_on_average_precision_is_log_convex():
    values = np.log([ap_local_sensitivity(n) for n in range(1, 3000)])
    assert np.all(np.diff(values, 2) >= -1e-13)
    assert np.all(np.diff(values) < 0)


@pytest.mark.claim("auc-thm-smooth", kind="enumeration")
@pytest.mark.claim("private_auc.auc_smooth_sensitivity", kind="enumeration")
@pytest.mark.claim("private_auc.ap_smooth_sensitivity", kind="enumeration")
@pytest.mark.parametrize("n", [1, 2, 7, 40, 800])
@pytest.mark.parametrize("beta", BETAS)
def test_between_neighbours_the_smooth_sensitivity_changes_by_a_factor_of_e_to_the_beta(beta, n):
    sizes = [(k, n - k) for k in range(n + 1)]
    of_auc = [(auc_smooth_sensitivity(*s, beta), auc_local_sensitivity(*s)) for s in sizes]
    of_ap = [(ap_smooth_sensitivity(k, beta), ap_local_sensitivity(k)) for k, _ in sizes]
    for smooth, local in np.transpose([of_auc, of_ap], (0, 2, 1)):
        assert np.all(np.abs(np.diff(np.log(smooth))) <= beta + 1e-12)
        assert np.all(smooth >= local)


# Cauchy noise.


@pytest.mark.claim("private_auc.cauchy_epsilon", kind="quadrature with a bound")
@pytest.mark.claim("auc-thm-distance", "auc-thm-student", kind="quadrature with a bound")
@given(st.integers(1, 9), st.floats(-3, 3), st.floats(0.1, 9), st.floats(0.1, 9))
def test_the_loss_between_two_noises_is_the_largest_log_ratio(degrees, shift, scale, other_scale):
    exact = student_t_epsilon(0.0, scale, shift, other_scale, degrees)
    wide = np.tan(np.linspace(-1.57079, 1.57079, 20_001))
    outputs = np.concatenate([scale * wide, shift + other_scale * wide])
    here, there = stats.t(degrees, 0.0, scale), stats.t(degrees, shift, other_scale)
    found = np.abs(here.logpdf(outputs) - there.logpdf(outputs)).max()
    assert exact * (1 - 1e-3) - 1e-3 <= found <= exact + 1e-9
    assert degrees > 1 or exact == cauchy_epsilon(0.0, scale, shift, other_scale)


def worst_loss(c, beta, degrees=1):
    """Return the largest loss of noise c S, over all values that a neighbour may have."""
    ratios = np.exp(np.linspace(-beta, beta, 201))
    return max(student_t_epsilon(0.0, c, min(1.0, r), c * r, degrees) for r in ratios)


@pytest.mark.claim("private_auc.cauchy_scale", kind="quadrature with a bound")
@pytest.mark.claim("private_auc.student_t_scale", kind="quadrature with a bound")
@pytest.mark.claim("auc-thm-calibration", "auc-thm-student", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("degrees", [1, 2, 5, 9, 1000])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.6, 0.99])
def test_the_exact_calibration_spends_all_of_epsilon_and_no_more(epsilon, degrees, share):
    beta = share * epsilon / degrees
    c = student_t_scale(epsilon, beta, degrees)
    assert degrees > 1 or c == cauchy_scale(epsilon, beta)
    assert worst_loss(c, beta, degrees) == pytest.approx(epsilon, rel=1e-9)
    assert worst_loss(0.999 * c, beta, degrees) > epsilon * (1 + 1e-6)


@pytest.mark.claim("auc-thm-calibration", kind="chosen cases")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_exact_calibration_is_its_formula(epsilon):
    for beta in (epsilon / 100, epsilon / 6, 0.9 * epsilon):
        spread = math.exp(-beta) / (2 * (math.cosh(epsilon) - math.cosh(beta)))
        expected = max(1 / (2 * math.sinh(epsilon / 2)), math.sqrt(spread))
        assert cauchy_scale(epsilon, beta) == pytest.approx(expected, rel=1e-12)


def test_the_calibration_of_the_source_is_private_and_wasteful_at_any_epsilon():
    for epsilon in (0.01, 0.1, 0.5, 1.0, 3.0, 20.0):
        c = cauchy_scale(epsilon, epsilon / 6, calibration="nissim")
        assert worst_loss(c, epsilon / 6) < 0.4 * epsilon
    assert worst_loss(6.0, 1 / 6) == pytest.approx(0.22614, abs=5e-6)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 64.0, 65.0, 700.0, 1e300])
def test_the_noise_is_positive_and_finite_at_any_epsilon(epsilon):
    beta = best_beta(epsilon, 100)
    assert 0 < beta < epsilon
    for c in (cauchy_scale(epsilon, beta), cauchy_scale(epsilon, 0.999 * epsilon)):
        assert 0 < c < 1e12
    assert release_auc([0, 1], [1, 2], epsilon, rng=0).epsilon == epsilon


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.7, 2.0, 30.0])
@pytest.mark.parametrize("guess", [1, 2, 5, 100, 3000, 10**7])
@pytest.mark.parametrize("metric", METRICS)
def test_no_other_beta_makes_the_noise_smaller_at_the_guess(epsilon, guess, metric):
    def noise(beta):
        return math.log(
            cauchy_scale(epsilon, beta) * smooth_sensitivity(guess, beta, metric=metric)
        )

    chosen = best_beta(epsilon, guess, metric=metric)
    grid = epsilon * np.concatenate([np.geomspace(1e-6, 0.5, 300), np.linspace(0.5, 0.9999, 300)])
    around = optimize.minimize_scalar(noise, bounds=(0.5 * chosen, min(2 * chosen, 0.99 * epsilon)))
    assert noise(chosen) <= min(*map(noise, grid), around.fun) + 1e-9


@pytest.mark.parametrize(("epsilon", "guess"), [(1.0, 10**6), (0.1, 10**6), (5.0, 100)])
def test_beta_at_a_wrong_guess_is_as_large_as_it_may_be_for_nothing(epsilon, guess):
    flat = min(math.log(2 * math.cosh(epsilon) - 1), math.log(2))
    assert best_beta(epsilon, guess) == pytest.approx(flat, rel=1e-9)


@pytest.mark.parametrize("guess", [2, 100, 1000])
def test_the_best_beta_of_a_tiny_epsilon_keeps_its_digits(guess):
    # Of log(1 + growth), growth = (2 guess - 1) epsilon^2 / 2 is what is left.
    epsilon = 1e-7
    assert best_beta(epsilon, guess) == pytest.approx((2 * guess - 1) * epsilon**2 / 2, 1e-6, abs=0)


# Student t noise.


def student_t_loss(apart, scale, other_scale, degrees):
    """Return the loss of `student_t_epsilon` in as many digits as mpmath works with."""
    apart, s, t = map(mpmath.mpf, (apart, scale, other_scale))
    squared = (apart**2 / degrees + (s - t) ** 2) / (4 * s * t)
    distance = 2 * mpmath.asinh(mpmath.sqrt(squared))
    return ((degrees + 1) * distance + (degrees - 1) * abs(mpmath.log(s / t))) / 2


@pytest.mark.claim("private_auc.cauchy_epsilon", kind="chosen cases")
@pytest.mark.parametrize("degrees", [1, 3, 1000])
def test_the_loss_has_its_digits_wherever_doubles_are(degrees):
    values = [0.0, 5e-324, 1e-160, 1.0, -1.7e308]
    scales = [5e-324, 2e-290, 1e-160, 1.0, 1.7e308]
    for value, other, scale, other_scale in itertools.product(values, values, scales, scales):
        with mpmath.workdps(700):
            loss = student_t_loss(mpmath.mpf(value) - other, scale, other_scale, degrees)
        found = student_t_epsilon(value, scale, other, other_scale, degrees)
        assert found == pytest.approx(float(loss), rel=1e-13, abs=1e-30)
        assert degrees > 1 or found == cauchy_epsilon(value, scale, other, other_scale)


# Laplace noise.


def worst_delta(epsilon, c, beta):
    """Return the largest delta of noise c S, over the values that a neighbour may have."""
    here, found = stats.laplace(0, c), []
    for ratio in np.exp(np.array([-1, -0.9, 0, 0.5, 1]) * beta):
        shift = min(1, ratio)
        there = stats.laplace(shift, c * ratio)
        found.append(audit.density_delta(here, there, epsilon, turning_points=[0, shift]).upper)
    return max(found)


@pytest.mark.claim("auc-thm-laplace", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 15.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.3, 0.9])
def test_laplace_noise_has_at_most_the_delta_that_it_states(epsilon, delta):
    steepest = math.log1p(epsilon / max(1.0, -math.log(delta)))
    for beta in (1e-6, 0.5 * steepest):
        c = 1 / _laplace_change(epsilon, delta, beta)
        assert worst_delta(epsilon, c, beta) <= delta * (1 + 1e-6)
    # The theorem of the chapter: l = log(1 / delta), where the first edition had log(2 / delta).
    beta = math.log1p(epsilon / 2 / max(1.0, -math.log(delta)))
    assert _laplace_change(epsilon, delta, beta) >= epsilon / 2 * (1 - 1e-12)
    assert worst_delta(epsilon, 2 / epsilon, beta) <= delta * (1 + 1e-6)


def test_laplace_noise_that_is_too_small_spends_more_than_its_delta():
    c = 1 / _laplace_change(1.0, 1e-6, 0.05)
    assert worst_delta(1.0, 0.6 * c, 0.05) > 1e-6 > worst_delta(1.0, c, 0.05) > 1e-8
    # The beta of the source is too large for a large epsilon.
    found = worst_delta(15.0, 2 / 15, 15 / (2 * math.log(2 / 1e-9)))
    assert found == pytest.approx(1.095e-9, rel=1e-3)


# Pareto noise.


def pareto_loss(apart, scale, other_scale, degrees):
    """Return the largest log-ratio of two Pareto densities: at a centre or at infinity."""
    apart, s, t = map(mpmath.mpf, (apart, scale, other_scale))
    wider, power = abs(mpmath.log(s / t)), degrees + 1
    ahead = power * mpmath.log1p(abs(apart) / max(s, t))
    behind = power * mpmath.log1p(abs(apart) / min(s, t))
    return max(wider + ahead, behind - wider, degrees * wider)


@pytest.mark.claim("auc-thm-pareto", kind="chosen cases")
@given(
    degrees=st.integers(1, 200),
    apart=st.floats(0, 30),
    wider=st.floats(-4, 4),
    place=st.floats(-60, 60),
)
def test_no_log_ratio_of_pareto_densities_is_above_their_loss(degrees, apart, wider, place):
    def log_density(x, scale):
        return -(degrees + 1) * math.log1p(abs(x) / scale) - math.log(scale)

    loss = float(pareto_loss(apart, 1, math.exp(wider), degrees))
    ratio = log_density(place, 1) - log_density(place - apart, math.exp(wider))
    assert abs(ratio) <= loss * (1 + 1e-12) + 1e-12
    ends = [0.0, apart, 1e200]
    ratios = [log_density(x, 1) - log_density(x - apart, math.exp(wider)) for x in ends]
    assert max(map(abs, ratios)) == pytest.approx(loss, rel=1e-6, abs=1e-9)


@pytest.mark.claim("auc-thm-pareto", kind="chosen cases")
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("degrees", [1, 20, 200])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.99])
def test_pareto_noise_spends_all_of_epsilon_and_no_more(epsilon, degrees, share):
    beta = share * epsilon / degrees
    change = _pareto_change(epsilon, degrees, beta)
    rates = np.linspace(-beta, beta, 41)

    def worst(apart):
        found = (pareto_loss(apart * min(1, math.exp(u)), 1, math.exp(u), degrees) for u in rates)
        return float(max(found))

    assert worst(change) == pytest.approx(epsilon, rel=1e-9)
    assert worst(1.001 * change) > epsilon * (1 + 1e-6)


@pytest.mark.claim("private_auc.choose_noise", kind="chosen cases")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pareto_noise_is_taken_where_it_wins_and_nowhere_else(epsilon):
    for size in (int(10 / epsilon), int(30 / epsilon), int(200 / epsilon), int(3000 / epsilon)):
        kinds = {kind: choose_noise(10**6, epsilon, noise=kind, guess=size).error(size)
                 for kind in ("auto", "cauchy", "student-t", "pareto")}  # fmt: skip
        assert kinds["auto"] == min(kinds.values())
        assert epsilon > 2 or (kinds["pareto"] < kinds["student-t"]) == (size * epsilon > 100)
    # An error of 0.01 at epsilon 1, without a delta, where a quarter is positive.
    assert choose_noise(1252, 1.0, guess=313).error(313) < 0.01
    assert choose_noise(1252, 1.0, noise="student-t", guess=313).error(313) > 0.0109


# The smallest scales.


@pytest.mark.claim("private_auc.MetricNoise.scale", kind="chosen cases")
@pytest.mark.claim("private_auc.release_auc", kind="chosen cases")
@pytest.mark.claim("private_auc.release_average_precision", kind="chosen cases")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("family", "degrees"),
    [(None, 1), (None, 2), (None, 5), (None, 1000), *(("pareto", v) for v in (1, 20, 1000))],
)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-6, 0.01, 0.5, 3.0, 60.0, 64.0])
def test_no_step_from_size_to_size_costs_more_than_epsilon(metric, family, degrees, epsilon):
    noise = make_noise(degrees, epsilon, metric, family=family)
    loss = pareto_loss if family else student_t_loss
    sizes = [*range(1, 300), *range(64_000, 64_100), 10**6, 10**6 + 1]
    scales = {k: noise.scale(k) for k in sizes}
    with mpmath.workdps(40):
        worst = max(
            loss(BOUNDS[metric](k), scales[other], scales[k], degrees)
            for k in sizes
            for other in {k, k - 1} & scales.keys()
        )
    # Rounding is paid for with little, and all else is spent at the very first sizes already.
    assert epsilon * (1 - 1e-5) - degrees * 1e-15 <= worst <= epsilon


@pytest.mark.claim("private_auc.MetricNoise.scale", kind="chosen cases")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-6, 0.01, 10.0])
@pytest.mark.parametrize("delta", [5e-324, 1e-100, 1e-6, 0.5])
def test_no_rounding_of_scales_breaks_a_condition_of_laplace_noise(metric, epsilon, delta):
    noise = make_noise(0, epsilon, metric, delta)
    with mpmath.workdps(40):
        assert mpmath.mpf(noise.scale(1)) * epsilon >= 1
        for k in [*range(2, 80), *range(64_000, 64_020)]:
            wide, narrow = mpmath.mpf(noise.scale(k - 1)), mpmath.mpf(noise.scale(k))
            rate = mpmath.log(wide / narrow)
            needed = BOUNDS[metric](k) / narrow
            assert needed <= epsilon
            assert needed <= wide / narrow * (epsilon - rate)
            assert needed <= epsilon + rate + mpmath.log(delta) * mpmath.expm1(rate)


@pytest.mark.claim("auc-thm-smallest", kind="chosen cases")
@pytest.mark.parametrize("epsilon", [0.03, 0.1, 1.0, 5.0])
def test_cauchy_noise_has_the_smallest_scale_of_all_at_every_size(epsilon):
    noise, least = make_noise(1, epsilon), math.inf
    for size in range(1, 2001):
        # As the chapter proves it, size by size.
        floor = 1 / (2 * size * math.sinh(epsilon / 2))
        if size > 1:
            root = math.sqrt((least * math.sinh(epsilon)) ** 2 - 1 / size**2)
            floor = max(floor, least * math.cosh(epsilon) - root)
        least = floor
        # From 64 on it falls in steps: less than a hundredth is lost.
        assert least <= noise.scale(size) <= (1.0001 if size < 64 else 1.01) * least


@pytest.mark.claim("private_auc.smooth_sensitivity", kind="chosen cases")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("degrees", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
def test_no_smooth_sensitivity_has_less_noise_than_the_smallest_scale(metric, degrees, epsilon):
    noise = make_noise(degrees, epsilon, metric)
    for beta in epsilon / degrees * np.linspace(0.02, 0.98, 25):
        c = student_t_scale(epsilon, beta, degrees)
        for size in (1, 2, 5, 20, 70, 300, 4000):
            smooth = smooth_sensitivity(size, beta, metric=metric)
            assert noise.scale(size) <= 1.001 * c * smooth


def worst_loss_over_data_sets(n, scale_of, degrees, family=None):
    """Return the largest loss of an AUC with noise, over all data sets of n records."""
    found = {o: (float(exact_auc(o, "half")), scale_of(min(counts(o)))) for o in weak_orders(n)}
    pairs = {(found[one], found[other]) for one in found for other in neighbours(one)}
    if family == "pareto":
        return max(pareto_loss(a - b, s, t, degrees) for (a, s), (b, t) in pairs)
    return max(student_t_epsilon(*one, *other, degrees) for one, other in pairs)


@pytest.mark.claim("auc-thm-smallest", "private_auc.release_auc", kind="enumeration")
@pytest.mark.parametrize(("degrees", "family"), [(1, None), (2, None), (5, None), (20, "pareto")])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_two_data_sets_of_up_to_six_records_lose_more_than_epsilon(degrees, family, epsilon):
    noise = make_noise(degrees, epsilon, family=family)
    for n in (1, 2, 3, 4, 5, 6) if epsilon == 1.0 else (4, 5):
        assert worst_loss_over_data_sets(n, noise.scale, degrees, family) <= epsilon


@pytest.mark.parametrize(("degrees", "family"), [(1, None), (3, None), (5, None), (20, "pareto")])
def test_broken_copies_lose_more_than_epsilon_between_some_data_sets(degrees, family):
    noise = make_noise(degrees, 0.5, family=family)
    steep = 1.05 * 0.5 / degrees
    for scale_of in (
        lambda k: 0.99 * noise.scale(k),
        lambda k: noise.scale(1) * auc_local_sensitivity(k, k),
        lambda k: noise.scale(1) * auc_smooth_sensitivity(k, k, steep),
    ):
        assert worst_loss_over_data_sets(5, scale_of, degrees, family) > 0.5 * (1 + 1e-3)


# The choice of a family.


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("guess", [1, 10, 100, 1000, 50_000])
def test_with_a_guess_no_family_has_a_smaller_error_there(epsilon, guess):
    chosen = choose_noise(10**5, epsilon, guess=guess).error(guess)
    # More than five degrees of freedom are never better by more than a hundredth.
    assert chosen <= 1.01 * min(make_noise(v, epsilon).error(guess) for v in range(1, 12))
    laplace = make_noise(0, epsilon, delta=1e-6).error(guess)
    either = choose_noise(10**5, epsilon, guess=guess, delta=1e-6)
    assert either.error(guess) == min(chosen, laplace)
    assert either.delta == (1e-6 if laplace < chosen else 0.0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("epsilon", [0.03, 0.1, 1.0, 10.0])
def test_without_a_guess_the_error_is_at_most_a_sixth_above_that_of_a_right_guess(metric, epsilon):
    for n in (1000, 10**5, 10**6):
        chosen = choose_noise(n, epsilon, metric=metric)
        for size in np.unique(np.geomspace(1, n // 2, 25).astype(int)).tolist():
            right = choose_noise(n, epsilon, metric=metric, guess=size).error(size)
            assert right > 0.1 or chosen.error(size) <= 7 / 6 * right


@pytest.mark.parametrize(("family", "degrees"), [("laplace", 0), ("cauchy", 2)])
def test_noise_is_refused_that_does_not_fit_together(family, degrees):
    with pytest.raises(ValueError, match=" must be "):
        MetricNoise(metric="auc", epsilon=1.0, family=family, degrees=degrees)


# Releases.

RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 2, 80)
SCORES = RNG.normal(size=80) + LABELS
LAPLACE = {"noise": "laplace", "delta": 1e-6}
FAMILIES = [{}, {"noise": "cauchy"}, {"noise": "student-t"}, {"noise": "pareto"},
            {"calibration": "nissim"}]  # fmt: skip
EVERY_NOISE = [*FAMILIES, LAPLACE, {"guess": 1}]


def test_a_release_says_what_was_spent_and_not_what_was_allowed():
    spent = release_auc(LABELS, SCORES, 0.5, **LAPLACE, rng=0)
    assert (spent.epsilon, spent.delta, spent.n, spent.guess) == (0.5, 1e-6, 80, None)
    assert spent.mechanism.startswith("Laplace noise of the smallest scale")
    kept = release_auc(LABELS, SCORES, 0.5, delta=1e-6, guess=20, rng=0)
    assert (kept.delta, kept.noise.family, kept.guess) == (0.0, "student-t", 20)
    assert kept.mechanism.startswith("Student t noise (2 degrees of freedom)")
    source = release_auc(LABELS, SCORES, 0.6, calibration="nissim", rng=0)
    assert source.mechanism == "Cauchy noise of 10 smooth sensitivities, beta epsilon / 6"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", EVERY_NOISE)
@pytest.mark.parametrize("epsilon", [1e20, 1e300, 1.7e308])
def test_no_epsilon_is_too_large(function, options, epsilon):
    released = function(LABELS, SCORES, epsilon, rng=0, **options)
    truth = METRIC_OF[function](LABELS, SCORES)
    assert (float(released), released.epsilon) == (pytest.approx(truth, abs=1e-8), epsilon)
    # However little noise, the heaviest tails are still drawn from: nothing is impossible.
    assert released.noise.scale(40) * 2.0**200 > 1
    estimate = metric_interval(released, at_least=20)
    assert estimate.low < truth < estimate.high


@pytest.mark.claim("private_auc.release_auc", kind="quadrature with a bound")
@pytest.mark.claim("private_auc.release_average_precision", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", [*FAMILIES, {"guess": 1}])
def test_no_two_neighbours_have_densities_further_apart_than_epsilon(epsilon, metric, options):
    outputs = np.concatenate([np.linspace(-2, 3, 101), np.tan(np.linspace(-1.57, 1.57, 101))])
    found = {
        levels: log_density(outputs, *as_records(levels), epsilon, metric=metric, **options)
        for n in (1, 2, 4)
        for levels in weak_orders(n)
    }
    worst = max(
        np.abs(found[levels] - found[other]).max()
        for levels in found
        for other in neighbours(levels)
    )
    # Twice 1/2 and 1: the exact calibration comes close to what it may spend.
    close = "calibration" not in options and metric == "average precision"
    assert (0.9 * epsilon if close else 0.0) < worst <= epsilon


class TwoSidedPareto:
    """Half of a Lomax distribution on either side."""

    def __init__(self, scale, degrees):
        self.half = stats.lomax(degrees, scale=scale)

    def logpdf(self, x):
        return self.half.logpdf(np.abs(x)) - math.log(2)

    def sf(self, x):
        return np.where(np.asarray(x) > 0, self.half.sf(np.abs(x)), 2 - self.half.sf(np.abs(x))) / 2

    def cdf(self, x):
        return self.sf(-np.asarray(x))

    def ppf(self, p):
        return self.half.isf(2 * (1 - p))


def state_noise(noise, size, margin=1.0):
    """Return the distribution that the noise says it has."""
    scale = margin * noise.scale(size)
    if noise.family == "pareto":
        return TwoSidedPareto(scale=scale, degrees=noise.degrees)
    return stats.t(noise.degrees, 0, scale) if noise.degrees else stats.laplace(0, scale)


@pytest.mark.claim("private_auc.release_auc", kind="simulation with its error")
@pytest.mark.claim("private_auc.release_average_precision", kind="simulation with its error")
@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", EVERY_NOISE)
def test_released_values_have_the_distribution_of_the_stated_noise(function, options):
    rng, truth = np.random.default_rng(3), METRIC_OF[function](LABELS, SCORES)
    drawn = [function(LABELS, SCORES, 1.5, rng=rng, **options) for _ in range(1500)]
    metric, noise = drawn[0].metric, drawn[0].noise
    size = METRIC[metric].size(*np.bincount(LABELS)[::-1])
    stated = state_noise(noise, size)
    low, high = stated.cdf([-truth, 1 - truth])
    inside = np.array([r.value - truth for r in drawn if 0 < r.value < 1])
    assert stats.binomtest(inside.size, 1500, high - low).pvalue > 1e-6
    assert stats.kstest(inside, lambda x: (stated.cdf(x) - low) / (high - low)).pvalue > 1e-6
    outputs = np.linspace(-1, 2, 9)
    found = log_density(outputs, LABELS, SCORES, 1.5, metric=metric, **options)
    # A margin of a millionth covers what is rounded on the way to the noise.
    wider = state_noise(noise, size, margin=1 + 2.0**-20)
    np.testing.assert_allclose(found, wider.logpdf(outputs - truth), rtol=1e-10, atol=1e-10)


@pytest.mark.claim("private_auc.MetricNoise.draw", kind="simulation with its error")
@pytest.mark.claim("private_auc.MetricNoise.error", kind="chosen cases")
@pytest.mark.parametrize(("degrees", "family"), [(1, None), (3, None), (0, None), (9, "pareto")])
@pytest.mark.parametrize("size", [1, 40])
def test_the_noise_itself_has_the_distribution_of_its_family(degrees, family, size):
    noise = make_noise(degrees, 1.5, delta=0.0 if degrees else 1e-6, family=family)
    stated, rng = state_noise(noise, size), np.random.default_rng(4)
    drawn = [float(noise.draw(size, rng)) for _ in range(3000)]
    assert stats.kstest(drawn, stated.cdf).pvalue > 1e-6
    outputs = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(noise.tail(outputs, size), stated.sf(outputs), atol=1e-12)
    for confidence in (0.5, 0.95, 0.999):
        quantile = stated.ppf((1 + confidence) / 2)
        assert noise.error(size, confidence) == pytest.approx(quantile, rel=1e-6)


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", [{}, LAPLACE, {"epsilon": 40.0}])
def test_released_values_lie_on_a_grid_that_knows_only_public_numbers(function, options):
    options = {"epsilon": 0.5} | options
    rng, finest = np.random.default_rng(0), []
    for positives in (0, 2, 25, 50):
        labels = np.arange(50) < positives
        released = [function(labels, np.arange(50), rng=rng, **options) for _ in range(60)]
        finest.append(max(Fraction(float(r)).denominator for r in released))
    least = released[0].noise.scale(25 if function is release_auc else 50)
    # Half of all numbers of the grid need its last bit.
    assert finest == [2 ** min(max(math.ceil(20 - math.log2(least)), 20), 52)] * 4


@pytest.mark.parametrize("function", RELEASES)
def test_at_a_large_epsilon_the_release_is_the_metric_or_its_convention(function):
    name = METRICS[RELEASES.index(function)]
    for levels, ties in itertools.product(weak_orders(4), METRIC[name].ties):
        labels, scores = as_records(levels)
        truth = float(EXACT[name](levels, ties))
        released = function(labels, scores, 60.0, ties=ties, rng=0)
        assert released.value == pytest.approx(truth, abs=1e-6)
        if labels.any() and (name != "auc" or not labels.all()):
            exact = METRIC_OF[function](labels, scores, ties=ties)
            assert exact == pytest.approx(truth, abs=1e-15)


ONE_POSITIVE = ([1, 0, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])
NO_POSITIVE = ([0, 0, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])
TWO_POSITIVES = ([1, 1, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])
AT_THE_BOTTOM = ([1, 0, 0, 0, 0, 0], [0, 5, 4, 3, 2, 1])


@pytest.mark.claim("private_auc.release_auc", "private_auc.release_average_precision", kind="audit")
@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("other", [NO_POSITIVE, TWO_POSITIVES, AT_THE_BOTTOM])
def test_the_audit_finds_no_more_than_epsilon_in_a_release(function, other):
    def mechanism(data, *, rng):
        return function(*data, 2.0, rng=rng)

    found = audit.epsilon_lower_bound(mechanism, ONE_POSITIVE, other, trials=2000, rng=1)
    # Where one record decides, the audit finds most of it.
    decides = function is release_auc and other is AT_THE_BOTTOM
    assert (1.0 if decides else 0.0) <= found <= 2.0


@pytest.mark.parametrize(
    ("n", "epsilon"), [(10**12, 1e-4), pytest.param(2**53, 1e-9, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("metric", METRICS)
def test_the_most_records_and_the_least_epsilon_have_a_noise(metric, n, epsilon):
    noise = choose_noise(n, epsilon, metric=metric)
    for size in (n // 10**6, n // 1000, n // 2):
        scales, change = (noise.scale(size), noise.scale(size - 1)), BOUNDS[metric](size)
        assert student_t_epsilon(0.0, scales[0], change, scales[1], noise.degrees) <= epsilon


# No path tells how many positives there are.

EVERY_LABELLING = [np.array(labels) for labels in itertools.product([0, 1], repeat=4)]


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", EVERY_NOISE)
@pytest.mark.parametrize("scores", [[4, 3, 2, 1], [1, 1, 1, 1], [2, 2, 1, 1]])
def test_all_but_the_value_of_a_release_is_the_same_for_all_records(function, options, scores):
    public, states = set(), set()
    for labels in EVERY_LABELLING:
        rng = np.random.default_rng(11)
        released = function(labels, scores, 0.7, rng=rng, **options)
        assert 0 <= released.value <= 1
        assert (type(released), type(released.value)) == (MetricRelease, float)
        public.add(repr(dataclasses.replace(released, value=0.0)))
        # Nor does a generator that others share go on from another place.
        states.add(str(rng.bit_generator.state))
    assert (len(public), len(states)) == (1, 1)


@pytest.mark.parametrize("function", RELEASES)
def test_an_interval_depends_on_the_released_value_and_public_numbers_only(function):
    seen = set()
    for labels, value in itertools.product(EVERY_LABELLING, (0.0, 0.6, 0.99)):
        released = dataclasses.replace(function(labels, range(4), 2.0, rng=0), value=value)
        with pytest.warns(UserWarning, match="next to nothing") as caught:
            found = metric_interval(released, at_least=1)
        assert found.high - found.low >= 0.5
        seen.add((value, found, str(caught[0].message)))
    assert len(seen) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric_interval(release_auc(LABELS, SCORES, 2.0, rng=1), at_least=30)


# Intervals. Whether one holds the truth t is decided by two thresholds that depend on t alone, so
# the coverage of many trials is that of their released values between the two.


def make_release(metric, n, epsilon, guess=None):
    noise = choose_noise(n, epsilon, metric=metric, guess=guess)
    words = {"mechanism": "noise", "neighbours": "one replaced"}
    return MetricRelease(0.5, epsilon, n=n, noise=noise, guess=guess, **words)


def thresholds(release, at_least, t, confidence):
    """Return between which released values the interval holds t."""

    def end(up, far):
        def excess(value):
            return interval._tail(release, at_least, up, t, value) - (1 - confidence) / 2

        return far if excess(far) >= 0 else optimize.brentq(excess, far, t, xtol=1e-10)

    return end(False, 0.0), end(True, 1.0)


@pytest.mark.parametrize(("metric", "size"), [("auc", 90), ("average precision", 60)])
def test_an_interval_holds_the_truths_whose_thresholds_enclose_the_release(metric, size):
    release = make_release(metric, 400, 4.0, size)
    low, high = thresholds(release, size, 0.8, 0.95)
    for value in (low - 1e-4, low + 1e-4, high - 1e-4, high + 1e-4):
        found = metric_interval(dataclasses.replace(release, value=value), at_least=size)
        assert (found.low <= 0.8 <= found.high) == (low <= value <= high)


def find_coverage(metric, samples, t, n, size, epsilon, confidence, rng):
    """Return how often intervals hold t, over samples of the metric with fresh noise on each."""
    release = make_release(metric, n, epsilon, size)
    low, high = thresholds(release, size, t, confidence)
    noise = release.noise
    if noise.family == "pareto":  # numpy's is that of one side, from 0 on
        drawn = rng.pareto(noise.degrees, samples.size) * rng.choice([-1, 1], samples.size)
    else:
        drawn = rng.standard_t(noise.degrees, samples.size)
    released = np.clip(samples + noise.scale(size) * drawn, 0, 1)
    return np.mean((low <= released) & (released <= high))


# Normal scores, or negatives of which a share, or a few out of all, are above all positives.
SHAPES = {
    "apart": {"apart": 2.5},
    "near": {"apart": 1.0},
    "near, tied": {"apart": 1.0, "decimals": 0},
    "no use": {"apart": 0.0},
    "one negative on top": {"few": 1},
    "three on top": {"few": 3},
    "three on top, tied": {"few": 3, "decimals": 1},
    "some on top": {"share": 0.03},
}


def draw_precision(rng, n, m, apart=None, share=0.0, decimals=9):
    """Return the average precision of a random data set."""
    if apart is not None:
        positives, negatives = rng.normal(apart, 1, n), rng.normal(0, 1, m)
    else:
        positives, negatives = rng.uniform(-1, 1, n), np.where(rng.random(m) < share, 2.0, -2.0)
    scores = np.concatenate([positives, negatives]).round(decimals)
    return average_precision(np.arange(n + m) < n, scores)


# Set to 20000 for the numbers that the notes on releases state.
TRIALS = int(os.environ.get("DPNOTES_TRIALS", "1000"))


@pytest.mark.claim("private_auc.metric_interval", kind="simulation with its error")
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [50, *(pytest.param(n, marks=pytest.mark.full) for n in (100, 1000))])
def test_intervals_of_average_precision_cover_what_they_say(n, name):
    rng, trials = (
        np.random.default_rng(10),
        TRIALS if TRIALS >= 20_000 else TRIALS * 100 // (50 + n),
    )
    # Three standard deviations of a share at 90 %.
    chance = 0.0 if trials >= 20_000 else 3 * math.sqrt(0.09 / trials)
    for m in (50, 100, 1000):
        shape = dict(SHAPES[name])
        if "few" in shape:
            shape["share"] = shape.pop("few") / m
        times = 1 + 100 * TRIALS // (n + m)
        truth = np.mean([draw_precision(rng, n * times, m * times, **shape) for _ in range(4)])
        samples = np.array([draw_precision(rng, n, m, **shape) for _ in range(trials)])
        for epsilon, level in itertools.product((0.1, 1.0, 10.0), (0.95, 0.9)):
            how = truth, n + m, n, epsilon, level, rng
            found = find_coverage("average precision", samples, *how)
            assert found >= level - 0.01 - chance, (m, epsilon, level)


@pytest.mark.parametrize("size", [20, 100, 1000])
@pytest.mark.parametrize("epsilon", [1.0, 10.0, 1e6])
def test_an_interval_of_average_precision_allows_for_a_poisson_number_of_negatives(size, epsilon):
    release = make_release("average precision", 5000, epsilon)
    for mean, value in itertools.product((0.1, 0.6, 0.9, 0.98, 0.999), repeat=2):
        expected = interval._mean_count(mean, size)
        numbers = np.arange(int(expected + 12 * math.sqrt(expected) + 40))
        chances = stats.poisson.pmf(numbers, expected)
        # The mean of j / (j + number) over all positives j.
        sums = special.psi(size + numbers + 1) - special.psi(numbers + 1)
        found = 1 - numbers / size * sums
        for up, apart in ((True, value - found), (False, found - value)):
            needed = chances @ release.noise.tail(apart, size)
            # No interval ends where a value is no surprise, and few where it is rarer.
            if 1e-4 < needed < 0.5:
                assert needed <= interval._tail(release, size, up, mean, value) <= 1
        sure = [
            interval._tail(release, size, up, mean, -1e9 if up else 1e9) for up in (True, False)
        ]
        assert sure == pytest.approx([1, 1])


def influence_variance(above):
    """Return the mean and n times the variance of an average precision in large samples.

    `above` has, at each share of the positives from the best down, the negatives above it over all
    positives. Both classes vary, and so do their sizes.
    """
    edges = np.linspace(0, 1, above.size + 1) ** 2
    share = np.sqrt((edges[1:] ** 2 + edges[1:] * edges[:-1] + edges[:-1] ** 2) / 3)
    width, precision = np.diff(edges), share / (share + above)

    def from_here_on(density):
        return np.cumsum((density * width)[::-1])[::-1] - density * width / 2

    lost = precision * (1 - precision)
    influence = precision + from_here_on(lost / share)
    of_negatives = from_here_on(precision**2 / share)
    spread = (influence**2) @ width - (influence @ width) ** 2
    variance = spread + 2 * (of_negatives * lost) @ width + (lost @ width) ** 2
    return precision @ width, variance


def test_no_shape_of_scores_has_a_larger_variance_than_intervals_allow_for():
    rng, shares, worst = np.random.default_rng(2), (np.arange(400) + 0.5) / 400, 0.0
    grid = itertools.product(np.linspace(0.02, 1.001, 40), np.geomspace(1e-4, 30, 40))
    shapes = [np.where(shares**2 < part, level, 1e9) for part, level in grid]
    for _ in range(3000):
        steps = rng.random(400) < rng.choice([0.005, 0.05, 1.0])
        sizes = np.exp(rng.normal(rng.uniform(-9, 2), rng.uniform(0.1, 4), 400))
        shapes.append(np.cumsum(steps * sizes) + rng.choice([0, 0.001, 0.03, 0.3]))
    for above in shapes:
        mean, variance = influence_variance(above)
        if 1e-3 < mean < 1 - 1e-3:
            worst = max(worst, variance / mean / (1 - mean) / interval._variance_ratio(mean))
    # The bound is nearly reached, and not passed.
    assert 0.9 < worst <= 1.0


def test_an_influence_variance_is_that_of_samples():
    rng = np.random.default_rng(3)
    samples = [draw_precision(rng, 1000, 1000, share=0.02) for _ in range(3000)]
    mean, variance = influence_variance(np.full(400, 0.02))
    assert np.mean(samples) == pytest.approx(mean, abs=2e-3)
    # In these samples the sizes of the classes do not vary, which makes a twenty-fifth.
    assert 1000 * np.var(samples) == pytest.approx(0.96 * variance, rel=0.1)


@pytest.mark.parametrize("epsilon", [10.0, pytest.param(0.1, marks=pytest.mark.full)])
def test_intervals_of_the_auc_cover_what_they_say_for_the_most_varied_scores(epsilon):
    rng, cases = np.random.default_rng(5), []
    for n in (50, 500):
        # The first edition's caveat: with n (1 - t) at 4.5, 90 % were 85.4 %.
        for lost in (0.2, 1.0, 4.5, 0.3 * n):
            # No AUC varies more than where each positive is above all negatives or below.
            t = 1 - lost / n
            cases.append((rng.binomial(n, t, 20_000) / n, t, 3 * n, n))
    for n, m, share in ((60, 60, 0.05), (60, 60, 0.3), (60, 600, 0.1)):
        # A pair is won unless both records are at the wrong end.
        lost = rng.binomial(n, share, 20_000) / n * rng.binomial(m, share, 20_000) / m
        cases.append((1 - lost, 1 - share**2, n + m, n))
    for case, level in itertools.product(cases, (0.9, 0.95)):
        assert find_coverage("auc", *case, epsilon, level, rng) >= level - 0.007


def test_an_interval_of_average_precision_takes_a_bound_up_to_all_records():
    release = release_average_precision(LABELS, SCORES, 9.0, rng=1)
    assert metric_interval(release, at_least=80).high <= 1
    for value in (math.nan, -0.1, 1.5):
        with pytest.raises(ValueError, match=r"release.value must be a number in \[0, 1\]"):
            metric_interval(dataclasses.replace(release, value=value), at_least=20)


@pytest.mark.parametrize("confidence", [0.9, 0.99999, 1 - 1e-9])
def test_without_noise_an_interval_is_that_of_clopper_and_pearson(confidence):
    labels = np.arange(2000) < 1000
    release = dataclasses.replace(release_auc(labels, labels, 60.0, rng=0), value=0.8)
    tail = (1 - confidence) / 2
    expected = stats.beta.ppf([tail, 1 - tail], [800, 801], [201, 200])
    found = metric_interval(release, confidence=confidence, at_least=1000)
    # The sample is looked at in steps of a 25th of its standard deviation.
    assert found[1:] == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-9, 0.5])
@pytest.mark.parametrize("function", RELEASES)
def test_an_interval_stays_within_zero_and_one_and_holds_the_release(function, value):
    release = dataclasses.replace(function(LABELS, SCORES, 8.0, rng=1), value=value)
    estimate = metric_interval(release, at_least=20)
    assert 0 <= estimate.low <= value <= estimate.high <= 1
    if function is release_auc:
        mirrored = metric_interval(dataclasses.replace(release, value=1 - value), at_least=20)
        assert mirrored.low == pytest.approx(1 - estimate.high, abs=1e-7)


# The binormal curve.


@given(area=st.floats(0.01, 0.99))
def test_the_binormal_curve_has_its_area_and_is_symmetric(area):
    found = integrate.quad(lambda x: float(binormal_roc(area, x)), 0, 1, limit=200)[0]
    assert found == pytest.approx(area, abs=2e-3)
    rates = np.linspace(0.01, 0.99, 50)
    inside = binormal_roc(area, rates)
    np.testing.assert_allclose(binormal_roc(area, 1 - inside), 1 - rates, atol=1e-7)


@pytest.mark.filterwarnings("error")
def test_the_binormal_curve_has_its_ends_at_any_area():
    rates = [[0.0], [0.3], [1.0]]
    assert binormal_roc(1.0, rates).tolist() == [[0.0], [1.0], [1.0]]
    assert binormal_roc(0.0, rates).tolist() == [[0.0], [0.0], [1.0]]
    np.testing.assert_allclose(binormal_roc(0.5, rates), rates)


# The attack.


def guess_label(known, published, decimals):
    """Return the label whose AUC comes nearest, over all gaps between known scores."""
    matches = []
    for trial in filter(lambda levels: all(counts(levels)), with_one(known, ties=False)):
        area = exact_auc(trial, "half")
        if decimals is not None:
            area = Fraction(float(np.round(float(area), min(decimals, 17))))
        matches.append((abs(area - published), counts(trial)[0] - counts(known)[0]))
    nearest = min(matches)[0] + Fraction(1, 10**12)
    near = [label for distance, label in matches if distance <= nearest]
    return int(near.count(1) > near.count(0))


@given(
    known=data_sets,
    published=st.one_of(st.floats(0, 1), st.integers(0, 60).map(lambda k: k / 60)),
    decimals=st.sampled_from([None, 0, 1, 2, 17, 400]),
)
def test_the_attack_tries_every_rank_with_both_labels(known, published, decimals):
    published = published if decimals is None else round(published, decimals)
    found = reidentify_label(*as_records(known), published, decimals=decimals)
    assert found == guess_label(known, Fraction(published), decimals)
