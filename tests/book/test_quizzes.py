"""The quizzes: well made, the same on the page as in their source, true, and usable by keyboard."""

import json
import re
from itertools import product
from math import comb, log, log1p, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from visits import serious_violations

from dpnotes import accounting, audit, pate
from dpnotes import exponential_mechanism as em
from dpnotes import noisy_gradient_descent as ngd
from dpnotes import private_auc as pa
from dpnotes import randomized_response as rr
from dpnotes import unary_encoding as ue

lint = pytest.importorskip("lint")
prose = pytest.importorskip("prose")
quizzes = pytest.importorskip("quizzes")
refresh = pytest.importorskip("refresh")

BOOK = Path(__file__).parents[1] / "book"
PAGES = sorted(path.stem for path in BOOK.glob("*.ipynb"))
PHONE = {"width": 390, "height": 844}
every_page = pytest.mark.parametrize("name", PAGES)

QUESTION = """## Is it so?

- [ ] Yes.
  It is not.
- [x] No.
  It is, as
  $a < b$.
- [ ] Both, *always* & `never`.
  It cannot be both.

"""


def asked(text, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return quizzes.read(path)


def three(question=QUESTION):
    """Three questions, of which the last one is given."""
    return "".join(QUESTION.replace("so?", f"so in case {n}?") for n in "AB") + question


def test_a_question_is_read_with_its_answers_and_what_is_said_to_each(tmp_path):
    questions = asked(three(), tmp_path)
    assert [question.line for question in questions] == [1, 11, 21]
    answers = questions[2].answers
    assert [answer.right for answer in answers] == [False, True, False]
    assert answers[1].text == "No."
    assert answers[1].feedback == "It is, as $a < b$."


def test_an_answer_is_shown_as_html_and_what_is_said_to_it_as_markdown(tmp_path):
    cell = quizzes.written(asked(three(), tmp_path))
    assert cell.startswith("### Check yourself\n\n")
    assert "**3.** Is it so?" in cell
    assert "<summary>Both, <em>always</em> &amp; <code>never</code>.</summary>" in cell
    assert "\n\n**Right.** It is, as $a < b$.\n\n</details>" in cell
    assert cell.count("<details") == cell.count("</details>") == 9


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (QUESTION, "line 1", "1 questions, not 3 to 5"),
        (three() + three(), "line 1", "6 questions, not 3 to 5"),
        ("Words.\n" + three(), "line 1", "above the first question"),
        (three(QUESTION.replace("- [x]", "- [ ]")), "line 21", "0 answers are right"),
        (three(QUESTION.replace("- [ ] Yes", "- [x] Yes")), "line 21", "2 answers are right"),
        (three(QUESTION.replace("- [ ] Yes.\n  It is not.\n", "")), "line 21", "2 answers, fewer"),
        (three(QUESTION.replace("  It is not.\n", "")), "line 21", "nothing is said"),
        (three(QUESTION.replace("Both, *always* & `never`", "Yes")), "line 21", "there twice"),
        (three(QUESTION.replace("It cannot be both", "It is not")), "line 21", "the same to"),
        (three(QUESTION.replace("No.", "$n$.")), "line 21", "mathematics is not shown"),
        (three(QUESTION.replace("so?", "so in case A?")), "line 1", "asked twice"),
        (three(QUESTION.replace("  It is not.", "It is not.")), "line 24", "neither a question"),
        (three(QUESTION.replace("- [ ] Yes", "- [?] Yes")), "line 23", "neither a question"),
        (
            three(QUESTION.replace("so?", "so? (All that apply.)").replace("[ ]", "[x]")),
            "21",
            "all",
        ),
    ],
)
def test_a_quiz_that_nobody_can_answer_is_refused_with_its_line(tmp_path, text, place, reason):
    with pytest.raises(quizzes.QuizError, match=rf"_quizzes/page\.md, .*{place}: .*{reason}"):
        asked(text, tmp_path)


