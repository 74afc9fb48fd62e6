"""The statistical check: runs on two neighbouring data sets bound epsilon from below.

Outputs are read into columns of numbers and of labels. Some of the runs rank the outputs, others
choose an event, and the last ones, which neither has seen, test it.
"""

import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dpnotes._checks import (
    CONFIDENCE,
    check_delta,
    check_flag,
    check_integer,
    check_probability,
    check_rng,
)
from dpnotes.audit._neighbours import make_copier
from dpnotes.audit._outputs import MechanismFailed, Reading, read_exception, read_returned

_EVERY_VALUE = 256  # with fewer distinct numbers, each has a bin of its own
_COLUMNS = 32  # coordinates of an output that are ranked one by one
_STRUCTURES = 4  # structures whose numbers are ranked: the most common ones
_EVERY_STRUCTURE = -1  # the key of the columns that outputs of all structures have
_CAUTION = 30  # divides the error while choosing, because the best of many events looks too good


def epsilon_lower_bound(
    mechanism: Callable,
    dataset: object,
    neighbour: object,
    *,
    trials: int,
    confidence: float = CONFIDENCE,
    delta: float = 0.0,
    factory: bool = False,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Run a mechanism on two neighbouring data sets and bound its epsilon from below.

    Parameters
    ----------
    mechanism : callable
        Called as ``mechanism(data, rng=generator)`` where its signature takes `rng`, else as
        ``mechanism(data)``. An `rng` that it already has, as a default other than None or bound by
        `functools.partial`, is left alone: a fixed seed has to show. It must not keep anything from
        one run to the next; for one that remembers, see `factory`.
    dataset, neighbour : object
        Two neighbouring data sets. Each run is given a copy of its own.
    trials : int
        Runs on each of the two. `largest_certifiable_epsilon` says how large a bound they can give.
    confidence : float
        Probability with which the bound holds.
    delta : float, default 0.0
        The delta of the claim, in [0, 1).
    factory : bool, default False
        Whether `mechanism` builds the mechanism, as its class does. It is called before every run,
        with `rng` where its signature takes it and otherwise with nothing, and what it builds is
        run once.
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
        If the mechanism cannot be called, the data cannot be copied, `factory` is not a boolean, or
        an output is of a type that the audit does not read, a subclass of those below included.
    MechanismFailed
        If the mechanism does not answer from its process, or is a factory and builds something
        that cannot be called, or if no two of its outputs can be compared: then nothing was judged.

    Notes
    -----
    For any event S, epsilon >= log((P(M(D) in S) - delta) / P(M(D') in S)). Both probabilities are
    replaced by Clopper-Pearson bounds (Clopper and Pearson, 1934), each at half the error, as in
    Jagielski, Ullman and Oprea (2020). S and the direction are chosen on one half of the runs and
    tested, once, on the other; so the choice needs no correction.

    Clopper-Pearson bounds are for independent runs, and so is the confidence. A mechanism that
    keeps state between runs, such as memoized randomized response, repeats itself: all its runs on
    one data set are one run seen many times, and the bound can exceed epsilon far more often than
    the confidence says (for two coins, five times in eight). Build such a mechanism anew for each
    run, with `factory`, or with a function that builds it and returns all that an observer sees of
    it in its lifetime, as in the examples. What is built anew must not share memory with what was
    built before: an attribute of its class or a variable of its module stays as it is, and for
    those there is ``in_a_process(mechanism, fresh=True)``.

    S is a set of outputs ranked by an estimated likelihood ratio, or the tail of a number: of the
    output, of a coordinate, or of a learned score of all coordinates. Texts, keys and the elements
    of sets are read word by word, and at their ends letter by letter, so that a run id or a time
    stamp beside the truth hides nothing. One quarter of the runs ranks the outputs, and another
    chooses where to cut. In arrays of more than 32 numbers only the 32 whose means differ most are
    looked at.

    Outputs are numbers, strings, None, arrays of numbers or strings, tuples, lists, sets, dicts and
    dataclasses such as a `Release`, of exactly these types: a subclass could show one value to the
    audit and another to everybody else. Convert anything else, such as a `Fraction`, first. The
    type of an output, a NaN, the sign of a zero and an exception (its type, its message, what it
    holds and what it came from), an exit included, are part of what an observer sees, and so of the
    output. The runs come in random order and share one generator: a mechanism that copies the
    generator it is given repeats itself, and is found out. A bound of 0 proves nothing: it is a
    lower bound.

    For code that you do not trust, pass ``in_a_process(mechanism)``: code that runs in this process
    can reach and change whatever the audit holds.

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
    >>> bound = epsilon_lower_bound(Memoized, 0, 1, trials=4000, factory=True, rng=1)
    >>> 0.9 < bound < math.log(3)
    True
    >>> def lifetime(truth, *, rng):
    ...     person = Memoized()
    ...     return [person(truth, rng=rng) for day in range(7)]
    >>> 0.9 < epsilon_lower_bound(lifetime, 0, 1, trials=4000, rng=1) < math.log(3)
    True
    """
    trials, confidence, delta = check_audit(mechanism, trials, confidence, delta, factory)
    rng = check_rng(rng)
    run = build_for_each_run(mechanism, rng) if factory else mechanism
    return audit_pair(run, (dataset, neighbour), trials, 1 - confidence, delta, rng).bound


def largest_certifiable_epsilon(
    trials: int, *, confidence: float = CONFIDENCE, delta: float = 0.0
) -> float:
    """Return the largest bound that `epsilon_lower_bound` can give with this many runs.

    Parameters
    ----------
    trials : int
        Runs on each of the two data sets; half of them, rounded up, are tested.
    confidence : float
        Probability with which the bound holds, strictly between 0 and 1.
    delta : float, default 0.0
        The delta of the claim, in [0, 1).

    Returns
    -------
    float
        The bound for an event that always happens on one data set and never on the other, in nats;
        minus infinity where not even that says anything. It grows as log(trials).

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
    delta = check_delta(delta)
    tests = trials - trials // 2
    return float(_log_ratio_bound(tests, 0, tests, (1 - confidence) / 2, delta))


def _log_ratio_bound(
    hits: NDArray | int, others: NDArray | int, tests: int, error: float, delta: float
) -> NDArray:
    """Bound log((p - delta) / q) from below, seeing `hits` and `others` among `tests` runs each."""
    low = np.where(hits > 0, betaincinv(hits, tests - hits + 1, error), 0.0)
    high = np.where(others < tests, betaincinv(others + 1, tests - others, 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def check_audit(
    mechanism: Callable, trials: int, confidence: float, delta: float, factory: bool
) -> tuple[int, float, float]:
    """Return the parameters of an audit as plain numbers, or refuse one that could show nothing."""
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable, got {type(mechanism).__name__}")
    check_flag("factory", factory)
    if largest_certifiable_epsilon(trials, confidence=confidence, delta=delta) <= 0:
        raise ValueError(
            f"trials must be enough to certify a positive epsilon at confidence {confidence} and "
            f"delta {delta}, got {trials}"
        )
    return int(trials), float(confidence), float(delta)


class Finding(NamedTuple):
    """What an audit of two data sets has found.

    `event` has shape (2, trials), a row for each data set, and says which outputs are in it. `hits`
    holds, for both data sets, how many of the `tests` runs that test the event are in it.
    """

    bound: float
    event: NDArray[np.bool_]
    hits: tuple[int, int]
    tests: int
    outputs: "Outputs"


def audit_pair(
    run: Callable, pair: tuple, trials: int, error: float, delta: float, rng: np.random.Generator
) -> Finding:
    """Run the mechanism, choose an event on one half of the runs, and test it on the other."""
    outputs = _collect_outputs(run, pair, trials, rng)
    _, _, test = _split_runs(trials)
    tests = test.stop - test.start
    event, first = _choose_event(outputs, tests, error / 2, delta)
    hits = event[:, test].sum(axis=1)
    bound = float(max(0.0, _log_ratio_bound(hits[first], hits[1 - first], tests, error / 2, delta)))
    if bound == 0:
        _require_something_in_common(outputs)
    if bound == 0 and all(isinstance(example, BaseException) for example in outputs.examples):
        message = "mechanism must return in some run, every run raised"
        raise ValueError(message) from outputs.examples[0]
    return Finding(bound, event, tuple(hits.tolist()), tests, outputs)


def _require_something_in_common(outputs: "Outputs") -> None:
    """Refuse outputs of which nothing could be learnt, since no two of them can be compared."""
    learn, _, _ = _split_runs(outputs.structures.shape[1])
    runs = 2 * learn.stop
    if len(np.unique(outputs.identities[:, learn])) < 0.9 * runs:
        return
    _, sizes = np.unique(outputs.structures[:, learn], return_counts=True)
    columns = chain.from_iterable(rows.T for rows in outputs.numbers.values())
    labels = chain.from_iterable(rows.T for rows in outputs.labels.values())
    can_be_compared = (
        outputs.words.size > 0
        or any(np.isnan(c).mean() < 0.5 and (c != c[0]).any() for c in columns)
        or any(np.ptp(_pool_rare(label, slice(None))) > 0 for label in labels)
    )
    if np.sort(sizes)[:-_STRUCTURES].sum() > runs / 2 or not can_be_compared:
        raise MechanismFailed(
            "mechanism must return outputs that can be compared: hardly two runs gave the same, "
            "and most have a form that few share, so nothing can be said of its privacy"
        )


def build_for_each_run(factory: Callable, rng: np.random.Generator) -> Callable:
    """Return a function that builds a mechanism, and runs it once."""
    given = {"rng": rng}
    options = given if takes_rng(factory, 0) else {}

    def run_once(data: object) -> object:
        mechanism = factory(**options)
        if not callable(mechanism):
            kind = type(mechanism).__name__
            raise MechanismFailed(f"mechanism must build what can be called, built {kind}")
        return mechanism(data, **(given if takes_rng(mechanism) else {}))

    return run_once


def takes_rng(mechanism: Callable, arguments: int = 1) -> bool:
    """Whether the mechanism is to be given a generator as `rng`, beside its other arguments."""
    if isinstance(mechanism, partial) and "rng" in mechanism.keywords:
        return False
    try:
        signature = inspect.signature(mechanism)
        signature.bind(*[None] * arguments, rng=None)
    except (TypeError, ValueError):
        return False
    given = signature.parameters.get("rng")
    return given is None or given.default in (inspect.Parameter.empty, None)


class Outputs(NamedTuple):
    """The outputs of all runs, each read into its structure and its columns.

    `structures` and `identities` have shape (2, trials), a row for each data set. Two outputs share
    an identity if they agree bit by bit, and ``examples[identity]`` is a copy of one of them.
    ``numbers[structure]`` and ``labels[structure]`` have a row for each output of this structure,
    in the order of ``structures.ravel()``; a label is a whole number. Those of `_EVERY_STRUCTURE`
    have one for each output: its first and last numbers, labels and parts. ``words`` has a row for
    each output, in the same order, and says which of the commonest words it holds.
    """

    structures: NDArray
    identities: NDArray
    numbers: dict[int, NDArray]
    labels: dict[int, NDArray]
    words: NDArray
    examples: list[object]


def _split_runs(trials: int) -> tuple[slice, slice, slice]:
    """Return the runs that learn how to rank outputs, those that choose an event and the others."""
    return slice(0, trials // 4), slice(trials // 4, trials // 2), slice(trials // 2, trials)


def _collect_outputs(
    mechanism: Callable, datasets: tuple[object, object], trials: int, rng: np.random.Generator
) -> Outputs:
    """Run the mechanism `trials` times on each data set, in random order."""
    options = {"rng": rng} if takes_rng(mechanism) else {}
    copies = [make_copier(*named) for named in zip(("dataset", "neighbour"), datasets, strict=True)]
    structures, identities = np.empty((2, 2 * trials), dtype=np.intp)
    readings = [Reading()] * (2 * trials)
    known_structures: dict[Hashable, int] = {}
    known_identities: dict[Hashable, int] = {}
    examples: list[object] = []
    for slot in rng.permutation(2 * trials).tolist():
        readings[slot] = reading = Reading()
        try:
            output = mechanism(copies[slot >= trials](), **options)
        except (KeyboardInterrupt, MechanismFailed):  # the user stops it, or there is no output
            raise
        except BaseException as error:  # an exit, too, is what an observer sees
            output = error.with_traceback(None)
            structure = read_exception(output, reading)
        else:
            structure = read_returned(output, reading)
        reading.numbers = reading.copy_numbers()
        label = known_structures.setdefault(structure, len(known_structures))
        whole = (label, reading.numbers.tobytes(), *reading.labels, *reading.words)
        identity = known_identities.setdefault(whole, len(examples))
        structures[slot], identities[slot] = label, identity
        if identity == len(examples):
            # Some exceptions cannot be copied.
            examples.append(output if isinstance(output, BaseException) else copy.deepcopy(output))
    kinds = [kind if isinstance(kind, tuple) else (kind,) for kind in known_structures]
    ends = [reading.take_ends(kinds[k]) for reading, k in zip(readings, structures, strict=True)]
    keys = np.append(structures, np.full_like(structures, _EVERY_STRUCTURE))
    return Outputs(
        structures.reshape(2, -1),
        identities.reshape(2, -1),
        _stack(keys, [reading.numbers for reading in readings + ends]),
        _stack(keys, _number_labels([reading.labels for reading in readings + ends])),
        _find_words([reading.words for reading in readings], trials),
        examples,
    )


def _number_labels(rows: list[list[Hashable]]) -> list[NDArray]:
    """Replace every label by a whole number of its own."""
    known: dict[Hashable, int] = {}
    return [np.array([known.setdefault(one, len(known)) for one in row], np.intp) for row in rows]


def _find_words(rows: list[list[Hashable]], trials: int) -> NDArray[np.bool_]:
    """Say which outputs hold the words whose shares differ most in the runs that learn."""
    learn, _, _ = _split_runs(trials)
    held = [dict.fromkeys(row) for row in rows]  # no set, whose order differs between processes
    one, other = (Counter(chain.from_iterable(held[first:][learn])) for first in (0, trials))
    common = [word for word, times in (one + other).items() if times > 1]
    common.sort(key=lambda word: -abs(one[word] - other[word]))
    chosen = common[:_COLUMNS]
    return np.array([[word in row for word in chosen] for row in held], dtype=bool)


def _stack(structures: NDArray, rows: list[NDArray]) -> dict[int, NDArray]:
    """Gather the columns of each structure that has any into one matrix, a row an output."""
    found: dict[int, list[NDArray]] = {}
    for structure, row in zip(structures.tolist(), rows, strict=True):
        if row.size:
            found.setdefault(structure, []).append(row)
    return {label: np.concatenate(rows).reshape(len(rows), -1) for label, rows in found.items()}


def _choose_event(
    outputs: Outputs, tests: int, error: float, delta: float
) -> tuple[NDArray[np.bool_], int]:
    """Return the most promising event, and the data set that it should favour."""
    _, choose, _ = _split_runs(outputs.structures.shape[1])
    best, event, favoured = -math.inf, np.zeros(outputs.structures.shape, dtype=bool), 0
    for ranks in _rank_outputs(outputs):
        bounds = _expect_bounds(ranks[:, choose], int(ranks.max()), tests, error / _CAUTION, delta)
        if bounds.size and bounds.max() > best:
            best = bounds.max()
            first, side, cut = np.unravel_index(bounds.argmax(), bounds.shape)
            event, favoured = (ranks > cut if side else ranks <= cut), int(first)
    return event, favoured


def _expect_bounds(ranks: NDArray, cuts: int, tests: int, error: float, delta: float) -> NDArray:
    """Return the bound to expect from each cut of a ranking, of shape (2, 2, cuts).

    Axes: the data set on which the event is likelier; below or above the cut; the cut.
    """
    runs = ranks.shape[1]
    below = np.array([np.bincount(row, minlength=cuts + 1).cumsum()[:-1] for row in ranks])
    hits = np.stack([below, runs - below], axis=1) / runs * tests
    return _log_ratio_bound(hits, hits[::-1], tests, error, delta)


def _rank_outputs(outputs: Outputs) -> Iterator[NDArray]:
    """Yield several ways to rank all outputs, each an integer array of shape (2, trials)."""
    structures = outputs.structures
    learn, _, _ = _split_runs(structures.shape[1])
    yield _rank_cells(structures, learn)
    yield _rank_cells(outputs.identities, learn)
    seen = np.bincount(structures[:, learn].ravel(), minlength=int(structures.max()) + 1)
    order = np.argsort(-seen, kind="stable")
    places = np.argsort(order)
    # Each common structure has a cell of its own beyond all the bins; the rare ones share one.
    others = _EVERY_VALUE + 1 + np.minimum(places, _STRUCTURES)[structures]
    for structure in order[:_STRUCTURES].tolist():
        inside = structures == structure
        if inside[:, learn].any(axis=1).all():
            columns = outputs.numbers.get(structure), outputs.labels.get(structure)
            yield from _rank_by_columns(*columns, inside, others, learn)
    everywhere = np.ones(structures.shape, dtype=bool)
    yield from _rank_by_columns(None, outputs.words.astype(np.intp), everywhere, 0, learn)
    if np.count_nonzero(seen) > _STRUCTURES:
        ends = outputs.numbers[_EVERY_STRUCTURE], outputs.labels[_EVERY_STRUCTURE]
        yield from _rank_by_columns(*ends, everywhere, 0, learn)


def _rank_by_columns(
    matrix: NDArray | None, labels: NDArray | None, inside: NDArray, others: ArrayLike, learn: slice
) -> Iterator[NDArray]:
    """Yield rankings of the outputs inside by each of their columns, and by scores of them all."""
    row, run = np.nonzero(inside)
    learned, first = (learn.start <= run) & (run < learn.stop), row == 0
    none = np.empty((len(run), 0), dtype=np.intp)
    columns = _select_columns(none if matrix is None else matrix, learned, first)
    names = _select_labels(none if labels is None else labels, learned, first)
    has_several = columns.shape[1] + len(names) > 1
    likelihood = np.zeros(len(learned))
    for name in names:
        cells = _fill_cells(name, inside, name.max() + 1)
        yield _rank_cells(cells, learn)
        likelihood += _estimate_log_ratios(cells, learn)[name]
    for column in columns.T:
        cells = _fill_cells(_bin_values(column, learned), inside, others)
        yield cells
        yield _rank_cells(cells, learn)
        if has_several:
            repeats = _pool_rare(column.view(np.uint64), learned)
            yield _rank_cells(_fill_cells(repeats, inside, repeats.max() + 1), learn)
            likelihood += _estimate_log_ratios(cells, learn)[cells[inside]]
    if has_several:
        linear = [_score_linearly(columns, learned, first)] if columns.shape[1] > 1 else []
        for score in (likelihood, *linear):
            cells = _fill_cells(_bin_values(score, learned), inside, others)
            yield cells
            yield _rank_cells(cells, learn)


def _fill_cells(labels: NDArray, inside: NDArray, others: ArrayLike) -> NDArray:
    """Return the labels in their places inside, and those of the others elsewhere."""
    cells = np.full(inside.shape, others)
    cells[inside] = labels
    return cells


def _estimate_log_ratios(cells: NDArray, learn: slice) -> NDArray:
    """Estimate the log-likelihood ratio of every cell from the runs set aside to learn from."""
    count = int(cells.max()) + 1
    first, second = (np.bincount(row[learn], minlength=count) for row in cells)
    return np.log((first + 0.5) / (second + 0.5))


def _rank_cells(cells: NDArray, learn: slice) -> NDArray:
    """Replace each cell by the rank of its ratio; cells of one ratio are interchangeable."""
    return np.unique(_estimate_log_ratios(cells, learn), return_inverse=True)[1][cells]


def _select_labels(labels: NDArray, learned: NDArray, first: NDArray) -> list[NDArray]:
    """Return the columns of labels that vary, rare ones pooled; of many, those that differ most."""
    pooled = (_pool_rare(column, learned) for column in labels.T)
    found = [column for column in pooled if np.ptp(column[learned]) > 0]
    if len(found) > _COLUMNS:
        side = np.where(first[learned], 1, -1)
        gaps = [np.abs(np.bincount(column[learned], side)).max() for column in found]
        found = [found[place] for place in np.argsort(gaps)[: -_COLUMNS - 1 : -1]]
    return found


def _pool_rare(values: NDArray, learned: NDArray | slice) -> NDArray:
    """Return places for the values that came twice while learning; others share the last one."""
    known, counts = np.unique(values[learned], return_counts=True)
    kept = np.append(known[counts > 1], np.iinfo(values.dtype).max)
    places = np.searchsorted(kept, values)
    return np.where(kept[places] == values, places, len(kept) - 1)


def _bin_values(values: NDArray, learned: NDArray) -> NDArray:
    """Return bin numbers from low to high: each value its own while few, else quantiles.

    NaN is above all numbers, in a bin without them.
    """
    known = np.sort(values[learned])
    edges = np.unique(known)
    if len(edges) >= _EVERY_VALUE:
        tail = 0.5 ** np.arange(7, max(8, math.log2(len(known)) - 2))
        levels = np.concatenate([tail, np.linspace(0, 1, 65)[1:-1], 1 - tail])
        edges = np.unique(known[(levels * (len(known) - 1)).astype(np.intp)])
    return np.searchsorted(edges, values) + np.isnan(values)


def _select_columns(matrix: NDArray, learned: NDArray, first: NDArray) -> NDArray:
    """Return the columns that vary, as floats; of many, those whose means differ most."""
    bits = np.ascontiguousarray(matrix[learned], dtype=float).view(np.uint64)
    columns = matrix[:, (bits != bits[0]).any(axis=0)]
    if columns.shape[1] > _COLUMNS:
        scaled, side = _scale_columns(columns[learned], slice(None)), first[learned]
        gaps = np.abs(scaled[side].mean(axis=0) - scaled[~side].mean(axis=0))
        columns = columns[:, np.sort(np.argsort(-gaps, kind="stable")[:_COLUMNS])]
    return np.asfortranarray(columns, dtype=float)


def _scale_columns(columns: NDArray, learned: NDArray | slice) -> NDArray:
    """Centre and scale columns by their middle half, so that no outlier or infinity rules them."""
    columns = np.nan_to_num(columns.astype(float), posinf=1e300, neginf=-1e300)
    low, middle, high = np.quantile(columns[learned], (0.25, 0.5, 0.75), axis=0)
    spread = np.where(high > low, high - low, 1.0)
    return np.clip(columns / spread - middle / spread, -100.0, 100.0)


def _score_linearly(columns: NDArray, learned: NDArray, first: NDArray) -> NDArray:
    """Return Fisher's linear discriminant; it sees through noise that coordinates share."""
    scaled = _scale_columns(columns, learned)
    ones, others = scaled[learned & first], scaled[learned & ~first]
    centred = np.vstack([ones - ones.mean(axis=0), others - others.mean(axis=0)])
    spread = centred.T @ centred / len(centred)
    ridge = 1e-9 * max(1.0, np.trace(spread)) * np.eye(len(spread))
    return scaled @ np.linalg.solve(spread + ridge, ones.mean(axis=0) - others.mean(axis=0))
