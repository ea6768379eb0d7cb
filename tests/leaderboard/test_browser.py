"""The built site in a browser: nothing but this machine is asked, and it works by mouse, keyboard and phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.pages.publishing import site_settings
from tests.commands import REPOSITORY
from tests.leaderboard.browsing import Opened, serious_violations, turn, visit, visit_all
from tests.leaderboard.synthetic import leaning, present, stereotyped, uniform, write_model
from tests.worlds import MadeBoard, copy_site, render, silent

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "evil/<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with two configs, baselines, a refuser and a hostile name."""
    root = tmp_path_factory.mktemp("site")
    runs, site = root / "runs", copy_site(root)
    with (site / "mkdocs.yml").open("a", encoding="utf-8") as settings:
        settings.write("\nrepo_url: https://github.com/lab/board\nextra:\n  contact: board@lab.test\n")
    for ambiguous in (False, True):
        write_model(runs, "baseline/uniform", uniform, ambiguous=ambiguous, endpoint="baseline")
        write_model(runs, "baseline/stereotype", stereotyped(1.0), ambiguous=ambiguous, endpoint="baseline")
        write_model(runs, "acme/small", leaning(1.0, 0.5), ambiguous=ambiguous)
        write_model(runs, "acme/large", leaning(2.0, 0.2), ambiguous=ambiguous)
    write_model(runs, "acme/silent", silent)
    write_model(runs, HOSTILE, leaning(1.0, 1.0))
    view = MadeBoard(runs, any_name=True, settings=site_settings(site)).view
    return render(view, root, with_parquet=True, site=site)


BENCHMARK = "benchmarks/synthbias.html"


def column(page: Page, number: int) -> list[str]:
    """Text of one column of the first table, rows that are hidden left out."""
    cells = page.locator(f".bb-table >> nth=0 >> tbody tr:visible > :nth-child({number})")
    return [text.split("\n")[0] for text in cells.all_inner_texts()]


def pages(built: Path) -> list[str]:
    """The largest page of each kind, and of those written by hand the ones with the widest tables and commands."""
    by_hand = {path.stem for path in (REPOSITORY / "site" / "docs").glob("*.md")}
    by_hand -= {"index", "reading", "reference", "scoring"}
    found: dict[tuple[str, ...], str] = {}
    for path in sorted(built.rglob("*.html"), key=lambda path: path.stat().st_size):
        *folders, name = path.relative_to(built).parts
        if folders or path.stem not in by_hand:
            kind = (folders[0], str(len(folders))) if folders and name != "index.html" else (*folders, name)
            found[kind] = path.relative_to(built).as_posix()
    return sorted(found.values())


UNFOLD = "document.querySelectorAll('main details:not([open])').forEach(fold => fold.toggleAttribute('open'))"
TEXTS = """[...document.querySelectorAll("main :is(p, li, dd, th, td)")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => {
        const copy = one.cloneNode(true);
        copy.querySelectorAll("button, label, select").forEach((control) => control.remove());
        return copy.textContent.replace(/\\s+/g, " ").trim();
    })"""
CUT = """(width) => [...document.querySelectorAll(".md-content *")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest(".bb-hidden-words"))
    .filter((one) => {
        const { left, right, width: own, height } = one.getBoundingClientRect();
        const cut = getComputedStyle(one).overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1;
        return own > 1 && height > 1 && (left < -1 || right > width + 1 || cut);
    })
    .map((one) => `${one.tagName}.${one.getAttribute("class") ?? ""}`)"""
A4 = {False: 718, True: 1047}
"""Pixels between the margins of a sheet, down and across; tables of models are printed across."""


def cut_on_paper(page: Page) -> list[str]:
    opened_at = present(page.viewport_size)
    page.emulate_media(media="print", color_scheme="light")
    width = A4[page.locator(".bb-scroll").count() > 0]
    page.set_viewport_size({"width": width, "height": 900})
    found: list[str] = page.evaluate(CUT, width)
    page.emulate_media(media="screen")
    page.set_viewport_size(opened_at)
    return found


