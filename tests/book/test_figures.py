"""The interactive figures: their numbers are those of dpnotes, and everybody can use them."""

import functools
import itertools
import re

import numpy as np
import pytest
from scipy import optimize, special, stats
from visits import PHONE

from dpnotes import exponential_mechanism, pate, private_auc
from dpnotes import randomized_response as rr
from dpnotes import unary_encoding as ue
from dpnotes.accounting import (
    compose,
    compose_gaussian,
    epsilon_from_rdp,
    epsilon_from_zcdp,
    laplace_rdp,
)
from dpnotes.elun import expected_logistic_loss
from dpnotes.label_privacy import log_score_pmf
from dpnotes.pate import costs
from dpnotes.randomized_response import keep_probability

pytestmark = pytest.mark.browser

FIGURES = {
    "best-guess": "book/foundations.html",
    "asking-again": "book/accounting.html",
    "settling-estimate": "book/randomized_response.html",
    "two-probabilities": "book/unary_encoding.html",
    "best-price": "book/exponential_mechanism.html",
    "kept-labels": "book/label_privacy.html",
    "tilted-line": "book/symmetric_loss.html",
    "expected-loss": "book/elun.html",
    "noisy-votes": "book/pate.html",
    "private-auc": "book/private_auc.html",
}
# The tests of one figure follow each other, and visit its page once. What axe finds in it is told
# with the rest of its page, in test_browser.py.
every_figure = pytest.mark.parametrize("name", FIGURES, scope="session")


@pytest.fixture
def open_figure(kept):
    """Open the page of a figure, or take the one that is open, and start the figure afresh."""

    def opened(name, **look):
        visitor = kept(FIGURES[name])
        visitor.dress(**look)
        visitor.page.evaluate(
            """name => {
              window.scrollTo(0, 0);
              dpnotes.show(document.querySelector(".interactive"), dpnotes.figures[name]);
            }""",
            name,
        )
        picture(visitor.page).wait_for()
        return visitor.page

    return opened


def figure(page):
    return page.locator(".interactive")


def picture(page):
    return page.locator(".interactive svg[role=img]")


def drawn(page):
    """Return the shapes of the picture; the ids of its clippings count up with every drawing."""
    return re.sub(r"plot-clip-\d+", "", picture(page).inner_html())


def facts(page):
    names = figure(page).locator("dt").all_inner_texts()
    return dict(zip(names, figure(page).locator("dd").all_inner_texts(), strict=True))


def steps(page, name, control):
    return page.evaluate(
        "([name, part]) => dpnotes.figures[name].controls.find((c) => c.name === part).steps",
        [name, control],
    )


def measure(page, name, values):
    return page.evaluate(
        """([name, values]) => {
          const measured = Object.entries(dpnotes.figures[name].measure(values));
          const plain = (value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
          return Object.fromEntries(measured.map(([part, value]) => [part, plain(value)]));
        }""",
        [name, values],
    )


def corners(page):
    """Move every slider to both of its ends, under every choice, and say where."""
    ways = [(s.press, ["Home", "End"]) for s in figure(page).locator("input[type=range]").all()]
    for control in figure(page).locator("select").all():
        ways.append((control.select_option, control.locator("option").all_inner_texts()))
    for places in itertools.product(*(places for _, places in ways)):
        for (move, _), place in zip(ways, places, strict=True):
            move(place)
        yield places


# What all figures promise.


@every_figure
def test_arrow_keys_move_a_slider_and_change_the_numbers(open_figure, name):
    page = open_figure(name)
    for control in figure(page).locator("input[type=range]").all():
        value, numbers = control.get_attribute("aria-valuetext"), facts(page)
        control.press("ArrowRight")
        assert control.get_attribute("aria-valuetext") != value
        assert facts(page) != numbers


