import importlib.util
import inspect
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pate_refusals
import private_auc_refusals
import pytest

from dpnotes import exponential_mechanism, label_privacy, randomized_response, unary_encoding
from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_counts,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
)

# A record that no message may repeat.
SECRET, SECRET_WORD = 31_337, "absinthe"

WORKING_CALLS = {
    randomized_response: {
        "keep_probability": {"epsilon": 1.0, "categories": 3},
        "output_distribution": {"epsilon": 1.0, "categories": 3},
        "privatize": {"values": [0, 1, 2], "epsilon": 1.0, "categories": 3, "rng": 0},
        "estimate": {"reports": [0, 1, 2], "epsilon": 1.0, "categories": 3},
        "variance": {"counts": [5, 3, 0], "epsilon": 1.0},
        "two_coin": {"values": [True, False], "rng": 0},
    },
    unary_encoding: {
        "probabilities": {"epsilon": 1.0, "scheme": "optimized"},
        "epsilon": {"p": 0.5, "q": 0.25},
        "output_distribution": {"categories": 3, "p": 0.5, "q": 0.25},
        "encode": {"values": ["tea"], "domain": ["tea", "coffee"], "missing": "raise"},
        "perturb": {"bits": [[0, 1], [1, 0]], "p": 0.5, "q": 0.25, "rng": 0},
        "count_ones": {"reports": [[0, 1], [1, 1]]},
        "aggregate": {"reports": [[0, 1], [1, 1]], "p": 0.5, "q": 0.25},
        "aggregate_ones": {"ones": [1, 2], "n": 2, "p": 0.5, "q": 0.25},
        "simulate_ones": {"counts": [5, 3], "p": 0.5, "q": 0.25, "n": 9, "rng": 0},
        "variance": {"counts": [5, 3], "p": 0.5, "q": 0.25, "n": 9},
        "support_probabilities": {"protocol": "hadamard", "epsilon": 1.0, "categories": 3},
        "project_to_simplex": {"estimates": [5.0, -1.0], "total": 4.0},
    },
    exponential_mechanism: {
        "sample": {
            "utilities": [1.0, 2.0],
            "epsilon": 1.0,
            "sensitivity": 1.0,
            "size": None,
            "rng": 0,
        },
        "output_distribution": {"utilities": [1.0, 2.0], "epsilon": 1.0, "sensitivity": 1.0},
    },
    label_privacy: {
        "output_distribution": {"epsilon": 1.0},
        "privatize": {"labels": [1, -1], "epsilon": 1.0, "classes": (-1, 1), "rng": 0},
        "estimate": {"reports": [1, -1], "epsilon": 1.0, "classes": (-1, 1)},
        "variance": {"counts": [5, 3], "epsilon": 1.0},
        "exponential": {
            "labels": [1, -1],
            "stated_epsilon": 1.0,
            "method": "independent",
            "classes": (-1, 1),
            "rng": 0,
        },
        "log_score_pmf": {"n": 3, "stated_epsilon": 1.0},
        "truncated_binomial": {"n": 10, "low": 5, "high": 10, "p": 0.5},
        "success_probability": {"n": 10, "stated_epsilon": 1.0},
        "minimum_epsilon": {"n": 10, "failure": 0.1, "bound": "exact"},
    },
}

