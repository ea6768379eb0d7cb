"""Computes the metrics of a result from its records, and stores the corrections that calibrations have learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from biasboard.ground.kinds import METRICS, TASKS
from evaluators.metric import NO_INPUTS, MetricDefinition, MetricInputs, MetricName, StatisticsSource, TableSource
from evaluators.scorer import TextScorer
from evaluators.statistics.cluster_sums import ratio
from evaluators.statistics.jackknife import Deviations
from evaluators.task import load_task
from evaluators.task_abilities import ReadsScores, table_of
from evaluators.text_scores import NO_SCORES, TextScores, score_texts, write_scores
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.record import Record
from schemas.documents.result import CorrectionsFile, Metric, Result, ScoresFile
from schemas.documents.run_files import Corrections, FittedCorrection
from schemas.files import contract
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import CORRECTIONS, read_corrections


@cache
def metric_definitions(task: str) -> tuple[MetricDefinition[Any], ...]:
    """Return every metric of a task, ordered by file name and then as defined.

    A definition that one file imports from another is returned once. A family's folder holds the metrics of its own
    tasks, so that those of other families are not loaded.

    Raises:
        ConfigError: two different metrics of the task have the same name, or a metric names a task that does not exist
            or is of another family.
    """
    definitions: dict[str, tuple[str, MetricDefinition[Any]]] = {}
    tasks = {name: TASKS.module_name(name).rpartition(".")[0] for name in TASKS.names()}
    for file in METRICS.names():
        folder = METRICS.module_name(file).rpartition(".")[0]
        is_of_family = folder.startswith(f"{METRICS.package}.")
        if is_of_family and folder != tasks.get(task):
            continue
        for value in definitions_in(vars(METRICS.load(file)).values()):
            # A metric of a misspelled task would be missing from every result without a word.
            if value.task not in tasks:
                have = ", ".join(tasks)
                raise ConfigError(
                    f"{METRICS.module_name(file)}: metric '{value.name}': no task '{value.task}'; have: {have}"
                )
            if is_of_family and tasks[value.task] != folder:
                place = tasks[value.task].replace(".", "/")
                raise ConfigError(
                    f"{METRICS.module_name(file)}: metric '{value.name}': task '{value.task}' is of another family; "
                    f"move the file to {place}"
                )
            if value.task != task:
                continue
            first_file, first = definitions.setdefault(value.name, (file, value))
            if first is not value:
                modules = " and in ".join(dict.fromkeys(METRICS.module_name(name) for name in (first_file, file)))
                raise ConfigError(f"metric '{value.name}' of task '{task}' is defined twice, in {modules}; rename one")
    return tuple(definition for _, definition in definitions.values())


def definitions_in(values: Iterable[object]) -> Iterator[MetricDefinition[Any]]:
    """Yield the metric definitions among the values of a module, including those in tuples."""
    for value in values:
        for definition in value if isinstance(value, tuple) else (value,):
            if isinstance(definition, MetricDefinition):
                yield definition


@cache
def retired_names(task: str) -> frozenset[str]:
    """Return the names that metrics of a task once had, and that no metric has now."""
    definitions = metric_definitions(task)
    former = {definition.formerly.name for definition in definitions if definition.formerly is not None}
    return frozenset(former - {definition.name for definition in definitions})


def present_names(task: str, stored: Iterable[MetricName]) -> Mapping[MetricName, MetricName]:
    """Return the present names of those stored metrics whose values have another one now.

    A metric keeps its former name if the present one is taken by values that keep theirs: two of one name would hide
    each other from whoever checks them.

    ``stored`` are all metrics of the result.
    """
    former = {
        definition.formerly: MetricName(definition.name, definition.version)
        for definition in metric_definitions(task)
        if definition.formerly is not None
    }
    distinct = set(stored)
    now = {name: former[name] for name in distinct & former.keys()}
    # One that keeps its name can take that of another in turn.
    while taken := {kept.name for kept in distinct - now.keys()} & {present.name for present in now.values()}:
        now = {name: present for name, present in now.items() if present.name not in taken}
    return now


def under_present_names(result: Result) -> Result:
    """Return a result with the present names and versions of metrics that were renamed since, and the same values."""
    stored = [MetricName(metric.name, metric.version) for metric in result.metrics]
    now = present_names(result.signature.task, stored)
    if not now:
        return result
    metrics = (
        replace(metric, **now[name]._asdict()) if name in now else metric
        for metric, name in zip(result.metrics, stored, strict=True)
    )
    return replace(result, metrics=tuple(metrics))


class Measurement:
    """The metrics of one result."""

    def __init__(self, task: str, source: StatisticsSource, corrections: tuple[FittedCorrection, ...] = ()) -> None:
        """Measure from statistics."""
        self._task = task
        self.source = source
        self.corrections = corrections

    @classmethod
    def of(
        cls, parts: Iterable[RecordColumns], task: str, inputs: MetricInputs = NO_INPUTS, *, is_suite: bool = False
    ) -> Measurement:
        """Measure from records.

        Records without a reading are counted too.

        Raises:
            DataError: the records do not come from this task, or come from several prompts or configs.
        """
        table = table_of(load_task(task), parts, inputs, is_suite=is_suite)
        return cls(task, TableSource(table, is_suite=is_suite), table.corrections)

    def metrics(self) -> tuple[Metric, ...]:
        """Compute every metric of the task, overall and by slice, with an entry even for null values."""
        return tuple(
            definition.compute(self.source, group)
            for definition in metric_definitions(self._task)
            for group in self.source.groups(definition)
        )

    def deviations(self, names: Sequence[str]) -> dict[str, Deviations]:
        """Return the deviations of metrics over all items by name; without those that have none.

        Results of one signature have the deviations of the same clusters, so that differences between them are paired.

        Raises:
            ConfigError: there is no such metric.
        """
        definitions = {definition.name: definition for definition in metric_definitions(self._task)}
        for name in names:
            if name not in definitions:
                have = ", ".join(definitions)
                raise ConfigError(f"metric '{name}' does not exist for task '{self._task}'; have: {have}")
        deviations = {name: definitions[name].deviations(self.source, {}) for name in names}
        return {name: of_metric for name, of_metric in deviations.items() if isinstance(of_metric, Deviations)}

    def by_cluster(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the value in each cluster, such as a part of a suite, of metrics that are means over clusters.

        Args:
            names: Names of the metrics; undefined ones and those that are not means are left out.

        Returns:
            The values of each metric by name, shape (n_clusters,); nan for clusters without a value.
        """
        values = {}
        for definition in metric_definitions(self._task):
            if definition.name in names and self.source.facts(definition).undefined is None:
                sums = self.source.statistics(definition, {}).cluster_sums
                # The statistics of a mean have two columns: sum and count.
                if sums.shape[1] == 2:
                    values[definition.name] = ratio(sums[:, 0], sums[:, 1])
        return values

    def sliced(self, names: Sequence[str]) -> Iterator[SliceValue]:
        """Yield metrics on all items and on each slice with their deviations, without those that have none.

        Names that the task does not have are skipped.
        """
        for definition in metric_definitions(self._task):
            for group in self.source.groups(definition) if definition.name in names else ():
                value = definition.value_of(self.source, group).value
                deviations = definition.deviations(self.source, group)
                if value is not None and isinstance(deviations, Deviations):
                    yield SliceValue(definition.name, group, value, deviations)


