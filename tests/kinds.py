"""The kinds of parameters: for each name what a working call gives it, and what is refused instead.

Names mean the same everywhere (`epsilon` is a cost), so a kind is declared once, by the name of the
parameter. Where a module, a function or a method differs, the name says so: `pate.order`,
`private_auc.auc.ties`. A new function needs a line here for each name that nobody used before.
"""

import importlib
import inspect
import math
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpnotes import grading, pate, private_auc, private_confusion, release

torch = pytest.importorskip("torch")
elun = pytest.importorskip("dpnotes.elun", exc_type=ModuleNotFoundError)
training = pytest.importorskip("dpnotes.training", exc_type=ModuleNotFoundError)

# Records that no message may repeat.
SECRET, SECRET_WORD = 31_337, "absinthe"
ROWS = [[1.0, 0.0], [0.5, -1.0]]
IMAGES = np.arange(2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.uint8)
SCORED, SIGNS = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1])
AUC = private_auc.release_auc([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.3], 30.0, rng=0)
MATRIX = private_confusion.release_confusion_matrix([0, 1], [0, 1], 1.0, rng=0)
TASK = grading.Task(function="double", answers=[((2,), 4)])


def coin(answer, rng):
    """Tell the truth three times out of four."""
    return answer if rng.random() < 0.75 else not answer


def hinge(margin):
    return (1 - margin).relu()


def mean_hinge(scores, labels):
    return hinge(labels * scores).mean(-1)


def types(*bad):
    """Return what is refused with a TypeError."""
    return [(TypeError, value) for value in bad]


def values(*bad):
    """Return what is refused with a ValueError."""
    return [(ValueError, value) for value in bad]


def tensors(*bad):
    """Return tensors that are refused with a ValueError."""
    return values(*map(torch.tensor, bad))


def or_none(kind):
    return [(error, value) for error, value in kind if value is not None]


NUMBER = types("1", None, True, [1.0], 1j)
FINITE = NUMBER + values(math.nan, math.inf, -math.inf)
POSITIVE = FINITE + values(0, -1.0)
NOT_NEGATIVE = FINITE + values(-1, -1e-300)
PROBABILITY = FINITE + values(0, 1, -0.1, 1.1)
SHARE = FINITE + values(-1e-300, 1.1)
DELTA_OR_0 = SHARE + values(1)
COST = NUMBER + values(-1e-9, math.nan)
INTEGER = types(2.0, "2", None, True, [2])
COUNT = INTEGER + values(0, -1)
SIZE = INTEGER + values(-1)
CATEGORIES = INTEGER + values(1, 0, -3, 2**62 + 1)
WORD = types(None, 1, ["exact"], b"exact") + values("", "nonsense")
TEXT = types(None, 1, ["noise"]) + values("", " ")
FLAG = types(None, 1, 0.0, "yes")
FUNCTION = types(None, 1.0, "hinge", [hinge])
LIST = types(None, 5, "ab")
BOTH = types(None, 5, "replaced") + values(release.Neighbours("ours", sorted))
MAPPING = types(None, 5, "ab", {1: "a"}, [("a", "b")])

