"""The whole slice as a user walks it: build, score a language model and the baselines, validate, publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.folders.run_folder import finished_runs, read_result
from tests.commands import output_of
from tests.evaluators.made_data import save_tiny_llama
from tests.worlds import copy_site


@pytest.mark.slow
def test_a_model_reaches_the_site(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    dataset, runs, site = tmp_path / "datasets" / "embedded", tmp_path / "runs", tmp_path / "built"
    output_of("-m", "builders.synthbias", "--out", dataset)
    model = save_tiny_llama(tmp_path / "tiny-llama")
    copy_site(tmp_path)
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", runs, "--limit", "100")
    output_of(*asked, "--backend", "transformers", "--model", model, "--device", "cpu")
    for baseline in ("uniform", "last-mentioned"):
        output_of(*asked, "--backend", "baseline", "--model", baseline)
    output_of("-m", "schemas.validate", dataset, runs)
    folders = ("--runs", runs, "--datasets", dataset.parent, "--results", tmp_path / "none")
    printed = output_of("-m", "leaderboard", "build", *folders, "--site", tmp_path / "site", "--out", site)
    # The board computes the others on the items of the limited run.
    assert "models 1 (ranked 0), baselines 8," in printed
    results = [read_result(folder) for folder in finished_runs(runs)]
    name = f"local/{model.name}"
    assert {result.model.id for result in results} == {name, "baseline/uniform", "baseline/last-mentioned"}
    # Each config has a page of its own; the benchmark's page shows the one that ranks.
    pages = [path.read_text() for path in (site / "benchmarks").rglob("*synthbias*.html")]
    assert all(name in page for page in pages)
    for result in results:
        (ucerf,) = (metric.value for metric in result.metrics if metric.name == "ucerf" and not metric.group)
        assert result.model.id != name or any(f"{ucerf:.3f}" in page for page in pages)
