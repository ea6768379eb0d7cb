"""LoRA adapters of ``finetune``, one for each context of a dataset: what each is trained on, and their folders.

A context is a config under a prompt, with the examples that it shows. ``adapters.json`` in such a folder lists the
adapters with the hashes of their files, and the hash of this list is part of the identity of a model that answers with
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from evaluators.backend import ChoiceRequest
from schemas.documents.adapters import Adapters, TrainedAdapter, adapter_name
from schemas.documents.dataset import Manifest
from schemas.documents.result import AdaptersFile, Result
from schemas.files import contract
from schemas.folders.run_folder import ADAPTERS, read_adapters

WEIGHTS = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"
WRITTEN = frozenset(
    ("peft_type", "task_type", "base_model_name_or_path", "r", "lora_alpha", "lora_dropout", "target_modules")
) | {"bias", "inference_mode"}
"""Settings of an adapter of a set, as finetune writes them."""


@dataclass(frozen=True)
class AdapterSet:
    """The adapters of a folder."""

    folder: Path
    document: Adapters
    sha256: str
    """SHA-256 of ``adapters.json``."""

    @property
    def path(self) -> Path:
        """The list of the adapters."""
        return self.folder / ADAPTERS

    @property
    def file(self) -> AdaptersFile:
        """The reference by which a result names the list."""
        return AdaptersFile(path=ADAPTERS, sha256=self.sha256)

    @cached_property
    def by_name(self) -> Mapping[str, TrainedAdapter]:
        """The adapters by the name of their context."""
        return {adapter.name: adapter for adapter in self.document.adapters}

    def folder_of(self, name: str | None) -> Path:
        """Return the folder of an adapter after checking its files against the list.

        Raises:
            ConfigError: there is no such adapter, or its files are missing or were changed.
        """
        adapter = None if name is None else self.by_name.get(name)
        if adapter is None:
            raise ConfigError(f"{self.path}: has no adapter for {name or 'a request that names no context'}")
        return checked_folder(self.folder, adapter)

    def check_base(self, identity: str, *, tokenizer_sha256: str | None, chat_template_sha256: str | None) -> None:
        """Check that the adapters were trained for a model, with the same tokenizer and chat template.

        Args:
            identity: Exact version of the files of the model.
            tokenizer_sha256: Hash of the tokenizer's behaviour; None for the model's own tokenizer.
            chat_template_sha256: Hash of the chat template; None if prompts are shown as they are.

        Raises:
            ConfigError: the adapters were trained for another model, tokenizer or chat template.
        """
        base = self.document.base
        if base.identity_sha256 != base_identity(identity):
            raise ConfigError(
                f"{self.path}: was trained for model {base.id} ({base.revision[:19]}), and --model names another one "
                f"({identity[:80]}); name that model, or train adapters for this one with finetune"
            )
        for name, trained_with, asked_with in (
            ("--tokenizer", base.tokenizer_sha256, tokenizer_sha256),
            ("--chat", base.chat_template_sha256, chat_template_sha256),
        ):
            if trained_with != asked_with:
                raise ConfigError(f"{self.path}: was trained with another {name}; give the same one as to finetune")

    def check_contexts(self, manifest: Manifest, task: str, configs: Iterable[str], prompt: str) -> None:
        """Check that each config has an adapter for a prompt, trained on the dataset of the run.

        Raises:
            ConfigError: the adapters were trained on another dataset or for another task, or one is missing.
        """
        data = self.document.data
        for name, trained_on, asked in (
            ("dataset", data.name, manifest.name),
            ("version", data.version, manifest.version),
            ("content_sha256", data.content_sha256, manifest.content_sha256),
            ("task", data.task, task),
        ):
            if trained_on != asked:
                raise ConfigError(
                    f"{self.path}: was trained on {name} {trained_on[:40]}, and {name} {asked[:40]} is asked; name "
                    "that dataset with --dataset, or train other adapters with finetune"
                )
        for config in configs:
            adapter = self.by_name.get(adapter_name(config, prompt))
            if adapter is None:
                raise ConfigError(
                    f"{self.path}: has no adapter for config '{config}' with prompt '{prompt}'; train it with: "
                    f"biasboard finetune --dataset out/datasets/{manifest.name} --model {self.document.base.id} "
                    f"--config {config} --prompt {prompt} --out {self.folder}"
                )
            for file in (WEIGHTS, SETTINGS):
                if not (self.folder / adapter.path / file).is_file():
                    raise ConfigError(f"{self.folder / adapter.path / file}: no such file; train the adapter again")


def base_identity(identity: str) -> str:
    """Return the hash by which adapters name the exact version of a model's files."""
    return strict_json.sha256({"model": identity})


