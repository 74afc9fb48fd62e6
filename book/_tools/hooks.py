"""A Sphinx extension with the hooks of the site that are too small for extensions of their own."""

import base64
import hashlib
import html
import re
from pathlib import Path

# A page read from a disk is no "self" to every browser; there the scripts beside it are `file:`.
# Styles may stand in the page: MathJax and the figures set them while it is shown.
POLICY = (
    "default-src 'self' file:; script-src 'self' file: 'unsafe-hashes' {hashes}; "
    "style-src 'self' 'unsafe-inline' file:; img-src 'self' data: file:; "
    "font-src 'self' data: file:; object-src 'none'; base-uri 'none'; "
    "form-action 'self' file:"
)

# The page that leads on to the first one has no head.
HEAD = re.compile(r"<head>|\A(?!.*<head>)", re.S)
# Data for scripts has a type, and stays.
SCRIPT = re.compile(r"<script(?: data-cfasync=\"false\")?>(.*?)</script>", re.S)
HANDLER = re.compile(r"<[a-z]+\b[^>]*? on[a-z]+=\"([^\"]*)\"")
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


def forbid_other_scripts(app, error):
    """Give every page a policy that allows scripts of the site, and those that are in it now.

    The theme writes scripts and click handlers into its pages. The policy names each by its hash,
    so a browser runs none that somebody writes there later.
    """
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(add_policy(path.read_text(encoding="utf-8")), encoding="utf-8")


def add_policy(page):
    """Return a page with its policy, and without what sphinx-thebe left in it."""
    page = THEBE.sub("", page)
    scripts = {*SCRIPT.findall(page), *map(html.unescape, HANDLER.findall(page))}
    digests = [hashlib.sha256(script.encode()).digest() for script in sorted(scripts)]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = f'content="{POLICY.format(hashes=hashes)}"'
    meta = f'<meta http-equiv="Content-Security-Policy" {policy} />'
    return HEAD.sub(lambda found: f"{found[0]}{meta}", page, count=1)


def setup(app):
    """Connect to Sphinx."""
    app.connect("source-read", drop_marks)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", forbid_other_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
