"""What long measurements share: provenance, files and words on the command line."""

import argparse
import json

import pytest

pytest.importorskip("torch")

from dpnotes.experiments import _runs


def test_a_checkout_without_git_has_no_commit(monkeypatch):
    def absent(*_, **__):
        raise OSError

    monkeypatch.setattr(_runs.subprocess, "run", absent)
    assert _runs.commit() == "unknown"


def test_a_processor_has_a_name_on_any_system(monkeypatch):
    assert _runs._processor()
    monkeypatch.setattr(_runs.Path, "exists", lambda self: False)
    assert _runs._processor() == _runs.platform.machine()


def test_a_document_comes_back_and_has_a_row_on_a_line(tmp_path):
    document = {"experiment": "x", "rows": [{"seed": 0, "a": [1, 2]}, {"seed": 1, "a": []}]}
    path = tmp_path / "new" / "x.json"
    _runs.write(path, document, ['{"seed":'])
    assert _runs.read(path) == json.loads(path.read_text(encoding="utf-8")) == document
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3
    assert [kept.name for kept in path.parent.iterdir()] == ["x.json"]


def test_a_part_counts_from_one():
    assert _runs.part("2/5") == (2, 5)
    with pytest.raises(argparse.ArgumentTypeError, match="1 <= i <= N"):
        _runs.part("0/5")
