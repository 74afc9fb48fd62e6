import hashlib
import itertools
import math
from decimal import Context, Decimal, FloatOperation, Inexact, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import counts_fit, realised_bytes
from scipy import stats

from dpnotes import _coins
from dpnotes._coins import (
    _split,
    cauchy,
    complement,
    draw_bytes,
    draw_index,
    flip,
    flip_each,
    flip_either,
    laplace,
    lie_probability,
    pareto,
    student_t,
)

# A coin that is never decided, for a wrong remainder, asks for bytes without end.
pytestmark = pytest.mark.timeout(60)

SMALLEST = 5e-324
LARGEST = 1 - 2.0**-53
# Each byte settles eight bits: an ordinary double takes some eight of them, these few.
common_probabilities = st.one_of(
    st.integers(0, 255).map(lambda k: k / 256),
    st.integers(0, 65535).map(lambda k: k / 65536),
    st.floats(2**-30, LARGEST),
)


class OutOfBytesError(Exception):
    pass


@pytest.fixture(autouse=True, scope="module")
def bytes_of_the_stand_ins():
    """Let a stand-in for a generator choose each byte; a real one has the method too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _coins, "draw_bytes", lambda size, rng: np.frombuffer(rng.bytes(size), dtype=np.uint8)
        )
        yield


class ScriptedBytes:
    """A generator that gives the bytes it was told to, and stops when they are used up."""

    def __init__(self, *script):
        self.script = list(script)

    def bytes(self, size):
        if size > len(self.script):
            raise OutOfBytesError
        given, self.script = self.script[:size], self.script[size:]
        return bytes(given)


class EveryByte:
    """A generator that counts from 0 to 255, so any 256 coins in a row have every byte once.

    Those of 65,536 that are undecided are 256 in a row again, and so on: they have every pair.
    """

    def __init__(self):
        self.drawn = 0

    def bytes(self, size):
        assert size % 256 == 0
        self.drawn += size
        return np.arange(size).astype(np.uint8).tobytes()


def realised_probability(coin):
    """Return the exact probability of heads: try every next byte until no coin is undecided."""
    heads, undecided, depth = Fraction(0), [()], 0
    while undecided:
        depth += 1
        # A double has 1,074 bits after the point at most.
        assert depth <= 135, "the remainder of a coin does not end"
        tried = [(*path, byte) for path in undecided for byte in range(256)]
        undecided = []
        for path in tried:
            try:
                [landed] = coin(ScriptedBytes(*path))
                heads += Fraction(int(landed), 256**depth)
            except OutOfBytesError:
                undecided.append(path)
    return heads


# Each way to flip a single coin; the other coin's probability lies on both sides of its own.
COINS = {
    "flip": lambda p, rng: flip(1, p, rng),
    "flip_either, chosen": lambda p, rng: flip_either(np.array([True]), p, 0.7, rng),
    "flip_either, not chosen": lambda p, rng: flip_either(np.array([False]), 0.7, p, rng),
    "flip_each": lambda p, rng: flip_each(np.array([p]), rng),
}


def flip_at_most(size, p, rng):
    """A broken coin: a double that is compared with `<=` in place of `<`."""
    threshold, rest = _split(p)
    drawn = np.frombuffer(rng.bytes(size), dtype=np.uint8)
    heads = drawn <= threshold
    if rest:
        ties = np.flatnonzero(drawn == threshold)
        if ties.size:
            heads[ties] = flip_at_most(ties.size, rest, rng)
    return heads


def flip_without_ties(size, p, rng):
    """A broken coin: eight bits and no more."""
    return np.frombuffer(rng.bytes(size), dtype=np.uint8) < int(256 * p)


def flip_with_reused_byte(size, p, rng):
    """A broken coin: a tie is settled with the byte that made it one."""
    threshold, rest = _split(p)
    drawn = np.frombuffer(rng.bytes(size), dtype=np.uint8)
    return (drawn < threshold) | ((drawn == threshold) & (drawn < 256 * rest))


BROKEN_COINS = [flip_at_most, flip_without_ties, flip_with_reused_byte]


@pytest.mark.parametrize("coin", COINS.values(), ids=COINS)
@given(p=common_probabilities)
@example(p=0.0)
@example(p=LARGEST)
@example(p=1 / 3)
@settings(max_examples=6)
def test_a_coin_lands_heads_with_exactly_its_probability(coin, p):
    assert realised_probability(partial(coin, p)) == Fraction(p)


@pytest.mark.parametrize("coin", COINS.values(), ids=COINS)
def test_the_rarest_coin_asks_for_134_zeros_and_a_byte_below_64(coin):
    # 2^-1074 = 256^-134 * 64 / 256.
    assert coin(SMALLEST, ScriptedBytes(*[0] * 134, 63))
    assert not coin(SMALLEST, ScriptedBytes(*[0] * 134, 64))
    assert not coin(SMALLEST, ScriptedBytes(*[0] * 133, 1))
    with pytest.raises(OutOfBytesError):
        coin(SMALLEST, ScriptedBytes(*[0] * 134))


@pytest.mark.parametrize("broken", [flip_at_most, flip_without_ties, flip_with_reused_byte])
def test_the_exact_checks_catch_a_broken_coin(broken):
    assert realised_probability(partial(broken, 1, 1 / 3)) != Fraction(1 / 3)
    assert np.count_nonzero(broken(65_536, 21_845 / 65_536, EveryByte())) != 21_845


@pytest.mark.parametrize(
    ("count", "ks"),
    [
        (1, [0, 1, 2, 127, 128, 254, 255]),
        (2, [1, 255, 257, 21_845, 32_769, 65_279, 65_535]),
        (3, [1, 5_592_405, 16_777_215]),
    ],
)
def test_a_coin_of_some_bytes_takes_its_share_of_all_their_values(count, ks):
    size = 256**count
    for k in ks:
        rng = EveryByte()
        assert np.count_nonzero(flip(size, k / size, rng)) == k
        # A byte for each coin, one more for each tie.
        assert rng.drawn == sum(256**place for place in range(1, count + 1))


@pytest.mark.parametrize(
    ("k_p", "k_q"), [(1, 65_535), (65_535, 1), (32_768, 21_845), (49_153, 16_640), (7, 7)]
)
def test_both_kinds_of_coin_in_one_block_keep_to_their_own_probability(k_p, k_q):
    choice = np.repeat([True, False], 65_536)
    rng = EveryByte()
    heads = flip_either(choice, k_p / 65_536, k_q / 65_536, rng)
    assert np.count_nonzero(heads.reshape(2, -1), axis=1).tolist() == [k_p, k_q]
    assert rng.drawn == 2 * (65_536 + 256)


@pytest.mark.parametrize("ks", [[1], [65_535, 0, 1], [32_768, 21_845, 256, 65_281]])
def test_many_different_coins_keep_to_their_own_probability(ks):
    p = np.repeat(np.array(ks) / 65_536, 65_536)
    heads = flip_each(p, EveryByte())
    assert np.count_nonzero(heads.reshape(len(ks), -1), axis=1).tolist() == ks


def test_blocks_of_coins_are_drawn_alike(monkeypatch):
    monkeypatch.setattr(_coins, "_BLOCK", 1024)
    monkeypatch.setattr(_coins, "_PART", 512)
    choice = np.tile(np.repeat([True, False], 256), 5)
    rng = EveryByte()
    heads = flip_either(choice, 200 / 256, 40 / 256, rng).reshape(5, 2, 256)
    assert np.array_equal(np.count_nonzero(heads, axis=2), [[200, 40]] * 5)
    assert rng.drawn == choice.size


def test_coins_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch):
    monkeypatch.setattr(_coins, "draw_bytes", draw_bytes)
    choice = np.arange(5_000) % 3 == 0

    def coins():
        rng = np.random.default_rng(23)
        return flip(5_000, 1 / 3, rng), flip_either(choice, 0.7, 0.2, rng)

    at_once = coins()
    monkeypatch.setattr(_coins, "_PART", 64)
    np.testing.assert_array_equal(coins(), at_once)


def test_what_a_seed_gives_for_more_than_a_block_stays():
    choice = np.arange((1 << 19) + 1000) % 3 == 0
    heads = flip_either(choice, 0.7, 0.2, np.random.default_rng(0))
    digest = hashlib.sha256(np.packbits(heads)).hexdigest()
    assert digest.startswith("f4fcb60a7bde437b")


@pytest.mark.parametrize("p", [SMALLEST, 1e-7, 0.4 / 256, 1 / 3, 0.5, 0.75, 255.5 / 256, LARGEST])
def test_a_million_real_coins_follow_the_law(p):
    heads = np.count_nonzero(flip(10**6, p, np.random.default_rng(21)))
    assert counts_fit([heads, 10**6 - heads], [p, 1 - p])


@pytest.mark.parametrize("p", [0.3, 0.5 + 1 / 512, 0.9])
def test_neighbouring_coins_are_independent(p):
    coins = flip(3 * 10**6, p, np.random.default_rng(22)).reshape(-1, 3)
    patterns = np.bincount(coins @ [1, 2, 4], minlength=8)
    heads = np.array([0, 1, 1, 2, 1, 2, 2, 3])
    assert counts_fit(patterns, p**heads * (1 - p) ** (3 - heads))


def test_a_choice_may_be_booleans_or_bytes_or_a_strided_view():
    choice = np.arange(400_000) % 5 < 2
    draws = [
        flip_either(given, 1 / 3, 1 / 7, np.random.default_rng(4))
        for given in (choice, choice.view(np.uint8), np.repeat(choice, 2)[::2])
    ]
    assert np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[0], draws[2])


def exact_epsilon_of_lying(lie, others):
    """Return the log-ratio of the true category to another one, in 80 digits."""
    with localcontext(Context(prec=80)):
        return (others * (1 - Decimal(lie)) / Decimal(lie)).ln()


def is_tight(lie, epsilon, others):
    """Whether a lie keeps to epsilon, while one rarer by a single step would not."""
    rarer = math.nextafter(lie, 0.0)
    below, above = exact_epsilon_of_lying(lie, others), exact_epsilon_of_lying(rarer, others)
    return below <= Decimal(epsilon) < above


@pytest.mark.claim("randomized_response.privatize", kind="chosen cases")
@pytest.mark.parametrize("others", [1, 2, 3, 13, 255, 1000])
def test_the_lie_costs_at_most_epsilon_and_a_rarer_one_would_cost_more(others):
    for epsilon in [*np.geomspace(1e-9, 700, 60).tolist(), math.log(3), 0.5, 1.0, 2.0]:
        assert is_tight(lie_probability(epsilon, others), epsilon, others)


@pytest.mark.parametrize(
    "broken",
    [
        lambda epsilon, others: others / (math.exp(epsilon) + others),
        lambda epsilon, others: float(1 - np.float64(1 / (1 + others * math.exp(-epsilon)))),
    ],
)
def test_a_lie_rounded_carelessly_is_caught(broken):
    grid = np.geomspace(1e-3, 30, 200).tolist()
    assert not all(is_tight(broken(epsilon, 3), epsilon, 3) for epsilon in grid)


@pytest.mark.parametrize("others", [1, 2, 1000])
@pytest.mark.parametrize("epsilon", [700.5, 745.2, 1e3, 1e7, 1.7e308])
def test_an_epsilon_past_the_reach_of_doubles_is_served_as_700(epsilon, others):
    lie = lie_probability(epsilon, others)
    assert lie == lie_probability(700.0, others) > 0
    # A single other category is drawn with a normal double: no digit of the ratio is lost.
    assert lie / others > np.finfo(float).tiny


@pytest.mark.parametrize("others", [1, 2, 13, 999])
@pytest.mark.parametrize("epsilon", [SMALLEST, 1e-300, 1e-17])
def test_an_epsilon_too_small_to_lie_honestly_is_refused(epsilon, others):
    with pytest.raises(ValueError, match=f"epsilon must be large enough .* got {epsilon}"):
        lie_probability(epsilon, others)


@given(epsilon=st.floats(1e-17, 1e-14), others=st.integers(1, 1000))
def test_a_lie_that_is_accepted_leaves_the_truth_more_likely_than_any_other(epsilon, others):
    try:
        lie = lie_probability(epsilon, others)
    except ValueError:
        return
    assert 1 - Fraction(lie) > Fraction(lie) / others


def test_the_lie_does_not_depend_on_the_callers_decimal_settings():
    usual = lie_probability(1.25, 3)
    lie_probability.cache_clear()
    with localcontext(Context(prec=2, Emax=1, Emin=-1, traps=[FloatOperation, Inexact])):
        assert lie_probability(1.25, 3) == usual


@given(lie=st.floats(SMALLEST, LARGEST))
@example(lie=SMALLEST)
@example(lie=2.0**-54)
@example(lie=0.1)
@example(lie=LARGEST)
def test_the_truth_is_the_largest_double_that_leaves_room_for_the_lie(lie):
    truth = complement(lie)
    assert truth < 1
    assert Fraction(truth) + Fraction(lie) <= 1
    assert Fraction(math.nextafter(truth, 2.0)) + Fraction(lie) > 1


# The bytes.


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_bytes_are_those_of_64_bit_words_of_any_generator(size, kind):
    first, second = (np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2))
    for _ in range(2):
        words = first.integers(0, 2**64, size=-(-size // 8), dtype=np.uint64)
        expected = b"".join(int(word).to_bytes(8, "little") for word in words)[:size]
        assert draw_bytes(size, second).tobytes() == expected
        # Half a word that is left over from a small number changes nothing.
        assert first.integers(9, dtype=np.uint32) == second.integers(9, dtype=np.uint32)


# Noise for whole numbers: bytes from tables, numbers from bytes.


def realised_numbers(rate, most):
    """Return the exact probabilities of the geometric numbers 0, 1, ..., most."""
    tables = [realised_bytes(table) for table in _coins._byte_tables(rate)]
    return [
        math.prod(chances[x >> 8 * place & 255] for place, chances in enumerate(tables))
        for x in range(most + 1)
    ]


def is_close(exact, expected, digits=15):
    with localcontext(Context(prec=60)):
        found = Decimal(exact.numerator) / exact.denominator
        return abs(found / expected - 1) < Decimal(10) ** -digits


RATES = [700.0, 300.0, 2.7, 0.9, 0.05, 0.05 / 2**16, 1e-9]


@pytest.mark.parametrize("rate", RATES)
def test_each_byte_of_a_geometric_number_has_its_odds_to_fifteen_digits(rate):
    for place, table in enumerate(_coins._byte_tables(rate)):
        chances = realised_bytes(table)
        assert sum(chances) == 1
        values = sum(chance > 0 for chance in chances)
        assert min(chances[:values]) > 0
        with localcontext(Context(prec=60)):
            odds = (-Decimal(rate) * 256**place).exp()
            weights = [odds**value for value in range(values)]
            expected = [weight / sum(weights) for weight in weights]
        assert all(map(is_close, chances, expected))


@pytest.mark.parametrize("rate", RATES)
def test_geometric_numbers_end_between_700_and_1400_over_their_rate(rate, monkeypatch):
    tables = _coins._byte_tables(rate)
    values = [sum(chance > 0 for chance in realised_bytes(table)) for table in tables]
    assert set(values[:-1]) <= {256}
    largest = [np.array([most - 1], dtype=np.uint8) for most in values]
    monkeypatch.setattr(_coins, "_draw_from", lambda *_: largest.pop(0))
    [last] = _coins.geometric(1, rate, None)
    assert 700 < (last + 1) * rate <= max(1400, 2 * rate)


def test_a_byte_is_drawn_from_its_table_exactly(monkeypatch):
    [table, *_] = _coins._byte_tables(0.9 / 2**10)
    expected = realised_bytes(table)
    words = [np.repeat(np.arange(256, dtype=np.uint8), 256), np.tile(np.arange(256), 256)]
    rests = []

    def tails(p, rng):
        rests.extend(map(Fraction, p.tolist()))
        return np.zeros(p.size, dtype=bool)

    monkeypatch.setattr(_coins, "draw_bytes", lambda size, rng: words.pop(0).astype(np.uint8))
    monkeypatch.setattr(_coins, "flip_each", tails)
    drawn = np.bincount(_coins._draw_from(table, 65_536, None), minlength=256)
    # Every column meets the byte at which it is undecided once, in the order of the columns.
    assert len(rests) == 256
    chances = [Fraction(int(count)) for count in drawn]
    for column, rest in enumerate(rests):
        chances[column] += rest
        chances[column ^ table.moves[column]] -= rest
    assert [chance / 65_536 for chance in chances] == expected


def test_a_number_is_made_of_bytes_each_from_its_own_table(monkeypatch):
    given = {}

    def digits(table, size, rng):
        place = _coins._byte_tables(1e-6).index(table)
        given[place] = np.arange(size, dtype=np.uint8) * (2 * place + 1) + np.uint8(place)
        return given[place]

    monkeypatch.setattr(_coins, "_draw_from", digits)
    drawn = _coins.geometric(256, 1e-6, None)
    assert drawn.dtype == np.int64
    assert sorted(given) == [0, 1, 2, 3]
    assert np.array_equal(drawn, sum(given[j].astype(np.int64) << 8 * j for j in given))


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
def test_discrete_laplace_noise_has_its_distribution_to_fifteen_digits(scale, monkeypatch):
    most, asked = int(30 * scale), []

    def heads(size, p, rng):
        asked.append(Fraction(p))
        return np.repeat([False, True], size // 2)

    monkeypatch.setattr(_coins, "flip", heads)
    monkeypatch.setattr(
        _coins, "geometric", lambda size, rate, rng: np.tile(np.arange(most + 1), 2)
    )
    places = _coins.discrete_laplace(2 * most + 2, scale, None).tolist()
    # Every number has one way to come, 0 as well.
    assert sorted(places) == list(range(-most - 1, most + 1))
    [below] = asked
    numbers = realised_numbers(1 / scale, most)
    chances = [(1 - below) * p for p in numbers] + [below * p for p in numbers]
    with localcontext(Context(prec=60)):
        odds = (-1 / Decimal(scale)).exp()
        zero = (1 - odds) / (1 + odds)
        expected = [zero * odds ** abs(x) for x in places]
    # The rate is 1 / scale, rounded to a double, and counts up to thirty times.
    assert all(is_close(*pair, digits=14) for pair in zip(chances, expected, strict=True))


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.6, 1e6])
def test_discrete_gaussian_noise_is_kept_with_the_probability_that_it_lacks(scale, monkeypatch):
    places = np.unique(np.linspace(-12 * scale, 12 * scale, 2001).astype(np.int64))
    chances = []

    def keep_all(p, rng):
        chances.append(p.copy())
        return np.ones(p.size, dtype=bool)

    monkeypatch.setattr(_coins, "discrete_laplace", lambda *_: places)
    monkeypatch.setattr(_coins, "flip_each", keep_all)
    _coins.discrete_gaussian(5, scale, None)
    width = math.floor(scale) + 1
    logs = np.log(chances[0]) - np.abs(places) / width
    expected = -(places**2) / (2 * scale**2)
    np.testing.assert_allclose(logs - logs[places == 0], expected, rtol=1e-12, atol=1e-12)
    assert 0.3 < chances[0].max() < 1


def test_proposals_that_are_not_kept_are_made_again(monkeypatch):
    rounds = []

    def keep_few(p, rng):
        rounds.append(p.size)
        return np.arange(p.size) < (3 if len(rounds) < 4 else p.size)

    monkeypatch.setattr(_coins, "flip_each", keep_few)
    proposed = itertools.count()
    monkeypatch.setattr(
        _coins, "discrete_laplace", lambda size, *_: 100 * next(proposed) + np.arange(size)
    )
    drawn = _coins.discrete_gaussian(12, 5.0, None)
    assert drawn.tolist() == [0, 1, 2, 100, 101, 102, 200, 201, 202, 300, 301, 302]
    assert rounds == [32, 28, 24, 20]


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_noise_is_discrete_laplace_and_discrete_gaussian(scale):
    size, span = 200_000, np.arange(-200, 201)
    rng = np.random.default_rng(2)
    for noise, weights in [
        (_coins.discrete_laplace, np.exp(-np.abs(span) / scale)),
        (_coins.discrete_gaussian, np.exp(-(span**2) / (2 * scale**2))),
    ]:
        drawn = noise(size, scale, rng)
        assert drawn.dtype == np.int64
        counts = np.bincount(drawn + 200, minlength=span.size)
        assert counts_fit(counts, weights / weights.sum())


@pytest.mark.parametrize("noise", [_coins.discrete_laplace, _coins.discrete_gaussian])
def test_loud_noise_is_nearly_continuous_and_its_last_digits_are_uniform(noise):
    scale = 20.0 * 2**16
    drawn = noise(100_000, scale, np.random.default_rng(8))
    smooth = stats.laplace if noise is _coins.discrete_laplace else stats.norm
    assert stats.kstest(drawn / scale, smooth.cdf).pvalue > 1e-5
    for place in (0, 8):
        digits = np.bincount(drawn >> place & 255, minlength=256)
        assert counts_fit(digits, np.full(256, 1 / 256))
    assert counts_fit(np.unique(drawn & 1, return_counts=True)[1], [0.5, 0.5])


def test_next_to_no_noise_is_zero():
    for scale in (1e-3, 1e-9, 1e-300):
        for noise in (_coins.discrete_laplace, _coins.discrete_gaussian):
            assert not noise(1000, scale, np.random.default_rng(0)).any()


# Noise for real numbers.


class Dictated:
    """A generator whose bytes spell given whole numbers."""

    def __init__(self, *numbers):
        self.numbers = iter(numbers)

    def bytes(self, length):
        return next(self.numbers).to_bytes(length, "little")


def test_laplace_noise_has_no_largest_value():
    drawn = [laplace(Dictated(*words, 0)) for words in [(2**255,), (0, 2**255)]]
    assert [float(size) for size in drawn] == pytest.approx([math.log(2), 129 * math.log(2)])
    # The number that is replaced does not matter, the last one that is kept follows on it.
    drawn = [laplace(Dictated(*words, 1)) for words in [(2**128,), (7, 2**256 - 1)]]
    assert [float(size) for size in drawn] == pytest.approx([-128 * math.log(2)] * 2)
    twice = laplace(Dictated(2**128 - 1, 0, 2**255, 0))
    assert float(twice) == pytest.approx(257 * math.log(2))


# Beside the smallest number that is kept, half of a cell is a digit that a double would not show.
@pytest.mark.parametrize("word", [0x9E3779B97F4A7C15 << 190, 2**128])
def test_laplace_noise_has_more_digits_than_any_grid(word):
    with localcontext(Context(prec=90)):
        expected = -((Decimal(2 * word + 1) / 2**257).ln())
    assert abs(laplace(Dictated(word, 0)) - Fraction(expected)) < Fraction(1, 10**55)


def test_cauchy_noise_is_the_slope_of_a_point_inside_the_disc():
    x, y, largest = 3 * 2**250, 2**254 + 5, 2**256 - 1
    assert cauchy(Dictated(x, y, 0)) == Fraction(2 * x + 1, 2 * y + 1)
    assert cauchy(Dictated(largest, 2**255, x, y, 1)) == -Fraction(2 * x + 1, 2 * y + 1)
    assert cauchy(Dictated(largest // 2, 0, 0)) == largest


def test_one_degree_of_freedom_is_a_cauchy_variable():
    for seed in range(20):
        one, other = (np.random.default_rng(seed) for _ in range(2))
        assert student_t(1, one) == cauchy(other)


@pytest.mark.parametrize("degrees", [1, 2, 3, 5])
def test_student_t_noise_has_its_distribution(degrees):
    rng = np.random.default_rng(degrees)
    drawn = np.array([float(student_t(degrees, rng)) for _ in range(1500)])
    assert stats.kstest(math.sqrt(degrees) * drawn, stats.t(degrees).cdf).pvalue > 1e-4


@pytest.mark.parametrize("degrees", [1, 7, 300])
def test_pareto_noise_has_its_distribution(degrees):
    rng = np.random.default_rng(degrees)
    drawn = np.array([float(pareto(degrees, rng)) for _ in range(1500)])
    assert stats.kstest(abs(drawn), stats.lomax(degrees).cdf).pvalue > 1e-4
    assert abs(np.mean(drawn > 0) - 0.5) < 0.06


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_proposal_is_kept_with_exactly_the_probability_that_its_place_deserves(power):
    x, y = 3 * 2**250, 2**254 + 5
    slope = Fraction(2 * x + 1, 2 * y + 1)
    # The uniform number at which u^2 (1 + slope^2)^power passes 1.
    bits = 256 * power
    limit = math.isqrt(int(Fraction(4) ** (bits + 1) / (1 + slope * slope) ** power))
    last = (limit - 1) // 2
    fallback = (0, 0, 0, 0)
    for drawn, kept in ((last, slope), (last + 1, Fraction(1))):
        words = Dictated(x, y, 0, drawn, *fallback)
        assert student_t(power + 1, words) == kept


def test_each_of_several_rows_is_drawn_from_by_its_own_weights():
    for size in (1, 2, 3, 7):
        places = np.arange(40) * 5 % size
        weights = np.full((40, size), 1e-300)
        weights[np.arange(40), places] = 1.0
        np.testing.assert_array_equal(draw_index(weights, 40, np.random.default_rng(1)), places)


@pytest.mark.parametrize("weights", [[1.0, 2.0, 5.0], [5.0, 1.0]])
def test_one_row_is_drawn_from_by_its_weights(weights):
    drawn = draw_index(np.array(weights), 4_000, np.random.default_rng(2))
    assert counts_fit(np.bincount(drawn), np.array(weights) / sum(weights))
