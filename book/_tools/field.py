"""Write the tables of the page about the field from the file of results.

``python book/_tools/field.py``, or ``make field``, which audits first. Only the standard library is
imported, so that a test can compare the page with the file anywhere.
"""

import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results" / "field.json"
PAGE = ROOT / "book" / "_generated" / "field.md"

VERDICTS = HOLDS, VIOLATED, FAILED = "holds as far as seen", "violated", "could not be run"
ORDER = VIOLATED, HOLDS, FAILED  # one refuted claim refutes; one audit that ran was run
SPECIAL = re.compile(r"([\\`*_$<>|\[\]{}#~])")


def render(found):
    """Return the measured part of the page, a table a package."""
    entries = found["audits"]
    parts = ["<!-- written by `make field` -->", _counts(entries), _provenance(found)]
    parts += ["## How noise is drawn", _noise(entries)]
    for _, group in groupby(entries, lambda entry: entry["package"]):
        parts += _package(list(group))
    return "\n\n".join(parts) + "\n"


def mechanisms(entries):
    """Return the verdict on each mechanism: of several audits, the one that says most."""
    said = {}
    for entry in entries:
        said.setdefault((entry["package"], entry["mechanism"]), set()).add(entry["verdict"])
    return {key: next(v for v in ORDER if v in verdicts) for key, verdicts in said.items()}


def write():
    """Write the measured part of the page anew."""
    PAGE.write_text(render(json.loads(RESULTS.read_text("utf-8"))), encoding="utf-8")


def _counts(entries):
    said = Counter(mechanisms(entries).values())
    tried = {entry["package"] for entry in entries}
    audited = {entry["package"] for entry in entries if entry["verdict"] != FAILED}
    head = f"**{_many(len(mechanisms(entries)), 'mechanism')} of {_many(len(tried), 'package')}**"
    head += f", {len(audited):,} of which could be run:" if audited != tried else ":"
    rows = [[verdict, str(said[verdict])] for verdict in VERDICTS]
    return f"{head}\n\n" + _table(["verdict", "mechanisms"], rows, numbers={1})


def _provenance(found):
    entries = found["audits"]
    dates = sorted({entry["date"] for entry in entries})
    commits = sorted({f"`{entry['commit']}`" for entry in entries})
    once, wrong = 1 / found["error_of_a_try"], found["tries"] * found["error_of_a_try"]
    return (
        f"So far {_many(found['tries'], 'series', 'series')} of runs were made, each wrong at most "
        f"once in {once:,.0f} times. So the chance that some claim below is refuted wrongly is at "
        f"most one in {1 / wrong:,.0f}. Audited {_span(dates)}, with the audit of "
        f"{', '.join(commits)}."
    )


def _noise(entries):
    """Return what the sources say of continuous noise, by package."""
    packages = {entry["package"]: entry for entry in entries}.values()
    rows = [[e["package"], e["noise"] or "–", e["noise_report"] or "–"] for e in packages]
    return _table(["package", "continuous noise is drawn", "known"], rows)


def _span(dates):
    return f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"


def _package(entries):
    first = entries[0]
    rows = [[_mechanism(e), _claim(e), _found(e), _verdict(e)] for e in entries]
    head = ["mechanism", "claimed", "found", "verdict"]
    yield f"## {first['package']} {first['version']}"
    yield _table(head, rows)
    for entry in entries:
        if entry["verdict"] == VIOLATED:
            yield _violation(entry)
        if entry["verdict"] == FAILED:
            yield f"`{entry['mechanism']}` could not be run: {escaped(entry['error'])}."
    lines = "\n".join(_said(entry) for entry in entries)
    yield (
        f":::{{admonition}} What the documentation of {first['package']} says\n"
        f":class: dropdown\n\n{lines}\n:::"
    )


def _mechanism(entry):
    """Return the last part of the name: a table has to fit a phone."""
    return f"`{entry['mechanism'].rpartition('.')[2]}`"


def _verdict(entry):
    return f"**{VIOLATED}**" if entry["verdict"] == VIOLATED else entry["verdict"]


def _claim(entry):
    return f"{entry['epsilon']:g}" + (f", δ = {entry['delta']:g}" if entry["delta"] else "")


def _found(entry):
    """Return the smallest refutation, or the only run, in the words of its kind."""
    runs = entry.get("runs")
    if not runs:
        return "–"
    run = min(runs, key=_value)
    if "exact_delta" in run:
        return f"δ = {run['exact_delta']:.3g}"
    return f"= {_number(run['exact'])}" if "exact" in run else f"≥ {_number(run['bound'])}"


def _value(run):
    return float(next(run[kind] for kind in ("exact", "exact_delta", "bound") if kind in run))


def _number(value):
    return "∞" if value == "infinity" else f"{value:.2f}"


def _violation(entry):
    known = f" Known: {entry['report']}." if entry["report"] else ""
    cause = entry["cause"] or "The cause was not found."
    return f"**`{entry['mechanism']}`**, refuted for {escaped(entry['tried'])}. {cause}{known}"


def _said(entry):
    runs = (
        f", {entry['trials']:,} runs on each"
        if entry["trials"]
        else ", its distribution as it is coded"
    )
    report = f" Known: {entry['report']}." if entry["report"] else ""
    advice = f" It also says: “{escaped(entry['advice'])}”" if entry["advice"] else ""
    return (
        f"- `{entry['mechanism']}`: “{escaped(entry['quote'])}” ({escaped(entry['where'])})."
        f"{advice} Neighbours: {escaped(entry['unit'])}. Tried: {escaped(entry['tried'])}{runs}."
        f"{report}"
    )


def escaped(text):
    """Return a text that Markdown shows as it is, with what stands in backticks as code."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # one that is never closed
        return SPECIAL.sub(r"\\\1", "`".join(parts))
    return "`".join(p if n % 2 else SPECIAL.sub(r"\\\1", p) for n, p in enumerate(parts))


def _table(head, rows, numbers=frozenset()):
    marks = ["--:" if n in numbers else ":--" for n in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, marks, *rows])


def _many(count, noun, nouns=None):
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


if __name__ == "__main__":
    write()
