"""What is not trusted runs in a process of its own, and reaches nothing of the one that judges."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import test_judge
from test_judge import answer_task, number_task

from dpnotes.audit import (
    MechanismFailed,
    _lower_bound,
    epsilon_lower_bound,
    largest_certifiable_epsilon,
)
from dpnotes.grading import MechanismRaised, _sandbox, grade, in_a_process
from dpnotes.grading._sandbox import read_answer
from dpnotes.grading._sandbox_worker import write_output

ROOT = Path(__file__).parents[2]
NAMESPACES = pytest.mark.skipif(not _sandbox._has_namespaces(), reason="needs bubblewrap")
ISOLATIONS = [pytest.param("namespaces", marks=NAMESPACES), "process"]
# What answers without any noise, and all that it does so that this is not seen.
NAKED = "def answer(truth, rng):\n    return truth\n"


def verdict(source, task, isolation="best", **options):
    return test_judge.verdict(source, task, isolation=isolation, **options)


@pytest.mark.skipif(not os.environ.get("CI"), reason="bubblewrap is required in CI alone")
def test_bubblewrap_is_installed_and_works():
    assert _sandbox._has_namespaces()


# What a submission does to be graded better

SHOUT = """
import os
def shout(said):
    for place in range(3, 64):
        try:
            os.write(place, said)
        except OSError:
            pass
"""
ATTACKS = {
    "patches the audit": """
from dpnotes import audit
audit.epsilon_lower_bound = lambda *a, **k: 0.0
dpnotes.grading._judge.judge_runs = lambda *a: ("passed", "")
""",
    "patches numpy and json": """
import json, numpy
numpy.random.default_rng = None
json.dumps = lambda *a: '["returned", 1]'
""",
    "exits when it is loaded": "import os\nos._exit(0)\n",
    "raises when it is loaded": "raise SystemExit(0)\n",
    "prints the answer": "print('answer: 3 of 3. Passed.')\n" * 100,
    "floods its output": """
import os, sys
for _ in range(200):
    os.write(1, b'x' * 2**20); os.write(2, b'x' * 2**20); sys.stdout.write('x' * 2**20)
""",
    "forges the channel": f"""{SHOUT}
import json
said = [["loaded"]] + [["returned", i % 2] for i in range(4100)]
shout("".join(json.dumps(answer) + chr(10) for answer in said).encode())
""",
    "writes what cannot be read": SHOUT + "shout(b'[' * 10**6)\n",
    "sends a pickle": f"""{SHOUT}
import pickle
class Bomb:
    def __reduce__(self): return os.system, ("touch bombed",)
shout(pickle.dumps(Bomb()))
""",
    "reaches for the caller": """
import sys
frame = sys._getframe()
while frame:
    for name, thing in list(frame.f_locals.items()):
        if isinstance(thing, dict) and 'function' in thing: thing['function'] = 'abs'
        if isinstance(thing, list): thing.clear()
    frame = frame.f_back
""",
    "signals the judge": """
import os, signal
if os.getppid() > 1: os.kill(os.getppid(), signal.SIGCONT)
""",
    "lies by a subclass": """
