"""Noisy gradient descent (DP-SGD): logistic regression from noisy sums over random batches.

Each step draws a Poisson batch, which holds every record independently with a public probability,
clips each record's gradient to a public length, adds Gaussian noise to their sum, divides by a
public number and takes a step of public size.

    fit                      the model, every step on the way, and what they cost together
    cost, noise_for          the cost of a fit, and the noise for a budget
    log_density              the exact density of a path, for an audit on a few records
    shuffled_cost_at_least   a lower bound on the cost of batches cut from a shuffled list

Neighbours have one record replaced, as everywhere in this book; the number of records is public.
Costs over random batches need Google's dp-accounting: ``pip install dpnotes[accounting]``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes._checks import (
    as_numbers,
    check_categories,
    check_choice,
    check_integer,
    check_probability,
    check_real,
    check_rng,
)
from dpnotes._coins import flip
from dpnotes.accounting import PrivacyCost, calibrate, compose_gaussian, compose_subsampled_gaussian
from dpnotes.accounting.composition import NEIGHBOURS
from dpnotes.release import _set_promise

MOST_STEPS = 10**6
MOST_RECORDS = 12  # for which all batches can be enumerated
LARGEST_FEATURE = 1e100

_LEAST_NOISE, _MOST_NOISE = 0.01, 1e6
_CLOSE = 5e-4  # relative tolerance of the noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescentRelease:
    """Private coefficients, and the promise under which they were made.

    Parameters
    ----------
    path : ndarray of float, shape (steps + 1, d)
        The coefficients before the first step, which are zeros, and after each step. The promise
        is for all of them together.
    epsilon, delta, mechanism, neighbours
        As in `Release`.

    Examples
    --------
    >>> promise = {"mechanism": "Gaussian noise", "neighbours": "one record replaced"}
    >>> model = DescentRelease(path=[[0.0], [0.5]], epsilon=1.0, delta=1e-5, **promise)
    >>> model.coefficients
    array([0.5])
    """

    path: NDArray[np.float64]
    epsilon: float
    delta: float
    mechanism: str
    neighbours: str

    def __post_init__(self) -> None:
        """Check every field, and make the array read-only."""
        path = _check_rows("path", as_numbers("path", self.path))
        path.setflags(write=False)
        _set_promise(self, path=path)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Return the coefficients after the last step, shape (d,)."""
        return self.path[-1]


