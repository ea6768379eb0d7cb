"""The base class of tasks with one request per item, whose reading is a distribution over labels.

An answer in words gives all probability to the label that it names. The class reads answers, builds tables, and reports
how a model uses the labels of one part of a suite, and how often it is right in each class of a task. arXiv:2603.15654
shows such tables of the classes (3 to 6, and 8), before and after its own correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from biasboard.ground.columns import BoolArray
from evaluators.baseline import Facts
from evaluators.calibrator import LabelAnswers, calibrations
from evaluators.metric import MetricInputs
from evaluators.statistics.option_scores import are_certain_choices, predicted_share
from evaluators.task import (
    ClassReport,
    CorrectedClasses,
    LabelUse,
    MeasuresParts,
    PartReport,
    Read,
    ReportsLabels,
    quoted,
)
from evaluators.tasks.labels.label_answers import BIAS, TARGET, TEST, label_answers
from evaluators.tasks.labels.label_measures import MEASURES
from evaluators.tasks.labels.label_tables import IN_WORDS, ConfigTable, SuiteTable, corrections_of
from evaluators.tasks.labels.metric_variants import LabelTable, Variant
from evaluators.tasks.labels.written_labels import read_label
from evaluators.tasks.ordered_options import read_choice
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.documents.run_files import FittedCorrection
from schemas.files.record_columns import RecordColumns

_MEASURES = ("accuracy", "gini", "cobias_paper", "top_class_dominance")
"""Measures of the tables in the paper, and the accuracy over all items, which it does not print."""


class LabelTask(MeasuresParts, ReportsLabels):
    """A task that turns answers into distributions over labels, and these into tables and reports."""

    # certain_readings() computes the same on columns: option_probabilities() and are_certain_choices() must agree.
    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the distribution over the labels, or the label that an answer in words names."""
        (exchange,) = exchanges
        if exchange.status == "answered" and exchange.kind == "generate":
            answer = read_label(exchange.text or "", exchange.outcomes, is_cut=exchange.finish_reason == "length")
            if answer.outcome is None:
                reason = f"the answer {'declines' if answer.refuses else 'names no one label'}: {quoted(exchange.text)}"
                return Read(status="refused" if answer.refuses else "unparsed", reason=reason)
            shares = tuple(float(label == answer.outcome) for label in exchange.outcomes)
            reading = Reading(outcomes=exchange.outcomes, probabilities=shares, answers=(answer.outcome,))
            return Read(status="scored", reading=reading)
        return read_choice(exchange, normalisation)

    def certain_readings(self, records: Sequence[Record], normalisation: Normalisation | None) -> BoolArray:
        """Return the mask of the records whose distribution follows from the log-probabilities of their options."""
        if normalisation is None:  # Answers in words are read one by one.
            return np.zeros(len(records), dtype=np.bool_)
        return are_certain_choices(RecordColumns.of(records), normalisation)

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the right label; "" where none is right."""
        return {TARGET: facts.target or ""}

    def are_right(self, records: Sequence[Record]) -> Sequence[bool | None]:
        """Return True where the right label is the most probable one, False where it is not, None where it ties."""
        answers = label_answers(RecordColumns.of(records))
        judged = np.flatnonzero(answers.has_reading & (answers.targets >= 0))
        credits = predicted_share(answers.probabilities[judged])[np.arange(len(judged)), answers.targets[judged]]
        verdicts: list[bool | None] = [None] * len(records)
        for row, credit in zip(judged.tolist(), credits.tolist(), strict=True):
            verdicts[row] = None if 0 < credit < 1 else credit == 1
        return verdicts

    def table_of_parts(
        self,
        parts: Iterable[RecordColumns],
        inputs: MetricInputs,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> LabelTable:
        """Return the records of a config as arrays, or the measures of each part of a suite; one row per part."""
        if is_suite:
            return SuiteTable.of((label_answers(part, inputs.trained) for part in parts), metrics, inputs)
        answers = label_answers(RecordColumns.joined(parts), inputs.trained)
        return ConfigTable.of(answers, metrics, inputs)

    def fitted_corrections(self, parts: Iterable[RecordColumns], inputs: MetricInputs) -> tuple[FittedCorrection, ...]:
        """Return the corrections of the table of some parts, without measuring anything."""
        answers = (label_answers(part, inputs.trained) for part in parts)
        return tuple(correction for part in answers for correction in corrections_of(part, inputs))

    def class_report(self, records: RecordColumns, inputs: MetricInputs) -> ClassReport | None:
        """Return the accuracies of the classes before and after each calibration."""
        return class_report(ConfigTable.of(label_answers(records, inputs.trained), inputs=inputs))

    def part_report(self, records: RecordColumns) -> PartReport:
        """Return how the model uses the labels of one part."""
        return part_report(label_answers(records))


def class_report(table: ConfigTable) -> ClassReport | None:
    """Return the accuracies of the classes of one task; None if its items have labels of their own."""
    answers = table.answers
    if not answers.offered.all():
        return None
    columns = []
    named = [("", "Uncorrected", "as the model answers"), *((one.name, one.label, one.title) for one in calibrations())]
    for calibration, label, title in named:
        metrics = tuple(Variant(name, calibration).name for name in _MEASURES)
        found = table.class_accuracies(calibration)
        accuracies, reason = ((), found) if isinstance(found, str) else (found, None)
        columns.append(CorrectedClasses(label, title, accuracies, metrics, reason))
    return ClassReport(answers.labels, tuple(columns), tuple(MEASURES[name].heading for name in _MEASURES))


def part_report(answers: LabelAnswers) -> PartReport:
    """Return for each label its number of items, its share of the answers, and its prior under the model.

    The prior is the mean distribution on the split *bias* with equal weight for each right label: its distance from the
    uniform distribution is BiasScore.
    """
    n_right = np.bincount(
        answers.targets[(answers.splits == TEST) & (answers.targets >= 0)], minlength=len(answers.labels)
    )
    shares = prior = None
    if (used := answers.of_split(TEST)).any():
        shares = predicted_share(answers.probabilities[used]).mean(axis=0)
    used = answers.of_split(BIAS) & (answers.targets >= 0)
    if used.any() and not answers.in_words:
        targets = answers.targets[used]
        means = [answers.probabilities[used][targets == target].mean(axis=0) for target in np.unique(targets)]
        prior = np.mean(means, axis=0)
    return PartReport(
        groups=dict(answers.groups),
        labels=tuple(
            LabelUse(
                name=name,
                n_right=int(n_right[column]),
                predicted_share=None if shares is None else float(shares[column]),
                prior=None if prior is None else float(prior[column]),
            )
            for column, name in enumerate(answers.labels)
        ),
        are_same=bool(answers.offered.all()),
        why_no_share=None if shares is not None else f"no item of split {TEST} has a reading",
        why_no_prior=None
        if prior is not None
        else IN_WORDS
        if answers.in_words
        else f"no item of split {BIAS} has a reading",
    )
