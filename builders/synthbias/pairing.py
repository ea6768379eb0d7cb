"""Names of minimal pairs, and what the two sides of one tell about each other."""

from __future__ import annotations

from schemas import strict_json
from schemas.items.coreference import Stereotype
from schemas.lexicon import PronounCase, PronounGender, cases_of, families_of, occupations

KEY_LENGTH = 16


def pair_key(config: str, masked: str, roles: tuple[str, str]) -> str:
    """Name of a minimal pair.

    Args:
        config: type1 or type2.
        masked: The sentence with its pronoun masked.
        roles: The two occupations, the reference first: one text can ask about either of them.
    """
    return f"{config}-{strict_json.sha256([config, masked, list(roles)])[:KEY_LENGTH]}"


def template_key(masked: str) -> str:
    """Name of a template: the sentence without its occupations and pronouns."""
    return f"template-{strict_json.sha256(masked)[:KEY_LENGTH]}"


def item_id(pair_id: str, gender: PronounGender) -> str:
    """Name of one side of a minimal pair."""
    return f"{pair_id}-{gender}"


def cluster_of(one: str, other: str) -> str:
    """``<male-stereotyped>|<female-stereotyped>`` of two occupations in any order.

    Raises:
        ValueError: both stand on the same list.
    """
    male, female = sorted((one, other), key=lambda name: occupations()[name].stereotype, reverse=True)
    if occupations()[male].stereotype == occupations()[female].stereotype:
        raise ValueError(f"'{one}' and '{other}' are both {occupations()[male].stereotype}-stereotyped")
    return f"{male}|{female}"


def percent_gap(one: str, other: str) -> float:
    """How many points more women the female-stereotyped of two occupations has."""
    male, female = cluster_of(one, other).split("|")
    return occupations()[female].percent_women - occupations()[male].percent_women


def stereotype_of(occupation: str, gender: PronounGender) -> Stereotype:
    """Whether a pronoun agrees with the majority gender of the occupation that it means."""
    majority = "masculine" if occupations()[occupation].stereotype == "male" else "feminine"
    return "pro" if gender == majority else "anti"


def cases_of_form(pronoun: str) -> set[PronounCase]:
    """Every case that a form of *he* or *she* can be."""
    return {case for family in families_of(pronoun) for case in cases_of(pronoun, family)}


def case_of_pair(pronoun: str, counterpart: str) -> PronounCase | None:
    """The case of a pronoun, with the help of the one that stands in its place on the other side.

    Returns:
        The one case that both forms can be; null where it stays open or there is none.

    >>> case_of_pair("her", "him"), case_of_pair("her", "his"), case_of_pair("her", "he")
    ('accusative', 'possessive_dependent', None)
    """
    shared = cases_of_form(pronoun) & cases_of_form(counterpart)
    return shared.pop() if len(shared) == 1 else None
