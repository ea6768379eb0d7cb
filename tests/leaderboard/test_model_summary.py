"""The summary of a model says what the board says, to the digit."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory
from leaderboard.commands.comparable_results import load_comparable
from leaderboard.pages import model_summary, summary_forms
from leaderboard.pages.model_cards import METADATA, card_markdown, model_index, write_card
from leaderboard.pages.model_summary import several_answered, summarise
from leaderboard.pages.table_files import escape
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.profiles import profile_of
from leaderboard.ranking.rows import with_own_identities
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import load
from schemas.documents.model_summary import BenchmarkSummary, MeasureValue, ModelSummary, NamedValue
from schemas.documents.result import MODELS_THAT_ANSWERED, Result
from schemas.files import contract
from schemas.folders.run_folder import read_result
from tests.commands import run
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import leaning, make_records, make_result, present, write_model, write_result
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow
BENCHMARK = "synthbias"
PAGE = "https://board.test/models/acme__even.html"
OF_EVEN = "synthbias@9.0.0/acme__even/type2"


def summary(made: MadeBoard, name: str, against: str | None = None) -> ModelSummary:
    return summarise(made.board, made.of(name)[0].result.model, against=against)


def measures_of(one: ModelSummary) -> Iterator[tuple[BenchmarkSummary, MeasureValue]]:
    return ((of, measure) for of in one.benchmarks for measure in of.measures)


@pytest.fixture(scope="module")
def whole(models: MadeBoard) -> ModelSummary:
    """The summary of a model beside another one."""
    return summary(models, "acme/even", "acme/worse")


def test_every_number_is_the_boards_and_differences_turn_with_models(models: MadeBoard, whole: ModelSummary) -> None:
    profile = present(profile_of(models.board, BENCHMARK))
    identity = models.of("acme/even")[0].result.model.identity_sha256
    (of_benchmark,) = [one for one in summary(models, "acme/even").benchmarks if one.benchmark == BENCHMARK]
    columns = [column for column in profile.columns if identity in column.rows]
    for measure, column in zip(of_benchmark.measures, columns, strict=True):
        metric, useless = column.metrics[identity], column.useless
        assert (measure.name, measure.value) == (column.headline.name, metric.value)
        assert (measure.interval, measure.ideal) == (metric.interval, metric.ideal)
        named = None if useless is None else NamedValue(name=useless.name, value=useless.metric.value or 0.0)
        assert measure.useless == named
        # All items have an answer.
        assert measure.at_worst == metric.value
    rank = present(profile.rows[identity].rank)
    assert of_benchmark.rank is not None
    assert (of_benchmark.rank.best, of_benchmark.rank.worst, of_benchmark.rank.n_ranked) == tuple(rank)
    assert not list(of_benchmark.problems())
    theirs = {measure.name: measure for _, measure in measures_of(summary(models, "acme/worse", "acme/even"))}
    shared = [(one, theirs[one.name]) for _, one in measures_of(whole) if one.difference is not None]
    assert len(shared) > 2
    for ours, other in shared:
        distances = [abs((one.value or 0.0) - (one.ideal or 0.0)) for one in (ours, other)]
        mine, its = present(ours.difference), present(other.difference)
        assert (mine.value, its.lead) == (other.value, -mine.lead)
        assert mine.lead == pytest.approx(distances[1] - distances[0], abs=1e-12)
        assert (mine.low or 0.0) == pytest.approx(-(its.high or 0.0))


def test_models_that_were_not_asked_the_same_are_not_compared(whole: ModelSummary, models: MadeBoard) -> None:
    def no_result_of(name: str, of: BenchmarkSummary) -> str:
        return f"no result of acme/{name} on {of.dataset} {of.dataset_version} has the same questions and prompt"

    for of in whole.benchmarks:
        assert of.why_not_compared == (None if of.benchmark == BENCHMARK else no_result_of("worse", of))
        assert (of.why_not_compared is None) == any(measure.difference for measure in of.measures)
    assert not whole.notes
    apart = summary(models, "acme/new", "acme/worse")
    assert apart.notes == (
        "to compare with acme/worse, score that one with --against acme/new, which takes the prompts of this "
        "model where they fit both; if that says the same, no prompt fits both",
    )
    for of in summary(models, "acme/even", "acme/none").benchmarks:
        assert of.why_not_compared == no_result_of("none", of)
    with_other = card_markdown(summary(models, "acme/even", "acme/stereotyped"))
    assert "stereotyped is not shown to do better than a useless predictor." in with_other


def test_all_forms_hold_the_same_numbers(whole: ModelSummary, tmp_path: Path) -> None:
    lines, table, data = (
        list(summary_forms.summary_lines(whole)),
        summary_forms.markdown(whole),
        summary_forms.frame(whole),
    )
    measures = [measure for _, measure in measures_of(whole)]
    assert len(lines) <= 25
    for measure, (_, row) in zip(measures, data.iterrows(), strict=True):
        assert measure.value is not None
        assert row["value"] == measure.value
        if measure.useless is not None:
            assert (row["useless_predictor"], row["useless_value"]) == (measure.useless.name, measure.useless.value)
        if (difference := measure.difference) is not None:
            assert (row["against_value"], row["lead"]) == (difference.value, difference.lead)
            assert (row["lead_low"], row["lead_high"]) == (difference.low, difference.high)
        (line,) = [line for line in lines if line.strip().startswith(measure.label)]
        (cells,) = [line for line in table.splitlines() if line.startswith(f"| {measure.label} |")]
        shown = line.split(measure.label, 1)[1].split()[0]
        assert cells.split("|")[2].strip() == shown
        assert float(shown.replace("\N{MINUS SIGN}", "-")) == pytest.approx(measure.value, abs=5.1e-4)
    strict_json.write(tmp_path / "summary.json", contract.dump(whole))
    assert contract.read(tmp_path / "summary.json", ModelSummary) == whole


def test_every_part_of_a_card_holds_the_numbers_of_the_summary(whole: ModelSummary, tmp_path: Path) -> None:
    files = {path.name: path for path in write_card(whole, tmp_path, page=PAGE)}
    assert {path.parent for path in files.values()} == {tmp_path / "acme__even"}
    assert sorted(path.name for path in (tmp_path / "acme__even").iterdir()) == sorted(files)
    card, table, data = (files[name].read_text(encoding="utf-8") for name in ("card.md", "table.tex", METADATA))
    # What the Hub itself reads from the metadata of a card.
    index = yaml.safe_load(data)["model-index"]
    name, results = model_index_to_eval_results(index)
    assert yaml.safe_load(ModelCard(f"---\n{data}---\n{card}").data.to_yaml()) == {"model-index": index}
    assert name == "acme/even"
    told = {(result.dataset_type, result.metric_type, result.metric_value) for result in results}
    assert told == {(of.dataset, measure.name, measure.value) for of, measure in measures_of(whole)}
    for result in results:
        assert result.dataset_revision in {"v9.0.0", "v1.0.0"}
        assert (result.dataset_config is None) == (result.dataset_split is None)
        assert result.source_url == PAGE
    for of, measure in measures_of(whole):
        cells = [measure.label, summary_forms.value_of(measure).split(" ", 1)[0], summary_forms.interval_of(measure)]
        assert " | ".join(cells) in card
        assert " & ".join(map(escape, cells)) in table
        if (difference := measure.difference) is not None:
            cells = [summary_forms.number_of(measure, difference.value), summary_forms.difference_of(of, measure)]
            assert " | ".join(cells) in card
            assert f"{abs(difference.lead):.3f} [" in cells[1]
        assert (f"{of.heading}: not compared" in card) == (of.why_not_compared is not None)
        assert summary_forms.placing_text(of) in html.unescape(card)


def with_all(one: ModelSummary, **fields: object) -> ModelSummary:
    return replace(one, benchmarks=tuple(replace(of, **fields) for of in one.benchmarks))  # type: ignore[arg-type]


def test_a_card_without_ranks_or_of_some_items_says_so(whole: ModelSummary, tmp_path: Path) -> None:
    unranked = with_all(whole, rank=None, why_unranked="for a reason")
    assert "; no rank\n" in (model_index(unranked) or "")
    assert "is not shown to do better than a useless predictor in" not in card_markdown(unranked)
    headings = ", ".join(each.heading for each in whole.benchmarks)
    below = card_markdown(with_all(unranked, beats_useless=False, is_below=True))
    assert f"not shown to do better than a useless predictor in: {headings}.**" in below
    first, *others = whole.benchmarks
    assert METADATA in {path.name for path in write_card(whole, tmp_path)}
    some = replace(whole, benchmarks=(replace(first, is_whole=False), *others))
    results = yaml.safe_load(model_index(some) or "")["model-index"][0]["results"]
    assert {result["dataset"]["type"] for result in results} == {of.dataset for of in others}
    paths = write_card(with_all(whole, is_whole=False), tmp_path)
    assert METADATA not in {path.name for path in paths}
    assert not (paths[0].parent / METADATA).exists()
    assert "**Only some items were asked" in paths[0].read_text(encoding="utf-8")


HOSTILE = (
    'x/<img src=y onerror="a()">**b** [l](javascript:a) ![p](http://evil.test/p) `c` | {: .d } <!-- e --> www.evil.test'
)


def test_no_name_acts_in_a_card(whole: ModelSummary) -> None:
    def changed(measure: MeasureValue) -> MeasureValue:
        if measure.difference is None:
            return replace(measure, value=None, reason=HOSTILE)
        return replace(measure, useless=NamedValue(name=HOSTILE, value=0.5))

    words = {"claims": (HOSTILE,), "rank": None, "why_unranked": HOSTILE, "why_not_compared": HOSTILE}
    of_all = [replace(of, measures=tuple(map(changed, of.measures))) for of in with_all(whole, **words).benchmarks]
    hostile = replace(whole, model=HOSTILE, against=HOSTILE, notes=(HOSTILE,), benchmarks=tuple(of_all))
    prose, _, code = card_markdown(hostile, page=PAGE).partition("```")
    assert "onerror" in prose
    acting = re.compile(r"<img|\*\*b\*\*|\]\(javascript|!\[p\]|`c`|<!-- e|\{: ")
    assert not acting.search(prose)
    # The command is a block of code, which nothing ends early.
    assert code.count("```") == 1


def test_the_command_writes_a_card_beside_another_run(whole: ModelSummary, models_root: Path, tmp_path: Path) -> None:
    (none := tmp_path / "none").mkdir()
    keys = write_keys(tmp_path / "keys", models_root)
    folders = ("--keys", keys, "--results", none, "--datasets", none, "--out", tmp_path / "cards")
    asked = (models_root, *folders, "--model", "acme/even", "--against", "acme/worse", "--format", "json")
    done = run("-m", "biasboard", "card", *asked, status=0)
    told = contract.load(json.loads(done.stdout), ModelSummary, where="standard output")
    known = {of.benchmark: of for of in whole.benchmarks}
    assert BENCHMARK in {of.benchmark for of in told.benchmarks}
    for of in told.benchmarks:
        assert [(each.value, each.interval, each.difference) for each in of.measures] == [
            (each.value, each.interval, each.difference) for each in known[of.benchmark].measures
        ]
    written = (tmp_path / "cards" / "acme__even" / "card.md").read_text(encoding="utf-8")
    assert all(summary_forms.difference_of(of, measure) in html.unescape(written) for of, measure in measures_of(told))


def test_accepted_results_are_verified_only_for_whole_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"
    write_model(runs, "acme/even", leaning(1.0, 0.1))
    write_model(results, "acme/broken", leaning(1.0, 0.1)).write_text("{")
    roots = (Root(runs, "local"), Root(results, "accepted"))
    for keys, compared in ((tmp_path / "none", False), (write_keys(tmp_path / "keys", runs), True)):
        _, own = load_comparable(roots, KeyBook(keys), Memory(None), lambda _, place: "/acme__even/" in place, None)
        assert [entry.result.model.id for entry in own] == ["acme/even"]
        assert ("left out" in capsys.readouterr().err) is compared


def test_a_few_items_have_values_beside_all_items_of_another_model(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write_model(runs, "acme/whole", leaning(1.0, 0.1))
    few = make_records(leaning(1.0, 0.2))[:40]
    write_result(runs / "synthbias@9.0.0/acme__few/type2", make_result(few, "acme/few"), few)
    book = KeyBook(write_keys(tmp_path / "keys", runs))
    board, own = load_comparable(
        (Root(runs, "local"),), book, Memory(None), lambda _, place: "/acme__few/" in place, "acme/whole"
    )
    (of,) = summarise(board, own[0].result.model, against="acme/whole").benchmarks
    assert not of.is_whole
    assert of.n_items == 40
    assert [one.value for one in of.measures if one.name == "accuracy_gap"] != [None]
    assert str(of.why_not_compared).startswith("no result of acme/whole on synthbias 9.0.0 has the same questions")


@pytest.mark.parametrize("name", ["acme/even", "acme/mine"])
def test_what_was_just_asked_stands_for_the_model_and_not_what_was_accepted_of_it(tmp_path: Path, name: str) -> None:
    accepted = write_model(tmp_path / "results", "acme/even", leaning(1.0, 0.3))
    records = make_records(leaning(1.0, 0.1))
    asked = make_result(records, "acme/even")
    place = f"synthbias@9.0.0/{name.replace('/', '__')}/type2"
    write_result(tmp_path / "runs" / place, replace(asked, model=replace(asked.model, id=name)), records)
    book = KeyBook(write_keys(tmp_path / "keys", tmp_path / "results"))
    roots = (Root(tmp_path / "results", "accepted"), Root(tmp_path / "runs", "local"))
    board, own = load_comparable(roots, book, Memory(None), lambda root, _: root.origin == "local", None)
    (of,) = summarise(board, own[0].result.model).benchmarks
    values = {one.name: one.value for one in of.measures}
    known = {one.name: one.value for one in asked.metrics if not one.group}
    assert values == {measure: known[measure] for measure in values}
    assert values["ucerf"] != next(one.value for one in read_result(accepted.parent).metrics if one.name == "ucerf")
    assert ("same weights as acme/even" in str(of.why_unranked)) == (name == "acme/mine")


@pytest.mark.parametrize(
    ("renamed", "same", "reason"),
    [
        ({"acme/two": "acme/one"}, {}, "2 models of other weights or settings are stored as acme/one"),
        (
            {},
            {"acme/one": "acme/new"},
            "acme/one is this model, by the hash of its weights and settings, or at an endpoint",
        ),
        # New weights under the name of the last release are compared with that.
        ({"acme/one": "acme/new"}, {}, None),
    ],
)
def test_who_is_compared_is_one_other_model(
    tmp_path: Path, renamed: dict[str, str], same: dict[str, str], reason: str | None
) -> None:
    """Runs of one's own can take an old name for new weights, or a new name for old ones."""
    for name, accuracy in (("new", 0.9), ("one", 0.8), ("two", 0.7)):
        write_model(tmp_path / "runs", f"acme/{name}", leaning(accuracy, 0.1))
    book = KeyBook(write_keys(tmp_path / "keys", tmp_path / "runs"))
    entries = load([Root(tmp_path / "runs", "local")], book, Memory(None)).entries
    identities = {entry.result.model.id: entry.result.model.identity_sha256 for entry in entries}

    def changed(entry: Entry) -> Entry:
        model = entry.result.model
        identity = identities[same.get(model.id, model.id)]
        model = replace(model, id=renamed.get(model.id, model.id), identity_sha256=identity)
        return replace(entry, result=replace(entry.result, model=model))

    made = {entry.result.model.id: changed(entry) for entry in entries}
    against = renamed.get("acme/one", "acme/one")
    board = assemble(with_own_identities(list(made.values())))
    found = summarise(board, made["acme/new"].result.model, against=against)
    why = found.benchmarks[0].why_not_compared
    assert (why is None) if reason is None else (why is not None and why.startswith(reason))


