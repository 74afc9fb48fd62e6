"""What goes into a mechanism and what comes out of it, so that neither can be changed behind it.

Data are copied for each run. An output is read at once, by its exact type and without running any
code of its own: a subclass can say one thing to the audit and another to everybody else.
"""

import copy
import pickle
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from types import GetSetDescriptorType, MemberDescriptorType

import numpy as np
from numpy.typing import NDArray

ALLOWED = (
    "numbers, strings, None, arrays, tuples, lists, sets, dicts or dataclasses, no subclass of them"
)
EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), Fraction, Decimal)


class MechanismFailed(RuntimeError):  # noqa: N818
    """A mechanism gives no output to judge, or tampers: there is no bound, not even 0."""


def copier(name: str, data: object) -> Callable[[], object]:
    """Return a function that makes a new copy of the data at each call, or refuse the data."""
    kind = type(data)
    if kind in _CONSTANTS:
        return lambda: data
    if kind is np.ndarray and not data.dtype.hasobject:
        return partial(data.copy(order="K").copy, "K")
    try:
        pickled = pickle.dumps(data, protocol=5)
        if type(pickle.loads(pickled)) is kind:
            return partial(pickle.loads, pickled)
    except Exception:  # whatever a class of the caller's raises where it cannot be pickled
        pass
    try:
        return partial(copy.deepcopy, copy.deepcopy(data))
    except Exception as error:
        raise TypeError(f"{name} must be data that can be copied, got {name_of(kind)}") from error


def name_of(kind: type) -> str:
    """Return the name of a type, whatever its metaclass says."""
    return type.__dict__["__name__"].__get__(kind)


def read(output: object, numbers: list) -> Hashable:
    """Return all of an output but its numbers, and append those to `numbers`.

    What is returned holds plain constants and types only: its equality is nobody's own.
    """
    kind = type(output)
    # A metaclass may say that its class equals float, and be found in the table.
    reader = READERS.get(kind) if type(kind) is type or kind is Fraction else None
    return reader(output, numbers) if reader else _read_dataclass(output, numbers)


def read_exception(error: BaseException) -> Hashable:
    """Return what an observer sees of an exception: its type, its message and what it was given."""
    try:
        message = str.__add__("", str(error))
    except BaseException as another:  # the message of a message is not asked for
        message = f"cannot be written: {name_of(type(another))}"
    try:
        given = _whole(BaseException.args.__get__(error))
    except (TypeError, RecursionError):  # something else than values: the message has to do
        given = None
    return "raised", name_of(type(error)), message, given


def stored(output: object) -> dict[str, object] | None:
    """Return what a dataclass stores, by name, without running its code; None if it hides any."""
    kind = type(output)
    if type(kind) is not type:
        return None
    fields, found, shown = vars(kind).get("__dataclass_fields__"), {}, {}
    for base in reversed(kind.__mro__[:-1]):
        own = vars(base)
        if "__getattribute__" in own or "__getattr__" in own:
            return None
        shown |= own
        for name, member in own.items():
            is_slot = type(member) is MemberDescriptorType
            if is_slot or (name == "__dict__" and type(member) is GetSetDescriptorType):
                try:
                    value = member.__get__(output)
                except AttributeError:  # an empty slot
                    continue
                found |= {name: value} if is_slot else value
    if type(fields) is not dict or not all(type(name) is str for name in [*found, *fields]):
        return None
    # Where the class has something of the same name that computes, it answers, not what is stored.
    computed = any(name in shown and not _is_plain(shown[name]) for name in found)
    if computed or not found.keys() >= fields.keys():
        return None
    return {name: found[name] for name in dict.fromkeys([*fields, *found])}


def _is_plain(attribute: object) -> bool:
    """Whether a class attribute leaves it to an instance to hold a value of its name."""
    kind = type(attribute)
    return kind is MemberDescriptorType or not any("__get__" in vars(c) for c in kind.__mro__)


def _read_dataclass(output: object, numbers: list) -> Hashable:
    values = stored(output)
    if values is None:
        raise TypeError(f"mechanism must return {ALLOWED}, got {name_of(type(output))}")
    return type(output), *[(name, read(value, numbers)) for name, value in values.items()]


def _whole(item: object) -> Hashable:
    """Return all of an output, its numbers by their bits."""
    numbers: list = []
    structure = read(item, numbers)
    return structure, b"".join(np.asarray(number).tobytes() for number in numbers)


def _read_constant(output: Hashable, numbers: list) -> Hashable:
    return type(output), output


def _read_float(output: float, numbers: list) -> Hashable:
    numbers.append(output)
    return float


def _read_integer(output: int, numbers: list) -> Hashable:
    if -EXACT_INTEGER <= output <= EXACT_INTEGER:
        numbers.append(float(output))
        return type(output)
    return _read_digits(output, hex(output), numbers)


