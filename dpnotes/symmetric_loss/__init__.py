"""Symmetric losses: train on labels some of which are false, as if they were true.

A loss of the margin is symmetric when loss(z) + loss(-z) is one constant K. Then the risk on
corrupted labels is a straight line in the risk on clean ones,

    corrupted risk = (pi - pi') * clean risk + K (1 - pi + pi') / 2,

for the balanced error rate and for the area under the ROC curve alike, where pi and pi' are the
shares of true positives among those labelled +1 and -1. So the two risks have the same minimiser as
long as pi > pi' (Charoenphakdee, Lee and Sugiyama, 2019). These are population risks: on one draw
of the labels the line holds only on average over which of them are flipped, given how many are.

With more than two classes a loss is symmetric when its sum over all labels is a constant C. If
labels come from randomized response, which keeps each with probability p and reports each other
class with probability q, the mean risk on the reports is (p - q) * true risk + q C (after Ghosh,
Kumar and Sastry, 2017).

`margins` has the losses for two classes, `risks` their averages, and `classes` the losses for any
number of classes. Everything takes and returns torch tensors, on a CPU or a CUDA device.
"""

from dpnotes.symmetric_loss.classes import (
    ClassLoss,
    corrected_cross_entropy,
    cross_entropy,
    generalized_cross_entropy,
    mean_absolute_error,
    multiclass_unhinged_loss,
    normalized_cross_entropy,
)
from dpnotes.symmetric_loss.margins import (
    Loss,
    barrier_hinge_loss,
    corrected_logistic_loss,
    hinge_loss,
    logistic_loss,
    ramp_loss,
    savage_loss,
    sigmoid_loss,
    square_loss,
    unhinged_loss,
)
from dpnotes.symmetric_loss.risks import auc_risk, ber_risk, corruption_rates

__all__ = [
    "ClassLoss",
    "Loss",
    "auc_risk",
    "barrier_hinge_loss",
    "ber_risk",
    "corrected_cross_entropy",
    "corrected_logistic_loss",
    "corruption_rates",
    "cross_entropy",
    "generalized_cross_entropy",
    "hinge_loss",
    "logistic_loss",
    "mean_absolute_error",
    "multiclass_unhinged_loss",
    "normalized_cross_entropy",
    "ramp_loss",
    "savage_loss",
    "sigmoid_loss",
    "square_loss",
    "unhinged_loss",
]
