"""The list of models, and the filters by facts about them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.model_facts import facts_of
from leaderboard.pages.model_views import listed_models
from leaderboard.pages.publishing import templates
from tests.commands import REPOSITORY
from tests.leaderboard.synthetic import leaning, present, uniform, write_model
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow

MODELS = ("gpt2", "microsoft/Phi-3-mini-4k-instruct", "openai/gpt-4o-2024-08-06", "acme/small-1b")
"""Base and open, tuned and open, tuned and closed with an unknown size, and one without facts."""
SIZED = "google/gemma-2-9b"
"""A third model whose size is known."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeBoard:
    root = tmp_path_factory.mktemp("runs")
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    for strength, model_id in enumerate((*MODELS, SIZED)):
        write_model(root, model_id, leaning(1.0 + strength, 0.5))
    return MadeBoard(root)


def row_of(page: str, model_id: str) -> str:
    (row,) = (row for row in page.split("<tr ") if f'title="{model_id}"' in row)
    return row


def test_rows_and_files_hold_facts_with_sources_and_say_why_one_is_unknown(made: MadeBoard) -> None:
    page = made.texts["models/index.md"]
    row = row_of(page, "gpt2")
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
    expected = ["GPT-2", "OpenAI", "124 M", "open", "base", "Modified MIT License", "2019-02"]
    assert cells == [*expected, "Gender and occupation", "recomputed"]
    assert 'href="../benchmarks/synthbias.html"' in row
    assert 'data-open="yes" data-kind="base" data-size="124000000" data-date="2019-02"' in row
    for model_id in MODELS[:3]:
        facts = present(facts_of(model_id))
        for source in facts.sources:
            assert f'<a href="{source.address}">' in page
            assert source.looked_at in page
    assert "uniform" not in page[page.index("<table") : page.index("</table>")]
    assert "1 useless predictor, which shows what no skill gets" in page
    closed = row_of(page, "openai/gpt-4o-2024-08-06")
    assert 'data-open="no" data-kind="tuned" data-size="" data-date="2024-08-06"' in closed
    assert 'title="the maker has not published it">unknown' in closed
    assert ">service only<" in closed
    unlisted = row_of(page, "acme/small-1b")
    assert 'data-open="unknown" data-kind="unknown" data-size="" data-date=""' in unlisted
    assert unlisted.count(">unknown<") == 6
    assert "No facts yet about small-1b: add <code>leaderboard/models/acme__small-1b.toml</code>" in page
    lines = {line["model"]: line for line in made.csv("files/models.csv")}
    assert set(lines) == {*MODELS, SIZED, "baseline/uniform"}
    assert (lines["gpt2"]["parameters"], lines["gpt2"]["kind"]) == ("124000000", "base")
    assert (lines["acme/small-1b"]["parameters"], lines["acme/small-1b"]["licence"]) == ("", "")
    names = [listed.name for listed in listed_models(made.view.models)]
    assert names == sorted(names, key=str.casefold)


def test_headline_values_are_drawn_over_size_where_enough_sizes_are_known(made: MadeBoard) -> None:
    page = made.texts["models/index.md"]
    assert made.view.by_size
    for picture in made.view.by_size:
        assert f'src="../{picture.path}' in page
        named = set(re.findall(r">([^<>]+)</text>", made.texts[picture.path]))
        assert named >= {"GPT-2", "Phi-3 mini", "Gemma 2 9B"}
        assert "GPT-4o" not in named
        assert "Models whose size is known: 3 of 5." in picture.caption


def opened(page: Page, query: str = "") -> Page:
    page.goto(f"http://board.example/models{query}")
    page.add_script_tag(path=REPOSITORY / "site" / "docs" / "assets" / "filters.js")
    return page


def shown(page: Page) -> list[str]:
    return page.locator("tr:visible th").all_inner_texts()


CHOICES = {
    ("open", "yes"): ["GPT-2", "Phi-3 mini"],
    ("open", "unknown"): ["small-1b"],
    ("kind", "tuned"): ["Phi-3 mini", "GPT-4o"],
    ("kind", "unknown"): ["small-1b"],
    ("size", "1e9-1e10"): ["Phi-3 mini"],
    ("size", "1e10-"): [],
    ("size", "unknown"): ["GPT-4o", "small-1b"],
    ("date", "2024"): ["Phi-3 mini", "GPT-4o"],
    ("date", "unknown"): ["small-1b"],
    ("vouching", "reproduced"): ["GPT-2"],
}


@pytest.mark.browser
def test_each_filter_keeps_the_models_it_names_they_add_up_and_the_address_restores_them(browser: Browser) -> None:
    """Of a page with the filters and a row for each model, and a row of a useless predictor."""
    source = (
        '{% import "filters.html.j2" as f %}<div data-bb-board>{{ f.controls() }}<table data-bb-filters><tbody>'
        "{% for id, vouching in rows %}<tr {{ f.facts(id, vouching) }}><th>{{ id | display_name }}</th></tr>"
        "{% endfor %}<tr><th>uniform</th></tr></tbody></table></div>"
    )
    rows = list(zip(MODELS, ("reproduced recomputed", "recomputed", "reported", "recomputed"), strict=True))
    html = templates().from_string(source).render(rows=rows)
    page = browser.new_page()
    page.route("http://board.example/**", lambda route: route.fulfill(body=html, content_type="text/html"))
    opened(page)
    assert page.locator("[data-bb-shown]").inner_text() == "4 models"
    for (facet, value), names in CHOICES.items():
        page.locator(f"[data-bb-facet={facet}]").select_option(value)
        assert shown(page) == [*names, "uniform"], (facet, value)
        unknown = CHOICES[facet, "unknown"] if (facet, "unknown") in CHOICES and value != "unknown" else []
        left_out = f"; of {len(unknown)} it is unknown" if unknown else ""
        some = f"{len(names)} of 4" if names else "none of these 4"
        assert page.locator("[data-bb-shown]").inner_text() == f"{some} models{left_out}"
        page.get_by_text("Show all").click()
        assert len(shown(page)) == 5
    # A model that was there before a year is not unknown in it.
    page.evaluate("""document.querySelector("[data-bb-model='acme/small-1b']").dataset.dateBy = "2025-07-15" """)
    for year, unknown_in in {"2026": "", "2025": "; of 1 it is unknown"}.items():
        page.locator("[data-bb-facet=date]").select_option(year)
        assert page.locator("[data-bb-shown]").inner_text() == f"none of these 4 models{unknown_in}"
    opened(page)
    page.locator("[data-bb-facet=kind]").select_option("tuned")
    page.locator("[data-bb-facet=find]").fill("phi")
    assert shown(page) == ["Phi-3 mini", "uniform"]
    address = page.url
    assert address.endswith("/models?find=phi&kind=tuned")
    opened(page, "?find=phi&kind=tuned&open=nonsense")
    assert shown(page) == ["Phi-3 mini", "uniform"]
    assert page.locator("[data-bb-facet=kind]").input_value() == "tuned"
    assert page.url == address
