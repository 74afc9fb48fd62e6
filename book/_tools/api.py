"""A Sphinx extension that shows the names of the package whole."""

import re

# What napoleon makes of an attribute; docutils would take the underscore at its end for a link.
FIELD = re.compile(r"^(:(?:ivar|vartype|param|type) \w+)_:", re.M)


def keep_underscores(app, what, name, obj, options, lines):
    """Show ``coef_`` with its underscore."""
    lines[:] = FIELD.sub(r"\1\\_:", "\n".join(lines)).split("\n")


def setup(app):
    """Connect to Sphinx, after napoleon."""
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
