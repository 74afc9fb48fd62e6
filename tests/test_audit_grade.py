"""A grade depends on what a function returns, and on nothing else that a submission does."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpnotes.audit import pairs_in_domain
from dpnotes.grading import Task, _grade, _judge, _plain, _sandbox, _task, grade
from dpnotes.grading._values import by_value, key

ROOT = Path(__file__).parents[1]
ISOLATIONS = ["best", "process"]
KEEP = {1.0: 0.7310585786300049}


def coin(keep):
    """Return the distribution of a truthful answer that is kept so often."""
    return lambda truth: {truth: keep, 1 - truth: 1 - keep}


def answer_task(**changes):
    """Return a task: a yes-or-no question, answered at epsilon 1."""
    asked = {
        "function": "answer",
        "points": 3,
        "arguments": {"epsilon": 1.0},
        "pairs": pairs_in_domain([0, 1]),
        "epsilon": 1.0,
        "distribution": coin(KEEP[1.0]),
        "mistakes": {"The coin is for half of epsilon.": coin(0.6224593312018546)},
        "trials": 2000,
        "seconds": 30.0,
    }
    return Task(**(asked | changes))


def number_task(**changes):
    return Task(**({"function": "answer", "answers": [((3,), 9.0), ((2,), 4.0)]} | changes))


RIGHT = """
import math
def answer(truth, epsilon, rng):
    return truth if rng.random() < math.exp(epsilon) / (math.exp(epsilon) + 1) else 1 - truth
"""
# What answers without any noise, and all that it does so that this is not seen.
NAKED = "def answer(truth, epsilon, rng):\n    return truth\n"


def verdict(source, task, **options):
    [found] = grade(source, [task], **({"rng": 1} | options)).verdicts
    return found


def has_namespaces():
    return grade("answer = abs", [number_task(answers=[((-1,), 1)])]).isolation == "namespaces"


NAMESPACES = pytest.mark.skipif(not has_namespaces(), reason="this system allows no namespaces")


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
        ("return truth if rng.random() < 0.9 else 1 - truth", "privacy", "Here (0 and 1) an"),
        (
            "return truth if rng.random() < 0.6224593312018546 else 1 - truth",
            "distribution",
            "The coin is for half of epsilon.",
        ),
        (
            "import random; return truth if random.random() < 0.731 else 1 - truth",
            "rng",
            "with one and the same seed",
        ),
        ("return 2 if rng.random() < 0.1 else int(rng.random() < 0.5)", "distribution", "was 2"),
        ("return 1 / 0", "run", "answer raised ZeroDivisionError: division by zero."),
        ("return [truth] * 10**9", "run", "MemoryError"),
        ("return lambda: truth", "run", "answer returned a function"),
        ("return truth +", "run", "There is no function answer, because SyntaxError"),
    ],
)
def test_each_fault_has_a_check_and_a_sentence(body, check, words):
    source = f"def answer(truth, epsilon, rng):\n    {body}\n"
    found = verdict(source, answer_task(memory=2**30))
    assert (found.points, found.check) == (0, check), found
    assert words in found.sentence


def test_what_comes_from_the_future_holds_for_the_statements_and_cells_after_it(tmp_path):
    cells = [
        "from __future__ import annotations",
        "def answer(x: NoSuchType) -> 3 / 0:\n    return x",
        "answer(1)",
    ]
    path = tmp_path / "future.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells]}))
    task = number_task(answers=[((7,), 7)])
    assert verdict(path, task).check == "passed"
    assert verdict("\n".join(cells), task).check == "passed"


@pytest.mark.parametrize("kind", ["dict", "set", "frozenset"])
def test_keys_that_were_made_to_have_one_hash_are_refused(kind):
    """A table of them takes the square of their number, in the judge's own time."""

    def sent(number, step):
        keys = [["int", hex(place * step)] for place in range(number)]
        return [kind, *([key, None] for key in keys)] if kind == "dict" else [kind, *keys]

    modulus = sys.hash_info.modulus
    assert len(_plain.built_of(sent(100, modulus))) == 100
    with pytest.raises(ValueError, match="parts must be those of an output"):
        _plain.built_of(sent(101, modulus))
    assert len(_plain.built_of(sent(5_000, 1))) == 5_000


def test_a_violation_names_the_pair_the_event_and_its_counts():
    source = NAKED.replace("return truth", "return truth if rng.random() < 0.9 else 1 - truth")
    sentence = verdict(source, answer_task()).sentence
    assert "Here (0 and 1) an event came " in sentence
    assert " times in 1,000 runs on the one and " in sentence
    assert "the output is " in sentence
    assert sentence.endswith(_judge.CAUSES["privacy"])


def test_a_cause_of_the_teacher_stands_before_the_general_one():
    task = answer_task(causes={"rng": "Use rng, Bob."})
    assert verdict(NAKED, task).sentence.endswith("Use rng, Bob.")


def test_a_mistake_in_the_distribution_does_not_explain_a_generator_that_is_not_used():
    source = (
        "import random\ndef answer(truth, epsilon, rng): return truth ^ (random.random() > .731)"
    )
    task = answer_task(mistakes={"Not this.": coin(KEEP[1.0])})
    assert "Not this." not in verdict(source, task).sentence


def test_the_empty_stub_gets_nothing_and_names_what_is_missing():
    found = verdict("", answer_task())
    assert (found.points, found.sentence) == (0, "There is no function answer.")
    stub = verdict("def answer(truth, epsilon, rng): ...", answer_task())
    assert (stub.points, stub.check) == (0, "rng")


