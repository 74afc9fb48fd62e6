"""The browser tests' fixtures, for every test in this folder."""

from visits import browser, kept, site, visit

__all__ = ["browser", "kept", "site", "visit"]
