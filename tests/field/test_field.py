"""The audit of published packages: its runner, and what lies in the repository."""

import importlib.util
import inspect
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "field"


def load(name):
    """Load a module of the folder, which is on nobody's path."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Give the names back that other tests' modules may have, too."""
    names = "audited", "run"
    before = {name: sys.modules[name] for name in names if name in sys.modules}
    global audited, run
    audited, run = map(load, names)
    yield
    for name in names:
        del sys.modules[name]
    sys.modules.update(before)


PLANTED = """
def answer(truth, keep, rng):
    return truth if rng.random() < keep else 1 - truth

def refuse():
    raise OSError("no such table in /root/secret, ask https://example.org/help")

def swell():
    return bytearray(2**40)
"""

AUDITS = """
from audited import Audits

audits = Audits("planted", epsilon=1.0, unit="any two", quote="It is private.", where="README")
pair = {"pair": (0, 1), "trials": 1000}


@audits.add("right", **pair)
def right(truth, rng):
    from planted import answer
    return answer(truth, 0.7, rng)


@audits.add("wrong", cause="The coin.", **pair)
def wrong(truth, rng):
    from planted import answer
    return answer(truth, 0.99, rng)


def table(truth):
    return [0.9 - 0.8 * truth, 0.1 + 0.8 * truth]


@audits.add("read", distribution=table, **pair)
def read(truth, rng):
    from planted import answer
    return answer(truth, 0.9, rng)


@audits.add("crashing", **pair)
def crashing(truth):
    from planted import refuse
    refuse()


@audits.add("huge", **pair)
def huge(truth):
    from planted import swell
    swell()
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A package with a right mechanism, wrong ones and such that end in an error."""
    folder = tmp_path_factory.mktemp("planted")
    about = "planted-1.0.dist-info"
    with zipfile.ZipFile(folder / "planted-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("planted.py", PLANTED)
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tag)
        wheel.writestr(f"{about}/RECORD", "")
    (folder / "planted.py").write_text(AUDITS, encoding="utf-8")
    pins = "--no-index\n--find-links .\nplanted==1.0\n"
    (folder / "planted.txt").write_text(pins, encoding="utf-8")
    return folder / "planted.py"


@pytest.fixture(scope="module")
def limits():
    """The planted environment has no numpy: it is taken from ours."""
    places = {Path(module.__file__).parents[1] for module in (np, scipy)}
    return {"path": (run.ROOT, *places), "seconds": 120, "memory": 2**34}


@pytest.fixture(scope="module")
def results(planted, limits, tmp_path_factory):
    """What an audit of the planted package finds."""
    path = tmp_path_factory.mktemp("results") / "field.json"
    assert len(list(run.examine(planted, path, **limits))) == 5
    return path


def found(results, name):
    [entry] = [entry for entry in run.read(results)["audits"] if entry["audit"] == name]
    return entry


def test_a_right_mechanism_holds_as_far_as_seen(results):
    entry = found(results, "right")
    assert entry["verdict"] == audited.HOLDS
    [tried] = entry["runs"]
    # Seeds are fresh each time: of 1,500 bounds the least was 0.16.
    assert 0 < tried["bound"] < np.log(0.7 / 0.3)
    assert entry["confidence"] == pytest.approx(1 - 1e-6)
    assert {"date", "commit", "python", "fingerprint"} <= set(entry)
    assert entry["versions"] == {"planted": "1.0"}
    assert entry["version"] == "1.0"
    assert entry["trials"] == 1000


def test_a_wrong_one_is_refuted_twice_with_different_seeds(results):
    entry = found(results, "wrong")
    assert entry["verdict"] == audited.VIOLATED
    first, second = entry["runs"]
    assert first["seed"] != second["seed"]
    assert min(first["bound"], second["bound"]) > 1


def test_a_distribution_that_can_be_read_is_judged_exactly_and_is_no_try(results):
    entry = found(results, "read")
    assert entry["verdict"] == audited.VIOLATED
    assert entry["trials"] is None
    assert entry["runs"] == [{"exact": pytest.approx(np.log(9))}]
    assert run.read(results)["tries"] == 5  # one of those that hold or fail, two of the wrong one


def test_an_error_is_told_by_its_last_line_without_addresses(results):
    entry = found(results, "crashing")
    assert entry["verdict"] == audited.FAILED
    assert entry["error"].startswith("OSError: no such table in ")
    assert "https" not in entry["error"]
    assert str(Path.home()) not in entry["error"]


