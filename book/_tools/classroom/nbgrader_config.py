"""nbgrader hands out, collects and keeps the gradebook; grade.py beside this file grades."""

c = get_config()  # noqa: F821 - nbgrader brings it
# As in the notebooks of the book.
c.ClearSolutions.code_stub = {"python": "..."}
# What is handed in runs in grade.py alone, shut in. In nbgrader it would have your rights.
c.Execute.enabled = False
