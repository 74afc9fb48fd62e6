"""The report on a claim: families of neighbours, the verdict, and the event in words."""

import functools
import math
import re
import sys

import numpy as np
import pytest
from scipy import stats
from test_audit import hole_in_the_middle
from test_audit_confidence import Memoized, coin, most, tells_now_and_then

from dpnotes.audit import (
    _report,
    _wording,
    in_a_process,
    largest_certifiable_epsilon,
    pairs_by_removal,
    pairs_by_replacement,
    pairs_in_domain,
    report,
)

# Families of neighbours.


def test_a_domain_gives_every_pair_once():
    pairs = pairs_in_domain(["tea", "coffee", "milk", "water"])
    assert len({frozenset(pair[:2]) for pair in pairs}) == len(pairs) == 6
    assert all(pair.dataset != pair.neighbour for pair in pairs)


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_replacing_changes_one_record_to_each_other_value(make):
    records = make([0, 2, 1])
    pairs = pairs_by_replacement(records, [0, 1, 2])
    neighbours = [[1, 2, 1], [2, 2, 1], [0, 0, 1], [0, 1, 1], [0, 2, 0], [0, 2, 2]]
    assert [list(pair.neighbour) for pair in pairs] == neighbours
    assert all(type(pair.neighbour) is type(records) for pair in pairs)
    assert pairs[3].difference == "record 1 replaced by 1"
    assert list(records) == [0, 2, 1]


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_removing_leaves_each_record_out_and_adding_puts_one_more_in(make):
    records = make([5, 6, 7])
    pairs = pairs_by_removal(records, additions=[8])
    neighbours = [[6, 7], [5, 7], [5, 6], [5, 6, 7, 8]]
    assert [list(pair.neighbour) for pair in pairs] == neighbours
    assert all(type(pair.neighbour) is type(records) for pair in pairs)


def test_rows_of_a_table_are_records():
    rows = np.arange(6.0).reshape(3, 2)
    replaced, *_ = pairs_by_replacement(rows, [[0.0, 9.0]])
    assert replaced.neighbour.tolist() == [[0, 9], [2, 3], [4, 5]]
    assert pairs_by_removal(rows)[1].neighbour.tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize("value", [0.5, 2**70, "one"])
def test_a_value_that_an_array_would_change_is_refused(value):
    with pytest.raises(ValueError, match="values must fit into records, an array of int64"):
        pairs_by_replacement(np.array([1, 2]), [value])
    with pytest.raises(ValueError, match="additions must fit into records, an array of int64"):
        pairs_by_removal(np.array([1, 2]), additions=[value])


# The verdict.


def counts_twice(records, *, rng):
    """Claim 1 for neighbours with a record replaced by 0 or 1; the last one counts twice."""
    return sum(records) + records[-1] + rng.laplace()


def count(records, *, rng):
    return sum(records) + rng.laplace()


ZEROS = [0, 0, 0, 0]


def test_the_pair_on_which_a_mechanism_is_broken_is_found_and_named():
    found = report(counts_twice, 1.0, pairs_by_replacement(ZEROS, [0, 1]), trials=4000, rng=1)
    assert found.verdict == "violated"
    assert found.witness.difference == "record 3 replaced by 1"
    assert [pair.lower_bound > 1 for pair in found.pairs] == [False, False, False, True]
    assert found.lower_bound == found.witness.lower_bound <= 2


@pytest.mark.claim("audit.report", kind="simulation with its error")
@pytest.mark.parametrize("pairs", [1, 10])
def test_however_many_pairs_are_tried_a_true_claim_is_seldom_called_violated(pairs):
    options = {"trials": 100, "confidence": 0.8}
    found = [report(coin, 1.0, [(0, 1)] * pairs, rng=seed, **options) for seed in range(60)]
    assert sum(one.verdict == "violated" for one in found) <= most(60, 0.8)


def test_the_bound_of_a_pair_is_that_of_its_counts():
    found = report(coin, 0.5, [(0, 1), (1, 0)], trials=3001, delta=0.01, confidence=0.9, rng=5)
    assert found.limit == pytest.approx(largest_certifiable_epsilon(3001, delta=0.01))
    for pair in found.pairs:
        more, fewer = sorted((pair.hits, pair.neighbour_hits), reverse=True)
        assert pair.runs == 1501
        low = stats.beta.ppf(0.025, more, pair.runs - more + 1)
        high = stats.beta.ppf(0.975, fewer + 1, pair.runs - fewer)
        assert pair.lower_bound == pytest.approx(math.log((low - 0.01) / high))


def test_the_result_depends_on_the_seed_and_not_on_the_jobs():
    pytest.importorskip("joblib")
    pairs = pairs_by_replacement(ZEROS, [0, 1])
    one, again, two, other = (
        report(count, 1.0, pairs, trials=200, jobs=jobs, rng=rng)
        for jobs, rng in ((1, 3), (1, np.random.default_rng(3)), (2, 3), (1, 4))
    )
    assert one == again == two != other


