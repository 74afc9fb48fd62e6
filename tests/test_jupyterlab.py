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
from pathlib import Path

import pytest
from visits import absent, browser  # noqa: F401 (a fixture)

pytestmark = pytest.mark.browser

BOOK = Path(__file__).resolve().parents[1] / "book"
NOTEBOOKS = sorted(
    path.relative_to(BOOK).as_posix()
    for path in BOOK.rglob("*.ipynb")
    if not any(part.startswith((".", "_")) for part in path.relative_to(BOOK).parts)
)
# All cells are drawn, not only those in sight, and nobody is asked about news.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
RAW = re.compile(r"\{[a-z]+(?::[a-z]+)?\}`|<!--|\bUnknown (?:directive|role)", re.I)


def _free_port():
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
        path = home / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    shutil.copytree(BOOK, home / "book")
    port = _free_port()
    folders = {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTER_RUNTIME_DIR": "run"}
    folders |= {"JUPYTERLAB_WORKSPACES_DIR": "workspaces", "JUPYTER_CONFIG_DIR": "config"}
    environment = os.environ | {key: str(home / value) for key, value in folders.items()}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ip=127.0.0.1", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={home / 'book'}", "--ServerApp.password="]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api", server, home / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


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


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_reads_well_in_jupyterlab(lab, browser, name):  # noqa: F811
    cells = json.loads((BOOK / name).read_text(encoding="utf-8"))["cells"]
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.goto(f"{lab}/doc/tree/{name}", wait_until="load")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
        page.wait_for_function(
            f"document.querySelectorAll('.jp-Notebook .jp-Cell').length >= {len(cells)}",
            timeout=120_000,
        )
        prose = _settled(page)
        found = [match.group() for text in prose for match in RAW.finditer(text)]
        assert found == []
        folded = sum(bool(_folded(cell)) for cell in cells)
        assert (
            page.locator(".jp-CodeCell .jp-InputPlaceholder, .jp-CodeCell .jp-Placeholder").count()
            >= folded
        )
    finally:
        context.close()


def _settled(page):
    """Wait until the prose has stopped changing, and return it cell by cell."""
    before = None
    for _ in range(60):
        prose = page.locator(".jp-MarkdownCell .jp-MarkdownOutput").all_inner_texts()
        if prose == before and all(text.strip() for text in prose):
            return prose
        before = prose
        page.wait_for_timeout(500)
    return prose


def _folded(cell):
    return cell["metadata"].get("jupyter", {}).get("source_hidden")
