"""diffprivlib (IBM): its mechanisms and its tools.

Its documentation names epsilon and delta and does not say which inputs are neighbours. A mechanism
takes a sensitivity, so its neighbours are two values that far apart. A tool is judged by the
neighbours that are easier on it: a mean by one record replaced, a histogram by one more record.
"""

import functools

from audited import Audits

VALUES = "two values that differ by the sensitivity"
REPLACED = "one record replaced (the number of records is public)"
ADDED = "one record added"
MECHANISM = "the docstring of diffprivlib.mechanisms.{}"
TOOL = "the docstring of diffprivlib.tools.{}"
PARAMETER = "Privacy parameter ϵ for the mechanism."
NOISE = (
    "Noise is added using {} to satisfy differential privacy, where sensitivity is calculated "
    "using `bounds`."
)

audits = Audits(
    "diffprivlib",
    noise="in doubles, made of four numbers so that one attack fails",
    noise_report="[issue 94](https://github.com/IBM/differential-privacy-library/issues/94): "
    "another attack does not",
    epsilon=1.0,
    unit=VALUES,
    quote=PARAMETER,
)


def mechanism(name, **parts):
    """Describe a mechanism that is called with a value."""
    return audits.add(f"mechanisms.{name}", where=MECHANISM.format(name), **parts)


def tool(name, quote, **parts):
    """Describe a function of a data set."""
    more = {"where": TOOL.format(name), "quote": quote, "trials": 10_000}
    return audits.add(f"tools.{name}", **(more | parts))


@mechanism("Binary", pair=("no", "yes"))
def binary(value):
    from diffprivlib.mechanisms import Binary

    return Binary(epsilon=1.0, value0="no", value1="yes").randomise(value)


@mechanism("Laplace", pair=(0.0, 1.0))
def laplace(value):
    from diffprivlib.mechanisms import Laplace

    return Laplace(epsilon=1.0, sensitivity=1.0).randomise(value)


@mechanism("Laplace", pair=(0.0, 1.0), epsilon=0.5, delta=0.1)
def laplace_with_delta(value):
    from diffprivlib.mechanisms import Laplace

    return Laplace(epsilon=0.5, delta=0.1, sensitivity=1.0).randomise(value)


@mechanism("LaplaceTruncated", pair=(0.0, 1.0))
def laplace_truncated(value):
    from diffprivlib.mechanisms import LaplaceTruncated

    return LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=2.0).randomise(value)


@mechanism("LaplaceFolded", pair=(0.0, 1.0))
def laplace_folded(value):
    from diffprivlib.mechanisms import LaplaceFolded

    return LaplaceFolded(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=2.0).randomise(value)


@mechanism("LaplaceBoundedDomain", pair=(0.0, 1.0))
def laplace_bounded_domain(value):
    from diffprivlib.mechanisms import LaplaceBoundedDomain

    limits = {"lower": 0.0, "upper": 1.0}
    return float(LaplaceBoundedDomain(epsilon=1.0, sensitivity=1.0, **limits).randomise(value))


@mechanism("LaplaceBoundedNoise", pair=(0.0, 1.0), delta=0.1)
def laplace_bounded_noise(value):
    from diffprivlib.mechanisms import LaplaceBoundedNoise

    return float(LaplaceBoundedNoise(epsilon=1.0, delta=0.1, sensitivity=1.0).randomise(value))


@mechanism("Snapping", pair=(0.0, 1.0))
def snapping(value):
    from diffprivlib.mechanisms import Snapping

    return float(Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=4.0).randomise(value))


@mechanism("Staircase", pair=(0.0, 1.0))
def staircase(value):
    from diffprivlib.mechanisms import Staircase

    return float(Staircase(epsilon=1.0, sensitivity=1.0).randomise(value))


@mechanism("Uniform", pair=(0.0, 1.0), epsilon=0.0, delta=0.25)
def uniform(value):
    from diffprivlib.mechanisms import Uniform

    return Uniform(delta=0.25, sensitivity=1.0).randomise(value)


@mechanism("Gaussian", pair=(0.0, 1.0), delta=0.01)
def gaussian(value):
    from diffprivlib.mechanisms import Gaussian

    return float(Gaussian(epsilon=1.0, delta=0.01, sensitivity=1.0).randomise(value))


@functools.cache
def _gaussian_analytic():
    from diffprivlib.mechanisms import GaussianAnalytic

    return GaussianAnalytic(epsilon=1.0, delta=0.01, sensitivity=1.0)


