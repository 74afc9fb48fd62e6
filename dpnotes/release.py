"""A private release: the number, and the promise under which it was made.

A promise compares two data sets, its neighbours: `REPLACED` and `ADDED_OR_REMOVED` are the two ways
in which they may differ, each with its words and with the pairs that an audit tries.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from math import expm1, inf, log
from numbers import Real
from reprlib import Repr
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnotes._checks import (
    as_array,
    check_delta,
    check_epsilon,
    check_flag,
    check_probability,
    find_categories,
    index_categories,
    kind_of,
    require_kind,
    shown,
)

if TYPE_CHECKING:
    import pandas

    from dpnotes.counts_and_means import Tallies


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

    def __round__(self, digits: int | None = None) -> float:
        """Return the released number, rounded."""
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        """Return the released number as text, or all of the release where no form is given."""
        return format(self.value, form) if form else str(self)

    def __truediv__(self, number: float) -> "Release":
        """Return the release of the number divided by a public one."""
        return replace(self, value=self.value / check_epsilon(number, "number"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Private limits of numbers, which were released with them.

    Parameters
    ----------
    confidence : float
        The probability with which each pair of limits holds.
    pairs : sequence of (float, float)
        The lower and the upper limit of each number.
    """

    confidence: float
    pairs: tuple[tuple[float, float], ...]

    def _bound(self, error: float) -> list[tuple[float, float]]:
        """Return the limits, which hold with one confidence only."""
        if abs(1 - error - self.confidence) > 1e-12:
            raise ValueError(f"confidence must be {self.confidence}, that of the limits released")
        return list(self.pairs)

    def _divide(self, number: Fraction) -> "Limits":
        """Return the limits of the numbers divided by a public one."""
        by = float(number)
        return replace(self, pairs=tuple((low / by, high / by) for low, high in self.pairs))


@dataclass(frozen=True, slots=True)
class NumberRelease(Release):
    """A private number with its error bars.

    Parameters
    ----------
    value, epsilon, delta, mechanism, neighbours
        As in `Release`.
    basis : Tallies or Limits, optional
        What the number was computed from, without which there is no interval.

    Examples
    --------
    >>> from dpnotes.counts_and_means import release_count
    >>> released = release_count([True] * 700 + [False] * 300, epsilon=1.0, rng=0)
    >>> low, high = released.interval()
    >>> low <= 700 <= high, high - low
    (True, 6.0)
    """

    basis: "Tallies | Limits | None" = field(default=None, kw_only=True, repr=False)

    def interval(self, confidence: float | None = None) -> tuple[float, float]:
        """Return limits between which the number without noise lies, with this probability.

        They say nothing of how the records differ from those of other people.

        Parameters
        ----------
        confidence : float or None, default None
            None stands for 0.95, or for the only one there is where limits were released.
        """
        [(low, high)] = _bound(self.basis, confidence)
        return float(low), float(high)

    def __truediv__(self, number: float) -> "NumberRelease":
        """Return the release of the number divided by a public one, such as that of records."""
        divided = Release.__truediv__(self, number)
        basis = self.basis and self.basis._divide(Fraction(number))
        return replace(divided, basis=basis)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRelease:
    """Private numbers, one for each group, and the promise under which they were made.

    Parameters
    ----------
    value : sequence of numbers, length k
        The released numbers, in the order of `domain`. Noisy counts may be negative, and their sum
        is not the number of records.
    domain : sequence of hashable, length k
        The public groups.
    epsilon, delta, mechanism, neighbours
        As in `Release`; epsilon is the cost of all numbers together.
    basis : Tallies or Limits, optional
        What the numbers were computed from, without which there is no interval.

    Examples
    --------
    >>> from dpnotes.counts_and_means import release_histogram
    >>> released = release_histogram(["tea", "tea"], ["coffee", "tea"], epsilon=50.0, rng=0)
    >>> dict(zip(released.domain, released.value, strict=True))
    {'coffee': 0, 'tea': 2}
    >>> released.to_frame()
            value  low  high
    coffee      0    0     0
    tea         2    2     2
    """

    value: tuple[float, ...]
    domain: tuple[Hashable, ...]
    epsilon: float
    delta: float = 0.0
    mechanism: str
    neighbours: str
    basis: "Tallies | Limits | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check every field and keep plain numbers."""
        domain = tuple(index_categories(self.domain))
        value = as_array("value", self.value)
        if value.dtype.kind not in "iuf":
            raise TypeError(f"value must be numbers, got {kind_of(value)}")
        if value.shape != (len(domain),):
            raise ValueError(f"value must have a number for each of the {len(domain)} groups")
        _set_promise(self, value=tuple(value.tolist()), domain=domain)

    def interval(
        self, confidence: float | None = None, *, together: bool = False
    ) -> list[tuple[float, float]]:
        """Return limits for the number of each group without noise, in the order of `domain`.

        Parameters
        ----------
        confidence : float or None, default None
            As in `NumberRelease.interval`.
        together : bool, default False
            Whether all pairs are to hold at once with that probability, and not each by itself.
        """
        groups = len(self.domain) if check_flag("together", together) else 1
        return _bound(self.basis, confidence, groups)

    def to_frame(self, confidence: float | None = None) -> "pandas.DataFrame":
        """Return a row for each group: the number, and the limits of `interval`.

        Parameters
        ----------
        confidence : float or None, default None
            As in `NumberRelease.interval`.
        """
        import pandas

        frame = pandas.DataFrame(self.interval(confidence), columns=["low", "high"])
        frame.insert(0, "value", self.value)
        return frame.set_axis(pandas.Index(self.domain, tupleize_cols=False))

    def to_series(self) -> "pandas.Series":
        """Return the numbers by group."""
        import pandas

        return pandas.Series(self.value, pandas.Index(self.domain, tupleize_cols=False))


def _bound(
    basis: "Tallies | Limits | None", confidence: float | None, groups: int = 1
) -> list[tuple[float, float]]:
    """Return limits that hold with a confidence, for so many groups at once."""
    if basis is None:
        raise ValueError("interval must be asked for with the release, as by interval=0.95")
    if confidence is None:
        confidence = basis.confidence
    confidence = check_probability("confidence", confidence)
    return basis._bound(1 - confidence if groups == 1 else -expm1(log(confidence) / groups))


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


def _check_neighbours(neighbours: Neighbours) -> Neighbours:
    require_kind("neighbours", neighbours, Neighbours, "release.REPLACED or ADDED_OR_REMOVED")
    if neighbours not in (REPLACED, ADDED_OR_REMOVED):
        raise ValueError(
            f"neighbours must be release.REPLACED or ADDED_OR_REMOVED, got {shown(neighbours)}"
        )
    return neighbours


def _read_groups(
    size: int, by: Sequence[Hashable] | None, groups: Sequence[Hashable] | None
) -> tuple[NDArray[np.intp] | None, tuple[Hashable, ...] | None]:
    """Return the place of each record's group, and all groups; None where there are none."""
    if (by is None) != (groups is None):
        raise TypeError("by and groups must be given together, or neither of them")
    if by is None:
        return None, None
    known = index_categories(groups, "groups")
    places = find_categories(by, known, "by", "groups", empty=True)
    if places.size != size:
        raise ValueError(f"by must have a group for each of the {size} records, got {places.size}")
    return places, tuple(known)


def _name_public(neighbours: Neighbours, groups: tuple[Hashable, ...] | None) -> str:
    """Return which two data sets are compared, and what everybody knows of them."""
    number = "; the number of records is public" if neighbours == REPLACED else ""
    return neighbours.words + number + ("; the groups are public" if groups is not None else "")


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