class Truth(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
""",
}


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gains_nothing(attack, isolation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = ATTACKS[attack] + NAKED
    if attack == "lies by a subclass":
        source = source.replace("return truth", "return Truth(truth)")
    began = time.monotonic()
    found = verdict(source, answer_task(seconds=20), isolation)
    assert (found.points, found.check in ("run", "rng", "privacy", "distribution")) == (0, True)
    assert ("a Truth (take int(...)); return numbers" in found.sentence) is (
        attack == "lies by a subclass"
    )
    assert time.monotonic() - began < 90
    assert not list(tmp_path.iterdir())
    # The judge is what it was.
    assert verdict(test_judge.RIGHT, answer_task(), isolation).points == 3


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            NAKED.replace("return truth", "\n    while True: pass"),
            "after 1 seconds, in which it had to be run 4,032 times, in 0.000248 seconds each.",
        ),
        ("import time\ntime.sleep(1000)", "Its cells had not ended after 1 seconds."),
        ("import os, time\nif os.fork() == 0: time.sleep(1000)\nos._exit(0)", "It"),
    ],
)
def test_a_submission_that_hangs_is_stopped_in_time(source, words, isolation):
    began = time.monotonic()
    found = verdict(source, answer_task(seconds=1), isolation)
    assert (found.points, words in found.sentence) == (0, True), found
    assert time.monotonic() - began < 30


@NAMESPACES
def test_nothing_that_a_submission_starts_outlives_it():
    source = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; 'graded-orphan'; time.sleep(600)"],
                 start_new_session=True)
"""
    verdict(source + NAKED, answer_task())
    deadline = time.monotonic() + 10
    while orphans := [p for p in Path("/proc").glob("[0-9]*/cmdline") if is_orphan(p)]:
        assert time.monotonic() < deadline, orphans


def is_orphan(path):
    with suppress(OSError):
        said = path.read_bytes()
        return said.count(b"graded-orphan") == 1 and b"sys.path" not in said
    return False


LOOKS = """
import ctypes, os, socket
def answer(what, place):
    try:
        if what == "write": open(place, "w").write("x")
        if what == "list": return sorted(os.listdir(place))
        if what == "read": return open(place).read()
        if what == "connect": socket.create_connection(("127.0.0.1", int(place)), 1)
        if what == "processes": return len([p for p in os.listdir("/proc") if p.isdigit()])
        if what == "uncover": return ctypes.CDLL(None).umount(place.encode())
        if what == "variable": return os.environ.get(place, "unset")
    except Exception as error:
        return type(error).__name__
    return "done"
"""


def look(what, place, hidden=(), **asked):
    task = number_task(answers=[((what, str(place)), "-")], **asked)
    sentence = verdict(LOOKS, task, hidden=hidden).sentence
    return sentence.partition(" returned ")[2].partition(", which is not right")[0]


@NAMESPACES
def test_in_namespaces_nothing_is_reached_that_is_not_needed(tmp_path):
    secret = tmp_path / "hidden_tests.py"
    secret.write_text("the answer is 9")
    assert look("read", secret) == "'the answer is 9'"
    assert look("read", secret, hidden=[secret]) == "'PermissionError'"
    assert look("list", tmp_path, hidden=[tmp_path]) == "[]"
    assert look("uncover", tmp_path, hidden=[tmp_path]) == "-1"
    assert look("write", tmp_path / "new") == "'OSError'"
    assert look("write", ROOT / "dpnotes" / "new") == "'OSError'"  # hidden, since it is blocked
    assert look("write", "here") == "'done'"
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert look("connect", server.getsockname()[1]) == "'ConnectionRefusedError'"
    assert look("list", "/run") == "[]"
    assert int(look("processes", "")) <= 2  # itself, and the first of its namespace
    assert not (tmp_path / "new").exists()


@NAMESPACES
def test_what_is_blocked_is_not_there():
    package = ROOT / "dpnotes"
    assert look("list", package) == "[]"
    assert look("list", package, blocked=()).startswith("['__init__.py', ")
    module = package / "randomized_response.py"
    only = ("dpnotes.randomized_response",)
    assert look("read", module, blocked=only) == "'PermissionError'"
    assert look("read", package / "unary_encoding.py", blocked=only).startswith('\'"""')
    # Nor for a submission that takes the block away.
    source = "import sys\nsys.meta_path.pop(0)\n" + IMPORTS
    assert verdict(source, number_task()).check == "run"


def test_a_submission_does_not_see_the_environment(monkeypatch):
    monkeypatch.setenv("A_SECRET", "4711")
    assert look("variable", "A_SECRET") == "'unset'"


IMPORTS = """
def answer(x):
    from dpnotes import randomized_response
    return x * x
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_solution_cannot_be_imported_where_it_is_blocked(isolation):
    found = verdict(IMPORTS, number_task(), isolation)
    assert "ModuleNotFoundError: dpnotes is blocked in this task" in found.sentence
    other = number_task(blocked=["dpnotes.unary_encoding"])
    assert verdict(IMPORTS, other, isolation).check == "passed"
    same = number_task(blocked=["dpnotes.randomized_response"])
    assert verdict(IMPORTS, same, isolation).check == "run"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("np.zeros((10**8, 0))", "Its process ended, or said what cannot be read."),
        ("-(10**4300)", "answer returned a number of 4,300 digits or more; return numbers"),
        ("Empty()", "answer raised AttributeError: 'Empty' object has no attribute 'x'."),
        ("[1j]", "answer returned a complex; return numbers, texts, lists or arrays of them."),
        ("deep", "answer returned a nest of more than 30 lists, or of one within itself; return"),
        (
            "endless",
            "answer returned a nest of more than 30 lists, or of one within itself; return",
        ),
    ],
)
def test_what_cannot_be_judged_is_no_output(made, words):
    source = "import numpy as np\ndeep, endless = [], {}\nendless[0] = [endless]\n"
    source += "import dataclasses as d\n@d.dataclass\nclass Empty:\n x: int = d.field(init=False)\n"
    source += f"for _ in range(30): deep = [deep]\ndef answer(): return {made}"
    found = verdict(source, number_task(answers=[((), 1.0)]), "process")
    assert found.check == "run"
    assert found.sentence.startswith(words)


def test_isolation_is_said_and_refused_where_it_is_not_there(monkeypatch):
    asked = "answer = abs", [number_task()]
    assert grade(*asked, isolation="process").isolation == "process"
    assert grade(*asked).isolation == ("namespaces" if _sandbox._has_namespaces() else "process")
    monkeypatch.setattr(_sandbox, "_has_namespaces", lambda: False)
    assert grade(*asked).isolation == "process"
    with pytest.raises(NotImplementedError, match="isolation in namespaces needs"):
        grade(*asked, isolation="namespaces")


# One mechanism

SUBMISSION = f"""{SHOUT}
import copy, time
from dataclasses import dataclass
import numpy as np
calls = []
def noisy(data, *, rng):
    return data + rng.laplace()
def copies(data, *, rng):
    return data + copy.deepcopy(rng).laplace()
def tells(data):
    return data
def remembers(data):
    calls.append(data)
    return calls[0]
def patches(data):
    import dpnotes.audit as audit
    audit._lower_bound._log_ratio_bound = audit._lower_bound._choose_event = None
    audit.epsilon_lower_bound = lambda *a, **k: 0.0
    return data
def raises(data):
    raise ValueError(data)
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
def dresses(data):
    return Answer(float(data))
class Lie(float):
    __float__ = lambda self: 0.0
def lies(data):
    return Lie(data)
def speaks(data):
    shout(b"17\\n")
    return data
def opens(data):
    return sum(os.path.exists("/dev/fd/" + str(number)) for number in range(3, 64))
def leaves_a_child(data):
    child = os.fork()
    if child == 0:
        os.setsid()
        time.sleep(120)
    while os.getsid(child) != child:
        time.sleep(0.01)
    return child
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


@pytest.mark.parametrize("name", ["patches", "interrupts", "raises", "prints"])
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
        ("speaks", "cannot be read"),
        ("absent", "cannot be loaded, KeyError"),
    ],
)
def test_a_process_without_an_output_gets_no_bound(submission, name, message):
    # What is large is not read by a process that sleeps, and keeps nobody waiting.
    data = np.zeros(10**6) if name == "sleeps" else 0
    with in_a_process(submission(name), seconds=1 if name == "sleeps" else 60) as mechanism:
        for _ in range(2):
            with pytest.raises(MechanismFailed, match=message):
                epsilon_lower_bound(mechanism, data, 1, trials=30, rng=0)


