# Ten noisy answers, and what all of them cost
import numpy as np

from dpnotes.audit import report

EACH = 0.2  # what one answer costs
EPSILON = 10 * EACH  # what is claimed for all


def ten_answers(truth, rng):
    return truth + rng.laplace(scale=1 / EACH, size=10)


print(ten_answers(3, np.random.default_rng(7)).round(1))

found = report(ten_answers, EPSILON, [(3, 4)], trials=20_000, rng=1)
print(found.verdict, f"(at least {found.lower_bound:.2f})")
