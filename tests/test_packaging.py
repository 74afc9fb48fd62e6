"""The commands of the Makefile refuse what they must, and the package carries what it needs."""

import json
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

INPUTS = ("requirements.txt", "constraints.txt", "pyproject.toml")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and bash are not part of Windows")


def script(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)
    return path


def run(*command, folder, **environment):
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def name(requirement):
    """Spell the name of a requirement or a distribution as the registries compare it."""
    return re.sub("[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def pins(file):
    lines = (ROOT / file).read_text().splitlines()
    return {name(line): line.partition("==")[2] for line in lines if re.match(r"\w", line)}


@pytest.fixture
def checkout(tmp_path):
    """Copy the commands into a folder of their own, with nothing to install."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "Makefile", tmp_path)
    for file in INPUTS:
        (tmp_path / file).write_text("")
    return tmp_path


PIP = """
import sys
if "--index-url" in sys.argv:
    print("asks", sys.argv[sys.argv.index("--index-url") + 1], "for", sys.argv[-1])
else:
    print("installs", open(sys.argv[sys.argv.index("--requirement") + 1]).read().split())
"""


@pytest.fixture
def quick_python(tmp_path):
    """Stand in for an interpreter: its environments have a pip that only says what it was given."""
    pytest.importorskip("ensurepip", reason="this Python cannot make environments")
    (tmp_path / "fake_pip").write_text(PIP)
    return script(
        tmp_path / "quick",
        f"""python={sys._base_executable}
[[ $2 == venv ]] || exec $python "$@"
$python -m venv --without-pip "${{@:3}}"
cd "${{@: -1}}"/lib/python3.*/site-packages && cp {tmp_path}/fake_pip pip.py""",
    )


def make_environment(checkout, **environment):
    return run("make", ".venv/.ready", folder=checkout, MAKEFLAGS="", **environment)


def test_make_stops_with_one_sentence_where_no_python_fits(checkout):
    old = script(checkout / "old", "exit 1")
    made = make_environment(checkout, DPNOTES_PYTHON=f"{old} no-such-python")
    assert made.returncode != 0
    assert "dpnotes needs Python 3.11, 3.12 or 3.13 and found none" in made.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_told_which_package_to_install(checkout):
    bare = script(
        checkout / "bare", f'[[ "$*" != *ensurepip* ]] || exit 1; exec {sys.executable} "$@"'
    )
    made = make_environment(checkout, DPNOTES_PYTHON=bare)
    assert made.returncode != 0
    assert f"install the package python3.{sys.version_info[1]}-venv" in made.stderr


@pytest.mark.parametrize(("version", "used"), [("2.12.1+cu130", True), ("2.5.1", False)])
def test_an_installed_torch_is_used_where_it_is_recent(checkout, quick_python, version, used):
    site = checkout / "site"
    script(site / "torch/__init__.py", f"__version__ = {version!r}")
    (checkout / "requirements.txt").write_text("numpy==0\ntorch==0\n")
    made = make_environment(checkout, DPNOTES_PYTHON=quick_python, PYTHONPATH=str(site))
    assert made.returncode == 0, made.stderr
    assert f"installs {['numpy==0'] if used else ['numpy==0', 'torch==0']}" in made.stdout
    settings = (checkout / ".venv/pyvenv.cfg").read_text()
    assert ("include-system-site-packages = true" in settings) is used


def test_another_index_is_asked_for_torch_and_for_nothing_else(checkout, quick_python):
    (checkout / "requirements.txt").write_text("numpy==0\ntorch==0\n")
    index = {"DPNOTES_PYTHON": quick_python, "DPNOTES_TORCH_INDEX": "https://index.example"}
    made = make_environment(checkout, **index)
    assert made.returncode == 0, made.stderr
    asked = [line for line in made.stdout.splitlines() if line.startswith("asks")]
    assert asked == ["asks https://index.example for torch==0"]
    assert "installs ['numpy==0', 'torch==0']" in made.stdout


def test_no_second_index_is_set_for_every_name():
    scripts = [*ROOT.glob(".ci/*"), *ROOT.glob(".github/**/*.yml"), ROOT / "Makefile"]
    texts = [path.read_text() for path in [*scripts, ROOT / "README.md"] if path.is_file()]
    assert not [text for text in texts if re.search("EXTRA_INDEX_URL|--extra-index", text)]


def test_the_pythons_that_make_takes_are_those_that_the_package_allows():
    specifiers = pytest.importorskip("packaging.specifiers")
    allowed = specifiers.SpecifierSet(PYPROJECT["project"]["requires-python"])
    pairs = re.search(r"not in \{(.*?)\}\)", (ROOT / ".ci/venv").read_text())[1]
    taken = {".".join(pair) for pair in re.findall(r"\((\d+), (\d+)\)", pairs)}
    named = "Programming Language :: Python :: 3."
    classifiers = PYPROJECT["project"]["classifiers"]
    assert taken == {f"3.{k}" for k in range(30) if f"3.{k}.9" in allowed}
    assert taken == {line[len(named) - 2 :] for line in classifiers if line.startswith(named)}


def test_an_environment_is_made_once_and_again_where_it_moved_or_lost_its_python(
    checkout, quick_python
):
    def made(folder):
        result = make_environment(folder, DPNOTES_PYTHON=quick_python)
        assert result.returncode == 0, result.stderr
        return "Making .venv" in result.stdout

    assert made(checkout)
    assert not made(checkout)

    moved = checkout / "moved"
    moved.mkdir()
    for part in (".ci", ".venv", "Makefile", *INPUTS):
        (checkout / part).rename(moved / part)
    assert made(moved)
    assert not made(moved)

    (moved / ".venv/bin/python").unlink()
    (moved / ".venv/bin/python").symlink_to("/nowhere/python")
    assert made(moved)


def test_an_environment_is_brought_up_to_date_when_a_pin_changes(checkout, quick_python):
    assert make_environment(checkout, DPNOTES_PYTHON=quick_python).returncode == 0
    (checkout / "requirements.txt").write_text("numpy==0\n")
    os.utime(checkout / "requirements.txt", (2**32, 2**32))
    changed = make_environment(checkout, DPNOTES_PYTHON=quick_python)
    assert "installs ['numpy==0']" in changed.stdout
    assert "Making .venv" not in changed.stdout


@pytest.fixture
def book(checkout):
    for folder in ("book", "dpnotes", "data"):
        (checkout / folder).mkdir()
        (checkout / folder / "file").write_text("")
    for file in ("_config.yml", "_toc.yml"):
        (checkout / file).write_text("")
    return checkout


SPHINX = "echo reading; mkdir -p _build/html; touch _build/html/index.html"


def test_an_unchanged_book_is_not_built_again_and_a_changed_one_is(book):
    python = script(book / "python", SPHINX)
    builds = []
    for change in (None, None, "write", "remove"):
        if change == "write":
            (book / "book/file").write_text("new")
        if change == "remove":
            (book / "data/file").unlink()
        built = run(".ci/book", python, folder=book)
        assert built.returncode == 0, built.stderr
        builds.append("reading" in built.stdout)
    assert builds == [True, False, True, True]


def test_a_build_that_failed_is_never_taken_for_a_finished_one(book):
    python = script(book / "python", SPHINX)
    assert run(".ci/book", python, folder=book).returncode == 0

    (book / "book/file").write_text("broken")
    script(python, SPHINX + "; exit 1")
    assert run(".ci/book", python, folder=book).returncode == 1
    assert run(".ci/book", python, folder=book).returncode == 1

    (book / "book/file").write_text("")
    script(python, SPHINX)
    assert "reading" in run(".ci/book", python, folder=book).stdout


def test_a_python_without_the_book_tools_is_told_what_is_left_out(checkout):
    bare = script(
        checkout / "python", '[[ "$*" != *"import nbval"* ]] || exit 1; [[ $1 != -m ]] || echo "$@"'
    )
    tested = run("make", "test", f"PY={bare}", folder=checkout, MAKEFLAGS="")
    assert tested.returncode == 0, tested.stderr
    assert "no nbval: the notebooks are not compared" in tested.stdout
    assert "--nbval" not in tested.stdout.splitlines()[-1]
    assert not (checkout / ".venv").exists()


STEPS = """.PHONY: lint book mutants browser
.venv/.ready: ;
lint: ; @echo linting; exit $${LINT:-0}
book: ; @echo building
mutants: ; @echo "planting $${PART}"; exit $${MUTANTS:-0}
browser: ;
"""
TESTING = """case "$*" in
  *"browser or site"*) echo "2 passed"; exit ${SITE:-0} ;;
  *"-m pytest"*) echo "1 passed"; exit ${TESTS:-0} ;;
