"""What `make assignments` writes: valid for nbgrader, no solution for students, graded outside."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import assignments
import grading
import pytest
import refresh
from submissions import MODULES, RIGHT, WRONG, replaced

NAMES = grading.names()
BOOKS = {name: grading.read(name) for name in NAMES}
SURVEY = "randomized_response"
TEACH = refresh.ROOT / ".venv-teach" / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder with all versions of all assignments."""
    folder = tmp_path_factory.mktemp("assignments")
    for name in NAMES:
        assignments.build(name, folder / name)
    return folder


def cells(book):
    """Return the metadata for nbgrader of the cells that have some, and their code."""
    marked = [cell for cell in refresh.code_cells(book) if "nbgrader" in cell["metadata"]]
    return [(cell["metadata"]["nbgrader"], cell["source"]) for cell in marked]


# As nbgrader's format has them, in version 3 (nbgrader/nbgraderformat/v3.json).
KINDS = {"grade": bool, "grade_id": str, "locked": bool, "points": float}
KINDS |= {"schema_version": int, "solution": bool, "task": bool}


@pytest.mark.parametrize("name", NAMES)
def test_the_metadata_are_those_of_nbgrader(name, built):
    found = cells(refresh.read(built / name / "nbgrader/source" / name / f"{name}.ipynb"))
    for metadata, source in found:
        expected = KINDS if metadata["grade"] else {k: KINDS[k] for k in KINDS if k != "points"}
        assert {key: type(value) for key, value in metadata.items()} == expected
        assert (metadata["schema_version"], metadata["solution"]) == (3, True)
        assert (metadata["locked"], metadata["task"]) == (False, False)
        assert source.count("### BEGIN SOLUTION") == source.count("### END SOLUTION") >= 1
    ids = [metadata["grade_id"] for metadata, _ in found]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[\w-]+", one) for one in ids)


@pytest.mark.parametrize("name", NAMES)
def test_each_function_stands_in_a_cell_that_is_worth_its_points(name):
    found = cells(assignments.for_nbgrader(BOOKS[name]))
    tasks = grading.tasks(BOOKS[name])
    for task in tasks:
        [(metadata, source)] = [
            (m, s) for m, s in found if task.function in m["grade_id"].split("-")
        ]
        assert f"def {task.function}(" in source
        assert metadata["grade"]
    points = [metadata["points"] for metadata, _ in found if metadata["grade"]]
    assert sum(points) == sum(task.points for task in tasks)


def test_a_cell_with_two_functions_is_worth_the_points_of_both():
    code = "# BEGIN SOLUTION\ndef {}(): return 1\ndef {}(): return 2\n# END SOLUTION"
    tasks = "from dpnotes import grading\ndef tasks():\n    return [grading.Task("
    tasks += "function=f, points=p, answers=[((), 1)]) for f, p in zip('abb', (1, 2, 4))]"
    sources = [code.format("a", "b"), code.format("c", "d"), "e = 1", "", tasks]
    tags = [[], [], [], [], [grading.HIDDEN]]
    book = {"metadata": {}, "cells": []}
    for place, (source, tagged) in enumerate(zip(sources, tags, strict=True)):
        cell = {"cell_type": "code", "source": source, "metadata": {"tags": tagged}}
        book["cells"].append(cell | {"id": f"cell-{place}", "outputs": [], "execution_count": 1})
    [(both, _), (neither, _)] = cells(assignments.for_nbgrader(book))
    assert (both["grade_id"], both["grade"], both["points"]) == ("a-b", True, 7)
    assert (neither["grade_id"], neither["grade"], "points" in neither) == ("cell-1", False, False)


@pytest.mark.parametrize("name", NAMES)
def test_the_students_file_has_neither_the_solution_nor_the_hidden_tests(name, built):
    folder = built / name / "student"
    [path] = folder.iterdir()
    text = path.read_text(encoding="utf-8")
    for secret in ("SOLUTION", "HIDDEN", "For the teacher", *MODULES[name].SECRETS):
        assert secret not in text
    assert refresh.parse(text) == grading.student(BOOKS[name])


