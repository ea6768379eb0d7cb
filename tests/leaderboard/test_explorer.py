"""The explorer: its files say what the records say, and its page finds, compares and pages without a server's help."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.compare import answers_link
from leaderboard.verify.entries import KINDS
from schemas.lexicon import pronoun_families
from tests.leaderboard.browsing import Opened, choose, serious_violations, settle
from tests.leaderboard.forging import Places
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.synthetic import leaning, write_model
from tests.record_files import read_records
from tests.worlds import MadeBoard, render

CONTINUATION = load_pages("gifi").config_words("continuation")
HOSTILE = "</pre><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"> {{ x }} \u202e"


def rows(files: dict[str, Any], stem: str) -> list[dict[str, Any]]:
    parts = sorted((path for path in files if path.startswith(stem)), key=lambda path: int(path[len(stem) : -5]))
    return [dict(zip(files[path]["columns"], row, strict=True)) for path in parts for row in files[path]["rows"]]


def subject(item: Any) -> list[str]:
    return [f"and {pronoun_families()[item.family].forms['nominative']} left."]


def smiling(item: Any) -> list[str]:
    return [f"\U0001f642 {text}" for text in subject(item)]


def one_family(item: Any) -> list[str]:
    return [f"and they left. {HOSTILE}"] if item.family != "she" else ["I'm sorry, but I cannot do that."]


@pytest.mark.slow
def test_files_say_what_the_records_say(tmp_path: Path) -> None:
    folder = write_gifi_model(tmp_path, "lab/one", 0.5, tasks=("recognition",), told=one_family)["recognition"]
    write_gifi_model(tmp_path, "lab/two", 0.5, tasks=("recognition",), told=smiling)
    made = MadeBoard(tmp_path)
    files = made.json("files/explorer/")
    (table,) = files["tables.json"]["tables"]
    records = list(read_records(folder / "records.parquet"))
    assert table["n"] == len(records)
    index, shown = files[f"{table['id']}/index.json"], rows(files, f"{table['id']}/items-")
    assert [row["item"] for row in shown] == [record.item_id for record in records]
    assert [row["prompts"] for row in shown] == [[record.exchanges[0].prompt] for record in records]
    for group in index["groups"]:
        told = [group["values"][code] if code >= 0 else None for code in group["codes"]]
        assert told == [record.groups.get(group["key"]) for record in records]
    assert {group["key"] for group in index["groups"]} >= {"family"}
    ids = {one["key"]: one["id"] for one in files["tables.json"]["models"]}
    found = {ids[result["model"]]: f"{table['id']}/{result['id']}" for result in table["results"]}
    answers = rows(files, f"{found['lab/one']}/answers-")
    assert [row["texts"] for row in answers] == [[record.exchanges[0].text] for record in records]
    assert [row["reason"] for row in answers] == [record.reason for record in records]
    # Scripts count a smiley as two characters.
    assert {json.dumps(row["marks"]) for row in answers} == {"[[[4, 8]]]", "[]"}
    assert [row["marks"] for row in answers].count([]) == sum(record.reading is None for record in records)
    # A value leads to the answers behind it.
    chosen = dict(parse_qsl(answers_link(made.of("lab/one")[0], {"family": "xe"}).removeprefix("answers.html#")))
    assert (chosen["table"], ids[chosen["model"]], chosen["group.family"]) == (table["id"], "lab/one", "xe")
    others = rows(files, f"{found['lab/two']}/answers-")
    assert {row["marks"][0][0][0] for row in others} == {7}
    kinds = Counter(
        files["tables.json"]["kinds"][int(kind)] for kind in files[f"{found['lab/one']}/index.json"]["kinds"]
    )
    n_they, n_she = (sum(record.groups["family"] == name for record in records) for name in ("they", "she"))
    assert kinds == {"right": n_they, "refused": n_she, "wrong": len(records) - n_they - n_she}
    assert [result["n_wrong"] for result in table["results"]] == [kinds["wrong"], 0]
    assert index["n_models"] == 2
    # The second model is never wrong, so that a count says what the first one missed.
    assert index["n_wrong"] == [int(record.groups["family"] not in ("they", "she")) for record in records]


@pytest.mark.slow
def test_log_probabilities_are_those_of_the_options(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "run")
    files = MadeBoard(tmp_path).json("files/explorer/")
    (table,) = files["tables.json"]["tables"]
    records = list(read_records(places.honest / "records.parquet"))
    shown = rows(files, f"{table['id']}/items-")
    result = f"{table['id']}/{table['results'][0]['id']}"
    answers = rows(files, f"{result}/answers-")
    assert [row["options"] for row in shown] == [[list(one.options) for one in record.exchanges] for record in records]
    for row, record in zip(answers, records, strict=True):
        (logprobs,) = row["logprobs"]
        assert logprobs == pytest.approx(record.exchanges[0].option_logprobs, abs=1e-3)
        assert record.reading is not None
        assert row["reading"][0] == list(record.reading.outcomes)
    right = sum(
        kind == str(KINDS.index("right"))
        for kind in files[f"{table['id']}/{table['results'][0]['id']}/index.json"]["kinds"]
    )
    assert 0 < right < len(records)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explorer")
    for name, told in (("lab/one", one_family), ("lab/two", subject)):
        write_gifi_model(root / "runs", name, 0.5, tasks=("recognition", "continuation"), told=told)
    write_model(root / "runs", "acme/unseen", leaning(1.0, 1.0))
    return render(MadeBoard(root / "runs").view, root)


def said(page: Page) -> str:
    return page.locator("[data-bb-status]").inner_text()


def recognition(opened: Opened, **options: Any) -> Page:
    """The page, which opens with a model whose answers are shown, and a table in which some are wrong."""
    page = opened("answers.html", **options)
    page.wait_for_selector(".bb-found > li")
    settle(page)
    assert page.locator("select[name=model] option:checked").inner_text() == "one"
    assert page.locator("select[name=model] option").last.inner_text() == "unseen, answers not shown"
    table = page.locator("select[name=table] option:checked").inner_text()
    assert table.endswith(load_pages("gifi").config_words("recognition"))
    return page


@pytest.mark.browser
@pytest.mark.slow
class TestPage:
    def test_wrong_answers_come_first_from_the_worst_group_or_one_at_random(self, opened: Opened) -> None:
        page = recognition(opened)
        assert said(page).endswith("answers, worst group first")
        assert page.locator(".bb-found .bb-kind-wrong").count() == page.locator(".bb-found > li").count() > 0
        # The pronoun that was read is marked in the text.
        assert page.locator(".bb-found mark").all_inner_texts() == ["they"] * page.locator(".bb-found > li").count()
        page.locator("[data-bb-by]").select_option("family")
        page.wait_for_function("location.hash.includes('by=family')")
        settle(page)
        bars = page.locator(".bb-worst > li").all_inner_texts()
        # Wrong are all families but they, which the model always says, and she, of whom it says nothing.
        assert [line.split()[1:3] for line in bars] == [["100", "%"]] * 9 + [["0", "%"]] * 2
        assert {line.split()[0] for line in bars[9:]} == {"they", "she"}
        page.locator(".bb-worst").get_by_role("button", name="xe", exact=True).click()
        page.wait_for_function("location.hash.includes('group.family=xe')")
        settle(page)
        assert "family: xe" in page.locator(".bb-found > li").first.inner_text()
        assert page.locator("select[name='group.family']").input_value() == "xe"
        page.get_by_role("button", name="Show one wrong answer at random").click()
        page.wait_for_function("location.hash.includes('item=')")
        settle(page)
        assert page.locator(".bb-found > li").count() == 1
        assert "wrong: they" in page.locator(".bb-found").inner_text()
        assert page.get_by_role("button", name="Show another").is_enabled()

    def test_an_address_brings_back_what_filters_left_and_texts_are_searched_and_paged(self, opened: Opened) -> None:
        page = recognition(opened)
        n_wrong = int(said(page).split()[0])
        choose(page, "Answer", "any")
        assert 0 < n_wrong < int(said(page).split()[0])
        choose(page, "Pronoun family", "xe")
        n_xe = int(said(page).split()[0])
        assert 0 < n_xe < n_wrong
        assert page.locator(".bb-found > li").count() == min(n_xe, 20)
        again = opened(page.url.split("/")[-1])
        again.wait_for_selector(".bb-found > li")
        settle(again)
        assert said(again) == said(page)
        assert again.locator(".bb-found").inner_text() == page.locator(".bb-found").inner_text()
        again.locator(".bb-explorer").get_by_role("button", name="Clear").click()
        again.wait_for_function(
            "n => document.querySelector('[data-bb-status]').textContent.startsWith(n)", arg=f"{n_wrong} wrong"
        )
        page = recognition(opened)
        choose(page, "Answer", "any")
        assert "Page 1 of" in page.locator(".bb-pager").inner_text()
        first = page.locator(".bb-found code").first.inner_text()
        page.get_by_role("button", name="Next").click()
        page.wait_for_function("first => document.querySelector('.bb-found code').textContent !== first", arg=first)
        assert page.locator(".bb-found").get_attribute("start") == "21"
        page.get_by_role("searchbox", name="Text", exact=True).fill("CANNOT DO THAT")
        page.wait_for_function("location.hash.includes('q=')")
        settle(page)
        assert "refused" in page.locator(".bb-found > li").first.inner_text()
        n_she = sum(
            line.startswith("pronoun family: she") for line in page.locator(".bb-found").inner_text().splitlines()
        )
        assert n_she == page.locator(".bb-found > li").count() == min(20, int(said(page).split()[0]))

    def test_texts_that_may_offend_stay_folded_and_do_nothing(self, opened: Opened) -> None:
        page = recognition(opened)
        titles = page.get_by_role("combobox", name="Table").locator("option").all_inner_texts()
        choose(page, "Table", next(title for title in titles if CONTINUATION in title))
        assert page.locator("[data-bb-warning]").is_visible()
        assert page.locator(".bb-found details").count() > 0
        assert page.locator(".bb-found details[open]").count() == 0
        assert page.locator(".bb-found pre:visible").count() == 0
        for summary in page.locator(".bb-found summary").all()[:6]:
            summary.click()
        assert HOSTILE.split()[0] in page.locator(".bb-found").inner_text()
        assert page.locator(".bb-found :is(script, img)").count() == 0
        assert page.title().startswith("Answers")

    def test_it_fits_a_phone_passes_axe_and_needs_no_mouse(self, opened: Opened) -> None:
        page = recognition(opened, scheme="dark", width=390)
        choose(page, "Beside it", "two")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
        assert serious_violations(page) == []
        # The keyboard alone chooses and pages.
        page.get_by_role("combobox", name="Answer").focus()
        page.keyboard.press("a")
        page.wait_for_function("location.hash.includes('kind=any')")
        assert page.evaluate("document.activeElement.name") == "kind"
        settle(page)
        page.get_by_role("button", name="Next").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("location.hash.includes('page=2')")

    def test_a_result_without_texts_is_not_explored_and_says_why(self, opened: Opened) -> None:
        page = recognition(opened)
        page.locator("select[name=model]").select_option(label="unseen, answers not shown")
        page.wait_for_selector("[data-bb-absent] a")
        assert "not shown: the records hold hashes" in page.locator("[data-bb-absent]").inner_text()
        assert page.get_by_role("combobox", name="Answer").count() == 0
        page.locator("[data-bb-absent] a").click()
        page.wait_for_url("**/models/**")

    def test_a_page_from_disk_says_why_it_is_empty(self, browser: Browser, built: Path) -> None:
        page = browser.new_page()
        page.goto(f"file://{built}/answers.html")
        page.wait_for_function("document.querySelector('[data-bb-status]').textContent.includes('biasboard serve')")
        assert page.locator(".bb-found > li").count() == 0
        page.close()
