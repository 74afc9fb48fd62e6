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
import unicodedata
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
MOST_MINUTES, MOST_LINES = 45, 180
WRITTEN = refresh.KERNEL, refresh.LANGUAGE
BACK_MATTER = {"field.ipynb", "how_fast.ipynb", "security.ipynb"}

# Roles, and fenced directives with prose inside, which JupyterLab shows only with colons.
FOR_THE_SITE = re.compile(
    r"(?<![`\\])\{[a-z]+(?::[a-z]+)?\}`[^`]+`|^ *`{3,}\{(?!code|math|raw)([^}]+)\}", re.M
)

SOURCE = re.compile(r"\bthe sources?\b(?!\s+code\b)|\bour source\b|\bits source\b", re.I)
PICTURE = re.compile(r'class="interactive"|!\[|<svg\b|<img\b|\{(?:figure|image)\}')
# A function of a cell, up to the next line that begins outside of it.
FUNCTION = re.compile(r"^def (\w+)\(.*?(?=^[^\s)]|\Z)", re.M | re.S)
DRAWS = re.compile(r"\b(?:figure|plot|subplot_mosaic|subplots)\(")
AXES_OFF = re.compile(r"set_axis_off\(|\baxis\(['\"]off")
GLOSSARY = re.compile(r"^(`{3,}|:{3,})\{glossary\}\n(.*?)^\1[ \t]*$", re.M | re.S)
TERM = re.compile(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`")
GLOSSARY_LINK = re.compile(r"\(<?(?:\.\./)*glossary\.md#term-([^\s)>]+)")


@dataclass(frozen=True)
class Problem:
    """One broken rule: where, and what is wrong."""

    file: str
    place: str
    message: str

    def __str__(self):
        return ":".join(filter(None, [self.file, self.place])) + f": {self.message}"


@dataclass
class Page:
    """A notebook or a Markdown page, as numbered cells."""

    name: str
    cells: list
    metadata: dict = field(default_factory=dict)

    @classmethod
    def read(cls, path, root=ROOT):
        """Read a page from its file; it is known by its way from the book's folder."""
        name = path.relative_to(root / "book").as_posix()
        if path.suffix == ".ipynb":
            book = refresh.read(path)
            return cls(name, book["cells"], book["metadata"])
        return cls(name, [markdown(path.read_text(encoding="utf-8"))])

    @property
    def is_notebook(self):
        """Whether the page has code of its own."""
        return self.name.endswith(".ipynb")

    @property
    def is_core(self):
        """Whether the page is a chapter's; the others lie in folders, or show what was measured."""
        return self.is_notebook and "/" not in self.name and self.name not in BACK_MATTER

    @property
    def is_chinese(self):
        """Whether the page is a translation."""
        return self.name.startswith("zh/")

    def of_type(self, kind):
        """Yield ``(number, cell)`` for the cells of one type."""
        return [(n, c) for n, c in enumerate(self.cells, start=1) if c["cell_type"] == kind]

    def find(self, look):
        """Yield ``(number, line, found)`` for all that a function finds in a cell of prose."""
        for number, cell in self.of_type("markdown"):
            yield from ((number, line, found) for line, found in look(cell["source"]))

    def find_all(self, pattern, mask=str):
        """Yield ``(number, line, match)`` for each match in the prose of the page."""
        for number, cell in self.of_type("markdown"):
            for match in pattern.finditer(mask(cell["source"])):
                yield number, marks.line_of(cell["source"], match.start()), match

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
    for heading in SECTIONS:
        if found.count(heading) != 1:
            yield 1, 1, f"the section {heading!r} is there {found.count(heading)} times"
    if found[-1:] != SECTIONS[-1:]:
        yield 1, 1, f"the last section is not {SECTIONS[-1]!r}"


def readable(page):
    """A core page can be read in one sitting, and begins with an idea rather than with code."""
    if not page.is_core:
        return
    found = measure.measure(page.cells)
    if found.exact > MOST_MINUTES:
        yield 1, 1, f"takes {found.exact:.0f} minutes, more than {MOST_MINUTES}"
    if found.lines > MOST_LINES:
        yield 1, 1, f"shows {found.lines} lines of code, more than {MOST_LINES}"
    for number, cell in enumerate(page.cells, start=1):
        if cell["cell_type"] == "code" and measure.visible_lines(cell):
            yield number, 1, "shows code before the first picture"
        if _has_figure(cell) or PICTURE.search(cell["source"]):
            break
    for number, line, match in page.find_all(SOURCE, prose.mask):
        yield number, line, f"speaks of {match.group()!r}: teach the subject"


def left_by_editors(page):
    """No notebook names the kernel of whoever edited it, and every cell is prose or code."""
    if (page.metadata.get("kernelspec"), page.metadata.get("language_info")) != WRITTEN:
        yield 1, 1, "an editor wrote down its kernel or its Python: run `make refresh`"
    for number, _ in page.of_type("raw"):
        yield number, 1, "is a raw cell, which the site leaves out: make it Markdown"


def true_marks(page):
    """Every number before a mark is the one that a cell keeps, or the reading time."""
    numbers = refresh.numbers(page.cells)
    for number, line, message in page.find(lambda text: marks.problems(text, numbers)):
        yield number, line, f"{message}; run `make refresh`"
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
    for number, line, match in page.find_all(FOR_THE_SITE):
        yield number, line, f"{match.group().strip()} shows as it is outside of the site"


def sources_at_the_foot(page):
    """A notebook lists its sources, and links to no library that its bibliography lacks."""
    bibliography = refresh.BIBLIOGRAPHY
    for number, line, address in page.find(lambda text: sources.unknown(text, bibliography)):
        yield number, line, f"{address} is not in references.bib"
    wanted, last = sources.listed(sources.above(page.cells), bibliography), page.cells[-1]
    if wanted != sources.HEADING + "\n" and last["source"].rstrip() != wanted:
        yield len(page.cells), 1, "the list of sources is not that of the links: run `make refresh`"


def answerable_quiz(page):
    """A core page has one quiz, which somebody can answer; no other page has one."""
    count = sum(quizzes.is_quiz(cell) for cell in page.cells)
    if count != page.is_core:
        yield 1, 1, f"has {count} quizzes ({quizzes.HEADING!r}), not {page.is_core:d}"
    yield from page.find(quizzes.find_faults)


def alt_texts(page):
    """Every figure says in words what it shows, with numbers that a cell keeps."""
    numbers = refresh.numbers(page.cells)
    for number, cell in page.of_type("code"):
        alt = refresh.alt_of(cell)
        if _has_figure(cell) and len(alt) < 20:
            yield number, 1, "a figure without alt text (cell metadata mystnb.image.alt)"
        for _, typed in prose.typed_numbers(alt):
            yield number, 1, f"{typed} is typed into an alt text: keep it, or say it in words"
        for _, message in marks.problems(alt, numbers):
            yield number, 1, f"an alt text {message}; run `make refresh`"


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


def stale_notebooks(root=ROOT):
    """Every notebook shows what today's code gives."""
    for path in refresh.notebooks(root):
        if reason := refresh.stale(path, root):
            shown = path.relative_to(root).as_posix()
            yield Problem(shown, "", f"stale: {reason}; run `make refresh`")


def used_glossary_terms(pages):
    """Every term of the glossary is linked from another page, and every link has its term."""
    for language in (False, True):
        mine = [page for page in pages if page.is_chinese == language]
        terms = [(page, *term) for page in mine for term in glossary_terms(page.text())]
        known = {_anchor(term) for _, _, term in terms}
        for page in mine:
            for number, line, match in page.find_all(GLOSSARY_LINK):
                if known and match[1] not in known:
                    yield _problem(page, number, line, f"the glossary has no {match[1]}")
        # The Chinese pages are an excerpt of the book, which has no use for some of its terms.
        for page, line, term in [] if language else terms:
            others = "\n".join(other.text() for other in mine if other is not page)
            used = {match.lower() for match in TERM.findall(others)}
            if term.lower() not in used and f"#term-{_anchor(term)}" not in others:
                yield _problem(page, 1, line, f"no other page links to {term!r}")


def _anchor(term):
    # As the site makes it: letters lose their accents, and the rest becomes hyphens.
    plain = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-")


def glossary_terms(text):
    """Yield the terms that ``{glossary}`` blocks define, each as ``(line, term)``."""
    for block in GLOSSARY.finditer(text):
        for line, term in enumerate(block[2].splitlines(), marks.line_of(text, block.start(2))):
            if re.match(r"[^\s:%]", term):
                yield line, term.strip()


def complete_contents(root=ROOT):
    """What the table of contents lists exists, and every page is in it."""
    listed = set(ledger.contents(root))
    files = [*refresh.pages(".md", root), *refresh.notebooks(root)]
    pages = {path.relative_to(root).with_suffix("").as_posix() for path in files}
    for name in sorted(listed - pages):
        yield Problem("_toc.yml", "", f"{name} does not exist")
    for name in sorted(pages - listed):
        yield Problem("_toc.yml", "", f"{name} is not in the table of contents")


def _problem(page, number, line, message):
    place = f"{number}:{line}" if page.is_notebook else str(line)
    return Problem(f"book/{page.name}", place, message)


NOTEBOOK_RULES = [
    sections,
    readable,
    left_by_editors,
    true_marks,
    kept_once,
    plain_links,
    sources_at_the_foot,
    answerable_quiz,
    alt_texts,
    axis_labels,
]


def pages(root=ROOT):
    """Read every page of the book, in the order of its name."""
    paths = [*refresh.pages(".md", root), *refresh.notebooks(root)]
    return [Page.read(path, root) for path in sorted(paths)]


def check_page(page):
    """Return what is wrong with one page."""
    rules = [typed_numbers, *(NOTEBOOK_RULES if page.is_notebook else [])]
    return [_problem(page, *found) for rule in rules for found in rule(page)]


def check(root=ROOT):
    """Return every problem of the book."""
    book = pages(root)
    found = [*stale_notebooks(root), *complete_contents(root), *used_glossary_terms(book)]
    return [*found, *(problem for page in book for problem in check_page(page))]


def main(arguments=None, root=ROOT):
    """Print the problems; the exit status is 1 when there are any."""
    parser = argparse.ArgumentParser(description="Check the book as an object.")
    parser.add_argument("--stale", action="store_true", help="only refuse stale notebooks")
    if parser.parse_args(arguments).stale:
        problems, last = list(stale_notebooks(root)), []
    else:
        problems = check(root)
        in_words = f"{len(problems)} problems in the book." if problems else "The book is in order."
        last = [*translations.report(root), in_words]
    for line in [*problems, *last]:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
