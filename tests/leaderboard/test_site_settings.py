"""Who runs a board, and where, is said once in the settings of its site, and from there on every page."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from biasboard.ground.errors import ConfigError
from leaderboard.pages import publishing
from leaderboard.pages.publishing import SiteSettings, site_settings
from leaderboard.verify.entries import Root
from leaderboard.verify.submissions import read_register
from tests.commands import REPOSITORY
from tests.leaderboard.forging import accepted
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_result
from tests.worlds import MadeBoard, copy_site, render

pytestmark = pytest.mark.slow

OURS = SiteSettings("https://board.test/x/", "https://code.test/lab/board", "https://code.test/lab/board/issues")
SETTINGS = """
site_url: https://board.test/x
repo_url: https://code.test/lab/board
extra:
  contact: https://code.test/lab/board/issues
"""


def test_settings_are_those_of_mkdocs_and_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    none = ("site_url:", "extra:\n  anything: !!python/name:module.function")
    for lines, said in (*((one, SiteSettings()) for one in none), (SETTINGS, OURS)):
        (tmp_path / "mkdocs.yml").write_text(f"site_name: x\n{lines}\nnav: []\n", encoding="utf-8")
        assert site_settings(tmp_path) == said
    for line, complaint in (
        ("site_url: javascript:alert(1)", "site_url: 'javascript:alert(1)' is no address of a website"),
        ("site_url: 'https://board.test/<b>'", "site_url: 'https://board.test/<b>' is no address of a website"),
        ("extra: {contact: the lab}", "extra: contact: 'the lab' is no address of a website"),
        ("extra: [", "correct the settings of the site"),
    ):
        (tmp_path / "mkdocs.yml").write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=re.escape(complaint)) as caught:
            site_settings(tmp_path)
        assert "\n" not in str(caught.value)


def pages(settings: SiteSettings, root: Path | None = None) -> dict[str, str]:
    roots, register = ([], None) if root is None else ([Root(root, "accepted")], read_register(root))
    handwritten = publishing.handwritten_pages(REPOSITORY / "site")
    return MadeBoard(*roots, pages=handwritten, settings=settings, register=register).texts


def test_the_front_page_says_who_and_when_and_the_guide_installs_from_the_repository(tmp_path: Path) -> None:
    for name, bias, day in (("small", 0.5, "2026-01-05"), ("large", 0.1, "2026-03-01")):
        records = make_records(leaning(1.0, bias))
        write_result(tmp_path / f"x/acme__{name}", make_result(records, f"acme/{name}"), records)
        accepted(tmp_path, f"x/acme__{name}", day)
    texts = pages(OURS, tmp_path)
    for words in (
        "Results accepted from 2026-01-05 to 2026-03-01 ·",
        '<a href="https://code.test/lab/board">',
        '<a href="https://code.test/lab/board/issues">Contact</a>',
    ):
        assert words in texts["index.md"]
    assert "pip install 'biasboard[hf,scorers,site] @ git+https://code.test/lab/board'\n" in texts["adding.md"]
    assert "ask whoever" not in texts["adding.md"]
    mail = pages(SiteSettings(contact="board@lab.test"))
    assert '<a href="mailto:board@lab.test">Contact</a>' in mail["index.md"]
    # What the settings do not say is not said, and the guide says whom to ask.
    nothing = pages(SiteSettings())
    assert "Contact</a>" not in nothing["index.md"]
    assert "accepted from" not in nothing["index.md"]
    assert "@ git+ADDRESS'\n```\n\n`ADDRESS` is that of the repository" in nothing["adding.md"]
    assert "ask whoever runs it." in nothing["adding.md"]


def meta(page: str) -> dict[str, str]:
    return dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):[^"]*)" content="([^"]*)">', page))


def test_the_site_of_a_fork_says_its_own_on_all_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795900000")
    site = copy_site(tmp_path / "fork")
    with (site / "mkdocs.yml").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS.replace("https://code.test/lab/board/issues", "board@lab.test"))
    built = render(MadeBoard().view, tmp_path / "fork", site=site)
    for name in ("index.html", "models/index.html", "scoring.html"):
        page = (built / name).read_text(encoding="utf-8")
        foot = page[page.index("<footer") :]
        assert 'href="https://code.test/lab/board"' in foot
        assert 'href="mailto:board@lab.test"' in foot
        assert "Built on 2026-11-28." in foot
        # What asks a host for its stars is found by this.
        assert 'data-md-component="source"' not in page
        shown = meta(page)
        assert shown["og:title"] == shown["twitter:title"] != ""
        assert shown["og:description"].startswith("Bias benchmarks")
        assert shown["og:url"] == f"https://board.test/x/{name}"
    places = {one.text for one in ElementTree.parse(built / "sitemap.xml").iter() if one.tag.endswith("}loc")}
    assert "https://board.test/x/scoring.html" in places
    assert {(built / str(place).removeprefix("https://board.test/x/")).is_file() for place in places} == {True}
