"""Catch it, and mend it: bounds, runs, witnesses and a memory for each person."""

from submissions import Wrong

FEW = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, error / 2)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), 1 - error / 2)
    return np.log(max(low / high, 1))
"""
BISECTION = """
def runs_needed(epsilon, pairs, error):
    a = error / (2 * pairs)

    def refutes(n):
        return np.log(a ** (1 / n) / (1 - a ** (1 / n))) > epsilon

    most = 1
    while not refutes(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        n = (least + most) // 2
        if refutes(n):
            most = n
        else:
            least = n
    return most
"""
BY_HAND = """
def tested_bound(outputs, others, error):
    half = len(outputs) // 2
    chosen, largest = None, -1
    for value in range(max(outputs + others) + 1):
        on_data = sum(o == value for o in outputs[:half])
        on_neighbour = sum(o == value for o in others[:half])
        for way, (h, o) in enumerate([(on_data, on_neighbour), (on_neighbour, on_data)]):
            if epsilon_bound(h, o, half, error) > largest:
                largest, chosen = epsilon_bound(h, o, half, error), (value, way)
    value, way = chosen
    h = sum(o == value for o in outputs[half:])
    o = sum(o == value for o in others[half:])
    return epsilon_bound(h, o, half, error) if way == 0 else epsilon_bound(o, h, half, error)
"""
OTHER_WITNESS = """
def witness(program):
    return {
        "total_hours": [[-41.5], [0]],
        "share_of_yes": [[1, None], [None, None]],
    }[program]
"""
VECTORS = """
def answers_of_visits(visits, epsilon, rng):
    names = sorted({name for name, _ in visits})
    truth = dict(visits)
    lies = rng.random(len(names)) >= np.exp(epsilon) / (np.exp(epsilon) + 1)
    said = {name: int(truth[name] != lie) for name, lie in zip(names, lies)}
    return np.array([said[name] for name, _ in visits])
"""

WHOLE_ERROR = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, error)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), 1 - error)
    return max(float(np.log(low / high)), 0.0)
"""
ONE_PAIR = """
def runs_needed(epsilon, pairs, error):
    return int(np.log(error / 2) / -np.log1p(np.exp(-epsilon))) + 1
"""
SAME_RUNS = """
def tested_bound(outputs, others, error):
    n = len(outputs)
    a, b = (np.bincount(o, minlength=max(outputs + others) + 1) for o in (outputs, others))
    return max(epsilon_bound(x, y, n, error) for x, y in zip([*a, *b], [*b, *a]))
"""
EXACTLY_ONE = """
def witness(program):
    if program == "total_hours":
        return [[20, 30], [20, -11]]
    return [[1], [0]]
"""
BY_TRUTH = """
def answers_of_visits(visits, epsilon, rng):
    kept = {}
    for _, truth in visits:
        if truth not in kept:
            kept[truth] = truth if rng.random() < 1 / (1 + np.exp(-epsilon)) else 1 - truth
    return [kept[truth] for _, truth in visits]
"""
EACH_VISIT = """
def answers_of_visits(visits, epsilon, rng):
    keep = rng.random(len(visits)) < 1 / (1 + np.exp(-epsilon))
    return [truth if k else 1 - truth for k, (_, truth) in zip(keep, visits)]
"""

SECRETS = ["tells_truth", "log(least)", "-100"]
CHANGED = {"epsilon": 0.5, "error": 0.1, "names": ["Kim", "Lou", "Max"]}

RIGHT = {
    "the solution": {},
    "few and bisection": {
        "epsilon_bound": FEW,
        "runs_needed": BISECTION,
        "tested_bound": BY_HAND,
        "witness": OTHER_WITNESS,
        "answers_of_visits": VECTORS,
    },
}
# Tasks: 0 epsilon_bound, 1 runs_needed, 2 tested_bound, 3 witness, 4 answers_of_visits (one
# person), 5 answers_of_visits (several).
WRONG = {
    "the whole error at each end": Wrong(
        {"epsilon_bound": WHOLE_ERROR}, 8, 0, "answer", "with probability error / 2"
    ),
    "one pair": Wrong({"runs_needed": ONE_PAIR}, 10, 1, "answer", "This is for one pair"),
    "the same runs": Wrong({"tested_bound": SAME_RUNS}, 10, 2, "answer", "all runs test"),
    "a cost of exactly 1": Wrong(
        {"witness": EXACTLY_ONE}, 10, 3, "usefulness", "exactly 1 is allowed"
    ),
    "remembered by truth": Wrong(
        {"answers_of_visits": BY_TRUTH}, 10, 5, "privacy", "Remember by name"
    ),
    "a fresh answer at every visit": Wrong(
        {"answers_of_visits": EACH_VISIT}, 8, 4, "privacy", "each visit costs epsilon again"
    ),
}
