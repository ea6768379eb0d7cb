"""The pages of datasets: what their manifests, cards and answer keys say, and which items models miss."""

from __future__ import annotations

import csv
import html
import io
import re
import shlex
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory
from evaluators.task import load_task
from leaderboard.pages.dataset_views import BuiltDataset, built_datasets, kept_keys, make_datasets, safe_html
from leaderboard.pages.item_outcomes import item_facts, kind_codes, prompts_at
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from schemas.documents.dataset import Manifest, RuleCount
from schemas.files.record_columns import RecordColumns
from schemas.files.record_files import read_records
from schemas.lexicon import pronoun_families
from tests.commands import run
from tests.leaderboard.browsing import served, visit
from tests.leaderboard.forging import Places, accepted, constant, forge
from tests.leaderboard.gifi_results import chance, write_gifi_model
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import uniform, write_model
from tests.schemas.examples import items, manifest
from tests.sites import render, table_rows

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


def recounted(runs: Path) -> tuple[Counter[str], Counter[str]]:
    """How many models answer each item wrong, and of how many no answer could be read, by plain loops."""
    wrong: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    task = load_task("recognition")
    for path in sorted(runs.glob("*/recognition/records.parquet")):
        for record in read_records(path):
            (is_right,) = task.are_right(RecordColumns.of([record]))
            wrong[record.item_id] += record.status == "scored" and is_right is False
            unread[record.item_id] += record.status in ("refused", "unparsed", "failed")
    return wrong, unread


@pytest.mark.slow
def test_every_item_has_the_number_of_models_that_miss_it(runs: Path, view: View) -> None:
    wrong, unread = recounted(runs)
    (data,) = view.datasets
    missed = next(one for one in data.missed if one.section.table.signature.config == "recognition")
    assert {line["item"]: line["n_wrong"] for line in missed.table.lines} == wrong
    assert {line["item"]: line["n_unanswered"] for line in missed.table.lines} == unread
    assert {line["n_models"] for line in missed.table.lines} == {3}
    counts = [line["n_wrong"] for line in missed.table.lines]
    assert counts == sorted(wrong.values(), reverse=True)
    assert max(unread.values()) > 0
    assert len(set(counts)) > 2
    order = [record.item_id for record in read_records(runs / "lab__one" / "recognition" / "records.parquet")]
    assert [one.item for one in missed.shown] == sorted(order, key=lambda item: -wrong[item])[:15]
    assert missed.n_missed == sum(n > 0 for n in wrong.values())
    assert missed.n_missed_by_all == sum(n == 3 for n in wrong.values())


@pytest.mark.slow
def test_the_page_shows_them_with_text_and_the_files_hold_all(view: View, texts: dict[str, str]) -> None:
    missed = next(one for one in view.datasets[0].missed if one.table.lines)
    page = texts[PAGE]
    rows = list(csv.DictReader(io.StringIO(texts[missed.table.files.csv])))
    assert [(row["item"], int(row["n_wrong"])) for row in rows] == [
        (one["item"], one["n_wrong"]) for one in missed.table.lines
    ]
    assert f'href="../{missed.table.files.csv}"' in page
    block = page[page.index('<div class="bb-board" data-search-exclude>') :]
    first = missed.shown[0]
    shown = html.unescape(block)
    assert f"{first.n_wrong} of 3</td>" in block
    assert first.prompts[0] in shown
    assert (
        f"Family: {missed.table.lines[0]['groups']}".lower().replace("=", ": ") in shown.lower()
        or first.groups[0] in shown
    )
    words = f"misses {missed.n_missed} of {len(rows)} items, all of them {missed.n_missed_by_all}."
    assert f"3 models were asked. At least one of them {words}" in page
    assert "continuation, sampled-v1" in page
    assert "Nothing is counted here: its answers are neither right nor wrong." in page
    assert "\n\n" not in block[: block.index("\n</div>")]


