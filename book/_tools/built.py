"""Check the built site: nothing foreign is loaded, every link arrives, no other script may run.

A rule takes the folder of the site and yields one message for each problem. What a page asks for
while it runs is left to the browser tests.
"""

import functools
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest"}


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.policy = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and LOADING_LINKS & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        elif tag not in {"a", "link", "meta"} and given.get("src"):
            self.loads.append(given["src"])
        if given.get("http-equiv", "").lower() == "content-security-policy" and not self.loads:
            # What a page asks for before its policy is not held to it.
            self.policy = given.get("content")


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
            place = unquote(parts.fragment)
            if not target.is_file():
                yield f"{path.relative_to(site)} links to {link}, which does not exist"
            elif place and target.suffix == ".html" and place not in _read(target).anchors:
                yield f"{path.relative_to(site)} links to {link}, where there is no such place"


def lax_policies(site):
    """Every page forbids scripts but the site's and those known by hash, and forms elsewhere."""
    strict = r"script-src 'self'(?![^;]* 'unsafe-[ei]).*; form-action 'self' file:$"
    for path in pages(site):
        if not re.search(strict, _read(path).policy or ""):
            yield f"{path.relative_to(site)} allows other scripts or forms, or loads before that"


RULES = [foreign_sources, broken_links, lax_policies]
