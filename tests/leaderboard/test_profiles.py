"""The table that a benchmark shows first, and the values of its headline measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.benchmark import load_benchmark
from evaluators.task import load_task
from evaluators.tasks.labels.label_prompts import label_prompts
from leaderboard.benchmark_pages import load_pages
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import profile_of, scope_of, tables_of
from leaderboard.verify.entries import Root
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, make_records, make_result, uniform, write_model, write_result


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("results")
    write_model(root, "acme/able", leaning(0.9, 0.8))
    write_model(root, "acme/able", leaning(0.8, 0.2), ambiguous=True)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    return assemble(load_known(Root(root, "local")).entries)


def test_the_config_that_ranks_comes_first(board: Board) -> None:
    configs = [table.signature.config for table in tables_of(board, "synthbias") if hasattr(table, "signature")]
    assert configs == ["type2", "type1"]


def test_headline_values_come_from_the_config_that_the_plug_in_names(board: Board) -> None:
    profile = profile_of(board, "synthbias")
    assert profile is not None
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


def test_prompts_of_a_benchmark_have_names_that_tell_them_apart() -> None:
    labels, coreference = load_pages("superni"), load_pages("synthbias")
    by_protocol: dict[str | None, list[str]] = {}
    for prompt in label_prompts().values():
        by_protocol.setdefault(prompt.protocol, []).append(labels.config_words("tasks", prompt.id))
    for names in by_protocol.values():
        assert len({*names}) == len(names) > 1
        # Names of prompts that are answered in words say so too.
        assert {"no solved examples", "8 solved examples, set 1"} <= {name.partition(", answered")[0] for name in names}
    names = [coreference.config_words("type2", name) for name in load_task("coreference").prompts]
    assert len({*names}) == len(names) > 1
    # The usual prompt, and one that a page description does not know, add nothing.
    for name in ("intrinsic-v1", "unknown-v1"):
        assert coreference.config_words("type2", name) == "sentences that say who is meant"
    assert labels.config_words("tasks", "unknown-v1") == "tasks"
