import dataclasses
import importlib
import inspect
import itertools
import math
import re
import traceback
import types
from fractions import Fraction
from numbers import Number
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from public import MODULES, callables, short_name
from refusals._tables import SECRET, SECRET_WORD

from dpnotes import (
    datasets,
    exponential_mechanism,
    label_privacy,
    randomized_response,
)
from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_counts,
    check_epsilon,
    check_flag,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    check_seed,
    is_finite,
)
from dpnotes.release import Release


def lists_of(module):
    """Return the file that lists what a module refuses, or None where nobody wrote it."""
    name = f"refusals.{short_name(module)}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


LISTS = {module: found for module in MODULES if (found := lists_of(module))}


def find(module, name):
    """Return the function, the class or the method of a working object that has this name."""
    kind, _, method = name.partition(".")
    made = getattr(LISTS[module], "MADE_BY", {}).get(kind) or getattr(module, kind)
    return getattr(made(**LISTS[module].WORKING_CALLS[kind]), method) if method else made


def parameters_of(module, name):
    """Return the names of what a function, a class or a method takes, but for `rng`."""
    signature = inspect.signature(attrgetter(name)(module))
    named = {p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
    return named - {"self", "rng"}


def faults_of(module):
    """Return which public names of a module have no working call or an unlisted parameter."""
    lists = lists_of(module)
    if lists is None:
        return [f"no file tests/refusals/{short_name(module)}.py"]
    listed, not_called = set(lists.WORKING_CALLS), set(getattr(lists, "NOT_CALLED", {}))
    public = callables(module)
    faults = [f"no working call: {name}" for name in public if name not in listed | not_called]
    faults += [f"not public: {name}" for name in listed | not_called if name not in public]
    return faults + [
        f"not what it takes: {name} (it takes {sorted(parameters_of(module, name))})"
        for name in sorted(listed & set(public))
        if set(lists.REFUSED.get(name, ())) != parameters_of(module, name)
    ]


@pytest.mark.parametrize("module", MODULES, ids=short_name)
def test_every_public_name_has_its_refusals_listed(module):
    faults = faults_of(module)
    assert not faults, "\n".join([*faults, "(tests/refusals/__init__.py says how to list them)"])


def test_a_new_module_or_a_new_function_without_refusals_would_be_noticed(monkeypatch):
    def planted(records: list, *, rng: int | None = None) -> list:
        return records

    module = types.ModuleType("dpnotes.planted")
    planted.__module__ = module.__name__
    module.planted = planted
    assert faults_of(module) == ["no file tests/refusals/planted.py"]

    lists = types.SimpleNamespace(WORKING_CALLS={}, REFUSED={})
    monkeypatch.setattr("test_checks.lists_of", lambda module: lists)
    assert faults_of(module) == ["no working call: planted"]
    lists.WORKING_CALLS, lists.REFUSED = {"planted": {"records": [1]}}, {"planted": {"rows": []}}
    assert faults_of(module) == ["not what it takes: planted (it takes ['records'])"]
    lists.REFUSED = {"planted": {"records": []}}
    assert faults_of(module) == []


CALLS = [
    pytest.param(module, name, id=f"{short_name(module)}-{name}")
    for module, lists in LISTS.items()
    for name in lists.WORKING_CALLS
    if name not in getattr(lists, "NOT_CALLED", {})
]


@pytest.mark.parametrize(("module", "name"), CALLS)
def test_a_working_call_works(module, name):
    try:
        find(module, name)(**LISTS[module].WORKING_CALLS[name])
    except ModuleNotFoundError as missing:
        pytest.skip(f"an extra is not installed: {missing}")


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


ENDLESS = []
ENDLESS.append(ENDLESS)
NOT_AN_RNG = {
    ValueError: [-1, -(10**30), np.int8(-1)],
    TypeError: [
        *(False, True, np.False_, [], (), [1], ENDLESS, {}, set(), "0", b"0", 1.0, math.nan, 1j),
        *(np.array([]), np.array(3), np.matrix([[1]]), np.ma.masked, pd.Series([SECRET])),
        *(np.random.RandomState(1), np.random.SeedSequence(1), np.random.PCG64(1), np.random),
    ],
}


@pytest.mark.parametrize(("module", "name"), DRAWING)
def test_a_seed_that_is_none_is_not_taken_for_the_seed_0(module, name):
    for error, values in NOT_AN_RNG.items():
        for value in values:
            assert_refused(module, name, "rng", value, error)


def test_any_whole_number_from_0_on_is_a_seed_and_a_generator_goes_on_as_it_is():
    drawn = np.random.default_rng(200).random()
    for seed in (200, np.uint8(200), np.int64(200)):
        assert check_rng(seed).random() == drawn
    assert check_rng(10**5000).random() == check_rng(10**5000).random()
    generator = np.random.default_rng(200)
    assert check_rng(generator) is generator
    assert check_rng(None).random() != check_rng(None).random()
    assert check_seed("random_state", None) is None
    assert type(check_seed("random_state", np.uint8(3))) is int


@pytest.mark.parametrize(
    "number",
    [10**400, 10**5000, -(10**5000), Fraction(10**5000, 3)],
    ids=["long", "longer", "negative", "fraction"],
)
def test_a_number_too_long_to_print_is_not_printed(number):
    whole = {} if isinstance(number, Fraction) else {"k": check_integer}
    for name, check in {"x": check_epsilon, **whole}.items():
        bounds = {"low": 0, "high": 9} if check is check_integer else {}
        with pytest.raises(ValueError, match=f"{name} must be .*, got one of type .*, too long"):
            check(name, number, **bounds) if bounds else check(number, name)


def test_a_whole_number_without_an_upper_bound_still_fits_64_bits():
    assert check_integer("k", 2**63 - 1, low=0) == 2**63 - 1
    with pytest.raises(ValueError, match=r"k must be an integer of at least 0 and below 2\*\*63"):
        check_integer("k", 2**63, low=0)


def test_a_long_word_is_not_repeated():
    with pytest.raises(ValueError, match="scheme must be one of 'a', got one of type str, too"):
        check_choice("scheme", SECRET_WORD * 1000, ("a",))


@pytest.mark.parametrize("flag", [0, 1, None, "no", 0.0, [True]])
def test_only_a_boolean_is_a_flag(flag):
    with pytest.raises(TypeError, match="download must be a boolean"):
        check_flag("download", flag)
    assert check_flag("download", np.True_) is True


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
        with pytest.raises(ValueError, match="x must be inside, got "):
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
@pytest.mark.parametrize("kind", [lambda x: x, list, lambda x: [x, x], lambda x: [[x], [x]]])
def test_what_a_mask_sets_aside_is_not_taken_for_an_answer(mask, kind):
    masked = np.ma.array([0, 1], mask=mask)
    values = kind(masked) if kind is not list or mask else [0, np.ma.masked]
    for function, arguments in [(check_categories, (2,)), (check_counts, ()), (as_array, ())]:
        with pytest.raises(TypeError, match="values must be an array without a mask"):
            function("values", values, *arguments)


@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys, lambda x: dict.fromkeys(x).keys()])
def test_what_has_no_order_is_no_array(kind):
    for function, arguments in [(check_categories, (2,)), (check_counts, ()), (as_array, ())]:
        with pytest.raises(TypeError, match="values must be a sequence or an array"):
            function("values", kind([0, 1]), *arguments)


