"""A Sphinx extension that writes a feed of the changes, from CHANGELOG.md, as Atom."""

import hashlib
import os
import re
import time
from pathlib import Path
from xml.sax.saxutils import escape

FEED = "changes.xml"
VERSION = re.compile(
    r"^## (?P<version>\S+)(?: \((?P<when>[^)]*)\))?\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S
)
ITEM = re.compile(r"^- (.*?)(?=^- |\Z)", re.M | re.S)

START = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>Changes in dpnotes</title>
<id>{home}</id>
<link href="{home}"/>
<link rel="self" href="{home}{feed}"/>
<author><name>The dpnotes authors</name></author>
<updated>{updated}T00:00:00Z</updated>
"""
ENTRY = """<entry>
<title>{title}</title>
<id>{home}#{number}</id>
<link href="{home}"/>
<updated>{when}T00:00:00Z</updated>
<content type="text">{text}</content>
</entry>
"""


def changes(text):
    """Return ``(version, date or None, change)`` for each change of a changelog, newest first."""
    found = []
    for part in VERSION.finditer(text):
        date = part["when"] if re.fullmatch(r"\d{4}-\d\d-\d\d", part["when"] or "") else None
        items = [" ".join(item.split()) for item in ITEM.findall(part["text"])]
        found += [(part["version"], date, item) for item in items]
    return found


def feed(text, home, today):
    """Return the feed; what has no date yet is of today."""
    entries = changes(text)
    dated = [(version, date or today, change) for version, date, change in entries]
    updated = max((date for _, date, _ in dated), default=today)
    parts = [START.format(home=home, feed=FEED, updated=updated)]
    for version, when, change in dated:
        number = hashlib.sha256(change.encode()).hexdigest()[:16]
        title = escape(f"{version}: {_first_words(change)}")
        parts.append(
            ENTRY.format(title=title, home=home, number=number, when=when, text=escape(change))
        )
    return "".join(parts) + "</feed>\n"


def _first_words(change):
    sentence = re.split(r"(?<=[.:]) ", change)[0]
    return sentence if len(sentence) <= 80 else f"{sentence[:80].rsplit(' ', 1)[0]} …"


def write(app, error):
    """Write the feed beside the pages."""
    if error is None and app.builder.format == "html":
        log = (Path(app.confdir) / "CHANGELOG.md").read_text(encoding="utf-8")
        stamp = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
        today = time.strftime("%Y-%m-%d", time.gmtime(stamp))
        text = feed(log, app.config.html_baseurl, today)
        (Path(app.outdir) / FEED).write_text(text, encoding="utf-8")


def announce(app, pagename, templatename, context, doctree):
    """Tell readers of feeds, on every page, where it is."""
    link = f'<link rel="alternate" type="application/atom+xml" title="Changes" href="{{}}{FEED}"/>'
    home = "../" * pagename.count("/")
    context["metatags"] = context.get("metatags", "") + "\n" + link.format(home)


def setup(app):
    """Connect to Sphinx."""
    app.connect("build-finished", write)
    app.connect("html-page-context", announce)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
