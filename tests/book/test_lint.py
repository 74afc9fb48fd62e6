"""The book as an object: it is in order, and each rule is shown to fail on planted pages."""

import os
import re
import shutil
import subprocess
import sys

import lint
import prose
import pytest
import refresh
import sources
from pybtex.database import parse_file

ROOT = lint.ROOT
# None of those that are installed takes part: their imports take longer than the tests.
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}


def test_the_book_is_in_order():
    assert lint.check() == []


def test_every_entry_of_the_bibliography_leads_somewhere_and_no_two_to_one_place():
    entries = parse_file(str(sources.BIBLIOGRAPHY), "bibtex").entries
    addresses = [sources.address(entry) or "" for entry in entries.values()]
    plain = re.compile(r"https://(doi\.org/10\.\d{4,9}/\S+|(?!doi\.org|dx\.doi)\S+)")
    assert [address for address in addresses if not plain.fullmatch(address)] == []
    assert len({address.lower().rstrip("/") for address in addresses}) == len(addresses)


# Planted pages. A string is a cell of prose.


def code(source="a", *outputs, tags=(), alt=None):
    metadata = {"tags": list(tags), "mystnb": {"image": {"alt": alt}}}
    cell = {"cell_type": "code", "metadata": metadata, "source": source}
    return cell | {"outputs": list(outputs), "execution_count": None}


def kept(*names):
    """Return a cell that keeps the number 1 under each name."""
    prefix = "application/papermill.record/"
    data = {f"{prefix}text/plain": "1"}
    boards = [{"scrapbook": {"name": name, "mime_prefix": prefix}} for name in names]
    return code("a", *({"data": data, "metadata": board} for board in boards))


RUN = refresh.normalise({"cells": [], "metadata": {}})["metadata"]


def page(*cells, name="chapter.ipynb", **metadata):
    cells = [lint.markdown(cell) if isinstance(cell, str) else cell for cell in cells]
    return lint.Page(name, cells, RUN | metadata)


def picture(source="a", alt=None):
    return code(source, {"data": {"image/png": "aGk="}}, alt=alt)


LONG = "word " * 4_000
SHAPE = [f"## {heading}" for heading in lint.SECTIONS]
CITED = "Warner ([1965](https://doi.org/10.1080/01621459.1965.10480775)) says so."
FOOT = sources.listed(CITED)
QUIZ = next(
    cell["source"]
    for cell in refresh.read(ROOT / "book" / "accounting.ipynb")["cells"]
    if lint.quizzes.is_quiz(cell)
)
PLOT = "fig, ax = plt.subplots()\nax.set_xlabel('n')\nax.set_ylabel('m')"
OPEN_PLOT = "fig, ax = plt.subplots()\n"
MINUTES = "**About {}<!-- minutes --> minutes.**"

