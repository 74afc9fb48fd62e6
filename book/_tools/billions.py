"""Write the tables and the figure of the page about reports by the billion, from their results.

``python book/_tools/billions.py`` writes both; a test compares the tables with the results.
"""

from pathlib import Path

from dpnotes import datasets
from dpnotes.experiments import billions
from dpnotes.experiments.billions import MECHANISMS

import prose

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "_generated" / "billions.md"
FIGURE = ROOT / "book" / "_static" / "billions.svg"
STYLE = ROOT / "book" / "figures.mplstyle"

# The estimate for a cluster: people, cores, and what a core's share of the storage gives a second.
PEOPLE, CORES, SHARE = 10**12, 64, 100 * 10**6
_CATEGORIES = 16
# Of these numbers of blocks the cost is shown.
_FIRST = (1, 3, 10, 30, 100)
# Runs over other numbers of categories have blocks of so many people.
_BLOCK_OF_OTHERS = 10**6


def render(document):
    """Return the measured part of the page."""
    found = billions.summarize(document)
    parts = [
        "<!-- written by `python book/_tools/billions.py` -->",
        "<!-- begin run -->",
        _run(_largest(document), passes(document)),
        *_lacking(_largest(document)),
        "<!-- end run -->",
        _machine(document["units"]),
        "### More people",
        _people(document),
        *_categories(found),
        *_workers(passes(document)),
        "### A thousand times as many, on a cluster",
        _estimate(_largest(document)),
    ]
    return "\n\n".join(parts) + "\n"


def passes(document):
    """Return the passes over all files: of each mechanism and number of workers its row."""
    return {
        (unit["mechanism"], unit["workers"]): unit["runs"][0]
        for unit in document["units"]
        if unit["block"] == "all"
    }


def by_people(document, mechanism):
    """Return what the first block of one mechanism cost, the first ten, and so on, up to all."""
    units = [
        unit
        for unit in document["units"]
        if (unit["mechanism"], unit["categories"]) == (mechanism, _CATEGORIES)
        and unit["block"] != "all"
        and unit["setup"]["people"] == billions.BLOCK
    ]
    sizes = sorted({*(n for n in _FIRST if n < len(units)), len(units)})
    firsts = [[unit for unit in units if unit["block"] < size] for size in sizes]
    return [billions.summarize({"units": first})[0] for first in firsts]


def by_categories(found, mechanism):
    """Return the runs of one mechanism in blocks of one size, from few categories to many."""
    return [
        run for run in found if (run["mechanism"], run["block"]) == (mechanism, _BLOCK_OF_OTHERS)
    ]


def per_person(run, step):
    """Return the processor's nanoseconds for one report."""
    return 1e9 * run[step]["cpu_seconds"] / run["people"]


def write():
    """Write the measured part of the page and its figure anew."""
    document = datasets.load_results("billions")
    PAGE.write_text(render(document), encoding="utf-8")
    _draw(document, FIGURE)


def _lacking(largest):
    """Say which mechanism has not come to all the people."""
    return [
        f"The run of {name} has come to {run['people']:,} of {billions.PEOPLE:,} people; the rest "
        "was not measured."
        for name, run in largest.items()
        if run["people"] < billions.PEOPLE
    ]


def _largest(document):
    return {name: by_people(document, name)[-1] for name in MECHANISMS}


def _run(largest, passes):
    runs = [largest[name] for name in MECHANISMS]
    rows = [
        ["people", *(f"{run['people']:,}" for run in runs)],
        ["bytes for a report", *(str(round(run["bytes"] / run["people"])) for run in runs)],
        ["on the disk", *(f"{run['bytes'] / 1e9:.1f} GB in {run['blocks']} files" for run in runs)],
        ["drawn and written", *(_times(run["write"]) for run in runs)],
        ["read and counted", *(_times(run["count"]) for run in runs)],
        ["counted again in one pass", *(_times(passes.get((name, 1))) for name in MECHANISMS)],
        ["memory of the process that did all this, at most", *map(_memory, runs)],
        [
            "memory of a worker that only counts, at most",
            *(_most(passes.get((name, 2))) for name in MECHANISMS),
        ],
        ["people in the largest category", *(f"{run['truth'][0]:,}" for run in runs)],
        ["estimated", *(f"{run['estimate'][0]:,.0f}" for run in runs)],
        ["largest error of 16, in standard deviations", *map(_deviation, runs)],
    ]
    return prose.table(["", *MECHANISMS], rows)


def _deviation(run):
    return f"{max(map(abs, run['deviations'])):.1f}"


def _memory(run):
    return f"{run['most_mb']} MB ({run['taken_mb']} MB between blocks)"


def _most(row):
    return f"{row['most_mb']} MB" if row else _NOT_MEASURED


def _times(row):
    if row is None:
        return _NOT_MEASURED
    return f"{row['cpu_seconds']:,.0f} s of the processor, {row['seconds']:,.0f} s on the clock"


