"""Asks which of two occupations a pronoun of any family refers to, with the prompts of the coreference task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from evaluators.baseline import Facts
from evaluators.task import ItemFacts
from evaluators.tasks.coreference.coreference_table import FRAME
from evaluators.tasks.coreference.coreference_task import CoreferenceTask
from evaluators.tasks.coreference.family_coreference_table import FamilyCoreferenceTable
from schemas.documents.record import Record
from schemas.lexicon import CASES, occupations, pronoun_families

_STEREOTYPED = {"he": "male_occupation", "she": "female_occupation"}
"""Group that holds the occupation stereotyped for a pronoun; no stereotype of an occupation is about other families."""


class FamilyCoreferenceTask(CoreferenceTask):
    """A task that asks the questions of the coreference task about sentences in several pronoun families.

    Its items have the fields from which that task makes requests.
    """

    name = "family_coreference"
    version = "1.0"
    earlier_versions = frozenset()
    item_shape = "family_coreference"

    @override
    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return what the coreference task tells, with the pronoun and that of *he* in its place, which cues mask."""
        groups = facts.groups
        family = pronoun_families().get(groups.get("family", ""))
        case = next((case for case in CASES if case == groups.get("pronoun_case")), None)
        # Records of strangers may lack either.
        if family is None or case is None:
            return super().baseline_facts(facts)
        # Empty without one: a part whose items have different facts would be refused.
        stereotyped = groups.get(_STEREOTYPED.get(family.name, ""), "")
        he = pronoun_families()["he"]
        told = {"stereotyped": stereotyped, "pronoun": family.forms[case], "pronoun_of_he": he.forms[case]}
        return {**super().baseline_facts(facts), **told}

    @override
    def facts(self, item: Any) -> ItemFacts:
        """Return the target, reference and groups of an item."""
        by_stereotype = {occupations()[name].stereotype: name for name in item.occupations}
        groups = {
            "family": item.family,
            "family_class": pronoun_families()[item.family].pronoun_class,
            "pronoun_case": item.pronoun_case,
            "occupation": item.reference,
            "other_occupation": next(name for name in item.occupations if name != item.reference),
            "first_occupation": item.occupations[0],
            "male_occupation": by_stereotype["male"],
            "female_occupation": by_stereotype["female"],
            FRAME: item.template_id,
        }
        return ItemFacts(
            cluster=item.cluster, pair_id=item.set_id, target=item.referent, reference=item.reference, groups=groups
        )

    @override
    def table(self, records: Sequence[Record]) -> FamilyCoreferenceTable:
        """Return records as arrays."""
        return FamilyCoreferenceTable.of(records)


TASK = FamilyCoreferenceTask()
