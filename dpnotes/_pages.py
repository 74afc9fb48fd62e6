"""Helpers for the notebooks of the book."""

import numpy as np

# myst_nb reads outputs of this MIME type as glue. Neither it nor JupyterLab displays them.
_PREFIX = "application/papermill.record/"


def keep(**numbers: object) -> None:
    """Store numbers for the prose, which shows them before a mark such as ``<!-- share:.1f -->``.

    Parameters
    ----------
    **numbers
        Name and value. A float is rounded to six significant digits, because later digits differ
        between machines; an integer or a string is stored unchanged.
    """
    from IPython.display import display

    for name, value in numbers.items():
        data = {f"{_PREFIX}text/plain": repr(_plain(name, value))}
        metadata = {"scrapbook": {"name": name, "mime_prefix": _PREFIX}}
        display(data, metadata=metadata, raw=True)


def _plain(name: str, value: object) -> float | int | str:
    if isinstance(value, str):
        return str(value)
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a real number or a string, got {type(value).__name__}")
    return float(f"{float(array):.6g}") if array.dtype.kind == "f" else int(array)
