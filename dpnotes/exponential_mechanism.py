"""The exponential mechanism: pick a candidate at random, good ones more often.

Among candidates with utilities u, the mechanism of McSherry and Talwar (2007) picks one with
probability proportional to exp(epsilon u / (2 sensitivity)), where the sensitivity is the most that
one person can change any utility. This costs at most epsilon, and nearly that for the worst
utilities. Where the sum of the weights does not depend on the data it costs half: for a single
label it is randomized response, as in `dpnotes.label_privacy`.

Its relatives are here as well. On average `permute_and_flip` is never worse at the same parameter
(McKenna and Sheldon, 2020). At the same cost it is better on some tables and worse on others, and
many choices by it cost more than by `sample`. `release_quantile` and `release_median` are the
mechanism on a public grid of answers. `above_threshold` is the sparse vector technique: it names
the first of many counts that is large. The exact distribution of each output can be computed too,
so that `dpnotes.audit` can check it.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes._checks import (
    as_array,
    as_numbers,
    as_objects,
    check_epsilon,
    check_flag,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    is_finite,
    kind_of,
    shown,
)
from dpnotes._coins import discrete_laplace, draw_index, flip_each
from dpnotes.release import (
    REPLACED,
    Limits,
    Neighbours,
    NumberRelease,
    TableRelease,
    _check_neighbours,
    _name_public,
    _read_groups,
)

# The largest count, beyond which they are clipped, and scale: so that sums fit 64 bits.
_LARGEST_COUNT, _LARGEST_SCALE = 2**53, 2.0**40
# The most steps in a table of probabilities, and the most terms in a sum over noise.
_LARGEST_TABLE = 10**7
# Tails of noise beyond this many scales are ignored: e^-45 is below rounding.
_NEGLIGIBLE = 45.0
_NODES, _SHARES = np.polynomial.legendre.leggauss(32)


def sample(
    utilities: ArrayLike,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    size: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> int | np.ndarray:
    """Draw the index of a candidate, with probability growing exponentially in its utility.

    Parameters
    ----------
    utilities : array_like of shape (k,)
        The utility of each candidate on the data at hand; finite.
    epsilon : float
        The privacy cost of one draw, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, at least 1e-300 and finite.
    size : int, optional
        How many independent draws; each costs epsilon. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    int, or ndarray of int64 of shape (size,)
        Indices of candidates.

    Notes
    -----
    The candidates are the leaves of a binary tree, and an exact coin decides at each fork. So the
    probabilities have the *relative* precision of doubles, far into the tails: no candidate is
    lost to rounding in a cumulative sum. Rounding the weights may cost up to 1e-12 more than
    epsilon. A draw costs O(log k) after O(k) once.

    Examples
    --------
    >>> best_day = sample([10, 14, 9], epsilon=1.0, rng=0)
    >>> best_day in (0, 1, 2)
    True
    """
    weights = _weights(_one_row(utilities), epsilon, sensitivity)
    count = 1 if size is None else check_integer("size", size, low=0, high=2**40)
    drawn = draw_index(weights, count, check_rng(rng))
    return int(drawn[0]) if size is None else drawn


def output_distribution(
    utilities: ArrayLike, epsilon: float, *, sensitivity: float = 1.0
) -> np.ndarray:
    """Return the exact distribution of the mechanism's output.

    Parameters
    ----------
    utilities : array_like of shape (k,) or (inputs, k)
        The utility of each candidate; with two dimensions, a row for each possible data set.
    epsilon : float
        The privacy cost, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, at least 1e-300 and finite.

    Returns
    -------
    ndarray of the shape of `utilities`
        Probabilities; each row sums to 1.

    Notes
    -----
    No probability is 0: a candidate is at most e^700 times less likely than the best one, as if
    its utility were higher. This costs no privacy, while a 0 would make the cost infinite.

    Examples
    --------
    >>> output_distribution([0.0, 2.0], np.log(3)).round(12)
    array([0.25, 0.75])
    """
    weights = _weights(_half_gaps(utilities), epsilon, sensitivity)
    return weights / weights.sum(axis=-1, keepdims=True)


def permute_and_flip(
    utilities: ArrayLike,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    size: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> int | np.ndarray:
    """Draw the index of a candidate by permute-and-flip, for a choice that is made once.

    Parameters
    ----------
    utilities : array_like of shape (k,)
        The utility of each candidate on the data at hand; finite.
    epsilon : float
        The privacy cost of one draw, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, at least 1e-300 and finite.
    size : int, optional
        How many independent draws; each costs epsilon. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    int, or ndarray of int64 of shape (size,)
        Indices of candidates.

    Notes
    -----
    Go through the candidates in random order and flip a coin for each, which lands heads with
    probability exp(epsilon (u - best) / (2 sensitivity)); the first heads is the answer (McKenna
    and Sheldon, 2020). The best candidate always gets heads. It is private at epsilon, and its
    expected utility is at least that of the exponential mechanism with the same parameter. It is
    report-noisy-max with exponential noise (Ding et al., 2021). For small epsilon its losses
    have a range of nearly 2 epsilon, where those of the exponential mechanism have epsilon. So for
    many choices `sample` is better, and `accounting.compose_bounded_range` at epsilon does not hold
    here.

    The coins are exact; rounding their chances may cost up to 1e-12 more than epsilon. A draw
    costs O(k).

    Examples
    --------
    >>> best_day = permute_and_flip([10, 14, 9], epsilon=1.0, rng=0)
    >>> best_day in (0, 1, 2)
    True
    """
    chances = _weights(_one_row(utilities), epsilon, sensitivity)
    count = 1 if size is None else check_integer("size", size, low=0, high=2**40)
    rng = check_rng(rng)
    # The coin of the best candidate always lands heads, but `flip_each` needs p < 1.
    sure, coins = chances == 1, np.where(chances == 1, 0.0, chances)
    drawn = np.empty(count, dtype=np.int64)
    for place in range(count):
        order = rng.permutation(chances.size)
        drawn[place] = order[(flip_each(coins[order], rng) | sure[order]).argmax()]
    return int(drawn[0]) if size is None else drawn


def permute_and_flip_distribution(
    utilities: ArrayLike, epsilon: float, *, sensitivity: float = 1.0
) -> np.ndarray:
    """Return the exact distribution of what `permute_and_flip` draws.

    Parameters
    ----------
    utilities : array_like of shape (k,) or (inputs, k)
        The utility of each candidate; with two dimensions, a row for each possible data set.
    epsilon : float
        The privacy cost, positive and finite.
    sensitivity : float
        The most by which one person can change a utility, at least 1e-300 and finite.

    Returns
    -------
    ndarray of the shape of `utilities`
        Probabilities; each row sums to 1.

    Notes
    -----
    Let each candidate j have its turn at a time that is uniform on [0, 1], and a coin that lands
    heads with probability a_j. It is drawn if it gets heads and no earlier one did, so its
    probability is a_j times the integral over t of the product of 1 - t a_l over all other l. The
    integrand is a polynomial; Gauss's rule on intervals that halve towards 0 gives twelve digits.

    Examples
    --------
    >>> permute_and_flip_distribution([0.0, 2.0], np.log(3)).round(12)
    array([0.16666667, 0.83333333])
    """
    chances = _weights(_half_gaps(utilities), epsilon, sensitivity)
    intervals = max(8, math.ceil(math.log2(chances.shape[-1])) + 4)
    ends = np.append(0.0, 2.0 ** np.arange(-intervals, 1))
    total = np.zeros(chances.shape)
    for low, high in pairwise(ends):
        for node, share in zip(_NODES, _SHARES, strict=True):
            time = low + (high - low) * (node + 1) / 2
            # No factor is 0 because time < 1, so the product over the others is a quotient.
            nobody = np.log1p(-time * chances).sum(axis=-1, keepdims=True)
            others = np.exp(nobody - np.log1p(-time * chances))
            total += (high - low) / 2 * share * others
    return chances * total


def release_quantile(
    values: ArrayLike,
    share: float,
    epsilon: float,
    *,
    low: float,
    high: float,
    steps: int = 1_000_000,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    interval: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> NumberRelease | TableRelease:
    """Release a private quantile, of all records or in each group, as an answer on a public grid.

    Parameters
    ----------
    values : array_like of shape (n,)
        One finite number a record. What lies outside the bounds counts as the nearer bound.
    share : float
        The share of values that should be below, strictly between 0 and 1, in whole 2^-20.
    epsilon : float
        The privacy cost of all that is released, positive and finite.
    low, high : float
        The smallest and the largest answer, with low < high. They must be public, and not be read
        off the values.
    steps : int
        The answers are low + i (high - low) / steps for i = 0 to steps, rounded once to doubles;
        from 1 to 2**40. For whole numbers from 0 to 120 take 120.
    neighbours : {REPLACED, ADDED_OR_REMOVED}
        Which two data sets the promise compares; both are in `dpnotes.release`. If a record is
        replaced, the number of records is public.
    by : sequence of hashable, length n, optional
        The group of each record, one of `groups`.
    groups : sequence of hashable, length k, optional
        All groups, different and public. Empty ones are answered like the others.
    interval : float, optional
        A confidence, such as 0.95, with which two more quantiles are to enclose the true one. They
        take a quarter of epsilon each.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    NumberRelease or TableRelease
        The quantile, or one for each group.

    Raises
    ------
    ValueError, TypeError
        If there are no values although their number is public, one is not a finite number, or a
        parameter is out of range or of the wrong kind. Nothing else about the values is refused,
        except that integers in a list must fit signed 64 bits, and booleans are not numbers here.

    Notes
    -----
    Every value is rounded to the grid. An answer is bad by the number of values below it beyond
    share * n, or of those above it beyond (1 - share) * n, whichever is larger. Answers between two
    neighbouring values are equally bad, so the exponential mechanism first draws such an interval,
    with exact coins, and then a point of it (Smith, 2011, draws a real number there, whose last
    digits could give away the values on both sides). An answer is drawn with probability
    proportional to exp(-t * bad).

    A record that is replaced moves `bad` by 1 at most, up or down, so t is epsilon / 2. One that is
    added or removed moves it by m = max(share, 1 - share) at most, so t is epsilon / (2 m). If it
    may move to another group, then it is removed from one and added to the other, and t is
    epsilon / (4 m): all medians of a partition together cost what one of them does.

    An answer is worse than the best by more than (ln(steps + 1) + x) / t with probability at most
    e^-x. So the two quantiles of `interval` aim that many ranks to the left and to the right, and
    each is on the wrong side of the true quantile with at most half of the error. Time is
    O(n log n), whatever `steps` is.

    Examples
    --------
    >>> ages = [23, 31, 35, 38, 40, 42, 57] * 100
    >>> released = release_quantile(
    ...     ages, 0.75, 1.0, low=0, high=120, steps=120, interval=0.95, rng=0
    ... )
    >>> released.value, released.interval()
    (42.0, (40.0, 42.0))
    """
    epsilon, share = check_epsilon(epsilon), _check_share(share)
    low, high = _check_range(low, high)
    steps = check_integer("steps", steps, low=1, high=2**40)
    neighbours = _check_neighbours(neighbours)
    error = 0.0 if interval is None else 1 - check_probability("interval", interval)
    rng = check_rng(rng)
    places = _read_places(values, low, high, steps, neighbours)
    found, groups = _read_groups(places.size, by, groups)
    each = _strength(epsilon, share, neighbours, grouped=groups is not None)
    parts = [places] if found is None else _split(places, found, len(groups))

    def draw(part: np.ndarray, strength: float, aside: int = 0) -> float:
        ends, weights = _stretches(part, share, strength, steps, aside)
        [drawn] = draw_index(np.diff(ends) * weights, 1, rng)
        place = int(rng.integers(ends[drawn], ends[drawn + 1]))
        return float(Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(place, steps))

    answers, limits = [draw(part, each / 2 if error else each) for part in parts], None
    if error:
        aside = math.ceil(math.log(2 * (steps + 1) / error) / (each / 8))
        ends = [[draw(part, each / 4, side) for side in (-aside, aside)] for part in parts]
        pairs = zip(answers, *zip(*ends, strict=True), strict=True)
        limits = Limits(1 - error, tuple((min(three), max(three)) for three in pairs))
    promise = {
        "epsilon": epsilon,
        "mechanism": "exponential mechanism on a grid of answers",
        "neighbours": _name_public(neighbours, groups),
        "basis": limits,
    }
    if groups is None:
        return NumberRelease(value=answers[0], **promise)
    return TableRelease(value=answers, domain=groups, **promise)


def release_median(
    values: ArrayLike,
    epsilon: float,
    *,
    low: float,
    high: float,
    steps: int = 1_000_000,
    neighbours: Neighbours = REPLACED,
    by: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    interval: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> NumberRelease | TableRelease:
    """Release a private median: `release_quantile` with a share of one half.

    Parameters
    ----------
    values, epsilon, low, high, steps, neighbours, by, groups, interval, rng
        As in `release_quantile`.

    Returns
    -------
    NumberRelease or TableRelease
        The median, or one for each group.

    Examples
    --------
    >>> ages = [23, 31, 35, 38, 40, 42, 57] * 100
    >>> release_median(ages, 1.0, low=0, high=120, steps=120, rng=0).value
    38.0
    """
    options = {"low": low, "high": high, "steps": steps, "neighbours": neighbours}
    options |= {"by": by, "groups": groups, "interval": interval, "rng": rng}
    return release_quantile(values, 0.5, epsilon, **options)


def quantile_distribution(
    values: ArrayLike,
    share: float,
    epsilon: float,
    *,
    low: float,
    high: float,
    steps: int,
    neighbours: Neighbours = REPLACED,
) -> np.ndarray:
    """Return the exact distribution of what `release_quantile` draws of all records.

    Parameters
    ----------
    values, share, epsilon, low, high
        As in `release_quantile`.
    steps : int
        The number of steps between the bounds, from 1 to 10**7.
    neighbours : {REPLACED, ADDED_OR_REMOVED}
        As in `release_quantile`.

    Returns
    -------
    ndarray of shape (steps + 1,)
        The probability of each answer, from low to high; they sum to 1.

    Examples
    --------
    >>> quantile_distribution([1, 1, 2], 0.5, 2 * np.log(3), low=0, high=3, steps=3).round(4)
    array([0.0714, 0.6429, 0.2143, 0.0714])
    """
    epsilon, share = check_epsilon(epsilon), _check_share(share)
    low, high = _check_range(low, high)
    steps = check_integer("steps", steps, low=1, high=_LARGEST_TABLE)
    places = _read_places(values, low, high, steps, _check_neighbours(neighbours))
    strength = _strength(epsilon, share, neighbours, grouped=False)
    ends, weights = _stretches(places, share, strength, steps)
    distribution = np.repeat(weights, np.diff(ends))
    return distribution / distribution.sum()


def median_distribution(
    values: ArrayLike, epsilon: float, *, low: float, high: float, steps: int
) -> np.ndarray:
    """Return the exact distribution of what `release_median` draws of all records.

    Parameters
    ----------
    values, epsilon, low, high, steps
        As in `quantile_distribution`.

    Returns
    -------
    ndarray of shape (steps + 1,)
        The probability of each answer, from low to high; they sum to 1.

    Examples
    --------
    >>> median_distribution([1, 1, 2], 2 * np.log(3), low=0, high=3, steps=3).round(4)
    array([0.0714, 0.6429, 0.2143, 0.0714])
    """
    return quantile_distribution(values, 0.5, epsilon, low=low, high=high, steps=steps)


def above_threshold(
    answers: ArrayLike,
    threshold: int,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
    rng: np.random.Generator | int | None = None,
) -> int:
    """Return which answer is the first above a threshold, by the sparse vector technique.

    Parameters
    ----------
    answers : array_like of int of shape (k,)
        The true answers, such as counts, in the order in which they are asked.
    threshold : int
        Within 2**53 of 0.
    epsilon : float
        The privacy cost of the whole call, however many answers there are; positive and finite,
        and so large that no scale of noise is above 2**40.
    sensitivity : int
        The most by which one person can change an answer, at least 1.
    monotone : bool
        Whether one person can never raise some answers and lower others at the same time. Then half
        the noise on the answers is enough. When one record is *replaced*, counts in general
        are not monotone; counts of values up to c, for one c after the other, are. When a record
        is added or removed, all counts are.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    int
        The index of the first answer that was found above, or -1 if none was.

    Notes
    -----
    The threshold gets Laplace noise of scale sensitivity / e1, each answer fresh noise of scale
    2 sensitivity / e2 (without the 2 where `monotone`), and the first noisy answer that reaches the
    noisy threshold is named (Dwork et al., 2009; Lyu, Su and Li, 2017). The cost is e1 + e2, and
    epsilon is divided so that the variance of a comparison is least: e2 / e1 is the cube root of 4,
    or 1 where `monotone`. The noise is on whole numbers and exact, and ends between 700 and 1,400
    scales from 0, so that the promise has a delta of about exp(epsilon - 700): next to nothing,
    unless epsilon itself is in the hundreds.

    Only the index may be published: the noisy answer itself would need a budget of its own. To
    look for another one, call this again on the later answers, which costs epsilon again.

    Examples
    --------
    >>> above_threshold([3, 8, 5, 900, 4], 500, epsilon=1.0, rng=0)
    3
    """
    row = _check_answers(answers)
    if row.ndim != 1:
        raise ValueError(f"answers must be one-dimensional, got shape {row.shape}")
    threshold = check_integer("threshold", threshold, low=-_LARGEST_COUNT, high=_LARGEST_COUNT)
    of_threshold, of_answers = _scales(epsilon, sensitivity, monotone)
    rng = check_rng(rng)
    [shift] = discrete_laplace(1, of_threshold, rng)
    above = row + discrete_laplace(row.size, of_answers, rng) >= threshold + shift
    return int(above.argmax()) if above.any() else -1


def above_threshold_distribution(
    answers: ArrayLike,
    threshold: int,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
) -> np.ndarray:
    """Return the exact distribution of what `above_threshold` returns, for untruncated noise.

    Truncating the noise changes a probability by less than 1e-300.

    Parameters
    ----------
    answers : array_like of int of shape (k,) or (inputs, k)
        The true answers; with two dimensions, a row for each possible data set.
    threshold : int
        Within 2**53 of 0.
    epsilon : float
        The privacy cost, positive and finite.
    sensitivity : int
        The most by which one person can change an answer, at least 1.
    monotone : bool
        Whether one person can never raise some answers and lower others at the same time.

    Returns
    -------
    ndarray of shape (k + 1,) or (inputs, k + 1)
        The probability of each index, and last that of none; each row sums to 1.

    Raises
    ------
    ValueError, TypeError
        As `above_threshold` does, or if the answers are so far from the threshold, or the noise is
        so wide, that the sum over it would have more than 10**7 terms.

    Notes
    -----
    Given the noise on the threshold, the comparisons are independent. So this is a sum of products
    over that noise, without negligible terms.

    Examples
    --------
    >>> above_threshold_distribution([0, 5], 3, epsilon=2.0).round(3)
    array([0.161, 0.689, 0.151])
    """
    table = _check_answers(answers)
    threshold = check_integer("threshold", threshold, low=-_LARGEST_COUNT, high=_LARGEST_COUNT)
    of_threshold, of_answers = _scales(epsilon, sensitivity, monotone)
    rows = np.atleast_2d(table)
    reach = _NEGLIGIBLE * (of_threshold + of_answers) + of_answers * math.log(rows.shape[1])
    found = [_first_above(row - threshold, of_threshold, of_answers, reach) for row in rows]
    return np.array(found) if table.ndim == 2 else found[0]


def _one_row(utilities: ArrayLike) -> np.ndarray:
    gaps = _half_gaps(utilities)
    if gaps.ndim != 1:
        raise ValueError(f"utilities must be one-dimensional, got shape {gaps.shape}")
    return gaps


def _check_range(low: float, high: float) -> tuple[float, float]:
    """Return public bounds as floats, whose difference must not overflow."""
    low = check_real("low", low, allowed="a finite number")
    high = check_real("high", high, allowed="a finite number")
    if not 0 < high - low < math.inf:
        raise ValueError(
            f"high must be above low, by less than a double can hold, got {shown((low, high))}"
        )
    return low, high


def _check_share(share: float) -> float:
    """Return a share in whole 2^-20, of which doubles hold the products with counts exactly."""
    return check_probability("share", round(check_probability("share", share) * 2**20) / 2**20)


def _read_places(
    values: ArrayLike, low: float, high: float, steps: int, neighbours: Neighbours
) -> np.ndarray:
    """Return the place on the grid of each value."""
    numbers = as_numbers("values", values)
    if numbers.ndim != 1 or (numbers.size == 0 and neighbours == REPLACED):
        raise ValueError(f"values must be one-dimensional and not empty, got shape {numbers.shape}")
    if not is_finite(numbers):
        raise ValueError("values must be finite")
    shares = (np.clip(numbers, low, high) - low) / (high - low)
    return np.rint(shares * steps).astype(np.int64)


def _strength(epsilon: float, share: float, neighbours: Neighbours, *, grouped: bool) -> float:
    """Return twice the factor of `bad` in the exponent, so that the release costs epsilon."""
    if neighbours == REPLACED and not grouped:
        return epsilon
    furthest = max(share, 1 - share)
    return epsilon / (2 * furthest if neighbours == REPLACED else furthest)


def _split(places: np.ndarray, found: np.ndarray, groups: int) -> list[np.ndarray]:
    """Return the places of each group."""
    order = np.argsort(found, kind="stable")
    return np.split(places[order], np.cumsum(np.bincount(found, minlength=groups))[:-1])


def _stretches(
    places: np.ndarray, share: float, strength: float, steps: int, aside: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the utility of answers on the grid changes, and the weight of each in between.

    Stretch i holds the answers from ends[i] to ends[i + 1] - 1. The answers aim at a rank that lies
    `aside` to the right, or to the left if that is negative, and otherwise at the end of the grid:
    as if so many values more lay on either end.
    """
    places, n = np.sort(places), places.size
    inner = [places, places + 1, [1, steps] if aside else []]
    # A stable sort merges sorted runs quickly; newer `numpy.unique` hashes, which is slower.
    ends = np.sort(np.concatenate([[0], *inner, [steps + 1]]).astype(np.int64), kind="stable")
    ends = ends[np.append(True, ends[1:] > ends[:-1])]
    # The last value may lie on the last answer, behind which there is none.
    starts = ends[:-1]
    below = np.searchsorted(places, starts, side="left") - share * n
    above = n - np.searchsorted(places, starts, side="right") - (1 - share) * n
    left, right = max(-aside, 0), max(aside, 0)
    below += left * (starts > 0) - right
    above += right * (starts < steps) - left
    bad = np.maximum(below, above)
    return ends, _weights((bad.min() - bad) / 2, strength, 1.0)


