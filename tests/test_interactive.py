"""The interactive figures: their numbers are those of dpnotes, and everybody can use them."""

import re

import numpy as np
import pytest
from scipy import optimize, special, stats
from visits import PHONE, SITE, absent, serious_violations

from dpnotes.elun import expected_logistic_loss
from dpnotes.exponential_mechanism import log_score_pmf, success_probability
from dpnotes.randomized_response import keep_probability

pytestmark = pytest.mark.browser

CHAPTER = "book/exponential_mechanism.html"
EPSILON, LABELS = "ε, the parameter of the mechanism", "n, the number of labels"
MEASURE = """([epsilon, n]) => {
  const { logPmf, ...numbers } = dpnotes.figures["kept-labels"].measure({ epsilon, n });
  return { ...numbers, logPmf: Array.from(logPmf) };
}"""


@pytest.fixture
def open_figure(visit):
    """Open the chapter and wait for its figure."""
    if not (SITE / CHAPTER).exists():
        absent(f"{CHAPTER} is not in the built site")

    def opened(visitor):
        page = visitor.go(CHAPTER)
        page.locator(".interactive svg[role=img]").wait_for()
        return page

    return opened


def figure(page):
    return page.locator(".interactive")


def slider(page, label):
    return figure(page).get_by_label(label)


def facts(page):
    names = figure(page).locator("dt").all_inner_texts()
    return dict(zip(names, figure(page).locator("dd").all_inner_texts(), strict=True))


def steps(page, name):
    return page.evaluate(
        "name => dpnotes.figures['kept-labels'].controls.find((c) => c.name === name).steps", name
    )


