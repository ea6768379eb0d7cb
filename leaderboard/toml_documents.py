"""Reads folders of TOML files that hold one document each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import leaderboard
from biasboard.ground.toml_files import read_toml
from schemas.documents.base import Document
from schemas.files import contract

D = TypeVar("D", bound=Document)


def read_documents(folder: str, document_type: type[D]) -> Iterator[tuple[Path, D]]:
    """Yield the path and the document of each file, sorted by path within a folder.

    Args:
        folder: Name of a folder inside this package, which folders of plug-ins may hold too.
        document_type: Type of all documents there.

    Raises:
        DataError: a file is not TOML, or breaks a rule of the document.
    """
    for package in leaderboard.__path__:
        for path in sorted(Path(package, folder).glob("*.toml")):
            content = read_toml(path, option=folder, what=document_type.__name__)
            # Dates of TOML become the text that documents hold.
            yield path, contract.load(json.loads(json.dumps(content, default=str)), document_type, where=str(path))
