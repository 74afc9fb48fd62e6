"""What the files of this package check alike."""

from typing import Any


def check_kind(name: str, value: object, kind: Any, words: str) -> None:  # noqa: ANN401
    """Refuse a value of another kind; `words` say which are allowed."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got {type(value).__name__}")
