import itertools
import math
import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import optimize

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dpnotes import label_privacy, randomized_response  # noqa: E402
from dpnotes.symmetric_loss import (  # noqa: E402
    auc_risk,
    barrier_hinge_loss,
    ber_risk,
    corrected_logistic_loss,
    corruption_rates,
    hinge_loss,
    logistic_loss,
    ramp_loss,
    risks,
    savage_loss,
    sigmoid_loss,
    square_loss,
    unhinged_loss,
)

SYMMETRIC = {sigmoid_loss: 1.0, ramp_loss: 1.0, unhinged_loss: 2.0, barrier_hinge_loss: 100.0}
ASYMMETRIC = [hinge_loss, logistic_loss, square_loss, savage_loss]
NARROW = partial(barrier_hinge_loss, b=3.0, r=0.5)
LOSSES = [*SYMMETRIC, *ASYMMETRIC, NARROW, partial(corrected_logistic_loss, keep_probability=0.7)]
LINEAR_PIECES = [barrier_hinge_loss, NARROW, hinge_loss, ramp_loss, unhinged_loss]
SMOOTH = [sigmoid_loss, logistic_loss, savage_loss, LOSSES[-1]]


def name_of(loss):
    if isinstance(loss, partial):
        return f"{loss.func.__name__}-{'-'.join(map(str, loss.keywords.values()))}"
    return loss.__name__


every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name_of)


def draw(n, *, seed=0, spread=1.0, tied=False, positive=0.4, dtype=torch.float64, runs=None):
    """Return scores and labels of both classes; tied scores lie on a grid of halves."""
    generator = torch.Generator().manual_seed(seed)
    shape = (n,) if runs is None else (runs, n)
    scores = spread * torch.randn(shape, generator=generator, dtype=torch.float64)
    labels = 2 * (torch.rand(shape, generator=generator) < positive).long() - 1
    labels[..., 0], labels[..., 1] = 1, -1
    return ((2 * scores).round() / 2 if tied else scores).to(dtype), labels


def all_pairs(scores, labels, loss):
    """Return the risk by its definition, in n^2 memory."""
    return loss(scores[labels > 0][:, None] - scores[labels < 0]).mean()


def value_and_slopes(risk, scores, *others):
    scores = scores.detach().clone().requires_grad_()
    value = risk(scores, *others)
    value.sum().backward()
    return value.detach(), scores.grad


def furthest(found, expected):
    """Return the largest error, relative to the largest entry."""
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-300))


# The losses.


@pytest.mark.claim("sl-symmetric", kind="chosen cases")
@pytest.mark.parametrize(("loss", "constant"), SYMMETRIC.items(), ids=map(name_of, SYMMETRIC))
def test_a_symmetric_loss_and_its_mirror_add_up_to_a_constant(loss, constant):
    margin = torch.linspace(-50, 50, 2001, dtype=torch.float64)
    torch.testing.assert_close(
        loss(margin) + loss(-margin), torch.full_like(margin, constant), rtol=1e-15, atol=1e-13
    )


