"""What the printed book and the zip of the site make of the pages."""

import base64
import io
import subprocess
import sys
import zipfile
from typing import ClassVar
from xml.etree import ElementTree

import epub
import nbformat
import offline_zip
import pdf
import printed
import pytest
from docutils import nodes
from sphinx import addnodes

TOC = {
    "root": "book/index",
    "parts": [
        {
            "caption": "Learning",
            "numbered": 1,
            "chapters": [
                {"file": "book/elun"},
                {"file": "book/pate", "sections": [{"file": "book/deeper/pate"}]},
            ],
        },
        {
            "caption": "Back matter",
            "chapters": [
                {"file": "book/glossary"},
                {"file": "book/api", "sections": [{"file": "book/api/pate"}]},
            ],
        },
        {"caption": "Solutions", "chapters": [{"file": "book/solutions/pate"}]},
        {"caption": "中文", "chapters": [{"file": "book/zh/index"}]},
    ],
}

TABLE = """<div><style scoped>th {top}</style><table class="dataframe">
<thead><tr><th></th><th>epsilon</th><th>method &amp; data</th></tr>
<tr><th>scale</th><th></th><th></th></tr></thead>
<tbody><tr><th>20.0</th><td>0.1</td><td>by hand</td></tr>
<tr><th>10.0</th><td>1,234.5 ± 2</td><td>2 coins</td></tr></tbody></table></div>"""


def test_the_printed_book_has_neither_the_api_nor_pages_in_chinese():
    assert printed.parts(TOC) == [
        ("Learning", True, [["book/elun"], ["book/pate", "book/deeper/pate"]]),
        ("Back matter", False, [["book/glossary"]]),
        ("Solutions", False, [["book/solutions/pate"]]),
    ]


def test_a_chapter_by_itself_has_its_deeper_page_and_its_solutions():
    assert printed.chapters(TOC) == {
        "elun": ["book/elun"],
        "pate": ["book/pate", "book/deeper/pate", "book/solutions/pate"],
    }


def test_every_numbered_chapter_of_the_book_can_be_printed_with_its_solutions():
    toc = printed.read_toc()
    chapters = printed.chapters(toc)
    names = [name for _, _, pages in printed.parts(toc) for page in pages for name in page]
    assert len(chapters) == 12
    assert all(pages[-1] == f"book/solutions/{name}" for name, pages in chapters.items())
    assert names[-1].startswith("book/solutions/")
    assert len(set(names)) == len(names)
    assert set().union(*chapters.values()) <= set(names)


def test_only_pages_that_exist_are_left_out():
    places = [printed.ROOT / name for name in printed.LEFT_OUT]
    assert all(place.is_dir() or place.with_suffix(".md").is_file() for place in places)


def test_the_name_of_an_index_moves_into_the_corner_of_its_table():
    head, body = printed.html_table(TABLE)
    assert [[cell[0] for cell in row] for row in head] == [["scale", "epsilon", "method & data"]]
    assert [cell[0] for cell in body[1]] == ["10.0", "1,234.5 ± 2", "2 coins"]


def test_numbers_stand_on_the_right_of_a_column_and_words_on_the_left():
    assert printed.alignment(*printed.html_table(TABLE)) == "LRL"


def test_a_table_with_two_rows_of_names_keeps_both():
    text = (
        "<table><thead><tr><th></th><th colspan='2'>AUC</th></tr><tr><th></th><th>a</th><th>b</th>"
        "</tr></thead><tbody><tr><th rowspan='2'>x</th><td>1</td><td>2</td></tr>"
        "<tr><td>3</td><td>4</td></tr></tbody></table>"
    )
    head, _ = printed.html_table(text)
    table = printed.table_nodes(text)[1]
    entries = list(table.findall(nodes.entry))
    assert len(head) == 2
    assert [entry.get("morecols") for entry in entries][:2] == [None, 1]
    assert [entry["morerows"] for entry in entries if "morerows" in entry] == [1]
    assert table[0]["cols"] == 3


