"""One noisy step of gradient descent: gradients, the clip, its cost, the step and several steps."""

from submissions import Wrong

LOOPED_GRADIENTS = """
def gradients(weights, x, y):
    rows = []
    for features, label in zip(x, y):
        score = sum(w * f for w, f in zip(weights, features))
        rows.append([(1 / (1 + np.exp(-score)) - label) * f for f in features])
    return np.array(rows)
"""
EINSUM_GRADIENTS = """
def gradients(weights, x, y):
    p = np.exp(x @ weights) / (1 + np.exp(x @ weights))
    return np.einsum("n,nd->nd", p - y, x)
"""
LOOPED_CLIP = """
def clip(gradients, length):
    rows = []
    for row in gradients:
        size = np.sqrt((row**2).sum())
        rows.append(row * length / size if size > length else row)
    return np.array(rows)
"""
CLIP_BY_MAXIMUM = """
def clip(gradients, length):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(1, norms / length)
"""
CLOSED_DELTA = """
def step_delta(epsilon, noise, rate):
    # What counts lies above a point, where P = exp(epsilon) Q.
    from math import erfc

    b = (1 - rate) * (1 - np.exp(epsilon)) * np.exp(0.5 / noise**2)
    root = np.sqrt(b**2 + 4 * rate**2 * np.exp(epsilon))
    point = noise**2 * np.log((root - b) / (2 * rate))

    def above(moved):
        tails = [erfc((point - m) / noise / 2**0.5) / 2 for m in (0, moved)]
        return (1 - rate) * tails[0] + rate * tails[1]

    return above(1) - np.exp(epsilon) * above(-1)
"""
CELLS_DELTA = """
def step_delta(epsilon, noise, rate):
    from math import erf

    edges = np.arange(-10_000, 10_001) * 0.003
    normal = [np.array([erf((t - m) / noise / 2**0.5) / 2 for t in edges]) for m in (0, 1, -1)]
    none, up, down = map(np.diff, normal)
    p, q = (1 - rate) * none + rate * up, (1 - rate) * none + rate * down
    return float(np.clip(p - np.exp(epsilon) * q, 0, None).sum())
"""
LOOPED_STEP = """
def noisy_step(records, weight, rate, noise, length, step_size, rng):
    total = 0.0
    for x, y in records:
        if rng.random() < rate:
            g = (1 / (1 + np.exp(-weight * x)) - y) * x
            total += max(-length, min(length, g))
    total += noise * length * rng.standard_normal()
    return float(weight - step_size * total / (rate * len(records)))
"""
BINOMIAL_STEP = """
def noisy_step(records, weight, rate, noise, length, step_size, rng):
    records = np.asarray(records, dtype=float)
    g = np.clip(gradients(np.array([weight]), records[:, :1], records[:, 1]), -length, length)
    coins = rng.binomial(1, rate, size=len(records))
    mean = (coins @ g)[0] / (rate * len(records))
    return weight - step_size * (mean + rng.normal(0, noise * length / (rate * len(records))))
"""
TRAIN_IN_ONE = """
def descend(records, steps, rate, noise, length, step_size, rng):
    x, y = np.array(records, dtype=float).T
    w = 0.0
    for z in rng.normal(0, noise * length, steps):
        g = np.clip((1 / (1 + np.exp(-w * x)) - y) * x, -length, length)
        w -= step_size * ((g * (rng.random(len(x)) < rate)).sum() + z) / (rate * len(x))
    return w
"""

