"""Every mechanism that a page builds by hand costs what the page says, and a broken copy more."""

import ast
import math
import pickle
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from by_hand import (
    BOOK,
    TAGS,
    Claim,
    adds_noise,
    cells,
    drawing_functions,
    exact_distribution,
    name_of,
    names_of,
    notebooks,
)

from dpnotes import noisy_gradient_descent
from dpnotes.accounting import gaussian_cost
from dpnotes.audit import epsilon_lower_bound, exact_epsilon

PAGES = {name_of(notebook): notebook for notebook in notebooks()}


SCHOOLS = ["HS-grad", "Bachelors", "Masters", "Doctorate"]


def school_table(*schooling):
    """Return people of whom every other one earns much."""
    incomes = tuple(place % 2 == 0 for place in range(len(schooling)))
    return {"education": schooling, "income": incomes}


class Counts:
    """A table with the few methods that the noisy rates ask of one, since pandas is slow."""

    def __init__(self, counts):
        self.counts, self.shape = counts, counts.shape

    def __add__(self, noise):
        return Counts(self.counts + noise)

    def __getitem__(self, income):
        return self.counts[:, int(income)]

    def sum(self, axis):
        return self.counts.sum(axis=axis)


def rates_of(page):
    """Run the noisy rates of a page; the people are counted only once for each data set."""

    @lru_cache
    def counted(schools, incomes, rows, columns, fill_value):
        table = pd.crosstab(np.array(schools), np.array(incomes))
        return Counts(table.reindex(rows, columns=columns, fill_value=fill_value).to_numpy())

    def crosstab(schools, incomes):
        return SimpleNamespace(
            reindex=lambda rows, columns, fill_value: counted(
                schools, incomes, tuple(rows), tuple(columns), fill_value
            )
        )

    page["pd"] = SimpleNamespace(crosstab=crosstab)
    return lambda people, rng: page["noisy_rates"](people, rng).tolist()


def on_rows(name, *settings):
    """Return how to run a function of a page on a data set, with fixed settings after it."""
    return lambda page: lambda data, rng: page[name](data, *settings, rng)


def in_batches(draw, size=5_000):
    """Return how to run a function of a page that draws many independent outputs at a time."""

    def run(page):
        waiting = {}

        def one(data, rng):
            # The audit hands out a copy of the data for every run.
            key = pickle.dumps(data)
            if not waiting.get(key):
                waiting[key] = draw(page, data, size, rng).tolist()
            return waiting[key].pop()

        return one

    return run


@lru_cache
def gaussian_sigma(epsilon, delta=1e-5):
    """Return the noise of one Gaussian answer of sensitivity 1, by bisection."""
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = math.sqrt(low * high)
        enough = float(gaussian_cost(1 / middle, delta)) <= epsilon
        low, high = (low, middle) if enough else (middle, high)
    return high


RHO = 2.0

