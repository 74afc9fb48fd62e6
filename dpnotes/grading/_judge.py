"""The judge: what stored outputs say of a submission. Nothing of the submission runs here.

Each check returns a sentence that says what is wrong, or None, also where the task does not ask for
it. A check that can err does so with a probability of at most `share` on a right submission.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes.audit._exact import exact_epsilon
from dpnotes.audit._lower_bound import audit_pair, largest_certifiable_epsilon
from dpnotes.audit._report import PairReport, Report
from dpnotes.audit._wording import describe_event
from dpnotes.grading._task import Runs, Task
from dpnotes.grading._values import are_alike, by_value
from dpnotes.release import _quote_value

_LONGEST = 160  # characters of an output that are quoted
_MOST = 1000  # characters of a sentence that quotes a submission
_ROUNDED = 1e-6  # by which stated probabilities may miss their sum
_LIKELY = 1e-3  # a mistake that fits no worse than this is named
CAUSES = {
    "answer": "Put small numbers in by hand, and compare with the definition.",
    "shape": "Look at what the task says of the type and the size of the output.",
    "rng": "Draw from the generator that is handed over as rng, and from nothing else.",
    "privacy": (
        "Usual causes are a probability or a scale for another problem than this one, one draw "
        "that several people share, and something that is published without noise."
    ),
    "distribution": (
        "Usual causes are a formula for another number of categories, a parameter that was halved "
        "or doubled, and a lie that may come out true."
    ),
    "usefulness": (
        "Usual causes are noise for less epsilon than may be spent, and an estimate that does not "
        "correct for the noise."
    ),
}


class Level(NamedTuple):
    """How often the checks may err: `share` is that of each test, 1 - `confidence` that of all."""

    share: float
    confidence: float


def judge_runs(task: Task, runs: Runs, level: Level, rng: np.random.Generator) -> tuple[str, str]:
    """Return the first check that fails and a sentence, or "passed" and what was looked at."""
    if runs.fault:
        fault = _escape(runs.fault)
        if not fault.startswith(task.function):
            fault = fault[:1].upper() + fault[1:]
        return "run", f"{fault}. {task.causes.get('run', '')}".rstrip()
    for name, check in _CHECKS.items():
        fault = check(task, runs, level, rng)
        if fault and all(output is None for outputs in runs.all for output in outputs):
            return name, (
                f"{task.function} returned None whenever it was called: it is not written yet, or "
                "it lacks a return."
            )
        if fault:
            return name, f"{_escape(fault)} {_find_cause(task, runs, name)}"
    return "passed", _describe_success(task, level)


def _find_cause(task: Task, runs: Runs, name: str) -> str:
    """Return the usual mistake that the outputs fit, or the usual cause of what was found."""
    # Whatever its distribution, a shape and a generator are right or wrong by themselves.
    mistakes = task.mistakes if name not in ("shape", "rng") else {}
    for sentence, stands_for in mistakes.items():
        # A mistake that cannot be computed fits nothing.
        with suppress(ArithmeticError, LookupError, ValueError):
            if _fits(task, runs, stands_for):
                return sentence
    return task.causes.get(name, CAUSES[name])


def _fits(task: Task, runs: Runs, stands_for: Callable) -> bool:
    """Whether outputs are what a mistake stands for."""
    if not task.answers:
        return _compare_distribution(task, runs, stands_for, _LIKELY) is None
    return all(
        _is_answer(output, stands_for(*args), task.tolerance)
        for output, (args, _) in zip(runs.answers, task.answers, strict=True)
    )


def _describe_success(task: Task, level: Level) -> str:
    if task.answers:
        return f"Passed: {len(task.answers)} of {len(task.answers)} answers are right."
    found = [f"{task.trials:,} runs on each of {len(task.data_sets)} data sets"]
    if task.epsilon is not None:
        limit = largest_certifiable_epsilon(
            task.trials, confidence=1 - level.share, delta=task.delta
        )
        found.append(
            f"epsilon = {task.epsilon:.4g} is not refuted on "
            f"{len(task.pairs)} pair{'s' * (len(task.pairs) > 1)}, where so many runs could have "
            f"shown {limit:.2f}"
        )
    if task.distribution is not None:
        found.append("the outputs agree with the stated distribution")
    if task.loss is not None:
        found.append("the error is as small as promised")
    return f"Passed: {'; '.join(found)}."


# Answers of functions without randomness


def check_answers(task: Task, runs: Runs, *_: object) -> str | None:
    """Compare what came with what is right, within the tolerance."""
    for output, (args, right) in zip(runs.answers, task.answers, strict=True):
        if not _is_answer(output, right, task.tolerance):
            call = f"{task.function}({', '.join(map(_quote_value, args))})"
            how = _describe_error(output, right)
            return f"{call} returned {_quote(output)}, which is not right{how}."
    return None


def _is_answer(output: object, right: object, tolerance: float) -> bool:
    """Whether an output is the right answer: equal part by part, and numbers close."""
    output, right = (
        v.tolist() if isinstance(v, np.ndarray | np.generic) else v for v in (output, right)
    )
    if isinstance(right, Mapping):
        same = isinstance(output, dict) and output.keys() == right.keys()
        return same and all(_is_answer(output[k], right[k], tolerance) for k in right)
    if isinstance(right, list | tuple):
        same = isinstance(output, list | tuple) and len(output) == len(right)
        return same and all(map(_is_answer, output, right, itertools.repeat(tolerance)))
    if not _is_number(right):
        return type(output) is type(right) and output == right
    if not _is_number(output):
        return False
    if output == right or (output != output and right != right):
        return True
    with suppress(OverflowError):  # an integer that is larger than every float
        return abs(output - right) <= tolerance * (1 + abs(right))
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.longdouble) and not isinstance(value, bool)


def _as_array(output: object) -> NDArray | None:
    """Return an output as an array, if it is one: lists of several lengths are none."""
    try:
        return np.asarray(output)
    except ValueError:
        return None


def _describe_error(output: object, right: object) -> str:
    """Return how an answer is wrong, without the right one."""
    got, wanted = _as_array(output), _as_array(right)
    if wanted is None or wanted.dtype.kind not in "biuf":
        return ""
    if got is None:
        return ": its rows differ in length"
    if got.dtype.kind not in "biuf":
        return ""
    if got.shape != wanted.shape:
        return f": its shape is {got.shape}, and {wanted.shape} is asked for"
    if wanted.ndim == 0:
        if (got.dtype.kind == "b") != (wanted.dtype.kind == "b"):
            return f": {'a number' if wanted.dtype.kind != 'b' else 'True or False'} is asked for"
        if np.isnan(got):
            return ": it is not a number"
        return f": it is too {'large' if got > wanted else 'small'}"
    return _describe_table(got, wanted) if wanted.ndim == 2 and _is_table(wanted) else ""


def _describe_table(got: NDArray, wanted: NDArray) -> str:
    """Return how a table of probabilities is wrong, by what it costs."""
    if not _is_table(got):
        return ": its rows are not probabilities that sum to 1"
    cost, claimed = (exact_epsilon(table / table.sum(axis=1)[:, None]) for table in (got, wanted))
    if cost > claimed * (1 + 1e-6) + 1e-9:
        return f": it costs an epsilon of {cost:.4g}, and {claimed:.4g} is allowed"
    if cost < claimed * (1 - 1e-6) - 1e-9:
        return f": it costs an epsilon of {cost:.4g} alone, and so is noisier than it has to be"
    return ""


def _is_table(rows: NDArray) -> bool:
    return bool((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1))


# Mechanisms


def check_shape(task: Task, runs: Runs, *_: object) -> str | None:
    """Find an output that does not hold finite numbers in the shape that is asked for."""
    if task.shape is None:
        return None
    for data, outputs in runs.by_data:
        wanted = task.shape(data) if callable(task.shape) else task.shape
        for output in outputs:
            if fault := _describe_shape(output, wanted):
                words = _quote_value(data)
                return f"On {words}, {task.function} returned {_quote(output)}: {fault}."
    return None


def _describe_shape(output: object, wanted: tuple) -> str | None:
    array = _as_array(output)
    if array is None:
        return "its rows differ in length"
    if array.dtype.kind not in "biuf":
        return "it has to hold numbers"
    if array.shape != tuple(wanted):
        return f"its shape is {array.shape}, and {tuple(wanted)} is asked for"
    return None if np.isfinite(array).all() else "it has to hold finite numbers"


def check_rng(task: Task, runs: Runs, level: Level, rng: object) -> str | None:
    """Find what shows that the generator is not used, or not it alone."""
    if not task.uses_rng:
        return None
    for place, once, again in runs.repeated:
        if len({by_value(once), by_value(again)}) == 2:
            return (
                f"On {_quote_value(runs.data_sets[place])} and with one and the same seed, "
                f"{task.function} returned {_quote(once)} and then {_quote(again)}."
            )
    found = [set(map(by_value, outputs)) for outputs in runs.outputs]
    constants = [values if len(values) == 1 else set() for values in found]
    for place, (data, outputs) in enumerate(runs.by_data):
        if constants[place] and _has_to_vary(task, runs, constants, place, level.share):
            return (
                f"On {_quote_value(data)}, {task.function} returned {_quote(outputs[0])} in all "
                f"{len(outputs):,} runs, each with a seed of its own: rng is not used, or "
                "for so little noise that none shows."
            )
    return None


def _has_to_vary(task: Task, runs: Runs, constants: list[set], place: int, share: float) -> bool:
    """Whether a right answer hardly ever gives in all runs what came in all of them here.

    Over all outputs o of probability p, p^n is at most the largest p^(n - 1) in sum.
    """
    if task.distribution is not None:
        data = runs.data_sets[place]
        [value], fault = _take_statistic(task, runs.outputs[place][:1], data)
        return not fault and _chance(task.distribution(data), value) ** (task.trials - 1) <= share
    if task.epsilon is None:  # a decision may hardly depend on the noise, and a number be clipped
        return False
    # What came on a neighbour is private if it comes here with at least (p - delta) / e^epsilon.
    ratio = math.exp(-task.epsilon)
    likeliest = min(1.0, (1 + ratio * task.delta) / (2 * ratio))
    worst = likeliest * (1 - ratio * (likeliest - task.delta))
    pairs = [[runs.place(data) for data in pair[:2]] for pair in task.pairs]
    neighbours = [n for pair in pairs if place in pair for n in pair if n != place]
    told_apart = any(constants[n] and constants[n] != constants[place] for n in neighbours)
    return told_apart and worst ** (task.trials - 1) <= share


def _chance(stated: Mapping | object, value: object) -> float:
    """Return the stated probability of one output."""
    if isinstance(stated, Mapping):
        return _name_outputs(stated).get(by_value(value), 0.0)
    has_any = hasattr(stated, "pmf") and not _describe_shape(value, ())
    return float(stated.pmf(value)) if has_any else 0.0


def _name_outputs(stated: Mapping) -> dict[Hashable, float]:
    return {by_value(output): float(p) for output, p in stated.items()}


def check_privacy(task: Task, runs: Runs, level: Level, rng: np.random.Generator) -> str | None:
    """Audit all pairs on what is stored."""
    if task.epsilon is None:
        return None
    limit = largest_certifiable_epsilon(task.trials, confidence=1 - level.share, delta=task.delta)
    pairs = []
    for pair in task.pairs:
        # Shuffled, so that no order of the runs decides which of them choose the event.
        sides = [runs.outputs[runs.place(data)] for data in pair[:2]]
        sides = [[outputs[i] for i in rng.permutation(len(outputs))] for outputs in sides]
        of_one_type = are_alike(itertools.chain(*sides))
        if not of_one_type:
            sides = [list(map(by_value, outputs)) for outputs in sides]
        stored = list(map(iter, sides))
        found = audit_pair(
            lambda place, stored=stored: next(stored[place]),
            (0, 1),
            task.trials,
            level.share,
            task.delta,
            rng,
        )
        event = describe_event(found.outputs, found.event)
        event += "" if of_one_type else " (by its value, whatever its type)"
        pairs.append(PairReport(pair.difference, found.bound, event, *found.hits, found.tests))
    report = Report(task.epsilon, task.delta, level.confidence, limit, tuple(pairs))
    return report.sentence if report.verdict == "violated" else None


def check_distribution(task: Task, runs: Runs, level: Level, rng: object) -> str | None:
    """Compare the outputs with the distribution that the teacher states, which has to be one."""
    if task.distribution is None:
        return None
    for data in runs.data_sets:
        stated = task.distribution(data)
        if isinstance(stated, Mapping):
            p = np.array(list(stated.values()), dtype=float)
            if not (abs(p.sum() - 1) <= _ROUNDED and (p >= 0).all()):
                raise ValueError(
                    "distribution must return probabilities that sum to 1, on "
                    f"{_quote_value(data)} they sum to {p.sum()}"
                )
    return _compare_distribution(task, runs, task.distribution, level.share)


def _compare_distribution(
    task: Task, runs: Runs, distribution: Callable, share: float
) -> str | None:
    for data, outputs in runs.by_data:
        stated, words = distribution(data), _quote_value(data)
        values, fault = _take_statistic(task, outputs, data)
        if task.statistic is not None:
            words = f"{words}, by the statistic of the task"
        compare = compare_frequencies if isinstance(stated, Mapping) else compare_numbers
        if found := fault or compare(words, values, stated, share):
            return found
    return None


def _take_statistic(task: Task, outputs: list, data: object) -> tuple[list, str]:
    """Return what the distribution is stated of, and which output has none of it."""
    if task.statistic is None:
        return outputs, ""
    values = []
    for output in outputs:
        try:
            values.append(task.statistic(_widen(output), data))
        except Exception:  # whatever one that was written for right outputs raises on others
            words = f"On {_quote_value(data)}, {_quote(output)} has no statistic of the task."
            return outputs, words
    try:
        set(map(by_value, values))
    except TypeError as error:
        kind = type(values[0]).__name__
        raise TypeError(f"statistic must return a number, a text or a tuple, got {kind}") from error
    return values, ""


def compare_frequencies(data: str, outputs: list, stated: Mapping, share: float) -> str | None:
    """Compare frequencies with probabilities: an exact binomial test for each output.

    Each of K outputs has two tails, of an error of share / 2K each: no approximation, and what
    deviates has a name.
    """
    stated = _name_outputs(stated)
    counts, runs = Counter(map(by_value, outputs)), len(outputs)
    for output in outputs:
        if not stated.get(by_value(output), 0.0):
            return f"On {data}, an output was {_quote(output)}, which must not come."
    names, p = list(stated), np.clip(list(stated.values()), 0.0, 1.0)
    hits = np.array([counts[name] for name in names])
    tails = np.minimum(_at_least(runs - hits, runs, 1 - p), _at_least(hits, runs, p))
    worst = int(tails.argmin())
    if tails[worst] >= share / (2 * len(names)):
        return None
    return (
        f"On {data}, the output {_quote(names[worst])} came {hits[worst]:,} times in {runs:,} "
        f"runs; the stated distribution gives it a probability of {p[worst]:.4f}, which is "
        f"{runs * p[worst]:,.0f} times."
    )


def _at_least(hits: ArrayLike, runs: int, p: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that an event of probability p comes so often or more in the runs."""
    hits = np.asarray(hits)
    return np.where(hits > 0, special.betainc(np.maximum(hits, 1), runs - hits + 1, p), 1.0)


