"""Outputs of a mechanism, read into columns: numbers, and labels, which are all else.

An output is read as soon as it is returned, because the mechanism may change it later, and by its
exact type, because a subclass could show one value to the audit and another to everybody else.
"""

import dataclasses
import math
import re
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

ALLOWED = (
    "numbers, strings, None, arrays, tuples, lists, sets, dicts or dataclasses, no subclass of them"
)
EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
SCALARS = frozenset(np.sctypeDict.values())
_FLOATS = {float, np.float64, np.float32, np.float16}
_INTEGERS = {bool, int, *(kind for kind in SCALARS if np.dtype(kind).kind in "biu")}
_WORD = re.compile(r"\w+(?:\.\w+)?")
_ENDS = 4  # words at either end of a text that have columns of their own, and twice as many letters
_FEW = 16  # texts or keys that have columns of their own
_MOST_WORDS = 256  # of an output, wherever they stand in it


class MechanismFailed(RuntimeError):  # noqa: N818
    """A mechanism gives no output to judge: there is no bound, not even 0."""


@dataclasses.dataclass(slots=True)
class Reading:
    """What one output holds.

    `numbers` and `labels` are columns, as many for every output of one structure. `words` are what
    it holds wherever it stands: in a text, among keys, in a set.
    """

    numbers: list | NDArray = dataclasses.field(default_factory=list)
    labels: list[Hashable] = dataclasses.field(default_factory=list)
    words: list[Hashable] = dataclasses.field(default_factory=list)

    def copy_numbers(self) -> NDArray:
        """Return numbers and arrays as one flat array, with bits of its own."""
        has_arrays = any(type(part) is np.ndarray for part in self.numbers)
        return np.hstack(self.numbers) if has_arrays else np.array(self.numbers, dtype=float)


def read_returned(output: object, reading: Reading) -> Hashable:
    """Read what a mechanism returned, or refuse it where it cannot be read to its end."""
    try:
        return read_output(output, reading)
    except RecursionError:
        raise TypeError(f"mechanism must return {ALLOWED}, got too deep a nest of them") from None


def read_output(output: object, reading: Reading) -> Hashable:
    """Read an output into the columns of `reading`, and return its structure: types and lengths.

    Two outputs of one structure differ where the bits of their numbers or their labels do.
    """
    kind = type(output)
    if kind in _FLOATS:
        reading.numbers.append(float(output))
        if kind is not float and output != output:  # not a number has bits that a float loses
            reading.words.append(output.tobytes())
        return kind
    if kind in _INTEGERS:
        return _read_integer(output, reading)
    if output is None:
        return kind
    if kind is str:
        return _read_text(kind, output, reading)
    if kind is bytes:
        return _read_text(kind, output.decode("latin-1"), reading)
    if kind is np.ndarray:
        return _read_array(output, reading)
    if kind is complex or kind in SCALARS:
        return kind, _read_array(np.asarray(output), reading)
    if kind in (list, tuple):
        return kind, *[read_output(item, reading) for item in output]
    if kind in (set, frozenset):
        return kind, _read_set(list(output), reading)
    if kind is dict:
        return kind, *_read_dict(output, reading)
    if dataclasses.is_dataclass(kind):
        # By its name, since each run may make a class of its own, and with what else it stores.
        held = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        held |= getattr(output, "__dict__", {})
        return kind.__name__, *[(name, read_output(value, reading)) for name, value in held.items()]
    raise TypeError(f"mechanism must return {ALLOWED}, got {kind.__name__}")


def read_exception(error: BaseException, reading: Reading) -> Hashable:
    """Read what an observer sees of an exception: its type, its message and what it was given."""
    try:
        given = _read_whole(error.args)
    except (TypeError, RecursionError):  # not an output that could be read
        given = None
    reading.labels.append(given)
    return "raised", type(error).__name__, _read_text(str, str(error), reading)


def _read_whole(item: object, words: list | None = None) -> Hashable:
    """Return all of an output, its numbers by their bits, and add its words to a list."""
    reading = Reading()
    structure = read_output(item, reading)
    if words is not None:
        words += reading.words
    bits = reading.copy_numbers().tobytes()
    return structure, bits, tuple(reading.labels), frozenset(reading.words)


