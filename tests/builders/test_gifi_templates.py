"""Templates and their variants, and the embedded texts."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib import resources
from typing import Any

import pytest

from biasboard.ground.errors import DataError
from builders.gifi.embedded import TONES, EmbeddedItems, clear_votes, embedded_items, how_built
from builders.gifi.variants import VariantFrame, text_items
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import CASES, pronoun_families
from schemas.lexicon.pronoun_template import parse

SENTENCE = "{Nom} {is|are} late, {pos} friend waits for {acc}, the blame is {psi}, and {nom} {knows|know} it {ref}."


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("he", "He is late, his friend waits for him, the blame is his, and he knows it himself."),
        ("she", "She is late, her friend waits for her, the blame is hers, and she knows it herself."),
        ("they", "They are late, their friend waits for them, the blame is theirs, and they know it themself."),
        ("xe", "Xe is late, xyr friend waits for xem, the blame is xyrs, and xe knows it xemself."),
        ("ae", "Ae is late, aer friend waits for aer, the blame is aers, and ae knows it aerself."),
    ],
)
def test_every_slot_gets_the_form_of_its_case_and_they_its_verbs(family: str, text: str) -> None:
    assert parse(SENTENCE).fill(family) == text


def test_as_published_verbs_stay_and_ae_has_the_published_nominative() -> None:
    assert parse("{nom} {is|are} here").fill("they", as_published=True) == "they is here"
    assert parse("{nom} {is|are} here").fill("ae", as_published=True) == "aer is here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{nom} is {here", "a brace stands alone"),
        ("{who} is here", r"mark '\{who\}' is unknown; have: nom, acc, pos, psi, ref, singular\|plural"),
        ("{NOM} is here", r"mark '\{NOM\}' is unknown"),
        ("{is|} {nom}", r"mark '\{is\|\}' is unknown"),
        ("nobody is here", "has no slot for a pronoun"),
    ],
)
def test_a_broken_mark_is_named(text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.toml: text 3: .*{message}"):
        parse(text, where="a.toml: text 3")


def test_flags_tell_equal_variants_and_texts_that_end_in_the_pronoun() -> None:
    frames = [
        VariantFrame("a", parse("Robin hurt {ref}"), None),
        VariantFrame("b", parse("They saw {acc}."), None),
        VariantFrame("c", parse("{Nom} left."), None),
    ]
    flags = {item.item_id: set(item.flags) for item in text_items(frames)}
    assert flags["a-e"] == flags["a-ey"] == {"same_text_as_other_family", "ends_in_pronoun"}
    assert flags["a-he"] == {"ends_in_pronoun"}
    assert flags["b-e"] == flags["b-ey"] == {"same_text_as_other_family"}
    assert flags["c-e"] == flags["c-ey"] == flags["b-xe"] == set()


@pytest.fixture(scope="module")
def embedded() -> EmbeddedItems:
    return embedded_items()


def test_the_embedded_source_has_enough_of_each(embedded: EmbeddedItems) -> None:
    families = list(pronoun_families())
    for items, least in ((embedded.recognition, 40), (embedded.continuation, 40), (embedded.math, 40)):
        by_template: dict[str, list[str]] = {}
        for item in items:
            by_template.setdefault(item.template_id, []).append(item.family)
        assert len(by_template) >= least
        assert all(found == families for found in by_template.values())
        assert {case for item in items for case in item.cases} == set(CASES)
    kinds = Counter("occupation" if item.attribute == "occupation" else "trait" for item in embedded.assignment)
    assert min(kinds["occupation"], kinds["trait"]) >= 60
    genders = Counter((item.attribute, item.stereotype) for item in embedded.assignment)
    for attribute in {item.attribute for item in embedded.assignment}:
        assert genders[attribute, "feminine"] == genders[attribute, "masculine"] > 0
    antecedents = Counter(item.antecedent for item in embedded.recognition)
    assert len(antecedents) == 4
    assert len(set(antecedents.values())) == 1


OTHER_THIRD_PERSON = re.compile(
    r"\b(?:he|him|his|himself|she|hers?|herself|they|them|theirs?|themselves|themself)\b", re.IGNORECASE
)


def with_pronouns(embedded: EmbeddedItems) -> list[PronounTextItem | WordProblemItem]:
    return [*embedded.recognition, *embedded.continuation, *embedded.math]


def test_no_embedded_text_has_a_pronoun_beside_its_slots(embedded: EmbeddedItems) -> None:
    texts = [item.text for item in with_pronouns(embedded) if item.family == "xe"]
    texts += [item.text for item in embedded.assignment]
    assert [text for text in texts if OTHER_THIRD_PERSON.search(text)] == []


def test_embedded_assignment_prompts_have_the_right_article(embedded: EmbeddedItems) -> None:
    assert [
        item.text for item in embedded.assignment if re.search(r"\b(?:a [aeio]|an (?!honest)[^aeiou])", item.text)
    ] == []
    assert all(item.text.endswith(", and") for item in embedded.assignment)


SINGULAR = re.compile(r"\bthey (?:is|was|has|does)\b|\b(?:is|was|has|does) they\b|\bhe are\b", re.I)


def test_embedded_verbs_agree(embedded: EmbeddedItems) -> None:
    assert [item.text for item in with_pronouns(embedded) if SINGULAR.search(item.text)] == []


def verb_after_they(text: str) -> list[str]:
    """Words after *they* that are a verb in the third person singular."""
    lemminflect: Any = pytest.importorskip("lemminflect", reason="the extra build is not installed")
    words = re.findall(r"\bthey (?:\w+ly |also |still |now |then )?(\w+s)\b", text, re.IGNORECASE)
    lemmas = {word: lemminflect.getAllLemmas(word, "VERB").get("VERB", ()) for word in words}
    return [word for word in words if any(word in lemminflect.getInflection(lemma, "VBZ") for lemma in lemmas[word])]


def test_no_embedded_verb_in_the_singular_follows_they(embedded: EmbeddedItems) -> None:
    found = [(item.text, verb_after_they(item.text)) for item in with_pronouns(embedded) if item.family == "they"]
    assert [entry for entry in found if entry[1]] == []
    assert verb_after_they("they also walks home") == ["walks"]


def test_embedded_answers_are_those_of_their_sums() -> None:
    data = tomllib.loads(resources.files("builders.gifi").joinpath("texts", "math.toml").read_text(encoding="utf-8"))
    assert len(data["problem"]) == 44
    for row in data["problem"]:
        assert set(row["check"]) <= set("0123456789.+-*/() "), row["id"]
        assert eval(row["check"]) == pytest.approx(float(row["answer"])), row["id"]
        assert parse(row["solution"] if "{" in row["solution"] else row["text"])


def rows_of(config: str, table: str) -> list[dict[str, str]]:
    path = resources.files("builders.gifi").joinpath("texts", f"{config}.toml")
    found: list[dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))[table]
    return found


def test_continuations_are_friendly_neutral_and_tense_in_near_equal_shares() -> None:
    tones = Counter(row["tone"] for row in rows_of("continuation", "text"))
    assert set(tones) == set(TONES)
    assert max(tones.values()) - min(tones.values()) <= 1
    for tone in TONES:
        assert f"{tone} in {tones[tone]}" in how_built()


def test_no_beginning_ends_in_its_pronoun(embedded: EmbeddedItems) -> None:
    assert {flag for item in embedded.continuation for flag in item.flags} <= {"same_text_as_other_family"}
    assert all(item.text[-1].isalpha() for item in embedded.continuation)


def test_no_slot_is_contracted_and_nothing_is_done_by_a_reflexive(embedded: EmbeddedItems) -> None:
    for config, table in (("recognition", "text"), ("continuation", "text"), ("math", "problem")):
        for row in rows_of(config, table):
            assert not re.search(r"'s\||'re\}|\bby \{ref\}", row["text"] + row.get("solution", "")), row["id"]
    assert embedded.math


def test_names_in_word_problems_are_those_of_no_gender(embedded: EmbeddedItems) -> None:
    gendered = {
        item.text.split()[0] for item in embedded.recognition if item.antecedent in ("masculine_name", "feminine_name")
    }
    assert len(gendered) == 22
    words = {word for item in embedded.math for word in re.findall(r"\b[A-Z][a-z]+\b", item.text)}
    assert not words & (gendered | {"Adam", "Anna", "Ben", "Kate", "Kevin", "Lucy", "Maria", "Nathan", "Olivia"})


def test_assignment_prompts_are_about_what_the_person_is_or_likes(embedded: EmbeddedItems) -> None:
    person = re.compile(r"My (?:friend|neighbour|colleague|cousin) ")
    assert all(person.match(item.text) for item in embedded.assignment)
    # Colours are told in the same words for each stereotype, so that only the colour differs.
    said: dict[str, set[str]] = {}
    for row in rows_of("assignment", "entry"):
        if row["kind"] == "colour":
            words = row["text"].removesuffix(", and")
            said.setdefault(row["stereotype"], set()).add(re.sub(r"^(My \w+ \w+ \w+).*", r"\1", words))
    assert said["feminine"] == said["masculine"] == said["neutral"]


def test_votes_on_texts_name_texts_that_exist_and_the_card_tells_the_unclear_ones() -> None:
    known = {f"{config}/{row['id']}" for config in ("recognition", "continuation") for row in rows_of(config, "text")}
    known |= {f"math/{row['id']}" for row in rows_of("math", "problem")}
    votes = clear_votes()
    assert {filled.text for filled in votes} <= known
    assert all(len(answers) == 2 for answers in votes.values())
    assert {f"continuation/{row['id']}" for row in rows_of("continuation", "text")} <= {filled.text for filled in votes}
    for filled, answers in votes.items():
        assert (f"`{filled.text}` with *{filled.family}*" in how_built()) == (not all(answers))
