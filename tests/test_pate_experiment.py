"""The experiment with teachers and students, on images that a small network learns at once."""

import json
import shutil
from argparse import Namespace
from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from long_runs import read_document, read_lines, start  # noqa: E402

from dpnotes import datasets, pate  # noqa: E402
from dpnotes.experiments import _run, _students  # noqa: E402
from dpnotes.experiments import pate as experiment  # noqa: E402
from dpnotes.experiments._students import train_students, train_teachers  # noqa: E402
from dpnotes.experiments.pate import (  # noqa: E402
    SETTINGS,
    Setting,
    ask,
    costs,
    fixed_cost,
    measure_unit,
    summarize,
)

TEACHERS = replace(experiment.TEACHERS, teachers=4, widths=(4, 4), epochs=4, batch_size=10)
STUDENT = replace(experiment.STUDENT, widths=(4, 4), steps=20, labelled=10, unlabelled=10)
CAPPED = Setting("capped", "confident gnmax", 30, 1.0, 3.0, 1.0, 5)
FREE = CAPPED._replace(name="free", most_answers=None)
FEW = (
    Setting("private data", "private data", 0),
    Setting("plurality", "plurality", 30),
    Setting("lnmax", "lnmax", 30, 0.5),
    FREE,
    CAPPED,
)


