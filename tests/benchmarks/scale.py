"""What mechanisms cost at ten times the size, and what workers, networks and audits take.

    python tests/benchmarks/scale.py [sizes] [workers] [networks] [field]

Every size of a job is measured in a process of its own: the processor's seconds as the median of
some rounds, and in a further round the peak of what Python and numpy allocate beside the input.
Workers are measured by the clock, one and two of them in turn, so a row needs a machine without
other work; the load before is written beside it. Networks are trained on one core, and compared
with a large product of matrices in the same precision, which is about what the core can do.
For the audits of published packages environments are made, for which a network is needed.
Finished rows are lines of data/results/scale.jsonl, and a second start goes on.
"""

import argparse
import datetime
import functools
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "benchmarks")]

import machine  # noqa: E402
import numpy as np  # noqa: E402

RESULTS = ROOT / "data" / "results" / "scale.jsonl"
EPSILON, DELTA = 1.0, 1e-5
ROUNDS, LEAST_SECONDS = 5, 0.05
# The last is how the small grid is trained: half as wide numbers, and three runs at once.
NETWORKS = [("float32", 3), ("bfloat16", 12), ("bfloat16", 3)]
JOBS, TEAMS = {}, {}


def job(name, counted, smallest, largest):
    """Enter a function that prepares n and returns what is timed, from 10^smallest on."""

    def enter(prepare):
        JOBS[name] = (prepare, counted, [10**k for k in range(smallest, largest + 1)])
        return prepare

    return enter


def team(name, counted):
    """Enter a function that does some work with so many workers, and says how much work it is."""

    def enter(work):
        TEAMS[name] = (work, counted)
        return work

    return enter


def _other(number):
    """Yield numbers beside this one: what is asked for twice is remembered, and costs nothing."""
    return (number * (1 + k * 1e-9) for k in itertools.count())


def people(n, categories):
    return np.random.default_rng(0).integers(categories, size=n, dtype=np.uint8)


@job("randomized response: privatize, estimate", "people", 3, 8)
def randomized(n):
    from dpnotes import randomized_response as rr

    values, rng = people(n, 2), np.random.default_rng(1)
    return lambda: rr.estimate(rr.privatize(values, EPSILON, rng=rng), EPSILON)


@job("unary encoding, 16 bits: perturb, aggregate", "people", 3, 7)
def unary(n):
    from dpnotes import unary_encoding as ue

    bits, rng = np.eye(16, dtype=np.uint8)[people(n, 16)], np.random.default_rng(1)
    p, q = ue.probabilities(EPSILON)
    return lambda: ue.aggregate(ue.perturb(bits, p, q, rng=rng), p, q)


@job("exponential mechanism: one choice", "candidates", 3, 7)
def choice(n):
    from dpnotes import exponential_mechanism as em

    utilities, rng = np.linspace(0.0, 1.0, n), np.random.default_rng(1)
    return lambda: em.sample(utilities, EPSILON, sensitivity=1.0, rng=rng)


@job("exponential mechanism: a median", "records", 3, 7)
def median(n):
    from dpnotes import exponential_mechanism as em

    values, rng = np.random.default_rng(0).random(n), np.random.default_rng(1)
    return lambda: em.release_median(values, EPSILON, low=0.0, high=1.0, rng=rng)


@job("private labels: a column", "labels", 3, 7)
def labels(n):
    from dpnotes import label_privacy

    values, rng = people(n, 2), np.random.default_rng(1)
    return lambda: label_privacy.privatize(values, EPSILON, classes=(0, 1), rng=rng)


@job("accounting: Laplace releases", "releases", 1, 6)
def laplace(n):
    from dpnotes import accounting

    scales = _other(math.sqrt(n))
    return lambda: accounting.compose_laplace(next(scales), n, DELTA)


@job("accounting: steps of DP-SGD", "steps", 1, 6)
def subsampled(n):
    from dpnotes import accounting

    sigmas = _other(2.0)
    return lambda: accounting.compose_subsampled_gaussian(next(sigmas), 0.01, n, DELTA)


@job("noisy gradient descent: ten steps, 31 weights", "records", 3, 6)
def descent(n):
    from dpnotes import noisy_gradient_descent as ngd

    rng = np.random.default_rng(0)
    features, truth = rng.normal(size=(n, 31)), people(n, 2)
    return lambda: ngd.fit(features, truth, noise=2.0, rate=0.1, steps=10, delta=DELTA, rng=1)


