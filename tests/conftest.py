"""The browser tests' fixtures, for every test in this folder."""

from visits import browser, kept, site, visit

__all__ = ["browser", "kept", "site", "visit"]

# They hold no doctests, and some need an extra that may be missing.
collect_ignore_glob = ["refusals/*"]
