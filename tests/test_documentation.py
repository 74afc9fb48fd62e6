"""Every public name says what it is and what it takes, and a function shows itself at work."""

import inspect
import re
from pathlib import Path

import pytest
from public import MODULES, callables, short_name

API = Path(__file__).parents[1] / "book" / "api"


def find_faults(thing):
    """Return what the documentation of a function, a class or a method leaves out."""
    documentation, faults = inspect.getdoc(thing) or "", []
    if not re.match(r"[A-Z].*\.(\n\n|$)", documentation):
        faults.append("no first line that is a sentence by itself")
    taken = [name for name in inspect.signature(thing).parameters if name != "self"]
    if find_documented_names(documentation) != taken:
        faults.append(f"other parameters than {taken}")
    if inspect.isfunction(thing) and "." not in thing.__qualname__ and ">>>" not in documentation:
        faults.append("no example")
    return faults


def find_documented_names(documentation):
    section = re.search(
        r"^Parameters\n-+\n((?:.*\n?)*?)(?=^\w[\w ]*\n-{3,}|\Z)", documentation, re.M
    )
    lines = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section[1] if section else "", re.MULTILINE)
    return [name.lstrip("*") for line in lines for name in line.split(", ")]


@pytest.mark.parametrize("module", MODULES, ids=short_name)
def test_every_public_name_is_documented(module):
    found = {name: find_faults(thing) for name, thing in callables(module).items()}
    assert not {name: faults for name, faults in found.items() if faults}
    assert inspect.getdoc(module)


def test_a_bare_function_would_be_noticed():
    def bare(counts, rng: int = 0):
        """Count something.

        Parameters
        ----------
        counts : list

        Notes
        -----
        Nothing.
        """

    assert find_documented_names(inspect.getdoc(bare)) == ["counts"]
    assert find_faults(bare) == ["other parameters than ['counts', 'rng']"]


@pytest.mark.parametrize("module", MODULES, ids=short_name)
def test_every_module_has_a_page_that_the_page_of_the_package_links_to(module):
    page = f"{short_name(module)}.md"
    assert f"automodule:: {module.__name__}\n" in (API / page).read_text("utf-8")
    assert f"(api/{page})" in (API.parent / "api.md").read_text("utf-8")
