# An average over however many there are
from dpnotes.audit import pairs_by_removal, report

EPSILON = 1.0  # what is claimed, with a record more or less


def average(answers, rng):
    """The share of yes, with noise for one answer that changes."""
    noise = rng.laplace(scale=1 / (EPSILON * len(answers)))
    return sum(answers) / len(answers) + noise, len(answers)


pairs = pairs_by_removal([1, 0, 1, 1])

found = report(average, EPSILON, pairs, trials=5000, rng=1)
print(found)
