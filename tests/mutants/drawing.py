"""Changes of the code at places drawn by lot, each one that an operator of cosmic-ray makes there.

The operators put another operator, another number, a loop that never runs, and so on. Types in
signatures are left alone, since nothing runs by them. cosmic-ray is installed in
`_build/mutations/tool`, so the first start needs the network.
"""

import ast
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

import bench

WORK = Path(os.environ.get("DPNOTES_MUTATIONS", bench.ROOT / "_build" / "mutations"))
TOOL = "cosmic-ray==8.7.0"
# These operators want to be told names of variables.
LEFT_OUT = {"VariableReplacer", "VariableInserter"}


def keep(path, work):
    """Return what some work returns, from a file where it was done before."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(work(), indent=1), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def install():
    """Let cosmic-ray be imported, and install it before the first time."""
    tool = WORK / "tool"
    if not (tool / "cosmic_ray").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tool), TOOL]
        subprocess.run(command, check=True)
    sys.path.append(str(tool))


def place_of(module):
    """Return the file of a module, or the folder of its files."""
    places = (f"dpnotes/{module}", f"dpnotes/{module}.py")
    return next(place for place in places if (bench.ROOT / place).exists())


def draw(module, count, chance):
    """Return changes of a module at places that a generator draws."""
    install()
    target = bench.ROOT / place_of(module)
    found = {}
    for path in sorted(target.glob("*.py")) if target.is_dir() else [target]:
        for position, name, number in _places(path):
            found.setdefault((path, tuple(position)), []).append((name, number))
    order, drawn = sorted(found), []
    chance.shuffle(order)
    for path, position in order:
        if len(drawn) == count:
            break
        name, number = chance.choice(found[path, position])
        if change := _changed(path, name, number):
            file = str(path.relative_to(bench.ROOT))
            drawn.append({"module": module, "file": file, "operator": name, **change})
    return drawn


def _places(path):
    """Yield (position, operator, which of its changes) for a file, types left out."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.operators.provider import OperatorProvider

    tree, operators = get_ast(path.read_text(encoding="utf-8")), OperatorProvider()
    for name in sorted({*operators} - LEFT_OUT):
        number = 0
        for node in ast_nodes(tree):
            for position in operators[name]().mutation_positions(node):
                if not _is_type(node):
                    yield position, name, number
                number += 1


def _is_type(node):
    """Say whether a node stands behind the colon or the arrow of a type."""
    while node.parent is not None:
        before = node.get_previous_sibling()
        if (node.parent.type, before) in [("annassign", ":"), ("tfpdef", ":"), ("funcdef", "->")]:
            return True
        node = node.parent
    return False


def _changed(path, name, number):
    """Return the lines that a change replaces, or None where it changes nothing that runs."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.operators.provider import OperatorProvider

    old = path.read_text(encoding="utf-8")
    try:
        new = mutate_code(old, OperatorProvider()[name](), number)
        if ast.dump(ast.parse(new)) == ast.dump(ast.parse(old)):
            return None
        compile(new, path, "exec")
    except (AttributeError, SyntaxError):  # it cannot replace `module.Error` behind an except
        return None
    old, new = old.splitlines(), new.splitlines()
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    steps = [step for step in steps if step[0] != "equal"]
    first, last = steps[0][1], steps[-1][2]
    return {"line": first + 1, "old": old[first:last], "new": new[steps[0][3] : steps[-1][4]]}