@pytest.mark.full
@every_figure
def test_there_is_a_picture_in_plain_numbers_at_every_corner(kept, open_figure, name):
    page = open_figure(name, viewport=PHONE)
    for places in corners(page):
        shapes = figure(page).locator('svg [fill^="var(--colour"], svg [stroke^="var(--colour"]')
        assert shapes.count() >= 1, places
        said = [*facts(page).values(), picture(page).get_attribute("aria-label")]
        assert not [text for text in (drawn(page), *said) if re.search("NaN|Infinity|undef", text)]
        written = figure(page).locator("svg text").all_text_contents()
        assert not [text for text in written + said if re.search(r"\de[+-]?\d", text)]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert kept(FIGURES[name]).complaints == []


# Two counts, one person apart, and an attacker who tells them apart.


GUESS, COUNT = "best-guess", 7840


def test_the_guesses_of_the_attacker_are_those_of_laplace_noise(open_figure):
    page = open_figure(GUESS)
    for epsilon, line in itertools.product(
        steps(page, GUESS, "epsilon")[::5], steps(page, GUESS, "line")[::3]
    ):
        measured = measure(page, GUESS, {"epsilon": epsilon, "line": line})
        yes = [stats.laplace.sf(line, loc=COUNT + is_in, scale=1 / epsilon) for is_in in (0, 1)]
        expected = [*yes, (1 - yes[0] + yes[1]) / 2, keep_probability(epsilon)]
        names = ("wrongYes", "rightYes", "right", "bound")
        assert [measured[name] for name in names] == pytest.approx(expected, rel=1e-9)
        assert measured["right"] <= measured["best"] + 1e-12 < measured["bound"] + 1e-12


# What many answers cost, by what is known of each.


AGAIN = "asking-again"


def costs_of_rules(epsilon, queries, delta, moments):
    """Return what the rules of the figure cost, from the package."""
    any_kind = float(compose(np.full(queries, epsilon), delta))
    divergences = queries * laplace_rdp(epsilon, moments + 1)
    laplace = float(epsilon_from_rdp(divergences, moments + 1, delta))
    concentrated = float(epsilon_from_zcdp(queries * epsilon**2 / 2, delta))
    return {
        "sum": queries * epsilon,
        "advanced": np.sqrt(2 * queries * np.log(1 / delta)) * epsilon
        + queries * epsilon * np.expm1(epsilon),
        "concentrated": min(queries * epsilon, concentrated),
        "exact": any_kind,
        "laplace": min(any_kind, laplace),
        "gauss": float(compose_gaussian(np.sqrt(2) / epsilon, queries, delta)),
    }


def test_the_cost_of_asking_again_is_that_of_dpnotes_under_every_rule(open_figure):
    page = open_figure(AGAIN)
    moments = np.array(page.evaluate("dpnotes.figures['asking-again'].moments"))
    grid = itertools.product((0.01, 0.1, 0.5, 2.0), (1, 2, 10, 100, 1000, 10_000), (-3, -5, -12))
    for epsilon, queries, exponent in grid:
        values = {"epsilon": epsilon, "queries": queries, "exponent": exponent}
        shown = measure(page, AGAIN, values)["costs"]
        expected = costs_of_rules(epsilon, queries, 10.0**exponent, moments)
        concentrated = shown.pop("concentrated")
        # On a grid of orders, so a little above the best order.
        least = expected.pop("concentrated")
        assert least * (1 - 1e-9) <= concentrated <= least * 1.001 + 1e-6
        assert shown == pytest.approx(expected, rel=1e-6, abs=1e-7), values


# Four hundred people who lie now and then, and the estimate that settles.

SETTLING = "settling-estimate"


def test_the_estimate_in_the_page_is_that_of_dpnotes_at_every_step(open_figure):
    page = open_figure(SETTLING)
    grid = [(epsilon, 400, 1) for epsilon in steps(page, SETTLING, "epsilon")]
    grid += [(1, n, 2) for n in steps(page, SETTLING, "n")]
    for epsilon, n, survey in grid:
        found = measure(page, SETTLING, {"epsilon": epsilon, "n": n, "survey": survey})
        estimate = rr.estimate(found["reports"][:n], epsilon)[1]
        sd = np.sqrt(rr.variance([n - found["actual"], found["actual"]], epsilon)[1])
        names = ("keep", "estimate", "sd", "reported")
        expected = [rr.keep_probability(epsilon), estimate, sd, sum(found["reports"][:n])]
        assert [found[name] for name in names] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert len(found["steps"]) == n
        last = found["steps"][-1]
        ends = [n * last["estimate"], n * last["share"]]
        assert ends == pytest.approx([estimate, found["actual"]], abs=1e-9)