AVERAGE = """
def gradients(weights, x, y):
    return x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(y)
"""
WRONG_SIGN = """
def gradients(weights, x, y):
    return (y - 1 / (1 + np.exp(-x @ weights)))[:, None] * x
"""
BY_COORDINATE = """
def clip(gradients, length):
    return np.clip(gradients, -length, length)
"""
DIVIDED_BY_ZERO = """
def clip(gradients, length):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / norms * np.minimum(norms, length)
"""
ADDED = """
def step_delta(epsilon, noise, rate):
    t = np.linspace(-30, 30, 60_001)

    def density(m):
        return np.exp(-((t - m) ** 2) / (2 * noise**2)) / (noise * np.sqrt(2 * np.pi))

    p = (1 - rate) * density(0) + rate * density(1)
    return np.maximum(p - np.exp(epsilon) * density(0), 0).sum() * 0.001
"""
MOVED_TWICE = """
def step_delta(epsilon, noise, rate):
    t = np.linspace(-30, 30, 60_001)

    def density(m):
        return np.exp(-((t - m) ** 2) / (2 * noise**2)) / (noise * np.sqrt(2 * np.pi))

    p = (1 - rate) * density(0) + rate * density(2)
    q = (1 - rate) * density(0) + rate * density(-2)
    return np.maximum(p - np.exp(epsilon) * q, 0).sum() * 0.001
"""
STEP = """
def noisy_step(records, weight, rate, noise, length, step_size, rng):
    x, y = np.array(records, dtype=float).T
    n = len(x)
    g = gradients(np.array([weight]), x[:, None], y)
    {body}
"""


def step(body):
    return STEP.format(body=body.strip().replace("\n", "\n    "))


