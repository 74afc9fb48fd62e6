"""The planted bugs still fit the code; `make mutants` plants each and sees that a test notices."""

import datetime
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

LISTS = Path(__file__).parent / "mutants"


@pytest.fixture(scope="module")
def tools():
    """Import the programs, which stand in no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(LISTS)
        import bench
        import matrix
        import run
        import sample

        yield SimpleNamespace(bench=bench, matrix=matrix, run=run, sample=sample)


def test_a_planted_bug_changes_a_passage_that_stands_once_in_its_file(tools):
    root = tools.bench.ROOT
    for bug in tools.run.bugs():
        text = (root / bug["file"]).read_text(encoding="utf-8")
        compile(tools.bench.change(bug, text), bug["file"], "exec")
        for test in bug["tests"] + ([bug["noticed"]] if "noticed" in bug else []):
            file, _, name = test.partition("::")
            assert f"def {name}" in (root / file).read_text(encoding="utf-8"), bug


def test_ten_days_in_a_row_plant_all_bugs_once_at_the_turn_of_the_year_too(tools):
    new_year = datetime.date(2027, 1, 1).toordinal()
    turns = [tools.run.part_of("today/10", day) for day in range(new_year - 5, new_year + 5)]
    assert sorted(number for turn in turns for number in range(99)[turn]) == [*range(99)]
    for part in ("0/10", "11/10", "3/", "x/10", "1/0"):
        with pytest.raises(ValueError, match=r"a part is|invalid literal"):
            tools.run.part_of(part)


def test_a_bug_is_noticed_by_the_tests_that_fail_with_it_or_survives(tools, tmp_path, monkeypatch):
    bench = tools.bench
    root = tmp_path / "root"
    (root / "dpnotes").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pytest.ini").touch()
    (root / "dpnotes" / "__init__.py").write_text("def double(x):\n    return 2 * x\n")
    claims = "import dpnotes\ndef test_2():\n    assert dpnotes.double(2) == 4\n"
    (root / "tests" / "test_double.py").write_text(
        f"{claims}def test_0():\n    dpnotes.double(0)\n"
    )
    monkeypatch.setattr(bench, "ROOT", root)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(bench, "NEEDED", ("dpnotes", "tests", "pytest.ini"))
    tests = ["tests/test_double.py"]
    bug = {"list": "x", "tests": tests, "file": "dpnotes/__init__.py", "old": "2 * x"}
    wrong, alike = bug | {"what": "wrong", "new": "3 * x"}, bug | {"what": "alike", "new": "x + x"}
    found = {bug["what"]: test for bug, test in tools.run.examine([wrong, alike], 1)}
    assert found == {"wrong": f"{tests[0]}::test_2", "alike": None}

    drawn = {"file": bug["file"], "line": 2, "old": ["    return 2 * x"], "new": ["    return 7"]}
    endless = bug | {"new": "[2 * x for _ in iter(int, 1)]"}
    with bench.plant(endless, root):
        assert bench.ask(tests, root, limit=3.0)[-1] == ["time", False, 3.0]
    for suite, first in (("all", False), ("first", True)):
        noticed = tools.matrix.fill(
            root, "double", tests, [wrong, alike, drawn], tmp_path / suite, first
        )
        assert noticed == [[f"{tests[0]}::test_2"], [], [f"{tests[0]}::test_2"]]
    assert "2 * x" in (root / "dpnotes" / "__init__.py").read_text()
    with pytest.raises(ValueError, match="must hold the passage"):
        bench.change(wrong | {"old": "4 * x"}, "2 * x")
    with pytest.raises(ValueError, match="as it was when its changes were drawn"):
        bench.change(drawn, "\n    return 3 * x\n")


def test_each_of_the_300_changes_was_tried_and_each_survivor_has_a_reason(tools):
    sample = tools.sample
    found = json.loads(sample.RESULT.read_text(encoding="utf-8"))
    counts = found["modules"]
    assert {*counts} == {*sample.MODULES}
    assert all(count["drawn"] == count["tried"] == sample.EACH for count in counts.values())
    missed = sum(count["tried"] - count["noticed"] for count in counts.values())
    assert missed == len(found["survivors"])
    assert all(len(change["because"]) > 20 for change in found["survivors"])


def test_a_suite_that_was_pruned_notices_what_it_noticed_before_or_says_why_not(tools):
    """On the same fresh draws; see matrix.py --paired."""
    paired = json.loads(tools.sample.RESULT.read_text(encoding="utf-8"))["paired"]
    survivors = [change["module"] for change in paired["survivors"]]
    assert {*survivors} < {*paired["modules"]}
    for module, counts in paired["modules"].items():
        missed = counts["drawn"] - counts["noticed"] - counts["noticed_since"]
        assert survivors.count(module) == missed >= counts["noticed_before_alone"]
    assert all(len(change["because"]) > 20 for change in paired["survivors"])
