"""A budget for a school: Gaussian and Laplace noise, losses that are added, and a clipped mean."""

from submissions import Wrong

BY_BISECTION = """
def gaussian_deviation(answers, epsilon, delta):
    def phi(x):
        return 0.5 * scipy.special.erfc(-x / np.sqrt(2))

    low, high = 0.1, 1e5
    for _ in range(200):
        sigma = (low + high) / 2
        mu = answers**0.5 / sigma
        found = phi(mu / 2 - epsilon / mu) - np.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        low, high = (sigma, high) if found > delta else (low, sigma)
    return high
"""
ONE_THEN_ROOT = """
def gaussian_deviation(answers, epsilon, delta):
    Phi = scipy.special.ndtr
    f = lambda s: Phi(0.5 / s - epsilon * s) - np.exp(epsilon) * Phi(-0.5 / s - epsilon * s) - delta
    return scipy.optimize.brentq(f, 0.01, 1000) * answers**0.5
"""
PRODUCTS = """
def delta_together(costs, epsilon):
    import itertools
    delta = 0
    for signs in itertools.product([1, -1], repeat=len(costs)):
        loss, chance = 0, 1
        for sign, cost in zip(signs, costs):
            loss += sign * cost
            chance *= 1 / (1 + np.exp(-sign * cost))
        if loss > epsilon:
            delta += chance * (1 - np.exp(epsilon - loss))
    return delta
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
LOOP = """
def private_mean(values, bound, epsilon, rng):
    total = 0
    for value in values:
        total += max(0, min(value, bound))
    return (total + rng.laplace(0, bound / epsilon)) / len(values)
"""
EXPONENTIALS = """
def private_mean(values, bound, epsilon, rng):
    n = len(values)
    values = np.where(np.array(values) > bound, bound, np.maximum(values, 0))
    up, down = rng.exponential(bound / (n * epsilon), 2)
    return float(np.average(values) + up - down)
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
ADDED_UP = """
def gaussian_deviation(answers, epsilon, delta):
    def excess(sigma):
        near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return scipy.special.ndtr(near) - np.exp(epsilon) * scipy.special.ndtr(far) - delta

    return answers * scipy.optimize.brentq(excess, 0.01, 1000)
"""
SHARES = """
def gaussian_deviation(answers, epsilon, delta):
    eps, delta = epsilon / answers, delta / answers

    def excess(sigma):
        near, far = 0.5 / sigma - eps * sigma, -0.5 / sigma - eps * sigma
        return scipy.special.ndtr(near) - np.exp(eps) * scipy.special.ndtr(far) - delta

    return scipy.optimize.brentq(excess, 0.01, 1e5)
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
EQUAL_COSTS = """
def delta_together(costs, epsilon):
    k, each = len(costs), np.mean(costs)
    true = np.arange(k + 1)
    keep = 1 / (1 + np.exp(-each))
    chances = scipy.special.binom(k, true) * keep**true * (1 - keep) ** (k - true)
    return chances @ np.maximum(1 - np.exp(epsilon - (2 * true - k) * each), 0)
"""
BY_COUNTS = """
def better_deviation(counts, changed, epsilon, delta):
    return min(np.sqrt(2) * counts / epsilon, gaussian_deviation(counts, epsilon, delta))
"""
SCALE = """
def better_deviation(counts, changed, epsilon, delta):
    return min(changed / epsilon, gaussian_deviation(changed, epsilon, delta))
"""
NOT_CLIPPED = """
def private_mean(values, bound, epsilon, rng):
    return np.mean(values) + rng.laplace(scale=bound / (len(values) * epsilon))
"""
MEAN_CLIPPED = """
def private_mean(values, bound, epsilon, rng):
    mean = min(max(np.mean(values), 0), bound)
    return mean + rng.laplace(scale=bound / (len(values) * epsilon))
"""
FILTERED = """
def private_mean(values, bound, epsilon, rng):
    kept = [value for value in values if 0 <= value <= bound]
    mean = np.mean(kept) if kept else 0
    return mean + rng.laplace(scale=bound / (len(values) * epsilon))
"""
ONLY_ABOVE = """
def private_mean(values, bound, epsilon, rng):
    mean = np.minimum(values, bound).mean()
    return mean + rng.laplace(scale=bound / (len(values) * epsilon))
"""
SCALE_OF_THE_SUM = """
def private_mean(values, bound, epsilon, rng):
    return np.clip(values, 0, bound).mean() + rng.laplace(scale=bound / epsilon)
"""
SCALE_OF_ONE = """
def private_mean(values, bound, epsilon, rng):
    return np.clip(values, 0, bound).mean() + rng.laplace(scale=1 / (len(values) * epsilon))
"""
TWICE_THE_NOISE = """
def private_mean(values, bound, epsilon, rng):
    scale = 2 * bound / (len(values) * epsilon)
    return np.clip(values, 0, bound).mean() + rng.laplace(scale=scale)
"""
BOUND_FROM_THE_DATA = """
def private_mean(values, bound, epsilon, rng):
    values = np.clip(values, 0, bound)
    return values.mean() + rng.laplace(scale=max(values) / (len(values) * epsilon))
"""
CLIPPED_AFTERWARDS = """
def private_mean(values, bound, epsilon, rng):
    mean = np.clip(values, 0, bound).mean()
    return np.clip(mean + rng.laplace(scale=bound / (len(values) * epsilon)), 0, bound)
