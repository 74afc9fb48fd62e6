"""The exact half of `dpnotes.audit` for continuous noise."""

import math

import numpy as np
import pytest
from scipy import stats

from dpnotes.audit import density_delta
from dpnotes.private_auc.noise import cauchy_scale, student_t_scale


def student_t_pair(first, second, degrees=1):
    """Two Student's t densities, each given as (centre, scale), and where their log-ratio turns."""
    (a, s), (b, t) = first, second
    # (x - a) / (degrees s^2 + (x - a)^2) is the same for both.
    wide, narrow = degrees * s**2, degrees * t**2
    turns = np.roots(
        [a - b, narrow - wide - (a - b) * (a + b), b * wide - a * narrow + (a - b) * a * b]
    )
    points = turns.real[np.abs(turns.imag) < 1e-12]
    return stats.t(degrees, a, s), stats.t(degrees, b, t), points


def encloses(bounds, exact, width=1e-10):
    """Whether the bounds hold a number and little else."""
    is_within = bounds.lower <= exact * (1 + 1e-14) and exact <= bounds.upper
    return is_within and bounds.upper - bounds.lower <= width * max(exact, 1e-3)


@pytest.mark.claim("audit.density_delta", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 0.999999])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_laplace_noise_has_the_delta_of_its_closed_form(epsilon, scale):
    centres = 7 * scale, 8 * scale
    first, second = (stats.laplace(centre, scale) for centre in centres)
    found = density_delta(first, second, epsilon, turning_points=centres)
    assert encloses(found, -math.expm1((epsilon - 1) / 2), width=1e-9)


def gaussian_delta(epsilon, sigma):
    """Sum by sum as Balle and Wang (2018, theorem 5) have it, in logarithms for the far tail."""
    high = stats.norm.logcdf(1 / (2 * sigma) - epsilon * sigma)
    low = stats.norm.logcdf(-1 / (2 * sigma) - epsilon * sigma)
    return math.exp(high) * -math.expm1(epsilon + low - high)


@pytest.mark.claim("ac-thm-gauss", "audit.density_delta", kind="quadrature with a bound")
@pytest.mark.claim("audit.density_delta", kind="chosen cases")
@pytest.mark.parametrize("sigma", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 6.0])
def test_gaussian_noise_has_the_delta_of_balle_and_wang(epsilon, sigma):
    first, second = stats.norm(3, sigma), stats.norm(2, sigma)
    found = density_delta(first, second, epsilon, turning_points=[0])
    assert encloses(found, gaussian_delta(epsilon, sigma))


def test_a_delta_of_1e_86_keeps_its_digits():
    found = density_delta(stats.norm(0), stats.norm(1), 20.0, turning_points=[0.5])
    assert found.lower == pytest.approx(found.upper, rel=1e-10, abs=0)
    assert found.lower == pytest.approx(gaussian_delta(20.0, 1.0), rel=1e-9, abs=0)


@pytest.mark.claim("audit.density_delta", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [500.0, 640.0, 800.0, 2000.0])
def test_what_is_too_small_for_a_float_is_left_to_the_bounds_and_not_taken_for_0(epsilon):
    first, second = stats.norm(0, 1 / 60), stats.norm(1, 1 / 60)
    lower, upper = density_delta(first, second, epsilon, turning_points=[0.5])
    assert 0 <= lower <= gaussian_delta(epsilon, 1 / 60) * (1 + 1e-12) <= upper * (1 + 1e-11)
    assert (upper - lower < 1e-10 * lower) == (epsilon < 700)


def by_quadrature(first, second, epsilon):
    """Average what the positive part is of an output, over outputs of even probability."""
    even = (np.arange(100_000) + 0.5) / 100_000

    def integral(p, q):
        outputs = p.ppf(even)
        return np.maximum(-np.expm1(epsilon - p.logpdf(outputs) + q.logpdf(outputs)), 0).mean()

    return max(integral(first, second), integral(second, first))