@pytest.mark.slow
def test_one_model_is_no_measure_of_difficulty(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/one", 0.3, tasks=("recognition",), told=recognises(0.3, "x"))
    view = view_of(tmp_path)
    (missed,) = view.datasets[0].missed
    page = generate(view, {})[PAGE]
    assert "<strong>Only one model was asked</strong> (lab/one), so this says which items it misses" in page
    assert len([line for line in missed.table.lines if line["n_wrong"]]) == missed.n_missed


@pytest.mark.slow
def test_baselines_withdrawn_and_repeated_results_do_not_count(places: Places, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name, change in (("good", list), ("coin", constant(0.9)), ("gone", constant(0.2)), ("same", constant(0.9))):
        forge(places, results / name, change, model=f"acme/{name}")
        accepted(
            results,
            name,
            f"2026-01-0{len(name)}",
            **({"decision": "withdrawn", "reason": "x"} if name == "gone" else {}),
        )
    forge(
        places,
        results / "base",
        constant(0.4),
        of_result=lambda one: replace(
            one, model=replace(one.model, id="baseline/x", endpoint="baseline", backend="baseline", revision=None)
        ),
    )
    (data,) = view_of(results, origin="accepted").datasets
    (missed,) = data.missed
    assert sorted(missed.models) == ["acme/coin", "acme/good"]
    assert missed.n_left_out == 2
    wrong: Counter[str] = Counter()
    for name in ("coin", "good"):
        for record in read_records(results / name / "records.parquet"):
            assert record.reading is not None
            answer = max(zip(record.reading.probabilities, record.reading.outcomes, strict=True))[1]
            wrong[record.item_id] += answer != record.target
    assert {line["item"]: line["n_wrong"] for line in missed.table.lines} == wrong


@pytest.mark.slow
def test_texts_that_a_licence_forbids_are_not_shown(runs: Path, texts: dict[str, str]) -> None:
    page = of_manifest(runs, told(redistributable=False, publish_refusal="the licence is CC BY-NC-ND; ask the owner"))
    assert "Texts are not shown, only the ids of the items: the licence is CC BY-NC-ND." in page
    assert "May be redistributed</dt><dd>no: the licence is CC BY-NC-ND; ask the owner</dd>" in page
    assert "where he lives" not in html.unescape(page)
    assert "answers.html#" not in page
    assert "where he lives" in html.unescape(texts[PAGE])


@pytest.mark.slow
def test_texts_that_may_offend_are_folded(view: View) -> None:
    (data,) = view.datasets
    missed = next(one for one in data.missed if one.table.lines)
    harsh = missed._replace(
        warning="Some of them offend.", shown=tuple(one._replace(is_folded=True) for one in missed.shown)
    )
    page = generate(view._replace(datasets=(replace(data, missed=(harsh,)),)), {})[PAGE]
    assert "Some of them offend. They stay folded until you open them." in page
    assert page.count("characters, may offend</summary><pre") == len(harsh.shown)
    assert 'bb-example"><pre' not in page


@pytest.mark.slow
def test_answers_that_were_counted_before_are_not_read_again(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    entry = next(
        one
        for one in load_known(Root(tmp_path / "runs", "local")).entries
        if one.result.signature.config == "recognition"
    )
    memory = Memory(tmp_path / "memory")
    found = kind_codes(entry, memory).tolist(), item_facts(entry, memory), prompts_at(entry, [3, 1], memory)
    shutil.rmtree(tmp_path / "runs")
    assert (kind_codes(entry, memory).tolist(), item_facts(entry, memory), prompts_at(entry, [3, 1], memory)) == found
    with pytest.raises(DataError):
        prompts_at(entry, [3, 2], memory)
    other = replace(entry, result=replace(entry.result, records=replace(entry.result.records, sha256="1" * 64)))
    with pytest.raises(DataError):
        kind_codes(other, memory)


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
    (data,) = make_datasets((), (), [built], ())
    assert data.command == command


@pytest.mark.slow
def test_a_source_that_is_fetched_has_to_be_named(runs: Path) -> None:
    source = replace(told().sources[0], address="https://data.test/x.csv")
    page = of_manifest(runs, told(builder="builders.x", parameters={}, seed=None, sources=(source,)))
    assert "<pre><code>biasboard build x --input PATH</code></pre>" in page
    assert "PATH is the file or folder of the sources below" in page
    page = of_manifest(runs, told(builder="elsewhere"))
    assert "no command is known" in page


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
    assert "Items that are missed" not in page


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


@pytest.mark.browser
@pytest.mark.slow
def test_a_link_leads_to_the_item_in_the_explorer(view: View, tmp_path: Path, browser: Browser) -> None:
    missed = next(one for one in view.datasets[0].missed if one.table.lines)
    with served(render(view, tmp_path)) as address:
        found = visit(browser, address + "datasets/gifi-1.0.0.html")
        found.page.get_by_role("link", name=missed.shown[0].item, exact=True).click()
        found.page.wait_for_function("document.querySelector('.bb-found > li') !== null")
        assert found.page.locator(".bb-found code").all_inner_texts() == [missed.shown[0].item]
        assert f"in {missed.shown[0].n_wrong} of 3 models" in found.page.locator(".bb-found > li").first.inner_text()
        assert found.complaints == []
        found.page.context.close()
    index = (tmp_path / "built" / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "datasets/gifi-1.0.0.html" in index
    assert "lives with a dog" not in index
