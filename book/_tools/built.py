"""Check the built site: nothing foreign is loaded, every link arrives, no page is heavy.

A rule takes the folder of the site and yields one message for each problem. What a page asks for
while it runs is left to the browser tests.
"""

import functools
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST_PAGE = 1_500_000
RUNNING = {"", "module", "text/javascript", "application/javascript"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest"}


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors, self.classes = [], [], set(), set()
        self.policy, self.inline, self.card = None, [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self._note_scripts(tag, given)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.classes |= set((given.get("class") or "").split())
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and LOADING_LINKS & set((given.get("rel") or "").split()):
            self.loads.append(given.get("href") or "")
        elif tag == "meta" and given.get("property") == "og:image":
            self.card = given.get("content") or ""
        elif tag not in {"a", "link", "meta"} and given.get("src"):
            self.loads.append(given["src"])

    def _note_scripts(self, tag, given):
        if tag == "script" and "src" not in given and (given.get("type") or "") in RUNNING:
            self.inline.append("an inline script")
        self.inline += [f"a handler, {name}" for name in given if name.startswith("on")]
        if (given.get("href") or "").lower().startswith("javascript:"):
            self.inline.append("a link that is a script")
        if (given.get("http-equiv") or "").lower() == "content-security-policy":
            # What a page asks for before its policy is not held to it.
            self.policy = None if self.loads or self.inline else given.get("content") or ""


@functools.cache
def _read(path):
    return _Page(path.read_text(encoding="utf-8"))


def pages(site):
    """Return the pages of the site, without Sphinx's templates and static files."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def foreign_sources(site):
    """No script, style, font, frame or image comes from another host."""
    for path in pages(site):
        for source in _read(path).loads:
            if urlsplit(source).netloc:
                yield f"{path.relative_to(site)} loads {source}"
    for path in sorted(site.rglob("*.css")):
        style = path.read_text(encoding="utf-8")
        for source in re.findall(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", style):
            yield f"{path.relative_to(site)} loads {source}"


def broken_links(site):
    """Every link within the site leads to a page and to a place on it."""
    for path in pages(site):
        for link in _read(path).links:
            parts = urlsplit(link)
            if path.name == "404.html" or parts.scheme or parts.netloc or link == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.relative_to(site)} links to {link}, which does not exist"
            elif _leads_nowhere(target, unquote(parts.fragment)):
                yield f"{path.relative_to(site)} links to {link}, where there is no such place"


def _leads_nowhere(target, fragment):
    return bool(fragment) and target.suffix == ".html" and fragment not in _read(target).anchors


def heavy_pages(site):
    """No page weighs more than a slow connection bears."""
    for path in pages(site):
        if path.stat().st_size > LARGEST_PAGE:
            yield f"{path.relative_to(site)} has {path.stat().st_size:,} bytes"


def error_marks(site):
    """No page carries an error that Sphinx printed into it."""
    for path in pages(site):
        if {"system-message", "problematic"} & _read(path).classes:
            yield f"{path.relative_to(site)} shows an error message of Sphinx"


def inline_scripts(site):
    """Every page forbids scripts that are not files of the site, and has none; see ``policy``."""
    for path in pages(site):
        page, name = _read(path), path.relative_to(site)
        rules = dict(rule.split(maxsplit=1) for rule in (page.policy or "").split(";") if rule)
        if "'unsafe" in rules.get("script-src", "'unsafe"):
            yield f"{name} has no policy that forbids inline scripts before all that it loads"
        for what in page.inline:
            yield f"{name} has {what}"


def missing_cards(site):
    """Every page of the book has a picture for where somebody links to it."""
    for path in pages(site):
        name, card = path.relative_to(site), _read(path).card
        if card is None and name.parts[0] == "book":
            yield f"{name} has no card"
        elif card is not None and not (site / "_images" / card.partition("/_images/")[2]).is_file():
            yield f"{name} has a card that does not exist, {card}"


RULES = [foreign_sources, broken_links, heavy_pages, error_marks, inline_scripts, missing_cards]


def check(site):
    """Return every problem of a built site."""
    return [problem for rule in RULES for problem in rule(Path(site).resolve())]
