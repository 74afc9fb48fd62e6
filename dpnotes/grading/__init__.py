"""Grade submissions that are not trusted, outside the process that they run in.

Say what is asked (`Task`) and hand over the submissions (`grade`). Each is run in a process of its
own, what its functions return is stored, and the verdict is found on what was stored: privacy,
usefulness, and whether the generator was used. `in_a_process` does the same for a single mechanism
that `dpnotes.audit` is to look at.

A lower bound above the promised epsilon refutes it. If the runs are independent, which means that
nothing one run leaves behind changes a later one, a right submission is accused at most as often as
is stated.
"""

from dpnotes.grading._grade import Grades, Verdict, grade
from dpnotes.grading._sandbox import MechanismRaised, in_a_process
from dpnotes.grading._task import Task

__all__ = ["Grades", "MechanismRaised", "Task", "Verdict", "grade", "in_a_process"]
