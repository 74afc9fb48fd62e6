"""Results as JSON Lines: each finished unit is one line, and any number of processes write at once.

A run is a list of independent units. A unit has a *key*, which one it is, a *set-up*, what decides
its numbers, and *rows*, its numbers. A file has two kinds of lines, each an object:

    {"experiment", ...}                                   what all units share, in the first lines
    {"experiment", "unit": key, "setup", "provenance", "runs" or "records": rows}

A line is appended under a lock, whole or not at all. Who measures a unit holds a lock of its own
meanwhile, which the system takes back from a process that is killed: that one loses its unit only,
and another one, or the next start, measures it. A row that the file holds is not measured again.
Units with one key and different set-ups stand side by side and are never mixed.

The locks are files beside the results, ending in ``.lock``. Those of units go with their units; the
one of the file stays. They hold between machines where the file system passes locks on, as NFS does
today. Where it does not, give each machine a file of its own and join the files.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from dpnotes._files import written_whole

Report = Callable[[str], None]


class RunError(ValueError):
    """A run cannot go on as it was asked to; the message says what is in its way, and where."""


class Layout(NamedTuple):
    """How an experiment writes its units.

    Attributes
    ----------
    experiment : str
        Its name, in every line.
    rows : str
        What a line calls its rows.
    names : tuple of str
        The entries of a row that tell it from the others of its unit.
    lists : tuple of str
        The entries of a set-up that only say which rows there are, in the order of `names`: they
        decide no number.
    """

    experiment: str
    rows: str
    names: tuple[str, ...]
    lists: tuple[str, ...] = ()

    def identity(self, key: dict[str, Any], setup: dict[str, Any]) -> str:
        """Return in one string which unit it is, and what decides its numbers."""
        return _canonical([key, {k: setup[k] for k in setup if k not in self.lists}])

    def name(self, row: dict[str, Any]) -> str:
        """Return in one string which row of its unit it is."""
        return _canonical([row[name] for name in self.names])

    def listed(self, plan: NamedTuple, rows: Iterable[NamedTuple]) -> dict[str, tuple]:
        """Return those entries of a plan's lists that some of its rows are made of."""
        found = {}
        for entries, name in zip(self.lists, self.names, strict=True):
            made_of = {getattr(row, name) for row in rows}
            found[entries] = tuple(entry for entry in getattr(plan, entries) if entry in made_of)
        return found


class Unit(NamedTuple):
    """What is to be measured: the rows have their names at least."""

    key: dict[str, Any]
    setup: dict[str, Any]
    rows: tuple[dict[str, Any], ...]


class Line(NamedTuple):
    """A line, and where it stands, for messages."""

    place: str
    content: dict[str, Any]


