"""Losses of any number of classes, and what randomized response does to their risks."""

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dpnotes import randomized_response  # noqa: E402
from dpnotes import symmetric_loss as sl  # noqa: E402

# What each adds up to over k labels.
SYMMETRIC = {
    sl.mean_absolute_error: lambda k: 2 * (k - 1),
    sl.normalized_cross_entropy: lambda k: 1,
    sl.multiclass_unhinged_loss: lambda k: k,
}
SQUARE_ROOT = partial(sl.generalized_cross_entropy, power=0.5)
CORRECTED = partial(sl.corrected_cross_entropy, keep_probability=0.6)
ASYMMETRIC = [sl.cross_entropy, sl.generalized_cross_entropy, SQUARE_ROOT, CORRECTED]
LOSSES = [*SYMMETRIC, *ASYMMETRIC]


def name_of(loss):
    if isinstance(loss, partial):
        return f"{loss.func.__name__}-{'-'.join(map(str, loss.keywords.values()))}"
    return loss.__name__


every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name_of)
every_dtype = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)


def grid(categories, values=(-3.0, 0.0, 0.5, 2.0)):
    """Return every list of so many scores from a few values, (lists, categories)."""
    return torch.tensor(list(itertools.product(values, repeat=categories)), dtype=torch.float64)


def of_all_labels(loss, logits):
    """Return the loss of each label, of the shape of the scores."""
    labels = torch.arange(logits.shape[-1]).expand(logits.shape)
    wide = logits.unsqueeze(-2).expand(*logits.shape, logits.shape[-1])
    return loss(wide, labels)


# The losses.


@pytest.mark.claim("sl-classes-symmetric", kind="enumeration")
@pytest.mark.parametrize("categories", [2, 3, 5])
@pytest.mark.parametrize(("loss", "constant"), SYMMETRIC.items(), ids=map(name_of, SYMMETRIC))
def test_a_symmetric_loss_adds_up_to_one_constant_over_the_labels(loss, constant, categories):
    total = of_all_labels(loss, grid(categories)).sum(-1)
    torch.testing.assert_close(
        total, torch.full_like(total, constant(categories)), rtol=1e-13, atol=1e-13
    )


@pytest.mark.parametrize("power", [0.3, 0.7, 1.0])
def test_the_sum_of_generalized_cross_entropies_has_the_bounds_that_it_states(power):
    k = 4
    loss = partial(sl.generalized_cross_entropy, power=power)
    total = of_all_labels(loss, grid(k, (-9.0, -1.0, 0.0, 30.0))).sum(-1)
    low, high = (k - k ** (1 - power)) / power, (k - 1) / power
    assert low - 1e-12 <= total.min() <= total.max() <= high + 1e-12
    assert total.min() == pytest.approx(low)
    assert total.max() == pytest.approx(high, rel=1e-3)


def test_losses_take_their_values_by_hand():
    u = np.array([1 / 2, 1 / 3, 1 / 6])
    logits, labels = torch.tensor([3.0, 2.0, 1.0]).double().log().repeat(3, 1), torch.arange(3)
    unhinged = 1 - np.log([3 / math.sqrt(2), 2 / math.sqrt(3), 1 / math.sqrt(6)])
    expected = {
        sl.mean_absolute_error: 2 - 2 * u,
        sl.normalized_cross_entropy: np.log(u) / np.log(u).sum(),
        sl.multiclass_unhinged_loss: unhinged,
        sl.cross_entropy: -np.log(u),
        SQUARE_ROOT: 2 - 2 * np.sqrt(u),
        partial(sl.generalized_cross_entropy, power=1.0): 1 - u,
        CORRECTED: -np.log(0.2 + 0.4 * u),
    }
    for loss, values in expected.items():
        assert loss(logits, labels).tolist() == pytest.approx(list(values), rel=1e-14)


def test_with_two_classes_they_are_the_losses_of_the_margin():
    margin = torch.linspace(-6, 6, 25, dtype=torch.float64)
    logits = torch.stack([margin / 2 + 1, 1 - margin / 2], dim=-1)
    logistic = sl.logistic_loss
    of_margin = {
        sl.mean_absolute_error: lambda z: 2 * sl.sigmoid_loss(z),
        sl.multiclass_unhinged_loss: sl.unhinged_loss,
        sl.cross_entropy: logistic,
        sl.normalized_cross_entropy: lambda z: logistic(z) / (logistic(z) + logistic(-z)),
        CORRECTED: partial(sl.corrected_logistic_loss, keep_probability=0.6),
    }
    for (loss, expected), sign in itertools.product(of_margin.items(), (1, -1)):
        labels = torch.full((25,), int(sign < 0))
        torch.testing.assert_close(loss(logits, labels), expected(sign * margin))


