"""Finds the files of a model and their exact version, and loads parts of it safely on the cores that there are.

The libraries that load models could run code from a model's folder, and are never let. A file named by ``auto_map`` in
``config.json`` is Python code that comes with the weights. By default, transformers asks on standard input whether to
run it, so that a pipe that says ``y`` would decide.

A container or a batch system often restricts a process to part of a machine, by processor affinity or by limits of
control groups (cgroups, version 2). The numbers of the whole machine are then misleading: threads that outnumber the
cores wait for each other, which can make a model ten times slower.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from typing_extensions import override

from biasboard.ground.errors import ConfigError, DataError, import_extra
from biasboard.ground.files import check_readable, sha256_file
from biasboard.ground.hub import hub_obstacle
from biasboard.ground.plain_text import one_line, printable, visible
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
        at_endpoint = "; of a model at an endpoint, give the address with --base-url" if what == "model" else ""
        raise ConfigError(f"{what} '{name}' cannot be found: {obstacle}{at_endpoint}")
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


_PICKLE = "its weights are no plain numbers, but a pickle that would run code, which is never run here"
SERVE_IT = (
    "serve it where you trust that code, for example with vllm serve MODEL --trust-remote-code, and score it with "
    "--backend openai --base-url URL"
)


def load_pretrained(
    loader: str, location: str, commit: str | None, *, what: str, remedy: str, own_code: str = SERVE_IT, **settings: Any
) -> Any:
    """Load a part of a model, such as its tokenizer, with a class of transformers.

    Args:
        loader: Name of the class, such as ``AutoTokenizer``.
        location: Id on the Hub, or path of a local folder.
        commit: Commit on the Hub; None for a folder.
        what: Noun and name for error messages, such as ``model 'acme/one'``.
        remedy: Way out if the files cannot be loaded.
        own_code: Way out if they cannot be loaded without running code of their own.
        **settings: Further arguments of ``from_pretrained``.

    Raises:
        ConfigError: the files cannot be loaded, or not without running code of their own.
        MissingExtraError: transformers is not installed.
    """
    transformers = import_extra("transformers", "hf")
    if loader == "AutoConfig" or "Model" in loader:
        refuse_hub_attention(location, commit, what=what, own_code=own_code)
    with refusals(what, remedy=remedy, own_code=own_code):
        return getattr(transformers, loader).from_pretrained(
            location, revision=commit, trust_remote_code=False, **settings
        )


def is_loader(name: str) -> bool:
    """Return True if transformers has a class of this name.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    return hasattr(import_extra("transformers", "hf"), name)


@contextmanager
def refusals(what: str, *, remedy: str, own_code: str = SERVE_IT) -> Iterator[None]:
    """Turn any error of a library that loads a model's files into a ConfigError of one line.

    Args:
        what: Noun and name, such as ``model 'acme/one'``.
        remedy: Way out if the files cannot be loaded.
        own_code: Way out if they cannot be loaded without running code of their own.

    Raises:
        ConfigError: the files cannot be loaded, or not without running code of their own.
    """
    try:
        with _shown_plainly():
            yield
    except (ConfigError, KeyboardInterrupt, SystemExit):
        raise
    # Faulty files can raise any kind of error, tokenizers a bare Exception, and Rust none; each concerns the files.
    except BaseException as error:
        reason = one_line(error)
        if "weights_only" in reason:
            # torch says how to run the code.
            reason = f"{_PICKLE}; save them as safetensors"
        message = f"{what} cannot be loaded: {reason}; {remedy}"
        # All libraries' messages name the argument that would let them run the code.
        if "trust_remote_code=True" in str(error):
            message = f"{what} needs code of its own, which is never run here; {own_code}"
        raise ConfigError(message) from error


