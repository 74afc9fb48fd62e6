"""The ledger: what the book states and the package promises, each with the tests that check it.

A statement is a labelled definition, theorem, lemma, proposition or corollary of a page. A promise
is a public name of ``dpnotes`` that makes something private or says what privacy costs: it takes
``rng`` or ``random_state``, returns a `PrivacyCost` or a `SecretCost`, or ends as in `ENDINGS`.
A test says what it checks, and how:

    @pytest.mark.claim("rr-privacy", "randomized_response.privatize", kind="enumeration")

Pages, modules and tests are read and none of them is run. ``guarantees`` writes what is found as a
page of the book; tests/test_ledger.py holds the book to the rules at the end of this file.
"""

import ast
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

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
LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.M)

# How a test checks; what each word promises is said on the page.
EXACT, ENUMERATION = "all cases in exact numbers", "enumeration"
QUADRATURE, CASES = "quadrature with a bound", "chosen cases"
AUDIT, SIMULATION = "audit", "simulation with its error"
CITED = "cited"
KINDS = {
    EXACT: "every case of a small domain, in whole numbers or fractions: nothing is rounded",
    ENUMERATION: "every output, coin or mechanism of a small domain, in floating-point numbers "
    "that agree to within rounding",
    QUADRATURE: "an integral, or the largest value on a line, by numbers, within a tolerance that "
    "the test states",
    CASES: "cases that were chosen or drawn, each compared with the formula, with a slower way or "
    "with another program",
    AUDIT: "many runs on two neighbours, and a lower bound on epsilon at a stated confidence: it "
    "can find a fault, and cannot show that there is none",
    SIMULATION: "many draws, compared to within the spread that chance allows",
    CITED: "the proof is not in the book but in the paper that is named",
}
NOT_DRAWN, DRAWN = {EXACT, ENUMERATION, QUADRATURE}, {AUDIT, SIMULATION}

# Statements whose proof is not in the book, with the paper that has it.
ON_PAPER = {"pt-gnmax": "[Papernot et al. 2018](https://arxiv.org/abs/1802.08908)"}
# What takes a generator and promises no privacy, and why.
NO_PROMISE = {
    "label_privacy.minimum_epsilon": "asks how many labels survive",
    "training.patch_features": "describes images for a learner",
}

# Marks under which a test may be left out; such a test checks nothing.
LEFT_OUT = {"skip", "skipif", "xfail", "gpu", "browser", "site", "full"}
SEEDS = {"rng", "random_state", "seed"}
DRAWS = {"default_rng", "RandomState", "Generator", "rvs", "urandom", "token_bytes", "manual_seed"}
COSTS = {"PrivacyCost", "SecretCost"}
# How the names end of what says what privacy costs, and of what it needs.
ENDINGS = re.compile(r"(?:^|_)(?:sensitivity|epsilon|delta|rdp|scale|noise_for|for_cost)$")


@dataclass(frozen=True)
class Statement:
    """A statement of a page: what a link to it needs."""

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
        return f"{self.page}#{self.label}"


@dataclass(frozen=True)
class Promise:
    """A public name that makes something private or says what privacy costs."""

    label: str
    kind: str = "promise"

    @property
    def chapter(self):
        """The module."""
        return self.label.partition(".")[0]

    @property
    def title(self):
        """The name as it is called."""
        return f"`{self.label.partition('.')[2]}`"

    @property
    def address(self):
        """The place on the page of the module."""
        return f"api/{self.chapter}.md#dpnotes.{self.label}"


@dataclass
class Check:
    """A test that claims to check something: which, how, and what it reaches."""

    path: str
    name: str
    line: int
    labels: tuple
    kind: str | None
    marks: set = field(default_factory=set)
    draws: str = ""
    words: set = field(default_factory=set)

    @property
    def title(self):
        """The name of the test as a sentence."""
        words = self.name.removeprefix("test_").replace("_", " ")
        return words[0].upper() + words[1:]