def test_several_jobs_without_joblib_are_refused_before_anything_is_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    runs = []
    options = {"epsilon": 1.0, "pairs": [(0, 1)], "trials": 100, "rng": 0}
    with pytest.raises(ModuleNotFoundError, match=r"jobs .* joblib: pip install dpnotes\[audit\]"):
        report(runs.append, jobs=2, **options)
    assert not runs
    assert report(runs.append, jobs=1, **options).pairs


def test_a_mechanism_that_lives_in_one_process_is_not_sent_to_several():
    pytest.importorskip("joblib")
    with (
        in_a_process("dpnotes.randomized_response:two_coin") as mechanism,
        pytest.raises(TypeError, match="mechanism must be one that can be sent to 2 processes"),
    ):
        report(mechanism, 1.0, [([True], [False])] * 2, trials=100, jobs=2, rng=0)


def test_every_pair_has_runs_of_its_own():
    found = report(count, 1.0, [(ZEROS, [1, 0, 0, 0])] * 3, trials=400, rng=0)
    assert len({pair.hits for pair in found.pairs}) == 3


def test_a_bound_that_only_reaches_the_claim_is_no_violation():
    kept = broken()._replace(epsilon=broken().lower_bound)
    assert kept.verdict == "not refuted"
    assert kept._replace(epsilon=kept.epsilon * 0.999).verdict == "violated"


def test_a_mechanism_with_memory_is_built_anew_for_every_run():
    options = {"pairs": [(0, 1)], "trials": 200, "factory": True, "rng": 0}
    assert report(Memoized, 1.0, **options).verdict == "not refuted"
    assert report(Memoized, 0.1, **options).verdict == "violated"


def test_a_delta_excuses_what_it_allows():
    options = {"pairs": [(0, 1)], "trials": 4000, "rng": 0}
    assert report(tells_now_and_then, 1.0, **options).verdict == "violated"
    assert report(tells_now_and_then, 1.0, delta=0.05, **options).verdict == "not refuted"


def test_trials_that_could_not_refute_whatever_happens_are_refused():
    with pytest.raises(ValueError, match="trials must be enough to refute the claim on one of 2 "):
        report(coin, 5.0, [(0, 1)] * 2, trials=100)


# The words.


def told_apart(mechanism, trials=400, rng=0):
    """Return the event by which 0 and 1 are told apart."""
    return report(mechanism, 0.1, [(0, 1)], trials=trials, rng=rng).witness.event


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda truth: truth, "0"),
        (lambda truth: np.int64(truth), "0"),
        (lambda truth: 0 if truth else np.int64(0), "np.int64(0)"),
        (lambda truth: None if truth else 2**60, "1152921504606846976"),
        (lambda truth: [1, ("a", truth)], "[1, ('a', 0)]"),
        (lambda truth: [truth] * 7, "[0, 0, 0, 0, 0, 0, ...]"),
        (lambda truth: np.array([truth, 2]), "an array [0, 2]"),
        (lambda truth: np.array([0], [int, np.int8][truth]), "an array [0] of int64"),
        (lambda truth: np.full((1, 9), truth), "an array [[0, 0, 0, 0, 0, 0, ...]]"),
        (lambda truth: np.full((2, 1, 1), truth), "an array of shape (2, 1, 1)"),
        (lambda truth: np.array(["ab"[truth]]), "an array ['a']"),
        (lambda truth: {}[f"no {truth}"], "the exception KeyError: 'no 0'"),
    ],
)
def test_an_output_is_named_as_it_was(mechanism, words):
    # Either data set may be the one on which the event is the likelier.
    found = report(mechanism, 0.1, [(0, 1), (1, 0)], trials=400, rng=0)
    assert f"the output is {words}" in {pair.event for pair in found.pairs}


def test_an_output_that_changes_later_is_read_and_named_as_it_was():
    buffer = [None]

    def mechanism(truth):
        buffer[0] = truth
        return buffer

    assert told_apart(mechanism) in ("the output is [0]", "the output is [1]")


def test_outputs_of_a_kind_that_tells_are_named_by_examples():
    def another_type(truth, *, rng):
        return rng.normal() if truth else np.float64(rng.normal())

    assert re.match(r"the output is such as (np.float64\()?-?\d\.\d", told_apart(another_type))


def test_a_tail_a_hole_and_one_coordinate_are_said_as_such():
    def leaks_in_one(truth, *, rng):
        noisy = rng.normal(size=4)
        noisy[2] = truth if rng.random() < 0.3 else noisy[2]
        return noisy

    buffer = np.zeros(1)
    tail = told_apart(lambda truth, *, rng: np.add(3 * truth, rng.normal(), out=buffer))
    assert re.fullmatch(r"the output is at (least|most) \d\.\d+", tail)
    assert told_apart(hole_in_the_middle, 2000).startswith("the output is from -0.")
    assert "an array [" in told_apart(lambda truth, *, rng: truth + rng.normal(size=1000), 100)
    assert re.fullmatch(r"number 2 of the output is [01]\.0", told_apart(leaks_in_one, 2000))


