"""PyDP: Google's algorithms for Python.

The introduction in its documentation defines privacy for all databases, written as counts of each
record, "such that ∥x − y∥1 ≤ 1": one record more or less. Its first tutorial adds that "each animal
owns at most one row".
"""

from audited import Audits

ADDED = "one record added (“∥x − y∥1 ≤ 1” in docs/introduction.rst)"
CLASS = "the docstring of pydp.algorithms.laplacian.{}"

audits = Audits(
    "python-dp",
    noise="in whole steps of a grid, by Google’s library",
    noise_report="[its authors’ note](https://github.com/google/differential-privacy/blob/main/common_docs/Secure_Noise_Generation.pdf)",
    epsilon=1.0,
    unit=ADDED,
    trials=10_000,
)


def algorithm(name, quote, **parts):
    """Describe an algorithm of a data set."""
    return audits.add(f"laplacian.{name}", where=CLASS.format(name), quote=quote, **parts)


@algorithm(
    "Count",
    "Count computes the Count of number of items in the dataset, in a differentially private "
    "manner.",
    pair=([1], [1, 1]),
)
def count(data):
    from pydp.algorithms.laplacian import Count

    return Count(epsilon=1.0).quick_result(data)


@algorithm(
    "BoundedSum",
    "BoundedSum computes the sum of values in a dataset, in a differentially private manner.",
    pair=([0], [0, 9]),
)
def bounded_sum(data):
    from pydp.algorithms.laplacian import BoundedSum

    bounds = {"lower_bound": 0, "upper_bound": 2}
    return BoundedSum(epsilon=1.0, dtype="int", **bounds).quick_result(data)


@algorithm(
    "BoundedMean",
    "BoundedMean computes the average of values in a dataset, in a differentially private manner.",
    pair=([0.0], [0.0, 9.0]),
)
def bounded_mean(data):
    from pydp.algorithms.laplacian import BoundedMean

    bounds = {"lower_bound": 0.0, "upper_bound": 1.0}
    return BoundedMean(epsilon=1.0, dtype="float", **bounds).quick_result(data)


@algorithm(
    "BoundedVariance",
    "BoundedVariance computes the variance of values in a dataset, in a differentially private "
    "manner.",
    pair=([0.0], [0.0, 9.0]),
)
def bounded_variance(data):
    from pydp.algorithms.laplacian import BoundedVariance

    bounds = {"lower_bound": 0.0, "upper_bound": 1.0}
    return BoundedVariance(epsilon=1.0, dtype="float", **bounds).quick_result(data)


@algorithm(
    "BoundedStandardDeviation",
    "BoundedStandardDeviation computes the standard deviation of values in a dataset, in a "
    "differentially private manner.",
    pair=([0.0], [0.0, 9.0]),
)
def bounded_standard_deviation(data):
    from pydp.algorithms.laplacian import BoundedStandardDeviation

    bounds = {"lower_bound": 0.0, "upper_bound": 1.0}
    return BoundedStandardDeviation(epsilon=1.0, dtype="float", **bounds).quick_result(data)


@algorithm(
    "Max",
    "Max computes the Max value in the dataset, in a differentially private manner.",
    pair=([0.0] * 5, [0.0] * 5 + [1.0]),
)
def largest(data):
    from pydp.algorithms.laplacian import Max

    return Max(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(data)


@algorithm(
    "Min",
    "Min computes the minium value in the dataset, in a differentially private manner.",
    pair=([1.0] * 5, [1.0] * 5 + [0.0]),
)
def least(data):
    from pydp.algorithms.laplacian import Min

    return Min(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(data)


@algorithm(
    "Median",
    "Median computes the Median value in the dataset, in a differentially private manner.",
    pair=([0.0, 1.0], [0.0, 1.0, 1.0]),
)
def median(data):
    from pydp.algorithms.laplacian import Median

    return Median(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float").quick_result(data)


@algorithm(
    "Percentile",
    "Perencetile finds the value in the dataset with that percentile, in a differentially private "
    "manner.",
    pair=([0.0, 1.0], [0.0, 1.0, 1.0]),
)
def percentile(data):
    from pydp.algorithms.laplacian import Percentile

    limits = {"percentile": 0.25, "lower_bound": 0.0, "upper_bound": 1.0}
    return Percentile(epsilon=1.0, dtype="float", **limits).quick_result(data)


NOISE = "The library provides a set of ε-differentially private algorithms"
VALUES = "two values that differ by the sensitivity"


@audits.add(
    "numerical_mechanisms.LaplaceMechanism",
    pair=(0.0, 1.0),
    unit=VALUES,
    quote=NOISE,
    where="the README of the package",
    trials=20_000,
)
def laplace(value):
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    return LaplaceMechanism(epsilon=1.0, sensitivity=1.0).add_noise(value)


@audits.add(
    "numerical_mechanisms.GaussianMechanism",
    pair=(0.0, 1.0),
    unit=VALUES,
    quote=NOISE,
    where="the README of the package",
    delta=0.01,
    trials=20_000,
)
def gaussian(value):
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism

    return GaussianMechanism(epsilon=1.0, delta=0.01, sensitivity=1.0).add_noise(value)