def width_on_phone(page: Page) -> int:
    opened_at = present(page.viewport_size)
    page.set_viewport_size({"width": 390, "height": 844})
    width: int = page.evaluate("document.scrollingElement.scrollWidth")
    page.set_viewport_size(opened_at)
    return width


def test_pages_of_each_kind_work_for_everybody(built: Path, browser: Browser, address: str) -> None:
    """With axe in both colour schemes, on a phone, on paper and without scripts; each is opened once for all of it."""
    links: set[str] = set()
    texts: dict[str, set[str]] = {}
    for path, visited in visit_all(browser, address, pages(built)):
        page = visited.page
        assert visited.requests, path
        assert not any(map(is_of_search, visited.requests)), path
        page.evaluate(UNFOLD)
        texts[path] = set(page.evaluate(TEXTS))
        assert serious_violations(page) == [], path
        turn(page, "dark")
        assert serious_violations(page, only_colours=True) == [], path
        # Pages in the background follow a new size late, so that it is changed last.
        assert width_on_phone(page) <= 390, path
        page.evaluate("document.querySelectorAll('main details').forEach(fold => { fold.open = false; })")
        assert width_on_phone(page) <= 390, path
        # The page for missing files is opened from anywhere, so its own links are absolute.
        if path != "404.html":
            links.update(page.evaluate("[...document.links].map(link => link.href.split('#')[0])"))
        assert cut_on_paper(page) == [], path
        visited.check(address)
    own = {link for link in links if link.startswith(address)}
    assert {Path(link).suffix for link in own} >= {".parquet", ".csv", ".html"}
    with browser.new_context() as context:
        assert {link: status for link in own if (status := context.request.get(link).status) != 200} == {}
    needing = []
    for path, visited in visit_all(browser, address, pages(built), with_scripts=False):
        visited.page.evaluate(UNFOLD)
        if lost := texts[path] - set(visited.page.evaluate(TEXTS)):
            needing.append(path)
            assert "needs JavaScript" in visited.page.locator("main").inner_text(), f"{path}: {lost}"
    assert needing == ["answers.html", "compare.html"]


def test_nothing_in_the_files_would_fetch_from_another_host(built: Path) -> None:
    fetching = re.compile(
        r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'> ]+"""
        r"""|(?:url\(|@import)\s*["']?(?:https?:)?//[^"')]+"""
    )
    texts = {path: path.read_text("utf-8") for path in built.rglob("*") if path.suffix in (".html", ".css")}
    assert {path.suffix for path in texts} == {".html", ".css"}
    assert {path.name: found for path, text in texts.items() if (found := fetching.findall(text))} == {}


FADE = "box => getComputedStyle(box).getPropertyValue('--bb-fade-right')"


def test_answers_of_a_result_are_closed_until_asked_for_and_its_command_is_copied(opened: Opened, built: Path) -> None:
    page = opened(min(path.relative_to(built).as_posix() for path in built.glob("models/acme__large/*.html")))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert page.locator(".bb-answers details").count() > 0
    assert page.locator(".bb-answers details[open]").count() == 0
    assert "SHA-256: nobody chose them" not in (built / "search" / "search_index.json").read_text(encoding="utf-8")
    page.locator(".bb-answers summary").first.click()
    assert page.locator(".bb-answers details[open]").count() == 1
    page.locator("summary", has_text="identity, environment and command").click()
    page.locator("dd").get_by_role("button", name="Copy").last.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "python -m evaluators run --backend transformers --model acme/large --prompt intrinsic-v1"


def test_a_click_or_a_key_sorts_both_ways_and_each_row_keeps_to_its_side_of_the_line(opened: Opened) -> None:
    page = opened(BENCHMARK)
    table = page.locator(".bb-board:not(.bb-reported) .bb-table").first
    header = table.locator("thead th").nth(4)
    above, names = table.locator("tbody").first, table.locator("tbody th.bb-model a")
    assert header.inner_text().startswith("Same for he and she (UCerF)")
    # UCerF is better the higher it is, so the first click puts the highest on top.
    for key, direction, words in ((None, -1, "descending"), ("Enter", 1, "ascending"), ("Space", -1, "descending")):
        if key is None:
            header.locator("button").click()
        else:
            page.keyboard.press(key)
        assert header.get_attribute("aria-sort") == words
        values = [float(text) for text in above.locator("td:nth-child(5) .bb-value").all_inner_texts()]
        assert values == sorted(values, reverse=direction < 0)
        assert len(set(values)) == 3
        # The model without an answer stands below the line, useless predictors below it.
        assert names.all_inner_texts()[3] == "silent"


