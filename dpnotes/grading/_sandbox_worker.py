"""The far end of `grade`: a script that runs a submission and says what its functions return.

It imports nothing of the package, because the package is the solution of many tasks. It reads one
message, shuts itself in as far as the system allows, says how far that was, and only then loads the
submission. Whatever follows may come from the submission, so that the near end trusts none of it.
"""

import ast
import codeop
import ctypes
import json
import os
import pickle
import signal
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress

# What the numbers stand for is in linux/sched.h, linux/mount.h, linux/prctl.h and capability.h.
_NEW_USER, _NEW_MOUNTS, _NEW_IPC, _NEW_PIDS, _NEW_NET = (
    0x10000000,
    0x00020000,
    0x08000000,
    0x20000000,
    0x40000000,
)
_READ_ONLY, _NO_SUID, _NO_DEVICES, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
_MOUNT_SETATTR, _HERE, _ALL_BELOW = 442, -100, 0x8000
_DROP_CAPABILITY, _NO_NEW_PRIVILEGES, _CAPABILITIES = 24, 38, 0x20080522
_LARGEST_FILE = 2**26  # bytes
_TOGETHER = 100  # answers in one message
_LONGEST_MESSAGE = 300  # characters of what an exception says


def main() -> None:
    """Shut this process in, run the submission, and answer."""
    with os.fdopen(os.dup(0), "rb") as calls:
        job = pickle.loads(calls.read())
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.path[:] = [*sys.path, *(folder for folder in job["path"] if folder not in sys.path)]
    job["hidden"] += [place for name in job["blocked"] for place in _places(name)]
    is_shut_in = job["namespaces"] and _shut_in(job)
    os.chdir(job["scratch"])
    _limit(job["memory"], job["seconds"])
    _say(answers, [["ready", "namespaces" if is_shut_in else "process"]])
    sys.meta_path.insert(0, _Blocked(job["blocked"]))
    said: list[list] = []
    for answer in _answers(job):
        said.append(answer)
        # At once, so that who waits knows whether it is for a cell or for the function.
        if len(said) == _TOGETHER or answer[0] == "loaded":
            _say(answers, said)
            said = []
    _say(answers, said)


def _places(name: str) -> list[str]:
    """Return where a module lies, after every folder of the path and every finder."""
    package, _, rest = name.partition(".")
    places = [os.path.join(os.path.abspath(folder), package) for folder in sys.path]
    for finder in sys.meta_path:
        with suppress(AttributeError, ImportError):
            spec = finder.find_spec(package, None)
            places += list(spec.submodule_search_locations or [os.path.splitext(spec.origin)[0]])
    inside = [os.path.join(place, *rest.split(".")) if rest else place for place in places]
    return [place + end for place in dict.fromkeys(inside) for end in ("", ".py")]


def _say(answers: int, said: list[list]) -> None:
    content = json.dumps(said).encode()
    content = len(content).to_bytes(8, "big") + content
    while content:
        content = content[os.write(answers, content) :]


def _answers(job: dict) -> Iterator[list]:
    """Load the submission and make the calls one after another, each on data of its own."""
    import numpy as np

    submission = types.ModuleType("submission")
    sys.modules["submission"] = submission
    faults, compiled = [], codeop.Compile()
    for number, cell in enumerate(job["cells"], start=1):
        faults += _run(cell, f"<submission, part {number}>", submission.__dict__, compiled)
    function = getattr(submission, job["function"], None)
    if not callable(function):
        yield ["missing", "; ".join(faults[:1])]
        return
    yield ["loaded", ""]
    for place, seed in job["plan"]:
        args, options = pickle.loads(job["inputs"][place])
        if seed is not None:
            options["rng"] = np.random.default_rng(seed)
        try:
            output = function(*args, **options)
        except BaseException as error:
            yield ["raised", _named(error)]
            return
        try:
            yield ["returned", _plain(output, np)]
        except (RecursionError, TypeError) as error:
            yield ["refused", str(error)]
            return


def _run(cell: str, name: str, space: dict, compiled: Callable) -> list[str]:
    """Run one statement after another, and return what went wrong: it does not stop the next.

    `compiled` makes code of them, and remembers what they import from `__future__`.
    """
    faults = []
    try:
        statements = ast.parse(cell, name).body
    except (RecursionError, SyntaxError, ValueError) as error:
        return [_named(error)]
    for statement in statements:
        try:
            exec(compiled(ast.Module([statement], []), name, "exec"), space)
        except BaseException as error:
            faults.append(_named(error))
    return faults


