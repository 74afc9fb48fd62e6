"""Copies of the checkout in which tests run, with a bug in the package and without."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("dpnotes", "tests", "data", "book", "_config.yml", "conftest.py", "pyproject.toml")
UNNEEDED = shutil.ignore_patterns("__pycache__", "_static", "benchmarks")


def copy(folder):
    """Copy what the tests need to a new folder, and return it."""
    folder.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=UNNEEDED)
        else:
            shutil.copy(source, folder)
    return folder


@contextmanager
def plant(bug, root):
    """Write a bug into a copy of the checkout, and take it out again."""
    path = root / bug["file"]
    source = path.read_text(encoding="utf-8")
    _write(path, change(bug, source))
    try:
        yield
    finally:
        _write(path, source)


def change(bug, source):
    """Return a source with a bug in it: in place of a passage, or of lines from "line" on."""
    if "line" not in bug:
        if source.count(bug["old"]) != 1:
            raise ValueError(f"{bug['file']} must hold the passage of {bug['what']!r} once")
        return source.replace(bug["old"], bug["new"])
    lines, first = source.splitlines(), bug["line"] - 1
    place = slice(first, first + len(bug["old"]))
    if lines[place] != bug["old"]:
        raise ValueError(f"{bug['file']} must be as it was when its changes were drawn")
    lines[place] = bug["new"]
    return "\n".join(lines) + "\n"


def _write(path, text):
    """Write a file of code, and remove what was compiled of it, whose date may look fresh."""
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def ask(tests, root, *options, limit=None):
    """Run tests in a copy, and return [name, whether it passed, CPU seconds] of each.

    Past the limit in seconds "time" fails, too. Where pytest fails and no test does, that counts
    as one that failed.
    """
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root), str(Path(__file__).parent)]),
        "OMP_NUM_THREADS": "1",
        # Loading the other plugins takes longer than most of the tests.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "told.jsonl"
        record.touch()
        plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "recorder"]
        options = [*plugins, "-q", "--tb=no", f"--record={record}", *options]
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as run:
            try:
                ended = run.wait(limit)
            except subprocess.TimeoutExpired:
                ended = None
            finally:
                if run.returncode is None:
                    os.killpg(run.pid, signal.SIGKILL)
        told = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    if ended is None:
        told.append(["time", False, limit])
    elif ended and not failures(told):
        told.append([f"pytest ended with {ended}", False, 0.0])
    return told


def failures(told):
    """Return the names of the tests that failed."""
    return [name for name, passed, _ in told if not passed]
