"""Hashes of records: to compare results without their rows, and to replace texts that are kept elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from biasboard.ground import strict_json
from biasboard.ground.columns import Column
from biasboard.ground.strict_json import JsonValue
from schemas.documents.record import Record, choice_sha256, exchange_sha256
from schemas.documents.run_files import text_sha256
from schemas.files.record_columns import RecordColumns

TEXT_ELSEWHERE = "the text is kept elsewhere"
"""Reason of a record without a reading, instead of one that quotes the text."""
_MARK = "sha256:"
_N_DIGITS = 16
"""Number of digits of a hash that replaces a text. It recognises equal texts, which 64 bits do: of a billion texts, two
have the same hash with a probability of 3 %. What binds to the texts is the SHA-256 of the complete file of records."""
_HASHED = re.compile(rf"{_MARK}[0-9a-f]{{{_N_DIGITS}}}\Z")


def exchange_hashes(records: RecordColumns) -> list[str | None]:
    """Return the hash of the request of every exchange, as :func:`exchange_sha256` does."""
    exchanges = records.exchanges
    hashes, prompts = list(exchanges["request_sha256"].texts), exchanges["prompt"].texts
    follows = exchanges["kind"].coded.is_one_of("choice") & exchanges["prompt"].known
    options = exchanges["options"].lists
    texts, ends = options.values.texts, list(pairwise(options.offsets.tolist()))
    for index in np.flatnonzero(follows & ~exchanges["request_sha256"].known).tolist():
        start, end = ends[index]
        hashes[index] = choice_sha256(prompts[index] or "", tuple(texts[start:end]))
    return hashes


def joined_sha256(of_parts: Sequence[str]) -> str:
    """Return the hash of several parts, given theirs; that of a single part is returned unchanged."""
    return of_parts[0] if len(of_parts) == 1 else strict_json.sha256(list(of_parts))


def items_sha256(records: RecordColumns, *, with_options: bool = False) -> str:
    """Return a hash of the items of a part, that is of all fields of its records that do not depend on a model.

    Args:
        records: The records.
        with_options: True if the options belong to the items, because the prompt offers none of its own.
    """
    digest = hashlib.sha256()
    for name in ("item_id", "split", "cluster", "pair_id", "target", "reference"):
        _add(digest, records.columns[name])
    owners, keys, values = records.columns["groups"].entries
    texts = values.texts
    for code, key in enumerate(keys.coded.texts):
        entries = np.flatnonzero(keys.coded.codes == code).tolist()
        digest.update(strict_json.canonical([key, owners[entries].tolist(), [texts[entry] for entry in entries]]))
    if with_options:
        digest.update(records.first_exchanges.tobytes())
        _add_options(digest, records)
    return digest.hexdigest()


def requests_sha256(records: RecordColumns) -> str:
    """Return a hash of the requests of a part and of the sizes of their options in bytes."""
    digest = _digest_of_requests(records)
    lengths = records.exchanges["option_byte_counts"].lists
    digest.update(lengths.offsets.tobytes() + lengths.values.integers.tobytes())
    return digest.hexdigest()


def asked_sha256(records: RecordColumns) -> str:
    """Return a hash of the requests of a part.

    It does not depend on whether the prompts of choices are shown. Those of generations count, since a reading of a
    text may depend on its prompt.
    """
    return _digest_of_requests(records).hexdigest()


def answers_sha256(records: RecordColumns) -> str:
    """Return a hash of the answers of a part: statuses, generated texts and log-probabilities of options."""
    digest = hashlib.sha256(records.owners.tobytes())
    _add(digest, records.exchanges["status"])
    # Texts enter by their hashes, so that a result without its texts has the same hash as the complete one.
    texts = records.exchanges["text"].texts
    digest.update(strict_json.canonical([text if text is None else as_hash(text) for text in texts]))
    logprobs = records.exchanges["option_logprobs"].lists
    digest.update(logprobs.offsets.tobytes() + logprobs.values.numbers.tobytes())
    return digest.hexdigest()


def item_hashes(records: Sequence[Record], *, with_requests: bool) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of each record's item and requests.

    Args:
        records: The records.
        with_requests: False to leave out the requests, for answers given elsewhere, whose requests cannot be rebuilt.

    Returns:
        One hash per row, shape (n, 32).
    """
    hashes = [hashlib.sha256(strict_json.canonical(_facts(record, with_requests))).digest() for record in records]
    return np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(len(hashes), 32)