CLAIMS = {
    "use/cluster": {
        "count": Claim(
            1.0,
            lambda page: lambda records, rng: page["count"](records, rng=rng),
            [0, 1, 1, 0],
            [0, 1, 1, 1],
            ("scale=1.0", "scale=0.5"),
        ),
    },
    "noisy_gradient_descent": {
        "noisy_descent": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            lambda page: (
                lambda rows, rng: (
                    1e9 * page["noisy_descent"](*rows, 1.0, 0.5, 1, 1.0, 1e-9, rng)[-1]
                )
            ),
            (np.array([[1e3]]), np.array([0])),
            (np.array([[1e3]]), np.array([1])),
            ("noise * clipping, d)", "noise * clipping * rate, d)"),
            delta=0.01,
            trials=3_000,
            seen=0.5,
        ),
    },
    "foundations": {
        "noisy_count": Claim(
            0.5,
            on_rows("noisy_count", 0.5),
            20,
            21,
            ("scale=1 / epsilon", "scale=0.5 / epsilon"),
        ),
        "noisy_rates": Claim(
            1.0,
            rates_of,
            school_table("Doctorate", "Masters"),
            school_table("Doctorate", "Doctorate"),
            ("scale=2.0", "scale=0.2"),
            given={"schools": SCHOOLS},
            seen=0.05,
        ),
    },
    "accounting": {
        "add_laplace_noise": Claim(
            0.5,
            lambda page: lambda count, rng: page["add_laplace_noise"](count, 1, 0.5, rng=rng),
            20,
            21,
            ("scale=sensitivity / epsilon", "scale=sensitivity"),
        ),
    },
    "randomized_response": {
        "answer": Claim(
            math.log(3),
            on_rows("answer"),
            True,
            False,
            (
                "if rng.integers(2) == 0:\n        return truth\n    return bool",
                "return truth or bool",
            ),
            exact=True,
        ),
    },
    "assignments/foundations": {
        "bounded_count": Claim(
            1.0,
            on_rows("bounded_count", 1.0),
            [1, 0],
            [0, 0],
            ("1 - np.exp(-epsilon), size=2", "1 - np.exp(-2 * epsilon), size=2"),
        ),
        "bounded_table": Claim(
            1.0,
            on_rows("bounded_table", ["a", "b"], 1.0),
            ["a"],
            ["b"],
            ("np.exp(-epsilon / 2)", "np.exp(-epsilon)"),
        ),
    },
    "assignments/accounting": {
        "private_mean": Claim(
            1.0,
            on_rows("private_mean", 60, 1.0),
            [0.0],
            [60.0],
            ("len(values) / epsilon)", "len(values) / epsilon / 3)"),
        ),
        "gaussian_count": Claim(
            float(gaussian_cost(0.5, 0.01)),
            on_rows("gaussian_count", 4, 1.0),
            [1],
            [0],
            ("scale=np.sqrt(questions) * sigma", "scale=sigma"),
            delta=0.01,
            seen=0.3,
        ),
    },
    "assignments/noisy_gradient_descent": {
        "noisy_step": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            on_rows("noisy_step", 0.0, 0.5, 1.0, 1.5, 0.4),
            [[8.0, 1]],
            [[8.0, 0]],
            ("rng.normal(0, noise * length)", "rng.normal(0, noise * length * rate)"),
            delta=0.01,
            seen=0.5,
        ),
        "descend": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            on_rows("descend", 1, 0.5, 1.0, 1.5, 0.4),
            [[8.0, 1]],
            [[8.0, 0]],
            (" records, weight, rate, noise, length", " records, weight, rate, noise / 2, length"),
            delta=0.01,
            seen=0.5,
        ),
    },
    "assignments/symmetric_loss": {
        "report": Claim(
            1.0,
            on_rows("report", 1.0),
            [1],
            [-1],
            (
                "1 / (1 + np.exp(-epsilon))\n    return np.where",
                "1 / (1 + np.exp(-2 * epsilon))\n    return np.where",
            ),
        ),
        "private_auc": Claim(
            1.0,
            lambda page: lambda labels, rng: page["private_auc"](labels, [0.1, 0.9], 1.0, 0.5, rng),
            [1, -1],
            [-1, -1],
            ("= report(labels, epsilon, rng)", "= report(labels, 3 * epsilon, rng)"),
        ),
    },
    "assignments/elun": {
        "release_weight": Claim(
            1.0,
            on_rows("release_weight", 1.5, 0.5, 1.0),
            [[1.5, 1]],
            [[1.5, -1]],
            (
                "noise_scale(len(x), rho, lam, epsilon)",
                "noise_scale(len(x), rho, lam, 3 * epsilon)",
            ),
        ),
        "release": Claim(
            1.0,
            on_rows("release", 1.5, 0.5, 1.0),
            [[3.0, 0.0, 1]],
            [[3.0, 0.0, -1]],
            (
                "scale = noise_scale(n, rho, lam, epsilon)",
                "scale = noise_scale(n, rho, lam, 9 * epsilon)",
            ),
            seen=0.1,
        ),
    },
    "assignments/audit": {
        "answers_of_visits": Claim(
            1.0,
            on_rows("answers_of_visits", 1.0),
            [["Ann", 1], ["Ann", 1]],
            [["Ann", 0], ["Ann", 0]],
            ("np.exp(-epsilon))\n            kept", "np.exp(-2 * epsilon))\n            kept"),
        ),
    },
    "assignments/randomized_response": {
        "privatize": Claim(
            1.0,
            on_rows("privatize", 1.0, 3),
            [0],
            [1],
            (">= keep_probability(epsilon, k)", ">= keep_probability(2 * epsilon, k)"),
        ),
        "survey": Claim(
            1.0,
            on_rows("survey", 1.0, 3),
            [0, 2],
            [1, 2],
            ("estimate(privatize(values, epsilon", "estimate(privatize(values, 3 * epsilon"),
        ),
    },
    "assignments/unary_encoding": {
        "report": Claim(
            2.0,
            on_rows("report", 4, 2.0, 2),
            [0, 1],
            [2, 3],
            ("epsilon, most)\n    ones = np.full(", "epsilon, 1)\n    ones = np.full("),
            exact=True,
        ),
        "ticked_by": Claim(
            2.0,
            on_rows("ticked_by", 1, 4, 2.0, 2),
            [[]],
            [[1]],
            ("[report(ticks, k, epsilon", "[report(ticks, k, 9 * epsilon"),
            seen=0.2,
        ),
    },
    "assignments/exponential_mechanism": {
        "choose": Claim(
            2.0,
            on_rows("choose", [3.0, 2.0], [0.0, 0.0], 3, 2.0),
            [[3, 0]],
            [[0, 3]],
            ("epsilon, sensitivity(margins, most)", "epsilon, 1.0"),
        ),
        "quantile": Claim(
            2.0,
            on_rows("quantile", range(7), 0.8, 2.0),
            [0, 0, 0, 0, 6],
            [0, 0, 0, 0, 0],
            ("utility, epsilon, max(share", "utility, 9 * epsilon, max(share"),
        ),
    },
    "assignments/label_privacy": {
        "draw_column": Claim(
            1.0,
            on_rows("draw_column", 3, 2.0),
            [0],
            [1],
            (">= kept_probability(parameter", ">= kept_probability(2 * parameter"),
        ),
        "privatize_rows": Claim(
            2.0,
            on_rows("privatize_rows", 2.0),
            [[1, 1]],
            [[-1, -1]],
            ("epsilon / labels.shape[1]", "epsilon"),
        ),
    },
    "assignments/pate": {
        "answer_one": Claim(
            1.0,
            on_rows("answer_one", 2, 1.0),
            [0, 1, 1],
            [1, 1, 1],
            ("rng.gumbel(0, 2 / epsilon", "rng.gumbel(0, 1 / epsilon"),
        ),
        "answer_all": Claim(
            1.0,
            on_rows("answer_all", 2, 1.0),
            [[0, 0], [1, 1], [1, 1]],
            [[1, 1], [1, 1], [1, 1]],
            ("each = epsilon / len(questions)", "each = 2 * epsilon"),
            seen=0.1,
        ),
    },
    "assignments/private_auc": {
        "release_auc": Claim(
            1.0,
            on_rows("release_auc", 1.0, 0.2),
            [(0, 0.1), (1, 0.9)],
            [(0, 0.1), (1, 0.0)],
            ("noise_scale(smaller, epsilon", "noise_scale(smaller, 9 * epsilon"),
            seen=0.2,
        ),
        "release_found": Claim(
            1.0,
            on_rows("release_found", 1.0, 0.2),
            [(0, 0.1), (1, 0.9)],
            [(0, 0.1), (1, 0.4)],
            ("noise_scale(len(scores), epsilon", "noise_scale(len(scores), 9 * epsilon"),
            seen=0.2,
        ),
    },
    "deeper/randomized_response": {
        "answer": Claim(
            math.log(3),
            on_rows("answer"),
            True,
            False,
            (
                "if rng.integers(2) == 0:\n        return truth\n    return bool",
                "return truth or bool",
            ),
            exact=True,
        ),
        "Memoized": Claim(
            math.log(3),
            lambda page: lambda truth, rng: page["Memoized"]().answer(truth, rng),
            True,
            False,
            ("answer(truth, rng)\n        return", "truth\n        return"),
            exact=True,
        ),
        "week_of_memory": Claim(
            math.log(3),
            on_rows("week_of_memory"),
            True,
            False,
            ("person = Memoized()\n    return [person", "return [Memoized()"),
            exact=True,
        ),
        "week_of_fresh_coins": Claim(
            7 * math.log(3),
            on_rows("week_of_fresh_coins"),
            True,
            False,
            ("return [answer(truth, rng) for day in range(7)]", "return [truth] * 7"),
            exact=True,
        ),
    },
    "exponential_mechanism": {
        "draw_price": Claim(
            4.0,
            on_rows("draw_price", np.array([1.0, 5.0, 15.0]), 4.0),
            np.array([15.0]),
            np.array([0.0]),
            ("(2 * prices.max())", "2"),
            seen=0.15,
        ),
        "noisy_max": Claim(
            1.0,
            on_rows("noisy_max", 1.0),
            np.array([1, 0]),
            np.array([0, 1]),
            ("gumbel(scale=2", "gumbel(scale=0.5"),
        ),
        "flip_through": Claim(
            1.0,
            on_rows("flip_through", 1.0),
            np.array([1, 0]),
            np.array([0, 1]),
            ("np.exp(epsilon / 2 * (counts", "np.exp(3 * epsilon * (counts"),
        ),
        "draw_median": Claim(
            1.0,
            on_rows("draw_median", np.array([0, 5]), 1.0),
            np.array([0, 0, 5]),
            np.array([0, 5, 5]),
            ("np.exp(epsilon / 2 * (worse", "np.exp(3 * epsilon * (worse"),
        ),
        "first_above": Claim(
            1.0,
            on_rows("first_above", 0, 1.0),
            [0, 1],
            [1, 0],
            ("laplace(scale=4 / epsilon", "laplace(scale=0.2 / epsilon"),
            seen=0.05,
        ),
    },
    "label_privacy": {
        "flip_some": Claim(
            1.0,
            on_rows("flip_some", 1.0),
            np.array([1, -1]),
            np.array([-1, -1]),
            ("exp(epsilon) / (1", "exp(2 * epsilon) / (1"),
            exact=True,
        ),
    },
    "pate": {
        "gumbel_winner": Claim(
            1.0,
            on_rows("gumbel_winner", 2.0),
            [6, 5],
            [5, 6],
            ("rng.gumbel(0, scale,", "rng.gumbel(0, 0.4 * scale,"),
        ),
    },
    "deeper/pate": {
        "noisy_winner": Claim(
            1.0,
            on_rows("noisy_winner", 0.5),
            [6, 5],
            [5, 6],
            ("1 / gamma, votes", "0.4 / gamma, votes"),
        ),
    },
    "private_auc": {
        "noisy_auc": Claim(
            1.0,
            lambda page: lambda rows, rng: page["noisy_auc"](*rows, 1.0, 0.25, 3, rng),
            (np.array([1, 0]), np.array([1, 0])),
            (np.array([1, 0]), np.array([0, 1])),
            (
                "noise = student_factor(epsilon, beta, nu)",
                "noise = student_factor(3 * epsilon, beta, nu)",
            ),
        ),
    },
    "audit": {
        "count_with_scale": Claim(
            1.0,
            on_rows("count_with_scale"),
            20,
            21,
            ("return count + rng.laplace(scale=1)", "return count + rng.laplace(scale=0.5)"),
        ),
        "capped_hours": Claim(
            1.0,
            on_rows("capped_hours"),
            [38, 40, 0],
            [38, 40, 99],
            ("sum(min(max(h, 0), 40) for h in hours)", "sum(hours)"),
        ),
        "KeepsItsAnswer": Claim(
            math.log(3),
            lambda page: lambda truth, rng: page["KeepsItsAnswer"]()(truth, rng),
            True,
            False,
            ("bool(rng.integers(2))", "truth"),
            exact=True,
        ),
        "coin_by_coin": Claim(
            1.0,
            on_rows("coin_by_coin"),
            20,
            21,
            ("count + int(up - down)", "3 * count + int(up - down)"),
        ),
    },
    "solutions/audit": {
        "all_schools": Claim(
            1.0,
            on_rows("all_schools"),
            ["north"],
            ["south"],
            ("counts[s] + rng.laplace(scale=2)", "counts[s] + rng.laplace(scale=0.5)"),
        ),
    },
    "elun": {
        "spherical_noise": Claim(
            1.0,
            in_batches(lambda page, w, size, rng: w + page["spherical_noise"](2, 1.0, size, rng)),
            np.array([0.0, 0.0]),
            np.array([1.0, 0.0]),
            ("rng.gamma(d, scale,", "rng.gamma(d, scale / 3,"),
        ),
        "release_by_hand": Claim(
            1.0,
            lambda page: (
                lambda labels, rng: page["release_by_hand"](
                    np.full((2, 1), 3.0), labels, RHO, 0.5, 1.0, rng
                )
            ),
            np.array([1, 1]),
            np.array([-1, 1]),
            ("b = 2 * rho", "b = 0.02 * rho"),
            trials=400,
            seen=0.0,
        ),
    },
    "deeper/elun": {
        "minimise_with_push": Claim(
            1.0,
            in_batches(
                lambda page, rows, size, rng: page["minimise_with_push"](
                    *rows, 1.0, 0.5, RHO, size, rng
                )
            ),
            (np.full((3, 1), RHO), np.array([1, 1, 1])),
            (np.full((3, 1), RHO), np.array([-1, 1, 1])),
            ("2 * rho / left", "0.1 * rho / left"),
            seen=0.0,
        ),
        "noisy_average_gradient": Claim(
            1.0,
            lambda page: (
                lambda rows, rng: page["noisy_average_gradient"](
                    *rows, np.array([-5.0]), RHO * gaussian_sigma(0.5), 2.0, rng
                )
            ),
            (np.full((1, 1), RHO), np.ones(1)),
            (np.empty((0, 1)), np.empty(0)),
            ("rng.normal(0, sigma, w.size)", "rng.normal(0, sigma / 50, w.size)"),
            delta=1e-5,
            seen=0.0,
        ),
        "full_batch_descent": Claim(
            1.0,
            in_batches(
                lambda page, rows, size, rng: page["full_batch_descent"](
                    *rows, 3, page["descent_sigma"](1.0, 1e-5, 3, RHO), 0.05, size, rng
                )
            ),
            (np.zeros((3, 1)), np.ones(3)),
            (np.array([[0.0], [0.0], [RHO]]), np.ones(3)),
            ("rate = 1 / (RHO**2 / 4 + lam)", "rate = 1 / (lengths.max() ** 2 / 4 + lam)"),
            delta=1e-5,
            given={"RHO": RHO},
            seen=0.0,
        ),
        "public_step": Claim(
            0.3,
            lambda page: lambda rows, rng: page["public_step"](*rows, rng),
            (np.zeros((3, 1)), np.ones(3)),
            (np.array([[0.0], [0.0], [RHO]]), np.ones(3)),
            ("rate = 1 / (RHO**2 / 4 + lam)", "rate = 1 / (lengths.max() ** 2 / 4 + lam)"),
            delta=1e-6,
            given={"RHO": RHO, "LAM": 0.05, "STEP_SIGMA": 2 * RHO * gaussian_sigma(0.3, 1e-6)},
            trials=1_500,
            seen=0.0,
        ),
        "private_quantile": Claim(
            1.0,
            lambda page: (
                lambda lengths, rng: page["private_quantile"](
                    lengths, 1 / 3, np.array([0.5, 1.5, 2.5]), 1.0, rng
                )
            ),
            np.array([1.0, 1.0, 2.0]),
            np.array([1.0, 2.0, 2.0]),
            ("utilities = -np.abs(", "utilities = -8 * np.abs("),
            seen=0.05,
        ),
    },
    "unary_encoding": {
        "perturb": Claim(
            math.log(9),
            on_rows("perturb", 0.75, 0.25),
            [1, 0, 0],
            [0, 1, 0],
            ("int(rng.random() < (p", "int(rng.random() < (0.9"),
            exact=True,
        ),
    },
}

