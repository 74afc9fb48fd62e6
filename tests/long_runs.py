"""What the tests of long measurements share: how to start one, and how to read its file."""

import json

from dpnotes import datasets


def start(name, *words):
    """Start an experiment by its command line, and return its exit status."""
    from dpnotes.experiments import _run

    return _run.main(name, [str(word) for word in words])


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_document(path):
    """Return a file as `load_results` gives it."""
    return datasets._gather(read_lines(path))