@pytest.mark.parametrize("name", NAMES)
def test_nbgraders_source_has_the_solution_and_no_hidden_tests(name, built):
    text = (built / name / "nbgrader/source" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    assert all(secret in grading.solution(refresh.parse(text)) for secret in MODULES[name].SECRETS)
    assert "HIDDEN" not in text
    assert "For the teacher" not in text


@pytest.mark.parametrize("name", NAMES)
def test_the_tasks_beside_a_course_and_in_an_autograder_are_the_hidden_tests(name, built):
    text = (built / name / f"nbgrader/tasks/{name}.py").read_text(encoding="utf-8")
    with zipfile.ZipFile(built / name / f"gradescope/{name}.zip") as archive:
        assert archive.read("tasks.py").decode() == text
    space = {"__name__": "tasks"}
    exec(compile(text, name, "exec"), space)
    asked, expected = space["tasks"](), grading.tasks(BOOKS[name])
    assert [(t.function, t.points) for t in asked] == [(t.function, t.points) for t in expected]


def test_all_courses_fit_into_one(built, tmp_path):
    for name in NAMES:
        shutil.copytree(built / name / "nbgrader", tmp_path / "course", dirs_exist_ok=True)
    files = {p.relative_to(tmp_path / "course").as_posix() for p in tmp_path.rglob("*.*")}
    files = {file for file in files if (tmp_path / "course" / file).is_file()}
    own = {f"source/{name}/{name}.ipynb" for name in NAMES} | {f"tasks/{n}.py" for n in NAMES}
    assert files == own | {"nbgrader_config.py", "grade.py"}


def test_a_second_build_leaves_the_gradebook(tmp_path):
    assignments.build(SURVEY, tmp_path)
    (tmp_path / "nbgrader/gradebook.db").write_text("grades")
    assignments.build(SURVEY, tmp_path)
    assert (tmp_path / "nbgrader/gradebook.db").read_text() == "grades"


# ---- Gradescope


def test_an_archive_is_the_same_whenever_it_is_written(built, tmp_path):
    first = (built / SURVEY / f"gradescope/{SURVEY}.zip").read_bytes()
    assignments.zipped(tmp_path / "again.zip", assignments.autograder(SURVEY))
    assert (tmp_path / "again.zip").read_bytes() == first
    entries = zipfile.ZipFile(io.BytesIO(first)).infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    runs = {entry.filename for entry in entries if entry.external_attr >> 16 & 0o111}
    assert runs == {"run_autograder", "setup.sh"}


def test_an_archive_holds_the_package_and_its_pins(built):
    with zipfile.ZipFile(built / SURVEY / f"gradescope/{SURVEY}.zip") as archive:
        names = set(archive.namelist())
        pins = archive.read("constraints.txt").decode()
    top = {"run_autograder", "setup.sh", "tasks.py", "constraints.txt"}
    assert {name for name in names if "/" not in name} == top
    assert {name.split("/")[0] for name in names if "/" in name} == {"package"}
    modules = {p.relative_to(refresh.ROOT) for p in (refresh.ROOT / "dpnotes").rglob("*.py")}
    assert {f"package/{module.as_posix()}" for module in modules} <= names
    assert {"package/pyproject.toml", "package/data/adult/adult.data.bz2"} <= names
    assert "\nnumpy==" in pins
    # It has no solution of another assignment.
    assert not [name for name in names if "assignments" in name or name.endswith(".ipynb")]


TASKS = """from dpnotes import grading
def tasks():
    return [grading.Task(function=f, points=2, answers=[((2,), 4)]) for f in ("double", "square")]
"""
HALF_RIGHT = "def double(x):\n    return 2 * x\ndef square(x):\n    return x"
PATCHED = """
import json, sys
from pathlib import Path
try:
    from dpnotes import audit
    audit.grade = audit.Task = None
except ImportError:
    pass
print("full marks")
def double(x): return 0
"""


@pytest.fixture
def autograder(built, tmp_path):
    """Unpack an autograder with short tasks, and return what hands in files and reads results."""
    with zipfile.ZipFile(built / SURVEY / f"gradescope/{SURVEY}.zip") as archive:
        archive.extractall(tmp_path / "source")
    (tmp_path / "source/tasks.py").write_text(TASKS)
    (tmp_path / "results").mkdir()
    program = (tmp_path / "source/run_autograder").read_text()
    program = program.replace('"/autograder', f'"{tmp_path}')

    def results(**files):
        for name, text in files.items():
            path = tmp_path / "submission" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "results/results.json").read_text())

    return results


def notebook(source):
    cell = {"cell_type": "code", "source": source, "outputs": [], "metadata": {}}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4})


