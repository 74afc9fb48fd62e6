"""The experiment with teachers and students, on images that a small network learns at once."""

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dpnotes import datasets, pate  # noqa: E402
from dpnotes.experiments import _run, _students  # noqa: E402
from dpnotes.experiments import pate as experiment  # noqa: E402
from dpnotes.experiments._run import RunError  # noqa: E402
from dpnotes.experiments._students import train_students, train_teachers  # noqa: E402
from dpnotes.experiments.pate import (  # noqa: E402
    SETTINGS,
    Setting,
    account_anew,
    ask,
    costs,
    fixed_cost,
    measure,
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


def clear_votes(n=60, *, teachers=250):
    """Return votes that all agree on label i % 10 for image i."""
    votes = np.zeros((n, 10), dtype=np.int64)
    votes[np.arange(n), np.arange(n) % 10] = teachers
    return votes


# Enough to go through everything, and too little to learn.
BRIEF = replace(STUDENT, steps=4, labelled=5, unlabelled=5)
GRID = {
    "TEACHERS": replace(TEACHERS, epochs=1),
    "STUDENT": BRIEF,
    "SETTINGS": FEW,
    "SEEDS": 3,
    "_TESTS": 40,
    "_images": lambda path: squares(),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Compute in one thread: several take longer over networks so small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def small(monkeypatch):
    """Let the grid be a tiny one on squares."""
    for name, value in GRID.items():
        monkeypatch.setattr(experiment, name, value)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Measure two seeds of the tiny grid once for all."""
    folder = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GRID.items():
            patch.setattr(experiment, name, value)
        assert run("--out", folder / "results.jsonl", "--seeds", 2) == 0
    return folder


@pytest.fixture
def copied(small, measured, tmp_path):
    """Return a folder with results and votes of the tiny grid."""
    for name in ("results.jsonl", "results.votes.npz"):
        shutil.copy(measured / name, tmp_path)
    return tmp_path


def run(*words):
    return experiment.main([str(word) for word in words])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(path):
    """Return a file as `load_results` gives it."""
    return datasets._gather(lines(path))


def seeds(document):
    return [unit["seed"] for unit in document["units"]]


# The grid.


# Questions, answers and their cost.


def test_every_setting_of_a_seed_asks_about_the_same_images():
    votes = clear_votes(1000)
    hundred, more = (ask(Setting("", "plurality", n), votes, 3) for n in (100, 640))
    assert np.array_equal(hundred.rows, more.rows[:100])
    assert len(set(more.rows)) == 640
    assert not np.array_equal(ask(Setting("", "plurality", 100), votes, 4).rows, hundred.rows)
    noisy = ask(Setting("", "lnmax", 100, 20.0), votes, 3)
    assert np.array_equal(noisy.rows, hundred.rows)


def test_answers_are_drawn_by_the_mechanisms_of_the_package():
    votes = np.random.default_rng(0).multinomial(250, [0.1] * 10, size=200)
    rows = ask(Setting("", "plurality", 200), votes, 0).rows
    rng = np.random.default_rng([0, 1])
    told = ask(Setting("", "lnmax", 200, 20.0), votes, 0).labels
    assert np.array_equal(told, pate.LNMax(0.05).answer(votes[rows], rng=rng))
    rng = np.random.default_rng([0, 1])
    told = ask(Setting("", "confident gnmax", 200, 40.0, 30.0, 15.0), votes, 0).labels
    assert np.array_equal(told, pate.ConfidentGNMax(30.0, 15.0, 40.0).answer(votes[rows], rng=rng))
    assert 0 < (told < 0).sum() < 200


def test_answering_stops_with_the_last_answer_that_is_allowed():
    votes = np.random.default_rng(0).multinomial(250, [0.1] * 10, size=200)
    free = Setting("", "confident gnmax", 200, 40.0, 30.0, 15.0)
    every, capped = (ask(free._replace(most_answers=n), votes, 0) for n in (None, 12))
    assert (capped.labels >= 0).sum() == 12
    assert capped.labels[-1] >= 0
    assert np.array_equal(capped.labels, every.labels[: len(capped.labels)])
    assert np.array_equal(capped.rows, every.rows[: len(capped.rows)])
    assert len(every.rows) == 200


def test_of_private_data_nothing_is_asked():
    private = SETTINGS[0]
    assert private.mechanism == "private data"
    assert ask(private, clear_votes(), 0).rows.size == 0
    with pytest.raises(ValueError, match=r"setting\.mechanism must be one of 'private data'"):
        ask(private._replace(mechanism="oracle"), clear_votes(), 0)


def test_the_cost_fixed_in_advance_is_the_one_of_the_theory():
    votes, by_name = clear_votes(9000), {setting.name: setting for setting in SETTINGS}
    # By the composition of any mechanisms of 2 gamma, LNMax was said to cost 4.3068.
    for name, epsilon in (("lnmax, scale 20", 2.8934), ("confident gnmax, 286 answers", 2.5426)):
        setting = by_name[name]
        found = costs(setting, votes, ask(setting, votes, 0))
        assert found["epsilon"] == pytest.approx(epsilon, abs=1e-4)
    capped = by_name["confident gnmax, 286 answers"]
    every = costs(by_name["confident gnmax"], votes, ask(by_name["confident gnmax"], votes, 0))
    assert every["epsilon"] > costs(capped, votes, ask(capped, votes, 0))["epsilon"]


def test_the_cost_of_these_votes_is_of_what_was_asked_and_answered():
    setting = Setting("", "lnmax", 100, 20.0)
    agreed, split = clear_votes(200), np.tile([125, 125] + [0] * 8, (200, 1))
    few, many = (costs(setting, votes, ask(setting, votes, 0)) for votes in (agreed, split))
    assert few["epsilon"] == many["epsilon"]
    assert few["epsilon_data_dependent"] < many["epsilon_data_dependent"]
    confident = Setting("", "confident gnmax", 100, 40.0, 125.0, 10.0)
    answers = ask(confident, split, 0)
    found = costs(confident, split, answers)
    told = answers.labels >= 0
    assert 0 < told.sum() < 100
    expected = pate.ConfidentGNMax(125.0, 10.0, 40.0).secret_cost(
        split[answers.rows], 1e-5, answered=told
    )
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
    told = images.x_train[:40], images.y_train[:40]
    lies = images.x_train[:40], (images.y_train[:40] + 1) % 10
    nothing = images.x_train[:0], images.y_train[:0]
    said = train_students(
        [told, lies, nothing],
        images.x_train,
        images.x_test,
        replace(STUDENT, steps=60, learning_rate=0.02),
        seed=0,
    )
    right = (said == images.y_test).mean(axis=1)
    assert right[0] > 0.9
    assert (said[1] == (images.y_test + 1) % 10).mean() > 0.9
    assert right[2] < 0.5


def test_unlabelled_images_teach_only_those_who_are_confident():
    """Nobody labels anything: who is never confident learns nothing, however large the steps."""
    images = squares()
    nothing = [(images.x_train[:0], images.y_train[:0])]

    def learn(confidence, learning_rate):
        plan = replace(STUDENT, confidence=confidence, learning_rate=learning_rate)
        return train_students(nothing, images.x_train, images.x_test, plan, seed=0)

    assert np.array_equal(learn(1.0, 0.001), learn(1.0, 0.1))
    assert not np.array_equal(learn(0.0, 0.001), learn(0.0, 0.1))


def test_images_move_by_two_pixels_at_most_and_the_same_for_every_run():
    images = torch.zeros(500, 2, 28, 28)
    images[:, :, 10, 20] = 1
    moved = _students._shift(images, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved[:, 0], moved[:, 1])
    assert torch.equal(moved.sum((2, 3)), torch.ones(500, 2))
    where = torch.nonzero(moved[:, 0])[:, 1:]
    steps = {tuple(step) for step in (where - torch.tensor([10, 20])).tolist()}
    assert steps == {(a, b) for a in range(-2, 3) for b in range(-2, 3)}


def test_a_distorted_image_is_blank_in_a_square_and_otherwise_nearly_itself():
    images = torch.ones(300, 28, 28)
    images[150:, :, 14:] = 0
    bent = _students._distort(images, torch.Generator().manual_seed(0))
    again = _students._distort(images, torch.Generator().manual_seed(0))
    assert torch.equal(bent, again)
    assert bent.shape == images.shape
    centre = bent[:150, 8:20, 8:20]
    blanks = (centre == 0).sum((1, 2))
    assert int(blanks.max()) == 64
    assert 0 < float((blanks == 64).float().mean()) < 1
    # The edge between black and white turns either way.
    left, right = bent[150:, :, :7].mean((1, 2)), bent[150:, :, 21:].mean((1, 2))
    assert float((left > right).float().mean()) > 0.99
    assert len({round(float(value), 3) for value in bent[150:].mean((1, 2))}) > 50


# The measurement.


def test_a_student_sees_the_pool_the_answers_and_no_image_that_tests_it(small, monkeypatch):
    images, votes, seen = squares(), clear_votes(100, teachers=4), []

    def learn(lessons, pool, tests, plan, *, seed, device):
        seen.extend([lessons, pool, tests])
        return np.tile(images.y_test[60:], (len(lessons), 1))

    monkeypatch.setattr(experiment, "train_students", learn)
    records = measure(images, votes, FEW, 0, plan=STUDENT)
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


# The file.


def test_a_grid_is_measured_once_and_says_where_it_comes_from(copied, capsys):
    out = copied / "results.jsonl"
    document = read(out)
    assert [list(line) for line in lines(out)[:2]] == [
        *(["experiment", "cut", "data"], ["experiment", "teachers"])
    ]
    assert seeds(document) == [0, 1]
    assert len(document["records"]) == 2 * len(FEW)
    about = document["teachers"]
    assert (about["number"], about["images_each"], sum(about["agreement"])) == (4, 50, 60)
    assert about["accuracy"]["lowest"] <= about["accuracy"]["mean"] <= about["accuracy"]["highest"]
    for unit in document["units"]:
        assert unit["setup"]["votes_sha256"] == about["votes_sha256"]
        assert unit["setup"]["student"]["steps"] == BRIEF.steps
    before = out.read_bytes()
    assert run("--out", out, "--seeds", 2) == 0
    assert out.read_bytes() == before
    assert capsys.readouterr().err == ""


def test_parts_train_no_teachers_and_go_on_with_those_that_were_trained(
    copied, capsys, monkeypatch
):
    """What was a trap: the second part, without the votes of the first, trained them all again."""
    monkeypatch.setattr(experiment, "train_teachers", None)
    out, whole = copied / "part.jsonl", lines(copied / "results.jsonl")
    words = ("--out", out, "--part", "2/2", "--seeds", 2)
    assert run(*words) == 1
    message = capsys.readouterr().err
    assert f"no votes at {out.with_suffix('.votes.npz')}, and a part trains no" in message
    assert run(*words, "--votes", copied / "results.votes.npz") == 0
    assert lines(out)[:2] == whole[:2]
    assert {**lines(out)[2], "provenance": None} == {**whole[3], "provenance": None}


def test_results_whose_votes_are_missing_are_not_given_others(copied, capsys, monkeypatch):
    out = copied / "results.jsonl"
    (copied / "results.votes.npz").unlink()
    monkeypatch.setattr(experiment, "train_teachers", None)
    assert run("--out", out) == 1
    assert "name them by --votes" in capsys.readouterr().err
    # What needs no votes goes on without them.
    assert run("--out", out, "--seeds", 2) == 0


def test_votes_of_other_teachers_and_damaged_ones_are_refused(copied, capsys, monkeypatch):
    out, path = copied / "results.jsonl", copied / "results.votes.npz"
    teaching = experiment.read_votes(path)
    others = teaching.votes[::-1].copy()
    summary = {**teaching.summary, "votes_sha256": experiment._hash(others)}
    for votes, words, message in (
        (others, json.dumps(teaching.summary), "are damaged: they have another SHA-256"),
        (others, json.dumps(summary), "must have the 'teachers' that is asked for"),
        (others, "{}", "are damaged"),
    ):
        np.savez(path, votes=votes, summary=words)
        assert run("--out", out) == 1
        assert message in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:-50])
    assert run("--out", out) == 1
    assert "must be an archive with votes, summary" in capsys.readouterr().err
    np.savez(path, votes=others, summary=json.dumps(summary))
    monkeypatch.setattr(experiment, "TEACHERS", replace(TEACHERS, epochs=5))
    assert run("--out", copied / "new.jsonl", "--votes", path) == 1
    assert "votes must be of teachers trained as here" in capsys.readouterr().err


def test_costs_that_a_machine_could_not_compute_are_added_where_one_can(
    copied, capsys, monkeypatch
):
    out, path = copied / "bare.jsonl", copied / "results.votes.npz"
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    assert run("--out", out, "--seeds", 1, "--votes", path) == 0
    assert "no costs, as dp-accounting is missing" in capsys.readouterr().err
    _, teachers, bare = lines(out)
    assert all("epsilon" not in record for record in bare["records"])
    [whole] = [line for line in lines(copied / "results.jsonl") if line.get("unit") == bare["unit"]]
    votes = experiment.read_votes(path).votes
    assert account_anew(bare, votes)["records"] == whole["records"]
    assert account_anew(teachers, votes) == teachers
    # Without the votes the costs that are fixed in advance are computed, and no others.
    wrong = {"epsilon": 99.0, "epsilon_data_dependent": 98.0, "order": 97.0}
    loose = {**whole, "records": [record | wrong for record in whole["records"]]}
    for new, right in zip(account_anew(loose)["records"], whole["records"], strict=True):
        assert new == {**right, **wrong, "epsilon": right["epsilon"]}
    records = {record["setting"]: record for record in whole["records"]}
    assert records["plurality"]["epsilon"] is records["private data"]["epsilon"] is None
    assert records["capped"]["epsilon"] < records["free"]["epsilon"]
    with pytest.raises(RunError, match="votes must be those from which the records"):
        account_anew(whole, votes[::-1])


def test_a_summary_is_a_mean_over_seeds():
    records = [
        {"setting": "a", "answered": 10, "label_accuracy": accuracy, "student_accuracy": 2 * found}
        | {"epsilon": 2.0, "epsilon_data_dependent": found}
        for accuracy, found in ((0.5, 0.1), (1.0, 0.3))
    ]
    records = [{**record, "seed": seed} for seed, record in enumerate(records)]
    [row] = summarize({"records": records})
    assert (row["setting"], row["epsilon"], row["seeds"], row["answered"]) == ("a", 2.0, 2, 10)
    assert (row["label_accuracy"], row["lowest"], row["highest"]) == (0.75, 0.2, 0.6)
    assert row["student_accuracy"] == pytest.approx(0.4)
    assert row["epsilon_data_dependent"] == pytest.approx(0.2)
    [row] = summarize({"records": [{**records[0], "label_accuracy": None}]})
    assert row["label_accuracy"] is None


def test_records_of_several_set_ups_or_twice_a_seed_are_not_averaged(measured):
    document = read(measured / "results.jsonl")
    twice = {**document, "records": document["records"] * 2}
    with pytest.raises(ValueError, match="document must hold 'private data' once a seed"):
        summarize(twice)
    document["units"][1]["setup"]["votes_sha256"] = "0"
    with pytest.raises(ValueError, match="document must hold units of one set-up"):
        summarize(document)


# What was measured.


def test_the_committed_results_are_all_of_the_grid_and_their_costs_those_of_the_settings():
    results = datasets.load_results("pate")
    assert (results["cut"], results["data"]) == (None, experiment.DATA)
    assert results["teachers"]["setup"] == json.loads(json.dumps(asdict(experiment.TEACHERS)))
    chosen = _run.make_parser(experiment.EXPERIMENT).parse_args(["--out", "x"])
    path = datasets._SHIPPED / "results" / "pate.jsonl"
    assert _run.list_lacking(experiment.EXPERIMENT, chosen, lines(path)) == []
    assert len(results["records"]) == experiment.SEEDS * len(SETTINGS)
    costs = {setting.name: fixed_cost(setting) for setting in SETTINGS}
    for record in results["records"]:
        assert record["epsilon"] == costs[record["setting"]]
        assert (record["epsilon_data_dependent"] is None) == (record["epsilon"] is None)


@pytest.mark.gpu
def test_a_gpu_trains_the_same_teachers_and_students():
    images = squares()
    lesson = images.x_train[:40], images.y_train[:40]
    for train in (
        lambda device: train_teachers(images, replace(TEACHERS, epochs=12), device=device),
        lambda device: train_students(
            [lesson],
            images.x_train,
            images.x_test,
            replace(STUDENT, steps=60),
            seed=0,
            device=device,
        ),
    ):
        assert (train("cpu") == train("cuda")).mean() > 0.95
