# Ten numbers, each of them cheap
from dpnotes.audit import report

EPSILON = 0.2  # what is claimed, for all of them


def ten_times(truth, rng):
    """The same bit, ten times, each time with noise for 0.2."""
    return truth + rng.laplace(scale=5, size=10)


pairs = [(0, 1)]

found = report(ten_times, EPSILON, pairs, trials=20_000, rng=1)
print(found)