@pytest.mark.parametrize(
    ("loss", "values"),
    [
        (sigmoid_loss, [1 / (1 + math.exp(-2)), 0.5, 1 / (1 + math.exp(3))]),
        (ramp_loss, [1.0, 0.5, 0.0]),
        (unhinged_loss, [3.0, 1.0, -2.0]),
        (hinge_loss, [3.0, 1.0, 0.0]),
        (logistic_loss, [math.log1p(math.exp(2)), math.log(2), math.log1p(math.exp(-3))]),
        (square_loss, [9.0, 1.0, 4.0]),
        (savage_loss, [(1 + math.exp(-4)) ** -2, 0.25, (1 + math.exp(6)) ** -2]),
        (NARROW, [5.0, 0.5, 7.5]),
    ],
    ids=lambda x: name_of(x) if callable(x) else "",
)
def test_losses_take_their_values_by_hand(loss, values):
    found = loss(torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx(values, rel=1e-14)


@pytest.mark.parametrize(("b", "r"), [(200.0, 50.0), (1.5, 2.0), (3.0, 0.5)])
def test_barrier_hinge_is_convex_never_negative_and_symmetric_between_its_barriers(b, r):
    z = torch.linspace(-4 * r, 4 * r, 801, dtype=torch.float64)
    loss = barrier_hinge_loss(z, b=b, r=r)
    slopes = loss.diff() / z.diff()
    assert (slopes.diff() > -1e-9).all()
    assert loss.min() >= 0
    inside = (z > -b * r / (b - 1)) & (z <= r)
    torch.testing.assert_close(loss[inside], r - z[inside])
    assert slopes[0] == pytest.approx(-b)
    assert slopes[-1] == pytest.approx(b)


def test_no_loss_overflows_where_margins_are_large():
    for loss in LOSSES:
        margin = torch.tensor([-1e4, 1e4], dtype=torch.float32, requires_grad=True)
        loss(margin).sum().backward()
        assert torch.isfinite(margin.grad).all(), name_of(loss)


def test_the_corrected_loss_is_the_logarithm_of_what_reports_are_likely():
    margin = torch.linspace(-5, 5, 11, dtype=torch.float64)
    share = 1 / (1 + np.exp(-margin.numpy()))
    expected = -np.log(0.7 * share + 0.3 * (1 - share))
    np.testing.assert_allclose(corrected_logistic_loss(margin, 0.7), expected, rtol=1e-13)


# The risks: what is promised.


@every_loss
def test_the_balanced_risk_is_the_mean_of_the_classes_means(loss):
    scores, labels = draw(301, positive=0.1)
    expected = (loss(scores[labels > 0]).mean() + loss(-scores[labels < 0]).mean()) / 2
    torch.testing.assert_close(ber_risk(scores, labels, loss), expected, rtol=1e-13, atol=0)


@pytest.fixture(params=["_excess_of_row", "_mean_excess"], ids=["by row", "all rows at once"])
def way(request, monkeypatch):
    """Search as on a CPU, row by row, or as on a GPU, all rows at once, whatever the device."""
    if request.param == "_mean_excess":
        monkeypatch.setattr(risks, "_risks_by_row", risks._batched_risks)
    return request.param


both_ways = pytest.mark.usefixtures("way")


def assert_mean_over_pairs(scores, labels, loss, atol=1e-15):
    value, slopes = value_and_slopes(auc_risk, scores, labels, loss)
    expected, expected_slopes = value_and_slopes(all_pairs, scores, labels, loss)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=atol)
    # Where all slopes cancel nothing is left to be relative to: a pair's slope is at least of
    # the order of one over the number of pairs.
    torch.testing.assert_close(slopes, expected_slopes, rtol=1e-9, atol=1e-12 / len(scores))


@both_ways
@every_loss
@pytest.mark.parametrize("spread", [1.0, 60.0])
@pytest.mark.parametrize("n", [2, 30, 257, 700])
def test_the_risk_of_pairs_is_the_mean_over_all_of_them(loss, n, spread):
    for tied in (False, True):
        assert_mean_over_pairs(*draw(n, spread=spread, tied=tied), loss)


@both_ways
@pytest.mark.parametrize("loss", LINEAR_PIECES, ids=name_of)
def test_classes_that_lie_apart_reach_one_barrier_and_not_the_other(loss):
    scores, labels = draw(60, spread=3.0)
    for apart in (-100.0, -40.0, 40.0, 100.0):
        assert_mean_over_pairs(scores + apart * (labels > 0), labels, loss, atol=1e-13)


