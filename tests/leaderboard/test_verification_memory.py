"""Results that were verified before: the same entry again, and nothing that was changed in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from biasboard.ground.memory import Memory
from evaluators.runs.measure import baseline_gate
from leaderboard.pages import compare, explorer, model_views, suites
from leaderboard.verify import verification
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.intake import contents_of
from leaderboard.verify.verdicts import load
from schemas.documents.result import CorrectionsFile
from tests.leaderboard.forging import Places, forge
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, present, write_model


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    write_gifi_model(tmp_path / "runs", "lab/even", 0.5)
    return tmp_path / "runs"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory")


def entries(results: Path, memory: Memory) -> list[Entry]:
    loaded = load_known(Root(results, "local"), memory=memory)
    assert loaded.left_out == ()
    return list(loaded.entries)


def reason(results: Path, memory: Memory) -> str:
    (left_out,) = load_known(Root(results, "local"), memory=memory).left_out
    return left_out.reason


def assert_equal(ones: list[Entry], others: list[Entry]) -> None:
    for one, other in zip(ones, others, strict=True):
        for field in fields(Entry):
            ours, theirs = getattr(one, field.name), getattr(other, field.name)
            if field.name == "deviations":
                assert ours.keys() == theirs.keys()
                for name, deviations in ours.items():
                    assert deviations.n_clusters == theirs[name].n_clusters
                    assert all(map(np.array_equal, deviations.parts, theirs[name].parts))
            elif field.name == "sketch":
                for values, of_other in zip(ours, theirs, strict=True):
                    np.testing.assert_array_equal(values, of_other, strict=True)
            else:
                assert ours == theirs, field.name


@pytest.mark.slow
def test_the_same_files_are_verified_once_unless_all_is_to_be_fresh_or_the_memory_was_tampered_with(
    results: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[object] = []
    check = verification.check_records

    def noted(path: Path, *others: object) -> None:
        # What is not taken from memory: of each the rows are checked.
        verified.append(path)
        check(path, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(verification, "check_records", noted)
    first = entries(results, memory)
    assert len(verified) == len(first) == 5
    assert any(one.standing is not None for one in first)
    assert any(one.deviations for one in first)
    assert_equal(first, entries(results, memory))
    assert len(verified) == 5
    folder = present(memory.folder)
    entries(results, Memory(folder, is_fresh=True))
    assert len(verified) == 10
    for path in folder.rglob("*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace("0.", "0.9"), encoding="utf-8")
    baseline_gate._KNOWN.clear()
    assert_equal(first, entries(results, memory))
    assert len(verified) == 15


def change_result(folder: Path) -> None:
    value = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    value["metrics"][0]["value"] = 0.123
    (folder / "result.json").write_text(json.dumps(value), encoding="utf-8")


def one_byte_of_records(folder: Path) -> None:
    content = bytearray((folder / "records.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "records.parquet").write_bytes(content)


def link_records(folder: Path) -> None:
    # Though the bytes are known.
    elsewhere = folder.parents[3] / "elsewhere.parquet"
    shutil.move(folder / "records.parquet", elsewhere)
    (folder / "records.parquet").symlink_to(elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [(change_result, "the records give"), (one_byte_of_records, "was changed after"), (link_records, "is a link that")],
)
def test_changed_files_are_read_again(
    tmp_path: Path, memory: Memory, change: Callable[[Path], None], said: str
) -> None:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    entries(tmp_path / "runs", memory)
    change(path.parent)
    assert said in reason(tmp_path / "runs", memory)


@pytest.mark.slow
def test_values_of_baselines_are_remembered_too(results: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline_gate._KNOWN.clear()
    first = {entry.result.model.id: entry.standing for entry in entries(results, memory)}
    baseline_gate._KNOWN.clear()

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(baseline_gate, "BaselineAnswers", never)
    source = next(path.parent for path in results.rglob("result.json") if "small" in str(path))
    copied = Path(shutil.copytree(source, results / "copy")) / "result.json"
    copied.write_text(json.dumps(json.loads(copied.read_text())))  # Other bytes, the same content.
    again = [entry.standing for entry in entries(results, memory) if entry.result.model.id == "acme/small"]
    assert again == [first["acme/small"]] * 2


@pytest.mark.slow
def test_an_own_run_is_verified_again_as_that_of_a_stranger(places: Places, tmp_path: Path, memory: Memory) -> None:
    forge(places, tmp_path / "a", of_result=lambda one: replace(one, model=replace(one.model, revision="2")))
    own, foreign = (load([Root(tmp_path, origin)], places.book, memory) for origin in ("local", "accepted"))
    assert len(own.entries) == 1
    assert foreign.entries == ()
    assert "the identity says revision '1', the model '2'" in foreign.left_out[0].reason


MADE_OF_RESULTS: list[Callable[[Entry, Memory], object]] = [
    lambda entry, memory: compare._slices(entry, ["accuracy"], memory),
    lambda entry, memory: explorer._remembered(explorer._items, entry, memory),
    lambda entry, memory: explorer._remembered(explorer._answers, entry, memory),
    lambda entry, memory: suites.parts_of(entry, ["accuracy"], memory),
    lambda entry, memory: model_views._class_report(entry, entry.folder or Path(), memory),
]


def test_what_is_made_of_a_result_is_remembered_by_its_signature_and_all_its_files(tmp_path: Path) -> None:
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    (entry,) = entries(tmp_path / "runs", Memory(None))
    file = CorrectionsFile(path="corrections.json", sha256="1" * 64)
    entry = replace(entry, result=replace(entry.result, corrections=file))
    for make in MADE_OF_RESULTS:
        asked = mock.patch.object(Memory, "get", side_effect=RuntimeError("asked"))
        with asked as get, pytest.raises(RuntimeError, match="asked"):
            make(entry, Memory(tmp_path / "memory"))
        parts = get.call_args.args[1]
        assert parts.items() >= contents_of(entry.result).items()
        assert parts["corrections"] == "1" * 64
