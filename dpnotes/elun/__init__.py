"""ELUN: train a model for the noise that privacy is going to add to it.

Output perturbation fits a model, then adds noise to its weights (Chaudhuri, Monteleoni and Sarwate,
2011). The expected loss under noise, ELUN, fits the weights that are best *after* the noise. For a
linear score both are private at one and the same noise: an average of convex, rho-Lipschitz losses
is convex and rho-Lipschitz, so the optimum moves as little when one record is replaced,

    ||w(D) - w(D')||_2 <= (2 / lambda) (rho / n + tau),

with rho the longest row, lambda the regularization and tau the gradient norm at which the solver
stops. Noise with density proportional to exp(-||z||_2 / b) and b that bound over epsilon is
epsilon-differentially private.

Three averages of the noise agree: over fixed draws, over Gauss points of the noise projected on a
row, and in closed form in one dimension. scikit-learn lends the estimator its manners; it comes
with ``pip install dpnotes[train]``.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpnotes._checks import (
    as_array,
    check_choice,
    check_epsilon,
    check_integer,
    check_real,
    kind_of,
)

OBJECTIVES = ("elun", "erm")
EXPECTATIONS = ("draws", "quadrature")
MULTI_CLASS = ("softmax", "one-vs-rest")
NOISES = ("l2", "coordinate")

_MOST_NODES = 100
_HALVINGS = 40
_BLOCK = 1 << 15  # probabilities at a time: a quarter of a megabyte stays in the cache
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
        The gradient norm tau up to which the optimum was found; at least 0.

    Returns
    -------
    float
        A distance between weights, in the 2-norm.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    At the optimum of one data set the gradient on its neighbour is at most 2 rho / n long, since
    only one of the n losses differs. Two points whose gradients are tau and tau + 2 rho / n long
    are at most (2 tau + 2 rho / n) / lambda apart, by strong convexity (Chaudhuri, Monteleoni and
    Sarwate, 2011; Wu et al., 2017, for a tolerance of 0).

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
    return 2 * (rho / n + tolerance) / strength


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
        The sensitivity in the 2-norm over epsilon, positive and finite.
    size : int, optional
        How many independent vectors. By default a single one.
    rng : Generator, int or None
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    ndarray of shape (dimension,) or (size, dimension)
        Noise, in the unit of the weights. Its mean norm is ``dimension * scale``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The norm has the law Gamma(d, scale) and the direction is uniform. The draws are doubles, so
    the density is that of the real numbers up to rounding; see Mironov (2012) for what a reader of
    the last bits could learn.

    Examples
    --------
    >>> l2_laplace_noise(3, 0.5, size=2, rng=0).shape
    (2, 3)
    """
    dimension, scale, count = _check_noise(dimension, scale, size)
    rng = np.random.default_rng(rng)
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
    """Draw independent Laplace noise for every weight, wide enough for a bound in the 2-norm.

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
        Where the randomness comes from, as in `numpy.random.default_rng`.

    Returns
    -------
    ndarray of shape (dimension,) or (size, dimension)
        Noise, in the unit of the weights; each coordinate has the scale ``sqrt(d) * scale``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    Independent noise protects a distance in the 1-norm, and that may be sqrt(d) times the one in
    the 2-norm. Without the factor the release costs up to sqrt(d) epsilon. With it the noise is
    about sqrt(2) times longer than that of `l2_laplace_noise`.

    Examples
    --------
    >>> coordinate_laplace_noise(3, 0.5, rng=0).shape
    (3,)
    """
    dimension, scale, count = _check_noise(dimension, scale, size)
    rng = np.random.default_rng(rng)
    noise = rng.laplace(scale=math.sqrt(dimension) * scale, size=(count, dimension))
    return noise[0] if size is None else noise


