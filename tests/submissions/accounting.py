"""A budget for a school: Gaussian and Laplace noise, losses that are added, and a clipped mean."""

from submissions import Wrong

ONE_THEN_ROOT = """
def gaussian_deviation(answers, epsilon, delta):
    Phi = scipy.special.ndtr
    f = lambda s: Phi(0.5 / s - epsilon * s) - np.exp(epsilon) * Phi(-0.5 / s - epsilon * s) - delta
    return scipy.optimize.brentq(f, 0.01, 1000) * answers**0.5
"""
TWO_ROWS = """
def delta_together(costs, epsilon):
    p, q = np.ones(1), np.ones(1)
    for cost in costs:
        keep = np.exp(cost) / (1 + np.exp(cost))
        p, q = np.kron(p, [keep, 1 - keep]), np.kron(q, [1 - keep, keep])
    return np.clip(p - np.exp(epsilon) * q, 0, None).sum()
"""
BY_NAME = """
def better_deviation(counts, changed, epsilon, delta):
    scale = changed / epsilon
    sigma = gaussian_deviation(changed, epsilon, delta)
    if np.sqrt(2 * scale**2) < sigma:
        return np.sqrt(2) * scale
    return sigma
"""
STANDARD = """
def gaussian_count(answers, questions, sigma, rng):
    noise = sigma * rng.standard_normal(questions)
    return float(np.sum(answers) + noise.sum())
"""

TEXTBOOK = """
def gaussian_deviation(answers, epsilon, delta):
    return np.sqrt(2 * answers * np.log(1.25 / delta)) / epsilon
"""
TAIL = """
def delta_together(costs, epsilon):
    losses, chances = np.zeros(1), np.ones(1)
    for cost in costs:
        keep = 1 / (1 + np.exp(-cost))
        losses = np.concatenate([losses + cost, losses - cost])
        chances = np.concatenate([chances * keep, chances * (1 - keep)])
    return chances[losses > epsilon].sum()
"""
BY_COUNTS = """
def better_deviation(counts, changed, epsilon, delta):
    return min(np.sqrt(2) * counts / epsilon, gaussian_deviation(counts, epsilon, delta))
"""
FILTERED = """
def private_mean(values, bound, epsilon, rng):
    kept = [value for value in values if 0 <= value <= bound]
    mean = np.mean(kept) if kept else 0
    return mean + rng.laplace(scale=bound / (len(values) * epsilon))
"""
SCALE_OF_ONE = """
def private_mean(values, bound, epsilon, rng):
    return np.clip(values, 0, bound).mean() + rng.laplace(scale=1 / (len(values) * epsilon))
"""
HARDLY_ANY = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + 1e-6 * rng.normal()
"""

SECRETS = ["concatenate", "np.clip", "rng.normal"]
CHANGED = {"epsilon": 0.5, "delta": 1e-6, "questions": 6, "bound": 90.0}

RIGHT = {
    "the solution": {},
    "one answer, and the root": {
        "gaussian_deviation": ONE_THEN_ROOT,
        "delta_together": TWO_ROWS,
        "better_deviation": BY_NAME,
        "gaussian_count": STANDARD,
    },
}
# Tasks: 0 gaussian_deviation, 1 delta_together, 2 better_deviation, 3 private_mean within the
# bounds, 4 private_mean beyond, 5 gaussian_count.
WRONG = {
    "the textbook recipe": Wrong(
        {"gaussian_deviation": TEXTBOOK}, 8, 0, "answer", "recipe of the textbooks"
    ),
    "the tail of the loss": Wrong(
        {"delta_together": TAIL}, 10, 1, "answer", "probability that the loss is above"
    ),
    "the number of counts": Wrong(
        {"better_deviation": BY_COUNTS}, 10, 2, "answer", "changes some of the counts only"
    ),
    "left out": Wrong({"private_mean": FILTERED}, 10, 4, "distribution", "is left out"),
    "the scale for values up to 1": Wrong(
        {"private_mean": SCALE_OF_ONE}, 8, 3, "privacy", "between 0 and 1"
    ),
    "hardly any noise": Wrong({"gaussian_count": HARDLY_ANY}, 10, 5, "privacy", "far too small"),
}
