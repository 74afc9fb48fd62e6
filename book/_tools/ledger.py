"""The ledger: what the book states and the package promises, each with the tests that check it.

A statement is a labelled definition, theorem, lemma, proposition or corollary of a page. A promise
is a public name of ``dpnotes`` that makes something private or says what privacy costs: it takes
``rng`` or ``random_state``, a ``confidence`` that something holds the truth, returns a
`PrivacyCost` or a `SecretCost`, or ends as in `ENDINGS`.
A test says what it checks, and how:

    @pytest.mark.claim("rr-privacy", "randomized_response.privatize", kind="enumeration")

pytest collects the tests and runs none. ``guarantees`` writes what is found as a page of the book;
tests/book/test_ledger.py holds the book to the rules at the end of this file.
"""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import refresh

ROOT = refresh.ROOT
PAGE = "book/guarantees"
STATED = ("definition", "theorem", "lemma", "proposition", "corollary")
STATEMENT = re.compile(
    rf"^(?P<marks>:{{3,}}|`{{3,}})\{{prf:(?P<kind>{'|'.join(STATED)})\}}[ \t]*(?P<title>.*)\n"
    r"(?P<options>(?::[\w-]+:.*\n)*)",
    re.M,
)
PROOF = re.compile(r"\{prf:proof\}|\(\[Proof\]\(")
FILES = re.compile(r"^[ -]*(?:root|file): *(\S+)$", re.M)
LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.M)

# How a test checks, the strongest way first; what each promises is said on the page.
CITED = "cited"
KINDS = [
    *("all cases in exact numbers", "enumeration", "quadrature with a bound", "chosen cases"),
    *("audit", "simulation with its error", CITED),
]

# Statements whose proof is not in the book, with the paper that has it.
ON_PAPER = {"pt-gnmax": "[Papernot et al. 2018](https://arxiv.org/abs/1802.08908)"}
# What takes a generator and promises no privacy, and why.
NO_PROMISE = {
    "label_privacy.minimum_epsilon": "asks how many labels survive",
    "training.patch_features": "describes images for a learner",
}

# Marks under which a test may be left out; such a test checks nothing.
LEFT_OUT = {"skip", "skipif", "xfail", "gpu", "browser", "site", "full"}
COSTS = re.compile(r"->.*\b(?:PrivacyCost|SecretCost)\b")
# How the names end of what says what privacy costs, and of what it needs.
ENDINGS = re.compile(r"(?:^|_)(?:sensitivity|epsilon|delta|rdp|scale|noise_for|for_cost|at_least)$")


@dataclass(frozen=True)
class Statement:
    """A statement of a page, or a promise of a module: what a link to it needs."""

    label: str
    kind: str
    title: str
    page: str
    proved: bool = True

    @property
    def chapter(self):
        """The name that a core page shares with its deeper page and its module."""
        return Path(self.page).stem

    @property
    def address(self):
        """The place on its page, seen from the folder of the book."""
        place = f"dpnotes.{self.label}" if self.kind == "promise" else self.label
        return f"{self.page}#{place}"


@dataclass(frozen=True)
class Check:
    """A test that claims to check something: which, and how."""

    path: str
    name: str
    line: int
    labels: tuple
    kind: str | None
    marks: frozenset = frozenset()
    by_hypothesis: bool = False

    def __str__(self):
        return f"{self.path}::{self.name}"

    @property
    def title(self):
        """The name of the test as a sentence."""
        words = self.name.removeprefix("test_").replace("_", " ")
        return words[0].upper() + words[1:]


@dataclass
class Ledger:
    """All that is stated and promised, and all that checks it."""

    prose: dict
    names: set
    promising: set
    checks: list
    on_paper: dict
    no_promise: dict

    @property
    def statements(self):
        """What the pages state, in the order of the book; a label may be missing."""
        return [each for page, text in self.prose.items() for each in find_statements(page, text)]

    @property
    def promises(self):
        """The promising names, and every other public name that has a check."""
        claimed = {label for check in self.checks for label in check.labels} & self.names
        names = [
            name.partition(".") for name in sorted(claimed | self.promising - {*self.no_promise})
        ]
        return [
            Statement(f"{module}.{name}", "promise", f"`{name}`", f"api/{module}.md")
            for module, _, name in names
        ]

    def of(self, label):
        """Return the checks of a label, in the order of their strength, and of their names."""
        found = [check for check in self.checks if label in check.labels]
        places = {kind: place for place, kind in enumerate(KINDS)}
        return sorted(found, key=lambda c: (places.get(c.kind, len(KINDS)), c.path, c.line))


# Reading.


