"""The page of a model opens with sentences that follow from its headline measures and ranks."""

from __future__ import annotations

import pytest

from leaderboard.pages.portraits import Portrait, facts_sentence, portraits
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow


def portrait(models: MadeBoard, model: str, title: str) -> Portrait:
    found = portraits(models.board, (*models.view.indices, *models.view.sections))[model]
    return next(one for one in found if one.pages.heading == title)


def test_sentences_say_the_rank_the_share_and_the_worst_group(models: MadeBoard) -> None:
    (table,) = [one for one in models.board.tables if one.signature.config == "type2"]
    rows = {row.model.id: row for row in table.rows}
    best = rows["acme/even"].rank
    assert best is not None
    assert best.best == 1
    assert rows["acme/stereotyped"].rank is None
    even = portrait(models, "acme/even", "Gender and occupation").sentences
    n_tied = best.worst
    place = (
        "1st" if n_tied == 1 else f"between 1st and {n_tied}{'nd' if n_tied == 2 else 'rd' if n_tied == 3 else 'th'}"
    )
    assert even[0] == f"On gender and occupation, even is {place} of the {best.n_ranked} models that can be ranked."
    n_worse = best.n_ranked - n_tied
    assert even[1] == f"It is separably better than {n_worse} of them and separably worse than none."
    values = {
        name: metric.value
        for name, row in rows.items()
        if (metric := row.entry.metric("worst_group_accuracy")) is not None and metric.value is not None
    }
    other = max(value for name, value in values.items() if name not in ("acme/even", "baseline/uniform"))
    for words, value in (("Worst-group accuracy: ", values["acme/even"]), ("", other)):
        assert f"{words}{value:.0%}".replace("%", "\N{NO-BREAK SPACE}%") in even[2]
    assert even[2].endswith("a useless predictor 50\N{NO-BREAK SPACE}%).")
    unranked = portrait(models, "acme/stereotyped", "Gender and occupation").sentences
    assert unranked[0].startswith("On gender and occupation, stereotyped has no rank: ")
    assert not any(character.isdigit() for character in unranked[0]), "numbers that explain it stand in the table"


def test_a_measure_stands_between_the_best_other_model_and_a_useless_predictor(models: MadeBoard) -> None:
    first = portrait(models, "acme/biased", "Gender and occupation").measures[0]
    assert first.column.headline.name == "worst_group_accuracy"
    assert first.best is not None
    assert first.useless is not None
    assert first.useless.name == "uniform"
    values = {one.model.id: first.column.metrics[name].value for name, one in first.column.rows.items()}
    others = {name: value for name, value in values.items() if name.startswith("acme/") and name != "acme/biased"}
    assert first.best.metric.value == max(value for value in others.values() if value is not None)
    assert f"acme/{first.best.name}" == min(name for name in others if others[name] == first.best.metric.value)
    assert first.page in {placement.page for model in models.view.models for placement in model.placements}
    # No baseline has a row there, so that its value is known in the metric of the gate only.
    pronouns = portrait(models, "acme/even", "Pronoun families").measures
    assert [one.column.headline.name for one in pronouns if one.useless is not None] == ["recognition_accuracy"]


def test_every_result_of_a_model_is_listed_with_its_page(models: MadeBoard) -> None:
    page = models.texts["models/acme__even.md"]
    (model,) = [one for one in models.view.models if one.id == "acme/even"]
    for placement in model.placements:
        assert f'<li id="{placement.anchor}"><a href="../{placement.page}">' in page
        assert placement.page.removesuffix(".html") + ".md" in models.texts
    for of_benchmark in portraits(models.board, (*models.view.indices, *models.view.sections))["acme/even"]:
        assert f">{of_benchmark.pages.heading}</a>: {of_benchmark.placing}</span></th>" in page
    assert "## Gender and occupation" in page
    assert not [line for line in page.splitlines() if line.startswith("#") and ("1.0" in line or "-v1" in line)]


def test_facts_of_a_model_make_a_sentence() -> None:
    assert facts_sentence("gpt2") == (
        "GPT-2 is a base model by OpenAI with 124 M parameters, open weights, licence Modified MIT License, "
        "released 2019-02."
    )
    assert facts_sentence("nobody/knows") == ""
