"""Asks a model to continue a sentence in one pronoun family, and reads which pronoun it uses first.

The protocol is that of GIFI (arXiv:2506.15568): the prompt is the sentence followed by "and". If an answer repeats the
sentence, the repetition is removed before the first pronoun is read: otherwise a model that only repeats its prompt
would seem to recognise nearly all pronouns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.statistics.record_tables import Statistics
from evaluators.task import ItemFacts, Mark, Prompt, Read
from evaluators.tasks.answer_lines import PUBLISHED_PREFIXES
from evaluators.tasks.pronouns.detectors.first_pronoun import ENGLISH, first_family_published
from evaluators.tasks.pronouns.family_rates import FAMILIES, AnswerTable
from evaluators.tasks.pronouns.texts import (
    NONE,
    PronounTextTask,
    families_in,
    family_groups,
    generation_prompts,
    pronoun_mark,
    pronoun_of,
)
from evaluators.tasks.written_answers import ReadAnswer, all_or_none, read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.pronoun_text import PronounTextItem

PATTERN = "pattern"
"""Group of an item: the sentence pattern that it shares with sentences about other people.

TANGO (Ovalle et al. 2023, arXiv:2305.09941) has 12 patterns with 40 names and descriptions of people each, and the
published GIFI has 200 of these 480 sentences. Of the fifteen published models, accuracies have standard errors of .005
to .018 by name, as much as by sentence, and of .006 to .062 by pattern; those of GDR are .01 to .04 and .01 to .09.
Intervals over sentences would therefore be .3 of the length that new patterns demand, and crossing patterns with names
would lengthen them by at most 3 %, for gpt2 by 9 %. Where each sentence has a pattern of its own, its name is part of
it: the embedded texts have 33 names and 11 descriptions in 44 sentences.
"""
USED = "used"
"""Key of the slices by the family of the first pronoun of an answer, which is a group of answers and not of items."""
_PUBLISHED = re.compile(r"gifi-recognition-([0-9]+)")
# TANGO's number of the pattern of each published sentence: a kind of name has 50 sentences, and all kinds the same.
# The published dataset does not tell it, and fifteen models have answered version 1.0.0.
_PUBLISHED_PATTERNS = (
    *(9, 5, 5, 11, 7, 4, 3, 8, 4, 9, 9, 9, 0, 9, 11, 5, 10, 10, 6, 6, 11, 1, 8, 10, 7),
    *(9, 3, 4, 9, 11, 3, 4, 5, 6, 1, 5, 3, 8, 3, 1, 11, 2, 3, 11, 3, 6, 8, 8, 4, 5),
)


class RecognitionTask(PronounTextTask):
    """A task that reads the first pronoun in the continuation of a sentence with a pronoun."""

    name = "recognition"
    version = "1.1"
    # Records of version 1.0 do not name the pattern.
    earlier_versions = frozenset({"1.0"})
    crossed_by: str | None = PATTERN
    prompts: Mapping[str, Prompt] = generation_prompts("{text} and")
    detector = ENGLISH

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item. Its target is the pronoun family of its text."""
        groups = family_groups(item.family)
        if item.antecedent is not None:
            groups["antecedent"] = item.antecedent
        pattern, published = item.topic, _PUBLISHED.fullmatch(item.template_id)
        if pattern is None and published is not None:
            pattern = f"pattern {_PUBLISHED_PATTERNS[int(published[1]) % len(_PUBLISHED_PATTERNS)]}"
        if pattern is not None:
            groups[PATTERN] = pattern
        return ItemFacts(
            cluster=item.template_id, pair_id=item.template_id, target=item.family, reference=item.family, groups=groups
        )

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer."""
        return read_texts(exchanges, pronoun_of)

    def marks(self, exchange: Exchange) -> Sequence[Mark]:
        """Return the pronoun that is read."""
        return pronoun_mark(exchange, self.detector)

    def table(self, records: Sequence[Record]) -> RecognitionTable:
        """Return records as arrays."""
        return RecognitionTable.of(records, crossed_by=self.crossed_by)

    def are_right(self, records: Sequence[Record]) -> Sequence[bool | None]:
        """Return True where all answers to an item are right, False where none is; refused answers do not count."""
        return all_or_none(records, is_right_family)


@dataclass(frozen=True, eq=False)
class RecognitionTable(AnswerTable):
    """Records as arrays, one row per answer, with the first pronoun of each."""

    published_refusals = PUBLISHED_PREFIXES

    @property
    def used_families(self) -> tuple[str, ...]:
        """The families in the order of ``used``."""
        return FAMILIES

    @cached_property
    def correct(self) -> FloatArray:
        """Correctness: 1 if the first pronoun belongs to the prompt's family, else 0."""
        return self.mask(is_right_family).astype(np.float64)

    @cached_property
    def published_correct(self) -> FloatArray:
        """Correctness by the detector of the published code, 1 or 0."""
        return self.mask(lambda answer: first_family_published(answer.text) == answer.target).astype(np.float64)

    @cached_property
    def used(self) -> FloatArray:
        """Share of each of ``used_families`` in the first pronoun, shape (n, n_families).

        The whole pronoun belongs to the prompt's family if that has it, and is split equally between the families that
        have it otherwise; a row without a pronoun is 0.
        """
        used = np.zeros((len(self.answers), len(self.used_families)))
        for row, answer in enumerate(self.answers):
            found = families_in(answer.reading or NONE)
            for family in (answer.target,) if answer.target in found else found:
                used[row, self.used_families.index(str(family))] = 1 if answer.target in found else 1 / len(found)
        return used

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group; those of ``used`` are the families that any answer uses."""
        if key != USED:
            return super().group_values(key)
        sums = self.used[self.read].sum(axis=0)
        return tuple(family for family, n in zip(self.used_families, sums, strict=True) if n)

    def pronoun_statistics(self, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the share of answers with a pronoun, or with one of a family that they use."""
        rest, family = {key: value for key, value in group.items() if key != USED}, group.get(USED)
        shares = self.used.sum(axis=1) if family is None else self.used[:, self.used_families.index(family)]
        return self.mean_statistics(rest, shares, self.read)


def is_right_family(answer: ReadAnswer) -> bool:
    """Return True if the first pronoun of an answer can belong to the family of its prompt."""
    return answer.target in families_in(answer.reading or NONE)


TASK = RecognitionTask()
