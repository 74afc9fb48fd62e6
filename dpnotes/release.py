"""A private release: the number, and the promise under which it was made.

A promise compares two data sets, its neighbours: `REPLACED` and `ADDED_OR_REMOVED` are the two ways
in which they may differ, each with its words and with the pairs that an audit tries.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from math import inf
from numbers import Real
from reprlib import Repr
from typing import NamedTuple

import numpy as np

from dpnotes._checks import check_delta, check_epsilon, require_kind


@dataclass(frozen=True, slots=True)
class Release:
    """A private number together with the guarantee that it carries.

    Parameters
    ----------
    value : float
        The released number. Any real number is accepted, infinity and NaN included, because whether
        a release succeeds must not depend on the noise or the records.
    epsilon : float
        The privacy loss of this release, in nats; positive and finite.
    delta : float, default 0.0
        The probability, in [0, 1), with which the loss may be larger.
    mechanism : str
        How the noise was made, in words.
    neighbours : str
        Which two data sets the promise compares, in words.

    Notes
    -----
    Two releases from the same records compose: by sequential composition their epsilons and
    deltas are summed (Dwork and Roth, 2014, theorem 3.16).

    Examples
    --------
    >>> auc = Release(0.5, 1.0, mechanism="Cauchy noise", neighbours="one record replaced")
    >>> float(auc)
    0.5
    >>> auc
    Release(value=0.5, epsilon=1.0, delta=0.0, mechanism='Cauchy noise', \
neighbours='one record replaced')
    """

    value: float
    epsilon: float
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str
    neighbours: str

    def __post_init__(self) -> None:
        """Check every field and keep the numbers as plain floats."""
        require_kind("value", self.value, Real, "a real number")
        delta = check_delta(self.delta)
        for name in ("mechanism", "neighbours"):
            _check_words(name, getattr(self, name))
        # A frozen dataclass can set its own fields only in this way.
        object.__setattr__(self, "value", _nearest_float(self.value))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", delta)

    def __float__(self) -> float:
        """Return the released number."""
        return self.value


def _set_promise(record: object, **fields: object) -> None:
    """Check the promise of a frozen record as `Release` does, and set it with other fields."""
    promise = Release(
        0.0,
        record.epsilon,
        delta=record.delta,
        mechanism=record.mechanism,
        neighbours=record.neighbours,
    )
    # A frozen dataclass can set its own fields only in this way.
    for name, value in {**fields, "epsilon": promise.epsilon, "delta": promise.delta}.items():
        object.__setattr__(record, name, value)


def _nearest_float(value: Real) -> float:
    """Return a real number as a float, and as infinity where it overflows: never raise."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _check_words(name: str, words: str) -> None:
    """Refuse a description that is not a string or says nothing."""
    require_kind(name, words, str, "a string")
    if not words.strip():
        raise ValueError(f"{name} must say something, got {words!r}")


class Pair(NamedTuple):
    """Two neighbouring data sets, and a description of how they differ."""

    dataset: object
    neighbour: object
    difference: str


class Neighbours(NamedTuple):
    """Which two data sets a promise of privacy compares.

    `words` describes them as a release does, and ``pairs(records, values)`` lists the neighbours of
    a data set, as `dpnotes.audit.pairs_by_replacement` and `dpnotes.audit.pairs_by_removal` do.

    Examples
    --------
    >>> REPLACED.words
    'one record replaced'
    >>> [pair.neighbour for pair in REPLACED.pairs([0, 1], [0, 1])]
    [[1, 1], [0, 0]]
    >>> [pair.neighbour for pair in ADDED_OR_REMOVED.pairs([0, 1], [1])]
    [[1], [0], [0, 1, 1]]
    """

    words: str
    pairs: Callable[[Sequence | np.ndarray, Iterable], list[Pair]]


def _replace_records(records: Sequence | np.ndarray, values: Iterable) -> list[Pair]:
    """Return each data set in which one record is replaced by another of the values."""
    _check_records(records)
    values = _require_list("values", values)
    if not values:
        raise ValueError("values must hold at least one value, got none")
    pairs = [
        Pair(
            records,
            _splice("values", records, place, place + 1, [value]),
            f"record {place} replaced by {_quote_value(value)}",
        )
        for place in range(len(records))
        for value in values
        if _differ(records[place], value)
    ]
    if not pairs:
        raise ValueError("values must hold one that a record does not have")
    return pairs


def _remove_or_add_records(records: Sequence | np.ndarray, additions: Iterable) -> list[Pair]:
    """Return each data set with one record removed, then each with one of the additions."""
    _check_records(records)
    end = len(records)
    removed = [
        Pair(records, _splice("records", records, place, place + 1, []), f"record {place} removed")
        for place in range(end)
    ]
    added = [
        Pair(
            records,
            _splice("additions", records, end, end, [value]),
            f"a record {_quote_value(value)} added",
        )
        for value in _require_list("additions", additions)
    ]
    return removed + added


#: One record has another value; the number of records is public.
REPLACED = Neighbours("one record replaced", _replace_records)
#: One record more or less.
ADDED_OR_REMOVED = Neighbours("one record added or removed", _remove_or_add_records)


class _Quotes(Repr):
    """Short quotations, with numpy's numbers as Python writes its own."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr1(self, value: object, level: int) -> str:
        return super().repr1(value.item() if isinstance(value, np.generic) else value, level)


def _quote_value(value: object, quotes: Repr | None = None) -> str:
    """Return a value as reports quote it: in full where that is short."""
    try:
        words = (quotes or _Quotes()).repr(value)
    except Exception:  # a number that is too long, or a caller's class whose repr raises
        return f"one of type {type(value).__name__}"
    return " ".join(words.split())


def _differ(one: object, other: object) -> bool:
    try:
        return not np.array_equal(one, other)
    except Exception:  # a caller's class may refuse comparison
        return True


def _require_list(name: str, values: Iterable) -> list:
    """Return the values as a list, or refuse what is not a collection."""
    try:
        if not isinstance(values, str | bytes):
            return list(values)
    except TypeError:  # a number, or an array without an axis
        pass
    raise TypeError(f"{name} must be several values, got {type(values).__name__}") from None


def _check_records(records: Sequence | np.ndarray) -> None:
    """Refuse what is not a list, a tuple or an array of records."""
    if type(records) not in (list, tuple, np.ndarray):
        kind = type(records).__name__
        raise TypeError(f"records must be a list, a tuple or an array, got {kind}")
    if type(records) is np.ndarray and records.ndim == 0:
        raise ValueError("records must be an array with an axis, got a single number")
    if len(records) == 0:
        raise ValueError("records must hold at least one record, got none")


def _splice(
    name: str, records: Sequence | np.ndarray, start: int, end: int, between: list
) -> Sequence | np.ndarray:
    """Return records[:start] + between + records[end:], of the type of the records."""
    if type(records) is not np.ndarray:
        return records[:start] + type(records)(between) + records[end:]
    rows = np.empty((len(between), *records.shape[1:]), records.dtype)
    for place, value in enumerate(between):
        try:
            rows[place] = value
            fits = np.shape(value) == rows.shape[1:] and bool(np.all(rows[place] == value))
        except (OverflowError, TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError(f"{name} must fit into records, an array of {records.dtype}")
    return np.concatenate([records[:start], rows, records[end:]])
