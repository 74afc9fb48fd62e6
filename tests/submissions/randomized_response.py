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

LIE_MAY_BE_TRUE = """
def privatize(values, epsilon, k, rng):
    lies = rng.random(len(values)) >= keep_probability(epsilon, k)
    return np.where(lies, rng.integers(0, k, len(values)), values)
"""
ONE_COIN = """
def privatize(values, epsilon, k, rng):
    if rng.random() < keep_probability(epsilon, k):
        return np.asarray(values)
    return (np.asarray(values) + rng.integers(1, k, len(values))) % k
"""
TWO_ANSWERS = """
def keep_probability(epsilon, k):
    return np.exp(epsilon) / (np.exp(epsilon) + 1)
"""
DIVIDED_BY_K = """
def output_distribution(epsilon, k):
    p = keep_probability(epsilon, k)
    return np.full((k, k), (1 - p) / k) + np.diag([p - (1 - p) / k] * k)
"""
COUNTS = """
def estimate(reports, epsilon, k):
    return np.bincount(reports, minlength=k)
"""
NO_LIES = """
def survey(values, epsilon, k, rng):
    return np.bincount(values, minlength=k).astype(float)
"""

SECRETS = ["np.exp"]
CHANGED = {"epsilon": 0.5, "categories": 4}

RIGHT = {
    "the solution": {},
    "a loop and a list": {"privatize": LOOP},
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
    "the lies divided by k": Wrong(
        {"output_distribution": DIVIDED_BY_K}, 10, 1, "answer", "not probabilities that sum"
    ),
    "one coin for everybody": Wrong({"privatize": ONE_COIN}, 8, 3, "privacy", "share one coin"),
    "raw counts": Wrong({"estimate": COUNTS}, 8, 4, "answer", "counts of the reports"),
    "nobody lies": Wrong({"survey": NO_LIES}, 10, 5, "rng", "lie about every answer"),
}
