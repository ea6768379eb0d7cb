"""The board of superni, from its embedded dataset and the default grid of two baselines, through real commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from biasboard.ground.errors import DataError
from evaluators.runs.measure.stored_results import key_of_dataset
from evaluators.tasks.labels.label_measures import QUARTERS
from leaderboard.pages.dataset_views import built_datasets
from leaderboard.verify.keys import KeyCheck, KnownKey
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_parts, read_result
from tests.commands import output_of
from tests.evaluators import label_oracle
from tests.suites.commands import told
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow

CONTEXTS = ("k0-v1", "k8-set0-v1", "k8-set1-v1", "k8-set2-v1")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset and runs of two baselines."""
    folder = tmp_path_factory.mktemp("superni")
    dataset, runs = folder / "datasets" / "superni", folder / "runs"
    output_of("-m", "builders.superni", "--out", dataset)
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", runs, "--backend", "baseline")
    output_of(*asked, "--model", "label-prior-0.8")
    output_of(*asked, "--model", "uniform", *(f"--prompt=release-4096b-{context}" for context in CONTEXTS[1:]))
    return folder


@pytest.fixture(scope="module")
def made(out: Path) -> MadeBoard:
    return MadeBoard(out / "runs", built=built_datasets(out / "datasets"))


def result_of(out: Path, model: str, context: str) -> Path:
    (found,) = (out / "runs").glob(f"**/*{model}/*-{context}-*/result.json")
    return found.parent


def value_of(folder: Path, name: str) -> float:
    (value,) = (
        one["value"] for one in told(folder / "result.json")["metrics"] if one["name"] == name and not one["group"]
    )
    assert isinstance(value, float)
    return value


def test_the_default_asks_100_items_of_a_task_and_the_index_is_a_mean_over_sets(out: Path, made: MadeBoard) -> None:
    for context in CONTEXTS:
        signature = told(result_of(out, "label-prior-0.8", context) / "result.json")["signature"]
        assert signature["n_items"] == 10 * (100 + 32 + 64 + 43)
        assert signature["normalisation"] == "token_mean_if_unequal"
    (index,) = made.view.indices
    (row,) = (one for one in made.rows(index.files.stem) if str(one["model"]).endswith("label-prior-0.8"))
    wanted = [value_of(result_of(out, "label-prior-0.8", context), "bias_score") for context in CONTEXTS[1:]]
    assert row["bias_score_k8"] == pytest.approx(np.mean(wanted), abs=1e-12)
    # Not quite 0: the items of one task offer three or four labels, to which the baseline gives other probabilities.
    assert 0 <= float(str(row["bias_score_bc_k8"])) < 1e-3 < 0.4 < float(str(row["bias_score_k8"]))
    assert row["macro_f1_k2"] is None
    assert "there is no result of classification with k2-set0" in str(row["macro_f1_k2_reason"])


def test_pages_show_every_task_and_curves_of_the_cumulated_class_accuracies(made: MadeBoard, out: Path) -> None:
    assert "not ranked: asks" not in made.texts["benchmarks/superni.md"]
    charts = [path for path in made.texts if path.startswith("charts/")]
    for name in ("by-examples", "by-correction", "class-accuracies", "lorenz"):
        assert any(name in chart for chart in charts), name
    (curves,) = (made.texts[path] for path in charts if path.endswith("by-examples.svg"))
    assert ">8<" in curves
    # Nobody was asked after 16 examples.
    assert ">16<" not in curves
    assert 'id="baseline__label-prior-0.8"' in made.texts["useless-predictors.md"]
    assert len([path for path in made.texts if path.startswith("suites/")]) == len(CONTEXTS)
    # Of every set of examples, part and class, recounted from the stored answers.
    page = made.texts["benchmarks/superni.md"]
    halves = []
    for model in ("uniform", "label-prior-0.8"):
        quarters = [0.0] * 4
        for context in CONTEXTS[1:]:
            parts = label_oracle.rows_of(result_of(out, model, context) / "records.parquet")
            for rows in parts.values():
                pairs = [(str(row.target), row.p) for row in rows if row.split == "test" and row.p is not None]
                found = label_oracle.class_measures(pairs)
                for n, name in enumerate(QUARTERS):
                    quarters[n] += (found[name] or 0.0) / len(parts) / 3
        halves.append((quarters[0] + quarters[1]) / sum(quarters))
    assert f"uncorrected: {100 * min(halves):.0f} to {100 * max(halves):.0f} %" in page
    assert min(halves) < 0.4 < max(halves)


def known_key(out: Path, folder: Path) -> KnownKey:
    dataset = out / "datasets" / "superni"
    signature = read_result(folder).signature
    made = key_of_dataset(dataset, read_manifest(dataset), config="tasks", task=signature.task, prompt=signature.prompt)
    return KnownKey(made.key, "key", made.items)


def test_items_of_the_default_limit_count_as_the_whole_suite_and_others_are_refused(out: Path, tmp_path: Path) -> None:
    folder = result_of(out, "uniform", CONTEXTS[1])
    check = KeyCheck("records", read_result(folder).signature, known_key(out, folder))
    assert check.match.extent == "whole"
    for records in read_parts(folder, read_result(folder)):
        check.add(records, None)
    dataset, folder = out / "datasets" / "superni", result_of(out, "uniform", CONTEXTS[1])
    output_of(
        *("-m", "evaluators", "run", "--dataset", dataset, "--out", tmp_path, "--backend", "baseline"),
        *("--model", "uniform", "--limit", "0", "--prompt", f"release-4096b-{CONTEXTS[1]}"),
    )
    (whole,) = tmp_path.rglob("result.json")
    part = next(iter(read_parts(whole.parent, read_result(whole.parent))))
    tested = np.flatnonzero(part.columns["split"].coded.is_one_of("test"))
    # The last 100 items in place of those that a limit of 100 takes.
    chosen = np.ones(len(part), dtype=np.bool_)
    chosen[tested[:-100]] = False
    known, signature = known_key(out, folder), read_result(folder).signature
    check = KeyCheck("records", signature, known)
    with pytest.raises(DataError, match="does not have the items that are asked with a limit of 100"):
        check.add(RecordColumns(part.table.filter(pa.array(chosen))), None)
    sliced = replace(signature, n_items=1500, items_sha256="0" * 64)
    match = KeyCheck("records", sliced, known).match
    assert match.extent == "slice"
    assert known is not None
    assert known.key.limited is not None
    # Not of the 2,772 that the dataset has: fewer are asked by default.
    n_asked = known.key.limited.n_items
    assert 1500 < n_asked < 2772
    assert match.reason == f"a limited run, of 1,500 of {n_asked:,} items of tasks: ask all of them"
