# A count with Laplace noise, and its audit
import numpy as np

from dpnotes.audit import pairs_by_replacement, report

EPSILON = 1.0  # what is claimed


def count(answers, rng):
    return sum(answers) + rng.laplace(scale=1 / EPSILON)


answers = [1, 0, 1, 1, 0]
released = count(answers, np.random.default_rng(7))
print(f"true {sum(answers)}, released {released:.2f}")

pairs = pairs_by_replacement(answers, values=[0, 1])
found = report(count, EPSILON, pairs, trials=5000, rng=1)
print(found)
