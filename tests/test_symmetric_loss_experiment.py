"""The long experiment, on small grids and on noise that has the shape of images."""

import math
from argparse import Namespace
from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from long_runs import read_document, start  # noqa: E402

from dpnotes import datasets, randomized_response, training  # noqa: E402
from dpnotes import symmetric_loss as losses  # noqa: E402
from dpnotes.experiments import _digits, _run  # noqa: E402
from dpnotes.experiments import symmetric_loss as experiment  # noqa: E402
from dpnotes.experiments._run import Unit  # noqa: E402
from dpnotes.experiments.symmetric_loss import (  # noqa: E402
    CORRECTED,
    LOSSES,
    list_runs,
    load_images,
    measure_unit,
    summarize,
)

BRIEF = training.Schedule(epochs=2, batch_size=32, learning_rate=0.01, evaluate_after=(1, 2))
NAMES = ("barrier hinge", "hinge", CORRECTED)
RUNS = list_runs(NAMES, epsilons=(1.0, None))


def noise(n=64, *, tests=40, side=32, channels=3):
    """Return images of two kinds that differ in brightness alone."""
    rng = np.random.default_rng(0)
    found = []
    for size in (n, tests):
        y = np.where(np.arange(size) % 2 == 0, 1, -1)
        x = rng.integers(200, size=(size, side, side, channels))
        found += [(x + (y > 0)[:, None, None, None] * 40).astype(np.uint8), y]
    return datasets.ImageData(*found)


def run(*words):
    return start("symmetric_loss", *words)


def measure(images, runs, *, network="patches", schedule=BRIEF):
    """Measure runs on images that are given."""
    key = {"data": "cifar10", "network": network, "seed": 0}
    unit = Unit(key, asdict(schedule), runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "load_images", lambda data, path: images)
        return measure_unit(unit, Namespace(images=None, device="cpu"), None)


def run_of(row):
    return {name: row[name] for name in ("loss", "objective", "epsilon")}


# The grid.


def test_runs_with_one_risk_are_neighbours_and_the_corrected_one_has_no_objective():
    runs = list_runs(["hinge", CORRECTED], ["ber", "auc"], [0.5, None])
    kinds = [("hinge", "ber"), ("hinge", "auc"), (CORRECTED, "mean")]
    assert [tuple(run.values()) for run in runs] == [(*k, e) for k in kinds for e in (0.5, None)]
    for _, _, schedule, *_ in (*experiment.WHOLE, *experiment.SMALL):
        assert schedule.evaluate_after[-1] == schedule.epochs


def test_the_corrected_loss_knows_the_rate_of_lies():
    at_one, clean = (experiment._make_risk(CORRECTED, "mean", e) for e in (1.0, None))
    scores, labels = torch.tensor([[3.0, -1.0, 0.5]]), torch.tensor([[1.0, 1.0, -1.0]])
    assert torch.equal(clean(scores, labels), LOSSES["logistic"](labels * scores).mean(-1))
    keep = randomized_response.keep_probability(0.5)
    loss = losses.corrected_logistic_loss(labels * scores, keep)
    assert torch.equal(at_one(scores, labels), loss.mean(-1))


# The data.


def test_images_are_those_of_the_data_sets_with_two_classes(monkeypatch):
    images = noise()
    pair = images._replace(
        **{y: np.where(getattr(images, y) > 0, 0, 7) for y in ("y_train", "y_test")}
    )
    digits = [part for n in (30_010, 10) for part in (np.ones((n, 28, 28)), np.arange(n) % 10)]
    found = {("cifar10", (0, 7)): pair, ("mnist", range(10)): datasets.ImageData(*digits)}
    monkeypatch.setattr(_run, "load_images", lambda data, path, classes: found[data, classes])
    for ours, theirs in zip(images, load_images("cifar10"), strict=True):
        assert np.array_equal(ours, theirs)
    found = load_images("mnist")
    assert found.x_train.shape == (30_000, 28, 28, 1)
    assert found.y_train[:3].tolist() == [1, -1, 1]
    # They get a margin and colours, as the networks want them.
    coloured = experiment._in_colour(found.x_test)
    assert coloured.shape == (10, 32, 32, 3)
    assert int(coloured.sum()) == 3 * int(found.x_test.sum())


