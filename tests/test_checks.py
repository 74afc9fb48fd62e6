import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpnotes._checks import (
    as_array,
    check_categories,
    check_choice,
    check_counts,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    check_seed,
    is_finite,
)


def test_any_whole_number_from_0_on_is_a_seed_and_a_generator_goes_on_as_it_is():
    drawn = np.random.default_rng(200).random()
    for seed in (200, np.uint8(200), np.int64(200)):
        assert check_rng(seed).random() == drawn
    assert check_rng(10**30).random() == check_rng(10**30).random()
    generator = np.random.default_rng(200)
    assert check_rng(generator) is generator
    assert check_rng(None).random() != check_rng(None).random()
    assert check_seed("random_state", None) is None
    assert type(check_seed("random_state", np.uint8(3))) is int


def test_a_whole_number_without_an_upper_bound_still_fits_64_bits():
    assert check_integer("k", 2**63 - 1, low=0) == 2**63 - 1
    with pytest.raises(ValueError, match=r"k must be an integer of at least 0 and below 2\*\*63"):
        check_integer("k", 2**63, low=0)


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
    with pytest.raises(ValueError, match="scheme must be one of 'a', got one of type str, too"):
        check_choice("scheme", "absinthe" * 20, ("a",))


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "u4", "i8", ">u8"])
@pytest.mark.parametrize("categories", [2, 128, 129, 40_000, 2**62])
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
    for counts in ([1, 2], np.array([1, 2], dtype=np.uint8), np.float32([1, 2])):
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
    for values in (masked, [0, np.ma.masked], [masked, masked], [[masked], [masked]]):
        with pytest.raises(TypeError, match="values must be an array without a mask"):
            as_array("values", values)


@pytest.mark.parametrize("kind", [set, dict.fromkeys, lambda x: dict.fromkeys(x).keys()])
def test_what_has_no_order_is_no_array(kind):
    with pytest.raises(TypeError, match="values must be a sequence or an array"):
        as_array("values", kind([0, 1]))


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


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint8, np.float64])
def test_the_type_of_a_list_of_one_type_of_number_does_not_depend_on_the_records(kind):
    largest = np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 2**63
    records = {0, 1, 2**53, 2**53 + 1, 2**63 - 1}
    lists = [[kind(record), kind(1)] for record in records if record <= largest]
    assert {as_array("values", values).dtype for values in lists} == {np.dtype(kind)}


@pytest.mark.parametrize("first", [2**53 - 2, 2**54 - 4, 2**60 - 2])
def test_no_whole_number_is_rounded_where_those_of_doubles_end(first):
    for large in range(first, first + 9):
        others = [np.int8(-1), np.uint64(7)]
        for values in ([large, np.uint64(0)], [-large, *others], [[np.uint64(7)], [large]]):
            found = as_array("values", values)
            assert found.dtype == np.int64
            assert found.ravel().tolist() == np.array(values, dtype=object).ravel().tolist()


@pytest.mark.parametrize("other", [-1, 0.5, np.uint64(3), np.float32(2), 2**70])
@pytest.mark.parametrize("large", [2**63, np.uint64(2**63), -(2**70)])
def test_a_whole_number_beyond_64_bits_is_refused_whatever_stands_beside_it(large, other):
    for values in ([large], [large, other], [[other], [large]]):
        assert as_array("values", values).dtype == object
    with pytest.raises(TypeError, match="counts must be numbers"):
        check_counts("counts", [large, other])
    if other != 2**70:
        assert as_array("values", [other, -(2**63)]).dtype.kind in "if"


def test_a_number_in_an_array_of_its_own_does_not_wrap_around():
    beyond = np.array(2**63, dtype=np.uint64)
    for values in ([beyond], [beyond, 1], [0.5, beyond], [[beyond], [1]]):
        assert as_array("values", values).dtype == object
    within = as_array("values", [np.array(2**62 + 1, dtype=np.uint64), -1])
    assert within.tolist() == [2**62 + 1, -1]


@pytest.mark.parametrize("other", [1, 0.5, np.int8(1)])
def test_a_boolean_beside_numbers_is_refused_where_booleans_are(other):
    for values in ([True, other], [other, np.False_]):
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
    assert not is_finite(wide)
    assert is_finite(wide / 2)


def test_a_tensor_that_records_gradients_is_refused_in_words():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    for values in (tensor, [tensor, tensor]):
        with pytest.raises(TypeError, match="counts must be what numpy reads as an array"):
            check_counts("counts", values)
    assert check_counts("counts", tensor.detach()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("letter", ["a", b"a"])
def test_no_message_tells_how_long_the_longest_record_is(letter):
    messages = set()
    for length in (3, 30):
        with pytest.raises(TypeError) as refusal:
            check_counts("values", [letter * length])
        messages.add(str(refusal.value))
    assert len(messages) == 1


def test_an_array_is_not_copied_for_being_checked():
    array = np.arange(4)
    assert as_array("values", array) is array


@pytest.mark.parametrize(("categories", "advice"), [(2, "call them 0 and 1"), (3, "from 0 on")])
def test_who_hands_in_words_is_told_what_to_do_instead(categories, advice):
    with pytest.raises(TypeError, match=f"labels must be integers or booleans, .*{advice}"):
        check_categories("labels", ["yes", "no"], categories)
