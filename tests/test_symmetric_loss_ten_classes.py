"""The experiment with ten classes, on a small grid and on noise that has the shape of images."""

from argparse import Namespace
from itertools import groupby

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from long_runs import read_document, start  # noqa: E402

from dpnotes import datasets, randomized_response, training  # noqa: E402
from dpnotes import symmetric_loss as losses  # noqa: E402
from dpnotes.experiments import _digits, _run  # noqa: E402
from dpnotes.experiments import ten_classes as experiment  # noqa: E402
from dpnotes.experiments._run import Unit  # noqa: E402
from dpnotes.experiments.ten_classes import (  # noqa: E402
    CORRECTED,
    LOSSES,
    choose,
    measure_unit,
)

BRIEF = training.Schedule(epochs=2, batch_size=20, evaluate_after=(1, 2))
NAMES = ("absolute error", "cross entropy", CORRECTED)


def list_runs(names=NAMES, rates=(0.001, 0.01)):
    return [
        {"loss": name, "epsilon": epsilon, "learning_rate": rate}
        for rate in rates
        for name in names
        for epsilon in (2.0, None)
    ]


def measure(images, runs, *, epochs=2, seed=0):
    """Measure runs on images that are given, of which 20 are held out."""
    setup = {"epochs": epochs, "batch_size": 20, "evaluate_after": (1, epochs), "held_out": 20}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "load_images", lambda data, path: images)
        unit = Unit({"seed": seed}, setup, runs)
        return measure_unit(unit, Namespace(images=None, device="cpu"), None)


def noise(n=100, tests=50):
    """Return images of ten kinds that differ in brightness alone."""
    rng, found = np.random.default_rng(0), []
    for size in (n, tests):
        y = (np.arange(size) % 10).astype(np.uint8)
        x = 20 * y[:, None, None, None] + rng.integers(60, size=(size, 12, 12, 3))
        found += [x.astype(np.uint8), y]
    return datasets.ImageData(*found)


def test_a_correction_is_that_of_ten_answers_and_one_loss_is_computed_together():
    scores, labels = torch.arange(40.0).sin().view(1, 4, 10), torch.tensor([[0, 3, 3, 9]])
    keep = randomized_response.keep_probability(2.0, 10)
    corrected = losses.corrected_cross_entropy(scores, labels, keep_probability=keep)
    expected = {
        (CORRECTED, 2.0): corrected,
        (CORRECTED, None): LOSSES["cross entropy"](scores, labels),
        ("absolute error", None): LOSSES["absolute error"](scores, labels),
    }
    for kind, values in expected.items():
        assert torch.equal(experiment._make_risk(*kind)(scores, labels), values.mean(-1))
    # Four: the corrected loss is another one for each epsilon.
    groups = groupby(list_runs(rates=[0.1]), experiment._name_risk)
    assert [len([*same]) for _, same in groups] == [2, 2, 1, 1]


def test_labels_are_reported_by_randomized_response_over_ten_answers():
    labels = (np.arange(100_000) % 10).astype(np.uint8)
    for epsilon in (0.5, 2.0):
        reports = experiment._report(labels, epsilon, 3)
        keep = randomized_response.keep_probability(epsilon, 10)
        assert np.mean(reports == labels) == pytest.approx(keep, abs=0.006)
        assert np.array_equal(reports, experiment._report(labels, epsilon, 3))
        assert not np.array_equal(reports, experiment._report(labels, epsilon, 4))
        lies = (reports - labels)[reports != labels] % 10
        assert np.bincount(lies)[1:] / len(lies) == pytest.approx([1 / 9] * 9, abs=0.006)
    assert np.array_equal(experiment._report(labels, None, 3), labels)


def brightness(train, test, *, rng):
    """Describe images by their brightness, so that a linear model tells the classes apart."""
    kinds = [((x.mean((1, 2, 3)) - 29.5) / 20).round().astype(int) for x in (train, test)]
    return [np.eye(10, dtype=np.float32)[kind] for kind in kinds]


def test_true_labels_teach_and_reports_teach_less(monkeypatch):
    monkeypatch.setattr(training, "patch_features", brightness)
    rows = measure(noise(n=300), list_runs(rates=[0.1]), epochs=10)
    found = {(row["loss"], row["epsilon"]): row for row in rows}
    assert list(found) == [(name, epsilon) for name in NAMES for epsilon in (2.0, None)]
    for row in rows:
        assert len(row["reported"]) == len(row["accuracy"]) == len(row["named"]) == 2
        if row["epsilon"] is None:
            assert row["accuracy"][-1] == row["reported"][-1] == 1
            assert row["named"][-1] == 10
        else:
            # Held-out reports lie, too: nobody can name half of them.
            assert row["reported"][-1] < 0.7
    # True labels need no correction.
    exact, corrected = (found[loss, None] for loss in ("cross entropy", CORRECTED))
    assert {**exact, "loss": CORRECTED} == corrected


def test_what_is_held_out_is_taught_to_nobody_and_its_reports_lie(monkeypatch):
    seen = []
    monkeypatch.setattr(experiment, "_train", lambda *given: [seen.append(given)])
    images = noise(n=300)
    measure(images, list_runs(), seed=1)
    assert [schedule.learning_rate for _, schedule, *_ in seen] == [0.001, 0.01]
    order = np.random.default_rng(1).permutation(300)
    for runs, _, _, lessons, exams, tests in seen:
        assert len(torch.unique(torch.cat([lessons[0], exams[0]]), dim=0)) == 300
        assert (len(tests[0]), tests[1].tolist()) == (50, images.y_test.tolist())
        for run, taught, held_out in zip(runs, lessons[1], exams[1], strict=True):
            reports = experiment._report(images.y_train, run["epsilon"], 1)
            assert held_out.tolist() == reports[order[:20]].tolist()
            assert taught.tolist() == reports[order[20:]].tolist()


