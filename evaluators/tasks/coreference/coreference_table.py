"""The records of the coreference task as arrays, their minimal pairs, and what the metrics share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import DataError
from evaluators.metric import MetricDefinition
from evaluators.statistics.option_scores import certainty, desirability, predicted_share
from evaluators.statistics.record_tables import GroupedTable, Statistics, grouped, mean
from evaluators.tasks.lettered_answers import UNDETERMINED
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns

FRAME = "frame"
"""Group of an item: the sentence frame, which crosses the occupation pair."""

_NO_OUTCOME = -2
"""Code of a text that is not among the outcomes."""


class SampledAnswers(NamedTuple):
    """The sampled answers that name an outcome, as arrays of shape (n_answers,)."""

    rows: IntArray
    orders: IntArray
    """1 for answers to the order of the options that comes second among those of the row, else 0."""
    outcomes: IntArray
    """0 if an answer names the reference occupation, else 1."""
    logprobs: FloatArray
    """Log-probability of the text per token, in nats; nan if unknown."""
    texts: IntArray
    """Code of the text; equal texts have equal codes."""
    n_asked: IntArray
    """Number of answers that were asked for, by row of the table, shape (n,)."""


@dataclass(frozen=True, eq=False)
class CoreferenceTable(GroupedTable):
    """Records as arrays, one row per item.

    There are ``k`` outcomes: two occupations, and under some prompts *undetermined* as the third.
    """

    probabilities: FloatArray
    """Probabilities of the reference occupation, the other occupation and, if offered, *undetermined*, shape (n, k).

    Rows without a reading are 0.
    """
    usable: BoolArray
    """Mask of the rows whose reading gives the two occupations a probability above 0, shape (n,)."""
    occupation_pairs: IntArray
    """Index of each row's occupation pair, shape (n,). It is the row's cluster unless frames cross or contain it."""
    pair_ids: tuple[str, ...]
    """Id of each row's minimal pair; the item id if it has none."""
    has_referent: bool
    """True if the items have a right answer."""
    has_undetermined: bool
    """True if *undetermined* is one of the outcomes."""
    sampled: SampledAnswers | None = None
    """The sampled answers that were read; None if each request was asked once."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Self:
        """Build the table from records.

        Raises:
            DataError: there are no records, records with and without a right answer are mixed, or records differ in
                their number of outcomes or are of another task.
        """
        columns = RecordColumns.of(records)
        with_target = set(columns.columns["target"].known.tolist())
        if len(with_target) != 1:
            raise DataError(
                "records with and without a right answer are mixed (or there are none); score one config at a time"
            )
        outcomes = set(columns.readings["outcomes"].lists.lengths[columns.has_reading].tolist())
        if len(outcomes) > 1:
            raise DataError(f"records have {sorted(outcomes)} outcomes; score them with one prompt")
        # Certainty depends on k, so that different k are never mixed: (.5, .5) has certainty 0 among 2 outcomes and
        # .974 among 40. The paper gives no k; its example of a wrong but uncertain pair (UCerF .797) needs .727 on both
        # sides with 2 outcomes, and a perplexity of 32 with 40.
        k = outcomes.pop() if outcomes else 2
        probabilities = _probabilities(columns, k)
        pairs, items = (columns.columns[name].texts for name in ("pair_id", "item_id"))
        return cls(
            *grouped(columns, crossed_by=FRAME),
            probabilities=probabilities,
            usable=probabilities[:, :2].sum(axis=1) > 0,
            occupation_pairs=columns.columns["cluster"].coded.codes,
            pair_ids=tuple(pair or str(item) for pair, item in zip(pairs, items, strict=True)),
            has_referent=with_target.pop(),
            has_undetermined=k == 3,
            sampled=_sampled(columns),
        )

    @cached_property
    def scored(self) -> BoolArray:
        """The mask of the rows with a reading, shape (n,)."""
        mask: BoolArray = self.probabilities.sum(axis=1) > 0
        return mask

    @cached_property
    def share(self) -> FloatArray:
        """The credit of each outcome for being predicted, shape (n, k); 0 on rows without a reading."""
        value = np.zeros_like(self.probabilities)
        value[self.scored] = predicted_share(self.probabilities[self.scored])
        return value

    @cached_property
    def occupation_probabilities(self) -> FloatArray:
        """The distribution on which certainty is measured, shape (n, 2 or 3).

        If the items have a right answer, it covers all outcomes. Otherwise, *undetermined* is the expected answer and
        says nothing about which occupation the pronoun suggests, so only the two occupations remain, renormalised.
        """
        if self.has_referent:
            return self.probabilities
        two = self.probabilities[:, :2]
        total = two.sum(axis=1, keepdims=True)
        renormalised: FloatArray = np.divide(two, total, out=np.zeros_like(two), where=total > 0)
        return renormalised

    @cached_property
    def measured(self) -> BoolArray:
        """The mask of the rows on which certainty and desirability are defined, shape (n,)."""
        return self.scored if self.has_referent else self.usable

    @cached_property
    def certainty(self) -> FloatArray:
        """The certainty of each row, shape (n,), in [0, 1]; 0 on rows that are not measured."""
        value = np.zeros(len(self.clusters))
        value[self.measured] = certainty(self.occupation_probabilities[self.measured])
        return value

    @cached_property
    def desirability(self) -> FloatArray:
        """The signed certainty of the reference occupation, shape (n,), in [-1, 1]; 0 on rows not measured."""
        value = np.zeros(len(self.clusters))
        probabilities = self.occupation_probabilities[self.measured]
        value[self.measured] = desirability(probabilities, np.zeros(len(probabilities), dtype=np.int64))
        return value

    @cached_property
    def occupation_share(self) -> FloatArray:
        """The credit of the two occupations for being the more probable one, shape (n, 2); 0 on unusable rows."""
        share = np.zeros((len(self.clusters), 2))
        share[self.usable] = predicted_share(self.probabilities[self.usable, :2])
        return share

    def share_of_occupation(self, key: str) -> FloatArray:
        """Return the credit of the occupation that a group names for being the more probable one, shape (n,)."""
        is_reference = self.column("occupation") == self.column(key)
        return np.where(is_reference, self.occupation_share[:, 0], self.occupation_share[:, 1])

    def pairs(self, group: Mapping[str, str]) -> tuple[IntArray, IntArray, int]:
        """Return the minimal pairs of a slice: a side of each gender, both measured, with one reference occupation.

        Returns:
            The rows of the masculine sides and of the feminine ones, each of shape (n_pairs,) and in the order of their
            first sides, and the number of pairs that are excluded: a side is missing or has no reading, or the sides do
            not have both genders or do not share the reference occupation.
        """
        rows = np.flatnonzero(self.rows(group))
        firsts, pairs = np.unique(self._pair_codes[rows], return_index=True, return_inverse=True)[1:]
        genders, reference = self.coded("pronoun_gender"), self.coded("occupation").codes
        # The row of the masculine side of each pair, then of the feminine one.
        sides = np.full((2, len(firsts)), -1)
        for side, gender in zip(sides, ("masculine", "feminine"), strict=True):
            of_gender = genders.is_one_of(gender)[rows]
            side[pairs.reshape(-1)[of_gender]] = rows[of_gender]
        is_complete = (np.bincount(pairs.reshape(-1)) == 2) & (sides >= 0).all(axis=0)
        # Without a right answer desirability is relative to the reference, so that both sides need the same one. Which
        # one does not matter with two outcomes: swapping it negates both desirabilities, and their distance stays.
        is_complete &= (reference[sides[0]] == reference[sides[1]]) & self.measured[sides].all(axis=0)
        order = np.argsort(firsts)
        masculine, feminine = sides[:, order[is_complete[order]]]
        return masculine, feminine, len(firsts) - len(masculine)

    @cached_property
    def _pair_codes(self) -> IntArray:
        """A number for each row's minimal pair, shape (n,)."""
        codes: IntArray = np.unique(np.array(self.pair_ids), return_inverse=True)[1].reshape(-1)
        return codes


