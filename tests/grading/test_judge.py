"""A grade depends on what a function returns, and on nothing else that a submission does."""

import json
import math
import os
import sys
import time

import numpy as np
import pytest
from scipy import stats

from dpnotes.audit import pairs_in_domain
from dpnotes.grading import Task, _grade, _judge, grade
from dpnotes.grading._judge import by_value
from dpnotes.grading._task import Runs, plan_calls

KEEP = 0.7310585786300049  # at epsilon 1
GRID = stats.randint(0, 5, loc=0.1)


def coin(keep):
    """Return the distribution of a truthful answer that is kept so often."""
    return lambda truth: {truth: keep, 1 - truth: 1 - keep}


def answer_task(**changes):
    """Return a task: a yes-or-no question, answered at epsilon 1."""
    asked = {
        "function": "answer",
        "points": 3,
        "pairs": pairs_in_domain([0, 1]),
        "epsilon": 1.0,
        "distribution": coin(KEEP),
        "mistakes": {"The coin is for half of epsilon.": coin(0.6224593312018546)},
        "trials": 2000,
        "seconds": 30.0,
    }
    return Task(**(asked | changes))


def private_task(**changes):
    """Return a task that claims epsilon 1, and states no distribution."""
    return answer_task(**({"distribution": None, "mistakes": {}} | changes))


def number_task(**changes):
    return Task(**({"function": "answer", "answers": [((3,), 9.0), ((2,), 4.0)]} | changes))


def laplace_task(**changes):
    asked = {"pairs": [(0.0, 1.0)], "distribution": stats.laplace}
    return answer_task(**(asked | {"mistakes": {}, "shape": ()} | changes))


def useful_task(**changes):
    """Return a task that asks for a small loss alone."""
    return laplace_task(**({"epsilon": None, "distribution": None, "shape": None} | changes))


def verdict(source, task, **options):
    [found] = grade(source, [task], **({"isolation": "process", "rng": 1} | options)).verdicts
    return found


def returns(expression, task, arguments="truth, rng"):
    """Return the verdict on a function that returns what an expression of its arguments is."""
    source = f"import numpy as np\nfrom math import nan\ndef answer({arguments}): "
    return verdict(f"{source}return {expression}\n", task)


RIGHT = """
def answer(truth, rng):
    return truth if rng.random() < 0.7310585786300049 else 1 - truth
"""


# What is right passes, and what is wrong is told


@pytest.mark.claim("grading.grade", kind="chosen cases")
def test_a_right_answer_has_its_points():
    found = verdict(RIGHT, answer_task())
    assert (found.points, found.possible, found.check) == (3, 3, "passed")
    assert "2,000 runs on each of 2 data sets; epsilon = 1 is not refuted" in found.sentence


@pytest.mark.claim("grading.grade", kind="chosen cases")
@pytest.mark.parametrize(
    ("body", "check", "words"),
    [
        ("return truth", "rng", "in all 2,000 runs"),
        ("return truth if rng.random() < 0.9 else 1 - truth", "privacy", "Here (0 and 1) an event"),
        (
            "return truth if rng.random() < 0.6224593312018546 else 1 - truth",
            "distribution",
            "The coin is for half of epsilon.",
        ),
        ("return 2 if rng.random() < 0.1 else int(rng.random() < 0.5)", "distribution", "was 2"),
        ("return 1 / 0", "run", "answer raised ZeroDivisionError: division by zero."),
        ("return [truth] * 10**9", "run", "MemoryError"),
        ("return lambda: truth", "run", "answer returned a function (call it); return numbers"),
        ("return truth +", "run", "There is no function answer, because SyntaxError"),
    ],
)
def test_each_fault_has_a_check_and_a_sentence(body, check, words):
    source = f"def answer(truth, rng):\n    {body}\n"
    found = verdict(source, answer_task(memory=2**30))
    assert (found.points, found.check) == (0, check), found
    assert words in found.sentence


