"""The built site in a browser: nothing but this machine is asked, and it works by mouse, keyboard and phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from biasboard.ground.charts.drawing import FONT_SIZE
from tests.commands import REPOSITORY, run
from tests.leaderboard.browsing import Scheme, Visit, serious_violations, served, turn, visit, visit_all
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, stereotyped, uniform, write_model
from tests.worlds import copy_site

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ANY_NAME = (
    "from leaderboard.verify import checks; checks.check_model_id = str; from leaderboard.__main__ import app; app()"
)
HOSTILE = "evil/<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with two configs, baselines, a refuser and a hostile name."""
    root = tmp_path_factory.mktemp("site")
    with (copy_site(root) / "mkdocs.yml").open("a", encoding="utf-8") as settings:
        settings.write("\nrepo_url: https://github.com/lab/board\nextra:\n  contact: board@lab.test\n")
    runs = root / "runs"
    for ambiguous in (False, True):
        write_model(runs, "baseline/uniform", uniform, ambiguous=ambiguous, endpoint="baseline")
        write_model(runs, "baseline/stereotype", stereotyped(1.0), ambiguous=ambiguous, endpoint="baseline")
        write_model(runs, "acme/small", leaning(1.0, 0.5), ambiguous=ambiguous)
        write_model(runs, "acme/large", leaning(2.0, 0.2), ambiguous=ambiguous)
    write_model(runs, "acme/silent", lambda reference, other, gender, pair: None)
    write_model(runs, HOSTILE, leaning(1.0, 1.0))
    write_keys(root / "leaderboard" / "keys", runs)
    # Verification refuses hostile names; pages must bear them all the same.
    run("-c", ANY_NAME, "build", "--runs", runs, "--site", root / "site", cwd=root, status=0)
    return root / "site" / "_build"


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    with served(built) as found:
        yield found


def column(page: Page, number: int) -> list[str]:
    """Text of one column of the first table, rows that are hidden left out."""
    cells = page.locator(f".bb-table >> nth=0 >> tbody tr:visible > :nth-child({number})")
    return [text.split("\n")[0] for text in cells.all_inner_texts()]


def pages(built: Path) -> list[str]:
    return sorted(path.relative_to(built).as_posix() for path in built.rglob("*.html"))


class Seen(NamedTuple):
    """What a page did that was opened in one colour scheme and then turned to the other."""

    requests: list[str]
    complaints: list[str]
    violations: list[str]
    """Rules of axe, of both schemes."""
    links: set[str]
    texts: set[str]
    """Paragraphs, list items and cells that can be read once everything is unfolded."""
    cut_on_paper: list[str]
    """Elements that leave a printed sheet or are cut off in their box."""
    widths_on_phone: list[int]


@pytest.fixture(scope="module")
def seen(built: Path, browser: Browser, address: str) -> dict[str, Seen]:
    """Every page, opened once for all that is asked of each, and turned dark."""
    visits = visit_all(browser, address, pages(built))
    found = {path: look(visited, "dark", with_axe=True) for path, visited in visits}
    assert len(found) > 10
    return found


@pytest.fixture(scope="module")
def seen_on_phone(built: Path, browser: Browser, address: str) -> dict[str, Seen]:
    """Every generated page and one written by hand, which all work alike, opened in the dark on a phone."""
    by_hand = {f"{path.stem}.html" for path in (REPOSITORY / "site" / "docs").glob("*.md")} - {
        "index.html",
        "reading.html",
    }
    paths = [path for path in pages(built) if path not in by_hand]
    visits = visit_all(browser, address, paths, width=390, scheme="dark")
    return {path: look(visited, "light") for path, visited in visits}


