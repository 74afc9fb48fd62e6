"""Is it really private? Two ways to check a mechanism without trusting what it says about itself.

A mechanism whose output distribution can be written down is checked exactly (`exact_epsilon`,
`exact_delta` where a delta is allowed, and `trade_off` for every attacker at once; `density_delta`
where the noise is continuous). Any other one is run many times: on two neighbouring data sets
(`epsilon_lower_bound`), or on many pairs of them, with a verdict in words (`report`). None of them
needs to know what kind of mechanism it is looking at.

A lower bound above the promised epsilon refutes it. A bound below the promise proves nothing, so
try more runs and other neighbours. To grade what students hand in, use `dpnotes.grading`.

>>> def submission(answer, rng):  # claims epsilon = 1, and keeps nine answers out of ten
...     return answer if rng.random() < 0.9 else not answer
>>> round(exact_epsilon([[0.9, 0.1], [0.1, 0.9]]), 4)
2.1972
>>> epsilon_lower_bound(submission, True, False, trials=20_000, rng=0) > 1
True
"""

from dpnotes.audit._density import Bounds, density_delta
from dpnotes.audit._exact import exact_delta, exact_epsilon, trade_off
from dpnotes.audit._lower_bound import epsilon_lower_bound, largest_certifiable_epsilon
from dpnotes.audit._neighbours import pairs_by_removal, pairs_by_replacement, pairs_in_domain
from dpnotes.audit._outputs import MechanismFailed
from dpnotes.audit._report import PairReport, Report, report
from dpnotes.release import Pair

__all__ = [
    "Bounds",
    "MechanismFailed",
    "Pair",
    "PairReport",
    "Report",
    "density_delta",
    "epsilon_lower_bound",
    "exact_delta",
    "exact_epsilon",
    "largest_certifiable_epsilon",
    "pairs_by_removal",
    "pairs_by_replacement",
    "pairs_in_domain",
    "report",
    "trade_off",
]

_GRADING = ("Grades", "MechanismRaised", "Task", "Verdict", "grade", "in_a_process")


def __getattr__(name: str) -> object:
    """Forward the names of `dpnotes.grading`, which is not imported before one is used."""
    if name not in _GRADING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpnotes import grading

    return getattr(grading, name)
