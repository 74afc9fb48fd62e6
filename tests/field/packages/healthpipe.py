"""healthpipe: counts, means and histograms of clinical records."""

from audited import Audits

audits = Audits(
    "healthpipe",
    noise="in doubles (`numpy.random.laplace`)",
    epsilon=1.0,
    unit="two values that differ by the sensitivity",
    pair=(0.0, 1.0),
)


@audits.add(
    "LaplaceMechanism",
    quote="The Laplace mechanism satisfies pure (epsilon, 0)-differential privacy.",
    where="the docstring of healthpipe.privacy.differential.LaplaceMechanism",
)
def laplace(value):
    from healthpipe.privacy import LaplaceMechanism

    return LaplaceMechanism(sensitivity=1.0, epsilon=1.0).release(value)


@audits.add(
    "GaussianMechanism",
    quote="Add Gaussian noise for (epsilon, delta)-differential privacy.",
    where="the docstring of healthpipe.privacy.differential.GaussianMechanism",
    delta=0.01,
)
def gaussian(value):
    from healthpipe.privacy import GaussianMechanism

    return GaussianMechanism(sensitivity=1.0, epsilon=1.0, delta=0.01).release(value)
