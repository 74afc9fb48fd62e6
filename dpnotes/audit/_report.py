"""The audit of a whole claim: many pairs of neighbours, one verdict, and the reason in words."""

import math
import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betaincinv

from dpnotes._checks import CONFIDENCE, check_integer, check_real, check_rng
from dpnotes.audit import _lower_bound
from dpnotes.audit._neighbours import describe_difference, make_copier
from dpnotes.audit._wording import describe_event
from dpnotes.release import Pair, _require_list

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


class PairReport(NamedTuple):
    """What the runs on one pair of neighbours say.

    Of `runs` runs on each of the two, `hits` on the data set and `neighbour_hits` on its neighbour
    gave an output in the event. `lower_bound` is what that says about epsilon, in nats.
    """

    difference: str
    lower_bound: float
    event: str
    hits: int
    neighbour_hits: int
    runs: int


class Report(NamedTuple):
    """The claim, what was tried, and what came out, as `report` returns them.

    `limit` is the largest lower bound that this many runs can give. All lower bounds hold at
    once, with probability `confidence`.
    """

    epsilon: float
    delta: float
    confidence: float
    limit: float
    pairs: tuple[PairReport, ...]

    @property
    def witness(self) -> PairReport:
        """The pair with the largest lower bound."""
        return max(self.pairs, key=lambda pair: pair.lower_bound)

    @property
    def lower_bound(self) -> float:
        """The largest of the lower bounds on epsilon, in nats."""
        return self.witness.lower_bound

    @property
    def verdict(self) -> str:
        """Either "violated" or "not refuted"; no number of runs proves a claim."""
        return "violated" if self.lower_bound > self.epsilon else "not refuted"

    @property
    def sentence(self) -> str:
        """What was found, and what it means."""
        pair, claim = self.witness, _describe_claim(self.epsilon, self.delta)
        if self.verdict == "not refuted":
            return (
                f"Not refuted: no event showed an epsilon above {pair.lower_bound:.2f}, and the "
                f"claim is {self.epsilon:.4g}. So many runs could have shown {self.limit:.2f}. "
                "That is no proof: an event or a pair that was not tried may tell more."
            )
        return (
            f"Violated: {claim}. Here ({pair.difference}) an event came {pair.hits:,} times in "
            f"{pair.runs:,} runs on the one and {pair.neighbour_hits:,} times on the other: "
            f"{pair.event}. That takes an epsilon of at least {pair.lower_bound:.2f}, with "
            f"confidence {self.confidence:.4g}."
        )

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence

    def table(self) -> "pandas.DataFrame":
        """Return a row for each pair, the largest lower bound first.

        The bounds are rounded down to four decimals, so they are still bounds; `pairs` has all
        digits.
        """
        import pandas

        frame = pandas.DataFrame(list(self.pairs))
        frame = frame.sort_values("lower_bound", ascending=False, kind="stable", ignore_index=True)
        return frame.assign(lower_bound=np.floor(frame.lower_bound * 1e4) / 1e4)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw each pair as an attacker, who refutes the claim by erring less than it allows.

        The attacker guesses which of the two data sets it was from whether the event happened. The
        two errors are the point; the end of its line is the most that they can be, and the claim is
        violated where even that lies in the grey region. `ax` is where to draw, by default a new
        figure.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        one = np.linspace(0, 1, 501)
        edge = np.maximum(
            1 - self.delta - np.exp(self.epsilon) * one,
            np.exp(-self.epsilon) * (1 - self.delta - one),
        )
        ax.fill_between(one, 0, np.maximum(edge, 0), color="0.85", label="excluded by the claim")
        ax.plot([0, 1], [1, 0], color="0.6", linestyle=":", label="guessing")
        runs = self.pairs[0].runs
        fewer, more = np.sort([[pair.hits, pair.neighbour_hits] for pair in self.pairs]).T
        counts = np.array([fewer, runs - more])
        error = (1 - self.confidence) / len(self.pairs) / 2
        most = np.where(counts < runs, betaincinv(counts + 1, runs - counts, 1 - error), 1.0)
        lines = np.stack([counts / runs, most], axis=1)
        labels = ["a pair, and its errors at most", *[None] * (len(self.pairs) - 1)]
        ax.plot(*lines, "C0o-", linewidth=1, markevery=[0], label=labels)
        # Drawn over the edge, because an attacker who never errs is in the corner.
        ax.scatter(*lines[:, 0], color="C0", clip_on=False, zorder=3)
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.set(xlabel="error of type I (probability)", ylabel="error of type II (probability)")
        ax.legend()
        return ax


