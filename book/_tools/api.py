"""A Sphinx extension that shows the package as it is: names whole, and defaults short."""

import ast
import re

# What napoleon makes of an attribute; docutils would take the underscore at its end for a link.
FIELD = re.compile(r"^(:(?:ivar|vartype|param|type) \w+)_:", re.M)
LONGEST_DEFAULT = 40


def keep_underscores(app, what, name, obj, options, lines):
    """Show ``coef_`` with its underscore."""
    lines[:] = FIELD.sub(r"\1\\_:", "\n".join(lines)).split("\n")


def shorten_defaults(app, what, name, obj, options, signature, returned):
    """Show the first values of a long default, and that there are more."""
    return (_short(signature), returned) if signature else None


def _short(signature):
    try:
        [function] = ast.parse(f"def f{signature}: pass").body
    except SyntaxError:  # what autodoc could not read is shown as it is
        return signature
    arguments = function.args
    for defaults in (arguments.defaults, arguments.kw_defaults):
        defaults[:] = [_cut(value) for value in defaults]
    return f"({ast.unparse(arguments)})".replace("'...'", "...")


def _cut(value):
    long = value is not None and len(ast.unparse(value)) > LONGEST_DEFAULT
    if long and isinstance(value, ast.Tuple | ast.List):
        return type(value)([*value.elts[:2], ast.Constant("..."), value.elts[-1]], ast.Load())
    return value


def setup(app):
    """Connect to Sphinx, after napoleon."""
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)
    app.connect("autodoc-process-signature", shorten_defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