@job("symmetric losses: the risk of all pairs, with slopes", "scores", 3, 7)
def pairs(n):
    import torch

    from dpnotes import symmetric_loss as losses

    signs = torch.from_numpy(people(n, 2).astype(np.float32) * 2 - 1)
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=n).astype(np.float32))
    scores.requires_grad_()

    def run():
        scores.grad = None
        losses.auc_risk(scores, signs, losses.barrier_hinge_loss).backward()

    return run


@job("training for noise: a private model, 31 weights", "records", 3, 6)
def model(n):
    from dpnotes.elun import PrivateLogisticRegression

    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 31))
    truth = features[:, 0] > rng.normal(size=n)
    return lambda: PrivateLogisticRegression(EPSILON, random_state=1).fit(features, truth)


@job("PATE: noisy winners of 250 votes, and their cost", "queries", 2, 6)
def winners(n):
    from dpnotes import pate

    votes = np.random.default_rng(0).multinomial(250, [0.55, *[0.05] * 9], size=n)
    mechanism = pate.GNMax(40.0)

    def run():
        mechanism.answer(votes, rng=1)
        mechanism.secret_cost(votes, DELTA)

    return run


@job("private AUC: a release", "records", 3, 7)
def area(n):
    from dpnotes import private_auc

    truth = people(n, 2)
    scores = np.random.default_rng(0).normal(size=n) + truth
    return lambda: private_auc.release_auc(truth, scores, EPSILON, rng=1)


@job("an audit: runs on one pair", "runs", 2, 6)
def audited(n):
    from dpnotes import audit

    def count(data, *, rng):
        return data + rng.laplace()

    return lambda: audit.epsilon_lower_bound(count, 0, 1, trials=n, rng=1)


def measured(name, n):
    """Return the row of one job at one size."""
    run = JOBS[name][0](n)
    seconds = _processor(run)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    row = {"cpu_seconds": float(f"{statistics.median(seconds):.3g}"), "rounds": len(seconds)}
    return row | {"peak_bytes": peak}


def _processor(run):
    """Return the processor's seconds of a call, in some rounds."""
    run()  # imports, tables that are made once
    seconds = []
    while len(seconds) < ROUNDS and (len(seconds) < 2 or sum(seconds) < 20):
        repeats, began = 0, time.process_time()
        while repeats == 0 or time.process_time() - began < LEAST_SECONDS:
            run()
            repeats += 1
        seconds.append((time.process_time() - began) / repeats)
    return seconds


# What a second worker gains.

_WORK = 30_000
_CUT = ["--small", "--data", "cifar10", "--networks", "patches", "--seeds", "2"]


def _count(data, *, rng):
    return data + rng.laplace()


def _report(jobs):
    from dpnotes import audit

    pairs = [(k, k + 1) for k in range(16)]
    audit.report(_count, 1.0, pairs, trials=_WORK, jobs=jobs, rng=1)
    return len(pairs) * _WORK * 2


@team("an audit of 16 pairs: processes of joblib", "runs")
def processes(workers):
    return _timed(_report, workers)


