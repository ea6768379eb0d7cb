"""The page of a model opens with sentences that follow from its headline measures and ranks."""

from __future__ import annotations

import pytest

from leaderboard.pages.portraits import Portrait, facts_sentence, portraits
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow


def portrait(models: MadeBoard, model: str, title: str) -> Portrait:
    found = portraits(models.board, (*models.view.indices, *models.view.sections))[model]
    return next(one for one in found if one.pages.heading == title)


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