def fit(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    noise: float,
    rate: float,
    steps: int,
    delta: float,
    clipping: float = 1.0,
    step_size: float = 1.0,
    rng: np.random.Generator | int | None = None,
) -> DescentRelease:
    """Fit a logistic regression by noisy gradient descent, at the cost that `cost` returns.

    Parameters
    ----------
    features : array_like of float, shape (n, d)
        One record a row: finite numbers of at most 1e100. For an intercept append a column of
        ones.
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The classes.
    noise : float
        The standard deviation of the noise on each sum, in units of `clipping`: from 0.01 to 1e6.
    rate : float
        The probability with which each record is in a batch, from 1e-9 to 1; at 1 all are.
    steps : int
        The number of steps, from 1 to 10**6.
    delta : float
        The delta at which the cost is stated, at least 1e-10 and below 1; at a rate of 1, any above
        0.
    clipping : float
        The largest 2-norm of a record's gradient; longer ones are scaled down. From 1e-20 to 1e20.
    step_size : float
        The factor by which an average gradient is multiplied, from 1e-20 to 1e20.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start. Someone who
        knows the seed can subtract the noise.

    Returns
    -------
    DescentRelease
        The whole path with its cost; ``.coefficients`` are those after the last step. A score
        ``features @ coefficients`` above 0 predicts class 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter, a shape, a type or a record by itself is invalid.
    ModuleNotFoundError
        If dp-accounting is not installed and `rate` is below 1.

    Notes
    -----
    From w = 0, each of the steps draws a batch B and standard normal numbers Z and goes to

        w - step_size (sum over B of clip(g_i) + noise clipping Z) / (rate n),

    with g_i the gradient of record i's logistic loss at w, and clip(g) = g for gradients no longer
    than `clipping`, while longer ones are cut to that length (Song, Chaudhuri and Sarwate, 2013;
    Bassily, Smith and Thakurta, 2014; Abadi et al., 2016).

    Everything but the records is public: n and all parameters. None of these may be read off the
    data, nor may the scales of features. The size of a batch is secret, so the denominator is the
    *expected* size, and an empty batch is a step like any other: noise alone.

    The batches are exact coins for the double `rate`. The noise is drawn in doubles: Mironov (2012)
    shows what their last bits can reveal. A step takes longer the larger its batch.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> model = fit(x, x[:, 0] > 0, noise=2.0, rate=0.05, steps=100, delta=1e-5, rng=0)
    >>> bool(np.mean((x @ model.coefficients > 0) == (x[:, 0] > 0)) > 0.9)
    True
    >>> round(model.epsilon, 2), model.neighbours
    (2.0, 'one record replaced; the number of records is public')
    """
    features, labels = _check_records(features, labels)
    noise, rate, steps = _check_noise(noise), _check_rate(rate), _check_steps(steps)
    clipping, step_size = _check_scale("clipping", clipping), _check_scale("step_size", step_size)
    spent = cost(noise, rate, steps, delta, neighbours="replaced")
    rng = check_rng(rng)
    n, d = features.shape
    path = np.zeros((steps + 1, d))
    for step in range(steps):
        batch = flip(n, rate, rng) if rate < 1 else np.ones(n, dtype=bool)
        gradients = _clipped_gradients(path[step], features[batch], labels[batch], clipping)
        total = gradients.sum(axis=0) + noise * clipping * rng.standard_normal(d)
        path[step + 1] = path[step] - step_size * total / (rate * n)
    return DescentRelease(
        path=path,
        # A release needs a positive epsilon, but the bound may round to 0.
        epsilon=max(float(spent), 1e-12),
        delta=spent.delta,
        mechanism=f"{steps} sums of clipped gradients over Poisson batches, with Gaussian noise",
        neighbours="one record replaced; the number of records is public",
    )


def _clipped_gradients(
    coefficients: NDArray, features: NDArray, labels: NDArray, clipping: float
) -> NDArray[np.float64]:
    """Return each record's gradient of the logistic loss, clipped to a length; shape (n, d)."""
    residuals = special.expit(features @ coefficients) - labels
    # A gradient is residual * row, so clipping the residual clips it without overflow.
    with np.errstate(divide="ignore"):
        most = clipping / np.linalg.norm(features, axis=1)
    return np.clip(residuals, -most, most)[:, np.newaxis] * features


def cost(
    noise: float, rate: float, steps: int, delta: float, *, neighbours: str = "replaced"
) -> PrivacyCost:
    """Return what all steps of a fit cost together, before there are any records.

    Parameters
    ----------
    noise : float
        The standard deviation of the noise on each sum, in units of the longest gradient: from
        0.01 to 1e6.
    rate : float
        The probability with which each record is in a batch, from 1e-9 to 1.
    steps : int
        The number of steps, from 1 to 10**6.
    delta : float
        The probability with which the loss may be larger, at least 1e-10 and below 1; at a rate of
        1, any above 0.
    neighbours : {"replaced", "added"}
        Whether one record is replaced, which is what `fit` promises, or added or removed, as in
        much software. The first costs more.

    Returns
    -------
    PrivacyCost
        An upper bound, close to the smallest epsilon that holds; exact at a rate of 1.

    Raises
    ------
    ModuleNotFoundError
        If dp-accounting is not installed and `rate` is below 1.

    Notes
    -----
    The noise is measured against *one* gradient, not against the two by which a sum changes when a
    record is replaced: that factor of 2 is in the neighbours. With C the clipping, no two
    neighbours are easier to tell by one step than the pair

        (1 - q) N(0, s^2) + q N(C, s^2)   and   (1 - q) N(0, s^2) + q N(-C, s^2)

    for rate q and s = noise C, in any dimension and whatever the other records are, as the book
    proves. Adding a record compares the first of these with N(0, s^2). At a rate of 1 a record that
    is replaced moves a sum by 2C, and the steps are one Gaussian answer.

    Examples
    --------
    >>> round(float(cost(1.0, 0.01, 1000, 1e-5)), 2)
    2.84
    >>> round(float(cost(1.0, 0.01, 1000, 1e-5, neighbours="added")), 2)
    1.83
    """
    noise, rate, steps = _check_noise(noise), _check_rate(rate), _check_steps(steps)
    delta = check_probability("delta", delta)
    return _cost(noise, rate, steps, delta, check_choice("neighbours", neighbours, NEIGHBOURS))


