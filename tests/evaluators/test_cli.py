"""The command line as a user meets it: what it prints, which status it ends with, what it leaves behind."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.kinds import TASKS
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from leaderboard.benchmark_pages import pages_of_benchmarks
from leaderboard.verify.entries import Root
from schemas.documents.record import exchange_sha256
from schemas.files import contract
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from schemas.outputs.documents import ListedEntry, Listing
from tests.commands import run
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.made_keys import load_known
from tests.terminal import without_progress

evaluators = partial(run, "-m", "evaluators")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    items = {"type1": made_items(30, ambiguous=True), "type2": made_items(30)}
    return write_dataset(tmp_path / "data", items)


def baseline(dataset: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return evaluators("run", "--dataset", dataset, "--backend", "baseline", "--out", out, *more)


def assert_one_line_error(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1, done.stderr
    errors = [line for line in without_progress(done.stderr).splitlines() if line]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith("error: ")
    for part in parts:
        assert part in errors[0]


def test_the_terminal_shows_the_measures_of_the_front_page() -> None:
    for pages in pages_of_benchmarks():
        benchmark = load_benchmark(pages.name)
        over_configs = {index.name for index in benchmark.indices}
        shown = {headline.name for headline in pages.headlines} - over_configs
        assert shown <= set(benchmark.headline_metrics)
        metrics = {metric.name for task in TASKS.names() for metric in metric_definitions(task)}
        assert set(benchmark.headline_metrics) <= metrics


@pytest.mark.slow
def test_run_scores_every_config_and_says_where_the_results_are(dataset: Path, tmp_path: Path) -> None:
    done = baseline(dataset, tmp_path / "runs", "--model", "stereotype-0.7")
    assert done.returncode == 0, done.stderr
    for line in (
        "baseline/stereotype-0.7 on made type2, prompt intrinsic-v1",
        "  accuracy_gap ",
        "  ideal 0",
        "all 60 items scored",
        "result.json, or with --verbose",
        "next: biasboard board",
    ):
        assert line in done.stdout
    assert "signature" not in done.stdout
    whole = baseline(dataset, tmp_path / "runs", "--model", "stereotype-0.7", "--verbose").stdout
    assert "accuracy (anti)" in whole
    assert "signature made@1.0.0|type2:test" in whole
    results = sorted((tmp_path / "runs" / "made@1.0.0" / "baseline__stereotype-0.7").glob("*/result.json"))
    assert [path.parent.name.partition("-")[0] for path in results] == ["type1", "type2"]


@pytest.mark.slow
def test_all_baselines_in_one_command_reach_their_known_values(dataset: Path, tmp_path: Path) -> None:
    done = baseline(dataset, tmp_path / "runs", "--model", "all", "--config", "type2")
    assert done.returncode == 0, done.stderr
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
def test_results_say_on_how_many_outcomes_certainty_is_measured(dataset: Path, tmp_path: Path) -> None:
    configs = ("--config", "type1", "--config", "type2")
    baseline(dataset, tmp_path / "runs", "--model", "stereotype-0.7", *configs, "--prompt", "mcq3-v1")
    results = {path.parent.name[:5]: json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("result.json")}
    assert {config: result["signature"]["n_outcomes"] for config, result in results.items()} == {"type1": 2, "type2": 3}
    # 1 - (k - ppl) / (k - 1) with ppl = exp(-.7 ln .7 - .3 ln .3), since the sides of a pair are certain and opposite.
    ucerf = {
        config: next(metric["value"] for metric in result["metrics"] if metric["name"] == "ucerf")
        for config, result in results.items()
    }
    assert ucerf == {"type1": pytest.approx(0.8420, abs=5e-5), "type2": pytest.approx(0.4210, abs=5e-5)}
    loaded = load_known(Root(tmp_path / "runs", "local"))
    assert (len(loaded.entries), loaded.left_out) == (2, ())


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
    done = evaluators(*arguments, "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    (again,) = (tmp_path / "again").rglob("result.json")
    assert again.with_name("records.parquet").read_bytes() == path.with_name("records.parquet").read_bytes()


def test_list_names_every_plug_in_of_each_kind() -> None:
    done = evaluators("list", status=0)
    named = {line.split()[0]: line for line in done.stdout.splitlines()}
    for kind, name in (("backends", "replay"), ("tasks", "coreference"), ("benchmarks", "superni")):
        assert name in named[kind]
        assert name in evaluators("list", kind).stdout
    assert "\n  prompt mcq3-v1: " in evaluators("list", "prompts", "coreference").stdout
    assert "\n  metric ucerf 1.0: " in evaluators("list", "metrics", "coreference").stdout


def listing(*words: str) -> list[ListedEntry]:
    done = evaluators("list", *words, "--format", "json", status=0)
    return list(contract.load(json.loads(done.stdout), Listing, where="standard output").entries)


@pytest.mark.parametrize("kind", ["benchmarks", "backends", "scorers", "harnesses", "tasks", "prompts", "metrics"])
def test_a_list_as_json_has_every_entry_whether_or_not_one_is_named(kind: str) -> None:
    entries = listing(kind)
    own = {entry.of or entry.name for entry in entries}
    first = min(own)
    assert listing(kind, first) == [entry for entry in entries if first in (entry.name, entry.of)]
    named = {(entry.kind, entry.name) for entry in listing()}
    assert own <= {name for _, name in named}
    assert {(entry.kind, entry.name) for entry in entries if entry.of is None} <= named
    if kind == "metrics":
        assert {(entry.of, entry.name, entry.version) for entry in entries} == {
            (task, metric.name, metric.version) for task in TASKS.names() for metric in metric_definitions(task)
        }


def test_the_longest_lists_fit_on_a_page() -> None:
    longest = (("metrics",), ("metrics", "classification"), ("benchmarks", "superni"), ("prompts", "classification"))
    outputs = [evaluators("list", *words, status=0).stdout for words in longest]
    assert max(output.count("\n") for output in outputs) <= 100
    # After a calibration a metric is the same again.
    assert "\n  metric accuracy 1.1 (also accuracy_bc, _bcl, " in outputs[1]


@pytest.mark.parametrize("benchmark", ["superni", "gifi"])
def test_families_of_indices_stand_for_every_index_once(benchmark: str) -> None:
    listing = evaluators("list", "benchmarks", benchmark, status=0).stdout
    families = re.findall(r"(?m)^  (\d+ indices|index) ([^;: ]+)[;:] ", listing)
    names = []
    for kind, family in families:
        (*opened, ending) = family.split("}")
        expanded = [""]
        for part in opened:
            shared, _, words = part.partition("{")
            expanded = [begun + shared + word for begun in expanded for word in words.split(",")]
        expanded = [begun + ending for begun in expanded]
        assert kind == (f"{len(expanded)} indices" if opened else "index")
        names += expanded
    entries = json.loads(evaluators("list", "benchmarks", benchmark, "--format", "json", status=0).stdout)["entries"]
    assert sorted(names) == sorted(entry["name"] for entry in entries if entry["kind"] == "index")
    assert names[0] == load_benchmark(benchmark).indices[0].name


def test_the_list_of_kinds_loads_no_plug_in_and_no_large_library() -> None:
    large = ("numpy", "pyarrow", "pandas", "evaluators.task")
    listing = "from evaluators.__main__ import app; app(['list'], standalone_mode=False)"
    done = run("-c", f"import sys; {listing}; print(set(sys.modules) & set({large}))", fresh=True, status=0)
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_kind_or_name_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    assert_one_line_error(evaluators("list", "metric"), "'metric' is nothing to list; have: benchmarks, ")
    assert_one_line_error(evaluators("list", "prompts", "x"), "there is no such task; have: assignment, ")


@pytest.mark.slow
def test_rescore_prints_what_changed(dataset: Path, tmp_path: Path) -> None:
    baseline(dataset, tmp_path / "runs", "--model", "uniform", "--config", "type2")
    (path,) = (tmp_path / "runs").rglob("result.json")
    done = evaluators("rescore", path.parent)
    assert done.returncode == 0, done.stderr
    assert "0 of " in done.stdout
    done = evaluators("rescore", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("metrics changed") == 1
    (tmp_path / "empty").mkdir()
    assert_one_line_error(
        evaluators("rescore", tmp_path / "empty"), "no result.json here; name the folder of a finished run"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--model", "unifrom"), ("baseline 'unifrom' does not exist; have: ", "first-mentioned, last-mentioned")),
        (("--model", "uniform", "--config", "type3"), ("config 'type3' is not in dataset 'made'; have: type1, type2",)),
        (("--model", "uniform", "--split", "dev"), ("split 'dev' is not in config 'type1'; have: test",)),
        (
            ("--model", "uniform", "--prompt", "mcq2-v1", "--prompt", "greedy-v1"),
            ("--prompt greedy-v1 is not used; the run would ask type1 with mcq2-v1, type2 with mcq2-v1; leave it out",),
        ),
        (("--model", "uniform", "--prompt", "mcq9-v1"), ("prompt 'mcq9-v1' does not exist", "have: intrinsic-v1")),
        (("--model", "uniform", "--normalisation", "log"), ("--normalisation log does not exist; have: sum",)),
        (("--model", "uniform", "--dtype", "float16"), ("backend 'baseline' has no use for --dtype; leave it out",)),
        (("--model", "uniform", "--limit", "1"), ("--limit 1 leaves no whole minimal pair",)),
    ],
)
def test_bad_options_are_one_line_errors(
    dataset: Path, tmp_path: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    assert_one_line_error(baseline(dataset, tmp_path / "runs", *arguments), *parts)
    assert not (tmp_path / "runs").exists()


def test_an_unknown_backend_names_those_that_exist(dataset: Path) -> None:
    done = evaluators("run", "--dataset", dataset, "--backend", "vlm", "--model", "x")
    assert_one_line_error(
        done, "backend 'vlm' does not exist; have: baseline, clip, masked, openai, ray, replay, transformers, vllm"
    )


@pytest.mark.slow
def test_a_model_folder_without_tokenizer_is_a_one_line_error(dataset: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    done = evaluators(
        "run",
        "--dataset",
        dataset,
        "--backend",
        "transformers",
        "--model",
        tmp_path / "model",
        "--out",
        tmp_path / "runs",
    )
    assert_one_line_error(done, "has no tokenizer", "save_pretrained")
    assert not (tmp_path / "runs").exists()


def test_no_dataset_is_a_one_line_error(tmp_path: Path) -> None:
    done = baseline(tmp_path, tmp_path / "runs", "--model", "uniform")
    assert_one_line_error(done, "no dataset.json here; name the folder of a built dataset, or build one: biasboard")


def test_a_dataset_of_another_shape_is_a_one_line_error(dataset: Path, tmp_path: Path) -> None:
    manifest = read_manifest(dataset)
    other = tuple(dataclasses.replace(entry, item_shape="essay") for entry in manifest.splits)
    strict_json.write(dataset / "dataset.json", contract.dump(dataclasses.replace(manifest, splits=other)))
    assert_one_line_error(
        baseline(dataset, tmp_path / "runs", "--model", "uniform"),
        "item_shape 'essay' is unknown; have: assignment, coreference",
    )


@pytest.mark.slow
def test_broken_data_is_a_one_line_error_and_leaves_nothing(dataset: Path, tmp_path: Path) -> None:
    path = dataset / "data" / "type2" / "test-00000-of-00001.parquet"
    whole = path.read_bytes()

    def run_on_broken_data() -> subprocess.CompletedProcess[str]:
        return baseline(dataset, tmp_path / "runs", "--model", "uniform", "--config", "type2")

    path.write_bytes(whole[: len(whole) // 2])
    assert_one_line_error(run_on_broken_data(), "not a readable parquet file (truncated?)", str(path))
    path.write_bytes(b"")
    assert_one_line_error(run_on_broken_data(), "not a readable parquet file (truncated?)")
    path.unlink()
    assert_one_line_error(run_on_broken_data(), "no such file; build the dataset")
    path.write_bytes(whole)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["referent"]), path)
    assert_one_line_error(run_on_broken_data(), "column referent is missing; have: item_id")
    rows = table.to_pylist()
    rows[3]["pronoun_gender"] = "neuter"
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    assert_one_line_error(run_on_broken_data(), "row 4: pronoun_gender: 'neuter' is not allowed; have: masculine")
    rows = table.to_pylist()
    sentence = rows[5]["sentence"].replace(f" {rows[5]['pronoun']} ", " xe ")
    rows[5] |= {"pronoun": "xe", "sentence": sentence, "pronoun_start": sentence.index(" xe ") + 1}
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    assert_one_line_error(run_on_broken_data(), "row 6: pronoun: 'xe'")
    rows = table.to_pylist()
    rows[0]["sentence"] = rows[0]["sentence"].replace("room", "hall")
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    assert_one_line_error(run_on_broken_data(), "content sha256", "build the dataset again")
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_broken_manifest_is_a_one_line_error(dataset: Path, tmp_path: Path) -> None:
    text = (dataset / "dataset.json").read_text()
    for broken, part in (
        (text.replace('"seed": null', '"seed": NaN'), "NaN is not JSON; write null and a reason"),
        (text.replace('"name": "made",', '"name": "made", "name": "twice",', 1), "key 'name' stands twice"),
        (text.replace('"licence"', '"license"'), "field"),
    ):
        (dataset / "dataset.json").write_text(broken)
        assert_one_line_error(baseline(dataset, tmp_path / "runs", "--model", "uniform"), part)


@pytest.mark.slow
def test_a_run_says_that_it_achieves_no_more_than_a_baseline_and_what_has_no_value(
    dataset: Path, tmp_path: Path
) -> None:
    told = ("--model", "always-wrong", "--config", "type2", "--prompt", "intrinsic-v1")
    assert "no rank on the board" not in baseline(dataset, tmp_path / "runs", *told).stdout
    (result_file,) = (tmp_path / "runs").rglob("result.json")
    exchanges = [exchange for record in read_run(result_file.parent).records for exchange in record.exchanges]
    answers = tmp_path / "answers.jsonl"
    lines = [
        {
            "request_sha256": exchange_sha256(one),
            "option_logprobs": [max(value or 0, -99) for value in one.option_logprobs],
        }
        for one in exchanges
    ]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    done = evaluators(
        *("run", "--dataset", dataset, "--backend", "replay", "--model", answers, "--name", "lab/wrong"),
        *("--config", "type2", "--prompt", "intrinsic-v1", "--out", tmp_path / "replayed"),
    )
    assert done.returncode == 0, done.stderr
    nothing = "none of 60 answers is right, so there is nothing to compare"
    assert f"without a value: accuracy_gap ({nothing})" in done.stdout
    assert "no rank on the board: accuracy 0.000 is worse than the baseline " in done.stdout
