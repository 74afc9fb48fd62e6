"""A caller of every name that assignments and checks outside the repository rely on.

`test_typed.py` runs it, and sees that mypy finds nothing to object to: `mypy --strict`.
"""

import numpy as np
import torch

from dpnotes import (
    accounting,
    audit,
    datasets,
    elun,
    exponential_mechanism,
    grading,
    histogram,
    label_privacy,
    pate,
    private_auc,
    private_confusion,
    randomized_response,
    symmetric_loss,
    training,
    unary_encoding,
)

RNG = np.random.default_rng(0)
VOTES = [[3, 240], [90, 151]]
LABELS, SCORES = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.3]


def coin(answer: bool, rng: np.random.Generator) -> bool:
    return answer if rng.random() < 0.75 else not answer


def call_accounting() -> None:
    cost = accounting.PrivacyCost(1.0, 1e-5)
    total: float = cost.epsilon + cost.delta
    secret = accounting.SecretCost(1.0, 1e-5, order=20.0, answered=total)
    assert secret.order == 20.0
    rdp = accounting.epsilon_from_rdp([0.1, 0.2], [2.0, 3.0], 1e-5, conversion="classic")
    assert rdp.epsilon > 0
    assert accounting.compose([0.1, 0.2], 1e-5).epsilon > 0
    assert accounting.compose_laplace(2.0, 3, 1e-5, sensitivity=1.0).epsilon > 0
    assert accounting.compose_gaussian(2.0, 3, 1e-5).epsilon > 0
    assert accounting.compose_bounded_range(0.5, 3, 1e-5, adaptive=True).epsilon > 0


def call_local_mechanisms() -> None:
    keep: float = randomized_response.keep_probability(1.0, categories=2)
    assert randomized_response.output_distribution(1.0, categories=2)[0, 0] == keep
    reports = randomized_response.privatize([0, 1], 1.0, categories=2, rng=RNG)
    estimate = randomized_response.estimate(reports, 1.0, categories=2)
    assert randomized_response.variance([5, 3], 1.0).shape == estimate.shape
    assert randomized_response.two_coin([True, False], rng=0).shape == (2,)
    assert randomized_response.shuffled_delta(0.1, 9, 1.0, others=4) > 0

    p, q = unary_encoding.probabilities(1.0, scheme="symmetric")
    assert unary_encoding.epsilon(p, q) > 0
    assert unary_encoding.output_distribution(2, p, q).shape == (2, 4)
    bits = unary_encoding.encode(["tea"], ["tea", "coffee"], missing="zero")
    bits = unary_encoding.perturb(bits, p, q, rng=RNG)
    ones = unary_encoding.count_ones(bits)
    one_by_one = unary_encoding.aggregate(bits, p, q)
    assert (unary_encoding.aggregate_ones(ones, 1, p, q) == one_by_one).all()
    assert unary_encoding.simulate_ones([5, 3], p, q, rng=0).shape == (2,)
    assert unary_encoding.variance([5, 3], p, q).shape == (2,)

    assert label_privacy.output_distribution(1.0).shape == (2, 2)
    labels = label_privacy.privatize([1, -1], 1.0, classes=(-1, 1), rng=0)
    assert label_privacy.estimate(labels, 1.0, classes=(-1, 1)).shape == (2,)
    assert label_privacy.variance([5, 3], 1.0).shape == (2,)
    assert label_privacy.exponential([1, -1], 1.0, method="two-step", rng=0).shape == (2,)
    assert label_privacy.log_score_pmf(3, 1.0).shape == (4,)
    assert label_privacy.truncated_binomial(10, 5, 10, 0.5) > 0
    assert label_privacy.success_probability(10, 1.0) > 0
    assert label_privacy.minimum_epsilon(10, 0.1, bound="chernoff") > 0