def test_a_choice_of_the_ranking_metric_holds_for_the_page_and_its_address(opened: Opened, address: str) -> None:
    page = opened(BENCHMARK)
    select = page.get_by_label("Rank by")
    table = page.locator(".bb-board:not(.bb-reported) .bb-table")
    models, places = table.locator("tbody th a"), table.locator("tbody >> nth=0 >> .bb-rank > [data-bb-by]:visible")
    first = models.all_inner_texts()
    select.select_option("Same for he and she (UCerF)")
    by_ucerf = models.all_inner_texts()
    shown = [int(place or "") for place in places.evaluate_all("all => all.map(one => one.dataset.bbPlace)")]
    assert shown == sorted(shown)
    assert len(shown) == 3
    assert by_ucerf[3] == first[3] == "silent"
    assert page.locator("p:visible", has_text="By Same for he and she (UCerF), ").count() == 1
    assert "which are by Same for he and she (UCerF) and" in table.locator("caption").inner_text()
    assert page.url.endswith("?rank-by=ucerf")
    again = opened(page.url.removeprefix(address))
    assert again.get_by_label("Rank by").input_value() == "ucerf"
    assert again.locator(".bb-table tbody th a").all_inner_texts() == by_ucerf
    select.select_option("Worst-group accuracy")
    assert models.all_inner_texts() == first
    assert "?" not in page.url
    wrong = opened(f"{BENCHMARK}?rank-by=nonsense")
    assert wrong.get_by_label("Rank by").input_value() == "worst_group_accuracy"


def test_a_link_restores_sorting_columns_filters_and_useless_predictors(opened: Opened, address: str) -> None:
    page = opened(BENCHMARK)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    n_columns = page.locator("thead th:visible").count()
    page.get_by_label(re.compile("All .* columns")).check()
    assert page.locator("thead th:visible").count() > n_columns
    for _ in range(2):
        page.get_by_role("button", name="Same for he and she (UCerF)").first.click()
    assert len(column(page, 2)) == 4
    page.get_by_label("Find").fill("LARGE")
    assert column(page, 2) == ["large"]
    page.get_by_label("Find").fill("L")
    page.get_by_label(re.compile("Useless predictors")).check()
    page.get_by_text("Share", exact=True).first.click()
    page.get_by_role("button", name="Copy link to this view").click()
    page.get_by_role("button", name="Copied").wait_for()
    again = opened(page.evaluate("navigator.clipboard.readText()").removeprefix(address))
    for column_number in (2, 5):
        assert column(again, column_number) == column(page, column_number)
    assert again.locator("thead th").nth(4).get_attribute("aria-sort") == "ascending"
    assert again.locator("thead th:visible").count() > n_columns
    assert "uniform" in column(again, 2)
    again.get_by_label(re.compile("Useless predictors")).uncheck()
    assert "uniform" not in column(again, 2)


def test_an_old_address_leads_to_the_page_of_its_table(opened: Opened, built: Path, address: str) -> None:
    (other,) = (path.stem for path in (built / "benchmarks" / "synthbias").glob("*.html"))
    page = opened(f"{BENCHMARK}#{other}")
    page.wait_for_url(f"{address}benchmarks/synthbias/{other}.html")
    assert "sentences whose grammar fits both people" in page.locator("h1").inner_text()


def test_dark_mode_follows_the_system_and_the_switch(opened: Opened) -> None:
    def look(page: Page) -> tuple[str, str]:
        scheme = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        return scheme, page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = opened(), opened(scheme="dark")
    assert look(light)[0] == "default"
    assert look(dark)[0] == "slate"
    seen = {look(light)}
    for _ in range(3):
        light.locator("form[data-md-component=palette] label:visible").click()
        seen.add(look(light))
    assert {scheme for scheme, _ in seen} == {"default", "slate"}
    assert len({background for _, background in seen}) == 2
    dark.goto(dark.url + BENCHMARK)
    assert dark.locator("img[src*='only-dark']").first.is_visible()
    assert not dark.locator("img[src*='only-light']").first.is_visible()


