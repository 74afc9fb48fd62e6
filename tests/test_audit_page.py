"""What the chapter on audits states, on all small cases, and the audit that it builds by hand."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from by_hand import BOOK, names_of
from scipy import stats

from dpnotes.audit._lower_bound import _log_ratio_bound

PAGE = BOOK / "audit.ipynb"
SMALL = 1e-9  # what rounding may add to a probability


def chance_to_accuse(p, q, epsilon, runs, error, delta):
    """Sum the probabilities of all pairs of counts whose bound is above epsilon."""
    counts = np.arange(runs + 1)
    bounds = _log_ratio_bound(counts[:, None], counts, runs, error, delta)
    chances = np.outer(stats.binom.pmf(counts, runs, p), stats.binom.pmf(counts, runs, q))
    return chances[bounds > epsilon + SMALL].sum()


def honest_events(epsilon, delta):
    """Yield the probabilities of events on which a mechanism spends all that it may."""
    for q in np.linspace(0, 1, 41):
        yield min(1.0, math.exp(epsilon) * q + delta), q


@pytest.mark.claim("au-thm-bound", kind="enumeration")
@pytest.mark.parametrize("error", [0.05, 0.5])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_a_bound_on_an_event_chosen_before_is_wrong_as_seldom_as_stated(delta, error):
    worst = max(
        chance_to_accuse(p, q, epsilon, runs, error / 2, delta)
        for epsilon, runs in itertools.product([0.0, 0.5, 1.0, 2.0], [5, 20, 60])
        for p, q in honest_events(epsilon, delta)
    )
    assert 0 < worst <= error + SMALL


def test_the_bounds_of_the_page_are_those_of_the_package():
    counts = np.array([[0, 3, 10, 10, 7], [4, 3, 0, 10, 2]])
    by_hand = names_of(PAGE)["lower_bounds"](counts, 10, error=0.1)
    packaged = _log_ratio_bound(counts, counts[::-1], 10, 0.05, 0.0)
    assert by_hand == pytest.approx(np.maximum(packaged, 0.0))


@pytest.mark.claim("au-thm-rare", kind="all cases in exact numbers")
def test_no_audit_tells_a_rare_fault_by_more_than_the_chance_that_it_was_there():
    shares = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)]
    reached = False
    for honest, fault, chance in itertools.product(shares, repeat=3):
        faulty = (1 - chance) * honest + chance * fault
        for runs in range(1, 6):
            # Any audit is a set of sequences of outputs; the best one gains their distance.
            with_fault, without = (
                map(math.prod, itertools.product((p, 1 - p), repeat=runs)) for p in (faulty, honest)
            )
            gain = sum(max(0, p - q) for p, q in zip(with_fault, without, strict=True))
            most = 1 - (1 - chance) ** runs
            assert gain <= most
            reached |= 0 < chance < 1 and gain == most
    assert reached


BITS = list(itertools.product((0, 1), repeat=2))
NEIGHBOURS = [(i, j) for i in range(4) for j in (i ^ 1, i ^ 2)]
FACTOR = 2
# For each output, which of the two bits are guessed.
GUESSED = [*itertools.product([(0,), (1,)], repeat=2), ((0, 1), (0, 1))]


def private_mechanisms():
    """Yield what output 1 has for a probability, on each pair of bits, as epsilon = ln 2 allows."""
    shares = [Fraction(part, 9) for part in range(10)]
    for ones in itertools.product(shares, repeat=4):
        pairs = [(ones[i], ones[j]) for i, j in NEIGHBOURS]
        if all(p <= FACTOR * q and 1 - p <= FACTOR * (1 - q) for p, q in pairs):
            yield ones


@pytest.mark.claim("au-thm-one-run", kind="all cases in exact numbers")
def test_guesses_from_one_run_are_right_no_more_often_than_coins_of_that_epsilon():
    right = Fraction(FACTOR, 1 + FACTOR)
    tails = {1: [1, right], 2: [1, 1 - (1 - right) ** 2, right**2]}
    reached = set()
    for ones in private_mechanisms():
        for places, values in itertools.product(GUESSED, itertools.product(BITS, BITS)):
            chances, guesses = [Fraction(0)] * 3, len(places[0])
            for bits, one in zip(BITS, ones, strict=True):
                for kept, value, chance in zip(places, values, (1 - one, one), strict=True):
                    chances[sum(bits[k] == value[k] for k in kept)] += chance / 4
            for least in range(1, guesses + 1):
                share, most = sum(chances[least:]), tails[guesses][least]
                assert share <= most
                if share == most:
                    reached.add((guesses, least))
    assert (1, 1) in reached


def test_the_events_of_the_audit_by_hand_are_both_sides_of_each_cut():
    outputs = np.array([[1.0, 2.0, 2.0, 5.0], [0.0, 2.0, 3.0, 9.0]])
    counts = names_of(PAGE)["tail_counts"](outputs, np.array([2.0, 4.0]))
    assert counts.tolist() == [[1, 1, 3, 3], [2, 1, 2, 3]]


@pytest.mark.parametrize("telling", [0, 1])
def test_the_audit_by_hand_chooses_on_one_half_of_the_runs_and_tests_on_the_other(telling):
    calls = itertools.count()

    def tells_in_one_half(data, rng):
        return rng.random() + (9 * data if next(calls) % 200 // 100 == telling else 0)

    audit_by_hand = names_of(PAGE)["audit_by_hand"]
    options = {"trials": 200, "rng": np.random.default_rng(0)}
    assert audit_by_hand(tells_in_one_half, 0, 1, **options) < 0.5
    assert audit_by_hand(lambda data, rng: rng.random() + 9 * data, 0, 1, **options) > 2
