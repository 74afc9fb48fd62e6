"""An event in words: which outputs told two data sets apart."""

import itertools
import math
from collections import deque
from collections.abc import Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpnotes.audit._neighbours import shown
from dpnotes.audit._statistical import _Runs
from dpnotes.audit._values import SCALARS, name_of

_FEW = 3  # outputs that are listed rather than described
_COLUMNS = 256  # numbers of an output that are looked at one by one
_DIGITS = 5  # numbers that stand for one of any precision
_MANY = 12  # ranges of a number that are described at all
_NUMBERS = SCALARS | {bool, int, float, complex}
_NAMES = {
    np.dtype(code).str: np.dtype(code).name for code in "?" + np.typecodes["AllInteger"] + "efdFD"
}


def in_words(runs: _Runs, event: NDArray[np.bool_]) -> str:
    """Return what holds of the outputs in an event and of no other output that was seen."""
    inside = event.ravel()
    with_types, at_the_end = _as_types(runs, inside)
    return (
        _as_a_list(runs, inside, with_types)
        or _as_kinds(runs, inside, with_types, at_the_end)
        or (_as_one_number(runs, inside) or _as_many(runs, inside)) + at_the_end
    )


def _as_types(runs: _Runs, inside: NDArray[np.bool_]) -> tuple[bool, str]:
    """Return whether an event has types that others of their form have not, and which.

    Where the event has several forms these are not told: they would be read as those of each.
    """
    structures = runs.structures.ravel()
    within, without = (_types_by_form(runs, structures[side]) for side in (inside, ~inside))
    for form, types in within.items():
        if others := [name for name in without.get(form, ()) if name not in types]:
            words = f" ({_few(types)}, and not {_few(others)})"
            return True, words if len(within) == 1 else ""
    return False, ""


def _types_by_form(runs: _Runs, structures: NDArray[np.intp]) -> dict[Hashable, dict[str, None]]:
    """Return which types there are, by all that is the same where numbers have other types."""
    found: dict[Hashable, dict[str, None]] = {}
    for structure in np.unique(structures).tolist():
        kind = runs.kinds[structure]
        found.setdefault(_form(kind), {})[_types(kind)] = None
    return found


def _form(kind: Hashable) -> Hashable:
    """Return what reading an output found, whatever types hold its numbers and texts."""
    if not isinstance(kind, tuple) or not kind:
        return float if kind in _NUMBERS else kind
    name, *parts = kind
    if len(parts) == 1 and (name in SCALARS or name in (str, bytes)):
        return _form(parts[0])
    return name, *map(_form, parts[name is np.ndarray :])


def _types(kind: Hashable) -> str:
    """Return the types that hold the numbers and texts of an output, in their order."""
    names = list(_leaves(kind)) or ["no number"]
    if len(set(names)) > 1:
        return f"[{_few(names)}]"
    return names[0] if len(names) == 1 else f"all {names[0]}"


def _leaves(kind: Hashable) -> Iterator[str]:
    name, *parts = kind if isinstance(kind, tuple) else [kind]
    if name is np.ndarray:
        yield f"array of {_NAMES.get(parts[0], parts[0])}"
    elif name in SCALARS:
        yield f"numpy.{name_of(name)}"
    elif name in _NUMBERS or name in (str, bytes):
        yield name_of(name)
    else:
        for part in parts:
            if isinstance(part, tuple | type) and part:
                yield from _leaves(part)


def _as_a_list(runs: _Runs, inside: NDArray[np.bool_], with_types: bool) -> str | None:
    def written(slots: list[int]) -> str:
        kinds = [runs.kinds[runs.structures.ravel()[slot]] for slot in slots]
        types = [f" ({_types(kind)})" if with_types else "" for kind in kinds]
        return " or ".join(_output(runs, s) + t for s, t in zip(slots, types, strict=True))

    identities = runs.identities.ravel()
    within, without = (_firsts(identities, side) for side in (inside, ~inside))
    if len(within) <= _FEW:
        return f"the output is {written(within)}"
    if len(without) <= _FEW:
        return f"the output is anything but {written(without)}"
    return None


