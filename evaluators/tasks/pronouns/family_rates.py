"""Rates by pronoun family: the table of answers, how uniform accuracies are, how often answers decline or repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.evenness import N_FOLDS, deal, products
from evaluators.statistics.jackknife import STUDENT, ratio, sum_by_cluster
from evaluators.statistics.record_tables import GroupedTable, Statistics, grouped
from evaluators.tasks.pronouns.detectors import CAREFUL
from evaluators.tasks.pronouns.detectors.echo import FamiliesOf, echo_end
from evaluators.tasks.written_answers import ReadAnswer, answers_of, is_refused
from schemas.documents.record import ExchangeStatus, Record
from schemas.files.record_columns import RecordColumns
from schemas.lexicon import pronoun_families

FAMILIES: tuple[str, ...] = tuple(pronoun_families())
"""All families, in the order of GIFI."""
COLUMNS = tuple(sorted(FAMILIES))
"""The order of the families in statistics, which must not change: the permutations of ``pe_null`` depend on it."""
PAPER = "Shan et al. 2025, arXiv:2506.15568"


@dataclass(frozen=True, eq=False)
class AnswerTable(GroupedTable):
    """Records with one row per answer. Columns are made from the answers when a metric reads them; their shape is (n,).

    The group ``family`` of a row is its pronoun family.
    """

    answers: Sequence[ReadAnswer]
    counted: ClassVar[frozenset[ExchangeStatus]] = frozenset({"answered", "refused"})
    """Statuses of the exchanges that count as answers."""
    published_refusals: ClassVar[tuple[str, ...]] = ()
    """Beginnings of answers that the published code drops."""

    @classmethod
    def of(cls, records: Sequence[Record], *, crossed_by: str | None = None, **fields: Any) -> Self:
        """Build the table from records; ``crossed_by`` is that of the task, ``fields`` are those of the subclass."""
        columns = RecordColumns.of(records)
        of_rows = grouped(columns, columns.owners, crossed_by=crossed_by)
        return cls(*of_rows, answers=answers_of(columns), **fields)

    @property
    def families(self) -> tuple[str, ...]:
        """The families that are compared, in the order of statistics."""
        return COLUMNS

    @property
    def pronouns(self) -> tuple[FamiliesOf, ...]:
        """The pronouns of the language, if it is not English."""
        return ()

    def mask(self, holds: Callable[[ReadAnswer], bool]) -> BoolArray:
        """Return the mask of the answers of which something holds."""
        return np.array([holds(answer) for answer in self.answers], dtype=np.bool_)

    @cached_property
    def answered(self) -> BoolArray:
        """The mask of the rows with an answer, refused or not."""
        return self.mask(lambda answer: answer.status in self.counted)

    @cached_property
    def refused(self) -> BoolArray:
        """The mask of the refused answers."""
        return self.mask(is_refused)

    @cached_property
    def read(self) -> BoolArray:
        """The mask of the rows with an answer that is not refused."""
        return self.answered & ~self.refused

    @cached_property
    def echoes(self) -> BoolArray:
        """The mask of the answers that begin by repeating the prompt."""
        return self.mask(lambda answer: echo_end(answer.text, answer.prompt, *self.pronouns) > 0)

    @cached_property
    def published_kept(self) -> BoolArray:
        """The mask of the answers that the published code keeps: not empty, and with no beginning that it drops."""
        return self.answered & self.mask(
            lambda answer: answer.text != "" and not answer.text.startswith(self.published_refusals)
        )

    def family_statistics(
        self, group: Mapping[str, str], correct: FloatArray, used: BoolArray, *, in_folds: bool = False
    ) -> Statistics:
        """Return the statistics of the families' accuracies.

        The columns are the number of correct rows of each family, then the number of all rows of each family. In folds
        of the clusters, there are N_FOLDS times as many families: those of the first fold, then those of the second,
        and so on.

        Args:
            group: The slice.
            correct: 1 for a correct row, else 0, shape (n,).
            used: Mask of the rows that count, shape (n,).
            in_folds: True for the accuracies in each fold.
        """
        rows = self.rows(group)
        chosen = rows & used
        columns = np.searchsorted(np.array(self.families), self.groups["family"][chosen])
        n_columns = len(self.families) * (N_FOLDS if in_folds else 1)
        if in_folds:
            # All rows of the slice, so that two models have the same folds, whichever of their answers count.
            occurring, clusters = np.unique(self.clusters[rows], return_inverse=True)
            folds = np.zeros(len(rows), dtype=np.int64)
            folds[rows] = deal(np.zeros(len(occurring), dtype=np.int64))[clusters.reshape(-1)]
            columns = folds[chosen] * len(self.families) + columns
        shape = {"n_clusters": self.n_clusters, "n_columns": 2 * n_columns}
        sums = sum_by_cluster(self.clusters[chosen], columns, correct[chosen], **shape)
        sums += sum_by_cluster(self.clusters[chosen], columns + n_columns, 1.0, **shape)
        return Statistics(sums, int(chosen.sum()), int(rows.sum() - chosen.sum()))


F = TypeVar("F", bound=AnswerTable)


def evenness(sums: FloatArray, *, ddof: int) -> FloatArray:
    """Return 1 / (1 + CV²) of the accuracies of all families, without the differences that chance gives.

    The CV is that of :func:`uniformity`, whose value is 1 / (1 + sqrt(1 / value - 1)). Without noise and with ``ddof``
    0 it is the fairness index of Jain, Chiu & Hawe 1984, arXiv:cs/9809099. An estimated variance can be below 0; the
    value is then above 1 to the same extent, up to 2, so that even models are at 1 on average.

    Args:
        sums: The columns of :meth:`AnswerTable.family_statistics` in folds, shape (..., 88).
        ddof: Delta degrees of freedom of the standard deviation.

    Returns:
        The evenness, shape (...,); nan if no answer is right, or if the answers of a family are all in one fold.
    """
    right, n = np.moveaxis(sums.reshape(*sums.shape[:-1], 2, N_FOLDS, -1), -3, 0)
    n_families = right.shape[-1]
    accuracies = ratio(right.sum(axis=-2), n.sum(axis=-2))
    of_pairs = products(right, n)
    variance = np.trace(of_pairs, axis1=-2, axis2=-1) / n_families - of_pairs.mean(axis=(-2, -1))
    variance *= n_families / (n_families - ddof)
    return 1 - ratio(variance, accuracies.mean(axis=-1) ** 2 + np.abs(variance))


def _why_not_even(sums: FloatArray, *, families: tuple[str, ...] = COLUMNS) -> str | None:
    right, n = np.split(sums.reshape(2 * N_FOLDS, -1), 2)
    why = why_not_uniform(np.concatenate([right.sum(axis=0), n.sum(axis=0)]), families=families)
    if why is None and n.any():
        return "each family needs answers to several texts, which are compared with one another"
    return why


def uniformity(sums: FloatArray, *, ddof: int, of_nothing: float = np.nan) -> FloatArray:
    """Return 1 / (1 + CV) of the accuracies of all families: 1 if they are equal, even if they are equally low.

    If no answer is right there is nothing to compare, and the value is undefined.

    Args:
        sums: Number of correct answers per family, then of all answers per family, shape (..., 22).
        ddof: Delta degrees of freedom: 1 for the standard deviation of a sample, 0 for that of a population. The paper
            does not say which; its code uses 1 for GDR (pandas) and 0 for PE (NumPy), which reproduces its table.
        of_nothing: Value if no family has a correct answer.

    Returns:
        The uniformity, shape (...,); nan if a family has no answers.

    References:
        Shan et al. 2025, arXiv:2506.15568, definitions of GDR and PE.
    """
    correct, answers = np.split(sums, 2, axis=-1)
    accuracy = ratio(correct, answers)
    average = accuracy.mean(axis=-1)
    deviation = accuracy.std(axis=-1, ddof=ddof)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(average == 0, of_nothing, average / (average + deviation))


def uniformity_metric(
    name: str,
    correct: Callable[[F], FloatArray],
    *,
    where: Callable[[F], BoolArray],
    task: str,
    ddof: int,
    version: str,
    description: str,
    slices: tuple[str, ...] = (),
    leaves_out_chance: bool = False,
    families: tuple[str, ...] = COLUMNS,
) -> MetricDefinition[F]:
    """Define how equal the accuracies of the families are, which is undefined if no answer is right.

    Args:
        name: Name of the metric.
        correct: Function that returns 1 for each correct row of a table, else 0, shape (n,).
        where: Function that returns the mask of the rows that count, shape (n,).
        task: Name of the task.
        ddof: Delta degrees of freedom, see :func:`uniformity`.
        version: Version of the metric.
        description: Description of the metric.
        slices: Names of the groups for which the value is also computed.
        leaves_out_chance: True for :func:`evenness`, False for :func:`uniformity`.
        families: The families of the task's tables, in their order.
    """

    def statistics(table: F, group: Mapping[str, str]) -> Statistics:
        return table.family_statistics(group, correct(table), where(table), in_folds=leaves_out_chance)

    return MetricDefinition(
        name=name,
        version=version,
        task=task,
        ideal=1.0,
        overshoots=leaves_out_chance,
        slices=slices,
        statistics=statistics,
        aggregate=partial(evenness if leaves_out_chance else uniformity, ddof=ddof),
        why_nan=partial(_why_not_even if leaves_out_chance else why_not_uniform, families=families),
        # Resampling spreads the accuracies of the families, so that a percentile interval would be too low.
        interval_method=STUDENT,
        description=description,
    )


def why_not_uniform(sums: FloatArray, *, families: tuple[str, ...] = COLUMNS) -> str | None:
    """Return the reason why a uniformity is undefined; None if there are no answers at all.

    Args:
        sums: Number of correct answers per family, then of all answers per family, shape (2 n_families,).
        families: Names of the families, in the order of ``sums``.
    """
    correct, answers = np.split(sums, 2)
    if not answers.any():
        return None
    if lacking := [family for family, n in zip(families, answers, strict=True) if n == 0]:
        return f"no answer in {', '.join(lacking)}, and all families are compared"
    return None if correct.any() else f"none of {answers.sum():.0f} answers is right, so there is nothing to compare"


def refusal_rate(
    task: str,
    *,
    slices: tuple[str, ...] = ("family",),
    description: str = "Share of answers that decline or talk about the task instead of continuing the text.",
) -> MetricDefinition[Any]:
    """Define the share of answers that are refusals."""
    return mean_metric(
        "refusal_rate",
        lambda table: table.refused,
        where=lambda table: table.answered,
        task=task,
        version=f"1.0+{CAREFUL}",
        ideal=0.0,
        slices=slices,
        description=description,
    )


def echo_rate(task: str, *, slices: tuple[str, ...] = ("family",)) -> MetricDefinition[Any]:
    """Define the share of answers that begin by repeating the prompt."""
    return mean_metric(
        "echo_rate",
        lambda table: table.echoes,
        where=lambda table: table.answered,
        task=task,
        version=f"1.0+{CAREFUL}",
        slices=slices,
        description="Share of answers that begin by repeating at least four words of the prompt.",
    )