# For every kind of parameter: what is refused, and how.
OUT_OF_RANGE = {ValueError: [0, 0.0, -1, -1e-300, math.nan, math.inf, -math.inf, 10**400]}
NOT_A_NUMBER = {TypeError: ["1", None, True, np.True_, [1.0], np.array(1.0), 1j, Decimal(1)]}
NOT_AN_INTEGER = {TypeError: [2.0, "2", None, True, np.float64(3), [2]]}
NOT_A_PROBABILITY = {
    ValueError: [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, Fraction(10**30 - 1, 10**30)],
    **NOT_A_NUMBER,
}
NOT_AN_ARRAY_OF_INTEGERS = {
    ValueError: [[], np.zeros((0, 3), dtype=int), [[1], [1, 0]], [[[1]], [1, 0]]],
    TypeError: [None, "1", ["1"], [1.0], [0.5], [None], [1j], [2**70], object(), {"a": 1}],
}
NOT_BOOLEANS = np.array([[0, 1, 2]], dtype=np.uint8).view(bool)
OUTSIDE_THE_DOMAIN = {
    ValueError: [
        [SECRET],
        [0, -SECRET],
        SECRET,
        np.array([-1], dtype=np.int8),
        np.array([SECRET, 1], dtype=np.uint64),
        np.array([1 << 24], dtype=">i4"),
        pd.Series([0, SECRET]),
    ],
    TypeError: [[0, 1.5], [0, math.nan], [SECRET_WORD], pd.Series([1, None]), [0, None]],
}
NOT_BITS = {
    ValueError: [
        NOT_BOOLEANS,
        [0, 1],
        1,
        [[[0, 1]]],
        [[0, 2]],
        [[0, -1]],
        [[0, SECRET]],
        [[0, 1], [1]],
    ],
    TypeError: [[[0.0, 1.0]], [["0", "1"]], [[0, None]], [[SECRET_WORD, 1]]],
}
NOT_COUNTS = {
    ValueError: [[], [-1, 2], [[1, 2], [3, 4]], 5, [[1], [1, 0]]],
    TypeError: [None, "12", [True, False], ["1", "2"], [1j, 2], [None, 1]],
}
NOT_REAL_COUNTS = {ValueError: [[1.0, math.nan], [1.0, math.inf]], TypeError: []}
NOT_WHOLE_COUNTS = {ValueError: [[2.0**63, 1.0]], TypeError: [[1.0, 2.0], [0.5, 0.5]]}
TOO_MANY = {ValueError: [[2**62, 2**12], [2**63, 2**63]]}
NOT_ANSWERS = {
    ValueError: [[], (), np.array([]), ["tea", None], [math.nan], [SECRET_WORD], ["tea", SECRET]],
    TypeError: ["tea", 5, None, [["tea"]], [SECRET_WORD, ["tea"]], np.array([["tea"], ["tea"]])],
}
NOT_A_DOMAIN = {
    ValueError: [[], ["tea", "tea"], ["tea", None], ["tea", math.nan], [1, 1.0], np.array("tea")],
    TypeError: ["tea", 5, None, [["tea"]], [("tea", ["tea"])]],
}
NOT_ONES = {
    ValueError: [[], [3, 0], [-1, 0], [[1, 1]], 1, None, [[1], [1, 0]]],
    TypeError: [[1.0, 0.0], ["1"], [None], [True, False]],
}
NOT_ESTIMATES = {
    ValueError: [[], 3.0, [[1.0]], [math.nan, 1.0], [math.inf], [[1.0], [1.0, 2.0]]],
    TypeError: [None, ["1"], [None, 1.0], "12", [True]],
}
NOT_UTILITIES = {
    ValueError: [
        *([], [[]], 3.0, [[[1.0]]], np.zeros((0, 3)), [[1.0], [1.0, 2.0]]),
        *([math.nan, 1.0], [math.inf], [-math.inf, 0.0]),
    ],
    TypeError: [None, "1", ["1"], [None, 1.0], [1j], [2**70], object(), [SECRET_WORD]],
}
NOT_LABELS = {
    ValueError: [
        *([], 1, None, "1", [[1, -1]], [[1], [1, -1]], [0, 1], [1, 2], [1, -SECRET], [1.5]),
        *([True, False], ["1"], [None, 1], [SECRET_WORD, 1], [math.nan], {1: -1}, object()),
        *(np.array([-128], dtype=np.int8), np.array([1.0, SECRET]), pd.Series([1, None])),
    ],
    TypeError: [
        *(np.array([True, False]), np.uint8([1, 1]), np.array(["1", SECRET_WORD])),
        *(np.array([1j]), np.ma.array([1, -1])),
    ],
}
NOT_CLASSES = {
    ValueError: [
        *((), (1,), (-1, 0, 1), (1, 1), (1, 1.0), ("a", "a")),
        *((math.nan, 1), (0, 2**70), (0.5, 2**63 + 1)),
    ],
    TypeError: [
        *(None, 1, "ab", b"ab", np.array(1), {0, 1}, {0: 1}, (1, "1"), (True, 1)),
        *((None, 1), (b"a", b"b"), (1j, 2), ((0,), (1,))),
    ],
}
NOT_A_WORD = {ValueError: ["", "Optimized", "nonsense"], TypeError: [None, 1, ["optimized"], b"a"]}

EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [5e-324, 1e-17]}]
ANY_EPSILON = [OUT_OF_RANGE, NOT_A_NUMBER]
NUMBER_OF_LABELS = [{ValueError: [0, -1, 10**15 + 1, 10**400]}, NOT_AN_INTEGER]
CATEGORIES = [{ValueError: [1, 0, -3]}, NOT_AN_INTEGER]
DOMAIN_SIZE = [*CATEGORIES, {ValueError: [2**62 + 1, 10**30]}]
PAIR = {
    "p": [NOT_A_PROBABILITY, {ValueError: [0.25, 0.2]}],
    "q": [NOT_A_PROBABILITY, {ValueError: [0.5, 0.6]}],
}
TOTAL = [{ValueError: [0, -1, 7, 2**62 + 1]}, {TypeError: [9.0, "9", True, [9]]}]