def _firsts(labels: NDArray[np.intp], chosen: NDArray[np.bool_]) -> list[int]:
    """Return where each label among the chosen stands first, the most frequent label first."""
    places = np.flatnonzero(chosen)
    _, first, counts = np.unique(labels[places], return_index=True, return_counts=True)
    return places[first[np.argsort(-counts, kind="stable")]].tolist()


def _as_kinds(
    runs: _Runs, inside: NDArray[np.bool_], with_types: bool, at_the_end: str
) -> str | None:
    """Describe an event that depends on the kind of the output alone."""
    structures = runs.structures.ravel()
    if np.intersect1d(structures[inside], structures[~inside]).size:
        return None
    slots = _firsts(structures, inside)[:_FEW]
    found = [runs.kinds[structures[slot]] for slot in slots]
    is_number = all(_form(kind) is float for kind in found)
    each = with_types and not at_the_end and not is_number
    words = " or ".join(
        f"{_type(kind)} such as {_output(runs, slot)}{f' ({_types(kind)})' * each}"
        for kind, slot in zip(found, slots, strict=True)
    )
    return f"the output is {words}{'' if is_number else at_the_end}"


def _as_one_number(runs: _Runs, inside: NDArray[np.bool_]) -> str | None:
    """Describe an event that depends on one number of the output alone."""
    structures = runs.structures.ravel()
    for structure, matrix in runs.numbers.items():
        of_it = structures == structure
        chosen = inside[of_it]
        if chosen.all() or not chosen.any() or matrix.shape[1] > _COLUMNS:
            continue
        spans = [_spans(column, chosen) for column in np.array(matrix.T, dtype=float, order="C")]
        number = min(range(len(spans)), key=lambda place: len(spans[place][1]))
        values, ranges = spans[number]
        if 0 < len(ranges) <= _MANY:
            which = "the output" if len(spans) == 1 else f"number {number} of the output"
            return f"{which} is {_named(values, ranges)}{_rest(runs, inside & ~of_it)}"
    return None


