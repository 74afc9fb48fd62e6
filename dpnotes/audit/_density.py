"""The exact check for continuous noise: the delta of two densities, between two bounds."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_numbers, check_real

_DIGITS = 1e-13  # the relative error allowed for a distribution function or a log-density
_TAIL = 1e-60  # a tail with less probability than this is not looked at
_SMALLEST = float(np.finfo(float).tiny)  # below it a float loses its digits, and then underflows
_STEPS = 2.0 ** np.arange(-40, 300)
_GRID = np.linspace(0, 1, 65)


class _Density(Protocol):
    def logpdf(self, x: NDArray) -> NDArray: ...

    def cdf(self, x: NDArray) -> NDArray: ...

    def sf(self, x: NDArray) -> NDArray: ...


class Bounds(NamedTuple):
    """Two numbers that enclose the one that is wanted."""

    lower: float
    upper: float


class _Piece(NamedTuple):
    """An interval with losses above epsilon throughout, or else nowhere by more than a slack."""

    start: float
    end: float
    above: bool
    slack: float


def density_delta(
    distribution: _Density,
    neighbour: _Density,
    epsilon: float,
    *,
    turning_points: ArrayLike,
    limits: tuple[float, float] | None = None,
) -> Bounds:
    """Bound the smallest delta that two densities need at a given epsilon, from both sides.

    Parameters
    ----------
    distribution, neighbour : object with the methods `logpdf`, `cdf` and `sf`
        The distributions of the released number on two neighbouring data sets, such as frozen
        distributions of `scipy.stats`. Their densities are positive and continuous everywhere.
    epsilon : float
        The epsilon that is claimed, in nats, finite and at least 0.
    turning_points : array_like of numbers
        Where the log-ratio of the two densities turns from rising to falling or back: between two
        of these points, and beyond the last ones, it must be monotone. More points do no harm. A
        ratio that never turns, such as that of two normal distributions with one variance, needs
        one point anywhere, for example the mean.
    limits : (float, float), optional
        The log-ratio of `distribution` to `neighbour` at minus and at plus infinity, where known.

    Returns
    -------
    Bounds
        `lower` and `upper`, probabilities. The delta is that of the worse of the two directions.

    Raises
    ------
    ValueError
        If epsilon is negative or not finite, if there is no turning point, if one is not finite, if
        the log-ratio is seen to turn between two of them or is not finite there, or if a `cdf` and
        `sf` do not add up to 1 or are those of several distributions.
    TypeError
        If a distribution lacks a method, or a number is of the wrong kind.

    Notes
    -----
    The delta is the integral of the positive part of p - exp(epsilon) q, for densities p and q, and
    so the integral over the region where p > exp(epsilon) q, as in Balle and Wang (2018, theorem
    5). Where the log-ratio is monotone this region is an interval, whose end is found by bisection.
    So the integral takes a few values of the distribution functions, and no sum over a grid. The
    end is known to the last digit, and what may lie between two neighbouring floats goes to the
    upper bound.

    The bounds hold if the log-ratio is continuous and monotone between the points given. That is
    for the caller to prove: 65 points of each interval are looked at, and no others. The bounds
    also take `logpdf`, `cdf` and `sf` to be right to thirteen digits, and include whatever these
    digits leave open: an upper bound of 1e-11 beside a lower one of 0 is a delta of 0 as far as
    floats can tell. Nothing is looked at beyond the point where both tails hold less than 1e-60,
    and the upper bound includes that tail unless `limits`, or a falling ratio, says that it costs
    nothing. Where epsilon is above 600 or so, the probabilities that it multiplies are too small
    for floats, and the lower bound falls to 0.

    Examples
    --------
    >>> from scipy import stats
    >>> noise, other = stats.norm(0.0, 1.0), stats.norm(1.0, 1.0)
    >>> lower, upper = density_delta(noise, other, 1.0, turning_points=[0.0])
    >>> round(lower, 9), upper - lower < 1e-12
    (0.126936738, True)

    Laplace noise of scale 1 needs no delta at epsilon 1, and half of that noise does:

    >>> laplace = lambda centre, scale: stats.laplace(centre, scale)
    >>> options = {"turning_points": [0.0, 1.0]}
    >>> density_delta(laplace(0.0, 1.0), laplace(1.0, 1.0), 1.0, **options).upper < 1e-10
    True
    >>> round(density_delta(laplace(0.0, 0.5), laplace(1.0, 0.5), 1.0, **options).lower, 6)
    0.393469
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a finite number of at least 0")
    points = np.unique(as_numbers("turning_points", turning_points))
    if points.size == 0 or not np.isfinite(points).all():
        raise ValueError("turning_points must be finite numbers, at least one")
    ends = as_numbers("limits", (math.nan, math.nan) if limits is None else limits)
    if ends.shape != (2,) or (limits is not None and np.isnan(ends).any()):
        raise ValueError("limits must be two numbers, finite or infinite")
    with np.errstate(all="ignore"):
        _check_density("distribution", distribution, points)
        _check_density("neighbour", neighbour, points)
        there = _bound_delta(distribution, neighbour, epsilon, points, ends)
        back = _bound_delta(neighbour, distribution, epsilon, points, (-ends[0], -ends[1]))
    return Bounds(max(there.lower, back.lower), max(there.upper, back.upper))


