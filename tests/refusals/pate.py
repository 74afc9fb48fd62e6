"""What `dpnotes.pate` refuses."""

import math
from fractions import Fraction

import numpy as np

from dpnotes import pate
from refusals._tables import (
    NOT_A_NUMBER,
    NOT_AN_INTEGER,
    OUT_OF_RANGE,
    SECRET,
    SECRET_WORD,
    unless_left_out,
)

NOT_A_WORD = {TypeError: [1, None, b"exact", ["exact"], True], ValueError: [""]}
NOT_VOTES = {
    ValueError: [
        *([], 3, [5], [[5], [3]], [[[1, 2]]], [[1, 2], [3]], [-1, 2], [0.5, 2], [2**31, 0]),
        *([math.nan, 1.0], [math.inf, 1.0], [SECRET, -SECRET], [[1, 2], [SECRET, 0.5]]),
    ],
    TypeError: [None, "12", [True, False], ["1", "2"], [1j, 2], [None, 1], [SECRET_WORD, 1]],
}
NOT_CATEGORIES = {
    ValueError: [
        [],
        np.zeros((0, 3), dtype=int),
        [[1], [1, 0]],
        1,
        [[[1]]],
        [SECRET],
        [0, -SECRET],
    ],
    TypeError: [None, "1", ["1"], [1.0], [None], [1j], [2**70], object(), [SECRET_WORD]],
}
NO_QUERY = {ValueError: [np.zeros((0, 3), dtype=int)]}
SCALE = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [9e-10, 1.1e9]}]
POSITIVE = [OUT_OF_RANGE, NOT_A_NUMBER]
FINITE = [{ValueError: [math.nan, math.inf, -math.inf, 10**400]}, NOT_A_NUMBER]
THRESHOLD = [*FINITE, {ValueError: [1.1e9, -1.1e9]}]
ORDER = [OUT_OF_RANGE, NOT_A_NUMBER, {ValueError: [1, 1.0, 0.5]}]
ORDERS = [
    {ValueError: [[], 0, [1, 0], [-1], [math.nan], [math.inf], [[2, 3]], [[2], [2, 3]]]},
    {TypeError: ["2", ["2"], [True], [None, 2], [1j]]},
    {ValueError: [1, [2, 1], [0.5]]},
]
DELTA = [
    {ValueError: [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, Fraction(10**30 - 1, 10**30)]},
    NOT_A_NUMBER,
]
METHOD = [NOT_A_WORD, {ValueError: ["Exact", "union"]}]
ANSWERED = [
    {ValueError: [[], [True], [[True, True]], [True, False, True]]},
    {TypeError: ["yes", [1, 0], [1.0, 0.0], ["yes", "no"], [None, True]]},
]
DISTANCES = [{ValueError: [-1, -(10**30)]}, {TypeError: [2.0, "2", True, [2]]}]
QUERIES = [{ValueError: [-1, 10**6 + 1]}, NOT_AN_INTEGER]
SOME_QUERIES = [*QUERIES, {ValueError: [0]}]
SEVERAL = [[3, 240], [9, 1]]
ASK = pate.ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)

WORKING_CALLS = {
    "partition": {"n": 10, "teachers": 3, "rng": 0},
    "count_votes": {"predictions": [[0, 2], [0, 1]], "classes": 3},
    "output_distribution": {"votes": [3, 4], "scale": 2.0, "noise": "laplace"},
    "lnmax_error_probability": {"votes": [3, 4], "gamma": 0.1, "method": "bound"},
    "gnmax_log_error_probability": {"votes": [3, 4], "sigma": 2.0, "method": "bound"},
    "lnmax_rdp": {"votes": [3, 4], "gamma": 0.1, "orders": [2, 3], "method": "exact"},
    "gumbel_rdp": {"votes": [3, 4], "scale": 2.0, "orders": [2, 3]},
    "gnmax_rdp": {"votes": [3, 4], "sigma": 2.0, "orders": [2, 3], "method": "bound"},
    "gnmax_local_sensitivity": {"votes": [3, 4], "sigma": 2.0, "order": 2, "distances": 3},
    "gnmax_sensitivity_conditions": {"sigma": 2.0, "order": 2, "classes": 3},
    "threshold_local_sensitivity": {
        "votes": [3, 4],
        "threshold": 5,
        "sigma": 2.0,
        "order": 2,
        "distances": 3,
    },
    "smooth_sensitivity": {"local_sensitivities": [0.0, 1.0], "beta": 0.1},
    "gnss_rdp": {"order": 2, "beta": 0.1, "scale": 3.0},
    "release_cost": {
        "mechanism": ASK,
        "votes": SEVERAL,
        "delta": 1e-5,
        "answered": [True, False],
        "order": 14,
        "beta": 0.02,
        "scale": 8.0,
        "rng": 0,
    },
}
REFUSED = {
    "partition": {
        "n": [{ValueError: [0, 2, -1]}, NOT_AN_INTEGER],
        "teachers": [{ValueError: [0, -1]}, NOT_AN_INTEGER],
    },
    "count_votes": {
        "predictions": [NOT_CATEGORIES],
        "classes": [{ValueError: [1, 0, 2**40]}, NOT_AN_INTEGER],
    },
    "output_distribution": {
        "votes": [NOT_VOTES, NO_QUERY],
        "scale": SCALE,
        "noise": [NOT_A_WORD, {ValueError: ["Laplace", "normal"]}],
    },
    "lnmax_error_probability": {"votes": [NOT_VOTES], "gamma": SCALE, "method": METHOD},
    "gnmax_log_error_probability": {"votes": [NOT_VOTES], "sigma": SCALE, "method": METHOD},
    "lnmax_rdp": {"votes": [NOT_VOTES], "gamma": SCALE, "orders": ORDERS, "method": METHOD},
    "gumbel_rdp": {"votes": [NOT_VOTES], "scale": SCALE, "orders": ORDERS},
    "gnmax_rdp": {"votes": [NOT_VOTES], "sigma": SCALE, "orders": ORDERS, "method": METHOD},
    "gnmax_local_sensitivity": {
        "votes": [NOT_VOTES],
        "sigma": SCALE,
        "order": ORDER,
        "distances": DISTANCES,
    },
    "gnmax_sensitivity_conditions": {
        "sigma": SCALE,
        "order": ORDER,
        "classes": [{ValueError: [1, 0, 2**40]}, NOT_AN_INTEGER],
    },
    "threshold_local_sensitivity": {
        "votes": [NOT_VOTES],
        "threshold": THRESHOLD,
        "sigma": SCALE,
        "order": ORDER,
        "distances": DISTANCES,
    },
    "smooth_sensitivity": {
        "local_sensitivities": [
            {ValueError: [[], 1.0, [-1.0], [math.nan], [math.inf], [[1.0]], [[1], [1, 2]]]},
            {TypeError: [None, "1", ["1"], [True], [1j]]},
        ],
        "beta": POSITIVE,
    },
    "gnss_rdp": {"order": ORDER, "beta": POSITIVE, "scale": POSITIVE},
    "release_cost": {
        "mechanism": [{TypeError: [None, "confident", pate.GNMax(40), pate.ConfidentGNMax]}],
        "votes": [NOT_VOTES, NO_QUERY],
        "delta": DELTA,
        "answered": ANSWERED,
        "order": unless_left_out(ORDER),
        "beta": unless_left_out([*POSITIVE, {ValueError: [0.04, 1.0]}]),
        "scale": unless_left_out(SCALE),
    },
}


