"""Time everybody at every job. README.md says how; `make test` does not."""

import time
import tracemalloc

import contest_elun
import contest_exponential_mechanism
import contest_pate
import contest_private_auc
import contest_randomized_response
import contest_symmetric_loss
import contest_unary_encoding
import numpy as np
import pytest
from contest import CONTENDERS, true_counts
from machine import version

MODULES = (
    *(contest_randomized_response, contest_unary_encoding),
    *(contest_exponential_mechanism, contest_symmetric_loss, contest_elun),
    *(contest_pate, contest_private_auc),
)


# What a peer warns of is its own affair. Processor time is what a clock shows on a quiet machine,
# and nobody here computes in parallel.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda c: f"{c.job.name}: {c.name}")
def test_speed(contender, benchmark, rows):
    row = describe(contender)
    rows.append(row)
    try:
        run = contender.prepare(contender.share)
        estimate = run()
    except Exception as error:
        if contender.package is None:
            raise
        row["failed"] = f"{type(error).__name__}: {error}".splitlines()[0].replace("|", "/")
        pytest.skip(row["failed"])
    benchmark.pedantic(run, rounds=contender.rounds, iterations=contender.iterations)
    scale = contender.job.people / contender.share
    row["seconds"] = benchmark.stats.stats.median * scale
    row["fastest"] = benchmark.stats.stats.min * scale
    row["error"] = worst_error(contender, estimate)
    if contender.memory:
        row["memory"] = peak_memory(run)
        row["memory_of_a_tenth"] = peak_memory(contender.prepare(contender.share // 10))
    if contender.package is None and estimate is not None:
        assert row["error"] < 6


def describe(contender):
    """Return what is known of a contender before it runs."""
    job = contender.job
    return {
        "job": job.name,
        "title": job.title,
        "people": job.people,
        "categories": job.categories,
        "counted": job.counted,
        "name": contender.name,
        "kind": contender.kind,
        "package": contender.package,
        "version": contender.package and version(contender.package),
        "note": contender.note,
        "share": contender.share,
        "rounds": contender.rounds,
    }


def worst_error(contender, estimate):
    """Return how far off the worst estimate is, in standard deviations of ours."""
    if contender.job.variance is None or estimate is None:
        return None
    truth = true_counts(contender.share, contender.job.categories)
    deviation = np.sqrt(contender.job.variance(truth))
    return float(np.max(np.abs(estimate - truth) / deviation))


def peak_memory(run):
    """Return how many bytes a run needs at most, beside what was there before."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