def test_labels_lie_as_the_exponential_mechanism_makes_them():
    labels = np.ones(200_000)
    flipped = {}
    for epsilon in (0.5, 2.0):
        kept = experiment._keep(labels, epsilon, 7)
        assert np.mean(kept) == pytest.approx(1 / (1 + math.exp(-epsilon / 2)), abs=0.005)
        assert np.array_equal(kept, experiment._keep(labels, epsilon, 7))
        assert not np.array_equal(kept, experiment._keep(labels, epsilon, 8))
        flipped[epsilon] = ~kept
    # Each level draws coins of its own: lies at one say nothing about lies at another.
    both = (flipped[0.5] & flipped[2.0]).mean()
    assert both == pytest.approx(flipped[0.5].mean() * flipped[2.0].mean(), abs=0.005)
    assert experiment._keep(labels, None, 7).all()


# The measurement.


@pytest.mark.parametrize("network", ["cnn", "convnet", "patches"])
@pytest.mark.parametrize("channels", [1, 3], ids=["digits", "colour"])
def test_every_network_measures_every_run(network, channels):
    images = noise(32, tests=10, side=32 if channels == 3 else 28, channels=channels)
    runs = list_runs(("hinge", CORRECTED), ("auc",), (1.0, None))
    rows = measure(images, runs, network=network)
    assert [run_of(row) for row in rows] == runs
    for row in rows:
        for metric in ("accuracy", "median_accuracy", "ber", "auc"):
            assert len(row[metric]) == 2
            assert all(0 <= value <= 1 for value in row[metric])
        assert (row["flipped"] == 0) == (row["epsilon"] is None)


def test_brightness_is_learnt_from_true_labels():
    runs = list_runs(NAMES, epsilons=(None,))
    for row in measure(noise(n=200), runs, schedule=replace(BRIEF, epochs=20)):
        assert row["auc"][-1] > 0.9, row
        assert row["median_accuracy"][-1] > 0.8, row


def test_metrics_are_those_of_their_definitions():
    scores = np.array([2.0, 0.5, 0.5, -1.0, 0.0, 0.5])
    labels = np.array([1, 1, -1, -1, 1, -1])
    found = experiment._metrics(scores, labels)
    pairs = [(p > n) + (p == n) / 2 for p in scores[labels > 0] for n in scores[labels < 0]]
    assert found["auc"] == round(np.mean(pairs), 4)
    # Right: 2.0, 0.5 and -1.0; half right: 0.0.
    assert found["accuracy"] == round(3.5 / 6, 4)
    assert found["ber"] == round(1 - (2.5 / 3 + 1 / 3) / 2, 4)
    # The median is 0.5: above it 2.0, below it -1.0 and 0.0, and three on it.
    assert found["median_accuracy"] == round((1 + 1 + 0 + 3 / 2) / 6, 4)


# The file.


