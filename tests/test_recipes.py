"""The recipes: each is short, says the same four things, and is checked by the cell after it."""

import ast
import re
from pathlib import Path

import measure
import pytest
import refresh

PAGE = Path(__file__).parents[1] / "book" / "use" / "recipes.ipynb"
HEADING = re.compile(r"^## (.+)$", re.M)
NOT_RECIPES = {"If none of these is yours", "Sources"}
MOST_LINES = 15
# What each recipe says, in this order.
SAID = [r"\*\*What (it|this way) costs\.\*\*", r"\*\*What it does not protect\.\*\*"]
SAID += [r"\*\*How to choose\.\*\*"]


def recipes(cells):
    """Return the cells of each recipe, by its title."""
    found, title = {}, None
    for cell in cells:
        heading = HEADING.match(cell["source"]) if cell["cell_type"] == "markdown" else None
        if heading:
            title = heading[1]
        if title and title not in NOT_RECIPES:
            found.setdefault(title, []).append(cell)
    return found


RECIPES = recipes(refresh.read(PAGE)["cells"])


def test_there_are_nine_and_the_table_at_the_top_leads_to_each():
    top = refresh.read(PAGE)["cells"][0]["source"]
    linked = re.findall(r"^\| \[.+?\]\(#([^)]+)\)", top, re.M)
    anchors = [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in RECIPES]
    assert len(linked) == 9
    assert linked == anchors


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_is_one_short_cell_and_the_next_checks_what_it_claims(title):
    kinds = [cell for cell in RECIPES[title] if cell["cell_type"] == "code"]
    [shown, checked] = kinds
    assert 0 < measure.visible_lines(shown) <= MOST_LINES
    assert measure.visible_lines(checked) == 0
    claims = [
        node for node in ast.walk(ast.parse(checked["source"])) if isinstance(node, ast.Assert)
    ]
    assert claims
    assert not checked["outputs"] or all(
        "scrapbook" in output.get("metadata", {}) for output in checked["outputs"]
    )


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_says_its_cost_its_limits_and_how_to_choose(title):
    text = "\n".join(c["source"] for c in RECIPES[title] if c["cell_type"] == "markdown")
    places = [re.search(said, text) for said in SAID]
    assert all(places)
    assert [place.start() for place in places] == sorted(place.start() for place in places)


def test_what_a_recipe_calls_is_public_and_the_table_names_what_is_called():
    top = refresh.read(PAGE)["cells"][0]["source"]
    code = "\n".join(
        cell["source"]
        for cells in RECIPES.values()
        for cell in cells
        if cell["cell_type"] == "code" and measure.visible_lines(cell)
    )
    for module, name in re.findall(r"\| `(\w+)\.(\w+)[\w.]*` \|", top):
        assert re.search(rf"\b{module}\b", code), module
        assert re.search(rf"\b{name}\b", code), name
    assert "import _" not in code
    assert "._" not in code