def _read_text(kind: type, text: str, reading: Reading) -> Hashable:
    words = _WORD.findall(text)
    reading.words += words[:_MOST_WORDS]
    reading.numbers += [float(len(text)), float(len(words))]
    reading.labels += [text, *_take_ends(text, 2 * _ENDS)]
    for word in _take_ends(words, _ENDS):
        reading.labels += [word, word[:1], word[-1:]]
        reading.numbers.append(_as_number(word))
    return kind


def _take_ends(parts: str | list[str], many: int) -> list[str]:
    """Return as many letters or words from either end, in turn; missing ones are empty."""
    ends = [end for place in range(many) for end in (place, -1 - place)]
    return [parts[end] if -len(parts) <= end < len(parts) else "" for end in ends]


def _as_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _read_set(items: list, reading: Reading) -> tuple:
    """Read a set as its elements in the order in which they are shown, whatever that tells."""
    elements = _read_keys(items, reading)
    reading.words += elements
    numbers = [float(item) for item in items if type(item) in _FLOATS or _is_exact(item)]
    reading.numbers += sorted(numbers)
    return len(items), len(numbers), *_read_few(sorted(items, key=repr), reading)


def _read_keys(items: list, reading: Reading) -> list:
    """Return elements or keys as wholes, and label an output by their order."""
    keys = [_read_whole(item, reading.words) for item in items]
    reading.labels += [tuple(keys), *keys[:_FEW], *[None] * max(0, _FEW - len(keys))]
    return keys


def _read_few(items: list, reading: Reading) -> list[Hashable]:
    """Read a few elements or keys into columns of their own."""
    return [read_output(item, reading) for item in items] if len(items) <= _ENDS else []


def _is_exact(item: object) -> bool:
    return type(item) in _INTEGERS and abs(int(item)) <= EXACT_INTEGER


def _read_dict(items: dict, reading: Reading) -> tuple:
    """Read the values by their places, and by their keys where these stand in another order."""
    keys = _read_keys(list(items), reading)
    by_place = [read_output(value, reading) for value in items.values()]
    pairs = zip(keys, items.values(), strict=True)
    reading.words += [(key, _read_whole(value)) for key, value in pairs]
    in_order = sorted(items, key=repr)
    by_key = [] if in_order == list(items) else [read_output(items[k], reading) for k in in_order]
    return len(items), *by_place, *by_key, *_read_few(list(items), reading)


def _read_integer(output: int | np.integer, reading: Reading) -> Hashable:
    kind, number = type(output), int(output)
    if -EXACT_INTEGER <= number <= EXACT_INTEGER:
        reading.numbers.append(float(number))
        return kind
    if -(2**63) <= number < 2**63:
        return kind, _read_array(np.array(number), reading)
    return kind, _read_text(int, hex(number), reading)


def _read_array(output: NDArray, reading: Reading) -> Hashable:
    # The order in memory can be seen as well.
    order = output.flags.c_contiguous, output.flags.f_contiguous
    structure = np.ndarray, output.dtype.kind, output.shape, order
    if output.dtype.kind == "O":
        return *structure, read_output(output.tolist(), reading)
    if output.dtype.kind in "SU":
        reading.labels += [output.dtype.str, output.tobytes()]
        for item in output.ravel()[:_FEW].tolist():
            read_output(item, reading)
        return structure
    if output.dtype.kind not in "biufc":
        raise TypeError(f"mechanism must return {ALLOWED}, got an array of {output.dtype}")
    if output.dtype.itemsize > 8 and output.dtype.kind == "f":  # bits that no float holds
        for item in output.ravel()[:_FEW]:
            _read_text(bytes, item.tobytes().decode("latin-1"), reading)
    columns = _split_array(output.ravel())
    reading.numbers.extend(columns)
    return *structure, output.dtype.str, len(columns)


def _split_array(array: NDArray) -> list[NDArray]:
    """Return flat arrays of which floats hold every number."""
    if array.dtype.kind == "c":
        return [*_split_array(array.real), *_split_array(array.imag)]
    if array.dtype.itemsize > 8:  # a long double, of which the last bits are left out
        with np.errstate(over="ignore"):
            return [array.astype(float)]
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return [array]
    if max(int(array.max()), -int(array.min())) <= EXACT_INTEGER:
        return [array]
    low = array & 2047
    return [(array - low).astype(float), low.astype(float)]
