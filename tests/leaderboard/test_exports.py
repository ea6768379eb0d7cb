"""The command ``export``: what it refuses, the evaluation results of the Hub, and Every Eval Ever.

What is exported is compared with what the files of the result say, read without our code. Rules of the schema of Every
Eval Ever are written down here as its validator (every-eval-ever 0.3.0) has them, since it needs a newer Python than
we do.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
import shutil
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow.parquet
import pytest
import yaml

from evaluators.runs.measure.stored_results import key_of_dataset
from leaderboard.verify.keys import write_key
from schemas.folders.dataset_folder import read_manifest
from tests.commands import REPOSITORY, run
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.forging import Places, SkilledBackend
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.leaderboard.test_submit import Places as Board
from tests.leaderboard.test_submit import places as board  # noqa: F401

pytestmark = pytest.mark.slow
HUB = ("hub-results", "--dataset-repo", "acme/made")
SHA = "0123456789abcdef0123456789abcdef01234567"
PLACE = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(_samples\.jsonl|\.json)"
)


def export(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call the command in a folder, by default one without a board."""
    return run("-W", "error", "-m", "leaderboard", "export", *arguments, cwd=folder or REPOSITORY / "site")


def digest(text: str) -> str:
    """A text as it is given where it may not go out."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Made:
    """What one call wrote about a single result as Every Eval Ever."""

    def __init__(self, out: Path, *arguments: str | Path) -> None:
        self.out, self.done = out, export("every-eval-ever", *arguments, "--out", out)
        self.paths = sorted(path for path in out.rglob("*") if path.is_file())

    @property
    def contents(self) -> dict[str, bytes]:
        return {path.relative_to(self.out).as_posix(): path.read_bytes() for path in self.paths}

    @cached_property
    def log(self) -> Any:
        (path,) = (path for path in self.paths if path.suffix == ".json")
        return json.loads(path.read_text())

    @cached_property
    def rows(self) -> list[Any]:
        texts = [path.read_text() for path in self.paths if path.suffix == ".jsonl"]
        return [json.loads(line) for text in texts for line in text.split("\n")[:-1]]


def complaints(value: Any, where: str = "") -> list[str]:
    """Every detail that is no text, and every number that is none: the schema wants both so."""
    if isinstance(value, dict):
        inside = [found for name, item in value.items() for found in complaints(item, f"{where}.{name}")]
        if where.rpartition(".")[2] in ("additional_details", "details", "metadata"):
            inside += [f"{where}.{name}" for name, item in value.items() if not isinstance(item, str)]
        return inside
    if isinstance(value, list):
        return [found for item in value for found in complaints(item, where)]
    return [where] if isinstance(value, float) and not math.isfinite(value) else []


def checked(out: Path, *arguments: str | Path) -> Made:
    """An export after what the validator checks of a pair of files."""
    made = Made(out, *arguments)
    assert made.done.returncode == 0, made.done.stderr
    log = made.log
    assert all(map(PLACE.fullmatch, made.contents))
    assert complaints(log) == []
    assert (log["schema_version"], log["source_metadata"]["source_type"]) == ("0.3.0", "evaluation_run")
    ids = [result["evaluation_result_id"] for result in log["evaluation_results"]]
    assert len(set(ids)) == len(ids)
    for result in log["evaluation_results"]:
        metric, score = result["metric_config"], result["score_details"]["score"]
        assert metric["min_score"] <= score <= metric["max_score"]
        assert isinstance(metric["lower_is_better"], bool)
    detail = log.get("detailed_evaluation_results")
    samples = {name: content for name, content in made.contents.items() if name.endswith(".jsonl")}
    assert [*samples] == ([] if detail is None else [detail["file_path"]])
    for content in samples.values():
        assert detail["checksum"] == hashlib.sha256(content).hexdigest()
        # The validator ends lines as str.splitlines does.
        assert detail["total_rows"] == len(content.decode().splitlines()) == len(made.rows)
        assert complaints(made.rows) == []
        assert {row["evaluation_id"] for row in made.rows} == {log["evaluation_id"]}
        assert {row["model_id"] for row in made.rows} == {log["model_info"]["id"]}
    return made


def of_places(places: Places) -> tuple[str | Path, ...]:
    folders = ("--keys", places.keys, "--datasets", places.keys.parent)
    return (*folders, "--site-address", "https://board.example/")


@pytest.fixture(scope="module")
def honest(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The export of an honest result, with its dataset at hand."""
    return checked(tmp_path_factory.mktemp("out"), places.honest, *of_places(places))


