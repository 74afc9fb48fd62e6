"""What long measurements share: provenance, and one command line."""

import argparse
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dpnotes import datasets  # noqa: E402
from dpnotes.experiments import _runs  # noqa: E402
from dpnotes.experiments._units import Layout, RunError, Unit  # noqa: E402

LAYOUT = Layout("toy", "runs", names=("name",))


def list_units(chosen, shared):
    seeds = range(5 if chosen.seeds is None else chosen.seeds)
    return [Unit({"seed": seed}, {"epochs": 1}, ({"name": "a"},)) for seed in seeds]


def measure(unit, chosen, basis):
    return {"runs": [{**row, "half": unit.key["seed"] / 2} for row in unit.rows]}


def fail(*_):
    raise RunError("there is no third way")


TOY = _runs.Experiment(
    layout=LAYOUT,
    description="Halve seeds.",
    actions={"stop": fail},
    add_options=lambda parser: parser.add_argument("--stop", action="store_true"),
    head=lambda chosen: {"cut": "half" if chosen.small else None},
    prepare=lambda chosen, call: {"prepared": True},
    basis=lambda chosen: None,
    list_units=list_units,
    measure=measure,
)


def run(*words, experiment=TOY):
    return _runs.main(experiment, [str(word) for word in words])


def contents(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def seeds(path):
    return [content["unit"]["seed"] for content in contents(path) if "unit" in content]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.jsonl"


# Where it ran.


def test_a_checkout_without_git_has_no_commit(monkeypatch):
    def absent(*_, **__):
        raise OSError

    monkeypatch.setattr(_runs.subprocess, "run", absent)
    assert _runs.commit() == "unknown"


def test_a_processor_has_a_name_on_any_system(monkeypatch):
    assert _runs._processor()
    monkeypatch.setattr(_runs.Path, "exists", lambda self: False)
    assert _runs._processor() == _runs.platform.machine()


# The command line.


def test_each_unit_says_where_and_when_it_was_measured(out):
    assert run("--out", out) == 0
    assert seeds(out) == [0, 1, 2, 3, 4]
    assert contents(out)[:2] == [
        *({"experiment": "toy", "cut": None}, {"experiment": "toy", "prepared": True})
    ]
    for content in contents(out)[2:]:
        about = content["provenance"]
        assert {"commit", "date", "device", "threads", "torch", "dpnotes"} <= set(about)
        assert about["device"].startswith("CPU, ")
        assert about["seconds"] >= 0


def test_a_second_start_does_nothing_and_prepares_nothing(out, capsys):
    run("--out", out)
    before = out.read_bytes()
    assert run("--out", out, experiment=TOY._replace(prepare=fail, measure=fail)) == 0
    assert out.read_bytes() == before
    assert capsys.readouterr().err == ""


def test_parts_are_every_nth_unit_and_together_the_whole(out, tmp_path):
    parts = [tmp_path / f"{number}.jsonl" for number in (1, 2)]
    for number, path in enumerate(parts, start=1):
        run("--out", path, "--part", f"{number}/2")
    assert [seeds(path) for path in parts] == [[0, 2, 4], [1, 3]]
    assert run("--out", out, "--merge", *reversed(parts)) == 0
    assert seeds(out) == [0, 1, 2, 3, 4]
    shared = tmp_path / "shared.jsonl"
    for number in (2, 1):
        run("--out", shared, "--part", f"{number}/2")
    assert sorted(seeds(shared)) == [0, 1, 2, 3, 4]


def test_joining_keeps_what_the_file_held(out, tmp_path):
    other = tmp_path / "other.jsonl"
    run("--out", out, "--part", "1/5")
    run("--out", other, "--part", "2/5")
    before = contents(out)
    run("--out", out, "--merge", other)
    assert contents(out)[: len(before)] == before
    assert seeds(out) == [0, 1]


def test_what_cannot_be_joined_is_said_in_a_line_and_changes_nothing(out, tmp_path, capsys):
    run("--out", out)
    before = out.read_bytes()
    wrong = tmp_path / "wrong.jsonl"
    for content, message in (
        (b'{"experiment":"toy"', b"line 1"),
        (b"{}\n", b"'experiment' must be 'toy'"),
        (b'{"experiment":"toy","cut":"half"}\n', b"'cut' must be the same as in"),
        (before.replace(b'"half":0.5', b'"half":0.7'), b"seed 1 has"),
    ):
        wrong.write_bytes(content + b"\n" * (content[-1:] != b"\n"))
        assert run("--out", out, "--merge", wrong) == 1
        assert message.decode() in capsys.readouterr().err
        assert out.read_bytes() == before
    assert run("--out", out, "--merge", tmp_path / "none.jsonl") == 1
    assert "none.jsonl cannot be read: No such file" in capsys.readouterr().err


def test_a_check_counts_what_is_there_and_names_what_is_not(out, capsys):
    run("--out", out, "--part", "1/2")
    before = {kept.name for kept in out.parent.iterdir()}
    assert run("--out", out, "--check") == 1
    assert capsys.readouterr().out.splitlines() == [
        *(f"{out}: 3 of 5 units", "  lacks seed 1", "  lacks seed 3")
    ]
    assert run("--out", out, "--check", "--part", "1/2") == 0
    assert {kept.name for kept in out.parent.iterdir()} == before


def test_a_cut_is_never_mixed_with_the_whole(out, capsys):
    run("--small", "--seeds", 1, "--out", out)
    assert contents(out)[0]["cut"] == "half"
    assert run("--out", out) == 1
    assert "what is asked for now: 'cut' must be the same as in" in capsys.readouterr().err


def test_an_action_takes_the_place_of_measuring(out, capsys):
    assert run("--out", out, "--stop") == 1
    assert capsys.readouterr().err == "python -m dpnotes.experiments.toy: there is no third way\n"
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "words", "message"),
    [
        *(("--part", part, "part") for part in ("0/2", "3/2", "1", "a/b", "-1/2", "1/2/3")),
        *(("--seeds", count, "seeds") for count in ("0", "-1", "1.5", "all")),
        *(("--device", name, "no such device here") for name in ("cuda:99", "abacus", "")),
    ],
)
def test_words_that_mean_nothing_are_refused_before_anything_is_done(
    out, capsys, option, words, message
):
    with pytest.raises(SystemExit) as stopped:
        run("--out", out, f"{option}={words}")
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []


