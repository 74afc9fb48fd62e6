"""A Sphinx extension that fills the boxes to try things in, and lays Python beside them.

A page asks for a box with ``<div class="try-it" data-try="NAME" ...>``, where ``book/try/NAME.py``
is a program and ``NAME.txt`` what it prints; several names make a choice. The first line of a
program, a comment, is its title. The page holds both, for readers without scripts.
``python book/_tools/try/try_it.py`` runs all programs and writes what they print.
"""

import contextlib
import html
import io
import json
import re
import shutil
from pathlib import Path

import engine
import harness
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "book" / "try"
BOX = re.compile(r'<div class="try-it" data-try="([\w ]+)"([^>]*)>.*?</div>', re.S)
ABSENT = "This copy of the book was built without the Python that runs it here."


def title(source):
    """Return the first line of a program, without its mark."""
    return source.partition("\n")[0].removeprefix("# ").rstrip(".")


def printed(source):
    """Return what a program prints, here and now."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        harness.run(source)
    return out.getvalue()


def filled(page, has_engine=None):
    """Return a page with the programs in its boxes; `has_engine` lists what will run them."""

    def box(match):
        names, others = match[1].split(), match[2]
        programs = "".join(_program(name) for name in names)
        words = "" if has_engine else f"<p>{ABSENT}</p>"
        return (
            f'<div class="try-it" data-try="{match[1]}"{_data(has_engine)}{others}>'
            f'<div class="still">{words}{programs}</div></div>'
        )

    return BOX.sub(box, page)


def _program(name):
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    output = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    code = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return (
        f'<div class="program" data-title="{html.escape(title(source))}">'
        f'<div class="highlight"><pre class="code">{code}</pre></div>'
        f'<p>It prints:</p><pre class="printed">{html.escape(output)}</pre></div>'
    )


def _data(listed):
    """Return what the box says of the engine before anything is loaded: its size and its file."""
    if not listed:
        return ""
    size = sum(part["size"] for part in listed.values())
    return f' data-megabytes="{size / 1e6:.0f}" data-file="{listed["python"]["file"]}"'


def fill(app, pagename, templatename, context, doctree):
    """Fill the boxes of a page."""
    if "body" in context and "try-it" in context["body"]:
        context["body"] = filled(context["body"], engine.manifest().get("parts"))


def package():
    """Return dpnotes and what runs a program, as a zip that Python imports from."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "dpnotes").rglob("*.py")
    }
    return engine.zipped(files | {"harness.py": Path(harness.__file__).read_bytes()})


def lay(app, error):
    """Copy the engine to the site, and the package beside it."""
    if error is not None or app.builder.format != "html" or not engine.manifest():
        return
    folder = Path(app.outdir) / "_static" / "try" / "engine"
    shutil.copytree(engine.ENGINE, folder, dirs_exist_ok=True)
    listed = engine.manifest()
    listed["parts"]["dpnotes"] = engine.part(folder, "dpnotes", "zip", package())
    (folder / engine.MANIFEST).write_text(json.dumps(listed), encoding="utf-8")


def setup(app):
    """Connect to Sphinx."""
    app.connect("html-page-context", fill)
    app.connect("build-finished", lay)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main():
    """Write what every program prints."""
    for path in sorted(PROGRAMS.glob("*.py")):
        output = printed(path.read_text(encoding="utf-8"))
        path.with_suffix(".txt").write_text(output, encoding="utf-8")


if __name__ == "__main__":
    main()
