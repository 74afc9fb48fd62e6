# A search for the first large count, as it was once published
import numpy as np

from dpnotes.audit import report

EPSILON = 1.0  # what is claimed, if each count moves by at most 1
LINE = 0.0


def first_above(counts, rng):
    """Noise on the line, and none on the counts."""
    line = LINE + rng.laplace(scale=2 / EPSILON)
    above = np.array(counts) >= line
    return int(above.argmax()) if above.any() else None


pairs = [([0, 1, 0], [1, 0, 1])]
found = report(first_above, EPSILON, pairs, trials=10_000, rng=1)
print(found)
