"""Python in the page: its programs, what fetches it, and the boxes in a real browser."""

import contextlib
import html
import itertools
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import engine
import harness
import pytest
import refresh
import try_it
from visits import PHONE, SITE, absent, serious_violations, wait_until

from dpnotes import noisy_gradient_descent

ROOT = Path(__file__).parents[2]
PROGRAMS = {path.stem: path for path in sorted(try_it.PROGRAMS.glob("*.py"))}
CHAPTER, PLAYGROUND = "book/randomized_response.html", "book/use/playground.html"
ASKED = re.compile(r'class=\\?"try-it\\?" data-try=\\?"([\w ]+)\\?"')


def in_the_browser(test):
    """Mark a test of Python in the page; CI runs one of them, `make full` all."""
    return pytest.mark.browser(pytest.mark.full(test))


def source(name):
    return PROGRAMS[name].read_text(encoding="utf-8")


def stored(name):
    return PROGRAMS[name].with_suffix(".txt").read_text(encoding="utf-8")


def boxes():
    """Return the names in each box of each page."""
    pages = [*refresh.pages(".md"), *refresh.notebooks()]
    found = {path: ASKED.findall(path.read_text(encoding="utf-8")) for path in pages}
    return {path: [names.split() for names in boxes] for path, boxes in found.items() if boxes}


# The programs, without a browser.


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_is_stored_beside_it(name):
    assert try_it.printed(source(name)) == stored(name)


def test_the_noisy_step_claims_what_it_costs():
    [claim] = re.findall(r"^EPSILON = ([\d.]+)", source("noisy_gradient_descent"), re.M)
    cost = float(noisy_gradient_descent.cost(1.0, 0.5, 1, 0.01))
    assert cost <= float(claim) < cost + 1e-4


def test_half_of_the_noise_of_one_weight_is_enough_there_as_the_page_says():
    program, _, _ = (
        source("elun").replace("2 / (LAM", "1 / (LAM").partition("\n\ndef private_weight")
    )
    space = {}
    exec(program, space)
    values = (-1.0, -0.5, 0.0, 0.5, 1.0)
    moves = [
        abs(space["fit"]((*others, one)) - space["fit"]((*others, another)))
        for others in itertools.combinations_with_replacement(values, 3)
        for one, another in itertools.combinations(values, 2)
    ]
    assert 0.8 < max(moves) / space["SCALE"] < 1


def test_every_program_is_in_a_box_and_the_playground_is_judged_as_its_page_says():
    asked = [name for found in boxes().values() for names in found for name in names]
    assert sorted(asked) == sorted(PROGRAMS)
    verdicts = {name: stored(name).split(":")[0] for name in PROGRAMS if "playground" in name}
    assert verdicts.pop("playground_answer") == "Not refuted"
    assert set(verdicts.values()) == {"Violated"}


# What runs a program.


ERRORS = [
    (
        "import json\n\ndef load(text):\n    return json.loads(text)\n\nload('{')\n",
        "Line 6:\n    load('{')\nLine 4, in load:\n    return json.loads(text)\n"
        "json.decoder.JSONDecodeError: Expecting property name",
    ),
    ("x = 1\nif x\n    y = 2\n", "Line 2:\n    if x\nSyntaxError: expected ':'\n"),
    ("import sys; sys.exit(3)", ""),
    ("raise KeyboardInterrupt", ""),
    ("print(left)", "Line 1:\n    print(left)\nNameError: name 'left' is not defined\n"),
]


@pytest.mark.parametrize(("code", "words"), ERRORS)
def test_an_error_is_told_by_the_readers_own_lines_and_ends_nothing_else(code, words, capsys):
    harness.run("left = 1")
    assert harness.run(code) == {"failed": True}
    assert capsys.readouterr().err.startswith(words)


