"""The judge: what stored outputs say of a submission. Nothing of the submission runs here.

Each check returns a sentence that says what is wrong, or None. A check that can err does so with a
probability of at most `share` on a right submission.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle, repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpnotes.audit._exact import exact_epsilon
from dpnotes.audit._outputs import EXACT_INTEGER, MechanismFailed, Reading, read_output
from dpnotes.audit._report import report
from dpnotes.grading._task import Runs, Task
from dpnotes.release import _quote_value

_MOST = 1000  # characters of a sentence that quotes a submission
_NOISE = 1e-15  # what rounding leaves of a part that is 0, to the largest part of the answer
_ROUNDED = 1e-6  # by which stated probabilities may miss their sum
_LIKELY = 1e-3  # a mistake that fits no worse than this is named
CAUSES = {
    "answer": "Put small numbers in by hand, and compare with the definition.",
    "shape": "Look at what the task says of the type and the size of the output.",
    "rng": "Draw from the generator that is handed over as rng, and from nothing else.",
    "privacy": "Check the scale, draw anew for each person, and publish nothing without noise.",
    "distribution": "Check the parameter, the categories, and whether a lie may come out true.",
    "usefulness": "Spend all of the epsilon that you may, and correct the estimate for the noise.",
}


def judge_runs(task: Task, runs: Runs, share: float, rng: np.random.Generator) -> tuple[str, str]:
    """Return the first check that fails and a sentence, or "passed" and what was looked at."""
    if runs.fault:
        return "run", f"{_escape(runs.fault)}. {task.causes.get('run', '')}".rstrip()
    checks = _make_checks(task, runs, share, rng)
    name, fault = next(((name, fault) for name, fault in checks if fault), ("passed", ""))
    if not fault and task.answers:
        return name, f"Passed: {len(task.answers)} of {len(task.answers)} answers are right."
    if not fault:
        claim = "" if task.epsilon is None else f"; epsilon = {task.epsilon:.4g} is not refuted"
        where = f"each of {len(task.data_sets)} data sets"
        return name, f"Passed: {task.trials:,} runs on {where}{claim}."
    if all(output is None for outputs in runs.outputs for output in outputs):
        return name, (
            f"{task.function} returned None whenever it was called: it is not written yet, or it "
            "lacks a return."
        )
    # Whatever its distribution, a shape and a generator are right or wrong by themselves.
    mistake = _find_mistake(task, runs) if name not in ("shape", "rng") else ""
    if task.uses_rng and not mistake and name in ("privacy", "distribution"):
        for data, outputs in zip(task.data_sets, runs.outputs, strict=True):
            # Compared with the first and not in a set: their hashes may be made to be all one.
            found = list(map(by_value, outputs))
            if found.count(found[0]) == len(found) and not _is_likely(task, data, outputs):
                name = "rng"
                fault = (
                    f"On {_quote_value(data)}, {task.function} returned {_quote(outputs[0])} in "
                    f"all {task.trials:,} runs, each with a seed of its own: rng is not used, or "
                    "for so little noise that none shows."
                )
    return name, f"{_escape(fault)} {mistake or task.causes.get(name, CAUSES[name])}"


def _is_likely(task: Task, data: object, outputs: list) -> bool:
    """Whether the outputs on a data set fit the stated distribution, if there is one."""
    stated = task.distribution
    return stated is not None and not check_distribution(task, data, outputs, stated, _LIKELY)


def _make_checks(
    task: Task, runs: Runs, share: float, rng: np.random.Generator
) -> Iterator[tuple[str, str | None]]:
    """Yield the name of each check that the task asks for, and what it found."""
    # Of answers there is no data set, and of a mechanism there are no answers.
    by_data = list(zip(task.data_sets, runs.outputs, strict=False))
    yield "answer", check_answers(task, runs, task.answers)
    if task.shape is not None:
        yield from (("shape", check_shape(task, *outputs)) for outputs in by_data)
    yield "rng", check_rng(task, runs)
    if task.epsilon is not None:
        yield "privacy", check_privacy(task, runs, share, rng)
    if task.distribution is not None:
        for one in by_data:
            yield "distribution", check_distribution(task, *one, task.distribution, share)
    if task.loss is not None:
        yield from (("usefulness", check_usefulness(task, *o, share)) for o in by_data)


def _find_mistake(task: Task, runs: Runs) -> str:
    """Return the sentence on the usual mistake that the outputs fit, if there is one."""
    for sentence, stands_for in task.mistakes.items():
        # A mistake that cannot be computed fits nothing.
        with suppress(ArithmeticError, LookupError, ValueError):
            mistaken = [(args, stands_for(*args)) for args, _ in task.answers]
            found = [check_answers(task, runs, mistaken)]
            for one in zip(task.data_sets, runs.outputs, strict=False):
                found.append(check_distribution(task, *one, stands_for, _LIKELY))
            if not any(found):
                return sentence
    return ""


# Answers of functions without randomness


def check_answers(task: Task, runs: Runs, answers: Iterable) -> str | None:
    """Compare what came with what is right, within the tolerance."""
    for (args, right), [output] in zip(answers, runs.outputs, strict=False):
        if not _is_answer(output, right, task.tolerance, _NOISE * _find_largest(right)):
            call = f"{task.function}({', '.join(map(_quote_value, args))})"
            how = _describe_error(output, right)
            return f"{call} returned {_quote(output)}, which is not right{how}."
    return None


def _find_largest(right: object) -> float:
    """Return the largest finite float of a right answer, without its sign."""
    if isinstance(right, np.ndarray | np.generic):
        right = right.tolist()
    if isinstance(right, Mapping):
        right = [*right.values()]
    if isinstance(right, list | tuple):
        return max(map(_find_largest, right), default=0.0)
    return abs(right) if isinstance(right, float) and math.isfinite(right) else 0.0


def _is_answer(output: object, right: object, tolerance: float, noise: float) -> bool:
    """Whether an output is the right answer: equal part by part, and numbers close."""
    output, right = (
        v.tolist() if isinstance(v, np.ndarray | np.generic) else v for v in (output, right)
    )
    if isinstance(right, Mapping):
        same = isinstance(output, dict) and output.keys() == right.keys()
        return same and all(_is_answer(output[k], right[k], tolerance, noise) for k in right)
    if isinstance(right, list | tuple):
        same = isinstance(output, list | tuple) and len(output) == len(right)
        return same and all(map(_is_answer, output, right, repeat(tolerance), repeat(noise)))
    if not (_is_number(right) and _is_number(output)):
        return type(output) is type(right) and output == right
    if output == right or (output != output and right != right):
        return True
    near = noise if right else tolerance
    with suppress(OverflowError):  # an integer that is larger than every float
        is_close = math.isclose(output, right, rel_tol=tolerance, abs_tol=near)
        return isinstance(right, float) and is_close
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_array(output: object) -> NDArray | None:
    """Return an output as an array, if it is one: lists of several lengths are none.

    With texts in it, it is one of objects: each number would take as much as the longest text.
    """
    with suppress(MemoryError, ValueError):
        parts = () if isinstance(output, np.ndarray) else np.asarray(output, dtype=object).flat
        has_text = any(isinstance(part, str) for part in parts)
        return np.asarray(output, dtype=object if has_text else None)
    return None


def _describe_error(output: object, right: object) -> str:
    """Return how an answer is wrong, without the right one."""
    wanted = _as_array(right)
    if wanted is None or wanted.dtype.kind not in "biuf" or not np.isfinite(wanted).all():
        return ""
    if fault := _describe_shape(output, wanted.shape):
        return f": {fault}"
    got = np.asarray(output)
    if wanted.ndim == 0 and (got.dtype.kind == "b") != (wanted.dtype.kind == "b"):
        return f": {'a number' if wanted.dtype.kind != 'b' else 'True or False'} is asked for"
    if wanted.ndim == 0:
        return f": it is too {'large' if got > wanted else 'small'}"
    return _describe_table(got, wanted) if wanted.ndim == 2 and _is_table(wanted) else ""


def _describe_table(got: NDArray, wanted: NDArray) -> str:
    """Return how a table of probabilities is wrong, by what it costs."""
    if not _is_table(got):
        return ": its rows are not probabilities that sum to 1"
    cost, claimed = (exact_epsilon(table / table.sum(axis=1)[:, None]) for table in (got, wanted))
    if math.isclose(cost, claimed, rel_tol=1e-6, abs_tol=1e-9):
        return ""
    if cost > claimed:
        return f": it costs an epsilon of {cost:.4g}, and {claimed:.4g} is allowed"
    return f": it costs an epsilon of {cost:.4g} alone, and so is noisier than it has to be"


def _is_table(rows: NDArray) -> bool:
    return bool((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1))


# Mechanisms


def check_shape(task: Task, data: object, outputs: list) -> str | None:
    """Find an output that does not hold finite numbers in the shape that is asked for."""
    wanted = task.shape(data) if callable(task.shape) else task.shape
    for output in outputs:
        if fault := _describe_shape(output, wanted):
            return f"On {_quote_value(data)}, {task.function} returned {_quote(output)}: {fault}."
    return None


def _describe_shape(output: object, wanted: tuple) -> str | None:
    array = _as_array(output)
    if array is None:
        return "its rows differ in length"
    if array.dtype.kind not in "biuf":
        return "numbers are asked for"
    if array.shape != tuple(wanted):
        return f"its shape is {array.shape}, and {tuple(wanted)} is asked for"
    return None if np.isfinite(array).all() else "finite numbers are asked for"


def check_rng(task: Task, runs: Runs) -> str | None:
    """Find two runs with one seed and two outputs: not the generator alone decides."""
    for (data,), once, again in runs.repeated:
        if len({by_value(once), by_value(again)}) == 2:
            return (
                f"On {_quote_value(data)} and with one and the same seed, {task.function} returned "
                f"{_quote(once)} and then {_quote(again)}."
            )
    return None


def check_privacy(task: Task, runs: Runs, share: float, rng: np.random.Generator) -> str | None:
    """Audit all pairs on what is stored."""
    stored = runs.outputs
    kinds = {read_output(output, Reading()) for outputs in stored for output in outputs}
    if len(kinds) > 1:
        stored = [list(map(by_value, outputs)) for outputs in stored]
    # Shuffled, so that no order of the runs decides which of them choose the event.
    shuffled = [cycle([outputs[i] for i in rng.permutation(len(outputs))]) for outputs in stored]
    pairs = zip(task.places, task.pairs, strict=True)
    try:
        found = report(
            lambda place: next(shuffled[place]),
            task.epsilon,
            [(*places, pair.difference) for places, pair in pairs],
            trials=task.trials,
            delta=task.delta,
            confidence=1 - share * len(task.pairs),
            rng=rng,
        )
    except MechanismFailed as error:  # no two outputs can be compared
        return f"{str(error).replace('mechanism', task.function, 1)}."
    return found.sentence if found.verdict == "violated" else None


def check_distribution(
    task: Task, data: object, outputs: list, distribution: Callable, share: float
) -> str | None:
    """Compare the outputs on a data set with their distribution."""
    stated = distribution(data)
    words, values = _quote_value(data), outputs
    if task.statistic is not None:
        words = f"{words}, by the statistic of the task"
        values = [_apply(task, task.statistic, output, data) for output in outputs]
        for output, value in zip(outputs, values, strict=True):
            if value is None:
                return f"On {_quote_value(data)}, {_quote(output)} has no statistic of the task."
    compare = compare_frequencies if isinstance(stated, Mapping) else compare_numbers
    return compare(words, values, stated, share, task.tolerance)


def compare_frequencies(
    data: str, outputs: list, stated: Mapping, share: float, tolerance: float
) -> str | None:
    """Compare frequencies with probabilities: an exact binomial test for each output.

    Each of K outputs has two tails, of an error of share / 2K each: no approximation, and what
    deviates has a name. A float within the tolerance of one that is stated is that one.
    """
    stated = {by_value(name): (name, float(p)) for name, p in stated.items()}
    names, p = list(stated), np.array([p for _, p in stated.values()])
    if not (abs(p.sum() - 1) <= _ROUNDED and (p >= 0).all()):
        raise ValueError(
            f"distribution must return probabilities that sum to 1, on {data} they sum to {p.sum()}"
        )
    counts, runs = dict.fromkeys(names, 0), len(outputs)
    for output in outputs:
        value = by_value(output)
        if value not in stated:
            near = (v for v, (name, _) in stated.items() if _is_answer(output, name, tolerance, 0))
            value = next(near, value)
        if not stated.get(value, (None, 0.0))[1]:
            return f"On {data}, an output was {_quote(output)}, which must not come."
        counts[value] += 1
    p, hits = p.clip(max=1.0), np.array(list(counts.values()))
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
    return special.bdtrc(np.asarray(hits) - 1, runs, p)


def compare_numbers(
    data: str, outputs: list, stated: object, share: float, tolerance: float
) -> str | None:
    """Compare two distribution functions, by the bound of Dvoretzky, Kiefer, Wolfowitz, Massart.

    The two are nowhere further apart than sqrt(log(2 / error) / 2n), but with probability error;
    that holds for every distribution, on a grid or not. It does not see that n outputs are all the
    one value of a large probability p. By chance they are at most with probability p^(n - 1), even
    if there are several such values. Either test has half of the share.
    """
    for output in outputs:
        if fault := _describe_shape(output, ()):
            return f"On {data}, an output was {_quote(output)}: {fault}."
    n = len(outputs)
    values, counts = np.unique(np.asarray(outputs, dtype=float), return_counts=True)
    at = np.asarray(stated.cdf(values), dtype=float)
    step = np.asarray(stated.pmf(values), dtype=float) if hasattr(stated, "pmf") else 0.0
    if _is_discrete(stated):
        # Rounding puts a value beside the grid, and makes several of one.
        at = np.where(step, at, stated.cdf(values + tolerance))
        step = np.where(step, step, at - stated.cdf(values - tolerance))
        if not step.all():
            return f"On {data}, an output was {values[step.argmin()]!r}, which must not come."
    found = np.append(0, counts.cumsum()) / n
    # Both functions at each value, and below it.
    seen = found[np.concatenate([np.searchsorted(at, at, side) for side in ("right", "left")])]
    wanted = np.concatenate([at, at - step])
    worst = int(np.abs(seen - wanted).argmax())
    is_constant = len(values) == 1 and np.all(step ** (n - 1) <= share / 2)
    bound = math.sqrt(math.log(4 / share) / (2 * n))
    if abs(seen[worst] - wanted[worst]) <= bound and not is_constant:
        return None
    side, place = divmod(worst, len(values))
    return (
        f"On {data}, {round(n * seen[worst]):,} of {n:,} outputs were "
        f"{('at most', 'below')[side]} {values[place]:.6g}; the stated distribution has "
        f"{n * wanted[worst]:,.0f} of them there."
    )


def _is_discrete(stated: object) -> bool:
    """Whether a distribution is one of scipy's on a grid, without loading all of them to ask."""
    return any(kind.__name__ == "rv_discrete" for kind in type(getattr(stated, "dist", 0)).__mro__)


