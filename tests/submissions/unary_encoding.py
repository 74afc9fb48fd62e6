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
LOOP = """
def report(ticks, k, epsilon, most, rng):
    p, q = probabilities(epsilon, most)
    bits = []
    for box in range(k):
        bits.append(1 if rng.random() < (p if box in ticks else q) else 0)
    return bits
"""
COLUMN_BY_COLUMN = """
def count_ticks(reports, epsilon, most):
    p, q = probabilities(epsilon, most)
    return [(sum(column) - len(column) * q) / (p - q) for column in zip(*reports)]
"""

ONE_WAY = """
def row_cost(first, second, p, q):
    first, second = np.asarray(first), np.asarray(second)
    lost, won = np.sum(first > second), np.sum(first < second)
    return lost * np.log(p / q) + won * np.log((1 - q) / (1 - p))
"""
TICKS_FORGOTTEN = """
def probabilities(epsilon, most):
    return 0.5, 1 / (np.exp(epsilon) + 1)
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
CLIPPED = """
def count_ticks(reports, epsilon, most):
    p, q = probabilities(epsilon, most)
    return np.maximum((np.sum(reports, axis=0) - len(reports) * q) / (p - q), 0)
"""
SHARE_FOR_EACH_BOX = """
def ticked_by(people, box, k, epsilon, most, rng):
    reports = [report(ticks, k, epsilon / k, 1, rng) for ticks in people]
    return count_ticks(reports, epsilon / k, 1)[box]
"""

SECRETS = ["np.exp"]
CHANGED = {"epsilon": 1.0, "boxes": 5}

RIGHT = {
    "the solution": {},
    "loops": {"row_cost": LOOPED_COST, "report": LOOP, "count_ticks": COLUMN_BY_COLUMN},
}
# Tasks: 0 row_cost, 1 probabilities, 2 report (one tick), 3 report (two), 4 count_ticks,
# 5 ticked_by.
WRONG = {
    "one direction": Wrong({"row_cost": ONE_WAY}, 10, 0, "answer", "compare both ways"),
    "the ticks forgotten": Wrong(
        {"probabilities": TICKS_FORGOTTEN}, 4, 1, "answer", "number of ticks is forgotten"
    ),
    "a budget for each bit": Wrong(
        {"report": BUDGET_FOR_EACH_BIT}, 6, 2, "privacy", "a question of its own"
    ),
    "a budget for each tick": Wrong(
        {"report": BUDGET_FOR_EACH_TICK}, 8, 3, "privacy", "epsilon / most"
    ),
    "clipped": Wrong({"count_ticks": CLIPPED}, 8, 4, "answer", "Do not clip"),
    "a share for each box": Wrong(
        {"ticked_by": SHARE_FOR_EACH_BOX}, 10, 5, "distribution", "too much noise"
    ),
}
