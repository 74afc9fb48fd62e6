"""The planted bugs still fit the code; `make mutants` plants each and sees that a test notices.

CI plants the tenth whose turn it is, and all of them once a week.
"""

import datetime
import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest

LISTS = Path(__file__).parent / "mutants"
_spec = importlib.util.spec_from_file_location("mutants_run", LISTS / "run.py")
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)

BUGS = run.bugs()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug['list']}: {bug['what']}")
def test_a_planted_bug_changes_a_passage_that_stands_once_in_its_file(bug):
    text = (run.ROOT / bug["file"]).read_text(encoding="utf-8")
    assert text.count(bug["old"]) == 1
    assert bug["new"] != bug["old"]
    compile(text.replace(bug["old"], bug["new"]), bug["file"], "exec")
    for test in bug["tests"] + ([bug["noticed"]] if "noticed" in bug else []):
        file, _, name = test.partition("::")
        assert f"def {name.rpartition('::')[2]}" in (run.ROOT / file).read_text(encoding="utf-8")


def test_the_lists_hold_bugs_and_none_twice():
    planted = [(bug["file"], bug["old"], bug["new"]) for bug in BUGS]
    assert len(planted) == len(set(planted)) >= 60


@pytest.mark.parametrize("parts", [1, 3, 10])
def test_the_parts_are_the_whole_and_have_nothing_in_common(parts):
    found = [BUGS[run.part_of(f"{k}/{parts}")] for k in range(1, parts + 1)]
    whats = [(bug["list"], bug["what"]) for part in found for bug in part]
    assert sorted(whats) == sorted((bug["list"], bug["what"]) for bug in BUGS)
    assert len(whats) == len(set(whats))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_ten_days_in_a_row_have_the_turn_of_every_tenth_at_the_turn_of_the_year_too():
    new_year = datetime.date(2027, 1, 1).toordinal()
    days = range(new_year - 5, new_year + 5)
    turns = [run.part_of("today/10", day) for day in days]
    assert sorted(turn.start for turn in turns) == list(range(10))
    assert {(turn.stop, turn.step) for turn in turns} == {(None, 10)}
    assert run.part_of("today/1") == slice(0, None, 1)


@pytest.mark.parametrize("part", ["0/10", "11/10", "-1/10", "3", "3/", "x/10", "today/0", "1/0"])
def test_a_part_that_is_none_is_refused(part, capsys):
    with pytest.raises(SystemExit):
        run.main([f"--part={part}"])
    assert "--part" in capsys.readouterr().err


def test_only_the_bugs_of_a_part_are_planted(monkeypatch, capsys):
    planted = []

    def examine(chosen, workers):
        planted.extend(chosen)
        return [(bug, "FAILED") for bug in chosen]

    monkeypatch.setattr(run, "examine", examine)
    assert run.main(["pate", "coins", "--part", "2/10"]) == 0
    assert planted == run.bugs(["pate", "coins"])[1::10]
    assert f"{len(planted)} bugs planted, 0 not noticed." in capsys.readouterr().out


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A package of one function with a test that notices one of two bugs."""
    root = tmp_path / "root"
    (root / "dpnotes").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "dpnotes" / "__init__.py").write_text("def double(x):\n    return 2 * x\n")
    claim = "import dpnotes\ndef test_double():\n    assert dpnotes.double(2) == 4\n"
    (root / "tests" / "test_double.py").write_text(claim)
    (root / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setattr(run, "ROOT", root)
    monkeypatch.setattr(run, "NEEDED", ("dpnotes", "tests", "pytest.ini"))
    bug = {"list": "x", "tests": ["tests/test_double.py"], "file": "dpnotes/__init__.py"}
    return bug | {"old": "2 * x"}


def test_a_bug_is_noticed_or_survives(small):
    wrong = small | {"what": "three times", "new": "3 * x"}
    alike = small | {"what": "the same in other words", "new": "x + x"}
    found = {bug["what"]: told for bug, told in run.examine([wrong, alike, wrong], 2)}
    assert "test_double" in found["three times"]
    assert found["the same in other words"] is None
    assert "2 * x" in (run.ROOT / "dpnotes" / "__init__.py").read_text()


def test_the_test_that_noticed_a_bug_is_recorded_and_asked_first(small, tmp_path, monkeypatch):
    told = "FAILED tests/test_double.py::test_double[a - b] - assert 6 == 4"
    lists = tmp_path / "x.toml"
    wrong = 'what = "wrong"\nfile = "a"\nold = "b"\nnew = "c"\n'
    other = wrong.replace("wrong", "other")
    lists.write_text(f'tests = ["t"]\n\n[[bug]]\n{wrong}\n[[bug]]\n{other}')
    for _ in range(2):
        run.record({"list": "x", "what": "wrong"}, told, tmp_path)
    run.record({"list": "x", "what": "other"}, None, tmp_path)
    run.record({"list": "x", "what": "other"}, "time", tmp_path)
    noticed = 'noticed = "tests/test_double.py::test_double"\n'
    assert lists.read_text() == f'tests = ["t"]\n\n[[bug]]\n{wrong}{noticed}\n[[bug]]\n{other}'

    asked = []
    monkeypatch.setattr(run, "fails", lambda tests, *rest: asked.append(list(tests)))
    bug = small | {"what": "three times", "new": "3 * x", "noticed": "tests/test_double.py::one"}
    assert list(run.examine([bug], 1)) == [(bug, None)]
    one, every = [bug["noticed"]], bug["tests"]
    assert asked == [one, one, every, every]


def test_an_unknown_list_is_refused_by_name(capsys):
    with pytest.raises(SystemExit):
        run.main(["accounting", "nothing"])
    assert "no such list: nothing (there are: accounting, " in capsys.readouterr().err


def test_a_bug_that_no_longer_fits_is_refused(small):
    with pytest.raises(ValueError, match="must hold the passage"):
        run.plant(small | {"what": "gone", "old": "4 * x", "new": ""}, run.ROOT)


def test_a_copy_is_given_back_as_it_was_even_where_something_fails(small, tmp_path):
    (tmp_path / "bench").mkdir()
    bench = run.Bench(tmp_path / "bench", 1)
    wrong = small | {"what": "three times", "new": "3 * x"}
    with pytest.raises(ValueError, match="must hold the passage"):
        bench.told(wrong | {"old": "4 * x"}, small["tests"], 60)
    with pytest.raises(RuntimeError, match="must pass on the package as it is"):
        bench.limit(["tests/test_nowhere.py"])
    assert "test_double" in bench.told(wrong, small["tests"], 60)
    assert bench.limit(small["tests"]) >= run.SHORTEST
    assert bench.copies.qsize() == 1


def test_tests_that_fail_without_a_bug_are_no_measure(small):
    (run.ROOT / "tests" / "test_double.py").write_text("def test_no():\n    assert False\n")
    with pytest.raises(RuntimeError, match="must pass on the package as it is"):
        list(run.examine([small | {"what": "any", "new": "3 * x"}], 1))


# The changes drawn by lot.
sys.path.insert(0, str(LISTS))
_spec = importlib.util.spec_from_file_location("mutants_sample", LISTS / "sample.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)
sys.path.remove(str(LISTS))

SOURCE = """\
def first(x):
    if x:
        return (
            x
            + 1
        )
    return 0
