"""A notebook is stale when something that its outputs depend on has changed, and only then."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import lint
import pytest
import reach
import refresh

ROOT = Path(__file__).parents[1]


@pytest.fixture
def fresh(tmp_path):
    """A copy of the book's sources in which no notebook is stale."""
    for folder in ("book", "dpnotes", "data"):
        unwanted = shutil.ignore_patterns("__pycache__", "*.npz", ".ipynb_checkpoints", "_static")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unwanted)
    for path in refresh.notebooks(tmp_path):
        book = refresh.read(path)
        book["metadata"]["dpnotes"] = {"hash": refresh.hashes(book, tmp_path)}
        cells = [{**cell, "outputs": []} for cell in refresh.code_cells(book)]
        refresh.write(path, {**book, "cells": cells})
    return tmp_path


def stale_in(root):
    """Return the stale notebooks by name."""
    found = [problem.file for problem in lint.stale_notebooks(root)]
    return {name.removeprefix("book/").removesuffix(".ipynb") for name in found}


def every(root):
    return {refresh.name(path, root) for path in refresh.notebooks(root)}


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def modules(root):
    return sorted((root / "dpnotes").rglob("*.py"))


def test_a_word_in_any_docstring_or_comment_makes_nothing_stale(fresh):
    assert every(fresh)
    for path in modules(fresh):
        text = path.read_text(encoding="utf-8")
        docstrings = [
            node.body[0].value.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node)
        ]
        for docstring in filter(lambda words: words in text, docstrings):
            text = text.replace(docstring, "Other words." + docstring)
        path.write_text(f"{text}\n# a comment\n", encoding="utf-8")
    assert stale_in(fresh) == set()