class SliceValue(NamedTuple):
    """The value of a metric on a slice, and its deviations."""

    name: str
    group: Mapping[str, str]
    value: float
    deviations: Deviations


def compute_metrics(records: Sequence[Record], task: str, scores: TextScores = NO_SCORES) -> tuple[Metric, ...]:
    """Compute every metric of a task from the records of one config; see :class:`Measurement`."""
    return Measurement.of([RecordColumns.of(records)], task, MetricInputs(scores)).metrics()


class Computed(NamedTuple):
    """The metrics and scores computed from the records of a run."""

    metrics: tuple[Metric, ...]
    scores: ScoresFile | None
    """File of the texts' scores in the folder of the run; None if the task reads no scores or nothing was scored."""
    corrections: CorrectionsFile | None = None
    """File of the corrections of calibrated metrics; None if no metric of the task needs one."""


def score_records(
    folder: Path,
    parts: Iterable[RecordColumns],
    task: str,
    scorers: Sequence[TextScorer] = (),
    *,
    is_suite: bool = False,
    inputs: MetricInputs = NO_INPUTS,
    stored: ScoresFile | None = None,
) -> Computed:
    """Score the texts of a run, write scores and corrections, and compute every metric.

    Args:
        folder: Folder of the run; ``scores.parquet`` and ``corrections.json`` are written there if they are needed.
        parts: The records of each part of the run.
        task: Name of the task that wrote the records.
        scorers: Scorers, at most one of each kind; those of a kind that the task does not read are not used.
        is_suite: True for the result of a suite, False for that of a single config.
        inputs: Earlier scores, kept for each kind without a scorer, and earlier corrections.
        stored: File in this folder that holds exactly these scores; left unchanged if there are no scorers.

    Raises:
        DataError: the records do not come from this task, or come from several prompts or configs.
    """
    loaded = load_task(task)
    if loaded.measures_nothing:
        return Computed((), None)
    if not isinstance(loaded, ReadsScores):
        measurement = Measurement.of(parts, task, inputs, is_suite=is_suite)
        return Computed(measurement.metrics(), None, write_corrections(folder, measurement.corrections))
    scorers = [scorer for scorer in scorers if scorer.identity.kind in loaded.score_kinds]
    # Without scorers the texts need not be gathered, and the file of scores stays unchanged.
    if stored is not None and not scorers:
        return Computed(Measurement.of(parts, task, inputs, is_suite=is_suite).metrics(), stored)
    records = RecordColumns.joined(parts)
    scores = score_texts(loaded.texts(records), scorers, known=inputs.scores, folder=folder)
    metrics = Measurement.of([records], task, inputs._replace(scores=scores), is_suite=is_suite).metrics()
    return Computed(metrics, write_scores(folder, scores))


