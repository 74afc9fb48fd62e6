"""Reports by the billion: blocks that come out alike, counts that add up, a run that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from dpnotes import randomized_response, unary_encoding
from dpnotes.datasets import _gather, load_results
from dpnotes.experiments import billions
from dpnotes.experiments.billions import EPSILON, MECHANISMS, SEED, Block

ROOT = Path(__file__).parents[1]
SMALL = ("--people", "40000", "--block", "10000")


def run(*words):
    return billions.main([str(word) for word in words])


def document(path):
    return _gather(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def counts(path):
    return {
        (row["mechanism"], row["categories"]): row for row in billions.summarize(document(path))
    }


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.jsonl"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "reports"


# A block.


@pytest.mark.parametrize("number", [0, 7])
def test_reports_are_drawn_by_the_package_from_a_branch_of_the_seed(number):
    def branch():
        rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(8)[number])
        return rng, billions.shares(5)[rng.integers(0, 1 << 16, 1000, dtype=np.uint16)]

    rng, truths = branch()
    direct = randomized_response.privatize(truths, EPSILON, categories=5, rng=rng)
    drawn = billions.draw(Block("randomized response", 5, number, 1000))
    np.testing.assert_array_equal(drawn, [truths, direct])
    rng, truths = branch()
    bits = unary_encoding.encode(truths.tolist(), range(5))
    bits = unary_encoding.perturb(bits, *unary_encoding.probabilities(EPSILON), rng=rng)
    kept, packed = billions.draw(Block("unary encoding", 5, number, 1000))
    np.testing.assert_array_equal(kept, truths)
    np.testing.assert_array_equal(np.unpackbits(packed, axis=1, count=5), bits)


@pytest.mark.parametrize("categories", [2, 3, 16, 256])
def test_people_are_in_a_category_in_proportion_to_one_over_its_place(categories):
    weights = 1 / np.arange(1, categories + 1)
    found = np.bincount(billions.shares(categories), minlength=categories) / (1 << 16)
    np.testing.assert_allclose(found, weights / weights.sum(), atol=2 / (1 << 16))


@pytest.mark.parametrize("categories", [2, 3, 8, 9, 16, 256])
def test_packed_bits_are_counted_as_the_bits_that_they_hold(categories):
    bits = np.random.default_rng(0).integers(0, 2, (300, categories), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    assert packed.nbytes == 300 * -(-categories // 8)
    found = billions.tally(packed, "unary encoding", categories)
    np.testing.assert_array_equal(found, bits.sum(axis=0))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_collecting_takes_the_memory_of_a_block_however_many_there_are(folder, mechanism):
    blocks = [Block(mechanism, 16, number, 50_000) for number in range(12)]
    for block in blocks:
        billions.write(billions.path_of(folder, block), block)

    def peak(blocks):
        tracemalloc.start()
        total = sum(
            sum(billions.count(billions.path_of(folder, block), block)["counts"])
            for block in blocks
        )
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total > 0
        return found

    peak(blocks[:1])
    assert peak(blocks) < 1.2 * peak(blocks[:2])
    # And that is the block, its bits and two kinds of counts: not the reports of everybody.
    assert peak(blocks) < 25 * 50_000


# The run.


@pytest.mark.parametrize("categories", [2, 16])
def test_the_counts_of_blocks_are_those_of_all_reports_in_one_pass(out, folder, categories):
    assert run("--out", out, "--folder", folder, *SMALL, "--categories", categories) == 0
    found = counts(out)
    blocks = [Block("randomized response", categories, number, 10_000) for number in range(4)]
    truths, reports = map(np.concatenate, zip(*map(billions.draw, blocks), strict=True))
    direct = found["randomized response", categories]
    assert direct["people"] == 40_000
    assert direct["truth"] == np.bincount(truths, minlength=categories).tolist()
    assert direct["estimate"] == pytest.approx(
        randomized_response.estimate(reports, EPSILON, categories=categories)
    )
    bits = [billions.draw(block._replace(mechanism="unary encoding"))[1] for block in blocks]
    bits = np.unpackbits(np.concatenate(bits), axis=1, count=categories)
    p, q = unary_encoding.probabilities(EPSILON)
    unary = found["unary encoding", categories]
    assert unary["counts"] == bits.sum(axis=0).tolist()
    assert unary["estimate"] == pytest.approx(unary_encoding.aggregate(bits, p, q))
    for row in found.values():
        assert np.abs(row["deviations"]).max() < 5


def test_a_second_start_writes_nothing_and_more_people_only_what_is_new(out, folder):
    run("--out", out, "--folder", folder, *SMALL)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
    lines = out.read_bytes()
    assert run("--out", out, "--folder", folder, *SMALL) == 0
    assert out.read_bytes() == lines
    assert run("--out", out, "--folder", folder, "--people", 60_000, "--block", 10_000) == 0
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
    assert len(before) == 8
    assert len(after) == 12
    assert before.items() <= after.items()


def finished(path):
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return sum('"unit"' in line for line in text.split("\n")[:-1])


def test_a_run_that_is_killed_goes_on_and_ends_with_the_same_counts(out, folder, tmp_path):
    words = ["--people", "1600000", "--block", "100000", "--mechanism", "unary encoding"]
    command = [sys.executable, "-m", "dpnotes.experiments.billions", "--out", out, *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*command, "--folder", folder], env=environment)
    limit = time.monotonic() + 120
    while finished(out) < 3 and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = finished(out)
    assert 3 <= done < 16
    kept = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*.npy"))[:done]}
    assert run("--out", out, "--folder", folder, *words) == 0
    # What was finished was not written again.
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    whole = tmp_path / "whole.jsonl"
    run("--out", whole, "--folder", tmp_path / "others", *words)
    for name in ("truth", "counts", "bytes", "blocks", "estimate"):
        [(one, other)] = zip(*(counts(path).values() for path in (out, whole)), strict=True)
        assert one[name] == other[name]
    files = [sorted(place.rglob("*.npy")) for place in (folder, tmp_path / "others")]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_pass_over_all_files_finds_the_counts_of_the_blocks_with_any_workers(out, folder):
    run("--out", out, "--folder", folder, *SMALL)
    expected = counts(out)
    for workers in (1, 2):
        run("--out", out, "--folder", folder, *SMALL, "--collect", "--workers", workers)
    passes = [unit for unit in document(out)["units"] if unit["block"] == "all"]
    assert [unit["workers"] for unit in passes] == [1, 1, 2, 2]
    for unit in passes:
        [row] = unit["runs"]
        whole = expected[unit["mechanism"], 16]
        assert (row["counts"], row["bytes"]) == (whole["counts"], whole["bytes"])
        assert min(row["seconds"], row["most_mb"]) > 0
    # Passes are no blocks, and are not added up with them.
    assert counts(out) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--people", 15, "--block", 10), "--people must be a multiple of --block, 10, got 15"),
        ((*SMALL, "--categories", 257), "--categories must be from 2 to 256, got 257"),
        ((*SMALL, "--categories", 1), "--categories must be from 2 to 256, got 1"),
        ((*SMALL, "--collect"), "lacks 4 of 4 blocks: write them first"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(out, folder, capsys, words, message):
    assert run("--out", out, "--folder", folder, *words) == 1
    assert message in capsys.readouterr().err


# What was measured.


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_billion_people_were_counted_in_blocks_and_again_in_one_pass(mechanism):
    results = load_results("billions")
    found = [row for row in billions.summarize(results) if row["mechanism"] == mechanism]
    [whole] = [row for row in found if row["people"] == 10**9]
    assert sum(whole["truth"]) == 10**9
    assert np.abs(whole["deviations"]).max() < 5
    units = [unit for unit in results["units"] if unit["mechanism"] == mechanism]
    passes = [unit["runs"][0]["counts"] for unit in units if unit["block"] == "all"]
    assert passes == [whole["counts"]] * 2
    # The memory at the last block is that of the first ones.
    steps = [unit["runs"][-1] for unit in units if unit["setup"]["people"] == 10**7]
    taken = [step["taken_mb"] for step in steps if step["step"] == "count"]
    assert len(taken) == 100
    assert taken[-1] < 1.1 * max(taken[:5])
