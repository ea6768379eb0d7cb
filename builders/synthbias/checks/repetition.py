"""Entries of the catalogue for sentences that repeat others."""

from __future__ import annotations

from builders.synthbias.checks.check import Check

CHECKS = (
    Check(
        name="repeated_text",
        description="has the text of an earlier sentence of either type, apart from capitals and punctuation",
        requirement="has no text of an earlier sentence of either type, apart from capitals and punctuation",
        severity="error",
        certainty="exact",
    ),
    Check(
        name="repeated_apart_from_pronoun",
        description="has the text of an earlier sentence of either type, apart from the pronoun",
        requirement="no other item of either type has the same text apart from the pronoun",
        severity="error",
        certainty="exact",
    ),
    Check(
        name="repeated_template",
        description="differs from too many earlier sentences in occupations and pronoun alone",
        requirement="differs from few other sentences in occupations and pronoun alone",
        severity="warning",
        certainty="exact",
    ),
)
