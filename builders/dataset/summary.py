"""The closing lines that a builder prints when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from schemas.documents.dataset import Manifest, RuleCount


def closing_lines(manifest: Manifest, folder: Path, *, n_items: int) -> Iterator[str]:
    """Yield the number of rows, the rejects, the flags, the reason not to publish if there is one, and the folder."""
    yield f"  total: {n_items} rows"
    yield from _counts("rejects", manifest.rejects)
    yield from _counts("flags", manifest.flags)
    if manifest.publish_refusal is not None:
        yield f"not for publishing: {manifest.publish_refusal}"
    yield f"written to {folder}"


def _counts(title: str, counts: tuple[RuleCount, ...]) -> Iterator[str]:
    present = [count for count in counts if count.n]
    yield f"{title}: {'none' if not present else sum(count.n for count in present)}"
    for count in present:
        yield f"  {count.rule}: {count.n}"
