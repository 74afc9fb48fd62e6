"""Is it really private? Two ways to check a mechanism without trusting what it says of itself.

A mechanism whose output distribution can be written down is checked exactly (`exact_epsilon`,
`exact_delta` where a delta is allowed, and `trade_off` for every attacker at once; `density_delta`
and `density_epsilon` where the noise is continuous). Any other one is run many times: on two
neighbouring data sets (`epsilon_lower_bound`), or on many pairs of them, with a verdict in words
(`report`). None of them knows which mechanism it has before it.

To grade an assignment, say what is asked (`Task`) and hand over the submissions (`grade`). Each is
run in a process of its own, what its functions return is stored, and the verdict is found on what
was stored: privacy, usefulness, and whether the generator was used. A lower bound above the
promised epsilon refutes it. If the runs are independent, which means that nothing one run leaves
behind changes a later one, a right submission is accused at most as often as is stated. A bound
below the promise proves nothing, so look at more trials and other neighbours.

>>> def submission(answer, rng):  # claims epsilon = 1, and keeps nine answers out of ten
...     return answer if rng.random() < 0.9 else not answer
>>> round(exact_epsilon([[0.9, 0.1], [0.1, 0.9]]), 4)
2.1972
>>> epsilon_lower_bound(submission, True, False, trials=20_000, rng=0) > 1
True
"""

from dpnotes.audit._density import Bounds, density_delta, density_epsilon
from dpnotes.audit._exact import exact_delta, exact_epsilon, trade_off
from dpnotes.audit._grade import Grades, Verdict, grade
from dpnotes.audit._neighbours import (
    Pair,
    pairs_by_removal,
    pairs_by_replacement,
    pairs_in_domain,
)
from dpnotes.audit._process import MechanismRaised, in_a_process
from dpnotes.audit._report import PairReport, Report, report
from dpnotes.audit._statistical import epsilon_lower_bound, largest_certifiable_epsilon
from dpnotes.audit._task import Task
from dpnotes.audit._values import MechanismFailed

__all__ = [
    "Bounds",
    "Grades",
    "MechanismFailed",
    "MechanismRaised",
    "Pair",
    "PairReport",
    "Report",
    "Task",
    "Verdict",
    "density_delta",
    "density_epsilon",
    "epsilon_lower_bound",
    "exact_delta",
    "exact_epsilon",
    "grade",
    "in_a_process",
    "largest_certifiable_epsilon",
    "pairs_by_removal",
    "pairs_by_replacement",
    "pairs_in_domain",
    "report",
    "trade_off",
]
