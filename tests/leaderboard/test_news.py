"""What is new on the board, by the dates that the register states and no others."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from biasboard.ground.errors import DataError
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.news import News
from leaderboard.pages.publishing import SiteSettings
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import LeftOut, Root
from leaderboard.verify.submissions import read_register
from tests.leaderboard.forging import accepted
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_model, write_result
from tests.worlds import table_rows

ATOM = "{http://www.w3.org/2005/Atom}"


def write(root: Path, place: str, bias: float, *, model: str = "acme/small", version: str = "9.0.0") -> Path:
    records = make_records(leaning(1.0, bias))
    return write_result(root / place, make_result(records, model, dataset_version=version), records)


def view_of(root: Path, address: str | None = None, left_out: tuple[LeftOut, ...] = ()) -> View:
    board = assemble(load_known(Root(root, "accepted")).entries)
    return make_view(board, left_out, (), settings=SiteSettings(address), register=read_register(root))


def told(news: tuple[News, ...]) -> list[tuple[str, str, str]]:
    return [(one.date, one.event, one.place) for one in news]


@pytest.mark.slow
def test_acceptances_come_newest_first_with_the_state_of_today(tmp_path: Path) -> None:
    for place, bias, day in (("x/acme__small", 0.5, "2026-01-05"), ("x/acme__large", 0.1, "2026-03-01")):
        write(tmp_path, place, bias, model=place.removeprefix("x/").replace("__", "/"))
        accepted(tmp_path, place, day)
    view = view_of(tmp_path)
    assert told(view.news) == [
        ("2026-03-01", "accepted", "x/acme__large"),
        ("2026-01-05", "accepted", "x/acme__small"),
    ]
    newest = view.news[0]
    (row,) = (row for row in view.board.tables[0].rows if row.entry.place == "x/acme__large")
    assert newest.now == f"rank {row.rank} of 2"
    assert newest.model == "acme/large"
    assert newest.table == view.sections[0].name
    assert newest.page is not None
    assert newest.page.startswith("models/acme__large/synthbias-")


@pytest.mark.slow
def test_results_of_a_model_on_a_benchmark_are_one_event_and_each_stands_in_the_files(tmp_path: Path) -> None:
    for model, ambiguous in (("acme/small", False), ("acme/small", True), ("acme/large", False)):
        name = f"{model.replace('/', '__')}-{ambiguous}"
        records = make_records(leaning(1.0, 0.5 if model == "acme/small" else 0.1), ambiguous=ambiguous)
        write_result(tmp_path / "x" / name, make_result(records, model), records)
        accepted(tmp_path, f"x/{name}", "2026-01-05")
    view = view_of(tmp_path)
    texts = generate(view, {})
    heading = load_pages(view.sections[0].benchmark).heading
    assert [(one.model, one.table) for one in view.lately] == [
        ("acme/large", view.lately[0].table),
        ("acme/small", f"{heading}: 2 results"),
    ]
    assert texts["news.md"].count('<tr><th scope="row"') == texts["feed.xml"].count("<entry>") == 2
    assert "All 2 events" in texts["news.md"]
    assert len(table_rows(view, "files/news")) == 3


@pytest.mark.slow
def test_a_withdrawal_has_the_date_of_the_decision(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    accepted(tmp_path, "x/acme__small", "2026-01-05", decision="withdrawn", reason="wrong", decided="2026-02-07")
    news = view_of(tmp_path).news
    assert told(news) == [
        ("2026-02-07", "withdrawn", "x/acme__small"),
        ("2026-01-05", "accepted", "x/acme__small"),
    ]
    assert news[0].text == "wrong."
    assert news[0].now == "unranked: withdrawn on 2026-02-07: wrong"


@pytest.mark.slow
def test_a_decision_without_a_date_says_so(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    accepted(tmp_path, "x/acme__small", "2026-01-05", decision="withdrawn", reason="wrong")
    withdrawn = view_of(tmp_path).news[0]
    assert (withdrawn.date, withdrawn.event) == ("2026-01-05", "withdrawn")
    assert "The register does not say when" in withdrawn.text
    assert withdrawn.now == "unranked: withdrawn: wrong"


@pytest.mark.slow
def test_a_rerun_has_its_own_date(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    rerun = {"date": "2026-04-01", "n_items": 20, "n_agreeing": 19, "tolerance": 0.001}
    accepted(tmp_path, "x/acme__small", "2026-01-05", rerun=rerun)
    first = view_of(tmp_path).news[0]
    assert (first.date, first.event, first.text) == ("2026-04-01", "asked again", "19 of 20 answers agree.")


@pytest.mark.slow
def test_a_dispute_begins_with_the_second_result_and_ends_with_a_preference(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small/a", 0.5)
    write(tmp_path, "x/acme__small/b", 0.1)
    accepted(tmp_path, "x/acme__small/a", "2026-01-05")
    accepted(tmp_path, "x/acme__small/b", "2026-01-09")
    disputed = [one for one in view_of(tmp_path).news if one.event == "disputed"]
    assert {(one.date, one.place) for one in disputed} == {
        ("2026-01-09", "x/acme__small/a"),
        ("2026-01-09", "x/acme__small/b"),
    }
    (tmp_path / "register.json").unlink()
    accepted(tmp_path, "x/acme__small/a", "2026-01-05")
    settled = {"decision": "preferred", "reason": "asked again", "decided": "2026-01-20"}
    accepted(tmp_path, "x/acme__small/b", "2026-01-09", **settled)
    news = view_of(tmp_path).news
    assert told(news)[:2] == [
        ("2026-01-20", "replaced", "x/acme__small/a"),
        ("2026-01-20", "preferred", "x/acme__small/b"),
    ]
    assert news[0].text == "has other answers than x/acme__small/b, which a maintainer prefers."
    assert [one for one in news if one.event == "disputed"] == []


@pytest.mark.slow
def test_a_result_is_replaced_by_one_on_a_newer_dataset(tmp_path: Path) -> None:
    for version, day in (("1.0.0", "2026-01-05"), ("1.2.0", "2026-03-05"), ("1.10.0", "2026-05-05")):
        write(tmp_path, f"x/acme__small/{version}", 0.5, version=version)
        accepted(tmp_path, f"x/acme__small/{version}", day)
    replaced = [one for one in view_of(tmp_path).news if one.event == "replaced"]
    assert told(tuple(replaced)) == [
        ("2026-05-05", "replaced", "x/acme__small/1.2.0"),
        ("2026-03-05", "replaced", "x/acme__small/1.0.0"),
    ]
    assert replaced[0].text == "The model has a result on version 1.10.0 of the dataset: x/acme__small/1.10.0."


def changed(root: Path) -> None:
    path = root / "x/acme__small/result.json"
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")


def removed(root: Path) -> None:
    for path in (root / "x/acme__small").iterdir():
        path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "now"),
    [
        (changed, "its files are not those that were accepted"),
        (removed, "no longer among the results"),
    ],
)
def test_what_became_of_an_accepted_result_is_said(tmp_path: Path, change: Callable[[Path], None], now: str) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    write(tmp_path, "x/acme__large", 0.1, model="acme/large")
    accepted(tmp_path, "x/acme__small", "2026-01-05")
    change(tmp_path)
    (one,) = view_of(tmp_path).news
    assert (one.model, one.now) == ("acme/small", now)


@pytest.mark.slow
def test_a_result_that_is_left_out_says_why(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    accepted(tmp_path, "x/acme__small", "2026-01-05")
    removed(tmp_path)
    write(tmp_path, "x/acme__large", 0.1, model="acme/large")
    (one,) = view_of(tmp_path, left_out=(LeftOut("x/acme__small", "accepted", "no records"),)).news
    assert one.now == "left out: no records"


@pytest.mark.slow
def test_the_same_answers_twice_are_shown_once(tmp_path: Path) -> None:
    for place, day in (("x/acme__small/a", "2026-01-05"), ("x/acme__small/b", "2026-01-09")):
        write(tmp_path, place, 0.5)
        accepted(tmp_path, place, day)
    assert {one.place: one.now for one in view_of(tmp_path).news}["x/acme__small/b"] == (
        "not shown: repeats x/acme__small/a"
    )


@pytest.mark.slow
def test_without_dates_the_page_says_so_and_there_is_no_feed(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    texts = generate(view_of(tmp_path), {})
    assert "No date is known" in texts["news.md"]
    assert "<table" not in texts["news.md"]
    assert "feed.xml" not in texts["news.md"]
    assert not {path for path in texts if path.startswith(("feed", "files/news"))}


@pytest.mark.slow
def test_the_page_shows_the_newest_and_its_files_hold_all(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    accepted(tmp_path, "x/acme__small", "2026-01-05")
    register = json.loads((tmp_path / "register.json").read_text(encoding="utf-8"))
    (first,) = register["results"]
    for number in range(230):
        day = (datetime.date(2026, 1, 6) + datetime.timedelta(days=number)).isoformat()
        register["results"].append(first | {"place": f"x/gone{number:03d}/r", "accepted": day})
    (tmp_path / "register.json").write_text(json.dumps(register), encoding="utf-8")
    view = view_of(tmp_path, "https://board.test/")
    texts = generate(view, {})
    page = texts["news.md"]
    assert page.count('<tr><th scope="row"') == 200
    assert "The newest 200 of 231 events" in page
    assert len(table_rows(view, "files/news")) == 231
    assert len(texts["feed.xml"]) < 50_000
    assert texts["feed.xml"].count("<entry>") == 50


def feed_of(root: Path, address: str | None) -> ElementTree.Element:
    return ElementTree.fromstring(generate(view_of(root, address), {})["feed.xml"])


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, "https://board.test/x/"])
def test_the_feed_has_what_the_format_demands(tmp_path: Path, address: str | None) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    rerun = {"date": "2026-04-01", "n_items": 20, "n_agreeing": 19, "tolerance": 0.001}
    accepted(tmp_path, "x/acme__small", "2026-01-05", rerun=rerun)
    top = feed_of(tmp_path, address)
    assert top.tag == f"{ATOM}feed"
    instants = re.compile(r"\d{4}-\d\d-\d\dT00:00:00Z")
    entries = top.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}updated") for entry in entries] == ["2026-04-01T00:00:00Z", "2026-01-05T00:00:00Z"]
    for element in (top, *entries):
        # RFC 4287, 4.1.1 and 4.1.2: exactly one id, title and updated each; an author for all of them.
        for name in ("id", "title", "updated"):
            (found,) = element.findall(f"{ATOM}{name}")
            assert found.text
        assert instants.fullmatch(element.findtext(f"{ATOM}updated", ""))
        uuid.UUID(element.findtext(f"{ATOM}id", "").removeprefix("urn:uuid:"))
    assert top.findtext(f"{ATOM}author/{ATOM}name") == "biasboard"
    ids = [element.findtext(f"{ATOM}id") for element in (top, *entries)]
    assert len(set(ids)) == 3
    links = [link.get("href", "") for link in top.iter(f"{ATOM}link")]
    assert all(link.startswith(address or ("models/", "news", "feed")) for link in links)
    assert links[:2] == [f"{address or ''}feed.xml", f"{address or ''}news.html"]


@pytest.mark.slow
def test_the_feed_is_the_same_for_the_same_register(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, "x/acme__small", 0.5)
        accepted(tmp_path / name, "x/acme__small", "2026-01-05")
    one, two = (generate(view_of(tmp_path / name), {}) for name in ("one", "two"))
    assert one["feed.xml"] == two["feed.xml"]
    assert str(datetime.date.today()) not in one["feed.xml"] + one["news.md"]


@pytest.mark.slow
def test_reasons_of_maintainers_and_names_are_inert(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    hostile = "<script>alert(1)</script> & \u202e\x07"
    accepted(tmp_path, "x/acme__small", "2026-01-05", decision="withdrawn", reason=hostile, decided="2026-01-06")
    texts = generate(view_of(tmp_path), {})
    assert "<script" not in texts["news.md"]
    content = ElementTree.fromstring(texts["feed.xml"]).findtext(f"{ATOM}entry/{ATOM}content", "")
    assert content.startswith(r"<script>alert(1)</script> & \u202e\x07. Now: ")


def test_a_day_that_no_calendar_has_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "x/acme__small", 0.5)
    accepted(tmp_path, "x/acme__small", "2026-02-30")
    with pytest.raises(DataError, match="x/acme__small: '2026-02-30' is no day of the calendar"):
        read_register(tmp_path)
