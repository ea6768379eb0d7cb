"""The pages of datasets: what their manifests, cards and answer keys say, and which items models miss."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from leaderboard.pages.dataset_views import BuiltDataset, built_datasets, kept_keys, make_datasets, safe_html
from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import assemble
from schemas.documents.dataset import RuleCount
from schemas.files.record_files import read_records
from tests.commands import run
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"redistributable": False, "publish_refusal": "the licence is CC BY-NC-ND; ask the owner"},
            "May be redistributed</dt><dd>no: the licence is CC BY-NC-ND; ask the owner</dd>",
        ),
        (
            {
                "rejects": (
                    RuleCount(rule="too_long", n=1_234, description="has 8 words"),
                    RuleCount(rule="x", n=1, description="y"),
                ),
                "flags": (),
            },
            r"1,235 candidates were rejected. Each is a row of <code>rejects.parquet</code>(?s:.*)"
            r">too_long</th><td[^>]*>reject</td><td[^>]*>1,234</td><td[^>]*>has 8 words</td>",
        ),
        ({"rejects": ()}, "No candidate was rejected"),
        ({}, "No model on this board was asked about this dataset"),
        (
            {"builder": "builders.x", "parameters": {"map": "group=my people"}, "seed": None},
            "with this builder, the parameters above and the sources below; not as a command to copy",
        ),
        ({"builder": "elsewhere"}, "no command is known: the builder is none of this project"),
    ],
)
def test_the_page_says_what_the_manifest_says(fields: dict[str, Any], words: str) -> None:
    assert re.search(words, page_of(**fields))


@pytest.mark.slow
def test_a_source_that_is_fetched_has_to_be_named() -> None:
    source = replace(gifi_manifest().sources[0], address="https://data.test/x.csv")
    page = page_of(builder="builders.x", parameters={}, seed=None, sources=(source,))
    assert "<pre><code>biasboard build x --input PATH</code></pre>" in page
    assert "PATH is the file or folder of the sources below" in page


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["synthbias", "gifi"])
def test_the_command_on_the_page_builds_the_same_dataset(benchmark: str, tmp_path: Path) -> None:
    def build(*words: str, out: Path) -> None:
        run("-m", "biasboard", "build", *words, "--out", out, status=0)

    further = ("--seed", "3", "--dataset-version", "1.2.0") if benchmark == "synthbias" else ()
    build(benchmark, "--limit", "200", *further, out=tmp_path / "a" / "x")
    (built,) = built_datasets(tmp_path / "a")
    view = make_view(assemble(()), (), [built])
    (data,) = view.datasets
    page = generate(view, {})[data.page.removesuffix(".html") + ".md"]
    (said,) = re.findall(r"<pre><code>(biasboard build [^<]+)</code>", page)
    build(*shlex.split(said)[2:], out=tmp_path / "b" / "x")
    (again,) = built_datasets(tmp_path / "b")
    assert again.manifest == built.manifest
    limits = (tmp_path / "a" / "x" / "README.md").read_text().partition("## Known limits\n\n* ")[2].partition("\n")[0]
    assert re.sub(r"[*`]", "", limits) in html.unescape(re.sub(r"<[^>]+>", "", page))


@pytest.mark.parametrize(
    ("builder", "parameters", "command"),
    [
        ("builders.x (some)", {"source": "some", "limit": 5, "other": 1}, "biasboard build x --source some --limit 5"),
        ("builders.x", {}, "biasboard build x"),
        ("tests", {"source": "some"}, None),
        ("builders.x; rm", {"source": "a b"}, None),
        ("builders.x", {"source": "$(id)"}, None),
        ("builders.x", {"source": "--out=x"}, None),
        ("builders.--help", {}, None),
    ],
)
def test_only_a_command_that_is_safe_to_copy_is_shown(
    builder: str, parameters: dict[str, Any], command: str | None
) -> None:
    built = BuiltDataset(gifi_manifest(builder=builder, parameters=parameters, seed=None))
    (data,) = make_datasets((), [built], ())
    assert data.command == command


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