REFUSED = {
    randomized_response: {
        "keep_probability": {"epsilon": EPSILON, "categories": DOMAIN_SIZE},
        "output_distribution": {"epsilon": EPSILON, "categories": DOMAIN_SIZE},
        "privatize": {
            "values": [NOT_AN_ARRAY_OF_INTEGERS, OUTSIDE_THE_DOMAIN, {TypeError: [[True]]}],
            "epsilon": EPSILON,
            "categories": DOMAIN_SIZE,
        },
        "estimate": {
            "reports": [NOT_AN_ARRAY_OF_INTEGERS, OUTSIDE_THE_DOMAIN, {TypeError: [[True]]}],
            "epsilon": EPSILON,
            "categories": DOMAIN_SIZE,
        },
        "variance": {
            "counts": [NOT_COUNTS, NOT_REAL_COUNTS, {ValueError: [[5], [0, 0]]}],
            "epsilon": EPSILON,
        },
        "two_coin": {
            "values": [
                NOT_AN_ARRAY_OF_INTEGERS,
                OUTSIDE_THE_DOMAIN,
                {ValueError: [[2], NOT_BOOLEANS]},
            ]
        },
    },
    unary_encoding: {
        "probabilities": {"epsilon": EPSILON, "scheme": [NOT_A_WORD]},
        "epsilon": PAIR,
        "output_distribution": {"categories": [{ValueError: [0, -1, 13]}, NOT_AN_INTEGER], **PAIR},
        "encode": {
            "values": [NOT_ANSWERS],
            "domain": [NOT_A_DOMAIN],
            "missing": [NOT_A_WORD],
        },
        "perturb": {
            "bits": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS, {ValueError: [[[1, 1]]]}],
            **PAIR,
        },
        "count_ones": {"reports": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS]},
        "aggregate": {"reports": [NOT_AN_ARRAY_OF_INTEGERS, NOT_BITS], **PAIR},
        "aggregate_ones": {
            "ones": [NOT_ONES],
            "n": [{ValueError: [0, -1, 2**62 + 1, 10**400]}, NOT_AN_INTEGER],
            **PAIR,
        },
        "simulate_ones": {
            "counts": [NOT_COUNTS, NOT_WHOLE_COUNTS, TOO_MANY],
            "n": TOTAL,
            **PAIR,
        },
        "variance": {"counts": [NOT_COUNTS, NOT_REAL_COUNTS], "n": TOTAL, **PAIR},
        "support_probabilities": {
            "protocol": [NOT_A_WORD],
            "epsilon": [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [1e-10, 30.5]}],
            "categories": DOMAIN_SIZE,
        },
        "project_to_simplex": {
            "estimates": [NOT_ESTIMATES],
            "total": [OUT_OF_RANGE, NOT_A_NUMBER],
        },
    },
    exponential_mechanism: {
        "sample": {
            "utilities": [NOT_UTILITIES, {ValueError: [[[1.0, 2.0]]]}],
            "epsilon": ANY_EPSILON,
            "sensitivity": ANY_EPSILON,
            "size": [{ValueError: [-1, -(10**30)]}, {TypeError: [2.0, "2", True, [2]]}],
        },
        "output_distribution": {
            "utilities": [NOT_UTILITIES],
            "epsilon": ANY_EPSILON,
            "sensitivity": ANY_EPSILON,
        },
    },
    label_privacy: {
        "output_distribution": {"epsilon": EPSILON},
        "privatize": {"labels": [NOT_LABELS], "epsilon": EPSILON, "classes": [NOT_CLASSES]},
        "estimate": {"reports": [NOT_LABELS], "epsilon": EPSILON, "classes": [NOT_CLASSES]},
        "variance": {
            "counts": [NOT_COUNTS, NOT_REAL_COUNTS, {ValueError: [[5], [0, 0], [1, 2, 3]]}],
            "epsilon": EPSILON,
        },
        "exponential": {
            "labels": [NOT_LABELS],
            "stated_epsilon": EPSILON,
            "method": [NOT_A_WORD, {ValueError: ["two_step", "Independent"]}],
            "classes": [NOT_CLASSES],
        },
        "log_score_pmf": {
            "n": [{ValueError: [0, -1]}, NOT_AN_INTEGER],
            "stated_epsilon": ANY_EPSILON,
        },
        "truncated_binomial": {
            "n": NUMBER_OF_LABELS,
            "low": [{ValueError: [-1, 11, 10**400]}, NOT_AN_INTEGER],
            "high": [{ValueError: [-1, 11, 10**400]}, NOT_AN_INTEGER],
            "p": [NOT_A_PROBABILITY],
        },
        "success_probability": {"n": NUMBER_OF_LABELS, "stated_epsilon": ANY_EPSILON},
        "minimum_epsilon": {
            "n": NUMBER_OF_LABELS,
            "failure": [NOT_A_PROBABILITY],
            "bound": [NOT_A_WORD, {ValueError: ["Exact", "bernstein"]}],
        },
    },
}

