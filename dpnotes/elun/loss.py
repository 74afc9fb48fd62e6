"""The logistic loss, its expectation under noise, and how far its minimum can move.

The expectation is taken in one of three ways: over fixed draws, over Gauss points of the noise
projected on a row, or in closed form in one dimension. Each average is as convex and Lipschitz as
the loss, so one record moves its optimum no further.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dpnotes._checks import as_array, check_epsilon, check_flag, check_integer, check_real, kind_of
from dpnotes.elun.noise import MOST_NODES, check_numbers, uniform_rule
from dpnotes.elun.solver import (
    Binary,
    least_tolerance,
    mean_over_interval,
    over_intervals,
    over_points,
    reachable_tolerance,
    solve,
    without_noise,
)

_ALTERNATING_TERMS = 24


def sensitivity(
    lipschitz: float, regularization: float, n: int, *, gradient_tolerance: float = 0.0
) -> float:
    """Return how far the optimum can move when one of n records is replaced.

    Parameters
    ----------
    lipschitz : float
        The Lipschitz constant rho of each record's loss in the weights; positive. For the logistic
        loss it is the largest 2-norm of a row, for softmax sqrt(2) times that.
    regularization : float
        The factor lambda of ||w||^2 / 2, positive.
    n : int
        The public number of records, at least 1.
    gradient_tolerance : float
        The gradient norm kappa at which the solver stops; at least 0.

    Returns
    -------
    float
        A distance between weights, in the 2-norm.

    Notes
    -----
    At any weights the gradients on two neighbours differ by at most 2 rho / n, because only one of
    the n losses differs. So the gradient of the second objective has a norm of at most
    kappa + 2 rho / n at the first weights, and of at most kappa at the second. By strong convexity
    the two are at most (2 kappa + 2 rho / n) / lambda apart (Chaudhuri, Monteleoni and Sarwate,
    2011; Wu et al., 2017, for a tolerance of 0).

    Examples
    --------
    >>> sensitivity(2.0, 0.05, 1000)
    0.08
    """
    rho = check_epsilon(lipschitz, "lipschitz")
    strength = check_epsilon(regularization, "regularization")
    n = check_integer("n", n, low=1)
    tolerance = check_real(
        "gradient_tolerance", gradient_tolerance, low=0.0, allowed="a finite number of at least 0"
    )
    moved = 2 * (rho / n + tolerance) / strength
    if moved == math.inf:
        raise ValueError(
            f"regularization must be large enough for a finite sensitivity, got {regularization}"
        )
    return moved


def logistic_sensitivity(
    lipschitz: float,
    regularization: float,
    n: int,
    *,
    noise_scale: float = 0.0,
    dimension: int = 1,
    nodes: int = 50,
    gradient_tolerance: float = 0.0,
) -> float:
    """Return how far the optimum of the logistic loss can move, with or without noise in it.

    Parameters
    ----------
    lipschitz : float
        The largest 2-norm rho of a row; positive.
    regularization : float
        The factor lambda of ||w||^2 / 2, positive.
    n : int
        The public number of records, at least 1.
    noise_scale : float
        The scale b of the noise that the loss is averaged over, at least 0 and finite; 0 is the
        logistic loss itself.
    dimension : int
        The number of weights d, at least 1.
    nodes : int
        The number of nodes of the `uniform_mixture` that stands for the noise, from 1 to 100.
    gradient_tolerance : float
        The gradient norm kappa at which the solver stops; at least 0.

    Returns
    -------
    float
        A distance between weights, in the 2-norm; at most that of `sensitivity`.

    Notes
    -----
    The norm of a record's gradient is that of its row times p(-t), with t the margin and p the
    average of 1 / (1 + e^-x) over noise on x. Two records whose gradients point in opposite
    directions cannot both have p near 1: at weights w two gradients differ by at most

        2 rho max over y in [0, 1 / sqrt(2)] of sqrt(1 - y^2) p(y rho ||w||),

    and with two weights or more this is attained. The norm of the optimum is at most t / rho, with
    t the largest number for which t^2 <= (rho^2 / lambda) max over s <= t of s p(-s). Both are
    functions of public numbers; the proof is in the chapter. Under large noise p is nearly 1/2,
    which halves the sensitivity.

    Examples
    --------
    >>> round(logistic_sensitivity(2.0, 0.05, 1000), 4), sensitivity(2.0, 0.05, 1000)
    (0.0638, 0.08)
    >>> round(logistic_sensitivity(2.0, 0.05, 1000, noise_scale=10.0, dimension=30), 4)
    0.0409
    """
    rho = check_size("lipschitz", lipschitz)
    strength = check_size("regularization", regularization)
    scale = check_real("noise_scale", noise_scale, low=0.0, allowed="a finite number, at least 0")
    dimension = check_integer("dimension", dimension, low=1)
    nodes = check_integer("nodes", nodes, low=1, high=MOST_NODES)
    sensitivity(rho, strength, n, gradient_tolerance=gradient_tolerance)  # refuses what is invalid
    # Cap the noise to avoid overflow. At 1e100 p is already 1/2, and less noise never decreases the
    # bound.
    spread = min(rho * scale, 1e100)
    pull = rho * _largest_pull(rho**2 / strength, spread, dimension, nodes)
    return sensitivity(pull, strength, n, gradient_tolerance=gradient_tolerance)


@lru_cache(maxsize=4096)
def _largest_pull(ratio: float, spread: float, dimension: int, nodes: int) -> float:
    """Return the largest distance of two gradients, as a share of 2 rho.

    `ratio` is rho^2 / lambda and `spread` is rho b. The factor 1 + 1e-9 is headroom for rounding.
    """
    half_widths, weights = uniform_rule(dimension, nodes)

    def wrong(margins: NDArray) -> NDArray[np.float64]:
        apart = np.asarray(margins)[..., np.newaxis]
        return mean_over_interval(apart, spread * half_widths)[0] @ weights

    largest = _largest_margin(ratio, wrong)
    # A product of two positive concave functions has a single maximum.
    found = optimize.minimize_scalar(
        lambda y: -math.sqrt(1 - y * y) * float(wrong(y * largest)),
        bounds=(0.0, math.sqrt(0.5)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return min(1.0, max(0.5, -found.fun) * (1 + 1e-9))


def _largest_margin(ratio: float, wrong: Callable[[NDArray], NDArray]) -> float:
    """Return a bound on rho ||w|| at an optimum, improved until it changes by less than 0.1 %."""
    largest = ratio / 2
    while True:
        t = np.append(0.0, np.geomspace(1e-4, 1, 400)) * largest
        p = wrong(-t)
        product = t * p
        # p is convex here, so between two grid points it lies below its chord.
        above = np.maximum(product[1:], product[:-1]) - np.diff(p) * np.diff(t) / 4
        improved = math.sqrt(ratio * float(above.max())) * (1 + 1e-9)
        if improved > 0.999 * largest:
            return largest
        largest = improved


def expected_logistic_loss(margin: ArrayLike, noise_scale: ArrayLike) -> NDArray[np.float64]:
    """Return the expected logistic loss of a margin with Laplace noise, in closed form.

    Parameters
    ----------
    margin : array_like of floats
        Label times score, finite.
    noise_scale : array_like of floats
        The scale of the Laplace noise on the margin, at least 0 and finite; noise of scale b on the
        single weight of a feature x gives ``b * abs(x)``. Broadcasts against `margin`.

    Returns
    -------
    ndarray of the common shape
        Losses, in nats.

    Notes
    -----
    With margin t, scale s and F(u) = 2F1(1, 1/s; 1 + 1/s; u), the loss is log(1 + e^-t) plus the
    penalty (s / 2) (F(-e^t) + F(-e^-t) - 1). The penalty is even in t: it does not depend on the
    label. Its alternating series is accelerated as by Cohen, Rodriguez Villegas and Zagier (2000),
    which gives full double precision even where scipy's hypergeometric function loses all digits.

    Examples
    --------
    >>> round(float(expected_logistic_loss(0.0, 1.0)), 12) == round(2 * math.log(2) - 0.5, 12)
    True
    """
    margin, scale = check_numbers("margin", margin), check_numbers("noise_scale", noise_scale)
    _check_broadcast("noise_scale", scale.shape, margin.shape)
    margin, scale = np.broadcast_arrays(margin, scale)
    if np.any(scale < 0):
        raise ValueError("noise_scale must be at least 0")
    distance = np.abs(margin)
    penalty = np.zeros(margin.shape)
    with np.errstate(divide="ignore", over="ignore"):
        rate = 1 / np.maximum(scale, 1e-300)
        decay = np.exp(-rate * distance)
        for k, weight in enumerate(_alternating_weights()):
            between = np.exp(-np.minimum(rate, k + 1) * distance)
            between *= distance * special.exprel(-np.abs(rate - (k + 1)) * distance)
            beyond = np.exp(-(k + 1) * distance) / (k + 1 + rate)
            penalty += weight * (decay / (k + rate) + between - beyond)
    return np.logaddexp(0.0, -margin) + np.where(scale > 0, penalty / 2, 0.0)


@np.errstate(over="ignore")
def averaged_logistic_loss(
    margin: ArrayLike, shifts: ArrayLike, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the logistic loss of margins, averaged over the shifts that noise adds to them.

    Parameters
    ----------
    margin : array_like of floats, shape (...)
        Label times score.
    shifts : array_like of floats, shape (..., R)
        What each of R draws adds to the margin; the average is over the last axis. The distribution
        of the noise is symmetric, so shifts need not be multiplied by the label.
    weights : array_like of floats, shape (R,), optional
        The weights of the shifts; non-negative, with sum 1. The default is equal weights.

    Returns
    -------
    ndarray of shape (...)
        Losses, in nats.

    Notes
    -----
    With ``shifts = rows @ noise.T`` this is ELUN as it was published (Leino and others, 2021); with
    ``shifts = b * norms[:, None] * points`` and the weights of `projected_noise` it is Gauss
    quadrature, in any dimension.

    Examples
    --------
    >>> from dpnotes.elun import projected_noise
    >>> points, weights = projected_noise(1)
    >>> round(float(averaged_logistic_loss(0.0, points, weights)), 3)
    0.886
    """
    margin, shifts = check_numbers("margin", margin), check_numbers("shifts", shifts)
    weights = _check_weights(shifts, weights)
    _check_broadcast("shifts", shifts.shape, (*margin.shape, 1))
    return np.logaddexp(0.0, -(margin[..., np.newaxis] + shifts)) @ weights