def test_what_is_said_of_a_fault_is_the_teacher_s_or_the_general_cause():
    leak = "truth if rng.random() < 0.9 else 1 - truth"
    sentence = returns(leak, answer_task()).sentence
    assert " times in 1,000 runs on the one and " in sentence
    assert "the output is " in sentence
    assert sentence.endswith(_judge.CAUSES["privacy"])
    assert returns(leak, answer_task(causes={"privacy": "Bob."})).sentence.endswith(" Bob.")
    assert returns("nothing", answer_task(causes={"run": "Bob."})).sentence.endswith(". Bob.")


def test_a_mistake_in_the_distribution_does_not_explain_a_generator_that_is_not_used():
    told = "truth ^ (__import__('random').random() > .731)"
    found = returns(told, answer_task(mistakes={"Not this.": coin(KEEP)}))
    assert (found.check, "Not this." in found.sentence) == ("rng", False)
    assert "with one and the same seed" in found.sentence
    assert returns(told, answer_task(uses_rng=False), "truth").check == "passed"


def test_whoever_has_written_nothing_gets_nothing_and_no_hint():
    found = verdict("", answer_task())
    assert (found.points, found.sentence) == (0, "There is no function answer.")
    task = number_task(answers=[((), 1.0)], causes={"answer": "It is 1.0, the first number."})
    found = verdict("def answer(): ...", task)
    assert (found.points, found.check) == (0, "answer")
    assert found.sentence == (
        "answer returned None whenever it was called: it is not written yet, or it lacks a return."
    )


def test_what_a_submission_says_moves_no_cursor():
    source = "def answer(n):\n    raise ValueError('\\x1b[2K passed \\ud800' + 5000 * 'x')\n"
    sentence = verdict(source, number_task()).sentence
    assert sentence.isprintable()
    assert "\\x1b[2K passed \\ud800" in sentence
    assert len(sentence) < 1200


# Answers without randomness

HALVES = "[[.5, .5], [.5, .5]]"
TABLE = [[KEEP, 1 - KEEP], [1 - KEEP, KEEP]]


@pytest.mark.parametrize(
    ("right", "given", "words"),
    [
        (9.0, "9 + 1e-12", "Passed: 1 of 1"),
        (9.0, "6", "answer() returned 6, which is not right: it is too small. It was added."),
        (9.0, "10", "answer() returned 10, which is not right: it is too large. Put small"),
        (9.0, "[9]", "its shape is (1,), and () is asked for"),
        (9.0, "[[1], [1, 2]]", "its rows differ in length"),
        (9.0, "nan", "finite numbers are asked for"),
        (9.0, "10**400", "which is not right"),
        (9.0, "['a' * 10**7, *[0] * 10**6]", "numbers are asked for"),  # in numpy 36 TiB
        (1, "True", "a number is asked for"),
        (True, "1", "True or False is asked for"),
        (np.nan, "nan", "Passed"),
        (TABLE, "[[0.7310585786, 0.2689414214], [0.2689414214, 0.7310585786]]", "Passed"),
        (TABLE, "[[.8, .2], [.2, .8]]", "it costs an epsilon of 1.386, and 1 is allowed"),
        (TABLE, "[[.6, .4], [.4, .6]]", "an epsilon of 0.4055 alone, and so is noisier"),
        (TABLE, "[[.7, .2], [.2, .7]]", "its rows are not probabilities that sum to 1"),
        (np.linalg.inv(TABLE), HALVES, "not right"),
        (np.eye(2), "[[1], [0, 1]]", "not right"),
        (("yes", 1 / 3), "('yes', 0.33333333333)", "Passed"),
        (("yes", 1 / 3), "('yes', '0.3333333333333333')", "not right"),
        (["a", 2.0], "['a', True]", "not right"),
        ({"a": [1, {"b": np.ones(2)}]}, "{'a': [1, {'b': (1, 1)}]}", "Passed"),
        ({"a": 1}, "{'a': 1, 'b': 2}", "not right"),
        ([[1], [2, 3]], "[[1], [2, 4]]", "not right"),
        # Relative to what is right, however small; exact where that is a whole number.
        (1e-8, "0.0", "it is too small"),
        (1e-8, "1e-8 + 1e-16", "Passed"),
        (0.0, "1e-7", "Passed"),
        (10**6, "10**6 + 1", "it is too large"),
        (9, "9.0", "Passed"),
        ([[0.5, 1e-17]], "[[.5, 0]]", "Passed"),
        (np.inf, "5.0", "not right"),
    ],
)
def test_an_answer_is_right_part_by_part_or_wrong_for_a_reason(right, given, words):
    mistakes = {"It was added.": lambda: 6, "Divided by 0.": lambda: 1 / 0}
    task = number_task(answers=[((), right)], mistakes=mistakes)
    assert words in returns(given, task, "").sentence


