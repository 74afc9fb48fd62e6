"""Results as JSON Lines, by several processes at once, some of which are killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("filelock")

from dpnotes.experiments import _units
from dpnotes.experiments._units import Layout, Line, RunError, Unit

LAYOUT = Layout("toy", "runs", names=("name",), lists=("names",))
HEAD = {"cut": None, "data": "toys"}


def unit(seed, *names, epochs=1):
    rows = tuple({"name": name} for name in names or ("a",))
    return Unit({"seed": seed}, {"epochs": epochs, "names": list(names)}, rows)


def line(seed, *names, epochs=1, value=0.5):
    asked = unit(seed, *names, epochs=epochs)
    runs = [{**row, "accuracy": value} for row in asked.rows]
    about = {"provenance": {"seconds": 1.0}, "runs": runs}
    return {"experiment": "toy", "unit": asked.key, "setup": asked.setup, **about}


def measured(asked):
    return {"provenance": {}, "runs": [{**row, "accuracy": 0.5} for row in asked.rows]}


def text(*contents):
    return "".join(json.dumps(content) + "\n" for content in contents).encode()


def lines(*contents, place="a"):
    return [Line(f"{place}, line {n}", content) for n, content in enumerate(contents, start=1)]


def contents(path):
    return [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]


def join(*contents):
    return _units.join(lines(*contents), LAYOUT)


def measure(path, *units, measure=measured, report=None):
    said = []
    _units.begin(path, LAYOUT, HEAD, said.append)
    _units.measure_all(path, LAYOUT, units, measure, report or said.append)
    return said


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.jsonl"


# A unit is a line.


def test_a_finished_unit_is_one_line_with_its_set_up_and_provenance(path):
    assert measure(path, unit(0, "a", "b"), unit(1)) == []
    head, first, second = contents(path)
    assert head == {"experiment": "toy", **HEAD}
    assert first == {
        **{"experiment": "toy", "unit": {"seed": 0}, "setup": {"epochs": 1, "names": ["a", "b"]}},
        **measured(unit(0, "a", "b")),
    }
    assert second["unit"] == {"seed": 1}
    assert sorted(kept.name for kept in path.parent.iterdir()) == ["results.jsonl", "results.lock"]


def test_what_is_held_is_not_measured_again(path):
    measure(path, unit(0), unit(1))
    before = path.read_bytes()
    asked = []
    measure(path, unit(0), unit(1), unit(2), measure=lambda u: (asked.append(u), measured(u))[1])
    assert asked == [unit(2)]
    assert path.read_bytes().startswith(before)


def test_rows_that_are_new_are_measured_alone_and_the_old_lines_stay(path):
    measure(path, unit(0, "a", "b"))
    before, asked = path.read_bytes(), []
    wider = unit(0, "a", "b", "c")
    measure(path, wider, measure=lambda u: (asked.append(u), measured(u))[1])
    assert [u.rows for u in asked] == [({"name": "c"},)]
    assert path.read_bytes().startswith(before)
    assert len(contents(path)) == 3
    assert _units.missing(wider, contents(path), LAYOUT) is None


def test_units_of_another_set_up_are_measured_and_stand_beside_the_old_ones(path):
    measure(path, unit(0), unit(1))
    measure(path, unit(0, epochs=2), unit(1, epochs=2))
    found = [(row["unit"]["seed"], row["setup"]["epochs"]) for row in contents(path)[1:]]
    assert found == [(0, 1), (1, 1), (0, 2), (1, 2)]
    # Neither is what the other lacks, of the same seed or of another one.
    assert _units.missing(unit(0, epochs=3), contents(path), LAYOUT) == unit(0, epochs=3)
    assert _units.missing(unit(2, epochs=2), contents(path), LAYOUT) == unit(2, epochs=2)
    assert len(join(*contents(path))) == 5


def test_what_fails_while_it_is_measured_leaves_no_line_and_is_free_again(path):
    def fail(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(path, unit(0), measure=fail)
    assert len(contents(path)) == 1
    assert measure(path, unit(0)) == []
    assert len(contents(path)) == 2


def test_a_number_that_is_none_is_not_written(path):
    broken = {"provenance": {}, "runs": [{"name": "a", "accuracy": float("nan")}]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        measure(path, unit(0), measure=lambda _: broken)
    assert len(contents(path)) == 1


# What is cut off, and what is damaged.


def test_a_last_line_that_was_cut_off_is_left_out_with_a_message_and_mended(path):
    whole, last = text({"experiment": "toy", **HEAD}, line(0)), text(line(1))
    for length in (1, len(last) // 2, len(last) - 2):
        path.write_bytes(whole + last[:length])
        said = []
        assert len(_units.read(path, LAYOUT, said.append)) == 2
        [message] = said
        assert "the last line was cut off and is left out" in message
        said = measure(path, unit(0), unit(1))
        assert any("the last line, which was cut off, is removed" in message for message in said)
        assert [content.get("unit") for content in contents(path)] == [
            *(None, {"seed": 0}, {"seed": 1})
        ]
        assert path.read_bytes().startswith(whole)


def test_a_last_line_that_lacks_its_end_alone_is_kept(path):
    path.write_bytes(text({"experiment": "toy", **HEAD}, line(0))[:-1])
    assert measure(path, unit(0), unit(1)) == []
    assert len(contents(path)) == 3


@pytest.mark.parametrize(
    "damaged",
    [
        *(b"{", b"null", b"[1]", b'"toy"', b"1", b"\xff\xfe", b"[" * 100_000, b'{"a": 1} {"a": 1}'),
        *(b"{}", b'{"experiment": "other"}', b'{"experiment": null}'),
        *(b'{"experiment": "toy", "a": NaN}', b'{"experiment": "toy", "a": -Infinity}'),
    ],
)
def test_a_damaged_line_is_refused_with_its_number(path, damaged):
    path.write_bytes(text({"experiment": "toy", **HEAD}) + damaged + b"\n" + text(line(0)))
    before = path.read_bytes()
    with pytest.raises(RunError, match=r"results\.jsonl, line 2: .*must be") as error:
        _units.read(path, LAYOUT, print)
    assert len(str(error.value)) < 300
    with pytest.raises(RunError, match="line 2"):
        measure(path, unit(1))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        *({"runs": []}, {"runs": None}, {"runs": [1]}, {"runs": [{"accuracy": 1}]}),
        *({"unit": 1}, {"unit": {"seed": [0]}}, {"setup": None}, {"provenance": "here"}),
    ],
)
def test_a_unit_without_its_rows_key_set_up_or_provenance_is_refused(path, change):
    path.write_bytes(text({"experiment": "toy", **HEAD}, {**line(0), **change}))
    with pytest.raises(RunError, match="line 2: a unit must have 'unit', 'setup' and 'prov"):
        _units.read(path, LAYOUT, print)


def test_a_file_that_is_not_there_is_named(path):
    with pytest.raises(RunError, match=r"results\.jsonl cannot be read: No such file"):
        _units.read(path, LAYOUT, print)


# Joining.


def test_joined_lines_have_each_row_once_and_units_in_order():
    head = {"experiment": "toy", **HEAD}
    found = join(head, line(10), line(2), head, line(2), line(2, "a", "b"), line(2, epochs=2))
    assert found[0] == head
    assert [content["unit"]["seed"] for content in found[1:]] == [2, 2, 2, 10]
    assert [[row["name"] for row in content["runs"]] for content in found[1:]] == [
        *(["a"], ["b"], ["a"], ["a"])
    ]
    assert join(*found) == found


def test_two_lines_with_other_numbers_for_one_row_are_refused_by_name():
    head = {"experiment": "toy", **HEAD}
    message = 'a, line 3: seed 7 has \\["a"\\] with other numbers than in a, line 2; keep one'
    with pytest.raises(RunError, match=message):
        join(head, line(7), line(7, "b", "a", value=0.6))
    # Where and when is no number: the first line is kept.
    again = {**line(7), "provenance": {"seconds": 2.0}}
    assert join(head, line(7), again) == [head, line(7)]


def test_lines_that_contradict_each_other_in_what_all_share_are_refused(path):
    head = {"experiment": "toy", **HEAD}
    for name, other in (("cut", "half"), ("data", "others")):
        message = f"a, line 2: '{name}' must be the same as in a, line 1"
        with pytest.raises(RunError, match=message):
            join(head, {**head, name: other})
    measure(path, unit(0))
    message = r"what is asked for now: 'cut' must be the same as in .*results\.jsonl, line 1"
    with pytest.raises(RunError, match=message):
        _units.begin(path, LAYOUT, {**HEAD, "cut": "half"}, print)


def test_what_all_share_may_come_in_several_lines(path):
    teachers = {"teachers": {"number": 4, "provenance": {"seconds": 1.0}}}
    for _ in range(2):
        for head in (HEAD, teachers):
            _units.begin(path, LAYOUT, head, print)
    assert contents(path) == [{"experiment": "toy", **head} for head in (HEAD, teachers)]
    assert _units.shared(contents(path)) == {"experiment": "toy", **HEAD, **teachers}
    later = {"teachers": {"number": 4, "provenance": {"seconds": 9.0}}}
    _units.begin(path, LAYOUT, later, print)
    assert len(contents(path)) == 2
    with pytest.raises(RunError, match="'teachers' must be the same"):
        _units.begin(path, LAYOUT, {"teachers": {"number": 5}}, print)


# Writing.


class Half:
    """A file that takes half of what it is given, once, and then has no more room."""

    def __init__(self, file):
        self.file, self.writes = file, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        self.writes += 1
        if self.writes > 1:
            raise OSError(28, "No space left on device")
        return self.file.write(data[: len(data) // 2])


@pytest.mark.parametrize("end", [b"\n", b""], ids=["", "without its end"])
def test_a_line_that_could_be_written_by_half_leaves_the_file_as_it_was(path, monkeypatch, end):
    path.write_bytes(text({"experiment": "toy", **HEAD}, line(0))[:-1] + end)
    before = path.read_bytes()
    opened = type(path).open
    with monkeypatch.context() as patch:
        patch.setattr(type(path), "open", lambda *a, **k: Half(opened(*a, **k)))
        with pytest.raises(OSError, match="No space left"):
            _units.append(path, line(1), print)
    assert path.read_bytes() == before
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            _units.append(path, line(1), print)
    assert path.read_bytes() == before


def test_a_file_that_is_rewritten_stays_until_the_new_one_is_whole(path):
    measure(path, unit(0))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        _units.rewrite(path, [*contents(path), {"a": float("inf")}])
    assert path.read_bytes() == before
    _units.rewrite(path, contents(path))
    assert [json.loads(row) for row in before.splitlines()] == contents(path)


# Several at once.


def test_a_unit_that_another_process_measures_is_left_to_it_and_taken_over_if_that_fails(path):
    _units.begin(path, LAYOUT, HEAD, print)
    said = []
    theirs = LAYOUT.identity(unit(0).key, unit(0).setup)
    ours = threading.Thread(
        target=_units.measure_all,
        args=(path, LAYOUT, [unit(0), unit(1)], measured, said.append),
        daemon=True,
    )

    def interrupted():
        with _units.claimed(path, theirs, patient=False) as mine:
            assert mine
            with _units.claimed(path, theirs, patient=False) as again:
                assert not again
            ours.start()
            until(lambda: said)
            assert [content.get("unit") for content in contents(path)] == [None, {"seed": 1}]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    ours.join(timeout=30)
    assert said == ["waiting for 1 units that other processes measure"]
    assert [content.get("unit") for content in contents(path)[1:]] == [{"seed": 1}, {"seed": 0}]


def until(ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


WORKER = """
import sys, time
from pathlib import Path
from dpnotes.experiments._units import Layout, Unit, begin, measure_all

