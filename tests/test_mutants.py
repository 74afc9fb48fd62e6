"""The planted bugs still fit the code; `make full` plants each and sees that a test notices."""

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


def test_tests_that_fail_without_a_bug_are_no_measure(small):
    (run.ROOT / "tests" / "test_double.py").write_text("def test_no():\n    assert False\n")
    with pytest.raises(RuntimeError, match="must pass on the package as it is"):
        list(run.examine([small | {"what": "any", "new": "3 * x"}], 1))
