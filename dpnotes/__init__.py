"""dpnotes: differential privacy, mechanism by mechanism.

Each chapter of the book has a module of the same name here::

    from dpnotes import randomized_response

    reports = randomized_response.privatize([True, False, True], epsilon=1.0, rng=0)

Submodules are imported by name, so that ``import dpnotes`` stays quick.
"""

__version__ = "0.1.0"
