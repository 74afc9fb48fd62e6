"""The judge: what stored outputs say of a submission. Nothing of the submission runs here.

Each check returns a sentence that says what is wrong, or None. A check that can err is given the
error that it may make on a right submission.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes.audit._exact import exact_epsilon
from dpnotes.audit._lower_bound import audit_pair, largest_certifiable_epsilon
from dpnotes.audit._report import PairReport, Report
from dpnotes.audit._wording import describe_event
from dpnotes.grading._task import Runs, Task
from dpnotes.grading._values import are_alike, by_value, key
from dpnotes.release import _quote_value as shown

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


def judged(
    task: Task, runs: Runs, share: float, confidence: float, rng: np.random.Generator
) -> tuple[str, str]:
    """Return the first check that fails and a sentence, or "passed" and what was looked at."""
    if runs.fault:
        fault = _printable(runs.fault)
        fault = fault if fault.startswith(task.function) else _capital(fault)
        return "run", f"{fault}. {task.causes.get('run', '')}".rstrip()
    for name, found in _checks(task, runs, share, confidence, rng):
        if found and _returned_nothing(runs):
            return name, (
                f"{task.function} returned None whenever it was called: it is not written yet, or "
                "it lacks a return."
            )
        if found:
            return name, f"{_printable(found)} {_cause(task, runs, name)}"
    return "passed", _passed(task, share)


def _checks(
    task: Task, runs: Runs, share: float, confidence: float, rng: np.random.Generator
) -> Iterator[tuple[str, str | None]]:
    if task.answers:
        yield "answer", _answers(task, runs)
        return
    yield "shape", _shape(task, runs)
    if task.uses_rng:
        yield "rng", _rng(task, runs, share)
    if task.epsilon is not None:
        yield "privacy", _privacy(task, runs, share, confidence, rng)
    if task.distribution is not None:
        for data in runs.data_sets:
            _check_stated(shown(data), task.distribution(data))
        yield "distribution", _distribution(task, runs, task.distribution, share)
    if task.loss is not None:
        yield "usefulness", _usefulness(task, runs, share)


def _returned_nothing(runs: Runs) -> bool:
    return all(output is None for outputs in [runs.answers, *runs.outputs] for output in outputs)


def _cause(task: Task, runs: Runs, name: str) -> str:
    """Return the usual mistake that the outputs fit, or the usual cause of what was found."""
    # Whatever its distribution, a shape and a generator are right or wrong by themselves.
    mistakes = task.mistakes if name not in ("shape", "rng") else {}
    for sentence, stands_for in mistakes.items():
        if _fits(task, runs, stands_for):
            return sentence
    return task.causes.get(name, CAUSES[name])


def _fits(task: Task, runs: Runs, stands_for: Callable) -> bool:
    """Whether outputs are what a mistake stands for; one that cannot be computed fits nothing."""
    with suppress(ArithmeticError, LookupError, ValueError):
        if not task.answers:
            return _distribution(task, runs, stands_for, _LIKELY) is None
        return all(
            _is_answer(output, stands_for(*args), task.tolerance)
            for output, (args, _) in zip(runs.answers, task.answers, strict=True)
        )
    return False


def _passed(task: Task, share: float) -> str:
    if task.answers:
        return f"Passed: {len(task.answers)} of {len(task.answers)} answers are right."
    found = [f"{task.trials:,} runs on each of {len(task.data_sets)} data sets"]
    if task.epsilon is not None:
        limit = largest_certifiable_epsilon(task.trials, confidence=1 - share, delta=task.delta)
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


def _answers(task: Task, runs: Runs) -> str | None:
    for output, (args, right) in zip(runs.answers, task.answers, strict=True):
        if not _is_answer(output, right, task.tolerance):
            call = f"{task.function}({', '.join(map(shown, args))})"
            return f"{call} returned {quoted(output)}, which is not right{_how(output, right)}."
    return None


def _is_answer(output: object, right: object, tolerance: float) -> bool:
    """Whether an output is the right answer: equal, or numbers of one shape that are close."""
    if isinstance(output, dict) and isinstance(right, Mapping):
        same = output.keys() == right.keys()
        return same and all(_is_answer(output[k], right[k], tolerance) for k in right)
    got, wanted = _as_array(output), _as_array(right)
    if type(right) in (list, tuple) and (wanted is None or wanted.dtype.kind not in "biuf"):
        items = output.tolist() if isinstance(output, np.ndarray) else output
        same = type(items) in (list, tuple) and len(items) == len(right)
        return same and all(_is_answer(*both, tolerance) for both in zip(items, right, strict=True))
    if got is None or wanted is None:
        return False
    if wanted.dtype.kind in "iuf" and got.dtype.kind in "iuf":
        close = got.shape == wanted.shape and np.allclose(
            got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True
        )
        return bool(close)
    if got.dtype.kind != wanted.dtype.kind:
        return False
    return bool(np.array_equal(got, wanted)) if got.dtype.kind != "O" else output == right


def _as_array(output: object) -> NDArray | None:
    """Return an output as an array, if it is one: lists of several lengths are none."""
    try:
        return np.asarray(output)
    except ValueError:
        return None


def _how(output: object, right: object) -> str:
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
    if wanted.ndim != 2 or not _is_table(wanted):
        return ""
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


def _shape(task: Task, runs: Runs) -> str | None:
    if task.shape is None:
        return None
    for data, outputs in zip(runs.data_sets, runs.outputs, strict=True):
        wanted = task.shape(data) if callable(task.shape) else task.shape
        for output in outputs:
            if fault := _misshapen(output, wanted):
                return f"On {shown(data)}, {task.function} returned {quoted(output)}: {fault}."
    return None


def _misshapen(output: object, wanted: tuple) -> str | None:
    array = _as_array(output)
    if array is None:
        return "its rows differ in length"
    if array.dtype.kind not in "biuf":
        return "it has to hold numbers"
    if array.shape != tuple(wanted):
        return f"its shape is {array.shape}, and {tuple(wanted)} is asked for"
    return None if np.isfinite(array).all() else "it has to hold finite numbers"


def _rng(task: Task, runs: Runs, share: float) -> str | None:
    """Return what shows that the generator is not used, or not it alone."""
    for place, once, again in runs.repeated:
        if key(once) != key(again):
            return (
                f"On {shown(runs.data_sets[place])} and with one and the same seed, "
                f"{task.function} returned {quoted(once)} and then {quoted(again)}."
            )
    constants = [_constant(outputs) for outputs in runs.outputs]
    for place, (data, outputs) in enumerate(zip(runs.data_sets, runs.outputs, strict=True)):
        if constants[place] and _varies(task, runs, constants, place, share):
            return (
                f"On {shown(data)}, {task.function} returned {quoted(outputs[0])} in all "
                f"{len(outputs):,} runs, each with a seed of its own: rng is not used, or "
                "for so little noise that none shows."
            )
    return None


def _constant(outputs: list) -> set[Hashable]:
    """Return the output that came in all runs, if one did."""
    found = {key(output) for output in outputs}
    return found if len(found) == 1 else set()


def _varies(task: Task, runs: Runs, constants: list[set], place: int, share: float) -> bool:
    """Whether a right answer hardly ever gives in all runs what came in all of them here.

    Over all outputs o of probability p, p^n is at most the largest p^(n - 1) in sum.
    """
    if task.distribution is not None:
        data = runs.data_sets[place]
        [value], fault = _statistics(task, runs.outputs[place][:1], data)
        return not fault and _chance(task.distribution(data), value) ** (task.trials - 1) <= share
    if task.epsilon is None:  # a decision may hardly depend on the noise, and a number be clipped
        return False
    # What came on a neighbour is private if it comes here with at least (p - delta) / e^epsilon.
    ratio = math.exp(-task.epsilon)
    likeliest = min(1.0, (1 + ratio * task.delta) / (2 * ratio))
    worst = likeliest * (1 - ratio * (likeliest - task.delta))
    neighbours = [
        runs.place(other)
        for pair in task.pairs
        for one, other in (pair[:2], pair[1::-1])
        if runs.place(one) == place
    ]
    told_apart = any(constants[n] and constants[n] != constants[place] for n in neighbours)
    return told_apart and worst ** (task.trials - 1) <= share


def _chance(stated: Mapping | object, value: object) -> float:
    """Return the stated probability of one output."""
    if isinstance(stated, Mapping):
        return {key(output): float(p) for output, p in stated.items()}.get(key(value), 0.0)
    has_any = hasattr(stated, "pmf") and not _misshapen(value, ())
    return float(stated.pmf(value)) if has_any else 0.0


def _privacy(
    task: Task, runs: Runs, share: float, confidence: float, rng: np.random.Generator
) -> str | None:
    limit = largest_certifiable_epsilon(task.trials, confidence=1 - share, delta=task.delta)
    pairs = []
    for pair in task.pairs:
        # Shuffled: who is honest in the runs that choose the event must be in those that test it.
        sides = [_shuffled(runs.of(data), rng) for data in pair[:2]]
        of_one_type = are_alike(itertools.chain(*sides))
        if not of_one_type:
            sides = [list(map(by_value, outputs)) for outputs in sides]
        stored = list(map(iter, sides))
        found = audit_pair(
            lambda place, stored=stored: next(stored[place]),
            (0, 1),
            task.trials,
            share,
            task.delta,
            rng,
        )
        event = describe_event(found.outputs, found.event)
        event += "" if of_one_type else " (by its value, whatever its type)"
        pairs.append(PairReport(pair.difference, found.bound, event, *found.hits, found.tests))
    report = Report(task.epsilon, task.delta, confidence, limit, tuple(pairs))
    return report.sentence if report.verdict == "violated" else None


def _shuffled(outputs: list, rng: np.random.Generator) -> list:
    return [outputs[place] for place in rng.permutation(len(outputs))]


def _distribution(task: Task, runs: Runs, distribution: Callable, share: float) -> str | None:
    for data, outputs in zip(runs.data_sets, runs.outputs, strict=True):
        stated, words = distribution(data), shown(data)
        values, fault = _statistics(task, outputs, data)
        if task.statistic is not None:
            words = f"{words}, by the statistic of the task"
        check = _finite if isinstance(stated, Mapping) else _of_numbers
        if found := fault or check(words, values, stated, share):
            return found
    return None


def _statistics(task: Task, outputs: list, data: object) -> tuple[list, str]:
    """Return what the distribution is stated of, and which output has none of it."""
    if task.statistic is None:
        return outputs, ""
    values = []
    for output in outputs:
        try:
            values.append(task.statistic(_wide(output), data))
        except Exception:  # whatever one that was written for right outputs raises on others
            return outputs, f"On {shown(data)}, {quoted(output)} has no statistic of the task."
    try:
        set(map(key, values))
    except TypeError as error:
        kind = type(values[0]).__name__
        raise TypeError(f"statistic must return a number, a text or a tuple, got {kind}") from error
    return values, ""


def _check_stated(words: str, stated: Mapping | object) -> None:
    """Refuse what a teacher stated and is no distribution."""
    if not isinstance(stated, Mapping):
        return
    total = math.fsum(map(float, stated.values()))
    if not (abs(total - 1) <= _ROUNDED and all(0 <= p <= 1 + _ROUNDED for p in stated.values())):
        raise ValueError(
            f"distribution must return probabilities that sum to 1, on {words} they sum to {total}"
        )


def _finite(data: str, outputs: list, stated: Mapping, share: float) -> str | None:
    """Compare frequencies with probabilities: an exact binomial test for each output.

    Each of K outputs has two tails, of an error of share / 2K each: no approximation, and what
    deviates has a name.
    """
    stated = {key(output): float(p) for output, p in stated.items()}
    counts, runs = Counter(map(key, outputs)), len(outputs)
    for output in outputs:
        if not stated.get(key(output), 0.0):
            return f"On {data}, an output was {quoted(output)}, which must not come."
    names, p = list(stated), np.clip(list(stated.values()), 0.0, 1.0)
    hits = np.array([counts[name] for name in names])
    tails = np.minimum(_at_least(runs - hits, runs, 1 - p), _at_least(hits, runs, p))
    worst = int(tails.argmin())
    if tails[worst] >= share / (2 * len(names)):
        return None
    return (
        f"On {data}, the output {quoted(names[worst])} came {hits[worst]:,} times in {runs:,} "
        f"runs; the stated distribution gives it a probability of {p[worst]:.4f}, which is "
        f"{runs * p[worst]:,.0f} times."
    )


def _at_least(hits: ArrayLike, runs: int, p: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that an event of probability p comes so often or more in the runs."""
    hits = np.asarray(hits)
    return np.where(hits > 0, special.betainc(np.maximum(hits, 1), runs - hits + 1, p), 1.0)


