"""Flags peculiarities of WinoBias by rule; the sentences are kept as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from builders.output import Rule
from builders.synthbias.mentions import mask_pronouns, pronoun_mentions
from builders.synthbias.pairing import cases_of_form, percent_gap
from builders.synthbias.winobias_text import WinoBiasLine
from builders.synthbias.word_lists import GENDERED_NOUNS, PLURAL_PRONOUNS, first_word_of
from schemas.lexicon import gender_of_pronoun

WITHIN_POINTS = 10.0

FLAG_RULES: tuple[Rule, ...] = (
    Rule(
        name="not_minimal_pair",
        description="differs from its counterpart in more than the gender of its pronouns (two items for each pair)",
    ),
    Rule(
        name="other_pronoun_marked", description="its counterpart has another of the sentence's pronouns marked first"
    ),
    Rule(name="several_pronouns", description="has more than one pronoun marked; the first one is asked about"),
    Rule(name="unmarked_pronoun", description="has a form of he or she that is not marked"),
    Rule(name="mixed_gender_pronouns", description="has pronouns of both genders"),
    Rule(name="plural_pronoun", description="has a form of they"),
    Rule(name="third_occupation", description="names a third of the 40 occupations"),
    Rule(name="repeated_occupation", description="names one of its occupations twice"),
    Rule(name="gendered_noun", description="has a noun that names a gender"),
    Rule(
        name="within_10_points",
        description=f"the shares of women in its occupations differ by {WITHIN_POINTS:g} points or less",
    ),
    Rule(name="duplicate_text", description="the same text stands in another line, also of another split"),
    Rule(name="markup_repaired", description="an article or a space that stood twice around a bracket was taken out"),
)


class LinePair(NamedTuple):
    """Line i of the pro-stereotypical file and line i of the anti-stereotypical file."""

    pro: WinoBiasLine
    anti: WinoBiasLine


def is_minimal(pair: LinePair) -> bool:
    """Return True if the two sides differ only in the gender of their pronouns, which agree in case."""
    pro, anti = (pronoun_mentions(side.text.sentence) for side in pair)
    if mask_pronouns(pair.pro.text.sentence) != mask_pronouns(pair.anti.text.sentence):
        return False
    return all(cases_of_form(one.text) & cases_of_form(other.text) for one, other in zip(pro, anti, strict=True))


def flags_of(pairs: Sequence[LinePair]) -> dict[str, tuple[str, ...]]:
    """Return the flags of each line, in the order of ``FLAG_RULES``, by the line's ``source_row``."""
    times = Counter(line.text.sentence for pair in pairs for line in pair)
    flags = {}
    for pair in pairs:
        minimal = is_minimal(pair)
        of_pair = {
            "not_minimal_pair": not minimal,
            "other_pronoun_marked": minimal and _rank(pair.pro) != _rank(pair.anti),
        }
        for line in pair:
            holds = {**of_pair, **_line_flags(line), "duplicate_text": times[line.text.sentence] > 1}
            flags[line.source_row] = tuple(rule.name for rule in FLAG_RULES if holds[rule.name])
    return flags


def _rank(line: WinoBiasLine) -> int:
    """Return the index of the marked pronoun among all pronouns of the sentence."""
    return [mention.start for mention in pronoun_mentions(line.text.sentence)].index(line.pronoun.start)


def _line_flags(line: WinoBiasLine) -> dict[str, bool]:
    pronouns = pronoun_mentions(line.text.sentence)
    names = Counter(mention.text for mention in line.mentions)
    return {
        "several_pronouns": len(line.text.pronouns) > 1,
        "unmarked_pronoun": len(pronouns) > len(line.text.pronouns),
        "mixed_gender_pronouns": len({gender_of_pronoun(mention.text) for mention in pronouns}) > 1,
        "plural_pronoun": first_word_of(line.text.sentence, PLURAL_PRONOUNS) is not None,
        "third_occupation": len(names) > 2,
        "repeated_occupation": max(names.values()) > 1,
        "gendered_noun": first_word_of(line.text.sentence, GENDERED_NOUNS) is not None,
        "within_10_points": percent_gap(line.referent, line.distractor) <= WITHIN_POINTS,
        "markup_repaired": line.text.repaired,
    }
