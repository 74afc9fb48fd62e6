"""Minimise logistic and softmax losses, averaged over noise, to a tolerance fixed in advance."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special
from scipy.sparse.linalg import LinearOperator, cg

from dpnotes._checks import check_epsilon

_HALVINGS = 40
_BLOCK = 1 << 15  # probabilities at a time: a quarter of a megabyte stays in the cache

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def without_noise(scores: NDArray) -> Pair:
    """Return the probability of every score, and its slope."""
    likely = special.expit(scores)
    return likely, likely * (1 - likely)


def over_points(shifts: NDArray, weights: NDArray) -> Callable[[NDArray], Pair]:
    """Return a function that averages probabilities and slopes over shifts (n, R) of the scores."""

    def average(scores: NDArray) -> Pair:
        likely, squares = np.empty_like(scores), np.empty_like(scores)
        for part in _blocks(*shifts.shape):
            p = 1 / (1 + np.exp(-(shifts[part] + scores[part, np.newaxis])))
            likely[part], squares[part] = p @ weights, p**2 @ weights
        return likely, likely - squares

    return average


def over_intervals(half_widths: NDArray, weights: NDArray) -> Callable[[NDArray], Pair]:
    """Return the same over intervals around the scores, with half-widths (n, R)."""

    def average(scores: NDArray) -> Pair:
        likely, slopes = np.empty_like(scores), np.empty_like(scores)
        for part in _blocks(*half_widths.shape):
            found = mean_over_interval(scores[part, np.newaxis], half_widths[part])
            likely[part], slopes[part] = (each @ weights for each in found)
        return likely, slopes

    return average


@np.errstate(over="ignore", under="ignore")
def mean_over_interval(scores: NDArray, half_widths: NDArray) -> Pair:
    """Return the means of the probability and of its slope over scores within a half-width.

    The mean of the sigmoid sig over [s - c, s + c] is (f(s + c) - f(s - c)) / 2c with
    f(x) = log(1 + e^x). For a narrow interval the difference would lose its digits, so there it is
    computed as log(1 + sig(s - c) (e^2c - 1)) / 2c. All is computed for s <= 0 and reflected for
    s > 0.
    """
    half = np.maximum(half_widths, 1e-300)
    below = -np.abs(scores)
    left, right = np.exp(below - half), np.exp(-np.abs(below + half))
    low, high = left / (1 + left), np.where(below + half > 0, 1, right) / (1 + right)
    if half.max(initial=0.0) < 1:
        mean = np.log1p(low * np.expm1(2 * half))
    else:
        mean = np.maximum(below + half, 0) + np.log1p(right) - np.log1p(left)
        if half.min() < 1:
            mean = np.where(half < 1, np.log1p(low * np.expm1(2 * np.minimum(half, 1))), mean)
    mean /= 2 * half
    centre = special.expit(below)
    slope = np.where(half < 1e-4, centre * (1 - centre), (high - low) / (2 * half))
    return np.where(scores > 0, 1 - mean, mean), slope


def _blocks(rows: int, columns: int) -> list[slice]:
    size = max(1, _BLOCK // columns)
    return [slice(start, start + size) for start in range(0, rows, size)]


class Binary:
    """The mean logistic loss of one score, averaged over noise, with its regulariser."""

    def __init__(
        self,
        rows: NDArray,
        targets: NDArray,
        strength: float,
        longest: float,
        average: Callable[[NDArray], Pair] = without_noise,
    ) -> None:
        self.rows, self.targets, self.strength, self.average = rows, targets, strength, average
        self.smoothness = longest**2 / 4 + strength
        self.start = np.zeros(rows.shape[1])

    def slope(self, point: NDArray) -> Pair:
        """Return the gradient, and the curvature of each record's loss in its score."""
        scores = self.rows @ point
        likely, curvature = self.average(scores)
        gradient = self.rows.T @ (likely - self.targets) / len(scores) + self.strength * point
        return gradient, curvature

    def newton(self, gradient: NDArray, curvature: NDArray) -> NDArray[np.float64] | None:
        """Return the Newton step, or None if rounding makes the Hessian singular."""
        hessian = _weighted_gram(self.rows, curvature)
        hessian[np.diag_indices_from(hessian)] += self.strength
        return _newton_step(hessian, gradient)


