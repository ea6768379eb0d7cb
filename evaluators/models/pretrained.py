"""Loads parts of models with libraries that could run code out of a model's folder, and never lets them.

A file named by ``auto_map`` in ``config.json`` is Python code that comes with the weights. Unless it is told not to,
transformers asks on standard input whether to run it, so that a pipe that says ``y`` would decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, import_extra

_SETTINGS = ("config.json", "tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
"""Files of a model whose ``auto_map`` names its own code."""
SERVE_IT = (
    "serve it where you trust that code, for example with vllm serve MODEL --trust-remote-code, and score it with "
    "--backend openai --base-url URL"
)


def load_pretrained(
    loader: str, location: str, commit: str | None, *, what: str, remedy: str, own_code: str = SERVE_IT, **settings: Any
) -> Any:
    """Load a part of a model with a class of transformers.

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
    with refusals(what, location, commit, remedy=remedy, own_code=own_code):
        return getattr(transformers, loader).from_pretrained(
            location, revision=commit, trust_remote_code=False, **settings
        )


@contextmanager
def refusals(what: str, location: str, commit: str | None, *, remedy: str, own_code: str = SERVE_IT) -> Iterator[None]:
    """Turn any error of a library that loads files of a model into one line.

    Args:
        what: Noun and name, such as ``model 'acme/one'``.
        location: Id on the Hub, or path of a local folder.
        commit: Commit on the Hub; None for a folder.
        remedy: Way out if the files cannot be loaded.
        own_code: Way out if they cannot be loaded without running code of their own.

    Raises:
        ConfigError: the files cannot be loaded, or not without running code of their own.
    """
    try:
        yield
    except ConfigError:
        raise
    # Faulty files can raise any kind of error, tokenizers a bare Exception; each concerns the files.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        message = f"{what} cannot be loaded: {reason}; {remedy}"
        # All libraries name the argument with which they would run the code.
        if "trust_remote_code=True" in str(error):
            named = "; ".join(_own_code(location, commit)) or reason
            message = f"{what} needs code of its own, which is never run here ({named}); {own_code}"
        raise ConfigError(message) from error


def _own_code(location: str, commit: str | None) -> Iterator[str]:
    """Yield a line for each settings file of a model that names code: the file, and the Python files."""
    for name in _SETTINGS:
        # The reason is known already: what cannot be read here names nothing.
        with suppress(OSError, ValueError, AttributeError, TypeError, RecursionError):
            settings = json.loads(_file(location, commit, name).read_text(encoding="utf-8"))
            # A value may list a slow and a fast tokenizer.
            values = [value if isinstance(value, list) else [value] for value in settings.get("auto_map", {}).values()]
            references = [reference for value in values for reference in value if isinstance(reference, str)]
            files = {reference.rpartition(".")[0] + ".py" for reference in references}
            if files:
                yield f"auto_map in {name} names {', '.join(sorted(files))}"


def _file(location: str, commit: str | None, name: str) -> Path:
    if Path(location).is_dir():
        return Path(location) / name
    import huggingface_hub

    # None for a file that is not in the cache; reading a file named None fails as reading a missing one does.
    return Path(str(huggingface_hub.try_to_load_from_cache(location, name, revision=commit)))
