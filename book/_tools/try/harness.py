"""Run a reader's program: what it prints goes where it goes, what it raises is told in short.

The page hands this file to its Python, as it is; see ``book/_static/try/worker.js``. A program that
leaves a report of ``dpnotes.audit`` in ``found`` has its witness drawn.
"""

import json
import sys
import traceback

NAME = "your program"
# Lines of one error that are shown: a recursion has a thousand.
MOST = 4


def run(source):
    """Run a program, and return what was found, or None; an error is printed and ends it."""
    names = {"__name__": "__main__"}
    try:
        exec(compile(source, NAME, "exec"), names)
    except BaseException as error:
        print(shortened(error, source), file=sys.stderr)
        return {"failed": True}
    return {"failed": False, "found": witness(names.get("found"))}


def shortened(error, source):
    """Say where in the reader's own lines an error came up, and what it was."""
    told = [f"{what}\n" for what in _lines(error, source.splitlines())]
    told += traceback.format_exception_only(error)[-1:]
    cause = error.__cause__
    before = [shortened(cause, source), "and because of that:"] if cause is not None else []
    return "\n".join([*before, "".join(told).strip()])


def _lines(error, lines):
    if isinstance(error, SyntaxError) and error.filename == NAME:
        yield _line(error.lineno, lines)
        return
    places = [
        (frame.lineno, frame.name)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == NAME
    ]
    if len(places) > MOST:
        yield f"({len(places) - MOST} lines before these are left out)"
    for number, function in places[-MOST:]:
        inside = "" if function == "<module>" else f", in {function}"
        yield _line(number, lines, inside)


def _line(number, lines, inside=""):
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"Line {number}{inside}:\n    {text}"


def witness(found):
    """Return what the page draws of a report: the event that tells most, and the claim."""
    try:
        told = found.witness._asdict()
        return told | {
            "epsilon": found.epsilon,
            "delta": found.delta,
            "confidence": found.confidence,
            "verdict": found.verdict,
        }
    except AttributeError:
        return None


def main(program, into):
    """Run the program in one file, and write what was found into another."""
    with open(program, encoding="utf-8") as file:
        result = run(file.read())
    sys.stdout.flush()
    sys.stderr.flush()
    with open(into, "w", encoding="utf-8") as file:
        json.dump(result, file)