# Answers without randomness


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return x * x", "Passed: 2 of 2"),
        ("return x * x + 1e-12", "Passed: 2 of 2"),
        ("return 2 * x", "answer(3) returned 6, which is not right: it is too small. Twice is not"),
        ("return x * x + 1", "answer(3) returned 10, which is not right: it is too large. Put"),
        ("return [x * x]", "its shape is (1,), and () is asked for"),
        ("return str(x * x)", "answer(3) returned '9', which is not right."),
        ("return [[1], [1, 2]]", "its rows differ in length"),
        ("return float('nan')", "answer(3) returned nan, which is not right"),
    ],
)
def test_answers_are_compared_with_the_right_ones(body, words):
    task = number_task(mistakes={"Twice is not squared.": lambda x: 2 * x})
    assert words in verdict(f"def answer(x):\n    {body}\n", task).sentence


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[0.7310585786, 0.2689414214], [0.2689414214, 0.7310585786]], "Passed"),
        ([[0.8, 0.2], [0.2, 0.8]], "it costs an epsilon of 1.386, and 1 is allowed"),
        ([[0.6, 0.4], [0.4, 0.6]], "it costs an epsilon of 0.4055 alone, and so is noisier"),
        ([[0.7, 0.2], [0.2, 0.7]], "its rows are not probabilities that sum to 1"),
        ([[0.7, 0.3]], "its shape is (1, 2), and (2, 2) is asked for"),
    ],
)
def test_a_table_is_judged_by_what_it_costs_exactly(table, words):
    keep = KEEP[1.0]
    task = number_task(answers=[((), [[keep, 1 - keep], [1 - keep, keep]])])
    assert words in verdict(f"def answer():\n    return {table}\n", task).sentence


# Continuous outputs, usefulness, families


def laplace_task(**changes):
    asked = {
        "arguments": {},
        "pairs": [(0.0, 1.0)],
        "distribution": lambda value: stats.laplace(value, 1.0),
        "mistakes": {},
        "shape": (),
    }
    return answer_task(**(asked | changes))


@pytest.mark.parametrize(
    ("body", "check", "words"),
    [
        ("return value + rng.laplace(scale=1.0)", "passed", ""),
        ("return value + rng.laplace(scale=0.3)", "privacy", "Violated"),
        ("return value + rng.laplace(scale=2.0)", "distribution", "outputs were "),
        ("return round(value + rng.laplace(scale=1.0))", "distribution", "outputs were "),
        ("return [value + rng.laplace(scale=1.0)]", "shape", "its shape is (1,)"),
        ("return str(value + rng.laplace(scale=1.0))", "shape", "it has to hold numbers"),
        ("return float('inf') if rng.random() < .01 else 0.", "shape", "finite numbers"),
    ],
)
def test_numbers_are_compared_by_their_distribution_function(body, check, words):
    source = f"def answer(value, rng):\n    {body}\n"
    found = verdict(source, laplace_task())
    assert found.check == check, found
    assert words in found.sentence


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("return value + rng.geometric(0.6) - rng.geometric(0.6)", "passed"),
        ("return value + rng.geometric(0.4) - rng.geometric(0.4)", "distribution"),
        ("return value + rng.geometric(0.6) - rng.geometric(0.6) + 0.25", "distribution"),
    ],
)
def test_numbers_on_a_grid_are_compared_on_both_sides_of_their_steps(body, check):
    task = laplace_task(
        pairs=[(0, 1)],
        distribution=lambda value: stats.dlaplace(-np.log(0.4), loc=value),
    )
    assert verdict(f"def answer(value, rng):\n    {body}\n", task).check == check


@pytest.mark.parametrize(
    ("scale", "check"), [(1.0, "passed"), (0.5, "passed"), (2.0, "usefulness")]
)
def test_what_is_noisier_than_promised_is_not_useful(scale, check):
    # Laplace noise of scale 1 exceeds log(20) once in twenty runs.
    task = laplace_task(
        epsilon=None,
        distribution=None,
        loss=lambda output, value: abs(output - value),
        margin=np.log(20),
    )
    found = verdict(f"def answer(value, rng): return value + rng.laplace(scale={scale})", task)
    assert found.check == check
    if check != "passed":
        assert "the error was above 2.996 in " in found.sentence
        assert "100 are expected at most" in found.sentence


def test_a_loss_that_cannot_be_taken_is_no_usefulness():
    task = laplace_task(
        epsilon=None, distribution=None, shape=None, loss=lambda output, value: output - value
    )
    found = verdict("def answer(value, rng): return str(rng.random())", task)
    assert found.check == "usefulness"


def test_outputs_that_have_no_loss_are_counted():
    task = laplace_task(
        epsilon=None, distribution=None, shape=None, loss=lambda output, value: output - value
    )
    found = verdict("def answer(value, rng): return 'x' if rng.random() < .5 else value", task)
    assert found.check == "usefulness"
    assert "outputs, such as 'x', are no answer at all)" in found.sentence


NOISY_VECTORS = """
def answer(values, rng):
    told = [value + {noise} for value in values]
    return {told}
"""


