"""Catch it, and mend it: bounds, runs, witnesses and a memory for each person."""

from submissions import Wrong

FEW = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, error / 2)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), 1 - error / 2)
    return np.log(max(low / high, 1))
"""
FROM_SCIPY = """
def epsilon_bound(hits, others, runs, error):
    from scipy import stats
    one, other = (stats.binomtest(k, runs).proportion_ci(1 - error) for k in (hits, others))
    return np.log(one.low / other.high) if one.low > other.high else 0.0
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
BINCOUNT = """
def tested_bound(outputs, others, error):
    runs = np.array([outputs, others])
    n = runs.shape[1] // 2
    counts = [[np.bincount(r, minlength=runs.max() + 1) for r in half]
              for half in (runs[:, :n], runs[:, n:])]
    (a, b), (c, d) = counts
    seen = [epsilon_bound(x, y, n, error) for x, y in zip([*a, *b], [*b, *a])]
    best = int(np.argmax(seen))
    return epsilon_bound([*c, *d][best], [*d, *c][best], n, error)
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
FIRST_PLACE = """
def answers_of_visits(visits, epsilon, rng):
    names = [name for name, _ in visits]
    answers = []
    for place, (name, truth) in enumerate(visits):
        if names.index(name) < place:
            answers.append(answers[names.index(name)])
        else:
            # A fair coin now and then, which may come out true.
            coin = rng.random() < 2 / (1 + np.exp(epsilon))
            answers.append(int(rng.integers(2)) if coin else truth)
    return answers
"""

WHOLE_ERROR = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, error)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), 1 - error)
    return max(float(np.log(low / high)), 0.0)
"""
WRONG_ENDS = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, 1 - error / 2)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), error / 2)
    return max(float(np.log(low / high)), 0.0)
"""
FREQUENCIES = """
def epsilon_bound(hits, others, runs, error):
    if hits == 0:
        return 0.0
    return max(float(np.log(hits / max(others, 1e-300))), 0.0)
"""
NEGATIVE = """
def epsilon_bound(hits, others, runs, error):
    low = scipy.special.betaincinv(max(hits, 1e-9), runs - hits + 1, error / 2)
    high = scipy.special.betaincinv(others + 1, max(runs - others, 1e-9), 1 - error / 2)
    return float(np.log(low / high)) if hits else 0.0
"""
ONE_PAIR = """
def runs_needed(epsilon, pairs, error):
    return int(np.log(error / 2) / -np.log1p(np.exp(-epsilon))) + 1
"""
NOT_HALVED = """
def runs_needed(epsilon, pairs, error):
    return int(np.log(error / pairs) / -np.log1p(np.exp(-epsilon))) + 1
"""
CUT_OFF = """
def runs_needed(epsilon, pairs, error):
    return int(np.log(error / pairs / 2) / -np.log1p(np.exp(-epsilon)))
"""
RULE_OF_THUMB = """
def runs_needed(epsilon, pairs, error):
    return int(np.log(2 * pairs / error) * np.exp(epsilon)) + 1
"""
SAME_RUNS = """
def tested_bound(outputs, others, error):
    n = len(outputs)
    a, b = (np.bincount(o, minlength=max(outputs + others) + 1) for o in (outputs, others))
    return max(epsilon_bound(x, y, n, error) for x, y in zip([*a, *b], [*b, *a]))
"""
SAME_HALF = """
def tested_bound(outputs, others, error):
    n = len(outputs) // 2
    a, b = (np.bincount(o[:n], minlength=max(outputs + others) + 1) for o in (outputs, others))
    return max(epsilon_bound(x, y, n, error) for x, y in zip([*a, *b], [*b, *a]))
"""
ONE_WAY = """
def tested_bound(outputs, others, error):
    n = len(outputs) // 2
    counts = [[half.count(v) for v in range(max(outputs + others) + 1)]
              for half in (outputs[:n], others[:n], outputs[n:], others[n:])]
    seen = [epsilon_bound(x, y, n, error) for x, y in zip(*counts[:2])]
    best = int(np.argmax(seen))
    return epsilon_bound(counts[2][best], counts[3][best], n, error)
"""
EXACTLY_ONE = """
def witness(program):
    if program == "total_hours":
        return [[20, 30], [20, -11]]
    return [[1], [0]]
"""
TWO_RECORDS = """
def witness(program):
    if program == "total_hours":
        return [[0, 0], [-30, -30]]
    return [[1, None, None], [0, None, None]]
