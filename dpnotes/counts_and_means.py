"""Counts, sums and means of records that somebody holds, of all together or group by group.

Every release is computed from *tallies*, whole numbers to which each record adds something. Public
numbers say how much one record can change all tallies together: the sensitivity s. Discrete Laplace
noise of scale s / epsilon, drawn for each tally, hides that (Dwork, McSherry, Nissim and Smith,
2006). With values from l to h steps these sensitivities are::

    release  what a record adds              replaced  replaced, by group  added or removed
    count    1 if it is True                 1         2                   1
    sum      its value in steps              h - l     2 max(-l, h)        max(-l, h)
    mean     h - l tokens to two tallies:    h - l     2 (h - l)           h - l
             its value less l to the first

A mean of a public number of records needs the first of its two tallies alone. Otherwise it is the
share of the first tally in both. A record always adds h - l tokens, so both get the noise that
one of them would need, and nothing is spent on a count of its own.

The groups must be public: a list that was read off the records reveals that somebody is in it.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import (
    CONFIDENCE,
    as_array,
    as_list,
    as_numbers,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    find_categories,
    index_categories,
    is_finite,
    kind_of,
    shown,
)
from dpnotes._coins import discrete_laplace
from dpnotes.exponential_mechanism import release_median, release_quantile
from dpnotes.release import (
    REPLACED,
    Neighbours,
    NumberRelease,
    TableRelease,
    _check_neighbours,
    _name_public,
    _read_groups,
)

__all__ = [
    "NumberRelease",
    "TableRelease",
    "Tallies",
    "log_probability",
    "margin",
    "release_count",
    "release_histogram",
    "release_mean",
    "release_median",
    "release_quantile",
    "release_sum",
]

# Steps of a value lie this close to 0, so that sums of 2^31 records fit 64 bits, noise included.
_MOST_STEPS = 2**31
_WIDEST_NOISE = 2.0**50
# Take this from epsilon for each of at most two tallies that a record changes: headroom for
# rounding the odds of the coins to doubles.
_SPARE = 1e-12
# At scales below 1 / 700 noise is practically always 0, so larger rates are cut off here.
_MOST_RATE = 700.0


@dataclass(frozen=True, slots=True)
class Tallies:
    """Noisy whole numbers from which a release is computed; they may be published with it.

    Parameters
    ----------
    noisy : tuple of int
        The tallies with their noise, one for each number that is released, or two.
    rate : float
        The noise x of each is drawn with probability proportional to exp(-rate abs(x)).
    start, unit : Fraction
        What a tally of 0 stands for, and what 1 adds to it.
    shared : bool
        Whether tallies come in pairs: then a number lies between `start` and `start` + `unit`, as
        far as the share of the first of its two tallies in both.
    """

    noisy: tuple[int, ...]
    rate: float
    start: Fraction = Fraction(0)
    unit: Fraction = Fraction(1)
    shared: bool = False
    confidence: ClassVar[float] = CONFIDENCE

    def _read(self) -> tuple[float, ...]:
        """Return the numbers that are released."""
        if not self.shared:
            return tuple(self._place(tally) for tally in self.noisy)
        return tuple(self._place(_find_share(*pair)) for pair in self._pairs())

    def _bound(self, error: float) -> list[tuple[float, float]]:
        """Return limits of each number without noise, which miss it with at most this chance."""
        if self.shared:
            limits = [_bound_share(*pair, self.rate, error) for pair in self._pairs()]
        else:
            off = _find_reach(self.rate, error)
            limits = [(tally - off, tally + off) for tally in self.noisy]
        return [(self._place(low), self._place(high)) for low, high in limits]

    def _divide(self, number: Fraction) -> "Tallies":
        """Return the tallies of the numbers divided by a public one."""
        return replace(self, start=self.start / number, unit=self.unit / number)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.noisy[::2], self.noisy[1::2], strict=True))

    def _place(self, tally: float) -> float:
        place = self.start + self.unit * Fraction(tally)
        is_whole = isinstance(tally, int) and place.denominator == self.unit.denominator == 1
        return int(place) if is_whole else float(place)


class _Plan(NamedTuple):
    """What is to be released: the tallies, how much a record changes them, and how to read them."""

    tallies: NDArray[np.int64]
    sensitivity: int
    epsilon: float
    neighbours: Neighbours
    domain: tuple[Hashable, ...] | None = None
    start: Fraction = Fraction(0)
    unit: Fraction = Fraction(1)
    shared: bool = False

    @property
    def rate(self) -> float:
        spare = min(self.sensitivity, 2) * _SPARE
        return min((self.epsilon - spare) / self.sensitivity, _MOST_RATE)


def release_count(
    values: Sequence[bool],
    epsilon: float,
    *,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    rng: np.random.Generator | int | None = None,
) -> NumberRelease | TableRelease:
    """Release how many values are True, of all records or in each group.

    Parameters
    ----------
    values : sequence of bool, length n
        The answer of each record: True or False, or 1 or 0.
    epsilon : float
        The privacy cost of all that is released, at least 1e-9 and finite.
    neighbours : {REPLACED, ADDED_OR_REMOVED}
        Which two data sets the promise compares; both are in `dpnotes.release`. If a record is
        replaced, the number of records is public.
    by : sequence of hashable, length n, optional
        The group of each record, one of `groups`.
    groups : sequence of hashable, length k, optional
        All groups, different and public. Empty ones are answered like the others.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    NumberRelease or TableRelease
        The noisy count, or one for each group: whole numbers, of which some may be negative.

    Notes
    -----
    A record that is added, removed or replaced moves a count by 1 at most. If it may also move to
    another group, then two counts change, and the noise is twice as wide.

    The coins are exact for odds that are rounded to doubles, for which 1e-12 of epsilon is kept
    back for each count that changes. The noise ends between 700 and 1,400 scales from 0, beyond
    which exact noise would lie with a probability below 1e-303. So the claim of epsilon alone holds
    up to a delta of exp(epsilon - 700) times the number of groups: next to nothing, unless epsilon
    itself is in the hundreds.

    Divided by the public number of records, ``release_count(...) / n`` is a share, with its
    interval.

    Examples
    --------
    >>> released = release_count([True] * 700 + [False] * 300, epsilon=1.0, rng=0)
    >>> abs(float(released) - 700) <= margin(1.0, sensitivity=1)
    True
    >>> print(f"{released / 1000:.2f}")
    0.70
    """
    return _draw(_plan_count(values, epsilon, neighbours=neighbours, by=by, groups=groups), rng)


def release_histogram(
    values: Sequence[Hashable],
    domain: Sequence[Hashable],
    epsilon: float,
    *,
    neighbours: Neighbours = REPLACED,
    rng: np.random.Generator | int | None = None,
) -> TableRelease:
    """Release how many records there are of each category.

    Parameters
    ----------
    values : sequence of hashable, length n
        The category of each record.
    domain : sequence of hashable, length k
        All categories, different and public. Give missing and unexpected answers a category of
        their own.
    epsilon, neighbours, rng
        As in `release_count`, by group of which this is.

    Returns
    -------
    TableRelease
        The noisy counts, in the order of `domain`.

    Notes
    -----
    `project_to_simplex` of `dpnotes.unary_encoding` projects the counts to the nearest non-negative
    ones that sum to n, at no further cost.

    Examples
    --------
    >>> answers = ["tea"] * 700 + ["coffee"] * 300
    >>> released = release_histogram(answers, ["coffee", "tea", "water"], epsilon=1.0, rng=0)
    >>> [abs(noisy - true) <= margin(1.0, 3) for noisy, true in zip(released.value, [300, 700, 0])]
    [True, True, True]
    """
    return _draw(_plan_histogram(values, domain, epsilon, neighbours=neighbours), rng)


def release_sum(
    values: ArrayLike,
    epsilon: float,
    *,
    low: float,
    high: float,
    step: float,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    rng: np.random.Generator | int | None = None,
) -> NumberRelease | TableRelease:
    """Release the sum of the values, of all records or in each group.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The value of each record; it is clipped to [low, high] and rounded to a multiple of `step`.
    epsilon : float
        As in `release_count`.
    low, high, step : float
        Public numbers; `low` and `high` are multiples of `step`, and within 2**31 steps of 0.
    neighbours, by, groups, rng
        As in `release_count`.

    Returns
    -------
    NumberRelease or TableRelease
        The noisy sum, or one for each group: multiples of `step`. The interval is about the sum of
        the clipped and rounded values.

    Notes
    -----
    The bounds must be chosen without a look at the values. Wide ones need more noise, and narrow
    ones cut off what lies beyond them; the chapter shows both. The noise has the scale s / epsilon,
    where s is high - low if a record is replaced. If it may also move to another group, s is
    2 max(abs(low), abs(high)), and half of that if a record is added or removed.

    Examples
    --------
    >>> ages = [30, 41, 52, 67, 140]
    >>> released = release_sum(ages, epsilon=100.0, low=0, high=100, step=1, rng=0)
    >>> released.value, released.interval()
    (289.0, (286.0, 292.0))
    """
    options = {"low": low, "high": high, "step": step, "neighbours": neighbours}
    return _draw(_plan_sum(values, epsilon, **options, by=by, groups=groups), rng)


def release_mean(
    values: ArrayLike,
    epsilon: float,
    *,
    low: float,
    high: float,
    step: float,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    rng: np.random.Generator | int | None = None,
) -> NumberRelease | TableRelease:
    """Release the mean of the values, of all records or in each group.

    Parameters
    ----------
    values, epsilon, low, high, step, neighbours, by, groups, rng
        As in `release_sum`.

    Returns
    -------
    NumberRelease or TableRelease
        The noisy mean, or one for each group, in [low, high] unless the number of records is
        public. Where next to no record is found, it is the middle.

    Notes
    -----
    A mean of n records, where n is public, is `release_sum` over n. Otherwise every record adds
    h - l tokens to two tallies, its value less `low` to the first and the rest to the second, in
    steps, and the mean lies as far from `low` to `high` as the share of the first in both. As a
    record adds h - l tokens whatever its value, noise of scale (high - low) / epsilon on both is
    enough if it is added or removed, and twice that if it may move to another group. This
    has half of the variance of a sum around the middle and a count with half of epsilon each.

    The interval holds all shares that the two tallies do not contradict (Fieller, 1954), with the
    exact tail of a sum of two Laplace variables, and one token more for being whole numbers.

    Examples
    --------
    >>> ages = [30, 41, 52, 67, 140]
    >>> released = release_mean(ages, epsilon=100.0, low=0, high=100, step=1, rng=0)
    >>> released.value
    57.8
    >>> by_town = release_mean(
    ...     ages, 100.0, low=0, high=100, step=1, by=list("xxyyy"), groups=["x", "y", "z"], rng=0
    ... )
    >>> by_town.to_series().round().to_dict()
    {'x': 36.0, 'y': 74.0, 'z': 43.0}
    """
    options = {"low": low, "high": high, "step": step, "neighbours": neighbours}
    return _draw(_plan_mean(values, epsilon, **options, by=by, groups=groups), rng)


def log_probability(
    tallies: ArrayLike, release: Callable, *arguments: object, **options: object
) -> NDArray[np.float64]:
    """Return the logarithm of the probability that a release comes out.

    Parameters
    ----------
    tallies : array_like of int, shape (t,) or (outputs, t)
        What might be ``release(...).basis.noisy``.
    release : {release_count, release_histogram, release_sum, release_mean}
        The function that releases.
    *arguments, **options
        What it is called with, but for `rng`.

    Returns
    -------
    ndarray of float, shape () or (outputs,)
        Natural logarithms of probabilities.

    Notes
    -----
    With rate r the noise x of a tally has probability ``tanh(r / 2) exp(-r abs(x))``.

    Examples
    --------
    >>> one = log_probability([3], release_count, [True, True], 1.0)
    >>> other = log_probability([3], release_count, [True, False], 1.0)
    >>> round(float(one - other), 6)
    1.0
    """
    if release not in _PLANS:
        raise ValueError(f"release must be a function of this module, got {shown(release)}")
    return _find_log_chances("tallies", tallies, _PLANS[release](*arguments, **options))


def margin(
    epsilon: float, categories: int = 1, *, confidence: float = CONFIDENCE, sensitivity: int = 2
) -> int:
    """Return how far noisy counts are from the true ones at most, with a given confidence.

    Parameters
    ----------
    epsilon : float
        The privacy cost of the release, at least 1e-9 and finite.
    categories : int
        For how many counts it must hold simultaneously, from 1 to 2**31.
    confidence : float
        The probability with which it must hold, strictly between 0 and 1.
    sensitivity : {2, 1}
        By how much one record moves all counts together: 2 for a histogram, and 1 for a count of
        all records, and wherever a record is added or removed.

    Returns
    -------
    int
        The smallest such margin, in records.

    Notes
    -----
    It depends on public numbers only, so it can be known before any release. With q =
    exp(-epsilon / sensitivity) the noise of a count is further than m with probability
    2 q^(m + 1) / (1 + q).

    Examples
    --------
    >>> margin(1.0), margin(0.1), margin(0.1, 14)
    (6, 60, 112)
    >>> margin(0.1, sensitivity=1)
    30
    """
    sensitivity = check_integer("sensitivity", sensitivity, low=1, high=2)
    plan = _Plan(np.zeros(1, np.int64), sensitivity, _check_cost(epsilon), REPLACED)
    categories = check_integer("categories", categories, low=1, high=2**31)
    confidence = check_probability("confidence", confidence)
    return _find_reach(plan.rate, -math.expm1(math.log(confidence) / categories))


# The tallies.


def _plan_count(
    values: Sequence[bool],
    epsilon: float,
    *,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> _Plan:
    epsilon, neighbours = _check_cost(epsilon), _check_neighbours(neighbours)
    ones = _read_flags(values, neighbours)
    places, domain = _read_groups(ones.size, by, groups)
    changed = _count_changed(neighbours, domain)
    return _Plan(_add_up(ones, places, domain), changed, epsilon, neighbours, domain)


def _plan_histogram(
    values: Sequence[Hashable],
    domain: Sequence[Hashable],
    epsilon: float,
    *,
    neighbours: Neighbours = REPLACED,
) -> _Plan:
    epsilon, neighbours = _check_cost(epsilon), _check_neighbours(neighbours)
    places = index_categories(domain)
    found, domain = find_categories(values, places, empty=neighbours != REPLACED), tuple(places)
    tallies = np.bincount(found, minlength=len(domain))
    return _Plan(tallies, _count_changed(neighbours, domain), epsilon, neighbours, domain)


def _plan_sum(
    values: ArrayLike,
    epsilon: float,
    *,
    low: float,
    high: float,
    step: float,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> _Plan:
    epsilon, neighbours = _check_cost(epsilon), _check_neighbours(neighbours)
    steps, (least, most), unit = _read_steps(values, low, high, step, neighbours)
    places, domain = _read_groups(steps.size, by, groups)
    sensitivity = _count_changed(neighbours, domain) * max(-least, most)
    if domain is None and neighbours == REPLACED:
        sensitivity = most - least
    tallies = _add_up(steps, places, domain)
    return _Plan(tallies, sensitivity, epsilon, neighbours, domain, unit=unit)


def _plan_mean(
    values: ArrayLike,
    epsilon: float,
    *,
    low: float,
    high: float,
    step: float,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> _Plan:
    epsilon, neighbours = _check_cost(epsilon), _check_neighbours(neighbours)
    steps, (least, most), unit = _read_steps(values, low, high, step, neighbours)
    places, domain = _read_groups(steps.size, by, groups)
    start, above = least * unit, _add_up(steps - least, places, domain)
    if domain is None and neighbours == REPLACED:
        each = unit / steps.size
        return _Plan(above, most - least, epsilon, neighbours, None, start, each)
    below = _add_up(most - steps, places, domain)
    return _Plan(
        np.column_stack([above, below]).ravel(),
        _count_changed(neighbours, domain) * (most - least),
        epsilon,
        neighbours,
        domain,
        start,
        (most - least) * unit,
        shared=True,
    )


_PLANS = {
    release_count: _plan_count,
    release_histogram: _plan_histogram,
    release_sum: _plan_sum,
    release_mean: _plan_mean,
}


def _draw(plan: _Plan, rng: np.random.Generator | int | None) -> NumberRelease | TableRelease:
    """Draw the noise of a plan, and return what is released."""
    if plan.sensitivity > plan.epsilon * _WIDEST_NOISE:
        raise ValueError(f"epsilon must be larger for so many steps, got {shown(plan.epsilon)}")
    noise = discrete_laplace(plan.tallies.size, 1 / plan.rate, check_rng(rng))
    noisy = tuple((plan.tallies + noise).tolist())
    tallies = Tallies(noisy, plan.rate, plan.start, plan.unit, plan.shared)
    promise = {
        "epsilon": plan.epsilon,
        "mechanism": f"discrete Laplace noise of scale {plan.sensitivity} / epsilon on every tally",
        "neighbours": _name_public(plan.neighbours, plan.domain),
        "basis": tallies,
    }
    if plan.domain is None:
        return NumberRelease(value=tallies._read()[0], **promise)
    return TableRelease(value=tallies._read(), domain=plan.domain, **promise)


def _count_changed(neighbours: Neighbours, domain: tuple[Hashable, ...] | None) -> int:
    """Return how many groups a record changes: a replaced one leaves a group for another."""
    return 2 if domain is not None and neighbours == REPLACED else 1


def _find_log_chances(name: str, tallies: ArrayLike, plan: _Plan) -> NDArray[np.float64]:
    found = as_array(name, tallies)
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, got {kind_of(found)}")
    if found.ndim not in (1, 2) or found.shape[-1] != plan.tallies.size:
        raise ValueError(f"{name} must be {plan.tallies.size} in a row, got shape {found.shape}")
    # As doubles, because the difference of two 64-bit integers may overflow.
    off = np.abs(found.astype(float) - plan.tallies).sum(axis=-1)
    return plan.tallies.size * math.log(math.tanh(plan.rate / 2)) - plan.rate * off


def _check_cost(epsilon: float) -> float:
    allowed = "a finite number of at least 1e-9"
    return check_real("epsilon", epsilon, low=1e-9, allowed=allowed)


def _check_size(name: str, size: int, neighbours: Neighbours) -> None:
    """Refuse no records at all, unless their number is private."""
    if size == 0 and neighbours == REPLACED:
        raise ValueError(f"{name} must hold at least one record, got none")


def _read_flags(values: Sequence[bool], neighbours: Neighbours) -> NDArray[np.int64]:
    """Return 1 for every True; each value is checked by itself, never in view of others."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biu":
        # A boolean array over a foreign buffer may hold any byte.
        flags = values.view(np.uint8) != 0 if values.dtype.kind == "b" else values
        is_flag = (flags == 0) | (flags == 1)
    else:
        flags = as_list("values", values, empty=neighbours != REPLACED)
        is_flag = np.array([_is_flag(value) for value in flags], dtype=bool)
    if not is_flag.all():
        raise ValueError("values must be True or False, or 1 or 0; a record is not")
    _check_size("values", len(flags), neighbours)
    return np.array(flags, dtype=np.int64)