def is_adapter_set(name: str) -> bool:
    """Return True for a folder of finetune, with one adapter per context; False for a single adapter.

    Raises:
        ConfigError: the folder holds neither.
    """
    folder = Path(name)
    if folder.is_dir() and not (folder / SETTINGS).is_file() and not (folder / ADAPTERS).is_file():
        raise ConfigError(
            f"{folder}: holds neither {SETTINGS} nor {ADAPTERS}; name the folder of an adapter or one that finetune "
            "wrote, or let an interrupted finetune end"
        )
    return (folder / ADAPTERS).is_file()


def open_adapters(folder: str) -> AdapterSet:
    """Read the list of the adapters in a folder that finetune wrote.

    Raises:
        DataError: the list is invalid.
    """
    path = Path(folder) / ADAPTERS
    return AdapterSet(Path(folder), contract.read(path, Adapters), sha256_file(path))


def checked_folder(root: Path, adapter: TrainedAdapter) -> Path:
    """Return the folder of an adapter after checking that its files have the hashes recorded after training.

    Raises:
        ConfigError: a file is missing or was changed.
    """
    folder = root / adapter.path
    # The model's identity covers only the hash of the list: other weights would pass as the same model.
    for name, noted in ((WEIGHTS, adapter.weights_sha256), (SETTINGS, adapter.settings_sha256)):
        path = folder / name
        if not path.is_file():
            raise ConfigError(f"{path}: no such file; remove the folder and train the adapter again with finetune")
        if (sha256 := sha256_file(path)) != noted:
            raise ConfigError(
                f"{path}: sha256 {sha256[:12]} is not the {noted[:12]} that was noted after the training; remove the "
                "folder and train the adapter again with finetune"
            )
    # Others could change the model itself, and with it the answers of all adapters that are loaded later.
    settings = strict_json.read(folder / SETTINGS)
    if not isinstance(settings, dict) or settings.keys() != WRITTEN or settings["bias"] != "none":
        raise ConfigError(
            f"{folder / SETTINGS}: has other settings than finetune writes; remove the folder and train the adapter "
            "again"
        )
    return folder


def trained_items(folder: Path, result: Result) -> Mapping[str, frozenset[str]]:
    """Return the ids of the items on which the adapters of a result were trained, by config; none without adapters.

    Raises:
        DataError: the list of the adapters is missing or damaged, or lacks a config of the result.
    """
    document = read_adapters(folder, result)
    if document is None:
        return {}
    prompt = result.signature.prompt
    items = {adapter.config: frozenset(adapter.item_ids) for adapter in document.adapters if adapter.prompt == prompt}
    for config in result.signature.configs:
        if config not in items:
            raise DataError(
                f"{folder / ADAPTERS}: has no adapter for config '{config}' with prompt '{prompt}'; run the model again"
            )
    return {config: items[config] for config in result.signature.configs}


class Lesson(NamedTuple):
    """An item to train on."""

    item_id: str
    request: ChoiceRequest
    """The question about the item, as it is asked in an evaluation."""
    option: int
    """Index of the right option."""


class TrainingContext(NamedTuple):
    """A config under a prompt, and the items on which its adapter is trained."""

    config: str
    prompt: str
    lessons: tuple[Lesson, ...]

    @property
    def name(self) -> str:
        """The name of the context and of its adapter."""
        return adapter_name(self.config, self.prompt)

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the items on which the adapter is trained, in order."""
        return tuple(lesson.item_id for lesson in self.lessons)


class Likelihoods(NamedTuple):
    """Mean log-probability in nats of a label and the end token after it, over the items of a training."""

    before: float
    after: float
