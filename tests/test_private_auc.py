import dataclasses
import decimal
import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from dpnotes import audit, private_auc
from dpnotes.private_auc import (
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
    confusion_metrics,
    log_density,
    metric_interval,
    reidentify_label,
    release_auc,
    release_average_precision,
    release_confusion_matrix,
)

RELEASES = [release_auc, release_average_precision]
EPSILONS = [0.01, 0.1, 0.5, 1.0, 3.0, 20.0]
BETAS = [0.01, 0.05, 0.1, 1 / 6, 0.5, 2.0]

records = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=1, max_size=14)


def columns(rows):
    labels, scores = zip(*rows, strict=True)
    return np.array(labels), np.array(scores, dtype=float)


# The metrics by their definitions, pair by pair and threshold by threshold.


def auc_of_pairs(rows, ties):
    pairs = [(x, y) for a, x in rows if a for b, y in rows if not b]
    credit = Fraction(1, 2) if ties == "half" else 0
    return sum(int(x > y) + int(x == y) * credit for x, y in pairs) / Fraction(len(pairs))


def precision_of_steps(rows, ties):
    positives = sum(label for label, _ in rows)
    if ties == "pessimistic":
        ranked = sorted(rows, key=lambda row: (-row[1], row[0]))
        found = list(itertools.accumulate(label for label, _ in ranked))
        steps = [Fraction(found[i], i + 1) for i, (label, _) in enumerate(ranked) if label]
        return sum(steps) / positives
    area, recall = Fraction(0), Fraction(0)
    for threshold in sorted({score for _, score in rows}, reverse=True):
        passed = [label for label, score in rows if score >= threshold]
        reached = Fraction(sum(passed), positives)
        area += (reached - recall) * Fraction(sum(passed), len(passed))
        recall = reached
    return area


@given(rows=records, ties=st.sampled_from(["half", "pessimistic"]))
def test_the_auc_is_the_share_of_pairs_in_order(rows, ties):
    if len({label for label, _ in rows}) == 2:
        assert auc(*columns(rows), ties=ties) == float(auc_of_pairs(rows, ties))


@given(rows=records, ties=st.sampled_from(["grouped", "pessimistic"]))
def test_average_precision_is_the_area_under_its_steps(rows, ties):
    if any(label for label, _ in rows):
        expected = float(precision_of_steps(rows, ties))
        assert average_precision(*columns(rows), ties=ties) == pytest.approx(expected, abs=1e-15)


@given(rows=records, offset=st.sampled_from([0.0, 1e-300, 1e300]))
def test_by_default_both_metrics_are_scikit_learns(rows, offset):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores = columns(rows)
    scores = scores * offset if offset else scores
    if labels.any():
        expected = metrics.average_precision_score(labels, scores)
        assert average_precision(labels, scores) == pytest.approx(expected, abs=1e-14)
        if not labels.all():
            expected = metrics.roc_auc_score(labels, scores)
            assert auc(labels, scores) == pytest.approx(expected, abs=1e-14)


def test_where_no_score_is_shared_ties_do_not_matter():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 999), rng.normal(size=999)
    assert auc(labels, scores) == auc(labels, scores, ties="pessimistic")
    grouped, pessimistic = (average_precision(labels, scores, ties=t) for t in private_auc.AP_TIES)
    assert grouped == pessimistic