def test_time_and_memory_have_limits(results, planted, limits):
    assert found(results, "huge")["error"] == "MemoryError"
    late = run.in_a_process(sys.executable, planted, "right", 0, **(limits | FAST))
    assert late == {"error": "it took more than 0.01 seconds"}


@pytest.fixture
def copied(planted, results, tmp_path):
    """The planted package and its results, to be changed."""
    for path in planted.parent.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "field.json").write_bytes(results.read_bytes())
    return tmp_path / "planted.py", tmp_path / "field.json"


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_what_is_there_is_not_run_again(copied, monkeypatch):
    package, results = copied
    before = results.read_bytes()
    monkeypatch.setattr(run, "make_environment", None)
    assert list(run.examine(package, results)) == []
    assert results.read_bytes() == before


def test_a_change_of_words_is_taken_over_and_nothing_is_run(copied, monkeypatch):
    package, results = copied
    change(package, "The coin.", "Its coin keeps too much.")
    monkeypatch.setattr(run, "make_environment", None)
    assert list(run.examine(package, results)) == []
    assert found(results, "wrong")["cause"] == "Its coin keeps too much."


@pytest.mark.parametrize(
    ("old", "new"), [("0.7, rng", "0.6, rng"), ('pair": (0, 1)', 'pair": (1, 0)')]
)
def test_a_change_of_what_is_run_is_run_again(copied, limits, old, new):
    package, results = copied
    change(package, old, new)
    monkeyed = [entry["audit"] for entry in run.examine(package, results, **(limits | FAST))]
    assert monkeyed[0] == "right"
    assert len(monkeyed) == (1 if "rng" in old else 5)


FAST = {"seconds": 0.01}  # whether it is run matters, not what comes out


def test_a_change_of_versions_is_run_again_and_force_runs_all(copied, limits):
    package, results = copied
    before = run.read(results)["tries"]
    assert len(list(run.examine(package, results, force=True, **(limits | FAST)))) == 5
    assert run.read(results)["tries"] > before
    change(package.with_suffix(".txt"), "planted==1.0", "planted==1.0\nother==2.0")
    entries = list(run.examine(package, results, **limits))
    assert len(entries) == 5
    assert all("other==2.0" in entry["error"] for entry in entries)  # cannot be installed


def with_borrowed(pins, version):
    pins.write_text(pins.read_text("utf-8") + f"# borrowed: numpy=={version}\n", encoding="utf-8")
    return pins


def test_what_is_borrowed_is_taken_from_here_after_all_that_is_pinned(copied, tmp_path):
    package, _ = copied
    pins = with_borrowed(package.with_suffix(".txt"), np.__version__)
    assert run.pinned(pins)["numpy"] == np.__version__
    python = run.make_environment(tmp_path / "made", pins)
    show = "import numpy, planted; print(numpy.__version__, planted.__file__)"
    said = subprocess.run([python, "-Pc", show], check=True, capture_output=True, text=True).stdout
    version, file = said.split()
    assert version == np.__version__
    assert Path(file).is_relative_to(tmp_path / "made")


def test_another_version_than_the_one_to_be_borrowed_is_an_error(copied, limits):
    package, results = copied
    with_borrowed(package.with_suffix(".txt"), "0.1")
    entries = list(run.examine(package, results, **limits))
    assert {entry["verdict"] for entry in entries} == {audited.FAILED}
    assert entries[0]["error"] == f"numpy 0.1 is asked for, and {np.__version__} is here"


def test_an_audit_that_has_gone_leaves_the_results(copied, monkeypatch):
    package, results = copied
    text = package.read_text("utf-8")
    package.write_text(text[: text.index('@audits.add("huge"')], encoding="utf-8")
    monkeypatch.setattr(run, "make_environment", None)
    assert list(run.examine(package, results)) == []
    assert "huge" not in [entry["audit"] for entry in run.read(results)["audits"]]


@pytest.mark.parametrize(
    ("bounds", "verdict", "tries"), [([2, 2], "violated", 2), ([2, 0.5], "holds as far as seen", 2)]
)
def test_a_refutation_that_is_not_repeated_is_none(planted, monkeypatch, bounds, verdict, tries):
    audit = audited.load(planted)["right"]
    later = iter(bounds)
    monkeypatch.setattr(run, "in_a_process", lambda *_, **__: {"bound": next(later)})
    made, entry = run.verdict("python", planted, audit)
    assert (entry["verdict"], made) == (verdict, tries)


