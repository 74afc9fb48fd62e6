"""An estimator for scikit-learn whose weights are differentially private."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dpnotes._checks import (
    as_array,
    check_choice,
    check_epsilon,
    check_flag,
    check_integer,
    check_seed,
    require_kind,
    shown,
)
from dpnotes.elun.loss import check_size, clip_rows, logistic_sensitivity, sensitivity
from dpnotes.elun.noise import MOST_NODES, l2_laplace_noise, uniform_rule
from dpnotes.elun.records import validate_records
from dpnotes.elun.solver import (
    Binary,
    Softmax,
    least_tolerance,
    over_intervals,
    over_points,
    reachable_tolerance,
    solve,
    without_noise,
)

_STEPS_OF_BISECTION = 12
_STATEMENT = (
    "epsilon = {:g} for this one fit, on rows whose preprocessing saw no private row; every other "
    "fit on the same people costs again"
)
_IF_SEEDED = "; no guarantee to whoever knows or reuses the seed"
_SPENT_ON = {
    "elun": "the weights with the least expected loss under noise",
    "erm": "the weights with the least loss",
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The privacy guarantee of a model, which depends on public facts only.

    Parameters
    ----------
    epsilon : float
        The privacy cost of the released weights, all models together, in nats.
    statement : str
        The guarantee of one fit, and its limits, in a sentence.
    delta : float
        The probability with which the privacy loss may exceed epsilon: 0.
    mechanism : str
        The mechanism, in words.
    spent_on : str
        What epsilon was spent on, in words.
    neighbours : str
        Which two data sets are neighbours, in words.
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
        The gradient norm at the released optimum, rounding included, for which the sensitivity
        allows.
    sensitivity : float
        How far the optimum of one model can move when a record is replaced, in the 2-norm.
    noise_scale : float
        The scale of `l2_laplace_noise`: sensitivity * models / epsilon.

    Examples
    --------
    >>> guarantee = PrivateLogisticRegression(1.0).guarantee(n=1000, features=4)
    >>> guarantee.epsilon, guarantee.dimension, round(guarantee.noise_scale, 4)
    (1.0, 5, 0.122)
    >>> guarantee.statement[:29]
    'epsilon = 1 for this one fit,'
    """

    epsilon: float
    _: KW_ONLY
    statement: str
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


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression whose weights are differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy cost of one `fit`, positive and finite.
    objective : {"elun", "erm"}
        "elun" minimises the expected loss under the noise that will be added. "erm" minimises the
        loss itself: output perturbation.
    regularization : float, optional
        The factor lambda of ||w||^2 / 2; the bias is regularised too. The default balances the loss
        from regularization against the loss from noise, using public numbers only; see the notes.
    lipschitz : float
        Each row, bias included, is clipped to this 2-norm. It must be public: epsilon does not
        cover a number computed from the data.
    draws : int
        The number of draws of the noise that "elun" averages over, or of nodes of
        `uniform_mixture`.
    expectation : {"auto", "draws", "quadrature"}
        Fixed random draws, as ELUN was published, or quadrature by `uniform_mixture`, which is
        exact for practical purposes. "auto" is quadrature if there is one score; softmax has a
        score for every class and needs draws.
    classes : sequence of labels, or None
        All labels that can occur, a public list. With None they are read off the data: then
        neighbours are protected only if the same classes occur in both, and a warning says so.
    multi_class : {"softmax", "one-vs-rest"}
        With more than two classes: one softmax model, or a model for every class with its share of
        epsilon. `guarantee` shows which needs less noise; from eight classes on it is softmax.
    gradient_tolerance : float, optional
        The gradient norm that the solver must reach, which is part of the sensitivity. The default
        is a millionth of one record's largest influence on the gradient.
    fit_intercept : bool
        Whether a bias is appended to every row before clipping.
    random_state : int or None
        A seed for the draws and the noise, for experiments on data that are not secret. Someone who
        knows the seed can subtract the noise, and the difference of two fits with the same seed
        cancels it even for someone who does not. Use None wherever privacy matters. A Generator is
        refused, because a copy of it would repeat the noise.
    calibration : {"sharp", "lipschitz"}
        "sharp" uses `logistic_sensitivity` if there is one score and no draws. "lipschitz" is the
        bound 2 rho / (lambda n) of Chaudhuri, Monteleoni and Sarwate (2011), for comparison.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted.
    coef_ : ndarray of shape (1, p) for two classes, else (K, p)
        Private weights.
    intercept_ : ndarray of shape (1,) or (K,)
        Private biases; 0 without `fit_intercept`.
    privacy_ : Guarantee
        What was spent, on what, and under which neighbour relation, for this fit alone.
    n_features_in_ : int
        The number of features p.

    Notes
    -----
    **One fit does not know about others.** A grid search with 60 candidates fits at least 61 models
    to the same people, and ``best_estimator_.privacy_`` still describes only the last one. The
    search costs at least the sum of all fits, and the scores by which it chooses are not protected
    at all. Likewise the guarantee does not cover a scaler, an imputer or a feature selection that
    was fitted on private rows; use public scales. Choose parameters on public data, or add up the
    cost of every fit.

    **The default regularization.** Noise of scale b on m weights raises the expected loss by at
    most rho^2 (m + 1) b^2 / 8, up to terms of higher order, with b at most
    2 rho / (lambda n epsilon); the regularization raises it by lambda ||w||^2 / 2. For weights that
    give the longest row a score of 6, ||w|| = 6 / rho, the sum is least at

        lambda = rho^2 ((m + 1) / (18 n^2 epsilon^2))^(1/3),

    where epsilon is that of one noise vector; it is clipped to [1e-6, 1] times rho^2. The score of
    6 is a choice that did well on several data sets, not a theorem. ``privacy_.regularization``
    has the result.

    With "sharp" the noise depends on the sensitivity and, for "elun", the sensitivity on the noise.
    The scale b is nearly the smallest for which the sensitivity under noise of scale b is at most
    b epsilon. It is found from public numbers.

    Whether `fit` succeeds depends on public facts and on each record by itself: parameters, shapes,
    types, every number finite, every label one of `classes`. A missing class, constant columns and
    rows of zeros are accepted like any other data. The solver reaches the tolerance on all of them:
    it uses Newton's method and, if that stalls, gradient descent, which converges on any smooth and
    strongly convex function. Neither the number of steps nor the weights before noise are kept.

    The noise consists of doubles (see `l2_laplace_noise`), and the time of a fit depends on the
    data: the guarantee covers neither the last bits nor the time. If lipschitz^2 / regularization,
    which is public, exceeds about 1e8, some data sets take impractically long.

    Scores are computed from clipped rows, as in training. Clipping keeps the predicted class of a
    row, and moves its probabilities towards each other.

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

    epsilon: float
    _: KW_ONLY
    objective: str = "elun"
    regularization: float | None = None
    lipschitz: float = 2.0
    draws: int = 50
    expectation: str = "auto"
    classes: Sequence | None = (0, 1)
    multi_class: str = "softmax"
    gradient_tolerance: float | None = None
    fit_intercept: bool = True
    random_state: int | None = None
    calibration: str = "sharp"

    def fit(self, X: ArrayLike, y: ArrayLike, **options: object) -> Self:
        """Fit private weights; this spends epsilon.

        Parameters
        ----------
        X : array_like of shape (n, p)
            One record a row, finite numbers.
        y : array_like of shape (n,)
            Labels, all of them in `classes`.
        **options
            Refused, in particular `sample_weight`, because a weight would change how far one record
            can move the optimum.

        Returns
        -------
        self
        """
        if "sample_weight" in options:
            raise TypeError("sample_weight must be left out: in the proof all records count alike")
        if options:
            raise TypeError(f"fit must be given X and y only, got {', '.join(options)}")
        return fit_many([self], X, y)[0]

    def guarantee(self, n: int, features: int) -> Guarantee:
        """Return the guarantee of a fit on n records; this needs no data.

        Parameters
        ----------
        n : int
            The public number of records.
        features : int
            The number of features, without the bias.

        Returns
        -------
        Guarantee
        """
        return _make_guarantee(self, n, features, _check_classes(self.classes).size)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the score of every row, after clipping.

        Parameters
        ----------
        X : array_like of float, shape (n, features)
            Records, not yet clipped.

        Returns
        -------
        ndarray of float, shape (n,) for two classes, else (n, classes)
            Log-odds of the second class, or a score for each class.
        """
        check_is_fitted(self)
        features = validate_records(self, X, reset=False)
        rows = clip_rows(features, self.lipschitz, bias=self.fit_intercept)
        scores = rows[:, : features.shape[1]] @ self.coef_.T
        if self.fit_intercept:
            scores += rows[:, -1:] * self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the most likely class of every row.

        Parameters
        ----------
        X : array_like of float, shape (n, features)
            Records, not yet clipped.

        Returns
        -------
        ndarray, shape (n,)
            Classes, of the type of `classes`.
        """
        scores = self.decision_function(X)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every class for every row.

        Parameters
        ----------
        X : array_like of float, shape (n, features)
            Records, not yet clipped.

        Returns
        -------
        ndarray of float, shape (n, classes)
            Probabilities; rows sum to 1.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return special.expit(np.column_stack([-scores, scores]))
        if self.multi_class == "one-vs-rest":
            scores = special.log_expit(scores)
        return special.softmax(scores, axis=1)

    def __sklearn_tags__(self) -> Tags:
        """Declare that noise may make the scores poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


def fit_many(
    models: Sequence[PrivateLogisticRegression], X: ArrayLike, y: ArrayLike
) -> list[PrivateLogisticRegression]:
    """Fit many models to one data set, and solve each optimization problem only once.

    Parameters
    ----------
    models : sequence of PrivateLogisticRegression
        The models, which may differ in any parameter. Each fit spends its epsilon: together they
        cost the sum. No two may have the same integer as `random_state`, because noise that two
        releases share cancels in their difference.
    X : array_like of shape (n, p)
        One record a row, finite numbers.
    y : array_like of shape (n,)
        Labels.

    Returns
    -------
    list of PrivateLogisticRegression
        The same models, fitted as by `fit`, with the same random numbers.

    Raises
    ------
    ValueError, TypeError
        As `fit` does; and if a seed occurs twice, or an entry is not such a model.

    Notes
    -----
    For studies with many trials. The optimum of "erm" depends on neither epsilon nor the seed, so a
    hundred trials at ten epsilons are one problem, as long as the regularization is the same;
    "elun" by quadrature has one problem for each epsilon.

    Examples
    --------
    >>> x, y = np.array([[-1.0], [1.0], [2.0]]), [0, 1, 1]
    >>> models = [PrivateLogisticRegression(1.0, objective="erm") for trial in range(100)]
    >>> len({float(model.coef_[0, 0]) for model in fit_many(models, x, y)})
    100
    """
    require_kind("models", models, Sequence, "a sequence of models")
    if not all(isinstance(model, PrivateLogisticRegression) for model in models):
        raise TypeError("models must be PrivateLogisticRegression")
    # The checks of each model refuse seeds of a wrong kind.
    known = [int(m.random_state) for m in models if isinstance(m.random_state, Integral)]
    if len(set(known)) < len(known):
        raise ValueError("models must have random_state None, or a different integer each")
    if not models:
        return models
    features, labels = validate_records(models[0], X, y)
    solved: dict[tuple, NDArray] = {}
    for model in models:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(models[0], name):
                setattr(model, name, getattr(models[0], name))
        _fit(model, features, labels, solved)
    return models


def _fit(
    model: PrivateLogisticRegression, features: NDArray, labels: NDArray, solved: dict
) -> None:
    """Fit one model to checked records; `solved` caches the optima of earlier models."""
    classes = _find_classes(model, labels)
    promise = _make_guarantee(model, *features.shape, classes.size)
    targets = np.eye(classes.size)[_find_codes(labels, classes)]
    seeds = np.random.SeedSequence(model.random_state).spawn(2)
    for_draws, for_release = map(np.random.default_rng, seeds)
    problem = _identify_problem(model, promise, classes)
    if problem is None or problem not in solved:
        solved[problem] = _minimize(model, promise, features, targets, for_draws)
    noise = l2_laplace_noise(
        promise.dimension, promise.noise_scale, size=promise.models, rng=for_release
    )
    released = (solved[problem] + noise).reshape(1 if classes.size == 2 else classes.size, -1)
    p = features.shape[1]
    model.classes_, model.privacy_ = classes, promise
    model.coef_ = released[:, :p]
    model.intercept_ = released[:, p] if model.fit_intercept else np.zeros(len(released))


def _find_codes(labels: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Return the index of every label among the classes, and refuse other labels."""
    matches = np.broadcast_to(classes[:, np.newaxis] == labels, (classes.size, labels.size))
    if not matches.any(axis=0).all():
        raise ValueError(
            "y must hold labels that are in classes; a record does not. List all labels that can "
            "occur, as in classes=(-1, 1)"
        )
    return matches.argmax(axis=0)


