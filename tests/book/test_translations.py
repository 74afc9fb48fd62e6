"""A page whose English has changed since it was translated says so, and nothing else does."""

import re
from types import SimpleNamespace

import pytest
import translations

CHINESE = "---\nenglish: map.md\ntranslated: none\n---\n\n# 标题\n\n一个问题？\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "book" / "zh").mkdir(parents=True)
    (tmp_path / "book" / "map.md").write_text("# Map\n\nSome 3<!-- n --> ways, *always*.\n")
    (tmp_path / "book" / "zh" / "map.md").write_text(CHINESE, encoding="utf-8")
    write_down(tmp_path)
    return tmp_path


def write_down(root):
    """Write the hash of today into the page, as a translator does who is told it."""
    for line in translations.report(root):
        today = re.search(r"`(translated: \w+)`", line)[1]
        page = root / line.partition(":")[0]
        text = re.sub(r"translated: \w+", today, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ("# Map\n\nSome 4<!-- n --> ways,\n*always*.\n", False),
        ("---\nlayout: wide\n---\n# Map\n\nSome 3<!-- n --> ways, *always*.\n", False),
        ("# Map\n\nSome 3<!-- m --> ways, *always*.\n", True),
        ("# Map\n\nSome 3<!-- n --> ways, *often*.\n", True),
    ],
)
def test_every_word_counts_and_no_number(root, text, behind):
    (root / "book" / "map.md").write_text(text)
    assert len(translations.report(root)) == behind
    write_down(root)
    assert translations.report(root) == []


@pytest.mark.parametrize("text", ["# 标题\n", CHINESE.replace("map.md", "gone.md")])
def test_a_page_that_does_not_say_what_it_translates_is_refused(root, text):
    (root / "book" / "zh" / "map.md").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"front matter|gone\.md, which book/ does not have"):
        translations.report(root)


def test_a_page_that_is_behind_says_so_below_its_title_and_one_in_step_does_not(root):
    app, source = SimpleNamespace(srcdir=root), [CHINESE]
    translations.warn_readers(app, "book/zh/map", source)
    assert source == [CHINESE]
    (root / "book" / "map.md").write_text("# Another map\n")
    translations.warn_readers(app, "book/zh/map", source)
    assert source[0].index("# 标题") < source[0].index("](../map.md)") < source[0].index("一个问题")