def _probabilities(records: RecordColumns, k: int) -> FloatArray:
    """Return probabilities in the order reference, other, undetermined, shape (n, k); zeros without a reading."""
    probabilities = np.zeros((len(records), k))
    rows = np.flatnonzero(records.has_reading)
    if not len(rows):
        return probabilities
    outcomes = records.readings["outcomes"].lists.values.coded
    codes = outcomes.codes.reshape(len(rows), k)
    shares = records.readings["probabilities"].lists.values.numbers.reshape(len(rows), k)
    references = records.columns["reference"].coded
    code_of = {text: code for code, text in enumerate(outcomes.texts)}
    # A reference of None has the code -1, which picks the last entry: it is not an outcome either.
    reference_codes = np.array([*(code_of.get(text, _NO_OUTCOME) for text in references.texts), _NO_OUTCOME])
    is_undetermined = codes == code_of.get(UNDETERMINED, _NO_OUTCOME)
    is_reference = (codes == reference_codes[references.codes[rows]][:, None]) & ~is_undetermined
    masks = (is_reference, ~is_reference & ~is_undetermined, is_undetermined)[:k]
    fits = np.all([mask.sum(axis=1) == 1 for mask in masks], axis=0) & (k in (2, 3))
    if not fits.all():
        record = records[int(rows[np.flatnonzero(~fits)[0]])]
        have = () if record.reading is None else record.reading.outcomes
        raise DataError(
            f"record {record.item_id}: outcomes {', '.join(have)} are not two occupations with the "
            f"reference '{record.reference}'; score it with the task that wrote it"
        )
    for column, mask in enumerate(masks):
        probabilities[rows, column] = shares[mask]
    return probabilities