def _make_guarantee(
    model: PrivateLogisticRegression, n: int, features: int, classes: int
) -> Guarantee:
    """Check the parameters of a model, and return its guarantee."""
    epsilon = check_epsilon(model.epsilon)
    row = check_size("lipschitz", model.lipschitz)
    n = check_integer("n", n, low=1)
    softmax = _check_words(model) == "softmax" and classes > 2
    draws = check_integer("draws", model.draws, low=1, high=10**9)
    if model.objective == "elun" and _uses_quadrature(model, softmax):
        check_integer("draws", draws, low=1, high=MOST_NODES)
    check_seed("random_state", model.random_state)
    dimension = check_integer("features", features, low=1)
    dimension += check_flag("fit_intercept", model.fit_intercept)
    # The softmax residual p - e_y has a norm of at most sqrt(2), that of a single score at most 1.
    rho = math.sqrt(2) * row if softmax else row
    models = 1 if softmax or classes == 2 else classes
    weights = dimension * (classes if softmax else 1)
    if model.regularization is None:
        strength = _balance_regularization(rho, weights, n, epsilon / models)
    else:
        strength = check_size("regularization", model.regularization)
    shape = n, dimension + (classes if softmax else 0)
    least = least_tolerance(rho, strength, shape, draws)
    tolerance = reachable_tolerance(model.gradient_tolerance, 1e-6 * rho / n, least)
    scale = sensitivity(rho, strength, n, gradient_tolerance=tolerance) * models / epsilon
    # Draws of the noise, and their products with rows, must not overflow.
    if not scale <= 1e200:
        raise ValueError(f"epsilon must give noise of a scale up to 1e200, got {epsilon}")
    if model.calibration == "sharp" and not softmax:
        moved = partial(logistic_sensitivity, rho, strength, n, gradient_tolerance=tolerance)
        if model.objective == "erm":
            scale = min(scale, moved() / (epsilon / models))
        elif _uses_quadrature(model, softmax):
            moved = partial(moved, dimension=dimension, nodes=draws)
            scale = _search_scale(moved, epsilon / models, scale)
    return Guarantee(
        epsilon,
        statement=_STATEMENT.format(epsilon) + _IF_SEEDED * (model.random_state is not None),
        mechanism="noise on the weights with density proportional to exp(-||z||_2 / noise_scale)",
        spent_on=_SPENT_ON[model.objective] + (f", {models} times" if models > 1 else ""),
        neighbours=f"one of {n} records replaced"
        + ", the same classes occurring" * (model.classes is None),
        n=n,
        models=models,
        dimension=weights,
        lipschitz=rho,
        regularization=strength,
        gradient_tolerance=tolerance,
        sensitivity=scale * epsilon / models,
        noise_scale=scale,
    )