def _is_flag(value: object) -> bool:
    known = isinstance(value, np.bool_ | Integral) and not isinstance(value, np.timedelta64)
    return known and value in (0, 1)


def _read_steps(
    values: ArrayLike, low: float, high: float, step: float, neighbours: Neighbours
) -> tuple[NDArray[np.int64], tuple[int, int], Fraction]:
    """Return values in whole steps, the least and the most of them, and the step as a fraction."""
    finite = "a finite number"
    low, high = check_real("low", low, allowed=finite), check_real("high", high, allowed=finite)
    step = check_real("step", step, low=0.0, low_open=True, allowed="a positive finite number")
    # As they are written, so that 0.3 is three steps of 0.1.
    unit = Fraction(repr(step))
    least, most = (Fraction(repr(end)) / unit for end in (low, high))
    if not least < most:
        raise ValueError(f"high must be above low, got {shown((low, high))}")
    if least.denominator != 1 or most.denominator != 1:
        raise ValueError(f"step must divide low and high, got {shown((step, low, high))}")
    if max(-least, most) > _MOST_STEPS:
        raise ValueError(
            f"low and high must be within 2**31 times step of 0, got {shown((low, high, step))}"
        )
    numbers = as_numbers("values", values)
    if numbers.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {numbers.shape}")
    _check_size("values", numbers.size, neighbours)
    if not is_finite(numbers):
        raise ValueError("values must be finite")
    steps = np.rint(np.clip(numbers, low, high) / step).astype(np.int64)
    return np.clip(steps, int(least), int(most)), (int(least), int(most)), unit


