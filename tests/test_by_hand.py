"""Every mechanism that a page builds by hand costs what the page says, and a broken copy more."""

import ast
import math
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
    hand_out,
    name_of,
    names_of,
    notebooks,
)
from scipy import optimize

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


def gaussian_sigma(epsilon, delta=1e-5):
    """Return the noise of one Gaussian answer of sensitivity 1."""
    return optimize.brentq(lambda sigma: float(gaussian_cost(1 / sigma, delta)) - epsilon, 0.1, 1e3)


RHO = 2.0

CLAIMS = {
    "use/cluster": {
        "count": Claim(1.0, [0, 1, 1, 0], [0, 1, 1, 1]).broken_by("scale=1.0", "scale=0.5"),
    },
    "noisy_gradient_descent": {
        "noisy_descent": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            (np.array([[1e3]]), np.array([0])),
            (np.array([[1e3]]), np.array([1])),
            run=lambda page: (
                lambda rows, rng: (
                    1e9 * page["noisy_descent"](*rows, 1.0, 0.5, 1, 1.0, 1e-9, rng)[-1]
                )
            ),
            delta=0.01,
            trials=3_000,
            seen=0.5,
        ).broken_by("noise * clipping, d)", "noise * clipping * rate, d)"),
    },
    "foundations": {
        "noisy_count": Claim(0.5, 20, 21, [0.5]).broken_by(
            "scale=1 / epsilon", "scale=0.5 / epsilon"
        ),
        "noisy_rates": Claim(
            1.0,
            school_table("Doctorate", "Masters"),
            school_table("Doctorate", "Doctorate"),
            run=rates_of,
            given={"schools": SCHOOLS},
            seen=0.05,
        ).broken_by("scale=2.0", "scale=0.2"),
    },
    "accounting": {
        "add_laplace_noise": Claim(0.5, 20, 21, [1, 0.5]).broken_by(
            "scale=sensitivity / epsilon", "scale=sensitivity"
        ),
    },
    "randomized_response": {
        "answer": Claim(math.log(3), True, False, exact=True).broken_by(
            "if rng.integers(2) == 0:\n        return truth\n    return bool",
            "return truth or bool",
        ),
    },
    "assignments/foundations": {
        "bounded_count": Claim(1.0, [1, 0], [0, 0], [1.0]).broken_by(
            "1 - np.exp(-epsilon), size=2", "1 - np.exp(-2 * epsilon), size=2"
        ),
        "bounded_table": Claim(1.0, ["a"], ["b"], [["a", "b"], 1.0]).broken_by(
            "np.exp(-epsilon / 2)", "np.exp(-epsilon)"
        ),
    },
    "assignments/accounting": {
        "private_mean": Claim(1.0, [0.0], [60.0], [60, 1.0]).broken_by(
            "len(values) / epsilon)", "len(values) / epsilon / 3)"
        ),
        "gaussian_count": Claim(
            float(gaussian_cost(0.5, 0.01)), [1], [0], [4, 1.0], delta=0.01, seen=0.3
        ).broken_by("scale=np.sqrt(questions) * sigma", "scale=sigma"),
    },
    "assignments/noisy_gradient_descent": {
        "noisy_step": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            [[8.0, 1]],
            [[8.0, 0]],
            [0.0, 0.5, 1.0, 1.5, 0.4],
            delta=0.01,
            seen=0.5,
        ).broken_by("rng.normal(0, noise * length)", "rng.normal(0, noise * length * rate)"),
        "descend": Claim(
            float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01)),
            [[8.0, 1]],
            [[8.0, 0]],
            [1, 0.5, 1.0, 1.5, 0.4],
            delta=0.01,
            seen=0.5,
        ).broken_by(
            " records, weight, rate, noise, length", " records, weight, rate, noise / 2, length"
        ),
    },
    "assignments/symmetric_loss": {
        "report": Claim(1.0, [1], [-1], [1.0]).broken_by(
            "1 / (1 + np.exp(-epsilon))\n    return np.where",
            "1 / (1 + np.exp(-2 * epsilon))\n    return np.where",
        ),
        "private_auc": Claim(1.0, [1, -1], [-1, -1], [[0.1, 0.9], 1.0, 0.5]).broken_by(
            "= report(labels, epsilon, rng)", "= report(labels, 3 * epsilon, rng)"
        ),
    },
    "assignments/elun": {
        "release_weight": Claim(1.0, [[1.5, 1]], [[1.5, -1]], [1.5, 0.5, 1.0]).broken_by(
            "noise_scale(len(x), rho, lam, epsilon)", "noise_scale(len(x), rho, lam, 3 * epsilon)"
        ),
        "release": Claim(
            1.0, [[3.0, 0.0, 1]], [[3.0, 0.0, -1]], [1.5, 0.5, 1.0], seen=0.1
        ).broken_by(
            "scale = noise_scale(n, rho, lam, epsilon)",
            "scale = noise_scale(n, rho, lam, 9 * epsilon)",
        ),
    },
    "assignments/audit": {
        "answers_of_visits": Claim(
            1.0, [["Ann", 1], ["Ann", 1]], [["Ann", 0], ["Ann", 0]], [1.0]
        ).broken_by(
            "np.exp(-epsilon))\n            kept", "np.exp(-2 * epsilon))\n            kept"
        ),
    },
    "assignments/randomized_response": {
        "privatize": Claim(1.0, [0], [1], [1.0, 3]).broken_by(
            ">= keep_probability(epsilon, k)", ">= keep_probability(2 * epsilon, k)"
        ),
        "survey": Claim(1.0, [0, 2], [1, 2], [1.0, 3]).broken_by(
            "estimate(privatize(values, epsilon", "estimate(privatize(values, 3 * epsilon"
        ),
    },
    "assignments/unary_encoding": {
        "report": Claim(2.0, [0, 1], [2, 3], [4, 2.0, 2], exact=True).broken_by(
            "epsilon, most)\n    ones = np.full(", "epsilon, 1)\n    ones = np.full("
        ),
        "ticked_by": Claim(2.0, [[]], [[1]], [1, 4, 2.0, 2], seen=0.2).broken_by(
            "[report(ticks, k, epsilon", "[report(ticks, k, 9 * epsilon"
        ),
    },
    "assignments/exponential_mechanism": {
        "choose": Claim(2.0, [[3, 0]], [[0, 3]], [[3.0, 2.0], [0.0, 0.0], 3, 2.0]).broken_by(
            "epsilon, sensitivity(margins, most)", "epsilon, 1.0"
        ),
        "quantile": Claim(2.0, [0, 0, 0, 0, 6], [0, 0, 0, 0, 0], [range(7), 0.8, 2.0]).broken_by(
            "utility, epsilon, max(share", "utility, 9 * epsilon, max(share"
        ),
    },
    "assignments/label_privacy": {
        "draw_column": Claim(1.0, [0], [1], [3, 2.0]).broken_by(
            ">= kept_probability(parameter", ">= kept_probability(2 * parameter"
        ),
        "privatize_rows": Claim(2.0, [[1, 1]], [[-1, -1]], [2.0]).broken_by(
            "epsilon / labels.shape[1]", "epsilon"
        ),
    },
    "assignments/pate": {
        "answer_one": Claim(1.0, [0, 1, 1], [1, 1, 1], [2, 1.0]).broken_by(
            "rng.gumbel(0, 2 / epsilon", "rng.gumbel(0, 1 / epsilon"
        ),
        "answer_all": Claim(
            1.0, [[0, 0], [1, 1], [1, 1]], [[1, 1], [1, 1], [1, 1]], [2, 1.0], seen=0.1
        ).broken_by("each = epsilon / len(questions)", "each = 2 * epsilon"),
    },
    "assignments/private_auc": {
        "release_auc": Claim(
            1.0, [(0, 0.1), (1, 0.9)], [(0, 0.1), (1, 0.0)], [1.0, 0.2], seen=0.2
        ).broken_by("noise_scale(smaller, epsilon", "noise_scale(smaller, 9 * epsilon"),
        "release_found": Claim(
            1.0, [(0, 0.1), (1, 0.9)], [(0, 0.1), (1, 0.4)], [1.0, 0.2], seen=0.2
        ).broken_by("noise_scale(len(scores), epsilon", "noise_scale(len(scores), 9 * epsilon"),
    },
    "deeper/randomized_response": {
        "answer": Claim(math.log(3), True, False, exact=True).broken_by(
            "if rng.integers(2) == 0:\n        return truth\n    return bool",
            "return truth or bool",
        ),
        "Memoized": Claim(
            math.log(3),
            True,
            False,
            run=lambda page: lambda truth, rng: page["Memoized"]().answer(truth, rng),
            exact=True,
        ).broken_by("answer(truth, rng)\n        return", "truth\n        return"),
        "week_of_memory": Claim(math.log(3), True, False, exact=True).broken_by(
            "person = Memoized()\n    return [person", "return [Memoized()"
        ),
        "week_of_fresh_coins": Claim(7 * math.log(3), True, False, exact=True).broken_by(
            "return [answer(truth, rng) for day in range(7)]", "return [truth] * 7"
        ),
    },
    "exponential_mechanism": {
        "draw_price": Claim(
            4.0, np.array([15.0]), np.array([0.0]), [np.array([1.0, 5.0, 15.0]), 4.0], seen=0.15
        ).broken_by("(2 * prices.max())", "2"),
        "noisy_max": Claim(1.0, np.array([1, 0]), np.array([0, 1]), [1.0]).broken_by(
            "gumbel(scale=2", "gumbel(scale=0.5"
        ),
        "flip_through": Claim(1.0, np.array([1, 0]), np.array([0, 1]), [1.0]).broken_by(
            "np.exp(epsilon / 2 * (counts", "np.exp(3 * epsilon * (counts"
        ),
        "draw_median": Claim(
            1.0, np.array([0, 0, 5]), np.array([0, 5, 5]), [np.array([0, 5]), 1.0]
        ).broken_by("np.exp(epsilon / 2 * (worse", "np.exp(3 * epsilon * (worse"),
        "first_above": Claim(1.0, [0, 1], [1, 0], [0, 1.0], seen=0.05).broken_by(
            "laplace(scale=4 / epsilon", "laplace(scale=0.2 / epsilon"
        ),
    },
    "label_privacy": {
        "flip_some": Claim(1.0, np.array([1, -1]), np.array([-1, -1]), [1.0], exact=True).broken_by(
            "exp(epsilon) / (1", "exp(2 * epsilon) / (1"
        ),
    },
    "pate": {
        "gumbel_winner": Claim(1.0, [6, 5], [5, 6], [2.0]).broken_by(
            "rng.gumbel(0, scale,", "rng.gumbel(0, 0.4 * scale,"
        ),
    },
    "deeper/pate": {
        "noisy_winner": Claim(1.0, [6, 5], [5, 6], [0.5]).broken_by(
            "1 / gamma, votes", "0.4 / gamma, votes"
        ),
    },
    "private_auc": {
        "noisy_auc": Claim(
            1.0,
            (np.array([1, 0]), np.array([1, 0])),
            (np.array([1, 0]), np.array([0, 1])),
            [1.0, 0.25, 3],
        ).broken_by(
            "noise = student_factor(epsilon, beta, nu)",
            "noise = student_factor(3 * epsilon, beta, nu)",
        ),
    },
    "audit": {
        "count_with_scale": Claim(1.0, 20, 21).broken_by(
            "return count + rng.laplace(scale=1)", "return count + rng.laplace(scale=0.5)"
        ),
        "capped_hours": Claim(1.0, [38, 40, 0], [38, 40, 99]).broken_by(
            "sum(min(max(h, 0), 40) for h in hours)", "sum(hours)"
        ),
        "KeepsItsAnswer": Claim(
            math.log(3),
            True,
            False,
            run=lambda page: lambda truth, rng: page["KeepsItsAnswer"]()(truth, rng),
            exact=True,
        ).broken_by("bool(rng.integers(2))", "truth"),
        "coin_by_coin": Claim(1.0, 20, 21).broken_by(
            "count + int(up - down)", "3 * count + int(up - down)"
        ),
    },
    "solutions/audit": {
        "all_schools": Claim(1.0, ["north"], ["south"]).broken_by(
            "counts[s] + rng.laplace(scale=2)", "counts[s] + rng.laplace(scale=0.5)"
        ),
    },
    "elun": {
        "spherical_noise": Claim(
            1.0,
            np.array([0.0, 0.0]),
            np.array([1.0, 0.0]),
            run=lambda page: hand_out(
                lambda w, rng: w + page["spherical_noise"](2, 1.0, 5_000, rng)
            ),
        ).broken_by("rng.gamma(d, scale,", "rng.gamma(d, scale / 3,"),
        "release_by_hand": Claim(
            1.0,
            (np.full((2, 1), 3.0), np.array([1, 1])),
            (np.full((2, 1), 3.0), np.array([-1, 1])),
            [RHO, 0.5, 1.0],
            trials=400,
            seen=0.0,
        ).broken_by("b = 2 * rho", "b = 0.02 * rho"),
    },
    "deeper/elun": {
        "minimise_with_push": Claim(
            1.0,
            (np.full((3, 1), RHO), np.array([1, 1, 1])),
            (np.full((3, 1), RHO), np.array([-1, 1, 1])),
            run=lambda page: hand_out(
                lambda rows, rng: page["minimise_with_push"](*rows, 1.0, 0.5, RHO, 5_000, rng)
            ),
            seen=0.0,
        ).broken_by("2 * rho / left", "0.1 * rho / left"),
        "noisy_average_gradient": Claim(
            1.0,
            (np.full((1, 1), RHO), np.ones(1)),
            (np.empty((0, 1)), np.empty(0)),
            [np.array([-5.0]), RHO * gaussian_sigma(0.5), 2.0],
            delta=1e-5,
            seen=0.0,
        ).broken_by("rng.normal(0, sigma, w.size)", "rng.normal(0, sigma / 50, w.size)"),
        "full_batch_descent": Claim(
            1.0,
            (np.zeros((3, 1)), np.ones(3)),
            (np.array([[0.0], [0.0], [RHO]]), np.ones(3)),
            run=lambda page: hand_out(
                lambda rows, rng: page["full_batch_descent"](
                    *rows, 3, page["descent_sigma"](1.0, 1e-5, 3, RHO), 0.05, 5_000, rng
                )
            ),
            delta=1e-5,
            given={"RHO": RHO},
            seen=0.0,
        ).broken_by("rate = 1 / (RHO**2 / 4 + lam)", "rate = 1 / (lengths.max() ** 2 / 4 + lam)"),
        "public_step": Claim(
            0.3,
            (np.zeros((3, 1)), np.ones(3)),
            (np.array([[0.0], [0.0], [RHO]]), np.ones(3)),
            delta=1e-6,
            given={"RHO": RHO, "LAM": 0.05, "STEP_SIGMA": 2 * RHO * gaussian_sigma(0.3, 1e-6)},
            trials=1_500,
            seen=0.0,
        ).broken_by("rate = 1 / (RHO**2 / 4 + lam)", "rate = 1 / (lengths.max() ** 2 / 4 + lam)"),
        "private_quantile": Claim(
            1.0,
            np.array([1.0, 1.0, 2.0]),
            np.array([1.0, 2.0, 2.0]),
            [1 / 3, np.array([0.5, 1.5, 2.5]), 1.0],
            seen=0.05,
        ).broken_by("utilities = -np.abs(", "utilities = -8 * np.abs("),
    },
    "unary_encoding": {
        "perturb": Claim(math.log(9), [1, 0, 0], [0, 1, 0], [0.75, 0.25], exact=True).broken_by(
            "int(rng.random() < (p", "int(rng.random() < (0.9"
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
    # Its promise is for the exact minimum, and the deeper page on ELUN proves it.
    "noisy_gradient_descent": {"minimum_with_slope": "simulation", "rival_scores": "simulation"},
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
        pytest.param(PAGES[page], name, claim, id=f"{page}-{name}")
        for page in CLAIMS
        for name, claim in CLAIMS[page].items()
    ]


def find_cost(notebook, name, claim, change=("", "")):
    """Return the exact cost of a mechanism of coins, or a lower bound on that of another."""
    mechanism = claim.mechanism(name, names_of(notebook, change, claim.given))
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
@pytest.mark.parametrize(("notebook", "name", "claim"), claims())
def test_a_mechanism_of_a_page_costs_what_the_page_says(notebook, name, claim):
    cost = find_cost(notebook, name, claim)
    if claim.exact:
        assert cost == pytest.approx(claim.epsilon, rel=1e-9)
    else:
        # An audit that sees next to nothing would pass whatever it is given.
        assert claim.seen * claim.epsilon <= cost <= claim.epsilon


@pytest.mark.parametrize(("notebook", "name", "claim"), claims())
def test_a_broken_copy_of_a_mechanism_of_a_page_is_caught(notebook, name, claim):
    assert find_cost(notebook, name, claim, claim.broken) > claim.epsilon * (1 + 1e-6)


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