"""
OF_THE_PAGE = """
def witness(program):
    if program == "total_hours":
        return [[38, 40, 20], [38, 40, 99]]
    return [[1, None, None], [0, None, None]]
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
SHARES = """
def answers_of_visits(visits, epsilon, rng):
    keep = rng.random(len(visits)) < 1 / (1 + np.exp(-epsilon / len(visits)))
    return [truth if k else 1 - truth for k, (_, truth) in zip(keep, visits)]
"""
LAST_VISITOR = """
def answers_of_visits(visits, epsilon, rng):
    answers, last = [], None
    for name, truth in visits:
        if name != last:
            answer = truth if rng.random() < 1 / (1 + np.exp(-epsilon)) else 1 - truth
        answers.append(answer)
        last = name
    return answers
"""
FOR_EVER = """
KEPT = {}


def answers_of_visits(visits, epsilon, rng):
    for name, truth in visits:
        if name not in KEPT:
            KEPT[name] = truth if rng.random() < 1 / (1 + np.exp(-epsilon)) else 1 - truth
    return [KEPT[name] for name, _ in visits]
"""
FAIR_COIN = """
def answers_of_visits(visits, epsilon, rng):
    kept = {}
    for name, truth in visits:
        if name not in kept:
            told = rng.random() < 1 / (1 + np.exp(-epsilon))
            kept[name] = truth if told else int(rng.integers(2))
    return [kept[name] for name, _ in visits]
"""
ONE_COIN = """
def answers_of_visits(visits, epsilon, rng):
    lies = rng.random() >= 1 / (1 + np.exp(-epsilon))
    return [1 - truth if lies else truth for _, truth in visits]
"""
HALF_EPSILON = """
def answers_of_visits(visits, epsilon, rng):
    kept = {}
    for name, truth in visits:
        if name not in kept:
            kept[name] = truth if rng.random() < 1 / (1 + np.exp(-epsilon / 2)) else 1 - truth
    return [kept[name] for name, _ in visits]
"""
TRUTH = """
def answers_of_visits(visits, epsilon, rng):
    return [truth for _, truth in visits]
"""
TRUTH_LATER = """
def answers_of_visits(visits, epsilon, rng):
    seen, answers = set(), []
    for name, truth in visits:
        lies = name not in seen and rng.random() >= 1 / (1 + np.exp(-epsilon))
        answers.append(1 - truth if lies else truth)
        seen.add(name)
    return answers
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
    "scipy's interval and counts": {
        "epsilon_bound": FROM_SCIPY,
        "tested_bound": BINCOUNT,
        "answers_of_visits": FIRST_PLACE,
    },
}
# Tasks: 0 epsilon_bound, 1 runs_needed, 2 tested_bound, 3 witness, 4 answers_of_visits (one
# person), 5 answers_of_visits (several).
WRONG = {
    "the whole error at each end": Wrong(
        {"epsilon_bound": WHOLE_ERROR}, 8, 0, "answer", "with probability error / 2"
    ),
    "the ends exchanged": Wrong({"epsilon_bound": WRONG_ENDS}, 8, 0, "answer", "the wrong ends"),
    "a ratio of frequencies": Wrong(
        {"epsilon_bound": FREQUENCIES}, 8, 0, "answer", "ratio of the frequencies"
    ),
    "a negative bound": Wrong({"epsilon_bound": NEGATIVE}, 10, 0, "answer", "never negative"),
    "one pair": Wrong({"runs_needed": ONE_PAIR}, 10, 1, "answer", "This is for one pair"),
    "the error not halved": Wrong({"runs_needed": NOT_HALVED}, 10, 1, "answer", "Both ends"),
    "one run too few": Wrong({"runs_needed": CUT_OFF}, 10, 1, "answer", "one too few"),
    "a rule of thumb": Wrong({"runs_needed": RULE_OF_THUMB}, 10, 1, "answer", "exactly and with"),
    "the same runs": Wrong({"tested_bound": SAME_RUNS}, 10, 2, "answer", "all runs test"),
    "the same half": Wrong({"tested_bound": SAME_HALF}, 10, 2, "answer", "so its luck counts"),
    "one direction": Wrong({"tested_bound": ONE_WAY}, 10, 2, "answer", "Neighbours go both ways"),
    "a cost of exactly 1": Wrong(
        {"witness": EXACTLY_ONE}, 10, 3, "usefulness", "exactly 1 is allowed"
    ),
    "two records": Wrong({"witness": TWO_RECORDS}, 10, 3, "usefulness", "exactly one record"),
    "the neighbours of the page": Wrong(
        {"witness": OF_THE_PAGE}, 10, 3, "usefulness", "cost more than 1"
    ),
    "remembered by truth": Wrong(
        {"answers_of_visits": BY_TRUTH}, 10, 5, "privacy", "Remember by name"
    ),
    "a fresh answer at every visit": Wrong(
        {"answers_of_visits": EACH_VISIT}, 8, 4, "privacy", "each visit costs epsilon again"
    ),
    "a share for every visit": Wrong(
        {"answers_of_visits": SHARES}, 8, 4, "distribution", "divided among the visits"
    ),
    "the last visitor alone": Wrong(
        {"answers_of_visits": LAST_VISITOR}, 10, 5, "privacy", "where others came between"
    ),
    "remembered for ever": Wrong(
        {"answers_of_visits": FOR_EVER}, 8, 4, "rng", "with an empty memory"
    ),
    "a fair coin for the lies": Wrong(
        {"answers_of_visits": FAIR_COIN}, 8, 4, "privacy", "may show the truth as well"
    ),
    "one coin for everybody": Wrong(
        {"answers_of_visits": ONE_COIN}, 10, 5, "privacy", "share one coin"
    ),
    "half of epsilon": Wrong(
        {"answers_of_visits": HALF_EPSILON}, 8, 4, "distribution", "half of epsilon"
    ),
    "the truth": Wrong({"answers_of_visits": TRUTH}, 8, 4, "rng", "in all 2,800 runs"),
    "the truth at later visits": Wrong(
        {"answers_of_visits": TRUTH_LATER}, 8, 4, "privacy", "repeated at all later visits"
    ),
}