def test_several_answers_may_be_right_where_the_question_says_so(tmp_path):
    several = QUESTION.replace("so?", "so? (All that apply.)").replace("- [ ] Yes", "- [x] Yes")
    assert sum(answer.right for answer in asked(three(several), tmp_path)[2].answers) == 2


def test_a_quiz_that_is_missing_is_named(tmp_path):
    with pytest.raises(quizzes.QuizError, match=r"there is no _quizzes/page\.md"):
        quizzes.read(tmp_path / "page.md")


def source(name):
    return quizzes.source_of(BOOK / f"{name}.ipynb")


@every_page
def test_every_core_page_asks_what_its_source_asks_first_among_its_exercises(name):
    cells = refresh.read(BOOK / f"{name}.ipynb")["cells"]
    texts = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    assert quizzes.written(quizzes.read(source(name))) in texts
    text = "\n\n".join(texts)
    assert prose.headings(text, 2)[-3:] == ["Takeaways", "Exercises", "Sources"]
    assert prose.headings(text, 3)[-2:] == ["Check yourself", "Problems"]
    assert text.index("\n## Exercises") + 15 == text.index("### Check yourself")


def test_there_is_a_quiz_for_every_core_page_and_no_other():
    assert sorted(path.stem for path in source("audit").parent.iterdir()) == PAGES


@every_page
def test_the_right_answer_is_not_always_at_one_place_nor_always_the_longest(name):
    questions = [q for q in quizzes.read(source(name)) if sum(a.right for a in q.answers) == 1]
    places = {[answer.right for answer in question.answers].index(True) for question in questions}
    longest = [max(q.answers, key=lambda answer: len(answer.text)).right for q in questions]
    assert len(places) > 1
    assert not all(longest)


@every_page
def test_an_edit_in_the_page_alone_is_noticed(name):
    page = lint.Page.read(BOOK / f"{name}.ipynb")
    assert not list(lint.quiz_from_its_source(page))
    [cell] = [cell for cell in page.cells if quizzes.is_quiz(cell)]
    cell["source"] = cell["source"].replace("Not quite.", "Wrong.", 1)
    [(_, _, message)] = lint.quiz_from_its_source(page)
    assert f"not that of book/_quizzes/{name}.md" in message


@pytest.fixture
def small(tmp_path):
    """A page of one quiz, run in the past, and the file of its questions."""
    book = tmp_path / "book"
    (book / "_quizzes").mkdir(parents=True)
    questions = book / "_quizzes" / "page.md"
    questions.write_text(three(), encoding="utf-8")
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "### Check yourself"}]
    stamp = {"hash": refresh.hashes({"cells": []}, tmp_path)}
    refresh.write(book / "page.ipynb", refresh.normalise({"cells": cells}, stamp))
    return tmp_path, questions


def quiz_of(root):
    return json.loads((root / "book" / "page.ipynb").read_text(encoding="utf-8"))["cells"][0]


def test_refresh_writes_what_a_teacher_edited_without_a_run(small, capsys):
    root, questions = small
    assert refresh.main([], root=root) == 0
    questions.write_text(three().replace("It is not.", "By no means."), encoding="utf-8")
    assert refresh.main([], root=root) == 0
    assert "By no means." in "".join(quiz_of(root)["source"])
    assert "run in" not in capsys.readouterr().out


def test_refresh_names_the_line_of_a_broken_quiz_and_leaves_the_page_alone(small):
    root, questions = small
    questions.write_text(three().replace("  It is not.\n", "", 1), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"_quizzes/page\.md, line 1: nothing is said"):
        refresh.main([], root=root)
    assert quiz_of(root)["source"] == ["### Check yourself"]


def of_batches(neighbours):
    return float(ngd.cost(1.0, 0.01, 1_000, 1e-5, neighbours=neighbours))


