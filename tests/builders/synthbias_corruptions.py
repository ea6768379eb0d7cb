"""Sentences of this project, spoilt on purpose, with the checks that have to find it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from builders.synthbias import embedded
from builders.synthbias.checks import Sentence
from builders.synthbias.checks.sentence import Claims
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import gender_of_pronoun

SPOILT_CASE = "spoilt case"
"""Stands for the two checks of case together: which of them speaks depends on how sure the readers are."""


class Spoilt(NamedTuple):
    sentence: Sentence
    expected: frozenset[str]


def sound_sentences() -> list[Sentence]:
    """Every fourth item of the embedded dataset that is short enough to be made longer."""
    items = [item for split in embedded.draft().splits for item in split.items]
    return [sentence_of(item) for item in items[::7] if len(item.sentence.split()) <= 15]


def sentence_of(item: CoreferenceItem) -> Sentence:
    first, second = item.occupations
    return Sentence(
        text=item.sentence,
        meant=(item.reference, second if item.reference == first else first),
        type="type1" if item.referent is None else "type2",
        referent=item.referent,
        gender=item.pronoun_gender,
        claimed=Claims(pronoun=item.pronoun, label=item.stereotype or "ambiguous", case=item.pronoun_case),
    )


def spoilt_sentences(sentence: Sentence, rng: random.Random) -> Iterator[Spoilt]:
    """Yield a sentence spoilt in every way that it can be spoilt."""
    for spoil in SPOILERS:
        found = spoil(sentence, rng)
        if found is not None:
            yield found


def _ending(added: str, *expected: str) -> Callable[[Sentence, random.Random], Spoilt | None]:
    """Return a function that adds some words before the full stop."""

    def spoil(sentence: Sentence, _: random.Random) -> Spoilt | None:
        return _spoilt(sentence, sentence.text.removesuffix(".") + f" {added}.", *expected)

    return spoil


def _spoilt(sentence: Sentence, text: str, *expected: str, **changes: object) -> Spoilt:
    return Spoilt(replace(sentence, text=text, **changes), frozenset(expected))  # type: ignore[arg-type]


def _second_sentence(sentence: Sentence, _: random.Random) -> Spoilt | None:
    return _spoilt(sentence, f"{sentence.text} Then it rained.", "one_sentence", "multi_sentence")


def _no_full_stop(sentence: Sentence, _: random.Random) -> Spoilt | None:
    return _spoilt(sentence, sentence.text.removesuffix("."), "one_sentence")


def _doubled_space(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    at = rng.choice([index for index, sign in enumerate(sentence.text) if sign == " " and index > 25])
    return _spoilt(sentence, f"{sentence.text[:at]} {sentence.text[at:]}", "spelling", "spacing")


def _doubled_word(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    names = {word for name in sentence.meant for word in name.split()}
    words = sentence.text.split()
    able = [at for at, word in enumerate(words) if word.isalpha() and at > 1 and word not in names]
    at = rng.choice([at for at in able if gender_of_pronoun(words[at]) is None])
    return _spoilt(sentence, " ".join((*words[:at], words[at], *words[at:])), "doubled_word")


def _one_fills_two(sentence: Sentence, old: str, new: str) -> str:
    assert sentence.text.count(old) == 1, sentence.text
    return sentence.text.replace(old, new)


def _missing(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    text = _one_fills_two(sentence, f"he {rng.choice(sentence.meant)}", "he robot")
    return _spoilt(sentence, text, "missing_occupation", "two_occupations")


def _unknown(sentence: Sentence, _: random.Random) -> Spoilt | None:
    text = _one_fills_two(sentence, f"he {sentence.meant[0]}", "he astronaut")
    meant = ("astronaut", sentence.meant[1])
    expected = ("unknown_occupation", "two_occupations", "listed_person")
    return _spoilt(sentence, text, *expected, meant=meant, referent=None, type=None)


def _third(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    other = rng.choice([name for name in ("lawyer", "teacher", "guard", "nurse") if name not in sentence.meant])
    return _ending(f"with the {other}", "third_occupation", "two_occupations")(sentence, rng)


def _repeated(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    added = f"with the {rng.choice(sentence.meant)}"
    return _ending(added, "repeated_occupation", "two_occupations", "pronoun_last")(sentence, rng)


def _other_pair(one: str, other: str, expected: str) -> Callable[[Sentence, random.Random], Spoilt | None]:
    def spoil(sentence: Sentence, _: random.Random) -> Spoilt | None:
        first, second = (mention.text for mention in sentence.occupations)
        text = sentence.text.replace(f"he {first}", f"he {one}", 1).replace(f"he {second}", f"he {other}", 1)
        claimed = replace(sentence.claimed, label=None)
        return _spoilt(sentence, text, expected, meant=(one, other), referent=None, claimed=claimed)

    return spoil


def _no_article(sentence: Sentence, _: random.Random) -> Spoilt | None:
    last = sentence.occupations[-1].text
    article = "an" if last[0] in "aeiou" else "a"
    if last == "CEO" or f" the {last}" not in sentence.text:
        return None
    return _spoilt(sentence, sentence.text.replace(f" the {last}", f" {article} {last}"), "articles")


def _joined(sentence: Sentence, _: random.Random) -> Spoilt | None:
    last = sentence.occupations[-1].text
    if f" and the {last}" not in sentence.text:
        return None
    text = sentence.text.replace(f" and the {last}", f" and {last}")
    return _spoilt(sentence, text, "articles", "coordinated_without_article")


def _possessive(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    name = rng.choice(sentence.meant)
    text = _one_fills_two(sentence, f"he {name}", f"he {name}'s dog")
    return _spoilt(sentence, text, "occupation_possessive", "spelling")


def _more_pronouns(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    form = "he" if sentence.gender == "masculine" else "she"
    return _ending(f"before {form} left", "one_pronoun")(sentence, rng)


def _both_genders(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    form = "she" if sentence.gender == "masculine" else "he"
    return _ending(f"before {form} left", "one_pronoun", "mixed_gender_pronouns")(sentence, rng)


def _no_pronoun(sentence: Sentence, _: random.Random) -> Spoilt | None:
    place = sentence.pronouns[0]
    text = f"{sentence.text[: place.start]}Kim{sentence.text[place.end :]}"
    return _spoilt(sentence, text, "one_pronoun", "wrong_pronoun", "name")


def _pronoun_first(sentence: Sentence, _: random.Random) -> Spoilt | None:
    form = "he" if sentence.gender == "masculine" else "she"
    first, second = sentence.meant
    claimed = replace(sentence.claimed, pronoun=form)
    text = f"Before {form} went back home, the {first} met the {second}."
    return _spoilt(sentence, text, "pronoun_last", claimed=claimed)


def _object_as_subject(sentence: Sentence, _: random.Random) -> Spoilt | None:
    form = "him" if sentence.gender == "masculine" else "her"
    first, second = sentence.meant
    claimed = replace(sentence.claimed, pronoun=form, case=None)
    text = f"The {first} met the {second} at the door because {form} was late."
    return _spoilt(sentence, text, "pronoun_form", claimed=claimed)


def _person_before(sentence: Sentence, _: random.Random) -> Spoilt | None:
    text = f"At a party of a doctor, {sentence.text[0].lower()}{sentence.text[1:]}"
    return _spoilt(sentence, text, "other_person", "listed_person")


def _claims(expected: str, **changes: object) -> Callable[[Sentence, random.Random], Spoilt | None]:
    def spoil(sentence: Sentence, _: random.Random) -> Spoilt | None:
        claimed = replace(sentence.claimed, **changes)  # type: ignore[arg-type]
        return Spoilt(replace(sentence, claimed=claimed), frozenset({expected}))

    return spoil


def _wrong_pronoun(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    form = rng.choice([form for form in ("he", "her", "his") if form != sentence.claimed.pronoun])
    return _claims("wrong_pronoun", pronoun=form)(sentence, rng)


def _wrong_label(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    label = {"pro": "anti", "anti": "pro", "ambiguous": "pro"}[str(sentence.claimed.label)]
    return _claims("wrong_label", label=label)(sentence, rng)


def _wrong_gender(sentence: Sentence, _: random.Random) -> Spoilt | None:
    gender = "feminine" if sentence.gender == "masculine" else "masculine"
    claimed = replace(sentence.claimed, label=None)
    return _spoilt(sentence, sentence.text, "wrong_gender", gender=gender, claimed=claimed)


def _wrong_referent(sentence: Sentence, _: random.Random) -> Spoilt | None:
    claimed = replace(sentence.claimed, label=None)
    return _spoilt(sentence, sentence.text, "wrong_referent", referent="astronaut", claimed=claimed)


def _two_marked(sentence: Sentence, rng: random.Random) -> Spoilt | None:
    marked = (sentence.pronouns[0], sentence.pronouns[0])
    return _claims("several_pronouns", marked=marked)(sentence, rng)


def _wrong_case(sentence: Sentence, _: random.Random) -> Spoilt | None:
    """Exchange him and his, as a swap of *her* does that does not look at its case."""
    place = sentence.pronouns[0]
    other = {"him": "his", "his": "him"}.get(place.text)
    is_own = sentence.text[place.end :].split()[0] in ("was", "came", "had", "in", "to") if other == "him" else False
    if other is None or is_own:
        return None
    text = f"{sentence.text[: place.start]}{other}{sentence.text[place.end :]}"
    # Whoever exchanges pronouns in finished sentences knows of no case.
    return _spoilt(sentence, text, SPOILT_CASE, claimed=replace(sentence.claimed, pronoun=other, case=None))


def _gift(sentence: Sentence, _: random.Random) -> Spoilt | None:
    if sentence.gender != "masculine":
        return None
    first, second = sentence.meant
    text = f"The {first} talked to the {second} on the phone and offered his advice."
    claimed = replace(sentence.claimed, pronoun="his", case=None)
    return _spoilt(sentence, text, "dative_or_possessive", SPOILT_CASE, claimed=claimed)


SPOILERS: tuple[Callable[[Sentence, random.Random], Spoilt | None], ...] = (
    *(_second_sentence, _no_full_stop, _doubled_space, _doubled_word, _missing, _unknown, _third, _repeated),
    *(_no_article, _joined, _possessive, _more_pronouns, _both_genders, _no_pronoun, _pronoun_first),
    _object_as_subject,
    *(_person_before, _wrong_pronoun, _wrong_label, _wrong_gender, _wrong_referent, _two_marked, _wrong_case, _gift),
    _other_pair("guard", "lawyer", "same_list"),
    _other_pair("salesperson", "editor", "gap_too_small"),
    _ending("in the caf\u00e9", "non_ascii", "spelling"),
    _ending("with an dog", "wrong_article"),
    _ending("with a apple", "wrong_article"),
    _ending("and then " * 8 + "slept", "length"),
    _ending("with them", "other_pronoun", "plural_pronoun"),
    _ending("with us", "other_pronoun"),
    _ending("while I slept", "other_pronoun", "first_person"),
    _ending("with a man", "gendered_noun"),
    _ending("with the ladies", "gendered_noun"),
    _ending("with a neighbor", "listed_person"),
    _ending("in Boston", "name"),
    _claims("unknown_type", type="type3"),
    _claims("unknown_pronoun", pronoun="xem"),
    _claims("unmarked_pronoun", marked=()),
    _claims("markup_repaired", is_repaired=True),
)
