"""The book's data sets: found where you keep them, and verified every time they are loaded.

``load_*()`` looks in the folder named by ``DPNOTES_DATA``, then in the data that came with dpnotes,
then in the user's cache. Unless you pass ``download=True``, it never uses the network: if a data
set is missing, it raises a `DatasetUnavailable` that names the one command to fetch it,

    python -m dpnotes.datasets NAME

and ``python -m dpnotes.datasets`` alone shows what is there. Wherever the files came from, the
arrays are put into one order and compared with the SHA-256 in ``data/datasets.toml``, so that all
readers compute on the same bytes. A download comes from the first mirror that serves the published
file, and is cut off where it grows larger than that file or takes longer than at 50 kB a second.
"""

import argparse
import bz2
import functools
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import sys
import tarfile
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpnotes._checks import check_choice, check_flag, check_integer
from dpnotes._files import written_whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DatasetCorrupted",
    "DatasetUnavailable",
    "ImageData",
    "load_adult",
    "load_cifar10",
    "load_mnist",
    "load_pate_votes",
    "load_results",
    "locate",
    "main",
]

# A wheel carries the data folder inside the package; a checkout has it beside the package.
_PACKAGED = Path(__file__).parent / "data"
_SHIPPED = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[1] / "data"
# Seconds to connect to a mirror, and without a single byte from it.
_TIMEOUT = (10, 30)
# The bytes a second that a mirror has to serve in all.
_SLOWEST = 50_000

_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
)


class DatasetUnavailable(FileNotFoundError):  # noqa: N818
    """The data is not on this machine, or could not be fetched; the message says what to run."""


class DatasetCorrupted(ValueError):  # noqa: N818
    """A file has the name of a data set but not its content; it is never used."""


class ImageData(NamedTuple):
    """Images and their original labels, already split.

    Attributes
    ----------
    x_train, x_test : ndarray of uint8
        Pixels from 0 to 255, of shape (n, height, width) or, in colour, (n, height, width, 3).
    y_train, y_test : ndarray of uint8
        Labels, of shape (n,).
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def load_adult(split: str = "train", *, download: bool = False) -> "pd.DataFrame":
    """Load UCI Adult, the answers of 48,842 people in the 1994 United States census.

    Parameters
    ----------
    split : {"train", "test", "all"}
        The 32,561 training rows, the 16,281 test rows, or both, in that order.
    download : bool
        Whether to download the data if it is missing.

    Returns
    -------
    DataFrame
        One row per person, 15 columns. A missing answer ("?" in the source) is NA; ``income`` is
        True above 50,000 dollars a year.

    Raises
    ------
    ValueError
        If `split` is not one of the three.
    DatasetUnavailable, DatasetCorrupted
        If the data is missing, or is not the published data.

    Notes
    -----
    B. Becker and R. Kohavi (1996), UCI Machine Learning Repository, CC BY 4.0,
    https://doi.org/10.24432/C5XW20.

    Examples
    --------
    >>> adult = load_adult()
    >>> int((adult["occupation"] == "Sales").sum()), int(adult["occupation"].isna().sum())
    (3650, 1843)
    """
    import pandas as pd

    check_choice("split", split, ("train", "test", "all"))
    parts = {"train": ["adult.data"], "test": ["adult.test"], "all": ["adult.data", "adult.test"]}
    raw = _load("adult", parts[split], download=download)
    frames = [_parse_adult(content) for content in raw.values()]
    return pd.concat(frames, ignore_index=True)


def load_mnist(*, download: bool = False) -> ImageData:
    """Load MNIST: 60,000 + 10,000 handwritten digits of 28 x 28 pixels, in the original order.

    Parameters
    ----------
    download : bool
        Whether to download the data if it is missing (11 MB).

    Returns
    -------
    ImageData
        Images (n, 28, 28) and labels 0 to 9 (n,), all uint8.

    Raises
    ------
    DatasetUnavailable, DatasetCorrupted
        If the data is missing, or is not the published data.

    Notes
    -----
    LeCun, Bottou, Bengio and Haffner (1998), Gradient-based learning applied to document
    recognition.

    Examples
    --------
    >>> images = load_mnist()  # doctest: +SKIP
    >>> images.x_train.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    return ImageData(**_load("mnist", ImageData._fields, download=download))


