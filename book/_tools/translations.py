"""The Chinese pages: what each translates, and whether its English has changed since.

A page of ``book/zh`` names in its front matter the English page, and the hash of the words that
were translated: the whole of a Markdown page; of a chapter its opening, the names of its sections
and its takeaways. Code, outputs and the numbers before marks are no part of the hash. A page whose
English has changed says so at its top, and ``lint`` names it, with today's hash.

As a Sphinx extension this puts that banner on a page, a link to the other language on both pages,
and the language on the Chinese one.
"""

import hashlib
import html
import re
from pathlib import Path

import marks
import prose
import refresh

ROOT = refresh.ROOT
MATTER = re.compile(r"---\nenglish: (?P<english>\S+)\ntranslated: (?P<translated>\S+)\n---\n")
TAKEAWAYS = re.compile(r"^## Takeaways\n.*?(?=^## |\Z)", re.M | re.S)

BANNER = """:::{{admonition}} 译文尚未跟上
:class: warning translation-behind

英文页在翻译之后已有改动，本页可能与它不一致。请以[英文页](../{english})为准。
:::
"""
# Of the page that one reads: its language, that of the other, the name of the switch, its words.
ENGLISH = ("en", "zh-Hans", "Language", "中文")
CHINESE = ("zh-Hans", "en", "语言", "English")
SWITCH = (
    '<nav class="language-switch" lang="{here}" aria-label="{label}">'
    '<a href="{address}" lang="{there}" hreflang="{there}" rel="alternate">{words}</a></nav>\n'
)


def read(path):
    """Return which page a Chinese one translates, the hash of then, and the hash of today."""
    matter = MATTER.match(path.read_text(encoding="utf-8"))
    if not matter:
        raise ValueError(f"{path} must begin with front matter that has english and translated")
    english = path.parents[1] / matter["english"]
    if not english.is_file():
        raise ValueError(f"{path} translates {matter['english']}, which book/ does not have")
    return matter["english"], matter["translated"], hash_words(english)


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
    pages = {path: read(path) for path in sorted((root / "book" / "zh").glob("*.md"))}
    return [
        f"{path.relative_to(root).as_posix()}: {english} has changed since it was translated; "
        f"once it is in step, write `translated: {today}`"
        for path, (english, translated, today) in pages.items()
        if translated != today
    ]


# The site.


def warn_readers(app, docname, source):
    """Say below the title of a page that its English has changed."""
    if not docname.startswith("book/zh/"):
        return
    english, translated, today = read(Path(app.srcdir) / f"{docname}.md")
    if translated != today:
        banner = BANNER.format(english=english)
        source[0] = re.sub(r"(?m)^# .*\n", rf"\g<0>\n{banner}", source[0], count=1)


def offer_languages(app, pagename, templatename, context, doctree):
    """Link the two languages of a page, and say which words are Chinese."""
    pages = {name: data["english"] for name, data in app.env.metadata.items() if "english" in data}
    english = {name: f"book/{page.rpartition('.')[0]}" for name, page in pages.items()}
    chinese = {page: name for name, page in english.items()}
    other = (english | chinese).get(pagename)
    if other is None:
        return
    here, there, label, words = CHINESE if pagename in english else ENGLISH
    if pagename in english:
        context["body"] = context["body"].replace("<section", f'<section lang="{here}"', 1)
        # The font of the cards that are drawn for other pages has no Chinese.
        context["meta"] |= {"og:image": f"{app.config.html_baseurl}_static/favicon.svg"}
    address = html.escape(context["pathto"](other))
    switch = SWITCH.format(here=here, there=there, address=address, label=label, words=words)
    context["body"] = switch + context["body"]
    # Search engines follow this one, and want a whole address.
    whole = html.escape(app.config.html_baseurl + app.builder.get_target_uri(other))
    link = f'<link rel="alternate" hreflang="{there}" href="{whole}" />'
    context["metatags"] = context.get("metatags", "") + link


def setup(app):
    """Connect to Sphinx, before the cards are made."""
    app.connect("source-read", warn_readers)
    app.connect("html-page-context", offer_languages, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
