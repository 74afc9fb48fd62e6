"""Each core page has a deck of slides that is made of the page."""

import re
from pathlib import Path

import pytest
import slides
from bs4 import BeautifulSoup
from visits import PHONE, serious_violations, wait_until

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html" / "book"
NAMES = sorted(path.stem for path in (ROOT / "book" / "_quizzes").glob("*.md"))

PAGE = """<html><head><title>x</title><meta charset="utf-8"><link rel="canonical" href="a">
<link rel="stylesheet" href="a.css"><script>let menu</script><script>window.MathJax = {}</script>
</head><body><article><section id="top"><h1>A &amp; B<a class="headerlink" href="#top">#</a></h1>
<p>Why?</p><p>Long.</p>
<section id="one"><h2>One</h2><p>First.</p><p>Second.</p>
<div class="cell"><pre>code</pre><div class="cell_output"><img src="i.png"></div></div>
<p><em>A caption.</em></p>
<div class="proof theorem admonition" id="th"><p>Claim, see <a href="#one">one</a>.</p></div>
<div class="proof admonition"><p>Proof.</p></div>
<section id="sub"><h3>Sub</h3><div class="cell tag_mechanism"><pre>draw()</pre></div></section>
<section id="try-optional"><h3>Try (optional)</h3><div class="theorem">No.</div></section></section>
<section id="two"><h2>Two</h2><div class="definition">D</div><p>After it.</p></section>
<section id="more-optional"><h2>More (optional)</h2><p>Left out.</p></section>
<section id="takeaways"><h2>Takeaways</h2><ul><li>T</li></ul></section>
<section id="exercises"><h2>Exercises</h2><section id="check-yourself"><h3>Check yourself</h3>
<p>Click.</p><p>1. Q</p><details>a</details><details>b</details><p>2. R</p><details>c</details>
</section><section id="problems"><div class="exercise" id="ex">
<p class="admonition-title">Exercise 1</p></div>
</section></section><section id="sources"><h2>Sources</h2></section>
</section></article></body></html>"""


@pytest.fixture
def deck():
    return BeautifulSoup(slides.deck(PAGE, "page"), "html.parser")


def test_a_deck_shows_what_one_shows_in_a_lesson(deck):
    told = [" ".join(s.get_text(" ").split()) for s in deck.select(".slide")]
    feet = [f"A & B {n} / {len(told)}" for n in range(1, len(told) + 1)]
    assert [text.removesuffix(foot).strip() for text, foot in zip(told, feet, strict=True)] == [
        "A & B Why?",
        "One First.",
        "One A caption.",
        "One Claim, see one .",
        "Sub draw()",
        "Two D",
        "Takeaways T",
        "Check yourself 1. Q a b",
        "Check yourself 2. R c",
        "Exercises Exercise 1",
    ]
    assert deck.select_one(".slide img")["src"] == "i.png"


def test_links_lead_to_the_page_and_no_name_is_there_twice(deck):
    assert {link["href"] for link in deck.select(".slide a")} == {
        "page.html",
        "page.html#one",
        "page.html#ex",
    }
    names = [node["id"] for node in deck.find_all(id=True)]
    assert names == [f"slide-{n}" for n in range(1, len(names) + 1)]


def test_the_head_keeps_styles_and_mathematics_and_no_menus(deck):
    assert deck.title.string == "A & B: slides"
    assert [link["href"] for link in deck.head.select("link")] == ["a.css", "../_static/slides.css"]
    assert "window.MathJax" in str(deck.head)
    assert "menu" not in str(deck.head)


@pytest.mark.site
@pytest.mark.parametrize("name", NAMES)
def test_every_core_page_has_its_deck_with_each_theorem_and_question(name):
    page = BeautifulSoup((SITE / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    made = BeautifulSoup((SITE / f"{name}-slides.html").read_text(encoding="utf-8"), "html.parser")
    text = made.get_text()
    for row in page.select("#takeaways > ul > li"):
        assert row.get_text() in text
    assert len(made.select("details.quiz")) == len(page.select("#check-yourself details.quiz"))
    optional = {id(n) for n in page.select('section[id$="-optional"] div.theorem')}
    theorems = [n for n in page.select("section > div.theorem") if id(n) not in optional]
    assert len(made.select("div.theorem")) == len(theorems)
    assert 12 <= len(made.select(".slide")) <= 40
    assert not re.search(r"<script(?![^>]*src=)", str(made))


@pytest.fixture
def opened(visit):
    kept = []

    def go(name, **how):
        kept.append(visit(**how))
        kept[-1].go(f"book/{name}-slides.html")
        wait_until(kept[-1].page, "document.querySelector('mjx-container')")
        return kept[-1]

    yield go
    for visitor in kept:
        visitor.context.close()


@pytest.mark.browser
def test_keys_turn_the_slides(opened):
    visitor = opened("foundations")
    page, last = visitor.page, visitor.page.locator(".slide").count()
    for key, number in [("ArrowRight", 2), (" ", 3), ("PageUp", 2), ("End", last), ("Home", 1)]:
        page.keyboard.press(key)
        wait_until(page, f"location.hash === '#slide-{number}'")
    assert visitor.abroad() == []
    assert visitor.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_slides_can_be_read_by_everybody_and_on_a_phone(name, opened):
    visitor = opened(name, viewport=PHONE)
    visitor.dress(viewport=PHONE)
    assert serious_violations(visitor.page) == []
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
