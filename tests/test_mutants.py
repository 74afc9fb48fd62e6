"""The planted bugs still fit the code; `make mutants` plants each and sees that a test notices.

CI plants the tenth whose turn it is, and all of them once a week.
"""

import datetime
import importlib.util
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
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
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
