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
LOOPED_CLIP = """
def clip(gradients, length):
    rows = []
    for row in gradients:
        size = np.sqrt((row**2).sum())
        rows.append(row * length / size if size > length else row)
    return np.array(rows)
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

AVERAGE = """
def gradients(weights, x, y):
    return x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(y)
"""
BY_COORDINATE = """
def clip(gradients, length):
    return np.clip(gradients, -length, length)
"""
ADDED = """
def step_delta(epsilon, noise, rate):
    t = np.linspace(-30, 30, 60_001)

    def density(m):
        return np.exp(-((t - m) ** 2) / (2 * noise**2)) / (noise * np.sqrt(2 * np.pi))

    p = (1 - rate) * density(0) + rate * density(1)
    return np.maximum(p - np.exp(epsilon) * density(0), 0).sum() * 0.001
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
OWN_SIZE = step("""
batch = rng.random(n) < rate
total = clip(g, length)[batch].sum() + rng.normal(0, noise * length)
return weight - step_size * total / max(batch.sum(), 1)
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

SECRETS = ["np.linalg.norm", "errors[:, None]"]
CHANGED = {"noise": 1.2, "rate": 0.4, "length": 0.8, "step_size": 1.0, "delta": 0.05}

RIGHT = {
    "the solution": {},
    "loops": {"gradients": LOOPED_GRADIENTS, "clip": LOOPED_CLIP, "noisy_step": LOOPED_STEP},
}
# Tasks: 0 gradients, 1 clip, 2 step_delta, 3 noisy_step (all records), 4 noisy_step (random batch),
# 5 descend (much noise), 6 descend (little noise).
WRONG = {
    "the average gradient": Wrong({"gradients": AVERAGE}, 4, 0, "answer", "This is the average"),
    "coordinate by coordinate": Wrong(
        {"clip": BY_COORDINATE}, 10, 1, "answer", "each coordinate is clipped"
    ),
    "a record added": Wrong({"step_delta": ADDED}, 10, 2, "answer", "for a record that is added"),
    "no clipping": Wrong({"noisy_step": UNCLIPPED}, 6, 3, "privacy", "step without clipping"),
    "the size that was drawn": Wrong(
        {"noisy_step": OWN_SIZE}, 9, 4, "distribution", "divided by the size of the batch"
    ),
    "one batch for all steps": Wrong(
        {"descend": SAME_BATCH}, 11, 6, "distribution", "have the same batch"
    ),
    "one noise for all steps": Wrong(
        {"descend": SAME_NOISE}, 11, 5, "distribution", "have the same noise"
    ),
}
