"""Grade a submission: run it elsewhere, store what it returns, and judge that here."""

import json
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpnotes._checks import check_choice, check_probability, check_rng, require_kind
from dpnotes.audit._lower_bound import largest_certifiable_epsilon
from dpnotes.grading._judge import judge_runs
from dpnotes.grading._sandbox import choose_isolation, collect_outputs
from dpnotes.grading._task import Task, plan_calls
from dpnotes.release import _require_list

if TYPE_CHECKING:
    import pandas

_LARGEST = 2**23  # bytes of a submission, of which JSON may make thirty times as many


class Verdict(NamedTuple):
    """The result of one task: `points` out of `possible`, and the reason in a sentence.

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

    A right submission gets all points with a probability of at least `confidence`. `isolation` says
    how the submission was shut in: "namespaces" (by bubblewrap) or "process".
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
        """The points that could be had."""
        return sum(verdict.possible for verdict in self.verdicts)

    def __str__(self) -> str:
        """Return a line for each verdict, and one for the sum."""
        lines = [
            f"{v.function}: {v.points:g} of {v.possible:g}. {v.sentence}" for v in self.verdicts
        ]
        return "\n".join([*lines, f"Together: {self.points:g} of {self.possible:g}."])

    def table(self) -> "pandas.DataFrame":
        """Return a row for each verdict, in the order of the tasks."""
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
    r"""Grade a submission that you do not trust, task by task.

    Parameters
    ----------
    submission : str or path
        A string is the source code itself; a path (`pathlib.Path`) leads to a script or a notebook.
        All code cells of a notebook are run, without the lines that begin with % or !. A statement
        that fails does not stop the next one.
    tasks : iterable of Task
        What is asked.
    confidence : float, default 0.999
        Probability with which a right submission gets all points, over all tests of all tasks.
    hidden : iterable of paths, default ()
        Files and folders that a submission in namespaces must not see, such as the hidden tests and
        other people's submissions. The modules that a task blocks are hidden as well.
    isolation : str, default "best"
        "namespaces" needs bubblewrap (bwrap), and "process" is a plain process. "best" takes
        namespaces where bubblewrap is installed and works, and a process elsewhere.
    rng : numpy.random.Generator, int or None
        Decides the seeds and the order of the runs. Somebody who knows the seed knows the runs, so
        leave it out for grades that count.

    Returns
    -------
    Grades
        A frozen object with `verdicts`, `points`, `possible` and `table()`. It prints as a line for
        each task.

    Raises
    ------
    ValueError
        If there are no tasks, a parameter is out of range, a task has too few trials to refute its
        claim, the submission is larger than 8 MiB or no notebook, a hidden folder holds Python or
        numpy, or more paths are hidden than bubblewrap takes (some 2,000).
    FileNotFoundError
        If the path leads nowhere, or one that is hidden.
    NotImplementedError
        If you ask for namespaces where bubblewrap is missing or not allowed to make them.

    Notes
    -----
    A fresh process loads the submission for each task. There its function is called `trials` times
    on each data set, in random order and each time with a generator of its own seed. What it
    returns is stored: None, booleans, numbers, texts, and lists, tuples, dicts and arrays of them.
    A dataclass counts as the dict of its fields, and any other type is refused, subclasses
    included. All judging is done afterwards, on what was stored, so there is nothing that a
    submission could patch: if it forges an answer, then that answer is what its function returned.

    Numbers of numpy are stored as Python's own, an array of numbers as one of booleans, int64 or
    float64, and an array of others as a list. Where the outputs of a mechanism still differ in
    type, only their values count: 1, True and 1.0 are one output, and so are a list, a tuple and an
    array of the same numbers, and dicts in any order.

    The checks come in this order, and the first that fails is the verdict: the function runs; its
    answers are right (to `tolerance`; what is wrong with a table of probabilities is told by its
    `exact_epsilon`); its outputs have the shape; the same seed gives the same output; no pair
    refutes epsilon (this is `report`, on the stored outputs); the frequencies agree with the stated
    distribution; the loss exceeds the margin no more often than it may. If epsilon or the
    distribution is refuted by outputs that never vary, the verdict is that the generator is not
    used. Where there are few outputs, an exact binomial test compares the frequency of each; other
    numbers are compared by the inequality of Dvoretzky, Kiefer and Wolfowitz with the constant of
    Massart (1990).

    Every test that can err gets an equal share of 1 - confidence, over the whole assignment
    (Bonferroni's inequality). Nothing is approximated, so a right submission loses a point with a
    probability of at most 1 - confidence, if its runs are independent of each other.

    *What stops whom.* In the namespaces that bubblewrap makes, a submission has no network, sees no
    other process and no device but /dev/null and its like, shares no key of the kernel, cannot
    change its settings, writes only to a folder that vanishes, does not see what is hidden nor what
    Python compiled of it, has no rights to undo that, and ends with the process that grades,
    however that ends. Its time, its processor time and the memory of each process are limited. On
    macOS, and wherever bubblewrap does not work, it is a process with limits that has your rights:
    it can read and write files, use the network, import what it finds on the disk and leave
    processes behind; where the process that grades is killed, its folder stays. On Windows only its
    time is limited. What all answers of a task may take together is limited everywhere: some 4
    million numbers, or 300,000 texts. Nothing stops it from reading what is not hidden or a copy of
    what is, from attacking the kernel, from filling the machine with processes, or with memory that
    the kernel holds for them, until its time is over, from changing the modes and the times of
    /dev/null and its like where root grades (grade as an ordinary user), from knowing that it is
    graded and on which data (it then has to be right on all of them), or from being somebody else's
    work. A fault stays unseen if it needs other data sets than those of the task, or hides in
    digits that no event of the audit looks at. Against enemies, use a virtual machine.

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
        require_kind("tasks", task, Task, "of type Task")
    confidence = check_probability("confidence", confidence)
    check_choice("isolation", isolation, ("best", "namespaces", "process"))
    hidden = _require_list("hidden", hidden)
    _check_hidden(hidden)
    rng = check_rng(rng)
    share = (1 - confidence) / max(1, sum(task.tests for task in tasks))
    for task in tasks:
        _check_trials(task, share)
    isolation = choose_isolation(isolation)
    verdicts, runs = [], None
    for task in tasks:
        plan = plan_calls(task, rng)
        # Cells that did not end would take as long again for each task.
        if runs is None or not runs.is_endless:
            runs = collect_outputs(task, cells, plan, hidden, isolation)
        check, sentence = judge_runs(task, runs, share, rng)
        points = task.points if check == "passed" else 0.0
        verdicts.append(Verdict(task.function, points, task.points, check, sentence))
    return Grades(tuple(verdicts), confidence, isolation)


def _check_trials(task: Task, share: float) -> None:
    if task.epsilon is None:
        return
    limit = largest_certifiable_epsilon(task.trials, confidence=1 - share, delta=task.delta)
    if limit <= task.epsilon:
        raise ValueError(
            f"tasks must have trials enough to refute their claim: {task.trials} can show an "
            f"epsilon of {max(0.0, limit):.4g}, and {task.function} claims {task.epsilon:.4g}"
        )


def _check_hidden(hidden: list) -> None:
    needed = [Path(place).resolve() for place in (sys.prefix, np.__file__, os.__file__)]
    for place in hidden:
        require_kind("hidden", place, str | os.PathLike, "a list of paths")
        real = Path(place).resolve()
        if not real.exists():
            raise FileNotFoundError(f"hidden must be a list of paths that exist, got {place}")
        if any(part.is_relative_to(real) for part in needed):
            raise ValueError(f"hidden must not hold what Python runs by, but {place} does")


def _read_cells(submission: str | os.PathLike) -> list[str]:
    """Return the parts of a submission, each to be run whatever became of the one before."""
    if isinstance(submission, str):
        return [submission]
    require_kind("submission", submission, os.PathLike, "a source or a path")
    path = Path(submission)
    found = path.lstat()
    # A link leads to what its author may not read, a pipe or a device never ends.
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        raise ValueError(f"submission must be a file of at most 8 MiB, and no link: {path.name!r}")
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix.lower() != ".ipynb":
        return [text]
    try:
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, MemoryError, RecursionError, TypeError, ValueError) as error:
        start = " ".join(text[:60].split())
        raise ValueError(f"submission must be a notebook, but it starts with {start!r}") from error
