"""pure-LDP: the clients of its frequency oracles, in the local model.

Every two values are neighbours. Clients count values from 1. What a report means depends on hash
functions that everybody knows, so a report is looked at through them.
"""

import functools

from audited import Audits

BUDGET = "epsilon: float - privacy budget"
SKETCH = "epsilon (float): Privacy Budget Epsilon"
ORACLE = "the docstring of pure_ldp.frequency_oracles.{}.{}"

MENDED = (
    "[issue 11](https://github.com/Samuel-Maddock/pure-LDP/issues/11), found by LDP-Auditor "
    "([Arcolezi and Gambs](https://arxiv.org/abs/2309.01597)) and mended in 1.2.0"
)

audits = Audits(
    "pure-ldp",
    noise="in doubles where a histogram is encoded (`numpy.random.laplace`), otherwise coins alone",
    epsilon=1.0,
    unit="any two values",
    quote=BUDGET,
    pair=(1, 2),
)


@audits.add(
    "DEClient",
    quote="epsilon (float): Privacy budget",
    where="the docstring of pure_ldp.core.FreqOracleClient",
)
def direct(value):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    return DEClient(1.0, 4).privatise(value)


@audits.add(
    "UEClient, symmetric",
    where=ORACLE.format("unary_encoding", "UEClient"),
    report=MENDED,
)
def symmetric(value):
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    return UEClient(1.0, 3).privatise(value)


@audits.add(
    "UEClient, optimal",
    where=ORACLE.format("unary_encoding", "UEClient"),
    report=MENDED,
)
def optimal(value):
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    return UEClient(1.0, 3, use_oue=True).privatise(value)


@audits.add(
    "HEClient",
    quote="epsilon: float - the privacy budget",
    where=ORACLE.format("histogram_encoding", "HEClient"),
)
def histogram(value):
    from pure_ldp.frequency_oracles.histogram_encoding import HEClient

    return HEClient(1.0, 2).privatise(value)


LOCAL_HASHING = {
    "quote": "epsilon: float - The privacy budget",
    "where": ORACLE.format("local_hashing", "LHClient"),
}


@audits.add("LHClient, binary", **LOCAL_HASHING)
def binary_hashing(value):
    import xxhash
    from pure_ldp.frequency_oracles.local_hashing import LHClient

    report, seed = LHClient(1.0, 4).privatise(value)
    return [bool(report == xxhash.xxh32(str(v - 1), seed=seed).intdigest() % 2) for v in (1, 2)]


@audits.add("LHClient, optimal", **LOCAL_HASHING)
def optimal_hashing(value):
    import xxhash
    from pure_ldp.frequency_oracles.local_hashing import LHClient

    report, seed = LHClient(1.0, 4, use_olh=True).privatise(value)
    return [bool(report == xxhash.xxh32(str(v - 1), seed=seed).intdigest() % 4) for v in (1, 2)]


@audits.add(
    "FastLHClient",
    quote="epsilon: float - The privacy budget",
    where=ORACLE.format("local_hashing", "FastLHClient"),
)
def fast_hashing(value):
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient

    return list(FastLHClient(1.0, 4, 3, use_olh=True).privatise(value))


@functools.cache
def _hadamard_response():
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient

    return HadamardResponseClient(1.0, 4, None)


@audits.add(
    "HadamardResponseClient",
    quote="epsilon: privacy budget",
    where=ORACLE.format("hadamard_response", "HadamardResponseClient"),
)
def hadamard_response(value):
    return int(_hadamard_response().privatise(value))


@audits.add(
    "HadamardMechClient",
    quote="epsilon (float): Privacy budget",
    where="the docstring of pure_ldp.core.FreqOracleClient",
)
def hadamard_mechanism(value):
    from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient

    report = HadamardMechClient(1.0, 4, 1).privatise(value)
    return [[int(index), int(sign)] for index, sign in report]


def _first(text):
    return int(text) % 4


def _second(text):
    return (int(text) + 2) % 4


def _parity(text):
    return int(text) % 2


@audits.add("CMSClient", quote=SKETCH, where=ORACLE.format("apple_cms", "CMSClient"))
def count_mean_sketch(value):
    from pure_ldp.frequency_oracles.apple_cms import CMSClient

    bits, row = CMSClient(1.0, [_first, _second], 4).privatise(value)
    return [int(row), *map(int, bits)]


@audits.add("CMSClient, Hadamard", quote=SKETCH, where=ORACLE.format("apple_cms", "CMSClient"))
def hadamard_count_mean_sketch(value):
    from pure_ldp.frequency_oracles.apple_cms import CMSClient

    return list(map(int, CMSClient(1.0, [_first, _second], 4, is_hadamard=True).privatise(value)))


@audits.add("PCSClient", quote=SKETCH, where=ORACLE.format("priv_count_sketch", "PCSClient"))
def private_count_sketch(value):
    from pure_ldp.frequency_oracles.priv_count_sketch import PCSClient

    bits, row = PCSClient(1.0, 1, 4, [(_first, _parity)]).privatise(value)
    return [int(row), *map(int, bits)]


@audits.add(
    "RAPPORClient",
    epsilon=2.7725887222397816,
    quote="f: float - Controls the probability of randomisation. Directly influences epsilon "
    "(privacy budget)",
    where=ORACLE.format("rappor", "RAPPORClient") + "; its convert_f_to_eps gives 2.77 for f = 2/3",
    tried="1 and 2 at f = 2/3, with two hash functions in one cohort",
    cause="A bit of the Bloom filter that is set is never cleared: `_perturb` changes the filter "
    "in place and only ever writes a one (`data[i] = 1`).",
)
def rappor(value):
    from pure_ldp.frequency_oracles.rappor import RAPPORClient

    bits, _ = RAPPORClient(2 / 3, 4, [[_first, _second]], num_of_cohorts=1).privatise(value)
    return bits
