"""OpenDP: measurements, and pipelines that end in one.

A measurement has a privacy map: the epsilon that it states for a distance of its inputs is the
claim that is judged here, at the distance of the pair. What it states as a zero-concentrated
divergence is judged after the library's own conversion to epsilon and delta.
"""

import functools

from audited import Audits

MAP = "the privacy map of opendp.measurements.{}, version 0.16"
PROOF = "Make a Measurement that {}"

audits = Audits(
    "opendp",
    noise="in whole steps of 2^k, the finest unless k is given",
    noise_report="[issue 414](https://github.com/opendp/opendp/issues/414), closed: an earlier way "
    "was open to one",
    epsilon=1.0,
    unit="two values at the distance that the map is given",
)


def measurement(name, does, **parts):
    """Describe a measurement by what its documentation says that it does."""
    more = {"quote": PROOF.format(does), "where": MAP.format(name)}
    return audits.add(f"measurements.{name}", **(more | parts))


@functools.cache
def _laplace():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    it = dp.m.make_laplace(*space, scale=1.0)
    assert it.map(1.0) == 1.0
    return it


LAPLACE = "adds noise from the Laplace(`scale`) distribution to the input."


@measurement("make_laplace", LAPLACE, pair=(0.0, 1.0))
def laplace(value):
    return _laplace()(value)


@functools.cache
def _laplace_of_integers():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    it = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
    assert it.map(2) == 1.0
    return it


@measurement("make_laplace", LAPLACE, pair=(0, 2))
def laplace_of_integers(value):
    return _laplace_of_integers()(value)


@functools.cache
def _laplace_of_vectors():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    it = dp.m.make_laplace(*space, scale=2.0)
    assert it.map(2) == 1.0
    return it


@measurement("make_laplace", LAPLACE, pair=([0, 0], [1, 1]))
def laplace_of_vectors(values):
    return _laplace_of_vectors()(values)


@functools.cache
def _geometric():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    it = dp.m.make_geometric(*space, scale=1.0, bounds=(0, 4))
    assert it.map(1) == 1.0
    return it


@measurement(
    "make_geometric",
    "",
    pair=(0, 1),
    quote="Equivalent to `make_laplace` but restricted to an integer support.",
)
def geometric(value):
    return _geometric()(value)


@functools.cache
def _gaussian():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)
    it = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0))
    assert it.map(1.0).epsilon(0.01) <= 2.7531
    return it


@measurement(
    "make_gaussian",
    "adds noise from the Gaussian(`scale`) distribution to the input.",
    pair=(0, 1),
    epsilon=2.7531,
    delta=0.01,
)
def gaussian(value):
    return _gaussian()(value)


@functools.cache
def _randomized_response_bool():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    it = dp.m.make_randomized_response_bool(prob=0.75)
    assert it.map(1) <= 1.0987
    return it


@measurement(
    "make_randomized_response_bool",
    "implements randomized response on a boolean value.",
    pair=(False, True),
    epsilon=1.0987,
)
def randomized_response_bool(value):
    return _randomized_response_bool()(value)


@functools.cache
def _randomized_response():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    it = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.5)
    assert it.map(1) <= 0.6932
    return it


@measurement(
    "make_randomized_response",
    "implements randomized response on a categorical value.",
    pair=("a", "b"),
    epsilon=0.6932,
)
def randomized_response(value):
    return _randomized_response()(value)


@functools.cache
def _randomized_response_bitvec():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    it = dp.m.make_randomized_response_bitvec(*space, f=0.5)
    assert it.map(1) <= 2.1973
    return it


@measurement(
    "make_randomized_response_bitvec",
    "implements randomized response on a bit vector.",
    pair=(bytes([1]), bytes([128])),
    tried="eight bits of which the last is set, and the first",
    epsilon=2.1973,
    report="[issue 2707](https://github.com/opendp/opendp/issues/2707) says that the last bit is "
    "not protected; it is in this version",
)
def randomized_response_bitvec(bits):
    return _randomized_response_bitvec()(bits)


@functools.cache
def _noisy_max():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    it = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0)
    assert it.map(1) == 1.0
    return it


@measurement(
    "make_noisy_max",
    "takes a vector of scores and privately selects the index of the highest score.",
    pair=([1, 0, 0], [0, 1, 1]),
)
def noisy_max(scores):
    return _noisy_max()(scores)


@functools.cache
def _noisy_top_k():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    it = dp.m.make_noisy_top_k(*space, dp.max_divergence(), k=2, scale=4.0)
    assert it.map(1) <= 1.0 + 1e-9
    return it


@measurement(
    "make_noisy_top_k",
    "takes a vector of scores and privately selects the index of the highest score.",
    pair=([1, 1, 0], [0, 0, 1]),
)
def noisy_top_k(scores):
    return _noisy_top_k()(scores)


@functools.cache
def _canonical_noise():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    it = dp.m.make_canonical_noise(*space, d_in=1.0, d_out=(1.0, 0.01))
    assert it.map(1.0) == (1.0, 0.01)
    return it


@measurement(
    "make_canonical_noise",
    "adds noise from a canonical noise distribution.",
    pair=(0.0, 1.0),
    delta=0.01,
)
def canonical_noise(value):
    return _canonical_noise()(value)


RECORDS = "symmetric distance 1: one record added"
PIPELINE = "the privacy map of a chain that ends in opendp.measurements.make_laplace, version 0.16"


def _space():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp, (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


@functools.cache
def _count():
    dp, space = _space()
    it = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    assert it.map(1) == 1.0
    return it


@audits.add(
    "transformations.then_count", pair=([1], [1, 1]), unit=RECORDS, where=PIPELINE, quote=LAPLACE
)
def count(data):
    return _count()(data)


@functools.cache
def _clamped_sum():
    dp, space = _space()
    chain = space >> dp.t.then_clamp((0, 2)) >> dp.t.then_sum()
    it = chain >> dp.m.then_laplace(scale=2.0)
    assert it.map(1) == 1.0
    return it


@audits.add(
    "transformations.then_sum", pair=([0], [0, 9]), unit=RECORDS, where=PIPELINE, quote=LAPLACE
)
def clamped_sum(data):
    return _clamped_sum()(data)


@functools.cache
def _histogram():
    dp, space = _space()
    counts = space >> dp.t.then_count_by_categories(categories=[1, 2], null_category=True)
    it = counts >> dp.m.then_laplace(scale=1.0)
    assert it.map(1) == 1.0
    return it


@audits.add(
    "transformations.then_count_by_categories",
    pair=([1, 2], [1, 2, 9]),
    unit=RECORDS,
    where=PIPELINE,
    quote=LAPLACE,
)
def histogram(data):
    return _histogram()(data)