UNCLIPPED = step("""
total = g[rng.random(n) < rate].sum() + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
SUM_CLIPPED = step("""
total = np.clip(g[rng.random(n) < rate].sum(), -length, length) + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
NO_NOISE = step("""
return weight - step_size * clip(g, length)[rng.random(n) < rate].sum() / (rate * n)
""")
TINY_NOISE = step("""
total = clip(g, length)[rng.random(n) < rate].sum() + rng.normal(0, 1e-6)
return weight - step_size * total / (rate * n)
""")
WITHOUT_LENGTH = step("""
total = clip(g, length)[rng.random(n) < rate].sum() + rng.normal(0, noise)
return weight - step_size * total / (rate * n)
""")
TWICE = step("""
total = clip(g, length)[rng.random(n) < rate].sum() + rng.normal(0, 2 * noise * length)
return weight - step_size * total / (rate * n)
""")
OWN_SIZE = step("""
batch = rng.random(n) < rate
total = clip(g, length)[batch].sum() + rng.normal(0, noise * length)
return weight - step_size * total / max(batch.sum(), 1)
""")
FIXED_SIZE = step("""
batch = rng.choice(n, size=round(rate * n), replace=False)
total = clip(g, length)[batch].sum() + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
EMPTY_STANDS_STILL = step("""
batch = rng.random(n) < rate
if not batch.any():
    return weight
total = clip(g, length)[batch].sum() + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
OWN_SEED = step("""
rng = np.random.default_rng(0)
total = clip(g, length)[rng.random(n) < rate].sum() + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
NOISE_SEEN = step("""
# The bound is read off the data: the longest gradient.
length = np.abs(g).max()
total = g[rng.random(n) < rate].sum() + rng.normal(0, noise * length)
return weight - step_size * total / (rate * n)
""")
TRAIN = """
def descend(records, steps, rate, noise, length, step_size, rng):
    x, y = np.array(records, dtype=float).T
    w, n = 0.0, len(x)
    batch, z = rng.random(n) < rate, rng.normal(0, noise * length)
    for _ in range(steps):
        {change}
        g = clip(gradients(np.array([w]), x[:, None], y), length)
        w = w - step_size * (g[batch].sum() + z) / (rate * n)
    return w
"""
SAME_BATCH = TRAIN.format(change="z = rng.normal(0, noise * length)")
SAME_NOISE = TRAIN.format(change="batch = rng.random(n) < rate")
MORE_NOISE = """
def descend(records, steps, rate, noise, length, step_size, rng):
    weight = 0.0
    for _ in range(steps):
        weight = noisy_step(records, weight, rate, noise * np.sqrt(steps), length, step_size, rng)
    return weight
"""
FROM_THE_START = """
def descend(records, steps, rate, noise, length, step_size, rng):
    weight = 0.0
    for _ in range(steps):
        weight += noisy_step(records, 0.0, rate, noise, length, step_size, rng)
    return weight
"""
LAST_STEP_ONLY = """
def descend(records, steps, rate, noise, length, step_size, rng):
    for _ in range(steps):
        weight = noisy_step(records, 0.0, rate, noise, length, step_size, rng)
    return weight
"""

SECRETS = ["np.linalg.norm", "errors[:, None]"]
CHANGED = {"noise": 1.2, "rate": 0.4, "length": 0.8, "step_size": 1.0, "delta": 0.05}

RIGHT = {
    "the solution": {},
    "loops": {"gradients": LOOPED_GRADIENTS, "clip": LOOPED_CLIP, "noisy_step": LOOPED_STEP},
    "other formulas": {
        "gradients": EINSUM_GRADIENTS,
        "clip": CLIP_BY_MAXIMUM,
        "step_delta": CLOSED_DELTA,
    },
    "coins as numbers, and noise on the average": {
        "noisy_step": BINOMIAL_STEP,
        "step_delta": CELLS_DELTA,
    },
    "a training in one piece": {"descend": TRAIN_IN_ONE},
}
# Tasks: 0 gradients, 1 clip, 2 step_delta, 3 noisy_step (all records), 4 noisy_step (random batch),
# 5 descend (much noise), 6 descend (little noise).
WRONG = {
    "the average gradient": Wrong({"gradients": AVERAGE}, 4, 0, "answer", "This is the average"),
    "the other sign": Wrong({"gradients": WRONG_SIGN}, 4, 0, "answer", "p - y, not y - p"),
    "coordinate by coordinate": Wrong(
        {"clip": BY_COORDINATE}, 10, 1, "answer", "each coordinate is clipped"
    ),
    "a row of zeros divided by 0": Wrong({"clip": DIVIDED_BY_ZERO}, 5, 1, "answer", "row of zeros"),
    "a record added": Wrong({"step_delta": ADDED}, 10, 2, "answer", "for a record that is added"),
    "a pair moved by 2": Wrong({"step_delta": MOVED_TWICE}, 10, 2, "answer", "from -1 to 1"),
    "no clipping": Wrong({"noisy_step": UNCLIPPED}, 6, 3, "privacy", "step without clipping"),
    "the sum clipped": Wrong(
        {"noisy_step": SUM_CLIPPED}, 6, 3, "distribution", "Here the sum was clipped"
    ),
    "no noise": Wrong({"noisy_step": NO_NOISE}, 6, 3, "rng", "one normal number, in every step"),
    "next to no noise": Wrong(
        {"noisy_step": TINY_NOISE}, 6, 3, "privacy", "deviation noise * length to their sum"
    ),
    "noise without the length": Wrong(
        {"noisy_step": WITHOUT_LENGTH}, 6, 3, "distribution", "noise * length, not noise"
    ),
    "twice the noise": Wrong({"noisy_step": TWICE}, 6, 3, "distribution", "twice the noise"),
    "a bound from the data": Wrong({"noisy_step": NOISE_SEEN}, 6, 3, "privacy", "Clip every"),
    "the size that was drawn": Wrong(
        {"noisy_step": OWN_SIZE}, 8, 4, "distribution", "divided by the size of the batch"
    ),
    "batches of one size": Wrong(
        {"noisy_step": FIXED_SIZE}, 8, 4, "distribution", "all have the same size"
    ),
    "an empty batch stands still": Wrong(
        {"noisy_step": EMPTY_STANDS_STILL}, 10, 4, "distribution", "An empty batch must be"
    ),
    "a seed of its own": Wrong({"noisy_step": OWN_SEED}, 6, 3, "rng", "made inside"),
    "one batch for all steps": Wrong(
        {"descend": SAME_BATCH}, 11, 6, "distribution", "have the same batch"
    ),
    "one noise for all steps": Wrong(
        {"descend": SAME_NOISE}, 11, 5, "distribution", "have the same noise"
    ),
    "more noise for more steps": Wrong(
        {"descend": MORE_NOISE}, 11, 5, "distribution", "more noise than was asked for"
    ),
    "always from the start": Wrong(
        {"descend": FROM_THE_START}, 10, 5, "distribution", "at the weight 0 in every step"
    ),
    "the last step alone": Wrong(
        {"descend": LAST_STEP_ONLY}, 10, 5, "distribution", "This is one step"
    ),
}
