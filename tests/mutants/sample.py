"""Change the code at places drawn by lot, and list the changes that no test notices.

    python tests/mutants/sample.py          go on from where it stopped, and write what was found
    python tests/mutants/sample.py --again  try the survivors again, with every test of their module

The bugs of `run.py` were thought out by somebody who knows the code. These were not: a seed draws
60 places of each of five modules, and at each place one of the changes that the operators of
cosmic-ray make there (another operator, another number, a loop that never runs, ...). Types in
signatures are left alone, since nothing runs by them. The tests of a change are those in the files
of its module, what `test_refusals.py` asks of the module, and its doctests. Those that run the
changed statement are asked, the quickest first; with --again, all of them.

What is tried is kept in `_build/mutations`, and cosmic-ray is installed there, so the first start
needs the network. Everything happens in a copy of the checkout. To draw anew, remove that folder.
What was found goes to `data/results/mutations.json`: counts, and each survivor with ``because``,
which says why no test has to notice it. Somebody writes that by hand; it stays when the file is
written again, and the exit status is 1 where it is missing.
"""

import argparse
import ast
import difflib
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import run as planted

ROOT = planted.ROOT
RESULT = ROOT / "data" / "results" / "mutations.json"
WORK = Path(os.environ.get("DPNOTES_MUTATIONS", ROOT / "_build" / "mutations"))
TOOL = "cosmic-ray==8.7.0"
SEED, EACH = 13, 60
# Where a module is, and which files of tests are its own.
MODULES = {
    "_coins": ("dpnotes/_coins.py", ["tests/test_coins.py"]),
    "accounting": ("dpnotes/accounting", ["tests/test_accounting.py"]),
    "audit": (
        "dpnotes/audit",
        [
            "tests/test_audit.py",
            "tests/test_audit_exact.py",
            "tests/test_audit_density.py",
            "tests/test_audit_report.py",
            "tests/test_audit_confidence.py",
            "tests/test_audit_power.py",
        ],
    ),
    "pate": ("dpnotes/pate", ["tests/test_pate.py"]),
    "private_auc": ("dpnotes/private_auc", ["tests/test_private_auc.py"]),
}
CHECKS = "tests/test_refusals.py"
# These operators want to be told names of variables.
LEFT_OUT = {"VariableReplacer", "VariableInserter"}
# What takes long to import, and is the same whatever is changed.
SHARED = ("hypothesis.strategies", "joblib", "pandas", "scipy.stats", "sklearn.linear_model")
# A test that takes longer with a change does not end.
LIMIT = 120


def draw():
    """Write the changes: places first, then one change of each. It imports cosmic-ray."""
    chance, drawn = random.Random(SEED), []
    for module, (place, _) in MODULES.items():
        drawn += draw_changes(module, place, EACH, chance)
    (WORK / "drawn.json").write_text(json.dumps(drawn, indent=1), encoding="utf-8")


def draw_changes(module, place, count, chance):
    """Return changes of a file, or of a folder of files, at places that a generator draws."""
    found = {}
    for path in _files(place):
        for position, name, number in _places(path):
            found.setdefault((path, tuple(position)), []).append((name, number))
    order, kept = sorted(found), []
    chance.shuffle(order)
    for path, position in order:
        if len(kept) == count:
            break
        name, number = chance.choice(found[path, position])
        if change := _changed(path, name, number):
            file = str(path.relative_to(ROOT))
            kept.append({"module": module, "file": file, "operator": name, **change})
    return kept


def _files(place):
    target = ROOT / place
    return sorted(target.glob("*.py")) if target.is_dir() else [target]


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


def install():
    """Install cosmic-ray beside the results, unless it is there, and return where."""
    tool = WORK / "tool"
    if not (tool / "cosmic_ray").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tool), TOOL]
        subprocess.run(command, check=True)
    return tool


def prepare():
    """Let cosmic-ray draw, unless that was done."""
    if (WORK / "drawn.json").exists():
        return
    tool = install()
    environment = os.environ | {"PYTHONPATH": str(tool)}
    subprocess.run([sys.executable, __file__, "--draw"], check=True, env=environment)


