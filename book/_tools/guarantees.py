"""A Sphinx extension, and a program, that shows the ledger: what is checked, and how.

``python book/_tools/guarantees.py`` writes ``book/guarantees.md``. In the site the links of that
page lead to the lines of the tests, and a link beside each statement leads to its row.
"""

import json
import re
from pathlib import Path

import yaml

import ledger

TEST = re.compile(r"\[(?P<title>[^]]+)\]\([^)\s]+/(?P<path>tests/[\w/]+\.py)\)")

INTRODUCTION = """\
# What is checked, and how

A book about privacy is a list of promises. Here is the list: every definition, theorem, lemma and
proposition of the book, and every public function of `dpnotes` that makes something private or says
what privacy costs, each with the tests that check it. A program writes this page from the pages and
from the tests, and a test fails where a line has no check.

**What you may believe, and why.** A proof stands below its theorem, and you can follow it. A check
is something else: a program held the formula, or the code that you run, against the statement, in a
way that could have failed. It guards against slips in the proof, in the formula and in the code
alike, as far as it reaches. How far that is, its kind says:

{kinds}

A check of every small case is no proof for the large ones, and no check says that a statement is
the right one to ask for. So every line leads to its statement and to the source of its tests: read
both. Some tests let the program hypothesis choose their parameters, and the line says so. One more
rule is kept by a test: no test on this page is left out of the run that comes with every change.

**The last result** is the same in every line, so there is no column for it: each of these tests is
run for every change, and the site is published by itself only from a change for which all of them
passed. [The workflows]({repository}/tree/{branch}/.github/workflows) say what is run, and the
repository shows how each run went. To run them yourself, in a copy of the repository:
`.venv/bin/python -m pytest -m claim tests`.

**And who checks the tests?** Bugs do. We keep a list of ${bugs}$ that break a promise or a
formula, most of them mistakes that somebody might make. `make mutants` plants one at a time, and a
test has to notice it: a tenth of them with every change, all of them on Sundays. These were thought
out by people who know the code, so a program drew ${drawn}$ places by lot as well, in the five
modules that privacy hangs on most, and changed each: a sign, a number, a comparison. Tests notice
${noticed}$ of these changes, some of them only since the lot had shown what was missing. [The
other ${survived}$]({repository}/blob/{branch}/data/results/mutations.json) are listed one by
one with the reason why no test has to notice them: most leave what the code computes as it was.
"""

PROMISES = """\
A public name of the package stands below its chapter as a *promise* if it takes a generator of
random numbers, returns a cost, or says by its name that it computes an epsilon, a delta, a
sensitivity or a scale of noise.{left_out}
"""


def write_page(found, root=ledger.ROOT):
    """Return the ledger as a page."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    source = f"{config['url']}/blob/{config['branch']}"
    words = {"kinds": _kinds(found), "repository": config["url"], "branch": config["branch"]}
    parts = [INTRODUCTION.format(**words, **_planted())]
    parts.append(PROMISES.format(left_out=_left_out(found)))
    rest = [*found.statements, *found.promises]
    for name, title in _chapters(found.prose):
        things = [thing for thing in rest if thing.chapter == name]
        rest = [thing for thing in rest if thing.chapter != name]
        if things:
            parts += [f"## {title}\n", _table(found, things, source)]
    if rest:
        parts += ["## Without a chapter\n", _table(found, rest, source, whole=True)]
    return "\n".join(parts)


def _kinds(found):
    rows = ["| kind | what it does | lines |", "|---|---|---|"]
    things = [*found.statements, *found.promises]
    for kind, words in ledger.KINDS.items():
        count = sum(kind in {check.kind for check in found.of(thing.label)} for thing in things)
        count = len(found.on_paper) if kind == ledger.CITED else count
        if count:
            rows.append(f"| {kind} | {words} | ${count}$ |")
    return "\n".join(rows)


def _planted(root=ledger.ROOT):
    """Count the planted bugs, and the changes drawn by lot."""
    lists = (root / "tests" / "mutants").glob("*.toml")
    bugs = sum(path.read_text(encoding="utf-8").count("[[bug]]\n") for path in lists)
    results = root / "data" / "results" / "mutations.json"
    found = json.loads(results.read_text(encoding="utf-8"))
    counts = {
        what: sum(module[what] for module in found["modules"].values())
        for what in ("drawn", "noticed")
    }
    return {"bugs": bugs, **counts, "survived": len(found["survivors"])}


def _left_out(found):
    reasons = [f"`{name}` {why}" for name, why in sorted(found.no_promise.items())]
    return f" Left out: {'; '.join(reasons)}." if reasons else ""


def _chapters(prose):
    """Yield the name and the title of each core page, in the order of the book."""
    for name, text in prose.items():
        if name.endswith(".ipynb") and "/" not in name:
            yield name.removesuffix(".ipynb"), re.search(r"^# (.*)$", text, re.M)[1].strip()


def _table(found, things, source, whole=False):
    rows = ["| statement | checked by |", "|---|---|"]
    for thing in things:
        checks = [_line(check, source) for check in found.of(thing.label)]
        if thing.label in found.on_paper:
            checks.append(f"*{ledger.CITED}:* {found.on_paper[thing.label]}")
        listed = "<br>".join(checks) or "**nothing yet**"
        title = f"`{thing.label}`" if whole and thing.kind == "promise" else thing.title
        rows.append(f"| [{title}]({thing.address}) ({thing.kind}) | {listed} |")
    return "\n".join(rows) + "\n"


def _line(check, source):
    after = " (parameters from hypothesis)" if check.by_hypothesis else ""
    return f"*{check.kind}:* [{check.title}]({source}/{check.path}){after}"


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
                row["ids"] += [row_of(label)] if label else []
    for node in doctree.findall(nodes.Admonition):
        label, kind = node.get("label"), node.get("realtype")
        if label and kind in ledger.STATED:
            to = f"{app.builder.get_relative_uri(docname, ledger.PAGE)}#{row_of(label)}"
            words = f"How this {kind} is checked"
            reference = nodes.reference("", words, internal=True, refuri=to)
            node += nodes.paragraph("", "", reference, classes=["small", "sd-text-right"])


def row_of(label):
    """Return the name of a row of the page."""
    return f"check-{label}"


def setup(app):
    """Connect to Sphinx, after the links of the page are resolved."""
    app.connect("source-read", number_lines)
    app.connect("doctree-resolved", link, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    path = ledger.ROOT / f"{ledger.PAGE}.md"
    path.write_text(write_page(ledger.read()), encoding="utf-8")
