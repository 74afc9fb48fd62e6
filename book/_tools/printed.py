"""A Sphinx extension that turns the pages of the site into pages of paper, by way of LaTeX.

The site has what paper has not: answers that open, code that unfolds, figures that move, programs
that run, tables in HTML. Here each becomes something that can be printed, and a link to a page that
is not printed becomes one to the site. ``pdf.py`` is the program that asks for a book.
"""

import posixpath
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.builders.latex import LaTeXBuilder
from sphinx.transforms.post_transforms.images import ImageConverter
from sphinx.util.docutils import new_document

import try_it

ROOT = Path(__file__).resolve().parents[2]
PREAMBLE = ROOT / "book" / "_print" / "preamble.tex"
BOOK = "dpnotes"
# Of a figure, in percent: its letters are then as high as small print.
SCALE = 80
GLOSSARY = "book/glossary"
SOLUTIONS = "book/solutions"
SUBTITLE = "Differential privacy, mechanism by mechanism"

# Pages and folders that are not printed. What is checked, the audits of packages and the times of
# functions are long tables, remade by programs, whose worth is in their links; the playground runs
# in a browser; an assignment is a notebook to fill in; the bibliography LaTeX puts at the end.
LEFT_OUT = {
    "book/api",
    "book/assignments",
    "book/bibliography",
    "book/field",
    "book/guarantees",
    "book/how_fast",
    "book/use/playground",
    "book/zh",
}


# Characters that the font of the text lacks, and what stands for them.
REPLACED = str.maketrans({"⅓": "1/3", "′": "'"})


# Which pages.


def is_printed(name):
    """Say whether a page is printed."""
    return not any(name == left or name.startswith(f"{left}/") for left in LEFT_OUT)


def parts(toc):
    """Return ``(caption, has numbers, [[page, its sections ...], ...])`` for each printed part."""
    found = []
    for part in toc["parts"]:
        chapters = [[chapter["file"], *_sections(chapter)] for chapter in part["chapters"]]
        kept = [[name for name in chapter if is_printed(name)] for chapter in chapters]
        if any(kept):
            found.append(
                (part["caption"], bool(part.get("numbered")), [page for page in kept if page])
            )
    return found


def _sections(chapter):
    return [section["file"] for section in chapter.get("sections", [])]


def chapters(toc):
    """Map the name of each chapter to its pages: the core page, the deeper one, the solutions."""
    solutions = {page[0] for _, _, pages in parts(toc) for page in pages}
    found = {}
    for _, numbered, pages in parts(toc):
        for page in pages if numbered else []:
            name = posixpath.basename(page[0])
            last = f"{SOLUTIONS}/{name}"
            found[name] = [*page, *([last] if last in solutions else [])]
    return found


def read_toc(root=ROOT):
    """Read the table of contents."""
    return yaml.safe_load((Path(root) / "_toc.yml").read_text(encoding="utf-8"))


# Tables of notebooks.


