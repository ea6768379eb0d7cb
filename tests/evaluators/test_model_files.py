"""Which files make a model, and the one line that says why some cannot be asked: unfit, damaged or hostile ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from biasboard.ground.errors import BiasboardError, ConfigError
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import quantisation
from evaluators.backends.transformers.transformers_backend import open_backend
from evaluators.models.model_files import find_files, find_model, folder_revision
from evaluators.models.outline import outline_of
from tests import commands

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

CPU = BackendOptions(device="cpu")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
RANDOM = b"\xff" + os.urandom(4_000)
HIDDEN = "evil\x1b]0;title\x07\x1b[31m\u202e.weight"


@pytest.fixture
def made_files(tmp_path: Path) -> Path:
    folder = tmp_path / "made-model"
    (folder / "deeper").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.pt", "deeper/template.jinja"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_a_folder_is_named_without_its_path_and_known_by_all_files_and_their_places(
    made_files: Path, tmp_path: Path
) -> None:
    found, before = find_model(str(made_files), None), folder_revision(made_files)
    assert (found.location, found.public_name, found.default_id) == (str(made_files), "made-model", "local/made-model")
    assert found.revision.startswith("sha256:")
    assert (found.commit, found.identity) == (None, found.revision)
    # Hidden files are no part of a model, and neither is the name of its folder.
    (made_files / ".cache").mkdir()
    (made_files / ".cache/download.json").touch()
    folder = made_files.rename(tmp_path / "other-name")
    assert folder_revision(folder) == before
    (folder / "model.pt").rename(folder / "deeper/model.pt")
    moved = folder_revision(folder)
    (folder / "deeper/template.jinja").write_text("changed", encoding="utf-8")
    assert len({before, moved, folder_revision(folder)}) == 3


def test_a_downloaded_model_is_known_by_its_commit_also_offline(made_files: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = Path(constants.HF_HUB_CACHE) / "models--made-org--made-model"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs/main").write_text(commit, encoding="utf-8")
    (cache / f"snapshots/{commit}").mkdir(parents=True)
    (cache / f"snapshots/{commit}/config.json").write_text("{}", encoding="utf-8")
    found = find_model("made-org/made-model", None)
    assert (found.location, found.revision, found.commit) == ("made-org/made-model", commit, commit)
    assert found.identity == f"made-org/made-model@{commit}"


def test_what_is_missing_is_named(made_files: Path) -> None:
    for named, revision, said in (
        (f"{made_files}", "main", "a local model folder has no revision"),
        ("./nothing", None, r"model folder '\./nothing' does not exist"),
        (f"{made_files}/config.json", None, r"is a file; name the folder that holds it and config\.json"),
        ("made-org/absent", None, "model 'made-org/absent' cannot be found: .* check the id"),
    ):
        with pytest.raises(ConfigError, match=said):
            find_model(named, revision)
    (made_files / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"has no tokenizer .*save_pretrained"):
        find_model(str(made_files), None)
    assert find_model(str(made_files), None, own_tokenizer=False).is_local
    with pytest.raises(ConfigError, match=r"adapter folder .* has no adapter_config\.json"):
        find_files(str(made_files), None, needed="adapter_config.json", what="adapter")
    (made_files / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        find_model(str(made_files), None)
    (made_files / "a.Q4_K_M.gguf").touch()
    with pytest.raises(ConfigError, match=r"weights in GGUF; serve it with llama\.cpp or vLLM, and score it with"):
        find_model(str(made_files), None)


def settings(file: str = "config.json", /, **fields: Any) -> Callable[[Path], None]:
    """A change of settings in a file of a model."""

    def change(folder: Path) -> None:
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")

    return change


def pipe(folder: Path) -> None:
    (folder / "generation_config.json").unlink(missing_ok=True)
    os.mkfifo(folder / "generation_config.json")


def with_fewer_weights(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "layers.1.mlp" not in name}
    assert len(kept) == len(weights) - 3
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def encoder(folder: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    (folder / "model.safetensors").unlink()
    config = transformers.BertConfig(vocab_size=600, initializer_range=0.5, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(folder)


class Pickled:
    """What runs a command when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("exit",)


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"a": Pickled()}, folder / "pytorch_model.bin")