def _spans(
    column: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    """Return all values in order, and between which places those chosen lie.

    There are more ranges than anybody names where a value is both chosen and not.
    """
    bits, first = np.unique(column.view(np.uint64), return_index=True)
    within, without = (np.isin(bits, column[side].view(np.uint64)) for side in (chosen, ~chosen))
    values = column[first]
    order = np.lexsort((~np.signbit(values), values))
    values, within = values[order], within[order]
    if (within == without[order]).any():
        return values, [(0, 0)] * (_MANY + 1)
    # What is at most or at least a number is one: NaN is never in a range of numbers.
    starts = np.flatnonzero(np.diff(within, prepend=~within[0]) | np.isnan(values))
    ends = np.append(starts[1:], len(values)) - 1
    return values, [s for s in zip(starts.tolist(), ends.tolist(), strict=True) if within[s[0]]]


def _named(values: NDArray[np.float64], ranges: list[tuple[int, int]]) -> str:
    """Return ranges of the values in words, the widest first."""
    widest = sorted(ranges, key=lambda span: span[0] - span[1])
    named = [_span(values, *span) for span in widest[:_FEW]]
    more = len(ranges) - len(named)
    if more:
        named.append("in a smaller range" if more == 1 else f"in one of {more} smaller ranges")
    return " or ".join(named)


def _span(values: NDArray[np.float64], start: int, end: int) -> str:
    low, high = _number(values[start]), _number(values[end])
    if start == end:
        return repr(float(values[start]))
    if start == 0:
        return f"at most {high}"
    is_last = end == len(values) - 1 or math.isnan(values[end + 1])
    return f"at least {low}" if is_last else f"from {low} to {high}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _rest(runs: _Runs, others: NDArray[np.bool_]) -> str:
    """Return what else than the outputs of one kind is in the event."""
    slots = _firsts(runs.structures.ravel(), others)
    return f", or it is such as {_output(runs, slots[0])}" if slots else ""


def _as_many(runs: _Runs, inside: NDArray[np.bool_]) -> str:
    slots = _firsts(runs.identities.ravel(), inside)
    examples = " or ".join(_output(runs, slot) for slot in slots[:_FEW])
    return f"a score of the output, learned from other runs, is high; it is for {examples}"


def _output(runs: _Runs, slot: int) -> str:
    """Return the output of one run in words."""
    structures = runs.structures.ravel()
    structure = int(structures[slot])
    numbers: list[float] = []
    if structure in runs.numbers:
        row = int((structures[:slot] == structure).sum())
        numbers = np.asarray(runs.numbers[structure][row], dtype=float).tolist()
    return _written(runs.kinds[structure], iter(numbers))


def _written(kind: Hashable, numbers: Iterator[float]) -> str:
    """Undo what reading an output did to it, as far as a short text asks for."""
    if kind in (int, bool):
        return str(kind(next(numbers, 0.0)))
    if isinstance(kind, type):
        return shown(float(next(numbers, 0.0)))
    name, *parts = kind
    if name == "raised":
        message = parts[1] if len(parts[1]) <= 60 else f"{parts[1][:57]}..."
        return f"the exception {parts[0]}: {message}"
    if name in (str, bytes, type(None), np.str_, np.bytes_):
        return shown(parts[0])
    if name in (list, tuple):
        items = [_written(part, numbers) for part in parts]
        return ("[{}]" if name is list else "({})").format(_few(items))
    if name is dict:
        keys = [_written(key, iter(np.frombuffer(bits))) for (key, bits), _ in parts]
        values = [_written(part, numbers) for _, part in parts]
        return "{" + _few(f"{key}: {v}" for key, v in zip(keys, values, strict=True)) + "}"
    if name is np.ndarray and len(parts) == 3 and parts[2] == 1:
        values = np.fromiter(itertools.islice(numbers, math.prod(parts[1])), dtype=float)
        if len(parts[1]) > 2:
            return f"an array of shape {parts[1]}"
        return f"an array {_nested(values.reshape(parts[1]))}"
    if len(parts) == 1 and isinstance(parts[0], type):
        return _written(parts[0], numbers)
    if parts and all(type(part) is tuple and type(part[0]) is str for part in parts):
        fields = [f"{field}={_written(value, numbers)}" for field, value in parts]
        return f"{name_of(name)}({_few(fields)})"
    # What is not written takes its numbers with it, or the next would be written with them.
    deque(itertools.islice(numbers, _count(kind)), maxlen=0)
    return f"one {_type(kind)}"


def _count(kind: Hashable) -> int:
    """Return how many numbers reading an output took from it."""
    if isinstance(kind, type):
        return 1
    name, *parts = kind
    if parts == ["digits"]:
        return _DIGITS
    if name is np.ndarray:
        _, shape, *parts = parts
        if len(parts) == 1 and type(parts[0]) is int:
            return parts[0] * math.prod(shape)
    if name is dict:
        return sum(_count(part) for _, part in parts)
    if name in (str, bytes, type(None), set, frozenset, "raised"):
        return 0
    named = (part[1] if type(part) is tuple and type(part[0]) is str else part for part in parts)
    return sum(_count(part) for part in named if isinstance(part, type | tuple))


def _nested(values: NDArray[np.float64]) -> str:
    """Return the first numbers of an array, in as many brackets as it has axes."""
    if values.ndim == 0:
        return _number(float(values))
    return f"[{_few(map(_nested, values[:7]))}]"


def _type(kind: Hashable) -> str:
    """Return what type of output it is."""
    name = kind if isinstance(kind, type) else kind[0]
    return f"of type {name_of(name)}" if isinstance(name, type) else "an exception"


def _few(items: Iterable[str]) -> str:
    items = list(items)
    return ", ".join(items[:6]) + ", ..." * (len(items) > 6)