@pytest.mark.claim("audit.density_delta", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize(
    ("first", "second", "points"),
    [
        student_t_pair((0, 1), (1, 1)),
        student_t_pair((0, 1), (0.5, 2)),
        student_t_pair((0, 1), (1, 1.5), 4),
        (stats.norm(0, 1), stats.norm(0, 1.5), [0.0]),
        (stats.logistic(0, 1), stats.logistic(2, 1), [1.0]),
        (stats.laplace(0), stats.laplace(1.5), np.linspace(-3, 4.5, 16)),  # more than the turns
    ],
)
def test_noise_with_several_turns_has_the_delta_of_a_plain_quadrature(
    first, second, points, epsilon
):
    lower, upper = density_delta(first, second, epsilon, turning_points=points)
    expected = by_quadrature(first, second, epsilon)
    assert lower - 1e-6 <= expected <= upper + 1e-6
    assert upper - lower < 1e-10


@pytest.mark.claim("auc-thm-calibration", "auc-thm-student", kind="quadrature with a bound")
@pytest.mark.parametrize("degrees", [1, 4])
def test_a_scale_calibrated_to_epsilon_keeps_it_at_the_smoothest_change(degrees):
    epsilon, beta = 1.0, 0.1
    scale = cauchy_scale(epsilon, beta) if degrees == 1 else student_t_scale(epsilon, beta, degrees)

    # Smooth sensitivity 1 here and exp(beta) there; the answers differ by the smaller of both.
    def bound(size):
        *pair, points = student_t_pair((0.0, size), (1.0, size * math.exp(beta)), degrees)
        return density_delta(*pair, epsilon, turning_points=points)

    assert bound(scale).upper < 1e-10
    assert bound(scale / 2).lower > 1e-3


def test_both_directions_count():
    pair = stats.norm(0, 1), stats.norm(0, 2)
    there, back = (density_delta(*p, 0.5, turning_points=[0]) for p in (pair, pair[::-1]))
    assert there == back


class Slow:
    """A density that falls so slowly that its tails cannot be left out, as a Pareto law does."""

    def __init__(self, scale):
        self.scale = scale

    def logpdf(self, x):
        size = 1 + np.abs(x)
        return np.log(self.scale) - np.log(2 * size) - np.log(size) * self.scale

    def cdf(self, x):
        x = np.asarray(x, float)
        tail = (1 + np.abs(x)) ** -self.scale / 2
        return np.where(x < 0, tail, 1 - tail)

    def sf(self, x):
        return self.cdf(-np.asarray(x, float))


def test_the_upper_bound_pays_for_tails_that_nobody_sees_unless_their_limit_is_known():
    # scale (1 + |x|)^-(scale + 1) / 2; the ratio of scales 1/50 and 1/40 rises outwards for ever.
    first, second = Slow(0.02), Slow(0.025)
    threshold = (0.025 / 0.02 * math.e**0.2) ** (1 / 0.005) - 1
    exact = (1 + threshold) ** -0.02 - math.e**0.2 * (1 + threshold) ** -0.025
    found = density_delta(first, second, 0.2, turning_points=[0.0])
    known = density_delta(first, second, 0.2, turning_points=[0.0], limits=(np.inf, np.inf))
    assert found.lower <= exact <= found.upper
    assert known.lower <= exact <= known.upper <= found.upper

    def upper(*pair, limits):
        return density_delta(*pair, 6.0, turning_points=[0.0], limits=limits).upper

    assert upper(first, second, limits=(5.9, 5.9)) == 0.0
    for limits in (None, (np.inf, 5.9), (5.9, np.inf)):
        assert upper(first, second, limits=limits) > 1e-3
    # The other way round the ratio falls to -7, and what it costs is still that of both ways.
    assert upper(second, first, limits=(-7.0, -7.0)) > 1e-3


@pytest.mark.parametrize(
    ("pair", "points", "message"),
    [
        ((stats.cauchy(0), stats.cauchy(1)), [0.5], "hold every point .* turns between"),
        ((stats.norm(0), stats.norm(0, 2)), [-5.0, 5.0], "hold every point"),
        ((stats.uniform(0, 1), stats.norm(0)), [3.0], "be points .*both densities are pos"),
        ((stats.expon(0), stats.norm(0)), [-1.0, 1.0], "be points .*both densities are pos"),
    ],
)
def test_a_turn_that_is_left_out_and_a_density_of_zero_are_seen_and_refused(pair, points, message):
    with pytest.raises(ValueError, match="turning_points must " + message):
        density_delta(*pair, 1.0, turning_points=points)


class Broken(Slow):
    def sf(self, x):
        return 1.001 - self.cdf(x)


def test_a_distribution_function_that_is_none_is_refused():
    with pytest.raises(ValueError, match="neighbour must have a cdf and an sf that add up to 1"):
        density_delta(Slow(0.5), Broken(0.5), 1.0, turning_points=[0.0])


@pytest.mark.parametrize("points", [[0.0], [0.0, 1.0]])
def test_several_distributions_at_once_are_refused(points):
    several = stats.norm([0, 1], 1)
    with pytest.raises(
        ValueError, match="distribution must be one distribution, got some of shape"
    ):
        density_delta(several, stats.norm(1), 1.0, turning_points=points)