# Distributions, usefulness, privacy


@pytest.mark.parametrize(
    ("told", "on_a_grid", "check", "words"),
    [
        ("truth + rng.laplace(scale=1.0)", False, "passed", ""),
        ("truth + rng.laplace(scale=0.3)", False, "privacy", "Violated"),
        ("truth + rng.laplace(scale=2.0)", False, "distribution", "outputs were "),
        ("round(truth + rng.laplace(scale=1.0))", False, "distribution", "outputs were "),
        ("str(truth + rng.laplace(scale=1.0))", False, "shape", "numbers are asked for"),
        ("float('inf') if rng.random() < .01 else 0.", False, "shape", "finite numbers"),
        ("truth + rng.geometric(0.6) - rng.geometric(0.6)", True, "passed", ""),
        ("truth + rng.geometric(0.4) - rng.geometric(0.4)", True, "distribution", "outputs were "),
        ("truth + rng.laplace(scale=1.09)", True, "distribution", "must not come"),
    ],
)
def test_numbers_are_compared_by_their_distribution_function(told, on_a_grid, check, words):
    stated = (lambda value: stats.dlaplace(-np.log(0.4), loc=value)) if on_a_grid else stats.laplace
    found = returns(told, laplace_task(distribution=stated))
    assert found.check == check, found
    assert words in found.sentence


@pytest.mark.parametrize(
    ("told", "loss", "words"),
    [
        ("truth + rng.laplace(scale=1.0)", lambda o, value: abs(o - value), "Passed"),
        ("truth + rng.laplace(scale=2.0)", lambda o, value: abs(o - value), "was above 2.996 in "),
        ("str(rng.random())", lambda o, value: o - value, "2,000 outputs, such as '0."),
        ("[rng.random()]", lambda o, value: o.mean(), "are no answer at all)"),
    ],
)
def test_what_is_noisier_than_promised_or_has_no_loss_is_not_useful(told, loss, words):
    # Laplace noise of scale 1 exceeds log(20) once in twenty runs.
    found = returns(told, useful_task(loss=loss, margin=np.log(20)))
    assert words in found.sentence
    assert found.check == ("passed" if words == "Passed" else "usefulness")
    assert words == "Passed" or "100 are expected at most" in found.sentence


@pytest.mark.parametrize(
    ("told", "check", "words"),
    [
        ("truth + rng.normal(size=2)", "passed", ""),
        ("truth + 3 * rng.normal(size=2)", "distribution", "by the statistic of the task"),
        ("[rng.normal()]", "distribution", "has no statistic"),
        ("truth + rng.normal(size=2) * [1, 2]", "distribution", "Larger for large values."),
    ],
)
def test_a_vector_is_compared_by_its_statistic(told, check, words):
    task = useful_task(
        pairs=(),
        data=[[0.0, 4.0]],
        distribution=lambda values: stats.norm(sum(values), 2**0.5),
        statistic=lambda output, values: output[0] + output[1],
        mistakes={"Larger for large values.": lambda values: stats.norm(sum(values), 5**0.5)},
    )
    found = returns(told, task)
    assert found.check == check, found
    assert words in found.sentence


@pytest.mark.parametrize(
    "told", ["truth + rng.normal(size=2)", "(truth + rng.normal(size=2)).tolist()"]
)
def test_a_list_is_an_array_for_the_teacher_where_a_shape_is_asked(told):
    task = useful_task(
        pairs=(),
        data=[[0.0, 4.0]],
        shape=(2,),
        distribution=lambda values: stats.norm(sum(values), 2**0.5),
        statistic=lambda output, values: output.sum(),
        loss=lambda output, values: abs(output - values).max(),
        margin=4.0,
    )
    assert returns(told, task).check == "passed"


