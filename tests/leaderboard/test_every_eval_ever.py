"""The export to Every Eval Ever, compared with what the files of the result say, read without our code.

Rules of the schema are written down here as its validator (every-eval-ever 0.3.0) has them, since it needs a newer
Python than we do.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from evaluators.runs.measure.answer_keys import key_of_dataset
from leaderboard.verify.keys import write_key
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.exporting import Made, export
from tests.leaderboard.forging import Places, SkilledBackend
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, write_model

PLACE = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(_samples\.jsonl|\.json)"
)


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


def check(made: Made) -> None:
    """What the validator checks of a pair of files."""
    log = made.log
    assert all(PLACE.fullmatch(path.relative_to(made.out).as_posix()) for path in made.paths)
    assert complaints(log) == []
    assert (log["schema_version"], log["source_metadata"]["source_type"]) == ("0.3.0", "evaluation_run")
    ids = [result["evaluation_result_id"] for result in log["evaluation_results"]]
    assert len(set(ids)) == len(ids)
    for result in log["evaluation_results"]:
        metric, score = result["metric_config"], result["score_details"]["score"]
        assert metric["min_score"] <= score <= metric["max_score"]
        assert isinstance(metric["lower_is_better"], bool)
    detail = log.get("detailed_evaluation_results")
    assert (detail is None) == (made.samples is None)
    if detail is not None and made.samples is not None:
        content = made.samples.read_bytes()
        assert detail["file_path"] == made.samples.relative_to(made.out).as_posix()
        assert detail["checksum"] == hashlib.sha256(content).hexdigest()
        # The validator ends lines as str.splitlines does.
        assert detail["total_rows"] == len(content.decode().splitlines()) == len(made.rows)
        assert complaints(made.rows) == []
        assert {row["evaluation_id"] for row in made.rows} == {log["evaluation_id"]}
        assert {row["model_id"] for row in made.rows} == {log["model_info"]["id"]}


@pytest.fixture(scope="module")
def honest(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The export of an honest result, with its dataset at hand."""
    out = tmp_path_factory.mktemp("out")
    options = ("--keys", places.keys, "--datasets", places.keys.parent, "--site-address", "https://board.example/")
    return Made(out, export("every-eval-ever", places.honest, "--out", out, *options))


@pytest.mark.slow
def test_every_metric_of_the_result_goes_out(honest: Made, places: Places) -> None:
    assert honest.done.returncode == 0, honest.done.stderr
    check(honest)
    result = json.loads((places.honest / "result.json").read_text())
    exported = {
        (one["metric_config"]["metric_id"], one["metric_config"]["metric_parameters"].__repr__()): one
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


@pytest.mark.slow
def test_hashes_model_and_page_go_out(honest: Made, places: Places) -> None:
    result = json.loads((places.honest / "result.json").read_text())
    told = honest.log["source_metadata"]["additional_details"]
    assert told["result_sha256"] == hashlib.sha256((places.honest / "result.json").read_bytes()).hexdigest()
    assert told["records_sha256"] == hashlib.sha256((places.honest / "records.parquet").read_bytes()).hexdigest()
    assert told["signature_sha256"] == result["signature_sha256"]
    assert json.loads(told["counts"]) == result["counts"]
    assert told["provenance"] == "recomputed"
    page, _, name = told["board_page"].rpartition("/")
    assert page == "https://board.example/models/acme__honest"
    assert name.endswith(f"{result['signature_sha256'][:8]}-{result['model']['identity_sha256'][:8]}.html")
    model = honest.log["model_info"]
    assert (model["id"], model["developer"]) == ("acme/honest", "acme")
    assert model["additional_details"]["revision"] == result["model"]["revision"]
    manifest = json.loads((places.keys.parent / "dataset" / "dataset.json").read_text())
    (dataset,) = {json.dumps(one["source_data"]) for one in honest.log["evaluation_results"]}
    assert json.loads(dataset)["additional_details"]["dataset_sha256"] == manifest["content_sha256"]
    assert json.loads(dataset)["additional_details"]["version"] == manifest["version"]


def test_rows_are_the_verdicts_that_a_plain_loop_finds(honest: Made, places: Places) -> None:
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


def test_lower_is_better_only_where_the_ideal_says_so(honest: Made) -> None:
    told = {
        one["metric_config"]["metric_id"]: (
            one["metric_config"]["lower_is_better"],
            one["metric_config"]["additional_details"]["direction"],
        )
        for one in honest.log["evaluation_results"]
    }
    assert told["synthbias.eo_gap"] == (True, "lower is better")
    assert told["synthbias.accuracy"] == (False, "higher is better")
    nearer = "nearer to the ideal value is better, and lower_is_better says nothing"
    assert told["synthbias.accuracy_gap"] == (False, nearer)


@pytest.mark.slow
def test_the_same_result_gives_the_same_bytes_elsewhere(honest: Made, places: Places, tmp_path: Path) -> None:
    moved = shutil.copytree(places.honest, tmp_path / "elsewhere" / "run")
    options = ("--keys", places.keys, "--datasets", places.keys.parent, "--site-address", "https://board.example/")
    for _ in range(2):
        export("every-eval-ever", moved, "--out", tmp_path / "out", *options)
        assert Made(tmp_path / "out", honest.done).contents == honest.contents


@pytest.mark.slow
def test_an_unknown_value_is_told_and_never_a_number(tmp_path: Path) -> None:
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5), ambiguous=True)
    keys = write_keys(tmp_path / "keys", tmp_path / "runs")
    made = Made(tmp_path / "o", export("every-eval-ever", tmp_path / "runs", "--out", tmp_path / "o", "--keys", keys))
    check(made)
    assert made.samples is None
    (path,) = (tmp_path / "runs").rglob("result.json")
    metrics = json.loads(path.read_text())["metrics"]
    without = {(m["name"], repr(m["group"])): m["reason"] for m in metrics if m["value"] is None}
    assert ("accuracy", "{}") in without
    told = json.loads(made.log["source_metadata"]["additional_details"]["metrics_without_value"])
    assert len(told) == len(without) == len(metrics) - len(made.log["evaluation_results"])
    for one in told:
        name = one["metric_config"]["metric_id"].removeprefix("synthbias.")
        assert one["reason"] == without[name, repr(one["metric_config"]["metric_parameters"])]
    assert not any("accuracy" in one["evaluation_result_id"] for one in made.log["evaluation_results"])


