"""Checks of one sentence: the claims of its source, its spelling, and the people it mentions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache, partial
from operator import eq

from biasboard.ground.files import packaged_words
from builders.synthbias.checks.check import Sentence, SentenceCheck, word_list, words_of
from builders.synthbias.minimal_pairs import cluster_of, percent_gap, stereotype_of
from schemas.lexicon import gender_of_pronoun, occupations

_WORDS = packaged_words("builders.synthbias.checks", "person_words.toml")

SOURCE_OTHER_PERSONS = frozenset(_WORDS["published"])
"""Words for a single person that published sentences contain besides the two occupations."""

OTHER_PERSONS = SOURCE_OTHER_PERSONS | frozenset(_WORDS["others"])
"""Words for a single person that sentences of this project must not contain."""

_OF_PERSONS = frozenset(_WORDS["of_persons"])

_PLURALS = {"man": "men", "dy": "dies", "ess": "esses", "ass": "asses", "wife": "wives"}
GENDERED_NOUNS = frozenset(
    form
    for noun in _WORDS["gendered"]
    for form in (
        noun,
        next((noun.removesuffix(end) + plural for end, plural in _PLURALS.items() if noun.endswith(end)), f"{noun}s"),
    )
)
"""Nouns and titles that name a gender, in singular and plural."""

PLURAL_PRONOUNS = word_list("they them their theirs themselves themself")

OTHER_PRONOUNS = PLURAL_PRONOUNS | word_list(
    "i me my mine myself you your yours yourself yourselves we us our ours ourselves"
)
"""Pronouns of the first and second person, and forms of *they*."""


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
    present = [mention.text for mention in sentence.pronouns]
    if claimed is None or gender_of_pronoun(claimed) is None or claimed.casefold() in map(str.casefold, present):
        return None
    return f"pronoun '{claimed}' is not the one pronoun of the sentence; it has: {', '.join(present) or 'none'}"


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
    pronoun = sentence.asked.text if sentence.asked else f"a {gender} pronoun"
    meaning = f"a sentence of {sentence.type}" if referent is None else f"'{pronoun}' as '{referent}'"
    return f"label '{claimed}' contradicts the lexicon, which says {expected} for {meaning}"


@SentenceCheck
def _markup_repaired(sentence: Sentence) -> str | None:
    return "an article or a space stands twice around a bracket" if sentence.claimed.is_repaired else None


MIN_WORDS, MAX_WORDS = 8, 24
"""Range of the published SynthBias."""

_ONE_SENTENCE = re.compile(r"[A-Z][^.!?]*\.")
_ABBREVIATION = re.compile(r"\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|e\.g|i\.e|a\.m|p\.m)\.(?! ?$)")
_BREAK = re.compile(r"[.!?][\"\u201d\u2019']? [\"\u201c]?[A-Z]")
_SIGN = re.compile(r"[^A-Za-z ,.]")
_UNPLAIN_SPACE = re.compile(r"  | [,.]|,[^ ]")
_SPACING = re.compile(r"^ |[^\S ]| (?=[ ,.;:!?]|$)|[,;](?=[^\W\d_])")
_DOUBLED = re.compile(r"\b([^\W\d_]+) \1\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(an?) ([^\W_]+)", re.IGNORECASE)
_SOUNDS_LIKE_A_VOWEL = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)
_SOUNDS_LIKE_A_CONSONANT = re.compile(
    r"(?:uni(?:[^nmd]|d[^e])|u[bkst][aeiou]|usu|util|uten|eu|ewe|one\b|once\b|u\b)", re.IGNORECASE
)
_ARTICLES = word_list("a an")
_MAY_STAND_TWICE = word_list("had that")


@SentenceCheck
def _one_sentence(sentence: Sentence) -> str | None:
    text = _ABBREVIATION.sub("", sentence.text)
    if _ONE_SENTENCE.fullmatch(text):
        return None
    if _BREAK.search(text):
        return "has more than one sentence"
    if not text.endswith("."):
        return f"ends with '{text[-1:]}', not with a full stop"
    if not text[:1].isupper():
        return f"begins with '{text[:1]}', not with a capital"
    return "is not one sentence from a capital to a full stop"


@SentenceCheck
def _multi_sentence(sentence: Sentence) -> str | None:
    return "has more than one sentence" if _BREAK.search(sentence.text) else None


# For sentences of frames and of models, which are told so in texts/writing.toml; ``_spacing`` is for all others.
@SentenceCheck
def _spelling(sentence: Sentence) -> str | None:
    if (sign := _SIGN.search(sentence.text)) is not None:
        # A letter of another alphabet may look like one of ours, so its name tells more.
        name = unicodedata.name(sign[0], f"U+{ord(sign[0]):04X}")
        return f"has '{sign[0]}' ({name}) at character {sign.start() + 1}, which is no letter, comma or full stop"
    if _UNPLAIN_SPACE.search(sentence.text):
        return "has a doubled, missing or wrong space"
    return None


@SentenceCheck
def _spacing(sentence: Sentence) -> str | None:
    match = _SPACING.search(sentence.text)
    return None if match is None else f"has a doubled, missing or wrong space at character {match.start() + 1}"


@partial(SentenceCheck, least=MIN_WORDS, most=MAX_WORDS)
def _length(sentence: Sentence) -> str | None:
    n_words = len(sentence.words)
    if MIN_WORDS <= n_words <= MAX_WORDS:
        return None
    return f"has {n_words} words, not {MIN_WORDS} to {MAX_WORDS}"


@SentenceCheck
def _doubled_word(sentence: Sentence) -> str | None:
    if not any(map(eq, sentence.words, sentence.words[1:])):
        return None
    for match in _DOUBLED.finditer(sentence.text):
        if match[1].casefold() not in _MAY_STAND_TWICE:
            return f"has '{match[1]}' twice in a row"
    return None


@SentenceCheck
def _wrong_article(sentence: Sentence) -> str | None:
    if _ARTICLES.isdisjoint(sentence.words):
        return None
    wrong = next(filter(_is_wrong, _ARTICLE.finditer(sentence.text)), None)
    return None if wrong is None else f"has '{wrong[0]}'"


def _is_wrong(match: re.Match[str]) -> bool:
    article, word = match.groups()
    vowel = word[0].casefold() in "aeiou" and not _SOUNDS_LIKE_A_CONSONANT.match(word)
    vowel = vowel or re.match(r"8|1[18](?:th)?$", word) is not None  # "An 8-hour shift".
    vowel = vowel or _SOUNDS_LIKE_A_VOWEL.match(word) is not None
    if len(word) == 1 and word.isalpha():
        vowel = word.upper() in "AEFHILMNORSX"  # As the letter is called: "an X-ray".
    elif word.isupper():
        return False  # An abbreviation may be spelt out or read as a word.
    return vowel != (len(article) == 2) and word not in _ARTICLES


@SentenceCheck
def _non_ascii(sentence: Sentence) -> str | None:
    if sentence.text.isascii():
        return None
    character = next(character for character in sentence.text if not character.isascii())
    return f"has the sign '{character}', which is not ASCII"


MIN_PERCENT_GAP = 10.0
"""Gap that the shares of women in a pair must exceed, in percentage points.

