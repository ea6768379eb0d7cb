"""Checks of sentences that repeat others in a file; ``Duplicates`` finds candidates that do, as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builders.synthbias.checks.check import FileCheck
from builders.synthbias.checks.collection import Collection


@FileCheck
def _duplicate_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        times = Counter(collection.sentences[index].type for index in same)
        for index in same:
            if (n_others := times[collection.sentences[index].type] - 1) > 0:
                yield index, f"its text stands in {n_others} other rows of the same type"


@FileCheck
def _cross_type_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its text stands in both types") for index in same)


@FileCheck
def _shared_template(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_template:
        # Two rows with one template are only the two sides of a pair.
        if len(same) > 2:
            yield from ((index, f"{len(same) - 2} rows of other pairs have its template") for index in same)


@FileCheck
def _cross_type_template(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_template:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its template stands in both types") for index in same)