WORKING_CALLS |= pate_refusals.WORKING_CALLS
REFUSED |= pate_refusals.REFUSED

WORKING_CALLS |= private_auc_refusals.WORKING_CALLS
REFUSED |= private_auc_refusals.REFUSED

# The modules that work on tensors need torch, which a reader may not have.
if importlib.util.find_spec("torch"):
    import torch_refusals

    WORKING_CALLS |= torch_refusals.WORKING_CALLS
    REFUSED |= torch_refusals.REFUSED

# An estimator needs scikit-learn.
if importlib.util.find_spec("sklearn"):
    import elun_refusals

    WORKING_CALLS |= elun_refusals.WORKING_CALLS
    REFUSED |= elun_refusals.REFUSED

REFUSALS = [
    pytest.param(module, function, parameter, tables, id=f"{function}-{parameter}")
    for module, functions in REFUSED.items()
    for function, parameters in functions.items()
    for parameter, tables in parameters.items()
]


@pytest.mark.parametrize(("module", "function", "parameter", "tables"), REFUSALS)
def test_bad_input_is_refused_by_name(module, function, parameter, tables):
    for table in tables:
        for error, values in table.items():
            for value in values:
                assert_refused(module, function, parameter, value, error)


def assert_refused(module, function, parameter, value, error):
    arguments = WORKING_CALLS[module][function] | {parameter: value}
    with pytest.raises((ValueError, TypeError)) as refusal:
        getattr(module, function)(**arguments)
    message = str(refusal.value)
    # A subclass, such as an error of decoding, would be none of ours.
    assert type(refusal.value) is error, (value, message)
    assert re.search(rf"\b{parameter}\b", message), (value, message)
    assert " must " in message
    assert str(SECRET) not in message
    assert SECRET_WORD not in message


@pytest.mark.parametrize("module", WORKING_CALLS)
def test_every_public_function_works_and_has_its_refusals_listed(module):
    public = {
        name
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if f"{function.__module__}.".startswith(f"{module.__name__}.") and not name.startswith("_")
    }
    assert public == set(WORKING_CALLS[module]) == set(REFUSED[module])
    for name, arguments in WORKING_CALLS[module].items():
        function = getattr(module, name)
        function(**arguments)
        listed = set(REFUSED[module][name])
        assert listed == set(inspect.signature(function).parameters) - {"rng"}


DRAWING = [
    pytest.param(module, name, id=f"{module.__name__}-{name}")
    for module, functions in WORKING_CALLS.items()
    for name, arguments in functions.items()
    if "rng" in arguments
]


@pytest.mark.parametrize(("module", "name"), DRAWING)
def test_input_is_refused_before_anything_is_drawn(module, name):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    for parameter, tables in REFUSED[module][name].items():
        bad = next(value for values in tables[0].values() for value in values)
        arguments = WORKING_CALLS[module][name] | {parameter: bad, "rng": rng}
        with pytest.raises((ValueError, TypeError)):
            getattr(module, name)(**arguments)
    assert rng.bit_generator.state == before


def test_the_lower_end_of_a_range_may_not_pass_the_upper_one():
    with pytest.raises(ValueError, match=r"low must be an integer in \[0, 4\], got 5"):
        label_privacy.truncated_binomial(10, 5, 4, 0.5)


def test_a_message_that_repeats_the_record_would_be_noticed(monkeypatch):
    def check_loudly(name, values, categories):
        raise ValueError(f"{name} must be in the domain, got {values}")

    monkeypatch.setattr(randomized_response, "check_categories", check_loudly)
    with pytest.raises(AssertionError):
        assert_refused(randomized_response, "privatize", "values", [SECRET], ValueError)


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.int8(3), Fraction(1, 3), 1e-300])
def test_any_positive_real_is_an_epsilon(value):
    found = check_epsilon(value)
    assert type(found) is float
    assert found == float(value)


