"""PipelineDP: aggregates by partition, and the choice of the partitions that are shown.

Its `AddDPNoiseParams` speaks of "adding or removing one privacy unit from the dataset": here that
is a person with one row. Partitions are public where an aggregate is audited.
"""

from audited import Audits

ADDED = "one privacy unit added"
ENGINE = "the docstring of pipeline_dp.DPEngine.{}"
AGGREGATE = "Computes DP aggregate metrics."
NOISE = "This method allows applying differential privacy to pre-aggregated data."
SELECT = "Retrieves a collection of differentially-private partitions."

audits = Audits(
    "pipeline-dp",
    noise="in whole steps of a grid, by python-dp",
    noise_report="[pull request 118](https://github.com/OpenMined/PipelineDP/pull/118)",
    epsilon=1.0,
    unit=ADDED,
    trials=30_000,
)


def aggregate(name, **parts):
    """Describe an aggregate of one public partition."""
    more = {"quote": AGGREGATE, "where": ENGINE.format("aggregate")}
    return audits.add(f"DPEngine.aggregate, {name}", **(more | parts))


def _released(values, metric, delta=0.0, gaussian=False):
    import pipeline_dp as p

    accountant = p.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=delta)
    noise = p.NoiseKind.GAUSSIAN if gaussian else p.NoiseKind.LAPLACE
    bounds = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    known = metric.name in ("COUNT", "PRIVACY_ID_COUNT")
    bounds |= {} if known else {"min_value": 0.0, "max_value": 1.0}
    params = p.AggregateParams(metrics=[metric], noise_kind=noise, **bounds)
    rows = [(person, "all", value) for person, value in enumerate(values)]
    extract = p.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    engine = p.DPEngine(accountant, p.LocalBackend())
    found = engine.aggregate(rows, params, extract, public_partitions=["all"])
    accountant.compute_budgets()
    return float(next(iter(found))[1][0])


@aggregate("count", pair=([0.0], [0.0, 0.0]))
def count(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.COUNT)


@aggregate("count with Gaussian noise", pair=([0.0], [0.0, 0.0]), delta=0.01)
def gaussian_count(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.COUNT, delta=0.01, gaussian=True)


@aggregate("privacy id count", pair=([0.0], [0.0, 0.0]))
def privacy_id_count(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.PRIVACY_ID_COUNT)


@aggregate("sum", pair=([0.0], [0.0, 9.0]))
def total(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.SUM)


@aggregate("mean", pair=([0.0], [0.0, 9.0]))
def mean(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.MEAN)


@aggregate("variance", pair=([0.0], [0.0, 9.0]))
def variance(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.VARIANCE)


@aggregate("median", pair=([0.0, 1.0], [0.0, 1.0, 1.0]))
def median(values):
    import pipeline_dp

    return _released(values, pipeline_dp.Metrics.PERCENTILE(50))


def _with_noise(value, kind, delta=0.0):
    import pipeline_dp as p
    from pipeline_dp.aggregate_params import AddDPNoiseParams

    accountant = p.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=delta)
    engine = p.DPEngine(accountant, p.LocalBackend())
    params = AddDPNoiseParams(noise_kind=kind, l0_sensitivity=1, linf_sensitivity=1.0)
    found = engine.add_dp_noise([("all", value)], params)
    accountant.compute_budgets()
    return float(next(iter(found))[1])


VALUES = {"unit": "two values that differ by the sensitivity", "pair": (0.0, 1.0), "quote": NOISE}


@audits.add("DPEngine.add_dp_noise, Laplace", where=ENGINE.format("add_dp_noise"), **VALUES)
def laplace(value):
    import pipeline_dp

    return _with_noise(value, pipeline_dp.NoiseKind.LAPLACE)


@audits.add(
    "DPEngine.add_dp_noise, Gaussian", where=ENGINE.format("add_dp_noise"), delta=0.01, **VALUES
)
def gaussian(value):
    import pipeline_dp

    return _with_noise(value, pipeline_dp.NoiseKind.GAUSSIAN, delta=0.01)


def selection(name, **parts):
    """Describe a way to choose the partitions that are shown."""
    more = {"quote": SELECT, "where": ENGINE.format("select_partitions"), "delta": 0.1}
    more["trials"] = 60_000
    return audits.add(f"DPEngine.select_partitions, {name}", **(more | parts))


def _selected(people, strategy):
    import pipeline_dp as p

    accountant = p.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.1)
    params = p.SelectPartitionsParams(
        max_partitions_contributed=1, partition_selection_strategy=strategy
    )
    rows = [(person, "all") for person in range(people)]
    extract = p.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1]
    )
    engine = p.DPEngine(accountant, p.LocalBackend())
    found = engine.select_partitions(rows, params, extract)
    accountant.compute_budgets()
    return len(list(found))


# Where the strategy spends the most: the geometric one at once, the others at a threshold.
ONE = {"pair": (1, 2), "tried": "one person and two in a partition"}
TWO = {"pair": (2, 3), "tried": "two people and three in a partition"}


@selection("truncated geometric", **ONE)
def truncated_geometric(people):
    from pipeline_dp import PartitionSelectionStrategy

    return _selected(people, PartitionSelectionStrategy.TRUNCATED_GEOMETRIC)


@selection("Laplace thresholding", **TWO)
def laplace_thresholding(people):
    from pipeline_dp import PartitionSelectionStrategy

    return _selected(people, PartitionSelectionStrategy.LAPLACE_THRESHOLDING)


@selection("Gaussian thresholding", **TWO)
def gaussian_thresholding(people):
    from pipeline_dp import PartitionSelectionStrategy

    return _selected(people, PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING)
