"""Tumult Core: its measurements of single numbers, and its quantile.

A measurement has a privacy function: what it states for a distance of its inputs is the claim, at
the distance of the pair. What it states as zero-concentrated, with parameter ρ, is judged at
ρ + 2√(ρ ln(1/δ)), which follows from it. What needs a Spark session, and so Java, is left out.
"""

import functools

from audited import Audits

STATED = "Returns the smallest d_out satisfied by the measurement."
WHERE = "the docstring of tmlt.core.measurements.{}.privacy_function"
CONCENTRATED = {"epsilon": 3.535, "delta": 0.01}  # of ρ = 1/2

audits = Audits(
    "tmlt-core",
    noise="in intervals (`flint.arb`), refined until one double is left",
    epsilon=1.0,
    unit="two values at the distance that the privacy function is given",
    quote=STATED,
    trials=4_000,
)


def number(name, **parts):
    """Describe a measurement of one number."""
    return audits.add(name, where=WHERE.format(f"noise_mechanisms.{name}"), **parts)


@functools.cache
def _laplace():
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.measurements.noise_mechanisms import AddLaplaceNoise

    it = AddLaplaceNoise(NumpyFloatDomain(), scale=1)
    assert it.privacy_function(1) == 1
    return it


@number("AddLaplaceNoise", pair=(0.0, 1.0))
def laplace(value):
    return _laplace()(value)


@functools.cache
def _geometric():
    from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise

    it = AddGeometricNoise(alpha=2)
    assert it.privacy_function(2) == 1
    return it


@number("AddGeometricNoise", pair=(0, 2))
def geometric(value):
    import numpy as np

    return _geometric()(np.int64(value))


@functools.cache
def _discrete_gaussian():
    from tmlt.core.measurements.noise_mechanisms import AddDiscreteGaussianNoise

    it = AddDiscreteGaussianNoise(sigma_squared=1)
    assert it.privacy_function(1) == "1/2"
    return it


@number("AddDiscreteGaussianNoise", pair=(0, 1), **CONCENTRATED)
def discrete_gaussian(value):
    import numpy as np

    return _discrete_gaussian()(np.int64(value))


@functools.cache
def _gaussian():
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise

    it = AddGaussianNoise(NumpyFloatDomain(), sigma_squared=1)
    assert it.privacy_function(1) == "1/2"
    return it


@number("AddGaussianNoise", pair=(0.0, 1.0), **CONCENTRATED)
def gaussian(value):
    return _gaussian()(value)


@functools.cache
def _median():
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP

    domain = PandasSeriesDomain(NumpyFloatDomain())
    it = NoisyQuantile(domain, PureDP(), quantile=0.5, lower=0.0, upper=1.0, epsilon=1)
    assert it.privacy_function(1) == 1
    return it


@audits.add(
    "NoisyQuantile",
    where=WHERE.format("pandas_measurements.series.NoisyQuantile"),
    unit="symmetric difference 1: one record added",
    pair=([0.2] * 3, [0.2] * 3 + [0.8]),
    tried="three values 0.2, and these with 0.8; the median",
)
def median(data):
    import pandas as pd

    return float(_median()(pd.Series(data)))
