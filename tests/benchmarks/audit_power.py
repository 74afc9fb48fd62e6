"""How many runs do other testers need to find what `dpnotes.audit` finds?

    python tests/benchmarks/audit_power.py FOLDER

FOLDER holds the sources of the peers, which no registry carries, each at the commit that `PEERS`
names: dp_auditorium (``python/dp_auditorium`` of google/differential-privacy) and statdp (of
cmla-psu/statdp). They need tensorflow and numba, in an environment of their own.

The mechanisms are those that `tests/test_audit.py` breaks on purpose, and some that keep what they
claim. A tester that takes arrays of numbers is given them: what is no number is numbered by its
representation, a dataclass is the list of its numbers, and an exception is an output. All testers
state an error of 0.05. Finished units are lines of data/results/audit_power.jsonl, and a second
start goes on.

The hockey-stick tester trains two networks a test, which takes half a minute. So far it was given
the mechanisms for which the audit needs more than the smallest number of runs, and fewer runs than
that or as many: ``--most`` and ``--mechanisms`` say so.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from test_audit import BROKEN, geometric, laplace, randomized_response  # noqa: E402
from test_audit_power import histogram_bound  # noqa: E402

from dpnotes import __version__  # noqa: E402
from dpnotes.audit import epsilon_lower_bound  # noqa: E402
from dpnotes.audit._lower_bound import takes_rng  # noqa: E402

RESULTS = ROOT / "data" / "results" / "audit_power.jsonl"
PEERS = {
    "google/differential-privacy": "b5b0286e313b64a692abfc8c528d54ef47d960a0",
    "cmla-psu/statdp": "d1f1e8fafa1fe15342dc9502654ec241585b9919",
}
SIZES = [400, 1600, 6400, 25_600]
SEEDS = range(3)
HONEST_SIZE, HONEST_SEEDS = 1600, range(20)
ERROR = 0.05
HONEST = [
    ("honest coin", randomized_response(1.0), 0, 1, 1.0),
    ("honest Laplace noise", laplace(1.0), 0.0, 1.0, 1.0),
    ("honest geometric noise", geometric(1.0), 0, 1, 1.0),
]


def encoded(mechanism):
    """Return a function of data and a generator whose outputs are a float or a list of them."""
    labels = {}

    def run(data, rng):
        try:
            output = mechanism(data, rng=rng) if takes_rng(mechanism) else mechanism(data)
        except (KeyError, ValueError) as error:
            output = repr(error)
        if dataclasses.is_dataclass(output):
            parts = dataclasses.astuple(output)
            output = [part for part in parts if isinstance(part, int | float)]
        if isinstance(output, list | tuple | np.ndarray):
            return np.asarray(output, dtype=float).tolist()
        if isinstance(output, int | float | np.number):
            return float(output)
        return 1000.0 + labels.setdefault(output, len(labels))

    return run


def drawn(mechanism, datasets, trials, seed):
    """Return the outputs of all runs, an array with a first axis of `trials` a data set."""
    run, rng = encoded(mechanism), np.random.default_rng(seed)
    return [np.array([run(data, rng) for _ in range(trials)]) for data in datasets]


def audit(mechanism, dataset, neighbour, claim, trials, seed):
    return epsilon_lower_bound(mechanism, dataset, neighbour, trials=trials, rng=seed) > claim


def histogram(mechanism, dataset, neighbour, claim, trials, seed):
    return histogram_bound(mechanism, dataset, neighbour, trials=trials, rng=seed) > claim


def auditorium_histogram(mechanism, dataset, neighbour, claim, trials, seed):
    """Test both directions, each at half of the error; arrays are summed, numbers have ten bins."""
    from dp_auditorium.configs import property_tester_config as config
    from dp_auditorium.testers.histogram_tester import HistogramTester

    samples = drawn(mechanism, (dataset, neighbour), trials, seed)
    samples = [s.sum(axis=1) if s.ndim > 1 else s for s in samples]
    values, places = np.unique(np.concatenate(samples), return_inverse=True)
    is_discrete = len(values) <= 64
    if is_discrete:
        samples = np.split(places, 2)
    low, high = np.nanquantile(values, [0.01, 0.99])
    tester = HistogramTester(
        config.HistogramPropertyTesterConfig(
            test_discrete_mechanism=is_discrete,
            histogram_size=len(values) if is_discrete else 10,
            min_value=float(low),
            max_value=float(high),
            approximate_dp=_claimed(claim),
        )
    )
    return _either_direction(tester, samples)


def auditorium_hockey_stick(mechanism, dataset, neighbour, claim, trials, seed):
    """Test both directions, each at half of the error, with the network of its own example."""
    import tensorflow
    from dp_auditorium.configs import property_tester_config as config
    from dp_auditorium.testers import hockey_stick_tester as tester

    tensorflow.keras.utils.set_random_seed(seed)
    samples = drawn(mechanism, (dataset, neighbour), trials, seed)
    settings = config.HockeyStickPropertyTesterConfig(
        training_config=tester.make_default_hs_training_config(), approximate_dp=_claimed(claim)
    )
    base = tester.make_default_hs_base_model()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        return _either_direction(tester.HockeyStickPropertyTester(settings, base), samples)


def _claimed(epsilon):
    from dp_auditorium.configs import privacy_property

    return privacy_property.ApproximateDp(epsilon=epsilon, delta=0.0)


def _either_direction(tester, samples):
    bounds = [
        tester.estimate_lower_bound(*both, failure_probability=ERROR / 2)
        for both in (samples, samples[::-1])
    ]
    return bool(any(tester.reject_property(bound) for bound in bounds))


class _OneProcess:
    """What statdp asks of a pool of processes."""

    _processes = 1
    imap_unordered = staticmethod(map)


def statdp(mechanism, dataset, neighbour, claim, trials, seed):
    """Choose an event on half of the runs and test it on the others; long arrays are summed."""
    from statdp.hypotest import hypothesis_test
    from statdp.selectors import select_event

    run, rng = encoded(mechanism), np.random.default_rng(seed)

    def algorithm(prng, data):
        output = run(data, rng)
        return sum(output) if isinstance(output, list) and len(output) > 3 else output

    pool, given = _OneProcess(), [(dataset, neighbour, {})]
    event = select_event(algorithm, given, claim, trials // 2, pool, quiet=True)
    p_values = hypothesis_test(algorithm, *event, claim, trials - trials // 2, pool)
    return bool(min(p_values) < ERROR / 2)


TESTERS = {
    "dpnotes.audit": audit,
    "a plain histogram": histogram,
    "DP-Auditorium, histogram": auditorium_histogram,
    "DP-Auditorium, hockey-stick": auditorium_hockey_stick,
    "StatDP": statdp,
}


def fewest(tester, case):
    """Return the fewest runs at which two of three tests find a violation, or None."""
    for trials in SIZES:
        found = [tester(*case, trials, seed) for seed in SEEDS[:2]]
        if all(found) or (any(found) and tester(*case, trials, SEEDS[2])):
            return trials
    return None


def measured(name, case, tester, is_honest):
    """Return a unit: what a tester found of a mechanism, or the error with which it ended."""
    began = time.perf_counter()
    unit = {"experiment": "audit_power", "mechanism": name, "claim": case[-1], "tester": tester}
    try:
        if is_honest:
            found = [TESTERS[tester](*case, HONEST_SIZE, seed) for seed in HONEST_SEEDS]
            unit |= {"runs": HONEST_SIZE, "tests": len(found), "accused": sum(found)}
        else:
            unit |= {"runs_needed": fewest(TESTERS[tester], case), "most_runs": SIZES[-1]}
    except Exception as error:  # whatever a peer raises is its result
        unit |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return unit | {"seconds": round(time.perf_counter() - began, 1)}


def provenance():
    packages = ("numpy", "scipy", "tensorflow-cpu", "numba")
    versions = {package: metadata.version(package) for package in packages}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": versions | {"dpnotes": __version__},
        "peers": PEERS,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the peers' sources are")
    parser.add_argument("--testers", nargs="*", default=list(TESTERS), choices=list(TESTERS))
    parser.add_argument("--mechanisms", nargs="*", help="names of mechanisms; default: all")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the most runs to try")
    options = parser.parse_args()
    SIZES[:] = [size for size in SIZES if size <= options.most]
    sys.path[:0] = [str(options.folder / name) for name in ("dp_auditorium", "statdp")]
    cases = [(param.id, param.values[:4], False) for param in BROKEN]
    cases += [(name, case, True) for name, *case in HONEST]
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    measured_before = [json.loads(line)["unit"] for line in lines]
    done = {(unit["mechanism"], unit["tester"]) for unit in measured_before}
    shared = provenance()
    for tester in options.testers:
        for name, case, is_honest in cases:
            wanted = options.mechanisms is None or name in options.mechanisms
            if wanted and (name, tester) not in done:
                unit = measured(name, case, tester, is_honest)
                print(json.dumps(unit), flush=True)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"unit": unit, "provenance": shared}) + "\n")


if __name__ == "__main__":
    main()
