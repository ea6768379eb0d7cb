"""The source *gifi*: the templates of the published GIFI (arXiv:2506.15568), repaired or exactly as they are.

Each published variant is the source sentence with every pronoun replaced by the form for one case. This left three
kinds of fault. The case was guessed from the word: *her* always counted as accusative, so that possessives read "him
mom". Pronouns of objects and groups were replaced too. No verb was made to agree with *they*. We read the templates one
by one and recorded what each slot needs in ``published_tags.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, cast

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.inputs import csv_rows
from builders.dataset.output import Rule
from builders.gifi.variants import VariantFrame, problem_items, text_items
from schemas.documents.dataset import Item, Reject
from schemas.items.assignment import AssignmentItem, Attribute, StereotypedGender
from schemas.items.pronoun_text import Antecedent
from schemas.lexicon import PronounCase, pronoun_families
from schemas.lexicon.pronoun_template import CASE_TAGS, Part, Slot, Template, Verb

ADDRESS = "https://github.com/ZhengyangShan/GIFI/tree/main/data/template"
REMEDY = f"use the files of {ADDRESS} as they were published"

FILES: Mapping[str, str] = {
    "recognition": "tango-all-genders.csv",
    "continuation": "real-toxicity-prompts-all-genders.csv",
    "assignment": "SAOF_template-all-genders.csv",
    "math": "math_gsm8k-all-genders.csv",
}
"""Name of the file of each config."""
SHA256: Mapping[str, str] = {
    "SAOF_template-all-genders.csv": "d60aa3eac4210b680e32e99944d58c7f49a69df95553ca77f669592c4b0893e5",
    "math_gsm8k-all-genders.csv": "dc02cd9ccc1413b969df763604f589d1922c9d944756f334bff327a87ad450ba",
    "real-toxicity-prompts-all-genders.csv": "ce7c7717cb411f4ceb3f5f468a65e9aa61fce8b6c33bdd61229e5901975ca071",
    "tango-all-genders.csv": "5d40548202d1aee6fad8b1f428af0707032afad8d9e03892b84b555cb72748dd",
}

_MOST_DIGITS = 9
"""Maximum number of digits of a template's index, because Python refuses to parse an integer of thousands of digits."""
_PRONOUN_COLUMNS = ("template_index", "pronoun_family", "template")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "recognition": _PRONOUN_COLUMNS,
    "continuation": _PRONOUN_COLUMNS,
    "assignment": ("index", "template", "state"),
    "math": (*_PRONOUN_COLUMNS, "simple_answer"),
}

WRONG_CASE = Rule(name="wrong_case", description="a possessive stands in the form of the accusative, or the other way")
OTHER_REFERENT = Rule(
    name="other_referent", description="a pronoun of an object, an animal, a group or somebody else was exchanged too"
)
NO_AGREEMENT = Rule(name="no_agreement", description="a verb does not agree with they")
WRONG_ANSWER = Rule(name="wrong_answer", description="the answer was cut off at the comma of its thousands")
TYPO = Rule(name="typo", description="an article or a word of the prompt is wrong")
COMPAT_FLAG_RULES = (WRONG_CASE, OTHER_REFERENT, NO_AGREEMENT, WRONG_ANSWER, TYPO)

UNCLEAR = Rule(
    name="unclear_pronoun", description="the text breaks off before one can tell what its pronoun means (default mode)"
)
REJECT_RULES = (UNCLEAR,)

# Variants differ only in their pronouns, and no template has the independent possessive, so the forms of he and xe
# together determine the case.
_CASES_BY_FORM: Mapping[tuple[str, str], PronounCase] = {
    ("he", "xe"): "nominative",
    ("him", "xem"): "accusative",
    ("his", "xyr"): "possessive_dependent",
    ("himself", "xemself"): "reflexive",
}
_SLOT = re.compile(r"(?P<before>.*?)\b(?P<form>himself|him|his|he)\b(?P<after>.*)", re.DOTALL)
_CURLY = "\N{RIGHT SINGLE QUOTATION MARK}"
_CONTRACTED = re.compile(rf"[{_CURLY}']s\b")
_WORD = re.compile(rf"[^\W_]+(?:['{_CURLY}-][^\W_]+)*")

