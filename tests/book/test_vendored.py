"""What others wrote and the site serves is what they published."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "book" / "_static" / "interactive" / "vendor"
ROW = re.compile(r"^\| (\S+) \| .* \| `([0-9a-f]{64})` \|$", re.M)
CHECKSUMS = dict(ROW.findall((VENDOR / "README.md").read_text(encoding="utf-8")))


def test_every_vendored_script_is_listed_and_unchanged():
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")
    }
    assert found == CHECKSUMS


def test_every_vendored_script_comes_with_its_licence():
    licences = (VENDOR / "LICENSES.txt").read_text(encoding="utf-8")
    assert all(f"({name})" in licences for name in CHECKSUMS)


def test_every_interactive_figure_has_its_script_and_its_tests():
    book = VENDOR.parents[2]
    pages = [path.read_text(encoding="utf-8") for path in book.rglob("*.ipynb")]
    asked = {name for page in pages for name in re.findall(r'data-figure=\\"([\w-]+)\\"', page)}
    scripts = {path.stem for path in VENDOR.parent.glob("*.js")} - {"frame", "loader"}
    assert asked == scripts, "a page asks for a figure by the name of its script"
    tests = (Path(__file__).with_name("test_figures.py")).read_text(encoding="utf-8")
    missing = [name for name in sorted(scripts) if f'"{name}": "book/' not in tests]
    assert not missing, f"FIGURES in test_figures.py needs {', '.join(missing)}"


def test_mathjax_has_its_licence_laid_beside_it():
    # The site gets MathJax from a package that leaves the licence out; Sphinx lays this beside it.
    licence = (VENDOR.parents[1] / "mathjax" / "LICENSE").read_text(encoding="utf-8")
    digest = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert hashlib.sha256(licence.encode()).hexdigest() == digest


def test_the_libraries_stay_light():
    assert sum(path.stat().st_size for path in VENDOR.glob("*.js")) < 600_000