@every_loss
def test_slopes_are_those_of_finite_differences(loss):
    generator = torch.Generator().manual_seed(2)
    logits = 2 * torch.randn((3, 4, 5), generator=generator, dtype=torch.float64)
    labels = torch.randint(5, (3, 4), generator=generator)
    assert torch.autograd.gradcheck(loss, (logits.requires_grad_(), labels))


@pytest.mark.claim("sl-classes", kind="chosen cases")
def test_the_absolute_error_hardly_moves_a_score_of_a_label_that_it_thinks_unlikely():
    for doubt in (0.0, 3.0, 6.0):
        slopes = {}
        for loss in (sl.mean_absolute_error, sl.cross_entropy):
            logits = torch.tensor([-doubt, 0.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
            loss(logits, torch.tensor(0)).backward()
            slopes[loss] = logits.grad
        probability = math.exp(-doubt) / (math.exp(-doubt) + 3)
        expected = 2 * probability * slopes[sl.cross_entropy]
        torch.testing.assert_close(slopes[sl.mean_absolute_error], expected)


@every_loss
def test_no_loss_overflows_where_scores_are_large(loss):
    for way in (-1e4, 1e4):
        logits = torch.tensor([way, 0.0, 3.0], requires_grad=True)
        value = loss(logits, torch.tensor(0))
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()


@every_dtype
@pytest.mark.parametrize("p", [5e-324, 1e-9, 0.5, 1 - 1e-9])
def test_a_corrected_cross_entropy_is_finite_and_so_are_its_slopes(dtype, p):
    for scores, label in itertools.product(([99.0, 0, 0], [0, 99.0, -99.0], [0, 0, 0]), range(3)):
        with mpmath.workdps(60):
            u = mpmath.exp(scores[label]) / sum(map(mpmath.exp, scores))
            expected = -mpmath.log(mpmath.mpf(p) * u + (1 - mpmath.mpf(p)) / 2 * (1 - u))
        logits = torch.tensor(scores, dtype=dtype, requires_grad=True)
        value = sl.corrected_cross_entropy(logits, torch.tensor(label), p)
        assert value.dtype == dtype
        tolerance = 3 * torch.finfo(dtype).eps
        assert value.item() == pytest.approx(float(expected), rel=tolerance, abs=tolerance)
        value.backward()
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("p", [0.05, 1 / 3, 0.6, 1 - 1e-9])
def test_small_slopes_of_a_corrected_cross_entropy_keep_their_digits(p):
    logits, labels = 5 * grid(3, (-5.0, -1.0, 0.0, 4.0)), torch.arange(64) % 3
    single, double = (logits.to(dtype).requires_grad_() for dtype in (torch.float, torch.double))
    for scores in (single, double):
        sl.corrected_cross_entropy(scores, labels, p).sum().backward()
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=1e-4, atol=1e-30)


@every_dtype
@pytest.mark.parametrize("power", [5e-324, 1e-46, 1e-39, 1e-8])
def test_a_power_near_zero_gives_the_cross_entropy_and_its_slopes(dtype, power):
    for scores in ([0.0] * 4, [-9.0, 0.0, 3.0, 9.0]):
        found, expected = (torch.tensor([scores], dtype=dtype, requires_grad=True) for _ in "12")
        label = torch.tensor([0])
        loss = sl.generalized_cross_entropy(found, label, power)
        plain = sl.cross_entropy(expected, label)
        loss.sum().backward(), plain.sum().backward()
        tolerance = {"rtol": 2 * torch.finfo(dtype).eps + 20 * power, "atol": 0.0}
        torch.testing.assert_close(loss, plain, **tolerance)
        torch.testing.assert_close(found.grad, expected.grad, **{**tolerance, "atol": 1e-3})


@every_dtype
def test_shares_of_scores_as_far_apart_as_can_be_are_numbers(dtype):
    most = torch.finfo(dtype).max
    for scores, shares in [
        ([most, -most], [0, 1]),
        ([most, 0.0, -most], [0, 1 / 3, 2 / 3]),
        ([most, most, -most, -most], [0, 0, 1 / 2, 1 / 2]),
        ([0.0] * 99 + [most], [1 / 99] * 99 + [0]),
    ]:
        logits = torch.tensor(scores, dtype=dtype, requires_grad=True)
        found = of_all_labels(sl.normalized_cross_entropy, logits)
        expected = torch.tensor(shares, dtype=dtype)
        torch.testing.assert_close(found, expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-5)
        found[0].backward()
        assert torch.isfinite(logits.grad).all()


def test_large_scores_keep_the_digits_of_their_differences():
    for dtype in (torch.float32, torch.float64):
        logits = torch.tensor([[1e8, 1e8 + 8]], dtype=dtype)
        assert sl.multiclass_unhinged_loss(logits, torch.tensor([1])).tolist() == [-7]
    half = torch.tensor([[4096.0, 4100.0, 4104.0]], dtype=torch.float16)
    assert sl.multiclass_unhinged_loss(half, torch.tensor([0])).tolist() == [7]


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_what_single_precision_does_but_for_digits(loss, dtype):
    logits, labels = grid(3).to(dtype), torch.arange(64) % 3
    expected = loss(logits.float(), labels).to(dtype)
    tolerance = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 0.0}
    torch.testing.assert_close(loss(logits, labels), expected, **tolerance)