def report(
    mechanism: Callable,
    epsilon: float,
    pairs: Iterable[tuple],
    *,
    trials: int,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
    factory: bool = False,
    jobs: int = 1,
    rng: np.random.Generator | int | None = None,
) -> Report:
    """Audit a claim on many pairs of neighbours, and say in words what was found.

    Parameters
    ----------
    mechanism : callable
        Called as ``mechanism(data, rng=generator)`` where its signature takes `rng`, else as
        ``mechanism(data)``.
    epsilon : float
        The epsilon that is claimed, in nats, finite and at least 0.
    pairs : iterable of (data set, neighbour) or (data set, neighbour, words)
        What the claim calls neighbours. `pairs_in_domain`, `pairs_by_replacement` and
        `pairs_by_removal` make the usual ones; the words say in what the two differ.
    trials : int
        Runs on each data set of each pair.
    delta : float, default 0.0
        The delta that is claimed, in [0, 1).
    confidence : float
        Probability with which all lower bounds hold at once.
    factory : bool, default False
        Whether `mechanism` builds the mechanism, anew for every run.
    jobs : int, default 1
        Processes that share the pairs. More than one need joblib, which
        ``pip install dpnotes[audit]`` brings, and a mechanism that can be sent to them; one that
        runs `in_a_process` cannot. Within ``joblib.parallel_config(backend="dask")`` they are all
        workers of the cluster. The result is the same.
    rng : numpy.random.Generator, int or None
        Decides the runs. Every pair has a generator of its own.

    Returns
    -------
    Report
        A frozen object with `verdict`, `sentence`, `witness`, `lower_bound`, `table()` and
        `plot()`. Printed, it is its sentence.

    Raises
    ------
    ValueError
        If a parameter is out of range, if there are no pairs, if `trials` are too few to refute the
        claim whatever the mechanism does, or if every run on a pair raised one exception.
    TypeError
        If a parameter is of the wrong kind, data cannot be copied, an output is of a type that
        `epsilon_lower_bound` does not read, or a mechanism cannot be sent to other processes.
    ModuleNotFoundError
        If `jobs` is above 1 and joblib is not installed.
    MechanismFailed
        As in `epsilon_lower_bound`.

    Notes
    -----
    Each pair is audited as `epsilon_lower_bound` does it, at an error of (1 - confidence) divided
    by the number of pairs. So all bounds hold at once (Bonferroni's inequality), and the largest
    one may be taken: if the runs are independent, a true claim is called violated with a
    probability of at most 1 - confidence. Many pairs cost little: a hundred of them need about
    twice as many runs each as one does.

    A claim is about *all* neighbours, and these pairs are some of them. So the verdict is
    "violated" or "not refuted", never "private". Do not judge a claim about one record replaced by
    pairs in which one data set has a record more.

    Examples
    --------
    >>> from dpnotes.audit import pairs_by_replacement
    >>> def count(records, *, rng):  # claims 1 and forgets that a record may count twice
    ...     return sum(records) + rng.laplace(scale=1.0)
    >>> pairs = pairs_by_replacement([0, 1, 1], values=[0, 1, 2])
    >>> found = report(count, 1.0, pairs, trials=4000, rng=1)
    >>> found.verdict, found.witness.difference
    ('violated', 'record 0 replaced by 2')
    >>> report(count, 1.0, pairs_by_replacement([0, 1, 1], [0, 1]), trials=4000, rng=1).verdict
    'not refuted'
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a finite number of at least 0")
    trials, confidence, delta = _lower_bound.check_audit(
        mechanism, trials, confidence, delta, factory
    )
    jobs = check_integer("jobs", jobs, low=1)
    pairs = check_pairs(pairs)
    error = (1 - confidence) / len(pairs)
    limit = _lower_bound.largest_certifiable_epsilon(trials, confidence=1 - error, delta=delta)
    if limit <= epsilon:
        raise ValueError(
            f"trials must be enough to refute the claim on one of {len(pairs)} pairs: {trials} can "
            f"show an epsilon of {max(0.0, limit):.4g}, and {epsilon:.4g} is claimed"
        )

    def audit_one(pair: Pair, seed: np.random.SeedSequence) -> PairReport:
        rng = np.random.default_rng(seed)
        run = _lower_bound.build_for_each_run(mechanism, rng) if factory else mechanism
        found = _lower_bound.audit_pair(run, pair[:2], trials, error, delta, rng)
        event = describe_event(found.outputs, found.event)
        return PairReport(pair.difference, found.bound, event, *found.hits, found.tests)

    seeds = np.random.SeedSequence(check_rng(rng).integers(2**63, size=4).tolist())
    tasks = list(zip(pairs, seeds.spawn(len(pairs)), strict=True))
    return Report(epsilon, delta, confidence, limit, tuple(_run_tasks(audit_one, tasks, jobs)))


def _run_tasks(audit_one: Callable, tasks: list[tuple], jobs: int) -> list[PairReport]:
    """Audit all pairs, shared out over processes."""
    if jobs == 1:
        return [audit_one(*task) for task in tasks]
    try:
        import joblib
    except ModuleNotFoundError as error:
        message = "jobs above 1 need joblib: pip install dpnotes[audit]"
        raise ModuleNotFoundError(message, name="joblib") from error
    import cloudpickle

    try:  # here, because a cluster would wait for ever for what cannot be sent
        cloudpickle.dumps((audit_one, tasks))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(
            f"mechanism must be one that can be sent to {jobs} processes, with its data"
        ) from error
    return joblib.Parallel(n_jobs=jobs)(joblib.delayed(audit_one)(*task) for task in tasks)


def check_pairs(pairs: Iterable[tuple]) -> list[Pair]:
    """Return the pairs with their words, or refuse those that are not pairs or cannot be copied."""
    checked = []
    for pair in _require_list("pairs", pairs):
        if not isinstance(pair, tuple | list):
            raise TypeError(f"pairs must hold tuples of two data sets, got {type(pair).__name__}")
        if len(pair) not in (2, 3):
            raise ValueError(f"pairs must hold tuples of two data sets, got {len(pair)} entries")
        difference = pair[2] if len(pair) == 3 else describe_difference(*pair)
        if not isinstance(difference, str):
            kind = type(difference).__name__
            raise TypeError(f"pairs must say in a string what differs, got {kind}")
        for data in pair[:2]:
            make_copier("pairs", data)
        checked.append(Pair(*pair[:2], difference))
    if not checked:
        raise ValueError("pairs must hold at least one pair of data sets, got none")
    return checked


def _describe_claim(epsilon: float, delta: float) -> str:
    """Return what a claim says of every event."""
    factor = f"{math.exp(epsilon):,.4g}" if epsilon < 700 else f"exp({epsilon:.4g})"
    besides = f", and a probability of {delta:.4g} besides" if delta else ""
    return (
        f"epsilon = {epsilon:.4g} lets no event be more than {factor} times as likely on one data "
        f"set as on its neighbour{besides}"
    )