_ANSWERS: Mapping[int, str] = {38: "40000"}
"""Correct answer of each word problem whose published answer is wrong, by index of the template."""
_ANTECEDENTS: tuple[Antecedent, ...] = ("feminine_name", "masculine_name", "neutral_name", "distal")
"""Antecedents of the recognition templates: fifty consecutive templates for each, in this order."""
_N_PER_ANTECEDENT = 50

_TYPOS = {
    "a icensed": "a licensed",
    "a police,": "a police officer,",
    "aides,": "aide,",
    "support occupation,": "support worker,",
    "repair occupation,": "repair worker,",
}
_ARTICLE = re.compile(r"\ba (?=[aeio])")
_COLOUR = re.compile(r"likes (\w+) color,")
_ATTRIBUTES: Mapping[str, Attribute] = {
    "occupation": "occupation",
    "personality": "personality",
    "hobby": "hobby",
    "color": "colour",
}


class VariantRows(NamedTuple):
    """All rows of one template, one for each pronoun family."""

    number: int
    texts: Mapping[str, str]
    """Text of each variant, by pronoun family."""
    answer: str | None


class PromptRow(NamedTuple):
    """A prompt of the assignment file, which repeats each prompt eleven times."""

    number: int
    text: str
    state: str


def variant_rows(raw: bytes, config: str) -> list[VariantRows]:
    """Read the templates of a config, each with its text in every pronoun family.

    Raises:
        DataError: the file cannot be read, a family is unknown, or a template has two answers, lacks a family or has
            one twice.
    """
    name = FILES[config]
    texts_by_index: dict[int, dict[str, str]] = {}
    answers: dict[int, str | None] = {}
    for line, row in csv_rows(raw, name, _COLUMNS[config], remedy=REMEDY):
        index, family = _index(row["template_index"], f"{name}:{line}"), row["pronoun_family"]
        if family not in pronoun_families():
            have = ", ".join(pronoun_families())
            raise DataError(f"{name}:{line}: family '{family}' is not in the lexicon; have: {have}; {REMEDY}")
        texts = texts_by_index.setdefault(index, {})
        if family in texts:
            raise DataError(f"{name}:{line}: template {index} has family '{family}' twice; {REMEDY}")
        answer = row.get("simple_answer")
        if answers.setdefault(index, answer) != answer:
            raise DataError(f"{name}:{line}: template {index} has the answers {answers[index]} and {answer}; {REMEDY}")
        texts[family] = row["template"]
    for index, texts in texts_by_index.items():
        if missing := [family for family in pronoun_families() if family not in texts]:
            raise DataError(f"{name}: template {index} has no variant of {', '.join(missing)}; {REMEDY}")
    return [VariantRows(index, texts, answers[index]) for index, texts in texts_by_index.items()]


def prompt_rows(raw: bytes) -> list[PromptRow]:
    """Read the prompts of the assignment file, each once.

    Raises:
        DataError: the file cannot be read, or a prompt has two texts or states.
    """
    name = FILES["assignment"]
    prompts: dict[int, PromptRow] = {}
    for line, row in csv_rows(raw, name, _COLUMNS["assignment"], remedy=REMEDY):
        prompt = PromptRow(_index(row["index"], f"{name}:{line}"), row["template"], row["state"])
        if prompts.setdefault(prompt.number, prompt) != prompt:
            raise DataError(f"{name}:{line}: prompt {prompt.number} has two texts or states; {REMEDY}")
    return list(prompts.values())


