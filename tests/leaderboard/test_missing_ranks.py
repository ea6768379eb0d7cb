"""The words by which a row says why its model has no rank: one case for each reason."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.index_tables import why_all_shut
from leaderboard.ranking.unranked import BY_INDEX, reasons_of
from leaderboard.verify.entries import Entry, Match, Root
from schemas.documents.result import Signature
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.test_docs import complaint

LIMITED = "a limited run, of 40 of 100 items: ask all, without --quick, --limit, --split and --part"
COIN = "accuracy 0.500 is no better than the baseline uniform (0.500)"
UNANSWERED = "0 of 100 items scored; a rank needs at least half"


def signed(entry: Entry, **fields: Any) -> Entry:
    signature: Signature = replace(entry.result.signature, **fields)
    sha256 = signature.sha256()
    return replace(entry, result=replace(entry.result, signature=signature, signature_sha256=sha256))


def without_rivals(entry: Entry) -> Entry:
    assert entry.standing is not None
    return replace(entry, standing=replace(entry.standing, leads=()))


CASES: dict[str, tuple[str, Callable[[Entry], Entry], tuple[str, ...]]] = {
    "a rank": ("acme/good", lambda entry: entry, ()),
    "a limited run": ("acme/good", lambda entry: replace(entry, match=Match("slice", LIMITED)), (LIMITED,)),
    "no more than a useless predictor": ("acme/coin", lambda entry: entry, (COIN,)),
    "a limited run that shows no more": (
        "acme/coin",
        lambda entry: replace(entry, match=Match("slice", LIMITED)),
        (LIMITED,),
    ),
    "no answers": (
        "acme/silent",
        lambda entry: entry,
        (UNANSWERED, "accuracy has no value: no items to compute it from"),
    ),
    "no useless predictor to compare with": (
        "acme/good",
        without_rivals,
        ("no baseline of the benchmark can answer such items, so accuracy has nothing to be compared with",),
    ),
    "a retired version": (
        "acme/good",
        lambda entry: signed(entry, dataset_version="1.0.0"),
        ("synthbias 1.0.0 is retired: the length of a sentence alone predicts its referent in 0.749; use 3.0.0",),
    ),
    "a baseline": ("baseline/uniform", lambda entry: entry, ()),
}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    root = tmp_path_factory.mktemp("runs")
    write_model(root, "acme/good", leaning(2.0, 0.1))
    write_model(root, "acme/coin", uniform)
    write_model(root, "acme/silent", lambda reference, other, gender, pair: None)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    loaded = load_known(Root(root, "local"))
    assert loaded.left_out == ()
    return {entry.result.model.id: entry for entry in loaded.entries}


@pytest.mark.parametrize("name", CASES)
def test_a_row_says_why_it_has_no_rank(name: str, entries: dict[str, Entry]) -> None:
    model, change, reasons = CASES[name]
    board = assemble([change(entries[model])])
    ((row,),) = (table.rows for table in board.tables)
    assert row.reasons == reasons
    assert (row.rank is None) == (name != "a rank")
    shown = (
        [] if row.entry.is_baseline else re.findall(r'bb-reason">(not ranked|below the line): ([^<]*)<', page(board))
    )
    assert [reason for _, reason in shown] == list(reasons)
    assert [how for how, _ in shown] == ["not ranked", "below the line"][: len(reasons)]


def page(board: Board) -> str:
    return generate(make_view(board, (), ()), {})["benchmarks/synthbias.md"]


def test_a_reason_of_one_of_several_prompts_names_it_and_counts_them(entries: dict[str, Entry]) -> None:
    coin = entries["acme/coin"]
    signature = coin.result.signature
    other = signed(coin, prompt="another-v1")
    assert why_all_shut([(coin, None), (other, None)]) is None
    assert why_all_shut([(coin, COIN)]) == f"{signature.config}: {COIN}"
    assert why_all_shut([(coin, None), (other, COIN)]) == (
        f"{signature.config}: {COIN} (with another-v1; 1 of 2 prompts fall short)"
    )


def test_that_an_index_ranks_is_no_reason_of_a_row() -> None:
    assert reasons_of(BY_INDEX, None) == ()
    assert reasons_of(BY_INDEX, COIN) == (COIN,)


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        (lambda entry: entry, ""),
        (
            lambda entry: replace(
                entry,
                match=Match("slice", LIMITED),
                result=replace(entry.result, command="python -m evaluators run --limit 40 --dataset d --backend hf"),
            ),
            " --limit 40",
        ),
    ],
)
def test_the_advice_on_baselines_repeats_the_conditions(
    change: Callable[[Entry], Entry], limit: str, entries: dict[str, Entry]
) -> None:
    text = page(assemble([change(entries["acme/good"])]))
    command = f"biasboard run --dataset out/datasets/synthbias --config type2{limit} --prompt intrinsic-v1 "
    command += "--backend baseline --model all"
    assert f"With synthbias 9.0.0 in out/datasets, this does it: {command}" in html.unescape(text)
    assert complaint(command) is None
    assert "this does it" not in page(assemble([entries["acme/good"], entries["baseline/uniform"]]))


def test_a_retired_version_gets_no_advice(entries: dict[str, Entry]) -> None:
    text = page(assemble([signed(entries["acme/good"], dataset_version="1.0.0")]))
    assert "No useless predictor was scored on synthbias 1.0.0, which is retired." in html.unescape(text)
