import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpnotes import audit, private_confusion
from dpnotes.private_confusion import (
    ConfusionRelease,
    confusion_metrics,
    release_confusion_matrix,
)

PROMISE = {"mechanism": "discrete Laplace noise", "neighbours": "one record replaced"}


def audited(mechanism, dataset, neighbour, trials):
    return audit.epsilon_lower_bound(mechanism, dataset, neighbour, trials=trials, rng=1)


def every_labelling(n):
    return [np.array(labels) for labels in itertools.product([0, 1], repeat=n)]


def public_part(release):
    return {
        field.name: getattr(release, field.name)
        for field in dataclasses.fields(release)
        if field.name != "value"
    }


def lattice(radius):
    """Return all four whole numbers of sum 0 up to a distance."""
    steps = np.array(list(itertools.product(range(-radius, radius + 1), repeat=3)))
    steps = np.column_stack([steps, -steps.sum(axis=1)])
    return steps[np.abs(steps).sum(axis=1) <= 2 * radius]


def has_its_distribution(drawn, rate):
    """Compare four whole numbers of sum 0 with probabilities in proportion to exp(-rate |z|_1)."""
    near = lattice(2)
    total = 1 + sum((10 * r * r + 2) * math.exp(-2 * rate * r) for r in range(1, 200))
    expected = np.exp(-rate * np.abs(near).sum(axis=1)) / total
    seen = np.array([np.count_nonzero((drawn == z).all(axis=1)) for z in near])
    observed = np.append(seen, len(drawn) - seen.sum())
    return stats.chisquare(observed, len(drawn) * np.append(expected, 1 - expected.sum())).pvalue


@pytest.mark.claim("private_confusion.release_confusion_matrix", kind="simulation with its error")
@pytest.mark.parametrize("seed", [2, 3])
def test_the_noise_of_a_confusion_matrix_has_its_distribution(seed):
    drawn = private_confusion._kept_proposals(60_000, 0.4, np.random.default_rng(seed))
    assert 10_000 < len(drawn) < 50_000
    assert has_its_distribution(drawn, 0.4) > 1e-6


@pytest.mark.parametrize("proposals", [1, 2, 16])
def test_noise_of_which_no_proposal_was_kept_is_proposed_again(monkeypatch, proposals):
    monkeypatch.setattr(private_confusion, "_PROPOSALS", proposals)
    rng = np.random.default_rng(4)
    drawn = np.array([private_confusion._balanced_noise(0.4, rng) for _ in range(1500)])
    assert has_its_distribution(drawn, 0.4) > 1e-6


def test_a_release_adds_its_noise_to_the_counts():
    cells = [(1, 1)] * 3 + [(1, 0), (0, 1)]
    labels, predictions = zip(*cells, strict=True)
    for seed in range(20):
        released = release_confusion_matrix(labels, predictions, 0.8, rng=seed)
        noise = private_confusion._balanced_noise(0.4 - 1e-12, np.random.default_rng(seed))
        assert np.ravel(released.value).tolist() == np.add(noise, [0, 1, 1, 3]).tolist()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0])
def test_the_rounding_of_coins_is_paid_for(monkeypatch, epsilon):
    rates = []

    def zero(rate, rng):
        rates.append(rate)
        return np.zeros(4, dtype=int)

    monkeypatch.setattr(private_confusion, "_balanced_noise", zero)
    release_confusion_matrix([0, 1], [0, 1], epsilon)
    # The worst rounding of an exponential of at most 700, twice, and of the odds of three numbers.
    assert 2 * (rates[0] + 700 * 2.0**-53) + 1e-13 <= epsilon
    assert rates[0] == pytest.approx(epsilon / 2, rel=0.003)


def test_there_are_ten_r_squared_plus_two_matrices_at_distance_r():
    radii = np.abs(lattice(6)).sum(axis=1) // 2
    assert np.bincount(radii).tolist() == [1] + [10 * r * r + 2 for r in range(1, 7)]