@np.errstate(over="ignore")
def clip_rows(features: ArrayLike, lipschitz: float, *, bias: bool = True) -> NDArray[np.float64]:
    """Return rows, with a 1 at the end for the bias, scaled down to a bounded 2-norm.

    Parameters
    ----------
    features : array_like of shape (n, p)
        One record a row; finite numbers, of any size.
    lipschitz : float
        The largest 2-norm of a row, bias included; positive.
    bias : bool
        Whether a feature that is always 1 is appended before clipping.

    Returns
    -------
    ndarray of shape (n, p + 1), or (n, p) without bias
        A row within the bound is unchanged. A longer one is scaled, so the sign of its score stays
        the same.

    Examples
    --------
    >>> clip_rows([[0.5], [1e300]], 2.0).round(3)
    array([[0.5, 1. ],
           [2. , 0. ]])
    """
    lipschitz = check_size("lipschitz", lipschitz)
    features = check_numbers("features", features)
    if features.ndim != 2:
        raise ValueError(f"features must be two-dimensional, got shape {features.shape}")
    ones = np.ones((len(features), 1 if check_flag("bias", bias) else 0))
    rows = np.hstack([features, ones])
    # Scale by the largest entry first, so that no square overflows or underflows.
    largest = np.abs(rows).max(axis=1, initial=np.finfo(float).tiny, keepdims=True)
    unit = rows / largest
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    return np.where(norms > lipschitz / largest, unit * (lipschitz / np.maximum(norms, 1)), rows)


