"""Results of one model twice, and the answers of one model under several names."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.backend import model_identity
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.profiles import profile_of
from leaderboard.ranking.rank_ranges import Gates
from leaderboard.verify.entries import Match
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Result
from schemas.folders.run_folder import read_result
from tests.evaluators.logging_backend import identity_of
from tests.leaderboard.forging import (
    AT_ENDPOINT,
    Change,
    Places,
    accepted,
    board,
    constant,
    entries,
    forge,
    nudged,
    on_each_exchange,
    rows,
)
from tests.leaderboard.synthetic import present

pytestmark = pytest.mark.slow
COPIED = "gives exactly the answers of acme/honest (1), so it has no rank of its own"
DISPUTED = "disputed: {} has other answers of the same model; a maintainer has to settle it"


@pytest.fixture
def results(places: Places, tmp_path: Path) -> Path:
    """A folder of results with an honest one."""
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    return tmp_path / "results"


def reasons(results: Path, places: Places) -> dict[str, str | None]:
    """Why each result has no rank, None if it has one, by its folder."""
    found = {row.entry.place: row for table in board(results, places).tables for row in table.rows}
    assert all((row.rank is None) == (row.unranked is not None) for row in found.values())
    return {place: row.unranked for place, row in found.items()}


def identified(model_id: str, **fields: str) -> Callable[[Result], Result]:
    """The result of other files of a model."""

    def change(result: Result) -> Result:
        identity = identity_of(model_id, **fields)
        model = replace(result.model, id=model_id, identity=identity, **fields)  # type: ignore[arg-type]
        return replace(result, model=replace(model, identity_sha256=model_identity(identity)))

    return change


def test_results_with_other_answers_are_disputed_until_a_maintainer_decides(places: Places, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name, change in (("a", constant(0.6)), ("b", list)):
        forge(places, results / name, change, model="acme/same")
    assert reasons(results, places) == {"a": DISPUTED.format("b"), "b": DISPUTED.format("a")}
    accepted(results, "b", "2026-01-01")
    assert reasons(results, places) == {"a": "has other answers than b, which was accepted before", "b": None}
    accepted(results, "a", "2026-01-02")
    assert reasons(results, places) == {"a": DISPUTED.format("b"), "b": DISPUTED.format("a")}
    (results / "register.json").unlink()
    why = "run again by a maintainer"
    accepted(results, "b", "2026-01-03", decision="preferred", reason=why, decided="2026-01-20")
    told = f"has other answers than b, which a maintainer prefers since 2026-01-20: {why}"
    assert reasons(results, places) == {"a": told, "b": None}


def test_answers_of_another_model_have_no_rank_and_changed_ones_no_acceptance(places: Places, results: Path) -> None:
    (results / "honest").rename(results / "mmm")
    for name in ("aaa", "zzz"):
        forge(places, results / name, model=f"evil/{name}")
    assert all(
        "and the register does not say which came first" in why for why in map(str, reasons(results, places).values())
    )
    accepted(results, "mmm", "2026-01-01")
    accepted(results, "aaa", "2026-01-02")
    assert reasons(results, places) == {"mmm": None, "aaa": COPIED, "zzz": COPIED}
    path = results / "mmm" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert [entry.place for entry in entries(results, places) if entry.acceptance is not None] == ["aaa"]


def with_odds(change: Callable[[list[float]], list[float]]) -> Change:
    """Other log-probabilities, whose probabilities add up to 1."""

    def changed(exchange: Exchange) -> Exchange:
        odds = [math.exp(value) for value in change([value or 0.0 for value in exchange.option_logprobs])]
        return replace(exchange, option_logprobs=tuple(math.log(each / sum(odds)) for each in odds))

    return on_each_exchange(changed)


def noisy(by: float, seed: int = 1) -> Change:
    """Answers with normal noise of some nats on each log-probability."""
    generator = np.random.default_rng(seed)
    return with_odds(lambda logprobs: (np.array(logprobs) + generator.normal(0, by, len(logprobs))).tolist())


def partly_drawn(records: list[Record]) -> list[Record]:
    """The same answers to three fifths of the items, and drawn ones to the others."""
    generator = np.random.default_rng(5)
    drawn = with_odds(lambda logprobs: np.log(generator.uniform(0.01, 1, len(logprobs))).tolist())
    return [record if n % 5 < 3 else drawn([record])[0] for n, record in enumerate(records)]


def test_two_machines_are_no_dispute_and_a_third_of_the_answers_ends_none(places: Places, tmp_path: Path) -> None:
    forge(places, tmp_path / "machines" / "a", model="acme/same")
    forge(places, tmp_path / "machines" / "b", nudged(1e-5), model="acme/same")
    found = board(tmp_path / "machines", places)
    (row,) = found.tables[0].rows
    assert row.rank is not None
    (duplicate,) = found.duplicates
    assert duplicate.reason.endswith(" is shown instead")
    for name, change in (("aaa", partly_drawn), ("honest", list)):
        forge(places, tmp_path / "results" / name, change, model="acme/same")
    first, second = board(tmp_path / "results", places).tables[0].rows
    assert first.entry.sketch.likeness(second.entry.sketch) is not None
    assert all((row.unranked or "").startswith("disputed: ") for row in (first, second))


def test_copies_take_a_place_until_a_maintainer_withdraws_them(places: Places, results: Path) -> None:
    accepted(results, "honest", "2026-01-01")
    copies = [f"copy{number}" for number in range(3)]
    for number, name in enumerate(copies):
        forge(places, results / name, noisy(0.01, number), model=f"evil/{name}")
    (table,) = board(results, places).tables
    assert {(row.rank.best, row.rank.worst) for row in table.rows if row.rank is not None} == {(1, 4)}
    decision = {"decision": "withdrawn", "reason": "its answers are those of acme/honest", "decided": "2026-02-01"}
    for name in copies:
        accepted(results, name, "2026-01-02", **decision)
    said = "withdrawn on 2026-02-01: its answers are those of acme/honest"
    assert reasons(results, places) == {"honest": None, **dict.fromkeys(copies, said)}


def test_a_withdrawn_copy_takes_no_rank_from_whom_it_copied_and_gets_none_again(places: Places, results: Path) -> None:
    for name in ("first", "again"):
        forge(places, results / name, model=f"evil/{name}")
    accepted(results, "honest", "2026-01-02")
    accepted(results, "first", "2026-01-01", decision="withdrawn", reason="its answers are those of acme/honest")
    assert [place for place, why in reasons(results, places).items() if why is None] == ["honest"]
    shutil.rmtree(results / "honest")
    assert reasons(results, places)["again"] == COPIED.replace("acme/honest", "evil/first")


def test_a_withdrawn_revision_is_not_the_newest(places: Places, results: Path) -> None:
    forge(places, results / "other", constant(0.6), of_result=identified("acme/honest", revision="2"))
    accepted(results, "honest", "2026-01-01")
    accepted(results, "other", "2026-01-02", decision="withdrawn", reason="it was of another model")
    profile = present(profile_of(board(results, places), "synthbias"))
    assert [row.model.revision for row in profile.newest] == ["1"]


def test_what_is_no_copy_keeps_its_rank_and_another_reading_gets_none(places: Places, results: Path) -> None:
    """Another model, and the same model in another precision: its answers differ as those of a noisy copy do."""
    accepted(results, "honest", "2026-01-01")
    forge(places, results / "unrelated", noisy(3.0), model="acme/unrelated")
    forge(places, results / "half", noisy(0.01), of_result=identified("acme/honest", precision="bfloat16"))
    found = reasons(results, places)
    assert found["honest"] is None
    assert "answers of" not in (found["unrelated"] or "")
    assert found["half"] == "another result of the same model revision has the rank (transformers)"
    forge(places, results / "a", normalisation="byte_mean")
    assert len(board(results, places).tables) == 2
    assert reasons(results, places) == found | {"a": COPIED}


@pytest.mark.parametrize("is_accepted", [True, False])
def test_the_identity_of_a_model_belongs_to_one_name(places: Places, results: Path, is_accepted: bool) -> None:
    stolen = read_result(places.honest).model.identity_sha256

    def claims(result: Result) -> Result:
        # Any other than an endpoint, whose identity is not shown, has to name the parts.
        return replace(result, model=replace(result.model, identity_sha256=stolen, identity=None, **AT_ENDPOINT))

    forge(places, results / "aaa", constant(0.6), of_result=claims)
    if is_accepted:
        accepted(results, "honest", "2026-01-01")
    found = board(results, places)
    ranked = [row.entry.place for table in found.tables for row in table.ranked]
    assert ranked == (["honest"] if is_accepted else [])
    apart = {entry.place: entry.match.reason or "" for entry in found.apart}
    assert set(apart) == ({"aaa"} if is_accepted else {"aaa", "honest"})
    assert "claims the identity of acme/honest (1) in honest" in apart["aaa"]
    assert "run it again with --name acme/honest if it is that model" in apart["aaa"]


def test_a_run_of_ones_own_stands_beside_the_model_with_its_weights(places: Places, results: Path) -> None:
    model, runs = read_result(places.honest).model, results.with_name("runs")

    def same_weights(result: Result) -> Result:
        return replace(result, model=replace(model, id="mine/copy", revision=None))

    forge(places, runs / "copy", of_result=same_weights)
    forge(places, runs / "reading", normalisation="byte_mean", of_result=same_weights)
    found = assemble([*entries(results, places), *entries(runs, places, "local")])
    assert not found.apart
    beside, alone = sorted(map(rows, found.tables), key=len, reverse=True)
    assert beside["acme/honest"].rank is not None
    assert beside["mine/copy"].unranked == "same weights as acme/honest (1), so it has no rank of its own"
    assert beside["mine/copy"].entry.shared_identity == model.identity_sha256
    assert alone["mine/copy"].entry.double == COPIED
    assert [one.entry.is_second for one in (beside["acme/honest"], beside["mine/copy"])] == [False, True]


def test_a_trial_run_shuts_no_gate_and_a_registered_result_decides_alone(places: Places, results: Path) -> None:
    (entry,) = entries(results, places)
    trial = replace(entry, match=Match("slice", "asks 20 of 200 items"), place="trial")
    without_answers = replace(entry, standing=None)
    for asked in (entry, without_answers):
        assert Gates([entry, trial]).why_shut(asked) is None
    assert (Gates([trial]).why_shut(without_answers) or "").endswith(
        "has no result with accuracy under this prompt but one of some items; ask all"
    )
    forge(places, results / "coin", constant(0.5), model="acme/honest")
    accepted(results, "honest", "2026-01-01")
    found = entries(results, places)
    (without_answers,) = (replace(one, standing=None) for one in found if one.place == "honest")
    assert Gates(found).why_shut(without_answers) is None
    unregistered = [replace(one, acceptance=None) for one in found]
    assert "is no better than the baseline" in (Gates(unregistered).why_shut(without_answers) or "")
