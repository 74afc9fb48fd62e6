"""A mechanism in a process of its own reaches nothing of the process that judges it."""

import itertools
import math
import os
import signal
import subprocess
import sys
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpnotes.audit import (
    MechanismFailed,
    _lower_bound,
    epsilon_lower_bound,
    largest_certifiable_epsilon,
)
from dpnotes.grading import MechanismRaised, _plain, _process, in_a_process

SUBMISSION = """
import os, random, sys, time
from dataclasses import dataclass
from fractions import Fraction
from decimal import Decimal
import numpy as np

calls = []

def noisy(data, *, rng):
    return data + rng.laplace()

def copies(data, *, rng):
    import copy
    return data + copy.deepcopy(rng).laplace()

def own(data):
    return data + np.random.default_rng().laplace()

def tells(data):
    return data

def remembers(data):
    calls.append(data)
    return calls[0]

def counts(data):
    calls.append(data)
    return len(calls)

def patches(data):
    import dpnotes.audit as audit
    audit._lower_bound._log_ratio_bound = audit._lower_bound._choose_event = None
    audit.epsilon_lower_bound = lambda *a, **k: 0.0
    for depth in range(50):
        try:
            frame = sys._getframe(depth)
        except ValueError:
            break
        for thing in frame.f_locals.values():
            if isinstance(thing, np.ndarray):
                thing[...] = 0
    return data

def raises(data):
    raise ValueError(f"saw {data}")

def stops(data):
    sys.exit(data)

def interrupts(data):
    raise KeyboardInterrupt

def ends(data):
    os._exit(0)

def sleeps(data):
    time.sleep(60)

def prints(data):
    print("(" * 100_000, flush=True)
    os.write(1, b"0" * 100)
    input() if data else None
    return data

@dataclass
class Answer:
    value: float

    def __float__(self):
        return 0.0

def dresses(data):
    return Answer(float(data))

class Lie(float):
    __float__ = lambda self: 0.0

def lies(data):
    return Lie(data)

def nests(data):
    endless = []
    endless.append(endless)
    return endless

def digits(data):
    return 16**20_000

def forges(data):
    for number in range(3, 20):
        try:
            os.write(number, bytes([255] * 8) + b"x" * 100)
        except OSError:
            pass
    return data

def opens(data):
    found = []
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return len(found)

def speaks(data):
    for number in range(3, 20):
        try:
            os.write(number, (2).to_bytes(8) + b"17")
        except OSError:
            pass
    return data
"""


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    file = tmp_path_factory.mktemp("submitted") / "submission.py"
    file.write_text(SUBMISSION)
    return lambda name: f"{file}:{name}"


def test_an_audit_of_a_process_finds_what_an_audit_here_finds(submission):
    options = {"trials": 400, "rng": 1}
    with in_a_process(submission("noisy")) as mechanism:
        assert 0.2 < epsilon_lower_bound(mechanism, 0.0, 1.0, **options) <= 1
    with in_a_process(submission("copies")) as mechanism:
        assert epsilon_lower_bound(mechanism, 0.0, 1.0, **options) > 3


def test_a_process_draws_by_its_seed_and_fresh_noise_in_every_run(submission):
    drawn = []
    for fresh in (False, True):
        for seed in (5, 5, 6):
            with in_a_process(submission("noisy"), fresh=fresh) as mechanism:
                rng = np.random.default_rng(seed)
                drawn.append([mechanism(0, rng=rng) for _ in range(3)])
                assert len(set(drawn[-1])) == 3
                assert mechanism(0, rng=7) == mechanism(0, rng=7)
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[3] == drawn[4] != drawn[5]


