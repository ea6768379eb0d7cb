"""No file of a model, tokenizer, processor or scorer runs as code, whatever standard input says."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.models.model_files import SERVE_IT
from tests.commands import run
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.test_scorers import save_classifier
from tests.evaluators.tiny_clip import save_tiny_clip

pytest.importorskip("torch", reason="the extra hf is not installed")
pytestmark = pytest.mark.slow

CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, CLIPImageProcessor

Path({marker!r}).touch()
Config, Model, Tokenizer, Processor = LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, CLIPImageProcessor
"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("llama") / "model")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "made", {"type2": made_items(3)})


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that the code of a model would leave behind."""
    return tmp_path / "the code ran"


def with_code(folder: Path, marker: Path, settings: str, changes: dict[str, Any]) -> Path:
    """Add a Python file to a model, which a settings file names."""
    (folder / "own_code.py").write_text(CODE.format(marker=str(marker)), encoding="utf-8")
    path = folder / settings
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(old | changes), encoding="utf-8")
    return folder


def answering_yes(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python with a standard input that agrees to everything."""
    return run(*arguments, input="y\n" * 20, with_torch=True)


def asked(dataset: Path, folder: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    """Ask a model about a dataset."""
    chosen = ("--backend", "transformers", "--device", "cpu", "--model", folder, *more)
    return answering_yes("-m", "evaluators", "run", *chosen, "--dataset", dataset, "--out", folder.parent / "runs")


MODEL = {
    "model_type": "homemade",
    "auto_map": {"AutoConfig": "own_code.Config", "AutoModelForCausalLM": "own_code.Model"},
}
TOKENIZER = {"tokenizer_class": "Homemade", "auto_map": {"AutoTokenizer": [None, "own_code.Tokenizer"]}}


def only_error(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


@pytest.mark.parametrize(
    ("part", "settings", "changes"),
    [("model", "config.json", MODEL), ("tokenizer", "tokenizer_config.json", TOKENIZER)],
)
def test_a_language_model_that_needs_code_is_refused(
    llama: Path, dataset: Path, tmp_path: Path, marker: Path, part: str, settings: str, changes: Any
) -> None:
    shutil.copytree(llama, tmp_path / "homemade")
    folder = with_code(tmp_path / "homemade", marker, settings, changes)
    model = folder if part == "model" else llama
    more = () if part == "model" else ("--tokenizer", folder)
    if part == "tokenizer":
        (folder / "config.json").unlink()
    said = only_error(asked(dataset, model, *more))
    assert f"{part} '{folder}' needs code of its own, which is never run here; {SERVE_IT}" in said
    assert not marker.exists()


USUAL: dict[str, dict[str, Any]] = {
    "code beside a known kind": {"auto_map": MODEL["auto_map"]},
    "eager": {"attn_implementation": "eager"},
}
ATTENTION: dict[str, dict[str, Any]] = {
    "a repository": {"attn_implementation": "kernels-community/flash-attn2@v1:function"},
    "the name inside transformers": {"_attn_implementation": "paged|acme/attention"},
    "one for each part": {"attn_implementation": {"text_config": "acme/attention"}},
    "a part's own": {"text_config": {"attn_implementation": "acme/attention"}},
}


@pytest.mark.parametrize("name", [*USUAL, *ATTENTION])
def test_no_model_computes_its_attention_with_code_of_the_hub(
    llama: Path, dataset: Path, tmp_path: Path, marker: Path, name: str
) -> None:
    shutil.copytree(llama, tmp_path / "attention")
    folder = with_code(tmp_path / "attention", marker, "config.json", {**USUAL, **ATTENTION}[name])
    if name == "code beside a known kind":
        with_code(folder, marker, "tokenizer_config.json", {"auto_map": TOKENIZER["auto_map"]})
    done = asked(dataset, folder)
    assert not marker.exists()
    if name in USUAL:
        assert done.returncode == 0, done.stderr
        return
    line = only_error(done)
    assert f"model '{folder}' needs code of the Hub for its attention, which is never run here" in line
    assert line.endswith(f"); take that out of a copy of it, or {SERVE_IT}")


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        (
            "preprocessor_config.json",
            {"image_processor_type": "Own", "auto_map": {"AutoImageProcessor": "own_code.Processor"}},
        ),
        ("config.json", {"auto_map": {"AutoConfig": "own_code.Config"}, "model_type": "homemade"}),
    ],
)
def test_no_part_of_an_image_model_runs(tmp_path: Path, marker: Path, settings: str, changes: dict[str, Any]) -> None:
    folder = with_code(save_tiny_clip(tmp_path / "clip"), marker, settings, changes)
    opened = "from evaluators.backends.clip import open_backend; from evaluators.backend_options import "
    opened += f"BackendOptions; open_backend({str(folder)!r}, BackendOptions(device='cpu'))"
    done = answering_yes("-c", opened)
    assert "needs code of its own" in done.stderr
    assert done.returncode == 1
    assert not marker.exists()


def classifier_folder(folder: Path, marker: Path) -> tuple[str, str]:
    save_classifier(folder, {0: "negative", 1: "neutral", 2: "positive"}, "single_label_classification")
    code = {"AutoConfig": "own_code.Config", "AutoModelForSequenceClassification": "own_code.Model"}
    with_code(folder, marker, "config.json", {"model_type": "homemade", "auto_map": code})
    return "classifier", "sentiment"


def embedding_folder(folder: Path, marker: Path) -> tuple[str, str]:
    folder.mkdir()
    with_code(folder, marker, "config.json", {"model_type": "homemade", "auto_map": {"AutoConfig": "own_code.Config"}})
    modules = [{"idx": 0, "name": "0", "path": "", "type": "own_code.Model"}]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return "sentence_embedding", "embedding"


@pytest.mark.parametrize(
    ("made", "config", "why", "remedy"),
    [
        (classifier_folder, None, "needs code of its own, which is never run here", "; name another model"),
        (embedding_folder, ATTENTION["a repository"], "needs code of the Hub for its", "or name another model"),
    ],
)
def test_no_scorer_of_texts_runs_code(
    tmp_path: Path, marker: Path, made: Callable[[Path, Path], tuple[str, str]], config: Any, why: str, remedy: str
) -> None:
    folder = tmp_path / "homemade"
    module, kind = made(folder, marker)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    opened = f"from evaluators.scorers import {module} as it; scorer = it.open_scorer({kind!r}, {str(folder)!r}, None)"
    last = answering_yes("-c", f"{opened}; list(scorer.score(['a']))").stderr.splitlines()[-1]
    assert why in last
    assert last.endswith(remedy)
    assert not marker.exists()