def test_a_number_that_rounds_to_a_bound_is_refused_like_the_bound():
    for nearly in (Fraction(10**30 - 1, 10**30), Fraction(1, 10**400)):
        with pytest.raises(ValueError, match="p must be a probability strictly between 0 and 1"):
            check_probability("p", nearly)


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ({"low": 0.0}, [0, 5e-324, 1e308], [-5e-324, math.inf, math.nan]),
        ({"low": 0.0, "low_open": True}, [5e-324], [0, -0.0]),
        ({"high": 1.0}, [1, -1e308], [1 + 2.0**-52, -math.inf]),
        ({"high": 1.0, "high_open": True}, [1 - 2.0**-53], [1]),
        ({}, [-1e308, 0, 1e308], [math.inf, -math.inf, math.nan, 10**309, -(10**309)]),
    ],
)
def test_bounds_of_a_real_are_open_or_closed_as_asked(bounds, inside, outside):
    for value in inside:
        assert check_real("x", value, allowed="inside", **bounds) == value
    for value in outside:
        with pytest.raises(ValueError, match=f"x must be inside, got {value}"):
            check_real("x", value, allowed="inside", **bounds)


def test_an_integer_is_checked_at_both_ends():
    assert check_integer("k", np.uint8(3), low=3, high=3) == 3
    assert type(check_integer("k", np.uint8(3), low=0)) is int
    for value, words in [(2, r"an integer in \[3, 5\]"), (6, r"an integer in \[3, 5\]")]:
        with pytest.raises(ValueError, match=f"k must be {words}, got {value}"):
            check_integer("k", value, low=3, high=5)
    with pytest.raises(ValueError, match="k must be an integer of at least 3, got 2"):
        check_integer("k", 2, low=3)


def test_a_choice_is_listed_when_it_is_refused():
    assert check_choice("scheme", "b", ("a", "b")) == "b"
    with pytest.raises(ValueError, match="scheme must be one of 'a', 'b', got 'c'"):
        check_choice("scheme", "c", ("a", "b"))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">u8"])
@pytest.mark.parametrize("categories", [2, 100, 128, 129, 255, 256, 257, 40_000, 2**31, 2**62])
def test_the_domain_ends_where_it_says_for_every_type(dtype, categories):
    info = np.iinfo(dtype)
    borders = {0, 1, categories - 1, categories, 127, 128, 255, 256, 1 << 24, info.max}
    borders |= {-1, -2, info.min}
    for value in (v for v in borders if info.min <= v <= info.max):
        array = np.array([0, value, 1], dtype=dtype)
        if 0 <= value < categories:
            assert check_categories("values", array, categories) is array
        else:
            with pytest.raises(ValueError, match="values must be integers in"):
                check_categories("values", array, categories)


def test_counts_become_floats_and_keep_their_sum():
    for counts in (
        [1, 2],
        np.array([1, 2], dtype=np.uint8),
        np.array([1.0, 2.0], dtype=np.float32),
    ):
        found = check_counts("counts", counts)
        assert found.dtype == float
        assert found.tolist() == [1.0, 2.0]


def test_counts_that_are_all_zero_are_refused_unless_they_may_be():
    assert check_counts("counts", [0, 0], may_be_zero=True).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="counts must not be all zero"):
        check_counts("counts", [0, 0])


@pytest.mark.parametrize("mask", [False, [False, True]])
def test_what_a_mask_sets_aside_is_not_taken_for_an_answer(mask):
    masked = np.ma.array([0, 1], mask=mask)
    for function, arguments in [(check_categories, (2,)), (check_counts, ())]:
        with pytest.raises(TypeError, match="values must be an array without a mask"):
            function("values", masked, *arguments)


@pytest.mark.parametrize("kind", [str, bytes])
def test_no_message_tells_how_long_the_longest_record_is(kind):
    messages = set()
    for length in (3, 30):
        record = "a" * length if kind is str else b"a" * length
        for function, arguments in [(check_categories, (2,)), (check_counts, ())]:
            with pytest.raises(TypeError) as refusal:
                function("values", [record], *arguments)
            messages.add(str(refusal.value))
    assert len(messages) == 2


def test_an_array_is_not_copied_for_being_checked():
    array = np.arange(4)
    assert as_array("values", array) is array