def call_central_mechanisms() -> None:
    choose = exponential_mechanism
    assert choose.sample([1.0, 2.0], 1.0, sensitivity=1.0, size=3, rng=0) is not None
    assert choose.output_distribution([1.0, 2.0], 1.0, sensitivity=1.0).shape == (2,)
    assert choose.release_median([1.0, 2.0], 1.0, low=0.0, high=5.0, rng=0).epsilon == 1.0
    assert histogram.release_count([True, False], 1.0, rng=0).epsilon == 1.0
    assert histogram.release_histogram(["tea"], ["tea", "coffee"], 1.0, rng=0).epsilon == 1.0
    matrix = private_confusion.release_confusion_matrix([0, 1], [0, 1], 1.0, rng=0)
    assert matrix.epsilon == 1.0


def call_elun() -> None:
    assert elun.sensitivity(2.0, 0.05, 10, gradient_tolerance=0.0) > 0
    assert elun.logistic_sensitivity(2.0, 0.05, 10, noise_scale=0.5, dimension=3) > 0
    assert elun.l2_laplace_noise(3, 0.5, size=2, rng=RNG).shape == (2, 3)
    assert elun.coordinate_laplace_noise(3, 0.5, rng=RNG).shape == (3,)
    assert elun.log_density([0.0, 1.0], [0.5, 0.5], 1.0, noise="l2") < 0
    assert np.all(elun.expected_logistic_loss([0.0, 1.0], 0.5) > 0)
    shifts, weights = elun.projected_noise(3, nodes=5)
    assert np.all(elun.averaged_logistic_loss([0.0, 1.0], shifts, weights) > 0)
    assert len(elun.uniform_mixture(3, nodes=5)) == 2
    rows = elun.clip_rows([[1.0, 0.0], [0.5, -1.0]], 2.0, bias=True)
    assert elun.minimize_loss(rows, [1, -1], 0.1).shape == (rows.shape[1],)
    model = elun.PrivateLogisticRegression(1.0, objective="elun", draws=5, random_state=0)
    [fitted] = elun.fit_many([model], [[1.0, 0.0], [0.5, -1.0]], [0, 1])
    assert fitted.predict([[1.0, 0.0]]).shape == (1,)


def call_pate() -> None:
    assert len(pate.partition(10, 3, rng=RNG)) == 3
    assert pate.count_votes([[0, 2], [0, 1]], 3).shape == (2, 3)
    assert pate.output_distribution([3, 4], 2.0, noise="gumbel").shape == (2,)
    for ask in (pate.LNMax(0.05), pate.GumbelMax(20.0), pate.GNMax(40.0)):
        assert ask.answer(VOTES, rng=RNG) is not None
        assert ask.output_distribution(VOTES).shape == (2, 2)
        assert ask.cost(9, 1e-5, answers=None).epsilon > 0
        assert ask.secret_cost(VOTES, 1e-5, orders=[2, 14], conversion="classic").epsilon > 0
        assert type(ask).for_cost(1.0, 1e-5, 9).cost(9, 1e-5).epsilon <= 1.0
    confident = pate.ConfidentGNMax(200, 150, 40)
    assert confident.cost(9, 1e-5, answers=4).epsilon > 0
    made = pate.ConfidentGNMax.for_cost(1.0, 1e-5, 9, answers=4, threshold=200, ratio=3.75)
    assert made.secret_cost(VOTES, 1e-5, answered=[True, False]).epsilon > 0
    released = pate.release_cost(confident, VOTES, 1e-5, answered=[True, False], rng=0)
    assert released.delta == 1e-5
    assert np.all(pate.lnmax_error_probability(VOTES, 0.1, method="exact") > 0)
    assert np.all(pate.gnmax_log_error_probability(VOTES, 2.0) < 0)
    assert np.all(pate.gnmax_rdp(VOTES, 2.0, [2, 3]) > 0)
    assert pate.gnmax_local_sensitivity(VOTES, 2.0, 2).ndim > 0


