"""Asks which of two occupations a pronoun of any family refers to, with the prompts of the coreference task.

The same sentence in each pronoun family is a set of items, which the table finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from typing_extensions import override

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.baseline import Facts
from evaluators.task import ItemFacts
from evaluators.tasks.coreference.coreference_task import FRAME, CoreferenceTable, CoreferenceTask
from schemas.documents.record import Record
from schemas.lexicon import CASES, occupations, pronoun_families

TWO_FAMILIES = "families"
"""Group of two items of a set: their families in the order of the lexicon, as in ``he/xe``."""
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


@dataclass(frozen=True, eq=False)
class FamilyCoreferenceTable(CoreferenceTable):
    """Records as arrays, one row per item; the id of an item's pair is that of its set."""

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The pronoun families that occur, in the order of the lexicon."""
        occurring = {*self.group_values("family")}
        return tuple(family for family in pronoun_families() if family in occurring)

    @override
    def group_values(self, key: str) -> tuple[str, ...]:
        if key == TWO_FAMILIES:
            return tuple("/".join(two) for two in combinations(self.families, 2))
        return super().group_values(key)

    @cached_property
    def sets(self) -> tuple[IntArray, FloatArray]:
        """The sets of items that differ only in the pronoun family, sorted by id.

        First the index of the first row of each set, shape (n_sets,), then the signed certainty of its member in each
        family, shape (n_sets, n_families): nan where the set has no such member, several, or one that is not measured,
        and in all families if the members do not share the reference occupation.
        """
        firsts, sets = np.unique(self._pair_codes, return_index=True, return_inverse=True)[1:]
        sets = sets.reshape(-1)
        family = self.coded("family")
        columns = np.array([self.families.index(name) if name in self.families else -1 for name in family.texts])[
            family.codes
        ]
        reference = self.coded("occupation").codes
        used = self.measured & (columns >= 0)
        cells = sets[used], columns[used]
        desirability = np.full((len(firsts), len(self.families)), np.nan)
        desirability[cells] = self.desirability[used]
        n_members = np.zeros(desirability.shape)
        np.add.at(n_members, cells, 1)
        desirability[n_members > 1] = np.nan
        desirability[sets[reference != reference[firsts][sets]]] = np.nan
        return firsts, desirability


TASK = FamilyCoreferenceTask()
