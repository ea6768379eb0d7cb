"""Reads the TOML files that lie beside the code."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def packaged_toml(package: str, *path: str) -> dict[str, Any]:
    """Return the content of a TOML file of a package."""
    return tomllib.loads(resources.files(package).joinpath(*path).read_text(encoding="utf-8"))


def packaged_words(package: str, *path: str) -> dict[str, tuple[str, ...]]:
    """Return the words of each list in a TOML file of a package; a list is one text, with spaces between its words."""
    return {name: tuple(words.split()) for name, words in packaged_toml(package, *path).items()}