def _balance_regularization(rho: float, weights: int, n: int, epsilon: float) -> float:
    """Return the default regularization of `PrivateLogisticRegression`."""
    share = ((weights + 1) / 18) ** (1 / 3) * (n * epsilon) ** (-2 / 3)
    return rho**2 * min(max(share, 1e-6), 1.0)


def _uses_quadrature(model: PrivateLogisticRegression, softmax: bool) -> bool:
    """Return whether the expectation over the noise is computed by quadrature."""
    if model.expectation == "quadrature" and softmax and model.objective == "elun":
        raise ValueError("expectation must be 'draws' or 'auto' for softmax, got 'quadrature'")
    return model.expectation != "draws" and not softmax


def _search_scale(moved: Callable[..., float], epsilon: float, scale: float) -> float:
    """Return a scale b at which the sensitivity under noise of scale b is at most b epsilon.

    Bisection: `scale` satisfies this, and below half of it nothing does, because the sensitivity is
    at least half of its bound. The result always satisfies it, so few steps are enough.
    """
    low, high = scale / 2, scale
    for _ in range(_STEPS_OF_BISECTION):
        middle = (low + high) / 2
        enough = moved(noise_scale=middle) <= middle * epsilon
        low, high = (low, middle) if enough else (middle, high)
    return high


