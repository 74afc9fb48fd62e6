"""Run the notebooks that are stale, and say which ones are.

A notebook carries, in its metadata under ``dpnotes``, a hash of all that its outputs depend on: its
own code cells, and what they reach (see `reach`): the modules that they import, the data that they
load and the style of the figures. Where one of them has changed since, the notebook is stale.

``python book/_tools/refresh.py`` runs all stale notebooks, or those it is given; ``--force`` runs
fresh ones too. Cells tagged ``needs-cifar10`` and the like are left as they are where their data
is absent. In every notebook it writes anew what follows from the rest: the numbers in the prose
(see `marks`), the list of sources (see `sources`), the quiz (see `quizzes`), the reading time, and
which code is folded.
"""

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import marks
import measure
import quizzes
import reach
import sources

ROOT = Path(__file__).resolve().parents[2]
BIBLIOGRAPHY = ROOT / "book" / "references.bib"

# A cell tagged `needs-NAME` wants what `datasets.load_NAME()` loads; votes come in several files.
NEEDS = "needs-"
LOADERS = {"needs-votes": lambda datasets: datasets.load_pate_votes("mnist_250_teachers")}

CELL_METADATA = {"tags", "jupyter", "mystnb"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def pages(kind, root=ROOT):
    """Every file of one kind in the book and its folders, sorted; none in ``_static``."""
    found = (root / "book").rglob(f"*{kind}")
    return sorted(path for path in found if not _hidden(path.relative_to(root)))


def _hidden(path):
    return any(part.startswith((".", "_")) for part in path.parts)


def notebooks(root=ROOT):
    """Every notebook of the book, sorted by name."""
    return pages(".ipynb", root)


def name(path, root=ROOT):
    """Name a notebook by its way from the book's folder, as a table of contents does."""
    return path.relative_to(root / "book").with_suffix("").as_posix()


def read(path):
    """Read a notebook as plain dictionaries, each source as one string."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is no notebook ({error}). If a merge left its marks in it, take one side "
            f"(git checkout --ours {path}), then run make refresh"
        ) from error


def parse(text):
    """Return a notebook from its text, as ``read`` does."""
    book = json.loads(text)
    for cell in book["cells"]:
        cell["source"] = "".join(cell["source"])
    return book


def tags(cell):
    """Return the set of a cell's tags."""
    return set(cell.get("metadata", {}).get("tags", []))


def code_cells(book):
    """Return a notebook's code cells in order."""
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def data_tags(book):
    """Return the ``needs-...`` tags that a notebook's cells carry."""
    found = {tag for cell in code_cells(book) for tag in tags(cell)}
    return {tag for tag in found if tag.startswith(NEEDS)}


def hashes(book, root=ROOT):
    """Hash what a notebook's outputs depend on, part by part."""
    return reach.hashes([cell["source"] for cell in code_cells(book)], root)


def stale(path, root=ROOT):
    """Say why a notebook's outputs can't be trusted, or None when they can."""
    book = read(path)
    stored = book["metadata"].get("dpnotes", {}).get("hash")
    if not stored:
        return "it has not been run by `make refresh`"
    now = hashes(book, root)
    changed = [name for name in now if stored.get(name) != now[name]]
    return f"changed since it was run: {', '.join(changed)}" if changed else None


def outdated(path):
    """Name what an older run left although its data is here now, or None."""
    kept = read(path)["metadata"].get("dpnotes", {}).get("kept", {})
    found = [tag for tag in kept if missing_data(tag) is None]
    return f"outputs of an older run: {', '.join(found)}" if found else None


@functools.cache
def missing_data(tag):
    """Say why the data behind a ``needs-...`` tag can't be loaded, or None when it can."""
    from dpnotes import datasets

    load = LOADERS.get(tag) or _loader(tag, datasets)
    try:
        load(datasets)
    except datasets.DatasetUnavailable as error:
        return str(error)
    return None


def _loader(tag, datasets):
    name = f"load_{tag.removeprefix(NEEDS)}"
    if not hasattr(datasets, name):
        raise ValueError(
            f"{tag}: no {name} in dpnotes.datasets, and no entry in LOADERS of refresh.py"
        )
    return lambda datasets: getattr(datasets, name)()


def execute(path, timeout=600, root=ROOT):
    """Run a notebook from top to bottom and return it with its new outputs."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.from_dict(read(path))
    absent = {tag for tag in data_tags(book) if missing_data(tag)}
    skipped = [cell for cell in code_cells(book) if tags(cell) & absent]
    for cell in skipped:
        cell.metadata["tags"] = [*cell.metadata["tags"], "skip-execution"]
    client = NotebookClient(
        book,
        timeout=timeout,
        # On a busy machine outputs come late; without this they would be lost in silence.
        iopub_timeout=timeout,
        raise_on_iopub_timeout=True,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(Path(path).parent)}},
        on_cell_execute=_progress(name(path, root), len(book.cells)),
    )
    client.execute(env=_environment(root))
    for cell in skipped:
        cell.metadata["tags"].remove("skip-execution")
    book.cells = quizzes.filled(book.cells, path)
    return normalise(book, provenance(book, absent, root))


def _progress(name, total):
    def show(cell, cell_index):
        print(f"\r  {name}: cell {cell_index + 1} of {total} ", end="", flush=True)

    return show


def _environment(root):
    paths = [str(root), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "DPNOTES_DEVICE": _device(),
    }


def _device():
    return os.environ.get("DPNOTES_DEVICE", "cpu")


def provenance(book, absent, root=ROOT):
    """Say what the outputs come from; ``kept`` names what an older run left, with its hashes."""
    old = book["metadata"].get("dpnotes", {})
    now = hashes(book, root)
    kept = {tag: old.get("kept", {}).get(tag, old.get("hash", {})) for tag in sorted(absent)}
    return {
        "hash": now,
        "device": _device(),
        "data": sorted(tag.removeprefix("needs-") for tag in data_tags(book) - absent),
        "kept": {tag: hash for tag, hash in kept.items() if hash != now},
    }


def normalise(book, dpnotes):
    """Return a notebook without what differs from run to run: times, widgets, versions."""
    cells = [_normalise_cell(cell) for cell in written(book["cells"])]
    for number, cell in enumerate((c for c in cells if "outputs" in c), start=1):
        _number(cell, number)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "dpnotes": dpnotes}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _normalise_cell(cell):
    metadata = {key: value for key, value in cell["metadata"].items() if key in CELL_METADATA}
    if cell["cell_type"] == "code":
        metadata = _folded(metadata)
    return {**cell, "metadata": metadata, "source": _lines(cell["source"])}


def _folded(metadata):
    """Fold in JupyterLab what is folded in the site."""
    others = {key: value for key, value in metadata.items() if key != "jupyter"}
    hidden = measure.HIDDEN & set(metadata.get("tags", []))
    return others | ({"jupyter": {"source_hidden": True}} if hidden else {})


def numbers(cells):
    """Return the numbers that the prose of a page may show: those kept, and the reading time."""
    return marks.kept(cells) | {marks.READING_TIME: measure.measure(cells).minutes}


def written(cells):
    """Return the cells with the numbers, the reading time and the sources that belong to them."""
    known = numbers(cells)
    foot = sources.listed(sources.above(cells), BIBLIOGRAPHY)
    return [_written(cell, known, foot) for cell in cells]


def _written(cell, known, foot):
    text = "".join(cell["source"])
    if cell["cell_type"] != "markdown":
        return cell
    return {
        **cell,
        "source": foot if text.startswith(sources.HEADING) else marks.written(text, known),
    }


def _number(cell, number):
    if cell["execution_count"] is None:
        return
    cell["execution_count"] = number
    cell["outputs"] = [_normalise_output(output, number) for output in cell["outputs"]]


def _normalise_output(output, number):
    output = dict(output)
    if output["output_type"] == "execute_result":
        output["execution_count"] = number
    if "text" in output:
        output["text"] = _lines(output["text"])
    if "data" in output:
        output["data"] = {kind: _data(kind, value) for kind, value in output["data"].items()}
    return output


def _data(kind, value):
    return _lines(value) if kind.startswith("text/") or kind == "image/svg+xml" else value


def _lines(text):
    return "".join(text).splitlines(keepends=True)


def write(path, book):
    """Write a notebook in one step, so that a reader finds the old one or the new one."""
    _write(path, _text(book))


def _text(book):
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _write(path, text):
    handle, temporary = tempfile.mkstemp(dir=Path(path).parent, suffix=".tmp")
    with open(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def refresh(path, timeout=600, root=ROOT):
    """Run one notebook and store it; after an error show the cell and leave the file alone."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    start = time.perf_counter()
    try:
        book = execute(path, timeout, root)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        print(f"\r{name(path, root)}.ipynb: failed, left as it was\n{error}", flush=True)
        return False
    write(path, book)
    seconds = time.perf_counter() - start
    print(f"\r{name(path, root)}.ipynb: run in {seconds:.0f} s" + " " * 20, flush=True)
    for tag in book["metadata"]["dpnotes"]["kept"]:
        print(f"  cells tagged {tag} keep the outputs of an older run: {missing_data(tag)}")
    return True


def rewrite(path):
    """Write the prose of a fresh notebook anew; nothing is run."""
    book = read(path)
    book["cells"] = quizzes.filled(book["cells"], path)
    text = _text(normalise(book, book["metadata"].get("dpnotes", {})))
    if text != path.read_text(encoding="utf-8"):
        _write(path, text)
    return True


def _named(names, root):
    known = {name(path, root): path for path in notebooks(root)}
    wanted = [word.removeprefix("book/").removesuffix(".ipynb") for word in names] or list(known)
    unknown = [word for word in wanted if word not in known]
    if unknown:
        sys.exit(f"no such notebook: {', '.join(unknown)} (there are: {', '.join(known)})")
    return [known[word] for word in wanted]


def main(arguments=None, root=ROOT):
    """Refresh what the command line asks for; the exit status is 1 when a notebook failed."""
    parser = argparse.ArgumentParser(description="Run the notebooks that are stale.")
    parser.add_argument("notebooks", nargs="*", help="names; default: all")
    parser.add_argument("--force", action="store_true", help="run fresh notebooks too")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one cell")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(root))
    passed = True
    for path in _named(options.notebooks, root):
        reason = "asked for by --force" if options.force else stale(path, root)
        reason = reason or outdated(path)
        print(f"{name(path, root)}.ipynb: {reason or 'fresh'}", flush=True)
        try:
            passed &= refresh(path, options.timeout, root) if reason else rewrite(path)
        except quizzes.QuizError as error:
            sys.exit(str(error))
    if root == ROOT:
        # Here, as that module reads pages with this one.
        import routes
        import translations

        routes.write()
        for line in translations.report():
            print(line)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