def _facts(record: Record, with_requests: bool) -> JsonValue:
    facts: list[JsonValue] = [record.item_id, record.config, record.split, record.cluster, record.pair_id]
    facts += [record.target, record.reference, dict(record.groups)]
    if with_requests:
        facts += [
            [
                exchange.kind,
                None if exchange.kind == "choice" else exchange.prompt,
                exchange_sha256(exchange),
                exchange.sample,
                list(exchange.outcomes),
                list(exchange.options),
            ]
            for exchange in record.exchanges
        ]
    return facts


def _digest_of_requests(records: RecordColumns) -> hashlib._Hash:
    """Return a digest of the requests by their hashes, with the prompts of generations and what no hash covers."""
    digest = hashlib.sha256(records.owners.tobytes())
    kinds, prompts = records.exchanges["kind"], records.exchanges["prompt"].array
    is_choice = pa.array(kinds.coded.is_one_of("choice"))
    shown = pc.if_else(is_choice, pa.scalar(None, prompts.type), prompts)
    hashes = pa.array(exchange_hashes(records), pa.string())
    for column in (kinds, Column(shown), Column(hashes)):
        _add(digest, column)
    samples = records.exchanges["sample"]
    digest.update(samples.known.tobytes() + samples.integers.tobytes())
    _add_options(digest, records)
    return digest


def _add_options(digest: hashlib._Hash, records: RecordColumns) -> None:
    """Add options and the outcomes that they stand for."""
    for name in ("outcomes", "options"):
        lists = records.exchanges[name].lists
        digest.update(lists.offsets.tobytes())
        _add(digest, lists.values)


def _add(digest: hashlib._Hash, column: Column) -> None:
    """Add the texts of a column to a digest, with their lengths, so that the same letters split otherwise differ."""
    digest.update(column.known.tobytes() + column.text_lengths.tobytes())
    digest.update("".join(text for text in column.texts if text is not None).encode())


def hashed(text: str) -> str:
    """Return the hash that replaces a text.

    >>> hashed("")
    'sha256:e3b0c44298fc1c14'
    """
    return f"{_MARK}{text_sha256(text)[:_N_DIGITS]}"


def is_hashed(text: str) -> bool:
    """Return True if a text has the form of a hash that replaces a text."""
    return _HASHED.match(text) is not None


def as_hash(text: str) -> str:
    """Return the hash that replaces a text; such a hash itself is returned unchanged."""
    return text if is_hashed(text) else hashed(text)


def without_prompts(records: RecordColumns) -> RecordColumns:
    """Return records of choices with the hash of each request in place of its prompt; the options stay."""
    n_exchanges = len(records.owners)
    return records.replaced({}, {"prompt": [None] * n_exchanges, "request_sha256": exchange_hashes(records)})


def without_texts(records: RecordColumns, *, with_prompts: bool, with_requests: bool) -> RecordColumns:
    """Return records with hashes in place of all generated texts.

    The prompts of choices are left out, with the hash of each request in their place: they hold the texts after which
    the options were scored.

    Args:
        records: The complete records of one part.
        with_prompts: False to leave out the prompts of the texts too.
        with_requests: False to leave out the hashes of the requests too.
    """
    texts, prompts = (records.exchanges[name].texts for name in ("text", "prompt"))
    is_shown = ~records.exchanges["kind"].coded.is_one_of("choice") & with_prompts
    reasons: Sequence[str | None] = records.columns["reason"].texts
    has_text = {owner for owner, text in zip(records.owners.tolist(), texts, strict=True) if text is not None}
    new_reasons = [
        TEXT_ELSEWHERE if reason is not None and index in has_text else reason for index, reason in enumerate(reasons)
    ]
    return records.replaced(
        {"reason": new_reasons},
        {
            "text": [None if text is None else hashed(text) for text in texts],
            "prompt": [prompt if shown else None for prompt, shown in zip(prompts, is_shown.tolist(), strict=True)],
            "request_sha256": exchange_hashes(records) if with_requests else [None] * len(prompts),
        },
    )
