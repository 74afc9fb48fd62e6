"""The register of diagnoses: a column of labels, rows of labels, and what they are worth."""

from submissions import Wrong

BY_WEIGHTS = """
def kept_probability(parameter, k):
    weights = [np.exp(parameter / 2)] + [1.0] * (k - 1)
    return weights[0] / sum(weights)
"""
ALL_COLUMNS = """
def draw_column(labels, k, parameter, rng):
    columns = np.stack(np.meshgrid(*[range(k)] * len(labels)), axis=-1).reshape(-1, len(labels))
    weights = np.exp(parameter / 2 * (columns == labels).sum(axis=1))
    return columns[rng.choice(len(columns), p=weights / weights.sum())]
"""
SCORE_FIRST = """
def draw_column(labels, k, parameter, rng):
    n = len(labels)
    kept = rng.permutation(n)[: rng.binomial(n, kept_probability(parameter, k))]
    column = []
    for place, label in enumerate(labels):
        others = [c for c in range(k) if c != label]
        column.append(label if place in kept else others[rng.integers(k - 1)])
    return column
"""
ANY_CLASS = """
def draw_column(labels, k, parameter, rng):
    p = kept_probability(parameter, k)
    redrawn = rng.random(len(labels)) < k * (1 - p) / (k - 1)
    return np.where(redrawn, rng.integers(k, size=len(labels)), labels)
"""
LOOPED_ROWS = """
def privatize_rows(labels, epsilon, rng):
    told = []
    for row in labels:
        part = epsilon / len(row)
        keeps = np.exp(part) / (1 + np.exp(part))
        told.append([label if rng.random() < keeps else -label for label in row])
    return told
"""
SIGNS = """
def privatize_rows(labels, epsilon, rng):
    n, m = np.shape(labels)
    flip = 1 / (np.exp(epsilon / m) + 1)
    return np.array(labels) * rng.choice([-1, 1], size=(n, m), p=[flip, 1 - flip])
"""
OF_TWO_TYPES = """
def draw_column(labels, k, parameter, rng):
    p, column = kept_probability(parameter, k), []
    for label in labels:
        others = [c for c in range(k) if c != label]
        column.append(label if rng.random() < p else rng.choice(others))
    return column
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
TWO_CLASSES = """
def kept_probability(parameter, k):
    return 1 / (1 + np.exp(-parameter / 2))
"""
HALVED_TWICE = """
def draw_column(labels, k, parameter, rng):
    labels = np.asarray(labels)
    is_changed = rng.random(len(labels)) >= kept_probability(parameter / 2, k)
    return np.where(is_changed, (labels + rng.integers(1, k, len(labels))) % k, labels)
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
FIRST_ONES = """
def draw_column(labels, k, parameter, rng):
    labels = np.asarray(labels)
    n = len(labels)
    score = rng.binomial(n, kept_probability(parameter, k))
    changed = (labels + rng.integers(1, k, n)) % k
    return np.where(np.arange(n) < score, labels, changed)
"""
RARELY_CHANGED = """
def draw_column(labels, k, parameter, rng):
    labels = np.asarray(labels)
    is_changed = rng.random(len(labels)) < 0.01
    return np.where(is_changed, (labels + rng.integers(1, k, len(labels))) % k, labels)
"""
WHOLE_EACH = """
def privatize_rows(labels, epsilon, rng):
    labels = np.asarray(labels)
    keeps = 1 / (1 + np.exp(-epsilon))
    return np.where(rng.random(labels.shape) < keeps, labels, -labels)
"""
COIN_FOR_EACH_PATIENT = """
def privatize_rows(labels, epsilon, rng):
    labels = np.asarray(labels)
    keeps = 1 / (1 + np.exp(-epsilon))
    return np.where(rng.random((len(labels), 1)) < keeps, labels, -labels)
"""
COIN_FOR_EACH_DISEASE = """
def privatize_rows(labels, epsilon, rng):
    labels = np.asarray(labels)
    keeps = 1 / (1 + np.exp(-epsilon / labels.shape[1]))
    return np.where(rng.random(labels.shape[1]) < keeps, labels, -labels)
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
ALL_PATIENTS = """
def budget(patients, ill, diseases, failure):
    return diseases * 2 * NormalDist().inv_cdf(1 - failure) / np.sqrt(patients)
"""

SECRETS = ["np.exp("]
CHANGED = {"parameter": 1.0, "epsilon": 1.0, "classes": 4}

RIGHT = {
    "the solution": {},
    "all columns, and signs": {"draw_column": ALL_COLUMNS, "privatize_rows": SIGNS},
    "the score first, and loops": {"draw_column": SCORE_FIRST, "privatize_rows": LOOPED_ROWS},
    "numbers of two types": {"draw_column": OF_TWO_TYPES},
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
    "two classes": Wrong({"kept_probability": TWO_CLASSES}, 6, 0, "answer", "for two classes"),
    "halved twice": Wrong({"draw_column": HALVED_TWICE}, 8, 1, "distribution", "halved twice"),
    "a label that stays": Wrong({"draw_column": MAY_STAY}, 8, 1, "privacy", "as it was"),
    "one coin for all labels": Wrong({"draw_column": ONE_COIN}, 10, 2, "privacy", "share one coin"),
    "the first labels": Wrong({"draw_column": FIRST_ONES}, 10, 2, "privacy", "the first ones"),
    "rarely changed": Wrong({"draw_column": RARELY_CHANGED}, 8, 1, "privacy", "Check kept"),
    "all of epsilon for each label": Wrong(
        {"privatize_rows": WHOLE_EACH}, 10, 3, "privacy", "their costs add up"
    ),
    "a coin for each patient": Wrong(
        {"privatize_rows": COIN_FOR_EACH_PATIENT}, 10, 3, "privacy", "are alike"
    ),
    "a coin for each disease": Wrong(
        {"privatize_rows": COIN_FOR_EACH_DISEASE}, 10, 3, "privacy", "All patients share"
    ),
    "a budget that all labels share": Wrong(
        {"privatize_rows": SHARED_BY_ALL}, 10, 3, "distribution", "too much noise"
    ),
    "no base rate": Wrong({"reported": NO_BASE_RATE}, 10, 4, "answer", "many well people"),
    "one label to a patient": Wrong({"budget": ONE_LABEL}, 10, 5, "answer", "one label"),
    "all patients": Wrong({"budget": ALL_PATIENTS}, 10, 5, "answer", "Put in n_eff"),
}
