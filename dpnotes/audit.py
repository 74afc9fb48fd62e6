"""Is it really private? Two ways to check a mechanism without trusting what it says of itself.

A mechanism whose output distribution can be written down is checked exactly (`exact_epsilon`, and
`exact_delta` where a delta is allowed). Any other one is run many times on two neighbouring data
sets (`epsilon_lower_bound`). None of them knows which mechanism it has before it.

To grade an assignment, ask for the distribution of the outputs where there are few of them:
`exact_epsilon` is then the answer, with no chance in it. Otherwise run the student's function. A
lower bound above the promised epsilon refutes it. If the runs are independent, which means that
nothing one run leaves behind changes a later one, this is wrong at most once in twenty times at the
usual confidence. A bound below the promise proves nothing, so look at more trials and other
neighbours.

>>> def submission(answer, rng):  # claims epsilon = 1, and keeps nine answers out of ten
...     return answer if rng.random() < 0.9 else not answer
>>> round(exact_epsilon([[0.9, 0.1], [0.1, 0.9]]), 4)
2.1972
>>> epsilon_lower_bound(submission, True, False, trials=20_000, rng=0) > 1
True
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial, singledispatch
from numbers import Integral, Number, Rational

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dpnotes._checks import as_array, check_integer, check_probability, check_real

_SUM_TOLERANCE = 1e-9
_PAIR_BLOCK = 2**20  # numbers gathered at once: 8 MiB
_EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
_EVERY_VALUE = 256  # up to so many distinct numbers, each is a bin of its own
_COLUMNS = 32  # coordinates of an array output that are looked at one by one
_STRUCTURES = 4  # kinds of output whose numbers are looked at
_CAUTION = 30  # the best of many events looks better than it is: choose at a smaller error


def exact_epsilon(
    output_distribution: ArrayLike, *, neighbours: Iterable[tuple[int, int]] | None = None
) -> float:
    """Return the epsilon that a mechanism really has, from the distribution of its outputs.

    Parameters
    ----------
    output_distribution : array_like of shape (inputs, outputs)
        Row i holds the probability of every output on input i. Rows sum to 1 within 1e-9.
    neighbours : iterable of (int, int), optional
        The pairs of rows that are neighbours; each is compared in both directions. By default every
        two rows are, as in the local model.

    Returns
    -------
    float
        The largest log-ratio of two neighbouring probabilities of one output, in nats. An output
        that neither input can give (0/0) costs nothing; one that only one of them gives (x/0) costs
        infinity. A single row has no neighbour: 0.

    Raises
    ------
    ValueError
        If the matrix is empty or not 2-D, if an entry is not a probability, if a row does not sum
        to 1, or if `neighbours` is empty or points outside the rows.
    TypeError
        If the matrix does not hold real numbers, or `neighbours` pairs of integers.

    Notes
    -----
    A mechanism M is epsilon-differentially private if P(M(D) in S) <= exp(epsilon) P(M(D') in S)
    for all neighbours D, D' and all S (Dwork, McSherry, Nissim and Smith, 2006). With countably
    many outputs the worst S is a single output. Over all pairs the largest ratio of a column is
    its maximum over its minimum, so one pass over the matrix is enough.

    Examples
    --------
    >>> answers = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(exact_epsilon(answers), 6)
    1.098612
    >>> exact_epsilon([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]])
    inf
    """
    rows = _check_distribution(output_distribution)
    if neighbours is None:
        return _largest_loss(rows.max(axis=0), rows.min(axis=0))
    return max(
        _largest_loss(np.maximum(first, second), np.minimum(first, second))
        for first, second in _rows_of_pairs(rows, neighbours)
    )


def exact_delta(
    output_distribution: ArrayLike,
    epsilon: float,
    *,
    neighbours: Iterable[tuple[int, int]] | None = None,
) -> float:
    """Return the smallest delta that a mechanism needs beside an epsilon.

    Parameters
    ----------
    output_distribution : array_like of shape (inputs, outputs)
        Row i holds the probability of every output on input i. Rows sum to 1 within 1e-9.
    epsilon : float
        The epsilon that is claimed, in nats, finite and at least 0.
    neighbours : iterable of (int, int), optional
        The pairs of rows that are neighbours; each is compared in both directions. By default every
        two rows are, as in the local model.

    Returns
    -------
    float
        A probability: 0 from `exact_epsilon` of the same table on, and at epsilon 0 the largest
        total variation distance of two neighbours. A single row has no neighbour: 0.

    Raises
    ------
    ValueError
        If epsilon is negative or not finite, if the matrix is empty or not 2-D, if an entry is not
        a probability, if a row does not sum to 1, or if `neighbours` is empty or points outside
        the rows.
    TypeError
        If epsilon is not a real number, the matrix does not hold any, or `neighbours` does not hold
        pairs of integers.

    Notes
    -----
    A mechanism is (epsilon, delta)-differentially private if P(S) <= exp(epsilon) Q(S) + delta for
    the output distributions P, Q of all neighbours and all sets S (Dwork, Kenthapadi, McSherry,
    Mironov and Naor, 2006). The worst S holds exactly the outputs o with P(o) > exp(epsilon) Q(o),
    so the smallest delta is the sum of the positive parts of P(o) - exp(epsilon) Q(o). Single
    outputs are not enough here: each may exceed by little, and all of them together by much.

    Examples
    --------
    >>> one_in_a_thousand = [[0.999, 0.001, 0.0], [0.999, 0.0, 0.001]]  # publishes the truth
    >>> exact_delta(one_in_a_thousand, epsilon=0.0)
    0.001
    >>> exact_epsilon(one_in_a_thousand)
    inf
    """
    rows = _check_distribution(output_distribution)
    epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a finite number of at least 0")
    excesses = (
        _largest_excess(*both, epsilon)
        for pair in _rows_of_pairs(rows, neighbours)
        for both in (pair, pair[::-1])
    )
    return max(excesses, default=0.0)


def epsilon_lower_bound(
    mechanism: Callable,
    dataset: object,
    neighbour: object,
    *,
    trials: int,
    confidence: float = 0.95,
    delta: float = 0.0,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Run a mechanism on two neighbouring data sets and bound its epsilon from below.

    Parameters
    ----------
    mechanism : callable
        Called as ``mechanism(data, rng=generator)`` where its signature takes `rng`, else as
        ``mechanism(data)``. An `rng` that it already has, as a default other than None or bound by
        `functools.partial`, is left to it: a fixed seed has to show. It must not change `data`, nor
        keep anything from one run to the next; one that remembers is built anew for each run.
    dataset, neighbour : object
        Two neighbouring data sets, handed over as they are.
    trials : int
        Runs on each of the two. `largest_certifiable_epsilon` says how far so many can see.
    confidence : float, default 0.95
        Probability with which the bound holds.
    delta : float, default 0.0
        The delta of the claim, in [0, 1).
    rng : numpy.random.Generator, int or None
        Decides the order of the runs, and is the generator handed to the mechanism.

    Returns
    -------
    float
        A number of nats, never negative. If the mechanism is (epsilon, delta)-differentially
        private and its runs are independent of each other, the bound is at most epsilon with
        probability at least `confidence`.

    Raises
    ------
    ValueError
        If a parameter is out of range, if `trials` are too few to certify anything, or if every run
        raised an exception that tells nothing apart: then nothing was audited.
    TypeError
        If the mechanism cannot be called or returns what the audit cannot read.

    Notes
    -----
    For any event S, epsilon >= log((P(M(D) in S) - delta) / P(M(D') in S)). Both probabilities are
    replaced by Clopper-Pearson bounds (Clopper and Pearson, 1934), each at half the error, as in
    Jagielski, Ullman and Oprea (2020). S and the direction are chosen on one half of the runs and
    tested, once, on the other; so the choice needs no correction.

    Clopper-Pearson bounds are for independent runs, and so is the confidence. A mechanism that
    keeps state between runs, such as memoized randomized response, repeats itself: all its runs on
    one data set are one run seen many times, and the bound can exceed epsilon far more often than
    the confidence says (for two coins, five times in eight). Hand over a function that builds the
    mechanism anew and returns all that an observer sees of it in its lifetime, as the second
    example does.

    S is a set of outputs ranked by an estimated likelihood ratio, or the tail of a number: of the
    output, of a coordinate, or of a learned score of all coordinates. A quarter of the runs ranks,
    another one cuts. For arrays of over 32 numbers the 32 whose means differ most are looked at.

    Outputs are numbers, strings, None, arrays, tuples, lists, sets, mappings and dataclasses such
    as a `Release`. The type of an output, a NaN, the sign of a zero and an exception (its type and
    message) are part of what an observer sees, and so of the output. The runs come in random order
    and share one generator: a mechanism that copies the generator it is given repeats itself, and
    is found out. A bound of 0 proves nothing: it is a lower bound.

    Examples
    --------
    >>> def answer(truth, *, rng):
    ...     return truth if rng.random() < 0.75 else 1 - truth
    >>> bound = epsilon_lower_bound(answer, 0, 1, trials=4000, rng=1)
    >>> 0.9 < bound < math.log(3)
    True

    >>> class Memoized:  # keeps its first report, so that a lifetime costs log(3)
    ...     def __init__(self):
    ...         self.kept = {}
    ...     def __call__(self, truth, *, rng):
    ...         if truth not in self.kept:
    ...             self.kept[truth] = answer(truth, rng=rng)
    ...         return self.kept[truth]
    >>> def lifetime(truth, *, rng):
    ...     person = Memoized()
    ...     return [person(truth, rng=rng) for day in range(7)]
    >>> 0.9 < epsilon_lower_bound(lifetime, 0, 1, trials=4000, rng=1) < math.log(3)
    True
    """
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable, got {type(mechanism).__name__}")
    limit = largest_certifiable_epsilon(trials, confidence=confidence, delta=delta)
    if limit <= 0:
        raise ValueError(
            f"trials must be enough to certify a positive epsilon at confidence {confidence} and "
            f"delta {delta}, got {trials}"
        )
    # An unsigned number of numpy's would wrap around where the last runs are counted from the end.
    trials = int(trials)
    runs = _run(mechanism, (dataset, neighbour), trials, np.random.default_rng(rng))
    tests = trials - trials // 2
    error = (1 - confidence) / 2
    event, first, second = _choose_event(runs, tests, error, delta)
    hits = event[:, -tests:].sum(axis=1)
    bound = float(max(0.0, _log_ratio_bound(hits[first], hits[second], tests, error, delta)))
    if bound == 0 and runs.failure is not None:
        raise ValueError("mechanism must return in some run, every run raised") from runs.failure
    return bound


def largest_certifiable_epsilon(
    trials: int, *, confidence: float = 0.95, delta: float = 0.0
) -> float:
    """Return the largest bound that `epsilon_lower_bound` can give after so many runs.

    Parameters
    ----------
    trials : int
        Runs on each of the two data sets; half of them, rounded up, are tested.
    confidence : float, default 0.95
        Probability with which the bound holds, strictly between 0 and 1.
    delta : float, default 0.0
        The delta of the claim, in [0, 1).

    Returns
    -------
    float
        The bound for an event that always happens on one data set and never on the other, in nats;
        minus infinity where not even that says anything. It grows as log(trials).

    Raises
    ------
    ValueError
        If a parameter is out of range.
    TypeError
        If a parameter is of the wrong kind.

    Notes
    -----
    With n tests and a = (1 - confidence) / 2, the bound is log((a^(1/n) - delta) / (1 - a^(1/n))).

    Examples
    --------
    >>> [round(largest_certifiable_epsilon(trials), 1) for trials in (100, 10_000, 1_000_000)]
    [2.6, 7.2, 11.8]
    """
    trials = check_integer("trials", trials, low=4)
    confidence = check_probability("confidence", confidence)
    delta = check_real(
        "delta", delta, low=0.0, high=1.0, high_open=True, allowed="a number in [0, 1)"
    )
    tests = trials - trials // 2
    return float(_log_ratio_bound(tests, 0, tests, (1 - confidence) / 2, delta))


def _check_distribution(output_distribution: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix as floats, or name the row that is not a distribution."""
    name = "output_distribution"
    given = as_array(name, output_distribution)
    if given.ndim != 2 or given.size == 0:
        raise ValueError(f"{name} must be a matrix with a row and a column, got {given.shape}")
    if given.dtype.kind not in "biufO":
        raise TypeError(f"{name} must hold real numbers, got dtype {given.dtype}")
    try:
        rows = given.astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers") from error
    if given.dtype != rows.dtype and (vanished := (rows == 0) & (given != 0)).any():
        raise ValueError(
            f"{name} must hold probabilities that a float can tell from 0, "
            f"row {vanished.any(axis=1).argmax()} has a smaller one"
        )
    improper = ~((rows >= 0) & (rows <= 1 + _SUM_TOLERANCE))
    if improper.any():
        row, column = np.argwhere(improper)[0]
        value = rows[row, column]
        raise ValueError(f"{name} must hold probabilities in [0, 1], row {row} has {value}")
    sums = rows.sum(axis=1)
    row = np.abs(sums - 1).argmax()
    if abs(sums[row] - 1) > _SUM_TOLERANCE:
        raise ValueError(f"{name} must have rows that sum to 1, row {row} sums to {sums[row]}")
    return rows


def _check_pairs(neighbours: Iterable[tuple[int, int]], rows: int) -> NDArray[np.integer]:
    """Return the pairs of row numbers as an (m, 2) array, or refuse them."""
    try:
        pairs = np.array(list(neighbours))
    except ValueError as error:
        raise ValueError("neighbours must be pairs of row numbers") from error
    if pairs.size == 0:
        raise ValueError("neighbours must hold at least one pair, got none")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"neighbours must be pairs of integers, got dtype {pairs.dtype}")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"neighbours must be pairs of row numbers, got shape {pairs.shape}")
    outside = ((pairs < 0) | (pairs >= rows)).any(axis=1)
    if outside.any():
        pair = tuple(pairs[outside.argmax()].tolist())
        raise ValueError(f"neighbours must be row numbers in [0, {rows}), got {pair}")
    return pairs


def _rows_of_pairs(
    rows: NDArray, neighbours: Iterable[tuple[int, int]] | None
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield both sides of the pairs to compare, a block at a time; None stands for all pairs."""
    if neighbours is None:
        yield from (
            (rows[:i], np.broadcast_to(rows[i], (i, rows.shape[1]))) for i in range(1, len(rows))
        )
        return
    pairs = _check_pairs(neighbours, len(rows))
    block = max(1, _PAIR_BLOCK // (2 * rows.shape[1]))
    for start in range(0, len(pairs), block):
        first, second = pairs[start : start + block].T
        yield rows[first], rows[second]


def _largest_loss(high: NDArray, low: NDArray) -> float:
    """Return the largest log(high / low), where high > 0."""
    possible = high > 0
    return float(_losses(high[possible], low[possible]).max())


def _largest_excess(first: NDArray, second: NDArray, epsilon: float) -> float:
    """Return the largest sum of the positive parts of first - exp(epsilon) second, over rows."""
    above = first > second
    high = first[above]
    excess = np.zeros(first.shape)
    # 1 - exp(epsilon - loss) keeps its digits where the two terms cancel, and never overflows.
    excess[above] = -high * np.expm1(np.minimum(epsilon - _losses(high, second[above]), 0))
    return float(excess.sum(axis=1).max())


def _losses(high: NDArray, low: NDArray) -> NDArray[np.float64]:
    """Return log(high / low) for 0 < high and 0 <= low <= high, infinite where low is 0."""
    with np.errstate(divide="ignore"):
        loss = np.log(high) - np.log(low)
    # Close probabilities cancel in a difference of logarithms; distant ones overflow in a ratio.
    near = high <= 2 * low
    loss[near] = np.log1p((high[near] - low[near]) / low[near])
    return loss


def _log_ratio_bound(
    hits: ArrayLike, others: ArrayLike, tests: int, error: float, delta: float
) -> NDArray[np.float64]:
    """Bound log((p - delta) / q) from below, seeing `hits` and `others` among `tests` runs each."""
    hits, others = np.asarray(hits, dtype=float), np.asarray(others, dtype=float)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), tests - hits + 1, error), 0.0)
    rest = np.maximum(tests - others, 1e-9)
    high = np.where(others < tests, betaincinv(others + 1, rest, 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


@dataclasses.dataclass(slots=True)
class _Runs:
    """All outputs, each split into the numbers it holds and its structure, which is the rest.

    `structures` and `identities` have shape (2, trials), a row a data set: two outputs share an
    identity if they agree bit by bit. `numbers[s]` has a row for each output of structure s, in
    the order of ``structures.ravel()``. `failure` is an exception if all runs ended in one.
    """

    structures: NDArray[np.intp]
    identities: NDArray[np.intp]
    numbers: dict[int, NDArray]
    failure: Exception | None

    @property
    def learn(self) -> slice:
        return slice(0, self.structures.shape[1] // 4)

    @property
    def choose(self) -> slice:
        return slice(self.structures.shape[1] // 4, self.structures.shape[1] // 2)


def _run(
    mechanism: Callable, datasets: tuple[object, object], trials: int, rng: np.random.Generator
) -> _Runs:
    """Run the mechanism `trials` times on each data set, in random order."""
    options = {"rng": rng} if _takes_rng(mechanism) else {}
    structures, identities = np.empty((2, 2 * trials), dtype=np.intp)
    bits = [b""] * (2 * trials)
    known_structures: dict[Hashable, int] = {}
    known_identities: dict[tuple[int, bytes], int] = {}
    dtypes: dict[int, np.dtype] = {}
    failures: list[Exception] = []
    for slot in rng.permutation(2 * trials).tolist():
        structure, numbers = _observe(mechanism, datasets[slot >= trials], options, failures)
        label = known_structures.setdefault(structure, len(known_structures))
        dtypes[label] = numbers.dtype
        structures[slot], bits[slot] = label, numbers.tobytes()
        identity = label, bits[slot]
        identities[slot] = known_identities.setdefault(identity, len(known_identities))
    return _Runs(
        structures.reshape(2, trials),
        identities.reshape(2, trials),
        _stack(structures, bits, dtypes),
        failures[0] if len(failures) == 2 * trials else None,
    )


def _observe(
    mechanism: Callable, data: object, options: dict, failures: list[Exception]
) -> tuple[Hashable, NDArray]:
    """Run the mechanism once; return its output as a structure and a flat copy of its numbers."""
    try:
        output = mechanism(data, **options)
    except Exception as error:
        failures.append(error.with_traceback(None))
        return ("raised", type(error), str(error)), np.empty(0)
    numbers: list = []
    structure = _read(output, numbers)
    if any(isinstance(part, np.ndarray) for part in numbers):
        return structure, np.hstack(numbers) if len(numbers) > 1 else numbers[0]
    return structure, np.array(numbers, dtype=float)


def _stack(structures: NDArray, bits: list[bytes], dtypes: dict[int, np.dtype]) -> dict:
    """Gather the numbers of each structure that has any into one matrix, a row an output."""
    rows: dict[int, list[bytes]] = {}
    for structure, content in zip(structures.tolist(), bits, strict=True):
        if content:
            rows.setdefault(structure, []).append(content)
    return {
        structure: np.frombuffer(b"".join(group), dtypes[structure]).reshape(len(group), -1)
        for structure, group in rows.items()
    }


def _takes_rng(mechanism: Callable) -> bool:
    """Whether the mechanism waits to be given a generator by the keyword `rng`."""
    if isinstance(mechanism, partial) and "rng" in mechanism.keywords:
        return False
    try:
        signature = inspect.signature(mechanism)
        signature.bind(None, rng=None)
    except (TypeError, ValueError):
        return False
    given = signature.parameters.get("rng")
    return given is None or given.default in (inspect.Parameter.empty, None)


@singledispatch
def _read(output: object, numbers: list) -> Hashable:
    """Return all of an output but its numbers, and append those to `numbers`."""
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = [field.name for field in dataclasses.fields(output)]
        return type(output), *(_read(getattr(output, name), numbers) for name in fields)
    raise TypeError(
        "mechanism must return numbers, strings, None, arrays, tuples, lists, sets, mappings or "
        f"dataclasses, got {type(output).__name__}"
    )


@_read.register(str)
@_read.register(bytes)
@_read.register(type(None))
@_read.register(Number)
def _read_whole(output: Hashable, numbers: list) -> Hashable:
    return type(output), output


@_read.register(float)
@_read.register(np.bool_)
@_read.register(np.floating)
def _read_number(output: float | np.bool_ | np.floating, numbers: list) -> Hashable:
    numbers.append(float(output))
    return type(output)


@_read.register(Integral)
def _read_integer(output: Integral, numbers: list) -> Hashable:
    read = _read_number if abs(output) <= _EXACT_INTEGER else _read_exact
    return read(output, numbers)


@_read.register(Rational)
@_read.register(Decimal)
def _read_exact(output: Rational | Decimal, numbers: list) -> Hashable:
    try:
        nearest = float(output)
    except OverflowError:
        return _read_whole(output, numbers)
    # The hash is of all digits: it tells apart what the nearest float does not.
    numbers.extend([nearest, float(hash(output) % _EXACT_INTEGER)])
    return type(output), "exact"


@_read.register(complex)
@_read.register(np.complexfloating)
@_read.register(np.longdouble)
def _read_parts(output: complex | np.inexact, numbers: list) -> Hashable:
    numbers.extend(_parts(np.asarray(output)))
    return type(output)


@_read.register
def _read_array(output: np.ndarray, numbers: list) -> Hashable:
    kind = type(output), output.dtype.str, output.shape
    if output.dtype.names:
        return *kind, *(_read(output[name], numbers) for name in output.dtype.names)
    if output.dtype.hasobject:
        return *kind, _read(output.tolist(), numbers)
    if output.dtype.kind not in "biufcmM":
        return *kind, output.tobytes()
    dates = output.dtype.kind in "mM"
    parts = _parts(output.astype(np.int64) if dates else np.asarray(output))
    numbers.extend(parts)
    return *kind, len(parts)


@_read.register
def _read_masked_array(output: np.ma.MaskedArray, numbers: list) -> Hashable:
    mask = np.ma.getmaskarray(output)
    return type(output), _read_array(mask, numbers), _read_array(output.data, numbers)


def _parts(array: NDArray) -> list[NDArray]:
    """Return flat arrays that floats can hold and that tell these numbers apart, bit by bit."""
    array = array.ravel()
    if array.dtype.kind == "c":
        return [*_parts(array.real), *_parts(array.imag)]
    if array.dtype.itemsize < 8 or array.size == 0:
        return [array]
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(invalid="ignore", over="ignore"):
            nearest = array.astype(float)
            return [nearest, (array - nearest).astype(float)]
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > _EXACT_INTEGER:
        low = array & 2047
        return [(array - low).astype(float), low.astype(float)]
    return [array]


@_read.register(tuple)
@_read.register(list)
def _read_sequence(output: list | tuple, numbers: list) -> Hashable:
    return type(output), *[_read(item, numbers) for item in output]


@_read.register(set)
@_read.register(frozenset)
def _read_set(output: set | frozenset, numbers: list) -> Hashable:
    return type(output), frozenset((type(item), item) for item in output)


@_read.register
def _read_mapping(output: Mapping, numbers: list) -> Hashable:
    return type(output), *[(type(key), key, _read(output[key], numbers)) for key in output]


def _choose_event(
    runs: _Runs, tests: int, error: float, delta: float
) -> tuple[NDArray[np.bool_], int, int]:
    """Return the most promising event, and which data set it should favour over which."""
    nothing = np.zeros(runs.structures.shape, dtype=bool)
    best, choice = -math.inf, (nothing, 0, 1)
    for ranks in _rankings(runs):
        count = int(ranks.max()) + 1
        promises = _promises(ranks[:, runs.choose], count, tests, error / _CAUTION, delta)
        if promises.size and promises.max() > best:
            best = promises.max()
            first, side, cut = np.unravel_index(promises.argmax(), promises.shape)
            below = ranks <= cut
            choice = (~below if side else below, int(first), 1 - int(first))
    return choice


def _promises(
    ranks: NDArray[np.intp], count: int, tests: int, error: float, delta: float
) -> NDArray[np.float64]:
    """Return the bound to expect from each cut of a ranking, of shape (2, 2, count - 1).

    Axes: the data set on which the event is likelier; below or above the cut; the cut.
    """
    runs = ranks.shape[1]
    below = np.array([np.bincount(row, minlength=count) for row in ranks]).cumsum(axis=1)[:, :-1]
    hits = np.stack([below, runs - below]) / runs * tests
    bounds = [
        _log_ratio_bound(hits[:, first], hits[:, 1 - first], tests, error, delta)
        for first in (0, 1)
    ]
    return np.stack(bounds)


def _rankings(runs: _Runs) -> Iterator[NDArray[np.intp]]:
    """Yield several ways to rank all outputs, each an integer array of shape (2, trials)."""
    structures, learn = runs.structures, runs.learn
    yield _ranked(structures, _log_ratios(structures, learn))
    yield _ranked(runs.identities, _log_ratios(runs.identities, learn))
    seen = np.bincount(structures[:, learn].ravel(), minlength=int(structures.max()) + 1)
    order = np.argsort(-seen, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    # Each common structure has a cell of its own beyond all the bins; the rare ones share one.
    others = _EVERY_VALUE + 1 + np.minimum(places, _STRUCTURES)[structures]
    for structure in order[:_STRUCTURES].tolist():
        inside = structures == structure
        if structure in runs.numbers and inside[:, learn].any(axis=1).all():
            yield from _rankings_of_numbers(runs.numbers[structure], inside, others, learn)


def _rankings_of_numbers(
    matrix: NDArray, inside: NDArray[np.bool_], others: NDArray[np.intp], learn: slice
) -> Iterator[NDArray[np.intp]]:
    """Yield rankings by each coordinate of one structure, and by learned scores of them all."""
    learned = np.zeros(inside.shape, dtype=bool)
    learned[:, learn] = True
    learned = learned[inside]
    first = np.repeat([True, False], inside.sum(axis=1))
    columns = _telling_columns(matrix, learned, first)
    likelihood = np.zeros(len(learned))
    for column in columns.T:
        cells, ratios = yield from _rankings_of_score(column, inside, others, learn, learned)
        if columns.shape[1] > 1:
            repeats = _repeats(column, learned)
            cells_of_repeats = np.full(inside.shape, int(repeats.max()) + 1)
            cells_of_repeats[inside] = repeats
            yield _ranked(cells_of_repeats, _log_ratios(cells_of_repeats, learn))
            likelihood += ratios[cells[inside]]
    if columns.shape[1] > 1:
        for score in (likelihood, _linear_score(columns, learned, first)):
            yield from _rankings_of_score(score, inside, others, learn, learned)


def _rankings_of_score(
    score: NDArray[np.float64],
    inside: NDArray[np.bool_],
    others: NDArray[np.intp],
    learn: slice,
    learned: NDArray[np.bool_],
) -> Generator[NDArray[np.intp], None, tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Yield the tails of a score, then its bins by likelihood ratio; return the bins and ratios."""
    cells = others.copy()
    cells[inside] = _bins(score, learned)
    ratios = _log_ratios(cells, learn)
    yield cells
    yield _ranked(cells, ratios)
    return cells, ratios


def _repeats(column: NDArray[np.float64], learned: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return labels by exact bits for values that came twice while learning; others share one."""
    bits = column.view(np.uint64)
    values, counts = np.unique(bits[learned], return_counts=True)
    values = np.append(values[counts > 1], np.uint64(2**64 - 1))
    places = np.searchsorted(values, bits)
    return np.where(values[places] == bits, places, len(values) - 1)


def _log_ratios(cells: NDArray[np.intp], learn: slice) -> NDArray[np.float64]:
    """Estimate the log-likelihood ratio of every cell from the runs set aside to learn from."""
    count = int(cells.max()) + 1
    first, second = (np.bincount(row[learn], minlength=count) for row in cells)
    return np.log((first + 0.5) / (second + 0.5))


def _ranked(cells: NDArray[np.intp], ratios: NDArray[np.float64]) -> NDArray[np.intp]:
    """Replace each cell by the rank of its ratio; cells of one ratio are interchangeable."""
    return np.unique(ratios, return_inverse=True)[1][cells]


def _bins(values: NDArray[np.float64], learned: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return bin numbers from low to high: each value its own while few, else quantiles."""
    known = np.sort(values[learned])
    edges = np.unique(known)
    if len(edges) >= _EVERY_VALUE:
        even = np.linspace(0, 1, 65)[1:-1]
        tail = 0.5 ** np.arange(7, max(8, math.log2(len(known)) - 2))
        levels = np.concatenate([tail, even, 1 - tail])
        edges = np.unique(known[(levels * (len(known) - 1)).astype(np.intp)])
    return np.searchsorted(edges, values)


def _telling_columns(
    matrix: NDArray, learned: NDArray[np.bool_], first: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the columns that vary, as floats; of many, those whose means differ most."""
    bits = np.ascontiguousarray(matrix[learned], dtype=float).view(np.uint64)
    varies = (bits != bits[0]).any(axis=0)
    columns = matrix[:, varies]
    if columns.shape[1] > _COLUMNS:
        ones, others = (
            _scaled(columns[learned & side], columns[learned]) for side in (first, ~first)
        )
        gaps = np.abs(ones.mean(axis=0) - others.mean(axis=0))
        columns = columns[:, np.sort(np.argsort(-gaps, kind="stable")[:_COLUMNS])]
    return np.asfortranarray(columns, dtype=float)


def _scaled(values: NDArray, reference: NDArray) -> NDArray[np.float64]:
    """Centre and scale columns by their middle half, so that no outlier or infinity rules them."""
    reference = np.nan_to_num(reference.astype(float), posinf=1e300, neginf=-1e300)
    low, middle, high = np.quantile(reference, (0.25, 0.5, 0.75), axis=0)
    spread = np.where(high > low, high - low, 1.0)
    values = np.nan_to_num(values.astype(float), posinf=1e300, neginf=-1e300)
    return np.clip(values / spread - middle / spread, -100.0, 100.0)


def _linear_score(
    columns: NDArray[np.float64], learned: NDArray[np.bool_], first: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return Fisher's linear discriminant; it sees through noise that coordinates share."""
    scaled = _scaled(columns, columns[learned])
    ones, others = scaled[learned & first], scaled[learned & ~first]
    centred = np.vstack([ones - ones.mean(axis=0), others - others.mean(axis=0)])
    spread = centred.T @ centred / len(centred)
    ridge = 1e-9 * max(1.0, np.trace(spread)) * np.eye(len(spread))
    return scaled @ np.linalg.solve(spread + ridge, ones.mean(axis=0) - others.mean(axis=0))
