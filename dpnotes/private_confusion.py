"""Private confusion matrices: accuracy, recall, specificity, precision and F1 from four counts.

Replacing one record moves one unit from a cell of the matrix to another, so integer noise that
keeps the sum suffices. All metrics of the released matrix follow at no further cost, each with an
interval that covers both noise and sampling.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes._checks import CONFIDENCE, as_array, check_probability, check_real, check_rng
from dpnotes._coins import discrete_laplace, flip_exp
from dpnotes.private_auc.interval import Estimate
from dpnotes.private_auc.metrics import check_classes, check_lengths
from dpnotes.release import _set_promise
from dpnotes.unary_encoding import project_to_simplex

_PROPOSALS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionRelease:
    """A private confusion matrix, and the promise under which it was made.

    Parameters
    ----------
    value : tuple of two pairs of int
        Noisy counts ((true negatives, false positives), (false negatives, true positives)), as
        scikit-learn lays them out. They sum to the number of records, and some may be negative.
    epsilon, delta, mechanism, neighbours
        As in `Release`.

    Examples
    --------
    >>> released = release_confusion_matrix([0, 1, 1], [0, 1, 0], epsilon=50.0, rng=0)
    >>> released.value
    ((1, 0), (1, 1))
    """

    value: tuple[tuple[int, int], tuple[int, int]]
    epsilon: float
    delta: float = 0.0
    mechanism: str
    neighbours: str

    def __post_init__(self) -> None:
        """Check every field and keep plain numbers."""
        counts = as_array("value", self.value)
        if counts.shape != (2, 2) or counts.dtype.kind not in "iu":
            raise TypeError("value must be two pairs of whole numbers")
        if sum(counts.ravel().tolist()) < 1:
            raise ValueError("value must be counts that sum to the number of records, at least 1")
        _set_promise(self, value=tuple(map(tuple, counts.tolist())))


def release_confusion_matrix(
    labels: ArrayLike,
    predictions: ArrayLike,
    epsilon: float,
    *,
    rng: np.random.Generator | int | None = None,
) -> ConfusionRelease:
    """Release the confusion matrix with noise that hides any one record.

    Parameters
    ----------
    labels : array_like of int in {0, 1} or of bool, shape (n,)
        The true classes; 1 is positive.
    predictions : array_like of int in {0, 1} or of bool, shape (n,)
        The predicted classes. If they are thresholded scores, the threshold must be public.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    ConfusionRelease
        Noisy counts in scikit-learn's layout, which sum to n.

    Notes
    -----
    Integer counts M with the sum n are released with probability proportional to
    ``exp(-epsilon |M - C|_1 / 2)``. Replacing a record changes that sum of distances by at most 2,
    and the sum of these weights is the same for all C, so this is epsilon-private. To draw it,
    three cells get discrete Laplace noise of scale 2 / epsilon, the fourth gets minus their sum z,
    and the draw is accepted with probability ``exp(-epsilon |z| / 2)``. The coins are exact for
    odds rounded to doubles: half of epsilon is lowered by 1e-12, as headroom for that rounding.
    Noise beyond 700 to 1,400 scales (depending on epsilon alone) is never drawn; exact noise would
    be there with a probability below 1e-303. So the claim of pure epsilon holds up to a delta that
    is next to nothing, unless epsilon itself is in the hundreds.

    Examples
    --------
    >>> (tn, fp), (fn, tp) = release_confusion_matrix([0, 1, 1], [0, 1, 0], 1.0, rng=0).value
    >>> tn + fp + fn + tp
    3
    """
    epsilon = check_real("epsilon", epsilon, low=1e-9, allowed="a finite number of at least 1e-9")
    labels = check_classes("labels", labels)
    predictions = check_classes("predictions", predictions)
    check_lengths("predictions", predictions, "labels", labels)
    counts = np.bincount(2 * labels.astype(np.int8) + predictions.astype(np.int8), minlength=4)
    tn, fp, fn, tp = (counts + _balanced_noise(epsilon / 2 - 1e-12, check_rng(rng))).tolist()
    return ConfusionRelease(
        value=((tn, fp), (fn, tp)),
        epsilon=epsilon,
        mechanism="discrete Laplace noise on four counts whose sum is kept",
        neighbours="one record replaced; the number of records is public",
    )


def _balanced_noise(rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw four whole numbers z of sum 0 with probability proportional to exp(-rate |z|_1)."""
    while True:
        kept = _kept_proposals(_PROPOSALS, rate, rng)
        if len(kept):
            return kept[0]


