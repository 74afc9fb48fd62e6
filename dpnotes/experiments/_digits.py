"""Handwritten digits, even or odd, through private labels: what the pages on losses train on.

Five hundred random cosines of the pixels describe a digit, and the model is linear in those: small,
quick, and large enough to learn 1,200 labels by heart.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from dpnotes import label_privacy, training
from dpnotes import symmetric_loss as losses

COSINES, KNOWN = 500, 1_200
EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30, 40)


class Digits(NamedTuple):
    """The digits in random order: features as float32, labels +1 (even) and -1 (odd)."""

    x_known: np.ndarray
    y_known: np.ndarray
    x_unseen: np.ndarray
    y_unseen: np.ndarray


def load() -> Digits:
    """Return 1,200 digits to learn from and the 597 others, the same ones every time."""
    from sklearn import datasets

    digits = datasets.load_digits()
    parity = np.where(digits.target % 2 == 0, 1, -1)
    rng = np.random.default_rng(0)
    waves, shifts = rng.normal(size=(64, COSINES)) / 2, rng.uniform(0, 2 * np.pi, COSINES)
    cosines = np.cos(digits.data / 16 @ waves + shifts).astype(np.float32)
    order = rng.permutation(parity.size)
    known, unseen = order[:KNOWN], order[KNOWN:]
    return Digits(cosines[known], parity[known], cosines[unseen], parity[unseen])


def balanced(loss: losses.Loss) -> training.Risk:
    """Return the balanced risk of a loss, as the trainer wants it."""
    return partial(losses.ber_risk, loss=loss, check=False)


def reports(labels: np.ndarray, epsilon: float | None, seeds: int = 10) -> np.ndarray:
    """Return a row of private labels for each seed; None leaves them true."""
    if epsilon is None:
        return np.stack([labels] * seeds)
    return np.stack([label_privacy.privatize(labels, epsilon, rng=seed) for seed in range(seeds)])


def schedule(epochs: Sequence[int], batch_size: int = 200) -> training.Schedule:
    """Return how the pages train: small steps, no penalty, a look after each of these epochs."""
    return training.Schedule(
        epochs=epochs[-1],
        batch_size=batch_size,
        learning_rate=0.01,
        weight_decay=0.0,
        evaluate_after=tuple(epochs),
    )


def fit(
    digits: Digits,
    risks: Sequence[training.Risk],
    rows: np.ndarray,
    epochs: Sequence[int] = EPOCHS,
) -> np.ndarray:
    """Fit every risk to every row of labels; return the AUC on unseen digits.

    Shape (risks, rows, epochs).
    """
    from sklearn.metrics import roc_auc_score

    fitted = training.fit(
        training.linear(digits.x_known.shape[1]),
        torch.from_numpy(digits.x_known),
        torch.tensor(np.tile(rows, (len(risks), 1)), dtype=torch.float32),
        [risk for risk in risks for _ in rows],
        torch.from_numpy(digits.x_unseen),
        schedule(epochs),
        seed=0,
    )
    aucs = [[roc_auc_score(digits.y_unseen, run) for run in fitted.scores[e]] for e in epochs]
    return np.array(aucs).T.reshape(len(risks), len(rows), len(epochs))


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the first axis, and half the width of its 95 % interval."""
    return np.mean(values, axis=0), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def plus_minus(mean: float, half: float, sign: str = "") -> str:
    """Return a mean, and its half width rounded up, in one line of a table."""
    mean, half = round(float(mean), 2) + 0.0, math.ceil(100 * half) / 100
    return f"{mean:{sign}.2f}\u00a0±\u00a0{half:.2f}"