def test_ten_thousand_million_pairs_are_counted_exactly():
    n = 100_000
    labels = np.repeat(np.array([0, 1], dtype=np.int8), n)
    scores = np.tile(np.arange(n) // 2, 2)
    # Each positive of level k is above 2k negatives and ties with 2.
    assert auc(labels, scores) == float(Fraction(sum(2 * k + 1 for k in range(n // 2)), n * n) * 2)


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i8", "u8", ">i4"])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f8", "longdouble", "i4", "u8", "bool"])
def test_the_type_of_labels_and_scores_does_not_matter(dtype, kind):
    labels, scores = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 1, 1])
    found = labels.astype(dtype), scores.astype(kind)
    assert auc(*found) == float(auc_of_pairs(list(zip(labels, scores, strict=True)), "half"))
    assert average_precision(*found) == average_precision(labels.tolist(), scores.tolist())
    assert auc(pd.Series(labels, index=[9, 8, 7, 6, 5]), pd.Series(scores)) == auc(labels, scores)


def test_large_whole_scores_are_not_rounded_into_ties():
    assert auc([0, 1], np.array([2**60, 2**60 + 1])) == 1.0
    assert auc([0, 1], np.array([2**64 - 2, 2**64 - 1], dtype=np.uint64)) == 1.0
    assert auc([0, 1], [-0.0, 0.0]) == 0.5


def test_a_record_with_a_fraction_does_not_make_ties_of_all_others():
    labels, scores = [0, 0, 0, 1, 1, 1], [2**60 + i for i in range(6)]
    for neighbour in (0.5, 2.0**61, np.longdouble(0.5)):
        for ties in private_auc.AUC_TIES:
            here = auc(labels, scores, ties=ties)
            there = auc(labels, [*scores[:5], neighbour], ties=ties)
            assert abs(here - there) <= auc_local_sensitivity(3, 3)
        precisions = [average_precision(labels, [*scores[:5], s]) for s in (scores[5], neighbour)]
        assert abs(precisions[0] - precisions[1]) <= ap_local_sensitivity(3)


def test_without_noise_a_missing_class_is_an_error():
    for labels in ([0, 0], [1, 1]):
        with pytest.raises(ValueError, match="labels must hold both classes"):
            auc(labels, [0.1, 0.2])
    with pytest.raises(ValueError, match="labels must hold a positive"):
        average_precision([0, 0], [0.1, 0.2])
    assert average_precision([1, 1], [0.1, 0.2]) == 1.0


@pytest.mark.parametrize("function", [auc, average_precision])
def test_weights_are_refused_by_name(function):
    with pytest.raises(TypeError, match="sample_weight"):
        function([0, 1], [0.1, 0.2], sample_weight=[1, 2])
    for release in RELEASES:
        with pytest.raises(TypeError, match="sample_weight"):
            release([0, 1], [0.1, 0.2], 1.0, sample_weight=[1, 2])


# Sensitivities, over all data sets. A data set is its levels of score from the highest down, each
# with its number of positives and of negatives: all that either metric looks at.


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


def strict_orders(n):
    """Return all data sets of n records without ties."""
    return list(itertools.product([(1, 0), (0, 1)], repeat=n))


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


def neighbours(levels, ties):
    return {other for core in set(without_one(levels)) for other in with_one(core, ties)}


def counts(levels):
    return tuple(sum(level[i] for level in levels) for i in (0, 1))


@cache
def exact_auc(levels, ties, missing=Fraction(1, 2)):
    n, m = counts(levels)
    if n * m == 0:
        return missing
    below, halves = m, 0
    for p, q in levels:
        below -= q
        halves += p * (2 * below + (q if ties == "half" else 0))
    return Fraction(halves, 2 * n * m)


@cache
def exact_average_precision(levels, ties, missing=Fraction(0)):
    n, _ = counts(levels)
    if n == 0:
        return missing
    found = passed = total = Fraction(0)
    for p, q in levels:
        if ties == "grouped":
            found, passed = found + p, passed + p + q
            total += p * found / passed
        else:
            passed += q
            for _ in range(p):
                found, passed = found + 1, passed + 1
                total += found / passed
    return total / n


def worst_changes(metric, n, with_ties, **options):
    """Return the largest change for every number of positives, exactly."""
    worst = dict.fromkeys(range(n + 1), Fraction(0))
    for levels in weak_orders(n) if with_ties else strict_orders(n):
        here = metric(levels, **options)
        largest = max(abs(metric(o, **options) - here) for o in neighbours(levels, with_ties))
        worst[counts(levels)[0]] = max(worst[counts(levels)[0]], largest)
    return worst


def test_data_sets_by_levels_have_the_metrics_of_the_package():
    for levels in weak_orders(5):
        rows = [
            (label, -i)
            for i, level in enumerate(levels)
            for label in (0, 1)
            for _ in range(level[1 - label])
        ]
        labels, scores = columns(rows)
        for ties in private_auc.AUC_TIES:
            if 0 < labels.sum() < 5:
                assert auc(labels, scores, ties=ties) == float(exact_auc(levels, ties))
        for ties in private_auc.AP_TIES:
            if labels.any():
                found = average_precision(labels, scores, ties=ties)
                assert found == pytest.approx(float(exact_average_precision(levels, ties)))


@pytest.mark.parametrize("n", range(2, 9))
def test_the_local_sensitivity_of_the_auc_is_one_over_the_smaller_class(n):
    for positives, worst in worst_changes(exact_auc, n, with_ties=False, ties="half").items():
        smaller = min(positives, n - positives)
        if smaller:
            assert worst == Fraction(1, smaller)
            assert auc_local_sensitivity(positives, n - positives) == float(worst)
        assert worst <= 1 == auc_local_sensitivity(0, n) == auc_local_sensitivity(n, 0)


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("ties", private_auc.AUC_TIES)
def test_ties_leave_the_sensitivity_of_the_auc_as_it_is(n, ties):
    for positives, worst in worst_changes(exact_auc, n, with_ties=True, ties=ties).items():
        assert worst <= Fraction(1, max(min(positives, n - positives), 1))


@pytest.mark.parametrize("missing", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_whatever_a_missing_class_counts_for_the_sensitivity_is_at_most_one(missing):
    for n in (1, 3, 5):
        for metric, ties in [(exact_auc, "half"), (exact_average_precision, "grouped")]:
            changes = worst_changes(metric, n, with_ties=True, ties=ties, missing=missing)
            assert max(changes[0], changes[min(1, n)], changes[n]) <= 1


@pytest.mark.parametrize("n", range(1, 9))
def test_the_local_sensitivity_of_average_precision_is_the_formula(n):
    worst = worst_changes(exact_average_precision, n, with_ties=False, ties="pessimistic")
    for positives, change in worst.items():
        found = ap_local_sensitivity(positives, n - positives)
        assert found == pytest.approx(float(change), abs=1e-14)
        assert found <= ap_local_sensitivity(positives) + 1e-15


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("ties", private_auc.AP_TIES)
def test_the_bound_on_average_precision_holds_for_either_way_of_ties(n, ties):
    worst = worst_changes(exact_average_precision, n, with_ties=True, ties=ties)
    for positives, change in worst.items():
        assert float(change) <= ap_local_sensitivity(positives) + 1e-15


def ap_bound(n):
    """Return L(n) as it is defined."""
    if n < 2:
        return Fraction(1)
    harmonic = sum(Fraction(1, i) for i in range(2, n + 1))
    odd = sum(Fraction(1, 2 * j + 1) for j in range(1, n))
    return max(harmonic / (n - 1), (1 + odd / 2) / n)


def ap_exact(n, m):
    """Return the worst case for n positives and m negatives as it is defined."""
    harmonic = sum(Fraction(1, i) for i in range(2, n + 1))
    meets = [min(j, m) for j in range(1, n)]
    fall = sum(Fraction(a, (j + a) * (j + 1 + a)) for j, a in enumerate(meets, 1))
    raised = (harmonic + Fraction(1, n + 1)) / n if m else 0
    return max(harmonic / (n - 1), (Fraction(m, n + m) + fall) / n, raised)


def test_the_sensitivities_of_average_precision_are_their_sums():
    for n in range(2, 60):
        assert ap_local_sensitivity(n) == pytest.approx(float(ap_bound(n)), rel=1e-14)
        for m in (0, 1, n - 1, n, n + 1, 200):
            assert ap_local_sensitivity(n, m) == pytest.approx(float(ap_exact(n, m)), rel=1e-13)
    values = [ap_local_sensitivity(n) for n in (2, 3, 4, 5, 10)]
    assert np.round(values, 6).tolist() == [0.583333, 0.422222, 0.361111, 0.320833, 0.214330]


def test_the_most_that_a_ranking_can_change_may_be_less_than_the_sensitivity():
    levels = tuple((int(label == "1"), int(label == "0")) for label in "001100"[::-1])
    here = exact_auc(levels, "half")
    changes = [abs(exact_auc(o, "half") - here) for o in neighbours(levels, ties=False)]
    assert max(changes) == Fraction(5, 18) < Fraction(1, 2) == auc_local_sensitivity(2, 4)


# Smoothness.


@pytest.mark.parametrize("beta", BETAS)
def test_the_smooth_sensitivities_are_the_largest_discounted_ones(beta):
    for size in range(60):
        steps = range(size + 1)
        expected = max(math.exp(-beta * d) / max(size - d, 1) for d in steps)
        assert auc_smooth_sensitivity(size, 500, beta) == pytest.approx(expected, rel=1e-12)
        assert auc_smooth_sensitivity(500, size, beta) == pytest.approx(expected, rel=1e-12)
        expected = max(math.exp(-beta * d) * float(ap_bound(size - d)) for d in steps)
        assert ap_smooth_sensitivity(size, beta) == pytest.approx(expected, rel=1e-12)


def test_the_bound_on_average_precision_is_log_convex():
    values = np.log([ap_local_sensitivity(n) for n in range(1, 3000)])
    assert np.all(np.diff(values, 2) >= -1e-13)
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("beta", BETAS)
def test_between_neighbours_the_smooth_sensitivity_changes_by_a_factor_of_e_to_the_beta(beta):
    most = math.exp(beta) * (1 + 1e-12)
    for n in (1, 2, 7, 40, 800):
        both = [auc_smooth_sensitivity(k, n - k, beta) for k in range(n + 1)]
        positives = [ap_smooth_sensitivity(k, beta) for k in range(n + 1)]
        for values in (np.array(both), np.array(positives)):
            ratios = values[1:] / values[:-1]
            assert ratios.size == n
            assert np.all((ratios <= most) & (1 / ratios <= most))
        assert np.all(np.array(positives) >= [ap_local_sensitivity(k) for k in range(n + 1)])
        assert np.all(np.array(both) >= [auc_local_sensitivity(k, n - k) for k in range(n + 1)])


@pytest.mark.parametrize(
    ("beta", "size"), [(0.01, 649), (0.05, 92), (0.1, 38), (1 / 6, 19), (0.5, 4)]
)
def test_from_a_size_on_the_smooth_sensitivity_is_the_local_one(beta, size):
    assert auc_smooth_sensitivity(size, 9999, beta) == 1 / size
    assert auc_smooth_sensitivity(size - 1, 9999, beta) > 1 / (size - 1)


def test_a_missing_class_has_the_sensitivity_of_a_single_record():
    for beta in BETAS:
        assert auc_smooth_sensitivity(0, 9, beta) == auc_smooth_sensitivity(1, 9, beta) == 1.0
        assert ap_smooth_sensitivity(0, beta) == ap_smooth_sensitivity(1, beta) == 1.0


# Cauchy noise.


def log_ratio(outputs, centre, scale, other, other_scale):
    return stats.cauchy.logpdf(outputs, centre, scale) - stats.cauchy.logpdf(
        outputs, other, other_scale
    )


@given(shift=st.floats(-3, 3), scale=st.floats(0.1, 9), other_scale=st.floats(0.1, 9))
def test_the_loss_between_two_cauchy_laws_is_the_largest_log_ratio(shift, scale, other_scale):
    exact = cauchy_epsilon(0.0, scale, shift, other_scale)
    ratio = 1 + (shift**2 + (scale - other_scale) ** 2) / (2 * scale * other_scale)
    assert exact == pytest.approx(math.acosh(ratio), abs=1e-7)
    outputs = np.tan(np.linspace(-1.5707, 1.5707, 40_001))
    found = np.abs(log_ratio(outputs, 0.0, scale, shift, other_scale)).max()
    assert found <= exact + 1e-9
    assert found >= exact * (1 - 1e-4) - 1e-4


def worst_loss(c, beta):
    """Return the largest loss of noise c S, over all values that a neighbour may have."""
    ratios = np.exp(np.linspace(-beta, beta, 401))
    return max(cauchy_epsilon(0.0, c, min(1.0, r), c * r) for r in ratios)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", [1e-6, 0.01, 0.3, 0.6, 0.9, 0.99])
def test_the_exact_calibration_spends_all_of_epsilon_and_no_more(epsilon, share):
    c = cauchy_scale(epsilon, share * epsilon)
    assert worst_loss(c, share * epsilon) == pytest.approx(epsilon, rel=1e-9)
    assert worst_loss(0.999 * c, share * epsilon) > epsilon * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_exact_calibration_is_its_formula(epsilon):
    for beta in (epsilon / 100, epsilon / 6, 0.9 * epsilon):
        spread = math.exp(-beta) / (2 * (math.cosh(epsilon) - math.cosh(beta)))
        expected = max(1 / (2 * math.sinh(epsilon / 2)), math.sqrt(spread))
        assert cauchy_scale(epsilon, beta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_calibration_of_the_source_is_private_and_wasteful_at_any_epsilon(epsilon):
    c = cauchy_scale(epsilon, epsilon / 6, calibration="nissim")
    assert worst_loss(c, epsilon / 6) < 0.4 * epsilon


def test_the_calibration_of_the_source_at_epsilon_1_is_private_at_less_than_a_quarter():
    c = cauchy_scale(1.0, 1 / 6, calibration="nissim")
    assert c == 6.0
    assert worst_loss(c, 1 / 6) == pytest.approx(0.22614, abs=5e-6)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 64.0, 65.0, 700.0, 1e300])
def test_the_noise_is_positive_and_finite_at_any_epsilon(epsilon):
    beta = best_beta(epsilon, 100)
    assert 0 < beta < epsilon
    for c in (cauchy_scale(epsilon, beta), cauchy_scale(epsilon, 0.999 * epsilon)):
        assert 0 < c < 1e12
    assert release_auc([0, 1], [1, 2], epsilon, rng=0).epsilon == epsilon


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 0.3, 0.7, 1.0, 2.0, 30.0])
@pytest.mark.parametrize("guess", [1, 2, 3, 5, 20, 100, 3000, 10**7])
@pytest.mark.parametrize("metric", private_auc.METRICS)
def test_no_other_beta_makes_the_noise_smaller_at_the_guess(epsilon, guess, metric):
    def noise(beta):
        smooth = (
            auc_smooth_sensitivity(guess, guess, beta)
            if metric == "auc"
            else ap_smooth_sensitivity(guess, beta)
        )
        return math.log(cauchy_scale(epsilon, beta) * smooth)

    chosen = best_beta(epsilon, guess, metric=metric)
    grid = epsilon * np.concatenate([np.geomspace(1e-6, 0.5, 300), np.linspace(0.5, 0.9999, 300)])
    around = optimize.minimize_scalar(noise, bounds=(0.5 * chosen, min(2 * chosen, 0.99 * epsilon)))
    assert noise(chosen) <= min(*map(noise, grid), around.fun) + 1e-9