def _read_fraction(output: Fraction, numbers: list) -> Hashable:
    # A fraction can be made of any objects; these are refused unless they are integers.
    parts = [_plain_integer(part) for part in (output._numerator, output._denominator)]
    return _read_digits(Fraction(*parts), "/".join(map(hex, parts)), numbers)


def _plain_integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(
            f"mechanism must return {ALLOWED}, got a Fraction of {name_of(type(value))}"
        )
    return value


def _read_decimal(output: Decimal, numbers: list) -> Hashable:
    return _read_digits(output, str(output), numbers)


def _read_digits(output: int | Fraction | Decimal, digits: str, numbers: list) -> Hashable:
    """Read a number of any precision as the nearest float and a digest that no other one has."""
    try:
        nearest = float(output)
    except (OverflowError, ValueError):  # beyond all floats, or a NaN that signals
        return type(output), digits
    digest = blake2b(digits.encode(), digest_size=24).digest()
    parts = [digest[start : start + 6] for start in range(0, 24, 6)]
    numbers.extend([nearest, *(float(int.from_bytes(part)) for part in parts)])
    return type(output), "digits"


def _read_scalar(output: np.generic, numbers: list) -> Hashable:
    numbers.append(float(output))
    return type(output)


def _read_integer_scalar(output: np.integer, numbers: list) -> Hashable:
    return type(output), _read_integer(int(output), numbers)


def _read_text(output: np.str_ | np.bytes_, numbers: list) -> Hashable:
    return type(output), output.item()


def _read_as_array(output: np.generic, numbers: list) -> Hashable:
    return type(output), _read_array(np.asarray(output), numbers)


def _read_array(output: NDArray, numbers: list) -> Hashable:
    kind = np.ndarray, output.dtype.str, output.shape
    if output.dtype.names:
        names = output.dtype.names
        return *kind, *[(name, _read_array(output[name], numbers)) for name in names]
    if output.dtype.hasobject:
        return *kind, read(output.tolist(), numbers)
    if output.dtype.kind not in "biufcmM":
        return *kind, output.tobytes()
    parts = _parts(output.view(np.int64) if output.dtype.kind in "mM" else output)
    numbers.extend(parts)
    return *kind, len(parts)


def _read_masked_array(output: np.ma.MaskedArray, numbers: list) -> Hashable:
    # The mask and the filling are attributes that anybody can set.
    mask, filling = np.ma.getmaskarray(output), output.__dict__.get("_fill_value")
    plain = np.ndarray.view(output, np.ndarray)
    return np.ma.MaskedArray, *[read(part, numbers) for part in (mask, plain, filling)]


def _parts(array: NDArray) -> list[NDArray]:
    """Return flat arrays that floats can hold and that tell these numbers apart, bit by bit."""
    array = array.ravel()
    if array.dtype.kind == "c":
        return [*_parts(array.real), *_parts(array.imag)]
    if array.dtype.itemsize < 8 or array.size == 0:
        return [array]
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        # Beyond all doubles the nearest one says nothing, and mantissa and exponent say it all.
        mantissa, exponent = np.frexp(array)
        with np.errstate(invalid="ignore", over="ignore"):
            nearest, high = array.astype(float), mantissa.astype(float)
            return [nearest, high, (mantissa - high).astype(float), exponent.astype(float)]
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > EXACT_INTEGER:
        low = array & 2047
        return [(array - low).astype(float), low.astype(float)]
    return [array]


def _read_sequence(output: list | tuple, numbers: list) -> Hashable:
    return type(output), *[read(item, numbers) for item in output]


def _read_set(output: set | frozenset, numbers: list) -> Hashable:
    return type(output), frozenset([_whole(item) for item in output])


def _read_dict(output: dict, numbers: list) -> Hashable:
    return dict, *[(_whole(key), read(value, numbers)) for key, value in output.items()]


SCALARS = frozenset(
    np.dtype(code).type for code in "?" + np.typecodes["AllInteger"] + "efdgFDGSUmM"
)
READERS: dict[type, Callable[[object, list], Hashable]] = {
    **dict.fromkeys((str, bytes, type(None)), _read_constant),
    **dict.fromkeys((bool, int), _read_integer),
    float: _read_float,
    complex: _read_as_array,
    Fraction: _read_fraction,
    Decimal: _read_decimal,
    **dict.fromkeys((np.bool_, np.float16, np.float32, np.float64), _read_scalar),
    **{np.dtype(code).type: _read_integer_scalar for code in np.typecodes["AllInteger"]},
    **dict.fromkeys((np.str_, np.bytes_), _read_text),
    **{np.dtype(code).type: _read_as_array for code in "gFDGMmV"},
    np.ndarray: _read_array,
    np.ma.MaskedArray: _read_masked_array,
    **dict.fromkeys((tuple, list), _read_sequence),
    **dict.fromkeys((set, frozenset), _read_set),
    dict: _read_dict,
}