def test_a_long_table_may_break_over_pages():
    rows = "".join(f"<tr><th>{number}</th><td>{number}</td></tr>" for number in range(40))
    spec, table = printed.table_nodes(f"<table><tbody>{rows}</tbody></table>")
    assert table["classes"] == ["longtable"]
    assert spec["spec"] == "lr"


def quiz():
    """Return a section with one question, as MyST reads it from a notebook."""

    def raw(text):
        return nodes.raw("", text, format="html")

    def said(verdict, words):
        return nodes.paragraph("", "", nodes.strong("", verdict), nodes.Text(f" {words}"))

    return nodes.section(
        "",
        nodes.title("", "Check yourself"),
        nodes.paragraph("", "Click the line of an answer."),
        nodes.paragraph("", "1. Is a bound a proof?"),
        raw('<details class="quiz wrong">\n<summary><em>Yes</em>, if a &lt; b.</summary>'),
        said("Not quite.", "Another event may tell more."),
        raw("</details>"),
        raw('<details class="quiz right">\n<summary>No: see <code>audit</code>.</summary>'),
        said("Right.", "It refutes nothing."),
        raw("</details>"),
        nodes.paragraph("", "2. And now?"),
        raw('<details class="quiz right">\n<summary>Now.</summary>'),
        said("Right.", "Now."),
        raw("</details>"),
    )


def test_a_quiz_in_print_asks_and_keeps_its_answers_for_the_end():
    section = quiz()
    said = printed.print_quiz(section)
    asked = section.astext()
    assert "Click" not in asked
    assert printed.WHERE in asked
    assert "Yes, if a < b." in asked
    assert "refutes" not in asked
    assert not list(section.findall(nodes.raw))
    assert [len(letters.children) for letters in section.findall(nodes.enumerated_list)] == [2, 1]
    assert [[(letter, right) for letter, right, _ in of] for _, of in said] == [
        [("a", False), ("b", True)],
        [("a", True)],
    ]


def test_the_answers_say_which_is_right_and_why_each_is_or_is_not():
    section = quiz()
    words = [
        paragraph.astext()
        for paragraph in printed.answers(printed.print_quiz(section)).findall(nodes.paragraph)
    ]
    assert words == [
        "1 (a) Another event may tell more.",
        "1 (b) is right. It refutes nothing.",
        "2 (a) is right. Now.",
    ]


def test_stress_and_code_of_an_answer_stay():
    kinds = [type(node) for node in printed.words_of("a <em>b</em> <code>c &amp; d</code>")]
    assert kinds == [nodes.Text, nodes.emphasis, nodes.Text, nodes.literal]


def test_a_proof_has_a_heading_and_an_end():
    proof = nodes.section()
    proof.extend(
        printed._proof([nodes.paragraph("", "Proof. It is so."), nodes.math_block("", "x")])
    )
    assert next(iter(proof.findall(nodes.emphasis))).astext() == "Proof."
    assert proof.astext().count("Proof.") == 1
    assert r"\dpend" in proof.children[-2].astext()


def test_the_index_gets_a_definition_outside_the_argument_that_a_term_is():
    entry = addnodes.index(entries=[("single", "post-processing", "term-post", "main", None)])
    term = nodes.term("", "post-processing", entry)
    definition = nodes.definition("", nodes.paragraph("", "Whatever is done later."))
    tree = nodes.definition_list("", nodes.definition_list_item("", term, definition))
    printed.index_terms(tree, Glossary())
    assert not list(term.findall(addnodes.index))
    assert definition[0][0] is entry


def test_a_use_of_a_term_is_in_the_index_by_the_name_of_the_glossary():
    link = nodes.reference("", "neighbouring", refuri=f"%{printed.GLOSSARY}#term-neighbours")
    tree = nodes.paragraph("", "Two ", link)
    printed.index_terms(tree, Glossary())
    [entry] = tree.findall(addnodes.index)
    assert entry["entries"] == [("single", "Neighbours", "", None, None)]


