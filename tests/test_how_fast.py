"""The "how fast" page shows what was measured, all of it, and nothing else."""

import json

import pytest
from benchmarks import table

ROW = {
    "job": "randomized response",
    "title": "Randomized response",
    "people": 10**6,
    "categories": 2,
    "package": None,
    "version": None,
    "note": "",
    "share": 10**6,
    "rounds": 5,
    "error": 1.0,
}


@pytest.fixture
def results():
    return json.loads(table.RESULTS.read_text(encoding="utf-8"))


def contest(*rows):
    """Return results with these rows and nothing to say of the machine."""
    machine = dict.fromkeys(["processor", "cores", "memory_gib", "system", "python"], "x")
    about = {"date": "x", "commit": "x", "epsilon": 1.0, "machine": machine, "versions": {}}
    return about | {"rows": [ROW | row for row in rows]}


def test_the_page_shows_the_committed_results(results):
    assert table.PAGE.read_text(encoding="utf-8") == table.render(results)


def test_the_results_name_the_machine_and_every_version(results):
    assert all(results["machine"].values())
    packages = {row["package"] for row in results["rows"] if row["package"]}
    assert packages <= set(results["versions"])
    assert {"numpy", "dpnotes"} <= set(results["versions"])
    assert results["commit"] != "unknown"


def test_every_peer_of_the_committed_results_is_on_the_page(results):
    page = table.PAGE.read_text(encoding="utf-8")
    assert {"pure-ldp", "multi-freq-ldpy", "diffprivlib", "opendp"} <= set(results["versions"])
    for row in results["rows"]:
        assert f"| {row['name']} |" in page or f"| **{row['name']}** |" in page


def test_a_peer_that_cannot_be_run_is_shown_with_its_error():
    page = table.render(contest({"name": "a peer", "kind": "peer", "failed": "ImportError: no"}))
    assert "| a peer | – | – | – | could not be run: ImportError: no |" in page


def test_a_scaled_time_says_so():
    page = table.render(contest({"name": "a", "kind": "peer", "seconds": 1.0, "share": 10**4}))
    assert "timed on 10,000 people and scaled" in page


def test_a_wrong_estimate_is_named():
    page = table.render(contest({"name": "a", "kind": "peer", "seconds": 1.0, "error": 9.0}))
    assert "its worst estimate is 9 standard deviations off" in page


def test_ratios_are_to_the_limit_and_to_dpnotes():
    page = table.render(
        contest(
            {"name": "a", "kind": "peer", "seconds": 3.0},
            {"name": "b", "kind": "dpnotes", "seconds": 1e-2},
            {"name": "c", "kind": "limit", "seconds": 5e-3, "error": None},
        )
    )
    assert "| a | 3.0 s | 600 | 300 |" in page
    assert "| **b** | 10 ms | 2.0 | 1.0 |" in page


@pytest.mark.parametrize(("ours", "holds"), [(2.5, "yes"), (2.6, "**no**")])
def test_a_goal_that_is_missed_says_no(ours, holds):
    page = table.render(
        contest(
            {"name": "b", "kind": "dpnotes", "seconds": ours},
            {"name": "c", "kind": "limit", "seconds": 1.0, "error": None},
        )
    )
    assert f"times the limit: at most 2.5 | {ours} | {holds} |" in page


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(12.34, "12 s"), (1.234, "1.2 s"), (0.01234, "12 ms"), (1.6e-5, "16 µs"), (None, "–")],
)
def test_a_time_has_two_digits_and_a_fitting_unit(seconds, written):
    assert table.duration(seconds) == written
