"""Results of one model twice, and the answers of one model under several names."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.memory import Memory
from evaluators.backend import model_identity
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.gates import Gates
from leaderboard.ranking.profiles import profile_of
from leaderboard.verify.entries import Match, Root
from leaderboard.verify.loading import load
from leaderboard.verify.public_files import place_for
from leaderboard.verify.verdicts import judge
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Result
from schemas.folders.run_folder import read_result
from tests.evaluators.logging_backend import identity_of
from tests.leaderboard.forging import (
    Change,
    Places,
    accepted,
    board,
    constant,
    forge,
    nudged,
    on_each,
    rows,
    with_exchange,
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
    assert "and the register does not say which came first" in (table.rows[0].unranked or "")
    accepted(tmp_path / "results", "mmm", "2026-01-01")
    accepted(tmp_path / "results", "aaa", "2026-01-02")
    (table,) = board(tmp_path / "results", places).tables
    found = rows(table)
    assert found["acme/honest"].rank is not None
    for name in ("aaa", "zzz"):
        assert found[f"evil/{name}"].unranked == (
            "gives exactly the answers of acme/honest (1), so it has no rank of its own"
        )


def noisy(by: float, seed: int = 1) -> Change:
    """Answers with normal noise of some nats on each log-probability."""
    generator = np.random.default_rng(seed)

    def change(record: Record) -> Record:
        def changed(exchange: Exchange) -> Exchange:
            noise = generator.normal(0, by, len(exchange.option_logprobs)).tolist()
            odds = [
                math.exp((value or 0.0) + more) for value, more in zip(exchange.option_logprobs, noise, strict=True)
            ]
            return replace(exchange, option_logprobs=tuple(math.log(each / sum(odds)) for each in odds))

        return with_exchange(record, changed)

    return on_each(change)


def scaled(record: Record) -> Record:
    """The same answers with less certainty."""

    def changed(exchange: Exchange) -> Exchange:
        odds = [math.exp(0.8 * (value or 0.0)) for value in exchange.option_logprobs]
        return replace(exchange, option_logprobs=tuple(math.log(each / sum(odds)) for each in odds))

    return with_exchange(record, changed)


def partly_own(records: list[Record]) -> list[Record]:
    """The same answers, but for the first 60 items, whose answers are those to other items."""
    moved = [record.exchanges[0].option_logprobs for record in records[:60]]
    return [
        with_exchange(record, lambda one, number=number: replace(one, option_logprobs=moved[number - 17]))  # type: ignore[misc]
        if number < len(moved)
        else record
        for number, record in enumerate(records)
    ]


COPIES = {
    "noise of .01 nats": noisy(0.01),
    "noise of a millionth": nudged(1e-6),
    "scaled": on_each(scaled),
    "partly own": partly_own,
}


@pytest.mark.slow
@pytest.mark.parametrize("change", COPIES.values(), ids=COPIES)
def test_of_a_copy_that_was_changed_only_a_maintainer_is_told(places: Places, tmp_path: Path, change: Change) -> None:
    results = tmp_path / "results"
    place = place_for(read_result(places.honest))
    shutil.copytree(places.honest, results / place)
    accepted(results, place.as_posix(), "2026-01-01")
    copy = forge(places, results / "aaa", change, model="evil/copy")
    (table,) = board(results, places).tables
    assert [(row.rank is not None, row.unranked) for row in table.rows] == [(True, None), (True, None)]
    (verdict,) = judge([copy], places.book, Memory(None), advance=lambda n_done, n: None, against=results)
    assert (verdict.state, verdict.warnings) == ("accepted", ())
    (likeness,) = verdict.likenesses
    assert likeness.startswith(f"a maintainer may look at it beside acme/honest (1) in {results / place}: ")
    assert likeness.endswith("% of the answers are equal")


def partly_drawn(records: list[Record]) -> list[Record]:
    """The same answers to three fifths of the items, and drawn ones to the others."""
    generator = np.random.default_rng(5)

    def changed(exchange: Exchange) -> Exchange:
        chances = generator.uniform(0.01, 1, len(exchange.option_logprobs))
        return replace(exchange, option_logprobs=tuple(np.log(chances / chances.sum()).tolist()))

    return [record if n % 5 < 3 else with_exchange(record, changed) for n, record in enumerate(records)]


@pytest.mark.slow
def test_a_third_of_the_answers_ends_no_dispute(places: Places, tmp_path: Path) -> None:
    for name, change in (("aaa", partly_drawn), ("honest", list)):
        forge(places, tmp_path / "results" / name, change, model="acme/same")
    first, second = board(tmp_path / "results", places).tables[0].rows
    assert first.entry.sketch.likeness(second.entry.sketch) is not None
    assert all((row.unranked or "").startswith("disputed: ") for row in (first, second))


@pytest.mark.slow
def test_copies_take_a_place_until_a_maintainer_withdraws_them(places: Places, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(places.honest, results / "honest")
    accepted(results, "honest", "2026-01-01")
    copies = [f"copy{number}" for number in range(12)]
    for number, name in enumerate(copies):
        forge(places, results / name, noisy(0.01, number), model=f"evil/{name}")
    (table,) = board(results, places).tables
    assert {(row.rank.best, row.rank.worst) for row in table.rows if row.rank is not None} == {(1, 13)}
    decision = {"decision": "withdrawn", "reason": "its answers are those of acme/honest", "decided": "2026-02-01"}
    for name in copies:
        accepted(results, name, "2026-01-02", **decision)
    (table,) = board(results, places).tables
    assert [str(row.rank) for row in table.ranked] == ["1"]
    said = "withdrawn on 2026-02-01: its answers are those of acme/honest"
    assert [row.unranked for row in table.rows if row.rank is None] == 12 * [said]


@pytest.mark.slow
def test_a_withdrawn_copy_takes_no_rank_from_whom_it_copied_and_gets_none_again(places: Places, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(places.honest, results / "honest")
    for name in ("first", "again"):
        forge(places, results / name, model=f"evil/{name}")
    accepted(results, "honest", "2026-01-02")
    accepted(results, "first", "2026-01-01", decision="withdrawn", reason="its answers are those of acme/honest")
    (table,) = board(results, places).tables
    assert [row.model.id for row in table.ranked] == ["acme/honest"]
    shutil.rmtree(results / "honest")
    (table,) = board(results, places).tables
    assert (
        rows(table)["evil/again"].unranked
        == "gives exactly the answers of evil/first (1), so it has no rank of its own"
    )


@pytest.mark.slow
def test_a_withdrawn_revision_is_not_the_newest(places: Places, tmp_path: Path) -> None:
    def second(result: Result) -> Result:
        identity = identity_of("acme/honest", "2")
        model = replace(result.model, revision="2", identity=identity)
        return replace(result, model=replace(model, identity_sha256=model_identity(identity)))

    results = tmp_path / "results"
    shutil.copytree(places.honest, results / "honest")
    forge(places, results / "other", constant(0.6), model="acme/honest", of_result=second)
    accepted(results, "honest", "2026-01-01")
    accepted(results, "other", "2026-01-02", decision="withdrawn", reason="it was of another model")
    found = board(results, places)
    profile = profile_of(found, "synthbias")
    assert profile is not None
    assert [row.model.revision for row in profile.newest] == ["1"]


@pytest.mark.slow
def test_what_is_no_copy_keeps_its_rank(places: Places, tmp_path: Path) -> None:
    """Another model, and the same model in another precision: its answers differ as those of a noisy copy do."""
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    accepted(tmp_path / "results", "honest", "2026-01-01")
    forge(places, tmp_path / "results" / "unrelated", noisy(3.0), model="acme/unrelated")

    def in_half(result: Result) -> Result:
        identity = identity_of("acme/honest", precision="bfloat16")
        model = replace(result.model, id="acme/honest", precision="bfloat16", identity=identity)
        return replace(result, model=replace(model, identity_sha256=model_identity(identity)))

    forge(places, tmp_path / "results" / "half", noisy(0.01), of_result=in_half)
    (table,) = board(tmp_path / "results", places).tables
    reasons = {row.entry.place: row.unranked for row in table.rows}
    assert reasons["honest"] is None
    assert "answers of" not in (reasons["unrelated"] or "")
    assert reasons["half"] == "another result of the same model revision has the rank (transformers)"


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
@pytest.mark.parametrize("is_accepted", [True, False])
def test_the_identity_of_a_model_belongs_to_one_name(places: Places, tmp_path: Path, is_accepted: bool) -> None:
    stolen = read_result(places.honest).model.identity_sha256

    def claims(result: Result) -> Result:
        # Of an endpoint, whose identity is not shown: any other has to name the parts.
        model = replace(result.model, identity_sha256=stolen, identity=None, backend="openai", endpoint="api")
        return replace(result, model=model)

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
    assert "run it again with --name acme/honest if it is that model" in apart["aaa"]


@pytest.mark.slow
def test_a_run_of_ones_own_stands_beside_the_model_with_its_weights(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    model = read_result(places.honest).model

    def same_weights(result: Result) -> Result:
        return replace(result, model=replace(model, id="mine/copy", revision=None))

    folder = tmp_path / "runs"
    forge(places, folder / "copy", of_result=same_weights)
    forge(places, folder / "reading", normalisation="byte_mean", of_result=same_weights)
    roots = (Root(tmp_path / "results", "accepted"), Root(folder, "local"))
    found = assemble(load(roots, places.book, Memory(None)).entries)
    assert not found.apart
    beside, alone = sorted(map(rows, found.tables), key=len, reverse=True)
    assert beside["acme/honest"].rank is not None
    assert beside["mine/copy"].unranked == "same weights as acme/honest (1), so it has no rank of its own"
    assert beside["mine/copy"].entry.shared_identity == model.identity_sha256
    assert (
        alone["mine/copy"].entry.double == "gives exactly the answers of acme/honest (1), so it has no rank of its own"
    )


@pytest.mark.slow
def test_a_trial_run_shuts_no_gate(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    entries = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    trial = replace(entries[0], match=Match("slice", "asks 20 of 200 items"), place="trial")
    assert Gates([*entries, trial]).why_shut(entries[0]) is None
    without_answers = replace(entries[0], standing=None)
    assert Gates([*entries, trial]).why_shut(without_answers) is None
    assert (Gates([trial]).why_shut(without_answers) or "").endswith(
        "has no result with accuracy under this prompt but a limited run; repeat that one without --limit"
    )
