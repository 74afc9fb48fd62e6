"""The page on clusters: its code runs, and its commands have the options that they use."""

import re
import shlex
from pathlib import Path

import measure
import numpy as np
import pytest

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("distributed")
pytest.importorskip("sklearn")

from distributed.cli import dask_scheduler, dask_worker  # noqa: E402

from dpnotes.audit import report  # noqa: E402
from dpnotes.experiments import _cluster, _runs, pate, symmetric_loss  # noqa: E402

PAGE = Path(__file__).parents[1] / "book" / "use" / "cluster.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXPERIMENTS = {module.EXPERIMENT.layout.experiment: module for module in (pate, symmetric_loss)}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.S | re.M)


def commands(*starts):
    """Return the words of each command of the page that starts so, wherever in a line it stands."""
    found = []
    for line in "".join(blocks("sh")).splitlines():
        for start in starts:
            if start in line:
                words = line.partition(start)[2].partition("&")[0].partition(";")[0]
                found.append(shlex.split(words))
    return found


@pytest.fixture(scope="module")
def run():
    """Return what the code of the page leaves behind, on a cluster of threads."""
    names = {"__name__": "page"}
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        first, *others = blocks("python")
        assert first.count("tcp://127.0.0.1:8786") == 1
        for block in (first.replace("tcp://127.0.0.1:8786", cluster.scheduler_address), *others):
            exec(compile(block, str(PAGE), "exec"), names)
        names["client"].close()
    return names


def test_the_audit_of_the_page_says_what_it_says_on_one_machine(run):
    alone = report(run["count"], 1.0, run["pairs"], trials=4000, rng=1)
    assert run["found"] == alone
    assert alone.verdict == "not refuted"


def test_the_teachers_and_trials_of_the_page_do_what_a_loop_does(run):
    assert run["votes"].shape == (100, 2)
    assert np.array_equal(run["said"], [run["teach"](part) for part in run["parts"]])
    assert run["scores"] == [run["trial"](seed) for seed in run["seeds"]]
    assert len(set(run["seeds"])) == 6


@pytest.mark.parametrize(
    ("start", "main", "times"),
    [("dask scheduler ", dask_scheduler.main, 5), ("dask worker ", dask_worker.main, 6)],
)
def test_each_command_of_dask_has_its_options(start, main, times):
    found = commands(start)
    assert len(found) == times
    known = {name for option in main.params for name in (*option.opts, *option.secondary_opts)}
    for words in found:
        # A worker takes any option for one of its class: so the names are compared, too.
        assert {word for word in words if word.startswith("--")} <= known
        main.make_context("dask", words)


def test_each_command_of_an_experiment_has_its_options():
    found = commands("python -m dpnotes.experiments.")
    assert len(found) == 5
    for name, *words in found:
        words = ["cpu" if word == "cuda" else word for word in words]
        chosen = _runs.parser(EXPERIMENTS[name].EXPERIMENT).parse_args(words)
        assert re.fullmatch(r"tcp://(127\.0\.0\.1|scheduler|\$\(hostname\)):8786", chosen.scheduler)


def test_the_page_says_how_long_a_scheduler_is_waited_for():
    assert _cluster.PATIENCE == 10
    assert "| no scheduler answers | ten seconds, and a message |" in TEXT


def test_the_page_says_after_how_many_workers_a_unit_is_given_up():
    import dask

    assert dask.config.get("distributed.scheduler.allowed-failures") == 3
    assert "four workers die over one unit" in TEXT


def test_the_page_takes_as_long_as_it_says():
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.S | re.M)
    cells = [{"cell_type": "markdown", "source": prose}]
    code = blocks("python") + blocks("sh")
    cells += [{"cell_type": "code", "metadata": {}, "source": block} for block in code]
    [minutes] = re.findall(r"About (\d+) minutes", TEXT)
    assert int(minutes) == measure.measure(cells).minutes
