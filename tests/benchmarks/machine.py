"""What there is to say of the machine, the packages and the code that were measured."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from dpnotes import __version__

ROOT = Path(__file__).resolve().parents[2]


def describe_machine():
    """Return the machine's parts that matter to a timing."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions(packages):
    """Return the version of every package and of dpnotes."""
    return {name: version(name) for name in sorted(packages)} | {"dpnotes": __version__}


def version(package):
    """Return the version of an installed package, or "absent"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def commit():
    """Return the commit, and say so where dpnotes has been changed since."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        return "unknown"
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "dpnotes"]).returncode
    return head.stdout.strip() + (" with changes" if changed else "")


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_gib():
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, OSError, ValueError):
        return None
