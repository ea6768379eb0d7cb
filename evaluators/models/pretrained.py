"""Loads parts of models with libraries that could run code from a model's folder, and never lets them.

A file named by ``auto_map`` in ``config.json`` is Python code that comes with the weights. By default, transformers
asks on standard input whether to run it, so that a pipe that says ``y`` would decide.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from typing_extensions import override

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.plain_text import one_line, printable, visible

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
