"""Composition of the exponential mechanism, for fixed and for adaptive questions."""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from dpnotes._checks import check_epsilon, check_integer, check_probability
from dpnotes.accounting._calibrate import calibrate
from dpnotes.accounting.costs import MOST_QUERIES, SMALLEST, PrivacyCost
from dpnotes.accounting.renyi import epsilon_from_zcdp

_MOST_FIXED_QUERIES = 10**5
_WORK = 1 << 25  # cells times choices times queries, for adaptive questions


def compose_bounded_range(
    epsilon: float, queries: int, delta: float, *, adaptive: bool = True
) -> PrivacyCost:
    """Return what answers by the exponential mechanism, or any of bounded range, cost together.

    Parameters
    ----------
    epsilon : float
        What one answer costs, positive and finite. The range is bounded: for any neighbours, the
        losses of all outputs lie in *some* interval of this length. Permute-and-flip at epsilon is
        not such a mechanism: its range is nearly twice as long.
    queries : int
        How many answers, from 0 to 10**6, or to 10**5 where all are fixed beforehand.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    adaptive : bool
        Whether a question may depend on earlier answers. The cost is a little less where all are
        fixed beforehand.

    Returns
    -------
    PrivacyCost
        With ``adaptive=False`` the smallest epsilon that holds for all such mechanisms. Otherwise a
        certified upper bound on it.

    Notes
    -----
    The worst mechanisms have two outputs, of loss t and t - epsilon for some t. For questions fixed
    beforehand, Dong, Durfee and Rogers (2020) show that all t are equal, and one of
    (total + (l + 1) epsilon) / (queries + 1), for l = 0, ..., queries, at the epsilon `total`.

    An adversary who may adapt chooses t anew after every answer. The largest delta that can be
    reached from any odds is a convex function of the odds, found backwards from the last answer:
    between the points of a grid a straight line is an upper bound, and the best t in each cell has
    a closed form. Each answer also has a zCDP of epsilon / (exp(epsilon) - 1) +
    log((exp(epsilon) - 1) / epsilon) - 1 (Harrison and Manurangsi, 2026), just below the
    epsilon^2 / 8 of Cesar and Rogers (2021). The smaller of the two bounds is returned, and zCDP
    alone where many questions would need too fine a grid.

    Examples
    --------
    >>> for adaptive in (True, False):
    ...     print(f"{float(compose_bounded_range(0.1, 100, 1e-5, adaptive=adaptive)):.4f}")
    1.9939
    1.9886
    """
    epsilon = check_epsilon(epsilon)
    if not isinstance(adaptive, bool | np.bool_):
        raise TypeError(f"adaptive must be True or False, got {type(adaptive).__name__}")
    most = MOST_QUERIES if adaptive else _MOST_FIXED_QUERIES
    queries = check_integer("queries", queries, low=0, high=most)
    delta = check_probability("delta", delta)
    if queries == 0:
        return PrivacyCost(0.0, delta)
    most = check_epsilon(epsilon * queries, "epsilon * queries")
    if most > 1e300:
        return PrivacyCost(most, delta)
    composed = _adaptive_range if adaptive else _fixed_range
    return PrivacyCost(min(most, composed(epsilon, queries, delta)), delta)


@lru_cache(maxsize=1024)
def _fixed_range(epsilon: float, queries: int, delta: float) -> float:
    """Return the smallest epsilon for questions that are fixed beforehand."""
    steps = np.arange(1, queries + 2)

    def delta_at(total: float) -> float:
        t = np.minimum((total + steps * epsilon) / (queries + 1), epsilon)
        return float(_two_output_delta(total, t, epsilon, queries).max())

    if delta_at(0.0) <= delta:
        return 0.0
    high = min(epsilon * queries, float(epsilon_from_zcdp(queries * _range_zcdp(epsilon), delta)))
    if high <= 0 or delta_at(high) >= delta:
        return high
    return calibrate(delta_at, delta, SMALLEST, high, start=high, tolerance=1e-12)


def _range_zcdp(epsilon: float) -> float:
    """Return the smallest rho for which every mechanism of this range is rho-zCDP."""
    if epsilon < 0.01:
        return epsilon * epsilon / 8
    share = -math.expm1(-epsilon)
    return epsilon * math.exp(-epsilon) / share + epsilon + math.log(share / epsilon) - 1


