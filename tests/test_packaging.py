"""What is pinned agrees, and the package brings what it needs and no more."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ACTION = re.compile(r"uses: (\./\S+|\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$")


def run_python(code, folder=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def name(requirement):
    """Spell the name of a requirement or a distribution as the registries compare it."""
    return re.sub("[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def pins(file):
    lines = (ROOT / file).read_text().splitlines()
    pinned = (line.partition(" ")[0] for line in lines if re.match(r"\w", line))
    return {name(pin): pin.partition("==")[2] for pin in pinned}


def test_everything_that_is_required_is_pinned_and_the_lists_agree():
    required, constrained = pins("requirements.txt"), pins("constraints.txt")
    assert all(required.values())
    assert all(constrained.values())
    assert {key: constrained.get(key, version) for key, version in required.items()} == required
    assert pins("binder/requirements.txt").keys() <= constrained.keys() | required.keys()


def test_everything_below_the_requirements_is_pinned_and_hashed_but_for_torch():
    pinned, hashed = pins("constraints.txt") | pins("requirements.txt"), pins(".ci/hashes.txt")
    assert hashed.items() <= pinned.items()
    reached = reached_from(pins("requirements.txt"))
    assert reached - pinned.keys() == set()
    unhashed = reached - hashed.keys()
    assert [key for key in unhashed if not re.match("(torch|triton)$|(cuda|nvidia)-", key)] == []


def test_what_builds_the_package_is_pinned_as_everywhere():
    [build] = PYPROJECT["build-system"]["requires"]
    assert build == f"setuptools=={pins('constraints.txt')['setuptools']}"


def reached_from(names):
    """Return the names, and all that they need on this machine."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    reached, waiting = set(), set(names)
    while waiting:
        current = waiting.pop()
        reached.add(current)
        try:
            below = map(requirement, metadata.requires(current) or [])
        except metadata.PackageNotFoundError:
            continue  # only for another platform, or left out in favour of an installed one
        needed = {name(r.name) for r in below if not r.marker or r.marker.evaluate({"extra": ""})}
        waiting |= needed - reached
    return reached


def test_the_pythons_that_make_takes_are_those_that_the_package_allows():
    specifiers = pytest.importorskip("packaging.specifiers")
    allowed = specifiers.SpecifierSet(PYPROJECT["project"]["requires-python"])
    pairs = re.search(r"not in \{(.*?)\}\)", (ROOT / ".ci/venv").read_text())[1]
    taken = {".".join(pair) for pair in re.findall(r"\((\d+), (\d+)\)", pairs)}
    assert taken == {f"3.{k}" for k in range(30) if f"3.{k}.9" in allowed}


def test_no_second_index_may_answer_for_every_name():
    scripts = [*ROOT.glob(".ci/*"), *ROOT.glob(".github/**/*.yml"), ROOT / "Makefile"]
    texts = [path.read_text() for path in [*scripts, ROOT / "README.md"] if path.is_file()]
    assert not [text for text in texts if re.search("EXTRA_INDEX_URL|--extra-index", text)]


def test_every_action_of_others_is_pinned_to_a_commit():
    files = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/**/*.yml")]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    uses = [line.removeprefix("- ") for line in lines if "uses:" in line]
    assert uses
    assert [line for line in uses if not ACTION.fullmatch(line)] == []
    assert not ACTION.fullmatch("uses: actions/checkout@v5")


def test_every_folder_of_the_package_is_in_the_wheel_by_name():
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "dpnotes").rglob("*.py")}
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    assert {".".join(folder.parts) for folder in folders} | {"dpnotes.data"} == listed


def test_the_wheel_works_by_itself_and_brings_the_small_data(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("pooch")
    source, site = tmp_path / "source", tmp_path / "site"
    for folder in ("dpnotes", "data"):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    build = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    built = run_python(build, source)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    code = "import dpnotes.datasets as d; print(d.locate('adult'), *d.load_adult('all').shape)"
    loaded = run_python(code, tmp_path, PYTHONPATH=str(site), DPNOTES_DATA="")
    assert loaded.stdout.split() == [str(site / "dpnotes/data/adult"), "48842", "15"]


def test_importing_dpnotes_or_a_chapter_pulls_in_no_torch_and_no_pandas():
    heavy = ("torch", "pandas", "matplotlib", "sklearn")
    code = "import dpnotes, dpnotes.randomized_response, dpnotes.unary_encoding, sys; "
    imported = run_python(f"{code} print([name for name in {heavy} if name in sys.modules])")
    assert imported.stdout.strip() == "[]", imported.stderr
