"""Profiles: the names of the checks that one use of the catalogue makes, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

Profile: TypeAlias = tuple[str, ...]

EMBEDDED: Profile = (
    *("one_sentence", "spelling", "length", "two_occupations", "articles", "one_pronoun", "pronoun_last"),
    *("other_pronoun", "gendered_noun", "listed_person", "name"),
)
"""Sentences that are filled from the frames of this project."""

GENERATED: Profile = (
    *("one_sentence", "spacing", "doubled_word", "length", "unknown_occupation", "two_occupations", "same_list"),
    *("gap_too_small", "wrong_referent", "articles", "one_pronoun", "wrong_pronoun", "wrong_gender", "pronoun_last"),
    *("other_pronoun", "gendered_noun", "listed_person", "name", "wrong_article", "pronoun_case_error"),
    "pronoun_case_review",
)
"""Sentences that a language model wrote. Apostrophes and hyphens are allowed; findings for review come last."""

REFUSED: Profile = (
    *(
        "unknown_type",
        "unknown_pronoun",
        "unknown_occupation",
        "missing_occupation",
        "repeated_occupation",
        "same_list",
    ),
    *("wrong_pronoun", "one_pronoun", "wrong_label"),
)
"""Contradictions for which a published file is not built from."""

PUBLISHED_FLAGS: Profile = (
    *("third_occupation", "first_person", "multi_sentence", "duplicate_text", "cross_type_text", "shared_template"),
    *("cross_type_template", "occupation_possessive", "coordinated_without_article", "other_person"),
    *("dative_or_possessive", "pronoun_case_error", "pronoun_case_review"),
)
"""Peculiarities of the published SynthBias, in the order of its flags."""

WINOBIAS_FLAGS: Profile = (
    *("not_minimal_pair", "other_pronoun_marked", "several_pronouns", "unmarked_pronoun", "mixed_gender_pronouns"),
    *("plural_pronoun", "third_occupation", "repeated_occupation", "gendered_noun", "gap_too_small"),
    *("duplicate_text", "markup_repaired"),
)
"""Peculiarities of WinoBias, in the order of its flags."""

LINT: Profile = (
    *("unknown_type", "unknown_pronoun", "unknown_occupation", "missing_occupation", "repeated_occupation"),
    *("third_occupation", "same_list", "gap_too_small", "wrong_pronoun", "wrong_label", "one_pronoun", "pronoun_last"),
    *("mixed_gender_pronouns", "first_person", "plural_pronoun", "several_pronouns", "unmarked_pronoun"),
    *("markup_repaired", "multi_sentence", "spacing", "doubled_word", "wrong_article", "length", "non_ascii"),
    *("gendered_noun", "other_person", "occupation_possessive", "coordinated_without_article"),
    *("dative_or_possessive", "pronoun_case_error", "pronoun_case_review", "not_minimal_pair"),
    *("other_pronoun_marked", "unpaired", "duplicate_text", "cross_type_text", "shared_template"),
    "cross_type_template",
)
"""Anybody's sentences. Rules about this project's own style, such as plain letters, are left out."""

OLDER_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "synthbias": {
            "listed_person": "other_person",
            "repeated_text": "duplicate_text",
            "repeated_wording": "duplicate_text",
            "repeated_apart_from_pronoun": "duplicate_text",
        },
        "winobias": {"gap_too_small": "within_10_points"},
    }
)
"""Names that a dataset has always used for a check, by dataset; its files keep them."""