def _two_output_delta(total: float, t: np.ndarray, epsilon: float, queries: int) -> np.ndarray:
    """Return delta at an epsilon `total` for mechanisms of two outputs, losses t, t - epsilon."""
    second = np.expm1(-t) / np.expm1(-epsilon) * np.exp(t - epsilon)
    second_there = np.expm1(-t) / np.expm1(-epsilon)
    # The largest number of second outputs with which the loss is still above the total.
    most = np.ceil((queries * t - total) / epsilon) - 1
    here = special.bdtr(np.maximum(most, 0), queries, np.minimum(second, 1.0))
    there = special.bdtr(np.maximum(most, 0), queries, np.minimum(second_there, 1.0))
    with np.errstate(divide="ignore"):
        return np.where(most < 0, 0.0, here - np.exp(total + np.log(there)))


@lru_cache(maxsize=1024)
def _adaptive_range(epsilon: float, queries: int, delta: float) -> float:
    """Return an epsilon that holds for adaptive questions, from zCDP or by backward induction."""
    simple = float(epsilon_from_zcdp(queries * _range_zcdp(epsilon), delta))
    if simple == 0:
        return 0.0
    # The grid runs from -reach to 2 reach in cells of epsilon / fineness, once for each question.
    reach = max(simple, 2 * epsilon * math.sqrt(queries))
    cells = queries * 3 * reach / epsilon
    fineness = min(32, int(math.sqrt(_WORK / cells)))
    if fineness < 4 or epsilon > 10:
        return simple
    return min(simple, _backward_induction(epsilon, queries, delta, fineness, reach))


def _backward_induction(
    epsilon: float, queries: int, delta: float, fineness: int, reach: float
) -> float:
    """Bound the epsilon that an adversary can reach by choosing each question adaptively.

    ``value[j]`` bounds the largest delta when the remaining losses must exceed ``left[j]``. It is
    convex in exp(left), so a straight line between points bounds it above.
    """
    step = epsilon / fineness
    left = step * np.arange(-math.ceil(reach / step), math.ceil(2 * reach / step) + 1)
    value = -np.expm1(np.minimum(left, 0.0))
    width, odds = math.expm1(step), math.expm1(epsilon)
    # One row for each cell: losses t from cell * step to (cell + 1) * step, and t - epsilon.
    factor = np.exp(step * np.arange(1, fineness + 1))[:, np.newaxis]
    # The upper end of a cell is the lower end of the one before; of the first it is t = 0.
    chance_at_end = (odds + 1 - factor) / odds
    for _ in range(queries):
        padded = np.concatenate([np.ones(fineness + 1), value, np.full(fineness + 1, value[-1])])
        rows = np.lib.stride_tricks.sliding_window_view(padded, value.size)
        drops = np.lib.stride_tricks.sliding_window_view(np.diff(padded) / width, value.size)
        second, rest = rows[2 * fineness : fineness : -1], drops[2 * fineness : fineness : -1]
        gap = rows[fineness:0:-1] - second
        slope = drops[fineness:0:-1] - rest
        at_end = gap * chance_at_end + second
        np.maximum(value, at_end.max(axis=0), out=value)
        x = _best_inside(factor, slope, gap, rest, odds, width)
        inside = (gap + slope * x) * (odds + 1 - factor / (x + 1)) / odds + rest * x + second
        np.maximum(value, inside.max(axis=0), out=value)
        np.minimum(value, 1.0, out=value)
    after = int(np.flatnonzero(value <= delta)[0]) if value[-1] <= delta else -1
    if after < 1:
        return math.inf if after < 0 else 0.0
    share = (value[after - 1] - delta) / (value[after - 1] - value[after])
    return max(0.0, float(left[after - 1] + math.log1p(share * width)))


def _best_inside(
    factor: np.ndarray,
    slope: np.ndarray,
    gap: np.ndarray,
    rest: np.ndarray,
    odds: float,
    width: float,
) -> np.ndarray:
    """Return the maximizer in each cell under linear interpolation, from 0 to `width`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.sqrt((slope - gap) * factor / (slope * (odds + 1) + odds * rest)) - 1
    # On a flat line every point is a maximizer, so NaN becomes 0.
    return np.fmin(np.fmax(best, 0.0), width)
