"""Finds facts about models in ``models/*.toml``, one file for each model, so that there is no registry to edit.

Such folders of TOML files that hold one document each are read here; a folder of plug-ins may hold them too, in
``leaderboard/models``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import leaderboard
from biasboard.ground.errors import DataError
from biasboard.ground.files import read_toml
from schemas.documents.base import Document
from schemas.documents.model_facts import ModelFacts
from schemas.files import contract

D = TypeVar("D", bound=Document)


def facts_of(model_id: str) -> ModelFacts | None:
    """Return the facts about a model; None if no file is about it.

    Raises:
        DataError: a file is invalid, or two files are about one model.
    """
    return _by_id().get(model_id)


def display_name(model_id: str) -> str:
    """Return the name of a model for pages: the short name in its facts, else its id without the maker's prefix."""
    facts = facts_of(model_id)
    return facts.short_name if facts else model_id.rpartition("/")[2]


def file_name(model_id: str) -> str:
    """Return the name of the file with the facts about a model.

    >>> file_name("acme/small-1b")
    'acme__small-1b.toml'
    """
    return f"{model_id.replace('/', '__')}.toml"


@cache
def _by_id() -> Mapping[str, ModelFacts]:
    found: dict[str, tuple[Path, ModelFacts]] = {}
    for path, facts in read_documents("models", ModelFacts):
        if path.name != file_name(facts.id):
            raise DataError(f"{path}: is about {facts.id}; rename it to {file_name(facts.id)}")
        for model_id in (facts.id, *facts.other_ids):
            other, _ = found.setdefault(model_id, (path, facts))
            if other != path:
                raise DataError(f"{path}: {model_id} is in {other} too; keep it in one of them")
    return {model_id: facts for model_id, (_, facts) in found.items()}


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