def load_cifar10(classes: Iterable[int] | None = None, *, download: bool = False) -> ImageData:
    """Load CIFAR-10: 50,000 + 10,000 colour photographs of 32 x 32 pixels.

    The images come sorted by label, then by their bytes: shuffle before making batches.

    Parameters
    ----------
    classes : iterable of int, optional
        Labels to keep, for instance ``(0, 7)`` for airplanes and horses. All ten by default.
    download : bool
        Whether to download the data if it is missing (170 MB).

    Returns
    -------
    ImageData
        Images (n, 32, 32, 3) in RGB and their original labels 0 to 9 (n,), all uint8.

    Raises
    ------
    ValueError, TypeError
        If `classes` is empty or holds anything but integers from 0 to 9.
    DatasetUnavailable, DatasetCorrupted
        If the data is missing, or is not the published data.

    Notes
    -----
    Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images.

    Examples
    --------
    >>> pair = load_cifar10(classes=(0, 7))  # doctest: +SKIP
    >>> pair.x_train.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    if not isinstance(classes, Iterable | None):
        raise TypeError(f"classes must be labels from 0 to 9, got {type(classes).__name__}")
    kept = range(10) if classes is None else list(classes)
    for label in kept:
        check_integer("classes", label, low=0, high=9)
    if not kept:
        raise ValueError("classes must hold at least one label from 0 to 9, got none")
    images = ImageData(**_load("cifar10", ImageData._fields, download=download))
    if classes is None:
        return images
    train, test = np.isin(images.y_train, kept), np.isin(images.y_test, kept)
    return ImageData(
        images.x_train[train], images.y_train[train], images.x_test[test], images.y_test[test]
    )


def load_pate_votes(name: str, *, download: bool = False) -> np.ndarray:
    """Load what the authors of the PATE papers released: votes of 250 real teachers.

    Parameters
    ----------
    name : str
        ``"mnist_250_teachers"``: votes (9000, 10) on the first 9,000 MNIST test images.
        ``"svhn_250_teachers"``: votes (26032, 10) on the test images of SVHN.
        ``"adult_250_teachers"``: votes (16281, 2) on Adult's test rows.
        ``"mnist_student_query_indices"``: the 100 images that the 2017 student asked about.
        ``"mnist_250_student_labels_lap_20"``: noisy labels (9000,), Laplace scale 20.
    download : bool
        Whether to download the data if it is missing.

    Returns
    -------
    ndarray of int64
        Whole numbers; a row of votes sums to 250.

    Raises
    ------
    ValueError
        If there is no such `name`.
    DatasetUnavailable, DatasetCorrupted
        If the data is missing, or is not the published data.

    Notes
    -----
    Papernot et al. (2017), https://arxiv.org/abs/1610.05755, and (2018),
    https://arxiv.org/abs/1802.08908.

    Examples
    --------
    >>> load_pate_votes("mnist_250_teachers").sum(axis=1).max()  # doctest: +SKIP
    np.int64(250)
    """
    check_choice("name", name, tuple(_catalogue()["pate_votes"]["parts"]))
    return _load("pate_votes", [name], download=download)[name].astype(np.int64)


def load_results(name: str) -> dict[str, Any]:
    """Load the results of an experiment, measured once with their provenance.

    Parameters
    ----------
    name : str
        The experiment's name, as in ``data/results/NAME.jsonl`` (or ``.json``, a whole document).
        Files ``NAME-1.jsonl`` and so on, measured on several machines, are joined with it.

    Returns
    -------
    dict
        What all units share ("experiment", "cut", "data", ...); a list of the "units", each with
        its "setup" and "provenance"; and, where units have records, one list of all "records".

    Raises
    ------
    ValueError, TypeError
        If `name` is not a plain name.
    DatasetUnavailable
        If there is no such file.

    Examples
    --------
    >>> load_results("no_such_experiment")
    Traceback (most recent call last):
    ...
    dpnotes.datasets.DatasetUnavailable: no results of 'no_such_experiment': measure them with ...
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"name must be letters, digits and underscores, got {name!r}")
    document = _SHIPPED / "results" / f"{name}.json"
    paths = [*document.parent.glob(f"{name}.jsonl"), *document.parent.glob(f"{name}-*.jsonl")]
    if paths:
        texts = (path.read_text(encoding="utf-8") for path in sorted(paths))
        return _gather(json.loads(line) for text in texts for line in text.splitlines())
    if document.is_file():
        return json.loads(document.read_text(encoding="utf-8"))
    raise DatasetUnavailable(
        f"no results of {name!r}: measure them with "
        f"python -m dpnotes.experiments.{name} --out data/results/{name}.jsonl"
    )