def _canonical(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def describe(key: dict[str, Any]) -> str:
    """Name a unit in words."""
    return ", ".join(f"{name} {value}" for name, value in key.items())


# Reading.


def read(path: Path, layout: Layout, report: Report) -> list[Line]:
    """Read a file and check each line by itself; a last one that was cut off is left out.

    Raises
    ------
    RunError
        If the file cannot be read, or a line is damaged or of another experiment.
    """
    try:
        whole, rest = _split(path.read_bytes())
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error
    if rest and not _is_object(rest):
        report(f"{path}: the last line was cut off and is left out; its unit is to be measured")
        rest = b""
    texts = [*whole.split(b"\n"), rest]
    return [
        Line(f"{path}, line {number}", _parse(f"{path}, line {number}", text, layout))
        for number, text in enumerate(texts, start=1)
        if text.strip()
    ]


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Split a file into its finished lines and what follows the last of them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(_loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _loads(text: bytes) -> Any:  # noqa: ANN401
    """Read JSON, in which no number is NaN or infinite: none such could be written again."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise ValueError(f"JSON knows no {word}")


def _parse(place: str, text: bytes, layout: Layout) -> dict[str, Any]:
    if not _is_object(text):
        raise RunError(f"{place}: must be one whole JSON object; it is damaged")
    content = _loads(text)
    if content.get("experiment") != layout.experiment:
        raise RunError(f"{place}: 'experiment' must be {layout.experiment!r}")
    if "unit" in content and not _is_unit(content, layout):
        raise RunError(
            f"{place}: a unit must have 'unit', 'setup' and 'provenance', and one or more rows in "
            f"{layout.rows!r}, each with {', '.join(map(repr, layout.names))}"
        )
    return content


def _is_unit(content: dict[str, Any], layout: Layout) -> bool:
    parts = [content.get(name) for name in ("unit", "setup", "provenance")]
    rows = content.get(layout.rows)
    return (
        all(isinstance(part, dict) for part in parts)
        and all(isinstance(value, int | str) for value in content["unit"].values())
        and isinstance(rows, list)
        and len(rows) > 0
        and all(isinstance(row, dict) and set(layout.names) <= set(row) for row in rows)
    )


# Joining.


def join(lines: Iterable[Line], layout: Layout) -> list[dict[str, Any]]:
    """Put lines into one order, each row once.

    Returns
    -------
    list of dict
        First what all units share, then units by their keys.

    Raises
    ------
    RunError
        If two lines contradict each other: in what all share, or in one row of one unit.
    """
    shared: dict[str, Line] = {}
    rows: dict[tuple[str, str], Line] = {}
    heads, units = [], []
    for line in lines:
        if "unit" in line.content:
            new = [row for row in line.content[layout.rows] if _is_new(row, line, rows, layout)]
            units += [{**line.content, layout.rows: new}] * bool(new)
        else:
            news = [_is_news(name, line, shared) for name in line.content]
            heads += [line.content] * any(news)
    return heads + sorted(units, key=_order)


def _is_news(name: str, line: Line, shared: dict[str, Line]) -> bool:
    """Say whether no line had this entry yet, and refuse one that contradicts another."""
    first = shared.setdefault(name, line)
    if _measured(first.content[name]) != _measured(line.content[name]):
        raise RunError(f"{line.place}: {name!r} must be the same as in {first.place}")
    return first is line


def _measured(value: Any) -> Any:  # noqa: ANN401
    """Leave out when and where something was measured."""
    if isinstance(value, dict):
        return {name: value[name] for name in value if name != "provenance"}
    return value


def _is_new(
    row: dict[str, Any], line: Line, rows: dict[tuple[str, str], Line], layout: Layout
) -> bool:
    """Say whether no line had this row yet, and refuse one with other numbers."""
    key, setup = line.content["unit"], line.content["setup"]
    name = layout.name(row)
    first = rows.setdefault((layout.identity(key, setup), name), Line(line.place, row))
    if first.content != row:
        raise RunError(
            f"{line.place}: {describe(key)} has {name} with other numbers than in {first.place}; "
            "keep one of the two lines"
        )
    return first.content is row


def _order(content: dict[str, Any]) -> list[tuple[bool, Any]]:
    return [(isinstance(value, str), value) for value in content["unit"].values()]


def load(path: Path, layout: Layout, report: Report) -> list[dict[str, Any]]:
    """Read and join a file while nobody writes it; nothing is in one that is not there."""
    with locked(path):
        return join(read(path, layout, report), layout) if path.exists() else []


def shared(contents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return what all units share."""
    return {
        name: value
        for content in contents
        if "unit" not in content
        for name, value in content.items()
    }


def missing(unit: Unit, contents: Iterable[dict[str, Any]], layout: Layout) -> Unit | None:
    """Return a unit with the rows that are still to be measured; None if there is none."""
    identity = layout.identity(unit.key, unit.setup)
    held = {
        layout.name(row)
        for content in contents
        if "unit" in content and layout.identity(content["unit"], content["setup"]) == identity
        for row in content[layout.rows]
    }
    rows = tuple(row for row in unit.rows if layout.name(row) not in held)
    return unit._replace(rows=rows) if rows else None


# Writing.


@contextmanager
def locked(path: Path, *, patient: bool = True) -> Iterator[bool]:
    """Hold the lock of a file; with `patient` wait for it, else say whether it was free."""
    try:
        from filelock import FileLock, Timeout
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a long run needs filelock, which comes with torch: pip install filelock",
            name="filelock",
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(blocking=patient)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def begin(path: Path, layout: Layout, head: dict[str, Any], report: Report) -> None:
    """Let a file say what its units share; one that says something else is refused.

    Raises
    ------
    RunError
        If the file is damaged, or contradicts.
    """
    content = json.loads(_dumps({"experiment": layout.experiment, **head}))
    with locked(path):
        lines = read(path, layout, report) if path.exists() else []
        before = join(lines, layout)
        after = join([*lines, Line("what is asked for now", content)], layout)
        if len(after) > len(before):
            _append(path, content, report)


def append(path: Path, content: dict[str, Any], report: Report) -> None:
    """Add a line; if that fails half-way, the file is as it was."""
    with locked(path):
        _append(path, content, report)


def _append(path: Path, content: dict[str, Any], report: Report) -> None:
    text = f"{_dumps(content)}\n".encode()
    path.touch()
    with path.open("r+b", buffering=0) as file:
        end = _mend(file.read(), path, report)
        if end is None:
            end, text = file.tell(), b"\n" + text
        try:
            file.truncate(end)
            file.seek(end)
            while text:
                text = text[file.write(text) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise


def _mend(content: bytes, path: Path, report: Report) -> int | None:
    """Return where the next line begins; None if the last one is whole and lacks its end."""
    whole, rest = _split(content)
    if not rest:
        return len(whole)
    if _is_object(rest):
        return None
    report(f"{path}: the last line, which was cut off, is removed")
    return len(whole)


def rewrite(path: Path, contents: Iterable[dict[str, Any]]) -> None:
    """Write all lines of a file; the old one stays until the new one is whole."""
    with written_whole("out", path) as out:
        for content in contents:
            out.write(f"{_dumps(content)}\n".encode())


def _dumps(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


# Measuring.


@contextmanager
def claimed(path: Path, identity: str, *, patient: bool) -> Iterator[bool]:
    """Hold the lock of a unit while it is measured; its file goes when that was done."""
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    own = path.with_name(f"{path.stem}.{digest}.unit")
    with locked(own, patient=patient) as mine:
        yield mine
        # Whoever waits for this lock, or makes it anew, finds the unit's line in the results.
        if mine:
            with suppress(OSError):
                own.with_suffix(".lock").unlink()


class Results(NamedTuple):
    """A file that some units are measured for, beside others who measure for it, too."""

    path: Path
    layout: Layout
    report: Report

    def lacking(self, unit: Unit) -> Unit | None:
        """Return a unit with the rows that the file lacks; None if it lacks none."""
        return missing(unit, load(self.path, self.layout, self.report), self.layout)

    def claimed(self, unit: Unit, *, patient: bool) -> AbstractContextManager[bool]:
        """Hold the lock of a unit while it is measured, as the function `claimed`."""
        identity = self.layout.identity(unit.key, unit.setup)
        return claimed(self.path, identity, patient=patient)

    def add(self, unit: Unit, measured: dict[str, Any]) -> None:
        """Write down what was measured of a unit."""
        name = {"experiment": self.layout.experiment, "unit": unit.key, "setup": unit.setup}
        append(self.path, {**name, **measured}, self.report)


def measure_all(
    path: Path,
    layout: Layout,
    units: Sequence[Unit],
    measure: Callable[[Unit], dict[str, Any]],
    report: Report,
) -> None:
    """Measure what a file lacks of some units, beside any number of others who do the same.

    Parameters
    ----------
    path : Path
        The file, which `begin` began.
    layout : Layout
        How lines are written.
    units : sequence of Unit
        What the file shall hold.
    measure : callable
        Takes a unit, with those of its rows that are missing, and returns what its line has
        besides "experiment" and "unit".
    report : callable
        Gets a line of progress.
    """
    results = Results(path, layout, report)
    # First what is free; then what others were measuring, in case that they were killed.
    for patient in (False, True):
        taken = []
        for unit in units:
            if results.lacking(unit) is None:
                continue
            with results.claimed(unit, patient=patient) as mine:
                if not mine:
                    taken.append(unit)
                elif asked := results.lacking(unit):
                    results.add(unit, measure(asked))
        units = taken
        if units and not patient:
            report(f"waiting for {len(units)} units that other processes measure")
