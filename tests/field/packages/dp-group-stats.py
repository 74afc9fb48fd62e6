"""dp-group-stats: the noise under its pipeline for statistics of groups."""

from audited import Audits

audits = Audits("dp-group-stats", noise="in doubles (`secrets.SystemRandom`)", epsilon=1.0)


@audits.add(
    "laplace_noise",
    unit="two values that differ by the sensitivity",
    quote="Sample from a Laplace distribution calibrated to (epsilon, sensitivity).",
    where="the docstring of dp_group_stats.mechanisms.laplace_noise",
    pair=(0.0, 1.0),
)
def laplace(value):
    from dp_group_stats import laplace_noise

    return value + laplace_noise(1.0, 1.0)