def _check_density(name: str, given: _Density, points: NDArray) -> None:
    """Refuse what lacks a method, or does not answer as a distribution does."""
    if not all(callable(getattr(given, method, None)) for method in ("logpdf", "cdf", "sf")):
        kind = type(given).__name__
        raise TypeError(f"{name} must have the methods logpdf, cdf and sf, got {kind}")
    shapes = [np.shape(method(points[0])) for method in (given.logpdf, given.cdf, given.sf)]
    if any(shapes):
        raise ValueError(f"{name} must be one distribution, got some of shape {max(shapes)}")
    below, above = np.asarray(given.cdf(points)), np.asarray(given.sf(points))
    if below.shape != points.shape or not (np.abs(below + above - 1) <= 1e-9).all():
        raise ValueError(f"{name} must have a cdf and an sf that add up to 1 at each point")


def _bound_delta(
    first: _Density, second: _Density, epsilon: float, points: NDArray, limits: tuple[float, float]
) -> Bounds:
    """Bound the integral of the positive part of first - exp(epsilon) second."""
    lower = upper = 0.0
    for piece in _cut_line(_Loss(first, second), epsilon, points, limits):
        most, off = _measure(first, piece.start, piece.end)
        if not piece.above:
            upper += (most + off) * -math.expm1(-piece.slack)
            continue
        other, other_off = _measure(second, piece.start, piece.end)
        # In logarithms, because exp(epsilon) other could overflow.
        rest = epsilon + math.log(other) - math.log(most) if most and other else -math.inf
        excess = most * -math.expm1(min(rest, 0.0))
        doubt = off + float(np.exp(epsilon + np.log(other_off)))
        lower += max(0.0, excess - doubt)
        upper += min(most + off, excess + doubt)
    return Bounds(min(float(lower), 1.0), min(float(upper), 1.0))


def _measure(density: _Density, start: float, end: float) -> tuple[float, float]:
    """Return the probability of an interval, from the tail that it is nearer to, and its error."""
    low = float(density.cdf(start)), float(density.cdf(end))
    high = float(density.sf(end)), float(density.sf(start))
    small, large = min(low, high, key=sum)
    return max(0.0, large - small), _DIGITS * (large + small) + _SMALLEST


class _Loss(NamedTuple):
    """The log-ratio of two densities, and how far off its digits may be."""

    first: _Density
    second: _Density

    def __call__(self, x: ArrayLike) -> tuple[NDArray, NDArray]:
        one, other = (np.asarray(d.logpdf(x), float) for d in (self.first, self.second))
        return one - other, _DIGITS * (1 + np.abs(one) + np.abs(other))