def minimize_loss(
    rows: ArrayLike,
    labels: ArrayLike,
    regularization: float,
    *,
    shifts: ArrayLike | None = None,
    half_widths: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    gradient_tolerance: float | None = None,
) -> NDArray[np.float64]:
    """Fit weights without privacy: minimise the mean logistic loss, or its average under noise.

    Parameters
    ----------
    rows : array_like of shape (n, d)
        One record a row, the bias included if there is one; numbers of at most 1e50.
    labels : array_like of int in {-1, +1}, shape (n,)
        The true labels.
    regularization : float
        The factor lambda of ||w||^2 / 2, positive.
    shifts : array_like of floats, shape (n, R), optional
        What each draw of the noise adds to each score, as in `averaged_logistic_loss`. The default
        is no noise.
    half_widths : array_like of floats, shape (n, R), optional
        Instead of shifts: the half-widths, at least 0, of intervals around the score over which the
        loss is averaged. For noise of scale b they are b ||x|| times those of `uniform_mixture`.
    weights : array_like of floats, shape (R,), optional
        The weights of the shifts or intervals. The default is equal weights.
    gradient_tolerance : float, optional
        The largest gradient norm at the result. The default is the smallest that doubles guarantee.

    Returns
    -------
    ndarray of shape (d,)
        The weights. They are **not** private.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, of the wrong kind, or does not fit the others; or if the
        tolerance is below what doubles guarantee.

    Notes
    -----
    Newton's method, with a line search on the gradient norm; a few milliseconds for thousands of
    records.

    Examples
    --------
    >>> minimize_loss([[1.0], [1.0], [-1.0]], [1, 1, -1], 0.1).round(4)
    array([1.6335])
    """
    rows = check_numbers("rows", rows)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"rows must be two-dimensional and not empty, got shape {rows.shape}")
    if np.abs(rows).max() > 1e50:
        raise ValueError("rows must hold numbers up to 1e50; a record does not")
    strength = check_size("regularization", regularization)
    targets = _check_signs(labels, len(rows)) > 0
    average, draws = without_noise, 0
    if half_widths is not None and shifts is not None:
        raise ValueError("half_widths must be None where shifts are given")
    if half_widths is not None:
        widths = _check_noisy("half_widths", half_widths, len(rows))
        if np.any(widths < 0):
            raise ValueError("half_widths must be at least 0")
        average, draws = over_intervals(widths, _check_weights(widths, weights)), widths.shape[1]
    elif shifts is not None:
        points = _check_noisy("shifts", shifts, len(rows))
        average, draws = over_points(points, _check_weights(points, weights)), points.shape[1]
    longest = float(np.linalg.norm(rows, axis=1).max())
    least = least_tolerance(longest, strength, rows.shape, draws)
    tolerance = reachable_tolerance(gradient_tolerance, 0.0, least)
    return solve(Binary(rows, targets.astype(float), strength, longest, average), tolerance)


