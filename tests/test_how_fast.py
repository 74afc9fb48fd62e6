"""The "how fast" page shows what was measured, all of it, and nothing else."""

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


GOALS = [
    {
        "job": "randomized response",
        "what": "times the limit",
        "bound": 2.5,
        "holds": "at most",
        "over": "ours",
        "under": "limit",
    },
    {
        "job": "randomized response",
        "what": "a peer's time",
        "bound": 250,
        "holds": "at least",
        "over": "peer",
        "under": "ours",
    },
    {
        "job": "randomized response",
        "what": "in milliseconds",
        "bound": 1.0,
        "holds": "at most",
        "over": "a row",
        "under": None,
    },
    {
        "job": "randomized response",
        "what": "memory",
        "bound": 1.05,
        "holds": "at most",
        "over": "memory",
        "under": None,
    },
]


@pytest.fixture
def runs():
    return table.read()


def contest(*rows, processor="Maker x"):
    """Return a run with these rows and little to say of the machine."""
    machine = dict.fromkeys(["cores", "memory_gib", "system", "python"], "x")
    machine["processor"] = processor
    about = {"date": "x", "commit": "x", "epsilon": 1.0, "machine": machine, "versions": {}}
    return about | {"goals": GOALS, "rows": [ROW | row for row in rows]}


def test_the_page_shows_the_committed_results(runs):
    assert runs
    assert table.PAGE.read_text(encoding="utf-8") == table.render(runs)


def test_the_results_name_each_machine_once_and_every_version(runs):
    processors = [run["machine"]["processor"] for run in runs]
    assert len(set(processors)) == len(processors)
    for run in runs:
        assert all(run["machine"].values())
        packages = {row["package"] for row in run["rows"] if row["package"]}
        assert packages <= set(run["versions"])
        assert {"numpy", "dpnotes"} <= set(run["versions"])
        assert run["commit"] != "unknown"


def test_every_peer_and_every_goal_of_the_committed_results_is_on_the_page(runs):
    page = table.PAGE.read_text(encoding="utf-8")
    for run in runs:
        assert {"pure-ldp", "multi-freq-ldpy", "diffprivlib", "opendp"} <= set(run["versions"])
        for row in run["rows"]:
            assert f"| {row['name']} |" in page or f"| **{row['name']}** |" in page
        measured = table.goals(run)
        assert len(measured) == len(run["goals"])
        assert all(f"| {goal} |" in page for goal, _, _ in measured)


def test_goals_have_different_names(runs):
    for run in runs:
        names = [goal["what"] for goal in run["goals"]]
        assert len(set(names)) == len(names)


def test_a_peer_that_cannot_be_run_is_shown_with_its_error():
    page = table.render([contest({"name": "a peer", "kind": "peer", "failed": "ImportError: no"})])
    assert "| a peer | – | – | – | could not be run: ImportError: no |" in page


def test_a_scaled_time_says_so():
    page = table.render([contest({"name": "a", "kind": "peer", "seconds": 1.0, "share": 10**4})])
    assert "timed on 10,000 people and scaled" in page


def test_a_wrong_estimate_is_named():
    page = table.render([contest({"name": "a", "kind": "peer", "seconds": 1.0, "error": 9.0})])
    assert "its worst estimate is 9 standard deviations off" in page


A, B = {"name": "a", "kind": "peer"}, {"name": "b", "kind": "dpnotes"}
C = {"name": "c", "kind": "limit", "error": None}


def test_ratios_are_to_the_limit_and_to_dpnotes():
    run = contest(A | {"seconds": 3.0}, B | {"seconds": 1e-2}, C | {"seconds": 5e-3})
    page = table.render([run]).replace(table.NBSP, " ")
    assert "| a | 3.0 s | 600 | 300 |" in page
    assert "| **b** | 10 ms | 2.0 | 1.0 |" in page
    assert "different commits" not in page


def test_machines_stand_side_by_side_each_with_ratios_of_its_own():
    one = contest(A | {"seconds": 3.0}, B | {"seconds": 1e-2}, C | {"seconds": 5e-3})
    two = contest(B | {"seconds": 0.3}, C | {"seconds": 0.1}, processor="Other(R) y")
    page = table.render([one, two | {"commit": "y"}]).replace(table.NBSP, " ")
    assert "The machines ran different commits" in page
    assert "| goal | Maker | Other |" in page
    assert "| times the limit: at most 2.5 | 2.0, yes | 3.0, **no** |" in page
    assert "| a peer's time: at least 250 | 300, yes | – |" in page
    assert "| a | 3.0 s · – | 600 · – | 300 · – |" in page
    assert "| **b** | 10 ms · 300 ms | 2.0 · 3.0 | 1.0 · 1.0 |" in page


def test_a_new_run_takes_the_place_of_the_last_on_its_processor_only():
    old, other = contest(processor="B"), contest(processor="A")
    new = contest(B | {"seconds": 1.0}, processor="B")
    assert table.merged([old, other], new) == [other, new]
    assert table.merged([], new) == [new]


@pytest.mark.parametrize(("ours", "holds"), [(2.5, "yes"), (2.6, "**no**")])
def test_a_goal_that_is_missed_says_no(ours, holds):
    page = table.render([contest(B | {"seconds": ours}, C | {"seconds": 1.0})])
    assert f"times the limit: at most 2.5 | {ours}, {holds} |" in page


@pytest.mark.parametrize(("peer", "holds"), [(249.0, False), (250.0, True)])
def test_a_goal_of_at_least_so_much_is_missed_below(peer, holds):
    [_, found] = table.goals(
        contest(A | {"seconds": peer}, B | {"seconds": 1.0}, C | {"seconds": 1.0})
    )
    assert found == ("a peer's time: at least 250", peer, holds)


def test_a_goal_in_milliseconds_or_in_memory_takes_its_row():
    chunks = {"kind": "chunks", "seconds": 1.0, "memory": 20, "memory_of_a_tenth": 10}
    run = contest({"name": "a row", "kind": "variant", "seconds": 2e-3}, {"name": "d"} | chunks)
    assert table.goals(run) == [
        ("in milliseconds: at most 1", 2.0, False),
        ("memory: at most 1.05", 2.0, False),
    ]


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(12.34, "12 s"), (1.234, "1.2 s"), (0.01234, "12 ms"), (1.6e-5, "16 µs"), (None, "–")],
)
def test_a_time_has_two_digits_and_a_fitting_unit(seconds, written):
    assert table.duration(seconds) == written
