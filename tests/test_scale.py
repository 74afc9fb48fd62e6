"""The tables and the figure of cost against size are those of what was measured."""

import importlib.util
import sys
from pathlib import Path

import pytest
import scale as tool

BENCHMARKS = Path(__file__).parent / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """Return the program that measures; the tool of the book has its name."""
    spec = importlib.util.spec_from_file_location("bench_scale", BENCHMARKS / "scale.py")
    kept = sys.path[:]
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCHMARKS))
    spec.loader.exec_module(module)
    sys.path[:] = kept
    return module


def row(job, size, seconds, peak):
    provenance = {"date": "2026-01-01", "commit": "abc", "machine": MACHINE}
    measured = {"cpu_seconds": seconds, "rounds": 5, "peak_bytes": peak}
    return {"job": job, "counted": "people", "size": size, **measured, "provenance": provenance}


MACHINE = {
    "processor": "P",
    "cores": 2,
    "memory_gib": 8,
    "system": "Linux",
    "python": "3.11",
}


def test_the_page_shows_what_was_measured():
    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(tool.read())


def test_every_job_was_measured_at_every_size(bench):
    found = tool.by_size(tool.read())
    assert {name: [row["size"] for row in rows] for name, rows in found.items()} == {
        name: sizes for name, (_, _, sizes) in bench.JOBS.items()
    }
    workers = [row["job"] for row in tool.read() if "workers" in row]
    assert sorted(workers) == sorted(bench.TEAMS)
    networks = [row for row in tool.read() if "at_once" in row]
    wanted = [unit for unit, *_ in bench.UNITS["networks"]()]
    assert [{key: row[key] for key in wanted[0]} for row in networks] == wanted


def test_every_audit_of_a_package_was_timed(bench):
    runner = bench.field_runner()
    timed = {row["package"]: len(row["cpu_seconds"]) for row in tool.read() if "package" in row}
    assert timed == {
        name: len(runner.audited.load(path)) for name, path in runner.packages().items()
    }


def test_a_row_says_how_much_more_ten_times_as_many_take():
    rows = [row("a", 100, 0.004, 3_000), row("a", 10, 0.0005, 1_500), row("a", 1, 0.1, 5)]
    table = tool.render(rows)
    assert "| a | 100 people | 4.0 ms | 8.0 | 3.0 kB | 2.0 |" in table
    assert "Measured on P, 2 cores, 8 GiB of memory, Linux, Python 3.11, on 2026-01-01" in table


def test_workers_are_compared_by_their_medians():
    team = row("b", 0, 0, 0)
    del team["size"]
    team |= {"workers": 2, "work": 1_000, "seconds": {"1": [4.0, 9.0, 3.0], "2": [2.5, 2.0, 2.2]}}
    table = tool.render([team | {"times_as_quick": 1.82}])
    assert "| b | 1,000 people | 4.0 s | 2.2 s | 1.82 |" in table


def test_a_network_is_compared_with_what_the_core_can_do():
    network = row("cnn", 0, 0, 0)
    del network["size"]
    network |= {"precision": "bfloat16", "at_once": 3, "images_per_second": 6_000}
    network |= {"operations_per_image": 2.5e7, "limit_per_second": 3e11}
    table = tool.render([network])
    assert "| cnn | bfloat16 | 3 | 6,000 | 300 | 50 % |" in table


def test_a_network_of_few_images_is_measured(bench, monkeypatch):
    monkeypatch.setattr(bench, "_IMAGES", 128)
    monkeypatch.setattr(bench, "_SIDE", 64)
    found = bench.trained("convnet", "float32", 2)
    assert found["images_per_second"] > 0
    assert found["operations_per_image"] == 15_925_632


def test_audits_of_packages_are_summed_up():
    packages = [row("", 0, 0, 0) | {"package": name, "failed": 1} for name in "ab"]
    for package in packages:
        del package["size"]
    packages[0] |= {"environment_seconds": 3.0, "cpu_seconds": [1.0, 2.0]}
    packages[1] |= {"environment_seconds": 5.0, "cpu_seconds": [900.0]}
    table = tool.render(packages)
    assert "| 2 environments | 4.0 s | 5.0 s | 8.0 s |" in table
    assert "| 3 audits, 2 of which ended with an error | 2.0 s | 15 min | 15 min |" in table


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


def test_the_figure_is_that_of_the_results(tmp_path):
    tool.draw(tool.by_size(tool.read()), tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert all(name.partition(":")[0] in drawn for name in tool.by_size(tool.read()))
