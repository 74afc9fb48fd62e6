"""eeprivacy: mechanisms and operations for data on the use of energy.

What it documents does not say which inputs are neighbours. Sums and means scale their noise to the
width of the bounds, so one record is replaced; histograms and quantiles, which scale it to what one
individual contributes, have one record more.
"""

from audited import Audits

VALUES = "two values that differ by the sensitivity"
REPLACED = "one record replaced (the number of records is public)"
ADDED = "one record added"
DOCSTRING = "the docstring of eeprivacy.{}"
MECHANISM = (
    "adding noise to `value` to realize differential private at {} for the provided `sensitivity`"
)

audits = Audits("eeprivacy", noise="in doubles (`numpy.random.laplace`)", epsilon=1.0)


@audits.add(
    "mechanisms.LaplaceMechanism",
    unit=VALUES,
    quote=MECHANISM.format("`epsilon`"),
    where=DOCSTRING.format("mechanisms.LaplaceMechanism.execute"),
    pair=(0.0, 1.0),
)
def laplace(value):
    from eeprivacy.mechanisms import LaplaceMechanism

    return LaplaceMechanism.execute(value=value, epsilon=1.0, sensitivity=1.0)


@audits.add(
    "mechanisms.GaussianMechanism",
    unit=VALUES,
    quote=MECHANISM.format("(`epsilon`, `delta`)"),
    where=DOCSTRING.format("mechanisms.GaussianMechanism.execute"),
    pair=(0.0, 1.0),
    delta=0.01,
)
def gaussian(value):
    from eeprivacy.mechanisms import GaussianMechanism

    return GaussianMechanism.execute(value=value, epsilon=1.0, delta=0.01, sensitivity=1.0)


def _of_a_large_epsilon(value):
    from eeprivacy.mechanisms import GaussianMechanism
    from scipy.stats import norm

    scale = GaussianMechanism.scale(sensitivity=1.0, epsilon=10.0, delta=1e-5)
    # Of all events, the half-line on which the density of 0 is exp(epsilon) times that of 1.
    below = norm.cdf(0.5 - 10.0 * scale**2, loc=value, scale=scale)
    return [below, 1 - below]


@audits.add(
    "mechanisms.GaussianMechanism",
    unit=VALUES,
    quote=MECHANISM.format("(`epsilon`, `delta`)"),
    where=DOCSTRING.format("mechanisms.GaussianMechanism.execute"),
    pair=(0.0, 1.0),
    distribution=_of_a_large_epsilon,
    cause="The standard deviation Δ√(2 ln(1.25/δ))/ϵ (`GaussianMechanism.scale`) is proved to be "
    "enough where ϵ is less than 1, and is taken for every ϵ.",
    report="[Balle and Wang](https://proceedings.mlr.press/v80/balle18a.html), of the formula",
    epsilon=10.0,
    delta=1e-5,
)
def gaussian_of_a_large_epsilon(value):
    from eeprivacy.mechanisms import GaussianMechanism

    return GaussianMechanism.execute(value=value, epsilon=10.0, delta=1e-5, sensitivity=1.0)


@audits.add(
    "operations.PrivateClampedSum",
    unit=REPLACED,
    quote="Compute a sum, bounding sensitivity with clamping.",
    where=DOCSTRING.format("operations.PrivateClampedSum"),
    pair=([0.0, 0.0], [0.0, 9.0]),
)
def clamped_sum(data):
    from eeprivacy.operations import PrivateClampedSum

    return PrivateClampedSum(lower_bound=0.0, upper_bound=1.0).execute(values=data, epsilon=1.0)


@audits.add(
    "operations.PrivateClampedMean",
    unit=REPLACED,
    quote="Compute a mean, bounding sensitivity with clamping.",
    where=DOCSTRING.format("operations.PrivateClampedMean"),
    pair=([0.0, 0.0], [0.0, 9.0]),
    cause="The values are summed as they are (`np.sum(values)` in `PrivateClampedMean.execute`); "
    "only the output is clamped.",
)
def clamped_mean(data):
    from eeprivacy.operations import PrivateClampedMean

    return PrivateClampedMean(lower_bound=0.0, upper_bound=1.0).execute(values=data, epsilon=1.0)


@audits.add(
    "operations.PrivateVectorClampedMeanGaussian",
    unit=REPLACED,
    quote="Computes the elementwise mean of `vectors` privately using a clamped sum and exact "
    "count with the Gaussian Mechanism.",
    where=DOCSTRING.format("operations.PrivateVectorClampedMeanGaussian.execute"),
    pair=([[0.0, 0.0]], [[1.0, 1.0]]),
    delta=0.01,
)
def vector_mean_gaussian(data):
    from eeprivacy.operations import PrivateVectorClampedMeanGaussian

    mean = PrivateVectorClampedMeanGaussian(lower_bound=0.0, upper_bound=1.0, k=2, N=1)
    return mean.execute(vectors=data, epsilon=1.0, delta=0.01)


@audits.add(
    "operations.PrivateVectorClampedMeanLaplace",
    unit=REPLACED,
    quote="Computes the mean of `vectors` privately using a clamped sum and exact count with the "
    "Laplace Mechanism.",
    where=DOCSTRING.format("operations.PrivateVectorClampedMeanLaplace.execute"),
    pair=([[0.0, 0.0]], [[1.0, 0.0]]),
    cause="One number is drawn and added to every coordinate (`LaplaceMechanism.execute` in "
    "`PrivateVectorClampedMeanLaplace.execute`), so the difference of two has no noise.",
)
def vector_mean_laplace(data):
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    mean = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=2, N=1)
    first, second = mean.execute(vectors=data, epsilon=1.0, delta=0.0)
    return round(first - second, 9)


@audits.add(
    "operations.PrivateHistogram",
    unit=ADDED,
    quote="Compute a private histogram with the Laplace Mechanism.",
    where=DOCSTRING.format("operations.PrivateHistogram"),
    pair=([0.5, 1.5], [0.5, 1.5, 1.6]),
)
def histogram(data):
    from eeprivacy.operations import PrivateHistogram

    return PrivateHistogram(bins=[0.0, 1.0, 2.0]).execute(values=data, epsilon=1.0)


@audits.add(
    "operations.PrivateQuantile",
    unit=ADDED,
    quote="Find quantiles privately with the `Report Noisy Max` mechanism.",
    where=DOCSTRING.format("operations.PrivateQuantile"),
    pair=([2.0, 2.0] + [4.0] * 8, [0.0, 2.0, 2.0] + [4.0] * 8),
    tried="two values between two options and eight above them, and one more below them; the tenth",
    trials=200_000,
    cause="The noise of report noisy max has the scale sensitivity/ϵ, which is enough for scores "
    "that all move one way (as in the cited claim); these move apart, and need twice as much.",
)
def quantile(data):
    import numpy as np
    from eeprivacy.operations import PrivateQuantile

    values = np.array(data)
    return PrivateQuantile(options=[1.0, 3.0]).execute(values=values, epsilon=1.0, quantile=0.1)