def squares(n=200, *, tests=100, seed=0):
    """Return images of ten kinds: a bright square stands in one of ten places."""
    rng = np.random.default_rng(seed)

    def draw(size):
        labels = np.arange(size) % 10
        images = rng.integers(60, size=(size, 28, 28))
        for image, label in zip(images, labels, strict=True):
            row, column = 2 + 9 * (label // 4), 2 + 6 * (label % 4)
            image[row : row + 6, column : column + 4] += 180
        return images.astype(np.uint8), labels.astype(np.uint8)

    return datasets.ImageData(*draw(n), *draw(tests))


def clear_votes(n=60):
    """Return votes of 250 teachers who all agree on label i % 10 for image i."""
    return np.eye(10, dtype=np.int64)[np.arange(n) % 10] * 250


# Enough to go through everything, and too little to learn.
GRID = {
    "TEACHERS": replace(TEACHERS, epochs=1),
    "STUDENT": replace(STUDENT, steps=4, labelled=5, unlabelled=5),
    "SETTINGS": FEW,
    "SEEDS": 3,
    "_TESTS": 40,
}


def run(*words):
    return start("pate", *words)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Compute in one thread: several take longer over networks so small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def patch_grid(patch):
    """Let the grid be a tiny one on squares."""
    patch.setattr(_run, "load_images", lambda name, path: squares())
    for name, value in GRID.items():
        patch.setattr(experiment, name, value)


@pytest.fixture
def small(monkeypatch):
    patch_grid(monkeypatch)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Measure two seeds of the tiny grid once for all."""
    folder = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        patch_grid(patch)
        assert run("--out", folder / "results.jsonl", "--seeds", 2) == 0
    return folder


@pytest.fixture
def copied(small, measured, tmp_path, monkeypatch):
    """Return a folder with results and votes of the tiny grid, on a machine that cannot train."""
    monkeypatch.setattr(experiment, "train_teachers", None)
    return shutil.copytree(measured, tmp_path / "copied")


# Questions, answers and their cost.


def test_every_setting_of_a_seed_asks_about_the_same_images():
    votes, asked = clear_votes(1000), Setting("", "plurality", 100)
    hundred, more = ask(asked, votes, 3).rows, ask(asked._replace(queries=640), votes, 3).rows
    assert np.array_equal(hundred, more[:100])
    assert len(set(more)) == 640
    assert not np.array_equal(ask(asked, votes, 4).rows, hundred)
    assert np.array_equal(ask(Setting("", "lnmax", 100, 20.0), votes, 3).rows, hundred)
    private = SETTINGS[0]
    assert ask(private, votes, 3).rows.size == 0
    with pytest.raises(ValueError, match=r"setting\.mechanism must be one of 'private data'"):
        ask(private._replace(mechanism="oracle"), votes, 3)


DOUBTFUL = np.random.default_rng(0).multinomial(250, [0.1] * 10, size=200)
CONFIDENT = Setting("", "confident gnmax", 200, 40.0, 30.0, 15.0)


@pytest.mark.parametrize(
    ("setting", "mechanism"),
    [
        (Setting("", "lnmax", 200, 20.0), pate.LNMax(0.05)),
        (CONFIDENT, pate.ConfidentGNMax(30.0, 15.0, 40.0)),
    ],
)
def test_answers_are_drawn_by_the_mechanisms_of_the_package(setting, mechanism):
    rows, labels = ask(setting, DOUBTFUL, 0)
    drawn = mechanism.answer(DOUBTFUL[rows], rng=np.random.default_rng([0, 1]))
    assert np.array_equal(labels, drawn)


def test_answering_stops_with_the_last_answer_that_is_allowed():
    every, capped = (ask(CONFIDENT._replace(most_answers=n), DOUBTFUL, 0) for n in (None, 12))
    assert (capped.labels >= 0).sum() == 12
    assert capped.labels[-1] >= 0
    assert np.array_equal(capped.labels, every.labels[: len(capped.labels)])
    assert np.array_equal(capped.rows, every.rows[: len(capped.rows)])
    assert len(every.rows) == 200


def test_the_cost_fixed_in_advance_is_the_one_of_the_theory():
    found = {setting.name: fixed_cost(setting) for setting in SETTINGS}
    # By the composition of any mechanisms of 2 gamma 4.3068, by that of the noisy counts 2.8934.
    assert found["lnmax, scale 20"] == pytest.approx(2.7535, abs=1e-4)
    assert found["confident gnmax, 286 answers"] == pytest.approx(2.5426, abs=1e-4)
    assert found["confident gnmax"] > found["confident gnmax, 286 answers"]


def test_the_cost_of_these_votes_is_of_what_was_asked_and_answered():
    setting, split = Setting("", "lnmax", 100, 20.0), np.tile([125, 125] + [0] * 8, (200, 1))
    few, many = (
        costs(setting, votes, ask(setting, votes, 0)) for votes in (clear_votes(200), split)
    )
    assert few["epsilon"] == many["epsilon"] == fixed_cost(setting)
    assert few["epsilon_data_dependent"] < many["epsilon_data_dependent"]
    rows, labels = answers = ask(CONFIDENT, DOUBTFUL, 0)
    assert 0 < (labels < 0).sum() < 200
    mechanism = pate.ConfidentGNMax(30.0, 15.0, 40.0)
    expected = mechanism.secret_cost(DOUBTFUL[rows], 1e-5, answered=labels >= 0)
    found = costs(CONFIDENT, DOUBTFUL, answers)
    assert found["epsilon_data_dependent"] == round(expected.epsilon, 4)
    assert found["order"] == expected.order


# Teachers.


def test_one_record_changes_one_teacher_alone():
    """What PATE rests on: batch statistics, shared layers or a shared order could break it."""
    images, tests = squares(), squares(seed=5).x_test
    part = pate.partition(200, 4, rng=0)[2]
    before = _scores(images, tests)
    images.x_train[part[0]] = 255 - images.x_train[part[0]]
    images.y_train[part[0]] = 9 - images.y_train[part[0]]
    moved = np.abs(_scores(images, tests) - before).max(axis=(1, 2))
    assert moved[2] > 1e-3
    assert np.array_equal(np.delete(moved, 2), np.zeros(3))


def _scores(images, tests):
    """Return what teachers say of the tests, as scores and not as labels."""
    kept = []

    def predict(network, *_):
        network.eval()
        with torch.no_grad():
            kept.append(network(_students._for_all(_students._pixels(tests, "cpu"), 4)).numpy())
        return np.zeros((4, len(tests)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_students, "_predict", predict)
        train_teachers(images, replace(TEACHERS, epochs=1))
    return kept[0]


def test_teachers_learn_and_each_labels_every_test():
    images = squares()
    said = train_teachers(images, replace(TEACHERS, epochs=12))
    assert said.shape == (4, 100)
    assert (said == images.y_test).mean(axis=1).min() > 0.9


# Students.


def test_a_student_learns_what_it_is_told_and_one_that_is_told_nothing_does_not():
    images = squares()
    x, y = images.x_train[:40], images.y_train[:40]
    lessons = [(x, y), (x, (y + 1) % 10), (x[:0], y[:0])]
    plan = replace(STUDENT, steps=60, learning_rate=0.02)
    told, lies, nothing = train_students(lessons, images.x_train, images.x_test, plan, 0)
    assert (told == images.y_test).mean() > 0.9
    assert (lies == (images.y_test + 1) % 10).mean() > 0.9
    assert (nothing == images.y_test).mean() < 0.5


def test_unlabelled_images_teach_only_those_who_are_confident():
    """Nobody labels anything: who is never confident learns nothing, however large the steps."""
    images = squares()
    nothing = [(images.x_train[:0], images.y_train[:0])]

    def learn(confidence, learning_rate):
        plan = replace(STUDENT, confidence=confidence, learning_rate=learning_rate)
        return train_students(nothing, images.x_train, images.x_test, plan, 0)

    assert np.array_equal(learn(1.0, 0.001), learn(1.0, 0.1))
    assert not np.array_equal(learn(0.0, 0.001), learn(0.0, 0.1))


def test_images_move_by_two_pixels_at_most_and_the_same_for_every_run():
    images = torch.zeros(500, 2, 28, 28)
    images[:, :, 10, 20] = 1
    moved = _students._shift(images, torch.Generator().manual_seed(0))
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved[:, 0], moved[:, 1])
    assert torch.equal(moved.sum((2, 3)), torch.ones(500, 2))
    steps = torch.nonzero(moved[:, 0])[:, 1:] - torch.tensor([10, 20])
    assert {*map(tuple, steps.tolist())} == {(a, b) for a in range(-2, 3) for b in range(-2, 3)}


def test_a_distorted_image_is_blank_in_a_square_and_otherwise_nearly_itself():
    images = torch.ones(300, 28, 28)
    images[150:, :, 14:] = 0
    bent = _students._distort(images, torch.Generator().manual_seed(0))
    assert torch.equal(bent, _students._distort(images, torch.Generator().manual_seed(0)))
    blanks = (bent[:150, 8:20, 8:20] == 0).sum((1, 2))
    assert int(blanks.max()) == 64
    assert 0 < float((blanks == 64).float().mean()) < 1
    # The edge between black and white turns either way.
    left, right = bent[150:, :, :7].mean((1, 2)), bent[150:, :, 21:].mean((1, 2))
    assert float((left > right).float().mean()) > 0.99
    assert len({round(float(value), 3) for value in bent[150:].mean((1, 2))}) > 50


# The measurement.


def test_a_student_sees_the_pool_the_answers_and_no_image_that_tests_it(small, monkeypatch):
    images, votes, seen = squares(), clear_votes(100), []

    def learn(lessons, pool, tests, plan, *, seed, device):
        seen.extend([lessons, pool, tests])
        return np.tile(images.y_test[60:], (len(lessons), 1))

    monkeypatch.setattr(experiment, "train_students", learn)
    chosen = Namespace(images=None, device="cpu", small=False, seeds=1)
    [unit] = experiment.list_units(chosen)
    monkeypatch.setattr(_run, "load_images", lambda name, path: images)
    records = measure_unit(unit, chosen, votes)
    lessons, pool, tests = seen
    assert np.array_equal(pool, images.x_test[:60])
    assert np.array_equal(tests, images.x_test[60:])
    for setting, (shown, labels) in zip(FEW[1:], lessons[1:], strict=True):
        answers = ask(setting, votes[:60], 0)
        told = answers.labels >= 0
        assert np.array_equal(shown, pool[answers.rows[told]])
        assert np.array_equal(labels, answers.labels[told])
    assert np.array_equal(lessons[0][0], images.x_train)
    assert {record["student_accuracy"] for record in records} == {1.0}
    epsilons = {record["setting"]: record["epsilon"] for record in records}
    assert epsilons == {setting.name: fixed_cost(setting) for setting in FEW}


# The file.


def test_a_grid_is_measured_once_and_says_where_it_comes_from(copied):
    out = copied / "results.jsonl"
    document, before = read_document(out), out.read_bytes()
    assert list(read_lines(out)[1]) == ["experiment", "teachers"]
    assert len(document["records"]) == 2 * len(FEW)
    about = document["teachers"]
    assert (about["number"], about["images_each"], sum(about["agreement"])) == (4, 50, 60)
    assert about["accuracy"]["lowest"] <= about["accuracy"]["mean"] <= about["accuracy"]["highest"]
    for unit in document["units"]:
        assert unit["setup"]["student"] == json.loads(json.dumps(asdict(GRID["STUDENT"])))
    assert run("--out", out, "--seeds", 2) == 0
    assert out.read_bytes() == before


def test_parts_train_no_teachers_and_go_on_with_those_that_were_trained(copied, capsys):
    """What was a trap: the second part, without the votes of the first, trained them all again."""
    out, whole = copied / "part.jsonl", read_lines(copied / "results.jsonl")
    words = ("--out", out, "--part", "2/2", "--seeds", 2)
    assert run(*words) == 1
    message = capsys.readouterr().err
    assert f"no votes at {out.with_suffix('.votes.npz')}, and a part trains no" in message
    assert run(*words, "--votes", copied / "results.votes.npz") == 0
    *heads, unit = read_lines(out)
    assert heads == whole[:2]
    assert {**unit, "provenance": None} == {**whole[3], "provenance": None}


def test_results_whose_votes_are_missing_are_not_given_others(copied, capsys):
    out = copied / "results.jsonl"
    (copied / "results.votes.npz").unlink()
    assert run("--out", out) == 1
    assert "name them by --votes" in capsys.readouterr().err
    # What needs no votes goes on without them.
    assert run("--out", out, "--seeds", 2) == 0


def test_votes_of_other_teachers_and_damaged_ones_are_refused(copied, capsys, monkeypatch):
    out, path = copied / "results.jsonl", copied / "results.votes.npz"
    votes, summary = experiment.read_votes(path)
    others = {**summary, "votes_sha256": experiment._hash(votes[::-1])}
    for words, message in (
        (summary, "are damaged: they have another SHA-256"),
        ({}, "are damaged"),
        (others, "must have the 'teachers' that is asked for"),
    ):
        np.savez(path, votes=votes[::-1], summary=json.dumps(words))
        assert run("--out", out) == 1
        assert message in capsys.readouterr().err
    monkeypatch.setattr(experiment, "TEACHERS", replace(TEACHERS, epochs=5))
    assert run("--out", copied / "new.jsonl", "--votes", path) == 1
    assert "votes must be of teachers trained as here" in capsys.readouterr().err


def test_nobody_is_trained_where_costs_could_not_be_computed(copied, capsys, monkeypatch):
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    assert run("--out", copied / "new.jsonl") == 1
    assert "pip install dpnotes[accounting]" in capsys.readouterr().err


def test_a_summary_is_a_mean_over_seeds_of_one_set_up(measured):
    records = [
        {"setting": "a", "seed": seed, "answered": 10, "epsilon": 2.0, "label_accuracy": right}
        | {"student_accuracy": 2 * found, "epsilon_data_dependent": found}
        for seed, right, found in ((0, 0.5, 0.1), (1, 1.0, 0.3))
    ]
    means = {"answered": 10, "label_accuracy": 0.75, "lowest": 0.2, "highest": 0.6}
    means |= {"student_accuracy": 0.4, "epsilon_data_dependent": 0.2, "epsilon": 2.0, "seeds": 2}
    [row] = summarize({"records": records})
    assert (row.pop("setting"), row) == ("a", pytest.approx(means))
    [row] = summarize({"records": [{**records[0], "label_accuracy": None}]})
    assert np.isnan(row["label_accuracy"])
    document = read_document(measured / "results.jsonl")
    with pytest.raises(ValueError, match="document must hold each setting once a seed"):
        summarize({**document, "records": document["records"] * 2})
    document["units"][1]["setup"]["delta"] = 0.1
    with pytest.raises(ValueError, match="document must hold units of one set-up"):
        summarize(document)


# What was measured.


def test_the_committed_results_have_the_costs_of_their_settings():
    results = datasets.load_results("pate")
    assert results["teachers"]["setup"] == json.loads(json.dumps(asdict(experiment.TEACHERS)))
    assert len(results["records"]) == experiment.SEEDS * len(SETTINGS)
    costs = {setting.name: fixed_cost(setting) for setting in SETTINGS}
    for record in results["records"]:
        assert record["epsilon"] == costs[record["setting"]]
        assert (record["epsilon_data_dependent"] is None) == (record["epsilon"] is None)


@pytest.mark.gpu
def test_a_gpu_trains_the_same_teachers_and_students():
    images = squares()
    lessons = [(images.x_train[:40], images.y_train[:40])]
    seen = lessons, images.x_train, images.x_test, replace(STUDENT, steps=60), 0
    here, there = (train_students(*seen, device) for device in ("cpu", "cuda"))
    assert (here == there).mean() > 0.95
    plan = replace(TEACHERS, epochs=12)
    here, there = (train_teachers(images, plan, device) for device in ("cpu", "cuda"))
    assert (here == there).mean() > 0.95
