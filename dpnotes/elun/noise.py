"""Noise on weights, and its projection on a single score.

Noise with density proportional to exp(-||z||_2 / b) is epsilon-differentially private for weights
that move by at most b epsilon (Chaudhuri, Monteleoni and Sarwate, 2011). It changes the score of a
row x by a single number, which is distributed as b ||x||_2 tau; tau depends on the dimension only.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dpnotes._checks import as_numbers, check_choice, check_integer, check_real, check_rng

NOISES = ("l2", "coordinate")
MOST_NODES = 100


def l2_laplace_noise(
    dimension: int,
    scale: float,
    *,
    size: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.float64]:
    """Draw noise with density proportional to exp(-||z||_2 / scale).

    Parameters
    ----------
    dimension : int
        The number of weights d, at least 1.
    scale : float
        The sensitivity in the 2-norm over epsilon, positive and at most 1e200.
    size : int, optional
        How many independent vectors. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (dimension,) or (size, dimension)
        Noise, in the unit of the weights. Its mean norm is ``dimension * scale``.

    Notes
    -----
    The norm follows Gamma(d, scale) and the direction is uniform. The draws are doubles, so the
    density holds up to rounding only; see Mironov (2012) for what the last bits can reveal.

    Examples
    --------
    >>> l2_laplace_noise(3, 0.5, size=2, rng=0).shape
    (2, 3)
    """
    dimension, scale, count = _check_noise(dimension, scale, size)
    rng = check_rng(rng)
    directions = rng.standard_normal((count, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    noise = scale * rng.standard_gamma(dimension, size=(count, 1)) * directions
    return noise[0] if size is None else noise


def coordinate_laplace_noise(
    dimension: int,
    scale: float,
    *,
    size: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.float64]:
    """Draw independent Laplace noise for every weight, calibrated to a bound in the 2-norm.

    Parameters
    ----------
    dimension : int
        The number of weights d, at least 1.
    scale : float
        The sensitivity in the 2-norm over epsilon, as for `l2_laplace_noise`. The factor sqrt(d)
        that independent noise needs is applied here.
    size : int, optional
        How many independent vectors. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ndarray of shape (dimension,) or (size, dimension)
        Noise, in the unit of the weights; each coordinate has the scale ``sqrt(d) * scale``.

    Notes
    -----
    The cost of independent Laplace noise depends on the distance in the 1-norm, which may be
    sqrt(d) times that in the 2-norm. Without the factor the release costs up to sqrt(d) epsilon.
    With it the norm of the noise is about sqrt(2) times that of `l2_laplace_noise`.

    Examples
    --------
    >>> coordinate_laplace_noise(3, 0.5, rng=0).shape
    (3,)
    """
    dimension, scale, count = _check_noise(dimension, scale, size)
    rng = check_rng(rng)
    noise = rng.laplace(scale=math.sqrt(dimension) * scale, size=(count, dimension))
    return noise[0] if size is None else noise


@np.errstate(over="ignore")
def log_density(
    output: ArrayLike, centre: ArrayLike, scale: float, *, noise: str = "l2"
) -> float | NDArray[np.float64]:
    """Return the exact log-density of released weights around the optimum.

    Parameters
    ----------
    output : array_like of shape (..., d)
        Released weights.
    centre : array_like of shape (d,)
        The weights before noise, which depend on the data set.
    scale : float
        The sensitivity in the 2-norm over epsilon, positive and at most 1e200.
    noise : {"l2", "coordinate"}
        `l2_laplace_noise` or `coordinate_laplace_noise`.

    Returns
    -------
    float or ndarray of shape (...)
        Natural logarithms of densities; minus infinity on overflow.

    Notes
    -----
    With S the area of the unit sphere, 2 pi^(d/2) / Gamma(d/2), the densities are
    exp(-||z||_2 / b) / (b^d Gamma(d) S) and exp(-||z||_1 / c) / (2 c)^d with c = sqrt(d) b.

    Examples
    --------
    >>> closer = log_density([0.0], [1.0], 1.0)
    >>> float(closer - log_density([0.0], [3.0], 1.0))
    2.0
    """
    check_choice("noise", noise, NOISES)
    scale = _check_scale(scale)
    centre, output = check_numbers("centre", centre), check_numbers("output", output)
    if centre.ndim != 1 or centre.size == 0:
        raise ValueError(f"centre must be one-dimensional and not empty, got shape {centre.shape}")
    if output.shape[-1:] != centre.shape:
        raise ValueError(f"output must have rows of {centre.size}, got shape {output.shape}")
    d, apart = centre.size, output - centre
    if noise == "coordinate":
        width = math.sqrt(d) * scale
        found = -np.abs(apart).sum(axis=-1) / width - d * math.log(2 * width)
    else:
        area = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        volume = d * math.log(scale) + math.lgamma(d) + area
        found = -np.linalg.norm(apart, axis=-1) / scale - volume
    return float(found) if output.ndim == 1 else found


def projected_noise(
    dimension: int, nodes: int = 50
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a Gauss rule for the projection of the noise on a single score.

    Parameters
    ----------
    dimension : int
        The number of weights d, at least 1.
    nodes : int
        The number of points, from 1 to 100. The rule is exact for polynomials up to degree
        2 nodes - 1.

    Returns
    -------
    points, weights : ndarray of shape (nodes,)
        Points of tau, in ascending order, and their weights, which sum to 1.

    Notes
    -----
    Noise z of `l2_laplace_noise` with scale b moves the score of a row x by z.x, which is
    distributed as b ||x|| tau. The density of tau is proportional to t^(d/2) K_(d/2)(t) at
    t = abs(tau), with K the modified Bessel function, and its variance is d + 1. So an integral
    over d weights reduces to one over a line. tau is distributed as sqrt(2 G) Z with G from
    Gamma((d + 1) / 2) and Z normal; the Lanczos algorithm reduces a product rule for these two to a
    Gauss rule for tau (Golub and Welsch, 1969).

    Examples
    --------
    >>> points, weights = projected_noise(7)
    >>> round(float(weights @ points**2), 9)
    8.0
    """
    dimension = check_integer("dimension", dimension, low=1)
    nodes = check_integer("nodes", nodes, low=1, high=MOST_NODES)
    return _product_rule(dimension, nodes, np.arange(1.0, nodes))


