"""diffprivlib (IBM): its mechanisms, its tools and its models.

Its documentation names epsilon and delta and does not say which inputs are neighbours. A mechanism
takes a sensitivity, so its neighbours are two values that far apart. A tool is judged by the
neighbours that are easier on it: a mean by one record replaced, a histogram by one more record.
So is a model: one that uses the number of records without noise by one record replaced, a tree by
one more record. A forest deals records out by their number and is tried by both. All that the
warnings of a model ask for is given: bounds, norm and classes.
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
    "[issue 80](https://github.com/IBM/differential-privacy-library/issues/80); "
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


ISSUES = "https://github.com/IBM/differential-privacy-library/issues"
FEATURE = "the features of one record replaced"


def model(name, quote, **parts):
    """Describe a model and what is shown of it when it is fitted."""
    more = {"where": f"the docstring of diffprivlib.models.{name}", "quote": quote}
    return audits.add(f"models.{name}", **({"unit": REPLACED, "trials": 5_000} | more | parts))


def _fitted(name, data, **parameters):
    """Fit a model to records, each of some features or of features and a label."""
    import warnings

    import numpy as np
    from diffprivlib import models

    warnings.simplefilter("ignore")  # of a solver that did not converge
    table = np.array(data)
    columns = (
        (table,) if name in ("KMeans", "PCA", "StandardScaler") else (table[:, :-1], table.T[-1])
    )
    return getattr(models, name)(**parameters).fit(*columns)


BAYES = "adds noise to satisfy differential privacy to the learned means and variances"


def _bayes(records, lower, upper):
    it = _fitted("GaussianNB", records, epsilon=1.0, bounds=(lower, upper))
    return [float(v) for v in (*it.class_count_, *it.theta_.ravel(), *it.var_.ravel())]


@model(
    "GaussianNB",
    BAYES,
    unit=FEATURE,
    pair=([(0.0, 0), (0.0, 0), (0.0, 1)], [(1.0, 0), (0.0, 0), (0.0, 1)]),
)
def naive_bayes(records):
    return _bayes(records, 0, 1)


@model(
    "GaussianNB",
    BAYES,
    unit="one record replaced, its class included (the number of records is public)",
    pair=([(9.0, 0), (9.0, 0), (9.0, 1), (9.0, 1)], [(9.0, 0), (10.0, 1), (9.0, 1), (9.0, 1)]),
    tried="two records at the lower bound in each of two classes, and one of them moved to the "
    "other class and to the upper bound, with bounds 9 and 10",
    cause="A record that changes its class changes the sums of two classes by its value, and the "
    "noise is scaled to one class and to the width of the bounds (`local_diameter` in "
    "`_update_mean_variance`).",
)
def naive_bayes_by_class(records):
    return _bayes(records, 9, 10)


LINEAR = "Differential privacy is guaranteed with respect to the training sample."


@model(
    "LinearRegression",
    LINEAR,
    pair=([(1.0, 1.0), (1.0, 1.0)], [(1.0, 1.0), (1.0, -1.0)]),
    trials=10_000,
)
def linear_regression(records):
    options = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "fit_intercept": False}
    return float(_fitted("LinearRegression", records, epsilon=1.0, **options).coef_[0])


@model(
    "LinearRegression",
    LINEAR,
    pair=([(0.1, 0.0), (0.1, 0.0)], [(0.1, 0.0), (1.0, 0.0)]),
    tried="two records with the feature 0.1, and one of them moved to the upper bound of 0 and 1",
    cause="The sensitivity of the sum of squares is the square of the lower bound, which stands "
    "twice in the line that computes it (`bounds_X[0][i]` in `_construct_regression_obj`): with a "
    "lower bound of 0, that sum gets no noise.",
    report=f"[issue 105]({ISSUES}/105)",
)
def linear_regression_from_zero(records):
    options = {"bounds_X": (0, 1), "bounds_y": (0, 1), "fit_intercept": False}
    return float(_fitted("LinearRegression", records, epsilon=1.0, **options).coef_[0])


LOGISTIC = (
    "ϵ-Differential privacy is achieved relative to the maximum norm of the data, as determined by "
    "`data_norm`"
)


@model("LogisticRegression", LOGISTIC, pair=([(1.0, 0), (1.0, 1)], [(1.0, 0), (-1.0, 1)]))
def logistic_regression(records):
    options = {"data_norm": 1.0, "fit_intercept": False}
    return float(_fitted("LogisticRegression", records, epsilon=1.0, **options).coef_[0, 0])


@model(
    "LogisticRegression",
    LOGISTIC,
    pair=([(100.0, 1), (0.0, 0)], [(0.0, 1), (0.0, 0)]),
    tried="a record of norm 100 and one of norm 0, and the first of them moved to norm 0",
    trials=20_000,
    cause="A record moves the curvature of the loss by a quarter of its squared norm at most, and "
    "the noise allows for a quarter of the norm (`function_sensitivity * data_sensitivity` in "
    "`mechanisms.Vector.randomise`): too little for a norm above 1.",
    report=f"[issue 10]({ISSUES}/10) derives the term; [issue 104]({ISSUES}/104) names the vector "
    "mechanism among five faults",
)
def logistic_regression_of_large_records(records):
    options = {"data_norm": 100.0, "fit_intercept": False}
    return float(_fitted("LogisticRegression", records, epsilon=1.0, **options).coef_[0, 0])


@model(
    "LogisticRegression",
    LOGISTIC,
    epsilon=2.0,
    pair=([(1.0, 0), (1.0, 1)], [(1.0, 0), (-1.0, 1)]),
    tried="two records of norm 1 at one place, and one of them moved to the opposite place",
    trials=20_000,
    cause="The noise is that of an objective with a penalty on every coordinate (`alpha` in "
    "`mechanisms.Vector`), and the loss of scikit-learn that is minimized has none on the "
    "intercept.",
)
def logistic_regression_with_intercept(records):
    it = _fitted("LogisticRegression", records, epsilon=2.0, data_norm=1.0, C=3.0)
    slope, intercept = float(it.coef_[0, 0]), float(it.intercept_[0])
    return abs(intercept - slope) < 3 < abs(slope)


@model(
    "KMeans",
    "K-Means clustering with differential privacy.",
    pair=([[0.0]] * 20, [[0.0]] * 19 + [[1.0]]),
    tried="twenty records at the lower bound, and one of them at the upper",
    cause="A cluster without records keeps its centre and gets no noise (`if cluster not in "
    "labels` in `_update_centers`).",
    report=f"[issue 104]({ISSUES}/104) names k-means among five faults",
)
def k_means(records):
    it = _fitted("KMeans", records, n_clusters=2, epsilon=1.0, bounds=(0, 1))
    return float(it.cluster_centers_.max())


PCA = "with amendments to allow for the implementation of differential privacy"


@model("PCA", PCA, pair=([[1.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]]))
def pca(records):
    it = _fitted("PCA", records, epsilon=1.0, n_components=1, data_norm=1.0, bounds=(-1, 1))
    return [float(v) for v in (*it.mean_, *it.components_[0], *it.explained_variance_)]


@model("PCA", PCA, pair=([[1.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]]))
def pca_of_centred_records(records):
    it = _fitted("PCA", records, epsilon=1.0, n_components=1, data_norm=1.0, centered=True)
    return [float(v) for v in (*it.components_[0], *it.explained_variance_)]


@model(
    "StandardScaler",
    "Differential privacy is guaranteed on the learned scaler with respect to the training sample",
    pair=([[0.0], [0.0], [0.0]], [[0.0], [0.0], [1.0]]),
)
def standard_scaler(records):
    it = _fitted("StandardScaler", records, epsilon=1.0, bounds=(0, 1))
    return [float(it.mean_[0]), float(it.var_[0])]


@model(
    "DecisionTreeClassifier",
    "This class implements the base differentially private decision tree classifier for the Random "
    "Forest classifier algorithm.",
    unit=ADDED,
    pair=([(0.0, 0)], [(0.0, 0), (0.0, 0)]),
    trials=20_000,
    advice="Not meant to be used separately.",
)
def decision_tree(records):
    options = {"max_depth": 1, "bounds": (0, 1), "classes": [0, 1]}
    it = _fitted("DecisionTreeClassifier", records, epsilon=1.0, **options)
    return int(it.predict([[0.0]])[0])


FOREST = (
    "ϵ-Differential privacy is achieved by constructing decision trees via random splitting "
    "criterion and applying the PermuteAndFlip Mechanism to determine a noisy label."
)


def _labels(records, trees):
    """Return the label that each tree of a forest gives to the lower bound."""
    options = {"max_depth": 1, "bounds": (0, 1), "classes": [0, 1]}
    it = _fitted("RandomForestClassifier", records, epsilon=1.0, n_estimators=trees, **options)
    return [int(tree.predict([[0.0]])[0]) for tree in it.estimators_]


@model(
    "RandomForestClassifier",
    FOREST,
    pair=([(0.0, 0), (0.0, 0)], [(0.0, 0), (0.0, 1)]),
    tried="two records with one label, and one of them with another label, in a forest of one tree",
    trials=1_200,
    cause="A label that is replaced changes the counts of two labels, and `PermuteAndFlip` is told "
    "that all of them can only grow (`monotonic=True` in `_FittingTree.fit`).",
)
def random_forest(records):
    return _labels(records, 1)


@model(
    "RandomForestClassifier",
    FOREST,
    unit=ADDED,
    pair=([(0.0, 0), (0.0, 1), (0.0, 0)], [(0.0, 0), (0.0, 1), (0.0, 0), (0.0, 1)]),
    tried="three records at one place with the labels 0, 1 and 0, and a fourth at the end with the "
    "label 1, in a forest of three trees",
    trials=600,
    cause="Records are dealt out to the trees in order and by their number, so one more record "
    "moves others to other trees (`tree_idxs` in `fit`).",
)
def random_forest_of_three_trees(records):
    return _labels(records, 3)
