"""An event in words: which outputs told two data sets apart."""

import math

import numpy as np
from numpy.typing import NDArray

from dpnotes.audit._lower_bound import Outputs
from dpnotes.release import _quote_value, _Quotes

_FEW = 3  # outputs or ranges that are listed
_COLUMNS = 256  # numbers of an output that are looked at one by one


def describe_event(outputs: Outputs, event: NDArray[np.bool_]) -> str:
    """Return what holds of the outputs in an event and of no other output that was seen."""
    inside = event.ravel()
    within, without = (
        _sort_by_frequency(outputs.identities.ravel()[side]) for side in (inside, ~inside)
    )
    if len(within) <= _FEW:
        return f"the output is {_quote_outputs(outputs, within)}"
    if len(without) <= _FEW:
        return f"the output is anything but {_quote_outputs(outputs, without)}"
    examples = _quote_outputs(outputs, within[:_FEW])
    structures = outputs.structures.ravel()
    if not np.isin(structures[inside], structures[~inside]).any():
        return f"the output is such as {examples}"
    score = f"a score of the output, learned from other runs, is high; it is for {examples}"
    return _describe_one_number(outputs, inside) or score


def _sort_by_frequency(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return each label once, the most frequent first."""
    found, counts = np.unique(labels, return_counts=True)
    return found[np.argsort(-counts, kind="stable")]


class _OutputQuotes(_Quotes):
    """Short quotations of outputs, with the types of numbers if these tell outputs apart."""

    with_types = False

    def repr1(self, output: object, level: int) -> str:
        if isinstance(output, np.generic) and self.with_types:
            return repr(output)
        return super().repr1(output, level)

    def repr_ndarray(self, output: NDArray, level: int) -> str:
        if output.ndim > 2:
            return f"an array of shape {output.shape}"
        of_type = f" of {output.dtype}" if self.with_types else ""
        return f"an array {_format_numbers(output.tolist())}{of_type}"

    def repr_instance(self, output: object, level: int) -> str:
        if isinstance(output, BaseException):
            return f"the exception {type(output).__name__}: {str(output)[:60]}"
        return super().repr_instance(output, level)


def _quote_outputs(outputs: Outputs, identities: NDArray[np.intp]) -> str:
    quotes = _OutputQuotes()
    quotes.with_types = outputs.structures.any()
    return " or ".join(_quote_value(outputs.examples[label], quotes) for label in identities)


def _format_numbers(values: object) -> str:
    """Return the first numbers of an array, in as many brackets as it has axes."""
    if isinstance(values, list):
        return f"[{', '.join([*map(_format_numbers, values[:6]), *['...'] * (len(values) > 6)])}]"
    return f"{values:.6g}" if isinstance(values, int | float) else repr(values)


def _describe_one_number(outputs: Outputs, inside: NDArray[np.bool_]) -> str | None:
    """Describe an event that depends on one number of the output alone."""
    structures = outputs.structures.ravel()
    structure, *others = np.unique(structures[inside]).tolist()
    matrix = outputs.numbers.get(structure, np.empty((0, 0)))
    if others or structure in outputs.labels or matrix.shape[1] > _COLUMNS:
        return None
    columns = np.array(matrix.T, dtype=float, order="C")
    chosen = inside[structures == structure]
    found = [(number, *_find_ranges(c, chosen)) for number, c in enumerate(columns)]
    found = [one for one in found if 0 < len(one[2]) <= _FEW]
    if not found:
        return None
    number, values, ranges = min(found, key=lambda one: len(one[2]))
    which = "the output" if len(columns) == 1 else f"number {number} of the output"
    return f"{which} is {_name_ranges(values, ranges)}"


def _find_ranges(
    column: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    """Return all values in order, and between which places those chosen lie.

    There is no range if a value is both chosen and not.
    """
    bits, first = np.unique(column.view(np.uint64), return_index=True)
    within, without = (np.isin(bits, column[side].view(np.uint64)) for side in (chosen, ~chosen))
    values = column[first]
    order = np.lexsort((~np.signbit(values), values))
    values, within = values[order], within[order]
    if (within == without[order]).any():
        return values, []
    # NaN is in no range of numbers, because it is neither at most nor at least any of them.
    starts = np.flatnonzero(np.diff(within, prepend=~within[0]) | np.isnan(values))
    ends = np.append(starts[1:], len(values)) - 1
    return values, [s for s in zip(starts.tolist(), ends.tolist(), strict=True) if within[s[0]]]


def _name_ranges(values: NDArray[np.float64], ranges: list[tuple[int, int]]) -> str:
    """Return ranges of the values in words, the widest first."""
    widest = sorted(ranges, key=lambda span: span[0] - span[1])
    return " or ".join(_name_range(values, *span) for span in widest)


def _name_range(values: NDArray[np.float64], start: int, end: int) -> str:
    if start == end:
        return repr(float(values[start]))
    if start == 0:
        return f"at most {values[end]:.6g}"
    is_last = end == len(values) - 1 or math.isnan(values[end + 1])
    low = f"{values[start]:.6g}"
    return f"at least {low}" if is_last else f"from {low} to {values[end]:.6g}"
