"""Quadrature for the noise that a single score feels."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

MOST_NODES = 100


@lru_cache(maxsize=64)
def gauss_rule(dimension: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights that average polynomials in tau up to degree 2 nodes - 1."""
    return _product_rule(dimension, nodes, np.arange(1.0, nodes))


@lru_cache(maxsize=64)
def uniform_rule(dimension: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return half-widths and weights of uniform distributions that make up tau."""
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
    # Rounding aside, the rule is symmetric; a proof needs it to be so exactly.
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
        # Twice, for what rounding leaves of the earlier directions.
        for _ in range(2):
            fresh -= basis[:k].T @ (basis[:k] @ fresh)
        beside[k - 1] = np.linalg.norm(fresh)
        basis[k] = fresh / beside[k - 1]
    return beside