def call_private_auc() -> None:
    assert private_auc.auc(LABELS, SCORES, ties="half") <= 1
    assert private_auc.average_precision(LABELS, SCORES, ties="grouped") <= 1
    assert private_auc.auc_local_sensitivity(5, 9) > 0
    assert private_auc.auc_smooth_sensitivity(5, 9, 0.1) > 0
    assert private_auc.ap_local_sensitivity(5, negatives=9) > 0
    assert private_auc.ap_smooth_sensitivity(5, 0.1) > 0
    assert private_auc.cauchy_scale(1.0, 0.1, calibration="nissim") > 0
    assert private_auc.log_density([0.5], LABELS, SCORES, 30.0, metric="auc").shape == (1,)
    released = private_auc.release_auc(LABELS, SCORES, 30.0, delta=0.0, noise="auto", rng=0)
    private_auc.release_average_precision(LABELS, SCORES, 30.0, calibration="exact", rng=0)
    assert 0 <= float(released) <= 1
    assert private_auc.metric_interval(released, at_least=2).low <= 1
    assert private_auc.binormal_roc(0.8, [0.0, 0.5]).shape == (2,)
    assert private_auc.reidentify_label([0, 1], [0.1, 0.9], 0.5, decimals=2) == 0


def call_symmetric_loss_and_training() -> None:
    margin, labels = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1])
    losses = symmetric_loss
    assert losses.barrier_hinge_loss(margin, b=200.0, r=50.0).shape == margin.shape
    plain = [losses.sigmoid_loss, losses.ramp_loss, losses.unhinged_loss, losses.hinge_loss]
    plain += [losses.logistic_loss, losses.square_loss, losses.savage_loss]
    assert all(loss(margin).shape == margin.shape for loss in plain)
    assert losses.corrected_logistic_loss(margin, 0.75).shape == margin.shape
    assert losses.ber_risk(margin, labels, losses.hinge_loss).ndim == 0
    assert losses.auc_risk(margin, labels, losses.hinge_loss).ndim == 0
    assert len(losses.corruption_rates(0.5, 0.75)) == 2

    def mean_logistic(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(-labels * scores).mean(-1)

    inputs, targets = torch.tensor([[-1.0], [1.0]]), torch.tensor([[-1.0, 1.0]])
    schedule = training.Schedule(epochs=1, batch_size=2)
    build = training.linear(1)
    training.fit(build, inputs, targets, [mean_logistic], inputs, schedule, seed=0)
    network = training.reference_cnn(2, torch.Generator())
    assert isinstance(network, torch.nn.Module)
    assert isinstance(training.small_convnet(2, torch.Generator()), torch.nn.Module)
    assert training.predict(torch.nn.Flatten(1), torch.ones(2, 3, 1)).shape[0] == 2
    images = np.arange(2 * 6 * 6 * 3, dtype=np.uint8).reshape(2, 6, 6, 3)
    assert len(training.patch_features(images, images, filters=2, size=3, stride=3, rng=0)) == 2


def call_audit_and_grading() -> None:
    table = randomized_response.output_distribution(1.0)
    assert audit.exact_epsilon(table, neighbours=[(0, 1)]) > 0
    assert audit.exact_delta(table, 0.5, neighbours=None) > 0
    bound = audit.epsilon_lower_bound(
        coin, True, False, trials=40, confidence=0.95, delta=0.0, rng=RNG
    )
    assert bound >= 0
    found = audit.report(coin, 1.5, [(True, False)], trials=200, rng=0)
    assert isinstance(found, audit.Report)
    task = grading.Task(function="double", answers=[((2,), 4)])
    grades = grading.grade("def double(x): return 2 * x", [task], isolation="process", rng=0)
    assert isinstance(grades, grading.Grades)


def call_datasets() -> None:
    assert len(datasets.load_adult(split="test")) > 0
    assert datasets.load_results("symmetric_loss") is not None
    try:
        datasets.load_mnist()
        datasets.load_cifar10(classes=None)
        datasets.load_pate_votes("mnist_student_query_indices")
    except datasets.DatasetUnavailable:
        pass


CALLERS = [
    *(call_accounting, call_local_mechanisms, call_central_mechanisms, call_elun, call_pate),
    *(call_private_auc, call_symmetric_loss_and_training, call_audit_and_grading, call_datasets),
]
