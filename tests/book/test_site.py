"""The built site: each rule holds for it, and is shown to fail on a planted page."""

import base64
import hashlib
import os
import re
from pathlib import Path

import api
import built
import hooks
import pdf
import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("DPNOTES_SITE", ROOT / "_build" / "html"))


@pytest.mark.site
@pytest.mark.parametrize("rule", built.RULES)
def test_the_built_site_keeps_the_rule(rule):
    index = SITE / "index.html"
    sources = [ROOT / "_config.yml", ROOT / "_toc.yml", *(ROOT / "book").glob("*.*")]
    if not index.exists() or max(p.stat().st_mtime for p in sources) > index.stat().st_mtime:
        pytest.skip("the built site is missing or older than its sources: run `make book`")
    assert not list(rule(SITE.resolve()))


META = hooks.add_policy("")
LAX = META.replace("'unsafe-hashes'", "'unsafe-inline'")
FORMS = META.replace("form-action 'self'", "form-action *")
PLANTED = {
    built.foreign_sources: [
        '<script src="https://cdn.example/x.js"></script>',
        '<img src="//cdn.example/x.png">',
        '<link rel="preload stylesheet" href="https://cdn.example/x.css">',
    ],
    built.broken_links: ['<a href="gone.html">', '<a href="other.html#gone">', '<a href="#x">'],
}
GOOD = f"""{META}
<script src="_static/x.js"></script><script type="application/json">{{}}</script>
<link rel="canonical" href="https://dpnotes.example/"><link rel="stylesheet" href="_static/x.css">
<a href="https://elsewhere.example">x</a><a href="other.html#here">x</a><a href="#own">x</a>
<h1 id="own">x</h1><img src="_static/x.png">
"""


@pytest.mark.parametrize("rule", PLANTED)
def test_a_rule_catches_each_planted_page(rule, tmp_path):
    for number, text in enumerate(["", *PLANTED[rule]]):
        site = tmp_path / str(number)
        site.mkdir()
        (site / "index.html").write_text(GOOD + text)
        (site / "other.html").write_text(f'{META}<h1 id="here">x</h1>')
        assert bool(list(rule(site))) == bool(text)


@pytest.mark.parametrize("page", ["<h1>x</h1>", '<script src="x.js"></script>' + META, LAX, FORMS])
def test_a_page_without_a_policy_or_with_a_late_or_lax_one_is_found(tmp_path, page):
    (tmp_path / "index.html").write_text(page)
    assert len(list(built.lax_policies(tmp_path))) == 1


def test_a_style_sheet_that_loads_from_elsewhere_is_found(tmp_path):
    (tmp_path / "x.css").write_text("@font-face {src: url('https://fonts.example/x.woff2')}")
    assert list(built.foreign_sources(tmp_path)) == ["x.css loads https://fonts.example/x.woff2"]


LOUD = """<html><head><meta charset="utf-8" />
<script data-cfasync="false">one</script>
<script src="_static/x.js"></script>
<script>two</script><script type="text/x-thebe-config">data</script>
</head><body><button onclick="act(&quot;x&quot;)">x</button><a onclick="go()">y</a></body></html>
"""


def test_a_policy_names_the_scripts_and_handlers_of_a_page_and_data_for_scripts_stays():
    page = hooks.add_policy(LOUD)
    allowed = re.findall(r"'sha256-([^']+)'", page)
    scripts = [b"one", b"two", b'act("x")', b"go()"]
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
    assert sorted(allowed) == sorted(digests)
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert "thebe" not in page
    words = "<p>&lt;script&gt;x&lt;/script&gt; and a button onclick=&quot;x&quot;</p>"
    assert hooks.add_policy(words) == META + words


def test_an_attribute_keeps_the_underscore_at_its_end():
    lines = [":ivar coef_: Weights.", ":vartype coef_: array", "Uses coef_."]
    api.keep_underscores(None, "class", "x", None, None, lines)
    assert lines == [r":ivar coef\_: Weights.", r":vartype coef\_: array", "Uses coef_."]


@pytest.mark.browser
@pytest.mark.skipif(pdf.CHROMIUM is None, reason="there is no Chromium")
def test_a_printed_page_is_a_pdf_whose_links_lead_to_the_published_site(tmp_path):
    page, into = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text('<h1 id="x">x</h1><a href="../b.html#y">y</a><a href="#x">x</a>')
    pdf.print_page(page, into, "https://example.org/book/deeper/page.html")
    found = into.read_bytes()
    assert found.startswith(b"%PDF")
    assert b"(https://example.org/book/b.html#y)" in found
    assert b"file:" not in found
    assert sorted(tmp_path.iterdir()) == [page, into]
