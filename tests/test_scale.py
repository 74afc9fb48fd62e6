"""The program that measures cost against size, and that all of it was measured."""

import importlib.util
import sys
from pathlib import Path

import pytest

from dpnotes.datasets import load_results

BENCHMARKS = Path(__file__).parent / "benchmarks"
ROWS = load_results("scale")["units"]


@pytest.fixture(scope="module")
def bench():
    """Return the program that measures."""
    spec = importlib.util.spec_from_file_location("bench_scale", BENCHMARKS / "scale.py")
    kept = sys.path[:]
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCHMARKS))
    spec.loader.exec_module(module)
    sys.path[:] = kept
    return module


def test_every_job_was_measured_at_every_size(bench):
    for name, (_, _, sizes) in bench.JOBS.items():
        assert [row["size"] for row in ROWS if "size" in row and row["job"] == name] == sizes
    workers = [row["job"] for row in ROWS if "workers" in row]
    assert sorted(workers) == sorted(bench.TEAMS)
    networks = [row for row in ROWS if "at_once" in row]
    wanted = [unit for unit, *_ in bench.UNITS["networks"]()]
    assert [{key: row[key] for key in wanted[0]} for row in networks] == wanted


def test_every_audit_of_a_package_was_timed(bench):
    runner = bench.field_runner()
    timed = {row["package"]: len(row["cpu_seconds"]) for row in ROWS if "package" in row}
    assert timed == {
        name: len(runner.audited.load(path)) for name, path in runner.packages().items()
    }


def test_every_job_runs_twice_at_its_smallest_size(bench):
    for prepare, _, sizes in bench.JOBS.values():
        run = prepare(sizes[0])
        run()
        run()
