"""The Chinese pages: what each translates, and whether its English has changed since.

A page of ``book/zh`` names in its front matter the English page, and the hash of the words that
were translated: the whole of a Markdown page; of a chapter its opening, the names of its sections
and its takeaways. Code, outputs and the numbers before marks are no part of the hash. A page whose
English has changed is not wrong enough to stop anybody: it says so at its top, and ``refresh``
names it.

``python book/_tools/translations.py`` lists all pages, ``--diff NAME`` shows what has changed in
the English since NAME was translated, ``--done NAME`` writes down today's hash.

As a Sphinx extension this puts that banner on a page, a link to the other language on both pages,
and the language on the Chinese one.
"""

import argparse
import difflib
import functools
import hashlib
import html
import posixpath
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

import marks
import prose
import refresh

ROOT = refresh.ROOT
FOLDER = "zh"
LANGUAGE = "zh-Hans"
TAKEAWAYS = re.compile(r"^## Takeaways\n.*?(?=^## |\Z)", re.M | re.S)
KEYS = {"english", "translated"}
TITLE = re.compile(r"^# .*\n", re.M)
PAGE_HASH = re.compile(r"^translated: (.*)\n", re.M)

BANNER = """:::{{admonition}} 译文尚未跟上
:class: warning translation-behind

英文页在翻译之后已有改动，本页可能与它不一致。请以[英文页]({address})为准。
:::
"""
SWITCH = (
    '<nav class="language-switch" lang="{here}" aria-label="{label}">'
    '<a href="{address}" lang="{there}" hreflang="{there}" rel="alternate">{words}</a></nav>\n'
)
LINK = '<link rel="alternate" hreflang="{there}" href="{address}" />'


@dataclass(frozen=True)
class Translation:
    """A Chinese page, the English page that it translates, and the hash of what was translated."""

    path: Path
    english: Path
    translated: str

    @classmethod
    def read(cls, path):
        """Read the front matter of a page."""
        matter = prose.FRONT_MATTER.match(path.read_text(encoding="utf-8"))
        given = yaml.safe_load(matter[0].strip("-\n")) if matter else {}
        if not isinstance(given, dict) or set(given) != KEYS:
            raise ValueError(f"{path} must begin with front matter that has english and translated")
        english = path.parents[1] / given["english"]
        if not english.is_file():
            raise ValueError(f"{path} translates {given['english']}, which book/ does not have")
        return cls(path, english, str(given["translated"]))

    @property
    def is_behind(self):
        """Whether the English words have changed since they were translated."""
        return self.translated != digest(words_of(self.english))


def all_of(root=ROOT):
    """Return the translations of a book in the order of their names."""
    return [Translation.read(path) for path in sorted((root / "book" / FOLDER).glob("*.md"))]


def words_of(path):
    """Return what is translated of an English page."""
    return words(path.read_text(encoding="utf-8"), path.suffix)


def words(text, suffix):
    """Return what is translated of the text of a page, with names in place of its numbers."""
    if suffix == ".ipynb":
        text = _of_chapter(refresh.parse(text)["cells"])
    text = prose.FRONT_MATTER.sub("", text.replace("\r\n", "\n"))
    return marks.MARK.sub(lambda match: f"<{match['name']}>", text)


def _of_chapter(cells):
    prose_cells = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    text = "\n\n".join(prose_cells)
    headings = [f"## {heading}" for heading in prose.headings(text, 2)]
    return "\n\n".join([prose_cells[0], *headings, *TAKEAWAYS.findall(text)])


def digest(text):
    """Hash words; how their lines are broken changes nothing."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def difference(translation, root=ROOT):
    """Return the lines of a diff from the English that was translated, or None without it."""
    file = translation.english.relative_to(root).as_posix()
    now = words_of(translation.english)
    for commit in _git(root, "log", "--format=%H", "--", file).split():
        then = words(_git(root, "show", f"{commit}:{file}"), translation.english.suffix)
        if digest(then) == translation.translated:
            return list(difflib.unified_diff(_lines(then), _lines(now), lineterm="", n=1))[2:]
    return None


def _git(root, *command):
    done = subprocess.run(
        ["git", "-C", root, *command], capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.stdout if done.returncode == 0 else ""


def _lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def write_down(translation):
    """Write the hash of today's English into a page."""
    text = translation.path.read_text(encoding="utf-8")
    new = f"translated: {digest(words_of(translation.english))}\n"
    text = PAGE_HASH.sub(new, text, count=1)
    translation.path.write_text(text, encoding="utf-8", newline="\n")


