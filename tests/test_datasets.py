"""The data is the published data, or there is none: on any disk and over any line."""

import bz2
import errno
import gzip
import hashlib
import importlib
import io
import json
import os
import pickle
import runpy
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpnotes import datasets
from dpnotes.datasets import _formats, _mirrors

ROOT = Path(datasets.__file__).parents[2]
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


def waits_to_be_released(handler, body):
    handler.server.released.wait(30)
    handler.reply(200, body)


def drips(handler, body, start=0):
    handler.reply(200, body, sent=start)
    for i in range(start, start + 300):
        if handler.server.released.wait(0.01):
            return
        handler.wfile.write(body[i : i + 1])


def drips_in_the_end(handler, body):
    drips(handler, body, start=len(body) // 2)


def never_ends(handler, body):
    """Send the file and then zeros, 32 MB of them, without a word about their number."""
    handler.reply(200, body, {"Content-Length": None})
    for _ in range(512):
        handler.wfile.write(bytes(1 << 16))
        handler.server.surplus += 1 << 16


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        with server.guard:
            server.requests[self.path].append(self.headers.get("Range"))
            script = server.behaviours[self.path]
            behave = script.pop(0) if len(script) > 1 else script[0]
        # A client that has had enough hangs up.
        with suppress(ConnectionError):
            behave(self, server.files[self.path])

    def reply(self, status, body, headers=None, sent=None):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **(headers or {})}.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.wfile.flush()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.guard, server.surplus = {}, threading.Lock(), 0
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
    monkeypatch.setattr(_mirrors, "_PAUSE", 0.0)
    monkeypatch.setattr(_mirrors, "_TIMEOUT", (5, 0.3))
    return folder


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def describe(value):
    if isinstance(value, bytes):
        return {"size": len(value), "sha256": sha256(value)}
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

    def publish(name, parts, files, *, mirrors=1, members=None):
        entry = PUBLISHED[name] | {"downloads": {}}
        entry["parts"] = {part: describe(value) for part, value in parts.items()}
        for file, content in files.items():
            source = {"urls": [f"{server.url}/{mirror}/{file}" for mirror in range(mirrors)]}
            known = PUBLISHED[name]["downloads"].get(file, {})
            if "members" in known:
                source |= {"at_most": 10_000, "unpacked_at_most": 100_000}
                source["members"] = {member: describe(raw) for member, raw in members.items()}
            else:
                source |= describe(content) | {"part": known.get("part", file)}
            entry["downloads"][file] = source
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
    server.behaviours["/0/blob"] = [first, serves]
    server.behaviours["/1/blob"] = [first, serves]
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


@pytest.mark.parametrize("announced", [{}, {"Content-Length": None}], ids=["length", "no length"])
def test_a_part_that_begins_elsewhere_is_not_appended(announced, cache, server, payload):
    def sends_another_part(handler, body):
        handler.reply(
            206, body, {"Content-Range": f"bytes 0-{len(body) - 1}/{len(body)}"} | announced
        )

    server.behaviours["/0/blob"] = [breaks_off]
    server.behaviours["/1/blob"] = [sends_another_part]
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
    assert fetch() == PAYLOAD
    assert not server.requests


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
    monkeypatch.setattr(_mirrors, "_ROUNDS", 2)
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
    monkeypatch.setattr(_mirrors, "_PAUSE", 1.0)
    monkeypatch.setattr(_mirrors.time, "sleep", pauses.append)
    with pytest.raises(datasets.DatasetUnavailable):
        fetch()
    assert pauses == [0, 1, 2, 4, 8]


