"""What `dpnotes.exponential_mechanism` refuses."""

import math

import numpy as np

from refusals._tables import ANY_EPSILON, NOT_AN_INTEGER, SECRET, SECRET_WORD

NOT_UTILITIES = {
    ValueError: [
        *([], [[]], 3.0, [[[1.0]]], np.zeros((0, 3)), [[1.0], [1.0, 2.0]]),
        *([math.nan, 1.0], [math.inf], [-math.inf, 0.0]),
    ],
    TypeError: [None, "1", ["1"], [None, 1.0], [1j], [2**70], object(), [SECRET_WORD]],
}
NOT_VALUES = {
    ValueError: [*([], 3.0, [[1.0]], [math.nan, SECRET], [math.inf, SECRET], [[1], [1, SECRET]])],
    TypeError: [
        *(None, "1", ["1"], [SECRET_WORD], [None, SECRET], [1j], [True, False], [2**70], object()),
        np.ma.array([1, SECRET], mask=[0, 1]),
    ],
}
NOT_A_BOUND = {
    ValueError: [math.nan, math.inf, -math.inf, 10**400],
    TypeError: ["1", None, True, [1.0], 1j],
}
NOT_ANSWERS = {
    ValueError: [[], 3, [[[1]]], [[1], [1, 2]]],
    TypeError: [None, "1", ["1"], [1.0], [True], [1j], [None, SECRET], object()],
}
STEPS = [{ValueError: [0, -1, 2**40 + 1, 10**400]}, NOT_AN_INTEGER]
THRESHOLD = [{ValueError: [2**53 + 1, -(2**53) - 1, 10**400]}, NOT_AN_INTEGER]
NARROW = [*ANY_EPSILON, {ValueError: [1e-13, 5e-324]}]
WHOLE_SENSITIVITY = [{ValueError: [0, -1, 2**62, 10**400]}, NOT_AN_INTEGER]
MONOTONE = [{TypeError: [None, 1, 0, "yes", [True]]}]

CHOICE = {"utilities": [1.0, 2.0], "epsilon": 1.0, "sensitivity": 1.0}
MEDIAN = {"values": [1.0, 2.0], "epsilon": 1.0, "low": 0.0, "high": 5.0, "steps": 10}
FIRST = {"answers": [1, 5], "threshold": 3, "epsilon": 1.0, "sensitivity": 1, "monotone": False}

WORKING_CALLS = {
    "sample": {**CHOICE, "size": None, "rng": 0},
    "output_distribution": CHOICE,
    "permute_and_flip": {**CHOICE, "size": None, "rng": 0},
    "permute_and_flip_distribution": CHOICE,
    "release_median": {**MEDIAN, "rng": 0},
    "median_distribution": MEDIAN,
    "above_threshold": {**FIRST, "rng": 0},
    "above_threshold_distribution": FIRST,
}

DISTRIBUTION = {
    "utilities": [NOT_UTILITIES],
    "epsilon": ANY_EPSILON,
    "sensitivity": ANY_EPSILON,
}
DRAW = {
    **DISTRIBUTION,
    "utilities": [NOT_UTILITIES, {ValueError: [[[1.0, 2.0]]]}],
    "size": [{ValueError: [-1, -(10**30)]}, {TypeError: [2.0, "2", True, [2]]}],
}
OF_MEDIAN = {
    "values": [NOT_VALUES],
    "epsilon": ANY_EPSILON,
    "low": [NOT_A_BOUND],
    "high": [NOT_A_BOUND, {ValueError: [0.0, -1.0]}],
    "steps": STEPS,
}
OF_FIRST = {
    "answers": [NOT_ANSWERS],
    "threshold": THRESHOLD,
    "epsilon": NARROW,
    "sensitivity": WHOLE_SENSITIVITY,
    "monotone": MONOTONE,
}
REFUSED = {
    "sample": DRAW,
    "output_distribution": DISTRIBUTION,
    "permute_and_flip": DRAW,
    "permute_and_flip_distribution": DISTRIBUTION,
    "release_median": OF_MEDIAN,
    "median_distribution": {**OF_MEDIAN, "steps": [*STEPS, {ValueError: [10**7 + 1]}]},
    "above_threshold": {**OF_FIRST, "answers": [NOT_ANSWERS, {ValueError: [[[1, 5]]]}]},
    "above_threshold_distribution": {
        **OF_FIRST,
        "answers": [NOT_ANSWERS, {ValueError: [[1, 2**50]]}],
    },
}