@mechanism("GaussianAnalytic", pair=(0.0, 1.0), delta=0.01)
def gaussian_analytic(value):
    return float(_gaussian_analytic().randomise(value))


@functools.cache
def _gaussian_discrete():
    from diffprivlib.mechanisms import GaussianDiscrete

    return GaussianDiscrete(epsilon=1.0, delta=0.01, sensitivity=2)


@mechanism("GaussianDiscrete", pair=(0, 2), delta=0.01)
def gaussian_discrete(value):
    return _gaussian_discrete().randomise(value)


@mechanism("Geometric", pair=(0, 2))
def geometric(value):
    from diffprivlib.mechanisms import Geometric

    return Geometric(epsilon=1.0, sensitivity=2).randomise(value)


@mechanism("GeometricTruncated", pair=(0, 2))
def geometric_truncated(value):
    from diffprivlib.mechanisms import GeometricTruncated

    return GeometricTruncated(epsilon=1.0, sensitivity=2, lower=0, upper=4).randomise(value)


@mechanism("GeometricFolded", pair=(0, 1))
def geometric_folded(value):
    from diffprivlib.mechanisms import GeometricFolded

    return GeometricFolded(epsilon=1.0, sensitivity=1, lower=-0.5, upper=2.5).randomise(value)


UTILITIES = "utilities that differ by the sensitivity, each up or down"


def _exponential_distribution(utility):
    import numpy as np
    from diffprivlib.mechanisms import Exponential

    rising = Exponential(epsilon=1.0, sensitivity=1.0, utility=list(utility))._probabilities
    return np.diff(rising, prepend=0.0)


@mechanism(
    "Exponential",
    pair=((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)),
    unit=UTILITIES,
    distribution=_exponential_distribution,
)
def exponential(utility):
    from diffprivlib.mechanisms import Exponential

    return int(Exponential(epsilon=1.0, sensitivity=1.0, utility=list(utility)).randomise())


@mechanism("PermuteAndFlip", pair=((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)), unit=UTILITIES)
def permute_and_flip(utility):
    from diffprivlib.mechanisms import PermuteAndFlip

    return PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=list(utility)).randomise()


LEAVES = [["A", "B"], ["C", "D"]]


def _hierarchical_distribution(value):
    from diffprivlib.mechanisms import ExponentialHierarchical

    it = ExponentialHierarchical(epsilon=1.0, hierarchy=LEAVES)
    return [it._get_prob(value, other) / it._normalising_constant[value] for other in "ABCD"]


@mechanism(
    "ExponentialHierarchical",
    pair=("A", "C"),
    unit="any two values",
    distribution=_hierarchical_distribution,
)
def exponential_hierarchical(value):
    from diffprivlib.mechanisms import ExponentialHierarchical

    return ExponentialHierarchical(epsilon=1.0, hierarchy=LEAVES).randomise(value)


@mechanism(
    "Bingham",
    pair=([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]),
    unit="two covariance matrices that differ by the sensitivity in spectral norm",
    epsilon=4.0,
    trials=10_000,
)
def bingham(matrix):
    import numpy as np
    from diffprivlib.mechanisms import Bingham

    vector = Bingham(epsilon=4.0, sensitivity=1.0).randomise(np.array(matrix))
    return [float(vector[0]), float(vector[1])]


@tool("mean", NOISE.format("Laplace"), unit=REPLACED, pair=([0.0] * 4, [0.0] * 3 + [1.0]))
def mean(data):
    from diffprivlib import tools

    return float(tools.mean(data, epsilon=1.0, bounds=(0, 1)))


NAN = float("nan")
RECORDER = (
    "the tests of [dp-recorder](https://github.com/ObliviousAI/dp-recorder) name diffprivlib among "
    "the libraries in which a missing value survives the clipping"
)


