"""The code for OpenDP on the page on real use, run with the version that it names."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from dpnotes.histogram import margin

pytest.importorskip("opendp", reason="the page's code for OpenDP runs among the benchmarks")

PAGE = Path(__file__).parents[2] / "book" / "security.ipynb"


def blocks():
    """Return the code of the page: the histogram and the mean, with dpnotes and with OpenDP."""
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if "nbval-ignore-output" in cell["metadata"].get("tags", [])]
    ours = ["".join(cell["source"]) for cell in code]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    theirs = re.findall(r"^```python\n(.*?)^```$", prose, re.S | re.M)
    return {"histogram": ours[0], "opendp": theirs[0], "mean": ours[1], "opendp mean": theirs[1]}


@pytest.fixture(scope="module")
def names():
    """Run the code of the whole page, and keep what each context was."""
    names = {"print": lambda value: names["printed"].append(value), "printed": [], "contexts": {}}
    for title, code in blocks().items():
        exec(compile(code, str(PAGE), "exec"), names)
        names["contexts"][title] = names.get("context")
    return names


def test_the_version_is_the_one_that_the_page_names():
    assert f"with version {version('opendp')}<!-- opendp -->," in PAGE.read_text(encoding="utf-8")


def test_the_counts_have_the_noise_and_the_error_that_dpnotes_has(names):
    ours, theirs = names["printed"][:2]
    truth = names["people"].relationship.value_counts()
    assert names["query"].laplace().param() == pytest.approx(2.0, rel=1e-9)
    assert list(ours) == list(theirs)
    reach = margin(1.0, len(truth), confidence=1 - 1e-9)
    assert all(abs(theirs[role] - truth[role]) <= reach for role in truth.index)


def test_the_noise_of_the_mean_is_that_of_one_sum(names):
    import opendp.prelude as dp

    people = names["people"]
    again = dp.Context.compositor(
        data=people.hours_per_week.tolist(),
        privacy_unit=dp.unit_of(contributions=2),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=int), size=len(people)),
    )
    assert again.query().clamp((1, 99)).sum().laplace().param() == pytest.approx(98.0, rel=1e-9)
    assert abs(names["printed"][3] - people.hours_per_week.mean()) < 98 * 25 / len(people)


@pytest.mark.parametrize("context", ["opendp", "opendp mean"])
def test_the_context_refuses_a_second_query(names, context):
    with pytest.raises(ValueError, match="exhausted"):
        names["contexts"][context].query()