def test_what_is_drawn_is_the_witness_of_the_report(capsys):
    found = harness.run(source("playground_noise"))["found"]
    assert json.loads(json.dumps(found)) == found
    assert (found["verdict"], found["epsilon"], found["neighbour_hits"]) == ("violated", 1.0, 0)
    assert f"an event came {found['hits']:,} times" in stored("playground_noise")


def test_a_run_from_files_leaves_what_was_found_in_a_file(tmp_path, capsys):
    program, into = tmp_path / "program.py", tmp_path / "found.json"
    program.write_text("print('α')", encoding="utf-8")
    harness.main(program, into)
    assert json.loads(into.read_text()) == {"failed": False, "found": None}
    assert capsys.readouterr().out == "α\n"


# The page without scripts.

BOX = '<p>a</p><div class="try-it" data-try="{}" role="group"><em>words</em></div><p>b</p>'
LISTED = {"python": {"file": "python-1.bin", "size": 20_400_000}, "x": {"file": "x", "size": 2e6}}


def test_a_box_holds_its_program_and_what_it_prints():
    page = try_it.filled(BOX.format("playground_answer"), LISTED)
    assert 'data-megabytes="22" data-file="python-1.bin" role="group"' in page
    code = re.search(r'<pre class="code">(.*?)</pre>', page, re.S)[1]
    assert (
        html.unescape(re.sub(r"<[^>]+>", "", code)).strip() == source("playground_answer").strip()
    )
    assert stored("playground_answer").strip() in page
    assert "<em>" not in page


def test_without_the_engine_a_box_says_so_and_offers_no_button():
    page = try_it.filled(BOX.format("playground_answer playground_count"))
    assert try_it.ABSENT in page
    assert "data-megabytes" not in page
    assert page.count('class="program"') == 2


# What fetches the engine.


def pinned(sha256):
    return {"client": "pip", "package": "x==1", "file": "x.whl", "sha256": sha256}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/client"], "is not installed"),
        ([sys.executable, "-c", "raise SystemExit('no network')"], "no network"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "took more than"),
    ],
)
def test_what_cannot_be_fetched_is_told_in_time(monkeypatch, tmp_path, command, reason):
    monkeypatch.setitem(engine.COMMANDS, "pip", command)
    monkeypatch.setitem(engine.SECONDS, "pip", 2)
    with pytest.raises(engine.UnavailableError, match=reason):
        engine.fetched(pinned("0" * 64), tmp_path)


def test_a_file_with_another_hash_is_refused(monkeypatch, tmp_path):
    write = "import pathlib, sys; pathlib.Path(sys.argv[1], 'x.whl').write_bytes(b'x')"
    monkeypatch.setitem(engine.COMMANDS, "pip", [sys.executable, "-c", write])
    right = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert engine.fetched(pinned(right), tmp_path).read_bytes() == b"x"
    with pytest.raises(engine.UnavailableError, match="has the hash"):
        engine.fetched(pinned("0" * 64), tmp_path)