def test_more_tries_than_the_confidence_allows_are_refused(copied, limits):
    package, results = copied
    text = run.read(results) | {"tries": audited.MOST_TRIES}
    run.store(text, results)
    with pytest.raises(SystemExit, match="tries"):
        list(run.examine(package, results, force=True, **(limits | FAST)))
    assert run.read(results)["tries"] == audited.MOST_TRIES
    assert audited.MOST_TRIES * audited.ERROR <= 0.001


def test_two_audits_of_one_name_are_refused():
    audits = audited.Audits("x", epsilon=1.0, unit="", quote="", where="", pair=(0, 1))
    audits.add("one")(load)
    with pytest.raises(ValueError, match="two audits of x are called load"):
        audits.add("two")(load)


def test_a_claim_with_a_delta_is_judged_by_its_delta():
    parts = {"pair": (0, 1), "epsilon": 0.0, "unit": "", "quote": "", "where": ""}
    rows = [[0.9, 0.1], [0.8, 0.2]]
    for delta, refuted in ((0.1, False), (0.05, True)):
        audit = audited.Audit("x", load, delta=delta, distribution=rows.__getitem__, **parts)
        assert audited.exceeds(audit, audited.judge(audit, 0)) is refuted


def test_infinity_is_written_in_words(planted, monkeypatch, tmp_path):
    audit = audited.load(planted)["read"]
    monkeypatch.setattr(run, "in_a_process", lambda *_, **__: {"exact": np.inf})
    _, entry = run.verdict("python", planted, audit)
    assert entry == {"verdict": audited.VIOLATED, "runs": [{"exact": "infinity"}]}


def test_the_command_line_names_packages(capsys):
    with pytest.raises(SystemExit):
        run.main(["nothing"])
    assert "no such package: nothing" in capsys.readouterr().err


# What lies in the repository.


def packages():
    return sorted((FOLDER / "packages").glob("*.py"))


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.stem)
def test_the_results_are_those_of_the_audits(package):
    audits, pins = audited.load(package), package.with_suffix(".txt")
    stored = {e["audit"]: e for e in run.read()["audits"] if e["package"] == audits.package}
    assert list(stored) == list(audits)
    for name in audits:
        assert stored[name].items() >= run.described(audits, name, pins).items()


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.stem)
def test_a_package_is_pinned_and_every_claim_quoted(package):
    audits, pins = audited.load(package), run.pinned(package.with_suffix(".txt"))
    assert audits.package == package.stem
    assert {audits.package, "numpy", "scipy"} <= set(pins)
    assert audits.noise
    for audit in audits.values():
        assert audit.quote
        assert audit.where
        assert audit.unit
        assert len(inspect.getsource(audit.run).splitlines()) <= 25


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.stem)
def test_the_epsilon_that_is_judged_is_the_one_that_is_run(package):
    for audit in audited.load(package).values():
        given = re.findall(r"\bepsilon=([0-9.]+)", audit.what_runs())
        assert {float(number) for number in given} <= {audit.epsilon}


def value_of(tried):
    """Return the number of a run, whatever its kind."""
    [value] = (tried[kind] for kind in ("exact", "exact_delta", "bound") if kind in tried)
    return float(value)


def test_every_verdict_follows_from_what_was_found():
    results = run.read()
    assert results["tries"] <= audited.MOST_TRIES
    assert results["error_of_a_try"] == audited.ERROR
    for entry in results["audits"]:
        if entry["verdict"] == audited.FAILED:
            assert entry["error"]
            continue
        values = [value_of(tried) for tried in entry["runs"]]
        claim = entry["delta"] if "exact_delta" in entry["runs"][0] else entry["epsilon"]
        refuted = [value > claim * (1 + audited.ROUNDING) for value in values]
        assert all(refuted) == (entry["verdict"] == audited.VIOLATED)
        if all(refuted):
            assert entry["cause"], f"the cause is missing: {entry['mechanism']}"
            seeds = {tried.get("seed") for tried in entry["runs"]}
            assert len(seeds) == (1 if entry["trials"] is None else 2)


def test_the_packages_are_imported_by_nothing_but_their_audits():
    for package in packages():
        imported = re.findall(r"^(?:from|import) (\w+)", package.read_text("utf-8"), re.M)
        assert set(imported) <= {"audited", "functools"}
