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
LOGARITHMS = """
def table_cost(table, neighbours):
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.asarray(table))
        return max(np.nanmax(np.abs(logs[i] - logs[j])) for i, j in neighbours)
"""
MATRIX = """
def cost_of_counts(groups, kinds, epsilon):
    member = np.array([[kind in group for group in groups] for kind in kinds])
    return epsilon * (member[:, None] != member[None, :]).sum(axis=2).max()
"""
SYMMETRIC = """
def cost_of_counts(groups, kinds, epsilon):
    inside = {kind: {i for i, g in enumerate(groups) if kind in g} for kind in kinds}
    return max(len(inside[a] ^ inside[b]) for a in kinds for b in kinds) * epsilon
"""
CHOICE = """
def bounded_count(answers, epsilon, rng):
    n, true, d = len(answers), sum(answers), np.exp(-epsilon)
    p = (1 - d) / (1 + d) * d ** np.abs(np.arange(n + 1) - true)
    p[0], p[n] = d**true / (1 + d), d ** (n - true) / (1 + d)
    return rng.choice(n + 1, p=p)
"""
SUBTRACTED = """
def bounded_count(answers, epsilon, rng):
    p = 1 - np.exp(-epsilon)
    noisy = sum(answers) + rng.geometric(p) - rng.geometric(p)
    if noisy < 0:
        return 0
    if noisy > len(answers):
        return len(answers)
    return noisy
"""
SIGN_REDRAWN = """
def bounded_count(answers, epsilon, rng):
    size, minus = 0, True
    while minus and size == 0:
        size, minus = rng.geometric(1 - np.exp(-epsilon)) - 1, rng.random() < 0.5
    return np.clip(np.sum(answers) + (-size if minus else size), 0, len(answers))
"""
LOOP = """
def bounded_table(records, kinds, epsilon, rng):
    table = []
    for kind in kinds:
        table.append(bounded_count([int(r == kind) for r in records], epsilon / 2, rng))
    return table
"""
ONE_HOT = """
def bounded_table(records, kinds, epsilon, rng):
    counts = (np.asarray(records)[:, None] == np.asarray(kinds)).sum(axis=0)
    p = -np.expm1(-epsilon / 2)
    noise = rng.geometric(p, len(kinds)) - rng.geometric(p, len(kinds))
    return np.minimum(np.maximum(counts + noise, 0), len(records))
"""

