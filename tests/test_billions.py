"""Reports by the billion: blocks that come out alike, counts that add up, a run that is killed."""

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

from long_runs import read_document, start

from dpnotes import randomized_response, unary_encoding
from dpnotes.datasets import load_results
from dpnotes.experiments import billions
from dpnotes.experiments.billions import EPSILON, MECHANISMS, SEED, Block

ROOT = Path(__file__).parents[1]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.jsonl"


def run(out, *words):
    where = ("--out", out, "--folder", out.parent / "reports")
    return start("billions", *where, "--people", 40_000, "--block", 10_000, *words)


def add_up(out):
    return {row["mechanism"]: row for row in billions.summarize(read_document(out))}


def list_files(out):
    """Return when each file of reports was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(out.parent.rglob("*.npy"))}


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
def test_collecting_takes_the_memory_of_a_block_however_many_there_are(tmp_path, mechanism):
    blocks = [Block(mechanism, 16, number, 50_000) for number in range(12)]
    files = [(billions.path_of(tmp_path, block), block) for block in blocks]
    for file in files:
        billions.write(*file)

    def peak(files):
        tracemalloc.start()
        assert sum(sum(billions.count(*file)["counts"]) for file in files) > 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(files[:1])
    assert peak(files) < 1.2 * peak(files[:2])
    # And that is the block, its bits and two kinds of counts: not the reports of everybody.
    assert peak(files) < 25 * 50_000


# The run.


@pytest.mark.parametrize("categories", [2, 16])
def test_the_counts_of_blocks_are_those_of_all_reports_in_one_pass(out, categories):
    assert run(out, "--categories", categories) == 0
    direct, unary = add_up(out).values()
    blocks = [Block("randomized response", categories, number, 10_000) for number in range(4)]
    truths, reports = map(np.concatenate, zip(*map(billions.draw, blocks), strict=True))
    assert direct["people"] == 40_000
    assert direct["truth"] == np.bincount(truths, minlength=categories).tolist()
    expected = randomized_response.estimate(reports, EPSILON, categories=categories)
    assert direct["estimate"] == pytest.approx(expected)
    bits = [billions.draw(block._replace(mechanism="unary encoding"))[1] for block in blocks]
    bits = np.unpackbits(np.concatenate(bits), axis=1, count=categories)
    assert unary["counts"] == bits.sum(axis=0).tolist()
    expected = unary_encoding.aggregate(bits, *unary_encoding.probabilities(EPSILON))
    assert unary["estimate"] == pytest.approx(expected)
    assert np.abs([direct["deviations"], unary["deviations"]]).max() < 5


def test_a_second_start_writes_nothing_and_more_people_only_what_is_new(out):
    run(out)
    lines, before = out.read_bytes(), list_files(out)
    assert run(out) == 0
    assert out.read_bytes() == lines
    assert run(out, "--people", 60_000) == 0
    after = list_files(out)
    assert (len(before), len(after)) == (8, 12)
    assert before.items() <= after.items()


def test_a_run_that_is_killed_goes_on_and_ends_with_the_same_counts(tmp_path):
    def count_lines():
        return out.read_bytes().count(b'"unit"') if out.exists() else 0

    out, whole = tmp_path / "killed" / "results.jsonl", tmp_path / "whole" / "results.jsonl"
    words = ["--people", "800000", "--block", "50000"]
    command = [sys.executable, "-m", "dpnotes.experiments.billions", "--out", out, *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*command, "--folder", out.parent / "reports"], env=environment)
    limit = time.monotonic() + 120
    while count_lines() < 3 and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert 3 <= count_lines() < 32
    kept = dict([*list_files(out).items()][: count_lines()])
    assert run(out, *words) == run(whole, *words) == 0
    # What was finished was not written again.
    assert kept.items() <= list_files(out).items()
    for one, other in zip(add_up(out).values(), add_up(whole).values(), strict=True):
        for name in ("truth", "counts", "bytes", "blocks", "estimate"):
            assert one[name] == other[name]
    for one, other in zip(list_files(out), list_files(whole), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_pass_over_all_files_finds_the_counts_of_the_blocks_with_any_workers(out):
    run(out)
    expected = add_up(out)
    for workers in (1, 2):
        run(out, "--collect", "--workers", workers)
    passes = [unit for unit in read_document(out)["units"] if unit["block"] == "all"]
    assert [unit["workers"] for unit in passes] == [1, 1, 2, 2]
    for unit in passes:
        [row], whole = unit["runs"], expected[unit["mechanism"]]
        assert (row["counts"], row["bytes"]) == (whole["counts"], whole["bytes"])
        assert min(row["seconds"], row["most_mb"]) > 0
    # Passes are no blocks, and are not added up with them.
    assert add_up(out) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--block", 15_000), "--people must be a multiple of --block, 15000, got 40000"),
        (("--categories", 257), "--categories must be from 2 to 256, got 257"),
        (("--categories", 1), "--categories must be from 2 to 256, got 1"),
        (("--collect",), "lacks 4 of 4 blocks: write them first"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(out, capsys, words, message):
    assert run(out, *words) == 1
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
