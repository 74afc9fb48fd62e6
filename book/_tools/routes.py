"""The times on the index: how long each page takes, and each way through the book.

``35<!-- foundations -->`` on the index is the reading time of that page; names without a page are
those of a way, in hours or minutes. ``python book/_tools/routes.py`` writes them anew, as
``refresh`` does, and ``lint`` compares them.
"""

import math

import marks
import measure
import refresh

INDEX = "index.md"
# The Chinese pages show the times of the English ones.
CHINESE = "zh"
# A course reads a chapter a week; its last week has a project besides.
COURSE = [
    *("foundations", "accounting", "noisy_gradient_descent"),
    *("randomized_response", "unary_encoding"),
    *("exponential_mechanism", "label_privacy"),
    *("symmetric_loss", "elun", "pate"),
    *("private_auc", "audit"),
]
AFTERNOON = ["foundations", "randomized_response", "exponential_mechanism", "accounting"]
RECIPES = 9


def numbers(root=refresh.ROOT):
    """Return the minutes of each page, rounded up to five, and how long each way takes."""
    times = {page: _measured(page, root).minutes for page in COURSE}
    recipe = _measured("use/recipes", root).exact / RECIPES
    text = (root / "book" / "use" / "which_mechanism.md").read_text(encoding="utf-8")
    on_the_map = measure.measure([{"cell_type": "markdown", "source": text}])
    return times | {
        "course_hours": _hours(sum(times.values())),
        "afternoon_hours": _hours(sum(times[page] for page in AFTERNOON)),
        "map_minutes": on_the_map.minutes,
        "recipe_minutes": 5 * math.ceil(recipe / 5),
    }


def _measured(page, root):
    return measure.measure(refresh.read(root / "book" / f"{page}.ipynb")["cells"])


def _hours(minutes):
    """Return hours, rounded up to half of one, as words have them."""
    halves = math.ceil(minutes / 30)
    return f"{halves // 2}" if halves % 2 == 0 else f"{halves / 2}"


def pages(root=refresh.ROOT):
    """Return the pages that show such times: the index and those in Chinese."""
    return [root / "book" / INDEX, *sorted((root / "book" / CHINESE).glob("*.md"))]


def write(root=refresh.ROOT):
    """Write the times of these pages anew."""
    known = numbers(root)
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        new = marks.written(text, known)
        if new != text:
            path.write_text(new, encoding="utf-8", newline="\n")


def problems(root=refresh.ROOT):
    """Yield ``(file, line, message)`` for each time that is not the measured one."""
    known = numbers(root)
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        for line, message in marks.problems(text, known):
            yield path.relative_to(root).as_posix(), line, message


if __name__ == "__main__":
    write()
