"""The quizzes: well made, true in their numbers, and usable by keyboard."""

import re
from itertools import product
from math import comb, log, log1p, pi, sqrt

import numpy as np
import prose
import pytest
import quizzes
import refresh
from visits import PHONE, serious_violations

from dpnotes import accounting, audit, pate
from dpnotes import exponential_mechanism as em
from dpnotes import noisy_gradient_descent as ngd
from dpnotes import private_auc as pa
from dpnotes import randomized_response as rr
from dpnotes import unary_encoding as ue

PAGES = {
    path.stem: [c["source"] for c in refresh.read(path)["cells"] if c["cell_type"] == "markdown"]
    for path in sorted((refresh.ROOT / "book").glob("*.ipynb"))
}
QUIZZES = {
    name: quizzes.read_questions(text)[0]
    for name, texts in PAGES.items()
    for text in texts
    if text.startswith(quizzes.HEADING)
}
every_quiz = pytest.mark.parametrize("name", QUIZZES)


def answered(kind, answer, feedback):
    verdict = quizzes.VERDICTS[kind]
    return (
        f'<details class="quiz {kind}">\n<summary>{answer}</summary>\n\n'
        f"**{verdict}** {feedback}\n\n</details>\n\n"
    )


ANSWERS = [
    answered("wrong", "Yes.", "It is not."),
    answered("right", "No.", "It is."),
    answered("wrong", "Both.", "No."),
]
QUESTION = "**3.** Is it so?\n\n" + "".join(ANSWERS)


def three(question=QUESTION):
    """Three questions, of which the last one is given; it begins on line 49."""
    return (
        "### Check yourself\n\n"
        + "".join(QUESTION.replace("3.** Is it so", f"{n}.** Is it so in case {n}") for n in (1, 2))
        + question
    )


SEVERAL = QUESTION.replace("so?", "so? (All that apply.)")
FAULTS = [
    ("### Check yourself\n\n" + QUESTION, 1, "1 questions, not 3 to 5"),
    (three(QUESTION.replace("so?", "so in case 1?")), 1, "a question is asked twice"),
    (three("**3.** Is it so?"), 49, "0 answers, fewer than 3"),
    (three(QUESTION.replace(ANSWERS[1], answered("wrong", "No.", "It."))), 49, "0 of 3"),
    (three(QUESTION.replace(ANSWERS[0], answered("right", "Yes.", "It."))), 49, "2 of 3"),
    (three(SEVERAL.replace("wrong", "right").replace("Not quite.", "Right.")), 49, "3 of 3"),
    (three(QUESTION.replace("Both.", "Yes.")), 49, "are the same"),
    (three(QUESTION.replace(" It is not.", " It is.")), 49, "are the same"),
    (three(QUESTION.replace(" It is not.", "")), 49, "an answer says nothing"),
    (three(QUESTION.replace("Both.", "$n$.")), 49, "mathematics"),
    (three(QUESTION.replace("Right.", "Not quite.")), 58, "neither a question"),
    (three(QUESTION.replace("</summary>\n\n", "</summary>\n", 1)), 57, "neither a question"),
    (three() + "Words.", 70, "neither a question"),
]


@pytest.mark.parametrize(("text", "line", "reason"), FAULTS)
def test_a_quiz_that_nobody_can_answer_is_found_with_its_line(text, line, reason):
    assert [place for place, message in quizzes.find_faults(text) if reason in message] == [line]


def test_several_answers_may_be_right_where_the_question_says_so():
    right = answered("right", "Yes.", "It is not.")
    several = three(SEVERAL.replace(ANSWERS[0], right))
    assert [*quizzes.find_faults(three()), *quizzes.find_faults(several)] == []
    assert [kind for kind, *_ in quizzes.read_questions(several)[0][2].answers].count("right") == 2


def test_every_core_page_asks_first_among_its_exercises():
    for name in QUIZZES:
        text = "\n\n".join(PAGES[name])
        assert prose.headings(text, 3)[-2:] == ["Check yourself", "Problems"]
        assert "\n## Exercises\n\n### Check yourself\n" in text


@every_quiz
def test_the_right_answer_is_not_always_at_one_place_nor_always_the_longest(name):
    kinds = [[kind for kind, *_ in question.answers] for question in QUIZZES[name]]
    single = [place for place, found in enumerate(kinds) if found.count("right") == 1]
    assert len({kinds[place].index("right") for place in single}) > 1
    longest = [max(QUIZZES[name][place].answers, key=lambda a: len(a[1])) for place in single]
    assert {kind for kind, *_ in longest} != {"right"}


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
    return (together() - mean) / spread


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


