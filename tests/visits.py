"""The built site in a real browser: what the browser tests share."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

SITE = Path(os.environ.get("DPNOTES_SITE", Path(__file__).parents[1] / "_build" / "html"))
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("book/**/*.html"))
PHONE = {"width": 375, "height": 812}
LAPTOP = {"width": 1280, "height": 900}

# Chromium itself asks for updates and the like; none of that may pass for a page's own request.
OFF = ["gpu", "quic", "background-networking", "component-update", "sync"]
OPTIONS = ["--no-sandbox", *(f"--disable-{part}" for part in OFF)]


def absent(reason):
    """Skip for a reason, or fail where the browser tests were promised to run."""
    required = os.environ.get("DPNOTES_BROWSER") == "required"
    (pytest.fail if required else pytest.skip)(reason)


FIGURES_ARE_DRAWN = (
    "[...document.querySelectorAll('.interactive')].every(box => box.querySelector('svg'))"
)


def wait_until(page, condition):
    """Wait for a condition; Playwright's own way evaluates text, which the pages forbid."""
    page.evaluate(
        f"""async () => {{
          while (!({condition})) await new Promise((resolve) => setTimeout(resolve, 20));
        }}"""
    )


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files and keep silent about it."""

    def log_message(self, *arguments):
        pass


class Visit:
    """A page in a fresh browser context, with all that it asked for and complained about."""

    def __init__(self, browser, site, viewport=LAPTOP, scheme="light", scripts=True):
        self.site = site
        self.context = browser.new_context(
            viewport=viewport, color_scheme=scheme, java_script_enabled=scripts
        )
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        # A file that is not there is an error on the console, too.
        self.page.on("console", lambda said: said.type == "error" and self._note(said.text))
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("requestfailed", lambda request: self._note(request.url))

    def _note(self, complaint):
        self.complaints.append(complaint)

    def go(self, path):
        self.page.goto(self.site + path, wait_until="load")
        # MathJax promises to be done; a page without mathematics has none to wait for.
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        wait_until(self.page, FIGURES_ARE_DRAWN)
        self.settle()
        return self.page

    def dress(self, scheme="light", viewport=LAPTOP):
        """Show the page that is open in another scheme and size."""
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(
            """scheme => {
              const { dataset } = document.documentElement;
              [dataset.mode, dataset.theme] = ["auto", scheme];
            }""",
            scheme,
        )
        self.settle()

    def settle(self):
        """End what moves: a page that fades has, half way, no contrast to judge.

        Waiting for the end would hang, once in a hundred visits, on a busy machine that draws no
        frame of a page. What would move for ever is stopped.
        """
        self.page.evaluate(
            """() => {
              for (const moving of document.getAnimations()) {
                if (moving.effect.getComputedTiming().endTime === Infinity) moving.cancel();
                else moving.finish();
              }
            }"""
        )

    def abroad(self):
        """Return the requests that left the site."""
        return [url for url in self.requests if not url.startswith((self.site, "data:", "blob:"))]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


# Text of one colour, size and weight on one background has one contrast, and a page of code has
# ten thousand words of a few dozen kinds: the first of each kind is measured.
MARK_KINDS = """() => {
  const seen = new Set(), plain = new Set(["rgba(0, 0, 0, 0)", "none", "1"]);
  for (const node of document.body.querySelectorAll("*")) {
    delete node.dataset.contrast;
    if (![...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim())) continue;
    const { color, fontSize, fontWeight, textShadow, visibility } = getComputedStyle(node);
    const kind = [node.namespaceURI, color, fontSize, fontWeight, textShadow, visibility];
    if (node.getClientRects().length === 0) continue;
    for (let up = node; up; up = up.parentElement) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(up);
      for (const part of [backgroundColor, backgroundImage, opacity, filter]) {
        if (!plain.has(part)) kind.push(part);
      }
    }
    const key = kind.join(";");
    if (!seen.has(key)) node.dataset.contrast = "";
    seen.add(key);
  }
}"""
KINDS = {"rules": [{"id": "color-contrast", "selector": "[data-contrast]"}]}


def serious_violations(page, inside=None, only=None):
    """Return what axe finds serious or critical, as (rule, target, html)."""
    from axe_playwright_python.sync_playwright import Axe

    # With preload axe would ask for style sheets and sounds itself; no serious rule needs them.
    options = {"resultTypes": ["violations"], "preload": False}
    options |= {"runOnly": only} if only else {}
    page.evaluate(Axe().axe_script)
    page.evaluate(MARK_KINDS)
    page.evaluate("kinds => axe.configure(kinds)", KINDS)
    found = page.evaluate(
        "([inside, options]) => axe.run(inside ?? document, options)", [inside, options]
    )
    return [
        (rule["id"], node["target"], node["html"][:120])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.fixture(scope="session")
def site():
    """Serve the built site on the loopback interface and give its address."""
    if not PAGES:
        absent("the book is not built: run `make book` first")
    handler = functools.partial(QuietHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        with playwright.chromium.launch(executable_path=path, args=OPTIONS) as chromium:
            yield chromium


@pytest.fixture(scope="session")
def visit(browser, site):
    return functools.partial(Visit, browser, site)


@pytest.fixture(scope="session")
def kept(visit):
    """Keep the last four pages open: one with mathematics takes seconds to load."""
    visits = {}

    def opened(path):
        visits[path] = visits.pop(path, None) or visit()
        if not visits[path].requests:
            visits[path].go(path)
        if len(visits) > 4:
            visits.pop(next(iter(visits))).context.close()
        return visits[path]

    yield opened
    for visitor in visits.values():
        visitor.context.close()