@pytest.mark.parametrize(
    ("noise", "told", "check", "words"),
    [
        ("rng.normal()", "np.array(told)", "passed", ""),
        ("3 * rng.normal()", "np.array(told)", "distribution", "by the statistic of the task"),
        ("rng.normal()", "told[:1]", "distribution", "has no statistic"),
        ("rng.normal() * (2 if value > 3 else 1)", "told", "distribution", "Larger for large"),
    ],
)
def test_a_vector_is_compared_by_its_statistic(noise, told, check, words):
    task = answer_task(
        arguments={},
        pairs=(),
        data=[[0.0, 4.0]],
        epsilon=None,
        distribution=lambda values: stats.norm(sum(values), 2**0.5),
        statistic=lambda output, values: output[0] + output[1],
        mistakes={"Larger for large values.": lambda values: stats.norm(sum(values), 5**0.5)},
        shape=None,
    )
    source = "import numpy as np\n" + NOISY_VECTORS.format(noise=noise, told=told)
    found = verdict(source, task)
    assert found.check == check, found
    assert words in found.sentence


def test_whoever_fails_to_run_is_told_the_usual_cause():
    task = answer_task(causes={"run": "Begin with the imports, Bob."})
    found = verdict("def answer(truth, epsilon, rng): return nothing", task)
    assert found.check == "run"
    assert found.sentence.endswith("Begin with the imports, Bob.")


def test_numbers_of_numpy_are_quoted_as_numbers():
    task = answer_task(arguments={}, shape=(), distribution=None)
    found = verdict("import numpy as np\ndef answer(t, rng): return (np.float64(.5), t)", task)
    assert "returned (0.5, 0)" in found.sentence


@pytest.mark.claim("grading.grade", kind="chosen cases")
@pytest.mark.parametrize(
    ("held", "other"),
    [
        (held, other)
        for held in ("{}", "[{}]", "(7, {})", "dict(a={})", "{{{}: 1, 'b': [[]]}}")
        for other in ("np.int64({})", "float({})", "bool({})", "np.array({})")
        if (held[:2], other[:8]) != ("{{", "np.array")  # an array is no key
    ],
)
def test_a_number_is_judged_by_its_value_whatever_type_holds_it(held, other):
    body = f"""import numpy as np
def answer(truth, rng):
    kept = rng.random() < 0.7310585786300049
    return {held.format("truth")} if kept else {held.format(other.format("1 - truth"))}
"""
    task = answer_task(arguments={}, distribution=None)
    assert verdict(body, task).check == "passed"
    leaky = body.replace("0.7310585786300049", "0.9")
    assert verdict(leaky, task).check == "privacy"


@pytest.mark.parametrize(
    "alike",
    [
        [1, True, 1.0, np.int8(1), np.float16(1), np.longdouble(1), np.array(1)],
        [[1, 0], (True, 0.0), np.array([1, 0], np.int8), [np.float32(1), 0]],
        [[[1, 2], [3, 4]], np.arange(1, 5).reshape(2, 2), ([1, 2.0], np.array([3, 4]))],
        [2**60, 2.0**60, np.int64(2**60)],
        [[2**60 + 1, 1], (np.int64(2**60 + 1), 1.0), np.array([2**60 + 1, 1])],
        [{1: 2, 0: 3}, {np.int64(0): 3.0, True: 2}],
        [{(1, 2): [3]}, {(1.0, np.int8(2)): (3,)}],
        ["a", np.str_("a")],
        [[], (), np.array([])],
        [[math.inf, 10**400], (np.inf, 10**400)],
        [[np.nan], np.array([np.nan]), [-np.float64(np.nan)]],
        [np.zeros((2, 0), "U1"), [[], []], np.zeros((2, 0))],
        [np.longdouble([0.25, 1]), [0.25, 1]],
        [{("a", (1, 2)): [3], ("a", ()): 1}, {("a", ()): True, ("a", (np.int8(1), 2.0)): (3,)}],
        [{10**400: 1, 2: 3}, {2.0: 3, 10**400: np.int8(1)}],
    ],
)
def test_outputs_of_one_value_are_one_output_and_no_other(alike):
    texts = {repr(by_value(output)) for output in alike}
    assert len(texts) == 1, texts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros((0, 3), "U1"), np.zeros((0, 4), "U1")),
        (-0.0, 0),
        (2**60 + 1, 2**60),
        (np.longdouble(1) / 3, 1 / 3),
        ({(math.nan,): 0, (-math.nan,): 5}, {(math.nan,): 1, (-math.nan,): 5}),
        ({("nan",): 1}, {(float("nan"),): 1}),
        ([np.zeros((1,) * 32) + 1], [np.zeros((1,) * 32)]),
        (["1"], [1]),
    ],
)
def test_outputs_of_two_values_are_two_outputs(one, other):
    assert repr(by_value(one)) != repr(by_value(other))


@pytest.mark.parametrize("name", ["('age', (0, 1))", "((1, 2), (3,))", "10**4400", "(nan, ())"])
def test_no_key_of_a_dict_hides_what_it_holds(name):
    body = f"""from math import nan
def answer(truth, rng):
    return 1 if rng.random() < 0.1 else {{{name}: truth}}
"""
    task = answer_task(arguments={}, distribution=None)
    assert verdict(body, task).check == "privacy"
    private = body.replace(": truth}", ": truth ^ int(rng.random() < 0.45)}")
    assert verdict(private, task).check == "passed"


def test_the_order_of_keys_is_no_output():
    body = "def answer(truth, rng): return {'a': 0, 'b': 0} if truth else {'b': 0, 'a': 0}"
    assert verdict(body, answer_task(arguments={}, distribution=None)).check == "passed"
    stated = {(("a", 0), ("b", 0)): 1.0}
    task = answer_task(arguments={}, distribution=lambda truth: stated)
    assert verdict(body, task).check == "passed"