def test_lines_broken_elsewhere_make_nothing_stale(fresh):
    for path in modules(fresh):
        path.write_text(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert stale_in(fresh) == set()


def test_code_that_changes_makes_stale_what_imports_it_and_nothing_else(fresh):
    change(fresh / "dpnotes" / "pate" / "votes.py", "def count_votes(", "def count_the_votes(")
    pages = {"pate", "assignments/pate", "deeper/pate", "solutions/pate", "use/recipes"}
    assert stale_in(fresh) == pages


def test_what_every_module_imports_makes_every_notebook_stale(fresh):
    change(fresh / "dpnotes" / "_checks.py", "def check_epsilon(", "def check_the_epsilon(")
    assert stale_in(fresh) == every(fresh)


def test_a_module_that_no_notebook_imports_makes_nothing_stale(fresh):
    (fresh / "dpnotes" / "new.py").write_text("print(1)\n", encoding="utf-8")
    assert stale_in(fresh) == set()


def test_an_experiment_makes_stale_the_page_that_shows_it(fresh):
    change(fresh / "dpnotes" / "experiments" / "symmetric_loss.py", "import ", "import  sys, ")
    assert stale_in(fresh) == {"deeper/symmetric_loss"}


def test_the_look_of_figures_makes_every_notebook_that_draws_stale(fresh):
    path = fresh / "book" / "figures.mplstyle"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    drawing = {
        refresh.name(notebook, fresh)
        for notebook in refresh.notebooks(fresh)
        if path.name in notebook.read_text(encoding="utf-8")
    }
    assert stale_in(fresh) == drawing
    assert {"foundations", "deeper/pate"} <= drawing < every(fresh)


def test_results_make_stale_the_page_that_loads_them_and_no_timing_does(fresh):
    [results] = (fresh / "data" / "results").glob("pate.json*")
    results.write_text(results.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    (fresh / "data" / "results" / "how_fast.json").write_text("{}", encoding="utf-8")
    (fresh / "data" / "results" / "new.json").write_text("{}", encoding="utf-8")
    assert stale_in(fresh) == {"deeper/pate"}


def test_other_data_of_the_same_name_makes_stale_what_loads_them(fresh):
    sources = fresh / "data" / "datasets.toml"
    change(sources, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", "5b")
    stale = stale_in(fresh)
    assert {"randomized_response", "private_auc", "deeper/elun"} <= stale
    assert "symmetric_loss" not in stale


def test_a_mirror_that_moves_makes_nothing_stale(fresh):
    change(fresh / "data" / "datasets.toml", "https://", "https://new.")
    assert stale_in(fresh) == set()


def test_a_changed_cell_makes_its_notebook_stale_and_no_other(fresh):
    path = refresh.notebooks(fresh)[0]
    book = refresh.read(path)
    refresh.code_cells(book)[0]["source"] += "\n1"
    refresh.write(path, book)
    assert stale_in(fresh) == {refresh.name(path, fresh)}


def test_prose_line_ends_and_caches_make_nothing_stale(fresh):
    for path in modules(fresh):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (fresh / "dpnotes" / "__pycache__").mkdir()
    (fresh / "dpnotes" / "__pycache__" / "x.pyc").write_bytes(b"1")
    path = refresh.notebooks(fresh)[0]
    book = refresh.read(path)
    book["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "More prose."})
    refresh.write(path, book)
    assert stale_in(fresh) == set()


def test_the_build_refuses_a_stale_notebook_by_name(fresh):
    command = [sys.executable, "book/_tools/lint.py", "--stale"]
    assert subprocess.run(command, cwd=fresh, check=False).returncode == 0
    change(fresh / "dpnotes" / "_coins.py", "import math", "import math, sys")
    refused = subprocess.run(command, cwd=fresh, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "randomized_response.ipynb: stale: changed since it was run: dpnotes" in refused.stdout


def test_a_notebook_that_was_never_refreshed_is_stale(tmp_path):
    path = tmp_path / "new.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {}}))
    assert "has not been run" in refresh.stale(path)


def test_notebooks_are_found_in_folders_too_but_not_in_hidden_ones(fresh):
    before = every(fresh)
    [deeper, checkpoint, tools] = (
        fresh / "book" / n for n in ("further", ".ipynb_checkpoints", "_x")
    )
    for folder in (deeper, checkpoint, tools):
        folder.mkdir(exist_ok=True)
        shutil.copy(fresh / "book" / "pate.ipynb", folder)
    assert every(fresh) - before == {"further/pate"}
    assert {page.name for page in lint.pages(fresh)} >= {"pate.ipynb", "further/pate.ipynb"}
    assert stale_in(fresh) == set()


@pytest.fixture
def package(tmp_path):
    """Write small files of a package; gives a function that says which of them code reaches."""
    files = {
        "__init__": "",
        "plain": "def f():\n    from dpnotes.inner import deep\n",
        "inner/__init__": "from .first import a\n",
        "inner/first": "from . import second\nfrom .._below import c\n",
        "inner/second": "",
        "inner/deep": "import dpnotes.alone\n",
        "alone": "import numpy, dpnotes_of_others\n",
        "_below": "",
        "unreached": "",
    }
    for name, text in files.items():
        path = tmp_path / "dpnotes" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def reached(code):
        found = reach.reached([ast.parse(code)], tmp_path)
        return {name.removeprefix("dpnotes/").removesuffix(".py") for name in found}

    return reached


INNER = {"__init__", "inner/__init__", "inner/first", "inner/second", "_below"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import numpy", set()),
        ("import dpnotes", {"__init__"}),
        ("from dpnotes import alone as a", {"__init__", "alone"}),
        ("def f():\n    import dpnotes.alone", {"__init__", "alone"}),
        ("from dpnotes.inner import a", INNER),
        ("from dpnotes import inner", INNER),
        ("import dpnotes.inner.deep", INNER | {"inner/deep", "alone"}),
        ("from dpnotes import plain", INNER | {"plain", "inner/deep", "alone"}),
    ],
)
def test_imports_are_followed_inside_functions_and_through_packages(package, code, names):
    assert package(code) == names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = True"),
        ("x = 1", "x = 1.0"),
        ("x = 'a'", "x = b'a'"),
        ("def f(): return", "def f(): return None"),
        ("f(a, b)", "f(b, a)"),
        ("x < y", "x <= y"),
        ("{**a}", "{a: a}"),
        ("def f(x=1): 'words'", "def f(x=2): 'words'"),
        ("class A:\n    'words'\n    x = 1", "class A:\n    'words'\n    x = 2"),
        ("x = 'words'", "x = 'other words'"),
        ("f'{x!r}'", "f'{x}'"),
        ("f'{x:.2f}'", "f'{x:.3f}'"),
    ],
)
def test_code_that_does_something_else_has_another_hash(tmp_path, one, other):
    def hashed(code):
        (tmp_path / "x.py").write_text(code)
        return reach._hash_of_modules(["x.py"], tmp_path)

    assert hashed(one) != hashed(other)
    assert hashed(one) == hashed(one + "  # a comment")


def test_a_tag_asks_the_loader_of_its_name_whatever_data_set_is_new(monkeypatch):
    from dpnotes import datasets

    def absent():
        raise datasets.DatasetUnavailable("no such folder")

    monkeypatch.setattr(datasets, "load_new", absent, raising=False)
    assert "no such folder" in refresh.missing_data("needs-new")
    monkeypatch.setattr(datasets, "load_newer", lambda: 1, raising=False)
    assert refresh.missing_data("needs-newer") is None
    with pytest.raises(ValueError, match=r"needs-nothing: no load_nothing in .*datasets"):
        refresh.missing_data("needs-nothing")