BAD_BOOLEANS = np.array([[0, 1, 2]], dtype=np.uint8).view(bool)
MASKED = np.ma.array([0, 1, 1, SECRET], mask=[0, 0, 0, 1])
RAGGED = [[1.0], [1.0, 2.0]]
NUMBERS = types("1", [SECRET_WORD], [None, 1.0], [1j], object()) + values(RAGGED)
FINITE_NUMBERS = NUMBERS + types(None) + values([math.nan, SECRET], [math.inf])
INTEGERS = types(None, "1", ["1"], [1.0], [0.5], [None], [1j], [2**70], object(), {"a": 1})
INTEGERS += values([], np.zeros((0, 3), dtype=int), [[1], [1, 0]], [[[1]], [1, 0]])
RECORDS = types([0, math.nan], [SECRET_WORD], pd.Series([1, None]), [0, None])
RECORDS += values([SECRET], [0, -SECRET], SECRET, np.array([-1], dtype=np.int8))
RECORDS += values(np.array([1 << 24], dtype=">i4"), pd.Series([0, SECRET]))
BITS = types([[0.0, 1.0]], [["0", "1"]], [[0, None]], [[SECRET_WORD, 1]])
BITS += values(BAD_BOOLEANS, [0, 1], 1, [[[0, 1]]], [[0, 2]], [[0, -1]], [[0, SECRET]])
ANSWERS = types("tea", 5, None, [["tea"]], [SECRET_WORD, ["tea"]], np.array([["tea"], ["tea"]]))
ANSWERS += values([], ["tea", None], [math.nan], [SECRET_WORD], ["tea", SECRET])
YES_OR_NO = types("yes", 5, True, None, {True})
YES_OR_NO += values([], [2], [True, SECRET], [1.0], [True, None], [SECRET_WORD, "1"], [[True]])
DOMAIN = types("tea", 5, None, [["tea"]], [("tea", ["tea"])])
DOMAIN += values([], ["tea", "tea"], ["tea", None], ["tea", math.nan], [1, 1.0], np.array("tea"))
TWO_CLASSES = types([0.0, 1.0], [SECRET_WORD, "1"], "1", None, MASKED, pd.Series([0, 1, 1, None]))
TWO_CLASSES += values([], 1, [[0, 1]], [[1], [1, 0]], [0, 2], [0, SECRET], [0, -1], BAD_BOOLEANS[0])
SIGNED = types([1.0, -1.0], [True, False], [SECRET_WORD, "b"], [None, 1])
SIGNED += values([1], 1, [[1, -1]], [1, 0], [1, SECRET], [[1], [1, 2]])
NAMED_LABELS = types(np.array([True, False]), np.array(["1", SECRET_WORD]), MASKED)
NAMED_LABELS += values([], 1, None, "1", [[1, -1]], [0, 1], [1, -SECRET], [1.5], [True, False])
NAMED_LABELS += values(["1"], [None, 1], [SECRET_WORD, 1], {1: -1}, np.array([1.0, SECRET]))
NAMES_OF_TWO = types(None, 1, "ab", np.array(1), {0, 1}, (True, 1), (1, "1"), ((0,), (1,)))
NAMES_OF_TWO += values((), (1,), (-1, 0, 1), (1, 1), ("a", "a"), (math.nan, 1), (0, 2**70))
NAMES_OF_CLASSES = types("01", {0, 1}, {0: 1}, (True, 1), (0, None))
NAMES_OF_CLASSES += values((), (1,), (1, 1), [[0, 1]], (math.nan, 1.0), 1)
SHIFTS = NUMBERS + values(1.0, [], [[], []], [[math.nan], [1.0]])
SCORES = types([SECRET_WORD, "b"], [None, 1], [1j, 2], object(), MASKED)
SCORES += values([], [0.5], [[0.1, 0.2]], [math.nan, SECRET], RAGGED)
FRACTIONS = types("1", None, [None], 1j) + values(-0.1, 1.1, math.nan)
COUNTS = types(None, "12", [True, False], ["1", "2"], [1j, 2], [None, 1])
COUNTS += values([], [-1, 2], [[1, 2], [3, 4]], 5, [[1], [1, 0]])
REAL_COUNTS = COUNTS + values([1.0, math.nan], [1.0, math.inf])
ONES = types([1.0, 0.0], ["1"], [None], [True, False])
ONES += values([], [3, 0], [-1, 0], [[1, 1]], 1, None, [[1], [1, 0]])
NOISY_COUNT = types(None, "12", 1.0, ["1"], True, [None, 1], [2**70, 1])
NOISY_COUNT += values([[1, 2]], [[1], [2, 3]])
NOISY_COUNTS = types(None, "12", [1.0, 2.0], ["1"], [True, False], [None, 1], [2**70, 1])
NOISY_COUNTS += values([1], [1, 2, 3], [], 5, [[[1, 2]]])
FOUR_COUNTS = types(None, 1, (1, 2), ((1.0, 2.0), (3.0, 4.0)))
FOUR_COUNTS += values(((0, 0), (0, 0)), ((1, -1), (0, 0)))
VOTES = types(None, "12", [True, False], ["1", "2"], [1j, 2], [None, 1], [SECRET_WORD, 1])
VOTES += values([], 3, [5], [[5], [3]], [[[1, 2]]], [[1, 2], [3]], [-1, 2], [0.5, 2], [2**31, 0])
VOTES += values([math.nan, 1.0], [SECRET, -SECRET], [[1, 2], [SECRET, 0.5]])
QUERIES = VOTES + values(np.zeros((0, 3), dtype=int))
EACH_ANSWERED = types("yes", [1, 0], ["yes", "no"], [None, True])
EACH_ANSWERED += values([], [True], [[True, True]], [True, False, True])
ORDERS = types("2", ["2"], [True], [None, 2], [1j])
ORDERS += values([], [[2.0, 3.0]], [1.0], [0.5, 2.0], [math.nan], [math.inf], [[2], [2, 3]])
DIVERGENCES = types(None, "12", ["1", "2"], [True, False], [None, 1], [1j, 2])
DIVERGENCES += values([], [1.0], [[0.1, 0.2]], [-0.1, 0.2], [math.nan, 0.2], RAGGED)
EPSILONS = types(None, "1", ["1"], [True], [None, 1], [1j], {1.0, 2.0})
EPSILONS += values(0.1, [[1.0]], [-1.0], [math.nan], [math.inf], RAGGED)
SENSITIVITIES = types(None, "1", ["1"], [True], [1j]) + values([], 1.0, [-1.0], [math.nan], [[1.0]])
ESTIMATES = types(None, "12", ["1"], [True]) + values([], 3.0, [[1.0]], [math.nan], RAGGED)
UTILITIES = types(None, "1", ["1"], [None, 1.0], [1j], [2**70], object(), [SECRET_WORD])
UTILITIES += values([], [[]], 3.0, [[[1.0]]], RAGGED, [math.nan, 1.0], [math.inf], [-math.inf, 0.0])
SUMMANDS = types(None, "1", [SECRET_WORD], [None, SECRET], [1j], [True, False], object(), MASKED)
SUMMANDS += values([], 3.0, [[1.0]], [math.nan, SECRET], [math.inf, SECRET], [[1], [1, SECRET]])
COUNTED = types(None, "1", ["1"], [1.0], [True], [1j], [None, SECRET], object())
COUNTED += values([], 3, [[[1]]], [[1], [1, 2]])
DISTRIBUTION = types([["1", "0"]], np.array([["1", "0"]], object), [[1j, 0.0]], {1: 0.5})
DISTRIBUTION += values([], [[]], 0.5, None, "1", [0.5, 0.5], [[None, 1.0]], [[0.5, 0.5], [1.0]])
DISTRIBUTION += values([[0.5, 0.4]] * 2, [[1.5, -0.5]] * 2, [[math.nan, 1.0], [0.5, 0.5]])
DENSITY = types(None, 0.5, "norm", stats.norm.cdf)
PAIRS_OF_ROWS = types([(0.0, 1.0)], [("0", "1")], 5)
PAIRS_OF_ROWS += values([], [(0, 2)], [(0, -1)], [(0,)], [0, 1], [(0, 1, 0)], [[0, 1], [0]])
PAIRS = types(None, 5, "ab", ["ab"], [5], [(0, 1, 2)]) + values([()], [(True,)])
TURNING_POINTS = types("0", [True], [1j], {0.5}) + values([], [math.nan], [0.0, math.inf])
DESCENT = types(None, "1", [["a"]], [[1j]], [[True]]) + values([], [[]], [1.0], 1.0, RAGGED)
TABLE = types(None, "1", [[SECRET_WORD]], [[None, 1.0]], [[1j]], object(), {"a": 1})
TABLE += values(1.0, [1.0, 2.0], [], [[]], [[[1.0, 2.0]]], [[1.0, 2.0], [1.0]])
TABLE += values([[math.nan, SECRET], [0.0, 0.0]], [[1.1e100, 0.0], [0.0, SECRET]])
ROWS_OF_A_MODEL = types([[SECRET_WORD], ["b"]], [[object()], [1.0]])
ROWS_OF_A_MODEL += values(RAGGED, [1.0, 2.0], 1.0)
TENSOR = types(None, 1.0, [1.0, 2.0, 3.0], np.ones(3), "1")
FLOATS = TENSOR + types(torch.tensor([1, 2, 3]), torch.tensor([True]), torch.tensor([1j]))
BINARY_LABELS = TENSOR + types(torch.tensor([True, False, True]), torch.tensor([1j, 1, -1]))
BINARY_LABELS += tensors([1, -1], [[1, 1, -1]], [1, -1, SECRET], [1, 1, 1], [1, 255, 1])
BINARY_LABELS += values(torch.tensor([1, 255, 1], dtype=torch.uint8))
CLASS_LABELS = TENSOR + types(torch.tensor([2.0, 0.0]), torch.tensor([True, False]))
CLASS_LABELS += tensors([2, 3], [0, SECRET], [2], 2)
RUNS_OF_LABELS = values(torch.ones(2, 2), torch.ones(1, 3), torch.ones(2))
RUNS_OF_LABELS += tensors([[0.0, 1.0]], [[1.0, SECRET]], [[True, False]])
PICTURES = types(None, IMAGES.tolist(), IMAGES.astype(float), torch.from_numpy(IMAGES))
PICTURES += values(IMAGES[0], IMAGES[:0], IMAGES[:, :, :0])

