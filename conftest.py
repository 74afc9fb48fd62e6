"""What pytest must know about the machine it runs on: its data, its device, its browser."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
sys.path[:0] = [str(ROOT / "book" / "_tools"), str(ROOT / "book" / "_tools" / "try")]
# The kernels that nbval starts must import this dpnotes, installed or not.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
)

IN_CI = os.environ.get("CI") == "true"
# Seconds after which a test is taken for one that hangs. A notebook's cell has a limit of its own
# (--nbval-cell-timeout); this one is for a kernel that does not even keep that.
LIMIT, CELL_LIMIT, FULL_LIMIT = 300, 660, 1800
# An interpreter of one's own, on a GPU machine say, may lack what these files test.
NEEDED = {"tests/test_datasets.py": "pooch", "tests/book": "yaml"}
NEEDED |= {
    f"tests/test_{name}.py": "nbformat" for name in ("assignments", "teaching_builds", "use")
}
collect_ignore = [path for path, module in NEEDED.items() if not importlib.util.find_spec(module)]


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run the tests marked full, too")


def pytest_configure(config):
    if importlib.util.find_spec("hypothesis") is None:
        return
    from hypothesis import settings

    settings.register_profile("here", deadline=None)
    settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
    settings.load_profile("ci" if IN_CI else "here")


def pytest_collection_modifyitems(config, items):
    """Give every test a limit, and leave out those marked full where they were not asked for."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_limit(item)))
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        items[:] = [item for item in items if not item.get_closest_marker("full")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)


def _limit(item):
    if hasattr(item, "cell"):
        return CELL_LIMIT
    return FULL_LIMIT if item.get_closest_marker("full") else LIMIT


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip what this machine can't run, and fail where it was promised that it can."""
    for what, reason, promised in _needs(item):
        if reason is not None and promised:
            pytest.fail(f"{what} must be here: {reason}", pytrace=False)
        if reason is not None:
            pytest.skip(f"{what} is not here: {reason}")


def _needs(item):
    for tag in _data_tags(item):
        import refresh

        yield f"data for {tag}", refresh.missing_data(tag), IN_CI and "DPNOTES_DATA" in os.environ
    if item.get_closest_marker("gpu"):
        yield "a CUDA device", _no_cuda(), os.environ.get("DPNOTES_DEVICE") == "cuda"
    if item.get_closest_marker("browser"):
        yield "a browser", _no_browser(), os.environ.get("DPNOTES_BROWSER") == "required"


def _data_tags(item):
    cell = getattr(item, "cell", None)
    tags = cell.metadata.get("tags", []) if cell else []
    return [tag for tag in tags if tag.startswith("needs-")]


def _no_cuda():
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch

    return None if torch.cuda.is_available() else "torch finds none"


def _no_browser():
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None if shutil.which("chromium") else "chromium is not installed"
