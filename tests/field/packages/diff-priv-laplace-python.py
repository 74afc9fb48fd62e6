"""diff-priv-laplace-python: statistics of a data set under Laplace noise.

Its documentation does not say which inputs are neighbours. A count and a sum are judged by one
record more, everything else by one record replaced.
"""

from audited import Audits

ADDED = "one record added"
REPLACED = "one record replaced (the number of records is public)"
BUDGET = "anonymizes the value(s) using the provided privacy budget"
README = "The privacy budget `epsilon` defines how much privacy protection to apply."
CONSTANT = "The sensitivity is 1 whatever the range of the data (`{}GlobalSensitivity`)."
RANGE = (
    "The sensitivity is computed from the least and the largest record (`lower = np.min(data)` and "
    "`upper = np.max(data)` in `DiffPrivStatistics.{}`), which are private."
)

audits = Audits(
    "diff-priv-laplace-python",
    noise="in doubles (`numpy.random.laplace`)",
    epsilon=1.0,
    unit=REPLACED,
    quote=BUDGET,
)


def statistic(name, **parts):
    """Describe a statistic of a data set."""
    where = f"the docstring of diffpriv_laplace.DiffPrivStatistics.{name}"
    return audits.add(f"DiffPrivStatistics.{name}", **({"where": where} | parts))


@statistic("count", unit=ADDED, pair=([1, 0, 0, 0], [1, 1, 0, 0]))
def count(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.count(data, 1.0))


@statistic("min", pair=([10.0, 10.0], [0.0, 10.0]), cause=CONSTANT.format("Min"))
def least(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.min(data, 1.0))


@statistic("max", pair=([0.0, 0.0], [0.0, 10.0]), cause=CONSTANT.format("Max"))
def largest(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.max(data, 1.0))


@statistic("median", pair=([0.0, 0.0, 10.0], [0.0, 10.0, 10.0]), cause=CONSTANT.format("Median"))
def median(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.median(data, 1.0))


@statistic("proportion", pair=([1, 0, 0, 0], [1, 1, 0, 0]))
def proportion(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.proportion(data, 1.0))


@statistic("sum", unit=ADDED, pair=([0.0, 1.0], [0.0, 1.0, 10.0]), cause=RANGE.format("sum"))
def total(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.sum(data, 1.0))


@statistic("mean", pair=([0.0, 0.0], [0.0, 1.0]), cause=RANGE.format("mean"))
def mean(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.mean(data, 1.0))


@statistic("variance", pair=([0.0, 0.0], [0.0, 1.0]), cause=RANGE.format("variance"))
def variance(data):
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.variance(data, 1.0))


def anonymizer(name, **parts):
    """Describe a method that adds noise to a value that is given."""
    where = "the section “Privacy budget” of the README"
    more = {"quote": README, "where": where, "unit": "two values that differ by the sensitivity"}
    return audits.add(f"DiffPrivLaplaceMechanism.{name}", **(more | parts))


@anonymizer("anonymize_count", pair=(0.0, 1.0))
def anonymize_count(value):
    from diffpriv_laplace import DiffPrivLaplaceMechanism

    return float(DiffPrivLaplaceMechanism(1.0).anonymize_count(value))


@anonymizer("anonymize_sum", pair=(0.0, 2.0), unit=ADDED, tried="0 and 2, with records in [0, 2]")
def anonymize_sum(value):
    from diffpriv_laplace import DiffPrivLaplaceMechanism

    return float(DiffPrivLaplaceMechanism(1.0).anonymize_sum(value, 0.0, 2.0))


@anonymizer("anonymize_mean", pair=(0.0, 0.5), tried="0 and 0.5, with four records in [0, 2]")
def anonymize_mean(value):
    from diffpriv_laplace import DiffPrivLaplaceMechanism

    return float(DiffPrivLaplaceMechanism(1.0).anonymize_mean(value, 0.0, 2.0, 4))


@anonymizer("anonymize_variance", pair=(0.0, 0.75), tried="0 and 0.75: four records in [0, 2]")
def anonymize_variance(value):
    from diffpriv_laplace import DiffPrivLaplaceMechanism

    return float(DiffPrivLaplaceMechanism(1.0).anonymize_variance(value, 0.0, 2.0, 4))
