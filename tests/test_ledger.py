"""The ledger: each rule holds for the book, and is shown to fail on a planted repository."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import public
import pytest

pytest.importorskip("yaml")

import guarantees
import ledger

ROOT = Path(__file__).parents[1]
BOOK = ledger.Ledger.read()


@pytest.mark.parametrize("rule", ledger.RULES)
def test_the_book_keeps_the_rule(rule):
    assert not list(rule(BOOK))


def test_the_page_is_what_the_program_writes():
    written = (ROOT / f"{ledger.PAGE}.md").read_text(encoding="utf-8")
    assert written == guarantees.page(BOOK), "run .venv/bin/python book/_tools/guarantees.py"


def test_every_statement_of_the_book_is_found():
    stated = 0
    for page in BOOK.prose.values():
        stated += sum(page.count(f"{{prf:{kind}}}") for kind in ledger.STATED)
    assert len(BOOK.statements) == stated > 60
    assert len({statement.label for statement in BOOK.statements}) == stated


def test_every_name_that_can_be_imported_is_found_by_reading():
    imported = {
        f"{public.short_name(module)}.{name}": thing
        for module in public.MODULES
        for name, thing in public.callables(module).items()
    }
    assert imported.keys() <= BOOK.names
    promises = {promise.label for promise in BOOK.promises} | BOOK.no_promise.keys()
    assert {name for name, thing in imported.items() if "rng" in arguments(thing)} <= promises


def arguments(thing):
    code = getattr(thing, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()


# A small repository that keeps every rule, and what breaks each.

THEOREM = """:::{prf:theorem} Half of nothing
:label: x-half
It is nothing.
:::"""
PROOF = """

:::{prf:proof}
Clear.
:::"""
MODULE = """def privatize(values, *, rng=None): pass
def _hidden(*, rng): pass
def total(values): pass
def upscale(values): pass
def cost(n) -> PrivacyCost: pass
"""
TESTS = """import numpy as np
import pytest

@pytest.mark.claim("x-half", kind="all cases in exact numbers")
def test_half(): assert True

@pytest.mark.claim("chapter.privatize", kind="audit")
def test_draw(): privatize(np.random.default_rng(1))

