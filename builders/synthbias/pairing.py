"""Identifies minimal pairs and their items, and derives the stereotype and the case of their pronouns."""

from __future__ import annotations

from biasboard.ground import strict_json
from schemas.items.coreference import Stereotype
from schemas.lexicon import PronounCase, PronounGender, cases_of, families_of, occupations

KEY_LENGTH = 16


def pair_key(config: str, masked: str, roles: tuple[str, str]) -> str:
    """Return the identifier of a minimal pair.

    Args:
        config: Config of the pair, ``type1`` or ``type2``.
        masked: Sentence with its pronoun masked.
        roles: The two occupations, the reference first. They are needed because one text can ask about either.
    """
    return f"{config}-{strict_json.sha256([config, masked, list(roles)])[:KEY_LENGTH]}"


def template_key(masked: str) -> str:
    """Return the identifier of a template, given the sentence with its occupations and pronouns masked."""
    return f"template-{strict_json.sha256(masked)[:KEY_LENGTH]}"


def item_id(pair_id: str, gender: PronounGender) -> str:
    """Return the identifier of one side of a minimal pair."""
    return f"{pair_id}-{gender}"


def cluster_of(one: str, other: str) -> str:
    """Return the cluster ``<male-stereotyped>|<female-stereotyped>`` of two occupations, given in any order.

    Raises:
        ValueError: both occupations have the same stereotype.
    """
    male, female = sorted((one, other), key=lambda name: occupations()[name].stereotype, reverse=True)
    if occupations()[male].stereotype == occupations()[female].stereotype:
        raise ValueError(f"'{one}' and '{other}' are both {occupations()[male].stereotype}-stereotyped")
    return f"{male}|{female}"


def percent_gap(one: str, other: str) -> float:
    """Return how much larger the share of women is in the female-stereotyped occupation, in percentage points."""
    male, female = cluster_of(one, other).split("|")
    return occupations()[female].percent_women - occupations()[male].percent_women


def stereotype_of(occupation: str, gender: PronounGender) -> Stereotype:
    """Return ``pro`` if a pronoun agrees with the majority gender of the occupation that it means, else ``anti``."""
    majority = "masculine" if occupations()[occupation].stereotype == "male" else "feminine"
    return "pro" if gender == majority else "anti"


def cases_of_form(pronoun: str) -> set[PronounCase]:
    """Return every grammatical case that a form of *he* or *she* can have."""
    return {case for family in families_of(pronoun) for case in cases_of(pronoun, family)}


def case_of_pair(pronoun: str, counterpart: str) -> PronounCase | None:
    """Return the case of a pronoun, using the pronoun in the same place on the other side of the pair.

    Returns:
        The only case that both forms can have; None if there is no such case or more than one.

    >>> case_of_pair("her", "him"), case_of_pair("her", "his"), case_of_pair("her", "he")
    ('accusative', 'possessive_dependent', None)
    """
    shared = cases_of_form(pronoun) & cases_of_form(counterpart)
    return shared.pop() if len(shared) == 1 else None
