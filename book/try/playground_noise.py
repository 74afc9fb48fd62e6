# Noise of another shape
from dpnotes.audit import report

EPSILON = 1.0  # what is claimed


def count(people, rng):
    """As wide as Laplace noise, and without its long tails."""
    return sum(people) + rng.uniform(-2.45, 2.45)


pairs = [([1, 0, 1], [1, 0, 0])]

found = report(count, EPSILON, pairs, trials=10_000, rng=1)
print(found)