class _Table(HTMLParser):
    """The rows of a table: ``(text, is a heading, columns, rows)`` for each cell."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.head, self.cell, self.in_head = [], 0, None, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "thead":
            self.in_head = True
        elif tag == "tr":
            self.rows.append([])
            self.head += self.in_head
        elif tag in {"td", "th"}:
            spans = [int(given.get(key) or 1) for key in ("colspan", "rowspan")]
            self.cell = ["", tag == "th", *spans]
        elif tag == "br" and self.cell:
            self.cell[0] += " "

    def handle_endtag(self, tag):
        if tag == "thead":
            self.in_head = False
        elif tag in {"td", "th"} and self.cell:
            text, *rest = self.cell
            self.rows[-1].append((" ".join(text.split()), *rest))
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.cell[0] += data


def html_table(text):
    """Return ``(rows of the head, rows of the body)`` of a table in HTML.

    pandas writes the name of its index into a row of its own; it moves up into the corner.
    """
    table = _Table(text)
    rows = [row for row in table.rows if row]
    head, body = rows[: table.head], rows[table.head :]
    if len(head) > 1 and _fill_each_other(head[-2], head[-1]):
        together = [upper if upper[0] else lower for upper, lower in zip(*head[-2:], strict=True)]
        head = [*head[:-2], together]
    return head, body


def _fill_each_other(upper, lower):
    single = all(cell[2:] == (1, 1) for cell in [*upper, *lower])
    return (
        single
        and len(upper) == len(lower)
        and all(not (above[0] and below[0]) for above, below in zip(upper, lower, strict=True))
    )


def _is_number(text):
    return bool(
        re.fullmatch(r"[-+−±<>≤≥≈~ \d.,:%×x^/()e–]*\d[-+−±\d.,:%×x^/()e –]*|nan|inf|∞|–|-|", text)
    )


def alignment(head, body):
    """Return the columns of a table for LaTeX: numbers to the right, words to the left."""
    width = max(sum(cell[2] for cell in row) for row in [*head, *body])
    columns = []
    for column in range(width):
        texts = [row[column][0] for row in body if len(row) == width]
        columns.append("R" if texts and column and all(map(_is_number, texts)) else "L")
    return "".join(columns)


def table_nodes(text):
    """Return a table in HTML as nodes of docutils, the alignment of its columns first."""
    head, body = html_table(text)
    columns = alignment(head, body)
    is_long = len(body) > 28
    group = nodes.tgroup("", cols=len(columns))
    group += [nodes.colspec(colwidth=1) for _ in columns]
    if head:
        group += nodes.thead("", *map(_row, head))
    group += nodes.tbody("", *map(_row, body))
    table = nodes.table("", group, classes=["longtable"] if is_long else [])
    return [addnodes.tabular_col_spec(spec=columns.lower() if is_long else columns), table]


def _row(cells):
    row = nodes.row()
    for text, heading, columns, rows in cells:
        words = nodes.strong("", text) if heading and text else nodes.Text(text)
        spans = {"morecols": columns - 1} if columns > 1 else {}
        spans |= {"morerows": rows - 1} if rows > 1 else {}
        row += nodes.entry("", nodes.paragraph("", "", words), **spans)
    return row


# Quizzes.

OPENED = re.compile(r"<details class=\"quiz (right|wrong)\">\s*<summary>(.*?)</summary>", re.S)
STRESSED = re.compile(r"<(em|code)>(.*?)</\1>", re.S)
WHERE = "The answers, and what is to be said of each, are at the end of the chapter."


def words_of(text):
    """Return the text of an answer, with its stress and its code, as nodes."""
    found, end = [], 0
    kinds = {"em": nodes.emphasis, "code": nodes.literal}
    for match in STRESSED.finditer(text):
        found += [nodes.Text(_plain(text[end : match.start()]))]
        found += [kinds[match[1]]("", _plain(match[2]))]
        end = match.end()
    return [node for node in [*found, nodes.Text(_plain(text[end:]))] if node.astext()]


def _plain(text):
    for mark, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(mark, character)
    return text


def print_quiz(section):
    """Turn the quiz of a section into questions with lists of answers; return what is said to them.

    Each entry is ``(number, [(letter, is right, nodes), ...])``.
    """
    title, _, *rest = section.children
    kept, said, letters, open_answer = [title, nodes.paragraph("", WHERE)], [], None, None
    for node in rest:
        opened = isinstance(node, nodes.raw) and OPENED.search(node.astext())
        if opened:
            if letters is None:
                letters = nodes.enumerated_list("", enumtype="loweralpha", prefix="(", suffix=")")
                kept.append(letters)
                said.append((len(said) + 1, []))
            letters += nodes.list_item("", nodes.paragraph("", "", *words_of(opened[2])))
            open_answer = []
            said[-1][1].append((chr(96 + len(letters)), opened[1] == "right", open_answer))
        elif isinstance(node, nodes.raw) and "</details>" in node.astext():
            open_answer = None
        elif open_answer is not None:
            open_answer.append(node)
        else:
            letters = None
            kept.append(node)
    section.children = []
    section.extend(kept)
    return said


def answers(said):
    """Return a section with what is to be said of each answer, in small print."""
    section = nodes.section("", nodes.title("", "Answers to the quiz"), ids=["answers-to-the-quiz"])
    section += _latex(r"\begin{dpsmall}")
    for number, of in said:
        for letter, right, blocks in of:
            mark = nodes.strong("", f"{number} ({letter}){' is right.' if right else ''}")
            words = _without_verdict(blocks)
            section += nodes.paragraph("", "", mark, nodes.Text(" "), *words)
    section += _latex(r"\end{dpsmall}")
    return section


def _without_verdict(blocks):
    """Return the words of what is said, without the "Right." or "Not quite." at its start."""
    found = []
    for block in blocks:
        children = [child for child in block.children if child.astext()]
        if children and isinstance(children[0], nodes.strong):
            children = children[1:]
            if children and isinstance(children[0], nodes.Text):
                children[0] = nodes.Text(children[0].lstrip())
        found += [*children, nodes.Text(" ")]
    return found[:-1]


# What else a page has.


class Anchor(nodes.Element):
    """A place that links lead to."""


def _visit_anchor(writer, node):
    writer.body += [writer.hypertarget(name) for name in node["names_of"]]
    raise nodes.SkipNode


def _visit_anchor_of_site(writer, node):
    writer.body += [f'<span id="{name}"></span>' for name in node["names_of"]]
    raise nodes.SkipNode


def _latex(text):
    return nodes.raw("", text, format="latex")


def prepare(tree, env, name, site):
    """Make a page fit for print, in place; return what is said to the answers of its quiz."""
    _replace_characters(tree)
    _drop_folded(tree)
    _choose_outputs(tree)
    _print_statements(tree, env, name)
    _print_exercises(tree, env, name)
    _print_hints(tree)
    said = _print_quizzes(tree)
    _print_boxes(tree, f"{site}{name}.html")
    _print_breaks(tree)
    _print_sources(tree)
    _name_equations(tree)
    return said


def _drop_folded(tree):
    """Drop the code that the site folds, as in print it cannot be unfolded."""
    for cell in list(tree.findall(_is_cell)):
        for part in list(cell.children):
            if cell.get("hide_mode") and "cell_input" in part.get("classes", []):
                cell.remove(part)


def _is_cell(node):
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def _choose_outputs(tree):
    """Take of each output the vectors, else the dots, else the table, else the text."""
    for bundle in list(
        tree.findall(
            lambda node: (
                node.get("nb_element") == "mime_bundle"
                if isinstance(node, nodes.container)
                else False
            )
        )
    ):
        by_type = {part["mime_type"]: part for part in bundle.children}
        for kind in ("application/pdf", "image/png", "text/html", "text/plain"):
            if kind in by_type:
                bundle.replace_self(_output(kind, by_type[kind]))
                break
        else:
            bundle.parent.remove(bundle)
    for cell in tree.findall(_is_cell):
        for part in cell.children:
            if "cell_output" in part.get("classes", []):
                part.insert(0, _latex(r"\begin{dpoutput}"))
                part.append(_latex(r"\end{dpoutput}"))


def _output(kind, part):
    if kind == "text/html":
        return table_nodes(part.astext()) if "<table" in part.astext() else []
    for image in part.findall(nodes.image):
        image["align"], image["scale"] = "center", SCALE
    return part.children


def _number(env, name, kind, label):
    number = env.toc_fignumbers.get(name, {}).get(kind, {}).get(label, ())
    return ".".join(map(str, number))


def _boxed(kind, heading, title, body, labels=()):
    """Return a statement in a frame, with its heading before its first words."""
    start = [nodes.strong("", heading)] if heading else []
    if title:
        start += [nodes.Text(" "), nodes.strong("", "", nodes.Text("("), *title, nodes.Text(")"))]
    body = list(body)
    if body and isinstance(body[0], nodes.paragraph):
        first = nodes.paragraph("", "", *start, nodes.Text(". "), *body.pop(0).children)
    else:
        first = nodes.paragraph("", "", *start, nodes.Text("."))
    frame = [_latex(rf"\begin{{dp{kind}}}"), Anchor(names_of=list(labels)), first]
    return [*frame, *body, _latex(rf"\end{{dp{kind}}}")]


def _print_statements(tree, env, name):
    for node in list(
        tree.findall(lambda node: bool(isinstance(node, nodes.Element) and node.get("realtype")))
    ):
        title = next(iter(node.findall(nodes.title)))
        words = re.fullmatch(r"\s*\((.*)\)\s*", title.astext(), re.S)
        content = [child for child in node.children if child is not title]
        body = [
            part
            for child in content
            for part in (child.children if isinstance(child, nodes.section) else [child])
        ]
        number = _number(env, name, node.get("countertype", node["realtype"]), node["ids"][0])
        heading = f"{node['realtype'].title()} {number}".strip()
        node.replace_self(
            _boxed("statement", heading, _inside(title) if words else [], body, node["ids"])
        )
    for node in list(tree.findall(nodes.admonition)):
        if "proof" in node.get("classes", []):
            node.parent.replace_self(_proof(list(node.children)))


def _inside(title):
    """Return the words of a title without the brackets around it."""
    children = [child.deepcopy() for child in title.children]
    if isinstance(children[0], nodes.Text):
        children[0] = nodes.Text(children[0].lstrip().removeprefix("("))
    if isinstance(children[-1], nodes.Text):
        children[-1] = nodes.Text(children[-1].rstrip().removesuffix(")"))
    return children


def _proof(body):
    """Return a proof with its heading, and a square at its end."""
    if isinstance(body[0], nodes.paragraph) and body[0].astext().startswith("Proof."):
        first = body[0].children[0]
        rest = nodes.Text(first.astext().removeprefix("Proof."))
        body[0].replace(first, [nodes.emphasis("", "Proof."), rest])
    else:
        body.insert(0, nodes.paragraph("", "", nodes.emphasis("", "Proof.")))
    end = _latex(r"\dpend{}")
    if isinstance(body[-1], nodes.paragraph):
        body[-1] += end
    else:
        body.append(nodes.paragraph("", "", end))
    return [_latex(r"\begin{dpproof}"), *body, _latex(r"\end{dpproof}")]


def _print_exercises(tree, env, name):
    for node in list(
        tree.findall(
            lambda node: (
                type(node).__name__.startswith("exercise_") and type(node).__name__.endswith("node")
            )
        )
    ):
        subtitle = next(
            (part for part in node.findall() if type(part).__name__ == "exercise_subtitle"), None
        )
        section = next((part for part in node.children if isinstance(part, nodes.section)), None)
        number = _number(env, name, "exercise", node["ids"][0])
        title = list(subtitle.children) if subtitle is not None else []
        body = section.children if section is not None else []
        place = _latex(rf"\phantomsection\label{{exercise:{node['label']}}}")
        heading = f"Exercise {number}".strip()
        node.replace_self([place, *_boxed("exercise", heading, title, body, node["ids"])])


def _print_hints(tree):
    for node in list(tree.findall(nodes.hint)):
        body = list(node.children)
        if body and isinstance(body[0], nodes.paragraph):
            body[0].insert(0, [nodes.emphasis("", "Hint."), nodes.Text(" ")])
        node.replace_self([_latex(r"\begin{dphint}"), *body, _latex(r"\end{dphint}")])


def _print_quizzes(tree):
    for section in list(tree.findall(nodes.section)):
        if any(
            isinstance(node, nodes.raw) and OPENED.search(node.astext())
            for node in section.children
        ):
            return print_quiz(section)
    return []


def _print_boxes(tree, address):
    """Name the figures that move, and print the programs that run, where the site has them."""
    for raw in list(tree.findall(nodes.raw)):
        text = raw.astext()
        if raw.get("format") != "html" or "<div" not in text:
            continue
        found = re.search(r'class="try-it" data-try="([\w ]+)"', text)
        if found:
            raw.replace_self(
                [part for name in found[1].split() for part in _program(name, address)]
            )
        elif 'class="interactive"' in text:
            raw.replace_self(
                _note(
                    "On ",
                    address,
                    "the page of this chapter",
                    ", a figure to be moved stands here.",
                )
            )


def _note(before, address, words, after):
    link = nodes.reference("", words, refuri=address)
    return nodes.paragraph(
        "", "", nodes.emphasis("", "", nodes.Text(before), link, nodes.Text(after))
    )


def _program(name, address):
    source = (try_it.PROGRAMS / f"{name}.py").read_text(encoding="utf-8").rstrip()
    output = (try_it.PROGRAMS / f"{name}.txt").read_text(encoding="utf-8").rstrip()
    return [
        _note("On ", address, "the page of this chapter", ", this can be edited and run."),
        nodes.literal_block(source, source, language="python"),
        _latex(r"\begin{dpoutput}"),
        nodes.literal_block(output, output, language="text"),
        _latex(r"\end{dpoutput}"),
    ]


def _print_breaks(tree):
    for raw in list(tree.findall(nodes.raw)):
        if raw.get("format") == "html" and re.fullmatch(r"<br\s*/?>", raw.astext().strip()):
            raw.replace_self(_latex(r"\newline{}"))


def _print_sources(tree):
    """Set sources in small print; a page that cites nothing has a heading alone, and loses it."""
    for section in list(tree.findall(nodes.section)):
        if section.children and section.children[0].astext() == "Sources":
            if len(section.children) == 1:
                section.parent.remove(section)
                continue
            section.insert(1, _latex(r"\begin{dpsmall}"))
            section.append(_latex(r"\end{dpsmall}"))


def _replace_characters(tree):
    for text in list(tree.findall(nodes.Text)):
        new = text.astext().translate(REPLACED)
        formula = isinstance(text.parent, nodes.math | nodes.math_block | nodes.literal_block)
        if new != text.astext() and not formula:
            text.parent.replace(text, nodes.Text(new))


def _name_equations(tree):
    """Let links by the site's name of an equation arrive."""
    for equation in list(tree.findall(nodes.math_block)):
        if equation.get("label"):
            place = Anchor(names_of=[f"equation-{equation['label']}"])
            equation.parent.insert(equation.parent.index(equation), place)


