"""The book as an object: each rule holds for it, and is shown to fail on a planted page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lint
import prose
import pytest
import quizzes
import refresh
import sources
from pybtex.database import parse_file

ROOT = Path(__file__).parents[1]
PAGES = lint.pages()
NOTEBOOKS = [page for page in PAGES if page.is_notebook]
PICTURE = {"output_type": "display_data", "data": {"image/png": "aGk="}, "metadata": {}}


def named(page):
    return page.name


def markdown(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def printed(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": [text]}


def glued(key):
    metadata = {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}}
    data = {"application/papermill.record/text/plain": "1"}
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def table(columns):
    cells = "<td>1</td>" * columns
    html = f"<table><tbody><tr><th>a</th>{cells}</tr><tr><th>b</th>{cells}</tr></tbody></table>"
    return {"output_type": "display_data", "data": {"text/html": [html]}, "metadata": {}}


def folded_code(source, **options):
    cell = code(source, **options)
    cell["metadata"]["jupyter"] = {"source_hidden": True}
    return cell


def code(source, *outputs, tags=(), alt=None, count=1):
    metadata = {"tags": list(tags)} | ({"mystnb": {"image": {"alt": alt}}} if alt else {})
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": list(outputs),
        "execution_count": count,
    }


def page(*cells, name="chapter.ipynb", **metadata):
    return lint.Page(name, list(cells), metadata)


def with_metadata(*cells, **changed):
    kernel = {"kernelspec": refresh.KERNEL, "language_info": refresh.LANGUAGE}
    return lint.Page("chapter.ipynb", list(cells), kernel | changed)


def found(rule, subject):
    return list(rule(subject))


@pytest.mark.parametrize("rule", lint.PAGE_RULES)
@pytest.mark.parametrize("subject", PAGES, ids=named)
def test_every_page_keeps_the_rule(rule, subject):
    assert not found(rule, subject)


@pytest.mark.parametrize("rule", lint.NOTEBOOK_RULES)
@pytest.mark.parametrize("subject", NOTEBOOKS, ids=named)
def test_every_notebook_keeps_the_rule(rule, subject):
    assert not found(rule, subject)


@pytest.mark.parametrize("rule", lint.BOOK_RULES)
def test_the_whole_book_keeps_the_rule(rule):
    assert not [str(problem) for problem in rule(PAGES)]


def test_half_of_the_core_pages_are_read_in_35_minutes():
    minutes = sorted(lint.measure.measure(page.cells).exact for page in PAGES if page.is_core)
    assert minutes[len(minutes) // 2] <= 35
    assert minutes[-1] <= 45


def test_the_table_of_contents_lists_what_exists_and_nothing_else():
    assert not [str(problem) for problem in lint.complete_contents()]


def test_no_notebook_is_stale():
    assert not [str(problem) for problem in lint.stale_notebooks()]


LABELLED = "fig, ax = plt.subplots()\nax.set_xlabel('n')\nax.set_ylabel('error')"
ALT = "A line that falls with the number of people."
SHAPE = [markdown(f"## {heading}") for heading in lint.SECTIONS]
TOP = markdown("# Title\n\n**About 5<!-- minutes --> minutes.**")
DRAWN = "![A picture of what follows](x.svg)"
WARNER = "https://doi.org/10.1080/01621459.1965.10480775"
CITED = f"Warner ([1965]({WARNER})) says so."
BIBLIOGRAPHY = refresh.BIBLIOGRAPHY
FOOT = markdown(lint.sources.listed(CITED, BIBLIOGRAPHY))
QUIZ = quizzes.written(quizzes.read(quizzes.source_of(ROOT / "book" / "accounting.ipynb")))
ARRAY = "import numpy as np\n"
MODULE = "from dpnotes import randomized_response as rr\n"

# For each rule: pages that keep it and pages that break it.
PLANTED = {
    lint.typed_numbers: (
        [
            page(markdown("An error of 4.28<!-- error:.2f --> % among many.")),
            page(markdown("### Check yourself\n\nAn error of 4.28 % among many.")),
        ],
        [page(markdown("An error of 4.28 % among many."))],
    ),
    lint.sections: (
        [page(*SHAPE), page(SHAPE[1], SHAPE[0], SHAPE[2]), page(name="deeper/chapter.ipynb")],
        [page(*SHAPE[1:]), page(*SHAPE[::-1]), page(*SHAPE, SHAPE[0], SHAPE[2]), page(*SHAPE[:2])],
    ),
    lint.reading_time: (
        [page(TOP), page(name="solutions/chapter.ipynb")],
        [page(markdown("About 5 minutes.")), page(markdown("# Title"), TOP)],
    ),
    lint.readable: (
        [
            page(markdown("word " * 3_800)),
            page(markdown("## Exercises"), markdown("word " * 4_000)),
            page(markdown("## Exercises\n\n### Check yourself\n\n" + "word " * 4_000)),
            page(markdown("### More (optional)\n" + "word " * 4_000 + "\n### On\nword")),
            page(markdown(":::{prf:proof}\n:class: dropdown\n" + "word " * 4_000 + "\n:::")),
            page(markdown(DRAWN), code("a\n" * 180)),
            page(code("a\n" * 200, tags=["hide-input"])),
            page(markdown("word " * 4_000), name="deeper/chapter.ipynb"),
        ],
        [
            page(markdown("word " * 3_900)),
            page(markdown("### More (optional)\n### On\n" + "word " * 4_000)),
            page(markdown(DRAWN), code("a\n" * 181)),
            page(code("a"), markdown(DRAWN)),
            page(markdown("The source says so.")),
        ],
    ),
    lint.short_cells: (
        [page(code("a\n" * 25 + "\n")), page(code("a\n" * 26, tags=["hide-input"]))],
        [page(code("a\n" * 26)), page(code("a\n" * 26, tags=["mechanism"]))],
    ),
    lint.narrow_tables: (
        [page(code("a", table(6))), page(code("a", printed("1")))],
        [page(code("a", table(7)))],
    ),
    lint.folded: (
        [page(code("a")), page(folded_code("a", tags=["hide-input"]))],
        [page(code("a", tags=["hide-input"])), page(folded_code("a"))],
    ),
    lint.left_by_editors: (
        [with_metadata()],
        [
            with_metadata(kernelspec={**refresh.KERNEL, "display_name": "Python 3 (ipykernel)"}),
            with_metadata(language_info={**refresh.LANGUAGE, "version": "3.11.7"}),
            with_metadata({**markdown("a"), "cell_type": "raw"}),
        ],
    ),
    lint.true_marks: (
        [
            page(code("a", glued("n")), markdown("1<!-- n -->, **1.0<!-- n:.1f -->** and $n$")),
            page(code("a", glued("n")), markdown("| 1.00<!-- n:.2f --> |\n:::{note}\n1<!-- n -->")),
            page(TOP),
        ],
        [
            page(code("a", glued("n")), markdown("2<!-- n -->")),
            page(code("a", glued("n")), markdown("1<!-- n:.1f -->")),
            page(code("a", glued("n")), markdown("1<!-- m -->")),
            page(code("a", glued("n")), markdown("1<!-- n:d% -->")),
            page(code("a", glued("n")), markdown("$x = 1<!-- n -->$")),
            page(code("a", glued("n")), markdown("`1<!-- n -->`")),
            page(code("a", glued("n")), markdown("# The 1<!-- n --> case")),
            page(code("a", glued("n")), markdown(":::{note} It is 1<!-- n -->\n:::")),
            page(code("a", glued("n")), markdown("[a](b/1<!-- n -->)")),
            page(markdown("# Title\n\n**About 10<!-- minutes --> minutes.**")),
        ],
    ),
    lint.kept_once: (
        [page(code("a", glued("n"), glued("m")))],
        [
            page(code("a", glued("n"), glued("n"))),
            page(code("a", glued("n")), code("b", glued("n"))),
        ],
    ),
    lint.plain_links: (
        [page(markdown("[a](b.md), `{term}` and :::{note}\n```{math}\nx\n```"))],
        [
            page(markdown("{term}`a`")),
            page(markdown("by {prf:ref}`a`")),
            page(markdown("```{admonition} A\nx\n```")),
        ],
    ),
    lint.sources_at_the_foot: (
        [page(markdown(CITED), FOOT), page(markdown("A [page](https://example.org/a)."))],
        [
            page(markdown(CITED)),
            page(FOOT, markdown(CITED)),
            page(markdown("[x](https://doi.org/10.1000/none)")),
            page(markdown(CITED), markdown("## Sources\n\n- Warner")),
        ],
    ),
    lint.quiz_from_its_source: (
        [
            page(markdown(QUIZ), name="accounting.ipynb"),
            page(markdown("No quiz."), name="deeper/accounting.ipynb"),
        ],
        [
            page(markdown("No quiz."), name="accounting.ipynb"),
            page(markdown(QUIZ), markdown(QUIZ), name="accounting.ipynb"),
            page(markdown(QUIZ.replace("Right.", "Wrong.", 1)), name="accounting.ipynb"),
            page(markdown(QUIZ), name="audit.ipynb"),
            page(markdown(QUIZ), name="chapter.ipynb"),
            page(markdown(QUIZ), name="deeper/accounting.ipynb"),
        ],
    ),
    lint.executed: (
        [
            page(code("a"), code("b", count=2)),
            page(code("1 / 0", {"output_type": "error"}, tags=["raises-exception"])),
        ],
        [
            page(code("a", count=2)),
            page(code("a"), code("b", count=None)),
            page(code("1 / 0", {"output_type": "error"})),
        ],
    ),
    lint.stable_outputs: (
        [
            page(code("a", printed("0.123456"), PICTURE)),
            page(code("a", printed("0.30000000000000004"), tags=["nbval-ignore-output"])),
        ],
        [
            page(code("a", printed("0.30000000000000004"))),
            page(code("a", printed("<object at 0x7f3a5c0b12d0>"))),
            page(code("a", printed("read /home/ann/adult.csv"))),
            page(code("a", printed("careful", name="stderr"))),
        ],
    ),
    lint.alt_texts: (
        [page(code("a", PICTURE, alt=ALT)), page(code("a", printed("1")))],
        [page(code("a", PICTURE)), page(code("a", PICTURE, alt="a plot"))],
    ),
    lint.axis_labels: (
        [
            page(code(LABELLED, PICTURE)),
            page(code("fig, ax = plt.subplots()\nax.set(xlabel='n', ylabel='m')", PICTURE)),
            page(
                code("def draw(ax):\n    ax.set_xlabel('n')\n    ax.set_ylabel('m')", count=1),
                code("fig, ax = plt.subplots()\ndraw(ax)", PICTURE, count=2),
            ),
            page(code("fig, ax = plt.subplots()\nax.axis('off')", PICTURE)),
            page(code("fig, ax = plt.subplots()")),
            page(code("audit.report(mechanism)", PICTURE)),
        ],
        [
            page(code("fig, ax = plt.subplots()\nax.plot([1])", PICTURE)),
            page(code("fig, ax = plt.subplots()\nax.set_xlabel('n')", PICTURE)),
            page(code(LABELLED.replace("'n'", "''"), PICTURE)),
        ],
    ),
    lint.data_stays_apart: (
        [
            page(code("a = 1", tags=["needs-mnist"]), code("a", tags=["needs-mnist"], count=2)),
            page(code("a = 1"), code("b = a", tags=["needs-mnist"]), code("a", count=3)),
            page(code("a = 1", tags=["needs-mnist"]), code("a = 2\nprint(a)", count=2)),
            page(code("a = 1", tags=["needs-mnist"]), code("def f(a):\n    return a", count=2)),
            page(code("a = 1", tags=["needs-mnist"]), code("a = 0\na += 1", count=2)),
            page(code("f = lambda a: a", tags=["needs-mnist"]), code("a()", count=2)),
            page(
                code("a = 1", tags=["needs-mnist"]),
                code("try:\n    b()\nexcept KeyError as a:\n    print(a)", count=2),
            ),
        ],
        [
            page(code("a = 1", tags=["needs-mnist"]), code("a", count=2)),
            page(code("a = 1", tags=["needs-mnist"]), code("a", tags=["needs-votes"], count=2)),
            page(code("def a(): pass", tags=["needs-mnist"]), code("def f(): a()", count=2)),
            page(code("import a", tags=["needs-mnist"]), code("a.b()", count=2)),
            page(code("a = 1", tags=["needs-mnist"]), code("a += 1", count=2)),
            page(
                code("def f(a): return [a for a in a]"),
                code("a = 1", tags=["needs-mnist"], count=2),
                code("a", count=3),
            ),
        ],
    ),
}
DRAW = "def draw(): pass"
GLOSSARY = """# Glossary

