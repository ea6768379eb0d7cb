"""Suites with parts that are altered, lost, misnamed or failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from biasboard.ground.files import sha256_file
from evaluators.backend import ChoiceRequest
from evaluators.statistics.option_scores import option_probabilities
from schemas.documents.record import Reading, Record
from schemas.files.record_columns import RecordColumns
from schemas.files.record_files import read_parts, read_records, write_records, writing_records
from tests.suites.commands import N_SUPPORT, SIZES, ask, board, chosen, copied, rows_of, run, run_of, told


@pytest.mark.slow
def test_examples_that_do_not_exist_are_refused_before_anything_is_asked(dataset: Path, tmp_path: Path) -> None:
    short = copied(dataset, tmp_path / "short")
    manifest = told(short / "dataset.json")
    manifest["splits"] = [one for one in manifest["splits"] if (one["config"], one["split"]) != ("wood003", "pool")]
    (short / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = ask(short, tmp_path / "runs", "--prompt", "shown-v1", status=1)
    assert "config 'wood003' has no split 'pool', whose items its prompts show" in said
    assert not list(tmp_path.rglob("*.sqlite"))


def altered(folder: Path, change: Callable[[RecordColumns], list[Any]]) -> None:
    """Write other records into a run, and their hash into its result."""
    path = folder / "records.parquet"
    records = change(read_records(path))
    with writing_records(path) as add:
        for part in dict.fromkeys(record.config for record in records):
            add([record for record in records if record.config == part])
    value = told(folder / "result.json")
    value["records"]["sha256"] = sha256_file(path)
    (folder / "result.json").write_text(json.dumps(value), encoding="utf-8")


def failed(record: Record) -> Record:
    (exchange,) = record.exchanges
    nothing = dict.fromkeys(("option_logprobs", "option_end_logprobs", "option_token_counts"), ())
    without = replace(exchange, status="failed", error="made to fail", **nothing)  # type: ignore[arg-type]
    return replace(record, status="failed", reason="made to fail", reading=None, exchanges=(without,))


def spoilt(records: RecordColumns, part: str, split: str, status: str | None, n: int = 2) -> list[Any]:
    """Return records with other probabilities in one item of a split, or with another status in ``n`` of them."""
    found = list(records)
    places = [place for place, one in enumerate(found) if (one.config, one.split) == (part, split)]
    if status is None:
        reading = found[places[5]].reading
        assert reading is not None
        shares = (reading.probabilities[0] - 1e-6, reading.probabilities[1] + 1e-6, *reading.probabilities[2:])
        found[places[5]] = replace(found[places[5]], reading=replace(reading, probabilities=shares))
        return found
    for place in places[:n]:
        found[place] = failed(found[place])
    return found


@pytest.mark.slow
def test_an_altered_probability_of_a_support_split_is_found(dataset: Path, runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "altered")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", None))
    assert "no problems" in run("-m", "schemas.validate", folder)
    assert "the answers are read differently now" in run("-m", "evaluators", "rescore", folder, status=1)
    row = 40 + 30 + 20 + 3 * N_SUPPORT + 20 + 6
    copied(run_of(runs, "lab/second-0.8"), tmp_path / "runs" / "sound")
    said = board(tmp_path / "runs", dataset=dataset, out=tmp_path)
    assert f"left out: altered/records.parquet: row {row}: the reading does not follow from the stored answers" in said


@pytest.mark.slow
@pytest.mark.parametrize("n_scored", [30, 15])
def test_a_rank_needs_half_of_every_split_of_every_part(
    dataset: Path, runs: Path, tmp_path: Path, n_scored: int
) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "labels@1.0.0" / "lab" / "woods-x")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", "failed", 32 - n_scored))
    run("-m", "evaluators", "rescore", folder)
    counts = told(folder / "result.json")["counts"]
    assert counts["scored"] / counts["items"] > 0.95
    board(tmp_path / "runs", dataset=dataset, out=tmp_path)
    # The board adds the rows of the baselines.
    row = next(row for row in rows_of(tmp_path, "woods") if row["model"] == "lab/first-0.8")
    if n_scored < 16:
        assert row["rank_best"] is None
        why = "15 of 32 items of wood003/bias scored; a rank needs at least half of each split"
        assert row["unranked_reason"] == why
    else:
        assert row["rank_best"] == 1
        # Two of the 32 items of a split of one part are missing.
        n_parts = len(json.loads((folder / "result.json").read_text())["signature"]["parts"])
        primary = float(row["accuracy"])
        assert float(row["ranked_by_worst"]) == pytest.approx(primary * (1 - 2 / 32 / n_parts))


@pytest.mark.slow
def test_missing_and_mixed_parts_are_problems(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "lost")
    path = folder / "records.parquet"
    records = read_records(path)
    write_records(path, [record for record in records if record.config != "wood002"])
    said = run("-m", "schemas.validate", folder, status=1)
    assert "holds no record of part wood002, which the signature names; run the model again" in said
    torn = [record for record in records if record.config == "wood002"]
    with writing_records(path) as add:
        add([*torn[:10], *(record for record in records if record.config != "wood002")])
        add(torn[10:])
    said = run("-m", "schemas.validate", folder, status=1)
    assert "config 'wood002' began in row 1 and was followed by others; keep the records of a config together" in said


@pytest.mark.slow
def test_names_of_suites_are_checked(dataset: Path, tmp_path: Path) -> None:
    copy = copied(dataset, tmp_path / "labels")
    manifest = told(copy / "dataset.json")
    for suites, said in (
        ([{"name": "wood001", "configs": ["wood002"]}], "'wood001' is the name of another suite or config"),
        ([{"name": "woods", "configs": ["oak"]}], "'woods' names config 'oak', which has no splits"),
        ([{"name": "woods", "configs": []}], "suites[0].configs"),
    ):
        (copy / "dataset.json").write_text(json.dumps(manifest | {"suites": suites}), encoding="utf-8")
        assert said in run("-m", "schemas.validate", copy, status=1)
    for options, said in (
        (("--part", "oak"), "part 'oak' is not in suite 'woods'; have: wood000, wood001"),
        (
            ("--config", "wood001", "--part", "wood001"),
            "--part is for a suite, and 'wood001' is a single config; leave",
        ),
        (("--config", "oak"), "config 'oak' is not in dataset 'labels'; have: woods, wood000"),
        (
            ("--backend", "baseline", "--model", "stereotype"),
            "baseline/stereotype needs to know first_mentioned, last_m",
        ),
    ):
        assert said in ask(dataset, tmp_path / "runs", *options, status=1)
    assert not list(tmp_path.rglob("*.sqlite"))


def test_many_failures_end_a_suite_and_keep_its_answers(dataset: Path, tmp_path: Path) -> None:
    said = ask(dataset, tmp_path, PLANTED_FAILS="wood00", status=3)
    assert re.search(r"requests failed, more than the \d+ that may .*; last error: planted", said)
    assert not list(tmp_path.rglob("*.parquet"))
    assert len(list(tmp_path.rglob("responses.sqlite"))) == 1


def with_options(record: Record, options: tuple[str, ...]) -> Record:
    """Return a record as if more options, all of them improbable, had been offered."""
    (exchange,) = record.exchanges
    n_new = len(options)
    asked = ChoiceRequest(
        prompt=exchange.prompt or "",
        options=(*exchange.options, *options),
        outcomes=(*exchange.outcomes, *(option.strip() for option in options)),
    )
    changed = replace(
        exchange,
        request_sha256=asked.sha256,
        outcomes=asked.outcomes,
        options=asked.options,
        option_logprobs=(*exchange.option_logprobs, *(-30.0,) * n_new),
        option_end_logprobs=(*exchange.option_end_logprobs, *(0.0,) * n_new),
        option_token_counts=(*exchange.option_token_counts, *(1,) * n_new),
        option_byte_counts=(*exchange.option_byte_counts, *(len(option) for option in options)),
    )
    found = option_probabilities(changed, "sum")
    assert not isinstance(found, str)
    reading = Reading(outcomes=asked.outcomes, probabilities=tuple(found), answers=())
    return replace(record, exchanges=(changed,), reading=reading)


@pytest.mark.slow
def test_other_options_than_those_of_the_dataset_are_other_items(dataset: Path, runs: Path, tmp_path: Path) -> None:
    """Baselines that are offered nonsense do badly, so that a model would pass them by offering it."""
    copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "a")
    folder = copied(run_of(runs, "lab/second-0.8"), tmp_path / "runs" / "b")
    altered(folder, lambda records: [with_options(record, (" qq", " zz")) for record in records])
    run("-m", "evaluators", "rescore", folder)
    said = board(tmp_path / "runs", dataset=dataset, out=tmp_path / "site1")
    assert re.search(r"left out: b/records.parquet: row 1: item '\S+' is not asked or described as in labels@", said)
    altered(folder, lambda records: [with_options(record, (" qq", " qq")) for record in records])
    run("-m", "evaluators", "rescore", folder)
    said = board(tmp_path / "runs", dataset=dataset, out=tmp_path / "site2")
    assert "offers an option or an outcome twice" in said


@pytest.mark.slow
def test_missing_answers_of_a_part_count_as_wrong_at_the_gate(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "labels@1.0.0" / "lab" / "woods-x")

    def right_ones(records: RecordColumns) -> list[Record]:
        """Return the records with two right answers of split test in each part, and failures in place of the others."""
        kept: dict[str, int] = {}
        found = []
        for record in records:
            if record.split == "test" and record.reading is not None:
                if chosen(record) != record.target or kept.get(record.config, 0) == 2:
                    record = failed(record)
                else:
                    kept[record.config] = kept.get(record.config, 0) + 1
            found.append(record)
        return found

    altered(folder, right_ones)
    said = run("-m", "evaluators", "rescore", folder, "--max-failure-rate", "0.5")
    worst = sum(2 / n for n in SIZES) / len(SIZES)
    assert f"accuracy 1.000, or {worst:.3f} with missing answers as wrong ones, is worse than the baseline " in said
    said = run("-m", "evaluators", "rescore", folder, status=3)
    assert "items failed, more than the share of 0.05 that may" in said


@pytest.mark.slow
def test_parts_in_another_order_are_refused_and_empty_row_groups_ignored(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "turned")
    path = folder / "records.parquet"
    records = read_records(path)
    parts = [[one for one in records if one.config == name] for name in dict.fromkeys(one.config for one in records)]
    with writing_records(path) as add:
        for part in parts:
            add([])
            add(part)
    assert pq.ParquetFile(path).num_row_groups == 12
    assert [len(part) for part in read_parts(path)] == [len(part) for part in parts]
    with writing_records(path) as add:
        for part in parts[::-1]:
            add(part)
    said = run("-m", "schemas.validate", folder, status=1)
    assert "its parts stand in another order than in the signature; run the model again" in said


@pytest.mark.slow
def test_a_config_takes_over_the_answers_of_its_suite(dataset: Path, tmp_path: Path) -> None:
    ask(dataset, tmp_path)
    log = tmp_path / "log"
    ask(dataset, tmp_path, "--config", "wood001", PLANTED_LOG=log)
    assert not log.exists()
    ask(dataset, tmp_path, "--config", "wood002", "--prompt", "shown-v1", PLANTED_LOG=log)
    assert log.exists()
