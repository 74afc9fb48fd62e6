"""The ledger: each rule holds for the book, and is shown to fail where something is planted."""

import dataclasses
import re
from types import SimpleNamespace

import guarantees
import ledger
import pytest

BOOK = ledger.read()


@pytest.mark.parametrize("rule", ledger.RULES)
def test_the_book_keeps_the_rule(rule):
    assert list(rule(BOOK)) == []


def test_the_page_is_what_the_program_writes():
    written = (ledger.ROOT / f"{ledger.PAGE}.md").read_text(encoding="utf-8")
    assert written == guarantees.write_page(BOOK), "run .venv/bin/python book/_tools/guarantees.py"


def test_every_statement_of_the_book_is_found():
    stated = sum(
        page.count(f"{{prf:{kind}}}") for page in BOOK.prose.values() for kind in ledger.STATED
    )
    assert len({statement.label for statement in BOOK.statements}) == stated > 60


THEOREM = ":::{prf:theorem} Half of nothing\n:label: x-half\nIt is nothing.\n:::\n"
PROOF = "\n:::{prf:proof}\nClear.\n:::\n"
PAPER = {"x-half": "[Somebody 2001](https://example.org/paper)"}
CITING = f"{THEOREM}\nSee {PAPER['x-half']}."


def check(*labels, kind="enumeration", marks=()):
    return ledger.Check("tests/test_x.py", "test_x", 1, labels, kind, frozenset(marks))


HALF, DRAW, COST = check("x-half"), check("chapter.draw"), check("chapter.cost")


def planted(text=THEOREM + PROOF, checks=(HALF, DRAW), on_paper=None, no_promise=None):
    """Return the ledger of one page and of a module that promises ``draw`` and no ``cost``."""
    names, prose = {"chapter.draw", "chapter.cost"}, {"chapter.ipynb": f"# A chapter\n\n{text}"}
    return ledger.Ledger(
        prose, names, {"chapter.draw"}, list(checks), on_paper or {}, no_promise or {}
    )


GOOD = [
    planted(),
    planted(f"{THEOREM}\n([Proof](deeper/chapter.ipynb#half).)"),
    planted(THEOREM.replace("theorem", "definition")),
    planted(CITING, [DRAW], PAPER),
    planted(
        checks=[HALF, check("chapter.cost", marks=["timeout"])], no_promise={"chapter.draw": ""}
    ),
]
BROKEN = {
    ledger.unproved: [
        planted(":::{prf:lemma} Nameless\nNothing.\n:::\n" + PROOF),
        planted(THEOREM),
        planted(f"{THEOREM}\nSee [it](y).{PROOF}"),
        planted(THEOREM, on_paper=PAPER),
        planted(CITING, on_paper={"x-half": "another paper"}),
        planted(f"{THEOREM}{PROOF}\n{PAPER['x-half']}", on_paper=PAPER),
    ],
    ledger.unchecked: [planted(checks=[HALF]), planted(checks=[DRAW])],
    ledger.unknown: [
        *(planted(checks=[HALF, DRAW, check(label)]) for label in ("x-third", "chapter._draw")),
        *(planted(checks=[HALF, DRAW, check("x-half", kind=k)]) for k in ("a look", "cited", None)),
        planted(checks=[HALF, DRAW, check()]),
        *(planted(checks=[HALF, DRAW, check("x-half", marks=[m])]) for m in ledger.LEFT_OUT),
        planted(no_promise={"chapter.gone": "why"}),
        planted(no_promise={"chapter.draw": "why"}),
    ],
}


@pytest.mark.parametrize("rule", ledger.RULES)
def test_a_rule_passes_what_is_in_order_and_catches_what_is_planted(rule):
    assert [list(rule(book)) for book in GOOD] == [[]] * len(GOOD)
    assert [book for book in BROKEN[rule] if not list(rule(book))] == []


def test_a_promise_draws_or_costs_or_says_so_by_its_name():
    def privatize(values, *, rng=None): ...
    def spend(n) -> "PrivacyCost": ...  # noqa: F821
    def auc_sensitivity(n): ...
    def upscale(values): ...

    class Model:
        def __init__(self, *, random_state): ...

    promising = [ledger.promises(each) for each in (privatize, spend, auc_sensitivity, Model)]
    assert promising == [True] * 4
    assert not ledger.promises(upscale)


def test_a_row_leads_to_its_statement_to_its_tests_and_to_the_paper():
    half = dataclasses.replace(HALF, by_hypothesis=True)
    book = planted(CITING, [half, DRAW], PAPER)
    [row] = [line for line in guarantees.write_page(book).splitlines() if "x-half" in line]
    assert row.startswith(
        "| [Half of nothing](chapter.ipynb#x-half) (theorem) | *enumeration:* [X]("
    )
    assert f"/tests/test_x.py) (parameters from hypothesis)<br>*cited:* {PAPER['x-half']} |" in row
    book.prose = {"other.ipynb": "# Another chapter"}
    _, rest = guarantees.write_page(book).split("## Without a chapter")
    assert "[`chapter.draw`](api/chapter.md#dpnotes.chapter.draw) (promise)" in rest


def test_links_of_the_site_lead_to_the_line_of_each_test():
    source = [guarantees.write_page(BOOK)]
    guarantees.number_lines(SimpleNamespace(confdir=ledger.ROOT), ledger.PAGE, source)
    links = set(re.findall(r"/blob/main/(tests/\S+\.py)#L(\d+)", source[0]))
    files = {
        path: (ledger.ROOT / path).read_text(encoding="utf-8").splitlines() for path, _ in links
    }
    found = {re.match(r"\s*def (\w+)", files[path][int(line) - 1])[1] for path, line in links}
    assert found == {check.name for check in BOOK.checks}