@lru_cache(maxsize=1024)
def _cost(noise: float, rate: float, steps: int, delta: float, neighbours: str) -> PrivacyCost:
    if rate == 1:
        moved = {"replaced": 2, "added": 1}[neighbours]
        return compose_gaussian(noise / moved, steps, delta)
    return compose_subsampled_gaussian(noise, rate, steps, delta, neighbours=neighbours)


def noise_for(
    epsilon: float, delta: float, *, rate: float, steps: int, neighbours: str = "replaced"
) -> float:
    """Return the noise with which a fit costs at most epsilon.

    Parameters
    ----------
    epsilon : float
        What may be spent, positive and finite.
    delta : float
        The probability with which the loss may be larger, at least 1e-10 and below 1; at a rate of
        1, any above 0.
    rate, steps, neighbours
        As in `cost`.

    Returns
    -------
    float
        A noise for `cost` and `fit`, at least 0.01; within 0.2 % of the smallest for which `cost`
        returns at most epsilon. That bound is loose below an epsilon of 1e-3.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon is too small for any noise up to 1e6.
    ModuleNotFoundError
        If dp-accounting is not installed and `rate` is below 1.

    Notes
    -----
    Found by `accounting.calibrate`.

    Examples
    --------
    >>> noise = noise_for(1.0, 1e-5, rate=0.01, steps=1000)
    >>> round(noise, 1), float(cost(noise, 0.01, 1000, 1e-5)) <= 1.0
    (2.4, True)
    """
    spent = partial(cost, rate=rate, steps=steps, delta=delta, neighbours=neighbours)
    return calibrate(spent, epsilon, _LEAST_NOISE, _MOST_NOISE, start=1.0, tolerance=_CLOSE)


def log_density(
    path: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    noise: float,
    rate: float,
    clipping: float = 1.0,
    step_size: float = 1.0,
) -> float:
    """Return the exact log-density of a path of `fit`, for a few records.

    Parameters
    ----------
    path : array_like of float, shape (steps + 1, d)
        Coefficients before the first step and after each; finite numbers of at most 1e100. The
        first row is taken as given.
    features : array_like of float, shape (n, d)
        At most 12 records, since all their batches are enumerated.
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The classes.
    noise, rate, clipping, step_size
        As in `fit`.

    Returns
    -------
    float
        The natural logarithm of the density of rows 1 to steps; finite for every valid path.

    Notes
    -----
    Given the coefficients before it, a step is a mixture of normal distributions, one for each of
    the 2^n batches B, of weight ``rate^b (1 - rate)^(n - b)`` for b records in B.

    Examples
    --------
    >>> given = {"noise": 1.0, "rate": 0.5, "step_size": 1.0}
    >>> here = log_density([[0.0], [1.0]], [[1.0], [1.0]], [1, 1], **given)
    >>> there = log_density([[0.0], [1.0]], [[1.0], [1.0]], [0, 1], **given)
    >>> round(here - there, 3)
    0.332
    """
    features, labels = _check_records(features, labels)
    n, d = features.shape
    if n > MOST_RECORDS:
        raise ValueError(f"features must hold at most {MOST_RECORDS} records, got {n}")
    path = _check_numbers("path", path)
    if path.shape[1] != d or len(path) < 2:
        raise ValueError(f"path must have two rows or more of {d} numbers, got {path.shape}")
    noise, rate = _check_noise(noise), _check_rate(rate)
    clipping, step_size = _check_scale("clipping", clipping), _check_scale("step_size", step_size)
    batches = (np.arange(2**n)[:, np.newaxis] >> np.arange(n)) % 2
    sizes = batches.sum(axis=1)
    log_weights = special.xlogy(sizes, rate) + special.xlog1py(n - sizes, -rate)
    spread, shrink = noise * clipping, step_size / (rate * n)
    constant = d * (math.log(spread * shrink) + math.log(2 * math.pi) / 2)
    found = 0.0
    for before, after in pairwise(path):
        sums = batches @ _clipped_gradients(before, features, labels, clipping)
        apart = ((before - after) / shrink - sums) / spread
        found += special.logsumexp(log_weights - (apart**2).sum(axis=1) / 2) - constant
    return float(found)


