"""Whether data are refused, and in which words, depends on each record by itself.

A refusal is an output. If it depended on the records together, two data sets of valid records that
differ in one would be told apart by it, whatever the noise is. So for every function that draws,
or fits, from records: a data set is taken if each of its records is (a data set of nothing else
is taken), and refused in the words that one of its records has by itself.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kinds import SECRET, SECRET_WORD, find_thing, make_arguments, make_call
from test_refusals import DRAWING

# Records of any type, inside and outside of the usual domains.
ENTRIES = [
    *(0, 1, 2, -1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 + 1, -(2**63), SECRET),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 5e-324, 1e308, math.nan, math.inf, -math.inf),
    *(True, False, np.True_, np.int8(1), np.int8(-1), np.uint8(1), np.uint64(0), np.uint64(1)),
    *(np.uint64(2**64 - 1), np.int64(1), np.float16(0.5), np.float32(0.5), np.float64(1.0), 1j),
    *("", "1", "tea", "coffee", SECRET_WORD, b"1", None, ..., np.str_("tea")),
]
ROWS = [
    *([0, 1], [1, 0], [1, 1], [0, 0], [True, False], [np.uint64(1), 0], [2, 0], [-1, 1]),
    *([1.0, 0.0], [0.5, 1e308], [math.nan, 0.0], [math.inf, 1.0], [1e100, 0], [1e101, 0]),
    *([2**63, 0], ["1", "0"], [None, 1], (0, 1), np.array([0, 1]), [True, 1], [1j, 0]),
    *(np.array([1, 0], dtype=np.uint64), np.array([True, False])),
]
# What holds the records, and which there may be.
PRIVATE = {
    "elun.PrivateLogisticRegression.fit": {"X": ROWS, "y": ENTRIES},
    "counts_and_means.release_count": {"values": ENTRIES},
    "counts_and_means.release_histogram": {"values": ENTRIES},
    "counts_and_means.release_mean": {"values": ENTRIES},
    "counts_and_means.release_sum": {"values": ENTRIES},
    "exponential_mechanism.release_median": {"values": ENTRIES},
    "exponential_mechanism.release_quantile": {"values": ENTRIES},
    "label_privacy.exponential": {"labels": ENTRIES},
    "label_privacy.privatize": {"labels": ENTRIES},
    "noisy_gradient_descent.fit": {"features": ROWS, "labels": ENTRIES},
    "private_auc.release_auc": {"labels": ENTRIES, "scores": ENTRIES},
    "private_auc.release_average_precision": {"labels": ENTRIES, "scores": ENTRIES},
    "private_confusion.release_confusion_matrix": {"labels": ENTRIES, "predictions": ENTRIES},
    "randomized_response.privatize": {"values": ENTRIES},
    "randomized_response.two_coin": {"values": ENTRIES},
    "unary_encoding.encode": {"values": ENTRIES},
    "unary_encoding.perturb": {"bits": ROWS},
}
# Functions that draw and have no record that could be exchanged for another: they attack a
# mechanism, make noise or places, simulate, or take answers, utilities and votes, each of all.
WITHOUT_RECORDS = {
    *("audit.epsilon_lower_bound", "audit.report", "grading.grade"),
    *("elun.coordinate_laplace_noise", "elun.l2_laplace_noise", "private_auc.MetricNoise.draw"),
    *("pate.partition", "training.patch_features", "unary_encoding.simulate_ones"),
    *("exponential_mechanism.above_threshold", "exponential_mechanism.permute_and_flip"),
    *("exponential_mechanism.sample", "pate.release_cost", "pate.ConfidentGNMax.answer"),
    *("pate.GNMax.answer", "pate.GumbelMax.answer", "pate.LNMax.answer"),
}


def test_every_function_that_draws_is_asked_or_has_no_records():
    assert {*DRAWING} - PRIVATE.keys() == WITHOUT_RECORDS


def outcome(name, columns):
    """Return what a caller sees but for the noise: the kind of result, or a refusal's words."""
    arguments = make_arguments(name, find_thing(name)) | columns
    try:
        result = make_call(name)(**arguments)
    except (TypeError, ValueError) as refusal:
        return type(refusal), str(refusal)
    return type(result), kinds_in(result)


def is_refusal(seen):
    return issubclass(seen[0], Exception)


