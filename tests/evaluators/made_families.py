"""Items and records of coreference in sets of pronoun families that the tests make themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluators.task import load_task
from schemas.documents.record import Record
from schemas.items.family_coreference import FamilyCoreferenceItem
from schemas.lexicon import pronoun_families
from tests.evaluators import made_data
from tests.evaluators.made_data import pairs_of_occupations
from tests.leaderboard.synthetic import choice_exchange

TASK = load_task("family_coreference")
FAMILIES = tuple(pronoun_families())


def made_set(
    number: int, names: Sequence[str] = FAMILIES, *, ambiguous: bool = False, frame: str = "met"
) -> list[FamilyCoreferenceItem]:
    """One sentence in some families; two sets share their occupations, which rotate as order and referent do."""
    male, female = pairs_of_occupations(number // 2 + 1)[-1]
    first, second = (male, female) if number % 2 else (female, male)
    referent = male if number // 2 % 2 else female
    items = []
    for family in names:
        pronoun = pronoun_families()[family].forms["accusative"]
        sentence = f"The {first} and the {second} took {pronoun} to room {number}."
        items.append(
            FamilyCoreferenceItem(
                item_id=f"set-{number}-{family}",
                set_id=f"set-{number}",
                cluster=f"{male}|{female}",
                sentence=sentence,
                pronoun=pronoun,
                pronoun_start=sentence.index(f" {pronoun} ") + 1,
                pronoun_case="accusative",
                family=family,  # type: ignore[arg-type]
                occupations=(first, second),
                referent=None if ambiguous else referent,
                reference=first if ambiguous else referent,
                template_id=frame,
                source_row=None,
                flags=(),
            )
        )
    return items


def record_of(item: FamilyCoreferenceItem, probability: float | None) -> Record:
    """The record of an item whose reference occupation has a probability; None for a refusal."""
    outcomes = (item.reference, TASK.facts(item).groups["other_occupation"])
    exchange = choice_exchange(item.item_id, outcomes, probability)
    record = made_data.record_of(TASK, item, (exchange,), "sum")
    return replace(record, config="type1" if item.referent is None else "type2")
