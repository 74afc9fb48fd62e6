"""Check the book as an object and print each problem as file:cell:line.

``python book/_tools/lint.py`` checks every rule below and exits with 1 where one is broken;
``--stale`` checks only that the outputs belong to the code, which is what a build has to know.

A rule for one page takes a ``Page`` and yields ``(cell, line, message)``; a rule for the whole book
takes all pages and yields ``Problem``. Cells count from 1. A Markdown page is one cell.
"""

import argparse
import ast
import functools
import posixpath
import re
import symtable
import sys
import unicodedata
from collections import Counter
from dataclasses import dataclass, field

import ledger
import marks
import measure
import prose
import quizzes
import refresh
import routes
import sources

ROOT = refresh.ROOT

# What every core page has; the sources come last, in a cell of their own.
SECTIONS = ["Takeaways", "Exercises", "Sources"]
MOST_COLUMNS = 6
BACK_MATTER = {"field.ipynb", "how_fast.ipynb", "security.ipynb"}

ROLE = re.compile(r"(?<![`\\])\{[a-z]+(?::[a-z]+)?\}`[^`]+`")
# Directives that JupyterLab shows only with colons have prose inside; these have code or nothing.
FENCED = re.compile(r"^ *`{3,}\{(?!code|math|raw)([^}]+)\}", re.M)

# numpy's newer interface, which draws nothing from a global generator.
MODERN_RANDOM = {
    *("BitGenerator", "Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"),
    *("SeedSequence", "default_rng"),
}
GLUE = re.compile(r"\{glue(?::\w*)?\}`([^`]+)`|^[`:]{3,}\{glue(?::\w*)?\}[ \t]+(\S+)", re.M)
NOISE = {
    r"\b0x[0-9a-f]{6,}": "an object's address",
    r"(?<![\w.:/])/(?:home|root|tmp|Users|private|usr|opt)/": "a path of one machine",
    r"\d\.\d{13,}": "more digits than machines agree on; round it",
}


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
    def read(cls, path, name=None):
        """Read a page from its file; it is known by its way from the book's folder."""
        if path.suffix == ".ipynb":
            book = refresh.read(path)
            return cls(name or path.name, book["cells"], book["metadata"])
        return cls(name or path.name, [_markdown(path.read_text(encoding="utf-8"))])

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

    @property
    def chapter(self):
        """The name that a core page shares with its deeper page and its solutions."""
        return self.name.rpartition("/")[2].removesuffix(".ipynb")

    def of_type(self, kind):
        """Yield ``(number, cell)`` for the cells of one type."""
        return [(n, c) for n, c in enumerate(self.cells, start=1) if c["cell_type"] == kind]

    def text(self):
        """Return the prose of the page in one piece."""
        return "\n\n".join(cell["source"] for _, cell in self.of_type("markdown"))

    def glued(self):
        """Return the names that the page's cells glue."""
        return set(marks.kept(self.cells))