def test_beta_at_a_wrong_guess_is_as_large_as_it_may_be_for_nothing():
    for epsilon, guess in [(1.0, 10**6), (0.1, 10**6), (5.0, 100)]:
        beta = best_beta(epsilon, guess)
        flat = min(math.log(2 * math.cosh(epsilon) - 1), math.log(2))
        assert beta == pytest.approx(flat, rel=1e-9)
        assert cauchy_scale(epsilon, beta) == pytest.approx(1 / (2 * math.sinh(epsilon / 2)))


@pytest.mark.parametrize(
    ("epsilon", "size", "gain"),
    [
        (1.0, 1, 6.25),
        (1.0, 19, 6.25),
        (1.0, 5, 16),
        (0.1, 20, 12.5),
        (0.1, 100, 104),
        (0.1, 500, 6),
    ],
)
def test_the_noise_is_several_times_smaller_than_that_of_the_source(epsilon, size, gain):
    beta = best_beta(epsilon, size)
    ours = cauchy_scale(epsilon, beta) * auc_smooth_sensitivity(size, size, beta)
    theirs = 6 / epsilon * auc_smooth_sensitivity(size, size, epsilon / 6)
    assert theirs / ours == pytest.approx(gain, rel=0.03)


# Laplace noise.


def hockey_stick(epsilon, scale, shift, other_scale):
    """Return the smallest delta for two Laplace laws, one of them shifted."""

    def integrand(x):
        ours = math.exp(-abs(x) / scale) / (2 * scale)
        theirs = math.exp(epsilon - abs(x - shift) / other_scale) / (2 * other_scale)
        return max(ours - theirs, 0.0)

    edges = sorted({-80 * scale, 0.0, shift, 80 * scale, *np.linspace(-40, 40, 81) * scale})
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-16)[0] for a, b in itertools.pairwise(edges)
    )


