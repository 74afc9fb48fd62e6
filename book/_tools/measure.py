"""How long a page takes to read: words/85 + visible lines of code/19.

Exercises (the quiz is their first part), sources, sections whose heading ends in ``(optional)`` and
what opens on demand (``:class: dropdown``) do not count.
"""

import math
import re
from dataclasses import dataclass
from itertools import takewhile

import prose

WORDS_A_MINUTE, LINES_A_MINUTE = 85, 19
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
NOT_COUNTED = {"Exercises", "Sources"}

HEADING = re.compile(r"^(?P<marks>#{1,6}) +(?P<text>.*?)\s*$")
# What stands inside an interactive figure is for readers who do not see the figure.
NO_WORDS = re.compile(
    r'<!--.*?-->|<div class="(?:interactive|try-it)".*?</div>|<[^>]+>'
    r"|\$\$.*?\$\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}",
    re.S,
)


@dataclass(frozen=True)
class Measure:
    """The words and the lines of code that a page asks its reader to read."""

    words: int
    lines: int

    @property
    def minutes(self):
        """Minutes of reading, rounded up to five."""
        return 5 * math.ceil(self.exact / 5)

    @property
    def exact(self):
        """Minutes of reading."""
        return self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE


def measure(cells):
    """Measure the cells of a page."""
    words, lines, skipped = 0, 0, 0
    for cell in cells:
        if cell["cell_type"] == "code" and not skipped:
            lines += visible_lines(cell)
        if cell["cell_type"] != "markdown":
            continue
        counted = []
        for line in _without_dropdowns(cell["source"]):
            heading = HEADING.match(line)
            # A section ends at the next heading of its level.
            if heading and not 0 < skipped < len(heading["marks"]):
                optional = heading["text"] in NOT_COUNTED or heading["text"].endswith("(optional)")
                skipped = len(heading["marks"]) if optional else 0
            counted += [] if skipped else [line]
        words += _count_words("\n".join(counted))
    return Measure(words, lines)


def visible_lines(cell):
    """Count the lines of a code cell that a reader sees; blank ones do not count."""
    if HIDDEN & set(cell["metadata"].get("tags", [])):
        return 0
    return sum(bool(line.strip()) for line in cell["source"].splitlines())


def _without_dropdowns(source):
    """Return the lines outside of directives that open on demand, and outside of code."""
    lines, kept, fences = source.split("\n"), [], []
    for number, line in enumerate(lines):
        fence = prose.FENCE.match(line)
        if fence and prose.closes(fence, fences):
            fences.pop()
        elif fence:
            options = takewhile(prose.OPTION.match, lines[number + 1 :])
            closed = fence["name"] in (None, "dropdown") or "dropdown" in "".join(options)
            fences.append((fence["marks"], closed))
        elif not any(closed for _, closed in fences):
            kept.append("" if fences and prose.OPTION.match(line) else line)
    return kept


def _count_words(text):
    text = re.sub(r"\$[^$\n]+\$", " x ", NO_WORDS.sub("", text))
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    return sum(bool(re.search(r"\w", word)) for word in text.split())