def _cut_line(
    loss: _Loss, epsilon: float, points: NDArray[np.float64], limits: tuple[float, float]
) -> Iterator[_Piece]:
    """Cut the line into intervals where the loss is above epsilon and below it."""
    left, right = _walk_outwards(loss, points[0], -1), _walk_outwards(loss, points[-1], 1)
    between = [a + (b - a) * _GRID for a, b in itertools.pairwise(points)]
    for places in (left[::-1], *between, right):
        _check_monotone(*loss(places), places)
        yield from _cut_interval(loss, places[0], places[-1], epsilon)
    yield _Piece(-math.inf, left[-1], *_judge_tail(loss, left, limits[0], epsilon))
    yield _Piece(right[-1], math.inf, *_judge_tail(loss, right, limits[1], epsilon))


def _walk_outwards(loss: _Loss, start: float, side: int) -> NDArray[np.float64]:
    """Return points ever farther out, up to one with next to nothing beyond, or the last seen."""
    places = start + side * np.append(0.0, _STEPS * max(1.0, abs(start)))
    tails = [d.sf(places) if side > 0 else d.cdf(places) for d in (loss.first, loss.second)]
    seen = np.isfinite(loss(places)[0]).cumprod().astype(bool)
    if not seen[:2].all():
        raise ValueError("turning_points must be points at which both densities are positive")
    beyond = np.maximum(*tails) <= _TAIL
    end = max(int(beyond.argmax()), 1) + 1 if beyond.any() else len(places)
    return places[:end][seen[:end]]


def _check_monotone(losses: NDArray, doubts: NDArray, places: NDArray) -> None:
    """Refuse turning points between which the loss is seen to turn."""
    if not np.isfinite(losses).all():
        raise ValueError("turning_points must be points between which both densities are positive")
    steps, noise = np.diff(losses), doubts[1:] + doubts[:-1]
    if (steps > noise).any() and (steps < -noise).any():
        raise ValueError(
            "turning_points must hold every point where the log-ratio of the densities turns, "
            f"and it turns between {places[0]:g} and {places[-1]:g}"
        )


def _cut_interval(loss: _Loss, start: float, end: float, epsilon: float) -> Iterator[_Piece]:
    """Cut an interval in which the loss is monotone: surely below epsilon, in doubt, above."""
    losses, _ = loss([start, end])
    low, high = (start, end) if losses[0] <= losses[1] else (end, start)
    last_below = _find_last(lambda x: sum(loss(x)) <= epsilon, low, high)
    first_above = _find_last(lambda x: np.subtract(*loss(x)) >= epsilon, high, low)
    slack = max(0.0, float(sum(loss(first_above))) - epsilon)
    pieces = itertools.pairwise((low, last_below, first_above, high))
    for ends, is_above, beyond in zip(pieces, (False, False, True), (0.0, slack, 0.0), strict=True):
        if ends[0] != ends[1]:
            yield _Piece(*sorted(ends), is_above, beyond)


def _find_last(holds: Callable[[float], bool], start: float, end: float) -> float:
    """Return the farthest point from the start at which something holds, found by halving."""
    if not holds(start):
        return start
    if holds(end):
        return end
    while (middle := start + (end - start) / 2) not in (start, end):
        start, end = (middle, end) if holds(middle) else (start, middle)
    return start


def _judge_tail(loss: _Loss, places: NDArray, limit: float, epsilon: float) -> tuple[bool, float]:
    """Say whether all losses beyond the last place are above epsilon, and else how far they go."""
    losses, doubts = loss(places[[0, -1]])
    if math.isnan(limit):  # the loss is monotone out here: it goes on to fall, or to rise
        limit = -math.inf if losses[0] - losses[1] > doubts.sum() else math.inf
    if losses[1] - doubts[1] >= epsilon and limit >= epsilon:
        return True, 0.0
    return False, max(0.0, float(losses[1] + doubts[1]) - epsilon, limit - epsilon)
