"""Items and records of coreference in sets of pronoun families that the tests make themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from biasboard.ground import strict_json
from evaluators.task import load_task
from schemas.documents.record import Exchange, Record
from schemas.items.family_coreference import FamilyCoreferenceItem
from schemas.lexicon import pronoun_families
from tests.evaluators import made_data
from tests.evaluators.made_data import pairs_of_occupations

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
    options = tuple(f" {outcome}." for outcome in outcomes)
    logprobs: tuple[float, ...] = ()
    if probability is not None:
        logprobs = tuple(-math.inf if p == 0 else math.log(p) for p in (probability, 1 - probability))
    exchange = Exchange(
        kind="choice",
        request_sha256=strict_json.sha256(item.item_id),
        prompt=None,
        outcomes=outcomes,
        options=options,
        option_logprobs=logprobs,
        option_end_logprobs=(None,) * len(logprobs),
        option_token_counts=(None,) * len(logprobs),
        option_byte_counts=tuple(len(option.encode()) for option in options),
        option_is_bound=(),
        n_moved_tokens=0,
        text=None,
        finish_reason=None,
        sample=None,
        n_prompt_tokens=None,
        n_completion_tokens=None,
        status="refused" if probability is None else "answered",
        error="the model declined" if probability is None else None,
    )
    record = made_data.record_of(TASK, item, (exchange,), "sum")
    return replace(record, config="type1" if item.referent is None else "type2")
