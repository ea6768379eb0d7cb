"""The summary of a model says what the board says, to the digit."""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results

from biasboard.ground import strict_json
from biasboard.ground.command_line import EXIT_ERROR
from biasboard.ground.memory import Memory
from evaluators.benchmark import load_benchmark
from leaderboard.commands.comparable_results import load_comparable
from leaderboard.pages.latex import escape
from leaderboard.pages.model_cards import METADATA, card_markdown, comparisons, model_index, write_card
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.summary_figure import summary_figure
from leaderboard.pages.summary_forms import (
    frame,
    interval_of,
    markdown,
    number_of,
    placing_text,
    summary_lines,
    value_of,
)
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import Profile, profile_of
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import KeyBook
from schemas.documents.model_summary import ModelSummary, NamedValue
from schemas.documents.result import Model
from schemas.files import contract
from schemas.folders.run_folder import read_result, write_result
from tests.commands import REPOSITORY, run
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import leaning, write_model
from tests.worlds import MadeBoard

SVG = "{http://www.w3.org/2000/svg}"
BENCHMARK = "synthbias"


@pytest.fixture(scope="module")
def root(models_root: Path) -> Path:
    return models_root


@pytest.fixture(scope="module")
def board(models: MadeBoard) -> Board:
    return models.board


@pytest.fixture(scope="module")
def profile(board: Board) -> Profile:
    found = profile_of(board, BENCHMARK)
    assert found is not None
    return found


def model(board: Board, name: str) -> Model:
    models = (row.entry.result.model for table in board.tables for row in table.rows)
    return next(one for one in models if one.id == name)


def summary(board: Board, name: str, against: str | None = None) -> ModelSummary:
    return summarise(board, model(board, name), against=against)


@pytest.mark.slow
def test_every_number_is_the_boards(board: Board, profile: Profile) -> None:
    identity = model(board, "acme/even").identity_sha256
    (of_benchmark,) = [one for one in summary(board, "acme/even").benchmarks if one.benchmark == BENCHMARK]
    assert [measure.name for measure in of_benchmark.measures] == [
        column.headline.name for column in profile.columns if identity in column.rows
    ]
    for measure in of_benchmark.measures:
        (column,) = [one for one in profile.columns if one.headline.name == measure.name]
        metric = column.metrics[identity]
        assert (measure.value, measure.interval, measure.ideal) == (metric.value, metric.interval, metric.ideal)
        useless = column.useless
        assert (useless is None) == (measure.useless is None)
        if useless is not None and measure.useless is not None:
            assert (measure.useless.name, measure.useless.value) == (useless.name, useless.metric.value)
    rank = profile.rows[identity].rank
    assert rank is not None
    assert of_benchmark.rank is not None
    assert (of_benchmark.rank.best, of_benchmark.rank.worst, of_benchmark.rank.n_ranked) == tuple(rank)
    assert not list(of_benchmark.problems())


@pytest.mark.slow
def test_a_difference_is_that_of_both_values_and_turns_its_sign_with_the_models(board: Board) -> None:
    names = ("acme/even", "acme/worse")
    one, other = (
        {measure.name: measure for of in summary(board, first, second).benchmarks for measure in of.measures}
        for first, second in itertools.permutations(names)
    )
    shared = [name for name in one if one[name].difference is not None]
    assert len(shared) > 2
    outcomes = set()
    for name in shared:
        first, second = one[name], other[name]
        assert first.difference is not None
        assert second.difference is not None
        assert first.value is not None
        assert first.ideal is not None
        assert first.difference.value == second.value
        lead = abs((second.value or 0.0) - first.ideal) - abs(first.value - first.ideal)
        assert first.difference.lead == pytest.approx(lead, abs=1e-12)
        assert second.difference.lead == -first.difference.lead
        opposite = {"better": "worse", "worse": "better"}
        assert second.difference.outcome == opposite.get(first.difference.outcome, first.difference.outcome)
        if first.difference.low is not None and second.difference.high is not None:
            assert first.difference.low == pytest.approx(-second.difference.high)
        outcomes.add(first.difference.outcome)
    assert "better" in outcomes


