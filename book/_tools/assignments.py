"""Build from each assignment what a classroom needs, in ``_build/assignments/NAME``.

    python book/_tools/assignments.py [NAME ...]

``student/NAME.ipynb`` is the plain version for students (see `grading`), ``nbgrader`` a course
folder whose grader runs outside of the students' notebooks, and ``gradescope/NAME.zip`` an
autograder for Gradescope. The programs in them are those of the folder ``classroom``.
"""

import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import grading
import refresh

BUILT = refresh.ROOT / "_build" / "assignments"
GIVEN = Path(__file__).parent / "classroom"
PROGRAMS = {"run_autograder", "setup.sh"}


def for_nbgrader(book):
    """Return a source for nbgrader, where a cell is worth the points of its one function."""
    tasks, book = grading.tasks(book), grading.untested(book)
    for cell in refresh.code_cells(book):
        if not grading.SOLUTION.search(cell["source"]):
            continue
        asked = [task for task in tasks if f"def {task.function}(" in cell["source"]]
        [name] = {task.function for task in asked}
        marks = {"schema_version": 3, "grade": True, "solution": True, "locked": False}
        marks |= {"task": False, "grade_id": name, "points": sum(task.points for task in asked)}
        cell["metadata"]["nbgrader"] = marks
        cell["source"] = re.sub("# (BEGIN|END) SOLUTION", r"### \1 SOLUTION", cell["source"])
    return book


def package(root=refresh.ROOT):
    """Return the files of the package ``dpnotes``, as its settings list them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    data = settings["setuptools"]["package-data"]["dpnotes.data"]
    patterns = ["LICENSE", "README.md", "pyproject.toml", "dpnotes/**/*.py"]
    patterns += [f"data/{pattern}" for pattern in data]
    paths = [path for pattern in patterns for path in root.glob(pattern)]
    return {f"package/{path.relative_to(root).as_posix()}": path.read_bytes() for path in paths}


def autograder(name):
    """Return the files of an autograder for Gradescope."""
    return {
        "run_autograder": (GIVEN / "run_autograder.py").read_bytes(),
        "setup.sh": (GIVEN / "setup.sh").read_bytes(),
        "tasks.py": grading.hidden_tests(grading.read(name)).encode(),
        "constraints.txt": (refresh.ROOT / "constraints.txt").read_bytes(),
        **package(),
    }


def zipped(path, files):
    """Write an archive that has the same bytes whenever and wherever it is written."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3  # Unix, which has the rights below
            entry.external_attr = (0o755 if name in PROGRAMS else 0o644) << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)


def build(name, to):
    """Build all versions of one assignment into a folder; what nbgrader keeps there stays."""
    book, course = grading.read(name), to / "nbgrader"
    source, tasks = course / "source" / name, course / "tasks"
    for folder in (to / "student", to / "gradescope", source, tasks):
        folder.mkdir(parents=True, exist_ok=True)
    refresh.write(to / "student" / f"{name}.ipynb", grading.student(book))
    refresh.write(source / f"{name}.ipynb", for_nbgrader(book))
    (tasks / f"{name}.py").write_text(grading.hidden_tests(book), encoding="utf-8")
    for file in ("nbgrader_config.py", "grade.py"):
        shutil.copy(GIVEN / file, course)
    zipped(to / "gradescope" / f"{name}.zip", autograder(name))


def main(names):
    for name in names or grading.names():
        build(name, BUILT / name)
        print((BUILT / name).relative_to(refresh.ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
