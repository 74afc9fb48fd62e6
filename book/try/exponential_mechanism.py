# The best of a list, drawn by its score
import numpy as np

from dpnotes.audit import report

EPSILON = 1.0  # what is claimed


def choose(scores, rng):
    weights = np.exp(EPSILON * np.array(scores) / 2)
    return int(rng.choice(len(scores), p=weights / weights.sum()))


coins = np.random.default_rng(7)
print([choose([3, 2, 0], coins) for _ in range(10)])

pairs = [([3, 2, 0], [2, 3, 1])]  # one record moves each score by at most 1
found = report(choose, EPSILON, pairs, trials=10_000, rng=1)
print(found)
