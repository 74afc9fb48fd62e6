"""A seed draws the same bytes, and what is made of them, with every numpy that may be installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import draws
import pytest

ROOT = Path(__file__).parents[1]
IN_CI = os.environ.get("CI") == "true"


@pytest.mark.parametrize("name", draws.CALLS)
def test_a_mechanism_draws_bytes_alone_or_is_known_to_ask_for_more(name):
    assert draws.digest(draws.CALLS[name])[1] == draws.BEYOND_BYTES.get(name, set())


def test_a_digest_tells_seeds_and_generators_apart(monkeypatch):
    found = draws.digests()
    assert len(set(found.values())) == len(found) - 1
    assert found["draw_bytes"] == found["draw_bytes, PCG64"]
    monkeypatch.setattr(draws, "SEEDS", range(1, 9))
    assert not set(found.values()) & set(draws.digests().values())


def oldest():
    """Return the oldest versions that the requirements allow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.fullmatch(r"(numpy|scipy)>=([\d.]+)", line) for line in project["dependencies"]]
    return {name[1]: name[2] for name in names if name}


def install(folder, packages):
    """Install packages into a folder, or skip where no network is; CI has one."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--target", str(folder)]
    done = subprocess.run([*command, *packages], capture_output=True, text=True, cwd=folder)
    if done.returncode and IN_CI:
        pytest.fail(done.stderr)
    if done.returncode:
        pytest.skip(f"{' '.join(packages)} cannot be installed here: {done.stderr[-200:]}")


def drawn_with(folder):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, str(ROOT / "tests" / "draws.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.full
@pytest.mark.parametrize("age", ["oldest", "newest"])
def test_a_seed_draws_the_same_bytes_with_the_oldest_and_the_newest_numpy(age, tmp_path):
    versions = oldest()
    packages = [f"{name}=={versions[name]}" for name in versions] if age == "oldest" else versions
    install(tmp_path, [*packages])
    found = drawn_with(tmp_path)
    if age == "oldest":
        assert all(found["versions"][name].startswith(versions[name]) for name in versions)
    of_bytes = found["digests"].keys() - draws.BEYOND_BYTES.keys()
    here = draws.digests()
    assert {name for name in of_bytes if found["digests"][name] != here[name]} == set()
