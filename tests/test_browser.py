"""The built site in a real browser, with no network behind it.

Needs the site in _build/html (``make book``) and Debian's chromium with playwright
(``make browser``); skipped, with the reason, where one of them is missing.
"""

import pytest
from visits import LAPTOP, PAGES, PHONE, serious_violations, wait_until

pytestmark = pytest.mark.browser

CHAPTER = "book/randomized_response.html"
COLOURS = ["color-contrast", "link-in-text-block"]


# In this scope the tests of one page follow each other, and visit it once.
every_page = pytest.mark.parametrize("path", PAGES, scope="session")


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


def test_a_chapter_has_mathematics_to_typeset(kept):
    assert kept(CHAPTER).page.locator("mjx-container").count() > 10


@every_page
def test_a_page_fits_a_phone(kept, path):
    visitor = kept(path)
    visitor.dress(viewport=PHONE)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


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
WIDE_TABLES = """() => [...document.querySelectorAll(".bd-article table")]
  .filter((table) => table.checkVisibility())
  .filter((table) => {
    let box = table.parentElement;
    while (box && getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    return box && box.scrollWidth > box.clientWidth + 2;
  })
  .map((table) => table.innerText.slice(0, 60))"""


WIDE_OUTPUTS = """() => [...document.querySelectorAll(".bd-article .cell_output pre")]
  .filter((text) => text.checkVisibility() && text.scrollWidth > text.clientWidth + 8)
  .map((text) => text.innerText)"""


@every_page
def test_nothing_is_cut_off(kept, path):
    visitor = kept(path)
    for width in (390, 1280):
        visitor.dress(viewport={"width": width, "height": 900})
        assert visitor.page.evaluate(CLIPPED) == []


@every_page
def test_no_table_needs_scrolling_on_a_laptop(kept, path):
    visitor = kept(path)
    visitor.dress()
    assert visitor.page.evaluate(WIDE_TABLES) == []


# Counted when the page has been drawn anew.
CUES = """() => new Promise((told) => requestAnimationFrame(() => requestAnimationFrame(() => told(
  [...document.querySelectorAll(".slide-cue")].filter((cue) => cue.checkVisibility()).length))))"""

# A formula's comma, and where it stands: lower than the formula, if a line begins with it.
TORN = """() => [...document.querySelectorAll(".bd-article span.math")].flatMap((formula) => {
  const after = formula.nextSibling;
  if (after?.nodeType !== Node.TEXT_NODE || !/^[,.;:!?)]/.test(after.data)) return [];
  if (!formula.checkVisibility() || formula.closest("details:not([open])")) return [];
  const range = document.createRange();
  range.setStart(after, 0);
  range.setEnd(after, 1);
  const torn = range.getBoundingClientRect().top > formula.getBoundingClientRect().bottom - 2;
  return torn ? [formula.parentElement.innerText] : [];
})"""


@every_page
def test_on_a_phone_no_line_begins_with_the_comma_after_a_formula(kept, path):
    visitor = kept(path)
    visitor.dress(viewport=PHONE)
    assert visitor.page.evaluate(TORN) == []


@every_page
def test_a_table_or_an_output_says_so_where_it_scrolls(kept, path):
    visitor = kept(path)
    for viewport in (PHONE, LAPTOP):
        visitor.dress(viewport=viewport)
        # A few pixels are the edge of the last column and no more.
        wide = visitor.page.evaluate(WIDE_TABLES.replace("+ 2", "+ 8"))
        texts = visitor.page.evaluate(WIDE_OUTPUTS)
        assert visitor.page.evaluate(CUES) == len(wide) + len(texts)
        # Only columns are worth sliding for: spaces in a row in most of the lines.
        for text in texts:
            lines = [line for line in text.splitlines() if line.strip()]
            assert sum("  " in line or line[0] == " " for line in lines) >= 2, text


@every_page
def test_axe_finds_no_serious_accessibility_violation(kept, path):
    visitor = kept(path)
    visitor.dress()
    assert serious_violations(visitor.page) == []


@every_page
def test_axe_finds_no_serious_violation_in_the_colours_of_the_dark(kept, path):
    visitor = kept(path)
    visitor.dress(scheme="dark")
    # The page is the one that was judged in the light: only its colours are others.
    assert serious_violations(visitor.page, only=COLOURS) == []


