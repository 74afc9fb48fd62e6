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


def test_a_network_of_few_images_is_measured(bench, monkeypatch):
    monkeypatch.setattr(bench, "_IMAGES", 128)
    monkeypatch.setattr(bench, "_SIDE", 64)
    found = bench.trained("convnet", "float32", 2)
    assert found["images_per_second"] > 0
    assert found["operations_per_image"] == 15_925_632


AUDITS = """
from audited import Audits

audits = Audits("planted", epsilon=1.0, unit="any two", quote="It is private.", where="README")


@audits.add("coin", pair=(0, 1), trials=100)
def coin(truth, rng):
    return truth if rng.random() < 0.7 else 1 - truth


@audits.add("crash", pair=(0, 1), trials=100)
def crash(truth):
    raise OSError("none")
"""


def test_the_audits_of_a_package_are_timed_and_none_is_looked_at(bench, monkeypatch, tmp_path):
    (tmp_path / "planted.py").write_text(AUDITS, encoding="utf-8")
    runner = bench.field_runner()
    monkeypatch.setattr(runner, "packages", lambda: {"planted": tmp_path / "planted.py"})
    monkeypatch.setattr(runner, "make_environment", lambda folder, pins: sys.executable)
    found = bench.audited_package("planted")
    assert set(found) == {"environment_seconds", "cpu_seconds", "failed"}
    assert found["failed"] == 1
    assert len(found["cpu_seconds"]) == 2
    assert min(found["cpu_seconds"]) > 0


@pytest.mark.parametrize("place", range(13))
def test_every_job_runs_at_its_smallest_size(bench, place):
    prepare, _, sizes = list(bench.JOBS.values())[place]
    run = prepare(sizes[0])
    run()
    run()