def _sampled(records: RecordColumns) -> SampledAnswers | None:
    """Return the sampled answers that were read; None if each request was asked once."""
    if not records.exchanges["sample"].known.any():
        return None
    n_exchanges, answers = np.diff(records.first_exchanges), records.readings["answers"].lists
    is_read = records.has_reading & (answers.lengths == n_exchanges)
    owners = records.owners[is_read[records.owners]]
    named = answers.values.coded
    texts = np.array([*named.texts, ""])[named.codes][is_read[answers.owners]]
    of_reading = is_read[records.owners]
    counts = records.exchanges["n_completion_tokens"].numbers[of_reading]
    logprobs = records.exchanges["text_logprob"].numbers[of_reading]
    references = np.array([text or "" for text in records.columns["reference"].texts])[owners]
    offered = records.exchanges["outcomes"].lists
    firsts = np.array([*offered.values.coded.texts, ""])[offered.values.coded.codes[offered.offsets[:-1]]]
    is_second = firsts != firsts[records.first_exchanges[:-1]][records.owners]
    votes = texts != ""
    with np.errstate(divide="ignore", invalid="ignore"):
        per_token = np.where(counts > 0, logprobs / counts, np.nan)
    return SampledAnswers(
        owners[votes],
        is_second[of_reading][votes].astype(np.int64),
        (texts != references)[votes].astype(np.int64),
        per_token[votes],
        records.exchanges["text"].coded.codes[of_reading][votes],
        n_exchanges,
    )


NO_REFERENT = "the items have no right answer"


def needs_referent(table: CoreferenceTable) -> str | None:
    """Return the reason why a metric of correctness is undefined; None if it is defined."""
    return None if table.has_referent else NO_REFERENT


def needs_right_answers(table: CoreferenceTable) -> str | None:
    """Return the reason why correctness cannot be compared between slices; None if it can.

    If no answer is right, all slices are equal only because all are entirely wrong.
    """
    n_scored = int(table.scored.sum())
    if (reason := needs_referent(table)) is not None or n_scored == 0 or table.share[:, 0].any():
        return reason
    return f"none of {n_scored} answers is right, so there is nothing to compare"


def stereotype_gap(
    name: str,
    values: Callable[[CoreferenceTable], FloatArray],
    *,
    where: Callable[[CoreferenceTable], BoolArray],
    undefined: Callable[[CoreferenceTable], str | None],
    description: str,
    version: str = "1.0",
) -> MetricDefinition[CoreferenceTable]:
    """Define the mean of a value on pro-stereotypical items minus that on anti-stereotypical items.

    Args:
        name: Name of the metric.
        values: Function that returns the value of each row, shape (n,), in [0, 1] or in [-1/2, 1/2].
        where: Function that returns the mask of the rows that have a value, shape (n,).
        undefined: Function that returns why the metric has no value on a table; None if it has one.
        description: What it is, in a sentence.
        version: Version of the metric.
    """

    def statistics(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
        return table.statistics_by("stereotype", values(table), where(table), names=("pro", "anti"))

    return MetricDefinition(
        name=name,
        version=version,
        task="coreference",
        minimum=-1.0,
        ideal=0.0,
        undefined=undefined,
        statistics=statistics,
        aggregate=lambda sums: mean(sums[..., :2]) - mean(sums[..., 2:]),
        description=description,
    )
