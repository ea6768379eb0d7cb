"""Adds LoRA adapters to a loaded model, removes them, and trains new ones. All use of peft is in this file.

The weights of an adapter are never merged into those of the model, because merging would round them.

Adapters are trained on labels: only the right label and the end token after it count in the loss. The procedure is that
of Reif & Schwartz (NAACL 2024, arXiv:2405.02743) and their code: one item at a time, with gradients averaged over
several items for each step of AdamW. Forward passes run in bfloat16 autocast on CUDA, and in the precision of the model
elsewhere.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, RunError, import_extra
from biasboard.ground.plain_text import one_line, printable
from biasboard.ground.strict_json import JsonValue
from evaluators.adapter_set import SETTINGS, WEIGHTS, Likelihoods, TrainingContext, base_identity
from evaluators.backend import GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import LoadedModel, context_tokens_of, load_model
from evaluators.backends.transformers.option_scoring import PlainScorer
from evaluators.models.model_files import refusals
from evaluators.models.tokenizer import TokenRows
from schemas.documents.adapters import BaseModel, Hyperparameters

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EXTRA = "train"
_NAME = re.compile(r"\^?[\w.\\-]*(\.?\*[\w.\\-]*)?\$?")
"""A layer, or layers with any text at one place; peft takes it for a regular expression, of which some take forever."""


@dataclass
class AdapterSlot:
    """A model that holds one adapter at a time."""

    network: PreTrainedModel
    _folder: Path | None = None
    _peft_model: Any = field(default=None, repr=False)

    def use(self, folder: Path | None) -> None:
        """Let the model answer with the adapter in a folder, or without one for None.

        Raises:
            ConfigError: the adapter does not fit the model, or its files cannot be read.
            MissingExtraError: peft is not installed.
        """
        if folder == self._folder:
            return
        self.free()
        if folder is not None:
            self._peft_model = _load_adapter(self.network, folder)
            self._folder = folder

    def begin(self, hyperparameters: Hyperparameters, target_modules: tuple[str, ...]) -> list[Any]:
        """Add a new adapter, which has no effect yet, and return its trainable weights.

        The weights are initialised from torch's global random state.

        Raises:
            ConfigError: the layers of the model cannot have an adapter.
            MissingExtraError: peft is not installed.
        """
        self.free()
        peft = import_extra("peft", EXTRA)
        config = peft.LoraConfig(
            task_type="CAUSAL_LM",
            r=hyperparameters.rank,
            lora_alpha=hyperparameters.alpha,
            lora_dropout=hyperparameters.dropout,
            target_modules=list(target_modules),
            bias="none",
        )
        try:
            # By default, peft trains half-precision weights as float32.
            self._peft_model = _add_adapter(self.network, config)
        # peft raises errors of many kinds for layers that it does not support.
        except Exception as error:
            raise ConfigError(f"{type(self.network).__name__} takes no adapter: {one_line(error)}") from error
        return [weights for weights in self._peft_model.parameters() if weights.requires_grad]

    def save(self, folder: Path, base: str) -> None:
        """Write the adapter in peft's format and the precision of the model."""
        peft, safetensors = import_extra("peft", EXTRA), import_extra("safetensors.torch", EXTRA)
        weights = {
            name: weight.detach().to("cpu", self.network.dtype).contiguous()
            for name, weight in peft.get_peft_model_state_dict(self._peft_model).items()
        }
        safetensors.save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        # Not by peft, which would write the path of the base model on this machine, and more fields with each version.
        config = self._peft_model.peft_config["default"]
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
        """Remove the adapter, which leaves the model as it was before."""
        if self._peft_model is not None:
            _unload(self.network, self._peft_model)
        self._peft_model, self._folder = None, None


