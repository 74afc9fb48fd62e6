"""How often does a grade accuse the right, does it catch the wrong, and how long does it take?

    python tests/benchmarks/grading.py [--right 400] [--wrong 10]

Right answers are those of `tests/submissions`, of each assignment and in all their styles in turn,
each graded with a seed of its own; each wrong answer is graded with as many seeds as ``--wrong``
says. Finished units are lines of data/results/grading.jsonl, and a second start goes on.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "book" / "_tools")]

import grading  # noqa: E402
from submissions import RIGHT, WRONG, replaced  # noqa: E402

from dpnotes import __version__  # noqa: E402

RESULTS = ROOT / "data" / "results" / "grading.jsonl"


def units(right, wrong):
    """Yield (assignment, kind, answer, functions, seed), the wrong ones among the right ones."""
    for seed in range(max(right, wrong)):
        for place, name in enumerate(sorted(RIGHT)):
            if seed * len(RIGHT) + place < right:
                style = list(RIGHT[name])[seed % len(RIGHT[name])]
                yield name, "right", style, RIGHT[name][style], seed
            if seed < wrong:
                for answer, found in WRONG[name].items():
                    yield name, "wrong", answer, found.functions, seed


def measured(name, kind, answer, functions, seed):
    """Return a unit: the grade of one submission."""
    began = time.perf_counter()
    solution = grading.solution(grading.read(name))
    grades = grading.grade(name, replaced(solution, **functions), rng=seed)
    unit = {"experiment": "grading", "assignment": name, "kind": kind, "answer": answer}
    unit |= {"seed": seed, "points": grades.points, "possible": grades.possible}
    unit |= {"failed": [[i, v.check] for i, v in enumerate(grades.verdicts) if not v.points]}
    unit |= {"confidence": grades.confidence, "isolation": grades.isolation}
    return unit | {"seconds": round(time.perf_counter() - began, 1)}


def provenance():
    versions = {package: metadata.version(package) for package in ("numpy", "scipy")}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": versions | {"dpnotes": __version__},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--right", type=int, default=400, help="right submissions to grade")
    parser.add_argument("--wrong", type=int, default=10, help="seeds for each wrong answer")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    kept = [json.loads(line)["unit"] for line in lines]
    named = ("assignment", "kind", "answer", "seed")
    done = {tuple(unit[part] for part in named) for unit in kept}
    for name, kind, answer, functions, seed in units(options.right, options.wrong):
        if (name, kind, answer, seed) not in done:
            unit = measured(name, kind, answer, functions, seed)
            print(json.dumps(unit), flush=True)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"unit": unit, "provenance": provenance()}) + "\n")


if __name__ == "__main__":
    main()
