"""One cake for Sunday: the exponential mechanism, and a quantile from a utility."""

from submissions import Wrong

LOOPED_SENSITIVITY = """
def sensitivity(margins, most):
    largest = 0
    for margin in margins:
        largest = max(largest, abs(margin * most))
    return largest
"""
SOFTMAX = """
def distribution(values, epsilon, delta_u):
    from scipy.special import softmax
    return softmax(np.array(values) * epsilon / 2 / delta_u)
"""
BY_DIFFERENCES = """
def distribution(values, epsilon, delta_u):
    gaps = np.subtract.outer(values, values) * epsilon / (2 * delta_u)
    return 1 / np.exp(np.minimum(-gaps, 700)).sum(axis=1)
"""
COST_BY_WEIGHTS = """
def choice_cost(values, others, epsilon, delta_u):
    u, v = (np.array(row) * epsilon / (2 * delta_u) for row in (values, others))
    change = np.log(np.exp(v - v.max()).sum()) + v.max()
    change = change - np.log(np.exp(u - u.max()).sum()) - u.max()
    moved = u - v + change
    return max(moved.max(), -moved.min())
"""
COST_BOTH_WAYS = """
def choice_cost(values, others, epsilon, delta_u):
    p, q = distribution(values, epsilon, delta_u), distribution(others, epsilon, delta_u)
    return np.log(max(max(a / b, b / a) for a, b in zip(p, q)))
"""
GUMBEL = """
def choose(orders, margins, fixed, most, epsilon, rng):
    values = scores(np.clip(orders, 0, most), margins, fixed)
    scale = 2 * sensitivity(margins, most) / epsilon
    return np.argmax(values + rng.gumbel(scale=scale, size=len(values)))
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
SCALED_QUANTILE = """
def quantile(eaten, answers, share, epsilon, rng):
    eaten, answers = np.sort(eaten), np.asarray(answers)
    below = np.searchsorted(eaten, answers, side="left")
    above = len(eaten) - np.searchsorted(eaten, answers, side="right")
    worse = np.maximum((1 - share) * below, share * above) / max(share, 1 - share)
    return answers[np.argmax(rng.gumbel(size=len(answers)) - epsilon * worse / 2)]
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
NAIVE = """
def distribution(values, epsilon, delta_u):
    weights = np.exp(epsilon * np.asarray(values) / (2 * delta_u))
    return weights / weights.sum()
"""
WEIGHTS_ALONE = """
def choice_cost(values, others, epsilon, delta_u):
    return max(abs(np.subtract(values, others))) * epsilon / (2 * delta_u)
"""
ONE_DIRECTION = """
def choice_cost(values, others, epsilon, delta_u):
    before = distribution(values, epsilon, delta_u)
    after = distribution(others, epsilon, delta_u)
    return np.max(np.log(before / after))
"""
NEARLY_THE_BEST = """
def choose(orders, margins, fixed, most, epsilon, rng):
    values = scores(np.clip(orders, 0, most), margins, fixed)
    return int(np.argmax(values + rng.normal(scale=2, size=len(values))))
"""
BELIEVED = """
def choose(orders, margins, fixed, most, epsilon, rng):
    chances = distribution(scores(orders, margins, fixed), epsilon, sensitivity(margins, most))
    return int(rng.choice(len(chances), p=chances))
"""
SUM_CLIPPED = """
def choose(orders, margins, fixed, most, epsilon, rng):
    total = np.clip(np.sum(orders, axis=0), 0, most * len(orders))
    values = total * margins - np.asarray(fixed)
    chances = distribution(values, epsilon, sensitivity(margins, most))
    return int(rng.choice(len(chances), p=chances))
"""
FLIPS = """
def choose(orders, margins, fixed, most, epsilon, rng):
    values = scores(np.clip(orders, 0, most), margins, fixed)
    accept = np.exp(epsilon * (values - values.max()) / (2 * sensitivity(margins, most)))
    for cake in rng.permutation(len(values)):
        if rng.random() < accept[cake]:
            return int(cake)
"""
OWN_SEED = """
def choose(orders, margins, fixed, most, epsilon, rng):
    values = scores(np.clip(orders, 0, most), margins, fixed)
    chances = distribution(values, epsilon, sensitivity(margins, most))
    return int(np.random.default_rng(7).choice(len(chances), p=chances))
"""
NOISY_QUANTILE = """
def quantile(eaten, answers, share, epsilon, rng):
    noisy = np.quantile(eaten, share) + rng.laplace(scale=1 / epsilon)
    return int(np.clip(round(noisy), min(answers), max(answers)))
"""
UTILITY_MOVES_BY_1 = """
def quantile(eaten, answers, share, epsilon, rng):
    eaten, answers = np.asarray(eaten), np.asarray(answers)
    below = (eaten[:, None] < answers).sum(axis=0)
    above = (eaten[:, None] > answers).sum(axis=0)
    chances = distribution(-np.maximum((1 - share) * below, share * above), epsilon, 1)
    return int(rng.choice(answers, p=chances))
"""
AT_MOST = """
def quantile(eaten, answers, share, epsilon, rng):
    eaten, answers = np.asarray(eaten), np.asarray(answers)
    below = (eaten[:, None] <= answers).sum(axis=0)
    above = (eaten[:, None] > answers).sum(axis=0)
    utility = -np.maximum((1 - share) * below, share * above)
    return int(rng.choice(answers, p=distribution(utility, epsilon, max(share, 1 - share))))
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
    "Gumbel noise": {"choose": GUMBEL, "quantile": SCALED_QUANTILE},
    "softmax": {"distribution": SOFTMAX, "choice_cost": COST_BY_WEIGHTS},
    "differences": {"distribution": BY_DIFFERENCES, "choice_cost": COST_BOTH_WAYS},
}
# Tasks: 0 sensitivity, 1 distribution, 2 choice_cost, 3 choose (one guest), 4 choose (nine),
# 5 quantile.
WRONG = {
    "losses forgotten": Wrong({"sensitivity": LOSSES_FORGOTTEN}, 10, 0, "answer", "negative"),
    "the forgotten two": Wrong({"distribution": NO_TWO}, 2, 1, "answer", "The 2 is missing"),
    "an overflow": Wrong({"distribution": NAIVE}, 10, 1, "answer", "Subtract the largest"),
    "the weights alone": Wrong({"choice_cost": WEIGHTS_ALONE}, 10, 2, "answer", "only the weights"),
    "one direction": Wrong({"choice_cost": ONE_DIRECTION}, 10, 2, "answer", "one direction only"),
    "nearly the best cake": Wrong({"choose": NEARLY_THE_BEST}, 8, 3, "privacy", "sensitivity and"),
    "every order believed": Wrong({"choose": BELIEVED}, 8, 3, "privacy", "Clip each one"),
    "the sum clipped": Wrong({"choose": SUM_CLIPPED}, 10, 4, "privacy", "Clip each one"),
    "permute-and-flip": Wrong({"choose": FLIPS}, 8, 3, "distribution", "is permute-and-flip"),
    "a seed of its own": Wrong({"choose": OWN_SEED}, 8, 3, "rng", "made inside"),
    "a noisy quantile": Wrong({"quantile": NOISY_QUANTILE}, 10, 5, "privacy", "Draw by utility"),
    "a utility that moves by 1": Wrong(
        {"quantile": UTILITY_MOVES_BY_1}, 10, 5, "distribution", "1 is too much"
    ),
    "at most": Wrong({"quantile": AT_MOST}, 10, 5, "distribution", "not <="),
}
