"""A plugin of pytest that writes down what came out of each test; `bench.ask` loads it."""

import json
import os
from pathlib import Path

import pytest

# What tests every public function, and how the names of its tests go on behind the module's.
EVERY_FUNCTION = {"tests/test_refusals.py": ".", "tests/test_checks.py": "-"}


def pytest_addoption(parser):
    parser.addoption("--record", type=Path, help="the file to write to")
    parser.addoption("--module", help="of the tests of every function, only those of this module")
    parser.addoption("--quickest-first", type=Path, help="the seconds of each test in a JSON file")


def pytest_configure(config):
    if path := config.getoption("--record"):
        config.pluginmanager.register(Recorder(path))


class Recorder:
    def __init__(self, path):
        self.file, self.failed = path.open("w", encoding="utf-8"), False

    def write(self, name, passed, seconds):
        self.file.write(json.dumps([name, passed, round(seconds, 3)]) + "\n")
        self.file.flush()

    def pytest_collection_modifyitems(self, config, items):
        if module := config.getoption("--module"):

            def belongs(file, name):
                return file not in EVERY_FUNCTION or f"[{module}{EVERY_FUNCTION[file]}" in name

            items[:] = [item for item in items if belongs(*item.nodeid.split("::", 1))]
        if path := config.getoption("--quickest-first"):
            seconds = {name: each for name, _, each in json.loads(path.read_text(encoding="utf-8"))}
            items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before, self.failed = sum(os.times()[:4]), False
        ran = yield
        self.write(item.nodeid, not self.failed, sum(os.times()[:4]) - before)
        return ran

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(report.nodeid, False, 0.0)