def verdict(entries, categories):
    """Return the type of the refusal of some records, or None if they are taken."""
    try:
        check_categories("values", entries, categories)
    except (TypeError, ValueError) as refusal:
        return type(refusal)
    return None


# Every type of entry, inside and outside of the domain.
ENTRIES = [
    *(0, 1, 2, -1, True, False, 0.0, 1.5, math.nan, 2**63 - 1, "1", None),
    *(np.int8(1), np.uint8(1), np.uint64(1), np.uint64(0), np.int64(-1), np.True_, np.float32(1)),
]


@pytest.mark.parametrize("categories", [2, 3])
def test_a_list_is_refused_if_and_only_if_one_of_its_records_is_by_itself(categories):
    alone = [verdict([entry], categories) for entry in ENTRIES]
    for (i, first), (j, second) in itertools.product(enumerate(ENTRIES), repeat=2):
        expected = {alone[i], alone[j]} - {None}
        found = verdict([first, second], categories)
        assert found in expected if expected else found is None, (first, second)
        # A wrong type outweighs a wrong value, whatever else is in the list.
        assert found is TypeError or TypeError not in expected


def test_a_list_of_whole_numbers_keeps_each_of_them_whatever_the_others_are():
    large = 2**62 + 1
    for others in ([0], [np.uint64(0)], [np.int8(-1), np.uint64(7)], [np.uint8(3), -5]):
        found = as_array("values", [large, *others])
        assert found.dtype == np.int64
        assert found.tolist() == [large, *map(int, others)]
        nested = as_array("values", [[large], [others[0]]])
        assert nested.tolist() == [[large], [int(others[0])]]


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint8, np.float64])
def test_the_type_of_a_list_of_one_type_of_number_does_not_depend_on_the_records(kind):
    largest = np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 2**63
    records = {0, 1, 2**53, 2**53 + 1, 2**63 - 1}
    lists = [[kind(record), kind(1)] for record in records if record <= largest]
    assert {as_array("values", values).dtype for values in lists} == {np.dtype(kind)}


