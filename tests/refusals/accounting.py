"""What `dpnotes.accounting` refuses."""

import math

from refusals._tables import (
    NOT_A_NUMBER,
    NOT_A_PROBABILITY,
    NOT_A_WORD,
    NOT_AN_INTEGER,
    OUT_OF_RANGE,
    unless_left_out,
)

POSITIVE = [OUT_OF_RANGE, NOT_A_NUMBER]
DELTA = [NOT_A_PROBABILITY]
DELTA_OR_NONE = [{ValueError: [-0.1, 1, 1.1, math.nan, math.inf]}, NOT_A_NUMBER]
AT_LEAST_0 = [{ValueError: [-1, -1e-300, math.nan, math.inf, 10**400]}, NOT_A_NUMBER]
NOT_A_SECRET = [{ValueError: [-1, math.nan]}, NOT_A_NUMBER]
QUERIES = [{ValueError: [-1, 10**30, 10**400]}, NOT_AN_INTEGER]
NOT_ORDERS = {
    ValueError: [[], [[2.0, 3.0]], [1.0], [0.5, 2.0], [math.nan], [math.inf], [[2], [2, 3]]],
    TypeError: [None, "2", ["2"], [True], [None, 2], [1j], {2.0, 3.0}],
}
NOT_DIVERGENCES = {
    ValueError: [[], [1.0], [[0.1, 0.2]], [-0.1, 0.2], [math.nan, 0.2], [[1], [1, 2]]],
    TypeError: [None, "12", ["1", "2"], [True, False], [None, 1], [1j, 2]],
}
NOT_EPSILONS = {
    ValueError: [[[1.0]], [-1.0], [math.nan], [math.inf], [1e308, 1e308], [[1], [1, 2]]],
    TypeError: [None, "1", ["1"], [True], [None, 1], [1j], {1.0, 2.0}],
}
RDP = {"rdp": [0.1, 0.2], "orders": [2.0, 3.0], "delta": 1e-5, "conversion": "classic"}
RDP_REFUSED = {
    "rdp": [NOT_DIVERGENCES],
    "orders": [NOT_ORDERS],
    "delta": DELTA,
    "conversion": [NOT_A_WORD],
}

WORKING_CALLS = {
    "compose": {"epsilons": [0.1, 0.2], "delta": 1e-5},
    "compose_bounded_range": {"epsilon": 0.5, "queries": 3, "delta": 1e-5, "adaptive": True},
    "compose_gaussian": {"sigma": 2.0, "queries": 3, "delta": 1e-5},
    "compose_laplace": {"scale": 2.0, "queries": 3, "delta": 1e-5, "sensitivity": 1.0},
    "compose_subsampled_gaussian": {
        "sigma": 2.0,
        "probability": 0.1,
        "steps": 3,
        "delta": 1e-5,
        "neighbours": "replaced",
    },
    "gaussian_cost": {"mu": 1.0, "delta": 1e-5},
    "epsilon_from_rdp": RDP,
    "best_epsilon": RDP,
    "epsilon_from_zcdp": {"rho": 0.1, "delta": 1e-5},
    "laplace_rdp": {"loss": 0.5, "orders": [2.0, 3.0]},
    "check_orders": {"orders": [2.0, 3.0], "above": 1.0},
    "PrivacyCost": {"epsilon": 1.0, "delta": 1e-5},
    "SecretCost": {"epsilon": 1.0, "delta": 1e-5, "order": 20.0, "answered": 100.0},
}
REFUSED = {
    "compose": {"epsilons": [NOT_EPSILONS], "delta": DELTA_OR_NONE},
    "compose_bounded_range": {
        "epsilon": POSITIVE,
        "queries": QUERIES,
        "delta": DELTA,
        "adaptive": [{TypeError: [1, 0.0, None, "yes"]}],
    },
    "compose_gaussian": {"sigma": POSITIVE, "queries": QUERIES, "delta": DELTA},
    "compose_laplace": {
        "scale": POSITIVE,
        "queries": QUERIES,
        "delta": DELTA,
        "sensitivity": POSITIVE,
    },
    "compose_subsampled_gaussian": {
        "sigma": [*POSITIVE, {ValueError: [0.009]}],
        "probability": DELTA,
        "steps": QUERIES,
        "delta": [*DELTA, {ValueError: [9e-11]}],
        "neighbours": [NOT_A_WORD],
    },
    "gaussian_cost": {"mu": AT_LEAST_0, "delta": DELTA},
    "epsilon_from_rdp": RDP_REFUSED,
    "best_epsilon": RDP_REFUSED,
    "epsilon_from_zcdp": {"rho": AT_LEAST_0, "delta": DELTA},
    "laplace_rdp": {"loss": POSITIVE, "orders": [NOT_ORDERS]},
    "check_orders": {"orders": [NOT_ORDERS], "above": AT_LEAST_0},
    "PrivacyCost": {"epsilon": NOT_A_SECRET, "delta": DELTA_OR_NONE},
    "SecretCost": {
        "epsilon": NOT_A_SECRET,
        "delta": DELTA_OR_NONE,
        "order": unless_left_out(POSITIVE),
        "answered": [{ValueError: [-1, -0.5]}, NOT_A_NUMBER],
    },
}
