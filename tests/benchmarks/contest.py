"""Jobs to be timed, and who does them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpnotes import randomized_response, unary_encoding

EPSILON = 1.0
# What a core's second-level cache holds beside other things: random bytes drawn in such blocks
# cost the generator's time and not that of fetching new memory.
BLOCK = 1 << 17

Estimate = np.ndarray | None


@dataclass(frozen=True)
class Goal:
    """What was hoped for: the quotient of two times, one a number of milliseconds, or of memory.

    `over` and `under` choose rows: "ours" the quickest of dpnotes' plain ways, "peer", "source" or
    "limit" the quickest of that kind, anything else the row whose name begins so. Without `under`
    the time counts in milliseconds; `over="memory"` is what ten times as many people take.
    """

    what: str
    bound: float
    holds: str
    over: str
    under: str | None


def at_most(what: str, bound: float, *, over: str = "ours", under: str | None = "limit") -> Goal:
    """Return a goal that the quotient of two times does not exceed a bound."""
    return Goal(what, bound, "at most", over, under)


def at_least(what: str, bound: float, *, over: str, under: str = "ours") -> Goal:
    """Return a goal that the quotient of two times reaches a bound."""
    return Goal(what, bound, "at least", over, under)


@dataclass(frozen=True)
class Job:
    """A piece of work: so many people, queries or records, in so many categories.

    `variance` is that of our estimates, where a job ends with estimates.
    """

    name: str
    title: str
    people: int
    categories: int
    goals: tuple[Goal, ...] = ()
    variance: Callable[[np.ndarray], np.ndarray] | None = None
    counted: str = "people"


@dataclass(frozen=True)
class Contender:
    """Somebody who does a job.

    `prepare(n)` gets everything ready for n people and returns the function that is timed, which
    returns estimated counts, or None where nothing is estimated. `kind` is "source", "peer",
    "numpy", "dpnotes", "chunks" (dpnotes in constant memory), "variant" (of one of these), "limit"
    or "words" (the limit, drawn otherwise). A contender too slow for the whole job does `share`
    people of it, and its time is scaled. `memory` asks for the peak of its memory too.
    """

    job: Job
    name: str
    kind: str
    prepare: Callable[[int], Callable[[], Estimate]]
    rounds: int
    iterations: int
    share: int
    package: str | None
    note: str
    memory: bool


CONTENDERS: list[Contender] = []


def contender(
    job: Job,
    name: str,
    kind: str,
    *,
    rounds: int = 5,
    iterations: int = 1,
    share: int | None = None,
    package: str | None = None,
    note: str = "",
    memory: bool = False,
):
    """Enter the decorated `prepare` function into the contest."""

    def enter(prepare):
        people = job.people if share is None else share
        CONTENDERS.append(
            Contender(job, name, kind, prepare, rounds, iterations, people, package, note, memory)
        )
        return prepare

    return enter


def answers(people: int, categories: int) -> np.ndarray:
    """Return everybody's category; low ones are the more frequent, as occupations are."""
    weights = 1 / np.arange(2, categories + 2)
    rng = np.random.default_rng(2017)
    return rng.choice(categories, size=people, p=weights / weights.sum())


def one_hot(values: np.ndarray, categories: int) -> np.ndarray:
    """Return a row of bits for every value."""
    bits = np.zeros((values.size, categories), dtype=np.uint8)
    bits[np.arange(values.size), values] = 1
    return bits


def true_counts(people: int, categories: int) -> np.ndarray:
    """Return the true number of people in each category, without listing a billion of them."""
    if people > 10**7:
        weights = 1 / np.arange(2, categories + 2)
        return np.random.default_rng(2017).multinomial(people, weights / weights.sum())
    return np.bincount(answers(people, categories), minlength=categories)


def draw_bytes(size: int, rng: np.random.Generator) -> None:
    """Draw and forget `size` random bytes: what any mechanism with a byte a coin must pay."""
    for start in range(0, size, BLOCK):
        rng.bytes(min(BLOCK, size - start))