@pytest.mark.parametrize("first", [2**53 - 2, 2**54 - 4, 2**60 - 2])
def test_no_whole_number_is_rounded_where_those_of_doubles_end(first):
    for large in range(first, first + 9):
        for values in ([large, np.uint64(0)], [-large, np.uint64(5)], [[np.uint64(7)], [large]]):
            found = as_array("values", values)
            assert found.dtype == np.int64
            assert found.ravel().tolist() == np.array(values, dtype=object).ravel().tolist()


@pytest.mark.parametrize("other", [0, -1, 0.5, np.uint64(3), np.float32(2), 2**70])
@pytest.mark.parametrize("large", [2**63, 2**70, np.uint64(2**63), 10**30, -(2**70)])
def test_a_whole_number_beyond_64_bits_is_refused_whatever_stands_beside_it(large, other):
    for values in ([large], [large, other], [[other], [large]]):
        assert as_array("values", values).dtype == object
        with pytest.raises(TypeError, match="counts must be numbers"):
            check_counts("counts", values)


@pytest.mark.parametrize("other", [0, 0.5, np.uint64(3), np.float32(2)])
def test_the_lowest_number_of_64_bits_is_taken_whatever_stands_beside_it(other):
    for values in ([-(2**63)], [-(2**63), other], [[other], [-(2**63)]]):
        assert as_array("values", values).dtype.kind in "if"


def test_a_number_in_an_array_of_its_own_does_not_wrap_around():
    beyond = np.array(2**63, dtype=np.uint64)
    for values in ([beyond], [beyond, 1], [0.5, beyond], [[beyond], [1]]):
        assert as_array("values", values).dtype == object
    within = as_array("values", [np.array(2**62 + 1, dtype=np.uint64), -1])
    assert within.tolist() == [2**62 + 1, -1]


@pytest.mark.parametrize("other", [1, 0.5, np.int8(1), [1]])
def test_a_boolean_beside_numbers_is_refused_where_booleans_are(other):
    for values in ([True, other], [other, np.False_]):
        if not isinstance(other, list):
            with pytest.raises(TypeError, match="values must not mix booleans with numbers"):
                as_array("values", values)
    assert as_array("values", [True, 2], with_booleans=True).tolist() == [1, 2]


def test_rows_of_several_types_are_read_like_their_entries():
    rows = [np.array([1, 0], dtype=np.uint64), np.array([0, 1])]
    assert check_categories("bits", rows, 2).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="values must not mix booleans with numbers"):
        as_array("values", [np.array([True, False]), np.array([0, 1])])


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider type than double here"
)
def test_a_number_beyond_doubles_is_not_finite():
    wide = np.array([1, np.finfo(float).max], dtype=np.longdouble) * 2
    with pytest.raises(ValueError, match="counts must be finite"):
        check_counts("counts", wide)
    with pytest.raises(ValueError, match="epsilon must be a positive finite number"):
        check_epsilon(wide[1])
    assert not is_finite(wide)
    assert not is_finite(-wide)
    assert is_finite(wide / 2)
    with pytest.raises(ValueError, match="utilities must be finite"):
        exponential_mechanism.output_distribution(wide, 1.0)


def test_a_list_that_holds_itself_or_nests_deeply_is_refused():
    deep = [0]
    for _ in range(200):
        deep = [deep]
    for values in (ENDLESS, deep):
        with pytest.raises((TypeError, ValueError), match="values must "):
            check_categories("values", values, 2)


def test_a_tensor_that_records_gradients_is_refused_in_words():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    for values in (tensor, [tensor, tensor]):
        with pytest.raises(TypeError, match="counts must be what numpy reads as an array"):
            check_counts("counts", values)
    assert check_counts("counts", tensor.detach()).tolist() == [1.0, 2.0]


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


# Junk for every parameter of every public name: a result without a warning, or words.

