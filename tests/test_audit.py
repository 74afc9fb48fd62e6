import dataclasses
import functools
import itertools
import math
import types
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from dpnotes import audit
from dpnotes.audit import (
    _lower_bound,
    epsilon_lower_bound,
    exact_delta,
    exact_epsilon,
    largest_certifiable_epsilon,
)
from dpnotes.release import Release


def slow_epsilon(rows, pairs):
    """Take every pair and every output in turn, in exact arithmetic."""
    losses = [0.0]
    for i, j in pairs:
        for both in zip(rows[i], rows[j], strict=True):
            q, p = sorted(map(Fraction, both))
            if q < p:
                losses.append(math.inf if q == 0 else log_of_fraction(p / q))
    return max(losses)


def log_of_fraction(ratio):
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


@st.composite
def laws(draw):
    columns = draw(st.integers(1, 5))
    small = st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 2.3e-308, 1e-200, 1e-17, 0.1, 0.1 + 1e-15])
    entry = st.one_of(small, st.floats(0, 1 / columns))
    free = draw(st.lists(st.tuples(*[entry] * (columns - 1)), min_size=1, max_size=4))
    return [[*row, 1 - math.fsum(row)] for row in free]


@pytest.mark.claim("fd-def-dp", "audit.exact_epsilon", kind="enumeration")
@given(laws())
@example([[0.3, 0.7], [0.3 + 5e-13, 0.7 - 5e-13]])
def test_exact_epsilon_is_what_a_slow_loop_over_fractions_finds(rows):
    expected = slow_epsilon(rows, itertools.combinations(range(len(rows)), 2))
    assert exact_epsilon(rows) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(laws(), st.data())
def test_exact_epsilon_over_chosen_neighbours_is_what_a_slow_loop_finds(rows, data):
    index = st.integers(0, len(rows) - 1)
    pairs = data.draw(st.lists(st.tuples(index, index), min_size=1))
    expected = slow_epsilon(rows, pairs)
    assert exact_epsilon(rows, neighbours=pairs) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_many_neighbours_are_compared_in_blocks(monkeypatch):
    # The larger loss is that of the first row over the second, whichever of them comes first.
    law = np.array([[0.5, 0.5, 0, 0], [0.1, 0.9, 0, 0], [0.25] * 4])
    monkeypatch.setattr(audit._exact, "_PAIR_BLOCK", 32)
    pairs = np.full((17, 2), 2)
    assert exact_epsilon(law, neighbours=pairs) == 0.0
    for place, pair in itertools.product(range(len(pairs)), ([0, 1], [1, 0])):
        changed = pairs.copy()
        changed[place] = pair
        assert exact_epsilon(law, neighbours=changed) == pytest.approx(math.log(5))


def test_a_law_may_be_given_in_any_real_type():
    halves = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]]
    assert exact_epsilon(halves) == pytest.approx(math.log(2))
    assert exact_epsilon(np.eye(2, dtype=bool)) == math.inf
    assert exact_epsilon(np.array([[0.5, 0.5], [0.25, 0.75]], np.float16)) == exact_epsilon(halves)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], "row 1 has 1.5"),
        ([[0.5, 0.5], [0.5, 0.5 - 1e-8]], "sum to 1, row 1 sums to 0.99999999"),
        ([[0, 1], [Fraction(1, 10**400), 1]], "digits, row 1 has a smaller one"),
        ([[Fraction(1, 2**1022), 1], [Fraction(1, 2**1023), 1]], "digits, row 1 has"),
    ],
)
def test_what_is_not_a_law_is_refused(law, message):
    with pytest.raises(ValueError, match=message):
        exact_epsilon(law)


def slow_delta(rows, ratio):
    """Try every set of outputs on every ordered pair of rows, in exact arithmetic."""
    worst = Fraction(0)
    for first, second in itertools.permutations(rows, 2):
        excesses = [Fraction(p) - ratio * Fraction(q) for p, q in zip(first, second, strict=True)]
        sizes = range(1, len(excesses) + 1)
        sets = itertools.chain(*(itertools.combinations(excesses, size) for size in sizes))
        worst = max(worst, *map(sum, sets))
    return worst


