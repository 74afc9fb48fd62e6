"""Who counts the votes of teachers, draws noisy winners, and says what they cost."""

import math

import numpy as np
from contest import ACCOUNTING, MORE_ACCOUNTING, VOTING, contender
from scipy import special

from dpnotes import pate

TEACHERS, CLASSES, SIGMA, GAMMA = 250, 10, 40.0, 0.05
ORDERS = {ACCOUNTING: np.linspace(2, 500, 296), MORE_ACCOUNTING: np.linspace(2, 500, 300)}


def opinions(queries):
    """Return the class that each teacher names for each query; they mostly agree."""
    rng = np.random.default_rng(2018)
    truth = rng.integers(0, CLASSES, size=queries, dtype=np.uint8)
    guesses = rng.integers(0, CLASSES, size=(TEACHERS, queries), dtype=np.uint8)
    skill = rng.beta(8, 1.5, size=queries)
    return np.where(rng.random((TEACHERS, queries)) < skill, truth, guesses)


def votes_on(queries):
    """Return the votes of the teachers on so many queries."""
    return pate.count_votes(opinions(queries), CLASSES)


def log_error(counts):
    """Return the logarithm of the bound on a wrong label, for one query."""
    gaps = counts.max() - np.delete(counts, counts.argmax())
    return math.log(min(special.erfc(gaps / (2 * SIGMA)).sum() / 2, 1 - 1 / CLASSES))


def cost_of_a_query(log_q, orders):
    """Return the divergence of one query at every order, by the theorem for GNMax."""
    plain = orders / SIGMA**2
    second = SIGMA * math.sqrt(-log_q)
    first = second + 1
    if second <= 1:
        return plain
    shrink, slack = second / SIGMA**2, first / (first - 1) * second / (second - 1)
    if log_q > (second - 1) * shrink - second * math.log(slack) or -log_q <= shrink:
        return plain
    log_rest = math.log1p(-math.exp(log_q))
    base = log_rest - math.log(-math.expm1((log_q + shrink) * (1 - 1 / second)))
    other = first / SIGMA**2 - log_q / (first - 1)
    total = np.logaddexp(log_rest + (orders - 1) * base, log_q + (orders - 1) * other)
    return np.where(orders < first, np.minimum(plain, total / (orders - 1)), plain)


@contender(
    ACCOUNTING,
    "a loop of queries",
    "source",
    rounds=3,
    note="the way of the published research code: all orders of one query at a time",
)
def query_by_query(n):
    votes, orders = votes_on(n), ORDERS[ACCOUNTING]
    return lambda: check(sum(cost_of_a_query(log_error(row), orders) for row in votes), votes)


def check(total, votes):
    """Refuse to time a cost that is not ours."""
    np.testing.assert_allclose(total, pate.gnmax_rdp(votes, SIGMA, ORDERS[ACCOUNTING]), rtol=1e-9)


@contender(
    ACCOUNTING,
    "autodp",
    "peer",
    rounds=3,
    share=20,
    package="autodp",
    note="`RDP_depend_pate_gaussian`, one query and one order at a time",
)
def autodp(n):
    from autodp import rdp_bank

    logs = [{"logq": log_error(row), "sigma": SIGMA} for row in votes_on(n)]

    def run():
        for query in logs:
            for order in ORDERS[ACCOUNTING]:
                rdp_bank.RDP_depend_pate_gaussian(query, order)

    return run


def ours(job, rounds):
    """Enter `gnmax_rdp`."""

    @contender(job, "dpnotes", "dpnotes", rounds=rounds, note="`gnmax_rdp`")
    def prepare(n):
        votes, orders = votes_on(n), ORDERS[job]

        def run():
            pate.gnmax_rdp(votes, SIGMA, orders)

        return run


ours(ACCOUNTING, rounds=20)
ours(MORE_ACCOUNTING, rounds=10)


@contender(
    VOTING,
    "a loop of queries",
    "source",
    rounds=3,
    share=10**4,
    note="`numpy.bincount`, then a floating-point `numpy.random.laplace` for every class",
)
def votes_by_query(n):
    labels = opinions(n)

    def run():
        winners = []
        for column in labels.T:
            counts = np.bincount(column, minlength=CLASSES).astype(float)
            for j in range(CLASSES):
                counts[j] += np.random.laplace(0, 1 / GAMMA)  # noqa: NPY002
            winners.append(counts.argmax())

    return run


@contender(
    VOTING,
    "plain numpy",
    "numpy",
    rounds=5,
    note="one `bincount` for all queries, floating-point noise in one array",
)
def plain_numpy(n):
    labels, rng = opinions(n), np.random.default_rng(0)

    def run():
        cells = labels.astype(np.int64) + CLASSES * np.arange(n)
        counts = np.bincount(cells.ravel(), minlength=CLASSES * n).reshape(n, CLASSES)
        (counts + rng.laplace(0, 1 / GAMMA, counts.shape)).argmax(axis=1)

    return run


def winners(name, kind, draw, note):
    """Enter a count of all votes and a draw of all noisy winners."""

    @contender(VOTING, name, kind, rounds=5, note=note)
    def prepare(n):
        labels, rng = opinions(n), np.random.default_rng(0)

        def run():
            draw(pate.count_votes(labels, CLASSES), rng)

        return run


winners(
    *("dpnotes", "dpnotes", lambda votes, rng: pate.LNMax(GAMMA).answer(votes, rng=rng)),
    note="`count_votes`, then `LNMax.answer`: exact discrete noise, no floating point",
)
winners(
    *(
        "dpnotes, Gaussian noise",
        "variant",
        lambda votes, rng: pate.GNMax(SIGMA).answer(votes, rng=rng),
    ),
    note="`count_votes`, then `GNMax.answer`",
)
winners(
    "dpnotes' count, floating-point noise",
    "variant",
    lambda votes, rng: (votes + rng.laplace(0, 1 / GAMMA, votes.shape)).argmax(axis=1),
    note="`count_votes`; the noise is not ours, and not private to the last bit",
)


@contender(
    VOTING,
    "the limit",
    "limit",
    rounds=10,
    note="one sum over all labels, and floating-point noise for every count",
)
def limit(n):
    labels, rng = opinions(n), np.random.default_rng(0)

    def run():
        labels.sum(axis=0, dtype=np.uint8)
        rng.laplace(0, 1 / GAMMA, (n, CLASSES))

    return run
