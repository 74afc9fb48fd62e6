"""The page on real use: its code runs, and its figures are true.

The code for OpenDP runs in `make bench`, which has OpenDP: see `benchmarks/test_opendp.py`.
"""

import ast
import math
import re
from pathlib import Path

import measure
import numpy as np
import pytest
from scipy import stats

from dpnotes.datasets import load_adult
from dpnotes.histogram import log_pmf, margin

PAGE = Path(__file__).parents[1] / "book" / "security.md"
SURE = 1 - 1e-9


def blocks():
    """Return the code of the page: the histogram and the mean, with dpnotes and with OpenDP."""
    found = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(found) == 4
    return dict(zip(["histogram", "opendp", "mean", "opendp mean"], found, strict=True))


def laplace_deviation(rate):
    """Return the standard deviation of whole noise of probability like exp(-rate |x|)."""
    return math.sqrt(2 * math.exp(-rate)) / (1 - math.exp(-rate))


def deviation_of_the_mean(n, centre=50):
    """Return the standard deviation of a mean of hours from a private histogram at epsilon 1."""
    weights = np.arange(1, 100) - centre
    return laplace_deviation(1 / 2) * math.sqrt((weights**2).sum()) / n


@pytest.fixture(scope="module")
def run():
    """Return what the code for dpnotes leaves behind, and what it prints."""
    names, printed = {"print": lambda value: printed.append(value)}, []
    for block in ("histogram", "mean"):
        exec(compile(blocks()[block], str(PAGE), "exec"), names)
    return names, printed


def test_the_histogram_is_within_its_margin_and_says_what_it_cost(run):
    names, (counted, _) = run
    released, people = names["released"], names["people"]
    truth = people.relationship.value_counts()
    assert set(counted) == set(truth.index)
    reach = margin(1.0, len(counted), confidence=SURE)
    assert all(abs(counted[role] - truth[role]) <= reach for role in counted)
    assert (released.epsilon, released.delta) == (1.0, 0.0)
    assert "one record replaced" in released.neighbours


def test_the_noise_has_scale_two():
    """As OpenDP's has, by the parameter that its query was given."""
    domain = ["a", "b"]
    outputs = [[i, 1] for i in range(1, 30)]
    slopes = np.diff(log_pmf(outputs, ["a", "b"], domain, 1.0))
    assert np.allclose(slopes, -1 / 2, atol=1e-9)
    noise = stats.dlaplace(1 / 2)
    assert laplace_deviation(1 / 2) == pytest.approx(noise.std())


def test_the_mean_is_as_near_as_its_deviation_says(run):
    names, (_, mean) = run
    hours = names["people"].hours_per_week
    assert hours.between(1, 99).all()
    # Seven deviations: the sum of 99 counts with noise is nearly normal.
    assert abs(mean - hours.mean()) < 7 * deviation_of_the_mean(len(hours))


def test_opendp_has_less_than_a_fifth_of_the_error_of_the_mean():
    n = len(load_adult())
    one_number = laplace_deviation(1 / 98) / n
    detours = [deviation_of_the_mean(n, centre) for centre in range(1, 100)]
    assert min(detours) == deviation_of_the_mean(n)
    assert 1 / 6 < one_number / min(detours) < 1 / 5


@pytest.mark.parametrize("block", ["opendp", "opendp mean"])
def test_opendp_is_asked_for_the_same_promise(block):
    code = blocks()[block]
    ast.parse(code)
    assert "loss_of(epsilon=1.0)" in code
    assert "unit_of(contributions=2)" in code


def test_the_page_names_the_version_that_the_benchmarks_pin():
    pinned = (PAGE.parents[1] / "tests/benchmarks/requirements.txt").read_text(encoding="utf-8")
    [version] = re.findall(r"^opendp==(\S+)$", pinned, re.M)
    assert f"with version {version}," in PAGE.read_text(encoding="utf-8")


def test_the_page_takes_as_long_as_it_says():
    text = PAGE.read_text(encoding="utf-8").partition("\n## In detail\n")[0]
    prose = re.sub(r"^```python\n.*?^```$", "", text, flags=re.S | re.M)
    cells = [{"cell_type": "markdown", "source": prose}]
    cells += [{"cell_type": "code", "metadata": {}, "source": code} for code in blocks().values()]
    [minutes] = re.findall(r"About (\d+) minutes, up to", text)
    assert int(minutes) == measure.measure(cells).minutes
