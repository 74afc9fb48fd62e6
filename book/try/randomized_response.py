# Two coins, and the audit that looks for a lie.
import numpy as np

from dpnotes.audit import report

EPSILON = np.log(3)  # what is claimed


def answer(truth, rng):
    if rng.integers(2) == 0:
        return truth
    return bool(rng.integers(2) == 0)


coins = np.random.default_rng(7)
print([answer(True, coins) for _ in range(8)])

found = report(answer, EPSILON, [(True, False)], trials=20_000, rng=1)
print(found)
