"""Answer keys, by which the results on a dataset are checked without its texts (``leaderboard/keys``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from annotated_types import MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Document, Name, Positive, Sha256
from schemas.documents.result import Signature

SCHEMA_VERSION: Final = "1.0"

KeyHash: TypeAlias = Literal["sha256", "hmac-sha256"]
"""Hash of a key: plain, or under a secret, without which no guess about a right answer can be confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart(Document):
    """Hashes of what the records of one config must say, whatever model answers."""

    config: Name
    n_items: Positive
    facts_sha256: Sha256
    """SHA-256 of the facts about all items in order: ids, splits, clusters, pairs, targets, references and groups."""
    requests_sha256: Sha256 | None
    """SHA-256 of the requests about all items in order; None if the answers were given elsewhere, to requests that
    nobody can rebuild."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExtent(Document):
    """Hashes of a result on the items that are asked by default, where these are not all."""

    limit: Positive
    """Largest number of items of each config, apart from the splits that only support a measurement."""
    n_items: Positive
    items_sha256: Sha256
    """SHA-256 of these items, as the signature of such a result has it."""
    parts: Annotated[tuple[KeyPart, ...], MinLen(1)]
    """The config, or the parts of the suite in order, with these items alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey(Document):
    """Everything that a result must have in common with the dataset and the prompt that it names.

    A key holds hashes and no text. It can therefore be published for a dataset whose licence forbids publishing it.
    Where the right answers are secret, ``hash`` is ``hmac-sha256``, and each hash of items or of what is asked about
    them is the HMAC-SHA-256 of the hash described: in the signature ``items_sha256`` and ``examples_sha256``, outside
    it all but ``items_file_sha256``.
    """

    schema_version: Literal["1.0"]
    dataset_sha256: Sha256
    """SHA-256 of the contents of the whole dataset, as its manifest has it."""
    signature: Signature
    """Signature of a result on all items of the config or suite; its normalisation is the default one."""
    parts: Annotated[tuple[KeyPart, ...], MinLen(1)]
    """The config, or the parts of the suite in order."""
    items_path: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.npy$")]
    """Name of the file beside the key with the SHA-256 of each item: its facts and its requests."""
    items_file_sha256: Sha256
    hash: KeyHash = "sha256"
    secret_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None
    """Name of the secret, which follows from it and tells nothing about it; None if there is none."""
    limited: KeyExtent | None = None
    """The items that are asked by default, whose results are ranked too; None if all are asked by default."""

    @override
    def problems(self) -> Iterator[str]:
        yield from (f"signature.{problem}" for problem in self.signature.problems())
        if (self.hash == "hmac-sha256") != (self.secret_id is not None):
            yield f"secret_id: is {self.secret_id} beside hash '{self.hash}'; make the key again"