def _check_answers(answers: ArrayLike) -> np.ndarray:
    """Return answers as 64-bit integers, clipped so that adding noise cannot overflow."""
    if isinstance(answers, list | tuple):
        answers = _cut_off(answers)
    array = as_array("answers", answers)
    if array.size == 0:
        raise ValueError("answers must hold at least one, got none")
    if array.dtype.kind not in "iu":
        raise TypeError(f"answers must be integers, got {kind_of(array)}")
    if array.ndim not in (1, 2):
        raise ValueError(f"answers must have one or two dimensions, got shape {array.shape}")
    if array.dtype.kind == "u":
        return np.minimum(array, np.uint64(_LARGEST_COUNT)).astype(np.int64)
    return np.clip(array.astype(np.int64), -_LARGEST_COUNT, _LARGEST_COUNT)


def _cut_off(answers: list | tuple) -> list | tuple | np.ndarray:
    """Clip integers of any length, because whether one fits 64 bits may depend on the records."""
    try:
        entries = as_objects(answers)
    except (ValueError, RuntimeError):
        return answers
    whole, other = int | np.integer, bool | np.timedelta64
    if not all(isinstance(v, whole) and not isinstance(v, other) for v in entries.flat):
        return answers
    cut = [min(max(int(v), -_LARGEST_COUNT), _LARGEST_COUNT) for v in entries.flat]
    return np.array(cut, dtype=np.int64).reshape(entries.shape)


