"""The browser tests' fixtures, for every test in this folder."""

from visits import browser, site, visit

__all__ = ["browser", "site", "visit"]
