"""Badges: where a model stands, as a picture for other pages that nobody can misuse."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from leaderboard.pages.badges import Badge, summary_badge
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.publishing import SiteSettings
from leaderboard.verify.entries import Root
from schemas.documents.result import Metric
from tests.leaderboard.forging import accepted
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_model, write_result
from tests.worlds import HOSTILE, MadeBoard, luminance, written_as

pytestmark = pytest.mark.slow
SVG = "{http://www.w3.org/2000/svg}"


def badge_of(made: MadeBoard, model_id: str) -> Badge:
    (badge,) = made.view.badges[model_id]
    return badge


def value_of(metric: Metric | None) -> str:
    assert metric is not None
    assert metric.interval is not None
    return f"Worst-group accuracy {metric.value:.3f} [{metric.interval.low:.3f}, {metric.interval.high:.3f}]"


def test_a_ranked_model_has_its_rank_range(strangers: MadeBoard) -> None:
    badge = badge_of(strangers, "acme/small")
    (row,) = (
        row
        for table in strangers.board.tables
        for row in table.rows
        if row.model.id == "acme/small" and row.entry.result.signature.config == "type2"
    )
    assert row.rank is not None
    assert row.rank.n_ranked == 3
    assert badge.left == "Gender and occupation"
    assert badge.right == f"{value_of(row.entry.primary)}, rank {row.rank} of 3"
    assert badge.path == "files/badges/synthbias/acme__small.svg"
    assert badge.title == f"acme/small in synthbias 9.0.0, type2, intrinsic-v1: {badge.right}"


def test_a_model_without_a_rank_says_so_instead_of_a_number_and_baselines_have_no_badge(strangers: MadeBoard) -> None:
    below, mute, by_index = (badge_of(strangers, name) for name in ("acme/random", "acme/mute", "lab/even"))
    assert below.right == "below the gate"
    assert "is no better than the baseline" in below.title
    assert mute.right == "unranked"
    assert mute.title.endswith("unranked: 0 of 100 items scored; a rank needs at least half")
    (index,) = strangers.view.indices
    assert by_index.title.startswith(f"lab/even in {index.conditions}: ")
    assert f"/{index.anchor}-" in by_index.page
    named = {f"acme/{name}" for name in ("small", "large", "random", "mute")}
    assert set(strangers.view.badges) == {*named, "lab/even", HOSTILE}


def test_a_model_without_the_index_says_that_it_has_none(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/half", 0.5, tasks=("recognition", "word_problem"))
    badge = badge_of(MadeBoard(tmp_path), "lab/half")
    assert badge.right == "unranked"
    assert "and this model has none" in badge.title


def write_identity(root: Path, name: str, bias: float, revision: str) -> None:
    records = make_records(leaning(1.0, bias))
    write_result(root / name, make_result(records, "acme/small", revision=revision), records)


def test_each_identity_of_a_model_id_has_a_badge_of_its_own(tmp_path: Path) -> None:
    write_identity(tmp_path, "one", 0.5, "1" * 40)
    write_identity(tmp_path, "two", 0.2, "2" * 40)
    made = MadeBoard(tmp_path)
    identities = {entry.result.model.identity_sha256[:8] for entry in made.entries}
    badges = made.view.badges["acme/small"]
    assert {one.path for one in badges} == {f"files/badges/synthbias/acme__small-{name}.svg" for name in identities}
    assert {re.search(r"1{10}|2{10}", badge.title) is not None for badge in badges} == {True}


def test_the_preferred_of_two_contradicting_results_speaks_for_the_model(tmp_path: Path) -> None:
    # The disputed result is nearer to the ideal, so that it stands first in the table.
    write_identity(tmp_path, "lab/acme__small/better", 0.01, "1" * 40)
    write_identity(tmp_path, "lab/acme__small/worse", 0.5, "1" * 40)
    write_model(tmp_path, "acme/large", leaning(2.0, 0.1))
    accepted(tmp_path, "lab/acme__small/better", "2026-01-01")
    accepted(tmp_path, "lab/acme__small/worse", "2026-01-02", decision="preferred", reason="asked again")
    badge = badge_of(MadeBoard(Root(tmp_path, "accepted")), "acme/small")
    # Both models are always right.
    assert badge.right.endswith(", rank 1\N{EN DASH}2 of 2")


def test_a_badge_is_a_picture_that_says_what_it_shows_and_nothing_in_it_acts(strangers: MadeBoard) -> None:
    colours = set()
    for badge in (badge for badges in strangers.view.badges.values() for badge in badges):
        root = ElementTree.fromstring(badge.svg)
        assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{SVG}svg", "img", badge.alt)
        assert root.findtext(f"{SVG}title") == badge.title
        assert [element.text for element in root.iter(f"{SVG}text")] == [badge.left, badge.right]
        assert {element.tag.removeprefix(SVG) for element in root.iter()} == {"svg", "title", "rect", "g", "text"}
        names = {name for element in root.iter() for name in element.attrib}
        assert not {name for name in names if name.startswith("on") or "href" in name or name == "style"}
        assert re.findall(r"https?:[^\"]+", badge.svg) == ["http://www.w3.org/2000/svg"]
        assert "\u202e" not in badge.svg
        colours |= {str(rect.get("fill")) for rect in root.iter(f"{SVG}rect")}
    assert len(colours) == 4
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, f"white words on {colour}"
    hostile = badge_of(strangers, HOSTILE)
    assert r"\u202e" in hostile.title
    assert re.fullmatch(r"files/badges/synthbias/[a-z0-9._-]+\.svg", hostile.path)
    assert re.fullmatch(
        r"\[!\[(?:[^\[\]\\]|\\.)*\]\(https://board\.test/[\w./-]+\)\]\(https://board\.test/[\w./#-]+\)",
        hostile.markdown("https://board.test/"),
    )


def test_the_title_of_a_badge_has_a_limit(tmp_path: Path) -> None:
    unseen = "\u202e" * 200
    written_as(write_model(tmp_path, "acme/tmp", leaning(1.0, 0.6)), unseen)
    badge = badge_of(MadeBoard(tmp_path, any_name=True), unseen)
    assert len(badge.svg) < 3_000
    assert len(badge.path) < 200


@pytest.mark.parametrize("address", [None, "https://board.test/"])
def test_the_page_shows_the_badge_and_a_line_to_copy(tmp_path: Path, address: str | None) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    made = MadeBoard(tmp_path, settings=SiteSettings(address))
    page, badge = made.texts["models/acme__small.md"], badge_of(made, "acme/small")
    assert made.texts[badge.path] == badge.svg
    assert f'<img src="../{badge.path}" alt="{badge.alt}"' in page
    (placement,) = made.view.models[0].placements
    # The only ranked model has no rank to show.
    assert badge.right == value_of(placement.row.entry.primary)
    alt = badge.alt.replace("[", r"\[").replace("]", r"\]")
    line = f"[![{alt}]({address}{badge.path})]({address}models/acme__small/{placement.anchor}.html)"
    assert (f"<code>{line}</code>" in page) is (address is not None)
    assert "](None" not in page


def test_the_badge_of_a_summary_says_what_that_of_the_board_says(strangers: MadeBoard) -> None:
    n_ranked = 0
    for model in {entry.result.model.id: entry.result.model for entry in strangers.entries}.values():
        badges = {badge.left: badge for badge in strangers.view.badges.get(model.id, ())}
        for benchmark in summarise(strangers.board, model).benchmarks if badges else ():
            drawn = ElementTree.fromstring(summary_badge(model.id, benchmark))
            badge = badges[benchmark.heading]
            assert drawn.get("aria-label") == badge.alt
            n_ranked += "rank" in badge.right
    assert n_ranked
