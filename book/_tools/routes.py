"""The times on the index and on the teacher's page: how long each page takes, and each way.

``35<!-- foundations -->`` is the reading time of that page; names without a page are those of a
way through the book, in hours or minutes. ``python book/_tools/routes.py`` writes them anew, as
``refresh`` does, and ``lint`` compares them.
"""

import json
import math
import statistics

import marks
import measure
import refresh

# A course reads a chapter a week; its last week has a project besides.
COURSE = [
    *("foundations", "accounting", "noisy_gradient_descent"),
    *("randomized_response", "unary_encoding"),
    *("exponential_mechanism", "label_privacy"),
    *("symmetric_loss", "elun", "pate"),
    *("private_auc", "audit"),
]
AFTERNOON = ["foundations", "randomized_response", "exponential_mechanism", "accounting"]
# Somebody who teaches has three of them, and every chapter comes after those that it needs.
AFTERNOONS = [
    ["foundations", "randomized_response"],
    ["accounting", "exponential_mechanism"],
    ["audit"],
]
RECIPES = 9
KINDS = ("right", "wrong")


def numbers(root=refresh.ROOT):
    """Return the minutes of each page, rounded up to five, and how long each way takes."""
    times = _times(root)
    recipe = _measured("use/recipes", root).exact / RECIPES
    on_the_map = _measured_text("use/which_mechanism.md", root)
    return times | {
        "course_hours": _hours(sum(times.values())),
        "afternoon_hours": _hours(sum(times[page] for page in AFTERNOON)),
        "map_minutes": on_the_map.minutes,
        "recipe_minutes": 5 * math.ceil(recipe / 5),
    }


def teaching(root=refresh.ROOT):
    """Return the times of the teacher's pages: exercises take about as long as reading."""
    times = _times(root)
    afternoons = [sum(times[page] for page in pages) for pages in AFTERNOONS]
    return times | {
        "course_hours": _hours(sum(times.values())),
        "course_hours_with_exercises": _hours(2 * sum(times.values())),
        "longest_week_hours": _hours(2 * max(times.values())),
        **{f"afternoon_{k}": minutes for k, minutes in enumerate(afternoons, start=1)},
        "longest_afternoon_hours": _hours(2 * max(afternoons)),
        "syllabus_minutes": _measured_text("teach/syllabus.md", root).minutes,
        "grading_minutes": _measured_text("teach/grading.md", root).minutes,
        **_grades(root),
    }


def _grades(root):
    """Return what `tests/benchmarks/grading.py` measured: how many were graded, and how."""
    lines = (root / "data" / "results" / "grading.jsonl").read_text(encoding="utf-8").splitlines()
    units = [json.loads(line)["unit"] for line in lines]
    lost = {
        kind: [u["points"] < u["possible"] for u in units if u["kind"] == kind] for kind in KINDS
    }
    return {
        "graded_right": len(lost["right"]),
        "accused": sum(lost["right"]),
        "graded_wrong": len(lost["wrong"]),
        "caught": sum(lost["wrong"]),
        "grading_seconds": statistics.median(unit["seconds"] for unit in units),
    }


# Which pages show which times; the Chinese ones show those of the English ones.
PAGES = {
    "index.md": numbers,
    "zh/*.md": numbers,
    "teach/syllabus.md": teaching,
    "teach/grading.md": teaching,
}


def _times(root):
    return {page: _measured(page, root).minutes for page in COURSE}


def _measured(page, root):
    return measure.measure(refresh.read(root / "book" / f"{page}.ipynb")["cells"])


def _measured_text(page, root):
    text = (root / "book" / page).read_text(encoding="utf-8")
    return measure.measure([{"cell_type": "markdown", "source": text}])


def _hours(minutes):
    """Return hours, rounded up to half of one, as words have them."""
    halves = math.ceil(minutes / 30)
    return f"{halves // 2}" if halves % 2 == 0 else f"{halves / 2}"


def write(root=refresh.ROOT):
    """Write the times of these pages anew."""
    for path, measured in _shown(root):
        text = path.read_text(encoding="utf-8")
        new = marks.written(text, measured(root))
        if new != text:
            path.write_text(new, encoding="utf-8", newline="\n")


def problems(root=refresh.ROOT):
    """Yield ``(file, line, message)`` for each time that is not the measured one."""
    for path, measured in _shown(root):
        text = path.read_text(encoding="utf-8")
        for line, message in marks.problems(text, measured(root)):
            yield path.relative_to(root).as_posix(), line, message


def _shown(root):
    """Yield each page that shows such times, and which."""
    for pattern, measured in PAGES.items():
        for path in sorted((root / "book").glob(pattern)):
            yield path, measured


if __name__ == "__main__":
    write()