def check_usefulness(task: Task, data: object, outputs: list, share: float) -> str | None:
    """Count how often the loss is above the margin."""
    found = [_apply(task, lambda *given: float(task.loss(*given)), o, data) for o in outputs]
    losses = np.array(found, dtype=float)
    lost = ~np.isfinite(losses)
    hits, n = int((lost | (losses > task.margin)).sum()), len(outputs)
    if _at_least(hits, n, task.beyond) >= share:
        return None
    fault = f"the error was above {task.margin:.4g} in {hits:,} of {n:,} runs"
    if lost.any():
        example = _quote(outputs[lost.argmax()])
        fault += f" ({lost.sum():,} outputs, such as {example}, are no answer at all)"
    return (
        f"Not as useful as promised: on {_quote_value(data)}, {fault}, and {n * task.beyond:,.0f} "
        "are expected at most."
    )


def _apply(task: Task, function: Callable, output: object, data: object) -> object:
    """Return what a teacher's function says of an output, or None if it is for other outputs.

    Where the task asks for a shape, a list is handed over as an array: they are one output.
    """
    with suppress(Exception):
        is_list = task.shape is not None and isinstance(output, list | tuple)
        return function(np.asarray(output) if is_list else output, data)
    return None


def by_value(output: object) -> Hashable:
    """Return what all outputs of the same values have in common: floats, texts and tuples of them.

    Numbers are floats up to where these are exact. A dict is the tuple of its items by their keys.
    """
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, dict):
        items = [(by_value(name), by_value(value)) for name, value in output.items()]
        return tuple(sorted(items, key=lambda item: repr(item[0])))
    if isinstance(output, list | tuple):
        return tuple(map(by_value, output))
    if not isinstance(output, int | float) or abs(output) > EXACT_INTEGER:
        return output
    # NaN is the same object, so that it equals itself within tuples and as a key.
    return float(output) if output == output else math.nan


def _quote(output: object) -> str:
    """Return an output in a few words."""
    return _quote_value(output.tolist() if isinstance(output, np.ndarray) else output)


def _escape(sentence: str) -> str:
    """Return a sentence that moves no cursor, fits a screen, and can be written anywhere."""
    cut = sentence if len(sentence) <= _MOST else f"{sentence[: _MOST - 3]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