def worst_delta(epsilon, beta):
    ratios = np.exp(np.array([-1, -0.9, -0.5, 0, 0.5, 1]) * beta)
    return max(hockey_stick(epsilon, 2 / epsilon, min(1, r), 2 * r / epsilon) for r in ratios)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 15.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.3, 0.9])
def test_laplace_noise_has_at_most_the_delta_that_it_states(epsilon, delta):
    release = release_auc([0, 1], [1, 2], epsilon, delta=delta, rng=0)
    assert release.multiplier == 2 / epsilon
    assert release.beta <= epsilon / (2 * math.log(2 / delta))
    # A larger one would spend on a wider noise what is left for a shifted one.
    assert release.beta <= epsilon / 2
    assert worst_delta(epsilon, release.beta) <= delta * (1 + 1e-6)


def test_the_beta_of_the_source_for_laplace_noise_fails_for_a_large_epsilon():
    assert worst_delta(1.0, 1 / (2 * math.log(2 / 1e-5))) < 1e-6
    assert worst_delta(15.0, 15 / (2 * math.log(2 / 1e-9))) == pytest.approx(1.095e-9, rel=1e-3)


class Dictated:
    """A generator whose bytes spell given whole numbers."""

    def __init__(self, *numbers):
        self.numbers = iter(numbers)

    def bytes(self, length):
        return next(self.numbers).to_bytes(length, "little")


def test_laplace_noise_has_no_largest_value():
    drawn = [private_auc._laplace(Dictated(*words, 0)) for words in [(2**255,), (0, 2**255)]]
    assert [float(size) for size in drawn] == pytest.approx([math.log(2), 129 * math.log(2)])
    # The number that is replaced does not matter, the last one that is kept follows on it.
    drawn = [private_auc._laplace(Dictated(*words, 1)) for words in [(2**128,), (7, 2**256 - 1)]]
    assert [float(size) for size in drawn] == pytest.approx([-128 * math.log(2)] * 2)
    twice = private_auc._laplace(Dictated(2**128 - 1, 0, 2**255, 0))
    assert float(twice) == pytest.approx(257 * math.log(2))


def test_laplace_noise_has_more_digits_than_any_grid():
    word = 0x9E3779B97F4A7C15 << 190
    with decimal.localcontext(decimal.Context(prec=90)):
        expected = -((decimal.Decimal(2 * word + 1) / 2**257).ln())
    assert abs(private_auc._laplace(Dictated(word, 0)) - Fraction(expected)) < Fraction(1, 10**55)


