"""The survey: randomized response over k answers."""

from submissions import Wrong

LOOP = """
def privatize(values, epsilon, k, rng):
    reports = []
    for value in values:
        if rng.random() < keep_probability(epsilon, k):
            reports.append(value)
        else:
            reports.append([other for other in range(k) if other != value][rng.integers(k - 1)])
    return reports
"""
CHOICE = """
def privatize(values, epsilon, k, rng):
    table = output_distribution(epsilon, k)
    return np.array([rng.choice(k, p=table[value]) for value in values])
"""
CUMULATED = """
def privatize(values, epsilon, k, rng):
    borders = output_distribution(epsilon, k).cumsum(axis=1)[:, :-1]
    return (rng.random(len(values))[:, None] >= borders[np.asarray(values)]).sum(axis=1)
"""
SHIFTED = """
def privatize(values, epsilon, k, rng):
    p = keep_probability(epsilon, k)
    steps = rng.choice(k, size=len(values), p=[p] + [(1 - p) / (k - 1)] * (k - 1))
    return (np.array(values) + steps) % k
"""
ANY_OF_ALL = """
def privatize(values, epsilon, k, rng):
    p = keep_probability(epsilon, k)
    asked = rng.random(len(values)) < p - (1 - p) / (k - 1)
    return np.where(asked, values, rng.integers(k, size=len(values)))
"""

LIE_MAY_BE_TRUE = """
def privatize(values, epsilon, k, rng):
    lies = rng.random(len(values)) >= keep_probability(epsilon, k)
    return np.where(lies, rng.integers(0, k, len(values)), values)
"""
NEXT_ANSWER = """
def privatize(values, epsilon, k, rng):
    lies = rng.random(len(values)) >= keep_probability(epsilon, k)
    return np.where(lies, (np.asarray(values) + 1) % k, values)
"""
OWN_SEED = """
def privatize(values, epsilon, k, rng):
    rng = np.random.default_rng(0)
    lies = rng.random(len(values)) >= keep_probability(epsilon, k)
    return np.where(lies, (np.asarray(values) + rng.integers(1, k, len(values))) % k, values)
"""
GLOBAL_GENERATOR = """
def privatize(values, epsilon, k, rng):
    lies = np.random.random(len(values)) >= keep_probability(epsilon, k)
    steps = np.random.randint(1, k, len(values))
    return np.where(lies, (np.asarray(values) + steps) % k, values)
"""
HALF_EPSILON = """
def privatize(values, epsilon, k, rng):
    lies = rng.random(len(values)) >= keep_probability(epsilon / 2, k)
    return np.where(lies, (np.asarray(values) + rng.integers(1, k, len(values))) % k, values)
"""
ONE_COIN = """
def privatize(values, epsilon, k, rng):
    if rng.random() < keep_probability(epsilon, k):
        return np.asarray(values)
    return (np.asarray(values) + rng.integers(1, k, len(values))) % k
"""
TRUTH = """
def privatize(values, epsilon, k, rng):
    return np.asarray(values)
"""
ONE_REPORT = """
def privatize(values, epsilon, k, rng):
    return values[0] if rng.random() < keep_probability(epsilon, k) else rng.integers(k)
"""
TWO_ANSWERS = """
def keep_probability(epsilon, k):
    return np.exp(epsilon) / (np.exp(epsilon) + 1)
"""
LIE_PROBABILITY = """
def keep_probability(epsilon, k):
    return (k - 1) / (np.exp(epsilon) + k - 1)
"""
DIVIDED_BY_K = """
def output_distribution(epsilon, k):
    p = keep_probability(epsilon, k)
    return np.full((k, k), (1 - p) / k) + np.diag([p - (1 - p) / k] * k)
"""
TRANSPOSED_LIES = """
def output_distribution(epsilon, k):
    p = keep_probability(epsilon, k)
    return np.full((k, k), p) + np.diag([(1 - p) / (k - 1) - p] * k)
"""
COUNTS = """
def estimate(reports, epsilon, k):
    return np.bincount(reports, minlength=k)
"""
NOT_SCALED = """
def estimate(reports, epsilon, k):
    q = (1 - keep_probability(epsilon, k)) / (k - 1)
    return np.bincount(reports, minlength=k) - len(reports) * q
"""
CLIPPED = """
def estimate(reports, epsilon, k):
    p = keep_probability(epsilon, k)
    q = (1 - p) / (k - 1)
    counts = np.bincount(reports, minlength=k)
    return np.maximum((counts - len(reports) * q) / (p - q), 0)
"""
ASKED_AT_HALF = """
def survey(values, epsilon, k, rng):
    return estimate(privatize(values, epsilon / 2, k, rng), epsilon / 2, k)
"""
NO_LIES = """
def survey(values, epsilon, k, rng):
    return np.bincount(values, minlength=k).astype(float)
"""
TRUE_COUNTS_TINY_NOISE = """
def survey(values, epsilon, k, rng):
    return np.bincount(values, minlength=k) + rng.normal(0, 1e-3, k)
"""
TRUE_COUNTS_IN_A_CROWD = """
def survey(values, epsilon, k, rng):
    if len(values) > 100:
        return np.bincount(values, minlength=k) + rng.normal(0, 1e-3, k)
    return estimate(privatize(values, epsilon, k, rng), epsilon, k)
"""
LAPLACE_ON_COUNTS = """
def survey(values, epsilon, k, rng):
    return np.bincount(values, minlength=k) + rng.laplace(0, 2 / epsilon, k)
"""
ASKED_TWICE = """
def survey(values, epsilon, k, rng):
    first, second = (privatize(values, epsilon, k, rng) for _ in range(2))
    return (estimate(first, epsilon, k) + estimate(second, epsilon, k)) / 2
"""

