# One bit for each category, all of them flipped now and then
import numpy as np

from dpnotes.audit import pairs_in_domain, report

EPSILON = 1.0  # what is claimed
P, Q = 0.5, 1 / (np.exp(EPSILON) + 1)  # a one stays, a zero becomes one


def perturb(category, rng):
    bits = np.arange(4) == category
    return rng.random(4) < np.where(bits, P, Q)


print(perturb(2, np.random.default_rng(7)).astype(int))

found = report(perturb, EPSILON, pairs_in_domain(range(4)), trials=5000, rng=1)
print(found)
