"""The runner of long measurements: a line a unit, here, in processes and on a cluster."""

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from long_runs import read_lines, start  # noqa: E402

from dpnotes import datasets  # noqa: E402
from dpnotes.audit import pairs_by_replacement, report  # noqa: E402
from dpnotes.experiments import _run  # noqa: E402
from dpnotes.experiments._run import RunError, Unit  # noqa: E402

RESULTS = datasets._SHIPPED / "results"


def learn(seed):
    """Descend a gradient: a number that another order of adding up would change."""
    rng = np.random.default_rng(np.random.SeedSequence(7).spawn(20)[seed])
    x = torch.from_numpy(rng.normal(size=(300, 20)).astype(np.float32))
    labels, weights = torch.sign(x[:, 0]), torch.zeros(20, requires_grad=True)
    for _ in range(10):
        risk = torch.log1p(torch.exp(-labels * (x @ weights))).mean()
        [slope] = torch.autograd.grad(risk, weights)
        weights = (weights - slope).detach().requires_grad_()
    return float(weights.detach().double().sum())


def list_units(chosen):
    setup = {"epochs": chosen.epochs}
    rows = [{"name": name} for name in chosen.names]
    return [Unit({"seed": seed}, setup, rows) for seed in range(min(5, chosen.seeds))]


def measure(unit, chosen, basis):
    """Measure a unit; some of them fail, or kill the process that measures them."""
    seed, died = unit.key["seed"], chosen.out.with_name("died")
    if seed in chosen.failing:
        raise ZeroDivisionError("no such half")
    if seed == chosen.deadly and not (died.exists() and chosen.once):
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return [{**row, "learned": learn(seed), "basis": basis} for row in unit.rows]


def add_options(parser):
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--names", default="a")
    parser.add_argument("--failing", type=int, nargs="*", default=())
    parser.add_argument("--deadly", type=int)
    parser.add_argument("--once", action="store_true")


# What `main` finds by this name.
TOY = sys.modules["dpnotes.experiments.toy"] = SimpleNamespace(
    __name__="dpnotes.experiments.toy",
    __doc__="Learn a little.",
    DATA="waves",
    CUT="half",
    LISTS={"names": "name"},
    add_options=add_options,
    list_units=list_units,
    measure_unit=measure,
    prepare=lambda chosen, shared: ({"prepared": True}, 0.5),
)
run = partial(start, "toy")


def seeds(path):
    return [line["unit"]["seed"] for line in read_lines(path) if "unit" in line]