def log_failure(n, epsilon):
    return special.logsumexp(log_score_pmf(n, epsilon)[: (n + 1) // 2])


def test_the_law_in_the_page_is_that_of_dpnotes_and_a_binomial(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        for n in (10, 11, 99, 1000, 100_000):
            for epsilon in (0.05, 0.1, 1.0, 3.0, 8.0):
                measured = page.evaluate(MEASURE, [epsilon, n])
                pmf = np.exp(measured["logPmf"])
                np.testing.assert_allclose(pmf, np.exp(log_score_pmf(n, epsilon)), atol=1e-6)
                keep = keep_probability(epsilon / 2)
                np.testing.assert_allclose(pmf, stats.binom.pmf(range(n + 1), n, keep), atol=1e-6)
                # Absolute agreement would be empty where every probability is small.
                assert measured["logPmf"][n] == pytest.approx(n * np.log(keep), rel=1e-6)


def test_every_step_of_a_slider_gives_the_numbers_of_dpnotes(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        grid = [(epsilon, 1000) for epsilon in steps(page, "epsilon")]
        grid += [(0.1, n) for n in steps(page, "n") if n <= 10_000]
        for epsilon, n in grid:
            measured = page.evaluate(MEASURE, [epsilon, n])
            keep = keep_probability(epsilon / 2)
            assert measured["keep"] == pytest.approx(keep, abs=1e-6)
            assert measured["mean"] == pytest.approx(n * keep, rel=1e-6)
            assert measured["success"] == pytest.approx(success_probability(n, epsilon), abs=1e-6)
            assert measured["logFailure"] == pytest.approx(log_failure(n, epsilon), rel=1e-6)


def test_the_sliders_span_what_the_chapter_speaks_of(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        for name, low, high in (("epsilon", 0.05, 8), ("n", 10, 100_000)):
            values = steps(page, name)
            assert (values[0], values[-1]) == (low, high)
            assert values == sorted(set(values))


def test_the_text_says_what_dpnotes_computes(visit, open_figure):
    with visit() as visitor:
        shown = facts(open_figure(visitor))
        assert list(shown.values()) == [
            "0.05",
            f"{keep_probability(0.05):.2%}".replace("%", " %"),
            f"{success_probability(1000, 0.1):.2%}".replace("%", " %"),
            f"{1000 * keep_probability(0.05):.1f} of 1,000",
        ]


def test_arrow_keys_move_a_slider_and_change_picture_and_text(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        picture = page.locator(".interactive svg[role=img]")
        for label in (EPSILON, LABELS):
            before = facts(page), picture.get_attribute("aria-label"), picture.inner_html()
            value = slider(page, label).get_attribute("aria-valuetext")
            slider(page, label).focus()
            page.keyboard.press("ArrowRight")
            after = facts(page), picture.get_attribute("aria-label"), picture.inner_html()
            assert all(old != new for old, new in zip(before, after, strict=True))
            assert slider(page, label).get_attribute("aria-valuetext") != value
        page.keyboard.press("Home")
        assert facts(page)["labels kept on average"].endswith(" of 10")


def test_the_tab_key_reaches_both_sliders_in_order(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        slider(page, EPSILON).focus()
        page.keyboard.press("Tab")
        assert slider(page, LABELS).evaluate("node => node === document.activeElement")


@pytest.mark.parametrize("key", ["Home", "End"])
def test_a_success_that_is_nearly_certain_is_not_rounded_to_certainty(visit, open_figure, key):
    with visit() as visitor:
        page = open_figure(visitor)
        slider(page, EPSILON).press("End")
        slider(page, LABELS).press(key)
        text = facts(page)["success probability, Pr[q ≥ n/2]"]
        lead, power = re.fullmatch(r"1 − (\d\.\d) × 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text).groups()
        exponent = int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
        n = {"Home": 10, "End": 100_000}[key]
        expected = log_failure(n, 8.0) / np.log(10)
        assert np.log10(float(lead)) - exponent == pytest.approx(expected, abs=0.025)


def test_there_is_a_picture_in_plain_numbers_at_every_corner_of_the_sliders(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        for epsilon_key in ("Home", "End"):
            for labels_key in ("Home", "End"):
                slider(page, EPSILON).press(epsilon_key)
                slider(page, LABELS).press(labels_key)
                shapes = page.locator('.interactive svg [fill^="var(--colour"]')
                assert shapes.count() >= 1
                assert "NaN" not in page.locator(".interactive svg[role=img]").inner_html()
                written = page.locator(".interactive svg text").all_text_contents()
                assert not [text for text in written if re.search(r"\de[+-]?\d", text)]
        assert visitor.complaints == []


def test_it_loads_without_an_error_and_without_leaving_the_site(visit, open_figure):
    with visit() as visitor:
        open_figure(visitor)
        assert visitor.complaints == []
        assert visitor.abroad() == []
        assert any(url.endswith("plot.umd.min.js") for url in visitor.requests)


def test_a_page_without_a_figure_loads_no_library(visit):
    with visit() as visitor:
        visitor.go("book/randomized_response.html")
        loaded = [url for url in visitor.requests if "/_static/interactive/" in url]
        assert {re.sub(r".*/|\?.*", "", url) for url in loaded} == {"loader.js", "interactive.css"}


def test_it_works_from_a_disk_without_a_server(visit, open_figure):
    with visit() as visitor:
        visitor.site = f"{SITE.resolve().as_uri()}/"
        assert len(facts(open_figure(visitor))) == 4
        assert visitor.abroad() == []


def test_without_scripts_it_leaves_no_trace(visit, open_figure):
    with visit(scripts=False) as visitor:
        visitor.page.goto(visitor.site + CHAPTER)
        assert figure(visitor.page).count() == 1
        assert not figure(visitor.page).is_visible()


def test_it_fits_a_phone_and_a_phone_that_is_turned(visit, open_figure):
    with visit(viewport=PHONE) as visitor:
        page = open_figure(visitor)
        picture = page.locator(".interactive svg[role=img]")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        narrow = picture.bounding_box()["width"]
        assert narrow <= figure(page).bounding_box()["width"]
        page.set_viewport_size({"width": PHONE["height"], "height": PHONE["width"]})
        page.wait_for_function(
            f"document.querySelector('.interactive svg[role=img]').clientWidth > {narrow}"
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation_in_it(visit, open_figure, scheme):
    with visit(scheme=scheme) as visitor:
        assert serious_violations(open_figure(visitor)) == []


def test_its_colours_follow_the_theme(visit, open_figure):
    with visit() as visitor:
        page = open_figure(visitor)
        colour = "() => getComputedStyle(document.querySelector('.interactive .swatch')).background"
        light = page.evaluate(colour)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert page.evaluate(colour) != light


# The figure of the chapter on ELUN: what all figures share is tested above.


@pytest.fixture
def open_expected_loss(visit):
    """Open the chapter on ELUN and wait for its figure."""
    if not (SITE / "book/elun.html").exists():
        absent("book/elun.html is not in the built site")

    def opened(visitor):
        page = visitor.go("book/elun.html")
        page.locator(".interactive svg[role=img]").wait_for()
        return page

    return opened


def expected_loss(weight, spread, scale):
    """Return the loss of a weight under Laplace noise, averaged over data around 1."""
    # The loss is smooth in z but not analytic at 0, where Gauss points would lose digits.
    steps = np.linspace(-8.5, 8.5, 1001)
    masses, z = np.exp(-(steps**2) / 2), 1 + spread * steps
    return float(masses @ expected_logistic_loss(weight * z, scale * np.abs(z)) / masses.sum())


def measured_loss(page, b, sigma):
    return page.evaluate(
        "(values) => dpnotes.figures['expected-loss'].measure(values)", {"b": b, "sigma": sigma}
    )


def test_every_step_of_b_gives_the_expected_loss_of_dpnotes_and_its_lowest_point(
    visit, open_expected_loss
):
    with visit() as visitor:
        page = open_expected_loss(visitor)
        for b in np.arange(0, 31, 3) / 10:
            for sigma in (0.7, 1.0, 1.5):
                measured = measured_loss(page, b, sigma)
                for point in measured["after"][::10]:
                    exact = expected_loss(point["weight"], sigma, b)
                    assert point["loss"] == pytest.approx(exact, abs=1e-6)
                best = optimize.minimize_scalar(
                    expected_loss, bounds=(0, 40), args=(sigma, b), method="bounded"
                )
                assert measured["best"]["loss"] == pytest.approx(best.fun, abs=1e-6)
                assert measured["best"]["weight"] == pytest.approx(best.x, abs=1e-2)
                stay = expected_loss(2 / sigma**2, sigma, b)
                assert measured["stay"] == pytest.approx(stay, abs=1e-6)


def test_more_noise_asks_for_a_larger_weight_and_keys_move_picture_and_text(
    visit, open_expected_loss
):
    with visit() as visitor:
        page = open_expected_loss(visitor)
        weights = [measured_loss(page, b, 1.0)["best"]["weight"] for b in (0, 0.5, 1, 2, 3)]
        assert weights == sorted(weights)
        assert weights[0] == pytest.approx(2, abs=1e-3)
        picture = page.locator(".interactive svg[role=img]")
        for label in ("b, the scale of the noise on the weight", "σ, the spread of the data"):
            before = facts(page), picture.get_attribute("aria-label"), picture.inner_html()
            slider(page, label).press("ArrowRight")
            after = facts(page), picture.get_attribute("aria-label"), picture.inner_html()
            assert all(old != new for old, new in zip(before, after, strict=True))


def test_the_expected_loss_has_a_plain_picture_at_every_corner(visit, open_expected_loss):
    with visit(viewport=PHONE) as visitor:
        page = open_expected_loss(visitor)
        for noise_key in ("Home", "End"):
            for spread_key in ("Home", "End"):
                slider(page, "b, the scale of the noise on the weight").press(noise_key)
                slider(page, "σ, the spread of the data").press(spread_key)
                assert page.locator(".interactive svg circle").count() == 2
                assert "NaN" not in page.locator(".interactive svg[role=img]").inner_html()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert visitor.complaints == []
        assert visitor.abroad() == []
