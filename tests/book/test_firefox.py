"""The pages in a second browser: what they show, and what Python prints in them.

Needs the site in _build/html (``make book``) and Firefox; `make browser` installs Debian's.
Playwright drives a Firefox of its own make only, so this speaks WebDriver BiDi, which every Firefox
knows: a line of JSON for each command, and one for each answer and each event.
"""

import contextlib
import itertools
import json
import shutil
import subprocess
import time

import pytest
from test_figures import FIGURES
from test_jupyterlab import free_port
from test_try_it import DONE, HAS_ENGINE, NO_ENGINE, PLAYGROUND, PROGRAMS, source, stored
from visits import FIGURES_ARE_DRAWN, PHONE, absent

pytestmark = [pytest.mark.browser, pytest.mark.full]

SECONDS = 120  # in which an answer has to come
PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
PAGES = sorted({*FIGURES.values(), PLAYGROUND, "book/audit.html", "book/zh/index.html"})
FACTS = "[...document.querySelectorAll('.interactive dt, .interactive dd')].map(x => x.textContent)"


class Firefox:
    """One window, with all that its pages asked for and complained about."""

    def __init__(self, socket):
        self.socket, self.numbers = socket, itertools.count(1)
        self.requests, self.complaints = [], []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        [top] = self.call("browsingContext.getTree")["contexts"]
        self.window = {"context": top["context"]}
        self.call("browsingContext.setViewport", viewport=PHONE, **self.window)

    def call(self, method, **parameters):
        """Give a command, take note of all events before its answer, and return that."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (said := json.loads(self.socket.recv())).get("id") != number:
            told = said.get("params", {})
            if said.get("method") == "network.beforeRequestSent":
                self.requests.append(told["request"]["url"])
            elif said.get("method") == "log.entryAdded" and told["level"] == "error":
                self.complaints.append(told["text"])
        if said["type"] == "error":
            raise RuntimeError(f"{method}: {said['message']}")
        return said["result"]

    def go(self, url):
        """Open a page, and wait for its mathematics and its figures."""
        self.requests, self.complaints = [], []
        self.call("browsingContext.navigate", url=url, wait="complete", **self.window)
        self.evaluate("window.MathJax?.startup?.promise.then(() => null)")
        self.wait_until(FIGURES_ARE_DRAWN)

    def evaluate(self, expression):
        """Return what an expression, or its promise, comes to; the page's policy is not asked."""
        said = self.call(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then((value) => JSON.stringify(value))",
            target=self.window,
            awaitPromise=True,
        )
        if said["type"] == "exception":
            raise RuntimeError(said["exceptionDetails"]["text"])
        return json.loads(said["result"].get("value", "null"))

    def wait_until(self, condition):
        loop = f"while (!({condition})) await new Promise((done) => setTimeout(done, 20));"
        self.evaluate(f"(async () => {{ {loop} }})()")


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    """Start a Firefox that has never been anywhere."""
    if PROGRAM is None:
        pytest.skip("there is no Firefox")
    websocket = pytest.importorskip("websocket")
    port, folder = free_port(), tmp_path_factory.mktemp("firefox")
    command = [PROGRAM, "--headless", "--no-remote", "--profile", str(folder)]
    process = subprocess.Popen(
        [*command, f"--remote-debugging-port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # A page may not take this door: whoever names an origin is sent away.
        door = _connect(websocket, f"ws://127.0.0.1:{port}/session")
        with contextlib.closing(door):
            yield Firefox(door)
    finally:
        process.kill()
        process.wait()


def _connect(websocket, address):
    for _ in range(SECONDS):
        try:
            return websocket.create_connection(address, timeout=SECONDS, suppress_origin=True)
        except OSError:
            time.sleep(1)
    raise RuntimeError(f"Firefox did not listen in {SECONDS} seconds")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_on_a_phone_and_complains_of_nothing(firefox, site, path):
    firefox.go(site + path)
    assert firefox.evaluate("document.querySelector('h1').textContent")
    formulas = firefox.evaluate("document.querySelectorAll('.math').length")
    assert firefox.evaluate("document.querySelectorAll('.math mjx-container').length") == formulas
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [url for url in firefox.requests if not url.startswith((site, "data:", "blob:"))] == []
    assert firefox.complaints == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_shows_the_numbers_that_it_shows_in_the_first_browser(firefox, site, kept, name):
    show = "dpnotes.show(document.querySelector('.interactive'), Object.values(dpnotes.figures)[0])"
    move = """document.querySelectorAll('.interactive input[type=range]').forEach((slider) => {
      slider.value = slider.max;
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    })"""
    firefox.go(site + FIGURES[name])
    first = kept(FIGURES[name]).page
    for do in (show, move):
        firefox.evaluate(f"void {do}")
        first.evaluate(f"void {do}")
        facts = firefox.evaluate(FACTS)
        assert facts
        assert facts == first.evaluate(FACTS)


@pytest.fixture(scope="module")
def playground(firefox, site):
    if not HAS_ENGINE:
        absent(NO_ENGINE)
    firefox.go(site + PLAYGROUND)
    firefox.wait_until("document.querySelector('.try-it .live') && " + DONE)
    yield firefox
    # It says once that the page is not handed what its policy forbids it to compile.
    assert [words for words in firefox.complaints if "WebAssembly" not in words] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_there_what_it_prints_here(playground, name):
    code = f"document.querySelector('.try-it textarea').value = {json.dumps(source(name))}"
    playground.evaluate(f"void ({code})")
    playground.evaluate("void document.querySelector('.try-it .run').click()")
    playground.wait_until(DONE)
    shown = playground.evaluate("document.querySelector('.try-it .output').textContent")
    assert shown == stored(name)
