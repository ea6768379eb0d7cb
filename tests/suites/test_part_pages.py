"""The pages about the parts of a suite: what they say, choosing and sorting, and names that strangers chose."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page

from evaluators.task import PartReport
from leaderboard.pages.suites import PartOfResult, PartValue, SuiteView
from tests.leaderboard.browsing import Opened, Visit, serious_violations, served, settle, visit
from tests.leaderboard.synthetic import leaning, write_model
from tests.record_files import read_records
from tests.suites.commands import SIZES, ask, board, chosen, copied, run_of, told
from tests.worlds import MadeBoard, render

pytestmark = pytest.mark.slow

PARTS = [f"wood{number:03}" for number in range(6)]
ACTS = '<img src=x onerror="window.taken=1"></pre></td></script><script>window.taken=1</script>'
HOSTILE = f"evil/{ACTS} **b** [l](javascript:window.taken=1) {{{{ 7*7 }}}}"
TURNED = "evil/\u202egnp.\u2066exe\u200b"


def folder_of(built: Path) -> Path:
    return built / "files" / "parts" / "labels-1.0.0-woods"


def context_of(built: Path, prompt: str) -> Any:
    index = told(folder_of(built) / "index.json")
    (found,) = [one for one in index["contexts"] if one["title"] == prompt]
    return found


def result_of(built: Path, part: str, model: str, prompt: str = "plain-v1") -> Any:
    context = context_of(built, prompt)
    (name,) = [one["id"] for one in context["results"] if one["model"] == model]
    return told(folder_of(built) / f"{part}.json")["contexts"][context["id"]]["results"][name]


def test_a_part_has_the_values_and_intervals_of_a_run_on_it_alone_and_labels_of_the_records(
    built: Path, runs: Path
) -> None:
    alone = {one["name"]: one for one in told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")["metrics"]}
    names = context_of(built, "plain-v1")["metrics"]
    found = dict(zip(names, result_of(built, "wood001", "lab/first-0.8")["values"], strict=True))
    assert set(found) == {"accuracy", "confidence"}
    for name, (value, low, high, reason, floor) in found.items():
        expected = alone[name]
        assert value == pytest.approx(expected["value"], abs=1e-5)
        assert [low, high] == pytest.approx([expected["interval"]["low"], expected["interval"]["high"]], abs=1e-5)
        assert (reason, floor) == (None, None)
    # Labels are those of the records.
    records = read_records(run_of(runs, "lab/second-0.8") / "records.parquet")
    context = context_of(built, "plain-v1")
    for part in PARTS:
        own = [one for one in records if one.config == part and one.split == "test"]
        right, said = Counter(one.target for one in own), Counter(map(chosen, own))
        file = told(folder_of(built) / f"{part}.json")["contexts"][context["id"]]
        names, supports = file["labels"]
        assert dict(zip(names, supports, strict=True)) == right
        result = result_of(built, part, "lab/second-0.8")
        assert result["shares"] == pytest.approx([said[name] / len(own) for name in names], abs=1e-5)
        assert result["priors"] == [None] * len(names)
        assert result["why_none"] == [None, "no prior is measured"]
        assert file["n_items"] == {"test": len(own), "bias": 32, "pool": 64, "content_free": 23}


def table_of(built: Path, prompt: str) -> list[Any]:
    (path,) = (built / "files").glob(f"parts-labels-woods-{prompt}-*.parquet")
    return list(pq.read_table(path).to_pylist())


def test_the_table_of_parts_has_mean_and_range_of_the_ranked_models_without_a_lost_part(
    built: Path, runs: Path
) -> None:
    rows = table_of(built, "plain-v1")
    assert [row["part"] for row in rows] == PARTS
    assert [row["n_items"] for row in rows] == list(SIZES)
    assert [row["n_labels"] for row in rows] == [2, 3, 4, 5, 2, 3]
    shares: dict[str, list[float]] = {part: [] for part in PARTS}
    for model in ("lab/first-0.8", "lab/second-0.8"):
        records = read_records(run_of(runs, model) / "records.parquet")
        for part in PARTS:
            own = [one for one in records if one.config == part and one.split == "test"]
            shares[part].append(sum(chosen(one) == one.target for one in own) / len(own))
    for row in rows:
        values = shares[row["part"]]
        assert row["accuracy"] == pytest.approx(sum(values) / 2, abs=1e-12)
        assert [row["accuracy_low"], row["accuracy_high"]] == pytest.approx([min(values), max(values)], abs=1e-12)
        assert row["accuracy_n_models"] == 2
    # A lost part is unknown with the reason.
    result = result_of(built, "wood003", "lab/lost-0.8", "shown-v1")
    assert [value[:4] for value in result["values"]] == [[None, None, None, "no items to compute it from"]] * 2
    assert result["why_none"][0] == "nothing was answered"
    assert result["n_missing"] == {"test": 20, "bias": 32, "pool": 64, "content_free": 23}
    assert result_of(built, "wood002", "lab/lost-0.8", "shown-v1")["n_missing"] == {}
    row = next(row for row in table_of(built, "shown-v1") if row["part"] == "wood003")
    assert row["accuracy_n_models"] == 1


def test_an_instruction_is_shown_where_the_dataset_may_be_and_only_there(
    built: Path, dataset: Path, tmp_path: Path
) -> None:
    file = told(folder_of(built) / "wood000.json")
    assert file["text"] == "Say which kind of wood the text of wood000 is about: ash, birch."
    assert file["why_no_text"] is None
    assert file["sources"] == [["builder", "builders/labels"]]
    closed = copied(dataset, tmp_path / "closed" / "labels")
    manifest = told(closed / "dataset.json")
    manifest |= {"redistributable": False, "publish_refusal": "texts of others; ask them"}
    (closed / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")
    ask(closed, tmp_path / "runs")
    board(tmp_path / "runs", dataset=closed, out=tmp_path)
    hidden = told(folder_of(tmp_path / "built") / "wood000.json")
    assert (hidden["text"], hidden["why_no_text"]) == (None, "texts of others")
    everything = [path for path in (tmp_path / "built").rglob("*") if path.suffix in (".html", ".json")]
    assert not [path for path in everything if "Say which kind of wood" in path.read_text(encoding="utf-8")]


def suite_of(built: Path, prompt: str = "plain-v1") -> str:
    (path,) = (built / "suites").glob(f"labels-woods-{prompt}-*.html")
    return f"suites/{path.name}"


def settled(page: Page) -> Page:
    """The page of a part when its files are loaded."""
    settle(page)
    page.wait_for_function("""(document.querySelector(".bb-part form")?.elements.part.value ?? "") !== "" """)
    return page


def names(page: Page) -> list[str]:
    return page.locator(".bb-table tbody tr:visible th").all_inner_texts()


def sort_by(page: Page, heading: str) -> None:
    page.locator("thead th", has_text=heading).locator("button").click()
    page.wait_for_function("document.querySelector('.bb-later') === null")


@pytest.mark.browser
def test_parts_are_filtered_and_sorted(built: Path, opened: Opened) -> None:
    page = opened(suite_of(built))
    assert names(page) == PARTS
    page.get_by_label("Filter rows").fill("wood003")
    assert names(page) == ["wood003"]
    assert page.locator("[data-bb-count]").inner_text() == "1 of 6 rows"
    page.get_by_label("Filter rows").fill("")
    sort_by(page, "Accuracy")
    values = [float(text) for text in page.locator("tbody td:nth-child(2) .bb-value").all_inner_texts()]
    assert values == sorted(values)
    sort_by(page, "Items")
    sort_by(page, "Items")
    sizes = dict(zip(PARTS, SIZES, strict=True))
    assert [sizes[name] for name in names(page)] == sorted(SIZES, reverse=True)


@pytest.mark.browser
def test_a_row_leads_to_its_part_under_the_same_prompt(built: Path, opened: Opened) -> None:
    page = opened(suite_of(built, "shown-v1"))
    page.get_by_role("link", name="wood004").click()
    settled(page)
    assert page.locator("h2").inner_text().strip() == "wood004"
    assert page.get_by_label("Prompt").evaluate("one => one.selectedOptions[0].text") == "shown-v1"
    assert page.locator("[data-bb-status]").inner_text() == f"Part 5 of {len(PARTS)}, 2 results"
    page.get_by_role("link", name="all parts under this prompt").click()
    page.wait_for_load_state("networkidle")
    assert page.url.endswith(suite_of(built, "shown-v1"))


@pytest.mark.browser
def test_values_and_labels_are_those_of_the_file(built: Path, opened: Opened) -> None:
    page = settled(opened("part.html#part=wood003"))
    context = context_of(built, "plain-v1")
    file = told(folder_of(built) / "wood003.json")["contexts"][context["id"]]
    rows = {row.locator("th a").inner_text(): row for row in page.locator("[data-bb-values] tbody tr").all()}
    assert list(rows) == ["lab/first-0.8", "lab/second-0.8", "lab/worst-0.1", "baseline/drawn", "baseline/uniform"]
    for result in context["results"]:
        own = file["results"][result["id"]]
        shown = rows[result["model"]].locator(".bb-value").all_inner_texts()
        assert shown == [f"{value[0]:.3f}" for value in own["values"]]
        labels = page.get_by_role("region", name=f"Labels by {result['model']}")
        assert labels.locator("tbody th").all_inner_texts() == file["labels"][0]
        chosen = labels.locator("tbody td:nth-child(3)")
        assert [text.strip() for text in chosen.all_inner_texts()] == [f"{share:.3f}" for share in own["shares"]]
        bars = chosen.locator(".bb-bar-fill")
        widths = bars.evaluate_all("all => all.map((one) => Number(one.getAttribute('width')))")
        assert widths == pytest.approx([90 * share for share in own["shares"]], abs=0.06)
        assert labels.locator("tbody td:nth-child(4)").all_inner_texts() == ["unknown"] * len(file["labels"][0])
        assert "Unknown: no prior is measured" in labels.locator("caption").inner_text()
    assert "Say which kind of wood the text of wood003 is about" in page.locator("[data-bb-facts]").inner_text()


@pytest.mark.browser
def test_readers_step_from_part_to_part_and_see_all_prompts(opened: Opened) -> None:
    page = settled(opened("part.html"))

    def shows(part: str) -> None:
        page.wait_for_function("part => document.querySelector('.bb-part h2').textContent === part", arg=part)

    assert page.get_by_role("button", name="Previous part").is_disabled()
    page.get_by_role("button", name="Next part").click()
    shows("wood001")
    page.go_back()
    shows("wood000")
    page.locator("select[name=part]").select_option(label=f"wood{len(PARTS) - 1:03}")
    settled(page)
    assert page.get_by_role("button", name="Next part").is_disabled()
    page.get_by_label("Prompt").select_option(value="all")
    page.wait_for_function("document.querySelectorAll('[data-bb-values] tbody tr').length === 8")
    told = [row.split("\t")[:2] for row in page.locator("[data-bb-values] tbody tr").all_inner_texts()]
    plain = [(model, "plain-v1") for model in ("lab/second-0.8", "lab/worst-0.1", "baseline/drawn", "baseline/uniform")]
    first = [("lab/first-0.8", prompt) for prompt in ("plain-v1", "shown-v1", "shown-other-v1")]
    shown = [(name.split("\n")[0], prompt) for name, prompt in told]
    assert sorted(shown) == sorted([*plain, *first, ("lab/lost-0.8", "shown-v1")])


@pytest.mark.browser
def test_everybody_can_read_the_pages(built: Path, opened: Opened) -> None:
    for path in (suite_of(built), "part.html#part=wood002"):
        page = opened(path, scheme="dark", width=390)
        assert serious_violations(page) == [], path
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390, path


def assert_inert(found: Visit, address: str, *allowed: str) -> str:
    """Check that nothing of an article acts, and return its text."""
    page = found.page
    told = page.locator("article").inner_text()
    assert not re.search("[\u200b\u202e\u2066]", told)
    assert page.evaluate("window.taken ?? null") is None
    assert page.locator("article img, article td b, article td strong").count() == 0
    links = page.evaluate("[...document.querySelectorAll('article a')].map((one) => one.href)")
    assert [one for one in links if not one.startswith(address)] == [*allowed]
    found.check(address)
    page.context.close()
    return told


@pytest.mark.browser
def test_nothing_that_a_file_says_acts(built: Path, browser: Browser, tmp_path: Path) -> None:
    site = copied(built, tmp_path / "site")
    for path in folder_of(site).glob("*.json"):
        path.write_text(json.dumps(hostile(told(path))), encoding="utf-8")
    with served(site) as address:
        for choice in ("", "#context=all"):
            found = visit(browser, f"{address}part.html{choice}")
            settled(found.page)
            shown = assert_inert(found, address, "https://made.test/a")
            assert ACTS.split("<")[1] in shown
            assert r"evil/\u202egnp.\u2066exe\u200b" in shown


@pytest.mark.browser
def test_the_table_of_parts_bears_any_name(browser: Browser, tmp_path: Path) -> None:
    write_model(tmp_path / "runs", HOSTILE, leaning(1.0, 0.5))
    view = MadeBoard(tmp_path / "runs", any_name=True).view
    (section,) = view.sections
    text = f"{HOSTILE} {TURNED}\n\n<b>"
    names = (f"{text} 0", f"{text} 1")
    (signature,) = section.table.signatures
    table = replace(section.table, signatures=(replace(signature, parts=names),))
    report = PartReport({text: text}, (), True, None, None)
    values = (PartValue(0.5, 0.25, 0.75, None), PartValue(None, None, None, text))
    parts = {
        name: PartOfResult(name, {column.metric: value for column in section.columns}, report)
        for name, value in zip(names, values, strict=True)
    }
    row = section.table.rows[0]
    suite = SuiteView(section=replace(section, table=table), metrics=("ucerf",), results=((row, parts), (row, text)))
    with served(render(replace(view, suites=(suite,)), tmp_path)) as address:
        found = visit(browser, address + suite.page)
        assert found.page.locator("tbody tr").count() == 2
        # In the sentence above the table, beside what is left out, and in each row as name, fact and reason.
        assert assert_inert(found, address).count("<script>window.taken=1</script>") >= 6


FIELDS = ("text", "part", "model", "detail", "why_no_text", "heading", "title", "dataset")


def hostile(value: Any, name: str = "") -> Any:
    """What a file says, with every text that may come from outside replaced by one that would act."""
    if isinstance(value, dict):
        return {key: hostile(one, key) for key, one in value.items()}
    if name == "labels" and isinstance(value, list):
        return [[f"{ACTS}{one}" for one in value[0]], value[1]]
    if name == "sources":
        return [[ACTS, "javascript:window.taken=1"], [TURNED, ACTS], ["made", f"https://made.test/a, {ACTS}"]]
    if name == "parts":
        return [[f"{ACTS}{part}", path] for part, path in value]
    if isinstance(value, list):
        return [hostile(one, name) for one in value]
    return f"{ACTS} {TURNED} {value}" if isinstance(value, str) and name in FIELDS else value
