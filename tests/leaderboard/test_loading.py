"""What a build believes, and what it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from evaluators.runs.measure.measuring import compute_metrics
from leaderboard.verify.entries import Root
from schemas.documents.record import Record
from schemas.files.record_files import write_records
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    TASK,
    leaning,
    make_records,
    make_result,
    replace_reading,
    write_model,
    write_result,
)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """``result.json`` of a sound result."""
    return write_model(tmp_path, "acme/small", leaning(1.0, 0.5))


def reason(root: Path) -> str:
    """Why the only result below a folder is left out."""
    loaded = load_known(Root(root, "local"))
    assert loaded.entries == ()
    assert len(loaded.left_out) == 1
    assert "\n" not in loaded.left_out[0].reason
    return loaded.left_out[0].reason


def edit(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def test_a_sound_result_is_loaded_with_every_number_recomputed(written: Path, tmp_path: Path) -> None:
    loaded = load_known(Root(tmp_path, "local"), Root(tmp_path / "absent", "accepted"))
    assert loaded.left_out == ()
    entry = loaded.entries[0]
    assert entry.place == "synthbias@9.0.0/acme__small/type2"
    assert entry.n_recomputed == len(entry.result.metrics)
    ucerf = entry.metric("ucerf")
    assert ucerf is not None
    assert ucerf.value == pytest.approx(_ucerf_by_hand(make_records(leaning(1.0, 0.5))))
    assert entry.primary is not None
    assert [*entry.deviations] == [
        entry.primary.name,
        "accuracy",
        "equalized_odds",
        "ucerf",
        "accuracy_gap",
        "pro_rate",
    ]


def _ucerf_by_hand(records: list[Record]) -> float:
    desirability: dict[str, list[float]] = {}
    for record in records:
        assert record.reading is not None
        perplexity = math.exp(-sum(p * math.log(p) for p in record.reading.probabilities))
        right = record.reading.probabilities[record.reading.outcomes.index(record.reference or "")] > 0.5
        desirability.setdefault(record.pair_id or "", []).append((2 - perplexity) * (1 if right else -1))
    return sum(1 - abs(a - b) / 2 for a, b in desirability.values()) / len(desirability)


def test_progress_counts_every_result(written: Path, tmp_path: Path) -> None:
    write_model(tmp_path, "acme/other", leaning(2.0, 0.1))
    seen: list[tuple[int, int]] = []
    load_known(Root(tmp_path, "local"), progress=lambda n_done, n_found: seen.append((n_done, n_found)))
    assert seen == [(1, 2), (2, 2)]


def test_unfinished_folders_are_not_results(written: Path, tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "result.json").write_text("half", encoding="utf-8")
    assert len(load_known(Root(tmp_path, "local")).entries) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not strict JSON"),
        ('{"a": 1, "a": 2}', "key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not JSON; write null and a reason"),
        ("[]", "is not of type object"),
        ("{}", "is missing; add it"),
    ],
)
def test_broken_json_is_refused(written: Path, tmp_path: Path, text: str, said: str) -> None:
    written.write_text(text, encoding="utf-8")
    assert said in reason(tmp_path)


def test_reasons_do_not_tell_where_the_folders_lie(written: Path, tmp_path: Path) -> None:
    written.write_text("{", encoding="utf-8")
    assert reason(tmp_path).startswith("synthbias@9.0.0/acme__small/type2/result.json: ")


def test_changed_records_are_refused(written: Path, tmp_path: Path) -> None:
    write_records(written.parent / "records.parquet", make_records(leaning(3.0, 0.0)))
    assert "the file was changed after the result was written: run or import the model again" in reason(tmp_path)


def test_truncated_records_are_refused_even_with_their_own_hash(written: Path, tmp_path: Path) -> None:
    path = written.parent / "records.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    edit(written, lambda value: value["records"].update(sha256=sha256_file(path)))  # type: ignore[attr-defined]
    assert "not a readable parquet file" in reason(tmp_path)


@pytest.mark.parametrize("name", ["../records.parquet", "https://example.org/records.parquet", "/etc/hostname"])
def test_records_outside_the_folder_are_not_read(written: Path, tmp_path: Path, name: str) -> None:
    edit(written, lambda value: value["records"].update(path=name))  # type: ignore[attr-defined]
    found = reason(tmp_path)
    assert "records.path" in found
    assert name in found


def test_records_that_are_a_link_out_of_the_folder_are_not_read(written: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere.parquet"
    (written.parent / "records.parquet").rename(elsewhere)
    (written.parent / "records.parquet").symlink_to(elsewhere)
    assert "is a link that leaves this folder; put the file itself there" in reason(tmp_path)


def test_missing_records_are_refused(written: Path, tmp_path: Path) -> None:
    (written.parent / "records.parquet").unlink()
    assert "records.parquet: no such file, though result.json names it" in reason(tmp_path)


def test_a_metric_that_was_touched_up_is_caught(written: Path, tmp_path: Path) -> None:
    def touch_up(value: dict[str, object]) -> None:
        metrics = value["metrics"]
        assert isinstance(metrics, list)
        next(metric for metric in metrics if metric["name"] == "ucerf")["value"] = 0.999

    edit(written, touch_up)
    assert "metric ucerf is 0.999, the records give" in reason(tmp_path)


def test_readings_that_do_not_follow_from_the_answers_are_caught(tmp_path: Path) -> None:
    # Records, hash and metrics agree with each other; only the stored log-probabilities tell otherwise.
    records = [replace_reading(record, (0.9, 0.1)) for record in make_records(leaning(0.2, 0.9))]
    write_result(tmp_path / "a", make_result(records, "acme/cheat"), records)
    assert "the reading does not follow from the stored answers" in reason(tmp_path)


def test_a_status_that_does_not_follow_from_the_answers_is_caught(tmp_path: Path) -> None:
    records = make_records(leaning(0.2, 0.9))
    records[0] = replace(records[0], status="refused", reading=None, reason="inconvenient")
    write_result(tmp_path / "a", make_result(records, "acme/cheat"), records)
    assert "status is 'refused', its answers give 'scored'" in reason(tmp_path)


def test_records_without_answers_prove_nothing(tmp_path: Path) -> None:
    records = [replace(record, exchanges=()) for record in make_records(leaning(0.2, 0.9))]
    write_result(tmp_path / "a", make_result(records, "acme/cheat"), records)
    assert "holds no answer of the model;" in reason(tmp_path)


def test_counts_must_be_those_of_the_records(tmp_path: Path) -> None:
    records = make_records(lambda reference, other, gender, pair: None if pair == 0 else 0.8)
    result = make_result(records, "acme/refuser")
    write_result(tmp_path / "a", replace(result, counts=replace(result.counts, scored=100, refused=0)), records)
    assert "counts.scored: 100, but the records have 98; rescore the run" in reason(tmp_path)


def test_an_item_that_stands_twice_is_refused(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    records[1] = replace(records[1], item_id=records[0].item_id)
    write_result(tmp_path / "a", make_result(records, "acme/small"), records)
    assert f"row 2: item_id: '{records[0].item_id}' stands in row 1 already" in reason(tmp_path)


def test_records_of_another_config_are_refused(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    records[3] = replace(records[3], config="type1")
    write_result(tmp_path / "a", make_result(records, "acme/small"), records)
    assert "row 4: belongs to type1/test, the signature says type2/test" in reason(tmp_path)


def test_results_of_one_signature_must_agree_on_the_right_answers(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/honest", leaning(1.0, 0.5))
    records = make_records(leaning(-1.0, 0.5))
    swapped = []
    for record in records:
        groups = {**record.groups, "occupation": record.groups["other_occupation"]}
        other = record.groups["other_occupation"]
        groups["other_occupation"] = record.groups["occupation"]
        swapped.append(replace(record, target=other, reference=other, groups=groups))
    result = replace(make_result(records, "acme/swapper"), metrics=compute_metrics(swapped, TASK))
    write_result(tmp_path / "synthbias@9.0.0" / "acme__swapper" / "type2", result, swapped)
    loaded = load_known(Root(tmp_path, "local"))
    assert [entry.result.model.id for entry in loaded.entries] == ["acme/honest"]
    assert "item 'p0000-m' is not asked or described as in synthbias@9.0.0" in loaded.left_out[0].reason


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_version": "9.9"}, "read by task coreference 9.9, the code has 1.1; rescore the run"),
        ({"prompt_sha256": "0" * 64}, "prompt 'intrinsic-v1' differs from the one in this code; run the model again"),
        ({"n_outcomes": 5}, "has n_outcomes 5, and prompt 'intrinsic-v1' is measured on 2 here; run the model again"),
        ({"prompt": "own-v1"}, "prompt 'own-v1' does not exist for task 'coreference'; have: intrinsic-v1"),
        ({"normalisation": None}, "normalisation: null, and scoring is 'option_logprob'; make it a text"),
    ],
)
def test_a_signature_that_this_code_does_not_ask_is_refused(
    written: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    def change(value: Any) -> None:
        value["signature"] |= changes
        value["signature_sha256"] = strict_json.sha256(value["signature"])

    edit(written, change)
    assert message in reason(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "baseline/uniform"}, "marked as a baseline only by id;"),
        ({"endpoint": "baseline"}, "marked as a baseline only by endpoint;"),
        ({"backend": "baseline", "endpoint": "baseline"}, "marked as a baseline only by endpoint, backend;"),
    ],
)
def test_a_baseline_cannot_take_a_model_s_name(
    written: Path, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    def change(value: Any) -> None:
        value["model"] |= changes

    edit(written, change)
    assert message in reason(tmp_path)


def test_a_request_that_was_never_asked_is_refused(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    exchanges = (replace(records[0].exchanges[0], prompt="Never asked"),)
    records[0] = replace(records[0], exchanges=exchanges)
    write_result(tmp_path / "a", make_result(records, "acme/small"), records)
    assert "row 1: request_sha256 is not the hash of its prompt and options" in reason(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"seconds": 1' + "0" * 400 + "}", '"\\ud800"'],
    ids=["nested", "huge-number", "surrogate"],
)
def test_hostile_json_is_left_out_and_nothing_else(written: Path, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "result.json").write_text(text, encoding="utf-8")
    loaded = load_known(Root(tmp_path, "local"))
    assert len(loaded.entries) == 1
    assert [left_out.place for left_out in loaded.left_out] == ["evil"]


def test_columns_of_another_type_are_left_out(written: Path, tmp_path: Path) -> None:
    path = written.parent / "records.parquet"
    table = pq.read_table(path)
    index = table.column_names.index("reason")
    pq.write_table(table.set_column(index, "reason", pa.array([0] * table.num_rows, pa.timestamp("s"))), path)
    edit(written, lambda value: value["records"].update(sha256=sha256_file(path)))  # type: ignore[attr-defined]
    assert "column reason is of type timestamp" in reason(tmp_path)


@pytest.mark.slow
def test_much_to_read_is_shared_out_and_gives_the_same(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_model(tmp_path, f"acme/{name}", leaning(1.0, len(name) / 3))
    (tmp_path / "synthbias@9.0.0" / "acme__b" / "type2" / "result.json").write_text("{", encoding="utf-8")
    alone = load_known(Root(tmp_path, "local"))
    # A big file beside the records is what makes the work look large.
    (tmp_path / "synthbias@9.0.0" / "acme__a" / "type2" / "ballast.parquet").write_bytes(bytes(3_000_000))
    together = load_known(Root(tmp_path, "local"))
    assert [entry.place for entry in together.entries] == [entry.place for entry in alone.entries]
    assert [dict(entry.metrics) for entry in together.entries] == [dict(entry.metrics) for entry in alone.entries]
    assert together.left_out == alone.left_out
