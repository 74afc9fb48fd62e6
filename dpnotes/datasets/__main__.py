"""``python -m dpnotes.datasets``: see `dpnotes.datasets.main`."""

import sys

from dpnotes.datasets import main

if __name__ == "__main__":
    sys.exit(main())
