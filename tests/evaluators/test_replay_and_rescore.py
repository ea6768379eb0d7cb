"""Scores from stored answers: replayed, computed again, and read under another normalisation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.files import sha256_file
from evaluators.backend import ChoiceRequest
from evaluators.backend import open_backend as open_any_backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.replay import open_backend
from evaluators.runs.ask.pipeline import run
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.measure.rescoring import reread, rescore
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.files.record_files import write_records
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import RECORDS, read_run, write_result
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(40)})


@pytest.fixture
def finished(dataset: Path, tmp_path: Path) -> Path:
    return ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


def replayed(dataset: Path, model: str, out: Path, name: str | None = None) -> Path:
    backend = open_backend(model, BackendOptions(name=name))
    selection = select(dataset, read_manifest(dataset), "type2")
    return run(Plan(selection, TASK, prompt_of(TASK, "mcq2-v1")), backend, RunOptions(root=out, command="tests")).folder


@pytest.mark.slow
def test_a_replayed_run_has_the_same_metrics(dataset: Path, finished: Path, tmp_path: Path) -> None:
    again = read_run(replayed(dataset, str(finished), tmp_path / "replayed"))
    original = read_run(finished)
    assert again.result.metrics == original.result.metrics
    assert again.result.model.id == original.result.model.id == "tests/logging"
    assert (again.result.model.endpoint, original.result.model.endpoint) == ("replay", "local")
    assert again.result.signature == original.result.signature


@pytest.mark.slow
def test_answers_of_a_json_lines_file_are_scored(dataset: Path, finished: Path, tmp_path: Path) -> None:
    original = read_run(finished)
    path = tmp_path / "answers.jsonl"
    lines = []
    for record in original.records:
        for exchange in record.exchanges:
            line = {"prompt": exchange.prompt, "options": exchange.options, "option_logprobs": exchange.option_logprobs}
            lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines))
    again = read_run(replayed(dataset, str(path), tmp_path / "replayed", name="acme/imported"))
    assert again.result.metrics == original.result.metrics
    assert again.result.model.id == "acme/imported"


def test_zero_probability_survives_file_store_and_records(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"prompt": "Who?", "options": [" A", " B"], "option_logprobs": ["-inf", -0.5]}\n')
    request = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("guard", "nurse"))
    (answer,) = open_backend(str(path), BackendOptions()).answer([request])
    assert answer.option_logprobs == (float("-inf"), -0.5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"answers\.jsonl:2: not strict JSON"),
        ('{"prompt": "x", "options": [" A"], "option_logprobs": [NaN]}', r"answers\.jsonl:2: .*NaN"),
        ('{"prompt": "x", "options": [" A"]}', r"answers\.jsonl:2: option_logprobs: Field required"),
        ('{"option_logprobs": [-1]}', r"answers\.jsonl:2: says neither"),
        ('{"prompt": "x", "options": [" A", " B"], "option_logprobs": [-1]}', r"answers\.jsonl:2: 2 options, 1"),
        ('{"prompt": "first", "options": [" A"], "option_logprobs": [-2]}', r"answers\.jsonl:2: .*earlier line"),
        ('{"prompt": "x", "options": [" A"], "option_logprobs": [0.5]}', r"answers\.jsonl:2: .*above 0"),
        (
            '{"prompt": "x", "options": [" A"], "option_logprobs": [-1], "option_token_counts": [1, 2]}',
            r"answers\.jsonl:2: 2 option_token_counts, 1 option_logprobs",
        ),
        (
            '{"prompt": "x", "options": [" A"], "option_logprobs": [-1], "option_token_counts": [-2]}',
            r"answers\.jsonl:2: option_token_counts",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"prompt": "first", "options": [" A"], "option_logprobs": [-1]}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        open_backend(str(path), BackendOptions())


def test_an_answer_for_another_number_of_options_fails(tmp_path: Path) -> None:
    request = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("guard", "nurse"))
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"request_sha256": request.sha256, "option_logprobs": [-1]}) + "\n")
    (answer,) = open_backend(str(path), BackendOptions()).answer([request])
    assert (answer.status, answer.error) == ("failed", "1 log-probabilities for 2 options")


def test_a_baseline_cannot_pass_for_a_model(dataset: Path, tmp_path: Path) -> None:
    selection = select(dataset, read_manifest(dataset), "type2")
    backend = open_any_backend("baseline", "uniform", BackendOptions())
    folder = run(
        Plan(selection, TASK, prompt_of(TASK, None)), backend, RunOptions(root=tmp_path, command="tests")
    ).folder
    with pytest.raises(ConfigError, match="a baseline is no model to replay"):
        open_backend(str(folder), BackendOptions(name="acme/best"))


def test_what_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"not UTF-8 text .* give a \.jsonl file"):
        open_backend(str(tmp_path / "answers.jsonl"), BackendOptions())


def test_nothing_to_replay_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a run folder"):
        open_backend(str(tmp_path / "nowhere"), BackendOptions())
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="holds no answers"):
        open_backend(str(tmp_path / "empty.jsonl"), BackendOptions())
    with pytest.raises(ConfigError, match="no use for --dtype"):
        open_backend(str(tmp_path / "empty.jsonl"), BackendOptions(dtype="float32"))


def test_rescoring_changes_nothing_where_nothing_changed(finished: Path) -> None:
    before = {name: (finished / name).read_bytes() for name in ("result.json", "records.parquet")}
    outcome = rescore(finished)
    assert outcome.changes == ()
    assert outcome.n_metrics > 100
    assert {name: (finished / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_a_falsified_score_is_put_right_and_named(finished: Path) -> None:
    sound = read_run(finished).result
    metrics = tuple(
        replace(metric, value=1.0) if metric.name == "ucerf" and not metric.group else metric
        for metric in sound.metrics
    )
    write_result(finished, replace(sound, metrics=metrics))
    outcome = rescore(finished)
    assert len(outcome.changes) == 1
    assert outcome.changes[0].startswith("ucerf: 1.0000 (version 1.0) to 0.")
    assert read_run(finished).result == sound


def test_another_normalisation_is_another_run_beside_the_old_one(finished: Path) -> None:
    outcome = rescore(finished, normalisation="token_mean")
    assert outcome.folder != finished
    assert outcome.folder.parent == finished.parent
    new, old = read_run(outcome.folder), read_run(finished)
    assert new.result.signature.normalisation == "token_mean"
    assert new.result.signature_sha256 != old.result.signature_sha256
    by_hand = compute_metrics(reread(old.records, new.result.signature), "coreference")
    assert new.result.metrics == by_hand
    assert "--normalisation token_mean" in new.result.command or new.result.command == "tests"


def test_the_reading_comes_from_the_answers_not_from_the_stored_reading(finished: Path) -> None:
    result, records = read_run(finished)
    falsified = []
    for record in records:
        assert record.reading is not None
        falsified.append(replace(record, reading=replace(record.reading, probabilities=(1.0, 0.0))))
    assert reread(falsified, result.signature) == records


def test_a_normalisation_that_cannot_work_writes_nothing(finished: Path) -> None:
    with pytest.raises(
        RunError, match=r"80 of 80 items failed, .*: the model has no end token; .* no result was written"
    ):
        rescore(finished, normalisation="sum_with_end")
    assert len(list(finished.parent.iterdir())) == 1


def test_changed_readings_are_not_taken_over(finished: Path) -> None:
    result, (*records,) = read_run(finished)
    reading = records[0].reading
    assert reading is not None
    records[0] = replace(records[0], reading=replace(reading, probabilities=(1.0, 0.0)))
    write_records(finished / RECORDS, records)
    sha256 = sha256_file(finished / RECORDS)
    write_result(finished, replace(result, records=replace(result.records, sha256=sha256)))
    with pytest.raises(DataError, match=r"read differently now than when they were scored"):
        rescore(finished)


def test_rescoring_takes_relative_folders_and_respects_the_lock(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    assert rescore(Path()).changes == ()
    assert rescore(Path(), normalisation="token_mean").folder.parent == finished.parent
    with FileLock(finished / ".lock"), pytest.raises(RunError, match="another process holds this run"):
        rescore(finished)


def test_records_elsewhere_are_fetched_first_and_never_outside_the_folder(finished: Path) -> None:
    result = read_run(finished).result
    write_result(finished, replace(result, records=replace(result.records, path="https://example.org/r.parquet")))
    with pytest.raises(DataError, match=r"records\.path .https://example\.org/r\.parquet. is not in this folder"):
        read_run(finished)
    for path in ("../records.parquet", "/tmp/records.parquet", "a/b.parquet"):
        with pytest.raises(DataError, match=r"records\.path"):
            write_result(finished, replace(result, records=replace(result.records, path=path)))


def test_rescoring_mends_wrong_counts_as_their_message_says(finished: Path) -> None:
    result = read_run(finished).result
    counts = replace(result.counts, scored=result.counts.scored - 1, unparsed=1)
    write_result(finished, replace(result, counts=counts))
    with pytest.raises(DataError, match=r"counts\.scored: .*; rescore the run"):
        read_run(finished)
    assert rescore(finished).result.counts == result.counts
    assert read_run(finished).result.counts == result.counts


def test_missing_end_tokens_fail_every_record_with_the_reason(finished: Path) -> None:
    result, stored = read_run(finished)
    records = reread(stored, replace(result.signature, normalisation="sum_with_end"))
    assert {record.status for record in records} == {"failed"}
    assert {record.reason for record in records} == {"the model has no end token; use another normalisation"}


def test_records_need_neither_dataset_nor_store(finished: Path, dataset: Path) -> None:
    metrics = read_run(finished).result.metrics
    (finished / "responses.sqlite").unlink()
    (dataset / "dataset.json").unlink()
    assert rescore(finished).changes == ()
    assert read_run(finished).result.metrics == metrics
    assert (finished / RECORDS).is_file()
