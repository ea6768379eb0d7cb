"""A suite of made-up classification tasks that the repository does not know, from its items to a rendered page."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.files import sha256_file
from schemas.record_columns import RecordColumns
from schemas.record_files import read_records, write_records, writing_records

REPOSITORY = Path(__file__).parents[1]
PLUGINS = REPOSITORY / "tests" / "made_suite"
SIZES = (40, 30, 20, 20, 30)
N_SUPPORT = 32 + 64 + 23


def run(*arguments: str | Path, status: int = 0, **variables: str | Path) -> str:
    """Run a command of ours with the folder of plug-ins, and return what it prints."""
    environment = os.environ | {"BIASBOARD_PLUGINS": str(PLUGINS), "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    environment |= {name: str(value) for name, value in variables.items()}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def made(folder: Path, *sizes: int) -> Path:
    run("-m", "builders.labels", folder, *map(str, sizes or SIZES))
    return folder


def ask(dataset: Path, out: Path, *options: str | Path, model: str = "lab/first-0.8", **more: Any) -> str:
    """Ask the planted model about the suite."""
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", out)
    return run(*asked, "--backend", "planted", "--model", model, *options, **more)


def result_in(folder: Path) -> Path:
    (found,) = folder.rglob("result.json")
    return found


def told(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("labels") / "labels")


@pytest.fixture(scope="module")
def runs(dataset: Path) -> Path:
    """Runs of three models and both baselines on the suite, and of one model on one of its configs."""
    out = dataset.parent / "runs"
    for model in ("lab/first-0.8", "lab/second-0.8", "lab/worst-0.1"):
        ask(dataset, out, model=model)
    ask(dataset, out, "--config", "wood001")
    run("-m", "evaluators", "run", "--dataset", dataset, "--out", out, "--backend", "baseline", "--model", "all")
    return out


def run_of(runs: Path, model: str, beginning: str = "woods-") -> Path:
    (found,) = (runs / "labels@1.0.0" / model.replace("/", "__")).glob(f"{beginning}*")
    return found


def copied(run_folder: Path, target: Path) -> Path:
    shutil.copytree(run_folder, target)
    return target


def board(*roots: Path, out: Path, status: int = 0) -> str:
    """Build the board of some folders of runs, and return what is printed."""
    site = out / "site"
    shutil.copytree(REPOSITORY / "site" / "docs", site / "docs")
    shutil.copy(REPOSITORY / "site" / "mkdocs.yml", site)
    folders = ("--runs", roots[0], "--results", roots[1] if len(roots) > 1 else out / "none", "--datasets", out)
    return run("-m", "leaderboard", "build", *folders, "--site", site, "--out", out / "built", status=status)


def test_a_suite_is_one_result_and_its_parts_are_counted(runs: Path) -> None:
    folder = run_of(runs, "lab/first-0.8")
    result = told(folder / "result.json")
    signature = result["signature"]
    assert (signature["config"], signature["parts"]) == ("woods", [f"wood{number:03}" for number in range(5)])
    assert signature["n_outcomes"] is None
    assert signature["n_items"] == sum(SIZES) + 5 * N_SUPPORT == result["counts"]["items"]
    assert [(one["part"], one["split"], one["counts"]["scored"]) for one in result["coverage"][:5]] == [
        ("wood000", "test", 40),
        ("wood000", "bias", 32),
        ("wood000", "pool", 64),
        ("wood000", "content_free", 23),
        ("wood001", "test", 30),
    ]
    assert len(result["coverage"]) == 20
    assert pq.ParquetFile(folder / "records.parquet").num_row_groups == 5
    single = told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")
    assert "parts" not in single["signature"]
    assert "coverage" not in single
    assert "no problems" in run("-m", "schemas.validate", runs)


def test_a_metric_of_a_suite_is_the_mean_over_its_parts(runs: Path) -> None:
    folder = run_of(runs, "lab/first-0.8")
    records = read_records(folder / "records.parquet")
    parts: dict[str, list[bool]] = {}
    for record in records:
        if record.split == "test" and record.reading is not None:
            best = max(zip(record.reading.probabilities, record.reading.outcomes, strict=True))[1]
            parts.setdefault(record.config, []).append(best == record.target)
    expected = sum(sum(found) / len(found) for found in parts.values()) / 5
    (accuracy,) = [one for one in told(folder / "result.json")["metrics"] if one["name"] == "accuracy"]
    assert accuracy["value"] == pytest.approx(expected, abs=1e-12)
    assert (accuracy["n"], accuracy["interval"]["n_clusters"]) == (5, 5)
    single = told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")
    assert single["metrics"][0]["value"] == pytest.approx(sum(parts["wood001"]) / 30, abs=1e-12)
    assert single["metrics"][0]["interval"]["n_clusters"] == 30


def test_rescoring_gives_the_same_bytes_and_another_normalisation_a_new_run(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "labels@1.0.0" / "lab__first-0.8" / "woods-copy")
    before = [(folder / name).read_bytes() for name in ("result.json", "records.parquet")]
    run("-m", "evaluators", "rescore", folder)
    assert [(folder / name).read_bytes() for name in ("result.json", "records.parquet")] == before
    run("-m", "evaluators", "rescore", folder, "--normalisation", "byte_mean", "--out", tmp_path / "other")
    other = result_in(tmp_path / "other").parent
    assert told(other / "result.json")["signature"]["normalisation"] == "byte_mean"
    assert pq.ParquetFile(other / "records.parquet").num_row_groups == 5


def test_the_board_ranks_suites_and_shows_parts_apart(runs: Path, tmp_path: Path) -> None:
    board(runs, out=tmp_path)
    page = (tmp_path / "built" / "benchmarks" / "labels.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "labels 1.0.0, woods, plain-v1" in text
    assert "labels 1.0.0, wood001, plain-v1" in text
    ranks = {row["model"]: (row["rank_best"], row["rank_worst"]) for row in rows_of(tmp_path, "woods")}
    assert ranks == {
        "lab/first-0.8": (1, 2),
        "lab/second-0.8": (1, 2),
        "lab/worst-0.1": (None, None),
        "baseline/drawn": (None, None),
        "baseline/uniform": (None, None),
    }
    assert [row["model"] for row in rows_of(tmp_path, "wood001")] == ["lab/first-0.8"]


def test_a_killed_run_goes_on_where_it_was_and_gives_the_same_bytes(dataset: Path, runs: Path, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "runs"
    ask(dataset, out, PLANTED_LOG=log, PLANTED_DIES_AT="430", status=-signal.SIGKILL)
    (store,) = out.rglob("responses.sqlite")
    asked = log.read_text(encoding="utf-8").split()
    assert len(asked) == 450
    assert not list(out.rglob("result.json"))
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        stored = {json.loads(text)["prompt"] for (text,) in connection.execute("SELECT request FROM responses")}
    assert len(stored) >= 400
    ask(dataset, out, PLANTED_LOG=log)
    again = log.read_text(encoding="utf-8").split()[450:]
    n_distinct = told(result_in(out))["usage"]["n_requests"]
    assert len(again) == n_distinct - len(stored)
    assert not list(store.parent.glob(".records*"))
    whole = run_of(runs, "lab/first-0.8")
    assert (store.parent / "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    first, second = told(whole / "result.json"), told(store.parent / "result.json")
    assert {name: value for name, value in first.items() if name != "usage"} == {
        name: value for name, value in second.items() if name != "usage"
    }


def signature_of(dataset: Path, out: Path, *options: str) -> str:
    ask(dataset, out, *options)
    return str(told(result_in(out))["signature_sha256"])


def test_another_pool_limit_choice_of_parts_or_examples_is_another_table(dataset: Path, tmp_path: Path) -> None:
    other = copied(dataset, tmp_path / "other-pool")
    swap_pool(other)
    only_test = ("--split", "test", "--prompt", "shown-v1")
    signatures = {
        "whole": signature_of(dataset, tmp_path / "1", "--prompt", "shown-v1"),
        "other examples": signature_of(dataset, tmp_path / "2", "--prompt", "shown-other-v1"),
        "no examples": signature_of(dataset, tmp_path / "3", "--prompt", "plain-v1"),
        "limit": signature_of(dataset, tmp_path / "4", "--prompt", "shown-v1", "--limit", "10"),
        "parts": signature_of(dataset, tmp_path / "5", "--prompt=shown-v1", "--part=wood001", "--part=wood003"),
        "test alone": signature_of(dataset, tmp_path / "6", *only_test),
        "test alone, other pool": signature_of(other, tmp_path / "7", *only_test),
        "single config": signature_of(dataset, tmp_path / "8", "--prompt", "shown-v1", "--config", "wood001"),
        "suite of one part": signature_of(dataset, tmp_path / "9", "--prompt", "shown-v1", "--part", "wood001"),
    }
    assert len(set(signatures.values())) == len(signatures), signatures


def swap_pool(dataset: Path) -> None:
    """Turn the pool of a part round, so that its prompts show other examples."""
    manifest = told(dataset / "dataset.json")
    environment = os.environ | {"BIASBOARD_PLUGINS": str(PLUGINS), "PYTHONPATH": str(REPOSITORY)}
    code = (
        "import sys; from pathlib import Path; from schemas import tables; from schemas.items.labelled import *;"
        "path = Path(sys.argv[1]); rows = tables.read_rows(path, LabelledItem)[::-1];"
        "tables.write_rows(path, rows, LabelledItem); print(tables.content_sha256(rows))"
    )
    (entry,) = [one for one in manifest["splits"] if (one["config"], one["split"]) == ("wood002", "pool")]
    command = [sys.executable, "-c", code, str(dataset / entry["path"])]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    entry["content_sha256"] = done.stdout.strip()
    (dataset / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")


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
        f"wood{part:03}-pool-{number:04}" for part in range(5) for number in range(2)
    }
    assert {n for item, n in n_shown.items() if "-pool-" not in item} == {2}
    first, second = (prompts[f"wood000-pool-{number:04}"] for number in range(2))
    shown = re.findall(r"Text: (.*)\nLabel: \w+\n", first) + re.findall(r"Text: (.*)\nLabel: \w+\n", second)
    own = [re.findall(r"Text: (.*)\nLabel:$", prompt)[0] for prompt in (second, first)]
    assert shown == own


def test_examples_that_do_not_exist_are_refused_before_anything_is_asked(dataset: Path, tmp_path: Path) -> None:
    short = copied(dataset, tmp_path / "short")
    manifest = told(short / "dataset.json")
    manifest["splits"] = [one for one in manifest["splits"] if (one["config"], one["split"]) != ("wood003", "pool")]
    (short / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = ask(short, tmp_path / "runs", "--prompt", "shown-v1", status=1)
    assert "config 'wood003' has no split 'pool', whose items its prompts show" in said
    assert not list(tmp_path.rglob("*.sqlite"))


def altered(folder: Path, change: Callable[[RecordColumns], list[Any]]) -> None:
    """Write other records into a run, and their hash into its result."""
    path = folder / "records.parquet"
    records = change(read_records(path))
    with writing_records(path) as add:
        for part in dict.fromkeys(record.config for record in records):
            add([record for record in records if record.config == part])
    value = told(folder / "result.json")
    value["records"]["sha256"] = sha256_file(path)
    (folder / "result.json").write_text(json.dumps(value), encoding="utf-8")


def spoilt(records: RecordColumns, part: str, split: str, status: str | None) -> list[Any]:
    """Return records with other probabilities in one item of a split, or with another status in two of them."""
    found = list(records)
    places = [place for place, one in enumerate(found) if (one.config, one.split) == (part, split)]
    if status is None:
        reading = found[places[5]].reading
        assert reading is not None
        shares = (reading.probabilities[0] - 1e-6, reading.probabilities[1] + 1e-6, *reading.probabilities[2:])
        found[places[5]] = replace(found[places[5]], reading=replace(reading, probabilities=shares))
        return found
    for place in places[:2]:
        (exchange,) = found[place].exchanges
        failed = replace(
            exchange,
            status="failed",
            error="made to fail",
            option_logprobs=(),
            option_end_logprobs=(),
            option_token_counts=(),
        )
        found[place] = replace(found[place], status="failed", reason="made to fail", reading=None, exchanges=(failed,))
    return found


def test_an_altered_probability_of_a_support_split_is_found(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "altered")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", None))
    assert "no problems" in run("-m", "schemas.validate", folder)
    assert "the answers are read differently now" in run("-m", "evaluators", "rescore", folder, status=1)
    row = 40 + 30 + 20 + 3 * N_SUPPORT + 20 + 6
    said = board(tmp_path / "runs", out=tmp_path, status=1)
    assert f"altered/records.parquet: row {row}: the reading does not follow from the stored answers" in said


def test_a_rank_needs_every_split_of_every_part(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "runs" / "labels@1.0.0" / "lab" / "woods-x")
    altered(folder, lambda records: spoilt(records, "wood003", "bias", "failed"))
    run("-m", "evaluators", "rescore", folder)
    counts = told(folder / "result.json")["counts"]
    assert counts["scored"] / counts["items"] > 0.99
    board(tmp_path / "runs", out=tmp_path)
    (row,) = rows_of(tmp_path, "woods")
    assert row["rank_best"] is None
    assert row["unranked_reason"] == ("30 of 32 items of wood003/bias scored; a rank needs at least 95% of each split")


def test_missing_and_mixed_parts_are_problems(runs: Path, tmp_path: Path) -> None:
    folder = copied(run_of(runs, "lab/first-0.8"), tmp_path / "lost")
    path = folder / "records.parquet"
    records = read_records(path)
    write_records(path, [record for record in records if record.config != "wood002"])
    said = run("-m", "schemas.validate", folder, status=1)
    assert "holds no record of part wood002, which the signature names; run the model again" in said
    torn = [record for record in records if record.config == "wood002"]
    with writing_records(path) as add:
        add([*torn[:10], *(record for record in records if record.config != "wood002")])
        add(torn[10:])
    said = run("-m", "schemas.validate", folder, status=1)
    assert "config 'wood002' began in row 1 and was followed by others; keep the records of a config together" in said


def test_names_of_suites_are_checked(dataset: Path, tmp_path: Path) -> None:
    copy = copied(dataset, tmp_path / "labels")
    manifest = told(copy / "dataset.json")
    for suites, said in (
        ([{"name": "wood001", "configs": ["wood002"]}], "'wood001' is the name of another suite or config"),
        ([{"name": "woods", "configs": ["oak"]}], "'woods' names config 'oak', which has no splits"),
        ([{"name": "woods", "configs": []}], "suites[0].configs"),
    ):
        (copy / "dataset.json").write_text(json.dumps(manifest | {"suites": suites}), encoding="utf-8")
        assert said in run("-m", "schemas.validate", copy, status=1)
    said = ask(dataset, tmp_path / "runs", "--part", "oak", status=1)
    assert "part 'oak' is not in suite 'woods'; have: wood000, wood001" in said
    said = ask(dataset, tmp_path / "runs", "--config", "wood001", "--part", "wood001", status=1)
    assert "--part is for a suite, and 'wood001' is a single config; leave it out" in said
    said = ask(dataset, tmp_path / "runs", "--config", "oak", status=1)
    assert "config 'oak' is not in dataset 'labels'; have: woods, wood000" in said


def test_many_failures_end_a_suite_and_keep_its_answers(dataset: Path, tmp_path: Path) -> None:
    said = ask(dataset, tmp_path, PLANTED_FAILS="wood00", status=3)
    assert re.search(r"requests failed, more than the \d+ that --max-failure-rate allows; last error: planted", said)
    assert not list(tmp_path.rglob("*.parquet"))
    assert len(list(tmp_path.rglob("responses.sqlite"))) == 1


def test_a_dry_run_counts_the_requests_of_all_parts(dataset: Path, runs: Path, tmp_path: Path) -> None:
    said = ask(dataset, runs, "--dry-run", "--json", "--prompt", "shown-v1")
    (estimate,) = json.loads(said[said.index("[") :])
    assert estimate["config"] == "woods"
    assert estimate["n_requests"] == sum(SIZES) + 5 * N_SUPPORT
    assert estimate["n_answered"] == 0
    done = ask(dataset, runs, "--dry-run", "--json", "--prompt", "plain-v1")
    (estimate,) = json.loads(done[done.index("[") :])
    assert estimate["n_to_ask"] == 0


def rows_of(out: Path, config: str) -> list[Any]:
    """Return the rows of the table of a config or suite."""
    (table,) = (
        path
        for path in (out / "built" / "files").glob(f"labels-labels-{config}-*.json")
        if not path.stem.endswith("comparisons")
    )
    return list(told(table)["rows"])
