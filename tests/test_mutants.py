"""The planted bugs still fit the code; `make mutants` plants each and sees that a test notices."""

import datetime
import json
import time
from pathlib import Path

import pytest

LISTS = Path(__file__).parent / "mutants"


@pytest.fixture(scope="module")
def tools():
    """Import the programs, which stand in no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(LISTS)
        import matrix
        import run
        import sample

        yield run, sample, matrix


def test_a_planted_bug_changes_a_passage_that_stands_once_in_its_file(tools):
    run, *_ = tools
    for bug in run.bugs():
        text = (run.ROOT / bug["file"]).read_text(encoding="utf-8")
        assert text.count(bug["old"]) == 1, bug
        compile(text.replace(bug["old"], bug["new"]), bug["file"], "exec")
        for test in bug["tests"] + ([bug["noticed"]] if "noticed" in bug else []):
            file, _, name = test.partition("::")
            assert f"def {name}" in (run.ROOT / file).read_text(encoding="utf-8"), bug


def test_ten_days_in_a_row_plant_all_bugs_once_at_the_turn_of_the_year_too(tools):
    run, *_ = tools
    new_year = datetime.date(2027, 1, 1).toordinal()
    turns = [run.part_of("today/10", day) for day in range(new_year - 5, new_year + 5)]
    assert sorted(number for turn in turns for number in range(99)[turn]) == [*range(99)]
    for part in ("0/10", "11/10", "3/", "x/10", "1/0"):
        with pytest.raises(ValueError, match=r"a part is|invalid literal"):
            run.part_of(part)


def test_a_bug_is_noticed_by_the_tests_that_fail_with_it_or_survives(tools, tmp_path, monkeypatch):
    run, _, matrix = tools
    root = tmp_path / "root"
    (root / "dpnotes").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pytest.ini").touch()
    (root / "dpnotes" / "__init__.py").write_text("def double(x):\n    return 2 * x\n")
    claims = "import dpnotes\ndef test_2():\n    assert dpnotes.double(2) == 4\n"
    (root / "tests" / "test_double.py").write_text(
        f"{claims}def test_0():\n    dpnotes.double(0)\n"
    )
    monkeypatch.setattr(run, "ROOT", root)
    monkeypatch.setattr(run, "NEEDED", ("dpnotes", "tests", "pytest.ini"))
    tests = ["tests/test_double.py"]
    bug = {"list": "x", "tests": tests, "file": "dpnotes/__init__.py", "old": "2 * x"}
    wrong, alike = bug | {"what": "wrong", "new": "3 * x"}, bug | {"what": "alike", "new": "x + x"}
    found = {bug["what"]: told for bug, told in run.examine([wrong, alike], 1)}
    assert "test_2" in found["wrong"]
    assert found["alike"] is None
    with pytest.raises(ValueError, match="must hold the passage"):
        run.plant(wrong | {"old": "4 * x"}, root)

    noticed = matrix.fill(root, "double", tests, {0: wrong, 1: alike}, tmp_path / "suite")
    assert noticed == {0: ["tests/test_double.py::test_2"], 1: []}
    assert "2 * x" in (root / "dpnotes" / "__init__.py").read_text()


def test_a_drawn_change_is_asked_of_the_tests_that_run_its_statement_and_has_a_limit(tools):
    _, sample, _ = tools
    source = "def first(x):\n    if x:\n        return (\n            x\n        )\n    return 0\n"
    assert sample.statement(source, 4, 4) == (3, 5)
    known = {"seconds": {"a": 3.0, "b": 1.0}, "lines": {"a.py": {"3": ["a"], "5": ["b", "gone"]}}}
    change = {"file": "a.py", "line": 4, "old": ["            x"], "new": ["            y"]}
    assert sample.order_of(change, known, source) == ["b", "a"]
    assert sample.change_lines(change, source) == source.replace("            x", "            y")
    assert sample.forked(lambda: 3, 5.0) == 3
    assert sample.forked(lambda: time.sleep(600), 0.5) is None


def test_each_of_the_300_changes_was_tried_and_each_survivor_has_a_reason(tools):
    _, sample, _ = tools
    found = json.loads(sample.RESULT.read_text(encoding="utf-8"))
    counts = found["modules"]
    assert {*counts} == {*sample.MODULES}
    assert all(count["drawn"] == count["tried"] == sample.EACH for count in counts.values())
    missed = sum(count["tried"] - count["noticed"] for count in counts.values())
    assert missed == len(found["survivors"])
    assert all(len(change["because"]) > 20 for change in found["survivors"])


def test_a_suite_that_was_pruned_notices_what_it_noticed_before(tools):
    """On the same fresh draws; see matrix.py --paired."""
    _, sample, _ = tools
    paired = json.loads(sample.RESULT.read_text(encoding="utf-8"))["paired"]["modules"]
    assert paired
    for counts in paired.values():
        assert counts["noticed"] <= counts["drawn"] == sample.EACH
        assert counts["noticed_before_alone"] == 0
