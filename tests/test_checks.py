import importlib
import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from public import MODULES, short_name
from refusals._tables import SECRET, SECRET_WORD

from dpnotes import label_privacy, randomized_response
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

# By module: the working calls, and for each parameter what is refused.
LISTS = {
    module: importlib.import_module(f"refusals.{short_name(module)}")
    for module in MODULES
    if importlib.util.find_spec(f"refusals.{short_name(module)}")
}


def find(module, name):
    """Return the function, the class or the method of a working object that has this name."""
    kind, _, method = name.partition(".")
    made = getattr(module, kind)
    return getattr(made(**LISTS[module].WORKING_CALLS[kind]), method) if method else made


REFUSALS = [
    pytest.param(module, name, parameter, id=f"{short_name(module)}-{name}-{parameter}")
    for module, lists in LISTS.items()
    for name, parameters in lists.REFUSED.items()
    for parameter in parameters
]


@pytest.mark.parametrize(("module", "name", "parameter"), REFUSALS)
def test_bad_input_is_refused_by_name(module, name, parameter):
    for table in LISTS[module].REFUSED[name][parameter]:
        for error, values in table.items():
            for value in values:
                assert_refused(module, name, parameter, value, error)


def assert_refused(module, name, parameter, value, error):
    arguments = LISTS[module].WORKING_CALLS[name] | {parameter: value}
    with pytest.raises((ValueError, TypeError)) as refusal:
        find(module, name)(**arguments)
    message = str(refusal.value)
    # A subclass, such as an error of decoding, would be none of ours.
    assert type(refusal.value) is error, (value, message)
    assert re.search(rf"\b{parameter}\b", message), (value, message)
    assert " must " in message
    assert str(SECRET) not in message
    assert SECRET_WORD not in message


@pytest.mark.parametrize("module", LISTS, ids=short_name)
def test_every_public_function_works_and_has_its_refusals_listed(module):
    public = {
        name
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if f"{function.__module__}.".startswith(f"{module.__name__}.") and not name.startswith("_")
    }
    calls, refused = LISTS[module].WORKING_CALLS, LISTS[module].REFUSED
    assert set(calls) == set(refused)
    assert public <= set(calls)
    for name, arguments in calls.items():
        function = find(module, name)
        function(**arguments)
        assert set(refused[name]) == set(inspect.signature(function).parameters) - {"rng"}


DRAWING = [
    pytest.param(module, name, id=f"{short_name(module)}-{name}")
    for module, lists in LISTS.items()
    for name, arguments in lists.WORKING_CALLS.items()
    if "rng" in arguments
]


@pytest.mark.parametrize(("module", "name"), DRAWING)
def test_input_is_refused_before_anything_is_drawn(module, name):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    for parameter, tables in LISTS[module].REFUSED[name].items():
        bad = next(value for values in tables[0].values() for value in values)
        arguments = LISTS[module].WORKING_CALLS[name] | {parameter: bad, "rng": rng}
        with pytest.raises((ValueError, TypeError)):
            find(module, name)(**arguments)
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