def _add_up(
    amounts: NDArray[np.int64],
    places: NDArray[np.intp] | None,
    domain: tuple[Hashable, ...] | None,
) -> NDArray[np.int64]:
    """Return the sum of the amounts in each group, exactly."""
    if domain is None:
        return np.array([amounts.sum()])
    tallies = np.zeros(len(domain), np.int64)
    np.add.at(tallies, places, amounts)
    return tallies


# The intervals.


def _find_reach(rate: float, error: float) -> int:
    """Return the smallest m such that noise is further than m from 0 with at most this chance."""
    beyond = math.log(2 / error) - math.log1p(math.exp(-rate))
    return max(0, math.ceil(beyond / rate) - 1)


def _find_share(up: int, down: int) -> float:
    """Return the share of `up` in both, neither of which is below 0 without noise."""
    up, down = max(up, 0), max(down, 0)
    return up / (up + down) if up + down else 0.5


def _bound_share(up: int, down: int, rate: float, error: float) -> tuple[float, float]:
    """Return the least and the largest share of `up` that two noisy tallies do not contradict.

    Without noise (1 - u) up - u down is 0 for the true share u. Each grid of shares lies around
    those that the one before has kept, and so the limits are right to a thousandth of their
    distance.
    """
    low, high, share = 0.0, 1.0, _find_share(up, down)
    for _ in range(4):
        grid = np.append(np.linspace(low, high, 1001), share)
        grid.sort()
        wide = np.maximum(grid, 1 - grid)
        off = np.maximum(np.abs((1 - grid) * up - grid * down) - 1, 0.0) * rate / wide
        kept = np.flatnonzero(_tail_of_two(off, (1 - wide) / wide) >= error)
        if not kept.size:  # less than no record: the noise was unlikely, whatever the share
            return share, share
        low, high = float(grid[max(kept[0] - 1, 0)]), float(grid[min(kept[-1] + 1, 1001)])
    return min(low, share), max(high, share)


def _tail_of_two(off: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that a Laplace variable and `ratio` times another are `off` from 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # (exp(-t) - r^2 exp(-t / r)) / (1 - r^2), without the cancellation near r = 1.
        squared = 2 * np.log(ratio)
        both = np.expm1(squared - off * (1 - ratio) / ratio) / np.expm1(squared)
    return np.exp(-off) * np.select([ratio == 0, ratio == 1], [1.0, 1 + off / 2], both)
