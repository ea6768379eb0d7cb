"""The table of the front page: rows, groups, what its tints claim, and what a board shows of data of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from biasboard.ground.memory import Memory
from leaderboard.pages.profile import TINTS, FrontRow, FrontTable, front_parts, front_table, tints_of
from leaderboard.pages.publishing import templates
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import tables_of
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.entries import Entry, Root
from tests.leaderboard import synthetic
from tests.leaderboard.gifi_results import write_gifi_model
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow

ABLE = {
    "acme/even": synthetic.leaning(2.0, 0.0),
    "acme/even-too": synthetic.leaning(1.9, 0.02),
    "acme/biased": synthetic.leaning(0.8, 0.7),
}
UNABLE = "acme/coin"


def guessing(reference: str, other: str, gender: str, pair: int) -> float:
    """Right in every other pair, whoever it is about, and never sure."""
    return 0.501 if pair % 4 < 2 else 0.499


def write_otherwise(folder: Path, model_id: str, probability: synthetic.Probability, **conditions: str) -> None:
    records = synthetic.make_records(probability)
    synthetic.write_result(folder, synthetic.make_result(records, model_id, **conditions), records)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeBoard:
    root = tmp_path_factory.mktemp("front")
    for model_id, probability in {**ABLE, UNABLE: guessing}.items():
        synthetic.write_model(root, model_id, probability)
        synthetic.write_model(root, model_id, probability, ambiguous=True)
    for name, probability in (("uniform", synthetic.uniform), ("stereotype", synthetic.stereotyped(1.0))):
        synthetic.write_model(root, f"baseline/{name}", probability, endpoint="baseline")
    write_gifi_model(root / "gifi", "acme/even", 0.9, n_templates=8)
    return MadeBoard(root)


def table_of(board: Board) -> FrontTable:
    return front_table(board, front_parts(board))


@pytest.fixture(scope="module")
def table(made: MadeBoard) -> FrontTable:
    return table_of(made.board)


def rows_of(table: FrontTable) -> Mapping[str, FrontRow]:
    return {row.model_id: row for row in table.rows}


def test_the_benchmark_with_most_models_and_models_ranked_most_come_first(table: FrontTable, made: MadeBoard) -> None:
    assert [group.pages.name for group in table.groups] == ["synthbias", "gifi"]
    assert [pages.name for pages in table.missing] == ["image_labels", "superni"]
    block = templates().get_template("profile.html.j2").render(table=table, tints=TINTS, chosen=[])
    commands = re.findall(r"It takes <code>(.*?)</code>", block)
    assert [command.startswith("biasboard run --dataset ") for command in commands] == [True, True]
    # Whoever chose some benchmarks is not told that no model answered the others.
    block = templates().get_template("profile.html.j2").render(table=table, tints=TINTS, chosen=["Pronoun families"])
    assert "Results on Pronoun families alone are shown" in block
    assert "It takes" not in block
    for row in table.rows:
        assert [len(cells) for cells in row.cells] == [len(group.columns) for group in table.groups]
    none = (99, 99)
    ranks = [[none if one is None or one.rank is None else one.rank[:2] for one, *_ in row.ranks] for row in table.rows]
    assert ranks == sorted(ranks, key=lambda of_row: (of_row.count(none), *of_row))
    assert table.rows[0].model_id == "acme/even"
    assert {row.model_id for row in table.rows} == {*ABLE, UNABLE}
    baselines = [row for row in tables_of(made.board, "synthbias")[0].rows if row.is_baseline]
    for column, name in zip(table.groups[0].columns, ("worst_group_accuracy", "accuracy_gap", "ucerf"), strict=False):
        values = {}
        for found in baselines:
            metric = synthetic.present(found.entry.metric(name))
            values[found.model.id.removeprefix("baseline/")] = abs((metric.value or 0.0) - (metric.ideal or 0.0))
        assert len(values) == 2
        assert values[synthetic.present(column.useless).name] == min(values.values())


def test_a_model_that_lacks_a_part_says_so_in_place_of_its_rank_and_the_gate_what_baselines_get(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "acme/whole", 0.9, n_templates=8)
    write_gifi_model(tmp_path, "acme/partial", 0.9, tasks=["recognition", "continuation"], n_templates=8)
    made = MadeBoard(tmp_path)
    table = table_of(made.board)
    lacking = "it lacks results that the ranking needs"
    assert {row.model_id: row.ranks[0][1] for row in table.rows} == {"acme/whole": "", "acme/partial": lacking}
    block = templates().get_template("profile.html.j2").render(table=table, tints=TINTS, chosen=[])
    assert block.count(f'title="{lacking}">none<small class="bb-name">lacks parts</small>') == 1
    entry = next(one for one in made.of("acme/whole") if one.result.signature.config == "recognition")
    best = max(lead.value for lead in synthetic.present(entry.standing).leads)
    values = {one.headline.label: one.useless and one.useless.metric.value for one in table.groups[0].columns}
    assert values["Keeps the pronoun"] == best
    assert values["Keeps all alike (GDR)"] is None


def test_a_model_that_only_missing_answers_save_from_being_beaten_is_not_called_best(models: MadeBoard) -> None:
    names = ("acme/shy", "acme/other", "baseline/uniform")
    board = MadeBoard(*(entry for name in names for entry in models.of(name))).board
    (profile,) = front_parts(board)
    (column,) = (one for one in profile.columns if one.headline.name == "ucerf")
    (pair,) = (one for one in column.pairs if one.is_ranked)
    # By the given answers alone one of the two is better, and the verdict waits for the missing ones.
    assert pair.outcome == "tied"
    assert (pair.low or 0.0) > 0 >= pair.lead_at_worst
    tints = tints_of(profile)[profile.columns.index(column)]
    assert (tints[pair.first], tints[pair.second]) == ("best", "open")


def test_results_under_other_conditions_give_a_link_and_never_a_value(tmp_path: Path) -> None:
    for name in ("one", "two"):
        synthetic.write_model(tmp_path, f"acme/{name}", synthetic.leaning(2.0, 0.1))
    write_otherwise(tmp_path / "other", "acme/other", synthetic.leaning(2.0, 0.1), prompt="mcq2-v1")
    write_gifi_model(tmp_path / "gifi", "acme/other", 0.9, n_templates=8)
    table = table_of(MadeBoard(tmp_path).board)
    other, one = (rows_of(table)[f"acme/{name}"] for name in ("other", "one"))
    assert [cell.metric for cell in other.cells[0]] == [None] * len(table.groups[0].columns)
    assert (other.ranks[0], one.ranks[1]) == ((None, "", other.page), (None, "", None))
    assert {cell.page for cell in other.cells[0]} == {other.page}
    assert {cell.page for cell in one.cells[1]} == {None}
    assert table.has_other_texts


def test_tints_follow_from_the_comparisons_and_a_value_leads_to_its_answers(made: MadeBoard, table: FrontTable) -> None:
    rows = rows_of(table)
    tints = {name: row.cells[0][0].tint for name, row in rows.items()}
    assert tints == {"acme/even": "best", "acme/even-too": "best", "acme/biased": "worse", UNABLE: "useless"}
    for row in rows.values():
        ranked, *_ = row.ranks[0]
        if ranked is not None and ranked.rank is not None:
            assert tints[row.model_id] == ("best" if ranked.rank.best == 1 else "worse")
    (profile,) = (part for part in front_parts(made.board) if part.benchmark == "synthbias")
    names = {row.identity: row.model.id for row in profile.rows.values()}
    n_worse = 0
    for place, column in enumerate(profile.columns):
        pairs = [one for one in column.pairs if one.is_ranked]
        assert {names[name] for one in pairs for name in (one.first, one.second)} == set(ABLE)
        beaten = {names[{"first": one.second, "second": one.first}[one.outcome]] for one in pairs if one.separable}
        for name in ABLE:
            assert rows[name].cells[0][place].tint == ("worse" if name in beaten else "best")
        n_worse += len(beaten)
    assert n_worse > 1
    page = synthetic.present(rows_of(table)["acme/biased"].cells[0][0].page)
    assert page.startswith("models/acme__biased/synthbias-type2-")
    shown = rows_of(front_table(made.board, front_parts(made.board), frozenset({page})))
    cells = shown["acme/biased"].cells[0]
    assert [str(cell.page).partition("#")[0].partition("/")[0] for cell in cells] == [*["answers.html"] * 3, "models"]
    assert shown["acme/even"].cells[0][0].page == rows_of(table)["acme/even"].cells[0][0].page


def test_of_the_versions_of_a_model_one_has_a_row(tmp_path: Path) -> None:
    for revision, certainty in (("a" * 40, 2.0), ("b" * 40, 0.9)):
        write_otherwise(tmp_path / revision[:1], "acme/twice", synthetic.leaning(certainty, 0.1), revision=revision)
    assert [row.model_id for row in table_of(MadeBoard(tmp_path).board).rows] == ["acme/twice"]


OWN = "synthbias 8.0.0"


def with_computed(entries: tuple[Entry, ...]) -> MadeBoard:
    return MadeBoard(*with_baselines(entries, Memory(None)), pages={"index.md": "<!-- generated: profile -->\n"})


def in_order(text: str, *parts: str) -> bool:
    return sorted(parts, key=text.index) == [*parts]


def test_own_data_stand_first_and_a_board_of_accepted_results_alone_knows_none(tmp_path: Path) -> None:
    """Accepted results on two benchmarks, and local ones: of a model on one of these, and of many on other data."""
    accepted, local = tmp_path / "accepted", tmp_path / "local"
    for number, name in enumerate(("even", "even-too", "biased")):
        synthetic.write_model(accepted, f"acme/{name}", synthetic.leaning(2.0, 0.3 * number))
    write_gifi_model(accepted / "gifi", "acme/even", 0.9, n_templates=8)
    write_gifi_model(local / "gifi", "mine/model", 0.8, n_templates=8)
    for name in ("model", "second", "third", "fourth"):
        for is_ambiguous in (False, True):
            records = synthetic.make_records(synthetic.leaning(1.0, 0.1 * len(name)), ambiguous=is_ambiguous)
            result = synthetic.make_result(records, f"mine/{name}", dataset_version="8.0.0")
            synthetic.write_result(local / f"own/{name}/{is_ambiguous}", result, records)
    entries = MadeBoard(Root(accepted, "accepted"), Root(local, "local"), any_name=True).entries
    own = with_computed(entries)
    front = own.texts["index.md"]
    # Fewer models have a result on gifi than on synthbias, but one of these is a local run.
    assert in_order(front, f">{OWN}</a> <small>own data</small>", ">Pronoun families</a>", ">Gender and occupation</a>")
    rows = front[front.index("<tbody>") :]
    models = re.findall(r'data-bb-model="([^"]+)"', rows)
    assert {model.partition("/")[0] for model in models[:4]} == {"mine"}
    assert {model.partition("/")[0] for model in models[4:]} == {"acme"}
    assert rows.count(">local run</span>") == 4
    assert "Models with local runs come first." in front
    # Findings and leaders are those of accepted results.
    assert not any(part.is_own for part in front_parts(own.board))
    alone = with_computed(tuple(entry for entry in entries if entry.origin == "accepted"))
    view, texts = alone.view, alone.texts
    # What the board computes of baselines counts as local, too.
    assert any(row.entry.is_computed for table in view.board.tables for row in table.rows)
    assert not view.board.own_datasets
    words = ("own data", "Own data", "local run<", "Models with local runs", OWN)
    assert [(path, word) for path, text in texts.items() for word in words if word in text] == []
    # One of three models was asked about pronouns, so that a line says it.
    assert in_order(texts["index.md"], ">Gender and occupation</a>", "<strong>Pronoun families</strong>: 1 model, ")
    assert "This table: " in texts["benchmarks/gifi.md"]
    assert not any(re.search(r"^## (gifi|synthbias)", text, re.MULTILINE) for text in texts.values())
