"""The page of results that stand apart: each with its kind, the reason and what its owner can do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leaderboard.pages.rendering import View, generate, make_view
from tests.leaderboard.forging import AT_ENDPOINT, Forged, Places, accepted, asking, board, constant, forge, told
from tests.worlds import table_rows

pytestmark = pytest.mark.slow


def claiming(name: str) -> Forged:
    """An endpoint's model of a name, with an identity that another one has."""
    return told(id=name, identity_sha256="2" * 64, identity=None, **AT_ENDPOINT)


@pytest.fixture(scope="module")
def view(places: Places, tmp_path_factory: pytest.TempPathFactory) -> View:
    """One result of each kind that stands apart, and an honest one with a rank."""
    results, sliced = tmp_path_factory.mktemp("apart"), asking(n_items=100, items_sha256="1" * 64)
    shutil.copytree(places.honest, results / "honest")
    forge(places, results / "unknown", constant(0.71), model="acme/unknown", **asking(dataset="elsewhere"))
    forge(places, results / "first", constant(0.72), **claiming("acme/first"))
    forge(places, results / "second", constant(0.73), **claiming("evil/renamed"))
    forge(places, results / "slice", lambda records: records[:100], model="acme/slice", **sliced)
    forge(places, results / "slices", lambda records: records[100:], model="acme/slices", **sliced)
    forge(places, results / "withdrawn", constant(0.74), model="acme/withdrawn")
    for name, chance in (("one", 0.6), ("two", 0.61)):
        forge(places, results / f"disputed-{name}", constant(chance), model="acme/disputed")
    forge(places, results / "copy", model="evil/copy")
    for name in ("honest", "first"):
        accepted(results, name, "2026-01-01")
    accepted(results, "withdrawn", "2026-01-02", decision="withdrawn", reason="the tokenizer was wrong")
    return make_view(board(results, places), (), ())


def test_every_result_is_listed_once_under_its_kind(view: View) -> None:
    found = {group.kind: [one.entry.place for one in group.results] for group in view.apart}
    assert found == {
        "unknown": ["unknown"],
        "identity": ["second"],
        "items": ["slices"],
        "slice": ["slice"],
        "disputed": ["disputed-one", "disputed-two"],
        "repeated": ["copy"],
        "withdrawn": ["withdrawn"],
    }


def test_the_page_says_why_and_what_to_do(view: View) -> None:
    texts = generate(view, {"index.md": "<!-- generated: apart -->\n"})
    page = texts["apart.md"]
    for group in view.apart:
        assert f"## {group.heading} {{: #{group.kind} }}" in page
        assert f"<p><strong>What the owner can do.</strong> {group.remedy}</p>" in page
    assert "the board has no answer key of elsewhere@1.0.0 type2 under prompt intrinsic-v1" in page
    assert "a limited run, of 100 of 200 items: ask all of them" in page
    assert "withdrawn: the tokenizer was wrong" in page
    assert "claims the identity of acme/first" in page
    without_page = {one.entry.place for group in view.apart for one in group.results if one.page is None}
    assert without_page == {"unknown", "second", "slices"}
    shown = [one.page for group in view.apart for one in group.results if one.page is not None]
    assert len(shown) == 5
    for address in shown:
        assert address.removesuffix(".html") + ".md" in texts
        assert f'href="{address}"' in page
    assert '8 valid results have no table or no place of their own in one: <a href="apart.html">' in texts["index.md"]


def test_the_audit_page_leads_there_and_does_not_repeat_the_reasons(view: View) -> None:
    texts = generate(view, {})
    page = texts["audit.md"]
    assert "Some results stand *apart*: [their page](apart.md)" in page
    assert page.count('<a href="apart.html">Results that stand apart</a>') == 3
    assert "no answer key of" not in page
    states = [row["state"] for row in table_rows(view, "files/audit")]
    assert (states.count("apart"), len(states)) == (3, 10)
    reasons = [row["reason"] for row in table_rows(view, "files/audit") if row["state"] == "apart"]
    assert all(reasons)


def test_without_such_results_there_is_no_page_and_no_link(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "honest")
    view = make_view(board(tmp_path, places), (), ())
    texts = generate(view, {"index.md": "a\n\n<!-- generated: apart -->\n"})
    assert view.apart == ()
    assert "apart.md" not in texts
    assert texts["index.md"].strip() == "a"
    assert not [path for path in texts if re.search("apart[.](html|md)", texts[path])]