# What draws on a page and is no private mechanism: a leak that the page shows, or a simulation.
OTHERS = {
    "foundations": {"careless_count": "leaky", "lower_bound": "simulation"},
    "deeper/foundations": {"noise": "simulation"},
    "randomized_response": {"careless_answer": "leaky"},
    "unary_encoding": {"perturb_with_one_draw": "leaky"},
    "solutions/label_privacy": {"first_labels_kept": "leaky"},
    "elun": {"largest_losses": "simulation"},
    "deeper/elun": {
        "step_from_the_longest_row": "leaky",
        # Mechanisms of the package, run many times.
        "choose_and_fit": "simulation",
        "private_weights": "simulation",
        "over_lambdas": "simulation",
        "accuracy_with": "simulation",
        "strong_advantage": "simulation",
        "weak_advantage": "simulation",
        "split_quarter": "simulation",
    },
    "solutions/elun": {
        "mean_with_noise_per_column": "leaky",
        "mean_clipped_at_longest": "leaky",
        "seeded_service": "leaky",
    },
    "pate": {"train_student": "simulation"},
    "deeper/pate": {"train_student": "simulation", "one_release": "simulation"},
    "private_auc": {
        "follows_local_sensitivity": "leaky",
        "raises_for_one_class": "leaky",
        "two_test_sets": "simulation",
        "draw_test_set": "simulation",
    },
    "deeper/private_auc": {"draw_test_set": "simulation", "simulated_errors": "simulation"},
    "solutions/private_auc": {"noise_of_one_in_n": "leaky"},
    "audit": {
        "audit_by_hand": "simulation",
        "count_with_deviation": "leaky",
        "trusting_hours": "leaky",
        "quiet_counts": "leaky",
        "goes_on": "leaky",
        "shows_the_count": "leaky",
        "winner_and_votes": "leaky",
        "refuses_small_groups": "leaky",
        "fits_its_noise": "leaky",
        "seed_left_in": "leaky",
        "one_memory_for_all": "leaky",
        "charged_once": "leaky",
        "is_finer": "leaky",
        "with_a_stopwatch": "leaky",
    },
    "solutions/audit": {
        "count_with_sign": "leaky",
        "schools_that_occur": "leaky",
        "mean_age": "leaky",
        "stubborn_answers": "leaky",
    },
    "symmetric_loss": {"models_of": "simulation"},
    "use/cluster": {"trial": "simulation"},
}


