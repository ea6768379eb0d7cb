"""What is new on the board, by the dates that the register states and no others."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from biasboard.ground.errors import DataError
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.publishing import SiteSettings
from leaderboard.verify.entries import LeftOut, Root
from leaderboard.verify.submissions import read_register
from tests.leaderboard.forging import accepted
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_result
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow

ATOM = "{http://www.w3.org/2005/Atom}"


SMALL, LARGE = "x/acme__small", "x/acme__large"


def write(root: Path, place: str, bias: float = 0.5, *, version: str = "9.0.0") -> Path:
    """Write a result of the model that its folder names."""
    records, model = make_records(leaning(1.0, bias)), place.split("/")[1].replace("__", "/")
    return write_result(root / place, make_result(records, model, dataset_version=version), records)


def take(root: Path, place: str, day: str, bias: float = 0.5, *, version: str = "9.0.0", **decision: Any) -> None:
    """Write a result and enter it into the register."""
    write(root, place, bias, version=version)
    accepted(root, place, day, **decision)


def board_of(root: Path, address: str | None = None, left_out: tuple[LeftOut, ...] = ()) -> MadeBoard:
    settings = SiteSettings(address)
    return MadeBoard(Root(root, "accepted"), left_out=left_out, settings=settings, register=read_register(root))


def told(root: Path, *events: str) -> list[tuple[str, str, str]]:
    return [(one.date, one.event, one.place) for one in board_of(root).view.news if not events or one.event in events]


def test_acceptances_come_newest_first_with_the_state_of_today(tmp_path: Path) -> None:
    take(tmp_path, SMALL, "2026-01-05")
    take(tmp_path, LARGE, "2026-03-01", 0.1)
    assert told(tmp_path) == [("2026-03-01", "accepted", LARGE), ("2026-01-05", "accepted", SMALL)]
    view = board_of(tmp_path).view
    newest = view.news[0]
    (row,) = (row for row in view.board.tables[0].rows if row.entry.place == LARGE)
    assert newest.now == f"rank {row.rank} of 2"
    assert (newest.model, newest.table) == ("acme/large", view.sections[0].name)
    assert str(newest.page).startswith("models/acme__large/synthbias-")


def test_results_of_a_model_on_a_benchmark_are_one_event_and_each_stands_in_the_files(tmp_path: Path) -> None:
    for model, ambiguous in (("acme/small", False), ("acme/small", True), ("acme/large", False)):
        name = f"{model.replace('/', '__')}-{ambiguous}"
        records = make_records(leaning(1.0, 0.5 if model == "acme/small" else 0.1), ambiguous=ambiguous)
        write_result(tmp_path / "x" / name, make_result(records, model), records)
        accepted(tmp_path, f"x/{name}", "2026-01-05")
    made = board_of(tmp_path)
    heading = load_pages(made.view.sections[0].benchmark).heading
    large, small = made.view.lately
    assert (large.model, small.model, small.table) == ("acme/large", "acme/small", f"{heading}: 2 results")
    assert made.texts["news.md"].count('<tr><th scope="row"') == made.texts["feed.xml"].count("<entry>") == 2
    assert "All 2 events" in made.texts["news.md"]
    assert len(made.rows("files/news")) == 3


RERUN = {"date": "2026-04-01", "n_items": 20, "n_agreeing": 19, "tolerance": 0.001}
WITHDRAWN = {"decision": "withdrawn", "reason": "wrong"}


@pytest.mark.parametrize(
    ("decision", "date", "event", "text", "now"),
    [
        (
            {**WITHDRAWN, "decided": "2026-02-07"},
            *("2026-02-07", "withdrawn", "wrong.", "unranked: withdrawn on 2026-02-07: wrong"),
        ),
        (
            WITHDRAWN,
            *("2026-01-05", "withdrawn", "The register does not say when", "unranked: withdrawn: wrong"),
        ),
        ({"rerun": RERUN}, "2026-04-01", "asked again", "19 of 20 answers agree.", "rank 1 of 1"),
    ],
    ids=["withdrawn", "withdrawn at an unknown date", "asked again"],
)
def test_a_decision_has_a_date_of_its_own(
    tmp_path: Path, decision: dict[str, Any], date: str, event: str, text: str, now: str
) -> None:
    take(tmp_path, SMALL, "2026-01-05", **decision)
    first, last = board_of(tmp_path).view.news
    assert (first.date, first.event, first.now) == (date, event, now)
    assert text in first.text
    assert (last.date, last.event) == ("2026-01-05", "accepted")


def test_a_dispute_begins_with_the_second_result_and_ends_with_a_preference(tmp_path: Path) -> None:
    first, second = f"{SMALL}/a", f"{SMALL}/b"
    take(tmp_path, first, "2026-01-05")
    take(tmp_path, second, "2026-01-09", 0.1)
    assert {*told(tmp_path, "disputed")} == {("2026-01-09", "disputed", one) for one in (first, second)}
    (tmp_path / "register.json").unlink()
    accepted(tmp_path, first, "2026-01-05")
    settled = {"decision": "preferred", "reason": "asked again", "decided": "2026-01-20"}
    accepted(tmp_path, second, "2026-01-09", **settled)
    assert told(tmp_path)[:2] == [("2026-01-20", "replaced", first), ("2026-01-20", "preferred", second)]
    assert told(tmp_path, "disputed") == []
    text = board_of(tmp_path).view.news[0].text
    assert text == f"has other answers than {second}, which a maintainer prefers."


def test_a_result_is_replaced_by_one_on_a_newer_dataset(tmp_path: Path) -> None:
    for version, day in (("1.0.0", "2026-01-05"), ("1.2.0", "2026-03-05"), ("1.10.0", "2026-05-05")):
        take(tmp_path, f"{SMALL}/{version}", day, version=version)
    replaced = [("2026-05-05", "replaced", f"{SMALL}/1.2.0"), ("2026-03-05", "replaced", f"{SMALL}/1.0.0")]
    assert told(tmp_path, "replaced") == replaced
    text = next(one.text for one in board_of(tmp_path).view.news if one.event == "replaced")
    assert text == f"The model has a result on version 1.10.0 of the dataset: {SMALL}/1.10.0."


def changed(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "left_out", "now"),
    [
        (changed, (), "its files are not those that were accepted"),
        (Path.unlink, (), "no longer among the results"),
        (Path.unlink, (LeftOut(SMALL, "accepted", "no records"),), "left out: no records"),
    ],
)
def test_what_became_of_an_accepted_result_is_said(
    tmp_path: Path, change: Callable[[Path], None], left_out: tuple[LeftOut, ...], now: str
) -> None:
    take(tmp_path, SMALL, "2026-01-05")
    write(tmp_path, LARGE, 0.1)
    change(tmp_path / SMALL / "result.json")
    (one,) = board_of(tmp_path, left_out=left_out).view.news
    assert (one.model, one.now) == ("acme/small", now)


def test_the_same_answers_twice_are_shown_once(tmp_path: Path) -> None:
    take(tmp_path, f"{SMALL}/a", "2026-01-05")
    take(tmp_path, f"{SMALL}/b", "2026-01-09")
    now = {one.place: one.now for one in board_of(tmp_path).view.news}
    assert now[f"{SMALL}/b"] == f"not shown: repeats {SMALL}/a"


def test_without_dates_the_page_says_so_and_there_is_no_feed(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    texts = board_of(tmp_path).texts
    assert "No date is known" in texts["news.md"]
    assert "<table" not in texts["news.md"]
    assert "feed.xml" not in texts["news.md"]
    assert not {path for path in texts if path.startswith(("feed", "files/news"))}


def test_the_page_shows_the_newest_and_its_files_hold_all(tmp_path: Path) -> None:
    take(tmp_path, SMALL, "2026-01-05")
    register = json.loads((tmp_path / "register.json").read_text(encoding="utf-8"))
    (first,) = register["results"]
    for number in range(230):
        day = (datetime.date(2026, 1, 6) + datetime.timedelta(days=number)).isoformat()
        register["results"].append(first | {"place": f"x/gone{number:03d}/r", "accepted": day})
    (tmp_path / "register.json").write_text(json.dumps(register), encoding="utf-8")
    made = board_of(tmp_path, "https://board.test/")
    assert made.texts["news.md"].count('<tr><th scope="row"') == 200
    assert "The newest 200 of 231 events" in made.texts["news.md"]
    assert len(made.rows("files/news")) == 231
    assert len(made.texts["feed.xml"]) < 50_000
    assert made.texts["feed.xml"].count("<entry>") == 50


@pytest.mark.parametrize("address", [None, "https://board.test/x/"])
def test_the_feed_has_what_the_format_demands_and_no_date_of_a_clock(tmp_path: Path, address: str | None) -> None:
    for name in ("one", "two"):
        take(tmp_path / name, SMALL, "2026-01-05", rerun=RERUN)
    texts, again = (board_of(tmp_path / name, address).texts for name in ("one", "two"))
    assert texts["feed.xml"] == again["feed.xml"]
    assert str(datetime.date.today()) not in texts["feed.xml"] + texts["news.md"]
    top = ElementTree.fromstring(texts["feed.xml"])
    assert top.tag == f"{ATOM}feed"
    entries = top.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}updated") for entry in entries] == ["2026-04-01T00:00:00Z", "2026-01-05T00:00:00Z"]
    for element in (top, *entries):
        # RFC 4287, 4.1.1 and 4.1.2: exactly one id, title and updated each; an author for all of them.
        for name in ("id", "title", "updated"):
            (found,) = element.findall(f"{ATOM}{name}")
            assert found.text
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", element.findtext(f"{ATOM}updated", ""))
        uuid.UUID(element.findtext(f"{ATOM}id", "").removeprefix("urn:uuid:"))
    assert top.findtext(f"{ATOM}author/{ATOM}name") == "biasboard"
    assert len({element.findtext(f"{ATOM}id") for element in (top, *entries)}) == 3
    links = [link.get("href", "") for link in top.iter(f"{ATOM}link")]
    assert all(link.startswith(address or ("models/", "news", "feed")) for link in links)
    assert links[:2] == [f"{address or ''}feed.xml", f"{address or ''}news.html"]


def test_reasons_of_maintainers_and_names_are_inert(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> & \u202e\x07"
    take(tmp_path, SMALL, "2026-01-05", decision="withdrawn", reason=hostile, decided="2026-01-06")
    texts = board_of(tmp_path).texts
    assert "<script" not in texts["news.md"]
    content = ElementTree.fromstring(texts["feed.xml"]).findtext(f"{ATOM}entry/{ATOM}content", "")
    assert content.startswith(r"<script>alert(1)</script> & \u202e\x07. Now: ")


def test_a_day_that_no_calendar_has_is_refused(tmp_path: Path) -> None:
    take(tmp_path, SMALL, "2026-02-30")
    with pytest.raises(DataError, match=f"{SMALL}: '2026-02-30' is no day of the calendar"):
        read_register(tmp_path)
