"""Releases of the two metrics, and their density, for audits."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import check_choice, check_integer, check_rng, require_kind
from dpnotes.private_auc.metrics import METRIC, METRICS, MOST_RECORDS, check_doubles, split_scores
from dpnotes.private_auc.noise import MetricNoise, choose_noise
from dpnotes.release import REPLACED, Release

_NEIGHBOURS = f"{REPLACED.words}; the number of records is public"
# Widen the noise by a millionth: headroom for every rounding in the metric and in the scale.
_MARGIN = 1 + Fraction(1, 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRelease(Release):
    """A private AUC or AP: a `Release` with the public numbers from which its noise was made.

    Parameters
    ----------
    value, epsilon, delta, mechanism, neighbours
        As in `Release`. `delta` is what was spent, which may be less than the delta allowed.
    n : int
        The public number of records.
    noise : MetricNoise
        The noise, with its `scale` for each class size.
    guess : int or None
        The public guess of the size of the smaller class (AP: of the positives), if there was one.

    Examples
    --------
    >>> released = release_auc([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.3], epsilon=30.0, rng=0)
    >>> released.n, released.metric, released.noise.family
    (4, 'auc', 'cauchy')
    """

    n: int
    noise: MetricNoise
    guess: int | None

    def __post_init__(self) -> None:
        """Check every field, and keep plain numbers."""
        Release.__post_init__(self)
        object.__setattr__(self, "n", check_integer("n", self.n, low=1, high=MOST_RECORDS))
        require_kind("noise", self.noise, MetricNoise, "a MetricNoise")
        if self.guess is not None:
            guess = check_integer("guess", self.guess, low=1, high=self.n)
            object.__setattr__(self, "guess", guess)

    @property
    def metric(self) -> str:
        """What was released: "auc" or "average precision"."""
        return self.noise.metric


def release_auc(
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    delta: float = 0.0,
    noise: str = "auto",
    calibration: str = "exact",
    ties: str = "half",
    guess: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> MetricRelease:
    """Release the area under the ROC curve with noise that hides any one record.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    scores : array_like of finite numbers, shape (n,)
        Higher means more likely positive. The score of a record may depend on that record and on
        public information, such as a model trained elsewhere, but not on other records. The type of
        an array is public.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    delta : float
        The largest probability with which the loss may exceed epsilon. The release reports how much
        of it was spent: 0, unless the noise is Laplace noise.
    noise : {"auto", "cauchy", "student-t", "pareto", "laplace"}
        The family of the noise. "auto" chooses the one with the smallest error, as `choose_noise`
        does; "laplace" needs a delta above 0.
    calibration : {"exact", "nissim"}
        "exact" has nearly the smallest scale that the privacy loss allows at each class size: see
        `MetricNoise`. "nissim" is the Cauchy noise of Boyd, Lantz and Page (2015), which is
        about six times as wide as exact Cauchy noise, or wider.
    ties : {"half", "pessimistic"}
        As in `auc`.
    guess : int, optional
        A *public* guess of the size of the smaller class. It only selects the family of the noise,
        so a wrong guess loses accuracy and never privacy. Without it, the family is good at every
        size.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    MetricRelease
        Its value is the noisy AUC, clipped to [0, 1]. Everything else in it is public.

    Raises
    ------
    ValueError
        If labels and scores differ in length, a record is not valid by itself, or a parameter is
        out of range. Never for the records together: if a class is missing, the AUC before noise is
        1/2.
    TypeError
        If labels are neither integers nor booleans, scores are not real numbers, or a parameter is
        of the wrong kind.

    Notes
    -----
    The last digits of floating-point noise reveal the secret value (Mironov, 2012). Here both the
    AUC and the noise are fractions, the noise one of integers of 256 bits or more; the logarithm in
    Laplace noise has 60 digits. Their sum is rounded to a public grid of at most a millionth of the
    smallest scale (never finer than 2^-52, nor coarser than 2^-20) and only then made a float. So
    each released number has its stated probability to more than 15 digits. Two gaps remain: the
    pseudorandom generator, and time, because a call may take longer on some data than on others.

    Cauchy noise and Student t noise are epsilon-private with a delta of 0.

    Examples
    --------
    >>> from dpnotes.private_auc import auc
    >>> scores = np.arange(1000)
    >>> released = release_auc(scores % 10 > 4, scores, epsilon=1.0, rng=0)
    >>> abs(float(released) - auc(scores % 10 > 4, scores)) < 0.05
    True
    """
    options = {"delta": delta, "noise": noise, "calibration": calibration, "guess": guess}
    return _release("auc", labels, scores, epsilon, ties, rng, options)


def release_average_precision(
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    delta: float = 0.0,
    noise: str = "auto",
    calibration: str = "exact",
    ties: str = "grouped",
    guess: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> MetricRelease:
    """Release the average precision with noise that hides any one record.

    Parameters
    ----------
    labels, scores, epsilon, delta, noise, calibration
        As in `release_auc`.
    ties : {"grouped", "pessimistic"}
        As in `average_precision`.
    guess : int, optional
        A *public* guess of the number of positives.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    MetricRelease
        Its value is the noisy average precision, clipped to [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `release_auc` does. If there is no positive, the average precision before noise is 0.

    Notes
    -----
    As in `release_auc`, with the bound L of `ap_local_sensitivity`, which holds for both treatments
    of ties. The average precision is a double. The noise is widened by a millionth, which covers
    its rounding for up to 10^8 records.

    Examples
    --------
    >>> scores = np.arange(1000)
    >>> released = release_average_precision(scores % 10 > 4, scores, epsilon=1.0, rng=0)
    >>> released.metric, released.epsilon
    ('average precision', 1.0)
    """
    options = {"delta": delta, "noise": noise, "calibration": calibration, "guess": guess}
    return _release("average precision", labels, scores, epsilon, ties, rng, options)


def log_density(
    output: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    *,
    metric: str = "auc",
    delta: float = 0.0,
    noise: str = "auto",
    calibration: str = "exact",
    ties: str | None = None,
    guess: int | None = None,
) -> NDArray[np.float64]:
    """Return the log-density of a release before it is rounded and clipped.

    Parameters
    ----------
    output : array_like of finite numbers
        Possible releases, before clipping.
    labels, scores, epsilon
        As in `release_auc`.
    metric : {"auc", "average precision"}
        The released metric.
    delta, noise, calibration
        As in `release_auc`.
    ties : str, optional
        By default as in the release function of the metric.
    guess : int, optional
        As in the release function of the metric.

    Returns
    -------
    ndarray of the shape of `output`
        Natural logarithms of densities.

    Notes
    -----
    Rounding and clipping are post-processing, so it suffices that the densities of neighbours are
    within a factor e^epsilon.

    Examples
    --------
    >>> outputs, scores = np.linspace(-1, 2, 7), [1, 2, 3, 4]
    >>> one = log_density(outputs, [0, 0, 1, 1], scores, epsilon=0.5)
    >>> other = log_density(outputs, [0, 0, 1, 0], scores, epsilon=0.5)
    >>> bool(np.abs(one - other).max() <= 0.5)
    True
    """
    output = check_doubles("output", output)
    record = METRIC[check_choice("metric", metric, METRICS)]
    ties = check_choice("ties", record.ties[0] if ties is None else ties, record.ties)
    positives, negatives = split_scores(labels, scores)
    n, m = positives.size, negatives.size
    value = record.value(positives, negatives, ties)
    options = {"delta": delta, "noise": noise, "calibration": calibration, "guess": guess}
    # A release widens its noise by the margin.
    apart = (output - float(value)) / float(_MARGIN)
    chosen = choose_noise(n + m, epsilon, metric=metric, **options)
    return chosen.log_density(apart, record.size(n, m)) - np.log(float(_MARGIN))


def _release(
    metric: str,
    labels: ArrayLike,
    scores: ArrayLike,
    epsilon: float,
    ties: str,
    rng: np.random.Generator | int | None,
    options: dict[str, Any],
) -> MetricRelease:
    """Add noise to a metric, round the sum to the public grid and clip it."""
    record = METRIC[metric]
    check_choice("ties", ties, record.ties)
    positives, negatives = split_scores(labels, scores)
    n = positives.size + negatives.size
    noise = choose_noise(n, epsilon, metric=metric, **options)
    # A grid of at most a millionth of the smallest scale.
    halvings = math.ceil(20 - math.log2(noise.scale(record.largest(n))))
    steps = 2 ** min(max(halvings, 20), 52)
    # Everything below depends on the data.
    value = record.value(positives, negatives, ties)
    drawn = noise.draw(record.size(positives.size, negatives.size), check_rng(rng))
    return MetricRelease(
        min(max(round((value + _MARGIN * drawn) * steps), 0), steps) / steps,
        epsilon,
        delta=noise.delta,
        mechanism=str(noise),
        neighbours=_NEIGHBOURS,
        n=n,
        noise=noise,
        guess=options["guess"],
    )