def claims():
    return [
        pytest.param(PAGES[page], claim, id=f"{page}-{name}")
        for page in CLAIMS
        for name, claim in CLAIMS[page].items()
    ]


def audited(notebook, claim, change=("", "")):
    """Return the exact cost of a mechanism of coins, or a lower bound on that of another."""
    mechanism = claim.run(names_of(notebook, change, claim.given))
    if not claim.exact:
        return epsilon_lower_bound(
            lambda data, *, rng: mechanism(data, rng),
            claim.first,
            claim.second,
            trials=claim.trials,
            confidence=0.999,
            delta=claim.delta,
            rng=1,
        )
    rows = [exact_distribution(mechanism, data) for data in (claim.first, claim.second)]
    outputs = sorted(set().union(*rows))
    return exact_epsilon([[row.get(output, 0.0) for output in outputs] for row in rows])


@pytest.mark.claim("rr-privacy", "ue-thm-epsilon", "ac-thm-laplace", "em-privacy", kind="audit")
@pytest.mark.claim("em-sparse-vector", "el-release", "el-objective", "ngd-thm-worst", kind="audit")
@pytest.mark.claim("pt-one-query", kind="audit")
@pytest.mark.parametrize(("notebook", "claim"), claims())
def test_a_mechanism_of_a_page_costs_what_the_page_says(notebook, claim):
    cost = audited(notebook, claim)
    if claim.exact:
        assert cost == pytest.approx(claim.epsilon, rel=1e-9)
    else:
        # An audit that sees next to nothing would pass whatever it is given.
        assert claim.seen * claim.epsilon <= cost <= claim.epsilon