@dataclass
class Ledger:
    """All that is stated and promised, and all that checks it."""

    statements: list
    promises: list
    names: set
    checks: list
    unlabelled: list = field(default_factory=list)
    prose: dict = field(default_factory=dict)
    on_paper: dict = field(default_factory=lambda: ON_PAPER)
    no_promise: dict = field(default_factory=lambda: NO_PROMISE)

    @classmethod
    def read(cls, root=ROOT, **exceptions):
        """Read pages, modules and tests of a repository; run nothing."""
        names, promising = _public(root)
        prose = _prose(root)
        found = [each for page, text in prose.items() for each in _statements(page, text)]
        labelled = [each for each in found if each.label]
        unlabelled = [each for each in found if not each.label]
        left_out = exceptions.get("no_promise", NO_PROMISE)
        promises = [Promise(name) for name in sorted(promising) if name not in left_out]
        checks = _checks(root)
        return cls(labelled, promises, names, checks, unlabelled, prose, **exceptions)

    def shown(self):
        """Return the promises, and every other public name that has a check."""
        claimed = {label for check in self.checks for label in check.labels} & self.names
        others = claimed - {promise.label for promise in self.promises}
        return sorted([*self.promises, *map(Promise, others)], key=lambda promise: promise.label)

    def of(self, label):
        """Return the checks of a label, in the order of their strength, and of their names."""
        order = {kind: place for place, kind in enumerate(KINDS)}
        found = [check for check in self.checks if label in check.labels]
        return sorted(found, key=lambda c: (order.get(c.kind, len(order)), c.path, c.line))


# Reading.


def _prose(root):
    """Return the prose of each page by its way from the book's folder, in the order of the book."""
    found = {}
    for name in contents(root):
        for path in (root / f"{name}.ipynb", root / f"{name}.md"):
            if path.exists() and name != PAGE:
                found[path.relative_to(root / "book").as_posix()] = prose_of(path)
    return found


def prose_of(path):
    """Return the prose of a page in one piece."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = refresh.read(path)["cells"]
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")


def _statements(page, text):
    for match in STATEMENT.finditer(text):
        label = LABEL.search(match["options"])
        title = match["title"].strip() or match["kind"].capitalize()
        end = text.find(f"\n{match['marks']}\n", match.end())
        proved = match["kind"] == "definition" or bool(PROOF.match(text[end:].lstrip("\n:`")))
        yield Statement(label and label[1], match["kind"], title, page, proved)


def contents(root):
    """Return the pages of the table of contents in order, such as ``book/index``."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *_files(toc)]


def _files(entry):
    for child in [*entry.get("parts", []), *entry.get("chapters", []), *entry.get("sections", [])]:
        if "file" in child:
            yield child["file"]
        yield from _files(child)


def _public(root):
    """Return all public names of the package, and those that promise something."""
    names, promising = set(), set()
    for path in sorted((root / "dpnotes").glob("[!_]*")):
        module = path.stem
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        defined = {node.name: node for file in files for node in _defined(file)}
        shown = _shown(path / "__init__.py") if path.is_dir() else set(defined)
        nodes = {name: node for name, node in defined.items() if name in shown}
        for name, node in _callables(nodes, defined):
            names.add(f"{module}.{name}")
            if _promises(node):
                promising.add(f"{module}.{name}")
    return names, promising


