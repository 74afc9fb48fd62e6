"""Families of neighbours to try: what a promise of privacy compares."""

import itertools
from collections.abc import Iterable, Sequence
from reprlib import Repr
from typing import NamedTuple

import numpy as np

from dpnotes.audit._values import name_of


class _Short(Repr):
    """What is short, with numpy's numbers as Python writes its own."""

    def repr1(self, value: object, level: int) -> str:
        return super().repr1(value.item() if isinstance(value, np.generic) else value, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 60


class Pair(NamedTuple):
    """Two neighbouring data sets, and in words what they differ in."""

    dataset: object
    neighbour: object
    difference: str


def pairs_in_domain(domain: Iterable) -> list[Pair]:
    """Return every pair of a small domain, as the local model compares them.

    Parameters
    ----------
    domain : iterable
        The values that one person's record can have, at least two.

    Returns
    -------
    list of Pair
        All pairs of two values; an audit compares each in both directions.

    Raises
    ------
    ValueError
        If there are fewer than two values.
    TypeError
        If the domain cannot be gone through.

    Examples
    --------
    >>> [pair.difference for pair in pairs_in_domain(["tea", "coffee", "milk"])]
    ["'tea' and 'coffee'", "'tea' and 'milk'", "'coffee' and 'milk'"]
    """
    values = listed("domain", domain)
    if len(values) < 2:
        raise ValueError(f"domain must hold at least two values, got {len(values)}")
    pairs = itertools.combinations(values, 2)
    return [Pair(a, b, f"{shown(a)} and {shown(b)}") for a, b in pairs]


def pairs_by_replacement(records: Sequence | np.ndarray, values: Iterable) -> list[Pair]:
    """Return every data set in which one record has another value.

    Parameters
    ----------
    records : list, tuple or ndarray
        The data set, a record an entry; of an array, an entry of its first axis.
    values : iterable
        What a record may be instead. The extremes of the domain are where a mechanism breaks
        first.

    Returns
    -------
    list of Pair
        A pair for each record and each value that differs from it.

    Raises
    ------
    ValueError
        If there are no records or no values, if a value does not fit into the array, or if each
        record has the only value already.
    TypeError
        If the records are no list, tuple or array.

    Examples
    --------
    >>> for pair in pairs_by_replacement([0, 1], values=[0, 1]):
    ...     print(pair.neighbour, "|", pair.difference)
    [1, 1] | record 0 replaced by 1
    [0, 0] | record 1 replaced by 0
    """
    _check_records(records)
    others = listed("values", values)
    if not others:
        raise ValueError("values must hold at least one value, got none")
    pairs = [
        Pair(
            records,
            _spliced("values", records, place, place + 1, [value]),
            f"record {place} replaced by {shown(value)}",
        )
        for place in range(len(records))
        for value in others
        if _differ(records[place], value)
    ]
    if not pairs:
        raise ValueError("values must hold one that a record does not have")
    return pairs


def pairs_by_removal(records: Sequence | np.ndarray, *, additions: Iterable = ()) -> list[Pair]:
    """Return every data set with one record less, and those with one more.

    Parameters
    ----------
    records : list, tuple or ndarray
        The data set, a record an entry; of an array, an entry of its first axis.
    additions : iterable, default ()
        Records to add, one at a time, at the end.

    Returns
    -------
    list of Pair
        A pair for each record, then one for each addition.

    Raises
    ------
    ValueError
        If there are no records, or if an addition does not fit into the array.
    TypeError
        If the records are no list, tuple or array, or the additions cannot be gone through.

    Notes
    -----
    A promise about one record replaced says nothing of these pairs, and one about these holds for a
    replacement at twice its epsilon.

    Examples
    --------
    >>> for pair in pairs_by_removal((3, 1), additions=[9]):
    ...     print(pair.neighbour, "|", pair.difference)
    (1,) | record 0 removed
    (3,) | record 1 removed
    (3, 1, 9) | a record 9 added
    """
    _check_records(records)
    removed = [
        Pair(records, _spliced("records", records, place, place + 1, []), f"record {place} removed")
        for place in range(len(records))
    ]
    end = len(records)
    return removed + [
        Pair(
            records,
            _spliced("additions", records, end, end, [value]),
            f"a record {shown(value)} added",
        )
        for value in listed("additions", additions)
    ]


def shown(data: object) -> str:
    """Return data as a report quotes them: in full where that is short."""
    try:
        words = _SHORT.repr(data)
    except Exception:  # too long a number, or whatever a class of the caller's raises
        return f"one of type {name_of(type(data))}"
    return " ".join(words.split())


def difference(dataset: object, neighbour: object) -> str:
    """Return in words what two data sets differ in."""
    kind = type(dataset)
    if kind is type(neighbour) and (kind in (list, tuple) or _has_axis(dataset, neighbour)):
        places = [
            i for i, both in enumerate(zip(dataset, neighbour, strict=False)) if _differ(*both)
        ]
        if len(places) == 1 < len(dataset) == len(neighbour):
            one, other = (shown(data[places[0]]) for data in (dataset, neighbour))
            return f"record {places[0]} is {one} or {other}"
    return f"{shown(dataset)} and {shown(neighbour)}"


def _has_axis(*datasets: object) -> bool:
    return all(type(data) is np.ndarray and data.ndim > 0 for data in datasets)


def _differ(one: object, other: object) -> bool:
    try:
        return not np.array_equal(one, other)
    except Exception:  # whatever a class of the caller's raises where it is compared
        return True


def listed(name: str, values: Iterable) -> list:
    """Return the values as a list, or refuse what holds none."""
    try:
        if not isinstance(values, str | bytes):
            return list(values)
    except TypeError:  # a number, or an array without an axis
        pass
    raise TypeError(f"{name} must be several values, got {type(values).__name__}") from None


def _check_records(records: Sequence | np.ndarray) -> None:
    if type(records) not in (list, tuple, np.ndarray):
        kind = type(records).__name__
        raise TypeError(f"records must be a list, a tuple or an array, got {kind}")
    if type(records) is np.ndarray and records.ndim == 0:
        raise ValueError("records must be an array with an axis, got a single number")
    if len(records) == 0:
        raise ValueError("records must hold at least one record, got none")


def _spliced(
    name: str, records: Sequence | np.ndarray, start: int, end: int, between: list
) -> Sequence | np.ndarray:
    """Return records[:start] + between + records[end:], of the type that the records have."""
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
