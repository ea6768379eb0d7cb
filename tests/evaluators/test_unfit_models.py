"""Models that cannot be asked: one line says why and what to do, before torch is imported where the files tell."""

from __future__ import annotations

import json
import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from biasboard.ground.errors import ConfigError, MissingExtraError
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import open_backend
from evaluators.models.outline import outline_of
from evaluators.models.quantised import check_quantisation, quantisation
from tests import commands

pytest.importorskip("torch", reason="the extra hf is not installed")

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def copy(model: Path, folder: Path, **settings: Any) -> Path:
    """A copy of a model with other settings in its configuration."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | settings), encoding="utf-8")
    return folder


def adapter_in(folder: Path, base: str | None = "acme/base") -> None:
    settings = {"peft_type": "LORA", "r": 4, "base_model_name_or_path": base}
    (folder / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "adapter_model.safetensors").touch()


@pytest.mark.slow
def test_what_the_files_tell_is_told_without_importing_torch(tiny_llama: Path, tmp_path: Path) -> None:
    pointer = copy(tiny_llama, tmp_path / "pointer")
    (pointer / "model.safetensors").write_text(POINTER, encoding="ascii")
    (tmp_path / "adapter").mkdir()
    adapter_in(tmp_path / "adapter")
    quantised = copy(tiny_llama, tmp_path / "quantised", quantization_config={"quant_method": "gptq"})
    encoder = copy(tiny_llama, tmp_path / "encoder", architectures=["RobertaForMaskedLM"])
    told = {
        ("nowhere/at/all", ""): "model folder 'nowhere/at/all' does not exist",
        (str(tiny_llama), "chat"): "the tokenizer has no chat template; leave out --chat",
        (str(pointer), ""): "holds a Git LFS pointer in place of model.safetensors; run git lfs pull in it",
        (str(tmp_path / "adapter"), ""): f"give --model acme/base --lora {tmp_path}/adapter",
        (str(quantised), ""): "are quantised by gptq, for which optimum and gptqmodel must be installed",
        (str(encoder), ""): "RobertaForMaskedLM is no causal language model",
    }
    program = (
        "import json, sys\n"
        "from evaluators.backend import open_backend\nfrom evaluators.backend_options import BackendOptions\n"
        "from biasboard.ground.errors import BiasboardError\n"
        "for model, chat in json.loads(sys.argv[1]):\n"
        "    try:\n        open_backend('transformers', model, BackendOptions(chat=bool(chat) or None))\n"
        "    except BiasboardError as error:\n        print(error)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = commands.run("-c", program, json.dumps(list(told)))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(told)
    for line, expected in zip(lines, told.values(), strict=True):
        assert expected in line


def test_a_dry_run_says_the_same(tiny_llama: Path, tmp_path: Path) -> None:
    adapter_in(copy(tiny_llama, tmp_path / "whole"))
    outline_of("transformers", str(tmp_path / "whole"), BackendOptions())
    (tmp_path / "whole/model.safetensors").unlink()
    with pytest.raises(ConfigError, match="holds a LoRA adapter alone"):
        outline_of("transformers", str(tmp_path / "whole"), BackendOptions())


def test_an_adapter_that_names_no_base_leaves_its_place_open(tmp_path: Path) -> None:
    adapter_in(tmp_path, base=None)
    with pytest.raises(ConfigError, match=f"give --model BASE --lora {tmp_path}$"):
        open_backend(str(tmp_path), BackendOptions())


def test_a_tokenizer_may_be_a_pointer_too(tiny_llama: Path, tmp_path: Path) -> None:
    folder = copy(tiny_llama, tmp_path / "pointer")
    (folder / "tokenizer.json").write_text(POINTER, encoding="ascii")
    with pytest.raises(ConfigError, match=r"in place of tokenizer\.json; run git lfs pull"):
        open_backend(str(folder), BackendOptions())


def test_a_special_token_beyond_the_embeddings_is_found_on_loading(tiny_llama: Path, tmp_path: Path) -> None:
    import transformers

    folder = copy(tiny_llama, tmp_path / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # One that no request holds does no harm.
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(folder)
    n_tokens = len(tokenizer) - 1
    open_backend(str(folder), BackendOptions(device="cpu"))
    tokenizer.add_special_tokens({"eos_token": "<|end|>"})
    tokenizer.save_pretrained(folder)
    with pytest.raises(ConfigError) as error:
        open_backend(str(folder), BackendOptions(device="cpu"))
    assert str(error.value) == (
        f"the tokenizer's special token '<|end|>' has the id {n_tokens + 1}, and the model has embeddings of "
        f"{n_tokens} tokens; name the tokenizer that it was trained with by --tokenizer"
    )


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, None),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
        ({"quantization_config": {"load_in_4bit": True}}, "bitsandbytes"),
        ({"text_config": {"quantization_config": {"quant_method": "awq"}}}, "awq"),
        ({"quantization_config": {"quant_method": ["\x1b[31m"]}}, "['\\x1b[31m']"),
    ],
)
def test_how_weights_are_quantised_is_in_the_configuration(settings: dict[str, Any], method: str | None) -> None:
    assert quantisation(settings) == method


@pytest.mark.parametrize(
    ("method", "module", "remedy"),
    [
        ("bitsandbytes", "bitsandbytes", "install the extra 'quantised': pip install 'biasboard[quantised]'"),
        ("compressed-tensors", "compressed_tensors", "install the extra 'quantised'"),
        (
            "awq",
            "gptqmodel",
            "install it in a version for this machine, ask it with --backend vllm, or serve it with vllm serve MODEL, "
            "and score it with --backend openai --base-url URL",
        ),
    ],
)
def test_the_package_is_named_that_quantised_weights_need(method: str, module: str, remedy: str) -> None:
    if find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    with pytest.raises((ConfigError, MissingExtraError)) as error:
        check_quantisation("acme/small", {"quantization_config": {"quant_method": method}})
    begin, _, end = str(error.value).partition("; ")
    assert begin.startswith(f"the weights of model 'acme/small' are quantised by {method}, for which ")
    assert begin.endswith(f"{module.replace('_', '-')} must be installed")
    assert end.startswith(remedy)


def test_the_extra_has_what_its_methods_need(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = {Requirement(line).name for line in project["optional-dependencies"]["quantised"]}
    assert {"accelerate", "bitsandbytes", "compressed-tensors", "transformers"} <= packages


def test_weights_quantised_in_an_unknown_way_are_not_taken_for_plain_numbers(tiny_llama: Path, tmp_path: Path) -> None:
    folder = copy(tiny_llama, tmp_path / "model", quantization_config={"quant_method": "of-tomorrow"})
    with pytest.raises(ConfigError, match=r"by of-tomorrow, which transformers does not know; ask it with --backend"):
        open_backend(str(folder), BackendOptions(device="cpu"))
