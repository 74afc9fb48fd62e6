"""Grade a submission: run it elsewhere, store what it returns, and judge that here."""

import ast
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpnotes._checks import check_choice, check_probability, check_rng
from dpnotes.audit._lower_bound import largest_certifiable_epsilon
from dpnotes.grading._judge import Level, judge_runs
from dpnotes.grading._sandbox import choose_isolation, collect_outputs
from dpnotes.grading._task import Runs, Task, plan_calls
from dpnotes.release import _require_list

if TYPE_CHECKING:
    import pandas

_ISOLATIONS = ("best", "namespaces", "process")


class Verdict(NamedTuple):
    """What one task brought: `points` of `possible`, and why in a sentence.

    `check` is "passed", or what failed first: "run", "answer", "shape", "rng", "privacy",
    "distribution" or "usefulness".
    """

    function: str
    points: float
    possible: float
    check: str
    sentence: str


class Grades(NamedTuple):
    """The verdicts on a submission, as `grade` returns them.

    A right submission has all its points with a probability of at least `confidence`. `isolation`
    is how far the submission was shut in: "namespaces" (by bubblewrap) or "process".
    """

    verdicts: tuple[Verdict, ...]
    confidence: float
    isolation: str

    @property
    def points(self) -> float:
        """The points of all tasks together."""
        return sum(verdict.points for verdict in self.verdicts)

    @property
    def possible(self) -> float:
        """The points that there are."""
        return sum(verdict.possible for verdict in self.verdicts)

    def __str__(self) -> str:
        """Return a line for each verdict, and the sum."""
        lines = [
            f"{v.function}: {v.points:g} of {v.possible:g}. {v.sentence}" for v in self.verdicts
        ]
        return "\n".join([*lines, f"Together: {self.points:g} of {self.possible:g}."])

    def table(self) -> "pandas.DataFrame":
        """Return a row a verdict, in the order of the tasks."""
        import pandas

        return pandas.DataFrame(list(self.verdicts))


