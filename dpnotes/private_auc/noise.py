"""How much noise a metric needs: four families, each close to its smallest scale.

Two neighbours differ in the value of the metric and in the scale of the noise. For each family
`allowed_change(u)` says how far apart the values may be, in units of the smaller scale, if the
scales differ by a factor of up to e^u. Everything else is the same for all families.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dpnotes._checks import (
    CONFIDENCE,
    check_choice,
    check_delta,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    check_rng,
)
from dpnotes._coins import laplace, pareto, student_t
from dpnotes.private_auc.metrics import METRIC, METRICS, MOST_RECORDS, check_doubles, discounted

CALIBRATIONS = ("exact", "nissim")
# The degrees to choose from. Six or more degrees of freedom never give the smallest error at 95 %.
# With fewer than 20 Pareto noise loses to Student t noise, beyond 200 it gains next to nothing.
_DEGREES = {"cauchy": (1,), "student-t": (2, 3, 4, 5), "pareto": (20, 50, 200), "laplace": (0,)}
FAMILIES = tuple(_DEGREES)
NOISES = ("auto", *FAMILIES)

# Larger epsilons get the noise of this one: its scale, e^-32 smooth sensitivities, is negligible
# and does not underflow. (Pareto noise of many degrees gets there later.)
_LARGEST_EPSILON = 64.0
# Larger epsilons count as this one: the noise is far below the grid of the results, and nothing
# overflows.
_NOISELESS_EPSILON = 2.0**60
# Calibrate to epsilon (1 - 2^-18): headroom for rounding in the log of the scale ratio. Where the
# loss grows steeply with that log, whose doubles are off by up to 2^-51, leave 2^-50 for each unit
# of slope.
_SHORTAGE = 2.0**-18
_ROUNDING = 2.0**-50
# Below this scale doubles may lose digits in the distance, so it is computed in 400 digits.
_SMALLEST_SCALE = 1e-290
# The recursion over class sizes steps by 1 up to this size, and by a 64th of the size beyond.
_BLOCK = 64
# Compare families at the sizes where the best of them has at most this error.
_USEFUL = 0.1


def cauchy_scale(epsilon: float, beta: float, *, calibration: str = "exact") -> float:
    """Return the factor c by which Cauchy noise must exceed the smooth sensitivity.

    Parameters
    ----------
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    beta : float
        The rate of the smooth sensitivity; positive, below epsilon ("exact") or at most epsilon / 6
        ("nissim").
    calibration : {"exact", "nissim"}
        "exact" is the smallest factor that is epsilon-private for every beta-smooth sensitivity.
        "nissim" is 6 / epsilon, the published factor.

    Returns
    -------
    float
        The scale of the noise, in smooth sensitivities.

    Notes
    -----
    The log-ratio of two Cauchy densities with centres a, b and scales s, t is at most
    arccosh(1 + ((a - b)^2 + (s - t)^2) / (2 s t)), a distance in the hyperbolic plane, and attains
    it. If the centres are at most the smaller sensitivity apart and the scales are within a factor
    e^beta, the worst ratio of scales is 1 or e^beta, and the largest log-ratio is epsilon for

        c = max(1 / (2 sinh(epsilon / 2)), sqrt(e^-beta / (2 (cosh(epsilon) - cosh(beta))))).

    An epsilon above 64 gives the same factor as 64. "nissim" is theorem 2 of Boyd, Lantz and Page
    (2015), after Nissim, Raskhodnikova and Smith (2007); claimed at epsilon 1, it costs 0.22614.

    Examples
    --------
    >>> round(cauchy_scale(1.0, 0.1), 4), cauchy_scale(1.0, 0.1, calibration="nissim")
    (0.9595, 6.0)
    """
    epsilon, beta = _check_epsilon(epsilon), check_epsilon(beta, "beta")
    check_choice("calibration", calibration, CALIBRATIONS)
    if calibration == "nissim":
        if beta > epsilon / 6:
            raise ValueError(f"beta must be at most epsilon / 6 = {epsilon / 6}, got {beta}")
        return 6 / min(epsilon, _NOISELESS_EPSILON)
    return student_t_scale(epsilon, beta, 1)


def cauchy_epsilon(value: float, scale: float, other_value: float, other_scale: float) -> float:
    """Return the exact epsilon between two values with Cauchy noise.

    Parameters
    ----------
    value, scale : float
        The value of a data set without noise, and the scale of its noise, positive and finite.
    other_value, other_scale : float
        The same for its neighbour.

    Returns
    -------
    float
        The largest log-ratio of the two densities, in nats.

    Notes
    -----
    For centres a, b and scales s, t it is arccosh(1 + ((a - b)^2 + (s - t)^2) / (2 s t)), computed
    as 2 arsinh(sqrt((a - b)^2 + (s - t)^2) / (2 sqrt(s t))).

    Examples
    --------
    >>> round(cauchy_epsilon(0.0, 1.0, 1.0, 1.0), 6) == round(math.acosh(1.5), 6)
    True
    """
    return student_t_epsilon(value, scale, other_value, other_scale, 1)


def student_t_scale(epsilon: float, beta: float, degrees: int) -> float:
    """Return the factor c by which Student t noise must exceed the smooth sensitivity.

    Parameters
    ----------
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    beta : float
        The rate of the smooth sensitivity; positive and below epsilon / degrees.
    degrees : int
        The degrees of freedom, at least 1. One makes it Cauchy noise.

    Returns
    -------
    float
        The scale of the noise, in smooth sensitivities: the smallest that is epsilon-private for
        every beta-smooth sensitivity.

    Notes
    -----
    By the privacy loss of `student_t_epsilon` with v degrees of freedom, noise of scales s and
    t = e^-u s with centres up to S = t / c apart is epsilon-private if and only if

        1 / c^2 <= 4 v e^u sinh((epsilon + u) / (v + 1)) sinh((epsilon - v u) / (v + 1)).

    The right side is concave in e^u. So its minimum over u in [0, beta] is at one of the two ends,

        c = max(1 / (2 sqrt(v) sinh(epsilon / (v + 1))),
                e^(-beta/2) / (2 sqrt(v sinh((epsilon+beta)/(v+1)) sinh((epsilon-v beta)/(v+1))))).

    Bun and Steinke (2019) study such noise with a smooth sensitivity; the chapter proves the exact
    constant. An epsilon above 64 gives the same factor as 64.

    Examples
    --------
    >>> round(student_t_scale(1.0, 0.01, 3), 3)
    1.149
    """
    epsilon, beta = _check_epsilon(epsilon), check_epsilon(beta, "beta")
    degrees = check_integer("degrees", degrees, low=1, high=1000)
    if degrees * beta >= epsilon:
        raise ValueError(f"beta must be below epsilon / degrees = {epsilon / degrees}, got {beta}")
    if epsilon > _LARGEST_EPSILON:
        epsilon, beta = _LARGEST_EPSILON, beta / epsilon * _LARGEST_EPSILON
    return 1 / _student_t_change(epsilon, degrees, beta)


def student_t_epsilon(
    value: float, scale: float, other_value: float, other_scale: float, degrees: int
) -> float:
    """Return the exact epsilon between two values with Student t noise.

    Parameters
    ----------
    value, scale, other_value, other_scale : float
        As in `cauchy_epsilon`.
    degrees : int
        The degrees of freedom, at least 1. One makes it Cauchy noise.

    Returns
    -------
    float
        The largest log-ratio of the two densities, either way round, in nats.

    Notes
    -----
    With v degrees of freedom, centres a, b and scales s, t, the log-ratio at x is

        (v + 1) / 2 * C(x) + (v - 1) / 2 * log(s / t),

    where C(x) is that of Cauchy noise of scales sqrt(v) s and sqrt(v) t. C ranges from -d to d,
    with d = arccosh(1 + ((a - b)^2 + v (s - t)^2) / (2 v s t)). So the result is
    (v + 1) / 2 * d + (v - 1) / 2 * abs(log(s / t)).

    Examples
    --------
    >>> round(student_t_epsilon(0.0, 1.0, 0.0, 2.0, 3), 6) == round(3 * math.log(2), 6)
    True
    """
    finite = "a finite number"
    value = check_real("value", value, allowed=finite)
    other_value = check_real("other_value", other_value, allowed=finite)
    scale = check_epsilon(scale, "scale")
    other_scale = check_epsilon(other_scale, "other_scale")
    degrees = check_integer("degrees", degrees, low=1, high=1000)
    apart = math.hypot((value - other_value) / math.sqrt(degrees), scale - other_scale)
    distance = 2 * math.asinh(apart / 2 / math.sqrt(scale) / math.sqrt(other_scale))
    low, high = sorted((scale, other_scale))
    if low < _SMALLEST_SCALE or not math.isfinite(distance):
        with localcontext(Context(prec=400)):
            s, t, shift = Decimal(low), Decimal(high), Decimal(value) - Decimal(other_value)
            half = ((shift**2 / degrees + (s - t) ** 2) / (4 * s * t)).sqrt()
            distance = 2 * float((half + (half * half + 1).sqrt()).ln())
    # The difference of the logarithms of nearly equal scales would lose its digits.
    wider = math.log1p((high - low) / low) if high < 2 * low else math.log(high) - math.log(low)
    return (degrees + 1) / 2 * distance + (degrees - 1) / 2 * wider


def _student_t_change(epsilon: float, degrees: int, rate: float) -> float:
    """Return how far apart centres may be, in the smaller scale, if scales differ by <= e^rate.

    The rate must be below epsilon / degrees.
    """
    equal = math.sinh(epsilon / (degrees + 1))
    wide = math.sinh((epsilon + rate) / (degrees + 1))
    narrow = math.sinh((epsilon - degrees * rate) / (degrees + 1))
    # A root of each factor, because their product may underflow for a tiny epsilon.
    apart = math.exp(rate / 2) * math.sqrt(wide) * math.sqrt(narrow)
    return 2 * math.sqrt(degrees) * min(equal, apart)


def _pareto_change(epsilon: float, degrees: int, rate: float) -> float:
    """Return the same for Pareto noise, whose loss is largest at a centre or at infinity."""
    power = degrees + 1
    apart = math.exp(rate) * math.expm1((epsilon - rate) / power)
    return min(math.expm1(epsilon / power), apart)


def _laplace_change(epsilon: float, delta: float, rate: float) -> float:
    """Return the same for Laplace noise, whose loss exceeds epsilon with probability delta.

    With l = log(1 / delta) it is the smallest of epsilon, e^rate (epsilon - rate) and
    epsilon + rate - l (e^rate - 1). At rate = log(1 + epsilon / (2 max(1, l))) it is at least
    epsilon / 2. The proof bounds the probability of a loss above epsilon, which is more than delta
    requires, so values slightly further apart would do.
    """
    wider = math.exp(rate) * (epsilon - rate)
    narrower = epsilon + rate + math.log(delta) * math.expm1(rate)
    return max(min(epsilon, wider, narrower), 0.0)


def best_beta(epsilon: float, guess: int, *, metric: str = "auc") -> float:
    """Return the beta that minimises exact Cauchy noise at a public guess of the class size.

    Parameters
    ----------
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    guess : int
        A guess of the size of the smaller class (for average precision: of the positives), at least
        1. It must be public: a guess taken from the data would leak it.
    metric : {"auc", "average precision"}
        The metric whose smooth sensitivity is used.

    Returns
    -------
    float
        The minimiser of ``cauchy_scale(epsilon, beta)`` times the smooth sensitivity; if there are
        several, the largest up to ln 2.

    Notes
    -----
    The factor c is constant up to beta = ln(2 cosh(epsilon) - 1), and convex in beta from there on.
    With r = 2 guess - 1 the noise exp(-beta (guess - 1)) c is smallest where
    sinh(beta) = r (cosh(epsilon) - cosh(beta)), a quadratic equation for e^beta. A larger beta
    reduces the noise only until the smooth sensitivity equals the bound L(guess). At ln 2 it does
    so for every size, so a larger beta is never needed.

    Examples
    --------
    >>> round(best_beta(0.1, 100), 6)
    0.046517
    """
    epsilon = _check_epsilon(epsilon)
    guess = check_integer("guess", guess, low=1, high=MOST_RECORDS)
    check_choice("metric", metric, METRICS)
    # The constant part of c reaches ln 2 before epsilon = 1.
    rise = 2 * math.sinh(min(epsilon, 1.0) / 2) ** 2
    flat = math.log1p(2 * rise)
    tilt = rise * (2 * guess - 1)
    root = math.sqrt(1 + tilt * (tilt + 2 * (2 * guess - 1)))
    growth = (tilt - 1 + root) / (2 * guess) if tilt > 1 else 2 * tilt / (1 - tilt + root)
    enough = -math.log(METRIC[metric].bound(guess)) / max(guess - 1, 1)
    return min(max(flat, min(math.log1p(growth), enough)), math.log(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNoise:
    """A mechanism for a metric: noise that is determined by public numbers only.

    Parameters
    ----------
    metric : {"auc", "average precision"}
        The metric that it is added to.
    family : {"cauchy", "student-t", "pareto", "laplace"}
        The family of its distribution.
    degrees : int
        How fast the tails fall. Student t noise: its degrees of freedom, at least 2. Two-sided
        Pareto noise, whose density is proportional to (1 + abs(x) / scale)^-(degrees + 1): at least
        1. It is 1 for Cauchy noise, 0 for Laplace noise.
    epsilon, delta : float
        The privacy cost; delta is 0 except for Laplace noise.
    calibration : {"exact", "nissim"}
        "exact" has at each class size nearly the smallest scale that the privacy loss allows.
        "nissim" is Cauchy noise of 6 / epsilon smooth sensitivities, beta = epsilon / 6.

    Notes
    -----
    Let k be the size of the class that determines the sensitivity: the smaller one for the AUC, the
    positives for average precision. Between neighbours it changes by at most 1. With t(u) the
    result of `allowed_change` and L(k) the bound on the local sensitivity, the scales are private
    if

        scale(k) t(0) >= L(k) and scale(k) t(u) >= L(k) for u = log(scale(k - 1) / scale(k)).

    `scale` goes from one size to the next with the largest u that this allows, so it needs no guess
    of the size. From 64 on it takes steps of a 64th of the size, with one u for each. Steps of 1
    would reduce the noise by less than 1 % for epsilon from 0.1 on, and by less than 3 % in trials
    down to 0.001. All of this is computed for epsilon (1 - 2^-18), or for 2^-50 per degree of
    freedom less if that is more, as headroom for the rounding of the scales.

    Examples
    --------
    >>> noise = MetricNoise(metric="auc", family="cauchy", degrees=1, epsilon=1.0)
    >>> print(noise)
    Cauchy noise of the smallest scale for each class size
    >>> noise.scale(1000) < noise.scale(100)
    True
    """

    metric: str
    family: str
    degrees: int
    epsilon: float
    delta: float = 0.0
    calibration: str = "exact"

    def __post_init__(self) -> None:
        """Check every field."""
        check_choice("metric", self.metric, METRICS)
        check_choice("family", self.family, FAMILIES)
        check_choice("calibration", self.calibration, CALIBRATIONS)
        _check_epsilon(self.epsilon)
        check_delta(self.delta)
        bounds = {"cauchy": (1, 1), "student-t": (2, 1000), "pareto": (1, 1000), "laplace": (0, 0)}
        low, high = bounds[self.family]
        check_integer("degrees", self.degrees, low=low, high=high)
        if (self.delta > 0) != (self.family == "laplace"):
            raise ValueError(f"delta must be above 0 for Laplace noise only, got {self.delta}")
        if self.calibration == "nissim" and self.family != "cauchy":
            raise ValueError("calibration must be 'exact' for noise that is not Cauchy's")

    def allowed_change(self, rate: float) -> float:
        """Return how far apart two values may be if their scales differ by up to e^rate.

        Parameters
        ----------
        rate : float
            The largest log-ratio of the scales, at least 0.

        Returns
        -------
        float
            A distance, in units of the smaller scale; 0 if no change is allowed.
        """
        rate = check_real("rate", rate, low=0.0, allowed="a finite number of at least 0")
        if self.family == "laplace":
            change, largest, slope = _laplace_change, _NOISELESS_EPSILON, 1 - math.log(self.delta)
        else:
            pareto, slope = self.family == "pareto", self.degrees
            change = _pareto_change if pareto else _student_t_change
            largest = _LARGEST_EPSILON * ((self.degrees + 1) / 2 if pareto else 1)
        epsilon = min(self.epsilon, largest)
        epsilon -= max(epsilon * _SHORTAGE, slope * _ROUNDING)
        if self.degrees * rate >= epsilon:
            return 0.0
        return change(epsilon, self.degrees or self.delta, rate)

    def scale(self, size: int) -> float:
        """Return the scale of the noise for a class of `size` records.

        Parameters
        ----------
        size : int
            The size of the smaller class for the AUC, of the positives for average precision.

        Returns
        -------
        float
            The scale, which is as secret as the size.
        """
        size = max(check_integer("size", size, low=0, high=MOST_RECORDS), 1)
        if self.calibration == "nissim":
            beta = self.epsilon / 6
            factor = cauchy_scale(self.epsilon, beta, calibration="nissim")
            return factor * discounted(size, beta, self.metric)
        blocks = _smallest_scales(self, (size - 1).bit_length())
        start, scale, rate = blocks[bisect_right(blocks, size, key=itemgetter(0)) - 1]
        return scale * math.exp(-rate * (size - start))

    def error(self, size: int, confidence: float = CONFIDENCE) -> float:
        """Return the error that a release before clipping stays below with this probability.

        Parameters
        ----------
        size : int
            As in `scale`.
        confidence : float
            The probability, in (0, 1).

        Returns
        -------
        float
            The error, in the unit of the metric.
        """
        confidence = check_probability("confidence", confidence)
        beyond = -math.log1p(-confidence)
        if self.family == "laplace":
            return self.scale(size) * beyond
        if self.family == "pareto":
            return self.scale(size) * math.expm1(beyond / self.degrees)
        return self.scale(size) * float(special.stdtrit(self.degrees, (1 + confidence) / 2))

    @np.errstate(over="ignore")
    def log_density(self, apart: ArrayLike, size: int) -> NDArray[np.float64]:
        """Return the log-density of the noise at given distances from the metric.

        Parameters
        ----------
        apart : array_like of float
            Distances from the metric; finite.
        size : int
            As in `scale`.

        Returns
        -------
        ndarray of float
            Natural logarithms of densities, of the shape of `apart`.
        """
        scale = self.scale(size)
        apart = np.abs(check_doubles("apart", apart)) / scale
        if self.family == "laplace":
            return -apart - math.log(2 * scale)
        v = self.degrees
        if self.family == "pareto":
            return math.log(v / 2) - (v + 1) * np.log1p(apart) - math.log(scale)
        constant = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - math.log(v * math.pi) / 2
        return constant - (v + 1) / 2 * np.log1p(apart**2 / v) - math.log(scale)

    @np.errstate(over="ignore")
    def tail(self, apart: ArrayLike, size: int) -> NDArray[np.float64]:
        """Return the probability that the noise exceeds given numbers.

        Parameters
        ----------
        apart : array_like of float
            The numbers; finite.
        size : int
            As in `scale`.

        Returns
        -------
        ndarray of float
            Probabilities, of the shape of `apart`.
        """
        apart = check_doubles("apart", apart) / self.scale(size)
        if self.family in ("cauchy", "student-t"):
            return special.stdtr(self.degrees, -apart)
        far = np.abs(apart)
        half = np.exp(-(self.degrees * np.log1p(far) if self.family == "pareto" else far)) / 2
        return np.where(apart > 0, half, 1 - half)

    def draw(self, size: int, rng: np.random.Generator | int | None) -> Fraction:
        """Draw the noise for a class of `size` records.

        Parameters
        ----------
        size : int
            As in `scale`.
        rng : Generator, int or None
            Where the randomness comes from; None asks the system for a fresh start.

        Returns
        -------
        Fraction
            The noise, as an exact fraction.
        """
        scale = Fraction(self.scale(size))
        if self.family == "laplace":
            return scale * laplace(check_rng(rng))
        if self.family == "pareto":
            return scale * pareto(self.degrees, check_rng(rng))
        return scale * Fraction(math.sqrt(self.degrees)) * student_t(self.degrees, check_rng(rng))

    def __str__(self) -> str:
        """Return the noise in words."""
        if self.calibration == "nissim":
            return f"Cauchy noise of {6 / self.epsilon:.6g} smooth sensitivities, beta epsilon / 6"
        shape = "Student t" if self.family == "student-t" else self.family.title()
        degrees = f" ({self.degrees} degrees of freedom)" if self.degrees > 1 else ""
        return f"{shape} noise{degrees} of the smallest scale for each class size"


@lru_cache(maxsize=4096)
def _smallest_scales(noise: MetricNoise, bits: int) -> tuple[tuple[int, float, float], ...]:
    """Return blocks of sizes from 1 to 2^bits: first size, its scale, and log-decrease per size."""
    if bits < 0:
        scale = METRIC[noise.metric].bound(1) / noise.allowed_change(0.0)
        return ((1, scale, _steepest_rate(noise, 1, scale, math.inf)),)
    blocks = list(_smallest_scales(noise, bits - 1))
    size, scale, rate = blocks[-1]
    while size + _block(size) <= 1 << bits:
        size, scale = size + _block(size), scale * math.exp(-rate * _block(size))
        rate = _steepest_rate(noise, size, scale, rate)
        blocks.append((size, scale, rate))
    return tuple(blocks)


def _block(size: int) -> int:
    """Return the number of sizes over which the scale decreases at one rate."""
    return max(1, size // _BLOCK)


def _steepest_rate(noise: MetricNoise, size: int, scale: float, before: float) -> float:
    """Return the largest rate at which the scale may decrease over the block that starts here."""
    bound, allowed = METRIC[noise.metric].bound, noise.allowed_change
    # The bound is log-convex, so the condition at both ends of a block implies it in between.
    ends = [(step, scale / bound(size + step)) for step in {1, _block(size)}]

    def slack(rate: float) -> float:
        return min(start * math.exp(-rate * step) for step, start in ends) * allowed(rate) - 1

    if slack(0.0) <= 0:
        return 0.0
    # Where a slope costs nothing, the bound alone says how far the scale may go down.
    free = min(math.log(start * allowed(0.0)) / step for step, start in ends)
    if allowed(free) == allowed(0.0):
        return free * (1 - 1e-12)
    most = min(noise.epsilon / max(noise.degrees, 1), 64.0)
    # The rate of the block before is a little larger, as a rule.
    low, high = before / 2, min(before, most)
    if not (low < high and slack(low) > 0 > slack(high)):
        low, high = 0.0, most
    # A little less than the root, so that the condition holds in spite of rounding.
    found = optimize.brentq(slack, low, high, xtol=1e-300, rtol=1e-13, maxiter=10_000)
    return found * (1 - 1e-12)


def choose_noise(
    n: int,
    epsilon: float,
    *,
    delta: float = 0.0,
    noise: str = "auto",
    metric: str = "auc",
    calibration: str = "exact",
    guess: int | None = None,
) -> MetricNoise:
    """Return the noise that a release would use; it depends on public numbers, not on data.

    Parameters
    ----------
    n : int
        The public number of records, at least 1.
    epsilon : float
        The privacy cost, at least 1e-9 and finite.
    delta : float
        The largest probability, in [0, 1), with which the loss may be larger.
    noise : {"auto", "cauchy", "student-t", "pareto", "laplace"}
        The allowed families; "auto" allows all. Laplace noise needs a delta above 0.
    metric : {"auc", "average precision"}
        The metric to be released.
    calibration : {"exact", "nissim"}
        As in `MetricNoise`; "nissim" is Cauchy noise whatever delta is.
    guess : int, optional
        A *public* guess of the size of the smaller class (for average precision: of the number of
        positives). Without one, the choice must suit all sizes.

    Returns
    -------
    MetricNoise
        With a guess, the noise with the smallest error at 95 % for that size. Without one, the
        noise that minimises the largest ratio of its error to the smallest, over all sizes at which
        some noise has an error of at most 0.1. Its delta is what it spends, so it may be 0.

    Notes
    -----
    The guess selects the family; the scales do not depend on it. If a class is small for the
    epsilon, Cauchy noise decreases fastest with its size; if it is larger, Student t noise with 3
    to 5 degrees of freedom has the lighter tails, and from about 100 / epsilon records on Pareto
    noise, which comes close to Laplace noise. (Hladík and Tětek, 2025, have noise that does.)

    Examples
    --------
    >>> choose_noise(2_000, 1.0).degrees, choose_noise(2_000, 0.1, guess=50).family
    (4, 'cauchy')
    >>> choose_noise(2_000, 1.0, delta=1e-6, guess=500).family
    'laplace'
    """
    n = check_integer("n", n, low=1, high=MOST_RECORDS)
    epsilon, delta = _check_epsilon(epsilon), check_delta(delta)
    check_choice("noise", noise, NOISES)
    check_choice("calibration", calibration, CALIBRATIONS)
    check_choice("metric", metric, METRICS)
    most = METRIC[metric].largest(n)
    if guess is not None:
        guess = check_integer("guess", guess, low=1, high=most)
    if noise == "laplace" and not delta:
        raise ValueError("noise must be one for a delta of 0, got 'laplace'")
    if calibration == "nissim":
        if noise not in ("auto", "cauchy"):
            raise ValueError(f"calibration must be 'exact' for noise {noise!r}, got 'nissim'")
        return MetricNoise(
            metric=metric, family="cauchy", degrees=1, epsilon=epsilon, calibration="nissim"
        )
    return _best_noise(metric, epsilon, delta, noise, most, guess)


@lru_cache(maxsize=1024)
def _best_noise(
    metric: str, epsilon: float, delta: float, noise: str, most: int, guess: int | None
) -> MetricNoise:
    """Return the best noise of the allowed families."""
    spent = dict.fromkeys(FAMILIES, 0.0) | {"laplace": delta}
    plans = [
        MetricNoise(metric=metric, family=family, degrees=v, epsilon=epsilon, delta=spent[family])
        for family in FAMILIES
        if noise in ("auto", family) and (delta or family != "laplace")
        for v in _DEGREES[family]
    ]
    sizes = [guess] if guess else sorted({*np.geomspace(1, most, 100).astype(int).tolist(), most})
    if noise == "auto" and guess is None:
        # Noise that loses by half where a release begins to be useful is looked at no further: its
        # scale at large sizes takes long to find.
        usual = next(plan for plan in plans if plan.degrees == 4)
        first = next((k for k in sizes if usual.error(k) <= _USEFUL), sizes[-1])
        most_error = 1.5 * min(plan.error(first) for plan in plans)
        plans = [plan for plan in plans if plan.error(first) <= most_error]
    errors = np.array([[plan.error(size) for size in sizes] for plan in plans])
    least = errors.min(axis=0)
    # If no size has a useful error, compare at the largest class, where errors are smallest.
    useful = least <= max(_USEFUL, least[-1])
    return plans[int((errors / least)[:, useful].max(axis=1).argmin())]


def _check_epsilon(epsilon: float) -> float:
    return check_real("epsilon", epsilon, low=1e-9, allowed="a finite number of at least 1e-9")