def shuffled_cost_at_least(noise: float, batches: int, delta: float) -> float:
    """Return an epsilon below which one pass over shuffled batches is not private.

    Parameters
    ----------
    noise : float
        The standard deviation of the noise on each sum, in units of the longest gradient: from
        0.01 to 1e6.
    batches : int
        The number of batches of equal size into which shuffled records are cut, from 1 to 10**6.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    float
        In nats, at least 0; for neighbours with one record replaced.

    Notes
    -----
    Every record is in exactly one batch. Let all others have the gradient -C, and one either -C
    too, or C. Then the noisy sums are independent normal numbers, and either one of them, at an
    unknown place, is larger by 2C, or none is. With s the noise, k the batches and E the event that
    the largest exceeds its expectation by more than h C,

        P(E) = 1 - Phi(h / s)^(k - 1) Phi((h - 2) / s),   Q(E) = 1 - Phi(h / s)^k,

    and epsilon is at least log((P(E) - delta) / Q(E)) for every h; the best one of a fine grid is
    taken. An event of this kind is how Chua et al. (2024) bound shuffling from below.

    Examples
    --------
    >>> round(shuffled_cost_at_least(1.0, 100, 1e-5), 2), round(float(cost(1, 0.01, 100, 1e-5)), 2)
    (5.4, 0.9)
    """
    noise, delta = _check_noise(noise), check_probability("delta", delta)
    batches = check_integer("batches", batches, low=1, high=MOST_STEPS)
    z = np.linspace(-10.0, 38.0, 48_001)
    below = special.log_ndtr(z)
    some_above = -np.expm1(batches * below)
    one_moved = -np.expm1((batches - 1) * below + special.log_ndtr(z - 2 / noise))
    seen = (one_moved > delta) & (some_above > 0)
    ratios = np.log(one_moved[seen] - delta) - np.log(some_above[seen])
    return float(max(0.0, ratios.max(initial=0.0)))


def _check_noise(noise: float) -> float:
    allowed = f"a number from {_LEAST_NOISE:g} to {_MOST_NOISE:g}"
    return check_real("noise", noise, low=_LEAST_NOISE, high=_MOST_NOISE, allowed=allowed)


def _check_rate(rate: float) -> float:
    return check_real("rate", rate, low=1e-9, high=1.0, allowed="a probability from 1e-9 to 1")


def _check_steps(steps: int) -> int:
    return check_integer("steps", steps, low=1, high=MOST_STEPS)


def _check_scale(name: str, value: float) -> float:
    return check_real(name, value, low=1e-20, high=1e20, allowed="a number from 1e-20 to 1e20")


def _check_records(features: ArrayLike, labels: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return records as a table of floats and a list of zeros and ones."""
    features, labels = _check_numbers("features", features), check_categories("labels", labels, 2)
    if labels.shape != features.shape[:1]:
        raise ValueError(
            f"labels must be a list of {len(features)}, one a record, got shape {labels.shape}"
        )
    return features, labels.astype(float)


def _check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a table of finite numbers, none so large that a square of it is infinite."""
    numbers = _check_rows(name, as_numbers(name, values, with_booleans=True))
    if not np.all(np.abs(numbers) <= LARGEST_FEATURE):
        raise ValueError(f"{name} must be finite and at most {LARGEST_FEATURE:g} in size")
    return numbers


def _check_rows(name: str, numbers: NDArray) -> NDArray[np.float64]:
    """Return a table of numbers, refusing other shapes and an empty one."""
    if numbers.ndim != 2 or numbers.size == 0:
        raise ValueError(f"{name} must be two-dimensional and not empty, got shape {numbers.shape}")
    return numbers