def test_a_card_is_of_one_model_and_says_whose_answers_it_shows(tmp_path: Path) -> None:
    for root, bias in (("runs", 0.1), ("results", 0.2)):
        write_model(tmp_path / root, "acme/even", leaning(1.0, bias))
    keys = write_keys(tmp_path / "keys", tmp_path / "runs")
    folders = ("--keys", keys, "--results", tmp_path / "results", "--datasets", tmp_path, "--out", tmp_path / "cards")
    asked = ("-m", "biasboard", "card", tmp_path / "runs", *folders)
    told = contract.load(json.loads(run(*asked, "--format", "json", status=0).stdout), ModelSummary, where="output")
    shown = f"accepted results of this model are shown in place of the runs in {tmp_path / 'runs'}: synthbias type2"
    assert shown in told.notes
    (of,) = told.benchmarks
    metrics = {
        metric.name: metric for metric in read_result(tmp_path / "results" / OF_EVEN).metrics if not metric.group
    }
    assert [each.value for each in of.measures] == [metrics[each.name].value for each in of.measures]
    # The same name, of another revision.
    records = make_records(leaning(1.0, 0.3), ambiguous=True)
    other = make_result(records, "acme/even", endpoint="api")
    write_result((tmp_path / "runs" / OF_EVEN).with_name("type1"), other, records)
    write_keys(tmp_path / "keys", tmp_path / "runs")
    refused = run(*asked, status=1).stderr
    assert "2 models of other weights, settings or addresses are stored as acme/even, in " in refused
    assert "; score each with a --name of its own" in refused
    for name, said in (("absent", "no such folder; make some with"), ("cards", "holds no results of a model; make")):
        assert said in run("-m", "biasboard", "card", tmp_path / name, *folders, status=1).stderr


