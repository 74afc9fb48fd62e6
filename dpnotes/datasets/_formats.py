"""Read what is kept and what the original hosts serve, and unpack nothing beyond its known size."""

import bz2
import gzip
import hashlib
import io
import math
import pickle
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

# What a parser may raise on the wrong bytes.
UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, OSError, EOFError),
    *(ArithmeticError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error),
    *(struct.error, pickle.UnpicklingError),
)


def size_of(expected: dict[str, Any]) -> int:
    """Return the number of bytes of a part, an array or a plain file."""
    if "size" in expected:
        return expected["size"]
    return math.prod(expected["shape"]) * np.dtype(expected["dtype"]).itemsize


def read_part(
    file: IO[bytes], suffix: str, part: str, expected: dict[str, Any]
) -> np.ndarray | bytes:
    """Read one part from an open file, and no more bytes than it should have."""
    if suffix == ".npy":
        return _read_array(file, part, expected)
    if suffix == ".npz":
        with zipfile.ZipFile(file) as archive:
            member = archive.getinfo(f"{part}.npy")
            # Others reserve as much memory as the archive asks for.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{part} is packed in a way that numpy does not use")
            with archive.open(member) as unpacked:
                return _read_array(unpacked, part, expected)
    with bz2.open(file) if suffix == ".bz2" else file as content:
        return content.read(size_of(expected) + 1)


def _read_array(file: IO[bytes], part: str, expected: dict[str, Any]) -> np.ndarray:
    """Read an array whose header announces the expected one: no pickle, no shape beyond memory."""
    try:
        # Later versions exist for headers of more than 64 kB, and ours have 128 bytes.
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("an unknown version")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    except (*UNREADABLE, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{part} is not an array in numpy's format") from error
    _check_form(part, dtype, shape, expected)
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def _check_form(part: str, dtype: np.dtype, shape: tuple, expected: dict[str, Any]) -> None:
    form = (str(dtype), list(shape))
    if form != (expected["dtype"], expected["shape"]):
        raise ValueError(f"{part} has another dtype and shape: {form}"[:200])


def verify(part: str, content: np.ndarray | bytes, expected: dict[str, Any]) -> None:
    """Raise ValueError unless `content` is the published one: dtype, shape and every byte."""
    if isinstance(content, np.ndarray):
        _check_form(part, content.dtype, content.shape, expected)
        content = np.ascontiguousarray(content)
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise ValueError(f"{part} has another SHA-256")


def read_members(path: Path, source: dict[str, Any]) -> dict[str, bytes]:
    """Return the known files of an archive whose own hash is not known, each of them verified.

    Whatever else it holds is passed over unread, and only so much of it.
    """
    known, content, left = source["members"], {}, source["unpacked_at_most"]
    with gzip.open(path) as archive:
        while len(content) < len(known):
            block = archive.read(tarfile.BLOCKSIZE)
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            left -= tarfile.BLOCKSIZE + entry.size
            if entry.size < 0 or left < 0:
                raise ValueError("it unpacks to more than it may")
            following = archive.tell() + -(-entry.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
            name = PurePosixPath(entry.name).name
            if name in known and entry.size == known[name]["size"]:
                content[name] = archive.read(entry.size)
                verify(name, content[name], known[name])
            archive.seek(following)
    return content


# What was downloaded, verified by now, as parts.


def _read_adult(files: dict[str, Path], sources: dict[str, Any]) -> dict[str, bytes]:
    return {file: path.read_bytes() for file, path in files.items()}


def _read_mnist(files: dict[str, Path], sources: dict[str, Any]) -> dict[str, np.ndarray]:
    return {sources[file]["part"]: _read_idx(path) for file, path in files.items()}


def _read_idx(path: Path) -> np.ndarray:
    """Read the format of MNIST: two zeros, the type (8: uint8), the rank, the shape, the bytes."""
    raw = gzip.decompress(path.read_bytes())
    rank = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=rank, offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)


_ARRAY_MAKERS: dict[str, Callable] = {
    "_reconstruct": np.empty(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
}


class _BatchUnpickler(pickle.Unpickler):
    """Reads the pickles of CIFAR-10, which hold arrays, and refuses to call anything else."""

    def find_class(self, module: str, name: str) -> Callable:
        if name not in _ARRAY_MAKERS:
            raise pickle.UnpicklingError(f"a batch of images must not call {module}.{name}")
        return _ARRAY_MAKERS[name]


def _read_cifar10(files: dict[str, Path], sources: dict[str, Any]) -> dict[str, np.ndarray]:
    [path] = files.values()
    names = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    content = {}
    with tarfile.open(path) as archive:
        for split, batches in names.items():
            members = [archive.extractfile(f"cifar-10-batches-py/{batch}") for batch in batches]
            loaded = [_BatchUnpickler(member, encoding="latin1").load() for member in members]
            planes = np.concatenate([batch["data"] for batch in loaded]).reshape(-1, 3, 32, 32)
            labels = np.concatenate([batch["labels"] for batch in loaded]).astype(np.uint8)
            images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
            content[f"x_{split}"], content[f"y_{split}"] = _normalise(images, labels)
    return content


def _normalise(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort by label, then by the image's bytes, so that every source gives the same arrays."""
    order = sorted(range(len(labels)), key=lambda i: (labels[i], images[i].tobytes()))
    return images[order], labels[order]


def _read_votes(files: dict[str, Path], sources: dict[str, Any]) -> dict[str, np.ndarray]:
    raw = {}
    for file, path in files.items():
        if "members" in sources[file]:
            raw |= read_members(path, sources[file])
        else:
            raw[sources[file]["part"]] = path.read_bytes()
    return {
        name.removesuffix(".npy"): np.load(io.BytesIO(raw[name]), allow_pickle=False)
        for name in raw
    }


READERS: dict[str, Callable] = {
    "adult": _read_adult,
    "mnist": _read_mnist,
    "cifar10": _read_cifar10,
    "pate_votes": _read_votes,
}
