"""How long a page takes to read: words/85 + visible lines of code/19.

Exercises (the quiz is their first part), sources, sections whose heading ends in ``(optional)`` and
what opens on demand (``:class: dropdown``) do not count.
"""

import math
import re

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


def count_minutes(cells):
    """Return the minutes that the cells of a page take to read, rounded up to five."""
    words, lines, skipped = 0, 0, 0
    for cell in cells:
        if cell["cell_type"] == "code" and not skipped:
            lines += visible_lines(cell)
        if cell["cell_type"] != "markdown":
            continue
        counted = []
        for line in [line for line, folded in prose.unfence(cell["source"]) if not folded]:
            heading = HEADING.match(line)
            # A section ends at the next heading of its level.
            if heading and not 0 < skipped < len(heading["marks"]):
                optional = heading["text"] in NOT_COUNTED or heading["text"].endswith("(optional)")
                skipped = len(heading["marks"]) if optional else 0
            counted += [] if skipped else [line]
        words += _count_words("\n".join(counted))
    return 5 * math.ceil((words / WORDS_A_MINUTE + lines / LINES_A_MINUTE) / 5)


def visible_lines(cell):
    """Count the lines of a code cell that a reader sees; blank ones do not count."""
    if HIDDEN & set(cell["metadata"].get("tags", [])):
        return 0
    return sum(bool(line.strip()) for line in cell["source"].splitlines())


def _count_words(text):
    text = re.sub(r"\$[^$\n]+\$", " x ", NO_WORDS.sub("", text))
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    return sum(bool(re.search(r"\w", word)) for word in text.split())
