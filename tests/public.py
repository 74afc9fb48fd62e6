"""Every public name of the package, found by walking it: what nobody lists, nobody can forget."""

import importlib
import inspect
import pkgutil

import dpnotes

# The command line of a module has a help page in place of an interface.
COMMANDS = {"main"}

# Packages of command lines, whose names nobody imports.
LONG_RUNS = {"experiments"}


def public_modules():
    """Return the modules of the package, without those whose extras are not installed."""
    names = [found.name for found in pkgutil.iter_modules(dpnotes.__path__)]
    modules = []
    for name in (name for name in names if not name.startswith("_") and name not in LONG_RUNS):
        try:
            modules.append(importlib.import_module(f"dpnotes.{name}"))
        except ModuleNotFoundError as missing:
            if missing.name.partition(".")[0] == "dpnotes":
                raise
    return modules


def short_name(module):
    """Return the name of a module as a chapter has it."""
    return module.__name__.removeprefix("dpnotes.")


def defined_in(module, kind):
    return [
        thing
        for name, thing in inspect.getmembers(module, kind)
        if not name.startswith("_") and belongs_to(module, thing)
    ]


def belongs_to(module, thing):
    """Say whether a module, or a file of a package, defines a thing rather than imports it."""
    return f"{thing.__module__}.".startswith(f"{module.__name__}.")


def functions(module):
    """Return the public functions of a module by name."""
    found = defined_in(module, inspect.isfunction)
    return {f.__name__: f for f in found if f.__name__ not in COMMANDS}


def classes(module):
    """Return the public classes of a module that a caller makes: no exceptions, no plain tuples."""
    found = defined_in(module, inspect.isclass)
    return {kind.__name__: kind for kind in found if not issubclass(kind, tuple | BaseException)}


def methods(kind):
    """Return the public methods of a class, its own and those it has from a class of ours."""
    return {
        name: thing
        for name, thing in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.isfunction(thing) or inspect.ismethod(thing))
        and thing.__module__.startswith("dpnotes.")
    }


def callables(module):
    """Return what can be called, by name: functions, classes and methods as `Class.method`."""
    kinds = classes(module)
    return {
        **functions(module),
        **kinds,
        **{f"{name}.{m}": f for name, kind in kinds.items() for m, f in methods(kind).items()},
    }


MODULES = public_modules()
