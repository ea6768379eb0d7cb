"""A suite from its items to a rendered page: one result of many parts."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.record_files import read_records
from tests.suites.commands import N_SUPPORT, SIZES, ask, chosen, result_in, rows_of, run, run_of, told

pytestmark = pytest.mark.slow


def test_a_suite_is_one_result_and_its_parts_are_counted(dataset: Path, runs: Path) -> None:
    card = (dataset / "README.md").read_text(encoding="utf-8")
    command = "`biasboard run --dataset out/datasets/labels --config"
    assert f"The suite `woods` measures 6 configs together: {command}" in card
    folder = run_of(runs, "lab/first-0.8")
    result = told(folder / "result.json")
    signature = result["signature"]
    assert (signature["config"], signature["parts"]) == ("woods", [f"wood{number:03}" for number in range(6)])
    assert signature["n_outcomes"] is None
    assert signature["n_items"] == sum(SIZES) + 6 * N_SUPPORT == result["counts"]["items"]
    assert [(one["part"], one["split"], one["counts"]["scored"]) for one in result["coverage"][:5]] == [
        ("wood000", "test", 40),
        ("wood000", "bias", 32),
        ("wood000", "pool", 64),
        ("wood000", "content_free", 23),
        ("wood001", "test", 30),
    ]
    assert len(result["coverage"]) == 24
    assert pq.ParquetFile(folder / "records.parquet").num_row_groups == 6
    single = told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")
    assert "parts" not in single["signature"]
    assert "coverage" not in single
    assert "no problems" in run("-m", "schemas.validate", runs)


def test_a_metric_of_a_suite_is_the_mean_over_its_parts(runs: Path) -> None:
    folder = run_of(runs, "lab/first-0.8")
    records = read_records(folder / "records.parquet")
    parts: dict[str, list[bool]] = {}
    for record in records:
        if record.split == "test":
            parts.setdefault(record.config, []).append(chosen(record) == record.target)
    expected = sum(sum(found) / len(found) for found in parts.values()) / 6
    (accuracy,) = [one for one in told(folder / "result.json")["metrics"] if one["name"] == "accuracy"]
    assert accuracy["value"] == pytest.approx(expected, abs=1e-12)
    assert (accuracy["n"], accuracy["interval"]["n_clusters"]) == (6, 6)
    single = told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")
    assert single["metrics"][0]["value"] == pytest.approx(sum(parts["wood001"]) / 30, abs=1e-12)
    assert single["metrics"][0]["interval"]["n_clusters"] == 30


def test_the_board_ranks_suites_shows_parts_apart_and_pairs_them_over_prompts(built: Path) -> None:
    page = (built / "benchmarks" / "labels.html").read_text(encoding="utf-8")
    assert "labels 1.0.0, woods, plain-v1" in page
    assert "labels 1.0.0, wood001, plain-v1" in page
    ranks = {row["model"]: (row["rank_best"], row["rank_worst"]) for row in rows_of(built, "woods-plain")}
    unranked = ("lab/worst-0.1", "baseline/drawn", "baseline/uniform")
    assert ranks == {"lab/first-0.8": (1, 2), "lab/second-0.8": (1, 2), **dict.fromkeys(unranked, (None, None))}
    # Nobody ran the baselines on this config alone: the board computes them.
    models = ["lab/first-0.8", "baseline/drawn", "baseline/uniform"]
    assert [row["model"] for row in rows_of(built, "wood001")] == models
    values = {}
    for path in (built.parent / "runs").rglob("result.json"):
        result = told(path)
        if result["model"]["id"] == "lab/first-0.8":
            values[result["signature"]["prompt"]] = result["metrics"][0]["value"]
    row = next(row for row in rows_of(built, "index") if row["model"] == "lab/first-0.8")
    parts = [values[name] for name in ("shown-v1", "shown-other-v1")]
    assert row["accuracy_shown"] == pytest.approx(sum(parts) / 2)
    assert row["accuracy_shown-other-v1"] == pytest.approx(parts[1])


def test_a_killed_run_goes_on_where_it_was_and_gives_the_same_records(
    dataset: Path, runs: Path, tmp_path: Path
) -> None:
    log, out = tmp_path / "log", tmp_path / "runs"
    ask(dataset, out, PLANTED_DIES_AT="430", status=-signal.SIGKILL)
    assert not list(out.rglob("result.json"))
    ask(dataset, out, PLANTED_LOG=log)
    folder = run_of(out, "lab/first-0.8")
    # The first of them asked 450, of which all but the last batches were stored.
    assert len(log.read_text(encoding="utf-8").split()) <= told(folder / "result.json")["usage"]["n_requests"] - 400
    assert not list(folder.glob(".records*"))
    whole = run_of(runs, "lab/first-0.8")
    assert (folder / "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()


def test_another_limit_choice_of_parts_or_examples_is_another_table(dataset: Path, tmp_path: Path) -> None:
    signatures = set()
    asked = (
        ("--prompt=shown-v1", "--split=test"),
        ("--prompt=shown-v1", "--limit=10"),
        ("--prompt=shown-v1", "--part=wood001"),
        ("--prompt=shown-v1", "--config=wood001"),
        ("--prompt=shown-other-v1", "--split=test"),
    )
    for number, options in enumerate(asked):
        ask(dataset, tmp_path / str(number), *options)
        signatures.add(told(result_in(tmp_path / str(number)))["signature_sha256"])
    assert len(signatures) == len(asked)


def test_a_limit_spares_the_support_and_a_shown_item_leaves_itself_out(dataset: Path, tmp_path: Path) -> None:
    ask(dataset, tmp_path, "--limit", "10", "--prompt", "shown-v1")
    folder = result_in(tmp_path).parent
    n_items = {(one["part"], one["split"]): one["counts"]["items"] for one in told(folder / "result.json")["coverage"]}
    assert n_items["wood004", "test"] == 10
    assert n_items["wood004", "bias"] == 32
    assert n_items["wood004", "pool"] == 64
    prompts = {record.item_id: record.exchanges[0].prompt or "" for record in read_records(folder / "records.parquet")}
    n_shown = {item: prompt.count("Text: ") - 1 for item, prompt in prompts.items()}
    assert {item for item, n in n_shown.items() if n == 1} == {
        f"wood{part:03}-pool-{number:04}" for part in range(6) for number in range(2)
    }
    assert {n for item, n in n_shown.items() if "-pool-" not in item} == {2}
    first, second = (prompts[f"wood000-pool-{number:04}"] for number in range(2))
    shown = re.findall(r"Text: (.*)\nLabel: \w+\n", first) + re.findall(r"Text: (.*)\nLabel: \w+\n", second)
    own = [re.findall(r"Text: (.*)\nLabel:$", prompt)[0] for prompt in (second, first)]
    assert shown == own