@lru_cache(maxsize=1)
def _alternating_weights() -> tuple[float, ...]:
    """Return the weights of Cohen, Rodriguez Villegas and Zagier for an alternating series."""
    n = _ALTERNATING_TERMS
    d = ((3 + math.sqrt(8)) ** n + (3 - math.sqrt(8)) ** n) / 2
    b, c, factors = -1.0, -d, []
    for k in range(n):
        c = b - c
        factors.append(c / d)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1))
    return tuple(factors)


def _check_broadcast(name: str, shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    """Refuse a shape that does not fit that of the margins."""
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        raise ValueError(f"{name} must fit the margins, got shapes {shape} and {other}") from None


def _check_weights(shifts: NDArray, weights: ArrayLike | None) -> NDArray[np.float64]:
    """Return one weight for each shift; by default equal weights."""
    if shifts.ndim == 0 or shifts.shape[-1] == 0:
        raise ValueError(f"shifts must have a last axis that is not empty, got {shifts.shape}")
    draws = shifts.shape[-1]
    if weights is None:
        return np.full(draws, 1 / draws)
    weights = check_numbers("weights", weights)
    # Bound each weight by 2 first, so that the sum cannot overflow.
    inside = weights.shape == (draws,) and np.all((weights >= 0) & (weights < 2))
    if not (inside and abs(weights.sum() - 1) <= 1e-9):
        raise ValueError(f"weights must be {draws} numbers of at least 0 whose sum is 1")
    return weights


def _check_noisy(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return shifts or half-widths of n scores as an array of shape (n, R)."""
    array = check_numbers(name, values)
    if array.ndim != 2 or len(array) != n or array.size == 0:
        raise ValueError(f"{name} must have shape (n, R), got {array.shape}")
    return array


def _check_signs(labels: ArrayLike, n: int) -> NDArray:
    """Return labels as an array of n entries that are -1 or +1."""
    labels = as_array("labels", labels)
    if labels.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), got {labels.shape}")
    if labels.dtype.kind != "i":
        raise TypeError(f"labels must be signed integers, got {kind_of(labels)}")
    if not np.all(np.abs(labels) == 1):
        raise ValueError("labels must be -1 or +1; a record is not")
    return labels


def check_size(name: str, value: float) -> float:
    """Return a positive number whose square neither overflows nor underflows."""
    return check_real(name, value, low=1e-50, high=1e50, allowed="a number in [1e-50, 1e50]")