```{glossary}
epsilon
  The price.

local model
  Nobody is trusted.
```
"""
LINKS = "{term}`Epsilon` in [this model](glossary.md#term-local-model)"

# For each rule: books that keep it and books that break it.
PLANTED_BOOKS = {
    lint.resolved_glue: (
        [
            [
                page(code("a", glued("error")), markdown("{glue:text}`error:.2f` {glue:}`error`")),
                page(markdown("{glue:text}`chapter.ipynb::error:.1%`"), name="index.md"),
            ]
        ],
        [
            [
                page(code("a", glued("error")), markdown("{glue:text}`eror:.2f`")),
                page(markdown("{glue:text}`error`"), name="index.md"),
                page(markdown("{glue:text}`other.ipynb::error`"), name="about.md"),
            ]
        ],
    ),
    lint.used_glossary_terms: (
        [
            [page(markdown(GLOSSARY), name="glossary.md"), page(markdown(LINKS))],
            [
                page(markdown(GLOSSARY), name="glossary.md"),
                page(markdown(LINKS), name="deeper/a.ipynb"),
            ],
        ],
        [
            [page(markdown(GLOSSARY + LINKS), name="glossary.md"), page(markdown("epsilon"))],
            [
                page(markdown(GLOSSARY), name="glossary.md"),
                page(markdown(LINKS + "[x](glossary.md#term-x)")),
            ],
        ],
    ),
}


def test_every_rule_has_a_planted_page_that_breaks_it():
    assert set(PLANTED) == {*lint.PAGE_RULES, *lint.NOTEBOOK_RULES}
    assert set(PLANTED_BOOKS) == set(lint.BOOK_RULES)


@pytest.mark.parametrize("rule", PLANTED)
def test_a_rule_passes_good_pages_and_catches_each_planted_one(rule):
    good, bad = PLANTED[rule]
    assert not [found(rule, subject) for subject in good if found(rule, subject)]
    assert all(found(rule, subject) for subject in bad), [found(rule, subject) for subject in bad]


@pytest.mark.parametrize("rule", PLANTED_BOOKS)
def test_a_rule_for_the_whole_book_catches_what_is_planted(rule):
    good, bad = PLANTED_BOOKS[rule]
    assert not [found(rule, book) for book in good if found(rule, book)]
    assert all(found(rule, book) for book in bad), [found(rule, book) for book in bad]


def test_a_problem_says_file_cell_and_line():
    subject = page(markdown("Fine.\n\nAn error of 0.757."), code("a", glued("b")))
    shown = [str(problem) for problem in lint.check_page(subject)]
    assert shown[0].startswith("book/chapter.ipynb:1:3: 0.757 is typed by hand")


TYPED = [
    "The error is 0.757.",
    "Of 32,561 people, many agreed.",
    "Sales has 3650 rows.",
    "About 50 percent agree.",
    "Only 7 % do.",
    "| a | 0.123 |",
    "- an item of 12.3",
    "## We got 3.14 more",
    "A factor of 1.10, no more.",
    "Of 1994 people, most.",
    "1994 people came.",
    "Warner says so {footcite:p}`warner`. But 0.125 is ours.",
    "Warner ([1965](https://doi.org/10)) says so. But 0.125 is ours.",
    "See [this page](other.ipynb): 0.125.",
    "0.125 <!-- error -->",
    "```{admonition} Found 156.3 here\nText.\n```",
    "```{note}\n:class: x345\nIt took 5.67 s.\n```",
    "```{prf:remark}\nIt took 5.67 s.\n```",
    "`code` 4,541 `code`",
    "$x$ 5,555 $y$",
    "Some 1.23e-4 of them.",
]
FREE = [
    "An error of 0.757<!-- error:.3f -->, or 75.7<!-- error --> %, or **12,345<!-- n:,d -->**.",
    "Warner ([1965](https://doi.org/10)) reports 4.28 %.",
    "It was 4.28 % then ([Warner et al. 1965](https://doi.org/10)).",
    "Warner reports 4.28 % {footcite:p}`warner`.",
    "Warner reports 4.28 %. {footcite:p}`warner`",
    "| 0.123 | {footcite:p}`warner` |",
    "In 1965 Warner (1965) wrote; between 2014 and 2016, in June 2026, the 1994 census.",
    "See section 101, page 265, pages 265–284, Table 123.",
    "Python 3.11.2, Python 3.11 or 3.12; SHA-256; float64; 128-bit.",
    "100, 1,000 and 1,000,000; 0.05, 14 and 2,000.",
    "A 95 % confidence interval; 100 % of them.",
    "`0.123`, $0.123$ and $$1.234$$",
    "```python\nx = 1.234\n```",
    "```{math}\n1.234\n```",
    "````{prf:theorem}\n```{math}\n1.23\n```\n1.234\n````",
    "```{note}\n:width: 345\nText.\n```",
    "[text](https://example.org/123456) and https://example.org/123456",
    "<!-- 1.234 -->",
    "(label-1234)=\n# Title",
    "123. An item of a list",
    "---\na: 1.234\n---\nText.",
]


@pytest.mark.parametrize("text", TYPED)
def test_a_measured_number_typed_by_hand_is_found(text):
    assert prose.typed_numbers(text)


@pytest.mark.parametrize("text", FREE)
def test_a_number_that_may_be_typed_is_left_alone(text):
    assert not prose.typed_numbers(text)


def test_a_typed_number_is_found_on_its_line():
    text = "One.\n\n```python\n1.234\n```\n\nTwo: 1.234 and\n12.3 %."
    assert prose.typed_numbers(text) == [(7, "1.234"), (8, "12.3 %")]


def test_a_page_outside_the_table_of_contents_is_named(tmp_path):
    (tmp_path / "book").mkdir()
    for name in ("index.md", "stray.md"):
        (tmp_path / "book" / name).touch()
    (tmp_path / "_toc.yml").write_text("root: book/index\nchapters:\n  - file: book/gone\n")
    messages = [problem.message for problem in lint.complete_contents(tmp_path)]
    assert messages == ["book/gone does not exist", "book/stray is not in the table of contents"]


MARKED = """
import pytest