def test_every_metric_hash_model_and_page_of_the_result_goes_out(honest: Made, places: Places) -> None:
    result = json.loads((places.honest / "result.json").read_text())
    exported = {
        (one["metric_config"]["metric_id"], repr(one["metric_config"]["metric_parameters"])): one
        for one in honest.log["evaluation_results"]
    }
    known = [metric for metric in result["metrics"] if metric["value"] is not None]
    assert len(exported) == len(known) > 50
    for metric in known:
        one = exported[f"synthbias.{metric['name']}", repr(metric["group"])]
        config, score = one["metric_config"], one["score_details"]
        assert score["score"] == metric["value"]
        assert (config["min_score"], config["max_score"]) == (metric["minimum"], metric["maximum"])
        assert config["additional_details"]["version"] == metric["version"]
        assert config["additional_details"].get("ideal") == (None if metric["ideal"] is None else str(metric["ideal"]))
        assert (score["details"]["n"], score["details"]["n_excluded"]) == (str(metric["n"]), str(metric["n_excluded"]))
        if metric["interval"] is None:
            assert "uncertainty" not in score
            assert score["details"]["interval_reason"]
            continue
        interval, bounds = metric["interval"], score["uncertainty"]["confidence_interval"]
        assert (bounds["lower"], bounds["upper"]) == (interval["low"], interval["high"])
        assert (bounds["confidence_level"], bounds["method"]) == (interval["level"], interval["method"])
        assert score["details"]["n_clusters"] == str(interval["n_clusters"])
    configs = {name: one["metric_config"] for (name, _), one in exported.items()}
    told = {name: (one["lower_is_better"], one["additional_details"]["direction"]) for name, one in configs.items()}
    assert told["synthbias.eo_gap"] == (True, "lower is better")
    assert told["synthbias.accuracy"] == (False, "higher is better")
    nearer = "nearer to the ideal value is better, and lower_is_better says nothing"
    assert told["synthbias.accuracy_gap"] == (False, nearer)
    source = honest.log["source_metadata"]["additional_details"]
    for name in ("result.json", "records.parquet"):
        sha256 = hashlib.sha256((places.honest / name).read_bytes()).hexdigest()
        assert source[f"{name.partition('.')[0]}_sha256"] == sha256
    name = f"{result['signature_sha256'][:8]}-{result['model']['identity_sha256'][:8]}.html"
    assert source["board_page"].startswith("https://board.example/models/acme__honest/")
    assert source["board_page"].endswith(name)
    manifest = json.loads((places.keys.parent / "dataset" / "dataset.json").read_text())
    for one in honest.log["evaluation_results"]:
        details = one["source_data"]["additional_details"]
        assert (details["dataset_sha256"], details["version"]) == (manifest["content_sha256"], manifest["version"])


def test_rows_are_the_verdicts_of_a_plain_loop_and_the_same_again(honest: Made, places: Places, tmp_path: Path) -> None:
    records = pyarrow.parquet.read_table(places.honest / "records.parquet").to_pylist()
    assert len(honest.rows) == len(records) == 200
    right = []
    for row, record in zip(honest.rows, records, strict=True):
        shares = dict(zip(record["reading"]["outcomes"], record["reading"]["probabilities"], strict=True))
        best = max(shares, key=shares.__getitem__)
        right.append(best == record["target"])
        assert row["sample_id"] == record["item_id"]
        assert row["evaluation"] == {"is_correct": right[-1], "score": float(right[-1])}
        assert row["input"]["raw"] == record["exchanges"][0]["prompt"]
        assert row["input"]["reference"] == [record["target"]]
        assert row["answer_attribution"][0]["extracted_value"] == best
        assert json.loads(row["output"]["raw"][0])["option_logprobs"] == record["exchanges"][0]["option_logprobs"]
        assert row["metadata"]["group.occupation"] == dict(record["groups"])["occupation"]
    assert 0 < sum(right) < len(right)
    (linked,) = {row["evaluation_result_id"] for row in honest.rows}
    accuracy = {one["evaluation_result_id"]: one["score_details"]["score"] for one in honest.log["evaluation_results"]}
    assert accuracy[linked] == pytest.approx(sum(right) / len(right), abs=1e-12)
    moved = shutil.copytree(places.honest, tmp_path / "elsewhere" / "run")
    assert Made(tmp_path / "out", moved, *of_places(places)).contents == honest.contents


