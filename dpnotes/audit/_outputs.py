"""Outputs of a mechanism, read into columns: numbers, and labels, which are all else.

An output is read as soon as it is returned, because the mechanism may change it later, and by its
exact type, because a subclass could show one value to the audit and another to everybody else.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Hashable, Sequence
from itertools import islice

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
_PIECE = re.compile(r"[^\W_]+(?:\.[^\W_]+)?|[\W_]+")  # a word, or what stands between two
_NUMBER = re.compile(r"(?<!\w)[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)")
_ENDS = 4  # words at either end of a text that have columns of their own, and twice as many letters
_FEW = 16  # keys and exceptions that have columns of their own, and twice as many numbers of a text
_MOST_WORDS = 512  # of a text, wherever they stand in it, and items of an array of texts
_MOST_LABELS = 700  # of an output, beyond which a text has one column, and no dict is read twice
_LONG = 2**16  # letters at either end of a text of which the words are counted
_EVERY_ERROR = {*dir(type("", (Exception,), {}))}  # attributes that all exceptions have


class MechanismFailed(RuntimeError):  # noqa: N818
    """A mechanism gives no output to judge: there is no bound, not even 0."""


@dataclasses.dataclass(slots=True)
class Reading:
    """What one output holds.

    `numbers` and `labels` are columns, as many for every output of one structure. `words` are what
    it holds wherever it stands: in a text, among keys, in a set. `errors` are the exceptions read.
    """

    numbers: list | NDArray = dataclasses.field(default_factory=list)
    labels: list[Hashable] = dataclasses.field(default_factory=list)
    words: list[Hashable] = dataclasses.field(default_factory=list)
    errors: list[BaseException] = dataclasses.field(default_factory=list)

    def copy_numbers(self) -> NDArray:
        """Return numbers and arrays as one flat array, with bits of its own."""
        has_arrays = any(type(part) is np.ndarray for part in self.numbers)
        return np.hstack(self.numbers) if has_arrays else np.array(self.numbers, dtype=float)

    def take_ends(self, structure: tuple) -> "Reading":
        """Return the first and last columns and parts, which outputs of every structure have."""
        numbers = _take_ends(self.numbers, _ENDS, math.nan)
        labels = [*_take_ends(self.labels, _ENDS), *_take_ends(structure, _ENDS)]
        return Reading(np.array([len(self.numbers), *numbers]), labels)


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
    native = [base for base in kind.__mro__ if getattr(base.__new__, "__self__", None) is base]
    if dataclasses.is_dataclass(kind) and native == [object]:  # no list or number with fields
        # By its name, since each run may make a class of its own, and with what else it stores.
        held = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        held |= getattr(output, "__dict__", {})
        return kind.__name__, *[(name, read_output(value, reading)) for name, value in held.items()]
    raise TypeError(f"mechanism must return {ALLOWED}, got {kind.__name__}")


def read_exception(error: BaseException, reading: Reading) -> Hashable:
    """Read what an observer sees of an exception: its type and message, what it holds and whence.

    That are its arguments, its attributes, notes among them, and the exceptions that it holds or
    came from, each of them once.
    """
    if len(reading.errors) == _FEW or any(error is known for known in reading.errors):
        return "raised"
    reading.errors.append(error)
    names = sorted({*object.__dir__(error)} - _EVERY_ERROR | {"args", "__cause__", "__context__"})
    structure = [type(error).__name__, _read_held(_ask(str, error), reading)]
    for name in names:
        held = _ask(getattr, error, name)
        parts = held if type(held) is tuple else [held]
        structure += [name, *[_read_held(part, reading) for part in parts]]
    return "raised", *structure


def _ask(question: Callable, *about: object) -> object:
    try:
        return question(*about)
    except Exception as error:  # whatever the code of the exception does
        return error


def _read_held(item: object, reading: Reading) -> Hashable:
    """Read what an exception holds; what cannot be read tells its type."""
    if isinstance(item, BaseException):
        return read_exception(item, reading)
    part = Reading(words=reading.words)
    structure = _ask(read_output, item, part)
    if isinstance(structure, Exception):
        return type(item).__name__
    reading.numbers += part.numbers
    reading.labels += part.labels
    return structure


def _read_whole(item: object, words: list) -> Hashable:
    """Return all of a key or an element, its numbers by their bits, and add its words to a list."""
    if type(item) in (int, str):
        words += _find(_PIECE, item, _MOST_WORDS) if type(item) is str else []
        return type(item), item
    reading = Reading(words=words)
    structure = read_output(item, reading)
    return structure, reading.copy_numbers().tobytes(), tuple(reading.labels)


def _read_text(kind: type, text: str, reading: Reading) -> Hashable:
    reading.words += _find(_PIECE, text, _MOST_WORDS)
    reading.labels.append(text)
    if len(reading.labels) > _MOST_LABELS:
        return kind
    words = _WORD.findall(text[:_LONG] + text[_LONG:][-_LONG:])
    numbers = [_as_number(found) for found in _find(_NUMBER, text, 2 * _FEW) + 2 * _FEW * [""]]
    reading.numbers += [float(len(text)), float(len(words)), *numbers[: 2 * _FEW]]
    reading.labels += _take_ends(text, 2 * _ENDS)
    for word in _take_ends(words, _ENDS):
        reading.labels += [word, word[:1], word[-1:]]
        reading.numbers.append(_as_number(word))
    return kind


def _find(pattern: re.Pattern, text: str, most: int) -> list[str]:
    return [found[0] for found in islice(pattern.finditer(text), most)]


def _take_ends(parts: Sequence, many: int, missing: object = "") -> list:
    """Return as many letters, words or other parts from either end, in turn."""
    ends = [end for place in range(many) for end in (place, -1 - place)]
    return [parts[end] if -len(parts) <= end < len(parts) else missing for end in ends]


def _as_number(word: str) -> float:
    return float(word) if _NUMBER.fullmatch(word) else math.nan


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
    by_place = []
    for key, value in zip(keys, items.values(), strict=True):
        numbers, labels = len(reading.numbers), len(reading.labels)
        by_place.append(read_output(value, reading))
        bits = Reading(reading.numbers[numbers:]).copy_numbers().tobytes()
        reading.words.append((key, (by_place[-1], bits, tuple(reading.labels[labels:]))))
    in_order = sorted(items, key=repr)
    twice = in_order != list(items) and len(reading.labels) <= _MOST_LABELS
    by_key = [read_output(items[key], reading) for key in in_order] if twice else []
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
    structure = np.ndarray, output.dtype.kind, output.shape, output.strides
    if output.dtype.kind == "O":
        return *structure, read_output(output.tolist(), reading)
    if output.dtype.kind in "SU":
        reading.labels += [output.dtype.str, output.tobytes()]
        for item in output.ravel()[:_MOST_WORDS].tolist():
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
