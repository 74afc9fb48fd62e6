"""What each mechanism costs at ten times the size, and what a second worker gains.

    python tests/benchmarks/scale.py [sizes] [workers]

Every size of a job is measured in a process of its own: the processor's seconds as the median of
some rounds, and in a further round the peak of what Python and numpy allocate beside the input.
Workers are measured by the clock, one and two of them in turn, so a row needs a machine without
other work; the load before is written beside it. Finished rows are lines of
data/results/scale.jsonl, and a second start goes on.
"""

import argparse
import datetime
import itertools
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "benchmarks")]

import machine  # noqa: E402
import numpy as np  # noqa: E402

RESULTS = ROOT / "data" / "results" / "scale.jsonl"
EPSILON, DELTA = 1.0, 1e-5
ROUNDS, LEAST_SECONDS = 5, 0.05
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

    torch.set_num_threads(1)
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
    run()  # imports, tables that are made once
    seconds = []
    while len(seconds) < ROUNDS and (len(seconds) < 2 or sum(seconds) < 20):
        repeats, began = 0, time.process_time()
        while repeats == 0 or time.process_time() - began < LEAST_SECONDS:
            run()
            repeats += 1
        seconds.append((time.process_time() - began) / repeats)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    row = {"cpu_seconds": float(f"{statistics.median(seconds):.3g}"), "rounds": len(seconds)}
    return row | {"peak_bytes": peak}


# What a second worker gains.

_WORK = 30_000


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


def _in_a_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def provenance():
    """Return where and when, and with which code."""
    about = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    about |= {"commit": machine.commit(), "machine": machine.describe_machine()}
    return about | {"versions": machine.versions(["dask", "numpy", "scipy", "torch"])}


def main():
    """Measure what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=["sizes", "workers"], default=["sizes"])
    kinds = parser.parse_args().kinds
    os.environ["OMP_NUM_THREADS"] = "1"
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    done = {json.dumps(json.loads(line)["unit"]) for line in lines}
    units = []
    if "sizes" in kinds:
        units += [
            ({"job": name, "counted": counted, "size": n}, measured, (name, n))
            for name, (_, counted, sizes) in JOBS.items()
            for n in sizes
        ]
    if "workers" in kinds:
        units += [
            ({"job": name, "counted": counted, "workers": 2}, compared, (name,))
            for name, (_, counted) in TEAMS.items()
        ]
    for unit, function, arguments in units:
        if json.dumps(unit) in done:
            continue
        # Workers make processes of their own, which a process of a pool may not.
        alone = function is measured
        row = _in_a_process(function, *arguments) if alone else function(*arguments)
        line = {"unit": unit, **row, "provenance": provenance()}
        print(json.dumps({**unit, **row}), flush=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
