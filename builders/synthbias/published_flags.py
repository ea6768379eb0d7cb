"""Flags peculiarities of the published SynthBias by rule; the sentences are kept as they are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from builders.output import Rule
from builders.synthbias.mentions import template_text
from builders.synthbias.published_csv import PublishedRow
from builders.synthbias.word_lists import SOURCE_OTHER_PERSONS, first_word_of, word_list

FLAG_RULES: tuple[Rule, ...] = (
    Rule(name="third_occupation", description="names a third of the 40 occupations"),
    Rule(name="first_person", description="has the word I"),
    Rule(name="multi_sentence", description="has more than one sentence"),
    Rule(name="duplicate_text", description="the same text stands in another row of the same type"),
    Rule(name="cross_type_text", description="the same text stands in both types, once as ambiguous, once as settled"),
    Rule(name="shared_template", description="another minimal pair differs in the occupations alone"),
    Rule(
        name="cross_type_template", description="both types have sentences that differ in occupations and pronoun alone"
    ),
    Rule(name="occupation_possessive", description="has the possessive of one of its occupations"),
    Rule(name="coordinated_without_article", description="has 'and' before an occupation without 'the'"),
    Rule(
        name="other_person",
        description="names another single person before the pronoun "
        f"({', '.join(sorted(SOURCE_OTHER_PERSONS))}); not always a possible referent",
    ),
    Rule(
        name="dative_or_possessive",
        description="has 'his' after a verb of giving, where its counterpart's 'her' can also be the receiver",
    ),
    Rule(
        name="pronoun_case_error",
        description="'him' stands for 'his' or the other way round; found by hand, a lower bound",
    ),
)

CASE_ERROR_LINES = frozenset(
    (
        *(
            14264,
            14880,
            15047,
            15057,
            15279,
            15677,
            16085,
            16974,
            17108,
            17612,
            18092,
            18146,
            18336,
            18523,
            19154,
            19226,
        ),
        *(19366, 20200, 20635, 21195, 21265, 21379, 21421, 24772, 26086, 26615, 27412, 27480, 28313, 28462, 31118),
        *(
            11113,
            14581,
            16398,
            18196,
            18921,
            20261,
            20600,
            21153,
            21325,
            22359,
            22673,
            23048,
            23982,
            25808,
            29364,
            29452,
        ),
        30430,
    )
)
"""Lines of the published file whose pronoun has the wrong case, found by hand: him for his, then his for him."""

_GIVING = word_list("asked brought gave given giving offer offered offering sent served showed wished")


def flags_of(rows: Sequence[PublishedRow], *, case_error_lines: frozenset[int]) -> list[tuple[str, ...]]:
    """Return the flags of each row, in the order of ``FLAG_RULES``.

    Args:
        rows: All rows of the file, since some rules compare rows.
        case_error_lines: Lines whose pronoun is known to have the wrong case; empty for any file but the published one.

    Returns:
        Names of the flags of each row, shape (n_rows,).
    """
    by_rule = {
        **_text_flags(rows),
        **_template_flags(rows),
        "third_occupation": {row.line for row in rows if len({mention.text for mention in row.mentions}) > 2},
        "first_person": {row.line for row in rows if re.search(r"\bI\b", row.sentence)},
        "multi_sentence": {
            row.line for row in rows if re.search(r"[.!?][\"\u201d\u2019']? [\"\u201c]?[A-Z]", row.sentence)
        },
        "occupation_possessive": {row.line for row in rows if _has_possessive(row)},
        "coordinated_without_article": {row.line for row in rows if _lacks_article(row)},
        "other_person": {row.line for row in rows if _names_other_person(row)},
        "dative_or_possessive": {row.line for row in rows if _follows_giving(row)},
        "pronoun_case_error": set(case_error_lines),
    }
    return [tuple(rule.name for rule in FLAG_RULES if row.line in by_rule[rule.name]) for row in rows]


def _text_flags(rows: Iterable[PublishedRow]) -> dict[str, set[int]]:
    places = defaultdict(list)
    for row in rows:
        places[row.sentence].append(row)
    return {
        "duplicate_text": {
            row.line for same in places.values() for row in same if Counter(other.type for other in same)[row.type] > 1
        },
        "cross_type_text": {
            row.line for same in places.values() if len({other.type for other in same}) > 1 for row in same
        },
    }


def template_of(row: PublishedRow) -> str:
    """Return the template of a sentence: occupations and pronoun masked, without punctuation and capitals."""
    targets = [mention for mention in row.mentions if mention.text in (row.occ_1, row.occ_2)]
    return template_text(row.sentence, [*targets, row.pronoun])


def _template_flags(rows: Iterable[PublishedRow]) -> dict[str, set[int]]:
    places = defaultdict(list)
    for row in rows:
        places[template_of(row)].append(row)
    return {
        # Two rows with one template are only the two sides of a pair.
        "shared_template": {row.line for same in places.values() if len(same) > 2 for row in same},
        "cross_type_template": {
            row.line for same in places.values() if len({other.type for other in same}) > 1 for row in same
        },
    }


def _targets(row: PublishedRow) -> Iterable[tuple[str, str]]:
    """Yield the text before and the text after each mention of the two occupations."""
    for mention in row.mentions:
        if mention.text in (row.occ_1, row.occ_2):
            yield row.sentence[: mention.start], row.sentence[mention.end :]


def _has_possessive(row: PublishedRow) -> bool:
    return any(re.match(r"['\u2019]s\b", after) for _, after in _targets(row))


def _lacks_article(row: PublishedRow) -> bool:
    return any(before.endswith(" and ") for before, _ in _targets(row))


def _names_other_person(row: PublishedRow) -> bool:
    text = row.sentence[: row.pronoun.start]
    for mention in reversed([mention for mention in row.mentions if mention.end <= row.pronoun.start]):
        text = text[: mention.start] + text[mention.end :]
    return first_word_of(text, SOURCE_OTHER_PERSONS) is not None


def _follows_giving(row: PublishedRow) -> bool:
    return row.pronoun.text == "his" and row.sentence[: row.pronoun.start].split()[-1:] in [[verb] for verb in _GIVING]
