"""One cake for Sunday: the exponential mechanism, and a quantile from a utility."""

from submissions import Wrong

LOOPED_SENSITIVITY = """
def sensitivity(margins, most):
    largest = 0
    for margin in margins:
        largest = max(largest, abs(margin * most))
    return largest
"""
RUNNING_SUM = """
def choose(orders, margins, fixed, most, epsilon, rng):
    told = [[min(max(pieces, 0), most) for pieces in guest] for guest in orders]
    values = scores(told, margins, fixed)
    chances = distribution(values, epsilon, sensitivity(margins, most))
    draw, cake = rng.random(), 0
    while draw >= chances[cake]:
        draw -= chances[cake]
        cake += 1
    return cake
"""
LOOPED_QUANTILE = """
def quantile(eaten, answers, share, epsilon, rng):
    utility = []
    for r in answers:
        below = sum(1 for pieces in eaten if pieces < r)
        above = sum(1 for pieces in eaten if pieces > r)
        utility.append(-max((1 - share) * below, share * above))
    chances = distribution(utility, epsilon, max(share, 1 - share))
    return list(answers)[int(np.searchsorted(np.cumsum(chances), rng.random()))]
"""

LOSSES_FORGOTTEN = """
def sensitivity(margins, most):
    return most * max(margins)
"""
NO_TWO = """
def distribution(values, epsilon, delta_u):
    values = np.asarray(values)
    weights = np.exp(epsilon * (values - values.max()) / delta_u)
    return weights / weights.sum()
"""
WEIGHTS_ALONE = """
def choice_cost(values, others, epsilon, delta_u):
    return max(abs(np.subtract(values, others))) * epsilon / (2 * delta_u)
"""
NEARLY_THE_BEST = """
def choose(orders, margins, fixed, most, epsilon, rng):
    values = scores(np.clip(orders, 0, most), margins, fixed)
    return int(np.argmax(values + rng.normal(scale=2, size=len(values))))
"""
SUM_CLIPPED = """
def choose(orders, margins, fixed, most, epsilon, rng):
    total = np.clip(np.sum(orders, axis=0), 0, most * len(orders))
    values = total * margins - np.asarray(fixed)
    chances = distribution(values, epsilon, sensitivity(margins, most))
    return int(rng.choice(len(chances), p=chances))
"""
UTILITY_MOVES_BY_1 = """
def quantile(eaten, answers, share, epsilon, rng):
    eaten, answers = np.asarray(eaten), np.asarray(answers)
    below = (eaten[:, None] < answers).sum(axis=0)
    above = (eaten[:, None] > answers).sum(axis=0)
    chances = distribution(-np.maximum((1 - share) * below, share * above), epsilon, 1)
    return int(rng.choice(answers, p=chances))
"""

SECRETS = ["np.exp("]
CHANGED = {"epsilon": 1.0, "most": 2, "share": 0.3}

RIGHT = {
    "the solution": {},
    "loops, and a running sum": {
        "sensitivity": LOOPED_SENSITIVITY,
        "choose": RUNNING_SUM,
        "quantile": LOOPED_QUANTILE,
    },
}
# Tasks: 0 sensitivity, 1 distribution, 2 choice_cost, 3 choose (one guest), 4 choose (nine),
# 5 quantile.
WRONG = {
    "losses forgotten": Wrong({"sensitivity": LOSSES_FORGOTTEN}, 10, 0, "answer", "negative"),
    "the forgotten two": Wrong({"distribution": NO_TWO}, 2, 1, "answer", "The 2 is missing"),
    "the weights alone": Wrong({"choice_cost": WEIGHTS_ALONE}, 10, 2, "answer", "only the weights"),
    "nearly the best cake": Wrong({"choose": NEARLY_THE_BEST}, 8, 3, "privacy", "sensitivity and"),
    "the sum clipped": Wrong({"choose": SUM_CLIPPED}, 10, 4, "privacy", "Clip each one"),
    "a utility that moves by 1": Wrong(
        {"quantile": UTILITY_MOVES_BY_1}, 10, 5, "distribution", "1 is too much"
    ),
}
