"""What a task of an assignment asks, and the runs that answer it."""

import dataclasses
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpnotes._checks import (
    check_choice,
    check_delta,
    check_epsilon,
    check_flag,
    check_integer,
    check_probability,
    check_real,
    require_kind,
)
from dpnotes.audit._report import check_pairs
from dpnotes.grading._sandbox_worker import write_output
from dpnotes.release import _quote_value, _require_list

CHECKS = ("run", "answer", "shape", "rng", "privacy", "distribution", "usefulness")
_REPEATED = 16  # runs on each data set that are made twice


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What one task of an assignment asks of one function, for `grade`.

    Parameters
    ----------
    function : str
        The name of the function that the submission has to define.
    points : float, default 1.0
        What it is worth; a function that fails a check gets nothing.
    says : str, default ""
        What the task asks, in a sentence for people.
    arguments : mapping, optional
        Arguments that the function gets by name in every run, beside the data set and `rng`.
    answers : iterable of (arguments, right answer), default ()
        For a function without randomness: tuples of arguments, and what it has to return.
    tolerance : float, default 1e-6
        How far a float may be from the right answer, or from an output that `distribution` states,
        relatively, or absolutely if that is 0.0. What is an integer there has to be met exactly.
    pairs : iterable of (data set, neighbour) or (data set, neighbour, words), default ()
        For a mechanism: what the claim calls neighbours, as for `report`.
    data : iterable, default ()
        Further data sets to run it on.
    epsilon : float or None, default None
        The epsilon that is claimed for all pairs, in nats; None claims nothing.
    delta : float, default 0.0
        The delta that is claimed, in [0, 1).
    distribution : callable or None, default None
        Returns the distribution that the output on a data set should have. Where few outputs are
        possible this is a mapping of outputs to probabilities (write a tuple for an array or a
        list); else a distribution of numbers with `cdf`, such as scipy's, and with `pmf` where the
        numbers lie on a grid.
    statistic : callable or None, default None
        ``statistic(output, data set)`` is the number, text or tuple of which `distribution` and
        `mistakes` state the distribution, such as one number of a vector or its largest. None
        compares the whole output.
    loss : callable or None, default None
        ``loss(output, data set)`` is how far off an output is. Set it to demand usefulness.
    margin : float, default 0.0
        The loss that a right answer may exceed ...
    beyond : float, default 0.05
        ... with at most this probability.
    shape : tuple, callable or None, default None
        The shape of an output, which then has to hold finite numbers. A function gets the data set
        and returns the shape. None accepts any.
    uses_rng : bool, default True
        Whether a mechanism gets a generator as `rng`, and has to draw from nothing else.
    mistakes : mapping, optional
        Usual mistakes: each maps a sentence that teaches to a function that stands for
        `distribution`, or for the right answer, had somebody made that mistake. The sentence is
        shown to a submission that fails in just this way.
    causes : mapping, optional
        Maps the checks "run", "answer", "shape", "rng", "privacy", "distribution" and "usefulness"
        to a sentence that names the usual cause here, for a submission that fails the check.
    blocked : iterable of str, default ("dpnotes",)
        Modules that the submission must not import, submodules included.
    trials : int, default 4000
        Runs on each data set.
    seconds : float, default 60.0
        The time that loading and all runs may take together.
    memory : int, default 2**31
        Bytes of address space that it may use, where the system enforces that.

    Examples
    --------
    >>> from dpnotes.audit import pairs_in_domain
    >>> task = Task(
    ...     function="answer",
    ...     arguments={"epsilon": 1.0},
    ...     pairs=pairs_in_domain([0, 1]),
    ...     epsilon=1.0,
    ...     distribution=lambda truth: {truth: 0.731058579, 1 - truth: 0.268941421},
    ... )
    >>> task.data_sets, task.tests
    ((0, 1), 3)
    """

    function: str
    points: float = 1.0
    says: str = ""
    arguments: Mapping = dataclasses.field(default_factory=dict)
    answers: Iterable = ()
    tolerance: float = 1e-6
    pairs: Iterable = ()
    data: Iterable = ()
    epsilon: float | None = None
    delta: float = 0.0
    distribution: Callable | None = None
    statistic: Callable | None = None
    loss: Callable | None = None
    margin: float = 0.0
    beyond: float = 0.05
    shape: tuple | Callable | None = None
    uses_rng: bool = True
    mistakes: Mapping = dataclasses.field(default_factory=dict)
    causes: Mapping = dataclasses.field(default_factory=dict)
    blocked: Iterable = ("dpnotes",)
    trials: int = 4000
    seconds: float = 60.0
    memory: int = 2**31

    def __post_init__(self) -> None:
        """Refuse what cannot be asked, and keep all of it as plain values."""
        pairs = _require_list("pairs", self.pairs)
        kept = {
            "beyond": check_probability("beyond", self.beyond),
            "delta": check_delta(self.delta),
            "trials": check_integer("trials", self.trials, low=100),
            "seconds": check_epsilon(self.seconds, "seconds"),
            "memory": check_integer("memory", self.memory, low=2**28),
            "answers": tuple(map(_check_answer, _require_list("answers", self.answers))),
            "pairs": tuple(check_pairs(pairs)) if pairs else (),
            "data": tuple(_require_list("data", self.data)),
            "blocked": tuple(_check_names("blocked", _require_list("blocked", self.blocked))),
        }
        for name in ["points", "tolerance", "margin"] + ["epsilon"] * (self.epsilon is not None):
            allowed = "a finite number of at least 0"
            kept[name] = check_real(name, getattr(self, name), low=0.0, allowed=allowed)
        _check_names("function", [self.function])
        check_flag("uses_rng", self.uses_rng)
        require_kind("says", self.says, str, "a sentence")
        for name in ("arguments", "mistakes", "causes"):
            kept[name] = _check_mapping(name, getattr(self, name))
        for name in ("distribution", "statistic", "loss"):
            require_kind(name, getattr(self, name), Callable | None, "callable or None")
        for mistake in kept["mistakes"].values():
            require_kind("mistakes", mistake, Callable, "a mapping of sentences to functions")
        for check in kept["causes"]:
            check_choice("causes", check, CHECKS)
        allowed = "a tuple, a function of the data set or None"
        require_kind("shape", self.shape, tuple | Callable | None, allowed)
        self.__dict__.update(kept)
        if bool(self.answers) == bool(self.pairs or self.data):
            raise ValueError("a task must have answers, or pairs and data sets to run on")
        if self.epsilon is not None and not self.pairs:
            raise ValueError("epsilon must be claimed for pairs, got none")

    @property
    def data_sets(self) -> tuple:
        """The data sets to run a mechanism on, each once."""
        named = [data for pair in self.pairs for data in pair[:2]] + [*self.data]
        return tuple({pickle.dumps(data): data for data in named}.values())

    @property
    def inputs(self) -> list[tuple]:
        """The arguments to call the function with."""
        return [args for args, _ in self.answers] or [(data,) for data in self.data_sets]

    @property
    def places(self) -> list[list[int]]:
        """The places of the two data sets of each pair among all."""
        keys = list(map(pickle.dumps, self.data_sets))
        return [[keys.index(pickle.dumps(data)) for data in pair[:2]] for pair in self.pairs]

    @property
    def tests(self) -> int:
        """How many tests can err; each gets an equal share of the error."""
        each = (self.distribution is not None) + (self.loss is not None)
        return (self.epsilon is not None) * len(self.pairs) + each * len(self.data_sets)


class Runs(NamedTuple):
    """What came of a submission, or a `fault` that says why there is nothing.

    `outputs` are those on each data set, or the one answer to each of the arguments, and `repeated`
    holds (input, output, output of a second run with the same seed). `is_endless` says that the
    cells did not end, so that no function was called.
    """

    outputs: list[list]
    repeated: list[tuple[object, object, object]]
    fault: str = ""
    is_endless: bool = False


def plan_calls(task: Task, rng: np.random.Generator) -> list[tuple[int, int | None]]:
    """Return all calls as (place of its input, seed), in random order, some of them twice.

    Answers are computed once each, without a seed.
    """
    if task.answers:
        return [(place, None) for place in range(len(task.answers))]
    seeds = rng.integers(2**63, size=(len(task.data_sets), task.trials)).tolist()
    again = _REPEATED if task.uses_rng else 0
    calls = [(place, seed) for place, row in enumerate(seeds) for seed in row + row[:again]]
    return [calls[place] for place in rng.permutation(len(calls))]


def sort_outputs(task: Task, plan: list[tuple[int, int | None]], stored: list) -> Runs:
    """Return what came of the calls of a plan by their inputs."""
    found: dict[tuple, list] = {}
    for call, output in zip(plan, stored, strict=True):
        found.setdefault(call, []).append(output)
    outputs: list[list] = [[] for _ in task.inputs]
    for (place, _), same in found.items():
        outputs[place].append(same[0])
    twice = [(task.inputs[place], *same) for (place, _), same in found.items() if len(same) == 2]
    return Runs(outputs, twice)


def _check_names(name: str, values: list) -> list[str]:
    for value in values:
        require_kind(name, value, str, "a name")
        if not all(part.isidentifier() for part in value.split(".")):
            raise ValueError(f"{name} must be a name of Python's, got {_quote_value(value)}")
    return values


def _check_mapping(name: str, value: Mapping) -> dict:
    require_kind(name, value, Mapping, "a mapping of texts")
    for key in value:
        require_kind(name, key, str, "a mapping of texts")
    return dict(value)


def _check_answer(answer: Sequence) -> tuple[tuple, object]:
    if not isinstance(answer, tuple | list) or len(answer) != 2 or type(answer[0]) is not tuple:
        raise TypeError("answers must hold (tuple of arguments, right answer)")
    try:
        json.dumps(write_output(answer[1]))
    except (TypeError, ValueError) as error:
        raise TypeError(f"answers must hold what can leave a process: {error}") from error
    return tuple(answer)
