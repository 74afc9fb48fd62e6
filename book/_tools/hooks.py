"""A Sphinx extension with the hooks of the site that are too small for extensions of their own."""

import hashlib
import html
import re
from pathlib import Path

# A page read from a disk is no "self" to every browser; there the scripts beside it are `file:`.
# Styles may stand in the page: MathJax and the figures set them while it is shown.
POLICY = "; ".join(
    [
        "default-src 'self' file:",
        "script-src 'self' file:",
        "style-src 'self' 'unsafe-inline' file:",
        "img-src 'self' data: file:",
        "font-src 'self' data: file:",
        "object-src 'none'",
        "base-uri 'none'",
    ]
)
META = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'

# The page that leads on to the first one has no head.
HEAD = re.compile(r"<head>|\A(?!.*<head>)", re.S)
# Data for scripts has a type, and stays.
SCRIPT = re.compile(r"<script(?: data-cfasync=\"false\")?>(.*?)</script>", re.S)
HANDLER = re.compile(r"(<[a-z]+\b[^>]*?) on([a-z]+)=\"([^\"]*)\"")
LISTEN = """document.addEventListener("DOMContentLoaded", () => {{
  for (const node of document.querySelectorAll('[data-on{event}="{name}"]')) {{
    node.addEventListener("{event}", function (event) {{ {code}; }});
  }}
}});
"""
# The marks behind the numbers of an alt text, in the text of a notebook.
ALT = re.compile(r'"alt": "(?:[^"\\]|\\.)*"')
# What sphinx-thebe leaves in the text of a page.
THEBE = re.compile(
    r"<script type=\"text/x-thebe-config\">.*?</script>|<script>kernelName = .*?</script>", re.S
)


def drop_marks(app, docname, source):
    """Take the marks out of alt texts, where a comment would be read aloud."""
    source[0] = ALT.sub(lambda found: re.sub(r"<!--.*?-->", "", found[0]), source[0])


def drop_thebe(app, pagename, templatename, context, doctree):
    """Take out sphinx-thebe, which jupyter-book always loads to run code on a remote server."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not _is_thebe(file)]


def _is_thebe(file):
    body = getattr(file, "attributes", {}).get("body") or ""
    return "thebe" in f"{getattr(file, 'filename', file)} {body}".lower()


def forbid_inline_scripts(app, error):
    """Give every page a policy that allows scripts of the site alone.

    A browser cannot tell the scripts and click handlers that the theme writes into its pages from
    those that an attacker wrote there. So each moves into a file below ``_static/moved``.
    """
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    folder = site / "_static" / "moved"
    folder.mkdir(parents=True, exist_ok=True)
    for path in site.rglob("*.html"):
        # The page for lost readers is shown at any address, so its own are absolute.
        home = app.config.notfound_urls_prefix
        if path.name != "404.html":
            home = "../" * (len(path.relative_to(site).parts) - 1)
        page, files = move_scripts(path.read_text(encoding="utf-8"), f"{home}_static/moved/")
        path.write_text(page, encoding="utf-8")
        for name, code in files.items():
            (folder / name).write_text(code, encoding="utf-8")


def move_scripts(page, address):
    """Return a page without inline scripts, and the files that they became, by name.

    ``address`` is what stands in the page before the name of a file.
    """
    files = {}

    def move(code):
        name = f"{_hash(code)}.js"
        files[name] = code
        return f'<script src="{address}{name}"></script>'

    def mark(match):
        start, event, code = match[1], match[2], html.unescape(match[3])
        name = _hash(code)
        listeners.add(LISTEN.format(event=event, name=name, code=code))
        return f'{start} data-on{event}="{name}"'

    listeners = set()
    page = SCRIPT.sub(lambda match: move(match[1]), THEBE.sub("", page))
    page = HANDLER.sub(mark, page)
    if listeners:
        page = page.replace("</head>", f"{move(''.join(sorted(listeners)))}\n</head>", 1)
    return HEAD.sub(lambda found: f"{found[0]}{META}", page, count=1), files


def _hash(code):
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def setup(app):
    """Connect to Sphinx."""
    app.connect("source-read", drop_marks)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", forbid_inline_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
