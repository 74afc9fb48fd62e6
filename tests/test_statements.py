"""Statements of the book that hold for every mechanism, on all small ones, in fractions.

The tables are all distributions on a few outputs whose probabilities have one small denominator.
A ratio stands for the exponential of an epsilon, so that nothing has to be rounded.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from dpnotes import exponential_mechanism, pate, randomized_response
from dpnotes.accounting import composition
from dpnotes.elun import averaged_logistic_loss, minimize_loss, projected_noise
from dpnotes.histogram import log_pmf

HALF = Fraction(1, 2)


def distributions(outputs, parts, least=0):
    """Return all distributions on so many outputs, in units of one over so many parts."""
    return [
        tuple(Fraction(part, parts) for part in row)
        for row in itertools.product(range(least, parts + 1), repeat=outputs)
        if sum(row) == parts
    ]


def ratio(one, other):
    """Return exp(epsilon) of two distributions without a zero, both ways."""
    return max(max(p / q, q / p) for p, q in zip(one, other, strict=True))


def delta(one, other, factor):
    """Return the smallest delta beside exp(epsilon) = factor, one way."""
    return sum(max(p - factor * q, 0) for p, q in zip(one, other, strict=True))


def both_ways(one, other, factor):
    return max(delta(one, other, factor), delta(other, one, factor))


def pairs(outputs, parts, least=0):
    return itertools.product(distributions(outputs, parts, least), repeat=2)


FACTORS = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2)]


# What the definition says, and what follows from it.


@pytest.mark.claim("fd-thm-odds", kind="all cases in exact numbers")
def test_no_output_moves_the_odds_by_more_and_no_guess_is_right_more_often():
    reached = False
    for one, other in pairs(3, 6, least=1):
        most = ratio(one, other)
        for prior in (Fraction(1, 10), HALF, Fraction(3, 4)):
            odds = prior / (1 - prior)
            for p, q in zip(one, other, strict=True):
                after = prior * p / ((1 - prior) * q)
                assert odds / most <= after <= odds * most
        right = sum(max(p, q) for p, q in zip(one, other, strict=True)) / 2
        assert right <= most / (1 + most)
        reached |= most > 1 and right == most / (1 + most)
    assert reached


@pytest.mark.claim("el-advantage", kind="all cases in exact numbers")
def test_no_attack_has_a_larger_advantage_than_the_bound():
    reached = False
    for one, other in pairs(3, 6, least=1):
        most = ratio(one, other)
        advantage = delta(one, other, 1)
        assert advantage <= (most - 1) / (most + 1)
        reached |= most > 1 and advantage == (most - 1) / (most + 1)
    assert reached


@pytest.mark.claim("fd-thm-post-processing", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", FACTORS)
def test_no_function_of_the_output_needs_a_larger_delta(factor):
    functions = list(itertools.product((Fraction(0), HALF, Fraction(1)), repeat=3))
    for one, other in pairs(3, 4):
        needed = both_ways(one, other, factor)
        for says_yes in functions:
            seen = []
            for row in (one, other):
                yes = sum(p * share for p, share in zip(row, says_yes, strict=True))
                seen.append((yes, 1 - yes))
            assert both_ways(*seen, factor) <= needed


def chained(first, second):
    """Return the distribution of an answer and of one that depends on it."""
    return [p * q for p, row in zip(first, second, strict=True) for q in row]


def chains():
    """Yield two answers on two neighbours: the first, and the second for each of its outputs."""
    rows = distributions(2, 4, least=1)
    for one, other in itertools.product(rows, repeat=2):
        for seconds in itertools.product(itertools.product(rows, repeat=2), repeat=2):
            here, there = zip(*seconds, strict=True)
            yield one, other, seconds, chained(one, here), chained(other, there)


@pytest.mark.claim("fd-thm-composition", kind="all cases in exact numbers")
def test_two_answers_cost_no_more_than_the_sum_though_the_second_depends_on_the_first():
    reached = False
    for one, other, seconds, here, there in chains():
        most = ratio(one, other) * max(ratio(*pair) for pair in seconds)
        assert ratio(here, there) <= most
        reached |= most > 1 and ratio(here, there) == most
    assert reached


def truncated_geometric(count, top, factor):
    """Return a count with noise, kept within 0 and `top`: one record changes no odds by more."""
    weights = [1 / factor ** abs(output - count) for output in range(top + 1)]
    ends = [1 / factor ** abs(output - count) / (factor - 1) for output in (0, top)]
    weights[0], weights[-1] = weights[0] + ends[0], weights[-1] + ends[1]
    return tuple(weight / sum(weights) for weight in weights)


def neighbours_of(data, values):
    for place, value in itertools.product(range(len(data)), values):
        if data[place] != value:
            yield (*data[:place], value, *data[place + 1 :])


def worst_ratio(answers, n):
    """Return exp(epsilon) of a mechanism on any n bits of which one is replaced."""
    return max(
        ratio(answers(data), answers(other))
        for data in itertools.product((0, 1), repeat=n)
        for other in neighbours_of(data, (0, 1))
    )


@pytest.mark.claim("fd-thm-parallel", "auc-thm-parallel", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", [Fraction(3, 2), Fraction(3)])
def test_answers_about_public_parts_cost_the_largest_of_them(factor):
    def answers(data):
        first, second = sum(data[:2]), sum(data[2:])
        one = truncated_geometric(first, 2, factor)
        return chained(one, [truncated_geometric(second, 2, factor)] * len(one))

    assert worst_ratio(answers, 4) == factor


@pytest.mark.claim("fd-thm-parallel", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", [Fraction(3, 2), Fraction(3)])
def test_answers_about_parts_that_records_choose_cost_twice(factor):
    def answers(data):
        one, other = (truncated_geometric(data.count(part), 3, factor) for part in (0, 1))
        return chained(one, [other] * len(one))

    assert worst_ratio(answers, 3) == factor**2


@pytest.mark.claim("fd-thm-group", kind="all cases in exact numbers")
def test_a_group_costs_as_much_as_its_members_one_after_the_other():
    reached = False
    for chain in itertools.product(distributions(2, 8, least=1), repeat=3):
        most = max(ratio(one, other) for one, other in itertools.pairwise(chain))
        assert ratio(chain[0], chain[-1]) <= most**2
        reached |= most > 1 and ratio(chain[0], chain[-1]) == most**2
    assert reached


@pytest.mark.claim("ac-thm-group", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", FACTORS)
def test_a_group_with_a_delta_costs_the_stated_sum(factor):
    closest = 0
    for chain in itertools.product(distributions(3, 4), repeat=3):
        needed = max(both_ways(one, other, factor) for one, other in itertools.pairwise(chain))
        found = delta(chain[0], chain[2], factor**2)
        assert found <= needed * (1 + factor)
        closest = max(closest, found / (needed * (1 + factor)) if found else 0)
    assert closest > HALF


@pytest.mark.claim("fd-thm-trade-off", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", FACTORS)
def test_the_trade_off_lies_above_two_lines_and_touches_them(factor):
    for one, other in pairs(3, 5):
        needed = both_ways(one, other, factor)
        slack = []
        for said in itertools.product((0, 1), repeat=3):
            alpha = sum(p for p, yes in zip(other, said, strict=True) if yes)
            beta = sum(p for p, yes in zip(one, said, strict=True) if not yes)
            slack.append(beta - (1 - needed - factor * alpha))
            slack.append(beta - (1 - needed - alpha) / factor)
        # At the smallest delta no test lies below, and one lies on a line: a smaller one is false.
        assert min(slack) == 0


# Randomized response is all there is for one bit.


@pytest.mark.claim("rr-optimal", kind="all cases in exact numbers")
def test_every_report_about_one_bit_is_made_from_randomized_response():
    for one, other in pairs(3, 6, least=1):
        most = ratio(one, other)
        if most == 1:
            continue
        keep = most / (1 + most)
        lie = 1 - keep
        made = [
            [(keep * p - lie * q) / (keep - lie) for p, q in zip(*rows, strict=True)]
            for rows in ((one, other), (other, one))
        ]
        assert all(min(row) >= 0 and sum(row) == 1 for row in made)
        for row, (a, b) in zip((one, other), ((0, 1), (1, 0)), strict=True):
            mixed = [keep * p + lie * q for p, q in zip(made[a], made[b], strict=True)]
            assert mixed == list(row)


@pytest.mark.claim("lp-optimal", kind="chosen cases")
@pytest.mark.parametrize(("n", "prior"), [(1, 0.5), (1, 0.8), (2, 0.5), (2, 0.6), (2, 0.9)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_mechanism_on_labels_keeps_more_of_them(n, prior, epsilon):
    """Linear programming finds the best of all tables of probabilities."""
    columns = list(itertools.product((0, 1), repeat=n))
    size = len(columns)

    def kept(truth, report):
        return sum(a == b for a, b in zip(truth, report, strict=True)) / n

    chances = [math.prod(prior if y else 1 - prior for y in truth) for truth in columns]
    gain = np.array([[kept(t, r) for r in columns] for t in columns]) * np.array(chances)[:, None]
    private = []
    for (i, one), (j, other) in itertools.permutations(enumerate(columns), 2):
        if kept(one, other) == (n - 1) / n:
            for report in range(size):
                row = np.zeros((size, size))
                row[i, report], row[j, report] = 1, -math.exp(epsilon)
                private.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(size))
    best = optimize.linprog(
        -gain.ravel(), np.array(private), np.zeros(len(private)), sums, np.ones(size)
    )
    keep = randomized_response.keep_probability(epsilon)
    assert -best.fun == pytest.approx(max(keep, prior, 1 - prior), rel=1e-9)


@pytest.mark.claim("lp-balanced", kind="all cases in exact numbers")
def test_a_learner_gains_exactly_where_the_balanced_accuracy_is_above_one_half():
    for positives, negatives in itertools.product(range(1, 7), repeat=2):
        for kept, others in itertools.product(range(positives + 1), range(negatives + 1)):
            up, down = kept + negatives - others, positives - kept + others
            if up and down:
                among_up, among_down = Fraction(kept, up), Fraction(positives - kept, down)
                balanced = Fraction(kept, positives) + Fraction(others, negatives)
                assert (among_up > among_down) == (balanced > 1)


# Noise, and how much of it.


@pytest.mark.claim("ac-def-sensitivity", kind="all cases in exact numbers")
def test_a_number_moves_alike_in_both_norms_and_a_histogram_does_not():
    records = range(4)

    def furthest(query, power):
        return max(
            sum(abs(a - b) ** power for a, b in zip(query(data), query(other), strict=True))
            for data in itertools.product(records, repeat=3)
            for other in neighbours_of(data, records)
        )

    def total(data):
        return [sum(data)]

    def histogram(data):
        return [data.count(r) for r in records]

    assert (furthest(total, 1), furthest(total, 2)) == (3, 3**2)
    assert (furthest(histogram, 1), furthest(histogram, 2)) == (2, 2)
    # The noise of the package is made for the first: two counts move, and the worst output pays.
    loss = log_pmf([[9, -9]], ["a"], ["a", "b"], 1.0)
    loss = loss - log_pmf([[9, -9]], ["b"], ["a", "b"], 1.0)
    assert float(loss[0]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.claim("ac-thm-laplace", kind="quadrature with a bound")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_noise_of_sensitivity_over_epsilon_moves_no_density_by_more(epsilon):
    sensitivity = 2.0
    outputs = np.linspace(-50, 50, 20_001)
    centre = stats.laplace.logpdf(outputs, 0, sensitivity / epsilon)
    for moved in np.linspace(0, sensitivity, 21):
        other = stats.laplace.logpdf(outputs, moved, sensitivity / epsilon)
        # The ratio is constant outside of the two centres, so the grid meets the largest.
        assert np.abs(centre - other).max() == pytest.approx(
            moved * epsilon / sensitivity, abs=1e-9
        )


@pytest.mark.claim("ac-thm-gauss", "accounting.gaussian_cost", kind="quadrature with a bound")
@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_delta_of_gaussian_noise_is_the_integral(mu):
    for epsilon in (0.0, 0.5, 2.0):
        start, factor = epsilon / mu + mu / 2, math.exp(epsilon)

        def above(x, factor=factor):
            return stats.norm.pdf(x, mu) - factor * stats.norm.pdf(x)

        found, error = integrate.quad(above, start, start + 40, epsabs=1e-14)
        stated = math.exp(composition._log_gaussian_delta(epsilon, mu))
        assert stated == pytest.approx(found, abs=error + 1e-12)


@pytest.mark.claim("ac-thm-subsampling", kind="all cases in exact numbers")
@pytest.mark.parametrize("factor", [Fraction(3, 2), Fraction(3)])
@pytest.mark.parametrize("q", [Fraction(1, 4), HALF, Fraction(9, 10)])
def test_a_batch_drawn_at_random_costs_no_more_than_the_stated_epsilon(factor, q):
    # One more yes, or one less, is a factor; one for the other, too: they move opposite ends.
    def answer(batch):
        return truncated_geometric(sum(batch), 3, factor)

    def of_batches(data):
        rows = []
        for drawn in itertools.product((True, False), repeat=len(data)):
            chance = math.prod(q if there else 1 - q for there in drawn)
            batch = [record for record, there in zip(data, drawn, strict=True) if there]
            rows.append([chance * p for p in answer(batch)])
        return [sum(column) for column in zip(*rows, strict=True)]

    assert 1 < worst_ratio(of_batches, 3) <= 1 + q * (factor - 1)


@pytest.mark.claim("em-utility", kind="enumeration")
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_a_bad_candidate_is_drawn_no_more_often_than_the_theorem_says(epsilon):
    for utilities in itertools.product(range(5), repeat=4):
        chances = exponential_mechanism.output_distribution(list(utilities), epsilon)
        for behind in range(1, 5):
            t = epsilon * behind / 2 - math.log(4)
            below = np.array(utilities) < max(utilities) - behind * (1 - 1e-12)
            if t >= 0:
                assert chances[below].sum() <= math.exp(-t)
                assert chances[np.array(utilities) <= max(utilities) - behind].sum() <= math.exp(-t)


# Moments of the loss.


def log_moment(one, other, moment):
    terms = [
        (moment + 1) * math.log(p) - moment * math.log(q) for p, q in zip(one, other, strict=True)
    ]
    return special.logsumexp(terms)


MOMENTS = (0.5, 1, 3, 10)


@pytest.mark.claim("pt-loss", "pt-moments", "pt-range", kind="enumeration")
def test_losses_within_an_interval_have_moments_within_the_bound():
    closest = 0.0
    for one, other in pairs(3, 8, least=1):
        losses = [math.log(p / q) for p, q in zip(one, other, strict=True)]
        length = max(losses) - min(losses)
        for moment in MOMENTS:
            bound = length**2 * moment * (moment + 1) / 8
            found = log_moment(one, other, moment)
            assert found <= bound + 1e-12
            closest = max(closest, found / bound if bound else 0)
    assert closest > 0.9


@pytest.mark.claim("pt-compose", kind="enumeration")
def test_moments_of_two_answers_add_up_though_the_second_depends_on_the_first():
    for one, other, seconds, here, there in chains():
        for moment in (0.5, 3):
            most = max(log_moment(*pair, moment) for pair in seconds)
            found = log_moment(here, there, moment)
            assert found <= log_moment(one, other, moment) + most + 1e-12


@pytest.mark.claim("pt-tail", kind="enumeration")
def test_the_tail_bound_gives_enough_delta():
    for one, other in pairs(3, 8, least=1):
        moments = {moment: log_moment(one, other, moment) for moment in MOMENTS}
        for epsilon in (0.0, 0.3, 1.0):
            bound = min(math.exp(alpha - moment * epsilon) for moment, alpha in moments.items())
            found = delta(one, other, Fraction(math.exp(epsilon)))
            assert float(found) <= bound * (1 + 1e-12)


# Votes.


@pytest.mark.claim("pate.LNMax.rdp", "pate.GNMax.rdp", "pate.GumbelMax.rdp", kind="enumeration")
@pytest.mark.parametrize("ask", [pate.LNMax(0.4), pate.GNMax(2.0), pate.GumbelMax(1.5)])
def test_no_neighbour_of_any_votes_diverges_more_than_a_mechanism_says(ask):
    closest = 0.0
    for votes in (row for row in itertools.product(range(8), repeat=3) if sum(row) == 7):
        moves = itertools.permutations(range(3), 2)
        moved = [np.eye(3, dtype=int)[to] - np.eye(3, dtype=int)[here] for here, to in moves]
        others = [votes + move for move in moved if np.min(votes + move) >= 0]
        table = ask.output_distribution([votes, *others])
        for order in (1.5, 4, 20):
            found = max(log_moment(table[0], other, order - 1) for other in table[1:]) / (order - 1)
            stated = ask.rdp(votes, order)
            assert found <= stated * (1 + 1e-9)
            closest = max(closest, found / stated)
    assert closest > 0.2


# The AUC.


@pytest.mark.claim("auc-thm-limit", kind="chosen cases")
def test_no_noise_on_the_auc_is_more_accurate_than_the_limit():
    closest = 0.0
    for epsilon, n, t in itertools.product((0.05, 0.3, 1.0), (10, 100, 1000), (0.01, 0.05, 0.2)):
        # Class sizes are public here: one record moves the AUC by 1 / n.
        for noise in (
            stats.laplace(scale=1 / (n * epsilon)),
            stats.cauchy(scale=1 / (2 * n * math.sinh(epsilon / 2))),
        ):
            right = noise.cdf(t) - noise.cdf(-t)
            k = math.floor(2 * t * n) + 1
            steps = np.arange(1, n // (2 * k) + 1)
            limit = right * (1 + 2 * np.exp(-epsilon * k * steps).sum())
            assert limit <= 1 + 1e-12
            closest = max(closest, limit)
    assert closest > 0.9


# Losses that look at a margin.


def all_losses(top, values):
    """Return every loss on whole margins from -top to top, as a dictionary."""
    margins = range(-top, top + 1)
    for row in itertools.product(range(values), repeat=len(margins)):
        yield dict(zip(margins, row, strict=True))


def is_convex(loss):
    ends = max(loss)
    return all(loss[z - 1] + loss[z + 1] >= 2 * loss[z] for z in range(1 - ends, ends))


def is_symmetric(loss):
    return len({loss[z] + loss[-z] for z in loss}) == 1


@pytest.mark.claim("sl-impossible", kind="all cases in exact numbers")
def test_among_all_small_losses_only_constants_are_convex_and_symmetric():
    # A line that is not constant leaves a strip as high as this one within its width.
    seen = {"convex": 0, "symmetric": 0}
    for loss in all_losses(top=3, values=3):
        constant = len(set(loss.values())) == 1
        convex, symmetric = is_convex(loss), is_symmetric(loss)
        seen["convex"] += convex and not constant
        seen["symmetric"] += symmetric and not constant
        assert constant or not (convex and symmetric)
    assert min(seen.values()) > 0


def mean(weights, values):
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


LOSSES = {
    "squared": lambda z: (1 - z) ** 2,
    "hinge": lambda z: max(0, 1 - z),
    "steps": lambda z: 3 * (z < 0) + (z == 0),
    "unhinged": lambda z: 1 - z,
}


@pytest.mark.claim("sl-corrupted", "sl-any-loss", kind="all cases in exact numbers")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_reported_risk_of_any_loss_is_the_stated_sum(loss):
    scores = (-2, 1, 3)
    both = {z: Fraction(loss(z) + loss(-z)) for z in range(-6, 7)}

    def risks(up, down):
        """Return BER and AUC risk of two distributions of scores."""
        ber = (mean(up, map(loss, scores)) + mean(down, [loss(-z) for z in scores])) / 2
        return ber, mean(up, [mean(down, [loss(a - b) for b in scores]) for a in scores])

    def pairwise(first, second):
        return mean(first, [mean(second, [both[a - b] for b in scores]) for a in scores])

    for up, down in pairs(3, 2):
        clean = risks(up, down)
        for pi, other in ((Fraction(3, 4), Fraction(1, 3)), (1, 0), (HALF, HALF)):
            mixed = [
                [w * p + (1 - w) * n for p, n in zip(up, down, strict=True)] for w in (pi, other)
            ]
            of_ber = other * mean(up, [both[z] for z in scores])
            of_ber += (1 - pi) * mean(down, [both[z] for z in scores])
            of_auc = pi * other * pairwise(up, up) + (1 - pi) * (1 - other) * pairwise(down, down)
            of_auc += 2 * (1 - pi) * other * pairwise(up, down)
            found = risks(*mixed)
            assert found[0] == (pi - other) * clean[0] + of_ber / 2
            assert found[1] == (pi - other) * clean[1] + of_auc / 2


CALIBRATED = {
    "sigmoid": lambda z: special.expit(-z),
    "ramp": lambda z: np.clip((1 - z) / 2, 0, 1),
    "zero-one": lambda z: (z <= 0).astype(float),
}


@pytest.mark.claim("sl-excess", "sl-calibration", kind="chosen cases")
@pytest.mark.parametrize("loss", CALIBRATED.values(), ids=CALIBRATED)
def test_excess_risk_in_errors_is_at_most_that_in_a_symmetric_loss_over_its_gap(loss):
    z = np.linspace(-800, 800, 16_001)
    least, least_wrong = loss(z).min(), loss(z[z <= 0]).min()
    assert least_wrong > least
    closest = 0.0
    for likely in np.linspace(0.01, 0.99, 99):
        expected = likely * loss(z) + (1 - likely) * loss(-z)
        excess = expected - expected.min()
        wrong = (z <= 0) if likely > 0.5 else (z > 0)
        in_errors = abs(2 * likely - 1) * wrong
        assert np.all(in_errors <= excess / (least_wrong - least) + 1e-9)
        if likely > 0.5:
            closest = max(closest, np.max(in_errors - excess / (least_wrong - least)))
    assert closest == pytest.approx(0, abs=1e-9)


@pytest.mark.claim("sl-calibration", kind="chosen cases")
@pytest.mark.parametrize("loss", [np.ones_like, special.expit], ids=["constant", "reversed"])
def test_without_a_gap_no_multiple_of_the_excess_risk_bounds_the_errors(loss):
    z = np.linspace(-30, 30, 601)
    assert loss(z[z <= 0]).min() <= loss(z).min()
    expected = 0.9 * loss(z) + 0.1 * loss(-z)
    # The scores of least risk are wrong ones, whose excess in errors is 0.8.
    assert np.any((expected == expected.min()) & (z <= 0))


# Learning under noise.


@pytest.mark.claim("el-proposition", kind="chosen cases")
def test_a_loss_averaged_over_any_noise_stays_convex_and_no_steeper():
    margins = np.linspace(-12, 12, 2401)
    noises = [([0.0], [1.0]), ([-3.0, 1.0, 9.0], [0.5, 0.3, 0.2]), projected_noise(4, 50)]
    for points, weights in noises:
        averaged = np.array(
            [averaged_logistic_loss(t, np.asarray(points), np.asarray(weights)) for t in margins]
        )
        slopes = np.diff(averaged) / np.diff(margins)
        assert np.all(np.abs(slopes) <= 1)
        assert np.all(np.diff(slopes) >= -1e-10)


@pytest.mark.claim("el-loud", kind="chosen cases")
def test_under_loud_noise_the_best_weights_are_half_the_mean_row_over_the_penalty():
    rows = np.array([[1.0, 0.2], [-0.4, 0.9], [0.3, -0.5], [0.8, 0.6]])
    signs, penalty = np.array([1, -1, 1, 1]), 0.3
    points, weights = projected_noise(2, 100)
    distances = []
    for loudness in (1e2, 1e4, 1e6):
        shifts = loudness * np.linalg.norm(rows, axis=1)[:, np.newaxis] * points
        found = minimize_loss(rows, signs, penalty, shifts=shifts, weights=weights)
        limit = (signs[:, np.newaxis] * rows).mean(axis=0) / (2 * penalty)
        distances.append(np.linalg.norm(found - limit))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-5


def density_after_a_push(rows, outputs, scale, penalty):
    """Return the log-density of the weights that are best under a push, up to a constant."""
    margins, n = outputs @ rows.T, len(rows)
    push = special.expit(-margins) @ rows - n * penalty * outputs
    slopes = special.expit(margins) * special.expit(-margins)
    curvature = np.einsum("wi,ia,ib->wab", slopes, rows, rows) + n * penalty * np.eye(2)
    return np.log(np.linalg.det(curvature)) - np.linalg.norm(push, axis=1) / scale


@pytest.mark.claim("el-objective", kind="chosen cases")
@pytest.mark.parametrize(("epsilon", "penalty"), [(3.0, 0.02), (1.0, 0.5)])
def test_objective_perturbation_moves_no_density_by_more_than_epsilon(epsilon, penalty):
    """With weights in a plane, rows on the unit circle or zero, and two records."""
    line, angles = np.linspace(-6, 6, 61), math.pi / 4 * np.arange(8)
    outputs = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    records = [*np.stack([np.cos(angles), np.sin(angles)], axis=1), np.zeros(2)]

    def worst(push_epsilon):
        return max(
            np.ptp(
                [
                    density_after_a_push(np.array([one, other]), outputs, 2 / push_epsilon, penalty)
                    for one in records
                ],
                axis=0,
            ).max()
            for other in records
        )

    charged = math.log1p(1 / (4 * 2 * penalty))
    assert 0.6 * epsilon < worst(epsilon - charged) <= epsilon
    # Without the charge for the curvature, a weak penalty breaks the promise.
    assert penalty > 0.1 or worst(epsilon) > epsilon
