"""Translations: what is behind says so, languages are linked, numbers have names."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import lint
import pytest
import refresh
import routes
import translations

BOOK = Path(__file__).parents[1] / "book"
PAGES = translations.all_of()
GLOSSARY = BOOK / "zh" / "glossary.md"

CELLS = [
    ("markdown", "# Title\n\nA question?\n\n**About 35<!-- minutes --> minutes.** Know: Python."),
    ("code", "print(1)"),
    ("markdown", "A caption.\n\n## By hand\n\nA proof of 4.2<!-- error:.1f --> lines."),
    ("markdown", "## Takeaways\n\n- It costs 1.\n- It is\n  private.\n\n## Exercises\n\nTry it."),
]
# One change of an English chapter, and whether a translator has to look.
CHANGES = {
    "nothing": (0, "", "", False),
    "the question": (0, "A question?", "Another question?", True),
    "the title": (0, "# Title", "# A title", True),
    "what to know": (0, "Know: Python", "Know: probability", True),
    "the reading time": (0, "35<!--", "40<!--", False),
    "code": (1, "print(1)", "print(2)", False),
    "a proof": (2, "A proof of", "Here are", False),
    "the name of a section": (2, "By hand", "In code", True),
    "a takeaway": (3, "It costs 1", "It costs 2", True),
    "a line break": (3, "It is\n  private", "It is private", False),
    "an exercise": (3, "Try it.", "Try it again.", False),
}
CHINESE = "---\nenglish: {}\ntranslated: none\n---\n\n# 标题\n\n一个问题？\n"


def notebook(change="nothing"):
    place, old, new, _ = CHANGES[change]
    cells = [
        {
            "cell_type": kind,
            "metadata": {},
            "source": (text.replace(old, new) if number == place else text).splitlines(True),
        }
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for number, (kind, text) in enumerate(CELLS)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def root(tmp_path):
    """Make a book of one chapter and one page, both translated today."""
    (tmp_path / "book" / "zh").mkdir(parents=True)
    (tmp_path / "book" / "chapter.ipynb").write_text(notebook())
    (tmp_path / "book" / "map.md").write_text("# Map\n\nSome 3<!-- n --> ways, *always*.\n")
    for english in ("chapter.ipynb", "map.md"):
        page = tmp_path / "book" / "zh" / f"{english.split('.')[0]}.md"
        page.write_text(CHINESE.format(english), encoding="utf-8")
    translations.main(["--done", "chapter", "map"], tmp_path)
    return tmp_path


@pytest.mark.parametrize("change", CHANGES)
def test_only_a_change_of_what_was_translated_puts_a_chapter_behind(root, change):
    (root / "book" / "chapter.ipynb").write_text(notebook(change))
    lines = translations.report(root)
    behind = CHANGES[change][3]
    assert [line.split(":")[0] for line in lines] == ["book/zh/chapter.md"] * behind
    translations.main(["--done", "chapter"], root)
    assert translations.report(root) == []


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ("# Map\n\nSome 4<!-- n --> ways,\n*always*.\n", False),
        ("# Map\r\n\r\nSome 3<!-- n --> ways, *always*.\r\n", False),
        ("---\nlayout: wide\n---\n# Map\n\nSome 3<!-- n --> ways, *always*.\n", False),
        ("# Map\n\nSome 3<!-- m --> ways, *always*.\n", True),
        ("# Map\n\nSome 3<!-- n --> ways, *often*.\n", True),
    ],
)
def test_of_a_page_every_word_counts_and_no_number(root, text, behind):
    (root / "book" / "map.md").write_bytes(text.encode())
    assert bool(translations.report(root)) == behind


def test_writing_down_that_a_page_is_done_changes_no_other_line(root):
    page = root / "book" / "zh" / "map.md"
    expected = CHINESE.format("map.md").replace(
        "none", translations.PAGE_HASH.search(page.read_text())[1]
    )
    assert page.read_text(encoding="utf-8") == expected


def test_refresh_names_what_is_behind_and_fails_for_it_no_more_than_before(monkeypatch, capsys):
    monkeypatch.setattr(refresh, "notebooks", lambda root: [])
    monkeypatch.setattr(routes, "write", lambda: None)
    monkeypatch.setattr(translations, "report", lambda: ["book/zh/chapter.md: book/x has changed"])
    assert refresh.main([]) == 0
    assert capsys.readouterr().out == "book/zh/chapter.md: book/x has changed\n"


def test_the_list_says_what_is_behind_or_that_nothing_is(root, capsys):
    translations.main([], root)
    assert capsys.readouterr().out == "2 pages, all in step.\n"
    (root / "book" / "map.md").write_text("# Another map\n")
    translations.main([], root)
    assert capsys.readouterr().out.startswith("book/zh/map.md: book/map.md has changed")


def test_a_page_that_is_not_there_is_refused_by_name(root):
    with pytest.raises(SystemExit, match="no such page: nothing"):
        translations.main(["--done", "nothing"], root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# 标题\n", "front matter"),
        ("---\nenglish: map.md\n---\n# 标题\n", "front matter"),
        (CHINESE.format("gone.md"), r"translates gone\.md, which book/ does not have"),
    ],
)
def test_a_page_that_does_not_say_what_it_translates_is_refused(root, text, message):
    (root / "book" / "zh" / "map.md").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        translations.all_of(root)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_a_translator_sees_what_has_changed_since(root, capsys):
    def git(*command):
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", root, *names, *command], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    (root / "book" / "chapter.ipynb").write_text(notebook("a takeaway"))
    git("commit", "-am", "two")
    translations.main(["--diff", "chapter"], root)
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line[0] in "+-"] == ["-- It costs 1.", "+- It costs 2."]


def test_without_the_old_words_the_whole_page_is_to_be_compared(root, capsys):
    (root / "book" / "map.md").write_text("# Another map\n")
    translations.main(["--diff", "map"], root)
    assert "in no commit" in capsys.readouterr().out


# The pages of the book.


def test_the_ways_into_the_book_and_all_core_pages_are_translated():
    english = {page.english.relative_to(BOOK).as_posix() for page in PAGES}
    core = {f"{name}.ipynb" for name in routes.COURSE}
    assert english == core | {"index.md", "glossary.md", "use/which_mechanism.md"}
    assert len(english) == len(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_a_page_that_is_in_step_has_the_parts_of_its_english(page):
    if page.is_behind:
        pytest.skip("its English has changed")
    chinese = page.path.read_text(encoding="utf-8")
    if page.english.suffix == ".md":
        english = page.english.read_text(encoding="utf-8")
        for part in (r"^#+ ", r"^- ", r"^\| ", r"(?<!\})`[^`\n{]+`", r"^:::\{figure\}"):
            found = [len(re.findall(part, text, re.M)) for text in (chinese, english)]
            assert found[0] == found[1], part
    else:
        takeaways = translations.TAKEAWAYS.findall(translations.words_of(page.english))
        said = re.search(r"^## 要点\n.*?(?=^## )", chinese, re.M | re.S)[0]
        assert said.count("\n- ") == takeaways[-1].count("\n- ")
        assert f"](../{page.english.name})" in chinese
        assert f"<!-- {page.english.stem} -->" in chinese


def test_the_glossary_in_step_explains_the_same_terms_in_the_same_order():
    [page] = [page for page in PAGES if page.path == GLOSSARY]
    if page.is_behind:
        pytest.skip("its English has changed")
    terms = [term for _, term in lint.glossary_terms(GLOSSARY.read_text(encoding="utf-8"))]
    names = [re.search(r"（(.+)）$", term)[1] for term in terms]
    english = [term for _, term in lint.glossary_terms(page.english.read_text(encoding="utf-8"))]
    short = {"曲线下面积": "AUC", "系统名": "RAPPOR"}
    assert [short.get(name, name) for name in names] == english


# The site.


def build(root, builder="html", **options):
    """Build a book with the extension alone; return the folder of what was built."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    settings = {
        "extensions": ["myst_parser", "translations"],
        "root_doc": "book/map",
        "language": "en",
        "html_theme": "basic",
        "gettext_compact": False,
        "html_baseurl": "https://example.org/",
    }
    out = root / "_build" / builder
    with docutils_namespace():
        Sphinx(
            srcdir=root,
            confdir=None,
            outdir=out,
            doctreedir=root / "_build" / f".doctrees_{builder}",
            buildername=builder,
            confoverrides=settings | options,
            status=None,
            warning=None,
            freshenv=True,
        ).build()
    return out