def compare_numbers(data: str, outputs: list, stated: object, share: float) -> str | None:
    """Compare two distribution functions, by the bound of Dvoretzky, Kiefer, Wolfowitz, Massart.

    The two are nowhere further apart than sqrt(log(2 / share) / 2n), but with probability share;
    that holds for every distribution, on a grid or not.
    """
    for output in outputs:
        if fault := _describe_shape(output, ()):
            return f"On {data}, an output was {_quote(output)}: {fault}."
    n = len(outputs)
    values, counts = np.unique(np.asarray(outputs, dtype=float), return_counts=True)
    if _is_discrete(stated):
        beside = values[np.asarray(stated.pmf(values)) == 0]
        if beside.size:
            return f"On {data}, an output was {beside[0]!r}, which must not come."
    upto = counts.cumsum() / n
    at = np.asarray(stated.cdf(values), dtype=float)
    below = at - (np.asarray(stated.pmf(values), dtype=float) if hasattr(stated, "pmf") else 0.0)
    above, under = np.abs(upto - at), np.abs(upto - counts / n - below)
    gaps = np.maximum(above, under)
    worst = int(gaps.argmax())
    if gaps[worst] <= math.sqrt(math.log(2 / share) / (2 * n)):
        return None
    if above[worst] >= under[worst]:
        which, seen, wanted = "at most", upto[worst], at[worst]
    else:
        which, seen, wanted = "below", upto[worst] - counts[worst] / n, below[worst]
    return (
        f"On {data}, {round(n * seen):,} of {n:,} outputs were {which} {values[worst]:.6g}; the "
        f"stated distribution has {n * wanted:,.0f} of them there."
    )


