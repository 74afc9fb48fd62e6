# One noisy step: shorten each gradient, add up a random batch, add noise
import numpy as np

from dpnotes.audit import report

NOISE, RATE, DELTA = 1.0, 0.5, 0.01
EPSILON = 2.1092  # what is claimed: ngd.cost(NOISE, RATE, 1, DELTA), rounded up


def noisy_sum(gradients, rng):
    batch = np.array(gradients)[rng.random(len(gradients)) < RATE]
    lengths = np.linalg.norm(batch, axis=1, keepdims=True)
    short = batch / np.maximum(lengths, 1)
    return short.sum(axis=0) + rng.normal(0, NOISE, 2)


print(noisy_sum([[3, 4], [0, 1]], np.random.default_rng(7)).round(2))

others = [[0, 0], [0, 0]]
pairs = [([*others, [9, 0]], [*others, [-9, 0]])]
found = report(noisy_sum, EPSILON, pairs, delta=DELTA, trials=5000, rng=1)
print(found)