@pytest.mark.slow
def test_models_that_were_not_asked_the_same_are_not_compared(board: Board) -> None:
    found = {one.benchmark: one for one in summary(board, "acme/even", "acme/worse").benchmarks}
    assert found[BENCHMARK].why_not_compared is None
    (other,) = [one for name, one in found.items() if name != BENCHMARK]
    dataset = f"{other.dataset} {other.dataset_version}"
    assert other.why_not_compared == f"no result of acme/worse on {dataset} has the same questions and prompt"
    assert all(measure.difference is None for measure in other.measures)
    assert not summary(board, "acme/even", "acme/worse").notes
    apart = summary(board, "acme/new", "acme/worse")
    assert apart.notes == (
        "to compare with acme/worse, score that one with --against acme/elsewhere, which takes the prompts of this "
        "model where they fit both; answers to other questions say nothing",
    )
    assert "nearer to the ideal by" not in "\n".join(summary_lines(apart))
    nowhere = summary(board, "acme/even", "acme/none")
    reasons = [of.why_not_compared for of in nowhere.benchmarks]
    assert reasons == [
        f"no result of acme/none on {of.dataset} {of.dataset_version} has the same questions and prompt"
        for of in nowhere.benchmarks
    ]


@pytest.mark.slow
def test_all_forms_hold_the_same_numbers(board: Board, tmp_path: Path) -> None:
    whole = summary(board, "acme/even", "acme/worse")
    lines, table, data = list(summary_lines(whole)), markdown(whole), frame(whole)
    measures = [measure for of in whole.benchmarks for measure in of.measures]
    assert len(data) == len(measures)
    assert len(lines) <= 25
    for measure, (_, row) in zip(measures, data.iterrows(), strict=True):
        assert row["value"] == measure.value or measure.value is None
        (line,) = [line for line in lines if line.strip().startswith(measure.label)]
        (cells,) = [line for line in table.splitlines() if line.startswith(f"| {measure.label} |")]
        shown = line.split(measure.label, 1)[1].split()[0]
        assert cells.split("|")[2].strip() == shown
        assert measure.value is not None
        assert float(shown.replace("\N{MINUS SIGN}", "-")) == pytest.approx(measure.value, abs=5.1e-4)
    strict_json.write(tmp_path / "summary.json", contract.dump(whole))
    assert contract.read(tmp_path / "summary.json", ModelSummary) == whole


@pytest.mark.slow
def test_the_items_of_a_benchmark_are_all_that_were_asked(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "acme/part", 0.5, n_templates=8)
    # Without one of its parts there is no index, which would name the results that have no value on the front page.
    shutil.rmtree(tmp_path / "acme__part" / "assignment")
    results = [read_result(path.parent) for path in tmp_path.rglob("result.json")]
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    (of_benchmark,) = summary(board, "acme/part").benchmarks
    assert {measure.config for measure in of_benchmark.measures} < {result.signature.config for result in results}
    assert of_benchmark.n_items == sum(result.counts.items for result in results)


@pytest.mark.slow
def test_a_missing_rank_has_its_reason(board: Board) -> None:
    (of_benchmark, *_) = summary(board, "acme/stereotyped").benchmarks
    assert of_benchmark.rank is None
    assert of_benchmark.why_unranked is not None
    assert " than the baseline" in of_benchmark.why_unranked
    warning, *_ = comparisons(summary(board, "acme/stereotyped", "acme/even"))
    assert "stereotyped is not shown to do better than a useless predictor" in warning


@pytest.fixture(scope="module")
def whole(board: Board) -> ModelSummary:
    """The summary of a model beside another one, as if all items of its only ranked benchmark had been asked."""
    return summary(board, "acme/even", "acme/worse")


