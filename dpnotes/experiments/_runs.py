"""What every long measurement shares: where it ran, its file, and its words on the command line."""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dpnotes
from dpnotes import datasets


def commit() -> str:
    """Return the commit of the checkout; ask at the start, as it may move on during a run."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def provenance(commit: str, device: str, seconds: float) -> dict[str, Any]:
    """Return what a measurement was made with, where, when and in how many seconds."""
    on_gpu = torch.device(device).type == "cuda"
    return {
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if on_gpu else f"CPU, {_processor()}",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "dpnotes": dpnotes.__version__,
        "seconds": round(seconds, 1),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read(path: Path) -> dict[str, Any]:
    """Read a document."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_images(path: str) -> datasets.ImageData:
    """Read images from a file that ``python -m dpnotes.datasets NAME --out FILE`` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        return datasets.ImageData(*(archive[name] for name in datasets.ImageData._fields))


def write(path: Path, document: dict[str, Any], rows: Sequence[str]) -> None:
    """Write a document under its name only when it is whole; objects with these heads are rows."""
    text = json.dumps(document, separators=(",", ":"))
    for head in rows:
        text = text.replace(head, f"\n{head}")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)


def report(unit: str, progress: str) -> None:
    """Show a line of progress."""
    print(f"{unit}: {progress}", file=sys.stderr, flush=True)


def part(words: str) -> tuple[int, int]:
    """Read ``i/N`` from the command line."""
    number, total = (int(word) for word in words.split("/"))
    if not 1 <= number <= total:
        raise argparse.ArgumentTypeError("a part is i/N with 1 <= i <= N")
    return number, total
