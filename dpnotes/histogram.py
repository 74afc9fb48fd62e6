"""Counts and histograms have moved to `dpnotes.counts_and_means`; these names lead there."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_array
from dpnotes.counts_and_means import (
    TableRelease,
    _find_log_chances,
    _plan_count,
    _plan_histogram,
    margin,
    release_count,
    release_histogram,
)

__all__ = [
    "HistogramRelease",
    "count_log_pmf",
    "log_pmf",
    "margin",
    "release_count",
    "release_histogram",
]

HistogramRelease = TableRelease


def log_pmf(
    output: ArrayLike, values: Sequence[Hashable], domain: Sequence[Hashable], epsilon: float
) -> NDArray[np.float64]:
    """Return the logarithm of the probability of a histogram, as `log_probability` does.

    Parameters
    ----------
    output : array_like of int, shape (k,) or (outputs, k)
        Histograms that might be released.
    values, domain, epsilon
        As in `release_histogram`.

    Returns
    -------
    ndarray of float, shape () or (outputs,)
        Natural logarithms of probabilities.

    Examples
    --------
    >>> one = log_pmf([3, 0], ["a", "a"], ["a", "b"], epsilon=1.0)
    >>> other = log_pmf([3, 0], ["a", "b"], ["a", "b"], epsilon=1.0)
    >>> round(float(one - other), 6)
    1.0
    """
    return _find_log_chances("output", output, _plan_histogram(values, domain, epsilon))


def count_log_pmf(output: ArrayLike, values: Sequence[bool], epsilon: float) -> NDArray[np.float64]:
    """Return the logarithm of the probability of a count, as `log_probability` does.

    Parameters
    ----------
    output : array_like of int, shape () or (outputs,)
        Counts that might be released.
    values, epsilon
        As in `release_count`.

    Returns
    -------
    ndarray of float, shape () or (outputs,)
        Natural logarithms of probabilities.

    Examples
    --------
    >>> one = count_log_pmf(3, [True, True], epsilon=1.0)
    >>> round(float(one - count_log_pmf(3, [True, False], epsilon=1.0)), 6)
    1.0
    """
    plan, output = _plan_count(values, epsilon), as_array("output", output)
    if output.ndim > 1:
        raise ValueError(f"output must have at most one dimension, got {output.ndim}")
    return _find_log_chances("output", output[..., np.newaxis], plan)
