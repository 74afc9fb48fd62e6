"""Attacks on the grader that once worked: none gains a point, stops a class, or outlives it."""

import ast
import importlib.util
import json
import math
import os
import py_compile
import re
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import grading
import numpy as np
import pandas as pd
import pytest
from test_judge import number_task, verdict
from test_sandbox import ISOLATIONS, NAMESPACES, ROOT, SHOUT, look

from dpnotes.audit import MechanismFailed
from dpnotes.grading import grade, in_a_process
from dpnotes.grading._sandbox_worker import write_output

HERE = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
TESTS = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}:{ROOT / 'book/_tools'}"}


@NAMESPACES
def test_what_python_compiled_of_a_hidden_or_a_blocked_file_is_hidden_as_well(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("tasks", "solution"):
        (tmp_path / f"{name}.py").write_text("keep = 0.7")
        py_compile.compile(str(tmp_path / f"{name}.py"))
    compiled = importlib.util.cache_from_source(str(tmp_path / "tasks.py"))
    assert look("read", compiled) == "'UnicodeDecodeError'"
    monkeypatch.chdir(tmp_path)
    assert look("read", compiled, hidden=["tasks.py"]) == "'PermissionError'"
    compiled = importlib.util.cache_from_source(str(tmp_path / "solution.py"))
    assert look("read", compiled, blocked=["solution"]) == "'PermissionError'"


@NAMESPACES
def test_what_is_built_of_an_assignment_is_hidden_from_those_who_hand_it_in(tmp_path, monkeypatch):
    source = (ROOT / "book/_tools/classroom/grade.py").read_text(encoding="utf-8")
    assert ast.literal_eval(re.search(r"SHOWING = (\(.+\))", source)[1]) == grading.SHOWING
    monkeypatch.setattr(grading.refresh, "ROOT", tmp_path)
    for folder in ("_build", "book", "build"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "solution.py").write_text("keep = 0.7")
    places = [str(tmp_path / name / "solution.py") for name in ("_build", "book", "build")]
    thief = f"import os\ndef answer(): return [p for p in {places} if os.path.exists(p)]"
    assert grading.graded(thief, [number_task(answers=[((), [])])]).points == 1


def test_a_cell_too_deep_to_parse_costs_itself_alone(tmp_path):
    deep = ["x = " + "-" * 9000 + "1", "x = 1" + "+1" * 100_000, "a" + ".b" * 100_000]
    deep += ["f" + "()" * 100_000, "[" * 100_000, "def answer(x): return x * x"]
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in deep]}))
    assert verdict(path, number_task()).check == "passed"
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match="submission must be a notebook"):
        verdict(path, number_task())


FORGED = SHOUT + "shout(b'[\"loaded\"]\\n')\nfor _ in range(3): shout(%s)\nos._exit(0)\n"
GRADER = f"""{HERE}
import resource, time
from test_judge import answer_task
from dpnotes.grading import grade
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak(), time.process_time()
[verdict] = grade(sys.argv[1], [answer_task(seconds=5.0)], isolation="process", rng=1).verdicts
print((peak() - before[0]) / 1000, time.process_time() - before[1], verdict.sentence)
"""


@pytest.mark.parametrize(
    "source",
    [
        FORGED % """b'["raised","E","a\\\\ud83d\\\\ude00' + b'a ' * 20_000_000 + b'"]\\n'""",
        FORGED % """b'["returned","\\\\ud83d\\\\ude00' + b'a ' * 28_000_000 + b'"]\\n'""",
        FORGED % """b'["returned",["list",' + b'["list"],' * 7_400_000 + b'["list"]]]\\n'""",
        FORGED % """b'["returned",["list",' + b'{},' * 22_000_000 + b'{}]]\\n'""",
        "def answer(truth, rng): return [1000] * 4000",
        "def answer(truth, rng): return {str(i + rng.random()): i for i in range(200)}",
    ],
    ids=["words", "texts", "lists", "dicts", "numbers", "keys"],
)
def test_the_time_and_the_memory_of_the_judge_are_bounded_whatever_arrives(source):
    run = [sys.executable, "-c", GRADER, source]
    said = subprocess.run(run, capture_output=True, check=True, env=os.environ | TESTS, text=True)
    megabytes, seconds, sentence = said.stdout.split(maxsplit=2)
    assert float(megabytes) < 500
    assert float(seconds) < 5
    assert re.search("raised E: a|than can be judged|still at work", sentence)