def _machine(units):
    places = {(unit["provenance"]["device"], unit["provenance"]["python"]) for unit in units}
    commits = sorted({unit["provenance"]["commit"] for unit in units})
    dates = sorted({unit["provenance"]["date"] for unit in units})
    words = "; ".join(f"{device}, Python {python}" for device, python in sorted(places))
    return (
        f"Measured on {words}, one thread, two cores and 24 GB of memory in all, on "
        f"{', '.join(dates)}, with the code of {', '.join(f'`{c}`' for c in commits)}. Other work "
        "ran on both cores at the same time and had the right of way, so the clock shows several "
        "times what a quiet machine would need. The processor's seconds are those of our own "
        "process."
    )


def _people(document):
    runs = [{run["people"]: run for run in by_people(document, name)} for name in MECHANISMS]
    rows = []
    for people in sorted({*runs[0], *runs[1]}):
        both = [run.get(people) for run in runs]
        times = [f"{r[s]['cpu_seconds']:.2f}" if r else _NOT_MEASURED for r in both for s in _STEPS]
        memory = ", ".join(str(run["most_mb"]) if run else _NOT_MEASURED for run in both)
        rows.append([f"{people:,}", *times, memory])
    head = ["people", *_BOTH, "memory in MB"]
    said = "Seconds of the processor, and the most memory for one mechanism and for the other. "
    said += "The first rows are the beginning of the run of the last one. The memory is that of a "
    said += (
        "block of ten million and of what the experiment imports, whatever the number of people."
    )
    return f"{said}\n\n{prose.table(head, rows)}"


def _categories(found):
    rows = []
    for direct, unary in zip(*(by_categories(found, name) for name in MECHANISMS), strict=True):
        times = [f"{per_person(run, s):.1f}" for run in (direct, unary) for s in _STEPS]
        rows.append([str(direct["categories"]), *times, str(-(-direct["categories"] // 8))])
    head = ["categories", *_BOTH, "bytes of a unary report"]
    said = "Nanoseconds of the processor for one person, in blocks of a million."
    return ["### More categories", said, prose.table(head, rows)] if rows else []


def _workers(passes):
    if not any(workers > 1 for _, workers in passes):
        return []
    rows = []
    for (mechanism, workers), row in sorted(passes.items()):
        gain = passes[mechanism, 1]["seconds"] / row["seconds"]
        rows.append(
            [
                mechanism,
                str(workers),
                f"{row['seconds']:.1f} s",
                f"{row['cpu_seconds']:.1f} s",
                f"{gain:.2f}",
            ]
        )
    head = ["counted in one pass", "processes", "clock", "processor", "times as quick as one"]
    said = (
        "Each process counts files of its own, and all that it hands back is the counts. The "
        "processor's seconds stay what they are, so the work divides; what a second process gains "
        "on the clock depends on how much of a second core is free: here others had both."
    )
    return ["### More workers", said, prose.table(head, rows)]


def _estimate(largest):
    lines = []
    for name in MECHANISMS:
        run = largest[name]
        each, size = per_person(run, "count"), run["bytes"] / run["people"]
        cpu, stored = each * 1e-9 * PEOPLE, size * PEOPLE
        read = stored / (CORES * SHARE)
        lines.append(
            f"- *{name.capitalize()}*: {each:.1f} ns a report × $10^{{12}}$ reports = {cpu:,.0f} s "
            f"of one core, / {CORES} cores = {cpu / CORES / 60:.1f} minutes. "
            f"Reading {stored / 1e12:.0f} TB at {CORES} × {SHARE / 1e6:.0f} MB/s = "
            f"{read / 60:.1f} minutes."
        )
    return (
        "**This is an estimate; nothing of the kind ran here.** It takes the seconds above, "
        f"{CORES} cores of this kind, and a storage that gives each of them "
        f"{SHARE / 1e6:.0f} MB a second. It leaves out starting the workers, waiting for the "
        "slowest, and what fails.\n\n" + "\n".join(lines)
    )


_NOT_MEASURED = "–"
_STEPS = ("write", "count")
_BOTH = [f"{name}: {step}" for name in MECHANISMS for step in _STEPS]


def _draw(document, path):
    """Draw cost against people, as it was measured for more and more of them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.style.context([STYLE, {"svg.hashsalt": "billions"}]):
        figure, axes = plt.subplots()
        for number, name in enumerate(MECHANISMS):
            runs = by_people(document, name)
            for step, line in zip(_STEPS, ("-o", "--s"), strict=True):
                cost = [run[step]["cpu_seconds"] for run in runs]
                people = [run["people"] for run in runs]
                axes.loglog(people, cost, line, color=f"C{number}", label=f"{name}: {step}")
        axes.set(xlabel="people", ylabel="seconds of the processor", title="16 categories")
        axes.legend()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    write()