"""
OWN_SEED = """
def private_mean(values, bound, epsilon, rng):
    rng = np.random.default_rng(42)
    return np.clip(values, 0, bound).mean() + rng.laplace(scale=bound / len(values) / epsilon)
"""
TRUTH = """
def private_mean(values, bound, epsilon, rng):
    return np.clip(values, 0, bound).mean()
"""
FOR_ONE_QUESTION = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + rng.normal(scale=sigma)
"""
VARIANCE = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + rng.normal(0, questions * sigma**2)
"""
TIMES = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + rng.normal(0, questions * sigma)
"""
LAPLACE = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + rng.laplace(0, np.sqrt(questions) * sigma)
"""
HARDLY_ANY = """
def gaussian_count(answers, questions, sigma, rng):
    return sum(answers) + 1e-6 * rng.normal()
"""
WHOLE = """
def gaussian_count(answers, questions, sigma, rng):
    return max(0, round(sum(answers) + rng.normal(scale=np.sqrt(questions) * sigma)))
"""

SECRETS = ["concatenate", "np.clip", "rng.normal"]
CHANGED = {"epsilon": 0.5, "delta": 1e-6, "questions": 6, "bound": 90.0}

RIGHT = {
    "the solution": {},
    "bisection and loops": {
        "gaussian_deviation": BY_BISECTION,
        "delta_together": PRODUCTS,
        "private_mean": LOOP,
    },
    "one answer, and the root": {
        "gaussian_deviation": ONE_THEN_ROOT,
        "delta_together": TWO_ROWS,
        "better_deviation": BY_NAME,
        "gaussian_count": STANDARD,
    },
    "two exponential draws": {"private_mean": EXPONENTIALS},
}
# Tasks: 0 gaussian_deviation, 1 delta_together, 2 better_deviation, 3 private_mean within the
# bounds, 4 private_mean beyond, 5 gaussian_count.
WRONG = {
    "the textbook recipe": Wrong(
        {"gaussian_deviation": TEXTBOOK}, 8, 0, "answer", "recipe of the textbooks"
    ),
    "deviations added up": Wrong(
        {"gaussian_deviation": ADDED_UP}, 8, 0, "answer", "root of their number"
    ),
    "a share for each answer": Wrong({"gaussian_deviation": SHARES}, 8, 0, "answer", "cost less"),
    "the tail of the loss": Wrong(
        {"delta_together": TAIL}, 10, 1, "answer", "probability that the loss is above"
    ),
    "costs taken for equal": Wrong(
        {"delta_together": EQUAL_COSTS}, 10, 1, "answer", "if all costs are equal"
    ),
    "the number of counts": Wrong(
        {"better_deviation": BY_COUNTS}, 10, 2, "answer", "changes some of the counts only"
    ),
    "scale for deviation": Wrong(
        {"better_deviation": SCALE}, 10, 2, "answer", "takes the scale of Laplace noise"
    ),
    "not clipped": Wrong({"private_mean": NOT_CLIPPED}, 10, 4, "privacy", "are not clipped"),
    "the mean clipped": Wrong(
        {"private_mean": MEAN_CLIPPED}, 10, 4, "privacy", "and not each value"
    ),
    "left out": Wrong({"private_mean": FILTERED}, 10, 4, "distribution", "is left out"),
    "clipped above alone": Wrong(
        {"private_mean": ONLY_ABOVE}, 10, 4, "privacy", "below 0 are not clipped"
    ),
    "the scale of a sum": Wrong(
        {"private_mean": SCALE_OF_THE_SUM}, 8, 3, "distribution", "n times too large"
    ),
    "the scale for values up to 1": Wrong(
        {"private_mean": SCALE_OF_ONE}, 8, 3, "privacy", "between 0 and 1"
    ),
    "twice the noise": Wrong(
        {"private_mean": TWICE_THE_NOISE}, 8, 3, "distribution", "twice as much noise"
    ),
    "a bound from the data": Wrong(
        {"private_mean": BOUND_FROM_THE_DATA}, 8, 3, "rng", "and always add it"
    ),
    "clipped afterwards": Wrong(
        {"private_mean": CLIPPED_AFTERWARDS}, 8, 3, "distribution", "do not change the sum"
    ),
    "a seed of its own": Wrong({"private_mean": OWN_SEED}, 8, 3, "rng", "in all 2,500 runs"),
    "the truth": Wrong({"private_mean": TRUTH}, 8, 3, "rng", "in all 2,500 runs"),
    "noise for one question": Wrong(
        {"gaussian_count": FOR_ONE_QUESTION}, 10, 5, "distribution", "for one question"
    ),
    "the variance": Wrong({"gaussian_count": VARIANCE}, 10, 5, "distribution", "not its variance"),
    "noise that grows with the number": Wrong(
        {"gaussian_count": TIMES}, 10, 5, "distribution", "root of the number of questions"
    ),
    "Laplace noise": Wrong({"gaussian_count": LAPLACE}, 10, 5, "distribution", "have Laplace"),
    "hardly any noise": Wrong({"gaussian_count": HARDLY_ANY}, 10, 5, "privacy", "far too small"),
    "rounded and cut off": Wrong(
        {"gaussian_count": WHOLE}, 10, 5, "distribution", "neither round nor clip"
    ),
}