def kinds_in(result):
    """Return the types of the parts of a result, with the shapes of arrays."""
    if isinstance(result, np.ndarray):
        return result.dtype.kind, result.shape
    if dataclasses.is_dataclass(result):
        result = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        return {name: kinds_in(value) for name, value in result.items()}
    return type(result)


SIZE = 4
unhurried = {"deadline": None, "database": None, "suppress_health_check": [*HealthCheck]}


def columns_of(name, records, container):
    return {
        parameter: container(entries)
        for parameter, entries in zip(PRIVATE[name], zip(*records, strict=True), strict=True)
    }


def types_of(value):
    """Return the types in a record, which anybody may know."""
    if isinstance(value, list | tuple):
        return type(value), *map(types_of, value)
    return (type(value), value.dtype) if isinstance(value, np.ndarray) else type(value)


def check_neighbours(name, pools, containers, data):
    """Draw a data set and its neighbour, whose last record is another one, and compare them."""

    def seen_of(records):
        return outcome(name, columns_of(name, records, container))

    # Of few kinds, so that many data sets hold valid records only.
    record = st.tuples(*map(st.sampled_from, pools))
    kinds = data.draw(st.lists(record, min_size=2, max_size=3), label="kinds of records")
    records = data.draw(st.lists(st.sampled_from(kinds), min_size=SIZE, max_size=SIZE))
    other, container = data.draw(st.sampled_from(kinds)), data.draw(st.sampled_from(containers))
    alone = {id(record): seen_of([record] * SIZE) for record in [*records, other]}
    neighbour = [*records[:-1], other]
    first, second = seen_of(records), seen_of(neighbour)
    for data_set, seen in ((records, first), (neighbour, second)):
        refusals = [alone[id(record)] for record in data_set if is_refusal(alone[id(record)])]
        assert is_refusal(seen) == bool(refusals)
        assert not refusals or seen[0] in {kind for kind, _ in refusals}
    if types_of(records[-1]) == types_of(other) and alone[id(records[-1])] == alone[id(other)]:
        assert first == second


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=20, derandomize=True, **unhurried)
@given(data=st.data())
def test_a_refusal_tells_no_two_valid_records_of_a_list_apart(name, data):
    check_neighbours(name, PRIVATE[name].values(), [list, tuple], data)


SOME = [0.0, 1.0, 0.5, -1.0, 2.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e308]
WHOLE = [0, 1, 2, -1, 5, 127]
ARRAYS = {
    **dict.fromkeys(["f2", "f4", "f8", "c16"], SOME),
    **dict.fromkeys(["i1", "i8", ">i2"], WHOLE),
    "u1": [0, 1, 2, 255],
    "u8": [0, 1, 2, 2**63],
    "?": [False, True],
    "U9": ["tea", "coffee", "1", "", SECRET_WORD],
    "O": [0, 1, -1, 0.5, math.nan, None, True, "tea"],
}


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=20, derandomize=True, **unhurried)
@given(data=st.data())
def test_a_refusal_tells_no_two_valid_records_of_an_array_apart(name, data):
    kind = data.draw(st.sampled_from(sorted(ARRAYS)), label="type of the array")
    rows = [[first, second] for first in ARRAYS[kind] for second in ARRAYS[kind]]
    pools = [ARRAYS[kind] if pool is ENTRIES else rows for pool in PRIVATE[name].values()]
    with np.errstate(over="ignore"):
        check_neighbours(name, pools, [lambda entries: np.array(entries, dtype=kind)], data)


MECHANISMS = [name for name in sorted(WITHOUT_RECORDS) if name.endswith(".answer")]


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=20, derandomize=True, **unhurried)
@given(
    votes=st.lists(st.sampled_from([0, 1, 2, 250, 2**31 - 1, 2**31]), min_size=2, max_size=4),
    places=st.permutations(range(4)),
)
def test_a_vote_that_moves_changes_no_refusal(name, votes, places):
    giver, taker = [place for place in places if place < len(votes)][:2]
    moved = list(votes)
    moved[giver], moved[taker] = moved[giver] - 1, moved[taker] + 1
    if moved[giver] >= 0:
        assert kind_of(name, votes) == kind_of(name, moved)


def kind_of(name, votes):
    """Return the kind of answer, which may be none from the confident mechanism, or the refusal."""
    return outcome(name, {"votes": votes})