@tool(
    "mean",
    NOISE.format("Laplace"),
    unit=REPLACED,
    pair=([0.0] * 4, [0.0] * 3 + [NAN]),
    tried="four zeros, and three zeros with a missing value",
    cause="A missing value survives the clipping (`clip_to_bounds` in `validation`) and the mean.",
    report=RECORDER,
)
def mean_with_a_missing_value(data):
    from diffprivlib import tools

    return float(tools.mean(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "nanmean",
    NOISE.format("Laplace"),
    unit=REPLACED,
    pair=([NAN] * 4 + [0.0], [NAN] * 4 + [1.0]),
    tried="four missing values and 0, and the same with 1",
    cause="The sensitivity is divided by the number of all values, the missing ones included "
    "(`array.size` in `tools.utils._mean`), while the mean is taken over those that are there.",
)
def nanmean(data):
    from diffprivlib import tools

    return float(tools.nanmean(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "var",
    NOISE.format("LaplaceBoundedDomain"),
    unit=REPLACED,
    pair=([0.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
)
def var(data):
    from diffprivlib import tools

    return float(tools.var(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "nanvar",
    NOISE.format("LaplaceBoundedDomain"),
    unit=REPLACED,
    pair=([NAN] * 18 + [0.0, 0.0], [NAN] * 18 + [0.0, 1.0]),
    tried="18 missing values and two zeros, and the same with a zero replaced by 1",
    cause="The sensitivity is computed from the number of all values, the missing ones included "
    "(`array.size` in `tools.utils._var`), while the variance is that of those that are there.",
)
def nanvar(data):
    from diffprivlib import tools

    return float(tools.nanvar(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "std",
    NOISE.format("LaplaceBoundedDomain"),
    unit=REPLACED,
    pair=([0.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
)
def std(data):
    from diffprivlib import tools

    return float(tools.std(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "sum",
    "Sum of array elements over a given axis with differential privacy.",
    unit=REPLACED,
    pair=([0.0] * 4, [0.0] * 3 + [1.0]),
)
def sum_of(data):
    from diffprivlib import tools

    return float(tools.sum(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "nansum",
    "Sum of array elements over a given axis with differential privacy, ignoring NaNs.",
    unit=REPLACED,
    pair=([0.0] * 4, [0.0] * 3 + [1.0]),
)
def nansum(data):
    from diffprivlib import tools

    return float(tools.nansum(data, epsilon=1.0, bounds=(0, 1)))


@tool(
    "count_nonzero",
    "Counts the number of non-zero values in the array ``array`` with differential privacy.",
    unit=REPLACED,
    pair=([0, 0, 1, 1], [0, 1, 1, 1]),
)
def count_nonzero(data):
    from diffprivlib import tools

    return float(tools.count_nonzero(data, epsilon=1.0))


@tool(
    "quantile",
    "Differential privacy is achieved with the Exponential mechanism",
    unit=REPLACED,
    pair=([0.1, 0.5], [0.9, 0.5]),
)
def quantile(data):
    from diffprivlib import tools

    return float(tools.quantile(data, 0.25, epsilon=1.0, bounds=(0, 1)))


@tool(
    "median",
    "Returns the median with differential privacy.",
    unit=REPLACED,
    pair=([0.1, 0.5], [0.9, 0.5]),
)
def median(data):
    from diffprivlib import tools

    return float(tools.median(data, epsilon=1.0, bounds=(0, 1)))


HISTOGRAM = "noise added using GeometricTruncated to satisfy differential privacy"


@tool("histogram", HISTOGRAM, unit=ADDED, pair=([0.1, 0.6], [0.1, 0.6, 0.7]))
def histogram(data):
    from diffprivlib import tools

    return tools.histogram(data, epsilon=1.0, bins=2, range=(0, 1))[0]


@tool(
    "histogram",
    HISTOGRAM,
    unit=ADDED,
    pair=(([0.1], [1.0]), ([0.1, 0.6], [1.0, 5.0])),
    tried="a record of weight 1 in the first bin, and a second of weight 5 in the other",
    cause="The sensitivity is 1 whatever the weights are (`histogram` in `tools.histograms`).",
)
def weighted_histogram(data):
    from diffprivlib import tools

    values, weights = data
    return tools.histogram(values, epsilon=1.0, bins=2, range=(0, 1), weights=weights)[0]


@tool("histogramdd", HISTOGRAM, unit=ADDED, pair=([[0.1, 0.1]], [[0.1, 0.1], [0.9, 0.1]]))
def histogramdd(data):
    import numpy as np
    from diffprivlib import tools

    return tools.histogramdd(np.array(data), epsilon=1.0, bins=2, range=[(0, 1), (0, 1)])[0]


@tool(
    "histogram2d",
    "Compute the differentially private bi-dimensional histogram of two data samples.",
    unit=ADDED,
    pair=([[0.1], [0.1]], [[0.1, 0.9], [0.1, 0.1]]),
)
def histogram2d(data):
    from diffprivlib import tools

    return tools.histogram2d(*data, epsilon=1.0, bins=2, range=[(0, 1), (0, 1)])[0]
