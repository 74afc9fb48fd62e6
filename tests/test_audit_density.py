"""The exact half of `dpnotes.audit` for continuous noise."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpnotes.audit import _density, density_delta, exact_delta
from dpnotes.private_auc.noise import (
    cauchy_scale,
    student_t_scale,
)


def turning_points(first, second, degrees=1):
    """Where the log-ratio of two Student's t densities turns, each given as (centre, scale)."""
    (a, s), (b, t) = first, second
    # (x - a) / (degrees s^2 + (x - a)^2) is the same for both.
    wide, narrow = degrees * s**2, degrees * t**2
    turns = np.roots(
        [a - b, narrow - wide - (a - b) * (a + b), b * wide - a * narrow + (a - b) * a * b]
    )
    return turns.real[np.abs(turns.imag) < 1e-12]


def encloses(bounds, exact, width=1e-10):
    """Whether the bounds hold a number and little else."""
    lower, upper = bounds
    return (
        lower <= exact * (1 + 1e-14)
        and exact <= upper
        and upper - lower <= width * max(exact, 1e-3)
    )


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
        (stats.cauchy(0, 1), stats.cauchy(1, 1), turning_points((0, 1), (1, 1))),
        (stats.cauchy(0, 1), stats.cauchy(0.5, 2), turning_points((0, 1), (0.5, 2))),
        (stats.t(4, 0, 1), stats.t(4, 1, 1.5), turning_points((0, 1), (1, 1.5), 4)),
        (stats.norm(0, 1), stats.norm(0, 1.5), [0.0]),
        (stats.logistic(0, 1), stats.logistic(2, 1), [1.0]),
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
    near, far = (0.0, scale), (1.0, scale * math.exp(beta))
    first, second = stats.t(degrees, *near), stats.t(degrees, *far)
    options = {"turning_points": turning_points(near, far, degrees)}
    assert density_delta(first, second, epsilon, **options).upper < 1e-10
    first, second = stats.t(degrees, 0.0, scale / 2), stats.t(degrees, 1.0, far[1] / 2)
    options = {"turning_points": turning_points((0.0, scale / 2), (1.0, far[1] / 2), degrees)}
    assert density_delta(first, second, epsilon, **options).lower > 1e-3


def test_a_table_of_cells_never_needs_more_than_the_upper_bound_and_comes_near_the_lower():
    first, second = stats.t(3, 0, 1), stats.t(3, 1, 2)
    points = turning_points((0, 1), (1, 2), 3)
    edges = np.concatenate([[-np.inf], np.linspace(-30, 30, 3001), [np.inf]])
    table = np.array([np.diff(density.cdf(edges)) for density in (first, second)])
    for epsilon in (0.0, 0.2, 0.7):
        lower, upper = density_delta(first, second, epsilon, turning_points=points)
        cells = exact_delta(table / table.sum(axis=1, keepdims=True), epsilon)
        assert lower - 1e-4 < cells <= upper + 1e-12


def test_both_directions_count():
    first, second = stats.norm(0, 1), stats.norm(0, 2)
    there, back = (
        density_delta(*pair, 0.5, turning_points=[0]) for pair in ((first, second), (second, first))
    )
    assert there == back


def test_further_points_between_the_turns_change_nothing():
    options = {"epsilon": 0.4, "limits": (-1.0, 1.0)}
    few, many = (
        density_delta(stats.laplace(1), stats.laplace(0), turning_points=points, **options)
        for points in ([1, 0], np.linspace(-3, 4, 8))
    )
    assert few == pytest.approx(many, abs=1e-12)


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
    assert found.lower <= exact <= found.upper
    known = density_delta(first, second, 0.2, turning_points=[0.0], limits=(np.inf, np.inf))
    assert known.lower <= exact <= known.upper <= found.upper
    unseen = density_delta(first, second, 6.0, turning_points=[0.0])
    assert unseen.upper > 1e-3
    closed = density_delta(first, second, 6.0, turning_points=[0.0], limits=(5.9, 5.9))
    assert closed.upper == 0.0
    for ends in ((np.inf, 5.9), (5.9, np.inf)):
        half = density_delta(first, second, 6.0, turning_points=[0.0], limits=ends)
        assert half.upper > 1e-3
    # The other way round the ratio falls to -7, and what it costs is still that of both ways.
    falls = density_delta(second, first, 6.0, turning_points=[0.0], limits=(-7.0, -7.0))
    assert falls.upper > 1e-3


def test_a_turn_that_is_left_out_is_seen_and_refused():
    with pytest.raises(ValueError, match=r"turning_points must hold every point .* turns between"):
        density_delta(stats.cauchy(0), stats.cauchy(1), 1.0, turning_points=[0.5])
    with pytest.raises(ValueError, match="turning_points must hold every point"):
        density_delta(stats.norm(0), stats.norm(0, 2), 1.0, turning_points=[-5.0, 5.0])


def test_densities_that_are_zero_somewhere_are_refused():
    with pytest.raises(ValueError, match=r"turning_points must be points .*both densities are pos"):
        density_delta(stats.uniform(0, 1), stats.norm(0), 1.0, turning_points=[3.0])
    with pytest.raises(ValueError, match=r"turning_points must be points .*both densities are pos"):
        density_delta(stats.expon(0), stats.norm(0), 1.0, turning_points=[-1.0, 1.0])


class Broken(Slow):
    def sf(self, x):
        return 1.001 - self.cdf(x)


def test_a_distribution_function_that_is_none_is_refused():
    with pytest.raises(ValueError, match="neighbour must have a cdf and an sf that add up to 1"):
        density_delta(Slow(0.5), Broken(0.5), 1.0, turning_points=[0.0])


@pytest.mark.parametrize("points", [[0.0], [0.0, 1.0]])
def test_several_distributions_at_once_are_refused(points):
    one, several = stats.norm(1, 1), stats.norm([0, 1], 1)
    for name, pair in (("distribution", (several, one)), ("neighbour", (one, several))):
        with pytest.raises(ValueError, match=f"{name} must be one distribution, got some of shape"):
            density_delta(*pair, 1.0, turning_points=points)


def test_no_piece_of_the_line_is_left_out_or_counted_twice():
    loss = _density._Loss(stats.cauchy(0), stats.cauchy(1))
    points = np.sort(turning_points((0, 1), (1, 1)))
    pieces = sorted(_density._cut_line(loss, 0.3, points, (math.nan, math.nan)))
    assert pieces[0].start == -math.inf
    assert pieces[-1].end == math.inf
    assert all(a.end == b.start for a, b in itertools.pairwise(pieces))
    assert [piece for piece in pieces if piece.above]
