"""The built site in a real browser, with no network behind it.

Needs the site in _build/html (``make book``) and Debian's chromium with playwright
(``make browser``); skipped, with the reason, where one of them is missing.
"""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(os.environ.get("DPNOTES_SITE", Path(__file__).parents[1] / "_build" / "html"))
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("book/*.html"))
CHAPTER = "book/randomized_response.html"
PHONE = {"width": 375, "height": 812}
LAPTOP = {"width": 1280, "height": 900}

# Chromium itself asks for updates and the like; none of that may pass for a page's own request.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site():
    """Serve the built site on the loopback interface and give its address."""
    if not PAGES:
        reason = "the book is not built: run `make book` first"
        required = os.environ.get("DPNOTES_BROWSER") == "required"
        (pytest.fail if required else pytest.skip)(reason)
    handler = functools.partial(QuietHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=OPTIONS
        )
        yield chromium
        chromium.close()


class Visit:
    """A page in a fresh browser context, with all that it asked for and complained about."""

    def __init__(self, browser, site, viewport=LAPTOP, scheme="light"):
        self.site = site
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.on("response", self._check)

    def _listen(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def _check(self, response):
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def go(self, path):
        self.page.goto(self.site + path, wait_until="load")
        # MathJax promises to be done; a page without mathematics has none to wait for.
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


@pytest.fixture
def visit(browser, site):
    return functools.partial(Visit, browser, site)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_without_an_error_and_without_leaving_the_site(visit, site, path):
    with visit() as visitor:
        page = visitor.go(path)
        assert page.locator("h1").count() >= 1
        assert visitor.complaints == []
        abroad = [url for url in visitor.requests if not url.startswith((site, "data:", "blob:"))]
        assert abroad == []


@pytest.mark.parametrize("path", PAGES)
def test_mathematics_is_typeset(visit, path):
    with visit() as visitor:
        page = visitor.go(path)
        written = page.locator(".bd-article .math").count()
        assert page.locator(".bd-article .math mjx-container").count() >= written
        assert page.locator("mjx-merror").count() == 0


def test_a_chapter_has_mathematics_to_typeset(visit):
    with visit() as visitor:
        assert visitor.go(CHAPTER).locator("mjx-container").count() > 10


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone(visit, path):
    with visit(viewport=PHONE) as visitor:
        page = visitor.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_no_serious_accessibility_violation(visit, path, scheme):
    from axe_playwright_python.sync_playwright import Axe

    with visit(scheme=scheme) as visitor:
        page = visitor.go(path)
        found = Axe().run(page).response["violations"]
        serious = [
            (rule["id"], node["target"], node["html"][:120])
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]
        assert serious == []


def test_axe_would_notice_a_picture_without_alternative_text(visit):
    from axe_playwright_python.sync_playwright import Axe

    with visit() as visitor:
        page = visitor.go(CHAPTER)
        page.locator(".cell_output img").first.evaluate("node => node.removeAttribute('alt')")
        found = Axe().run(page).response["violations"]
        assert "image-alt" in {rule["id"] for rule in found}


def test_search_finds_a_chapter(visit):
    with visit() as visitor:
        page = visitor.go("search.html?q=memoization")
        page.wait_for_selector("#search-results ul.search li a")
        links = page.locator("#search-results ul.search li a")
        targets = [links.nth(i).get_attribute("href") for i in range(links.count())]
        assert any(CHAPTER.split("/")[-1] in target for target in targets)


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
        page.wait_for_function(f"({background})() !== {light!r}")
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


def test_hidden_solutions_open(visit):
    with visit() as visitor:
        solution = visitor.go(CHAPTER).locator(".solution").first
        text = solution.locator("section p, .solution-content p").first
        assert not text.is_visible()
        solution.locator(".toggle-button").first.click()
        text.wait_for(state="visible")


def test_figures_are_there(visit):
    with visit() as visitor:
        page = visitor.go(CHAPTER)
        figures = page.locator(".cell_output img")
        assert figures.count() >= 5
        for i in range(figures.count()):
            figures.nth(i).scroll_into_view_if_needed()
            assert figures.nth(i).evaluate("node => node.complete && node.naturalWidth") > 300
