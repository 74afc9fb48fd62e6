"""smartnoise-sql: the noise that it adds to what a database has counted and summed.

A sensitivity is "the maximum amount that any individual can affect the output", so an individual is
added. Parsing a whole query takes a second, too long for thousands of runs: it is left out.
"""

import functools

from audited import Audits

audits = Audits(
    "smartnoise-sql",
    noise="by OpenDP, in whole steps of 2^k",
    epsilon=1.0,
    unit="two values that differ by the sensitivity, what one individual can contribute",
    quote="epsilon, the total privacy budget to use per-release",
    where="the docstring of snsql.sql._mechanisms.base.AdditiveNoiseMechanism",
    trials=4_000,
)


@functools.cache
def _laplace(most):
    from snsql.sql._mechanisms import Laplace

    return Laplace(1.0, sensitivity=1, max_contrib=most)


@audits.add("Laplace", pair=(0.0, 1.0))
def laplace(value):
    return _laplace(1).release([value])[0]


@audits.add(
    "Laplace", pair=(0.0, 3.0), tried="0.0 and 3.0, where an individual may appear three times"
)
def laplace_of_three(value):
    return _laplace(3).release([value])[0]


@functools.cache
def _gaussian(most):
    from snsql.sql._mechanisms import Gaussian

    return Gaussian(1.0, delta=0.01, sensitivity=1, max_contrib=most)


@audits.add("Gaussian", pair=(0.0, 1.0), delta=0.01)
def gaussian(value):
    return _gaussian(1).release([value])[0]


@audits.add(
    "Gaussian",
    pair=(0.0, 3.0),
    delta=0.01,
    tried="0.0 and 3.0, where an individual may appear three times",
)
def gaussian_of_three(value):
    return _gaussian(3).release([value])[0]
