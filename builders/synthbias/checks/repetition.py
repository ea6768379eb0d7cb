"""Checks of sentences that repeat others: of whole files, and of candidates as they come (see ``Duplicates``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builders.synthbias.checks.check import Check, FileCheck
from builders.synthbias.checks.collection import Collection


def _duplicate_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        times = Counter(collection.sentences[index].type for index in same)
        for index in same:
            if (n_others := times[collection.sentences[index].type] - 1) > 0:
                yield index, f"its text stands in {n_others} other rows of the same type"


def _cross_type_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its text stands in both types") for index in same)


def _shared_template(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_template:
        # Two rows with one template are only the two sides of a pair.
        if len(same) > 2:
            yield from ((index, f"{len(same) - 2} rows of other pairs have its template") for index in same)


def _cross_type_template(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_template:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its template stands in both types") for index in same)


CHECKS = (
    FileCheck(
        name="duplicate_text",
        description="the same text stands in another row of the same type",
        requirement="no other row of the same type has the same text",
        severity="error",
        certainty="exact",
        find=_duplicate_text,
    ),
    FileCheck(
        name="cross_type_text",
        description="the same text stands in both types, once as ambiguous, once as settled",
        requirement="no row of the other type has the same text",
        severity="error",
        certainty="exact",
        find=_cross_type_text,
    ),
    FileCheck(
        name="shared_template",
        description="another minimal pair differs in the occupations alone",
        requirement="no other minimal pair differs in the occupations alone",
        severity="note",
        certainty="exact",
        find=_shared_template,
    ),
    FileCheck(
        name="cross_type_template",
        description="both types have sentences that differ in occupations and pronoun alone",
        requirement="no sentence of the other type differs in occupations and pronoun alone",
        severity="review",
        certainty="exact",
        find=_cross_type_template,
    ),
    Check(
        name="repeated_text",
        description="has the text of an earlier candidate of either type",
        requirement="no earlier candidate of either type has the same text",
        severity="error",
        certainty="exact",
    ),
    Check(
        name="repeated_wording",
        description="has the text of an earlier candidate of either type, apart from capitals and punctuation",
        requirement="no earlier candidate of either type has the same words",
        severity="error",
        certainty="exact",
    ),
    Check(
        name="repeated_apart_from_pronoun",
        description="has the words of an earlier candidate of either type, apart from the pronoun",
        requirement="no other item of either type has the same text apart from the pronoun",
        severity="error",
        certainty="exact",
    ),
    Check(
        name="repeated_template",
        description="differs from too many earlier candidates in occupations and pronoun alone",
        requirement="differs from few other candidates in occupations and pronoun alone",
        severity="warning",
        certainty="exact",
    ),
    Check(
        name="near_duplicate",
        description="shares most of its words, in their order, with an earlier candidate",
        requirement="shares few of its words, in their order, with each earlier candidate",
        severity="warning",
        certainty="exact",
    ),
)
