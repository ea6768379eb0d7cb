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
from leaderboard.pages.rendering import View, copies, generate, make_view, parquet_files
from leaderboard.ranking.boards import assemble
from leaderboard.reproductions import reproductions
from leaderboard.verify.entries import LeftOut, Root
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model

HOSTILE = "evil/<script>alert(1)</script> *b* `c` {{ x }} [l](javascript:x) \"q\" 'a' &amp; | # $"
PROMISED = """# Title

<!-- generated: profile -->

<!-- generated: examples -->
"""


def view_of(root: Path) -> View:
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/small", leaning(1.0, 0.5))
    write_model(root, "acme/small", leaning(1.0, 0.5), ambiguous=True)
    records = write_model(root / "hostile", "acme/tmp", leaning(1.0, 0.6))
    text = records.read_text(encoding="utf-8")
    records.write_text(text.replace('"acme/tmp"', json.dumps(HOSTILE)), encoding="utf-8")
    board = assemble(load_known(Root(root, "local"), any_name=True).entries)
    left_out = [LeftOut(place="x/y", origin="accepted", reason="metric ucerf is <b>0.999</b>")]
    return make_view(board, left_out, ())


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return view_of(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def texts(view: View) -> dict[str, str]:
    return generate(view, {"index.md": PROMISED})


@pytest.mark.slow
def test_every_page_is_there(texts: dict[str, str]) -> None:
    pages = {path for path in texts if path.endswith(".md")}
    hostile = {path for path in pages if path.startswith("models/evil")}
    assert len(hostile) == 2
    (other,) = (path for path in pages if path.startswith("benchmarks/synthbias/synthbias-type1-"))
    results = {path for path in pages if path.startswith("models/acme__small/")}
    assert len(results) == 2
    assert pages - hostile - results - {other} == {
        "index.md",
        "audit.md",
        "data.md",
        "compare.md",
        "answers.md",
        "news.md",
        "benchmarks/index.md",
        "benchmarks/synthbias.md",
        "datasets/synthbias-9.0.0.md",
        "models/index.md",
        "models/acme__small.md",
        "papers/index.md",
        *(f"papers/{name}.md" for name in reproductions()),
        "useless-predictors.md",
    }


@pytest.mark.slow
def test_text_of_strangers_cannot_act(texts: dict[str, str]) -> None:
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
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


def test_titles_survive_as_yaml(texts: dict[str, str]) -> None:
    for path, text in texts.items():
        if path.endswith(".md") and path != "index.md":
            front = yaml.safe_load(text.split("---\n")[1])
            assert isinstance(front["title"], str)


def test_every_link_and_picture_leads_somewhere(view: View, texts: dict[str, str]) -> None:
    n_links = {".md": 0, ".json": 0}
    tables = parquet_files(view)
    for path, target in chain.from_iterable(links_of(*each) for each in texts.items()):
        address, _, fragment = target.partition("#")
        place = (Path("/") / path).parent.joinpath(address).resolve() if address else Path("/") / path
        source = place.relative_to("/").as_posix()
        source = source.removesuffix(".html") + ".md" if source.endswith(".html") else source
        assert source in texts or source in tables, f"{path}: {target}"
        if "=" in fragment:  # A choice on a page, which is about a result with files of its own.
            chosen = dict(parse_qsl(html.unescape(fragment)))
            listed = json.loads(texts["files/compare/models.json"])["models"]
            keys = {name for one in listed for name in (one["key"], one["id"])}
            assert chosen.get("model", chosen.get("models")) in keys, f"{path}: {target}"
        elif fragment and not fragment.startswith("only-"):
            assert f"#{fragment} " in texts[source] or f'id="{fragment}"' in texts[source], f"{path}: {target}"
        n_links[Path(path).suffix] += 1
    assert min(n_links.values()) >= 10


def links_of(path: str, text: str) -> list[tuple[str, str]]:
    """Links of a page, or of a file that the pages at the root of the site read."""
    if path.endswith(".md"):
        return [(path, target) for target in re.findall(r'(?:href|src)="(?!https://)([^"]+)"', text)]
    found = re.findall(r'"([^" ]+\.html(?:#[^"]*)?)"', text) if path.endswith(".json") else []
    return [(Path(path).name, target) for target in found]


def test_numbers_in_the_table_are_those_of_the_result(view: View, texts: dict[str, str]) -> None:
    page = texts["benchmarks/synthbias.md"]
    section = next(section for section in view.sections if section.table.signature.config == "type2")
    part = page[page.index(f"#{section.anchor} }}") :]
    for row in section.table.rows:
        for column in section.table.columns:
            metric = column.of(row.entry)
            assert metric is not None
            assert metric.value is not None
            assert f'data-sort="{sort_key(metric.value, 3)}"' in part


def test_tables_have_captions_scopes_and_buttons(texts: dict[str, str]) -> None:
    for path, text in texts.items():
        for table in re.findall(r"<table.*?</table>", text, re.DOTALL) if path.endswith(".md") else []:
            assert "<caption><span>" in table
            head, _, body = table.partition("</thead>")
            assert "<th>" not in table
            assert head.count('scope="col') == head.count("<th ")
            assert body.count('scope="row') + body.count('<tbody class="bb-line') == body.count("<tr")


def test_local_runs_and_baselines_are_marked(texts: dict[str, str]) -> None:
    page = texts["benchmarks/synthbias.md"]
    assert page.count("local run, not submitted") == 2
    assert page.count('data-baseline="true"') == 1
    assert page.count("Useless predictors (1). Their best: ") == 1
    assert '<tr id="baseline__uniform"><th scope="row" class="bb-model">uniform</th>' in texts["useless-predictors.md"]


def test_a_baseline_has_a_page_but_no_files_of_its_own(view: View, texts: dict[str, str]) -> None:
    """They were most of a site, and one command makes them again."""
    (baseline,) = (model for model in view.models if model.is_baseline)
    (model,) = (model for model in view.models if model.id == "acme/small")
    files = {*texts, *parquet_files(view), *copies(view)}
    for shown, has_files in ((baseline, False), (model, True)):
        for placement in shown.placements:
            assert bool(placement.answers.groups) is has_files
            stem = placement.files.stem.removeprefix("files/")
            for folder in ("files", "charts"):
                assert any(path.startswith(f"{folder}/{stem}") for path in files) is has_files, f"{folder}/{stem}"


def test_generated_blocks_are_put_in(texts: dict[str, str]) -> None:
    assert "generated:" not in texts["index.md"]
    assert "acme/small" in texts["index.md"]
    assert "bb-examples" in texts["index.md"]


def test_an_unknown_block_is_an_error_with_the_known_ones(view: View) -> None:
    known = "about, apart, examples, findings, install, leaders, licences, news, population, profile"
    with pytest.raises(ConfigError, match=rf"site/docs/x.md: no generated block 'ranking'; have: {known}"):
        generate(view, {"x.md": "<!-- generated: ranking -->\n"})


def test_a_handwritten_page_cannot_hide_a_generated_one(view: View) -> None:
    with pytest.raises(ConfigError, match=r"site/docs/audit\.md: a generated page has this name"):
        generate(view, {"audit.md": "# mine"})


@pytest.mark.slow
def test_the_same_results_give_the_same_texts(texts: dict[str, str], tmp_path: Path) -> None:
    again = generate(view_of(tmp_path), {"index.md": PROMISED})
    assert again.keys() == texts.keys()
    assert [path for path in texts if again[path] != texts[path]] == []


def test_charts_have_the_colours_of_both_schemes_and_no_outside_references(texts: dict[str, str]) -> None:
    charts = {path: text for path, text in texts.items() if path.startswith("charts/")}
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


@pytest.mark.slow
def test_a_model_that_lacks_one_number_says_so(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/mute", lambda reference, other, gender, pair: None)
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    page = generate(make_view(board, (), ()), {})["benchmarks/synthbias.md"]
    assert "not ranked: 0 of 100 items scored; a rank needs at least half" in page
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)
