"""The explorer: its files say what the records say, and its page finds, compares and pages without a server's help."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.choice_keys import answers_link
from leaderboard.verify.entries import KINDS
from schemas.documents.dataset import Manifest
from schemas.files.record_files import read_records
from schemas.lexicon import pronoun_families
from tests.leaderboard.browsing import Opened, Scheme, choose, serious_violations, served, settle, visit
from tests.leaderboard.forging import Places
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.synthetic import leaning, write_model
from tests.worlds import FORBIDDEN, MadeBoard, gifi_manifest, render

CONTINUATION = load_pages("gifi").config_words("continuation")
HOSTILE = "</pre><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"> {{ x }} \u202e"


def explored(root: Path, manifests: Sequence[Manifest] = ()) -> dict[str, Any]:
    """The parsed files of the explorer by path below its folder."""
    return MadeBoard(root, built=manifests).json("files/explorer/")


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
    files = explored(tmp_path)
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
    files = explored(tmp_path)
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


@pytest.mark.slow
def test_a_value_leads_to_the_answers_behind_it(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/one", 0.5)
    made = MadeBoard(tmp_path)
    files = made.json("files/explorer/")
    (row,) = made.board.indices.tables[0].rows
    (entry,) = (entry for entry in row.entries if entry.result.signature.config == "recognition")
    link = answers_link(entry, {"family": "xe"})
    chosen = dict(parse_qsl(link.removeprefix("answers.html#")))
    (table,) = [one for one in files["tables.json"]["tables"] if one["id"] == chosen["table"]]
    assert "recognition" in table["id"]
    assert [chosen["model"]] == [one["model"] for one in table["results"]]
    assert chosen["group.family"] == "xe"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explorer")
    for name, told in (("lab/one", one_family), ("lab/two", subject)):
        write_gifi_model(root / "runs", name, 0.5, tasks=("recognition", "continuation"), told=told)
    write_model(root / "runs", "acme/unseen", leaning(1.0, 1.0))
    return render(MadeBoard(root / "runs").view, root)


@pytest.mark.slow
def test_a_site_stays_small(built: Path) -> None:
    """A page is read on a phone, and 1,000 results fit the 1 GB of a static host."""
    sizes = {path.relative_to(built).as_posix(): path.stat().st_size for path in built.rglob("*") if path.is_file()}
    assert [path for path, size in sizes.items() if path.endswith(".html") and size > 300_000] == []
    assert [path for path in sizes if path.endswith(".map") or "/lunr/" in path] == []
    frame, _, text = (built / "answers.html").read_text(encoding="utf-8").partition("<article")
    assert frame.count("\n\n") == text.rpartition("</article>")[2].count("\n\n") == 0
    listed = json.loads(gzip.decompress((built / "files/explorer/tables.json.gz").read_bytes()))
    (key,) = (model["key"] for model in listed["models"] if model["id"] == "lab/one")
    ids = [one["id"] for table in listed["tables"] for one in table["results"] if one["model"] == key]
    assert len(ids) == 2
    own = sum(size for path, size in sizes.items() if "lab__one" in path or any(name in path for name in ids))
    assert own < 1_000_000 * len(ids) / 3
    packed = [path for path in sizes if path.startswith(("files/explorer/", "files/compare/"))]
    unpacked = sum(len(gzip.decompress((built / path).read_bytes())) for path in packed)
    assert 0 < sum(sizes[path] for path in packed) < unpacked / 4


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
    def test_wrong_answers_come_first_those_of_the_worst_group_before_others(self, opened: Opened) -> None:
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

    def test_an_address_brings_back_one_wrong_answer_or_what_filters_left(self, opened: Opened) -> None:
        page = recognition(opened)

        def again() -> Page:
            other = opened(page.url.split("/")[-1])
            other.wait_for_selector(".bb-found > li")
            settle(other)
            assert said(other) == said(page)
            assert other.locator(".bb-found").inner_text() == page.locator(".bb-found").inner_text()
            return other

        n_wrong = int(said(page).split()[0])
        page.get_by_role("button", name="Show one wrong answer at random").click()
        page.wait_for_function("location.hash.includes('item=')")
        settle(page)
        assert page.locator(".bb-found > li").count() == 1
        assert "wrong: they" in page.locator(".bb-found").inner_text()
        assert again().get_by_role("button", name="Show another").is_enabled()
        page = recognition(opened)
        choose(page, "Answer", "any")
        assert 0 < n_wrong < int(said(page).split()[0])
        choose(page, "Pronoun family", "xe")
        n_xe = int(said(page).split()[0])
        assert 0 < n_xe < n_wrong
        assert page.locator(".bb-found > li").count() == min(n_xe, 20)
        filtered = again()
        filtered.locator(".bb-explorer").get_by_role("button", name="Clear").click()
        filtered.wait_for_function(
            "n => document.querySelector('[data-bb-status]').textContent.startsWith(n)", arg=f"{n_wrong} wrong"
        )

    def test_two_models_stand_side_by_side(self, opened: Opened) -> None:
        page = recognition(opened)
        choose(page, "Beside it", "two")
        first = page.locator(".bb-found > li").first
        assert first.locator("dt").all_inner_texts()[1:5:2] == ["one", "two"]
        choose(page, "Answer", "any")
        n_all = said(page)
        page.get_by_label("Only where the two differ").check()
        page.wait_for_function("before => document.querySelector('[data-bb-status]').textContent !== before", arg=n_all)
        choose(page, "Pronoun family", "they")
        assert said(page).startswith("0 of")

    def test_texts_are_searched_and_paged(self, opened: Opened) -> None:
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

    def test_files_may_come_packed_or_as_a_server_had_them_unpacked(self, opened: Opened, built: Path) -> None:
        """Some servers say of a file that ends in ``.gz`` how it was packed, and the browser unpacks it."""
        packed = recognition(opened)
        unpacked = packed.context.new_page()
        unpacked.route(
            "**/*.json.gz",
            lambda route: route.fulfill(
                body=gzip.decompress((built / urlsplit(route.request.url).path.lstrip("/")).read_bytes())
            ),
        )
        unpacked.goto(packed.url.partition("#")[0])
        unpacked.wait_for_selector(".bb-found > li")
        assert unpacked.locator(".bb-found").inner_text() == packed.locator(".bb-found").inner_text()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_fits_a_phone_passes_axe_and_needs_no_mouse(self, opened: Opened, scheme: Scheme) -> None:
        page = recognition(opened, scheme=scheme, width=390)
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

    def test_a_result_without_texts_is_not_explored_and_says_why(self, browser: Browser, tmp_path: Path) -> None:
        write_gifi_model(tmp_path / "runs", "lab/one", 0.5, tasks=("recognition",))
        made = MadeBoard(tmp_path / "runs", built=[gifi_manifest(**FORBIDDEN)])
        why = "the licence of the dataset, CC-BY-ND-4.0, forbids showing its texts"
        ((name, listed),) = made.json("files/explorer/").items()
        assert (name, [one["why_absent"] for one in listed["tables"][0]["results"]]) == ("tables.json", [why])
        with served(render(made.view, tmp_path)) as found:
            page = visit(browser, found + "answers.html").page
            page.wait_for_selector("[data-bb-absent] a")
            assert f"not shown: {why}." in page.locator("[data-bb-absent]").inner_text()
            assert page.get_by_role("combobox", name="Answer").count() == 0
            page.locator("[data-bb-absent] a").click()
            page.wait_for_url("**/models/**")
            page.context.close()

    def test_a_page_from_disk_says_why_it_is_empty(self, browser: Browser, built: Path) -> None:
        page = browser.new_page()
        page.goto(f"file://{built}/answers.html")
        page.wait_for_function("document.querySelector('[data-bb-status]').textContent.includes('biasboard serve')")
        assert page.locator(".bb-found > li").count() == 0
        page.close()
