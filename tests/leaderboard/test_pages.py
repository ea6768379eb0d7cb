"""The texts of the site, and badges: where a model stands, as a picture for other pages that nobody can misuse."""

from __future__ import annotations

import html
import json
import re
from itertools import chain
from pathlib import Path
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest
import yaml

from biasboard.ground.errors import ConfigError
from leaderboard.pages.badges import Badge, summary_badge
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.publishing import SiteSettings, generate
from schemas.documents.result import Metric
from tests.leaderboard.synthetic import leaning, write_model
from tests.worlds import HOSTILE, MadeBoard, luminance

pytestmark = pytest.mark.slow


def test_text_of_strangers_cannot_act(strangers: MadeBoard) -> None:
    pages = {path: text for path, text in strangers.texts.items() if path.endswith(".md")}
    assert any("alert" in text for text in pages.values())
    for path, text in pages.items():
        assert "<script" not in text, path
        assert "<b>0.999" not in text, path
        # The theme prints titles as they are; headings are read as Markdown first.
        for line in text.splitlines():
            if line.startswith("title:") and "evil" in line:
                assert not re.search(r"[<>]", line), line
            if line.startswith("#") and "evil" in line:
                assert not re.search(r"[<>`*{}\[\]]", line.partition("{: #")[0]), line
        if path != "index.md":
            assert isinstance(yaml.safe_load(text.split("---\n")[1])["title"], str)


def links_of(path: str, text: str) -> list[tuple[str, str]]:
    """Links of a page, or of a file that the pages at the root of the site read."""
    if path.endswith(".md"):
        return [(path, target) for target in re.findall(r'(?:href|src)="(?!https://)([^"]+)"', text)]
    found = re.findall(r'"([^" ]+\.html(?:#[^"]*)?)"', text) if path.endswith(".json") else []
    return [(Path(path).name, target) for target in found]


def test_every_link_and_picture_leads_somewhere(strangers: MadeBoard) -> None:
    n_links = {".md": 0, ".json": 0}
    texts, files = strangers.texts, {*strangers.parquet, *strangers.downloads}
    compared = json.loads(texts["files/compare/models.json"])
    keys = {name for one in compared["models"] for name in (one["key"], one["id"])}
    assert all(len({result["model"] for result in table["results"]}) > 1 for table in compared["tables"])
    for path, target in chain.from_iterable(links_of(*each) for each in texts.items()):
        address, _, fragment = target.partition("#")
        place = (Path("/") / path).parent.joinpath(address).resolve() if address else Path("/") / path
        source = place.relative_to("/").as_posix()
        source = source.removesuffix(".html") + ".md" if source.endswith(".html") else source
        assert source in texts or source in files, f"{path}: {target}"
        if "=" in fragment:  # A choice on a page, which is about a result with files of its own.
            chosen = dict(parse_qsl(html.unescape(fragment)))
            assert chosen.get("model", chosen.get("models")) in keys, f"{path}: {target}"
        elif fragment and not fragment.startswith("only-"):
            assert f"#{fragment} " in texts[source] or f'id="{fragment}"' in texts[source], f"{path}: {target}"
        n_links[Path(path).suffix] += 1
    assert min(n_links.values()) >= 10


def test_a_baseline_has_a_page_but_no_files_and_generated_blocks_are_put_in(strangers: MadeBoard) -> None:
    """They were most of a site, and one command makes them again."""
    files = {*strangers.texts, *strangers.parquet, *strangers.downloads}
    assert not [path for path in files if path.startswith("models/baseline")]
    for name, has_files in (("baseline/uniform", False), ("acme/small", True)):
        (shown,) = (model for model in strangers.view.models if model.id == name)
        assert shown.is_baseline is not has_files
        for placement in shown.placements:
            assert bool(placement.answers.groups) is has_files
            assert any(path.startswith(placement.files.stem) for path in files) is has_files
    page = strangers.texts["index.md"]
    assert "generated:" not in page
    assert "acme/small" in page
    assert "bb-examples" in page
    known = "about, examples, findings, install, leaders, licences, profile"
    with pytest.raises(ConfigError, match=rf"site/docs/x.md: no generated block 'ranking'; have: {known}"):
        generate(strangers.view, {"x.md": "<!-- generated: ranking -->\n"})
    with pytest.raises(ConfigError, match=r"site/docs/audit\.md: a generated page has this name"):
        generate(strangers.view, {"audit.md": "# mine"})


def test_charts_have_the_colours_of_both_schemes_and_files_stay_the_same(strangers: MadeBoard, tmp_path: Path) -> None:
    charts = {path: text for path, text in strangers.texts.items() if path.startswith("charts/")}
    assert charts
    for path, text in charts.items():
        addresses = set(re.findall(r"https?://[^\"' )]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, path
        style, _, drawing = text.partition("</style>")
        painted = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', drawing))
        dark = dict(
            re.findall(r':target \[(?:fill|stroke)="(#[0-9a-f]{6})"\]\{(?:fill|stroke):(#[0-9a-f]{6})\}', style)
        )
        assert painted == dark.keys(), path
        assert painted.isdisjoint(dark.values()), path
    again = strangers.again(tmp_path)
    assert again.texts.keys() == strangers.texts.keys()
    assert [path for path in again.texts if again.texts[path] != strangers.texts[path]] == []
    assert again.parquet == strangers.parquet


SVG = "{http://www.w3.org/2000/svg}"


def badge_of(made: MadeBoard, model_id: str) -> Badge:
    (badge,) = made.view.badges[model_id]
    return badge


def value_of(metric: Metric | None) -> str:
    assert metric is not None
    assert metric.interval is not None
    return f"Worst-group accuracy {metric.value:.3f} [{metric.interval.low:.3f}, {metric.interval.high:.3f}]"


def test_a_model_has_its_rank_range_or_says_why_not_and_baselines_have_no_badge(strangers: MadeBoard) -> None:
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


def test_the_page_shows_the_badge_and_a_line_to_copy(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    made = MadeBoard(tmp_path, settings=SiteSettings("https://board.test/"))
    page, badge = made.texts["models/acme__small.md"], badge_of(made, "acme/small")
    assert made.texts[badge.path] == badge.svg
    assert f'<img src="../{badge.path}" alt="{badge.alt}"' in page
    (placement,) = made.view.models[0].placements
    # The only ranked model has no rank to show.
    assert badge.right == value_of(placement.row.entry.primary)
    alt, address = badge.alt.replace("[", r"\[").replace("]", r"\]"), "https://board.test"
    assert f"<code>[![{alt}]({address}/{badge.path})]({address}/models/acme__small/{placement.anchor}.html)" in page


def test_a_badge_says_what_it_shows_and_what_a_summary_says_and_nothing_in_it_acts(strangers: MadeBoard) -> None:
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
    n_ranked = 0
    for model in {entry.result.model.id: entry.result.model for entry in strangers.entries}.values():
        badges = {badge.left: badge for badge in strangers.view.badges.get(model.id, ())}
        for benchmark in summarise(strangers.board, model).benchmarks if badges else ():
            drawn = ElementTree.fromstring(summary_badge(model.id, benchmark))
            badge = badges[benchmark.heading]
            assert drawn.get("aria-label") == badge.alt
            n_ranked += "rank" in badge.right
    assert n_ranked