def test_no_text_is_the_number_that_is_none():
    assert key([float("nan"), 1]) == key((np.float32("nan"), 1)) != key(["nan", 1])
    task = answer_task(arguments={}, distribution=lambda truth: {float("nan"): 1.0})
    assert verdict("def answer(truth, rng): return 'nan'", task).check != "passed"
    assert verdict("def answer(truth, rng): return float('nan')", task).check == "passed"


def test_a_text_of_numpy_is_a_text():
    body = "def answer(truth, rng): return rng.choice(['a', 'b'])"
    task = answer_task(arguments={}, distribution=lambda truth: {"a": 0.5, "b": 0.5})
    assert verdict(body, task).check == "passed"


@pytest.mark.parametrize(
    ("right", "accepted", "refused"),
    [
        (np.array([1.0, 2.0]), "[1, 2]", "[[1], [1, 2]]"),
        (np.eye(2), "[[1, 0], [0, 1]]", "[[1], [0, 1]]"),
        (("yes", 1 / 3), "('yes', 0.33333333333)", "('yes', '0.3333333333333333')"),
        (["a", 2.0], "['a', 2]", "['a', True]"),
        ({"a": np.ones(2)}, "{'a': (1, 1)}", "{'a': [1, [1]]}"),
        (["a", "b"], "np.array(['a', 'b'])", "['a', 'c']"),
    ],
)
def test_an_answer_is_right_part_by_part(right, accepted, refused):
    task = number_task(answers=[((), right)])
    assert verdict(f"import numpy as np\ndef answer(): return {accepted}", task).check == "passed"
    assert verdict(f"import numpy as np\ndef answer(): return {refused}", task).check == "answer"


@pytest.mark.parametrize(
    ("right", "given", "words"),
    [
        (1, "True", "a number is asked for"),
        (True, "1", "True or False is asked for"),
        (1.0, "float('nan')", "it is not a number"),
    ],
)
def test_how_an_answer_is_wrong_is_true(right, given, words):
    task = number_task(answers=[((), right)])
    assert words in verdict(f"def answer(): return {given}", task).sentence


def test_a_verdict_by_value_says_so():
    body = "def answer(truth, rng): return [truth] if rng.random() < .9 else (1 - truth,)"
    found = verdict(body, answer_task(arguments={}, distribution=None))
    assert "(by its value, whatever its type)" in found.sentence


def test_large_numbers_of_several_types_are_told_apart():
    body = """import numpy as np
def answer(truth, rng):
    return (int if rng.random() < 0.5 else np.int64)(2**60 + truth + 2 * int(rng.random() < 0.5))
"""
    assert verdict(body, answer_task(arguments={}, distribution=None)).check == "privacy"


def test_delta_is_allowed_where_it_is_claimed():
    leaky = "def answer(truth, rng): return truth if rng.random() < 0.2 else int(rng.random() < .5)"
    task = answer_task(arguments={}, epsilon=0.05, distribution=None)
    assert verdict(leaky, task).check == "privacy"
    allowed = answer_task(arguments={}, epsilon=0.05, delta=0.25, distribution=None)
    assert verdict(leaky, allowed).check == "passed"


def test_one_draw_for_all_shows_on_several_people():
    source = """
def answer(values, epsilon, rng):
    keep = rng.random() < 0.7310585786300049
    return [value if keep else 1 - value for value in values]
"""
    only = {"distribution": None, "mistakes": {}}
    alone = answer_task(pairs=[([0], [1])], **only)
    together = answer_task(pairs=[([0, 0], [1, 0])], **only)
    assert verdict(source, alone).check == "passed"
    assert verdict(source, together).check == "privacy"


def test_a_function_without_rng_is_not_asked_to_repeat_itself():
    source = "import random\ndef answer(truth, epsilon): return truth ^ (random.random() > .731)"
    assert verdict(source, answer_task(uses_rng=False)).check == "passed"


# What a submission does to be graded better


