"""Units on a cluster: two worker processes, of which one is killed; and a scheduler that goes."""

import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("distributed")

import joblib  # noqa: E402

from dpnotes.audit import in_a_process, pairs_by_replacement, report  # noqa: E402
from dpnotes.datasets import DatasetUnavailable  # noqa: E402
from dpnotes.experiments import _cluster, _runs, _units, _votes, pate  # noqa: E402
from dpnotes.experiments._units import Layout, RunError, Unit  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

LAYOUT = Layout("toy", "runs", names=("name",))
SECONDS = 120  # in which each thing here has to happen


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


def measure(unit, chosen, basis):
    """Measure a unit; some of them fail, wait for a file, or kill the worker that measures them."""
    seed, folder = unit.key["seed"], chosen.out.parent
    if seed in chosen.failing:
        raise ZeroDivisionError("no such half")
    if seed == chosen.deadly and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == chosen.slow:
        (folder / "waiting").write_text(str(os.getpid()))
        until(lambda: (folder / "go").exists())
    return {"runs": [{**row, "learned": learn(seed), "basis": basis} for row in unit.rows]}


def list_units(chosen, shared):
    return [Unit({"seed": seed}, {"epochs": 3}, ({"name": "a"},)) for seed in range(chosen.seeds)]


def add_options(parser):
    for name in ("deadly", "slow"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--failing", type=int, nargs="*", default=())
    parser.add_argument("--sum", action="store_true")


def add_up(chosen, call):
    chosen.out.write_text(str(call(sum, [1, 2])))


TOY = _runs.Experiment(
    layout=LAYOUT,
    description="Learn a little.",
    actions={"sum": add_up},
    add_options=add_options,
    head=lambda chosen: {"cut": None},
    prepare=lambda chosen, call: {"prepared": call(os.path.join, "a", "b")},
    basis=lambda chosen: [0.5],
    list_units=list_units,
    measure=measure,
)


def run(*words):
    return _runs.main(TOY, [str(word) for word in words])


def until(holds):
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def measured(path):
    """Return all that a file says, but when and where."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [{k: v for k, v in line.items() if k != "provenance"} for line in lines]
    return sorted(kept, key=lambda line: line.get("unit", {}).get("seed", -1))


def seeds(path):
    return [line["unit"]["seed"] for line in measured(path) if "unit" in line]


@contextmanager
def local_cluster():
    """Start a scheduler and two worker processes, each with a thread."""
    started = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )
    try:
        yield started
    finally:
        gc.collect()  # a client that nobody closed must not be collected while the loop is stopped
        # Closed workers are gone at once; whoever then waits for Dask's lock is left behind.
        closing = threading.Thread(target=started.close, daemon=True)
        closing.start()
        closing.join(30)


@pytest.fixture(scope="module")
def cluster():
    with local_cluster() as started:
        yield started


@pytest.fixture
def address(cluster):
    until(lambda: len(cluster.scheduler.workers) == 2)
    return cluster.scheduler_address


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the results of one process."""
    out = tmp_path_factory.mktemp("alone") / "results.jsonl"
    assert run("--out", out, "--seeds", 6) == 0
    return out


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.jsonl"


# A cluster does what a process does.


def test_two_workers_measure_bit_for_bit_what_one_process_does(address, alone, out):
    assert run("--out", out, "--seeds", 6, "--scheduler", address) == 0
    assert measured(out) == measured(alone)
    runs = [run for line in measured(out)[2:] for run in line["runs"]]
    assert len({run["learned"] for run in runs}) == 6
    assert all(run["basis"] == [0.5] for run in runs)
    assert sorted(kept.name for kept in out.parent.iterdir()) == ["results.jsonl", "results.lock"]


def test_units_are_written_down_as_they_come(address, out):
    done = []
    words = ("--out", out, "--seeds", 6, "--slow", 0, "--scheduler", address)
    thread = threading.Thread(target=lambda: done.append(run(*words)), daemon=True)
    thread.start()
    until(lambda: out.exists() and seeds(out) == [1, 2, 3, 4, 5])
    assert not done
    (out.parent / "go").touch()
    thread.join(SECONDS)
    assert done == [0]
    assert seeds(out) == [0, 1, 2, 3, 4, 5]


def test_a_unit_that_fails_is_told_and_costs_no_other(address, alone, out, capfd):
    words = ("--out", out, "--seeds", 6, "--scheduler", address)
    assert run(*words, "--failing", 0, 3) == 1
    said = capfd.readouterr().err
    assert "seed 0: failed, ZeroDivisionError: no such half" in said
    assert "seed 3: failed, ZeroDivisionError: no such half" in said
    assert said.endswith("toy: 2 of 6 units failed; the file has the others\n")
    assert seeds(out) == [1, 2, 4, 5]
    assert run(*words) == 0
    assert measured(out) == measured(alone)


def test_what_other_processes_measure_is_left_to_them_and_taken_over_if_that_fails(
    address, alone, out, capfd
):
    held = LAYOUT.identity({"seed": 1}, {"epochs": 3})
    done = []
    words = ("--out", out, "--seeds", 6, "--scheduler", address)
    thread = threading.Thread(target=lambda: done.append(run(*words)), daemon=True)
    with _units.claimed(out, held, patient=False):
        thread.start()
        until(lambda: out.exists() and seeds(out) == [0, 2, 3, 4, 5])
        thread.join(0.3)
        assert not done
    thread.join(SECONDS)
    assert done == [0]
    assert "waiting for 1 units that other processes measure" in capfd.readouterr().err
    assert measured(out) == measured(alone)


def test_units_that_were_sent_are_left_alone_by_other_processes(address, out):
    sent = Unit({"seed": 0}, {"epochs": 3}, ({"name": "a"},))
    words = ("--out", out, "--seeds", 1, "--slow", 0, "--scheduler", address)
    thread = threading.Thread(target=run, args=words, daemon=True)
    thread.start()
    until((out.parent / "waiting").exists)
    with _units.Results(out, LAYOUT, print).claimed(sent, patient=False) as mine:
        assert not mine
    (out.parent / "go").touch()
    thread.join(SECONDS)
    assert seeds(out) == [0]


def test_an_action_and_what_all_units_rest_on_are_done_by_a_worker(address, out):
    assert run("--out", out, "--sum", "--scheduler", address) == 0
    assert out.read_text() == "3"
    with _cluster.engine(address, print) as engine:
        assert engine.call(os.getpid) != os.getpid()
        with pytest.raises(DatasetUnavailable, match="fetch it"):
            engine.call(refuse)
    with _cluster.engine(None, print) as engine:
        assert engine.call(os.getpid) == os.getpid()


def refuse():
    raise DatasetUnavailable("fetch it with ...")


def test_a_device_need_only_be_where_units_are_measured(address, out, capfd):
    assert run("--out", out, "--sum", "--device", "cuda:99", "--scheduler", address) == 0
    with pytest.raises(SystemExit):
        run("--out", out, "--sum", "--device", "cuda:99")
    assert "no such device here: cuda:99" in capfd.readouterr().err


# The votes travel, the rest is the command line.


def test_students_get_the_votes_with_their_unit_and_the_teachers_train_on_a_worker(out):
    votes, called = np.ones((4, 10)), []

    def call(function, *arguments):
        called.append(function)
        return _votes.Teaching(votes, {"setup": _votes.plain(vars(pate.TEACHERS).copy())})

    chosen = _runs.parser(pate.EXPERIMENT).parse_args(["--out", str(out)])
    teaching = call(pate._train, chosen)
    about = {**teaching.summary, "votes_sha256": _votes.sha256(votes)}
    path = pate._votes_path(chosen)
    called.clear()
    told = pate.EXPERIMENT.prepare(chosen, lambda *asked: call(*asked)._replace(summary=about))
    assert called == [pate._train]
    assert told == {"teachers": about}
    assert np.array_equal(pate.EXPERIMENT.basis(chosen), votes)
    assert path.exists()


@pytest.mark.parametrize("name", ["pate", "symmetric_loss"])
def test_an_experiment_that_is_started_as_a_script_has_names_that_workers_know(name, out):
    """What is defined in __main__ is another thing in another process."""
    code = f"""
import runpy, sys
from dpnotes.experiments import _runs
_runs._measure = lambda experiment, chosen, engine: print(experiment.measure.__module__)
sys.argv = ["x", "--out", {str(out)!r}]
runpy.run_module("dpnotes.experiments.{name}", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"dpnotes.experiments.{name}\n", done.stderr


# A scheduler that goes away, or was never there.


@contextmanager
def started(folder, port):
    """Start a scheduler and a worker as commands, as on other machines."""
    # Both take tasks apart, and so have to find this module.
    path = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"DASK_DISTRIBUTED__WORKER__DAEMON": "false", "PYTHONPATH": path}
    host = ("--host", "127.0.0.1")
    quiet = {"env": environment, "cwd": folder}
    quiet |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    code = "import sys; from distributed.cli.dask_{0} import main; sys.exit(main())"
    command = [sys.executable, "-c", code.format("scheduler"), *host, "--port", str(port)]
    scheduler = subprocess.Popen([*command, "--dashboard-address", "127.0.0.1:0"], **quiet)
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-c", code.format("worker"), address, "--nthreads", "1"]
    worker = subprocess.Popen([*command, "--no-nanny", "--no-dashboard", *host], **quiet)
    try:
        until(lambda: answers(port))
        yield address, scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def answers(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_scheduler_that_goes_away_leaves_a_file_that_a_second_start_completes(alone, out, capfd):
    words, done = ("--out", out, "--seeds", 6), []
    with started(out.parent, free_port()) as (address, scheduler):
        asked = (*words, "--slow", 3, "--scheduler", address)
        thread = threading.Thread(target=lambda: done.append(run(*asked)), daemon=True)
        thread.start()
        until((out.parent / "waiting").exists)
        until(lambda: len(seeds(out)) >= 1)
        scheduler.kill()
        thread.join(SECONDS)
    assert done == [1]
    assert f"toy: --scheduler {address} went away, or was started anew" in capfd.readouterr().err
    before = out.read_bytes()
    assert 0 < len(seeds(out)) < 6
    assert run(*words) == 0
    assert out.read_bytes().startswith(before)
    assert measured(out) == measured(alone)


def test_an_address_at_which_no_scheduler_answers_is_refused_at_once(out, capfd, monkeypatch):
    monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for address in (
            *("", "host", "nonsense://host:8786", "tcp://127.0.0.1:port", "tls://127.0.0.1:1"),
            *(f"tcp://127.0.0.1:{free_port()}", f"tcp://127.0.0.1:{silent.getsockname()[1]}"),
        ):
            began = time.monotonic()
            assert run("--out", out, f"--scheduler={address}") == 1
            assert time.monotonic() - began < 10
            said = capfd.readouterr().err
            assert "--scheduler must be the address of a Dask scheduler that answers" in said
            assert f"got {address!r}: " in said
            assert not list(out.parent.iterdir())


def test_without_the_extra_a_process_measures_and_scheduler_says_what_to_install(
    alone, out, capfd, monkeypatch
):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("--out", out, "--seeds", 6, "--scheduler", "tcp://127.0.0.1:8786") == 1
    assert "--scheduler needs dask.distributed: pip install dpnotes[cluster]" in (
        capfd.readouterr().err
    )
    assert not list(out.parent.iterdir())
    assert run("--out", out, "--seeds", 6) == 0
    assert measured(out) == measured(alone)


# What goes through joblib goes to the cluster, too.


def noisy_count(records, *, rng):
    return sum(records) + int(rng.integers(3))


def test_an_audit_on_a_cluster_says_what_it_says_alone(address):
    audit = partial(
        report, noisy_count, 0.5, pairs_by_replacement([0, 1, 1], [0, 1, 2]), trials=300, rng=3
    )
    found = audit()
    with (
        distributed.Client(address, set_as_default=True),
        joblib.parallel_config(backend="dask"),
    ):
        assert audit(jobs=2) == audit(jobs=5) == found


def test_an_audit_that_cannot_travel_is_refused_on_a_cluster_too(address):
    with (
        distributed.Client(address, set_as_default=True),
        joblib.parallel_config(backend="dask"),
        in_a_process("dpnotes.randomized_response:two_coin") as mechanism,
        pytest.raises(TypeError, match="mechanism must be one that can be sent to 2 processes"),
    ):
        report(mechanism, 1.0, [([True], [False])] * 2, trials=100, jobs=2, rng=0)


def test_a_client_that_fails_is_a_message(monkeypatch):
    def fail(*_, **__):
        raise ImportError("other versions")

    monkeypatch.setattr(distributed, "Client", fail)
    with pytest.raises(RunError, match="answers, such as tcp://host:8786, got 'a': other versions"):
        _cluster._connected("a")


# Last, as it leaves one worker until the other one is back.


def test_a_worker_that_is_killed_costs_its_unit_only(address, alone, out, capfd):
    words = ("--out", out, "--seeds", 6, "--deadly", 2, "--scheduler", address)
    assert run(*words) == 0
    assert (out.parent / "died").exists()
    assert measured(out) == measured(alone)
    assert "failed" not in capfd.readouterr().err
