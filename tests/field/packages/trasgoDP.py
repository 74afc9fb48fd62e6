"""trasgoDP: mechanisms of the local model, applied to whole columns.

Its README says that the mechanisms are "implemented for being used under a local approach, adding
noise directly to the raw data". So one record is replaced, and the others may be anything.
"""

from audited import Audits

REPLACED = "one record replaced"
README = "the README of the package"
DOCSTRING = "the docstring of trasgodp.{}"
LOCAL = (
    "implements different mechanims for ε-differential privacy (numerical and categorical data), "
    "(ε, δ)-differential privacy (numerical data) and metric-privacy (location-based data)"
)
CATEGORIES = (
    "The categories are those that occur in the data (`np.unique(data)`), so that a category that "
    "only one record has is an output that no other data set gives."
)

audits = Audits(
    "trasgoDP",
    noise="in doubles (`numpy.random.laplace`)",
    epsilon=1.0,
    unit=REPLACED,
    quote=LOCAL,
    where=README,
)


@audits.add("numerical.dp_clip_laplace_array", pair=([0.0], [1.0]))
def laplace(data):
    from trasgodp.numerical import dp_clip_laplace_array

    return dp_clip_laplace_array(data, 1.0, 0.0, 1.0)


@audits.add("numerical.dp_clip_gaussian_array", pair=([0.0], [1.0]), delta=0.01)
def gaussian(data):
    from trasgodp.numerical import dp_clip_gaussian_array

    return dp_clip_gaussian_array(data, 1.0, 0.0, 1.0, 0.01)


@audits.add("categorical.dp_exponential_array", pair=(["a", "b", "c", "a"], ["a", "b", "c", "b"]))
def exponential(data):
    from trasgodp.categorical import dp_exponential_array

    return dp_exponential_array(data, 1.0).tolist()


@audits.add(
    "categorical.dp_exponential_array",
    pair=(["a", "b", "c", "c"], ["a", "b", "c", "d"]),
    cause=CATEGORIES,
)
def exponential_new_category(data):
    from trasgodp.categorical import dp_exponential_array

    return "d" in dp_exponential_array(data, 1.0)


@audits.add(
    "categorical.dp_randomized_response_binary_array", pair=(["a", "b", "a"], ["a", "b", "b"])
)
def binary(data):
    from trasgodp.categorical import dp_randomized_response_binary_array

    return dp_randomized_response_binary_array(data, 1.0).tolist()


@audits.add(
    "categorical.dp_randomized_response_kary_array",
    pair=(["a", "b", "c", "a"], ["a", "b", "c", "b"]),
)
def kary(data):
    from trasgodp.categorical import dp_randomized_response_kary_array

    return dp_randomized_response_kary_array(data, 1.0).tolist()


@audits.add(
    "categorical.dp_randomized_response_kary_array",
    pair=(["a", "b", "c", "c"], ["a", "b", "c", "d"]),
    cause=CATEGORIES,
)
def kary_new_category(data):
    from trasgodp.categorical import dp_randomized_response_kary_array

    return "d" in dp_randomized_response_kary_array(data, 1.0)


PLACES = (40.0, 40.0 + 180 / 3.141592653589793 / 6_371_000)


@audits.add(
    "geoindis.metric_privacy",
    unit="two places one metre apart (epsilon is for each metre)",
    quote="Apply geo-indistinguishability to the columns of a DataFrame with lat, lon pairs.",
    where=DOCSTRING.format("geoindis.metric_privacy"),
    pair=PLACES,
    tried="two places one metre apart",
    trials=2_000,
    cause="The seed of the noise is the same in every call unless another one is given "
    "(`seed=42` in `metric_privacy`).",
)
def metric_privacy(latitude):
    import pandas as pd
    from trasgodp.geoindis import metric_privacy

    place = pd.DataFrame({"lat": [latitude], "lon": [0.0]})
    return round(float(metric_privacy(place, "lat", "lon", 1.0)["lat"][0]), 9)
