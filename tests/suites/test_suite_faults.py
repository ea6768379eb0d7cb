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

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from evaluators.backend import ChoiceRequest
from evaluators.statistics.option_scores import option_probabilities
from schemas.documents.dataset import Manifest
from schemas.documents.record import Reading, Record
from schemas.files import contract
from schemas.files.record_columns import RecordColumns
from schemas.files.record_files import read_parts, writing_records
from schemas.validate import problems
from tests.record_files import read_records
from tests.suites.commands import N_SUPPORT, SIZES, ask, board, copied, rows_of, run, run_of, told

pytestmark = pytest.mark.slow


def failed(record: Record) -> Record:
    (exchange,) = record.exchanges
    nothing = dict.fromkeys(("option_logprobs", "option_end_logprobs", "option_token_counts"), ())
    without = replace(exchange, status="failed", error="made to fail", **nothing)  # type: ignore[arg-type]
    return replace(record, status="failed", reason="made to fail", reading=None, exchanges=(without,))


def moved(record: Record) -> Record:
    assert record.reading is not None
    first, second, *others = record.reading.probabilities
    return replace(record, reading=replace(record.reading, probabilities=(first - 1e-6, second + 1e-6, *others)))


def of_bias(records: RecordColumns, change: Callable[[Record], Record], places: slice) -> list[Record]:
    """Return records of which some about the split *bias* of one part are changed."""
    found = list(records)
    own = [place for place, one in enumerate(found) if (one.config, one.split) == ("wood003", "bias")]
    for place in own[places]:
        found[place] = change(found[place])
    return found


def with_options(record: Record, *options: str) -> Record:
    """Return a record as if more options, all of them improbable and of three letters, had been offered."""
    (exchange,) = record.exchanges
    outcomes = (*exchange.outcomes, *(option.strip() for option in options))
    asked = ChoiceRequest(prompt=exchange.prompt or "", options=(*exchange.options, *options), outcomes=outcomes)
    added = {"logprobs": -30.0, "end_logprobs": 0.0, "token_counts": 1, "byte_counts": 3}
    lists: dict[str, Any] = {
        f"option_{name}": (*getattr(exchange, f"option_{name}"), *(value,) * len(options))
        for name, value in added.items()
    }
    changed = replace(exchange, request_sha256=asked.sha256, outcomes=outcomes, options=asked.options, **lists)
    found = option_probabilities(changed, "sum")
    assert not isinstance(found, str)
    reading = Reading(outcomes=outcomes, probabilities=tuple(found), answers=())
    return replace(record, exchanges=(changed,), reading=reading)


def test_a_board_leaves_out_altered_suites_and_ranks_no_part_without_half_of_its_answers(
    dataset: Path, runs: Path, tmp_path: Path
) -> None:
    """Baselines that are offered other options do badly, so that a model would pass them by offering nonsense."""
    changes: dict[str, tuple[str, Callable[[RecordColumns], list[Record]]]] = {
        "probability": ("lab/first-0.8", lambda records: of_bias(records, moved, slice(5, 6))),
        "options": ("lab/first-0.8", lambda records: [with_options(record, " qq", " zz") for record in records]),
        "twice": ("lab/first-0.8", lambda records: [with_options(record, " qq", " qq") for record in records]),
        "ranked": ("lab/first-0.8", lambda records: of_bias(records, failed, slice(2))),
        "unranked": ("lab/second-0.8", lambda records: of_bias(records, failed, slice(17))),
    }
    for name, (model, change) in changes.items():
        folder = copied(run_of(runs, model), tmp_path / "runs" / name)
        path, records = folder / "records.parquet", change(read_records(folder / "records.parquet"))
        with writing_records(path) as add:
            for part in dict.fromkeys(record.config for record in records):
                add([record for record in records if record.config == part])
        result = told(folder / "result.json")
        result["records"]["sha256"] = sha256_file(path)
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
        if name != "probability":
            run("-m", "evaluators", "rescore", folder)
    said = board(tmp_path / "runs", dataset=dataset, out=tmp_path)
    row = 40 + 30 + 20 + 3 * N_SUPPORT + 20 + 6
    place = f"probability/records.parquet: row {row}"
    assert f"left out: {place}: the reading does not follow from the stored answers" in said
    assert re.search(
        r"left out: options/records.parquet: row 1: item '\S+' is not asked or described as in labels@", said
    )
    assert "offers an option or an outcome twice" in said
    rows = {row["model"]: row for row in rows_of(tmp_path / "built", "woods")}
    ranked, unranked = rows["lab/first-0.8"], rows["lab/second-0.8"]
    assert ranked["rank_best"] == 1
    # Two of the 32 items of a split of one part are missing.
    assert float(ranked["ranked_by_worst"]) == pytest.approx(float(ranked["accuracy"]) * (1 - 2 / 32 / len(SIZES)))
    assert unranked["rank_best"] is None
    why = "15 of 32 items of wood003/bias scored; a rank needs at least half of each split"
    assert unranked["unranked_reason"] == why


def test_lost_torn_and_moved_parts_are_problems_and_empty_row_groups_are_not(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "turned")
    path = folder / "records.parquet"
    records = read_records(path)
    parts = [[one for one in records if one.config == name] for name in dict.fromkeys(one.config for one in records)]
    torn = [parts[2][:10], *parts[:2], *parts[3:], parts[2][10:]]
    for written, said in (
        ([*parts[:2], *parts[3:]], "holds no record of part wood002, which the signature names; run the model again"),
        (torn, "config 'wood002' began in row 1 and was followed by others; keep the records of a config together"),
        (parts[::-1], "its parts stand in another order than in the signature; run the model again"),
    ):
        with writing_records(path) as add:
            for part in written:
                add(part)
        assert said in "\n".join(problems(folder))
    with writing_records(path) as add:
        for part in parts:
            add([])
            add(part)
    assert pq.ParquetFile(path).num_row_groups == 12
    assert [len(part) for part in read_parts(path)] == [len(part) for part in parts]


def test_names_of_suites_and_their_examples_are_checked_before_anything_is_asked(dataset: Path, tmp_path: Path) -> None:
    manifest = told(dataset / "dataset.json")
    for suites, said in (
        ([{"name": "wood001", "configs": ["wood002"]}], "'wood001' is the name of another suite or config"),
        ([{"name": "woods", "configs": ["oak"]}], "'woods' names config 'oak', which has no splits"),
    ):
        with pytest.raises(DataError, match=said):
            contract.load(manifest | {"suites": suites}, Manifest, where="dataset.json")
    for options, said in (
        (("--part", "oak"), "part 'oak' is not in suite 'woods'; have: wood000, wood001"),
        (("--config", "wood001", "--part", "wood001"), "--part is for a suite, and 'wood001' is a single"),
    ):
        assert said in ask(dataset, tmp_path / "runs", *options, status=1)
    short = copied(dataset, tmp_path / "short")
    manifest["splits"] = [one for one in manifest["splits"] if (one["config"], one["split"]) != ("wood003", "pool")]
    (short / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = ask(short, tmp_path / "runs", "--prompt", "shown-v1", status=1)
    assert "config 'wood003' has no split 'pool', whose items its prompts show" in said
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_config_takes_over_the_answers_of_its_suite(dataset: Path, tmp_path: Path) -> None:
    ask(dataset, tmp_path)
    log = tmp_path / "log"
    ask(dataset, tmp_path, "--config", "wood001", PLANTED_LOG=log)
    assert not log.exists()
