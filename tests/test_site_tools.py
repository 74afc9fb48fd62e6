"""What the extensions of the site make of names, defaults and changes."""

from xml.etree import ElementTree

import api
import feed
import pytest

ATOM = "{http://www.w3.org/2005/Atom}"
LOG = """# Changelog

Words.

## 0.2.0 (unreleased)

- A change, with <marks> & more, that
  goes on.

## 0.1.0 (2026-01-02)

- First: one.
- Second.
"""


def test_an_attribute_keeps_the_underscore_at_its_end():
    lines = [
        ":ivar coef_: Weights.",
        ":vartype coef_: array",
        ":ivar classes: None.",
        "Uses coef_.",
    ]
    api.keep_underscores(None, "class", "x", None, None, lines)
    assert lines[:2] == [r":ivar coef\_: Weights.", r":vartype coef\_: array"]
    assert lines[2:] == [":ivar classes: None.", "Uses coef_."]


@pytest.mark.parametrize(
    ("signature", "shown"),
    [
        ("(a, b=1)", "(a, b=1)"),
        (f"(a, *, orders={tuple(range(90))})", "(a, *, orders=(0, 1, ..., 89))"),
        ("(a=<object>)", "(a=<object>)"),
    ],
)
def test_a_long_default_is_shown_by_its_ends(signature, shown):
    assert api.shorten_defaults(None, "function", "x", None, None, signature, "y") == (shown, "y")


def test_a_feed_has_an_entry_for_each_change_with_its_date():
    root = ElementTree.fromstring(feed.feed(LOG, "https://example.org/", "2026-03-04"))
    entries = root.findall(f"{ATOM}entry")
    assert [entry.find(f"{ATOM}updated").text[:10] for entry in entries] == [
        "2026-03-04",
        "2026-01-02",
        "2026-01-02",
    ]
    assert entries[0].find(f"{ATOM}content").text == "A change, with <marks> & more, that goes on."
    assert entries[1].find(f"{ATOM}title").text == "0.1.0: First:"
    assert len({entry.find(f"{ATOM}id").text for entry in entries}) == 3