def grade(
    submission: str | os.PathLike,
    tasks: Iterable[Task],
    *,
    confidence: float = 0.999,
    hidden: Iterable[str | os.PathLike] = (),
    isolation: str = "best",
    rng: np.random.Generator | int | None = None,
) -> Grades:
    r"""Grade a submission that is not trusted, task by task.

    Parameters
    ----------
    submission : str or path
        A string is the source itself; a path (`pathlib.Path`) is that of a script or a notebook. Of
        a notebook all code cells are run, without the lines that begin with % or !. A statement
        that fails does not stop the next one.
    tasks : iterable of Task
        What is asked.
    confidence : float, default 0.999
        Probability with which a right submission gets all points, over all tests of all tasks.
    hidden : iterable of paths, default ()
        Files and folders that the submission is not to see, where it runs in namespaces: the hidden
        tests, other people's submissions. What a task blocks is hidden as well.
    isolation : str, default "best"
        "namespaces" where bubblewrap (bwrap) is installed and works, and a "process"
        elsewhere ("best"), or one of the two.
    rng : numpy.random.Generator, int or None
        Decides the seeds and the order of the runs. A seed that submissions can know tells them
        which runs there will be; leave it out for grades that count.

    Returns
    -------
    Grades
        A frozen object with `verdicts`, `points`, `possible` and `table()`. Printed, it is a line
        for each task.

    Raises
    ------
    ValueError
        If there are no tasks, a parameter is out of range, or a task has too few trials to refute
        its claim.
    FileNotFoundError
        If the path leads nowhere.
    NotImplementedError
        If namespaces are asked for and bubblewrap is not there or not allowed to make them.

    Notes
    -----
    For each task the submission is loaded in a process of its own, anew. There it is run `trials`
    times on each data set, in random order and each time with a generator of its own seed, and what
    it returns is stored: None, booleans, numbers, texts, and lists, tuples, dicts and arrays of
    them, of exactly these types, and a dataclass as the dict of its fields. Where the types of a
    mechanism's outputs differ, values count: 1, True, 1.0 and numpy's 1 are one output, as are a
    list, a tuple and an array of the same numbers, and dicts in any order. A loss and a statistic
    get what was returned, as it was. All
    judging is done afterwards, on what was stored. So there is nothing that a submission could
    patch: an answer that it forges is what its function returned.

    A task is judged by checks, in this order, and the first that fails is the verdict: it runs; the
    answers are right (to `tolerance`; a table of probabilities is judged by `exact_epsilon` too);
    the outputs have the shape; a seed decides the output, and another one changes it; no pair
    refutes epsilon (as `report` does it, on the stored outputs); the frequencies agree with the
    stated distribution; the loss exceeds the margin no more often than it may. For few outputs the
    frequencies are compared by exact binomial tests of each output, for other numbers by the bound
    of Dvoretzky, Kiefer and Wolfowitz with the constant of Massart (1990).

    Every test that can err has an equal share of 1 - confidence, over the whole assignment
    (Bonferroni's inequality). Nothing is approximated, so a right submission loses a point with a
    probability of at most 1 - confidence, if its runs are independent of each other.

    *What stops whom.* In the namespaces that bubblewrap makes, a submission has no network, sees no
    other process, writes nothing but in a folder that vanishes, does not see what is hidden, and
    has no rights to undo that; its time, its processor time and the memory of a process are
    limited. On macOS and where bubblewrap does not work, it is a process with limits that has your
    rights: it can read and write files, use the network and import what it finds on the disk. On
    Windows only its time is limited. Nowhere is it stopped from reading what is not hidden, from
    attacking the kernel, from using up the machine with many processes until its time is over,
    from knowing that it is graded and for which runs (it then has to be right on all of them), nor
    from being somebody else's work. Nobody sees a fault that needs other data sets than those of
    the task, or one that hides in digits that no event of the audit looks at. For enemies take a
    virtual machine.

    Examples
    --------
    >>> task = Task(
    ...     function="keep_probability", points=2, answers=[((1.0,), 0.731058579)],
    ...     mistakes={"Divide by the sum of all categories.": lambda epsilon: np.exp(epsilon) / 2},
    ... )
    >>> wrong = "def keep_probability(epsilon):\n    return 2.718281828459045 / 2"
    >>> [verdict] = grade(wrong, [task], isolation="process", rng=0).verdicts
    >>> verdict.points, verdict.check
    (0.0, 'answer')
    >>> verdict.sentence.partition(". ")[2]
    'Divide by the sum of all categories.'
    """
    cells = _read_cells(submission)
    tasks = _require_list("tasks", tasks)
    if not tasks:
        raise ValueError("tasks must hold at least one task, got none")
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(f"tasks must be of type Task, got {type(task).__name__}")
    confidence = check_probability("confidence", confidence)
    check_choice("isolation", isolation, _ISOLATIONS)
    hidden = [_check_path(place) for place in _require_list("hidden", hidden)]
    rng = check_rng(rng)
    level = Level((1 - confidence) / max(1, sum(task.tests for task in tasks)), confidence)
    for task in tasks:
        _check_trials(task, level.share)
    isolation = choose_isolation(isolation)
    verdicts, endless, waited = [], None, 0.0
    for task in tasks:
        plan = plan_calls(task, rng)
        # Cells that did not end would take as long again for each task.
        if endless and task.seconds <= waited:
            stored = endless
        else:
            stored = collect_outputs(task, cells, plan, hidden, isolation)
        if stored.is_endless:
            endless, waited = stored, max(waited, task.seconds)
        runs = Runs(task, plan, stored.outputs, stored.fault)
        check, sentence = judge_runs(task, runs, level, rng)
        points = task.points if check == "passed" else 0.0
        verdicts.append(Verdict(task.function, points, task.points, check, sentence))
    return Grades(tuple(verdicts), confidence, isolation)


def _check_path(place: str | os.PathLike) -> str:
    if not isinstance(place, str | os.PathLike):
        raise TypeError(f"hidden must hold paths, got {type(place).__name__}")
    return os.fspath(place)


def _check_trials(task: Task, share: float) -> None:
    if task.epsilon is None:
        return
    limit = largest_certifiable_epsilon(task.trials, confidence=1 - share, delta=task.delta)
    if limit <= task.epsilon:
        raise ValueError(
            f"tasks must have trials enough to refute their claim: {task.trials} can show an "
            f"epsilon of {max(0.0, limit):.4g}, and {task.function} claims {task.epsilon:.4g}"
        )


def _read_cells(submission: str | os.PathLike) -> list[str]:
    """Return the parts of a submission, each to be run whatever became of the one before."""
    if isinstance(submission, str):
        return [submission]
    if not isinstance(submission, os.PathLike):
        kind = type(submission).__name__
        raise TypeError(f"submission must be a source or a path, got {kind}")
    path = Path(submission)
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix.lower() != ".ipynb":
        return [text]
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"submission must be a notebook, and {_describe_file(text)}") from error
    return [_drop_magic(source) for source in sources]


def _describe_file(text: str) -> str:
    """Return what a file is that is no notebook, as far as its first letters tell."""
    start = text.lstrip()[:100].lower()
    if not start:
        return "it is empty"
    if start.startswith(("<!doctype", "<html")):
        return "it is a page of HTML"
    if start.startswith("{") and '"worksheets"' in text:
        return "it is one of format 3: open it in Jupyter, and save it"
    return "it cannot be read as one"


def _drop_magic(source: str) -> str:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        lines = source.split("\n")
        return "\n".join("" if line.lstrip()[:1] in ("%", "!") else line for line in lines)
    return source
