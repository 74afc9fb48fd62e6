"""PATE: teachers vote on labels for public data, and noise hides any single vote.

Every teacher is trained on a part of the private data that no other teacher sees (Papernot et al.,
2017, 2018). A query is an input that all of them label. Replacing one record changes one teacher,
so in each query at most one vote moves: one count falls by 1 and another rises by 1.
The answer is the label with the largest noisy count:

    LNMax(gamma)    n_j + Laplace(1 / gamma)
    GumbelMax(scale)    n_j + Gumbel(scale): the exponential mechanism
    GNMax(sigma)    n_j + Normal(0, sigma^2)
    ConfidentGNMax(threshold, sigma_threshold, sigma)    likewise, where enough teachers agree

Each is an object that can ``answer`` queries, return its ``output_distribution`` and its ``cost``
whatever the votes, and be calibrated to a budget (``for_cost``).

Where teachers agree, an answer hardly depends on any one of them, and costs less. Such a cost is
computed from the votes and as secret as they are (``secret_cost``), so it may only be released with
noise (`release_cost`).

Votes are whole numbers: one query, of shape (classes,), or several, of shape (queries, classes).
`LNMax.cost` uses Google's dp-accounting: ``pip install dpnotes[accounting]``. Nothing else does.
"""

from dpnotes.pate.costs import (
    ORDERS_2018,
    gnmax_log_error_probability,
    gnmax_rdp,
    lnmax_error_probability,
    lnmax_rdp,
)
from dpnotes.pate.mechanisms import ConfidentGNMax, GNMax, GumbelMax, LNMax
from dpnotes.pate.release import (
    gnmax_local_sensitivity,
    gnss_rdp,
    release_cost,
    smooth_sensitivity,
    threshold_local_sensitivity,
)
from dpnotes.pate.votes import count_votes, output_distribution, partition

__all__ = [
    "ORDERS_2018",
    "ConfidentGNMax",
    "GNMax",
    "GumbelMax",
    "LNMax",
    "count_votes",
    "gnmax_local_sensitivity",
    "gnmax_log_error_probability",
    "gnmax_rdp",
    "gnss_rdp",
    "lnmax_error_probability",
    "lnmax_rdp",
    "output_distribution",
    "partition",
    "release_cost",
    "smooth_sensitivity",
    "threshold_local_sensitivity",
]
