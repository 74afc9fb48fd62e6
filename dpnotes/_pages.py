"""What the notebooks of the book share."""

import numpy as np

# The outputs that myst_nb knows as glue: it keeps them off the page, and so does JupyterLab.
_PREFIX = "application/papermill.record/"


def keep(**numbers: object) -> None:
    """Keep numbers for the prose, which shows them before a mark such as ``<!-- share:.1f -->``.

    Parameters
    ----------
    **numbers
        Name and value. A float is kept to six significant digits, as machines differ in later
        ones; an integer or a string is kept as it is.
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
