"""The form with boxes to tick: unary encoding, with several ones to a row."""

from submissions import Wrong

LOOPED_COST = """
def row_cost(first, second, p, q):
    forward, back = 0.0, 0.0
    for a, b in zip(first, second):
        ratios = [p / q, (1 - p) / (1 - q)] if a > b else [q / p, (1 - q) / (1 - p)]
        if a != b:
            forward += np.log(max(ratios))
            back += np.log(max(1 / ratio for ratio in ratios))
    return max(forward, back)
"""
ENUMERATED_COST = """
def row_cost(first, second, p, q):
    numbers = np.arange(2 ** len(first))[:, None] >> np.arange(len(first)) & 1
    def chances(row):
        ones = np.where(row, p, q)
        return np.where(numbers, ones, 1 - ones).prod(axis=1)
    return np.abs(np.log(chances(first) / chances(second))).max()
"""
BY_ODDS = """
def probabilities(epsilon, most):
    odds = np.exp(-epsilon / most)
    return [1 / 2, odds / (1 + odds)]
"""
SEARCHED = """
def probabilities(epsilon, most):
    p = np.linspace(0.01, 0.99, 981)[:, None]
    odds = p / (1 - p) / np.exp(epsilon / most)
    q = odds / (1 + odds)
    best = np.argmin(q * (1 - q) / (p - q) ** 2)
    return p[best, 0], q[best, 0]
"""
LOOP = """
def report(ticks, k, epsilon, most, rng):
    p, q = probabilities(epsilon, most)
    bits = []
    for box in range(k):
        bits.append(1 if rng.random() < (p if box in ticks else q) else 0)
    return bits
"""
FLIPS = """
def report(ticks, k, epsilon, most, rng):
    p, q = probabilities(epsilon, most)
    row = np.zeros(k, dtype=bool)
    row[list(ticks)] = True
    return row ^ (rng.random(k) < np.where(row, 1 - p, q))
"""
BINOMIAL = """
def report(ticks, k, epsilon, most, rng):
    chances = np.full(k, probabilities(epsilon, most)[1])
    chances[list(ticks)] = 0.5
    return rng.binomial(1, chances)
"""
COLUMN_BY_COLUMN = """
def count_ticks(reports, epsilon, most):
    p, q = probabilities(epsilon, most)
    return [(sum(column) - len(column) * q) / (p - q) for column in zip(*reports)]
"""
ONE_BOX = """
def ticked_by(people, box, k, epsilon, most, rng):
    p, q = probabilities(epsilon, most)
    ones = np.where([box in ticks for ticks in people], p, q)
    return float((rng.random(len(people)) < ones).sum() - len(people) * q) / (p - q)
"""

