"""Every public function refuses, for each of its parameters, what `kinds.py` says of its kind."""

import re

import numpy as np
import pytest
from kinds import (
    LEFT_OUT,
    READS_FILES,
    SECRET,
    SECRET_WORD,
    find_kind,
    find_parameters,
    find_thing,
    make_arguments,
    make_call,
    types,
    values,
)
from public import MODULES, callables, short_name

from dpnotes import (
    accounting,
    exponential_mechanism,
    histogram,
    label_privacy,
    randomized_response,
    unary_encoding,
)

NAMES = [
    f"{short_name(module)}.{name}"
    for module in MODULES
    for name in callables(module)
    if f"{short_name(module)}.{name}" not in LEFT_OUT
]
DRAWING = [name for name in NAMES if "rng" in make_arguments(name, find_thing(name))]


@pytest.mark.parametrize("name", sorted({*NAMES} - READS_FILES))
def test_a_working_call_works(name):
    make_call(name)(**make_arguments(name, find_thing(name)))


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_refused_by_name(name):
    call, arguments = make_call(name), make_arguments(name, find_thing(name))
    for parameter in find_parameters(find_thing(name)):
        _, refused, _ = find_kind(name, parameter.name)
        for error, value in refused:
            assert_refused(call, arguments | {parameter.name: value}, parameter.name, error)


def assert_refused(call, arguments, parameter, error):
    value = arguments[parameter]
    try:
        call(**arguments)
    except (ValueError, TypeError) as refusal:
        kind, message = type(refusal), str(refusal)
    else:
        pytest.fail(f"{parameter} may be {value!r}")
    # A subclass, such as an error of decoding, would be none of ours.
    assert kind is error, (parameter, value, message)
    assert re.search(rf"\b{parameter}\b", message), (value, message)
    assert " must " in message
    assert str(SECRET) not in message
    assert SECRET_WORD not in message


@pytest.mark.parametrize("name", DRAWING)
def test_input_is_refused_before_anything_is_drawn(name):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    call, arguments = make_call(name), make_arguments(name, find_thing(name))
    for parameter in arguments.keys() - {"rng"}:
        _, [(error, bad), *_], _ = find_kind(name, parameter)
        with pytest.raises(error):
            call(**arguments | {parameter: bad, "rng": rng})
    assert rng.bit_generator.state == before


NO_SEED = [
    *types(False, np.True_, [], (), [1], {}, "0", b"0", 1.0, np.array(3), np.random.RandomState(1)),
    *types(np.random.SeedSequence(1), np.random),
    *values(-1, np.int8(-1)),
]


@pytest.mark.parametrize("name", DRAWING)
def test_a_seed_that_is_none_is_not_taken_for_the_seed_0(name):
    call, arguments = make_call(name), make_arguments(name, find_thing(name))
    for error, bad in NO_SEED:
        assert_refused(call, arguments | {"rng": bad}, "rng", error)


def test_a_message_that_repeats_the_record_would_be_noticed(monkeypatch):
    def check_loudly(name, values, categories):
        raise ValueError(f"{name} must be in the domain, got {values}")

    monkeypatch.setattr(randomized_response, "check_categories", check_loudly)
    arguments = {"values": [SECRET], "epsilon": 1.0}
    with pytest.raises(AssertionError):
        assert_refused(randomized_response.privatize, arguments, "values", ValueError)


HOUR, NANOSECOND = np.timedelta64(1, "h"), np.timedelta64(1, "ns")
ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("epsilon", lambda: randomized_response.keep_probability(HOUR)),
        ("epsilon", lambda: randomized_response.keep_probability(NANOSECOND)),
        ("categories", lambda: randomized_response.keep_probability(1.0, np.timedelta64(3, "ns"))),
        ("rng", lambda: randomized_response.two_coin([True], rng=NANOSECOND)),
        ("answers", lambda: exponential_mechanism.above_threshold([NANOSECOND, 3], 1, 1.0)),
        ("values", lambda: histogram.release_count([NANOSECOND, 1], 1.0)),
        ("answers", lambda: exponential_mechanism.above_threshold(ITSELF, 1, 1.0)),
        ("answers", lambda: exponential_mechanism.above_threshold_distribution(ITSELF, 1, 1.0)),
        ("epsilon", lambda: accounting.compose_bounded_range(1e308, 3, 1e-5)),
        ("categories", lambda: randomized_response.output_distribution(1.0, 10**9)),
        ("categories", lambda: randomized_response.estimate([0, 1], 1.0, categories=2**53)),
        ("n", lambda: label_privacy.log_score_pmf(2**53, 1.0)),
        ("counts", lambda: randomized_response.estimate_counts([1e308] * 2, 1.0)),
        ("counts", lambda: unary_encoding.simulate_ones([1e308] * 2, 0.5, 0.25)),
    ],
)
def test_odd_input_is_refused_in_words_and_without_a_warning(name, call):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}\b.* must "):
        call()


@pytest.mark.parametrize("sensitivity", [1e-320, 5e-324])
def test_losses_near_the_smallest_doubles_cost_nothing(sensitivity):
    pytest.importorskip("dp_accounting")
    assert float(accounting.compose_laplace(1.0, 3, 1e-5, sensitivity=sensitivity)) == 0


def test_a_range_near_the_largest_double_costs_all_of_it():
    assert float(accounting.compose_bounded_range(1e308, 1, 1e-5, adaptive=False)) == 1e308
