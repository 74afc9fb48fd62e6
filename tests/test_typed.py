"""Names that others rely on can be called as promised, and their types say so."""

import subprocess
import sys
from pathlib import Path

import pytest

CALLER = Path(__file__).with_name("typed.py")
for extra in ("torch", "sklearn"):
    pytest.importorskip(extra)
typed = pytest.importorskip("typed")


@pytest.mark.parametrize("call", typed.CALLERS, ids=lambda call: call.__name__)
def test_names_that_others_rely_on_can_be_called_as_promised(call):
    call()


def test_a_caller_with_strict_types_has_nothing_to_object_to():
    pytest.importorskip("mypy")
    options = ["--no-error-summary", "--cache-dir=_build/mypy"]
    command = [sys.executable, "-m", "mypy", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CALLER.parents[1])
    assert done.returncode == 0, done.stdout
