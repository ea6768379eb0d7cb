"""The pages of a suite of many parts in a browser: choosing, filtering and sorting, and names that strangers chose."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from evaluators.task_abilities import PartReport
from leaderboard.pages.suites import PartOfResult, PartValue, SuiteView
from tests.leaderboard.browsing import Opened, Scheme, Visit, serious_violations, served, settle, visit, visit_all
from tests.leaderboard.synthetic import leaning, write_model
from tests.suites.commands import ask, board, copied, made, run
from tests.worlds import MadeBoard, render

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N_PARTS = 24
ACTS = '<img src=x onerror="window.taken=1"></pre></td></script><script>window.taken=1</script>'
HOSTILE = f"evil/{ACTS} **b** [l](javascript:window.taken=1) {{{{ 7*7 }}}}"
TURNED = "evil/\u202egnp.\u2066exe\u200b"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of two models and a baseline on a suite, under two prompts."""
    root = tmp_path_factory.mktemp("parts")
    dataset = made(root / "data" / "labels", *(4 + number for number in range(N_PARTS)))
    runs = root / "runs"
    for model in ("lab/first-0.9", "lab/second-0.5"):
        ask(dataset, runs, "--prompt", "plain-v1", "--prompt", "shown-v1", model=model)
    asked = ("--dataset", dataset, "--out", runs, "--backend", "baseline", "--model", "uniform")
    run("-m", "evaluators", "run", *asked)
    board(runs, dataset=dataset, out=root)
    return root / "built"


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


def test_parts_are_filtered_and_sorted(built: Path, opened: Opened) -> None:
    page = opened(suite_of(built))
    in_order = [f"wood{number:03}" for number in range(N_PARTS)]
    assert names(page) == in_order
    page.get_by_label("Filter rows").fill("wood01")
    assert names(page) == in_order[10:20]
    assert page.locator("[data-bb-count]").inner_text() == f"10 of {N_PARTS} rows"
    page.get_by_label("Filter rows").fill("")
    sort_by(page, "Items")
    sort_by(page, "Items")
    assert names(page) == in_order[::-1]
    sort_by(page, "Accuracy")
    values = [float(text) for text in page.locator("tbody td:nth-child(2) .bb-value").all_inner_texts()]
    assert values == sorted(values)


def test_a_row_leads_to_its_part_under_the_same_prompt(built: Path, opened: Opened) -> None:
    page = opened(suite_of(built, "shown-v1"))
    page.get_by_role("link", name="wood007").click()
    settled(page)
    assert page.locator("h2").inner_text().strip() == "wood007"
    assert page.get_by_label("Prompt").evaluate("one => one.selectedOptions[0].text") == "shown-v1"
    assert page.locator("[data-bb-status]").inner_text() == f"Part 8 of {N_PARTS}, 2 results"
    page.get_by_role("link", name="all parts under this prompt").click()
    page.wait_for_load_state("networkidle")
    assert page.url.endswith(suite_of(built, "shown-v1"))


def test_values_and_labels_are_those_of_the_file(built: Path, opened: Opened) -> None:
    page = settled(opened("part.html#part=wood003"))
    folder = built / "files" / "parts" / "labels-1.0.0-woods"
    context = json.loads((folder / "index.json").read_text(encoding="utf-8"))["contexts"][0]
    file = json.loads((folder / "wood003.json").read_text(encoding="utf-8"))["contexts"][context["id"]]
    told = {row.locator("th a").inner_text(): row for row in page.locator("[data-bb-values] tbody tr").all()}
    assert list(told) == ["lab/first-0.9", "lab/second-0.5", "baseline/uniform"]
    for result in context["results"]:
        own = file["results"][result["id"]]
        shown = told[result["model"]].locator(".bb-value").all_inner_texts()
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


def test_readers_step_from_part_to_part_and_see_all_prompts(opened: Opened) -> None:
    page = settled(opened("part.html"))

    def shows(part: str) -> None:
        page.wait_for_function("part => document.querySelector('.bb-part h2').textContent === part", arg=part)

    assert page.get_by_role("button", name="Previous part").is_disabled()
    page.get_by_role("button", name="Next part").click()
    shows("wood001")
    page.go_back()
    shows("wood000")
    page.locator("select[name=part]").select_option(label=f"wood{N_PARTS - 1:03}")
    settled(page)
    assert page.get_by_role("button", name="Next part").is_disabled()
    page.get_by_label("Prompt").select_option(value="all")
    page.wait_for_function("document.querySelectorAll('[data-bb-values] tbody tr').length === 5")
    told = [row.split("\t")[:2] for row in page.locator("[data-bb-values] tbody tr").all_inner_texts()]
    both = [(f"lab/{name}", prompt) for name in ("first-0.9", "second-0.5") for prompt in ("plain-v1", "shown-v1")]
    assert [(name.split("\n")[0], prompt) for name, prompt in told] == [*both, ("baseline/uniform", "plain-v1")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_the_pages(built: Path, browser: Browser, address: str, scheme: Scheme) -> None:
    paths = (suite_of(built), "part.html#part=wood002", "part.html#context=all")
    for path, found in visit_all(browser, address, paths, scheme=scheme):
        assert serious_violations(found.page) == [], path
        found.page.set_viewport_size({"width": 390, "height": 844})
        assert found.page.evaluate("document.scrollingElement.scrollWidth") <= 390, path


def test_without_scripts_the_table_is_whole_and_files_are_linked(built: Path, opened: Opened, address: str) -> None:
    assert opened(suite_of(built), with_scripts=False).locator("tbody tr").count() == N_PARTS
    page = opened("part.html", with_scripts=False)
    assert not page.locator(".bb-part").is_visible()
    links = page.locator("article a[href^='files/parts/']")
    assert links.count() == N_PARTS + 1
    assert page.request.get(address + (links.last.get_attribute("href") or "")).status == 200


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


def test_nothing_that_a_file_says_acts(built: Path, browser: Browser, tmp_path: Path) -> None:
    site = copied(built, tmp_path / "site")
    for path in (site / "files" / "parts" / "labels-1.0.0-woods").glob("*.json"):
        path.write_text(json.dumps(hostile(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
    with served(site) as address:
        for choice in ("", "#context=all"):
            found = visit(browser, f"{address}part.html{choice}")
            settled(found.page)
            told = assert_inert(found, address, "https://made.test/a")
            assert ACTS.split("<")[1] in told
            assert r"evil/\u202egnp.\u2066exe\u200b" in told


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
