"""The records of the coreference task for pronoun families as arrays, and their sets of one item per family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.tasks.coreference.coreference_table import CoreferenceTable
from schemas.lexicon import pronoun_families

TWO_FAMILIES = "families"
"""Group of two items of a set: their families in the order of the lexicon, as in ``he/xe``."""


class FamilySets(NamedTuple):
    """The sets of items that differ only in the pronoun family."""

    rows: IntArray
    """Index of the first row of each set, shape (n_sets,)."""
    desirability: FloatArray
    """Signed certainty of the member in each family, shape (n_sets, n_families); nan where the set has no such member,
    several, or one that is not measured, and in all families if the members do not share the reference occupation."""


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
    def sets(self) -> FamilySets:
        """The sets, sorted by id."""
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
        return FamilySets(firsts, desirability)
