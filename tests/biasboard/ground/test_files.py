from __future__ import annotations

import multiprocessing
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import read_toml, replacing, replacing_folder
from tests.hostile.inputs import NO_TOML


class WriterError(Exception):
    """Raised by a writer in the middle of its work."""


def test_a_file_takes_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert not path.exists()
        assert temporary.parent == path.parent, "a rename is atomic within one folder only"
        temporary.write_text("whole", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_folder_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    path.mkdir()
    (path / "stale.txt").write_text("old", encoding="utf-8")
    with replacing_folder(path) as temporary:
        (temporary / "fresh.txt").write_text("new", encoding="utf-8")
        assert (path / "stale.txt").exists()
    assert [entry.name for entry in path.iterdir()] == ["fresh.txt"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_failing_writer_leaves_what_was_there_and_nothing_else(tmp_path: Path, is_new: bool) -> None:
    file, folder = tmp_path / "out" / "file.txt", tmp_path / "out" / "dataset"
    if not is_new:
        folder.mkdir(parents=True)
        for path in (file, folder / "old.txt"):
            path.write_text("old", encoding="utf-8")
    with pytest.raises(WriterError), replacing(file) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise WriterError
    with pytest.raises(WriterError), replacing_folder(folder) as temporary:
        (temporary / "new.txt").write_text("half", encoding="utf-8")
        raise WriterError
    left = {path: path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert left == ({} if is_new else {file: "old", folder / "old.txt": "old"})
    assert {path.name for path in (tmp_path / "out").iterdir()} == (set() if is_new else {"file.txt", "dataset"})


def killed(work: Callable[[], object]) -> None:
    """Do a work in a process that ends as one that is killed."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "dataset"

    def half() -> None:
        with replacing_folder(path) as temporary:
            (temporary / "half.txt").write_text("half", encoding="utf-8")
            kill()

    killed(half)
    killed(half)
    (tmp_path / ".dataset.notes").mkdir()
    with replacing_folder(tmp_path / "other"):
        assert len(list(tmp_path.iterdir())) == 3
    with replacing_folder(path) as first, replacing_folder(path) as second:
        # Two that work at the same time leave each other alone.
        (first / "first.txt").touch()
        (second / "second.txt").touch()
    assert [entry.name for entry in path.iterdir()] == ["first.txt"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"dataset", "other", ".dataset.notes"}


@pytest.mark.slow
def test_the_old_folder_comes_back_if_the_process_is_killed_between_both_renames(tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    path.mkdir()
    (path / "old.txt").touch()

    def rename_once(one: Path, other: Path) -> None:
        one.rename(other)
        kill()

    def half() -> None:
        with mock.patch.object(Path, "replace", rename_once), replacing_folder(path):
            pass

    killed(half)
    assert not path.exists()
    with pytest.raises(WriterError), replacing_folder(path):
        raise WriterError
    assert [entry.name for entry in path.iterdir()] == ["old.txt"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", NO_TOML)
def test_what_is_no_toml_is_refused(tmp_path: Path, name: str) -> None:
    NO_TOML[name](tmp_path / "prices.toml")
    with pytest.raises(DataError, match=r"prices\.toml: .* a TOML file of prices$"):
        read_toml(tmp_path / "prices.toml", option="--prices", what="prices")