def test_cauchy_noise_is_the_slope_of_a_point_inside_the_disc():
    x, y, largest = 3 * 2**250, 2**254 + 5, 2**256 - 1
    assert private_auc._cauchy(Dictated(x, y, 0)) == Fraction(2 * x + 1, 2 * y + 1)
    assert private_auc._cauchy(Dictated(largest, 2**255, x, y, 1)) == -Fraction(
        2 * x + 1, 2 * y + 1
    )
    assert private_auc._cauchy(Dictated(largest // 2, 0, 0)) == largest


def test_a_delta_as_small_as_doubles_go_makes_beta_small_and_not_zero():
    for delta in (1e-300, 5e-324):
        release = release_auc([0, 1], [1, 2], 1.0, delta=delta, rng=0)
        assert release.beta == pytest.approx(math.log1p(0.5 / math.log(2e300)), rel=0.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", [{}, {"delta": 1e-9}, {"calibration": "nissim"}])
def test_no_epsilon_is_too_large(function, options):
    for epsilon in (1e20, 1e300, 1.7e308):
        released = function(LABELS, SCORES, epsilon, rng=0, **options)
        truth = (auc if function is release_auc else average_precision)(LABELS, SCORES)
        assert (float(released), released.epsilon) == (pytest.approx(truth, abs=1e-12), epsilon)
        # However little noise, the heaviest tails are still drawn from: nothing is impossible.
        assert released.multiplier * 2.0**200 > 1
        estimate = metric_interval(released, at_least=20)
        assert estimate.low < truth < estimate.high
    matrix = release_confusion_matrix(LABELS, LABELS, 1.7e308, rng=0)
    assert confusion_metrics(matrix)["accuracy"].value == 1.0


# Releases.


def as_records(levels):
    rows = [
        (label, -i)
        for i, (positives, negatives) in enumerate(levels)
        for label, many in ((1, positives), (0, negatives))
        for _ in range(many)
    ]
    return columns(rows)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("metric", private_auc.METRICS)
@pytest.mark.parametrize("options", [{}, {"calibration": "nissim"}, {"guess": 1}])
def test_no_two_neighbours_have_densities_further_apart_than_epsilon(epsilon, metric, options):
    outputs = np.concatenate([np.linspace(-2, 3, 101), np.tan(np.linspace(-1.57, 1.57, 101))])
    worst = 0.0
    for n in (1, 2, 4):
        laws = {
            levels: log_density(outputs, *as_records(levels), epsilon, metric=metric, **options)
            for levels in weak_orders(n)
        }
        for levels, law in laws.items():
            for other in neighbours(levels, ties=True):
                worst = max(worst, np.abs(law - laws[other]).max())
    assert worst <= epsilon
    # Twice 1/2 and 1: the exact calibration comes close to what it may spend.
    if not options and metric == "average precision":
        assert worst > 0.9 * epsilon


def test_the_rounding_of_doubles_is_paid_for():
    best, worst = (np.array([2.0]), np.array([1.0])), (np.array([1.0]), np.array([2.0]))
    for epsilon in np.geomspace(1e-9, 60, 99).tolist():
        plan = private_auc._plan("auc", 2, epsilon, 0.0, "exact", None)
        one, scale = private_auc._centre_and_scale(plan, *best, "half")
        other, same = private_auc._centre_and_scale(plan, *worst, "half")
        assert (one - other, same) == (1, scale)
        # The loss is 2 arsinh(1 / (2 scale)), here with 50 digits.
        with decimal.localcontext(decimal.Context(prec=50)):
            growth = (decimal.Decimal(epsilon) / 2).exp()
            ratio = (Fraction(growth) - 1 / Fraction(growth)) * scale
        assert 1 <= ratio < 1 + 1e-5


RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 2, 80)
SCORES = RNG.normal(size=80) + LABELS


def scale_of(release, labels=LABELS):
    n = int(labels.sum())
    if release.metric == "auc":
        return release.multiplier * auc_smooth_sensitivity(n, labels.size - n, release.beta)
    return release.multiplier * ap_smooth_sensitivity(n, release.beta)


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"calibration": "nissim"}])
def test_released_values_have_the_law_of_the_stated_noise(function, options):
    rng = np.random.default_rng(3)
    drawn = [function(LABELS, SCORES, 1.5, rng=rng, **options) for _ in range(4000)]
    truth = (auc if function is release_auc else average_precision)(LABELS, SCORES)
    noise = stats.laplace if options.get("delta") else stats.cauchy
    law = noise(truth, scale_of(drawn[0]))
    inside = np.array([float(r) for r in drawn if 0 < float(r) < 1])
    low, high = law.cdf([0, 1])
    assert stats.binomtest(inside.size, 4000, high - low).pvalue > 1e-6
    assert stats.kstest(inside, lambda x: (law.cdf(x) - low) / (high - low)).pvalue > 1e-6
    outputs = np.linspace(-1, 2, 9)
    metric = drawn[0].metric
    found = log_density(outputs, LABELS, SCORES, 1.5, metric=metric, **options)
    np.testing.assert_allclose(found, law.logpdf(outputs), atol=1e-5)


@pytest.mark.parametrize("function", RELEASES)
def test_at_a_large_epsilon_the_release_is_the_metric(function):
    rows = [(0, 1), (1, 1), (1, 2), (0, 0), (1, 0), (0, 2)]
    for ties in private_auc.AUC_TIES if function is release_auc else private_auc.AP_TIES:
        metric = auc if function is release_auc else average_precision
        released = function(*columns(rows), 60.0, ties=ties, rng=0)
        assert float(released) == pytest.approx(metric(*columns(rows), ties=ties), abs=1e-9)


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"epsilon": 40.0}])
def test_released_values_lie_on_a_grid_that_knows_only_public_numbers(function, options):
    options = {"epsilon": 0.5} | options
    rng, finest = np.random.default_rng(0), []
    for labels in (np.arange(50) < 25, np.arange(50) < 2, np.zeros(50, bool), np.ones(50, bool)):
        released = [function(labels, np.arange(50), rng=rng, **options) for _ in range(60)]
        finest.append(max(Fraction(float(r)).denominator for r in released))
    least = auc_local_sensitivity(25, 25) if function is release_auc else ap_local_sensitivity(50)
    halvings = math.ceil(20 - math.log2(released[0].multiplier * least))
    # Half of all numbers of the grid need its last bit.
    assert finest == [2 ** min(max(halvings, 20), 52)] * 4


def test_the_same_seed_gives_the_same_release_and_no_seed_another():
    for function in RELEASES:
        first, second = (function(LABELS, SCORES, 1.0, rng=5) for _ in range(2))
        assert first == second
        assert len({float(function(LABELS, SCORES, 1.0)) for _ in range(9)}) > 1
    matrices = [release_confusion_matrix(LABELS, SCORES > 0, 0.01, rng=5) for _ in range(2)]
    assert matrices[0] == matrices[1]


def test_a_release_says_what_was_spent():
    release = release_auc(LABELS, SCORES, 0.5, delta=1e-6, rng=0)
    assert (release.epsilon, release.delta, release.n, release.guess) == (0.5, 1e-6, 80, 20)
    assert release.mechanism.startswith("Laplace noise of 4 smooth sensitivities")
    assert release.neighbours == "one record replaced; the number of records is public"
    assert release_auc(LABELS, SCORES, 0.5, rng=0).mechanism.startswith("Cauchy noise of ")


# The audit.


def audited(mechanism, dataset, neighbour, trials=6000, **options):
    return audit.epsilon_lower_bound(mechanism, dataset, neighbour, trials=trials, rng=1, **options)


ONE_POSITIVE = ([1, 0, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])
NO_POSITIVE = ([0, 0, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])
TWO_POSITIVES = ([1, 1, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1])


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("other", [NO_POSITIVE, TWO_POSITIVES])
def test_the_audit_finds_no_more_than_epsilon_in_a_release(function, other):
    def mechanism(data, *, rng):
        return function(*data, 1.0, rng=rng)

    assert audited(mechanism, ONE_POSITIVE, other) <= 1.0


def test_the_audit_finds_most_of_epsilon_where_one_record_decides():
    def mechanism(data, *, rng):
        return release_auc(*data, 2.0, rng=rng)

    bottom = ([1, 0, 0, 0, 0, 0], [0, 5, 4, 3, 2, 1])
    assert 1.2 < audited(mechanism, ONE_POSITIVE, bottom) <= 2.0