@pytest.mark.slow
def test_every_part_of_a_card_holds_the_numbers_of_the_summary(whole: ModelSummary, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra site is not installed")
    files = {path.name: path for path in write_card(whole, tmp_path, page="https://board.test/models/acme__even.html")}
    assert {path.parent for path in files.values()} == {tmp_path / "acme__even"}
    assert sorted(path.name for path in (tmp_path / "acme__even").iterdir()) == sorted(files)
    card, table, data = (files[name].read_text(encoding="utf-8") for name in ("card.md", "table.tex", METADATA))
    drawn = ["".join(text.itertext()) for text in ElementTree.parse(files["figure.svg"]).iter(f"{SVG}text")]
    assert files["figure.png"].read_bytes().startswith(b"\x89PNG")
    # What the Hub itself reads from the metadata of a card.
    index = yaml.safe_load(data)["model-index"]
    name, results = model_index_to_eval_results(index)
    assert yaml.safe_load(ModelCard(f"---\n{data}---\n{card}").data.to_yaml()) == {"model-index": index}
    assert name == "acme/even"
    measures = [(of, measure) for of in whole.benchmarks for measure in of.measures]
    assert {(result.dataset_type, result.metric_type, result.metric_value) for result in results} == {
        (of.dataset, measure.name, measure.value) for of, measure in measures
    }
    for result in results:
        assert result.dataset_revision in {"v9.0.0", "v1.0.0"}
        assert (result.dataset_config is None) == (result.dataset_split is None)
        assert result.source_url == "https://board.test/models/acme__even.html"
    sentences = list(comparisons(whole))
    for of, measure in measures:
        cells = [measure.label, value_of(measure).split(" ", 1)[0], interval_of(measure)]
        assert " | ".join(cells) in card
        assert " & ".join(map(escape, cells)) in table
        assert {measure.label, value_of(measure)} <= {*drawn}
        difference = measure.difference
        if difference is not None:
            assert number_of(measure, difference.value) in drawn
            (sentence,) = [one for one in sentences if f"“{measure.label}”" in one]
            assert ("**Better than worse**" in sentence) == (difference.outcome == "better")
            assert ("**Worse than worse**" in sentence) == (difference.outcome == "worse")
            assert ("Cannot be told apart" in sentence) == (difference.outcome == "tied")
            assert f"{abs(difference.lead):.3f} [" in sentence
        assert (f"{of.heading}: not compared" in card) == (of.why_not_compared is not None)
        assert placing_text(of) in html.unescape(card)


def test_a_card_without_ranks_says_so_in_metadata_and_figure(whole: ModelSummary) -> None:
    unranked = replace(
        whole, benchmarks=tuple(replace(each, rank=None, why_unranked="for a reason") for each in whole.benchmarks)
    )
    assert "; no rank\n" in (model_index(unranked) or "")
    assert "no rank: " in summary_figure(unranked)
    card = card_markdown(unranked)
    assert "A *useless predictor*, such as a coin" in card
    assert "is not shown to do better than a useless predictor in" not in card
    below = replace(
        unranked, benchmarks=tuple(replace(each, beats_useless=False, is_below=True) for each in whole.benchmarks)
    )
    headings = ", ".join(each.heading for each in whole.benchmarks)
    assert f"not shown to do better than a useless predictor in: {headings}.**" in card_markdown(below)
    for benchmark in whole.benchmarks:
        descriptions = {each.name: each.description for each in load_benchmark(benchmark.benchmark).baselines}
        for useless in filter(None, (measure.useless for measure in benchmark.measures)):
            assert f"*{useless.name}* gives {descriptions[useless.name]}" in card


@pytest.mark.slow
def test_a_card_of_some_items_says_so_and_has_no_metadata_of_an_earlier_one(
    whole: ModelSummary, tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert", reason="the extra site is not installed")
    first, *others = whole.benchmarks
    assert METADATA in {path.name for path in write_card(whole, tmp_path)}
    some = replace(whole, benchmarks=(replace(first, is_whole=False), *others))
    results = yaml.safe_load(model_index(some) or "")["model-index"][0]["results"]
    assert {result["dataset"]["type"] for result in results} == {of.dataset for of in others}
    none = replace(whole, benchmarks=tuple(replace(of, is_whole=False) for of in whole.benchmarks))
    paths = write_card(none, tmp_path)
    assert METADATA not in {path.name for path in paths}
    assert not (paths[0].parent / METADATA).exists()
    assert "**Only some items were asked" in paths[0].read_text(encoding="utf-8")


HOSTILE = (
    'x/<img src=y onerror="a()">**b** [l](javascript:a) ![p](http://evil.test/p) `c` | {: .d } <!-- e --> www.evil.test'
)


@pytest.mark.slow
def test_a_card_renders_with_the_settings_of_the_site_and_no_name_acts(whole: ModelSummary, tmp_path: Path) -> None:
    config = pytest.importorskip("mkdocs.config", reason="the extra site is not installed")
    commands = pytest.importorskip("mkdocs.commands.build")
    hostile = replace(
        whole,
        model=HOSTILE,
        against=HOSTILE,
        notes=(HOSTILE,),
        benchmarks=tuple(
            replace(
                of,
                claims=(HOSTILE,),
                rank=None,
                why_unranked=HOSTILE,
                why_not_compared=HOSTILE,
                measures=tuple(
                    replace(measure, value=None, reason=HOSTILE, difference=None)
                    if measure.difference is None
                    else replace(measure, useless=NamedValue(name=HOSTILE, value=0.5))
                    for measure in of.measures
                ),
            )
            for of in whole.benchmarks
        ),
    )
    docs, settings = tmp_path / "docs", tmp_path / "mkdocs.yml"
    docs.mkdir()
    (docs / "figure.png").write_bytes(b"")
    (docs / "index.md").write_text(card_markdown(hostile, page="https://board.test/m.html"), encoding="utf-8")
    site = REPOSITORY / "site"
    settings.write_text(
        f"INHERIT: {site / 'mkdocs.yml'}\ndocs_dir: docs\nsite_dir: built\nnav: [index.md]\n"
        f"theme:\n  custom_dir: {site / 'docs' / 'theme'}\n",
        encoding="utf-8",
    )
    commands.build(config.load_config(str(settings), strict=True))
    page = (tmp_path / "built" / "index.html").read_text(encoding="utf-8")
    main = page[page.index('<h2 id="bias"') : page.index("</code></pre>")]
    assert re.findall(r"<table>", main) == ["<table>"]
    assert len(set(re.findall(r"<tr>.*?</tr>", main, flags=re.DOTALL))) > len(whole.benchmarks)
    assert {row.count("<td") for row in re.findall(r"<tr>(.*?)</tr>", main, flags=re.DOTALL)} == {0, 7}
    assert set(re.findall(r'(?:src|href)="([^"#]*)"', main)) <= {"figure.png", "", "https://board.test/m.html"}
    assert not re.findall(r"onerror=\"|<!-- e|<strong>b</strong>|<code>c</code>|class=\"d\"", main)


@pytest.mark.slow
def test_the_command_writes_the_card_of_a_run_beside_another(whole: ModelSummary, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra site is not installed")
    keys, none = write_keys(tmp_path / "keys", root), tmp_path / "none"
    none.mkdir()
    folders = ("--keys", keys, "--results", none, "--datasets", none, "--out", tmp_path / "cards")
    asked = ("-m", "biasboard", "card", root, *folders)
    refused = run(*asked, status=EXIT_ERROR)
    assert refused.stderr.splitlines()[-1].endswith(
        "holds results of several models; name one with --model: acme/biased, acme/even, acme/mute, acme/other, "
        "acme/shy, acme/stereotyped, acme/worse"
    )
    done = run(*asked, "--model", "acme/even", "--against", "acme/worse", "--format", "json", status=0)
    printed = contract.load(json.loads(done.stdout), ModelSummary, where="standard output")
    known = {of.benchmark: of for of in whole.benchmarks}
    assert BENCHMARK in {of.benchmark for of in printed.benchmarks}
    for of in printed.benchmarks:
        assert [(each.value, each.interval, each.difference) for each in of.measures] == [
            (each.value, each.interval, each.difference) for each in known[of.benchmark].measures
        ]
    card = (tmp_path / "cards" / "acme__even" / "card.md").read_text(encoding="utf-8")
    assert all(sentence in card for sentence in comparisons(printed))


@pytest.mark.slow
def test_of_several_models_of_one_name_that_with_most_results_has_the_card(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra site is not installed")
    runs, none = tmp_path / "runs", tmp_path / "none"
    none.mkdir()
    folders = [
        write_model(runs, "acme/even", leaning(1.0, 0.1), ambiguous=type1, endpoint="api").parent
        for type1 in (False, True)
    ]
    result = read_result(folders[0])
    # The first one, in the order of the folders.
    other = Path(shutil.copytree(folders[0], folders[0].with_name("another")))
    write_result(other, replace(result, model=replace(result.model, revision="other", identity_sha256="0" * 64)))
    options = ("--keys", write_keys(tmp_path / "keys", runs), "--results", none, "--datasets", none)
    done = run("-m", "biasboard", "card", runs, *options, "--out", tmp_path / "cards", "--format", "json", status=0)
    printed = contract.load(json.loads(done.stdout), ModelSummary, where="standard output")
    assert printed.identity_sha256 == result.model.identity_sha256
    (told,) = (note for note in printed.notes if note.startswith("only the results of"))
    assert told.endswith("count here; there are others, of acme/even (other, float32)")


def test_accepted_results_are_verified_only_where_the_model_was_asked_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"
    write_model(runs, "acme/even", leaning(1.0, 0.1))
    write_model(results, "acme/broken", leaning(1.0, 0.1)).write_text("{")
    roots = (Root(runs, "local"), Root(results, "accepted"))
    for keys, compared in ((tmp_path / "none", False), (write_keys(tmp_path / "keys", runs), True)):
        found = load_comparable(roots, KeyBook(keys), Memory(None), lambda place: place.split("/")[1] == "acme__even")
        assert [entry.result.model.id for entry in found.own] == ["acme/even"]
        assert ("left out" in capsys.readouterr().err) is compared