@pytest.mark.parametrize(("notebook", "claim"), claims())
def test_a_broken_copy_of_a_mechanism_of_a_page_is_caught(notebook, claim):
    assert audited(notebook, claim, claim.broken) > claim.epsilon * (1 + 1e-6)


def kinds_of(page, tree):
    """Return what the functions of a cell are that draw; "undecided" where nobody has said it."""
    kinds = {}
    for name in drawing_functions(tree):
        kinds[name] = "mechanism" if name in CLAIMS.get(page, {}) else None
        kinds[name] = kinds[name] or OTHERS.get(page, {}).get(name, "undecided")
    return kinds


@pytest.mark.parametrize("page", PAGES)
def test_every_function_that_draws_is_audited_or_promises_nothing(page):
    for source, tags, tree in cells(PAGES[page]):
        kinds = kinds_of(page, tree)
        if kinds or adds_noise(tree):
            assert tags & TAGS == set(kinds.values() or {"simulation"}), (kinds, source)


@pytest.mark.parametrize("page", PAGES)
def test_what_is_decided_here_stands_on_the_page(page):
    found = {name for _, _, tree in cells(PAGES[page]) for name in drawing_functions(tree)}
    assert found == {*CLAIMS.get(page, {}), *OTHERS.get(page, {})}


