"""Fetch a file from whichever mirror serves it: no byte beyond its size, no mirror too slow."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpnotes.datasets import _formats

if TYPE_CHECKING:
    import requests

_ROUNDS = 5  # times that the list of mirrors is gone through
_PAUSE = 1.0  # seconds before the second round, doubled before each further one
_TIMEOUT = (10, 30)  # seconds to connect, and without a single byte
_WINDOW = 30.0  # seconds in which a mirror must send _LEAST bytes: 5 kB a second
_LEAST = 150_000


def fetch(file: str, source: dict[str, Any], partial: Path) -> dict[str, str]:
    """Complete `partial` from the mirrors of `source`, and say why each of them failed.

    Nothing is said where the file is whole. What an earlier try left is gone on from: pooch knows
    one address and starts again at zero, too little for 170 MB over a poor line.
    """
    failures: dict[str, str] = {}
    if _fault(partial, source) is None:
        return failures
    for attempt in range(_ROUNDS):
        time.sleep(_PAUSE * 2 ** (attempt - 1) if attempt else 0)
        for url in source["urls"]:
            reason = _try(url, source, partial, file)
            if reason is None:
                return {}
            failures[url] = reason
    return failures


def _try(url: str, source: dict[str, Any], partial: Path, label: str) -> str | None:
    """Say what is wrong with what a mirror sends; None where the file is now whole."""
    import requests
    import urllib3

    held = _held(partial, source)
    try:
        _transfer(url, source, partial, held, label)
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        # What has come is kept: the next mirror goes on from there. A server's words are not
        # trusted with the terminal.
        return "".join(letter for letter in str(error)[:300] if letter.isprintable())
    reason = _fault(partial, source)
    if reason is None:
        return None
    partial.unlink()
    # What was held may have come from another mirror: this one is owed a whole file of its own.
    return _try(url, source, partial, label) if held else reason


def _held(partial: Path, source: dict[str, Any]) -> int:
    """Return how many bytes can be gone on from: none where the size of the whole is not known."""
    size = partial.stat().st_size if partial.exists() else 0
    return size if size < source.get("size", 0) else 0


def _fault(partial: Path, source: dict[str, Any]) -> str | None:
    """Say what keeps `partial` from being the published file; None if it is that, to the byte."""
    from pooch import file_hash

    if not partial.exists():
        return "nothing has been downloaded"
    if "members" not in source:
        whole = partial.stat().st_size == source["size"]
        same = whole and file_hash(partial) == source["sha256"]
        return None if same else "the file has another SHA-256"
    try:
        _formats.read_members(partial, source)
    except _formats.UNREADABLE as error:
        return f"not the archive that was published ({error})"
    return None


def _transfer(url: str, source: dict[str, Any], partial: Path, held: int, label: str) -> None:
    """Append to `partial` what it lacks of the file at `url`, and not a byte beyond its size."""
    import requests
    from tqdm import tqdm

    size, at_most = source.get("size"), source.get("size") or source["at_most"]
    # Without "identity" a server may compress, and byte ranges would count compressed bytes.
    headers = {"Accept-Encoding": "identity"}
    if held:
        headers["Range"] = f"bytes={held}-"
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        response.raise_for_status()
        if not response.headers.get("Content-Range", "").startswith(f"bytes {held}-"):
            held = 0  # the server sends the whole file, asked or not
        left = at_most - held
        _check_length(response, left, exact=size is not None)
        with (
            partial.open("ab" if held else "wb") as out,
            tqdm(desc=label, total=size, initial=held, unit="B", unit_scale=True) as bar,
        ):
            for chunk in _arriving(response):
                bar.update(out.write(chunk[:left]))
                left -= len(chunk)
                if left <= 0:
                    break
    if size and left > 0:
        raise ValueError(f"broke off {left} bytes before the end")


def _check_length(response: "requests.Response", expected: int, *, exact: bool) -> None:
    """Raise ValueError where a server announces another file before it sends the first byte."""
    announced = response.headers.get("Content-Length")
    if announced is None or "Content-Encoding" in response.headers:
        return
    fits = announced.isdecimal() and int(announced) <= expected
    if not fits or (exact and int(announced) != expected):
        bound = "" if exact else "at most "
        raise ValueError(f"announces {announced!r} bytes where {bound}{expected} are expected")


def _arriving(response: "requests.Response") -> Iterator[bytes]:
    """Yield bytes as they come; give up a mirror that sends too few of them."""
    due, deadline = _LEAST, time.monotonic() + _WINDOW
    while chunk := response.raw.read1(1 << 16, decode_content=True):
        yield chunk
        due -= len(chunk)
        if due <= 0:
            due, deadline = _LEAST, time.monotonic() + _WINDOW
        elif time.monotonic() > deadline:
            raise ValueError(f"sent fewer than {_LEAST} bytes in {_WINDOW:g} seconds")
