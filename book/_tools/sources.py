"""The sources of a page: links that lead to an entry of ``references.bib``, listed at its foot.

A citation is a plain link, readable wherever a notebook is opened. ``refresh`` writes the list
below ``## Sources`` from these links, and ``lint`` compares it.
"""

import functools
import re
from pathlib import Path
from urllib.parse import unquote

import marks

BIBLIOGRAPHY = Path(__file__).parents[1] / "references.bib"
HEADING = "## Sources"
LINK = re.compile(r"\]\((https?://[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)")
# What the link of an entry says better.
LINKED = {"doi", "url", "note", "eprint", "archiveprefix", "primaryclass"}
# Whoever links there cites, so there must be an entry.
LIBRARIES = re.compile(r"https?://(?:dx\.)?(?:doi\.org|arxiv\.org|eprint\.iacr\.org)/", re.I)


def address(entry):
    """Return where an entry of the bibliography leads to: its DOI, or else its address."""
    doi = entry.fields.get("doi")
    return f"https://doi.org/{doi}" if doi else entry.fields.get("url")


@functools.cache
def entries():
    """Return the entries of the bibliography by their address, as in `_same`."""
    from pybtex.database import parse_file

    book = parse_file(str(BIBLIOGRAPHY), "bibtex")
    return {_same(address(entry)): entry for entry in book.entries.values() if address(entry)}


def _same(url):
    """Write an address so that two ways of writing it are one."""
    return unquote(url).rstrip("/").lower().replace("http://", "https://")


def cited(text):
    """Return the entries that a text links to, each once, in the order of author and year."""
    found = {_same(url) for url in LINK.findall(text)} & entries().keys()
    return sorted((entries()[url] for url in found), key=_order)


def unknown(text):
    """Yield ``(line, address)`` for each link to a library that no entry stands for."""
    for line, match in marks.find(LINK, text):
        if LIBRARIES.match(match[1]) and _same(match[1]) not in entries():
            yield line, match[1]


def listed(text):
    """Return the list of sources that belongs at the foot of a page."""
    return "\n".join([HEADING, "", *(f"- {_written(entry)}" for entry in cited(text))])


def above(cells):
    """Return the prose of a page without its list of sources."""
    texts = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join(text for text in texts if not text.startswith(HEADING))


def _order(entry):
    person = (entry.persons.get("author") or entry.persons.get("editor") or [""])[0]
    name = " ".join(getattr(person, "last_names", []))
    return name.lower(), entry.fields.get("year", ""), entry.fields.get("title", "")


@functools.cache
def _style():
    from pybtex.style.formatting.unsrt import Style

    return Style()


def _written(entry):
    """Write an entry as one line of Markdown that links to its address."""
    from pybtex.backends.plaintext import Backend
    from pybtex.database import Entry

    fields = {key: value for key, value in entry.fields.items() if key not in LINKED}
    plain = Entry(entry.type, fields, entry.persons)
    plain.key = entry.key
    [formatted] = _style().format_entries([plain])
    text = formatted.text.render(Backend())
    text = re.sub(r"\s+", " ", text).strip().replace("*", r"\*").replace("$", r"\$")
    return f"{text} [{_short(address(entry))}](<{address(entry)}>)"


def _short(url):
    return re.sub(r"^https?://(?:doi\.org/)?", "", url)