def test_noise_scaled_to_the_local_sensitivity_is_caught():
    def broken(data, *, rng):
        n = sum(data[0])
        scale = cauchy_scale(0.2, 0.1) * auc_local_sensitivity(n, len(data[0]) - n)
        return auc(*data) + scale * rng.standard_cauchy()

    labels, scores = np.arange(12) < 6, np.arange(12)
    # One record of the smaller class halves or doubles this noise.
    assert audited(broken, (np.arange(12) < 1, scores), (np.arange(12) < 2, scores)) > 0.3
    assert audited(broken, (labels, scores), (np.arange(12) < 5, scores)) < 0.2


# No path tells how many positives there are.


def every_labelling(n):
    return [np.array(labels) for labels in itertools.product([0, 1], repeat=n)]


def public_part(release):
    return {
        field.name: getattr(release, field.name)
        for field in dataclasses.fields(release)
        if field.name != "value"
    }


@pytest.mark.parametrize("function", RELEASES)
@pytest.mark.parametrize("options", [{}, {"delta": 1e-5}, {"calibration": "nissim"}, {"guess": 1}])
@pytest.mark.parametrize("scores", [[4, 3, 2, 1], [1, 1, 1, 1], [2, 2, 1, 1]])
def test_all_but_the_value_of_a_release_is_the_same_for_all_records(function, options, scores):
    public, states, kinds = [], [], set()
    for labels in every_labelling(4):
        rng = np.random.default_rng(11)
        released = function(labels, scores, 0.7, rng=rng, **options)
        public.append(public_part(released))
        states.append(rng.bit_generator.state)
        kinds.add((type(released), type(released.value)))
        assert 0 <= float(released) <= 1
    assert all(part == public[0] for part in public)
    # Nor does a generator that others share go on from another place.
    assert all(state == states[0] for state in states)
    assert kinds == {(private_auc.MetricRelease, float)}


@pytest.mark.parametrize("function", RELEASES)
def test_an_interval_depends_on_the_released_value_and_public_numbers_only(function):
    intervals = set()
    for labels in every_labelling(4):
        released = function(labels, [1, 2, 3, 4], 2.0, rng=0)
        intervals.add(metric_interval(dataclasses.replace(released, value=0.6), at_least=1))
    assert len(intervals) == 1


def test_all_but_the_counts_of_a_confusion_matrix_is_the_same_for_all_records():
    public, states, noise = [], [], set()
    for labels in every_labelling(3):
        for predictions in every_labelling(3):
            rng = np.random.default_rng(4)
            released = release_confusion_matrix(labels, predictions, 0.3, rng=rng)
            public.append(public_part(released))
            states.append(rng.bit_generator.state)
            cells = np.bincount(2 * labels + predictions, minlength=4)
            noise.add(tuple(np.ravel(released.value) - cells))
            assert np.sum(released.value) == 3
            assert {type(count) for row in released.value for count in row} == {int}
            confusion_metrics(released)
    assert all(part == public[0] for part in public)
    assert all(state == states[0] for state in states)
    assert len(noise) == 1


@pytest.mark.parametrize(
    "bad", [{"scores": [1, 2, math.nan, 4]}, {"guess": 3}, {"labels": [0, 1, 2, 0]}]
)
def test_a_refusal_is_the_same_whatever_the_other_records_are(bad):
    messages = set()
    for labels in every_labelling(4):
        arguments = {"labels": labels, "scores": [4, 3, 2, 1], "epsilon": 1.0} | bad
        with pytest.raises(ValueError, match=" must ") as refusal:
            release_auc(**arguments)
        messages.add(str(refusal.value))
    assert len(messages) == 1


def test_without_a_class_the_release_is_centred_at_its_convention():
    for labels, function, centre in [
        ([0] * 6, release_auc, 0.5),
        ([1] * 6, release_auc, 0.5),
        ([0] * 6, release_average_precision, 0.0),
        ([1] * 6, release_average_precision, 1.0),
    ]:
        assert float(function(labels, range(6), 60.0, rng=0)) == pytest.approx(centre, abs=1e-6)


# Intervals.


def coverage(intervals, truth):
    return np.mean([low <= truth <= high for _, low, high in intervals])


def drawn_intervals(function, draw, epsilon, size, runs=500, **options):
    rng = np.random.default_rng(9)
    for _ in range(runs):
        release = function(*draw(rng), epsilon, guess=size, rng=rng, **options)
        yield metric_interval(release, confidence=0.9, at_least=size)


def decided_by_positives(rng):
    """Draw scores whose AUC varies as much as any can: a positive is above all, or below all."""
    labels = np.arange(4000) < 1000
    return labels, np.where(labels, np.where(rng.random(4000) < 0.6, 1, -1), 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.0), (30.0, 0.0), (0.1, 1e-3)])
def test_intervals_of_the_auc_hold_the_truth_as_often_as_they_say(epsilon, delta):
    drawn = drawn_intervals(release_auc, decided_by_positives, epsilon, 1000, delta=delta)
    assert 0.86 <= coverage(drawn, 0.6) <= 0.94


def test_intervals_of_the_auc_are_wide_for_ordinary_scores():
    def ordinary(rng):
        labels = np.arange(400) < 100
        return labels, rng.normal(size=400) + 1.2 * labels

    truth = stats.norm.cdf(1.2 / math.sqrt(2))
    assert coverage(drawn_intervals(release_auc, ordinary, 30.0, 100), truth) > 0.93


def test_intervals_of_average_precision_hold_the_truth_for_ordinary_scores():
    def ordinary(rng):
        labels = np.arange(1000) < 300
        return labels, rng.normal(size=1000) + 1.2 * labels

    rng = np.random.default_rng(0)
    truth = np.mean([average_precision(*ordinary(rng)) for _ in range(300)])
    for epsilon in (1.0, 30.0):
        found = drawn_intervals(release_average_precision, ordinary, epsilon, 300)
        assert coverage(found, truth) > 0.88


def test_intervals_grow_with_confidence_and_shrink_with_records():
    release = release_auc(LABELS, SCORES, 3.0, rng=1)
    widths = [
        estimate.high - estimate.low
        for estimate in (
            metric_interval(release, confidence=0.99, at_least=10),
            metric_interval(release, at_least=10),
            metric_interval(release, at_least=20),
            metric_interval(release, at_least=40),
        )
    ]
    assert np.all(np.diff(widths) < 0)
    assert len(set(widths)) == 4


