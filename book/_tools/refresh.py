"""Run the notebooks that are stale, and say which ones are.

A notebook carries, in its metadata under ``dpnotes``, a hash of what it says itself: its code
cells, the data files that they load, and the style of its figures. Where one of them has changed
since it was run, the notebook is stale. What the package does is not in the hash, because
``pytest --nbval`` runs every notebook and compares what it prints.

``python book/_tools/refresh.py`` runs the stale notebooks, two at a time, ``--failed`` those that
print something else by now, and ``--force`` all. A forced run fails where a picture visibly
differs from the stored one, which nbval does not see. Cells tagged ``needs-cifar10`` and the like
keep their outputs where their data is absent. Every notebook gets anew what follows from the rest:
the numbers in its prose (see `marks`), its list of sources (see `sources`), its reading time, and
which code is folded.
"""

import argparse
import base64
import copy
import functools
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import nbformat

import marks
import measure
import sources

ROOT = Path(__file__).resolve().parents[2]

STYLE = "figures.mplstyle"

# Root mean square of the difference of two pictures, of 255, from which an eye sees it.
VISIBLE = 4.0
TIMEOUT = 600  # seconds for one cell

# A cell tagged `needs-NAME` wants what `datasets.load_NAME()` loads; votes come in several files.
NEEDS = "needs-"
LOADERS = {"needs-votes": ("load_pate_votes", "mnist_250_teachers")}

CELL_METADATA = {"tags", "mystnb"}
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
    names = sorted(path.relative_to(root) for path in (root / "book").rglob(f"*{kind}"))
    return [root / name for name in names if not re.search(r"(^|/)[._]", name.as_posix())]


def notebooks(root=ROOT):
    """Every notebook of the book, sorted by name."""
    return pages(".ipynb", root)


def name(path, root=ROOT):
    """Name a notebook by its way from the book's folder, as a table of contents does."""
    return path.relative_to(root / "book").with_suffix("").as_posix()


def read(path):
    """Read a notebook, each source as one string."""
    try:
        return nbformat.v4.reads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is no notebook ({error}). If a merge left its marks in it, take one side "
            f"(git checkout --ours {path}), then run make refresh"
        ) from error


def prose_of(cells):
    """Return the Markdown of cells in one piece."""
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")


def prose_in(path):
    """Return the prose of a page in one piece."""
    is_notebook = path.suffix == ".ipynb"
    return prose_of(read(path)["cells"]) if is_notebook else path.read_text(encoding="utf-8")


def tags(cell):
    """Return the set of a cell's tags."""
    return set(cell.get("metadata", {}).get("tags", []))


def alt_of(cell):
    """Return what a cell says of its picture to those who do not see it; marks may stand in it."""
    return cell.get("metadata", {}).get("mystnb", {}).get("image", {}).get("alt") or ""


def code_cells(book):
    """Return a notebook's code cells in order."""
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def data_tags(book):
    """Return the ``needs-...`` tags that a notebook's cells carry."""
    return {tag for cell in code_cells(book) for tag in tags(cell) if tag.startswith(NEEDS)}


def hashes(book, root=ROOT):
    """Hash the code cells of a notebook, the data that they load, and the style of its figures."""
    code = "\0".join(cell["source"].replace("\r\n", "\n") for cell in code_cells(book))
    style = _text_of(root / "book" / STYLE) if STYLE in code else ""
    return {
        "code": _digest(code),
        "data": _digest(_describe_data(code, root)),
        "style": _digest(style),
    }


def _describe_data(code, root):
    """Return a line for each data set and each file of results that code loads by its name."""
    loaded = set(re.findall(r"\bload_(\w+)", code))
    if not loaded:
        return ""
    words = loaded | set(re.findall(r"[\"'](\w+)[\"']", code))
    sets = tomllib.loads(_text_of(root / "data" / "datasets.toml"))
    lines = [f"{name} {known['parts']}" for name, known in sets.items() if name in words]
    if "results" in loaded:
        files = sorted((root / "data" / "results").glob("*.json*"))
        named = [file for file in files if file.name.split(".")[0] in words]
        lines += [f"{file.name} {_digest(_text_of(file))}" for file in named or files]
    return "\n".join(lines)


def _text_of(path):
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stale(path, root=ROOT):
    """Say why a notebook's outputs can't be trusted, or None when they can."""
    book = read(path)
    stored = book["metadata"].get("dpnotes", {}).get("hash")
    if not stored:
        return "it has not been run by `make refresh`"
    now = hashes(book, root)
    changed = [name for name in now if stored.get(name) != now[name]]
    return f"changed since it was run: {', '.join(changed)}" if changed else None


@functools.cache
def missing_data(tag):
    """Say why the data behind a ``needs-...`` tag can't be loaded, or None when it can."""
    from dpnotes import datasets

    loader, *arguments = LOADERS.get(tag, (f"load_{tag.removeprefix(NEEDS)}",))
    try:
        getattr(datasets, loader)(*arguments)
    except datasets.DatasetUnavailable as error:
        return str(error)
    return None


def execute(path, root=ROOT):
    """Run a notebook from top to bottom and return it with its new outputs."""
    from nbclient import NotebookClient

    book = read(path)
    absent = {tag for tag in data_tags(book) if missing_data(tag)}
    skipped = [cell for cell in code_cells(book) if tags(cell) & absent]
    for cell in skipped:
        cell.metadata["tags"] = [*cell.metadata["tags"], "skip-execution"]
    client = NotebookClient(
        book,
        timeout=TIMEOUT,
        # On a busy machine outputs come late; without this they would be lost in silence.
        iopub_timeout=TIMEOUT,
        raise_on_iopub_timeout=True,
        kernel_name="python3",
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(Path(path).parent)}},
    )
    paths = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    # A kernel has a core to itself: more threads than cores would wait for each other.
    env = {"DPNOTES_DEVICE": "cpu", "OMP_NUM_THREADS": "1"} | os.environ | {"PYTHONPATH": paths}
    client.execute(env=env)
    for cell in skipped:
        cell.metadata["tags"].remove("skip-execution")
    data = sorted(tag.removeprefix(NEEDS) for tag in data_tags(book) - absent)
    return normalise(book, hash=hashes(book, root), device=env["DPNOTES_DEVICE"], data=data)