@every_loss
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64], ids=str)
def test_labels_may_be_integers_of_any_width(loss, dtype):
    logits, labels = grid(3), torch.arange(64) % 3
    assert torch.equal(loss(logits, labels.to(dtype)), loss(logits, labels))


# The theorem.

# Three places, how likely each is and which label it has there, and an answer at each.
PLACES = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
TRUTH = (
    (Fraction(3, 4), Fraction(1, 8), Fraction(1, 8)),
    (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)),
    (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)),
)


def risk_of(values, truth, channel):
    """Return the mean loss of reports: values[place][label], and channel[label][report]."""
    return sum(
        place * truth[x][y] * channel[y][r] * values[x][r]
        for x, place in enumerate(PLACES)
        for y in range(3)
        for r in range(3)
    )


def lying(p):
    """Return the channel that keeps a label with probability p; with 1 it is honest."""
    return [[p if y == r else (1 - p) / 2 for r in range(3)] for y in range(3)]


@pytest.mark.claim("sl-classes", kind="all cases in exact numbers")
@pytest.mark.parametrize("p", [Fraction(3, 5), Fraction(2, 5), Fraction(1, 4)], ids=str)
def test_the_reported_number_of_errors_is_a_line_in_the_true_one_for_every_classifier(p):
    q = (1 - p) / 2
    for answers in itertools.product(range(3), repeat=3):
        errors = [[Fraction(int(label != said)) for label in range(3)] for said in answers]
        true, reported = (risk_of(errors, TRUTH, c) for c in (lying(Fraction(1)), lying(p)))
        assert reported == (p - q) * true + q * 2


@pytest.mark.claim("sl-classes", kind="enumeration")
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_the_reported_risk_of_any_loss_is_a_line_and_what_all_labels_cost(loss, epsilon):
    channel = randomized_response.output_distribution(epsilon, 3)
    p, q = channel[0, 0], channel[0, 1]
    for places in itertools.combinations(grid(3, (-2.0, 0.0, 1.5))[::3], 2):
        values = of_all_labels(loss, torch.stack([*places, places[0].flip(0)])).numpy()
        true, reported = (float(risk_of(values, TRUTH, c)) for c in (np.eye(3), channel))
        all_labels = float(sum(a * float(b) for a, b in zip(values.sum(-1), PLACES, strict=True)))
        assert reported == pytest.approx((p - q) * true + q * all_labels, rel=1e-12)
        if loss in SYMMETRIC:
            line = (p - q) * true + q * SYMMETRIC[loss](3)
            assert reported == pytest.approx(line, rel=1e-12)


@pytest.mark.claim("sl-classes", kind="enumeration")
@pytest.mark.parametrize("loss", SYMMETRIC, ids=name_of)
def test_lies_keep_the_order_of_all_models_and_shrink_what_is_between_them(loss):
    channel = randomized_response.output_distribution(0.5, 3)
    values = of_all_labels(loss, grid(3, (-1.0, 0.0, 2.0))[::6]).numpy()
    models = [values[list(model)] for model in itertools.product(range(len(values)), repeat=3)]
    risks = [[float(risk_of(m, TRUTH, c)) for m in models] for c in (np.eye(3), channel)]
    true, reported = np.array(risks)
    assert true[reported.argmin()] == pytest.approx(true.min(), abs=1e-13)
    shrunk = (channel[0, 0] - channel[0, 1]) * (true - true.min())
    np.testing.assert_allclose(reported - reported.min(), shrunk, atol=1e-13)


