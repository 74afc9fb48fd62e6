"""Write the book as an EPUB, with its mathematics as MathML: ``_build/dpnotes.epub``.

The pages are made as those of the PDF are (see ``printed.py``), and what the site writes around a
page stays away. ``python book/_tools/epub.py`` builds it; it needs the package latex2mathml.
"""

import html
import importlib.util
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.builders.epub3 import Epub3Builder
from sphinx.transforms.post_transforms import SphinxPostTransform

import pdf
import printed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "_build" / "epub"
EPUB = ROOT / "_build" / "dpnotes.epub"
NEEDED = "latex2mathml==3.81.1"


def mathml(text, display="inline"):
    """Return a formula as MathML."""
    from latex2mathml import converter

    # It knows no lines within a formula but these.
    lines = re.sub(r"\\(begin|end)\{(?:aligned|split|gathered)\}", r"\\\1{align*}", text.strip())
    made = converter.convert(lines, display=display)
    # It leaves the mark of LaTeX before a brace that is larger than the rest.
    return made.replace("\\{", "{").replace("\\}", "}")


def _visit_math(writer, node):
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _visit_displayed(writer, node):
    writer.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


class Prepare(SphinxPostTransform):
    """Make a page fit for a reader of books, before its links are resolved."""

    default_priority = 1
    builders = ("epub",)

    def run(self):
        """Do what is done for paper, with the answers of the quiz at the end of the page."""
        name, env = self.env.docname, self.env
        if not printed.is_printed(name):
            return
        said = printed.prepare(self.document, env, name, self.config.html_baseurl)
        if said:
            next(iter(self.document.findall(nodes.section))).append(printed.answers(said))


class Epub(Epub3Builder):
    """Write the printed pages, with nothing around them."""

    math_renderer_name = "mathml"

    def init(self):
        """Keep away what the site writes around its pages, and beside them."""
        for event in ("html-page-context", "build-finished"):
            heard = self.app.events.listeners[event]
            heard[:] = [found for found in heard if found.handler.__module__.startswith("sphinx.")]
        told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        config = self.config
        config.version = told["project"]["version"]
        config.epub_basename, config.epub_title = (
            printed.BOOK,
            f"{printed.BOOK}: {printed.SUBTITLE}",
        )
        config.epub_description = told["project"]["description"]
        config.epub_identifier, config.epub_scheme = config.html_baseurl, "URL"
        config.epub_uid = "BookId"
        config.epub_show_urls, config.epub_tocdepth = "no", 2
        config.epub_tocscope, config.epub_css_files = "includehidden", []
        config.html_css_files, config.html_js_files, config.html_domain_indices = [], [], False
        self.app.registry.css_files.clear()
        self.app.registry.js_files.clear()
        super().init()

    def get_toc(self):
        """List the printed pages, sections below their chapters."""
        toc = printed.read_toc(self.app.srcdir)
        pages = [page for _, _, of in printed.parts(toc) for page in of]
        self.refnodes = [
            {
                "level": 1 if name == page[0] else 2,
                "refuri": f"{name}{self.out_suffix}",
                "text": html.escape(self.env.titles[name].astext()),
            }
            for page in [[toc["root"]], *pages]
            for name in page
        ]

    def get_relative_uri(self, from_, to, typ=None):
        """Return where a page is: in this book, else on the site."""
        if printed.is_printed(to):
            return super().get_relative_uri(from_, to, typ)
        return f"{self.config.html_baseurl}{to}.html"

    def write(self, build_docnames, updated_docnames, method="update"):
        """Write the printed pages."""
        left_out = {name for name in self.env.found_docs if not printed.is_printed(name)}
        self.config.epub_exclude_files = [f"{name}.xhtml" for name in left_out]
        self.ignored_files = list(self.config.epub_exclude_files)
        super().write(sorted(self.env.found_docs - left_out), [], method)

    def build_content(self):
        """Leave out the scripts of the site, for which Sphinx has copied them before."""
        for name in ("interactive", "mathjax", "try"):
            shutil.rmtree(Path(self.outdir) / "_static" / name, ignore_errors=True)
        super().build_content()


def register(app):
    """Connect to Sphinx."""
    app.add_builder(Epub, override=True)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_displayed, None))
    app.add_post_transform(Prepare)


def main():
    """Build the EPUB."""
    if not importlib.util.find_spec("latex2mathml"):
        sys.exit(
            f"For an EPUB, latex2mathml is missing:\n  {sys.executable} -m pip install {NEEDED}"
        )
    from jupyter_book.sphinx import build_sphinx

    os.environ.setdefault("SOURCE_DATE_EPOCH", pdf.date_of_change())
    # What an earlier run left would go into the book.
    shutil.rmtree(FOLDER, ignore_errors=True)
    done = build_sphinx(
        ROOT,
        FOLDER,
        doctreedir=ROOT / "_build" / ".doctrees_latex",
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides={"external_toc_path": "_toc.yml", "latex_individualpages": False},
        builder="epub",
        quiet=True,
    )
    if done == 0:
        [made] = FOLDER.glob("*.epub")
        shutil.copy(made, EPUB)
        print(f"{EPUB.relative_to(ROOT).as_posix()}: {EPUB.stat().st_size / 1e6:.1f} MB")
    return done if isinstance(done, int) else 1


if __name__ == "__main__":
    sys.exit(main())
