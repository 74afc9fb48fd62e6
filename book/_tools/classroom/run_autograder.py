#!/autograder/venv/bin/python
"""Grade one submission, as Gradescope asks for it."""

import json
import sys
from pathlib import Path

from dpnotes import grading

GIVEN = Path("/autograder/submission")
SOURCE = Path("/autograder/source")
RESULTS = Path("/autograder/results/results.json")

sys.path.insert(0, str(SOURCE))
from tasks import tasks


def notebooks(folder):
    """Return all notebooks, in folders as well; none of those that a system puts beside them."""
    paths = sorted(folder.rglob("*.ipynb"))
    parts = {path: path.relative_to(folder).parts for path in paths}
    return [p for p in paths if not any(part.startswith((".", "__")) for part in parts[p])]


def results(paths):
    """Return what Gradescope shows: a test for each task, or a sentence where there is none."""
    if len(paths) != 1:
        return {"score": 0, "output": f"Hand in one notebook (.ipynb); there are {len(paths)}."}
    asked = tasks()
    grading.grade("", asked)  # tasks that cannot be graded stop here, and cost no student a point
    try:
        grades = grading.grade(paths[0], asked, hidden=[SOURCE])
    except Exception as error:  # such as no notebook
        return {"score": 0, "output": str(error) or repr(error)}
    tests = [
        {"name": v.function, "score": v.points, "max_score": v.possible, "output": v.sentence}
        for v in grades.verdicts
    ]
    return {"tests": tests, "extra_data": {"isolation": grades.isolation}}


RESULTS.write_text(json.dumps(results(notebooks(GIVEN))))
