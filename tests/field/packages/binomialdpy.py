"""binomialdpy: most powerful tests for a count, and the Tulap noise that they are made of.

A test rejects with a probability for each count, which is all of its output: so its epsilon is
computed. Its documentation does not say which inputs are neighbours: two counts differ by one.
"""

from audited import Audits

COUNTS = "two counts that differ by one"

audits = Audits(
    "binomialdpy",
    noise="in doubles (`numpy.random.uniform`); a test shows its decision alone",
    epsilon=1.0,
    unit=COUNTS,
    pair=(0, 1),
)


def test_of(name, quote, distribution, **parts):
    """Describe a test by its probability to reject at each of eleven counts."""
    where = f"the docstring of binomialdpy.{name}"
    return audits.add(name, quote=quote, where=where, distribution=distribution, **parts)


def _answered(probability, count, rng):
    return bool(rng.random() < probability(count)[0])


def _left(count):
    from binomialdpy import ump

    reject = ump.left(0.5, 10, 0.05, 1.0, 0.0)[count]
    return [reject, 1 - reject]


LEFT = "Calculating simple and left-sided DP-UMP tests under (&epsilon;, &delta;)-DP."


@test_of("ump.left", LEFT, _left)
def left(count, rng):
    return _answered(_left, count, rng)


def _right(count):
    from binomialdpy import ump

    reject = ump.right(0.5, 10, 0.05, 1.0, 0.0)[count]
    return [reject, 1 - reject]


RIGHT = "Calculating simple and right-sided DP-UMP tests under (&epsilon;, &delta;)-DP."


@test_of("ump.right", RIGHT, _right)
def right(count, rng):
    return _answered(_right, count, rng)


def _right_with_delta(count):
    from binomialdpy import ump

    reject = ump.right(0.5, 10, 0.05, 1.0, 0.01)[count]
    return [reject, 1 - reject]


@test_of("ump.right", RIGHT, _right_with_delta, delta=0.01, pair=(4, 5))
def right_with_delta(count, rng):
    return _answered(_right_with_delta, count, rng)


UNBIASED = "Calculating unbiased two-sided DP-UMP tests under (&epsilon;, &delta;)-DP."


def _unbiased(count):
    from binomialdpy import umpu

    reject = umpu.unbiased(0.5, 10, 0.05, 1.0, 0.0)[count]
    return [reject, 1 - reject]


@test_of("umpu.unbiased", UNBIASED, _unbiased, pair=(4, 5))
def unbiased(count, rng):
    return _answered(_unbiased, count, rng)


APPROXIMATE = (
    "Calculating asymptotically unbiased two-sided DP-UMP tests under (&epsilon;, &delta;)-DP."
)


def _approximate(count):
    from binomialdpy import umpu

    reject = umpu.approx(0.5, 10, 0.05, 1.0, 0.0)[count]
    return [reject, 1 - reject]


@test_of("umpu.approx", APPROXIMATE, _approximate, pair=(4, 5))
def approximate(count, rng):
    return _answered(_approximate, count, rng)


@audits.add(
    "tulap.random",
    quote="b: Discrete Laplace noise parameter (exp(-&epsilon;)).",
    where="the docstring of binomialdpy.ci.lower",
    pair=(0.0, 1.0),
)
def tulap(count):
    import math

    from binomialdpy.tulap import random

    return float(count + random(1, b=math.exp(-1.0))[0])
