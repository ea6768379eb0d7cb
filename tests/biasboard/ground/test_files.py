from __future__ import annotations

import math
import multiprocessing
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import read_toml, replacing, replacing_folder
from biasboard.ground.strict_json import JsonValue
from tests.hostile.inputs import NO_TOML


class WriterError(Exception):
    """Raised by a writer in the middle of its work."""


def test_a_file_takes_its_name_when_it_is_complete_and_a_folder_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert not path.exists()
        assert temporary.parent == path.parent, "a rename is atomic within one folder only"
        temporary.write_text("whole", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path = tmp_path / "out" / "dataset"
    path.mkdir(parents=True)
    (path / "stale.txt").write_text("old", encoding="utf-8")
    with replacing_folder(path) as temporary:
        (temporary / "fresh.txt").write_text("new", encoding="utf-8")
        assert (path / "stale.txt").exists()
    assert [entry.name for entry in path.iterdir()] == ["fresh.txt"]
    assert list(path.parent.iterdir()) == [path]


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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"value": NaN}', "NaN is not JSON; write null"),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', "key 'a' stands twice; keep one"),
        ('{"value": 1e999}', "1e999 is too large for a number"),
        ('{"a": 1,}', r".*line \d+ column \d+"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=rf"^result\.json: not strict JSON: {fault}"):
        strict_json.loads(text, where="result.json")


def test_a_missing_file_and_one_of_another_encoding_are_named_and_none_is_written_like_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: no such file; correct the path$"):
        strict_json.read(tmp_path / "absent.json")
    (tmp_path / "latin.json").write_bytes('"é"'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.json: not UTF-8"):
        strict_json.read(tmp_path / "latin.json")
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.write(tmp_path / "value.json", {"value": math.nan})
    assert [path.name for path in tmp_path.iterdir()] == ["latin.json"]


@pytest.mark.slow
@given(json_values)
def test_what_is_written_is_read_back(value: JsonValue) -> None:
    assert strict_json.loads(strict_json.dumps(value), where="value") == value
    assert strict_json.loads(strict_json.dumps_in_lines({"a": value, "b": []}), where="value") == {"a": value, "b": []}
    assert strict_json.loads(strict_json.canonical(value).decode(), where="value") == value


def test_canonical_bytes_and_hash_never_change() -> None:
    value: JsonValue = {"b": [1, 2.5, True, None], "a": "é\n"}
    assert strict_json.canonical(value) == b'{"a":"\xc3\xa9\\n","b":[1,2.5,true,null]}'
    assert strict_json.sha256(value) == "f12f46c4bed1310e6876469af0ee7ac18d6b5bbac716482aef6d8fb6c96d361f"