class Glossary:
    """A book that defines one term."""

    objects: ClassVar = {("term", "Neighbours"): (printed.GLOSSARY, "term-neighbours")}

    def get_domain(self, _):
        return self


def test_the_log_of_latex_is_read():
    log = (
        "Overfull \\hbox (12.5pt too wide) in\nOverfull \\hbox (3.0pt too wide) in\n"
        "! Undefined control sequence.\nMissing character: There is no ☃ in font x!\n"
        "Output written on dpnotes.xdv (37\n9 pages, 12 bytes)."
    )
    assert pdf.wide_boxes(log) == 1
    assert pdf.pages(log) == 379
    assert pdf.errors(log)[0] == "! Undefined control sequence."
    assert len(pdf.errors(log)) == 2


def test_what_is_missing_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"xelatex.*\n.*apt-get install.*texlive-xetex"):
        pdf.main(["pate"])


def test_a_chapter_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        pdf.main(["nothing"])
    assert "no such chapter: nothing" in capsys.readouterr().err


def test_figures_are_drawn_again_as_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "_pages", lambda names: ["book/page", "book/words"])
    dots = nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": ""})
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    for name, outputs in {"page": [dots], "words": []}.items():
        cell = nbformat.v4.new_code_cell(plot, outputs=outputs)
        path = tmp_path / "book" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    pdf.draw(["page"], tmp_path)
    [drawn] = nbformat.read(tmp_path / "book" / "page.ipynb", 4).cells[0].outputs
    assert base64.b64decode(drawn.data["application/pdf"]).startswith(b"%PDF")
    # What has no figure is not run.
    assert nbformat.read(tmp_path / "book" / "words.ipynb", 4).cells[0].outputs == []


def test_a_formula_becomes_mathml_that_every_reader_can_parse():
    pytest.importorskip("latex2mathml")
    text = r"\begin{aligned} a &< \Bigl\{b\Bigr\} \\ &= c \end{aligned}"
    formula = ElementTree.fromstring(epub.mathml(text, "block"))
    assert "".join(formula.itertext()).split() == ["a<{b}=c"]
    assert formula.get("display") == "block"


def test_without_its_package_an_epub_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(epub.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"latex2mathml is missing:\n.*pip install latex2mathml=="):
        epub.main()


def test_the_zip_is_the_same_whenever_it_is_made(tmp_path):
    site = tmp_path / "html"
    for name in (
        "index.html",
        "b.png",
        "a/page.html",
        "_static/try/engine/python.gz",
        ".buildinfo",
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(name)
    offline_zip.pack(site, tmp_path / "one.zip", 1_700_000_000)
    (site / "index.html").touch()
    offline_zip.pack(site, tmp_path / "two.zip", 1_700_000_000)
    made = (tmp_path / "one.zip").read_bytes()
    assert made == (tmp_path / "two.zip").read_bytes()
    entries = zipfile.ZipFile(io.BytesIO(made)).infolist()
    assert [entry.filename for entry in entries] == [
        "dpnotes/a/page.html",
        "dpnotes/b.png",
        "dpnotes/index.html",
    ]
    assert {entry.date_time for entry in entries} == {(2023, 11, 14, 22, 13, 20)}


@pytest.mark.full
@pytest.mark.skipif(bool(pdf.missing()), reason="LaTeX is not here")
def test_a_chapter_is_printed_without_an_error():
    # A process of its own: here, what Sphinx calls old ways would be errors.
    program = [sys.executable, pdf.__file__, "noisy_gradient_descent"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "Missing character" not in done.stderr
    made = (pdf.PDF / "noisy_gradient_descent.pdf").read_bytes()
    assert made.startswith(b"%PDF")
    log = (pdf.LATEX / "noisy_gradient_descent.log").read_text(encoding="utf-8", errors="replace")
    assert pdf.pages(log) > 10
    assert pdf.wide_boxes(log) == 0
    assert "Hyper reference" not in log
