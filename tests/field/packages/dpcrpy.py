"""dpcrpy: running totals of a stream, released at every step.

A mechanism asks for the noise that it needs by its own sensitivity, for streams that differ by 1 at
one time: these are the neighbours here. The whole sequence of totals is its output.
"""

from audited import Audits

audits = Audits(
    "dpcrpy",
    noise="in doubles (`numpy.random`)",
    epsilon=1.0,
    unit="two streams that differ by 1 at one time (as its method getL1Sens has it)",
    quote="Satisfying (ε = 1.0,δ = 0) - DP",
    where="the description of itself that a LapNoiMech of epsilon 1 prints",
    trials=5_000,
)

THREE = {"pair": ((0, 0, 0), (1, 0, 0))}
FOUR = {"pair": ((0, 0, 0, 0), (1, 0, 0, 0))}
GAUSSIAN = {
    "quote": "Satisfying (ε = 1.0,δ = 0.01) - DP",
    "where": "the description of itself that a GaussNoiMech of epsilon 1 and delta 0.01 prints",
    "unit": "two streams that differ by 1 at one time (as its method getL2Sens has it)",
    "delta": 0.01,
}


def _totals(mechanism, stream):
    return [float(mechanism.dpRelease(value)[0]) for value in stream]


@audits.add("LapNoiMech", unit="two values that differ by 1, the sensitivity", pair=(0.0, 1.0))
def laplace(value):
    from dpcrpy.framework.noiMech import LapNoiMech

    return float(value + LapNoiMech(epsilon=1.0).genNoise())


@audits.add(
    "GaussNoiMech",
    **(GAUSSIAN | {"unit": "two values that differ by 1, the sensitivity"}),
    pair=(0.0, 1.0),
)
def gaussian(value):
    from dpcrpy.framework.noiMech import GaussNoiMech

    return float(value + GaussNoiMech(epsilon=1.0, delta=0.01).genNoise())


@audits.add("SimpleMech", **THREE)
def simple(stream):
    from dpcrpy import SimpleMech
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(SimpleMech(T=3, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("TwoLevel", **FOUR)
def two_level(stream):
    from dpcrpy import TwoLevel
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(TwoLevel(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("BinMech", **FOUR)
def binary(stream):
    from dpcrpy import BinMech
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(BinMech(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("Honaker", **FOUR)
def honaker(stream):
    from dpcrpy import Honaker
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(Honaker(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("FDA", **THREE)
def fda(stream):
    from dpcrpy import FDA
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(FDA(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("BCRG", **THREE)
def bcrg(stream):
    from dpcrpy import BCRG
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(BCRG(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("ABCRG", **THREE)
def abcrg(stream):
    from dpcrpy import ABCRG
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(ABCRG(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("AuBCR", **FOUR)
def aubcr(stream):
    from dpcrpy import AuBCR
    from dpcrpy.framework.noiMech import LapNoiMech

    return _totals(AuBCR(kOrder=2, noiMech=LapNoiMech(epsilon=1.0)), stream)


@audits.add("KTCR", **(GAUSSIAN | FOUR))
def ktcr(stream):
    from dpcrpy import KTCR
    from dpcrpy.framework.noiMech import GaussNoiMech

    return _totals(
        KTCR(h=2, noiMech=GaussNoiMech(epsilon=1.0, delta=0.01), withPrivateBudget=False), stream
    )