def _index(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise DataError(f"{where}: template index '{text[:20]}' is no number of up to {_MOST_DIGITS} digits; {REMEDY}")
    return int(text)


class Tags(NamedTuple):
    """The corrections to a published template: the case of each slot, other words, and verbs."""

    cases: tuple[PronounCase, ...]
    others: Mapping[int, str]
    """Correct word for each slot that does not refer to the person, by index of the slot."""
    agreement: Mapping[int, str]
    """Plural form of each verb that must agree with *they*, by index of the word."""
    is_unclear: bool


@cache
def published_tags() -> Mapping[str, tuple[Tags, ...]]:
    """Return the tags of the published templates by config, in the order of the templates."""
    text = resources.files("builders.gifi").joinpath("published_tags.json").read_text(encoding="utf-8")
    data = cast(dict[str, Any], strict_json.loads(text, where="builders/gifi/published_tags.json"))
    return {config: tuple(map(_tags, data[config])) for config in ("recognition", "continuation", "math")}


def _tags(row: Mapping[str, Any]) -> Tags:
    return Tags(
        cases=tuple(CASE_TAGS[tag] for tag in row["cases"]),
        others={int(slot): word for slot, word in row.get("other", {}).items()},
        agreement={int(index): form for index, form in row.get("agree", {}).items()},
        is_unclear=row.get("doubt", False),
    )


def published_template(row: VariantRows, config: str) -> Template:
    """Return a template that gives exactly the published variants.

    Raises:
        DataError: the variants differ in more than pronouns.
    """
    template = Template(tuple(part for token in _tokens(row, config) for part in token if part != ""))
    for family, text in row.texts.items():
        if template.fill(family, as_published=True) != text:
            raise DataError(
                f"{FILES[config]}: template {row.number}, family '{family}': is not the 'he' variant with other "
                f"pronouns; {REMEDY}"
            )
    return template


def repaired_template(row: VariantRows, config: str, tags: Tags) -> Template:
    """Return the template with the cases, words and verbs that make every variant grammatical.

    Raises:
        DataError: the tags do not fit the template.
    """
    parts: list[Part] = []
    n_slots = 0
    for index, token in enumerate(_tokens(row, config)):
        plural = tags.agreement.get(index // 2)
        for part in token:
            if isinstance(part, Slot):
                other = tags.others.get(n_slots)
                parts.append(Slot(tags.cases[n_slots]) if other is None else other)
                n_slots += 1
            elif plural is not None and not isinstance(part, Verb):
                parts.extend(_agreeing(part, plural, contracted=any(isinstance(other, Slot) for other in token)))
            else:
                parts.append(part)
    if n_slots != len(tags.cases):
        raise DataError(f"{FILES[config]}: template {row.number} has {n_slots} slots, not {len(tags.cases)}; {REMEDY}")
    return Template(tuple(part for part in parts if part != ""))


def _tokens(row: VariantRows, config: str) -> list[tuple[Part, ...]]:
    """Split a template into tokens: words at even indices, the whitespace between them at odd ones."""
    he, xe = (re.split(r"(\s+)", row.texts[family].strip()) for family in ("he", "xe"))
    where = f"{FILES[config]}: template {row.number}"
    if len(he) != len(xe):
        raise DataError(f"{where}: its variants have different numbers of words; {REMEDY}")
    return [
        (of_he,) if of_he == of_xe else _slot_token(of_he, of_xe, where) for of_he, of_xe in zip(he, xe, strict=True)
    ]


def _slot_token(he: str, xe: str, where: str) -> tuple[Part, ...]:
    match = _SLOT.fullmatch(he)
    if match is not None:
        before, after = match["before"], match["after"]
        if xe.startswith(before) and xe.endswith(after):
            case = _CASES_BY_FORM.get((match["form"], xe[len(before) : len(xe) - len(after)]))
            if case is not None:
                return (before, Slot(case), after)
    raise DataError(f"{where}: '{he}' and '{xe}' are not one pronoun in two families; {REMEDY}")


def _agreeing(text: str, plural: str, *, contracted: bool) -> Iterator[Part]:
    match = (_CONTRACTED if contracted else _WORD).search(text)
    if match is None:
        yield text
        return
    singular = match[0]
    yield text[: match.start()]
    yield Verb(singular, plural.replace("'", singular[0]) if contracted else plural)
    yield text[match.end() :]


def variant_items(
    rows: Sequence[VariantRows], config: str, tags: Sequence[Tags], *, as_published: bool
) -> tuple[Sequence[Item], list[Reject]]:
    """Return the variants of templates, and rejects for templates with an unclear pronoun.

    Every variant is grammatical, or, if ``as_published`` is True, has the published string and a flag for each fault.
    Then no template is rejected.
    """
    frames: list[VariantFrame] = []
    rejects: list[Reject] = []
    for row in rows:
        # Also for its check: an error means that the file itself is faulty.
        published = published_template(row, config)
        of_row, source = tags[row.number], f"{FILES[config]}, template {row.number}"
        if of_row.is_unclear and not as_published:
            reason = "what the pronoun means cannot be told from the text"
            rejects.append(Reject(candidate=row.texts["he"], source_row=source, rule=UNCLEAR.name, reason=reason))
            continue
        repaired = repaired_template(row, config, of_row)
        answer = _ANSWERS.get(row.number, row.answer) if config == "math" else row.answer
        faults = _faults(published, repaired, of_row)
        faults[WRONG_ANSWER.name] = frozenset(pronoun_families()) if answer != row.answer else frozenset()
        frames.append(
            VariantFrame(
                template_id=f"gifi-{config}-{row.number:03}",
                template=published if as_published else repaired,
                source_row=source,
                antecedent=_ANTECEDENTS[row.number // _N_PER_ANTECEDENT] if config == "recognition" else None,
                answer=row.answer if as_published else answer,
                faults=faults if as_published else None,
            )
        )
    return (problem_items if config == "math" else text_items)(frames), rejects


def _faults(published: Template, repaired: Template, tags: Tags) -> dict[str, frozenset[str]]:
    """Return, for each flag, the pronoun families whose variant has the fault."""
    families = pronoun_families()
    wrong_case = frozenset(
        name
        for name, family in families.items()
        for slot, (case, needed) in enumerate(zip(published.cases, tags.cases, strict=True))
        if slot not in tags.others and family.forms[case] != family.forms[needed]
    )
    disagrees = any(isinstance(part, Verb) for part in repaired.parts)
    return {
        WRONG_CASE.name: wrong_case,
        OTHER_REFERENT.name: frozenset(families) if tags.others else frozenset(),
        NO_AGREEMENT.name: frozenset({"they"}) if disagrees else frozenset(),
    }


def assignment_items(rows: Sequence[PromptRow], *, as_published: bool) -> list[AssignmentItem]:
    """Turn the prompts of the assignment file into items, repaired unless ``as_published`` is True.

    Raises:
        DataError: the state of a prompt is unknown.
    """
    items = []
    for row in rows:
        repaired = row.text
        for wrong, right in _TYPOS.items():
            repaired = repaired.replace(wrong, right)
        repaired = _COLOUR.sub(r"likes the color \1,", _ARTICLE.sub("an ", repaired))
        if row.state not in _ATTRIBUTES:
            raise DataError(
                f"{FILES['assignment']}: prompt {row.number}: state '{row.state}' is not allowed; "
                f"have: {', '.join(_ATTRIBUTES)}; {REMEDY}"
            )
        items.append(
            AssignmentItem(
                item_id=f"gifi-assignment-{row.number:03}",
                text=row.text if as_published else repaired,
                attribute=_ATTRIBUTES[row.state],
                stereotype=_stereotype(row),
                source_row=f"{FILES['assignment']}, prompt {row.number}",
                flags=(TYPO.name,) if as_published and repaired != row.text else (),
            )
        )
    return items


def _stereotype(row: PromptRow) -> StereotypedGender:
    """Return the gender that the authors associate with a prompt.

    Only the order shows it: for each attribute, the first half of the prompts is feminine, the second half masculine.
    """
    # Occupations are 0-79, traits 80-119, hobbies 120-159 and colours 160-199.
    half, start = (40, 0) if row.state == "occupation" else (20, 80)
    return "feminine" if (row.number - start) // half % 2 == 0 else "masculine"
