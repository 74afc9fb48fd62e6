"""The long experiment, on small grids and on noise that has the shape of images."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dpnotes import datasets, randomized_response, training  # noqa: E402
from dpnotes.experiments import (  # noqa: E402
    _digits,
    _run,
    ten_classes,
)
from dpnotes.experiments import symmetric_loss as experiment  # noqa: E402
from dpnotes.experiments._run import RunError  # noqa: E402
from dpnotes.experiments.symmetric_loss import (  # noqa: E402
    CORRECTED,
    LOSSES,
    Images,
    Plan,
    Run,
    list_runs,
    load_images,
    measure,
    summarize,
)

BRIEF = training.Schedule(epochs=2, batch_size=32, learning_rate=0.01, evaluate_after=(1,))
PLAN = Plan(
    *("cifar10", "patches", BRIEF),
    losses=("barrier hinge", "hinge", CORRECTED),
    epsilons=(1.0, None),
    seeds=2,
)


def noise(n=64, *, tests=40, seed=0, side=32, channels=3):
    """Return images of two kinds that differ in brightness alone."""
    rng = np.random.default_rng(seed)
    labels = [np.where(np.arange(size) % 2 == 0, 1, -1) for size in (n, tests)]
    pixels = [
        (rng.integers(200, size=(len(y), side, side, channels)) + (y > 0)[:, None, None, None] * 40)
        for y in labels
    ]
    train, test = (x.astype(np.uint8) for x in pixels)
    return Images(train, labels[0], test, labels[1])


@pytest.fixture
def small(monkeypatch):
    """Let the whole grid and its cut be tiny ones on noise."""
    monkeypatch.setattr(experiment, "_images", lambda data, path: noise())
    mnist = PLAN._replace(data="mnist", seeds=1)
    monkeypatch.setattr(experiment, "WHOLE", (PLAN, mnist))


def run(*words):
    return experiment.main([str(word) for word in words])


def read(path):
    """Return the units of a file, as `load_results` gives them."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return datasets._gather(lines)


def keys(document):
    return [(unit["data"], unit["network"], unit["seed"]) for unit in document["units"]]


# The grid.


def test_runs_with_one_risk_are_neighbours_and_the_corrected_one_has_no_objective():
    runs = list_runs(["hinge", CORRECTED, "ramp"], ["ber", "auc"], [0.5, None])
    assert len(runs) == len(set(runs)) == 10
    assert runs[:4] == [
        *(Run("hinge", "ber", 0.5), Run("hinge", "ber", None)),
        *(Run("ramp", "ber", 0.5), Run("ramp", "ber", None)),
    ]
    assert runs[8:] == [Run(CORRECTED, "mean", 0.5), Run(CORRECTED, "mean", None)]
    risks = experiment._risks(runs)
    assert [risk is risks[0] for risk in risks[:4]] == [True, True, False, False]


def test_the_corrected_loss_knows_the_rate_of_lies():
    at_one, clean = experiment._corrected(1.0), experiment._corrected(None)
    assert at_one.keywords == {"keep_probability": randomized_response.keep_probability(0.5)}
    assert clean is LOSSES["logistic"]


# The data.


def test_images_are_those_of_the_data_sets_with_two_classes(monkeypatch, tmp_path):
    path, images = tmp_path / "pair.npz", noise()
    y_train, y_test = (np.where(y > 0, 0, 7) for y in (images.y_train, images.y_test))
    pair = datasets.ImageData(images.x_train, y_train, images.x_test, y_test)
    monkeypatch.setattr(datasets, "load_cifar10", lambda classes: {(0, 7): pair}[classes])
    np.savez(path, **pair._asdict())
    for found in (load_images("cifar10"), load_images("cifar10", str(path))):
        for ours, theirs in zip(images, found, strict=True):
            assert np.array_equal(ours, theirs)
    with pytest.raises(RunError, match=r"path must hold the classes \[0, 1, .*\] of mnist"):
        load_images("mnist", str(path))
    digits = [(np.ones((n, 28, 28), np.uint8), np.arange(n) % 10) for n in (30_010, 10)]
    monkeypatch.setattr(datasets, "load_mnist", lambda: datasets.ImageData(*digits[0], *digits[1]))
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
    plan = PLAN._replace(network=network, losses=("hinge", CORRECTED), objectives=("auc",))
    rows = measure(plan, 0, images)
    runs = list_runs(plan.losses, plan.objectives, plan.epsilons)
    assert [Run(row["loss"], row["objective"], row["epsilon"]) for row in rows] == runs
    for row in rows:
        for metric in ("accuracy", "median_accuracy", "ber", "auc"):
            assert len(row[metric]) == 2
            assert all(0 <= value <= 1 for value in row[metric])
        assert (row["flipped"] == 0) == (row["epsilon"] is None)


def test_brightness_is_learnt_from_true_labels():
    longer = PLAN._replace(schedule=replace(BRIEF, epochs=20), epsilons=(None,))
    for row in measure(longer, 0, noise(n=200)):
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


