"""The texts of the site."""

from __future__ import annotations

import html
import json
import re
from itertools import chain
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import yaml

from biasboard.ground.errors import ConfigError
from leaderboard.pages.markup import sort_key
from leaderboard.pages.rendering import generate
from leaderboard.reproductions import reproductions
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow


def pages_of(board: MadeBoard) -> dict[str, str]:
    return {path: text for path, text in board.texts.items() if path.endswith(".md")}


def test_every_page_is_there(strangers: MadeBoard) -> None:
    pages = {*pages_of(strangers)}
    results = [path.split("/")[1] for path in pages if path.count("/") == 2 and path.startswith("models/")]
    (evil,) = {folder for folder in results if folder.startswith("evil")}
    n_results = {"acme__small": 2, "acme__large": 1, "acme__random": 1, "acme__mute": 1, evil: 1, "lab__even": 5}
    assert {folder: results.count(folder) for folder in results} == n_results
    tables = {path for path in pages if re.match("benchmarks/(synthbias/synthbias-type1|gifi/gifi)-", path)}
    assert len(tables) == 5
    lists = {"index", "audit", "data", "compare", "answers", "news", "useless-predictors"}
    lists |= {f"{folder}/index" for folder in ("benchmarks", "models", "papers")}
    single = {"benchmarks/synthbias", "benchmarks/gifi", "datasets/synthbias-9.0.0", "datasets/gifi-1.0.0"}
    single |= {f"models/{folder}" for folder in n_results} | {f"papers/{name}" for name in reproductions()}
    assert {path for path in pages if path.count("/") < 2} == {f"{path}.md" for path in lists | single}
    assert len(pages) == len(lists | single) + len(tables) + len(results)


def test_text_of_strangers_cannot_act(strangers: MadeBoard) -> None:
    pages = pages_of(strangers)
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
    listed = json.loads(texts["files/compare/models.json"])["models"]
    keys = {name for one in listed for name in (one["key"], one["id"])}
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


def test_numbers_in_the_table_are_those_of_the_result(strangers: MadeBoard) -> None:
    (section,) = (one for one in strangers.view.sections if one.table.signature.config == "type2")
    page = strangers.texts["benchmarks/synthbias.md"]
    part = page[page.index(f"#{section.anchor} }}") :]
    known = [metric for row in section.table.rows for one in section.table.columns if (metric := one.of(row.entry))]
    values = [metric.value for metric in known if metric.value is not None]
    assert len(values) > 20
    assert [value for value in values if f'data-sort="{sort_key(value, 3)}"' not in part] == []
    assert "not ranked: 0 of 100 items scored; a rank needs at least half" in part
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)


def test_tables_have_captions_scopes_and_buttons(strangers: MadeBoard) -> None:
    tables = [table for text in pages_of(strangers).values() for table in re.findall(r"(?s)<table.*?</table>", text)]
    assert len(tables) > 20
    for table in tables:
        assert "<caption><span>" in table
        head, _, body = table.partition("</thead>")
        assert "<th>" not in table
        assert head.count('scope="col') == head.count("<th ")
        assert body.count('scope="row') + body.count('<tbody class="bb-line') == body.count("<tr")


def test_local_runs_and_baselines_are_marked(strangers: MadeBoard) -> None:
    page = strangers.texts["benchmarks/synthbias.md"]
    assert page.count("local run, not submitted") == 5
    assert page.count('data-baseline="true"') == 1
    assert page.count("Useless predictors (1). Their best: ") == 1
    useless = strangers.texts["useless-predictors.md"]
    assert '<tr id="baseline__uniform"><th scope="row" class="bb-model">uniform</th>' in useless
    assert "the same probability for every option" in useless
    assert 'data-sort="0.5"' in useless


def test_a_baseline_has_a_page_but_no_files_of_its_own(strangers: MadeBoard) -> None:
    """They were most of a site, and one command makes them again."""
    files = {*strangers.texts, *strangers.parquet, *strangers.downloads}
    assert not [path for path in files if path.startswith("models/baseline")]
    for name, has_files in (("baseline/uniform", False), ("acme/small", True)):
        (shown,) = (model for model in strangers.view.models if model.id == name)
        assert shown.is_baseline is not has_files
        for placement in shown.placements:
            assert bool(placement.answers.groups) is has_files
            stem = placement.files.stem.removeprefix("files/")
            for folder in ("files", "charts"):
                assert any(path.startswith(f"{folder}/{stem}") for path in files) is has_files, f"{folder}/{stem}"


def test_generated_blocks_are_put_in(strangers: MadeBoard) -> None:
    page = strangers.texts["index.md"]
    assert "generated:" not in page
    assert "acme/small" in page
    assert "bb-examples" in page
    known = "about, apart, examples, findings, install, leaders, licences, news, population, profile"
    with pytest.raises(ConfigError, match=rf"site/docs/x.md: no generated block 'ranking'; have: {known}"):
        generate(strangers.view, {"x.md": "<!-- generated: ranking -->\n"})
    with pytest.raises(ConfigError, match=r"site/docs/audit\.md: a generated page has this name"):
        generate(strangers.view, {"audit.md": "# mine"})


def test_the_same_results_give_the_same_files(strangers: MadeBoard, tmp_path: Path) -> None:
    again = strangers.again(tmp_path)
    assert again.texts.keys() == strangers.texts.keys()
    assert [path for path in again.texts if again.texts[path] != strangers.texts[path]] == []
    assert again.parquet == strangers.parquet


def test_charts_have_the_colours_of_both_schemes_and_no_outside_references(strangers: MadeBoard) -> None:
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
