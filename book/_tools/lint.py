"""Check the book as an object and print each problem as file:cell:line.

``python book/_tools/lint.py`` checks every rule below and exits with 1 where one is broken;
``--stale`` checks only that the outputs belong to the code, which is what a build has to know. It
also names the translations whose English has changed, which is wrong enough to stop nobody.

A rule for one page takes a ``Page`` and yields ``(cell, line, message)``. Cells count from 1. A
Markdown page is one cell. What nbval and ruff find in a notebook is left to them.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field

import ledger
import marks
import measure
import prose
import quizzes
import refresh
import sources
import translations

ROOT = refresh.ROOT

# What every core page has; the sources come last, in a cell of their own.
SECTIONS = ["Takeaways", "Exercises", "Sources"]
MOST_MINUTES = 45
BACK_MATTER = {"field.ipynb", "how_fast.ipynb", "security.ipynb"}

# Roles, and fenced directives with prose inside, which JupyterLab shows only with colons.
FOR_THE_SITE = re.compile(
    r"(?<![`\\])\{[a-z]+(?::[a-z]+)?\}`[^`]+`|^ *`{3,}\{(?!code|math|raw)([^}]+)\}", re.M
)

# A function of a cell, up to the next line that begins outside of it.
FUNCTION = re.compile(r"^def (\w+)\(.*?(?=^[^\s)]|\Z)", re.M | re.S)
DRAWS = re.compile(r"\b(?:figure|plot|subplot_mosaic|subplots)\(")
AXES_OFF = re.compile(r"set_axis_off\(|\baxis\(['\"]off")


@dataclass
class Page:
    """A notebook or a Markdown page, as numbered cells."""

    name: str
    cells: list
    metadata: dict = field(default_factory=dict)

    @classmethod
    def read(cls, path):
        """Read a page from its file; it is known by its way from the book's folder."""
        name = path.relative_to(ROOT / "book").as_posix()
        if path.suffix == ".ipynb":
            book = refresh.read(path)
            return cls(name, book["cells"], book["metadata"])
        return cls(name, [markdown(refresh.prose_in(path))])

    @property
    def is_notebook(self):
        """Whether the page has code of its own."""
        return self.name.endswith(".ipynb")

    @property
    def is_core(self):
        """Whether the page is a chapter's; the others lie in folders, or show what was measured."""
        return self.is_notebook and "/" not in self.name and self.name not in BACK_MATTER

    def of_type(self, kind):
        """Yield ``(number, cell)`` for the cells of one type."""
        return [(n, c) for n, c in enumerate(self.cells, start=1) if c["cell_type"] == kind]

    def find(self, look):
        """Yield ``(number, line, found)`` for all that a function finds in a cell's words.

        These are prose, or what a cell says of its picture.
        """
        for number, cell in enumerate(self.cells, start=1):
            is_prose = cell["cell_type"] == "markdown"
            text = cell["source"] if is_prose else refresh.alt_of(cell)
            yield from ((number, line, found) for line, found in look(text))

    def text(self):
        """Return the prose of the page in one piece."""
        return refresh.prose_of(self.cells)


def markdown(source):
    """Return a cell of prose."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def typed_numbers(page):
    """Measured numbers come from a cell; see ``prose`` for what may be typed."""

    def look(text):
        # What a quiz says in numbers is computed anew by its tests.
        generated = text.startswith((sources.HEADING, quizzes.HEADING))
        return [] if generated else prose.typed_numbers(text)

    for number, line, typed in page.find(look):
        yield number, line, f"{typed} is typed by hand: keep it, cite it or write it as maths"


def sections(page):
    """Every core page has its takeaways, its exercises and, last, its sources."""
    if not page.is_core:
        return
    found = prose.headings(page.text(), 2)
    if [each for each in found if each in SECTIONS] != SECTIONS or found[-1] != SECTIONS[-1]:
        yield 1, 1, f"needs each of {', '.join(SECTIONS)} once, in this order, the last one last"


def readable(page):
    """A core page can be read in one sitting."""
    if page.is_core and (minutes := measure.count_minutes(page.cells)) > MOST_MINUTES:
        yield 1, 1, f"takes {minutes} minutes, more than {MOST_MINUTES}"


def refreshed(page):
    """All that `make refresh` writes without a run is written: numbers, sources, folds, kernel."""
    book = {"cells": page.cells, "metadata": page.metadata}
    fresh = refresh.normalise(book)
    if fresh["metadata"] != page.metadata:
        yield 1, 1, "the kernel or its Python is that of an editor: run `make refresh`"
    for number, (cell, new) in enumerate(zip(page.cells, fresh["cells"], strict=True), start=1):
        if cell != new:
            yield number, 1, "does not follow from the rest of the page: run `make refresh`"
        if cell["cell_type"] == "raw":
            yield number, 1, "is a raw cell, which the site leaves out: make it Markdown"


def true_marks(page):
    """Every mark names a number that a cell keeps, and stands where the site does not print it."""
    numbers = refresh.numbers(page.cells)
    yield from page.find(lambda text: marks.problems(text, numbers))
    for number, line, name in page.find(prose.misplaced_marks):
        yield number, line, f"the mark {name} would be printed there: move it into the prose"


def kept_once(page):
    """No two numbers are kept under one name: the prose would show the last of them everywhere."""
    seen = set()
    for number, cell in page.of_type("code"):
        for output in cell["outputs"]:
            names = marks.kept([{"outputs": [output]}]).keys()
            for name in names & seen:
                yield number, 1, f"keeps {name} once more: give one of them another name"
            seen |= names


def plain_links(page):
    """Nothing in a notebook's prose needs the site to be read: no roles, no fenced directives."""
    for number, line, match in page.find(lambda text: marks.find(FOR_THE_SITE, text)):
        yield number, line, f"{match.group().strip()} shows as it is outside of the site"