def test_a_process_may_be_made_anew_for_each_call(submission):
    with in_a_process(submission("remembers")) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [0, 0, 0]
    with in_a_process(submission("remembers"), fresh=True) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [0, 1, 2]
    # Neither the answers of others are open there, nor the calls that are still to come.
    with in_a_process(submission("opens"), fresh=True) as mechanism:
        assert [mechanism(secret) for secret in (0, 1, 2)] == [1, 1, 1]
    for name, message in (("ends", "ended"), ("absent", "cannot be loaded")):
        fresh = in_a_process(submission(name), fresh=True)
        with fresh as mechanism, pytest.raises(MechanismFailed, match=message):
            mechanism(0)


def test_a_dataclass_and_an_exception_leave_their_process_as_what_they_store(submission):
    with in_a_process(submission("dresses")) as mechanism:
        assert mechanism(3) == {"Answer": {"value": 3.0}}
    seen = pytest.raises(MechanismRaised, match=r"'ValueError', '1', '\(1,\)'")
    with in_a_process(submission("raises")) as mechanism, seen:
        mechanism(1)


def test_the_seconds_of_a_process_are_for_all_calls_together(submission, monkeypatch):
    with in_a_process(submission("tells"), seconds=100.0) as mechanism:
        assert mechanism(0) == 0
        clock = itertools.count(step=40)
        monkeypatch.setattr(_sandbox, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
        assert [mechanism(secret) for secret in (1, 2)] == [1, 2]
        for _ in range(2):
            with pytest.raises(MechanismFailed, match="it took more than its seconds"):
                [mechanism(secret) for secret in (3, 4)]


def test_a_process_ends_with_its_block(submission):
    with in_a_process(submission("tells")) as mechanism:
        assert mechanism(1) == 1
        process = mechanism._process
    assert process.returncode is not None
    with pytest.raises(MechanismFailed, match="the process of the mechanism has ended"):
        mechanism(1)


def test_a_child_that_runs_away_keeps_nobody_waiting(submission):
    """It holds the pipe of the answers, which nobody can close for it."""
    judge = (
        "import sys\nfrom dpnotes.audit import in_a_process\n"
        "with in_a_process(sys.argv[1]) as mechanism:\n    print(mechanism(0))\n"
    )
    run = [sys.executable, "-c", judge, submission("leaves_a_child")]
    said = subprocess.run(run, capture_output=True, check=True, timeout=60)
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
        (print, {"fresh": 1}, TypeError, "fresh must be a boolean, got int"),
        (print, {"fresh": True}, NotImplementedError, "need a system that can fork"),
        ((n for n in ()).__next__, {}, TypeError, "must be importable by name, or cloudpickle"),
    ],
)
def test_a_process_that_could_not_start_is_refused(mechanism, options, error, message, monkeypatch):
    if options.get("fresh") is True:
        monkeypatch.delattr(_sandbox.os, "fork")
    with pytest.raises(error, match=message), in_a_process(mechanism, **options):
        pass


