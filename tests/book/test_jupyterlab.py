"""The notebooks in a real JupyterLab: prose reads as on the site, and folded code is folded."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import refresh
from visits import absent

pytestmark = [pytest.mark.browser, pytest.mark.full]

BOOK = refresh.ROOT / "book"
NOTEBOOKS = [path.relative_to(BOOK).as_posix() for path in refresh.notebooks()]
# All cells are drawn, not only those in sight, and nobody is asked about news.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
FOLDERS = ["LAB_SETTINGS", "LAB_WORKSPACES", "_RUNTIME", "_CONFIG"]
RAW = re.compile(r"\{[a-z]+(?::[a-z]+)?\}`|<!|:::|Unknown (?:Directive|Role)", re.I)

PLANTED = [
    {"cell_type": "markdown", "source": "$43 <!-- a -->$ %\n\n:::{nonsense}\n:::", "metadata": {}},
    {
        "cell_type": "code",
        "source": "1",
        "metadata": {"tags": ["hide-input"]},
        "outputs": [],
        "execution_count": None,
    },
]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Serve a copy of the book's notebooks in JupyterLab, and give its address."""
    if shutil.which("chromium") is None:
        absent("there is no chromium")
    pytest.importorskip("jupyterlab")
    home = tmp_path_factory.mktemp("lab")
    for name, values in SETTINGS.items():
        path = home / "LAB_SETTINGS" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    shutil.copytree(BOOK, home / "book")
    book = {"cells": PLANTED, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (home / "book" / "planted.ipynb").write_text(json.dumps(book))
    address = f"http://127.0.0.1:{(port := free_port())}"
    environment = {f"JUPYTER{name}_DIR": str(home / name) for name in FOLDERS}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ip=127.0.0.1", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={home / 'book'}", "--ServerApp.password="]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
    try:
        _wait_for(f"{address}/api", server, home / "log")
        yield address
    finally:
        server.terminate()
        server.wait(60)


def _wait_for(url, server, log):
    for _ in range(240):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.25)
        else:
            return
    pytest.fail(f"JupyterLab does not answer: {log.read_text()}")


@pytest.fixture
def opened(lab, browser):
    """Open a notebook, and return (what stands raw in its prose, how many cells are folded)."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def look(name, cells):
        page = context.new_page()
        page.goto(f"{lab}/doc/tree/{name}", wait_until="load")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
        page.wait_for_function(
            f"document.querySelectorAll('.jp-Notebook .jp-Cell').length >= {cells}",
            timeout=120_000,
        )
        raw = [match.group() for text in _settled(page) for match in RAW.finditer(text)]
        folded = ".jp-CodeCell .jp-InputPlaceholder, .jp-CodeCell .jp-Placeholder"
        return raw, page.locator(folded).count()

    yield look
    context.close()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_reads_well_in_jupyterlab(opened, name):
    cells = json.loads((BOOK / name).read_text(encoding="utf-8"))["cells"]
    raw, folded = opened(name, len(cells))
    assert raw == []
    assert folded >= sum("hide-input" in cell["metadata"].get("tags", ()) for cell in cells)


def test_a_notebook_that_reads_badly_is_noticed(opened):
    raw, folded = opened("planted.ipynb", len(PLANTED))
    assert {"<!", "Unknown Directive"} <= set(raw)
    assert folded == 0


def _settled(page):
    """Wait until the prose has stopped changing, and return it cell by cell."""
    before = None
    for _ in range(60):
        prose = page.locator(".jp-MarkdownCell").all_inner_texts()
        # A cell that holds a figure to move is blank here.
        if prose == before and sum(bool(text.strip()) for text in prose) > 0.9 * len(prose):
            return prose
        before = prose
        page.wait_for_timeout(1000)
    pytest.fail("the prose is not drawn, or goes on changing")
