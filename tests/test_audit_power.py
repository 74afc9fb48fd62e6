"""How many runs does the audit need, beside a plain histogram, to find what is broken?"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_audit import BROKEN, laplace, randomized_response

from dpnotes.audit import epsilon_lower_bound
from dpnotes.audit._lower_bound import _log_ratio_bound, takes_rng

SIZES = [100 * 2**power for power in range(9)]
SEEDS = range(5)
BINS = 64


def histogram_bound(mechanism, dataset, neighbour, *, trials, rng):
    """Bound epsilon as a plain audit does: bins on one half of the runs, the best on the other.

    A number has 64 bins of even frequency, an array is summed, and anything else is its own bin.
    """
    rng = np.random.default_rng(rng)
    outputs = [[run(mechanism, data, rng) for _ in range(trials)] for data in (dataset, neighbour)]
    half = trials // 2
    cells = binned(outputs, half)
    count = cells.max() + 1
    seen = np.array([np.bincount(row[:half], minlength=count) for row in cells])
    bounds = _log_ratio_bound(seen, seen[::-1], half, 0.025, 0.0)
    first, cell = np.unravel_index(np.argmax(bounds), bounds.shape)
    hits = (cells[:, half:] == cell).sum(axis=1)
    return float(_log_ratio_bound(hits[first], hits[1 - first], trials - half, 0.025, 0.0))


def run(mechanism, data, rng):
    try:
        output = mechanism(data, rng=rng) if takes_rng(mechanism) else mechanism(data)
    except (KeyError, ValueError) as error:
        return repr(error)
    if isinstance(output, np.ndarray):
        return float(output.sum())
    number = isinstance(output, int | float | np.number) and not math.isnan(output)
    return float(output) if number else repr(output)


def binned(outputs, half):
    """Return the bin of every output, made of the first half of the runs alone."""
    known = [out for row in outputs for out in row[:half] if isinstance(out, float)]
    edges, labels = np.unique(known), {}
    if len(edges) > BINS:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1]))

    def find_bin(output):
        if isinstance(output, float):
            return int(np.searchsorted(edges, output))
        return BINS + 1 + labels.setdefault(output, len(labels))

    return np.array([[find_bin(output) for output in row] for row in outputs])


def runs_needed(audit, *case, claim, sizes=SIZES):
    """Return the fewest runs at which most audits find the claim violated, or infinity."""
    for trials in sizes:
        found = sum(audit(*case, trials=trials, rng=seed) > claim for seed in SEEDS)
        if found > len(SEEDS) / 2:
            return trials
    return math.inf


@pytest.mark.full
@pytest.mark.parametrize(("mechanism", "dataset", "neighbour", "claim", "trials"), BROKEN)
def test_what_a_histogram_finds_the_audit_finds_with_at_most_twice_the_runs(
    mechanism, dataset, neighbour, claim, trials
):
    case = mechanism, dataset, neighbour
    ours = runs_needed(epsilon_lower_bound, *case, claim=claim)
    assert ours < math.inf
    # It keeps a quarter of its runs to learn from, which tells where a single bin is the event.
    sizes = [size for size in SIZES if size < ours / 2]
    assert runs_needed(histogram_bound, *case, claim=claim, sizes=sizes) == math.inf


def test_the_histogram_finds_a_broken_coin_and_accuses_no_honest_noise():
    options = {"trials": 2000, "rng": 0}
    assert 1.5 < histogram_bound(randomized_response(2.0), 0, 1, **options) <= 2
    assert histogram_bound(laplace(1.0), 0.0, 1.0, **options) <= 1


# Beside the testers of others: measured once, by tests/benchmarks/audit_power.py.

RESULTS = Path(__file__).parents[1] / "data" / "results" / "audit_power.jsonl"


def measured():
    return [json.loads(line)["unit"] for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def test_what_any_peer_found_the_audit_found_with_no_more_runs():
    found = {}
    for unit in measured():
        if "runs_needed" in unit:
            needed = math.inf if unit["runs_needed"] is None else unit["runs_needed"]
            found.setdefault(unit["mechanism"], {})[unit["tester"]] = needed
    assert set(found) == {param.id for param in BROKEN}
    for mechanism, needed in found.items():
        assert len(needed) >= 4
        assert needed["dpnotes.audit"] == min(needed.values()) < math.inf, mechanism


def test_the_audit_accused_no_honest_mechanism_more_often_than_it_states():
    ours = [u for u in measured() if u["tester"] == "dpnotes.audit" and "accused" in u]
    assert len(ours) == 3
    for unit in ours:
        assert unit["accused"] <= stats.binom.ppf(0.999, unit["tests"], 0.05)