def _named(error: BaseException) -> str:
    """Return the type of an exception and the beginning of its message."""
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except BaseException:  # a message of the submission's own making
        message = ""
    return f"{type(error).__name__}: {message}"


def _plain(output: object, np: types.ModuleType) -> object:
    """Return an output as `_plain.built` reads it, or refuse a type that is not plain."""
    kind = type(output)
    if output is None or kind is bool or kind is str:
        return output
    if kind is np.str_:
        return str(output)
    if kind is int:
        return ["int", hex(output)]
    if kind is float:
        return ["float", np.float64(output).tobytes().hex()]
    if kind in (list, tuple):
        return [kind.__name__, *(_plain(item, np) for item in output)]
    if kind is dict:
        return ["dict", *([_plain(k, np), _plain(v, np)] for k, v in output.items())]
    if kind is np.ndarray and output.dtype.kind in "biufU":
        return ["ndarray", output.dtype.str, output.shape, output.tobytes().hex()]
    if isinstance(output, np.generic) and kind is output.dtype.type and output.dtype.kind in "biuf":
        return ["scalar", output.dtype.str, [], output.tobytes().hex()]
    raise TypeError(kind.__name__)


class _Blocked:
    """A finder of modules that refuses some by name."""

    def __init__(self, names: list[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if any(f"{name}.".startswith(f"{blocked}.") for blocked in self.names):
            raise ModuleNotFoundError(f"{name} is blocked in this task", name=name)


def _limit(memory: int, seconds: float) -> None:
    """Set limits that the system enforces, where it knows any."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    wanted = {
        "RLIMIT_AS": memory,
        "RLIMIT_CPU": int(seconds) + 1,
        "RLIMIT_FSIZE": _LARGEST_FILE,
        "RLIMIT_CORE": 0,
    }
    for name, limit in wanted.items():
        with suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (limit, limit))


def _shut_in(job: dict) -> bool:
    """Go on in namespaces: no network, no other process, files to read alone and some not at all.

    Return False, in the process as it was, where the system does not allow it.
    """
    if not sys.platform.startswith("linux"):
        return False
    # A child tries first: what fails halfway cannot be taken back.
    if not _works(lambda: (_enter(), _works(lambda: _cover(job)) or os._exit(1))):
        return False
    _enter()
    _go_on_in_a_child()
    _cover(job)
    _drop_rights()
    return True


def _works(work: Callable[[], object]) -> bool:
    """Whether some work can be done, in a child."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _go_on_in_a_child() -> None:
    """Return in the first process of the new namespace; the other one waits for it, or ends it."""
    child = os.fork()
    if child:
        # The first process of a namespace takes all others of it along.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
        os.closerange(0, 100)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)


def _enter() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | _NEW_NET)
    for name, line in {
        "setgroups": "deny",
        "uid_map": f"{user} {user} 1",
        "gid_map": f"{group} {group} 1",
    }.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _cover(job: dict) -> None:
    """Hide what is not to be seen, and make all else read-only but a small folder."""
    _call("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)
    for path in job["hidden"]:
        if os.path.isdir(path):
            _mount_empty(path, "size=4k")
        elif os.path.exists(path):
            _call("mount", b"/dev/null", os.fsencode(path), None, _BIND, None)
    try:
        _call("mount", b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICES, None)
    except OSError:  # a container that shows half of it
        _mount_empty("/proc", "size=4k")
    read_only = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    _call("syscall", _MOUNT_SETATTR, _HERE, b"/", _ALL_BELOW, ctypes.byref(read_only), 32)
    _mount_empty(job["scratch"], "size=64m")


def _mount_empty(path: str, size: str) -> None:
    place, options = os.fsencode(path), f"{size},mode=700".encode()
    _call("mount", b"tmpfs", place, b"tmpfs", _NO_SUID | _NO_DEVICES, options)


def _drop_rights() -> None:
    """Give up what the new namespace gave, so that nothing is uncovered again."""
    for capability in range(64):
        with suppress(OSError):  # the last ones do not exist
            _call("prctl", _DROP_CAPABILITY, capability, 0, 0, 0)
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call("capset", (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)())


def _call(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(a) if type(a) is int and a >= 0 else a for a in arguments]
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


if __name__ == "__main__":
    main()