@pytest.mark.claim("chapter.cost", kind="enumeration")
def test_cost(): cost(3)
"""


def planted(folder, page=THEOREM + PROOF, module=MODULE, tests=TESTS, **exceptions):
    """Write a repository of one page, one module and one file of tests, and read it."""
    for name in ("book", "dpnotes", "tests"):
        (folder / name).mkdir(parents=True)
    cells = [{"cell_type": "markdown", "source": f"# A chapter\n\n{page}"}]
    (folder / "book" / "chapter.ipynb").write_text(json.dumps({"cells": cells}))
    (folder / "_toc.yml").write_text("root: book/index\nchapters:\n  - file: book/chapter\n")
    where = {"url": "https://example.org/x", "branch": "main"}
    (folder / "_config.yml").write_text(json.dumps({"repository": where}))
    (folder / "dpnotes" / "chapter.py").write_text(module)
    (folder / "tests" / "test_chapter.py").write_text(tests)
    (folder / "tests" / "helper.py").write_text("def roll(rng): return rng.random()\n")
    return ledger.Ledger.read(folder, **{"on_paper": {}, "no_promise": {}, **exceptions})


def marked(decorator, body="pass"):
    """Return tests of which one more has this mark and this body."""
    return f"{TESTS}\n{decorator}\ndef test_more(): {body}\n"


OF_A_CLASS = marked('@pytest.mark.claim("chapter.Model.draw", kind="enumeration")', "draw(3)")
PAPER = {"x-half": "[Somebody 2001](https://example.org/paper)"}
CITING = f"{THEOREM}\n\nSee {PAPER['x-half']}."
EXACT = 'kind="all cases in exact numbers"'

BROKEN = {
    ledger.unlabelled: [{"page": ":::{prf:lemma} Nameless\nNothing.\n:::" + PROOF}],
    ledger.unproved: [{"page": THEOREM}, {"page": f"{THEOREM}\n\nSee [it](y){PROOF}"}],
    ledger.unchecked: [
        {"tests": TESTS.replace('"x-half"', '"chapter.total"')},
        {"tests": TESTS.replace('"chapter.privatize"', '"chapter.total"')},
        {"tests": TESTS.replace('"chapter.cost"', '"chapter.total"')},
        {"tests": TESTS.replace("claim", "full")},
        *({"module": MODULE + f"def {name}(n): pass\n"} for name in ("auc_sensitivity", "epsilon")),
        {"module": MODULE + "class Model:\n    def __init__(self, *, random_state): pass\n"},
        {"module": MODULE + "class Model:\n    def fit(self, *, rng): pass\n"},
        {
            "module": MODULE
            + "class _Base:\n    def fit(self, *, rng): pass\nclass Model(_Base): pass\n"
        },
    ],
    ledger.unused: [
        {"tests": TESTS.replace("cost(3)", "pass")},
        {"tests": TESTS.replace("cost(3)", "use('cost')")},
        {"tests": TESTS.replace("cost(3)", "total(3)\ndef other(): cost(3)")},
        {"module": MODULE + "class Model:\n    def draw(self, rng): pass\n", "tests": OF_A_CLASS},
        {"tests": marked('@pytest.mark.claim("chapter.total", kind="enumeration")')},
    ],
    ledger.unknown: [
        {"tests": marked('@pytest.mark.claim("x-quarter", kind="enumeration")')},
        {"tests": marked('@pytest.mark.claim("chapter._hidden", kind="enumeration")')},
        {"tests": marked('@pytest.mark.claim("x-half", kind="a look")')},
        {"tests": marked('@pytest.mark.claim("x-half", kind="cited")')},
        {"tests": marked('@pytest.mark.claim("x-half")')},
        {"tests": marked('@pytest.mark.claim("x-half", sort="enumeration")')},
        {"tests": marked('@pytest.mark.claim(kind="enumeration")')},
        {"tests": marked("@pytest.mark.claim")},
    ],
    ledger.misnamed: [
        {"tests": marked(f'@pytest.mark.claim("x-half", {EXACT})', "np.random.default_rng(1)")},
        {"tests": marked('@pytest.mark.claim("x-half", kind="audit")')},
        {"tests": marked('@pytest.mark.claim("x-half", kind="simulation with its error")')},
    ],
    ledger.left_out: [
        {"tests": marked(f'@pytest.mark.{mark}\n@pytest.mark.claim("x-half", {EXACT})')}
        for mark in ("skip", "skipif(True, reason='x')", "xfail", "gpu", "browser", "full")
    ],
    ledger.stale_exceptions: [
        {"page": f"{THEOREM}{PROOF}\n\nSee {PAPER['x-half']}.", "on_paper": PAPER},
        {"page": THEOREM, "on_paper": PAPER},
        {"page": CITING, "on_paper": PAPER | {"x-quarter": "it"}},
        {"no_promise": {"chapter.gone": "why"}},
        {"no_promise": {"chapter.privatize": "why"}},
    ],
}
ALSO_GOOD = [
    {"page": THEOREM + "\n\n([Proof](deeper/chapter.ipynb#half).)"},
    {"page": THEOREM.replace("theorem", "definition")},
    {"page": CITING, "on_paper": PAPER},
    {"page": CITING, "on_paper": PAPER, "tests": TESTS.replace('"x-half"', '"chapter.cost"')},
    {"tests": TESTS.replace("privatize", "total"),
     "no_promise": {"chapter.privatize": "why"}},
    {"tests": marked(f'@pytest.mark.claim("x-half", {EXACT})\n@pytest.mark.timeout(9)')},
]  # fmt: skip


def test_a_small_repository_keeps_every_rule(tmp_path):
    for number, changes in enumerate([{}, *ALSO_GOOD]):
        found = planted(tmp_path / str(number), **changes)
        assert len(found.checks) >= 3
        assert ledger.problems(found) == [], changes


@pytest.mark.parametrize("rule", ledger.RULES)
def test_a_rule_catches_each_planted_repository(rule, tmp_path):
    for number, changes in enumerate(BROKEN[rule]):
        assert list(rule(planted(tmp_path / str(number), **changes))), changes


USING = [
    "def test_x(): total(3)",
    "def test_x(): chapter.total(3)",
    "from dpnotes.chapter import total as add\ndef test_x(): add(3)",
    "def helper(): total(3)\ndef test_x(): helper()",
    "CASES = [total]\n@pytest.mark.parametrize('x', CASES)\ndef test_x(x): pass",
    "@pytest.mark.parametrize('x', [total])\ndef test_x(x): x(3)",
    "@pytest.fixture\ndef table(): return total(3)\ndef test_x(table): pass",
    "from helper import sums\ndef test_x(): sums()",
    "import helper\ndef test_x(): helper.sums()",
    "import helper as other\ndef test_x(): other.sums()",
]
NOT_USING = [
    "def total(): pass\ndef test_x(): pass",
    "@pytest.mark.claim('chapter.total', kind='audit')\ndef test_x(): 'total'",
    "from dpnotes.chapter import total\ndef test_x(): pass",
    "import helper\ndef test_x(): helper.others()",
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [*((source, True) for source in USING), *((source, False) for source in NOT_USING)],
)
def test_what_a_test_uses_is_found_however_deep(tmp_path, source, expected):
    (tmp_path / "helper.py").write_text("def sums(): total(1)\ndef others(): pass\n")
    path = tmp_path / "test_planted.py"
    path.write_text(source)
    file = ledger.FileOfTests.read(path)
    [test] = file.tests()
    assert ("total" in file.words(test)) == expected


DRAWING = [
    "def test_x(): np.random.default_rng(3)",
    "def test_x(): random.shuffle(y)",
    "def test_x(): privatize(y, rng=3)",
    "def test_x(): [privatize(y, rng=seed) for seed in range(9)]",
    "def test_x(): model(random_state=0)",
    "def test_x(): stats.norm.rvs(9)",
    "def helper(): return np.random.default_rng(3)\ndef test_x(): helper()",
    "def inner(): return default_rng(3)\ndef helper(): return inner()\ndef test_x(): helper()",
    "CASES = [np.random.default_rng(3).random()]\ndef test_x(): use(CASES)",
    "CASES = [np.random.default_rng(3).random()]\n"
    "@pytest.mark.parametrize('x', CASES)\ndef test_x(x): pass",
    "@pytest.fixture\ndef table(): return default_rng(3)\ndef test_x(table): pass",
    "class Draw:\n    def go(self): return default_rng(3)\ndef test_x(): Draw().go()",
    "from helper import draws\ndef test_x(): draws()",
]
ENUMERATING = [
    "def test_x(): pass",
    "def other(): return default_rng(3)\ndef test_x(): pass",
    "class Every: pass\ndef test_x(): privatize(y, rng=Every())",
    "def test_x():\n    pairs = np.indices((256, 256))\n    privatize(y, rng=pairs)",
    "def test_x(): use(lambda data, rng: release(data, rng=rng))",
    "class Every(np.random.Generator): pass\ndef test_x(): privatize(y, rng=Every())",
    "from helper import counts\ndef test_x(): counts()",
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [*((source, True) for source in DRAWING), *((source, False) for source in ENUMERATING)],
)
def test_draws_are_found_however_deep_and_stand_ins_are_none(tmp_path, source, expected):
    (tmp_path / "helper.py").write_text("def draws(): default_rng(1)\ndef counts(): pass\n")
    path = tmp_path / "test_planted.py"
    path.write_text(source)
    file = ledger.FileOfTests.read(path)
    [test] = file.tests()
    assert bool(file.draws(test)) == expected


# The page and the site.


def test_a_row_links_to_its_statement_and_to_its_test(tmp_path):
    found = planted(tmp_path)
    [row] = [line for line in guarantees.page(found, tmp_path).splitlines() if "x-half" in line]
    assert row == (
        "| [Half of nothing](chapter.ipynb#x-half) (theorem) | *all cases in exact numbers:* "
        "[Half](https://example.org/x/blob/main/tests/test_chapter.py) |"
    )


def test_what_no_page_has_as_its_chapter_comes_last_with_its_whole_name(tmp_path):
    found = planted(tmp_path)
    found.prose = {"other.ipynb": "# Another chapter"}
    _, rest = guarantees.page(found, tmp_path).split("## Without a chapter")
    assert "[`chapter.cost`](api/chapter.md#dpnotes.chapter.cost) (promise)" in rest
    assert "[Half of nothing](chapter.ipynb#x-half) (theorem)" in rest


def test_a_paper_and_parameters_of_hypothesis_are_named(tmp_path):
    tests = TESTS.replace("def test_half", "@given(x=1)\ndef test_half")
    found = planted(tmp_path, page=CITING, on_paper=PAPER, tests=tests)
    page = guarantees.page(found, tmp_path)
    assert f"(parameters from hypothesis)<br>*cited:* {PAPER['x-half']} |" in page
    assert "| cited |" in page
    assert "| chosen cases |" not in page


def test_links_of_the_site_lead_to_the_line_of_each_test():
    links = re.findall(r"/blob/main/(tests/\w+\.py)#L(\d+)", guarantees.page(BOOK, lines=True))
    files = {path: (ROOT / path).read_text().splitlines() for path, _ in links}
    names = {check.name for check in BOOK.checks}
    found = {re.match(r"\s*def (\w+)", files[path][int(line) - 1])[1] for path, line in links}
    assert found == names
    source = [""]
    guarantees.number_lines(SimpleNamespace(confdir=ROOT), ledger.PAGE, source)
    assert source == [guarantees.page(BOOK, lines=True)]
    guarantees.number_lines(SimpleNamespace(confdir=ROOT), "book/pate", source)
    assert source == [guarantees.page(BOOK, lines=True)]


def test_each_statement_of_the_site_has_a_link_to_its_row():
    nodes = pytest.importorskip("docutils.nodes")
    app = SimpleNamespace(
        confdir=ROOT, builder=SimpleNamespace(get_relative_uri=lambda here, there: f"{there}.html")
    )
    stated = nodes.Admonition, nodes.Element
    node_type = type("theorem_node", stated, {})
    document = nodes.section()
    for label, kind in [("rr-privacy", "theorem"), ("el-algorithm", "algorithm")]:
        document += node_type("", label=label, realtype=kind)
    guarantees.link(app, document, "book/randomized_response")
    [reference] = document.findall(nodes.reference)
    assert reference["refuri"] == f"{ledger.PAGE}.html#check-rr-privacy"
    assert reference.astext() == "How this theorem is checked"
    assert reference.parent.parent["label"] == "rr-privacy"

    page = nodes.section()
    for place in ("randomized_response.html#rr-privacy", "https://example.org", "api/x.html#gone"):
        row = nodes.row()
        row += nodes.entry("", nodes.reference("", "x", refuri=place))
        row += nodes.entry("", nodes.reference("", "x", refuri="pate.html#pt-loss"))
        page += row
    guarantees.link(app, page, ledger.PAGE)
    assert [row["ids"] for row in page.findall(nodes.row)] == [["check-rr-privacy"], [], []]


def test_the_program_writes_the_page(tmp_path):
    planted(tmp_path)
    guarantees.write(tmp_path)
    assert "x-half" in (tmp_path / f"{ledger.PAGE}.md").read_text()
