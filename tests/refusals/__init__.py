"""What each module refuses: `NAME.py` lists the refusals of `dpnotes.NAME`.

Of every public function, class (`Name`) and method (`Name.method`) it holds a working call, and for
each parameter the values that are refused, and how::

    WORKING_CALLS = {"double": {"counts": [1, 2], "rng": 1}}
    REFUSED = {"double": {"counts": [{ValueError: [[-1, 2]], TypeError: [None, "12"]}]}}

Every parameter but ``rng`` has its entry, the tables of `_tables` serve for the usual ones, and a
name that cannot be called here stands in ``NOT_CALLED`` with the reason.
"""
