"""Gather what the benchmarks measure, and store it for the page."""

import dataclasses
import datetime
import importlib.util

import pytest
import table

ROWS = pytest.StashKey()

# The benchmarks and their peers live in an environment of their own, see README.md.
collect_ignore_glob = []
if importlib.util.find_spec("pytest_benchmark") is None:
    collect_ignore_glob += ["test_*.py", "contest*.py"]


def pytest_configure(config):
    config.stash[ROWS] = []


@pytest.fixture
def rows(request):
    """Return the list to which every benchmark adds a row."""
    return request.config.stash[ROWS]


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    if _complete(rows):
        table.store(_run(rows))
        terminalreporter.write_line("Stored. Refresh book/how_fast.ipynb, which shows it.")
    else:
        terminalreporter.write_line("Nothing is written: not everybody ran to the end.")


def _complete(rows):
    """Whether every contender was measured, or is a peer that could not be run."""
    from contest import CONTENDERS

    return sum("seconds" in row or "failed" in row for row in rows) == len(CONTENDERS)


def _run(rows):
    from contest import CONTENDERS, EPSILON
    from machine import commit, describe_machine, versions

    packages = {"numpy", "scipy", *(row["package"] for row in rows if row["package"])}
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "epsilon": EPSILON,
        "machine": describe_machine(),
        "versions": versions(packages),
        "goals": [
            {"job": job.name, **dataclasses.asdict(goal)}
            for job in dict.fromkeys(contender.job for contender in CONTENDERS)
            for goal in job.goals
        ],
        "rows": rows,
    }