def sources_at_the_foot(page):
    """A notebook lists its sources, and links to no library that its bibliography lacks."""
    for number, line, address in page.find(sources.unknown):
        yield number, line, f"{address} is not in references.bib"
    cited = sources.cited(page.text())
    if cited and not page.cells[-1]["source"].startswith(sources.HEADING):
        yield len(page.cells), 1, f"cites, and its last cell is not {sources.HEADING!r}"


def answerable_quiz(page):
    """A core page has one quiz, which somebody can answer; no other page has one."""
    count = sum(quizzes.is_quiz(cell) for cell in page.cells)
    if count != page.is_core:
        yield 1, 1, f"has {count} quizzes ({quizzes.HEADING!r}), not {page.is_core:d}"
    yield from page.find(quizzes.find_faults)


def alt_texts(page):
    """Every figure says in words what it shows."""
    for number, cell in page.of_type("code"):
        if _has_figure(cell) and len(refresh.alt_of(cell)) < 20:
            yield number, 1, "a figure without alt text (cell metadata mystnb.image.alt)"


def _has_figure(cell):
    kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
    return bool(kinds & {"image/png", "image/svg+xml", "image/jpeg"})


def axis_labels(page):
    """Every cell that draws labels both axes, itself or through a function of this notebook."""
    sources = [cell["source"] for _, cell in page.of_type("code")]
    functions = {match[1]: match[0] for text in sources for match in FUNCTION.finditer(text)}
    for number, cell in page.of_type("code"):
        called = set(re.findall(r"\b(\w+)\(", cell["source"])) & set(functions)
        text = "\n".join([cell["source"], *(functions[name] for name in called)])
        if _has_figure(cell) and DRAWS.search(text) and not AXES_OFF.search(text):
            for axis in "xy":
                if not re.search(rf"{axis}label[(=](?!\s*(?:''|\"\"))", text):
                    yield number, 1, f"a figure without a label on its {axis} axis"


def stale_notebooks():
    """Every notebook shows what today's code gives."""
    for path in refresh.notebooks():
        if reason := refresh.stale(path):
            yield f"{path.relative_to(ROOT).as_posix()}: stale: {reason}; run `make refresh`"


def complete_contents(root=ROOT):
    """What the table of contents lists exists, and every page is in it."""
    listed = set(ledger.contents(root))
    files = [*refresh.pages(".md", root), *refresh.notebooks(root)]
    pages = {path.relative_to(root).with_suffix("").as_posix() for path in files}
    for name in sorted(listed ^ pages):
        reason = "does not exist" if name in listed else "is not in the table of contents"
        yield f"_toc.yml: {name} {reason}"


def _problem(page, number, line, message):
    place = f"{number}:{line}" if page.is_notebook else str(line)
    return f"book/{page.name}:{place}: {message}"


NOTEBOOK_RULES = [
    sections,
    readable,
    refreshed,
    true_marks,
    kept_once,
    plain_links,
    sources_at_the_foot,
    answerable_quiz,
    alt_texts,
    axis_labels,
]


def pages():
    """Read every page of the book, in the order of its name."""
    return [Page.read(path) for path in sorted([*refresh.pages(".md"), *refresh.notebooks()])]


def check_page(page):
    """Return what is wrong with one page."""
    rules = [typed_numbers, *(NOTEBOOK_RULES if page.is_notebook else [])]
    return [_problem(page, *found) for rule in rules for found in rule(page)]


def check():
    """Return every problem of the book."""
    book = pages()
    found = [problem for page in book for problem in check_page(page)]
    return [*stale_notebooks(), *complete_contents(), *found]


def main():
    """Print the problems; the exit status is 1 when there are any."""
    parser = argparse.ArgumentParser(description="Check the book as an object.")
    parser.add_argument("--stale", action="store_true", help="only refuse stale notebooks")
    stale_only = parser.parse_args().stale
    problems = list(stale_notebooks()) if stale_only else check()
    in_words = f"{len(problems)} problems in the book." if problems else "The book is in order."
    for line in [*problems, *([] if stale_only else [*translations.report(), in_words])]:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