def shop_at_sensitivity_one():
    """Three fans, three prices, and a sensitivity that nobody checked: the cost, exactly."""
    shop = np.array([1.0, 5.0, 15.0])
    crowds = np.array(list(product([0.0, *shop], repeat=3)))
    takings = np.array([shop * (crowd[:, None] >= shop).sum(axis=0) for crowd in crowds])
    pairs = np.argwhere((crowds[:, None] != crowds).sum(axis=2) == 1)
    return [
        audit.exact_epsilon(em.output_distribution(takings, 1.0, sensitivity=s), neighbours=pairs)
        for s in (1.0, 15.0)
    ]


def share_from_which_symmetric_is_better():
    pairs = [ue.probabilities(1.0, scheme) for scheme in ("optimized", "symmetric")]
    (rare, frequent), (symmetric, _) = [ue.variance([0, 1], *pair) for pair in pairs]
    return 100 * (symmetric - rare) / (frequent - rare)


def two_coins(people):
    """The cost of answers of so many people, where all their truths differ."""
    table = rr.output_distribution(log(3))
    for _ in range(people - 1):
        table = np.kron(table, rr.output_distribution(log(3)))
    return np.exp(audit.exact_epsilon(table, neighbours=[(0, 2**people - 1)]))


def spreads_above_the_mean():
    mean, second = 100 * 0.1 * np.tanh(0.05), 0.1**2
    spread = sqrt(100 * (second - (mean / 100) ** 2))
    return (float(accounting.compose([0.1] * 100, delta=1e-5)) - mean) / spread


def swing(positives, negatives):
    """The largest change of the AUC as one positive goes from the top to the bottom."""
    scores = np.arange(positives + negatives)
    labels = np.repeat([0, 1], [negatives, positives])
    moved = np.where(scores == scores[-1], -1, scores)
    return 1 / (pa.auc(labels, scores) - pa.auc(labels, moved))


def phone_differs():
    table = rr.output_distribution(log(3))
    return 8 * sum(table[0, a] * table[1, b] for a, b in [(0, 1), (1, 0)])


def two_laplace(cost):
    return float(cost.cost(100, 1e-5))


