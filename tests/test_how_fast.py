"""What the benchmarks store for the page on how fast everything is."""

from benchmarks import table

from dpnotes.datasets import load_results


def test_a_new_run_takes_the_place_of_the_last_on_its_processor_only():
    def run(processor, date):
        return {"machine": {"processor": processor}, "date": date}

    old, other, new = run("B", "then"), run("A", "then"), run("B", "now")
    assert table.merge([old, other], new) == [other, new]
    assert table.merge([], new) == [new]


def test_every_stored_run_names_its_machine_its_versions_and_its_commit():
    runs = load_results("how_fast")
    assert len({run["machine"]["processor"] for run in runs}) == len(runs) > 0
    for run in runs:
        assert all(run["machine"].values())
        packages = {row["package"] for row in run["rows"] if row["package"]}
        assert packages | {"numpy", "dpnotes", "opendp", "diffprivlib"} <= set(run["versions"])
        assert run["commit"] != "unknown"
        assert len({goal["what"] for goal in run["goals"]}) == len(run["goals"])
