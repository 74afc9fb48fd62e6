# One private weight: fitted for the noise to come, and told with fresh noise
from functools import cache

import numpy as np

from dpnotes.audit import report

EPSILON, LAM = 1.0, 0.5  # what is claimed, and the regularisation
SCALE = 2 / (LAM * 4) / EPSILON  # of the noise, for four records
DRAWS = np.random.default_rng(0).laplace(scale=SCALE, size=200)  # made once


@cache
def fit(margins):  # of each record, its label times its feature
    z, low, high = np.clip(margins, -1, 1), -9.0, 9.0
    for _ in range(45):
        w = (low + high) / 2
        slope = LAM * w - (z / (1 + np.exp(np.outer(w + DRAWS, z)))).mean()
        low, high = (w, high) if slope < 0 else (low, w)
    return w


def private_weight(margins, rng):
    return fit(margins) + rng.laplace(scale=SCALE)


pairs = [((1, 1, 1, 1), (1, 1, 1, -1)), ((0, 0, 0, 9), (0, 0, 0, -9))]
print(report(private_weight, EPSILON, pairs, trials=5000, rng=1))
