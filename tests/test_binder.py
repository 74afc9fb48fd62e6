"""The book opens elsewhere: binder's list, the pages without torch, the links, other systems."""

import ast
import json
import re
import subprocess
import sys
import tomllib
import urllib.parse
from importlib import metadata

import pytest
import refresh
import yaml

ROOT = refresh.ROOT
BINDER = (ROOT / "binder/requirements.txt").read_text(encoding="utf-8").splitlines()
ANYWHERE = (ROOT / "book/teach/anywhere.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name(requirement):
    return re.sub("[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def pins(lines):
    return {name(line): line for line in lines if re.match(r"\w", line)}


def test_binder_pins_what_the_notebooks_need_but_torch():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    required, light = pins(text.splitlines()), pins(BINDER)
    assert light == {key: required[key] for key in light}
    parts = {
        head: pins(lines.splitlines())
        for head, _, lines in (part.partition("\n") for part in text.split("\n# "))
    }
    wanted = parts["what the companion package stands on"] | parts["the laboratory"]
    # No notebook asks for a cluster.
    assert wanted.keys() - light.keys() == {"torch", "dask", "distributed"}


def test_binder_holds_what_is_below_to_the_constraints_and_installs_this_package():
    options = [line for line in BINDER if line.startswith("-")]
    # pip reads -c from the file's own folder, and the package from where it is run: the root.
    assert options == ["-c ../constraints.txt", "-e ."]
    assert (ROOT / "binder/../constraints.txt").exists()


def test_binders_python_is_one_that_ci_tests():
    runtime = (ROOT / "binder/runtime.txt").read_text(encoding="utf-8").strip()
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    tested = ci["jobs"]["check"]["strategy"]["matrix"]["python"]
    assert runtime in {f"python-{version}" for version in tested}


def below(names):
    """Name what these distributions bring, themselves included."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    found, waiting = set(), set(names)
    while waiting:
        current = waiting.pop()
        found.add(current)
        try:
            needed = map(requirement, metadata.requires(current) or [])
        except metadata.PackageNotFoundError:
            continue
        kept = {name(r.name) for r in needed if not r.marker or r.marker.evaluate({"extra": ""})}
        waiting |= kept - found
    return found


def imports(path):
    """Return the statements of a notebook that import something."""
    found = []
    for cell in refresh.code_cells(refresh.read(path)):
        source = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell["source"], flags=re.M)
        nodes = ast.walk(ast.parse(source))
        found += [ast.unparse(n) for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))]
    return found


IMPORTS = {refresh.name(path): imports(path) for path in refresh.notebooks()}


def test_what_the_notebooks_import_is_in_binders_list():
    light = below(pins(BINDER)) | {"dpnotes"}
    homes = metadata.packages_distributions()
    for page, lines in IMPORTS.items():
        modules = {re.split(r"[ .]", line)[1] for line in lines}
        for module in modules - set(sys.stdlib_module_names) - {"dpnotes", "torch"}:
            assert {name(home) for home in homes[module]} & light, f"{page} imports {module}"


WITHOUT_TORCH = """
import json, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
stopped = []
for page, lines in json.load(sys.stdin).items():
    for line in lines:
        try:
            exec(line, {})
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            stopped.append(page)
            break
print(json.dumps(stopped))
"""


def test_the_pages_that_stop_without_torch_are_those_that_are_named():
    pytest.importorskip("matplotlib")
    pytest.importorskip("dp_accounting")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        input=json.dumps(IMPORTS),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    [sentence] = re.findall(r"^\*\*Without torch\*\* (.*)", ANYWHERE, re.M)
    named = re.findall(r"\(\.\./([\w/]+)\.ipynb\)", sentence)
    assert sorted(named) == sorted(json.loads(done.stdout))


ADDRESS, BRANCH = CONFIG["repository"]["url"], CONFIG["repository"]["branch"]


def test_the_links_that_open_a_chapter_elsewhere_lead_to_this_repository():
    assert CONFIG["launch_buttons"]["binderhub_url"] == "https://mybinder.org"
    assert f"git clone {ADDRESS} " in README
    repository = urllib.parse.urlparse(ADDRESS).path
    [colab] = re.findall(r"https://colab\.research\.google\.com(/[^)\s]+)", ANYWHERE)
    place = f"/github{repository}/blob/{BRANCH}/"
    assert colab.startswith(place)
    assert (ROOT / colab.removeprefix(place)).is_file()
    [pull] = re.findall(r"https://HUB/hub/user-redirect/git-pull\?(\S+)", ANYWHERE)
    query = dict(urllib.parse.parse_qsl(pull, strict_parsing=True))
    assert (query["repo"], query["branch"]) == (ADDRESS, BRANCH)
    folder, _, path = query["urlpath"].removeprefix("lab/tree/").partition("/")
    assert folder == repository.rpartition("/")[2]
    assert (ROOT / path).is_file()


def blocks(text):
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)


UNIX_ONLY = re.compile(r"&&|\|\||\bsource\b|/bin/|^export |^make\b|\\$|python3", re.M)
WINDOWS = [block for text in (README, ANYWHERE) for block in blocks(text) if "Scripts" in block]


@pytest.mark.parametrize("block", WINDOWS)
def test_lines_for_windows_have_nothing_that_powershell_lacks(block):
    assert not UNIX_ONLY.findall(block)
    assert "py -3.11 -m venv .venv" in block
    # Without a folder before it, PowerShell would take another python than that of .venv.
    assert not re.findall(r"^(?:python|pip|pytest|jupyter\S*) ", block, re.M)


def test_windows_has_its_lines_wherever_a_unix_path_is_named():
    assert len(WINDOWS) == 2
    for text in (README, CONTRIBUTING):
        assert ".venv/bin/python" not in text or r"`.venv\Scripts\python`" in text


@pytest.mark.parametrize("line", ["cd a && b", "source .venv/bin/activate", "a \\"])
def test_a_line_of_another_shell_is_found(line):
    assert UNIX_ONLY.search(line)


def git(*arguments):
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not there")
    if done.returncode:
        pytest.skip("this is no checkout that git reads")
    return done.stdout


def test_every_text_has_the_same_line_ends_on_every_system():
    for line in git("ls-files", "--eol").splitlines():
        index, tree, attributes = re.match(r"i/(\S*) +w/(\S*) +attr/(.*?) *\t", line).groups()
        if index not in ("-text", "none"):
            # Nothing is written anew by git, at a commit or at a checkout.
            assert attributes == "-text" or (attributes == "text=auto eol=lf" and index == "lf")
            assert tree in ("lf", "none", ""), line