def uniform_mixture(
    dimension: int, nodes: int = 50
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the projection of the noise on a single score as a mixture of uniform distributions.

    Parameters
    ----------
    dimension : int
        The number of weights d, at least 1.
    nodes : int
        Twice the number of parts, from 1 to 100; an odd number adds a part of width 0. The mixture
        is exact for polynomials up to degree 2 nodes - 1.

    Returns
    -------
    half_widths, weights : ndarray of shape (ceil(nodes / 2),)
        Part k is uniform on [-half_widths[k], half_widths[k]]; the weights sum to 1.

    Notes
    -----
    tau, as in `projected_noise`, is sqrt(2 G) Z with Z normal. A normal Z is V U with U uniform on
    [-1, 1] and V^2 from a chi-square distribution with 3 degrees of freedom. So tau is C U with
    C = sqrt(2 G) V, and only C needs a Gauss rule. However few its nodes, such a mixture is
    symmetric and unimodal, unlike a set of points; `logistic_sensitivity` requires this.

    Examples
    --------
    >>> half_widths, weights = uniform_mixture(7)
    >>> round(float(weights @ half_widths**2 / 3), 9)
    8.0
    """
    dimension = check_integer("dimension", dimension, low=1)
    nodes = check_integer("nodes", nodes, low=1, high=MOST_NODES)
    half_widths, weights = uniform_rule(dimension, nodes)
    return half_widths.copy(), weights.copy()


def _check_noise(dimension: int, scale: float, size: int | None) -> tuple[int, float, int]:
    dimension = check_integer("dimension", dimension, low=1)
    count = 1 if size is None else check_integer("size", size, low=0)
    if dimension * count > 2**40:
        raise ValueError(
            f"size must give at most 2**40 numbers in all, got {count} vectors of {dimension}"
        )
    return dimension, _check_scale(scale), count


def _check_scale(scale: float) -> float:
    """Return a scale whose noise stays finite, also when it is added to weights."""
    allowed = "a positive number up to 1e200"
    return check_real("scale", scale, low=0.0, low_open=True, high=1e200, allowed=allowed)


def check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite numbers as an array of floats."""
    numbers = as_numbers(name, values, with_booleans=True)
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} must be finite")
    return numbers


@lru_cache(maxsize=64)
def uniform_rule(dimension: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the half-widths and weights of the uniform mixture for tau."""
    # The signed square root of a chi-square variable with 3 degrees of freedom.
    order = np.arange(1.0, nodes)
    points, weights = _product_rule(dimension, nodes, order + 2 * (order % 2))
    half = nodes // 2
    weights = weights[half:] * np.where(points[half:] > 0, 2.0, 1.0)
    return points[half:], weights / weights.sum()


def _product_rule(
    dimension: int, nodes: int, squares: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a Gauss rule for sqrt(2 G) times a symmetric variable, given by its recurrence."""
    order = np.arange(nodes // 2 + 1)
    shape = (dimension - 1) / 2
    gammas, gamma_weights = _golub_welsch(
        2 * order + 1 + shape, np.sqrt(order[1:] * (order[1:] + shape))
    )
    normals, normal_weights = _golub_welsch(np.zeros(nodes), np.sqrt(squares))
    points = np.outer(np.sqrt(2 * np.maximum(gammas, 0)), normals).ravel()
    masses = np.outer(gamma_weights, normal_weights).ravel()
    points, weights = _golub_welsch(np.zeros(nodes), _lanczos(points, masses, nodes))
    # The rule is symmetric up to rounding. Make it exactly so, because the proof requires it.
    return (points - points[::-1]) / 2, (weights + weights[::-1]) / 2


def _golub_welsch(
    diagonal: NDArray, beside: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Gauss rule of a distribution from the recurrence of its orthogonal polynomials."""
    points, vectors = linalg.eigh_tridiagonal(diagonal, beside)
    weights = vectors[0] ** 2
    return points, weights / weights.sum()


def _lanczos(points: NDArray, masses: NDArray, nodes: int) -> NDArray[np.float64]:
    """Return the recurrence coefficients beside the diagonal of a symmetric distribution."""
    basis = np.zeros((nodes, points.size))
    basis[0] = np.sqrt(masses / masses.sum())
    beside = np.empty(nodes - 1)
    for k in range(1, nodes):
        fresh = points * basis[k - 1]
        # Orthogonalise twice, because rounding leaves components along earlier vectors.
        for _ in range(2):
            fresh -= basis[:k].T @ (basis[:k] @ fresh)
        beside[k - 1] = np.linalg.norm(fresh)
        basis[k] = fresh / beside[k - 1]
    return beside