esac"""


SHOWN = ["1 passed", "linting", "building", "planting today/10", "2 passed"]


@pytest.mark.parametrize("failing", [None, "LINT", "TESTS", "MUTANTS", "SITE"])
def test_ci_shows_every_step_and_fails_where_one_fails(checkout, failing):
    (checkout / "Makefile").write_text(STEPS)
    script(checkout / ".venv/bin/python", TESTING)
    done = run(".ci/run", folder=checkout, MAKEFLAGS="", **({failing: "1"} if failing else {}))
    shown = done.stdout.splitlines()
    assert [line for line in shown if line in SHOWN] == SHOWN
    assert done.returncode == bool(failing)
    named = {"LINT": "lint/book", "TESTS": "test", "MUTANTS": "mutants", "SITE": "site/browser"}
    assert [line for line in shown if line.startswith("Failed")] == (
        [f"Failed: {named[failing]}"] if failing else []
    )


def test_every_notebook_is_compared_wherever_it_lies_below_the_book(checkout):
    for place in ("a.ipynb", "part/b.ipynb", ".ipynb_checkpoints/c.ipynb", "_build/d.ipynb"):
        notebook = checkout / "book" / place
        notebook.parent.mkdir(parents=True, exist_ok=True)
        notebook.write_text("{}")
    told = script(checkout / "python", '[[ $1 != -m ]] || echo "$@"')
    tested = run("make", "test", f"PY={told}", folder=checkout, MAKEFLAGS="")
    assert tested.returncode == 0, tested.stderr
    assert re.findall(r"\S+\.ipynb", tested.stdout) == ["book/a.ipynb", "book/part/b.ipynb"]


def test_a_python_without_pytest_tests_nothing_and_fails(checkout):
    bare = script(checkout / "python", "exit 1")
    tested = run("make", "test", f"PY={bare}", folder=checkout, MAKEFLAGS="")
    assert tested.returncode != 0
    assert "no pytest: nothing can be tested" in tested.stdout


@pytest.mark.parametrize(
    ("lines", "branches", "holds"), [(99, 94, False), (94, 99, False), (95, 95, True)]
)
def test_lines_and_branches_are_each_held_to_the_floor(tmp_path, lines, branches, holds):
    totals = {"num_statements": 100, "num_branches": 100}
    totals |= {"covered_lines": lines, "covered_branches": branches}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {}, "totals": totals}))
    checked = run(sys.executable, ROOT / ".ci/check_coverage.py", report, 95, folder=tmp_path)
    assert (checked.returncode == 0) is holds, checked.stdout


ACTION = re.compile(r"uses: (\./\S+|\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$")


ACTIONS = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/**/*.yml")]


@pytest.mark.parametrize("path", sorted(ACTIONS), ids=lambda path: path.name)
def test_every_action_of_others_is_pinned_to_a_commit(path):
    uses = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert uses
    assert [line for line in uses if not ACTION.fullmatch(line.removeprefix("- "))] == []


def test_an_action_that_is_pinned_to_a_tag_is_refused():
    assert not ACTION.fullmatch("uses: actions/checkout@v5")
    assert not ACTION.fullmatch(f"uses: actions/checkout@{'a' * 40}")


def test_everything_below_the_requirements_is_pinned_to_what_is_installed():
    requirement = pytest.importorskip("packaging.requirements").Requirement
    pinned = pins("constraints.txt") | pins("requirements.txt")
    reached, waiting = set(), set(pins("requirements.txt"))
    while waiting:
        current = waiting.pop()
        reached.add(current)
        try:
            below = map(requirement, metadata.requires(current) or [])
        except metadata.PackageNotFoundError:
            continue  # only for another platform, or left out in favour of an installed one
        needed = {name(r.name) for r in below if not r.marker or r.marker.evaluate({"extra": ""})}
        waiting |= needed - reached
    assert reached - pinned.keys() == set()


def test_what_is_required_is_pinned_and_the_two_files_agree():
    required, constrained = pins("requirements.txt"), pins("constraints.txt")
    assert all(required.values())
    assert all(constrained.values())
    assert {key: constrained.get(key, version) for key, version in required.items()} == required


def test_every_folder_of_the_package_is_in_the_wheel_by_name():
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "dpnotes").rglob("*.py")}
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    assert {".".join(folder.parts) for folder in folders} | {"dpnotes.data"} == listed


def test_the_wheel_works_by_itself_and_brings_the_small_data(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("pooch")
    source = tmp_path / "source"
    for folder in ("dpnotes", "data"):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    build = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    built = run(sys.executable, "-c", build, folder=source)
    assert built.returncode == 0, built.stderr

    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import dpnotes.datasets as d; print(d.locate('adult'), *d.load_adult('all').shape)"
    loaded = run(
        sys.executable,
        "-c",
        code,
        folder=tmp_path,
        PYTHONPATH=str(tmp_path / "site"),
        DPNOTES_DATA="",
    )
    assert loaded.stdout.split() == [str(tmp_path / "site/dpnotes/data/adult"), "48842", "15"]


def test_importing_dpnotes_or_a_chapter_pulls_in_no_torch_and_no_pandas():
    heavy = ("torch", "pandas", "matplotlib", "sklearn")
    code = f"""
import dpnotes, sys
import dpnotes.randomized_response, dpnotes.unary_encoding
print([module for module in {heavy} if module in sys.modules])
"""
    imported = run(sys.executable, "-c", code, folder=ROOT)
    assert imported.stdout.strip() == "[]", imported.stderr