def log_density(
    output: ArrayLike, centre: ArrayLike, scale: float, *, noise: str = "l2"
) -> float | NDArray[np.float64]:
    """Return the exact log-density of released weights around the optimum.

    Parameters
    ----------
    output : array_like of shape (..., d)
        Released weights.
    centre : array_like of shape (d,)
        The weights before noise: what a data set decides.
    scale : float
        The sensitivity in the 2-norm over epsilon, positive and finite.
    noise : {"l2", "coordinate"}
        Whose noise: `l2_laplace_noise` or `coordinate_laplace_noise`.

    Returns
    -------
    float or ndarray of shape (...)
        Natural logarithms of densities.

    Raises
    ------
    ValueError, TypeError
        If the shapes do not fit, or an entry or a parameter is out of range or of the wrong kind.

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
    scale = check_epsilon(scale, "scale")
    centre, output = _check_numbers("centre", centre), _check_numbers("output", output)
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


def expected_logistic_loss(margin: ArrayLike, noise_scale: ArrayLike) -> NDArray[np.float64]:
    """Return the expected logistic loss of a margin with Laplace noise, in closed form.

    Parameters
    ----------
    margin : array_like of floats
        Label times score, finite.
    noise_scale : array_like of floats
        The scale of the Laplace noise on the margin, at least 0 and finite; for noise of scale b
        on a single weight it is ``b * abs(x)``. Its shape broadcasts against that of `margin`.

    Returns
    -------
    ndarray of the common shape
        Losses, in nats.

    Raises
    ------
    ValueError, TypeError
        If an argument does not hold finite numbers, or a scale is negative.

    Notes
    -----
    With margin t, scale s and F(u) = 2F1(1, 1/s; 1 + 1/s; u), the loss is log(1 + e^-t) plus the
    penalty (s / 2) (F(-e^t) + F(-e^-t) - 1). The penalty is even in t: it does not see the label.
    Its alternating series is summed as Cohen, Rodriguez Villegas and Zagier (2000) do, which has
    the precision of doubles where the hypergeometric function of scipy loses all digits.

    Examples
    --------
    >>> round(float(expected_logistic_loss(0.0, 1.0)), 12) == round(2 * math.log(2) - 0.5, 12)
    True
    """
    margin, scale = _check_numbers("margin", margin), _check_numbers("noise_scale", noise_scale)
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


def projected_noise(
    dimension: int, nodes: int = 50
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss points and weights for the noise that a single score feels.

    Parameters
    ----------
    dimension : int
        The number of weights d, at least 1.
    nodes : int
        The number of points, from 1 to 100. Polynomials up to degree 2 nodes - 1 are averaged
        exactly.

    Returns
    -------
    points, weights : ndarray of shape (nodes,)
        Points of tau, in rising order, and their weights, which sum to 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    Noise z of `l2_laplace_noise` with scale b moves the score of a row x by z.x, which has the law
    of b ||x|| tau. The density of tau is proportional to t^(d/2) K_(d/2)(t) at t = abs(tau), with
    K the modified Bessel function, and its variance is d + 1. So the integral over d weights is one
    over a line. tau is sqrt(2 G) Z with G of the law Gamma((d + 1) / 2) and Z normal; a product
    rule for those two is condensed by the Lanczos algorithm (Golub and Welsch, 1969).

    Examples
    --------
    >>> points, weights = projected_noise(7)
    >>> round(float(weights @ points**2), 9)
    8.0
    """
    dimension = check_integer("dimension", dimension, low=1)
    nodes = check_integer("nodes", nodes, low=1, high=_MOST_NODES)
    points, weights = _gauss_rule(dimension, nodes)
    return points.copy(), weights.copy()


