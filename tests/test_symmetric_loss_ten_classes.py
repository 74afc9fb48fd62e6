"""The experiment with ten classes, on a small grid and on noise that has the shape of images."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dpnotes import datasets, randomized_response, training  # noqa: E402
from dpnotes.experiments import _digits  # noqa: E402
from dpnotes.experiments import ten_classes as experiment  # noqa: E402
from dpnotes.experiments.ten_classes import (  # noqa: E402
    CORRECTED,
    LOSSES,
    Plan,
    Run,
    choose,
    list_runs,
    measure,
)

BRIEF = training.Schedule(epochs=2, batch_size=20, evaluate_after=(1,))
PLAN = Plan(
    BRIEF,
    losses=("absolute error", "cross entropy", CORRECTED),
    epsilons=(2.0, None),
    learning_rates=(0.001, 0.01),
    held_out=20,
    seeds=2,
)


def noise(n=100, *, tests=50):
    """Return images of ten kinds that differ in brightness alone."""
    rng = np.random.default_rng(0)
    labels = [(np.arange(size) % 10).astype(np.uint8) for size in (n, tests)]
    pixels = [
        (20 * y[:, None, None, None] + rng.integers(60, size=(len(y), 12, 12, 3))).astype(np.uint8)
        for y in labels
    ]
    return datasets.ImageData(pixels[0], labels[0], pixels[1], labels[1])


def test_every_combination_is_run_and_neighbours_with_one_loss_are_computed_together():
    runs = list_runs(PLAN)
    assert len(runs) == len(set(runs)) == 12
    slow = [run for run in runs if run.learning_rate == 0.001]
    groups = experiment._risks(slow)
    assert [number for _, number in groups] == [2, 2, 1, 1]
    losses = [risk.keywords["loss"] for risk, _ in groups]
    assert losses[:2] == [LOSSES["absolute error"], LOSSES["cross entropy"]]
    keep = randomized_response.keep_probability(2.0, 10)
    assert losses[2].keywords == {"keep_probability": keep}
    assert losses[3] is LOSSES["cross entropy"]


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
    plan = PLAN._replace(schedule=replace(BRIEF, epochs=10), learning_rates=(0.1,))
    rows = measure(plan, 0, noise(n=300))
    found = {(row["loss"], row["epsilon"]): row for row in rows}
    assert list(found) == [(run.loss, run.epsilon) for run in list_runs(plan)]
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

    def train(runs, schedule, seed, data, tests):
        seen.append((runs, schedule, data, *tests))
        return []

    monkeypatch.setattr(experiment, "_train", train)
    images = noise(n=300)
    measure(PLAN, 1, images)
    assert [schedule.learning_rate for _, schedule, *_ in seen] == [0.001, 0.01]
    for runs, _, data, tests, truth in seen:
        assert data.x_held_out.shape[0] == data.y_held_out.shape[1] == 20
        assert data.x_taught.shape[0] == data.y_taught.shape[1] == 280
        both = torch.cat([data.x_taught, data.x_held_out])
        assert len(torch.unique(both, dim=0)) == 300
        assert truth.tolist() == images.y_test.tolist()
        assert len(tests) == 50
        order = np.random.default_rng(1).permutation(300)
        for run, taught, held_out in zip(runs, data.y_taught, data.y_held_out, strict=True):
            reports = experiment._report(images.y_train, run.epsilon, 1)
            assert held_out.tolist() == reports[order[:20]].tolist()
            assert taught.tolist() == reports[order[20:]].tolist()


def test_what_was_measured_is_that_of_its_definition():
    network = torch.nn.Module()
    rows = [{"reported": [], "accuracy": [], "named": []}]
    answers = torch.tensor([0] * 97 + [1, 1, 2])
    network.forward = lambda x: torch.nn.functional.one_hot(x[:, 0].long(), 10)[None].float()
    x = answers[:, None].float()
    reports = torch.tensor([[0] * 50 + [3] * 50])
    data = experiment.Data(x, reports, x, reports)
    experiment._evaluate(network, data, (x.repeat(2, 1), torch.cat([answers, answers * 0])), rows)
    assert rows == [{"reported": [0.5], "accuracy": [0.985], "named": [3]}]
    # Two images in two hundred are one in a hundred.
    experiment._evaluate(network, data, (x.repeat(2, 1)[:-1], torch.zeros(199).long()), rows)
    assert rows[0]["named"] == [3, 2]


def test_a_run_that_diverges_is_named(monkeypatch):
    monkeypatch.setitem(LOSSES, "nothing", lambda scores, labels: scores.sum(-1) * float("nan"))
    plan = PLAN._replace(losses=("nothing",), epsilons=(None,), learning_rates=(0.01,))
    message = "run nothing, epsilon None, learning rate 0.01 is nan in epoch 1"
    with pytest.raises(FloatingPointError, match=message):
        measure(plan, 0, noise())


def test_a_grid_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "_images", lambda path: noise())
    monkeypatch.setattr(experiment, "WHOLE", PLAN)
    out = tmp_path / "results.jsonl"
    assert experiment.main(["--out", str(out)]) == 0
    head, *units = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (head["cut"], head["data"]) == (None, experiment.DATA)
    assert [unit["unit"] for unit in units] == [{"seed": 0}, {"seed": 1}]
    for unit in units:
        assert unit["setup"]["evaluate_after"] == [1, 2]
        assert "learning_rate" not in unit["setup"]
        named = [Run(r["loss"], r["epsilon"], r["learning_rate"]) for r in unit["runs"]]
        assert named == list_runs(PLAN)


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
