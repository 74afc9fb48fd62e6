# The AUC of a test set, with noise that follows the size of its classes
import numpy as np

from dpnotes import private_auc as pa
from dpnotes.audit import report

EPSILON, BETA = 1.0, 0.25  # what is claimed, and how gently the noise changes
FACTOR = pa.student_t_scale(EPSILON, BETA, 3)


def noisy_auc(labels, rng):  # 1 for ill, from the lowest score to the highest
    ill, well = labels.count(1), labels.count(0)
    value = pa.auc(labels, range(len(labels))) if ill and well else 0.5
    smooth = pa.auc_smooth_sensitivity(ill, well, BETA)
    return value + FACTOR * smooth * rng.standard_t(3)


patients, coins = [0, 0, 1, 0, 0, 1, 1], np.random.default_rng(7)
print(np.round([noisy_auc(patients, coins) for _ in range(5)], 2))

pairs = [([0, 1, 0, 0, 1], [0, 0, 0, 0, 1]), ([1, 0, 0, 0], [0, 0, 0, 0])]
found = report(noisy_auc, EPSILON, pairs, trials=5000, rng=1)
print(found)