def panics(folder: Path) -> None:
    path = folder / "tokenizer.json"
    parts = json.loads(path.read_text(encoding="utf-8"))
    parts["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}
    path.write_text(json.dumps(parts), encoding="utf-8")


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a billion layers": (settings(num_hidden_layers=10**9), "config.json says num_hidden_layers = 1000000000, and its"),
    "layers in a part": (settings(text_config={"num_layers": 10**9}), "config.json says num_layers = 1000000000"),
    "many words": (settings(vocab_size=10**12), "config.json says vocab_size = 1000000000000, and its weights are"),
    "a negative width": (settings(hidden_size=-64), "config.json says hidden_size = -64, and its weights are"),
    "layers in words": (settings(num_hidden_layers="two"), "its config.json cannot be loaded: Validation error"),
    "a configuration of 130 MB": (lambda folder: os.truncate(folder / "config.json", 130 << 20),
        r"config\.json: has 136,314,880 bytes, more than"),
    "a pipe": (pipe, r"generation_config\.json: is not a regular file; save the model again"),
    "code in a pickle": (pickled, "its weights are no plain numbers, but a pickle that would run code, which is never"),
    "rules that panic": (panics, "the tokenizer fails: index out of bounds"),
    "no tokenizer": (lambda folder: [*map(os.remove, folder.glob("tokenizer*"))],
        "has no tokenizer .*save_pretrained"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "cannot be loaded"),
    "fewer weights": (with_fewer_weights, "lacks 3 weights of a causal language model, such as .*mlp"),
    "an encoder": (encoder, "is no causal language model"),
    "a way of quantising that nobody knows": (settings(quantization_config={"quant_method": "of-tomorrow"}),
        "by of-tomorrow, which transformers does not know; ask it with --backend"),
    "a pointer for a tokenizer": (lambda folder: (folder / "tokenizer.json").write_text(POINTER),
        r"in place of tokenizer\.json; run git lfs pull"),
    "a random configuration": (lambda folder: (folder / "config.json").write_bytes(RANDOM),
        r"config\.json: cannot be read as JSON"),
    "a random tokenizer": (lambda folder: (folder / "tokenizer.json").write_bytes(RANDOM),
        "tokenizer '.*' cannot be loaded: "),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("change", "said"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_file_is_one_line(
    tiny_llama: Path, tmp_path: Path, change: Callable[[Path], object], said: str
) -> None:
    folder = Path(shutil.copytree(tiny_llama, tmp_path / "copy"))
    change(folder)
    with pytest.raises(BiasboardError, match=said) as error:
        open_backend(str(folder), CPU)
    assert "\n" not in str(error.value)
    assert "`weights_only` set to `False`" not in str(error.value)


def test_signs_in_the_names_of_weights_are_shown_as_escapes(
    tiny_llama: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(tiny_llama, tmp_path / "copy"))
    path = folder / "model.safetensors"
    save_file(load_file(path) | {HIDDEN: torch.zeros(2)}, path, metadata={"format": "pt"})
    open_backend(str(folder), CPU)
    assert r"evil\x1b]0;title\x07\x1b[31m\u202e.weight" in caplog.text
    assert not {"\x1b", "\x07", "\u202e"} & {*caplog.text}


def copy(model: Path, folder: Path, **fields: Any) -> Path:
    """A copy of a model with other settings in its configuration."""
    shutil.copytree(model, folder)
    settings(**fields)(folder)
    return folder


def adapter_in(folder: Path, base: str | None = "acme/base") -> None:
    folder.mkdir(exist_ok=True)
    settings = {"peft_type": "LORA", "r": 4, "base_model_name_or_path": base}
    (folder / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "adapter_model.safetensors").touch()


@pytest.mark.slow
def test_what_the_files_tell_is_told_without_importing_torch(tiny_llama: Path, tmp_path: Path) -> None:
    pointer = copy(tiny_llama, tmp_path / "pointer")
    (pointer / "model.safetensors").write_text(POINTER, encoding="ascii")
    adapter_in(tmp_path / "adapter")
    adapter_in(tmp_path / "of-none", base=None)
    encoder = copy(tiny_llama, tmp_path / "encoder", architectures=["RobertaForMaskedLM"])
    told = {
        (str(tiny_llama), "not/a/name"): "model id 'not/a/name' must be NAME or ORG/NAME",
        (str(tiny_llama), "chat"): "the tokenizer has no chat template; leave out --chat",
        (str(pointer), ""): "holds a Git LFS pointer in place of model.safetensors; run git lfs pull in it",
        (str(tmp_path / "adapter"), ""): f"give --model acme/base --lora {tmp_path}/adapter",
        (str(tmp_path / "of-none"), ""): f"give --model BASE --lora {tmp_path}/of-none",
        (str(encoder), ""): "RobertaForMaskedLM is no causal language model: a token changes what was predicted before "
        "it; give a decoder, or ask a masked model which text is likelier with --backend masked",
    }
    program = (
        "import json, sys\n"
        "from evaluators.backend import open_backend\nfrom evaluators.backend_options import BackendOptions\n"
        "from biasboard.ground.errors import BiasboardError\n"
        "for model, given in json.loads(sys.argv[1]):\n"
        "    options = BackendOptions(chat=True) if given == 'chat' else BackendOptions(name=given or None)\n"
        "    try:\n        open_backend('transformers', model, options)\n"
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


def test_a_special_token_beyond_the_embeddings_is_found_on_loading(tiny_llama: Path, tmp_path: Path) -> None:
    folder = copy(tiny_llama, tmp_path / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # One that no request holds does no harm.
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(folder)
    n_tokens = len(tokenizer) - 1
    open_backend(str(folder), CPU)
    tokenizer.add_special_tokens({"eos_token": "<|end|>"})
    tokenizer.save_pretrained(folder)
    with pytest.raises(ConfigError) as error:
        open_backend(str(folder), CPU)
    assert str(error.value) == (
        f"the tokenizer's special token '<|end|>' has the id {n_tokens + 1}, and the model has embeddings of "
        f"{n_tokens} tokens; name the tokenizer that it was trained with by --tokenizer"
    )


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, None),
        ({"quantization_config": {"load_in_4bit": True}}, "bitsandbytes"),
        ({"text_config": {"quantization_config": {"quant_method": "awq"}}}, "awq"),
        ({"quantization_config": {"quant_method": ["\x1b[31m"]}}, "['\\x1b[31m']"),
    ],
)
def test_how_weights_are_quantised_is_in_the_configuration(settings: dict[str, Any], method: str | None) -> None:
    assert quantisation(settings) == method


@pytest.mark.skipif(find_spec("gptqmodel") is not None, reason="the library of this quantisation is installed")
def test_weights_whose_library_is_missing_are_refused_in_a_line(tiny_llama: Path, tmp_path: Path) -> None:
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 32, "quant_config": {}}
    folder = copy(tiny_llama, tmp_path / "model", quantization_config=settings)
    with pytest.raises(ConfigError, match="install what its quantisation by gptq needs, or ask it with --backend vllm"):
        open_backend(str(folder), CPU)
