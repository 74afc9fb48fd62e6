# Teachers vote, and only the noisy winner is told
import numpy as np

from dpnotes.audit import report

EPSILON = 1.0  # what is claimed, if one teacher changes its vote


def winner(votes, rng):
    noisy = np.array(votes) + rng.laplace(scale=2 / EPSILON, size=len(votes))
    return int(noisy.argmax())


coins = np.random.default_rng(7)
print([winner([6, 5, 1], coins) for _ in range(12)])

pairs = [([6, 5, 1], [5, 6, 1]), ([6, 5, 1], [5, 5, 2])]
found = report(winner, EPSILON, pairs, trials=10_000, rng=1)
print(found)