PROBABILITIES = """
def largest_epsilon(prior, most, releases):
    return np.log(most / prior) / releases
"""
NOT_DIVIDED = """
def largest_epsilon(prior, most, releases):
    return np.log(most / (1 - most) / (prior / (1 - prior)))
"""
ALL_ROWS = """
def table_cost(table, neighbours):
    table = table[:, table.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        return np.log(table.max(axis=0) / table.min(axis=0)).max()
"""
ONE_WAY = """
def table_cost(table, neighbours):
    largest = 0.0
    for i, j in neighbours:
        for p, q in zip(table[i], table[j]):
            if p > 0:
                largest = max(largest, np.log(p / q) if q > 0 else np.inf)
    return largest
"""
ZEROS_LEFT_OUT = """
def table_cost(table, neighbours):
    largest = 0.0
    for i, j in neighbours:
        both = (table[i] > 0) & (table[j] > 0)
        largest = max(largest, np.abs(np.log(table[i][both] / table[j][both])).max())
    return largest
"""
SUM = """
def cost_of_counts(groups, kinds, epsilon):
    return epsilon * len(groups)
"""
ADDED_OR_REMOVED = """
def cost_of_counts(groups, kinds, epsilon):
    return epsilon * max(sum(kind in group for group in groups) for kind in kinds)
"""
TWICE = """
def cost_of_counts(groups, kinds, epsilon):
    return epsilon * min(2, len(groups))
"""
REDRAWN = """
def bounded_count(answers, epsilon, rng):
    noisy = -1
    while not 0 <= noisy <= len(answers):
        up, down = rng.geometric(1 - np.exp(-epsilon), size=2)
        noisy = sum(answers) + up - down
    return int(noisy)
"""
HALF_EPSILON = """
def bounded_count(answers, epsilon, rng):
    up, down = rng.geometric(1 - np.exp(-epsilon / 2), size=2)
    return int(np.clip(sum(answers) + up - down, 0, len(answers)))
"""
ONLY_UP = """
def bounded_count(answers, epsilon, rng):
    return min(sum(answers) + rng.geometric(1 - np.exp(-epsilon)) - 1, len(answers))
"""
SIGNED = """
def bounded_count(answers, epsilon, rng):
    size = rng.geometric(1 - np.exp(-epsilon)) - 1
    return np.clip(sum(answers) + size * rng.choice([-1, 1]), 0, len(answers))
"""
ROUNDED = """
def bounded_count(answers, epsilon, rng):
    noisy = round(sum(answers) + rng.laplace(scale=1 / epsilon))
    return min(max(noisy, 0), len(answers))
"""
NOT_MOVED = """
def bounded_count(answers, epsilon, rng):
    up, down = rng.geometric(1 - np.exp(-epsilon), size=2)
    return int(sum(answers) + up - down)
"""
OWN_SEED = """
def bounded_count(answers, epsilon, rng):
    up, down = np.random.default_rng(0).geometric(1 - np.exp(-epsilon), size=2)
    return int(np.clip(sum(answers) + up - down, 0, len(answers)))
"""
TRUTH = """
def bounded_count(answers, epsilon, rng):
    return sum(answers)
"""
UNLESS_NOBODY = """
def bounded_count(answers, epsilon, rng):
    if sum(answers) == 0:
        return 0
    up, down = rng.geometric(1 - np.exp(-epsilon), size=2)
    return int(np.clip(sum(answers) + up - down, 0, len(answers)))
"""
ALL_FOR_EACH = """
def bounded_table(records, kinds, epsilon, rng):
    return [bounded_count([r == kind for r in records], epsilon, rng) for kind in kinds]
"""
SHARED_AMONG_ALL = """
def bounded_table(records, kinds, epsilon, rng):
    each = epsilon / len(kinds)
    return [bounded_count([r == kind for r in records], each, rng) for kind in kinds]
"""
ONE_DRAW = """
def bounded_table(records, kinds, epsilon, rng):
    up, down = rng.geometric(1 - np.exp(-epsilon / 2), size=2)
    counts = np.array([records.count(kind) for kind in kinds])
    return np.clip(counts + up - down, 0, len(records))
"""
KINDS_THAT_OCCUR = """
def bounded_table(records, kinds, epsilon, rng):
    there = [kind for kind in kinds if kind in records]
    return [bounded_count([r == kind for r in records], epsilon / 2, rng) for kind in there]
"""
NONE_IS_NONE = """
def bounded_table(records, kinds, epsilon, rng):
    return [
        bounded_count([r == kind for r in records], epsilon / 2, rng) if kind in records else 0
        for kind in kinds
    ]
"""
REST = """
def bounded_table(records, kinds, epsilon, rng):
    table = [bounded_count([r == k for r in records], epsilon / 2, rng) for k in kinds[:-1]]
    return table + [max(len(records) - sum(table), 0)]
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
    "logarithms, sets and a choice": {
        "table_cost": LOGARITHMS,
        "cost_of_counts": SYMMETRIC,
        "bounded_count": CHOICE,
        "bounded_table": LOOP,
    },
    "two draws, and a table of ones": {"bounded_count": SUBTRACTED, "bounded_table": ONE_HOT},
    "a sign that is drawn again": {"bounded_count": SIGN_REDRAWN},
}
# Tasks: 0 largest_epsilon, 1 table_cost, 2 cost_of_counts, 3 bounded_count, 4 bounded_table.
WRONG = {
    "probabilities for odds": Wrong(
        {"largest_epsilon": PROBABILITIES}, 10, 0, "answer", "about odds, and not"
    ),
    "not divided among the releases": Wrong(
        {"largest_epsilon": NOT_DIVIDED}, 10, 0, "answer", "each may cost a share"
    ),
    "all rows": Wrong({"table_cost": ALL_ROWS}, 10, 1, "answer", "compares all rows"),
    "one way": Wrong({"table_cost": ONE_WAY}, 10, 1, "answer", "Neighbours go both ways"),
    "zeros left out": Wrong({"table_cost": ZEROS_LEFT_OUT}, 10, 1, "answer", "costs infinity"),
    "the sum": Wrong({"cost_of_counts": SUM}, 10, 2, "answer", "adds up all counts"),
    "added or removed": Wrong(
        {"cost_of_counts": ADDED_OR_REMOVED}, 10, 2, "answer", "adding or removing"
    ),
    "always twice": Wrong({"cost_of_counts": TWICE}, 10, 2, "answer", "differ in the most counts"),
    "drawn again until it fits": Wrong(
        {"bounded_count": REDRAWN}, 9, 3, "distribution", "drawn again until"
    ),
    "half of epsilon": Wrong(
        {"bounded_count": HALF_EPSILON}, 9, 3, "distribution", "half of epsilon"
    ),
    "noise that only goes up": Wrong(
        {"bounded_count": ONLY_UP}, 9, 3, "rng", "has to go both ways"
    ),
    "a sign for zero": Wrong({"bounded_count": SIGNED}, 9, 3, "privacy", "as +0 and -0"),
    "rounded Laplace noise": Wrong(
        {"bounded_count": ROUNDED}, 9, 3, "distribution", "not the noise that was asked"
    ),
    "not moved": Wrong({"bounded_count": NOT_MOVED}, 9, 3, "distribution", "must not come"),
    "a seed of its own": Wrong({"bounded_count": OWN_SEED}, 9, 3, "rng", "in all 1,600 runs"),
    "the truth": Wrong({"bounded_count": TRUTH}, 9, 3, "rng", "in all 1,600 runs"),
    "the truth where it is 0": Wrong(
        {"bounded_count": UNLESS_NOBODY}, 9, 3, "rng", "in all 1,600 runs"
    ),
    "all of epsilon for each count": Wrong(
        {"bounded_table": ALL_FOR_EACH}, 9, 4, "privacy", "leaves one count and joins another"
    ),
    "a share for each count": Wrong(
        {"bounded_table": SHARED_AMONG_ALL}, 9, 4, "distribution", "divide by 2"
    ),
    "one draw for the table": Wrong(
        {"bounded_table": ONE_DRAW}, 9, 4, "privacy", "their differences are exact"
    ),
    "kinds that occur": Wrong(
        {"bounded_table": KINDS_THAT_OCCUR}, 9, 4, "shape", "which kinds occur is private"
    ),
    "no noise where there is nobody": Wrong(
        {"bounded_table": NONE_IS_NONE}, 9, 4, "privacy", "published without noise"
    ),
    "the rest for the last kind": Wrong(
        {"bounded_table": REST}, 9, 4, "distribution", "what the others leave over"
    ),
}
