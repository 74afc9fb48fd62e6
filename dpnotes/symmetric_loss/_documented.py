"""What several functions share in their documentation, written once."""

from collections.abc import Callable
from inspect import cleandoc
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)


def documented(shared: str) -> Callable[[Function], Function]:
    """Return a decorator that writes sections behind the first sentence of a docstring."""

    def write(function: Function) -> Function:
        # From 3.13 on Python takes the indentation away by itself.
        sentence, _, rest = cleandoc(function.__doc__ or "").partition("\n\n")
        function.__doc__ = f"{sentence}\n\n{cleandoc(shared)}\n\n{rest}"
        return function

    return write
