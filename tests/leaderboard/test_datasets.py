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
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from schemas.documents.dataset import Manifest, RuleCount
from schemas.files.record_files import read_records
from schemas.lexicon import pronoun_families
from tests.commands import run
from tests.leaderboard.gifi_results import chance, write_gifi_model
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import uniform, write_model
from tests.schemas.examples import items, manifest
from tests.worlds import table_rows

PAGE = "datasets/gifi-1.0.0.md"


def view_of(runs: Path, datasets: Path = Path("none"), keys: Path = Path("none"), origin: Any = "local") -> View:
    board = assemble(load_known(Root(runs, origin)).entries)
    return make_view(board, (), built_datasets(datasets), keys=kept_keys(keys))


def told(**fields: Any) -> Manifest:
    return replace(manifest(items()), name="gifi", version="1.0.0", **fields)


def of_manifest(runs: Path, terms: Manifest) -> str:
    view = make_view(assemble(load_known(Root(runs, "local")).entries), (), [BuiltDataset(terms)])
    return generate(view, {})[PAGE]


def recognises(share: float, salt: str) -> Any:
    def answer(item: Any) -> list[str]:
        if chance(salt, item.item_id, "refuses") < 0.1:
            return ["I'm sorry, but I cannot do that."]
        right = chance(salt, item.item_id) < share
        return [f"and {pronoun_families()[item.family].forms['nominative']} left." if right else "It rains."]

    return answer


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models that miss other items each."""
    root = tmp_path_factory.mktemp("missed") / "runs"
    for name, share in (("lab/one", 0.3), ("lab/two", 0.6), ("lab/three", 0.9)):
        write_gifi_model(root, name, share, tasks=("recognition", "continuation"), told=recognises(share, name))
    return root


@pytest.fixture(scope="module")
def view(runs: Path) -> View:
    return view_of(runs)


@pytest.fixture(scope="module")
def texts(view: View) -> dict[str, str]:
    return generate(view, {})


@pytest.mark.slow
def test_the_page_says_why_a_dataset_may_not_be_redistributed(runs: Path) -> None:
    page = of_manifest(runs, told(redistributable=False, publish_refusal="the licence is CC BY-NC-ND; ask the owner"))
    assert "May be redistributed</dt><dd>no: the licence is CC BY-NC-ND; ask the owner</dd>" in page


@pytest.mark.slow
def test_a_dataset_that_is_not_here_shows_what_results_and_keys_tell(runs: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys", runs)
    view = view_of(runs, keys=keys)
    texts = generate(view, {})
    page = texts[PAGE]
    assert "This dataset is not on the machine that built the site." in page
    assert "Sources" not in page
    assert "Licence" not in page
    assert "The board keeps 2 answer keys of this dataset" in page
    rows = table_rows(view, "files/dataset-gifi-1.0.0-keys")
    for row in rows:
        key = strict_json.read(keys / "gifi@1.0.0" / f"{row['config']}-{row['task']}-{row['prompt']}.json")
        assert isinstance(key, dict)
        assert row["key_sha256"] == strict_json.sha256(key)
        assert row["key_sha256"][:12] in page
    assert {row["n_items"] for row in rows} == {
        len(read_records(runs / "lab__one" / "recognition" / "records.parquet"))
    }


@pytest.mark.slow
def test_contents_other_than_those_of_the_keys_are_told(runs: Path, tmp_path: Path) -> None:
    keys = kept_keys(write_keys(tmp_path / "keys", runs))
    board = assemble(load_known(Root(runs, "local")).entries)
    for sha256, is_other in (("0" * 64, False), ("1" * 64, True)):
        page = generate(make_view(board, (), [BuiltDataset(told(content_sha256=sha256))], keys=keys), {})[PAGE]
        assert ("has other contents than the one that the answer keys" in page) is is_other


@pytest.mark.slow
def test_rules_are_shown_with_their_numbers(runs: Path) -> None:
    rejects = (
        RuleCount(rule="too_long", n=1_234, description="has 8 words"),
        RuleCount(rule="x", n=1, description="y"),
    )
    page = of_manifest(runs, told(rejects=rejects, flags=()))
    assert "1,235 candidates were rejected. Each is a row of <code>rejects.parquet</code>" in page
    assert re.search(r">too_long</th><td[^>]*>reject</td><td[^>]*>1,234</td><td[^>]*>has 8 words</td>", page)
    assert "No candidate was rejected." in of_manifest(runs, told(rejects=()))


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["synthbias", "gifi"])
def test_the_command_on_the_page_builds_the_same_dataset(benchmark: str, tmp_path: Path) -> None:
    def build(*words: str, out: Path) -> None:
        run("-m", "biasboard", "build", *words, "--out", out, status=0)

    further = ("--seed", "3", "--dataset-version", "1.2.0") if benchmark == "synthbias" else ()
    build(benchmark, "--limit", "200", *further, out=tmp_path / "a" / "x")
    write_model(tmp_path / "runs", "acme/small", uniform)
    view = view_of(tmp_path / "runs", tmp_path / "a")
    data = next(one for one in view.datasets if one.manifest is not None)
    assert data.manifest is not None
    page = generate(view, {})[data.page.removesuffix(".html") + ".md"]
    (said,) = re.findall(r"<pre><code>(biasboard build [^<]+)</code>", page)
    build(*shlex.split(said)[2:], out=tmp_path / "b" / "x")
    (again,) = built_datasets(tmp_path / "b")
    assert again.manifest.content_sha256 == data.manifest.content_sha256
    assert again.manifest == data.manifest
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
    built = BuiltDataset(told(builder=builder, parameters=parameters, seed=None), None)
    (data,) = make_datasets((), [built], ())
    assert data.command == command


@pytest.mark.slow
def test_a_source_that_is_fetched_has_to_be_named(runs: Path) -> None:
    source = replace(told().sources[0], address="https://data.test/x.csv")
    page = of_manifest(runs, told(builder="builders.x", parameters={}, seed=None, sources=(source,)))
    assert "<pre><code>biasboard build x --input PATH</code></pre>" in page
    assert "PATH is the file or folder of the sources below" in page
    page = of_manifest(runs, told(builder="builders.x", parameters={"map": "group=my people"}, seed=None))
    assert "with this builder, the parameters above and the sources below; not as a command to copy" in page
    page = of_manifest(runs, told(builder="elsewhere"))
    assert "no command is known: the builder is none of this project" in page


def test_lists_and_tables_lead_to_the_page(view: View, texts: dict[str, str]) -> None:
    for page, link in (
        ("data.md", "datasets/gifi-1.0.0.html"),
        ("benchmarks/gifi.md", "../datasets/gifi-1.0.0.html"),
    ):
        assert f'href="{link}"' in texts[page]
    (row,) = table_rows(view, "files/datasets")
    assert row["page"] == "datasets/gifi-1.0.0.html"
    assert (row["dataset"], row["n_results"], row["licence"]) == ("gifi", 6, None)


@pytest.mark.slow
def test_a_built_dataset_without_results_has_a_page(runs: Path) -> None:
    terms = replace(manifest(items()), name="other")
    view = make_view(assemble(load_known(Root(runs, "local")).entries), (), [BuiltDataset(terms)])
    page = generate(view, {})["datasets/other-1.0.0.md"]
    assert "No model on this board was asked about this dataset." in page


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
