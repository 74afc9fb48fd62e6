"""Exact coin flips and exact noise: the one source of chance of every mechanism here.

A coin that lands heads with probability p is usually a comparison of 53 random bits with p. Eight
bits nearly always settle it: heads if a random byte is below floor(256 p), tails if above. Only a
byte that is equal, one in 256, leaves a tie, and then the remaining fraction of p decides in the
same way. A double has finitely many bits, so this ends, and the coin has *exactly* the probability
p: every step is exact in floating point.

Noise for whole numbers is drawn byte by byte, each from a table and by such a coin. Noise for real
numbers is a ratio of integers of 256 bits each (`cauchy`, `student_t`) or a logarithm with 60
digits (`laplace`): once the sum is rounded to a public grid, its last digits reveal nothing.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

# Coins whose ties are settled together; changing this changes what a seed draws.
_BLOCK = 1 << 19
# Coins in a chunk, which fits the L2 cache.
_PART = 1 << 16
# Bit generators whose `random_raw` returns the same words as `integers`, with less overhead.
_WORDS = {np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64}
# Bits of the random integers from which noise for real numbers is made.
_BITS = 256
# Noise is truncated this many scales out: exp(-700) is nearly the smallest normal double.
_FURTHEST = 700.0
# Weights are multiples of 2^-1200: fixed point with digits to spare for exp(-700).
_DIGITS = 1200


def flip(size: int, p: float, rng: np.random.Generator) -> np.ndarray:
    """Return `size` booleans, each True with probability exactly `p`, for 0 <= p < 1."""
    heads = np.empty(size, dtype=bool)
    threshold, rest = _split(p)
    ties = []
    for start in range(0, size, _PART):
        part = heads[start : start + _PART]
        drawn = draw_bytes(part.size, rng)
        np.less(drawn, threshold, out=part)
        if rest:
            ties.append((drawn == threshold).nonzero()[0] + start)
    if ties:
        undecided = np.concatenate(ties)
        heads[undecided] = flip(undecided.size, rest, rng)
    return heads


def flip_either(choice: np.ndarray, p: float, q: float, rng: np.random.Generator) -> np.ndarray:
    """Return booleans, True with probability exactly `p` where `choice` is true and `q` elsewhere.

    `choice` is a one-dimensional array of booleans, or of the bytes 0 and 1, and 0 <= p, q < 1.
    Memory beyond the result is constant.
    """
    choice = choice.view(np.uint8)
    heads = np.empty(choice.size, dtype=bool)
    (threshold_p, rest_p), (threshold_q, rest_q) = _split(p), _split(q)
    # Bytes wrap around, so the step from one threshold to the other may be negative.
    step, base = np.uint8((threshold_p - threshold_q) % 256), np.uint8(threshold_q)
    for first in range(0, choice.size, _BLOCK):
        ties, last = [], min(first + _BLOCK, choice.size)
        for start in range(first, last, _PART):
            part = slice(start, min(start + _PART, last))
            thresholds = choice[part] * step
            thresholds += base
            drawn = draw_bytes(thresholds.size, rng)
            np.less(drawn, thresholds, out=heads[part])
            if rest_p or rest_q:
                ties.append((drawn == thresholds).nonzero()[0] + start)
        if ties:
            undecided = np.concatenate(ties)
            heads[undecided] = flip_either(choice[undecided], rest_p, rest_q, rng)
    return heads


def flip_each(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return booleans, each True with probability exactly its entry of `p`, for 0 <= p < 1."""
    if p.size == 0:
        return np.zeros(0, dtype=bool)
    scaled = 256.0 * p
    thresholds = scaled.astype(np.uint8)
    drawn = draw_bytes(p.size, rng)
    heads = drawn < thresholds
    ties = np.flatnonzero(drawn == thresholds)
    rests = scaled[ties] - thresholds[ties]
    ties, rests = ties[rests > 0], rests[rests > 0]
    heads[ties] = flip_each(rests, rng)
    return heads


