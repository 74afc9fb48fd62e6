"""Files that are whole or are not there, whoever is interrupted while writing them."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dpnotes._checks import shown


def check_target(name: str, path: str | os.PathLike) -> Path:
    """Return where `path` leads, or refuse what is neither a regular file nor absent.

    A link is followed, so that writing changes what it points to, and it stays a link.
    """
    try:
        target = Path(path).resolve()
        other = target.exists() and not target.is_file()
        leads_nowhere = target.is_symlink()  # a circle, which is an error up to Python 3.12 only
    except (OSError, RuntimeError):  # a name that is too long, or a circle
        leads_nowhere = True
    if leads_nowhere:
        raise ValueError(f"{name} must be where a file can be, got {shown(str(path))}")
    if other:
        raise ValueError(f"{name} must be a regular file or not exist yet, got {path}")
    return target


@contextmanager
def written_whole(name: str, path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Open a file that takes its name, and the place of an older one, only when it is whole.

    Each writer has a draft of its own, on whichever machine it runs.
    """
    target = check_target(name, path)
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