ATTACKS = {
    "patches the audit": """
from dpnotes import audit
audit.epsilon_lower_bound = lambda *a, **k: 0.0
dpnotes.grading._judge.judged = lambda *a: ("passed", "")
""",
    "patches numpy and json": """
import json, numpy
numpy.random.default_rng = None
json.dumps = lambda *a: '[["loaded", ""], ["passed", ""]]'
""",
    "exits when it is loaded": "import os\nos._exit(0)\n",
    "raises when it is loaded": "raise SystemExit(0)\n",
    "prints the answer": "print('answer: 3 of 3. Passed.')\n" * 100,
    "floods its output": """
import os, sys
for _ in range(200):
    os.write(1, b'x' * 2**20); os.write(2, b'x' * 2**20); sys.stdout.write('x' * 2**20)
""",
    "forges the channel": """
import json, os
for place in range(3, 64):
    said = json.dumps([["loaded", ""]] + [["returned", i % 2] for i in range(4100)]).encode()
    for content in (len(said).to_bytes(8, 'big') + said,):
        try: os.write(place, content)
        except OSError: pass
""",
    "writes what cannot be read": """
import os
for place in range(3, 64):
    try: os.write(place, (2**62).to_bytes(8, 'big') + b'[' * 10**6)
    except OSError: pass
""",
    "sends a pickle": """
import os, pickle
class Bomb:
    def __reduce__(self): return os.system, ("touch bombed",)
for place in range(3, 64):
    said = pickle.dumps(Bomb())
    try: os.write(place, len(said).to_bytes(8, 'big') + said)
    except OSError: pass
""",
    "reaches for the caller": """
import sys
frame = sys._getframe()
while frame:
    for name, thing in list(frame.f_locals.items()):
        if isinstance(thing, dict) and 'plan' in thing: thing['plan'] = []
    frame = frame.f_back
""",
    "kills the judge": """
import os, signal
if os.getppid() > 1: os.kill(os.getppid(), signal.SIGCONT)
""",
    "lies by a subclass": """
class Truth(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
""",
}


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gains_nothing(attack, isolation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = ATTACKS[attack] + NAKED
    if attack == "lies by a subclass":
        source = source.replace("return truth", "return Truth(truth)")
    began = time.monotonic()
    found = verdict(source, answer_task(seconds=20), isolation=isolation)
    assert (found.points, found.check in ("run", "rng", "privacy", "distribution")) == (0, True)
    if attack == "lies by a subclass":
        assert "answer returned a Truth; return numbers" in found.sentence
    assert time.monotonic() - began < 90
    assert not list(tmp_path.iterdir())
    # The judge is what it was.
    assert verdict(RIGHT, answer_task()).points == 3


def test_a_forged_answer_is_judged_as_one_that_was_returned():
    # Whoever can write the right outputs could have returned them: there is nothing to gain.
    found = verdict(ATTACKS["forges the channel"] + NAKED, answer_task())
    assert found.check in ("run", "rng", "privacy", "distribution")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("while True: pass", "Its cells had not ended after 2 seconds."),
        (
            NAKED.replace("return truth", "\n    while True: pass"),
            "answer was still at work after 2 seconds, in which it had to be run ",
        ),
        ("import time\ntime.sleep(1000)", "Its cells had not ended after 2 seconds."),
        ("import os, time\nif os.fork() == 0: time.sleep(1000)\nos._exit(0)", "It"),
    ],
)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_submission_that_hangs_is_stopped_in_time(source, words, isolation):
    began = time.monotonic()
    found = verdict(source, answer_task(seconds=2), isolation=isolation)
    assert (found.points, words in found.sentence) == (0, True), found
    assert time.monotonic() - began < 30


@NAMESPACES
def test_nothing_that_a_submission_starts_outlives_it():
    source = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; 'graded-orphan'; time.sleep(600)"],
                 start_new_session=True)
os.setsid() if os.getpid() != os.getsid(0) else None
"""
    verdict(source + NAKED, answer_task())
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if _read(p).count(b"graded-orphan")]
    assert not left


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


LOOKS = """
import ctypes, os, socket
def answer(what, place):
    try:
        if what == "write": open(place, "w").write("x")
        if what == "list": return sorted(os.listdir(place))
        if what == "read": return open(place).read()
        if what == "connect": socket.create_connection((place, 80), 1)
        if what == "processes": return len([p for p in os.listdir("/proc") if p.isdigit()])
        if what == "uncover": return ctypes.CDLL(None).umount(place.encode())
        if what == "variable": return os.environ.get(place)
    except Exception as error:
        return type(error).__name__
    return "done"
"""


def looked(what, place, **options):
    task = number_task(answers=[((what, str(place)), "-")], **options.pop("asked", {}))
    sentence = verdict(LOOKS, task, **options).sentence
    return sentence.partition(" returned ")[2].partition(", which is not right")[0]


@NAMESPACES
def test_in_namespaces_nothing_is_reached_that_is_not_needed(tmp_path):
    secret = tmp_path / "hidden_tests.py"
    secret.write_text("the answer is 9")
    assert looked("read", secret) == "'the answer is 9'"
    assert looked("read", secret, hidden=[secret]) == "''"
    assert looked("list", tmp_path) == "['hidden_tests.py']"
    assert looked("list", tmp_path, hidden=[tmp_path]) == "[]"
    assert looked("uncover", tmp_path, hidden=[tmp_path]) == "-1"
    assert looked("write", tmp_path / "new") == "'OSError'"
    assert looked("write", ROOT / "dpnotes" / "new") == "'OSError'"
    assert looked("write", "here") == "'done'"
    assert looked("connect", "127.0.0.1") == "'OSError'"
    assert looked("processes", "") in ("0", "1")
    assert not (tmp_path / "new").exists()


@NAMESPACES
def test_what_is_blocked_is_not_there():
    package = ROOT / "dpnotes"
    assert looked("list", package) == "[]"
    assert looked("list", package, asked={"blocked": ()}).startswith("['__init__.py', ")
    module = package / "randomized_response.py"
    only = {"blocked": ("dpnotes.randomized_response",)}
    assert looked("read", module, asked=only) == "''"
    assert looked("read", package / "unary_encoding.py", asked=only).startswith('\'"""')


def test_a_submission_does_not_see_the_environment(monkeypatch):
    monkeypatch.setenv("A_SECRET", "4711")
    assert looked("variable", "A_SECRET").startswith("None whenever it was called")


IMPORTS = """
def answer(x):
    from dpnotes import randomized_response
    return x * x
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_solution_cannot_be_imported_where_it_is_blocked(isolation):
    found = verdict(IMPORTS, number_task(), isolation=isolation)
    assert "ModuleNotFoundError: dpnotes is blocked in this task" in found.sentence
    other = number_task(blocked=["dpnotes.unary_encoding"])
    assert verdict(IMPORTS, other, isolation=isolation).check == "passed"
    same = number_task(blocked=["dpnotes.randomized_response"])
    assert verdict(IMPORTS, same, isolation=isolation).check == "run"


@NAMESPACES
def test_the_solution_is_not_there_for_whoever_takes_the_block_away():
    source = "import sys\nsys.meta_path.pop(0)\n" + IMPORTS
    assert verdict(source, number_task()).check == "run"


def test_each_run_has_data_and_a_generator_of_its_own():
    source = """
