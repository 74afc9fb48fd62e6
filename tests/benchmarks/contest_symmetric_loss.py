"""Who computes the barrier hinge risk of all pairs of scores, with its slopes."""

import torch
from contest import MORE_PAIRS, PAIRS, contender

from dpnotes.symmetric_loss import auc_risk, barrier_hinge_loss

B, R = 200.0, 50.0


def scores_of(n, spread=1.0):
    """Return scores that want slopes, and labels that are 1 and -1 by turns."""
    # The clock counts the time of every thread.
    torch.set_num_threads(1)
    scores = spread * torch.randn(n, generator=torch.Generator().manual_seed(2019))
    return scores.requires_grad_(), 1 - 2 * (torch.arange(n) % 2)


def enter(job, name, kind, risk, *, spread=1.0, rounds=5, package=None, note=""):
    """Enter a function of scores and labels that gives the risk."""

    @contender(job, name, kind, rounds=rounds, package=package, note=note)
    def prepare(n):
        scores, labels = scores_of(n, spread)
        compute = risk()

        def run():
            scores.grad = None
            compute(scores, labels).backward()

        return run


def repeated():
    """Lay every pair out by repeating both classes."""

    def risk(scores, labels):
        high, low = scores[labels > 0], scores[labels < 0]
        pairs = high.repeat(len(low)) - low.repeat_interleave(len(high))
        return barrier_hinge_loss(pairs.reshape(-1, 1), B, R).mean()

    return risk


def broadcast():
    """Subtract a row from a column."""
    return lambda scores, labels: barrier_hinge_loss(
        scores[labels > 0][:, None] - scores[labels < 0], B, R
    ).mean()


def libauc():
    """Return LibAUC's loss; it wants labels of 0 and 1."""
    from libauc.losses import PairwiseAUCLoss

    loss = PairwiseAUCLoss("barrier_hinge", hparam=(R, B))
    return lambda scores, labels: loss(scores, (labels + 1) // 2)


def ours():
    """Return the risk of dpnotes."""
    return lambda scores, labels: auc_risk(scores, labels, barrier_hinge_loss)


enter(PAIRS, "repeated pairs", "source", repeated, rounds=3, note="`repeat` and `reshape`")
enter(PAIRS, "LibAUC", "peer", libauc, rounds=3, package="libauc", note="`PairwiseAUCLoss`")
enter(PAIRS, "plain torch", "numpy", broadcast, rounds=3, note="a column less a row")
enter(PAIRS, "dpnotes", "dpnotes", ours, rounds=50, note="`auc_risk`")
enter(
    *(PAIRS, "dpnotes, at the barriers", "variant", ours),
    spread=60.0,
    rounds=50,
    note="the same, with scores so wide that pairs pass both barriers",
)
enter(MORE_PAIRS, "dpnotes", "dpnotes", ours, rounds=5, note="`auc_risk`")
enter(
    *(MORE_PAIRS, "dpnotes, at the barriers", "variant", ours),
    spread=60.0,
    rounds=5,
    note="the same, with scores so wide that pairs pass both barriers",
)


def limit(job, rounds):
    """Enter the sort that ranks the scores."""

    @contender(job, "the limit", "limit", rounds=rounds, note="`torch.sort`")
    def prepare(n):
        scores = scores_of(n)[0].detach()

        def run():
            scores.sort()

        return run


limit(PAIRS, 50)
limit(MORE_PAIRS, 5)
