"""What notebooks share: numbers kept for the prose."""

import ast

import numpy as np
import pytest

from dpnotes._pages import keep

marks = pytest.importorskip("marks")
pytest.importorskip("IPython")


@pytest.fixture
def kept(monkeypatch):
    """Keep numbers as a cell does, and read them as the prose does."""
    outputs = []

    def display(data, metadata, raw):
        assert raw
        outputs.append({"data": data, "metadata": metadata})

    monkeypatch.setattr("IPython.display.display", display)

    def read(**numbers):
        outputs.clear()
        keep(**numbers)
        return marks.kept([{"outputs": outputs}])

    return read


def test_numbers_come_back_under_their_names(kept):
    found = kept(a=1, b=0.5, c="1,234", d=np.int64(7), e=np.float32(0.25))
    assert found == {"a": 1, "b": 0.5, "c": "1,234", "d": 7, "e": 0.25}
    assert {type(value) for value in found.values()} == {int, float, str}


def test_a_float_is_kept_to_six_digits_and_an_integer_whole(kept):
    assert kept(a=1 / 3, b=123456.789, c=123456789) == {"a": 0.333333, "b": 123457, "c": 123456789}


@pytest.mark.parametrize("value", [True, None, [1], np.array([1.0]), 1j, b"1"])
def test_what_is_no_number_is_refused_by_name(kept, value):
    with pytest.raises(TypeError, match="share must be a real number or a string"):
        kept(share=value)


@pytest.mark.parametrize(
    ("text", "numbers", "written"),
    [
        ("?<!-- a:.1f --> %", {"a": 43.77}, "43.8<!-- a:.1f --> %"),
        ("**7<!-- a:,d -->**, $n$", {"a": 32561}, "**32,561<!-- a:,d -->**, $n$"),
        ("(-1<!-- a -->) and 2<!-- b -->", {"a": 3}, "(3<!-- a -->) and 2<!-- b -->"),
        ("| 1<!-- a:.0% --> |", {"a": 0.5}, "| 50%<!-- a:.0% --> |"),
        ("0.5<!-- a words -->", {"a": 1}, "0.5<!-- a words -->"),
    ],
)
def test_a_number_is_written_before_its_mark(text, numbers, written):
    assert marks.written(text, numbers) == written
    assert list(marks.problems(written, numbers | {"b": 2})) == []


def test_a_kept_number_survives_a_notebook(kept):
    [(name, value)] = kept(a=np.pi).items()
    assert (name, ast.literal_eval(repr(value))) == ("a", 3.14159)
