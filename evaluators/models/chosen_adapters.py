"""The LoRA adapters that a command line names, and the id of a model that answers with them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import one_line
from evaluators.adapter_set import SETTINGS, WEIGHTS, AdapterSet, is_adapter_set, open_adapters
from evaluators.backend_options import BackendOptions
from evaluators.models.model_files import ModelFiles, find_files, settings_of


class Adapter(NamedTuple):
    """A LoRA adapter in a folder on this machine."""

    files: ModelFiles
    folder: str
    rank: int

    @property
    def public_name(self) -> str:
        """The name by which a command line names the adapter, without a path of this machine."""
        return self.files.public_name + (f"@{self.files.commit}" if self.files.commit else "")


class ChosenAdapters(NamedTuple):
    """The adapters that a command line names: one for everything, one for each context, or none."""

    single: Adapter | None
    of_contexts: AdapterSet | None

    @property
    def rank(self) -> int:
        """The largest rank of an adapter; 0 if there is none."""
        if self.of_contexts is not None:
            return self.of_contexts.document.hyperparameters.rank
        return 0 if self.single is None else self.single.rank

    def model_id(self, files: ModelFiles) -> str:
        """Return the id of the model in results, unless the user names another.

        A single adapter has an id of its own; with one adapter per context, the id of the model gets a suffix.
        """
        if self.single is not None:
            return self.single.files.default_id
        return files.default_id if self.of_contexts is None else f"{files.default_id}-LoRA"

    def revision(self, files: ModelFiles) -> str:
        """Return the revision in results: that of a single adapter, or else that of the model."""
        return files.revision if self.single is None else self.single.files.revision

    def check_base(self, files: ModelFiles, *, tokenizer_sha256: str | None, chat_template_sha256: str | None) -> None:
        """Check that the adapters of contexts were trained for a model, with the same tokenizer and chat template.

        Raises:
            ConfigError: they were trained for another model, tokenizer or chat template.
        """
        if self.of_contexts is not None:
            self.of_contexts.check_base(
                files.identity, tokenizer_sha256=tokenizer_sha256, chat_template_sha256=chat_template_sha256
            )

    def arguments(self) -> dict[str, str | None]:
        """Return the options that name the adapters, without paths of this machine."""
        if self.of_contexts is not None:
            return {"lora": self.of_contexts.folder.resolve().name}
        return {"lora": None if self.single is None else self.single.public_name}


NO_ADAPTERS = ChosenAdapters(None, None)


def chosen_adapters(options: BackendOptions) -> ChosenAdapters:
    """Find the adapters of a command line: a set, or one in a folder or on the Hub as ``ID`` or ``ID@REVISION``.

    Raises:
        ConfigError: an adapter cannot be found, or it lacks its weights or its rank.
        DataError: the list of the adapters of contexts is invalid.
    """
    name = options.lora
    if name is None:
        return NO_ADAPTERS
    if is_adapter_set(name):
        return ChosenAdapters(None, open_adapters(name))
    what = f"LoRA adapter '{name}'"
    if Path(name).is_dir():
        files = find_files(name, None, needed=SETTINGS, what="LoRA adapter")
        folder = Path(name)
    else:
        repository, _, revision = name.partition("@")
        files = find_files(repository, revision or None, needed=SETTINGS, what="LoRA adapter")
        import huggingface_hub

        try:
            folder = Path(huggingface_hub.snapshot_download(files.location, revision=files.commit))
        # A download can raise many kinds of errors.
        except Exception as error:
            raise ConfigError(f"{what} cannot be fetched: {one_line(error)}; give a folder") from error
    weights = (WEIGHTS, "adapter_model.bin")
    if not any((folder / file).is_file() for file in weights):
        raise ConfigError(f"{what} has no weights (one of {', '.join(weights)}); save it with save_pretrained")
    config = settings_of(str(folder), SETTINGS, None) or {}
    try:
        rank = max([int(config["r"]), *map(int, (config.get("rank_pattern") or {}).values())])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ConfigError(f"{what}: {SETTINGS} names no rank 'r'; is it a LoRA?") from error
    return ChosenAdapters(Adapter(files, str(folder), rank), None)
