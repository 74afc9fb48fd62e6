"""Catalogues for a full translation, in which numbers have names.

A number in the prose stands before a mark, ``43.8<!-- flipped:.1f -->``, and changes when a
notebook is run again. A catalogue holds ``⟦flipped:.1f⟧`` in its place, so a run changes no
message, and a translator moves the name to where the number belongs. When the book is built in
another language, the numbers come back.

``python book/_tools/messages.py`` writes ``_build/gettext/**/*.pot``, a file for each page;
``python book/_tools/messages.py zh_CN`` builds the site with the catalogues in ``locales/zh_CN/
LC_MESSAGES`` into ``_build/html_zh_CN``. What has no translation stays English.
"""

import argparse
import json
import re
import sys

import marks
import refresh

ROOT = refresh.ROOT
NAMED = re.compile(r"⟦(\w+(?::[^⟧\s]+)?)⟧")
SHOWN = "dpnotes_shown"


def named(text):
    """Return a text with names in place of its numbers, and the number of each name."""
    numbers = {}

    def name(match):
        key = match["name"] + (f":{match['spec']}" if match["spec"] else "")
        numbers[key] = match["shown"]
        return f"⟦{key}⟧"

    return marks.MARK.sub(name, text), numbers


def named_notebook(text):
    """Do the same in the prose of a notebook; in its pictures the search would take minutes."""
    book, numbers = json.loads(text), {}
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"], found = named("".join(cell["source"]))
            numbers |= found
    return json.dumps(book), numbers


def numbered(text, numbers):
    """Return a text with the numbers back in their places; a name that is not known stays."""
    return NAMED.sub(lambda match: numbers.get(match[1], match[0]), text)


def _in_english(app):
    return app.config.language in (None, "en") and app.builder.name != "gettext"


def take_out(app, docname, source):
    """Put names in place of numbers before a page is read; pages in English stay as they are."""
    if not _in_english(app):
        is_notebook = str(app.env.doc2path(docname)).endswith(".ipynb")
        rename = named_notebook if is_notebook else named
        source[0], app.env.temp_data[SHOWN] = rename(source[0])


def put_back(app, doctree):
    """Put the numbers back when the messages are translated."""
    from docutils import nodes

    if _in_english(app) or app.builder.name == "gettext":
        return
    numbers = app.env.temp_data.get(SHOWN, {})
    for node in list(doctree.findall(nodes.Text)):
        new = numbered(node.astext(), numbers)
        if new != node.astext():
            node.parent.replace(node, nodes.Text(new))


def setup(app):
    """Connect to Sphinx."""
    app.connect("source-read", take_out)
    app.connect("doctree-read", put_back, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def build(language=None, root=ROOT):
    """Write the catalogues, or the site in a language; return Sphinx' exit status."""
    from jupyter_book.sphinx import build_sphinx

    # The first two are what jupyter-book's own command line hands over.
    options = {
        "external_toc_path": "_toc.yml",
        "latex_individualpages": False,
        "gettext_compact": False,
    }
    options |= {"language": language} if language else {}
    folder = f"html_{language}" if language else "gettext"
    done = build_sphinx(
        root,
        root / "_build" / folder,
        # Pages read for one language or one builder are no use to another.
        doctreedir=root / "_build" / f".doctrees_{folder}",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides=options,
        builder="html" if language else "gettext",
        freshenv=True,
        quiet=True,
    )
    print(f"Written to {(root / '_build' / folder).relative_to(root).as_posix()}.")
    return done


def main(arguments=None):
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write catalogues, or build with them.")
    parser.add_argument("language", nargs="?", help="such as zh_CN; none writes the catalogues")
    status = build(parser.parse_args(arguments).language)
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    sys.exit(main())