# Every header that a server may get wrong, and what is not HTTP at all.
GARBLED = {
    "length abc": {"Content-Length": "abc"},
    "length negative": {"Content-Length": "-1"},
    "length unreadable": {"Content-Length": "9" * 5000},
    "length too long": {"Content-Length": len(PAYLOAD) + 1},
    "length too short": {"Content-Length": len(PAYLOAD) - 1},
    "lengths that differ": {"Content-Length": f"{len(PAYLOAD)}, 7"},
    "packed": {"Content-Encoding": "gzip"},
    "in chunks": {"Content-Length": None, "Transfer-Encoding": "chunked"},
    "a long header": {"Note": "x" * 70_000},
    "many headers": {f"Note-{i}": "x" for i in range(200)},
}
REDIRECTS = ["http://[::1", "http://..", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://\xff/"]


def garbled(words):
    if isinstance(words, dict):
        return lambda handler, body: handler.reply(200, bytes(len(body)), words)
    if isinstance(words, str):
        return lambda handler, body: handler.reply(302, b"", {"Location": words})
    return lambda handler, body: handler.wfile.write(words)


@pytest.mark.parametrize(
    "words",
    [*GARBLED.values(), *REDIRECTS, b"HTTP/9.9 what\r\n\r\n", b"\xff\xfe", b""],
    ids=[*GARBLED, *REDIRECTS, "another protocol", "noise", "silence"],
)
def test_a_garbled_answer_moves_on_to_the_next_mirror(words, cache, server, payload, monkeypatch):
    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/blob"] = [garbled(words)]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [None]


def test_a_mirror_that_ends_early_without_a_word_is_gone_on_from(
    cache, server, payload, monkeypatch
):
    def falls_silent(handler, body):
        handler.reply(200, body, {"Content-Length": None}, sent=len(body) // 2)

    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/blob"] = [falls_silent]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [f"bytes={len(PAYLOAD) // 2}-"]
    shutil.rmtree(cache)
    server.behaviours["/1/blob"] = [falls_silent]
    with pytest.raises(datasets.DatasetUnavailable, match=r"/1/blob: broke off 131072 bytes"):
        fetch()


def test_a_mirror_that_spoils_what_another_goes_on_from_does_not_spoil_the_other(
    cache, server, payload, monkeypatch
):
    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/blob"] = [sends_other_bytes_then_breaks_off]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [f"bytes={len(PAYLOAD) // 2}-", None]


def test_a_page_in_place_of_the_rest_leaves_what_is_held(cache, server, payload):
    server.behaviours["/0/blob"] = [breaks_off, garbled({"Content-Length": 7})]
    server.behaviours["/1/blob"] = [garbled({"Content-Length": 7}), serves]
    assert fetch() == PAYLOAD
    assert server.requests["/1/blob"] == [f"bytes={len(PAYLOAD) // 2}-"] * 2


@pytest.mark.parametrize(
    ("fault", "start"), [(drips, 0), (drips_in_the_end, len(PAYLOAD) // 2)], ids=["all", "the end"]
)
def test_a_mirror_that_drips_is_given_up_and_its_bytes_are_kept(
    fault, start, cache, server, payload, monkeypatch
):
    monkeypatch.setattr(_mirrors, "_WINDOW", 0.2)
    monkeypatch.setattr(_mirrors, "_LEAST", 40_000)
    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [fault]
    with pytest.raises(datasets.DatasetUnavailable, match=r"sent fewer than 40000 bytes in 0\.2"):
        fetch()
    server.behaviours["/1/blob"] = [serves]
    assert fetch() == PAYLOAD
    for asked in server.requests["/1/blob"]:
        assert start + 5 < int(asked.removeprefix("bytes=").removesuffix("-")) < start + 200


def test_a_mirror_that_is_slow_but_not_too_slow_is_heard_out(cache, server, payload, monkeypatch):
    def walks(handler, body):
        handler.reply(200, body, sent=0)
        for start in range(0, len(body), 1 << 15):
            time.sleep(0.06)
            handler.wfile.write(body[start : start + (1 << 15)])

    monkeypatch.setattr(_mirrors, "_WINDOW", 0.3)
    monkeypatch.setattr(_mirrors, "_LEAST", 40_000)
    server.behaviours["/0/blob"] = [walks]
    assert fetch() == PAYLOAD
    assert server.requests == {"/0/blob": [None]}


def sizes_of_downloads(monkeypatch):
    """Return the list that every finished download will add its size to."""
    sizes, fault = [], _mirrors._fault

    def noted(partial, source):
        sizes.append(partial.stat().st_size if partial.exists() else 0)
        return fault(partial, source)

    monkeypatch.setattr(_mirrors, "_fault", noted)
    return sizes


def test_no_byte_beyond_the_published_size_is_stored(cache, server, payload, monkeypatch):
    sizes = sizes_of_downloads(monkeypatch)
    server.behaviours["/0/blob"] = [never_ends]
    assert fetch() == PAYLOAD
    assert max(sizes) == len(PAYLOAD)
    assert server.surplus < 1 << 24


def test_what_is_packed_a_thousandfold_is_not_unpacked_beyond_the_size(
    cache, server, payload, monkeypatch
):
    bomb = gzip.compress(bytes(1 << 25), 1)

    def packs(handler, body):
        handler.reply(200, bomb, {"Content-Encoding": "gzip"})

    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    sizes = sizes_of_downloads(monkeypatch)
    server.behaviours["/0/blob"] = [packs]
    with at_most_memory(1 << 23):
        assert fetch() == PAYLOAD
    assert max(sizes) == len(PAYLOAD)


@contextmanager
def at_most_memory(limit):
    for used in ("pooch", "requests", "tqdm"):  # they take memory of their own
        importlib.import_module(used)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def test_a_server_does_not_write_to_the_terminal(cache, server, payload, monkeypatch):
    def paints(handler, body):
        handler.wfile.write(b"HTTP/1.0 503 \x1b[31mred\x07 alert\r\n\r\n")

    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/blob"] = server.behaviours["/1/blob"] = [paints]
    with pytest.raises(datasets.DatasetUnavailable, match="503") as caught:
        fetch()
    assert all(line.isprintable() for line in str(caught.value).split("\n"))


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


def test_a_cache_that_fills_up_while_storing_keeps_what_was_downloaded(
    cache, server, payload, monkeypatch
):
    def full(path, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            fetch()
    assert contents(cache) == ["blob.part"]
    server.requests.clear()
    assert fetch() == PAYLOAD
    assert not server.requests
    assert contents(cache) == ["adult/blob"]


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
        "import pooch, requests, tqdm; print(end='!', flush=True)\n"
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
    server.behaviours["/0/blob"] = [waits_to_be_released]
    processes = [elsewhere(payload, cache) for _ in range(2)]
    assert [process.stdout.read(1) for process in processes] == [b"!", b"!"]
    time.sleep(0.1)
    server.released.set()
    assert [process.communicate(timeout=60)[0] for process in processes] == [PAYLOAD, PAYLOAD]
    assert server.requests == {"/0/blob": [None]}
    assert contents(cache) == ["adult/blob"]


def test_two_threads_at_once_fetch_it_once_and_both_have_it(cache, server, payload, monkeypatch):
    monkeypatch.setattr(_mirrors, "_TIMEOUT", (5, 30))
    server.behaviours["/0/blob"] = [waits_to_be_released]
    with ThreadPoolExecutor(2) as pool:
        fetched = [pool.submit(fetch) for _ in range(2)]
        time.sleep(0.1)
        server.released.set()
        assert [future.result() for future in fetched] == [PAYLOAD, PAYLOAD]
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
    monkeypatch.setitem(_formats.READERS, "cifar10", lambda *given: pytest.fail("opened"))
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
    members = {f"{part}.npy": npy(parts[part]) for part in list(parts)[:3]}
    archive = {f"./{name}": content for name, content in members.items()}
    bodies = [tarball({"README": b"?", **archive}), *(npy(parts[part]) for part in list(parts)[3:])]
    files = dict(zip(PUBLISHED["pate_votes"]["downloads"], bodies, strict=True))
    publish("pate_votes", parts, files, mirrors=2, members=members)
    return parts


def test_what_the_pate_authors_released_becomes_whole_numbers(cache, small_votes):
    for name, released in small_votes.items():
        votes = datasets.load_pate_votes(name, download=True)
        assert votes.dtype == np.int64
        np.testing.assert_array_equal(votes, released)
    assert contents(cache) == sorted(f"pate_votes/{name}.npy" for name in small_votes)


def header(name, size, kind=tarfile.REGTYPE):
    """Return the head of a file in a tar archive, in the format that has sizes below zero, too."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def packed(head, zeros):
    return gzip.compress(head + bytes(zeros), 1)


def votes_archive(first, *, before=b""):
    """Return an archive of all votes, whose first may be others, after some other heads."""
    votes = {"mnist": np.full((4, 10), first), "svhn": np.full((5, 10), 25.0)}
    votes |= {"adult": np.full((4, 2), 125.0)}
    members = {f"{name}_250_teachers.npy": npy(array) for name, array in votes.items()}
    return gzip.compress(before + tarball(members, mode="w"), 1)


VOTES = "mnist_250_teachers.npy"
ENDLESS = 1 << 23  # zeros, which pack well
# Made when they are needed: parallel workers all read this file.
PAGES = {
    "html": lambda: b"<html>moved</html>",
    "empty": lambda: b"",
    "truncated": lambda: gzip.compress(b"x" * 999)[:-20],
    "spoiled": lambda: gzip.compress(b"x" * 999)[:-8] + b"spoiled!",
    "empty tar": lambda: tarball({}),
    "no tar": lambda: gzip.compress(b"x" * 1024),
    "other votes": lambda: votes_archive(24.0),
    "votes behind too many empty files": lambda: votes_archive(25.0, before=header("x", 0) * 200),
    "endless": lambda: packed(header("large", ENDLESS), ENDLESS),
    "endless votes": lambda: packed(header(VOTES, ENDLESS), ENDLESS),
    "endless name": lambda: packed(header("x", ENDLESS, tarfile.GNUTYPE_LONGNAME), ENDLESS),
    "endless notes": lambda: packed(header("x", ENDLESS, tarfile.XHDTYPE), ENDLESS),
    "going back": lambda: packed(header("x", -512), 1024),
    "cut short": lambda: packed(header(VOTES, len(npy(np.full((4, 10), 25.0)))), 9),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_in_the_place_of_the_votes_moves_on_to_the_next_mirror(
    page, cache, server, small_votes, monkeypatch
):
    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    for source in datasets._catalogue()["pate_votes"]["downloads"].values():
        source["at_most"] = 100_000
    server.files["/0/votes.tar.gz"] = page()
    with at_most_memory(1 << 22):
        assert datasets.load_pate_votes("mnist_250_teachers", download=True).sum() == 1000
    server.files["/1/votes.tar.gz"] = page()
    shutil.rmtree(cache)
    with pytest.raises(datasets.DatasetUnavailable) as caught:
        datasets.load_pate_votes("mnist_250_teachers", download=True)
    assert "/0/votes.tar.gz" in str(caught.value)
    assert "/1/votes.tar.gz" in str(caught.value)
    assert contents(cache) == []


def test_the_votes_may_stand_behind_others_in_their_archive(cache, server, small_votes):
    server.files["/0/votes.tar.gz"] = votes_archive(25.0, before=header("x", 0) * 20)
    assert datasets.load_pate_votes("mnist_250_teachers", download=True).sum() == 1000
    assert "/1/votes.tar.gz" not in server.requests


def test_no_byte_beyond_the_stated_bound_is_stored_where_no_size_is_known(
    cache, server, small_votes, monkeypatch
):
    sizes = sizes_of_downloads(monkeypatch)
    monkeypatch.setattr(_mirrors, "_ROUNDS", 1)
    server.behaviours["/0/votes.tar.gz"] = [never_ends]
    server.files["/0/votes.tar.gz"] = b"no archive"
    assert datasets.load_pate_votes("mnist_250_teachers", download=True).sum() == 1000
    assert max(sizes) == 10_000
    assert server.surplus < 1 << 24


def test_a_broken_archive_of_unknown_size_is_fetched_from_its_first_byte(
    cache, server, small_votes
):
    server.behaviours["/0/votes.tar.gz"] = [breaks_off]
    assert datasets.load_pate_votes("mnist_250_teachers", download=True).sum() == 1000
    assert server.requests["/1/votes.tar.gz"] == [None]


@pytest.mark.parametrize("file", PUBLISHED["pate_votes"]["downloads"])
def test_a_pickle_in_the_place_of_votes_is_never_opened(file, cache, server, small_votes, tmp_path):
    class Call:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "opened"),)

    hidden = npy(np.array([Call()], dtype=object))
    archived = tarball({"adult_250_teachers.npy": hidden})
    for mirror in range(2):
        server.files[f"/{mirror}/{file}"] = archived if file.endswith(".gz") else hidden
    with pytest.raises(datasets.DatasetUnavailable, match="could not be downloaded") as caught:
        datasets.load_pate_votes("mnist_250_teachers", download=True)
    assert "allow_pickle" not in str(caught.value)
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
    with pytest.raises(datasets.DatasetCorrupted, match=r"another dtype and shape: \('object'"):
        datasets.load_cifar10()


def with_header(header, version=1):
    """Return a file of numpy's format with this header and no data."""
    padded = header.ljust(117) + b"\n"
    length = len(padded).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + padded


HEADER = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }"
LZMA = b"\x09\x04\x05\x00\x5d\x00\x00\x80\x00" + b"\xff" * 20


def zipped(content=LZMA, **changes):
    """Return an archive of one part whose directory says other things of it than are true."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x_train.npy", content)
        for name, value in changes.items():
            setattr(archive.filelist[0], name, value)
    return raw.getvalue()


BOMBS = {
    "one array": lambda: with_header(HEADER % 0),
    "too large": lambda: zipped(with_header(HEADER % 2**70)),
    "too large for memory": lambda: zipped(with_header(HEADER % 2**62)),
    "larger than it should be": lambda: zipped(with_header(HEADER % ENDLESS) + bytes(ENDLESS)),
    "no header": lambda: zipped(with_header(b"(((((")),
    "a deep header": lambda: zipped(with_header(b"(" * 1000)),
    "a deeper header": lambda: zipped(with_header(b"-" * 9000 + b"1")),
    "a long header": lambda: zipped(with_header(b" " * 60_000)),
    "a header without end": lambda: zipped(with_header(b" " * ENDLESS, version=2)),
    "no magic": lambda: zipped(bytes(ENDLESS)),
    "unknown packing": lambda: zipped(compress_type=99),
    "wrong packing": lambda: zipped(compress_type=zipfile.ZIP_LZMA),
    "encrypted": lambda: zipped(flag_bits=1),
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_whatever_is_wrong_with_an_archive_it_is_called_corrupt_and_takes_no_memory(
    content, cache, publish, small_cifar10
):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    (cache / "cifar10.npz").write_bytes(content())
    with (
        at_most_memory(1 << 22),
        pytest.raises(datasets.DatasetCorrupted, match=r"cifar10\.npz is not cifar10") as caught,
    ):
        datasets.load_cifar10()
    assert "allow_pickle" not in str(caught.value)


def test_a_packed_file_is_not_unpacked_beyond_its_size(cache, payload):
    (cache / "adult").mkdir(parents=True)
    (cache / "adult" / "blob.bz2").write_bytes(bz2.compress(bytes(ENDLESS), 1))
    with at_most_memory(1 << 22), pytest.raises(datasets.DatasetCorrupted, match="another SHA-256"):
        fetch()


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_with_a_byte_too_many_is_refused(packed, cache, payload):
    longer = PAYLOAD + b"!"
    (cache / "adult").mkdir(parents=True)
    path = cache / "adult" / ("blob.bz2" if packed else "blob")
    path.write_bytes(bz2.compress(longer) if packed else longer)
    with pytest.raises(datasets.DatasetCorrupted, match="another SHA-256"):
        fetch()


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_archive_packed_as_numpy_never_packs_is_not_unpacked(
    packing, cache, publish, small_cifar10
):
    publish("cifar10", small_cifar10._asdict(), {})
    cache.mkdir()
    with zipfile.ZipFile(cache / "cifar10.npz", "w", packing) as archive:
        for part, value in small_cifar10._asdict().items():
            archive.writestr(f"{part}.npy", npy(value))
    with pytest.raises(datasets.DatasetCorrupted, match="x_train is packed in a way"):
        datasets.load_cifar10()


@pytest.mark.parametrize("file", ["blob", "blob.bz2"])
def test_a_file_of_far_too_many_bytes_is_not_read(file, cache, payload):
    (cache / "adult").mkdir(parents=True)
    with (cache / "adult" / file).open("wb") as large:
        large.truncate(1 << 33)
    with at_most_memory(1 << 20), pytest.raises(datasets.DatasetCorrupted, match="far too large"):
        fetch()


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
        (7, TypeError),
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
    with pytest.raises(TypeError, match="name must be a string, got NoneType"):
        datasets.load_results(None)


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


@pytest.fixture
def small_mnist(cache, publish):
    parts = {field: np.zeros(3, np.uint8) for field in datasets.ImageData._fields}
    publish("mnist", parts, {})
    cache.mkdir()
    np.savez(cache / "mnist.npz", **parts)


def test_the_command_writes_all_of_mnist_too(small_mnist, tmp_path):
    assert datasets.main(["mnist", "--out", str(tmp_path / "all.npz")]) == 0
    assert_same_images(datasets.ImageData(**np.load(tmp_path / "all.npz")), datasets.load_mnist())


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe", "device"])
def test_the_command_replaces_nothing_but_a_plain_file(kind, small_mnist, tmp_path, capsys):
    out, target = tmp_path / "out.npz", tmp_path / "target"
    if kind == "link":
        target.write_text("mine")
        out.symlink_to(target)
    if kind == "dangling link":
        out.symlink_to(target)
    if kind == "folder":
        out.mkdir()
    if kind == "pipe":
        os.mkfifo(out)
    if kind == "device":
        out = Path(os.devnull)
    before = out.lstat()
    assert datasets.main(["mnist", "--out", str(out)]) == 1
    assert "--out must name a plain file" in capsys.readouterr().err
    assert out.lstat() == before
    assert not target.exists() or target.read_text() == "mine"


def test_the_command_replaces_an_older_file_only_when_the_new_one_is_whole(
    small_mnist, tmp_path, monkeypatch
):
    def breaks_half_way(file, **arrays):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "out.npz"
    out.write_text("older")
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", breaks_half_way)
        assert datasets.main(["mnist", "--out", str(out)]) == 1
    assert out.read_text() == "older"
    assert [path.name for path in tmp_path.glob("out*")] == ["out.npz"]
    assert datasets.main(["mnist", "--out", str(out)]) == 0
    assert np.load(out)["y_test"].size == 3


def test_a_link_laid_in_the_place_of_a_draft_is_not_followed(small_mnist, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f"out.npz.{os.getpid()}-00000000.tmp").symlink_to(victim)
    assert datasets.main(["mnist", "--out", str(tmp_path / "out.npz")]) == 1
    assert victim.read_text() == "mine"


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


def test_the_module_is_a_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dpnotes.datasets", "adult"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("dpnotes.datasets", run_name="__main__", alter_sys=True)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("adult is there, verified: ")


def test_downloads_go_to_a_folder_of_the_user():
    folder = list(datasets._folders())[-1]
    assert "dpnotes" in folder.parts
    assert Path.home() in folder.parents or "XDG_CACHE_HOME" in os.environ


def test_the_catalogue_says_whose_the_data_is():
    for name, entry in PUBLISHED.items():
        wanted = ("title", "licence", "home", "citation", "path", "parts", "downloads")
        missing = [key for key in wanted if not entry.get(key)]
        assert not missing, f"{name} in data/datasets.toml needs {', '.join(missing)}"
        for source in entry["downloads"].values():
            assert source["urls"]
            assert all(url.startswith(("https://", "http://")) for url in source["urls"])
    words = "each data set in data/datasets.toml needs a reader in READERS of _formats.py"
    assert set(PUBLISHED) == set(_formats.READERS), words


def test_everything_that_is_read_has_a_hash_and_a_size():
    for entry in PUBLISHED.values():
        sources = entry["downloads"].values()
        members = [member for source in sources for member in source.get("members", {}).values()]
        whole = [source for source in sources if "members" not in source]
        for record in (*entry["parts"].values(), *whole, *members):
            assert len(bytes.fromhex(record["sha256"])) == 32
            assert 0 < _formats.size_of(record) < 200_000_000
        for source in sources:
            assert {"size", "sha256"} < set(source) or {"at_most", "unpacked_at_most"} < set(source)


def test_the_hashes_of_the_released_votes_are_those_of_their_files(present):
    present("pate_votes")
    sources = PUBLISHED["pate_votes"]["downloads"]
    known = sources["votes.tar.gz"]["members"]
    known |= {f"{source['part']}.npy": source for source in sources.values() if "part" in source}
    for name, expected in known.items():
        released = datasets._find("pate_votes", name.removesuffix(".npy")).read_bytes()
        # A cache holds what numpy writes today, with a longer head than the authors' numpy wrote.
        if len(released) == expected["size"]:
            assert sha256(released) == expected["sha256"]
    assert len(known) == len(PUBLISHED["pate_votes"]["parts"])


def test_the_throttled_host_of_cifar10_comes_last():
    [source] = PUBLISHED["cifar10"]["downloads"].values()
    assert [("toronto" in url) for url in source["urls"]] == [False] * 4 + [True]


def test_adult_in_git_holds_the_published_files_and_is_reproducible_from_them():
    for file in ("adult.data", "adult.test"):
        packed = (datasets._SHIPPED / "adult" / f"{file}.bz2").read_bytes()
        content = bz2.decompress(packed)
        assert sha256(content) == PUBLISHED["adult"]["parts"][file]["sha256"]
    assert bz2.compress(content, 9) == packed


# The real data

SPLITS = {"train": 32_561, "test": 16_281, "all": 48_842}
INTEGERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


@pytest.fixture(scope="module")
def adult():
    return {split: datasets.load_adult(split) for split in SPLITS}


@pytest.mark.parametrize("split", SPLITS)
def test_adult_has_its_rows_and_columns(split, adult):
    people, rows = adult[split], SPLITS[split]
    assert people.shape == (rows, 15)
    assert list(people.index[[0, -1]]) == [0, rows - 1]
    assert list(people.select_dtypes("integer")) == INTEGERS
    assert list(people.select_dtypes("bool")) == ["income"]
    assert all(isinstance(value, str) for value in people["native_country"].dropna())
    assert not any(value.strip() != value for value in people["occupation"].dropna())


def test_adult_is_its_training_rows_unless_another_split_is_asked_for(adult):
    pd.testing.assert_frame_equal(datasets.load_adult(), adult["train"])


def test_the_missing_answers_of_adult_are_na(adult):
    train, test = adult["train"], adult["test"]
    missing = {"workclass": (1836, 963), "occupation": (1843, 966), "native_country": (583, 274)}
    for column in train:
        expected = missing.get(column, (0, 0))
        assert (train[column].isna().sum(), test[column].isna().sum()) == expected
    # The 30,162 + 15,060 complete rows are those that adult.names announces.
    assert (len(train.dropna()), len(test.dropna())) == (30_162, 15_060)


def test_the_counts_of_adult_are_the_known_ones(adult):
    train, test = adult["train"], adult["test"]
    assert train["occupation"].nunique() == 14
    assert (train["occupation"] == "Sales").sum() == 3650
    assert (train["income"].sum(), test["income"].sum()) == (7841, 3846)
    assert train["sex"].value_counts().to_dict() == {"Male": 21_790, "Female": 10_771}
    assert train.iloc[0]["age"] == 39
    assert test.iloc[0]["age"] == 25


def test_all_of_adult_is_train_then_test(adult):
    parts = [adult["train"], adult["test"]]
    pd.testing.assert_frame_equal(adult["all"], pd.concat(parts, ignore_index=True))


@pytest.fixture
def present():
    """Skip where a data set is absent; in CI, where DPNOTES_DATA names it, that is a failure."""

    def present(name):
        if datasets.locate(name) is None:
            reason = f"{name} is absent; fetch it with: python -m dpnotes.datasets {name}"
            required = os.environ.get("CI") == "true" and "DPNOTES_DATA" in os.environ
            pytest.fail(reason) if required else pytest.skip(reason)

    return present


@pytest.fixture(scope="module")
def mnist():
    if datasets.locate("mnist") is not None:
        return datasets.load_mnist()


def test_mnist_is_the_published_one(present, mnist):
    present("mnist")
    assert mnist.x_train.shape == (60_000, 28, 28)
    assert mnist.x_test.shape == (10_000, 28, 28)
    assert list(mnist.y_train[:5]) == [5, 0, 4, 1, 9]
    assert list(mnist.y_test[:5]) == [7, 2, 1, 0, 4]
    # The mean of a training pixel that many an MNIST program normalises with.
    assert round(mnist.x_train.mean() / 255, 4) == 0.1307


def test_mnist_survives_the_way_through_its_idx_files(present, mnist, tmp_path):
    present("mnist")
    images = datasets.ImageData(*(array[:2000] for array in mnist))
    files, sources = {}, {}
    for field, array in images._asdict().items():
        files[field], sources[field] = tmp_path / field, {"part": field}
        files[field].write_bytes(idx(array))
    assert_same_images(datasets.ImageData(**_formats.READERS["mnist"](files, sources)), images)


@pytest.fixture(scope="module")
def cifar10():
    if datasets.locate("cifar10") is not None:
        return datasets.load_cifar10()


def test_cifar10_is_the_published_one(present, cifar10):
    present("cifar10")
    assert cifar10.x_train.shape == (50_000, 32, 32, 3)
    assert list(np.bincount(cifar10.y_train)) == [5000] * 10
    assert list(np.bincount(cifar10.y_test)) == [1000] * 10
    # The mean of each colour that many a CIFAR-10 program normalises with.
    means = [cifar10.x_train[..., colour].mean() / 255 for colour in range(3)]
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-5)


def test_airplanes_and_horses_are_ten_thousand_and_two_thousand(present, cifar10, monkeypatch):
    present("cifar10")
    monkeypatch.setattr(datasets, "_load", lambda *given, **options: cifar10._asdict())
    pair = datasets.load_cifar10(classes=(0, 7))
    assert pair.x_train.shape == (10_000, 32, 32, 3)
    assert pair.x_test.shape == (2_000, 32, 32, 3)
    assert set(pair.y_train) == set(pair.y_test) == {0, 7}


def test_cifar10_in_any_order_is_put_into_the_normalised_one(present, cifar10, tmp_path):
    present("cifar10")
    every_tenth = datasets.ImageData(*(array[::10] for array in cifar10))
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(cifar10_tarball(every_tenth, mode="w"))
    parts = _formats.READERS["cifar10"]({"archive": path}, {})
    assert_same_images(datasets.ImageData(**parts), every_tenth)


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


def test_the_votes_agree_with_the_true_labels(present, mnist, adult):
    present("mnist")
    present("pate_votes")
    truth = mnist.y_test[:9000]
    assert (datasets.load_pate_votes("mnist_250_teachers").argmax(axis=1) == truth).mean() > 0.9
    incomes = adult["test"]["income"]
    assert (datasets.load_pate_votes("adult_250_teachers").argmax(axis=1) == incomes).mean() > 0.8