@pytest.fixture
def pages(root):
    """Give a function that builds the book and returns the English page and the Chinese one."""
    pytest.importorskip("myst_parser")
    (root / "book" / "chapter.ipynb").unlink()
    (root / "book" / "zh" / "chapter.md").unlink()

    def built(**options):
        out = build(root, **options)
        names = ("book/map.html", "book/zh/map.html")
        return [(out / name).read_text(encoding="utf-8") for name in names]

    return built


def test_a_page_that_is_behind_says_so_below_its_title_and_one_in_step_does_not(root, pages):
    assert "译文尚未跟上" not in pages()[1]
    (root / "book" / "map.md").write_text("# Map\n\nAnother way.\n")
    english, chinese = pages()
    assert "译文尚未跟上" not in english
    assert chinese.index("<h1>标题") < chinese.index("译文尚未跟上") < chinese.index("一个问题")
    banner = chinese[chinese.index("译文尚未跟上") :]
    assert re.search(r'href="\.\./map\.html"[^>]*>', banner)


def test_each_language_leads_to_the_other_and_says_which_it_is(pages):
    english, chinese = pages()
    to_chinese = 'href="zh/map.html" lang="zh-Hans" hreflang="zh-Hans"'
    to_english = 'href="../map.html" lang="en" hreflang="en"'
    assert (
        f'<nav class="language-switch" lang="en" aria-label="Language"><a {to_chinese}' in english
    )
    assert (
        f'<nav class="language-switch" lang="zh-Hans" aria-label="语言"><a {to_english}' in chinese
    )
    assert (
        '<link rel="alternate" hreflang="zh-Hans" href="https://example.org/book/zh/map.html" />'
        in english
    )
    assert (
        '<link rel="alternate" hreflang="en" href="https://example.org/book/map.html" />' in chinese
    )
    assert chinese.count('<section lang="zh-Hans"') == 1
    assert '<section lang="zh-Hans"' not in english


def test_a_page_without_a_translation_has_no_switch(root, pages):
    (root / "book" / "alone.md").write_text("# Alone\n")
    pages()
    page = (root / "_build" / "html" / "book" / "alone.html").read_text(encoding="utf-8")
    assert "language-switch" not in page
