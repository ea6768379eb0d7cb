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
from schemas.documents.record import Record
from schemas.files.record_files import write_records
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import RECORDS, Run, read_run, write_result
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(40)})


@pytest.fixture
def finished(dataset: Path, tmp_path: Path) -> Path:
    return ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


def replayed(dataset: Path, model: Path, out: Path, name: str | None = None) -> Run:
    backend = open_backend(str(model), BackendOptions(name=name))
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), TASK, prompt_of(TASK, "mcq2-v1"))
    return read_run(run(plan, backend, RunOptions(root=out, command="tests")).folder)


@pytest.mark.slow
def test_answers_of_a_run_or_of_a_file_have_the_same_metrics(dataset: Path, finished: Path, tmp_path: Path) -> None:
    original = read_run(finished)
    path = tmp_path / "answers.jsonl"
    exchanges = (exchange for record in original.records for exchange in record.exchanges)
    path.write_text(
        "".join(
            json.dumps({"prompt": one.prompt, "options": one.options, "option_logprobs": one.option_logprobs}) + "\n"
            for one in exchanges
        )
    )
    of_run = replayed(dataset, finished, tmp_path / "of-run").result
    of_file = replayed(dataset, path, tmp_path / "of-file", name="acme/imported").result
    assert of_run.metrics == of_file.metrics == original.result.metrics
    assert (of_run.model.id, of_file.model.id) == ("tests/logging", "acme/imported")
    assert (of_run.model.endpoint, original.result.model.endpoint) == ("replay", "local")
    assert of_run.signature == original.result.signature


WHO = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("guard", "nurse"))


def test_zero_probability_survives_a_file_and_another_number_of_options_fails(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"prompt": "Who?", "options": [" A", " B"], "option_logprobs": ["-inf", -0.5]}\n')
    (answer,) = open_backend(str(path), BackendOptions()).answer([WHO])
    assert answer.option_logprobs == (float("-inf"), -0.5)
    path.write_text(json.dumps({"request_sha256": WHO.sha256, "option_logprobs": [-1]}) + "\n")
    (answer,) = open_backend(str(path), BackendOptions()).answer([WHO])
    assert (answer.status, answer.error) == ("failed", "1 log-probabilities for 2 options")


ONE = '{"prompt": "x", "options": [" A"], "option_logprobs": '


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{ONE}[NaN]}}", r"answers\.jsonl:2: .*NaN"),
        ('{"prompt": "x", "options": [" A"]}', r"answers\.jsonl:2: option_logprobs: Field required"),
        ('{"option_logprobs": [-1]}', r"answers\.jsonl:2: says neither"),
        ('{"prompt": "x", "options": [" A", " B"], "option_logprobs": [-1]}', r"answers\.jsonl:2: 2 options, 1"),
        ('{"prompt": "first", "options": [" A"], "option_logprobs": [-2]}', r"answers\.jsonl:2: .*earlier line"),
        (f"{ONE}[0.5]}}", r"answers\.jsonl:2: .*above 0"),
        (f'{ONE}[-1], "option_token_counts": [-2]}}', r"answers\.jsonl:2: option_token_counts"),
        (b"\xff\xfe\x00", r"not UTF-8 text .* give a \.jsonl file"),
        (b"", "holds no answers"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str | bytes, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    first = '{"prompt": "first", "options": [" A"], "option_logprobs": [-1]}\n'
    path.write_bytes(line if isinstance(line, bytes) else f"{first}{line}\n".encode())
    with pytest.raises(DataError, match=message):
        open_backend(str(path), BackendOptions())


def test_null_is_what_a_line_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f'{ONE}[-1], "option_end_logprobs": null, "option_token_counts": null}}\n', encoding="utf-8")
    (answer,) = open_backend(str(path), BackendOptions()).answers.values()
    assert (answer.option_end_logprobs, answer.option_token_counts) == ((None,), (None,))