def read_inputs(folder: Path, result: Result, scores: TextScores = NO_SCORES, *, may_fit: bool = False) -> MetricInputs:
    """Return what the metrics of a result need besides records: its corrections, and its adapters' training items.

    Args:
        folder: Folder of the result.
        result: The result in it.
        scores: Scores of its texts.
        may_fit: True to fit corrections that are missing.

    Raises:
        DataError: a file is missing or damaged.
    """
    stored = read_corrections(folder, result)
    corrections = () if stored is None else stored.corrections
    trained: Mapping[str, frozenset[str]] = {}
    if result.adapters is not None:
        # Few models answer with adapters.
        from evaluators.adapter_set import trained_items

        trained = trained_items(folder, result)
    return MetricInputs(scores, corrections, trained, may_fit)


def write_corrections(folder: Path, corrections: Sequence[FittedCorrection]) -> CorrectionsFile | None:
    """Write the corrections of a run to its folder; if there are none, remove an earlier file.

    Returns:
        The reference to the file for the result; None if there are no corrections.
    """
    path = folder / CORRECTIONS
    if not corrections:
        # The result would not name a file left by an earlier scoring, so nothing would ever check it.
        path.unlink(missing_ok=True)
        return None
    document = Corrections(schema_version=SCHEMA_VERSION, corrections=tuple(corrections))
    contract.check(document, where=str(path))
    strict_json.write(path, contract.dump(document))
    return CorrectionsFile(path=CORRECTIONS, sha256=sha256_file(path))