@pytest.mark.parametrize("name", ["patches", "stops", "interrupts", "raises", "prints"])
def test_what_a_process_does_to_itself_harms_no_judge(submission, name):
    before = vars(_lower_bound).copy()
    with in_a_process(submission(name)) as mechanism:
        try:
            bound = epsilon_lower_bound(mechanism, 0, 1, trials=30, rng=0)
        except ValueError as error:  # no run returned, and no run told anything
            bound = str(error)
    expected = {"interrupts": "mechanism must return in some run, every run raised"}
    assert bound == expected.get(name, largest_certifiable_epsilon(30))
    assert vars(_lower_bound) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ends", "its process ended"),
        ("sleeps", "took more than its seconds"),
        ("lies", "must return .* got Lie"),
        ("nests", "recursion"),
        ("digits", "cannot be read"),
        ("forges", "cannot be read|ended"),
        ("speaks", "cannot be read"),
        ("absent", "cannot be loaded, AttributeError"),
    ],
)
def test_a_process_without_an_output_gets_no_bound(submission, name, message):
    with in_a_process(submission(name), seconds=2 if name == "sleeps" else 60) as mechanism:
        for _ in range(2):
            with pytest.raises(MechanismFailed, match=message):
                epsilon_lower_bound(mechanism, 0, 1, trials=30, rng=0)


def test_a_process_may_be_made_anew_for_each_call(submission):
    with in_a_process(submission("remembers")) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [0, 0, 0]
    with in_a_process(submission("remembers"), fresh=True) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [0, 1, 2]
    fresh = in_a_process(submission("ends"), fresh=True)
    with fresh as mechanism, pytest.raises(MechanismFailed, match="ended"):
        mechanism(0)


def test_a_process_made_anew_has_nothing_open_but_its_own_answer(submission):
    # Neither the answers of others nor the calls that are still to come.
    with in_a_process(submission("opens"), fresh=True) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [1, 1, 1]


def test_a_dataclass_leaves_its_process_as_what_it_stores(submission):
    with in_a_process(submission("dresses")) as mechanism:
        assert mechanism(3) == {"Answer": {"value": 3.0}}


def test_an_exception_leaves_its_process_as_its_type_message_and_arguments(submission):
    seen = pytest.raises(MechanismRaised, match=r"'ValueError', 'saw 1', .*'saw 1'")
    with in_a_process(submission("raises")) as mechanism, seen:
        mechanism(1)