# The two probabilities of unary encoding.

TWO = "two-probabilities"


def test_cost_and_error_of_p_and_q_in_the_page_are_those_of_dpnotes(open_figure):
    page = open_figure(TWO)
    grid = itertools.product(steps(page, TWO, "p")[::7], steps(page, TWO, "q")[::6])
    for p, q in grid:
        found = measure(page, TWO, {"p": p, "q": q})
        epsilon = ue.epsilon(p, q)
        assert found["epsilon"] == pytest.approx(epsilon, rel=1e-9)
        pairs = {"own": (p, q)} | {name: ue.probabilities(epsilon, name) for name in ue.SCHEMES}
        for name, pair in pairs.items():
            sd = np.sqrt(ue.variance([0], *pair, n=10_000)[0])
            assert found[name]["sd"] == pytest.approx(sd, rel=1e-8)
        assert found["optimized"]["sd"] <= found["own"]["sd"] * (1 + 1e-12)


# A price drawn by the exponential mechanism, with one fan who can be moved.

PRICE = "best-price"
PRICES = np.arange(1, 31) / 2


def revenue_of(fans, limit):
    """Return the revenue of each price, when one of those who pay up to 8 has this limit."""
    limits = np.repeat([4.0, 8.0, 12.0], [fans * 2 // 5, fans * 7 // 15, fans * 2 // 15])
    limits[np.searchsorted(limits, 8.0)] = limit
    return PRICES * (limits[:, None] >= PRICES).sum(axis=0)


def test_the_prices_in_the_page_are_drawn_as_dpnotes_draws_them(open_figure):
    page = open_figure(PRICE)
    for fans, limit, epsilon in itertools.product((30, 300, 3000), (0, 8, 15), (0.01, 0.1, 1, 10)):
        measured = measure(page, PRICE, {"epsilon": epsilon, "fans": fans, "limit": limit})
        pair = [revenue_of(fans, limit), revenue_of(fans, 8)]
        chances = exponential_mechanism.output_distribution(pair, epsilon, sensitivity=15)
        np.testing.assert_allclose(measured["chances"], chances[0], rtol=1e-9, atol=1e-290)
        np.testing.assert_allclose(measured["before"], chances[1], rtol=1e-9, atol=1e-290)
        assert measured["share"] == pytest.approx(chances[0] @ pair[0] / pair[0].max(), rel=1e-9)
        # Without the floor of the package, which no reader would see.
        logs = special.log_softmax(epsilon * np.array(pair) / 30, axis=1)
        cost = np.abs(logs[0] - logs[1]).max()
        assert measured["largest"] == pytest.approx(cost, rel=1e-9, abs=1e-9)


# What private labels are good for.

BINS = 50


def log_failure(n, epsilon):
    return special.logsumexp(log_score_pmf(n, 2 * epsilon)[: (n + 1) // 2])


def log_at_most(part, positives, negatives, epsilon):
    """Return ln Pr[(a / positives + b / negatives) / 2 <= part / BINS], in whole numbers."""
    a = np.arange(positives + 1)
    room = negatives * (2 * part * positives - BINS * a) // (BINS * positives)
    log_cdf = np.logaddexp.accumulate(log_score_pmf(negatives, 2 * epsilon))
    possible = room >= 0
    return special.logsumexp(
        (log_score_pmf(positives, 2 * epsilon) + log_cdf[np.clip(room, 0, negatives)])[possible]
    )


def test_the_balanced_accuracy_in_the_page_is_that_of_two_binomials(open_figure):
    page = open_figure("kept-labels")
    grid = itertools.product(((10, 0.01), (11, 0.5), (1000, 0.3), (100_000, 0.02)), (0.02, 0.1, 4))
    grid = [(epsilon, n, share) for (n, share), epsilon in grid]
    grid += [(epsilon, 1000, 0.5) for epsilon in steps(page, "kept-labels", "epsilon")]
    for epsilon, n, share in grid:
        measured = measure(page, "kept-labels", {"epsilon": epsilon, "n": n, "share": share})
        positives, keep = max(1, int(share * n + 0.5)), keep_probability(epsilon)
        parts = [
            np.exp(log_at_most(part, positives, n - positives, epsilon)) for part in range(BINS + 1)
        ]
        np.testing.assert_allclose(measured["bins"], np.diff(np.r_[0, parts[1:]]), atol=1e-6)
        names = ("positives", "keep", "deviation", "logFailure", "logTooFew")
        expected = [
            positives,
            keep,
            np.sqrt(keep * (1 - keep) * (1 / positives + 1 / (n - positives))) / 2,
            log_at_most(BINS // 2, positives, n - positives, epsilon),
            log_failure(n, epsilon),
        ]
        assert [measured[name] for name in names] == pytest.approx(expected, rel=1e-6)


# Lines that false labels tilt, and lines that they do not.

FOUR = np.array([[6, 0], [1, 3], [1, -1], [1, -1]])
LOSSES_OF_LINES = {
    "logistic": lambda z: np.logaddexp(0, -z),
    "sigmoid": lambda z: special.expit(-z),
}


def risk_of_lines(loss, turns, p, length):
    """Return the reported risk of weights of one length, for directions in degrees."""
    z = FOUR @ (length * np.stack([np.cos(np.radians(turns)), np.sin(np.radians(turns))]))
    return (p * loss(z) + (1 - p) * loss(-z)).mean(axis=0)


def test_the_lines_have_the_least_reported_risk_and_only_the_logistic_one_turns(open_figure):
    page = open_figure("tilted-line")
    turns, sigmoid = np.linspace(-90, 90, 7_201), set()
    for p, length in itertools.product(steps(page, "tilted-line", "p")[::6], (0.05, 0.5, 2, 4)):
        measured = measure(page, "tilted-line", {"p": p, "length": length})
        for name, loss in LOSSES_OF_LINES.items():
            turn, lost = measured[name]["turn"], measured[name]["lost"]
            [found] = risk_of_lines(loss, np.array([turn]), p, length)
            least = risk_of_lines(loss, turns, p, length).min()
            assert found == pytest.approx(least, abs=1e-6)
            weights = np.array([np.cos(np.radians(turn)), np.sin(np.radians(turn))])
            assert lost == (FOUR @ weights <= 0).sum()
        sigmoid.add((length, measured["sigmoid"]["turn"], measured["sigmoid"]["lost"]))
    assert {lost for *_, lost in sigmoid} == {0}
    assert len(sigmoid) == 4
    false = measure(page, "tilted-line", {"p": 0.62, "length": 2})
    assert false["logistic"]["lost"] == 2


# The expected loss under noise.


def expected_loss(weight, spread, scale):
    """Return the loss of a weight under Laplace noise, averaged over data around 1."""
    # The loss is smooth in z but not analytic at 0, where Gauss points would lose digits.
    steps = np.linspace(-8.5, 8.5, 1001)
    masses, z = np.exp(-(steps**2) / 2), 1 + spread * steps
    return float(masses @ expected_logistic_loss(weight * z, scale * np.abs(z)) / masses.sum())


def test_every_step_of_b_gives_the_expected_loss_of_dpnotes_and_its_lowest_point(open_figure):
    page = open_figure("expected-loss")
    for b, sigma in itertools.product(np.arange(0, 31, 6) / 10, (0.7, 1.5)):
        measured = measure(page, "expected-loss", {"b": b, "sigma": sigma, "w": 3.1})
        for point in [*measured["after"][::10], measured["own"] | {"weight": 3.1}]:
            exact = expected_loss(point["weight"], sigma, b)
            assert point["loss"] == pytest.approx(exact, abs=1e-6)
        best = optimize.minimize_scalar(
            expected_loss, bounds=(0, 40), args=(sigma, b), method="bounded"
        )
        assert measured["best"]["loss"] == pytest.approx(best.fun, abs=1e-6)
        assert measured["best"]["weight"] == pytest.approx(best.x, abs=1e-2)


# Votes, noise on them, and what the answers cost.

VOTES = "noisy-votes"
DELTA = 1e-5
MANY_VOTES = [(250, 0), (200, 100), (150, 50), (100, 70), (90, 55), (84, 50), (50, 0), (125, 100)]


def mechanism(kind, scale):
    """Return the mechanism of the package that the figure shows."""
    kinds = {"Gumbel": pate.GumbelMax, "Gaussian": pate.GNMax}
    return pate.LNMax(1 / scale) if kind == "Laplace" else kinds[kind](scale)


@functools.cache
def cost_of(kind, scale, queries):
    return float(mechanism(kind, scale).cost(queries, DELTA))


def secret_cost_of(votes, kind, scale, queries, moments):
    """Return epsilon at these votes: what whole numbers of queries add up to, or less."""
    orders = moments + 1
    rdp = {
        "Laplace": lambda: pate.lnmax_rdp(votes, 1 / scale, orders),
        "Gaussian": lambda: pate.gnmax_rdp(votes, scale, orders),
        "Gumbel": lambda: costs.gumbel_rdp(votes, scale, orders),
    }[kind]()
    secret = float(epsilon_from_rdp(queries * rdp, orders, DELTA))
    return min(secret, cost_of(kind, scale, queries))


@pytest.mark.parametrize("kind", ["Laplace", "Gumbel", "Gaussian"])
def test_labels_and_costs_in_the_page_are_those_of_dpnotes(open_figure, kind):
    page = open_figure(VOTES)
    moments = np.array(page.evaluate("dpnotes.figures['noisy-votes'].moments"))
    grid = list(itertools.product(MANY_VOTES, (2, 10, 20, 40, 200), (1, 100, 1000)))
    # The table of costs has four digits for each of its scales and numbers of queries.
    scales, queries = (steps(page, VOTES, name) for name in ("scale", "queries"))
    grid += [((150, 50), b, queries[n % len(queries)]) for n, b in enumerate(scales)]
    for (first, share), scale, asked in grid:
        values = {"first": first, "share": share, "kind": kind, "scale": scale, "queries": asked}
        measured = measure(page, VOTES, values)
        votes = measured["votes"]
        chances = mechanism(kind, scale).output_distribution(votes)
        np.testing.assert_allclose(measured["chances"], chances, atol=1e-9)
        assert measured["cost"] == pytest.approx(cost_of(kind, scale, asked), rel=6e-4)
        here = secret_cost_of(votes, kind, scale, asked, moments)
        assert measured["costAtVotes"] == pytest.approx(here, rel=6e-4, abs=1e-9)


def test_the_numbers_to_read_are_those_of_dpnotes_rounded(open_figure):
    page = open_figure(VOTES)
    for kind in ("Laplace", "Gaussian"):
        figure(page).get_by_label("kind of noise").select_option(kind)
        chance = f"{100 * mechanism(kind, 20).output_distribution([150, 50, 25, 25])[0]:.2f} %"
        assert list(facts(page).values())[:3] == ["100", chance, f"{cost_of(kind, 20, 100):.2f}"]
        label = picture(page).get_attribute("aria-label")
        assert label.endswith("Most votes are for A.")
        assert f"A {chance}, B" in label


# Records on a line of scores, their ROC curve and the noise on its area.

PRIVATE_AUC = "private-auc"
# Ties within and across the classes, a perfect ranking, and classes of one and of no record.
RANKINGS = [
    ([30, 44, 62, 84, 94], [8, 22, 36, 50, 76]),
    ([50, 50, 50], [50, 50, 20, 20, 20, 70, 50]),
    ([100, 99], [0, 1, 2, 3, 4, 5, 6, 7]),
    ([0], [100, 100, 3, 4, 5, 6, 7, 8, 9]),
    ([], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
]


def dot(page, place):
    return figure(page).get_by_role("slider", name=f"record {place},")


@pytest.mark.parametrize(("positives", "negatives"), RANKINGS)
def test_curve_area_and_noise_in_the_page_are_those_of_dpnotes(open_figure, positives, negatives):
    page = open_figure(PRIVATE_AUC)
    records = [{"score": score, "positive": True} for score in positives]
    records += [{"score": score, "positive": False} for score in negatives]
    labels, scores = [1] * len(positives) + [0] * len(negatives), positives + negatives
    area = private_auc.auc(labels, scores) if positives else 0.5
    for copies, epsilon in itertools.product((1, 10, 1000), (0.1, 1, 10)):
        values = {"records": records, "copies": copies, "epsilon": epsilon}
        measured = measure(page, PRIVATE_AUC, values)
        n, m = copies * len(positives), copies * len(negatives)
        found = [measured[part] for part in ("n", "m", "auc", "local")]
        local = private_auc.auc_local_sensitivity(n, m)
        assert found == pytest.approx([n, m, area, local], rel=1e-12)
        curve = [[point[part] for point in measured["curve"]] for part in "yx"]
        assert np.trapezoid(*curve) == pytest.approx(area if positives else 0, abs=1e-12)
        best = private_auc.best_beta(epsilon, (n + m) // 4)
        ways = [("exact", "exact", best), ("published", "nissim", epsilon / 6)]
        for name, calibration, beta in ways:
            smooth = private_auc.auc_smooth_sensitivity(n, m, beta)
            scale = smooth * private_auc.cauchy_scale(epsilon, beta, calibration=calibration)
            found = [measured[name][part] for part in ("beta", "smooth", "scale")]
            assert found == pytest.approx([beta, smooth, scale], rel=1e-9)
            quartiles = stats.cauchy.ppf([0.25, 0.75], measured["auc"], scale)
            interval = measured[name]["interval"]
            np.testing.assert_allclose(interval, np.clip(quartiles, 0, 1), atol=1e-9)


def test_keys_move_a_dot_as_they_move_a_slider_and_no_further_than_its_line(open_figure):
    page = open_figure(PRIVATE_AUC)
    steps = [("ArrowRight", 31), ("ArrowUp", 32), ("ArrowLeft", 31), ("ArrowDown", 30)]
    steps += [("PageUp", 40), ("PageDown", 30), ("End", 100), ("PageUp", 100), ("Home", 0)]
    for key, score in [*steps, ("ArrowLeft", 0)]:
        dot(page, 1).press(key)
        assert dot(page, 1).get_attribute("aria-valuenow") == str(score)
        assert dot(page, 1).get_attribute("aria-valuetext") == f"score {score / 100:.2f}"


@pytest.mark.full
def test_the_mouse_drags_a_dot_does_not_change_its_class_and_lets_it_go(open_figure):
    page = open_figure(PRIVATE_AUC)
    area = facts(page)["AUC"]
    dot(page, 1).scroll_into_view_if_needed()
    box = dot(page, 1).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 1000, y, steps=5)
    page.mouse.up()
    page.mouse.move(x, y)
    assert facts(page)["AUC"] != area
    assert dot(page, 1).get_attribute("aria-valuenow") == "100"
    assert dot(page, 1).get_attribute("aria-label") == "record 1, positive"


def test_a_class_that_goes_missing_leaves_a_plain_picture(kept, open_figure):
    page = open_figure(PRIVATE_AUC)
    for place in range(1, 6):
        dot(page, place).press(" ")
    assert facts(page)["AUC"] == "0.500"
    assert facts(page)["local sensitivity, 1 / min(n, m)"] == "1"
    assert picture(page).get_attribute("aria-label").startswith("No ROC curve")
    assert not re.search("NaN|Infinity|undef", drawn(page))
    assert kept(FIGURES[PRIVATE_AUC]).complaints == []
