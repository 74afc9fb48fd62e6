"""Every public name says what it is and what it takes, and a function shows itself at work."""

import inspect
import re
from pathlib import Path

import pytest
from public import MODULES, callables, classes, functions, short_name

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


# More than sixteen functions and classes, each with its reason.
LARGER = {
    "symmetric_loss": "a function a loss, under the name that papers give it",
    "private_auc": "what its pages compute with: two metrics, their sensitivities, three noises",
}
# On no page: what assignments call, what experiments compare, and the counterpart of another.
ON_NO_PAGE = {
    *("audit.pairs_by_removal", "pate.gnmax_log_error_probability", "datasets.locate"),
    *("training.reference_cnn", "training.small_convnet", "symmetric_loss.cross_entropy"),
    *("symmetric_loss.generalized_cross_entropy", "symmetric_loss.mean_absolute_error"),
    *("symmetric_loss.multiclass_unhinged_loss", "symmetric_loss.normalized_cross_entropy"),
}


@pytest.mark.parametrize("module", MODULES, ids=short_name)
def test_a_module_holds_at_most_sixteen_functions_and_classes(module):
    public = {*functions(module), *classes(module)}
    assert (len(public) > 16) == (short_name(module) in LARGER), sorted(public)
    assert public <= {*getattr(module, "__all__", public)}


def test_every_public_function_is_on_a_page():
    pages = [*API.parent.rglob("*.ipynb"), *API.parent.rglob("*.md")]
    pages = [page for page in pages if page.parent != API and page.name != "guarantees.md"]
    words = {word for page in pages for word in re.findall(r"\w+", page.read_text("utf-8"))}
    names = {f"{short_name(module)}.{name}" for module in MODULES for name in functions(module)}
    assert {name for name in names if name.partition(".")[2] not in words} == ON_NO_PAGE