def flip_exp(logs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return booleans, each True with the probability whose logarithm is given, at least -700."""
    return flip_each(np.minimum(np.exp(np.maximum(logs, -_FURTHEST)), 1 - 2.0**-53), rng)


def draw_index(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `size` indices, each with probability proportional to its weight, by exact coins.

    `weights` are one row, from which all are drawn, or as many rows as draws. Indices are the
    leaves of a binary tree, and a coin decides at each fork.
    """
    levels = [np.atleast_2d(weights)]
    while levels[-1].shape[1] > 1:
        if levels[-1].shape[1] % 2:
            levels[-1] = np.pad(levels[-1], ((0, 0), (0, 1)))
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    rows = np.arange(size) % len(levels[0])
    drawn = np.zeros(size, dtype=np.int64)
    for level in reversed(levels[:-1]):
        left, right = level[rows, 2 * drawn], level[rows, 2 * drawn + 1]
        # Flip for the less likely side, because small probabilities have more digits in doubles.
        unlikely = flip_each(np.minimum(left, right) / (left + right), rng)
        drawn = 2 * drawn + np.where(unlikely, right <= left, right > left)
    return drawn


def discrete_laplace(size: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw whole numbers x with probability proportional to exp(-|x| / scale).

    The support is finite: its end lies between 700 and 1,400 scales, beyond which exact noise would
    fall with a probability below 1e-304. The last values of one data set cannot occur for its
    neighbour, so a claim of epsilon alone holds up to a delta of exp(s - 700) where a record moves
    the number by s scales: next to nothing, unless s itself is in the hundreds.
    """
    # Imported here because flipping coins must work on GPU machines without scipy.
    from scipy import special

    rate = min(1 / scale, _FURTHEST)
    drawn = geometric(size, rate, rng)
    # Draw the sign so that 0 is not counted twice: negative numbers begin with -1.
    negative = flip(size, float(special.expit(-rate)), rng)
    # Inverting all bits of x gives -1 - x.
    return np.bitwise_xor(drawn, -negative.view(np.int8), out=drawn)


@np.errstate(over="ignore")
def discrete_gaussian(size: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw whole numbers x with probability proportional to exp(-x^2 / (2 scale^2)).

    Discrete Laplace noise is proposed, and kept with the probability that makes up the difference
    (Canonne, Kamath and Steinke, 2020, Algorithm 3).
    """
    width = math.floor(scale) + 1
    kept, missing = [], size
    while missing > 0:
        proposed = discrete_laplace(int(missing * 1.35) + 16, width, rng)
        ahead = (np.abs(proposed) - scale * (scale / width)) / scale
        proposed = proposed[flip_exp(ahead * ahead / -2, rng)]
        kept.append(proposed[:missing])
        missing -= proposed.size
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def geometric(size: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Draw x = 0, 1, ... with probability proportional to exp(-rate x), byte by byte.

    The weight of x is a product over its bytes, so they are independent.
    """
    drawn = np.zeros((size, 8), dtype=np.uint8)
    for place, table in enumerate(_byte_tables(min(rate, _FURTHEST))):
        drawn[:, place] = _draw_from(table, size, rng)
    return drawn.view("<i8")[:, 0].astype(np.int64, copy=False)


class _Table(NamedTuple):
    """A distribution over bytes for the alias method (Walker, 1977).

    A uniform column c is kept with the probability that has `thresholds[c]` as its first eight bits
    and `rests[c]` as the remaining fraction; otherwise it becomes ``c ^ moves[c]``.
    """

    thresholds: bytes
    moves: bytes
    rests: np.ndarray


def _draw_from(table: _Table, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw bytes from exactly the distribution of the table."""
    columns, drawn = draw_bytes(size, rng), draw_bytes(size, rng)
    # `bytes.translate` is the fastest way to look up bytes.
    string = columns.tobytes()
    thresholds, moves = (
        np.frombuffer(string.translate(entries), dtype=np.uint8)
        for entries in (table.thresholds, table.moves)
    )
    leaves = drawn >= thresholds
    ties = np.flatnonzero(drawn == thresholds)
    leaves[ties] = ~flip_each(table.rests[columns[ties]], rng)
    return columns ^ (moves & -leaves.view(np.uint8))


@lru_cache(maxsize=256)
def _byte_tables(rate: float) -> tuple[_Table, ...]:
    """Return the distribution of each byte of a geometric number.

    Weights below exp(-700) are left out, so the largest number lies between 700 / rate and 1,400 /
    rate.
    """
    tables, place = [], 1
    while rate * place <= _FURTHEST:
        with localcontext(Context(prec=60)):
            odds = int((-Decimal(rate) * place).exp() * (1 << _DIGITS))
        weights = [1 << _DIGITS]
        while len(weights) < 256 and rate * place * len(weights) <= _FURTHEST:
            weights.append(weights[-1] * odds >> _DIGITS)
        tables.append(_alias_table(weights))
        place *= 256
    return tuple(tables)


def _alias_table(weights: list[int]) -> _Table:
    """Return the alias table of a distribution given by at most 256 decreasing weights.

    Only the probabilities of keeping a column are rounded, to doubles.
    """
    one = 1 << _DIGITS
    share = (256 << 2 * _DIGITS) // sum(weights)
    heights = [weight * share >> _DIGITS for weight in weights] + [0] * (256 - len(weights))
    targets = list(range(256))
    giver = max(byte for byte in targets if heights[byte] >= one)
    short = list(range(giver + 1, 256))
    while short:
        column = short.pop()
        targets[column] = giver
        heights[giver] -= one - heights[column]
        if heights[giver] < one and giver > 0:
            # This column gave away more than its excess, so it must be filled in turn.
            short.append(giver)
            giver -= 1
    scaled = np.array([256 * min(height / one, 1.0) for height in heights])
    always = scaled == 256
    scaled[always] = 0
    thresholds = scaled.astype(np.uint8)
    own = np.arange(256, dtype=np.uint8)
    moves = np.where(always, 0, own ^ np.array(targets, dtype=np.uint8))
    return _Table(thresholds.tobytes(), moves.astype(np.uint8).tobytes(), scaled - thresholds)


def cauchy(rng: np.random.Generator) -> Fraction:
    """Draw a standard Cauchy variable: the slope of a random point of a half disc."""
    while True:
        # Odd coordinates are midpoints of cells, so no point lies on an axis.
        x, y = (2 * _whole_number(rng) + 1 for _ in range(2))
        if x * x + y * y < 1 << (2 * _BITS + 2):
            return _either_sign(Fraction(x, y), rng)


def student_t(degrees: int, rng: np.random.Generator) -> Fraction:
    """Draw a Student t variable divided by the square root of its degrees of freedom, an integer.

    Its density is proportional to (1 + y^2)^(-(degrees + 1) / 2). A Cauchy variable y is proposed
    and kept if a uniform u has u^2 (1 + y^2)^(degrees - 1) < 1, which compares integers. The number
    of digits of u grows with the degrees, so that acceptance is as rare as it should be in the
    tails.
    """
    power = degrees - 1
    while True:
        drawn = cauchy(rng)
        u = 2 * _whole_number(rng, power) + 1
        x, y = drawn.numerator, drawn.denominator
        if u * u * (x * x + y * y) ** power < y ** (2 * power) << (2 * _BITS * power + 2):
            return drawn


def laplace(rng: np.random.Generator) -> Fraction:
    """Draw a standard Laplace variable, from a logarithm with 60 digits."""
    return _either_sign(Fraction(_exponential(rng)), rng)


def pareto(degrees: int, rng: np.random.Generator) -> Fraction:
    """Draw a variable of density degrees / 2 * (1 + |y|)^(-degrees - 1), with 60 digits."""
    with localcontext(Context(prec=60)):
        size = (_exponential(rng) / degrees).exp() - 1
    return _either_sign(Fraction(size), rng)


def _exponential(rng: np.random.Generator) -> Decimal:
    """Draw a standard exponential variable, from a logarithm with 60 digits."""
    # A number below 2^128 has too few digits, so it is redrawn on a scale 2^128 times finer. The
    # noise is therefore unbounded, and keeps its distribution however small delta is.
    below, drawn = 2 << _BITS, _whole_number(rng)
    while drawn < 2**128:
        below, drawn = below * 2**128, _whole_number(rng)
    with localcontext(Context(prec=60)):
        return -(Decimal(2 * drawn + 1) / below).ln()


def _whole_number(rng: np.random.Generator, times: int = 1) -> int:
    """Draw a uniform integer of 256 `times` bits; 0 if there are none."""
    return int.from_bytes(rng.bytes(times * _BITS // 8), "little")


def _either_sign(size: Fraction, rng: np.random.Generator) -> Fraction:
    return -size if rng.bytes(1)[0] % 2 else size


def draw_bytes(size: int, rng: np.random.Generator) -> np.ndarray:
    """Return `size` uniform bytes, drawn eight at a time: faster than numpy's own `bytes`."""
    count = -(-size // 8)
    if type(getattr(rng, "bit_generator", None)) in _WORDS:
        words = rng.bit_generator.random_raw(count)
    else:
        words = rng.integers(0, 2**64, size=count, dtype=np.uint64)
    # Little-endian on every machine, so that a seed gives the same bytes everywhere.
    return words.astype("<u8", copy=False).view(np.uint8)[:size]


def _split(p: float) -> tuple[int, float]:
    """Split a probability exactly into its first eight bits and the remaining fraction."""
    scaled = 256.0 * p
    threshold = int(scaled)
    return threshold, scaled - threshold


@lru_cache(maxsize=256)
def lie_probability(epsilon: float, others: int = 1) -> float:
    """Return the smallest double that is at least others / (exp(epsilon) + others).

    This is how often a report over `others` + 1 categories must be false for a log-ratio of
    epsilon between any two of them. Rounding up keeps the realised epsilon at or below the one
    asked for. This and not its complement is computed, because for a large epsilon the complement
    rounds to 1. An epsilon above 700, where doubles underflow, is treated as 700.

    Raises
    ------
    ValueError
        If epsilon is too small for a double to tell a true report from a false one.
    """
    with localcontext(Context(prec=60)):
        exact = others / (Decimal(min(epsilon, 700.0)).exp() + others)
        lie = float(exact)
        if Decimal(lie) < exact:
            lie = float(np.nextafter(lie, 1.0))
    if Fraction(lie) * (others + 1) >= others:
        raise ValueError(
            "epsilon must be large enough for a double to tell the true category from the others, "
            f"got {epsilon}"
        )
    return lie


@lru_cache(maxsize=256)
def complement(lie: float) -> float:
    """Return the largest double that is at most 1 - lie; unlike ``1 - lie`` it is never 1."""
    truth = 1.0 - lie
    return truth if Fraction(truth) + Fraction(lie) <= 1 else float(np.nextafter(truth, 0.0))