MADE = {
    "LNMax": {"gamma": 0.05},
    "GumbelMax": {"scale": 20.0},
    "GNMax": {"sigma": 40.0},
    "ConfidentGNMax": {"threshold": 200, "sigma_threshold": 150.0, "sigma": 40.0},
}
ANSWERS = [{ValueError: [-1, 10]}, {TypeError: [2.0, "2", True, [2]]}]
METHODS = {
    "answer": {"votes": [3, 240], "rng": 0},
    "output_distribution": {"votes": [3, 240]},
    "cost": {"queries": 9, "delta": 1e-5, "answers": None},
    "rdp": {"votes": SEVERAL, "orders": [2, 3], "answered": None, "method": "bound"},
    "secret_cost": {
        "votes": SEVERAL,
        "delta": 1e-5,
        "orders": [2, 14],
        "conversion": "classic",
        "answered": None,
        "method": "bound",
    },
    "for_cost": {"epsilon": 1.0, "delta": 1e-5, "queries": 9},
}
ALL_ANSWERED = [{ValueError: [True, [True, True], [], "all"]}]
METHODS_REFUSED = {
    "answer": {"votes": [NOT_VOTES, NO_QUERY]},
    "output_distribution": {"votes": [NOT_VOTES, NO_QUERY]},
    "cost": {"queries": QUERIES, "delta": DELTA, "answers": ANSWERS},
    "rdp": {"votes": [NOT_VOTES], "orders": ORDERS, "answered": ALL_ANSWERED, "method": METHOD},
    "secret_cost": {
        "votes": [NOT_VOTES],
        "delta": DELTA,
        "orders": ORDERS,
        "conversion": [NOT_A_WORD, {ValueError: ["2017"]}],
        "answered": ALL_ANSWERED,
        "method": METHOD,
    },
    "for_cost": {"epsilon": POSITIVE, "delta": DELTA, "queries": SOME_QUERIES},
}
# What only the confident one takes, or takes in another way.
CONFIDENT = {"answer": {"answers": 1}, "for_cost": {"answers": 4, "threshold": 200, "ratio": 3.75}}
CONFIDENT_REFUSED = {
    "answer": {"answers": [{ValueError: [-1]}, {TypeError: [2.0, "2", True]}]},
    "for_cost": {
        "answers": [{ValueError: [-1, 10]}, NOT_AN_INTEGER],
        "threshold": THRESHOLD,
        "ratio": [*POSITIVE, {ValueError: [9e-4, 1001]}],
    },
    "rdp": {"answered": ANSWERED},
    "secret_cost": {"answered": ANSWERED},
}

for kind in MADE:
    confident = kind == "ConfidentGNMax"
    WORKING_CALLS[kind] = MADE[kind]
    REFUSED[kind] = {name: THRESHOLD if name == "threshold" else SCALE for name in MADE[kind]}
    for method in METHODS:
        more, refused = (table.get(method, {}) for table in (CONFIDENT, CONFIDENT_REFUSED))
        WORKING_CALLS[f"{kind}.{method}"] = METHODS[method] | (more if confident else {})
        REFUSED[f"{kind}.{method}"] = METHODS_REFUSED[method] | (refused if confident else {})
