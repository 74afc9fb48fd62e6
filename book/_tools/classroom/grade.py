"""Grade what nbgrader has collected, outside the notebooks, and write it into its gradebook.

    python grade.py NAME

The points and the reasons come from `dpnotes.grading`. The tasks are in ``tasks/NAME.py``: what is
graded is what ``tasks()`` there returns. ``nbgrader autograde NAME`` comes first.
"""

import runpy
import sys
from pathlib import Path

from dpnotes import grading
from nbgrader.api import Gradebook

COURSE = Path(__file__).resolve().parent
CLONE = Path(grading.__file__).parents[2]
# In a clone, the solutions lie beside the course.
SHOWING = (".git", "_build", "book", "build", "data", "tests")
HIDDEN = [COURSE, *filter(Path.exists, (CLONE / folder for folder in SHOWING))]


def graded(path, tasks):
    """Return ``(function, points, sentence)`` for each task."""
    try:
        verdicts = grading.grade(path, tasks, hidden=HIDDEN).verdicts
    except Exception as error:  # such as no notebook; the others are graded all the same
        return [(task.function, 0.0, str(error) or repr(error)) for task in tasks]
    return [
        (v.function, v.points, f"{v.points:g} of {v.possible:g}. {v.sentence}") for v in verdicts
    ]


def write(gradebook, name, student, found):
    """Write the points of a submission, and why, beside the cells of its functions."""
    gradebook.update_or_create_student(student)
    gradebook.update_or_create_submission(name, student)
    for grade in gradebook.find_submission_notebook(name, name, student).grades:
        here = [verdict for verdict in found if verdict[0] == grade.name]
        grade.manual_score = sum(points for _, points, _ in here)
        grade.needs_manual_grade = False
        comment = gradebook.find_comment(grade.name, name, name, student)
        comment.manual_comment = "\n\n".join(sentence for _, _, sentence in here)
    gradebook.db.commit()


def main(name):
    tasks = runpy.run_path(str(COURSE / "tasks" / f"{name}.py"))["tasks"]()
    grading.grade("", tasks)  # tasks that cannot be graded stop here, and cost no student a point
    with Gradebook(f"sqlite:///{COURSE / 'gradebook.db'}") as gradebook:
        for path in sorted(COURSE.glob(f"submitted/*/{name}/{name}.ipynb")):
            student, found = path.parents[1].name, graded(path, tasks)
            write(gradebook, name, student, found)
            print(f"{student}: {sum(points for _, points, _ in found):g}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