def test_an_interval_asks_for_a_bound_that_can_be_true():
    release = release_auc(LABELS, SCORES, 3.0, rng=1)
    with pytest.raises(TypeError, match="at_least"):
        metric_interval(release)
    with pytest.raises(ValueError, match=r"at_least must be an integer in \[1, 40\], got 41"):
        metric_interval(release, at_least=41)
    release = release_average_precision(LABELS, SCORES, 3.0, rng=1)
    assert metric_interval(release, at_least=80).high <= 1
    for value in (math.nan, -0.1, 1.5):
        with pytest.raises(ValueError, match=r"release.value must be a number in \[0, 1\]"):
            metric_interval(dataclasses.replace(release, value=value), at_least=20)


@pytest.mark.parametrize("confidence", [0.9, 0.99999, 1 - 1e-9])
def test_without_noise_an_interval_is_wilsons_at_any_confidence(confidence):
    labels = np.arange(2000) < 1000
    release = dataclasses.replace(release_auc(labels, labels, 60.0, rng=0), value=0.8)
    z = -stats.norm.ppf((1 - confidence) / 2)
    middle, reach = 0.8 + z**2 / 2000, z * math.sqrt(0.8 * 0.2 / 1000 + z**2 / 4e6)
    expected = [(middle + sign * reach) / (1 + z**2 / 1000) for sign in (-1, 1)]
    found = metric_interval(release, confidence=confidence, at_least=1000)
    assert found[1:] == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-9, 0.5])
def test_an_interval_stays_within_zero_and_one_and_holds_the_release(value):
    release = dataclasses.replace(release_auc(LABELS, SCORES, 2.0, rng=1), value=value)
    estimate = metric_interval(release, at_least=20)
    assert 0 <= estimate.low <= value <= estimate.high <= 1
    mirrored = metric_interval(dataclasses.replace(release, value=1 - value), at_least=20)
    assert mirrored.low == pytest.approx(1 - estimate.high, abs=1e-9)


# The confusion matrix.


def lattice(radius):
    """Return all four whole numbers of sum 0 up to a distance."""
    steps = np.array(list(itertools.product(range(-radius, radius + 1), repeat=3)))
    steps = np.column_stack([steps, -steps.sum(axis=1)])
    return steps[np.abs(steps).sum(axis=1) <= 2 * radius]


def test_the_noise_of_a_confusion_matrix_has_its_law():
    epsilon, cells = 0.8, [(1, 1)] * 3 + [(1, 0), (0, 1)]
    labels, predictions = zip(*cells, strict=True)
    rng = np.random.default_rng(2)
    drawn = [
        np.ravel(release_confusion_matrix(labels, predictions, epsilon, rng=rng).value)
        - [0, 1, 1, 3]
        for _ in range(5000)
    ]
    near = lattice(2)
    total = 1 + sum((10 * r * r + 2) * math.exp(-epsilon * r) for r in range(1, 200))
    law = np.exp(-epsilon * np.abs(near).sum(axis=1) / 2) / total
    seen = np.array([np.count_nonzero((np.array(drawn) == z).all(axis=1)) for z in near])
    observed, expected = np.append(seen, 5000 - seen.sum()), np.append(law, 1 - law.sum())
    assert stats.chisquare(observed, 5000 * expected).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0])
def test_the_rounding_of_coins_is_paid_for(monkeypatch, epsilon):
    rates = []

    def zero(rate, rng):
        rates.append(rate)
        return np.zeros(4, dtype=int)

    monkeypatch.setattr(private_auc, "_balanced_noise", zero)
    release_confusion_matrix([0, 1], [0, 1], epsilon)
    # The worst rounding of an exponential of at most 700, twice, and of three binary expansions.
    assert 2 * (rates[0] + 700 * 2.0**-53) + 1e-13 <= epsilon
    assert rates[0] == pytest.approx(epsilon / 2, rel=0.003)


def test_there_are_ten_r_squared_plus_two_matrices_at_distance_r():
    radii = np.abs(lattice(6)).sum(axis=1) // 2
    assert np.bincount(radii).tolist() == [1] + [10 * r * r + 2 for r in range(1, 7)]


def test_a_record_moves_a_confusion_matrix_by_one_step():
    def mechanism(data, *, rng):
        return np.ravel(release_confusion_matrix(*data, 1.0, rng=rng).value)

    found = audited(mechanism, ([1, 0, 0], [1, 0, 0]), ([0, 0, 0], [1, 0, 0]), trials=4000)
    assert 0.7 < found <= 1.0


def test_cells_vary_less_than_with_independent_noise():
    rng = np.random.default_rng(3)
    drawn = [private_auc._balanced_noise(0.05, rng) for _ in range(4000)]
    assert np.var(drawn, axis=0) == pytest.approx(np.full(4, 4.2 / 0.1**2), rel=0.15)
    assert np.mean(drawn, axis=0) == pytest.approx(np.zeros(4), abs=1.5)
    cells = np.eye(4)
    stated = [[private_auc._noise_form(one, other, 0.1) for one in cells] for other in cells]
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), stated, atol=0.12 * 420)


def test_an_interval_knows_the_width_and_the_heavy_tails_of_the_noise():
    rng, epsilon = np.random.default_rng(6), 1e-4
    noise = np.array([private_auc._balanced_noise(epsilon / 2, rng) for _ in range(12_000)])
    release = dataclasses.replace(
        release_confusion_matrix([0], [0], epsilon, rng=0),
        value=((400_000, 100_000), (100_000, 400_000)),
    )
    for confidence in (0.9, 0.95, 0.99):
        found = confusion_metrics(release, confidence=confidence)["accuracy"]
        expected = np.quantile(np.abs(noise[:, 0] + noise[:, 3]), confidence)
        # The correction is for a single cell, whose tails are heavier than those of a sum of two.
        assert 0.97 < (found.high - found.low) / 2 * 1e6 / expected < 1.25