# What takes long or runs what it is given, and why nobody needs to ask it here.
NO_JUNK = {
    "fit": "it trains: `test_training` has its refusals",
    "epsilon_lower_bound": "it runs what it is given: `test_audit` has its refusals",
    "report": "it runs what it is given, in processes: `test_audit_report` has its refusals",
}
# A parameter is no record, and may be quoted.
QUOTED = {
    "classes",
    "domain",
    "orders",
    "epsilons",
    "output_distribution",
    "neighbours",
    "evaluate_after",
}
# What else is documented as an answer.
WARNINGS = ("classes were read off the labels", "the interval will say next to nothing")
ALSO = (datasets.DatasetUnavailable, ModuleNotFoundError)
# What is handed over comes back in these, and SecretCost.answered is unknown at times.
MAY_HOLD_NAN = {"DescentRelease", "MetricRelease", "Release", "SecretCost", "pairs_by_replacement"}

JUNK = [
    pytest.param(module, name, id=f"{short_name(module)}-{name}")
    for module, lists in LISTS.items()
    for name, arguments in lists.WORKING_CALLS.items()
    if arguments and name not in NO_JUNK and name not in getattr(lists, "NOT_CALLED", {})
]


def check_outcome(call, arguments, parameter):
    """Call with junk: a result, or a refusal in words that repeats no record and changes none."""
    before = {name: shown(value) for name, value in arguments.items()}
    result = None
    try:
        result = call(**arguments)
    except (ValueError, TypeError) as refusal:
        message = str(refusal)
        theirs = parameter in ("X", "y") and raised_in(refusal, "sklearn")
        assert theirs or re.search(rf"\b{parameter}\b| must ", message), message
        if parameter not in QUOTED and not isinstance(arguments[parameter], str | bytes | Number):
            assert str(SECRET) not in message
            assert SECRET_WORD not in message
    except UserWarning as warning:
        assert raised_in(warning, "sklearn") or str(warning).startswith(WARNINGS)  # noqa: PT017
    except ALSO:
        pass
    after = {name: shown(value) for name, value in arguments.items()}
    assert {name for name in before if before[name] != after[name]} == set()
    return result


def holds_nan(result, depth=4):
    """Say whether a number of a result, or of its parts, is none; a list may hold itself."""
    if isinstance(result, float | np.floating | np.ndarray):
        array = np.asarray(result)
        return array.dtype.kind in "fc" and bool(np.isnan(array).any())
    if dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    parts = result if depth and isinstance(result, list | tuple) else ()
    return any(holds_nan(part, depth - 1) for part in parts)


def test_a_number_that_is_none_would_be_noticed_wherever_it_stands():
    release = Release(
        value=math.nan, epsilon=1.0, delta=0.0, mechanism="none", neighbours="one record replaced"
    )
    for result in (math.nan, np.float32("nan"), np.array([1, math.nan]), [(1, math.nan)], release):
        assert holds_nan(result)
    for result in (1.0, None, "nan", np.array([1, 0]), [math.inf], {"a": 1}):
        assert not holds_nan(result)


def shown(value):
    """Return what would change if a call changed its argument."""
    try:
        return f"{type(value).__name__}: {value!r}"
    except ValueError:
        return f"{type(value).__name__} with a number too long to print"


def raised_in(error, package):
    [*_, last] = traceback.extract_tb(error.__traceback__)
    return f"/{package}/" in last.filename


def ask(module, name, data):
    working = LISTS[module].WORKING_CALLS[name]
    parameter = data.draw(st.sampled_from(sorted(working)), label="parameter")
    values = st.one_of(strategies.junk, strategies.disguises(working[parameter]))
    value = data.draw(values.map(Junk), label="value").value
    result = check_outcome(find(module, name), {**working, parameter: value}, parameter)
    assert name in MAY_HOLD_NAN or not holds_nan(result)


class Junk:
    """What hypothesis can print, whatever it is; it would print the fields of a tuple itself."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return shown(self.value)


unhurried = {"deadline": None, "database": None, "suppress_health_check": [*HealthCheck]}
few = settings(max_examples=25, derandomize=True, **unhurried)
many = settings(max_examples=2000, **unhurried)


@pytest.mark.parametrize(("module", "name"), JUNK)
@few
@given(data=st.data())
def test_junk_is_taken_without_a_warning_or_refused_in_words(module, name, data):
    ask(module, name, data)


@pytest.mark.full
@pytest.mark.parametrize(("module", "name"), JUNK)
@many
@given(data=st.data())
def test_much_junk_is_taken_without_a_warning_or_refused_in_words(module, name, data):
    ask(module, name, data)


@pytest.mark.parametrize(("categories", "advice"), [(2, "call them 0 and 1"), (3, "from 0 on")])
def test_who_hands_in_words_is_told_what_to_do_instead(categories, advice):
    with pytest.raises(TypeError, match=f"labels must be integers or booleans, .*{advice}"):
        check_categories("labels", ["yes", "no"], categories)
