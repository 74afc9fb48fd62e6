"""Helpers for the notebooks of the book."""

import numpy as np

# myst_nb takes an output with this prefix as glue and leaves it out of the page. JupyterLab and a
# console show its plain text.
_PREFIX = "application/papermill.record/"


def keep(**numbers: object) -> None:
    """Store numbers for the prose, which shows them before a mark such as ``<!-- share:.1f -->``.

    Whoever runs the cell sees them, too; the page leaves them out.

    Parameters
    ----------
    **numbers
        Name and value. A float is rounded to six significant digits, because later digits differ
        between machines; an integer or a string is stored unchanged.
    """
    from IPython.display import display

    for name, value in numbers.items():
        stored = repr(_plain(name, value))
        data = {f"{_PREFIX}text/plain": stored, "text/plain": f"{name} = {stored}"}
        metadata = {"scrapbook": {"name": name, "mime_prefix": _PREFIX}}
        display(data, metadata=metadata, raw=True)


def _plain(name: str, value: object) -> float | int | str:
    if isinstance(value, str):
        return str(value)
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a real number or a string, got {type(value).__name__}")
    return float(f"{float(array):.6g}") if array.dtype.kind == "f" else int(array)
