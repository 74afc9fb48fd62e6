"""Validation shared by every module.

A message about a wrong *parameter* quotes its value. A message about a wrong *record* says only
what was expected and never what the record holds, because strangers read logs.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain
from numbers import Integral, Real
from types import UnionType

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95  # of bounds and intervals, where nothing else is asked for

# The largest count that has a variance, which is finite.
MOST_COUNTED = 1e100
# The largest int64, and the bound up to which doubles represent every integer.
_MOST = 2**63 - 1
_EXACT = np.float64(2**53)
# The numpy kind of each Python type. bool precedes int because it is a subclass of int.
_KINDS = ((bool, "b"), (int, "i"), (float, "f"), (complex, "c"), (str, "U"), (bytes, "S"))


def require_kind(name: str, value: object, kind: type | UnionType, allowed: str) -> None:
    """Refuse a value of another kind.

    Booleans are no numbers here, unlike in Python, nor are times, which to numpy are integers.
    """
    no_number = kind in (Real, Integral) and isinstance(value, bool | np.timedelta64)
    if no_number or not isinstance(value, kind):
        raise TypeError(f"{name} must be {allowed}, got {type(value).__name__}")


def check_epsilon(epsilon: float, name: str = "epsilon") -> float:
    """Return `epsilon` as a float, or refuse it: it must be a positive finite number."""
    return check_real(name, epsilon, low=0.0, low_open=True, allowed="a positive finite number")


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float, or refuse it: it must lie strictly between 0 and 1."""
    allowed = "a probability strictly between 0 and 1"
    return check_real(
        name, value, low=0.0, high=1.0, low_open=True, high_open=True, allowed=allowed
    )


def check_delta(delta: float) -> float:
    """Return `delta` as a float, or refuse it: it must lie in [0, 1)."""
    allowed = "a number in [0, 1)"
    return check_real("delta", delta, low=0.0, high=1.0, high_open=True, allowed=allowed)


def check_real(
    name: str,
    value: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
    allowed: str,
) -> float:
    """Return a finite real within bounds as a float; `allowed` states the bounds in words."""
    require_kind(name, value, Real, allowed)
    # Compare the float, because rounding may move a value onto an open bound.
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    inside = (number > low if low_open else number >= low) and (
        number < high if high_open else number <= high
    )
    if not (inside and math.isfinite(number)):
        raise ValueError(f"{name} must be {allowed}, got {shown(value)}")
    return number


