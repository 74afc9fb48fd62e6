"""Gather what the benchmarks measure, print ratios, and write the results and the page."""

import datetime
import importlib.util
import json

import pytest
import table

ROWS = pytest.StashKey()

# The benchmarks and their peers live in an environment of their own, made by `make bench`.
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
    results = _results(rows)
    terminalreporter.write_line("\n" + table.render(results))
    if _complete(rows):
        text = json.dumps(results, indent=1, ensure_ascii=False)
        table.RESULTS.parent.mkdir(parents=True, exist_ok=True)
        table.RESULTS.write_text(text + "\n", encoding="utf-8")
        table.write()
    else:
        terminalreporter.write_line("Nothing is written: not everybody ran to the end.")


def _complete(rows):
    """Whether every contender was measured, or is a peer that could not be run."""
    from contest import CONTENDERS

    return sum("seconds" in row or "failed" in row for row in rows) == len(CONTENDERS)


def _results(rows):
    from contest import EPSILON
    from machine import commit, describe_machine, versions

    packages = {"numpy", "scipy", *(row["package"] for row in rows if row["package"])}
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "epsilon": EPSILON,
        "machine": describe_machine(),
        "versions": versions(packages),
        "rows": rows,
    }