def _gather(lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Make one document of the lines of an experiment."""
    shared, units = {}, []
    for line in lines:
        if "unit" in line:
            line.pop("experiment", None)
            units.append({**line.pop("unit"), **line})
        elif any(shared.get(entry, value) != value for entry, value in line.items()):
            raise ValueError(f"the files must agree in what all units share: {', '.join(line)}")
        else:
            shared |= line
    records = [record for unit in units for record in unit.pop("records", [])]
    return {**shared, "units": units} | ({"records": records} if records else {})


def locate(name: str) -> Path | None:
    """Return where a data set is stored, without reading it.

    Parameters
    ----------
    name : {"adult", "mnist", "cifar10", "pate_votes"}
        The data set.

    Returns
    -------
    Path or None
        The first folder searched that holds it, or None if a part of it is missing.

    Examples
    --------
    >>> locate("adult").is_dir()
    True
    """
    check_choice("name", name, tuple(_catalogue()))
    found = [_find(name, part) for part in _catalogue()[name]["parts"]]
    return None if None in found else found[0].parent


@functools.cache
def _catalogue() -> dict[str, Any]:
    return tomllib.loads((_SHIPPED / "datasets.toml").read_text(encoding="utf-8"))


def _cache_folder() -> Path:
    import pooch

    return Path(pooch.os_cache("dpnotes"))


def _folders() -> Iterator[Path]:
    if named := os.environ.get("DPNOTES_DATA"):
        yield Path(named).expanduser()
    yield _SHIPPED
    yield _cache_folder()


def _find(name: str, part: str) -> Path | None:
    relative = _catalogue()[name]["path"].format(part=part)
    candidates = (folder / file for folder in _folders() for file in (relative, f"{relative}.bz2"))
    return next((path for path in candidates if path.is_file()), None)


def _load(name: str, parts: Iterable[str], *, download: bool) -> dict[str, Any]:
    """Read and verify `parts` of a data set, downloading it first if that is allowed and needed."""
    check_flag("download", download)
    if download and locate(name) is None:
        _fetch(name)
    return {part: _read(name, part) for part in parts}


def _read(name: str, part: str) -> np.ndarray | bytes:
    """Read one part of a data set from where it is stored, and verify it."""
    path = _find(name, part)
    if path is None:
        raise DatasetUnavailable(
            f"{name} is not on this machine; fetch it with: python -m dpnotes.datasets {name}"
            f" (looked in {', '.join(map(str, _folders()))})"
        )
    expected = _catalogue()[name]["parts"][part]
    with path.open("rb") as file:
        try:
            content = _read_part(file, path.suffix, part, expected)
            _verify(part, content, expected)
        except Exception as error:  # what a parser raises on the wrong bytes may be anything
            raise DatasetCorrupted(
                f"{path} is not {name} as published ({error}); move it away, then run: "
                f"python -m dpnotes.datasets {name}"
            ) from error
    return content


def _read_part(
    file: IO[bytes], suffix: str, part: str, expected: dict[str, Any]
) -> np.ndarray | bytes:
    if suffix == ".npz":
        with np.load(file, allow_pickle=False) as archive:
            return archive[part]
    if suffix == ".npy":
        return np.load(file, allow_pickle=False)
    with bz2.open(file) if suffix == ".bz2" else file as content:
        return content.read(expected["size"] + 1)


def _verify(part: str, content: np.ndarray | bytes, expected: dict[str, Any]) -> None:
    """Raise ValueError unless `content` is the published one: dtype, shape and every byte."""
    if isinstance(content, np.ndarray):
        form = (str(content.dtype), list(content.shape))
        if form != (expected["dtype"], expected["shape"]):
            raise ValueError(f"{part} has another dtype and shape: {form}")
        content = np.ascontiguousarray(content)
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise ValueError(f"{part} has another SHA-256")


def _parse_adult(content: bytes) -> "pd.DataFrame":
    import pandas as pd

    frame = pd.read_csv(
        io.BytesIO(content),
        names=_ADULT_COLUMNS,
        # The test file opens with a line of its own, and ends its incomes in a full stop.
        skiprows=1 if content.startswith(b"|") else 0,
        skipinitialspace=True,
        na_values="?",
    )
    frame["income"] = frame["income"].str.rstrip(".") == ">50K"
    return frame


def _fetch(name: str) -> None:
    """Download the files of a data set, extract its parts, and verify and store them."""
    entry, folder = _catalogue()[name], _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as drafts:
            content = {}
            for file, source in entry["downloads"].items():
                content |= _download(Path(drafts) / file, source, _READERS[name])
            for part, expected in entry["parts"].items():
                _verify(part, content[part], expected)
            _store(name, content, folder)
    except DatasetUnavailable:
        raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot store {name} in the cache {folder} ({error.strerror or error}); make room or "
            "make it writable, or put the files into a folder of your own named by DPNOTES_DATA",
        ) from error
    except Exception as error:
        raise DatasetUnavailable(
            f"what was downloaded is not {name} as published ({error}); nothing was stored"
        ) from error


def _download(path: Path, source: dict[str, Any], read: Callable) -> dict[str, Any]:
    """Return the parts of a file as published, from the first mirror that serves it so."""
    import pooch
    import requests

    transfer = functools.partial(_transfer, at_most=source.get("size") or source["at_most"])
    reasons, known = "", source.get("sha256")
    for url in source["urls"]:
        try:
            pooch.retrieve(url, known, path.name, path.parent, downloader=transfer)
            return read(path, source)
        except (requests.RequestException, tarfile.TarError, ValueError, EOFError) as error:
            path.unlink(missing_ok=True)
            # A server's words are not trusted with the terminal.
            words = "".join(filter(str.isprintable, str(error)[:300]))
            reasons += f"\n  {url}: {words}"
    raise DatasetUnavailable(f"{path.name} could not be downloaded; run this again.{reasons}")


def _transfer(url: str, path: str, mirror: object, *, at_most: int) -> None:
    """Write what a mirror sends, but not one byte beyond the size of the file, nor for ever."""
    import pooch

    class Bounded(io.FileIO):
        def write(self, chunk: bytes) -> int:
            if self.tell() + len(chunk) > at_most:
                raise ValueError(f"sends more than {at_most} bytes")
            return super().write(chunk)

    def get() -> None:
        download = pooch.HTTPDownloader(progressbar=True, chunk_size=1 << 16, timeout=_TIMEOUT)
        try:
            download(url, out, mirror)
        except Exception as error:
            errors.append(error)

    # Each byte starts _TIMEOUT anew, and nothing stops a read from outside: the thread of a mirror
    # that drips is left behind. It ends with the process, or when it writes to the closed file.
    thread, errors = threading.Thread(target=get, daemon=True), []
    seconds = _TIMEOUT[1] + at_most / _SLOWEST
    with Bounded(path, "w") as out:
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            raise ValueError(f"takes longer than {seconds:.0f} seconds")
    if errors:
        raise errors.pop()


def _store(name: str, content: dict[str, Any], folder: Path) -> None:
    """Write parts where `_find` looks for them; parts with one path share one archive."""
    pattern = _catalogue()[name]["path"]
    if pattern.endswith(".npz"):
        with written_whole(name, folder / pattern) as out:
            np.savez(out, **content)
        return
    for part, value in content.items():
        with written_whole(name, folder / pattern.format(part=part)) as out:
            np.save(out, value) if isinstance(value, np.ndarray) else out.write(value)


# What was downloaded, as parts.


def _read_members(path: Path, source: dict[str, Any]) -> dict[str, bytes]:
    """Return the known files of an archive whose own hash is not known, each of them verified.

    Other files in it are skipped, up to a limit on what it may unpack to.
    """
    known, content, left = source["members"], {}, source["unpacked_at_most"]
    with tarfile.open(path, "r|gz") as archive:
        for entry in archive:
            left -= tarfile.BLOCKSIZE + entry.size
            if entry.size < 0 or left < 0:
                raise ValueError("it unpacks to more than it may")
            name = PurePosixPath(entry.name).name
            if name in known and entry.size == known[name]["size"]:
                content[name] = archive.extractfile(entry).read()
                _verify(name, content[name], known[name])
    if missing := set(known) - set(content):
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    return content


def _read_adult(path: Path, source: dict[str, Any]) -> dict[str, bytes]:
    return {path.name: path.read_bytes()}


def _read_mnist(path: Path, source: dict[str, Any]) -> dict[str, np.ndarray]:
    """Read the format of MNIST: two zeros, the type (8: uint8), the rank, the shape, the bytes."""
    raw = gzip.decompress(path.read_bytes())
    rank = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=rank, offset=4)
    return {source["part"]: np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)}


def _read_cifar10(path: Path, source: dict[str, Any]) -> dict[str, np.ndarray]:
    names = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    content = {}
    with tarfile.open(path) as archive:
        for split, batches in names.items():
            members = [archive.extractfile(f"cifar-10-batches-py/{batch}") for batch in batches]
            # These pickles are the authors' own, because the archive has the published SHA-256.
            loaded = [pickle.load(member, encoding="latin1") for member in members]
            planes = np.concatenate([batch["data"] for batch in loaded]).reshape(-1, 3, 32, 32)
            labels = np.concatenate([batch["labels"] for batch in loaded]).astype(np.uint8)
            images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
            content[f"x_{split}"], content[f"y_{split}"] = _normalise(images, labels)
    return content


def _normalise(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort by label, then by the image's bytes, so that every source gives the same arrays."""
    order = sorted(range(len(labels)), key=lambda i: (labels[i], images[i].tobytes()))
    return images[order], labels[order]


def _read_votes(path: Path, source: dict[str, Any]) -> dict[str, np.ndarray]:
    one = "members" not in source
    raw = {source["part"]: path.read_bytes()} if one else _read_members(path, source)
    return {
        name.removesuffix(".npy"): np.load(io.BytesIO(content), allow_pickle=False)
        for name, content in raw.items()
    }


_READERS: dict[str, Callable] = {
    "adult": _read_adult,
    "mnist": _read_mnist,
    "cifar10": _read_cifar10,
    "pate_votes": _read_votes,
}


def main(arguments: list[str] | None = None) -> int:
    """Fetch and verify a data set, or show what is there: ``python -m dpnotes.datasets [NAME]``.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; the process's own by default.

    Returns
    -------
    int
        0, or 1 after a message to stderr if the data could not be loaded.

    Examples
    --------
    >>> main(["adult"])  # doctest: +ELLIPSIS
    adult is there, verified: ...
    0
    """
    parser = argparse.ArgumentParser(
        prog="python -m dpnotes.datasets",
        description="Fetch and verify a data set, or show which are there.",
    )
    parser.add_argument(
        "name", nargs="?", choices=tuple(_catalogue()), help="default: show what is there"
    )
    parser.add_argument("--classes", nargs="+", type=int, help="cifar10 only: labels to keep")
    parser.add_argument("--out", type=Path, help="mnist, cifar10 only: write to this .npz")
    chosen = parser.parse_args(arguments)
    if chosen.classes and chosen.name != "cifar10":
        parser.error("--classes is for cifar10 alone")
    if chosen.out and chosen.name not in ("mnist", "cifar10"):
        parser.error("--out is for mnist and cifar10 alone")
    if chosen.name is None:
        _show()
        return 0
    try:
        _obtain(chosen.name, chosen.classes, chosen.out)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _obtain(name: str, classes: list[int] | None, out: Path | None) -> None:
    if name == "cifar10":
        images = load_cifar10(classes, download=True)
    else:
        content = _load(name, _catalogue()[name]["parts"], download=True)
        images = ImageData(**content) if out else None
    print(f"{name} is there, verified: {locate(name)}")
    if out:
        with written_whole("out", out) as file:
            np.savez_compressed(file, **images._asdict())
        print(f"wrote {out}: {len(images.x_train)} training and {len(images.x_test)} test images")


def _show() -> None:
    for name, entry in _catalogue().items():
        place = locate(name) or f"absent; fetch it with: python -m dpnotes.datasets {name}"
        print(f"{name}: {entry['title']}\n    licence: {entry['licence']}\n    {place}")


if __name__ == "__main__":
    sys.exit(main())
