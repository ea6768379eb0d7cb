"""Badges: where a model stands, as a picture for other pages that nobody can misuse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from leaderboard.pages.badges import Badge, summary_badge
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.publishing import SiteSettings
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from schemas.documents.result import Model
from tests.leaderboard.forging import accepted
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    leaning,
    make_records,
    make_result,
    uniform,
    write_model,
    write_result,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'evil/"><script>alert(1)</script>](javascript:x) \u202e'


def made(root: Path, address: str | None = None, origin: str = "local") -> View:
    # Decisions about accepted results are read only where their names are checked too.
    found = load_known(Root(root, "accepted" if origin == "accepted" else "local"), any_name=origin == "local")
    return make_view(assemble(found.entries), (), (), settings=SiteSettings(address))


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    root = tmp_path_factory.mktemp("runs")
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/small", leaning(1.0, 0.5))
    write_model(root, "acme/large", leaning(2.0, 0.1))
    write_model(root, "acme/random", uniform)
    write_model(root, "acme/mute", lambda reference, other, gender, pair: None)
    write_gifi_model(root, "lab/even", 0.5)
    hostile = write_model(root / "hostile", "acme/tmp", leaning(1.0, 0.6))
    text = hostile.read_text(encoding="utf-8")
    hostile.write_text(text.replace('"acme/tmp"', json.dumps(HOSTILE)), encoding="utf-8")
    return made(root)


def badge_of(view: View, model_id: str) -> Badge:
    (badge,) = view.badges[model_id]
    return badge


@pytest.mark.slow
def test_a_ranked_model_has_its_rank_range(view: View) -> None:
    badge = badge_of(view, "acme/small")
    (row,) = (row for row in view.board.tables[-1].rows if row.entry.result.model.id == "acme/small")
    assert row.rank is not None
    assert row.rank.n_ranked == 3
    metric = row.entry.primary
    assert metric is not None
    assert metric.interval is not None
    value = f"{metric.value:.3f} [{metric.interval.low:.3f}, {metric.interval.high:.3f}]"
    assert badge.left == "Gender and occupation"
    assert badge.right == f"Worst-group accuracy {value}, rank {row.rank} of 3"
    assert badge.path == "files/badges/synthbias/acme__small.svg"
    assert badge.title == f"acme/small in synthbias 9.0.0, type2, intrinsic-v1: {badge.right}"


@pytest.mark.slow
def test_a_model_without_a_rank_says_so_instead_of_a_number(view: View) -> None:
    below, mute = badge_of(view, "acme/random"), badge_of(view, "acme/mute")
    assert below.right == "below the gate"
    assert "is no better than the baseline" in below.title
    assert mute.right == "unranked"
    assert mute.title.endswith("unranked: 0 of 100 items scored; a rank needs at least half")


def test_baselines_have_no_badge(view: View) -> None:
    assert set(view.badges) == {"acme/small", "acme/large", "acme/random", "acme/mute", "lab/even", HOSTILE}


def test_the_only_ranked_model_shows_its_value_and_interval(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    view = made(tmp_path)
    metric = view.board.tables[0].rows[0].entry.primary
    assert metric is not None
    assert metric.interval is not None
    assert badge_of(view, "acme/small").right == (
        f"Worst-group accuracy {metric.value:.3f} [{metric.interval.low:.3f}, {metric.interval.high:.3f}]"
    )


def test_a_benchmark_with_an_index_is_judged_by_it(view: View) -> None:
    badge = badge_of(view, "lab/even")
    (index,) = view.indices
    assert badge.title.startswith(f"lab/even in {index.conditions}: ")
    assert f"/{index.anchor}-" in badge.page


@pytest.mark.slow
def test_a_model_without_the_index_says_that_it_has_none(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/half", 0.5, tasks=("recognition", "word_problem"))
    badge = badge_of(made(tmp_path), "lab/half")
    assert badge.right == "unranked"
    assert "and this model has none" in badge.title


def write_identity(root: Path, name: str, bias: float, revision: str) -> None:
    records = make_records(leaning(1.0, bias))
    write_result(root / name, make_result(records, "acme/small", revision=revision), records)


@pytest.mark.slow
def test_each_identity_of_a_model_id_has_a_badge_of_its_own(tmp_path: Path) -> None:
    write_identity(tmp_path, "one", 0.5, "1" * 40)
    write_identity(tmp_path, "two", 0.2, "2" * 40)
    view = made(tmp_path)
    identities: Mapping[str, Model] = {
        row.entry.result.model.identity_sha256: row.entry.result.model for row in view.board.tables[0].rows
    }
    badges = view.badges["acme/small"]
    assert {badge.path for badge in badges} == {
        f"files/badges/synthbias/acme__small-{identity[:8]}.svg" for identity in identities
    }
    assert {re.search(r"1{10}|2{10}", badge.title) is not None for badge in badges} == {True}


@pytest.mark.slow
def test_the_preferred_of_two_contradicting_results_speaks_for_the_model(tmp_path: Path) -> None:
    # The disputed result is nearer to the ideal, so that it stands first in the table.
    write_identity(tmp_path, "lab/acme__small/better", 0.01, "1" * 40)
    write_identity(tmp_path, "lab/acme__small/worse", 0.5, "1" * 40)
    write_model(tmp_path, "acme/large", leaning(2.0, 0.1))
    accepted(tmp_path, "lab/acme__small/better", "2026-01-01")
    accepted(tmp_path, "lab/acme__small/worse", "2026-01-02", decision="preferred", reason="asked again")
    badge = badge_of(made(tmp_path, origin="accepted"), "acme/small")
    # Both models are always right.
    assert badge.right.endswith(", rank 1\N{EN DASH}2 of 2")


def test_a_badge_is_a_picture_that_says_what_it_shows(view: View) -> None:
    for badges in view.badges.values():
        for badge in badges:
            root = ElementTree.fromstring(badge.svg)
            assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
            title = root.find(f"{SVG}title")
            assert title is not None
            assert title.text == badge.title
            assert root.get("aria-label") == badge.alt
            words = [element.text for element in root.iter(f"{SVG}text")]
            assert words == [badge.left, badge.right]
            # Nothing in it can act or ask another machine.
            assert {element.tag.removeprefix(SVG) for element in root.iter()} == {"svg", "title", "rect", "g", "text"}
            names = {name for element in root.iter() for name in element.attrib}
            assert not {name for name in names if name.startswith("on") or "href" in name or name == "style"}
            assert re.findall(r"https?:[^\"]+", badge.svg) == ["http://www.w3.org/2000/svg"]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_white_words_can_be_read_on_every_colour(view: View) -> None:
    colours = {
        str(rect.get("fill"))
        for badges in view.badges.values()
        for badge in badges
        for rect in ElementTree.fromstring(badge.svg).iter(f"{SVG}rect")
    }
    assert len(colours) == 4
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour


def test_a_hostile_name_is_inert(view: View) -> None:
    badge = badge_of(view, HOSTILE)
    assert "<script" not in badge.svg
    assert r"\u202e" in badge.title
    assert "\u202e" not in badge.svg
    assert re.fullmatch(r"files/badges/synthbias/[a-z0-9._-]+\.svg", badge.path)
    line = badge.markdown("https://board.test/")
    assert re.fullmatch(
        r"\[!\[(?:[^\[\]\\]|\\.)*\]\(https://board\.test/[\w./-]+\)\]\(https://board\.test/[\w./#-]+\)", line
    )


def test_the_title_of_a_badge_has_a_limit(tmp_path: Path) -> None:
    path = write_model(tmp_path, "acme/tmp", leaning(1.0, 0.6))
    text = path.read_text(encoding="utf-8")
    unseen = "\u202e" * 200
    path.write_text(text.replace('"acme/tmp"', json.dumps(unseen)), encoding="utf-8")
    badge = badge_of(made(tmp_path), unseen)
    assert len(badge.svg) < 3_000
    assert len(badge.path) < 200


@pytest.mark.slow
def test_the_page_shows_the_badge_and_a_line_to_copy(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    for address in (None, "https://board.test/"):
        view = made(tmp_path, address)
        texts = generate(view, {})
        page, badge = texts["models/acme__small.md"], badge_of(view, "acme/small")
        assert texts[badge.path] == badge.svg
        assert f'<img src="../{badge.path}" alt="{badge.alt}"' in page
        (placement,) = view.models[0].placements
        alt = badge.alt.replace("[", r"\[").replace("]", r"\]")
        line = f"[![{alt}]({address}{badge.path})]({address}models/acme__small/{placement.anchor}.html)"
        assert (f"<code>{line}</code>" in page) is (address is not None)
        assert "](None" not in page


@pytest.mark.slow
def test_the_badge_of_a_summary_says_what_that_of_the_board_says(view: View) -> None:
    n_ranked = 0
    entries = (row.entry for table in view.board.tables for row in table.rows if not row.entry.is_baseline)
    for model in {entry.result.model.id: entry.result.model for entry in entries}.values():
        badges = {badge.left: badge for badge in view.badges[model.id]}
        for benchmark in summarise(view.board, model).benchmarks:
            drawn = ElementTree.fromstring(summary_badge(model.id, benchmark))
            badge = badges[benchmark.heading]
            assert drawn.get("aria-label") == badge.alt
            n_ranked += "rank" in badge.right
    assert n_ranked
