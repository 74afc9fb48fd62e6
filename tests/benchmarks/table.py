"""Write the measured part of the "how fast" page from the file of results.

Only the standard library is imported, so that a test can compare the page with the file anywhere.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results" / "how_fast.json"
PAGE = ROOT / "book" / "_generated" / "how_fast.md"

LIMITS = ("limit", "words")
OURS = ("dpnotes", "chunks")
PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def render(results):
    """Return the measured part of the page."""
    parts = [_provenance(results), "## What was hoped for, and what holds", _goals(results)]
    for job in _jobs(results):
        rows = [row for row in results["rows"] if row["job"] == job]
        parts += [f"## {_title(rows[0])}", _table(rows)]
    return "\n\n".join(["<!-- written by `make bench` -->", *parts]) + "\n"


def goals(results):
    """Return (goal, measured, whether it holds) for every goal that could be measured."""
    response, unary, wide, collector, labels, scores, pairs, more_pairs, elun = (
        _Job(results, name)
        for name in (
            *("randomized response", "unary encoding", "wide unary encoding", "collector"),
            *("labels", "scores", "pairs", "more pairs", "expected loss under noise"),
        )
    )
    accounting, more_accounting, voting = (
        _Job(results, name) for name in ("accounting", "more accounting", "voting")
    )
    area, smooth = (_Job(results, name) for name in ("area", "smooth sensitivity"))
    opendp, secure = response.time("OpenDP, one bit vector"), response.time("dpnotes' coins, `os.")
    found = [
        _at_most("randomized response, times the limit", 2.5, response.to_limit()),
        _at_least("randomized response, the best peer's time over ours", 250, response.to_peer()),
        _at_least(
            "the same, both with cryptographic randomness: OpenDP's bit vector over our coins",
            150,
            _quotient(opendp, secure),
        ),
        _at_most("unary encoding, times the limit", 3.5, unary.to_limit()),
        _at_least("unary encoding, the best peer's time over ours", 40, unary.to_peer()),
        _at_most(
            "unary encoding in chunks, memory for ten times as many people", 1.05, unary.growth()
        ),
        _at_most("unary encoding of a wide domain, times the limit", 1.5, wide.to_limit()),
        _at_most("a collection of a billion users, in milliseconds", 1.0, collector.milliseconds()),
        _at_most("labels under the exponential mechanism, times the limit", 2.5, labels.to_limit()),
        _at_most(
            "the same with eight bytes a label",
            2.5,
            _quotient(labels.time("dpnotes, eight bytes"), labels.best("limit")),
        ),
        _at_least("the law of the number kept, scipy's time over ours", 1.0, scores.to_peer()),
        _at_least("the risk of pairs, LibAUC's time over ours", 600, pairs.to_peer()),
        _at_least(
            "the same, where pairs are beyond the barriers",
            600,
            _quotient(pairs.best("peer"), pairs.time("dpnotes, at")),
        ),
        _at_most(
            "the risk of pairs of a million scores, in milliseconds", 200, more_pairs.milliseconds()
        ),
        _at_most(
            "the same, where pairs are beyond the barriers",
            200,
            _quotient(more_pairs.time("dpnotes, at"), 1e-3),
        ),
        _at_least(
            "a fit of the expected loss under noise, a loop's time over ours",
            40,
            _quotient(elun.best("source"), elun.best(*OURS)),
        ),
        _at_most("the same, times one logistic fit", 6, elun.to_limit()),
        _at_least(
            "the cost of GNMax, a loop of queries over ours",
            50,
            _quotient(accounting.best("source"), accounting.best(*OURS)),
        ),
        _at_most(
            "the cost of a hundred thousand queries, in milliseconds",
            200,
            more_accounting.milliseconds(),
        ),
        _at_least(
            "votes and noisy winners, a loop of queries over ours",
            15,
            _quotient(voting.best("source"), voting.best(*OURS)),
        ),
        _at_most("votes and noisy winners, times reading and noise", 2, voting.to_limit()),
        _at_least(
            "the area under the curve, scikit-learn's time over ours",
            10,
            _quotient(area.time("scikit-learn"), area.best(*OURS)),
        ),
        _at_most("the area under the curve, times one sort", 4.5, area.to_limit()),
        _at_least(
            "smooth sensitivity, a loop of distances over ours",
            1000,
            _quotient(smooth.best("source"), smooth.best(*OURS)),
        ),
    ]
    return [goal for goal in found if goal is not None]


def write():
    """Write the page's measured part anew."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(json.loads(RESULTS.read_text("utf-8"))), encoding="utf-8")