ONE_WAY = """
def row_cost(first, second, p, q):
    first, second = np.asarray(first), np.asarray(second)
    lost, won = np.sum(first > second), np.sum(first < second)
    return lost * np.log(p / q) + won * np.log((1 - q) / (1 - p))
"""
EVERY_BIT_ALONE = """
def row_cost(first, second, p, q):
    if list(first) == list(second):
        return 0.0
    return max(np.log(p / q), np.log((1 - q) / (1 - p)))
"""
TICKS_FORGOTTEN = """
def probabilities(epsilon, most):
    return 0.5, 1 / (np.exp(epsilon) + 1)
"""
SYMMETRIC = """
def probabilities(epsilon, most):
    q = 1 / (np.exp(epsilon / most / 2) + 1)
    return 1 - q, q
"""
BUDGET_FOR_EACH_BIT = """
def report(ticks, k, epsilon, most, rng):
    q = 1 / (np.exp(epsilon) + 1)
    is_ticked = np.isin(np.arange(k), ticks)
    return (rng.random(k) < np.where(is_ticked, 1 - q, q)).astype(int)
"""
BUDGET_FOR_EACH_TICK = """
def report(ticks, k, epsilon, most, rng):
    p, q = probabilities(epsilon, 1)
    is_ticked = np.isin(np.arange(k), ticks)
    return (rng.random(k) < np.where(is_ticked, p, q)).astype(int)
"""
ONE_DRAW = """
def report(ticks, k, epsilon, most, rng):
    p, q = probabilities(epsilon, most)
    is_ticked = np.isin(np.arange(k), ticks)
    return (rng.random() < np.where(is_ticked, p, q)).astype(int)
"""
NOTHING_TO_HIDE = """
def report(ticks, k, epsilon, most, rng):
    if len(ticks) == 0:
        return np.zeros(k, dtype=int)
    p, q = probabilities(epsilon, most)
    is_ticked = np.isin(np.arange(k), ticks)
    return (rng.random(k) < np.where(is_ticked, p, q)).astype(int)
"""
OWN_SEED = """
def report(ticks, k, epsilon, most, rng):
    rng = np.random.default_rng(42)
    p, q = probabilities(epsilon, most)
    is_ticked = np.isin(np.arange(k), ticks)
    return (rng.random(k) < np.where(is_ticked, p, q)).astype(int)
"""
CLIPPED = """
def count_ticks(reports, epsilon, most):
    p, q = probabilities(epsilon, most)
    return np.maximum((np.sum(reports, axis=0) - len(reports) * q) / (p - q), 0)
"""
A_LITTLE_NOISE = """
def ticked_by(people, box, k, epsilon, most, rng):
    return sum(box in ticks for ticks in people) + 1e-9 * rng.normal()
"""
SHARE_FOR_EACH_BOX = """
def ticked_by(people, box, k, epsilon, most, rng):
    reports = [report(ticks, k, epsilon / k, 1, rng) for ticks in people]
    return count_ticks(reports, epsilon / k, 1)[box]
"""
TWO_PAIRS = """
def ticked_by(people, box, k, epsilon, most, rng):
    reports = [report(ticks, k, epsilon, most, rng) for ticks in people]
    return count_ticks(reports, epsilon, 1)[box]
"""

SECRETS = ["np.exp"]
CHANGED = {"epsilon": 1.0, "boxes": 5}

RIGHT = {
    "the solution": {},
    "loops": {"row_cost": LOOPED_COST, "report": LOOP, "count_ticks": COLUMN_BY_COLUMN},
    "all reports, and bits that are flipped": {"row_cost": ENUMERATED_COST, "report": FLIPS},
    "odds, and binomial bits": {"probabilities": BY_ODDS, "report": BINOMIAL},
    "a search for p, and one box alone": {"probabilities": SEARCHED, "ticked_by": ONE_BOX},
}
# Tasks: 0 row_cost, 1 probabilities, 2 report (one tick), 3 report (two), 4 count_ticks,
# 5 ticked_by.
WRONG = {
    "one direction": Wrong({"row_cost": ONE_WAY}, 10, 0, "answer", "compare both ways"),
    "every bit alone": Wrong({"row_cost": EVERY_BIT_ALONE}, 10, 0, "answer", "the costs add up"),
    "the ticks forgotten": Wrong(
        {"probabilities": TICKS_FORGOTTEN}, 4, 1, "answer", "number of ticks is forgotten"
    ),
    "the symmetric pair": Wrong({"probabilities": SYMMETRIC}, 2, 1, "answer", "symmetric pair"),
    "a budget for each bit": Wrong(
        {"report": BUDGET_FOR_EACH_BIT}, 6, 2, "privacy", "a question of its own"
    ),
    "a budget for each tick": Wrong(
        {"report": BUDGET_FOR_EACH_TICK}, 8, 3, "privacy", "epsilon / most"
    ),
    "one draw for all bits": Wrong({"report": ONE_DRAW}, 8, 2, "privacy", "one draw decides"),
    "an empty form as it is": Wrong({"report": NOTHING_TO_HIDE}, 6, 2, "rng", "in all"),
    "a seed of its own": Wrong({"report": OWN_SEED}, 6, 2, "rng", "made inside"),
    "clipped": Wrong({"count_ticks": CLIPPED}, 8, 4, "answer", "Do not clip"),
    "hardly any noise": Wrong({"ticked_by": A_LITTLE_NOISE}, 10, 5, "privacy", "never the ticks"),
    "a share for each box": Wrong(
        {"ticked_by": SHARE_FOR_EACH_BOX}, 10, 5, "distribution", "too much noise"
    ),
    "two pairs of probabilities": Wrong(
        {"ticked_by": TWO_PAIRS}, 10, 5, "distribution", "estimated with another"
    ),
}