def test_a_grid_is_measured_and_a_loss_that_is_added_alone(small, tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.jsonl"
    assert run("--out", out) == 0
    document = read(out)
    assert (document["cut"], set(document["data"])) == (None, {"cifar10", "mnist"})
    assert keys(document) == [("cifar10", "patches", s) for s in (0, 1)] + [("mnist", "patches", 0)]
    for unit in document["units"]:
        assert unit["setup"]["evaluate_after"] == [1, 2]
        assert unit["setup"]["losses"] == list(PLAN.losses)
        assert len(unit["runs"]) == 10
    assert "cifar10, patches, seed 1: epoch 2/2" in capsys.readouterr().err
    monkeypatch.setitem(experiment.LOSSES, "half hinge", lambda z: LOSSES["hinge"](z) / 2)
    wider = PLAN._replace(losses=(*PLAN.losses, "half hinge"))
    monkeypatch.setattr(experiment, "WHOLE", (wider,))
    assert run("--out", out, "--data", "cifar10") == 0
    added = read(out)["units"][3:]
    assert [unit["seed"] for unit in added] == [0, 1]
    for unit in added:
        assert {run["loss"] for run in unit["runs"]} == {"half hinge"}
        assert unit["setup"]["losses"] == ["half hinge"]
        assert unit["setup"]["objectives"] == ["ber", "auc"]
        assert unit["setup"]["epsilons"] == [1.0, None]
    both = {"units": [unit for unit in read(out)["units"] if unit["data"] == "cifar10"]}
    rows = summarize(both, "auc")
    expected = list_runs(wider.losses, wider.objectives, wider.epsilons)
    assert {Run(r["loss"], r["objective"], r["epsilon"]) for r in rows} == set(expected)
    assert [row["seeds"] for row in rows] == [2] * len(rows)
    # The added loss is trained as it would be among all others.
    whole = measure(wider, 0, noise())
    named = {Run(row["loss"], row["objective"], row["epsilon"]): row for row in whole}
    for row in added[0]["runs"]:
        same = named[Run(row["loss"], row["objective"], row["epsilon"])]
        np.testing.assert_allclose(row["auc"], same["auc"], atol=0.02)


def test_images_of_one_file_are_for_one_data_set(tmp_path, capsys):
    assert run("--out", tmp_path / "x", "--images", "pair.npz") == 1
    assert "--images is for one data set" in capsys.readouterr().err


def test_runs_that_were_trained_in_different_ways_are_never_averaged():
    units = [unit(0, [0.1, 0.2]), unit(1, [0.1, 0.2])]
    units[1]["setup"] = {**units[1]["setup"], "learning_rate": 0.02}
    message = r"\('mnist', 'cnn'\) must come from one set-up"
    with pytest.raises(ValueError, match=message):
        summarize({"units": units}, "auc")


def test_a_run_that_is_there_twice_is_not_averaged():
    with pytest.raises(ValueError, match="must be there once for seed 0"):
        summarize({"units": [unit(0, [0.1, 0.2]), unit(0, [0.1, 0.2])]}, "auc")


def unit(seed, auc, *, epsilon=0.5):
    runs = [{"loss": "hinge", "objective": "auc", "epsilon": epsilon, "auc": auc}]
    setup = {"evaluate_after": [1, 5]}
    return {"data": "mnist", "network": "cnn", "seed": seed, "setup": setup, "runs": runs}


def test_a_summary_is_the_mean_over_seeds_with_students_interval():
    units = [unit(0, [0.1, 0.6]), unit(1, [0.2, 0.7]), unit(2, [0.3, 0.8])]
    [row] = summarize({"units": units}, "auc")
    names = {"data": "mnist", "network": "cnn", "loss": "hinge", "objective": "auc"}
    assert row.items() >= (names | {"epsilon": 0.5, "seeds": 3}).items()
    assert row["mean"] == pytest.approx(0.7)
    # The 97.5 % point of Student's t with two degrees of freedom is 4.30265.
    assert row["half_width"] == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)
    [early] = summarize({"units": units}, "auc", epoch=1)
    assert early["mean"] == pytest.approx(0.2)
    [single] = summarize({"units": units[:1]}, "auc")
    assert math.isnan(single["half_width"])
    with pytest.raises(ValueError, match="2 is not in list"):
        summarize({"units": units}, "auc", epoch=2)
    with pytest.raises(KeyError, match="ber"):
        summarize({"units": units}, "ber")


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


# What was measured.


@pytest.mark.parametrize("module", [experiment, ten_classes], ids=lambda module: module.__name__)
def test_the_committed_results_are_all_of_the_grid_that_they_name(module):
    name = module.EXPERIMENT.name
    path = datasets._SHIPPED / "results" / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["cut"], lines[0]["data"]) == (module.CUT, module.DATA)
    chosen = _run.make_parser(module.EXPERIMENT).parse_args(["--small", "--out", str(path)])
    assert _run.list_lacking(module.EXPERIMENT, chosen, lines) == []
    assert len(lines) == 1 + len(module.EXPERIMENT.list_units(chosen, {}))


def test_a_gpu_trains_in_bfloat16():
    words = ["--out", "x", "--networks", "cnn", "--seeds", "1"]
    for device, precision in (("cuda", "bfloat16"), ("cpu", "float32")):
        asked = [*words, "--device", device]
        chosen = _run.make_parser(experiment.EXPERIMENT).parse_args(asked)
        units = experiment.EXPERIMENT.list_units(chosen, {})
        assert [unit.key["data"] for unit in units] == ["cifar10", "mnist"]
        assert {unit.setup["precision"] for unit in units} == {precision}
