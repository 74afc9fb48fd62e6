"""Say which tests notice which bugs of a module: every test is asked, not only the first to fail.

    python tests/mutants/matrix.py randomized_response --draws 60 --out FOLDER
    python tests/mutants/matrix.py pate --paired OLD_CHECKOUT --seed 7 --out FOLDER

The bugs are those planted by `NAME.toml` and some drawn by lot, as `drawing.py` says. The tests are
the files that the command line names (or `tests/test_NAME.py`), what `test_refusals.py` and
`test_checks.py` ask of the module, and its doctests. FOLDER/SUITE/ holds a file for each bug with
the result and the CPU seconds of each test, so a second start goes on where the first stopped;
FOLDER/SUITE.json holds the matrix.

With --paired there are no planted bugs. The tests here stop at the first that notices a change;
where none does, the tests of another checkout are run with the package of this one, and the exit
status is 1 if they notice it. What came of it is `paired` in `data/results/mutations.json`: a test
added afterwards notices `noticed_since`, and each other survivor has its reason.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import bench
import drawing
import run
from recorder import EVERY_FUNCTION


def fill(root, module, tests, bugs, out, first=False):
    """Return for each bug the tests that notice it, in a copy of the checkout.

    What came out of the tests is kept in a folder. With `first` they end at the first that
    notices a bug, and the quickest go first.
    """
    # The tests that draw their own cases are to draw the same ones with each bug.
    os.environ["CI"] = "true"
    tests = [test for test in [*tests, *EVERY_FUNCTION] if (root / test).exists()]

    def ask(name, *options, limit=3600):
        options = (f"--module={module}", *options)
        return drawing.keep(out / name, lambda: bench.ask(tests, root, *options, limit=limit))

    base = ask("base.json")
    failing = bench.failures(base)
    if failing and (first or len(failing) == len(base)):
        raise ValueError(f"the tests of {module} must pass without a bug: {', '.join(failing)}")
    options = ["-x", f"--quickest-first={out / 'base.json'}"] if first else []
    seconds = {name: each for name, _, each in base}
    noticed = []
    for number, bug in enumerate(bugs):
        with bench.plant(bug, root):
            told = ask(f"{number}.json", *options, limit=60 + 10 * sum(seconds.values()))
        noticed.append(sorted({*bench.failures(told)} - {*failing}))
        print(f"{out.name} {number}: {len(noticed[-1])} of {len(told)} tests notice it", flush=True)
    found = {"bugs": bugs, "seconds": seconds, "noticed": noticed}
    out.with_suffix(".json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return noticed


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Ask every test of a module about every bug.")
    parser.add_argument("name", help="a module of the package, such as pate")
    parser.add_argument("tests", nargs="*", help="its files of tests; default: tests/test_NAME.py")
    parser.add_argument("--draws", type=int, default=60, help="changes to draw; default: 60")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing; default: 1")
    parser.add_argument("--paired", type=Path, help="a checkout with the tests to compare with")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    options = parser.parse_args(arguments)
    name, out, paired = options.name, options.out.resolve(), options.paired

    def draw():
        drawn = drawing.draw(name, options.draws, random.Random(options.seed))
        return drawn if paired else [*run.bugs([name]), *drawn]

    bugs = drawing.keep(out / "bugs.json", draw)
    tests = [*(options.tests or [f"tests/test_{name}.py"]), drawing.place_of(name)]
    with tempfile.TemporaryDirectory() as folder:
        root = bench.copy(Path(folder).resolve() / "copy")
        noticed = fill(root, name, tests, bugs, out / "new", first=bool(paired))
        missed = [bug for bug, names in zip(bugs, noticed, strict=True) if not names]
        lost = []
        if paired:
            shutil.rmtree(root / "tests")
            shutil.copytree(paired / "tests", root / "tests", ignore=bench.UNNEEDED)
            shutil.copy(paired / "conftest.py", root)
            found = zip(missed, fill(root, name, tests, missed, out / "old"), strict=True)
            lost = [{**bug, "noticed by": names} for bug, names in found if names]
    for bug in lost:
        print(json.dumps(bug, indent=1))
    print(f"{len(bugs)} bugs, {len(bugs) - len(missed)} noticed, {len(lost)} lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
