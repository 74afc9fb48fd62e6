import hashlib
import itertools
import math
import signal
from decimal import Context, Decimal, FloatOperation, Inexact, localcontext
from fractions import Fraction

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
    student_t,
)

SMALLEST = 5e-324
LARGEST = 1 - 2.0**-53
coin_probabilities = st.floats(0, LARGEST)
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


@pytest.fixture(autouse=True)
def time_limit():
    """Stop a test whose coins are never decided: a wrong remainder asks for ever."""

    def stop(*_):
        raise TimeoutError("a coin was not decided within a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


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
    """A generator that gives every byte equally often, to each of so many equal groups of coins."""

    def __init__(self, groups=1):
        self.groups = groups
        self.drawn = 0

    def bytes(self, size):
        each = size // (256 * self.groups)
        assert size == 256 * self.groups * each
        self.drawn += size
        return np.tile(np.repeat(np.arange(256, dtype=np.uint8), each), self.groups).tobytes()


class EveryPair:
    """A generator that gives every pair of bytes once to each group of 65,536 coins."""

    def __init__(self):
        # The second time only ties are left, 256 in each group that has any.
        self.repeats = [256, 1]

    def bytes(self, size):
        one_group = np.repeat(np.arange(256, dtype=np.uint8), self.repeats.pop(0))
        groups, rest = divmod(size, one_group.size)
        assert rest == 0
        return np.tile(one_group, groups).tobytes()


class CountedBytes:
    """A real generator that keeps count of what is asked of it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.drawn = 0

    def bytes(self, size):
        self.drawn += size
        return self.rng.bytes(size)


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
                heads += Fraction(int(coin(ScriptedBytes(*path))), 256**depth)
            except OutOfBytesError:
                undecided.append(path)
    return heads


def flip_once(p):
    return lambda rng: flip(1, p, rng)[0]


def flip_either_once(own, p, q):
    return lambda rng: flip_either(np.array([own]), p, q, rng)[0]


def flip_each_once(p):
    return lambda rng: flip_each(np.array([p]), rng)[0]


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


@given(p=common_probabilities)
@example(p=0.0)
@example(p=LARGEST)
@example(p=1 / 3)
@settings(max_examples=20)
def test_a_coin_lands_heads_with_exactly_its_probability(p):
    assert realised_probability(flip_once(p)) == Fraction(p)


@given(p=common_probabilities, q=common_probabilities)
@example(p=0.75, q=LARGEST)
@example(p=0.25, q=0.75)
@settings(max_examples=8)
def test_a_coin_of_either_kind_has_exactly_its_own_probability(p, q):
    assert realised_probability(flip_either_once(True, p, q)) == Fraction(p)
    assert realised_probability(flip_either_once(False, p, q)) == Fraction(q)


@given(p=common_probabilities)
@example(p=0.0)
@example(p=LARGEST)
@example(p=1 / 3)
@settings(max_examples=10)
def test_a_coin_of_its_own_has_exactly_its_probability(p):
    assert realised_probability(flip_each_once(p)) == Fraction(p)


@pytest.mark.parametrize(
    "coin",
    [flip_once(SMALLEST), flip_either_once(False, 0.5, SMALLEST), flip_each_once(SMALLEST)],
)
def test_the_rarest_coin_asks_for_134_zeros_and_a_byte_below_64(coin):
    # 2^-1074 = 256^-134 * 64 / 256.
    assert coin(ScriptedBytes(*[0] * 134, 63))
    assert not coin(ScriptedBytes(*[0] * 134, 64))
    assert not coin(ScriptedBytes(*[0] * 133, 1))
    with pytest.raises(OutOfBytesError):
        coin(ScriptedBytes(*[0] * 134))


@pytest.mark.parametrize("broken", BROKEN_COINS)
def test_the_exact_check_catches_a_broken_coin(broken):
    p = 1 / 3
    assert realised_probability(lambda rng: broken(1, p, rng)[0]) != Fraction(p)


@given(p=coin_probabilities)
def test_splitting_a_probability_loses_nothing(p):
    threshold, rest = _split(p)
    assert 0 <= threshold <= 255
    assert 0 <= rest < 1
    assert (Fraction(threshold) + Fraction(rest)) / 256 == Fraction(p)


@pytest.mark.parametrize("k", [0, 1, 2, 127, 128, 254, 255])
def test_a_coin_of_k_in_256_takes_k_of_the_256_bytes(k):
    rng = EveryByte()
    assert np.count_nonzero(flip(256, k / 256, rng)) == k
    assert rng.drawn == 256


@pytest.mark.parametrize("k", [1, 255, 257, 32_769, 65_279, 65_535])
def test_a_coin_of_k_in_65536_takes_k_of_the_pairs_of_bytes(k):
    rng = EveryByte()
    assert np.count_nonzero(flip(65_536, k / 65_536, rng)) == k
    assert rng.drawn == 65_536 + 256


@pytest.mark.parametrize("k", [1, 5_592_405, 16_777_215])
def test_a_coin_of_k_in_16777216_takes_k_of_the_triples_of_bytes(k):
    rng = EveryByte()
    assert np.count_nonzero(flip(1 << 24, k / (1 << 24), rng)) == k
    assert rng.drawn == (1 << 24) + (1 << 16) + 256


@pytest.mark.parametrize("broken", BROKEN_COINS)
def test_the_count_over_all_pairs_of_bytes_catches_a_broken_coin(broken):
    k = 21_845
    assert np.count_nonzero(flip(65_536, k / 65_536, EveryByte())) == k
    assert np.count_nonzero(broken(65_536, k / 65_536, EveryByte())) != k


@pytest.mark.parametrize(
    ("k_p", "k_q"), [(1, 65_535), (65_535, 1), (32_768, 21_845), (49_153, 16_640), (7, 7)]
)
def test_both_kinds_of_coin_in_one_block_keep_to_their_own_probability(k_p, k_q):
    choice = np.repeat([True, False], 65_536)
    heads = flip_either(choice, k_p / 65_536, k_q / 65_536, EveryByte(groups=2))
    assert np.count_nonzero(heads[:65_536]) == k_p
    assert np.count_nonzero(heads[65_536:]) == k_q


@pytest.mark.parametrize("ks", [[1], [65_535, 0, 1], [32_768, 21_845, 256, 65_281]])
def test_many_different_coins_keep_to_their_own_probability(ks):
    p = np.repeat(np.array(ks) / 65_536, 65_536)
    heads = flip_each(p, EveryPair())
    assert np.count_nonzero(heads.reshape(len(ks), -1), axis=1).tolist() == ks


@pytest.mark.parametrize("broken", ["at most", "ties forgotten", "ties of another coin"])
def test_the_count_over_all_pairs_catches_different_coins_that_are_broken(broken):
    ks = np.array([32_769, 21_845])
    p = np.repeat(ks / 65_536, 65_536)
    scaled = 256 * p
    rng = EveryPair()
    drawn = np.frombuffer(rng.bytes(p.size), dtype=np.uint8)
    heads = drawn <= scaled.astype(int) if broken == "at most" else drawn < scaled.astype(int)
    if broken == "ties of another coin":
        ties = np.flatnonzero(drawn == scaled.astype(int))
        heads[ties] = flip_each((scaled % 1)[ties][::-1], rng)
    assert np.count_nonzero(heads.reshape(2, -1), axis=1).tolist() != ks.tolist()


def test_blocks_of_coins_are_drawn_alike(monkeypatch):
    monkeypatch.setattr(_coins, "_BLOCK", 1024)
    monkeypatch.setattr(_coins, "_PART", 512)
    choice = np.tile(np.repeat([True, False], 256), 5)
    heads = flip_either(choice, 200 / 256, 40 / 256, EveryByte(groups=2)).reshape(5, 2, 256)
    assert np.array_equal(np.count_nonzero(heads, axis=2), [[200, 40]] * 5)


def test_coins_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch):
    monkeypatch.setattr(_coins, "draw_bytes", draw_bytes)
    choice = np.arange(5_000) % 3 == 0

    def coins():
        rng = np.random.default_rng(23)
        return flip(5_000, 1 / 3, rng), flip_either(choice, 0.7, 0.2, rng)

    at_once = coins()
    monkeypatch.setattr(_coins, "_PART", 64)
    np.testing.assert_array_equal(coins(), at_once)


def test_more_coins_than_a_block_holds_follow_the_law():
    size = 3 * _coins._BLOCK + 12_345
    choice = np.arange(size) % 3 == 0
    heads = flip_either(choice, 0.7, 0.2, np.random.default_rng(20))
    for kind, p in [(choice, 0.7), (~choice, 0.2)]:
        assert is_plausible(np.count_nonzero(heads[kind]), np.count_nonzero(kind), p)
    # The remainder after the last full block is drawn as well.
    rest = slice(3 * _coins._BLOCK, None)
    assert is_plausible(np.count_nonzero(heads[rest][choice[rest]]), choice[rest].sum(), 0.7)


def test_what_a_seed_gives_for_more_than_a_block_stays():
    choice = np.arange((1 << 19) + 1000) % 3 == 0
    heads = flip_either(choice, 0.7, 0.2, np.random.default_rng(0))
    digest = hashlib.sha256(np.packbits(heads)).hexdigest()
    assert digest.startswith("f4fcb60a7bde437b")


def is_plausible(heads, coins, p):
    """Whether a count lies within five standard deviations, one failure in two million."""
    return abs(heads - coins * p) <= 5 * math.sqrt(coins * p * (1 - p))


@pytest.mark.parametrize("p", [SMALLEST, 1e-7, 0.4 / 256, 1 / 3, 0.5, 0.75, 255.5 / 256, LARGEST])
def test_a_million_real_coins_follow_the_law(p):
    assert is_plausible(np.count_nonzero(flip(10**6, p, np.random.default_rng(21))), 10**6, p)


@pytest.mark.parametrize("broken", [flip_without_ties, flip_with_reused_byte])
def test_a_million_broken_coins_do_not(broken):
    heads = broken(10**6, 0.4 / 256, np.random.default_rng(21))
    assert not is_plausible(np.count_nonzero(heads), 10**6, 0.4 / 256)


@pytest.mark.parametrize("p", [0.3, 0.5 + 1 / 512, 0.9])
def test_neighbouring_coins_are_independent(p):
    coins = flip(3 * 10**6, p, np.random.default_rng(22)).reshape(-1, 3)
    patterns = np.bincount(coins @ [1, 2, 4], minlength=8)
    heads = np.array([0, 1, 1, 2, 1, 2, 2, 3])
    assert counts_fit(patterns, p**heads * (1 - p) ** (3 - heads))


@pytest.mark.parametrize("p", [0.5, 1 / 3, LARGEST])
def test_a_coin_costs_about_one_random_byte(p):
    n = 10**6
    one, either, each = CountedBytes(1), CountedBytes(2), CountedBytes(3)
    flip(n, p, one)
    flip_each(np.full(n, p), each)
    flip_either(np.arange(n) % 2 == 0, p, 1 / 7, either)
    # One in 256 takes a second byte, one in 256 of those a third, and so on: 256/255 together.
    most = n * 256 / 255 + 6 * math.sqrt(n / 255)
    assert n <= one.drawn <= most
    assert n < either.drawn <= most
    assert n <= each.drawn <= most


def test_a_coin_whose_probability_has_eight_bits_costs_exactly_one_byte():
    rng = CountedBytes(1)
    flip(10**6, 0.25, rng)
    flip_either(np.ones(10**6, dtype=bool), 0.5, 0.25, rng)
    assert rng.drawn == 2 * 10**6


def test_no_coins_cost_nothing():
    rng = ScriptedBytes()
    for none in [
        flip(0, 1 / 3, rng),
        flip_either(np.zeros(0, dtype=bool), 1 / 3, 1 / 5, rng),
        flip_each(np.zeros(0), rng),
    ]:
        assert none.shape == (0,)
        assert none.dtype == bool


def test_coins_are_booleans_and_the_same_for_the_same_seed():
    first, second = (flip(1000, 1 / 3, np.random.default_rng(3)) for _ in range(2))
    assert first.dtype == bool
    assert first.shape == (1000,)
    assert np.array_equal(first, second)


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


@given(epsilon=st.floats(1e-9, 700), others=st.integers(1, 1000))
def test_the_lie_is_the_smallest_double_that_keeps_the_promise(epsilon, others):
    assert is_tight(lie_probability(epsilon, others), epsilon, others)


@pytest.mark.parametrize(
    "broken",
    [
        lambda epsilon, others: others / (math.exp(epsilon) + others),
        lambda epsilon, others: float(1 - np.float64(1 / (1 + others * math.exp(-epsilon)))),
        lambda epsilon, others: math.nextafter(lie_probability(epsilon, others), 0.0),
        lambda epsilon, others: lie_probability(epsilon / 2, others),
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


def test_every_byte_is_equally_likely_at_every_place_of_a_word():
    drawn = draw_bytes(8 * 200_000, np.random.default_rng(6)).reshape(-1, 8)
    for place in drawn.T:
        assert counts_fit(np.bincount(place, minlength=256), np.full(256, 1 / 256))


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


class OneEnd:
    """A generator of an unknown kind, whose words are all the lowest or all the highest."""

    def __init__(self, lowest):
        self.lowest = lowest

    def integers(self, low, high, size, dtype):
        return np.full(size, low if self.lowest else high - 1, dtype=dtype)


def test_any_byte_may_come_from_an_unknown_generator():
    assert draw_bytes(9, OneEnd(lowest=True)).tolist() == [0] * 9
    assert draw_bytes(9, OneEnd(lowest=False)).tolist() == [255] * 9


def test_a_seed_gives_its_bytes_to_65536_coins_at_a_time_and_524288_settle_their_ties(monkeypatch):
    sizes = []

    def draw(size, rng):
        sizes.append(size)
        return np.full(size, 85, dtype=np.uint8)  # a tie for a coin of 1/3

    monkeypatch.setattr(_coins, "draw_bytes", draw)
    monkeypatch.setattr(_coins, "_split", lambda p: (85, 0.5) if p == 1 / 3 else (128, 0.0))
    part, block = 65_536, 524_288
    flip_either(np.zeros(block + 1, dtype=bool), 1 / 3, 1 / 3, None)
    assert sizes == 2 * ([part] * 8) + [1, 1]


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


def test_far_out_student_t_noise_is_as_rare_as_it_should():
    # A slope of 2^120 is kept with a probability of 2^-480: with fewer digits it never would be.
    x, y = 2**255, 2**135
    kept = student_t(5, Dictated(x, y, 0, 0))
    assert kept > 2**119


def test_each_of_several_rows_is_drawn_from_by_its_own_weights():
    for size in (1, 2, 3, 7):
        places = np.arange(40) * 5 % size
        weights = np.full((40, size), 1e-300)
        weights[np.arange(40), places] = 1.0
        np.testing.assert_array_equal(draw_index(weights, 40, np.random.default_rng(1)), places)