def _defined(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def _shown(path):
    """Return what a package shows of its files: what it imports, and what it defines itself."""
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    return names | {node.name for node in _defined(path)}


def _callables(nodes, defined):
    """Yield functions, methods and classes by name; a class has the methods of its bases, too."""
    for name, node in sorted(nodes.items()):
        if name.startswith("_"):
            continue
        yield name, node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{name}.{m}", part) for m, part in _methods(node, defined).items())


def _methods(node, defined):
    found = {}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in defined:
            found |= _methods(defined[base.id], defined)
    parts = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    return found | {part.name: part for part in parts if not part.name.startswith("_")}


def _promises(node):
    if isinstance(node, ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        return any(_generators(part) for part in made)
    returned = ast.unparse(node.returns) if node.returns else ""
    costs = COSTS & set(re.findall(r"\w+", returned))
    return bool(_generators(node) or costs or ENDINGS.search(node.name))


def _generators(function):
    named = [*function.args.args, *function.args.kwonlyargs]
    return {argument.arg for argument in named} & {"rng", "random_state"}


def _checks(root):
    found = []
    for path in sorted((root / "tests").glob("test_*.py")):
        file = FileOfTests.read(path)
        for node in file.tests():
            marks = {_mark(decorator) for decorator in node.decorator_list}
            where = path.relative_to(root).as_posix()
            for decorator in node.decorator_list:
                if _mark(decorator) == "claim":
                    labels, kind = _claimed(decorator)
                    place = where, node.name, node.lineno
                    reached = file.draws(node), file.words(node)
                    found.append(Check(*place, labels, kind, marks, *reached))
    return found


def _mark(decorator):
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(call)
    return name.removeprefix("pytest.mark.") if name.startswith("pytest.mark.") else name


def _claimed(call):
    """Return the labels and the kind that a mark gives, as far as they are written out."""
    call = call if isinstance(call, ast.Call) else ast.Call(call, [], [])
    labels = tuple(ast.literal_eval(argument) for argument in call.args)
    kinds = [ast.literal_eval(k.value) for k in call.keywords if k.arg == "kind"]
    return labels, kinds[0] if len(kinds) == len(call.keywords) == 1 else None


class FileOfTests:
    """A file of tests, and what its functions reach in it and in the helpers beside it."""

    def __init__(self, path):
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        aliases = [alias for node in imports for alias in node.names]
        self.called = {alias.asname: alias.name for alias in aliases if alias.asname}
        self.named = {}
        for node in self.tree.body:
            for name in _bound(node):
                self.named[name] = (self, node)

    @classmethod
    @functools.cache
    def read(cls, path):
        """Read a file once, and the helpers that it imports from its folder."""
        file = cls(path)
        for node in file.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                helper = path.parent / f"{node.module.replace('.', '/')}.py"
                if helper.exists():
                    known = cls.read(helper).named
                    for alias in node.names:
                        if alias.name in known:
                            file.named[alias.asname or alias.name] = known[alias.name]
            for alias in node.names if isinstance(node, ast.Import) else ():
                helper = path.parent / f"{alias.name}.py"
                if helper.exists():
                    name = alias.asname or alias.name
                    known = cls.read(helper).named
                    file.named |= {f"{name}.{part}": found for part, found in known.items()}
        return file

    def tests(self):
        """Return the test functions, those of classes too."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]

    def draws(self, node, seen=None):
        """Name what in a test, or in what it uses, draws random numbers; or nothing."""
        seen = set() if seen is None else seen
        if id(node) in seen:
            return ""
        seen.add(id(node))
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and _draws_itself(part.func):
                return ast.unparse(part.func)
            seeded = isinstance(part, ast.keyword) and part.arg in SEEDS
            if seeded and not self._stands_in(part.value, node):
                return f"{part.arg}={ast.unparse(part.value)}"
        for name in sorted(_used(node)):
            if name in self.named:
                file, definition = self.named[name]
                found = file.draws(definition, seen)
                if found:
                    return f"{found} in {name}" if " in " not in found else found
        return ""

    def words(self, node, seen=None):
        """Return every name in a test and in what it uses of the tests; words in quotes are none.

        What is imported under another name counts under both.
        """
        seen = set() if seen is None else seen
        if id(node) in seen:
            return set()
        seen.add(id(node))
        parts = list(ast.walk(node))
        found = {part.attr for part in parts if isinstance(part, ast.Attribute)}
        used = set(_used(node))
        found |= used | {self.called.get(name, name) for name in used}
        used |= {ast.unparse(part) for part in parts if isinstance(part, ast.Attribute)}
        for name in used & self.named.keys():
            file, definition = self.named[name]
            found |= file.words(definition, seen)
        return found

    def _stands_in(self, value, node):
        """Say whether a generator is none: made by the tests, or handed on and met elsewhere."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return value.func.id in self.named
        made = [part for part in ast.walk(node) if isinstance(part, ast.Assign)]
        calls = {name for part in made if isinstance(part.value, ast.Call) for name in _bound(part)}
        return isinstance(value, ast.Name) and value.id in {"rng", "generator"} | calls


def _draws_itself(function):
    written = ast.unparse(function)
    name = written.rpartition(".")[2]
    return name in DRAWS or bool(re.fullmatch(r"(?:(?:np|numpy)\.)?random\.[a-z_]+", written))


def _bound(node):
    """Return the names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    parts = [part for target in targets if target for part in ast.walk(target)]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _used(node):
    """Return the names that a node uses, and those of the fixtures that a function takes."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}


# The rules.


def unlabelled(ledger):
    """Every statement has a label, or no check could name it."""
    for statement in ledger.unlabelled:
        yield f"{statement.page}: {statement.title} has no label"


def unproved(ledger):
    """Every statement is followed by a proof or by a link to one, or its page cites the paper."""
    for statement in ledger.statements:
        if not statement.proved and statement.label not in ledger.on_paper:
            yield f"{statement.label}: no proof follows, and no paper is named in ON_PAPER"


def unchecked(ledger):
    """Every statement and every promise has a check, save those that rest on a paper."""
    for thing in [*ledger.statements, *ledger.promises]:
        if not ledger.of(thing.label) and thing.label not in ledger.on_paper:
            yield f"{thing.label}: no test has the mark pytest.mark.claim({thing.label!r}, ...)"


def unknown(ledger):
    """Every mark names a statement or a public name, and one of the kinds of check."""
    known = {statement.label for statement in ledger.statements} | ledger.names
    for check in ledger.checks:
        for label in check.labels:
            if label not in known:
                yield f"{_at(check)}: {label} is no statement of the book and no public name"
        if not check.labels or check.kind not in KINDS or check.kind == CITED:
            yield f'{_at(check)}: needs labels and a kind, claim("label", kind="enumeration")'


def unused(ledger):
    """Of the checks of a public name, one uses it: itself, or by a helper of the tests."""
    for thing in ledger.shown():
        name, checks = set(thing.label.split(".")[1:]), ledger.of(thing.label)
        if checks and not any(name <= check.words for check in checks):
            told = ", ".join(_at(check) for check in checks)
            yield f"{thing.label}: no test that claims to check it uses it: {told}"


def misnamed(ledger):
    """What is called exact or enumerated draws nothing, and what is called a simulation draws."""
    for check in ledger.checks:
        if check.kind in NOT_DRAWN and check.draws:
            yield f"{_at(check)}: says {check.kind!r}, and draws random numbers: {check.draws}"
        if check.kind in DRAWN and not check.draws:
            yield f"{_at(check)}: says {check.kind!r}, and draws no random numbers"


def left_out(ledger):
    """Every check is run by CI, wherever it runs."""
    for check in ledger.checks:
        for mark in sorted(check.marks & LEFT_OUT):
            yield f"{_at(check)}: is marked {mark}, so it may be left out, and no claim rests on it"


def stale_exceptions(ledger):
    """No exception is listed that is none."""
    stated = {statement.label: statement for statement in ledger.statements}
    for label, paper in ledger.on_paper.items():
        if label not in stated or stated[label].proved:
            yield f"ON_PAPER: {label} is no statement, or is proved in the book: take it out"
        elif paper not in ledger.prose[stated[label].page]:
            yield f"ON_PAPER: the page of {label} does not link to {paper}"
    for name in ledger.no_promise:
        if name not in ledger.names or ledger.of(name):
            yield f"NO_PROMISE: {name} is no public name, or has a check: take it out"


def _at(check):
    return f"{check.path}::{check.name}"


RULES = [unlabelled, unproved, unchecked, unused, unknown, misnamed, left_out, stale_exceptions]


def problems(ledger):
    """Return every broken rule."""
    return [problem for rule in RULES for problem in rule(ledger)]