def together():
    return float(accounting.compose([0.1] * 100, delta=1e-5))


def sampled():
    return log1p(0.01 * np.expm1(1))


# What a quiz says in numbers, and the number as the package or the mathematics has it.
SAID = {
    "foundations": [
        ("by a factor of at most {:.0f}.", lambda: two_coins(1)),
        ("by a factor of {:.0f}.", lambda: two_coins(4)),
    ],
    "accounting": [
        ("At most {:.2f}. For", together),
        ("what exceeds {:.2f}.", together),
        ("the mean, which is {:.1f}.", lambda: 10 * np.tanh(0.05)),
        ("nearly {:.0f} such spreads", spreads_above_the_mean),
        ("it allows {:.0f} to be published", lambda: 1e6 * 1e-5),
        ("About {:.3f}, if the draws", sampled),
        ("About {:.3f}, and so do", sampled),
    ],
    "noisy_gradient_descent": [
        ("cost {:.2f} if neighbours", lambda: of_batches("added")),
        ("[ ] {:.2f}, because it is", lambda: of_batches("added")),
        ("and {:.2f} if they", lambda: of_batches("replaced")),
        ("[x] {:.2f} ", lambda: of_batches("replaced")),
        ("[ ] {:.2f}, because a replacement", lambda: 2 * round(of_batches("added"), 2)),
        (
            "about {:.0f} hundred times as much",
            lambda: float(ngd.cost(1.0, 1.0, 1_000, 1e-5)) / of_batches("replaced") / 100,
        ),
        ("it states {:.2f}, and", lambda: float(ngd.cost(1.0, 1 / 100, 100, 1e-5))),
        (
            "more than {:.2f} is true",
            lambda: np.floor(100 * ngd.shuffled_cost_at_least(1.0, 100, 1e-5)) / 100,
        ),
    ],
    "randomized_response": [
        ("[x] {:.0f} The coins", lambda: rr.estimate([1] * 160 + [0] * 240, log(3))[1]),
    ],
    "unary_encoding": [
        (
            "[x] ln {:.0f} Two rows",
            lambda: np.exp(audit.exact_epsilon(ue.output_distribution(3, 3 / 4, 1 / 4))),
        ),
        ("share of {:.1f} % on", share_from_which_symmetric_is_better),
    ],
    "exponential_mechanism": [
        ("one of {:.1f}.", lambda: shop_at_sensitivity_one()[0]),
        ("cost is {:.3f}, where", lambda: shop_at_sensitivity_one()[1]),
    ],
    "label_privacy": [
        ("flips {:.1f} % of", lambda: 100 - 100 * rr.keep_probability(1.0)),
        ("costs 0.5, and flips {:.1f} %", lambda: 100 - 100 * rr.keep_probability(0.5)),
        ("It keeps {:.1f} % of", lambda: 100 * rr.keep_probability(1.0)),
        ("something keeps {:.0f} %", lambda: 100 * max(rr.keep_probability(1.0), 0.9)),
    ],
    "symmetric_loss": [
        ("the {:.0f} % of the labels", lambda: 100 * rr.keep_probability(0.5)),
        ("as much as {:.0f} labels", lambda: 10_000 * (2 * rr.keep_probability(0.5) - 1) ** 2),
    ],
    "elun": [
        ("Up to {:.0f} ε", lambda: np.abs(np.full(100, 1 / sqrt(100))).sum()),
    ],
    "pate": [
        ("cost {:.2f} with Gumbel", lambda: two_laplace(pate.GumbelMax(20))),
        ("and {:.2f} with Laplace", lambda: two_laplace(pate.LNMax(1 / 20))),
        ("exactly {:.2f} is lost", lambda: two_laplace(pate.LNMax(1 / 20))),
        (r"\pi/\sqrt6 \approx {:.2f}", lambda: pi / sqrt(6)),
        (r"\sqrt2 \approx {:.2f}", lambda: sqrt(2)),
    ],
    "private_auc": [
        (r"16\cdot14 = {:d}", lambda: 16 * (30 - 16)),
        (r"15\cdot15 = {:d}", lambda: 15 * (30 - 15)),
        ("[x] 1/{:.0f} The bound", lambda: swing(20, 10_000)),
        ("1/{:,d}, because one record", lambda: 20 + 10_000),
        ("1/{:,d}, because there", lambda: 20 * 10_000),
        ("10,000 of the {:,d}.", lambda: 20 * 10_000),
    ],
    "audit": [
        ("can show about {:.1f}", lambda: audit.largest_certifiable_epsilon(10_000)),
        (r"probability $\tfrac{:.0f}8$", phone_differs),
    ],
}
# Numbers that a question brings along.
GIVEN = {"audit": {"0.73"}, "pate": {"238", "101"}}
WORDS = {"4 such": "four such", "8 hundred": "eight hundred", "10 to be": "ten to be"}


