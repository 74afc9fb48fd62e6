"""Weights to be published: the scale of the noise, its cost, and two releases."""

from submissions import Wrong

STEPWISE_SCALE = """
def noise_scale(n, rho, lam, epsilon):
    gradients_differ = 2 * rho / n
    sensitivity = gradients_differ / lam
    return sensitivity / epsilon
"""
LOOPED_COSTS = """
def costs(change, scale):
    squares = absolute = 0.0
    for entry in change:
        squares += entry**2
        absolute += abs(entry)
    return [squares**0.5 / scale, absolute / scale]
"""
LOOPED_LOSS = """
def expected_loss(weights, rows, labels, draws):
    losses = []
    for draw in draws:
        for row, label in zip(rows, labels):
            losses.append(np.logaddexp(0, -label * ((weights + draw) @ row)))
    return sum(losses) / len(losses)
"""
EINSUM_LOSS = """
def expected_loss(weights, rows, labels, draws):
    margins = np.einsum("n,nd,md->nm", labels, rows, weights + draws)
    return float(np.log1p(np.exp(-margins)).mean(axis=1).mean())
"""
LOOPED_WEIGHT = """
def release_weight(records, rho, lam, epsilon, rng):
    total = 0.0
    for x, y in records:
        total += y * max(-rho, min(rho, x))
    n = len(records)
    return total / (lam * n) + rng.laplace(scale=2 * rho / (lam * n * epsilon))
"""
TWO_EXPONENTIALS = """
def release_weight(records, rho, lam, epsilon, rng):
    x, y = np.array(records, dtype=float).T
    noise = rng.exponential() - rng.exponential()
    noise *= noise_scale(len(x), rho, lam, epsilon)
    return float(np.clip(x * y, -rho, rho).mean() / lam + noise)
"""
GAMMA_WEIGHT = """
def release_weight(records, rho, lam, epsilon, rng):
    x, y = np.array(records, dtype=float).T
    length = rng.gamma(1, noise_scale(len(x), rho, lam, epsilon))
    cut = x * np.minimum(1, rho / np.maximum(abs(x), 1e-12))
    return (y * cut).mean() / lam + length * rng.choice([-1, 1])
"""
LOOPED_RELEASE = """
def release(records, rho, lam, epsilon, rng):
    best = np.zeros(3)
    for x1, x2, y in records:
        row = np.array([x1, x2, 1.0])
        length = np.sqrt(row @ row)
        if length > rho:
            row = row * rho / length
        best += y * row
    best /= lam * len(records)
    z = rng.normal(size=3)
    radius = sum(rng.exponential(noise_scale(len(records), rho, lam, epsilon)) for _ in range(3))
    return list(best + radius * z / np.linalg.norm(z))
"""
ANGLES = """
def release(records, rho, lam, epsilon, rng):
    table = np.array(records, dtype=float)
    rows = np.hstack([table[:, :2], np.ones((len(table), 1))])
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1) / rho)[:, None]
    height, turn = rng.uniform(-1, 1), rng.uniform(0, 2 * np.pi)
    flat = np.sqrt(1 - height**2)
    direction = np.array([flat * np.cos(turn), flat * np.sin(turn), height])
    length = rng.gamma(3, 2 * rho / (lam * len(table) * epsilon))
    return table[:, 2] @ rows / (lam * len(table)) + length * direction
"""

