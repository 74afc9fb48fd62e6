"""The built site in a real browser, with no network behind it.

Needs the site in _build/html (``make book``) and Debian's chromium with playwright
(``make browser``); skipped, with the reason, where one of them is missing.
"""

import pytest
from visits import PAGES, PHONE, serious_violations

pytestmark = pytest.mark.browser

CHAPTER = "book/randomized_response.html"
COLOURS = ["color-contrast", "link-in-text-block"]


# In this scope the tests of one page follow each other, and visit it once.
every_page = pytest.mark.parametrize("path", PAGES, scope="session")
# To judge a page takes seconds. Pages of one folder are alike: CI judges the first of each, and
# every chapter.
FIRST = {path.rpartition("/")[0]: path for path in reversed(PAGES)}.values()
judged = [
    path if path.count("/") == 1 or path in FIRST else pytest.param(path, marks=pytest.mark.full)
    for path in PAGES
]


@every_page
def test_a_page_loads_without_an_error_and_without_leaving_the_site(kept, path):
    visitor = kept(path)
    assert visitor.page.locator("h1").count() >= 1
    # A breach of the content security policy is an error, too.
    assert visitor.complaints == []
    assert visitor.abroad() == []


@every_page
def test_mathematics_is_typeset(kept, path):
    page = kept(path).page
    written = page.locator(".bd-article .math").count()
    assert page.locator(".bd-article .math mjx-container").count() >= written
    assert page.locator("mjx-merror").count() == 0
    assert path != CHAPTER or page.locator("mjx-container").count() > 10


# What a reader can't scroll to: wider than its box, and the box hides what is too wide. A formula
# has invisible words beside it, so what is seen of it is compared with the edge of the page.
CLIPPED = """() => {
  const article = document.querySelector(".bd-article"), found = [];
  const edge = article.getBoundingClientRect().right + 2;
  for (const node of article.querySelectorAll("*")) {
    if (node.closest(".math, svg, .interactive, details:not([open])")) continue;
    const { overflowX, display } = getComputedStyle(node);
    const cut = node.scrollWidth > node.clientWidth + 2 && overflowX === "hidden";
    if (!cut || display === "inline" || node.clientWidth === 0) continue;
    found.push(node.outerHTML.slice(0, 90));
  }
  for (const formula of article.querySelectorAll("span.math mjx-math")) {
    if (formula.getBoundingClientRect().right > edge) found.push(formula.parentElement.innerText);
  }
  return found;
}"""


@every_page
def test_a_page_fits_a_phone_and_nothing_is_cut_off(kept, path):
    visitor = kept(path)
    visitor.dress(viewport=PHONE)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert visitor.page.evaluate(CLIPPED) == []


@pytest.mark.parametrize("path", judged, scope="session")
def test_axe_finds_no_serious_accessibility_violation_in_the_light_and_in_the_dark(kept, path):
    visitor = kept(path)
    visitor.dress()
    assert serious_violations(visitor.page) == []
    visitor.dress(scheme="dark")
    # The page is the one that was judged in the light: only its colours are others.
    assert serious_violations(visitor.page, only=COLOURS) == []


def test_axe_would_notice_a_picture_without_a_text_and_words_too_pale(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.locator(".cell_output img").first.evaluate("node => node.removeAttribute('alt')")
        words = page.locator("main p").filter(visible=True).last
        words.evaluate("node => node.style.setProperty('color', '#bbb', 'important')")
        rules = {rule for rule, *_ in serious_violations(page, "main")}
        assert {"image-alt", "color-contrast"} <= rules


@pytest.mark.parametrize(
    "planted",
    [
        "<script>window.ran = true</script>",
        "<img src='gone.png' onerror='window.ran = true'>",
        "<script src='data:text/javascript,window.ran = true'></script>",
    ],
)
def test_a_page_runs_no_script_that_was_not_in_it_when_it_was_built(visit, planted):
    with visit() as visitor:
        page = visitor.page
        page.route("**/notation.html", lambda route: _with(planted, route))
        visitor.go("book/notation.html")
        assert any("Content Security Policy" in text for text in visitor.complaints)
        assert not page.evaluate("window.ran")


def _with(planted, route):
    response = route.fetch()
    route.fulfill(response=response, body=response.text().replace("</body>", f"{planted}</body>"))


def test_the_buttons_of_the_theme_still_act(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.evaluate(
            """() => {
              window.called = [];
              window.print = () => window.called.push("print");
              window.toggleFullScreen = () => window.called.push("full screen");
            }"""
        )
        page.evaluate("document.querySelectorAll('[onclick]').forEach(node => node.click())")
        assert set(page.evaluate("window.called")) == {"full screen", "print"}


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("randomized response", "randomized_response"),
        ("composition", "foundations"),
        ("report noisy max", "exponential_mechanism"),
        ("DP-SGD", "noisy_gradient_descent"),
    ],
)
def test_a_search_finds_the_chapter_first_and_shows_words(visit, words, first):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.keyboard.press("Control+k")
        page.keyboard.type(words)
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results ul.search li a")
        page.wait_for_selector("#search-results p.search-summary:has-text('finished')")
        link = page.locator("#search-results ul.search li a").first.get_attribute("href")
        assert link.split("?")[0].split("#")[0].endswith(f"{first}.html")
        # The words are fetched from each page that was found, after the search itself.
        page.wait_for_selector("#search-results p.context")
        shown = page.locator("#search-results p.context").all_inner_texts()
        assert not [text for text in shown if "\\" in text or "$" in text]


def test_a_proof_opens_on_demand_and_says_so_once(visit):
    with visit() as visitor:
        page = visitor.go("book/accounting.html")
        proof = page.locator(".proof.dropdown").first
        words = proof.locator("p").nth(1)
        assert not words.is_visible()
        proof.locator("button").click()
        assert words.is_visible()
        assert proof.inner_text().count("Proof") == 1


def test_on_paper_a_page_is_light_and_what_opens_stands_open_but_code(visit):
    with visit(scheme="dark") as visitor:
        page = visitor.go("book/accounting.html")
        proof = page.locator(".proof.dropdown p").nth(1)
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert proof.is_visible()
        assert page.locator(".exercise .dropdown p").nth(1).is_visible()
        assert not page.locator("details.hide").first.is_visible()
        page.emulate_media(media="screen")
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert not proof.is_visible()
