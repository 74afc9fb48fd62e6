"""Private AUC and average precision: say how good a classifier is without showing its test set.

The area under the ROC curve (AUC) is the probability that a positive record scores higher than a
negative one; average precision (AP) is the mean precision at the positives. When one record is
replaced, both change little if both classes are large, and a lot if one class is small. The sizes
of the classes are secret too: only the number of records N is public. So the scale of the noise may
change only by a bounded factor from one class size to the next. Boyd, Lantz and Page (2015) made
the scale proportional to a *smooth sensitivity* (Nissim, Raskhodnikova and Smith, 2007). Here it
is, at each class size, close to the smallest that the exact privacy loss between neighbours allows.

`metrics` has the two metrics and their sensitivities, `noise` the four families of noise and their
scales, `release` the private numbers, and `interval` confidence intervals for the population. A
release never raises an error or changes its type for something that depends on several records
together, such as a missing class: it uses a documented value instead.
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
