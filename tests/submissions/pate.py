"""The clinics vote: one noisy winner, many of them for one budget, and how wide a majority."""

from submissions import Wrong

CHOICE = """
def answer_one(said, classes, epsilon, rng):
    counts = [list(said).count(label) for label in range(classes)]
    return rng.choice(classes, p=answer_distribution(counts, 2 / epsilon))
"""
LOOP = """
def answer_one(said, classes, epsilon, rng):
    counts = [0] * classes
    for label in said:
        counts[label] += 1
    noisy = [count + rng.gumbel(0, 2 / epsilon) for count in counts]
    return noisy.index(max(noisy))
"""
CUMULATED = """
def answer_one(said, classes, epsilon, rng):
    counts = np.zeros(classes)
    np.add.at(counts, said, 1)
    weights = np.exp(epsilon * (counts - counts.max()) / 2)
    return np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())
"""
RACE = """
def answer_one(said, classes, epsilon, rng):
    counts = np.bincount(said, minlength=classes)
    times = rng.exponential(size=classes) / answer_distribution(counts, 2 / epsilon)
    return int(times.argmin())
"""
ALL_AT_ONCE = """
def answer_all(said, classes, epsilon, rng):
    said = np.array(said)
    counts = (said[:, :, None] == np.arange(classes)).sum(axis=0)
    scale = 2 * said.shape[1] / epsilon
    return (counts + rng.gumbel(0, scale, counts.shape)).argmax(axis=1)
"""
LOG_SUM = """
def answer_distribution(votes, scale):
    logs = [n / scale for n in votes]
    top = max(logs)
    return [np.exp(x - top) / sum(np.exp(y - top) for y in logs) for x in logs]
"""
SOLVED = """
def majority_needed(teachers, classes, scale, chance):
    odds = chance / (1 - chance)
    for votes in range(teachers + 1):
        against = (teachers - 2 * votes) / scale
        if odds * (np.exp(against) + (classes - 2) * np.exp(-votes / scale)) <= 1:
            return votes
"""
BACKWARDS = """
def queries_allowed(epsilon, delta, scale):
    queries = int(epsilon * scale / 2)
    if delta == 0:
        return queries
    g, log_d = 1 / scale, np.log(1 / delta)
    # g^2 x^2 / 2 + g sqrt(2 log_d) x = epsilon, for the root x of the number.
    root = (np.sqrt(2 * log_d + 2 * epsilon) - np.sqrt(2 * log_d)) / g
    return max(queries, int(root**2))
"""

ONE_COUNT = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.gumbel(0, 1 / epsilon, classes)))
"""
HALF_EPSILON = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.gumbel(0, 4 / epsilon, classes)))
"""
LAPLACE = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.laplace(0, 2 / epsilon, classes)))
"""
WITHOUT_THE_OTHERS = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said)
    return int(np.argmax(votes + rng.gumbel(0, 2 / epsilon, len(votes))))
"""
TOP_ONLY = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes).astype(float)
    votes[votes.argmax()] += rng.gumbel(0, 2 / epsilon)
    return int(np.argmax(votes))
"""
UNTIL_IT_FITS = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    for _ in range(3):
        label = int(np.argmax(votes + rng.gumbel(0, 2 / epsilon, classes)))
        if label == votes.argmax():
            break
    return label
"""
TRUTH = """
def answer_one(said, classes, epsilon, rng):
    return int(np.bincount(said, minlength=classes).argmax())
"""
TINY_NOISE = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.gumbel(0, 0.1, classes)))
"""
NOISE_WHERE_THEY_ARE_FEW = """
def answer_one(said, classes, epsilon, rng):
    votes = np.bincount(said, minlength=classes)
    if len(said) > 10:
        return int(votes.argmax())
    return int(np.argmax(votes + rng.gumbel(0, 2 / epsilon, classes)))
"""
OWN_SEED = """
def answer_one(said, classes, epsilon, rng):
    rng = np.random.default_rng(42)
    votes = np.bincount(said, minlength=classes)
    return int(np.argmax(votes + rng.gumbel(0, 2 / epsilon, classes)))
"""
WHOLE_EPSILON_EACH = """
def answer_all(said, classes, epsilon, rng):
    return [answer_one(question, classes, epsilon, rng) for question in np.transpose(said)]
"""
ROOT_OF_T = """
def answer_all(said, classes, epsilon, rng):
    questions = np.transpose(said)
    each = epsilon / np.sqrt(len(questions))
    return [answer_one(question, classes, each, rng) for question in questions]
"""
ONE_NOISE = """
def answer_all(said, classes, epsilon, rng):
    questions = np.transpose(said)
    noise = rng.gumbel(0, 2 * len(questions) / epsilon, classes)
    return [int(np.argmax(np.bincount(q, minlength=classes) + noise)) for q in questions]
