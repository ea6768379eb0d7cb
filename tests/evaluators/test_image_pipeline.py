"""Zero-shot classification of images from files to verified results, through real commands."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from biasboard.ground.files import sha256_file
from evaluators.runs.measure.measuring import metric_definitions
from schemas.documents.record import Record
from schemas.files.row_files import read_rows
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.image import ImageItem
from tests.commands import output_of
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.tiny_clip import save_digits, save_tiny_clip, teach
from tests.record_files import write_records
from tests.suites.commands import result_in, told

pytest.importorskip("torch", reason="the extra hf is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of handwritten digits, a model that learned something of them, and its run."""
    root = tmp_path_factory.mktemp("images")
    save_digits(root / "digits", 40)
    build = ("--out", root / "datasets" / "digits", "--pool-per-label", "15", "--bias-per-label", "5")
    output_of("-m", "builders.image_labels", "--input", root / "digits", *build, "--licence", "CC0-1.0")
    teach(save_tiny_clip(root / "taught"), items_of(root, "pool"))
    ask(root, root / "runs", "taught")
    return root


def items_of(root: Path, split: str) -> list[ImageItem]:
    folder = root / "datasets" / "digits"
    (entry,) = (one for one in read_manifest(folder).splits if one.split == split)
    return [item for item in read_split(folder, entry) if isinstance(item, ImageItem)]


def ask(root: Path, out: Path, model: str, *options: str, status: int = 0) -> str:
    asked = ("-m", "evaluators", "run", "--dataset", root / "datasets" / "digits", "--out", out)
    opened = ("--model", root / model, "--name", f"lab/{model}", "--device", "cpu")
    backend = () if "--backend" in options else ("--backend", "clip")
    return output_of(*asked, *backend, *opened, *options, status=status)


def test_a_run_holds_distributions_over_labels_and_the_metrics_that_make_sense_and_no_image(place: Path) -> None:
    """That it is the one of the model is what verification asks below, and tests/evaluators/test_clip.py."""
    folder = result_in(place / "runs").parent
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    splits = ("test", "bias", "pool", "content_free")
    known = {item.item_id: item for split in splits for item in items_of(place, split)}
    assert len(known) == len(rows) == 406
    for row in rows:
        item, (exchange,) = known[row["item_id"]], row["exchanges"]
        assert exchange["prompt"] == f"image sha256:{item.image_sha256}"
        assert exchange["outcomes"] == row["reading"]["outcomes"] == list(item.labels)
        assert exchange["option_token_counts"] == [None] * 10
        shares = row["reading"]["probabilities"]
        assert shares == pytest.approx([math.exp(value) for value in exchange["option_logprobs"]])
    files = [path for path in folder.iterdir() if path.suffix in (".sqlite", ".parquet", ".json")]
    assert len(files) == 4
    for path in files:
        assert b"IHDR" not in path.read_bytes()
    found = {one["name"]: one["value"] for one in told(folder / "result.json")["metrics"] if not one["group"]}
    (stored,) = json.loads((folder / "corrections.json").read_text(encoding="utf-8"))["corrections"]
    assert stored["n_items"] == 200, "pool and bias"
    assert found.keys() == {one.name for one in metric_definitions("image_classification")}
    for name in ("accuracy", "macro_f1", "gini", "squared_cv", "bias_score", "accuracy_cc", "gini_bc", "gini_gini"):
        assert found[name] is not None
    assert not any("looc" in name or name.endswith("_dc") or name in ("n_shown", "cut_rate") for name in found)


def test_a_text_backend_is_refused_before_the_first_request(place: Path, tmp_path: Path) -> None:
    save_tiny_llama(place / "llama")
    said = ask(place, tmp_path / "runs", "llama", "--backend", "transformers", status=1)
    assert "error: backend 'transformers' cannot do image_option_logprobs, which prompt 'photo-v1' needs" in said
    assert "backends that can: " in said
    assert "clip" in said.rpartition("backends that can: ")[2]
    assert not list((tmp_path / "runs").rglob("*.sqlite"))
    exported = ("-m", "evaluators", "export", "lm-eval", place / "datasets" / "digits", "--out", tmp_path / "out")
    assert "error: " in output_of(*exported, "--prompt", "photo-v1", status=1)
    assert not (tmp_path / "out").exists()


def test_verification_rebuilds_every_request_and_asks_the_model_again(place: Path, tmp_path: Path) -> None:
    folder = result_in(place / "runs").parent
    keys = ("--keys", tmp_path / "keys")
    dataset = place / "datasets" / "digits"
    output_of("-m", "leaderboard", "keys", dataset, "--out", tmp_path / "keys", "--prompt", "photo-v1")
    assert output_of("-m", "leaderboard", "verify", folder, *keys).startswith("accepted: ")
    rerun = ("--rerun", "5", "--backend", "clip", "--model", place / "taught", "--device", "cpu")
    datasets = ("--datasets", place / "datasets")
    assert "accepted: " in output_of("-m", "leaderboard", "verify", folder, *keys, *datasets, *rerun)
    # Answers to two images that changed places are found, whatever their numbers are.
    forged = tmp_path / "forged"
    records = read_rows(folder / "records.parquet", Record)
    records[:2] = [
        replace(one, exchanges=other.exchanges, reading=other.reading)
        for one, other in zip(records[:2], records[1::-1], strict=True)
    ]
    write_records(forged / "records.parquet", records)
    shutil.copy(folder / "corrections.json", forged)
    result = told(folder / "result.json")
    result["records"]["sha256"] = sha256_file(forged / "records.parquet")
    (forged / "result.json").write_text(json.dumps(result), encoding="utf-8")
    said = output_of("-m", "leaderboard", "verify", forged, *keys, status=1)
    assert f"item '{records[0].item_id}'" in said


def test_a_model_that_sees_no_images_is_not_believed_to_have_told_them(place: Path, tmp_path: Path) -> None:
    forged = shutil.copytree(result_in(place / "runs").parent, tmp_path / "forged")
    result = told(forged / "result.json")
    result["model"] |= {"id": "lab/language-model", "revision": "1", "backend": "openai", "identity": None}
    result["model"] |= {"precision": None, "endpoint": "api", "identity_sha256": "0" * 64}
    (forged / "result.json").write_text(json.dumps(result), encoding="utf-8")
    said = output_of("-m", "leaderboard", "verify", forged, "--keys", tmp_path, status=1)
    assert "backend openai cannot ask prompt 'photo-v1', which needs image_option_logprobs" in said