FLOODS = f"""{SHOUT}
import threading
def mechanism(data):
    line = b'["returned", "' + b'x' * 2**25 + b'"]\\n'
    threading.Thread(target=lambda: [shout(line) for _ in range(40)], daemon=True).start()
    return data
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads its own size there")
def test_a_mechanism_is_heard_once_a_call(tmp_path):
    (tmp_path / "floods.py").write_text(FLOODS)
    sizes = []
    with in_a_process(f"{tmp_path / 'floods.py'}:mechanism") as mechanism:
        with suppress(MechanismFailed):  # the flood may tear its answer
            mechanism(0)
        for _ in range(2):
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]))
            time.sleep(3)
    assert (sizes[1] - sizes[0]) * os.sysconf("SC_PAGE_SIZE") < 100e6


@NAMESPACES
def test_no_device_is_open_to_a_submission_whoever_grades():
    names = ["loop0", "loop-control", "kvm", "fuse", "net/tun", "vda", "sda", "mem"]
    source = f"import os\ndef answer(): return [n for n in {names} if os.path.exists('/dev/' + n)]"
    assert verdict(source, number_task(answers=[((), [])]), isolation="best").check == "passed"


@NAMESPACES
@pytest.mark.parametrize("place", ["/proc/self/comm", "/dev/file"])
def test_the_kernel_s_settings_and_the_folder_of_devices_are_read_alone(place):
    """/proc/sys is root's where root grades, and a file in /dev takes memory without a limit."""
    assert look("write", place) == "'OSError'"


NO_USERS = f"""
echo 0 > /proc/sys/user/max_user_namespaces
exec {sys.executable} -c "from dpnotes.grading._sandbox import choose_isolation as choose
print(choose('best'))"
"""


@NAMESPACES
def test_without_a_namespace_of_users_there_are_none():
    """There, root would grade with the rights of root."""
    root = "bwrap --unshare-user --uid 0 --gid 0 --cap-add ALL --dev-bind / / sh -c"
    run = [*root.split(), NO_USERS]
    said = subprocess.run(run, capture_output=True, env=os.environ | TESTS)
    assert said.stdout == b"process\n", said.stderr


KILLED = f"""{HERE}
from test_judge import answer_task
from dpnotes.grading import grade
source = "open('file', 'w').write('kept')\\nimport time\\ntime.sleep(600)"
grade(source, [answer_task(seconds=600.0)], isolation=sys.argv[1])
"""


def running(pid):
    """Return a process and all that it has started which is not over."""
    found = []
    with suppress(OSError):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            found = [pid]
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [one for child in children.read_text().split() for one in running(child)]
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can end it")
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_submission_ends_with_its_grader_and_in_namespaces_leaves_no_file(
    isolation, how, tmp_path
):
    options = os.environ | TESTS | {"TMPDIR": str(tmp_path)}
    grader = subprocess.Popen([sys.executable, "-c", KILLED, isolation], env=options)
    deadline = time.monotonic() + 60
    while len(running(str(grader.pid))) < (4 if isolation == "namespaces" else 2):
        assert time.monotonic() < deadline
    time.sleep(2)
    _, *others = running(str(grader.pid))
    grader.send_signal(how)
    grader.wait()
    while any(map(running, others)):
        assert time.monotonic() < deadline
    assert isolation == "process" or not list(tmp_path.iterdir())