@both_ways
@every_loss
@pytest.mark.parametrize("n", [30, 700])
def test_single_precision_is_as_good_as_its_scores(loss, n):
    for spread, tied in ((3.0, True), (60.0, False)):
        scores, labels = draw(n, spread=spread, tied=tied, dtype=torch.float32)
        value, slopes = value_and_slopes(auc_risk, scores, labels, loss)
        exact, exact_slopes = value_and_slopes(all_pairs, scores.double(), labels, loss)
        assert value.dtype == slopes.dtype == torch.float32
        assert abs(float(value) / float(exact) - 1) < 1e-6
        # Every one of the pairs of a smooth loss is rounded to single precision.
        assert furthest(slopes, exact_slopes) < (5e-6 if loss in SMOOTH else 1e-6)


@both_ways
def test_both_classes_meeting_on_a_kink_get_the_mean_of_its_slopes():
    scores, labels = torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([1, 1, -1, -1])
    _, slopes = value_and_slopes(auc_risk, scores, labels, hinge_loss)
    assert slopes.tolist() == [-0.25, -0.25, 0.25, 0.25]


@pytest.mark.parametrize("loss", LINEAR_PIECES, ids=name_of)
@pytest.mark.parametrize("n", [40, 300])
def test_a_row_that_reaches_a_kink_counts_beside_rows_that_do_not(loss, n):
    scores, labels = draw(n, runs=3)
    # Differences up to some 5, 300 and 0.05.
    scores *= torch.tensor([[1.0], [60.0], [0.01]])
    value, slopes = value_and_slopes(auc_risk, scores, labels, loss)
    for row in range(3):
        expected, own = value_and_slopes(all_pairs, scores[row], labels[row], loss)
        torch.testing.assert_close(value[row], expected, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(slopes[row], own, rtol=1e-9, atol=1e-14)


@every_loss
def test_slopes_are_those_of_finite_differences(loss):
    for shape in ({"n": 12, "runs": 2}, {"n": 300}):
        scores, labels = draw(**shape, seed=4, spread=2.0)
        kinked = partial(barrier_hinge_loss, r=0.5) if loss is barrier_hinge_loss else loss
        for risk in (auc_risk, ber_risk):
            inputs = (scores.requires_grad_(), labels, kinked)
            assert torch.autograd.gradcheck(risk, inputs, eps=1e-7, atol=1e-5, fast_mode=True)


@every_loss
@pytest.mark.parametrize("n", [40, 300])
def test_rows_are_risks_of_their_own(loss, n):
    scores, labels = draw(n, runs=3, spread=30.0, tied=True)
    for risk in (auc_risk, ber_risk):
        values, slopes = value_and_slopes(risk, scores, labels, loss)
        assert values.shape == (3,)
        for row in range(3):
            value, own = value_and_slopes(risk, scores[row], labels[row], loss)
            torch.testing.assert_close(values[row], value, rtol=1e-13, atol=1e-13)
            torch.testing.assert_close(slopes[row], own, rtol=1e-12, atol=1e-14)


@every_loss
def test_only_differences_of_scores_matter_to_the_risk_of_pairs(loss):
    scores, labels = draw(500, tied=True)
    moved = auc_risk(scores + 2.0**20, labels, loss)
    torch.testing.assert_close(moved, auc_risk(scores, labels, loss), rtol=1e-9, atol=0)


def test_a_strided_view_of_scores_gives_the_same_without_a_warning():
    scores, labels = draw(400, runs=4, spread=60.0)
    laid_out = scores.t().contiguous().t()
    assert not laid_out.is_contiguous()
    for loss in LINEAR_PIECES:
        torch.testing.assert_close(auc_risk(laid_out, labels, loss), auc_risk(scores, labels, loss))


class LargestTensor(TorchDispatchMode):
    """Remember the number of entries of the largest tensor that is made."""

    entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.entries = max(self.entries, tensor.numel())
        return made


@both_ways
@pytest.mark.parametrize("loss", [barrier_hinge_loss, square_loss], ids=name_of)
def test_memory_is_that_of_the_scores_whatever_their_number(loss):
    n = 100_000
    scores, labels = draw(n, spread=60.0, dtype=torch.float32)
    scores.requires_grad_()
    with LargestTensor() as largest:
        auc_risk(scores, labels, loss).backward()
    # Running sums have one entry more.
    assert largest.entries <= n + 1
    # What numpy holds at a time, which is no tensor.
    tracemalloc.start()
    auc_risk(scores, labels, loss)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 * n


@pytest.mark.parametrize("loss", SMOOTH, ids=name_of)
def test_smooth_losses_hold_a_chunk_of_pairs_at_a_time(loss, monkeypatch):
    scores, labels = draw(700)
    expected, expected_slopes = value_and_slopes(all_pairs, scores, labels, loss)
    # In the second there is not even place for one row of pairs.
    for chunk in (10_000, 100):
        monkeypatch.setattr(risks, "_CHUNK", chunk)
        with LargestTensor() as largest:
            value, slopes = value_and_slopes(auc_risk, scores, labels, loss)
        assert largest.entries <= max(chunk, 700)
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
        torch.testing.assert_close(slopes, expected_slopes, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("runs", [None, 2])
def test_nothing_is_searched_where_no_pair_reaches_a_barrier(monkeypatch, way, runs):
    scores, labels = draw(1000, runs=runs)
    expected = auc_risk(scores, labels, barrier_hinge_loss)
    monkeypatch.setattr(risks, way, None)
    torch.testing.assert_close(auc_risk(scores, labels, barrier_hinge_loss), expected)
    with pytest.raises(TypeError):
        auc_risk(60 * scores, labels, barrier_hinge_loss)


@pytest.mark.filterwarnings("error")
def test_scores_beyond_all_bounds_give_infinite_risks_without_a_warning():
    for way in (1e200, 1e308, math.inf):
        scores = torch.tensor([0.0, 0.0, way, -1.0], dtype=torch.float64)
        value, slopes = value_and_slopes(
            auc_risk, scores, torch.tensor([1, -1, -1, 1]), barrier_hinge_loss
        )
        assert value.isinf() if way > 1e300 else value > 1e200
        assert slopes.isfinite().all()


@every_loss
@pytest.mark.parametrize("n", [40, 300])
def test_a_risk_is_the_same_where_torch_records_nothing(loss, n):
    expected = auc_risk(*draw(n, runs=2), loss)
    for records_nothing in (torch.no_grad, torch.inference_mode):
        with records_nothing():
            found = auc_risk(*draw(n, runs=2), loss)
        assert not found.requires_grad
        assert torch.equal(found, expected)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("risk", [ber_risk, auc_risk])
def test_a_loss_that_is_not_taken_element_by_element_is_refused(risk, n):
    for loss in (torch.mean, lambda margin: margin[:1], lambda margin: 0.0):
        with pytest.raises(TypeError, match="loss must return a tensor of the shape"):
            risk(*draw(n), loss)


def test_a_partial_with_unnamed_arguments_is_taken_as_it_is():
    scores, labels = draw(400)
    swapped = partial(torch.sub, torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(
        auc_risk(scores, labels, swapped), auc_risk(scores, labels, unhinged_loss)
    )


# What is refused, and what becomes of batches that nobody looked into.


@pytest.mark.parametrize("risk", [ber_risk, auc_risk])
@pytest.mark.parametrize(("label", "missing"), [(1, "-1"), (-1, r"\+1")])
def test_a_missing_class_is_refused_by_name(risk, label, missing):
    labels = torch.full((2, 5), label)
    labels[0, 0] = -label
    with pytest.raises(ValueError, match=f"labels must hold both classes; class {missing} is"):
        risk(torch.zeros(2, 5), labels, hinge_loss)


@every_loss
@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("label", [1, -1])
def test_a_missing_class_in_an_unchecked_batch_gives_nan(loss, n, label):
    for risk in (ber_risk, auc_risk):
        scores, labels = torch.zeros(2, n), torch.full((2, n), label)
        labels[1, 0] = -label
        values = risk(scores, labels, loss, check=False)
        assert values.isnan().tolist() == [True, False]
        if loss in LINEAR_PIECES:
            _, slopes = value_and_slopes(partial(risk, check=False), scores, labels, loss)
            assert slopes[0].isnan().all()
            assert not slopes[1].isnan().any()


@every_loss
def test_a_score_that_is_nan_is_not_hidden(loss):
    for n in (5, 300):
        scores, labels = draw(n)
        scores[0] = math.nan
        assert auc_risk(scores, labels, loss).isnan()
        assert ber_risk(scores, labels, loss).isnan()


@pytest.mark.parametrize("risk", [ber_risk, auc_risk])
def test_labels_may_be_any_numbers_of_the_right_value(risk):
    scores, labels = draw(20)
    for dtype in (torch.int8, torch.float32):
        expected = risk(scores, labels, hinge_loss)
        assert risk(scores, labels.to(dtype), hinge_loss) == expected


# The theorem.


def corrupted_risk(scores, labels, loss, pi, pi_prime):
    """Return the BER and AUC risks of mixtures of the classes, exactly."""
    high, low = scores[labels > 0], scores[labels < 0]
    clean = {
        ("+", "+"): loss(high[:, None] - high).mean(),
        ("+", "-"): loss(high[:, None] - low).mean(),
        ("-", "+"): loss(low[:, None] - high).mean(),
        ("-", "-"): loss(low[:, None] - low).mean(),
    }
    first, second = {"+": pi, "-": 1 - pi}, {"+": pi_prime, "-": 1 - pi_prime}
    auc = sum(first[a] * second[b] * risk for (a, b), risk in clean.items())
    up = {"+": loss(high).mean(), "-": loss(low).mean()}
    down = {"+": loss(-high).mean(), "-": loss(-low).mean()}
    ber = sum(first[c] * up[c] + second[c] * down[c] for c in "+-") / 2
    return {ber_risk: ber, auc_risk: auc}


MIXTURES = [(1.0, 0.0), (0.8, 0.3), (0.4, 0.6)]


@pytest.mark.claim("sl-theorem", kind="chosen cases")
@pytest.mark.parametrize(("pi", "pi_prime"), MIXTURES)
@pytest.mark.parametrize("loss", SYMMETRIC, ids=name_of)
def test_the_corrupted_risk_is_a_line_in_the_clean_one(loss, pi, pi_prime):
    scores, labels = draw(200, spread=5.0)
    for risk, found in corrupted_risk(scores, labels, loss, pi, pi_prime).items():
        clean = risk(scores, labels, loss)
        line = (pi - pi_prime) * clean + SYMMETRIC[loss] * (1 - pi + pi_prime) / 2
        torch.testing.assert_close(found, line, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("loss", ASYMMETRIC, ids=name_of)
def test_losses_that_are_not_symmetric_break_the_line(loss):
    lines = {ber_risk: [], auc_risk: []}
    for seed in range(3):
        scores, labels = draw(200, seed=seed, spread=1.0 + seed)
        for risk, found in corrupted_risk(scores, labels, loss, 0.7, 0.4).items():
            lines[risk].append(float(found - 0.3 * risk(scores, labels, loss)))
    for excess in lines.values():
        assert max(excess) - min(excess) > 0.02


@pytest.mark.claim("sl-corrupted", kind="simulation with its error")
def test_corruption_rates_are_those_of_privatized_labels():
    rng = np.random.default_rng(5)
    truth = np.where(rng.random(400_000) < 0.3, 1, -1)
    reports = label_privacy.privatize(truth, 0.5, rng=rng)
    keep = randomized_response.keep_probability(0.5)
    pi, pi_prime = corruption_rates(0.3, keep)
    assert np.mean(truth[reports == 1] == 1) == pytest.approx(pi, abs=0.005)
    assert np.mean(truth[reports == -1] == 1) == pytest.approx(pi_prime, abs=0.005)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_corruption_rates_differ_as_the_theory_says(share):
    p = randomized_response.keep_probability(1.0)
    pi, pi_prime = corruption_rates(share, p)
    reported = p * share + (1 - p) * (1 - share)
    product = share * (1 - share) * (2 * p - 1)
    assert pi - pi_prime == pytest.approx(product / (reported * (1 - reported)), rel=1e-12)


# What the theorem says of one draw.


def all_draws(truth, kept_up, kept_down):
    """Return every column of labels in which so many of each class are kept."""
    classes = [np.flatnonzero(truth == sign) for sign in (1, -1)]
    choices = [
        itertools.combinations(members, len(members) - kept)
        for members, kept in zip(classes, (kept_up, kept_down), strict=True)
    ]
    for flipped in itertools.product(*choices):
        labels = truth.copy()
        labels[list(itertools.chain(*flipped))] *= -1
        yield torch.from_numpy(labels)


@pytest.mark.claim("sl-theorem", kind="enumeration")
@pytest.mark.parametrize("risk", [ber_risk, auc_risk])
@pytest.mark.parametrize(("kept_up", "kept_down"), [(2, 3), (1, 3), (2, 2)])
def test_the_line_holds_on_average_over_which_labels_were_flipped(risk, kept_up, kept_down):
    truth = np.array([1, 1, 1, -1, -1, -1, -1])
    scores = torch.tensor([2.0, 0.5, -1.0, 1.0, -0.5, -2.0, 0.3], dtype=torch.float64)
    pi = kept_up / (kept_up + 4 - kept_down)
    pi_prime = (3 - kept_up) / (3 - kept_up + kept_down)
    for loss in (sigmoid_loss, ramp_loss, unhinged_loss):
        draws = [float(risk(scores, y, loss)) for y in all_draws(truth, kept_up, kept_down)]
        clean = float(risk(scores, torch.from_numpy(truth), loss))
        line = (pi - pi_prime) * clean + SYMMETRIC[loss] * (1 - pi + pi_prime) / 2
        assert np.mean(draws) == pytest.approx(line, rel=1e-12)
        assert max(draws) - min(draws) > 0.1


@pytest.mark.claim("sl-finite", kind="chosen cases")
def test_excess_risk_is_at_most_twice_the_worst_error_over_the_gap_which_is_attained():
    rng = np.random.default_rng(7)
    pi, pi_prime = corruption_rates(0.4, 0.62)
    scores, labels = draw(300)
    scores = scores + labels
    cuts = torch.linspace(-2, 2, 41, dtype=torch.float64)
    clean = np.array([float(ber_risk(scores - cut, labels, ramp_loss)) for cut in cuts])
    reported = np.array(
        [float(corrupted_risk(scores - c, labels, ramp_loss, pi, pi_prime)[ber_risk]) for c in cuts]
    )

    def ratio(estimated):
        excess = clean[estimated.argmin()] - clean.min()
        return excess / abs(estimated - reported).max()

    limit = 2 / (pi - pi_prime)
    assert all(ratio(reported + rng.normal(size=41) / 20) <= limit for _ in range(300))
    worst = clean.argmax()
    error = (reported.max() - reported.min()) / 2 + 1e-9
    unlucky = reported + np.where(np.arange(41) == worst, -error, error)
    assert ratio(unlucky) == pytest.approx(limit, rel=1e-6)


# Four points of Long and Servedio (2010), at a scale: one big, one puller, two penalisers.


def four_points(scale):
    return np.array([[1, 0], [scale, 5 * scale], [scale, -scale], [scale, -scale]])


def margins_at_best(loss, keep, penalty, scale=1 / 24):
    """Return the margins where the mean risk on flipped labels, plus a penalty, is least."""
    stretch = torch.tensor([1, 1 / scale], dtype=torch.float64)
    directions = torch.from_numpy(four_points(scale)) * stretch
    side = torch.linspace(-1, 1, 21, dtype=torch.float64)
    grid, centre, width = torch.cartesian_prod(side, side), torch.zeros(2).double(), 2000.0
    while width > 1e-10:
        weights = centre + width * grid
        z = weights @ directions.T
        risk = (keep * loss(z) + (1 - keep) * loss(-z)).mean(1)
        centre = weights[(risk + penalty / 2 * ((weights * stretch) ** 2).sum(1)).argmin()]
        width *= 0.75
    return (directions @ centre).numpy()


def exact_margins_of_the_barrier_hinge(keep, r, b=200.0, scale=1 / 24):
    """Solve the linear program: least mean of t, each t above the three lines of its margin."""
    rows, ceilings = [], []
    for place, (point, sign) in enumerate(itertools.product(four_points(scale), (1, -1))):
        for slope, intercept in ((-b, r - b * r), (b, -b * r), (-1.0, r)):
            row = np.zeros(10)
            row[:2], row[2 + place] = slope * sign * point, -1.0
            rows.append(row)
            ceilings.append(-intercept)
    weights = np.r_[0.0, 0.0, np.tile([keep, 1 - keep], 4)]
    found = optimize.linprog(weights, np.array(rows), ceilings, bounds=[(None, None)] * 10)
    assert found.status == 0
    return four_points(scale) @ found.x[:2]


@pytest.mark.parametrize("keep", [1.0, 0.75, 0.62])
@pytest.mark.parametrize("r", [1.0, 50.0, 500.0])
def test_without_a_penalty_the_barrier_hinge_loses_two_points_at_any_width(keep, r):
    margins = exact_margins_of_the_barrier_hinge(keep, r)
    np.testing.assert_allclose(margins, r * np.array([1, 1, -0.15, -0.15]), rtol=1e-9)
    loss = partial(barrier_hinge_loss, r=r)
    np.testing.assert_allclose(margins_at_best(loss, keep, 0.0), margins, rtol=1e-6)


@pytest.mark.claim("sl-width", kind="chosen cases")
@pytest.mark.parametrize(("b", "r"), [(200.0, 50.0), (3.0, 0.5), (1.5, 7.0)])
def test_the_barrier_hinge_has_one_shape_in_units_of_its_width(b, r):
    z = torch.linspace(-6 * r, 6 * r, 4001, dtype=torch.float64)
    unit = r * barrier_hinge_loss(z / r, b=b, r=1.0)
    torch.testing.assert_close(barrier_hinge_loss(z, b=b, r=r), unit, rtol=1e-13, atol=1e-10 * r)


@pytest.mark.claim("sl-width", kind="chosen cases")
def test_the_unhinged_weights_are_the_mean_example_whatever_the_penalty_and_the_lies():
    mean = four_points(1 / 24).mean(axis=0)
    for penalty, keep in itertools.product((1.0, 0.05, 1e-3), (1.0, 0.75, 0.55)):
        margins = four_points(1 / 24) @ mean * (2 * keep - 1) / penalty
        found = margins_at_best(unhinged_loss, keep, penalty)
        np.testing.assert_allclose(found, margins, rtol=1e-5)
        assert (found > 0).all()


@pytest.mark.claim("sl-width", kind="chosen cases")
@pytest.mark.parametrize("loss", [sigmoid_loss, ramp_loss], ids=name_of)
def test_flipped_labels_act_on_a_symmetric_loss_as_a_larger_penalty(loss):
    for penalty, keep in itertools.product((0.01, 1e-3), (0.9, 0.75, 0.62)):
        flipped = margins_at_best(loss, keep, penalty)
        true = margins_at_best(loss, 1.0, penalty / (2 * keep - 1))
        np.testing.assert_allclose(flipped, true, rtol=1e-4, atol=1e-5)


@pytest.mark.claim("sl-width", kind="chosen cases")
@pytest.mark.parametrize("risk", [ber_risk, auc_risk])
def test_scores_kept_inside_by_a_norm_bound_keep_the_barrier_hinge_on_its_line(risk):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 3))
    labels = torch.from_numpy(np.where(rng.random(80) < 0.5, 1, -1))
    pi, pi_prime = 0.7, 0.4
    r = 2.0
    loss = partial(barrier_hinge_loss, r=r)
    widest = np.linalg.norm(x[:, None] - x, axis=-1).max()
    bound = r / max(widest, np.linalg.norm(x, axis=1).max())
    misses = {}
    for norm in (bound, 5 * bound):
        gaps = []
        for _ in range(50):
            w = rng.normal(size=3)
            scores = torch.from_numpy(x @ (norm * w / np.linalg.norm(w)))
            found = corrupted_risk(scores, labels, loss, pi, pi_prime)[risk]
            line = (pi - pi_prime) * risk(scores, labels, loss) + r * (1 - pi + pi_prime)
            gaps.append(abs(float(found - line)))
        misses[norm] = max(gaps)
    assert misses[bound] < 1e-12
    assert misses[5 * bound] > 1


# How much reports tell.


def information(joint):
    """Return the mutual information, in nats, of the rows and the columns of a joint table."""
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    here = joint > 0
    return float((joint[here] * np.log(joint[here] / apart[here])).sum())


def through(joint, channels):
    """Return the joint table of the unknown and what leaves a channel for each label."""
    channel = np.ones((1, 1))
    for each in channels:
        channel = np.kron(channel, each)
    return joint @ channel


def lying(keep):
    return np.array([[keep, 1 - keep], [1 - keep, keep]])


def blanking(share):
    return np.array([[share, 0, 1 - share], [0, share, 1 - share]])


@pytest.mark.claim("sl-worth", kind="chosen cases")
@pytest.mark.parametrize("keep", [0.55, 0.75, 0.95])
def test_reports_tell_no_more_than_a_random_share_of_the_labels(keep):
    rng = np.random.default_rng(11)
    share = (2 * keep - 1) ** 2
    tightest = 0.0
    for sharpness in (0.01, 0.1, 1.0, 5.0):
        for _ in range(50):
            joint = rng.dirichlet(np.full(3 * 8, sharpness)).reshape(3, 8) + 1e-12
            joint /= joint.sum()
            reports = information(through(joint, [lying(keep)] * 3))
            shown = information(through(joint, [blanking(share)] * 3))
            assert reports <= shown * (1 + 1e-9) + 1e-14
            tightest = max(tightest, reports / shown)
    assert tightest > 0.6


def test_one_report_of_an_almost_fair_label_attains_the_share():
    for keep in (0.55, 0.75, 0.95):
        joint = np.array([[0.25 + 1e-4, 0.25 - 1e-4], [0.25 - 1e-4, 0.25 + 1e-4]])
        ratio = information(joint @ lying(keep)) / information(joint)
        assert ratio == pytest.approx((2 * keep - 1) ** 2, rel=1e-5)


def test_many_reports_may_tell_more_than_their_share_of_what_all_labels_tell():
    keep, n = 0.75, 5
    joint = np.zeros((2, 2**n))
    joint[0, 0] = joint[1, -1] = 0.5
    reports = information(through(joint, [lying(keep)] * n))
    assert reports > 2 * (2 * keep - 1) ** 2 * information(joint)
    assert reports < information(through(joint, [blanking((2 * keep - 1) ** 2)] * n))


# On a GPU.


@pytest.mark.gpu
@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_gpu_gives_the_cpus_risks(loss, dtype):
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    for shape in [{"n": 100, "runs": 3}, {"n": 2000}, {"n": 400, "runs": 2}]:
        scores, labels = draw(**shape, spread=30.0, tied=True, dtype=dtype)
        for risk in (ber_risk, auc_risk):
            value, slopes = value_and_slopes(risk, scores, labels, loss)
            there, there_slopes = value_and_slopes(risk, scores.cuda(), labels.cuda(), loss)
            assert there.is_cuda
            torch.testing.assert_close(there.cpu(), value, rtol=tolerance, atol=tolerance)
            assert furthest(there_slopes.cpu(), slopes) < tolerance
