# A count that forgets something
from dpnotes.audit import pairs_by_replacement, report

EPSILON = 1.0  # what is claimed


def visits(people, rng):
    """How often did they come, all together? Each came up to three times."""
    return sum(people) + rng.laplace(scale=1 / EPSILON)


people = [0, 1, 3]
pairs = pairs_by_replacement(people, values=[0, 1, 2, 3])

found = report(visits, EPSILON, pairs, trials=10_000, rng=1)
print(found)
