"""The index on the board: who is ranked, who is kept apart, what the pages and files say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.files import sha256_file
from evaluators.runs.measure.rescoring import rescore
from evaluators.scorer import quick_scorers
from evaluators.task import load_task
from leaderboard.pages.tables import table_views
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import tables_of
from leaderboard.ranking.rank_ranges import RankRange, why_unranked
from leaderboard.ranking.rows import RankableValue, Table, compared
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.verdicts import LoadedResults
from schemas.documents.board import Acceptance
from schemas.documents.run_files import TextScore
from schemas.files import row_files
from schemas.folders.run_folder import read_run, write_result
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import present
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow


def loaded_from(root: Path) -> LoadedResults:
    return load_known(Root(root, "local"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeBoard:
    folder = tmp_path_factory.mktemp("results")
    for name, skill in (("even", 0.95), ("alike", 0.95), ("uneven", 0.2)):
        write_gifi_model(folder, f"lab/{name}", skill)
    write_gifi_model(folder, "lab/other-scorer", 0.5, scorer="another")
    write_gifi_model(folder, "lab/unscored", 0.5, scorer=None)
    write_gifi_model(folder, "lab/partial", 0.5, tasks=("recognition", "continuation"))
    return MadeBoard(folder)


@pytest.fixture(scope="module")
def board(made: MadeBoard) -> Board:
    return made.board


def table_of(board: Board, config: str) -> Table:
    (table,) = (table for table in board.tables if table.signature.config == config)
    return table


def test_models_are_ranked_by_the_index_and_scorers_kept_apart(board: Board) -> None:
    ranks = [{row.model.id: row.rank for row in table.rows} for table in board.indices.tables]
    assert sorted(ranks, key=len) == [
        {"lab/other-scorer": RankRange(1, 1, 1)},
        {"lab/even": RankRange(1, 2, 3), "lab/alike": RankRange(1, 2, 3), "lab/uneven": RankRange(3, 3, 3)},
    ]
    assert len({table.version for table in board.indices.tables}) == 2
    main = max(board.indices.tables, key=lambda table: len(table.rows))
    values = [row.primary.value or 0 for row in main.rows]
    assert values == sorted(values, reverse=True)
    for row in main.rows:
        parts = [part.value or 0 for part in row.parts]
        assert row.primary.value == pytest.approx(sum(parts) / 7)
    assert [scorer.label for scorer in main.scorers] == ["made-1"] * 3
    # Models without an index are named with the reason, and no config by itself ranks.
    ((place, entries),) = board.indices.incomplete.items()
    assert (place.dataset, place.protocol) == ("gifi", "sampled-v1")
    assert {entry.label.split(" (")[0]: entry.reason for entry in entries} == {
        "lab/partial": "no result of assignment, word_problem",
        "lab/unscored": "Same tone (SN): no sentiment scores: biasboard rescore RUN --scorer sentiment=vader",
    }
    reason = "models are ranked by the index of all configs, not by one config"
    assert {row.unranked for table in board.tables for row in table.rows} == {reason}


def registered(entry: Entry, date: str, **fields: str) -> Entry:
    told: dict[str, Any] = {"decision": "accepted", "reason": None, "owner": "lab", "rerun": None, **fields}
    acceptance = Acceptance(place=entry.place, result_sha256="0" * 64, accepted=date, **told)
    return replace(entry, origin="accepted", acceptance=acceptance)


def elsewhere(entry: Entry) -> Entry:
    """As if it stood before all others."""
    return replace(entry, origin="accepted", place=f"aaa/{entry.place}")


def without_examples(entry: Entry) -> Entry:
    prompt = load_task("word_problem").prompts["zero-shot-sampled-v1"]
    signature = replace(entry.result.signature, prompt=prompt.id, prompt_sha256=prompt.sha256())
    return replace(entry, result=replace(entry.result, signature=signature, signature_sha256=signature.sha256()))


DATE = "2026-01-02"
BESIDE: dict[str, tuple[Callable[[Entry], Entry], Callable[[Entry], Entry]]] = {
    "under the prompt that names the protocol": (lambda own: registered(without_examples(own), DATE), elsewhere),
    "earlier and withdrawn": (
        lambda own: registered(own, DATE),
        lambda bad: registered(elsewhere(bad), "2026-01-01", decision="withdrawn", reason="a wrong template"),
    ),
    "earlier where a maintainer prefers the other": (
        lambda own: registered(own, DATE, decision="preferred", reason="it was run again"),
        lambda bad: registered(elsewhere(bad), "2026-01-01"),
    ),
    "that nobody registered": (lambda own: registered(own, DATE), elsewhere),
}


@pytest.mark.parametrize(("own", "bad"), BESIDE.values(), ids=BESIDE)
def test_an_index_is_of_the_results_that_a_maintainer_stands_by(
    tmp_path: Path, own: Callable[[Entry], Entry], bad: Callable[[Entry], Entry]
) -> None:
    write_gifi_model(tmp_path / "own", "lab/same", 0.95)
    write_gifi_model(tmp_path / "bad", "lab/same", 0.0, tasks=("word_problem",))
    good, (wrong,) = (loaded_from(tmp_path / name).entries for name in ("own", "bad"))
    given = [own(entry) if entry.result.signature.task == "word_problem" else registered(entry, DATE) for entry in good]
    (alone,), (beside,) = (assemble(entries).indices.tables for entries in (given, [*given, bad(wrong)]))
    assert [(row.primary, row.entries[-1].place) for row in beside.rows] == [
        (row.primary, row.entries[-1].place) for row in alone.rows
    ]


def test_word_lists_have_a_table_of_their_own_behind_that_of_trained_scorers(tmp_path: Path) -> None:
    for name in ("lab/listed", "lab/also-listed"):
        write_gifi_model(tmp_path, name, 0.9, n_templates=8, scorer="vader-sentences")
    write_gifi_model(tmp_path, "lab/trained", 0.8, n_templates=8, scorer="classifier")
    board = MadeBoard(tmp_path).board
    views = {view.table.is_demo: view for view in table_views(board, board.indices.tables)}
    assert {is_demo: len(view.table.rows) for is_demo, view in views.items()} == {False: 1, True: 2}
    # It is the first of the benchmark although it has fewer models.
    assert tables_of(board, "gifi")[:2] == (views[False].table, views[True].table)
    assert "Texts are judged by lists of words" in " ".join(views[True].facts)
    assert "Texts are judged by trained scorers (embedding by classifier-1" in " ".join(views[False].facts)


def test_values_of_two_versions_are_not_compared_and_of_two_scorers_stand_apart(board: Board) -> None:
    rows = [row for row in table_of(board, "recognition").rows if not row.is_baseline]
    measured = []
    for number, row in enumerate(rows):
        metric = present(row.metric("gdr"))
        # Another version may have another ideal, too.
        other = replace(metric, version="0.9", ideal=0.0) if number < 2 else metric
        measured.append(RankableValue(row, other, None, row.entry.deviations.get("gdr")))
    names = [one.row.identity for one in measured]
    pairs = compared(measured).comparisons
    expected = [*itertools.combinations(names[:2], 2), *itertools.combinations(names[2:], 2)]
    assert {frozenset((one.first, one.second)) for one in pairs} == {frozenset(pair) for pair in expected}
    values = {one.row.identity: one.metric.value or 0.0 for one in measured if one.metric is not None}
    for pair in pairs:
        difference = values[pair.first] - values[pair.second]
        assert pair.lead == pytest.approx(-difference if pair.first in names[:2] else difference)
    table = table_of(board, "continuation")
    shown = {column.key: column for column in table.columns}
    # What no scorer is asked for stays one column.
    keys = {f"sn@1.0+careful-1.{scorer}-1" for scorer in ("made", "another")} | {"refusal_rate"}
    assert keys <= set(shown)
    assert "sn" not in shown
    (scored,) = (row.entry for row in table.rows if row.model.id == "lab/other-scorer")
    here, there = (shown[f"sn@1.0+careful-1.{name}-1"].of(scored) for name in ("another", "made"))
    assert present(here).value is not None
    reason = "scored with version 1.0+careful-1.another-1, this column shows 1.0+careful-1.made-1"
    assert (present(there).value, present(there).reason) == (None, reason)


def test_an_answer_without_a_number_is_a_wrong_one_but_no_coverage(made: MadeBoard) -> None:
    (entry,) = (one for one in made.of("lab/even") if one.result.signature.task == "word_problem")
    for n_unparsed, reason in ((16, None), (300, "30 of 330 items scored; a rank needs at least half")):
        counts = replace(entry.result.counts, scored=330 - n_unparsed, unparsed=n_unparsed)
        assert why_unranked(replace(entry, result=replace(entry.result, counts=counts))) == reason


def change_scores(folder: Path, change: Callable[[TextScore], TextScore | None]) -> None:
    """Write the scores of texts again after a change, with the hash that they have then; None leaves a row out."""
    result = read_run(folder).result
    rows = [new for row in row_files.read_rows(folder / "scores.parquet", TextScore) if (new := change(row))]
    row_files.write_rows(folder / "scores.parquet", rows, TextScore)
    scores = replace(present(result.scores), sha256=sha256_file(folder / "scores.parquet"), n_rows=len(rows))
    write_result(folder, replace(result, scores=scores))


def with_scores_of_another(folder: Path) -> None:
    write_gifi_model(folder.parents[2] / "elsewhere", "lab/x", 0.1, tasks=("continuation",))
    (folder.parents[2] / "elsewhere/lab__x/continuation/scores.parquet").replace(folder / "scores.parquet")


def with_other_scores(folder: Path) -> None:
    change_scores(folder, lambda row: replace(row, values=(0.9,)) if row.kind == "toxicity" else row)
    assert rescore(folder).changes


def with_another_value(folder: Path) -> None:
    result = read_run(folder).result
    metrics = [replace(one, value=0.01) if (one.name, *one.group) == ("nts",) else one for one in result.metrics]
    write_result(folder, replace(result, metrics=tuple(metrics)))


@pytest.mark.parametrize(
    ("forge", "is_quick", "told"),
    [
        (with_scores_of_another, False, ("is not the", "score the texts again")),
        (with_other_scores, True, ("lexicon-1 gives a text other scores than the stored ones: 0, not 0.9",)),
        (with_another_value, False, ("metric nts is",)),
        (lambda run: write_result(run, replace(read_run(run).result, scores=None)), False, ("rescore the run",)),
    ],
)
def test_scores_and_numbers_that_do_not_follow_are_refused(
    tmp_path: Path, forge: Callable[[Path], None], is_quick: bool, told: Sequence[str]
) -> None:
    runs, scorer = tmp_path / "runs", None if is_quick else "made"
    folder = write_gifi_model(runs, "lab/model", 0.5, tasks=("continuation",), scorer=scorer)["continuation"]
    if is_quick:
        assert rescore(folder, scorers=quick_scorers()).result.scores is not None
    assert loaded_from(runs).left_out == ()
    forge(folder)
    (left_out,) = loaded_from(runs).left_out
    assert [words for words in told if words not in left_out.reason] == []


def test_a_part_that_rests_on_few_answers_keeps_a_model_from_its_rank(tmp_path: Path) -> None:
    """Scores of half the texts alone would be a way up: texts of two families differ less than those of eleven."""
    folder = write_gifi_model(tmp_path, "lab/thin", 0.2)["continuation"]
    write_gifi_model(tmp_path, "lab/full", 0.2)
    change_scores(folder, lambda row: row if row.text_sha256 < "6" else None)
    rescore(folder)
    (table,) = MadeBoard(tmp_path).board.indices.tables
    unranked = {row.model.id: row.unranked for row in table.rows}
    assert unranked["lab/full"] is None
    reason = unranked["lab/thin"] or ""
    assert reason.startswith("continuation: sn rests on ")
    assert reason.endswith(" of 330 answers; a rank needs half of the answers")
