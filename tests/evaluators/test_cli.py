"""The command line as a user meets it: what it prints, which status it ends with, what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from biasboard.ground.kinds import TASKS
from evaluators.backend import ChoiceRequest, Response
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import Asked, load_task, prompt_of
from leaderboard.benchmark_pages import pages_of_benchmarks
from schemas.files import contract
from schemas.folders.run_folder import read_run
from schemas.outputs.documents import ListedEntry, Listing
from tests.commands import run
from tests.evaluators import word_problems
from tests.evaluators.asking import replayable
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.terminal import without_progress


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    items = {"type1": made_items(30, ambiguous=True), "type2": made_items(30)}
    return write_dataset(tmp_path / "data", items)


def baseline(dataset: Path, out: Path, *more: str, status: int = 0) -> Result:
    done = evaluators("run", "--dataset", dataset, "--backend", "baseline", "--out", out, *more)
    assert done.exit_code == status, done.stderr
    return done


def assert_one_line_error(done: Result, part: str) -> None:
    assert done.exit_code == 1, done.stderr
    (error,) = [line for line in without_progress(done.stderr).splitlines() if line]
    assert error.startswith("error: ")
    assert part in error


def test_the_terminal_shows_the_measures_of_the_front_page() -> None:
    for pages in pages_of_benchmarks():
        benchmark = load_benchmark(pages.name)
        over_configs = {index.name for index in benchmark.indices}
        metrics = {metric.name for task in TASKS.names() for metric in metric_definitions(task)}
        for headline in pages.headlines:
            # A config may be known by measures of its own.
            printed = benchmark.headlines_of.get(headline.config or "", benchmark.headline_metrics)
            assert headline.name in {*printed, *over_configs}
            assert set(printed) <= metrics


@pytest.mark.slow
def test_run_scores_every_config_and_says_where_the_results_are(dataset: Path, tmp_path: Path) -> None:
    said = baseline(dataset, tmp_path / "runs", "--model", "stereotype-0.7").stdout
    shown = ("stereotype-0.7 on made type2, prompt intrinsic-v1", "  accuracy_gap ", "  ideal 0", "all 60 items scored")
    for line in (*shown, "result.json, or with --verbose", "next: biasboard board"):
        assert line in said
    assert "signature" not in said
    whole = baseline(dataset, tmp_path / "runs", "--model", "stereotype-0.7", "--verbose").stdout
    assert "accuracy (anti)" in whole
    assert "signature made@1.0.0|type2:test" in whole
    results = sorted((tmp_path / "runs" / "made@1.0.0" / "baseline__stereotype-0.7").glob("*/result.json"))
    assert [path.parent.name.partition("-")[0] for path in results] == ["type1", "type2"]


@pytest.mark.slow
def test_all_baselines_in_one_command_reach_their_known_values(dataset: Path, tmp_path: Path) -> None:
    done = baseline(dataset, tmp_path / "runs", "--model", "all", "--config", "type2")
    # A line for each run would be 60 in the demo; the results are in their files and on the board.
    assert done.stdout.splitlines()[0] == "made 1.0.0: models 8, results 8 on type2"
    assert len(done.stdout.splitlines()) == 2
    values = {}
    for path in (tmp_path / "runs").rglob("result.json"):
        result = json.loads(path.read_text())
        overall = {metric["name"]: metric["value"] for metric in result["metrics"] if not metric["group"]}
        values[result["model"]["id"].removeprefix("baseline/")] = (overall["accuracy"], round(overall["ucerf"], 4))
    items = made_items(30)
    last = sum(item.referent == item.occupations[1] for item in items) / len(items)
    # It cannot see the pronoun, and treats both sides of a pair alike.
    assert values.pop("best-cue")[1] == 1.0
    assert values == {
        "uniform": (0.5, 1.0),
        "first-mentioned": (pytest.approx(1 - last), 1.0),
        "last-mentioned": (pytest.approx(last), 1.0),
        "stereotype": (0.5, 0.0),
        "stereotype-0.7": (0.5, 0.842),
        "stereotype-0.55": (0.5, 0.99),
        "always-wrong": (0.0, 1.0),
    }


@pytest.mark.slow
def test_the_command_of_a_result_reproduces_it(dataset: Path, tmp_path: Path) -> None:
    baseline(
        dataset, tmp_path / "runs", "--model", "uniform", "--config", "type2", "--prompt", "mcq3-v1", "--limit", "20"
    )
    (path,) = (tmp_path / "runs").rglob("result.json")
    command = json.loads(path.read_text())["command"]
    assert command.startswith("python -m evaluators run --dataset out/datasets/made --config type2")
    assert str(tmp_path) not in command
    arguments = command.removeprefix("python -m evaluators ").replace("out/datasets/made", str(dataset)).split()
    assert evaluators(*arguments, "--out", tmp_path / "again").exit_code == 0
    (again,) = (tmp_path / "again").rglob("result.json")
    assert again.with_name("records.parquet").read_bytes() == path.with_name("records.parquet").read_bytes()


def listing(*words: str) -> list[ListedEntry]:
    document = json.loads(evaluators("list", *words, "--format", "json").stdout)
    return list(contract.load(document, Listing, where="standard output").entries)


@pytest.mark.slow
def test_a_list_has_every_entry_whether_or_not_one_is_named() -> None:
    everything = {(entry.kind, entry.name) for entry in listing()}
    for kind in ("benchmarks", "scorers", "metrics"):
        entries = listing(kind)
        own = {entry.of or entry.name for entry in entries}
        first = min(own)
        assert listing(kind, first) == [entry for entry in entries if first in (entry.name, entry.of)]
        assert own <= {name for _, name in everything}
        text = evaluators("list", kind).stdout
        assert [name for name in own if name not in text] == []
    assert {(entry.of, entry.name, entry.version) for entry in listing("metrics")} == {
        (task, metric.name, metric.version) for task in TASKS.names() for metric in metric_definitions(task)
    }
    about = evaluators("list", "metrics", "coreference").stdout.splitlines()
    names = [entry.name for entry in listing("metrics", "coreference")]
    assert [line.split()[1].rstrip(":") for line in about if line.startswith("  metric ")] == names


@pytest.mark.slow
def test_the_list_of_kinds_loads_no_plug_in_and_no_large_library() -> None:
    large = ("numpy", "pyarrow", "pandas", "evaluators.task")
    listing = "from evaluators.__main__ import app; app(['list'], standalone_mode=False)"
    done = run("-c", f"import sys; {listing}; print(set(sys.modules) & set({large}))", fresh=True, status=0)
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_kind_or_name_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    assert_one_line_error(evaluators("list", "metric"), "'metric' is nothing to list; have: benchmarks, ")
    assert_one_line_error(evaluators("list", "prompts", "x"), "there is no such task; have: assignment, ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("--model unifrom", "baseline 'unifrom' does not exist; have: "),
        ("--config type3", "config 'type3' is not in dataset 'made'; have: type1, type2"),
        ("--split dev", "split 'dev' is not in config 'type1'; have: test"),
        ("--normalisation log", "--normalisation log does not exist; have: sum"),
        ("--scorer default", "--scorer: task coreference reads no scores of texts; leave it out"),
        ("--backend vlm", "backend 'vlm' does not exist; have: baseline, clip, masked, openai, "),
    ],
)
def test_bad_options_are_one_line_errors(dataset: Path, tmp_path: Path, arguments: str, part: str) -> None:
    done = baseline(dataset, tmp_path / "runs", "--model", "uniform", *arguments.split(), status=1)
    assert_one_line_error(done, part)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_run_says_that_it_achieves_no_more_than_a_baseline_and_what_has_no_value(
    dataset: Path, tmp_path: Path
) -> None:
    told = ("--model", "always-wrong", "--config", "type2", "--prompt", "intrinsic-v1")
    assert "no rank on the board" not in baseline(dataset, tmp_path / "runs", *told).stdout
    (result_file,) = (tmp_path / "runs").rglob("result.json")
    exchanges = (one for record in read_run(result_file.parent).records for one in record.exchanges)
    said = [
        (
            ChoiceRequest(prompt=str(one.prompt), options=one.options, outcomes=one.outcomes),
            Response(status="answered", option_logprobs=tuple(max(value or 0, -99) for value in one.option_logprobs)),
        )
        for one in exchanges
    ]
    answers = replayable(tmp_path / "answers", said)
    replay = ("--backend", "replay", "--model", str(answers), "--name", "lab/wrong", *told[2:])
    done = baseline(dataset, tmp_path / "replayed", *replay)
    nothing = "none of 60 answers is right, so there is nothing to compare"
    assert f"without a value: accuracy_gap ({nothing})" in done.stdout
    assert "no rank on the board: accuracy 0.000 is worse than the baseline " in done.stdout


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "one", {"type1": made_items(4, ambiguous=True), "type2": made_items(4)}, name="one")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "two", {"type2": made_items(6)}, name="two")


def uniform(out: Path, *arguments: str | Path) -> Result:
    return evaluators(
        "run", "--backend", "baseline", "--model", "uniform", "--out", out, *arguments, "--format", "json"
    )


def told(done: Result, *fields: str, status: int = 0) -> list[Any]:
    assert done.exit_code == status, done.stderr
    return [tuple(one[field] for field in fields) for one in json.loads(done.stdout)["runs"]]


ASKED = ("dataset", "config", "prompt")


@pytest.mark.slow
def test_every_config_of_every_dataset_is_asked_with_every_prompt_or_one_of_its_own(
    one: Path, two: Path, tmp_path: Path
) -> None:
    prompts = ("--prompt", "mcq2-v1", "--prompt", "mcq3-v1")
    done = uniform(tmp_path / "runs", "--dataset", one, "--dataset", two, "--dataset", one, *prompts)
    places = [("one", "type1"), ("one", "type2"), ("two", "type2")]
    assert told(done, *ASKED) == [(*place, prompt) for place in places for prompt in ("mcq2-v1", "mcq3-v1")]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 6
    for others, of_type2 in ((("--prompt", "mcq2-v1"), "mcq2-v1"), ((), "intrinsic-v1")):
        done = uniform(tmp_path / "runs", "--dataset", one, *others, "--prompt", "type1=mcq3-v1")
        assert told(done, *ASKED) == [("one", "type1", "mcq3-v1"), ("one", "type2", of_type2)]
    for wrong, said in (
        ("type3=mcq2-v1", "--prompt type3=mcq2-v1 is not used; the run would ask type1 with "),
        ("type1=cot", "prompt 'cot' does not exist for task 'coreference'"),
    ):
        refused = uniform(tmp_path / "runs", "--dataset", one, "--prompt", wrong)
        assert (refused.exit_code, said in refused.stderr) == (1, True), refused.stderr


@pytest.mark.slow
def test_a_prompt_that_only_one_task_has_leaves_the_others_with_their_own(one: Path, tmp_path: Path) -> None:
    datasets = ("--dataset", one, "--dataset", word_problems.build(tmp_path / "texts"))
    unsent = ("--backend", "openai", "--model", "made/model", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    done = evaluators("run", *datasets, *unsent, "--format", "json", "--prompt", "mcq2-generate-v1")
    prompts: dict[str, str] = dict(told(done, "config", "prompt"))
    assert {prompts.pop(config) for config in ("type1", "type2")} == {"mcq2-generate-v1"}
    assert prompts == {
        name: prompt_of(load_task("word_problem" if name == "math" else name), None).id
        for name in ("recognition", "continuation", "assignment", "math")
    }
    refused = evaluators("run", *datasets, *unsent, "--prompt", "cot")
    assert (refused.exit_code, "prompt 'cot' does not exist" in refused.stderr) == (1, True), refused.stderr


def test_json_of_a_failure_holds_the_runs_before_it(one: Path, two: Path, tmp_path: Path) -> None:
    # The answers to the first dataset alone: the second has other items too.
    asked = Asked(load_task("coreference").prompts["intrinsic-v1"])
    requests = [request for item in made_items(4) for request in load_task("coreference").requests(item, asked)]
    said = Response(status="answered", option_logprobs=(-1.0, -2.0))
    answers = replayable(tmp_path / "answers", [(request, said) for request in requests])
    replay = ("--backend", "replay", "--model", answers, "--name", "lab/x", "--config", "type2")
    done = evaluators(
        "run", "--dataset", one, "--dataset", two, *replay, "--out", tmp_path / "runs", "--format", "json"
    )
    assert told(done, "dataset", status=3) == [("one",)]
    assert "requests failed" in done.stderr