def test_a_new_mechanism_could_not_be_forgotten():
    for code in (
        "def f(data, rng): return g(data, rng)",
        "def f(x): return rr.privatize(x, 1.0, rng=3)",
        "def f(x): return x + np.random.default_rng(3).normal()",
        "def f(x): return x + stats.cauchy.rvs()",
        "class A:\n    def f(self, seed): return 1",
    ):
        tree = ast.parse(code)
        assert list(kinds_of("foundations", tree).values()) == ["undecided"], code
    assert adds_noise(ast.parse("y = x + rng.laplace()"))
    assert not adds_noise(ast.parse("y = x.laplace()"))
    assert drawing_functions(ast.parse("def f(x): return x.choice() + 1")) == []


def test_coins_and_dice_are_enumerated_exactly():
    def both(data, rng):
        u = rng.random()
        return bool(u < 0.3), bool(u < 0.5), int(rng.integers(2)), (rng.random(2) < data).tolist()

    found = exact_distribution(both, 0.25)
    assert len(found) == 3 * 2 * 4
    assert found[repr((True, True, 0, [True, True]))] == pytest.approx(0.3 / 2 / 16)
    assert found[repr((False, True, 1, [False, True]))] == pytest.approx(0.2 / 2 * 3 / 16)


def test_pages_are_found_in_every_folder_of_the_book():
    assert {notebook.parent for notebook in PAGES.values()} >= {BOOK}
    assert np.all([path.suffix == ".ipynb" for path in PAGES.values()])