def test_refused_and_tied_answers_are_counted_and_not_wrong(tmp_path: Path) -> None:
    certain = {3: None, 4: 0.5}
    write_model(tmp_path / "runs", "acme/small", lambda reference, other, gender, pair: certain.get(pair, 0.9))
    made = checked(tmp_path / "o", tmp_path / "runs", "--keys", write_keys(tmp_path / "keys", tmp_path / "runs"))
    assert [row["evaluation"]["is_correct"] for row in made.rows] == [True] * 96
    told = made.log["detailed_evaluation_results"]["additional_details"]["records_without_a_row"]
    assert json.loads(told) == {"neither right nor wrong": 2, "refused": 2}


@pytest.mark.parametrize(
    ("is_free", "is_known", "why"),
    [(False, True, "the licence forbids it"), (True, False, "nothing said that its texts may go out")],
)
def test_texts_that_may_not_go_out_are_hashes(tmp_path: Path, is_free: bool, is_known: bool, why: str) -> None:
    items = made_items(20)
    dataset = write_dataset(tmp_path / "dataset", {"type2": items}, redistributable=is_free)
    manifest = read_manifest(dataset)
    made_key = key_of_dataset(dataset, manifest, config="type2", task="coreference", prompt="intrinsic-v1")
    write_key(tmp_path / "keys", made_key)
    answered = ask(dataset, tmp_path / "runs", SkilledBackend(tmp_path / "log", name="a/b"), prompt="intrinsic-v1")
    datasets = tmp_path if is_known else tmp_path / "none"
    made = checked(tmp_path / "o", answered, "--keys", tmp_path / "keys", "--datasets", datasets)
    text = "\n".join(map(json.dumps, made.rows))
    for item in items:
        assert item.item_id in text
        assert item.sentence not in text
        assert not any(f'"{name}"' in text or f" {name}." in text for name in item.occupations)
    (asked,) = made.rows[0]["metadata"]["request_sha256"].strip('["]').split(",")
    assert made.rows[0]["input"]["raw"] == f"sha256:{asked}"
    assert made.rows[0]["input"]["reference"] == [digest(str(items[0].referent))]
    assert why in made.log["detailed_evaluation_results"]["additional_details"]["texts"]