def test_what_is_left_is_a_learned_score():
    def shared(truth, *, rng):
        return truth * np.array([1.0, -1.0]) + 0.01 * rng.normal(size=2) + 50 * rng.normal()

    assert told_apart(shared, 1000).startswith("a score of the output, learned from other runs")


def test_what_is_said_of_an_event_holds_for_no_output_outside_of_it():
    rng = np.random.default_rng(0)
    for _ in range(30):
        column = rng.integers(-9, 10, 50) / 4
        chosen = np.isin(column, rng.choice(column, rng.integers(1, 8)))
        values, ranges = _wording._find_ranges(column, chosen)
        found = np.zeros(50, dtype=bool)
        for start, end in ranges:
            found |= (column >= values[start]) & (column <= values[end])
        assert np.array_equal(found, chosen)
    mixed = np.array([1.0, 1.0, 2.0])
    assert _wording._find_ranges(mixed, np.array([True, False, True]))[1] == []


@pytest.mark.parametrize(
    ("column", "chosen", "words"),
    [
        ([1.0, 2.0, 3.0], [1, 1, 0], "at most 2"),
        ([1.0, 2.0, 3.0], [0, 1, 1], "at least 2"),
        ([1.0, 2.0, 3.0, 4.0], [0, 1, 1, 0], "from 2 to 3"),
        ([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], "2.0 or 4.0"),
        ([0.0, -0.0, 1.0], [0, 1, 0], "-0.0"),
        ([math.nan, 0.0, 1.0, 2.0], [1, 0, 1, 1], "at least 1 or nan"),
        ([math.nan, 0.0, 1.0, 2.0], [0, 0, 1, 1], "at least 1"),
    ],
)
def test_values_are_put_into_words(column, chosen, words):
    column, chosen = np.array(column), np.array(chosen, dtype=bool)
    assert _wording._name_ranges(*_wording._find_ranges(column, chosen)) == words


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (([0, 1], [0, 2]), "record 1 is 1 or 2"),
        ((np.arange(50), np.arange(50) + (np.arange(50) == 30)), "record 30 is 30 or 31"),
        (([0], [1]), "[0] and [1]"),
        ((np.array(1), np.array(2)), "array(1) and array(2)"),
        (("a" * 200, "b"), "'aaaaaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaa' and 'b'"),
        ((0, 1, "in my words"), "in my words"),
    ],
)
def test_a_pair_without_words_is_told_by_its_difference(pair, words):
    assert report(lambda data: 0, 1.0, [pair], trials=100, rng=0).witness.difference == words


# The object.


@functools.cache
def broken(delta=0.0):
    pairs = tuple(map(tuple, pairs_by_replacement(ZEROS, [0, 1])))
    return report(counts_twice, 1.0, pairs, trials=4000, delta=delta, rng=1)


def test_the_sentence_has_the_numbers_that_make_the_case():
    words, pair = str(broken()), broken().witness
    for said in (
        "Violated: epsilon = 1 lets no event be more than 2.718 times as likely",
        *(pair.difference, pair.event, f"{pair.hits:,} times in 2,000 runs"),
        f"epsilon of at least {pair.lower_bound:.2f}, with confidence 0.95",
    ):
        assert said in words
    assert "and a probability of 0.01 besides" in broken(0.01).sentence
    kept = report(count, 1.0, pairs_in_domain([(0,), (1,)]), trials=400, rng=1)
    assert kept.sentence.startswith("Not refuted: no event showed an epsilon above 0.")
    assert f"{kept.limit:.2f}. That is no proof" in kept.sentence
    assert "exp(800)" in _report._describe_claim(800.0, 0.0)


def test_the_table_has_the_worst_pair_first_and_its_bounds_of_four_decimals_are_still_bounds():
    pairs = [broken().witness._replace(lower_bound=b) for b in (3.2e-15, 0.99999, 1.23456789)]
    table = broken()._replace(pairs=tuple(pairs)).table()
    assert table.lower_bound.tolist() == [1.2345, 0.9999, 0.0]


def test_a_line_of_the_picture_ends_in_the_grey_just_where_the_claim_is_violated():
    matplotlib = pytest.importorskip("matplotlib")
    axes = broken(0.01).plot()
    matplotlib.pyplot.close(axes.figure)

    def edge(one):
        return np.maximum(1 - 0.01 - math.e * one, (1 - 0.01 - one) / math.e)

    corners = axes.collections[0].get_paths()[0].vertices
    one, two = corners[corners[:, 1] > 0].T
    assert two == pytest.approx(edge(one), abs=1e-12)
    assert axes.lines[0].get_xydata().tolist() == [[0, 1], [1, 0]]
    one, two = np.array([line.get_xydata()[-1] for line in axes.lines[1:]]).T
    assert (two < edge(one)).tolist() == [pair.lower_bound > 1 for pair in broken(0.01).pairs]
    assert broken().plot(axes) is axes
