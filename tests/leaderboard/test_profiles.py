"""The table that a benchmark shows first, and the values of its headline measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.benchmark import load_benchmark
from evaluators.task import load_task
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.profile import all_parts, front_table
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import profile_of, scope_of, tables_of
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import KeyBook
from schemas.documents.result import Normalisation
from tests.leaderboard.forging import accepted, entries
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import leaning, make_records, make_result, present, uniform, write_model, write_result


def test_the_config_that_ranks_comes_first_and_headlines_come_from_the_config_that_they_name(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/able", leaning(0.9, 0.8))
    write_model(tmp_path, "acme/able", leaning(0.8, 0.2), ambiguous=True)
    write_model(tmp_path, "baseline/uniform", uniform, endpoint="baseline")
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    configs = [table.signature.config for table in tables_of(board, "synthbias") if hasattr(table, "signature")]
    assert configs == ["type2", "type1"]
    profile = present(profile_of(board, "synthbias"))
    assert scope_of(profile.table) == profile.scope
    assert [column.headline for column in profile.columns] == list(load_pages("synthbias").headlines)
    assert [column.ranks for column in profile.columns] == [True, False, False, False]
    for column in profile.columns:
        for identity, row in column.rows.items():
            (entry,) = row.entries
            assert entry.result.model.identity_sha256 == identity
            assert entry.result.signature.config == column.headline.config or column.headline.config is None
            assert column.metrics[identity] == entry.metric(column.headline.name)
    named = {row.model.id for row in profile.rows.values()}
    assert named == {"acme/able", "baseline/uniform"}


def test_a_benchmark_of_baselines_alone_has_no_profile(tmp_path: Path) -> None:
    write_model(tmp_path, "baseline/uniform", uniform, endpoint="baseline")
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    assert profile_of(board, "synthbias") is None
    assert profile_of(board, "gifi") is None


def test_a_retired_version_makes_no_headlines(tmp_path: Path) -> None:
    version = next(iter(load_benchmark("synthbias").retired)).partition("@")[2]
    records = make_records(leaning(0.9, 0.8))
    write_result(tmp_path / "able", make_result(records, "acme/able", dataset_version=version), records)
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    assert [scope_of(table).is_retired for table in tables_of(board, "synthbias")] == [True]
    assert profile_of(board, "synthbias") is None
    # Registered or not, it stands behind data that nothing is wrong with.
    board = board_with(tmp_path / "both", {"version": version, **DATES}, copies(1, **OTHER))
    assert [scope_of(table).is_retired for table in tables_of(board, "synthbias")] == [False, True]


HONEST = {"honest/a": 1.4, "honest/b": 1.2, "honest/c": 1.0}
"""How certain honest models are; what nobody reads anything into has 0."""


def stand(
    root: Path,
    model: str,
    certainty: float,
    *,
    normalisation: Normalisation = "sum",
    prompt: str = "intrinsic-v1",
    dataset: str = "synthbias",
    version: str = "9.0.0",
    date: str | None = None,
    limit: int | None = None,
    **decision: str,
) -> None:
    """Write a model's result into a folder of accepted ones, and enter it into the register if it has a date."""
    task = load_task("coreference")
    records = make_records(leaning(certainty, 0.1))[:limit]
    told = {"option_end_logprobs": (-0.1, -0.2), "option_token_counts": (2, 3)}
    asked = [[replace(exchange, **told) for exchange in record.exchanges] for record in records]  # type: ignore[arg-type]
    reads = [task.reading(exchanges, normalisation, prompt) for exchanges in asked]
    records = [
        replace(record, exchanges=tuple(exchanges), status=read.status, reading=read.reading)
        for record, exchanges, read in zip(records, asked, reads, strict=True)
    ]
    result = make_result(records, model, prompt=prompt, dataset_version=version)
    signature = replace(result.signature, normalisation=normalisation, dataset=dataset)
    result = replace(result, signature=signature, signature_sha256=signature.sha256())
    place = f"{dataset}@{version}/{model.replace('/', '__')}/{prompt}-{normalisation}-{limit}"
    write_result(root / place, result, records)
    if date is not None:
        accepted(root, place, date, **decision)


def copies(n: int, **fields: Any) -> list[dict[str, Any]]:
    """Models without a rank, since they are right no more often than a coin."""
    return [{"model": f"evil/copy{number}", "certainty": 0.001 * number, **fields} for number in range(n)]


def ranked(n: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"model": f"evil/own{number}", "certainty": 2 + 0.1 * number, **fields} for number in range(n)]