SECRETS = ["np.exp"]
CHANGED = {"epsilon": 0.5, "categories": 4}

RIGHT = {
    "the solution": {},
    "a loop and a list": {"privatize": LOOP},
    "a choice by the table": {"privatize": CHOICE},
    "borders of a uniform number": {"privatize": CUMULATED},
    "a step of 0 to k - 1": {"privatize": SHIFTED},
    "any answer, more rarely": {"privatize": ANY_OF_ALL},
}
# Tasks: 0 keep_probability, 1 output_distribution, 2 privatize (one person), 3 privatize (three),
# 4 estimate, 5 survey.
WRONG = {
    "a lie may come out true": Wrong(
        {"privatize": LIE_MAY_BE_TRUE}, 6, 2, "privacy", "must not come out true"
    ),
    "the probability for two answers": Wrong(
        {"keep_probability": TWO_ANSWERS}, 0, 0, "answer", "for two answers"
    ),
    "the probability of a lie": Wrong(
        {"keep_probability": LIE_PROBABILITY}, 0, 0, "answer", "probability of a lie"
    ),
    "the lies divided by k": Wrong(
        {"output_distribution": DIVIDED_BY_K}, 10, 1, "answer", "not probabilities that sum"
    ),
    "the diagonal and the rest exchanged": Wrong(
        {"output_distribution": TRANSPOSED_LIES}, 10, 1, "answer", "once, on the diagonal"
    ),
    "the next answer": Wrong(
        {"privatize": NEXT_ANSWER}, 6, 2, "privacy", "always says the next answer"
    ),
    "a seed of its own": Wrong({"privatize": OWN_SEED}, 6, 2, "rng", "a generator made inside"),
    "numpy's global generator": Wrong(
        {"privatize": GLOBAL_GENERATOR}, 6, 2, "rng", "one and the same seed"
    ),
    "half of epsilon": Wrong({"privatize": HALF_EPSILON}, 6, 2, "distribution", "half of epsilon"),
    "one coin for everybody": Wrong({"privatize": ONE_COIN}, 8, 3, "privacy", "share one coin"),
    "the truth": Wrong({"privatize": TRUTH}, 6, 2, "rng", "in all"),
    "one report for all": Wrong({"privatize": ONE_REPORT}, 6, 2, "shape", "its shape is ()"),
    "raw counts": Wrong({"estimate": COUNTS}, 8, 4, "answer", "counts of the reports"),
    "lies off, not scaled": Wrong({"estimate": NOT_SCALED}, 8, 4, "answer", "not scaled back"),
    "clipped": Wrong({"estimate": CLIPPED}, 8, 4, "answer", "Do not clip"),
    "asked at half of epsilon": Wrong(
        {"survey": ASKED_AT_HALF}, 10, 5, "usefulness", "the same epsilon"
    ),
    "nobody lies": Wrong({"survey": NO_LIES}, 10, 5, "rng", "lie about every answer"),
    "true counts with tiny noise": Wrong(
        {"survey": TRUE_COUNTS_TINY_NOISE}, 10, 5, "privacy", "reads the last one off"
    ),
    "true counts of a crowd": Wrong(
        {"survey": TRUE_COUNTS_IN_A_CROWD}, 10, 5, "privacy", "reads the last one off"
    ),
    "Laplace noise on the true counts": Wrong(
        {"survey": LAPLACE_ON_COUNTS}, 10, 5, "usefulness", "in place of the lies"
    ),
    "everybody is asked twice": Wrong(
        {"survey": ASKED_TWICE}, 10, 5, "usefulness", "nobody is asked twice"
    ),
}