def measured(path):
    """Return all that a file says, but when and where."""
    kept = [{k: v for k, v in line.items() if k != "provenance"} for line in read_lines(path)]
    return sorted(kept, key=lambda line: line.get("unit", {}).get("seed", -1))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "new" / "results.jsonl"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the results of one process."""
    out = tmp_path_factory.mktemp("alone") / "results.jsonl"
    assert run("--out", out) == 0
    return out


# A unit is a line.


def test_a_unit_is_a_line_that_looks_like_the_recorded_ones(alone):
    head, prepared, first, *_ = read_lines(alone)
    assert head == {"experiment": "toy", "cut": None, "data": "waves"}
    assert prepared == {"experiment": "toy", "prepared": True}
    assert first["unit"] == {"seed": 0}
    assert first["setup"] == {"epochs": 1, "names": ["a"]}
    assert first["runs"] == [{"name": "a", "learned": learn(0), "basis": 0.5}]
    for name in ("symmetric_loss", "ten_classes", "billions"):
        recorded = read_lines(RESULTS / f"{name}.jsonl")[1]
        assert list(first) == list(recorded)
        assert list(first["provenance"]) == list(recorded["provenance"])
    assert seeds(alone) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["pate", "symmetric_loss", "ten_classes", "billions"])
def test_the_committed_results_are_all_of_the_grid_that_they_name(name):
    experiment = import_module(f"dpnotes.experiments.{name}")
    lines = read_lines(RESULTS / f"{name}.jsonl")
    cut = experiment.CUT if lines[0]["cut"] else None
    assert lines[0] == {"experiment": name, "cut": cut, "data": experiment.DATA}
    words = ["--out", "x", *["--small"] * bool(cut)]
    chosen = _run.make_parser(experiment).parse_args(words)
    assert _run.list_lacking(experiment, chosen, lines) == []


def test_a_second_start_does_nothing_and_prepares_nothing(alone, capsys, monkeypatch):
    before = alone.read_bytes()
    monkeypatch.setattr(TOY, "prepare", None)
    assert run("--out", alone) == 0
    assert alone.read_bytes() == before
    assert capsys.readouterr().err == ""


def test_rows_that_are_new_are_measured_alone_and_the_old_lines_stay(out):
    for more in (["--names=ab"], ["--names=abc"], ["--names=abc", "--epochs=2"], ["--names=abc"]):
        before = out.read_bytes() if out.exists() else b""
        run("--out", out, "--seeds", 2, *more)
        assert out.read_bytes().startswith(before)
    # Units of another set-up stand beside the old ones.
    found = [(line["unit"]["seed"], line["setup"]) for line in read_lines(out)[2:]]
    setups = [(1, "ab"), (1, "c"), (2, "abc")]
    expected = [{"epochs": epochs, "names": [*names]} for epochs, names in setups]
    assert found == [(seed, setup) for setup in expected for seed in (0, 1)]
    for line in read_lines(out)[2:]:
        assert [row["name"] for row in line["runs"]] == line["setup"]["names"]


def test_a_unit_that_fails_is_told_and_costs_no_other(alone, out, capsys):
    assert run("--out", out, "--failing", 0, 3) == 1
    said = capsys.readouterr().err
    assert "seed 0: failed, ZeroDivisionError: no such half\n" in said
    assert said.endswith("toy: 2 of 5 units failed; the file has the others\n")
    assert seeds(out) == [1, 2, 4]
    assert run("--out", out) == 0
    assert seeds(out) == [1, 2, 4, 0, 3]
    assert measured(out) == measured(alone)


def test_a_number_that_is_none_is_not_written(out, monkeypatch):
    monkeypatch.setattr(TOY, "measure_unit", lambda *_: [{"name": "a", "learned": float("nan")}])
    with pytest.raises(ValueError, match="not JSON compliant"):
        run("--out", out)
    assert seeds(out) == []


# What is cut off, and what is damaged.


@pytest.mark.parametrize("length", [1, 100, -2, -1])
def test_a_last_line_that_was_cut_off_is_measured_again(alone, out, length):
    *lines, last = alone.read_bytes().splitlines(keepends=True)
    out.parent.mkdir()
    out.write_bytes(b"".join(lines) + last[:length])
    assert run("--out", out) == 0
    assert measured(out) == measured(alone)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"{", "must hold a JSON object a line: Expecting property name"),
        (b'{"a": 1} {"a": 1}', "must hold a JSON object a line: Expecting ',' delimiter: line 2 "),
        (b"\xff\xfe", "must hold a JSON object a line: "),
    ],
)
def test_a_damaged_line_is_refused(alone, out, capsys, damaged, message):
    first, *lines = alone.read_bytes().splitlines(keepends=True)
    out.parent.mkdir()
    out.write_bytes(b"".join([first, damaged + b"\n", *lines]))
    before = out.read_bytes()
    assert run("--out", out) == 1
    assert f"results.jsonl {message}" in capsys.readouterr().err
    assert out.read_bytes() == before


# The command line.


def test_machines_measure_a_part_each_into_files_that_are_read_as_one(alone, out, monkeypatch):
    monkeypatch.setattr(datasets, "_SHIPPED", out.parent)
    folder = out.parent / "results"
    for number in (1, 2):
        run("--out", folder / f"toy-{number}.jsonl", "--part", f"{number}/2")
    assert [seeds(folder / f"toy-{number}.jsonl") for number in (1, 2)] == [[0, 2, 4], [1, 3]]
    joined = datasets.load_results("toy")
    found = {unit["seed"]: unit["runs"] for unit in joined["units"]}
    assert found == {line["unit"]["seed"]: line["runs"] for line in read_lines(alone)[2:]}
    assert (joined["data"], joined["prepared"]) == ("waves", True)
    run("--small", "--out", folder / "toy-3.jsonl")
    with pytest.raises(ValueError, match="the files must agree in what all units share"):
        datasets.load_results("toy")


def test_a_cut_is_never_mixed_with_the_whole_nor_two_experiments(alone, capsys, monkeypatch):
    before = alone.read_bytes()
    assert run("--small", "--out", alone) == 1
    assert "must have the 'cut' that is asked for, and has another" in capsys.readouterr().err
    monkeypatch.setattr(TOY, "__name__", "dpnotes.experiments.other")
    assert run("--out", alone) == 1
    assert "must have the 'experiment' that is asked for" in capsys.readouterr().err
    assert alone.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        *(f"--part={part}" for part in ("0/2", "3/2", "1", "a/b")),
        *("--seeds=0", "--seeds=1.5", "--jobs=0", "--device=cuda:99", "--device=abacus"),
    ],
)
def test_words_that_mean_nothing_are_refused_before_anything_is_done(out, words):
    with pytest.raises(SystemExit) as stopped:
        run("--out", out, words)
    assert stopped.value.code == 2
    assert not out.parent.exists()


def test_images_of_a_file_are_read_and_what_is_damaged_or_of_other_classes_is_refused(tmp_path):
    path = tmp_path / "images.npz"
    parts = {name: np.arange(10) for name in datasets.ImageData._fields}
    np.savez(path, **parts)
    assert _run.load_images("mnist", str(path)).y_test.tolist() == [*range(10)]
    with pytest.raises(RunError, match=r"path must hold the classes \[0, 7\] of cifar10, got "):
        _run.load_images("cifar10", str(path), (0, 7))
    whole = path.read_bytes()
    np.savez(path, **{**parts, "x_train": np.array([print], dtype=object)})
    for number, content in enumerate((path.read_bytes(), whole[:100], b"")):
        damaged = tmp_path / f"{number}.npz"
        damaged.write_bytes(content)
        with pytest.raises(RunError, match=r"\.npz must be an archive with x_train"):
            _run.load_images("mnist", str(damaged))


def test_what_stops_every_unit_is_said_in_a_line(out, capsys, monkeypatch):
    absent = Mock(side_effect=datasets.DatasetUnavailable("fetch it with ..."))
    monkeypatch.setattr(TOY, "measure_unit", absent)
    assert run("--out", out) == 1
    assert capsys.readouterr().err.endswith(".toy: fetch it with ...\n")


def test_a_place_where_nothing_can_be_written_is_said_in_a_line(out, capsys):
    out.parent.touch()
    assert run("--out", out) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m dpnotes.experiments.toy: [Errno ")


def test_an_experiment_that_is_started_as_a_script_has_names_that_workers_know(out):
    """What is defined in __main__ is another thing in another process."""
    code = f"""