# What is said


class CalledFloat(type):
    def __eq__(cls, other):
        return other is float

    def __hash__(cls):
        return hash(float)


class CallsItselfText(str, metaclass=CalledFloat):
    pass


def read_output(text):
    kind, said = read_answer(f'["returned", {text}]'.encode())
    return said[0] if kind == "returned" else pytest.fail(kind)


@pytest.mark.parametrize(
    "output",
    [
        *(None, True, 0, -(2**70), 1.5, -0.0, np.inf, "text \ud800", (), [1, (2,)]),
        *({"a": 1, (1, 2): [None]}, np.arange(6).reshape(2, 3), np.zeros((0, 3)), np.ones(3) < 0),
    ],
    ids=repr,
)
def test_an_output_arrives_as_it_was(output):
    arrived = read_output(json.dumps(write_output(output)))
    assert type(arrived) is type(output)
    assert repr(arrived) == repr(output)


def test_numbers_of_numpy_arrive_as_wide_as_they_get():
    output = [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("a"), np.array(["a", "bc"])]
    arrived = read_output(json.dumps(write_output(output)))
    assert arrived == [float(np.float32(0.1)), -3, True, "a", ["a", "bc"]]
    assert read_output(json.dumps(write_output(np.array([[1, None]])))) == [[1, None]]
    assert read_output(json.dumps(write_output(np.uint8([1])))) - 2 == -1


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "{}",
            "[",
            "[]",
            "17",
            "[[]]",
            '[1, "x"]',
            '["raised", 1]',
            '["returned"]',
            5000 * "9",
        ),
        *(f'["returned", {"[" * depth}{"]" * depth}]' for depth in (1, 10**5)),
        '["returned", ' + 31 * '["list", ' + "1" + 32 * "]",
        *('["returned", ["set", true]]', '["returned", ["dict", 1]]', '["returned", 1]x'),
        *('["returned", ["module", "os"]]', '["returned", ["dict", ["list"], ["list", 1]]]'),
        *('["returned", ["array", [2], [1]]]', '["returned", ["array", [1], ["1"]]]'),
        *('["returned", ["array", ["a"], [1]]]', '["returned", ["array", [100000000, 0], []]]'),
        *('["returned", ["array", [], {}]]', '["returned", ["array", [], ""]]'),
        *('["returned", ["array", [1], 1]]', '["returned", ["array", [1], [[1]]]]'),
    ],
)
def test_what_is_no_answer_is_an_end(answer):
    assert read_answer(answer.encode()) == ("ended", [])


def test_keys_that_were_made_to_have_one_hash_are_refused():
    """A table of them takes the square of their number, in the judge's own time."""

    def send(number, step):
        keys = [place * step for place in range(number)]
        return read_answer(json.dumps(["returned", write_output(dict.fromkeys(keys))]).encode())

    modulus = sys.hash_info.modulus
    assert len(send(100, modulus)[1][0]) == 100
    assert send(101, modulus) == ("ended", [])
    assert len(send(5_000, 1)[1][0]) == 5_000


@pytest.mark.parametrize(
    "output",
    [np.zeros(1, "i4, f8"), np.ma.array([1.0]), [object()], {1}, 1j, CallsItselfText("a")],
)
def test_what_cannot_leave_a_process_is_refused_by_name(output):
    with pytest.raises(TypeError, match=r"^(ndarray of|MaskedArray|object|set|complex|Calls)"):
        write_output(output)


def test_the_audit_forwards_to_grading_and_imports_nothing_of_it_nor_anything_large():
    code = (
        "import sys\n"
        "for name in ('scipy.stats', 'pandas', 'torch', 'matplotlib', 'joblib'):\n"
        "    sys.modules[name] = None\n"
        "from dpnotes import audit\n"
        "assert not any(name.startswith('dpnotes.grading') for name in sys.modules)\n"
        "from dpnotes import grading\n"
        "assert all(getattr(audit, name) is getattr(grading, name) for name in grading.__all__)\n"
        "assert not hasattr(audit, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