def _scales(epsilon: float, sensitivity: int, monotone: bool) -> tuple[float, float]:
    """Return the scales of the noise on the threshold and on an answer."""
    epsilon = check_epsilon(epsilon)
    sensitivity = check_integer("sensitivity", sensitivity, low=1)
    factor = 1 if check_flag("monotone", monotone) else 2
    ratio = factor ** (2 / 3)
    of_threshold = sensitivity * (1 + ratio) / epsilon
    of_answers = factor / ratio * of_threshold
    if max(of_threshold, of_answers) > _LARGEST_SCALE:
        raise ValueError(
            "epsilon must be so large, and sensitivity so small, that no noise has a scale above "
            f"2**40, got {shown((epsilon, sensitivity))}"
        )
    return of_threshold, of_answers


def _first_above(
    ahead: np.ndarray, of_threshold: float, of_answers: float, reach: float
) -> np.ndarray:
    """Return the distribution of the first answer above, given answers minus the threshold."""
    # Such noise is 0 for certain either way, and sums of logarithms below stay doubles.
    of_threshold, of_answers = max(of_threshold, 1e-200), max(of_answers, 1e-200)
    first = math.floor(min(ahead.min(), 0) - reach)
    last = math.ceil(max(ahead.max(), 0) + reach)
    if last - first > _LARGEST_TABLE:
        raise ValueError(
            "answers must be so close to threshold, and epsilon so large, that the sum over the "
            f"noise has at most {_LARGEST_TABLE} terms"
        )
    shifts = np.arange(first, last + 1)
    # For each noise on the threshold: log P(this noise, and no answer so far was above).
    logs = np.log(np.tanh(0.5 / of_threshold)) - np.abs(shifts) / of_threshold
    found = np.empty(ahead.size + 1)
    for place, answer in enumerate(ahead):
        short = shifts - answer
        found[place] = np.exp(special.logsumexp(logs + _log_at_most(-short, of_answers)))
        logs = logs + _log_at_most(short - 1, of_answers)
    found[-1] = np.exp(special.logsumexp(logs))
    return found


