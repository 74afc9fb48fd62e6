"""A Sphinx extension that makes a deck of slides from each core page, as the page was built.

A deck has what one shows in a lesson: the question, for each section its first paragraph, its
figures with their captions, its theorems and the mechanism by hand, then the takeaways and a slide
for each question of the quiz. What the page calls optional is left out. Nothing is written twice:
whoever changes a page changes its slides. They lie beside the page, as ``NAME-slides.html``.
"""

import copy
import html
from pathlib import Path

from bs4 import BeautifulSoup

import quizzes

SHOWN = {"theorem", "definition", "proposition", "lemma", "corollary"}
LEFT_OUT = {"takeaways", "exercises", "sources"}
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>{head}
<link rel="stylesheet" href="../_static/slides.css" />
<script defer src="../_static/slides.js"></script>
</head>
<body class="slides">
<main>
{slides}
</main>
</body>
</html>
"""
SLIDE = '<section class="slide" id="slide-{number}" aria-label="Slide {number} of {of}">{body}\
<footer><a href="{name}.html">{title}</a> <span>{number} / {of}</span></footer></section>'


def deck(page, name):
    """Return the slides of a built page as a page of their own."""
    soup = BeautifulSoup(page, "html.parser")
    whole = soup.article.find("section")
    found = [*_opening(whole), *_sections(whole), *_closing(whole)]
    title = _words(whole.h1)
    slides = [
        SLIDE.format(number=n, of=len(found), name=name, title=html.escape(title), body=body)
        for n, body in enumerate((_html(nodes, name) for nodes in found), start=1)
    ]
    return PAGE.format(head=_head(soup, title), slides="\n".join(slides))


def _head(soup, title):
    """Return what a page has in its head, without what moves its menus."""
    kept = [node for node in soup.head.find_all(["meta", "link", "script"]) if _is_kept(node)]
    return f"<title>{html.escape(title)}: slides</title>\n" + "\n".join(map(str, kept))


def _is_kept(node):
    if node.name == "meta":
        return node.get("charset") or node.get("name") == "viewport" or node.get("property")
    if node.name == "link":
        return {"stylesheet", "icon"} & set(node.get("rel", ()))
    return "mathjax" in node.get("src", "").lower() or "MathJax" in (node.string or "")


def _opening(whole):
    yield [_tag("h1", _words(whole.h1)), whole.find("p", recursive=False)]
    yield from _shown(whole, _words(whole.h1), "h2")


def _sections(whole):
    for section in whole.find_all("section", recursive=False):
        if section["id"] in LEFT_OUT or section["id"].endswith("-optional"):
            continue
        name = _words(section.h2)
        first = section.h2.find_next_sibling()
        if first is not None and first.name == "p":
            yield [_tag("h2", name), first]
        yield from _shown(section, name, "h2")
        for part in section.find_all("section", recursive=False):
            if not part["id"].endswith("-optional"):
                yield from _shown(part, _words(part.h3), "h3")


def _shown(section, name, level):
    """Yield a slide for each figure, theorem and mechanism that stands in a section itself."""
    for node in section.find_all("div", recursive=False):
        classes = set(node.get("class", ()))
        if SHOWN & classes:
            yield [_tag(level, name), node]
        elif "cell" in classes:
            images = node.select(".cell_output img")
            following = node.find_next_sibling()
            captions = [following] if images and _is_caption(following) else []
            if images:
                yield [_tag(level, name), *images, *captions]
            elif "tag_mechanism" in classes:
                yield [_tag(level, name), node]


def _closing(whole):
    takeaways = whole.find("section", id="takeaways", recursive=False)
    yield [_tag("h2", _words(takeaways.h2)), takeaways.ul]
    exercises = whole.find("section", id="exercises", recursive=False)
    quiz = exercises.find("section", id="check-yourself", recursive=False)
    heading = quizzes.HEADING.lstrip("# ")
    for answer in quiz.find_all("details", recursive=False):
        question = answer.find_previous_sibling()
        if question.name != "details":
            yield [_tag("h2", heading), question, *_answers(question)]
    titles = [node.find(class_="admonition-title") for node in exercises.select("div.exercise")]
    rows = "".join(
        f'<li><a href="#{node.parent["id"]}">{html.escape(_words(node))}</a></li>'
        for node in titles
    )
    yield [_tag("h2", "Exercises"), BeautifulSoup(f"<ul>{rows}</ul>", "html.parser")]


def _answers(question):
    for node in question.find_next_siblings():
        if node.name != "details":
            return
        yield node


def _is_caption(node):
    """Whether a paragraph is a caption: all of it is stressed."""
    if node is None or node.name != "p":
        return False
    return [child.name for child in node.children if str(child).strip()] == ["em"]


def _words(heading):
    heading = copy.copy(heading)
    for link in heading.select(".headerlink"):
        link.decompose()
    return " ".join(heading.get_text().split())


def _tag(name, words):
    return BeautifulSoup(f"<{name}>{html.escape(words)}</{name}>", "html.parser")


def _html(nodes, name):
    """Return copies without names of their own, whose links lead to the page."""
    made = BeautifulSoup("".join(map(str, nodes)), "html.parser")
    for node in made.select(".headerlink, .copybtn"):
        node.decompose()
    for node in made.find_all(id=True):
        del node["id"]
    for node in made.select("pre, div.math"):
        # What is wider than a phone is scrolled, by keys as well.
        node["tabindex"] = "0"
    for link in made.find_all("a", href=True):
        if link["href"].startswith("#"):
            link["href"] = f"{name}.html{link['href']}"
    return str(made)


def write(app, error):
    """Write the deck of every core page: those that have a quiz."""
    if error is not None or app.builder.format != "html":
        return
    for source in sorted((Path(app.srcdir) / "book" / quizzes.FOLDER).glob("*.md")):
        page = Path(app.outdir) / "book" / f"{source.stem}.html"
        if page.is_file():
            made = deck(page.read_text(encoding="utf-8"), source.stem)
            page.with_name(f"{source.stem}-slides.html").write_text(made, encoding="utf-8")


def setup(app):
    """Connect to Sphinx, before scripts are moved out of the pages."""
    app.connect("build-finished", write, priority=300)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