def read(root=ROOT):
    """Read the pages and the package, and let pytest collect the tests and run none."""
    import pytest

    class Collector:
        def pytest_collection_finish(self, session):
            self.items = session.items

    files = [
        str(path)
        for path in sorted((root / "tests").rglob("test_*.py"))
        if "@pytest.mark.claim(" in path.read_text(encoding="utf-8")
    ]
    collector = Collector()
    options = ["--collect-only", "-qqq", "--full", "--no-header", f"--rootdir={root}"]
    if pytest.main([*options, *files], plugins=[collector]) != 0:
        raise SystemExit("pytest could not collect the tests.")
    # The tests' own walk over the package; pytest has put their folder on the path.
    import public

    known = {
        f"{public.short_name(module)}.{name}": thing
        for module in public.MODULES
        for name, thing in public.callables(module).items()
    }
    promising = {name for name, thing in known.items() if promises(thing)}
    checks = find_checks(collector.items)
    return Ledger(read_prose(root), set(known), promising, checks, ON_PAPER, NO_PROMISE)


def find_checks(items):
    """Return the claims of tests, each once however many parameters a test has.

    A mark on some of its parameters leaves the others in.
    """
    found = {}
    for item in items:
        for mark in item.iter_markers("claim"):
            path, line, _ = item.location
            kind = mark.kwargs.get("kind") if set(mark.kwargs) == {"kind"} else None
            by_hypothesis = hasattr(item.function, "hypothesis")
            key = path, item.originalname, line, mark.args, kind
            marks = frozenset(each.name for each in item.iter_markers())
            marks &= found[key].marks if key in found else marks
            found[key] = Check(*key, marks, by_hypothesis)
    return list(found.values())


def promises(thing):
    """Say whether a function or a class makes something private or says what privacy costs."""
    signature = inspect.signature(thing)
    draws = signature.parameters.keys() & {"rng", "random_state"}
    if inspect.isclass(thing):
        return bool(draws) and "__init__" in vars(thing)
    confidence = "confidence" in signature.parameters
    costs = COSTS.search(str(signature)) or ENDINGS.search(thing.__name__)
    return bool(draws or confidence or costs)


def read_prose(root=ROOT):
    """Return the prose of each page by its way from the book's folder, in the order of the book."""
    ways = [root / f"{name}{end}" for name in contents(root) for end in (".ipynb", ".md")]
    paths = [path for path in ways if path.exists() and path != root / f"{PAGE}.md"]
    return {path.relative_to(root / "book").as_posix(): refresh.prose_in(path) for path in paths}


def find_statements(page, text):
    """Yield the statements of a page."""
    for match in STATEMENT.finditer(text):
        label = LABEL.search(match["options"])
        title = match["title"].strip() or match["kind"].capitalize()
        end = text.find(f"\n{match['marks']}\n", match.end())
        proved = match["kind"] == "definition" or bool(PROOF.match(text[end:].lstrip("\n:`")))
        yield Statement(label and label[1], match["kind"], title, page, proved)


def contents(root):
    """Return the pages of the table of contents in order, such as ``book/index``."""
    return FILES.findall((root / "_toc.yml").read_text(encoding="utf-8"))


# The rules.


def unproved(ledger):
    """Every statement has a label, and a proof or a link to one, or its page cites the paper."""
    for statement in ledger.statements:
        if not statement.label:
            yield f"{statement.page}: {statement.title} has no label"
        elif statement.proved == (statement.label in ledger.on_paper):
            yield f"{statement.label}: is to have either a proof or a paper in ON_PAPER"
        elif not statement.proved:
            paper = ledger.on_paper[statement.label]
            if paper not in ledger.prose[statement.page]:
                yield f"{statement.page} does not link to {paper}"


def unchecked(ledger):
    """Every statement and every promise has a check, save those that rest on a paper."""
    for thing in [*ledger.statements, *ledger.promises]:
        if not ledger.of(thing.label) and thing.label not in ledger.on_paper:
            yield f"{thing.label}: no test has the mark pytest.mark.claim({thing.label!r}, ...)"


def unknown(ledger):
    """Every mark names a statement or a public name and a kind of check, and is run by CI."""
    known = {statement.label for statement in ledger.statements} | ledger.names
    for check in ledger.checks:
        for label in set(check.labels) - known:
            yield f"{check}: {label} is no statement of the book and no public name"
        if not check.labels or check.kind not in KINDS or check.kind == CITED:
            yield f'{check}: needs labels and a kind, claim("label", kind="enumeration")'
        for mark in sorted(check.marks & LEFT_OUT):
            yield f"{check}: is marked {mark}, so it may be left out, and no claim rests on it"
    for name in ledger.no_promise:
        if name not in ledger.names or ledger.of(name):
            yield f"NO_PROMISE: {name} is no public name, or has a check: take it out"


RULES = [unproved, unchecked, unknown]