def _log_at_most(numbers: np.ndarray, scale: float) -> np.ndarray:
    """Return the logarithm of the chance that discrete Laplace noise is at most each number."""
    tail = -np.log1p(math.exp(-1 / scale))
    far = np.where(numbers < 0, numbers, -numbers - 1) / scale + tail
    return np.where(numbers < 0, far, np.log1p(-np.exp(far)))


def _weights(half_gaps: np.ndarray, epsilon: float, sensitivity: float) -> np.ndarray:
    """Return exp(epsilon u / (2 sensitivity)) relative to the best candidate of each row.

    A weight below exp(-700) is raised to it. This raises the utility to a fixed distance from the
    best one, which does not change the sensitivity. Otherwise a weight could underflow to 0 on one
    data set and not on its neighbour, at an infinite cost.
    """
    epsilon = check_epsilon(epsilon)
    # Near the smallest doubles the rounding of half gaps would exceed a sensitivity.
    allowed = "a number of at least 1e-300, and finite"
    sensitivity = check_real("sensitivity", sensitivity, low=1e-300, allowed=allowed)
    with np.errstate(over="ignore"):
        gaps = half_gaps.astype(float, copy=False) / sensitivity
        return np.exp(np.maximum(gaps * epsilon, -700.0))


def _half_gaps(utilities: ArrayLike) -> np.ndarray:
    """Return half of how far each utility lies behind the best of its row, after checking them.

    Halves, so that no gap overflows before the sensitivity divides it.
    """
    array = as_array("utilities", utilities, with_booleans=True)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"utilities must be numbers, got {kind_of(array)}")
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"utilities must have one or two dimensions and a candidate, got {array.shape}"
        )
    if not is_finite(array):
        raise ValueError("utilities must be finite")
    # Subtract as integers, because rounding to floats could move large neighbours hundreds apart.
    # The differences are right even where unsigned integers wrap around.
    if array.dtype.kind in "iu":
        best = array.max(axis=-1, keepdims=True).astype(np.uint64)
        return -(best - array.astype(np.uint64)).astype(float) / 2
    if isinstance(utilities, list | tuple) and float(np.abs(array).max()) >= 2.0**53:
        return _exact_half_gaps(as_objects(utilities))
    wide = array.astype(np.promote_types(array.dtype, float))
    return wide / 2 - wide.max(axis=-1, keepdims=True) / 2


def _exact_half_gaps(utilities: np.ndarray) -> np.ndarray:
    """Return half gaps of a list that may mix large integers and floats."""
    numbers = [int(u) if isinstance(u, Integral) else u for u in utilities.flat]
    exact = np.array([Fraction(*u.as_integer_ratio()) for u in numbers]).reshape(utilities.shape)
    return ((exact - exact.max(axis=-1, keepdims=True)) / 2).astype(float)