def test_what_was_measured_is_that_of_its_definition():
    network, rows = torch.nn.Module(), [{"reported": [], "accuracy": [], "named": []}]
    network.forward = lambda x: torch.nn.functional.one_hot(x[:, 0].long(), 10)[None].float()
    answers = torch.tensor([0] * 97 + [1, 1, 2])
    x, exams = answers[:, None].float(), torch.tensor([[0] * 50 + [3] * 50])
    tests = x.repeat(2, 1), torch.cat([answers, answers * 0])
    experiment._evaluate(network, (x, exams), tests, rows)
    assert rows == [{"reported": [0.5], "accuracy": [0.985], "named": [3]}]
    # Two images in two hundred are one in a hundred.
    tests = x.repeat(2, 1)[:-1], torch.zeros(199)
    experiment._evaluate(network, (x, exams), tests, rows)
    assert rows[0]["named"] == [3, 2]


def test_a_run_that_diverges_is_named(monkeypatch):
    monkeypatch.setitem(LOSSES, "nothing", lambda scores, labels: scores.sum(-1) * float("nan"))
    message = "run nothing, epsilon None, learning rate 0.01 is nan in epoch 1"
    with pytest.raises(FloatingPointError, match=message):
        measure(noise(), [{"loss": "nothing", "epsilon": None, "learning_rate": 0.01}])


def test_a_grid_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "load_images", lambda data, path: noise())
    grid = {"LEARNING_RATES": (0.001, 0.01), "EPSILONS": (2.0, None), "SEEDS": 2, "HELD_OUT": 20}
    for name, value in {**grid, "SCHEDULE": BRIEF}.items():
        monkeypatch.setattr(experiment, name, value)
    out = tmp_path / "results.jsonl"
    assert start("ten_classes", "--out", out) == 0
    units = read_document(out)["units"]
    assert [unit["seed"] for unit in units] == [0, 1]
    for unit in units:
        assert unit["setup"]["evaluate_after"] == [1, 2]
        assert "learning_rate" not in unit["setup"]
        named = [{name: row[name] for name in list_runs()[0]} for row in unit["runs"]]
        assert named == list_runs((*LOSSES, CORRECTED))


def made(seed, **columns):
    """Return a unit of one loss and two rates, and what each has after two epochs."""
    rows = [
        {"loss": "x", "epsilon": 1.0, "learning_rate": rate}
        | {name: values[number] for name, values in columns.items()}
        for number, rate in enumerate((0.1, 0.2))
    ]
    return {"seed": seed, "setup": {"evaluate_after": [1, 5]}, "runs": rows}


def test_rate_and_epoch_are_chosen_by_reports_and_the_truth_is_hindsight():
    units = [
        made(
            seed,
            reported=[[0.3, 0.2], [0.25, 0.3 + seed]],
            accuracy=[[0.5, 0.6], [0.9, 0.7]],
            named=[[1, 2], [3, 4]],
        )
        for seed in (0, 1)
    ]
    first, second = choose({"units": units})
    # Of equally good ones the first; each seed for itself.
    assert (first["learning_rate"], first["epoch"], first["accuracy"]) == (0.1, 1, 0.5)
    assert (second["learning_rate"], second["epoch"], second["accuracy"]) == (0.2, 5, 0.7)
    assert (first["seed"], first["named"], second["named"]) == (0, 1, 4)
    best = choose({"units": units}, by="accuracy")
    assert [(row["epoch"], row["reported"], row["accuracy"]) for row in best] == [
        (1, 0.25, 0.9)
    ] * 2
    with pytest.raises(ValueError, match="by must be one of 'reported', 'accuracy', got 'named'"):
        choose({"units": units}, by="named")


def test_the_committed_results_say_what_the_page_says():
    """Forward correction leads at every cost; the absolute error beats cross entropy at one."""
    rows = choose(datasets.load_results("ten_classes"))

    def of_seeds(loss, epsilon):
        return np.array(
            [r["accuracy"] for r in rows if (r["loss"], r["epsilon"]) == (loss, epsilon)]
        )

    for epsilon in (0.5, 1.0, 2.0, 4.0):
        means = {loss: of_seeds(loss, epsilon).mean() for loss in (*LOSSES, CORRECTED)}
        assert max(means, key=means.get) == CORRECTED
        assert abs(of_seeds("unhinged", epsilon).mean() - 0.31) < 0.06

    def lead(rival, epsilon):
        return _digits.interval(of_seeds("absolute error", epsilon) - of_seeds(rival, epsilon))

    mean, half = lead("cross entropy", 1.0)
    assert mean - half > 0.06
    mean, half = lead("cross entropy", 4.0)
    assert mean + half < 0
    for epsilon in (2.0, 4.0, None):
        mean, half = lead(CORRECTED, epsilon)
        assert mean + half < 0
    for epsilon in (0.5, 1.0):
        mean, half = lead(CORRECTED, epsilon)
        assert abs(mean) < half
