"""Adds LoRA adapters to a model that is loaded, and takes them off again. All use of the library peft is in this file.

The weights of an adapter are never merged into those of the model, which would round them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.strict_json import JsonValue
from evaluators.adapters import SETTINGS, WEIGHTS
from schemas.documents.adapters import Hyperparameters

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_EXTRA = "train"


def check_installed() -> None:
    """Check that adapters can be loaded.

    Raises:
        MissingExtraError: peft is not installed.
    """
    import_extra("peft", _EXTRA)


@dataclass
class AdapterSlot:
    """The place of a model for one adapter at a time."""

    network: PreTrainedModel
    _folder: Path | None = None
    _adapted: Any = field(default=None, repr=False)

    def use(self, folder: Path | None) -> None:
        """Let the model answer with the adapter in a folder, or alone for None.

        Raises:
            ConfigError: the adapter does not fit the model, or its files cannot be read.
            MissingExtraError: peft is not installed.
        """
        if folder == self._folder:
            return
        self.free()
        if folder is not None:
            self._adapted = _loaded(self.network, folder)
            self._folder = folder

    def begin(self, hyperparameters: Hyperparameters, target_modules: tuple[str, ...]) -> list[Any]:
        """Add a new adapter, which changes nothing yet, and return its weights, which are to be trained.

        The first weights come from the global random numbers of torch.

        Raises:
            ConfigError: the layers of the model cannot have an adapter.
            MissingExtraError: peft is not installed.
        """
        self.free()
        peft = import_extra("peft", _EXTRA)
        config = peft.LoraConfig(
            task_type="CAUSAL_LM",
            r=hyperparameters.rank,
            lora_alpha=hyperparameters.alpha,
            lora_dropout=hyperparameters.dropout,
            target_modules=list(target_modules),
            bias="none",
        )
        try:
            self._adapted = _adapted(self.network, config)
        # peft raises errors of many kinds for layers that it does not know.
        except Exception as error:
            raise ConfigError(f"{type(self.network).__name__} takes no adapter: {_line(error)}") from error
        return [weights for weights in self._adapted.parameters() if weights.requires_grad]

    def save(self, folder: Path, base: str) -> None:
        """Write the adapter in the precision of the model, as other programs read it.

        Args:
            folder: Existing folder.
            base: Name of the model, without paths of this machine.
        """
        peft, safetensors = import_extra("peft", _EXTRA), import_extra("safetensors.torch", _EXTRA)
        weights = {
            name: weight.detach().to("cpu", self.network.dtype).contiguous()
            for name, weight in peft.get_peft_model_state_dict(self._adapted).items()
        }
        safetensors.save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        config = self._adapted.peft_config["default"]
        settings: dict[str, JsonValue] = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base,
            "r": config.r,
            "lora_alpha": config.lora_alpha,
            "lora_dropout": config.lora_dropout,
            "target_modules": sorted(config.target_modules),
            "bias": "none",
            "inference_mode": True,
        }
        strict_json.write(folder / SETTINGS, settings)

    def free(self) -> None:
        """Take the adapter off; the model is then as it was before."""
        if self._adapted is not None:
            _unload(self.network, self._adapted)
        self._adapted, self._folder = None, None


def _loaded(network: PreTrainedModel, folder: Path) -> Any:
    """Add the adapter in a folder to a model, with weights in the precision of the model."""
    peft = import_extra("peft", _EXTRA)
    try:
        config = peft.PeftConfig.from_pretrained(str(folder))
        weights = peft.load_peft_weights(str(folder), device="cpu")
    # The libraries raise errors of many kinds for files that are damaged; each concerns the adapter.
    except Exception as error:
        raise ConfigError(f"LoRA adapter {folder} cannot be read: {_line(error)}; train or save it again") from error
    if not isinstance(config, peft.LoraConfig):
        raise ConfigError(f"adapter {folder} is of kind {config.peft_type}, and not a LoRA; give a LoRA")
    adapted = None
    try:
        config.base_model_name_or_path = None
        adapted = _adapted(network, config, autocast_adapter_dtype=False)
        report = peft.set_peft_model_state_dict(adapted, weights)
    except Exception as error:
        _unload(network, adapted)
        raise ConfigError(
            f"LoRA adapter {folder} does not fit {type(network).__name__}: {_line(error)}; give one that was trained "
            "for this model"
        ) from error
    absent = [name for name in report.missing_keys if "lora_" in name]
    if absent or report.unexpected_keys:
        _unload(network, adapted)
        fault = f"lacks {absent[0]}" if absent else f"has {report.unexpected_keys[0]}, which the model lacks"
        raise ConfigError(f"LoRA adapter {folder} {fault}; give one that was trained for this model")
    adapted.requires_grad_(False)
    return adapted.eval()


def _adapted(network: PreTrainedModel, config: Any, **options: Any) -> Any:
    """Add an adapter to a model, without the warnings of the libraries about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return import_extra("peft", _EXTRA).get_peft_model(network, config, **options)


def _unload(network: PreTrainedModel, adapted: Any) -> None:
    """Take what was added to a model off it again; None if peft failed before it had added anything."""
    if adapted is not None:
        adapted.unload()
    # Otherwise the next adapter would be taken for a second one beside this.
    vars(network).pop("peft_config", None)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def linear_layers(network: PreTrainedModel) -> tuple[str, ...]:
    """Return the names of all linear layers of a model but the output layer, sorted, each without its place.

    The code of Reif & Schwartz adapts the output layer too. QLoRA, which they follow, leaves it out, and so does this:
    in many models it shares its weights with the input embeddings, and engines cannot adapt it there.

    Raises:
        ConfigError: there is none.
    """
    torch, pytorch_utils = import_extra("torch", "hf"), import_extra("transformers.pytorch_utils", "hf")
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    kinds = (torch.nn.Linear, pytorch_utils.Conv1D)
    names = {
        name.rpartition(".")[2]
        for name, module in network.named_modules()
        if isinstance(module, kinds) and module is not head
    }
    if not names:
        raise ConfigError(
            f"{type(network).__name__} has no linear layers besides its output layer, so that it takes no LoRA; give "
            "another model"
        )
    return tuple(sorted(names))
