"""Families of neighbours to try: what a promise of privacy compares."""

import copy
import itertools
import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from dpnotes.release import ADDED_OR_REMOVED, REPLACED, Pair, _differ, _quote_value, _require_list


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

    Examples
    --------
    >>> [pair.difference for pair in pairs_in_domain(["tea", "coffee", "milk"])]
    ["'tea' and 'coffee'", "'tea' and 'milk'", "'coffee' and 'milk'"]
    """
    values = _require_list("domain", domain)
    if len(values) < 2:
        raise ValueError(f"domain must hold at least two values, got {len(values)}")
    pairs = itertools.combinations(values, 2)
    return [Pair(a, b, f"{_quote_value(a)} and {_quote_value(b)}") for a, b in pairs]


def pairs_by_replacement(records: Sequence | np.ndarray, values: Iterable) -> list[Pair]:
    """Return every data set in which one record has another value.

    Parameters
    ----------
    records : list, tuple or ndarray
        The data set, an entry for each record; in an array, an entry of its first axis.
    values : iterable
        What a record may be instead. Have the extremes of the domain among them: many mechanisms
        break there first.

    Returns
    -------
    list of Pair
        A pair for each record and each value that differs from it.

    Examples
    --------
    >>> for pair in pairs_by_replacement([0, 1], values=[0, 1]):
    ...     print(pair.neighbour, "|", pair.difference)
    [1, 1] | record 0 replaced by 1
    [0, 0] | record 1 replaced by 0
    """
    return REPLACED.pairs(records, values)


def pairs_by_removal(records: Sequence | np.ndarray, *, additions: Iterable = ()) -> list[Pair]:
    """Return every data set with one record fewer, and those with one more.

    Parameters
    ----------
    records : list, tuple or ndarray
        The data set, an entry for each record; in an array, an entry of its first axis.
    additions : iterable, default ()
        Records to add, one at a time, at the end.

    Returns
    -------
    list of Pair
        A pair for each record, then one for each addition.

    Notes
    -----
    A promise about one record replaced says nothing about these pairs, and a promise about these
    holds for a replacement at twice its epsilon.

    Examples
    --------
    >>> for pair in pairs_by_removal((3, 1), additions=[9]):
    ...     print(pair.neighbour, "|", pair.difference)
    (1,) | record 0 removed
    (3,) | record 1 removed
    (3, 1, 9) | a record 9 added
    """
    return ADDED_OR_REMOVED.pairs(records, additions)


def describe_difference(dataset: object, neighbour: object) -> str:
    """Return in words how two data sets differ."""
    kinds = {type(dataset), type(neighbour)}
    has_axis = kinds == {np.ndarray} and dataset.ndim > 0 and neighbour.ndim > 0
    has_records = has_axis or kinds in ({list}, {tuple})
    if has_records and len(dataset) == len(neighbour) > 1:
        both = zip(dataset, neighbour, strict=True)
        differing = [(place, *pair) for place, pair in enumerate(both) if _differ(*pair)]
        if len(differing) == 1:
            [(place, one, other)] = differing
            return f"record {place} is {_quote_value(one)} or {_quote_value(other)}"
    return f"{_quote_value(dataset)} and {_quote_value(neighbour)}"


def make_copier(name: str, data: object) -> Callable[[], object]:
    """Return a function that makes a new copy of the data at each call, or refuse the data."""
    kind = type(data)
    try:
        pickled = pickle.dumps(data, protocol=5)
        if type(pickle.loads(pickled)) is kind:
            return partial(pickle.loads, pickled)
    except Exception:  # classes of the caller's may raise anything where they cannot be pickled
        pass
    try:
        return partial(copy.deepcopy, copy.deepcopy(data))
    except Exception as error:
        raise TypeError(f"{name} must be data that can be copied, got {kind.__name__}") from error
