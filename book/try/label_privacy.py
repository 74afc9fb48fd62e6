# A label that is kept, or drawn anew from all classes
import numpy as np

from dpnotes.audit import report

EPSILON, CLASSES = 1.0, 5  # what is claimed
KEPT = np.expm1(EPSILON) / (np.exp(EPSILON) + CLASSES - 1)


def privatize(label, rng):
    return label if rng.random() < KEPT else int(rng.integers(CLASSES))


coins = np.random.default_rng(7)
print([privatize(3, coins) for _ in range(12)])

found = report(privatize, EPSILON, [(3, 4)], trials=20_000, rng=1)
print(found)
