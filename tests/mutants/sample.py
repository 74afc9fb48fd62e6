"""Change the code at places drawn by lot, and list the changes that no test notices.

    python tests/mutants/sample.py          go on from where it stopped, and write what was found
    python tests/mutants/sample.py --again  try the survivors again

The bugs of `run.py` were thought out by somebody who knows the code. These were not: a seed draws
60 places of each of five modules, and a change at each, as `drawing.py` says. The tests of a change
are those that `matrix.py` asks about a module, the quickest first, until one notices it.

What is tried is kept in `_build/mutations`; to draw anew, remove that folder. What was found goes
to `data/results/mutations.json`: counts, and each survivor with ``because``, which says why no test
has to notice it. Somebody writes that by hand; it stays when the file is written again, and the
exit status is 1 where it is missing.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import bench
import drawing
import matrix

RESULT = bench.ROOT / "data" / "results" / "mutations.json"
SEED, EACH = 13, 60
# The modules that privacy hangs on most, and the files of tests of each.
AUDIT = ("", "_exact", "_density", "_report", "_confidence", "_power")
MODULES = {
    "_coins": ["tests/test_coins.py"],
    "accounting": ["tests/test_accounting.py"],
    "audit": [f"tests/test_audit{part}.py" for part in AUDIT],
    "pate": ["tests/test_pate.py"],
    "private_auc": ["tests/test_private_auc.py"],
}


def draw():
    """Return the changes of each module."""
    chance = random.Random(SEED)
    return {module: drawing.draw(module, EACH, chance) for module in MODULES}


def forget_survivors(work):
    """Remove what came out where no test failed, and what the tests do without a change."""
    for path in work.glob("*/*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        if path.stem == "base" or not bench.failures(told):
            path.unlink()


def summarize(drawn, noticed, before):
    """Return what goes to the results: counts, and the survivors with their reasons.

    The reasons, and what other programs found, are those of the results before.
    """
    reasons = {_key(change): change["because"] for change in before["survivors"]}
    counts, survivors = {}, []
    for module, changes in drawn.items():
        missed = [
            change for change, names in zip(changes, noticed[module], strict=True) if not names
        ]
        tried = len(changes)
        counts[module] = {"drawn": tried, "tried": tried, "noticed": tried - len(missed)}
        survivors += [change | {"because": reasons.get(_key(change), "")} for change in missed]
    git = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=bench.ROOT
    )
    commit = git.stdout.strip() or os.environ.get("DPNOTES_COMMIT", "unknown")
    head = {"tool": drawing.TOOL, "seed": SEED, "commit": commit}
    return before | head | {"modules": counts, "survivors": survivors}


def _key(change):
    return change["file"], *change["old"], "becomes", *change["new"]


def main(arguments=None):
    """Draw, try and tell; the exit status is 1 where a survivor is not explained."""
    parser = argparse.ArgumentParser(description="Change the code by lot; see what is not noticed.")
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    work = drawing.WORK / "sample"
    if parser.parse_args(arguments).again:
        forget_survivors(work)
    drawn, noticed = drawing.keep(work / "drawn.json", draw), {}
    with tempfile.TemporaryDirectory() as folder:
        root = bench.copy(Path(folder).resolve() / "copy")
        for module, tests in MODULES.items():
            tests = [*tests, drawing.place_of(module)]
            noticed[module] = matrix.fill(
                root, module, tests, drawn[module], work / module, first=True
            )
    before = (
        json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {"survivors": []}
    )
    found = summarize(drawn, noticed, before)
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unexplained = [change for change in found["survivors"] if not change["because"]]
    for change in unexplained:
        print(f"not explained: {change['file']}:{change['line']}:", *change["new"], sep="\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
