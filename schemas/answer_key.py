"""Answer keys, by which the results on a dataset are checked without its texts (``leaderboard/keys``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.result import Signature

SCHEMA_VERSION = "1.0"

KeyHash: TypeAlias = Literal["sha256", "hmac-sha256"]
"""Hash of a key: plain, or under a secret, without which no guess about a right answer can be confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """Hashes of what the records of one config must say, whatever model answers."""

    config: str
    n_items: int
    facts_sha256: str
    """SHA-256 of the facts about all items in order: ids, splits, clusters, pairs, targets, references and groups."""
    requests_sha256: str | None
    """SHA-256 of the requests about all items in order; None if the answers were given elsewhere, to requests that
    nobody can rebuild."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExtent:
    """Hashes of a result on the items that are asked by default, where these are not all."""

    limit: int
    """Largest number of items of each config, apart from the splits that only support a measurement."""
    n_items: int
    items_sha256: str
    """SHA-256 of these items, as the signature of such a result has it."""
    parts: tuple[KeyPart, ...]
    """The config, or the parts of the suite in order, with these items alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """Everything that a result must have in common with the dataset and the prompt that it names.

    A key holds hashes and no text. It can therefore be published for a dataset whose licence forbids publishing it.
    Where the right answers are secret, ``hash`` is ``hmac-sha256``, and each hash of items or of what is asked about
    them is the HMAC-SHA-256 of the hash described: in the signature ``items_sha256`` and ``examples_sha256``, outside
    it all but ``items_file_sha256``.
    """

    schema_version: str
    dataset_sha256: str
    """SHA-256 of the contents of the whole dataset, as its manifest has it."""
    signature: Signature
    """Signature of a result on all items of the config or suite; its normalisation is the default one."""
    parts: tuple[KeyPart, ...]
    """The config, or the parts of the suite in order."""
    items_path: str
    """Name of the file beside the key with the SHA-256 of each item: its facts and its requests."""
    items_file_sha256: str
    hash: KeyHash = "sha256"
    secret_id: str | None = None
    """Name of the secret, which follows from it and tells nothing about it; None if there is none."""
    limited: KeyExtent | None = None
    """The items that are asked by default, whose results are ranked too; None if all are asked by default."""