"""
REMEMBERED = """
def answer_all(said, classes, epsilon, rng):
    questions, known = [tuple(q) for q in np.transpose(said).tolist()], {}
    for q in questions:
        if q not in known:
            known[q] = answer_one(q, classes, epsilon / len(questions), rng)
    return [known[q] for q in questions]
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
FORMULA_ONLY = """
def queries_allowed(epsilon, delta, scale):
    if delta == 0:
        return int(epsilon * scale / 2)
    queries = 0
    while (queries + 1) / scale**2 / 2 + np.sqrt(
        2 * (queries + 1) * np.log(1 / delta)
    ) / scale <= epsilon:
        queries += 1
    return queries
"""
TWO_LABELS = """
def majority_needed(teachers, classes, scale, chance):
    gap = scale * np.log(chance / (1 - chance))
    votes = int(np.ceil((teachers + gap) / 2))
    return votes if votes <= teachers else None
"""
DIVIDED = """
def majority_needed(teachers, classes, scale, chance):
    for votes in range(teachers + 1):
        left, labels = teachers - votes, classes - 1
        counts = [votes] + [left // labels + (j < left % labels) for j in range(labels)]
        if answer_distribution(counts, scale)[0] >= chance:
            return votes
"""

SECRETS = ["rng.gumbel(0, 2 / epsilon", "epsilon / len", "convex"]
CHANGED = {"epsilon": 0.5, "classes": 4, "queries": 4}

RIGHT = {
    "the solution": {},
    "a choice by the table": {"answer_one": CHOICE},
    "a loop over the teachers": {"answer_one": LOOP, "answer_distribution": LOG_SUM},
    "borders of a uniform number": {"answer_one": CUMULATED, "majority_needed": SOLVED},
    "exponential clocks": {"answer_one": RACE, "queries_allowed": BACKWARDS},
    "all questions at once": {"answer_all": ALL_AT_ONCE},
}
# Tasks: 0 answer_distribution, 1 answer_one (three teachers), 2 answer_one (many), 3 answer_all,
# 4 queries_allowed, 5 majority_needed.
WRONG = {
    "one count moves": Wrong({"answer_one": ONE_COUNT}, 6, 2, "distribution", "moves two"),
    "half of epsilon": Wrong({"answer_one": HALF_EPSILON}, 6, 1, "distribution", "half of epsilon"),
    "Laplace noise": Wrong({"answer_one": LAPLACE}, 10, 2, "distribution", "use rng.gumbel"),
    "labels that nobody says": Wrong(
        {"answer_one": WITHOUT_THE_OTHERS}, 8, 1, "rng", "minlength=classes"
    ),
    "noise for the largest only": Wrong({"answer_one": TOP_ONLY}, 6, 1, "privacy", "every count"),
    "drawn until it fits": Wrong({"answer_one": UNTIL_IT_FITS}, 6, 1, "privacy", "draw once"),
    "the truth": Wrong({"answer_one": TRUTH}, 6, 1, "rng", "every one of the counts"),
    "tiny noise": Wrong({"answer_one": TINY_NOISE}, 6, 1, "rng", "every one of the counts"),
    "noise for a few teachers only": Wrong(
        {"answer_one": NOISE_WHERE_THEY_ARE_FEW}, 8, 2, "rng", "every one of the counts"
    ),
    "a seed of its own": Wrong({"answer_one": OWN_SEED}, 6, 1, "rng", "Draw from the rng"),
    "the whole epsilon for each answer": Wrong(
        {"answer_all": WHOLE_EPSILON_EACH}, 10, 3, "privacy", "costs the whole epsilon"
    ),
    "the root of T": Wrong({"answer_all": ROOT_OF_T}, 10, 3, "distribution", "needs a delta"),
    "one noise for all questions": Wrong(
        {"answer_all": ONE_NOISE}, 10, 3, "privacy", "draw fresh noise"
    ),
    "an answer that is remembered": Wrong(
        {"answer_all": REMEMBERED}, 10, 3, "privacy", "fresh noise"
    ),
    "weights that overflow": Wrong(
        {"answer_distribution": NOT_SHIFTED}, 10, 0, "answer", "subtract the largest count"
    ),
    "the sum alone": Wrong({"queries_allowed": ADDED_UP_ONLY}, 10, 4, "answer", "the sum allows"),
    "the formula alone": Wrong(
        {"queries_allowed": FORMULA_ONLY}, 10, 4, "answer", "the sum is the smaller"
    ),
    "two labels only": Wrong({"majority_needed": TWO_LABELS}, 10, 5, "answer", "without any vote"),
    "the others divided": Wrong({"majority_needed": DIVIDED}, 10, 5, "answer", "the best case"),
}
