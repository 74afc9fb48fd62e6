"""Private AUC and average precision: say how good a classifier is without showing its test set.

The area under the ROC curve (AUC) is the chance that a positive record scores higher than a
negative one; average precision (AP) is the mean precision at the positives. Both change little when
one record is replaced and both classes are large, and a lot when one class is small. How large the
classes are is a secret too: only the number of records N is public. So the width of the noise may
change by a bounded factor only from one class size to the next. Boyd, Lantz and Page (2015) had it
follow a *smooth sensitivity* (Nissim, Raskhodnikova and Smith, 2007); here it is, at each size,
nearly the smallest that the exact loss between two neighbours allows.

`metrics` has the two metrics and their sensitivities, `noise` the three families of noise and what
they need, `release` the private numbers and `interval` what they say of a population. What depends
on the records together, such as a class that is missing, raises no error and changes no type in a
release: it takes a documented value instead.
"""

from dpnotes.private_auc.interval import Estimate, metric_interval
from dpnotes.private_auc.metrics import (
    METRICS,
    ap_local_sensitivity,
    ap_smooth_sensitivity,
    auc,
    auc_local_sensitivity,
    auc_smooth_sensitivity,
    average_precision,
    binormal_roc,
    reidentify_label,
    smooth_sensitivity,
)
from dpnotes.private_auc.noise import (
    MetricNoise,
    best_beta,
    cauchy_epsilon,
    cauchy_scale,
    choose_noise,
    student_t_scale,
)
from dpnotes.private_auc.release import (
    MetricRelease,
    log_density,
    release_auc,
    release_average_precision,
)

__all__ = [
    "METRICS",
    "Estimate",
    "MetricNoise",
    "MetricRelease",
    "ap_local_sensitivity",
    "ap_smooth_sensitivity",
    "auc",
    "auc_local_sensitivity",
    "auc_smooth_sensitivity",
    "average_precision",
    "best_beta",
    "binormal_roc",
    "cauchy_epsilon",
    "cauchy_scale",
    "choose_noise",
    "log_density",
    "metric_interval",
    "reidentify_label",
    "release_auc",
    "release_average_precision",
    "smooth_sensitivity",
    "student_t_scale",
]