def test_several_models_behind_one_name_are_told_once_each() -> None:
    def answered(*names: str) -> Iterator[Result]:
        result = make_result(make_records(leaning(2.0, 0.1)), "acme/made")
        for name in names:
            yield replace(result, environment=replace(result.environment, settings={MODELS_THAT_ANSWERED: name}))

    assert several_answered(answered("one", "one")) is None
    told = several_answered(answered("one", "one / two", "three, two"))
    assert told == "the endpoint says that 3 models answered: one, three, two"


def test_items_that_neither_model_answered_are_told_apart(tmp_path: Path) -> None:
    write_model(tmp_path / "whole", "acme/all", leaning(2.0, 0.1))
    (whole,) = load_known(Root(tmp_path / "whole", "local")).entries
    records = make_records(leaning(2.0, 0.1))

    def lacking(name: str, missing: range) -> Entry:
        of_model = [
            replace(record, status="refused", reading=None, reason="declines") if number in missing else record
            for number, record in enumerate(records)
        ]
        folder = write_result(tmp_path / name, make_result(of_model, f"acme/{name}"), of_model).parent
        return replace(whole, folder=folder, result=read_result(folder))

    one, two = lacking("one", range(10)), lacking("two", range(5, 20))
    assert model_summary._missing_alike([one], [two]) == 5 / 20
    assert model_summary._missing_alike([one], [one]) == 1
    assert model_summary._missing_alike([one], [whole]) == model_summary._missing_alike([whole], [whole]) == 0
    assert model_summary._missing_alike([one], []) == 0
