"""Reads TOML files: those of users, and those that come with the code."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable

_MOST_BYTES = 2**20


def read_toml(path: Path, *, option: str, what: str) -> dict[str, Any]:
    """Read a small TOML file.

    ``option`` names the file and ``what`` the expected content, such as "prices", in error messages.

    Raises:
        ConfigError: there is no such file.
        DataError: the path is no regular file, the file is too large, or it is not TOML.
    """
    try:
        if path.exists():
            check_readable(path, most=_MOST_BYTES)
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}; name a TOML file of {what}") from error
    except RecursionError as error:
        raise DataError(f"{path}: its values are nested too deeply; write a TOML file of {what}") from error
    except ValueError as error:  # Includes numbers with thousands of digits, and bytes that are not UTF-8.
        raise DataError(f"{path}: not a TOML file ({error}); correct it, or name a TOML file of {what}") from error


def packaged_toml(package: str, *path: str) -> dict[str, Any]:
    """Return the content of a TOML file of a package."""
    return tomllib.loads(resources.files(package).joinpath(*path).read_text(encoding="utf-8"))


def packaged_words(package: str, *path: str) -> dict[str, tuple[str, ...]]:
    """Return the words of each list in a TOML file of a package; each list is one text of words separated by spaces."""
    return {name: tuple(words.split()) for name, words in packaged_toml(package, *path).items()}
