"""The Chinese pages: what each translates, and whether its English has changed since.

A page of ``book/zh`` names in its front matter the English page, and the hash of the words that
were translated: the whole of a Markdown page; of a chapter its opening, the names of its sections
and its takeaways. Code, outputs and the numbers before marks are no part of the hash. A page whose
English has changed says so at its top, and ``lint`` names it, with today's hash.

As a Sphinx extension this puts that banner on a page, a link to the other language on both pages,
and the language on the Chinese one.
"""

import functools
import hashlib
import html
import posixpath
import re
from pathlib import Path
from typing import NamedTuple

import marks
import prose
import refresh

ROOT = refresh.ROOT
MATTER = re.compile(r"---\nenglish: (?P<english>\S+)\ntranslated: (?P<translated>\S+)\n---\n")
TAKEAWAYS = re.compile(r"^## Takeaways\n.*?(?=^## |\Z)", re.M | re.S)

BANNER = """:::{{admonition}} 译文尚未跟上
:class: warning translation-behind

英文页在翻译之后已有改动，本页可能与它不一致。请以[英文页]({address})为准。
:::
"""
# Of the page that one reads: its language, that of the other, the name of the switch, its words.
ENGLISH = ("en", "zh-Hans", "Language", "中文")
CHINESE = ("zh-Hans", "en", "语言", "English")
SWITCH = (
    '<nav class="language-switch" lang="{here}" aria-label="{label}">'
    '<a href="{address}" lang="{there}" hreflang="{there}" rel="alternate">{words}</a></nav>\n'
)


class Translation(NamedTuple):
    """A Chinese page, the English page that it translates, and the hashes of then and of today."""

    path: Path
    english: Path
    translated: str
    today: str

    @classmethod
    def read(cls, path):
        """Read the front matter of a page."""
        matter = MATTER.match(path.read_text(encoding="utf-8"))
        if not matter:
            raise ValueError(f"{path} must begin with front matter that has english and translated")
        english = path.parents[1] / matter["english"]
        if not english.is_file():
            raise ValueError(f"{path} translates {matter['english']}, which book/ does not have")
        return cls(path, english, matter["translated"], hash_words(english))

    @property
    def is_behind(self):
        """Whether the English words have changed since they were translated."""
        return self.translated != self.today


def read_all(root=ROOT):
    """Return the translations of a book in the order of their names."""
    return [Translation.read(path) for path in sorted((root / "book" / "zh").glob("*.md"))]


def hash_words(path):
    """Hash what is translated of an English page; how its lines are broken changes nothing."""
    if path.suffix == ".ipynb":
        cells = refresh.read(path)["cells"]
        text = refresh.prose_of(cells)
        headings = [f"## {heading}" for heading in prose.headings(text, 2)]
        text = "\n\n".join([cells[0]["source"], *headings, *TAKEAWAYS.findall(text)])
    else:
        text = prose.FRONT_MATTER.sub("", path.read_text(encoding="utf-8"))
    text = marks.MARK.sub(lambda match: f"<{match['name']}>", text)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def report(root=ROOT):
    """Return a line for each page whose English has changed."""
    return [
        f"{page.path.relative_to(root).as_posix()}: {page.english.name} has changed since it was "
        f"translated; once it is in step, write `translated: {page.today}`"
        for page in read_all(root)
        if page.is_behind
    ]


# The site.


@functools.cache
def _pairs(root):
    """Map each page that has another language, as Sphinx names it, to that one."""
    pairs = [(found.english, found.path) for found in read_all(root)]
    pairs = [[p.relative_to(root).with_suffix("").as_posix() for p in pair] for pair in pairs]
    return {here: there for pair in pairs for here, there in (pair, pair[::-1])}


def _is_chinese(name):
    return name.startswith("book/zh/")


def warn_readers(app, docname, source):
    """Say below the title of a page that its English has changed."""
    if not _is_chinese(docname):
        return
    page = Translation.read(Path(app.srcdir) / f"{docname}.md")
    if page.is_behind:
        address = posixpath.relpath(page.english.as_posix(), page.path.parent.as_posix())
        banner = BANNER.format(address=address)
        source[0] = re.sub(
            r"(?m)^# .*\n", lambda title: f"{title[0]}\n{banner}", source[0], count=1
        )


def offer_languages(app, pagename, templatename, context, doctree):
    """Link the two languages of a page, and say which words are Chinese."""
    other = _pairs(Path(app.srcdir)).get(pagename)
    if other is None:
        return
    here, there, label, words = CHINESE if _is_chinese(pagename) else ENGLISH
    if _is_chinese(pagename):
        context["body"] = context["body"].replace("<section", f'<section lang="{here}"', 1)
        card = _draw_card(app, pagename, app.env.titles[other].astext())
        context["meta"] = (context["meta"] or {}) | {"og:image": card}
    address = html.escape(context["pathto"](other))
    switch = SWITCH.format(here=here, there=there, address=address, label=label, words=words)
    context["body"] = switch + context["body"]
    # Search engines follow this one, and want a whole address.
    whole = html.escape(app.config.html_baseurl + app.builder.get_target_uri(other))
    link = f'<link rel="alternate" hreflang="{there}" href="{whole}" />'
    context["metatags"] = context.get("metatags", "") + link


def _draw_card(app, pagename, title):
    """Give a page a card with its English title: the font of the cards has no Chinese."""
    from sphinxext import opengraph

    config = app.config
    return opengraph.social_card_for_page(
        config_social=opengraph.DEFAULT_SOCIAL_CONFIG | config.ogp_social_cards,
        title=title,
        description="The opening and the takeaways of this page in Chinese.",
        pagename=pagename,
        ogp_canonical_url=config.ogp_site_url,
        ogp_site_url=config.ogp_site_url,
        site_name=config.ogp_site_name,
        **{name: getattr(app, name) for name in ("srcdir", "outdir", "config", "env")},
    )


def setup(app):
    """Connect to Sphinx, before the cards are made."""
    app.connect("source-read", warn_readers)
    app.connect("html-page-context", offer_languages, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
