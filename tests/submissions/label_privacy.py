"""The register of diagnoses: a column of labels, rows of labels, and what they are worth."""

from submissions import Wrong

BY_WEIGHTS = """
def kept_probability(parameter, k):
    weights = [np.exp(parameter / 2)] + [1.0] * (k - 1)
    return weights[0] / sum(weights)
"""
ANY_CLASS = """
def draw_column(labels, k, parameter, rng):
    p = kept_probability(parameter, k)
    redrawn = rng.random(len(labels)) < k * (1 - p) / (k - 1)
    return np.where(redrawn, rng.integers(k, size=len(labels)), labels)
"""
BY_BAYES = """
def reported(ill, epsilon):
    odds = ill / (1 - ill)
    more, less = odds * np.exp(epsilon), odds * np.exp(-epsilon)
    return [more / (1 + more), less / (1 + less)]
"""
BY_CLASSES = """
def budget(patients, ill, diseases, failure):
    plus, minus = patients * ill, patients * (1 - ill)
    z = -NormalDist().inv_cdf(failure)
    return diseases * z * (1 / plus + 1 / minus) ** 0.5
"""

NOT_HALVED = """
def kept_probability(parameter, k):
    return np.exp(parameter) / (np.exp(parameter) + k - 1)
"""
MAY_STAY = """
def draw_column(labels, k, parameter, rng):
    is_changed = rng.random(len(labels)) >= kept_probability(parameter, k)
    return np.where(is_changed, rng.integers(0, k, len(labels)), labels)
"""
ONE_COIN = """
def draw_column(labels, k, parameter, rng):
    labels = np.asarray(labels)
    if rng.random() < kept_probability(parameter, k):
        return labels
    return (labels + rng.integers(1, k, len(labels))) % k
"""
SHARED_BY_ALL = """
def privatize_rows(labels, epsilon, rng):
    labels = np.asarray(labels)
    keeps = 1 / (1 + np.exp(-epsilon / labels.size))
    return np.where(rng.random(labels.shape) < keeps, labels, -labels)
"""
NO_BASE_RATE = """
def reported(ill, epsilon):
    p = 1 / (1 + np.exp(-epsilon))
    return p, 1 - p
"""
ONE_LABEL = """
def budget(patients, ill, diseases, failure):
    return 2 * NormalDist().inv_cdf(1 - failure) / np.sqrt(4 * patients * ill * (1 - ill))
"""

SECRETS = ["np.exp("]
CHANGED = {"parameter": 1.0, "epsilon": 1.0, "classes": 4}

RIGHT = {
    "the solution": {},
    "any class, and odds": {
        "kept_probability": BY_WEIGHTS,
        "draw_column": ANY_CLASS,
        "reported": BY_BAYES,
        "budget": BY_CLASSES,
    },
}
# Tasks: 0 kept_probability, 1 draw_column (one label), 2 draw_column (three), 3 privatize_rows,
# 4 reported, 5 budget.
WRONG = {
    "the whole parameter in a label": Wrong(
        {"kept_probability": NOT_HALVED}, 6, 0, "answer", "at the whole parameter"
    ),
    "a label that stays": Wrong({"draw_column": MAY_STAY}, 8, 1, "privacy", "as it was"),
    "one coin for all labels": Wrong({"draw_column": ONE_COIN}, 10, 2, "privacy", "share one coin"),
    "a budget that all labels share": Wrong(
        {"privatize_rows": SHARED_BY_ALL}, 10, 3, "distribution", "too much noise"
    ),
    "no base rate": Wrong({"reported": NO_BASE_RATE}, 10, 4, "answer", "many well people"),
    "one label to a patient": Wrong({"budget": ONE_LABEL}, 10, 5, "answer", "one label"),
}