# Names, what a working call gives them, and what is refused. An optional parameter is left to its
# default in a working call, unless its module or its function is named.
KINDS = [
    ("epsilon", 1.0, POSITIVE),
    ("beta loss accounting.low", 0.1, POSITIVE),
    ("learning_rate other_scale r scale seconds sensitivity sigma total", 2.0, POSITIVE),
    ("stated_epsilon", 0.5, POSITIVE),
    ("margin mu noise_scale points rho tolerance weight_decay", 0.1, NOT_NEGATIVE),
    ("other_value value", 1.0, FINITE),
    ("confidence failure keep_probability positive_fraction probability", 0.75, PROBABILITY),
    ("beyond delta", 1e-5, PROBABILITY),
    ("p", 0.5, PROBABILITY),
    ("auc published_auc", 0.5, SHARE),
    ("gradient_tolerance", None, or_none(POSITIVE) + values(1e-300)),
    ("local_sensitivities", [0.0, 1.0], SENSITIVITIES),
    ("order", 2, POSITIVE + values(1, 0.5)),
    ("dimension features n teachers label_privacy.log_score_pmf.n private_auc.degrees", 3, COUNT),
    ("batch_size epochs jobs runs stride", 2, COUNT),
    ("memory", None, COUNT + values(2**20)),
    ("nodes", 5, COUNT + values(101)),
    ("trials", 40, COUNT + values(3)),
    ("categories randomized_response.categories", 3, CATEGORIES),
    ("pate.LNMax.cost.labels pate.LNMax.for_cost.labels", None, or_none(COUNT) + values(1)),
    ("negatives positives size", 9, SIZE),
    ("answers", None, or_none(SIZE) + values(10)),
    ("answered", None, values(True, [True, True], [], "all")),
    ("decimals distances elun.size exponential_mechanism.size", None, or_none(SIZE)),
    ("seed", 0, SIZE + values(2**63)),
    ("bound calibration conversion expectation method missing multi_class", None, WORD),
    ("objective scheme split", None, WORD),
    ("family", "student-t", WORD),
    ("isolation precision", None, types(5) + values("", "float16")),
    ("metric", "auc", WORD),
    ("name", "adult", WORD + values("Adult")),
    ("protocol", "hadamard", WORD),
    ("mechanism neighbours", "one record replaced", TEXT),
    (
        "adaptive bias check download factory fit_intercept known_total monotone uses_rng",
        None,
        FLAG,
    ),
    ("additions says", None, types(None, 5)),
    ("arguments causes mistakes", None, MAPPING),
    ("blocked", None, LIST + types([5]) + values([""], ["a b"])),
    ("report", None, types(1)),
    ("dataset neighbour", True, [(TypeError, (i for i in [1]))]),
    ("data", None, LIST),
    ("function", "double", types(None, 5) + values("", "a b", "1")),
    ("hidden", None, LIST + types([5])),
    ("names", None, types(1, object()) + values([], ["a", "b"])),
    ("pairs", [(True, False)], PAIRS),
    ("shape statistic grading.Task.loss grading.Task.distribution", None, types(5, "ab")),
    ("submission", "def double(x): return 2 * x", types(None, 5, b"ab", ["ab"])),
    ("tasks", [TASK], LIST + types(TASK, [5]) + values([])),
    ("apart output", [0.0, 0.5], types(None, "1", [None], [1j]) + values([math.nan], RAGGED)),
    ("bits", [[0, 1], [1, 0]], INTEGERS + BITS + values([[[1, 1]]])),
    ("build", training.linear(1), FUNCTION),
    ("centre", [0.5, 0.5], FINITE_NUMBERS + values(0.0, [[1.0, 2.0]], [])),
    ("counts", [5, 3], REAL_COUNTS),
    ("distribution", stats.laplace(0.0), DENSITY),
    ("domain", ["tea", "coffee"], DOMAIN),
    ("epsilons", [0.1, 0.2], EPSILONS),
    ("estimates", [5.0, -1.0], ESTIMATES),
    ("evaluate_after", None, types(1, None, (1.0,), {1, 2}) + values((0,), (51,))),
    ("false_positive_rate type_one_error", [0.0, 0.5], FRACTIONS),
    ("generator", torch.Generator(), types(None, 0, np.random.default_rng(0))),
    ("half_widths", None, values([[1.0, 1.0]])),
    ("inputs test_inputs", torch.tensor([[-1.0], [1.0]]), TENSOR),
    ("known_labels labels predictions", [0, 1], TWO_CLASSES),
    ("known_scores scores", [0.1, 0.9], SCORES),
    ("limits", None, types("ab", [None, 1.0], [True, False]) + values([0.0], [math.nan, 0.0])),
    ("logits", SCORED[:, None] * SCORED, FLOATS + values(torch.tensor(1.0), torch.ones(2, 1))),
    ("models", [elun.PrivateLogisticRegression(1.0)], types([1], ["model"])),
    ("network", torch.nn.Flatten(1), types(None, hinge)),
    ("ones", [1, 2], ONES),
    ("orders", [2.0, 3.0], ORDERS),
    ("output_distribution", [[0.75, 0.25], [0.25, 0.75]], DISTRIBUTION),
    ("path", ROWS, TABLE + values([[0.0, 0.0]], [[0.0], [1.0]])),
    ("rdp", [0.1, 0.2], DIVERGENCES),
    ("records", [0, 1], types(None, 5, "ab", {1, 2}, {1: 2}) + values([], (), np.array(3))),
    ("release", AUC, types(0.5, None, "release", MATRIX)),
    ("reports", [[0, 1], [1, 1]], INTEGERS + BITS),
    ("risks", [mean_hinge], types(None, 1, mean_hinge) + values([], [None], ["hinge"])),
    ("rows", ROWS, FINITE_NUMBERS + values(1.0, [1.0], [[]], np.zeros((0, 2)))),
    ("schedule", training.Schedule(epochs=1, batch_size=2), types(None, 5, {"epochs": 1})),
    ("shifts elun.minimize_loss.shifts", ROWS, SHIFTS),
    ("train", IMAGES, PICTURES),
    ("turning_points", [0.0, 1.0], TURNING_POINTS),
    ("utilities", [1.0, 2.0], UTILITIES),
    ("values randomized_response.reports", [0, 1, 2], INTEGERS + RECORDS + types([True])),
    ("votes", [3, 4], VOTES),
    ("weights", None, NUMBERS + values([1.0], [0.6, 0.6], [1.5, -0.5], [[0.5, 0.5]], [])),
    ("X", ROWS, ROWS_OF_A_MODEL),
    ("y", [0, 1], values([0, 2], [SECRET, 1], [SECRET_WORD, "1"], [0.5, 1])),
    ("accounting.compose.delta noisy_gradient_descent.DescentRelease.delta", 1e-5, DELTA_OR_0),
    ("accounting.PrivacyCost.delta accounting.SecretCost.delta", 1e-5, DELTA_OR_0),
    ("accounting.PrivacyCost.epsilon accounting.SecretCost.epsilon", 1.0, COST),
    ("accounting.SecretCost.answered", 100.0, NUMBER + values(-1, -0.5, math.inf)),
    ("accounting.SecretCost.order", 20.0, or_none(POSITIVE)),
    ("accounting.cost", lambda noise: 1 / noise, FUNCTION),
    ("accounting.start", None, or_none(POSITIVE)),
    ("accounting.high", 10.0, FINITE + values(0.05)),
    ("accounting.tolerance", 1e-9, FINITE + values(0, 0.11)),
    ("accounting.neighbours", "replaced", WORD),
    ("accounting.compose_subsampled_gaussian.sigma", 2.0, POSITIVE + values(0.009)),
    ("accounting.compose_subsampled_gaussian.delta", 1e-5, PROBABILITY + values(9e-11)),
    ("accounting.steps accounting.queries", 2, SIZE + values(10**12, 10**30)),
    ("audit.delta private_auc.delta private_confusion.delta", 0.0, DELTA_OR_0),
    ("audit.epsilon", 1.5, NOT_NEGATIVE),
    ("grading.delta", None, DELTA_OR_0),
    ("grading.Task.epsilon", None, types("1", [1.0], 1j) + values(-1, math.nan, math.inf)),
    ("grading.Task.trials", None, INTEGER + values(99, 0, -1)),
    ("grading.Task.answers", [((2,), 4)], LIST + types([1], [(1, 2)], [((1,), 2, 3)])),
    ("audit.mechanism", coin, types(None, "coin", 1)),
    ("audit.report.pairs", [(True, False)], PAIRS + values([])),
    ("audit.report.trials", 200, COUNT + values(3)),
    ("audit.neighbours", None, PAIRS_OF_ROWS),
    ("audit.density_delta.neighbour", stats.laplace(1.0), DENSITY),
    ("audit.pairs_in_domain.domain", [0, 1], types(None, 5, "ab", b"ab") + values([], [1])),
    ("audit.pairs_by_replacement.values", [0, 1], LIST + values([])),
    ("datasets.classes", None, types("35", 3, [3.0], [True], ["3"]) + values([], [10], [-1])),
    ("datasets.load_pate_votes.name", "mnist_student_query_indices", WORD + values("Adult")),
    ("datasets.load_results.name", "symmetric_loss", types(None, 1) + values("", "../secrets")),
    ("elun.lipschitz elun.regularization", 0.05, POSITIVE + values(1e-51, 1e51)),
    ("elun.sensitivity.lipschitz elun.sensitivity.regularization", 0.05, POSITIVE),
    ("elun.PrivateLogisticRegression.regularization", 0.05, or_none(POSITIVE) + values(1e-51)),
    ("elun.sensitivity.gradient_tolerance", None, NOT_NEGATIVE),
    ("elun.logistic_sensitivity.gradient_tolerance", None, NOT_NEGATIVE),
    ("elun.PrivateLogisticRegression.draws", 5, COUNT),
    ("elun.PrivateLogisticRegression.random_state", 0, or_none(SIZE) + types(np.array(2))),
    ("elun.noise", "l2", WORD + values("L2")),
    ("elun.margin", [0.0, 1.0], FINITE_NUMBERS),
    ("elun.expected_logistic_loss.noise_scale", 0.5, FINITE_NUMBERS + values(-1.0, [0.5, -SECRET])),
    ("elun.output", [0.0, 1.0], FINITE_NUMBERS + values(0.0, [1.0], [[1.0, 2.0, 3.0]], [])),
    ("elun.clip_rows.features", ROWS, FINITE_NUMBERS + values(1.0, [1.0], [[[1.0]]])),
    ("elun.labels", [1, -1], SIGNED),
    ("elun.classes", None, NAMES_OF_CLASSES),
    ("exponential_mechanism.values", [1.0, 2.0], SUMMANDS),
    ("exponential_mechanism.low", 0.0, FINITE),
    ("exponential_mechanism.high", 5.0, FINITE + values(0.0, -1.0)),
    ("exponential_mechanism.steps", 10, COUNT + values(2**40 + 1)),
    ("exponential_mechanism.answers", [1, 5], COUNTED),
    ("exponential_mechanism.above_threshold.answers", [1, 5], COUNTED + values([[[1, 5]]])),
    ("exponential_mechanism.threshold", 3, INTEGER + values(2**53 + 1, -(2**53) - 1)),
    ("exponential_mechanism.above_threshold.epsilon", 1.0, POSITIVE + values(1e-13)),
    ("exponential_mechanism.above_threshold.sensitivity", 1, COUNT + values(2**62)),
    ("exponential_mechanism.above_threshold_distribution.sensitivity", 1, COUNT + values(2**62)),
    ("counts_and_means.epsilon histogram.epsilon", 1.0, POSITIVE + values(9e-10)),
    ("counts_and_means.values", [True, 0], YES_OR_NO),
    ("counts_and_means.release_histogram.values histogram.values", ["tea"], ANSWERS),
    ("unary_encoding.values", ["tea"], ANSWERS),
    ("counts_and_means.release_sum.values counts_and_means.release_mean.values", [1], SUMMANDS),
    ("counts_and_means.low", 0, FINITE + values(5, 0.5, -(2**32))),
    ("counts_and_means.high", 5, FINITE + values(0, 4.5, 2**32)),
    ("counts_and_means.step", 1, POSITIVE + values(2, 1e-9)),
    ("counts_and_means.sensitivity", 1, COUNT + values(3)),
    ("counts_and_means.categories", 3, COUNT + values(2**31 + 1)),
    ("by", None, types(["a"])),
    ("groups", None, types(["a"])),
    ("counts_and_means.neighbours exponential_mechanism.neighbours", release.REPLACED, BOTH),
    ("histogram.output", [1, 0], NOISY_COUNTS),
    ("histogram.count_log_pmf.values histogram.release_count.values", [True, 0], YES_OR_NO),
    ("histogram.count_log_pmf.output", [1, 0], NOISY_COUNT),
    ("histogram.neighbours", release.REPLACED, BOTH),
    ("histogram.sensitivity", 1, COUNT + values(3)),
    ("histogram.categories", 3, COUNT + values(2**31 + 1)),
    ("interval", None, or_none(PROBABILITY)),
    ("exponential_mechanism.share", 0.5, PROBABILITY + values(1e-9)),
    ("label_privacy.epsilon randomized_response.epsilon", 1.0, POSITIVE + values(1e-17)),
    ("label_privacy.exponential.stated_epsilon", 1.0, POSITIVE + values(1e-17)),
    ("label_privacy.labels label_privacy.reports", [1, -1], NAMED_LABELS),
    ("label_privacy.classes", (-1, 1), NAMES_OF_TWO),
    ("label_privacy.counts", [5, 3], REAL_COUNTS + values([5], [0, 0], [1, 2, 3])),
    ("label_privacy.n", 10, COUNT + values(2**53 + 1)),
    ("label_privacy.low", 5, SIZE + values(11)),
    ("label_privacy.high", 10, SIZE + values(11)),
    ("noisy_gradient_descent.features", ROWS, TABLE),
    ("noisy_gradient_descent.DescentRelease.path", ROWS, DESCENT),
    ("noisy_gradient_descent.noise", 1.0, POSITIVE + values(0.0099, 1.1e6)),
    ("noisy_gradient_descent.rate", 1.0, POSITIVE + values(9e-10, 1.0001, 2)),
    ("noisy_gradient_descent.clipping", 1.0, POSITIVE + values(9e-21, 1.1e20)),
    ("noisy_gradient_descent.step_size", 0.5, POSITIVE + values(9e-21, 1.1e20)),
    ("noisy_gradient_descent.steps noisy_gradient_descent.batches", 3, COUNT + values(10**6 + 1)),
    ("noisy_gradient_descent.cost.neighbours", "replaced", WORD + values("replace", "add")),
    ("noisy_gradient_descent.noise_for.neighbours", "replaced", WORD + values("replace", "add")),
    ("pate.scale pate.sigma pate.gamma pate.sigma_threshold", 2.0, POSITIVE + values(9e-10, 1.1e9)),
    ("pate.gnss_rdp.scale", 2.0, POSITIVE),
    ("pate.noise", "laplace", WORD + values("Laplace", "normal")),
    ("pate.n", 10, COUNT + values(2)),
    ("pate.classes", 3, CATEGORIES + values(2**40)),
    ("pate.predictions", [[0, 2], [0, 1]], INTEGERS + values(1, [SECRET], [0, -SECRET])),
    ("pate.queries", 9, SIZE + values(10**6 + 1)),
    ("pate.threshold", 3, FINITE + values(1.1e9, -1.1e9)),
    ("pate.ratio", 3.75, POSITIVE + values(9e-4, 1001)),
    ("pate.ConfidentGNMax.answer.answers", 1, or_none(SIZE)),
    ("pate.ConfidentGNMax.rdp.answered", None, EACH_ANSWERED),
    ("pate.ConfidentGNMax.secret_cost.answered", None, EACH_ANSWERED),
    ("pate.ConfidentGNMax.for_cost.answers", 4, SIZE + values(10)),
    ("pate.release_cost.answered", [True, False], EACH_ANSWERED),
    ("pate.release_cost.beta", None, or_none(POSITIVE) + values(0.04, 1.0)),
    ("pate.release_cost.scale", None, or_none(POSITIVE) + values(9e-10, 1.1e9)),
    ("pate.release_cost.order", None, or_none(POSITIVE) + values(1)),
    ("pate.release_cost.mechanism", pate.ConfidentGNMax(200, 150, 40), types(None, pate.GNMax(40))),
    ("pate.ConfidentGNMax.rdp.votes", [[3, 240], [9, 1]], VOTES),
    ("pate.ConfidentGNMax.secret_cost.votes", [[3, 240], [9, 1]], VOTES),
    ("pate.release_cost.votes", [[3, 240], [9, 1]], QUERIES),
    ("private_auc.epsilon private_confusion.epsilon", 1.0, POSITIVE + values(1e-10)),
    ("private_auc.MetricRelease.epsilon private_confusion.ConfusionRelease.epsilon", 1.0, POSITIVE),
    ("private_auc.cauchy_scale.epsilon", 1.0, POSITIVE + values(1e-10, 0.5)),
    ("private_auc.cauchy_scale.calibration", "nissim", WORD),
    ("private_auc.cauchy_scale.beta", 0.1, POSITIVE + values(0.2, 1.0, 2.0)),
    ("private_auc.student_t_scale.epsilon", 1.0, POSITIVE + values(1e-10, 0.3)),
    ("private_auc.student_t_scale.beta", 0.1, POSITIVE + values(1 / 3, 1.0)),
    ("private_auc.noise", "auto", WORD + values("laplace")),
    ("private_auc.auc.ties private_auc.release_auc.ties", "half", WORD + values("grouped")),
    ("private_auc.average_precision.ties", "grouped", WORD + values("half")),
    ("private_auc.release_average_precision.ties", "pessimistic", WORD + values("half")),
    ("private_auc.log_density.ties", "pessimistic", or_none(WORD) + values("grouped")),
    ("private_auc.auc.labels", [0, 1], TWO_CLASSES + values([0, 0], [1, 1])),
    ("private_auc.average_precision.labels", [0, 1], TWO_CLASSES + values([0, 0])),
    ("private_auc.ap_local_sensitivity.negatives", 9, or_none(SIZE)),
    ("private_auc.n", 9, COUNT + values(10**30)),
    ("private_auc.guess", 1, or_none(COUNT) + values(10, 10**30)),
    ("private_auc.best_beta.guess", 9, COUNT),
    ("private_auc.metric_interval.at_least", 2, COUNT + values(3, 5)),
    ("private_auc.MetricNoise.degrees", 3, COUNT + values(1, 1001)),
    ("private_auc.MetricNoise.delta", 0.0, DELTA_OR_0 + values(0.5)),
    ("private_auc.MetricNoise.calibration", "exact", WORD + values("nissim")),
    ("private_auc.MetricNoise.allowed_change.rate", 0.1, NOT_NEGATIVE),
    ("private_auc.MetricRelease.value", 0.75, NUMBER),
    ("private_auc.MetricRelease.noise", AUC.noise, types(None, "cauchy", 1.0)),
    ("private_confusion.release", MATRIX, types(0.5, None, AUC, [[1, 2], [3, 4]])),
    ("private_confusion.value", ((1, 2), (3, 4)), FOUR_COUNTS),
    ("randomized_response.shuffled_delta.epsilon", 0.1, NOT_NEGATIVE),
    ("randomized_response.local_epsilon", 1.0, POSITIVE + values(1e-10)),
    ("randomized_response.n", 9, COUNT + values(1_000_001)),
    ("randomized_response.others", 4, or_none(SIZE) + values(9)),
    ("randomized_response.two_coin.values", [0, 1], INTEGERS + RECORDS + values([2], BAD_BOOLEANS)),
    ("randomized_response.counts", [5, 3, 0], REAL_COUNTS + values([5], [0, 0])),
    ("randomized_response.estimate_counts.counts", [5, 3], COUNTS + values([5], [2**62, 2**62])),
    ("release.delta", 0.0, DELTA_OR_0),
    ("release.value", 0.5, NUMBER),
    ("release.basis", release.Limits(0.95, ((0.0, 1.0), (0.0, 2.0))), []),
    ("release.NumberRelease.basis", release.Limits(0.95, ((0.0, 1.0),)), []),
    ("release.TableRelease.value", [0.5, 1], types(None, "ab", ["a", "b"]) + values([1], 5)),
    ("release.together", False, FLAG),
    ("release.confidence", None, or_none(PROBABILITY)),
    ("symmetric_loss.margin", SCORED, FLOATS),
    ("symmetric_loss.scores", SCORED, FLOATS + values(torch.tensor(1.0), torch.ones(1, 1, 3))),
    ("symmetric_loss.loss", hinge, FUNCTION),
    ("symmetric_loss.b", 3.0, POSITIVE + values(1, 0.5)),
    ("symmetric_loss.power", 0.5, POSITIVE + values(1.01)),
    ("symmetric_loss.labels", torch.tensor([2, 0, 1]), CLASS_LABELS),
    ("symmetric_loss.auc_risk.labels symmetric_loss.ber_risk.labels", SIGNS, BINARY_LABELS),
    ("training.labels", torch.tensor([[-1.0, 1.0]]), TENSOR + RUNS_OF_LABELS),
    ("training.predict.inputs", torch.ones(2, 3, 1), TENSOR),
    ("training.size", 3, COUNT + values(7)),
    ("training.filters", 2, COUNT + values(20_001)),
    ("training.test", IMAGES, PICTURES + values(IMAGES[:, :5], IMAGES[..., :1])),
    ("unary_encoding.epsilon", 1.0, POSITIVE + values(1e-17)),
    ("unary_encoding.support_probabilities.epsilon", 1.0, POSITIVE + values(1e-10, 30.5)),
    ("unary_encoding.p", 0.5, PROBABILITY + values(0.25, 0.2)),
    ("unary_encoding.q", 0.25, PROBABILITY + values(0.5, 0.6)),
    ("unary_encoding.output_distribution.categories", 3, COUNT + values(13)),
    ("unary_encoding.n", None, or_none(COUNT) + values(7, 2**62 + 1)),
    ("unary_encoding.aggregate_ones.n", 2, COUNT + values(2**62 + 1)),
    ("unary_encoding.simulate_ones.counts", [5, 3], COUNTS + types([0.5]) + values([2**62] * 2)),
]
KINDS = {name: (works, refused) for names, works, refused in KINDS for name in names.split()}


