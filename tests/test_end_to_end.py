"""The whole slice as a user walks it: build, score a language model and the baselines, validate, publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluators.benchmark import load_benchmark
from tests.commands import output_of
from tests.evaluators.made_data import save_tiny_llama
from tests.sites import copy_site


def check_that_it_is_published(dataset: Path, model: Path, out: Path, *, limit: int, n_baselines: int = 2) -> None:
    """Score the model and two baselines, check every file, build the site and look for the model on it.

    The board shows these two, and computes all others if the limit lets the model answer all items.
    """
    runs, site = out / "runs", out / "built"
    copy_site(out)
    run = ("run", "--dataset", dataset, "--out", runs, "--limit", str(limit))
    output_of("-m", "evaluators", *run, "--backend", "transformers", "--model", model, "--device", "cpu")
    for baseline in ("uniform", "last-mentioned"):
        output_of("-m", "evaluators", *run, "--backend", "baseline", "--model", baseline)
    output_of("-m", "schemas.validate", dataset, runs)
    options = (
        "--results",
        out / "no-results",
        "--runs",
        runs,
        "--datasets",
        dataset.parent,
        "--site",
        out / "site",
        "--out",
        site,
    )
    printed = output_of("-m", "leaderboard", "build", *options)
    name = f"local/{model.name}"
    assert f"models 1 (ranked 0), baselines {n_baselines}," in printed
    results = [json.loads(path.read_text()) for path in runs.rglob("result.json")]
    assert {result["model"]["id"] for result in results} == {name, "baseline/uniform", "baseline/last-mentioned"}
    # Each config has a page of its own; the benchmark's page shows the one that ranks.
    pages = [path.read_text() for path in (site / "benchmarks").rglob("*synthbias*.html")]
    assert all(name in page for page in pages)
    for result in results:
        if result["model"]["id"] == name:
            ucerf = next(metric for metric in result["metrics"] if metric["name"] == "ucerf" and not metric["group"])
            assert any(f"{ucerf['value']:.3f}" in page for page in pages)


@pytest.mark.slow
def test_a_random_model_on_the_embedded_dataset_reaches_the_site(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    dataset = tmp_path / "datasets" / "synthbias"
    output_of("-m", "builders.synthbias", "--out", dataset, "--limit", "800")
    check_that_it_is_published(dataset, save_tiny_llama(tmp_path / "tiny-llama"), tmp_path, limit=200)


@pytest.mark.slow
def test_a_real_model_on_winobias_and_on_a_slice_of_synthbias_reaches_the_site(
    shared_data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    model = shared_data / "models" / "tinystories-656k"
    # All of WinoBias, and a slice of SynthBias, which is three times as large.
    inputs = (
        ("winobias", shared_data / "winobias", 2000, len(load_benchmark("synthbias").baselines)),
        ("synthbias", shared_data / "synthbias" / "synthbias_data.csv", 400, 2),
    )
    for source, path, limit, n_baselines in inputs:
        dataset = tmp_path / source / "datasets" / source
        output_of("-m", "builders.synthbias", "--source", source, "--input", path, "--out", dataset)
        check_that_it_is_published(dataset, model, tmp_path / source, limit=limit, n_baselines=n_baselines)