def test_the_seconds_of_a_process_are_for_all_calls_together(submission, monkeypatch):
    clock = itertools.count(step=40)
    monkeypatch.setattr(_process, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    with in_a_process(submission("tells"), seconds=100.0) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [0, 1, 2]
        for secret in (3, 4):
            with pytest.raises(MechanismFailed, match="it took more than its seconds"):
                mechanism(secret)


def test_a_process_ends_with_its_block(submission):
    with in_a_process(submission("tells")) as mechanism:
        assert mechanism(1) == 1
        process = mechanism._process
    assert process.returncode is not None
    with pytest.raises(MechanismFailed, match="the process of the mechanism has ended"):
        mechanism(1)


def test_a_process_that_does_not_listen_stops_nobody(submission):
    late = pytest.raises(MechanismFailed, match="more than its seconds")
    with in_a_process(submission("sleeps"), seconds=1) as mechanism, late:
        mechanism(np.zeros(10**6))


FORKS = """
import os, signal, time

def leaves_a_child(data):
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(120)
        time.sleep(120)
    while os.getsid(child) != child:
        time.sleep(0.01)
    return child
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_a_child_that_runs_away_keeps_nobody_waiting(tmp_path):
    """It holds the pipe of the answers, which nobody can close for it."""
    (tmp_path / "forks.py").write_text(FORKS)
    judge = (
        "from dpnotes.audit import in_a_process\n"
        "with in_a_process('forks.py:leaves_a_child') as mechanism:\n"
        "    print(mechanism(0))\n"
    )
    run = [sys.executable, "-c", judge]
    said = subprocess.run(run, capture_output=True, check=True, cwd=tmp_path, timeout=60)
    os.kill(int(said.stdout), signal.SIGKILL)


def test_a_function_of_a_notebook_runs_in_a_process():
    pytest.importorskip("cloudpickle")
    shift = 5
    with in_a_process(lambda data: data + shift) as mechanism:
        assert mechanism(1) == 6


@pytest.mark.parametrize(
    ("mechanism", "options", "error", "message"),
    [
        ("submission", {}, ValueError, "mechanism must be named as place:function"),
        (3, {}, TypeError, "mechanism must be callable or named, got int"),
        (print, {"seconds": 0}, ValueError, "seconds must be a positive number, got 0"),
        (print, {"seconds": "1"}, TypeError, "seconds must be a positive number, got str"),
        (print, {"fresh": 1}, TypeError, "fresh must be True or False, got int"),
        ((n for n in ()).__next__, {}, TypeError, "must be importable by name, or cloudpickle"),
    ],
)
def test_a_process_that_could_not_start_is_refused(mechanism, options, error, message):
    with pytest.raises(error, match=message), in_a_process(mechanism, **options):
        pass


def test_fresh_processes_are_refused_where_none_can_fork(monkeypatch):
    monkeypatch.delattr(_process.os, "fork")
    with pytest.raises(NotImplementedError, match="need a system that can fork"):
        in_a_process(print, fresh=True).__enter__()


class LyingFloat(float):
    def __float__(self):
        return 0.0


class CalledFloat(type):
    def __eq__(cls, other):
        return other is float

    def __hash__(cls):
        return hash(float)


class CallsItselfText(str, metaclass=CalledFloat):
    pass


OUTPUTS = [
    *(None, True, 0, -(2**70), 1.5, -0.0, math.inf, 1 - 2j, "text \ud800", b"\x00\xff"),
    *(Fraction(1, 3), Decimal("1.00"), Decimal("NaN"), (), [1, (2,)], {1, (2,)}, frozenset([2.0])),
    *({"a": 1, (1, 2): [None]}, np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("a")),
    *(np.longdouble(1) / 3, np.datetime64("2026-01-01"), np.arange(6).reshape(2, 3)),
    *(np.zeros((0, 3)), np.array(1j), np.array(["a", "bc"]), np.array([None, "a"]), np.ones(3) < 0),
]


@pytest.mark.parametrize("output", OUTPUTS, ids=repr)
def test_an_output_arrives_as_it_was(output):
    arrived = _plain.built(_plain.written(output))
    assert type(arrived) is type(output)
    assert repr(arrived) == repr(output)


def test_a_nan_keeps_its_bits_on_the_way():
    nan = np.array([0x7FF8000000000123], np.uint64).view(float)
    assert np.array([_plain.built(_plain.written(nan[0].item()))]).tobytes() == nan.tobytes()


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "1.5", "{}", "[]", "[[]]", '["eval"]', '["int"]', '["int", 3]', '["int", "z"]'),
        *('["Fraction", "1", "0"]', '["Decimal", "x"]', '["set", ["list"]]', '["dict", 1]'),
        *("[" * 10**5, '["bytes", "0"]', '["float", "00"]', '["ndarray", "|O", [1], "00"]'),
        *('["ndarray", "<f8", [2], "0000000000000000"]', '["ndarray", "|b1", [1], "02"]'),
        *('["ndarray", "<f8", [-1], "0000000000000000"]', '["ndarray", "<U1", [1], "ffffffff"]'),
        *('["ndarray", "<f8", ["a"], ""]', '["scalar", "|V8", [], "0000000000000000"]'),
        *('["int", "' + "f" * 10**5 + '"]', '["Decimal", "' + "9" * 10**5 + '"]', "\\xff"),
        *('["objects", [2], 1]', '["objects", [3], null]', '["ndarray", "<f3", [1], "000000"]'),
    ],
)
def test_whatever_else_arrives_is_refused(text):
    with pytest.raises(ValueError, match="text must be an output"):
        _plain.built(text.encode())


@pytest.mark.parametrize(
    "output",
    [
        *(np.zeros(1, "i4, f8"), np.ma.array([1.0]), LyingFloat(1), [object()], print),
        CallsItselfText("a"),
    ],
)
def test_what_cannot_leave_a_process_is_refused_by_name(output):
    with pytest.raises(TypeError, match=r"cannot leave its process|no subclass of them, got \w+"):
        _plain.written(output)


def test_the_audit_forwards_to_grading_and_imports_nothing_of_it():
    code = (
        "import sys\n"
        "from dpnotes import audit\n"
        "assert not any(name.startswith('dpnotes.grading') for name in sys.modules)\n"
        "from dpnotes import grading\n"
        "assert all(getattr(audit, name) is getattr(grading, name) for name in grading.__all__)\n"
        "assert not hasattr(audit, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