# The index.


def index_terms(tree, env):
    """Put each use of a term into the index, under its name; Sphinx puts its definition there.

    That entry moves from the term into the definition: a term is an argument of LaTeX, where a
    hyphen is written otherwise, so that the index would list the term twice.
    """
    for entry in list(tree.findall(addnodes.index)):
        term = entry.parent
        if isinstance(term, nodes.term):
            term.remove(entry)
            next(iter(term.parent.findall(nodes.definition)))[0].insert(0, entry)
    objects = env.get_domain("std").objects
    names = {
        place: name
        for (kind, name), (page, place) in objects.items()
        if kind == "term" and page == GLOSSARY
    }
    for link in list(tree.findall(nodes.reference)):
        place = f"{link.get('refuri', '')}#{link.get('refid', '')}"
        found = re.search(r"#term-([^#]+)", place)
        if found and GLOSSARY in f"{place}{link.get('refuri', '')}":
            entry = ("single", names.get(f"term-{found[1]}", found[1]), "", None, None)
            link.parent.insert(
                link.parent.index(link), addnodes.index(entries=[entry], inline=True)
            )


# The builder.


class Printed(LaTeXBuilder):
    """Write the book, and chapters, as LaTeX."""

    def get_target_uri(self, docname, typ=None):
        """Return where a page is: in this document, else on the site."""
        if docname in self.docnames:
            return f"%{docname}"
        return f"{self.config.html_baseurl}{docname}.html"

    def get_contentsname(self, indexfile):
        """Return no name: that of the first part would be taken."""
        return ""

    def init_document_data(self):
        """List what was asked for: the book, or chapters."""
        self.titles, self.document_data = [], []
        toc = read_toc(self.app.srcdir)
        self.by_name = {BOOK: [toc["root"]], **chapters(toc)}
        for name in self.config.printed:
            pages = self.by_name[name]
            title = SUBTITLE if name == BOOK else self.env.titles[pages[0]].astext()
            theme = "manual" if name == BOOK else "howto"
            author = rf"\dpauthor{{{self.config.author}}}{{{self.config.html_baseurl}}}"
            entry = [pages[0], f"{name}.tex", title, author, theme, False]
            self.document_data.append(entry)

    def update_doc_context(self, title, author, theme):
        """Leave the index and the contents out of a chapter."""
        super().update_doc_context(title, author, theme)
        whole = theme.name == "manual"
        self.context["printindex"] = r"\printindex" if whole else ""
        self.context["papersize"], self.context["pointsize"] = "a4paper", "10pt"
        self.context["title"] = rf"\dptitle{{{BOOK}}}{{{title}}}" if whole else title

    def assemble_doctree(self, indexfile, toctree_only, appendices):
        """Put the pages of a document together."""
        toc = read_toc(self.app.srcdir)
        if indexfile == toc["root"]:
            tree = self._book(toc)
        else:
            pages = next(pages for pages in self.by_name.values() if pages[0] == indexfile)
            tree = self._chapter(pages)
        tree["docname"] = indexfile
        self.env.resolve_references(tree, indexfile, self)
        for link in tree.findall(nodes.paragraph):
            if "sd-text-right" in link.get("classes", []):  # how a statement is checked
                link.children = []
        index_terms(tree, self.env)
        return tree

    def _page(self, name):
        """Return a page as a part of a document, with what is said to the answers of its quiz."""
        tree = self.env.get_doctree(name).deepcopy()
        for toctree in list(tree.findall(addnodes.toctree)):
            toctree.parent.remove(toctree)
        said = prepare(tree, self.env, name, self.config.html_baseurl)
        page = addnodes.start_of_file(docname=name)
        page.children = tree.children
        for child in page.children:
            child.parent = page
        for section in page.findall(nodes.section):
            section.setdefault("docname", name)
        top = next(iter(page.findall(nodes.section)))
        if said:
            top += answers(said)
        return page, top

    def _with_sections(self, names):
        page, top = self._page(names[0])
        top.extend(self._page(name)[0] for name in names[1:])
        return page

    def _book(self, toc):
        listed = parts(toc)
        self.docnames = {
            toc["root"],
            *(name for _, _, of in listed for page in of for name in page),
        }
        top = nodes.section("", nodes.title("", BOOK))
        first, about = self._page(toc["root"])
        about.children[0] = nodes.title("", "About this book")
        about.children[0].parent = about
        top += [_latex(r"\dpunnumbered"), first]
        for caption, numbered, pages in listed:
            switch = r"\dpnumbered" if numbered else r"\dpunnumbered"
            top += _latex(rf"\dppart{{{caption}}}{switch}")
            if caption == "Solutions":
                top += _latex(r"\dpshortcontents")
            top.extend(self._with_sections(names) for names in pages)
        return _document(top)

    def _chapter(self, names):
        self.docnames = set(names)
        page, top = self._page(names[0])
        number = ".".join(map(str, self.env.toc_secnumbers[names[0]][""]))
        top.insert(
            1, _latex(rf"\dpchapter{{{number}}}{{{self.config.html_baseurl}{names[0]}.html}}")
        )
        top.extend(self._page(name)[0] for name in names[1:])
        return _document(*page.children)