def look(visited: Visit, other_scheme: Scheme, *, with_axe: bool = False) -> Seen:
    page = visited.page
    page.evaluate(UNFOLD)
    texts = set(page.evaluate(TEXTS))
    violations = serious_violations(page) if with_axe else []
    turn(page, other_scheme)
    if with_axe:
        violations += serious_violations(page, only_colours=True)
    # Pages in the background follow a new size late, so that it is changed last.
    widths = [width_on_phone(page)]
    page.evaluate("document.querySelectorAll('main details').forEach(fold => { fold.open = false; })")
    widths.append(width_on_phone(page))
    links = set(page.evaluate("[...document.links].map(link => link.href.split('#')[0])"))
    return Seen(visited.requests, visited.complaints, violations, links, texts, cut_on_paper(page), widths)


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
    opened_at = page.viewport_size
    assert opened_at is not None
    page.emulate_media(media="print", color_scheme="light")
    width = A4[page.locator(".bb-scroll").count() > 0]
    page.set_viewport_size({"width": width, "height": 900})
    found: list[str] = page.evaluate(CUT, width)
    page.emulate_media(media="screen")
    page.set_viewport_size(opened_at)
    return found


def width_on_phone(page: Page) -> int:
    opened_at = page.viewport_size
    assert opened_at is not None
    page.set_viewport_size({"width": 390, "height": 844})
    width: int = page.evaluate("document.scrollingElement.scrollWidth")
    page.set_viewport_size(opened_at)
    return width


def test_no_page_asks_another_host_or_complains(
    seen: dict[str, Seen], seen_on_phone: dict[str, Seen], address: str
) -> None:
    for path, page in (*seen.items(), *seen_on_phone.items()):
        assert page.requests, path
        assert [url for url in page.requests if not url.startswith((address, "data:", "blob:"))] == [], path
        # The page for missing files is opened from anywhere, so its own links are absolute; it is not opened here.
        assert page.complaints == [], path


def test_a_text_that_cannot_be_read_is_found_among_others(browser: Browser, address: str) -> None:
    page = visit(browser, address).page
    assert serious_violations(page, only_colours=True) == []
    page.evaluate("[...document.querySelectorAll('main p')].at(-1).style.color = '#eee'")
    assert serious_violations(page, only_colours=True) == ["color-contrast"]


def test_no_page_scrolls_sideways_on_a_narrow_screen(seen: dict[str, Seen]) -> None:
    assert {path: page.widths_on_phone for path, page in seen.items() if max(page.widths_on_phone) > 390} == {}


def test_axe_finds_nothing_serious_on_any_page(seen: dict[str, Seen]) -> None:
    assert {path: page.violations for path, page in seen.items() if page.violations} == {}


def test_nothing_in_the_files_would_fetch_from_another_host(built: Path) -> None:
    loading = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'> ]+""")
    styles = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^"')]+""")
    files = [path for path in built.rglob("*") if path.suffix in (".html", ".css")]
    assert {path.suffix for path in files} == {".html", ".css"}
    found = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        if addresses := [*loading.findall(text), *styles.findall(text)]:
            found[path.name] = addresses
    assert found == {}


def test_no_page_scrolls_sideways_where_it_is_opened_on_a_phone(seen_on_phone: dict[str, Seen]) -> None:
    assert {path: page.widths_on_phone for path, page in seen_on_phone.items() if max(page.widths_on_phone) > 390} == {}


def test_wide_tables_scroll_in_their_own_box_with_the_model_in_sight(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html", width=390).page
    box = page.locator(".bb-scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.evaluate("box => { box.scrollLeft = 400; }")
    offset = page.locator("tbody th.bb-model").first.bounding_box()
    assert offset is not None
    assert 0 <= offset["x"] < 60
    page.context.close()


def test_keys_reach_the_wide_tables_of_the_guide_on_a_phone(browser: Browser, address: str) -> None:
    page = visit(browser, address + "reading.html", width=390).page
    assert page.locator(".md-typeset__scrollwrap[tabindex='0']").count() >= 1
    assert serious_violations(page) == []
    page.context.close()


def test_keys_reach_wide_tables_of_the_guide_when_the_window_becomes_narrow(browser: Browser, address: str) -> None:
    page = visit(browser, address + "reading.html", width=1280).page
    assert page.locator(".md-typeset__scrollwrap[tabindex]").count() == 0
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".md-typeset__scrollwrap[tabindex='0']").first.wait_for()
    assert page.get_by_role("region", name="Table of Rank, Model (invented)").count() == 1
    assert serious_violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 844})
    page.wait_for_function("document.querySelector('.md-typeset__scrollwrap[tabindex]') === null")
    page.context.close()


