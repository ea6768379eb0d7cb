"""The page of a model opens with sentences that follow from its headline measures and ranks."""

from __future__ import annotations

import pytest

from leaderboard.pages.portraits import Portrait, facts_sentence, portraits
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, stereotyped, uniform, write_model


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    root = tmp_path_factory.mktemp("portraits")
    for name, answers in (("even", leaning(3.0, 0.1)), ("biased", leaning(0.2, 0.1)), ("worse", leaning(1.0, 1.6))):
        write_model(root, f"acme/{name}", answers)
    write_model(root, "acme/stereotyped", stereotyped(1.0))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_gifi_model(root, "acme/even", 0.5, n_templates=8)
    return make_view(assemble(load_known(Root(root, "local")).entries), (), ())


def portrait(view: View, model: str, title: str) -> Portrait:
    found = portraits(view.board, (*view.indices, *view.sections))[model]
    return next(one for one in found if one.pages.heading == title)


@pytest.mark.slow
def test_sentences_say_the_rank_the_share_and_the_worst_group(view: View) -> None:
    (table,) = [one for one in view.board.tables if one.signature.benchmark == "synthbias"]
    ranks = {row.entry.result.model.id: row.rank for row in table.rows}
    best, worst = ranks["acme/even"], ranks["acme/stereotyped"]
    assert best is not None
    assert best.best == best.worst == 1
    assert worst is None
    even = portrait(view, "acme/even", "Gender and occupation").sentences
    assert even[0] == f"On gender and occupation, even is 1st of the {best.n_ranked} models that can be ranked."
    n_worse = best.n_ranked - 1
    assert even[1] == f"It is separably better than {n_worse} of them and separably worse than none."
    share = table.rows[0].entry.metric("worst_group_accuracy")
    assert share is not None
    other = max(
        row.entry.metric("worst_group_accuracy").value or 0.0  # type: ignore[union-attr]
        for row in table.rows
        if row.entry.result.model.id in ("acme/biased", "acme/worse", "acme/stereotyped")
    )
    assert f"Worst-group accuracy: {share.value:.0%}".replace("%", "\N{NO-BREAK SPACE}%") in even[2]
    assert f"{other:.0%}".replace("%", "\N{NO-BREAK SPACE}%") in even[2]
    assert even[2].endswith("a useless predictor 50\N{NO-BREAK SPACE}%).")
    unranked = portrait(view, "acme/stereotyped", "Gender and occupation").sentences
    assert unranked[0].startswith("On gender and occupation, stereotyped has no rank: ")
    assert not any(character.isdigit() for character in unranked[0]), "numbers that explain it stand in the table"


@pytest.mark.slow
def test_a_measure_stands_between_the_best_other_model_and_a_useless_predictor(view: View) -> None:
    first = portrait(view, "acme/biased", "Gender and occupation").measures[0]
    assert first.column.headline.name == "worst_group_accuracy"
    assert first.best is not None
    assert first.useless is not None
    assert (first.best.name, first.useless.name) == ("even", "uniform")
    assert first.page in {placement.page for model in view.models for placement in model.placements}
    alone = portrait(view, "acme/even", "Pronoun families").measures
    assert [one.best for one in alone] == [None] * len(alone)
    # No baseline has a row there, so that its value is known in the metric of the gate only.
    assert [one.column.headline.name for one in alone if one.useless is not None] == ["recognition_accuracy"]


@pytest.mark.slow
def test_every_result_of_a_model_is_listed_with_its_page(view: View) -> None:
    texts = generate(view, {})
    page = texts["models/acme__even.md"]
    (model,) = [one for one in view.models if one.id == "acme/even"]
    for placement in model.placements:
        assert f'<li id="{placement.anchor}"><a href="../{placement.page}">' in page
        assert placement.page.removesuffix(".html") + ".md" in texts
    for of_benchmark in portraits(view.board, (*view.indices, *view.sections))["acme/even"]:
        assert f">{of_benchmark.pages.heading}</a>: {of_benchmark.placing}</span></th>" in page
    assert "## Gender and occupation" in page
    assert not [line for line in page.splitlines() if line.startswith("#") and ("1.0" in line or "-v1" in line)]


@pytest.mark.slow
def test_useless_predictors_share_a_page_that_says_what_they_do(view: View) -> None:
    texts = generate(view, {})
    page = texts["useless-predictors.md"]
    assert "the same probability for every option" in page
    assert 'data-sort="0.5"' in page
    assert not [path for path in texts if path.startswith("models/baseline")]


def test_facts_of_a_model_make_a_sentence() -> None:
    assert facts_sentence("gpt2") == (
        "GPT-2 is a base model by OpenAI with 124 M parameters, open weights, licence Modified MIT License, "
        "released 2019-02."
    )
    assert facts_sentence("nobody/knows") == ""