def _identify_problem(
    model: PrivateLogisticRegression, promise: Guarantee, classes: NDArray
) -> tuple | None:
    """Return all that determines the weights before noise, or None if they use random draws."""
    decided = (
        *(model.lipschitz, model.fit_intercept, promise.regularization),
        *(promise.gradient_tolerance, promise.models, tuple(classes)),
    )
    if model.objective == "erm":
        return decided
    if _uses_quadrature(model, _is_softmax(promise, classes.size)):
        return (*decided, promise.noise_scale, model.draws)
    return None


def _minimize(
    model: PrivateLogisticRegression,
    promise: Guarantee,
    features: NDArray,
    targets: NDArray,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the weights before noise, a row for each noise vector."""
    row, strength = float(model.lipschitz), promise.regularization
    rows = clip_rows(features, row, bias=model.fit_intercept)
    softmax = _is_softmax(promise, targets.shape[1])
    average, shifts = without_noise, None
    if model.objective == "elun" and _uses_quadrature(model, softmax):
        half_widths, weights = uniform_rule(promise.dimension, model.draws)
        lengths = np.linalg.norm(rows, axis=1)[:, np.newaxis]
        average = over_intervals(promise.noise_scale * lengths * half_widths, weights)
    elif model.objective == "elun":
        noise = l2_laplace_noise(promise.dimension, promise.noise_scale, size=model.draws, rng=rng)
        if softmax:
            shifts = np.tensordot(rows, noise.reshape(model.draws, -1, rows.shape[1]), (1, 2))
        else:
            average = over_points(rows @ noise.T, np.full(model.draws, 1 / model.draws))
    if softmax:
        problems: list = [Softmax(rows, targets, strength, row, shifts)]
    else:
        columns = targets.T[1:] if targets.shape[1] == 2 else targets.T
        problems = [Binary(rows, column, strength, row, average) for column in columns]
    return np.array([solve(problem, promise.gradient_tolerance) for problem in problems])


def _is_softmax(promise: Guarantee, classes: int) -> bool:
    return classes > 2 and promise.models == 1


def _check_words(model: PrivateLogisticRegression) -> str:
    """Check the parameters that are words, and return `multi_class`."""
    check_choice("objective", model.objective, ("elun", "erm"))
    check_choice("expectation", model.expectation, ("auto", "draws", "quadrature"))
    check_choice("calibration", model.calibration, ("sharp", "lipschitz"))
    return check_choice("multi_class", model.multi_class, ("softmax", "one-vs-rest"))


def _check_classes(classes: Sequence | None) -> NDArray:
    """Return the public classes, sorted."""
    if classes is None or isinstance(classes, str):
        raise TypeError(f"classes must be a list of labels, got {type(classes).__name__}")
    array = as_array("classes", classes)
    try:
        found = np.unique(array)
    # numpy compares an integer with a wide float by its decimal digits, and may run out of them.
    except (TypeError, ValueError, ArithmeticError):
        raise TypeError("classes must be labels that can be sorted") from None
    if array.ndim != 1 or found.size != array.size or array.size < 2 or np.any(found != found):
        raise ValueError(f"classes must be two labels or more, all different, got {shown(classes)}")
    return found


def _find_classes(model: PrivateLogisticRegression, labels: NDArray) -> NDArray:
    """Return the public classes; if there are none, those that occur, with a warning."""
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