def answer(values, epsilon, rng):
    report = [value if rng.random() < 0.7310585786300049 else 1 - value for value in values]
    values.clear(); values.extend([1, 1, 1])
    rng.random(100)
    return report
"""
    task = answer_task(
        pairs=[([0], [1])],
        distribution=lambda v: {(v[0],): 0.7310585786300049, (1 - v[0],): 1 - 0.731058578630},
    )
    assert verdict(source, task).check == "passed"


def test_the_runs_are_in_an_order_that_tells_nothing():
    task = answer_task(trials=200)
    job = _task.job_of(task, [], np.random.default_rng(1))
    places = [place for place, _ in job.plan]
    assert sorted(places) == [0] * 216 + [1] * 216
    assert 50 < sum(places[:216]) < 166
    seeds = [seed for _, seed in job.plan]
    assert len(set(seeds)) == 400
    assert job.plan != _task.job_of(task, [], np.random.default_rng(2)).plan


# The error of all tests together


def test_the_error_is_shared_by_all_tests_of_all_tasks(monkeypatch):
    shares = []

    def judged(task, runs, share, confidence, rng):
        shares.append(share)
        return "passed", ""

    monkeypatch.setattr(_grade, "judged", judged)
    both_ways = answer_task(pairs=[(0, 1), (1, 0)])
    tasks = [both_ways, number_task(), laplace_task(loss=lambda *_: 0.0)]
    assert [task.tests for task in tasks] == [6, 0, 7]
    grade(RIGHT, tasks, confidence=0.9, rng=1)
    assert shares == [pytest.approx(0.1 / 13)] * 3


@pytest.mark.claim("grading.grade", kind="enumeration")
@pytest.mark.parametrize("share", [0.2, 0.02])
def test_right_frequencies_are_accused_no_more_often_than_the_share(share):
    # Exactly: two tails of an error of share / 4 each, for each of two outputs that mirror.
    stated, runs = {0: 0.3, 1: 0.7}, 50
    accused = sum(
        stats.binom.pmf(hits, runs, 0.3)
        for hits in range(runs + 1)
        if _judge._finite("x", [0] * hits + [1] * (runs - hits), stated, share)
    )
    assert share / 20 < accused <= share


@pytest.mark.claim("grading.grade", kind="simulation with its error")
def test_right_numbers_are_accused_no_more_often_than_the_share():
    rng, share, times = np.random.default_rng(1), 0.2, 1000
    grid = stats.dlaplace(0.7)
    for stated, draw in [
        (stats.norm(), lambda: rng.normal(size=100)),
        (grid, lambda: grid.rvs(size=100, random_state=rng)),
    ]:
        accused = sum(
            bool(_judge._of_numbers("x", list(draw()), stated, share)) for _ in range(times)
        )
        # At most 200 are expected; 0.1 % of such counts are above 240.
        assert 0 < accused <= stats.binom.ppf(0.999, times, share)


def test_few_distinct_outputs_are_not_taken_for_an_unused_generator():
    # Kept 999 times in a thousand: 100 runs hardly ever show another output.
    task = answer_task(trials=100, pairs=(), epsilon=None, data=[0], distribution=coin(0.999))
    assert verdict("def answer(truth, epsilon, rng): return truth", task).check == "passed"
    often = answer_task(trials=100, pairs=(), epsilon=None, data=[0], distribution=coin(0.5))
    assert verdict("def answer(truth, epsilon, rng): return truth", often).check == "rng"


# What comes in, and what comes out


def test_a_notebook_is_graded_cell_by_cell(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# def answer(x): return 0"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", "import math"]},
        {"cell_type": "code", "source": ["assert False\n", "unknown +"]},
        {"cell_type": "code", "source": ["print(unknown)\n", "def answer(x):\n", "  return x**2"]},
    ]
    path = tmp_path / "submission.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert verdict(path, number_task()).check == "passed"
    path.with_suffix(".py").write_text("def answer(x): return x**2")
    assert verdict(path.with_suffix(".py"), number_task()).check == "passed"
    path.write_text("{}")
    with pytest.raises(ValueError, match="submission must be a notebook"):
        grade(path, [number_task()])
    with pytest.raises(FileNotFoundError):
        grade(tmp_path / "none.py", [number_task()])


def test_grades_are_printed_and_tabulated():
    tasks = [number_task(points=2), number_task(function="other", points=1)]
    grades = grade("def answer(x): return x * x", tasks)
    assert (grades.points, grades.possible, grades.confidence) == (2, 3, 0.999)
    assert str(grades).split("\n") == [
        "answer: 2 of 2. Passed: 2 of 2 answers are right.",
        "other: 0 of 1. There is no function other.",
        "Together: 2 of 3.",
    ]
    assert grades.table().points.tolist() == [2, 0]


def test_a_seed_repeats_a_grade_to_the_letter():
    wrong = RIGHT.replace("+ 1)", "+ 0.3)")
    assert verdict(wrong, answer_task(), rng=7) == verdict(wrong, answer_task(), rng=7)
    assert verdict(wrong, answer_task(), rng=7) != verdict(wrong, answer_task(), rng=8)


def test_isolation_that_is_asked_for_and_not_there_is_an_error(monkeypatch):
    grades = grade("answer = abs", [number_task()], isolation="process")
    assert grades.isolation == "process"
    stored = _sandbox.Stored([], "", "process", 0.0)
    job = _task.job_of(number_task(), [], np.random.default_rng(1), isolation="namespaces")
    monkeypatch.setattr(_sandbox, "_heard", lambda *_: stored[:3])
    with pytest.raises(NotImplementedError, match="isolation in namespaces needs"):
        _sandbox.collected(job)


def test_too_few_trials_for_a_claim_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="tasks must have trials enough to refute"):
        grade(RIGHT, [answer_task(epsilon=5.0, trials=100)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": [], "pairs": []}, "a task must have answers, or pairs"),
        ({"answers": [((1,), 1)], "pairs": [(0, 1)]}, "a task must have answers, or pairs"),
        ({"answers": [], "data": [1], "epsilon": 1.0}, "epsilon must be claimed for pairs"),
    ],
)
def test_a_task_that_asks_nothing_or_two_things_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        number_task(**change)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{}",
        b"[",
        b"[[]]",
        b'[["returned"]]',
        b'[["returned", ["module", "os"]]]',
        b'[[1, "x"]]',
        b'[["raised", 1]]',
        b"[" * 10**5,
        b'"ab"',
        b"[1]",
        b"[]",
    ],
)
def test_a_message_that_is_none_is_an_end(content):
    assert _sandbox._read(content) == [("ended", "")]


@pytest.mark.parametrize(
    "said",
    [
        '["Fraction", "0x1", "0x2"]',
        '["set", true]',
        '["bytes", "00"]',
        '["list", ["set"]]',
        '["objects", [1], 1]',
        '["dict", [1, ["complex", "' + "00" * 16 + '"]]]',
    ],
)
def test_what_is_not_plain_is_refused_although_it_could_be_read(said):
    message = f'[["returned", {said}]]'.encode()
    assert _sandbox._read(message)[0][0] in ("refused", "ended")


def test_the_far_end_imports_nothing_of_the_package():
    command = [
        sys.executable,
        "-c",
        "import sys, runpy; runpy.run_path(sys.argv[1]);"
        "sys.exit(any(name.startswith('dpnotes') for name in sys.modules))",
        str(Path(_sandbox.__file__).with_name("_sandbox_worker.py")),
    ]
    environment = {**os.environ, "PYTHONPATH": ""}
    assert subprocess.run(command, env=environment, cwd="/").returncode == 0


# What a first attacker found


def test_the_audit_does_not_see_in_which_order_the_runs_were_made(monkeypatch):
    """Who is honest first, while an event is chosen, and leaks later must not gain by it."""
    seen, audit_pair = [], _judge.audit_pair

    def spy(mechanism, places, trials, *rest):
        outputs = {place: [mechanism(place) for _ in range(trials)] for place in places}
        seen.extend(outputs.values())
        stored = {place: iter(outputs[place]) for place in places}
        return audit_pair(lambda place: next(stored[place]), places, trials, *rest)

    monkeypatch.setattr(_judge, "audit_pair", spy)
    source = "calls = []\ndef answer(truth):\n    calls.append(0)\n    return len(calls)\n"
    verdict(source, answer_task(arguments={}, distribution=None, mistakes={}, uses_rng=False))
    assert len(seen) == 2
    for outputs in seen:
        early = np.mean(outputs[:1000]) / np.mean(outputs)
        assert 0.9 < early < 1.1  # in the order of the runs it is one half


@pytest.mark.parametrize(
    ("output", "off"), [(np.array(-32768, np.int16), 32769), (np.uint8(0), 1), (np.uint16(1), 0)]
)
def test_small_numbers_do_not_wrap_around_in_a_loss(output, off):
    assert _judge._wide("text") == "text"
    assert abs(_judge._wide(output) - 1) == off


def test_a_loss_that_raises_whatever_it_likes_is_no_usefulness():
    source = "def answer(data, rng):\n    return [rng.random()]\n"
    asked = laplace_task(
        epsilon=None, distribution=None, shape=None, loss=lambda output, data: output.mean()
    )
    assert verdict(source, asked).check == "usefulness"


def test_lists_too_deep_to_be_judged_are_refused_by_name():
    source = (
        "def answer(data, rng):\n    deep = rng.random()\n"
        "    for _ in range(400):\n        deep = [deep]\n    return deep\n"
    )
    asked = laplace_task(epsilon=None, distribution=None, shape=None, loss=lambda output, data: 0)
    found = verdict(source, asked)
    assert found.check == "run"
    assert "returned a list" in found.sentence


def test_grades_say_how_far_the_worst_isolation_of_all_tasks_went(monkeypatch):
    reached = iter(["namespaces", "process", "namespaces"])
    collected = _grade.collected
    monkeypatch.setattr(
        _grade, "collected", lambda job: collected(job)._replace(isolation=next(reached))
    )
    assert grade("answer = abs", [number_task()] * 3, rng=0).isolation == "process"


def test_what_a_submission_says_moves_no_cursor():
    source = "def answer(n):\n    raise ValueError('\\x1b[2K passed \\ud800' + 5000 * 'x')\n"
    sentence = verdict(source, number_task()).sentence
    assert sentence.isprintable()
    assert "\\x1b[2K passed \\ud800" in sentence
    assert len(sentence) < 1200


def test_noise_that_hardly_ever_matters_is_not_called_none():
    source = "def answer(s, rng):\n    return bool(s + rng.laplace() > 50)\n"
    asked = answer_task(arguments={}, distribution=None, mistakes={})
    assert verdict(source, asked).check == "passed"
    # Nor is a number that is clipped, or one that says nothing.
    clipped = "def answer(s, rng):\n    return float(min(1, 50 + rng.laplace()))\n"
    assert verdict(clipped, asked).check == "passed"
    # What is told of one data set and not of its neighbour, in all runs, is no noise.
    for told in ("s + 0.5", "[[s], [1, 2]]"):
        assert verdict(f"def answer(s, rng):\n    return {told}\n", asked).check == "rng"


@pytest.mark.parametrize("by_statistic", [False, True])
def test_what_is_certain_on_a_data_set_is_no_unused_generator(by_statistic):
    task = answer_task(
        arguments={},
        pairs=(),
        data=[0, 4],
        epsilon=None,
        mistakes={},
        shape=None,
        distribution=lambda n: stats.binom(n, 0.5),
        statistic=(lambda output, n: output[0]) if by_statistic else None,
    )
    told = "[int(rng.binomial(n, .5))]" if by_statistic else "int(rng.binomial(n, .5))"
    assert verdict(f"def answer(n, rng): return {told}", task).check == "passed"


def test_numbers_beside_the_grid_of_a_distribution_must_not_come():
    task = laplace_task(
        pairs=[(3, 4)],
        epsilon=0.05,
        distribution=lambda value: stats.dlaplace(0.05, loc=value),
    )
    found = verdict("def answer(d, rng): return d + rng.laplace(scale=20)", task)
    assert (found.check, "must not come" in found.sentence) == ("distribution", True)


def test_an_empty_array_of_many_rows_is_no_output():
    source = "import numpy as np\ndef answer(): return np.zeros((10**8, 0))"
    assert verdict(source, number_task(answers=[((), 1.0)])).check == "run"


@pytest.mark.parametrize(
    ("output", "right", "is_right"),
    [
        ("np.array([[.75, .25], [.25, .75]])", np.linalg.inv([[0.75, 0.25], [0.25, 0.75]]), False),
        ("np.array([[1, 0], [.5, .5]])", [[0.75 + 1e-8, 0.25], [0.25, 0.75]], False),
        ("{'a': np.array([1, 2])}", {"a": [1, 2]}, True),
        ("{'a': [1, 2]}", {"a": np.array([1, 2])}, True),
        ("{'a': .1 + .2}", {"a": 0.3}, True),
        ("{'a': 1, 'b': 2}", {"a": 1}, False),
        ("[[1], [2, 3]]", [[1.0 + 1e-9], [2, 3]], True),
        ("[[1], [2, 4]]", [[1], [2, 3]], False),
        ("[1, {'a': 2}]", [1, {"a": 2.0}], True),
    ],
)
def test_an_answer_of_any_build_is_compared_within_the_tolerance(output, right, is_right):
    source = f"import numpy as np\ndef answer(): return {output}"
    found = verdict(source, number_task(answers=[((), right)]))
    assert (found.check == "passed") is is_right, found


def test_a_mistake_that_cannot_be_computed_fits_nothing():
    task = number_task(answers=[((), 1.0)], mistakes={"Divided by 0.": lambda: 1 / 0})
    found = verdict("def answer(): return 1.5", task)
    assert (found.check, "Divided" in found.sentence) == ("answer", False)


def test_nothing_is_told_to_whoever_has_written_nothing():
    task = number_task(answers=[((), 1.0)], causes={"answer": "It is 1.0, the first number."})
    found = verdict("def answer(): ...", task)
    assert (found.points, found.check) == (0, "answer")
    assert found.sentence == (
        "answer returned None whenever it was called: it is not written yet, or it lacks a return."
    )


@pytest.mark.parametrize("stated", [{0: 0.5, 1: 0.4}, {0: float("nan"), 1: 0.5}, {0: 1.5, 1: -0.5}])
def test_what_a_teacher_states_has_to_be_a_distribution(stated):
    task = answer_task(pairs=(), data=[0], epsilon=None, distribution=lambda value: stated)
    with pytest.raises(ValueError, match="distribution must return probabilities that sum to 1"):
        verdict("def answer(truth, epsilon, rng): return int(rng.integers(2))", task)


def test_a_statistic_has_to_be_one_that_can_be_counted():
    task = answer_task(pairs=(), data=[0], epsilon=None, statistic=lambda output, data: {output})
    with pytest.raises(TypeError, match="statistic must return a number, a text or a tuple"):
        verdict("def answer(truth, epsilon, rng): return int(rng.integers(2))", task)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"causes": {"shap": "Look."}}, ValueError),
        ({"causes": {"shape": 7}}, TypeError),
        ({"mistakes": {"Wrong.": 7}}, TypeError),
    ],
)
def test_causes_and_mistakes_are_checked(parameters, error):
    with pytest.raises(error, match=next(iter(parameters))):
        answer_task(**parameters)


def test_cells_without_an_end_are_waited_for_once():
    tasks = [answer_task(seconds=1) for _ in range(8)]
    began = time.monotonic()
    grades = grade("while True: pass", tasks, isolation="process", rng=1)
    assert {v.sentence for v in grades.verdicts} == {"Its cells had not ended after 1 seconds."}
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it is empty"),
        ("<!DOCTYPE html><html>", "a page of HTML"),
        ('{"nbformat": 3, "worksheets": []}', "format 3"),
        ("\x89PNG", "cannot be read as one"),
    ],
)
def test_a_file_that_is_no_notebook_is_named(tmp_path, content, words):
    path = tmp_path / "mine.ipynb"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        grade(path, [answer_task()])


def test_the_audit_needs_no_large_package():
    """In the page of a reader there are none."""
    code = (
        "import sys\n"
        "for name in ('scipy.stats', 'pandas', 'torch', 'matplotlib', 'joblib'):\n"
        "    sys.modules[name] = None\n"
        "import dpnotes.audit\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