ADDED = """
def noise_scale(n, rho, lam, epsilon):
    return rho / (lam * n) / epsilon
"""
ONLY_SENSITIVITY = """
def noise_scale(n, rho, lam, epsilon):
    return 2 * rho / (lam * n)
"""
TIMES_LAMBDA = """
def noise_scale(n, rho, lam, epsilon):
    return 2 * rho * lam / (n * epsilon)
"""
LENGTH_TWICE = """
def costs(change, scale):
    return np.full(2, np.linalg.norm(change) / scale)
"""
WORST_CASE = """
def costs(change, scale):
    length = np.linalg.norm(change) / scale
    return np.array([length, np.sqrt(len(change)) * length])
"""
LARGEST = """
def costs(change, scale):
    return np.array([np.linalg.norm(change), np.abs(change).max()]) / scale
"""
AVERAGE_WEIGHTS = """
def expected_loss(weights, rows, labels, draws):
    return np.log(1 + np.exp(-labels * (rows @ (weights + draws.mean(axis=0))))).mean()
"""
SUM_OF_DRAWS = """
def expected_loss(weights, rows, labels, draws):
    return sum(np.log(1 + np.exp(-labels * (rows @ (weights + z)))).mean() for z in draws)
"""
WITHOUT_LABELS = """
def expected_loss(weights, rows, labels, draws):
    return np.log(1 + np.exp(-rows @ (weights + draws).T)).mean()
"""
WEIGHT = """
def release_weight(records, rho, lam, epsilon, rng):
    x, y = np.array(records, dtype=float).T
    n = len(x)
    {body}
"""
RELEASE = """
def release(records, rho, lam, epsilon, rng):
    table = np.array(records, dtype=float)
    n, d = table.shape
    {rows}
    best = (table[:, -1:] * rows).mean(axis=0) / lam
    scale = noise_scale(n, rho, lam, epsilon)
    {noise}
    return best + noise
"""
APPENDED = "rows = np.column_stack([table[:, :-1], np.ones(n)])"
CLIPPED = "rows = rows * np.minimum(1, rho / np.linalg.norm(rows, axis=1, keepdims=True))"
DIRECTION = """
direction = rng.normal(size=d)
direction /= np.linalg.norm(direction)
"""


def lines(*parts):
    return "\n".join(parts).strip().replace("\n\n", "\n").replace("\n", "\n    ")


def weight(body):
    return WEIGHT.format(body=lines(body))


def release(*noise, rows=(APPENDED, CLIPPED)):
    return RELEASE.format(rows=lines(*rows), noise=lines(*noise))


SPHERICAL = (DIRECTION, "noise = rng.gamma(d, scale) * direction")
NOT_CUT = weight("return (y * x).mean() / lam + rng.laplace(0, noise_scale(n, rho, lam, epsilon))")
LONGEST = weight("""
rho = np.abs(x).max()
return (y * x).mean() / lam + rng.laplace(0, noise_scale(n, rho, lam, epsilon))
""")
HALF = weight("""
return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, rho / (lam * n * epsilon))
""")
TWICE = weight("""
return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, 4 * rho / (lam * n * epsilon))
""")
NOISE_OF_THE_MEAN = weight("""
return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, 2 * rho / (n * epsilon))
""")
NOISE_OF_THE_SUM = weight("""
return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, 2 * rho / (lam * epsilon))
""")
NO_NOISE = weight("return (y * np.clip(x, -rho, rho)).mean() / lam")
TINY_NOISE = weight("return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, 1e-6)")
OWN_SEED = weight("""
rng = np.random.default_rng(1)
return (y * np.clip(x, -rho, rho)).mean() / lam + rng.laplace(0, noise_scale(n, rho, lam, epsilon))
""")
PER_WEIGHT = release("noise = rng.laplace(0, scale, d)")
PER_WEIGHT_WIDER = release("noise = rng.laplace(0, np.sqrt(d) * scale, d)")
BIAS_NOT_COUNTED = release(DIRECTION, "noise = rng.gamma(d - 1, scale) * direction")
NO_DIRECTION = release("noise = rng.gamma(d, scale) * np.ones(d) / np.sqrt(d)")
POSITIVE = release(
    "direction = rng.random(d)",
    "direction /= np.linalg.norm(direction)",
    "noise = rng.gamma(d, scale) * direction",
)
CLIPPED_BEFORE = release(
    *SPHERICAL,
    rows=(
        "rows = table[:, :-1]",
        "lengths = np.linalg.norm(rows, axis=1, keepdims=True)",
        "rows = rows * np.minimum(1, rho / np.maximum(lengths, 1e-9))",
        "rows = np.column_stack([rows, np.ones(n)])",
    ),
)
TINY_NOISE_ON_THREE = release(DIRECTION, "noise = 1e-6 * rng.gamma(d, scale) * direction")
TRUTH = release("noise = np.zeros(d)")

SECRETS = ["np.column_stack", "rng.laplace(0, noise_scale", "labels[:, None]"]
CHANGED = {"epsilon": 0.5, "rho": 1.0, "lam": 0.1}