def test_axe_would_notice_a_picture_without_alternative_text(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.locator(".cell_output img").first.evaluate("node => node.removeAttribute('alt')")
        assert "image-alt" in {rule for rule, *_ in serious_violations(page, ".cell_output")}


def test_axe_would_notice_words_too_pale_wherever_they_stand(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        for place in (".highlight .k", "main p", ".toc-entry a"):
            words = page.locator(place).filter(visible=True).last
            words.evaluate("node => node.style.setProperty('color', '#bbb', 'important')")
            words.evaluate("node => node.classList.add('pale')")
        found = serious_violations(page, only=COLOURS)
        assert len([html for *_, html in found if "pale" in html]) == 3


@pytest.mark.parametrize(
    "planted",
    [
        "<script>window.ran = true</script>",
        "<img src='gone.png' onerror='window.ran = true'>",
        "<script src='data:text/javascript,window.ran = true'></script>",
    ],
)
def test_a_page_runs_no_script_that_is_not_a_file_of_the_site(visit, planted):
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
        page.evaluate("document.querySelectorAll('[data-onclick]').forEach(node => node.click())")
        assert set(page.evaluate("window.called")) == {"full screen", "print"}


def test_search_finds_a_chapter(visit):
    with visit() as visitor:
        page = visitor.go("search.html?q=memoization")
        page.wait_for_selector("#search-results ul.search li a")
        links = page.locator("#search-results ul.search li a")
        targets = [links.nth(i).get_attribute("href") for i in range(links.count())]
        assert any(CHAPTER.split("/")[-1] in target for target in targets)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("randomized response", "randomized_response"),
        ("composition", "foundations"),
        ("subsampling", "accounting"),
        ("local model", "randomized_response"),
        ("report noisy max", "exponential_mechanism"),
        ("sparse vector", "exponential_mechanism"),
        ("DP-SGD", "noisy_gradient_descent"),
        ("shuffle model", "randomized_response"),
    ],
)
def test_a_search_finds_the_chapter_first_and_shows_words(visit, words, first):
    with visit() as visitor:
        page = visitor.go(f"search.html?q={words.replace(' ', '+')}")
        page.wait_for_selector("#search-results ul.search li a")
        page.wait_for_selector("#search-results p.search-summary:has-text('finished')")
        link = page.locator("#search-results ul.search li a").first.get_attribute("href")
        assert link.split("?")[0].split("#")[0].endswith(f"{first}.html")
        assert "/api/" not in link
        # The words are fetched from each page that was found, after the search itself.
        page.wait_for_selector("#search-results p.context")
        shown = page.locator("#search-results p.context").all_inner_texts()
        assert not [text for text in shown if "\\" in text or "$" in text]


def test_the_search_field_opens_by_keyboard(visit):
    with visit() as visitor:
        page = visitor.go("book/index.html")
        page.keyboard.press("Control+k")
        page.keyboard.type("histogram")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=histogram*")


def test_the_theme_toggle_darkens_the_page(visit):
    background = "() => getComputedStyle(document.body).backgroundColor"
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        light = page.evaluate(background)
        button = page.locator(".theme-switch-button:visible").first
        for _ in range(3):
            button.click()
            if page.evaluate("document.documentElement.dataset.theme") == "dark":
                break
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        wait_until(page, f"({background})() !== {light!r}")
        figure = page.locator(".cell_output img").first
        assert "invert" in figure.evaluate("node => getComputedStyle(node).filter")


def test_a_phone_can_open_the_table_of_contents(visit):
    with visit(viewport=PHONE) as visitor:
        page = visitor.go(CHAPTER)
        entries = page.get_by_role("link", name="Bibliography")
        assert entries.filter(visible=True).count() == 0
        page.locator(".primary-toggle:visible").first.click()
        entries.filter(visible=True).first.click()
        page.wait_for_url("**/bibliography.html")


def test_an_exercise_leads_to_its_solution_and_back(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.locator(".exercise a", has_text="Solution").first.click()
        page.wait_for_url("**/solutions/randomized_response.html#*")
        place = page.url.rpartition("#")[2]
        section = page.locator(f"section#{place}")
        assert section.locator("h2").is_visible()
        section.get_by_role("link", name="The exercise").first.click()
        page.wait_for_url("**/book/randomized_response.html#rr-*")
        label = page.url.rpartition("#")[2]
        assert page.locator(f"#{label}").is_visible()


def test_a_folded_cell_opens(visit):
    with visit() as visitor:
        folded = visitor.go(CHAPTER).locator("details.hide.above-input").first
        code = folded.locator(".cell_input")
        assert not code.is_visible()
        folded.locator("summary").click()
        code.wait_for(state="visible")


def test_figures_are_there(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        figures = page.locator(".cell_output img")
        assert figures.count() >= 3
        for i in range(figures.count()):
            figures.nth(i).scroll_into_view_if_needed()
            assert figures.nth(i).evaluate("node => node.complete && node.naturalWidth") > 300


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
        hint = page.locator(".exercise .dropdown p").nth(1)
        assert not proof.is_visible()
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert proof.is_visible()
        assert hint.is_visible()
        assert not page.locator("details.hide").first.is_visible()
        page.emulate_media(media="screen")
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert not proof.is_visible()
        assert page.locator("details.hide").first.is_visible()