def test_an_autograder_writes_what_gradescope_reads(autograder):
    found = autograder(**{"in a folder/my answer.ipynb": notebook(HALF_RIGHT)})
    keys = {"name", "score", "max_score", "output"}
    assert [set(test) for test in found["tests"]] == [keys, keys]
    scores = [(test["name"], test["score"], test["max_score"]) for test in found["tests"]]
    assert scores == [("double", 2.0, 2.0), ("square", 0.0, 2.0)]
    assert found["extra_data"]["isolation"] in ("bubblewrap", "namespaces", "process")


def test_nothing_that_a_submission_prints_or_patches_is_a_point(autograder):
    found = autograder(**{"answer.ipynb": notebook(PATCHED)})
    assert [test["score"] for test in found["tests"]] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"answer.py": HALF_RIGHT}, "there are 0"),
        ({"a.ipynb": notebook(""), "b/c.ipynb": notebook("")}, "there are 2"),
        ({"answer.ipynb": "not a notebook"}, "must be a notebook"),
    ],
)
def test_who_hands_in_what_cannot_be_graded_is_told(autograder, files, words):
    found = autograder(**files)
    assert found["score"] == 0
    assert words in found["output"]


def test_what_a_system_puts_beside_a_notebook_is_no_notebook(autograder):
    beside = {".ipynb_checkpoints/a-checkpoint.ipynb": "", "__MACOSX/._a.ipynb": ""}
    found = autograder(**{"a.ipynb": notebook(HALF_RIGHT)}, **beside)
    assert [test["score"] for test in found["tests"]] == [2.0, 0.0]


def test_each_path_of_gradescope_is_where_it_says(built):
    with zipfile.ZipFile(built / SURVEY / f"gradescope/{SURVEY}.zip") as archive:
        run, setup = (archive.read(name).decode() for name in ("run_autograder", "setup.sh"))
    # The environment that one makes is the one that the other runs in.
    assert run.startswith("#!/autograder/venv/bin/python\n")
    assert "-m venv /autograder/venv\n" in setup
    assert subprocess.run(["bash", "-n"], input=setup, text=True).returncode == 0


# ---- nbgrader itself, in an environment of its own


def nbgrader(course, *command):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{TEACH}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [TEACH / command[0], *command[1:]],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def hand_in(course, student, **functions):
    """Hand in what was handed out, with the solution where functions are named, or with others."""
    book = refresh.read(course / f"release/{SURVEY}/{SURVEY}.ipynb")
    solved = refresh.code_cells(grading.untested(BOOKS[SURVEY]))
    for cell, right in zip(refresh.code_cells(book), solved, strict=True):
        defined = assignments.functions(right)
        wrong = {name: source for name, source in functions.items() if name in defined}
        if functions:
            cell["source"] = replaced(right["source"], **wrong)
    folder = course / "submitted" / student / SURVEY
    folder.mkdir(parents=True)
    refresh.write(folder / f"{SURVEY}.ipynb", book)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_nbgrader_hands_out_collects_and_keeps_what_was_graded_outside(built, tmp_path):
    if not (TEACH / "nbgrader").exists():
        pytest.skip("nbgrader is not here: `make nbgrader` installs it")
    course = tmp_path / "course"
    shutil.copytree(built / SURVEY / "nbgrader", course)
    nbgrader(course, "nbgrader", "generate_assignment", SURVEY)
    # What is handed out is the student's version.
    released = refresh.read(course / f"release/{SURVEY}/{SURVEY}.ipynb")
    sources = [cell["source"] for cell in grading.student(BOOKS[SURVEY])["cells"]]
    assert [cell["source"] for cell in released["cells"]] == sources

    wrong = WRONG[SURVEY]["one coin for everybody"]
    hand_in(course, "right", **RIGHT[SURVEY]["a loop and a list"])
    hand_in(course, "wrong", **wrong.functions)
    hand_in(course, "stub")
    hand_in(
        course,
        "patch",
        keep_probability=PATCHED.replace("double(x): return 0", "keep_probability(*_): pass"),
    )
    nbgrader(course, "nbgrader", "autograde", SURVEY)
    nbgrader(course, "python", "grade.py", SURVEY)
    nbgrader(course, "nbgrader", "generate_feedback", SURVEY)
    nbgrader(course, "nbgrader", "export")

    import pandas as pd

    grades = pd.read_csv(course / "grades.csv").set_index("student_id")
    expected = {"right": 12.0, "wrong": wrong.points, "stub": 0.0, "patch": 0.0}
    assert grades.score.to_dict() == expected
    assert set(grades.max_score) == {12.0}
    page = (course / f"feedback/wrong/{SURVEY}/{SURVEY}.html").read_text(encoding="utf-8")
    assert wrong.words in page
