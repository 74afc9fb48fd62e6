"""Who draws labels under the exponential mechanism, and who gives the law of their score."""

import math
import random

import numpy as np
from contest import EPSILON, LABELS, SCORES, answers, contender, draw_bytes, draw_words
from scipy import stats

from dpnotes import label_privacy, randomized_response

KEEP = randomized_response.keep_probability(EPSILON / 2)


def labels_of(people, dtype):
    """Return everybody's label, -1 or +1."""
    return (2 * answers(people, 2) - 1).astype(dtype)


def estimate(reports):
    """Return how many labels are -1 and +1, estimated from private ones."""
    return randomized_response.estimate(np.asarray(reports) > 0, EPSILON / 2)


def log_recursion(n):
    """Return the log-probability of every score, one after the other."""
    logs = [-n * math.log1p(math.exp(EPSILON / 2))]
    for i in range(1, n + 1):
        logs.append(math.log(n - i + 1) - math.log(i) + EPSILON / 2 + logs[-1])
    return logs


@contender(
    LABELS,
    "recursion, choice and sample",
    "source",
    rounds=5,
    note="the score by recursion and `numpy.random.choice`, the kept labels by `random.sample`",
)
def two_steps(n):
    labels = labels_of(n, np.int64).tolist()

    def run():
        score = np.random.choice(n + 1, p=np.exp(log_recursion(n)))  # noqa: NPY002
        kept = set(random.sample(range(n), score))
        reports = [label if i in kept else -label for i, label in enumerate(labels)]
        return estimate(reports)

    return run


@contender(
    LABELS,
    "plain numpy",
    "numpy",
    rounds=50,
    note="a float64 draw a label, and a comparison",
)
def plain_numpy(n):
    labels, rng = labels_of(n, np.int8), np.random.default_rng(0)
    return lambda: estimate(np.where(rng.random(n) < KEEP, labels, -labels))


def ours(name, kind, *, method, dtype, rounds, note):
    """Enter `exponential` for one method and one type of label."""

    @contender(LABELS, name, kind, rounds=rounds, note=note)
    def prepare(n):
        labels, rng = labels_of(n, dtype), np.random.default_rng(0)
        return lambda: estimate(label_privacy.exponential(labels, EPSILON, method=method, rng=rng))


ours(
    "dpnotes",
    "dpnotes",
    method="independent",
    dtype=np.int8,
    rounds=100,
    note="`exponential`, then the estimate; a label in a byte",
)
ours(
    "dpnotes, eight bytes a label",
    "variant",
    method="independent",
    dtype=np.int64,
    rounds=100,
    note="the same with numpy's usual integers",
)
ours(
    "dpnotes, in two steps",
    "variant",
    method="two-step",
    dtype=np.int8,
    rounds=20,
    note='the source\'s way, `method="two-step"`',
)


@contender(LABELS, "the limit", "limit", rounds=100, note="`Generator.bytes`, a byte a label")
def limit(n):
    rng = np.random.default_rng(0)
    return lambda: draw_bytes(n, rng)


@contender(
    LABELS,
    "the same bytes, by eights",
    "words",
    rounds=100,
    note="`Generator.integers` with 64-bit words",
)
def words(n):
    rng = np.random.default_rng(0)
    return lambda: draw_words(n, rng)


def score_law(name, kind, *, rounds, note, package=None):
    """Enter a function of n that gives the log-probability of every score."""

    def enter(log_pmf):
        @contender(SCORES, name, kind, rounds=rounds, note=note, package=package)
        def prepare(n):
            def run():
                log_pmf(n)

            return run

        return log_pmf

    return enter


score_law("a loop of the recursion", "source", rounds=3, note="one score after the other")(
    log_recursion
)


@score_law(
    "scipy",
    "peer",
    rounds=5,
    package="scipy",
    note="`stats.binom.logpmf`, good to 5e-9 of the logarithm at this n",
)
def scipy_binomial(n):
    return stats.binom.logpmf(np.arange(n + 1), n, KEEP)


@score_law("dpnotes", "dpnotes", rounds=10, note="`log_score_pmf`, good to 1e-10 of the logarithm")
def ours_score(n):
    return label_privacy.log_score_pmf(n, EPSILON)