def averaged_logistic_loss(
    margin: ArrayLike, shifts: ArrayLike, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the logistic loss of margins, averaged over shifts that noise gives them.

    Parameters
    ----------
    margin : array_like of floats, shape (...)
        Label times score.
    shifts : array_like of floats, shape (..., R)
        What each of R draws adds to the margin: the last axis is averaged. The law of the noise is
        symmetric, so the label may be left out.
    weights : array_like of floats, shape (R,), optional
        How much each shift counts; not negative, with sum 1. By default all count alike.

    Returns
    -------
    ndarray of shape (...)
        Losses, in nats.

    Raises
    ------
    ValueError, TypeError
        If an argument does not hold finite numbers, or the weights are no weights of the shifts.

    Notes
    -----
    With ``shifts = rows @ noise.T`` this is Algorithm 2 of the chapter's source; with
    ``shifts = b * norms[:, None] * points`` and the weights of `projected_noise` it is Gauss
    quadrature, in any dimension.

    Examples
    --------
    >>> points, weights = projected_noise(1)
    >>> round(float(averaged_logistic_loss(0.0, points, weights)), 3)
    0.886
    """
    margin, shifts = _check_numbers("margin", margin), _check_numbers("shifts", shifts)
    weights = _check_weights(shifts, weights)
    _check_broadcast("shifts", shifts.shape, (*margin.shape, 1))
    return np.logaddexp(0.0, -(margin[..., np.newaxis] + shifts)) @ weights


def clip_rows(features: ArrayLike, lipschitz: float, *, bias: bool = True) -> NDArray[np.float64]:
    """Return rows, with a 1 at the end for the bias, scaled down to a bounded 2-norm.

    Parameters
    ----------
    features : array_like of shape (n, p)
        One record a row; finite numbers, of any size.
    lipschitz : float
        The longest that a row may be, bias included; positive.
    bias : bool
        Whether a feature that is always 1 is appended before clipping.

    Returns
    -------
    ndarray of shape (n, p + 1), or (n, p) without bias
        A row that is short enough is kept as it is. Another one keeps its direction, so that the
        sign of its score stays what it was.

    Raises
    ------
    ValueError, TypeError
        If the features are not finite numbers in two dimensions, or a parameter is invalid.

    Examples
    --------
    >>> clip_rows([[0.5], [1e300]], 2.0).round(3)
    array([[0.5, 1. ],
           [2. , 0. ]])
    """
    lipschitz = _check_size("lipschitz", lipschitz)
    features = _check_numbers("features", features)
    if features.ndim != 2:
        raise ValueError(f"features must be two-dimensional, got shape {features.shape}")
    return _clip(features, lipschitz, _check_flag("bias", bias))


def minimize_loss(
    rows: ArrayLike,
    labels: ArrayLike,
    regularization: float,
    *,
    shifts: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    gradient_tolerance: float | None = None,
) -> NDArray[np.float64]:
    """Fit weights without privacy: minimise the mean logistic loss, or its average under noise.

    Parameters
    ----------
    rows : array_like of shape (n, d)
        One record a row, the bias included if there is one; finite.
    labels : array_like of int in {-1, +1}, shape (n,)
        The true labels.
    regularization : float
        The factor lambda of ||w||^2 / 2, positive.
    shifts : array_like of floats, shape (n, R), optional
        What each draw of the noise adds to each score, as in `averaged_logistic_loss`. By default
        there is no noise.
    weights : array_like of floats, shape (R,), optional
        How much each shift counts. By default all count alike.
    gradient_tolerance : float, optional
        The largest gradient norm at the weights returned. By default what doubles can promise.

    Returns
    -------
    ndarray of shape (d,)
        The weights. They are **not** private.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, of the wrong kind, or does not fit the others; or if no
        double reaches the tolerance.

    Notes
    -----
    Newton's method on the gradient norm; a few milliseconds for thousands of records.

    Examples
    --------
    >>> minimize_loss([[1.0], [1.0], [-1.0]], [1, 1, -1], 0.1).round(4)
    array([1.6335])
    """
    rows = _check_numbers("rows", rows)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"rows must be two-dimensional and not empty, got shape {rows.shape}")
    strength = _check_size("regularization", regularization)
    targets = _check_signs(labels, len(rows)) > 0
    if shifts is None:
        shifts, weights = None, None
    else:
        shifts = _check_numbers("shifts", shifts)
        if shifts.ndim != 2 or len(shifts) != len(rows):
            raise ValueError(f"shifts must have shape (n, R), got {shifts.shape}")
        weights = _check_weights(shifts, weights)
    longest = float(np.linalg.norm(rows, axis=1).max())
    draws = 0 if shifts is None else shifts.shape[1]
    least = _least_tolerance(longest, strength, rows.shape, draws)
    tolerance = _tolerance(gradient_tolerance, 0.0, least)
    return _solve(
        _Binary(rows, targets.astype(float), strength, longest, shifts, weights), tolerance
    )


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a model says of its privacy, all of it a function of public facts.

    Parameters
    ----------
    epsilon : float
        The privacy loss of the released weights, all models together, in nats.
    delta : float
        The probability with which the loss may be larger: 0.
    mechanism : str
        How the noise was made, in words.
    spent_on : str
        What epsilon paid for, in words.
    neighbours : str
        Which two data sets the promise compares, in words.
    n : int
        The public number of records.
    models : int
        How many noise vectors were drawn, each at epsilon / models.
    dimension : int
        The number of weights of each noise vector.
    lipschitz : float
        The Lipschitz constant of one record's loss.
    regularization : float
        The strong convexity of the objective.
    gradient_tolerance : float
        The gradient norm, rounding included, that is charged for.
    sensitivity : float
        How far the optimum of one model can move.
    noise_scale : float
        The scale of `l2_laplace_noise`: sensitivity * models / epsilon.

    Examples
    --------
    >>> guarantee = PrivateLogisticRegression(1.0).guarantee(n=1000, features=4)
    >>> guarantee.epsilon, guarantee.dimension, round(guarantee.noise_scale, 4)
    (1.0, 5, 0.08)
    """

    epsilon: float
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str
    spent_on: str
    neighbours: str
    n: int
    models: int
    dimension: int
    lipschitz: float
    regularization: float
    gradient_tolerance: float
    sensitivity: float
    noise_scale: float


class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression whose weights are differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy loss of one `fit`, positive and finite.
    objective : {"elun", "erm"}
        "elun" minimises the expected loss under the noise to come. "erm" minimises the loss
        itself: output perturbation.
    regularization : float
        The factor lambda of ||w||^2 / 2; the bias is regularised too.
    lipschitz : float
        Each row is clipped to this 2-norm, bias included. A public number: one read off the data
        is not covered by epsilon.
    draws : int
        How many draws, or quadrature points, stand for the noise in "elun".
    expectation : {"draws", "quadrature"}
        Fixed random draws, as in the source's Algorithm 2, or Gauss points of `projected_noise`;
        softmax has a score for every class and needs draws.
    classes : sequence of labels, or None
        All labels that can occur, a public list. With None they are read off the data: then
        neighbours are only protected if the same classes occur in both, and a warning says so.
    multi_class : {"softmax", "one-vs-rest"}
        With more than two classes: one softmax model, or a model for every class with its share of
        epsilon. Softmax needs less noise from three classes on.
    gradient_tolerance : float, optional
        The gradient norm that the solver must reach, charged in the sensitivity. By default a
        millionth of what one record can do.
    fit_intercept : bool
        Whether a bias is appended to every row before clipping.
    random_state : int or None
        A seed for the draws and the noise. Whoever knows it can subtract the noise: leave it None
        where privacy matters. A Generator is refused: a copy of it would repeat the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted.
    coef_ : ndarray of shape (1, p) for two classes, else (K, p)
        Private weights.
    intercept_ : ndarray of shape (1,) or (K,)
        Private biases; 0 without `fit_intercept`.
    privacy_ : Guarantee
        What was spent, on what, and under which neighbour relation.
    n_features_in_ : int
        The number of features p.

    Notes
    -----
    Whether `fit` succeeds depends on public facts and on each record by itself: parameters, shapes,
    types, every number finite, every label one of `classes`. A class that is absent, constant
    columns and rows of zeros are data like any other. The tolerance is reached on all of them:
    Newton's method, and if it stalls gradient descent, which cannot fail on a smooth and strongly
    convex function. Nothing else of the fit is kept, neither the number of its steps nor the
    weights before noise.

    The noise is made of doubles, as `l2_laplace_noise` says, and a fit takes as long as the data
    need: neither is hidden from somebody who reads the last bits or holds a stop watch. If
    lipschitz^2 / regularization is above 1e8 or so, a number that is public, some data need longer
    than anybody waits.

    Scores are taken from clipped rows, as in training. Clipping leaves a row's predicted class as
    it is, and moves its probabilities towards each other.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> model = PrivateLogisticRegression(1.0, random_state=0).fit(x, x[:, 0] > 0)
    >>> bool(model.score(x, x[:, 0] > 0) > 0.9)
    True
    >>> model.privacy_.neighbours
    'one of 2000 records replaced'
    """

    def __init__(
        self,
        epsilon: float,
        *,
        objective: str = "elun",
        regularization: float = 0.05,
        lipschitz: float = 2.0,
        draws: int = 50,
        expectation: str = "draws",
        classes: Sequence | None = (0, 1),
        multi_class: str = "softmax",
        gradient_tolerance: float | None = None,
        fit_intercept: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.objective = objective
        self.regularization = regularization
        self.lipschitz = lipschitz
        self.draws = draws
        self.expectation = expectation
        self.classes = classes
        self.multi_class = multi_class
        self.gradient_tolerance = gradient_tolerance
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit private weights; this spends epsilon.

        Parameters
        ----------
        X : array_like of shape (n, p)
            One record a row, finite numbers.
        y : array_like of shape (n,)
            Labels, all of them in `classes`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter, a shape, a type, or a record by itself is invalid.
        """
        return fit_many([self], X, y)[0]

    def guarantee(self, n: int, features: int) -> Guarantee:
        """Return what a fit on so many records will promise, before there are any.

        Parameters
        ----------
        n : int
            The public number of records.
        features : int
            The number of features, without the bias.

        Returns
        -------
        Guarantee

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range or of the wrong kind.
        """
        return _guarantee(self, n, features, _check_classes(self.classes).size)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of clipped rows: shape (n,) for two classes, else (n, K)."""
        check_is_fitted(self)
        features = _validated(self, X, reset=False)
        rows = _clip(features, float(self.lipschitz), self.fit_intercept)
        scores = rows[:, : features.shape[1]] @ self.coef_.T
        if self.fit_intercept:
            scores += rows[:, -1:] * self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the likeliest class of every row: shape (n,)."""
        scores = self.decision_function(X)
        return self.classes_[
            scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        ]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every class for every row: shape (n, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return special.expit(np.column_stack([-scores, scores]))
        if self.multi_class == "one-vs-rest":
            scores = special.log_expit(scores)
        return special.softmax(scores, axis=1)

    def __sklearn_tags__(self) -> Tags:
        """Say that noise may make a private model a poor one."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


def fit_many(
    models: Sequence[PrivateLogisticRegression], X: ArrayLike, y: ArrayLike
) -> list[PrivateLogisticRegression]:
    """Fit many models to one data set, and solve no problem twice.

    Parameters
    ----------
    models : sequence of PrivateLogisticRegression
        The models, which differ in any of their parameters. Each fit spends its epsilon: together
        they cost the sum.
    X : array_like of shape (n, p)
        One record a row, finite numbers.
    y : array_like of shape (n,)
        Labels.

    Returns
    -------
    list of PrivateLogisticRegression
        The same models, fitted as `fit` does it, with the same random numbers.

    Raises
    ------
    ValueError, TypeError
        As `fit` does.

    Notes
    -----
    Made for studies with many trials. The data are checked and clipped once. "erm" has an optimum
    that no epsilon and no seed moves, so a hundred trials at ten epsilons are one problem; "elun"
    by quadrature has one for each epsilon.

    Examples
    --------
    >>> x, y = np.array([[-1.0], [1.0], [2.0]]), [0, 1, 1]
    >>> models = [PrivateLogisticRegression(1.0, objective="erm") for trial in range(100)]
    >>> len({float(model.coef_[0, 0]) for model in fit_many(models, x, y)})
    100
    """
    models = list(models)
    if not all(isinstance(model, PrivateLogisticRegression) for model in models):
        raise TypeError("models must be PrivateLogisticRegression")
    if not models:
        return models
    features, labels = _validated(models[0], X, y)
    data = _Data(features, labels)
    for model in models:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(models[0], name):
                setattr(model, name, getattr(models[0], name))
        _fit(model, data)
    return models


def _fit(model: PrivateLogisticRegression, data: "_Data") -> None:
    """Fit one model to data that were checked."""
    classes = _classes_of(model, data.labels)
    promise = _guarantee(model, *data.features.shape, classes.size)
    seeds = np.random.SeedSequence(model.random_state).spawn(2)
    for_draws, for_release = map(np.random.default_rng, seeds)
    optimum = _optimum(model, promise, data, classes, for_draws)
    noise = l2_laplace_noise(
        promise.dimension, promise.noise_scale, size=promise.models, rng=for_release
    )
    released = (optimum + noise).reshape(1 if classes.size == 2 else classes.size, -1)
    p = data.features.shape[1]
    model.classes_, model.privacy_ = classes, promise
    model.coef_ = released[:, :p]
    model.intercept_ = released[:, p] if model.fit_intercept else np.zeros(len(released))


class _Data:
    """Checked records, and what has been worked out from them for the models so far."""

    def __init__(self, features: NDArray, labels: NDArray) -> None:
        self.features, self.labels = features, labels
        self._known: dict[tuple, NDArray] = {}

    def once(self, key: tuple, work: Callable[[], NDArray]) -> NDArray:
        """Return what is known under the key, and work it out the first time."""
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]

    def rows(self, lipschitz: float, bias: bool) -> NDArray[np.float64]:
        return self.once(("rows", lipschitz, bias), lambda: _clip(self.features, lipschitz, bias))

    def codes(self, classes: NDArray) -> NDArray[np.intp]:
        """Return the place of every label among the classes; one that has none is refused."""
        matches = np.broadcast_to(
            classes[:, np.newaxis] == self.labels, (classes.size, self.labels.size)
        )
        if not matches.any(axis=0).all():
            raise ValueError("y must hold labels that are in classes; a record does not")
        return matches.argmax(axis=0)


def _guarantee(model: PrivateLogisticRegression, n: int, features: int, classes: int) -> Guarantee:
    """Check the parameters of a model, and return what it promises."""
    epsilon = check_epsilon(model.epsilon)
    row = _check_size("lipschitz", model.lipschitz)
    strength = _check_size("regularization", model.regularization)
    n = check_integer("n", n, low=1)
    softmax = _check_words(model) == "softmax" and classes > 2
    draws = check_integer("draws", model.draws, low=1)
    if model.objective == "elun" and model.expectation == "quadrature":
        check_integer("draws", draws, low=1, high=_MOST_NODES)
        if softmax:
            raise ValueError("expectation must be 'draws' for softmax, got 'quadrature'")
    if model.random_state is not None:
        check_integer("random_state", model.random_state, low=0)
    dimension = check_integer("features", features, low=1)
    dimension += _check_flag("fit_intercept", model.fit_intercept)
    # The residual of softmax, p - e_y, has a norm of up to sqrt(2); that of one score up to 1.
    rho = math.sqrt(2) * row if softmax else row
    shape = n, dimension + (classes if softmax else 0)
    least = _least_tolerance(rho, strength, shape, draws)
    tolerance = _tolerance(model.gradient_tolerance, 1e-6 * rho / n, least)
    bound = sensitivity(rho, strength, n, gradient_tolerance=tolerance)
    models = 1 if softmax or classes == 2 else classes
    scale = bound * models / epsilon
    # Far below where doubles end: a draw, and its product with a row, must stay finite.
    if not scale <= 1e200:
        raise ValueError(f"epsilon must give noise of a scale up to 1e200, got {epsilon}")
    return Guarantee(
        epsilon,
        mechanism="noise on the weights with density proportional to exp(-||z||_2 / noise_scale)",
        spent_on=_SPENT_ON[model.objective] + (f", {models} times" if models > 1 else ""),
        neighbours=_neighbours(n, model.classes is None),
        n=n,
        models=models,
        dimension=dimension * (classes if softmax else 1),
        lipschitz=rho,
        regularization=strength,
        gradient_tolerance=tolerance,
        sensitivity=bound,
        noise_scale=scale,
    )


_SPENT_ON = {
    "elun": "the weights with the least expected loss under noise",
    "erm": "the weights with the least loss",
}


def _neighbours(n: int, classes_read: bool) -> str:
    replaced = f"one of {n} records replaced"
    return f"{replaced}, the same classes occurring" if classes_read else replaced


def _optimum(
    model: PrivateLogisticRegression,
    promise: Guarantee,
    data: _Data,
    classes: NDArray,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the weights before noise, a row for each noise vector."""
    row, bias = float(model.lipschitz), bool(model.fit_intercept)
    rows, codes = data.rows(row, bias), data.codes(classes)
    softmax = promise.dimension > rows.shape[1]
    # All that decides the problem, but for the noise that "elun" averages over.
    key = row, bias, promise.regularization, promise.gradient_tolerance, softmax, tuple(classes)

    def solve(shifts: NDArray | None, weights: NDArray | None) -> NDArray[np.float64]:
        options = promise.regularization, row, shifts, weights
        if softmax:
            targets = (codes[:, np.newaxis] == np.arange(classes.size)).astype(float)
            problems: list = [_Softmax(rows, targets, *options)]
        else:
            positives = [1] if classes.size == 2 else range(classes.size)
            problems = [_Binary(rows, (codes == k).astype(float), *options) for k in positives]
        return np.array([_solve(problem, promise.gradient_tolerance) for problem in problems])

    if model.objective == "erm":
        return data.once(key, lambda: solve(None, None))
    if model.expectation == "quadrature":
        points, weights = _gauss_rule(promise.dimension, model.draws)
        shifts = promise.noise_scale * np.linalg.norm(rows, axis=1)[:, np.newaxis] * points
        return data.once((*key, promise.noise_scale, model.draws), lambda: solve(shifts, weights))
    noise = l2_laplace_noise(promise.dimension, promise.noise_scale, size=model.draws, rng=rng)
    noise = noise.reshape(model.draws, -1, rows.shape[1])
    shifts = np.tensordot(rows, noise, (1, 2)) if softmax else rows @ noise[:, 0].T
    return solve(shifts, None)


class _Binary:
    """The mean logistic loss of one score, averaged over shifts, with its regulariser."""

    def __init__(
        self,
        rows: NDArray,
        targets: NDArray,
        strength: float,
        longest: float,
        shifts: NDArray | None,
        weights: NDArray | None,
    ) -> None:
        self.rows, self.targets, self.strength, self.shifts = rows, targets, strength, shifts
        if shifts is not None and weights is None:
            weights = np.full(shifts.shape[1], 1 / shifts.shape[1])
        self.weights = weights
        self.smoothness = longest**2 / 4 + strength
        self.start = np.zeros(rows.shape[1])

    def slope(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient, and the curvature of each record's loss in its score."""
        scores = self.rows @ point
        if self.shifts is None:
            likely = special.expit(scores)
            curvature = likely * (1 - likely)
        else:
            likely, curvature = self._averages(scores)
        gradient = self.rows.T @ (likely - self.targets) / len(scores) + self.strength * point
        return gradient, curvature

    def _averages(self, scores: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the averages of p and p (1 - p) over the shifts, block by block."""
        likely, squares = np.empty_like(scores), np.empty_like(scores)
        block = max(1, _BLOCK // self.shifts.shape[1])
        for start in range(0, len(scores), block):
            part = slice(start, start + block)
            p = self.shifts[part] + scores[part, np.newaxis]
            np.negative(p, out=p)
            np.exp(p, out=p)
            p += 1
            np.reciprocal(p, out=p)
            likely[part] = p @ self.weights
            p *= p
            squares[part] = p @ self.weights
        return likely, likely - squares

    def newton(self, gradient: NDArray, curvature: NDArray) -> NDArray[np.float64] | None:
        """Return the step to where the quadratic approximation is flat."""
        hessian = _weighted_gram(self.rows, curvature)
        hessian[np.diag_indices_from(hessian)] += self.strength
        return _newton_step(hessian, gradient)


class _Softmax:
    """The mean loss of softmax, averaged over shifts, with its regulariser; weights are flat."""

    def __init__(
        self,
        rows: NDArray,
        targets: NDArray,
        strength: float,
        longest: float,
        shifts: NDArray | None,
        weights: None,
    ) -> None:
        n, classes = targets.shape
        self.rows, self.targets, self.strength = rows, targets, strength
        self.shifts = np.zeros((n, 1, classes)) if shifts is None else shifts
        self.smoothness = longest**2 / 2 + strength
        self.start = np.zeros(classes * rows.shape[1])

    def slope(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient, and the curvature (n, K, K) of each record's loss in its scores."""
        n, classes = self.targets.shape
        scores = self.rows @ point.reshape(classes, -1).T
        likely, curvature = np.empty((n, classes)), np.empty((n, classes, classes))
        draws = self.shifts.shape[1]
        block = max(1, _BLOCK // (draws * classes))
        for start in range(0, n, block):
            part = slice(start, start + block)
            p = special.softmax(self.shifts[part] + scores[part, np.newaxis], axis=2)
            likely[part] = p.mean(axis=1)
            np.matmul(p.transpose(0, 2, 1), p / -draws, out=curvature[part])
        diagonal = np.arange(classes)
        curvature[:, diagonal, diagonal] += likely
        gradient = (likely - self.targets).T @ self.rows / n
        return gradient.ravel() + self.strength * point, curvature

    def newton(self, gradient: NDArray, curvature: NDArray) -> NDArray[np.float64] | None:
        """Return nearly the step to where the quadratic approximation is flat."""
        n, classes = self.targets.shape

        def times_hessian(vector: NDArray) -> NDArray[np.float64]:
            moved = self.rows @ vector.reshape(classes, -1).T
            bent = np.einsum("njk,nk->nj", curvature, moved)
            return (bent.T @ self.rows).ravel() / n + self.strength * vector

        step = _conjugate_gradients(times_hessian, -gradient)
        return step if step is not None else _newton_step(self._hessian(curvature), gradient)

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
    """Return the step to where the quadratic approximation is flat, if rounding leaves one."""
    try:
        factor = linalg.cho_factor(hessian, check_finite=False)
    except linalg.LinAlgError:
        return None
    return -linalg.cho_solve(factor, gradient, check_finite=False)


def _conjugate_gradients(
    times: Callable[[NDArray], NDArray], target: NDArray, *, steps: int = 200
) -> NDArray[np.float64] | None:
    """Solve a positive definite system to a thousandth of the target, or give up."""
    found = np.zeros_like(target)
    residual, direction = target.copy(), target.copy()
    length = residual @ residual
    goal = 1e-6 * length
    for _ in range(steps):
        if length <= goal:
            return found
        image = times(direction)
        step = length / (direction @ image)
        found += step * direction
        residual -= step * image
        length, previous = residual @ residual, length
        direction = residual + length / previous * direction
    return None


# A warning would tell of the records; an infinite exponential stands for a probability of 0.
@np.errstate(all="ignore")
def _solve(problem: _Binary | _Softmax, tolerance: float) -> NDArray[np.float64]:
    """Return a point whose gradient is at most `tolerance` long, rounding included.

    Newton steps are accepted if they shorten the gradient, which only the optimum cannot. If
    doubles stop them all the same, gradient descent goes on: with a step of 1 / smoothness it gets
    there from everywhere, as `tolerance` is at least eight times what rounding does to a gradient.
    """
    goal, point = 0.875 * tolerance, problem.start
    gradient, curvature = problem.slope(point)
    while not np.linalg.norm(gradient) <= goal:
        taken = _newton_progress(problem, point, gradient, curvature)
        if taken is None:
            break
        point, gradient, curvature = taken
    while not np.linalg.norm(gradient) <= goal:
        point = point - gradient / problem.smoothness
        gradient, _ = problem.slope(point)
    return point


def _newton_progress(
    problem: _Binary | _Softmax, point: NDArray, gradient: NDArray, curvature: NDArray
) -> tuple[NDArray, NDArray, NDArray] | None:
    """Go the Newton step, or the first of its halves, quarters, ... that shortens the gradient."""
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


def _least_tolerance(
    lipschitz: float, strength: float, shape: tuple[int, int], draws: int
) -> float:
    """Return eight times what rounding can do to the gradient at a point that is nearly optimal.

    The terms bound, in this order, the sums over records and over draws, the functions of a score,
    and the score itself: it is a sum over `shape[1]` weights, which are at most rho / lambda long
    together, and the slope changes by at most rho times the error of the score.
    """
    terms = shape[0] + draws + 16 + shape[1] * (1 + lipschitz**2 / strength)
    return 8 * np.finfo(float).eps * lipschitz * terms


def _tolerance(asked: float | None, default: float, least: float) -> float:
    """Return the tolerance asked for, or the default, if doubles can reach it."""
    if asked is None:
        return max(default, least)
    asked = check_epsilon(asked, "gradient_tolerance")
    if asked < least:
        raise ValueError(
            f"gradient_tolerance must be at least {least:.3g}, which doubles reach, got {asked}"
        )
    return asked


@np.errstate(over="ignore")
def _clip(features: NDArray, lipschitz: float, bias: bool) -> NDArray[np.float64]:
    """Return rows of bounded 2-norm; no square of a huge or a tiny number is ever taken."""
    ones = np.ones((len(features), 1 if bias else 0))
    rows = np.hstack([features, ones])
    largest = np.abs(rows).max(axis=1, initial=np.finfo(float).tiny, keepdims=True)
    unit = rows / largest
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    return np.where(norms > lipschitz / largest, unit * (lipschitz / np.maximum(norms, 1)), rows)


@lru_cache(maxsize=64)
def _gauss_rule(dimension: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights that average polynomials in tau up to degree 2 nodes - 1."""
    order = np.arange(nodes // 2 + 1)
    shape = (dimension - 1) / 2
    gammas, gamma_weights = _golub_welsch(
        2 * order + 1 + shape, np.sqrt(order[1:] * (order[1:] + shape))
    )
    normals, normal_weights = _golub_welsch(np.zeros(nodes), np.sqrt(np.arange(1, nodes)))
    points = np.outer(np.sqrt(2 * np.maximum(gammas, 0)), normals).ravel()
    masses = np.outer(gamma_weights, normal_weights).ravel()
    return _golub_welsch(np.zeros(nodes), _lanczos(points, masses, nodes))


def _golub_welsch(
    diagonal: NDArray, beside: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Gauss rule of a law from the recurrence of its orthogonal polynomials."""
    points, vectors = linalg.eigh_tridiagonal(diagonal, beside)
    weights = vectors[0] ** 2
    return points, weights / weights.sum()


def _lanczos(points: NDArray, masses: NDArray, nodes: int) -> NDArray[np.float64]:
    """Return the recurrence coefficients beside the diagonal, for a law symmetric about 0."""
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


@lru_cache(maxsize=1)
def _alternating_weights() -> tuple[float, ...]:
    """Return the factors of an alternating series that make its first terms its sum."""
    n = _ALTERNATING_TERMS
    d = ((3 + math.sqrt(8)) ** n + (3 - math.sqrt(8)) ** n) / 2
    b, c, factors = -1.0, -d, []
    for k in range(n):
        c = b - c
        factors.append(c / d)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1))
    return tuple(factors)


def _validated(
    model: PrivateLogisticRegression, X: ArrayLike, *y: ArrayLike, reset: bool = True
) -> Any:  # noqa: ANN401
    """Let scikit-learn check features and labels, but not quote a record."""
    array = _unquoted("X", X)
    if array.dtype.kind not in "biufc":
        _check_convertible(array)
    if array.ndim < 2:
        raise ValueError(
            f"X must be two-dimensional, got shape {array.shape}. Reshape your data, a record a row"
        )
    for labels in y:
        _unquoted("y", labels)
    return validate_data(model, X, *y, dtype=np.float64, reset=reset)


def _unquoted(name: str, values: ArrayLike) -> Any:  # noqa: ANN401
    """Return values as something with a type; complex ones scikit-learn would print in full."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    foreign = kind in "biufc" and not isinstance(values, np.ndarray)
    array = values if foreign else as_array(name, values)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers. Complex data not supported")
    return array


def _check_convertible(array: NDArray) -> None:
    message = f"X must hold numbers, got {kind_of(array)}"
    if array.dtype.kind != "O":
        raise TypeError(message)
    try:
        array.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(message) from None


def _check_size(name: str, value: float) -> float:
    """Return a positive number whose square is one too."""
    return check_real(name, value, low=1e-50, high=1e50, allowed="a number in [1e-50, 1e50]")


def _check_noise(dimension: int, scale: float, size: int | None) -> tuple[int, float, int]:
    dimension = check_integer("dimension", dimension, low=1)
    count = 1 if size is None else check_integer("size", size, low=0)
    return dimension, check_epsilon(scale, "scale"), count


def _check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite numbers as an array of floats."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, got {kind_of(array)}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite")
    return array.astype(float)


def _check_broadcast(name: str, shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    """Refuse a shape that does not fit that of the margins."""
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        raise ValueError(f"{name} must fit the margins, got shapes {shape} and {other}") from None


def _check_weights(shifts: NDArray, weights: ArrayLike | None) -> NDArray[np.float64]:
    """Return one weight for each shift; by default all alike."""
    if shifts.ndim == 0 or shifts.shape[-1] == 0:
        raise ValueError(f"shifts must have a last axis that is not empty, got {shifts.shape}")
    draws = shifts.shape[-1]
    if weights is None:
        return np.full(draws, 1 / draws)
    weights = _check_numbers("weights", weights)
    if weights.shape != (draws,) or np.any(weights < 0) or abs(weights.sum() - 1) > 1e-9:
        raise ValueError(f"weights must be {draws} numbers of at least 0 whose sum is 1")
    return weights


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


def _check_flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a boolean, got {type(value).__name__}")
    return bool(value)


def _check_words(model: PrivateLogisticRegression) -> str:
    """Check the parameters that are words, and return `multi_class`."""
    check_choice("objective", model.objective, OBJECTIVES)
    check_choice("expectation", model.expectation, EXPECTATIONS)
    return check_choice("multi_class", model.multi_class, MULTI_CLASS)


def _check_classes(classes: Sequence | None) -> NDArray:
    """Return the public classes, sorted."""
    if classes is None or isinstance(classes, str):
        raise TypeError(f"classes must be a list of labels, got {type(classes).__name__}")
    array = as_array("classes", classes)
    try:
        found = np.unique(array)
    except TypeError:
        raise TypeError("classes must be labels that can be sorted") from None
    if array.ndim != 1 or found.size != array.size or array.size < 2 or np.any(found != found):
        raise ValueError(f"classes must be two labels or more, all different, got {classes!r}")
    return found


def _classes_of(model: PrivateLogisticRegression, labels: NDArray) -> NDArray:
    """Return the public classes, or with a warning those that occur."""
    if model.classes is not None:
        return _check_classes(model.classes)
    check_classification_targets(labels)
    found = np.unique(labels)
    if found.size < 2:
        raise ValueError("y must hold two classes or more where classes is None, got one class")
    warnings.warn(
        "classes were read off the labels: which of them occur is not protected",
        UserWarning,
        stacklevel=4,
    )
    return found
