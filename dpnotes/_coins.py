"""Exact coin flips and exact noise: the one source of chance of every mechanism here.

A coin that lands heads with probability p is usually a comparison of 53 random bits with p. Eight
bits nearly always settle it: heads if a random byte is below floor(256 p), tails if above. Only a
byte that is equal, one in 256, leaves the question open, and then the same question is asked of
the fraction that is left over. A double has finitely many bits, so this ends, and the coin has
*exactly* the probability p: every step is exact in floating point.

Noise for whole numbers is made of such coins. Noise for real numbers is a fraction of whole numbers
of 256 bits each (`cauchy`, `student_t`) or a logarithm with 60 digits (`laplace`): who rounds it to
a public grid leaves nothing of its last digits.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

# The ties of so many coins are settled together: a part of what a seed gives.
_BLOCK = 1 << 19
# So many coins at a time stay in the cache, in memory that is used again.
_PART = 1 << 16
# Bit generators whose raw output is the words that `integers` gives, at less cost a call.
_WORDS = {np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64}
# Whole numbers of so many bits make the noise for real numbers.
_BITS = 256


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
    Beside the result this needs constant memory.
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
    ties = np.flatnonzero((drawn == thresholds) & (scaled > thresholds))
    heads[ties] = flip_each(scaled[ties] - thresholds[ties], rng)
    return heads


def discrete_laplace(size: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw whole numbers x with probability proportional to exp(-|x| / scale).

    The support is finite: its end lies between 700 and 1,400 scales, beyond which exact noise would
    fall with a probability below 1e-304. So a claim of epsilon alone holds up to a delta of that
    size, since the last values of one data set cannot occur for its neighbour.
    """
    drawn = geometric(size, 1 / scale, rng)
    negative = flip(size, 0.5, rng)
    # Zero would come twice as often as it should, once with each sign.
    again = np.flatnonzero(negative & (drawn == 0))
    np.negative(drawn, out=drawn, where=negative)
    if again.size:
        drawn[again] = discrete_laplace(again.size, scale, rng)
    return drawn


def discrete_gaussian(size: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw whole numbers x with probability proportional to exp(-x^2 / (2 scale^2)).

    Discrete Laplace noise is proposed, and kept with the probability that makes up the difference
    (Canonne, Kamath and Steinke, 2020, Algorithm 3).
    """
    width = math.floor(scale) + 1
    kept, missing = [], size
    while missing > 0:
        proposed = discrete_laplace(int(missing * 1.35) + 16, width, rng)
        excess = (np.abs(proposed) - scale * (scale / width)) / scale
        chances = np.exp(np.maximum(-excess * excess / 2, -700.0))
        proposed = proposed[flip_each(np.minimum(chances, 1 - 2.0**-53), rng)]
        kept.append(proposed[:missing])
        missing -= proposed.size
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def geometric(size: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Draw x = 0, 1, ... with probability proportional to exp(-rate x), by its binary digits.

    The weight of x is a product over its digits, so these are independent coins.
    """
    digits = max(1, math.ceil(math.log2(700 / rate)))
    drawn = np.zeros((size, 8), dtype=np.uint8)
    for place in range(-(-digits // 8)):
        byte = np.zeros(size, dtype=np.uint8)
        for digit in range(8 * place, min(8 * place + 8, digits)):
            heads = flip(size, float(special.expit(-min(rate * 2.0**digit, 700.0))), rng)
            byte |= heads.view(np.uint8) << np.uint8(digit % 8)
        drawn[:, place] = byte
    return drawn.view("<i8")[:, 0].astype(np.int64)


def cauchy(rng: np.random.Generator) -> Fraction:
    """Draw a standard Cauchy variable: the slope of a random point of a half disc."""
    while True:
        # Odd numbers, so that the points are the middles of cells and none lies on an axis.
        x, y = (2 * _whole_number(rng) + 1 for _ in range(2))
        if x * x + y * y < 1 << (2 * _BITS + 2):
            return _either_sign(Fraction(x, y), rng)


def student_t(degrees: int, rng: np.random.Generator) -> Fraction:
    """Draw a Student t variable over the root of its degrees of freedom, a whole number.

    Its density is in proportion to (1 + y^2)^(-(degrees + 1) / 2). A Cauchy variable y is proposed,
    and kept if a uniform u has u^2 (1 + y^2)^(degrees - 1) < 1: a comparison of whole numbers. The
    digits of u grow with the degrees, so that proposals far out are kept as rarely as they should.
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
    # A number below 2^128 has few digits left: a fresh one, 2^128 times smaller, takes its place.
    # So the noise has no largest value, and keeps its distribution however small delta is.
    below, drawn = 2 << _BITS, _whole_number(rng)
    while drawn < 2**128:
        below, drawn = below * 2**128, _whole_number(rng)
    with localcontext(Context(prec=60)):
        size = -(Decimal(2 * drawn + 1) / below).ln()
    return _either_sign(Fraction(size), rng)


def _whole_number(rng: np.random.Generator, times: int = 1) -> int:
    """Draw a whole number of `times` 256 bits; of none at all, 0."""
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
    # In the order of a little-endian machine, so that a seed gives the same bytes everywhere.
    return words.astype("<u8", copy=False).view(np.uint8)[:size]


def _split(p: float) -> tuple[int, float]:
    """Split a probability into its first eight bits and the fraction that is left, both exactly."""
    scaled = 256.0 * p
    threshold = int(scaled)
    return threshold, scaled - threshold


@lru_cache(maxsize=256)
def lie_probability(epsilon: float, others: int = 1) -> float:
    """Return the smallest double that is at least others / (exp(epsilon) + others).

    This is how often a report over `others` + 1 categories must be false for a log-ratio of
    epsilon between any two of them. Rounding it up keeps the realised epsilon at or below the one
    asked for; computing it, and not its complement, keeps a large epsilon from becoming infinite.
    An epsilon above 700, where doubles run out, gets what 700 gets.

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