@pytest.mark.claim("fd-def-dp", "audit.exact_delta", kind="enumeration")
@given(laws(), st.sampled_from([0.0, 1e-12, 0.3, 1.0, 5.0, 40.0]))
def test_exact_delta_is_that_of_the_worst_set_of_outputs(rows, epsilon):
    expected = float(slow_delta(rows, Fraction(math.exp(epsilon))))
    assert exact_delta(rows, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(st.integers(2, 5), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_from_its_exact_epsilon_on_a_mechanism_needs_no_delta(inputs, outputs, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=inputs)
    epsilon = exact_epsilon(rows)
    assert exact_delta(rows, epsilon) == 0.0
    assert exact_delta(rows, 2 * epsilon) == 0.0
    assert exact_delta(rows, 0.99 * epsilon) > 0.0


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_exact_delta_of_a_composition_is_the_published_sum(epsilon):
    each, times = 0.4, 10
    keep = 1 / (1 + math.exp(-each))
    sequences = [
        functools.reduce(np.kron, [coin] * times) for coin in ([keep, 1 - keep], [1 - keep, keep])
    ]
    heads = np.arange(times + 1)
    weights = stats.binom.pmf(heads, times, keep)
    published = weights @ np.maximum(1 - np.exp(epsilon - (2 * heads - times) * each), 0)
    assert exact_delta(sequences, epsilon) == pytest.approx(published, rel=1e-9, abs=0)


def test_a_huge_epsilon_leaves_what_one_input_alone_can_give():
    law = [[5e-324, 0.75, 0.25], [1.0, 0.0, 0.0]]
    assert exact_delta(law, 1e6) == 1.0
    assert exact_delta([[0.5, 0.5], [5e-324, 1.0]], 800.0) == 0.0
    found = exact_delta([[0.5, 0.5], [1e-300, 1.0]], 690.0)
    assert found == pytest.approx(0.5 - math.exp(690.0) * 1e-300, rel=1e-9, abs=0)


def randomized_response(epsilon, categories=2):
    keep = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)

    def mechanism(truth, *, rng):
        if rng.random() < keep:
            return truth
        return int(truth + rng.integers(1, categories)) % categories

    return mechanism


def laplace(scale):
    return lambda truth, *, rng: truth + rng.laplace(0, scale, np.shape(truth) or None)


def gaussian(sigma):
    return lambda truth, *, rng: truth + rng.normal(0, sigma)


def geometric(epsilon):
    stop = -math.expm1(-epsilon)
    return lambda truth, *, rng: truth + int(rng.geometric(stop) - rng.geometric(stop))


def unary(p, q, categories=6):
    def mechanism(truth, *, rng):
        bits = np.arange(categories) == truth
        return (rng.random(categories) < np.where(bits, p, q)).astype(np.uint8)

    return mechanism


def truth_by_the_wrong_coin(truth, *, rng):
    # Direct encoding by two coins at epsilon 1, ten categories; the coins' roles are swapped.
    tell = (math.e - 1) / (math.e + 9)
    return int(rng.integers(10)) if rng.random() < tell else truth


def leaks_one_time_in_a_hundred(truth, *, rng):
    return truth if rng.random() < 0.01 else truth + rng.laplace(0, 1)


def own_seed(truth):
    return truth + np.random.default_rng(0).laplace(0, 1)


def one_of_ten_seeds(truth, *, rng):
    return truth + np.random.default_rng(int(rng.integers(10))).laplace(0, 1)


def copied_generator(truth, *, rng):
    copy = np.random.Generator(type(rng.bit_generator)())
    copy.bit_generator.state = rng.bit_generator.state
    return truth + copy.laplace(0, 1)


def default_seed(truth, *, rng=0):
    return truth + np.random.default_rng(rng).laplace(0, 1)


def needs_both_classes(labels, *, rng):
    if len(set(labels)) < 2:
        raise ValueError("labels must hold both classes")
    return rng.laplace(0, 1)


def names_the_missing(labels, *, rng):
    raise KeyError(min({0, 1, 2} - set(labels)))


def another_type(truth, *, rng):
    noisy = rng.laplace(0, 1)
    return noisy if truth else np.float64(noisy)


def noise_on_one_coordinate(truth, *, rng):
    noisy = np.array(truth, dtype=float)
    noisy[0] += rng.laplace(0, 1)
    return noisy


def noise_shared_by_coordinates(truth, *, rng):
    return np.asarray(truth) + rng.laplace(0, 100)


def leaks_in_one_coordinate(truth, *, rng):
    noisy = np.asarray(truth) + rng.laplace(0, 1, len(truth))
    return np.where((np.arange(len(truth)) == 1) & (rng.random() < 0.02), truth, noisy)


def sign_of_zero(truth, *, rng):
    return [rng.laplace(0, 1), -0.0 if truth else 0.0]


def not_a_number(truth, *, rng):
    return math.nan if truth and rng.random() < 0.2 else rng.laplace(0, 1)


def hole_in_the_middle(truth, *, rng):
    place = rng.uniform(-1, 1)
    return math.copysign(0.3 + 0.7 * abs(place), place) if truth else place


def release_with_private_epsilon(truth, *, rng):
    words = {"mechanism": "Laplace noise", "neighbours": "one bit flipped"}
    return Release(rng.laplace(0, 1), 1.0 + 1e-9 * truth, **words)


MIXED = math.exp(0.5) / (math.exp(0.5) + 1), 1 / (math.e + 1)
WHOLE = math.e / (math.e + 1), 1 / (math.e + 1)
ZEROS, ONE = np.zeros(3), np.array([0.0, 1.0, 0.0])
WIDE = np.arange(50)
BROKEN = [
    # name, mechanism, dataset, neighbour, the epsilon it claims, trials
    ("two coins swapped", truth_by_the_wrong_coin, 3, 7, 1.0, 4000),
    ("p of one scheme, q of the other", unary(*MIXED), 0, 1, 1, 8000),
    ("p and q of the whole epsilon", unary(*WHOLE), 0, 4, 1.0, 8000),
    ("epsilon doubled", randomized_response(2.0), 0, 1, 1.0, 4000),
    ("Laplace scale halved", laplace(0.5), 0.0, 1.0, 1.0, 4000),
    ("Laplace scale inverted", laplace(0.5 / 1.0), 0.0, 1.0, 0.5, 4000),
    ("leak", leaks_one_time_in_a_hundred, 0.0, 1.0, 1.0, 16_000),
    ("leak in one coordinate", leaks_in_one_coordinate, ZEROS, ONE, 1.0, 6000),
    ("own seed", own_seed, 0.0, 1.0, 1.0, 1000),
    ("one of ten seeds", one_of_ten_seeds, 0.0, 1.0, 1.0, 1000),
    ("copied generator", copied_generator, 0.0, 1.0, 1.0, 1000),
    ("default seed", default_seed, 0.0, 1.0, 1.0, 1000),
    ("bound seed", functools.partial(default_seed, rng=0), 0.0, 1.0, 1.0, 1000),
    ("exception on one class", needs_both_classes, [0, 1], [1, 1], 1.0, 1000),
    ("message of an exception", names_the_missing, [0, 1], [1, 1], 1.0, 1000),
    ("type of the output", another_type, 0, 1, 1.0, 1000),
    ("noise on one coordinate", noise_on_one_coordinate, ZEROS, ONE, 1.0, 1000),
    ("noise shared", noise_shared_by_coordinates, ZEROS, ONE, 1.0, 1000),
    ("sign of zero", sign_of_zero, 0, 1, 1.0, 1000),
    ("hole in the middle", hole_in_the_middle, 0, 1, 1.0, 2000),
    ("NaN", not_a_number, 0, 1, 1.0, 1000),
    ("field of a release", release_with_private_epsilon, 0, 1, 1.0, 1000),
    ("delta too small", gaussian(0.5), 0.0, 1.0, 1.0, 10_000),
    ("array, one coordinate of 50", laplace(0.3), 0 * WIDE, 1 * (WIDE == 30), 1.0, 4000),
]
BROKEN = [pytest.param(*case, id=name) for name, *case in BROKEN]


@pytest.mark.parametrize(("mechanism", "dataset", "neighbour", "claim", "trials"), BROKEN)
def test_every_mechanism_broken_on_purpose_is_caught(mechanism, dataset, neighbour, claim, trials):
    assert epsilon_lower_bound(mechanism, dataset, neighbour, trials=trials, rng=1) > claim
    assert epsilon_lower_bound(mechanism, neighbour, dataset, trials=trials, rng=2) > claim


def test_the_runs_that_rank_that_choose_and_that_test_are_disjoint_and_are_all():
    for trials in (5, 6, 7, 8, 101):
        places = [np.arange(trials)[part].tolist() for part in _lower_bound._split_runs(trials)]
        assert list(itertools.chain(*places)) == list(range(trials))
        assert all(places)
        assert len(places[2]) == trials - trials // 2


def changed_from(start, seed, trials=40):
    """Yield two sets of runs that agree up to a run and differ in kind and numbers from it on."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(2 + seed, size=(2, 2, trials))
    values = rng.normal(size=(2, 2, trials, 1 + seed % 2)).round(seed % 3)
    values[1] += 9
    for each in (kinds, values):
        each[1, :, :start] = each[0, :, :start]
    for kind, value in zip(kinds, values, strict=True):
        numbers = {label: value[kind == label] for label in range(2 + seed)}
        labels = {label: np.floor(rows).astype(int) for label, rows in numbers.items()}
        numbers[_lower_bound._EVERY_STRUCTURE] = value.reshape(2 * trials, -1)
        labels[_lower_bound._EVERY_STRUCTURE] = kind.reshape(2 * trials, 1)
        words = value.reshape(2 * trials, -1) > 0.5
        yield _lower_bound.Outputs(kind, kind, numbers, labels, words, [])


@pytest.mark.parametrize("seed", range(6))
def test_the_event_is_chosen_without_a_look_at_the_runs_that_test_it(monkeypatch, seed):
    monkeypatch.setattr(_lower_bound, "_CAUTION", 1)
    runs = changed_from(20, seed)
    before, after = (_lower_bound._choose_event(outputs, 20, 0.025, 0.0) for outputs in runs)
    assert before[1] == after[1]
    assert np.array_equal(before[0][:, :20], after[0][:, :20])


@pytest.mark.parametrize("seed", range(6))
def test_outputs_are_ranked_by_the_runs_set_aside_to_learn_from_alone(seed):
    before, after = (
        [np.unique(ranks[:, :10], return_inverse=True)[1] for ranks in rankings]
        for rankings in map(_lower_bound._rank_outputs, changed_from(10, seed))
    )
    assert len(before) == len(after) > 2
    assert all(map(np.array_equal, before, after))


@pytest.mark.parametrize("many", [20, 2000])
def test_nan_is_in_a_bin_without_numbers(many):
    values = np.append(np.arange(float(many)), [np.inf, -np.inf, 1e9])
    for nans in ([math.nan] * (many // 3), [math.nan, -math.nan], []):
        known = np.append(values, nans)
        learned = np.arange(len(known) + 1) < len(known)
        bins = _lower_bound._bin_values(np.append(known, math.nan), learned)
        assert bins[: len(values)].max() < bins[-1]
        assert set(bins[len(values) :].tolist()) == {bins[-1]}
        assert bins.max() <= _lower_bound._EVERY_VALUE


@pytest.mark.parametrize(
    ("mechanism", "dataset", "neighbour", "trials", "reach"),
    [
        pytest.param(laplace(1.0), 0.0, 1.0, 300, 0.35, id="300 runs"),
        pytest.param(laplace(1.0), 0.0, 1.0, 1000, 0.56, id="1000 runs"),
        pytest.param(laplace(1.0), np.zeros(2), np.array([2, -2]), 8000, 3.0, id="array"),
    ],
)
def test_an_audit_wastes_little_of_its_runs(mechanism, dataset, neighbour, trials, reach):
    bounds = [
        epsilon_lower_bound(mechanism, dataset, neighbour, trials=trials, rng=seed)
        for seed in range(10 if trials < 8000 else 4)
    ]
    assert np.mean(bounds) > reach


def test_a_delta_lowers_the_bound_and_so_does_confidence():
    def audited(**options):
        return epsilon_lower_bound(gaussian(1.0), 0.0, 1.0, trials=4000, rng=1, **options)

    assert audited() > audited(delta=0.05) > audited(delta=0.2) > 0
    assert audited(confidence=0.5) > audited(confidence=0.95) > audited(confidence=0.9999) > 0


@pytest.mark.claim("audit.largest_certifiable_epsilon", kind="chosen cases")
@pytest.mark.parametrize(("confidence", "delta"), [(0.95, 0.0), (0.95, 0.1), (0.999, 0.0)])
def test_a_mechanism_that_tells_everything_reaches_the_largest_certifiable_epsilon(
    confidence, delta
):
    options = {"trials": 1001, "confidence": confidence, "delta": delta}
    low = ((1 - confidence) / 2) ** (1 / 501)
    bound = epsilon_lower_bound(lambda truth: truth, 0, 1, rng=0, **options)
    assert bound == largest_certifiable_epsilon(**options)
    assert bound == pytest.approx(math.log((low - delta) / (1 - low)))


def test_four_runs_certify_nothing():
    assert largest_certifiable_epsilon(4) < 0
    assert largest_certifiable_epsilon(4, delta=0.9) == -math.inf


def test_a_mechanism_that_tells_nothing_gets_zero():
    assert epsilon_lower_bound(lambda truth: None, 0, 1, trials=100, rng=0) == 0.0
    assert epsilon_lower_bound(lambda truth, rng: rng.random(), 0, 1, trials=5000, rng=0) < 0.1


def test_an_audit_is_reproducible_given_its_seed():
    def audited(rng):
        return epsilon_lower_bound(laplace(1.0), 0.0, 1.0, trials=500, rng=rng)

    assert audited(5) == audited(5) == audited(np.random.default_rng(5))
    assert len({audited(seed) for seed in range(8)}) > 1


def test_a_mechanism_is_given_the_generator_where_it_takes_rng_and_has_none_yet():
    calls, generator = [], np.random.default_rng(0)

    def recorder(data, rng=None):
        calls.append(rng)

    cases = [
        (recorder, generator),
        (lambda data, **options: recorder(data, **options), generator),
        (functools.partial(recorder, rng="mine"), "mine"),
        (lambda data, rng=None, /: recorder(data), None),
        (lambda rng: recorder(rng), None),
    ]
    for mechanism, given_to_it in cases:
        calls.clear()
        # It answers nothing, and nothing tells the data sets apart.
        assert epsilon_lower_bound(mechanism, 0, 0, trials=20, rng=generator) == 0
        assert calls == [given_to_it] * 40


def test_a_builtin_without_a_signature_can_be_audited():
    assert epsilon_lower_bound(dict, [(1, 2)], [(1, 3)], trials=100, rng=0) > 2


def now_and_then(common, tell):
    """Return `common`, but on the neighbour one time in five `tell`."""
    return lambda truth, *, rng: tell if truth and rng.random() < 0.2 else common


@dataclasses.dataclass
class Report:
    text: str
    counts: np.ndarray


@pytest.mark.parametrize(
    ("common", "tell"),
    [
        (1, 2),
        (1, True),
        (1.0, np.float64(1)),
        (1, np.int8(1)),
        (0.0, -0.0),
        (0.0, math.nan),
        (2**53, 2**53 + 1),
        (10**400, 10**400 + 1),
        (1j, np.complex128(1j)),
        (np.array([1j]), np.array([2j])),
        ("a", b"a"),
        ("a", np.str_("a")),
        (None, 0),
        ((1, 2), [1, 2]),
        ([1, "a", np.arange(3)], [1, "a", np.arange(1, 4)]),
        ({"a", 0.0}, {"a", -0.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: "a"}, {True: "a"}),
        (np.arange(3), np.arange(3.0)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (np.array([2**60]), np.array([2**60 + 1])),
        (np.array(["a"]), np.array(["b"])),
        (np.array([{"a": 1}, None]), np.array([{"a": 2}, None])),
        (Report("a", np.ones(2)), Report("a", np.zeros(2))),
    ],
)
def test_whatever_an_observer_could_tell_apart_the_audit_tells_apart(common, tell):
    bound = epsilon_lower_bound(now_and_then(common, tell), 0, 1, trials=400, rng=0)
    assert bound > 1
    assert epsilon_lower_bound(now_and_then(common, common), 0, 1, trials=400, rng=0) == 0


@pytest.mark.parametrize(
    "dress",
    [
        lambda secret, noise: 2**60 + 2**59 * secret + int(2**40 * noise),
        lambda secret, noise: complex(0.1 * noise + secret, noise),
        lambda secret, noise: np.complex64(complex(noise, 0.1 * noise + secret)),
        lambda secret, noise: (noise, np.array([2**60 + secret])),
        lambda secret, noise: np.array([2**63 + 2**20 * secret, int(2**50 * noise)], np.uint64),
    ],
)
def test_fresh_noise_hides_no_other_number_whatever_its_type(dress):
    def mechanism(secret, *, rng):
        return dress(secret, rng.random())

    assert epsilon_lower_bound(mechanism, 0, 1, trials=400, rng=0) > 3
    assert epsilon_lower_bound(mechanism, 0, 0, trials=400, rng=0) < 0.5


def bits(truth, rng):
    """Return a number whose last bytes, which no float holds, say the truth."""
    number = np.array([rng.normal()], np.longdouble)
    number.view(np.uint8)[10:] = 255 * truth
    return number


FRESH = {
    "a dict": lambda truth, new: {"count": truth, "id": new.hex()},
    "a list": lambda truth, new: [new.hex(), truth],
    "a key": lambda truth, new: {new.hex(): truth},
    "keys in some order": lambda truth, new: dict(sorted({new.hex(): 0, "t": truth}.items())),
    "the order of keys": lambda truth, new: dict.fromkeys(["ab", "ba"][truth], new.hex()),
    "a text": lambda truth, new: f"{truth} {new.hex()}",
    "a text around it": lambda truth, new: f"{new.hex()} {truth} {new.hex()}",
    "a word somewhere": lambda truth, new: " ".join(
        [new.hex()] * new[0] + ["ny"[truth], "z" * new[1]]
    ),
    "a digit": lambda truth, new: f"{int.from_bytes(new)}{truth}",
    "padding": lambda truth, new: new.hex() + truth * " ",
    "bytes": lambda truth, new: (new, truth),
    "a large integer": lambda truth, new: (int.from_bytes(250 * new), truth),
    "its last digit": lambda truth, new: 16 * int.from_bytes(4 * new) + truth,
    "a set": lambda truth, new: frozenset([new.hex(), str(truth)]),
    "a class": lambda truth, new: dataclasses.make_dataclass("ny"[truth], ["x"])(new.hex()),
    "an array": lambda truth, new: np.array([[new.hex(), str(truth)]]),
    "a long array": lambda truth, new: np.array([new.hex()] * 20 + [str(truth)] + [new.hex()] * 19),
    "a sign": lambda truth, new: f"{new.hex()} says: {'+-'[truth]}1.5 {5 * (new.hex() + ' ')}",
    "an emoji": lambda truth, new: f"{new.hex()} says {'😀😁'[truth]} {5 * (new.hex() + ' ')}",
    "words that are joined": lambda truth, new: f"{new.hex()}_{['no', 'yes'][truth]}_{new.hex()}",
}
HIDDEN = {
    "the order of a set": lambda truth, rng: {0, 8} if truth else {8, 0},
    "a kind of nan": lambda t, rng: np.uint32(0x7FE00000 - t * 0x400000).view(np.float32),
    "an order in memory": lambda truth, rng: np.asarray(np.ones((2, 2)), order="CF"[truth]),
    "bytes that no number uses": bits,
    "a list of some length": lambda truth, rng: [truth, *rng.random(rng.integers(99)).tolist()],
    "numbers of some kinds": lambda truth, rng: [
        truth,
        *[rng.choice([2, rng.random()]).item() for _ in range(8)],
    ],
    "arrays of some lengths": lambda truth, rng: [
        rng.random(rng.integers(30)),
        rng.random(rng.integers(30)),
        truth,
    ],
    "a new class": lambda truth, rng: dataclasses.make_dataclass("X" + rng.bytes(8).hex(), ["x"])(
        truth
    ),
    "an order of axes": lambda t, rng: np.ones((3, 3, 3)).transpose([(1, 0, 2), (0, 2, 1)][t]),
    "a number in a text": lambda t, rng: str((rng.random(12) + 5 * t * np.eye(12)[6]).tolist()),
}


# Without the truth no two of these can be compared.
CANNOT_BE_COMPARED = {"a key", "a list of some length", "arrays of some lengths", "a new class"}


@pytest.mark.parametrize("kind", [*FRESH, *HIDDEN])
def test_nothing_fresh_beside_the_truth_hides_it(kind):
    def mechanism(truth, *, rng):
        return FRESH[kind](truth, rng.bytes(8)) if kind in FRESH else HIDDEN[kind](truth, rng)

    assert epsilon_lower_bound(mechanism, 0, 1, trials=400, rng=0) > 3
    if kind not in CANNOT_BE_COMPARED:
        assert epsilon_lower_bound(mechanism, 0, 0, trials=400, rng=0) < 0.5


def test_a_run_id_beside_noise_costs_no_power():
    def mechanism(truth, *, rng):
        return {"count": truth + rng.laplace(), "id": rng.bytes(8).hex()}

    assert 0.8 < epsilon_lower_bound(mechanism, 0, 1, trials=8000, rng=0) < 1


def test_where_no_two_outputs_can_be_compared_there_is_no_bound():
    def mechanism(truth, *, rng):
        return [*rng.random(rng.integers(5, 99)), truth, *rng.random(rng.integers(5, 99))]

    with pytest.raises(audit.MechanismFailed, match="outputs that can be compared"):
        epsilon_lower_bound(mechanism, 0, 1, trials=400, rng=0)


def test_trials_may_be_any_integer():
    bound = epsilon_lower_bound(lambda secret: secret, 0, 1, trials=np.uint8(200), rng=0)
    assert bound == pytest.approx(largest_certifiable_epsilon(200))


def test_shared_noise_is_seen_through_infinities_and_many_coordinates():
    def mechanism(truth, *, rng):
        noisy = truth + rng.standard_cauchy()
        return np.append(noisy, math.inf if rng.random() < 0.1 else 0.0)

    data = np.zeros(40), np.eye(40)[20]
    assert epsilon_lower_bound(mechanism, *data, trials=2000, rng=0) > 4


def test_structures_with_numbers_of_their_own_are_looked_at():
    def mechanism(truth, *, rng):
        kind = rng.integers(5)
        noisy = truth + rng.laplace(0, 0.2)
        return "none" if kind > 1 else noisy if kind == 1 else (noisy, "twice")

    assert epsilon_lower_bound(mechanism, 0.0, 1.0, trials=8000, rng=0) > 2


def test_ten_thousand_kinds_of_output_are_no_evidence():
    def mechanism(truth, *, rng):
        return str(rng.integers(10**9)), rng.random()

    assert epsilon_lower_bound(mechanism, 0, 1, trials=5000, rng=0) < 0.1


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
        (OSError("no file"), ValueError, "must return in some run, every run raised"),
    ],
)
def test_an_interrupt_or_a_mechanism_that_never_returns_ends_the_audit(raised, error, message):
    def mechanism(truth):
        raise raised

    with pytest.raises(error, match=message):
        epsilon_lower_bound(mechanism, 0, 1, trials=100, rng=0)


def test_a_refusal_that_always_comes_alike_costs_nothing():
    def mechanism(truth, *, rng):
        if rng.random() < 0.9:
            raise OSError("no such file")
        return 0

    assert epsilon_lower_bound(mechanism, 0, 1, trials=1000, rng=0) == 0.0


def test_a_mechanism_that_wears_out_is_not_blamed():
    left = iter(range(1000))

    def mechanism(truth):
        return next(left) >= 0

    assert epsilon_lower_bound(mechanism, 0, 1, trials=1000, rng=0) < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 10}, "confidence 0.95 .* got 10"),
        ({"trials": 100, "delta": 0.95}, "delta 0.95, got"),
    ],
)
def test_an_audit_that_could_show_nothing_is_refused(options, message):
    with pytest.raises(ValueError, match="trials must be enough .* " + message):
        epsilon_lower_bound(lambda data: data, 0, 1, rng=0, **options)


# What a hostile mechanism may try. Each of these shows its secret to whoever looks at its output.


class LyingFloat(float):
    """A subclass, which could show the audit another value than everybody else."""


class LyingArray(np.ndarray):
    @property
    def shape(self):
        return ()


@dataclasses.dataclass
class ListWithFields(list):
    field: int


LIARS = [
    LyingFloat,
    lambda secret: np.arange(secret + 1).view(LyingArray),
    lambda secret: [LyingFloat(secret)],
    lambda secret: Report(LyingFloat(secret), np.ones(1)),
    lambda secret: types.SimpleNamespace(secret=secret),
    lambda secret: Fraction(secret, 3),
    lambda secret: np.ma.array([1.0], mask=[secret]),
    lambda secret: np.array([secret], "M8[s]"),
    lambda secret: object(),
    lambda secret: ValueError(),
    lambda secret: ListWithFields(1),
]


@pytest.mark.parametrize("dress", LIARS)
def test_an_output_of_a_kind_that_the_audit_does_not_read_is_refused_by_name(dress):
    with pytest.raises(TypeError, match=r"mechanism must return .*, no subclass of them, got \w+"):
        epsilon_lower_bound(dress, 0, 1, trials=100, rng=0)


def test_dicts_in_dicts_are_read_in_little_time():
    def mechanism(truth):
        nested = truth
        for _ in range(15):
            nested = {"b": nested, "a": 0}
        return nested

    assert epsilon_lower_bound(mechanism, 0, 1, trials=20, rng=0) > 0.5


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match="got too deep a nest"):
        epsilon_lower_bound(lambda secret: endless, 0, 1, trials=100, rng=0)


ORIGINALS = [np.array([1.0]), np.array([1, None]), [1.0], {0: 1.0}, [1.0, lambda: 0]]


@pytest.mark.parametrize("original", ORIGINALS)
def test_who_holds_the_data_of_the_audit_cannot_change_them_for_it(original):
    def mechanism(data):
        secret, original[0], data[0] = int(data[0]), 0, 0
        return secret

    bound = epsilon_lower_bound(mechanism, original, [0], trials=100, rng=0)
    assert bound == largest_certifiable_epsilon(100)


def test_copied_data_are_what_they_were():
    columns = np.asfortranarray(np.arange(12.0).reshape(3, 4))[:, ::2]
    seen = []
    epsilon_lower_bound(seen.append, columns, {"a": (columns, "text")}, trials=20, rng=0)
    for data in seen:
        copied = data["a"][0] if isinstance(data, dict) else data
        assert np.array_equal(copied, columns)
        assert copied.dtype == columns.dtype
        assert copied.flags.writeable


class SecretiveError(Exception):
    def __str__(self):
        return "always the same"


class SpeechlessError(Exception):
    def __str__(self):
        raise OSError("no words")


def with_a_cause(secret):
    error = ValueError("bad")
    error.__cause__ = KeyError(secret)
    return error


def with_a_context(secret):
    error, other = ValueError("bad"), KeyError(secret)
    error.__context__, other.__context__ = other, error
    return error


def with_a_note(secret):
    error = ValueError("bad")
    error.add_note(str(secret))
    return error


def with_an_attribute(secret):
    error = ValueError("bad")
    error.secret = secret
    return error


@pytest.mark.parametrize(
    "kind",
    [
        SystemExit,
        SecretiveError,
        SpeechlessError,
        lambda secret: SecretiveError(object(), secret),
        lambda secret: ExceptionGroup("bad", [KeyError(secret)]),
        with_a_cause,
        with_a_context,
        with_a_note,
        with_an_attribute,
    ],
)
def test_all_that_an_exception_shows_is_an_output(kind):
    def mechanism(secret, *, rng):
        if rng.random() < 0.5:
            raise kind(secret)
        return 0

    assert epsilon_lower_bound(mechanism, 0, 1, trials=200, rng=0) > 1
    assert epsilon_lower_bound(mechanism, 0, 0, trials=200, rng=0) < 0.1


def test_an_exception_given_anything_is_known_by_its_type_and_message():
    def mechanism(secret):
        raise (KeyError if secret else ValueError)([LyingFloat(0)])

    assert epsilon_lower_bound(mechanism, 0, 1, trials=100, rng=0) > 2
