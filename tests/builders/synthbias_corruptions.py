"""Sentences of this project, spoilt on purpose, with the checks that have to find it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from builders.synthbias import embedded
from builders.synthbias.checks.sentence import Claims, Sentence
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import gender_of_pronoun

SPOILT_CASE = "spoilt case"
"""Stands for the two checks of case together: which of them speaks depends on how sure the readers are."""


class Spoilt(NamedTuple):
    sentence: Sentence
    expected: frozenset[str]


def sound_sentences() -> list[Sentence]:
    """Every seventh item of the embedded dataset that is short enough to be made longer."""
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
    for expected, spoil in TEXTS:
        text = spoil(sentence, rng)
        if text is not None:
            yield Spoilt(replace(sentence, text=text), frozenset(expected.split(", ")))
    for expected, words in ENDINGS:
        yield Spoilt(replace(sentence, text=_ending(sentence, words)), frozenset(expected.split(", ")))
    for expected, change in CHANGES:
        values = change(sentence)
        if values is not None:
            fields = {name: values[name] for name in values if not name.startswith("claimed_")}
            claims = {name.removeprefix("claimed_"): values[name] for name in values if name not in fields}
            claimed = replace(sentence.claimed, **claims)
            yield Spoilt(replace(sentence, **fields, claimed=claimed), frozenset(expected.split(", ")))


def _ending(sentence: Sentence, added: str) -> str:
    """The text with some words before the full stop."""
    return f"{sentence.text.removesuffix('.')} {added}."


def _subject(sentence: Sentence, *, is_other: bool = False) -> str:
    return "he" if (sentence.gender == "masculine") != is_other else "she"


def _doubled_space(sentence: Sentence, rng: random.Random) -> str:
    at = rng.choice([index for index, sign in enumerate(sentence.text) if sign == " " and index > 25])
    return f"{sentence.text[:at]} {sentence.text[at:]}"


def _doubled_word(sentence: Sentence, rng: random.Random) -> str:
    names = {word for name in sentence.meant for word in name.split()}
    words = sentence.text.split()
    able = [at for at, word in enumerate(words) if word.isalpha() and at > 1 and word not in names]
    at = rng.choice([at for at in able if gender_of_pronoun(words[at]) is None])
    return " ".join((*words[:at], words[at], *words[at:]))


def _once(sentence: Sentence, old: str, new: str) -> str:
    assert sentence.text.count(old) == 1, sentence.text
    return sentence.text.replace(old, new)


def _third(sentence: Sentence, rng: random.Random) -> str:
    others = [name for name in ("lawyer", "teacher", "guard", "nurse") if name not in sentence.meant]
    return _ending(sentence, f"with the {rng.choice(others)}")


def _no_article(sentence: Sentence, _: random.Random) -> str | None:
    last = sentence.occupations[-1].text
    article = "an" if last[0] in "aeiou" else "a"
    is_able = last != "CEO" and f" the {last}" in sentence.text
    return sentence.text.replace(f" the {last}", f" {article} {last}") if is_able else None


def _joined(sentence: Sentence, _: random.Random) -> str | None:
    joined = f" and the {sentence.occupations[-1].text}"
    return sentence.text.replace(joined, joined.replace(" the", "")) if joined in sentence.text else None


def _no_pronoun(sentence: Sentence, _: random.Random) -> str:
    place = sentence.pronouns[0]
    return f"{sentence.text[: place.start]}Kim{sentence.text[place.end :]}"


Values = Mapping[str, Any]
"""Fields of a sentence, and of its claims after ``claimed_``."""


def _other_pair(one: str, other: str) -> Callable[[Sentence], Values]:
    def change(sentence: Sentence) -> Values:
        first, second = (mention.text for mention in sentence.occupations)
        text = sentence.text.replace(f"he {first}", f"he {one}", 1).replace(f"he {second}", f"he {other}", 1)
        return {"text": text, "meant": (one, other), "referent": None, "claimed_label": None}

    return change


def _unknown(sentence: Sentence) -> Values:
    text = _once(sentence, f"he {sentence.meant[0]}", "he astronaut")
    return {"text": text, "meant": ("astronaut", sentence.meant[1]), "referent": None, "type": None}


def _pronoun_first(sentence: Sentence) -> Values:
    form, (first, second) = _subject(sentence), sentence.meant
    return {"text": f"Before {form} went back home, the {first} met the {second}.", "claimed_pronoun": form}


def _object_as_subject(sentence: Sentence) -> Values:
    form, (first, second) = "him" if sentence.gender == "masculine" else "her", sentence.meant
    text = f"The {first} met the {second} at the door because {form} was late."
    return {"text": text, "claimed_pronoun": form, "claimed_case": None}


def _wrong_case(sentence: Sentence) -> Values | None:
    """Exchange him and his, as a swap of *her* does that does not look at its case."""
    place = sentence.pronouns[0]
    other = {"him": "his", "his": "him"}.get(place.text)
    is_own = other == "him" and sentence.text[place.end :].split()[0] in ("was", "came", "had", "in", "to")
    if other is None or is_own:
        return None
    text = f"{sentence.text[: place.start]}{other}{sentence.text[place.end :]}"
    # Whoever exchanges pronouns in finished sentences knows of no case.
    return {"text": text, "claimed_pronoun": other, "claimed_case": None}


def _gift(sentence: Sentence) -> Values | None:
    first, second = sentence.meant
    text = f"The {first} talked to the {second} on the phone and offered his advice."
    is_able = sentence.gender == "masculine"
    return {"text": text, "claimed_pronoun": "his", "claimed_case": None} if is_able else None


TEXTS: tuple[tuple[str, Callable[[Sentence, random.Random], str | None]], ...] = (
    ("one_sentence, multi_sentence", lambda s, _: f"{s.text} Then it rained."),
    ("one_sentence", lambda s, _: s.text.removesuffix(".")),
    ("spelling, spacing", _doubled_space),
    ("doubled_word", _doubled_word),
    ("missing_occupation, two_occupations", lambda s, rng: _once(s, f"he {rng.choice(s.meant)}", "he robot")),
    ("third_occupation, two_occupations", _third),
    (
        "repeated_occupation, two_occupations, pronoun_last",
        lambda s, rng: _ending(s, f"with the {rng.choice(s.meant)}"),
    ),
    ("articles", _no_article),
    ("articles, coordinated_without_article", _joined),
    ("occupation_possessive, spelling", lambda s, _: _once(s, f"he {s.meant[0]}", f"he {s.meant[0]}'s dog")),
    ("one_pronoun", lambda s, _: _ending(s, f"before {_subject(s)} left")),
    ("one_pronoun, mixed_gender_pronouns", lambda s, _: _ending(s, f"before {_subject(s, is_other=True)} left")),
    ("one_pronoun, wrong_pronoun, name", _no_pronoun),
    ("other_person, listed_person", lambda s, _: f"At a party of a doctor, {s.text[0].lower()}{s.text[1:]}"),
)
ENDINGS = (
    ("non_ascii, spelling", "in the caf\u00e9"),
    ("wrong_article", "with an dog"),
    ("wrong_article", "with a apple"),
    ("length", "and then " * 8 + "slept"),
    ("other_pronoun, plural_pronoun", "with them"),
    ("other_pronoun", "with us"),
    ("other_pronoun, first_person", "while I slept"),
    ("gendered_noun", "with a man"),
    ("gendered_noun", "with the ladies"),
    ("listed_person", "with a neighbor"),
    ("name", "in Boston"),
)
OTHER_LABEL = {"pro": "anti", "anti": "pro", "ambiguous": "pro"}
OTHER_FORM = {"he": "her", "her": "his", "his": "he"}
OTHER_GENDER = {"masculine": "feminine", "feminine": "masculine"}
CHANGES: tuple[tuple[str, Callable[[Sentence], Values | None]], ...] = (
    ("unknown_occupation, two_occupations, listed_person", _unknown),
    ("pronoun_last", _pronoun_first),
    ("pronoun_form", _object_as_subject),
    (SPOILT_CASE, _wrong_case),
    (f"dative_or_possessive, {SPOILT_CASE}", _gift),
    ("same_list", _other_pair("guard", "lawyer")),
    ("gap_too_small", _other_pair("salesperson", "editor")),
    ("wrong_pronoun", lambda s: {"claimed_pronoun": OTHER_FORM.get(str(s.claimed.pronoun), "he")}),
    ("wrong_label", lambda s: {"claimed_label": OTHER_LABEL[str(s.claimed.label)]}),
    ("wrong_gender", lambda s: {"gender": OTHER_GENDER[str(s.gender)], "claimed_label": None}),
    ("wrong_referent", lambda s: {"referent": "astronaut", "claimed_label": None}),
    ("several_pronouns", lambda s: {"claimed_marked": (s.pronouns[0], s.pronouns[0])}),
    ("unknown_type", lambda _: {"claimed_type": "type3"}),
    ("unknown_pronoun", lambda _: {"claimed_pronoun": "xem"}),
    ("unmarked_pronoun", lambda _: {"claimed_marked": ()}),
    ("markup_repaired", lambda _: {"claimed_is_repaired": True}),
)