import runpy, sys
from dpnotes.experiments import _run
_run._measure = lambda experiment, chosen: print(experiment.measure_unit.__module__)
sys.argv = ["x", "--out", {str(out)!r}]
runpy.run_module("dpnotes.experiments.pate", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "dpnotes.experiments.pate\n", done.stderr


# Several processes.


def test_two_processes_measure_what_one_does_and_go_on_where_one_has_died(alone, out, capsys):
    assert run("--out", out, "--jobs", 2, "--seeds", 3) == 0
    assert run("--out", out, "--jobs", 2, "--deadly", 3) == 1
    assert "A worker process managed by the executor was unexpectedly" in capsys.readouterr().err
    done = out.read_bytes()
    assert {0, 1, 2} <= set(seeds(out)) <= {0, 1, 2, 4}
    assert run("--out", out) == 0
    assert out.read_bytes().startswith(done)
    assert measured(out) == measured(alone)


@contextmanager
def cluster():
    """Start a scheduler and two worker processes, each with a thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as started:
        yield started


def noisy_count(records, *, rng):
    return sum(records) + int(rng.integers(3))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cluster_measures_what_one_process_does_though_a_worker_dies(alone, out, capfd):
    import distributed
    import joblib

    audit = partial(
        report, noisy_count, 0.5, pairs_by_replacement([0, 1, 1], [0, 1]), trials=300, rng=3
    )
    with cluster() as started:
        words = ("--out", out, "--scheduler", started.scheduler_address)
        assert run(*words, "--failing", 0, "--deadly", 2, "--once") == 1
        assert out.with_name("died").exists()
        assert "seed 0: failed, ZeroDivisionError: no such half\n" in capfd.readouterr().err
        assert sorted(seeds(out)) == [1, 2, 3, 4]
        assert run(*words) == 0
        assert measured(out) == measured(alone)
        with distributed.Client(started), joblib.parallel_config(backend="dask"):
            assert audit(jobs=2) == audit(jobs=1)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_unit_that_kills_each_worker_is_named_and_costs_no_other(out, capfd):
    with cluster() as started:
        assert run("--out", out, "--scheduler", started.scheduler_address, "--deadly", 2) == 1
    assert "seed 2: failed, KilledWorker: " in capfd.readouterr().err
    assert sorted(seeds(out)) == [0, 1, 3, 4]


def measure_two(unit, chosen, basis):
    time.sleep(600 if unit.key["seed"] > 1 else 0)
    return measure(unit, chosen, basis)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_scheduler_that_goes_away_leaves_a_file_that_a_second_start_completes(
    alone, out, monkeypatch
):
    done = []
    with cluster() as started, monkeypatch.context() as patch:
        patch.setattr(TOY, "measure_unit", measure_two)
        words = ("--out", out, "--scheduler", started.scheduler_address)
        thread = threading.Thread(target=lambda: done.append(run(*words)))
        thread.start()
        end = time.monotonic() + 60
        while not out.exists() or len(seeds(out)) < 2:
            assert time.monotonic() < end
            time.sleep(0.1)
    thread.join(60)
    assert done == [1]
    before = out.read_bytes()
    assert run("--out", out) == 0
    assert out.read_bytes().startswith(before)
    assert measured(out) == measured(alone)


def test_a_scheduler_that_is_not_there_and_an_extra_that_is_missing_are_named(
    out, capfd, monkeypatch
):
    pytest.importorskip("distributed")
    for address in ("nonsense://host:8786", "tcp://127.0.0.1:port"):
        assert run("--out", out, "--scheduler", address) == 1
        assert f"no Dask scheduler answers at {address!r}" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("--out", out, "--scheduler", "tcp://127.0.0.1:8786") == 1
    assert "--scheduler needs Dask: pip install dpnotes[cluster]" in capfd.readouterr().err
    assert seeds(out) == []


def test_each_command_of_the_page_on_clusters_has_the_options_that_it_names():
    pytest.importorskip("distributed")
    from distributed.cli import dask_scheduler, dask_worker

    page = Path(__file__).parents[1] / "book" / "use" / "cluster.ipynb"
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    shell = re.findall(r"```sh(.*?)```", "".join("".join(cell["source"]) for cell in cells), re.S)
    start = r"(dask (?:scheduler|worker)|python -m (dpnotes\.experiments\.\w+))( [^&;\n]*)"
    found = re.findall(start, "".join(shell))
    assert len(found) == 16
    for command, module, options in found:
        words = ["cpu" if word == "cuda" else word for word in shlex.split(options)]
        if module:
            chosen = _run.make_parser(import_module(module)).parse_args(words)
            assert chosen.scheduler.startswith("tcp://")
            continue
        main = {"scheduler": dask_scheduler, "worker": dask_worker}[command.split()[-1]].main
        known = {name for option in main.params for name in option.opts + option.secondary_opts}
        # A worker takes any option for one of its class: so the names are compared, too.
        assert {word for word in words if word.startswith("--")} <= known
        main.make_context("dask", words)
