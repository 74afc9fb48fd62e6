"""Write the measured part of the "how fast" page from the file of results.

Only the standard library is imported, so that a test can compare the page with the file anywhere.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results" / "how_fast.json"
PAGE = ROOT / "book" / "_generated" / "how_fast.md"

OURS = ("dpnotes", "chunks")
HEADS = ("limit", "dpnotes")
NBSP = "\N{NO-BREAK SPACE}"
PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def render(runs):
    """Return the measured part of the page, one column a machine."""
    parts = [_provenance(runs), "## What was hoped for, and what holds", _goals(runs)]
    for rows in _jobs(runs):
        parts += [f"## {_title(_first(rows[0]))}", _table(rows, runs)]
    return "\n\n".join(["<!-- written by `make bench` -->", *parts]) + "\n"


def goals(run):
    """Return (goal, measured, whether it holds) for every goal of a run that could be measured."""
    found = [(goal, _measured(goal, _Job(run, goal["job"]))) for goal in run["goals"]]
    return [
        (f"{goal['what']}: {goal['holds']} {goal['bound']:,g}", value, _holds(goal, value))
        for goal, value in found
        if value is not None
    ]


def _measured(goal, job):
    if goal["over"] == "memory":
        return job.growth()
    over = job.time(goal["over"])
    return _quotient(over, 1e-3 if goal["under"] is None else job.time(goal["under"]))


def _holds(goal, value):
    return value <= goal["bound"] if goal["holds"] == "at most" else value >= goal["bound"]


def merged(runs, new):
    """Return all runs with a new one in the place of the last on its processor."""
    here = new["machine"]["processor"]
    others = [run for run in runs if run["machine"]["processor"] != here]
    return sorted([*others, new], key=lambda run: run["machine"]["processor"])


def read():
    """Return the runs that are stored, one a machine."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []


def store(new):
    """Store a run and write the page's measured part anew."""
    text = json.dumps(merged(read(), new), indent=1, ensure_ascii=False)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    write()


def write():
    """Write the page's measured part anew."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(read()), encoding="utf-8")


class _Job:
    """The rows of one job."""

    def __init__(self, run, name):
        rows = [row for row in run["rows"] if row["job"] == name and "seconds" in row]
        self.rows = {row["name"]: row for row in rows}

    def time(self, chosen):
        """Return the least time of a kind of rows, or that of the row with this name."""
        kinds = OURS if chosen == "ours" else (chosen,)
        times = [
            row["seconds"]
            for name, row in self.rows.items()
            if row["kind"] in kinds or name == chosen
        ]
        return min(times, default=None)

    def growth(self):
        """Return how much more memory ten times as many people take, in chunks."""
        row = next((row for row in self.rows.values() if row["kind"] == "chunks"), {})
        return _quotient(row.get("memory"), row.get("memory_of_a_tenth"))


def _quotient(numerator, denominator):
    return None if numerator is None or denominator is None else numerator / denominator


def _provenance(runs):
    lines = []
    for run in runs:
        machine, versions = run["machine"], run["versions"]
        packages = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        lines.append(
            f"- **{_short(run)}**: {machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_gib']} GiB of memory, {machine['system']}, Python "
            f"{machine['python']}, on {run['date']}. The code was that of commit "
            f"`{run['commit']}`. The packages: {packages}."
        )
    every = f"Every mechanism ran at epsilon {runs[0]['epsilon']:g} unless its row says otherwise."
    head = "Measured on these machines; where a cell has several numbers, they are in this order."
    if len({run["commit"] for run in runs}) > 1:
        every += " The machines ran different commits: an older one lacks what became faster since."
    return "\n\n".join([head, "\n".join(lines), every])


def _short(run):
    """Call a machine by its maker, as there is one of each."""
    return run["machine"]["processor"].replace("(R)", "").split()[0]


def _goals(runs):
    lines = [_line(["goal", *map(_short, runs)]), _line([":--", *["--:"] * len(runs)])]
    measured = [{goal: (value, holds) for goal, value, holds in goals(run)} for run in runs]
    for goal in dict.fromkeys(goal for run in measured for goal in run):
        lines.append(_line([goal, *(_verdict(*run.get(goal, (None, None))) for run in measured)]))
    return "\n".join(lines)


def _verdict(value, holds):
    return "–" if value is None else f"{ratio(value)}, {'yes' if holds else '**no**'}"


def _jobs(runs):
    """Return, for every job, its rows; a row is a list of what each machine measured, or None."""
    names = dict.fromkeys((row["job"], row["name"]) for run in runs for row in run["rows"])
    found = [{(row["job"], row["name"]): row for row in run["rows"]} for run in runs]
    jobs = {}
    for job, name in names:
        jobs.setdefault(job, []).append([run.get((job, name)) for run in found])
    return list(jobs.values())


def _first(row):
    """Return what the last machine has of a row: its words are the newest."""
    return next(cell for cell in reversed(row) if cell is not None)


def _title(row):
    people, categories = (f"{row[key]:,}" for key in ("people", "categories"))
    return f"{row['title']}, {people} {_counted(row)}, {categories} categories"


def _counted(row):
    return row.get("counted", "people")


def _table(rows, runs):
    memory = any("memory" in cell for row in rows for cell in row if cell)
    head = ["who", "time", "times the limit", "times dpnotes", *["memory"] * memory, "how measured"]
    marks = [":--", "--:", "--:", "--:", *["--:"] * memory, ":--"]
    lines = [_line(head), _line(marks)]
    limits, ours = ([_of_kind(rows, n, kind) for n in range(len(runs))] for kind in HEADS)
    for row in rows:
        times = [cell and cell.get("seconds") for cell in row]
        cells = [
            _who(_first(row)),
            _several(times, duration),
            _several(map(_quotient, times, limits), ratio),
            _several(map(_quotient, times, ours), ratio),
        ]
        sizes = [cell and cell.get("memory") for cell in row]
        lines.append(_line([*cells, *[_several(sizes, size)] * memory, _how(row)]))
    return "\n".join(lines)


def _of_kind(rows, machine, kind):
    found = (row[machine] for row in rows if row[machine] and row[machine]["kind"] == kind)
    return next((row["seconds"] for row in found if "seconds" in row), None)


def _several(values, written):
    values = list(values)
    # A line breaks between two machines, not between a number and its unit or before the dot.
    return (
        "–" if not any(values) else f"{NBSP}· ".join(written(v).replace(" ", NBSP) for v in values)
    )


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _who(row):
    return f"**{row['name']}**" if row["kind"] in OURS else row["name"]


def _how(cells):
    row = _first(cells)
    if "failed" in row:
        return f"could not be run: {row['failed']}"
    parts = [row["note"]]
    if others := {cell["note"] for cell in cells if cell and "note" in cell} - {row["note"]}:
        parts.append(f"at the older commit {' or '.join(sorted(others))}")
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
