"""Find numbers that were typed by hand in the book's prose.

A number that somebody measured goes stale when the code behind it changes, so it must come from a
cell, and stand before a mark (see `marks`). ``typed_numbers`` finds every percentage and every
number of three or more significant digits that does not. These may be typed:

- in code, mathematics, links, roles, comments, directive options and front matter;
- in a sentence, or a table row, with a citation, which is a link that leads out of the book: the
  source says so, not our run;
- one or two significant digits (0.05, 14, 2,000), so powers of ten as well; never a percentage,
  save 0 %, 100 % and the level of a confidence interval ("95 % confidence");
- years from 1900 to 2099, where nothing is counted by them;
- numbers of sections, pages, theorems and the like, versions (3.11.2), names (SHA-256), widths
  ("128-bit") and list numbers.

What else needs a number, such as 256 values of a byte, writes it as mathematics: ``$256$``.
"""

import re
from collections import Counter

import marks

CITATION = "\x01"
OPAQUE = {"code", "code-block", "code-cell", "eval-rst", "math", "raw"}

FENCE = re.compile(
    r"^[ \t>]*(?P<marks>`{3,}|~{3,}|:{3,})[ \t]*(?:\{(?P<name>[^}]+)\})?(?P<rest>.*)$"
)
OPTION = re.compile(r"^\s*:[\w-]+:")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.S)
INLINE = re.compile(
    marks.MARK.pattern + r"|<!--.*?-->"
    r"|\$\$.*?\$\$"
    r"|(?:\{[\w:-]+\})?(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<![\\\w$])\$(?!\s)(?:\\.|[^$\\])+?\$(?!\d)"
    r"|(?<=\])\([^)\s]*(?:\s\"[^\"]*\")?\)"
    r"|<?https?://[^\s>)]+>?"
    r"|^\s*\d+[.)](?=\s)",
    re.S | re.M,
)
CITES = re.compile(r"\{(?:foot)?cite(?::\w+)?\}`|\(<?https?://")
SENTENCE_END = re.compile(
    rf"(?<=[.!?])(?<!\bet al\.)[)*_\"']*\s+(?![\s{CITATION}])|\n\s*\n|\n(?=\s*(?:[-*+|]|\d+[.)])\s)"
)

NUMBER = re.compile(
    r"(?<![\w.,])(?<![A-Za-z]-)"
    r"(?P<digits>\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<power>[eE][-+]?\d+)?"
    r"(?![\d]|\.\d|[A-Za-z]\w)"
    r"(?P<percent>\s?[%‰]|\s+per\s?cent\b)?"
)
NAMED = re.compile(
    r"\b(?:sections?|pages?|theorems?|lemmas?|equations?|tables?|figures?|versions?|python)"
    r"\s(?:\d+(?:\.\d+)*\s?(?:and|or|to|,|–|-)\s?)*$",
    re.I,
)
YEAR = re.compile(r"(?:19|20)\d\d")
COUNTED = re.compile(
    r"\s+(?:answers|bits|draws|examples|people|queries|records|reports|rows|samples|teachers|times"
    r"|trials|users|values|votes)\b"
)
LEVEL = re.compile(r"[\s-]+(?:confidence|intervals?)\b|\s*的?置信")


def typed_numbers(text):
    """Return the numbers typed by hand in a page or cell, each as ``(line, number)``."""
    prose = mask(text)
    found, start = [], 0
    ends = [match.end() for match in SENTENCE_END.finditer(prose)] + [len(prose)]
    for end in ends:
        sentence = prose[start:end]
        if CITATION not in sentence:
            for match in _measured(sentence):
                line = marks.line_of(prose, start + match.start())
                found.append((line, match.group().strip()))
        start = end
    return found


def _measured(sentence):
    for match in NUMBER.finditer(sentence):
        before, after = sentence[: match.start()], sentence[match.end() :]
        if not (_is_trivial(match, after) or NAMED.search(before)):
            yield match


def _is_trivial(match, after):
    digits = match["digits"]
    if match["percent"]:
        return float(re.sub(r"[^\d.]", "", digits)) in (0, 100) or bool(LEVEL.match(after))
    if YEAR.fullmatch(digits) and not match["power"] and not COUNTED.match(after):
        return True
    return significant_digits(digits) < 3 or after.startswith(("-bit", "-byte"))


def significant_digits(number):
    """Count them; the zeros that end a whole number do not count.

    >>> [significant_digits(number) for number in ("0.05", "32,561", "2,000", "1.00")]
    [1, 5, 1, 3]
    """
    digits = re.sub(r"[^\d.]", "", number)
    if "." not in digits:
        digits = digits.rstrip("0")
    return len(digits.replace(".", "").lstrip("0"))


def mask(text):
    """Blank out all that is not prose; lines stay where they are and a citation leaves a mark."""
    return INLINE.sub(_blank_inline, _mask_fences(FRONT_MATTER.sub(_blank, text)))


def misplaced_marks(text):
    """Yield ``(line, name)`` for each mark where the site would print it: in mathematics or code,
    in a heading or in the title of a directive.
    """
    in_prose = Counter(_named(INLINE, _mask_fences(text)))
    lines = text.split("\n")
    for (line, name), count in Counter(_named(marks.MARK, text)).items():
        titled = lines[line - 1].startswith("#") or FENCE.match(lines[line - 1])
        if titled or count > in_prose[line, name]:
            yield line, name


def _named(pattern, text):
    return [(line, match["name"]) for line, match in marks.find(pattern, text)]


def headings(text, level):
    """Return a text's headings of one level, without those in code."""
    marks = "#" * level + " "
    lines = _mask_fences(text).splitlines()
    return [line.removeprefix(marks).strip() for line in lines if line.startswith(marks)]


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def _blank_inline(match):
    blank = _blank(match)
    return CITATION + blank[1:] if CITES.match(match.group()) else blank


def _mask_fences(text):
    return "\n".join(line for line, _ in unfence(text))


def unfence(text):
    """Yield for each line what is prose of it, and whether that opens on demand."""
    open_fences, in_options = [], False
    for line in text.split("\n"):
        fence = FENCE.match(line)
        opaque = bool(open_fences) and open_fences[-1]["opaque"]
        if fence and _closes(fence, open_fences):
            open_fences.pop()
            line, in_options = "", False
        elif fence and not opaque:
            name = fence["name"]
            kind = {"opaque": name is None or name in OPAQUE, "folded": name == "dropdown"}
            open_fences.append({"marks": fence["marks"], **kind})
            line, in_options = fence["rest"] if name else "", True
        elif opaque or (in_options and OPTION.match(line)):
            open_fences[-1]["folded"] |= "dropdown" in line
            line = ""
        else:
            in_options = False
        yield line, any(each["folded"] for each in open_fences)


def _closes(fence, open_fences):
    """Say whether a fence ends the directive that was opened last."""
    if not open_fences or fence["name"] or fence["rest"].strip():
        return False
    return fence["marks"].startswith(open_fences[-1]["marks"])