@pytest.mark.gpu
def test_gpu(): pass

@pytest.mark.browser
def test_browser(): pass
"""
# None of those that are installed takes part: their imports take longer than the tests.
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
LACKING = ["data for needs-mnist", "a CUDA device", "a browser"]


@pytest.fixture
def poor(tmp_path):
    """Run a cell and two tests where data, device and browser are missing; say how it went."""
    pytest.importorskip("nbval")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for folder in ("book/_tools", "dpnotes", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "empty").mkdir()
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(bool)\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  gpu: x\n  browser: x\n  timeout: x\n"
    )
    (tmp_path / "test_marked.py").write_text(MARKED)
    cells = [code("print(1)", printed("1\n")), code("1 / 0", tags=["needs-mnist"], count=2)]
    cells = [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(cells)]
    refresh.write(tmp_path / "small.ipynb", refresh.normalise({"cells": cells}, {}))

    def run(**variables):
        nothing = {"PYTHONPATH": "", "PYTEST_ADDOPTS": "", "CI": "", **NO_PLUGINS}
        here = {key: value for key, value in os.environ.items() if not key.startswith("DPNOTES")}
        empty = str(tmp_path / "empty")
        here |= nothing | {"XDG_CACHE_HOME": empty, "DPNOTES_DATA": empty, "PATH": empty}
        command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider"]
        command += [
            "-p",
            "nbval.plugin",
            "--nbval",
            "--nbval-current-env",
            "small.ipynb",
            "test_marked.py",
        ]
        return subprocess.run(
            command, cwd=tmp_path, env=here | variables, check=False, capture_output=True, text=True
        )

    return run


def test_what_this_machine_lacks_is_skipped_with_the_reason(poor):
    done = poor()
    assert "1 passed, 3 skipped" in done.stdout, done.stdout + done.stderr
    assert [what for what in LACKING if f"{what} is not here: " not in done.stdout] == []


def test_what_was_promised_fails_where_it_is_missing(poor):
    done = poor(CI="true", DPNOTES_DEVICE="cuda", DPNOTES_BROWSER="required")
    assert "1 passed, 3 errors" in done.stdout, done.stdout + done.stderr
    assert [what for what in LACKING if f"{what} must be here: " not in done.stdout] == []


def test_property_tests_have_no_deadline_and_repeat_themselves_in_ci():
    hypothesis = pytest.importorskip("hypothesis")
    assert hypothesis.settings().deadline is None
    assert hypothesis.settings().derandomize == (os.environ.get("CI") == "true")


def test_every_test_has_a_limit(request):
    assert not [item for item in request.session.items if not item.get_closest_marker("timeout")]


LONG = """
import pytest

@pytest.mark.full
def test_long(): pass

def test_quick(): pass
"""


@pytest.mark.parametrize(
    ("asked", "ran"), [([], "1 passed, 1 deselected"), (["--full"], "2 passed")]
)
def test_a_test_marked_full_runs_only_where_it_is_asked_for(tmp_path, asked, ran):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  full: x\n  timeout: x\n")
    (tmp_path / "test_marked.py").write_text(LONG)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *asked]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": "", **NO_PLUGINS},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran in done.stdout, done.stdout + done.stderr


def test_every_entry_of_the_bibliography_leads_somewhere_and_no_two_to_one_place():
    entries = parse_file(str(ROOT / "book" / "references.bib"), "bibtex").entries
    addresses = {key: sources.address(entry) or "" for key, entry in entries.items()}
    plain = re.compile(r"https://(doi\.org/10\.\d{4,9}/\S+|(?!doi\.org|dx\.doi)\S+)")
    assert [key for key, address in addresses.items() if not plain.fullmatch(address)] == []
    places = [address.lower().rstrip("/") for address in addresses.values()]
    assert sorted(places) == sorted(set(places))