@pytest.mark.parametrize("path", ["scoring.html", "adding.html"])
def test_under_a_finger_no_command_of_the_guide_scrolls_out_of_reach_of_keys(
    browser: Browser, address: str, path: str
) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        page = context.new_page()
        page.goto(address + path)
        page.wait_for_load_state("networkidle")
        assert page.locator("pre > code").count() > 0
        assert serious_violations(page) == []


def test_on_a_phone_no_note_and_no_bar_leaves_the_window(browser: Browser, address: str) -> None:
    page = visit(browser, address + "index.html", width=390).page
    buttons = page.locator(".bb-what:visible")
    assert buttons.count() > 1
    for index in range(2):
        for block in ("start", "end"):
            # The header of the site covers the upper edge.
            buttons.nth(index).evaluate(f"one => {{ one.scrollIntoView({{block: '{block}'}}); scrollBy(0, -60); }}")
            buttons.nth(index).click()
            box = page.locator(".bb-meanings > :popover-open").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 844
            page.keyboard.press("Escape")
    page.locator(".bb-choose input:visible").first.check()
    bar = page.locator(".bb-chosen").bounding_box()
    assert bar is not None
    assert bar["width"] > 350
    assert bar["x"] + bar["width"] <= 390
    page.context.close()


def test_on_a_phone_the_letters_of_figures_have_nine_pixels(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html", width=360).page
    scales = page.locator(".bb-figure img:visible").evaluate_all(
        "images => images.map((image) => image.clientWidth / image.getAttribute('width'))"
    )
    assert scales
    assert min(scales) * FONT_SIZE >= 9
    page.context.close()


def test_on_a_phone_names_keep_to_their_cells_and_small_print_on_ranks_makes_no_row_taller(
    browser: Browser, address: str
) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html", width=390).page
    rows = page.locator(".bb-table >> nth=0 >> tbody tr[data-bb-model]")
    names = rows.locator("th.bb-model")
    assert names.locator(".bb-reason").count() > 0
    assert names.evaluate_all("all => all.filter(name => name.scrollWidth > name.clientWidth).length") == 0
    said = rows.locator(".bb-rank small")
    assert said.count() > 0
    heights = rows.evaluate_all("all => all.map(row => row.offsetHeight)")
    said.evaluate_all("all => all.forEach(one => one.remove())")
    assert rows.evaluate_all("all => all.map(row => row.offsetHeight)") == heights
    page.context.close()


@pytest.mark.parametrize("path", ["index.html", "benchmarks/synthbias.html"])
def test_a_printed_table_has_all_its_columns(browser: Browser, address: str, path: str) -> None:
    page = visit(browser, address + path, width=1047).page
    page.emulate_media(media="print")
    size = re.search(rb"/MediaBox ?\[ ?0 0 ([0-9.]+) ([0-9.]+)", page.pdf(prefer_css_page_size=True, format="A4"))
    assert size is not None
    assert float(size[1]) > float(size[2]), "a sheet across has room for more columns"
    box = page.locator(".bb-board .bb-scroll").first
    assert box.evaluate("box => getComputedStyle(box).overflow") == "visible"
    edges = box.locator("thead th:visible").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert len(edges) > 5
    assert max(edges) <= 1047
    page.context.close()


def test_nothing_of_any_page_is_cut_off_on_paper(seen: dict[str, Seen]) -> None:
    assert {path: page.cut_on_paper for path, page in seen.items() if page.cut_on_paper} == {}


FADE = "box => getComputedStyle(box).getPropertyValue('--bb-fade-right')"


# A table of headline columns fits a screen of 1,300 pixels, so the wider of the two widths is less.
@pytest.mark.parametrize("width", [390, 800])
def test_a_table_fades_out_where_it_goes_on_and_only_there(browser: Browser, address: str, width: int) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html", width=width).page
    box = page.locator(".bb-scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert box.evaluate(FADE) not in ("", "0px")
    assert box.get_attribute("tabindex") == "0"
    box.evaluate("box => new Promise(done => { box.scrollLeft = 9999; setTimeout(done, 200); })")
    assert box.evaluate(FADE) == "0px"
    page.goto(address + "models/index.html")
    narrow = page.locator(".bb-scroll").first
    if narrow.evaluate("box => box.scrollWidth <= box.clientWidth"):
        assert narrow.evaluate(FADE) == "0px"
    page.context.close()


def result_of(built: Path, model: str) -> str:
    """The page of the first of a model's results."""
    return min(path.relative_to(built).as_posix() for path in (built / "models" / model).glob("*.html"))


def test_answers_of_a_result_are_closed_until_asked_for(browser: Browser, address: str, built: Path) -> None:
    page = visit(browser, address + result_of(built, "acme__small")).page
    assert page.locator(".bb-answers details").count() > 0
    assert page.locator(".bb-answers details[open]").count() == 0
    assert "SHA-256: nobody chose them" not in (built / "search" / "search_index.json").read_text(encoding="utf-8")
    page.locator(".bb-answers summary").first.click()
    assert page.locator(".bb-answers details[open]").count() == 1
    page.context.close()


def test_a_click_sorts_both_ways_and_each_row_keeps_to_its_side_of_the_line(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    table = page.locator(".bb-board:not(.bb-reported) .bb-table").first
    header = table.locator("thead th").nth(4)
    above, names = table.locator("tbody").first, table.locator("tbody th.bb-model a")
    assert header.inner_text().startswith("Same for he and she (UCerF)")
    # UCerF is better the higher it is, so the first click puts the highest on top.
    for direction, words in ((-1, "descending"), (1, "ascending")):
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == words
        values = [float(text) for text in above.locator("td:nth-child(5) .bb-value").all_inner_texts()]
        assert values == sorted(values, reverse=direction < 0)
        assert len(set(values)) == 3
        # The model without an answer stands below the line, useless predictors below it.
        assert names.all_inner_texts()[3] == "silent"
    assert names.all_inner_texts()[4:] == ["stereotype", "uniform"]
    table.locator("thead th").nth(1).locator("button").click()
    assert header.get_attribute("aria-sort") is None
    by_name = names.all_inner_texts()
    assert by_name[:3] == sorted(by_name[:3], key=str.lower)
    page.context.close()


def test_a_choice_of_the_ranking_metric_holds_for_the_page_and_its_address(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
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
    again = visit(browser, page.url).page
    assert again.get_by_label("Rank by").input_value() == "ucerf"
    assert again.locator(".bb-table tbody th a").all_inner_texts() == by_ucerf
    select.select_option("Worst-group accuracy")
    assert models.all_inner_texts() == first
    assert "?" not in page.url
    wrong = visit(browser, address + "benchmarks/synthbias.html?rank-by=nonsense").page
    assert wrong.get_by_label("Rank by").input_value() == "worst_group_accuracy"
    for opened in (page, again, wrong):
        opened.context.close()


def test_a_link_restores_sorting_columns_filters_and_useless_predictors(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    n_columns = page.locator("thead th:visible").count()
    page.get_by_label(re.compile("All .* columns")).check()
    assert page.locator("thead th:visible").count() > n_columns
    page.get_by_role("button", name="Same for he and she (UCerF)").first.click()
    page.get_by_role("button", name="Same for he and she (UCerF)").first.click()
    page.get_by_label("Find").fill("L")
    page.get_by_label(re.compile("Useless predictors")).check()
    page.get_by_text("Share", exact=True).first.click()
    page.get_by_role("button", name="Copy link to this view").click()
    page.get_by_role("button", name="Copied").wait_for()
    again = visit(browser, page.evaluate("navigator.clipboard.readText()")).page
    for column_number in (2, 5):
        assert column(again, column_number) == column(page, column_number)
    assert again.locator("thead th").nth(4).get_attribute("aria-sort") == "ascending"
    assert again.locator("thead th:visible").count() > n_columns
    assert "uniform" in column(again, 2)
    for opened in (page, again):
        opened.context.close()


def test_an_old_address_leads_to_the_page_of_its_table(browser: Browser, built: Path, address: str) -> None:
    (other,) = (path.stem for path in (built / "benchmarks" / "synthbias").glob("*.html"))
    page = visit(browser, f"{address}benchmarks/synthbias.html#{other}").page
    page.wait_for_url(f"{address}benchmarks/synthbias/{other}.html")
    assert "sentences whose grammar fits both people" in page.locator("h1").inner_text()
    page.context.close()


def test_a_long_table_is_whole_after_sorting(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    table = page.locator(".bb-table").first
    n_rows = table.evaluate(
        """(table) => {
            const body = table.querySelector("tbody:not(.bb-line)");
            for (let number = 0; number < 250; number++) {
                const row = body.rows[0].cloneNode(true);
                row.children[2].dataset.sort = String((number * 37) % 250);
                body.append(row);
            }
            return body.rows.length;
        }"""
    )
    table.locator("thead th").nth(2).locator("button").click()
    page.wait_for_function("document.querySelector('.bb-later') === null")
    shown = table.evaluate(
        """(table) => [...table.querySelector("tbody:not(.bb-line)").rows]
            .filter((row) => row.offsetHeight > 0).map((row) => row.children[2].dataset.sort)"""
    )
    values = [float(value) for value in shown if value]
    assert len(shown) == n_rows > 250
    assert values == sorted(values, reverse=True)
    page.context.close()


def test_the_keyboard_sorts_too(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    page.locator("thead button").nth(4).focus()
    page.keyboard.press("Enter")
    first = column(page, 2)
    page.keyboard.press("Space")
    assert column(page, 2) != first
    assert page.locator("thead th").nth(4).get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('th').cellIndex") > 4
    page.context.close()


def test_rows_are_filtered_and_useless_predictors_unfold(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    assert len(column(page, 2)) == 4
    page.get_by_label(re.compile("Useless predictors")).check()
    assert column(page, 2)[4:] == ["uniform", "stereotype"]
    page.get_by_label(re.compile("Useless predictors")).uncheck()
    page.get_by_label("Find").fill("LARGE")
    assert column(page, 2) == ["large"]
    page.context.close()


_DARKEST = """async (shown) => {
  const image = new Image();
  image.src = shown.src;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const data = canvas.getImageData(0, 0, image.width, image.height).data;
  let darkest = 255;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 250) darkest = Math.min(darkest, data[i + 1]);
  return darkest;
}"""
"""Returns the green of the darkest opaque pixel of a picture, from 0 to 255."""


def test_dark_mode_follows_the_system_and_the_switch(browser: Browser, address: str) -> None:
    def look(page: Page) -> tuple[str, str]:
        scheme = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        return scheme, page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = visit(browser, address).page
    dark = visit(browser, address, scheme="dark").page
    assert look(light)[0] == "default"
    assert look(dark)[0] == "slate"
    assert look(light)[1] != look(dark)[1]
    seen = {look(light)}
    for _ in range(3):
        light.locator("form[data-md-component=palette] label:visible").click()
        seen.add(look(light))
    assert {scheme for scheme, _ in seen} == {"default", "slate"}
    assert len({background for _, background in seen}) == 2
    dark.goto(address + "benchmarks/synthbias.html")
    assert dark.locator("img[src*='only-dark']").first.is_visible()
    assert not dark.locator("img[src*='only-light']").first.is_visible()
    in_light, in_dark = (
        dark.locator(f"img[src$='#only-{name}']").first.evaluate(_DARKEST) for name in ("light", "dark")
    )
    # The titles of axes in the light scheme are #21252b, and the darkest marks of the dark one are lines in #3a4150.
    assert in_light < 0x30 < 0x40 < in_dark
    light.context.close()
    dark.context.close()


def test_text_is_readable_in_both_schemes(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        page = visit(browser, address + "benchmarks/synthbias.html", scheme=scheme).page
        ratios = page.evaluate(CONTRASTS)
        assert len(ratios) > 10
        assert {what: ratio for what, ratio in ratios.items() if ratio < 4.5} == {}
        page.context.close()


CONTRASTS = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = rgb(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const element of document.querySelectorAll(".bb-board *, .bb-note, .bb-path *, .bb-legend *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("svg") || element.offsetParent === null) continue;
    const style = getComputedStyle(element);
    const text = rgb(style.color), back = behind(element);
    const alpha = (text[3] ?? 1) * Number(style.opacity);
    const seen = text.slice(0, 3).map((value, index) => alpha * value + (1 - alpha) * back[index]);
    const [low, high] = [light(seen), light(back)].sort((a, b) => a - b);
    const name = `${element.tagName}.${element.className}`;
    found[name] = Math.min(found[name] ?? 99, (high + 0.05) / (low + 0.05));
  }
  return found;
}"""


def test_every_link_of_every_page_answers(
    seen: dict[str, Seen], seen_on_phone: dict[str, Seen], browser: Browser, address: str
) -> None:
    context = browser.new_context()
    # The page for missing files is opened from anywhere, so its own links are absolute.
    all_pages = (*seen.items(), *seen_on_phone.items())
    links = {link for path, page in all_pages if path != "404.html" for link in page.links}
    own = {link for link in links if link.startswith(address)}
    assert {Path(link).suffix for link in own} >= {".parquet", ".csv", ".html"}
    assert {link: status for link in own if (status := context.request.get(link).status) != 200} == {}
    context.close()


def test_the_command_can_be_copied(browser: Browser, address: str, built: Path) -> None:
    page = visit(browser, address + result_of(built, "acme__large")).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("summary", has_text="identity, environment and command").click()
    page.locator("dd").get_by_role("button", name="Copy").last.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "python -m evaluators run --backend transformers --model acme/large --prompt intrinsic-v1"
    page.context.close()


def test_a_figure_can_be_saved_as_png(browser: Browser, address: str) -> None:
    page = visit(browser, address + "benchmarks/synthbias.html").page
    figure = page.locator("figure.bb-figure").first
    figure.locator("summary").click()
    with page.expect_download() as saving:
        figure.get_by_role("button", name="PNG").click()
    assert saving.value.suggested_filename.endswith(".png")
    assert Path(saving.value.path()).read_bytes().startswith(b"\x89PNG")
    page.context.close()


def test_names_of_strangers_are_text(browser: Browser, address: str) -> None:
    found = visit(browser, address + "models/index.html")
    # The list names a model without its maker, and by its whole id to who points at it.
    found.page.get_by_role("link", name=HOSTILE.removeprefix("evil/")).click()
    found.page.wait_for_load_state("networkidle")
    assert found.page.locator("h1").inner_text().startswith(HOSTILE.removeprefix("evil/"))
    assert HOSTILE.removeprefix("evil/") in found.page.title()
    assert HOSTILE in found.page.locator(".bb-path").inner_text()
    assert found.page.locator("img[src='x']").count() == 0
    assert found.complaints == []
    found.page.context.close()


def test_without_scripts_every_table_is_whole(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "benchmarks/synthbias.html")
    rows = page.locator(".bb-board:not(.bb-reported) .bb-table tbody tr:visible")
    # Four models, the line and the band; the band opens.
    assert rows.count() == 6
    page.get_by_label(re.compile("Useless predictors")).check()
    assert rows.count() == 8
    assert page.locator("thead th:visible").count() > 9
    assert not page.locator(".bb-controls").first.is_visible()
    context.close()


def test_without_scripts_no_page_loses_a_text_or_it_says_so(
    seen: dict[str, Seen], built: Path, browser: Browser, address: str
) -> None:
    needing = []
    for path, visited in visit_all(browser, address, pages(built), with_scripts=False):
        visited.page.evaluate(UNFOLD)
        if lost := seen[path].texts - set(visited.page.evaluate(TEXTS)):
            needing.append(path)
            assert "needs JavaScript" in visited.page.locator("main").inner_text(), f"{path}: {lost}"
    assert needing == ["answers.html", "compare.html"]


def test_what_a_column_means_is_a_key_away(browser: Browser, address: str) -> None:
    page = visit(browser, address + "index.html").page
    button = page.get_by_role("button", name="What Worst-group accuracy means")
    note = page.locator(".bb-meanings > [popover]").first
    assert note.is_hidden()
    button.focus()
    page.keyboard.press("Enter")
    assert "a coin gets 0.5" in note.inner_text()
    page.keyboard.press("Escape")
    assert note.is_hidden()
    page.context.close()


def test_the_front_page_sorts_and_keeps_what_no_skill_gets_below(browser: Browser, address: str) -> None:
    page = visit(browser, address + "index.html").page
    table = page.locator(".bb-profile-table")
    header = table.locator("thead tr >> nth=1 >> th").nth(3)
    cells = table.locator("tbody tr > :nth-child(4)")
    for direction in (1, -1):
        header.locator("button").first.click()
        values = [float(value) for value in cells.evaluate_all("all => all.map(cell => cell.dataset.sort)") if value]
        assert len(values) == 3
        assert values == sorted(values, reverse=direction < 0)
    assert "Best useless predictor" in table.locator("tfoot").inner_text()
    page.context.close()


def test_readers_choose_complete_models_and_numbers_of_intervals(browser: Browser, address: str) -> None:
    page = visit(browser, address + "index.html").page
    rows = page.locator(".bb-profile-table tbody tr:visible")
    n_all = rows.count()
    page.get_by_label("Columns").select_option("yes")
    assert 0 < rows.count() < n_all
    interval = rows.first.locator("td small").first
    assert interval.evaluate("text => getComputedStyle(text).clipPath") != "none"
    page.get_by_label("Intervals as numbers").check()
    assert interval.evaluate("text => getComputedStyle(text).clipPath") == "none"
    page.context.close()


def test_the_front_page_can_be_read_without_scripts(browser: Browser, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address + "index.html")
        assert page.locator(".bb-profile-table tbody tr:visible").count() == 4
        assert page.locator(".bb-filters").is_hidden()
        page.get_by_role("button", name="What Worst-group accuracy means").click()
        assert page.locator(".bb-meanings > [popover]").first.is_visible()


def is_of_search(url: str) -> bool:
    return url.endswith("/search_index.json")


@pytest.mark.parametrize("key", ["/", "s", None])
def test_the_index_of_the_search_is_fetched_when_it_is_opened_and_finds_a_word(
    browser: Browser, address: str, key: str | None
) -> None:
    found = visit(browser, address)
    page = found.page
    assert not any(map(is_of_search, found.requests))
    if key is None:
        page.get_by_role("textbox", name="Search").click()
    else:
        page.keyboard.press(key)
    page.keyboard.type("reweighting")
    # The hits are drawn again after each letter, so that one of an earlier list may be gone.
    page.locator(".md-search-result__link[href*='reweighting.html']").first.wait_for()
    assert "documents" in page.locator(".md-search-result__meta").inner_text()
    assert sum(map(is_of_search, found.requests)) == 1
    assert [url for url in found.requests if not url.startswith((address, "data:", "blob:"))] == []
    assert found.complaints == []
    page.context.close()


def test_a_hit_of_the_search_has_its_words_marked(browser: Browser, address: str) -> None:
    found = visit(browser, address + "reweighting.html?h=reweighting")
    found.page.locator("mark", has_text="eweighting").first.wait_for()
    assert found.complaints == []
    found.page.context.close()


def test_no_page_fetches_the_index_of_the_search(seen: dict[str, Seen]) -> None:
    assert [path for path, page in seen.items() if any(map(is_of_search, page.requests))] == []
