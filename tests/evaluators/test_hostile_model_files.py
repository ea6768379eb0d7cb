"""Files of a model that state what its weights are not, hide signs in names, or are damaged: one line says so."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import BiasboardError
from evaluators.backend import open_backend
from evaluators.backend_options import BackendOptions
from tests import commands
from tests.evaluators.made_data import save_tiny_llama

torch = pytest.importorskip("torch", reason="the extra hf is not installed")

HIDDEN = "evil\x1b]0;title\x07\x1b[31m\u202e.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("model") / "tiny")


def settings(**fields: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")

    return change


def random_bytes(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(b"\xff" + os.urandom(4_000))

    return change


def listed(folder: Path) -> None:
    (folder / "config.json").write_text("[]", encoding="ascii")


def sparse(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(130 << 20)

    return change


def pipe(folder: Path) -> None:
    (folder / "generation_config.json").unlink(missing_ok=True)
    os.mkfifo(folder / "generation_config.json")


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


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a billion layers": (settings(num_hidden_layers=10**9), "config.json says num_hidden_layers = 1000000000, and its"),
    "fewer layers than none": (settings(num_hidden_layers=-1), "config.json says num_hidden_layers = -1, and its"),
    "layers in a part": (settings(text_config={"num_layers": 10**9}), "config.json says num_layers = 1000000000"),
    "many words": (settings(vocab_size=10**12), "config.json says vocab_size = 1000000000000, and its weights are"),
    "wide layers": (settings(hidden_size=2**20), "config.json says hidden_size = 1048576, and its weights are"),
    "a negative width": (settings(hidden_size=-64), "config.json says hidden_size = -64, and its weights are"),
    "many labels": (settings(num_labels=10**8), "config.json says num_labels = 100000000, and its weights are"),
    "many experts": (
        settings(model_type="mixtral", architectures=["MixtralForCausalLM"], num_local_experts=10**9),
        "config.json says num_local_experts = 1000000000, and its weights are",
    ),
    "layers in words": (settings(num_hidden_layers="two"), "its config.json cannot be loaded: Validation error"),
    "no heads": (settings(num_attention_heads=0), "its config.json cannot be loaded: integer modulo by zero"),
    "no such precision": (settings(dtype="none"), "its config.json cannot be loaded: module 'torch' has no"),
    "a list": (listed, "its config.json cannot be loaded"),
    "a configuration of 130 MB": (sparse("config.json"), r"config\.json: has 136,314,880 bytes, more than"),
    "a tokenizer of 130 MB": (sparse("tokenizer.json"), r"tokenizer\.json: has 136,314,880 bytes, more than"),
    "settings of 130 MB": (sparse("special_tokens_map.json"), r"special_tokens_map\.json: has 136,314,880 bytes"),
    "a pipe": (pipe, r"generation_config\.json: is not a regular file; save the model again"),
    "code in a pickle": (pickled, "its weights are no plain numbers, but a pickle that would run code, which is never"),
    "rules that panic": (panics, "the tokenizer fails: index out of bounds"),
    "random weights": (random_bytes("model.safetensors"), "cannot be loaded: Error while deserializing header"),
    "a random tokenizer": (random_bytes("tokenizer.json"), "tokenizer '.*' cannot be loaded: "),
    "a random configuration": (random_bytes("config.json"), r"config\.json: cannot be read as JSON"),
    "random settings": (random_bytes("tokenizer_config.json"), "tokenizer '.*' cannot be loaded: "),
}


@pytest.mark.parametrize(("change", "said"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_file_is_one_line(model: Path, tmp_path: Path, change: Callable[[Path], None], said: str) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "copy"))
    change(folder)
    with pytest.raises(BiasboardError, match=said) as error:
        open_backend("transformers", str(folder), BackendOptions(device="cpu"))
    assert "\n" not in str(error.value)
    assert "`weights_only` set to `False`" not in str(error.value)


@pytest.mark.slow
def test_signs_in_the_names_of_weights_are_shown_as_escapes(model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(model, tmp_path / "copy"))
    path = folder / "model.safetensors"
    save_file(load_file(path) | {HIDDEN: torch.zeros(2)}, path, metadata={"format": "pt"})
    program = (
        "import sys\nfrom evaluators.backend import open_backend\n"
        "from evaluators.backend_options import BackendOptions\n"
        "open_backend('transformers', sys.argv[1], BackendOptions(device='cpu'))\n"
    )
    done = commands.run("-c", program, str(folder))
    assert done.returncode == 0
    printed = done.stdout + done.stderr
    assert r"evil\x1b]0;title\x07\x1b[31m\u202e.weight" in printed
    assert not {"\x1b", "\x07", "\u202e"} & {*printed}
