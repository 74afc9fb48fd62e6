# An answer that is true rather often
import math

from dpnotes.audit import report

EPSILON = 1.0  # what is claimed
KEPT = math.e / (1 + math.e)  # how often the truth is told


def answer(truth, rng):
    return truth if rng.random() < KEPT else not truth


pairs = [(True, False)]

found = report(answer, EPSILON, pairs, trials=20_000, rng=1)
print(found)