def told(name):
    """Return what a quiz says, each answer before what is said to it; [x] marks a right one."""
    said = []
    for question in QUIZZES[name]:
        said.append(question.text)
        for kind, answer, feedback in question.answers:
            said.append(f"[{'x' if kind == 'right' else ' '}] {answer} {feedback}")
    return re.sub(r"\s+", " ", " ".join(said))


def filled(phrase, number):
    """Write a number into a phrase; the braces of TeX are no field."""
    field = re.search(r"\{:[^}]*\}", phrase)
    said = phrase[: field.start()] + field[0].format(number) + phrase[field.end() :]
    for figure, word in WORDS.items():
        said = said.replace(figure, word)
    return said


@every_quiz
def test_every_number_of_a_quiz_that_somebody_could_have_measured_is_computed_anew(name):
    text = told(name)
    phrases = [filled(phrase, number()) for phrase, number in SAID.get(name, ())]
    assert [phrase for phrase in phrases if phrase.lower() not in text.lower()] == []
    for phrase in phrases:
        text = text.replace(phrase, "")
    bare = text.replace("$", "").replace("{,}", ",").replace(r"\,", "")
    assert {number for _, number in prose.typed_numbers(bare)} <= GIVEN.get(name, set())


def test_what_quizzes_say_without_numbers():
    # Ten of a hundred are ill: the first column flips 9 and 40, the second 0 and 60.
    mixed = [((10 - a) / (10 - a + b), a / (a + 90 - b)) for a, b in [(9, 40), (0, 60)]]
    assert [among_ill > among_well for among_ill, among_well in mixed] == [False, True]
    # A month of fresh coins gives an answer away.
    assert sum(comb(31, k) * 3**k for k in range(16, 32)) / 4**31 > 0.998
    # Twice the error for four times the people, and the worst of the careless columns.
    few, many = (rr.variance([n // 2, n // 2], 1.0)[1] for n in (1_000, 4_000))
    assert sqrt(many / few) == pytest.approx(2)
    careless = np.array([[0.75, 0.25], [0.0, 1.0]])
    assert careless[:, 1].max() / careless[:, 1].min() == 4
    assert audit.exact_epsilon(careless) == np.inf


@pytest.mark.browser
def test_a_phone_opens_an_answer_by_keyboard_in_the_dark_and_paper_shows_none(visit):
    with visit(viewport=PHONE, scheme="dark") as visitor:
        page = visitor.go("book/pate.html")
        rows = page.locator("details.quiz")
        assert rows.count() == sum(len(question.answers) for question in QUIZZES["pate"])
        assert page.locator("details.quiz[open]").count() == 0
        for kind, verdict in quizzes.VERDICTS.items():
            row = page.locator(f"details.quiz.{kind}").first
            assert not row.locator("p").first.is_visible()
            assert row.locator("summary").bounding_box()["height"] >= 44
            row.locator("summary").focus()
            page.keyboard.press("Tab")
            page.keyboard.press("Shift+Tab")
            outline = row.locator("summary").evaluate("n => getComputedStyle(n).outlineStyle")
            assert outline != "none"
            page.keyboard.press("Enter")
            assert row.locator("p").first.is_visible()
            assert row.inner_text().count(verdict) == 1
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert rows.last.locator("summary").is_visible()
        assert not rows.last.locator("p").first.is_visible()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("pate", "light"),
        ("noisy_gradient_descent", "dark"),
        *(pytest.param(name, "dark", marks=pytest.mark.full) for name in QUIZZES),
    ],
)
def test_all_answers_open_read_well_and_their_mathematics_is_set(visit, name, scheme):
    with visit(viewport=PHONE, scheme=scheme) as visitor:
        page = visitor.go(f"book/{name}.html")
        page.evaluate("document.querySelectorAll('details.quiz').forEach(n => { n.open = true; })")
        visitor.settle()
        shown = page.locator("#check-yourself").inner_text()
        assert not set("$\\") & set(shown)
        assert page.locator("#check-yourself .math:not(:has(mjx-container))").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert serious_violations(page, "#check-yourself") == []
