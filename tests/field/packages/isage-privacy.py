"""isage-privacy: Laplace and Gaussian noise, sums, means and counts."""

from audited import Audits

audits = Audits(
    "isage-privacy",
    noise="in doubles (`numpy.random.laplace`)",
    epsilon=1.0,
    unit="two values that differ by the sensitivity",
    pair=(0.0, 1.0),
)


@audits.add(
    "LaplaceMechanism",
    quote="This module implements the Laplace mechanism for pure ε-differential privacy.",
    where="the docstring of sage_privacy.dp.laplace",
)
def laplace(value):
    from sage_privacy.dp import LaplaceMechanism

    return value + LaplaceMechanism(epsilon=1.0, sensitivity=1.0).compute_noise()


@audits.add(
    "GaussianMechanism",
    quote="This module implements the Gaussian mechanism for (ε,δ)-differential privacy.",
    where="the docstring of sage_privacy.dp.gaussian",
    delta=0.01,
)
def gaussian(value):
    from sage_privacy.dp import GaussianMechanism

    return value + GaussianMechanism(epsilon=1.0, delta=0.01, sensitivity=1.0).compute_noise()