def _load_adapter(network: PreTrainedModel, folder: Path) -> Any:
    """Add the adapter in a folder to a model, with weights in the precision of the model."""
    peft = import_extra("peft", EXTRA)
    with refusals(f"LoRA adapter {folder}", remedy="train or save it again"):
        config = peft.PeftConfig.from_pretrained(str(folder))
        weights = peft.load_peft_weights(str(folder), device="cpu")
    if not isinstance(config, peft.LoraConfig):
        raise ConfigError(f"adapter {folder} is of kind {config.peft_type}, and not a LoRA; give a LoRA")
    _check_settings(config, weights, folder)
    _check_base(network, config, weights, folder)
    adapted = None
    try:
        # Otherwise peft warns that the name of the model differs from the one in training, as it does for any folder.
        config.base_model_name_or_path = None
        adapted = _add_adapter(network, config, autocast_adapter_dtype=False)
        report = peft.set_peft_model_state_dict(adapted, weights)
    except Exception as error:
        _unload(network, adapted)
        raise ConfigError(
            f"LoRA adapter {folder} does not fit {type(network).__name__}: {one_line(error)}; give one that was "
            "trained for this model"
        ) from error
    absent = [name for name in report.missing_keys if "lora_" in name]
    if absent or report.unexpected_keys:
        _unload(network, adapted)
        fault = f"lacks {absent[0]}" if absent else f"has {report.unexpected_keys[0]}, which the model lacks"
        raise ConfigError(f"LoRA adapter {folder} {fault}; give one that was trained for this model")
    adapted.requires_grad_(False)
    return adapted.eval()


def _check_settings(config: Any, weights: Mapping[str, Any], folder: Path) -> None:
    """Check that an adapter is as large as its weights, and that no pattern in its settings can take forever.

    Layers that its settings name by a pattern become those that its weights name.
    """
    fault = None
    most = max(
        (len(weight) for name, weight in weights.items() if re.search(r"\.lora_(embedding_)?A", name)), default=0
    )
    for rank in (config.r, *(config.rank_pattern or {}).values()):
        if not isinstance(rank, int) or rank > most:
            fault = f"states rank {printable(repr(rank), most=20)}, and its weights have {most}"
    named = [*(config.rank_pattern or {}), *(config.alpha_pattern or {}), *(config.modules_to_save or [])]
    for name in named:
        if not _NAME.fullmatch(name):
            fault = f"names layers by the pattern '{printable(name, most=60)}', and not by plain names"
    if config.megatron_config or config.layer_replication:
        fault = "changes more of a model than its weights, by megatron_config or layer_replication"
    if fault is not None:
        raise ConfigError(f"LoRA adapter {folder} {fault}; train or save it again")
    if config.layers_pattern or any(isinstance(one, str) for one in (config.target_modules, config.exclude_modules)):
        layers = {name.removeprefix("base_model.model.").partition(".lora_")[0] for name in weights if ".lora_" in name}
        config.target_modules, config.exclude_modules = layers, None
        config.layers_to_transform, config.layers_pattern = None, None


def _check_base(network: PreTrainedModel, config: Any, weights: Mapping[str, Any], folder: Path) -> None:
    """Check that an adapter changes no weight of its model but the biases that its settings name.

    peft copies the embeddings of a model into its adapter, and would load whatever stands there, for good.
    """
    own = network.state_dict()
    for name, weight in weights.items():
        layer = re.sub(r"^base_model\.model\.|\.base_layer|\.original_module", "", name)
        before, parts = own.get(layer), layer.split(".")
        is_bias = config.bias != "none" and parts[-1] == "bias"
        # Copies stand beside the model's own.
        is_copy = name == f"base_model.model.{layer}" and not {*parts}.isdisjoint(config.modules_to_save or [])
        if (
            before is not None
            and not is_bias
            and not is_copy
            and not weight.to(before.device, before.dtype).equal(before)
        ):
            raise ConfigError(
                f"LoRA adapter {folder} replaces a weight of the model ({printable(name, most=100)}); give the changed "
                "model as --model"
            )


