"""Files that are whole or are not there, whoever is interrupted while writing them."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(name: str, path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Open a file that takes its name, and the place of an older one, only when it is whole.

    Each writer has a draft of its own, on whichever machine it runs. A link is followed, and stays
    a link.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"{name} must be a regular file or not exist yet, got {path}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
