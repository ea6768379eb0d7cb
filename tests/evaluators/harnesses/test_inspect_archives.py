"""Archives of inspect_ai that are damaged, or made to harm whoever reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from evaluators.harness import load_harness
from evaluators.harnesses.inspect_ai.archive import Archive
from tests.evaluators.harnesses.inspect_logs import Entry, zipped

TEXT = json.dumps({"a": ["some text"] * 500}).encode()


def archive(folder: Path, *entries: Entry) -> Path:
    path = folder / "made.eval"
    path.write_bytes(zipped(list(entries)))
    return path


@pytest.mark.parametrize("method", [0, 8, 93])
def test_entries_are_read_whatever_their_compression(tmp_path: Path, method: int) -> None:
    with Archive(archive(tmp_path, Entry("x/ü.json", TEXT, method), Entry("empty", b"{}", method))) as opened:
        assert tuple(opened.entries) == ("x/ü.json", "empty")
        assert (opened.json("x/ü.json"), opened.json("empty")) == (json.loads(TEXT), {})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry("x", TEXT, declared=10 << 30), "has 10,737,418,240 bytes, more than the 134,217,728 that are read"),
        (Entry("x", TEXT, declared=100), "is damaged: its size or checksum is another"),
        (Entry("x", TEXT, method=8, declared=100), "cannot be read (Bad CRC-32 for file 'x')"),
        (Entry("x", TEXT, declared=len(TEXT) + 1), "is damaged: its size or checksum is another"),
        # A megabyte of zeros that claims to be small: no more than the claim is unpacked.
        (Entry("x", bytes(1 << 20), declared=10), "is damaged: its size or checksum is another"),
        (Entry("x", TEXT, method=12), "cannot be read"),
        (Entry("x", TEXT, method=14), "it is compressed in a way that inspect_ai does not use"),
        (Entry("x", TEXT, method=99), "cannot be read"),
        (Entry("x", b'{"a": NaN}'), "NaN is not JSON"),
        (Entry("x", b'{"a": 1, "a": 2}'), "key 'a' stands twice"),
        (Entry("x", b"[" * 100_000), "nested too deeply"),
        (Entry("x", b'{"a": "\\ud800"}'), "not strict JSON"),
        (Entry("x", b"\xff\xfe"), "byte 0 is not UTF-8"),
        (Entry("x", b"{"), "not strict JSON"),
    ],
)
def test_a_hostile_entry_is_one_line(tmp_path: Path, entry: Entry, message: str) -> None:
    with Archive(archive(tmp_path, entry)) as opened, pytest.raises(DataError) as error:
        opened.json("x")
    assert message in str(error.value)
    assert "entry 'x'" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_damaged_stream_or_name_is_one_line(tmp_path: Path) -> None:
    zstandard, deflated = (archive(tmp_path, Entry("x", TEXT, method)).read_bytes() for method in (93, 8))
    for content in (zstandard[:40] + bytes(8) + zstandard[48:], deflated.replace(b"x", b"\xff", 1)):
        (tmp_path / "made.eval").write_bytes(content)
        with Archive(tmp_path / "made.eval") as opened, pytest.raises(DataError, match="entry 'x'"):
            opened.json("x")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip archive", zipped([Entry("x", TEXT)])[:-30]])
def test_a_file_that_is_no_archive_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "made.eval"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^made\.eval: is no zip archive"):
        Archive(path)


def test_entries_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    entries = [Entry(f"x{number}", TEXT, declared=9 << 30) for number in range(2)]
    with pytest.raises(DataError, match=r"made\.eval: unpacks to 19,327,352,832 bytes, more than the 17,179,869,184"):
        Archive(archive(tmp_path, *entries))


def test_the_last_entry_of_a_name_counts_and_nothing_is_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path, Entry("x", TEXT), Entry("samples/../../../evil.json", b"1"), Entry("x", b"2"))
    with Archive(path) as opened:
        assert {name: opened.json(name) for name in opened.entries} == {"x": 2, "samples/../../../evil.json": 1}
    assert [one.name for one in tmp_path.iterdir()] == ["made.eval"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([Entry("_journal/start.json", b"{}")], "the evaluation has not ended"),
        ([Entry("x", b"{}")], "entry 'header.json' is missing"),
        ([Entry("header.json", b"[]")], "is a log of version None"),
        ([Entry("header.json", b'{"version": 2}')], "status: Field required"),
    ],
)
def test_a_log_without_a_whole_header_is_refused(tmp_path: Path, entries: list[Entry], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_harness("inspect-ai").read(archive(tmp_path, *entries))


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    harness = load_harness("inspect-ai")
    for path, message in (
        (tmp_path / "none", "no such file or folder"),
        (tmp_path, "no log that ends in .eval or .json here"),
        (Path(__file__), "is no log, which ends in .eval or .json"),
    ):
        with pytest.raises(ConfigError, match=message):
            harness.read(path)
    (tmp_path / "2026-01-02T03.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(DataError, match="nested too deeply"):
        harness.read(tmp_path)
