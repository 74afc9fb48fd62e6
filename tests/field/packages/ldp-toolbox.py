"""LDP-Toolbox: its protocols for frequencies, in the local model, without its graphical tool.

Every two values are neighbours. A report of local hashing is looked at through its hash function,
which everybody knows.
"""

from audited import Audits

FREQUENCY = "the docstring of ldp_toolbox.protocols.frequency.{}"
BUDGET = "The privacy budget for the LDP mechanism."
STRENGTH = "The privacy budget, which determines the strength of the privacy guarantee."

audits = Audits(
    "ldp-toolbox",
    noise="in doubles where a histogram is encoded (`numpy.random.laplace`), of which only what "
    "exceeds a threshold is shown; otherwise coins alone",
    epsilon=1.0,
    unit="any two values",
    quote=BUDGET,
    pair=(0, 1),
)


@audits.add(
    "GeneralizedRandomizedResponse",
    quote=STRENGTH,
    where=FREQUENCY.format("grr.GeneralizedRandomizedResponse"),
)
def grr(value):
    from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse

    return int(GeneralizedRandomizedResponse(4, 1.0).obfuscate(value))


@audits.add("UnaryEncoding, symmetric", quote=STRENGTH, where=FREQUENCY.format("ue.UnaryEncoding"))
def symmetric(value):
    from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

    return UnaryEncoding(3, 1.0, False).obfuscate(value)


@audits.add("UnaryEncoding, optimal", quote=STRENGTH, where=FREQUENCY.format("ue.UnaryEncoding"))
def optimal(value):
    from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

    return UnaryEncoding(3, 1.0, True).obfuscate(value)


@audits.add(
    "HistogramEncoding", quote="Privacy guarantee.", where=FREQUENCY.format("he.HistogramEncoding")
)
def histogram(value):
    from ldp_toolbox.protocols.frequency.he import HistogramEncoding

    return HistogramEncoding(2, 1.0).obfuscate(value)


@audits.add(
    "SubsetSelection",
    quote="The privacy budget for the SS mechanism.",
    where=FREQUENCY.format("ss.SubsetSelection"),
)
def subset(value):
    from ldp_toolbox.protocols.frequency.ss import SubsetSelection

    return SubsetSelection(8, 1.0).obfuscate(value)


@audits.add("LocalHashing, binary", where=FREQUENCY.format("lh.LocalHashing"))
def binary_hashing(value):
    import xxhash
    from ldp_toolbox.protocols.frequency.lh import LocalHashing

    report, seed = LocalHashing(4, 1.0, False).obfuscate(value)
    return [bool(report == xxhash.xxh32(str(v), seed=seed).intdigest() % 2) for v in (0, 1)]


@audits.add("LocalHashing, optimal", where=FREQUENCY.format("lh.LocalHashing"))
def optimal_hashing(value):
    import xxhash
    from ldp_toolbox.protocols.frequency.lh import LocalHashing

    report, seed = LocalHashing(4, 1.0, True).obfuscate(value)
    return [bool(report == xxhash.xxh32(str(v), seed=seed).intdigest() % 4) for v in (0, 1)]
