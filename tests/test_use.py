"""The ways into the book: the index, the map of questions, and recipes that are checked."""

import ast
import importlib
import re
from operator import attrgetter
from pathlib import Path

import lint
import measure
import numpy as np
import pytest
import refresh

from dpnotes import histogram, randomized_response, unary_encoding

BOOK = Path(__file__).parents[1] / "book"
PAGE = BOOK / "use" / "recipes.ipynb"
MAP = BOOK / "use" / "which_mechanism.md"
DRAWN = BOOK / "_static" / "which_mechanism.svg"
HEADING = re.compile(r"^## (.+)$", re.M)
NOT_RECIPES = {"If none of these is yours", "Sources"}
MOST_LINES = 15


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


CELLS = refresh.read(PAGE)["cells"]
TOP, RECIPES = CELLS[0]["source"], recipes(CELLS)


def test_there_are_ten_and_the_table_at_the_top_leads_to_each():
    linked = re.findall(r"^\| \[.+?\]\(#([^)]+)\)", TOP, re.M)
    anchors = [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in RECIPES]
    assert len(linked) == 10
    assert linked == anchors


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_is_one_short_cell_and_the_next_checks_what_it_claims(title):
    [shown, checked] = [cell for cell in RECIPES[title] if cell["cell_type"] == "code"]
    assert 0 < measure.visible_lines(shown) <= MOST_LINES
    assert measure.visible_lines(checked) == 0
    nodes = ast.walk(ast.parse(checked["source"]))
    assert any(isinstance(node, ast.Assert) for node in nodes)
    assert all("scrapbook" in output.get("metadata", {}) for output in checked["outputs"])


def test_what_a_recipe_calls_is_public_and_the_table_names_what_is_called():
    cells = [cell for cells in RECIPES.values() for cell in cells if cell["cell_type"] == "code"]
    code = "\n".join(cell["source"] for cell in cells if measure.visible_lines(cell))
    for called in re.findall(r"\| `(\w+\.\w+)[\w.]*` \|", TOP):
        assert {*called.split(".")} <= {*re.findall(r"\w+", code)}, called
    assert not re.search(r"import _|\._", code)


def drawn():
    """Return the questions of the drawn map, each with the function at which it ends."""
    lines = re.findall(r"<text [^>]*>(.*?)</text>", DRAWN.read_text(encoding="utf-8"))
    return {
        line.removeprefix("→ "): lines[place - 1]
        for place, line in enumerate(lines)
        if line.startswith("→ ")
    }


def test_every_way_through_the_map_ends_at_a_function_and_its_words_say_where_to_read_on():
    answers = [line for line in MAP.read_text("utf-8").splitlines() if line.startswith("- *")]
    for (call, question), answer in zip(drawn().items(), answers, strict=True):
        module, _, name = call.partition(".")
        assert callable(attrgetter(name)(importlib.import_module(f"dpnotes.{module}")))
        assert f"`{call}`" in answer
        assert question.split()[:2] == re.sub(r"[*.,:?]", "", answer).lower().split()[1:3]
        assert re.search(r"\]\((?:\.\./|recipes)[^)]+\)", answer), answer


def test_randomized_response_is_the_better_one_for_so_few_categories_as_the_map_says():
    def is_better(epsilon, k, known_total):
        direct, unary = (
            unary_encoding.variance(np.eye(k)[0], *pair, known_total=total)[1]
            for pair, total in (
                (randomized_response.output_distribution(epsilon, k)[0, :2], False),
                (unary_encoding.probabilities(epsilon), known_total),
            )
        )
        return direct < unary

    for epsilon, known_total, few in [
        (1, True, 8),
        (0.5, True, 5),
        (1, False, 10),
        (0.5, False, 6),
    ]:
        better = [is_better(epsilon, k, known_total) for k in range(2, 20)]
        assert better == [k <= few for k in range(2, 20)]


def test_the_drawing_follows_the_page_into_the_dark_and_asks_for_nothing_else():
    image = DRAWN.read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in image
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|@import|url\(", image)


INDEX = (BOOK / "index.md").read_text(encoding="utf-8")


def test_the_course_leads_to_every_core_page_and_says_its_minutes():
    course, chapters = INDEX.split("## The chapters")
    weeks = re.findall(r"^\| \d+ \| \[[^]]+\]\((\w+\.ipynb)\) \| (\d+) \|", course, re.M)
    listed = re.findall(r"^\| \[[^]]+\]\((\w+\.ipynb)\) \|", chapters, re.M)
    assert [name for name, _ in weeks] == listed
    core = {page.name: measure.count_minutes(page.cells) for page in lint.pages() if page.is_core}
    assert {name: int(minutes) for name, minutes in weeks} == core


def test_the_picture_of_the_index_shows_what_the_check_finds():
    image = (BOOK / "_static" / "what_the_book_does.svg").read_text(encoding="utf-8")
    answers = [[k] for k in range(-40, 41)]
    for found, epsilon in [("1.00", 1.0), ("2.00", 2.0)]:
        # Where a count moves by 1, whole-number noise that costs 2 epsilon for two counts.
        one, other = (histogram.log_pmf(answers, ["a"] * n, ["a"], 2 * epsilon) for n in (5, 6))
        assert f"found: {np.abs(one - other).max():.2f}" == f"found: {found}"
        assert f"found: {found}" in image
    bars = re.findall(
        r'<rect class="(you|not-you)" x="[\d.]+" y="[\d.]+" width="8.5" height="([\d.]+)"', image
    )
    ratios = np.exp(np.abs(np.diff(np.log([float(height) for _, height in bars]))))
    assert len(bars) == 22
    # Neighbouring bars of one answer, as far as they are tall enough to be read.
    assert np.allclose(ratios[6:14:2], np.e, rtol=0.02)