# For each rule: pages that keep it and pages that break it.
PLANTED = {
    lint.typed_numbers: (
        [
            page("An error of 4.28<!-- error:.2f --> %."),
            page("### Check yourself\n\nIt is 4.28 %."),
        ],
        [
            page("An error of 4.28 %."),
            page(picture(alt="A line that falls to 0.757 at the end.")),
        ],
    ),
    lint.sections: (
        [page(*SHAPE), page("## More", *SHAPE), page(name="deeper/chapter.ipynb")],
        [page(*SHAPE[1:]), page(*SHAPE[::-1]), page(*SHAPE, *SHAPE), page(*SHAPE, "## More")],
    ),
    lint.readable: (
        [
            page("word " * 3_800),
            page("## Exercises\n\n### Check yourself", LONG),
            page(f"### More (optional)\n{LONG}\n### On\nword"),
            page(":::{prf:proof}\n:class: dropdown\n" + LONG + "\n:::"),
            page(code("a\n" * 800)),
            page(code("a\n" * 900, tags=["hide-input"])),
            page(LONG, name="deeper/chapter.ipynb"),
        ],
        [
            page("word " * 3_900),
            page(f"### More (optional)\n### On\n{LONG}"),
            page(code("a\n" * 900)),
            page(":::{prf:proof}\n:label: dropped\n" + LONG + "\n:::"),
        ],
    ),
    lint.refreshed: (
        [
            page(kept("n"), "1<!-- n -->, **1.0<!-- n:.1f -->** and $n$", CITED, FOOT),
            page(kept("n"), "| 1.00<!-- n:.2f --> |\n:::{note}\n1<!-- n -->"),
            page(MINUTES.format(5)),
        ],
        [
            *(page(kept("n"), text) for text in ["2<!-- n -->", "1<!-- n:.1f -->"]),
            page(kept("n"), "[a](b/1<!-- n -->)"),
            page(kept("n"), picture(alt="A line that falls to 2<!-- n --> at the end.")),
            page(MINUTES.format(10)),
            page(CITED, "## Sources\n\n- Warner"),
            page(code(tags=["hide-input"])),
            page(kernelspec={**refresh.KERNEL, "display_name": "Python 3 (ipykernel)"}),
            page(language_info={**refresh.LANGUAGE, "version": "3.11.7"}),
            page({**code(), "cell_type": "raw"}),
        ],
    ),
    lint.true_marks: (
        [page(kept("n"), "1<!-- n -->, **1.0<!-- n:.1f -->** and $n$"), page(MINUTES.format(5))],
        [
            *(page(kept("n"), text) for text in ["1<!-- m -->", "1<!-- n:d% -->"]),
            page(kept("n"), picture(alt="A line that falls to 1<!-- m --> at the end.")),
            *(page(kept("n"), text) for text in ["$x = 1<!-- n -->$", "`1<!-- n -->`"]),
            *(
                page(kept("n"), text)
                for text in ["# The 1<!-- n --> case", "1<!-- n --> $1<!-- n -->$"]
            ),
            page(kept("n"), ":::{note} It is 1<!-- n -->\n:::"),
        ],
    ),
    lint.kept_once: ([page(kept("n", "m"))], [page(kept("n", "n")), page(kept("n"), kept("n"))]),
    lint.plain_links: (
        [page("[a](b.md), `{term}` and :::{note}\n```{math}\nx\n```")],
        [page("{term}`a`"), page("by {prf:ref}`a`"), page("```{admonition} A\nx\n```")],
    ),
    lint.sources_at_the_foot: (
        [page(CITED, FOOT), page("A [page](https://example.org/a).")],
        [
            page(CITED),
            page(FOOT, CITED),
            page("[x](https://doi.org/10.1000/none)"),
        ],
    ),
    lint.answerable_quiz: (
        [page(QUIZ), page("No quiz.", name="deeper/chapter.ipynb")],
        [
            page("No quiz."),
            page(QUIZ, QUIZ),
            page(QUIZ.replace("Right.", "Wrong.", 1)),
            page(QUIZ, name="deeper/chapter.ipynb"),
        ],
    ),
    lint.alt_texts: (
        [page(picture(alt="A line that falls with the number of people.")), page(code())],
        [page(picture()), page(picture(alt="a plot"))],
    ),
    lint.axis_labels: (
        [
            page(picture(PLOT)),
            page(picture(OPEN_PLOT + "ax.set(xlabel='n', ylabel='m')")),
            page(
                code("def draw(ax):\n    ax.set_xlabel('n')\n    ax.set_ylabel('m')"),
                picture(OPEN_PLOT + "draw(ax)"),
            ),
            page(picture(OPEN_PLOT + "ax.axis('off')")),
            page(code(OPEN_PLOT)),
            page(picture("audit.report(mechanism)")),
        ],
        [page(picture(OPEN_PLOT + end)) for end in ["ax.plot([1])", "ax.set_xlabel('n')"]]
        + [page(picture(PLOT.replace("'n'", "''")))],
    ),
}


@pytest.mark.parametrize("rule", [lint.typed_numbers, *lint.NOTEBOOK_RULES])
def test_a_rule_passes_good_pages_and_catches_each_planted_one(rule):
    good, bad = PLANTED[rule]
    assert [list(rule(subject)) for subject in good] == [[]] * len(good)
    assert [subject for subject in bad if not list(rule(subject))] == []


def test_a_page_outside_the_table_of_contents_is_named(tmp_path):
    (tmp_path / "book").mkdir()
    for name in ("index.md", "stray.md"):
        (tmp_path / "book" / name).touch()
    (tmp_path / "_toc.yml").write_text("root: book/index\nchapters:\n  - file: book/gone\n")
    assert list(lint.complete_contents(tmp_path)) == [
        "_toc.yml: book/gone does not exist",
        "_toc.yml: book/stray is not in the table of contents",
    ]


# Numbers typed by hand.

