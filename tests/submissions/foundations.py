"""What a clinic may publish: beliefs, tables of probabilities, and counts with noise."""

from submissions import Wrong

LOGITS = """
def largest_epsilon(prior, most, releases):
    logit = lambda p: np.log(p) - np.log(1 - p)
    return float(logit(most) - logit(prior)) / releases
"""
ARRAYS = """
def table_cost(table, neighbours):
    table = np.asarray(table, dtype=float)
    epsilon = 0.0
    for i, j in neighbours:
        rows = table[[i, j]][:, table[[i, j]].max(axis=0) > 0]
        with np.errstate(divide="ignore"):
            epsilon = max(epsilon, np.log(rows.max(axis=0) / rows.min(axis=0)).max())
    return epsilon
"""
MATRIX = """
def cost_of_counts(groups, kinds, epsilon):
    member = np.array([[kind in group for group in groups] for kind in kinds])
    return epsilon * (member[:, None] != member[None, :]).sum(axis=2).max()
"""
LOOP = """
def bounded_table(records, kinds, epsilon, rng):
    table = []
    for kind in kinds:
        table.append(bounded_count([int(r == kind) for r in records], epsilon / 2, rng))
    return table
"""

PROBABILITIES = """
def largest_epsilon(prior, most, releases):
    return np.log(most / prior) / releases
"""
ALL_ROWS = """
def table_cost(table, neighbours):
    table = table[:, table.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        return np.log(table.max(axis=0) / table.min(axis=0)).max()
"""
SUM = """
def cost_of_counts(groups, kinds, epsilon):
    return epsilon * len(groups)
"""
SIGNED = """
def bounded_count(answers, epsilon, rng):
    size = rng.geometric(1 - np.exp(-epsilon)) - 1
    return np.clip(sum(answers) + size * rng.choice([-1, 1]), 0, len(answers))
"""
SHARED_AMONG_ALL = """
def bounded_table(records, kinds, epsilon, rng):
    each = epsilon / len(kinds)
    return [bounded_count([r == kind for r in records], each, rng) for kind in kinds]
"""
KINDS_THAT_OCCUR = """
def bounded_table(records, kinds, epsilon, rng):
    there = [kind for kind in kinds if kind in records]
    return [bounded_count([r == kind for r in records], epsilon / 2, rng) for kind in there]
"""

SECRETS = ["epsilon / 2", "abs(np.log(p / q))"]
CHANGED = {"epsilon": 0.5, "kinds": ["a", "b", "c"]}

RIGHT = {
    "the solution": {},
    "logits, arrays and a loop": {
        "largest_epsilon": LOGITS,
        "table_cost": ARRAYS,
        "cost_of_counts": MATRIX,
        "bounded_table": LOOP,
    },
}
# Tasks: 0 largest_epsilon, 1 table_cost, 2 cost_of_counts, 3 bounded_count, 4 bounded_table.
WRONG = {
    "probabilities for odds": Wrong(
        {"largest_epsilon": PROBABILITIES}, 10, 0, "answer", "about odds, and not"
    ),
    "all rows": Wrong({"table_cost": ALL_ROWS}, 10, 1, "answer", "compares all rows"),
    "the sum": Wrong({"cost_of_counts": SUM}, 10, 2, "answer", "adds up all counts"),
    "a sign for zero": Wrong({"bounded_count": SIGNED}, 9, 3, "privacy", "as +0 and -0"),
    "a share for each count": Wrong(
        {"bounded_table": SHARED_AMONG_ALL}, 9, 4, "distribution", "divide by 2"
    ),
    "kinds that occur": Wrong(
        {"bounded_table": KINDS_THAT_OCCUR}, 9, 4, "shape", "which kinds occur is private"
    ),
}
