"""Generated texts as hashes, in records whose texts are kept elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.documents.score import text_sha256
from schemas.files.record_columns import RecordColumns

REASON = "the text is kept elsewhere"
"""Reason of a record without a reading, in place of words that quote the text."""
_MARK = "sha256:"
_HASHED = re.compile(rf"{_MARK}[0-9a-f]{{64}}\Z")


def hashed(text: str) -> str:
    """Return the hash that stands for a text.

    >>> hashed("")[:20]
    'sha256:e3b0c44298fc1'
    """
    return f"{_MARK}{text_sha256(text)}"


def is_hashed(text: str) -> bool:
    """Return True if a text has the form of a hash that stands for one."""
    return _HASHED.match(text) is not None


def as_hash(text: str) -> str:
    """Return the hash that stands for a text; a hash that stands for one already is returned as it is."""
    return text if is_hashed(text) else hashed(text)


def without_texts(records: RecordColumns, *, with_prompts: bool) -> RecordColumns:
    """Return records with hashes in place of all generated texts.

    Args:
        records: The complete records of one part.
        with_prompts: False to leave out the prompts too.
    """
    texts, prompts = (records.exchanges[name].texts for name in ("text", "prompt"))
    reasons: Sequence[str | None] = records.columns["reason"].texts
    has_text = {owner for owner, text in zip(records.owners.tolist(), texts, strict=True) if text is not None}
    shown = [REASON if reason is not None and index in has_text else reason for index, reason in enumerate(reasons)]
    return records.replaced(
        {"reason": shown},
        {
            "text": [None if text is None else hashed(text) for text in texts],
            "prompt": prompts if with_prompts else [None] * len(prompts),
        },
    )