def check_integer(name: str, value: int, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int, or refuse it: it must be a whole number in [low, high].

    Without `high` it must fit an int64, because callers compute with it in numpy.
    """
    allowed = f"an integer of at least {low}" if high is None else f"an integer in [{low}, {high}]"
    require_kind(name, value, Integral, allowed)
    if high is None and value > _MOST:
        raise ValueError(f"{name} must be {allowed} and below 2**63, got {shown(value)}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {allowed}, got {shown(value)}")
    return int(value)


def check_seed(name: str, seed: int | None, *, or_else: str = " or None") -> int | None:
    """Return a seed as an int, or None for a fresh one; a negative number is refused."""
    allowed = f"an integer of at least 0{or_else}"
    if seed is None:
        return None
    require_kind(name, seed, Integral, allowed)
    if seed < 0:
        raise ValueError(f"{name} must be {allowed}, got {shown(seed)}")
    return int(seed)


def check_rng(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator, or a new one from a seed; None takes fresh entropy from the system.

    False, an empty list and the like are refused, because numpy reads them as the seed 0, which
    anybody can guess.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(check_seed("rng", rng, or_else=", None or a numpy Generator"))


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`, or refuse it."""
    require_kind(name, value, str, "a string")
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {allowed}, got {shown(value)}")
    return value


def shown(value: object) -> str:
    """Return the value of a parameter as a message quotes it: in full if that is short."""
    try:
        words = repr(value) if isinstance(value, str) else str(value)
    except ValueError:
        # Python refuses to print an integer of more than 4,300 digits.
        words = ""
    kept = 0 < len(words) <= 100
    return words if kept else f"one of type {type(value).__name__}, too long to print"


def check_flag(name: str, value: bool) -> bool:
    """Return a boolean as a bool, and refuse anything else: 0 and "no" do not count as False."""
    require_kind(name, value, bool | np.bool_, "a boolean")
    return bool(value)


def as_array(name: str, values: ArrayLike, *, with_booleans: bool = False) -> np.ndarray:
    """Return `values` as an array; refuse sets, masked arrays and rows of different lengths.

    Whether an entry of a list is refused depends on that entry alone, not on the others. So whole
    numbers of mixed types stay whole; one that does not fit an int64 makes an array of objects,
    which every caller refuses; and a boolean among numbers is refused, as it is by itself, unless
    the caller accepts booleans.
    """
    if isinstance(values, list | tuple):
        return _from_list(name, values, with_booleans)
    # The order of a set differs from one run of Python to the next.
    if isinstance(values, Set | Mapping):
        raise TypeError(f"{name} must be a sequence or an array, got {type(values).__name__}")
    _refuse_masks(name, {type(values)})
    return _converted(name, values)


def _from_list(name: str, values: list | tuple, with_booleans: bool) -> np.ndarray:
    types = _types_in(values)
    _refuse_masks(name, types)
    kinds = {_kind_of_entry(kind) for kind in types}
    if "b" in kinds and kinds & set("iuf") and not with_booleans:
        raise TypeError(f"{name} must not mix booleans with numbers")
    array = _converted(name, values)
    if kinds & set("iu") and kinds <= set("biuf") and array.dtype.kind in "uf":
        return _exactly(array, values, whole="f" not in kinds)
    return array


def _types_in(values: list | tuple) -> set[type]:
    """Return the types of the entries of nested lists; an array counts by its dtype."""
    level, types = values, set()
    # Stop at depth 4, because a list may contain itself.
    for _ in range(4):
        found = set(map(type, level))
        lists = {kind for kind in found if issubclass(kind, list | tuple)}
        types |= found - lists - {np.ndarray}
        if np.ndarray in found:
            types |= {v.dtype.type for v in level if type(v) is np.ndarray}
        if not lists:
            break
        level = list(chain.from_iterable(v for v in level if type(v) in lists))
    return types


def _kind_of_entry(kind: type) -> str:
    """Return numpy's kind letter for a type."""
    if issubclass(kind, np.generic):
        return np.dtype(kind).kind
    return next((letter for known, letter in _KINDS if issubclass(kind, known)), "O")


def _refuse_masks(name: str, types: Iterable[type]) -> None:
    # numpy would drop the mask, and values marked as missing would count as records.
    if any(issubclass(kind, np.ma.MaskedArray) for kind in types):
        raise TypeError(f"{name} must be an array without a mask, got a masked array")


def _converted(name: str, values: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length") from None
    except (TypeError, RuntimeError):
        # For example a tensor that requires a gradient.
        raise TypeError(
            f"{name} must be what numpy reads as an array, got {type(values).__name__}"
        ) from None


def _exactly(array: np.ndarray, values: list | tuple, *, whole: bool) -> np.ndarray:
    """Return the array of a list, its whole numbers unrounded even where numpy chose doubles."""
    rounded = whole and array.dtype.kind == "f"
    # >= because 2^53 + 1 rounds to 2^53. Below it, doubles represent integers exactly.
    if not (np.abs(array) >= _EXACT).any():
        return array.astype(np.int64) if rounded else array
    entries = as_objects(values)
    if any(isinstance(v, Integral) and not -_MOST - 1 <= v <= _MOST for v in entries.flat):
        return entries
    return entries.astype(np.int64) if rounded else array


def as_objects(values: list | tuple) -> np.ndarray:
    """Return the entries of nested lists as objects, with zero-dimensional arrays unwrapped.

    Otherwise such an array would not be recognised as a whole number, and could wrap around.
    """
    entries = np.array(values, dtype=object)
    entries.flat = [v[()] if isinstance(v, np.ndarray) else v for v in entries.flat]
    return entries


def check_categories(name: str, values: ArrayLike, categories: int) -> np.ndarray:
    """Return records as a non-empty array of integers in [0, categories), or of booleans."""
    array = as_array(name, values, with_booleans=categories == 2)
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one record, got none")
    if array.dtype.kind not in "biu":
        advice = "call them 0 and 1" if categories == 2 else "number the categories from 0 on"
        raise TypeError(f"{name} must be integers or booleans, got {kind_of(array)}; {advice}")
    if array.dtype.kind == "b" and categories != 2:
        raise TypeError(f"{name} must be integers in [0, {categories}), got dtype bool")
    # A boolean array over a foreign buffer may hold any byte, and a report would leak it.
    if not _within(array.view(np.uint8) if array.dtype.kind == "b" else array, categories):
        raise ValueError(f"{name} must be integers in [0, {categories}); a record is not")
    return array


def _within(array: np.ndarray, categories: int) -> bool:
    """Whether every integer lies in [0, categories), in one pass over an unsigned view."""
    kind = array.dtype
    unsigned = array.view(f"{kind.byteorder}u{kind.itemsize}")
    # -1 in an int8 is 255 as unsigned, so the type's own maximum is a bound too.
    return int(unsigned.max()) < min(categories, int(np.iinfo(kind).max) + 1)


def kind_of(array: np.ndarray) -> str:
    """Name the dtype without its width, which for text is the length of the longest record."""
    return f"dtype {array.dtype.type.__name__}"


def check_counts(
    name: str,
    values: ArrayLike,
    *,
    at_least: int = 1,
    may_be_zero: bool = False,
    with_variance: bool = False,
) -> np.ndarray:
    """Return counts as a 1-D float array of finite non-negative numbers.

    Counts that are all zero are refused, unless `may_be_zero`, and above `MOST_COUNTED` those whose
    variance a double might not hold.
    """
    counts = as_numbers(name, values)
    if counts.ndim != 1 or counts.size < at_least:
        allowed = f"one-dimensional with at least {at_least} entries"
        raise ValueError(f"{name} must be {allowed}, got shape {counts.shape}")
    if not np.all(np.isfinite(counts)) or counts.min(initial=0) < 0:
        raise ValueError(f"{name} must be finite and non-negative")
    if counts.max(initial=0) == 0 and not may_be_zero:
        raise ValueError(f"{name} must not be all zero")
    if with_variance and counts.max(initial=0) > MOST_COUNTED:
        raise ValueError(
            f"{name} must be at most {MOST_COUNTED:g} each, so that doubles hold the variance"
        )
    return counts


def check_whole_counts(
    name: str, values: ArrayLike, *, at_least: int = 1, may_be_zero: bool = False
) -> np.ndarray:
    """Return counts as `check_counts` checks them, but as integers whose sum fits 64 bits."""
    array = as_array(name, values)
    counts = check_counts(name, array, at_least=at_least, may_be_zero=may_be_zero)
    with np.errstate(over="ignore"):
        total = counts.sum()
    if total > 2**62:
        raise ValueError(f"{name} must add up to at most 2**62")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {kind_of(array)}")
    return array


def is_finite(array: np.ndarray) -> bool:
    """Whether every number is finite as a double; a wider type may exceed its range."""
    return bool(np.isfinite(as_floats(array) if array.dtype.itemsize > 8 else array).all())


def as_floats(array: np.ndarray) -> np.ndarray:
    """Return a copy as doubles; numbers out of their range become infinite, without a warning."""
    with np.errstate(over="ignore"):
        return array.astype(float)


def as_numbers(name: str, values: ArrayLike, *, with_booleans: bool = False) -> np.ndarray:
    """Return real numbers as doubles, and refuse anything else."""
    array = as_array(name, values, with_booleans=with_booleans)
    if array.dtype.kind not in ("biuf" if with_booleans else "iuf"):
        raise TypeError(f"{name} must be numbers, got {kind_of(array)}")
    return as_floats(array)


def index_categories(domain: Sequence[Hashable], name: str = "domain") -> dict[Hashable, int]:
    """Return the place of each category in a public list of them."""
    domain = as_list(name, domain)
    if any(_is_missing(category) for category in domain):
        raise ValueError(f"{name} must not hold a missing category")
    try:
        places = {category: place for place, category in enumerate(domain)}
    except TypeError:
        raise TypeError(f"{name} must be hashable categories, got {shown(domain)}") from None
    if len(places) < len(domain):
        raise ValueError(f"{name} must hold different categories, got {shown(domain)}")
    return places


def find_categories(
    values: Sequence[Hashable],
    places: dict[Hashable, int],
    name: str = "values",
    of: str = "the domain",
    *,
    missing: str = "raise",
    empty: bool = False,
) -> np.ndarray:
    """Return the place of each value, and -1 where it is missing, if that is accepted."""
    values = as_list(name, values, empty=empty)
    try:
        found = np.fromiter((places.get(value, -1) for value in values), np.intp, len(values))
    except TypeError:
        raise TypeError(f"{name} must be hashable categories; a record is not") from None
    for row in np.flatnonzero(found < 0):
        if not _is_missing(values[row]):
            raise ValueError(f"{name} must be in {of}; a record is not")
        if missing == "raise":
            raise ValueError(
                f"{name} must not be missing: give missing answers a category of their own"
            )
    return found


def as_list(name: str, values: Sequence[Hashable], *, empty: bool = False) -> list[Hashable]:
    """Return a sequence as a list of Python objects; it may be empty only if that is accepted."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence, got a single {type(values).__name__}")
    # The order of a set, and so of the columns, may change whenever Python starts.
    if isinstance(values, Set | Mapping):
        raise TypeError(
            f"{name} must be a sequence, which has an order, got {type(values).__name__}"
        )
    if getattr(values, "ndim", 1) > 1:
        raise TypeError(f"{name} must be one-dimensional, got {values.ndim} dimensions")
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    if not isinstance(values, list) or not (values or empty):
        raise ValueError(f"{name} must be a sequence of at least one category")
    # An array or a tensor, whose == does not return a single truth value.
    kinds = set(map(type, values))
    if any(hasattr(kind, "__array__") and not issubclass(kind, np.generic) for kind in kinds):
        raise TypeError(f"{name} must hold single categories; one is an array")
    return values


def _is_missing(value: Hashable) -> bool:
    """Whether a value is None, or differs from itself as NaN and pandas' NA do."""
    if value is None:
        return True
    # NA != NA is NA, so identity detects it; but False != False is False, so booleans come first.
    if isinstance(value, bool | np.bool_):
        return False
    unequal = value != value
    return unequal is value or bool(unequal)