"""


@pytest.mark.parametrize(
    ("lines", "around"), [((2, 2), (2, 2)), ((4, 5), (3, 6)), ((7, 7), (7, 7)), ((1, 7), (1, 7))]
)
def test_the_statement_of_a_change_is_the_smallest_around_it(lines, around):
    assert sample.statement(SOURCE, *lines) == around


def test_the_tests_that_run_a_changed_statement_are_asked_quickest_first():
    seconds = {"slow": 3.0, "quick": 1.0, "elsewhere": 0.1}
    known = {"seconds": seconds, "lines": {"a.py": {"3": ["slow"], "5": ["quick", "gone"]}}}
    change = {"file": "a.py", "line": 4, "old": ["            x"]}
    assert sample.order_of(change, known, SOURCE) == ["quick", "slow"]
    assert sample.order_of(change | {"line": 7}, known, SOURCE) == ["elsewhere", "quick", "slow"]


@pytest.mark.parametrize(
    ("work", "status"), [(lambda: 3, 3), (lambda: 1 / 0, 70), (lambda: time.sleep(600), None)]
)
def test_work_in_a_fork_is_told_by_its_status_and_has_a_limit(work, status):
    assert sample.forked(work, 5.0 if status else 0.5) == status


DRAWN = [
    {"module": "m", "file": "m.py", "operator": "o", "line": line, "old": [old], "new": [new]}
    for line, old, new in [(1, "a + b", "a - b"), (2, "x < y", "x <= y"), (3, "c", "d")]
]


def test_a_summary_counts_and_keeps_the_reasons_of_survivors():
    reasons = {sample._key(DRAWN[1]): "They are never equal."}
    found = sample.summary(DRAWN, {0: "a test", 1: None}, reasons, "abc")
    assert found["modules"] == {"m": {"drawn": 3, "tried": 2, "noticed": 1}}
    assert found["survivors"] == [DRAWN[1] | {"because": "They are never equal."}]


def test_a_survivor_that_nobody_explains_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "WORK", tmp_path)
    monkeypatch.setattr(sample, "RESULT", tmp_path / "mutations.json")
    (tmp_path / "drawn.json").write_text(json.dumps(DRAWN))
    lines = [(0, None), (1, "a test"), (2, None), (0, "a new test")]
    told = [json.dumps({"number": number, "noticed": told}) for number, told in lines]
    (tmp_path / "tried.jsonl").write_text("\n".join(told))
    assert sample.tell() == [DRAWN[2] | {"because": ""}]
    written = json.loads(sample.RESULT.read_text())
    written["survivors"][0]["because"] = "Both are one."
    sample.RESULT.write_text(json.dumps(written))
    assert sample.tell() == []


def test_each_of_the_300_changes_was_tried_and_each_survivor_has_a_reason():
    found = json.loads(sample.RESULT.read_text(encoding="utf-8"))
    counts = found["modules"]
    assert {*counts} == {*sample.MODULES}
    assert all(count["drawn"] == count["tried"] == sample.EACH for count in counts.values())
    missed = sum(count["tried"] - count["noticed"] for count in counts.values())
    assert missed == len(found["survivors"])
    assert all(len(change["because"]) > 20 for change in found["survivors"])
