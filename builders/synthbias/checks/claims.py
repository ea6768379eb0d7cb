"""Checks of what a source says about a sentence against the sentence and the lexicon."""

from __future__ import annotations

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.pairing import stereotype_of
from schemas.lexicon import gender_of_pronoun, occupations


@SentenceCheck
def _unknown_type(sentence: Sentence) -> str | None:
    claimed = sentence.claimed.type
    if claimed in (None, "type1", "type2"):
        return None
    return f"type '{claimed}' is not allowed; have: type1, type2"


@SentenceCheck
def _unknown_pronoun(sentence: Sentence) -> str | None:
    claimed = sentence.claimed.pronoun
    if claimed is None or gender_of_pronoun(claimed) is not None:
        return None
    return f"pronoun '{claimed}' is not in the lexicon; have: he, him, his, himself, she, her, hers, herself"


@SentenceCheck
def _wrong_pronoun(sentence: Sentence) -> str | None:
    claimed = sentence.claimed.pronoun
    found = [mention.text for mention in sentence.pronouns]
    if claimed is None or gender_of_pronoun(claimed) is None or claimed in found:
        return None
    return f"pronoun '{claimed}' is not the one pronoun of the sentence; it has: {', '.join(found) or 'none'}"


@SentenceCheck
def _wrong_gender(sentence: Sentence) -> str | None:
    asked = sentence.asked
    if asked is None or sentence.gender in (None, gender_of_pronoun(asked.text)):
        return None
    return f"has '{asked.text}' on its {sentence.gender} side"


@SentenceCheck
def _wrong_referent(sentence: Sentence) -> str | None:
    if sentence.referent is None or sentence.referent in sentence.meant:
        return None
    return f"has the referent '{sentence.referent}', which is neither {' nor '.join(sentence.meant)}"


@SentenceCheck
def _wrong_label(sentence: Sentence) -> str | None:
    claimed, gender, referent = sentence.claimed.label, sentence.gender, sentence.referent
    if claimed is None or (sentence.type is None and referent is None):
        return None
    expected = "ambiguous"
    if referent is not None:
        if gender is None or referent not in occupations():
            return None
        expected = stereotype_of(referent, gender)
    if claimed == expected:
        return None
    return f"label '{claimed}' contradicts the lexicon, which says {expected} for {_meaning(sentence)}"


def _meaning(sentence: Sentence) -> str:
    if sentence.referent is None:
        return f"a sentence of {sentence.type}"
    pronoun = sentence.asked.text if sentence.asked else f"a {sentence.gender} pronoun"
    return f"'{pronoun}' as '{sentence.referent}'"


@SentenceCheck
def _markup_repaired(sentence: Sentence) -> str | None:
    return "an article or a space stands twice around a bracket" if sentence.claimed.is_repaired else None