KEYS = """
import ctypes, os
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
call = ctypes.CDLL(None).syscall
def answer(name):
    found = [call(keyctl, 10, ctypes.c_int(ring), b"user", name, 0) for ring in (-3, -4, -5)]
    call(add_key, b"user", name, b"9", 1, ctypes.c_int(-3))
    return max(found)
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_submissions_share_no_key_with_the_grader_or_each_other(isolation):
    space = {}
    with suppress(AttributeError, KeyError):
        exec(KEYS, space)
        space["answer"](b"dpnotes-grader")
    if "answer" not in space or space["answer"](b"dpnotes-grader") < 0:
        pytest.skip("the system keeps no keys")
    for name in (b"dpnotes-grader", b"dpnotes-other", b"dpnotes-other"):
        task = number_task(answers=[((name,), -1)])
        assert verdict(KEYS, task, isolation=isolation).check == "passed", name


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("no_such_tests.py", FileNotFoundError),
        (Path(sys.prefix).parent, ValueError),
        (Path(np.__file__).parents[1], ValueError),
        (Path(os.__file__).parent, ValueError),
    ],
)
def test_what_is_not_there_or_is_python_itself_cannot_be_hidden(place, error):
    with pytest.raises(error, match="hidden must"):
        grade("", [number_task()], hidden=[place])


@NAMESPACES
def test_more_hidden_paths_than_bubblewrap_takes_are_refused(tmp_path):
    files = [tmp_path / f"{number}.py" for number in range(3000)]
    for file in files:
        file.touch()
    with pytest.raises(ValueError, match="hidden must hold fewer paths"):
        verdict("", number_task(), isolation="namespaces", hidden=files)


@pytest.fixture
def two(tmp_path):
    """Return two submissions, of which the second is right unless it sees what it looks for."""
    files, others = [], [".ipynb_checkpoints/copy.py", "grades/grades.csv"]
    for name in ("alice", "bob"):
        files.append(tmp_path / "submissions" / name / "work.py")
        files[-1].parent.mkdir(parents=True)
        places = [str(files[0].parent / others[0]), str(tmp_path / others[1])]
        files[-1].write_text(
            f"import os\ndef answer(): return [p for p in {places} if os.path.exists(p)]"
        )
    (files[0].parent / ".ipynb_checkpoints").mkdir()
    (files[0].parent / others[0]).touch()
    return files


def fail_for(file, real):
    """Return the function that grades, but for one submission."""
    return lambda path, *asked, **more: [][1] if path == file else real(path, *asked, **more)


@NAMESPACES
def test_a_submission_sees_no_copy_of_another_and_costs_no_other_its_grade(
    two, capsys, monkeypatch
):
    monkeypatch.setattr(grading, "tasks", lambda book: [number_task(answers=[((), [])])])
    monkeypatch.setattr(grading, "graded", fail_for(two[0], grading.graded))
    grading.main(["grade", "foundations", *map(str, two)])
    failed, told = map(json.loads, capsys.readouterr().out.splitlines())
    assert (failed["error"], told["points"]) == ("list index out of range", 1)


@NAMESPACES
def test_the_recipe_for_a_class_hides_its_grades_and_goes_on_whatever_happens(
    two, tmp_path, monkeypatch
):
    page = (ROOT / "book/teach/grading.md").read_text(encoding="utf-8")
    [recipe] = re.findall(r"```python\n(import runpy.+?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpnotes.grading.grade", fail_for(two[0].relative_to(tmp_path), grade))
    task = "Task(function='answer', answers=[((), [])])"
    Path("tasks.py").write_text(f"from dpnotes.grading import Task\ndef tasks(): return [{task}]")
    for _ in range(2):  # the second time, there are grades to be seen
        exec(recipe, {})
        found = pd.read_csv("grades/grades.csv")
        assert found["points"].to_list() == [0, 1]
        assert found["why"][0] == "list index out of range"


def test_a_classroom_s_programs_go_on_whatever_happens(two, monkeypatch):
    folder, tasks = ROOT / "book/_tools/classroom", [number_task()]
    failing = Mock(side_effect=[IndexError("why"), None, IndexError("why")])
    monkeypatch.setattr("dpnotes.grading.grade", failing)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, module in (("nbgrader.api", Mock()), ("tasks", Mock(tasks=lambda: tasks))):
        monkeypatch.setitem(sys.modules, name, module)
    program = runpy.run_path(str(folder / "grade.py"))
    assert program["graded"](two[0], tasks) == [("answer", 0.0, "why")]
    text, space = (folder / "run_autograder.py").read_text(encoding="utf-8"), {}
    exec(text.rpartition("RESULTS.write")[0], space)
    assert space["results"]([two[0]]) == {"score": 0, "output": "why"}


def test_words_beside_loaded_are_no_answer():
    said = b'["loaded", "junk"]\n["returned", 9.0]\n["returned", 4.0]\n'
    assert verdict(f"{SHOUT}shout({said})\nos._exit(0)", number_task()).check == "passed"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems name files in text")
def test_a_refusal_can_be_written_whatever_the_name_of_the_file(tmp_path):
    (tmp_path / "work\udcff.py").mkdir()
    with pytest.raises(ValueError, match="submission must be a file") as refused:
        grade(tmp_path / "work\udcff.py", [number_task()])
    str(refused.value).encode()


def test_a_notebook_that_takes_all_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "work.ipynb").touch()
    monkeypatch.setattr(json, "loads", Mock(side_effect=MemoryError))
    with pytest.raises(ValueError, match="submission must be a notebook"):
        grade(tmp_path / "work.ipynb", [number_task()])


@pytest.mark.parametrize(
    ("right", "output", "check"),
    [
        (1e-16, "0.0", "answer"),
        ([1e-16, 3e-16], "[0.0, 3e-16]", "answer"),
        ([math.inf, 1.0], "[math.inf, 2.0]", "answer"),
        ([[1e-17, 0.0], {"a": 1.0}], "[[0.0, 0.0], {'a': 1.0}]", "passed"),
        (np.array([1e-17, 1.0]), "[2e-17, 1.0]", "passed"),
    ],
)
def test_what_rounding_leaves_is_small_beside_the_largest_part_of_an_answer(right, output, check):
    source = f"import math\ndef answer(): return {output}"
    assert verdict(source, number_task(answers=[((), right)])).check == check


@pytest.mark.parametrize("right", [{1}, b"a", 1j, Fraction(1, 2), [10**5000], Counter("a")])
def test_a_right_answer_that_no_process_can_return_is_refused(right):
    with pytest.raises(TypeError, match="answers must hold what can leave a process: "):
        number_task(answers=[((), right)])


class Level(IntEnum):
    LOW = 1


def wait():
    """Return nothing."""


ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (np.array([1j]), "ndarray of complex128"),
        (np.array(["2026"], "M8[Y]"), "ndarray of datetime64[Y]"),
        (np.array([None, Fraction(1, 2)]), "Fraction (take float(...))"),
        (Fraction(1, 2), "Fraction (take float(...))"),
        (map(int, "12"), "map (take list(...))"),
        (Counter("a"), "Counter (take dict(...))"),
        (Level.LOW, "Level (take int(...))"),
        (pd.Series([1]), "Series (take .tolist())"),
        (pd.DataFrame([1]), "DataFrame (take .to_numpy())"),
        (wait, "function (call it)"),
        (ITSELF, "lists, or of one within itself"),
    ],
)
def test_what_cannot_be_judged_is_named_with_what_mends_it(output, words):
    with pytest.raises(TypeError) as refused:
        write_output(output)
    assert words in str(refused.value)
