"""Print the book, or a chapter, as PDF: ``_build/pdf/NAME.pdf``.

``python book/_tools/pdf.py`` prints the whole book, ``python book/_tools/pdf.py pate audit`` these
two chapters, and ``--chapters`` each. Notebooks hold their figures as dots, so they are run again,
in a copy, for figures of lines; ``--stored`` takes them as they are. What the pages look like is in
``printed.py`` and in ``book/_print/preamble.tex``; this file checks what is needed, and runs Sphinx
and LaTeX.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LATEX = ROOT / "_build" / "latex"
PDF = ROOT / "_build" / "pdf"
BOOK = "dpnotes"

# What is looked for, and the Debian packages that have it.
PROGRAMS = {
    "xelatex": "texlive-xetex",
    "latexmk": "latexmk",
    "xindy": "xindy",
    "rsvg-convert": "librsvg2-bin",
}
STYLES = {
    "unicode-math.sty": "texlive-xetex",
    "tabulary.sty": "texlive-latex-extra",
    "tcolorbox.sty": "texlive-latex-extra",
    "texgyrepagella-regular.otf": "fonts-texgyre",
    "texgyrepagella-math.otf": "fonts-texgyre-math",
}
PACKAGES = [
    "texlive-xetex",
    "texlive-latex-recommended",
    "texlive-latex-extra",
    "texlive-fonts-recommended",
    "fonts-texgyre",
    "fonts-texgyre-math",
    "fonts-dejavu-core",
    "latexmk",
    "xindy",
    "librsvg2-bin",
]
INSTALL = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
WIDE = 10


def missing():
    """Return what is needed and not here."""
    found = [name for name in PROGRAMS if not shutil.which(name)]
    if shutil.which("kpsewhich"):
        found += [name for name in STYLES if not _run(["kpsewhich", name]).stdout.strip()]
    if (
        shutil.which("fc-list")
        and "DejaVu Sans Mono" not in _run(["fc-list", ":", "family"]).stdout
    ):
        found.append("the font DejaVu Sans Mono")
    return found


def _run(command, **options):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        **options,
    )


def date_of_change(root=ROOT):
    """Return when the book was changed last, in seconds: the same pages make the same file."""
    return _run(["git", "-C", str(root), "log", "-1", "--format=%ct"]).stdout.strip() or "0"


def draw(names, root):
    """Run the notebooks of these books and chapters where they are, for figures of lines."""
    import joblib

    settings = root / "_build" / "ipython" / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True)
    settings.write_text('c.InlineBackend.figure_formats = {"pdf", "png"}\n', encoding="utf-8")
    paths = [root / f"{page}.ipynb" for page in _pages(names)]
    drawn = [path for path in paths if path.exists() and '"image/png"' in path.read_text("utf-8")]
    print(f"running {len(drawn)} notebooks for their figures ...", flush=True)
    folder = str(settings.parents[1])
    joblib.Parallel(n_jobs=-1)(joblib.delayed(_draw)(path, root, folder) for path in drawn)


def _draw(path, root, folder):
    import refresh

    # Here, as this process may be older than the folder.
    os.environ["IPYTHONDIR"] = folder
    with contextlib.redirect_stdout(io.StringIO()):
        refresh.write(path, refresh.execute(path, root=root))


def _pages(names):
    """Return the pages of these books and chapters."""
    import printed

    toc = printed.read_toc(ROOT)
    chapters = printed.chapters(toc)
    whole = [name for _, _, of in printed.parts(toc) for pages in of for name in pages]
    return [page for name in names for page in (whole if name == BOOK else chapters[name])]


def copy(folder, root=ROOT):
    """Copy the book and what its notebooks need."""
    unneeded = shutil.ignore_patterns("_build", ".*", "__pycache__")
    return Path(shutil.copytree(root, folder, ignore=unneeded, dirs_exist_ok=True))


def write(names, root=ROOT):
    """Write the LaTeX of these books and chapters; return whether it went well."""
    from jupyter_book.sphinx import build_sphinx

    options = {
        "external_toc_path": "_toc.yml",
        "latex_individualpages": False,
        "printed": list(names),
    }
    done = build_sphinx(
        root,
        LATEX,
        doctreedir=root / "_build" / ".doctrees_latex",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides=options,
        builder="latex",
        quiet=True,
    )
    return done == 0


def typeset(name):
    """Make a PDF of the LaTeX; return the log of LaTeX, and whether it went well."""
    given = {"FORCE_SOURCE_DATE": "1", "XINDYOPTS": "-L english -C utf8 -M sphinx.xdy"}
    command = ["latexmk", "-pdfxe", "-dvi-", "-ps-", "-interaction=nonstopmode", f"{name}.tex"]
    done = _run(command, cwd=LATEX, env={**os.environ, **given})
    log = (LATEX / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    return log, done.returncode == 0


def wide_boxes(log, limit=WIDE):
    """Count the lines that stand out by more than ``limit`` points."""
    return sum(float(width) > limit for width in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log))


def errors(log):
    """Return what LaTeX stumbled over: its errors, and characters that no font has."""
    lost = re.findall(r"Missing character: .*", log)
    return re.findall(r"^! .*", log, re.M) + sorted(set(lost))


def pages(log):
    """Return how many pages LaTeX wrote."""
    found = re.search(r"Output written on \S+ \((\d+) pages?", log.replace("\n", ""))
    return int(found[1]) if found else 0


def main(arguments=None):
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description="Print the book, or chapters, as PDF.")
    parser.add_argument("names", nargs="*", help="chapters, such as pate; none prints the book")
    parser.add_argument("--chapters", action="store_true", help="print each chapter")
    stored = "take the figures that the notebooks hold, as dots, which is quicker"
    parser.add_argument("--stored", action="store_true", help=stored)
    options = parser.parse_args(arguments)
    names = _asked(options, parser)
    absent = missing()
    if absent:
        sys.exit(
            f"To print, {', '.join(absent)} is missing. On Debian or Ubuntu, as root:\n  {INSTALL}"
        )
    os.environ.setdefault("SOURCE_DATE_EPOCH", date_of_change())
    if options.stored:
        return 0 if _print(names) else 1
    with tempfile.TemporaryDirectory() as folder:
        root = copy(folder)
        draw(names, root)
        return 0 if _print(names, root) else 1


def _asked(options, parser):
    import printed

    known = printed.chapters(printed.read_toc(ROOT))
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no such chapter: {', '.join(unknown)} (there are: {', '.join(known)})")
    return list(known) if options.chapters else options.names or [BOOK]


def _print(names, root=ROOT):
    start = time.monotonic()
    if not write(names, root):
        return False
    PDF.mkdir(parents=True, exist_ok=True)
    all_well = True
    for name in names:
        log, well = typeset(name)
        for line in errors(log)[:20]:
            print(f"{name}: {line}", file=sys.stderr)
        all_well = all_well and well
        if well:
            to = shutil.copy(LATEX / f"{name}.pdf", PDF / f"{name}.pdf")
            size = Path(to).stat().st_size / 1e6
            print(f"{Path(to).relative_to(ROOT).as_posix()}: {pages(log)} pages, {size:.1f} MB")
            print(f"  {wide_boxes(log)} lines stand out by more than {WIDE} points")
    print(f"{time.monotonic() - start:.0f} s in all")
    return all_well


if __name__ == "__main__":
    sys.exit(main())
