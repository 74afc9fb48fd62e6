"""Store what a run of the benchmarks measured; `book/how_fast.ipynb` makes tables of it."""

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results" / "how_fast.json"


def read():
    """Return the runs that are stored, one a machine."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []


def merge(runs, new):
    """Return all runs with a new one in the place of the last on its processor."""
    here = new["machine"]["processor"]
    others = [run for run in runs if run["machine"]["processor"] != here]
    return sorted([*others, new], key=lambda run: run["machine"]["processor"])


def store(new):
    """Store a run beside those of other machines."""
    text = json.dumps(merge(read(), new), indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")
