"""The quiz of a page: questions in ``book/_quizzes/NAME.md``, the first part of its exercises.

A question is a heading, an answer an entry of a task list, and what is said to whoever chose it
stands indented below::

    ## Is a bound below the claim a proof?

    - [ ] Yes.
      Another event may tell more.
    - [x] No.
      It refutes nothing, and proves nothing.

``refresh`` writes the cell from this file, and ``lint`` compares it. On the page each answer opens
by itself, so a quiz needs no script; and as nothing but Markdown is needed below an answer, what
is said there may hold mathematics and links, while the answer is plain text.
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path

HEADING = "### Check yourself"
FOLDER = "_quizzes"
ALL = "all that apply"
FEWEST_QUESTIONS, MOST_QUESTIONS, FEWEST_ANSWERS = 3, 5, 3
OPENING = (
    "Click the line of an answer, or go to it with Tab and press Enter: it opens and says whether "
    "it is right, and why. Nothing is counted, and nothing is sent."
)

QUESTION = re.compile(r"## +(?P<text>\S.*)")
ANSWER = re.compile(r"- \[(?P<mark>[ xX])\] +(?P<text>\S.*)")


class QuizError(ValueError):
    """A quiz that nobody can answer: which file, which line, and what is missing."""


@dataclass
class Answer:
    """One answer, and what is said to whoever chose it."""

    text: str
    right: bool
    feedback: str = ""


@dataclass
class Question:
    """A question with its answers, and the line on which it stands."""

    line: int
    text: str
    answers: list


def source_of(page):
    """Return where the quiz of a core page is written."""
    page = Path(page)
    return page.parent / FOLDER / f"{page.stem}.md"


def read(path):
    """Read the questions of a file, and refuse a quiz that nobody can answer."""
    path, questions = Path(path), []
    if not path.is_file():
        raise QuizError(f"there is no {FOLDER}/{path.name}")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            _add(questions, number, line)
        except QuizError as error:
            raise QuizError(f"{FOLDER}/{path.name}, line {number}: {error}") from None
    for line, message in faults(questions):
        raise QuizError(f"{FOLDER}/{path.name}, line {line}: {message}")
    return questions


def _add(questions, number, line):
    """Add what a line says to the questions above it."""
    question, answer = QUESTION.fullmatch(line.rstrip()), ANSWER.fullmatch(line.rstrip())
    if question:
        questions.append(Question(number, question["text"], []))
    elif not line.strip():
        return
    elif not questions:
        raise QuizError("stands above the first question, which begins with ##")
    elif answer:
        questions[-1].answers.append(Answer(answer["text"], answer["mark"] != " "))
    elif line.startswith((" ", "\t")) and questions[-1].answers:
        last = questions[-1].answers[-1]
        last.feedback = f"{last.feedback} {line.strip()}".strip()
    elif questions[-1].answers or line.startswith(("-", "#", " ")):
        raise QuizError("is neither a question (##), an answer (- [ ]), nor indented below one")
    else:
        questions[-1].text += f" {line.strip()}"


def faults(questions):
    """Yield ``(line, message)`` for all that makes a quiz a bad one."""
    if not FEWEST_QUESTIONS <= len(questions) <= MOST_QUESTIONS:
        yield 1, f"{len(questions)} questions, not {FEWEST_QUESTIONS} to {MOST_QUESTIONS}"
    texts = [question.text for question in questions]
    for question in questions:
        if texts.count(question.text) > 1:
            yield question.line, "the question is asked twice"
        yield from ((question.line, message) for message in _faults(question))


def _faults(question):
    answers = question.answers
    right = sum(answer.right for answer in answers)
    if len(answers) < FEWEST_ANSWERS:
        yield f"{len(answers)} answers, fewer than {FEWEST_ANSWERS}"
    if ALL not in question.text.lower() and right != 1:
        yield f"{right} answers are right, where it does not say (All that apply.)"
    if ALL in question.text.lower() and not 0 < right < len(answers):
        yield "all answers are right, or none"
    if len({answer.text for answer in answers}) < len(answers):
        yield "an answer is there twice"
    if len({answer.feedback for answer in answers}) < len(answers):
        yield "two answers say the same to whoever chose them"
    for answer in answers:
        if not answer.feedback:
            yield f"nothing is said to whoever chose {answer.text!r}"
        if "$" in answer.text:
            yield f"mathematics is not shown in an answer: {answer.text!r}"


def written(questions):
    """Return the cell that shows these questions."""
    blocks = [HEADING, OPENING]
    for number, question in enumerate(questions, start=1):
        blocks.append(f"**{number}.** {question.text}")
        blocks += [_block(answer) for answer in question.answers]
    return "\n\n".join(blocks)


def _block(answer):
    kind, verdict = ("right", "Right.") if answer.right else ("wrong", "Not quite.")
    opening = f'<details class="quiz {kind}">\n<summary>{_plain(answer.text)}</summary>'
    return f"{opening}\n\n**{verdict}** {answer.feedback}\n\n</details>"


def _plain(text):
    """Write an answer as HTML, since Markdown is not read there; code and stress are kept."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def filled(cells, page):
    """Return the cells of a page, with its quiz below the heading of the quiz."""
    return [_filled(cell, page) for cell in cells]


def _filled(cell, page):
    if cell["cell_type"] != "markdown" or not is_quiz(cell):
        return cell
    return {**cell, "source": written(read(source_of(page)))}


def is_quiz(cell):
    """Say whether a cell is that of the quiz."""
    return "".join(cell["source"]).startswith(HEADING)
