"""Finds the files of a model and of its adapters, checks that none is missing, and identifies their exact version."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from biasboard.ground.hub import hub_obstacle
from biasboard.ground.plain_text import one_line, printable
from evaluators.backend_options import DTYPES, BackendOptions, as_arguments

if TYPE_CHECKING:
    from evaluators.adapter_set import AdapterSet

CONFIG = "config.json"
_ADAPTER_CONFIG = "adapter_config.json"
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth")
_POINTER = b"version https://git-lfs.github.com/spec/"
_SIZES = re.compile(
    r"layers?$|depths?$|blocks?$|(vocab|hidden|intermediate)_size$|d_model$|d_ff$|n_embd$|heads$|experts$|labels$"
)
_LAYERS = re.compile(r"layers?$|depths?$|blocks?$")
_MOST_BYTES_OF_JSON = 128 << 20
"""Largest size of a JSON file of a model, all of which are read whole; tokenizers take up to 35 MB."""
_LONGEST_HEADER = 100_000_000
"""Number of bytes that the header of a safetensors file has at most, by its library."""
_LONGEST_POINTER = 1024
"""Number of bytes that a Git LFS pointer has at most, by its specification."""
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model on the Hub at one commit, or in a local folder with its present content."""

    location: str
    """Id on the Hub or path of the folder, from which a library loads the model."""
    public_name: str
    """Id on the Hub, or name of the folder without the path of this machine."""
    revision: str
    """Commit on the Hub, or ``sha256:...`` of the folder's files."""
    is_local: bool

    @property
    def commit(self) -> str | None:
        """The commit to load from the Hub; None for a folder."""
        return None if self.is_local else self.revision

    @property
    def default_id(self) -> str:
        """The model's id in results, unless the user names another."""
        return f"local/{self.public_name}" if self.is_local else self.public_name

    @property
    def identity(self) -> str:
        """The exact version of the files; folders of different names may share one."""
        return self.revision if self.is_local else f"{self.public_name}@{self.revision}"