def test_a_grid_is_measured_and_a_loss_that_is_added_alone(tmp_path, monkeypatch):
    out = tmp_path / "results.jsonl"
    monkeypatch.setattr(experiment, "load_images", lambda data, path: noise())
    plans = [(data, "patches", BRIEF, RUNS, n) for data, n in (("cifar10", 2), ("mnist", 1))]
    monkeypatch.setattr(experiment, "WHOLE", plans)
    assert run("--out", out) == 0
    units = read_document(out)["units"]
    where = [(unit["data"], unit["network"], unit["seed"]) for unit in units]
    assert where == [
        (data, "patches", s) for data, s in (("cifar10", 0), ("cifar10", 1), ("mnist", 0))
    ]
    for unit in units:
        assert unit["setup"]["losses"] == list(NAMES)
        assert [run_of(row) for row in unit["runs"]] == RUNS
    monkeypatch.setitem(LOSSES, "half hinge", lambda z: LOSSES["hinge"](z) / 2)
    wider = list_runs((*NAMES, "half hinge"), epsilons=(1.0, None))
    monkeypatch.setattr(experiment, "WHOLE", [("cifar10", "patches", BRIEF, wider, 2)])
    assert run("--out", out, "--data", "cifar10") == 0
    units = read_document(out)["units"]
    for unit in units[3:]:
        assert unit["setup"]["losses"] == ["half hinge"]
        assert [run_of(row) for row in unit["runs"]] == [r for r in wider if r not in RUNS]
    rows = summarize({"units": [unit for unit in units if unit["data"] == "cifar10"]}, "auc")
    found = [run_of(row) for row in rows]
    assert len(found) == len(wider)
    assert all(run in found for run in wider)
    assert {row["seeds"] for row in rows} == {2}
    # The added loss is trained as it would be among all others.
    whole = measure(noise(), wider)
    for row in units[3]["runs"]:
        [other] = [other for other in whole if run_of(other) == run_of(row)]
        np.testing.assert_allclose(row["auc"], other["auc"], atol=0.02)


def test_images_of_one_file_are_for_one_data_set(tmp_path, capsys):
    assert run("--out", tmp_path / "x", "--images", "pair.npz") == 1
    assert "--images is for one data set" in capsys.readouterr().err


def unit(seed, auc):
    runs = [{"loss": "hinge", "objective": "auc", "epsilon": 0.5, "auc": auc}]
    setup = {"evaluate_after": [1, 5], "losses": ["hinge"]}
    return {"data": "mnist", "network": "cnn", "seed": seed, "setup": setup, "runs": runs}


def test_a_summary_is_the_mean_over_seeds_of_one_set_up():
    first, second = unit(0, [0.1, 0.6]), unit(1, [0.2, 0.7])
    names = {"data": "mnist", "network": "cnn", "loss": "hinge", "objective": "auc"}
    expected = names | {"epsilon": 0.5, "mean": pytest.approx(0.65), "seeds": 2}
    assert summarize({"units": [first, second]}, "auc") == [expected]
    with pytest.raises(KeyError, match="ber"):
        summarize({"units": [first]}, "ber")
    with pytest.raises(ValueError, match="must be there once for seed 0"):
        summarize({"units": [first, first]}, "auc")
    second["setup"]["learning_rate"] = 0.02
    with pytest.raises(ValueError, match=r"\('mnist', 'cnn'\) must come from one set-up"):
        summarize({"units": [first, second]}, "auc")


# The digits of the pages.


def test_a_learner_of_digits_is_the_one_that_it_is_alone_and_true_labels_teach():
    digits = _digits.load()
    both = np.concatenate([digits.x_known, digits.x_unseen])
    assert len(np.unique(both, axis=0)) == len(both) == 1797
    risks = [_digits.balanced(LOSSES[name]) for name in ("sigmoid", "hinge")]
    rows = _digits.reports(digits.y_known, 0.5, seeds=2)
    rows[1] = digits.y_known
    found = _digits.fit(digits, risks, rows, (1, 3))
    assert found.shape == (2, 2, 2)
    alone = _digits.fit(digits, risks[1:], rows[:1], (1, 3))
    np.testing.assert_allclose(found[1:, :1], alone, atol=1e-6)
    assert found[:, 1].min() > 0.9
    mean, half = _digits.interval(np.array([0.6, 0.7, 0.8]))
    assert half == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)
    assert _digits.plus_minus(mean, 0.2401) == "0.70\u00a0±\u00a00.25"


def test_a_gpu_trains_in_bfloat16():
    words = ["--out", "x", "--networks", "cnn", "--seeds", "1"]
    for device, precision in (("cuda", "bfloat16"), ("cpu", "float32")):
        chosen = _run.make_parser(experiment).parse_args([*words, "--device", device])
        units = experiment.list_units(chosen)
        assert [unit.key["data"] for unit in units] == ["cifar10", "mnist"]
        assert {unit.setup["precision"] for unit in units} == {precision}
