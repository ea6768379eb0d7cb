"""Suites with parts that are altered, lost, misnamed or failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.files import sha256_file
from schemas.record_columns import RecordColumns
from schemas.record_files import read_records, write_records, writing_records
from tests.suites.commands import (
    N_SUPPORT,
    ask,
    board,
    copied,
    rows_of,
    run,
    run_of,
    told,
)


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


def spoilt(records: RecordColumns, part: str, split: str, status: str | None) -> list[Any]:
    """Return records with other probabilities in one item of a split, or with another status in two of them."""
    found = list(records)
    places = [place for place, one in enumerate(found) if (one.config, one.split) == (part, split)]
    if status is None:
        reading = found[places[5]].reading
        assert reading is not None
        shares = (reading.probabilities[0] - 1e-6, reading.probabilities[1] + 1e-6, *reading.probabilities[2:])
        found[places[5]] = replace(found[places[5]], reading=replace(reading, probabilities=shares))
        return found
    for place in places[:2]:
        (exchange,) = found[place].exchanges
        failed = replace(
            exchange,
            status="failed",
            error="made to fail",
            option_logprobs=(),
            option_end_logprobs=(),
            option_token_counts=(),
        )
        found[place] = replace(found[place], status="failed", reason="made to fail", reading=None, exchanges=(failed,))
    return found


def test_an_altered_probability_of_a_support_split_is_found(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "altered")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", None))
    assert "no problems" in run("-m", "schemas.validate", folder)
    assert "the answers are read differently now" in run("-m", "evaluators", "rescore", folder, status=1)
    row = 40 + 30 + 20 + 3 * N_SUPPORT + 20 + 6
    said = board(tmp_path / "runs", out=tmp_path, status=1)
    assert f"altered/records.parquet: row {row}: the reading does not follow from the stored answers" in said


def test_a_rank_needs_every_split_of_every_part(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "labels@1.0.0" / "lab" / "woods-x")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", "failed"))
    said = run("-m", "evaluators", "rescore", folder)
    assert "1 of 20 splits have items without a score: wood003/bias 30 of 32" in said
    counts = told(folder / "result.json")["counts"]
    assert counts["scored"] / counts["items"] > 0.99
    board(tmp_path / "runs", out=tmp_path)
    (row,) = rows_of(tmp_path, "woods")
    assert row["rank_best"] is None
    assert row["unranked_reason"] == ("30 of 32 items of wood003/bias scored; a rank needs at least 95% of each split")


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
    said = ask(dataset, tmp_path / "runs", "--part", "oak", status=1)
    assert "part 'oak' is not in suite 'woods'; have: wood000, wood001" in said
    said = ask(dataset, tmp_path / "runs", "--config", "wood001", "--part", "wood001", status=1)
    assert "--part is for a suite, and 'wood001' is a single config; leave it out" in said
    said = ask(dataset, tmp_path / "runs", "--config", "oak", status=1)
    assert "config 'oak' is not in dataset 'labels'; have: woods, wood000" in said


def test_many_failures_end_a_suite_and_keep_its_answers(dataset: Path, tmp_path: Path) -> None:
    said = ask(dataset, tmp_path, PLANTED_FAILS="wood00", status=3)
    assert re.search(r"requests failed, more than the \d+ that --max-failure-rate allows; last error: planted", said)
    assert not list(tmp_path.rglob("*.parquet"))
    assert len(list(tmp_path.rglob("responses.sqlite"))) == 1