def opening_arguments(
    files: ModelFiles, options: BackendOptions, precision: str, others: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the options that open the same model again."""
    arguments = {"model": files.public_name, "name": options.name, "revision": files.commit}
    return as_arguments({**arguments, "dtype": precision if precision in DTYPES else None, **others})


def find_model(model: str, revision: str | None, *, own_tokenizer: bool = True) -> ModelFiles:
    """Find the files of a language model.

    Args:
        model: Id on the Hub, or path of a local folder.
        revision: Commit, tag or branch on the Hub; its main branch if left out.
        own_tokenizer: True if a local folder must hold the tokenizer too.

    Raises:
        ConfigError: the model cannot be found, or the folder lacks a file.
    """
    files = find_files(model, revision, needed=CONFIG, what="model")
    if files.is_local:
        _check_sizes(model)
    if files.is_local and own_tokenizer and not any((Path(model) / name).is_file() for name in _TOKENIZER_FILES):
        raise ConfigError(
            f"model folder '{model}' has no tokenizer (one of {', '.join(_TOKENIZER_FILES)}); "
            "save it there with AutoTokenizer.from_pretrained(ID).save_pretrained(FOLDER), or name one with --tokenizer"
        )
    return files


def _check_sizes(model: str) -> None:
    """Check that a model's JSON files can be read, and that its configuration describes none beyond its weights."""
    for path in sorted(Path(model).glob("*.json")):
        check_readable(path, most=_MOST_BYTES_OF_JSON, remedy="save the model again")
    files = [*Path(model).glob("*.safetensors")]
    counts = [*map(_n_tensors, files)]
    if not counts or not all(counts):
        return
    n_bytes, n_tensors = sum(file.stat().st_size for file in files), sum(counts)
    for name, value in _whole_numbers(settings_of(model, CONFIG, None)):
        # Small models may keep defaults of large ones in fields that they do not use.
        most = max(1_000, n_tensors) if _LAYERS.search(name) else max(1_000_000, n_bytes)
        if not 0 <= value <= most:
            raise ConfigError(
                f"model '{model}': {CONFIG} says {printable(name, most=60)} = {value:.20g}, and its weights are "
                f"{n_tensors:,} tensors of {n_bytes:,} bytes; save the model again"
            )


def _n_tensors(file: Path) -> int:
    """Return the number of tensors in a file of weights; none for a damaged one, which is refused when it is loaded."""
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        header = opened.read(size) if size < _LONGEST_HEADER else b""
    with suppress(ValueError, RecursionError):
        return len(json.loads(header))
    return 0


def _whole_numbers(settings: object, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield the sizes in a configuration and its parts, by name."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _whole_numbers(value, key)
    elif type(settings) is int and _SIZES.search(name):
        yield name, settings


def find_files(name: str, revision: str | None, *, needed: str, what: str) -> ModelFiles:
    """Find the files of a model or an adapter on the Hub or in a folder.

    Raises:
        ConfigError: the files cannot be found, or the folder lacks the needed one.
    """
    folder = Path(name)
    if folder.is_dir():
        if revision is not None:
            raise ConfigError(f"a local {what} folder has no revision; leave it out, its files are hashed")
        check_folder(folder, needed=needed, what=what)
        return ModelFiles(
            location=name, public_name=folder.resolve().name, revision=folder_revision(folder), is_local=True
        )
    if folder.is_file():
        raise ConfigError(f"{what} '{name}' is a file; name the folder that holds it and {needed}, or an id of the Hub")
    # An id of the Hub has at most one slash.
    if folder.is_absolute() or name.startswith((".", "~")) or name.endswith("/") or name.count("/") > 1:
        raise ConfigError(f"{what} folder '{name}' does not exist; name a folder or an id of the Hub")
    commit = hub_commit(name, revision, needed=needed, what=what)
    return ModelFiles(location=name, public_name=name, revision=commit, is_local=False)


def check_folder(folder: Path, *, needed: str, what: str) -> None:
    """Check that a folder holds files and not what stands for them, without reading the weights.

    Raises:
        ConfigError: it lacks the needed file, holds pointers of Git LFS, or an adapter where a model is needed.
    """
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.stat().st_size <= _LONGEST_POINTER and path.read_bytes().startswith(_POINTER):
            raise ConfigError(
                f"{what} folder '{folder}' holds a Git LFS pointer in place of {path.name}; run git lfs pull in it"
            )
    if needed == CONFIG and (folder / _ADAPTER_CONFIG).is_file():
        weights = [path.name for pattern in _WEIGHTS for path in folder.glob(pattern)]
        # With the weights of a whole model beside it, an adapter is a part of that model.
        if not (folder / needed).is_file() or all(name.startswith("adapter_") for name in weights):
            raise _adapter_alone(str(folder), None)
    if not (folder / needed).is_file() and next(folder.glob("*.gguf"), None) is not None:
        raise ConfigError(
            f"{what} folder '{folder}' has no {needed}, and weights in GGUF; serve it with llama.cpp or vLLM, and "
            "score it with --backend openai --base-url URL"
        )
    if not (folder / needed).is_file():
        raise ConfigError(f"{what} folder '{folder}' has no {needed}; save the {what} there with save_pretrained")


def _adapter_alone(name: str, revision: str | None) -> ConfigError:
    """Return the error for a model that is a LoRA adapter alone, with the model that its settings name."""
    base = (settings_of(name, _ADAPTER_CONFIG, revision) or {}).get("base_model_name_or_path")
    named = printable(base, most=200) if isinstance(base, str) and base else "BASE"
    return ConfigError(
        f"'{name}' holds a LoRA adapter alone, without the model it was trained for; give --model {named} --lora {name}"
    )


def settings_of(name: str, file: str, revision: str | None) -> dict[str, Any] | None:
    """Return a JSON file of a model's folder or of the Hub; empty if it holds no object, None if there is no such file.

    Raises:
        DataError: the file cannot be read as JSON.
    """
    path = file_of(name, file, revision)
    if path is None:
        return None
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}); save the model again") from error
    return settings if isinstance(settings, dict) else {}


