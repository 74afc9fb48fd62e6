"""dp-accounting: noise with the parameters that it works out for an epsilon and a delta.

It draws no noise itself. What is judged is the mechanism that its parameters describe, at two
values that differ by the sensitivity: for Gaussian noise the event that tells most of all.
"""

from audited import Audits

LOSS = (
    "the docstring of dp_accounting.pld.privacy_loss_mechanism.{}PrivacyLoss.from_privacy_guarantee"
)

audits = Audits(
    "dp-accounting",
    noise="none: it draws nothing",
    epsilon=1.0,
    unit="two values that differ by the sensitivity",
    pair=(0, 1),
)


def noise(kind, quote, distribution, **parts):
    """Describe the noise that a privacy loss with a given guarantee stands for."""
    name = f"pld.{kind}PrivacyLoss.from_privacy_guarantee"
    return audits.add(
        name, quote=quote, where=LOSS.format(kind), distribution=distribution, **parts
    )


def _wanted(delta=0.0):
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    return DifferentialPrivacyParameters(1.0, delta)


def _drawn(value, distribution, rng):
    return bool(rng.random() < distribution(value)[0])


def _laplace(value):
    from dp_accounting.pld.privacy_loss_mechanism import LaplacePrivacyLoss
    from scipy.stats import laplace

    scale = LaplacePrivacyLoss.from_privacy_guarantee(_wanted()).parameter
    below = laplace.cdf(0, loc=value, scale=scale)
    return [below, 1 - below]


@noise("Laplace", "Creates the privacy loss for Laplace mechanism with given privacy.", _laplace)
def laplace(value, rng):
    return _drawn(value, _laplace, rng)


def _below(value, scale, epsilon):
    from scipy.stats import norm

    # Of all events, the half-line on which the density of 0 is exp(epsilon) times that of 1.
    below = norm.cdf(0.5 - epsilon * scale**2, loc=value, scale=scale)
    return [below, 1 - below]


def _gaussian(value):
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss.from_privacy_guarantee(_wanted(0.01))
    return _below(value, loss.standard_deviation, 1.0)


@noise(
    "Gaussian",
    "Uses binary search to find the smallest possible standard deviation of the Gaussian noise for "
    "which the mechanism is (epsilon, delta)-differentially private, with respect to the REMOVE "
    "relation.",
    _gaussian,
    delta=0.01,
)
def gaussian(value, rng):
    return _drawn(value, _gaussian, rng)


def _discrete_laplace(value):
    import numpy as np
    from dp_accounting.pld.privacy_loss_mechanism import DiscreteLaplacePrivacyLoss

    decay = DiscreteLaplacePrivacyLoss.from_privacy_guarantee(_wanted()).parameter
    weights = np.exp(-decay * np.abs(np.arange(-60, 61) - value))
    middle = np.tanh(decay / 2) * weights[1:-1]
    ends = weights[[0, -1]] / (1 + np.exp(-decay))  # all that lies beyond
    return np.array([ends[0], *middle, ends[1]])


@noise(
    "DiscreteLaplace",
    "Creates privacy loss for discrete Laplace mechanism with desired privacy.",
    _discrete_laplace,
)
def discrete_laplace(value, rng):
    return _drawn(value, _discrete_laplace, rng)


def _discrete_gaussian(value):
    import numpy as np
    from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss

    scale = DiscreteGaussianPrivacyLoss.from_privacy_guarantee(_wanted(0.01))._sigma
    # Beyond a hundred there is less than the smallest double.
    weights = np.exp(-((np.arange(-100, 101) - value) ** 2) / (2 * scale**2))
    return weights / weights.sum()


@noise(
    "DiscreteGaussian",
    "Uses binary search to find the smallest possible standard deviation of the discrete Gaussian "
    "noise for which the protocol is (epsilon, delta)-DP.",
    _discrete_gaussian,
    delta=0.01,
)
def discrete_gaussian(value, rng):
    return _drawn(value, _discrete_gaussian, rng)


def _sigma(value):
    from dp_accounting.gaussian_mechanism import get_sigma_gaussian

    return _below(value, get_sigma_gaussian(1.0, 0.01), 1.0)


@audits.add(
    "gaussian_mechanism.get_sigma_gaussian",
    quote="Compute the noise std for the Gaussian mechanism with the given DP params.",
    where="the docstring of dp_accounting.gaussian_mechanism.get_sigma_gaussian",
    distribution=_sigma,
    delta=0.01,
)
def sigma(value, rng):
    return _drawn(value, _sigma, rng)


def _calibrated(value):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    scale = dp_accounting.calibrate_dp_mechanism(
        PLDAccountant, dp_accounting.GaussianDpEvent, target_epsilon=1.0, target_delta=0.01
    )
    return _below(value, scale, 1.0)


@audits.add(
    "calibrate_dp_mechanism, Gaussian",
    quote="A value of the parameter within tol of the optimum subject to the privacy constraint.",
    where="the docstring of dp_accounting.calibrate_dp_mechanism",
    distribution=_calibrated,
    delta=0.01,
)
def calibrated(value, rng):
    return _drawn(value, _calibrated, rng)