def normalise(book, **ran):
    """Return a notebook with what follows from the rest, and without what differs between runs."""
    cells, number = copy.deepcopy(book["cells"]), 0
    known, foot = numbers(cells), sources.listed(sources.above(cells))
    for cell in cells:
        metadata = cell["metadata"]
        for key in metadata.keys() - CELL_METADATA:
            del metadata[key]
        if cell["cell_type"] == "markdown":
            is_foot = cell["source"].startswith(sources.HEADING)
            cell["source"] = foot if is_foot else marks.written(cell["source"], known)
        if cell["cell_type"] == "code":
            number += 1
            if alt := alt_of(cell):
                metadata["mystnb"]["image"]["alt"] = marks.written(alt, known)
            # What is folded in the site is folded in JupyterLab.
            if measure.HIDDEN & tags(cell):
                metadata["jupyter"] = {"source_hidden": True}
            for counted in [cell, *cell["outputs"]]:
                if counted.get("execution_count") is not None:
                    counted["execution_count"] = number
    dpnotes = book["metadata"].get("dpnotes", {}) | ran
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "dpnotes": dpnotes}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def numbers(cells):
    """Return the numbers that the prose of a page may show: those kept, and the reading time."""
    return marks.kept(cells) | {marks.READING_TIME: measure.count_minutes(cells)}


def write(path, book):
    """Write a notebook in one step, so that a reader finds the old one or the new one."""
    text = nbformat.v4.writes(nbformat.from_dict(book)) + "\n"
    if not path.exists() or text != path.read_text(encoding="utf-8"):
        new = path.with_suffix(".tmp")
        new.write_text(text, encoding="utf-8", newline="\n")
        os.replace(new, path)


def refresh(path, compare=False, root=ROOT):
    """Run one notebook and store it; return what to print, and whether all is well.

    After an error the file is left alone. Where pictures are compared, one that has changed is
    not well: it is stored all the same.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    start, title = time.perf_counter(), f"{name(path, root)}.ipynb"
    try:
        book = execute(path, root)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return f"{title}: failed, left as it was\n{error}", False
    changed = changed_pictures(read(path), book)
    write(path, book)
    lines = [f"{title}: run in {time.perf_counter() - start:.0f} s"]
    lines += [f"  the picture of cell {number} has changed" for number in changed]
    absent = [tag for tag in data_tags(book) if missing_data(tag)]
    lines += [f"  cells tagged {tag} keep their outputs" for tag in absent]
    return "\n".join(lines), not (compare and changed)


def changed_pictures(old, new):
    """Return the numbers of the code cells whose pictures visibly differ."""
    pairs = zip(code_cells(old), code_cells(new), strict=False)
    seen = [_differ_visibly(_pictures(before), _pictures(after)) for before, after in pairs]
    return [number for number, differs in enumerate(seen, start=1) if differs]


def _pictures(cell):
    import numpy as np
    from PIL import Image

    found = [output.get("data", {}).get("image/png") for output in cell["outputs"]]
    files = [io.BytesIO(base64.b64decode(picture)) for picture in found if picture]
    return [np.asarray(Image.open(file).convert("RGB"), dtype=float) for file in files]


def _differ_visibly(before, after):
    if [picture.shape for picture in before] != [picture.shape for picture in after]:
        return True
    pairs = zip(before, after, strict=True)
    return any(((a - b) ** 2).mean() > VISIBLE**2 for a, b in pairs)


def failed(root=ROOT):
    """Return the notebooks that print something else than what is stored, by running nbval."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "--tb=no", "-rf", "book"]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if shown.returncode not in (0, 1):
        sys.exit(shown.stdout + shown.stderr)
    return {root / file for file in re.findall(r"^FAILED (\S+\.ipynb)::", shown.stdout, re.M)}


def main(arguments=None, root=ROOT):
    """Refresh what the command line asks for; the exit status is 1 when a notebook failed."""
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(description="Run the notebooks that are stale.")
    parser.add_argument("notebooks", nargs="*", help="names; default: all")
    parser.add_argument("--force", action="store_true", help="run all, and compare their pictures")
    parser.add_argument("--failed", action="store_true", help="run those that nbval finds changed")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(root))
    known = {name(path, root): path for path in notebooks(root)}
    asked = [word.removeprefix("book/").removesuffix(".ipynb") for word in options.notebooks]
    if unknown := sorted(set(asked) - known.keys()):
        sys.exit(f"no such notebook: {', '.join(unknown)} (there are: {', '.join(known)})")
    paths = [known[word] for word in asked or known]
    wanted = failed(root) if options.failed else set(paths) if options.force else set()
    wanted |= {path for path in paths if stale(path, root)}
    # The prose of a fresh notebook is written anew; nothing is run.
    for path in set(paths) - wanted:
        write(path, normalise(read(path)))
    jobs = [delayed(refresh)(path, options.force, root) for path in sorted(wanted)]
    passed = True
    # A thread is enough: what takes time is the kernel, a process of its own.
    run = Parallel(min(2, len(jobs)) or 1, prefer="threads", return_as="generator_unordered")
    for shown, right in run(jobs):
        print(shown, flush=True)
        passed &= right
    print(f"{len(wanted)} run, {len(set(paths) - wanted)} fresh")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
