"""The page about reports by the billion: its recipes run, its tables are those of the results."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

import billions as tool
import measure

from dpnotes import datasets, randomized_response, unary_encoding
from dpnotes.experiments._reports import MECHANISMS, Block, draw

BOOK = Path(__file__).parents[1] / "book"
PAGE = BOOK / "use" / "billions.md"
RECIPE = re.compile(r"^### (.+?)\n(?:(?!^#).)*?^```python\n(.+?)^```$", re.M | re.S)
RECIPES = dict(RECIPE.findall(PAGE.read_text(encoding="utf-8")))
MOST_LINES = 15
BLOCKS = [Block("randomized response", 16, number, 3000) for number in range(3)]


def written(folder, kind):
    """Write three blocks of reports and return what all of them in one pass give."""
    folder.mkdir()
    name = "unary encoding" if kind == "packed" else "randomized response"
    blocks = [draw(block._replace(mechanism=name))[1] for block in BLOCKS]
    for number, block in enumerate(blocks):
        if kind == "parquet":
            table = pd.DataFrame({"other": 0.5, "report": block})
            table.to_parquet(folder / f"{number}.parquet")
        else:
            np.save(folder / f"{number}.npy", block)
    whole = np.concatenate(blocks)
    if kind == "packed":
        bits = np.unpackbits(whole, axis=1)
        return unary_encoding.aggregate(bits, *unary_encoding.probabilities(1.0))
    return randomized_response.estimate(whole, 1.0, categories=16)


KINDS = {
    "A folder of packed bits": ("packed", ()),
    "A folder of Parquet files": ("parquet", ("pyarrow",)),
    "An array of Dask": ("bytes", ("dask.array",)),
    "A data frame of Dask": ("parquet", ("pyarrow", "dask.dataframe")),
}


def test_each_recipe_is_short_and_tried_here():
    assert list(RECIPES) == list(KINDS)
    for code in RECIPES.values():
        assert len(code.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("title", KINDS)
def test_a_recipe_estimates_what_all_reports_in_one_pass_give(title, tmp_path, monkeypatch):
    kind, needed = KINDS[title]
    for module in needed:
        pytest.importorskip(module)
    expected = written(tmp_path / "reports", kind)
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(RECIPES[title], found)
    np.testing.assert_array_equal(found["people"], expected)


def test_a_missing_report_is_refused_and_not_left_out(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("dask.dataframe")
    written(tmp_path / "reports", "parquet")
    wrong = pd.DataFrame({"report": pd.array([1, None, 3], dtype="Int64")})
    wrong.to_parquet(tmp_path / "reports" / "3.parquet")
    monkeypatch.chdir(tmp_path)
    for title in ("A folder of Parquet files", "A data frame of Dask"):
        with pytest.raises((TypeError, ValueError)):
            exec(RECIPES[title], {})


# The run.


@pytest.fixture(scope="module")
def results():
    return datasets.load_results("billions")


def test_the_tables_on_the_page_are_those_of_the_results(results):
    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(results)
    assert "_generated/billions.md" in PAGE.read_text(encoding="utf-8")


def test_a_billion_people_were_counted_by_each_mechanism_in_every_pass(results):
    passes, page = tool.passes(results), tool.PAGE.read_text(encoding="utf-8")
    for mechanism in MECHANISMS:
        run = tool.by_people(results, mechanism)[-1]
        assert run["people"] == sum(run["truth"])
        # Where it is less, the page says so.
        said = f"{mechanism} has come to {run['people']:,} of 1,000,000,000 people"
        assert run["people"] == 10**9 or said in page
        numbers = {u["block"] for u in results["units"] if u["mechanism"] == mechanism}
        assert set(range(run["blocks"])) <= numbers
        for workers in (1, 2):
            if (mechanism, workers) in passes:
                assert passes[mechanism, workers]["counts"] == run["counts"]
        assert np.abs(run["deviations"]).max() < 5
    whole = tool.by_people(results, "randomized response")[-1]
    assert sum(whole["counts"]) == whole["people"] == 10**9


def test_the_memory_at_the_last_block_is_that_of_the_first_ones(results):
    for mechanism in MECHANISMS:
        taken = {
            unit["block"]: unit["runs"][1]["taken_mb"]
            for unit in results["units"]
            if unit["mechanism"] == mechanism and unit["setup"]["people"] == 10**7
            if unit["block"] != "all"
        }
        assert taken[max(taken)] < 1.1 * max(taken[number] for number in range(5))


def test_the_page_says_how_long_it_takes_to_read():
    text = PAGE.read_text(encoding="utf-8")
    [minutes] = re.findall(r"About (\d+) minutes", text)
    assert int(minutes) == measure.measure([{"cell_type": "markdown", "source": text}]).minutes