path, name, pause = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
layout = Layout("toy", "runs", ("name",))
units = [Unit({"seed": seed}, {"epochs": 1}, ({"name": "a"},)) for seed in range(40)]

def measure(unit):
    (path.parent / f"{name} {unit.key['seed']}").touch()
    time.sleep(pause)
    return {"provenance": {"by": name}, "runs": [{"name": "a", "long": "x" * 5000}]}

begin(path, layout, {"cut": None}, print)
measure_all(path, layout, units, measure, lambda said: print(said, flush=True))
"""


def worker(path, name, pause):
    command = [sys.executable, "-c", WORKER, str(path), name, str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_processes_that_write_one_file_lose_no_unit_though_one_of_them_is_killed(path):
    """Four at once, of which one is killed with -9 while it measures."""
    killed = worker(path, "killed", 600)
    until(lambda: list(path.parent.glob("killed *")))
    others = [worker(path, f"other{number}", 0.001) for number in range(3)]
    try:
        until(lambda: path.read_bytes().count(b"\n") == 40)
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
        for process in others:
            process.communicate(timeout=60)
    finally:
        for process in (killed, *others):
            process.kill()
            process.wait()
            process.stdout.close()
    assert [process.returncode for process in others] == [0, 0, 0]
    head, *found = contents(path)
    assert head == {"experiment": "toy", "cut": None}
    assert sorted(content["unit"]["seed"] for content in found) == list(range(40))
    assert {content["provenance"]["by"] for content in found} <= {"other0", "other1", "other2"}
    # Each was measured once, but for the one that was lost.
    assert len(list(path.parent.glob("other*"))) == 40
    assert len(list(path.parent.glob("killed *"))) == 1
    assert [kept.name for kept in path.parent.glob("*.lock")] == ["results.lock"]


def test_a_lock_that_this_machine_cannot_make_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(ModuleNotFoundError, match="needs filelock, which comes with torch"):
        _units.append(path, line(0), print)
