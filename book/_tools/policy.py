"""A Sphinx extension that forbids every page to run a script that is not a file of the site.

The theme writes scripts and click handlers into its pages, and a browser cannot tell them from
those that an attacker wrote there. So when the pages are done, each moves into a file of its own,
and each page gets a content security policy that allows no other kind. Styles may stay in the page:
MathJax and the figures set them while it is shown.
"""

import hashlib
import html
import re
from pathlib import Path

import built

# A page read from a disk is no "self" to every browser; there the scripts beside it are `file:`.
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

HEAD = re.compile(r"<head>|\A(?!.*<head>)", re.S)
# Scripts that follow each other become one file. Data for scripts has a type and stays.
INLINE = re.compile(r"<script(?: data-cfasync=\"false\")?>(.*?)</script>", re.S)
NEIGHBOURS = re.compile(rf"{INLINE.pattern}(?:\s*{INLINE.pattern})*", re.S)
# sphinx-thebe is not used, see offline.py; this is what it leaves in the text of a page.
THEBE = re.compile(
    r"<script type=\"text/x-thebe-config\">.*?</script>|<script>kernelName = .*?</script>", re.S
)
HANDLER = re.compile(r"(<[a-z]+\b[^>]*?) on([a-z]+)=\"([^\"]*)\"")
LISTEN = """document.addEventListener("DOMContentLoaded", () => {{
  for (const node of document.querySelectorAll('[data-on{event}="{name}"]')) {{
    node.addEventListener("{event}", function (event) {{ {code}; }});
  }}
}});
"""


def guarded(page, address):
    """Return a page without inline scripts, and the files that they became, by name.

    ``address`` is what stands in the page before the name of a file.
    """
    files = {}

    def script(code):
        name = f"{_digest(code)}.js"
        files[name] = code
        return f'<script src="{address}{name}"></script>'

    def moved(match):
        return script(";\n".join(part.strip() for part in INLINE.findall(match[0])))

    listeners = {}

    def marked(match):
        start, event, code = match[1], match[2], html.unescape(match[3])
        name = _digest(code)
        listeners[event, name] = LISTEN.format(event=event, name=name, code=code)
        return f'{start} data-on{event}="{name}"'

    page = NEIGHBOURS.sub(moved, THEBE.sub("", page))
    page = HANDLER.sub(marked, page)
    if listeners:
        listening = script("".join(listeners[key] for key in sorted(listeners)))
        page = page.replace("</head>", f"{listening}\n</head>", 1)
    return HEAD.sub(lambda found: f"{found[0]}{META}", page, count=1), files


def _digest(code):
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def guard(app, error):
    """Move the scripts of all pages into files below ``_static/moved``."""
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    folder = site / "_static" / "moved"
    folder.mkdir(parents=True, exist_ok=True)
    for path in built.pages(site):
        page, files = guarded(path.read_text(encoding="utf-8"), _address(app, path, site))
        path.write_text(page, encoding="utf-8")
        for name, code in files.items():
            (folder / name).write_text(code, encoding="utf-8")


def _address(app, path, site):
    if path.name == "404.html":
        # It is shown at any address, so its own are absolute.
        return f"{app.config.notfound_urls_prefix}_static/moved/"
    return "../" * (len(path.relative_to(site).parts) - 1) + "_static/moved/"


def setup(app):
    """Connect to Sphinx."""
    app.connect("build-finished", guard)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
