"""The pages in a second browser: what they show, and what Python prints in them.

Needs the site in _build/html (``make book``) and Firefox; `make browser` installs Debian's.
"""

import json

import firefox as second
import pytest
from test_figures import FIGURES
from test_try_it import DONE, HAS_ENGINE, NO_ENGINE, PLAYGROUND, PROGRAMS, source, stored
from visits import FIGURES_ARE_DRAWN, absent

pytestmark = [pytest.mark.browser, pytest.mark.full]

PHONE = 390, 844
PAGES = sorted({*FIGURES.values(), PLAYGROUND, "book/audit.html", "book/zh/index.html"})
FACTS = "[...document.querySelectorAll('.interactive dt, .interactive dd')].map(x => x.textContent)"


@pytest.fixture(scope="module")
def firefox():
    if second.PROGRAM is None:
        pytest.skip("there is no Firefox that takes a profile: Ubuntu's own does not")
    pytest.importorskip("websocket")
    with second.started() as window:
        yield window


@pytest.fixture
def opened(firefox, site):
    """Open a page, and wait for its mathematics and its figures."""

    def go(path, size=PHONE):
        firefox.requests.clear()
        firefox.complaints.clear()
        firefox.resize(*size)
        firefox.go(site + path)
        firefox.evaluate("window.MathJax?.startup?.promise.then(() => null)")
        firefox.wait_until(FIGURES_ARE_DRAWN)
        return firefox

    return go


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_on_a_phone_and_complains_of_nothing(opened, site, path):
    page = opened(path)
    assert page.evaluate("document.querySelector('h1').textContent")
    formulas = page.evaluate("document.querySelectorAll('.math').length")
    assert page.evaluate("document.querySelectorAll('.math mjx-container').length") == formulas
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [url for url in page.requests if not url.startswith((site, "data:", "blob:"))] == []
    assert page.complaints == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_shows_the_numbers_that_it_shows_in_the_first_browser(opened, visit, name):
    move = """(() => {
      for (const slider of document.querySelectorAll('.interactive input[type=range]')) {
        slider.value = slider.max;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
      }
      return null;
    })()"""
    page = opened(FIGURES[name])
    with visit() as visitor:
        first = visitor.go(FIGURES[name])
        for moved in (None, move):
            if moved:
                page.evaluate(moved)
                first.evaluate(moved)
            facts = page.evaluate(FACTS)
            assert facts
            assert facts == first.evaluate(FACTS)


def run(page, code):
    """Run a program in the box of the page to its end, and return what it printed."""
    page.evaluate(
        f"""(() => {{
          document.querySelector('.try-it textarea').value = {json.dumps(code)};
          document.querySelector('.try-it .run').click();
          return null;
        }})()"""
    )
    page.wait_until(DONE)
    return page.evaluate("document.querySelector('.try-it .output').textContent")


@pytest.fixture(scope="module")
def playground(firefox, site):
    if not HAS_ENGINE:
        absent(NO_ENGINE)
    firefox.complaints.clear()
    firefox.go(site + PLAYGROUND)
    firefox.wait_until("document.querySelector('.try-it .live') && " + DONE)
    yield firefox
    # It says once that the page is not handed what its policy forbids it to compile.
    assert [words for words in firefox.complaints if "WebAssembly" not in words] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_there_what_it_prints_here(playground, name):
    assert run(playground, source(name)) == stored(name)