# What a quiz says in numbers, and the number as the package or the mathematics has it.
SAID = [
    ("foundations", "by a factor of at most {:.0f}.", lambda: two_coins(1)),
    ("foundations", "by a factor of {:.0f}.", lambda: two_coins(4)),
    (
        "accounting",
        "At most {:.2f}. For",
        lambda: float(accounting.compose([0.1] * 100, delta=1e-5)),
    ),
    ("accounting", "what exceeds {:.2f}.", lambda: float(accounting.compose([0.1] * 100, 1e-5))),
    ("accounting", "the mean, which is {:.1f}.", lambda: 10 * np.tanh(0.05)),
    ("accounting", "nearly {:.0f} such spreads", spreads_above_the_mean),
    ("accounting", "it allows {:.0f} to be published", lambda: 1e6 * 1e-5),
    ("accounting", "About {:.3f}, if the draws", lambda: log1p(0.01 * np.expm1(1))),
    ("accounting", "About {:.3f}, and so do", lambda: log1p(0.01 * np.expm1(1))),
    ("noisy_gradient_descent", "cost {:.2f} if neighbours", lambda: of_batches("added")),
    ("noisy_gradient_descent", "[ ] {:.2f}, because it is", lambda: of_batches("added")),
    ("noisy_gradient_descent", "and {:.2f} if they", lambda: of_batches("replaced")),
    ("noisy_gradient_descent", "[x] {:.2f} ", lambda: of_batches("replaced")),
    (
        "noisy_gradient_descent",
        "[ ] {:.2f}, because a replacement",
        lambda: 2 * round(of_batches("added"), 2),
    ),
    (
        "noisy_gradient_descent",
        "about {:.0f} hundred times as much",
        lambda: float(ngd.cost(1.0, 1.0, 1_000, 1e-5)) / of_batches("replaced") / 100,
    ),
    (
        "noisy_gradient_descent",
        "it states {:.2f}, and",
        lambda: float(ngd.cost(1.0, 1 / 100, 100, 1e-5)),
    ),
    (
        "noisy_gradient_descent",
        "more than {:.2f} is true",
        lambda: np.floor(100 * ngd.shuffled_cost_at_least(1.0, 100, 1e-5)) / 100,
    ),
    (
        "randomized_response",
        "[x] {:.0f} The coins",
        lambda: rr.estimate([1] * 160 + [0] * 240, log(3))[1],
    ),
    (
        "unary_encoding",
        "[x] ln {:.0f} Two rows",
        lambda: np.exp(audit.exact_epsilon(ue.output_distribution(3, 3 / 4, 1 / 4))),
    ),
    ("unary_encoding", "share of {:.1f} % on", share_from_which_symmetric_is_better),
    ("exponential_mechanism", "one of {:.1f}.", lambda: shop_at_sensitivity_one()[0]),
    ("exponential_mechanism", "cost is {:.3f}, where", lambda: shop_at_sensitivity_one()[1]),
    ("label_privacy", "flips {:.1f} % of", lambda: 100 - 100 * rr.keep_probability(1.0)),
    (
        "label_privacy",
        "costs 0.5, and flips {:.1f} %",
        lambda: 100 - 100 * rr.keep_probability(0.5),
    ),
    ("label_privacy", "It keeps {:.1f} % of", lambda: 100 * rr.keep_probability(1.0)),
    ("label_privacy", "something keeps {:.0f} %", lambda: 100 * max(rr.keep_probability(1.0), 0.9)),
    ("symmetric_loss", "the {:.0f} % of the labels", lambda: 100 * rr.keep_probability(0.5)),
    (
        "symmetric_loss",
        "as much as {:.0f} labels",
        lambda: 10_000 * (2 * rr.keep_probability(0.5) - 1) ** 2,
    ),
    ("elun", "Up to {:.0f} ε", lambda: np.abs(np.full(100, 1 / sqrt(100))).sum()),
    ("pate", "cost {:.2f} with Gumbel", lambda: two_laplace(pate.GumbelMax(20))),
    ("pate", "and {:.2f} with Laplace", lambda: two_laplace(pate.LNMax(1 / 20))),
    ("pate", "exactly {:.2f} is lost", lambda: two_laplace(pate.LNMax(1 / 20))),
    ("pate", r"\pi/\sqrt6 \approx {:.2f}", lambda: pi / sqrt(6)),
    ("pate", r"\sqrt2 \approx {:.2f}", lambda: sqrt(2)),
    ("private_auc", r"16\cdot14 = {:d}", lambda: 16 * (30 - 16)),
    ("private_auc", r"15\cdot15 = {:d}", lambda: 15 * (30 - 15)),
    ("private_auc", "[x] 1/{:.0f} The bound", lambda: swing(20, 10_000)),
    ("private_auc", "1/{:,d}, because one record", lambda: 20 + 10_000),
    ("private_auc", "1/{:,d}, because there", lambda: 20 * 10_000),
    ("private_auc", "10,000 of the {:,d}.", lambda: 20 * 10_000),
    ("audit", "can show about {:.1f}", lambda: audit.largest_certifiable_epsilon(10_000)),
    ("audit", r"probability $\tfrac{:.0f}8$", phone_differs),
]
# Numbers that a question brings along.
GIVEN = {
    "audit": {"0.73"},
    "pate": {"238", "101"},
}
WORDS = {"4 such": "four such", "8 hundred": "eight hundred", "10 to be": "ten to be"}


def squeezed(text):
    return re.sub(r"\s+", " ", text)


def filled(phrase, number):
    """Write a number into a phrase; the braces of TeX are no field."""
    field = re.search(r"\{:[^}]*\}", phrase)
    said = phrase[: field.start()] + field[0].format(number) + phrase[field.end() :]
    for figure, word in WORDS.items():
        said = said.replace(figure, word)
    return said


@pytest.mark.parametrize(("name", "phrase", "number"), SAID, ids=[f"{n}: {p}" for n, p, _ in SAID])
def test_a_number_in_a_quiz_is_the_one_computed_anew(name, phrase, number):
    assert filled(phrase, number()).lower() in squeezed(source(name).read_text()).lower()


