"""The mechanisms that the pages build by hand: how to find them, and what each of them claims.

A cell with a function that draws random numbers is tagged by what its functions are. `mechanism`:
private, and audited in test_by_hand.py against its claim. `leaky`: the page shows it to be broken.
`simulation`: what it draws makes data or shows something, and promises nothing to anybody.
"""

import ast
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

BOOK = Path(__file__).resolve().parents[1] / "book"
TAGS = {"mechanism", "leaky", "simulation"}

# What a function draws with, and the part of it that is the noise of mechanisms.
NOISE = {"laplace", "gumbel", "standard_cauchy", "standard_t", "geometric"}
DRAWS = NOISE | {
    *("normal", "standard_normal", "multivariate_normal", "gamma", "exponential", "uniform"),
    *("random", "integers", "binomial", "poisson", "rvs", "choice", "permutation", "shuffle"),
}
GENERATORS = {"rng", "seed", "random_state"}


@dataclass(frozen=True)
class Claim:
    """What a function of a page promises, and a change of its source that breaks the promise.

    The function is called with a data set, the `settings` and `rng`; a tuple is several arguments.
    `run` stands in its place where it takes other ones: it takes the page's names and returns a
    function of a data set and a generator. `first` and `second` are the neighbours that it hurts
    most. `given` are names that the function takes from cells that are not run here. `seen` is the
    part of the claim that the audit must find at least: 0 where the noise hides the worst pair from
    so few runs.
    """

    epsilon: float
    first: object
    second: object
    settings: list = field(default_factory=list)
    run: Callable | None = None
    broken: tuple[str, str] = ("", "")
    delta: float = 0.0
    exact: bool = False
    trials: int = 4_000
    seen: float = 0.25
    given: dict = field(default_factory=dict)

    def broken_by(self, old, new):
        """Return the claim with a change of the source of its function."""
        return replace(self, broken=(old, new))

    def mechanism(self, name, page):
        """Return a function of the names of a page as one of a data set and a generator."""
        if self.run:
            return self.run(page)

        def call(data, rng):
            data = data if isinstance(data, tuple) else [data]
            return page[name](*data, *self.settings, rng=rng)

        return call


def notebooks():
    # JupyterLab leaves copies in a hidden folder.
    found = BOOK.rglob("*.ipynb")
    return sorted(p for p in found if not p.relative_to(BOOK).parts[0].startswith((".", "_")))


def name_of(notebook):
    return notebook.relative_to(BOOK).with_suffix("").as_posix()


def cells(notebook):
    """Return the source, the tags and the syntax tree of every code cell but hidden tests."""
    book = json.loads(notebook.read_text(encoding="utf-8"))
    found = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in found]
    tags = [set(cell["metadata"].get("tags", [])) for cell in found]
    every = [(s, t, ast.parse(s)) for s, t in zip(sources, tags, strict=True)]
    return [cell for cell in every if "hidden-tests" not in cell[1]]


def drawing_functions(tree):
    """Return the names of the functions and classes of a cell that draw, or hand a generator on."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and any(_draws(part, DRAWS) or _takes_a_generator(part) for part in ast.walk(node))
    ]


def adds_noise(tree):
    """Say whether a cell draws the noise of a mechanism, in a function or outside."""
    return any(_draws(part, NOISE) for part in ast.walk(tree))


def _draws(part, names):
    if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
        return False
    source = ast.unparse(part.func.value)
    generator = "rng" in source or "random" in source or source.startswith("stats.")
    return part.func.attr in names and generator


def _takes_a_generator(part):
    return isinstance(part, ast.arg | ast.keyword) and part.arg in GENERATORS


def names_of(notebook, change=("", ""), given=None):
    """Return what a page imports and defines, one function changed; nothing else of it is run."""
    names = dict(given or {})
    old, new = change
    changed = 0
    for source, _, tree in cells(notebook):
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec(ast.unparse(node), names)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                code = ast.get_source_segment(source, node)
                changed += bool(old) and old in code
                exec(code.replace(old, new) if old else code, names)
    assert changed == bool(old), f"the change fits {changed} functions: {old!r}"
    return names


class Forks:
    """A generator whose every outcome is visited: coins and dice become an exact distribution.

    A uniform number is an interval, cut in two by each comparison with a probability.
    """

    def __init__(self, choices):
        self.choices, self.taken, self.chance = choices, [], 1.0

    def fork(self, chances):
        """Take the branch that the list of choices says, the first one beyond its end."""
        place = len(self.taken)
        branch = self.choices[place] if place < len(self.choices) else 0
        self.taken.append((branch, len(chances)))
        self.chance *= chances[branch]
        return branch

    def random(self, size=None):
        if size is None:
            return _Uniform(self)
        values = np.empty(size, dtype=object)
        values.flat = [_Uniform(self) for _ in range(values.size)]
        return values

    def integers(self, high, size=None):
        if size is None:
            return self.fork([1 / high] * high)
        return np.array([self.integers(high) for _ in range(size)])


class _Uniform:
    def __init__(self, forks):
        self.forks, self.low, self.high = forks, 0.0, 1.0

    def __lt__(self, p):
        share = (min(max(float(p), self.low), self.high) - self.low) / (self.high - self.low)
        if share in (0.0, 1.0):
            return share == 1.0
        below = self.forks.fork([share, 1 - share]) == 0
        self.low, self.high = (self.low, float(p)) if below else (float(p), self.high)
        return below


def exact_distribution(mechanism, data):
    """Return the probability of every output of a mechanism of coins and dice."""
    chances, choices = {}, []
    while True:
        forks = Forks(choices)
        output = repr(mechanism(data, forks))
        chances[output] = chances.get(output, 0.0) + forks.chance
        # Count on to the next branch, the last fork first.
        taken = [list(fork) for fork in forks.taken]
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            assert math.isclose(sum(chances.values()), 1)
            return chances
        choices = [branch for branch, _ in taken[:-1]] + [taken[-1][0] + 1]


def hand_out(draw):
    """Return a mechanism of what draws many independent outputs of a data set at a time."""
    waiting = {}

    def mechanism(data, rng):
        # The audit hands out a copy of the data for every run.
        key = pickle.dumps(data)
        if not waiting.get(key):
            waiting[key] = list(draw(data, rng))
        return waiting[key].pop()

    return mechanism
