"""A Sphinx extension, and a program, that shows the ledger: what is checked, and how.

``python book/_tools/guarantees.py`` writes ``book/guarantees.md``, whose words stand in
``guarantees.md`` beside this file. In the site the links of that page lead to the lines of the
tests, and a link beside each statement leads to its row.
"""

import json
import re
from pathlib import Path

import yaml

import ledger

TEST = re.compile(r"\[(?P<title>[^]]+)\]\([^)\s]+/(?P<path>tests/[\w/]+\.py)\)")


def write_page(found, root=ledger.ROOT):
    """Return the ledger as a page."""
    where = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    results = (root / "data" / "results" / "mutations.json").read_text(encoding="utf-8")
    mutations = json.loads(results)
    drawn = mutations["modules"].values()
    planted = (root / "tests" / "mutants").glob("*.toml")
    things = [*found.statements, *found.promises]
    kinds = [{check.kind for check in found.of(thing.label)} for thing in things]
    counts = {kind: sum(kind in each for each in kinds) for kind in ledger.KINDS}
    words = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    reasons = [f"`{name}` {why}" for name, why in sorted(found.no_promise.items())]
    words = words.format(
        **where,
        counts=counts | {ledger.CITED: len(found.on_paper)},
        bugs=sum(path.read_text(encoding="utf-8").count("[[bug]]\n") for path in planted),
        drawn=sum(module["drawn"] for module in drawn),
        noticed=sum(module["noticed"] for module in drawn),
        survived=len(mutations["survivors"]),
        left_out=f" Left out: {'; '.join(reasons)}." if reasons else "",
    )
    return "\n".join([words, *_write_chapters(found, f"{where['url']}/blob/{where['branch']}")])


def _write_chapters(found, source):
    """Yield a heading and a table for each core page in order, and one for the rest."""
    rest = [*found.statements, *found.promises]
    for name, text in found.prose.items():
        things = [thing for thing in rest if f"{thing.chapter}.ipynb" == name]
        if things:
            rest = [thing for thing in rest if thing not in things]
            yield f"## {re.search(r'^# (.*)$', text, re.M)[1].strip()}\n"
            yield _write_table(found, things, source)
    if rest:
        yield "## Without a chapter\n"
        yield _write_table(found, rest, source, whole=True)


def _write_table(found, things, source, whole=False):
    rows = ["| statement | checked by |", "|---|---|"]
    for thing in things:
        checks = [
            f"*{check.kind}:* [{check.title}]({source}/{check.path})"
            f"{' (parameters from hypothesis)' if check.by_hypothesis else ''}"
            for check in found.of(thing.label)
        ]
        if thing.label in found.on_paper:
            checks.append(f"*{ledger.CITED}:* {found.on_paper[thing.label]}")
        listed = "<br>".join(checks) or "**nothing yet**"
        title = f"`{thing.label}`" if whole and thing.kind == "promise" else thing.title
        rows.append(f"| [{title}]({thing.address}) ({thing.kind}) | {listed} |")
    return "\n".join(rows) + "\n"


# The site.


def number_lines(app, docname, source):
    """Let the links of the page lead to the lines that the tests have today."""

    def number(match):
        name = "test_" + match["title"].replace(" ", "_")
        text = (Path(app.confdir) / match["path"]).read_text(encoding="utf-8")
        [place] = re.findall(rf"\A(.*?)^ *def {name}\(", text, re.M | re.S | re.I)
        return f"{match[0][:-1]}#L{place.count(chr(10)) + 1})"

    if docname == ledger.PAGE:
        source[0] = TEST.sub(number, source[0])


def link(app, doctree, docname):
    """Put a link beside each statement to its row, and a name on each row."""
    from docutils import nodes

    if docname == ledger.PAGE:
        for row in doctree.findall(nodes.row):
            for reference in list(row.findall(nodes.reference))[:1]:
                label = reference.get("refuri", "").partition("#")[2].removeprefix("dpnotes.")
                row["ids"] += [f"check-{label}"] if label else []
    for node in doctree.findall(nodes.Admonition):
        label, kind = node.get("label"), node.get("realtype")
        if label and kind in ledger.STATED and kind != "definition":
            to = f"{app.builder.get_relative_uri(docname, ledger.PAGE)}#check-{label}"
            words = f"How this {kind} is checked"
            reference = nodes.reference("", words, internal=True, refuri=to)
            node += nodes.paragraph("", "", reference, classes=["small", "sd-text-right"])


def setup(app):
    """Connect to Sphinx, after the links of the page are resolved."""
    app.connect("source-read", number_lines)
    app.connect("doctree-resolved", link, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    path = ledger.ROOT / f"{ledger.PAGE}.md"
    path.write_text(write_page(ledger.read()), encoding="utf-8")
