"""How long a page takes to read, and what makes it long.

Minutes are words/85 + visible lines of code/19, fitted to two readings of the first edition.
Exercises (the quiz is their first part), sources, sections whose heading ends in ``(optional)`` and
what opens on demand (``:class: dropdown``) do not count. ``python book/_tools/measure.py`` prints
a row for each page.
"""

import math
import re
from dataclasses import dataclass
from itertools import takewhile

import prose

WORDS_A_MINUTE, LINES_A_MINUTE = 85, 19
MOST_MINUTES, MOST_LINES, LONGEST_CELL = 45, 180, 25
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
NOT_COUNTED = {"Exercises", "Sources"}

HEADING = re.compile(r"^(?P<marks>#{1,6}) +(?P<text>.*?)\s*$")
SOURCE = re.compile(r"\bthe sources?\b(?!\s+code\b)|\bour source\b|\bits source\b", re.I)
PICTURE = re.compile(r'class="interactive"|!\[|<svg\b|<img\b|\{(?:figure|image)\}')


@dataclass(frozen=True)
class Measure:
    """What a page asks of its reader."""

    words: int
    lines: int
    longest: int
    code_before_picture: bool
    sources: int

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
    words, lines, longest, sources = 0, 0, 0, 0
    pictured, early = False, False
    reader = _Reader()
    for cell in cells:
        if cell["cell_type"] == "markdown":
            text = reader.counted(cell["source"])
            words += len(_words(text))
            sources += len(SOURCE.findall(prose.mask(cell["source"])))
            pictured |= bool(PICTURE.search(cell["source"]))
            continue
        seen = visible_lines(cell)
        longest = max(longest, seen)
        early |= bool(seen) and not pictured
        pictured |= _shows_picture(cell)
        lines += 0 if reader.skipping else seen
    return Measure(words, lines, longest, early, sources)


def visible_lines(cell):
    """Count the lines of a code cell that a reader sees; blank ones do not count."""
    if HIDDEN & set(cell["metadata"].get("tags", [])):
        return 0
    return sum(bool(line.strip()) for line in "".join(cell["source"]).splitlines())


def _shows_picture(cell):
    kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
    return any(kind.startswith("image/") for kind in kinds)


class _Reader:
    """Somebody who reads cell after cell and leaves out what is optional."""

    def __init__(self):
        self.level = 0

    @property
    def skipping(self):
        return self.level > 0

    def counted(self, source):
        """Return the lines of a Markdown cell that count."""
        lines = []
        for line in _without_dropdowns(source):
            heading = HEADING.match(line)
            if heading:
                self._pass(len(heading["marks"]), heading["text"])
            if not self.skipping:
                lines.append(line)
        return "\n".join(lines)

    def _pass(self, level, text):
        if self.skipping and level > self.level:
            return
        skipped = text in NOT_COUNTED or text.endswith("(optional)")
        self.level = level if skipped else 0


def _without_dropdowns(source):
    """Return the lines outside of directives that open on demand, and outside of code."""
    lines, kept, fences = source.split("\n"), [], []
    for number, line in enumerate(lines):
        fence = prose.FENCE.match(line)
        if fence and prose.closes(fence, fences):
            fences.pop()
        elif fence:
            options = takewhile(prose.OPTION.match, lines[number + 1 :])
            closed = any("dropdown" in option for option in options)
            closed = closed or fence["name"] in (None, "dropdown")
            fences.append((fence["marks"], closed))
        elif not any(closed for _, closed in fences):
            kept.append("" if fences and prose.OPTION.match(line) else line)
    return kept


def _words(text):
    # What stands inside an interactive figure is for readers who do not see the figure.
    boxes = r'<div class="(?:interactive|try-it)".*?</div>'
    text = re.sub(rf"<!--.*?-->|{boxes}|<[^>]+>", "", text, flags=re.S)
    text = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.S)
    text = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", " ", text, flags=re.S)
    text = re.sub(r"\$[^$\n]+\$", " x ", text)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    return [word for word in text.split() if re.search(r"\w", word)]


def main():
    """Print a row for each notebook."""
    import refresh

    print(f"{'page':34s} minutes  words  lines  longest  sources")
    for path in refresh.notebooks():
        found = measure(refresh.read(path)["cells"])
        row = [f"{found.exact:7.0f}", f"{found.words:6d}", f"{found.lines:6d}"]
        print(f"{refresh.name(path):34s} {' '.join(row)} {found.longest:8d} {found.sources:8d}")


if __name__ == "__main__":
    main()