def test_a_part_counts_from_one():
    assert _runs.part("2/5") == (2, 5)
    with pytest.raises(argparse.ArgumentTypeError, match="1 <= i <= N"):
        _runs.part("0/5")


def test_out_is_a_file_and_a_link_to_one_stays_a_link(tmp_path, capsys):
    for path in ("/dev/null", tmp_path):
        with pytest.raises(SystemExit):
            run("--out", path)
        assert "must be a regular file or not exist yet" in capsys.readouterr().err
    link, target = tmp_path / "link", tmp_path / "there" / "results.jsonl"
    link.symlink_to(target)
    run("--out", link, "--seeds", 1)
    run("--out", link, "--merge", target)
    assert link.is_symlink()
    assert seeds(target) == [0]
    assert {kept.name for kept in target.parent.iterdir()} == {"results.jsonl", "results.lock"}


def test_images_of_one_file_are_read_and_a_file_that_holds_none_is_refused(tmp_path):
    path = tmp_path / "images.npz"
    parts = {name: np.full(2, 7) for name in datasets.ImageData._fields}
    np.savez(path, **parts)
    assert _runs.read_images(path).y_test.tolist() == [7, 7]
    whole = path.read_bytes()
    np.savez(path, y_test=np.zeros(2))
    few = path.read_bytes()
    np.savez(path, **{**parts, "x_train": np.array([print], dtype=object)})
    for content in (few, path.read_bytes(), whole[:100], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(RunError, match=r"images\.npz must be an archive with x_train"):
            _runs.read_images(path)
    with pytest.raises(RunError, match=r"must be an archive with .*: .*No such file"):
        _runs.read_images(tmp_path / "none")


def test_data_that_is_not_on_this_machine_is_said_in_a_line(out, capsys):
    def absent(chosen, call):
        raise datasets.DatasetUnavailable("fetch it with ...")

    assert run("--out", out, experiment=TOY._replace(prepare=absent)) == 1
    assert capsys.readouterr().err.endswith(".toy: fetch it with ...\n")
