"""Results of one model twice, and the answers of one model under several names."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.memory import Memory
from leaderboard.ranking.gates import Gates
from leaderboard.verify.entries import Match, Root
from leaderboard.verify.loading import load
from schemas.documents.result import Result
from schemas.folders.run_folder import read_result
from tests.leaderboard.forging import (
    Places,
    accepted,
    board,
    constant,
    forge,
    nudged,
    rows,
)


@pytest.mark.slow
@pytest.mark.parametrize("by", [1e-7, 1e-5])
def test_two_machines_are_no_dispute(places: Places, tmp_path: Path, by: float) -> None:
    forge(places, tmp_path / "results" / "a", model="acme/same")
    forge(places, tmp_path / "results" / "b", nudged(by), model="acme/same")
    found = board(tmp_path / "results", places)
    (row,) = found.tables[0].rows
    assert row.rank is not None
    assert [duplicate.agrees for duplicate in found.duplicates] == [True]


@pytest.mark.slow
def test_two_results_of_one_model_with_other_answers_are_disputed(places: Places, tmp_path: Path) -> None:
    other = constant(0.6)
    for name, change in (("a", list), ("b", other)):
        forge(places, tmp_path / "results" / name, change, model="acme/same")
    (table,) = board(tmp_path / "results", places).tables
    assert [row.rank for row in table.rows] == [None, None]
    assert {row.unranked for row in table.rows} == {
        f"disputed: {name} has other answers of the same model; a maintainer has to settle it" for name in "ab"
    }


@pytest.mark.slow
def test_an_accepted_result_is_not_disputed_by_one_that_nobody_has_seen(places: Places, tmp_path: Path) -> None:
    for name, change in (("aaa", constant(0.6)), ("honest", list)):
        forge(places, tmp_path / "results" / name, change, model="acme/same")
    accepted(tmp_path / "results", "honest", "2026-01-01")
    (table,) = board(tmp_path / "results", places).tables
    reasons = {row.entry.place: (row.rank is not None, row.unranked) for row in table.rows}
    assert reasons["honest"] == (True, None)
    assert reasons["aaa"] == (False, "has other answers than honest, which was accepted before")
    accepted(tmp_path / "results", "aaa", "2026-01-02")
    (table,) = board(tmp_path / "results", places).tables
    assert all((row.unranked or "").startswith("disputed: ") for row in table.rows)


@pytest.mark.slow
def test_the_answers_of_another_model_have_no_rank_of_their_own(places: Places, tmp_path: Path) -> None:
    for name in ("aaa", "zzz"):
        forge(places, tmp_path / "results" / name, model=f"evil/{name}")
    shutil.copytree(places.honest, tmp_path / "results" / "mmm")
    (table,) = board(tmp_path / "results", places).tables
    assert all(row.rank is None for row in table.rows)
    assert "the register does not say which of them was accepted first" in (table.rows[0].unranked or "")
    accepted(tmp_path / "results", "mmm", "2026-01-01")
    accepted(tmp_path / "results", "aaa", "2026-01-02")
    (table,) = board(tmp_path / "results", places).tables
    found = rows(table)
    assert found["acme/honest"].rank is not None
    for name in ("aaa", "zzz"):
        assert found[f"evil/{name}"].unranked == (
            "gives exactly the answers of acme/honest (1), so it has no rank of its own"
        )


@pytest.mark.slow
def test_copies_that_were_changed_a_little_do_not_widen_the_ranks(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    accepted(tmp_path / "results", "honest", "2026-01-01")
    for number in range(12):
        forge(places, tmp_path / "results" / f"copy{number}", nudged(1e-6 * (number + 1)), model=f"evil/copy{number}")
    (table,) = board(tmp_path / "results", places).tables
    assert [str(row.rank) for row in table.ranked] == ["1"]
    assert sum("a copy has no rank" in (row.unranked or "") for row in table.rows) == 12


@pytest.mark.slow
def test_a_withdrawn_result_stays_visible_and_a_preferred_one_settles_a_dispute(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    withdrawn = {"decision": "withdrawn", "reason": "the tokenizer was wrong", "decided": "2026-02-01"}
    accepted(tmp_path / "results", "honest", "2026-01-01", **withdrawn)
    for name, change in (("a", list), ("b", constant(0.6))):
        forge(places, tmp_path / "results" / name, change, model="acme/same")
    accepted(tmp_path / "results", "b", "2026-01-03", decision="preferred", reason="run again by a maintainer")
    (table,) = board(tmp_path / "results", places).tables
    reasons = {row.entry.place: row.unranked for row in table.rows}
    assert reasons["honest"] == "withdrawn on 2026-02-01: the tokenizer was wrong"
    assert reasons["a"] == "has other answers than b, which a maintainer prefers"
    assert "disputed" not in (reasons["b"] or "")


@pytest.mark.slow
def test_answers_are_not_ranked_again_under_another_reading(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    accepted(tmp_path / "results", "honest", "2026-01-01")
    forge(places, tmp_path / "results" / "a", normalisation="byte_mean")
    tables = board(tmp_path / "results", places).tables
    assert len(tables) == 2
    found = {name: row for table in tables for name, row in rows(table).items()}
    assert found["acme/honest"].rank is not None
    assert found["evil/forger"].unranked == "gives exactly the answers of acme/honest (1), so it has no rank of its own"


@pytest.mark.slow
def test_a_changed_result_is_no_longer_the_accepted_one(places: Places, tmp_path: Path) -> None:
    folder = forge(places, tmp_path / "results" / "a")
    accepted(tmp_path / "results", "a", "2026-01-01")
    (entry,) = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    assert entry.acceptance is not None
    told = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(told))
    (entry,) = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    assert entry.acceptance is None


@pytest.mark.slow
def test_a_result_that_calls_itself_a_baseline_unranks_nobody(places: Places, tmp_path: Path) -> None:
    def as_baseline(result: Result) -> Result:
        model = replace(result.model, id="baseline/clever", endpoint="baseline", backend="baseline", revision=None)
        return replace(result, model=model)

    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    accepted(tmp_path / "results", "honest", "2026-01-01")
    forge(places, tmp_path / "results" / "aaa", of_result=as_baseline)
    (table,) = board(tmp_path / "results", places).tables
    assert rows(table)["acme/honest"].rank is not None


@pytest.mark.slow
@pytest.mark.parametrize("is_accepted", [True, False])
def test_the_identity_of_a_model_belongs_to_one_name(places: Places, tmp_path: Path, is_accepted: bool) -> None:
    stolen = read_result(places.honest).model.identity_sha256

    def claims(result: Result) -> Result:
        return replace(result, model=replace(result.model, identity_sha256=stolen))

    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    forge(places, tmp_path / "results" / "aaa", constant(0.6), of_result=claims)
    if is_accepted:
        accepted(tmp_path / "results", "honest", "2026-01-01")
    found = board(tmp_path / "results", places)
    ranked = [row.entry.place for table in found.tables for row in table.ranked]
    assert ranked == (["honest"] if is_accepted else [])
    apart = {entry.place: entry.match.reason or "" for entry in found.apart}
    assert set(apart) == ({"aaa"} if is_accepted else {"aaa", "honest"})
    assert "claims the identity of acme/honest (1) in honest" in apart["aaa"]


@pytest.mark.slow
def test_a_trial_run_shuts_no_gate(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    entries = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    trial = replace(entries[0], match=Match("slice", "asks 20 of 200 items"), place="trial")
    assert Gates([*entries, trial]).why_shut(entries[0]) is None
    without_answers = replace(entries[0], standing=None)
    assert Gates([*entries, trial]).why_shut(without_answers) is None
    assert "no result with accuracy" in (Gates([trial]).why_shut(without_answers) or "")
