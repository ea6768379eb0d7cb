"""Counts records and finds repeated items, while the parts of a file are read one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.documents.result import Counts, SplitCounts

if TYPE_CHECKING:
    from schemas.files.record_columns import RecordColumns

_TRUNCATED = "truncated"


def repeated_items(path: Path, identifiers: Sequence[str | None], first_row: int = 1) -> Iterator[str]:
    """Yield a line for every item that has more than one row.

    Args:
        path: Path of the file, for the message.
        identifiers: ``item_id`` of each row, in order.
        first_row: Number of the first row.
    """
    if len(set(identifiers)) == len(identifiers):
        return
    first_rows: dict[str | None, int] = {}
    for number, identifier in enumerate(identifiers, start=first_row):
        first = first_rows.setdefault(identifier, number)
        if first != number:
            yield f"{path}: row {number}: item_id: '{identifier}' stands in row {first} already; one row per item"


class RepeatedItems:
    """A search for items with more than one row, and for configs that stand in several places, part by part."""

    def __init__(self, path: Path) -> None:
        """Begin before the first part of a file."""
        self._path = path
        self._first_rows: dict[str | None, int] = {}

    def add(self, records: RecordColumns) -> Iterator[str]:
        """Yield a line for each repetition in the next part."""
        names = records.columns["config"].coded.texts
        for name in names:
            first = self._first_rows.setdefault(name, records.first_row)
            if first != records.first_row:
                yield (
                    f"{self._path}: row {records.first_row}: config '{name}' began in row {first} and was followed by "
                    "others; keep the records of a config together"
                )
        yield from repeated_items(self._path, records.columns["item_id"].texts, records.first_row)


class Tally:
    """The counts of records by status, of all of them and of each split of each part."""

    def __init__(self) -> None:
        """Begin with no records."""
        self._n: dict[tuple[str, str], Counter[str]] = {}

    def add(self, records: RecordColumns) -> None:
        """Count more records."""
        # Loading it takes as long as many a command needs in all.
        import numpy as np

        columns = records.columns
        configs, splits, statuses = (columns[name].coded for name in ("config", "split", "status"))
        shape = (len(configs.texts) + 1, len(splits.texts) + 1, len(statuses.texts) + 1, 2)
        flags = columns["truncated"].flags.astype(np.int64)
        # One number for each combination, so that one call counts all rows.
        # A row without a text has the code -1, which is the last place.
        cells = np.ravel_multi_index((configs.codes, splits.codes, statuses.codes, flags), shape, mode="wrap")
        distinct, firsts, counts = np.unique(cells, return_index=True, return_counts=True)
        order = np.argsort(firsts)
        for (config, split, status, flag), n in zip(
            np.transpose(np.unravel_index(distinct[order], shape)).tolist(), counts[order].tolist(), strict=True
        ):
            key = ((*configs.texts, "None")[config], (*splits.texts, "None")[split])
            counter = self._n.setdefault(key, Counter())
            counter[(*statuses.texts, "None")[status]] += n
            counter[_TRUNCATED] += n * flag

    @property
    def counts(self) -> Counts:
        """The counts of all records."""
        return _as_counts(sum(self._n.values(), Counter()))

    @property
    def coverage(self) -> tuple[SplitCounts, ...]:
        """The counts of each split of each part, in the order in which they came."""
        return tuple(
            SplitCounts(part=part, split=split, counts=_as_counts(counter))
            for (part, split), counter in self._n.items()
        )


def _as_counts(counter: Counter[str]) -> Counts:
    by_status = {name: counter[name] for name in ("scored", "refused", "unparsed", "failed")}
    return Counts(items=sum(by_status.values()), truncated=counter[_TRUNCATED], **by_status)


def count(records: RecordColumns) -> Counts:
    """Count the records by status."""
    tally = Tally()
    tally.add(records)
    return tally.counts