def _of_numbers(data: str, outputs: list, stated: object, share: float) -> str | None:
    """Compare two distribution functions, by the bound of Dvoretzky, Kiefer, Wolfowitz, Massart.

    The two are nowhere further apart than sqrt(log(2 / share) / 2n), but with probability share;
    that holds for every distribution, on a grid or not.
    """
    for output in outputs:
        if fault := _misshapen(output, ()):
            return f"On {data}, an output was {quoted(output)}: {fault}."
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


def _usefulness(task: Task, runs: Runs, share: float) -> str | None:
    for data, outputs in zip(runs.data_sets, runs.outputs, strict=True):
        losses = np.array([_loss(task, output, data) for output in outputs])
        lost = ~np.isfinite(losses)
        hits, n = int((lost | (losses > task.margin)).sum()), len(outputs)
        if _at_least(hits, n, task.beyond) < share:
            fault = f"the error was above {task.margin:.4g} in {hits:,} of {n:,} runs"
            if lost.any():
                example = quoted(outputs[lost.argmax()])
                fault += f" ({lost.sum():,} outputs, such as {example}, are no answer at all)"
            return (
                f"Not as useful as promised: on {shown(data)}, {fault}, and "
                f"{n * task.beyond:,.0f} are expected at most."
            )
    return None


def _loss(task: Task, output: object, data: object) -> float:
    """Return how far off an output is; what is no output at all is infinitely far."""
    try:
        return float(task.loss(_wide(output), data))
    except Exception:  # whatever a loss that was written for right outputs raises on others
        return math.inf


def _wide(output: object) -> object:
    """Return small numbers as large ones, which do not wrap around in a loss."""
    if isinstance(output, np.ndarray | np.generic):
        if output.dtype.kind == "u" and (output > np.iinfo(np.int64).max).any():
            return output.astype(object) if output.ndim else output.item()
        kind = {"i": np.int64, "u": np.int64, "f": np.float64}.get(output.dtype.kind)
        return output if kind is None else output.astype(kind)
    return output


def quoted(output: object) -> str:
    """Return an output in a few words."""
    words = shown(output.tolist() if isinstance(output, np.ndarray) else output)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def _printable(sentence: str) -> str:
    """Return a sentence that moves no cursor, fits a screen, and can be written anywhere."""
    cut = sentence if len(sentence) <= _MOST else f"{sentence[: _MOST - 3]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
