"""Lines that several commands of builders print."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
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


def run_line(folder: Path) -> str:
    """Return the command that measures the baselines on a dataset."""
    return f"next: biasboard run --dataset {shlex.quote(str(folder))} --backend baseline --model all --out out/runs"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _counts(title: str, counts: tuple[RuleCount, ...]) -> Iterator[str]:
    present = [count for count in counts if count.n]
    yield f"{title}: {'none' if not present else sum(count.n for count in present)}"
    for count in present:
        yield f"  {count.rule}: {count.n}"
