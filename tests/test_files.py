"""Files that are whole or not there."""

import os
from pathlib import Path

import pytest

from dpnotes._files import written_whole


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "a"
    for text in (b"one", b"two"):
        with written_whole("out", path) as out:
            out.write(text)
            assert not path.exists() or path.read_bytes() == b"one"
        assert path.read_bytes() == text
    assert [kept.name for kept in path.parent.iterdir()] == ["a"]


@pytest.mark.parametrize("broken", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch, broken):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("no space left")

    def write():
        with written_whole("out", path) as out:
            out.write(b"new, and half of")
            if broken == "write":
                fail()

    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif broken == "replace":
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write()
    assert path.read_bytes() == b"old"
    assert [kept.name for kept in tmp_path.iterdir()] == ["a"]


def test_every_writer_has_a_draft_of_its_own(tmp_path):
    path = tmp_path / "a"
    with written_whole("out", path) as one, written_whole("out", path) as other:
        assert one.name != other.name
        one.write(b"one")
        other.write(b"other")
    assert path.read_bytes() == b"one"


def test_what_was_written_is_on_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file))[1])
    monkeypatch.setattr(Path, "replace", lambda *paths: (done.append("name"), replace(*paths))[1])
    with written_whole("out", tmp_path / "a") as out:
        out.write(b"one")
    assert done == ["fsync", "name"]


def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path):
    target, link = tmp_path / "there" / "a", tmp_path / "link"
    link.symlink_to(target)
    for text in (b"one", b"two"):
        with written_whole("out", link) as out:
            out.write(text)
        assert link.is_symlink()
        assert target.read_bytes() == text


def test_a_pipe_or_a_folder_is_never_replaced(tmp_path):
    """Nor is a device; none is tried, since whoever runs this as root would lose it to a bug."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        refused = pytest.raises(ValueError, match="out must be a regular file or not exist yet")
        with refused, written_whole("out", path):
            pass
    assert (tmp_path / "pipe").is_fifo()
