"""The clinics vote: one noisy winner, many of them for one budget, and how wide a majority."""

from submissions import Wrong

LOOP = """
def answer_one(said, classes, epsilon, rng):
    counts = [0] * classes
    for label in said:
        counts[label] += 1
    noisy = [count + rng.gumbel(0, 2 / epsilon) for count in counts]
    return noisy.index(max(noisy))
"""
LOG_SUM = """
def answer_distribution(votes, scale):
    logs = [n / scale for n in votes]
    top = max(logs)
    return [np.exp(x - top) / sum(np.exp(y - top) for y in logs) for x in logs]
"""

ONE_COUNT = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.gumbel(0, 1 / epsilon, classes)))
"""
TOP_ONLY = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes).astype(float)
    votes[votes.argmax()] += rng.gumbel(0, 2 / epsilon)
    return int(np.argmax(votes))
"""
WHOLE_EPSILON_EACH = """
def answer_all(said, classes, epsilon, rng):
    return [answer_one(question, classes, epsilon, rng) for question in np.transpose(said)]
"""
NOT_SHIFTED = """
def answer_distribution(votes, scale):
    weights = np.exp(np.asarray(votes) / scale)
    return weights / weights.sum()
"""
ADDED_UP_ONLY = """
def queries_allowed(epsilon, delta, scale):
    return int(epsilon * scale / 2)
"""
TWO_LABELS = """
def majority_needed(teachers, classes, scale, chance):
    gap = scale * np.log(chance / (1 - chance))
    votes = int(np.ceil((teachers + gap) / 2))
    return votes if votes <= teachers else None
"""

SECRETS = ["rng.gumbel(0, 2 / epsilon", "epsilon / len", "convex"]
CHANGED = {"epsilon": 0.5, "classes": 4, "queries": 4}

RIGHT = {
    "the solution": {},
    "a loop over the teachers": {"answer_one": LOOP, "answer_distribution": LOG_SUM},
}
# Tasks: 0 answer_distribution, 1 answer_one (three teachers), 2 answer_one (many), 3 answer_all,
# 4 queries_allowed, 5 majority_needed.
WRONG = {
    "one count moves": Wrong({"answer_one": ONE_COUNT}, 6, 2, "distribution", "moves two"),
    "noise for the largest only": Wrong({"answer_one": TOP_ONLY}, 6, 1, "privacy", "every count"),
    "the whole epsilon for each answer": Wrong(
        {"answer_all": WHOLE_EPSILON_EACH}, 10, 3, "privacy", "costs the whole epsilon"
    ),
    "weights that overflow": Wrong(
        {"answer_distribution": NOT_SHIFTED}, 10, 0, "answer", "subtract the largest count"
    ),
    "the sum alone": Wrong({"queries_allowed": ADDED_UP_ONLY}, 10, 4, "answer", "the sum allows"),
    "two labels only": Wrong({"majority_needed": TWO_LABELS}, 10, 5, "answer", "without any vote"),
}
