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
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

import bench

LISTS = Path(__file__).parent
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


def examine(chosen, workers):
    """Yield (bug, what noticed it or None), with several copies at work at once."""
    copies = SimpleQueue()

    def first_failure(tests, bug=None, limit=None):
        """Run tests in a copy that nobody else works in."""
        root = copies.get()
        try:
            with bench.plant(bug, root) if bug else nullcontext():
                failed = bench.failures(bench.ask(tests, root, "-x", limit=limit))
        finally:
            copies.put(root)
        return failed[0] if failed else None

    def limit(tests):
        """Run tests on the package as it is, and return how long they may take with a bug."""
        began = time.monotonic()
        if failed := first_failure(tests):
            raise RuntimeError(f"the tests must pass on the package as it is: {failed}")
        return max(SHORTEST, 10 * (time.monotonic() - began))

    def ask_all(bugs, tests_of):
        """Yield (bug, the first of its tests that fails or None), for several bugs at once."""
        of_file = {}
        for test in dict.fromkeys(test for bug in bugs for test in tests_of(bug)):
            of_file.setdefault(_file(test), []).append(test)
        limits = dict(zip(of_file, pool.map(limit, of_file.values()), strict=True))

        def ask(bug):
            tests = tests_of(bug)
            return first_failure(tests, bug, sum(limits[_file(test)] for test in tests))

        return zip(bugs, pool.map(ask, bugs), strict=True)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        for number in range(workers):
            copies.put(bench.copy(Path(folder) / str(number)))
        missed = [bug for bug in chosen if "noticed" not in bug]
        known = [bug for bug in chosen if "noticed" in bug]
        for bug, failed in ask_all(known, lambda bug: [bug["noticed"]]):
            if failed == "time" or "::" in (failed or ""):
                yield bug, failed
            else:
                missed.append(bug)
        yield from ask_all(missed, lambda bug: bug["tests"])


def _file(test):
    return test.partition("::")[0]


def record(bug, test, folder=LISTS):
    """Write the test that noticed a bug beside it."""
    if "::" not in (test or ""):
        return
    name = test.partition("[")[0]
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
    for bug, failed in examine(chosen, options.workers):
        survivors += failed is None
        if options.record:
            record(bug, failed)
        print(f"{bug['list']}: {bug['what']}: {failed or 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} bugs planted, {survivors} not noticed.")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
