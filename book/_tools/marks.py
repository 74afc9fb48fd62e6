"""Numbers that the prose shows: each stands before a mark that names it.

``43.8<!-- flipped:.1f -->`` is read as 43.8 wherever a notebook is opened. The mark says that a
cell of the page keeps a number called ``flipped`` (see ``dpnotes._pages.keep``), and how it is
written. ``refresh`` writes the numbers anew, and ``lint`` compares them. ``minutes`` is the
reading time of the page. A number is one word: what follows it, such as a percent sign after a
space, is prose.
"""

import ast
import re

MARK = re.compile(
    r"(?P<shown>[0-9A-Za-z?.,+\-∞−%/]*)"
    r"<!-- ?(?P<name>[A-Za-z_]\w*)(?::(?P<spec>[^\s>]*?))? ?-->"
)
READING_TIME = "minutes"


def find(pattern, text):
    """Yield ``(line, match)`` for each match of a pattern in a text; lines count from 1."""
    for match in pattern.finditer(text):
        yield line_of(text, match.start()), match


def line_of(text, place):
    """Return the line, counted from 1, of a place in a text."""
    return text.count("\n", 0, place) + 1


def kept(cells):
    """Return the numbers that the cells of a page keep, by name."""
    numbers = {}
    for cell in cells:
        for output in cell.get("outputs", []):
            board = output.get("metadata", {}).get("scrapbook", {})
            if "name" in board:
                text = output["data"][f"{board['mime_prefix']}text/plain"]
                numbers[board["name"]] = ast.literal_eval("".join(text))
    return numbers


def shown(numbers, name, spec):
    """Write a number as its mark asks for it, or say why it can't be, as ``(text, reason)``."""
    if name not in numbers:
        return None, f"no cell keeps {name}"
    try:
        text = format(numbers[name], spec or "")
    except ValueError as error:
        return None, f"{name} can't be written as {spec}: {error}"
    if not re.fullmatch(r"[0-9A-Za-z.,+\-∞−%/]+", text):
        return None, f"{name} is more than one word ({text!r}): keep its number alone"
    return text, None


def written(text, numbers):
    """Write the numbers of a text anew; a mark without a number keeps what it shows."""

    def renewed(match):
        new, _ = shown(numbers, match["name"], match["spec"])
        return match.group() if new is None else new + match.group()[len(match["shown"]) :]

    return MARK.sub(renewed, text)


def problems(text, numbers):
    """Yield ``(line, reason)`` for each mark that can't be written from the numbers kept."""
    for line, match in find(MARK, text):
        _, reason = shown(numbers, match["name"], match["spec"])
        if reason:
            yield line, reason
