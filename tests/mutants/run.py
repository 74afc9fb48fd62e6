"""Plant one bug at a time in a copy of the package, and say which of them no test notices.

    python tests/mutants/run.py            every bug of every list
    python tests/mutants/run.py pate elun  the bugs of these lists
    python tests/mutants/run.py --part 3/10  every tenth bug, from the third on
    python tests/mutants/run.py --part today/10  the tenth whose turn it is; ten days have them all

A list is a TOML file in this folder, NAME.toml. It says which tests are to notice its bugs, and
each bug is a passage of one file and what stands there instead::

    tests = ["tests/test_pate.py"]

    [[bug]]
    what = "the noise of a block serves the next"
    file = "dpnotes/pate/mechanisms.py"
    old = "..."
    new = "..."

A bug may name ``tests`` of its own. It counts as noticed when its tests fail, or run for longer
than ten times what they take on the package as it is. ``--record`` writes beside each bug the test
that noticed it, as ``noticed``; from then on that one is asked first, and the others only if it
passes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent
NEEDED = ("dpnotes", "tests", "data", "book", "_config.yml", "conftest.py", "pyproject.toml")
UNNEEDED = shutil.ignore_patterns("__pycache__", "_static", "*.npz", "benchmarks")
SHORTEST = 60.0


def bugs(names=(), folder=LISTS):
    """Return the bugs of the named lists, or of all, each with its list and its tests."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        if not names or path.stem in names:
            listed = tomllib.loads(path.read_text(encoding="utf-8"))
            found += [{"list": path.stem, "tests": listed["tests"], **bug} for bug in listed["bug"]]
    return found


def part_of(text, day=None):
    """Read "3/10", or "today/10", as a slice: every tenth bug, so each list has some in each part.

    Day is the day's number and, left out, that of today in UTC.
    """
    which, _, parts = text.partition("/")
    parts = int(parts)
    if which == "today":
        day = datetime.now(UTC).toordinal() if day is None else day
        which = day % max(1, parts) + 1
    if not 1 <= int(which) <= parts:
        raise ValueError(f"a part is one of 1 to {parts}")
    return slice(int(which) - 1, None, parts)


def plant(bug, root):
    """Write a bug into a copy of the checkout and return the text that was there."""
    path = root / bug["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(bug["old"]) != 1:
        raise ValueError(f"{bug['file']} must hold the passage of {bug['what']!r} once")
    path.write_text(text.replace(bug["old"], bug["new"]), encoding="utf-8")
    return text


def copy(folder):
    """Copy what the tests need."""
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=UNNEEDED)
        else:
            shutil.copy(source, folder)


def fails(tests, root, limit=None):
    """Run tests in a copy and return the first that failed, "time" past the limit, or None."""
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    environment.setdefault("DPNOTES_DATA", str(ROOT / "data"))
    # To load the other plugins takes longer than most of the tests.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        run = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return "time"
    if run.returncode == 0:
        return None
    told = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0] if told else f"pytest ended with {run.returncode}"


class Bench:
    """Copies of the package, in which tests run with a bug and without."""

    def __init__(self, folder, workers):
        self.copies, self.limits = SimpleQueue(), {}
        for number in range(workers):
            place = Path(folder) / str(number)
            place.mkdir()
            copy(place)
            self.copies.put(place)

    @contextmanager
    def lent(self):
        """Lend a copy that nobody else works in, and take it back whatever happens."""
        place = self.copies.get()
        try:
            yield place
        finally:
            self.copies.put(place)

    def limit(self, tests):
        """Run tests on the package as it is, and return how long they may take with a bug."""
        with self.lent() as place:
            began = time.monotonic()
            if told := fails(tests, place):
                raise RuntimeError(f"the tests must pass on the package as it is: {told}")
            return max(SHORTEST, 10 * (time.monotonic() - began))

    def told(self, bug, tests, limit):
        """Plant a bug, run tests, and take it out again."""
        with self.lent() as place:
            text = plant(bug, place)
            try:
                return fails(tests, place, limit)
            finally:
                (place / bug["file"]).write_text(text, encoding="utf-8")


def _file(test):
    return test.partition("::")[0]


def _limits(bench, pool, tests):
    """Run tests as they are, a file's together, and return the limit of each file."""
    of_file = {}
    for test in dict.fromkeys(tests):
        of_file.setdefault(_file(test), []).append(test)
    return dict(zip(of_file, pool.map(bench.limit, of_file.values()), strict=True))


def examine(chosen, workers):
    """Yield (bug, what noticed it or None), with several copies at work at once."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        bench = Bench(folder, workers)
        quick = _limits(bench, pool, [bug["noticed"] for bug in chosen if "noticed" in bug])

        def one(bug):
            if "noticed" not in bug:
                return None
            told = bench.told(bug, [bug["noticed"]], quick[_file(bug["noticed"])])
            return told if told and told.startswith(("FAILED", "time")) else None

        missed = []
        for bug, told in zip(chosen, pool.map(one, chosen), strict=True):
            if told:
                yield bug, told
            else:
                missed.append(bug)
        whole = _limits(bench, pool, [test for bug in missed for test in bug["tests"]])

        def every(bug):
            return bench.told(bug, bug["tests"], sum(whole[_file(test)] for test in bug["tests"]))

        yield from zip(missed, pool.map(every, missed), strict=True)


def record(bug, told, folder=LISTS):
    """Write the test that noticed a bug beside it."""
    if not (told or "").startswith("FAILED "):
        return
    name = told.removeprefix("FAILED ").split(" - ")[0].split("[")[0]
    path = folder / f"{bug['list']}.toml"
    first, *passages = path.read_text(encoding="utf-8").split("[[bug]]\n")
    for number, passage in enumerate(passages):
        if tomllib.loads(passage)["what"] == bug["what"]:
            lines = [line for line in passage.rstrip().splitlines() if line[:10] != "noticed = "]
            lines.append(f"noticed = {json.dumps(name, ensure_ascii=False)}")
            passages[number] = "\n".join(lines) + passage[len(passage.rstrip()) :]
    path.write_text("[[bug]]\n".join([first, *passages]), encoding="utf-8")


def main(arguments=None):
    """Examine the lists that the command line names; the exit status is 1 when a bug survived."""
    parser = argparse.ArgumentParser(description="Plant bugs, and see which no test notices.")
    known = sorted(path.stem for path in LISTS.glob("*.toml"))
    names = "names of lists, such as pate for pate.toml; default: all"
    workers = "copies of the package at work at once; default: one for each core"
    parser.add_argument("lists", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help=workers)
    recorded = "write beside each bug the test that noticed it, to be asked first from then on"
    parser.add_argument("--record", action="store_true", help=recorded)
    part = "K/N: every Nth bug from the Kth on; today/N: the part whose turn it is today"
    parser.add_argument("--part", type=part_of, default=slice(None), metavar="K/N", help=part)
    options = parser.parse_args(arguments)
    if unknown := sorted({*options.lists} - {*known}):
        parser.error(f"no such list: {', '.join(unknown)} (there are: {', '.join(known)})")
    chosen = bugs(options.lists)[options.part]
    survivors = 0
    for bug, told in examine(chosen, options.workers):
        survivors += told is None
        if options.record:
            record(bug, told)
        print(f"{bug['list']}: {bug['what']}: {told or 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} bugs planted, {survivors} not noticed.")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
