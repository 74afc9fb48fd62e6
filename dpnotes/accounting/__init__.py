"""Composition: what many answers about the same people cost together.

Each function takes the cost of a single answer, the number of answers and a delta, and returns the
epsilon of all answers together. Bounds for one kind of mechanism are tighter than those that hold
for all mechanisms of the same epsilon:

    compose                     any mechanisms of given epsilons
    compose_laplace             numbers with Laplace noise
    compose_gaussian            numbers with Gaussian noise
    compose_bounded_range       the exponential mechanism and its like
    compose_subsampled_gaussian sums over random batches with Gaussian noise
    epsilon_from_rdp, epsilon_from_zcdp    mechanisms whose Rényi divergence is known

All hold for adaptive questions, which depend on earlier answers, unless a function says otherwise.

`calibrate` goes the other way: it finds the least noise for a cost.

A cost that does not depend on the records is a `PrivacyCost` and may be published. A cost computed
from the records is a `SecretCost`, and no function here turns one into the other.

Laplace noise and random batches need Google's dp-accounting: ``pip install dpnotes[accounting]``.
"""

from dpnotes.accounting._calibrate import calibrate
from dpnotes.accounting.bounded_range import compose_bounded_range
from dpnotes.accounting.composition import (
    compose,
    compose_gaussian,
    compose_laplace,
    compose_subsampled_gaussian,
    gaussian_cost,
)
from dpnotes.accounting.costs import PrivacyCost, SecretCost
from dpnotes.accounting.renyi import (
    DEFAULT_ORDERS,
    best_epsilon,
    epsilon_from_rdp,
    epsilon_from_zcdp,
    laplace_rdp,
)

__all__ = [
    "DEFAULT_ORDERS",
    "PrivacyCost",
    "SecretCost",
    "best_epsilon",
    "calibrate",
    "compose",
    "compose_bounded_range",
    "compose_gaussian",
    "compose_laplace",
    "compose_subsampled_gaussian",
    "epsilon_from_rdp",
    "epsilon_from_zcdp",
    "gaussian_cost",
    "laplace_rdp",
]
