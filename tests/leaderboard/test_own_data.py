"""What a board shows of data that only local runs are on, beside accepted results; other boards have nothing of it."""

from __future__ import annotations

import re

import pytest

from biasboard.ground.memory import Memory
from leaderboard.pages.marker_blocks import make_blocks
from leaderboard.pages.profile import front_parts
from leaderboard.pages.rendering import templates
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.entries import Entry, Root
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_model, write_result
from tests.worlds import MadeBoard

OWN = "synthbias 8.0.0"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, ...]:
    """Accepted results on two benchmarks, and local ones: of a model on one of these, and of many on other data."""
    accepted, local = (tmp_path_factory.mktemp(name) for name in ("accepted", "local"))
    for number, name in enumerate(("even", "even-too", "biased")):
        write_model(accepted, f"acme/{name}", leaning(2.0, 0.3 * number))
    write_gifi_model(accepted / "gifi", "acme/even", 0.9, n_templates=8)
    write_gifi_model(local / "gifi", "mine/model", 0.8, n_templates=8)
    for name in ("model", "second", "third", "fourth"):
        for is_ambiguous in (False, True):
            records = make_records(leaning(1.0, 0.1 * len(name)), ambiguous=is_ambiguous)
            result = make_result(records, f"mine/{name}", dataset_version="8.0.0")
            write_result(local / f"own/{name}/{is_ambiguous}", result, records)
    return MadeBoard(Root(accepted, "accepted"), Root(local, "local"), any_name=True).entries


def made(entries: tuple[Entry, ...]) -> MadeBoard:
    return MadeBoard(*with_baselines(entries, Memory(None)), pages={"index.md": "<!-- generated: profile -->\n"})


@pytest.fixture(scope="module")
def board(entries: tuple[Entry, ...]) -> MadeBoard:
    return made(entries)


def in_order(text: str, *parts: str) -> bool:
    return sorted(parts, key=text.index) == [*parts]


def test_own_data_stand_first_on_the_front_page(board: MadeBoard) -> None:
    front = board.texts["index.md"]
    # Fewer models have a result on gifi than on synthbias, but one of these is a local run.
    assert in_order(front, f">{OWN}</a> <small>own data</small>", ">Pronoun families</a>", ">Gender and occupation</a>")
    rows = front[front.index("<tbody>") :]
    models = re.findall(r'data-bb-model="([^"]+)"', rows)
    assert {model.partition("/")[0] for model in models[:4]} == {"mine"}
    assert {model.partition("/")[0] for model in models[4:]} == {"acme"}
    assert rows.count(">local run</span>") == 4
    assert "Models with local runs come first." in front


def test_own_data_stand_open_and_first_on_the_page_of_their_benchmark(board: MadeBoard) -> None:
    view, texts = board.view, board.texts
    first, *others = view.tables_of("synthbias")
    own = [table for table in others if table.is_own]
    # Most models are on own data, and yet the table of the accepted results stays what the page is about.
    assert not first.is_own
    assert [table.datasets for table in own] == [(("synthbias", "8.0.0"),)] * 2
    page = texts["benchmarks/synthbias.md"]
    named = [f"\n## {OWN}, ", f'aria-label="{own[0].name}"', "\n## synthbias 9.0.0, ", f'aria-label="{first.name}"']
    assert in_order(page, *named, 'id="other-tables"')
    assert f"no accepted result is on {OWN}, only local runs" in page
    assert all(f'href="../{table.page}"' in page for table in own)
    for table in own:
        assert table.title.startswith(f"Gender and occupation: {OWN}, ")
        assert f"no accepted result is on {OWN}" in texts[table.page.replace(".html", ".md")]


def test_findings_and_leaders_stay_those_of_accepted_results(board: MadeBoard) -> None:
    view = board.view
    assert not any(part.is_own for part in front_parts(view.board))
    blocks = make_blocks(templates(), view.board, view.front, (), 0)
    assert OWN not in blocks["leaders"] + blocks["findings"]


def test_a_board_of_accepted_results_alone_knows_no_own_data(entries: tuple[Entry, ...]) -> None:
    alone = made(tuple(entry for entry in entries if entry.origin == "accepted"))
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