@pytest.mark.slow
def test_refused_and_tied_answers_are_counted_and_not_wrong(tmp_path: Path) -> None:
    def sometimes(reference: str, other: str, gender: str, pair: int) -> float | None:
        return None if pair == 3 else 0.5 if pair == 4 else 0.9

    write_model(tmp_path / "runs", "acme/small", sometimes)
    keys = write_keys(tmp_path / "keys", tmp_path / "runs")
    made = Made(tmp_path / "o", export("every-eval-ever", tmp_path / "runs", "--out", tmp_path / "o", "--keys", keys))
    check(made)
    assert len(made.rows) == 96
    assert all(row["evaluation"]["is_correct"] for row in made.rows)
    told = made.log["detailed_evaluation_results"]["additional_details"]["records_without_a_row"]
    assert json.loads(told) == {"neither right nor wrong": 2, "refused": 2}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["forbidden", "unknown"])
def test_texts_that_may_not_go_out_are_hashes(case: str, tmp_path: Path) -> None:
    items = made_items(20)
    dataset = write_dataset(tmp_path / "dataset", {"type2": items}, redistributable=case != "forbidden")
    made_key = key_of_dataset(
        dataset, read_manifest(dataset), config="type2", task="coreference", prompt="intrinsic-v1"
    )
    write_key(tmp_path / "keys", made_key)
    run = ask(dataset, tmp_path / "runs", SkilledBackend(tmp_path / "log", name="a/b"), prompt="intrinsic-v1")
    folder = tmp_path if case == "forbidden" else tmp_path / "none"
    done = export("every-eval-ever", run, "--out", tmp_path / "o", "--keys", tmp_path / "keys", "--datasets", folder)
    made = Made(tmp_path / "o", done)
    check(made)
    assert made.samples is not None
    text = made.samples.read_text()
    for item in items:
        assert item.item_id in text
        assert item.sentence not in text
        assert not any(f'"{name}"' in text or f" {name}." in text for name in item.occupations)
    (asked,) = made.rows[0]["metadata"]["request_sha256"].strip('["]').split(",")
    assert made.rows[0]["input"]["raw"] == f"sha256:{asked}"
    reference = hashlib.sha256(str(items[0].referent).encode()).hexdigest()[:16]
    assert made.rows[0]["input"]["reference"] == [f"sha256:{reference}"]
    said = made.log["detailed_evaluation_results"]["additional_details"]["texts"]
    assert ("the licence forbids it" if case == "forbidden" else "nothing said that its texts may go out") in said


@pytest.mark.slow
def test_a_line_separator_in_a_text_ends_no_row(tmp_path: Path) -> None:
    items = [replace(item, sentence=item.sentence.replace("room", "ro\u2028m")) for item in made_items(20)]
    dataset = write_dataset(tmp_path / "dataset", {"type2": items})
    run = ask(dataset, tmp_path / "runs", SkilledBackend(tmp_path / "log", name="a/b"), prompt="intrinsic-v1")
    made = Made(
        tmp_path / "o",
        export("every-eval-ever", run, "--out", tmp_path / "o", "--datasets", tmp_path, "--keys", dataset),
    )
    check(made)
    assert "\u2028" in made.rows[0]["input"]["raw"]


@pytest.mark.slow
def test_generated_answers_go_out_with_what_was_read(tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "lab/even", 0.5, tasks=("recognition", "assignment"))
    keys = write_keys(tmp_path / "keys", tmp_path / "runs")
    done = export("every-eval-ever", tmp_path / "runs", "--out", tmp_path / "o", "--keys", keys)
    assert done.returncode == 0, done.stderr
    logs = {path: json.loads(path.read_text()) for path in (tmp_path / "o").rglob("*.json")}
    assert len(logs) == 2
    # Pronouns that a model gives to a person are right in no way, so that one of the two has no rows.
    (rows,) = (tmp_path / "o").rglob("*.jsonl")
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    (run,) = (tmp_path / "runs").rglob("*recognition*/records.parquet")
    records = pyarrow.parquet.read_table(run).to_pylist()
    by_item = {record["item_id"]: record for record in records}
    assert len(told) == len(records)
    for row in told:
        record = by_item[row["sample_id"]]
        assert row["evaluation"]["is_correct"] == (record["reading"]["answers"] == [record["target"]])
        text = record["exchanges"][0]["text"]
        # No manifest says that the texts may go out.
        assert row["output"]["raw"] == [f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"]
