"""Who fits a logistic regression for the noise that is going to be added to it."""

import numpy as np
from contest import ELUN, EPSILON, TRIALS, contender
from scipy import special
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

from dpnotes.elun import (
    PrivateLogisticRegression,
    clip_rows,
    fit_many,
    l2_laplace_noise,
    minimize_loss,
)

STRENGTH, LONGEST, DRAWS, TOLERANCE, MODELS = 0.05, 2.0, 50, 1e-10, 100


def tumours(n):
    """Return standardised features of so many tumours, and whether each is benign.

    Nothing is released: where it is, means and deviations of private columns cost as well.
    """
    # The clock counts the time of every thread, and matrices this small gain nothing by a second.
    threadpool_limits(1)
    features, benign = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    return features[:n], benign[:n]


def prepared(n):
    """Return clipped rows, labels of -1 and 1, and draws of the noise."""
    features, benign = tumours(n)
    rows = clip_rows(features, LONGEST)
    model = PrivateLogisticRegression(EPSILON, expectation="draws")
    scale = model.guarantee(*features.shape).noise_scale
    noise = l2_laplace_noise(rows.shape[1], scale, size=DRAWS, rng=0)
    return rows, 2 * benign.astype(np.int64) - 1, noise


def descend(slope, dimension):
    """Go down the slope in steps that its smoothness allows, until it is flat."""
    point = np.zeros(dimension)
    step = 1 / (LONGEST**2 / 4 + STRENGTH)
    gradient = slope(point)
    while np.linalg.norm(gradient) > TOLERANCE:
        point -= step * gradient
        gradient = slope(point)


@contender(
    ELUN,
    "gradient descent, a loop of draws",
    "source",
    rounds=3,
    note="Algorithm 2 of the source, the gradient of one draw after the other",
)
def loop(n):
    rows, labels, noise = prepared(n)

    def slope(point):
        total = np.zeros_like(point)
        for draw in noise:
            pull = labels * special.expit(-labels * (rows @ (point + draw)))
            total -= pull @ rows / n
        return total / DRAWS + STRENGTH * point

    return lambda: descend(slope, rows.shape[1])


@contender(ELUN, "gradient descent", "numpy", rounds=3, note="all draws in one array")
def batched(n):
    rows, labels, noise = prepared(n)

    def slope(point):
        margins = labels[:, np.newaxis] * (rows @ (point + noise).T)
        pull = labels * special.expit(-margins).mean(axis=1)
        return STRENGTH * point - pull @ rows / n

    return lambda: descend(slope, rows.shape[1])


@contender(
    ELUN,
    "diffprivlib",
    "peer",
    rounds=20,
    package="diffprivlib",
    note="objective perturbation, another mechanism without draws; to its own tolerance of 1e-4",
)
def diffprivlib(n):
    from diffprivlib.models import LogisticRegression

    features, benign = tumours(n)
    model = LogisticRegression(
        epsilon=EPSILON, data_norm=np.sqrt(LONGEST**2 - 1), C=1 / (STRENGTH * n)
    )

    def run():
        model.fit(features, benign)

    return run


@contender(
    ELUN,
    "dpnotes",
    "dpnotes",
    rounds=50,
    note="Newton on the projected draws: `minimize_loss`",
)
def ours(n):
    rows, labels, noise = prepared(n)

    def run():
        minimize_loss(rows, labels, STRENGTH, shifts=rows @ noise.T, gradient_tolerance=TOLERANCE)

    return run


def estimator(job, name, note, **options):
    """Enter a whole private fit, from features to released weights."""

    @contender(job, name, "variant", rounds=50, note=note)
    def prepare(n):
        features, benign = tumours(n)
        model = PrivateLogisticRegression(EPSILON, gradient_tolerance=TOLERANCE, **options)

        def run():
            model.fit(features, benign)

        return run


estimator(
    *(ELUN, "dpnotes, the estimator"),
    note="checks, clipping, draws, fit and release: `fit`",
    expectation="draws",
)
estimator(
    *(ELUN, "dpnotes, the estimator by quadrature"),
    note="the same with a mixture of intervals in place of draws, and less noise: the default",
    expectation="quadrature",
)


@contender(ELUN, "the limit", "limit", rounds=50, note="one Newton fit without noise")
def limit(n):
    rows, labels, _ = prepared(n)

    def run():
        minimize_loss(rows, labels, STRENGTH, gradient_tolerance=TOLERANCE)

    return run


def models(**options):
    """Return the models of one study, a seed for each."""
    return [
        PrivateLogisticRegression(EPSILON, random_state=trial, **options) for trial in range(MODELS)
    ]


def study(name, kind, fit, *, note, **options):
    """Enter a way to fit a hundred models to the same data."""

    @contender(TRIALS, name, kind, rounds=5, note=note)
    def prepare(n):
        features, benign = tumours(n)
        trials = models(**options)

        def run():
            fit(trials, features, benign)

        return run


def one_after_the_other(trials, features, labels):
    """Fit every model by itself."""
    for model in trials:
        model.fit(features, labels)


study(
    *("a loop of `fit`", "numpy", one_after_the_other),
    note="draws of its own for every model",
    expectation="draws",
)
study(
    *("dpnotes", "dpnotes", fit_many),
    note="`fit_many`; draws of its own for every model",
    expectation="draws",
)
study(
    *("dpnotes, by quadrature", "variant", fit_many),
    note="`fit_many`; all models share one optimum",
    expectation="quadrature",
)
study(
    *("dpnotes, output perturbation", "variant", fit_many),
    note='`fit_many` with `objective="erm"`; all models share one optimum',
    objective="erm",
)