def test_wide_tables_scroll_in_a_box_that_fades_out_and_a_figure_can_be_saved_as_png(opened: Opened) -> None:
    page = opened(BENCHMARK, width=390)
    box = page.locator(".bb-scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert box.evaluate(FADE) not in ("", "0px")
    assert box.get_attribute("tabindex") == "0"
    box.evaluate("box => new Promise(done => { box.scrollLeft = 9999; setTimeout(done, 200); })")
    assert box.evaluate(FADE) == "0px"
    offset = present(box.locator("tbody th.bb-model").first.bounding_box())
    assert 0 <= offset["x"] < 60, "the model stays in sight"
    figure = page.locator("figure.bb-figure").first
    figure.locator("summary").click()
    with page.expect_download() as saving:
        figure.get_by_role("button", name="PNG").click()
    assert saving.value.suggested_filename.endswith(".png")
    assert Path(saving.value.path()).read_bytes().startswith(b"\x89PNG")


def test_without_scripts_every_table_is_whole(opened: Opened, address: str) -> None:
    page = opened(BENCHMARK, with_scripts=False)
    rows = page.locator(".bb-board:not(.bb-reported) .bb-table tbody tr:visible")
    # Four models, the line and the band; the band opens.
    assert rows.count() == 6
    page.get_by_label(re.compile("Useless predictors")).check()
    assert rows.count() == 8
    assert page.locator("thead th:visible").count() > 9
    assert not page.locator(".bb-controls").first.is_visible()
    page.goto(f"{address}index.html")
    assert page.locator(".bb-profile-table tbody tr:visible").count() == 4
    assert page.locator(".bb-filters").is_hidden()
    page.get_by_role("button", name="What Worst-group accuracy means").click()
    assert page.locator(".bb-meanings > [popover]").first.is_visible()


def test_the_front_page_explains_sorts_and_filters(opened: Opened) -> None:
    page = opened("index.html")
    note = page.locator(".bb-meanings > [popover]").first
    assert note.is_hidden()
    page.get_by_role("button", name="What Worst-group accuracy means").focus()
    page.keyboard.press("Enter")
    assert "a coin gets 0.5" in note.inner_text()
    page.keyboard.press("Escape")
    assert note.is_hidden()
    table = page.locator(".bb-profile-table")
    header = table.locator("thead tr >> nth=1 >> th").nth(3)
    cells = table.locator("tbody tr > :nth-child(4)")
    for direction in (1, -1):
        header.locator("button").first.click()
        values = [float(value) for value in cells.evaluate_all("all => all.map(cell => cell.dataset.sort)") if value]
        assert len(values) == 3
        assert values == sorted(values, reverse=direction < 0)
    assert "Best useless predictor" in table.locator("tfoot").inner_text()
    rows = table.locator("tbody tr:visible")
    n_all = rows.count()
    page.get_by_label("Columns").select_option("yes")
    assert 0 < rows.count() < n_all
    interval = rows.first.locator("td small").first
    assert interval.evaluate("text => getComputedStyle(text).clipPath") != "none"
    page.get_by_label("Intervals as numbers").check()
    assert interval.evaluate("text => getComputedStyle(text).clipPath") == "none"


def is_of_search(url: str) -> bool:
    return url.endswith("/search_index.json")


def test_the_index_of_the_search_is_fetched_when_it_is_opened_and_finds_a_word(browser: Browser, address: str) -> None:
    found = visit(browser, address)
    page = found.page
    assert not any(map(is_of_search, found.requests))
    page.keyboard.press("/")
    page.keyboard.type("reweighting")
    # The hits are drawn again after each letter, so that one of an earlier list may be gone.
    page.locator(".md-search-result__link[href*='reweighting.html']").first.wait_for()
    assert sum(map(is_of_search, found.requests)) == 1
    page.goto(address + "reweighting.html?h=reweighting")
    page.locator("mark", has_text="eweighting").first.wait_for()
    found.check(address)
    page.context.close()
