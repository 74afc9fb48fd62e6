"""Who counts the pairs of an AUC, and who says how much noise it needs."""

import math

import numpy as np
from contest import AREA, MORE_AREA, SMOOTH, contender

from dpnotes import private_auc

BETA = 0.01


def records(n, decimals=None):
    """Return labels and scores of a fair classifier; rounded, many scores are shared."""
    rng = np.random.default_rng(2015)
    labels = rng.integers(0, 2, n)
    scores = rng.normal(size=n) + 1.2 * labels
    return labels, scores if decimals is None else scores.round(decimals)


def enter(job, name, kind, make, *, rounds, note, decimals=None, package=None, memory=False):
    """Enter a function of labels and scores, which `make` returns."""

    @contender(job, name, kind, rounds=rounds, note=note, package=package, memory=memory)
    def prepare(n):
        labels, scores = records(n, decimals)
        compute = make()

        def run():
            compute(labels, scores)

        return run


def by_scikit_learn():
    from sklearn.metrics import roc_auc_score

    return roc_auc_score


def by_scipy():
    from scipy.stats import mannwhitneyu

    return lambda labels, scores: (
        mannwhitneyu(scores[labels == 1], scores[labels == 0], method="asymptotic").statistic
    )


def by_ranks():
    def area(labels, scores):
        order = np.argsort(scores)
        ranks = np.empty(labels.size, dtype=np.int64)
        ranks[order] = np.arange(1, labels.size + 1)
        n = np.count_nonzero(labels)
        above = ranks[labels == 1].sum() - n * (n + 1) // 2
        return above / (n * (labels.size - n))

    return area


def ours():
    return private_auc.auc


def by_sorting():
    return lambda labels, scores: np.sort(scores)


enter(
    *(AREA, "scikit-learn", "peer", by_scikit_learn),
    rounds=10,
    package="scikit-learn",
    note="`roc_auc_score`",
)
enter(AREA, "scipy", "peer", by_scipy, rounds=10, package="scipy", note="`mannwhitneyu`")
enter(
    AREA, "plain numpy", "numpy", by_ranks, rounds=20, note="ranks by `argsort`; wrong where tied"
)
enter(AREA, "dpnotes", "dpnotes", ours, rounds=30, note="`auc`, exact with ties")
enter(
    *(AREA, "dpnotes, tied scores", "variant", ours),
    rounds=30,
    decimals=2,
    note="the same, with scores of two decimals",
)
enter(AREA, "the limit", "limit", by_sorting, rounds=30, note="`numpy.sort` of the scores")
enter(MORE_AREA, "dpnotes", "dpnotes", ours, rounds=3, memory=True, note="`auc`")
enter(MORE_AREA, "the limit", "limit", by_sorting, rounds=3, note="`numpy.sort` of the scores")


def smoothing(name, kind, *, rounds, iterations=1, note):
    """Enter a function of the size of both classes that gives the smooth sensitivity."""

    def add(smooth):
        @contender(SMOOTH, name, kind, rounds=rounds, iterations=iterations, note=note)
        def prepare(n):
            def run():
                smooth(n // 2)

            return run

        return smooth

    return add


@smoothing("a loop", "source", rounds=3, note="every distance in turn")
def by_loop(size):
    return max(math.exp(-BETA * k) / max(size - k, 1) for k in range(size + 1))


@smoothing("plain numpy", "numpy", rounds=20, note="all distances at once")
def by_numpy(size):
    k = np.arange(size + 1)
    return (np.exp(-BETA * k) / np.maximum(size - k, 1)).max()


@smoothing("dpnotes", "dpnotes", rounds=20, iterations=1000, note="`auc_smooth_sensitivity`")
def in_closed_form(size):
    return private_auc.auc_smooth_sensitivity(size, size, BETA)