def forked(work, limit):
    """Do work in a fork of this process, which has imported what is large; return its status.

    Past the limit, in seconds, it is ended with all that it started, and the status is None.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        status = 70
        try:
            status = int(work())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class Chosen:
    """A plugin of pytest: it runs the chosen tests in their order, and keeps what came out."""

    def __init__(self, module, chosen=None):
        self.module, self.chosen, self.seconds, self.failed = module, chosen, {}, []

    def pytest_collection_modifyitems(self, items):
        import pytest

        if self.chosen is None:
            others = f"{CHECKS}::", f"[{self.module}."
            items[:] = [
                item
                for item in items
                if not item.nodeid.startswith(others[0]) or others[1] in item.nodeid
            ]
        else:
            known = {item.nodeid: item for item in items}
            items[:] = [known[name] for name in self.chosen if name in known]
        for item in items:
            item.add_marker(pytest.mark.timeout(LIMIT), append=False)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(f"{report.nodeid}, while it was read")


def ask(folder, module, chosen=None, options=()):
    """Run tests of a module in a copy; what came out is written to told.json."""
    import pytest

    os.chdir(folder)
    os.environ.update(PYTHONPATH=str(folder), CI="true", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    sys.path.insert(0, str(folder))
    told = os.open(WORK / "told.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(told, 1)
    os.dup2(told, 2)
    place, own = MODULES[module]
    # What is imported already can neither be rewritten nor warn again, and that is no failure.
    usual = ["-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    usual += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    usual += ["-W", "ignore:the matrix subclass:PendingDeprecationWarning"]
    checks = [] if module.startswith("_") else [CHECKS]
    plugin = Chosen(module, chosen)
    status = pytest.main([*usual, *options, *own, *checks, place], plugins=[plugin])
    found = {"seconds": plugin.seconds, "failed": plugin.failed}
    (WORK / "told.json").write_text(json.dumps(found), encoding="utf-8")
    return status


def known_of(module, folder):
    """Return the seconds of each test as it is, and which tests run each line; kept in a file."""
    path = WORK / f"base-{module}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    name = MODULES[module][0].removesuffix(".py").replace("/", ".")
    options = ["-p", "pytest_cov", f"--cov={name}", "--cov-context=test", "--cov-report="]
    data = WORK / f"coverage-{module}"
    os.environ["COVERAGE_FILE"] = str(data)
    if forked(lambda: ask(folder, module, options=[*options, "--cov-config=/dev/null"]), 3600) != 0:
        raise RuntimeError(f"the tests of {module} must pass as they are: see {WORK}/told.txt")
    from coverage import CoverageData

    covered, lines = CoverageData(str(data)), {}
    covered.read()
    for file in covered.measured_files():
        lines[str(Path(file).relative_to(folder))] = {
            line: sorted({context.partition("|")[0] for context in contexts} - {""})
            for line, contexts in covered.contexts_by_lineno(file).items()
        }
    seconds = json.loads((WORK / "told.json").read_text(encoding="utf-8"))["seconds"]
    path.write_text(json.dumps({"seconds": seconds, "lines": lines}), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def statement(source, first, last):
    """Return the first and last line of the smallest statement around lines, its body left out."""
    around = [(first, last)]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            if node.lineno <= first and last <= end:
                around.append((node.lineno, end))
    return min(around[1:] or around, key=lambda lines: lines[1] - lines[0])


def order_of(change, known, source):
    """Return the tests that run a changed statement, quickest first; of none, all."""
    first, last = statement(source, change["line"], change["line"] + len(change["old"]) - 1)
    lines, seconds = known["lines"].get(change["file"], {}), known["seconds"]
    running = {test for line in range(first, last + 1) for test in lines.get(str(line), [])}
    return sorted(running & seconds.keys() or seconds, key=lambda test: (seconds[test], test))


def write(path, text):
    """Write a file of code, and remove what was compiled of it, whose date may look fresh."""
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def change_lines(change, source):
    """Return a source with a drawn change in it."""
    lines, first = source.splitlines(), change["line"] - 1
    place = slice(first, first + len(change["old"]))
    if lines[place] != change["old"]:
        raise RuntimeError(f"{change['file']} is not what it was: remove {WORK} and draw anew")
    lines[place] = change["new"]
    return "\n".join(lines) + "\n"


def attempt(change, folder, again):
    """Make one change in a copy, run tests, undo it, and return what noticed it, or None."""
    module, path = change["module"], folder / change["file"]
    source = (ROOT / change["file"]).read_text(encoding="utf-8")
    known = known_of(module, folder)
    chosen = None if again else order_of(change, known, source)
    told = WORK / "told.json"
    told.unlink(missing_ok=True)
    write(path, change_lines(change, source))
    limit = LIMIT + 10 * sum(known["seconds"][test] for test in chosen or known["seconds"])
    status = forked(lambda: ask(folder, module, chosen), limit)
    write(path, source)
    if status == 0:
        return None
    failed = json.loads(told.read_text(encoding="utf-8"))["failed"] if told.exists() else []
    return failed[0] if failed else "time" if status is None else f"pytest ended with {status}"


def try_all(again):
    """Try each change that was not tried, or each survivor again; yield (number, what noticed)."""
    for name in SHARED:
        importlib.import_module(name)
    drawn, before = changes(), tried()
    numbers = [n for n in before if before[n] is None] if again else range(len(drawn))
    with tempfile.TemporaryDirectory() as place, (WORK / "tried.jsonl").open("a") as file:
        folder = Path(place).resolve()
        planted.copy(folder)
        for number in numbers:
            if again or number not in before:
                told = attempt(drawn[number], folder, again)
                file.write(json.dumps({"number": number, "noticed": told}) + "\n")
                file.flush()
                yield drawn[number], told


def changes():
    return json.loads((WORK / "drawn.json").read_text(encoding="utf-8"))


def tried():
    """Return what noticed each change that was tried; the last word counts."""
    path = WORK / "tried.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["number"]: entry["noticed"] for entry in map(json.loads, lines)}


def summary(drawn, noticed, reasons, commit):
    """Return what goes to the results: counts, and the survivors with their reasons."""
    survivors, counts = [], {}
    for number, change in enumerate(drawn):
        count = counts.setdefault(change["module"], {"drawn": 0, "tried": 0, "noticed": 0})
        count["drawn"] += 1
        if number in noticed:
            count["tried"] += 1
            count["noticed"] += noticed[number] is not None
            if noticed[number] is None:
                because = reasons.get(_key(change), "")
                survivors.append({**change, "because": because})
    head = {"tool": TOOL, "seed": SEED, "commit": commit}
    return {**head, "modules": counts, "survivors": survivors}


def _key(change):
    return change["file"], *change["old"], "becomes", *change["new"]


def tell():
    """Write the results, and return the survivors that nobody has explained."""
    told = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {"survivors": []}
    reasons = {_key(change): change["because"] for change in told["survivors"]}
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    commit = git.stdout.strip() or os.environ.get("DPNOTES_COMMIT", "unknown")
    found = summary(changes(), tried(), reasons, commit)
    found |= {"paired": told["paired"]} if "paired" in told else {}
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [change for change in found["survivors"] if not change["because"]]


def main(arguments=None):
    """Draw, try and tell; the exit status is 1 where a survivor is not explained."""
    parser = argparse.ArgumentParser(description="Change the code by lot; see what is not noticed.")
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    parser.add_argument("--draw", action="store_true", help="only draw; needs cosmic-ray")
    options = parser.parse_args(arguments)
    if options.draw:
        draw()
        return 0
    prepare()
    for change, told in try_all(options.again):
        print(f"{change['file']}:{change['line']}: {told or 'SURVIVED'}", flush=True)
    unexplained = tell()
    for change in unexplained:
        print(f"not explained: {change['file']}:{change['line']}:", *change["new"], sep="\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