@every_page
def test_every_number_that_somebody_could_have_measured_is_computed_anew(name):
    text = squeezed(source(name).read_text(encoding="utf-8"))
    for page, phrase, number in SAID:
        text = text.replace(filled(phrase, number()), "") if page == name else text
    bare = text.replace("$", "").replace("{,}", ",").replace(r"\,", "")
    typed = {number for _, number in prose.typed_numbers(bare)}
    assert typed <= GIVEN.get(name, set())


def test_a_quiz_tells_which_of_two_flipped_columns_can_be_learned_from():
    # Ten of a hundred are ill: the first flips 9 and 40, the second 0 and 60.
    mixed = [((10 - a) / (10 - a + b), a / (a + 90 - b)) for a, b in [(9, 40), (0, 60)]]
    assert mixed == [(1 / 41, 9 / 59), (10 / 70, 0)]
    assert [among_ill > among_well for among_ill, among_well in mixed] == [False, True]


def test_what_the_quiz_on_randomized_response_says_of_a_month_of_fresh_coins():
    yes = sum(comb(31, k) * 3**k for k in range(16, 32)) / 4**31
    assert yes > 0.998


def test_twice_the_error_for_four_times_the_people_and_the_worst_of_the_careless_columns():
    few, many = (rr.variance([n // 2, n // 2], 1.0)[1] for n in (1_000, 4_000))
    assert sqrt(many / few) == pytest.approx(2)
    careless = np.array([[0.75, 0.25], [0.0, 1.0]])
    assert careless[:, 1].max() / careless[:, 1].min() == 4
    assert audit.exact_epsilon(careless) == np.inf


@pytest.mark.browser
@pytest.mark.parametrize("name", ["randomized_response", "pate"])
def test_a_phone_opens_an_answer_by_keyboard_in_the_dark(visit, name):
    with visit(viewport=PHONE, scheme="dark") as visitor:
        page = visitor.go(f"book/{name}.html")
        rows = page.locator("details.quiz")
        assert rows.count() == sum(len(q.answers) for q in quizzes.read(source(name)))
        assert page.locator("details.quiz[open]").count() == 0
        for kind, verdict in (("right", "Right."), ("wrong", "Not quite.")):
            row = page.locator(f"details.quiz.{kind}").first
            assert not row.locator("p").first.is_visible()
            before = row.locator("summary").bounding_box()
            assert before["height"] >= 44
            row.locator("summary").focus()
            page.keyboard.press("Tab")
            page.keyboard.press("Shift+Tab")
            outline = row.locator("summary").evaluate("n => getComputedStyle(n).outlineStyle")
            assert outline != "none"
            page.keyboard.press("Enter")
            assert row.locator("p").first.is_visible()
            assert row.inner_text().count(verdict) == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@every_page
def test_all_answers_open_read_well_and_their_mathematics_is_set(visit, name, scheme):
    with visit(viewport=PHONE, scheme=scheme) as visitor:
        page = visitor.go(f"book/{name}.html")
        page.evaluate("document.querySelectorAll('details.quiz').forEach(n => { n.open = true; })")
        visitor.settle()
        shown = page.locator("#check-yourself").inner_text()
        assert "$" not in shown
        assert "\\" not in shown
        assert page.locator("#check-yourself .math:not(:has(mjx-container))").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert serious_violations(page, "#check-yourself") == []


@pytest.mark.browser
def test_without_scripts_an_answer_opens_as_well(visit):
    with visit(scripts=False) as visitor:
        page = visitor.page
        page.goto(f"{visitor.site}book/audit.html", wait_until="load")
        row = page.locator("details.quiz").first
        row.locator("summary").click()
        assert row.locator("p").first.is_visible()


@pytest.mark.browser
def test_on_paper_the_questions_stand_without_what_is_said_to_an_answer(visit):
    with visit() as visitor:
        page = visitor.go("book/audit.html")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        row = page.locator("details.quiz").first
        assert row.locator("summary").is_visible()
        assert not row.locator("p").first.is_visible()
