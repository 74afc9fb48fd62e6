"""What pytest must know about the machine it runs on: its data, its device, its browser."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "book" / "_tools"))
# The kernels that nbval starts must import this dpnotes, installed or not.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
)

IN_CI = os.environ.get("CI") == "true"


def pytest_configure(config):
    if importlib.util.find_spec("hypothesis") is None:
        return
    from hypothesis import settings

    settings.register_profile("here", deadline=None)
    settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
    settings.load_profile("ci" if IN_CI else "here")


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