@team("an audit of 16 pairs: workers of Dask", "runs")
def dask_audit(workers):
    import joblib
    from dask.distributed import Client, LocalCluster

    with (
        _cluster(LocalCluster, workers) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        _report(workers)  # the workers import what they need
        return _timed(_report, workers)


@team("an experiment of 2 units: workers of Dask", "models")
def dask_experiment(workers):
    from dask.distributed import LocalCluster

    with _cluster(LocalCluster, workers) as cluster, TemporaryDirectory() as folder:
        return _timed(_experiment, cluster.scheduler_address, Path(folder) / "results.jsonl")


def _experiment(address, out):
    from dpnotes.experiments import _run

    words = [*_CUT, "--scheduler", address, "--out", str(out)]
    if _run.main("symmetric_loss", words) != 0:
        raise SystemExit("The experiment has failed, and says why above.")
    lines = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return sum(len(line["runs"]) for line in lines if "runs" in line)


def _cluster(kind, workers):
    return kind(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=0,
    )


def _timed(work, *arguments):
    began = time.perf_counter()
    size = work(*arguments)
    return size, time.perf_counter() - began


def compared(name, rounds=3):
    """Return the row of one kind of workers: one of them and two, in turn."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    seconds = {1: [], 2: []}
    for _ in range(rounds):
        for workers, found in seconds.items():
            size, clock = TEAMS[name][0](workers)
            found.append(round(clock, 2))
    one, two = map(statistics.median, seconds.values())
    return {"work": size, "seconds": seconds, "times_as_quick": round(one / two, 2), "load": load}


# How many images a second a network learns from.

_BATCH, _IMAGES, _SIDE = 128, 1_280, 2_048


def trained(name, precision, at_once):
    """Return the row of one network: its speed, its work an image, and what the core can do."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from dpnotes import symmetric_loss, training

    build = {"cnn": training.reference_cnn, "convnet": training.small_convnet}[name]
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(256, size=(_IMAGES, 32, 32, 3), dtype=np.uint8))
    labels = torch.from_numpy(rng.choice([-1.0, 1.0], size=(at_once, _IMAGES)).astype(np.float32))
    hinge = partial(symmetric_loss.auc_risk, loss=symmetric_loss.hinge_loss, check=False)
    schedule = training.Schedule(
        epochs=2, batch_size=_BATCH, learning_rate=1e-4, evaluate_after=(2,), precision=precision
    )
    fit = partial(training.fit, build, images, labels, [hinge] * at_once, images[:1], schedule)
    with FlopCounterMode(display=False) as counter:
        build(1, torch.Generator().manual_seed(0))(images[:_BATCH]).sum().backward()
    kind = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    matrix = torch.ones(_SIDE, _SIDE, dtype=kind)
    runs = partial(fit, seed=0), partial(torch.mm, matrix, matrix)
    seconds, limit = (statistics.median(_processor(run)) for run in runs)
    return {
        "images_per_second": round(2 * _IMAGES * at_once / seconds),
        "operations_per_image": counter.get_total_flops() / _BATCH,
        "limit_per_second": float(f"{2 * _SIDE**3 / limit:.4g}"),
    }


# What an audit of a published package costs.


@functools.cache
def field_runner():
    """Return the program that audits published packages; another one has its name, too."""
    folder = ROOT / "tests" / "field"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("field_run", folder / "run.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def audited_package(name):
    """Return the row of one package: its environment, and one series of each of its audits.

    Nobody looks at what a series finds, so it is not one of the tries that the field counts.
    """
    runner = field_runner()
    package = runner.packages()[name]
    seconds, failed = [], 0
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        python = runner.make_environment(Path(folder), package.with_suffix(".txt"))
        environment = time.perf_counter() - began
        for audit in runner.audited.load(package):
            before = _children()
            found = runner.in_a_process(python, package, audit, seed=1)
            seconds.append(round(_children() - before, 2))
            failed += "error" in found
    row = {"environment_seconds": round(environment, 1), "cpu_seconds": seconds}
    return row | {"failed": failed}


def _children():
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _in_a_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _sizes():
    for name, (_, counted, sizes) in JOBS.items():
        for n in sizes:
            yield {"job": name, "counted": counted, "size": n}, measured, (name, n)


def _workers():
    for name, (_, counted) in TEAMS.items():
        yield {"job": name, "counted": counted, "workers": 2}, compared, (name,)


def _networks():
    for name in ("convnet", "cnn"):
        for precision, at_once in NETWORKS:
            unit = {"job": name, "counted": "images", "precision": precision, "at_once": at_once}
            yield unit, trained, (name, precision, at_once)


def _field():
    for name in field_runner().packages():
        yield {"package": name}, audited_package, (name,)


# Of each kind, what a row is of, the function that gives it, and with which arguments.
UNITS = {"sizes": _sizes, "workers": _workers, "networks": _networks, "field": _field}


def provenance():
    """Return where and when, and with which code."""
    about = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    about |= {"commit": machine.commit(), "machine": machine.describe_machine()}
    return about | {"versions": machine.versions(["dask", "numpy", "scipy", "torch"])}


def main():
    """Measure what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=UNITS, help="by default sizes")
    # With nothing given, Python 3.11 would check a default against the choices as a whole.
    kinds = parser.parse_args(sys.argv[1:] or ["sizes"]).kinds
    os.environ["OMP_NUM_THREADS"] = "1"
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    done = {json.dumps(json.loads(line)["unit"]) for line in lines}
    units = [unit for kind in kinds for unit in UNITS[kind]()]
    for unit, function, arguments in units:
        if json.dumps(unit) in done:
            continue
        # Workers make processes of their own, which a process of a pool may not.
        alone = function is not compared
        row = _in_a_process(function, *arguments) if alone else function(*arguments)
        line = {"unit": unit, **row, "provenance": provenance()}
        print(json.dumps({**unit, **row}), flush=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
