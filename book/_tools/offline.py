"""A Sphinx extension that keeps the site from reaching out.

jupyter-book always loads sphinx-thebe, which runs code on a remote server. The book runs nothing
in the page, so its scripts are left out; one of them is declared twice, an error in every browser.
"""


def drop_thebe(app, pagename, templatename, context, doctree):
    """Take the scripts and styles of sphinx-thebe out of a page."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not _is_thebe(file)]


def _is_thebe(file):
    body = getattr(file, "attributes", {}).get("body") or ""
    return "thebe" in f"{getattr(file, 'filename', file)} {body}".lower()


def setup(app):
    """Connect to Sphinx."""
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