def test_delta_is_allowed_where_it_is_claimed():
    leaky = "truth if rng.random() < 0.2 else int(rng.random() < .5)"
    assert returns(leaky, private_task(epsilon=0.05)).check == "privacy"
    assert returns(leaky, private_task(epsilon=0.05, delta=0.25)).check == "passed"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("{'count': truth, 'id': rng.bytes(8).hex()}", "epsilon"),
        (
            "[[0] * n for n in rng.integers(99, size=4).tolist()]",
            "answer must return outputs that can",
        ),
    ],
)
def test_no_run_id_hides_a_record_from_the_privacy_check(output, sentence):
    found = returns(output, private_task())
    assert found.check == "privacy"
    assert sentence in found.sentence


# Whether the generator is used


@pytest.mark.parametrize(
    ("told", "check"),
    [
        ("bool(truth + rng.laplace() > 50)", "passed"),
        ("float(min(1, 50 + rng.laplace()))", "passed"),  # clipped
        # What is told of one data set and not of its neighbour, in all runs, has no noise.
        ("truth + 0.5", "rng"),
        ("[[truth], [1, 2]]", "rng"),
    ],
)
def test_noise_that_hardly_ever_matters_is_not_called_none(told, check):
    assert returns(told, private_task()).check == check


@pytest.mark.parametrize(
    ("told", "distribution", "check"),
    [
        # Kept 999 times in a thousand, 100 runs hardly ever show another output.
        ("truth", coin(0.999), "passed"),
        ("truth", coin(0.5), "rng"),
        ("int(rng.binomial(truth, .5))", lambda n: stats.binom(n, 0.5), "passed"),
        # On a grid a likely value is that of all runs once in 38 times, or in 10 million.
        ("truth", lambda n: stats.dlaplace(4.0), "passed"),
        ("truth", lambda n: stats.dlaplace(2.5), "rng"),
    ],
)
def test_what_is_likely_in_all_runs_is_no_unused_generator(told, distribution, check):
    changes = {"pairs": (), "data": [0], "epsilon": None, "distribution": distribution}
    assert returns(told, answer_task(trials=100, **changes)).check == check
    by_statistic = {"statistic": lambda output, n: output[0]}
    assert returns(f"[{told}]", answer_task(trials=100, **changes, **by_statistic)).check == check


# Outputs by their values


@pytest.mark.claim("grading.grade", kind="chosen cases")
@pytest.mark.parametrize(
    ("held", "other"),
    [
        ("{}", "np.int64({})"),
        ("{}", "np.array({})"),
        ("[{}]", "float({})"),
        ("(7, {})", "bool({})"),
        ("dict(a={})", "np.array({})"),
        ("{{{}: 1, 'b': [[]]}}", "np.int64({})"),
    ],
)
def test_a_number_is_judged_by_its_value_whatever_type_holds_it(held, other):
    for keep, check in ((KEEP, "passed"), (0.9, "privacy")):
        told = f"{held.format('truth')} if rng.random() < {keep} else "
        told += held.format(other.format("1 - truth"))
        assert returns(told, private_task()).check == check