def test_what_is_no_model_to_replay_is_an_error(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a run folder"):
        open_backend(str(tmp_path / "nowhere"), BackendOptions())
    with pytest.raises(ConfigError, match="no use for --dtype"):
        open_backend(str(tmp_path / "nowhere"), BackendOptions(dtype="float32"))
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), TASK, prompt_of(TASK, None))
    baseline = open_any_backend("baseline", "uniform", BackendOptions())
    folder = run(plan, baseline, RunOptions(root=tmp_path, command="tests")).folder
    with pytest.raises(ConfigError, match="a baseline is no model to replay"):
        open_backend(str(folder), BackendOptions(name="acme/best"))


def test_rescoring_needs_neither_dataset_nor_store_and_changes_nothing(
    finished: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: (finished / name).read_bytes() for name in ("result.json", "records.parquet")}
    (finished / "responses.sqlite").unlink()
    (dataset / "dataset.json").unlink()
    monkeypatch.chdir(finished)
    outcome = rescore(Path())
    assert outcome.changes == ()
    assert outcome.n_metrics > 100
    assert {name: (finished / name).read_bytes() for name in before} == before
    with FileLock(finished / ".lock"), pytest.raises(RunError, match="another process holds this run"):
        rescore(finished)


@pytest.mark.slow
def test_a_falsified_score_or_count_is_put_right_and_named(finished: Path) -> None:
    sound = read_run(finished).result
    metrics = tuple(
        replace(metric, value=1.0) if metric.name == "ucerf" and not metric.group else metric
        for metric in sound.metrics
    )
    write_result(finished, replace(sound, metrics=metrics))
    (change,) = rescore(finished).changes
    assert change.startswith("ucerf: 1.0000 (version 1.0) to 0.")
    assert read_run(finished).result == sound
    counts = replace(sound.counts, scored=sound.counts.scored - 1, unparsed=1)
    write_result(finished, replace(sound, counts=counts))
    with pytest.raises(DataError, match=r"counts\.scored: .*; rescore the run"):
        read_run(finished)
    assert rescore(finished).result.counts == read_run(finished).result.counts == sound.counts


def test_another_normalisation_is_another_run_beside_the_old_one(finished: Path) -> None:
    outcome = rescore(finished, normalisation="token_mean")
    assert outcome.folder != finished
    assert outcome.folder.parent == finished.parent
    new, old = read_run(outcome.folder), read_run(finished)
    assert new.result.signature.normalisation == "token_mean"
    assert new.result.signature_sha256 != old.result.signature_sha256
    assert new.result.metrics == compute_metrics(reread(old.records, new.result.signature), "coreference")
    with pytest.raises(
        RunError, match=r"80 of 80 items failed, .*: the model has no end token; .* no result was written"
    ):
        rescore(finished, normalisation="sum_with_end")
    assert len(list(finished.parent.iterdir())) == 2
    failed = reread(old.records, replace(old.result.signature, normalisation="sum_with_end"))
    assert {(record.status, record.reason) for record in failed} == {
        ("failed", "the model has no end token; use another normalisation")
    }


def falsified(record: Record) -> Record:
    assert record.reading is not None
    return replace(record, reading=replace(record.reading, probabilities=(1.0, 0.0)))


def test_the_reading_comes_from_the_answers_and_a_changed_one_is_not_taken_over(finished: Path) -> None:
    result, (*records,) = read_run(finished)
    assert reread([*map(falsified, records)], result.signature) == records
    write_records(finished / RECORDS, [falsified(records[0]), *records[1:]])
    write_result(finished, replace(result, records=replace(result.records, sha256=sha256_file(finished / RECORDS))))
    with pytest.raises(DataError, match=r"read differently now than when they were scored"):
        rescore(finished)


def test_records_elsewhere_are_fetched_first_and_never_outside_the_folder(finished: Path) -> None:
    result = read_run(finished).result
    write_result(finished, replace(result, records=replace(result.records, path="https://example.org/r.parquet")))
    with pytest.raises(DataError, match=r"records\.path .https://example\.org/r\.parquet. is not in this folder"):
        read_run(finished)
    for path in ("../records.parquet", "/tmp/records.parquet", "a/b.parquet"):
        with pytest.raises(DataError, match=r"records\.path"):
            write_result(finished, replace(result, records=replace(result.records, path=path)))