@pytest.mark.claim("sl-classes", kind="enumeration")
@pytest.mark.parametrize("categories", [2, 3, 10])
def test_an_excess_on_reports_counts_one_and_k_over_the_odds_less_one_times(categories):
    for epsilon in (0.1, 4.0):
        row = randomized_response.output_distribution(epsilon, categories)[0]
        factor = 1 + categories / math.expm1(epsilon)
        assert 1 / (row[0] - row[1]) == pytest.approx(factor, rel=1e-12)


def shares(k, steps):
    """Return all distributions over k classes in so many steps."""
    return [
        [Fraction(part, steps) for part in parts]
        for parts in itertools.product(range(steps + 1), repeat=k)
        if sum(parts) == steps
    ]


@pytest.mark.claim("sl-classes", kind="all cases in exact numbers")
def test_a_small_absolute_error_means_few_errors_up_to_half_the_number_of_classes():
    for k, steps in ((2, 12), (3, 6), (4, 4)):
        tightest = Fraction(0)
        for eta, u in itertools.product(shares(k, 6), shares(k, steps)):
            excess = 2 * (max(eta) - sum(a * b for a, b in zip(eta, u, strict=True)))
            # Of classes with the largest score the worst one is named.
            errors = max(eta) - min(eta[j] for j in range(k) if u[j] == max(u))
            assert errors <= Fraction(k, 2) * excess
            if excess:
                tightest = max(tightest, errors / excess)
        # Reached where all but the named class are equally likely, and all scores are equal.
        assert tightest == Fraction(k, 2)


def test_forward_correction_is_least_at_the_truth_and_cross_entropy_at_the_reports():
    truth = np.array([0.7, 0.2, 0.1])
    keep = randomized_response.keep_probability(1.0, 3)
    reported = truth @ randomized_response.output_distribution(1.0, 3)
    corrected = partial(sl.corrected_cross_entropy, keep_probability=keep)
    for loss, share in ((corrected, truth), (sl.cross_entropy, reported)):
        logits = torch.tensor(np.log(share), requires_grad=True)
        risk = (torch.from_numpy(reported) * of_all_labels(loss, logits)).sum()
        risk.backward()
        assert logits.grad.abs().max() < 1e-12
        moved = of_all_labels(loss, logits.detach() + 0.1 * grid(3, (-1.0, 0.0, 1.0)))
        assert (torch.from_numpy(reported) * moved).sum(-1).min() >= risk.detach() - 1e-12


@pytest.mark.claim("sl-classes-limit", kind="enumeration")
@pytest.mark.parametrize("categories", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_the_corrected_cross_entropy_lies_between_two_lines_in_the_absolute_error(
    categories, epsilon
):
    keep = randomized_response.keep_probability(epsilon, categories)
    q = (1 - keep) / (categories - 1)
    logits = grid(categories, (-9.0, 0.0, 2.0, 9.0))
    corrected = of_all_labels(partial(sl.corrected_cross_entropy, keep_probability=keep), logits)
    agreed = 1 - of_all_labels(sl.mean_absolute_error, logits) / 2
    gained = -math.log(q) - corrected
    assert (gained >= epsilon * agreed - 1e-12).all()
    assert (gained <= math.expm1(epsilon) * agreed + 1e-12).all()
    # Both are reached: the one where all is agreed to, the other near where nothing is.
    surest, least = agreed.argmax(), agreed.argmin()
    assert float(gained.flatten()[surest]) == pytest.approx(epsilon, rel=1e-3)
    ratio = float((gained / agreed).flatten()[least])
    assert ratio == pytest.approx(math.expm1(epsilon), rel=1e-3)


# What is refused.


@pytest.mark.parametrize("label", [-1, 3, 255])
def test_a_label_out_of_range_is_refused_and_not_quoted(label):
    labels = torch.zeros(4, dtype=torch.int64)
    labels[2] = label
    for loss in LOSSES:
        with pytest.raises(ValueError, match=r"^labels must be in \[0, 3\); a record is not$"):
            loss(torch.zeros(4, 3), labels)


@pytest.mark.gpu
@every_loss
def test_a_gpu_gives_the_cpus_losses(loss):
    logits, labels = grid(3), torch.arange(64) % 3
    torch.testing.assert_close(loss(logits.cuda(), labels.cuda()).cpu(), loss(logits, labels))