TYPED = [
    "The error is 0.757.",
    "Of 32,561 people, many agreed.",
    "About 50 percent agree.",
    "Only 7 % do.",
    "| a | 0.123 |",
    "## We got 3.14 more",
    "A factor of 1.10, no more.",
    "Of 1994 people, most.",
    "Warner ([1965](https://doi.org/10)) says so. But 0.125 is ours.",
    "See [this page](other.ipynb): 0.125.",
    "0.125 <!-- error -->",
    "```{admonition} Found 156.3 here\nText.\n```",
    "```{note}\n:class: x345\nIt took 5.67 s.\n```",
    "`code` 4,541 `code`",
    "Some 1.23e-4 of them.",
]
FREE = [
    "An error of 0.757<!-- error:.3f -->, or 75.7<!-- error --> %, or **12,345<!-- n:,d -->**.",
    "It was 4.28 % then ([Warner et al. 1965](https://doi.org/10)).",
    "Warner reports 4.28 %. {footcite:p}`warner`",
    "| 0.123 | {footcite:p}`warner` |",
    "In 1965 Warner (1965) wrote; between 2014 and 2016, in June 2026, the 1994 census.",
    "See section 101, page 265, pages 265–284, Table 123.",
    "Python 3.11.2, Python 3.11 or 3.12; SHA-256; float64; 128-bit.",
    "100, 1,000 and 1,000,000; 0.05, 14 and 2,000.",
    "A 95 % confidence interval; 100 % of them.",
    "`0.123`, $0.123$, $$1.234$$ and <!-- 1.234 -->",
    "```python\nx = 1.234\n```",
    "````{prf:theorem}\n```{math}\n1.234\n```\n````",
    "```{note}\n:width: 345\nText.\n```",
    "[text](https://example.org/123456) and https://example.org/123456",
    "123. An item of a list",
    "---\na: 1.234\n---\nText.",
]


@pytest.mark.parametrize("text", TYPED)
def test_a_measured_number_typed_by_hand_is_found(text):
    assert prose.typed_numbers(text)


@pytest.mark.parametrize("text", FREE)
def test_a_number_that_may_be_typed_is_left_alone(text):
    assert not prose.typed_numbers(text)


def test_a_typed_number_is_told_with_its_file_its_cell_and_its_line():
    text = "One.\n\n```python\n1.234\n```\n\nTwo: 1.234 and\n12.3 %."
    assert prose.typed_numbers(text) == [(7, "1.234"), (8, "12.3 %")]
    [first, *_] = lint.check_page(page("Fine.\n\nAn error of 0.757."))
    assert first.startswith("book/chapter.ipynb:1:3: 0.757 is typed by hand")


# What pytest must know about a machine.

MARKED = "import pytest\n" + "".join(
    f"\n@pytest.mark.{mark}\ndef test_{mark}(): pass\n" for mark in ("gpu", "browser", "full")
)
LACKING = ["data for needs-mnist", "a CUDA device", "a browser"]


@pytest.fixture
def poor(tmp_path):
    """Run a cell and three tests where data, device and browser are missing; return the output."""
    pytest.importorskip("nbval")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for folder in ("book/_tools", "dpnotes", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(bool)\n")
    markers = "".join(f"  {mark}: x\n" for mark in ("gpu", "browser", "full", "timeout"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{markers}")
    (tmp_path / "test_marked.py").write_text(MARKED)
    printed = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
    cells = [code("print(1)", printed), code("1 / 0", tags=["needs-mnist"])]
    cells = [{**cell, "id": f"c{n}", "execution_count": n} for n, cell in enumerate(cells, 1)]
    refresh.write(tmp_path / "small.ipynb", refresh.normalise({"cells": cells, "metadata": {}}))

    def run(*options, **variables):
        here = {key: value for key, value in os.environ.items() if not key.startswith("DPNOTES")}
        empty = dict.fromkeys(["XDG_CACHE_HOME", "DPNOTES_DATA", "PATH"], str(tmp_path / "none"))
        command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider"]
        command += ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", *options]
        return subprocess.run(
            [*command, "small.ipynb", "test_marked.py"],
            cwd=tmp_path,
            env=here | {"PYTHONPATH": "", "CI": "", **NO_PLUGINS, **empty, **variables},
            check=False,
            capture_output=True,
            text=True,
        ).stdout

    return run


def test_what_this_machine_lacks_is_skipped_with_the_reason_and_long_tests_are_left_out(poor):
    shown = poor()
    assert "1 passed, 3 skipped, 1 deselected" in shown, shown
    assert [what for what in LACKING if f"{what} is not here: " not in shown] == []


def test_what_was_promised_fails_where_it_is_missing_and_long_tests_run_when_asked_for(poor):
    shown = poor("--full", CI="true", DPNOTES_DEVICE="cuda", DPNOTES_BROWSER="required")
    assert "2 passed, 3 errors" in shown, shown
    assert [what for what in LACKING if f"{what} must be here: " not in shown] == []


def test_every_test_has_a_limit_and_property_tests_repeat_themselves_in_ci(request):
    assert not [item for item in request.session.items if not item.get_closest_marker("timeout")]
    hypothesis = pytest.importorskip("hypothesis")
    assert hypothesis.settings().deadline is None
    assert hypothesis.settings().derandomize == (os.environ.get("CI") == "true")
