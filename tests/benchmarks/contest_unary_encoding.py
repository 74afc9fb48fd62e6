"""Who does unary encoding."""

import numpy as np
from contest import (
    COLLECTOR,
    EPSILON,
    UNARY,
    WIDE,
    answers,
    contender,
    draw_bytes,
    draw_words,
    one_hot,
    true_counts,
)

from dpnotes import unary_encoding

P, Q = unary_encoding.probabilities(EPSILON)
CHUNK = 1 << 19


def estimate(ones, n, p=P, q=Q):
    """Return counts from the number of reported ones."""
    return (np.asarray(ones) - n * q) / (p - q)


def both(name, kind, *, rounds, shares=(None, None), memory=False, **how):
    """Enter a function of (job, n) for the ordinary and for the wide domain."""

    def enter(prepare):
        for job, few, share in zip((UNARY, WIDE), rounds, shares, strict=True):
            contender(
                job,
                name,
                kind,
                rounds=few,
                share=share,
                memory=memory and job is UNARY,
                **how,
            )(lambda n, job=job: prepare(n, job.categories))
        return prepare

    return enter


@both(
    "a loop over bits",
    "source",
    rounds=(3, 3),
    shares=(10**5, 10**3),
    note="people encoded beforehand",
)
def loop(n, k):
    people = one_hot(answers(n, k), k).tolist()

    def perturb_bit(bit):
        sample = np.random.random()  # noqa: NPY002
        if bit == 1:
            return 1 if sample <= P else 0
        return 1 if sample <= Q else 0

    def run():
        reports = [[perturb_bit(bit) for bit in bits] for bits in people]
        return np.array([estimate(ones, n) for ones in np.sum(reports, axis=0)])

    return run


@both(
    "pure-ldp",
    "peer",
    rounds=(3, 3),
    shares=(10**5, 10**4),
    package="pure-ldp",
    note="`UEClient`, optimized; encodes as well",
)
def pure_ldp(n, k):
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    values = answers(n, k).tolist()
    client = UEClient(EPSILON, k, use_oue=True, index_mapper=int)

    def run():
        server = UEServer(EPSILON, k, use_oue=True, index_mapper=int)
        for value in values:
            server.aggregate(client.privatise(value))
        return np.array([server.estimate(value, suppress_warnings=True) for value in range(k)])

    return run


@both(
    "multi-freq-ldpy",
    "peer",
    rounds=(3, 3),
    package="multi-freq-ldpy",
    note="`UE_Client`, optimized; encodes as well; clips and renormalises",
    memory=True,
)
def multi_freq(n, k):
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    values = answers(n, k).tolist()

    def run():
        reports = [UE_Client(value, k, EPSILON, True) for value in values]
        return n * UE_Aggregator_MI(reports, EPSILON, True)

    return run


@both(
    "OpenDP",
    "peer",
    rounds=(3, 3),
    shares=(10**4, 10**3),
    package="opendp",
    note="`make_randomized_response_bitvec`, a call a person, symmetric; cryptographic randomness; "
    "our estimator follows",
)
def opendp(n, k):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    p, q = unary_encoding.probabilities(EPSILON, "symmetric")
    people = [row.tobytes() for row in np.packbits(one_hot(answers(n, k), k), axis=1)]
    mechanism = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=2 * q
    )

    def run():
        packed = np.frombuffer(b"".join([mechanism(person) for person in people]), dtype=np.uint8)
        reports = np.unpackbits(packed.reshape(n, -1), axis=1)[:, :k]
        return estimate(reports.sum(axis=0), n, p, q)

    return run


@both(
    "plain numpy",
    "numpy",
    rounds=(7, 5),
    note="a float64 draw a bit, and a comparison",
    memory=True,
)
def plain_numpy(n, k):
    bits, rng = one_hot(answers(n, k), k), np.random.default_rng(0)

    def run():
        reports = rng.random(bits.shape) < np.where(bits, P, Q)
        return estimate(reports.sum(axis=0), n)

    return run


@contender(
    UNARY,
    "dpnotes, from categories",
    "variant",
    rounds=5,
    note="`encode`, which looks every answer up, then `perturb` and `aggregate`: "
    "the fair comparison with peers that encode as well",
)
def ours_encoding(n):
    values, rng = answers(n, UNARY.categories), np.random.default_rng(0)

    def run():
        bits = unary_encoding.encode(values, range(UNARY.categories))
        return unary_encoding.aggregate(unary_encoding.perturb(bits, P, Q, rng=rng), P, Q)

    return run


@both("dpnotes", "dpnotes", rounds=(20, 10), note="`perturb`, then `aggregate`", memory=True)
def ours(n, k):
    bits, rng = one_hot(answers(n, k), k), np.random.default_rng(0)
    return lambda: unary_encoding.aggregate(unary_encoding.perturb(bits, P, Q, rng=rng), P, Q)


@both(
    "dpnotes, in chunks",
    "chunks",
    rounds=(20, 10),
    note="`perturb` and `count_ones` on half a million bits at a time, then `aggregate_ones`",
    memory=True,
)
def ours_in_chunks(n, k):
    bits, rng = one_hot(answers(n, k), k), np.random.default_rng(0)
    rows = CHUNK // k

    def run():
        ones = np.zeros(k, dtype=np.int64)
        for start in range(0, n, rows):
            reports = unary_encoding.perturb(bits[start : start + rows], P, Q, rng=rng)
            ones += unary_encoding.count_ones(reports)
        return unary_encoding.aggregate_ones(ones, n, P, Q)

    return run


@both("the limit", "limit", rounds=(20, 10), note="`Generator.bytes`, a byte a bit")
def limit(n, k):
    rng = np.random.default_rng(0)
    return lambda: draw_bytes(n * k, rng)


@both(
    "the same bytes, by eights",
    "words",
    rounds=(20, 10),
    note="`Generator.integers` with 64-bit words",
)
def words(n, k):
    rng = np.random.default_rng(0)
    return lambda: draw_words(n * k, rng)


@contender(
    COLLECTOR,
    "dpnotes",
    "dpnotes",
    rounds=50,
    iterations=100,
    note="`simulate_ones`, two binomials a category, then `aggregate_ones`",
)
def collect(n):
    counts, rng = true_counts(n, COLLECTOR.categories), np.random.default_rng(0)

    def run():
        ones = unary_encoding.simulate_ones(counts, P, Q, rng=rng)
        return unary_encoding.aggregate_ones(ones, n, P, Q)

    return run