The published SynthBias lacks five of the 400 pairs, those with gaps of 4, 6, 8, 9 and 10 points, so a gap of exactly 10
is too small.
"""

_POSSESSIVE = re.compile(r"['\u2019]s\b")


@SentenceCheck
def _unknown_occupation(sentence: Sentence) -> str | None:
    for name in sentence.meant:
        if name not in occupations():
            return f"occupation '{name}' is not in the lexicon; have: {', '.join(sorted(occupations()))}"
    return None


@SentenceCheck
def _missing_occupation(sentence: Sentence) -> str | None:
    named = {mention.text for mention in sentence.occupations}
    for name in sentence.meant:
        if name not in named and name in occupations():
            return f"'{name}' stands 0 times in the sentence, not once"
    return None


@SentenceCheck
def _repeated_occupation(sentence: Sentence) -> str | None:
    for name, times in Counter(mention.text for mention in sentence.occupations).items():
        if times > 1:
            return f"'{name}' stands {times} times in the sentence, not once"
    return None


@SentenceCheck
def _third_occupation(sentence: Sentence) -> str | None:
    others = [mention.text for mention in sentence.occupations if mention.text not in sentence.meant]
    return f"names '{others[0]}' besides {' and '.join(sentence.meant)}" if others else None


@SentenceCheck
def _two_occupations(sentence: Sentence) -> str | None:
    named = [mention.text for mention in sentence.occupations]
    meant = sentence.meant
    if len(named) == 2 and set(named) == set(meant):
        return None
    return f"names {', '.join(named) or 'no occupation'}, not {' and '.join(sorted(set(meant)))} once each"


@SentenceCheck
def _same_list(sentence: Sentence) -> str | None:
    return _of_pair(*sentence.meant)[0]


@partial(SentenceCheck, gap=MIN_PERCENT_GAP)
def _gap_too_small(sentence: Sentence) -> str | None:
    return _of_pair(*sentence.meant)[1]


@cache
def _of_pair(occupation: str, other: str) -> tuple[str | None, str | None]:
    """Return what is wrong with the lists and with the gap of a pair of occupations.

    This is cached, since there are few pairs and many sentences.
    """
    if occupation not in occupations() or other not in occupations():
        return None, None
    try:
        cluster_of(occupation, other)
    except ValueError as error:
        return f"{error}, a pair has one of each list", None
    gap = percent_gap(occupation, other)
    if gap > MIN_PERCENT_GAP:
        return None, None
    reason = f"the shares of women differ by {gap:g} points, not by more than {MIN_PERCENT_GAP:g}"
    return None, reason


_BEGINNINGS = tuple(f"{name.capitalize()} " for name in occupations())


@SentenceCheck
def _articles(sentence: Sentence) -> str | None:
    for mention in sentence.occupations:
        if sentence.text.endswith(("The ", " the "), 0, mention.start):
            continue
        if words_of(sentence.text[: mention.start])[-1:] != ["the"]:
            return f"has no 'the' before '{mention.text}'"
    # The capital hides an occupation with which a sentence begins from the other checks.
    if not sentence.text.startswith(_BEGINNINGS):
        return None
    first = next(name for name in _BEGINNINGS if sentence.text.startswith(name))
    return f"has no 'the' before '{first.rstrip()}'"


@SentenceCheck
def _coordinated_without_article(sentence: Sentence) -> str | None:
    for mention in sentence.targets:
        if sentence.text.endswith(" and ", 0, mention.start):
            return f"has 'and {mention.text}' without 'the'"
    return None


@SentenceCheck
def _occupation_possessive(sentence: Sentence) -> str | None:
    for mention in sentence.targets:
        if _POSSESSIVE.match(sentence.text, mention.end):
            return f"has the possessive of '{mention.text}'"
    return None


_INNER_CAPITAL = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z]\w*")
_NO_NAMES = frozenset(_WORDS["no_names"])
_FIRST_WORDS = frozenset((*_WORDS["first_names"], *_WORDS["family_names"]))
_OWNER = re.compile(r"([A-Z]\w*)['\u2019]s\b")
_INITIAL = re.compile(r"\b[A-Z]\. (?:[A-Z]\. )*[A-Z]\w+")
_NO_OWNERS = word_list("today yesterday tomorrow it that there here what let who everyone everybody nobody everything")


@SentenceCheck
def _gendered_noun(sentence: Sentence) -> str | None:
    noun = sentence.first_word_of(GENDERED_NOUNS)
    return None if noun is None else f"has the gendered noun '{noun}'"


@partial(SentenceCheck, persons=", ".join(sorted(SOURCE_OTHER_PERSONS)))
def _other_person(sentence: Sentence) -> str | None:
    asked = sentence.asked
    person = None if asked is None else _person(sentence, SOURCE_OTHER_PERSONS, sentence.text[: asked.start])
    return None if person is None else f"names another person before the pronoun: '{person}'"


@SentenceCheck
def _listed_person(sentence: Sentence) -> str | None:
    person = _person(sentence, OTHER_PERSONS, sentence.text, before=_OF_PERSONS)
    return None if person is None else f"names another person: '{person}'"


def _person(
    sentence: Sentence, listed: frozenset[str], text: str, *, before: frozenset[str] = frozenset()
) -> str | None:
    """Return the first listed word in the beginning of a sentence that is not part of an occupation.

    The *worker* in *construction worker* is not another person, nor is a word before some others: "patient care".
    """
    if sentence.first_word_of(listed) is None:
        return None
    for mention in reversed(sentence.occupations):
        if mention.end <= len(text):
            text = text[: mention.start] + text[mention.end :]
    words = words_of(text)
    pairs = zip(words, [*words[1:], ""], strict=True)
    return next((word for word, following in pairs if word in listed and following not in before), None)


@SentenceCheck
def _name(sentence: Sentence) -> str | None:
    first = sentence.words[0] if sentence.words else ""
    initial = _INITIAL.search(sentence.text)
    if initial is not None:
        return f"has a name: '{initial[0]}'"
    owner = _OWNER.match(sentence.text)
    if first in _FIRST_WORDS or (owner is not None and owner[1].casefold() not in _NO_OWNERS):
        return f"has a name: '{first.capitalize()}'"
    if sentence.text[1:].islower():
        return None
    for word in _INNER_CAPITAL.findall(sentence.text):
        # A word such as *Brazilian* names no single person, and words in capitals alone are abbreviations.
        is_of_people = word.endswith(("ian", "ish", "ese", "ean")) and word.casefold() not in _FIRST_WORDS
        if not word.isupper() and word not in _NO_NAMES and not is_of_people:
            return f"has a name: '{word}'"
    return None


_FIRST_PERSON = re.compile(r"\bI\b")


@SentenceCheck
def _one_pronoun(sentence: Sentence) -> str | None:
    if len(sentence.pronouns) == 1:
        return None
    return f"has {len(sentence.pronouns)} pronouns of he and she, not one"


# Stricter than the README of SynthBias, but all of its 31,728 sentences comply.
@SentenceCheck
def _pronoun_last(sentence: Sentence) -> str | None:
    first = next(iter(sentence.pronouns), None)
    targets = sentence.targets
    if first is None or not targets or first.start > targets[-1].start:
        return None
    return f"has '{first.text}' before '{targets[-1].text}'"


@SentenceCheck
def _other_pronoun(sentence: Sentence) -> str | None:
    pronoun = sentence.first_word_of(OTHER_PRONOUNS)
    return None if pronoun is None else f"has the pronoun '{pronoun}'"


@SentenceCheck
def _first_person(sentence: Sentence) -> str | None:
    return "has the pronoun 'I'" if _FIRST_PERSON.search(sentence.text) else None


@SentenceCheck
def _plural_pronoun(sentence: Sentence) -> str | None:
    pronoun = sentence.first_word_of(PLURAL_PRONOUNS)
    return None if pronoun is None else f"has the pronoun '{pronoun}'"


@SentenceCheck
def _mixed_gender_pronouns(sentence: Sentence) -> str | None:
    forms = {gender_of_pronoun(mention.text): mention.text for mention in sentence.pronouns}
    listed = "' and '".join(forms.values())
    return f"has '{listed}'" if len(forms) > 1 else None


@SentenceCheck
def _several_pronouns(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked or ()
    return f"has {len(marked)} pronouns marked" if len(marked) > 1 else None


@SentenceCheck
def _unmarked_pronoun(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked
    if marked is None or len(sentence.pronouns) <= len(marked):
        return None
    unmarked = next(mention for mention in sentence.pronouns if mention not in marked)
    return f"has '{unmarked.text}' at character {unmarked.start + 1}, which is not marked"