def test_a_build_without_the_engine_is_told_and_goes_on(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(engine, "ENGINE", tmp_path / "engine")
    monkeypatch.setitem(engine.COMMANDS, "npm", ["/nowhere/npm"])
    monkeypatch.setattr(engine.build, "__defaults__", (tmp_path / "engine",))
    engine.main()
    assert "Python in the page is left out: npm is not installed." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_library_leaves_out_what_is_dropped_and_is_the_same_every_day(tmp_path):
    path = tmp_path / "library.zip"
    names = ["os.pyc", "numpy/a.pyc", "numpy/tests/b.pyc", "pandas/c.pyc", "six.pyc"]
    names += ["scipy/special/d.pyc", "scipy/stats/e.pyc", "numpy-2.dist-info/METADATA"]
    with zipfile.ZipFile(path, "w") as full:
        for name in names:
            full.writestr(name, name)
    made = engine.library(path, engine.pins()["drop"])
    assert made == engine.library(path, engine.pins()["drop"])
    (tmp_path / "made.zip").write_bytes(made)
    kept = zipfile.ZipFile(tmp_path / "made.zip").namelist()
    assert kept == ["numpy/a.pyc", "os.pyc", "scipy/special/d.pyc"]


def test_the_package_for_the_page_has_all_of_dpnotes_and_what_runs_a_program(tmp_path):
    (tmp_path / "dpnotes.zip").write_bytes(try_it.package())
    code = "import harness, dpnotes.audit; print(harness.__file__, dpnotes.audit.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'dpnotes.zip'); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.count("dpnotes.zip") == 2


# The boxes in the browser.

HAS_ENGINE = (SITE / "_static" / "try" / "engine" / "engine.json").exists()
NO_ENGINE = "the site was built without Python for its pages: see what `make book` says"
DONE = "!document.querySelector('.try-it .run').disabled"
LOOP = "while True:\n    pass\n"


@pytest.fixture
def opened(visit):
    """Open a page with a box, in a browser that has never been here."""
    if not HAS_ENGINE:
        absent(NO_ENGINE)
    with contextlib.ExitStack() as stack:

        def go(path):
            visitor = stack.enter_context(visit())
            live(visitor.go(path)).wait_for()
            return visitor

        yield go


@pytest.fixture(scope="module")
def loaded(visit):
    """Keep one playground open: Python is loaded once for the tests that ask it many things."""
    if not HAS_ENGINE:
        absent(NO_ENGINE)
    with visit() as visitor:
        visitor.go(PLAYGROUND)
        yield visitor


@pytest.fixture
def playground(loaded):
    """Return the playground as it was at first, but for what is loaded."""
    live(loaded.page).wait_for()
    loaded.page.locator(".try-it select").select_option("0")
    button(loaded.page, "again").click()
    loaded.requests.clear()
    return loaded


def live(page):
    return page.locator(".try-it .live")


def button(page, kind):
    return page.locator(f".try-it button.{kind}")


def output(page):
    return page.locator(".try-it .output").text_content()


def state(page):
    return page.locator(".try-it .state").text_content()


def run(page, code=None):
    """Run what is in the editor, or a program, and wait until it is over."""
    if code is not None:
        page.locator(".try-it textarea").fill(code)
    button(page, "run").click()
    wait_until(page, DONE)
    return output(page)


@pytest.mark.browser
def test_python_is_loaded_at_the_click_prints_what_it_prints_here_and_is_kept(opened):
    def asked_for():
        names = [url.rpartition("/")[2] for url in visitor.requests if "/try/engine/" in url]
        return sorted(name.partition("-")[0] for name in names if name.endswith((".bin", ".zip")))

    visitor = opened(CHAPTER)
    page = visitor.page
    size = sum(path.stat().st_size for path in (SITE / "_static/try/engine").glob("*-*.[bz]i*"))
    assert asked_for() == []
    assert button(page, "run").text_content() == f"Load Python ({size / 1e6:.0f} MB) and run"
    assert output(page) == stored("randomized_response")
    assert run(page, source("randomized_response")) == stored("randomized_response")
    assert state(page).startswith("Done in ")
    assert asked_for() == ["dpnotes", "library", "python"]

    visitor.requests.clear()
    visitor.go(PLAYGROUND)
    live(page).wait_for()
    assert button(page, "run").text_content() == "Run and audit"
    [[names]] = [found for path, found in boxes().items() if path.stem == "playground"]
    for place, name in enumerate(names):
        page.locator(".try-it select").select_option(str(place))
        page.locator(".try-it .output").evaluate("node => (node.textContent = '')")
        assert run(page) == stored(name)
    assert [asked_for(), visitor.abroad(), visitor.complaints] == [[], [], []]
    visitor.dress(scheme="dark", viewport=PHONE)
    assert page.locator(".try-it .picture").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    # A while after a resize the theme lets keys reach what has to be scrolled.
    page.locator(".try-it .output[tabindex='0']").wait_for()
    assert serious_violations(page, ".try-it") == []


DRAWS = """import numpy as np
from dpnotes import exponential_mechanism, histogram
rng = np.random.default_rng(7)
print(rng.integers(2**40, size=3), rng.random(3), rng.normal(size=3), rng.laplace(size=3))
print(exponential_mechanism.permute_and_flip([3, 1, 2.5], 1.0, rng=3))
print(histogram.release_count(7, 1.0, rng=5).value)
import dpnotes.elun, dpnotes.label_privacy, dpnotes.noisy_gradient_descent, dpnotes.pate
import dpnotes.private_auc, dpnotes.private_confusion, dpnotes.release, dpnotes.unary_encoding
"""


@in_the_browser
def test_programs_chapters_and_generators_do_there_what_they_do_here(playground):
    for name in PROGRAMS:
        if not name.startswith("playground"):
            assert run(playground.page, source(name)) == stored(name)
    assert run(playground.page, DRAWS) == try_it.printed(DRAWS)


@in_the_browser
def test_a_loop_without_an_end_is_stopped_and_the_next_run_is_quick(playground):
    page = playground.page
    page.locator(".try-it textarea").fill(f"print('before')\n{LOOP}")
    button(page, "run").click()
    wait_until(page, "document.querySelector('.try-it .output').textContent === 'before\\n'")
    # The page is awake meanwhile, and the keyboard stands on the button that stops.
    assert page.evaluate("document.activeElement.className") == "stop"
    page.keyboard.press("Enter")
    wait_until(page, DONE)
    assert state(page) == "Stopped."
    assert page.evaluate("document.activeElement.className") == "run"
    assert run(page, "print(1 + 1)") == "2\n"


@in_the_browser
def test_an_error_is_shown_in_short_and_the_engine_lives_on(playground):
    page = playground.page
    assert run(page, "None + 1").endswith("and 'int'\n")
    assert state(page) == "The program stopped with an error."
    deep = run(page, "def f(x):\n    return f(x + 1)\n\nf(0)\n")
    assert "RecursionError" in deep or "broke down" in state(page)
    assert run(page, "print('ε')") == "ε\n"


FLOOD = """class found:
    epsilon, delta, confidence, verdict = 1.0, 0.0, 0.9, "violated"
    class witness:
        _asdict = lambda: {"event": "x" * 10**6, "hits": 1, "neighbour_hits": 2, "runs": 3}
print("x" * 10**6)
import dpnotes.audit
dpnotes.audit.report = None
"""


@in_the_browser
def test_a_long_text_is_cut_and_undo_takes_back_what_was_done_to_the_package(playground):
    page = playground.page
    for text in (run(page, FLOOD), page.locator(".try-it .witness").text_content()):
        assert "there is more" in text
        assert text.count("x") < 21_000
    button(page, "again").click()
    assert run(page) == stored("playground_count")


@in_the_browser
def test_a_program_reaches_no_network_no_page_and_no_other_program(playground):
    tries = [
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import _socket; _socket.socket().connect(('127.0.0.1', 80))",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
        "import js; js.document",
        "import subprocess; subprocess.run(['true'])",
        "open('/etc/passwd')",
    ]
    code = f"""for code in {tries}:
    try:
        exec(code)
        print('reached')
    except Exception as error:
        print(type(error).__name__)
"""
    run(playground.page, "print('start')")
    playground.requests.clear()
    words = run(playground.page, code).split()
    assert len(words) == len(tries)
    # Whoever is refused by the other side has reached it.
    assert not {"reached", "ConnectionRefusedError", "URLError"} & set(words)
    assert playground.requests == []


@pytest.mark.browser
def test_no_page_may_compile_wasm_itself(opened):
    visitor = opened(PLAYGROUND)
    policy = visitor.page.locator("meta[http-equiv=Content-Security-Policy]")
    assert "wasm" not in policy.get_attribute("content")
    allowed = visitor.page.evaluate(
        """() => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))
             .then(() => true, () => false)"""
    )
    assert not allowed
