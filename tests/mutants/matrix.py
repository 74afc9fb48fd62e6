"""Say which tests notice which bugs of a module: every test is asked, not only the first to fail.

    python tests/mutants/matrix.py randomized_response --draws 60 --out FOLDER
    python tests/mutants/matrix.py pate --paired OLD_CHECKOUT --seed 7 --out FOLDER

The bugs are those planted by `NAME.toml` and some drawn as in `sample.py`. The tests are the files
that the command line names (or `tests/test_NAME.py`), what `test_refusals.py` asks of the module,
and its doctests. FOLDER/SUITE/ holds a file for each bug with the result and the CPU seconds of
each test, so a second start goes on where the first stopped; FOLDER/SUITE.json holds the matrix.

With --paired there are no planted bugs. The tests here stop at the first that notices a change;
where none does, the tests of another checkout are run with the package of this one, and the exit
status is 1 if they notice it.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
import run as planted
import sample

# What tests each public function in the two checkouts, and how the names of its tests go on.
EVERY_FUNCTION = {"tests/test_refusals.py": ".", "tests/test_checks.py": "-"}


class Recorder:
    """A plugin of pytest that writes down the result and the CPU seconds of each test."""

    def __init__(self, module, path):
        self.module, self.file, self.failed = module, path.open("w"), False

    def pytest_collection_modifyitems(self, items):
        def belongs(file, name):
            return file not in EVERY_FUNCTION or f"[{self.module}{EVERY_FUNCTION[file]}" in name

        items[:] = [item for item in items if belongs(*item.nodeid.split("::", 1))]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before, self.failed = sum(os.times()[:4]), False
        yield
        seconds = round(sum(os.times()[:4]) - before, 3)
        self.file.write(json.dumps([item.nodeid, not self.failed, seconds]) + "\n")
        self.file.flush()
        return True

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def pytest_collectreport(self, report):
        if report.failed:
            self.file.write(json.dumps([report.nodeid, False, 0.0]) + "\n")


def ask(folder, module, tests, path, *options):
    """Run the tests of a module in a copy of the checkout, in this process."""
    os.chdir(folder)
    os.environ.update(PYTHONPATH=str(folder), CI="true", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    sys.path.insert(0, str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "dpnotes"]:
        del sys.modules[name]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    options = [*options, "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    # numpy is imported already, and would warn of a doctest's matrix only once.
    options += ["-W", "ignore:the matrix subclass:PendingDeprecationWarning"]
    files = [file for file in [*tests, *EVERY_FUNCTION] if (folder / file).exists()]
    return pytest.main([*options, *files], plugins=[Recorder(module, path)])


def measure(folder, module, tests, path, limit, *options):
    """Return [name, whether it passed, CPU seconds] of each test, from a file where there is one.

    Past the limit in seconds the test that runs counts as failed, and the others are not asked.
    """
    if not path.exists():
        part = path.with_suffix(".part")
        if sample.forked(lambda: ask(folder, module, tests, part, *options), limit) is None:
            with part.open("a") as file:
                file.write(json.dumps(["time", False, limit]) + "\n")
        part.rename(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def fill(folder, module, tests, bugs, out, *options):
    """Return for each numbered bug the tests that notice it, of those that pass without it."""
    out.mkdir(parents=True, exist_ok=True)
    base = measure(folder, module, tests, out / "base.jsonl", 3600)
    if not base:
        raise ValueError(f"the tests of {module} must be collected without a bug, too: {out.name}")
    limit = 20 + 5 * sum(seconds for *_, seconds in base)
    passing = {name for name, passed, _ in base if passed} | {"time"}
    matrix = {"seconds": {name: seconds for name, _, seconds in base}, "noticed": {}}
    for number, bug in bugs.items():
        path = folder / bug["file"]
        source = path.read_text(encoding="utf-8")
        if "line" in bug:
            sample.write(path, sample.change_lines(bug, source))
        else:
            planted.plant(bug, folder)
        told = measure(folder, module, tests, out / f"{number}.jsonl", limit, *options)
        sample.write(path, source)
        noticed = sorted(name for name, passed, _ in told if name in passing and not passed)
        # With some bugs not even the tests' own modules can be imported.
        noticed = noticed if told else ["collection"]
        matrix["noticed"][number] = noticed
        print(f"{out.name} {number}: {len(noticed)} of {len(told)} tests notice it", flush=True)
    out.with_suffix(".json").write_text(
        json.dumps({"bugs": list(bugs.values()), **matrix}, indent=1)
    )
    return matrix["noticed"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Ask every test of a module about every bug.")
    parser.add_argument("name", help="a module of the package, such as pate")
    parser.add_argument("tests", nargs="*", help="its files of tests; default: tests/test_NAME.py")
    parser.add_argument("--draws", type=int, default=60, help="changes to draw; default: 60")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing; default: 1")
    parser.add_argument("--paired", type=Path, help="a checkout with the tests to compare with")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    options = parser.parse_args(arguments)
    name, out = options.name, options.out.resolve()
    place = next(p for p in (f"dpnotes/{name}", f"dpnotes/{name}.py") if (sample.ROOT / p).exists())
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "bugs.json").exists():
        sys.path.append(str(sample.install()))
        bugs = sample.draw_changes(name, place, options.draws, random.Random(options.seed))
        known = [] if options.paired else planted.bugs([name])
        (out / "bugs.json").write_text(json.dumps([*known, *bugs], indent=1))
    bugs = dict(enumerate(json.loads((out / "bugs.json").read_text())))
    tests = [*(options.tests or [f"tests/test_{name}.py"]), place]
    for module in sample.SHARED:
        __import__(module)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder).resolve()
        planted.copy(copied)
        noticed = fill(copied, name, tests, bugs, out / "new", *(["-x"] if options.paired else []))
        missed = {number: bug for number, bug in bugs.items() if not noticed[number]}
        lost = {}
        if options.paired:
            shutil.rmtree(copied / "tests")
            shutil.copytree(options.paired / "tests", copied / "tests", ignore=planted.UNNEEDED)
            shutil.copy(options.paired / "conftest.py", copied)
            lost = fill(copied, name, tests, missed, out / "old")
    for number, names in lost.items():
        if names:
            print(json.dumps({**bugs[number], "noticed by": names}, indent=1))
    lost = sum(map(bool, lost.values()))
    print(f"{len(bugs)} bugs, {len(bugs) - len(missed)} noticed, {lost} lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
