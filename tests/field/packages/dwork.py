"""dwork: queries of a data frame, whose sensitivity is worked out from a schema.

Its documentation does not say which inputs are neighbours. A length and what is divided by it are
judged by one record more, everything else by one record replaced: the sensitivity of a sum is the
width of its bounds.
"""

from audited import Audits

ADDED = "one record added"
REPLACED = "one record replaced (the number of records is public)"

audits = Audits(
    "dwork",
    noise="in doubles (`secrets.SystemRandom`)",
    epsilon=1.0,
    unit=REPLACED,
    quote="A Python toolkit for differentially private data science & analytics.",
    where="the summary of the package; a query is released by its method dp(epsilon)",
)


def _frame(records, kind):
    import pandas as pd
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset
    from dwork.language import types

    bounds = {name: getattr(types, kind)(min=0, max=1) for name in "ab"}
    return PandasDataset(type("Schema", (DataSchema,), bounds), pd.DataFrame(records))


def _records(*values):
    return {"a": list(values), "b": list(values)}


@audits.add("mechanisms.laplace_noise", pair=(0.0, 1.0), unit="two values that differ by 1")
def laplace(value):
    from dwork.mechanisms import laplace_noise

    return value + laplace_noise(1.0)


@audits.add("mechanisms.geometric_noise", pair=(0, 1), unit="two values that differ by 1")
def geometric(value):
    from dwork.mechanisms import geometric_noise

    return value + geometric_noise(1.0)


@audits.add("len", pair=(_records(0), _records(0, 0)), unit=ADDED, tried="one record and two")
def length(records):
    return int(_frame(records, "Integer").len().dp(1.0))


@audits.add(
    "sum of integers", pair=(_records(0, 0), _records(0, 1)), tried="the values 0, 0 and 0, 1"
)
def sum_of_integers(records):
    return int(_frame(records, "Integer")["a"].sum().dp(1.0))


@audits.add(
    "sum of floats", pair=(_records(0.0, 0.0), _records(0.0, 1.0)), tried="the values 0, 0 and 0, 1"
)
def sum_of_floats(records):
    return float(_frame(records, "Float")["a"].sum().dp(1.0))


@audits.add(
    "sum of two sums",
    pair=(_records(0.0, 0.0), _records(0.0, 1.0)),
    tried="two columns with the values 0, 0, and with 0, 1",
    cause="The sensitivity of a sum or a difference of two expressions is the larger of theirs, "
    "not their sum (`Add.sensitivity` and `Sub.sensitivity` in `dwork.language.operators`). One "
    "record may change both.",
)
def sum_of_two_sums(records):
    data = _frame(records, "Float")
    return float((data["a"].sum() + data["b"].sum()).dp(1.0))


@audits.add(
    "sum divided by len",
    unit=ADDED,
    pair=(_records(0.0, 0.0), _records(0.0, 0.0, 0.0)),
    tried="two zeros and three",
    cause="The scale of the noise is the largest change around the data at hand, their local "
    "sensitivity (`lb = self.left.true()` in `TrueDiv.sensitivity`), so that it tells of them.",
)
def sum_divided_by_len(records):
    data = _frame(records, "Float")
    return float((data["a"].sum() / data.len()).dp(1.0))
