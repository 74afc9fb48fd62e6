"""Write the table and the figure of cost against size, and the tables of all else measured there.

``python book/_tools/scale.py`` writes them from data/results/scale.jsonl, which
``python tests/benchmarks/scale.py`` measures; a test compares them.
"""

import json
import statistics
from pathlib import Path

import prose

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results" / "scale.jsonl"
PAGE = ROOT / "book" / "_generated" / "scale.md"
FIGURE = ROOT / "book" / "_static" / "scale.svg"
STYLE = ROOT / "book" / "figures.mplstyle"


def read(path=RESULTS):
    """Return what was measured, a row a line."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{**row.pop("unit"), **row} for row in rows]


def by_size(rows):
    """Return the rows of each job, from small to large."""
    sizes = [row for row in rows if "size" in row]
    names = dict.fromkeys(row["job"] for row in sizes)
    return {
        name: sorted((row for row in sizes if row["job"] == name), key=lambda row: row["size"])
        for name in names
    }


def render(rows):
    """Return the measured part of the page."""
    teams = [row for row in rows if "workers" in row]
    networks = [row for row in rows if "at_once" in row]
    packages = [row for row in rows if "package" in row]
    parts = [
        "<!-- written by `python book/_tools/scale.py` -->",
        "<!-- begin sizes -->",
        _machines(row for row in rows if "size" in row),
        _sizes(by_size(rows)),
        "<!-- end sizes -->",
        "<!-- begin workers -->",
        _machines(teams),
        _workers(teams),
        "<!-- end workers -->",
        "<!-- begin networks -->",
        _machines(networks),
        _networks(networks),
        "<!-- end networks -->",
        "<!-- begin field -->",
        _machines(packages),
        _field(packages),
        "<!-- end field -->",
    ]
    return "\n\n".join(parts) + "\n"


def _machines(rows):
    about = [row["provenance"] for row in rows]
    machines = sorted({json.dumps(found["machine"], sort_keys=True) for found in about})
    words = "; ".join(
        "{processor}, {cores} cores, {memory_gib} GiB of memory, {system}, Python {python}".format(
            **json.loads(machine)
        )
        for machine in machines
    )
    dates, commits = (sorted({found[key] for found in about}) for key in ("date", "commit"))
    code = ", ".join(f"`{commit}`" for commit in commits)
    return f"Measured on {words}, on {', '.join(dates)}, with the code of {code}."


def _sizes(jobs):
    rows = []
    for name, found in jobs.items():
        tenth, last = found[-2:]
        rows.append(
            [
                name,
                f"{last['size']:,} {last['counted']}",
                _seconds(last["cpu_seconds"]),
                f"{last['cpu_seconds'] / tenth['cpu_seconds']:.1f}",
                _bytes(last["peak_bytes"]),
                f"{last['peak_bytes'] / tenth['peak_bytes']:.1f}",
            ]
        )
    head = ["job", "largest size", "time", "times a tenth's", "memory", "times a tenth's"]
    return prose.table(head, rows)


def _workers(teams):
    rows = [
        [
            row["job"],
            f"{row['work']:,} {row['counted']}",
            *(_seconds(sorted(row["seconds"][n])[len(row["seconds"][n]) // 2]) for n in "12"),
            f"{row['times_as_quick']:.2f}",
        ]
        for row in teams
    ]
    return prose.table(["work", "how much", "one worker", "two workers", "times as quick"], rows)


def _networks(found):
    rows = []
    for row in found:
        images, limit = row["images_per_second"], row["limit_per_second"]
        share = f"{images * row['operations_per_image'] / limit:.0%}".replace("%", " %")
        how = [row["job"], row["precision"], str(row["at_once"])]
        rows.append([*how, f"{images:,}", f"{limit / 1e9:,.0f}", share])
    head = ["network", "precision", "runs at once", "images a second", "limit (10⁹ a second)"]
    return prose.table([*head, "share of the limit"], rows)


def _field(packages):
    made = [row["environment_seconds"] for row in packages]
    audits = [seconds for row in packages for seconds in row["cpu_seconds"]]
    failed = sum(row["failed"] for row in packages)
    ran = f"{len(audits)} audits" + f", {failed} of which ended with an error" * (failed > 0)
    rows = [
        [what, *map(_seconds, (statistics.median(all_), max(all_), sum(all_)))]
        for what, all_ in ((f"{len(made)} environments", made), (ran, audits))
        if all_
    ]
    return prose.table(["what", "the median one", "the longest", "together"], rows)


def _seconds(seconds):
    if seconds >= 600:
        return f"{seconds / 60:,.0f} min"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_short(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _bytes(size):
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= one:
            return f"{_short(size / one)} {unit}"
    return f"{size} bytes"


def _short(number):
    return f"{number:.1f}" if number < 10 else f"{number:,.0f}"


def draw(jobs, path=FIGURE):
    """Draw the cost of every job against its size, on one sheet."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.style.context([STYLE, {"svg.hashsalt": "scale"}]):
        figure, axes = plt.subplots(figsize=(7.2, 6.4))
        for place, (name, found) in enumerate(jobs.items()):
            line = ("-o", "--s", ":^")[place // 7]
            sizes, costs = zip(*((row["size"], row["cpu_seconds"]) for row in found), strict=True)
            axes.loglog(sizes, costs, line, color=f"C{place % 7}", label=name)
        axes.set(xlabel="size", ylabel="seconds of the processor")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize="small")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def write():
    """Write the tables and the figure anew."""
    rows = read()
    PAGE.write_text(render(rows), encoding="utf-8")
    draw(by_size(rows))


if __name__ == "__main__":
    write()
