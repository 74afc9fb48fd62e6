"""What `dpnotes.grading` refuses."""

import math

from dpnotes.grading import Task
from refusals._tables import NOT_A_NUMBER, NOT_A_PROBABILITY, NOT_AN_INTEGER

AT_LEAST_0 = [{ValueError: [-1, math.nan, math.inf]}, NOT_A_NUMBER]
PAIRS = {
    ValueError: [[()], [(True,)], [(True, False, "words", 1)]],
    TypeError: [None, 5, "ab", ["ab"], [5], [(True, (i for i in [1]))], [(0, 1, 2)]],
}
NOT_NAMED = [{TypeError: [None, 5, "ab", {1: "a"}, [("a", "b")]]}]
NOT_A_FLAG = {TypeError: [0, 1, None, "no", [True]]}
DELTA = [{ValueError: [-1e-300, 1, 1.1, math.nan, math.inf]}, NOT_A_NUMBER]
TASK = Task(function="double", answers=[((2,), 4)])

WORKING_CALLS = {
    "Task": {
        "function": "double",
        "points": 1.0,
        "says": "",
        "arguments": {},
        "answers": (),
        "tolerance": 1e-6,
        "pairs": [(True, False)],
        "data": (),
        "epsilon": 1.0,
        "delta": 0.0,
        "distribution": None,
        "statistic": None,
        "loss": None,
        "margin": 0.0,
        "beyond": 0.05,
        "shape": None,
        "uses_rng": True,
        "mistakes": {},
        "causes": {},
        "blocked": ["dpnotes"],
        "trials": 4000,
        "seconds": 60.0,
        "memory": 2**31,
    },
    "grade": {
        "submission": "def double(x): return 2 * x",
        "tasks": [TASK],
        "confidence": 0.999,
        "hidden": (),
        "isolation": "process",
        "rng": 1,
    },
}
REFUSED = {
    "Task": {
        "function": [{ValueError: ["", "a b", "1"], TypeError: [None, 5]}],
        "points": AT_LEAST_0,
        "says": [{TypeError: [None, 5]}],
        "arguments": NOT_NAMED,
        "answers": [{TypeError: [None, 5, "ab", [1], [(1, 2)], [((1,), 2, 3)]]}],
        "tolerance": AT_LEAST_0,
        "pairs": [PAIRS],
        "data": [{TypeError: [None, 5, "ab", [(i for i in [1])]]}],
        "epsilon": [{ValueError: [-1, math.nan, math.inf], TypeError: ["1", [1.0], 1j]}],
        "delta": DELTA,
        "distribution": [{TypeError: [5, "ab", {0: 1.0}]}],
        "statistic": [{TypeError: [5, "ab", {0: 1.0}]}],
        "loss": [{TypeError: [5, "ab"]}],
        "margin": AT_LEAST_0,
        "beyond": [NOT_A_PROBABILITY],
        "shape": [{TypeError: [5, "ab", [1]]}],
        "uses_rng": [NOT_A_FLAG],
        "mistakes": NOT_NAMED,
        "causes": NOT_NAMED,
        "blocked": [{ValueError: [[""], ["a b"]], TypeError: [None, 5, "ab", [5]]}],
        "trials": [{ValueError: [99, 0, -1]}, NOT_AN_INTEGER],
        "seconds": [{ValueError: [0, -1, math.nan, math.inf]}, NOT_A_NUMBER],
        "memory": [{ValueError: [0, -1, 2**20]}, NOT_AN_INTEGER],
    },
    "grade": {
        "submission": [{TypeError: [None, 5, b"ab", ["ab"]]}],
        "tasks": [{ValueError: [[]], TypeError: [None, 5, TASK, [5], "ab"]}],
        "confidence": [NOT_A_PROBABILITY],
        "hidden": [{TypeError: [None, 5, "ab", [5]]}],
        "isolation": [{ValueError: ["none", ""], TypeError: [None, 5]}],
    },
}
NOT_CALLED = {"in_a_process": "it starts a process: `test_sandbox` has its refusals"}
