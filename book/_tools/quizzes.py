"""The quiz of a page: a cell of ``<details>`` below ``### Check yourself`` that a person writes.

Each answer opens by itself, so a quiz needs no script. What is said behind an answer is Markdown
and may hold mathematics and links, while the answer itself is plain HTML::

    **1.** Is a bound below the claim a proof?

    <details class="quiz right">
    <summary>No.</summary>

    **Right.** It refutes nothing, and proves nothing.

    </details>
"""

import re
from dataclasses import dataclass, field

import marks

HEADING = "### Check yourself"
ALL = "(All that apply.)"
PART = re.compile(
    r"^\*\*(?P<number>\d+)\.\*\* (?P<question>\S.*)$"
    r'|^<details class="quiz (?P<kind>right|wrong)">\n<summary>(?P<answer>.*)</summary>\n\n'
    r"\*\*(?P<verdict>.*?)\*\*(?P<feedback>.*)\n\n</details>$",
    re.M,
)
VERDICTS = {"right": "Right.", "wrong": "Not quite."}


@dataclass
class Question:
    """A question on its line, and its answers as ``(kind, answer, feedback)``."""

    line: int
    text: str
    answers: list = field(default_factory=list)


def is_quiz(cell):
    """Say whether a cell is that of the quiz."""
    return cell["cell_type"] == "markdown" and cell["source"].startswith(HEADING)


def read_questions(text):
    """Return the questions of a quiz, and the lines on which something else stands."""
    questions, others, end = [], [], 0
    for match in PART.finditer(text):
        line = marks.line_of(text, match.start())
        if questions and text[end : match.start()].strip():
            others.append(line)
        end = match.end()
        if match["question"]:
            questions.append(Question(line, match["question"]))
        elif questions and match["verdict"] == VERDICTS[match["kind"]]:
            answer = match["kind"], match["answer"], match["feedback"].strip()
            questions[-1].answers.append(answer)
        else:
            others.append(line)
    return questions, [*others, *([marks.line_of(text, end)] if text[end:].strip() else [])]


def find_faults(text):
    """Yield ``(line, message)`` for all that makes a quiz one that nobody can answer."""
    if not text.startswith(HEADING):
        return
    questions, others = read_questions(text)
    for line in others:
        yield line, "is neither a question nor an answer with its verdict"
    if not 3 <= len(questions) <= 5:
        yield 1, f"{len(questions)} questions, not 3 to 5"
    if len({question.text for question in questions}) < len(questions):
        yield 1, "a question is asked twice"
    for question in questions:
        kinds, answers, feedback = ([each[part] for each in question.answers] for part in range(3))
        right, several = kinds.count("right"), ALL.lower() in question.text.lower()
        if len(answers) < 3:
            yield question.line, f"{len(answers)} answers, fewer than 3"
        if not (0 < right < len(answers) if several else right == 1):
            yield question.line, f"{right} of {len(answers)} answers are right"
        if len(set(answers)) < len(answers) or len(set(feedback)) < len(answers):
            yield question.line, "two answers, or what is said to them, are the same"
        if not all(feedback) or "$" in "".join(answers):
            yield question.line, "an answer says nothing, or has mathematics, which is not shown"
