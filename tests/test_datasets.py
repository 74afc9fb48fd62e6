"""The data is the published data, or there is none: on any disk and over any line."""

import bz2
import errno
import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpnotes import datasets

ROOT = Path(datasets.__file__).parents[1]
PUBLISHED = datasets._catalogue()
PAYLOAD = np.random.default_rng(0).bytes(1 << 18)


# A web server on loopback that misbehaves as it is told. Each path has a list of behaviours, one a
# request; the last one stays.


def serves(handler, body):
    """Send the file, or the rest of it where a range is asked for."""
    asked = handler.headers.get("Range")
    start = int(asked[len("bytes=") : -1]) if asked else 0
    if asked and start >= len(body):
        return handler.reply(416, b"")
    if start:
        span = f"bytes {start}-{len(body) - 1}/{len(body)}"
        return handler.reply(206, body[start:], {"Content-Range": span})
    return handler.reply(200, body)


def ignores_ranges(handler, body):
    handler.reply(200, body)


def is_unavailable(handler, body):
    handler.reply(503, b"try again later")


def sends_other_bytes(handler, body):
    handler.reply(200, bytes(len(body)))


def sends_other_bytes_then_breaks_off(handler, body):
    handler.reply(200, bytes(len(body)), sent=len(body) // 2)


def breaks_off(handler, body):
    handler.reply(200, body, sent=len(body) // 2)


def stalls(handler, body):
    handler.reply(200, body, sent=len(body) // 2)
    handler.server.released.wait(30)


def dawdles(handler, body):
    time.sleep(1)
    handler.reply(200, body)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        with server.guard:
            server.requests[self.path].append(self.headers.get("Range"))
            script = server.behaviours[self.path]
            behave = script.pop(0) if len(script) > 1 else script[0]
        behave(self, server.files[self.path])

    def reply(self, status, body, headers=None, sent=None):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.wfile.flush()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.guard = {}, threading.Lock()
    server.behaviours = defaultdict(lambda: [serves])
    server.requests, server.released = defaultdict(list), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_other_network(monkeypatch):
    connect = socket.socket.connect

    def guarded(self, address):
        if isinstance(address, tuple) and address[0] != "127.0.0.1":
            pytest.fail(f"a test reached for the network: {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty machine: no DPNOTES_DATA, nothing shipped, nothing cached, no patience."""
    folder = tmp_path / "cache"
    monkeypatch.delenv("DPNOTES_DATA", raising=False)
    monkeypatch.setattr(datasets, "_SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(datasets, "_cache_folder", lambda: folder)
    monkeypatch.setattr(datasets, "_PAUSE", 0.0)
    monkeypatch.setattr(datasets, "_TIMEOUT", (5, 0.3))
    return folder


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def describe(value):
    if isinstance(value, bytes):
        return {"sha256": sha256(value)}
    return {
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "sha256": sha256(value.tobytes()),
    }


@pytest.fixture
def publish(server, monkeypatch):
    """Put a data set on the server, and into the catalogue."""
    entries = {}
    monkeypatch.setattr(datasets, "_catalogue", lambda: entries)

    def publish(name, parts, files, *, mirrors=1, hashed=True):
        entry = PUBLISHED[name] | {"downloads": {}}
        entry["parts"] = {part: describe(value) for part, value in parts.items()}
        for file, content in files.items():
            urls = [f"{server.url}/{mirror}/{file}" for mirror in range(mirrors)]
            entry["downloads"][file] = {"urls": urls}
            if hashed:
                entry["downloads"][file]["sha256"] = sha256(content)
            for mirror in range(mirrors):
                server.files[f"/{mirror}/{file}"] = content
        entries[name] = entry
        return entries

    return publish


@pytest.fixture
def payload(publish):
    """One file of noise under the name of a data set, on two mirrors."""
    return publish("adult", {"blob": PAYLOAD}, {"blob": PAYLOAD}, mirrors=2)


def fetch():
    return datasets._load("adult", ["blob"], download=True)["blob"]


def contents(folder):
    """Every file but the lock."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.suffix != ".lock")


# Downloads


def test_a_download_is_stored_and_the_next_load_needs_no_network(cache, server, payload):
    assert fetch() == PAYLOAD
    assert contents(cache) == ["adult/blob"]
    assert datasets._load("adult", ["blob"], download=False)["blob"] == PAYLOAD
    assert server.requests == {"/0/blob": [None]}


def test_nothing_is_fetched_unless_asked_for(cache, server, payload):
    with pytest.raises(datasets.DatasetUnavailable, match=r"python -m dpnotes\.datasets adult"):
        datasets._load("adult", ["blob"], download=False)
    assert not server.requests
    assert not cache.exists()


def test_what_is_absent_is_a_file_not_found(cache, payload):
    with pytest.raises(FileNotFoundError, match=r"adult is not on this machine.*shipped.*cache"):
        datasets.load_adult()


@pytest.mark.parametrize("first", [is_unavailable, sends_other_bytes, breaks_off, stalls])
def test_another_mirror_makes_good_what_the_first_spoils(first, cache, server, payload):
    server.behaviours["/0/blob"] = [first]
    assert fetch() == PAYLOAD
    assert contents(cache) == ["adult/blob"]


@pytest.mark.parametrize(
    "first",
    [is_unavailable, sends_other_bytes, breaks_off, stalls, sends_other_bytes_then_breaks_off],
)
def test_a_passing_fault_of_the_only_mirrors_is_retried(first, cache, server, payload):
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [first, serves]
    assert fetch() == PAYLOAD
    assert contents(cache) == ["adult/blob"]


@pytest.mark.parametrize("fault", [breaks_off, stalls])
def test_a_broken_download_goes_on_where_it_stopped(fault, cache, server, payload):
    server.behaviours["/0/blob"] = [fault]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [f"bytes={len(PAYLOAD) // 2}-"]


def test_a_server_that_ignores_ranges_sends_the_whole_file_again(cache, server, payload):
    server.behaviours["/0/blob"] = [breaks_off]
    server.behaviours["/1/blob"] = [ignores_ranges]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [f"bytes={len(PAYLOAD) // 2}-"]


def test_bytes_are_asked_for_as_they_are_so_that_ranges_count_them(cache, server, payload):
    asked = []

    def notes(handler, body):
        asked.append(handler.headers["Accept-Encoding"])
        serves(handler, body)

    server.behaviours["/0/blob"] = [notes]
    fetch()
    assert asked == ["identity"]


def test_a_file_complete_but_unfinished_is_not_fetched_again(cache, server, payload):
    cache.mkdir()
    (cache / "blob.part").write_bytes(PAYLOAD)
    server.behaviours["/0/blob"] = [serves]
    assert fetch() == PAYLOAD
    assert server.requests == {"/0/blob": [f"bytes={len(PAYLOAD)}-"]}


def test_a_remainder_of_another_file_is_thrown_away(cache, payload):
    cache.mkdir()
    (cache / "blob.part").write_bytes(bytes(len(PAYLOAD) + 1))
    assert fetch() == PAYLOAD


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (is_unavailable, "503"),
        (sends_other_bytes, "another SHA-256"),
        (sends_other_bytes_then_breaks_off, "IncompleteRead"),
        (stalls, "Read timed out"),
    ],
)
def test_mirrors_that_never_serve_are_each_named_with_the_reason(
    fault, reason, cache, server, payload, monkeypatch
):
    monkeypatch.setattr(datasets, "_ROUNDS", 2)
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [fault]
    with pytest.raises(datasets.DatasetUnavailable, match=f"/0/blob: .*{reason}") as caught:
        fetch()
    assert "/1/blob" in str(caught.value)
    assert len(server.requests["/0/blob"]) == len(server.requests["/1/blob"]) == 2
    assert set(contents(cache)) <= {"blob.part"}
    assert datasets.locate("adult") is None


def test_an_unreachable_server_is_named(cache, payload, server):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/blob"
    payload["adult"]["downloads"]["blob"]["urls"] = [address]
    with pytest.raises(datasets.DatasetUnavailable, match="Connection refused"):
        fetch()


def test_pauses_between_rounds_double(cache, server, payload, monkeypatch):
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [is_unavailable]
    pauses = []
    monkeypatch.setattr(datasets, "_PAUSE", 1.0)
    monkeypatch.setattr(datasets.time, "sleep", pauses.append)
    with pytest.raises(datasets.DatasetUnavailable):
        fetch()
    assert pauses == [0, 1, 2, 4, 8]


def test_a_file_without_a_published_hash_is_checked_by_its_parts(cache, server, publish):
    publish("adult", {"blob": PAYLOAD}, {"blob": PAYLOAD}, hashed=False)
    server.behaviours["/0/blob"] = [sends_other_bytes, serves]
    with pytest.raises(datasets.DatasetUnavailable, match="not adult as published"):
        fetch()
    assert contents(cache) == []
    assert fetch() == PAYLOAD


def test_a_full_cache_is_named_and_what_was_fetched_is_kept(cache, server, payload, monkeypatch):
    opened = Path.open

    def full(path, mode="r", *arguments, **options):
        file = opened(path, mode, *arguments, **options)
        if path.suffix == ".part" and "b" in mode:
            write, room = file.write, [100_000]

            def limited(chunk):
                room[0] -= len(chunk)
                if room[0] < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return write(chunk)

            wrapped = io.BufferedWriter(file.detach())
            write, wrapped.write = wrapped.write, limited
            return wrapped
        return file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(
            OSError, match=r"cannot store adult in the cache .*No space.*DPNOTES_DATA"
        ):
            fetch()
    assert contents(cache) == ["blob.part"]
    assert fetch() == PAYLOAD
    assert server.requests["/0/blob"][-1].startswith("bytes=")


def test_a_cache_that_fills_up_while_storing_holds_nothing(cache, payload, monkeypatch):
    def full(path, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            fetch()
    assert contents(cache) == []
    assert fetch() == PAYLOAD


def test_a_cache_that_cannot_be_written_is_named(cache, server, payload):
    cache.write_text("a file where the folder should be")
    with pytest.raises(OSError, match="cannot store adult in the cache") as caught:
        fetch()
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert not server.requests


def test_a_read_only_cache_is_named(cache, payload, monkeypatch):
    def refuse(path, *arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OSError, match=r"Permission denied.*make it writable"):
        fetch()


def elsewhere(entries, cache):
    """Another process that fetches the same data set."""
    code = (
        "import json, sys; from pathlib import Path; from dpnotes import datasets as d\n"
        "entries, folder = json.loads(sys.argv[1]), Path(sys.argv[2])\n"
        "d._catalogue, d._cache_folder, d._SHIPPED = lambda: entries, lambda: folder, folder\n"
        "sys.stdout.buffer.write(d._load('adult', ['blob'], download=True)['blob'])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(entries), str(cache)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "DPNOTES_DATA"},
    )


def test_two_processes_at_once_fetch_it_once_and_both_have_it(cache, server, payload):
    server.behaviours["/0/blob"] = [dawdles]
    processes = [elsewhere(payload, cache) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in processes] == [PAYLOAD, PAYLOAD]
    assert server.requests == {"/0/blob": [None]}
    assert contents(cache) == ["adult/blob"]


def test_two_threads_at_once_fetch_it_once_and_both_have_it(cache, server, payload, monkeypatch):
    monkeypatch.setattr(datasets, "_TIMEOUT", (5, 30))
    server.behaviours["/0/blob"] = [dawdles]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: fetch(), range(2))) == [PAYLOAD, PAYLOAD]
    assert server.requests == {"/0/blob": [None]}


def test_a_killed_download_leaves_no_lock_and_is_taken_up(cache, server, payload):
    server.behaviours["/0/blob"] = [stalls, serves]
    process = elsewhere(payload, cache)
    partial = cache / "blob.part"
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    held = partial.stat().st_size
    assert 0 < held < len(PAYLOAD)
    assert datasets.locate("adult") is None
    assert fetch() == PAYLOAD
    assert server.requests["/0/blob"] == [None, f"bytes={held}-"]


# From the files of the original hosts to arrays


def idx(array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes(), 1)


def python2_batch(images, labels):
    """A batch of CIFAR-10 as Python 2 pickled it: strings of bytes, arrays by `_reconstruct`."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    uint8 = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
    uint8 += b"(K\x03" + text(b"|") + b"NNN" + 2 * struct.pack("<ci", b"J", -1) + b"K\x00tb"
    shape = b"".join(struct.pack("<ci", b"J", side) for side in rows.shape) + b"\x86"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + b"K\x00\x85" + text(b"b")
    array += b"\x87R(K\x01" + shape + uint8 + b"\x89"
    array += b"T" + struct.pack("<i", rows.size) + rows.tobytes() + b"tb"
    answers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + answers + b"u."


def tarball(files, mode="w:gz"):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}


def cifar10_tarball(images, mode="w:gz"):
    """The original archive: each split shuffled, the training images in five batches."""
    rng = np.random.default_rng(1)
    files = {}
    for split, names in BATCHES.items():
        x, y = getattr(images, f"x_{split}"), getattr(images, f"y_{split}")
        shares = np.array_split(rng.permutation(len(y)), len(names))
        for name, share in zip(names, shares, strict=True):
            files[f"cifar-10-batches-py/{name}"] = python2_batch(x[share], y[share])
    return tarball(files, mode)


@pytest.fixture
def small_cifar10():
    """A few images in the normalised order, two of a label that differ in one byte, none alike."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    x[1] = x[0]
    x[0, -1, -1, -1], x[1, -1, -1, -1] = 127, 128
    y = np.array([0, 0, *rng.integers(0, 10, 38)], dtype=np.uint8)
    keys = [(int(label), image.tobytes()) for label, image in zip(y, x, strict=True)]
    order = np.array(sorted(range(40), key=keys.__getitem__))
    train, test = order[order < 30], order[order >= 30]
    return datasets.ImageData(x[train], y[train], x[test], y[test])


def assert_same_images(one, other):
    for field in datasets.ImageData._fields:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), strict=True)


def test_the_original_cifar10_archive_becomes_the_normalised_arrays(cache, publish, small_cifar10):
    archive = cifar10_tarball(small_cifar10)
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    assert_same_images(datasets.load_cifar10(download=True), small_cifar10)
    assert contents(cache) == ["cifar10.npz"]
    assert_same_images(datasets.load_cifar10(), small_cifar10)


def test_classes_of_cifar10_keep_their_labels_and_their_order(cache, publish, small_cifar10):
    archive = cifar10_tarball(small_cifar10)
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    pair = datasets.load_cifar10(classes=(7, 0), download=True)
    kept = np.isin(small_cifar10.y_train, (0, 7))
    np.testing.assert_array_equal(pair.x_train, small_cifar10.x_train[kept])
    assert set(pair.y_train) <= {0, 7}
    assert list(pair.y_test) == [label for label in small_cifar10.y_test if label in (0, 7)]


def test_an_archive_of_other_images_is_refused(cache, publish, small_cifar10):
    other = small_cifar10._replace(x_test=small_cifar10.x_test ^ 1)
    archive = cifar10_tarball(other)
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    with pytest.raises(datasets.DatasetUnavailable, match="x_test has another SHA-256"):
        datasets.load_cifar10(download=True)
    assert contents(cache) == []


@pytest.mark.parametrize("function", [os.system, print, np.load])
def test_an_archive_whose_pickles_call_anything_is_refused(function, cache, publish, small_cifar10):
    class Call:
        def __reduce__(self):
            return function, ("true",)

    batch = pickle.dumps(Call(), protocol=2)
    names = [name for names in BATCHES.values() for name in names]
    archive = tarball({f"cifar-10-batches-py/{name}": batch for name in names})
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    with pytest.raises(datasets.DatasetUnavailable, match="must not call"):
        datasets.load_cifar10(download=True)


def test_the_pickles_of_an_unverified_archive_are_never_opened(
    cache, server, publish, small_cifar10, monkeypatch
):
    archive = cifar10_tarball(small_cifar10)
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    server.behaviours["/0/cifar-10-python.tar.gz"] = [sends_other_bytes]
    monkeypatch.setitem(datasets._READERS, "cifar10", lambda files: pytest.fail("opened"))
    with pytest.raises(datasets.DatasetUnavailable, match="could not be downloaded"):
        datasets.load_cifar10(download=True)


def test_the_four_idx_files_of_mnist_become_the_arrays(cache, publish):
    rng = np.random.default_rng(3)
    parts = {
        "x_train": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, 6, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        "y_test": rng.integers(0, 10, 3, dtype=np.uint8),
    }
    files = dict(zip(PUBLISHED["mnist"]["downloads"], map(idx, parts.values()), strict=True))
    publish("mnist", parts, files)
    assert_same_images(datasets.load_mnist(download=True), datasets.ImageData(**parts))
    assert contents(cache) == ["mnist.npz"]
    assert_same_images(datasets.load_mnist(), datasets.ImageData(**parts))


def npy(array):
    raw = io.BytesIO()
    np.save(raw, array)
    return raw.getvalue()


@pytest.fixture
def small_votes(publish):
    parts = {
        "mnist_250_teachers": np.full((4, 10), 25.0),
        "svhn_250_teachers": np.full((5, 10), 25.0),
        "adult_250_teachers": np.full((4, 2), 125.0),
        "mnist_student_query_indices": np.arange(3),
        "mnist_250_student_labels_lap_20": np.arange(4, dtype=np.int32),
    }
    archive = {f"./{part}.npy": npy(parts[part]) for part in list(parts)[:3]}
    bodies = [tarball({"README": b"?", **archive}), *(npy(parts[part]) for part in list(parts)[3:])]
    files = dict(zip(PUBLISHED["pate_votes"]["downloads"], bodies, strict=True))
    publish("pate_votes", parts, files, hashed=False)
    return parts


def test_what_the_pate_authors_released_becomes_whole_numbers(cache, small_votes):
    for name, released in small_votes.items():
        votes = datasets.load_pate_votes(name, download=True)
        assert votes.dtype == np.int64
        np.testing.assert_array_equal(votes, released)
    assert contents(cache) == sorted(f"pate_votes/{name}.npy" for name in small_votes)


@pytest.mark.parametrize(
    "page",
    [b"<html>moved</html>", gzip.compress(b"x" * 999)[:-20], tarball({}), b""],
    # A compressed page carries the time, and parallel workers must agree on the names of tests.
    ids=["html", "truncated", "empty tar", "empty"],
)
def test_a_page_in_the_place_of_the_votes_is_refused(page, cache, server, small_votes):
    server.files["/0/votes.tar.gz"] = page
    with pytest.raises(datasets.DatasetUnavailable, match="not pate_votes as published"):
        datasets.load_pate_votes("mnist_250_teachers", download=True)
    assert contents(cache) == []


@pytest.mark.parametrize("file", PUBLISHED["pate_votes"]["downloads"])
def test_a_pickle_in_the_place_of_votes_is_never_opened(file, cache, server, small_votes, tmp_path):
    class Call:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "opened"),)

    hidden = npy(np.array([Call()], dtype=object))
    archived = tarball({"adult_250_teachers.npy": hidden})
    server.files[f"/0/{file}"] = archived if file.endswith(".gz") else hidden
    with pytest.raises(datasets.DatasetUnavailable, match="not pate_votes as published"):
        datasets.load_pate_votes("mnist_250_teachers", download=True)
    assert not (tmp_path / "opened").exists()


# Files that were there


def test_the_named_folder_comes_before_the_shipped_one_and_the_cache(
    cache, payload, tmp_path, monkeypatch
):
    folders = [tmp_path / "named", datasets._SHIPPED, cache]
    monkeypatch.setenv("DPNOTES_DATA", str(folders[0]))
    for folder in reversed(folders):
        (folder / "adult").mkdir(parents=True)
        (folder / "adult" / "blob").write_bytes(PAYLOAD)
        assert datasets.locate("adult") == folder / "adult"


@pytest.mark.parametrize("packed", [False, True])
def test_a_stand_in_under_a_real_name_is_refused(packed, cache, payload, tmp_path, monkeypatch):
    monkeypatch.setenv("DPNOTES_DATA", str(tmp_path))
    (tmp_path / "adult").mkdir()
    content = bz2.compress(PAYLOAD[::-1]) if packed else PAYLOAD[::-1]
    (tmp_path / "adult" / ("blob.bz2" if packed else "blob")).write_bytes(content)
    with pytest.raises(datasets.DatasetCorrupted, match=r"blob.*another SHA-256.*move it away"):
        fetch()


def test_a_stand_in_of_another_shape_or_type_is_refused(cache, publish, small_cifar10):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    flat = {name: value.reshape(len(value), -1) for name, value in small_cifar10._asdict().items()}
    signed = {name: value.view(np.int8) for name, value in small_cifar10._asdict().items()}
    for parts in (flat, signed):
        np.savez(cache / "cifar10.npz", **parts)
        with pytest.raises(datasets.DatasetCorrupted, match="dtype and shape"):
            datasets.load_cifar10()


@pytest.mark.parametrize("kept", [0, 10, 5000])
def test_a_truncated_archive_is_refused(kept, cache, publish, small_cifar10):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    raw = io.BytesIO()
    np.savez_compressed(raw, **small_cifar10._asdict())
    (cache / "cifar10.npz").write_bytes(raw.getvalue()[:kept])
    with pytest.raises(datasets.DatasetCorrupted, match=r"cifar10\.npz is not cifar10"):
        datasets.load_cifar10()


def test_an_archive_that_lacks_a_part_or_hides_a_pickle_is_refused(cache, publish, small_cifar10):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    np.savez(cache / "cifar10.npz", x_train=small_cifar10.x_train)
    with pytest.raises(datasets.DatasetCorrupted, match="y_train"):
        datasets.load_cifar10()
    np.savez(cache / "cifar10.npz", x_train=np.array([{}]))
    with pytest.raises(datasets.DatasetCorrupted, match="allow_pickle=False"):
        datasets.load_cifar10()


def with_header(header):
    """Return a file of numpy's format with this header and no data."""
    padded = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def zipped(**changes):
    """Return an archive of one part whose directory says other things of it than are true."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("x_train.npy", b"\x09\x04\x05\x00\x5d\x00\x00\x80\x00" + b"\xff" * 20)
        for name, value in changes.items():
            setattr(archive.filelist[0], name, value)
    return raw.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }"),
        with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % 2**70),
        with_header(b"((((("),
        zipped(compress_type=99),
        zipped(compress_type=zipfile.ZIP_LZMA),
        zipped(flag_bits=1),
    ],
    ids=["one array", "too large", "no header", "unknown packing", "wrong packing", "encrypted"],
)
def test_whatever_is_wrong_with_an_archive_it_is_called_corrupt(
    content, cache, publish, small_cifar10
):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    (cache / "cifar10.npz").write_bytes(content)
    with pytest.raises(datasets.DatasetCorrupted, match=r"cifar10\.npz is not cifar10"):
        datasets.load_cifar10()


def test_a_file_that_may_not_be_read_is_not_called_corrupt(cache, payload, monkeypatch):
    fetch()

    def refuse(path, *arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match="blob"):
        fetch()


def test_a_home_folder_may_be_named_by_a_tilde(cache, payload, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DPNOTES_DATA", "~/named")
    (tmp_path / "named" / "adult").mkdir(parents=True)
    (tmp_path / "named" / "adult" / "blob").write_bytes(PAYLOAD)
    assert datasets.locate("adult") == tmp_path / "named" / "adult"


def test_arrays_in_fortran_order_are_the_same_data(cache, small_votes):
    (cache / "pate_votes").mkdir(parents=True)
    for name, value in small_votes.items():
        np.save(cache / "pate_votes" / f"{name}.npy", np.asfortranarray(value))
    assert datasets.load_pate_votes("mnist_250_teachers").sum() == 1000


# What may be asked for


@pytest.mark.parametrize("split", ["validation", "", "Train"])
def test_a_split_that_is_none_is_refused(split):
    with pytest.raises(ValueError, match=r"split must be one of 'train', 'test', 'all'"):
        datasets.load_adult(split)


@pytest.mark.parametrize(
    ("classes", "error"),
    [
        ((), ValueError),
        ((10,), ValueError),
        ((-1, 3), ValueError),
        ((0.0,), TypeError),
        ((True,), TypeError),
    ],
)
def test_classes_that_are_none_are_refused(classes, error):
    with pytest.raises(error, match="classes must"):
        datasets.load_cifar10(classes)


def test_votes_that_nobody_cast_are_refused():
    with pytest.raises(ValueError, match="name must be one of 'mnist_250_teachers'"):
        datasets.load_pate_votes("../mnist")
    with pytest.raises(ValueError, match="name must be one of 'adult'"):
        datasets.locate("iris")


def test_results_are_read_by_name_and_never_by_path(cache):
    (datasets._SHIPPED / "results").mkdir(parents=True)
    (datasets._SHIPPED / "results" / "losses.json").write_text('{"seeds": [0, 1]}')
    assert datasets.load_results("losses") == {"seeds": [0, 1]}
    with pytest.raises(
        datasets.DatasetUnavailable, match=r"python -m dpnotes\.experiments\.teachers"
    ):
        datasets.load_results("teachers")
    for path in ("../results/losses", "losses.json", "", "/etc/passwd"):
        with pytest.raises(ValueError, match="letters, digits and underscores"):
            datasets.load_results(path)


# The command


def test_the_bare_command_shows_what_is_there_and_how_to_fetch_the_rest(
    cache, publish, capsys, monkeypatch, tmp_path
):
    publish("adult", {"blob": PAYLOAD}, {"blob": PAYLOAD})
    publish("mnist", {}, {})
    publish("cifar10", {"x_train": PAYLOAD}, {})
    monkeypatch.setitem(datasets._catalogue(), "mnist", PUBLISHED["mnist"])
    (cache / "adult").mkdir(parents=True)
    (cache / "adult" / "blob").write_bytes(PAYLOAD)
    assert datasets.main([]) == 0
    shown = capsys.readouterr().out
    assert str(cache / "adult") in shown
    assert "absent; fetch it with: python -m dpnotes.datasets mnist" in shown
    assert "CC BY 4.0" in shown


def test_the_command_fetches_with_a_progress_bar(cache, payload, capsys):
    assert datasets.main(["adult"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"adult is there, verified: {cache / 'adult'}\n"
    assert "100%" in printed.err


def test_the_command_writes_a_pair_of_classes_to_one_small_file(
    cache, publish, small_cifar10, tmp_path, capsys
):
    archive = cifar10_tarball(small_cifar10)
    publish("cifar10", small_cifar10._asdict(), {"cifar-10-python.tar.gz": archive})
    out = tmp_path / "new" / "pair.npz"
    assert datasets.main(["cifar10", "--classes", "0", "7", "--out", str(out)]) == 0
    with np.load(out, allow_pickle=False) as pair:
        assert_same_images(datasets.ImageData(**pair), datasets.load_cifar10((0, 7)))
    assert os.listdir(out.parent) == ["pair.npz"]


def test_the_command_writes_all_of_mnist_too(cache, publish, tmp_path):
    parts = {field: np.zeros(3, np.uint8) for field in datasets.ImageData._fields}
    publish("mnist", parts, {})
    cache.mkdir()
    np.savez(cache / "mnist.npz", **parts)
    assert datasets.main(["mnist", "--out", str(tmp_path / "all.npz")]) == 0
    assert_same_images(
        datasets.ImageData(**np.load(tmp_path / "all.npz")), datasets.ImageData(**parts)
    )


def test_the_command_says_what_went_wrong_in_a_sentence(cache, server, payload, capsys):
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [is_unavailable]
    assert datasets.main(["adult"]) == 1
    assert "blob could not be downloaded; run this again to go on." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["iris"], ["mnist", "--classes", "0"], ["adult", "--out", "x"], ["--out", "x"]]
)
def test_the_command_refuses_what_makes_no_sense(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        datasets.main(arguments)
    assert caught.value.code == 2


# What is in git, in the wheel and in the catalogue


def run(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **options
    ).stdout.split()


def test_importing_the_loaders_is_quick():
    heavy = {"torch", "joblib", "pandas", "pooch", "requests", "tqdm", "filelock", "sklearn"}
    loaded = run("import sys, dpnotes.datasets; print(*sys.modules)", cwd=ROOT)
    assert "dpnotes.datasets" in loaded
    assert not heavy & set(loaded)


def test_an_installed_package_carries_its_data_within(tmp_path):
    package = tmp_path / "site" / "dpnotes"
    shutil.copytree(ROOT / "dpnotes", package)
    shutil.copytree(datasets._SHIPPED, package / "data", dirs_exist_ok=True)
    environment = dict(os.environ, PYTHONPATH=str(package.parent))
    environment.pop("DPNOTES_DATA", None)
    code = "from dpnotes import datasets as d; print(d.locate('adult'), len(d.load_adult('all')))"
    assert run(code, cwd=tmp_path, env=environment) == [str(package / "data" / "adult"), "48842"]


def test_the_module_is_a_command():
    command = [sys.executable, "-W", "error", "-m", "dpnotes.datasets", "adult"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith("adult is there, verified: ")


def test_downloads_go_to_a_folder_of_the_user():
    folder = list(datasets._folders())[-1]
    assert "dpnotes" in folder.parts
    assert Path.home() in folder.parents or "XDG_CACHE_HOME" in os.environ


def test_the_catalogue_says_whose_the_data_is_and_how_it_is_checked():
    for entry in PUBLISHED.values():
        assert all(entry[key] for key in ("title", "licence", "home", "citation", "path"))
        for record in (*entry["parts"].values(), *entry["downloads"].values()):
            assert len(bytes.fromhex(record.get("sha256", "00" * 32))) == 32
        for source in entry["downloads"].values():
            assert source["urls"]
            assert all(url.startswith(("https://", "http://")) for url in source["urls"])
    assert set(PUBLISHED) == set(datasets._READERS)


def test_the_throttled_host_of_cifar10_comes_last():
    [source] = PUBLISHED["cifar10"]["downloads"].values()
    assert [("toronto" in url) for url in source["urls"]] == [False] * 4 + [True]


@pytest.mark.parametrize("file", ["adult.data", "adult.test"])
def test_adult_in_git_is_reproducible_from_the_published_file(file):
    path = datasets._SHIPPED / "adult" / f"{file}.bz2"
    content = bz2.decompress(path.read_bytes())
    assert sha256(content) == PUBLISHED["adult"]["parts"][file]["sha256"]
    assert bz2.compress(content, 9) == path.read_bytes()


# The real data

INTEGERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


@pytest.mark.parametrize(("split", "rows"), [("train", 32_561), ("test", 16_281), ("all", 48_842)])
def test_adult_has_its_rows_and_columns(split, rows):
    adult = datasets.load_adult(split)
    assert adult.shape == (rows, 15)
    assert list(adult.index[[0, -1]]) == [0, rows - 1]
    assert list(adult.select_dtypes("integer")) == INTEGERS
    assert list(adult.select_dtypes("bool")) == ["income"]
    assert all(isinstance(value, str) for value in adult["native_country"].dropna())
    assert not any(value.strip() != value for value in adult["occupation"].dropna())


def test_the_missing_answers_of_adult_are_na():
    train, test = datasets.load_adult("train"), datasets.load_adult("test")
    missing = {"workclass": (1836, 963), "occupation": (1843, 966), "native_country": (583, 274)}
    for column in train:
        expected = missing.get(column, (0, 0))
        assert (train[column].isna().sum(), test[column].isna().sum()) == expected
    # The 30,162 + 15,060 complete rows are those that adult.names announces.
    assert (len(train.dropna()), len(test.dropna())) == (30_162, 15_060)


def test_the_counts_of_adult_are_the_known_ones():
    train, test = datasets.load_adult(), datasets.load_adult("test")
    assert train["occupation"].nunique() == 14
    assert (train["occupation"] == "Sales").sum() == 3650
    assert (train["income"].sum(), test["income"].sum()) == (7841, 3846)
    assert train["sex"].value_counts().to_dict() == {"Male": 21_790, "Female": 10_771}
    assert train.iloc[0]["age"] == 39
    assert test.iloc[0]["age"] == 25


def test_all_of_adult_is_train_then_test():
    parts = [datasets.load_adult("train"), datasets.load_adult("test")]
    pd.testing.assert_frame_equal(datasets.load_adult("all"), pd.concat(parts, ignore_index=True))


@pytest.fixture
def present():
    """Skip where a data set is absent; in CI, where DPNOTES_DATA names it, that is a failure."""

    def present(name):
        if datasets.locate(name) is None:
            reason = f"{name} is absent; fetch it with: python -m dpnotes.datasets {name}"
            required = os.environ.get("CI") == "true" and "DPNOTES_DATA" in os.environ
            pytest.fail(reason) if required else pytest.skip(reason)

    return present


def test_mnist_is_the_published_one(present):
    present("mnist")
    images = datasets.load_mnist()
    assert images.x_train.shape == (60_000, 28, 28)
    assert images.x_test.shape == (10_000, 28, 28)
    assert list(images.y_train[:5]) == [5, 0, 4, 1, 9]
    assert list(images.y_test[:5]) == [7, 2, 1, 0, 4]
    # The mean of a training pixel that many an MNIST program normalises with.
    assert round(images.x_train.mean() / 255, 4) == 0.1307


def test_mnist_survives_the_way_through_its_idx_files(present, tmp_path):
    present("mnist")
    images = datasets.load_mnist()
    files = {}
    for field, array in images._asdict().items():
        files[field] = tmp_path / field
        files[field].write_bytes(idx(array))
    assert_same_images(datasets.ImageData(**datasets._read_mnist(files)), images)


def test_cifar10_is_the_published_one(present):
    present("cifar10")
    images = datasets.load_cifar10()
    assert images.x_train.shape == (50_000, 32, 32, 3)
    assert list(np.bincount(images.y_train)) == [5000] * 10
    assert list(np.bincount(images.y_test)) == [1000] * 10
    # The mean of each colour that many a CIFAR-10 program normalises with.
    means = images.x_train.mean(axis=(0, 1, 2), dtype=float) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-5)


def test_airplanes_and_horses_are_ten_thousand_and_two_thousand(present):
    present("cifar10")
    pair = datasets.load_cifar10(classes=(0, 7))
    assert pair.x_train.shape == (10_000, 32, 32, 3)
    assert pair.x_test.shape == (2_000, 32, 32, 3)
    assert set(pair.y_train) == set(pair.y_test) == {0, 7}


def test_cifar10_in_any_order_is_put_into_the_normalised_one(present, tmp_path):
    present("cifar10")
    images = datasets.load_cifar10()
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(cifar10_tarball(images, mode="w"))
    parts = datasets._read_cifar10({"archive": path})
    path.unlink()
    assert_same_images(datasets.ImageData(**parts), images)


def test_the_votes_are_those_of_250_teachers(present):
    present("pate_votes")
    digits = datasets.load_pate_votes("mnist_250_teachers")
    houses = datasets.load_pate_votes("svhn_250_teachers")
    incomes = datasets.load_pate_votes("adult_250_teachers")
    assert [votes.shape for votes in (digits, houses, incomes)] == [
        (9000, 10),
        (26_032, 10),
        (16_281, 2),
    ]
    assert all(set(votes.sum(axis=1)) == {250} for votes in (digits, houses, incomes))
    queries = datasets.load_pate_votes("mnist_student_query_indices")
    labels = datasets.load_pate_votes("mnist_250_student_labels_lap_20")
    assert queries.shape == (100,)
    assert len(set(queries)) == 100
    assert round((labels == digits.argmax(axis=1)).mean(), 3) == 0.969


def test_the_votes_agree_with_the_true_labels(present):
    present("mnist")
    present("pate_votes")
    truth = datasets.load_mnist().y_test[:9000]
    assert (datasets.load_pate_votes("mnist_250_teachers").argmax(axis=1) == truth).mean() > 0.9
    incomes = datasets.load_adult("test")["income"]
    assert (datasets.load_pate_votes("adult_250_teachers").argmax(axis=1) == incomes).mean() > 0.8
