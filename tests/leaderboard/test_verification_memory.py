"""Results that were verified before: the same entry again, and nothing that was changed in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure import baseline_gate
from leaderboard.pages import class_tables, compare, explorer, part_values
from leaderboard.verify import checks, verification
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.intake import contents_of
from leaderboard.verify.loading import load
from schemas.documents.record import Record
from schemas.documents.result import CorrectionsFile
from schemas.files import row_files
from schemas.files.record_files import write_records
from tests.leaderboard.forging import Places, forge
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, write_model


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    write_gifi_model(tmp_path / "runs", "lab/even", 0.5)
    return tmp_path / "runs"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory")


class Verified:
    """How many results were verified, and not taken from memory."""

    def __init__(self) -> None:
        self.n = 0


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> Verified:
    """Count the calls of what verification must do and memory must not: check the rows of a result."""
    seen = Verified()
    check = checks.check_records

    def counted(*arguments: object) -> None:
        seen.n += 1
        check(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(verification, "check_records", counted)
    return seen


def entries(results: Path, memory: Memory) -> list[Entry]:
    loaded = load_known(Root(results, "local"), memory=memory)
    assert loaded.left_out == ()
    return list(loaded.entries)


def assert_equal(one: Entry, other: Entry) -> None:
    for field in fields(Entry):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "deviations":
            assert ours.keys() == theirs.keys()
            for name, deviations in ours.items():
                assert deviations.n_clusters == theirs[name].n_clusters
                assert all(map(np.array_equal, deviations.parts, theirs[name].parts))
        elif field.name == "sketch":
            for values, others in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(values, others, strict=True)
        else:
            assert ours == theirs, field.name


@pytest.mark.slow
def test_the_same_files_are_verified_once(results: Path, memory: Memory, verified: Verified) -> None:
    first = entries(results, memory)
    assert verified.n == len(first) == 5
    second = entries(results, memory)
    assert verified.n == 5
    for one, other in zip(first, second, strict=True):
        assert_equal(one, other)
    assert any(one.standing is not None for one in first)
    assert any(one.deviations for one in first)


@pytest.mark.slow
def test_fresh_means_verified_again(results: Path, tmp_path: Path, memory: Memory, verified: Verified) -> None:
    entries(results, memory)
    entries(results, Memory(tmp_path / "memory", is_fresh=True))
    assert verified.n == 10


def change_result(folder: Path) -> None:
    path = folder / "result.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value["metrics"][0]["value"] = 0.123
    path.write_text(json.dumps(value), encoding="utf-8")


def change_records(folder: Path) -> None:
    """Change one log-probability, and name the new hash in the result, as a forger would."""
    path = folder / "records.parquet"
    records = row_files.read_rows(path, Record)
    exchange = records[0].exchanges[0]
    logprobs = (-0.5, *exchange.option_logprobs[1:])
    records[0] = replace(records[0], exchanges=(replace(exchange, option_logprobs=logprobs), *records[0].exchanges[1:]))
    write_records(path, records)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["records"]["sha256"] = sha256_file(path)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


def one_byte_of_records(folder: Path) -> None:
    path = folder / "records.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_result, "the records give"),
        (change_records, "does not follow from the stored answers"),
        (one_byte_of_records, "was changed after the result was written"),
        (lambda folder: (folder / "records.parquet").unlink(), "no such file"),
    ],
)
def test_a_changed_file_is_not_taken_from_memory(
    tmp_path: Path, memory: Memory, change: Callable[[Path], None], reason: str
) -> None:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    entries(tmp_path / "runs", memory)
    change(path.parent)
    (left_out,) = load_known(Root(tmp_path / "runs", "local"), memory=memory).left_out
    assert reason in left_out.reason


def test_a_link_to_elsewhere_is_refused_though_its_bytes_are_known(tmp_path: Path, memory: Memory) -> None:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    entries(tmp_path / "runs", memory)
    records = path.parent / "records.parquet"
    shutil.move(records, tmp_path / "elsewhere.parquet")
    records.symlink_to(tmp_path / "elsewhere.parquet")
    (left_out,) = load_known(Root(tmp_path / "runs", "local"), memory=memory).left_out
    assert "is a link that leaves this folder" in left_out.reason


@pytest.mark.slow
def test_a_memory_that_was_tampered_with_is_not_believed(
    results: Path, tmp_path: Path, memory: Memory, verified: Verified
) -> None:
    first = entries(results, memory)
    paths = list((tmp_path / "memory").rglob("*.json"))
    for path in paths:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("0.", "0.9"), encoding="utf-8")
    baseline_gate._KNOWN.clear()
    again = entries(results, memory)
    assert verified.n == 10
    for one, other in zip(first, again, strict=True):
        assert_equal(one, other)


@pytest.mark.slow
def test_values_of_baselines_are_remembered_too(results: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline_gate._KNOWN.clear()
    first = entries(results, memory)
    baseline_gate._KNOWN.clear()

    def never(self: baseline_gate.GateCheck) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(baseline_gate.GateCheck, "_computed_references", never)
    copied = results / "copy"
    source = next(path.parent for path in results.rglob("result.json") if "small" in str(path))
    shutil.copytree(source, copied)
    value = json.loads((copied / "result.json").read_text(encoding="utf-8"))
    (copied / "result.json").write_text(json.dumps(value), encoding="utf-8")  # Other bytes, the same content.
    again = entries(results, memory)
    standing = {entry.result.model.id: entry.standing for entry in first}
    assert len(again) == len(first) + 1
    assert all(entry.standing == standing[entry.result.model.id] for entry in again if "small" in entry.result.model.id)


def test_what_was_verified_as_an_own_run_is_verified_again_as_that_of_a_stranger(
    places: Places, tmp_path: Path, memory: Memory
) -> None:
    forge(
        places,
        tmp_path / "runs" / "a",
        of_result=lambda result: replace(result, model=replace(result.model, revision="2")),
    )
    own, foreign = (load([Root(tmp_path / "runs", origin)], places.book, memory) for origin in ("local", "accepted"))
    assert len(own.entries) == 1
    assert foreign.entries == ()
    assert "the identity says revision '1', the model '2'" in foreign.left_out[0].reason


class Asked(Exception):  # noqa: N818
    """What a memory was asked for."""


class AskedMemory(Memory):
    """A memory that says by what it is asked for a value."""

    def get(self, kind: str, parts: Mapping[str, JsonValue]) -> JsonValue | None:
        raise Asked(dict(parts))


MADE_OF_RESULTS: list[Callable[[Entry, Memory], object]] = [
    lambda entry, memory: compare._slices(entry, ["accuracy"], memory),
    lambda entry, memory: explorer._remembered(explorer._items, entry, memory),
    lambda entry, memory: explorer._remembered(explorer._answers, entry, memory),
    lambda entry, memory: part_values.parts_of(entry, ["accuracy"], memory),
    lambda entry, memory: class_tables._report(entry, entry.folder or Path(), memory),
]


@pytest.mark.parametrize("make", MADE_OF_RESULTS)
def test_what_is_made_of_a_result_is_remembered_by_its_signature_and_all_its_files(
    tmp_path: Path, make: Callable[[Entry, Memory], object]
) -> None:
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    (entry,) = entries(tmp_path / "runs", Memory(None))
    file = CorrectionsFile(path="corrections.json", sha256="1" * 64)
    entry = replace(entry, result=replace(entry.result, corrections=file))
    with pytest.raises(Asked) as asked:
        make(entry, AskedMemory(tmp_path / "memory"))
    named_parts = asked.value.args[0].items()
    assert named_parts >= contents_of(entry.result).items()
    assert dict(named_parts)["corrections"] == "1" * 64
