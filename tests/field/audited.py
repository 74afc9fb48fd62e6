"""One audit of one mechanism, judged inside the environment of the package that it comes from.

A file of `packages` makes an `Audits` and adds a function for each mechanism. The function imports
the package itself, so that the list can be read where the package is not installed, and what stands
in one function is the whole program that the audit runs.
"""

import ast
import copy
import importlib.util
import inspect
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# A thousand tries at this error each are wrong altogether at most once in a thousand times.
ERROR = 1e-6
MOST_TRIES = 1000
CONFIDENCE = 1 - ERROR

HOLDS, VIOLATED, FAILED = "holds as far as seen", "violated", "could not be run"
ROUNDING = 1e-9  # of exact tables, which are made of doubles


@dataclass(frozen=True)
class Audit:
    """A mechanism, what its documentation claims, and how it is tried."""

    mechanism: str
    run: Callable  # run(data) or run(data, rng=generator)
    pair: tuple
    epsilon: float
    unit: str  # what makes two inputs neighbours, by the documentation
    quote: str  # the claim in the documentation's words
    where: str  # the place of the quotation
    delta: float = 0.0
    tried: str = ""  # the pair in words, where its repr is long
    trials: int = 20_000
    distribution: Callable | None = None  # distribution(data) -> probabilities of all outputs
    advice: str = ""  # what the documentation says to whoever relies on the claim, quoted
    cause: str = ""  # of a violation: the line of code, in a sentence
    report: str = ""  # who reported it before, as a link

    def what_runs(self):
        """Return a text that changes when something else would be run or judged."""
        known = self.run.__globals__
        used = [f for f in (self.run, self.distribution) if f]
        used += [known.get(name) for f in used for name in inspect.unwrap(f).__code__.co_names]
        sources = [_source(f) for f in map(inspect.unwrap, used) if inspect.isfunction(f)]
        return repr([*sources, self.pair, self.epsilon, self.delta, self.trials])

    def texts(self):
        """Return what a page shows of the audit, whatever comes out."""
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "quote": self.quote,
            "where": self.where,
            "tried": self.tried or f"{self.pair[0]!r} and {self.pair[1]!r}",
            "advice": self.advice,
            "cause": self.cause,
            "report": self.report,
        }


def _source(function):
    """Return what a function does, without its comments and without what decorates it."""
    [tree] = ast.parse(inspect.getsource(function)).body
    tree.decorator_list = []
    return ast.unparse(tree)


class Audits(dict):
    """The audits of one package, by a name that no two share."""

    def __init__(self, package: str, noise="", noise_report="", **common):
        super().__init__()
        self.package, self.common = package, common
        self.noise = noise  # of continuous mechanisms: how its source draws it
        self.noise_report = noise_report  # who wrote of its last bits, as a link

    def add(self, mechanism, **parts):
        """Return a decorator: the function that it is given is what the audit runs."""

        def added(run):
            if run.__name__ in self:
                raise ValueError(f"two audits of {self.package} are called {run.__name__}")
            self[run.__name__] = Audit(mechanism, run, **(self.common | parts))
            return run

        return added


def load(path):
    """Return the audits of a file; its folder is not searched for the package of the same name."""
    spec = importlib.util.spec_from_file_location(f"audits_of_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.audits


def judge(audit, seed):
    """Run one audit once, or read its distribution, and return what was found."""
    import numpy as np

    from dpnotes.audit import epsilon_lower_bound, exact_delta, exact_epsilon

    if audit.distribution is not None:
        rows = np.array([audit.distribution(data) for data in audit.pair], dtype=float)
        if audit.delta:
            return {"exact_delta": exact_delta(rows, audit.epsilon)}
        return {"exact": exact_epsilon(rows)}
    _warm_up(audit)
    # Who draws from a global generator is started anew; who asks the system is not repeated.
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    numbers = {"trials": audit.trials, "confidence": CONFIDENCE, "delta": audit.delta}
    return {"bound": epsilon_lower_bound(audit.run, *audit.pair, **numbers, rng=seed)}


def _warm_up(audit):
    """Run once on each input, and let an error be seen that comes on both."""
    import numpy as np

    options = (
        {"rng": np.random.default_rng()} if "rng" in inspect.signature(audit.run).parameters else {}
    )
    for data in audit.pair:
        try:
            audit.run(copy.deepcopy(data), **options)
        except Exception as error:
            trouble = error
        else:
            return
    raise trouble


def exceeds(audit, found):
    """Whether what was found refutes the claim."""
    if "exact_delta" in found:
        return found["exact_delta"] > audit.delta * (1 + ROUNDING)
    return found.get("exact", found.get("bound")) > audit.epsilon * (1 + ROUNDING)


def main(path, name, seed, out):
    """Judge one audit and write what was found to a file."""
    found = judge(load(path)[name], int(seed))
    Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    sys.modules["audited"] = sys.modules[__name__]  # for the file of the package
    main(*sys.argv[1:])
