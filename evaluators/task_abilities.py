"""What only some tasks can do, each as a subclass of :class:`evaluators.task.Task` that such a task extends.

General code asks ``isinstance(task, ShowsExamples)`` and the like, and never for a family of tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground.errors import ConfigError
from evaluators.task import Asked, Prompt, Task
from schemas.documents.run_files import ScorerKind

if TYPE_CHECKING:
    from evaluators.metric import MetricInputs, RecordTable
    from evaluators.text_scores import TextScores
    from schemas.documents.run_files import FittedCorrection
    from schemas.files.record_columns import RecordColumns


class ShowsExamples(Task):
    """A task whose prompts show solved examples, which are items of one split."""

    examples_split: str
    """The split whose items are shown, in its order."""
    default_contexts: tuple[int, ...] = (0,)
    """The numbers of examples to ask with if the user chooses neither contexts nor a prompt."""

    def shown_groups(self, item: Any, asked: Asked) -> Mapping[str, str]:
        """Return the groups of an item's record that tell what its prompt shows; by default none."""
        return {}

    def chosen_examples(self, pool: Sequence[Any], prompt: Prompt) -> Sequence[Any]:
        """Return the examples that a prompt's rule chooses, in order; fewer if there are not enough of a kind.

        Args:
            pool: The items of the split that examples come from, in order.
            prompt: A prompt with a rule.
        """
        raise ConfigError(
            f"prompt '{prompt.id}' has its examples chosen by rule '{prompt.example_rule}', and task '{self.name}' "
            "defines no chosen_examples; take another prompt"
        )

    def why_no_examples(self, pool: Sequence[Any], prompt: Prompt) -> str | None:
        """Return why the rule of a prompt finds no examples in a pool, as in ``3 labels``; None if it does.

        A run of a suite leaves out such parts.
        """
        return None

    def shown_items(self, records: RecordColumns) -> frozenset[str]:
        """Return the ids of the items that the prompt of some records of one part shows as examples."""
        return frozenset()


class TrainsAdapters(ShowsExamples):
    """A task for whose prompts adapters can be trained, on other items than they show."""

    @abstractmethod
    def training_items(self, pool: Sequence[Any], prompt: Prompt, shown: Sequence[Any], n_items: int) -> Sequence[Any]:
        """Return the items on which the adapter of a prompt is trained; fewer if there are not enough.

        Args:
            pool: The items of the split that examples come from, in order.
            prompt: The prompt, which shows the same examples in training as in the run.
            shown: The examples that the prompt shows; the adapter is trained on none of them.
            n_items: Number of items to train on.
        """


class ReadsScores(Task):
    """A task with metrics that read scores of texts."""

    score_kinds: frozenset[ScorerKind]
    """The kinds of scores that any metric of the task reads; texts get no others."""

    @abstractmethod
    def texts(self, records: Sequence[Any]) -> Sequence[str]:
        """Return the distinct texts that need scores."""

    @abstractmethod
    def scored_table(self, records: Sequence[Any], scores: TextScores) -> RecordTable:
        """Return records as arrays, with the scores of their texts."""

    def table(self, records: Sequence[Any]) -> RecordTable:
        """Return records as arrays, without scores."""
        from evaluators.text_scores import NO_SCORES

        return self.scored_table(records, NO_SCORES)


class MeasuresParts(Task):
    """A task that takes records part by part, to keep only what metrics need, or whose metrics apply corrections."""

    @abstractmethod
    def table_of_parts(
        self,
        parts: Iterable[RecordColumns],
        inputs: MetricInputs,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> RecordTable:
        """Return the records of a run as arrays, together with other inputs of its metrics.

        Args:
            parts: The records of each part. Those of a whole suite may not fit into memory together.
            inputs: Earlier corrections.
            is_suite: True for the result of a suite, False for that of a single config.
            metrics: Names of the metrics that are needed; None for all.

        Raises:
            DataError: a stored correction does not fit the records.
        """

    def table(self, records: Sequence[Any]) -> RecordTable:
        """Return the records of a config as arrays."""
        from evaluators.metric import NO_INPUTS
        from schemas.files.record_columns import RecordColumns

        return self.table_of_parts([RecordColumns.of(records)], NO_INPUTS, is_suite=False)

    def fitted_corrections(self, parts: Iterable[RecordColumns], inputs: MetricInputs) -> tuple[FittedCorrection, ...]:
        """Return the corrections of the table of some parts, without the rest of it; by default there are none."""
        return ()


def table_of(
    task: Task,
    parts: Iterable[RecordColumns],
    inputs: MetricInputs,
    *,
    is_suite: bool,
    metrics: frozenset[str] | None = None,
) -> RecordTable:
    """Return the records of a run as arrays; the arguments are those of :meth:`MeasuresParts.table_of_parts`."""
    from schemas.files.record_columns import RecordColumns

    if isinstance(task, MeasuresParts):
        return task.table_of_parts(parts, inputs, is_suite=is_suite, metrics=metrics)
    records = RecordColumns.joined(parts)
    return task.scored_table(records, inputs.scores) if isinstance(task, ReadsScores) else task.table(records)


class ReportsLabels(Task):
    """A task whose items have labels, with reports on the pages of how a model uses those of a part."""

    @abstractmethod
    def part_report(self, records: RecordColumns) -> PartReport:
        """Return how the model uses the labels of a part, from all its records."""

    @abstractmethod
    def part_text(self, item: Any) -> str:
        """Return the text that all items of a part share, such as the instruction, given any of them."""

    def class_report(self, records: RecordColumns, inputs: MetricInputs) -> ClassReport | None:
        """Return how often the model is right in each class of one config; None if the task knows no such classes."""
        return None


class LabelUse(NamedTuple):
    """A label of a part, and how often a model chooses it."""

    name: str
    n_right: int
    """Number of evaluated items whose right label it is."""
    predicted_share: float | None
    """Share of the evaluated answers that choose it; ties are split. None if there are no answers."""
    prior: float | None
    """Mean probability of the label over items among which all labels are right equally often; None if unknown."""


class PartReport(NamedTuple):
    """The labels of a part, how a model uses them, and facts about the part."""

    groups: Mapping[str, str]
    """Facts about the part that all of its items share, by name."""
    labels: tuple[LabelUse, ...]
    are_same: bool
    """True if all items offer the same labels; False if each has its own, which are then texts of the items."""
    why_no_share: str | None
    """Reason why the predicted shares are unknown; None if they are known."""
    why_no_prior: str | None
    """Reason why the priors are unknown; None if they are known."""


class ClassAccuracy(NamedTuple):
    """How often a model is right among the items of one class."""

    n_items: int
    """Number of the class's items with a reading."""
    value: float | None
    """Share of them that is right, ties split; None if there are none."""
    low: float | None
    """Lower end of its 95 % interval; None if there is no interval."""
    high: float | None


class CorrectedClasses(NamedTuple):
    """The accuracies of all classes under one correction of the model's probabilities, or under none."""

    label: str
    """Heading of the correction."""
    title: str
    """Its full name."""
    accuracies: tuple[ClassAccuracy, ...]
    """Accuracy of each class; empty if there is no such correction."""
    metrics: tuple[str, ...]
    """Names of the metrics of ``ClassReport.measures`` under the correction."""
    reason: str | None
    """Reason why there is no such correction; None if there is one."""


class ClassReport(NamedTuple):
    """How often a model is right in each class of a task, before and after each correction."""

    labels: tuple[str, ...]
    columns: tuple[CorrectedClasses, ...]
    """The corrections, of which the first is none."""
    measures: tuple[str, ...]
    """Headings of measures over the classes that belong beside the accuracies."""