def _add_adapter(network: PreTrainedModel, config: Any, **options: Any) -> Any:
    """Add an adapter to a model, without the libraries' warnings about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return import_extra("peft", EXTRA).get_peft_model(network, config, **options)


def _unload(network: PreTrainedModel, adapted: Any) -> None:
    """Remove the adapter; ``adapted`` is None if peft failed first."""
    if adapted is not None:
        adapted.unload()
    # Otherwise the next adapter would look like a second adapter.
    vars(network).pop("peft_config", None)


def linear_layers(network: PreTrainedModel) -> tuple[str, ...]:
    """Return the last names of all linear layers but the output layer, such as ``q_proj``, sorted.

    The code of Reif & Schwartz adapts the output layer too. QLoRA, which they follow, leaves it out, as is done here:
    in many models it shares its weights with the input embeddings, and engines then cannot adapt it.

    Raises:
        ConfigError: there are none.
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


_OPTIONS = ("name", "revision", "dtype", "tokenizer", "chat", "device")
_BATCH_TOKENS = 2048


@dataclass(kw_only=True)
class LoraTrainer:
    """A causal language model for which LoRA adapters are trained. Its own weights never change."""

    base: BaseModel
    hyperparameters: Hyperparameters
    target_modules: tuple[str, ...]
    """Names of the layers that get an adapter, sorted."""
    loaded: LoadedModel
    end_id: int
    _slot: AdapterSlot = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._slot = AdapterSlot(self.loaded.network)

    @property
    def computation(self) -> str:
        """The data type of the forward passes and the type of the device."""
        kind = self.loaded.device.partition(":")[0]
        return f"{'bfloat16' if kind == 'cuda' else self.loaded.precision} on {kind}"

    @property
    def packages(self) -> dict[str, str]:
        """The versions of the libraries."""
        names = ("accelerate", "numpy", "peft", "tokenizers", "torch", "transformers")
        return {name: importlib.metadata.version(name) for name in names}

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a prompt, in the chat template if there is one."""
        return self.loaded.tokenizer.needed_tokens([GenerateRequest(prompt=text, max_tokens=1)])[0] - 1

    def train(self, context: TrainingContext, folder: Path) -> Likelihoods:
        """Train the adapter of a context, write it into an existing empty folder, and remove it from the model.

        Raises:
            RunError: memory ran out, or the loss or a likelihood is not finite.
        """
        torch, rows = import_extra("torch", "hf"), self.check(context)
        # One for each context, so that the contexts trained before it do not matter.
        digest = hashlib.sha256(f"{self.hyperparameters.seed}:{context.name}".encode()).digest()
        seed = int.from_bytes(digest[:4])
        torch.manual_seed(seed)
        before = self._mean_logprob(rows)
        try:
            weights = self._slot.begin(self.hyperparameters, self.target_modules)
            # Also enables the model's own dropout, as in any training.
            self.loaded.network.train()
            self._fit(rows, weights, np.random.default_rng(seed), context.name)
            self.loaded.network.train(False)
            self._slot.save(folder, self.base.id)
            # Measure the adapter that was written, loaded as in a run.
            self._slot.use(folder)
            after = self._mean_logprob(rows)
        except torch.OutOfMemoryError as error:
            raise RunError(
                f"{context.name}: out of memory; use a smaller model, --dtype bfloat16, or a --prompt with a smaller "
                "largest length"
            ) from error
        finally:
            self.loaded.network.train(False)
            self._slot.free()
        if not (math.isfinite(before) and math.isfinite(after)):
            raise RunError(
                f"{context.name}: the labels have log-probability {before:g} before the training and {after:g} after "
                "it; give another --dtype or a smaller --learning-rate"
            )
        return Likelihoods(before, after)

    def check(self, context: TrainingContext) -> list[TokenRows]:
        """Return the token ids of the prompt and right label of each item.

        Raises:
            ConfigError: an item has more tokens than the model takes, or cannot be tokenised.
        """
        context_tokens = context_tokens_of(self.loaded.network)
        # One fewer, for the end token.
        encoded = self.loaded.tokenizer.rows_of_all(
            [lesson.request for lesson in context.lessons], None if context_tokens is None else context_tokens - 1
        )
        labels = []
        for lesson, rows in zip(context.lessons, encoded, strict=True):
            if isinstance(rows, str):
                raise ConfigError(
                    f"item '{lesson.item_id}' of {context.name} cannot be trained on: {rows} and an end token; take a "
                    "--prompt with a smaller largest length, or another model"
                )
            labels.append(rows._replace(ids=(rows.ids[lesson.option],)))
        return labels

    def _mean_logprob(self, rows: Sequence[TokenRows]) -> float:
        """Return the mean over items of the log-probability of label and end token, in nats."""
        scorer = PlainScorer(self.loaded.network, self.end_id, _BATCH_TOKENS)
        scores = []
        for batch in scorer.plan(dict(enumerate(rows))):
            for of_row in scorer.score([[rows[index] for index in tree] for tree in batch.rows]):
                scores += [score.logprob + (score.end_logprob or 0.0) for score in of_row]
        return math.fsum(scores) / len(scores)

    def _fit(self, rows: Sequence[TokenRows], weights: list[Any], rng: np.random.Generator, name: str) -> None:
        torch, network, settings = import_extra("torch", "hf"), self.loaded.network, self.hyperparameters
        optimizer = torch.optim.AdamW(
            weights,
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=1e-8,
            weight_decay=settings.weight_decay,
        )
        n = settings.accumulation
        steps = []
        for _ in range(settings.epochs):
            # Each epoch has an order of its own.
            order = rng.permutation(len(rows)).tolist()
            steps += [order[start : start + n] for start in range(0, len(rows), n)]
        is_cuda = self.loaded.device.startswith("cuda")
        autocast: Any = torch.autocast("cuda", dtype=torch.bfloat16) if is_cuda else nullcontext()
        for number, indices in enumerate(steps):
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - number / len(steps) if settings.schedule == "linear" else 1)
            for index in indices:
                # One item at a time, as in the published code: without padding, and no item sees another one's label.
                ids, n_context = [*rows[index].ids[0], self.end_id], rows[index].n_context
                input_ids = torch.tensor([ids[:-1]], device=network.device)
                targets = torch.tensor(ids[n_context:], device=network.device)
                with autocast:
                    logits = network(input_ids=input_ids, use_cache=False).logits[0, -len(targets) :]
                    loss = torch.nn.functional.cross_entropy(logits.float(), targets) / len(indices)
                if not math.isfinite(loss.item()):
                    raise RunError(f"{name}: the loss is {loss.item():g}; give another --dtype or --learning-rate")
                loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, settings.max_gradient_norm)
            optimizer.step()
            optimizer.zero_grad()


def open_trainer(model: str, options: BackendOptions, hyperparameters: Hyperparameters) -> LoraTrainer:
    """Load a model to train adapters for.

    Raises:
        ConfigError: the model cannot be loaded or has no layers to train, or an option cannot be used.
        MissingExtraError: a library is not installed.
    """
    options.refuse_others("transformers", but=_OPTIONS)
    import_extra("peft", EXTRA)
    loaded = load_model(model, options)
    if loaded.network.config.is_encoder_decoder:
        raise ConfigError(f"model '{model}' has an encoder, and adapters are trained for models that continue a text")
    end_id = loaded.tokenizer.end_id
    if end_id is None:
        raise ConfigError(f"the tokenizer of '{model}' has no end token, which stands after every label; name another")
    for weights in loaded.network.parameters():
        weights.requires_grad_(False)
    return LoraTrainer(
        loaded=loaded,
        hyperparameters=hyperparameters,
        target_modules=linear_layers(loaded.network),
        end_id=end_id,
        base=BaseModel(
            id=options.name or loaded.files.public_name,
            revision=loaded.files.revision,
            identity_sha256=base_identity(loaded.files.identity),
            precision=loaded.precision,
            tokenizer_sha256=loaded.other_tokenizer_sha256,
            chat_template_sha256=loaded.tokenizer.chat_template_sha256,
        ),
    )