@pytest.mark.parametrize(
    "alike",
    [
        [1, True, 1.0, np.int8(1), np.float16(1), np.array(1)],
        [[[1, 2], [3, 4]], np.arange(1, 5).reshape(2, 2), ([1, 2.0], np.array([3, 4]))],
        [[2**60 + 1, 1], (np.int64(2**60 + 1), 1.0), np.array([2**60 + 1, 1])],
        [{1: 2, 0: 3}, {np.int64(0): 3.0, True: 2}],
        [{("a", (1, 2)): [3], ("a", ()): 1}, {("a", ()): True, ("a", (np.int8(1), 2.0)): (3,)}],
        ["a", np.str_("a")],
        [[], (), np.array([])],
        [[math.inf, 10**400], (np.inf, 10**400)],
        [[np.nan], np.array([np.nan]), [-np.float64(np.nan)]],
    ],
)
def test_outputs_of_one_value_are_one_output_and_no_other(alike):
    assert len({repr(by_value(output)) for output in alike}) == 1
    assert len({(by_value(output),) for output in alike}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (-0.0, 0),
        (2**60 + 1, 2**60),
        ({(math.nan,): 0, (-math.nan,): 5}, {(math.nan,): 1, (-math.nan,): 5}),
        ({("nan",): 1}, {(float("nan"),): 1}),
        (["1"], [1]),
    ],
)
def test_outputs_of_two_values_are_two_outputs(one, other):
    assert repr(by_value(one)) != repr(by_value(other))


def test_outputs_that_were_made_to_have_one_hash_keep_no_judge_waiting():
    """A set or a count of them takes the square of their number."""
    hidden = [place * sys.hash_info.modulus for place in range(2000)]
    runs = Runs([[[data] * 600 + [number] for number in hidden] for data in (0, 1)], [])
    stated = answer_task(epsilon=None, distribution=lambda data: {(data,) * 601: 1.0})
    for task, check in ((private_task(), "privacy"), (stated, "distribution")):
        began = time.monotonic()
        assert _judge.judge_runs(task, runs, 0.001, np.random.default_rng(1))[0] == check
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("told", "stated", "check"),
    [
        ("-1 / 3 if rng.random() < .5 else 'a'", {-1 / 3 * (1 + 1e-15): 0.5, "a": 0.5}, "passed"),
        ("[rng.integers(2), .1 + .2]", {(0, 0.3): 0.5, (1, 0.3): 0.5}, "passed"),
        ("rng.integers(2) / 3 * 1.00001", {0.0: 0.5, 1 / 3: 0.5}, "distribution"),
        ("int(rng.integers(2)) * (1 + 1e-15)", {0: 0.5, 1: 0.5}, "distribution"),
        # Rounding makes several values of one on a grid.
        ("(rng.integers(-2, 7) + .1) - 2", stats.randint(-4, 5, loc=0.1), "passed"),
        ("(rng.integers(5) + .1 + 50 * (x := rng.integers(2))) - 50 * x", GRID, "passed"),
        ("rng.integers(5) + .10001", GRID, "distribution"),
        ("rng.integers(6) + .1", GRID, "distribution"),
    ],
)
def test_a_float_is_what_is_stated_within_the_tolerance(told, stated, check):
    task = answer_task(epsilon=None, pairs=(), data=[0], distribution=lambda _: stated)
    assert returns(told, task).check == check


def test_a_distribution_names_outputs_by_their_values():
    task = answer_task(distribution=lambda truth: {float("nan"): 1.0})
    assert returns("'nan'", task).check == "rng"  # in all runs, and never right
    assert returns("float('nan')", task).check == "passed"
    task = answer_task(distribution=lambda truth: {"a": 0.5, "b": 0.5})
    assert returns("rng.choice(['a', 'b'])", task).check == "passed"


def test_large_numbers_of_several_types_are_told_apart():
    told = "(int, np.int64)[rng.integers(2)](2**60 + truth + 2 * int(rng.integers(2)))"
    assert returns(told, private_task()).check == "privacy"


# The runs, and the error of all tests together


def test_each_run_has_data_and_a_generator_of_its_own():
    source = f"""
def answer(values, rng):
    report = [value if rng.random() < {KEEP} else 1 - value for value in values]
    values.clear(); values.extend([1, 1, 1])
    rng.random(100)
    return report
"""
    stated = {
        "pairs": [([0], [1])],
        "distribution": lambda v: {(v[0],): KEEP, (1 - v[0],): 1 - KEEP},
    }
    assert verdict(source, answer_task(**stated)).check == "passed"


def test_the_runs_are_in_an_order_that_tells_nothing():
    task = answer_task(trials=200)
    plan = plan_calls(task, np.random.default_rng(1))
    places = [place for place, _ in plan]
    assert sorted(places) == [0] * 216 + [1] * 216
    assert 50 < sum(places[:216]) < 166
    assert len({seed for _, seed in plan}) == 400
    assert plan != plan_calls(task, np.random.default_rng(2))


