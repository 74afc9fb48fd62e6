"""The exact half of `dpnotes.audit`, beyond a single epsilon: the trade-off function."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_audit import laws

from dpnotes.audit import _exact, exact_delta, exact_epsilon, trade_off

GRID = np.linspace(0, 1, 41)


def best_attacker(rows, error):
    """Try every event, and every coin between two of them, on all pairs in both directions."""
    outputs = range(len(rows[0]))
    sizes = range(len(outputs) + 1)
    events = [event for size in sizes for event in itertools.combinations(outputs, size)]
    best = 1 - error
    for first, second in itertools.permutations(rows, 2):
        one = np.array([math.fsum(first[o] for o in event) for event in events])
        # Events from the last on are complements: a small error of type II is not a difference.
        two = np.array([math.fsum(second[o] for o in event) for event in reversed(events)])
        allowed, rest = one <= error, one > error
        best = min(best, two[allowed].min())
        for a, b in zip(one[allowed], two[allowed], strict=True):
            share = (error - a) / (one[rest] - a)
            best = min(best, *(b + share * (two[rest] - b)), best)
    return best


@pytest.mark.claim("audit.trade_off", kind="enumeration")
@given(laws(), st.one_of(st.sampled_from([0.0, 1e-12, 0.1, 0.5, 1.0]), st.floats(0, 1)))
def test_no_event_and_no_coin_between_two_events_does_better_than_the_trade_off(rows, error):
    expected = best_attacker(rows, error)
    assert trade_off(rows, error) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.claim("fd-thm-trade-off", "audit.trade_off", kind="enumeration")
@given(laws(), st.sampled_from([0.0, 0.1, 1.0, 3.0]))
@example([[1e-300, 2e-311, 1.0], [2e-313, 0.1, 0.9]], 0.0)  # slopes of its lines overflow
def test_delta_is_read_off_the_trade_off_function(rows, epsilon):
    corners = [0.0, 1.0]
    for first, second in itertools.permutations(rows, 2):
        corners.extend(_exact._find_corners(np.array(first), np.array(second))[0])
    errors = np.array(corners)
    read_off = (1 - trade_off(rows, errors) - math.exp(epsilon) * errors).max()
    assert max(0, read_off) == pytest.approx(exact_delta(rows, epsilon), abs=1e-12)


def test_the_neighbours_given_count_alone():
    law = [[0.5, 0.5], [0.6, 0.4], [1.0, 0.0]]
    assert exact_delta(law, 0.0, neighbours=[(0, 1)]) == pytest.approx(0.1)
    assert trade_off(law, 0.0, neighbours=[(0, 1)]) == 1.0


def test_fractions_that_a_float_rounds_to_the_same_number_are_refused():
    least = Fraction(1, 2**1074)
    rows = [[least * Fraction(part, 10), 1 - least * Fraction(part, 10)] for part in (14, 6)]
    for check in (exact_epsilon, lambda rows: exact_delta(rows, 0.1), lambda r: trade_off(r, 0.1)):
        with pytest.raises(ValueError, match="that a float can hold with all its digits, row 0"):
            check(rows)
    # What is a float already has lost nothing.
    assert exact_epsilon([[5e-324, 1.0], [1e-323, 1.0]]) == pytest.approx(math.log(2))


def test_a_delta_is_a_probability_where_a_row_sums_to_a_little_more():
    assert exact_delta([[1 + 9e-10, 0.0], [0.0, 1.0]], 0.0) == 1.0


def test_a_small_error_of_type_ii_keeps_its_digits():
    law = [[1 - 1e-200, 1e-200], [1e-200, 1 - 1e-200]]
    assert trade_off(law, 0.5) == pytest.approx(0.5e-200, rel=1e-9, abs=0)


def test_a_curve_keeps_the_shape_that_it_is_asked_for():
    law = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    assert trade_off(law, 0.25).shape == ()
    assert trade_off(law, np.zeros((2, 3, 1))).shape == (2, 3, 1)
    assert trade_off(law, []).shape == (0,)
    assert trade_off([[0.25, 0.75]], [0.0, 0.3, 1.0]).tolist() == [1.0, 0.7, 0.0]
