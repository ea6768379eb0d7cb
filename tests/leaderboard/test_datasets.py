"""The pages of datasets: what their manifests, cards and answer keys say, and which items models miss."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from leaderboard.pages.dataset_views import BuiltDataset, kept_keys, safe_html
from leaderboard.pages.publishing import generate, make_view
from leaderboard.ranking.boards import assemble
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.record_files import read_records
from tests.worlds import MadeBoard, gifi_manifest

PAGE = "datasets/gifi-1.0.0.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("missed") / "runs"
    for name in ("lab/one", "lab/two"):
        write_gifi_model(root, name, 0.5, tasks=("recognition", "continuation"), n_templates=4)
    return root


def page_of(path: str = PAGE, **fields: Any) -> str:
    """The page of a dataset that no result is on."""
    return generate(make_view(assemble(()), (), [BuiltDataset(gifi_manifest(**fields))]), {})[path]


@pytest.mark.slow
def test_a_dataset_that_is_not_here_shows_what_results_and_keys_tell(runs: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys", runs)
    made = MadeBoard(runs, keys=kept_keys(keys))
    page = made.texts[PAGE]
    assert "This dataset is not on the machine that built the site." in page
    assert "Sources" not in page
    assert "Licence" not in page
    assert "The board keeps 2 answer keys of this dataset" in page
    rows = made.rows("files/dataset-gifi-1.0.0-keys")
    for row in rows:
        key = strict_json.read(keys / "gifi@1.0.0" / f"{row['config']}-{row['task']}-{row['prompt']}.json")
        assert isinstance(key, dict)
        assert row["key_sha256"] == strict_json.sha256(key)
        assert row["key_sha256"][:12] in page
    n_items = len(read_records(runs / "lab__one" / "recognition" / "records.parquet"))
    assert {row["n_items"] for row in rows} == {n_items}
    for path, link in (("data.md", ""), ("benchmarks/gifi.md", "../")):
        assert f'href="{link}datasets/gifi-1.0.0.html"' in made.texts[path]
    (row,) = made.rows("files/datasets")
    assert row["page"] == "datasets/gifi-1.0.0.html"
    assert (row["dataset"], row["n_results"], row["licence"]) == ("gifi", 4, None)
    for sha256, is_other in (("0" * 64, False), ("1" * 64, True)):
        other = MadeBoard(*made.entries, keys=kept_keys(keys), built=[gifi_manifest(content_sha256=sha256)])
        assert ("has other contents than the one that the answer keys" in other.texts[PAGE]) is is_other


def test_the_page_says_what_the_manifest_says() -> None:
    page = page_of(redistributable=False, publish_refusal="the licence is CC BY-NC-ND; ask the owner")
    assert "May be redistributed</dt><dd>no: the licence is CC BY-NC-ND; ask the owner</dd>" in page


def test_cards_of_strangers_cannot_act() -> None:
    parts = (
        "a <img src=x onerror=alert(1)> <script>x</script> [l](javascript:x) ![p](http://e.test) <http://e.test> &#60;",
        "* one\n\n  two `c` **b**",
        "# head",
        "    indented",
        "Counts:\n\n| a | b |\n| --- | --- |",
        "\u202eback\x1b",
        "```\n\nx\n```\n",
    )
    shown = str(safe_html("\n\n".join(parts)))
    assert set(re.findall(r"</?(\w+)", shown)) <= {"p", "ul", "li", "code", "strong"}
    assert "\n" not in shown
    assert "\\u202eback\\x1b" in shown
    assert "<strong>b</strong>" in shown
    assert "---" not in shown
    assert "Counts" not in shown