def _markdown(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def typed_numbers(page):
    """Measured numbers come from a cell; see ``prose`` for what may be typed."""
    for number, cell in page.of_type("markdown"):
        # What a quiz says in numbers is computed anew by its tests.
        if cell["source"].startswith((sources.HEADING, quizzes.HEADING)):
            continue
        for line, typed in prose.typed_numbers(cell["source"]):
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


def reading_time(page):
    """Every core page says at its top how long it takes, as it was measured."""
    if page.is_core and f"<!-- {marks.READING_TIME} -->" not in page.cells[0]["source"]:
        yield 1, 1, "does not say how long it takes: About 35<!-- minutes --> minutes"


def readable(page):
    """A core page can be read in one sitting, and begins with an idea rather than with code."""
    if not page.is_core:
        return
    found = measure.measure(page.cells)
    if found.exact > measure.MOST_MINUTES:
        yield 1, 1, f"takes {found.exact:.0f} minutes, more than {measure.MOST_MINUTES}"
    if found.lines > measure.MOST_LINES:
        yield 1, 1, f"shows {found.lines} lines of code, more than {measure.MOST_LINES}"
    if found.code_before_picture:
        yield 1, 1, "shows code before the first picture"
    if found.sources:
        yield 1, 1, f"speaks of 'the source' {found.sources} times: teach the subject"


def short_cells(page):
    """No cell that is seen is longer than a screen."""
    for number, cell in page.of_type("code"):
        seen = measure.visible_lines(cell)
        if seen > measure.LONGEST_CELL:
            yield number, 1, f"shows {seen} lines of code: fold it or cut it"


def narrow_tables(page):
    """No table has more columns than a page holds."""
    for number, cell in page.of_type("code"):
        for output in cell["outputs"]:
            columns = _columns("".join(output.get("data", {}).get("text/html", "")))
            if columns > MOST_COLUMNS:
                yield number, 1, f"a table of {columns} columns, more than {MOST_COLUMNS}"


def _columns(html):
    """Count the columns of a table beside the names of its rows."""
    row = re.search(r"<tbody.*?</tr>", html, re.S)
    return len(re.findall(r"<td\b", row[0])) if row else 0


def folded(page):
    """What the site folds, JupyterLab folds."""
    for number, cell in page.of_type("code"):
        hidden = bool(measure.HIDDEN & refresh.tags(cell))
        if hidden != cell["metadata"].get("jupyter", {}).get("source_hidden", False):
            yield number, 1, "is folded in the site or in JupyterLab only: run `make refresh`"


def left_by_editors(page):
    """No notebook names the kernel of whoever edited it, and every cell is prose or code."""
    written = {name: page.metadata.get(name) for name in ("kernelspec", "language_info")}
    if written != {"kernelspec": refresh.KERNEL, "language_info": refresh.LANGUAGE}:
        yield 1, 1, "an editor wrote down its kernel or its Python: run `make refresh`"
    for number, _ in page.of_type("raw"):
        yield number, 1, "is a raw cell, which the site leaves out: make it Markdown"


def true_marks(page):
    """Every number before a mark is the one that a cell keeps, or the reading time."""
    numbers = refresh.numbers(page.cells)
    for number, cell in page.of_type("markdown"):
        for line, message in marks.problems(cell["source"], numbers):
            yield number, line, f"{message}; run `make refresh`"
        for line, name in prose.misplaced_marks(cell["source"]):
            yield number, line, f"the mark {name} would be printed there: move it into the prose"


def kept_once(page):
    """No two numbers are kept under one name: the prose would show the last of them everywhere."""
    seen = set()
    for number, cell in page.of_type("code"):
        for output in cell["outputs"]:
            for name in marks.kept([{"outputs": [output]}]):
                if name in seen:
                    yield number, 1, f"keeps {name} once more: give one of them another name"
                seen.add(name)


def plain_links(page):
    """Nothing in a notebook's prose needs the site to be read: no roles, no fenced directives."""
    for number, cell in page.of_type("markdown"):
        for match in [*ROLE.finditer(cell["source"]), *FENCED.finditer(cell["source"])]:
            line = marks.line_of(cell["source"], match.start())
            yield number, line, f"{match.group().strip()} shows as it is outside of the site"


def sources_at_the_foot(page):
    """A notebook lists its sources, and links to no library that its bibliography lacks."""
    bibliography = refresh.BIBLIOGRAPHY
    for number, cell in page.of_type("markdown"):
        for line, address in sources.unknown(cell["source"], bibliography):
            yield number, line, f"{address} is not in references.bib"
    wanted, last = sources.listed(sources.above(page.cells), bibliography), page.cells[-1]
    if wanted != sources.HEADING + "\n" and last["source"].rstrip() != wanted:
        yield len(page.cells), 1, "the list of sources is not that of the links: run `make refresh`"


def quiz_from_its_source(page):
    """A core page asks, once, what the file of its quiz asks."""
    cells = [(number, cell) for number, cell in page.of_type("markdown") if quizzes.is_quiz(cell)]
    if not page.is_core:
        yield from ((number, 1, "has a quiz, which core pages alone have") for number, _ in cells)
        return
    if len(cells) != 1:
        wanted = f"{quizzes.HEADING!r} in a cell of its own"
        yield 1, 1, f"has {len(cells)} quizzes: write {wanted}, then run `make refresh`"
    for number, cell in cells:
        try:
            wanted = quizzes.written(quizzes.read(quizzes.source_of(ROOT / "book" / page.name)))
        except quizzes.QuizError as error:
            yield number, 1, str(error)
        else:
            if cell["source"] != wanted:
                place = f"book/{quizzes.FOLDER}/{page.chapter}.md"
                yield number, 1, f"the quiz is not that of {place}: edit it there, `make refresh`"


def executed(page):
    """Every cell was run once, in order, and none failed without meaning to."""
    for position, (number, cell) in enumerate(page.of_type("code"), start=1):
        if cell["execution_count"] != position:
            yield number, 1, f"has execution count {cell['execution_count']}, not {position}"
        failed = any(output["output_type"] == "error" for output in cell["outputs"])
        if failed and "raises-exception" not in refresh.tags(cell):
            yield number, 1, "failed when it was run"


def mostly_compared(page):
    """Half of the cells have an output that nbval compares, or the notebook is hardly tested."""
    cells = [cell for _, cell in page.of_type("code")]
    compared = sum(map(_is_compared, cells))
    if 2 * compared < len(cells):
        yield 1, 1, f"nbval compares the outputs of only {compared} of {len(cells)} code cells"


def _is_compared(cell):
    ignored = {"nbval-ignore-output", "nbval-skip"} & refresh.tags(cell)
    return not ignored and any(_compared_text(output) for output in cell["outputs"])


def _compared_text(output):
    kinds = {kind: text for kind, text in output.get("data", {}).items() if "image/" not in kind}
    is_figure = "image/png" in output.get("data", {})
    return "text" in output or "ename" in output or bool(kinds and not is_figure)


def stable_outputs(page):
    """Outputs hold nothing that differs from run to run or from machine to machine."""
    for number, cell in page.of_type("code"):
        for output in cell["outputs"]:
            if output.get("name") == "stderr":
                yield number, 1, "writes to stderr; a warning names paths and lines"
            if "nbval-ignore-output" not in refresh.tags(cell):
                for what in _noise(output):
                    yield number, 1, f"prints {what}"


def _noise(output):
    kinds = {kind: text for kind, text in output.get("data", {}).items() if "image/" not in kind}
    text = "\n".join("".join(part) for part in [output.get("text", ""), *map(str, kinds.values())])
    return [what for pattern, what in NOISE.items() if re.search(pattern, text)]


def alt_texts(page):
    """Every figure says in words what it shows."""
    for number, cell in page.of_type("code"):
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt") or ""
        if _has_figure(cell) and len(alt) < 20:
            yield number, 1, "a figure without alt text (cell metadata mystnb.image.alt)"


def _has_figure(cell):
    kinds = {kind for output in cell["outputs"] for kind in output.get("data", {})}
    return bool(kinds & {"image/png", "image/svg+xml", "image/jpeg"})


def axis_labels(page):
    """Every cell that draws labels both axes, itself or through a function of this notebook."""
    functions = {tree.name: tree for _, tree in _definitions(page)}
    for number, cell in page.of_type("code"):
        if not _has_figure(cell):
            continue
        tree = _parse(cell)
        called = {call.func.id for call in _calls(tree) if isinstance(call.func, ast.Name)}
        trees = [tree, *(functions[name] for name in called & set(functions))]
        missing = {"x", "y"} - {axis for tree in trees for axis in _labelled(tree)}
        if missing and any(map(_draws, trees)):
            yield number, 1, f"a figure without a label on its {' and '.join(sorted(missing))} axis"


def _labelled(tree):
    for call in _calls(tree):
        name = _name(call)
        text = [*call.args[:1]] if re.fullmatch(r"(set_|sup)?[xy]label", name) else []
        named = [(name.removeprefix("set_").removeprefix("sup")[0], value) for value in text]
        named += [(k.arg[0], k.value) for k in call.keywords if k.arg in ("xlabel", "ylabel")]
        yield from (axis for axis, value in named if getattr(value, "value", True) != "")
        if name == "set_axis_off" or (name == "axis" and _constants(call) == ["off"]):
            yield from "xy"


def _draws(tree):
    drawing = {"figure", "plot", "subplot_mosaic", "subplots"}
    return any(_name(call) in drawing for call in _calls(tree))


def _constants(call):
    return [argument.value for argument in call.args if isinstance(argument, ast.Constant)]


def seeded(page):
    """Randomness comes from a seeded generator that is handed on; nothing global is seeded."""
    imported = {}
    for number, cell in page.of_type("code"):
        tree = _parse(cell)
        imported |= _imports(tree)
        if "raises-exception" in refresh.tags(cell):
            continue
        for node in ast.walk(tree):
            message = _unseeded(node, imported)
            if message:
                yield number, node.lineno, message


def _imports(tree):
    """Map each local name to the module or the object that it stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname or a.name: a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def _unseeded(node, imported):
    if not isinstance(node, ast.Call):
        return None
    target = _target(node.func, imported)
    name = target.rpartition(".")[2]
    if target == f"numpy.random.{name}" and name not in MODERN_RANDOM:
        return f"{target} uses the global generator: draw from numpy.random.default_rng(seed)"
    if target.startswith("random.") or target in {"torch.manual_seed", "torch.seed"}:
        return f"{target} is global: hand a seeded generator on"
    if target == "numpy.random.default_rng" and _is_none([*node.args, *_values(node)]):
        return "default_rng without a seed"
    if target in _drawing_functions() and _is_none(_values(node, "rng", "random_state")):
        return f"{name} without rng: give it a seed or a seeded generator"
    return None


def _target(function, imported):
    if isinstance(function, ast.Attribute):
        return f"{_target(function.value, imported)}.{function.attr}"
    return imported.get(function.id, "") if isinstance(function, ast.Name) else ""


def _values(call, *names):
    return [k.value for k in call.keywords if not names or k.arg in (*names, None)]


def _is_none(values):
    return not values or all(isinstance(v, ast.Constant) and v.value is None for v in values)


@functools.cache
def _drawing_functions(root=ROOT):
    """Name the functions of the package that take ``rng``; a model draws only when it is fitted."""
    found = set()
    for path in sorted((root / "dpnotes").rglob("*.py")):
        # A chapter knows what a file of a package defines as the package's own.
        module = path.relative_to(root / "dpnotes").parts[0].removesuffix(".py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and _takes_randomness(node):
                found.add(f"dpnotes.{module}.{node.name}")
    return found


def _takes_randomness(function):
    named = [*function.args.args, *function.args.kwonlyargs]
    return any(argument.arg in ("rng", "random_state") for argument in named)


def data_stays_apart(page):
    """What only a cell with data defines, no other cell reads: those run on every machine."""
    bound, lacking = set(), {}
    for number, cell in page.of_type("code"):
        needs = {tag for tag in refresh.tags(cell) if tag.startswith(refresh.NEEDS)}
        own, read = _global_names(cell)
        for name in sorted((read - own - bound) & set(lacking)):
            if lacking[name] - needs:
                wanted = " and ".join(sorted(lacking[name] - needs))
                yield number, 1, f"reads {name}, which only a cell tagged {wanted} defines"
        if needs:
            lacking |= dict.fromkeys(own, needs)
        else:
            bound |= own


def _global_names(cell):
    """Return the names that a cell defines for those below it, and those that it reads."""
    top, *scopes = _scopes(symtable.symtable(_code(cell), "cell", "exec"))
    names = top.get_symbols()
    defined = {name.get_name() for name in names if name.is_assigned() or name.is_imported()}
    read = {name.get_name() for name in names if name.is_referenced()}
    for scope in scopes:
        used = [name for name in scope.get_symbols() if name.is_referenced()]
        read |= {name.get_name() for name in used if name.is_global()}
    # What is only added to has to be there before.
    nodes = list(ast.walk(_parse(cell)))
    changed = Counter(_target_name(node) for node in nodes if isinstance(node, ast.AugAssign))
    stored = [node for node in nodes if isinstance(node, ast.Name)]
    stored = Counter(node.id for node in stored if isinstance(node.ctx, ast.Store))
    only_changed = {name for name in changed if stored[name] == changed[name]}
    return defined - only_changed, read | only_changed


def _target_name(node):
    return getattr(node.target, "id", None)


def _scopes(table):
    """Yield a scope and all that lie in it."""
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def stale_notebooks(root=ROOT):
    """Every notebook shows what today's code gives."""
    for path in refresh.notebooks(root):
        reason = refresh.stale(path, root)
        if reason:
            shown = path.relative_to(root).as_posix()
            yield Problem(shown, "", f"stale: {reason}; run `make refresh`")


def resolved_glue(pages):
    """Every number in the prose that claims to come from a cell does."""
    glued = {page.name: page.glued() for page in pages}
    for page in pages:
        for number, cell in page.of_type("markdown"):
            for match in GLUE.finditer(cell["source"]):
                reference = match[1] or match[2]
                document, _, key = reference.rpartition("::")
                name = key.rpartition(":")[0] or key
                source = posixpath.normpath(posixpath.join(page.name, "..", document))
                if name not in glued.get(source if document else page.name, set()):
                    line = marks.line_of(cell["source"], match.start())
                    yield _problem(page, number, line, f"no cell glues {reference}")


def helpers_defined_once(pages):
    """No function or class is written down twice; other pages of a chapter may repeat it."""
    seen = {}
    # Students write the functions of assignments, each of which stands alone.
    for page in (page for page in pages if not page.name.startswith("assignments/")):
        for number, node in _definitions(page):
            code = ast.dump(node)
            for where, known in seen.setdefault(node.name, []):
                repeated = page.chapter == where.chapter and page.name != where.name
                if not (repeated and code == known):
                    message = f"{node.name} is defined already, in {where.name}"
                    yield _problem(page, number, node.lineno, message)
                    break
            seen[node.name].append((page, code))


def used_glossary_terms(pages):
    """Every term of the glossary is linked from another page, and every link has its term."""
    chinese = [page for page in pages if page.is_chinese]
    english = [page for page in pages if not page.is_chinese]
    yield from _links_without_a_term(english)
    yield from _links_without_a_term(chinese)
    # The Chinese pages are an excerpt of the book, which has no use for some of its terms.
    yield from _terms_without_a_link(english)


def _links_without_a_term(pages):
    known = {_anchor(term) for page in pages for _, term in glossary_terms(page.text())}
    for page in pages:
        for number, cell in page.of_type("markdown"):
            for match in GLOSSARY_LINK.finditer(cell["source"]):
                if known and match[1] not in known:
                    line = marks.line_of(cell["source"], match.start())
                    yield _problem(page, number, line, f"the glossary has no {match[1]}")


def _terms_without_a_link(pages):
    for page in pages:
        others = "\n".join(other.text() for other in pages if other is not page)
        used = {_term(match) for match in re.findall(r"\{term\}`([^`]+)`", others)}
        linked = set(GLOSSARY_LINK.findall(others))
        for line, term in glossary_terms(page.text()):
            if term.lower() not in used and _anchor(term) not in linked:
                yield _problem(page, 1, line, f"no other page links to {term!r}")


GLOSSARY_LINK = re.compile(r"\(<?(?:\.\./)*glossary\.md#term-([^\s)>]+)")


def _anchor(term):
    # As the site makes it: letters lose their accents, and the rest becomes hyphens.
    plain = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-")


def _term(reference):
    return re.sub(r"^.*<([^>]+)>$", r"\1", reference.replace("\n", " ")).strip().lower()


def glossary_terms(text):
    """Return the terms that ``{glossary}`` blocks define, each as ``(line, term)``."""
    terms = []
    for block in re.finditer(r"^(`{3,}|:{3,})\{glossary\}\n(.*?)^\1[ \t]*$", text, re.M | re.S):
        first = marks.line_of(text, block.start(2))
        for offset, line in enumerate(block[2].splitlines()):
            if line and not line[0].isspace() and not line.startswith((":", "%")):
                terms.append((first + offset, line.strip()))
    return terms


def times_of_the_routes(root=ROOT):
    """The index, its translations and the teacher's pages say how long each page and way takes."""
    for file, line, message in routes.problems(root):
        yield Problem(file, str(line), f"{message}; run `make refresh`")


def complete_contents(root=ROOT):
    """What the table of contents lists exists, and every page is in it."""
    listed = set(ledger.contents(root))
    pages = {
        path.relative_to(root).with_suffix("").as_posix()
        for kind in (".md", ".ipynb")
        for path in refresh.pages(kind, root)
    }
    for name in sorted(listed - pages):
        yield Problem("_toc.yml", "", f"{name} does not exist")
    for name in sorted(pages - listed):
        yield Problem("_toc.yml", "", f"{name} is not in the table of contents")


def _parse(cell):
    return ast.parse(_code(cell))


def _code(cell):
    """Return the Python of a cell, without the shell's and the kernel's commands."""
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", cell["source"], flags=re.M)


def _definitions(page):
    """Yield ``(cell number, node)`` for what a notebook defines at the top level."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    for number, cell in page.of_type("code"):
        yield from ((number, node) for node in _parse(cell).body if isinstance(node, kinds))


def _calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _name(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _problem(page, number, line, message):
    place = f"{number}:{line}" if page.is_notebook else str(line)
    return Problem(_shown(page.name), place, message)


def _shown(name):
    return f"book/{name}"


PAGE_RULES = [typed_numbers]
NOTEBOOK_RULES = [
    sections,
    reading_time,
    readable,
    short_cells,
    narrow_tables,
    folded,
    left_by_editors,
    true_marks,
    kept_once,
    plain_links,
    sources_at_the_foot,
    quiz_from_its_source,
    executed,
    stable_outputs,
    alt_texts,
    axis_labels,
    data_stays_apart,
]
BOOK_RULES = [resolved_glue, used_glossary_terms]


def pages(root=ROOT):
    """Read every page of the book, in the order of its name."""
    paths = [*refresh.pages(".md", root), *refresh.notebooks(root)]
    return [Page.read(path, path.relative_to(root / "book").as_posix()) for path in sorted(paths)]


def check_page(page):
    """Return what is wrong with one page."""
    rules = PAGE_RULES + (NOTEBOOK_RULES if page.is_notebook else [])
    return [_problem(page, *found) for rule in rules for found in rule(page)]


def check(root=ROOT):
    """Return every problem of the book."""
    book = pages(root)
    found = [*stale_notebooks(root), *complete_contents(root)]
    found += times_of_the_routes() if root == ROOT else []
    found += [problem for page in book for problem in check_page(page)]
    return found + [problem for rule in BOOK_RULES for problem in rule(book)]


def main(arguments=None, root=ROOT):
    """Print the problems; the exit status is 1 when there are any."""
    parser = argparse.ArgumentParser(description="Check the book as an object.")
    parser.add_argument("--stale", action="store_true", help="only refuse stale notebooks")
    options = parser.parse_args(arguments)
    problems = list(stale_notebooks(root)) if options.stale else check(root)
    for problem in problems:
        print(problem)
    if not options.stale:
        print(f"{len(problems)} problems in the book." if problems else "The book is in order.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
