# One private weight: fitted for the noise to come, then released with noise
from functools import cache

import numpy as np

from dpnotes.audit import report

EPSILON, LAM = 1.0, 0.5  # what is claimed, and the regularisation
SCALE = 2 / (LAM * 4) / EPSILON  # of the noise, for four records
DRAWS = np.random.default_rng(0).laplace(scale=SCALE, size=200)  # made once


@cache
def fit(records):  # of each, its label times its feature
    z, low, high = np.clip(records, -1, 1), -9.0, 9.0
    for _ in range(45):
        w = (low + high) / 2
        slope = LAM * w - (z / (1 + np.exp(np.outer(w + DRAWS, z)))).mean()
        low, high = (w, high) if slope < 0 else (low, w)
    return w


def private_weight(records, rng):
    return fit(tuple(records)) + rng.laplace(scale=SCALE)


pairs = [((1, 1, 1, 1), (1, 1, 1, -1)), ((0, 0, 0, 9), (0, 0, 0, -9))]
found = report(private_weight, EPSILON, pairs, trials=5000, rng=1)
print(found)