def test_the_audit_does_not_see_in_which_order_the_runs_were_made(monkeypatch):
    """Who is honest first, while an event is chosen, and leaks later must not gain by it."""
    seen, report = [], _judge.report

    def spy(mechanism, *asked, **options):
        seen.extend([mechanism(place) for _ in range(2000)] for place in (0, 1))
        return report(mechanism, *asked, **options)

    monkeypatch.setattr(_judge, "report", spy)
    source = "calls = []\ndef answer(truth):\n    calls.append(0)\n    return len(calls)\n"
    verdict(source, private_task(uses_rng=False))
    assert len(seen) == 2
    for outputs in seen:
        early = np.mean(outputs[:1000]) / np.mean(outputs)
        assert 0.9 < early < 1.1  # in the order of the runs it is one half


def test_the_error_is_shared_by_all_tests_of_all_tasks(monkeypatch):
    shares = []

    def judge_runs(task, runs, share, rng):
        shares.append(share)
        return "passed", ""

    monkeypatch.setattr(_grade, "judge_runs", judge_runs)
    both_ways = answer_task(pairs=[(0, 1), (1, 0)])
    tasks = [both_ways, number_task(), laplace_task(loss=lambda *_: 0.0), private_task()]
    assert [task.tests for task in tasks] == [4, 0, 5, 1]
    grade(RIGHT, tasks, confidence=0.9, rng=1)
    assert shares == [pytest.approx(0.1 / 10)] * 4


@pytest.mark.claim("grading.grade", kind="enumeration")
@pytest.mark.parametrize("share", [0.2, 0.02])
def test_right_frequencies_are_accused_no_more_often_than_the_share(share):
    # Exactly: two tails of an error of share / 4 each, for each of two outputs that mirror.
    stated, runs = {0: 0.3, 1: 0.7}, 50
    accused = sum(
        stats.binom.pmf(hits, runs, 0.3)
        for hits in range(runs + 1)
        if _judge.compare_frequencies("x", [0] * hits + [1] * (runs - hits), stated, share, 0.0)
    )
    assert share / 20 < accused <= share
    # Of numbers as well where nearly all are one value, which a bound for all does not see.
    for rare in (0.02, 0.05):
        accused = sum(
            stats.binom.pmf(hits, runs, rare)
            for hits in range(runs + 1)
            if _judge.compare_numbers(
                "x", [1.0] * hits + [0.0] * (runs - hits), stats.bernoulli(rare), share, 0.0
            )
        )
        assert accused <= share


@pytest.mark.claim("grading.grade", kind="simulation with its error")
def test_right_numbers_are_accused_no_more_often_than_the_share():
    rng, share, times = np.random.default_rng(1), 0.2, 1000
    grid = stats.dlaplace(0.7)
    for stated, draw in [
        (stats.norm(), lambda: rng.normal(size=100)),
        (grid, lambda: grid.rvs(size=100, random_state=rng)),
    ]:
        accused = sum(
            bool(_judge.compare_numbers("x", list(draw()), stated, share, 0.0))
            for _ in range(times)
        )
        # At most 200 are expected; 0.1 % of such counts are above 240.
        assert 0 < accused <= stats.binom.ppf(0.999, times, share)


# What comes in, and what comes out