# What nobody calls with parameters of their own, or what needs more than a call.
LEFT_OUT = {
    "grading.in_a_process": "it starts a process: `test_sandbox` has its refusals",
    "elun.Guarantee": "a model makes it, out of what was checked",
    "counts_and_means.Tallies": "a release makes it, out of what was checked",
    "counts_and_means.log_probability": "it takes what a release takes",
    "release.Limits": "a release makes it, out of what was checked",
}
# What is only refused here, since it would read large files or files that may be absent.
READS_FILES = {"datasets.load_mnist", "datasets.load_cifar10", "datasets.load_pate_votes"}


def fitted(**parameters):
    """Make a model and fit it: scikit-learn has parameters checked there, and not before."""
    return elun.PrivateLogisticRegression(**parameters).fit(ROWS, [0, 1])


def find_kind(name, parameter):
    """Return what works and what is refused, and whether this is so for the module by name."""
    module, function = name.split(".", 1)
    for place in (f"{module}.{function}.", f"{module}.", ""):
        if f"{place}{parameter}" in KINDS:
            return *KINDS[f"{place}{parameter}"], bool(place)
    raise LookupError(f"tests/kinds.py has no line for {parameter!r}, which {name} takes")


def find_parameters(thing):
    """Return what a function, a class or a method takes, but for its own object and `rng`."""
    taken = inspect.signature(thing).parameters.values()
    return [p for p in taken if p.name not in ("self", "rng") and p.kind is not p.VAR_KEYWORD]


def find_thing(name):
    module, function = name.split(".", 1)
    return attrgetter(function)(importlib.import_module(f"dpnotes.{module}"))


def make_arguments(name, thing):
    """Return the arguments of a call that works."""
    arguments = {"rng": 0} if "rng" in inspect.signature(thing).parameters else {}
    for p in find_parameters(thing):
        works, _, named = find_kind(name, p.name)
        if p.default is p.empty or (named and works is not None):
            arguments[p.name] = works
    return arguments


def make_call(name):
    """Return what has a public name, ready to be called: a method is that of a working object."""
    if name == "elun.PrivateLogisticRegression":
        return fitted
    kind, _, method = name.rpartition(".")
    if "." not in kind:
        return find_thing(name)
    return getattr(make_call(kind)(**make_arguments(kind, find_thing(kind))), method)
