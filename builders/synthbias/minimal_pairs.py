"""Minimal pairs: their identity, their two items, what they mention, and selections spread over the design."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground import strict_json
from builders.dataset.output import DraftSplit, round_robin, take_units
from builders.pronoun_case import cases_of_form
from schemas.documents.dataset import Reject
from schemas.items.coreference import CoreferenceItem, Stereotype
from schemas.items.family_coreference import FamilyCoreferenceItem
from schemas.lexicon import PronounCase, PronounGender, occupations, pronoun_families

_KEY_LENGTH = 16
"""Number of hexadecimal digits of a hash in a key."""

Config: TypeAlias = Literal["type1", "type2"]
"""Type of a sentence: open (type 1) or settled (type 2)."""
CONFIGS: tuple[Config, ...] = ("type1", "type2")
Position: TypeAlias = Literal["first", "second"]
"""Position of an occupation among the two of a sentence."""
GENDERS: tuple[PronounGender, ...] = ("masculine", "feminine")
_FAMILY_OF_GENDER: dict[PronounGender, str] = {"masculine": "he", "feminine": "she"}


class CheckedItems(NamedTuple):
    """The items and rejects that result from checking candidates for minimal pairs."""

    items: tuple[CoreferenceItem, ...]
    rejects: tuple[Reject, ...]


def pair_key(config: str, without_pronoun: str, roles: tuple[str, str]) -> str:
    """Return the identifier of a minimal pair.

    Args:
        config: Config of the pair, ``type1`` or ``type2``.
        without_pronoun: Sentence with its pronoun masked.
        roles: The two occupations, the reference first. Without them the key would not be unique: in type 1 of the
            published SynthBias, two texts occur with either occupation as the reference.
    """
    return f"{config}-{strict_json.sha256([config, without_pronoun, list(roles)])[:_KEY_LENGTH]}"


def template_key(template: str) -> str:
    """Return the identifier of a template: a sentence with its occupations and pronouns masked."""
    return f"template-{strict_json.sha256(template)[:_KEY_LENGTH]}"


def cluster_of(occupation: str, other: str) -> str:
    """Return the cluster ``<male-stereotyped>|<female-stereotyped>`` of two occupations, given in either order.

    Raises:
        ValueError: both occupations have the same stereotype.
    """
    male, female = sorted((occupation, other), key=lambda name: occupations()[name].stereotype, reverse=True)
    if occupations()[male].stereotype == occupations()[female].stereotype:
        raise ValueError(f"'{occupation}' and '{other}' are both {occupations()[male].stereotype}-stereotyped")
    return f"{male}|{female}"


def percent_gap(occupation: str, other: str) -> float:
    """Return how much larger the share of women is in the female-stereotyped occupation, in percentage points."""
    male, female = cluster_of(occupation, other).split("|")
    return occupations()[female].percent_women - occupations()[male].percent_women


def stereotype_of(occupation: str, gender: PronounGender) -> Stereotype:
    """Return ``pro`` if a pronoun agrees with the majority gender of the occupation it refers to, else ``anti``."""
    majority = "masculine" if occupations()[occupation].stereotype == "male" else "feminine"
    return "pro" if gender == majority else "anti"


def case_of_pair(pronoun: str, counterpart: str) -> PronounCase | None:
    """Return the case of a pronoun, inferred from its counterpart on the other side of the pair.

    Returns:
        The only case that both forms can have; None if there is none or more than one.

    >>> case_of_pair("her", "him"), case_of_pair("her", "his"), case_of_pair("her", "he")
    ('accusative', 'possessive_dependent', None)
    """
    shared = cases_of_form(pronoun) & cases_of_form(counterpart)
    return next(iter(shared)) if len(shared) == 1 else None


def referent_position(item: CoreferenceItem) -> Position | None:
    """Return the position of the occupation that the pronoun of an item means; None if that is open."""
    if item.referent is None:
        return None
    return "first" if item.referent == item.occupations[0] else "second"


class Slotted(NamedTuple):
    """A sentence about two occupations, with a slot for a pronoun in a given case.

    Both sides of a pair are filled from it. Exchanging the pronoun in a finished sentence goes wrong with *her*, which
    can be *him* or *his*: at least 48 sentences of the published SynthBias have the wrong one.
    """

    config: Config
    before: str
    """Text up to the slot, with the space before it."""
    case: PronounCase
    after: str
    """Text after the slot, with the space or punctuation that follows it."""
    first: str
    """Occupation that is mentioned first."""
    second: str
    referent: Position | None
    """Position of the occupation that is meant; None if that is open."""

    @property
    def meant(self) -> str | None:
        """The occupation that the pronoun means; None if that is open."""
        return {"first": self.first, "second": self.second, None: None}[self.referent]

    def filled(self, gender: PronounGender) -> str:
        """Return the sentence with the pronoun of a gender."""
        return f"{self.before}{pronoun_of(self.case, gender)}{self.after}"


def pronoun_of(case: PronounCase, gender: PronounGender) -> str:
    """Return the pronoun of a gender in a case."""
    return pronoun_families()[_FAMILY_OF_GENDER[gender]].forms[case]


def items_of(slotted: Slotted, *, template_id: str | None, source_row: str | None) -> tuple[CoreferenceItem, ...]:
    """Return both sides of a minimal pair, the masculine one first."""
    reference = slotted.meant or slotted.first
    other = slotted.second if reference == slotted.first else slotted.first
    masculine = slotted.filled("masculine")
    pair_id = pair_key(slotted.config, masked(masculine, mentions_in(masculine).pronouns), (reference, other))
    return tuple(
        CoreferenceItem(
            item_id=f"{pair_id}-{gender}",
            pair_id=pair_id,
            cluster=cluster_of(slotted.first, slotted.second),
            sentence=slotted.filled(gender),
            pronoun=pronoun_of(slotted.case, gender),
            pronoun_start=len(slotted.before),
            pronoun_case=slotted.case,
            pronoun_gender=gender,
            occupations=(slotted.first, slotted.second),
            referent=slotted.meant,
            reference=reference,
            stereotype=None if slotted.meant is None else stereotype_of(slotted.meant, gender),
            template_id=template_id,
            source_row=source_row,
            flags=(),
        )
        for gender in GENDERS
    )


def split_of(config: Config, items: Iterable[CoreferenceItem]) -> DraftSplit[CoreferenceItem]:
    """Return the items of a config as its split *test*.

    An item has no field for its config: the config is the beginning of its pair id, see :func:`pair_key`.
    """
    return DraftSplit(
        config=config,
        split="test",
        item_shape="coreference",
        items=[item for item in items if item.pair_id.startswith(config)],
    )


def take_pairs(
    splits: Sequence[DraftSplit[CoreferenceItem]], limit: int | None
) -> tuple[DraftSplit[CoreferenceItem], ...]:
    """Keep at most ``limit`` items: whole minimal pairs, equally many per split, spread over the occupation pairs.

    Args:
        splits: Splits in which every pair is complete. Consecutive pairs of a cluster should come from different cells
            of the design.
        limit: Maximum number of items; an odd limit keeps one item less. None keeps everything.

    Returns:
        The splits with the kept items in their original order.

    Raises:
        ConfigError: the limit is too small for one pair per split.
    """
    return take_units(splits, limit, unit_name="pair", order=spread)


def spread(split: DraftSplit[CoreferenceItem | FamilyCoreferenceItem]) -> list[str]:
    """Order the units of a split: one from each occupation pair, then a second one from each, and so on."""
    units: dict[str, dict[str, None]] = {}
    for item in split.items:
        units.setdefault(item.cluster, {})[item.unit] = None
    clusters = sorted(units, key=lambda name: hashlib.sha256(name.encode()).digest())
    # Each occupation pair starts one cell later than the previous one, so that a small selection covers all cells.
    rotated = []
    for rank, cluster in enumerate(clusters):
        ids = list(units[cluster])
        start = rank % len(ids)
        rotated.append(ids[start:] + ids[:start])
    return list(round_robin(rotated))


PRONOUN_MASK = "<pronoun>"
OCCUPATION_MASK = "<occupation>"
_SIGN = re.compile(r"[^\w\s<>]")


class Mention(NamedTuple):
    """An occupation or pronoun in a text, with its start and end as offsets in characters."""

    text: str
    start: int
    end: int


class Mentions(NamedTuple):
    """Everything of the lexicon that a text mentions, each in the order of the text."""

    occupations: list[Mention]
    """The 40 occupations, in lower case except *CEO*."""
    pronouns: list[Mention]
    """The forms of *he* and *she*, in upper or lower case."""


def mentions_in(text: str) -> Mentions:
    """Return every mention of an occupation and of a form of *he* or *she*."""
    mentions = Mentions([], [])
    for match in _pattern().finditer(text):
        mentions[match.lastindex == 2].append(Mention(match[0], match.start(), match.end()))
    return mentions


@cache
def _pattern() -> re.Pattern[str]:
    """Return one pattern for all mentions, so that a text is searched once; its groups: occupations, pronouns."""
    by_letter: dict[str, list[str]] = {}
    for name in sorted(occupations(), key=len, reverse=True):
        by_letter.setdefault(name[0], []).append(re.escape(name[1:]))
    # Grouped by first letter, the alternatives fail at once at most words.
    names = "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())
    forms = {form for family in ("he", "she") for form in pronoun_families()[family].forms.values()}
    pronouns = "|".join(sorted(forms, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:({names})|(?=[hsHS])((?i:{pronouns})))(?!\w)")


def masked(text: str, mentions: Iterable[Mention]) -> str:
    """Return a text with some of its mentions masked."""
    # From the end, so that the offsets of earlier mentions stay valid.
    for mention in sorted(mentions, key=lambda mention: mention.start, reverse=True):
        mask = OCCUPATION_MASK if mention.text in occupations() else PRONOUN_MASK
        text = text[: mention.start] + mask + text[mention.end :]
    return text


def wording(text: str) -> str:
    """Return a text in lower case, without punctuation and with single spaces; masks stay."""
    return " ".join(_SIGN.sub("", text.casefold()).split())