def _kept_proposals(size: int, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the accepted ones of `size` proposals for `_balanced_noise`, one a row.

    Rejection sampling: draw three numbers, set the last one to minus their sum, and accept the row
    with the weight of that last one.
    """
    three = discrete_laplace(3 * size, 1 / rate, rng).reshape(-1, 3)
    last = -three.sum(axis=1)
    kept = flip_exp(-rate * np.abs(last), rng)
    return np.column_stack([three, last])[kept]


def confusion_metrics(
    release: ConfusionRelease, *, confidence: float = CONFIDENCE
) -> dict[str, Estimate]:
    """Return the usual metrics of a noisy confusion matrix, each with an interval.

    Parameters
    ----------
    release : ConfusionRelease
        From `release_confusion_matrix`. Its metrics are post-processing and spend nothing.
    confidence : float
        The probability that an interval covers the truth, strictly between 0 and 1.

    Returns
    -------
    dict of str to Estimate
        "accuracy", "recall", "specificity", "precision" and "f1": estimates, and intervals for the
        population that the records come from.

    Notes
    -----
    The counts are first projected to the nearest non-negative counts of the same sum. A metric
    whose denominator is 0 is 0, as in scikit-learn. Each is a share k / (k + l) of two sums of
    cells; F1 is 2 J / (1 + J) for the share J = tp / (tp + fp + fn). The interval consists of the
    shares t for which k - t (k + l) is within a quantile of 0 (Fieller, 1954), given the binomial
    variance of the sample and the variance of the noise. The quantile is corrected because the
    noise has heavier tails than a normal variable (Cornish and Fisher, 1938).

    Examples
    --------
    >>> release = release_confusion_matrix([0, 1] * 500, [0, 1, 1, 1] * 250, 1.0, rng=0)
    >>> round(confusion_metrics(release)["accuracy"].value, 1)
    0.8
    """
    if not isinstance(release, ConfusionRelease):
        raise TypeError(f"release must be a ConfusionRelease, got {type(release).__name__}")
    tail = (1 - check_probability("confidence", confidence)) / 2
    cells = np.ravel(release.value)
    counts = project_to_simplex(cells, cells.sum())
    found = {
        name: _share(counts, np.array(hits), np.array(misses), release.epsilon, tail)
        for name, (hits, misses) in _SHARES.items()
    }
    found["f1"] = Estimate(*(2 * share / (1 + share) for share in found["f1"]))
    return found


# Which of tn, fp, fn, tp count as hits, and which as misses.
_SHARES = {
    "accuracy": ([1, 0, 0, 1], [0, 1, 1, 0]),
    "recall": ([0, 0, 0, 1], [0, 0, 1, 0]),
    "specificity": ([1, 0, 0, 0], [0, 1, 0, 0]),
    "precision": ([0, 0, 0, 1], [0, 1, 0, 0]),
    "f1": ([0, 0, 0, 1], [0, 1, 1, 0]),
}


def _share(
    counts: NDArray, hits: NDArray, misses: NDArray, epsilon: float, tail: float
) -> Estimate:
    """Return hits / (hits + misses) with its Fieller interval."""
    k, total = float(counts @ hits), float(counts @ (hits + misses))
    share = k / total if total else 0.0
    # The variance of the noise in hits - share (hits + misses), a quadratic in the share.
    noise = _noise_form(hits, hits, epsilon)
    slope = _noise_form(hits, hits + misses, epsilon)
    curve = _noise_form(hits + misses, hits + misses, epsilon)
    noisy = noise - 2 * share * slope + share**2 * curve
    heavy = 1.9 * (noisy / (noisy + total * share * (1 - share) or 1.0)) ** 2
    z = -float(special.ndtri(tail))
    z = max(z, z + heavy * (z**3 - 3 * z) / 24) ** 2
    a, b = total**2 + z * (total - curve), -2 * k * total - z * (total - 2 * slope)
    c = k**2 - z * noise
    if a <= 0:
        return Estimate(share, 0.0, 1.0)
    reach = math.sqrt(max(b * b - 4 * a * c, 0.0))
    low, high = (-b - reach) / (2 * a), (-b + reach) / (2 * a)
    return Estimate(share, max(0.0, min(low, share)), min(1.0, max(high, share)))


def _noise_form(one: NDArray, other: NDArray, epsilon: float) -> float:
    """Return the covariance of the noise in two sums of cells, 4.2 / epsilon^2 for a single one."""
    unit = 5.6 / min(max(epsilon, 1e-100), 1e100) ** 2
    return unit * float(one @ other - one.sum() * other.sum() / 4)
