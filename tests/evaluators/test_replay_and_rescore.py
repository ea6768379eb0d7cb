"""Scores from stored answers: replayed, computed again, and read under another normalisation."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.files import sha256_file
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.backend import open_backend as open_any_backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.replay import open_backend
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.measure.rescoring import reread, rescore
from schemas.folders.run_folder import RECORDS, read_run, write_result
from tests.evaluators.asking import replayable
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.record_files import write_records


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(20)})


@pytest.fixture
def finished(dataset: Path, tmp_path: Path) -> Path:
    return ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


@pytest.mark.slow
def test_answers_of_a_run_have_the_same_metrics(dataset: Path, finished: Path, tmp_path: Path) -> None:
    original = read_run(finished).result
    again = read_run(ask(dataset, tmp_path / "again", open_backend(str(finished), BackendOptions()))).result
    assert (again.metrics, again.signature) == (original.metrics, original.signature)
    assert (again.model.id, again.model.endpoint, original.model.endpoint) == ("tests/logging", "replay", "local")


def test_what_was_not_asked_has_no_answer(tmp_path: Path) -> None:
    who = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("guard", "nurse"))
    zero = Response(status="answered", option_logprobs=(-math.inf, -0.5))
    short, silent = replace(who, prompt="Which?"), GenerateRequest(prompt="Who?", max_tokens=1)
    stored: list[tuple[Request, Response]] = [
        (who, zero),
        (short, replace(zero, option_logprobs=(-1.0,))),
        (silent, replace(zero, option_logprobs=())),
    ]
    backend = open_backend(str(replayable(tmp_path, stored)), BackendOptions())
    found = backend.answer([who, short, silent, replace(who, prompt="When?")])
    assert found[0] == zero
    assert [(one.status, str(one.error).partition(";")[0]) for one in found[1:]] == [
        ("failed", "1 log-probabilities for 2 options"),
        ("failed", "the stored answer holds no text"),
        ("failed", "no stored answer"),
    ]


def test_what_is_no_model_to_replay_is_an_error(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run folder"):
        open_backend(str(tmp_path / "nowhere"), BackendOptions())
    with pytest.raises(ConfigError, match="no use for --dtype"):
        open_backend(str(tmp_path / "nowhere"), BackendOptions(dtype="float32"))
    baseline = open_any_backend("baseline", "uniform", BackendOptions())
    folder = ask(dataset, tmp_path, baseline, prompt="intrinsic-v1")
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
        RunError, match=r"40 of 40 items failed, .*: the model has no end token; .* no result was written"
    ):
        rescore(finished, normalisation="sum_with_end")
    assert len(list(finished.parent.iterdir())) == 2
    failed = reread(old.records, replace(old.result.signature, normalisation="sum_with_end"))
    assert {(record.status, record.reason) for record in failed} == {
        ("failed", "the model has no end token; use another normalisation")
    }


def test_a_changed_reading_is_not_taken_over_and_no_records_outside_the_folder(finished: Path) -> None:
    result, (*records,) = read_run(finished)
    falsified = [
        replace(one, reading=replace(one.reading, probabilities=(1.0, 0.0)))
        for one in records
        if one.reading is not None
    ]
    assert reread(falsified, result.signature) == records
    write_records(finished / RECORDS, [falsified[0], *records[1:]])
    write_result(finished, replace(result, records=replace(result.records, sha256=sha256_file(finished / RECORDS))))
    with pytest.raises(DataError, match=r"read differently now than when they were scored"):
        rescore(finished)
    write_result(finished, replace(result, records=replace(result.records, path="https://example.org/r.parquet")))
    with pytest.raises(DataError, match=r"records\.path .https://example\.org/r\.parquet. is not in this folder"):
        read_run(finished)
    for path in ("../records.parquet", "/tmp/records.parquet", "a/b.parquet"):
        with pytest.raises(DataError, match=r"records\.path"):
            write_result(finished, replace(result, records=replace(result.records, path=path)))