class _Job:
    """The rows of one job."""

    def __init__(self, results, name):
        rows = [row for row in results["rows"] if row["job"] == name and "seconds" in row]
        self.rows = {row["name"]: row for row in rows}

    def time(self, name):
        return next(
            (row["seconds"] for key, row in self.rows.items() if key.startswith(name)), None
        )

    def best(self, *kinds):
        return min(
            (row["seconds"] for row in self.rows.values() if row["kind"] in kinds), default=None
        )

    def to_limit(self):
        return _quotient(self.best(*OURS), self.best("limit"))

    def to_peer(self):
        return _quotient(self.best("peer"), self.best(*OURS))

    def growth(self):
        row = next((row for row in self.rows.values() if row["kind"] == "chunks"), {})
        return _quotient(row.get("memory"), row.get("memory_of_a_tenth"))

    def milliseconds(self):
        return _quotient(self.best(*OURS), 1e-3)


def _quotient(numerator, denominator):
    return None if numerator is None or denominator is None else numerator / denominator


def _at_most(what, bound, value):
    return value and (f"{what}: at most {bound:g}", value, value <= bound)


def _at_least(what, bound, value):
    return value and (f"{what}: at least {bound:g}", value, value >= bound)


def _provenance(results):
    machine, versions = results["machine"], results["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return (
        f"Measured on {results['date']} on one machine: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB of memory, {machine['system']}, "
        f"Python {machine['python']}. The code was that of commit `{results['commit']}`. "
        f"The packages: {packages}. Every mechanism ran at epsilon {results['epsilon']:g} "
        "unless its row says otherwise."
    )


def _goals(results):
    lines = ["| goal | measured | holds |", "|:--|--:|:--|"]
    for goal, value, holds in goals(results):
        lines.append(f"| {goal} | {ratio(value)} | {'yes' if holds else '**no**'} |")
    return "\n".join(lines)


def _jobs(results):
    return list(dict.fromkeys(row["job"] for row in results["rows"]))


def _title(row):
    people, categories = (f"{row[key]:,}" for key in ("people", "categories"))
    return f"{row['title']}, {people} {_counted(row)}, {categories} categories"


def _counted(row):
    return row.get("counted", "people")


def _table(rows):
    times = {row["kind"]: row["seconds"] for row in rows if "seconds" in row}
    limit, ours = times.get("limit"), times.get("dpnotes")
    memory = any("memory" in row for row in rows)
    head = ["who", "time", "times the limit", "times dpnotes", *["memory"] * memory, "how measured"]
    marks = [":--", "--:", "--:", "--:", *["--:"] * memory, ":--"]
    lines = [_line(head), _line(marks)]
    for row in rows:
        seconds = row.get("seconds")
        cells = [
            _who(row),
            duration(seconds),
            *(ratio(_quotient(seconds, t)) for t in (limit, ours)),
        ]
        lines.append(_line([*cells, *[size(row.get("memory"))] * memory, _how(row)]))
    return "\n".join(lines)


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _who(row):
    return f"**{row['name']}**" if row["kind"] in OURS else row["name"]


def _how(row):
    if "failed" in row:
        return f"could not be run: {row['failed']}"
    parts = [row["note"]]
    if row["share"] < row["people"]:
        parts.append(f"timed on {row['share']:,} {_counted(row)} and scaled")
    if row["error"] is not None and row["error"] > 6:
        parts.append(f"its worst estimate is {row['error']:.0f} standard deviations off")
    parts.append(f"median of {row['rounds']}")
    return "; ".join(part for part in parts if part)


def duration(seconds):
    """Write a time with two or three digits and a fitting unit."""
    if seconds is None:
        return "–"
    scale, unit = next(((s, u) for s, u in PREFIXES if seconds >= s), PREFIXES[-1])
    return f"{_digits(seconds / scale)} {unit}"


def ratio(value):
    """Write a ratio with two or three digits, or a dash for none."""
    return "–" if value is None else _digits(value)


def size(memory):
    """Write a number of bytes in megabytes."""
    return "–" if memory is None else f"{_digits(memory / 1e6)} MB"


def _digits(value):
    if value < 9.95:
        return f"{value:.2f}" if value < 0.995 else f"{value:.1f}"
    return f"{float(f'{value:.3g}'):,.0f}"


if __name__ == "__main__":
    write()