def _document(*children):
    tree = new_document("<print>")
    tree.extend(children)
    return tree


class VectorsOfSvg(ImageConverter):
    """Turn the drawings of the site into PDF."""

    conversion_rules: ClassVar = [("image/svg+xml", "application/pdf")]

    def is_available(self):
        """Say yes: ``pdf.py`` has looked."""
        return True

    def convert(self, _from, _to):
        """Write a drawing as PDF."""
        done = subprocess.run(["rsvg-convert", "-f", "pdf", "-o", _to, _from], check=False)
        return done.returncode == 0


def configure(app, config):
    """Tell LaTeX what the book looks like."""
    config.latex_engine = "xelatex"
    config.latex_show_urls = "no"
    config.latex_table_style = ["booktabs"]
    config.latex_domain_indices = False
    config.latex_elements = {
        "preamble": PREAMBLE.read_text(encoding="utf-8"),
        "fontpkg": "",
        "fncychap": "",
        "fvset": r"\fvset{fontsize=\footnotesize}",
        "figure_align": "H",
        "geometry": r"\usepackage[a4paper,margin=25mm]{geometry}",
        "extraclassoptions": "openany,oneside",
        "passoptionstopackages": r"\PassOptionsToPackage{svgnames}{xcolor}",
    }


def setup(app):
    """Connect to Sphinx."""
    app.add_config_value("printed", [BOOK], "", list)
    app.add_builder(Printed, override=True)
    app.add_node(Anchor, latex=(_visit_anchor, None), html=(_visit_anchor_of_site, None))
    app.add_post_transform(VectorsOfSvg)
    app.connect("config-inited", configure, priority=100)
    import epub

    epub.register(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