def test_generated_answers_go_out_with_what_was_read(tmp_path: Path) -> None:
    folder = write_gifi_model(tmp_path / "runs", "lab/even", 0.5, tasks=("recognition",))["recognition"]
    made = Made(tmp_path / "o", tmp_path / "runs", "--keys", write_keys(tmp_path / "keys", tmp_path / "runs"))
    records = pyarrow.parquet.read_table(folder / "records.parquet").to_pylist()
    for row, record in zip(made.rows, records, strict=True):
        assert row["evaluation"]["is_correct"] == (record["reading"]["answers"] == [record["target"]])
        # No manifest says that the texts may go out.
        assert row["output"]["raw"] == [digest(record["exchanges"][0]["text"])]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A good model on both configs, and a coin toss; with keys beside them."""
    for ambiguous in (False, True):
        write_model(tmp_path / "runs", "acme/good", leaning(2.0, 0.5), ambiguous=ambiguous)
    write_model(tmp_path / "runs", "acme/coin", uniform)
    write_keys(tmp_path / "keys", tmp_path / "runs")
    return tmp_path / "runs"


def hub(*runs: Path, root: Path, options: tuple[str | Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    return export(*HUB, *runs, *options, "--out", root / "o", "--keys", root / "keys")


def test_the_hub_gets_one_value_for_each_config(runs: Path, tmp_path: Path) -> None:
    good = runs / "synthbias@9.0.0" / "acme__good" / "type2"
    path = tmp_path / "o" / "acme__good" / ".eval_results" / "synthbias.yaml"
    options = ("--dataset-revision", SHA, "--site-address", "https://board.example")
    assert hub(good, root=tmp_path, options=options).stdout == f"wrote {path}\n"
    (entry,) = huggingface_hub.parse_eval_result_entries(yaml.safe_load(path.read_text()))
    metrics = json.loads((good / "result.json").read_text())["metrics"]
    (worst,) = (metric for metric in metrics if metric["name"] == "worst_group_accuracy" and not metric["group"])
    assert (entry.task_id, entry.value) == ("type2", worst["value"])
    assert (entry.dataset_id, entry.dataset_revision, entry.date) == ("acme/made", SHA, None)
    assert str(entry.source_url).startswith("https://board.example/models/acme__good/synthbias-")
    for words in (
        f"[{worst['interval']['low']:.4f}, {worst['interval']['high']:.4f}]",
        f"n = {worst['n']} {worst['unit']}",
        "scoring option_logprob, sum, prompt intrinsic-v1",
    ):
        assert words in str(entry.notes)


def test_the_hub_gets_one_result_for_each_task_and_only_what_the_board_would_rank(runs: Path, tmp_path: Path) -> None:
    write_model(runs, "flat", leaning(2.0, 0.5))
    write_model(runs, "baseline/uniform", uniform, endpoint="baseline")
    first = runs / "synthbias@9.0.0" / "acme__good" / "type2"
    second = Path(shutil.copytree(first, tmp_path / "second"))
    done = hub(runs, second, root=tmp_path)
    assert done.returncode == 1
    said = [line.removeprefix("not exported: ") for line in done.stderr.splitlines() if "not exported:" in line]
    told = dict(line.removeprefix(f"{runs}/synthbias@9.0.0/").split(": ", 1) for line in said)
    reasons = {
        "acme__coin/type2": "has no rank: accuracy 0.500 is no better than the baseline",
        "acme__good/type1": "worst_group_accuracy has no value: the items have no right answer",
        "baseline__uniform/type2": "has no rank: baselines are shown for comparison",
        "flat/type2": "model 'flat' has no repository on the Hub",
        str(second): f"{first} is of the same model and task",
    }
    assert told.keys() == reasons.keys()
    assert [place for place, reason in reasons.items() if not told[place].startswith(reason)] == []
    assert done.stderr.splitlines()[-1] == "5 of 6 results were not exported"
    assert [path.parts[-3] for path in (tmp_path / "o").rglob("*.yaml")] == ["acme__good"]


def test_an_unsound_result_stops_no_other_and_unknown_items_are_not_exported(runs: Path, tmp_path: Path) -> None:
    done = export("every-eval-ever", runs, "--out", tmp_path / "o", "--keys", tmp_path / "none")
    assert done.returncode == 1
    assert done.stderr.count("the board has no answer key of synthbias@9.0.0") == 3
    assert not (tmp_path / "o").exists()
    bad = runs / "synthbias@9.0.0" / "acme__coin" / "type2" / "result.json"
    bad.write_text(bad.read_text().replace('"value": 0.5', '"value": 0.75', 1))
    made = Made(tmp_path / "o", runs, tmp_path / "nowhere", "--keys", tmp_path / "keys")
    assert made.done.returncode == 1
    first, second = (line for line in made.done.stderr.splitlines() if line.startswith("not exported: "))
    assert first == f"not exported: {tmp_path / 'nowhere'}: no such folder; name the folder of a finished run"
    assert second.startswith(f"not exported: {bad.parent}: result.json: metric ")
    assert {path.parent.name for path in made.paths if path.suffix == ".json"} == {"good"}


def test_a_submission_gives_dates_and_a_withdrawal_stops_the_export(board: Board) -> None:  # noqa: F811
    done = board.call("submit", board.run, "--contact", "a@b.example", "--model-card", "https://example.org/card")
    assert done.returncode == 0, done.stderr
    (path,) = board.results.rglob("result.json")
    place = path.parent.relative_to(board.results).as_posix()
    board.call("accept", place, "--owner", "acme")
    done = export("every-eval-ever", "leaderboard/results", "--out", "out", folder=board.root)
    assert done.returncode == 0, done.stderr
    (written,) = (board.root / "out").rglob("*.json")
    log = json.loads(written.read_text())
    told = json.loads(path.with_name("submission.json").read_text())
    seconds = int(log["evaluation_timestamp"])
    assert seconds % 86_400 == 0
    assert told["run_date"] == datetime.date.fromordinal(719_163 + seconds // 86_400).isoformat()
    assert log["source_metadata"]["additional_details"]["origin"] == "accepted"
    assert log["source_metadata"]["additional_details"]["model_card"] == "https://example.org/card"
    board.call("accept", place, "--decision", "withdrawn", "--reason", "wrong template")
    today = datetime.date.today().isoformat()
    register = board.results / "register.json"
    register.write_text(register.read_text().replace(f'"accepted": "{today}"', '"accepted": "2026-01-01"'))
    done = export("every-eval-ever", path.parent, "--out", "out2", folder=board.root)
    assert done.returncode == 1
    assert f"withdrawn on {today}: wrong template" in done.stderr
    assert not (board.root / "out2").exists()


def test_wrong_words_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    arguments: tuple[str, ...]
    for arguments, said in (
        (("hub-results", "."), "name its repository with --dataset-repo ORG/NAME"),
        ((*HUB, ".", "--dataset-revision", "main"), "--dataset-revision main: is no commit"),
        (("every-eval-ever", ".", "--site-address", "board"), "--site-address board: is no address of a site"),
    ):
        done = export(*arguments, "--out", tmp_path / "o")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert said in done.stderr
