"""Who does randomized response."""

import os
import random

import numpy as np
from contest import EPSILON, RESPONSE, answers, contender, draw_bytes, draw_words

from dpnotes import _coins, randomized_response

ODDS = np.exp(EPSILON)
KEEP = ODDS / (ODDS + 1)


def estimate(ones, n, keep=KEEP):
    """Return both counts from the number of reported ones."""
    yes = (ones - n * (1 - keep)) / (2 * keep - 1)
    return np.array([n - yes, yes])


class SystemBytes:
    """The operating system's cryptographic generator, with the method that the coins call."""

    def bytes(self, size):
        return os.urandom(size)

    def integers(self, low, high, *, size, dtype):
        """Draw from the whole range of a type, which is all that the coins ask for."""
        return np.frombuffer(os.urandom(size * np.dtype(dtype).itemsize), dtype=dtype)


@contender(
    RESPONSE,
    "a loop of two coins",
    "source",
    rounds=3,
    note="at epsilon ln 3, the only one that two fair coins can give",
)
def loop(n):
    values = [bool(value) for value in answers(n, 2)]

    def respond(truth):
        if np.random.randint(0, 2) == 0:  # noqa: NPY002
            return truth
        return np.random.randint(0, 2) == 0  # noqa: NPY002

    def run():
        reports = [respond(value) for value in values]
        return estimate(np.sum([1 if report else 0 for report in reports]), n, 0.75)

    return run


@contender(RESPONSE, "pure-ldp", "peer", rounds=3, package="pure-ldp", note="direct encoding")
def pure_ldp(n):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

    values = answers(n, 2).tolist()
    client = DEClient(EPSILON, 2, index_mapper=int)

    def run():
        server = DEServer(EPSILON, 2, index_mapper=int)
        for value in values:
            server.aggregate(client.privatise(value))
        return np.array([server.estimate(value, suppress_warnings=True) for value in (0, 1)])

    random.seed(0)
    return run


@contender(
    RESPONSE,
    "multi-freq-ldpy",
    "peer",
    rounds=3,
    package="multi-freq-ldpy",
    note="generalized randomized response",
)
def multi_freq(n):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client

    values = answers(n, 2).tolist()

    def run():
        reports = [GRR_Client(value, 2, EPSILON) for value in values]
        return n * GRR_Aggregator_MI(reports, 2, EPSILON)

    return run


@contender(
    RESPONSE,
    "diffprivlib",
    "peer",
    rounds=3,
    share=10**5,
    package="diffprivlib",
    note="`Binary`; it has no estimator, so ours follows",
)
def diffprivlib(n):
    from diffprivlib.mechanisms import Binary

    values = ["yes" if value else "no" for value in answers(n, 2)]
    mechanism = Binary(epsilon=EPSILON, value0="no", value1="yes")

    def run():
        reports = [mechanism.randomise(value) for value in values]
        return estimate(reports.count("yes"), n)

    return run


@contender(
    RESPONSE,
    "OpenDP, a call a person",
    "peer",
    rounds=3,
    share=10**4,
    package="opendp",
    note="`make_randomized_response_bool`; cryptographic randomness; our estimator follows",
)
def opendp_bool(n):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = [bool(value) for value in answers(n, 2)]
    mechanism = dp.m.make_randomized_response_bool(prob=float(KEEP))
    return lambda: estimate(sum([mechanism(value) for value in values]), n)


@contender(
    RESPONSE,
    "OpenDP, one bit vector",
    "peer",
    rounds=3,
    package="opendp",
    note="`make_randomized_response_bitvec`, one call for everybody; cryptographic randomness; "
    "our estimator follows",
)
def opendp_bits(n):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    packed = np.packbits(answers(n, 2).astype(bool)).tobytes()
    mechanism = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=n), dp.discrete_distance(), f=float(2 * (1 - KEEP))
    )

    def run():
        reports = np.unpackbits(np.frombuffer(mechanism(packed), dtype=np.uint8))[:n]
        return estimate(np.count_nonzero(reports), n)

    return run


@contender(
    RESPONSE,
    "plain numpy",
    "numpy",
    rounds=50,
    note="a float64 draw an answer, and a comparison",
)
def plain_numpy(n):
    values, rng = answers(n, 2).astype(bool), np.random.default_rng(0)
    return lambda: estimate(np.count_nonzero(values ^ (rng.random(n) >= KEEP)), n)


@contender(
    RESPONSE,
    "plain numpy, `os.urandom`",
    "variant",
    rounds=20,
    note="the same with 64 cryptographic bits an answer",
)
def secure_numpy(n):
    values = answers(n, 2).astype(bool)
    lie = np.uint64(round((1 - KEEP) * 2**64))

    def run():
        words = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        return estimate(np.count_nonzero(values ^ (words < lie)), n)

    return run


@contender(RESPONSE, "dpnotes", "dpnotes", rounds=100, note="`privatize`, then `estimate`")
def ours(n):
    values, rng = answers(n, 2).astype(bool), np.random.default_rng(0)

    def run():
        reports = randomized_response.privatize(values, EPSILON, rng=rng)
        return randomized_response.estimate(reports, EPSILON)

    return run


@contender(
    RESPONSE,
    "dpnotes' coins, `os.urandom`",
    "variant",
    rounds=50,
    note="the coins of dpnotes from cryptographic randomness: the fair comparison with OpenDP",
)
def secure_ours(n):
    values = answers(n, 2).astype(bool)
    lie = _coins.lie_probability(EPSILON)

    def run():
        reports = values ^ _coins.flip(n, lie, SystemBytes())
        return randomized_response.estimate(reports, EPSILON)

    return run


@contender(RESPONSE, "the limit", "limit", rounds=100, note="`Generator.bytes`, a byte an answer")
def limit(n):
    rng = np.random.default_rng(0)
    return lambda: draw_bytes(n, rng)


@contender(
    RESPONSE,
    "the same bytes, by eights",
    "words",
    rounds=100,
    note="`Generator.integers` with 64-bit words",
)
def words(n):
    rng = np.random.default_rng(0)
    return lambda: draw_words(n, rng)
