"""Grade submissions that you do not trust, outside the process in which they run.

Describe what you ask (`Task`) and hand over the submissions (`grade`). Each one runs in a process
of its own. What its functions return is stored, and only then judged: is it private, is it useful,
and does it use the generator? `in_a_process` runs a single mechanism in this way, so that
`dpnotes.audit` can look at it.

A lower bound above the promised epsilon refutes it. If the runs are independent, that is, if
nothing that one run leaves behind changes a later one, then a right submission is accused at most
as often as stated.
"""

from dpnotes.grading._grade import Grades, Verdict, grade
from dpnotes.grading._sandbox import MechanismRaised, in_a_process
from dpnotes.grading._task import Task

__all__ = ["Grades", "MechanismRaised", "Task", "Verdict", "grade", "in_a_process"]