def of_owners(models: list[dict[str, Any]], *owners: str) -> list[dict[str, Any]]:
    return [{**fields, "owner": owners[number % len(owners)]} for number, fields in enumerate(models)]


DATES: dict[str, Any] = {"date": "2026-01-01"}
EARLIER: dict[str, Any] = {"date": "2025-01-01"}
LATER: dict[str, Any] = {"date": "2026-02-01"}
OTHER, FIRST, MCQ = {"dataset": "winobias"}, {"dataset": "aaa"}, {"prompt": "mcq2-v1"}
NEWER, OLDER = {"version": "99.0.0"}, {"version": "8.0.0"}
WITHDRAWN = {"decision": "withdrawn", "reason": "made", **DATES}
TAKEOVERS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "more models under another normalisation": ({}, ranked(4, normalisation="byte_mean")),
    "ranked rows under another prompt": ({}, ranked(4, **MCQ)),
    "unranked rows on a dataset whose name comes first": ({}, copies(4, **FIRST)),
    "ranked rows on another dataset that nobody registered": (DATES, ranked(4, **OTHER)),
    "withdrawn rows on another dataset": (DATES, copies(4, **OTHER, **WITHDRAWN)),
    "few items under the default prompt": (MCQ, copies(4, limit=20)),
    "unranked rows under the default prompt": (MCQ, copies(4)),
    "rows under the default prompt that nobody registered": (MCQ | DATES, ranked(4)),
    "few registered items": (DATES, ranked(4, limit=40, **DATES)),
    "registered rows on another dataset": (DATES, ranked(4, **OTHER, **EARLIER)),
    "registered rows of many owners on another dataset": (DATES, of_owners(ranked(4, **FIRST, **DATES), *"abcd")),
    "registered rows on a dataset of a later version": (DATES, ranked(4, **FIRST, **NEWER, **EARLIER)),
    "registered rows on an earlier version": (DATES, of_owners(ranked(4, **OLDER, **EARLIER), *"abcd")),
    "rows on a later version that nobody registered": (DATES, ranked(4, **NEWER)),
    "registered rows without a rank on a later version": (DATES, copies(4, **NEWER, **EARLIER)),
    "one registered row without a rank on another dataset": ({}, copies(1, **OTHER, **DATES)),
    "one registered row without a rank, default prompt": (MCQ, copies(1, **DATES)),
    "one registered row without a rank on the own dataset": (OTHER, copies(1, **DATES)),
    "a retired version of the own dataset": (OTHER | DATES, ranked(4, version="2.0.0", **DATES)),
    "ranked rows on another dataset, none is registered": ({}, ranked(4, **OTHER)),
    "registered rows of other data, own dataset unregistered": (OTHER | DATES, ranked(4)),
    "rows of one owner, other data": ({"dataset": "b", **DATES}, ranked(4, dataset="a", owner="e", **LATER)),
    "rows of one owner whose name has two forms": (
        {"dataset": "b", **DATES},
        of_owners(ranked(4, dataset="a", **LATER), "evil", "Evil"),
    ),
}


def board_with(folder: Path, honest: dict[str, Any], forged: list[dict[str, Any]]) -> Board:
    for model, certainty in HONEST.items():
        stand(folder, model, certainty, **honest)
    for fields in forged:
        stand(folder, **fields)
    book = KeyBook(write_keys(folder.parent / f"{folder.name}-keys", folder))
    return assemble(entries(folder, book))


@pytest.mark.slow
@pytest.mark.parametrize(("honest", "forged"), TAKEOVERS.values(), ids=TAKEOVERS)
def test_nobody_takes_over_the_top_table(tmp_path: Path, honest: dict[str, Any], forged: list[dict[str, Any]]) -> None:
    board = board_with(tmp_path, honest, forged)
    first, profile, front = tables_of(board, "synthbias")[0], profile_of(board, "synthbias"), all_parts(board)[0]
    assert [row.model.id for row in first.ranked] == [*HONEST]
    assert profile is not None
    assert first is profile.table is front.table
    assert all(column.table is first for column in profile.columns)
    assert {row.model_id for row in front_table(board, all_parts(board)).rows} >= {*HONEST}


@pytest.mark.slow
def test_many_models_of_one_owner_fold_no_columns_of_others_away(tmp_path: Path) -> None:
    board = board_with(tmp_path, DATES, ranked(9, version="9.1.0", owner="evil", **DATES))
    front = front_table(board, all_parts(board))
    assert [part.scope.dataset_version for part in front.groups] == ["9.1.0", "9.0.0"]
    assert {row.model_id for row in front.rows} >= {*HONEST}