RIGHT = {
    "the solution": {},
    "loops": {
        "costs": LOOPED_COSTS,
        "expected_loss": LOOPED_LOSS,
        "release_weight": LOOPED_WEIGHT,
        "release": LOOPED_RELEASE,
    },
    "other formulas": {
        "noise_scale": STEPWISE_SCALE,
        "expected_loss": EINSUM_LOSS,
        "release_weight": TWO_EXPONENTIALS,
    },
    "a length and a sign, and angles": {"release_weight": GAMMA_WEIGHT, "release": ANGLES},
}
# Tasks: 0 noise_scale, 1 costs, 2 expected_loss, 3 release_weight, 4 release (its length),
# 5 release (its direction).
WRONG = {
    "a record added": Wrong({"noise_scale": ADDED}, 6, 0, "answer", "may pull the other way"),
    "not over epsilon": Wrong(
        {"noise_scale": ONLY_SENSITIVITY}, 10, 0, "answer", "Divide it by eps"
    ),
    "times lambda": Wrong({"noise_scale": TIMES_LAMBDA}, 4, 0, "answer", "falls with lambda"),
    "the length for both": Wrong(
        {"costs": LENGTH_TWICE}, 10, 1, "answer", "sum of absolute values"
    ),
    "the worst change": Wrong({"costs": WORST_CASE}, 10, 1, "answer", "is the worst case"),
    "the largest weight": Wrong({"costs": LARGEST}, 10, 1, "answer", "take the sum"),
    "the average weights": Wrong(
        {"expected_loss": AVERAGE_WEIGHTS}, 10, 2, "answer", "average weights"
    ),
    "a sum of draws": Wrong({"expected_loss": SUM_OF_DRAWS}, 10, 2, "answer", "sum over the draws"),
    "no labels": Wrong({"expected_loss": WITHOUT_LABELS}, 10, 2, "answer", "labels were left out"),
    "rows not cut": Wrong({"release_weight": NOT_CUT}, 10, 3, "privacy", "are not cut"),
    "a bound from the data": Wrong(
        {"release_weight": LONGEST}, 10, 3, "privacy", "read off the data"
    ),
    "half the noise": Wrong({"release_weight": HALF}, 10, 3, "privacy", "half as wide"),
    "twice the noise": Wrong({"release_weight": TWICE}, 10, 3, "distribution", "twice as wide"),
    "noise of the mean": Wrong(
        {"release_weight": NOISE_OF_THE_MEAN}, 10, 3, "privacy", "of the mean"
    ),
    "noise of the sum": Wrong(
        {"release_weight": NOISE_OF_THE_SUM}, 10, 3, "distribution", "of a sum"
    ),
    "no noise": Wrong({"release_weight": NO_NOISE}, 10, 3, "rng", "in all 2,000 runs"),
    "next to no noise": Wrong({"release_weight": TINY_NOISE}, 10, 3, "privacy", "public bound"),
    "a seed of its own": Wrong({"release_weight": OWN_SEED}, 10, 3, "rng", "made inside"),
    "Laplace noise on each weight": Wrong(
        {"release": PER_WEIGHT}, 8, 4, "usefulness", "sqrt(3) times epsilon"
    ),
    "wider Laplace noise": Wrong(
        {"release": PER_WEIGHT_WIDER}, 8, 4, "usefulness", "longer or shorter"
    ),
    "the bias not counted": Wrong(
        {"release": BIAS_NOT_COUNTED}, 10, 4, "usefulness", "bias counted"
    ),
    "clipped before the 1": Wrong(
        {"release": CLIPPED_BEFORE}, 8, 4, "usefulness", "before clipping"
    ),
    "directions that are all positive": Wrong({"release": POSITIVE}, 8, 4, "privacy", "shape 3"),
    "one number for all weights": Wrong({"release": NO_DIRECTION}, 8, 4, "privacy", "shape 3"),
    "three weights with next to no noise": Wrong(
        {"release": TINY_NOISE_ON_THREE}, 8, 4, "privacy", "shape 3"
    ),
    "the weights as they are": Wrong({"release": TRUTH}, 8, 4, "rng", "length and a direction"),
}
