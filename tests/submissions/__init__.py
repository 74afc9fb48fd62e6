"""What students hand in: right answers in several styles, and the wrong ones that they really give.

`NAME.py` is for ``book/assignments/NAME.ipynb`` and holds::

    SECRETS = ["np.exp"]  # words of the solution, which the student's version must not have
    CHANGED = {"epsilon": 0.5}  # other parameters, under which the solution is right as well
    RIGHT = {"a style": {"function": SOURCE}}  # what differs from the solution
    WRONG = {"a mistake": Wrong({"function": SOURCE}, points, task, check, words)}
"""

import ast
import importlib
import pkgutil
from typing import NamedTuple


class Wrong(NamedTuple):
    """A wrong answer: the functions that differ, and the grade that it has to get.

    `task` is the place of a task that it fails among the tasks, `check` the check that fails
    there, and `words` are some of the sentence that says why.
    """

    functions: dict
    points: float
    task: int
    check: str
    words: str


MODULES = {
    found.name: importlib.import_module(f"submissions.{found.name}")
    for found in pkgutil.iter_modules(__path__)
}
RIGHT = {name: module.RIGHT for name, module in MODULES.items()}
WRONG = {name: module.WRONG for name, module in MODULES.items()}


def replaced(source, **functions):
    """Return a script in which some functions are defined otherwise, as a wrong answer is."""
    lines = source.split("\n")
    found = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    for name in sorted(functions, key=lambda name: -found[name].lineno):
        node = found[name]
        lines[node.lineno - 1 : node.end_lineno] = functions[name].strip("\n").split("\n")
    return "\n".join(lines)
