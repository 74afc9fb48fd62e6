"""diffpriv-pure: four functions of the standard library alone.

Its documentation does not say which inputs are neighbours. A count is judged by one record more, a
sum and a mean, whose sensitivity is the width of the bounds, by one record replaced.
"""

from audited import Audits

REPLACED = "one record replaced (the number of records is public)"
README = "the README of the package"

audits = Audits("diffpriv-pure", noise="in doubles (`random.random`)", epsilon=1.0)


@audits.add(
    "private_sum",
    unit=REPLACED,
    quote="Pure ε-DP: Laplace noise for a sum query",
    where=README,
    pair=([0.0, 0.0], [0.0, 1.0]),
)
def private_sum(data):
    from diffpriv_pure import private_sum

    return private_sum(values=data, bounds=(0.0, 1.0), epsilon=1.0)


@audits.add(
    "private_mean",
    unit=REPLACED,
    quote="Relaxed (ε, δ)-DP: Gaussian noise for a mean",
    where=README,
    pair=([0.0, 0.0], [0.0, 1.0]),
    delta=0.01,
)
def private_mean(data):
    from diffpriv_pure import private_mean

    return private_mean(values=data, bounds=(0.0, 1.0), epsilon=1.0, delta=0.01)


def _of_a_large_epsilon(value):
    from diffpriv_pure import gaussian_sigma
    from scipy.stats import norm

    scale = gaussian_sigma(sensitivity=1.0, epsilon=10.0, delta=1e-5)
    # Of all events, the half-line on which the density of 0 is exp(epsilon) times that of 1.
    below = norm.cdf(0.5 - 10.0 * scale**2, loc=value, scale=scale)
    return [below, 1 - below]


@audits.add(
    "gaussian_sigma",
    unit="two values that differ by the sensitivity",
    quote="σ = Δf·√(2·ln(1.25/δ))/ε (Balle & Wang 2018).",
    where="the docstring of diffpriv_pure.gaussian_sigma",
    pair=(0.0, 1.0),
    epsilon=10.0,
    delta=1e-5,
    distribution=_of_a_large_epsilon,
    cause="The formula is proved to be enough where ε is less than 1, and is taken for every ε. "
    "The paper that is cited says so, and gives another.",
    report="[Balle and Wang](https://proceedings.mlr.press/v80/balle18a.html), of the formula",
)
def gaussian_of_a_large_epsilon(value):
    from diffpriv_pure import gaussian_noise, gaussian_sigma

    return value + gaussian_noise(gaussian_sigma(sensitivity=1.0, epsilon=10.0, delta=1e-5))


@audits.add(
    "private_count",
    unit="one record added",
    quote="Shifted geometric for pure ε-DP integer counts.",
    where="the docstring of diffpriv_pure.geometric_noise",
    pair=(0, 1),
    cause="`geometric_noise` draws from a geometric distribution on one side: the noise is never "
    "negative, so the smaller count can give an output that the larger one cannot.",
)
def private_count(count):
    from diffpriv_pure import private_count

    return private_count(condition_count=count, epsilon=1.0)


@audits.add(
    "laplace_noise",
    unit="two values that differ by the sensitivity",
    quote="Lap(0, b) — pure ε-DP.",
    where="the docstring of diffpriv_pure.laplace_noise",
    pair=(0.0, 1.0),
)
def laplace_noise(value):
    from diffpriv_pure import laplace_noise

    return value + laplace_noise(scale=1.0, epsilon=1.0)
