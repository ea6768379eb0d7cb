"""The table of the front page: its rows and groups, what its tints claim, and what stands in its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.benchmark import load_benchmark
from leaderboard.pages.profile import TINTS, FrontRow, FrontTable, front_parts, front_table
from leaderboard.pages.rendering import templates
from leaderboard.pages.tables import TableView, index_views, make_sections
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import tables_of
from leaderboard.ranking.useless import Named, best_useless
from leaderboard.verify.entries import Root
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    Probability,
    leaning,
    make_records,
    make_result,
    stereotyped,
    uniform,
    write_model,
    write_result,
)

ABLE = {"acme/even": leaning(2.0, 0.0), "acme/even-too": leaning(1.9, 0.02), "acme/biased": leaning(0.8, 0.7)}
UNABLE = "acme/coin"


def guessing(reference: str, other: str, gender: str, pair: int) -> float:
    """Right in every other pair, whoever it is about, and never sure."""
    return 0.501 if pair % 4 < 2 else 0.499


def write_otherwise(folder: Path, model_id: str, probability: Probability, **conditions: str) -> None:
    records = make_records(probability)
    write_result(folder, make_result(records, model_id, **conditions), records)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("front")
    for model_id, probability in ABLE.items():
        write_model(root, model_id, probability)
        write_model(root, model_id, probability, ambiguous=True)
    for ambiguous in (False, True):
        write_model(root, UNABLE, guessing, ambiguous=ambiguous)
    for name, probability in (("uniform", uniform), ("stereotype", stereotyped(1.0))):
        write_model(root, f"baseline/{name}", probability, endpoint="baseline")
    write_gifi_model(root / "gifi", "acme/even", 0.9, n_templates=8)
    return assemble(load_known(Root(root, "local"), any_name=True).entries)


@pytest.fixture(scope="module")
def table(board: Board) -> FrontTable:
    return front_table(board, front_parts(board))


def rows_of(table: FrontTable) -> Mapping[str, FrontRow]:
    return {row.model_id: row for row in table.rows}


def test_the_benchmark_with_most_models_comes_first_and_those_without_any_say_what_fills_them(
    table: FrontTable,
) -> None:
    assert [group.pages.name for group in table.groups] == ["synthbias", "gifi"]
    assert [pages.name for pages in table.missing] == ["image_labels", "superni"]
    block = templates().get_template("profile.html.j2").render(table=table, tints=TINTS)
    commands = re.findall(r"It takes <code>(.*?)</code>", block)
    assert [command.startswith("biasboard run --dataset ") for command in commands] == [True, True]
    assert all(
        len(row.cells[place]) == len(group.columns) for row in table.rows for place, group in enumerate(table.groups)
    )


def test_models_ranked_on_most_benchmarks_come_first_then_those_with_the_better_rank(table: FrontTable) -> None:
    keys = []
    for row in table.rows:
        ranks = [each.rank for each in row.ranks]
        keys.append(
            (-sum(rank is not None for rank in ranks), *[(99, 99) if rank is None else rank[:2] for rank in ranks])
        )
    assert keys == sorted(keys)
    assert table.rows[0].model_id == "acme/even"


def test_no_baseline_has_a_row_and_the_best_one_stands_below_each_column(board: Board, table: FrontTable) -> None:
    assert {row.model_id for row in table.rows} == {*ABLE, UNABLE}
    default = tables_of(board, "synthbias")[0]
    for column, name in zip(table.groups[0].columns, ("worst_group_accuracy", "accuracy_gap", "ucerf"), strict=False):
        values = {}
        for row in default.rows:
            entry = row.entry
            if entry.is_baseline:
                metric = entry.metric(name)
                assert metric is not None
                assert metric.value is not None
                assert metric.ideal is not None
                values[entry.result.model.id.removeprefix("baseline/")] = abs(metric.value - metric.ideal)
        assert column.useless is not None
        assert values[column.useless.name] == min(values.values())


def test_of_equal_useless_predictors_the_simplest_is_named_on_every_page(table: FrontTable) -> None:
    useless = table.groups[0].columns[0].useless
    assert useless is not None
    metric = useless.metric
    assert metric.value is not None
    nearly = replace(metric, value=metric.value + 1e-12)
    values = [Named("first-mentioned", nearly), Named("uniform", metric), Named("best-cue", metric)]
    benchmark = load_benchmark("synthbias")
    assert best_useless(benchmark, values) == values[1]
    assert best_useless(benchmark, values[:1]) == values[0]
    assert best_useless(benchmark, []) is None


def test_a_measure_has_one_name_on_the_front_page_and_in_tables(board: Board) -> None:
    n_named = 0
    views: list[TableView] = [*make_sections(board), *index_views(board)]
    for view in views:
        names = {headline.name: headline.label for headline in view.pages.headlines}
        headings = [(column.metric, column.heading) for column in view.columns if not column.group]
        assert {heading for metric, heading in headings if metric in names} <= set(names.values())
        n_named += sum(metric in names for metric, _ in headings)
    assert n_named > len(board.tables)


def test_a_model_that_lacks_a_part_says_so_in_place_of_its_rank(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "acme/whole", 0.9, n_templates=8)
    write_gifi_model(tmp_path, "acme/partial", 0.9, tasks=["recognition", "continuation"], n_templates=8)
    made = assemble(load_known(Root(tmp_path, "local"), any_name=True).entries)
    rows = rows_of(front_table(made, front_parts(made)))
    assert {name: row.ranks[0].why for name, row in rows.items()} == {"acme/whole": "", "acme/partial": "lacks parts"}


def test_without_results_of_baselines_the_gate_says_what_they_get(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "acme/one", 0.9, n_templates=8)
    made = assemble(load_known(Root(tmp_path, "local"), any_name=True).entries)
    (group,) = front_table(made, front_parts(made)).groups
    (entry,) = (row.entry for each in made.tables if each.signature.config == "recognition" for row in each.rows)
    assert entry.standing is not None
    best = max(lead.value for lead in entry.standing.leads)
    values = {one.headline.label: one.useless and one.useless.metric.value for one in group.columns}
    assert values["Keeps the pronoun"] == best
    assert values["Keeps all alike (GDR)"] is None


def test_tints_of_the_column_that_ranks_follow_from_the_ranks(table: FrontTable) -> None:
    tints = {}
    for row in table.rows:
        placement, cell = row.ranks[0], row.cells[0][0]
        tints[row.model_id] = cell.tint
        if placement.rank is not None:
            assert cell.tint == ("best" if placement.rank.best == 1 else "worse")
    assert tints == {"acme/even": "best", "acme/even-too": "best", "acme/biased": "worse", UNABLE: "useless"}


def test_other_tints_follow_from_the_comparisons_of_their_tables(board: Board, table: FrontTable) -> None:
    (profile,) = (part for part in front_parts(board) if part.benchmark == "synthbias")
    names = {row.identity: row.model.id for row in profile.rows.values()}
    n_worse = 0
    for place, column in enumerate(profile.columns):
        pairs = [one for one in column.pairs if one.is_ranked]
        assert {names[name] for one in pairs for name in (one.first, one.second)} == set(ABLE)
        beaten = {names[{"first": one.second, "second": one.first}[one.outcome]] for one in pairs if one.separable}
        for row in table.rows:
            if row.model_id in ABLE:
                assert row.cells[0][place].tint == ("worse" if row.model_id in beaten else "best")
        n_worse += len(beaten)
    assert n_worse > 1


def test_evenness_of_a_model_that_guesses_is_no_merit(table: FrontTable) -> None:
    row = rows_of(table)[UNABLE]
    gap, ucerf = row.cells[0][1], row.cells[0][2]
    assert gap.metric is not None
    assert gap.metric.value == pytest.approx(0.0, abs=0.01)
    assert ucerf.metric is not None
    assert ucerf.metric.value == pytest.approx(1.0, abs=0.01)
    assert {cell.tint for cell in row.cells[0]} == {"useless"}
    assert row.ranks[0].rank is None
    assert row.ranks[0].reason


def test_a_single_model_has_no_tint(table: FrontTable) -> None:
    row = rows_of(table)["acme/even"]
    assert any(cell.metric is not None for cell in row.cells[1])
    assert {cell.tint for cell in row.cells[1]} == {None}


def test_results_under_other_conditions_give_a_link_and_never_a_value(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_model(tmp_path, f"acme/{name}", leaning(2.0, 0.1))
    write_otherwise(tmp_path / "other", "acme/other", leaning(2.0, 0.1), prompt="mcq2-v1")
    write_gifi_model(tmp_path / "gifi", "acme/other", 0.9, n_templates=8)
    made = assemble(load_known(Root(tmp_path, "local"), any_name=True).entries)
    table = front_table(made, front_parts(made))
    rows = rows_of(table)
    other = rows["acme/other"]
    assert [cell.metric for cell in other.cells[0]] == [None] * len(table.groups[0].columns)
    assert {cell.page for cell in other.cells[0]} == {other.ranks[0].page} == {other.page}
    assert rows["acme/one"].ranks[1].page is None
    assert {cell.page for cell in rows["acme/one"].cells[1]} == {None}


def test_a_value_leads_to_its_answers_if_the_site_shows_them_and_else_to_its_result(
    board: Board, table: FrontTable
) -> None:
    page = rows_of(table)["acme/biased"].cells[0][0].page
    assert page is not None
    assert page.startswith("models/acme__biased/synthbias-type2-")
    shown = rows_of(front_table(board, front_parts(board), frozenset({page})))
    cells = shown["acme/biased"].cells[0]
    assert [str(cell.page).partition("#")[0].partition("/")[0] for cell in cells] == [*["answers.html"] * 3, "models"]
    assert shown["acme/even"].cells[0][0].page == rows_of(table)["acme/even"].cells[0][0].page


def test_of_the_versions_of_a_model_one_has_a_row(tmp_path: Path) -> None:
    for revision, certainty in (("a" * 40, 2.0), ("b" * 40, 0.9)):
        write_otherwise(tmp_path / revision[:1], "acme/twice", leaning(certainty, 0.1), revision=revision)
    made = assemble(load_known(Root(tmp_path, "local"), any_name=True).entries)
    table = front_table(made, front_parts(made))
    assert [row.model_id for row in table.rows] == ["acme/twice"]
