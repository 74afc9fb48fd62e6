"""Audit the published packages of this folder, each in an environment of its own.

Usage: ``python tests/field/run.py [NAME ...] [--force]``

`packages/NAME.py` lists the audits of a package, `packages/NAME.txt` pins all that it needs. The
environment is made in a temporary folder and thrown away; what stands behind `# borrowed:` is taken
from the book's own, in the same version. Every audit is a process with limits of
its own, and what it found is written at once to `data/results/field.json`: a run that was
interrupted goes on, and what is there is not run again unless the audit has changed.

A claim is called violated when two runs with fresh seeds refute it, each at the confidence that a
thousand tries leave to one. Every try is counted, whatever came out.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import audited
import filelock
from audited import FAILED, HOLDS, MOST_TRIES, VIOLATED

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "data" / "results" / "field.json"
PATH = (ROOT,)  # dpnotes comes by path, all else from the environment
SECONDS, MEMORY = 900, 8 * 2**30
LONGEST_ERROR = 200
BORROWED = "# borrowed: "  # before a package too big to be fetched for each environment


def read(results=RESULTS):
    """Return what was found so far."""
    if not results.exists():
        return {"tries": 0, "error_of_a_try": audited.ERROR, "audits": []}
    return json.loads(results.read_text("utf-8"))


def store(found, results=RESULTS):
    """Write the results whole or not at all."""
    draft = results.with_suffix(".draft")
    found["audits"].sort(key=lambda entry: (entry["package"].lower(), entry["order"]))
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(results)


def examine(package, results=RESULTS, force=False, **options):
    """Audit what is new of one package, and yield each entry as soon as it is stored."""
    audits, pins = audited.load(package), package.with_suffix(".txt")
    known = set() if force else refresh(audits, pins, results)
    waiting = [name for name in audits if name not in known]
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="field-") as folder:
        try:
            python, trouble = make_environment(Path(folder), pins), None
        except subprocess.CalledProcessError as error:
            trouble = {"verdict": FAILED, "error": _last_line(error.stderr, folder)}
        except LookupError as error:
            trouble = {"verdict": FAILED, "error": str(error)}
        for name in waiting:
            tries, said = (
                (0, trouble) if trouble else verdict(python, package, audits[name], **options)
            )
            entry = described(audits, name, pins) | said | provenance(pins)
            _add(entry, tries, results)
            yield entry


def make_environment(folder, pins):
    """Make an environment with exactly the pinned packages, and return its interpreter."""
    borrowed = _borrowed(pins)
    quiet = {"check": True, "capture_output": True, "text": True}
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], **quiet)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    # What is never imported need not be compiled.
    options = ["--quiet", "--no-input", "--no-compile", "--no-deps", "--requirement", pins.name]
    subprocess.run([*pip, "install", *options], cwd=pins.parent, **quiet)
    if borrowed:
        [packages] = (environment / "lib").glob("python*/site-packages")
        (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return python


def _borrowed(pins):
    """Return the folders of what is taken from this environment, after all that is pinned."""
    lines = [line for line in pins.read_text("utf-8").splitlines() if line.startswith(BORROWED)]
    folders = []
    for name, version in (line.removeprefix(BORROWED).split("==") for line in lines):
        here = importlib.metadata.distribution(name)
        if here.version.partition("+")[0] != version:
            raise LookupError(f"{name} {version} is asked for, and {here.version} is here")
        folders.append(str(here.locate_file("")))
    return folders


def verdict(python, package, audit, path=PATH, **limits):
    """Return how many tries were made, and what they say of the claim."""
    exact, runs = audit.distribution is not None, []
    refuted = True
    while refuted and len(runs) < (1 if exact else 2):  # tried again with a fresh seed
        seed = secrets.randbits(32)
        found = in_a_process(python, package, audit.run.__name__, seed, path, **limits)
        runs.append(found if exact else {"seed": seed} | found)
        refuted = "error" not in found and audited.exceeds(audit, found)
    tries = 0 if exact else len(runs)
    if "error" in runs[-1]:
        return tries, {"verdict": FAILED, "error": runs[-1]["error"]}
    finite = [{k: "infinity" if v == math.inf else v for k, v in run.items()} for run in runs]
    return tries, {"verdict": VIOLATED if refuted else HOLDS, "runs": finite}


def in_a_process(python, package, name, seed, path=PATH, seconds=SECONDS, memory=MEMORY):
    """Judge an audit in a process with limits; an error is what the process said last."""
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    with tempfile.TemporaryDirectory(prefix="field-") as folder:
        out, said = Path(folder) / "found.json", Path(folder) / "stderr"
        # -P: what lies beside the script is not imported by accident.
        with said.open("w") as stderr:
            process = subprocess.Popen(
                [python, "-P", HERE / "audited.py", package, name, str(seed), out],
                cwd=folder,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
            )
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {seconds:g} seconds"}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code or not out.exists():
            text = said.read_text("utf-8", errors="replace")
            return {"error": _last_line(text, folder) or f"it ended with {code}"}
        return json.loads(out.read_text("utf-8"))


def refresh(audits, pins, results=RESULTS):
    """Drop what has gone or changed, take over what is only text, and name what is known."""
    with filelock.FileLock(results.with_suffix(".lock")):
        return _refreshed(audits, pins, results)


def _refreshed(audits, pins, results):
    found = read(results)
    ours = [entry for entry in found["audits"] if entry["package"] == audits.package]
    others = [entry for entry in found["audits"] if entry["package"] != audits.package]
    known = [
        entry | described(audits, entry["audit"], pins)
        for entry in ours
        if entry["audit"] in audits
        and entry["fingerprint"] == fingerprint(audits[entry["audit"]], pins)
    ]
    store(found | {"audits": [*others, *known]}, results)
    return {entry["audit"] for entry in known}


def described(audits, name, pins):
    """Return what is known of an audit before it is run."""
    audit = audits[name]
    return {
        "package": audits.package,
        "version": pinned(pins).get(audits.package, "absent"),
        "audit": name,
        "order": list(audits).index(name),
        "fingerprint": fingerprint(audit, pins),
        "trials": None if audit.distribution else audit.trials,
        "noise": audits.noise,
        "noise_report": audits.noise_report,
    } | audit.texts()


def fingerprint(audit, pins):
    """Tell an audit of these versions from every other one."""
    return hashlib.sha256(f"{audit.what_runs()} {pinned(pins)}".encode()).hexdigest()[:16]


def pinned(pins):
    """Return the version of every package that is pinned."""
    lines = [line.removeprefix(BORROWED) for line in pins.read_text("utf-8").splitlines()]
    lines = [line.split("#")[0].strip() for line in lines]
    return dict(line.split("==") for line in lines if "==" in line)


def provenance(pins):
    """Return the date, the commit and the versions that a result belongs to."""
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "confidence": audited.CONFIDENCE,
        "versions": pinned(pins),
    }


def commit():
    """Return the commit that last changed the audit, and say so where it has been changed since."""
    git, audit = ["git", "-C", str(ROOT)], ["dpnotes/audit", "dpnotes/_checks.py"]
    last = [*git, "log", "-1", "--format=%h", "--abbrev=10", "--", *audit]
    said = subprocess.run(last, capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *audit]).returncode
    return (said or "unknown") + (" with changes" if changed else "")


def _add(entry, tries, results):
    with filelock.FileLock(results.with_suffix(".lock")):
        _merge(entry, tries, results)


def _merge(entry, tries, results):
    found = read(results)
    found["tries"] += tries
    if found["tries"] > MOST_TRIES:
        raise SystemExit(f"More than {MOST_TRIES} tries: the confidence of each has to grow.")
    key = entry["package"], entry["audit"]
    others = [other for other in found["audits"] if (other["package"], other["audit"]) != key]
    store(found | {"audits": [*others, entry]}, results)


def _last_line(said, folder):
    """Return the last line of an error, without the folders and hosts of this machine."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or [""]
    line = re.sub(r"\w+://\S+", "...", lines[-1])
    for place in (folder, HERE, ROOT, Path.home()):
        line = line.replace(str(place), "...")
    return line[:LONGEST_ERROR]


def packages():
    """Return the file of each package."""
    return {path.stem: path for path in sorted((HERE / "packages").glob("*.py"))}


def main(arguments=None):
    """Audit the packages that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description="Audit published packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages; default: all")
    parser.add_argument("--force", action="store_true", help="run again what is there")
    options = parser.parse_args(arguments)
    known = packages()
    if unknown := sorted({*options.names} - {*known}):
        parser.error(f"no such package: {', '.join(unknown)} (there are: {', '.join(known)})")
    for name in options.names or known:
        for entry in examine(known[name], force=options.force):
            runs = entry.get("runs", [entry.get("error")])
            print(f"{name}: {entry['mechanism']}: {entry['verdict']} {runs}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
