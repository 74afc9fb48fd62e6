"""What `make assignments` writes: valid for nbgrader, no solution for students, graded outside."""

import json
import os
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


@pytest.mark.parametrize("name", NAMES)
def test_nbgraders_source_has_the_solution_and_a_cell_for_the_points_of_each_function(name, built):
    path = built / name / "nbgrader/source" / name / f"{name}.ipynb"
    text, tasks = path.read_text(encoding="utf-8"), grading.tasks(BOOKS[name])
    assert "HIDDEN" not in text
    assert "For the teacher" not in text
    book = refresh.read(path)
    assert all(secret in grading.solution(book) for secret in MODULES[name].SECRETS)
    marked = [cell for cell in refresh.code_cells(book) if "nbgrader" in cell["metadata"]]
    assert len(marked) == len({task.function for task in tasks})
    for cell in marked:
        marks, source = cell["metadata"]["nbgrader"], cell["source"]
        # As nbgrader's format has them, in version 3 (nbgrader/nbgraderformat/v3.json).
        function = marks["grade_id"]
        points = sum(task.points for task in tasks if task.function == function)
        flags = {"grade": True, "solution": True, "locked": False, "task": False}
        assert marks == {"schema_version": 3, "grade_id": function, "points": points, **flags}
        assert f"def {function}(" in source
        assert source.count("### BEGIN SOLUTION") == source.count("### END SOLUTION") >= 1


@pytest.mark.parametrize("name", NAMES)
def test_students_get_the_stub_and_graders_the_hidden_tests(name, built):
    [path] = (built / name / "student").iterdir()
    assert refresh.read(path) == grading.student(BOOKS[name])
    text = (built / name / f"nbgrader/tasks/{name}.py").read_text(encoding="utf-8")
    with zipfile.ZipFile(built / name / f"gradescope/{name}.zip") as archive:
        assert archive.read("tasks.py").decode() == text
    space = {"__name__": "tasks"}
    exec(compile(text, name, "exec"), space)
    asked, expected = space["tasks"](), grading.tasks(BOOKS[name])
    assert [(t.function, t.points) for t in asked] == [(t.function, t.points) for t in expected]


def test_a_second_build_leaves_the_gradebook(tmp_path):
    assignments.build(SURVEY, tmp_path)
    (tmp_path / "nbgrader/gradebook.db").write_text("grades")
    assignments.build(SURVEY, tmp_path)
    assert (tmp_path / "nbgrader/gradebook.db").read_text() == "grades"


# ---- Gradescope


def test_an_archive_holds_the_package_and_its_pins_and_is_the_same_whenever_it_is_written(
    built, tmp_path
):
    path = built / SURVEY / f"gradescope/{SURVEY}.zip"
    assignments.zipped(tmp_path / "again.zip", assignments.autograder(SURVEY))
    assert (tmp_path / "again.zip").read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        pins, run, setup = map(archive.read, ("constraints.txt", "run_autograder", "setup.sh"))
        runs = {e.filename for e in archive.infolist() if e.external_attr >> 16 & 0o111}
    assert runs == {"run_autograder", "setup.sh"}
    top = {"tasks.py", "constraints.txt", *runs}
    assert {name for name in names if not name.startswith("package/")} == top
    modules = {p.relative_to(refresh.ROOT) for p in (refresh.ROOT / "dpnotes").rglob("*.py")}
    assert {f"package/{module.as_posix()}" for module in modules} <= names
    assert {"package/pyproject.toml", "package/data/adult/adult.data.bz2"} <= names
    assert b"\nnumpy==" in pins
    # It has no solution of another assignment.
    assert not [name for name in names if "assignments" in name or name.endswith(".ipynb")]
    # The environment that one makes is the one that the other runs in.
    assert run.startswith(b"#!/autograder/venv/bin/python\n")
    assert b"-m venv /autograder/venv\n" in setup
    assert b"apt-get install -y bubblewrap" in setup
    assert subprocess.run(["bash", "-n"], input=setup).returncode == 0


TASKS = """from dpnotes import grading
def tasks():
    return [grading.Task(function=f, points=2, answers=[((2,), 4)]) for f in ("double", "square")]
"""
PATCHED = """
try:
    from dpnotes import grading
    grading.grade = grading.Task = None
except ImportError:
    pass
print("full marks")
"""
HALF_RIGHT = PATCHED + "def double(x):\n    return 2 * x\ndef square(x):\n    return x"


@pytest.fixture
def autograder(built, tmp_path):
    """Unpack an autograder with short tasks, and return what hands in files and reads results."""
    with zipfile.ZipFile(built / SURVEY / f"gradescope/{SURVEY}.zip") as archive:
        archive.extractall(tmp_path / "source")
    (tmp_path / "source/tasks.py").write_text(TASKS)
    (tmp_path / "results").mkdir()
    program = (tmp_path / "source/run_autograder").read_text()
    program = program.replace('"/autograder', f'"{tmp_path}')

    def results(files):
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
    # What a system puts beside a notebook is none; what a notebook prints or patches, no point.
    beside = {".ipynb_checkpoints/a-checkpoint.ipynb": "", "__MACOSX/._a.ipynb": ""}
    found = autograder({"in a folder/my answer.ipynb": notebook(HALF_RIGHT), **beside})
    shown = [{k: v for k, v in test.items() if k != "output"} for test in found["tests"]]
    assert shown == [
        {"name": "double", "score": 2.0, "max_score": 2.0},
        {"name": "square", "score": 0.0, "max_score": 2.0},
    ]
    assert found["extra_data"]["isolation"] in ("namespaces", "process")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"answer.py": HALF_RIGHT}, "there are 0"),
        ({"a.ipynb": notebook(""), "b/c.ipynb": notebook("")}, "there are 2"),
        ({"answer.ipynb": "not a notebook"}, "must be a notebook"),
    ],
)
def test_who_hands_in_what_cannot_be_graded_is_told(autograder, files, words):
    found = autograder(files)
    assert found["score"] == 0
    assert words in found["output"]


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
        wrong = {f: text for f, text in functions.items() if f"def {f}(" in right["source"]}
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
    hand_in(course, "patch", keep_probability=f"{PATCHED}def keep_probability(*_): pass")
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