def draw_words(size: int, rng: np.random.Generator) -> None:
    """Draw and forget `size` random bytes, eight at a time."""
    for start in range(0, size, BLOCK):
        rng.integers(0, 2**64, size=min(BLOCK, size - start) // 8, dtype=np.uint64)


def _response_variance(counts):
    return randomized_response.variance(counts, EPSILON)


def _label_variance(counts):
    return randomized_response.variance(counts, EPSILON / 2)


def _unary_variance(counts):
    return unary_encoding.variance(counts, *unary_encoding.probabilities(EPSILON))


RESPONSE = Job(
    "randomized response",
    "Randomized response: privatize and estimate",
    10**6,
    2,
    goals=(
        at_most("randomized response, times the limit", 2.5),
        at_least("randomized response, the best peer's time over ours", 250, over="peer"),
        at_least(
            "the same, both with cryptographic randomness: OpenDP's bit vector over our coins",
            150,
            over="OpenDP, one bit vector",
            under="dpnotes' coins, `os.urandom`",
        ),
    ),
    variance=_response_variance,
)
UNARY = Job(
    "unary encoding",
    "Unary encoding: perturb and aggregate",
    10**6,
    16,
    goals=(
        at_most("unary encoding, times the limit", 3.5),
        at_least("unary encoding, the best peer's time over ours", 40, over="peer"),
        at_most(
            "unary encoding in chunks, memory for ten times as many people",
            1.05,
            over="memory",
            under=None,
        ),
    ),
    variance=_unary_variance,
)
WIDE = Job(
    "wide unary encoding",
    "Unary encoding of a wide domain: perturb and aggregate",
    10**5,
    1024,
    goals=(at_most("unary encoding of a wide domain, times the limit", 1.5),),
    variance=_unary_variance,
)
COLLECTOR = Job(
    "collector",
    "Unary encoding, the collector's view alone: simulate and aggregate",
    10**9,
    16,
    goals=(at_most("a collection of a billion users, in milliseconds", 1.0, under=None),),
    variance=_unary_variance,
)
LABELS = Job(
    "labels",
    "Labels under the exponential mechanism: privatize and estimate",
    10**5,
    2,
    goals=(
        at_most("labels under the exponential mechanism, times the limit", 2.5),
        at_most("the same with eight bytes a label", 2.5, over="dpnotes, eight bytes a label"),
    ),
    variance=_label_variance,
)
SCORES = Job(
    "scores",
    "Labels under the exponential mechanism: the distribution of the number kept",
    10**6,
    2,
    goals=(
        at_least("the distribution of the number kept, scipy's time over ours", 1, over="peer"),
    ),
)
PAIRS = Job(
    "pairs",
    "Barrier hinge risk of all pairs, with its slopes",
    10**4,
    2,
    goals=(
        at_least("the risk of pairs, LibAUC's time over ours", 600, over="peer"),
        at_most(
            "the same beyond the barriers, times one sort",
            8,
            over="dpnotes, at the barriers",
        ),
    ),
)
MORE_PAIRS = Job(
    "more pairs",
    "Barrier hinge risk of all pairs, with its slopes",
    10**6,
    2,
    goals=(
        at_most("the risk of pairs of a million scores, in milliseconds", 200, under=None),
        at_most(
            "the same beyond the barriers, times one sort of a million",
            8,
            over="dpnotes, at the barriers",
        ),
    ),
)
ELUN = Job(
    "expected loss under noise",
    "Expected loss under noise: one fit, 31 weights, 50 draws",
    426,
    2,
    goals=(
        at_least(
            "a fit of the expected loss under noise, a loop's time over ours", 40, over="source"
        ),
        at_most("the same, times one logistic fit", 6),
    ),
)
TRIALS = Job(
    "trials",
    "Expected loss under noise: a hundred private models of the same data",
    426,
    2,
)
ACCOUNTING = Job(
    "accounting",
    "PATE: the cost of GNMax at 296 orders",
    26_032,
    10,
    goals=(at_least("the cost of GNMax, a loop of queries over ours", 50, over="source"),),
    counted="queries",
)
MORE_ACCOUNTING = Job(
    "more accounting",
    "PATE: the cost of GNMax at 300 orders",
    10**5,
    10,
    goals=(at_most("the cost of a hundred thousand queries, in milliseconds", 200, under=None),),
    counted="queries",
)
VOTING = Job(
    "voting",
    "PATE: count the votes of 250 teachers and draw every noisy winner",
    10**5,
    10,
    goals=(
        at_least("votes and noisy winners, a loop of queries over ours", 15, over="source"),
        at_most("votes and noisy winners, times reading and noise", 3),
    ),
    counted="queries",
)
AREA = Job(
    "area",
    "Area under the ROC curve",
    2 * 10**5,
    2,
    goals=(
        at_least(
            "the area under the curve, scikit-learn's time over ours", 10, over="scikit-learn"
        ),
        at_most("the area under the curve, times one sort", 4.5),
    ),
    counted="records",
)
MORE_AREA = Job(
    "more area",
    "Area under the ROC curve",
    10**7,
    2,
    counted="records",
)
SMOOTH = Job(
    "smooth sensitivity",
    "Smooth sensitivity of the AUC",
    10**5,
    2,
    goals=(at_least("smooth sensitivity, a loop of distances over ours", 1000, over="source"),),
    counted="records",
)