def _is_discrete(stated: object) -> bool:
    """Whether a distribution is one of scipy's on a grid, without loading all of them to ask."""
    return any(kind.__name__ == "rv_discrete" for kind in type(getattr(stated, "dist", 0)).__mro__)


def check_usefulness(task: Task, runs: Runs, level: Level, rng: object) -> str | None:
    """Count how often the loss is above the margin."""
    if task.loss is None:
        return None
    for data, outputs in runs.by_data:
        losses = np.array([_take_loss(task, output, data) for output in outputs])
        lost = ~np.isfinite(losses)
        hits, n = int((lost | (losses > task.margin)).sum()), len(outputs)
        if _at_least(hits, n, task.beyond) < level.share:
            fault = f"the error was above {task.margin:.4g} in {hits:,} of {n:,} runs"
            if lost.any():
                example = _quote(outputs[lost.argmax()])
                fault += f" ({lost.sum():,} outputs, such as {example}, are no answer at all)"
            return (
                f"Not as useful as promised: on {_quote_value(data)}, {fault}, and "
                f"{n * task.beyond:,.0f} are expected at most."
            )
    return None


def _take_loss(task: Task, output: object, data: object) -> float:
    """Return how far off an output is; what is no output at all is infinitely far."""
    try:
        return float(task.loss(_widen(output), data))
    except Exception:  # whatever a loss that was written for right outputs raises on others
        return math.inf


def _widen(output: object) -> object:
    """Return small numbers as large ones, which do not wrap around in a loss."""
    wide = {"i": np.int64, "u": np.int64, "f": np.float64}
    if isinstance(output, np.ndarray | np.generic) and output.dtype.kind in wide:
        return output.astype(wide[output.dtype.kind])
    return output


_CHECKS = {
    "answer": check_answers,
    "shape": check_shape,
    "rng": check_rng,
    "privacy": check_privacy,
    "distribution": check_distribution,
    "usefulness": check_usefulness,
}


def _quote(output: object) -> str:
    """Return an output in a few words."""
    words = _quote_value(output.tolist() if isinstance(output, np.ndarray) else output)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def _escape(sentence: str) -> str:
    """Return a sentence that moves no cursor, fits a screen, and can be written anywhere."""
    cut = sentence if len(sentence) <= _MOST else f"{sentence[: _MOST - 3]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