@pytest.mark.claim("private_confusion.release_confusion_matrix", kind="audit")
def test_a_record_moves_a_confusion_matrix_by_one_step():
    def mechanism(data, *, rng):
        return np.ravel(release_confusion_matrix(*data, 1.0, rng=rng).value)

    found = audited(mechanism, ([1, 0, 0], [1, 0, 0]), ([0, 0, 0], [1, 0, 0]), trials=1500)
    assert 0.5 < found <= 1.0


def test_cells_vary_less_than_with_independent_noise():
    drawn = private_confusion._kept_proposals(100_000, 0.05, np.random.default_rng(3))
    assert np.var(drawn, axis=0) == pytest.approx(np.full(4, 4.2 / 0.1**2), rel=0.04)
    assert np.mean(drawn, axis=0) == pytest.approx(np.zeros(4), abs=0.5)
    cells = np.eye(4)
    stated = [[private_confusion._noise_form(one, other, 0.1) for one in cells] for other in cells]
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), stated, atol=0.04 * 420)


def test_an_interval_knows_the_width_and_the_heavy_tails_of_the_noise():
    rng, epsilon = np.random.default_rng(6), 1e-4
    noise = private_confusion._kept_proposals(100_000, epsilon / 2, rng)
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


@pytest.mark.claim("private_confusion.confusion_metrics", kind="simulation with its error")
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


def test_the_same_seed_gives_the_same_matrix():
    labels = np.arange(80) % 2
    matrices = [release_confusion_matrix(labels, labels, 0.01, rng=5) for _ in range(2)]
    assert matrices[0] == matrices[1]


def test_no_epsilon_is_too_large():
    labels = np.arange(80) % 2
    matrix = release_confusion_matrix(labels, labels, 1.7e308, rng=0)
    assert confusion_metrics(matrix)["accuracy"].value == 1.0


@pytest.mark.parametrize(("labels", "predictions"), [(3, 1), (1, 3), (2, 3)])
def test_labels_and_predictions_of_different_length_are_refused(labels, predictions):
    with pytest.raises(ValueError, match="predictions must have the shape of labels"):
        release_confusion_matrix([1] * labels, [1] * predictions, 1.0)


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, math.nan, math.inf])
def test_a_matrix_with_no_valid_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        ConfusionRelease(value=((1, 2), (3, 4)), epsilon=epsilon, **PROMISE)


@pytest.mark.parametrize("value", [((1, 2),), ((1.5, 2), (3, 4)), None, (1, 2, 3, 4), "matrix"])
def test_what_is_no_matrix_of_whole_numbers_is_refused(value):
    with pytest.raises(TypeError, match="value must be two pairs of whole numbers"):
        ConfusionRelease(value=value, epsilon=1.0, **PROMISE)


@pytest.mark.parametrize("value", [((0, 0), (0, 0)), ((3, -4), (0, 0)), ((2**62, -(2**62)),) * 2])
def test_counts_of_no_record_are_refused(value):
    with pytest.raises(ValueError, match="value must be counts that sum to the number of records"):
        ConfusionRelease(value=value, epsilon=1.0, **PROMISE)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-100])
def test_no_epsilon_is_too_small_for_an_interval_of_everything(epsilon):
    matrix = ConfusionRelease(value=((1, 0), (0, 1)), epsilon=epsilon, **PROMISE)
    for found in confusion_metrics(matrix).values():
        assert (found.low, found.high) == (0.0, 1.0)


def test_a_matrix_may_hold_negative_counts_and_arrays_become_plain_numbers():
    release = ConfusionRelease(value=np.array([[-1, 2], [3, 4]]), epsilon=1, **PROMISE)
    assert release.value == ((-1, 2), (3, 4))
    assert {type(count) for row in release.value for count in row} == {int}
    assert (type(release.epsilon), release.delta) == (float, 0.0)
    with pytest.raises(ValueError, match="delta must be"):
        ConfusionRelease(value=((1, 2), (3, 4)), epsilon=1.0, delta=2.0, **PROMISE)