def test_metrics_of_a_confusion_matrix_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    labels, predictions = rng.integers(0, 2, 5000), rng.random(5000) < 0.7
    predictions = np.where(predictions, labels, 1 - labels)
    released = release_confusion_matrix(labels, predictions, 50.0, rng=0)
    assert np.array_equal(released.value, metrics.confusion_matrix(labels, predictions))
    found = confusion_metrics(released)
    expected = {
        "accuracy": metrics.accuracy_score(labels, predictions),
        "recall": metrics.recall_score(labels, predictions),
        "specificity": metrics.recall_score(labels, predictions, pos_label=0),
        "precision": metrics.precision_score(labels, predictions),
        "f1": metrics.f1_score(labels, predictions),
    }
    assert {name: estimate.value for name, estimate in found.items()} == pytest.approx(expected)


@pytest.mark.parametrize("value", [((3, 0), (0, 0)), ((0, 0), (0, 9)), ((-4, 1), (5, 2))])
def test_a_metric_with_nothing_to_divide_by_is_zero_with_an_interval_of_everything(value):
    release = dataclasses.replace(release_confusion_matrix([0], [0], 1.0, rng=0), value=value)
    for estimate in confusion_metrics(release).values():
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    if value == ((3, 0), (0, 0)):
        assert confusion_metrics(release)["recall"] == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("epsilon", "n"), [(0.05, 10_000), (0.3, 1000), (20.0, 1000)])
def test_intervals_of_confusion_metrics_hold_the_truth_as_often_as_they_say(epsilon, n):
    rng = np.random.default_rng(5)
    truths = {"accuracy": 0.83, "recall": 0.75, "specificity": 0.85, "precision": 0.15 / 0.27}
    truths["f1"] = 2 * 0.15 / (2 * 0.15 + 0.12 + 0.05)
    hits = dict.fromkeys(truths, 0)
    for _ in range(600):
        labels = rng.random(n) < 0.2
        wrong = rng.random(n) < np.where(labels, 0.25, 0.15)
        released = release_confusion_matrix(labels, labels ^ wrong, epsilon, rng=rng)
        for name, estimate in confusion_metrics(released, confidence=0.9).items():
            hits[name] += estimate.low <= truths[name] <= estimate.high
    assert min(hits.values()) > 0.85 * 600
    assert max(hits.values()) < 0.95 * 600


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
    rates = [0.0, 0.3, 1.0]
    assert binormal_roc(1.0, rates).tolist() == [0.0, 1.0, 1.0]
    assert binormal_roc(0.0, rates).tolist() == [0.0, 0.0, 1.0]
    assert binormal_roc(0.5, rates).tolist() == pytest.approx(rates)
    assert binormal_roc(0.7, [[0.2], [0.4]]).shape == (2, 1)


# The attack.


def attacked(n, publish, trials=200, **options):
    """Return how often the label of a record is found, each label a fair coin by itself."""
    rng, hits = np.random.default_rng(8), 0
    for _ in range(trials):
        labels = rng.integers(0, 2, n)
        labels[1:3] = 0, 1
        scores = rng.normal(size=n) + 1.2 * labels
        hits += (
            reidentify_label(labels[1:], scores[1:], publish(labels, scores), **options)
            == (labels[0])
        )
    return hits / trials


def test_the_auc_gives_a_label_away_unless_it_is_rounded():
    def rounded(decimals):
        return lambda *data: round(auc(*data), decimals)

    assert attacked(50, auc) > 0.98
    assert attacked(50, rounded(4), decimals=4) > 0.95
    assert attacked(10, auc) > 0.75
    assert attacked(200, rounded(2), decimals=2) < 0.62


def test_the_attack_finds_no_more_in_a_private_auc_than_epsilon_allows():
    rng = np.random.default_rng(1)
    found = attacked(50, lambda *data: float(release_auc(*data, 0.5, rng=rng)), trials=600)
    assert found <= math.exp(0.5) / (1 + math.exp(0.5)) + 3 * math.sqrt(0.25 / 600)


def nearest_label(known, published, decimals):
    """Return the label whose AUC comes nearest, over all gaps between known scores."""

    def rounded(area):
        return area if decimals is None else Fraction(float(np.round(float(area), decimals)))

    levels = sorted({score for _, score in known})
    places = [levels[0] - 1, *(level + 0.5 for level in levels)]
    trials = [[*known, (label, place)] for place in places for label in (0, 1)]
    matches = [
        (abs(rounded(auc_of_pairs(trial, "half")) - published), trial[-1][0])
        for trial in trials
        if len({label for label, _ in trial}) == 2
    ]
    nearest = min(matches)[0] + Fraction(1, 10**12)
    near = [label for distance, label in matches if distance <= nearest]
    return int(near.count(1) > near.count(0))


@given(
    known=records,
    published=st.one_of(st.floats(0, 1), st.integers(0, 60).map(lambda k: k / 60)),
    decimals=st.sampled_from([None, 0, 1, 2]),
)
def test_the_attack_tries_every_rank_with_both_labels(known, published, decimals):
    if decimals is not None:
        published = round(published, decimals)
    found = reidentify_label(*columns(known), published, decimals=decimals)
    assert found == nearest_label(known, Fraction(published), decimals)


def test_of_equal_matches_the_more_frequent_label_wins_and_zero_in_a_draw():
    # Above or below the negative: as a positive the AUC is 1 or 1/2, as a negative the same.
    assert reidentify_label([0, 1], [1, 2], 0.5) == 0
    # Rounded to no decimals, one match of a negative stands against two of a positive.
    assert reidentify_label([0, 1, 1], [1, 2, 3], 1.0, decimals=0) == 1
    for decimals in (17, 400, 10**400):
        assert reidentify_label([0, 1, 1], [1, 2, 3], 0.5, decimals=decimals) == 0
    # With a single class known, only the other one leaves an AUC at all.
    assert reidentify_label([1, 1], [1, 2], 0.5) == 0
    assert reidentify_label([0, 0], [1, 2], 0.5) == 1


def test_the_two_data_sets_of_the_sources_figure_are_neighbours():
    negatives = np.arange(1, 15)
    positives = np.array([14.5] * 11 + [10.5] + [0.5] * 3)
    common = np.concatenate([negatives, positives]), np.repeat([0, 1], [14, 15])
    areas = [
        auc(np.append(common[1], label), np.append(common[0], score))
        for label, score in [(0, 0.0), (1, 9.5)]
    ]
    assert areas == [179 / 225, 173 / 224]
    assert np.round(areas, 3).tolist() == [0.796, 0.772]
    assert areas[0] - areas[1] <= auc_local_sensitivity(15, 15)