class _Plain(io.TextIOBase):
    """A stream that shows invisible characters as escapes: the names of weights and settings come with a model."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @override
    def write(self, text: str) -> int:
        # Progress bars begin with a carriage return, and reports have bold headings.
        bar, rest = ("\r", text[1:]) if text.startswith("\r") else ("", text)
        self._stream.write(bar + visible(rest.replace("\x1b[1m", "").replace("\x1b[0m", "")))
        return len(text)

    @override
    def flush(self) -> None:
        self._stream.flush()

    @override
    def isatty(self) -> bool:
        return self._stream.isatty()


@contextmanager
def _shown_plainly() -> Iterator[None]:
    """Show what libraries print, log and warn of without control characters."""
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(_Plain(sys.stdout)))
        stack.enter_context(redirect_stderr(_Plain(sys.stderr)))
        # A library that is imported only now keeps the new stream, which shows the same.
        for logger in (logging.root, *logging.root.manager.loggerDict.values()):
            for handler in logger.handlers if isinstance(logger, logging.Logger) else ():
                stream = handler.stream if isinstance(handler, logging.StreamHandler) else None
                if isinstance(handler, logging.StreamHandler) and stream and not isinstance(stream, _Plain):
                    # One that was closed since the library was imported cannot be flushed, as setStream does; that of
                    # transformers also keeps its flush.
                    if getattr(stream, "closed", False):
                        vars(handler).pop("flush", None)
                        handler.stream = sys.stderr
                        continue
                    stack.callback(handler.setStream, stream)
                    handler.setStream(_Plain(stream))
        yield


def refuse_hub_attention(location: str, commit: str | None, *, what: str, own_code: str = SERVE_IT) -> None:
    """Refuse a model whose configuration takes its attention from a code repository on the Hub.

    If the library ``kernels`` is installed, transformers fetches and runs compiled code from the repository that
    ``attn_implementation`` names, without asking if it is one of ``kernels-community``.

    Args:
        location: Id on the Hub, or path of a local folder.
        commit: Commit on the Hub; None for a folder.
        what: Noun and name for the error message, such as ``model 'acme/one'``.
        own_code: Way out if the model cannot be loaded without that code.

    Raises:
        ConfigError: the configuration names such a repository.
    """
    config = Path(location) / "config.json"
    if not Path(location).is_dir():
        import huggingface_hub

        # Without the file in the cache, this is Path("None"), which is no file either.
        config = Path(str(huggingface_hub.try_to_load_from_cache(location, "config.json", revision=commit)))
    # Embedding models have configurations of their parts in subfolders, and arguments in files of other names.
    for path in sorted(config.parent.rglob("*config.json")) if config.is_file() else []:
        # Unreadable files are refused later, when the library reads them.
        with suppress(OSError, ValueError, RecursionError):
            named = [text for text in _attention(json.loads(path.read_text(encoding="utf-8"))) if "/" in text]
            if named:
                raise ConfigError(
                    f"{what} needs code of the Hub for its attention, which is never run here (attn_implementation in "
                    f"{path.name} is {printable(named[0], most=100)}); take that out of a copy of it, or {own_code}"
                )


def _attention(settings: object, *, is_inside: bool = False) -> Iterator[str]:
    """Yield the texts under ``attn_implementation`` in a configuration, which may name one for each part of a model."""
    if isinstance(settings, str) and is_inside:
        yield settings
    elif isinstance(settings, list):
        for value in settings:
            yield from _attention(value, is_inside=is_inside)
    elif isinstance(settings, dict):
        for name, value in settings.items():
            # transformers also accepts the name with a leading underscore.
            yield from _attention(value, is_inside=is_inside or name.endswith("attn_implementation"))


_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Threads(NamedTuple):
    """The number of threads that compute a model on the CPU."""

    n: int
    why: str
    variable: str | None
    """Environment variable by which the user chose the number; None if none did."""
    n_cores: int

    @property
    def is_oversubscribed(self) -> bool:
        """True if there are more threads than cores to run them."""
        return self.n > self.n_cores


def usable_cores() -> tuple[int, str]:
    """Return the number of cores by affinity and by the quotas of the control groups, whichever is smaller, and why."""
    n_all = os.cpu_count() or 1
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_all
    why = "all cores of this machine" if n >= n_all else f"its affinity allows {n} of {n_all} cores"
    for folder in _groups():
        fields = (_read(folder / "cpu.max") or "").split()
        quota, period = (_number(text) for text in fields[:2]) if len(fields) >= 2 else (None, None)
        if quota and period and (allowed := max(1, math.ceil(quota / period))) < n:
            n, why = allowed, f"the quota of its control group allows {allowed} of {n} cores"
    return n, why


def chosen_threads() -> Threads:
    """Return the number of threads to compute with: the user's choice, or one per usable core."""
    n_cores, why = usable_cores()
    for variable in _THREAD_VARIABLES:
        # OpenMP allows a list, one number per level of nesting.
        text = os.environ.get(variable, "").partition(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return Threads(int(text), f"{variable} says so", variable, n_cores)
    return Threads(n_cores, why, None, n_cores)


def free_memory() -> int | None:
    """Return the memory in bytes that this process can still allocate; None if the system does not say."""
    lines = (_read(_PROC / "meminfo") or "").splitlines()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not free and "SC_AVPHYS_PAGES" in os.sysconf_names:
        free = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for folder in _groups():
        limit, used = _number(_read(folder / "memory.max")), _number(_read(folder / "memory.current"))
        if limit is not None and used is not None:
            # Inactive file pages are reclaimed when memory is needed.
            lines = (_read(folder / "memory.stat") or "").splitlines()
            counts = dict(line.split()[:2] for line in lines if " " in line)
            free.append(max(0, limit - used + (_number(counts.get("inactive_file")) or 0)))
    return min(free, default=None)


def _groups() -> Iterator[Path]:
    """Yield the folders of this process's control groups and of the groups that contain them."""
    for line in (_read(_PROC / "self" / "cgroup") or "").splitlines():
        if line.startswith("0::"):
            inner = Path(line.removeprefix("0::").lstrip("/"))
            # In a container, the path may be the host's, and only the mounted folder itself exists.
            yield from (_CGROUPS / part for part in (inner, *inner.parents) if ".." not in part.parts)


def _number(text: str | None) -> int | None:
    """Return a non-negative number; None for "max", -1 or no text."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
