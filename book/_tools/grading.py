"""Assignments: one notebook is the source of what students get and of what grades them.

    python book/_tools/grading.py student NAME FILE       write the student's version
    python book/_tools/grading.py grade NAME FILE ...     grade submissions, a line each

A source, ``book/assignments/NAME.ipynb``, holds the solution and the hidden tests. What stands
between ``# BEGIN SOLUTION`` and ``# END SOLUTION`` becomes ``...`` for students, and the cell
tagged ``hidden-tests`` is left out, with the text above it, and so is a box with the title "For
the teacher". That cell defines
``tasks(**parameters)``, whose defaults are what is graded; a teacher changes them, or gives others
with ``--set``.
"""

import argparse
import ast
import contextlib
import copy
import inspect
import io
import json
import re
import sys
from pathlib import Path

import refresh

FOLDER = refresh.ROOT / "book" / "assignments"
HIDDEN = "hidden-tests"
# Folders of a clone with solutions and tests, as in classroom/grade.py.
SHOWING = (".git", "_build", "book", "build", "data", "tests")
SOLUTION = re.compile(
    r"^(?P<indent>[ \t]*)# BEGIN SOLUTION\n.*?^[ \t]*# END SOLUTION[ \t]*$", re.M | re.S
)
BOX = re.compile(r"^:::\{admonition\} For the teacher\n.*?^:::\n+", re.M | re.S)
# A link to another page of the book, which is not beside a notebook that is handed out.
PAGE = re.compile(r"\]\(<?\.\./([\w/]+)\.(?:ipynb|md)(#[^)>\s]+)?>?\)")


def names():
    """Return the names of all assignments."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name):
    """Return the source of an assignment."""
    if name not in names():
        raise ValueError(f"no such assignment: {name} (there are: {', '.join(names())})")
    return refresh.read(FOLDER / f"{name}.ipynb")


def site(root=refresh.ROOT):
    """Return the address of the book's pages on the site."""
    settings = (root / "_config.yml").read_text(encoding="utf-8")
    [base] = re.findall(r"^  baseurl: (\S+)$", settings, re.M)
    return f"{base.rstrip('/')}/book/"


def untested(book):
    """Return a notebook as students get it, with the solution: no hidden tests, no outputs.

    Its links to pages of the book lead to the site.
    """
    cells = [copy.deepcopy(cell) for cell in book["cells"]]
    hidden = [place for place, cell in enumerate(cells) if HIDDEN in refresh.tags(cell)]
    left_out = {*hidden, *(place - 1 for place in hidden)}
    kept = [cell for place, cell in enumerate(cells) if place not in left_out]
    for cell in kept:
        if cell["cell_type"] == "code":
            cell |= {"execution_count": None, "outputs": []}
        else:
            cell["source"] = PAGE.sub(rf"]({site()}\1.html\2)", BOX.sub("", cell["source"]))
    metadata = {key: value for key, value in book["metadata"].items() if key != "dpnotes"}
    return {**book, "cells": kept, "metadata": metadata}


def student(book):
    """Return what students get: no solution, no hidden tests, no outputs."""
    book = untested(book)
    for cell in refresh.code_cells(book):
        cell["source"] = SOLUTION.sub(r"\g<indent>...", cell["source"])
    return book


def solution(book):
    """Return the source of the solution as a script."""
    cells = [cell for cell in refresh.code_cells(book) if HIDDEN not in refresh.tags(cell)]
    return "\n\n".join(cell["source"] for cell in cells)


def hidden_tests(book):
    """Return the hidden tests as a script; they use what the notebook imports above them."""
    [cell] = [cell for cell in refresh.code_cells(book) if HIDDEN in refresh.tags(cell)]
    imports = [n for n in ast.parse(solution(book)).body if isinstance(n, ast.Import)]
    return "\n".join([*map(ast.unparse, imports), cell["source"], ""])


def tasks(book, **parameters):
    """Return the tasks that the hidden tests define; what these print is for the page alone."""
    space = {"__name__": "hidden_tests"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(hidden_tests(book), "<hidden tests>", "exec"), space)
        known = list(inspect.signature(space["tasks"]).parameters)
        if unknown := [name for name in parameters if name not in known]:
            raise ValueError(f"no such parameter: {unknown[0]} (there are: {', '.join(known)})")
        return space["tasks"](**parameters)


def grade(name, submission, **options):
    """Grade one submission to an assignment."""
    return graded(submission, tasks(read(name)), **options)


def graded(submission, asked, others=(), **options):
    """Grade one submission, which sees neither the assignments, nor the tests, nor the others."""
    from dpnotes.grading import grade

    places = [*(refresh.ROOT / folder for folder in SHOWING), *others]
    return grade(submission, asked, hidden=filter(Path.exists, places), **options)


def folder(path):
    """Return the folder of a submission, or the file alone where Python is in that folder too."""
    above, needed = path.absolute().parent.resolve(), [sys.prefix, *filter(None, sys.path)]
    return path if any(Path(p).resolve().is_relative_to(above) for p in needed) else above


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("student", "grade"))
    parser.add_argument("name", choices=names())
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--set", nargs="*", default=[], metavar="PARAMETER=VALUE")
    options = parser.parse_args(arguments)
    book, [file, *more] = read(options.name), options.files
    if options.command == "student":
        if more or options.set or file.exists() or not file.absolute().parent.is_dir():
            parser.error(f"FILE must be a new file in a folder that is there, got {file}")
        refresh.write(file, student(book))
        return
    pairs = (word.partition("=")[::2] for word in options.set)
    try:
        asked = tasks(book, **{name: ast.literal_eval(value) for name, value in pairs})
    except (SyntaxError, ValueError) as error:
        if not options.set:  # then the tasks are wrong as they stand
            raise
        parser.error(f"--set: {error}")
    others = list(map(folder, options.files))
    graded("", asked, others)  # what cannot be graded stops here, and costs no student a point
    for path in options.files:
        told = {"submission": str(path)}
        try:
            grades = graded(path, asked, others)
            told |= {"points": grades.points, "of": grades.possible, "isolation": grades.isolation}
            told["verdicts"] = [verdict._asdict() for verdict in grades.verdicts]
        except Exception as error:  # such as no notebook; the others are graded all the same
            told["error"] = str(error) or repr(error)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    sys.exit(main())