def report(root=ROOT):
    """Return a line for each page whose English has changed."""
    return [
        f"{translation.path.relative_to(root).as_posix()}: "
        f"{translation.english.relative_to(root).as_posix()} has changed since it was translated"
        for translation in all_of(root)
        if translation.is_behind
    ]


def main(arguments=None, root=ROOT):
    """List the pages, show what has changed, or write down that a translation is done."""
    parser = argparse.ArgumentParser(description="See which translations are behind.")
    parser.add_argument("--diff", metavar="NAME", help="what changed since it was translated")
    parser.add_argument("--done", metavar="NAME", nargs="+", help="it says what the English says")
    options = parser.parse_args(arguments)
    known = {translation.path.stem: translation for translation in all_of(root)}
    asked = [*([options.diff] if options.diff else []), *(options.done or [])]
    unknown = [name for name in asked if name not in known]
    if unknown:
        sys.exit(f"no such page: {', '.join(unknown)} (there are: {', '.join(known)})")
    for name in options.done or []:
        write_down(known[name])
    if options.diff:
        lines = difference(known[options.diff], root)
        missing = "The English that was translated is in no commit: compare the whole page."
        print("\n".join(lines) if lines is not None else missing)
    elif not options.done:
        print("\n".join(report(root)) or f"{len(known)} pages, all in step.")


# The site.


@functools.cache
def _pages(root):
    """Map the name of each English page, as Sphinx has it, to that of its translation."""
    return {_name(found.english, root): _name(found.path, root) for found in all_of(root)}


def _name(path, root):
    return path.relative_to(root).with_suffix("").as_posix()


def warn_readers(app, docname, source):
    """Say at the top of a page that its English has changed."""
    path = Path(app.srcdir) / f"{docname}.md"
    if app.builder.format != "html" or docname not in _pages(Path(app.srcdir)).values():
        return
    translation = Translation.read(path)
    if translation.is_behind:
        address = posixpath.relpath(translation.english.as_posix(), path.parent.as_posix())
        source[0] = with_banner(source[0], address)


def with_banner(text, address):
    """Return a page with the banner below its title."""
    banner = BANNER.format(address=address)
    return TITLE.sub(lambda title: f"{title[0]}\n{banner}", text, count=1)


def offer_languages(app, pagename, templatename, context, doctree):
    """Link the two languages of a page, and say which words are Chinese."""
    pages = _pages(Path(app.srcdir))
    english = {chinese: name for name, chinese in pages.items()}
    if pagename in english:
        context["body"] = _switch(app, context, english[pagename], LANGUAGE) + _in_chinese(context)
        _share_card(app, pagename, english[pagename], context)
    elif pagename in pages:
        context["body"] = _switch(app, context, pages[pagename], "en") + context["body"]


def _switch(app, context, other, here):
    address = html.escape(context["pathto"](other))
    label, words, there = {
        LANGUAGE: ("语言", "English", "en"),
        "en": ("Language", "中文", LANGUAGE),
    }[here]
    # Search engines follow this one, and want a whole address.
    whole = html.escape(app.config.html_baseurl + app.builder.get_target_uri(other))
    context["metatags"] = context.get("metatags", "") + LINK.format(there=there, address=whole)
    return SWITCH.format(here=here, there=there, address=address, label=label, words=words)


def _in_chinese(context):
    return context["body"].replace("<section", f'<section lang="{LANGUAGE}"', 1)


def _share_card(app, pagename, english, context):
    """Give a page a card with its English title: the font of the cards has no Chinese."""
    try:
        from sphinxext import opengraph
    except ImportError:
        return
    if "sphinxext.opengraph" not in app.extensions:
        return
    config = app.config
    address = opengraph.social_card_for_page(
        config_social=opengraph.DEFAULT_SOCIAL_CONFIG | (config.ogp_social_cards or {}),
        site_name=config.ogp_site_name,
        title=app.env.titles[english].astext(),
        description="The opening and the takeaways of this page in Chinese.",
        pagename=pagename,
        ogp_site_url=config.ogp_site_url,
        ogp_canonical_url=config.ogp_canonical_url or config.ogp_site_url,
        srcdir=app.srcdir,
        outdir=app.outdir,
        config=config,
        env=app.env,
    )
    context["meta"] = (context["meta"] or {}) | {"og:image": address}


def setup(app):
    """Connect to Sphinx, before the cards are made."""
    app.connect("source-read", warn_readers)
    app.connect("html-page-context", offer_languages, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
