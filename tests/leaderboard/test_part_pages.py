"""The pages of a suite of many parts in a browser: choosing, filtering and sorting, and names that strangers chose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from evaluators.task_abilities import PartReport
from leaderboard.pages.part_values import PartOfResult, PartValue
from leaderboard.pages.rendering import make_view
from leaderboard.pages.suites import SuiteView
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from tests.leaderboard.browsing import Scheme, Visit, serious_violations, served, visit, visit_all
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, write_model
from tests.suites.commands import ask, board, copied, made, run
from tests.worlds import render

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


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    with served(built) as found:
        yield found


def suite_of(built: Path, prompt: str = "plain-v1") -> str:
    (path,) = (built / "suites").glob(f"labels-woods-{prompt}-*.html")
    return f"suites/{path.name}"


def opened(browser: Browser, address: str, choice: str = "", **options: Any) -> Visit:
    """The page of a part when its files are loaded."""
    found = visit(browser, f"{address}part.html{choice}", **options)
    settled(found.page)
    return found


LOADED = """() => document.querySelector("[aria-busy]") === null
    && (document.querySelector(".bb-part form")?.elements.part.value ?? "") !== "" """


def settled(page: Page) -> None:
    page.wait_for_function(LOADED)


def names(page: Page) -> list[str]:
    return page.locator(".bb-table tbody tr:visible th").all_inner_texts()


def test_parts_are_filtered_and_sorted(built: Path, browser: Browser, address: str) -> None:
    found = visit(browser, address + suite_of(built))
    page = found.page
    assert names(page) == [f"wood{number:03}" for number in range(N_PARTS)]
    page.get_by_label("Filter rows").fill("wood01")
    assert names(page) == [f"wood{number:03}" for number in range(10, 20)]
    assert page.locator("[data-bb-count]").inner_text() == f"10 of {N_PARTS} rows"
    page.get_by_label("Filter rows").fill("")
    items = page.locator("thead th", has_text="Items")
    items.locator("button").click()
    items.locator("button").click()
    page.wait_for_function("document.querySelector('.bb-later') === null")
    assert names(page) == [f"wood{number:03}" for number in reversed(range(N_PARTS))]
    accuracy = page.locator("thead th", has_text="Accuracy")
    accuracy.locator("button").click()
    page.wait_for_function("document.querySelector('.bb-later') === null")
    values = [float(text) for text in page.locator("tbody td:nth-child(2) .bb-value").all_inner_texts()]
    assert values == sorted(values)
    assert found.complaints == []
    page.context.close()


def test_a_row_leads_to_its_part_under_the_same_prompt(built: Path, browser: Browser, address: str) -> None:
    found = visit(browser, address + suite_of(built, "shown-v1"))
    page = found.page
    page.get_by_role("link", name="wood007").click()
    settled(page)
    assert page.locator("h2").inner_text().strip() == "wood007"
    assert page.get_by_label("Prompt").evaluate("one => one.selectedOptions[0].text") == "shown-v1"
    assert page.locator("[data-bb-status]").inner_text() == f"Part 8 of {N_PARTS}, 2 results"
    page.get_by_role("link", name="all parts under this prompt").click()
    page.wait_for_load_state("networkidle")
    assert page.url.endswith(suite_of(built, "shown-v1"))
    assert found.complaints == []
    page.context.close()


def test_values_and_labels_are_those_of_the_file(built: Path, browser: Browser, address: str) -> None:
    found = opened(browser, address, "#part=wood003")
    page = found.page
    folder = built / "files" / "parts" / "labels-1.0.0-woods"
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    context = index["contexts"][0]
    file = json.loads((folder / "wood003.json").read_text(encoding="utf-8"))["contexts"][context["id"]]
    table = page.locator("[data-bb-values] tbody tr")
    told = {row.locator("th a").inner_text(): row for row in table.all()}
    assert list(told) == ["lab/first-0.9", "lab/second-0.5", "baseline/uniform"]
    for result in context["results"]:
        own = file["results"][result["id"]]
        shown = told[result["model"]].locator(".bb-value").all_inner_texts()
        assert shown == [f"{value[0]:.3f}" for value in own["values"]]
        labels = page.get_by_role("region", name=f"Labels by {result['model']}")
        assert labels.locator("tbody th").all_inner_texts() == file["labels"][0]
        chosen = labels.locator("tbody td:nth-child(3)")
        assert [text.strip() for text in chosen.all_inner_texts()] == [f"{share:.3f}" for share in own["shares"]]
        widths = chosen.locator(".bb-bar-fill").evaluate_all(
            "all => all.map((one) => Number(one.getAttribute('width')))"
        )
        assert widths == pytest.approx([90 * share for share in own["shares"]], abs=0.06)
        assert labels.locator("tbody td:nth-child(4)").all_inner_texts() == ["unknown"] * len(file["labels"][0])
        assert "Unknown: no prior is measured" in labels.locator("caption").inner_text()
    assert "Say which kind of wood the text of wood003 is about" in page.locator("[data-bb-facts]").inner_text()
    assert [url for url in found.requests if not url.startswith((address, "data:", "blob:"))] == []
    assert found.complaints == []
    page.context.close()


def test_readers_step_from_part_to_part_and_see_all_prompts(browser: Browser, address: str) -> None:
    found = opened(browser, address)
    page = found.page
    assert page.get_by_role("button", name="Previous part").is_disabled()
    page.get_by_role("button", name="Next part").click()
    page.wait_for_function("document.querySelector('.bb-part h2').textContent === 'wood001'")
    page.go_back()
    page.wait_for_function("document.querySelector('.bb-part h2').textContent === 'wood000'")
    page.locator("select[name=part]").select_option(label=f"wood{N_PARTS - 1:03}")
    settled(page)
    assert page.get_by_role("button", name="Next part").is_disabled()
    page.get_by_label("Prompt").select_option(value="all")
    page.wait_for_function("document.querySelectorAll('[data-bb-values] tbody tr').length === 5")
    rows = page.locator("[data-bb-values] tbody tr")
    told = [row.split("\t")[:2] for row in rows.all_inner_texts()]
    assert [(name.split("\n")[0], prompt) for name, prompt in told] == [
        ("lab/first-0.9", "plain-v1"),
        ("lab/first-0.9", "shown-v1"),
        ("lab/second-0.5", "plain-v1"),
        ("lab/second-0.5", "shown-v1"),
        ("baseline/uniform", "plain-v1"),
    ]
    assert found.complaints == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_the_pages(built: Path, browser: Browser, address: str, scheme: Scheme) -> None:
    paths = (suite_of(built), "part.html#part=wood002", "part.html#context=all")
    for path, found in visit_all(browser, address, paths, scheme=scheme):
        assert serious_violations(found.page) == [], path
        found.page.set_viewport_size({"width": 390, "height": 844})
        assert found.page.evaluate("document.scrollingElement.scrollWidth") <= 390, path


def test_without_scripts_the_table_is_whole_and_files_are_linked(built: Path, browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + suite_of(built))
    assert page.locator("tbody tr").count() == N_PARTS
    page.goto(address + "part.html")
    assert not page.locator(".bb-part").is_visible()
    links = page.locator("article a[href^='files/parts/']")
    assert links.count() == N_PARTS + 1
    assert context.request.get(address + (links.last.get_attribute("href") or "")).status == 200
    context.close()


def test_nothing_that_a_file_says_acts(built: Path, browser: Browser, tmp_path: Path) -> None:
    site = copied(built, tmp_path / "site")
    folder = site / "files" / "parts" / "labels-1.0.0-woods"
    for path in folder.glob("*.json"):
        value = hostile(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(value), encoding="utf-8")
    with served(site) as address:
        for choice in ("", "#context=all"):
            found = opened(browser, address, choice)
            told = found.page.locator("article").inner_text()
            assert ACTS.split("<")[1] in told
            assert r"evil/\u202egnp.\u2066exe\u200b" in told
            assert not re.search("[\u200b\u202e\u2066]", told)
            assert found.page.evaluate("window.taken ?? null") is None
            assert found.page.locator("article img").count() == 0
            links = found.page.evaluate("[...document.querySelectorAll('article a')].map((one) => one.href)")
            assert [one for one in links if not one.startswith(address)] == ["https://made.test/a"]
            assert [url for url in found.requests if not url.startswith((address, "data:", "blob:"))] == []
            assert found.complaints == []
            found.page.context.close()


def test_the_table_of_parts_bears_any_name(browser: Browser, tmp_path: Path) -> None:
    write_model(tmp_path / "runs", HOSTILE, leaning(1.0, 0.5))
    loaded = load_known(Root(tmp_path / "runs", "local"), any_name=True)
    view = make_view(assemble(loaded.entries), (), ())
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
    suite = SuiteView(
        section=replace(section, table=table),
        metrics=("ucerf",),
        results=((section.table.rows[0], parts), (section.table.rows[0], text)),
    )
    with served(render(replace(view, suites=(suite,)), tmp_path)) as address:
        found = visit(browser, address + suite.page)
        told = found.page.locator("article").inner_text()
        # In the sentence above the table, beside what is left out, and in each row as name, fact and reason.
        assert told.count("<script>window.taken=1</script>") >= 6
        assert not re.search("[\u200b\u202e\u2066]", told)
        assert found.page.evaluate("window.taken ?? null") is None
        assert found.page.locator("article img, article b, article td strong").count() == 0
        links = found.page.evaluate("[...document.querySelectorAll('article a')].map((one) => one.protocol)")
        assert set(links) == {"http:"}
        assert found.page.locator("tbody tr").count() == 2
        assert found.complaints == []
        found.page.context.close()


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
    if isinstance(value, str) and name in (
        "text",
        "part",
        "model",
        "detail",
        "why_no_text",
        "heading",
        "title",
        "dataset",
    ):
        return f"{ACTS} {TURNED} {value}"
    return value
