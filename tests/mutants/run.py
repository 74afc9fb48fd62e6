"""Plant one bug at a time in a copy of the package, and say which of them no test notices.

    python tests/mutants/run.py            every bug of every list
    python tests/mutants/run.py pate elun  the bugs of these lists

A list is a TOML file in this folder, NAME.toml. It says which tests are to notice its bugs, and
each bug is a passage of one file and what stands there instead::

    tests = ["tests/test_pate.py"]

    [[bug]]
    what = "the noise of a block serves the next"
    file = "dpnotes/pate/_drawing.py"
    old = "..."
    new = "..."

A bug may name ``tests`` of its own. It counts as noticed when its tests fail, or run for longer
than ten times what they take on the package as it is.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent
NEEDED = ("dpnotes", "tests", "data", "book", "conftest.py", "pyproject.toml")
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
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
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


def examine(chosen, workers):
    """Yield (bug, what noticed it or None), with several copies at work at once."""
    with tempfile.TemporaryDirectory() as folder:
        copies = SimpleQueue()
        for number in range(workers):
            place = Path(folder) / str(number)
            place.mkdir()
            copy(place)
            copies.put(place)

        def whole(tests):
            place, began = copies.get(), time.monotonic()
            told = fails(tests, place)
            copies.put(place)
            if told:
                raise RuntimeError(f"the tests must pass on the package as it is: {told}")
            return max(SHORTEST, 10 * (time.monotonic() - began))

        def one(bug):
            place = copies.get()
            text = plant(bug, place)
            try:
                return bug, fails(bug["tests"], place, limits[tuple(bug["tests"])])
            finally:
                (place / bug["file"]).write_text(text, encoding="utf-8")
                copies.put(place)

        with ThreadPoolExecutor(workers) as pool:
            different = list(dict.fromkeys(tuple(bug["tests"]) for bug in chosen))
            limits = dict(zip(different, pool.map(whole, different), strict=True))
            yield from pool.map(one, chosen)


def main(arguments=None):
    """Examine the lists that the command line names; the exit status is 1 when a bug survived."""
    parser = argparse.ArgumentParser(description="Plant bugs, and see which no test notices.")
    known = sorted(path.stem for path in LISTS.glob("*.toml"))
    names = "names of lists, such as pate for pate.toml; default: all"
    workers = "copies of the package at work at once; default: one for each core"
    parser.add_argument("lists", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help=workers)
    options = parser.parse_args(arguments)
    if unknown := sorted({*options.lists} - {*known}):
        parser.error(f"no such list: {', '.join(unknown)} (there are: {', '.join(known)})")
    chosen = bugs(options.lists)
    survivors = 0
    for bug, told in examine(chosen, options.workers):
        survivors += told is None
        print(f"{bug['list']}: {bug['what']}: {told or 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} bugs planted, {survivors} not noticed.")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