def file_of(name: str, file: str, revision: str | None) -> Path | None:
    """Return the path of a file of a model, downloaded from the Hub if it is not a folder; None if there is none."""
    folder = Path(name)
    if folder.is_dir():
        return folder / file if (folder / file).is_file() else None
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(huggingface_hub.hf_hub_download(name, file, revision=revision))
    except EntryNotFoundError:
        return None


def folder_revision(folder: Path) -> str:
    """Return a hash of the names and contents of all files in a folder and its sub-folders, except hidden ones.

    Downloads and version control leave hidden files behind, and a model does not need them.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    digest = hashlib.sha256()
    # Sorted, because the order of a folder differs between machines.
    for name, path in sorted(paths.items()):
        if not any(part.startswith(".") for part in name.split("/")):
            digest.update(f"{name}:{sha256_file(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def hub_commit(name: str, revision: str | None, *, needed: str, what: str) -> str:
    """Return the commit of a revision on the Hub; if offline, the downloaded commit.

    Raises:
        ConfigError: the repository, revision or file does not exist or cannot be reached.
    """
    obstacle = hub_obstacle(name, [needed], revision=revision)
    if obstacle is not None:
        raise ConfigError(f"{what} '{name}' cannot be found: {obstacle}")
    import huggingface_hub
    from huggingface_hub.errors import RemoteEntryNotFoundError

    try:
        path = Path(huggingface_hub.hf_hub_download(name, needed, revision=revision))
    except RemoteEntryNotFoundError as error:
        if needed == CONFIG and file_of(name, _ADAPTER_CONFIG, revision) is not None:
            raise _adapter_alone(name, revision) from error
        raise ConfigError(f"{what} '{name}' has no {needed}; give another id, or a local folder") from error
    # Errors of the client and of the connection have no common base class; each is reported with the name.
    except Exception as error:
        reason = one_line(error)
        raise ConfigError(
            f"{what} '{name}' cannot be found: {reason}; check the id and the revision, or give a local folder"
        ) from error
    # The path of a download is snapshots/<commit>/<file>.
    return path.parent.name


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
    # Not needed to ask a model without adapters.
    from evaluators.adapter_set import is_adapter_set, open_adapters

    if is_adapter_set(name):
        return ChosenAdapters(None, open_adapters(name))
    what = f"LoRA adapter '{name}'"
    if Path(name).is_dir():
        files = find_files(name, None, needed=_ADAPTER_CONFIG, what="LoRA adapter")
        folder = Path(name)
    else:
        repository, _, revision = name.partition("@")
        files = find_files(repository, revision or None, needed=_ADAPTER_CONFIG, what="LoRA adapter")
        import huggingface_hub

        try:
            folder = Path(huggingface_hub.snapshot_download(files.location, revision=files.commit))
        # A download can raise many kinds of errors.
        except Exception as error:
            raise ConfigError(f"{what} cannot be fetched: {one_line(error)}; give a folder") from error
    weights = ("adapter_model.safetensors", "adapter_model.bin")
    if not any((folder / file).is_file() for file in weights):
        raise ConfigError(f"{what} has no weights (one of {', '.join(weights)}); save it with save_pretrained")
    config = settings_of(str(folder), _ADAPTER_CONFIG, None) or {}
    try:
        rank = max([int(config["r"]), *map(int, (config.get("rank_pattern") or {}).values())])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ConfigError(f"{what}: {_ADAPTER_CONFIG} names no rank 'r'; is it a LoRA?") from error
    return ChosenAdapters(Adapter(files, str(folder), rank), None)