def test_a_notebook_is_graded_cell_by_cell(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# def answer(x): return 0"]},
        {"cell_type": "code", "source": ["from __future__ import annotations"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", "import math"]},
        {"cell_type": "code", "source": ["if math:\n", "  !pip install dp\n", "math.pow?\n"]},
        {"cell_type": "code", "source": ["files = !ls\n", "two = 2 * (5\n", "%3\n", "  != 3)"]},
        {"cell_type": "code", "source": ["assert False\n", "unknown +"]},
        {"cell_type": "code", "source": ["print(unknown)\n", "def answer(x: NoSuchType):\n"]},
    ]
    cells[-1]["source"].append("  return math.pow(x, two)")
    path = tmp_path / "submission.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert verdict(path, number_task()).check == "passed"
    path.with_suffix(".py").write_text("def answer(x): return x**2")
    assert verdict(path.with_suffix(".py"), number_task()).check == "passed"
    with pytest.raises(FileNotFoundError):
        grade(tmp_path / "none.py", [number_task()])


def test_a_function_is_missing_because_of_its_own_cell(tmp_path):
    sources = ["print(unknown)", "def answer_old(x:", "def answer(x):\n  return 2 x", "answer(3)"]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    path = tmp_path / "submission.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    sentence = "There is no function answer, because SyntaxError: invalid"
    assert verdict(path, number_task()).sentence.startswith(sentence)
    assert "NameError: name 'unknown'" in verdict(path, number_task(function="other")).sentence


@pytest.mark.parametrize("content", ["", "<!DOCTYPE html><html>", '{"worksheets": []}', "\x89PNG"])
def test_a_file_that_is_no_notebook_is_quoted(tmp_path, content):
    path = tmp_path / "mine.ipynb"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="submission must be a notebook") as refused:
        grade(path, [answer_task()])
    assert str(refused.value).endswith(f"but it starts with {content!r}")


def test_grades_are_printed_and_tabulated():
    tasks = [number_task(points=2), number_task(function="other", points=1)]
    grades = grade("def answer(x): return x * x", tasks, isolation="process")
    assert (grades.points, grades.possible, grades.confidence) == (2, 3, 0.999)
    assert grades.isolation == "process"
    assert str(grades).split("\n") == [
        "answer: 2 of 2. Passed: 2 of 2 answers are right.",
        "other: 0 of 1. There is no function other.",
        "Together: 2 of 3.",
    ]
    assert grades.table().points.tolist() == [2, 0]


def test_a_seed_repeats_a_grade_to_the_letter():
    wrong = RIGHT.replace("0.73", "0.93")
    assert verdict(wrong, answer_task(), rng=7) == verdict(wrong, answer_task(), rng=7)
    assert verdict(wrong, answer_task(), rng=7) != verdict(wrong, answer_task(), rng=8)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to("/etc/hostname"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_bytes(bytes(2**23 + 1)),
        os.mkfifo,
        os.mkdir,
    ],
)
def test_a_submission_that_is_no_file_of_its_own_or_too_large_is_refused(make, tmp_path):
    make(tmp_path / "work.py")
    with pytest.raises(ValueError, match="must be a file of at most 8 MiB, and no link: 'work"):
        grade(tmp_path / "work.py", [number_task()])


def test_too_few_trials_for_a_claim_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="tasks must have trials enough to refute"):
        grade(RIGHT, [answer_task(epsilon=5.0, trials=100)])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"pairs": []}, ValueError, "a task must have answers, or pairs"),
        ({"answers": [((1,), 1)]}, ValueError, "a task must have answers, or pairs"),
        ({"pairs": [], "data": [1]}, ValueError, "epsilon must be claimed for pairs"),
        ({"causes": {"shap": "Look."}}, ValueError, "causes"),
        ({"mistakes": {"Wrong.": 7}}, TypeError, "mistakes"),
    ],
)
def test_a_task_that_asks_nothing_or_two_things_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        answer_task(**change)


@pytest.mark.parametrize("stated", [{0: 0.4, 1: 0.5}, {0: np.nan, 1: 0.5}, {0: 1.5, 1: -0.5}])
def test_what_a_teacher_states_has_to_be_a_distribution(stated):
    with pytest.raises(ValueError, match="distribution must return probabilities that sum to 1"):
        returns("int(rng.integers(2))", answer_task(epsilon=None, distribution=lambda _: stated))


def test_cells_without_an_end_are_waited_for_once():
    tasks = [answer_task(seconds=1) for _ in range(8)]
    began = time.monotonic()
    grades = grade("while True: pass", tasks, isolation="process", rng=1)
    assert {v.sentence for v in grades.verdicts} == {"Its cells had not ended after 1 seconds."}
    assert time.monotonic() - began < 8