class Softmax:
    """The mean loss of softmax, averaged over shifts, with its regulariser; weights are flat."""

    def __init__(
        self,
        rows: NDArray,
        targets: NDArray,
        strength: float,
        longest: float,
        shifts: NDArray | None = None,
    ) -> None:
        n, classes = targets.shape
        self.rows, self.targets, self.strength = rows, targets, strength
        self.shifts = np.zeros((n, 1, classes)) if shifts is None else shifts
        self.smoothness = longest**2 / 2 + strength
        self.start = np.zeros(classes * rows.shape[1])

    def slope(self, point: NDArray) -> Pair:
        """Return the gradient, and the curvature (n, K, K) of each record's loss in its scores."""
        n, classes = self.targets.shape
        scores = self.rows @ point.reshape(classes, -1).T
        likely, curvature = np.empty((n, classes)), np.empty((n, classes, classes))
        draws = self.shifts.shape[1]
        for part in _blocks(n, draws * classes):
            p = special.softmax(self.shifts[part] + scores[part, np.newaxis], axis=2)
            likely[part] = p.mean(axis=1)
            np.matmul(p.transpose(0, 2, 1), p / -draws, out=curvature[part])
        diagonal = np.arange(classes)
        curvature[:, diagonal, diagonal] += likely
        gradient = (likely - self.targets).T @ self.rows / n
        return gradient.ravel() + self.strength * point, curvature

    def newton(self, gradient: NDArray, curvature: NDArray) -> NDArray[np.float64] | None:
        """Return the Newton step, approximately by conjugate gradients; None as in `Binary`."""
        n, classes = self.targets.shape

        def times_hessian(vector: NDArray) -> NDArray[np.float64]:
            moved = self.rows @ vector.reshape(classes, -1).T
            bent = np.einsum("njk,nk->nj", curvature, moved)
            return (bent.T @ self.rows).ravel() / n + self.strength * vector

        hessian = LinearOperator((gradient.size,) * 2, times_hessian, dtype=float)
        step, failed = cg(hessian, -gradient, rtol=1e-3, atol=0.0, maxiter=200)
        return _newton_step(self._hessian(curvature), gradient) if failed else step

    def _hessian(self, curvature: NDArray) -> NDArray[np.float64]:
        classes = self.targets.shape[1]
        d = self.rows.shape[1]
        hessian = np.empty((classes, d, classes, d))
        for j, k in np.ndindex(classes, classes):
            hessian[j, :, k] = _weighted_gram(self.rows, curvature[:, j, k])
        hessian = hessian.reshape(classes * d, -1)
        hessian[np.diag_indices_from(hessian)] += self.strength
        return hessian


def _weighted_gram(rows: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """Return the weighted mean of each row's outer product with itself."""
    return (rows.T * (weights / len(rows))) @ rows


def _newton_step(hessian: NDArray, gradient: NDArray) -> NDArray[np.float64] | None:
    """Return the Newton step, or None if rounding makes the Hessian singular."""
    try:
        factor = linalg.cho_factor(hessian, check_finite=False)
    except linalg.LinAlgError:
        return None
    return -linalg.cho_solve(factor, gradient, check_finite=False)


# A warning would reveal something about the records. An infinite exponential is a probability of 0.
@np.errstate(all="ignore")
def solve(problem: Binary | Softmax, tolerance: float) -> NDArray[np.float64]:
    """Return a point whose gradient norm is at most `tolerance`, rounding included.

    Newton steps are accepted if they shorten the gradient, which is possible everywhere except at
    the optimum. If rounding prevents that, gradient descent continues: with a step of
    1 / smoothness it converges from every point, because `tolerance` is at least eight times the
    rounding error of a gradient.
    """
    goal, point = 0.875 * tolerance, problem.start
    gradient, curvature = problem.slope(point)
    while not np.linalg.norm(gradient) <= goal:
        taken = _shorten_gradient(problem, point, gradient, curvature)
        if taken is None:
            break
        point, gradient, curvature = taken
    while not np.linalg.norm(gradient) <= goal:
        point = point - gradient / problem.smoothness
        gradient, _ = problem.slope(point)
    return point


def _shorten_gradient(
    problem: Binary | Softmax, point: NDArray, gradient: NDArray, curvature: NDArray
) -> tuple[NDArray, NDArray, NDArray] | None:
    """Take the Newton step, halved until it shortens the gradient; return None if none does."""
    step = problem.newton(gradient, curvature)
    if step is None:
        return None
    length = np.linalg.norm(gradient)
    for fraction in 0.5 ** np.arange(_HALVINGS):
        moved = point + fraction * step
        gradient, curvature = problem.slope(moved)
        if np.linalg.norm(gradient) <= (1 - 0.1 * fraction) * length:
            return moved, gradient, curvature
    return None


def least_tolerance(lipschitz: float, strength: float, shape: tuple[int, int], draws: int) -> float:
    """Return eight times a bound on the rounding error of the gradient at a near-optimal point.

    The terms bound, in this order, the error of the sums over records and over draws, of the
    functions of a score, and of the score itself: it is a sum over `shape[1]` weights whose norm is
    at most rho / lambda, and the slope changes by at most rho times the error of the score.
    """
    terms = shape[0] + draws + 16 + shape[1] * (1 + lipschitz**2 / strength)
    return 8 * np.finfo(float).eps * lipschitz * terms


def reachable_tolerance(asked: float | None, default: float, least: float) -> float:
    """Return the tolerance asked for, refusing one below `least`; or a default of at least that."""
    if asked is None:
        return max(default, least)
    asked = check_epsilon(asked, "gradient_tolerance")
    if asked < least:
        raise ValueError(
            f"gradient_tolerance must be at least {least:.3g}, which doubles reach, got {asked}"
        )
    return asked
