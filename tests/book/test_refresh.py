"""A notebook is run when it says something new itself; what follows from the rest is written."""

import json
import shutil

import pytest
import refresh

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
DRAWING = """import matplotlib.pyplot as plt
plt.plot([0, {height}])
plt.show()"""
CITED = "Warner ([1965](https://doi.org/10.1080/01621459.1965.10480775)) says so."


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a small notebook of sources; a tuple also has tags."""

    def write_cells(*sources):
        cells = [_cell(number, source) for number, source in enumerate(sources)]
        path = tmp_path / "book" / "small.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
        return path

    return write_cells


def _cell(number, source):
    cell = {"id": f"cell-{number}", "metadata": {}}
    if isinstance(source, str):
        return cell | {"cell_type": "markdown", "source": source}
    text, *tags = source
    code = {"cell_type": "code", "outputs": [], "execution_count": None, "source": text}
    return cell | code | {"metadata": {"tags": tags}}


def _texts(path):
    cells = refresh.code_cells(refresh.read(path))
    return ["".join("".join(output.get("text", "")) for output in c["outputs"]) for c in cells]


def test_a_run_stores_outputs_numbers_cells_and_says_where_it_ran(write, tmp_path, capsys):
    path = write(("import sys\nprint(1)\nprint(2)",), ("None",), ("6 * 7",))
    assert refresh.main([], tmp_path) == 0
    book = refresh.read(path)
    assert [cell["execution_count"] for cell in refresh.code_cells(book)] == [1, 2, 3]
    assert _texts(path)[0] == "1\n2\n"
    assert book["metadata"]["dpnotes"]["device"] == "cpu"
    stored = path.read_bytes()
    assert refresh.main(["--force"], tmp_path) == 0
    assert path.read_bytes() == stored
    capsys.readouterr()
    assert refresh.main(["small"], tmp_path) == 0
    assert capsys.readouterr().out == "0 run, 1 fresh\n"


def test_prose_follows_without_a_run(write, tmp_path, capsys):
    keeping = "from dpnotes._pages import keep\nkeep(share=43.75)"
    path = write("# Title", (keeping, "hide-input"), "?<!-- share:.1f --> %", "## Sources")
    refresh.main([], tmp_path)
    book = refresh.read(path)
    assert book["cells"][1]["metadata"]["jupyter"] == {"source_hidden": True}
    assert book["cells"][2]["source"] == "43.8<!-- share:.1f --> %"
    book["cells"][2]["source"] = f"?<!-- share:.2f --> %. {CITED}"
    refresh.write(path, book)
    capsys.readouterr()
    assert refresh.main([], tmp_path) == 0
    assert capsys.readouterr().out == "0 run, 1 fresh\n"
    cells = refresh.read(path)["cells"]
    assert cells[2]["source"].startswith("43.75<!-- share:.2f --> %")
    assert "Stanley L. Warner" in cells[3]["source"]


def test_code_data_and_style_make_a_notebook_stale_and_the_package_does_not(write, tmp_path):
    for folder in ("data/results", "dpnotes", "book"):
        (tmp_path / folder).mkdir(parents=True)
    parts = {
        "data/datasets.toml": "[adult]\nparts = 'adult'\n[mnist]\nparts = 'mnist'\n",
        "data/results/pate.jsonl": "{}\n",
        "data/results/other.jsonl": "{}\n",
        "dpnotes/audit.py": "PATIENCE = 5\n",
        "book/figures.mplstyle": "figure.dpi: 144\n",
    }
    for name, text in parts.items():
        (tmp_path / name).write_text(text)
    code = "from dpnotes import audit, datasets\nplt.style.use('figures.mplstyle')\n"
    path = write((code + "datasets.load_adult()\ndatasets.load_results('pate')",), "A sentence.")
    book = json.loads(path.read_text())
    book["metadata"]["dpnotes"] = {"hash": refresh.hashes(refresh.read(path), tmp_path)}
    path.write_text(json.dumps(book))

    def reason_after(name, old, new):
        file = tmp_path / name
        text = file.read_text()
        file.write_text(text.replace(old, new))
        reason = refresh.stale(path, tmp_path)
        file.write_text(text)
        return reason

    assert refresh.stale(path, tmp_path) is None
    assert reason_after("dpnotes/audit.py", "5", "6") is None
    assert reason_after("data/datasets.toml", "'mnist'", "'other'") is None
    assert reason_after("data/results/other.jsonl", "{}", "{1}") is None
    assert reason_after("book/small.ipynb", "A sentence.", "Another.") is None
    changed = "changed since it was run: "
    assert reason_after("book/small.ipynb", "load_adult()", "load_adult(1)") == changed + "code"
    assert reason_after("data/datasets.toml", "'adult'", "'other'") == changed + "data"
    assert reason_after("data/results/pate.jsonl", "{}", "{1}") == changed + "data"
    assert reason_after("book/figures.mplstyle", "144", "100") == changed + "style"


def test_a_failing_cell_is_shown_and_leaves_the_notebook_alone(write, tmp_path, capsys):
    path = write(("print(1)",), ("1 / 0  # here",))
    before = path.read_bytes()
    assert refresh.main([], tmp_path) == 1
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["small.ipynb"]
    shown = capsys.readouterr().out
    assert "1 / 0  # here" in shown
    assert "ZeroDivisionError" in shown


def test_a_cell_without_its_data_keeps_its_output(write, tmp_path, monkeypatch, capsys):
    path = write(("print('one')",), ("print('one')", "needs-mnist"))
    monkeypatch.setattr(refresh, "missing_data", lambda tag: None)
    assert refresh.main([], tmp_path) == 0
    path.write_text(path.read_text().replace("print('one')", "print('two')"))
    monkeypatch.setattr(refresh, "missing_data", lambda tag: "absent")
    assert refresh.main([], tmp_path) == 0
    assert "cells tagged needs-mnist keep their outputs" in capsys.readouterr().out
    assert _texts(path) == ["two\n", "one\n"]


def test_a_forced_run_fails_where_a_picture_visibly_differs(write, tmp_path, capsys):
    path = write(("%matplotlib inline",), (DRAWING.format(height=1),))
    assert refresh.main([], tmp_path) == 0
    assert refresh.main(["--force"], tmp_path) == 0
    book = refresh.read(path)
    other = refresh.read(write(("%matplotlib inline",), (DRAWING.format(height=-1),)))
    book["cells"][1]["source"] = other["cells"][1]["source"]
    refresh.write(path, book)
    assert refresh.main(["--force"], tmp_path) == 1
    assert "the picture of cell 2 has changed" in capsys.readouterr().out


@pytest.mark.full
def test_what_nbval_finds_changed_is_run_again(write, tmp_path):
    pytest.importorskip("nbval")
    path = write(("print(1)",))
    refresh.main([], tmp_path)
    shutil.copy(path, path.with_name("fresh.ipynb"))
    path.write_text(path.read_text().replace('"1\\n"', '"2\\n"'))
    assert _texts(path) == ["2\n"]
    assert refresh.failed(tmp_path) == {path}


def test_a_notebook_with_the_marks_of_a_merge_is_named(tmp_path):
    path = tmp_path / "torn.ipynb"
    path.write_text('{\n<<<<<<< HEAD\n "cells": []\n=======\n>>>>>>> other\n}')
    with pytest.raises(ValueError, match=r"torn.ipynb is no notebook .* merge.* take one side"):
        refresh.read(path)
