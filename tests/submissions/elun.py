"""Weights to be published: the scale of the noise, its cost, and two releases."""

from submissions import Wrong

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
LOOPED_WEIGHT = """
def release_weight(records, rho, lam, epsilon, rng):
    total = 0.0
    for x, y in records:
        total += y * max(-rho, min(rho, x))
    n = len(records)
    return total / (lam * n) + rng.laplace(scale=2 * rho / (lam * n * epsilon))
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

ADDED = """
def noise_scale(n, rho, lam, epsilon):
    return rho / (lam * n) / epsilon
"""
LENGTH_TWICE = """
def costs(change, scale):
    return np.full(2, np.linalg.norm(change) / scale)
"""
AVERAGE_WEIGHTS = """
def expected_loss(weights, rows, labels, draws):
    return np.log(1 + np.exp(-labels * (rows @ (weights + draws.mean(axis=0))))).mean()
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


def lines(*parts):
    return "\n".join(parts).strip().replace("\n\n", "\n").replace("\n", "\n    ")


def weight(body):
    return WEIGHT.format(body=lines(body))


def release(*noise, rows=(APPENDED, CLIPPED)):
    return RELEASE.format(rows=lines(*rows), noise=lines(*noise))


NOT_CUT = weight("return (y * x).mean() / lam + rng.laplace(0, noise_scale(n, rho, lam, epsilon))")
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
}
# Tasks: 0 noise_scale, 1 costs, 2 expected_loss, 3 release_weight, 4 release (its length),
# 5 release (its direction).
WRONG = {
    "a record added": Wrong({"noise_scale": ADDED}, 6, 0, "answer", "may pull the other way"),
    "the length for both": Wrong(
        {"costs": LENGTH_TWICE}, 10, 1, "answer", "sum of absolute values"
    ),
    "the average weights": Wrong(
        {"expected_loss": AVERAGE_WEIGHTS}, 10, 2, "answer", "average weights"
    ),
    "rows not cut": Wrong({"release_weight": NOT_CUT}, 10, 3, "privacy", "are not cut"),
    "the weights as they are": Wrong({"release": TRUTH}, 8, 4, "rng", "length and a direction"),
}
